// wasm - the core: one WebAssembly module, its memory, and calls that cannot be mixed up.
//
// Pointers are branded numbers that never leave the package. Views on memory are made where they
// are used, because memory that grows leaves old ones behind, empty.

import { BezelError, type ErrorKind } from '../api/errors.js';
import { trainingUrl, wasmUrl } from '../beside.js';
import type { Gpu } from '../gpu/gpu.js';
import { isNode, nodeFiles } from '../load/node_files.js';
import type { Source } from '../load/source.js';

export { BezelError, type ErrorKind };

declare const brand: unique symbol;
/** An address in the module's memory; T says of what. */
export type Ptr<T extends string> = number & { readonly [brand]: T };

export type EnginePtr = Ptr<'engine'>;
export type SessionPtr = Ptr<'session'>;
export type GenerationPtr = Ptr<'generation'>;
export type ProgramPtr = Ptr<'program'>;
export type DrawPtr = Ptr<'draw'>;
export type DigestPtr = Ptr<'digest'>;
export type ChatPtr = Ptr<'chat'>;
export type SelfTestPtr = Ptr<'selftest'>;
export type DataPtr = Ptr<'data'>;
export type TrainingPtr = Ptr<'training'>;
export type MergePtr = Ptr<'merge'>;
export type Bytes = Ptr<'bytes'>;

