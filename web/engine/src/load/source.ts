// source - where a model's bytes come from: a file in Node, a Blob or File in a browser's worker,
// memory, or anything that gives ranges of bytes only after a while.
//
// The core reads synchronously and in pieces, so that no file passes through memory as a whole. In
// a browser only a worker can do that (FileReaderSync); pages hand their File to the worker. Bytes
// that come later (a network's) are read by trying: `read` throws NeedBytes, openWithFetches gets
// them and tries again.

import { nodeFiles, readError } from './node_files.js';
import { BezelError } from '../engine/wasm.js';

/** Bytes that the core can read. */
export interface Source {
  readonly name: string;
  readonly size: number;
  /** Fill dst from offset on, all of it, or throw. */
  read(offset: number, dst: Uint8Array): void;
  /** The same without holding up the thread. */
  readAsync(offset: number, dst: Uint8Array): Promise<void>;
  /** It is the system that writes into dst, which must stay where it is until readAsync has
   *  settled, even when nobody waits for it any more. Absent: it is a script, to which memory that
   *  has gone is empty. */
  readonly direct?: boolean;
  /** A few kilobytes anywhere in it are read at once, so whoever needs them now and then need not
   *  have them all first. Absent: each read may be a request. */
  readonly random?: boolean;
  /** Read what a header takes, while something else holds up the thread: read() has it at hand
   *  then, until the first readAsync. A failure is read()'s to tell. Absent: there is nothing to be
   *  gained. */
  readHead?(): Promise<void>;
  /** Throws where what was read may belong to two versions of the file. Absent: reading says so. */
  check?(): void;
  close(): void;
}

class FileReaderSyncLike {
  declare readAsArrayBuffer: (blob: Blob) => ArrayBuffer;
}

function tooShort(name: string): Error {
  return new Error(`${name} is shorter than it was`);
}

class MemorySource implements Source {
  readonly random = true;

  constructor(readonly name: string, private readonly data: Uint8Array) {}

  get size(): number {
    return this.data.length;
  }

  read(offset: number, dst: Uint8Array): void {
    if (offset + dst.length > this.data.length) throw tooShort(this.name);
    dst.set(this.data.subarray(offset, offset + dst.length));
  }

  async readAsync(offset: number, dst: Uint8Array): Promise<void> {
    this.read(offset, dst);
  }

  close(): void {}
}

class BlobSource implements Source {
  readonly size: number;
  readonly random = true;

  constructor(
    readonly name: string, private readonly blob: Blob, private readonly reader: FileReaderSyncLike,
  ) {
    this.size = blob.size;
  }

  private put(bytes: ArrayBuffer, dst: Uint8Array): void {
    if (bytes.byteLength !== dst.length) throw tooShort(this.name);
    dst.set(new Uint8Array(bytes));
  }

  read(offset: number, dst: Uint8Array): void {
    this.put(this.reader.readAsArrayBuffer(this.blob.slice(offset, offset + dst.length)), dst);
  }

  async readAsync(offset: number, dst: Uint8Array): Promise<void> {
    this.put(await this.blob.slice(offset, offset + dst.length).arrayBuffer(), dst);
  }

  close(): void {}
}

/** Thrown by `read` where bytes must be fetched first. */
export class NeedBytes extends Error {
  override readonly name = 'NeedBytes';
  constructor(readonly source: BlockSource, readonly block: number, readonly blocks: number) {
    super(`${source.name} has bytes that are not here yet`);
  }
}

/** Fill dst from offset on, some time later. */
export type FetchRange = (offset: number, dst: Uint8Array, signal?: AbortSignal) => Promise<void>;

const BLOCK = 64 << 10; // opening a model reads a few bytes of every tensor
// blocks fetched together, at most, while reads go on where the last one ended
const MAX_AHEAD = 64;
const MAX_BLOCKS = 4096; // kept
const AT_ONCE = 6; // requests

/** Bytes that come in ranges, later. Blocks that `read` had need of are kept for a while. */
export class BlockSource implements Source {
  private readonly blocks = new Map<number, Uint8Array>(); // least recently used first
  private ahead = 1;
  private next = 0; // the block after the last one fetched
  private wanted: Set<number> | undefined; // while guessing

