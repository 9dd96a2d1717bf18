// net - bytes of one address, from an offset on, through lost connections. Knows nothing of files
// or models.
//
// A body that ends early, a refused or stalled connection and a busy server are waited out with
// growing pauses; the count of tries starts again whenever bytes have come. An address whose
// content is no longer the same (ETag, or failing that the date, or the size) is never mixed with
// what came before.

import { BezelError } from '../engine/wasm.js';

export interface Patience {
  /** Tries in a row that bring no byte. */
  tries: number;
  /** Milliseconds before the second try; doubled from then on, up to `longest`. */
  first: number;
  longest: number;
  /** Milliseconds without a byte after which a connection counts as lost. */
  idle: number;
  /** The longest pause that a server may ask for (Retry-After); a longer one is an error. */
  asked: number;
}

const SMALL = 256 << 10; // bytes; in one piece they must come within `idle`
const defaults: Patience = {
  tries: 8, first: 500, longest: 30_000, idle: 30_000, asked: 300_000,
};

/** How one request is made, and what of its answer is an error at once (a BezelError). */
export type Fetcher = (
  url: string, init: { headers: Record<string, string>; signal: AbortSignal },
) => Promise<Response>;

const plainFetch: Fetcher = (url, init) => fetch(url, { ...init, cache: 'no-store' });

/** What is known of an address: how long it is and which version of it. */
export interface Remote {
  /** Undefined: the server does not say, and it is as long as what comes. */
  size: number | undefined;
  /** ETag, or the date where there is none; undefined: versions cannot be told apart. */
  version: string | undefined;
}

export interface RangeOptions {
  /** First byte past the wanted ones; absent: to the end. */
  end?: number;
  /** What the address must still be. */
  known?: Partial<Remote>;
  /** Told once, before the first byte; throws to leave it. */
  onRemote?: (remote: Remote) => void | Promise<void>;
  /** Servers that send all of a file instead of a range: take what is wanted out of it. Absent:
   *  that is an error, NoRanges. */
  whole?: boolean;
  signal?: AbortSignal | undefined;
  patience?: Partial<Patience> | undefined;
  /** Absent: `fetch`, which follows redirects. */
  fetcher?: Fetcher | undefined;
}

/** The address has other content than before. */
export class RemoteChanged extends BezelError {
  constructor(url: string) {
    super(`${shortUrl(url)} changed on the server while it was read`, 'io');
  }
}

/** The server sends all of a file or nothing. */
export class NoRanges extends BezelError {
  constructor(url: string) {
    super(
      `the server of ${shortUrl(url)} does not give parts of files (Range); `
        + 'put the file into the store first',
      'unsupported',
    );
  }
}

/** What fetch would refuse each time is told at once. The address is not repeated: it may hold a
 *  password. */
function checkAddress(url: string): void {
  let parsed: URL;
  try {
    parsed = new URL(url);
  } catch (e) {
    throw new BezelError('the address is not well formed', 'argument', e);
  }
  if (parsed.username || parsed.password)
    throw new BezelError(
      `the address of ${parsed.host} has a name or a password in it, which cannot be sent`,
      'unsupported',
    );
}

/** For sentences: no query, which may hold secrets. */
export function shortUrl(url: string): string {
  const { host, pathname } = new URL(url);
  return host + pathname;
}

/** A failure that may pass. */
class Passing extends Error {
  constructor(message: string, readonly pause = 0, cause?: unknown) {
    super(message, { cause });
  }
}

/** Nothing was heard of the server: it is out of reach, or the browser keeps its answer from
 *  this page. */
class NoAnswer extends Passing {}

/** A site that must allow pages of others (CORS); outside a page all are alike. */
function isForeign(url: string): boolean {
  const here = (globalThis as { location?: Location }).location;
  return here !== undefined && new URL(url).origin !== here.origin;
}

/** What the system says of a connection that failed: Node has it as the cause of "fetch failed". */
function causeOf(e: unknown): Error & { code?: unknown } {
  const error = e instanceof Error ? e : new Error(String(e));
  return error.cause instanceof Error ? error.cause : error;
}