/** What src/wasm/*.c exports. Functions that fail return 0 (pointers) or -1 (numbers). */
export interface Exports {
  memory: WebAssembly.Memory;
  _initialize(): void;
  bz_wasm_seed(a: number, b: number, c: number, d: number): void;
  bz_wasm_result(): number;
  bz_wasm_error(): number;
  bz_wasm_status(): number;
  bz_wasm_alloc(n: number): Bytes;
  bz_wasm_free(p: Bytes): void;
  bz_wasm_live(): number;
  bz_wasm_kernel(number: number): number;
  bz_wasm_kernels_bring(text: Bytes, n: number): number;
  bz_wasm_kernel_bandwidth(): number;
  bz_wasm_engine_open(json: Bytes, n: number): EnginePtr;
  bz_wasm_engine_read_on(e: EnginePtr): number;
  bz_wasm_engine_close(e: EnginePtr): void;
  bz_wasm_engine_info(e: EnginePtr): number;
  bz_wasm_tokenize(e: EnginePtr, text: Bytes, n: number, bos: number, plain: number): number;
  bz_wasm_detokenize(e: EnginePtr, ids: Bytes, n: number, specials: number): number;
  bz_wasm_chat_render(
    json: Bytes, n: number, large: number, thinking: number, history: number,
  ): number;
  bz_wasm_chat_tokenize(
    e: EnginePtr, json: Bytes, n: number, thinking: number, history: number,
  ): number;
  bz_wasm_chat_open(json: Bytes, n: number): ChatPtr;
  bz_wasm_chat_feed(c: ChatPtr, text: Bytes, n: number): number;
  bz_wasm_chat_end(c: ChatPtr): number;
  bz_wasm_chat_close(c: ChatPtr): void;
  bz_wasm_adapted(e: EnginePtr): number;
  bz_wasm_adapter_add(e: EnginePtr, json: Bytes, n: number): number;
  bz_wasm_adapter_scale(e: EnginePtr, id: number, scale: number): number;
  bz_wasm_adapter_remove(e: EnginePtr, id: number): number;
  bz_wasm_adapter_file(json: Bytes, n: number, which: number): number;
  bz_wasm_inspect(json: Bytes, n: number): number;
  bz_wasm_merge_open(json: Bytes, n: number): MergePtr;
  bz_wasm_merge_bytes(m: MergePtr): number;
  bz_wasm_merge_changed(m: MergePtr): number;
  bz_wasm_merge_next(m: MergePtr): number;
  bz_wasm_merge_give(m: MergePtr, bytes: Bytes): number;
  bz_wasm_merge_end(m: MergePtr): number;
  bz_wasm_merge_close(m: MergePtr): void;
  bz_wasm_store_name(text: Bytes, n: number): number;
  bz_wasm_store_manifest(json: Bytes, n: number): number;
  bz_wasm_sha256_open(): DigestPtr;
  bz_wasm_sha256_feed(d: DigestPtr, bytes: Bytes, n: number): void;
  bz_wasm_sha256_end(d: DigestPtr): void;
  bz_wasm_session_open(e: EnginePtr, context: number, batch: number, f16?: number): SessionPtr;
  bz_wasm_session_close(s: SessionPtr): void;
  bz_wasm_session_bytes(e: EnginePtr, context: number, batch: number, f16?: number): number;
  bz_wasm_session_feed(s: SessionPtr, ids: Bytes, n: number, logits: number, show: number): number;
  bz_wasm_session_set(s: SessionPtr, ids: Bytes, n: number): number;
  bz_wasm_session_keep(s: SessionPtr, ids: Bytes, n: number): number;
  bz_wasm_session_truncate(s: SessionPtr, n: number): number;
  bz_wasm_session_tokens(s: SessionPtr): void;
  bz_wasm_session_cache_bytes(s: SessionPtr): number;
  bz_wasm_session_context(s: SessionPtr): number;
  bz_wasm_session_length(s: SessionPtr): number;
  bz_wasm_session_logits(s: SessionPtr): number;
  bz_wasm_session_save(s: SessionPtr): number;
  bz_wasm_session_restore(s: SessionPtr, source: number, n: number): number;
  bz_wasm_session_sample(s: SessionPtr, json: Bytes, n: number): number;
  bz_wasm_generation_open(s: SessionPtr, json: Bytes, n: number): GenerationPtr;
  bz_wasm_generation_step(g: GenerationPtr): number;
  bz_wasm_generation_room(g: GenerationPtr): number;
  bz_wasm_generation_take(g: GenerationPtr, id: number): number;
  bz_wasm_generation_stop(g: GenerationPtr): number;
  bz_wasm_generation_first(g: GenerationPtr): number;
  bz_wasm_generation_count(g: GenerationPtr): number;
  bz_wasm_generation_mask(g: GenerationPtr, mask: Bytes, words: number): number;
  bz_wasm_generation_close(g: GenerationPtr): void;
  bz_wasm_gpu_upload_bytes(e: EnginePtr): number;
  bz_wasm_gpu_weight_bytes(e: EnginePtr): number;
  bz_wasm_gpu_has_table(e: EnginePtr): number;
  bz_wasm_gpu_leave_table(e: EnginePtr): void;
  bz_wasm_gpu_postpone_table(e: EnginePtr): void;
  bz_wasm_gpu_resume_table(e: EnginePtr): void;
  bz_wasm_gpu_table_there(e: EnginePtr): void;
  bz_wasm_gpu_table_buffer(e: EnginePtr, i: number): number;
  bz_wasm_gpu_table_rows(s: SessionPtr, first: number, n: number, bytes: Bytes): number;
  bz_wasm_gpu_free_scratch(e: EnginePtr): void;
  bz_wasm_gpu_without(e: EnginePtr, rules: number): void;
  bz_wasm_gpu_reserve(s: SessionPtr, what: number): number;
  bz_wasm_gpu_ask_noted(e: EnginePtr, group: number): void;
  bz_wasm_gpu_unproven(
    s: SessionPtr, rows: number, logits: number, horizon: number, first: number, last: number,
  ): number;
  bz_wasm_gpu_expect(s: SessionPtr, horizon: number): void;
  bz_wasm_gpu_demote(e: EnginePtr, kernel: number): number;
  bz_wasm_gpu_selftest_open(e: EnginePtr): SelfTestPtr;
  bz_wasm_gpu_selftest_close(t: SelfTestPtr): void;
  bz_wasm_gpu_selftest_prepare(t: SelfTestPtr): number;
  bz_wasm_gpu_selftest_record(t: SelfTestPtr): number;
  bz_wasm_gpu_selftest_judge(t: SelfTestPtr, results: Bytes): number;
  bz_wasm_gpu_upload_cuts(e: EnginePtr): void;
  bz_wasm_gpu_upload_next(e: EnginePtr, max: number, maxPlaced: number, window: Bytes): number;
  bz_wasm_gpu_window_size(): number;
  bz_wasm_gpu_upload_give(e: EnginePtr, window: Bytes, bytes: Bytes): number;
  bz_wasm_gpu_upload_place(e: EnginePtr, window: Bytes, staging: number, scratch: number): number;
  bz_wasm_gpu_upload_placed(window: Bytes): void;
  bz_wasm_gpu_program_free(p: ProgramPtr): void;
  bz_wasm_gpu_program_number(p: ProgramPtr): number;
  bz_wasm_gpu_record(s: SessionPtr, rows: number, logits: number, horizon: number): ProgramPtr;
  bz_wasm_gpu_record_draw(s: SessionPtr, draw: DrawPtr): ProgramPtr;
  bz_wasm_gpu_feed(s: SessionPtr, ids: Bytes, n: number): number;
  bz_wasm_gpu_fed(s: SessionPtr, ids: Bytes, n: number, hasLogits: number): number;
  bz_wasm_gpu_draw(s: SessionPtr, draw: DrawPtr): number;
  bz_wasm_gpu_decode(s: SessionPtr, ahead: number, draw: DrawPtr, place: number): number;
  bz_wasm_gpu_redo(s: SessionPtr, id: number, draw: DrawPtr): number;
  bz_wasm_gpu_draw_open(
    s: SessionPtr, json: Bytes, n: number, mask?: Bytes, words?: number,
  ): DrawPtr;
  bz_wasm_gpu_draw_mask(s: SessionPtr, d: DrawPtr, mask: Bytes, words: number): number;
  bz_wasm_gpu_draw_close(d: DrawPtr): void;
  bz_wasm_gpu_took(s: SessionPtr, id: number): number;
  bz_wasm_gpu_logits_buffer(s: SessionPtr): number;
  bz_wasm_gpu_step_buffer(s: SessionPtr): number;
  bz_wasm_gpu_save(s: SessionPtr): number;
  bz_wasm_snapshot_digest(source: number, n: number): number;
  bz_wasm_gpu_adapter_forget(e: EnginePtr, id: number): void;
  bz_wasm_data_open(e: EnginePtr, text: Bytes, n: number, sequence: number, held: number): DataPtr;
  bz_wasm_data_close(d: DataPtr): void;
  bz_wasm_data_about(d: DataPtr): number;
  bz_wasm_data_example(d: DataPtr, i: number): number;
  bz_wasm_train_bytes(e: EnginePtr, json: Bytes, n: number, tokens: number): number;
  bz_wasm_train_open(
    e: EnginePtr, data: DataPtr, held: DataPtr, json: Bytes, n: number,
  ): TrainingPtr;
  bz_wasm_train_close(t: TrainingPtr): void;
  bz_wasm_train_about(t: TrainingPtr): number;
  bz_wasm_train_begin(t: TrainingPtr): number;
  bz_wasm_train_pass(t: TrainingPtr, i: number): number;
  bz_wasm_train_finish(t: TrainingPtr): number;
  bz_wasm_train_held(t: TrainingPtr, i: number): number;
  bz_wasm_train_scale(t: TrainingPtr, scale: number): void;
  bz_wasm_train_save(t: TrainingPtr): number;
  bz_wasm_train_load(t: TrainingPtr, checkpoint: Bytes, n: number): number;
  bz_wasm_train_file(t: TrainingPtr, which: number, base: Bytes, n: number): number;
  bz_wasm_train_gpu_part(t: TrainingPtr, part: number, i: number): number;
  bz_wasm_train_gpu_control(t: TrainingPtr): number;
  bz_wasm_train_gpu_end(t: TrainingPtr, control: Bytes): number;
  bz_wasm_train_gpu_mirror(t: TrainingPtr): Bytes;
  bz_wasm_train_gpu_forget(t: TrainingPtr): void;
}

