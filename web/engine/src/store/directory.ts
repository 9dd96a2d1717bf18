// directory - a Tree over a FileSystemDirectoryHandle: the origin's private files, or a folder that
// a person picked. Handles have no way up, so nothing outside the folder can be reached.

import { BezelError } from '../engine/wasm.js';
import type { Tree, TreeFile } from './ollama_store.js';
import { isError } from './platform.js';
import { fileOf, type SourceRef } from './source_ref.js';

/** A folder below another; undefined where it, or one on the way, is not there. */
export async function folderAt(
  root: FileSystemDirectoryHandle, path: readonly string[],
): Promise<FileSystemDirectoryHandle | undefined> {
  let at = root;
  try {
    for (const name of path) at = await at.getDirectoryHandle(name);
    return at;
  } catch (e) {
    return absent(e);
  }
}

/** Not there, there as something else, or no name that could be there: all the same to who looks
 *  for it. */
function absent(e: unknown): undefined {
  if (isError(e, 'NotFoundError') || isError(e, 'TypeMismatchError') || e instanceof TypeError)
    return undefined;
  if (isError(e, 'NotAllowedError'))
    throw new BezelError(
      'this page may not read the folder; the browser must be asked again', 'io', e,
    );
  throw e;
}

/** A file that is written while we read it (a journal) cannot be read; the next moment it can. */
async function textOf(handle: FileSystemFileHandle): Promise<string> {
  for (let i = 0; ; i++) {
    try {
      return await (await fileOf(handle)).text();
    } catch (e) {
      if (!isError(e, 'NotReadableError') || i === 9) throw e;
    }
  }
}

export class DirectoryTree implements Tree {
  /** `refer` says how the worker that loads a model finds the file. */
  constructor(
    readonly place: string,
    readonly root: FileSystemDirectoryHandle,
    private readonly refer: (path: readonly string[], handle: FileSystemFileHandle) => SourceRef,
  ) {}

  async names(folder: readonly string[], kind: 'folder' | 'file'): Promise<string[]> {
    const at = await folderAt(this.root, folder);
    if (!at) return [];
    const names: string[] = [];
    const wanted = kind === 'file' ? 'file' : 'directory';
    try {
      for await (const entry of (at as unknown as { values(): AsyncIterable<FileSystemHandle> })
        .values())
        if (entry.kind === wanted) names.push(entry.name);
    } catch (e) {
      absent(e); // deleted while we looked
      return [];
    }
    return names;
  }

  async file(path: readonly string[]): Promise<TreeFile | undefined> {
    const folder = await folderAt(this.root, path.slice(0, -1));
    if (!folder) return undefined;
    const handle = await folder.getFileHandle(path.at(-1) ?? '').catch(absent);
    if (!handle) return undefined;
    const file = await fileOf(handle);
    const text = async (max: number): Promise<string> => {
      if (file.size > max)
        throw new BezelError(
          `${handle.name} has ${file.size} bytes, more than any text of a store`, 'format',
        );
      return textOf(handle);
    };
    return { size: file.size, modified: file.lastModified, ref: this.refer(path, handle), text };
  }
}
