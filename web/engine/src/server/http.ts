// http - what every route shares: failures with a status, bodies with a limit, answers that begin
// early and flow no faster than they are read. Knows no routes and no models.

import type { IncomingMessage, ServerResponse } from 'node:http';

export interface Limits {
  bodyBytes: number;
  headerBytes: number;
  /** Levels of lists and objects in a body: more than any request has, and no more than the core
   *  reads. */
  bodyDepth: number;
  /** Values in a body. */
  bodyValues: number;
  /** Of the bodies of all requests under way. */
  allBodiesBytes: number;
  /** For a client to send the headers, and to send the whole request. */
  headerMs: number;
  requestMs: number;
  /** To compute one answer, from the moment its turn has come. */
  answerMs: number;
  /** Requests that may wait for their turn. */
  queue: number;
  /** What a slow reader may leave unread before the engine waits for it, and for how long. */
  unreadBytes: number;
  stallMs: number;
  /** After this long a stream has its headers, whatever it waits for, and from then on a sign of
   *  life as often as this. */
  earlyMs: number;
  quietMs: number;
  connections: number;
}

export const defaultLimits: Readonly<Limits> = {
  bodyBytes: 32 << 20,
  bodyDepth: 100,
  bodyValues: 1_000_000,
  allBodiesBytes: 512 << 20,
  headerBytes: 16 << 10,
  headerMs: 15_000,
  requestMs: 60_000,
  answerMs: 30 * 60_000,
  queue: 128,
  unreadBytes: 1 << 20,
  stallMs: 30_000,
  earlyMs: 1000,
  quietMs: 5000,
  connections: 512,
};

/** A refusal: the status and one sentence. */
export class HttpError extends Error {
  constructor(
    readonly status: number,
    message: string,
    readonly code: string | null = null,
    readonly headers: Readonly<Record<string, string>> = {},
    readonly param: string | null = null,
  ) {
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
  /** Whose turn it takes in the queue, and whose places: all clients of one address and key
   *  share those. */
  readonly client: string;
  readonly household: string;
  /** The bytes that requests under way have sent, of the whole server. */
  readonly bodies: { bytes: number };
  /** Whose conversations it may go on from: those of the same key, or without one those of the
   *  same connection. */
  readonly scope: string;
  /** What may be told of a failure; the rest is for the terminal. */
  readonly tell: (e: unknown) => unknown;
  /** Fires when the client goes, or when the server ends. */
  readonly signal: AbortSignal;
  readonly limits: Readonly<Limits>;
}

export function sendJson(
  ex: Exchange, status: number, value: unknown, headers: Readonly<Record<string, string>> = {},
): void {
  const body = Buffer.from(JSON.stringify(value));
  ex.res.writeHead(status, {
    'content-type': 'application/json; charset=utf-8',
    'content-length': body.length,
    'cache-control': 'no-store',
    ...headers,
  });
  ex.res.end(ex.method === 'HEAD' ? undefined : body);
}

/** Of a body that is refused the rest is read and thrown away, for as long as a request may take:
 *  most clients do not look at the answer before they have sent everything, and one that is cut off
 *  sees a broken pipe instead of it. */
async function readBody(ex: Exchange): Promise<Buffer> {
  const most = ex.limits.bodyBytes, said = `the request is larger than ${most >> 20} MiB`;
  const tooLarge = new HttpError(413, said, 'body_too_large');
  let parts: Buffer[] = [], size = 0, held = 0, refusal: HttpError | undefined;
  const hold = (bytes: number): void => {
    ex.bodies.bytes += bytes - held;
    held = bytes;
  };
  ex.res.once('close', () => hold(0));
  try {
    for await (const part of ex.req as AsyncIterable<Buffer>) {
      size += part.length;
      if (size > most) refusal ??= tooLarge;
      else if (ex.bodies.bytes - held + size > ex.limits.allBodiesBytes)
        refusal ??= new HttpError(
          503,
          'other requests take all the memory for requests; try again later',
          'bodies_full',
          { 'retry-after': '5' },
        );
      if (refusal) parts = [];
      else parts.push(part);
      if (!ex.signal.aborted) hold(refusal ? 0 : size);
    }
  } catch {
    throw new Gone();
  }
  if (refusal) throw refusal;
  return Buffer.concat(parts);
}

const QUOTE = 0x22, COMMA = 0x2c, OPEN_LIST = 0x5b, BACKSLASH = 0x5c, CLOSE_LIST = 0x5d;
const OPEN_OBJECT = 0x7b, CLOSE_OBJECT = 0x7d;

/** How deep lists and objects are inside each other, and how many values there are: told by the
 *  bytes, since a value of a few bytes takes many more once it is read. Of what is no JSON it says
 *  something, and the parser the rest. */
function measure(json: Uint8Array): { depth: number; values: number } {
  let depth = 0, deepest = 0, values = 1, inText = false;
  for (let i = 0; i < json.length; i++) {
    const c = json[i];
    if (inText) {
      if (c === BACKSLASH) i++;
      else if (c === QUOTE) inText = false;
    } else if (c === QUOTE) inText = true;
    else if (c === COMMA) values++;
    else if (c === OPEN_LIST || c === OPEN_OBJECT) {
      values++;
      deepest = Math.max(deepest, ++depth);
    } else if (c === CLOSE_LIST || c === CLOSE_OBJECT) depth--;
  }
  return { depth: deepest, values };
}

/** The body as JSON; a limit on its size is kept while it arrives, not after. */
export async function readJson(ex: Exchange): Promise<Record<string, unknown>> {
  const bytes = await readBody(ex), { bodyDepth, bodyValues } = ex.limits;
  const { depth, values } = measure(bytes);
  if (depth > bodyDepth)
    throw new HttpError(
      400, `the body has more than ${bodyDepth} levels of lists and objects`, 'invalid_json',
    );
  if (values > bodyValues)
    throw new HttpError(413, `the body has more than ${bodyValues} values`, 'body_too_large');
  let value: unknown;
  try {
    value = JSON.parse(new TextDecoder('utf-8', { fatal: true }).decode(bytes));
  } catch {
    throw new HttpError(400, 'the body is not JSON', 'invalid_json');
  }
  if (typeof value !== 'object' || value === null || Array.isArray(value))
    throw new HttpError(400, 'the body is not a JSON object', 'invalid_json');
  return value as Record<string, unknown>;
}

/** What each kind of stream can be sent while there is nothing to say: a comment; space before
 *  the next line's object. */
const signs = { 'text/event-stream': ': waiting\n\n', 'application/x-ndjson': ' ' } as const;

/** An answer in pieces: server-sent events or JSON lines. */
export class Stream {
  private timer: NodeJS.Timeout;

