// source_ref - where bytes are, as plain data that can be posted to a worker, and how they are
// opened there.
//
// And the contract of every store of models: names in, references to bytes out. What a store is
// made of, this file refuses to know.

import type { StoreTexts } from '../engine/cpu_engine.js';
import { blobSource, fileSource, isMemory, memorySource, type Source } from '../load/source.js';
import { BezelError } from '../engine/wasm.js';
import type { Patience } from './net.js';
import { holdShared, keepName } from './locks.js';
import { isError, type OpfsFileHandle, type SyncFile } from './platform.js';
import { urlSource } from './url_source.js';

export type SourceRef =
  | { kind: 'file'; file: Blob; name?: string }
  | { kind: 'handle'; handle: FileSystemFileHandle }
  | { kind: 'opfs'; path: string } // below the origin's root
  | { kind: 'url'; url: string; size?: number; etag?: string }
  | { kind: 'path'; path: string } // Node
  | { kind: 'memory'; name: string; bytes: Uint8Array };

export interface OpenSourceOptions {
  signal?: AbortSignal;
  /** Read all of it now. The CPU backend reads every weight again for every token, which only
   *  memory and a file in Node are quick enough for. */
  inMemory?: boolean;
  /** Servers that give no ranges are asked for all of a file. Absent: that is an error, for
   *  those who want a look only. */
  whole?: boolean;
  /** How many of the bytes are in memory, of how many; 0: nobody knows. */
  onProgress?: (loaded: number, total: number) => void;
  /** How long a network is waited for. */
  patience?: Partial<Patience>;
  /** A blob of the browser's store must hold what its name says; this is what a person calls it. */
  intact?: string;
}

/** One model of a store, as a list shows it. */
export interface StoredModel {
  /** As people write it: gemma4:e2b. */
  name: string;
  kind: 'model' | 'adapter';
  /** Bytes of all its parts. */
  size: number;
  /** sha256 of the weights, in hex; '' where nobody has computed it. */
  digest: string;
  /** Milliseconds since 1970, where known. */
  modified?: number;
  /** What the store says of it: gemma4, 5.1B, Q4_K_M. */
  family?: string;
  parameters?: string;
  quantization?: string;
  /** Of an adapter: the model that it was made for, as whoever made it calls that. */
  base?: string;
  /** Read where the person keeps it, not copied. */
  inPlace?: boolean;
  /** It was read and is not what was stored; pulling it again replaces it. */
  damaged?: boolean;
}

/** Everything that loading needs. */
export interface ResolvedModel {
  name: string;
  kind: 'model' | 'adapter';
  /** Shards of one model; none where this is an adapter. */
  model: SourceRef[];
  /** LoRA adapters. For a PEFT one, store.config is the text of its adapter_config.json. */
  adapters: SourceRef[];
  projector?: SourceRef;
  store: StoreTexts;
  digest: string;
  size: number;
}

export interface ModelStore {
  list(): Promise<StoredModel[]>;
  /** Any form of name; a BezelError of kind 'not-found' where it is not there. */
  resolve(name: string): Promise<ResolvedModel>;
}

/** The file behind a handle, or a sentence on why not. */
export async function fileOf(handle: FileSystemFileHandle): Promise<File> {
  try {
    return await handle.getFile();
  } catch (e) {
    if (isError(e, 'NotFoundError'))
      throw new BezelError(`${handle.name} is no longer where it was`, 'not-found', e);
    if (isError(e, 'NotAllowedError'))
      throw new BezelError(
        `this page may not read ${handle.name}; the browser must be asked again`, 'io', e,
      );
    throw new BezelError(
      `cannot read ${handle.name}: ${e instanceof Error ? e.message : String(e)}`, 'io', e,
    );
  }
}

/** Many times quicker than reading a File, where a worker can have it: several readers at once, or
 *  (in browsers that know no modes) the first one only. */
async function syncSource(handle: OpfsFileHandle): Promise<Source | undefined> {
  let file: SyncFile;
  try {
    if (!handle.createSyncAccessHandle) return undefined;
    file = await handle.createSyncAccessHandle({ mode: 'read-only' });
  } catch (e) {
    if (isError(e, 'NoModificationAllowedError')) return undefined;
    throw e;
  }
  const read = (offset: number, dst: Uint8Array): void => {
    for (let at = 0; at < dst.length;) {
      const n = file.read(dst.subarray(at), { at: offset + at });
      if (n === 0) throw new Error(`${handle.name} is shorter than it was`);
      at += n;
    }
  };
  return {
    name: handle.name, size: file.getSize(), read,
    readAsync: async (offset, dst) => read(offset, dst), random: true, close: () => file.close(),
  };
}

/** A file below the origin's private root, which nobody deletes while it is open. */
async function openOpfs(path: string): Promise<Source> {
  const parts = path.split('/');
  const file = parts.pop() ?? '';
  const release = await holdShared(keepName(file));
  try {
    let at = await navigator.storage.getDirectory();
    for (const part of parts) at = await at.getDirectoryHandle(part);
    const handle = await at.getFileHandle(file);
    const source = (await syncSource(handle)) ?? blobSource(await fileOf(handle));
    const close = source.close.bind(source);
    source.close = () => (close(), void release());
    return source;
  } catch (e) {
    await release();
    if (isError(e, 'NotFoundError'))
      throw new BezelError(`${path} is not in this browser's storage`, 'not-found', e);
    throw e;
  }
}

async function openAny(ref: SourceRef, options: OpenSourceOptions): Promise<Source> {
  switch (ref.kind) {
    case 'file': return blobSource(ref.file, ref.name);
    case 'handle': return blobSource(await fileOf(ref.handle));
    case 'opfs': return openOpfs(ref.path);
    case 'url':
      return urlSource(ref.url, {
        size: ref.size, etag: ref.etag, signal: options.signal, patience: options.patience,
        whole: options.whole || options.inMemory, onProgress: options.onProgress,
      });
    case 'path': return fileSource(ref.path);
    case 'memory': return memorySource(ref.name, ref.bytes);
  }
}

const PIECE = 8 << 20;

/** The same bytes in memory, and nothing else of the source any more. */
export async function toMemory(
  source: Source, { signal, onProgress }: OpenSourceOptions,
): Promise<Source> {
  try {
    const bytes = new Uint8Array(source.size);
    for (let at = 0; at < bytes.length; at += PIECE) {
      signal?.throwIfAborted();
      await source.readAsync(at, bytes.subarray(at, at + PIECE));
      onProgress?.(Math.min(at + PIECE, bytes.length), bytes.length);
    }
    return memorySource(source.name, bytes);
  } finally {
    source.close();
  }
}

/** Open where the model lives: in the worker, or in Node. Around what reads it synchronously goes
 *  openWithFetches, since an address (and outside a worker a Blob) has its bytes only later. */
export async function openSource(ref: SourceRef, options: OpenSourceOptions = {}): Promise<Source> {
  options.signal?.throwIfAborted();
  const source = await openAny(ref, options);
  return options.inMemory && !isMemory(source) ? toMemory(source, options) : source;
}