  constructor(
    readonly name: string,
    readonly size: number,
    private readonly range: FetchRange,
    private readonly release: () => void = () => {},
  ) {}

  /** Bytes already at hand, so that they need not be fetched again; offset is a multiple of a
   *  block. */
  give(offset: number, bytes: Uint8Array): void {
    for (let at = 0; at < bytes.length; at += BLOCK) {
      const whole = Math.min(BLOCK, this.size - offset - at);
      if (bytes.length - at >= whole) this.keep((offset + at) / BLOCK, bytes.slice(at, at + whole));
    }
  }

  private keep(block: number, bytes: Uint8Array): void {
    this.blocks.delete(block);
    this.blocks.set(block, bytes);
    for (const old of this.blocks.keys()) {
      if (this.blocks.size <= MAX_BLOCKS) break;
      this.blocks.delete(old);
    }
  }

  read(offset: number, dst: Uint8Array): void {
    if (offset + dst.length > this.size) throw tooShort(this.name);
    const first = Math.floor(offset / BLOCK), last = Math.floor((offset + dst.length - 1) / BLOCK);
    if (this.wanted) dst.fill(0);
    for (let b = first; b <= last; b++) {
      if (this.blocks.has(b)) continue;
      if (!this.wanted) throw new NeedBytes(this, b, last - b + 1);
      this.wanted.add(b);
    }
    for (let b = first; b <= last; b++) {
      const bytes = this.blocks.get(b);
      if (!bytes) continue; // a guess
      this.keep(b, bytes);
      const from = Math.max(0, offset - b * BLOCK);
      const to = Math.min(bytes.length, offset + dst.length - b * BLOCK);
      dst.set(bytes.subarray(from, to), b * BLOCK + from - offset);
    }
  }

  /** Run `fn` with zeros for bytes that are not here; says which blocks it would have read. */
  guess(fn: () => void): Set<number> {
    const wanted = (this.wanted = new Set<number>());
    try {
      fn();
    } finally {
      this.wanted = undefined;
    }
    return wanted;
  }

  /** Fetch blocks that lie anywhere, several at a time. */
  async prefetch(blocks: Iterable<number>, signal?: AbortSignal): Promise<void> {
    const left = [...blocks].sort((a, b) => a - b);
    const work = async (): Promise<void> => {
      for (let b = left.shift(); b !== undefined; b = left.shift()) await this.fetch(b, 1, signal);
    };
    await Promise.all(Array.from({ length: AT_ONCE }, work));
  }

  async readAsync(offset: number, dst: Uint8Array, signal?: AbortSignal): Promise<void> {
    try {
      this.read(offset, dst);
    } catch (e) {
      if (!(e instanceof NeedBytes)) throw e;
      await this.range(offset, dst, signal);
    }
  }

  private async fetch(block: number, blocks: number, signal?: AbortSignal): Promise<void> {
    const bytes = new Uint8Array(Math.min(blocks * BLOCK, this.size - block * BLOCK));
    await this.range(block * BLOCK, bytes, signal);
    this.give(block * BLOCK, bytes);
  }

  /** Fetch what NeedBytes asked for, and more with every call that goes on from the last. */
  async fetchNeeded(block: number, blocks: number, signal?: AbortSignal): Promise<void> {
    this.ahead = block === this.next ? Math.min(MAX_AHEAD, 2 * this.ahead) : 1;
    const n = Math.min(MAX_BLOCKS, Math.max(blocks, this.ahead));
    await this.fetch(block, n, signal);
    this.next = block + n;
  }

  close(): void {
    this.blocks.clear();
    this.release();
  }
}

/** The wish for bytes behind an error, which the core may have wrapped. */
function needOf(e: unknown): NeedBytes | undefined {
  for (let at = e; at instanceof Error; at = at.cause) if (at instanceof NeedBytes) return at;
  return undefined;
}

/** Run `fn`, which reads sources synchronously, again and again until all it needs has been
 *  fetched. It must leave nothing behind when it throws. */