  constructor(private readonly ex: Exchange, private readonly type: keyof typeof signs) {
    this.timer = setTimeout(() => this.begin(), ex.limits.earlyMs);
    ex.res.once('close', () => clearTimeout(this.timer));
  }

  /** What fails from now on has no status any more. */
  get begun(): boolean {
    return this.ex.res.headersSent;
  }

  /** Send the headers, so that who waits knows that it does, and then now and then a sign of
   *  life. */
  readonly begin = (): void => {
    const { res, limits } = this.ex;
    if (this.begun || res.destroyed) return;
    res.writeHead(200, {
      'content-type': this.type, 'cache-control': 'no-store', 'x-accel-buffering': 'no',
    });
    res.flushHeaders();
    clearTimeout(this.timer);
    this.timer = setInterval(() => {
      if (!res.writableLength && !res.writableEnded) res.write(signs[this.type]);
    }, limits.quietMs);
  };

  async write(text: string): Promise<void> {
    const { res, limits } = this.ex;
    this.begin();
    if (res.destroyed) throw new Gone();
    res.write(text);
    this.timer.refresh();
    if (res.writableLength > limits.unreadBytes) await drained(this.ex);
    // the socket gets its turn, and a client that left is noticed
    else await new Promise(setImmediate);
    if (res.destroyed) throw new Gone();
  }

  end(text = ''): void {
    clearTimeout(this.timer);
    if (!this.ex.res.destroyed) this.ex.res.end(text);
  }

  /** It will not be a stream: it failed before it began. */
  giveUp(): void {
    clearTimeout(this.timer);
  }
}

/** Until what was written is read; one who does not read for too long is let go. */
export const drained = (ex: Exchange): Promise<void> => heard(ex, 'drain');

/** The end of an answer, and until it is read. */
export async function ended(ex: Exchange): Promise<void> {
  ex.res.end();
  if (!ex.res.writableFinished) await heard(ex, 'finish');
}

function heard({ res, limits }: Exchange, event: 'drain' | 'finish'): Promise<void> {
  return new Promise((done, failed) => {
    const over = (): void => {
      clearTimeout(timer);
      res.off(event, read).off('close', gone);
    };
    const read = (): void => (over(), done());
    const gone = (): void => (over(), failed(new Gone()));
    const timer = setTimeout(() => res.destroy(), limits.stallMs);
    res.on(event, read).on('close', gone);
    if (res.destroyed) gone();
  });
}
