// saved_states - what goes on after a reload, as a file each on OPFS: what a model had read of a conversation (a cache:
// without one it is simply read again), and a training that is under way.

const isAbsent = (e: unknown) => e instanceof DOMException && e.name === 'NotFoundError';

/** What workers have and TypeScript's library for pages does not describe. */
interface SyncFile {
  truncate(size: number): void;
  write(bytes: Uint8Array, options: { at: number }): number;
  flush(): void;
  close(): void;
}
type WorkerFile = FileSystemFileHandle & { createSyncAccessHandle(): Promise<SyncFile>; move(name: string): Promise<void> };

export class SavedStates {
  constructor(private readonly place: 'states' | 'training') {}

  private async folder(): Promise<FileSystemDirectoryHandle> {
    let at = await navigator.storage.getDirectory();
    for (const name of ['bezel-app', this.place]) at = await at.getDirectoryHandle(name, { create: true });
    return at;
  }

  /** Written under another name first: a page that goes away leaves the old state, or none, never half of one. */
  async save(id: string, state: Uint8Array): Promise<void> {
    const folder = await this.folder();
    const file = (await folder.getFileHandle(`${id}.part`, { create: true })) as WorkerFile;
    const handle = await file.createSyncAccessHandle();
    try {
      handle.truncate(0);
      handle.write(state, { at: 0 });
      handle.flush();
    } finally {
      handle.close();
    }
    await file.move(`${id}.kv`);
  }

  async load(id: string): Promise<Uint8Array | null> {
    const folder = await this.folder();
    try {
      const file = await (await folder.getFileHandle(`${id}.kv`)).getFile();
      return new Uint8Array(await file.arrayBuffer());
    } catch (e) {
      if (isAbsent(e)) return null;
      throw e;
    }
  }

  async remove(id: string): Promise<void> {
    const folder = await this.folder();
    for (const name of [`${id}.kv`, `${id}.part`]) {
      try {
        await folder.removeEntry(name);
      } catch (e) {
        if (!isAbsent(e)) throw e;
      }
    }
  }

  async clear(): Promise<void> {
    const folder = await this.folder();
    for await (const name of folder.keys()) await folder.removeEntry(name);
  }
}
