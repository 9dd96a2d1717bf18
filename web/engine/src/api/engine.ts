// engine - the public Engine: a model that answers. A thin client of local_engine.ts, which in a
// browser runs in a worker and in Node and Deno in this very thread.

import { startWorker } from '../beside.js';
import { TRAIN_SEQUENCE } from '../engine/boundary.js';
import type { BenchOptions, BenchProgress, BenchResult } from '../engine/bench.js';
import { plainOf, plainRequest, readChat, readCompletion } from './completions_request.js';
import type {
  ChatCompletion, ChatCompletionChunk, ChatRequest, ChatStreamRequest, ChatWholeRequest, Completion,
  CompletionRequest, CompletionStreamRequest, CompletionWholeRequest,
} from './completions_types.js';
import { Diffusion } from './diffusion.js';
import type { Constraint, Info } from '../engine/cpu_engine.js';
import {
  findAdapter, findModel, type AdapterSource, type ModelSource, type NameResolver,
} from './engine_source.js';
import { BezelError } from './errors.js';
import type { Estimate } from '../load/estimate.js';
import type {
  About, AdapterInfo, EngineCalls, EngineStreams, LoadParams,
} from '../engine/engine_calls.js';
import { mergeTo, type MergeOptions, type MergeResult } from '../train/merge_to.js';
import type { DeviceReport, Memory, Progress, SelfTest } from '../engine/model.js';
import {
  benchChecks, checkOptions, estimateChecks, loadChecks, mergeChecks,
} from './load_request.js';
import { isNode } from '../load/node_files.js';
import type { Backend } from '../engine/open_model.js';
import { Client, direct, type Link } from '../engine/rpc.js';
import { readData, readWishes } from '../train/train_request.js';
import { Run } from '../train/train_run.js';
import type {
  PreviewOptions, TrainData, Trainer, TrainEstimate, TrainOptions, TrainPreview, TrainRun,
} from '../train/train_types.js';

export interface LoadOptions extends Partial<Omit<LoadParams, 'model'>> {
  onProgress?: (progress: Progress) => void;
  /** Stops the load; what was loaded so far is let go. */
  signal?: AbortSignal;
  /** 'auto' unless said otherwise: the GPU where there is one, else the CPU, and `device.fallback`
   *  says why. With 'gpu' a load without WebGPU fails with a DeviceError. */
  backend?: Backend;
  adapters?: readonly AdapterSource[];
  /** Knows models by name. */
  store?: NameResolver;
  /** A worker made by the caller from 'bezel/worker', for bundlers that cannot find it. False:
   *  compute in this thread. */
  worker?: Worker | false;
}

export interface CallOptions {
  signal?: AbortSignal;
}

/** `memory`: bytes that may be used; absent, what the device is known to have. */
export type EstimateOptions = Pick<LoadOptions, 'backend' | 'context' | 'contextBytes' | 'cache'
  | 'tier' | 'profile' | 'memory' | 'signal' | 'store' | 'worker'>;

type EngineLink = Link<EngineCalls, EngineStreams>;

// ---- where the engine runs ----

interface Host {
  link: EngineLink;
  /** Nobody answers any more. */
  readonly gone: boolean;
  close(): void;
}

function hostInWorker(given: Worker | undefined): Host {
  if (!given && typeof Worker === 'undefined')
    throw new BezelError(
      'this environment has no workers; pass { worker: false } to compute in this thread',
      'unsupported',
    );
  const worker = given ?? startWorker();
  const client = new Client<EngineCalls, EngineStreams>(worker);
  const over = new AbortController();
  const die = (why: string): void => {
    if (over.signal.aborted) return;
    close();
    client.die(new BezelError(`the engine's worker ended${why}`, 'device'));
  };
  const close = (): void => {
    over.abort();
    worker.terminate();
  };
  worker.addEventListener('error', (e) =>
    die(e.message ? `: ${e.message}` : ' before it could start'));
  worker.addEventListener('messageerror', () => die(': a message could not be read'));
  void watch(client, over.signal, die);
  return {
    link: client,
    get gone() {
      return over.signal.aborted;
    },
    close() {
      close();
      client.die(new BezelError('this engine was disposed', 'cancelled'));
    },
  };
}

/** Not outside a secure context, and not where the browser refuses storage. */
const hasLocks = async (): Promise<boolean> => {
  try {
    await navigator.locks.query();
    return true;
  } catch {
    return false;
  }
};

