// changes - routes that change what is on this machine: Ollama's pull, delete, copy, create and
// blobs. For the machine's own programs and the server's own page alone (guard.ts: checkChange).
// Models come from the registry and the hub that the server was started with and from nowhere else.

import { pull, type PullStatus } from '../pull/pull.js';
import type { Sites } from '../pull/reference.js';
import type { Token } from '../pull/token.js';
import type { DiskWriter } from '../store/disk_writer.js';
import { BezelError, type Core } from '../engine/wasm.js';
import type { Catalog } from './catalog.js';
import { createModel, readWish } from './create.js';
import type { Host } from './host.js';
import { Gone, HttpError, readJson, sendJson, type Exchange } from './http.js';
import { tellWork } from './lines.js';
import { flag, modelOf, text } from './ollama.js';

const PULLS = 4; // side by side

export interface ChangeOptions extends Sites {
  readonly core: Core;
  /** The store that is changed; it is made when the first model comes. */
  readonly writer: () => Promise<DiskWriter>;
  readonly token?: () => Token | undefined;
  readonly agent?: string;
  readonly say?: (line: string) => void;
}

/** What a client can do nothing about: sites, and a disk. Its sentence is told all the same. */
const statuses: Readonly<Partial<Record<string, number>>> = { io: 502, limit: 507 };

export class Changes {
  private pulls = 0;
  private opened: Promise<DiskWriter> | undefined;

  constructor(
    private readonly catalog: Catalog,
    private readonly host: Host,
    private readonly options: ChangeOptions,
  ) {}

  private writer(): Promise<DiskWriter> {
    return (this.opened ??= this.options.writer().catch((e: unknown) => {
      this.opened = undefined; // the next change tries again
      throw e;
    }));
  }

  private async told<T>(work: () => Promise<T>): Promise<T> {
    try {
      return await work();
    } catch (e) {
      const said = this.catalog.withoutPaths(e, 'the model');
      const status = said instanceof BezelError ? statuses[said.kind] : undefined;
      throw status === undefined ? e : new HttpError(status, (said as BezelError).message);
    }
  }

  async pull(ex: Exchange): Promise<void> {
    const body = await readJson(ex), name = modelOf(body), stream = flag(body, 'stream', true);
    if (flag(body, 'insecure', false))
      throw new HttpError(400, '"insecure" is for who starts the server (bezel serve --insecure)');
    await this.told(() => tellWork(ex, stream, (tell) => this.bring(ex, name, tell)));
  }

  private async bring(
    ex: Exchange, name: string, tell: (line: PullStatus) => void,
  ): Promise<void> {
    if (this.pulls >= PULLS)
      throw new HttpError(503, `${PULLS} models are being pulled already`, null, {
        'retry-after': '30',
      });
    this.pulls++;
    const { core, writer: _, say, ...options } = this.options;
    try {
      say?.(`pulling ${JSON.stringify(name)} for a client`);
      await pull(core, await this.writer(), name, {
        ...options, only: true, signal: ex.signal,
        onNews: ({ loaded: _l, of: _o, ...line }) => tell(line),
        onNotice: (sentence) => say?.(sentence),
      });
    } finally {
      this.pulls--;
    }
  }

  async remove(ex: Exchange): Promise<void> {
    const name = modelOf(await readJson(ex));
    await this.told(async () => {
      const entry = await this.catalog.find(name);
      if (entry?.file !== undefined)
        throw new HttpError(400, `${entry.name} ships with Bezel and is not in the store`);
      if (!entry || !this.catalog.store)
        throw new HttpError(
          404, `there is no model ${JSON.stringify(name)} on this machine`, 'model_not_found',
        );
      const writer = await this.writer();
      if (this.host.loaded?.entry.name === entry.name) await this.host.release(ex, entry.name);
      await writer.remove(entry.name);
      this.options.say?.(`${entry.name} was deleted by a client`);
    });
    ex.res.writeHead(200, { 'content-length': 0 }).end();
  }

  async copy(ex: Exchange): Promise<void> {
    const body = await readJson(ex), from = text(body, 'source'), to = text(body, 'destination');
    if (!from || !to) throw new HttpError(400, '"source" and "destination" are names of models');
    await this.told(async () => {
      await (await this.writer()).copy(from, to);
    });
    ex.res.writeHead(200, { 'content-length': 0 }).end();
  }

  async create(ex: Exchange): Promise<void> {
    const body = await readJson(ex), stream = flag(body, 'stream', true);
    const wish = readWish(body, modelOf(body));
    await this.told(() => tellWork(ex, stream, async (tell) => {
      const { core } = this.options, writer = await this.writer();
      if (wish.from !== undefined && !(await this.catalog.find(wish.from)))
        await this.bring(ex, wish.from, tell);
      const made = await createModel({ core, writer, catalog: this.catalog }, wish, (status) =>
        tell({ status }));
      this.options.say?.(`${made.short} was created by a client`);
    }));
  }

  /** Is a blob there that `create` may name? */
  async hasBlob(ex: Exchange, name: string): Promise<void> {
    const size = await (await this.writer()).blobSize(digestOf(name));
    ex.res.writeHead(size === undefined ? 404 : 200).end();
  }

  async putBlob(ex: Exchange, name: string): Promise<void> {
    const digest = digestOf(name);
    const status = await this.told(() => this.takeBlob(ex, digest)).finally(() => rest(ex));
    ex.res.writeHead(status, { 'content-length': 0 }).end();
  }

  private async takeBlob(ex: Exchange, digest: string): Promise<number> {
    const writer = await this.writer();
    if ((await writer.blobSize(digest)) !== undefined) return 200;
    await writer.needRoom('the blob', Number(ex.req.headers['content-length'] ?? 0));
    const whole = await writer.putBytes(digest, ex.req as AsyncIterable<Buffer>).catch(
      (e: unknown) => {
        throw ex.signal.aborted ? new Gone() : e;
      },
    );
    if (!whole) throw new HttpError(400, `what was sent has not the digest sha256:${digest}`);
    return 201;
  }

  /** Where changes are not wanted. */
  static refuse(ex: Exchange): void {
    sendJson(ex, 403, { error: 'this server does not change its models (bezel serve --no-pull)' });
  }
}

/** What was sent and not wanted is read to its end: a client looks at the answer only then. */
async function rest({ req, signal }: Exchange): Promise<void> {
  if (req.readableEnded || signal.aborted) return;
  await new Promise<void>((done) => {
    req.once('end', done).once('close', done).resume();
  });
}

function digestOf(name: string): string {
  const [, hex] = /^sha256[:-]([0-9a-f]{64})$/.exec(name) ?? [];
  if (hex === undefined) throw new HttpError(400, 'a blob is named sha256:<64 hex digits>');
  return hex;
}

