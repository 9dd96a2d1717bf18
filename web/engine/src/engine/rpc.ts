// rpc - calls and streams between two threads over one port.
//
// A call has plain parameters and a plain answer; it may report progress and be cancelled. A stream
// answers with items: the other side runs at most WINDOW items ahead of the reader, and leaving the
// loop ends it there too. Knows nothing of what is called.

import { BezelError, packError, unpackError, type PlainError } from '../api/errors.js';

/** Items on their way: enough to hide the port, few enough that a reader holds the writer back. */
export const WINDOW = 64;

/** A Worker, a MessagePort, or what a worker calls self. */
export interface Port {
  postMessage(message: unknown, transfer: Transferable[]): void;
  addEventListener(type: 'message', listener: (e: MessageEvent) => void): void;
  start?(): void;
}

/** What can be called, by name: its parameters, its answer (or item), and what it reports
 *  meanwhile. */
export interface Spec<P, R, G = never> {
  params: P;
  result: R;
  progress: G;
}
type Specs<C> = { [K in keyof C]: Spec<unknown, unknown, unknown> };

type Params<C extends Specs<C>, K extends keyof C> = C[K]['params'];
type Result<C extends Specs<C>, K extends keyof C> = C[K]['result'];
type ProgressOf<C extends Specs<C>, K extends keyof C> = C[K]['progress'];

interface Ask {
  rpc: 'ask';
  id: number;
  name: string;
  params: unknown;
  stream: boolean;
}
type ToServer = Ask | { rpc: 'abort'; id: number; reason: PlainError }
  | { rpc: 'more'; id: number; n: number } | { rpc: 'leave'; id: number };
type ToClient =
  | { rpc: 'progress'; id: number; value: unknown }
  | { rpc: 'item'; id: number; value: unknown }
  | { rpc: 'done'; id: number; value: unknown }
  | { rpc: 'failed'; id: number; error: PlainError };

/** Buffers that move instead of being copied: a value wrapped so by its maker. */
export class Moved<T> {
  constructor(readonly value: T, readonly buffers: Transferable[]) {}
}

const unwrap = (value: unknown): [unknown, Transferable[]] =>
  (value instanceof Moved ? [value.value, value.buffers] : [value, []]);

export interface CallOptions<P> {
  signal?: AbortSignal | undefined;
  onProgress?: ((value: P) => void) | undefined;
  transfer?: Transferable[];
}

interface Pending {
  progress(value: unknown): void;
  item(value: unknown): void;
  done(value: unknown): void;
  failed(error: unknown): void;
}

/** The side that asks, whatever lies between. */
export interface Link<C extends Specs<C>, S extends Specs<S>> {
  call<K extends keyof C & string>(
    name: K, params: Params<C, K>, options?: CallOptions<ProgressOf<C, K>>,
  ): Promise<Result<C, K>>;
  /** Nothing is asked before the first item is wanted. */
  stream<K extends keyof S & string>(
    name: K, params: Params<S, K>, options?: CallOptions<ProgressOf<S, K>>,
  ): AsyncGenerator<Result<S, K>, void, void>;
}

/** Asks through a port. */
export class Client<C extends Specs<C>, S extends Specs<S>> implements Link<C, S> {
  private readonly pending = new Map<number, Pending>();
  private next = 1;
  private dead: unknown;

  constructor(private readonly port: Port) {
    port.addEventListener('message', (e) => this.take(e.data as ToClient));
    port.start?.();
  }

  /** Nobody answers any more: everything under way and everything to come fails with this. */
  die(error: unknown): void {
    this.dead ??= { error };
    const all = [...this.pending.values()];
    this.pending.clear();
    for (const p of all) p.failed(error);
  }

  private take(m: ToClient): void {
    const p = this.pending.get(m.id);
    if (!p) return; // it was cancelled meanwhile
    if (m.rpc === 'progress') p.progress(m.value);
    else if (m.rpc === 'item') p.item(m.value);
    else {
      this.pending.delete(m.id);
      if (m.rpc === 'done') p.done(m.value);
      else p.failed(unpackError(m.error));
    }
  }

  private post(message: ToServer, transfer: Transferable[] = []): void {
    this.port.postMessage(message, transfer);
  }

  /** Ask, and see to it that the signal is heard until the answer came. */
  private ask(ask: Omit<Ask, 'id' | 'rpc'>, pending: Pending, options: CallOptions<never>): number {
    const { signal } = options;
    signal?.throwIfAborted();
    if (this.dead) throw (this.dead as { error: unknown }).error;
    const id = this.next++;
    const onAbort = (): void => {
      this.pending.delete(id);
      this.post({ rpc: 'abort', id, reason: packError(signal?.reason) });
      pending.failed(signal?.reason);
    };
    const over = (): void => signal?.removeEventListener('abort', onAbort);
    this.pending.set(id, {
      progress: pending.progress,
      item: pending.item,
      done: (value) => (over(), pending.done(value)),
      failed: (error) => (over(), pending.failed(error)),
    });
    try {
      this.post({ rpc: 'ask', id, ...ask }, options.transfer);
    } catch (e) {
      this.pending.delete(id);
      throw new BezelError(
        `"${ask.name}" was asked with something that cannot be sent to a worker `
          + `(${(e as Error).message})`,
        'argument',
        e,
      );
    }
    signal?.addEventListener('abort', onAbort, { once: true });
    return id;
  }

  call<K extends keyof C & string>(
    name: K, params: Params<C, K>, options: CallOptions<ProgressOf<C, K>> = {},
  ): Promise<Result<C, K>> {
    return new Promise((resolve, reject) => {
      const pending: Pending = {
        progress: (value) => options.onProgress?.(value as ProgressOf<C, K>),
        item: () => {},
        done: (value) => resolve(value as Result<C, K>),
        failed: reject,
      };
      this.ask({ name, params, stream: false }, pending, options as CallOptions<never>);
    });
  }