/** Notice when the worker is gone: it holds a lock for as long as it lives. */
async function watch(
  client: EngineLink, signal: AbortSignal, die: (why: string) => void,
): Promise<void> {
  if (!(await hasLocks())) return;
  const name = `bezel-worker-${crypto.randomUUID()}`;
  try {
    await client.call('live', name, { signal });
    await navigator.locks.request(
      name, { signal }, () => die('; the browser may be out of memory'),
    );
  } catch (e) {
    if (!signal.aborted) die(`: ${e instanceof Error ? e.message : String(e)}`);
  }
}

async function hostHere(): Promise<Host> {
  const { engineCalls } = await import('../engine/local_engine.js');
  const { calls, streams } = engineCalls();
  return { link: direct<EngineCalls, EngineStreams>(calls, streams), gone: false, close: () => {} };
}

const hostFor = async (worker: Worker | false | undefined): Promise<Host> =>
  (worker === false || (isNode() && !worker) ? hostHere() : hostInWorker(worker || undefined));

/** What `read` makes of the options; a worker that was given is ours to end, also where they are
 *  wrong. */
function owning<T>(options: Pick<LoadOptions, 'worker'>, read: () => T): T {
  try {
    return read();
  } catch (e) {
    (options?.worker as Partial<Worker> | undefined)?.terminate?.();
    throw e;
  }
}

// ---- requests ----

const nothing = { system: null, messages: [], stop: [] };

export class ChatCompletions {
  constructor(private readonly link: EngineLink, private readonly session?: string) {}

  /** Resolves to a stream of chunks (stream: true) or to the whole answer. A stream starts when it
   *  is first read; leaving its loop stops the model. */
  create(
    request: ChatStreamRequest, options?: CallOptions,
  ): Promise<AsyncGenerator<ChatCompletionChunk, void, void>>;
  create(request: ChatWholeRequest, options?: CallOptions): Promise<ChatCompletion>;
  create(
    request: ChatRequest, options?: CallOptions,
  ): Promise<AsyncGenerator<ChatCompletionChunk, void, void> | ChatCompletion>;
  async create(
    request: ChatRequest, options: CallOptions = {},
  ): Promise<AsyncGenerator<ChatCompletionChunk, void, void> | ChatCompletion> {
    const signal = options.signal ?? request.signal;
    signal?.throwIfAborted();
    const plain = plainRequest(request, this.session), { stream } = readChat(plain, nothing);
    return stream
      ? this.link.stream('chat', plain, { signal })
      : this.link.call('chat', plain, { signal });
  }
}

export class Completions {
  constructor(private readonly link: EngineLink, private readonly session?: string) {}

  create(
    request: CompletionStreamRequest, options?: CallOptions,
  ): Promise<AsyncGenerator<Completion, void, void>>;
  create(request: CompletionWholeRequest, options?: CallOptions): Promise<Completion>;
  create(
    request: CompletionRequest, options?: CallOptions,
  ): Promise<AsyncGenerator<Completion, void, void> | Completion>;
  async create(
    request: CompletionRequest, options: CallOptions = {},
  ): Promise<AsyncGenerator<Completion, void, void> | Completion> {
    const signal = options.signal ?? request.signal;
    signal?.throwIfAborted();
    const plain = plainRequest(request, this.session), { stream } = readCompletion(plain);
    return stream
      ? this.link.stream('complete', plain, { signal })
      : this.link.call('complete', plain, { signal });
  }
}

/** LoRA adapters of an engine, by name. */
export class Adapters {
  constructor(
    private readonly link: EngineLink, private readonly store: NameResolver | undefined,
  ) {}

  /** From now on every request uses it at its scale, but those that name their adapters
   *  themselves. */
  async add(
    source: ModelSource, options: Omit<AdapterSource, 'source'> & CallOptions = {},
  ): Promise<AdapterInfo> {
    return this.link.call('adapterAdd', await findAdapter({ source, ...options }, this.store), {
      signal: options.signal,
    });
  }

  remove(name: string): Promise<void> {
    return this.link.call('adapterRemove', name);
  }

  list(): Promise<AdapterInfo[]> {
    return this.link.call('adapterList', undefined);
  }
}

/** What a chat's prompt is made of; used where no answer is wanted yet. */
export type PromptRequest =
  Pick<ChatRequest, 'messages' | 'tools' | 'thinking' | 'reasoning_effort' | 'adapters'>;

let sessions = 0;

