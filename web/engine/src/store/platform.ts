// platform - the parts of the File System API that TypeScript's library does not describe, and
// bytes for people.

/** FileSystemSyncAccessHandle, which only workers have. */
export interface SyncFile {
  read(into: Uint8Array, options?: { at?: number }): number;
  write(bytes: Uint8Array, options?: { at?: number }): number;
  truncate(size: number): void;
  getSize(): number;
  flush(): void;
  close(): void;
}

export interface OpfsFileHandle extends FileSystemFileHandle {
  createSyncAccessHandle?(options?: { mode: 'read-only' }): Promise<SyncFile>;
  move?(folder: FileSystemDirectoryHandle, name: string): Promise<void>;
}

/** Handles that a person picked are readable only while the browser allows it. */
export interface AskableHandle extends FileSystemHandle {
  queryPermission?(wish: { mode: 'read' }): Promise<PermissionState>;
  requestPermission?(wish: { mode: 'read' }): Promise<PermissionState>;
}

/** A failure of the browser's, by its name. */
export const isError = (e: unknown, name: string): boolean =>
  e instanceof DOMException && e.name === name;

/** 3.2 GB */
export function bytesText(n: number): string {
  const units = ['bytes', 'kB', 'MB', 'GB', 'TB'];
  let i = 0;
  for (; n >= 999.5 && i < units.length - 1; i++) n /= 1000;
  return `${i === 0 || n >= 99.5 ? Math.round(n) : n.toFixed(1)} ${units[i]}`;
}