/** A variant of a kernel: a family, and a value for each of its axes. */
export interface KernelInfo {
  readonly name: string; // `matmul[q4_k subgroup]`, without the axes' defaults
  readonly source: string;
  readonly bindings: string; // u uniform, r read, w read and write
  readonly overrides: readonly string[]; // of the family, by their numbers
  readonly paramsBytes: number;
}

/** enum bz_status, by name. */
const statuses = [
  'ok', 'argument', 'memory', 'io', 'format', 'unsupported', 'not-found', 'limit', 'cancelled',
] as const;

const encoder = new TextEncoder();
// a piece of text may begin with that character
const decoder = new TextDecoder('utf-8', { ignoreBOM: true });

export type LogitsFn = (position: number, logits: Float32Array) => boolean | void;

export class Core {
  readonly exports: Exports;
  readonly gpu: Gpu | undefined;
  /** Sees each position's logits while tokens are fed; the view is good during the call only. */
  onLogits: LogitsFn | undefined;
  private readonly sources = new Map<number, Source>();
  private nextSource = 1;
  private vocab = 0; // of the engine that is fed now
  private cause: unknown; // why the host failed to read
  private readonly known = new Map<number, KernelInfo>();
  private brought = false; // training's kernels are there

  private constructor(module: WebAssembly.Module, gpu: Gpu | undefined) {
    const absent = () => {
      throw new BezelError('this engine was opened without a GPU', 'device');
    };
    const none = Object.fromEntries(WebAssembly.Module
      .imports(module)
      .filter((i) => i.module === 'gpu')
      .map((i) => [i.name, absent]));
    const host = {
      read: (id: number, offset: number, dst: number, n: number): number =>
        this.read(id, offset, dst >>> 0, n >>> 0),
      logits: (position: number, p: number): number =>
        this.onLogits?.(position >>> 0, new Float32Array(this.memory.buffer, p, this.vocab))
          === false
          ? 0
          : 1,
    };
    const instance = new WebAssembly.Instance(module, { host, gpu: gpu?.imports ?? none });
    this.exports = instance.exports as unknown as Exports;
    this.gpu = gpu;
    gpu?.attach(this);
    this.exports._initialize();
    // keys of hash tables
    const [a = 0, b = 0, c = 0, d = 0] = crypto.getRandomValues(new Uint32Array(4));
    this.exports.bz_wasm_seed(a, b, c, d);
  }

