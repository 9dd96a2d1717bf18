// pool_files - the files of SQLite's access-handle pool as they lie on OPFS: which of them is the
// history, and how one is taken out of the pool whole. The pool clears a file whose head it cannot
// read; what such a file holds is saved first.
//
// Each file begins with a head of 4096 bytes: 512 of a path, flags, and a digest of both.

import type { Sqlite3Static } from '@sqlite.org/sqlite-wasm';
import { newId } from '../lib/id';

export const DIRECTORY = 'bezel-app/history'; // as installOpfsSAHPoolVfs is told
const OPAQUE = '.opaque'; // the pool's own name for its folder
const HEAD = 4096;
const PATH = 512;
const KEEP = 3; // damaged files that are kept, the newest ones

const ASIDE = 'bezel-app/damaged';
const PENDING = 'pending-'; // the name of a file whose conversations are not yet in a history
const SETTLED = 'history-';

/** What workers have and TypeScript's library for pages does not describe. */
type Movable = FileSystemFileHandle & {
  move?(folder: FileSystemDirectoryHandle, name: string): Promise<void>;
  createSyncAccessHandle(): Promise<{
    truncate(size: number): void;
    write(bytes: Uint8Array, options: { at: number }): number;
    flush(): void;
    close(): void;
  }>;
};

async function folderAt(path: string): Promise<FileSystemDirectoryHandle> {
  let at = await navigator.storage.getDirectory();
  for (const name of path.split('/')) at = await at.getDirectoryHandle(name, { create: true });
  return at;
}

/** The path in a pool file's head; null where the head is damaged. */
function pathOf({ capi }: Sqlite3Static, head: Uint8Array): string | null {
  if (head.length < HEAD) return ''; // made, and not yet written
  const view = new DataView(head.buffer, head.byteOffset), flags = view.getUint32(PATH);
  const digest = [0, 0];
  if (flags & capi.SQLITE_OPEN_MEMORY) { // the pool's mark for heads with a digest
    let [a, b] = [3735928559, 1103547991];
    for (const v of head.subarray(0, PATH + 4)) {
      a = Math.imul(a ^ v, 2654435761);
      b = Math.imul(b ^ v, 104729);
    }
    digest.splice(0, 2, a >>> 0, b >>> 0);
  }
  if (digest.some((n, i) => n !== view.getUint32(PATH + 4 + 4 * i, true))) return null;
  return new TextDecoder().decode(head.subarray(0, head.indexOf(0)));
}

/** With both arguments: WebKit knows no other form. Where files cannot be moved they are copied;
 *  what could not be read stays where it is. */
async function move(
  file: Movable, from: FileSystemDirectoryHandle, to: FileSystemDirectoryHandle, name: string,
): Promise<void> {
  if (file.move) return file.move(to, name);
  const old = file.name, bytes = new Uint8Array(await (await file.getFile()).arrayBuffer());
  const copy =
    await ((await to.getFileHandle(name, { create: true })) as Movable).createSyncAccessHandle();
  try {
    copy.truncate(0);
    if (copy.write(bytes, { at: 0 }) < bytes.length)
      throw new DOMException('There is no room left.', 'QuotaExceededError');
    copy.flush();
  } finally {
    copy.close();
  }
  await from.removeEntry(old);
}

async function filesOf(folder: FileSystemDirectoryHandle): Promise<Movable[]> {
  const files: Movable[] = [];
  for await (const entry of folder.values())
    if (entry.kind === 'file') files.push(entry as Movable);
  return files;
}

/** Set aside what the pool would clear and, if wanted, the file of this path. The pool must not
 *  have it open. */
export async function takeOut(sqlite3: Sqlite3Static, path?: string): Promise<void> {
  const pool = await folderAt(`${DIRECTORY}/${OPAQUE}`), aside = await folderAt(ASIDE);
  for (const handle of await filesOf(pool)) {
    const file = await handle.getFile();
    const found = pathOf(sqlite3, new Uint8Array(await file.slice(0, HEAD).arrayBuffer()));
    // A head of zeros, as a power cut leaves it, reads like the head of a file that is free; but a
    // free one is empty.
    if (found ? found !== path : file.size <= HEAD) continue;
    await move(
      handle,
      pool,
      aside,
      `${PENDING}${new Date().toISOString().replaceAll(':', '-')}-${newId().slice(0, 4)}`,
    );
  }
}

export interface Aside {
  /** What files held that were set aside and not yet read into a history. */
  files: Uint8Array[];
  /** They have been. */
  settle(): Promise<void>;
}

/** Also those of a visit that ended before their conversations were safe. */
export async function setAside(): Promise<Aside> {
  const folder = await folderAt(ASIDE);
  const pending = (await filesOf(folder)).filter((f) => f.name.startsWith(PENDING));
  const read = async (file: Movable) =>
    new Uint8Array(await (await file.getFile()).arrayBuffer()).slice(HEAD);
  const files: Uint8Array[] = [];
  // of a dying disk nothing is read
  for (const file of pending) files.push(await read(file).catch(() => new Uint8Array(0)));
  const settle = async () => {
    for (const file of pending)
      await move(file, folder, folder, `${SETTLED}${file.name.slice(PENDING.length)}`);
    const settled =
      (await filesOf(folder)).map((f) => f.name).filter((name) => name.startsWith(SETTLED));
    for (const old of settled.sort().slice(0, -KEEP)) await folder.removeEntry(old);
  };
  return { files, settle };
}
