// models - what could be loaded: the small model of the page, this browser's store, the server's, a folder's, files.

import { computed, signal } from '@preact/signals';
import { requestAccess, type ModelSource, type ModelStore, type NameResolver, type StoredModel } from 'bezel';
import tinyUrl from '../../../../models/tiny.q8_0.gguf?url';
import { keepAdapter } from './adapters';
import { diedLoading, engineState, lastModel, load } from './engine';
import { notify, notifyError } from './notices';
import { prefs } from './prefs';
import { inStore, lookInStore, store } from './shelf';
import { findUnfinished } from './transfers';

type OnFetch = (loaded: number, total: number) => void;

export interface ModelEntry {
  /** Unique, and the same at the next visit. */
  key: string;
  name: string;
  origin: 'embedded' | 'store' | 'server' | 'folder' | 'file';
  size: number;
  detail: string;
  open(onFetch: OnFetch, signal: AbortSignal): Promise<{ source: ModelSource; store?: NameResolver }>;
  file?: File;
}

// ---- the small model ----

/** Of the file beside this page; the build looks it up. */
declare const __TINY_BYTES__: number;

async function fetchTiny(onFetch: OnFetch, signal: AbortSignal): Promise<File> {
  const response = await fetch(tinyUrl, { signal });
  if (!response.ok || !response.body) throw new Error(`The small model that belongs to this page is not there (${response.status}).`);
  let loaded = 0;
  const pieces: Uint8Array<ArrayBuffer>[] = [];
  for (const reader = response.body.getReader(); ; ) {
    const { done, value } = await reader.read();
    if (done) break;
    pieces.push(value);
    onFetch((loaded += value.length), __TINY_BYTES__);
  }
  return new File(pieces, 'tiny.gguf');
}

export const tiny: ModelEntry = {
  key: 'embedded:tiny', name: 'tiny', origin: 'embedded', size: __TINY_BYTES__, detail: '6.1 M parameters, Q8_0, comes with the page',
  // As a whole: the offline copy gives no parts of files, and this one is small.
  open: async (onFetch, signal) => ({ source: await fetchTiny(onFetch, signal) }),
};

// ---- stores ----

/** null: there is no server behind this page. */
const onServer = signal<StoredModel[] | null>(null);
const inFolder = signal<StoredModel[]>([]);
const files = signal<ModelEntry[]>([]);

interface Folder {
  handle: FileSystemDirectoryHandle | null;
  /** The browser lets the page read it. */
  open: boolean;
}
export const folder = signal<Folder>({ handle: null, open: false });

function entryOf(origin: ModelEntry['origin'], model: StoredModel, from: ModelStore): ModelEntry {
  const detail = [model.parameters && `${model.parameters} parameters`, model.quantization].filter(Boolean).join(', ');
  return {
    key: `${origin}:${model.name}`, name: model.name, origin, size: model.size, detail,
    open: async () => ({ source: model.name, store: from }),
  };
}

const entries = (origin: ModelEntry['origin'], models: readonly StoredModel[], from: ModelStore) =>
  models.filter((m) => m.kind === 'model').map((m) => entryOf(origin, m, from));

export interface ModelGroup {
  label: string;
  entries: ModelEntry[];
}

export const groups = computed<ModelGroup[]>(() => {
  const { handle } = folder.value;
  const all: ModelGroup[] = [
    { label: 'In this browser', entries: [tiny, ...entries('store', inStore.value, store())] },
    { label: 'Files', entries: files.value },
    { label: 'On this computer’s Bezel server', entries: entries('server', onServer.value ?? [], store().server(location.origin)) },
    { label: `In the folder ${handle?.name ?? ''}`, entries: handle ? entries('folder', inFolder.value, store().folder(handle)) : [] },
  ];
  return all.filter((g) => g.entries.length > 0);
});

const find = (key: string): ModelEntry | undefined => groups.value.flatMap((g) => g.entries).find((m) => m.key === key);

async function lookOnServer(): Promise<void> {
  try {
    onServer.value = await store().server(location.origin).list();
  } catch {
    onServer.value = null; // a page without a server behind it is a page all the same
  }
}

