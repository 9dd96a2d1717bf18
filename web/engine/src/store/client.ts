// client - the stores of models for a page: the browser's own, picked folders, servers. The work is
// done by a worker, since only there can large files be written; in a worker it is done at once.

import {
  findAdapter, findModel, type AdapterSource, type ModelSource, type NameResolver,
} from '../api/engine_source.js';
import { BezelError } from '../api/errors.js';
import type { MergeFrom } from '../train/merge.js';
import { Client, direct, type Link } from '../engine/rpc.js';
import type { AdapterFile, AdapterForm } from './adapter_files.js';
import type { FileKind } from './inspect_file.js';
import { storeCalls, type StoreCalls, type StoreStreams, type Where } from './calls.js';
import { onStoreChange } from './news.js';
import type {
  ImportOptions, MergeOptions, PullFrom, PullOptions, Unfinished, StoreUsage,
} from './opfs_types.js';
import type { Verified, VerifyOptions } from './ollama_store.js';
import { requestPersistence } from './room.js';
import type { ModelStore, ResolvedModel, StoredModel } from './source_ref.js';

export interface OpenStoreOptions {
  /** A worker that runs this package's store worker, where a bundler cannot find it by itself. */
  worker?: Worker;
}

/** Models kept by the browser, and the ways to others. Any number of tabs may have it open. */
export class Store implements ModelStore {
  private constructor(
    private readonly link: Link<StoreCalls, StoreStreams>, private readonly end: () => void,
  ) {}

  /** Nothing is read before the first question. */
  static open(options: OpenStoreOptions = {}): Store {
    const here = typeof FileSystemFileHandle !== 'undefined'
      && 'createSyncAccessHandle' in FileSystemFileHandle.prototype
      && typeof document === 'undefined';
    if (here && !options.worker)
      return new Store(direct<StoreCalls, StoreStreams>(storeCalls(), {}), () => {});
    if (!options.worker && typeof Worker === 'undefined')
      throw new BezelError(
        'there is no store of models without a browser; in Node the store is '
          + 'openDiskStore() of bezel/node',
        'unsupported',
      );
    const worker = options.worker
      ?? new Worker(new URL('./store_worker.js', import.meta.url), { type: 'module' });
    const client = new Client<StoreCalls, StoreStreams>(worker);
    worker.addEventListener(
      'error',
      (e) => client.die(new BezelError(
        `the store's worker ended${e.message ? `: ${e.message}` : ' before it could start'}`, 'io',
      )),
    );
    return new Store(client, () => {
      worker.terminate();
      client.die(new BezelError('this store was closed', 'cancelled'));
    });
  }

  private at(where: Where): ModelStore {
    return {
      list: () => this.link.call('list', { where }),
      resolve: (name) => this.link.call('resolve', { where, name }),
    };
  }

  list(): Promise<StoredModel[]> {
    return this.at({ kind: 'own' }).list();
  }

  resolve(name: string): Promise<ResolvedModel> {
    return this.at({ kind: 'own' }).resolve(name);
  }

  /** A picked folder, read in place: an Ollama store (~/.ollama/models or one above it), or GGUF
   *  files. */
  folder(handle: FileSystemDirectoryHandle): ModelStore {
    return this.at({ kind: 'folder', handle });
  }

  /** The models of a Bezel server. */
  server(url: string): ModelStore {
    return this.at({ kind: 'server', url });
  }

  /** An adapter as files for others: one GGUF, or PEFT's weights and configuration. */
  adapterFiles(name: string, form: AdapterForm): Promise<AdapterFile[]> {
    return this.link.call('adapterFiles', { name, form });
  }

  /** What a file is: a model, an adapter (PEFT's only with the text of its adapter_config.json),
   *  or a sentence. */
  inspect(file: File, config?: string): Promise<FileKind> {
    return this.link.call('inspect', {
      file, name: file.name, ...(config !== undefined && { config }),
    });
  }

