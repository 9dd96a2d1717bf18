// cpu_engine - a model and its conversations, as the core has them: synchronous, on the CPU.
//
// This is what a worker or a command-line tool holds. Field names of plain data are the core's own
// (snake_case), so that JSON goes through unchanged.

import {
  readHostCanvas, STOP, type Bytes, type EnginePtr, type GenerationPtr, type HostCanvas,
  type SessionPtr, type Stop,
} from './boundary.js';
import { BezelError, type Core, type LogitsFn } from './wasm.js';
import { memorySource, type Source } from '../load/source.js';

export interface Sampling {
  temperature: number;
  top_k: number;
  top_p: number;
  min_p: number;
  repeat_penalty: number;
  presence_penalty: number;
  frequency_penalty: number;
  penalty_window: number;
  seed: number | bigint;
}

/** How a diffusion model denoises a canvas. */
export interface CanvasSampling {
  /** Steps of a canvas at most. */
  steps: number;
  /** Temperature of the first step, and the one that steps go down to. */
  t_max: number;
  t_min: number;
  /** Nats that the positions which a step accepts may have together, but for the last of them. */
  entropy_bound: number;
  /** A canvas is finished once its most likely tokens have stayed the same for so many steps, and
   *  the mean entropy is below so many nats. */
  stability: number;
  confidence: number;
}

/** Of a text that is denoised, beside that: its first canvas. */
export interface CanvasOptions extends Partial<CanvasSampling> {
  /** Canvases at most; 0 or absent: until the text ends. */
  canvases?: number;
  /** What the first one begins with, as long as it is; -1: a random token. */
  canvas?: readonly number[];
  /** 1 where a token of it stays. */
  fixed?: readonly number[];
  /** Tokens instead of random ones, for tests: whole canvases one after the other (the first, one a
   *  step, the next first, ...), and draws of each step. */
  random?: readonly number[];
  sampled?: readonly number[];
}

/** struct bz_info, and how the model likes to be sampled. */
export interface Info {
  n_layer: number;
  n_embd: number;
  n_vocab: number;
  n_context: number;
  n_params: number;
  weight_bytes: number;
  bytes_a_token: number;
  chat_variant: 'small' | 'large';
  /** The store's default system prompt and opening messages. */
  system: string | null;
  messages: { role: string; content: string }[];
  /** The store's stop strings. */
  stop: string[];
  sampling: Sampling;
  /** Tokens that a diffusion model denoises together; 0: the model draws one after the other. */
  n_canvas: number;
  /** Of a diffusion model: how its file says to denoise. */
  diffusion?: CanvasSampling;
}

/** What an Ollama store says about a model beside its weights: texts as they lie there. */
export interface StoreTexts {
  name?: string;
  /** Folder of the store; blobs are named below it. */
  root?: string;
  manifest?: string;
  config?: string;
  params?: string;
  system?: string;
  messages?: string;
}

export interface OpenOptions {
  /** What a person calls the model. */
  name?: string;
  backend?: 'cpu' | 'reference';
  /** Tokenizer only: enough for a vocabulary file. */
  vocab_only?: boolean;
  store?: StoreTexts;
}

/** A tool that a text may call. */
export interface CallableTool {
  name: string;
  /** A JSON Schema of the arguments; absent: any object. */
  parameters?: unknown;
  /** The arguments keep to it; else they are any object. */
  strict?: boolean;
}

/** What a text keeps to; the JSON of bz_constraint_open in include/bezel.h. */
export interface Constraint {
  /** At most one of these four: a JSON Schema; any JSON object; a pattern of ECMA-262, for the
   *  whole text; a grammar in GBNF. */
  schema?: unknown;
  json?: true;
  regex?: string;
  gbnf?: string;
  /** JSON may have line breaks and spaces; else it is compact. */
  indent?: boolean;
  /** Keywords of a schema that cannot be kept exactly are left out; else they are an error. */
  lenient?: boolean;
  /** Calls are of one of these. */
  tools?: readonly CallableTool[];
  /** 'auto': text or calls; 'required': at least one call, and no text. */
  call?: 'auto' | 'required' | 'none';
  /** At most one call. */
  one_call?: boolean;
  /** A thought may come first. */
  thinking?: boolean;
  /** The prompt ends inside one. */
  in_thought?: boolean;
}