  static async load(wasm: BufferSource | WebAssembly.Module, gpu?: Gpu): Promise<Core> {
    return new Core(
      wasm instanceof WebAssembly.Module ? wasm : await WebAssembly.compile(wasm), gpu,
    );
  }

  get memory(): WebAssembly.Memory {
    return this.exports.memory;
  }

  // ---- sources ----

  /** A number under which the core can read the source. */
  addSource(source: Source): number {
    this.sources.set(this.nextSource, source);
    return this.nextSource++;
  }

  removeSource(id: number): void {
    this.sources.delete(id);
  }

  /** Call with a source that the core reads during the call only. */
  withSource<T>(source: Source, call: (id: number) => T): T {
    const id = this.addSource(source);
    try {
      return call(id);
    } finally {
      this.removeSource(id);
    }
  }

  private read(id: number, offset: number, dst: number, n: number): number {
    try {
      const source = this.sources.get(id);
      if (!source) throw new Error(`there is no source number ${id}`);
      source.read(offset, new Uint8Array(this.memory.buffer, dst, n));
      return 0;
    } catch (e) {
      this.cause = e;
      return 1;
    }
  }

  // ---- calling ----

  /** Throw what the core says went wrong. */
  fail(): never {
    const kind = statuses[this.exports.bz_wasm_status()] ?? 'argument';
    const cause = this.cause;
    this.cause = undefined;
    const why = cause instanceof Error ? ` (${cause.message})` : '';
    throw new BezelError(
      this.text(this.exports.bz_wasm_error()) + why, kind === 'ok' ? 'argument' : kind, cause,
    );
  }

  /** A pointer or number that a call gave back, or its failure as an exception. */
  check<T extends number>(value: T): T {
    if ((value as number) === 0 || value === -1) this.fail();
    return value;
  }

  /** For calls whose only failure is -1. */
  checkNumber(value: number): number {
    return value === -1 ? this.fail() : value;
  }