  /** Get a model: resumed where an earlier attempt ended, verified, and by one tab at a time. */
  pull(from: PullFrom, { onProgress, signal, ...options }: PullOptions = {}): Promise<StoredModel> {
    return this.link.call('pull', { from, options }, { onProgress, signal });
  }

  /** A handle is read in place, and remembered; a File is copied. */
  importFile(
    from: File | FileSystemFileHandle, { onProgress, signal, ...options }: ImportOptions = {},
  ): Promise<StoredModel> {
    return this.link.call('importFile', { from, options }, { onProgress, signal });
  }

  private async mergeFrom(
    model: ModelSource, adapter: AdapterSource, store: NameResolver = this,
  ): Promise<MergeFrom> {
    return { model: await findModel(model, store), adapter: await findAdapter(adapter, this) };
  }

  /** A new model here: one with an adapter added into its weights. `store` knows the model by
   *  name, where this one does not. */
  async merge(
    model: ModelSource,
    adapter: AdapterSource,
    { onProgress, signal, store, ...options }: MergeOptions & { store?: NameResolver },
  ): Promise<StoredModel> {
    return this.link.call(
      'merge',
      { from: await this.mergeFrom(model, adapter, store), options },
      { onProgress, signal },
    );
  }

  /** The same as a file to be saved elsewhere. It is gone some time after this page is. */
  async mergeFile(
    model: ModelSource,
    adapter: AdapterSource,
    { onProgress, signal, store }: Omit<MergeOptions, 'name'> & { store?: NameResolver } = {},
  ): Promise<File> {
    return this.link.call(
      'mergeFile', await this.mergeFrom(model, adapter, store), { onProgress, signal },
    );
  }

  /** Delete a model; blobs that another model shares stay. A file that is read in place is only
   *  forgotten. */
  delete(name: string): Promise<{ freed: number }> {
    return this.link.call('delete', [name]);
  }

  /** Read all of a model and compare it with its digests; one that is damaged is not used until it
   *  is pulled again. A load does the same by itself, once per change of a file. */
  verify(name: string, { onProgress, signal }: VerifyOptions = {}): Promise<Verified> {
    return this.link.call('verify', { name }, { onProgress, signal });
  }

  /** Call it something else; a name that is taken is refused. */
  rename(name: string, as: string): Promise<StoredModel> {
    return this.link.call('rename', [name, as]);
  }

  /** Downloads that can be gone on with: pull the same again. */
  unfinished(): Promise<Unfinished[]> {
    return this.link.call('unfinished', []);
  }

  /** Throw away an unfinished download; false where a tab is at work on it. */
  discard(key: string): Promise<boolean> {
    return this.link.call('discard', [key]);
  }

  /** Throw away what nobody has needed for so many milliseconds (default: a week). */
  collect(olderThan?: number): Promise<void> {
    return this.link.call('collect', [olderThan]);
  }

  usage(): Promise<StoreUsage> {
    return this.link.call('usage', []);
  }

  /** Ask that models are kept when the disk runs low. */
  persist(): Promise<boolean> {
    return requestPersistence();
  }

  /** Remember a picked folder: an Ollama store, or GGUF files. */
  addFolder(handle: FileSystemDirectoryHandle): Promise<void> {
    return this.link.call('addFolder', [handle]);
  }

  /** Folders remembered; requestAccess may be needed before they can be read. */
  folders(): Promise<FileSystemDirectoryHandle[]> {
    return this.link.call('picked', []);
  }

  forgetFolder(handle: FileSystemDirectoryHandle): Promise<void> {
    return this.link.call('forgetFolder', [handle]);
  }

  /** The handle of a model that is read in place, for requestAccess. */
  handleOf(name: string): Promise<FileSystemFileHandle | undefined> {
    return this.link.call('handleOf', [name]);
  }

  /** Call back when any tab has changed what is in the store; stop with the returned function. */
  onChange(changed: () => void): () => void {
    return onStoreChange(changed);
  }

  /** Ends downloads under way in this tab; they can be gone on with. */
  close(): void {
    this.end();
  }
}

export const openStore = (options?: OpenStoreOptions): Store => Store.open(options);
