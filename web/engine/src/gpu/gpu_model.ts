// gpu_model - a model on the GPU, as everything above sees a model, and its life when the device is
// lost.
//
// Then everything on the device is gone, and nothing that matters is: the files have the weights,
// and each conversation knows its tokens. The model is loaded again on a new device, and
// conversations read their tokens again when they are next used.

import type { Device, Tier } from './adapter.js';
import type { Stop } from '../engine/boundary.js';
import { piecesOf } from '../engine/canvas.js';
import {
  addAdapter, checkConstraint, endsOf, type ChatTokens, type Constraint, type Info,
  type StoreTexts,
} from '../engine/cpu_engine.js';
import { Gpu } from './gpu.js';
import { GpuEngine } from './gpu_engine.js';
import type { GpuSession } from './gpu_session.js';
import { GpuTraining } from '../train/gpu_training.js';
import type {
  AdapterOptions, CanvasStep, Conversation, ConversationOptions, DeviceReport, Memory, Model, Piece,
  Preview, Progress, ReadOptions, SelfTest, StepProfile, Training, TrainingTexts, TrainingWishes,
} from '../engine/model.js';
import { bandwidth } from './profile.js';
import { openWithFetches, type Source } from '../load/source.js';
import { preview, trainBytes } from '../train/training.js';
import { stopped, Turn } from '../engine/turns.js';
import { BezelError, Core } from '../engine/wasm.js';

const PATIENCE = 3; // devices that may be lost in a row without a token in between

export interface GpuModelOptions {
  /** What a person calls the model. */
  name?: string;
  store?: StoreTexts;
  /** Tokens of a conversation that does not say; 0 or absent: the core's choice. */
  context?: number;
  /** Where nobody says a context: bytes that a conversation may take (PlanOptions of
   *  estimate.ts). */
  contextBytes?: number;
  /** 'subgroup': no subgroup matrices, even where the device has them; 'plain': no subgroups
   *  either. */
  tier?: Tier;
  /** How keys and values are kept. */
  cache?: 'f32' | 'f16';
  /** Tokens of a prompt that are read in one step; absent: the backend's choice. */
  batch?: number;
  /** Test every kernel before it is used; absent: unless the device is a software adapter. */
  selfTest?: boolean;
  /** Bytes of graphics memory that may be used; absent: what the device's profile allows. */
  budget?: number;
  onProgress?: (progress: Progress) => void;
  signal?: AbortSignal;
}

/** An adapter by the number that it was given here; the core numbers anew on every device. */
interface Adapter {
  readonly source: Source;
  readonly options: AdapterOptions;
  scale: number;
  inCore: number;
}

/** Failures of the device by kind; those of the core have theirs. */
function asDeviceError(e: unknown): unknown {
  return e instanceof BezelError || !(e instanceof Error)
    ? e
    : new BezelError(e.message, 'device', e);
}

export class GpuModel implements Model {
  private readonly conversations = new Set<GpuConversation>();
  private readonly trainings = new Set<GpuTraining>();
  private readonly adapters = new Map<number, Adapter>();
  private nextAdapter = 0;
  private rebuilding: Promise<void> | undefined;
  private closed = false;
  private gone = false;

  private constructor(
    private current: GpuEngine,
    private readonly again: () => Promise<GpuEngine>,
    private readonly options: GpuModelOptions,
  ) {}

  /** Several sources are the shards of one model; they stay the caller's, and must outlive the
   *  model. `device` is called again when the device is lost. */
  static async open(
    wasm: WebAssembly.Module | Promise<WebAssembly.Module>,
    device: () => Promise<Device>,
    sources: readonly Source[],
    options: GpuModelOptions = {},
  ): Promise<GpuModel> {
    const { onProgress: _, signal: __, ...lasting } = options;
    const load = async (o: GpuModelOptions): Promise<GpuEngine> => {
      // meanwhile: in Node the thread is held up until the device is there
      const header = sources[0]?.readHead?.();
      const gpu = new Gpu(await device());
      try {
        await header;
        return await GpuEngine.open(await Core.load(await wasm, gpu), sources, o);
      } catch (e) {
        gpu.close();
        throw o.signal?.aborted ? stopped(o.signal) : asDeviceError(e);
      }
    };
    let engine: GpuEngine;
    try {
      engine = await load(options);
    } catch (e) {
      throw asDeviceError(e);
    }
    return new GpuModel(engine, () => load(lasting), lasting);
  }

