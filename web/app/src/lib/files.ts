// files - between the page and the person's disk and clipboard.

export function download(name: string, content: BlobPart, type = 'application/json'): void {
  const url = URL.createObjectURL(new Blob([content], { type }));
  const link = document.createElement('a');
  link.href = url;
  link.download = name;
  link.click();
  setTimeout(() => URL.revokeObjectURL(url), 10_000);
}

/** A file, and the way back to it at the next visit where the browser has one. */
export interface Picked {
  file: File;
  handle?: FileSystemFileHandle;
}

/** What a drop holds. Its items must all be asked for at once: after the event they are gone. */
export async function dropped({
  items, files,
}: DataTransfer): Promise<{ files: Picked[]; folders: FileSystemDirectoryHandle[] }> {
  const plain = [...files];
  const asked =
    [...items].filter((item) => item.kind === 'file').map((item) => item.getAsFileSystemHandle?.());
  const handles =
    (await Promise.all(asked)).filter((handle) => handle !== undefined && handle !== null);
  if (!handles.length) return { files: plain.map((file) => ({ file })), folders: [] };
  const isFile = (handle: FileSystemHandle): handle is FileSystemFileHandle =>
    handle.kind === 'file';
  return {
    files: await Promise.all(
      handles.filter(isFile).map(async (handle) => ({ file: await handle.getFile(), handle })),
    ),
    folders: handles.filter((handle) => !isFile(handle)) as FileSystemDirectoryHandle[],
  };
}

/** The files a person picks; none where the dialog was closed. */
export function pickFiles(accept: string, multiple = false): Promise<File[]> {
  return new Promise((resolve) => {
    const input = document.createElement('input');
    Object.assign(input, { type: 'file', accept, multiple });
    input.addEventListener('change', () => resolve([...(input.files ?? [])]));
    input.addEventListener('cancel', () => resolve([]));
    input.click();
  });
}

/** The same, with ways back to them where the browser has such. */
export async function pickKept(accept: string): Promise<Picked[]> {
  if (!window.showOpenFilePicker) return (await pickFiles(accept, true)).map((file) => ({ file }));
  try {
    const handles = await window.showOpenFilePicker({
      multiple: true, types: [{ accept: { 'application/octet-stream': accept.split(',') } }],
    });
    return await Promise.all(
      handles.map(async (handle) => ({ file: await handle.getFile(), handle })),
    );
  } catch (e) {
    if (e instanceof DOMException && e.name === 'AbortError') return []; // thought better of it
    throw e;
  }
}

/** Over plain HTTP from another machine browsers give a page no clipboard. */
export async function copyText(text: string): Promise<void> {
  const clipboard = navigator.clipboard as Clipboard | undefined;
  if (!clipboard)
    throw new Error(
      'The browser lets this page copy only over HTTPS or on localhost; select the text.',
    );
  await clipboard.writeText(text);
}
