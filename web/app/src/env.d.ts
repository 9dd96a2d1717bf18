// What the build adds to modules.
declare module '*.gguf?url' {
  const url: string;
  export default url;
}

// Of the File System Access API, which not every browser has and TypeScript's library does not
// describe.
interface FileSystemHandle {
  queryPermission?(wish: { mode: 'read' }): Promise<PermissionState>;
}
interface FileSystemFileHandle {
  remove?(): Promise<void>;
}
interface DataTransferItem {
  getAsFileSystemHandle?(): Promise<FileSystemHandle | null>;
}
interface Window {
  showOpenFilePicker?(
    options: { multiple: boolean; types: { accept: Record<string, string[]> }[] },
  ): Promise<FileSystemFileHandle[]>;
  showSaveFilePicker?(options: {
    suggestedName: string; types: { description: string; accept: Record<string, string[]> }[];
  }): Promise<FileSystemFileHandle>;
  showDirectoryPicker?(options: { id: string; mode: 'read' }): Promise<FileSystemDirectoryHandle>;
}