  get info(): Info {
    return this.current.info;
  }

  get device(): DeviceReport {
    return this.current.device;
  }

  get memory(): Memory {
    return this.current.memory;
  }

  selfTest(): Promise<SelfTest[]> {
    return this.steady(async (engine) => {
      await engine.whole();
      return engine.device.selfTest;
    });
  }

  tokenize(
    text: string, { bos = true, plain = false }: { bos?: boolean; plain?: boolean } = {},
  ): Int32Array {
    return this.current.tokenize(text, bos, plain);
  }

  chatTokens(
    conversation: string, options?: { thinking?: boolean; history?: boolean },
  ): ChatTokens {
    return this.current.chatTokens(conversation, options);
  }

  detokenize(ids: Int32Array, specials = false): string {
    return this.current.detokenize(ids, specials);
  }

  ends(): Int32Array {
    return endsOf(this.current.core, this.current.ptr);
  }

  checkConstraint(constraint: Constraint): string | undefined {
    return checkConstraint(this.current.core, this.current.ptr, constraint);
  }

  async addAdapter(source: Source, options: AdapterOptions = {}): Promise<number> {
    const adapter: Adapter = { source, options, scale: options.scale ?? 1, inCore: -1 };
    await this.steady(async (engine) => this.attach(engine, adapter));
    this.adapters.set(this.nextAdapter, adapter);
    return this.nextAdapter++;
  }

  private async attach(engine: GpuEngine, adapter: Adapter): Promise<void> {
    const { core, gpu, ptr } = engine, x = core.exports;
    const id = addAdapter(core, ptr, adapter.source, { ...adapter.options, scale: adapter.scale });
    try {
      await gpu.ready();
      x.bz_wasm_gpu_adapter_forget(ptr, id);
    } catch (e) {
      x.bz_wasm_adapter_remove(ptr, id);
      throw gpu.takeFault() ?? e;
    }
    adapter.inCore = id;
  }

  private adapter(id: number): Adapter {
    const found = this.adapters.get(id);
    if (!found) throw new BezelError(`there is no adapter number ${id}`, 'not-found');
    return found;
  }

  scaleAdapter(id: number, scale: number): void {
    const adapter = this.adapter(id), { core, ptr } = this.current;
    core.checkNumber(core.exports.bz_wasm_adapter_scale(ptr, adapter.inCore, scale));
    adapter.scale = scale;
  }

  removeAdapter(id: number): void {
    const adapter = this.adapter(id), { core, ptr } = this.current;
    core.checkNumber(core.exports.bz_wasm_adapter_remove(ptr, adapter.inCore));
    this.adapters.delete(id);
  }

  async conversation(
    context = this.options.context ?? this.current.context,
  ): Promise<Conversation> {
    const session = await this.steady((engine) => this.openSession(engine, context));
    const made: GpuConversation = new GpuConversation(this, session, () => {
      this.conversations.delete(made);
      if (this.closed) this.close();
    });
    this.conversations.add(made);
    return made;
  }

  openSession(engine: GpuEngine, context: number): Promise<GpuSession> {
    return openSession(engine, context, this.options.cache);
  }

  preview(text: string, sequence: number, max: number): Preview {
    return preview(this.current.core, this.current.ptr, text, sequence, max);
  }

  trainBytes(wishes: TrainingWishes, tokens: number): number {
    return trainBytes(this.current.core, this.current.ptr, wishes, tokens);
  }

  /** A device that is lost ends it; a checkpoint goes on. */
  async training(texts: TrainingTexts, wishes: TrainingWishes): Promise<Training> {
    const engine = await this.alive();
    const made: GpuTraining =
      await GpuTraining.open(engine, texts, wishes, () => this.trainings.delete(made));
    this.trainings.add(made);
    return made;
  }

  async bandwidth(): Promise<number> {
    return bandwidth((await this.alive()).core);
  }

