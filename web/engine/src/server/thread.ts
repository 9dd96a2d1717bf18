// thread - the engine in a thread of its own. On the CPU a step holds its thread up for as long as
// it computes; the server must go on listening meanwhile, and notice who leaves. Ending the thread
// gives all of its memory back, and ends any call into the core, however long it would have taken.

import * as os from 'node:os';
import { Worker as Thread, type TransferListItem } from 'node:worker_threads';

import { Engine } from '../api/engine.js';
import type { AdapterSource, NameResolver } from '../api/engine_source.js';
import { BezelError } from '../api/errors.js';
import { bounded } from './bounds.js';
import type { Chunk, Kind, LoadWish, Request, Served, Weighed } from './host.js';

const CONVERSATIONS = 4; // of clients that take turns, kept as long as there is memory for them
const GRACE = 1000; // milliseconds to close what is open; then the thread is ended
const HANG = 5000; // milliseconds in which a thread whose client left must show a sign of life

const wait = (ms: number): Promise<void> =>
  new Promise((done) => void setTimeout(done, ms).unref());

/** A thread of Node as the Worker that Engine talks to. */
class ThreadWorker extends EventTarget {
  private readonly thread = new Thread(new URL('./thread_entry.js', import.meta.url));
  private readonly over = new Promise<void>((done) => this.thread.once('exit', () => done()));
  /** It has read its modules, and said something. */
  private readonly started = new Promise<void>((done) =>
    this.thread.once('message', () => done()).once('exit', () => done()));

  constructor() {
    super();
    this.thread.unref(); // the sockets keep the process alive
    this.thread.on('message', (data) => this.dispatchEvent(new MessageEvent('message', { data })));
    this.thread.on('messageerror', () => this.dispatchEvent(new Event('messageerror')));
    this.thread.on('error', (e) =>
      this.dispatchEvent(Object.assign(new Event('error'), { message: e.message })));
    this.thread.on('exit', () =>
      this.dispatchEvent(Object.assign(new Event('error'), { message: 'its thread ended' })));
  }

  postMessage(message: unknown, transfer: readonly TransferListItem[]): void {
    this.thread.postMessage(message, transfer);
  }

  /** Files that a thread of Node is just opening stay open for ever when it ends: its modules
   *  are dozens of them. */
  terminate(): void {
    void this.started.then(() => this.thread.terminate());
  }

  /** The process waits for what is asked of it now, also when no socket is left. */
  keepAlive(): void {
    this.thread.ref();
  }

  /** Until nothing of it is left: whoever comes next must not find it still there. */
  async end(): Promise<void> {
    this.keepAlive();
    this.terminate();
    await Promise.race([this.over, wait(GRACE)]);
    this.thread.unref();
  }

  /** As what a page has. */
  get asWorker(): Worker {
    return this as unknown as Worker;
  }
}

interface Surface {
  create(request: Request, options: { signal: AbortSignal }): Promise<unknown>;
}

export interface ThreadOptions {
  readonly backend: 'gpu' | 'cpu';
  readonly store: NameResolver | undefined;
  readonly adapters?: readonly AdapterSource[];
  /** Answers computed side by side at most. */
  readonly answers: number;
  readonly say?: (line: string) => void;
}

/** Ends a thread that is stuck in a call that nobody wants any more. */
class Watch {
  private looking = false;
  stuck = false;

  constructor(
    private readonly engine: Engine,
    private readonly worker: ThreadWorker,
    private readonly say: ((line: string) => void) | undefined,
  ) {}

  /** Look after the thread should the signal fire; call what is returned when the answer is
   *  there. */
  over(signal: AbortSignal): () => void {
    const look = (): void => void this.look();
    signal.addEventListener('abort', look, { once: true });
    return () => signal.removeEventListener('abort', look);
  }

  private async look(): Promise<void> {
    if (this.looking || this.stuck) return;
    this.looking = true;
    const alive = this.engine.memory().then(() => true, () => true); // what has failed is not stuck
    const answered = await Promise.race([alive, wait(HANG).then(() => false)]);
    this.looking = false;
    if (answered) return;
    this.stuck = true;
    this.say?.(
      `a request that was cancelled still computes after ${HANG / 1000} s: its thread is replaced`,
    );
    this.worker.terminate();
  }
}

/** What a model would take and what is free beside the `used` bytes of another, from its header
 *  alone; throws where it cannot run here. */
export async function weighInThread(
  { backend, store }: ThreadOptions, { entry, context, signal }: LoadWish, used: number,
): Promise<Weighed> {
  const worker = new ThreadWorker();
  const { total, available, fits, reason } = await Engine.estimate(entry.file ?? entry.name, {
    backend, signal, worker: worker.asWorker,
    ...(backend === 'cpu' && { memory: os.totalmem() }),
    ...(store && { store }),
    ...(context && { context }),
  }).finally(() => worker.end());
  if (!fits) throw new BezelError(reason ?? 'there is not enough memory for this model', 'memory');
  return { bytes: total, free: backend === 'cpu' ? process.availableMemory() : available - used };
}

export async function loadInThread(
  { backend, store, adapters = [], answers, say }: ThreadOptions,
  { entry, context, signal }: LoadWish,
): Promise<Served> {
  const worker = new ThreadWorker();
  const engine = await Engine.load(entry.file ?? entry.name, {
    backend,
    signal,
    worker: worker.asWorker,
    adapters,
    sessions: Math.max(CONVERSATIONS, answers),
    shared: Math.max(CONVERSATIONS, answers),
    ...(store && { store }),
    ...(context && { context }),
  }).catch(async (e: unknown) => {
    await worker.end();
    throw e;
  });
  const watch = new Watch(engine, worker, say);
  const close = async (): Promise<void> => {
    worker.keepAlive();
    // what fails in closing ends with the thread
    await Promise.race([engine.dispose().catch(() => {}), wait(GRACE)]);
    await worker.end();
  };
  try {
    const { weights, cache, scratch } = await engine.memory();
    // What came over the wire has no type yet: the engine checks it.
    const surfaces = {
      chat: engine.chat.completions, completions: engine.completions,
    } as unknown as Record<Kind, Surface>;
    return {
      device: { backend: engine.device.backend, name: engine.device.name },
      context: engine.context,
      bytes: weights + cache + scratch,
      get gone() {
        return watch.stuck;
      },
      answer: (kind, request, stop) => watched(
        watch,
        stop,
        () =>
          surfaces[kind].create(
            { ...bounded(request, engine.context), stream: false }, { signal: stop },
          ) as ReturnType<Served['answer']>,
      ),
      stream: (kind, request, stop) =>
        flow(surfaces[kind], bounded(request, engine.context), stop, watch),
      close,
    };
  } catch (e) {
    await close();
    throw e;
  }
}

async function watched<T>(watch: Watch, signal: AbortSignal, work: () => Promise<T>): Promise<T> {
  const over = watch.over(signal);
  try {
    return await work();
  } finally {
    over();
  }
}

async function* flow(
  surface: Surface, request: Request, signal: AbortSignal, watch: Watch,
): AsyncGenerator<Chunk, void, void> {
  const over = watch.over(signal);
  try {
    yield* (await surface.create({ ...request, stream: true }, { signal })) as AsyncIterable<Chunk>;
  } finally {
    over();
  }
}
