// gpu_model - a model on the GPU, as everything above sees a model.

import type { Device } from './adapter.js';
import { optionsJson, stopNames, type Info, type Stop, type StoreTexts } from './cpu_engine.js';
import { Gpu } from './gpu.js';
import { GpuEngine } from './gpu_engine.js';
import type { GpuSession } from './gpu_session.js';
import type { AdapterOptions, Conversation, ConversationOptions, DeviceReport, Memory, Model, Piece, Progress, StepProfile } from './model.js';
import { bandwidth } from './profile.js';
import type { Source } from './source.js';
import { stopped } from './turns.js';
import { BezelError, Core } from './wasm.js';

export interface GpuModelOptions {
  name?: string;
  store?: StoreTexts;
  context?: number;
  tier?: 'subgroup' | 'plain';
  cache?: 'f32' | 'f16';
  onProgress?: (progress: Progress) => void;
  signal?: AbortSignal;
}

/** Errors of the device by kind; those of the core have theirs. */
function deviceError(e: unknown): unknown {
  return e instanceof BezelError || !(e instanceof Error) || e.name === 'AbortError' ? e : new BezelError(e.message, 'device', e);
}

export class GpuModel implements Model {
  readonly device: DeviceReport;
  private readonly open = new Set<GpuConversation>();

  private constructor(private readonly engine: GpuEngine, private readonly context: number, tier: 'subgroup' | 'plain') {
    const { name, limits } = engine.gpu.info;
    this.device = { backend: 'gpu', name, tier: limits.subgroupMax ? tier : 'plain', limits: { ...limits }, selfTest: [] };
  }

  static async open(wasm: WebAssembly.Module, device: () => Promise<Device>, sources: readonly Source[], options: GpuModelOptions = {}): Promise<GpuModel> {
    const { name, tier = 'subgroup', context = 0, onProgress, signal } = options;
    const [source] = sources;
    if (!source || sources.length > 1) throw new BezelError('the GPU takes models of one file', 'unsupported');
    try {
      const core = await Core.load(wasm, new Gpu(await device()));
      const engine = await GpuEngine.open(core, source, {
        ...(name !== undefined && { name }),
        plain_kernels: tier === 'plain',
        onProgress: (p) => onProgress?.({ phase: 'weights', ...p }),
        ...(signal && { signal }),
      });
      onProgress?.({ phase: 'ready', loaded: 1, total: 1 });
      return new GpuModel(engine, context, tier);
    } catch (e) {
      throw signal?.aborted ? stopped(signal) : deviceError(e);
    }
  }

  get info(): Info {
    return this.engine.info;
  }

  get memory(): Memory {
    const memory = { weights: this.info.weight_bytes, cache: 0, scratch: 0 };
    for (const { session } of this.open) memory.cache += this.engine.core.exports.bz_wasm_session_cache_bytes(session.ptr);
    memory.scratch = Math.max(0, this.engine.gpu.bytes - memory.weights - memory.cache);
    return memory;
  }

  tokenize(text: string, { bos = true, plain = false }: { bos?: boolean; plain?: boolean } = {}): Int32Array {
    return this.engine.tokenize(text, bos, plain);
  }

  detokenize(ids: Int32Array, specials = false): string {
    return this.engine.detokenize(ids, specials);
  }

  async addAdapter(_source: Source, _options: AdapterOptions = {}): Promise<number> {
    throw new BezelError('adapters on the GPU are not there yet', 'unsupported');
  }

  scaleAdapter(id: number, _scale: number): void {
    throw new BezelError(`there is no adapter number ${id}`, 'not-found');
  }

  removeAdapter(id: number): void {
    throw new BezelError(`there is no adapter number ${id}`, 'not-found');
  }

  async conversation(context = this.context): Promise<Conversation> {
    const made: GpuConversation = new GpuConversation(this.engine, this.engine.session(context), () => this.open.delete(made));
    this.open.add(made);
    return made;
  }

  async bandwidth(): Promise<number> {
    return bandwidth(this.engine.core);
  }

  close(): void {
    for (const one of [...this.open]) one.close();
    this.engine.close();
    this.engine.gpu.close();
  }
}

class GpuConversation implements Conversation {
  readonly context: number;

  constructor(private readonly engine: GpuEngine, readonly session: GpuSession, private readonly closed: () => void) {
    this.context = engine.core.exports.bz_wasm_session_context(session.ptr);
  }

  get tokens(): Int32Array {
    return this.session.tokens;
  }

  get length(): number {
    return this.session.length;
  }

  async set(ids: Int32Array, { signal, onProgress }: { signal?: AbortSignal; onProgress?: (done: number, total: number) => void } = {}): Promise<number> {
    const { core } = this.engine;
    const kept = core.with(ids, (p, n) => core.checkNumber(core.exports.bz_wasm_session_keep(this.session.ptr, p, n)));
    for (let at = kept; at < ids.length;) {
      if (signal?.aborted) throw stopped(signal);
      const end = Math.min(ids.length, at + 512);
      await this.session.feed(ids.subarray(at, end));
      at = end;
      onProgress?.(at - kept, ids.length - kept);
    }
    return kept;
  }

  async logits(ids: Int32Array, each: (position: number, row: Float32Array) => void): Promise<void> {
    await this.session.feed(ids, ids.length, each);
  }

  async profile(ids: Int32Array, timed: boolean): Promise<StepProfile> {
    return this.session.profile(ids, timed);
  }

  async *generate({ signal, logprobs, ahead, ...options }: ConversationOptions = {}): AsyncGenerator<Piece, { stop: Stop }, void> {
    if (logprobs !== undefined) throw new BezelError('log-probabilities on the GPU are not there yet', 'unsupported');
    const { core } = this.engine, x = core.exports;
    const last = this.tokens.slice(-1);
    const g = core.with(optionsJson(options), (p, n) => core.check(x.bz_wasm_generation_open(this.session.ptr, p, n)));
    try {
      if (core.checkNumber(x.bz_wasm_generation_room(g))) return { stop: stopNames[x.bz_wasm_generation_stop(g)] ?? 'end' };
      const kept = this.session.truncate(this.length - 1);
      if (kept !== this.length) throw new BezelError('feed the conversation again before going on', 'argument');
      for await (const id of this.session.generate(last, options, ahead)) {
        const over = core.checkNumber(x.bz_wasm_generation_take(g, id));
        yield { id, text: core.resultText() };
        if (over) return { stop: stopNames[x.bz_wasm_generation_stop(g)] ?? 'end' };
        if (signal?.aborted) return { stop: 'cancelled' };
      }
      return { stop: 'context' };
    } finally {
      x.bz_wasm_generation_close(g);
    }
  }

  truncate(n: number): number {
    return this.session.truncate(n);
  }

  async save(): Promise<Uint8Array> {
    throw new BezelError('snapshots on the GPU are not there yet', 'unsupported');
  }

  async restore(_snapshot: Uint8Array): Promise<void> {
    throw new BezelError('snapshots on the GPU are not there yet', 'unsupported');
  }

  close(): void {
    this.session.close();
    this.closed();
  }
}