/** A conversation of its own beside others: what was computed of its tokens is kept for the next
 *  request. It may have to be computed again when others needed the memory. */
export class Session {
  readonly chat: { readonly completions: ChatCompletions };
  /** Without a prompt it goes on from the session's own tokens. */
  readonly completions: Completions;

  constructor(private readonly link: EngineLink, readonly id: string) {
    this.chat = { completions: new ChatCompletions(link, id) };
    this.completions = new Completions(link, id);
  }

  /** Add text (special tokens are read as such) or token ids, and compute them now; says how
   *  many there are then. */
  append(
    text: string | Int32Array | readonly number[], { signal }: CallOptions = {},
  ): Promise<number> {
    return this.link.call(
      'sessionAppend',
      { id: this.id, text: typeof text === 'string' ? text : Int32Array.from(text) },
      { signal },
    );
  }

  /** Compute a conversation before its answer is wanted; says how many tokens were known
   *  already. */
  prefill(request: PromptRequest, { signal }: CallOptions = {}): Promise<number> {
    return this.link.call(
      'sessionPrefill',
      {
        id: this.id,
        request: plainRequest(request, undefined),
        history: request.messages.at(-1)?.role !== 'user',
      },
      { signal },
    );
  }

  tokens(): Promise<Int32Array> {
    return this.link.call('sessionTokens', this.id);
  }

  /** Forget tokens past n; says how many remain. */
  truncate(n: number): Promise<number> {
    if (!Number.isInteger(n) || n < 0)
      return Promise.reject(new BezelError(`a session cannot be cut to ${n} tokens`, 'argument'));
    return this.link.call('sessionTruncate', { id: this.id, n });
  }

  /** Bytes that `restore` takes: in this engine or in another one with the same model file and
   *  the same adapters, on any backend. */
  save({ signal }: CallOptions = {}): Promise<Uint8Array> {
    return this.link.call('sessionSave', this.id, { signal });
  }

  restore(snapshot: Uint8Array, { signal }: CallOptions = {}): Promise<number> {
    return this.link.call('sessionRestore', { id: this.id, snapshot }, { signal });
  }

  /** Another session that goes on from the same place. */
  async fork({ signal }: CallOptions = {}): Promise<Session> {
    const made = new Session(this.link, newSessionId());
    try {
      await this.link.call('sessionFork', { from: this.id, to: made.id }, { signal });
      return made;
    } catch (e) {
      void made.close().catch(() => {}); // after an abort it may still be made
      throw e;
    }
  }

  close(): Promise<void> {
    return this.link.call('sessionClose', this.id);
  }
}

const newSessionId = (): string => `session-${++sessions}`;

export class Engine implements Trainer {
  readonly chat: { readonly completions: ChatCompletions };
  readonly completions: Completions;
  /** Of diffusion models: every step, given canvases, words written again. */
  readonly diffusion: Diffusion;
  readonly adapters: Adapters;
  private disposed: Promise<void> | undefined;

  private constructor(
    private readonly host: Host, private readonly about: About, store: NameResolver | undefined,
  ) {
    this.chat = { completions: new ChatCompletions(host.link) };
    this.completions = new Completions(host.link);
    this.diffusion = new Diffusion(host.link);
    this.adapters = new Adapters(host.link, store);
  }

  /** Load a model. In a browser a worker is started for it. */
  static async load(source: ModelSource, options: LoadOptions = {}): Promise<Engine> {
    const { onProgress, signal, adapters = [], store, worker, backend = 'auto', ...rest } =
      owning(options, () => checkOptions('Engine.load', options, loadChecks));
    const host = await hostFor(worker);
    try {
      signal?.throwIfAborted();
      const model = await findModel(source, store);
      for (const adapter of adapters) model.adapters.push(await findAdapter(adapter, store));
      const about =
        await host.link.call('load', { ...rest, backend, model }, { signal, onProgress });
      return new Engine(host, about, store);
    } catch (e) {
      host.close();
      throw e;
    }
  }

  /** What a model would take of the GPU's memory (or, with backend 'cpu', of the machine's),
   *  exactly, and the largest context that fits. Nothing of it is loaded. */
  static async estimate(source: ModelSource, options: EstimateOptions = {}): Promise<Estimate> {
    const { signal, store, worker, ...rest } =
      owning(options, () => checkOptions('Engine.estimate', options, estimateChecks));
    const host = await hostFor(worker);
    try {
      signal?.throwIfAborted();
      return await host.link.call(
        'estimate', { ...rest, model: await findModel(source, store) }, { signal },
      );
    } finally {
      host.close();
    }
  }

