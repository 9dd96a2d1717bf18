// cpu_model - a model on the CPU, inside the module, as everything above sees a model.
//
// The core computes without a break; here it is called in small bites, and between them other work
// of the thread gets its turn, so that a signal can arrive.

import { DEFAULT_CONTEXT, type Stop } from './boundary.js';
import {
  checkConstraint, CpuEngine, endsOf, hold, type ChatTokens, type Constraint, type CpuSession,
  type Info, type OpenOptions,
} from './cpu_engine.js';
import { piecesOf, readCanvas } from './canvas.js';
import { automaticContext, gigabytes, type Estimate } from '../load/estimate.js';
import { Logprobs } from './logprobs.js';
import type {
  AdapterOptions, CanvasStep, Conversation, ConversationOptions, DeviceReport, Memory, Model, Piece,
  Preview, ReadOptions, SelfTest, Training, TrainingTexts, TrainingWishes,
} from './model.js';
import type { Source } from '../load/source.js';
import { CpuTraining, preview, trainBytes } from '../train/training.js';
import { breathe, stopped, Turn } from './turns.js';
import type { Core } from './wasm.js';

const BATCH = 32; // tokens of a prompt that are read without a break
const FIRST = 8; // of the first such, while nothing is known of the model
// milliseconds that reading may hold the thread, where the model is so slow that a batch would take
// longer
const BITE = 250;

const decoder = new TextDecoder('utf-8', { ignoreBOM: true });

export interface CpuModelOptions extends OpenOptions {
  /** Tokens of a conversation that does not say; 0: the core's choice. */
  context?: number;
  /** Where nobody says a context: bytes that a conversation may take (PlanOptions of
   *  estimate.ts). */
  contextBytes?: number;
  /** How keys and values are kept. */
  cache?: 'f32' | 'f16';
  /** Tokens of a prompt that are read without a break. */
  batch?: number;
  /** Take the weights into memory, for a model that will make many tokens. */
  hold?: boolean;
  signal?: AbortSignal;
  /** How many bytes of the weights were taken. */
  onProgress?: (loaded: number, total: number) => void;
}

export class CpuModel implements Model {
  readonly device: DeviceReport = {
    backend: 'cpu', name: 'CPU (WebAssembly)', tier: 'cpu', limits: {}, selfTest: [],
  };
  private readonly open = new Set<CpuConversation>();
  private readonly trainings = new Set<CpuTraining>();
  private readonly pace: Pace;
  private closed = false;

  private constructor(
    private readonly engine: CpuEngine,
    private readonly context: number,
    private readonly cache: 'f32' | 'f16',
    private readonly batch: number,
  ) {
    this.pace = new Pace(batch);
  }

  /** Several sources are the shards of one model; they stay the caller's, and must outlive the
   *  model. */
  static async open(
    core: Core,
    sources: readonly Source[],
    {
      context = 0, contextBytes, cache = 'f32', batch = BATCH, hold: wanted = false, signal,
      onProgress, ...options
    }: CpuModelOptions = {},
  ): Promise<CpuModel> {
    const held = wanted
      ? await hold(core, sources, { ...(signal && { signal }), ...(onProgress && { onProgress }) })
      : [];
    const engine = CpuEngine.open(core, sources, options, held);
    const usual = context
      || automaticContext(contextBytes, engine.info.n_context, (n) =>
        engine.sessionBytes(n, batch, cache));
    return new CpuModel(engine, usual, cache, batch);
  }

  get info(): Info {
    return this.engine.info;
  }

  async selfTest(): Promise<SelfTest[]> {
    return [];
  }

  get memory(): Memory {
    const memory = { weights: this.info.weight_bytes, cache: 0, scratch: 0 };
    for (const { session } of this.open) {
      memory.cache += session.cacheBytes;
      memory.scratch +=
        this.engine.sessionBytes(session.context, this.batch, this.cache) - session.cacheBytes;
    }
    return memory;
  }

