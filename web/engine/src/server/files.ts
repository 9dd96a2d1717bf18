// files - the page: files of one folder, known by name before anyone asks. A request's path is
// looked up and never joined to a folder, so there is no way out of it. What packs well is kept
// packed in memory, once for all who ask; the rest is read from the disk as fast as it is taken.

import * as crypto from 'node:crypto';
import * as fs from 'node:fs';
import * as path from 'node:path';
import { promisify } from 'node:util';
import * as zlib from 'node:zlib';

import { sendContent } from './content.js';
import { HttpError, type Exchange } from './http.js';

const types: Readonly<Record<string, string>> = {
  '.html': 'text/html; charset=utf-8',
  '.js': 'text/javascript; charset=utf-8',
  '.mjs': 'text/javascript; charset=utf-8',
  '.css': 'text/css; charset=utf-8',
  '.json': 'application/json; charset=utf-8',
  '.map': 'application/json; charset=utf-8',
  '.webmanifest': 'application/manifest+json; charset=utf-8',
  '.wasm': 'application/wasm',
  '.svg': 'image/svg+xml',
  '.png': 'image/png',
  '.jpg': 'image/jpeg',
  '.webp': 'image/webp',
  '.ico': 'image/x-icon',
  '.woff2': 'font/woff2',
  '.woff': 'font/woff',
  '.ttf': 'font/ttf',
  '.txt': 'text/plain; charset=utf-8',
  '.wgsl': 'text/plain; charset=utf-8',
};

/** What downloads models for a person who typed an address: alone in a worker, which shows
 *  nothing and runs no text. */
const isDownloader = (name: string): boolean => /^\/assets\/store_worker-[\w-]+\.js$/.test(name);

// Styles in attributes are what maths is typeset with; scripts are only ever files of ours.
const policyWith = (connect: string): string => [
  "default-src 'none'",
  "script-src 'self' 'wasm-unsafe-eval'",
  "worker-src 'self'",
  "style-src 'self'",
  "style-src-attr 'unsafe-inline'",
  "img-src 'self' data: blob:",
  "font-src 'self'",
  `connect-src ${connect}`,
  "manifest-src 'self'",
  "frame-ancestors 'none'",
  "base-uri 'none'",
  "form-action 'none'",
].join('; ');

const headersWith = (connect: string): Readonly<Record<string, string>> => ({
  'content-security-policy': policyWith(connect), 'service-worker-allowed': '/',
});

/** The page and all of its scripts reach this server alone. */
export const pageHeaders = headersWith("'self'");

/** But for one worker (docs/design/0007): other sites, encrypted, and this machine's other
 *  servers. */
const downloaderHeaders = headersWith("'self' https: http://127.0.0.1:* http://localhost:*");

/** What goes with a file of the page. */
export const headersFor = (name: string): Readonly<Record<string, string>> =>
  (isDownloader(name) ? downloaderHeaders : pageHeaders);

type Packing = 'br' | 'gzip';

interface Known {
  readonly file: string;
  readonly changed: number;
  readonly size: number;
  digest?: Promise<string>;
  readonly packed: Map<Packing, Promise<Buffer>>;
}

// bytes of a file that is worth it, and that it is not too large for
const PACKED_LEAST = 1 << 10, PACKED_MOST = 8 << 20;
const packers: Readonly<Record<Packing, (bytes: Buffer) => Promise<Buffer>>> = {
  br: (bytes) => promisify<Buffer, zlib.BrotliOptions, Buffer>(zlib.brotliCompress)(bytes, {
    params: { [zlib.constants.BROTLI_PARAM_QUALITY]: 6 },
  }),
  gzip: (bytes) => promisify<Buffer, Buffer>(zlib.gzip)(bytes),
};

/** Text, and code that is as good as text. */
const packs = (type: string): boolean =>
  /^(text\/|application\/(json|manifest\+json|wasm)|image\/svg)/.test(type);