export interface GenerateOptions extends Partial<Sampling> {
  /** Tokens at most; 0: until the model ends or the context is full. */
  n_max?: number;
  stop?: readonly string[];
  ignore_end?: boolean;
  /** Show control tokens' text. */
  specials?: boolean;
  /** Added to logits; null forbids the token. */
  bias?: readonly (readonly [id: number, add: number | null])[];
  /** Of a diffusion model. */
  diffusion?: CanvasOptions;
  /** Not of a diffusion model. */
  constraint?: Constraint;
  /** Read tokens that the constraint leaves no choice of one by one, so that each has its own
   *  logits. */
  one_by_one?: boolean;
}

export interface Generated {
  ids: Int32Array;
  stop: Stop;
}

export interface RenderOptions {
  variant?: 'small' | 'large';
  thinking?: boolean;
  /** No generation prompt at the end. */
  history?: boolean;
}

/** JSON of the options. A seed has 64 bits, which the core reads as a signed number; a constraint
 *  is a string, by which the core finds it again. */
export function optionsJson({ seed, constraint, ...rest }: GenerateOptions): string {
  const text =
    JSON.stringify({ ...rest, ...(constraint && { constraint: JSON.stringify(constraint) }) });
  if (seed === undefined) return text;
  const before = text === '{}' ? '' : ',';
  return `${text.slice(0, -1)}${before}"seed":${BigInt.asIntN(64, BigInt(seed))}}`;
}

/** The tokens that end a text. */
export function endsOf(core: Core, engine: EnginePtr): Int32Array {
  core.checkNumber(core.exports.bz_wasm_ends(engine));
  return core.resultIds();
}

/** Why no text can keep to this; undefined: texts can. */
export function checkConstraint(
  core: Core, engine: EnginePtr, constraint: Constraint,
): string | undefined {
  try {
    core.with(JSON.stringify(constraint), (p, n) =>
      core.checkNumber(core.exports.bz_wasm_constraint_check(engine, p, n)));
    return undefined;
  } catch (e) {
    if (e instanceof BezelError && e.kind !== 'memory') return e.message;
    throw e;
  }
}

/** A prompt as tokens. */
export interface ChatTokens {
  ids: Int32Array;
  /** The answer begins inside a thought. */
  inThought: boolean;
}

/** A conversation {"messages", "tools", "begun"} to its tokens. Special tokens are the format's own
 *  alone: what messages and tools say is plain text, whatever it spells. */
export function chatTokens(
  core: Core,
  engine: EnginePtr,
  conversation: string | Uint8Array,
  options: Omit<RenderOptions, 'variant'> = {},
): ChatTokens {
  const { thinking = false, history = false } = options;
  const inThought = core.with(conversation, (p, n) =>
    core.checkNumber(core.exports.bz_wasm_chat_tokenize(engine, p, n, +thinking, +history)));
  return { ids: core.resultIds(), inThought: inThought === 1 };
}

/** A conversation {"messages": [...], "tools": [...]} to its prompt, for reading. */
export function render(
  core: Core, conversation: string | Uint8Array, options: RenderOptions = {},
): string {
  const { variant = 'small', thinking = false, history = false } = options;
  core.with(
    conversation,
    (p, n) => core.checkNumber(
      core.exports.bz_wasm_chat_render(p, n, +(variant === 'large'), +thinking, +history),
    ),
  );
  return core.resultText();
}

export interface InspectOptions {
  /** Machine-readable. */
  json?: boolean;
  keys?: boolean;
  tensors?: boolean;
  name?: string;
  store?: StoreTexts;
  /** PEFT's adapter_config.json: then the source is an adapter's weights. */
  config?: string;
}

/** What is in a file, and whether this build runs it. */
export function inspect(
  core: Core, sources: readonly Source[], options: InspectOptions = {},
): string {
  const ids = sources.map((s) => core.addSource(s));
  const described = sources.map((s, i) => ({ id: ids[i], name: s.name, size: s.size }));
  const what = options.config === undefined ? { sources: described } : { source: described[0] };
  try {
    core.with(JSON.stringify({ ...options, ...what }), (p, n) =>
      core.checkNumber(core.exports.bz_wasm_inspect(p, n)));
    return core.resultText();
  } finally {
    for (const id of ids) core.removeSource(id);
  }
}

/** A GGUF adapter, or PEFT's weights together with the text of adapter_config.json, hung onto an
 *  engine. */