  /** What a conversation of the usual length takes with the model, and the longest for which so
   *  many bytes are enough. */
  estimate(available = Infinity): Estimate {
    const { weight_bytes: weights, n_context: most } = this.info;
    const context = Math.min(this.context || DEFAULT_CONTEXT, most);
    const bytesAt = (n: number): number =>
      weights + this.engine.sessionBytes(n, this.batch, this.cache);
    let fits = 0, not = most + 1;
    while (not - fits > 1) {
      const middle = Math.floor((fits + not) / 2);
      if (bytesAt(middle) <= available) fits = middle;
      else not = middle;
    }
    const total = bytesAt(context), missing = Math.max(0, total - available);
    return {
      // the core gives keys, values and scratch as one number
      weights, cache: total - weights, scratch: 0, steps: 0,
      total, available, context, largestContext: fits, fits: !missing, missing, table: undefined,
      ...(missing
        && {
          reason:
            `this model needs ${gigabytes(total)} of memory for a context of ${context} tokens, `
              + `${gigabytes(missing)} more than may be used`,
        }),
    };
  }

  tokenize(text: string, options: { bos?: boolean; plain?: boolean } = {}): Int32Array {
    return this.engine.tokenize(text, options);
  }

  chatTokens(
    conversation: string, options?: { thinking?: boolean; history?: boolean },
  ): ChatTokens {
    return this.engine.chatTokens(conversation, options);
  }

  detokenize(ids: Int32Array, specials = false): string {
    return decoder.decode(this.engine.detokenize(ids, specials));
  }

  ends(): Int32Array {
    return endsOf(this.engine.core, this.engine.ptr);
  }

  checkConstraint(constraint: Constraint): string | undefined {
    return checkConstraint(this.engine.core, this.engine.ptr, constraint);
  }

  async addAdapter(source: Source, options: AdapterOptions = {}): Promise<number> {
    return this.engine.addAdapter(source, options);
  }

  scaleAdapter(id: number, scale: number): void {
    this.engine.scaleAdapter(id, scale);
  }

  removeAdapter(id: number): void {
    this.engine.removeAdapter(id);
  }

  async conversation(context = this.context): Promise<Conversation> {
    const made: CpuConversation = new CpuConversation(this.engine.session(
      context, this.batch, this.cache,
    ), this.pace, this.info, () => {
      this.open.delete(made);
      if (this.closed) this.close();
    });
    this.open.add(made);
    return made;
  }

  preview(text: string, sequence: number, max: number): Preview {
    return preview(this.engine.core, this.engine.ptr, text, sequence, max);
  }

  trainBytes(wishes: TrainingWishes, tokens: number): number {
    return trainBytes(this.engine.core, this.engine.ptr, wishes, tokens);
  }

  async training(texts: TrainingTexts, wishes: TrainingWishes): Promise<Training> {
    const made: CpuTraining = new CpuTraining(
      this.engine.core, this.engine.ptr, texts, wishes, () => this.trainings.delete(made),
    );
    this.trainings.add(made);
    return made;
  }

  /** The last conversation that is at something takes the rest along. */
  close(): void {
    this.closed = true;
    for (const one of [...this.trainings]) one.close();
    for (const one of [...this.open]) one.close();
    if (!this.open.size) this.engine.close();
  }
}

/** Tokens that are read without a break: a batch, or as many as the model reads in a bite. The
 *  first batch of a model is timed by whoever comes first, and known to all conversations. */
class Pace {
  bite: number;

  constructor(private readonly batch: number) {
    this.bite = Math.min(batch, FIRST);
  }

  time(n: number, work: () => void): void {
    const begin = performance.now();
    work();
    const took = performance.now() - begin, fits = Math.floor((n * BITE) / took);
    if (took > BITE) this.bite = Math.max(1, Math.min(this.bite, fits));
    // fewer say little: a token alone takes longest
    else if (n >= this.bite) this.bite = Math.min(this.batch, Math.max(n + 1, fits));
  }
}

class CpuConversation implements Conversation {
  readonly context: number;
  readonly denoise?: NonNullable<Conversation['denoise']>;
  private readonly turn = new Turn('this conversation is busy');
  private closing = false;

  constructor(
    readonly session: CpuSession,
    private readonly pace: Pace,
    private readonly info: Info,
    private readonly onClose: () => void,
  ) {
    this.context = session.context;
    if (info.n_canvas) this.denoise = (options) => this.steps(options);
  }

  get tokens(): Int32Array {
    return this.session.tokens;
  }

  get length(): number {
    return this.session.length;
  }