/** What the client takes, the better one first; "q=0" is a refusal. */
function packingFor(header: string | undefined): Packing | undefined {
  const taken = new Map((header ?? '').toLowerCase().split(',').map((one) => {
    const [name = '', ...rest] = one.split(';').map((t) => t.trim());
    return [name, !rest.some((r) => /^q=0(\.0*)?$/.test(r))] as const;
  }));
  return (['br', 'gzip'] as const).find((name) =>
    taken.get(name) ?? (name === 'gzip' && taken.get('*')));
}

async function digestOf(file: string): Promise<string> {
  const hash = crypto.createHash('sha256');
  for await (const part of fs.createReadStream(file)) hash.update(part as Buffer);
  return hash.digest('base64url').slice(0, 22);
}

/** Built files carry a hash in their name: what such a name means never changes. */
const isHashed = (name: string): boolean =>
  /[-.][A-Za-z0-9_-]{8,}\.[a-z0-9]+$/.test(name) && name.startsWith('/assets/');

export class Files {
  private readonly known = new Map<string, Known>();

  constructor(readonly root: string) {
    this.scan();
  }

  has(name: string): boolean {
    return this.known.has(name);
  }

  /** "/", a file, or a view of the page that has no file of its own. */
  async send(ex: Exchange): Promise<void> {
    const name = this.resolve(ex);
    if (name === '/index.html') this.scan(); // it may have been built anew
    const found = name === undefined ? undefined : this.known.get(name);
    if (!found || name === undefined) throw new HttpError(404, 'there is no such page');
    const type = types[path.extname(name).toLowerCase()] ?? 'application/octet-stream';
    const headers = {
      'cache-control': isHashed(name) ? 'public, max-age=31536000, immutable' : 'no-cache',
      ...headersFor(name),
    };
    found.digest ??= digestOf(found.file);
    found.digest.catch(() => delete found.digest); // who asks next tries again
    const digest = await found.digest;
    const packable = packs(type) && found.size >= PACKED_LEAST && found.size <= PACKED_MOST;
    if (packable) ex.res.appendHeader('vary', 'accept-encoding');
    const packing = packable && ex.req.headers.range === undefined
      ? packingFor(ex.req.headers['accept-encoding'])
      : undefined;
    if (packing) {
      const bytes = await this.pack(found, packing);
      return sendContent(ex, {
        size: bytes.length,
        etag: `"${digest}-${packing}"`,
        type,
        bytes,
        headers: { ...headers, 'content-encoding': packing },
      });
    }
    const bytes = await fs.promises.open(found.file);
    await sendContent(ex, { size: found.size, etag: `"${digest}"`, type, bytes, headers });
  }

  /** All who ask meanwhile wait for the same. */
  private pack(found: Known, packing: Packing): Promise<Buffer> {
    const made =
      found.packed.get(packing) ?? fs.promises.readFile(found.file).then(packers[packing]);
    found.packed.set(packing, made);
    made.catch(() => found.packed.delete(packing));
    return made;
  }

  private resolve(ex: Exchange): string | undefined {
    let name: string;
    try {
      name = decodeURIComponent(ex.path);
    } catch {
      throw new HttpError(400, 'the address is not well formed');
    }
    if (name === '/') return '/index.html';
    if (this.known.has(name)) return name;
    const isView = /^\/[\w-]*$/.test(name) && (ex.req.headers.accept ?? '').includes('text/html');
    return isView ? '/index.html' : undefined;
  }

  /** Plain files only: what a link points to is not part of the page. */
  private scan(): void {
    const before = new Map(this.known);
    this.known.clear();
    for (const e of fs.readdirSync(this.root, { recursive: true, withFileTypes: true })) {
      if (!e.isFile()) continue;
      const file = path.join(e.parentPath, e.name);
      const name = `/${path.relative(this.root, file).split(path.sep).join('/')}`;
      const { mtimeMs: changed, size } = fs.statSync(file);
      const old = before.get(name);
      this.known.set(
        name,
        old?.changed === changed && old.size === size
          ? old
          : { file, changed, size, packed: new Map() },
      );
    }
  }
}
