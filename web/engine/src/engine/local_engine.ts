// local_engine - the engine where the model lives: in a worker of the page, or in Node itself.
//
// Owns the model, its sources, adapters by name, sessions and the queue. Engine (engine.ts) is the
// client: it reaches the calls below through rpc.ts or directly.

import { checkKind } from '../api/diffusion_request.js';
import { bench, type BenchOptions, type BenchProgress, type BenchResult } from './bench.js';
import { canvasOf, checked, padded } from './canvas.js';
import { constrained } from './constrained.js';
import {
  chatChunks, newHead, rawChunks, wholeChat, wholeText, type RawPrompt,
} from './completions.js';
import type { Place } from './completions_answer.js';
import {
  readChat, readCompletion, withMessages, type ChatOrder, type Order,
} from '../api/completions_request.js';
import type {
  AdapterUse, ChatCompletionChunk, ChatRequest, Completion, CompletionRequest,
} from '../api/completions_types.js';
import type {
  About, AdapterInfo, AdapterRef, EngineCalls, EngineStreams, LoadParams,
} from './engine_calls.js';
import type { EditResult, EditStep } from '../api/diffusion_types.js';
import { BezelError, show } from '../api/errors.js';
import {
  editSteps, planEdit, toldChat, toldText, type EditParams, type Told,
} from './local_diffusion.js';
import { estimateModel } from './local_estimate.js';
import { mergeCalls } from '../train/local_merge.js';
import { LocalTraining, type TrainCalls } from '../train/local_train.js';
import type { MergeCalls } from '../train/merge_to.js';
import type { Model, Progress } from './model.js';
import { chooseBackend, openModel } from './open_model.js';
import { Queue, Slices } from './queue.js';
import { Moved, type Context, type Handlers, type Streams } from './rpc.js';
import { DEFAULT, Sessions, type Wish } from './sessions.js';
import { openWithFetches, type Source } from '../load/source.js';
import { openIntact, openSources } from '../store/open_sources.js';
import { cutting } from './truncation.js';
import { breathe } from './turns.js';
import { Core, loadWasm } from './wasm.js';

/** Calls that need no loaded model. */
type Modelless = 'load' | 'live' | 'estimate' | keyof MergeCalls;

interface Adapter {
  serial: number; // other numbers, another serial
  scale: number; // where a request does not say
  now: number; // what the model has
  apply(scale: number): void;
  remove?(): void; // not while it is being trained
}

/** Where an answer is made, and what its session held before. */
interface Seat extends Place {
  held: Int32Array;
}

/** A request that was read: its prompt's tokens, and how it is answered. `make` calls `enter`
 *  when it wants the model. */
interface Reading<T> {
  ids: Int32Array;
  make(enter: () => Promise<Seat>): AsyncGenerator<T, void, void>;
}

/** An answer under way: what it says, and how it gives everything back. */
interface Running {
  items: AsyncGenerator<unknown, void, void>;
  end(): void;
}

const USUAL_ANSWER = 512; // tokens, where a request does not say

const withUsage = <R extends ChatRequest | CompletionRequest>(request: R): R =>
  ({ ...request, stream_options: { include_usage: true } });

const disposed = (): BezelError => new BezelError('this engine was disposed', 'cancelled');

export class LocalEngine {
  private readonly queue = new Queue();
  private readonly slices = new Slices();
  private readonly running = new Set<Running>();
  private readonly heeding = new Set<AbortController>(); // of all that wait or run
  private readonly adapters = new Map<string, Adapter>();
  private readonly adapterSources = new Set<Source>();
  private readonly end = new AbortController();
  private serial = 0;
  private context = Infinity; // tokens of a conversation at most

  private readonly training: LocalTraining;

