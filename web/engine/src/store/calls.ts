// calls - what a page asks of the stores in the worker: names, parameters, answers.

import { Core, loadWasm } from '../engine/wasm.js';
import type { MergeFrom } from '../train/merge.js';
import type { Handlers, Spec } from '../engine/rpc.js';
import { blobSource } from '../load/source.js';
import { adapterFiles, type AdapterFile, type AdapterForm } from './adapter_files.js';
import { inspectFile, type FileKind } from './inspect_file.js';
import type { StoreProgress } from './news.js';
import { OpfsStore } from './opfs_store.js';
import type { ImportOptions, MergeOptions, PullFrom, PullOptions } from './opfs_types.js';
import { openFolder } from './plain_folder.js';
import type { Verified } from './ollama_store.js';
import { ServerStore } from './server_store.js';
import type { ModelStore, ResolvedModel, StoredModel } from './source_ref.js';

/** Which store: the browser's own, a picked folder, a server. */
export type Where = { kind: 'own' } | { kind: 'folder'; handle: FileSystemDirectoryHandle }
  | { kind: 'server'; url: string };

type Watched<O> = Omit<O, 'onProgress' | 'signal'>;

/** Methods that go through as they are. */
const plain = [
  'delete', 'rename', 'unfinished', 'discard', 'collect', 'usage', 'addFolder', 'picked',
  'forgetFolder', 'handleOf',
] as const;
type Plain = (typeof plain)[number];
type PlainCalls =
  { [K in Plain]: Spec<Parameters<OpfsStore[K]>, Awaited<ReturnType<OpfsStore[K]>>> };

export interface StoreCalls extends PlainCalls {
  list: Spec<{ where: Where }, StoredModel[]>;
  resolve: Spec<{ where: Where; name: string }, ResolvedModel>;
  adapterFiles: Spec<{ name: string; form: AdapterForm }, AdapterFile[]>;
  inspect: Spec<{ file: Blob; name: string; config?: string }, FileKind>;
  pull: Spec<{ from: PullFrom; options: Watched<PullOptions> }, StoredModel, StoreProgress>;
  importFile: Spec<{
    from: File | FileSystemFileHandle; options: Watched<ImportOptions>;
  }, StoredModel, StoreProgress>;
  merge: Spec<{ from: MergeFrom; options: Watched<MergeOptions> }, StoredModel, StoreProgress>;
  mergeFile: Spec<MergeFrom, File, StoreProgress>;
  verify: Spec<{ name: string }, Verified, StoreProgress>;
}

/** No streams. */
export type StoreStreams = Record<never, never>;

/** Answers for calls; the stores are opened when the first one comes. */
export function storeCalls(): Handlers<StoreCalls> {
  let made: Promise<{ core: Core; own: OpfsStore }> | undefined;
  const open = (): Promise<{ core: Core; own: OpfsStore }> =>
    (made ??= (async () => {
      const core = await Core.load(await loadWasm());
      return { core, own: await OpfsStore.open({ core }) };
    })().catch((e: unknown) => {
      made = undefined; // the next call tries again
      throw e;
    }));
  const at = async (where: Where): Promise<ModelStore> => {
    const { core, own } = await open();
    if (where.kind === 'folder') return openFolder(core, where.handle);
    return where.kind === 'server' ? new ServerStore(core, where.url) : own;
  };
  const bound = Object.fromEntries(plain.map((name) => [name, async (args: never[]) => {
    const { own } = await open();
    return (own[name] as (...a: never[]) => Promise<unknown>).apply(own, args);
  }])) as unknown as Handlers<PlainCalls>;
  return {
    ...bound,
    list: async ({ where }) => (await at(where)).list(),
    resolve: async ({ where, name }) => (await at(where)).resolve(name),
    adapterFiles: async ({ name, form }) => {
      const { core, own } = await open();
      return adapterFiles(core, await own.resolve(name), form);
    },
    inspect: async ({ file, name, config }) =>
      inspectFile((await open()).core, blobSource(file, name), config),
    pull: async ({ from, options }, { signal, progress }) =>
      (await open()).own.pull(from, { ...options, signal, onProgress: progress }),
    importFile: async ({ from, options }, { signal, progress }) =>
      (await open()).own.importFile(from, { ...options, signal, onProgress: progress }),
    merge: async ({ from, options }, { signal, progress }) =>
      (await open()).own.merge(from, { ...options, signal, onProgress: progress }),
    verify: async ({ name }, { signal, progress }) =>
      (await open()).own.verify(name, { signal, onProgress: progress }),
    mergeFile: async (from, { signal, progress }) =>
      (await open()).own.mergeFile(from, { signal, onProgress: progress }),
  };
}
