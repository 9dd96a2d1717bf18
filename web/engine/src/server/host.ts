// host - which model is loaded. One at a time: a request for another takes its place, and one that nobody has asked for
// in a while is given up. Requests take turns in one queue. Knows no protocol.

import type { ChatCompletion, ChatCompletionChunk, Completion } from '../completions_types.js';
import { BezelError } from '../wasm.js';
import type { Catalog, Entry } from './catalog.js';
import { HttpError } from './http.js';
import { FairQueue } from './queue.js';

/** A piece of an answer: what the engine's streams consist of. */
export type Chunk = ChatCompletionChunk | Completion;

/** As it came over the wire: the engine checks it. */
export type Request = Readonly<Record<string, unknown>>;
export type Kind = 'chat' | 'completions';

/** A model that answers. */
export interface Served {
  readonly device: { readonly backend: 'gpu' | 'cpu'; readonly name: string };
  readonly context: number;
  /** Bytes of memory that it takes. */
  readonly bytes: number;
  answer(kind: Kind, request: Request, signal: AbortSignal): Promise<ChatCompletion | Completion>;
  stream(kind: Kind, request: Request, signal: AbortSignal): AsyncIterable<Chunk>;
  close(): Promise<void>;
}

export interface LoadWish {
  readonly entry: Entry;
  /** Tokens; 0: what is usual. */
  readonly context: number;
  readonly signal: AbortSignal;
}

export interface HostOptions {
  readonly load: (wish: LoadWish) => Promise<Served>;
  readonly queue: number;
  readonly answerMs: number;
  /** For requests that name none. */
  readonly model: string;
  readonly context: number;
  /** How long a model stays after its last answer; Infinity: until another is asked for. */
  readonly keepMs: number;
  readonly say?: (line: string) => void;
}

export interface Turn {
  readonly client: string;
  readonly signal: AbortSignal;
  readonly model: string | undefined;
  readonly context?: number | undefined;
  readonly keepMs?: number | undefined;
}

export interface Given {
  readonly engine: Served;
  readonly entry: Entry;
  readonly signal: AbortSignal;
  readonly loadMs: number;
}

export interface Loaded {
  readonly entry: Entry;
  readonly engine: Served;
  readonly expires: Date | undefined;
}

export class Host {
  readonly queue: FairQueue;
  private now: Loaded | undefined;
  private timer: NodeJS.Timeout | undefined;
  private closed = false;

  constructor(readonly catalog: Catalog, private readonly options: HostOptions) {
    this.queue = new FairQueue(options.queue);
  }

  get loaded(): Loaded | undefined {
    return this.now;
  }

  /** The model that a request means; a name is needed only where there is no other. */
  async find(model: string | undefined): Promise<Entry> {
    const name = model || this.now?.entry.name || this.options.model;
    const entry = await this.catalog.find(name);
    if (!entry) throw new HttpError(404, `there is no model "${name}" on this machine`, 'model_not_found');
    return entry;
  }

  /** Runs `job` with the model when the client's turn has come. */
  async use<T>(turn: Turn, job: (given: Given) => Promise<T>): Promise<T> {
    const entry = await this.find(turn.model);
    const wish = turn.context || this.options.context;
    const context = wish && Math.min(wish, await this.catalog.contextLength(entry));
    return this.queue.run(turn.client, turn.signal, () => {
      clearTimeout(this.timer);
      return this.limited(turn.signal, async (signal) => {
        const begin = performance.now();
        const engine = await this.load(entry, context, signal);
        try {
          return await job({ engine, entry, signal, loadMs: performance.now() - begin });
        } catch (e) {
          if (e instanceof BezelError && e.kind === 'device') await this.unload(); // lost: the next request starts anew
          throw e;
        } finally {
          this.keep(turn.keepMs ?? this.options.keepMs);
        }
      });
    });
  }

  /** Within the time that an answer may take. */
  private async limited<T>(outer: AbortSignal, job: (signal: AbortSignal) => Promise<T>): Promise<T> {
    const { answerMs } = this.options, inner = new AbortController();
    const late = new HttpError(504, `the answer took longer than ${Math.round(answerMs / 1000)} s`, 'timeout');
    const leave = (): void => inner.abort(outer.reason);
    const timer = setTimeout(() => inner.abort(late), answerMs);
    outer.addEventListener('abort', leave, { once: true });
    if (outer.aborted) leave();
    try {
      return await job(inner.signal);
    } catch (e) {
      throw inner.signal.reason === late ? late : e;
    } finally {
      clearTimeout(timer);
      outer.removeEventListener('abort', leave);
    }
  }

  /** Give the model's memory back, after what is under way. */
  async release(client: string, signal: AbortSignal, name: string): Promise<void> {
    const entry = await this.find(name);
    return this.queue.run(client, signal, async () => {
      if (this.now?.entry.name === entry.name) await this.unload();
    });
  }

  /** After what is under way, which the caller has cancelled. */
  async close(): Promise<void> {
    this.closed = true;
    await this.queue.run('', new AbortController().signal, () => this.unload());
  }

  private async load(entry: Entry, context: number, signal: AbortSignal): Promise<Served> {
    if (this.closed) throw new HttpError(503, 'the server is shutting down');
    const same = this.now && this.now.entry.name === entry.name && this.now.entry.manifest === entry.manifest && context <= this.now.engine.context;
    if (this.now && same) return this.now.engine;
    await this.unload();
    this.options.say?.(`loading ${entry.name}`);
    const engine = await this.options.load({ entry, context, signal });
    this.now = { entry, engine, expires: undefined };
    this.options.say?.(`${entry.name} is ready on the ${engine.device.backend === 'gpu' ? `GPU: ${engine.device.name}` : 'CPU'}`);
    return engine;
  }

  private keep(ms: number): void {
    if (!this.now) return;
    clearTimeout(this.timer);
    const timed = ms <= 0x7fffffff; // what a timer can count; longer is as good as for ever
    this.now = { ...this.now, expires: timed ? new Date(Date.now() + ms) : undefined };
    const { engine } = this.now;
    if (timed) this.timer = setTimeout(() => void this.expire(engine), ms).unref();
  }

  /** A timer may fire while another request has begun: then that one decides. */
  private async expire(engine: Served): Promise<void> {
    if (this.now?.engine === engine && !this.queue.running) await this.queue.run('', new AbortController().signal, () => this.unload());
  }

  private async unload(): Promise<void> {
    clearTimeout(this.timer);
    const gone = this.now;
    this.now = undefined;
    await gone?.engine.close();
  }
}