  private constructor(
    private readonly name: string,
    private readonly model: Model,
    private readonly core: Core,
    private readonly sources: readonly Source[],
    private readonly sessions: Sessions,
    budget: number | undefined,
  ) {
    this.training = new LocalTraining({
      name, model, budget,
      alone: (signal, act) => this.alone(signal, act),
      adapterName: (wish) => this.adapterName(wish),
      hang: (adapter, apply) => this.hang(adapter, apply),
      unhang: (adapter) => this.adapters.delete(adapter),
      wear: (adapter) => this.wear([{ name: adapter, scale: 1 }]),
      keep: async (adapter, gguf, signal) =>
        void (await this.addAdapter(
          { name: adapter, source: { kind: 'memory', name: adapter, bytes: gguf } }, signal, 0,
        )),
    });
    this.calls = { ...this.ownCalls, ...this.training.calls };
  }

  static async load(
    params: LoadParams, context: Context<Progress>,
  ): Promise<{ engine: LocalEngine; about: About }> {
    const { model: ref, memory, backend, sessions: count = 4, shared = 1, ...options } = params;
    const { signal } = context;
    const choice =
      await chooseBackend(backend, options.profile ? { profile: options.profile } : {});
    const sources: Source[] = [];
    let model: Model | undefined, engine: LocalEngine | undefined;
    try {
      const core = await Core.load(await loadWasm());
      const onProgress = (loaded: number, total: number): void =>
        context.progress({ phase: 'weights', loaded, total });
      sources.push(...(await openSources(core, ref.sources, {
        signal, inMemory: choice.backend === 'cpu', whole: true, intact: ref.name, onProgress,
      })));
      const wish = {
        ...options, backend: choice, name: ref.name, ...(ref.store && { store: ref.store }),
        ...(memory !== undefined && { budget: memory }), sources, signal,
        onProgress: context.progress,
      };
      model = await openWithFetches(() => openModel(wish), signal);
      const sessions =
        new Sessions(model, { count, bytes: memory ?? Infinity, shared: Math.min(shared, count) });
      engine = new LocalEngine(ref.name, model, core, sources, sessions, memory);
      for (const adapter of ref.adapters) await engine.addAdapter(adapter, signal);
      const first = await sessions.take(DEFAULT, engine.wear(undefined));
      engine.context = first.context;
      return {
        engine,
        about: { name: ref.name, info: model.info, device: model.device, context: first.context },
      };
    } catch (e) {
      model?.close();
      for (const source of [...sources, ...(engine?.adapterSources ?? [])]) source.close();
      signal.throwIfAborted();
      throw e;
    } finally {
      choice.close();
    }
  }

  // ---- turns ----

  /** The caller's signal, or the engine's end; `off` forgets about both. */
  private heed(signal: AbortSignal): { both: AbortSignal; off: () => void } {
    if (this.end.signal.aborted) throw disposed();
    const both = new AbortController(), onAbort = (): void => both.abort(signal.reason);
    signal.addEventListener('abort', onAbort);
    this.heeding.add(both);
    if (signal.aborted) onAbort();
    const off = (): void => {
      signal.removeEventListener('abort', onAbort);
      this.heeding.delete(both);
    };
    return { both: both.signal, off };
  }

  /** Nothing else has the model meanwhile, and no answer is half done. */
  private async alone<T>(
    signal: AbortSignal, act: (signal: AbortSignal) => Promise<T>,
  ): Promise<T> {
    const { both, off } = this.heed(signal);
    let leave = (): void => {};
    try {
      leave = await this.queue.enter(both);
      return await act(both);
    } catch (e) {
      both.throwIfAborted();
      throw e;
    } finally {
      off();
      leave();
    }
  }