  /** The last conversation that is at something takes the rest along. */
  close(): void {
    this.closed = true;
    for (const one of [...this.trainings]) one.close();
    for (const one of [...this.conversations]) one.close();
    if (this.conversations.size || this.gone) return;
    this.gone = true;
    shut(this.current);
  }

  // ---- losing the device ----

  get engine(): GpuEngine {
    return this.current;
  }

  /** The engine, on a device that was there a moment ago. */
  async alive(): Promise<GpuEngine> {
    if (this.closed) throw new BezelError('this model is closed', 'argument');
    if (this.current.gpu.isLost)
      await (this.rebuilding ??= this.rebuild().finally(() => (this.rebuilding = undefined)));
    return this.current;
  }

  /** Do something with the engine, again on a new device where the device was lost meanwhile. */
  private async steady<T>(work: (engine: GpuEngine) => Promise<T>): Promise<T> {
    for (let tries = 1; ; tries++) {
      const engine = await this.alive();
      try {
        return await work(engine);
      } catch (e) {
        if (!engine.gpu.isLost || tries === PATIENCE) throw asDeviceError(e);
      }
    }
  }

  private async rebuild(): Promise<void> {
    const why = await this.current.gpu.lost;
    let engine: GpuEngine | undefined;
    try {
      const made = (engine = await openWithFetches(this.again));
      for (const adapter of this.adapters.values())
        await openWithFetches(() => this.attach(made, adapter));
      this.current = made;
    } catch (e) {
      if (engine) shut(engine);
      throw new BezelError(
        `${why}; the model could not be loaded again: `
          + `${e instanceof Error ? e.message : String(e)}`,
        'device',
        e,
      );
    }
  }
}

/** Close an engine, and its device as soon as nothing is written there any more. */
function shut(engine: GpuEngine): void {
  void engine.close().then(() => engine.gpu.close());
}

/** A session whose memory the device really has. */
async function openSession(
  engine: GpuEngine, context: number, cache: 'f32' | 'f16' = 'f32',
): Promise<GpuSession> {
  let session: GpuSession | undefined;
  try {
    session = engine.session(context, undefined, cache);
    await engine.gpu.ready();
    return session;
  } catch (e) {
    session?.close();
    const fault = engine.gpu.takeFault(); // nothing of it is left
    throw e instanceof BezelError ? e : (fault ?? e);
  }
}

export class GpuConversation implements Conversation {
  readonly context: number;
  readonly denoise?: NonNullable<Conversation['denoise']>;
  private readonly turn = new Turn('this conversation is busy');
  private readonly closing = new AbortController();

  constructor(
    private readonly model: GpuModel,
    private session: GpuSession,
    private readonly onClose: () => void,
  ) {
    this.context = session.context;
    if (model.info.n_canvas) this.denoise = (options) => this.steps(options);
  }

  get tokens(): Int32Array {
    return this.session.tokens;
  }

  get length(): number {
    return this.session.length;
  }

  /** A session on this engine, with the tokens of the one before where that one's device was
   *  lost. */
  private async sessionOn(engine: GpuEngine, signal?: AbortSignal): Promise<GpuSession> {
    const old = this.session;
    if (old.engine === engine) return old;
    const fresh = await this.model.openSession(engine, this.context);
    try {
      if (old.length) await fresh.read(old.tokens, signal && { signal });
    } catch (e) {
      fresh.close();
      throw e;
    }
    this.session = fresh; // the old one's memory went with its core
    return fresh;
  }

  /** Do something with the session; again, from its tokens, where the device was lost meanwhile. */
  private async steady<T>(
    work: (session: GpuSession) => Promise<T>, signal?: AbortSignal,
  ): Promise<T> {
    for (let tries = 1; ; tries++) {
      const engine = await this.model.alive();
      try {
        return await work(await this.sessionOn(engine, signal));
      } catch (e) {
        if (!engine.gpu.isLost || tries === PATIENCE) throw asDeviceError(e);
      }
    }
  }

  private withClosing(signal: AbortSignal | undefined): AbortSignal {
    return signal ? AbortSignal.any([signal, this.closing.signal]) : this.closing.signal;
  }