export function addAdapter(
  core: Core, engine: EnginePtr, source: Source, options: { config?: string; scale?: number },
): number {
  return core.withSource(source, (id) => {
    const json =
      JSON.stringify({ ...options, source: { id, name: source.name, size: source.size } });
    return core.with(json, (p, n) =>
      core.checkNumber(core.exports.bz_wasm_adapter_add(engine, p, n)));
  });
}

/** Bytes of a model that are taken into the module's memory, so that conversations too have
 *  addresses below 2 GiB. */
const HELD_MAX = 1.5 * 2 ** 30, PIECE = 8 << 20;

const sizeOf = (sources: readonly Source[]): number => sources.reduce((n, { size }) => n + size, 0);

/** Would `hold` take them? */
export const holds = (sources: readonly Source[]): boolean => sizeOf(sources) <= HELD_MAX;

function release(core: Core, held: readonly Bytes[]): void {
  for (const p of held) core.exports.bz_wasm_free(p);
}

/** Bring sources into the module's memory, where weights are used in place: otherwise each token
 *  copies every one of them. Where there is no room they stay where they are, and the list is
 *  empty. */
export async function hold(
  core: Core,
  sources: readonly Source[],
  {
    signal, onProgress,
  }: { signal?: AbortSignal; onProgress?: (loaded: number, total: number) => void } = {},
): Promise<Bytes[]> {
  const held: Bytes[] = [], total = sizeOf(sources);
  if (!holds(sources)) return held;
  let loaded = 0;
  try {
    for (const source of sources) {
      const p = core.exports.bz_wasm_alloc(source.size);
      if (!p) return release(core, held), [];
      held.push(p);
      for (let at = 0; at < source.size; at += PIECE) {
        signal?.throwIfAborted();
        const n = Math.min(PIECE, source.size - at);
        await source.readAsync(at, new Uint8Array(core.memory.buffer, p + at, n));
        onProgress?.(loaded += n, total);
      }
    }
    return held;
  } catch (e) {
    release(core, held);
    throw e;
  }
}

export class CpuEngine {
  readonly info: Info;
  private p: EnginePtr;

  private constructor(
    readonly core: Core,
    p: EnginePtr,
    private readonly sources: number[],
    private readonly held: readonly Bytes[],
  ) {
    this.p = p;
    core.checkNumber(core.exports.bz_wasm_engine_info(p));
    this.info = JSON.parse(core.resultText()) as Info;
  }

  /** Several sources are the shards of one model. They stay the caller's, and must outlive the
   *  engine. What `hold` made of them is the engine's from now on, also when it does not open. */
  static open(
    core: Core, sources: readonly Source[], options: OpenOptions = {}, held: readonly Bytes[] = [],
  ): CpuEngine {
    const ids = sources.map((s) => core.addSource(s));
    const described = sources.map((s, i) =>
      ({ id: ids[i], name: s.name, size: s.size, ...(held.length && { at: held[i] }) }));
    try {
      const p = core.with(JSON.stringify({ ...options, sources: described }), (json, n) =>
        core.check(core.exports.bz_wasm_engine_open(json, n)));
      return new CpuEngine(core, p, ids, held);
    } catch (e) {
      release(core, held);
      for (const id of ids) core.removeSource(id);
      throw e;
    }
  }

  get ptr(): EnginePtr {
    if (!this.p) throw new BezelError('this engine is closed', 'argument');
    return this.p;
  }

  close(): void {
    if (!this.p) return;
    this.core.exports.bz_wasm_engine_close(this.p);
    release(this.core, this.held);
    for (const id of this.sources) this.core.removeSource(id);
    this.p = 0 as EnginePtr;
  }

  tokenize(
    text: string | Uint8Array, options: { bos?: boolean; plain?: boolean } = {},
  ): Int32Array {
    const { bos = true, plain = false } = options;
    this.core.with(text, (p, n) =>
      this.core.checkNumber(this.core.exports.bz_wasm_tokenize(this.ptr, p, n, +bos, +plain)));
    return this.core.resultIds();
  }

  chatTokens(
    conversation: string | Uint8Array, options: Omit<RenderOptions, 'variant'> = {},
  ): ChatTokens {
    return chatTokens(this.core, this.ptr, conversation, options);
  }