  /** An answer beside others, each in a session of its own; `read` begins when its first piece
   *  is wanted. */
  private async *answer<T>(
    request: Pick<ChatRequest, 'adapters' | 'session' | 'prompt_cache_key'>,
    signal: AbortSignal,
    read: () => Promise<Reading<T>>,
  ): AsyncGenerator<T, void, void> {
    signal.throwIfAborted();
    if (this.end.signal.aborted) throw disposed();
    const { ids, make } = await read();
    signal.throwIfAborted();
    this.checkAdapters(request.adapters);
    const { both, off } = this.heed(signal), asked = performance.now();
    const wish = (): Wish => ({
      session: request.session ?? undefined, scope: request.prompt_cache_key ?? '', ids,
      adapters: this.wear(request.adapters, false),
    });
    let leave = (): void => {};
    const enter = async (): Promise<Seat> => {
      for (;;) {
        let id = DEFAULT, over = false;
        const out =
          await this.queue.enter(both, () => (id = this.sessions.claim(wish()) ?? '-') !== '-');
        const slice = this.slices.join(both, () => void this.wear(request.adapters));
        leave = () => {
          if (over) return; // what it had may be another's by now
          over = true;
          slice.end();
          this.sessions.release(id);
          out();
        };
        try {
          await slice.go();
          const { adapters, scope } = wish(), held = this.sessions.tokens(id);
          const conversation = await this.sessions.take(id, adapters, scope);
          return {
            held, conversation, signal: both, asked, begun: performance.now(),
            go: () => slice.go(), rest: () => slice.rest(),
          };
        } catch (e) {
          leave();
          if (!this.sessions.isCrowded(e)) throw e; // else it comes in when another has left
        }
      }
    };
    const items = make(enter), one: Running = { items, end: () => leave() };
    const end = (): void => {
      this.running.delete(one);
      off();
      leave();
    };
    this.running.add(one);
    // its reader may never come back
    both.addEventListener('abort', () => void items.return().then(end, end));
    try {
      yield* items;
      both.throwIfAborted(); // ended from outside
    } finally {
      end();
    }
  }

  // ---- adapters ----

  private checkAdapters(wish: readonly AdapterUse[] | null | undefined): void {
    for (const { name } of wish ?? [])
      if (!this.adapters.has(name))
        throw new BezelError(
          `there is no adapter ${show(name)}; add it first with engine.adapters.add`,
          'not-found',
          undefined,
          'adapters',
        );
  }

  /** Give the model the adapters of a request; names what it now wears (or would, where it is
   *  not to be `put` on). */
  private wear(wish: readonly AdapterUse[] | null | undefined, put = true): string {
    if (put) this.checkAdapters(wish);
    const worn: string[] = [];
    for (const [name, adapter] of this.adapters) {
      const use = wish?.find((u) => u.name === name);
      const scale = !wish ? adapter.scale : use ? (use.scale ?? (adapter.scale || 1)) : 0;
      if (put && scale !== adapter.now) adapter.apply(scale);
      if (put) adapter.now = scale;
      if (scale) worn.push(`${adapter.serial}*${scale}`);
    }
    return worn.join('+');
  }

  /** `unasked`: its scale in requests that do not name their adapters. */
  private async addAdapter(
    { name, source: ref, scale = 1, config }: AdapterRef, signal: AbortSignal, unasked = scale,
  ): Promise<AdapterInfo> {
    this.adapterName(name);
    // read again should the device be lost
    const source = await openIntact(this.core, ref, { signal, whole: true, intact: name });
    try {
      const id = await openWithFetches(
        () => this.model.addAdapter(source, { scale, ...(config !== undefined && { config }) }),
        signal,
      );
      this.adapterSources.add(source);
      this.adapters.set(name, {
        serial: ++this.serial, scale: unasked, now: scale,
        apply: (s) => this.model.scaleAdapter(id, s),
        remove: () => {
          this.model.removeAdapter(id);
          this.adapterSources.delete(source);
          source.close();
        },
      });
      return { name, scale: unasked };
    } catch (e) {
      source.close();
      throw e;
    }
  }

  private adapterName(wish: string | undefined): string {
    if (wish !== undefined && this.adapters.has(wish))
      throw new BezelError(`there is an adapter "${wish}" already`, 'argument');
    let name = wish ?? 'trained';
    for (let i = 2; this.adapters.has(name); i++) name = `trained-${i}`;
    return name;
  }

