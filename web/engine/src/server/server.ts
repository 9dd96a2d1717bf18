// server - sockets and routes: the page, the store, and two protocols to one engine. On loopback
// unless told otherwise.
//
//   /                      the page                    /bezel/manifest/NAME   a model's manifest
//   /health                how it stands               /bezel/blob/DIGEST     its bytes, by ranges
//   /v1/...                OpenAI's protocol           /api/...               Ollama's

import * as crypto from 'node:crypto';
import * as http from 'node:http';
import type { AddressInfo } from 'node:net';

import type { Catalog } from './catalog.js';
import { Changes, type ChangeOptions } from './changes.js';
import { sendContent } from './content.js';
import { pageHeaders, type Files } from './files.js';
import { Guard, type GuardOptions } from './guard.js';
import type { Host } from './host.js';
import { defaultLimits, Gone, HttpError, sendJson, type Exchange, type Limits } from './http.js';
import * as ollama from './ollama.js';
import * as openai from './openai.js';

export interface ServerOptions extends GuardOptions {
  readonly catalog: Catalog;
  readonly host: Host;
  /** The built page; undefined where there is none. */
  readonly files: Files | undefined;
  readonly version: string;
  readonly limits?: Partial<Limits>;
  /** How models are pulled, made and deleted; absent: they are not. */
  readonly changes?: ChangeOptions;
  /** Facts for /health, asked when it is. */
  readonly health?: () => Record<string, unknown>;
  /** Failures that are ours. */
  readonly say?: (line: string) => void;
}

/** Milliseconds that a connection is kept between two requests: long enough for a person to type
 *  the next question. */
const KEEP_ALIVE = 75_000;

type Handler = (ex: Exchange, rest: string) => Promise<void> | void;

/** What no answer goes without. */
const common: Readonly<Record<string, string>> = {
  'x-content-type-options': 'nosniff',
  'referrer-policy': 'no-referrer',
  'cross-origin-resource-policy': 'same-origin',
};

/** Paths of programs; all others are the page's. */
const isApi = (path: string): boolean => /^\/(v1|api|bezel|health)(\/|$)/.test(path);

function decode(text: string): string {
  try {
    return decodeURIComponent(text);
  } catch {
    throw new HttpError(400, 'the address is not well formed');
  }
}

export class Server {
  private readonly guard: Guard;
  private readonly limits: Limits;
  private readonly listening: http.Server[] = [];
  private readonly live = new Set<AbortController>(); // one a request
  private readonly connectionIds = new WeakMap<object, string>();
  private connections = 0;
  private readonly bodies = { bytes: 0 };
  private readonly changes: Changes | undefined;
  private readonly exact: ReadonlyMap<string, Handler>;
  private readonly below: readonly (readonly [string, Handler])[];

  constructor(private readonly options: ServerOptions) {
    this.guard = new Guard(options);
    this.limits = { ...defaultLimits, ...options.limits };
    const { host, catalog, changes } = options;
    this.changes = changes && new Changes(catalog, host, changes);
    this.exact = new Map<string, Handler>([
      ['GET /health', (ex) => this.health(ex)],
      ['GET /v1/models', (ex) => openai.listModels(ex, host)],
      ['POST /v1/chat/completions', (ex) => openai.complete(ex, host, 'chat')],
      ['POST /v1/completions', (ex) => openai.complete(ex, host, 'completions')],
      [
        'GET /api/version',
        (ex) => sendJson(ex, 200, { version: ollama.VERSION, bezel: options.version }),
      ],
      ['GET /api/tags', (ex) => ollama.tags(ex, catalog)],
      ['GET /api/ps', (ex) => ollama.running(ex, host)],
      ['POST /api/show', (ex) => ollama.show(ex, host)],
      ['POST /api/chat', (ex) => ollama.chat(ex, host)],
      ['POST /api/generate', (ex) => ollama.generate(ex, host)],
      ['POST /api/pull', this.change((c, ex) => c.pull(ex))],
      ['DELETE /api/delete', this.change((c, ex) => c.remove(ex))],
      ['POST /api/copy', this.change((c, ex) => c.copy(ex))],
      ['POST /api/create', this.change((c, ex) => c.create(ex))],
    ]);
    this.below = [
      [
        'GET /v1/models/',
        (ex, name) => (name ? openai.showModel(ex, host, name) : openai.listModels(ex, host)),
      ],
      ['GET /bezel/manifest/', (ex, name) => this.manifest(ex, name)],
      ['GET /bezel/blob/', (ex, digest) => this.blob(ex, digest)],
      ['GET /api/blobs/', this.change((c, ex, name) => c.hasBlob(ex, name))],
      ['POST /api/blobs/', this.change((c, ex, name) => c.putBlob(ex, name))],
    ];
  }

