// partial - a file on its way into the store: bytes appended, and a journal of what is safely
// there.
//
//     partial/<key>           the bytes
//     partial/<key>.journal   JSON: where they come from, and how many of them were flushed
//
// After a crash only bytes that the journal counts are believed. A file gets its final name by a
// move, when it is whole. Needs a worker: only there can files be written in place.

import { BezelError } from '../engine/wasm.js';
import type { Sha256 } from './digest.js';
import { isError, type OpfsFileHandle, type SyncFile } from './platform.js';

const BUFFER = 1 << 20;
const CHECKPOINT = 32 << 20; // bytes, and
const SECOND = 1000; // milliseconds, between two of them
const JOURNAL = 4096; // padded, so that rewriting it needs no room on a full disk

export interface Journal {
  /** Flushed bytes of the file. */
  bytes: number;
  url?: string;
  version?: string;
  size?: number;
  /** What a person calls it. */
  label?: string;
}

export const journalName = (key: string): string => `${key}.journal`;

/** A file's text as a journal; undefined where it makes no sense. */
export function parseJournal(text: string): Journal | undefined {
  try {
    const { bytes, ...rest } = JSON.parse(text) as Partial<Journal>;
    return typeof bytes === 'number' && bytes >= 0 ? { bytes, ...rest } : undefined;
  } catch {
    return undefined; // it was cut off while it was written
  }
}

/** Open for writing. A worker that just ended may hold the file for a moment longer. */
async function openSync(folder: FileSystemDirectoryHandle, name: string): Promise<SyncFile> {
  const handle: OpfsFileHandle = await folder.getFileHandle(name, { create: true });
  if (!handle.createSyncAccessHandle || !handle.move)
    throw new BezelError(
      'this browser cannot write model files (it needs a worker and the Origin '
        + 'Private File System)',
      'unsupported',
    );
  for (let i = 0; ; i++) {
    try {
      return await handle.createSyncAccessHandle();
    } catch (e) {
      if (!isError(e, 'NoModificationAllowedError') || i === 40) throw e;
      await new Promise((done) => setTimeout(done, 50));
    }
  }
}

export async function removeFile(folder: FileSystemDirectoryHandle, name: string): Promise<void> {
  try {
    await folder.removeEntry(name);
  } catch (e) {
    if (!isError(e, 'NotFoundError')) throw e;
  }
}

/** Give a file its name, in place of what had it. */
export async function moveFile(
  from: FileSystemDirectoryHandle, name: string, to: FileSystemDirectoryHandle, newName: string,
): Promise<void> {
  const handle: OpfsFileHandle = await from.getFileHandle(name);
  if (!handle.move)
    throw new BezelError('this browser cannot rename files in its storage', 'unsupported');
  try {
    await handle.move(to, newName);
  } catch (e) {
    if (isError(e, 'NotFoundError')) throw e;
    await removeFile(to, newName); // not every browser moves onto a file that exists
    await handle.move(to, newName);
  }
}

export class PartialFile {
  private readonly buffer = new Uint8Array(BUFFER);
  private buffered = 0;
  private written = 0;
  private unflushed = 0;
  private noted = 0; // when
  private isOpen = true;

  private constructor(
    readonly key: string,
    private readonly folder: FileSystemDirectoryHandle,
    private readonly file: SyncFile,
    private readonly log: SyncFile,
    public journal: Journal,
  ) {
    this.written = journal.bytes;
  }

  /** Begin, or go on where the journal says. */
  static async open(folder: FileSystemDirectoryHandle, key: string): Promise<PartialFile> {
    const file = await openSync(folder, key);
    let log: SyncFile | undefined;
    try {
      log = await openSync(folder, journalName(key));
      const text = new Uint8Array(log.getSize());
      log.read(text, { at: 0 });
      const known = parseJournal(new TextDecoder().decode(text));
      const journal = known && known.bytes <= file.getSize() ? known : { bytes: 0 };
      file.truncate(journal.bytes);
      return new PartialFile(key, folder, file, log, journal);
    } catch (e) {
      file.close();
      log?.close();
      throw e;
    }
  }

