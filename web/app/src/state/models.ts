// models - what could be loaded: the small model of the page, this browser's store, the server's, a
// folder's, files.

import { computed, signal } from '@preact/signals';
import {
  needsAccess, requestAccess, type ModelSource, type ModelStore, type NameResolver,
  type StoredModel,
} from 'bezel';
import tinyUrl from '../../../../models/tiny.q8_0.gguf?url';
import { keepAdapter } from './adapters';
import { bytes } from '../lib/format';
import type { Picked } from '../lib/files';
import { diedLoading, engineState, lastModel, load, type EngineState } from './engine';
import { notify, notifyError } from './notices';
import { prefs } from './prefs';
import { inStore, lookInStore, orNothing, store } from './shelf';
import { findUnfinished } from './transfers';
import { question } from './ui';

type OnFetch = (loaded: number, total: number) => void;

export interface ModelEntry {
  /** Unique, and the same at the next visit. */
  key: string;
  name: string;
  origin: 'embedded' | 'store' | 'server' | 'folder' | 'file';
  size: number;
  detail: string;
  open(
    onFetch: OnFetch, signal: AbortSignal,
  ): Promise<{ source: ModelSource; store?: NameResolver }>;
  file?: File;
  /** A file of the person's that is remembered, not copied. */
  inPlace?: boolean;
  /** What is stored is not what was put there. */
  damaged?: boolean;
}

// ---- the small model ----

/** Of the file beside this page; the build looks it up. */
declare const __TINY_BYTES__: number;

async function fetchTiny(onFetch: OnFetch, signal: AbortSignal): Promise<File> {
  const response = await fetch(tinyUrl, { signal });
  if (!response.ok || !response.body)
    throw new Error(`The small model that belongs to this page is not there (${response.status}).`);
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
  key: 'embedded:tiny', name: 'tiny', origin: 'embedded', size: __TINY_BYTES__,
  detail: '6.1 M parameters, Q8_0, comes with the page',
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
  const detail = [model.parameters && `${model.parameters} parameters`, model.quantization].filter(
    Boolean,
  ).join(', ');
  // a folder's files have no handles of their own there
  const remembered = origin === 'store' && model.inPlace;
  return {
    key: `${origin}:${model.name}`, name: model.name, origin, size: model.size,
    detail: model.inPlace
      ? [detail, 'a file of this computer, read in place'].filter(Boolean).join(', ')
      : detail,
    open: async () => {
      if (remembered) await needAccess(model.name);
      return { source: model.name, store: from };
    },
    ...(remembered && { inPlace: true }),
    ...(model.damaged && { damaged: true }),
  };
}

/** A file that was remembered may be read only while the browser allows it; after a click it can
 *  be asked again. */
async function needAccess(name: string): Promise<void> {
  const handle = await store().handleOf(name);
  // no click: no question
  const allowed = !handle || (await requestAccess(handle).catch(() => false));
  if (!allowed)
    throw new Error(
      `The browser does not let the page read ${handle.name}; press Load and allow it.`,
    );
}

const entries = (origin: ModelEntry['origin'], models: readonly StoredModel[], from: ModelStore) =>
  models.filter((m) => m.kind === 'model').map((m) => entryOf(origin, m, from));

export interface ModelGroup {
  label: string;
  entries: ModelEntry[];
}

export const groups = computed<ModelGroup[]>(() => {
  const { handle } = folder.value;
  const own = entries('store', inStore.value, store());
  const all: ModelGroup[] = [
    { label: 'In this browser', entries: [tiny, ...own.filter((m) => !m.inPlace)] },
    { label: 'Files', entries: [...own.filter((m) => m.inPlace), ...files.value] },
    {
      label: 'On this computer’s Bezel server',
      entries: entries('server', onServer.value ?? [], store().server(location.origin)),
    },
    {
      label: `In the folder ${handle?.name ?? ''}`,
      entries: handle ? entries('folder', inFolder.value, store().folder(handle)) : [],
    },
  ];
  return all.filter((g) => g.entries.length > 0);
});

const find = (key: string): ModelEntry | undefined =>
  groups.value.flatMap((g) => g.entries).find((m) => m.key === key);

async function lookOnServer(): Promise<void> {
  try {
    onServer.value = await store().server(location.origin).list();
  } catch {
    onServer.value = null; // a page without a server behind it is a page all the same
  }
}

async function lookInFolder(): Promise<void> {
  const handle = folder.value.handle ?? (await orNothing(store().folders())).at(-1) ?? null;
  const open = handle !== null
    && ((await handle.queryPermission?.({ mode: 'read' })) ?? 'granted') === 'granted';
  folder.value = { handle, open };
  inFolder.value = open ? await store().folder(handle).list() : [];
}

/** All places, each on its own: one that fails does not hide the others. */
export async function look(): Promise<void> {
  await Promise.all([lookInStore, lookOnServer, lookInFolder, findUnfinished].map((one) =>
    one().catch(notifyError)));
}

export async function pickFolder(): Promise<void> {
  const handle = await window.showDirectoryPicker?.({
    id: 'ollama', mode: 'read',
  }).catch((e: unknown) => {
    // thought better of it
    if (e instanceof DOMException && e.name === 'AbortError') return undefined;
    throw e;
  });
  if (handle) await addFolder(handle);
}