  /** The bytes of a text; special tokens show theirs where `specials`. */
  detokenize(ids: Int32Array, specials = false): Uint8Array {
    this.core.with(ids, (p, n) =>
      this.core.checkNumber(this.core.exports.bz_wasm_detokenize(this.ptr, p, n, +specials)));
    return this.core.result();
  }

  /** A GGUF adapter, or PEFT's weights together with the text of adapter_config.json. Read at
   *  once. */
  addAdapter(source: Source, options: { config?: string; scale?: number } = {}): number {
    return addAdapter(this.core, this.ptr, source, options);
  }

  scaleAdapter(id: number, scale: number): void {
    this.core.checkNumber(this.core.exports.bz_wasm_adapter_scale(this.ptr, id, scale));
  }

  removeAdapter(id: number): void {
    this.core.checkNumber(this.core.exports.bz_wasm_adapter_remove(this.ptr, id));
  }

  /** Bytes that such a session would take. */
  sessionBytes(context = 0, batch = 0, cache: 'f32' | 'f16' = 'f32'): number {
    return this.core.exports.bz_wasm_session_bytes(this.ptr, context, batch, +(cache === 'f16'));
  }

  /** A conversation of at most `context` tokens (0: 4096), whose prompts are read `batch` tokens
   *  at a time. */
  session(context = 0, batch = 0, cache: 'f32' | 'f16' = 'f32'): CpuSession {
    return new CpuSession(
      this,
      this.core.check(
        this.core.exports.bz_wasm_session_open(this.ptr, context, batch, +(cache === 'f16')),
      ),
    );
  }
}

/** Tokens that came together, and the text that became certain with them. */
interface Step {
  ids: Int32Array;
  text: string;
  /** Of each token, where a constraint left no choice of them. */
  texts: string[];
}
interface StepsEnd {
  first: number;
  count: number;
  stop: Stop;
}

const decoder = new TextDecoder('utf-8', { ignoreBOM: true });

export class CpuSession {
  private p: SessionPtr;

  /** Made by CpuEngine.session. */
  constructor(readonly engine: CpuEngine, p: SessionPtr) {
    this.p = p;
  }

  private get core(): Core {
    return this.engine.core;
  }

  private get ptr(): SessionPtr {
    if (!this.p) throw new BezelError('this session is closed', 'argument');
    return this.p;
  }

  close(): void {
    if (this.p) this.core.exports.bz_wasm_session_close(this.p);
    this.p = 0 as SessionPtr;
  }

  /** Read tokens. The logits of the last nLogits of them go to onLogits, in order. */
  feed(ids: Int32Array, nLogits = 1, onLogits?: LogitsFn): void {
    const { exports } = this.core;
    this.core.watchLogits(this.engine.info.n_vocab, onLogits, () =>
      this.core.with(ids, (p, n) =>
        this.core.checkNumber(exports.bz_wasm_session_read(this.ptr, p, n, nLogits, +!!onLogits))));
  }

  /** Make it hold exactly these tokens, keeping the longest common beginning. */
  set(ids: Int32Array): void {
    this.core.with(ids, (p, n) =>
      this.core.checkNumber(this.core.exports.bz_wasm_session_set(this.ptr, p, n)));
  }

  /** Forget tokens past n; says how many remain: n, or 0 when all must be read again. */
  truncate(n: number): number {
    return this.core.checkNumber(this.core.exports.bz_wasm_session_truncate(this.ptr, n));
  }

  get tokens(): Int32Array {
    this.core.exports.bz_wasm_session_tokens(this.ptr);
    return this.core.resultIds();
  }

  /** Are there logits of the last token to draw from? */
  get hasLogits(): boolean {
    return this.core.exports.bz_wasm_session_logits(this.ptr) !== 0;
  }

  /** A copy of the last token's logits. */
  get logits(): Float32Array | undefined {
    const at = this.core.exports.bz_wasm_session_logits(this.ptr);
    return at
      ? new Float32Array(this.core.memory.buffer, at, this.engine.info.n_vocab).slice()
      : undefined;
  }

  save(): Uint8Array {
    this.core.checkNumber(this.core.exports.bz_wasm_session_save(this.ptr));
    return this.core.result();
  }

  restore(data: Uint8Array): void {
    this.core.withSource(memorySource('session snapshot', data), (id) =>
      this.core.checkNumber(this.core.exports.bz_wasm_session_restore(this.ptr, id, data.length)));
  }