  set(ids: Int32Array, { signal, onProgress, between }: ReadOptions = {}): Promise<number> {
    return this.turn.take(async () => {
      const kept = this.session.keep(ids);
      for (let at = kept; at < ids.length;) {
        await between?.();
        if (signal?.aborted || this.closing) throw stopped(signal);
        const from = at, end = Math.min(ids.length, at + this.pace.bite);
        this.pace.time(end - at, () =>
          this.session.feed(ids.subarray(from, end), end === ids.length ? 1 : 0));
        at = end;
        onProgress?.(at - kept, ids.length - kept);
        await breathe();
      }
      return kept;
    }, this.settle);
  }

  logits(
    ids: Int32Array,
    each: (position: number, row: Float32Array) => void,
    signal?: AbortSignal,
    between?: ReadOptions['between'],
  ): Promise<void> {
    return this.turn.take(async () => {
      if (!ids.length) return;
      const known = this.session.tokens.length;
      const all = Int32Array.from([...this.session.tokens, ...ids]);
      // which checks them all before one is read
      for (let at = this.session.keep(all); at < all.length;) {
        await between?.();
        if (signal?.aborted || this.closing) throw stopped(signal);
        const from = at, end = Math.min(at < known ? known : all.length, at + this.pace.bite);
        this.pace.time(end - at, () =>
          this.session.feed(all.subarray(from, end), from < known ? 0 : end - from, each));
        at = end;
        await breathe();
      }
    }, this.settle);
  }

  generate(options: ConversationOptions = {}): AsyncGenerator<Piece, { stop: Stop }, void> {
    return this.denoise ? piecesOf(this.denoise(options)) : this.drawn(options);
  }

  private async *steps({
    signal, logprobs: _, ahead: __, ...options
  }: ConversationOptions = {}): AsyncGenerator<CanvasStep, { stop: Stop }, void> {
    const leave = this.turn.begin();
    const steps = this.session.steps(options);
    try {
      for (let canvas = 0; ;) {
        if (signal?.aborted || this.closing) return { stop: 'cancelled' };
        const next = steps.next();
        if (next.done) return { stop: next.value.stop };
        const { at, words } = this.session.canvas, seen = readCanvas(at, words, canvas);
        const final = next.value;
        if (final.ids.length) canvas++;
        yield final.ids.length ? { ...seen, final } : seen;
        await breathe();
      }
    } finally {
      steps.return({ first: 0, count: 0, stop: 'cancelled' });
      leave();
      this.settle();
    }
  }

  private async *drawn({
    signal, logprobs, ahead: _, ...options
  }: ConversationOptions): AsyncGenerator<Piece, { stop: Stop }, void> {
    const leave = this.turn.begin();
    const pieces =
      this.session.pieces(logprobs === undefined ? options : { ...options, one_by_one: true });
    try {
      await this.needLogits(signal);
      for (;;) {
        if (signal?.aborted || this.closing) return { stop: 'cancelled' };
        const before = logprobs === undefined ? undefined : this.session.logits;
        const next = pieces.next();
        if (next.done) return { stop: next.value.stop };
        const piece: Piece = next.value;
        if (before && logprobs !== undefined) {
          const all = new Logprobs(before);
          piece.logprob = all.of(piece.id);
          piece.top = all.top(Math.min(logprobs, this.info.n_vocab));
        }
        yield piece;
        await breathe();
      }
    } finally {
      pieces.return({ first: 0, count: 0, stop: 'cancelled' });
      leave();
      this.settle();
    }
  }

  /** After a truncate, a restore or an end token the last token is read again. */
  private async needLogits(signal: AbortSignal | undefined): Promise<void> {
    if (this.session.hasLogits || !this.session.length || signal?.aborted) return;
    const all = this.session.tokens;
    for (let at = this.session.truncate(
      all.length - 1,
    ); at < all.length && !signal?.aborted && !this.closing;) {
      const from = at, end = Math.min(all.length, at + this.pace.bite);
      this.pace.time(end - at, () => this.session.feed(all.subarray(from, end)));
      at = end;
      await breathe();
    }
  }

  truncate(n: number): number {
    this.turn.begin()(); // not while something is under way
    return this.session.truncate(n);
  }

  save(): Promise<Uint8Array> {
    return this.turn.take(async () => this.session.save(), this.settle);
  }

  restore(snapshot: Uint8Array): Promise<void> {
    return this.turn.take(async () => this.session.restore(snapshot), this.settle);
  }

  /** What is under way stops first. */
  close(): void {
    this.closing = true;
    if (!this.turn.busy) this.settle();
  }

  private readonly settle = (): void => {
    if (!this.closing) return;
    this.session.close();
    this.onClose();
  };
}