async function lookInFolder(): Promise<void> {
  const handle = folder.value.handle ?? (await store().folders()).at(-1) ?? null;
  const open = handle !== null && ((await handle.queryPermission?.({ mode: 'read' })) ?? 'granted') === 'granted';
  folder.value = { handle, open };
  inFolder.value = open ? await store().folder(handle).list() : [];
}

/** All places, each on its own: one that fails does not hide the others. */
export async function look(): Promise<void> {
  await Promise.all([lookInStore, lookOnServer, lookInFolder, findUnfinished].map((one) => one().catch(notifyError)));
}

export async function pickFolder(): Promise<void> {
  const handle = await window.showDirectoryPicker?.({ id: 'ollama', mode: 'read' }).catch((e: unknown) => {
    if (e instanceof DOMException && e.name === 'AbortError') return undefined; // thought better of it
    throw e;
  });
  if (!handle) return;
  await store().addFolder(handle);
  folder.value = { handle, open: true };
  await lookInFolder();
  notify(inFolder.value.length ? `Found ${inFolder.value.length} in ${handle.name}.` : `There is no model in ${handle.name}.`);
}

export async function openFolder(): Promise<void> {
  const { handle } = folder.value;
  if (handle && (await requestAccess(handle))) await lookInFolder();
}

export async function forgetFolder(): Promise<void> {
  const { handle } = folder.value;
  if (handle) await store().forgetFolder(handle);
  folder.value = { handle: null, open: false };
  inFolder.value = [];
}

const endsIn = (file: File, end: string) => file.name.toLowerCase().endsWith(end);

/** A GGUF file may be either; what it says of itself decides. One that cannot be read says why when it is loaded. */
async function isAdapter(file: File): Promise<boolean> {
  try {
    return (await store().inspect(file)).kind === 'adapter';
  } catch {
    return false;
  }
}

/** Models to choose from, read where they are; adapters go to the library. */
export async function addFiles(chosen: File[]): Promise<void> {
  const ggufs = chosen.filter((f) => endsIn(f, '.gguf'));
  const weights = chosen.filter((f) => endsIn(f, '.safetensors'));
  if (!ggufs.length && !weights.length) throw new Error('Bezel reads models and adapters in GGUF, and adapters in safetensors with their adapter_config.json.');
  const config = chosen.find((f) => endsIn(f, '.json'));
  for (const file of weights) await keepAdapter(file, await config?.text());
  const models: File[] = [];
  for (const file of ggufs) {
    if (await isAdapter(file)) await keepAdapter(file);
    else models.push(file);
  }
  const added = models.map((file): ModelEntry => ({
    key: `file:${file.name}`, name: file.name.replace(/\.gguf$/i, ''), origin: 'file', size: file.size, detail: 'a file of this computer, read in place',
    open: async () => ({ source: file }),
    file,
  }));
  files.value = [...files.value.filter((f) => !added.some((a) => a.key === f.key)), ...added];
  const [first] = added;
  if (first) await load(first);
}

export async function removeModel(entry: ModelEntry): Promise<void> {
  if (entry.origin === 'file') files.value = files.value.filter((f) => f.key !== entry.key);
  if (entry.origin !== 'store') return;
  await store().delete(entry.name);
  await lookInStore();
  notify(`Deleted ${entry.name}.`);
}

// ---- the first thing that happens ----

/** The model of last time, or the small one. A load in which the page died is not tried again unasked. */
export async function begin(): Promise<void> {
  const died = await diedLoading();
  if (died || !prefs.value.autoLoad) {
    engineState.value = { kind: 'none', note: died ? 'The page closed while a model was loading; it may be too large for this device.' : 'No model is loaded.' };
    return;
  }
  const last = lastModel() ?? tiny.key;
  if (last.startsWith('store:')) await lookInStore().catch(notifyError);
  if (last.startsWith('server:')) await lookOnServer();
  if (last.startsWith('folder:')) await lookInFolder().catch(notifyError);
  const found = find(last);
  if (!found) notify(`${last.slice(last.indexOf(':') + 1)} is not within reach now; the models page knows where to look.`);
  await load(found ?? tiny);
}
