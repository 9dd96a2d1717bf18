// thread - the engine in a thread of its own. On the CPU a step holds its thread up for as long as it computes; the server
// must go on listening meanwhile, and notice who leaves. Ending the thread gives all of its memory back.

import { Worker as Thread, type TransferListItem } from 'node:worker_threads';

import { Engine } from '../engine.js';
import type { NameResolver } from '../engine_source.js';
import type { Chunk, Kind, LoadWish, Request, Served } from './host.js';

/** A thread of Node as the Worker that Engine talks to. */
class ThreadWorker extends EventTarget {
  private readonly thread = new Thread(new URL('./thread_entry.js', import.meta.url));

  constructor() {
    super();
    this.thread.unref(); // the sockets keep the process alive
    this.thread.on('message', (data) => this.dispatchEvent(new MessageEvent('message', { data })));
    this.thread.on('messageerror', () => this.dispatchEvent(new Event('messageerror')));
    this.thread.on('error', (e) => this.dispatchEvent(Object.assign(new Event('error'), { message: e.message })));
    this.thread.on('exit', () => this.dispatchEvent(Object.assign(new Event('error'), { message: 'its thread ended' })));
  }

  postMessage(message: unknown, transfer: readonly TransferListItem[]): void {
    this.thread.postMessage(message, transfer);
  }

  terminate(): void {
    void this.thread.terminate();
  }
}

const CONVERSATIONS = 4; // of clients that take turns, kept as long as there is memory for them

interface Surface {
  create(request: Request, options: { signal: AbortSignal }): Promise<unknown>;
}

export interface ThreadOptions {
  readonly backend: 'gpu' | 'cpu';
  readonly store: NameResolver | undefined;
}

export async function loadInThread({ backend, store }: ThreadOptions, { entry, context, signal }: LoadWish): Promise<Served> {
  const engine = await Engine.load(entry.file ?? entry.name, {
    backend,
    signal,
    worker: new ThreadWorker() as unknown as Worker,
    shared: CONVERSATIONS,
    ...(store && { store }),
    ...(context && { context }),
  });
  const { weights, cache, scratch } = await engine.memory();
  // What came over the wire has no type yet: the engine checks it.
  const surfaces = { chat: engine.chat.completions, completions: engine.completions } as unknown as Record<Kind, Surface>;
  return {
    device: { backend: engine.device.backend, name: engine.device.name },
    context: engine.context,
    bytes: weights + cache + scratch,
    answer: (kind, request, stop) => surfaces[kind].create({ ...request, stream: false }, { signal: stop }) as ReturnType<Served['answer']>,
    stream: (kind, request, stop) => flow(surfaces[kind], request, stop),
    close: () => engine.dispose(),
  };
}

async function* flow(surface: Surface, request: Request, signal: AbortSignal): AsyncGenerator<Chunk, void, void> {
  yield* (await surface.create({ ...request, stream: true }, { signal })) as AsyncIterable<Chunk>;
}