  set(ids: Int32Array, options: ReadOptions = {}): Promise<number> {
    const signal = this.withClosing(options.signal);
    return this.turn.take(async () => {
      let kept: number | undefined;
      await this.steady(async (session) => {
        const same = session.keep(ids);
        kept ??= same;
        if (same < ids.length) await session.read(ids.subarray(same), { ...options, signal });
      }, signal);
      return kept as number;
    }, this.settle);
  }

  logits(
    ids: Int32Array,
    each: (position: number, row: Float32Array) => void,
    signal?: AbortSignal,
    between?: ReadOptions['between'],
  ): Promise<void> {
    const heeding = (position: number, row: Float32Array): void => {
      if (signal?.aborted) throw stopped(signal);
      each(position, row);
    };
    return this.turn.take(
      async () =>
        (await this.sessionOn(await this.model.alive())).feed(ids, ids.length, heeding, between),
      this.settle,
    );
  }

  profile(ids: Int32Array, timed: boolean): Promise<StepProfile> {
    return this.turn.take(
      async () => (await this.sessionOn(await this.model.alive())).profile(ids, timed), this.settle,
    );
  }

  generate(options: ConversationOptions = {}): AsyncGenerator<Piece, { stop: Stop }, void> {
    return this.denoise ? piecesOf(this.denoise(options)) : this.drawn(options);
  }

  /** A canvas whose device is lost begins anew: its random tokens are the same. */
  private async *steps(
    options: ConversationOptions = {},
  ): AsyncGenerator<CanvasStep, { stop: Stop }, void> {
    const leave = this.turn.begin(), signal = this.withClosing(options.signal);
    const begun = { tokens: 0, canvases: 0 };
    try {
      for (let tries = 1; ; tries++) {
        const engine = await this.model.alive();
        try {
          const steps =
            (await this.sessionOn(engine, signal)).denoise({ ...options, signal }, begun);
          try {
            for (;;) {
              const next = await steps.next();
              if (next.done) return next.value;
              const { final } = next.value;
              begun.tokens += final?.ids.length ?? 0;
              begun.canvases += +(final !== undefined);
              tries = 1;
              yield next.value;
            }
          } finally {
            await steps.return({ stop: 'cancelled' });
          }
        } catch (e) {
          if (signal.aborted) return { stop: 'cancelled' };
          if (!engine.gpu.isLost || tries === PATIENCE) throw asDeviceError(e);
        }
      }
    } finally {
      leave();
      this.settle();
    }
  }

  private async *drawn(options: ConversationOptions): AsyncGenerator<Piece, { stop: Stop }, void> {
    const leave = this.turn.begin(), signal = this.withClosing(options.signal);
    try {
      for (let drawn = 0, tries = 1; ; tries++) {
        const engine = await this.model.alive();
        try {
          const pieces =
            (await this.sessionOn(engine, signal)).generate({ ...options, signal, resumed: drawn });
          try {
            for (;;) {
              const next = await pieces.next();
              if (next.done) return next.value;
              drawn++;
              tries = 1;
              yield next.value;
            }
          } finally {
            await pieces.return({ stop: 'cancelled' });
          }
        } catch (e) {
          if (signal.aborted) return { stop: 'cancelled' };
          if (!engine.gpu.isLost || tries === PATIENCE) throw asDeviceError(e);
        }
      }
    } finally {
      leave();
      this.settle();
    }
  }

  truncate(n: number): number {
    this.turn.begin()(); // not while something is under way
    return this.session.truncate(n);
  }

  save(): Promise<Uint8Array> {
    return this.turn.take(() => this.steady((session) => session.save()), this.settle);
  }

  restore(snapshot: Uint8Array): Promise<void> {
    return this.turn.take(
      () => this.steady(async (session) => session.restore(snapshot)), this.settle,
    );
  }

  /** What is under way stops first. */
  close(): void {
    this.closing.abort();
    if (!this.turn.busy) this.settle();
  }

  private readonly settle = (): void => {
    if (!this.closing.signal.aborted) return;
    this.session.close();
    this.onClose();
  };
}