  /** Write a model with an adapter added into its weights, as one GGUF file in the model's own
   *  formats. Nothing is loaded, and neither file is in memory as a whole. `to`: a stream, the
   *  handle of a file, or in Node a path. */
  static async merge(
    source: ModelSource,
    adapter: AdapterSource,
    given: MergeOptions & Pick<LoadOptions, 'store' | 'worker'>,
  ): Promise<MergeResult> {
    const { store, worker, ...options } =
      owning(given, () => checkOptions('Engine.merge', given, mergeChecks, ['to']));
    const host = await hostFor(worker);
    try {
      options.signal?.throwIfAborted();
      return await mergeTo(
        host.link,
        { model: await findModel(source, store), adapter: await findAdapter(adapter, store) },
        options,
      );
    } finally {
      host.close();
    }
  }

  /** What a person calls the model. */
  get name(): string {
    return this.about.name;
  }

  get info(): Info {
    return this.about.info;
  }

  get device(): DeviceReport {
    return this.about.device;
  }

  /** Tokens of a conversation at most. */
  get context(): number {
    return this.about.context;
  }

  memory(): Promise<Memory> {
    return this.host.link.call('memory', undefined);
  }

  /** What came of testing every kernel, once the last was; `device` has those that the load
   *  waited for. */
  selfTest(): Promise<SelfTest[]> {
    return this.host.link.call('selfTest', undefined);
  }

  /** Text to ids, with <bos> in front unless told otherwise. The text is a raw prompt: what spells
   *  a special token, such as <turn|>, is that token. `plain`: it is ordinary text. Chats need
   *  neither: what their messages say is always plain. */
  tokenize(text: string, options: { bos?: boolean; plain?: boolean } = {}): Promise<Int32Array> {
    return this.host.link.call('tokenize', { text, ...options });
  }

  detokenize(
    ids: Int32Array | readonly number[], options: { specials?: boolean } = {},
  ): Promise<string> {
    return this.host.link.call('detokenize', { ids: Int32Array.from(ids), ...options });
  }

  /** Can answers keep to this? Undefined, or a sentence that says why not: it names the keyword and
   *  where it stands. */
  checkGrammar(constraint: Constraint): Promise<string | undefined> {
    return this.host.link.call('checkConstraint', plainOf(constraint));
  }

  /** Tokens that a chat's prompt would have. */
  countTokens(request: PromptRequest): Promise<number> {
    return this.host.link.call('countChat', {
      request: plainRequest(request, undefined), history: false,
    });
  }

  /** A conversation beside others; with an id, the session of that name. */
  session(id: string = newSessionId()): Session {
    return new Session(this.host.link, id);
  }

  /** llama-bench's pp512 and tg128 on this device. */
  async bench(
    given: BenchOptions & CallOptions & { onProgress?: (p: BenchProgress) => void } = {},
  ): Promise<BenchResult> {
    const { onProgress, signal, ...options } = checkOptions('Engine.bench', given, benchChecks);
    return this.host.link.call('bench', options, { signal, onProgress });
  }

  /** Learn an adapter from examples. It begins at once; read its steps, or await its result. */
  train(options: TrainOptions): TrainRun {
    return new Run(this.host.link, options);
  }

  /** What training would take. Without data: for sequences of full length. */
  async trainEstimate({
    data, signal, ...options
  }: Omit<TrainOptions, 'data'> & { data?: TrainData }): Promise<TrainEstimate> {
    return this.host.link.call(
      'trainEstimate',
      { wishes: readWishes(options), ...(data !== undefined && { data: await readData(data) }) },
      { signal },
    );
  }

  /** What would be learned, token by token. Bad data is a FormatError that names the line. */
  async trainPreview(
    data: TrainData, { max = 20, sequence = TRAIN_SEQUENCE, signal }: PreviewOptions = {},
  ): Promise<TrainPreview> {
    return this.host.link.call(
      'trainPreview', { data: await readData(data), sequence, max }, { signal },
    );
  }

  /** Stop what is under way and give everything back. */
  dispose(): Promise<void> {
    const { host } = this;
    this.disposed ??= (host.gone ? Promise.resolve() : host.link.call('dispose', undefined))
      .finally(() => host.close());
    return this.disposed;
  }
}