  /** One that the model has already, at full strength. */
  private hang(name: string, apply: (scale: number) => void): () => void {
    const adapter: Adapter = { serial: ++this.serial, scale: 0, now: 1, apply };
    this.adapters.set(name, adapter);
    return () => (adapter.serial = ++this.serial);
  }

  private removeAdapter(name: string): void {
    const adapter = this.adapters.get(name);
    if (!adapter) throw new BezelError(`there is no adapter "${name}"`, 'not-found');
    if (!adapter.remove)
      throw new BezelError(`"${name}" is being trained; cancel that instead`, 'argument');
    adapter.remove();
    this.adapters.delete(name);
  }

  // ---- answers ----

  /** Said while nothing has been promised yet: a server can still answer with a status. */
  private checkLength(ids: Int32Array, param: 'messages' | 'prompt'): Int32Array {
    if (ids.length > this.context)
      throw new BezelError(
        `the prompt has ${ids.length} tokens, which do not fit into the context of ${this.context}`,
        'limit',
        undefined,
        param,
      );
    return ids;
  }

  chat(request: ChatRequest, signal: AbortSignal): AsyncGenerator<ChatCompletionChunk, void, void> {
    return this.answer(request, signal, async () => {
      const order =
        await this.fitted(this.fittingKind(readChat(request, this.model.info)), signal);
      if (this.end.signal.aborted) throw disposed();
      const prompt = this.model.chatTokens(order.conversation, { thinking: order.thinking });
      const head = newHead('chatcmpl-', request.model ?? this.name);
      const kept = constrained(this.model, order, prompt.inThought);
      return {
        ids: this.checkLength(prompt.ids, 'messages'),
        make: (enter) => chatChunks(this.core, this.model, enter, kept, prompt, head),
      };
    });
  }

  /** Without prompts it goes on from what the session held. */
  complete(
    request: CompletionRequest, signal: AbortSignal,
  ): AsyncGenerator<Completion, void, void> {
    return this.answer(request, signal, async () => {
      const order = constrained(this.model, this.fittingKind(readCompletion(request)));
      const head = newHead('cmpl-', request.model ?? this.name);
      const prompts = order.prompts && (await this.rawPrompts(order.prompts, signal));
      if (this.end.signal.aborted) throw disposed();
      if (!prompts && !request.session)
        throw new BezelError(
          '"prompt" is missing: only a session can go on from what it holds',
          'argument',
          undefined,
          'prompt',
        );
      const promptsAt = ({ held }: Seat): readonly RawPrompt[] => prompts ?? [this.rawPrompt(held)];
      return {
        ids: prompts?.[0]?.ids ?? new Int32Array(),
        make: (enter) => rawChunks(this.model, enter, order, promptsAt, head),
      };
    });
  }

  private async rawPrompts(
    prompts: readonly (string | Int32Array)[], signal: AbortSignal,
  ): Promise<RawPrompt[]> {
    const read: RawPrompt[] = [];
    for (const prompt of prompts) {
      if (read.length) await this.pause(signal);
      read.push(this.rawPrompt(prompt));
    }
    return read;
  }

  /** Others have their turn between two pieces of work that nothing else divides. */
  private async pause(signal: AbortSignal): Promise<void> {
    await breathe();
    if (this.end.signal.aborted) throw disposed();
    signal.throwIfAborted();
  }

  private rawPrompt(prompt: string | Int32Array): RawPrompt {
    const ids =
      this.checkLength(typeof prompt === 'string' ? this.model.tokenize(prompt) : prompt, 'prompt');
    const { n_vocab: end } = this.model.info, unknown = ids.find((id) => id >= end);
    if (unknown !== undefined) {
      const message = `token id ${unknown}; this vocabulary ends at ${end - 1}`;
      throw new BezelError(message, 'argument', undefined, 'prompt');
    }
    if (!ids.length)
      throw new BezelError(
        'there is nothing to go on from: the prompt is empty', 'argument', undefined, 'prompt',
      );
    return { ids, text: typeof prompt === 'string' ? prompt : this.model.detokenize(ids, true) };
  }