export async function openWithFetches<T>(
  fn: () => T | Promise<T>, signal?: AbortSignal,
): Promise<T> {
  const fetched = new Map<BlockSource, Set<number>>();
  for (;;) {
    signal?.throwIfAborted();
    try {
      return await fn();
    } catch (e) {
      const need = needOf(e);
      if (!need) throw e;
      const seen = fetched.get(need.source) ?? new Set<number>();
      if (seen.has(need.block))
        throw new BezelError(
          `${need.source.name} is read in more places at once than can be kept; `
            + 'put it into the store first',
          'limit',
        );
      fetched.set(need.source, seen.add(need.block));
      await need.source.fetchNeeded(need.block, need.blocks, signal);
    }
  }
}

export function memorySource(name: string, data: Uint8Array): Source {
  return new MemorySource(name, data);
}

export const isMemory = (source: Source): boolean => source instanceof MemorySource;

/** In a worker, reads are synchronous; elsewhere through NeedBytes. */
export function blobSource(blob: Blob, name = blob instanceof File ? blob.name : 'blob'): Source {
  const Reader = (globalThis as { FileReaderSync?: typeof FileReaderSyncLike }).FileReaderSync;
  if (Reader) return new BlobSource(name, blob, new Reader());
  return new BlockSource(name, blob.size, async (offset, dst) => {
    const bytes = await blob.slice(offset, offset + dst.length).arrayBuffer();
    if (bytes.byteLength !== dst.length) throw tooShort(name);
    dst.set(new Uint8Array(bytes));
  });
}

/** Its handle and size. What is no file is not opened: a pipe would wait for its writer. */
function openFile(fs: ReturnType<typeof nodeFiles>, path: string): [number, number] {
  try {
    const info = fs.statSync(path);
    if (info.isFile()) return [fs.openSync(path, 'r'), info.size];
    throw new BezelError(
      `${path}: is ${info.isDirectory() ? 'a directory, not a file' : 'not a regular file'}`, 'io',
    );
  } catch (e) {
    throw e instanceof BezelError ? e : readError(path, e);
  }
}

const HEAD = 24 << 20; // bytes: a header with 262,144 tokens and half a million merges fits

/** A file by its path, in Node. */
export async function fileSource(path: string): Promise<Source> {
  const fs = nodeFiles(), [handle, size] = openFile(fs, path);
  const version = (): string => {
    const { size: n, mtimeNs } = fs.fstatSync(handle, { bigint: true });
    return `${n} ${mtimeNs}`;
  };
  const opened = version();
  let head: Uint8Array | undefined; // the first bytes, while a header is read
  const read = (offset: number, dst: Uint8Array): void => {
    if (head && offset + dst.length <= head.length) {
      dst.set(head.subarray(offset, offset + dst.length));
      return;
    }
    for (let at = 0; at < dst.length;) {
      const n = fs.readSync(handle, dst, at, dst.length - at, offset + at);
      if (n === 0) throw tooShort(path);
      at += n;
    }
  };
  const fill = async (offset: number, dst: Uint8Array): Promise<void> => {
    for (let at = 0; at < dst.length;) {
      const n = await new Promise<number>((done, failed) => fs.read(
        handle, dst, at, dst.length - at, offset + at, (e, got) => (e ? failed(e) : done(got)),
      ));
      if (n === 0) throw tooShort(path);
      at += n;
    }
  };
  const readAsync = (offset: number, dst: Uint8Array): Promise<void> => {
    head = undefined;
    return fill(offset, dst);
  };
  const readHead = async (): Promise<void> => {
    const bytes = new Uint8Array(Math.min(HEAD, size));
    await fill(0, bytes).then(() => (head = bytes), () => {});
  };
  const check = (): void => {
    if (version() === opened) return;
    const what = 'was changed or became shorter while it was in use, or its drive went away';
    throw new BezelError(`${path}: ${what}`, 'io');
  };
  const close = (): void => {
    head = undefined;
    fs.closeSync(handle);
  };
  return { name: path, size, read, readAsync, direct: true, random: true, readHead, check, close };
}
