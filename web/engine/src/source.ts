// source - where a model's bytes come from: a file in Node, a Blob or File in a browser's worker, memory.
//
// The core reads synchronously and in pieces, so that no file passes through memory as a whole. In a
// browser only a worker can do that (FileReaderSync); pages hand their File to the worker.

/** Bytes that the core can read. */
export interface Source {
  readonly name: string;
  readonly size: number;
  /** Fill dst from offset on, all of it, or throw. */
  read(offset: number, dst: Uint8Array): void;
  /** The same without holding up the thread. */
  readAsync(offset: number, dst: Uint8Array): Promise<void>;
  close(): void;
}

class FileReaderSyncLike {
  declare readAsArrayBuffer: (blob: Blob) => ArrayBuffer;
}

function tooShort(name: string): Error {
  return new Error(`${name} is shorter than it was`);
}

class MemorySource implements Source {
  constructor(readonly name: string, private readonly data: Uint8Array) {}

  get size(): number {
    return this.data.length;
  }

  read(offset: number, dst: Uint8Array): void {
    if (offset + dst.length > this.data.length) throw tooShort(this.name);
    dst.set(this.data.subarray(offset, offset + dst.length));
  }

  async readAsync(offset: number, dst: Uint8Array): Promise<void> {
    this.read(offset, dst);
  }

  close(): void {}
}

class BlobSource implements Source {
  readonly size: number;
  private readonly reader: FileReaderSyncLike | undefined;

  constructor(readonly name: string, private readonly blob: Blob) {
    this.size = blob.size;
    const make = (globalThis as { FileReaderSync?: typeof FileReaderSyncLike }).FileReaderSync;
    this.reader = make && new make();
  }

  read(offset: number, dst: Uint8Array): void {
    if (!this.reader) throw new Error('files can be read only in a worker');
    dst.set(new Uint8Array(this.reader.readAsArrayBuffer(this.blob.slice(offset, offset + dst.length))));
  }

  async readAsync(offset: number, dst: Uint8Array): Promise<void> {
    dst.set(new Uint8Array(await this.blob.slice(offset, offset + dst.length).arrayBuffer()));
  }

  close(): void {}
}

export function memorySource(name: string, data: Uint8Array): Source {
  return new MemorySource(name, data);
}

export function blobSource(blob: Blob, name = blob instanceof File ? blob.name : 'blob'): Source {
  return new BlobSource(name, blob);
}

/** A file by its path, in Node. */
export async function fileSource(path: string): Promise<Source> {
  const fs = await import('node:fs');
  const handle = fs.openSync(path, 'r');
  const size = fs.fstatSync(handle).size;
  const read = (offset: number, dst: Uint8Array): void => {
    for (let at = 0; at < dst.length;) {
      const n = fs.readSync(handle, dst, at, dst.length - at, offset + at);
      if (n === 0) throw tooShort(path);
      at += n;
    }
  };
  const readAsync = async (offset: number, dst: Uint8Array): Promise<void> => {
    for (let at = 0; at < dst.length;) {
      const n = await new Promise<number>((done, failed) => fs.read(handle, dst, at, dst.length - at, offset + at, (e, got) => (e ? failed(e) : done(got))));
      if (n === 0) throw tooShort(path);
      at += n;
    }
  };
  return { name: path, size, read, readAsync, close: () => fs.closeSync(handle) };
}
