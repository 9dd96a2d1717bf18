// url_source - a Source whose bytes lie behind an address: read in ranges, or brought as a whole
// where the server gives none.

import { BlockSource, blobSource, memorySource, type Source } from '../load/source.js';
import { BezelError } from '../engine/wasm.js';
import { fetchRange, NoRanges, shortUrl, type Patience, type Remote } from './net.js';

// the first question brings the size, the version and the beginning of the header
const FIRST = 1 << 20;

export interface UrlOptions {
  size?: number | undefined;
  etag?: string | undefined;
  signal?: AbortSignal | undefined;
  patience?: Partial<Patience> | undefined;
  /** A server that gives no ranges is asked for all of it; absent: that is an error. */
  whole?: boolean | undefined;
  /** How much of the whole is there. */
  onProgress?: ((loaded: number, total: number) => void) | undefined;
}

const PART = 64 << 20; // bytes of a Blob, which a browser may keep on the disk
const LARGEST = 0xffffffff; // bytes of an array, for the oldest Node

/** One download of everything. */
async function bring(
  url: string, known: Partial<Remote>, { signal, patience, onProgress }: UrlOptions,
): Promise<Source> {
  const parts: Blob[] = [], name = shortUrl(url);
  let held: Uint8Array<ArrayBuffer>[] = [], heldBytes = 0, loaded = 0, total = 0;
  const onRemote = ({ size = 0 }: Remote): void => void (total = size);
  for await (const piece of fetchRange(url, 0, {
    known, whole: true, onRemote, signal, patience,
  })) {
    held.push(piece as Uint8Array<ArrayBuffer>);
    heldBytes += piece.length;
    loaded += piece.length;
    onProgress?.(loaded, total);
    if (heldBytes < PART) continue;
    parts.push(new Blob(held));
    [held, heldBytes] = [[], 0];
  }
  const all = new Blob([...parts, ...held]);
  if (!all.size) throw new BezelError(`${name} is empty`, 'format');
  return 'FileReaderSync' in globalThis || all.size > LARGEST
    ? blobSource(all, name)
    : memorySource(name, new Uint8Array(await all.arrayBuffer()));
}

async function readInto(
  url: string, offset: number, dst: Uint8Array, known: Partial<Remote>, options: UrlOptions,
  onRemote?: (r: Remote) => void,
): Promise<number> {
  let at = 0;
  const { signal, patience } = options;
  for await (const piece of fetchRange(url, offset, {
    end: offset + dst.length, known, signal, patience, ...(onRemote && { onRemote }),
  })) {
    dst.set(piece, at);
    at += piece.length;
  }
  return at;
}

/** Asks for the beginning of the file. */
export async function urlSource(url: string, options: UrlOptions = {}): Promise<Source> {
  const asked: Partial<Remote> = {
    ...(options.size !== undefined && { size: options.size }),
    ...(options.etag !== undefined && { version: options.etag }),
  };
  let remote: Remote | undefined;
  const start = new Uint8Array(Math.min(FIRST, options.size ?? FIRST));
  let n: number;
  try {
    n = await readInto(url, 0, start, asked, options, (r) => (remote = r));
  } catch (e) {
    if (!(e instanceof NoRanges) || !options.whole) throw e;
    return bring(url, asked, options);
  }
  if (remote?.size === undefined) throw new BezelError(`${shortUrl(url)} is empty`, 'format');
  const { size, version } = remote;
  const closed = new AbortController();
  const source = new BlockSource(shortUrl(url), size, async (offset, dst, signal) => {
    const stop = signal ? AbortSignal.any([closed.signal, signal]) : closed.signal;
    await readInto(
      url,
      offset,
      dst,
      { size, ...(version !== undefined && { version }) },
      { ...options, signal: stop },
    );
  }, () => closed.abort(new BezelError(`${shortUrl(url)} is closed`, 'cancelled')));
  source.give(0, start.subarray(0, n));
  return source;
}