  /** A route that changes this machine: for few, and where it is wanted at all. */
  private change(work: (changes: Changes, ex: Exchange, rest: string) => Promise<void>): Handler {
    return (ex, rest) => {
      this.guard.checkChange(ex.req);
      return this.changes ? work(this.changes, ex, rest) : Changes.refuse(ex);
    };
  }

  /** The port, the same on each address. One that this machine does not have (no IPv6) is left
   *  out. */
  async listen(port: number, addresses: readonly string[]): Promise<number> {
    for (const address of addresses) {
      try {
        port = await this.open(port, address);
      } catch (e) {
        const absent = ['EADDRNOTAVAIL', 'EAFNOSUPPORT', 'EINVAL'].includes(
          (e as NodeJS.ErrnoException).code ?? '',
        );
        if (!absent || !this.listening.length) throw e;
      }
    }
    return port;
  }

  /** No new requests; those under way are cancelled, and the model is given up. */
  async close(): Promise<void> {
    const all = this.listening.map((s) => new Promise((done) => s.close(done)));
    for (const request of this.live) request.abort();
    for (const s of this.listening) s.closeIdleConnections();
    const late =
      setTimeout(() => this.listening.forEach((s) => s.closeAllConnections()), 1000).unref();
    await Promise.all(all);
    clearTimeout(late);
    await this.options.host.close();
  }

  private open(port: number, address: string): Promise<number> {
    const server = http.createServer({
      maxHeaderSize: this.limits.headerBytes, headersTimeout: this.limits.headerMs,
      requestTimeout: this.limits.requestMs, connectionsCheckingInterval: 1000,
      keepAliveTimeout: KEEP_ALIVE,
    });
    server.maxConnections = this.limits.connections;
    server.on('request', (req, res) => void this.serve(req, res));
    return new Promise((done, failed) => {
      server.once('error', failed);
      server.listen({ port, host: address, ipv6Only: address.includes(':') }, () => {
        server.off('error', failed);
        this.listening.push(server);
        done((server.address() as AddressInfo).port);
      });
    });
  }

  private async serve(req: http.IncomingMessage, res: http.ServerResponse): Promise<void> {
    const [path = ''] = (req.url ?? '').split('?', 1);
    const gone = new AbortController();
    this.live.add(gone);
    res.on('close', () => {
      this.live.delete(gone);
      gone.abort();
    });
    const household = JSON.stringify([req.socket.remoteAddress, req.headers.authorization]);
    const client = [household, req.headers.origin, req.headers['user-agent']].join(' ');
    const ex: Exchange = {
      req, res, method: req.method ?? '', path, client, household, bodies: this.bodies,
      scope: this.scopeOf(req), tell: (e) => this.tell(ex, e), signal: gone.signal,
      limits: this.limits,
    };
    for (const [name, value] of Object.entries(common)) res.setHeader(name, value);
    res.setHeader('x-request-id', `req_${crypto.randomUUID().replaceAll('-', '')}`);
    try {
      if (!path.startsWith('/')) throw new HttpError(400, 'the address is not well formed');
      for (const [name, value] of Object.entries(this.guard.check(req, !isApi(path))))
        res.setHeader(name, value);
      await this.route(ex);
    } catch (e) {
      this.fail(ex, e);
    }
  }