  /** Bytes so far. */
  get bytes(): number {
    return this.written + this.buffered;
  }

  /** Start again, from nothing. */
  reset(journal: Omit<Journal, 'bytes'>): void {
    this.file.truncate(0);
    this.written = this.buffered = this.unflushed = 0;
    this.journal = { ...journal, bytes: 0 };
    this.checkpoint();
  }

  /** Feed what is there to a digest. */
  async rehash(
    hash: Sha256, onProgress: (loaded: number) => void, signal: AbortSignal | undefined,
  ): Promise<void> {
    const piece = new Uint8Array(BUFFER);
    for (let at = 0; at < this.written;) {
      const n = this.file.read(piece.subarray(0, Math.min(BUFFER, this.written - at)), { at });
      if (n === 0)
        throw new BezelError('a file in the browser\'s storage is shorter than it was', 'io');
      hash.update(piece.subarray(0, n));
      at += n;
      onProgress(at);
      // let messages in
      if (at % (16 * BUFFER) === 0) await new Promise((done) => setTimeout(done));
      signal?.throwIfAborted();
    }
  }

  append(bytes: Uint8Array): void {
    for (let at = 0; at < bytes.length;) {
      const n = Math.min(BUFFER - this.buffered, bytes.length - at);
      this.buffer.set(bytes.subarray(at, at + n), this.buffered);
      this.buffered += n;
      at += n;
      if (this.buffered === BUFFER) this.drain();
    }
    if (this.unflushed >= CHECKPOINT || performance.now() - this.noted >= SECOND) this.checkpoint();
  }

  private drain(): void {
    let at = 0;
    try {
      while (at < this.buffered) {
        const n = this.file.write(this.buffer.subarray(at, this.buffered), { at: this.written });
        if (n === 0) throw new DOMException('nothing more could be written', 'QuotaExceededError');
        at += n;
        this.written += n;
        this.unflushed += n;
      }
    } finally {
      this.buffer.copyWithin(0, at, this.buffered);
      this.buffered -= at;
    }
  }

  /** From here on a crash loses nothing of what was appended. */
  checkpoint(): void {
    this.drain();
    this.file.flush();
    this.note();
  }

  private note(): void {
    this.unflushed = 0;
    this.noted = performance.now();
    this.journal.bytes = this.written;
    const text = new TextEncoder().encode(JSON.stringify(this.journal));
    const padded = new Uint8Array(Math.ceil((text.length + 1) / JOURNAL) * JOURNAL).fill(0x20);
    padded.set(text);
    this.log.write(padded, { at: 0 });
    this.log.truncate(padded.length);
    this.log.flush();
  }

  /** Keep as much as there was room for. */
  private keep(): void {
    try {
      this.drain();
    } catch (e) {
      if (!isError(e, 'QuotaExceededError')) throw e; // the rest comes again another time
    }
    this.buffered = 0;
    this.file.flush();
    this.note();
  }

  /** Leave it as it is, to go on another time. */
  close(): void {
    if (!this.isOpen) return;
    this.isOpen = false;
    try {
      this.keep();
    } finally {
      this.file.close();
      this.log.close();
    }
  }

  /** It is whole: give it its name. */
  async finish(folder: FileSystemDirectoryHandle, name: string): Promise<void> {
    this.checkpoint();
    this.close();
    await moveFile(this.folder, this.key, folder, name);
    await removeFile(this.folder, journalName(this.key));
  }

  /** It is of no use. */
  async discard(): Promise<void> {
    this.isOpen = false;
    this.file.close();
    this.log.close();
    await removeFile(this.folder, this.key);
    await removeFile(this.folder, journalName(this.key));
  }
}