/** Its words, without the numbers and the line of source that OpenSSL puts around them. */
function causeText(e: unknown): string {
  const { message } = causeOf(e), ssl = /:error:[^:]*:([^:]*):[^:]*:([^:]*):/.exec(message);
  return ssl ? `${ssl[1]}: ${ssl[2]}` : message;
}

/** No such host, a port that fetch refuses, no TLS there, a certificate that is not believed:
 *  another try sees the same. */
function isFinal(e: unknown): boolean {
  const { code, message } = causeOf(e);
  return /^(ENOTFOUND|EAI_AGAIN|ENODATA|EPROTO|ERR_SSL_.*|ERR_TLS_.*|.*CERT.*|UNABLE_TO_.*)$/.test(
    String(code),
  )
    || /dns error|bad port|certificate/i.test(message);
}

// a site that has never answered is not asked for minutes: the browser does not say which it is
const FOREIGN_TRIES = 2;

function wait(ms: number, signal: AbortSignal | undefined): Promise<void> {
  return new Promise((done, failed) => {
    const end = (): void => {
      clearTimeout(timer);
      signal?.removeEventListener('abort', stop);
      globalThis.removeEventListener?.('online', end);
      done();
    };
    const stop = (): void => {
      end();
      failed(signal?.reason);
    };
    const timer = setTimeout(end, ms);
    signal?.addEventListener('abort', stop);
    globalThis.addEventListener?.('online', end); // the network is back: no need to wait on
    if (signal?.aborted) stop();
  });
}

/** Is the status one that another try may not see? */
const isPassing = (status: number): boolean =>
  status === 408 || status === 425 || status === 429 || status >= 500;

/** Milliseconds that a server wants us to wait: Retry-After in seconds or as a date, or what is
 *  left of the window that a rate limit counts in (RateLimit: "api";r=0;t=55). */
export function askedPause(headers: Headers, now = Date.now()): number {
  const after = headers.get('retry-after')?.trim();
  if (after !== undefined && /^\d{1,9}$/.test(after)) return 1000 * Number(after);
  const date = Date.parse(after ?? '');
  if (!Number.isNaN(date)) return Math.max(0, date - now);
  const [, left] = /;\s*r=0\s*;\s*t=(\d{1,9})(?!\d)/.exec(headers.get('ratelimit') ?? '') ?? [];
  return left === undefined ? 0 : 1000 * Number(left);
}

function refuse(url: string, answer: Response): never {
  const said = `${answer.status}${answer.statusText && ` ${answer.statusText}`}`;
  if (isPassing(answer.status))
    throw new Passing(`the server says ${said}`, askedPause(answer.headers));
  if (answer.status === 404 || answer.status === 410)
    throw new BezelError(`there is nothing at ${shortUrl(url)} (${said})`, 'not-found');
  throw new BezelError(`cannot read ${shortUrl(url)}: the server says ${said}`, 'io');
}

/** Size and version, and where the body starts and ends. A length is that of the bytes that
 *  travel: of encoded ones it says nothing. */
