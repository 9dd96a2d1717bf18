// verified - whether the blobs of this browser's store hold what their names, their sha256, say.
// What was found is remembered together with the file's size and date, so that each is read once
// per change of its file. A disk that changes bytes behind the file system's back is found only by
// reading again, which store.verify does on request.

import type { Source } from '../load/source.js';
import { BezelError, type Core } from '../engine/wasm.js';
import { Sha256 } from './digest.js';
import { blobRecords } from './handles.js';
import { tellChanged } from './news.js';
import { isError } from './platform.js';
import type { SourceRef } from './source_ref.js';

const PIECE = 4 << 20;

export interface ReadOptions {
  signal?: AbortSignal | undefined;
  onProgress?: ((loaded: number, total: number) => void) | undefined;
}

/** sha256 of all of a source, in hex. */
export async function digestOf(
  core: Core, source: Source, { signal, onProgress }: ReadOptions = {},
): Promise<string> {
  const hash = new Sha256(core), piece = new Uint8Array(Math.min(PIECE, source.size));
  let digest = '';
  try {
    for (let at = 0; at < source.size; at += PIECE) {
      signal?.throwIfAborted();
      const part = piece.subarray(0, Math.min(PIECE, source.size - at));
      await source.readAsync(at, part);
      hash.update(part);
      onProgress?.(at + part.length, source.size);
      if (at % (16 * PIECE) === 0) await new Promise((done) => setTimeout(done)); // let messages in
    }
  } finally {
    digest = hash.end();
  }
  return digest;
}

interface FileState {
  size: number;
  modified: number;
}

async function stateOf(
  blobs: FileSystemDirectoryHandle, blob: string,
): Promise<FileState | undefined> {
  try {
    const { size, lastModified } = await (await blobs.getFileHandle(blob)).getFile();
    return { size, modified: lastModified };
  } catch (e) {
    if (isError(e, 'NotFoundError')) return undefined;
    throw e;
  }
}

/** What is known of a blob as it is now; undefined: nothing, or it is not there. */
export async function knownState(
  blobs: FileSystemDirectoryHandle, blob: string,
): Promise<'intact' | 'damaged' | undefined> {
  const [now, record] = [await stateOf(blobs, blob), await blobRecords.get(blob)];
  if (!now || !record || record.size !== now.size || record.modified !== now.modified)
    return undefined;
  return record.intact ? 'intact' : 'damaged';
}

export async function remember(
  blobs: FileSystemDirectoryHandle, blob: string, intact: boolean,
): Promise<void> {
  const now = await stateOf(blobs, blob);
  if (now) await blobRecords.put({ key: blob, ...now, intact });
}

/** Names of blobs that were found damaged and have not changed since. */
export async function damagedBlobs(blobs: FileSystemDirectoryHandle): Promise<Set<string>> {
  const names = new Set<string>();
  for (const { key, intact } of await blobRecords.all())
    if (!intact && (await knownState(blobs, key)) === 'damaged') names.add(key);
  return names;
}

/** Known, or found out by reading all of it. */
export async function isIntact(
  core: Core, blobs: FileSystemDirectoryHandle, blob: string, source: Source,
  options: ReadOptions = {},
): Promise<boolean> {
  const known = await knownState(blobs, blob);
  if (known) return known === 'intact';
  const intact = `sha256-${await digestOf(core, source, options)}` === blob;
  await remember(blobs, blob, intact);
  if (!intact) tellChanged(); // the list says so from now on
  return intact;
}

/** Before a model is loaded: a blob of the browser's store that is not what it was is not used. */
export async function needIntact(
  core: Core, ref: SourceRef, source: Source, label: string, options: ReadOptions = {},
): Promise<void> {
  const [, folder, blob] =
    (ref.kind === 'opfs' && /^(.*\/blobs)\/(sha256-[0-9a-f]{64})$/.exec(ref.path)) || [];
  if (folder === undefined || blob === undefined) return;
  let blobs = await navigator.storage.getDirectory();
  for (const name of folder.split('/')) blobs = await blobs.getDirectoryHandle(name);
  if (!(await isIntact(core, blobs, blob, source, options)))
    throw new BezelError(
      `${label} is damaged in this browser's storage: its bytes are not those that were `
        + 'stored; pull it again',
      'format',
    );
}