  async *stream<K extends keyof S & string>(
    name: K, params: Params<S, K>, options: CallOptions<ProgressOf<S, K>> = {},
  ): AsyncGenerator<Result<S, K>, void, void> {
    const items: Result<S, K>[] = [];
    let end: { error?: unknown } | undefined;
    let wake = (): void => {};
    const pending: Pending = {
      progress: (value) => options.onProgress?.(value as ProgressOf<S, K>),
      item: (value) => (items.push(value as Result<S, K>), wake()),
      done: () => ((end = {}), wake()),
      failed: (error) => ((end = { error }), wake()),
    };
    const id = this.ask({ name, params, stream: true }, pending, options as CallOptions<never>);
    try {
      for (let taken = 0; ;) {
        // An abort is heard at once; otherwise what was made before the end comes first.
        if (end && 'error' in end && (options.signal?.aborted || !items.length)) throw end.error;
        if (!items.length) {
          if (end) return;
          await new Promise<void>((resolve) => (wake = resolve));
          continue;
        }
        const item = items.shift() as Result<S, K>;
        if (++taken % (WINDOW / 2) === 0) this.post({ rpc: 'more', id, n: WINDOW / 2 });
        yield item;
      }
    } finally {
      if (!end) {
        // The other side may be busy with the model until it has heard; whoever asks next waits in
        // its queue.
        const over = this.pending.get(id);
        this.post({ rpc: 'leave', id });
        over?.done(undefined);
        this.pending.delete(id);
      }
    }
  }
}

/** What a handler may use besides its parameters. */
export interface Context<P> {
  signal: AbortSignal;
  progress(value: P): void;
}

export type Handlers<C extends Specs<C>> = { [K in keyof C]: (
  params: Params<C, K>, context: Context<ProgressOf<C, K>>,
) => Promise<Result<C, K> | Moved<Result<C, K>>> };
export type Streams<S extends Specs<S>> = { [K in keyof S]: (
  params: Params<S, K>, context: Context<ProgressOf<S, K>>,
) => AsyncGenerator<Result<S, K>, void, void> };

interface Running {
  abort: AbortController;
  credit: number;
  left: boolean;
  wake(): void;
}

/** Asks in the same thread. */
export function direct<C extends Specs<C>, S extends Specs<S>>(
  calls: Partial<Handlers<C>>, streams: Partial<Streams<S>>,
): Link<C, S> {
  const absent = (name: string): never => {
    throw new BezelError(`there is nothing called "${name}" here`, 'argument');
  };
  const contextOf = <P>(options: CallOptions<P>): Context<P> => ({
    signal: options.signal ?? new AbortController().signal,
    progress: (value) => options.onProgress?.(value),
  });
  return {
    async call(name, params, options = {}) {
      options.signal?.throwIfAborted();
      const value = await (calls[name] ?? absent(name))(params, contextOf(options));
      return value instanceof Moved ? value.value : value;
    },
    stream(name, params, options = {}) {
      // which begins when its first item is wanted
      return (streams[name] ?? absent(name))(params, contextOf(options));
    },
  };
}

/** Answers through a port. The tables are looked up when a call comes, so they may still grow. */
export function serve<C extends Specs<C>, S extends Specs<S>>(
  port: Port, calls: Partial<Handlers<C>>, streams: Partial<Streams<S>>,
): void {
  const running = new Map<number, Running>();
  const post = (message: ToClient, transfer: Transferable[] = []): void =>
    port.postMessage(message, transfer);

  async function flow(ask: Ask, task: Running, items: AsyncIterable<unknown>): Promise<void> {
    for await (const item of items) {
      if (task.left) return; // also ends the iterable
      const [value, transfer] = unwrap(item);
      post({ rpc: 'item', id: ask.id, value }, transfer);
      task.credit--;
      while (task.credit <= 0 && !task.left && !task.abort.signal.aborted)
        await new Promise<void>((resolve) => (task.wake = resolve));
      if (task.left) return;
    }
  }

  async function answer(ask: Ask): Promise<void> {
    const task: Running = {
      abort: new AbortController(), credit: WINDOW, left: false, wake: () => {},
    };
    const context: Context<unknown> = {
      signal: task.abort.signal, progress: (value) => post({ rpc: 'progress', id: ask.id, value }),
    };
    running.set(ask.id, task);
    try {
      const table = (ask.stream ? streams : calls) as Record<string, unknown>;
      const handler = Object.hasOwn(table, ask.name) ? table[ask.name] : undefined;
      if (typeof handler !== 'function')
        throw new BezelError(`there is nothing called "${ask.name}" here`, 'argument');
      let value: unknown, transfer: Transferable[] = [];
      if (ask.stream) await flow(ask, task, handler(ask.params, context) as AsyncIterable<unknown>);
      else [value, transfer] = unwrap(await (handler(ask.params, context) as Promise<unknown>));
      post({ rpc: 'done', id: ask.id, value }, transfer);
    } catch (e) {
      post({ rpc: 'failed', id: ask.id, error: packError(e) });
    } finally {
      running.delete(ask.id);
    }
  }

  port.addEventListener('message', (e) => {
    const m = e.data as ToServer;
    if (m.rpc === 'ask') return void answer(m);
    const task = running.get(m.id);
    if (!task) return;
    if (m.rpc === 'more') task.credit += m.n;
    else if (m.rpc === 'abort') task.abort.abort(unpackError(m.reason));
    else {
      task.left = true;
      task.abort.abort(new DOMException('The reader left.', 'AbortError'));
    }
    task.wake();
  });
  port.start?.();
}