  /** What this kind of model can do, with the canvas that it begins with as tokens. */
  private fittingKind<O extends Order>(order: O): O {
    checkKind(this.model.info, order.options, order.constraint);
    const { diffusion: given } = order.options, { n_canvas: n } = this.model.info;
    if (!order.canvas && !given?.canvas) return order;
    const canvas = order.canvas
      ? canvasOf(this.model, order.canvas)
      : checked(padded(given?.canvas ?? [], given?.fixed ?? [], n), n);
    return { ...order, options: { ...order.options, diffusion: { ...given, ...canvas } } };
  }

  /** Without its oldest messages, where it may lose them and must: an answer needs room too. */
  private async fitted(order: ChatOrder, signal: AbortSignal): Promise<ChatOrder> {
    if (!order.truncates) return order;
    const room = Math.min(order.options.n_max ?? USUAL_ANSWER, this.context >> 2);
    const fits = (messages: ChatOrder['messages']): boolean =>
      this.model.chatTokens(
        withMessages(order, messages).conversation, { thinking: order.thinking },
      ).ids.length
        + room
        <= this.context;
    const search = cutting(order.messages);
    let step = search.next();
    while (!step.done) {
      step = search.next(fits(step.value));
      await this.pause(signal);
    }
    // what fits nowhere is an error of its own
    return withMessages(order, step.value ?? order.messages);
  }

  /** Tokens of a chat's prompt, or of the conversation alone. */
  private chatTokens(request: ChatRequest, history: boolean): Int32Array {
    const { conversation, thinking } = readChat(request, this.model.info);
    return this.model.chatTokens(conversation, { thinking, history }).ids;
  }

  // ---- sessions ----

  private async append(
    id: string, text: string | Int32Array, signal: AbortSignal,
  ): Promise<number> {
    const before = this.sessions.tokens(id);
    const more =
      typeof text === 'string' ? this.model.tokenize(text, { bos: !before.length }) : text;
    const all = new Int32Array(before.length + more.length);
    all.set(before);
    all.set(more, before.length);
    await (await this.sessions.take(id, this.wear(undefined))).set(all, { signal });
    return all.length;
  }

  private async restore(id: string, snapshot: Uint8Array): Promise<number> {
    const conversation = await this.sessions.take(id, this.wear(undefined));
    await conversation.restore(snapshot);
    return conversation.length;
  }

  private async save(id: string, signal: AbortSignal): Promise<Uint8Array> {
    return (await this.sessions.resume(id, this.wear(undefined), signal)).save();
  }

  /** Everything that needs the model, by name. */
  readonly calls: Handlers<Omit<EngineCalls, Modelless>>;