  private async route(ex: Exchange): Promise<void> {
    if (ex.method === 'OPTIONS') {
      ex.res.writeHead(204, { allow: 'GET, HEAD, POST, OPTIONS' }).end();
      return;
    }
    if (!['GET', 'HEAD', 'POST'].includes(ex.method) && !this.exact.has(`${ex.method} ${ex.path}`))
      throw new HttpError(405, `there is no ${ex.method} here`, null, {
        allow: 'GET, HEAD, POST, OPTIONS',
      });
    if (isApi(ex.path)) return this.api(ex);
    if (ex.method === 'POST')
      throw new HttpError(405, 'pages are read with GET', null, { allow: 'GET, HEAD' });
    if (this.options.files) return this.options.files.send(ex);
    if (ex.path !== '/') throw new HttpError(404, 'there is no such page');
    ex.res.writeHead(200, { ...pageHeaders, 'content-type': 'text/plain; charset=utf-8' });
    ex.res.end('Bezel is running. Its page has not been built: make app\n');
  }

  private async api(ex: Exchange): Promise<void> {
    const method = ex.method === 'HEAD' ? 'GET' : ex.method;
    const handler = this.exact.get(`${method} ${ex.path}`);
    if (handler) return handler(ex, '');
    const found = this.below.find(([start]) => `${method} ${ex.path}`.startsWith(start));
    if (found) return found[1](ex, decode(`${method} ${ex.path}`.slice(found[0].length)));
    const other = ['GET', 'POST', 'DELETE'].find((m) => this.exact.has(`${m} ${ex.path}`));
    if (other !== undefined)
      throw new HttpError(405, `${ex.path} is asked with ${other}`, null, { allow: other });
    throw new HttpError(404, `there is no ${ex.path} here`);
  }

  private health(ex: Exchange): void {
    const { host, version, health } = this.options;
    const now = host.loaded;
    sendJson(ex, 200, {
      status: 'ok',
      version,
      model: now?.entry.name ?? null,
      device: now?.engine.device ?? null,
      ...health?.(),
      queue: { running: host.queue.running, waiting: host.queue.waiting, limit: this.limits.queue },
    });
  }

  private async manifest(ex: Exchange, name: string): Promise<void> {
    const entry = await this.options.catalog.find(name);
    if (!entry?.manifest)
      throw new HttpError(404, `there is no model "${name}" on this machine`, 'model_not_found');
    const bytes = Buffer.from(entry.manifest);
    await sendContent(ex, {
      size: bytes.length,
      etag: `"${crypto.createHash('sha256').update(bytes).digest('hex')}"`,
      type: 'application/json; charset=utf-8',
      bytes,
      headers: { 'cache-control': 'no-cache' },
    });
  }

  private async blob(ex: Exchange, digest: string): Promise<void> {
    const content = await this.options.catalog.blob(digest);
    if (!content) throw new HttpError(404, 'there is no such blob');
    await sendContent(ex, content);
  }

  /** A key names a client. Without one only a connection is sure to be one client's: programs of
   *  many people come from one address, and every other header can be copied. A browser or a proxy
   *  may send requests of several over one connection. */
  private scopeOf({ socket, headers }: http.IncomingMessage): string {
    if (headers.authorization)
      return JSON.stringify([socket.remoteAddress, headers.origin, headers.authorization]);
    const known = this.connectionIds.get(socket) ?? String(++this.connections);
    this.connectionIds.set(socket, known);
    return JSON.stringify([known, headers.origin, headers['x-forwarded-for'] ?? headers.forwarded]);
  }

  private tell(ex: Exchange, e: unknown): unknown {
    if (openai.httpStatus(e) === 500) {
      this.options.say?.(
        `${String(ex.res.getHeader('x-request-id'))} ${ex.method} ${ex.path}: `
          + `${e instanceof Error ? (e.stack ?? e.message) : String(e)}`,
      );
      return new Error('something went wrong in the server; its terminal says what');
    }
    return this.options.catalog.withoutPaths(e, 'the model');
  }

  private fail(ex: Exchange, e: unknown): void {
    const { res } = ex;
    if (e instanceof Gone || ex.signal.aborted || res.headersSent) {
      res.destroy();
      return;
    }
    const shown = ex.tell(e);
    sendJson(
      ex,
      openai.httpStatus(e),
      ex.path.startsWith('/api/') ? ollama.ollamaError(shown) : openai.openaiError(shown),
      e instanceof HttpError ? e.headers : {},
    );
  }
}
