// part_blob - a blob on its way into the store: bytes in any order, and a journal of those that are
// safely there.
//
//     partial/<blob>            the bytes, with holes
//     partial/<blob>.journal    JSON: the blob's size, and the spans that were flushed
//
// It lies beside blobs/, where Ollama neither looks nor tidies up. After a crash only bytes that
// the journal counts are believed. sha256 follows the bytes from the beginning as far as there is
// no gap, and reads them from the file: what is hashed is what was written, by this run or another.
// A blob gets its name by a move, when it is whole and hashed.

import * as crypto from 'node:crypto';
import * as fs from 'node:fs';
import * as path from 'node:path';

import { BezelError } from '../api/errors.js';
import { Spans, type Span } from './spans.js';

const PIECE = 1 << 20; // of a read for the digest
const CHECKPOINT = 64 << 20; // bytes, and
const SECOND = 1000; // milliseconds, between two notes in the journal

export const isCode = (e: unknown, ...codes: string[]): boolean =>
  codes.includes((e as NodeJS.ErrnoException | undefined)?.code ?? '');

/** The spans of a journal, undefined where it makes no sense or is another blob's. */
export function parseJournal(text: string, size: number): Spans | undefined {
  try {
    const said = JSON.parse(text) as { size?: unknown; done?: unknown } | null;
    return said?.size === size ? Spans.from(said.done, size) : undefined;
  } catch {
    return undefined; // it was cut off while it was written
  }
}

async function textOf(file: string): Promise<string> {
  try {
    return await fs.promises.readFile(file, 'utf8');
  } catch (e) {
    if (isCode(e, 'ENOENT')) return '';
    throw e;
  }
}

/** In the place of what is there, whole or not at all. */
export async function replaceFile(file: string, text: string): Promise<void> {
  const next = `${file}.new`;
  const { O_WRONLY, O_CREAT, O_TRUNC, O_NOFOLLOW = 0 } = fs.constants;
  const handle =
    await fs.promises.open(next, O_WRONLY | O_CREAT | O_TRUNC | O_NOFOLLOW, 0o644);
  try {
    await handle.writeFile(text);
    await handle.datasync();
  } finally {
    await handle.close();
  }
  await fs.promises.rename(next, file);
}

export class PartBlob {
  private readonly hash = crypto.createHash('sha256');
  private hashed = 0;
  private unflushed = 0;
  private noted = performance.now();
  private noting: Promise<void> | undefined;
  private moved: (() => void) | undefined; // wakes the digest

  private constructor(
    private readonly file: string,
    private readonly handle: fs.promises.FileHandle,
    readonly size: number,
    private readonly spans: Spans,
    /** Bytes that an earlier run left. */
    readonly found: number,
  ) {}

  /** Begin, or go on where the journal says. */
  static async open(folder: string, blob: string, size: number): Promise<PartBlob> {
    const file = path.join(folder, blob);
    const known = parseJournal(await textOf(`${file}.journal`), size);
    const flags = fs.constants.O_RDWR | fs.constants.O_CREAT | (fs.constants.O_NOFOLLOW ?? 0);
    const handle = await fs.promises.open(file, flags, 0o644);
    const info = await handle.stat();
    const end = known?.toJSON().at(-1)?.[1] ?? 0;
    // shorter than the journal says: another's, or of a disk that lost it
    const spans = known && info.isFile() && info.size >= end ? known : Spans.none();
    if (spans !== known || info.size > size) await handle.truncate(spans === known ? size : 0);
    return new PartBlob(file, handle, size, spans, spans.bytes);
  }

  get bytes(): number {
    return this.spans.bytes;
  }

  gaps(most: number): Span[] {
    return this.spans.gaps(this.size, most);
  }

  async write(at: number, bytes: Uint8Array): Promise<void> {
    for (let n = 0; n < bytes.length;)
      n += (await this.handle.write(bytes, n, bytes.length - n, at + n)).bytesWritten;
    this.spans.add(at, at + bytes.length);
    this.unflushed += bytes.length;
    this.moved?.();
    const isDue = this.unflushed >= CHECKPOINT || performance.now() - this.noted >= SECOND;
    if (isDue && this.unflushed) await (this.noting ??= this.note());
  }

  /** From here on a crash loses nothing of what was written before. */
  private async note(): Promise<void> {
    this.unflushed = 0;
    const text = JSON.stringify({ size: this.size, done: this.spans });
    try {
      await this.handle.datasync();
      await replaceFile(`${this.file}.journal`, text);
    } finally {
      this.noted = performance.now();
      this.noting = undefined;
    }
  }

  /** sha256 of all of it, as it comes; an earlier run's part first. */
  async digest(
    signal: AbortSignal, onProgress?: (hashed: number) => void,
  ): Promise<string> {
    const piece = Buffer.alloc(Math.min(PIECE, this.size));
    while (this.hashed < this.size) {
      signal.throwIfAborted();
      const ready = this.spans.front - this.hashed;
      if (ready <= 0) {
        await this.more(signal);
        continue;
      }
      const { bytesRead } =
        await this.handle.read(piece, 0, Math.min(ready, piece.length), this.hashed);
      if (!bytesRead) throw new BezelError(`${this.file} is shorter than it was`, 'io');
      this.hash.update(piece.subarray(0, bytesRead));
      this.hashed += bytesRead;
      onProgress?.(this.hashed);
    }
    return this.hash.digest('hex');
  }

  private more(signal: AbortSignal): Promise<void> {
    return new Promise((done) => {
      const wake = (): void => {
        this.moved = undefined;
        signal.removeEventListener('abort', wake);
        done();
      };
      this.moved = wake;
      signal.addEventListener('abort', wake);
      if (signal.aborted) wake();
    });
  }

  /** Leave it as it is, to go on another time. */
  async close(): Promise<void> {
    try {
      await this.noting;
      if (this.unflushed) await this.note();
    } finally {
      await this.handle.close();
    }
  }

  /** It is whole: give it its name. */
  async finish(to: string): Promise<void> {
    await this.noting;
    await this.handle.truncate(this.size);
    await this.handle.datasync();
    await this.handle.close();
    await fs.promises.rename(this.file, to);
    await fs.promises.rm(`${this.file}.journal`, { force: true });
  }

  /** It is of no use. */
  async discard(): Promise<void> {
    await this.noting;
    await this.handle.close();
    await fs.promises.rm(this.file, { force: true });
    await fs.promises.rm(`${this.file}.journal`, { force: true });
  }
}
