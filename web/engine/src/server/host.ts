// host - which model is loaded. One at a time: a request for another takes its place once that one
// is ready, and one that nobody has asked for in a while is given up. Requests come through one
// queue; answers of the same model are computed side by side. Knows no protocol.

import type { ChatCompletion, ChatCompletionChunk, Completion } from '../api/completions_types.js';
import { BezelError, show } from '../api/errors.js';
import type { Catalog, Entry } from './catalog.js';
import { HttpError } from './http.js';
import { FairQueue, type Slots } from './queue.js';

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
  /** It was ended, and answers no more. */
  readonly gone?: boolean;
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

/** Bytes that a model would take, and that are free for it. */
export interface Weighed {
  readonly bytes: number;
  readonly free: number;
}

export interface HostOptions {
  readonly load: (wish: LoadWish) => Promise<Served>;
  /** Looks at a model without loading it, while another is there that takes `used` bytes; throws
   *  where it cannot run. Absent: nothing is known before, and two models never fit. */
  readonly weigh?: (wish: LoadWish, used: number) => Promise<Weighed>;
  /** Requests that may wait. */
  readonly queue: number;
  /** Answers computed side by side; absent: one. */
  readonly slots?: Slots;
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
  /** Whose share of the queue it takes; absent: the client's own. */
  readonly household?: string | undefined;
  readonly signal: AbortSignal;
  readonly model: string | undefined;
  readonly context?: number | undefined;
  readonly keepMs?: number | undefined;
  /** Called at once where the request has to wait for others. */
  readonly onWait?: (() => void) | undefined;
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
  // the model that was there last: what requests without a name mean
  private last: string | undefined;
  private loading: Promise<Served> | undefined;
  private due = false; // who has just started will load another model
  private timer: NodeJS.Timeout | undefined;
  private readonly end = new AbortController();

  constructor(readonly catalog: Catalog, private readonly options: HostOptions) {
    this.queue = new FairQueue(options.queue, options.slots);
  }

  get loaded(): Loaded | undefined {
    return this.now;
  }

  /** The model that a request means; a name is needed only where there is no other. */
  async find(model: string | undefined): Promise<Entry> {
    const name = model || this.now?.entry.name || this.last || this.options.model;
    const entry = await this.catalog.find(name);
    if (!entry)
      throw new HttpError(
        404, `there is no model ${show(name)} on this machine`, 'model_not_found',
      );
    return entry;
  }

  /** Tokens that a request for this model can have at most, as far as is known before its turn. */
  contextOf(entry: Entry, wish = 0): number {
    const { now } = this;
    return now?.entry.name === entry.name ? Math.max(wish, now.engine.context) : Infinity;
  }

  /** Runs `work` with the model when the client's turn has come. */
  async use<T>(turn: Turn, work: (given: Given) => Promise<T>): Promise<T> {
    const entry = await this.find(turn.model);
    try {
      const wish = turn.context || this.options.context;
      const context = wish && Math.min(wish, await this.catalog.contextLength(entry));
      const job = (): Promise<T> =>
        this.limited(turn.signal, (signal) => this.answer(turn, entry, context, signal, work));
      const suits = (): boolean => !this.due && !this.loading && this.suits(entry, context);
      return await this.queue.run(turn.client, turn.signal, job, {
        beside: suits, onStart: () => (this.due = !suits()), onWait: turn.onWait,
        household: turn.household,
      });
    } catch (e) {
      throw this.catalog.withoutPaths(e, entry.name);
    }
  }

  private async answer<T>(
    turn: Turn, entry: Entry, context: number, signal: AbortSignal,
    work: (given: Given) => Promise<T>,
  ): Promise<T> {
    const begin = performance.now();
    clearTimeout(this.timer);
    // absent: what is there was not asked for, and stays as long as it would have
    let keepMs: number | undefined;
    try {
      const engine = await this.load(entry, context, signal);
      keepMs = turn.keepMs ?? this.options.keepMs;
      try {
        return await work({ engine, entry, signal, loadMs: performance.now() - begin });
      } catch (e) {
        // lost: the next request starts anew
        if (e instanceof BezelError && e.kind === 'device') await this.drop(engine);
        throw e;
      }
    } finally {
      this.keep(keepMs ?? this.left);
    }
  }

