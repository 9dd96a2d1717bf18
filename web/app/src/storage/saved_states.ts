// saved_states - what goes on after a reload, as a file each on OPFS: what a model had read of a
// conversation (a cache: without one it is simply read again), and a training that is under way. A
// browser that gives no such files (a private window, a port without access handles) keeps nothing,
// and says so by `false` and `null`.

const isAbsent = (e: unknown) => e instanceof DOMException && e.name === 'NotFoundError';

/** What workers have and TypeScript's library for pages does not describe. */
interface SyncFile {
  truncate(size: number): void;
  write(bytes: Uint8Array, options: { at: number }): number;
  flush(): void;
  close(): void;
}
type WorkerFile = FileSystemFileHandle & {
  createSyncAccessHandle?(): Promise<SyncFile>;
  move?(folder: FileSystemDirectoryHandle, name: string): Promise<void>;
};

const fileName = (id: string) => encodeURIComponent(id);

export class SavedStates {
  constructor(private readonly place: 'states' | 'training') {}

  /** null: this browser has no place for it. */
  private async folder(): Promise<FileSystemDirectoryHandle | null> {
    let at: FileSystemDirectoryHandle;
    try {
      at = await navigator.storage.getDirectory();
    } catch {
      return null; // refused, or not known here
    }
    for (const name of ['bezel-app', this.place])
      at = await at.getDirectoryHandle(name, { create: true });
    return at;
  }

  /** Written under another name first: a page that goes away leaves the old state, or none, never
   *  half of one. false: there is no place to keep it. */
  async save(id: string, state: Uint8Array): Promise<boolean> {
    const folder = await this.folder();
    if (!folder) return false;
    const file =
      (await folder.getFileHandle(`${fileName(id)}.part`, { create: true })) as WorkerFile;
    if (!file.createSyncAccessHandle || !file.move) return false;
    const handle = await file.createSyncAccessHandle();
    try {
      handle.truncate(0);
      for (let at = 0; at < state.length; ) {
        const n = handle.write(state.subarray(at), { at });
        if (n === 0) throw new DOMException('There is no room left.', 'QuotaExceededError');
        at += n;
      }
      handle.flush();
    } finally {
      handle.close();
    }
    await this.rename(folder, file, `${fileName(id)}.kv`);
    return true;
  }

  /** With both arguments: WebKit knows no other form. And not every browser moves onto a file
   *  that exists. */
  private async rename(
    folder: FileSystemDirectoryHandle, file: WorkerFile, name: string,
  ): Promise<void> {
    try {
      await file.move?.(folder, name);
    } catch (e) {
      if (isAbsent(e)) throw e;
      await this.drop(folder, name);
      await file.move?.(folder, name);
    }
  }

  async load(id: string): Promise<Uint8Array | null> {
    const folder = await this.folder();
    if (!folder) return null;
    try {
      const file = await (await folder.getFileHandle(`${fileName(id)}.kv`)).getFile();
      return new Uint8Array(await file.arrayBuffer());
    } catch (e) {
      if (isAbsent(e)) return null;
      throw e;
    }
  }

  private async drop(folder: FileSystemDirectoryHandle, name: string): Promise<void> {
    try {
      await folder.removeEntry(name);
    } catch (e) {
      if (!isAbsent(e)) throw e;
    }
  }

  async remove(id: string): Promise<void> {
    const folder = await this.folder();
    if (folder) for (const end of ['kv', 'part']) await this.drop(folder, `${fileName(id)}.${end}`);
  }

  async clear(): Promise<void> {
    const folder = await this.folder();
    if (folder) for await (const name of folder.keys()) await folder.removeEntry(name);
  }
}