function readHead(
  url: string, answer: Response,
): Remote & { start: number; end: number | undefined } {
  const weak = answer.headers.get('etag') ?? answer.headers.get('last-modified') ?? undefined;
  const version = weak?.replace(/^W\//, '');
  if (answer.status === 206) {
    const [, start, last, size] =
      /^bytes (\d+)-(\d+)\/(\d+)$/.exec(answer.headers.get('content-range') ?? '') ?? [];
    if (start === undefined)
      throw new BezelError(
        `${shortUrl(url)} answers with part of a file and does not say which (is Content-Range `
          + 'exposed to this page?)',
        'io',
      );
    return { start: Number(start), end: Number(last) + 1, size: Number(size), version };
  }
  const length = answer.headers.get('content-length');
  const encoded = !['', 'identity'].includes(answer.headers.get('content-encoding') ?? '');
  const size = length === null || encoded ? undefined : Number(length);
  return { start: 0, end: size, size, version };
}

/** One connection, whose silence ends it. */
class Connection {
  private readonly ended = new AbortController();
  private timer: ReturnType<typeof setTimeout> | undefined;
  private isRead = false; // to the end of its body
  private readonly stop = (): void => this.ended.abort(this.signal?.reason);

  constructor(
    private readonly idle: number,
    private readonly signal: AbortSignal | undefined,
    private readonly fetcher: Fetcher = plainFetch,
  ) {
    signal?.throwIfAborted();
    signal?.addEventListener('abort', this.stop);
  }

  /** A step of the network: its failure is passing unless the caller's signal made it. */
  private async step<T>(work: () => Promise<T>, Failure = Passing): Promise<T> {
    this.timer = setTimeout(
      () => this.ended.abort(new Error(`nothing came for ${this.idle / 1000} s`)), this.idle,
    );
    try {
      return await work();
    } catch (e) {
      this.signal?.throwIfAborted();
      throw e instanceof BezelError ? e : new Failure(causeText(e), 0, e);
    } finally {
      clearTimeout(this.timer);
    }
  }

  open(url: string, headers: Record<string, string>): Promise<Response> {
    return this.step(() => this.fetcher(url, { headers, signal: this.ended.signal }), NoAnswer);
  }

  /** Chromium counts a body as aborted that was read as a stream, also to its end: a small one
   *  is taken in one piece. */
  async *body(answer: Response): AsyncGenerator<Uint8Array, void, void> {
    if (Number(answer.headers.get('content-length') ?? Infinity) <= SMALL) {
      const all = await this.step(() => answer.arrayBuffer());
      this.isRead = true;
      if (all.byteLength) yield new Uint8Array(all);
      return;
    }
    const reader = answer.body?.getReader();
    if (!reader) return;
    for (;;) {
      const { done, value } = await this.step(() => reader.read());
      this.isRead = done;
      if (done) return;
      yield value;
    }
  }

  close(): void {
    this.signal?.removeEventListener('abort', this.stop);
    if (!this.isRead) this.ended.abort();
  }
}

/** State of one fetchRange: where it is, and what the address was like. */
class Reading {
  remote: Remote | undefined;

  constructor(
    private readonly url: string, public at: number, private readonly options: RangeOptions,
  ) {}

  get end(): number {
    return Math.min(this.options.end ?? Infinity, this.remote?.size ?? Infinity);
  }

  private async check(remote: Remote): Promise<void> {
    const known = { ...this.options.known, ...this.remote };
    const same = (known.size === undefined || remote.size === undefined
      || known.size === remote.size)
      &&
      (known.version === undefined || remote.version === undefined
        || known.version === remote.version);
    if (!same) throw new RemoteChanged(this.url);
    if (!this.remote) await this.options.onRemote?.(remote);
    this.remote = { size: remote.size ?? known.size, version: remote.version };
  }

  /** As far as one connection goes. */
  async *connect(idle: number): AsyncGenerator<Uint8Array, void, void> {
    const connection = new Connection(idle, this.options.signal, this.options.fetcher);
    try {
      const last = this.options.end === undefined ? '' : this.options.end - 1;
      const answer = await connection.open(this.url, { range: `bytes=${this.at}-${last}` });
      if (answer.status === 416) {
        const [, size] = /^bytes \*\/(\d+)$/.exec(answer.headers.get('content-range') ?? '') ?? [];
        // shorter than what we have of it
        if (Number(size) !== this.at) throw new RemoteChanged(this.url);
        await this.check({ size: this.at, version: undefined });
        return;
      }
      if (answer.status !== 200 && answer.status !== 206) refuse(this.url, answer);
      if (answer.status === 200 && !this.options.whole) throw new NoRanges(this.url);
      const head = readHead(this.url, answer);
      if (head.start > this.at)
        throw new BezelError(
          `${shortUrl(this.url)} answers with another part of the file than was asked for`, 'io',
        );
      await this.check(head);
      yield* this.take(connection.body(answer), head.start, head.end);
    } finally {
      connection.close();
    }
  }

  /** The wanted part of a body from `from` to `to`. One that was wanted to its end is read to its
   *  end: a request that is left before it counts as aborted. */
  private async *take(
    body: AsyncIterable<Uint8Array>, from: number, to: number | undefined,
  ): AsyncGenerator<Uint8Array, void, void> {
    for await (const bytes of body) {
      const piece = bytes.subarray(Math.max(0, this.at - from), this.end - from);
      from += bytes.length;
      if (piece.length) {
        this.at += piece.length;
        yield piece;
      }
      if (this.at >= this.end && from !== to) return;
    }
    // else this is its end: what breaks off fails above
    const known = this.remote?.size !== undefined;
    if (known && this.at < this.end) throw new Passing('the connection ended early');
  }
}

/** Pauses between tries that bring nothing; `work` says through `progress` that it has brought
 *  something. */
class Tries {
  private failed = 0;
  private readonly patience: Patience;

  /** `heard`: the address is known to have answered before. */
  constructor(
    private readonly url: string,
    private readonly signal: AbortSignal | undefined,
    patience: Partial<Patience> | undefined,
    private heard = false,
  ) {
    this.patience = { ...defaults, ...patience };
  }

  get idle(): number {
    return this.patience.idle;
  }

  /** Wait before the next try, or throw what cannot be waited out. */
  async after(e: unknown, progress: boolean): Promise<void> {
    if (!(e instanceof Passing)) throw e;
    this.heard ||= !(e instanceof NoAnswer);
    const { tries, first, longest, asked } = this.patience;
    this.failed = progress ? 1 : this.failed + 1;
    if (!this.heard && isFinal(e.cause))
      throw new BezelError(`${new URL(this.url).host} cannot be reached: ${e.message}`, 'io', e);
    if (!this.heard && this.failed >= FOREIGN_TRIES && causeOf(e.cause).code === 'ECONNREFUSED')
      throw new BezelError(`nothing answers at ${new URL(this.url).host}: ${e.message}`, 'io', e);
    if (!this.heard && this.failed >= FOREIGN_TRIES && isForeign(this.url))
      throw new BezelError(
        `${new URL(this.url).host} cannot be reached, or does not give its files to `
          + 'pages of other sites',
        'io',
        e,
      );
    const asks = e.pause > asked ? ` and wants ${Math.ceil(e.pause / 1000)} s of pause` : '';
    if (this.failed >= tries || asks)
      throw new BezelError(
        `${asks ? 'one try' : `${tries} tries in a row`} to read ${shortUrl(this.url)} brought `
          + `nothing: ${e.message}${asks}`,
        'io',
        e,
      );
    const pause = Math.min(longest, first * 2 ** (this.failed - 1)) * (0.5 + Math.random() / 2);
    await wait(Math.max(pause, e.pause), this.signal);
  }
}

/** Pieces of an address from `from` on, in order and without gaps. */
export async function* fetchRange(
  url: string, from: number, options: RangeOptions = {},
): AsyncGenerator<Uint8Array, void, void> {
  checkAddress(url);
  const tries = new Tries(url, options.signal, options.patience, options.known?.size !== undefined);
  const reading = new Reading(url, from, options);
  for (;;) {
    const before = reading.at;
    try {
      yield* reading.connect(tries.idle);
      return;
    } catch (e) {
      await tries.after(e, reading.at > before);
    }
  }
}

export interface SmallOptions extends Pick<RangeOptions, 'signal' | 'patience' | 'fetcher'> {
  headers?: Record<string, string>;
  /** Sees the answer before its body is read. */
  onAnswer?: (answer: Response) => void;
}

/** A small answer as a whole, at most max bytes. */
export async function fetchSmall(
  url: string, max: number, options: SmallOptions = {},
): Promise<Uint8Array> {
  checkAddress(url);
  const tries = new Tries(url, options.signal, options.patience);
  for (;;) {
    const connection = new Connection(tries.idle, options.signal, options.fetcher);
    try {
      const answer = await connection.open(url, options.headers ?? {});
      if (!answer.ok) refuse(url, answer);
      options.onAnswer?.(answer);
      const pieces: Uint8Array[] = [];
      let n = 0;
      for await (const piece of connection.body(answer)) {
        pieces.push(piece);
        n += piece.length;
        if (n > max) throw new BezelError(`${shortUrl(url)} is larger than ${max} bytes`, 'format');
      }
      return join(pieces, n);
    } catch (e) {
      await tries.after(e, false);
    } finally {
      connection.close();
    }
  }
}

function join(pieces: readonly Uint8Array[], n: number): Uint8Array {
  const all = new Uint8Array(n);
  let at = 0;
  for (const piece of pieces) {
    all.set(piece, at);
    at += piece.length;
  }
  return all;
}
