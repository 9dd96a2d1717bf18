// url_source - a Source whose bytes lie behind an address that gives ranges.

import { BlockSource, type Source } from '../source.js';
import { BezelError } from '../wasm.js';
import { fetchRange, shortUrl, type Patience, type Remote } from './net.js';

const FIRST = 1 << 20; // the first question brings the size, the version and the beginning of the header

export interface UrlOptions {
  size?: number | undefined;
  etag?: string | undefined;
  signal?: AbortSignal | undefined;
  patience?: Partial<Patience> | undefined;
}

async function readInto(url: string, offset: number, dst: Uint8Array, known: Partial<Remote>, options: UrlOptions, onRemote?: (r: Remote) => void): Promise<number> {
  let at = 0;
  const { signal, patience } = options;
  for await (const piece of fetchRange(url, offset, { end: offset + dst.length, known, signal, patience, ...(onRemote && { onRemote }) })) {
    dst.set(piece, at);
    at += piece.length;
  }
  return at;
}

/** Asks for the beginning of the file; a server without Range is an error. */
export async function urlSource(url: string, options: UrlOptions = {}): Promise<Source> {
  const asked: Partial<Remote> = {
    ...(options.size !== undefined && { size: options.size }),
    ...(options.etag !== undefined && { version: options.etag }),
  };
  let remote: Remote | undefined;
  const start = new Uint8Array(Math.min(FIRST, options.size ?? FIRST));
  const n = await readInto(url, 0, start, asked, options, (r) => (remote = r));
  if (!remote) throw new BezelError(`${shortUrl(url)} is empty`, 'format');
  const { size, version } = remote;
  const closed = new AbortController();
  const source = new BlockSource(shortUrl(url), size, async (offset, dst, signal) => {
    const stop = signal ? AbortSignal.any([closed.signal, signal]) : closed.signal;
    await readInto(url, offset, dst, { size, ...(version !== undefined && { version }) }, { ...options, signal: stop });
  }, () => closed.abort(new BezelError(`${shortUrl(url)} is closed`, 'cancelled')));
  source.give(0, start.subarray(0, n));
  return source;
}