export async function addFolder(handle: FileSystemDirectoryHandle): Promise<void> {
  await store().addFolder(handle);
  folder.value = { handle, open: true };
  await lookInFolder();
  notify(
    inFolder.value.length
      ? `Found ${inFolder.value.length} in ${handle.name}.`
      : `There is no model in ${handle.name}.`,
  );
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

const endsIn = ({ file }: Picked, end: string) => file.name.toLowerCase().endsWith(end);

/** A GGUF file may be either; what it says of itself decides. One that cannot be read says why
 *  when it is loaded. */
async function isAdapter(file: File): Promise<boolean> {
  try {
    return (await store().inspect(file)).kind === 'adapter';
  } catch {
    return false;
  }
}

/** For this visit only: the browser has no way back to the file. */
function forNow(file: File): ModelEntry {
  const entry: ModelEntry = {
    key: `file:${file.name}`, name: file.name.replace(/\.gguf$/i, ''), origin: 'file',
    size: file.size, detail: 'a file of this computer, gone after a reload unless a copy is kept',
    open: async () => ({ source: file }),
    file,
  };
  files.value = [...files.value.filter((f) => f.key !== entry.key), entry];
  return entry;
}

/** Remembered, and read in place at the next visit as well. One that the store does not take is
 *  read as a file, which says why. */
async function rememberFile({ file, handle }: Picked): Promise<ModelEntry> {
  if (!handle) return forNow(file);
  try {
    const known = await knownFile(handle);
    const name =
      known ?? (await store().importFile(handle, { name: await freeName(file.name) })).name;
    await lookInStore();
    return find(`store:${name}`) ?? forNow(file);
  } catch {
    return forNow(file);
  }
}

/** The name of a file that was remembered before. */
async function knownFile(handle: FileSystemFileHandle): Promise<string | undefined> {
  for (const { name, inPlace } of inStore.peek())
    if (inPlace && (await (await store().handleOf(name))?.isSameEntry(handle))) return name;
  return undefined;
}

async function freeName(file: string): Promise<string> {
  await lookInStore();
  const taken = new Set(inStore.peek().map((m) => m.name.toLowerCase().replace(/:latest$/, '')));
  const wish = file.replace(/\.gguf$/i, '')
    .replace(/[^A-Za-z0-9._-]+/g, '-')
    .replace(/^[^A-Za-z0-9_]+/, '')
    .slice(0, 76)
    || 'model';
  let name = wish;
  for (let n = 2; taken.has(name.toLowerCase()); n++) name = `${wish}-${n}`;
  return name;
}

const askedFor = (state: EngineState): string => ('model' in state ? state.model.key : '');

/** Models to choose from, read where they are; adapters go to the library. */
export async function addFiles(chosen: Picked[]): Promise<void> {
  const before = askedFor(engineState.peek());
  const ggufs = chosen.filter((f) => endsIn(f, '.gguf'));
  const weights = chosen.filter((f) => endsIn(f, '.safetensors'));
  if (!ggufs.length && !weights.length)
    throw new Error(
      'Bezel reads models and adapters in GGUF, and adapters in safetensors with their '
        + 'adapter_config.json.',
    );
  const config = chosen.find((f) => endsIn(f, '.json'))?.file;
  for (const { file } of weights) await keepAdapter(file, await config?.text());
  let first: ModelEntry | undefined;
  for (const picked of ggufs) {
    if (await isAdapter(picked.file)) await keepAdapter(picked.file);
    else {
      const entry = await rememberFile(picked);
      first ??= entry;
    }
  }
  const now = engineState.peek();
  // somebody chose a model while the files were read
  const isOther = before !== '' && askedFor(now) !== before;
  if (first && !isOther && !(now.kind === 'ready' && now.model.key === first.key))
    await load(first);
}

async function deleteModel(entry: ModelEntry): Promise<void> {
  await store().delete(entry.name);
  await lookInStore();
  notify(
    entry.inPlace
      ? `${entry.name} is forgotten; its file stays where it is.`
      : `Deleted ${entry.name}.`,
  );
}

/** Gigabytes cannot be kept for an undo: it is asked first. A file of the person's is only
 *  forgotten. */
export function removeModel(entry: ModelEntry): void {
  if (entry.inPlace) return void deleteModel(entry).catch(notifyError);
  question.value = {
    title: `Delete ${entry.name}?`, verb: 'Delete', run: () => deleteModel(entry),
    text:
      `It takes ${bytes(entry.size)} in this browser. To use it again it must be `
        + 'downloaded or copied again.',
  };
}

// ---- the first thing that happens ----

async function needsQuestion(entry: ModelEntry): Promise<boolean> {
  const handle = await store().handleOf(entry.name).catch(() => undefined);
  return handle !== undefined && (await needsAccess(handle));
}

/** The model of last time, or the small one. A load in which the page died is not tried again
 *  unasked. */
export async function begin(): Promise<void> {
  const died = await diedLoading();
  if (died || !prefs.value.autoLoad) {
    engineState.value = {
      kind: 'none',
      note: died
        ? 'The page closed while a model was loading; it may be too large for this device.'
        : 'No model is loaded.',
    };
    return;
  }
  const last = lastModel() ?? tiny.key;
  if (last.startsWith('store:')) await lookInStore().catch(notifyError);
  if (last.startsWith('server:')) await lookOnServer();
  if (last.startsWith('folder:')) await lookInFolder().catch(notifyError);
  const found = find(last);
  if (found?.inPlace && (await needsQuestion(found))) {
    notify(`The browser asks again before ${found.name} is read.`, {
      stay: true, action: { label: `Open ${found.name}`, run: () => void load(found) },
    });
    return load(tiny);
  }
  if (!found)
    notify(
      `${last.slice(last.indexOf(':') + 1)} is not within reach now; `
        + 'the models page knows where to look.',
    );
  await load(found ?? tiny);
}