  /** Within the time that an answer may take. */
  private async limited<T>(
    outer: AbortSignal, job: (signal: AbortSignal) => Promise<T>,
  ): Promise<T> {
    const { answerMs } = this.options, inner = new AbortController();
    const late =
      new HttpError(504, `the answer took longer than ${Math.round(answerMs / 1000)} s`, 'timeout');
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
  async release(
    { client, household, signal }: Pick<Turn, 'client' | 'household' | 'signal'>, name: string,
  ): Promise<void> {
    const entry = await this.find(name);
    return this.queue.run(client, signal, async () => {
      if (this.now?.entry.name === entry.name) await this.unload();
    }, { household });
  }

  /** After what is under way, which the caller has cancelled. */
  async close(): Promise<void> {
    this.end.abort();
    await this.queue.run('', new AbortController().signal, () => this.unload());
  }

  /** Is what is loaded what a request wants? */
  private suits(entry: Entry, context: number): boolean {
    const { now } = this;
    return now !== undefined && !now.engine.gone && now.entry.name === entry.name
      && now.entry.manifest === entry.manifest && context <= now.engine.context;
  }

  private async load(entry: Entry, context: number, signal: AbortSignal): Promise<Served> {
    this.due = false; // from here on it is `loading`, or all is as it was
    while (this.loading) await this.loading.catch(() => {}); // whoever asked for it hears of it
    if (this.end.signal.aborted) throw new HttpError(503, 'the server is shutting down');
    if (this.now && this.suits(entry, context)) return this.now.engine;
    this.loading = this.replace({ entry, context, signal });
    try {
      return await this.loading;
    } finally {
      this.loading = undefined;
      this.queue.next(); // others may have waited for this very model
    }
  }

  private async replace(wish: LoadWish): Promise<Served> {
    const before = this.now;
    await this.makeRoom(wish);
    try {
      return await this.put(wish);
    } catch (e) {
      if (before && !this.now && !before.engine.gone && !this.end.signal.aborted)
        await this.bringBack(before);
      throw e;
    }
  }

  /** Loads a model in place of what is there by then. */
  private async put(wish: LoadWish, expires?: Date): Promise<Served> {
    const { entry } = wish;
    this.options.say?.(`loading ${entry.name}`);
    const engine = await this.options.load(wish);
    await this.unload();
    this.now = { entry, engine, expires };
    this.options.say?.(
      `${entry.name} is ready on the `
        + `${engine.device.backend === 'gpu' ? `GPU: ${engine.device.name}` : 'CPU'}`,
    );
    return engine;
  }

  /** The model that made room for one that could not be loaded after all. */
  private async bringBack({ entry, engine, expires }: Loaded): Promise<void> {
    try {
      await this.put({ entry, context: engine.context, signal: this.end.signal }, expires);
    } catch (e) {
      this.options.say?.(
        `${entry.name} could not be loaded again: ${e instanceof Error ? e.message : String(e)}`,
      );
    }
  }

  /** A model that cannot run must not cost the one that does: it is looked at first, and the other
   *  goes only where there is no room for both. What fails then all the same has it brought back.
   */
  private async makeRoom(wish: LoadWish): Promise<void> {
    if (!this.now) return;
    if (this.now.engine.gone || !this.options.weigh) return this.unload();
    const { bytes, free } = await this.options.weigh(wish, this.now.engine.bytes);
    if (1.25 * bytes > free) await this.unload(); // what loading itself takes comes on top
  }

  /** Milliseconds until what is there would leave. */
  private get left(): number {
    const at = this.now?.expires?.getTime();
    return at === undefined ? Infinity : Math.max(0, at - Date.now());
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
    if (this.now?.engine === engine && !this.queue.running)
      await this.queue.run('', new AbortController().signal, () => this.unload());
  }

  private async drop(engine: Served): Promise<void> {
    if (this.now?.engine === engine) await this.unload();
  }

  private async unload(): Promise<void> {
    clearTimeout(this.timer);
    const gone = this.now;
    this.last = gone?.entry.name ?? this.last;
    this.now = undefined;
    await gone?.engine.close();
  }
}
