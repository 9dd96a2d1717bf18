// merge - a model with an adapter of the library added into its weights: a new model here, or a
// file for others.
//
// One at a time. It goes on when its dialog is closed, and says so when it is done.

import { signal } from '@preact/signals';
import { Engine } from 'bezel';
import { download } from '../lib/files';
import { messageOf, notify, say } from './notices';
import type { ModelEntry } from './models';
import { lookInStore, store } from './shelf';

export interface MergeWish {
  adapter: string;
  model: ModelEntry;
  scale: number;
  /** Of the new model. */
  name: string;
}

export interface MergeJob {
  wish: MergeWish;
  to: 'models' | 'file';
  loaded: number;
  total: number;
  state: 'running' | 'done' | 'failed';
  error: string;
}

/** The adapter whose dialog is open. */
export const mergeDialog = signal<string | null>(null);
export const merging = signal<MergeJob | null>(null);

let stop: AbortController | undefined;
export const cancelMerge = (): void => stop?.abort();
/** Make room for another. */
export const forgetMerge = (): void =>
  void (merging.value?.state !== 'running' && (merging.value = null));

interface Watch {
  signal: AbortSignal;
  onProgress(p: { loaded: number; total: number }): void;
}

const tell = (part: Partial<MergeJob>): void =>
  void (merging.value && (merging.value = { ...merging.value, ...part }));

async function run(
  wish: MergeWish, to: MergeJob['to'], work: (watch: Watch) => Promise<void>,
): Promise<void> {
  const mine = (stop = new AbortController());
  merging.value = { wish, to, loaded: 0, total: wish.model.size, state: 'running', error: '' };
  try {
    await work({ signal: mine.signal, onProgress: ({ loaded, total }) => tell({ loaded, total }) });
    tell({ state: 'done' });
    const done =
      to === 'models' ? `${wish.name} is among the models now.` : `${wish.name}.gguf is written.`;
    if (mergeDialog.peek() === null) notify(done);
    else say(done);
  } catch (e) {
    if (mine.signal.aborted) merging.value = null;
    else tell({ state: 'failed', error: messageOf(e) });
    if (mergeDialog.peek() === null)
      notify(mine.signal.aborted ? 'Merging was cancelled.' : messageOf(e), {
        tone: mine.signal.aborted ? 'plain' : 'error',
      });
  }
}

async function partsOf({ adapter, model, scale }: MergeWish, { signal }: Watch) {
  const { adapters: [source], store: { config } } = await store().resolve(adapter);
  if (!source) throw new Error(`${adapter} is not an adapter.`);
  const { source: from, store: known } = await model.open(() => {}, signal);
  return {
    from,
    adapter: { source, scale, ...(config !== undefined && { config }) },
    known: known ? { store: known } : {},
  };
}

/** Into this browser's models. */
export const mergeToModels = (wish: MergeWish): Promise<void> =>
  run(wish, 'models', async (watch) => {
  const { from, adapter, known } = await partsOf(wish, watch);
  await store().merge(from, adapter, { ...watch, ...known, name: wish.name });
  await lookInStore();
});

/** Where the person wants it; undefined: nowhere after all. */
async function pickPlace(name: string): Promise<FileSystemFileHandle | undefined> {
  try {
    return await window.showSaveFilePicker?.({
      suggestedName: name,
      types: [{ description: 'GGUF model', accept: { 'application/octet-stream': ['.gguf'] } }],
    });
  } catch (e) {
    // thought better of it
    if (e instanceof DOMException && e.name === 'AbortError') return undefined;
    throw e;
  }
}

/** Onto the person's disk: straight there where the browser can, else through its own storage. */
export async function mergeToFile(wish: MergeWish): Promise<void> {
  // first of all: the browser wants it to follow a click
  const place = await pickPlace(`${wish.name}.gguf`);
  if (!place && 'showSaveFilePicker' in window) return;
  await run(wish, 'file', async (watch) => {
    try {
      const { from, adapter, known } = await partsOf(wish, watch);
      if (place) await Engine.merge(from, adapter, { to: place, ...watch, ...known });
      else
        download(
          `${wish.name}.gguf`,
          await store().mergeFile(from, adapter, { ...watch, ...known }),
          'application/octet-stream',
        );
    } catch (e) {
      await place?.remove?.(); // the picker has made an empty file
      throw e;
    }
  });
}