  /** Call with bytes (a string as UTF-8) copied into memory for the time of the call. */
  with<T>(data: string | Uint8Array | Int32Array, call: (p: Bytes, n: number) => T): T {
    const bytes = typeof data === 'string'
      ? encoder.encode(data)
      : new Uint8Array(data.buffer, data.byteOffset, data.byteLength);
    const p = this.check(this.exports.bz_wasm_alloc(bytes.length));
    this.cause = undefined; // of an earlier call, that the core made its own sense of
    try {
      new Uint8Array(this.memory.buffer, p, bytes.length).set(bytes);
      return call(p, typeof data === 'string' ? bytes.length : data.length);
    } finally {
      this.exports.bz_wasm_free(p);
    }
  }

  /** What the last call handed over, copied. */
  result(): Uint8Array {
    const [p = 0, n = 0] = new Uint32Array(this.memory.buffer, this.exports.bz_wasm_result(), 2);
    return new Uint8Array(this.memory.buffer, p, n).slice();
  }

  resultText(): string {
    const [p = 0, n = 0] = new Uint32Array(this.memory.buffer, this.exports.bz_wasm_result(), 2);
    return n ? decoder.decode(new Uint8Array(this.memory.buffer, p, n)) : '';
  }

  resultIds(): Int32Array {
    return new Int32Array(this.result().buffer);
  }

  /** Feed with a logits callback for a vocabulary of n. */
  watchLogits<T>(n: number, fn: LogitsFn | undefined, call: () => T): T {
    // never past the module's own frames, which would not be left in order
    let thrown: { readonly why: unknown } | undefined;
    this.vocab = n;
    this.onLogits = fn && ((position, row) => {
      try {
        return fn(position, row);
      } catch (why) {
        thrown = { why };
        return false;
      }
    });
    try {
      return call();
    } catch (e) {
      throw thrown ? thrown.why : e;
    } finally {
      this.onLogits = undefined;
    }
  }

  /** NUL-ended text at p. */
  private text(p: number): string {
    const bytes = new Uint8Array(this.memory.buffer, p);
    return decoder.decode(bytes.subarray(0, bytes.indexOf(0)));
  }

  // ---- kernels ----

  /** The kernel of a number: its text is expanded when it is first asked for. */
  kernel(number: number): KernelInfo {
    const known = this.known.get(number);
    if (known) return known;
    const paramsBytes = this.checkNumber(this.exports.bz_wasm_kernel(number));
    const [name = '', bindings = '', overrides = '', ...source] = this.resultText().split('\n');
    const made = {
      name, source: source.join('\n'), bindings, overrides: overrides.split(' '), paramsBytes,
    };
    this.known.set(number, made);
    return made;
  }

  /** Training's kernels, which are downloaded when a training begins. */
  async bringTraining(): Promise<void> {
    if (this.brought) return;
    const text = await loadTrainingKernels();
    this.with(text, (p, n) => this.checkNumber(this.exports.bz_wasm_kernels_bring(p, n)));
    this.brought = true;
  }
}

/** A file of the package. */
async function load(url: URL, what: string): Promise<Uint8Array<ArrayBuffer>> {
  // a thread that ends while it opens a file leaves it open
  if (url.protocol === 'file:' && isNode()) return new Uint8Array(nodeFiles().readFileSync(url));
  const answer = await fetch(url).catch((why: unknown) => {
    throw new BezelError(
      `cannot load ${what}: ${why instanceof Error ? why.message : String(why)}`, 'io', why,
    );
  });
  if (!answer.ok)
    throw new BezelError(
      `cannot load ${what}: ${answer.status} ${answer.statusText} for ${url.pathname}`, 'io',
    );
  return new Uint8Array(await answer.arrayBuffer());
}

/** The module. */
export const loadWasm = (): Promise<Uint8Array<ArrayBuffer>> => load(wasmUrl(), 'the engine');

/** The sources of training's kernels, which nothing else downloads. */
export const loadTrainingKernels = (): Promise<Uint8Array<ArrayBuffer>> =>
  load(trainingUrl(), 'the kernels for training');
