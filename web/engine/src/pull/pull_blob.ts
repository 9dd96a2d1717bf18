// pull_blob - one blob of a model into the store: several ranges at once, resumed, verified while
// it comes, and by one process at a time.

import * as fs from 'node:fs';

import { BezelError } from '../api/errors.js';
import { blobName } from '../store/manifest.js';
import { writeError, type DiskWriter } from '../store/disk_writer.js';
import { aloneWith } from '../store/file_locks.js';
import {
  fetchRange, NoRanges, RemoteChanged, shortUrl, type Fetcher, type Patience, type RangeOptions,
} from '../store/net.js';
import { isCode, parseJournal, PartBlob } from './part_blob.js';
import type { Span } from './spans.js';

const CONNECTIONS = 8;
const LEAST = 1 << 20, MOST = 32 << 20; // bytes of one request
const WRITE = 256 << 10; // bytes of one write
const MAX_RESTARTS = 3;

export interface WantedBlob {
  url: string;
  /** 64 hex digits. */
  digest: string;
  size: number;
  /** For people. */
  label: string;
}

export interface BlobOptions {
  signal: AbortSignal;
  fetcher: Fetcher;
  patience?: Partial<Patience> | undefined;
  /** Bytes that are there; may go back where a part turns out to be wrong. */
  onProgress?: (loaded: number) => void;
  /** Another process is at it; it says how far, where that is known. */
  onWait?: (loaded: number) => void;
}

class WrongDigest extends BezelError {}

/** The part that one request has brought, in writes that are worth their while. */
class Batch {
  private parts: Uint8Array[] = [];
  private n = 0;

  constructor(private readonly part: PartBlob, private at: number) {}

  async add(bytes: Uint8Array): Promise<void> {
    this.parts.push(bytes);
    this.n += bytes.length;
    if (this.n >= WRITE) await this.flush();
  }

  async flush(): Promise<void> {
    if (!this.n) return;
    const all = Buffer.concat(this.parts, this.n);
    this.parts = [];
    this.n = 0;
    await this.part.write(this.at, all);
    this.at += all.length;
  }
}

class Pulling {
  constructor(
    private readonly writer: DiskWriter,
    private readonly wanted: WantedBlob,
    private readonly options: BlobOptions,
  ) {}

  async run(): Promise<void> {
    if (await this.isThere()) return;
    const { signal, onWait } = this.options, blob = blobName(this.wanted.digest);
    await aloneWith(
      this.writer.partial, blob, async () => {
        if (!(await this.isThere())) await this.attempts();
      },
      { signal, uses: [blob], ...(onWait && { onWait: () => this.watch(onWait) }) },
    );
  }

  private async isThere(): Promise<boolean> {
    const { digest, size } = this.wanted, there = await this.writer.blobSize(digest);
    if (there === size) this.options.onProgress?.(size);
    return there === size;
  }

  /** How far the process is that has the blob. */
  private watch(onWait: (loaded: number) => void): void {
    const { partial } = this.writer, { digest, size } = this.wanted;
    fs.readFile(`${partial}/${blobName(digest)}.journal`, 'utf8', (_, text) =>
      onWait(parseJournal(text ?? '', size)?.bytes ?? 0));
  }

  private async attempts(): Promise<void> {
    const { digest, size } = this.wanted;
    for (let restarts = 0; ; restarts++) {
      const part = await PartBlob.open(this.writer.partial, blobName(digest), size);
      try {
        await this.attempt(part);
        return await part.finish(this.writer.blobPath(digest));
      } catch (e) {
        const wrong = e instanceof WrongDigest;
        await (wrong ? part.discard() : part.close()).catch((later: unknown) => {
          if (!isCode(later, 'ENOSPC', 'EDQUOT')) throw later; // what the journal said before holds
        });
        // what an earlier run left may be to blame: once more, from the beginning
        const again =
          e instanceof RemoteChanged ? restarts < MAX_RESTARTS : wrong && part.found > 0;
        if (!again) throw writeError(this.writer.root, e);
      }
    }
  }

