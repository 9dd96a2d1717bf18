// merge_to - where a merged model goes: a stream, the handle of a file, in Node a path. And the
// loop that fills it.
//
// The client's half: pieces are asked for one ahead of the one that is being written, so whoever
// takes them slowly holds the merge back.

import type { FileHandle } from 'node:fs/promises';

import { BezelError } from '../api/errors.js';
import type { MergeFrom, MergeProgress } from './merge.js';
import { nodeFiles } from '../load/node_files.js';
import type { Link, Spec } from '../engine/rpc.js';

/** A stream, a file that was picked to be written, or in Node a path. On failure nothing is left
 *  there but what was there before; of a stream, it is aborted. */
export type MergeTarget = WritableStream<Uint8Array> | FileSystemFileHandle | string;

export interface MergeOptions {
  to: MergeTarget;
  onProgress?: (progress: MergeProgress) => void;
  signal?: AbortSignal;
}

export interface MergeResult {
  /** Bytes of the new file. */
  bytes: number;
  /** Tensors that the adapter changed. */
  changed: number;
}

export interface MergeCalls {
  mergeOpen: Spec<MergeFrom, { size: number; changed: number }>;
  /** The next piece of the new file; none when it is whole. */
  mergeNext: Spec<undefined, Uint8Array | undefined>;
  mergeClose: Spec<undefined, void>;
}

export interface Sink {
  write(bytes: Uint8Array): Promise<void>;
  /** All is there. */
  close(): Promise<void>;
  /** Nothing of it is to stay. */
  abort(why?: unknown): Promise<void>;
}

export interface FileSink extends Sink {
  /** For pieces that are gone when the call returns. */
  writeNow(bytes: Uint8Array): void;
}

/** What the system says, in the native tool's words. */
function writeError(path: string, written: number, e: unknown): BezelError {
  if (e instanceof BezelError) return e;
  const { code, message } = e as NodeJS.ErrnoException;
  if (code === 'ENOSPC' || code === 'EDQUOT')
    return new BezelError(`${path}: the disk is full after ${written} bytes`, 'io', e);
  if (code === 'EFBIG')
    return new BezelError(
      `${path}: a file of more than ${written} bytes is not allowed here`, 'io', e,
    );
  if (code === 'ENOENT' || code === 'ENOTDIR')
    return new BezelError(`${path}: its directory does not exist`, 'not-found', e);
  if (code === 'EACCES' || code === 'EPERM' || code === 'EROFS')
    return new BezelError(`${path}: no permission to write here`, 'io', e);
  return new BezelError(`${path}: cannot write: ${message}`, 'io', e);
}

/** A new file beside `path`. 'wx' follows no link and opens nothing that is there already: a
 *  PATH.part may be another run's, or was put there so that we overwrite what it leads to. It is
 *  left alone, and the next name is tried. */
async function openPart(path: string): Promise<{ part: string; file: FileHandle }> {
  for (let i = 1; ; i++) {
    const part = i === 1 ? `${path}.part` : `${path}.${i}.part`;
    try {
      return { part, file: await nodeFiles().promises.open(part, 'wx') };
    } catch (e) {
      if ((e as NodeJS.ErrnoException).code !== 'EEXIST') throw e;
      if (i >= 99)
        throw new BezelError(
          `${path}: too many unfinished files beside it; delete ${path}.*.part`, 'io', e,
        );
    }
  }
}

/** A file by its path: PATH.part until it is whole. */
export async function fileSink(path: string): Promise<FileSink> {
  const fs = nodeFiles();
  const isThere = fs.statSync(path, { throwIfNoEntry: false });
  if (isThere && !isThere.isFile()) throw new BezelError(`${path}: exists and is not a file`, 'io');
  let written = 0;
  const saying = async <T>(work: () => Promise<T>): Promise<T> => {
    try {
      return await work();
    } catch (e) {
      throw writeError(path, written, e);
    }
  };
  const { part, file } = await saying(() => openPart(path));
  return {
    write: (bytes) => saying(async () => {
      for (let at = 0; at < bytes.length;) {
        const { bytesWritten } = await file.write(bytes, at);
        at += bytesWritten;
        written += bytesWritten;
      }
    }),
    writeNow(bytes) {
      try {
        for (let at = 0; at < bytes.length;) {
          const n = fs.writeSync(file.fd, bytes, at);
          at += n;
          written += n;
        }
      } catch (e) {
        throw writeError(path, written, e);
      }
    },
    close: () => saying(async () => {
      await file.sync();
      await file.close();
      await fs.promises.rename(part, path);
    }),
    abort: async () => {
      await file.close().catch(() => {}); // where the rename failed it is closed already
      await fs.promises.rm(part, { force: true });
    },
  };
}

/** A file by its path, whole or not at all. */
export async function fillFile(
  path: string, fill: (file: FileSink) => Promise<void>,
): Promise<void> {
  const sink = await fileSink(path);
  try {
    await fill(sink);
    await sink.close();
  } catch (e) {
    await sink.abort().catch(() => {}); // what went wrong first is what is told
    throw e;
  }
}

export const writeFile = (path: string, bytes: Uint8Array): Promise<void> =>
  fillFile(path, (file) => file.write(bytes));

function openSink(to: MergeTarget): Promise<Sink> {
  if (typeof to === 'string') return fileSink(to);
  if ('createWritable' in to) return to.createWritable().then(openSink);
  const writer = to.getWriter();
  return Promise.resolve({
    write: (bytes) => writer.write(bytes), close: () => writer.close(),
    abort: (why) => writer.abort(why),
  });
}

/** Every piece into the sink; what it held in case of a failure is gone. */
export async function drain(
  sink: Sink,
  pieces: AsyncIterable<Uint8Array>,
  total: number,
  onProgress: ((p: MergeProgress) => void) | undefined,
): Promise<void> {
  let loaded = 0;
  try {
    onProgress?.({ loaded, total });
    for await (const piece of pieces) {
      await sink.write(piece);
      onProgress?.({ loaded: (loaded += piece.length), total });
    }
    await sink.close();
  } catch (e) {
    await sink.abort(e).catch(() => {}); // what went wrong first is what is told
    throw e;
  }
}

export async function mergeTo(
  link: Link<MergeCalls, Record<never, never>>,
  from: MergeFrom,
  { to, onProgress, signal }: MergeOptions,
): Promise<MergeResult> {
  const options = { signal };
  async function* pieces(): AsyncGenerator<Uint8Array, void, void> {
    const ask = (): Promise<Uint8Array | undefined> => {
      const coming = link.call('mergeNext', undefined, options);
      coming.catch(() => {}); // heard when its turn comes
      return coming;
    };
    let coming = ask();
    for (let piece = await coming; piece; piece = await coming) {
      coming = ask();
      yield piece;
    }
  }
  try {
    const { size, changed } = await link.call('mergeOpen', from, options);
    await drain(await openSink(to), pieces(), size, onProgress);
    return { bytes: size, changed };
  } finally {
    // a worker that ended has nothing open
    await link.call('mergeClose', undefined).catch(() => {});
  }
}