  /** Draw one token from the last logits. */
  sample(options: GenerateOptions = {}): number {
    return this.core.with(optionsJson(options), (p, n) =>
      this.core.checkNumber(this.core.exports.bz_wasm_session_sample(this.ptr, p, n)));
  }

  /** How many tokens it holds. */
  get length(): number {
    return this.core.exports.bz_wasm_session_length(this.ptr);
  }

  /** How many it can hold. */
  get context(): number {
    return this.core.exports.bz_wasm_session_context(this.ptr);
  }

  get cacheBytes(): number {
    return this.core.exports.bz_wasm_session_cache_bytes(this.ptr);
  }

  /** The first half of `set`: how many of these tokens were kept. The others must be read, with
   *  logits of the last. */
  keep(ids: Int32Array): number {
    return this.core.with(ids, (p, n) =>
      this.core.checkNumber(this.core.exports.bz_wasm_session_keep(this.ptr, p, n)));
  }

  /** Go on from the last logits: each token with the text that became certain with it (perhaps
   *  none). Leave the loop to cancel; the session then holds what came out. */
  *pieces(options: GenerateOptions = {}): Generator<{ id: number; text: string }, StepsEnd> {
    const steps = this.steps(options);
    let left = 0; // of the tokens that came together, so many were not taken
    try {
      for (;;) {
        const next = steps.next();
        if (next.done) return next.value;
        const { ids, text, texts } = next.value;
        left = ids.length;
        // of a canvas the last one brings all of the text
        for (const [i, id] of ids.entries()) {
          left--;
          yield { id, text: texts[i] ?? (left ? '' : text) };
        }
      }
    } finally {
      steps.return({ first: 0, count: 0, stop: 'cancelled' });
      if (left) this.truncate(this.length - left);
    }
  }

  /** The same step by step: a token each, or several that a constraint left no choice of; or a step
   *  of a canvas, which is text only at its end. */
  *steps(options: GenerateOptions = {}): Generator<Step, StepsEnd> {
    const { exports } = this.core;
    const g: GenerationPtr = this.core.with(optionsJson(options), (p, n) =>
      this.core.check(exports.bz_wasm_generation_open(this.ptr, p, n)));
    try {
      for (;;) {
        const before = exports.bz_wasm_generation_count(g);
        const over = this.core.checkNumber(exports.bz_wasm_generation_next(g));
        const piece = this.core.result(), first = exports.bz_wasm_generation_first(g);
        const count = exports.bz_wasm_generation_count(g);
        if (count > before || !over)
          yield { ids: this.tokensFrom(first + before), ...this.textsOf(g, piece) };
        if (over)
          return { first, count, stop: STOP[exports.bz_wasm_generation_stop(g)] ?? 'end' };
      }
    } finally {
      exports.bz_wasm_generation_close(g);
    }
  }

  private textsOf(g: GenerationPtr, piece: Uint8Array): Omit<Step, 'ids'> {
    this.core.exports.bz_wasm_generation_ends(g);
    const ends = this.core.resultIds();
    return {
      text: decoder.decode(piece),
      texts: Array.from(ends, (end, i) => decoder.decode(piece.subarray(i ? ends[i - 1] : 0, end))),
    };
  }

  /** The canvas of a diffusion model, and its words after the last step; a copy. */
  get canvas(): { at: HostCanvas; words: ArrayBuffer } {
    const { core } = this;
    core.checkNumber(core.exports.bz_wasm_canvas(this.ptr));
    const { buffer } = core.memory;
    const at = readHostCanvas(buffer, core.resultView().byteOffset);
    return { at, words: buffer.slice(at.words, at.words + 4 * at.nShown) as ArrayBuffer };
  }

  /** The same as pieces of text alone. */
  *generate(options: GenerateOptions = {}): Generator<string, Generated> {
    const pieces = this.pieces(options);
    try {
      for (;;) {
        const next = pieces.next();
        if (!next.done) {
          yield next.value.text;
          continue;
        }
        const { first, count, stop } = next.value;
        return { ids: this.tokens.slice(first, first + count), stop };
      }
    } finally {
      pieces.return({ first: 0, count: 0, stop: 'cancelled' });
    }
  }

  private tokensFrom(position: number): Int32Array {
    this.core.exports.bz_wasm_session_tokens(this.ptr);
    const { buffer, byteOffset, length } = this.core.resultView();
    return new Int32Array(buffer, byteOffset, length / 4).slice(position);
  }
}