  private async attempt(part: PartBlob): Promise<void> {
    const over = new AbortController();
    const signal = AbortSignal.any([this.options.signal, over.signal]);
    const stop = (e: unknown): never => {
      over.abort(e);
      throw e;
    };
    const [got, hashed] = await Promise.allSettled([
      this.fetch(part, signal).catch(stop), part.digest(signal).catch(stop),
    ]);
    this.options.signal.throwIfAborted();
    for (const end of [got, hashed])
      if (end.status === 'rejected') throw over.signal.reason ?? end.reason;
    const { digest, label, url } = this.wanted;
    const found = (hashed as PromiseFulfilledResult<string>).value;
    if (found !== digest)
      throw new WrongDigest(
        `what came from ${shortUrl(url)} is not ${label}: its sha256 is ${found.slice(0, 12)}… `
          + `and should be ${digest.slice(0, 12)}…; it was removed`,
        'format',
      );
  }

  private async fetch(part: PartBlob, signal: AbortSignal): Promise<void> {
    this.options.onProgress?.(part.bytes);
    try {
      await this.fetchGaps(part, signal);
    } catch (e) {
      if (!(e instanceof NoRanges)) throw e;
      const [first] = part.gaps(Infinity);
      if (first) await this.fetchSpan(part, [first[0], part.size], signal, true);
    }
  }

  /** Several connections take the missing pieces in their order, so that the digest can follow. */
  private async fetchGaps(part: PartBlob, outer: AbortSignal): Promise<void> {
    const chunk = Math.min(MOST, Math.max(LEAST, Math.ceil(part.size / (4 * CONNECTIONS))));
    const gaps = part.gaps(chunk), over = new AbortController();
    const signal = AbortSignal.any([outer, over.signal]);
    const work = async (): Promise<void> => {
      for (let gap = gaps.shift(); gap; gap = gaps.shift())
        await this.fetchSpan(part, gap, signal, false);
    };
    const ends = await Promise.allSettled(Array.from({ length: CONNECTIONS }, () =>
      work().catch((e: unknown) => {
        over.abort(e);
        throw e;
      })));
    if (ends.some((end) => end.status === 'rejected'))
      throw outer.aborted ? outer.reason : over.signal.reason;
  }

  private async fetchSpan(
    part: PartBlob, [from, to]: Span, signal: AbortSignal, whole: boolean,
  ): Promise<void> {
    const { fetcher, patience, onProgress } = this.options, { url, size, label } = this.wanted;
    const batch = new Batch(part, from);
    const onRemote: RangeOptions['onRemote'] = (remote) => {
      if (remote.size !== undefined && remote.size !== size)
        throw new BezelError(
          `${shortUrl(url)} has ${remote.size} bytes, and should have ${size} for ${label}`,
          'format',
        );
    };
    try {
      for await (const bytes of fetchRange(url, from, {
        end: to, whole, onRemote, signal, patience, fetcher,
      })) {
        await batch.add(bytes);
        onProgress?.(part.bytes);
      }
    } finally {
      await batch.flush();
    }
  }
}

/** Afterwards the blob is in the store. */
export async function pullBlob(
  writer: DiskWriter, wanted: WantedBlob, options: BlobOptions,
): Promise<void> {
  await new Pulling(writer, wanted, options).run();
}

/** Bytes of a blob that need not come any more, as far as files tell. */
export async function bytesThere(
  writer: DiskWriter, { digest, size }: Pick<WantedBlob, 'digest' | 'size'>,
): Promise<number> {
  if ((await writer.blobSize(digest)) === size) return size;
  const file = `${writer.partial}/${blobName(digest)}`;
  const [text, info] = await Promise.all([
    fs.promises.readFile(`${file}.journal`, 'utf8').catch(() => ''),
    fs.promises.stat(file).catch(() => undefined),
  ]);
  return info ? (parseJournal(text, size)?.bytes ?? 0) : 0;
}
