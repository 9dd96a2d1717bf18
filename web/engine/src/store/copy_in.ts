// copy_in - bytes that are here, or are being made, on their way into the store.

import type { Core } from '../engine/wasm.js';
import { Sha256 } from './digest.js';
import { placeBlob, type BlobFolders, type Downloaded } from './download.js';
import { alone, writeName } from './locks.js';
import { Reporter } from './news.js';
import type { Watch } from './opfs_types.js';
import { PartialFile } from './partial.js';
import { isError } from './platform.js';
import { needRoom, noRoom } from './room.js';

/** What comes in: its name for a person, its bytes, and what is done with them. */
export interface Incoming {
  label: string;
  total: number;
  pieces: AsyncIterable<Uint8Array>;
  phase: 'copy' | 'merge';
}

/** Bytes into a file of this key, as far as there is room and nobody says stop; else nothing is
 *  left of it. */
export async function copyIn(
  partial: FileSystemDirectoryHandle,
  key: string,
  { label, total, pieces, phase }: Incoming,
  { onProgress, signal }: Watch,
  hash?: Sha256,
): Promise<PartialFile> {
  await needRoom(label, total);
  const part = await PartialFile.open(partial, key);
  const reporter = new Reporter(key, onProgress);
  try {
    for await (const piece of pieces) {
      signal?.throwIfAborted();
      part.append(piece);
      hash?.update(piece);
      reporter.report({ phase, loaded: part.bytes, total });
    }
    return part;
  } catch (e) {
    await part.discard();
    throw isError(e, 'QuotaExceededError') ? await noRoom(label, total, e) : e;
  } finally {
    reporter.close();
  }
}

/** The same as a blob. */
export function copyBlob(
  core: Core, folders: BlobFolders, incoming: Incoming, watch: Watch,
): Promise<Downloaded> {
  const key = `import-${crypto.randomUUID()}`;
  return alone(writeName(key), async () => {
    const hash = new Sha256(core);
    let digest = '';
    let part: PartialFile;
    try {
      part = await copyIn(folders.partial, key, incoming, watch, hash);
    } finally {
      digest = hash.end();
    }
    return placeBlob(folders, part, digest);
  });
}