  private readonly ownCalls: Handlers<Omit<EngineCalls, Modelless | keyof TrainCalls>> = {
    chat: (request, { signal }) =>
      wholeChat(this.chat(withUsage(request), signal)),
    complete: (request, { signal }) =>
      wholeText(this.complete(withUsage(request), signal)),
    tokenize: async ({ text, ...options }) => this.model.tokenize(text, options),
    detokenize: async ({ ids, specials }) => this.model.detokenize(ids, specials),
    checkConstraint: async (constraint) => this.model.checkConstraint(constraint),
    countChat: async ({ request, history }) => this.chatTokens(request, history).length,
    memory: async () => this.model.memory,
    selfTest: () => this.model.selfTest(),
    adapterAdd: (ref, { signal }) => this.alone(signal, (s) => this.addAdapter(ref, s)),
    adapterRemove: (name, { signal }) => this.alone(signal, async () => this.removeAdapter(name)),
    adapterList: async () => Array.from(this.adapters, ([name, { scale }]) => ({ name, scale })),
    sessionAppend: ({ id, text }, { signal }) =>
      this.alone(signal, (s) => this.append(id, text, s)),
    sessionPrefill: ({ id, request, history }, { signal }) => this.alone(
      signal,
      async (s) => (await this.sessions.take(id, this.wear(request.adapters))).set(
        this.chatTokens(request, history), { signal: s },
      ),
    ),
    sessionTokens: async (id) => this.sessions.tokens(id),
    sessionSave: (id, { signal }) => this.alone(signal, async (s) => {
      const snapshot = await this.save(id, s);
      return new Moved(snapshot, [snapshot.buffer]);
    }),
    sessionRestore: ({ id, snapshot }, { signal }) =>
      this.alone(signal, () => this.restore(id, snapshot)),
    sessionFork: ({ from, to }, { signal }) => this.alone(signal, async (s) =>
      (this.sessions.tokens(from).length ? this.restore(to, await this.save(from, s)) : 0)),
    sessionTruncate: ({ id, n }, { signal }) =>
      this.alone(signal, async () => this.sessions.truncate(id, n)),
    sessionClose: (id, { signal }) => this.alone(signal, async () => this.sessions.close(id)),
    bench: (options, { signal, progress }) =>
      this.alone(signal, (s) => this.bench(options, s, progress)),
    dispose: () => this.dispose(),
  };

  readonly streams: Streams<EngineStreams> = {
    chat: (request, { signal }) => this.chat(request, signal),
    complete: (request, { signal }) => this.complete(request, signal),
    diffuse: (request, { signal }) => toldText(this.complete(withUsage(request), signal)),
    diffuseChat: (request, { signal }) => toldChat(this.chat(withUsage(request), signal)),
    edit: (params, { signal }) => this.edit(params, signal),
  };

  /** Words of an answer, written again. */
  private edit(
    params: EditParams, signal: AbortSignal,
  ): AsyncGenerator<Told<EditStep, EditResult>, void, void> {
    return this.answer(params, signal, async () => {
      checkKind(this.model.info, { diffusion: {} });
      const plan = planEdit(this.model, this.context, params);
      return { ids: plan.ids, make: (enter) => editSteps(this.model, enter, params, plan) };
    });
  }

  private async bench(
    options: BenchOptions, signal: AbortSignal, progress: (p: BenchProgress) => void,
  ): Promise<BenchResult> {
    this.wear(undefined);
    const conversation = await this.sessions.open();
    try {
      return await bench(this.model, this.name, conversation, options, signal, progress);
    } finally {
      conversation.close();
    }
  }

  async dispose(): Promise<void> {
    if (this.end.signal.aborted) return;
    this.end.abort();
    for (const one of this.heeding) one.abort(disposed());
    this.queue.clear(disposed());
    for (const { items, end } of [...this.running]) {
      await items.return();
      end(); // a reader that stopped asking would hold its place for ever
    }
    const leave = await this.queue.enter();
    this.training.close();
    this.sessions.closeAll();
    this.model.close();
    for (const source of this.sources) source.close();
    for (const source of this.adapterSources) source.close();
    leave();
  }
}

/** The calls of an engine: `load` brings those that need a model. */
export function engineCalls(): {
  calls: Partial<Handlers<EngineCalls>>; streams: Partial<Streams<EngineStreams>>;
} {
  const streams: Partial<Streams<EngineStreams>> = {};
  const calls: Partial<Handlers<EngineCalls>> = {
    estimate: estimateModel,
    ...mergeCalls(),
    load: async (params, context) => {
      delete calls.load;
      const { engine, about } = await LocalEngine.load(params, context);
      Object.assign(calls, engine.calls);
      Object.assign(streams, engine.streams);
      return about;
    },
  };
  return { calls, streams };
}
