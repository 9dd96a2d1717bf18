// content - bytes of a known size and identity as an answer: ETag, conditions, single ranges (RFC
// 9110). They flow no faster than they are read: nobody makes the server hold more than a piece of
// them by not reading.

import type * as fs from 'node:fs';

import { drained, ended, Gone, HttpError, type Exchange } from './http.js';

export interface Content {
  readonly size: number;
  /** Strong, with its quotes. */
  readonly etag: string;
  readonly type: string;
  readonly bytes: Buffer | fs.promises.FileHandle;
  readonly headers?: Readonly<Record<string, string>>;
}

export interface Range {
  readonly first: number;
  readonly last: number;
}

/** What a Range header asks for: undefined for all of it (none, several ranges, or not
 *  understood). */
export function parseRange(
  header: string | undefined, size: number,
): Range | 'unsatisfiable' | undefined {
  const [, from, to] = /^bytes=(\d*)-(\d*)$/.exec(header?.replace(/\s/g, '') ?? '') ?? [];
  if (from === undefined || to === undefined || (from === '' && to === '')) return undefined;
  if (from === '')
    return Number(to) > 0 && size > 0
      ? { first: Math.max(0, size - Number(to)), last: size - 1 }
      : 'unsatisfiable';
  if (to !== '' && Number(to) < Number(from)) return undefined;
  if (Number(from) >= size) return 'unsatisfiable';
  return { first: Number(from), last: to === '' ? size - 1 : Math.min(Number(to), size - 1) };
}

/** If-None-Match compares weakly: W/"x" is "x". */
function matches(header: string, etag: string): boolean {
  return header.trim() === '*'
    || header.split(',').some((tag) => tag.trim().replace(/^W\//, '') === etag);
}

/** Answers a GET or HEAD, and closes the file. */
export async function sendContent(ex: Exchange, content: Content): Promise<void> {
  const { bytes } = content;
  try {
    await send(ex, content);
  } finally {
    if (!Buffer.isBuffer(bytes)) await bytes.close();
  }
}

async function send(
  ex: Exchange, { size, etag, type, bytes, headers: more }: Content,
): Promise<void> {
  const { req, res } = ex;
  const headers = { etag, 'accept-ranges': 'bytes', ...more };
  const none = req.headers['if-none-match'];
  if (none !== undefined && matches(none, etag)) {
    res.writeHead(304, headers).end();
    return;
  }
  // Half of another version is of no use: then the whole is sent.
  const condition = req.headers['if-range'];
  const range =
    condition === undefined || condition === etag ? parseRange(req.headers.range, size) : undefined;
  if (range === 'unsatisfiable')
    throw new HttpError(416, `there are ${size} bytes`, null, {
      'content-range': `bytes */${size}`,
    });
  const { first, last } = range ?? { first: 0, last: size - 1 };
  const partial = range && { 'content-range': `bytes ${first}-${last}/${size}` };
  res.writeHead(range ? 206 : 200, {
    ...headers, ...partial, 'content-type': type, 'content-length': last - first + 1,
  });
  if (ex.method === 'HEAD' || last < first) {
    res.end();
    return;
  }
  await pour(
    ex,
    last - first + 1,
    Buffer.isBuffer(bytes)
      ? pieces(bytes.subarray(first, last + 1))
      : bytes.createReadStream({ start: first, end: last, highWaterMark: PIECE, autoClose: false }),
  );
}

const PIECE = 256 << 10;

function* pieces(bytes: Buffer): Generator<Buffer> {
  for (let at = 0; at < bytes.length; at += PIECE) yield bytes.subarray(at, at + PIECE);
}

async function pour(
  ex: Exchange, size: number, parts: Iterable<Buffer> | AsyncIterable<Buffer>,
): Promise<void> {
  const { res } = ex;
  let left = size;
  try {
    for await (const part of parts) {
      left -= part.length;
      if (res.destroyed) throw new Gone();
      if (!res.write(part)) await drained(ex);
    }
    // on a kept connection the next answer would be taken for the rest
    if (left) throw new Error('the file is shorter than it was');
    await ended(ex);
  } catch (cause) {
    if (!res.destroyed) res.destroy();
    throw new Gone('the transfer ended early', { cause });
  }
}
