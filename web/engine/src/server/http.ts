// http - what every route shares: failures with a status, bodies with a limit, answers that flow no faster than
// they are read. Knows no routes and no models.

import type { IncomingMessage, ServerResponse } from 'node:http';

export interface Limits {
  bodyBytes: number;
  headerBytes: number;
  /** To send the headers, and to send the whole request. */
  headerMs: number;
  requestMs: number;
  /** To compute one answer, from the moment its turn has come. */
  answerMs: number;
  /** Requests that may wait for their turn. */
  queue: number;
  /** What a slow reader may leave unread before the engine waits for it, and for how long. */
  unreadBytes: number;
  stallMs: number;
  connections: number;
}

export const defaultLimits: Readonly<Limits> = {
  bodyBytes: 32 << 20,
  headerBytes: 16 << 10,
  headerMs: 15_000,
  requestMs: 60_000,
  answerMs: 30 * 60_000,
  queue: 128,
  unreadBytes: 1 << 20,
  stallMs: 30_000,
  connections: 512,
};

/** A refusal: the status and one sentence. */
export class HttpError extends Error {
  constructor(readonly status: number, message: string, readonly code: string | null = null, readonly headers: Readonly<Record<string, string>> = {}) {
    super(message);
  }
}

/** The client went away: there is nobody to answer. */
export class Gone extends Error {}

/** One request on its way through the server. */
export interface Exchange {
  readonly req: IncomingMessage;
  readonly res: ServerResponse;
  readonly method: string;
  /** As it was sent: percent signs and all, without the query. */
  readonly path: string;
  /** Whose turn it takes in the queue. */
  readonly client: string;
  /** Fires when the client goes, or when the server ends. */
  readonly signal: AbortSignal;
  readonly limits: Readonly<Limits>;
}

export function sendJson(ex: Exchange, status: number, value: unknown, headers: Readonly<Record<string, string>> = {}): void {
  const body = Buffer.from(JSON.stringify(value));
  ex.res.writeHead(status, { 'content-type': 'application/json; charset=utf-8', 'content-length': body.length, 'cache-control': 'no-store', ...headers });
  ex.res.end(ex.method === 'HEAD' ? undefined : body);
}

/** The body as JSON; a limit on its size is kept while it arrives, not after. */
export async function readJson(ex: Exchange): Promise<Record<string, unknown>> {
  const most = ex.limits.bodyBytes;
  const tooLarge = (): HttpError => new HttpError(413, `the request is larger than ${most >> 20} MiB`, 'body_too_large', { connection: 'close' });
  if (Number(ex.req.headers['content-length'] ?? 0) > most) throw tooLarge();
  const parts: Buffer[] = [];
  let size = 0;
  try {
    for await (const part of ex.req as AsyncIterable<Buffer>) {
      size += part.length;
      if (size > most) throw tooLarge();
      parts.push(part);
    }
  } catch (e) {
    throw e instanceof HttpError ? e : new Gone();
  }
  let value: unknown;
  try {
    value = JSON.parse(new TextDecoder('utf-8', { fatal: true }).decode(Buffer.concat(parts)));
  } catch {
    throw new HttpError(400, 'the body is not JSON', 'invalid_json');
  }
  if (typeof value !== 'object' || value === null || Array.isArray(value)) throw new HttpError(400, 'the body is not a JSON object', 'invalid_json');
  return value as Record<string, unknown>;
}

/** An answer in pieces: server-sent events or JSON lines. */
export class Stream {
  constructor(private readonly ex: Exchange, private readonly type: 'text/event-stream' | 'application/x-ndjson') {}

  /** Headers are sent with the first piece, so that what fails before it can still have a status. */
  get begun(): boolean {
    return this.ex.res.headersSent;
  }

  async write(text: string): Promise<void> {
    const { res, limits } = this.ex;
    if (!this.begun) res.writeHead(200, { 'content-type': this.type, 'cache-control': 'no-store', 'x-accel-buffering': 'no' });
    if (res.destroyed) throw new Gone();
    res.write(text);
    if (res.writableLength > limits.unreadBytes) await this.drained();
    else await new Promise(setImmediate); // the socket gets its turn, and a client that left is noticed
    if (res.destroyed) throw new Gone();
  }

  end(text = ''): void {
    if (!this.ex.res.destroyed) this.ex.res.end(text);
  }

  private drained(): Promise<void> {
    const { res, limits } = this.ex;
    return new Promise((done, failed) => {
      const over = (): void => {
        clearTimeout(timer);
        res.off('drain', drain).off('close', gone);
      };
      const drain = (): void => (over(), done());
      const gone = (): void => (over(), failed(new Gone()));
      const timer = setTimeout(() => res.destroy(), limits.stallMs);
      res.on('drain', drain).on('close', gone);
    });
  }
}
