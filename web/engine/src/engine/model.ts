// model - what an engine needs of a backend: one model on one device, and conversations with it.
//
// Implemented by cpu_model.ts and gpu_model.ts. Everything above (completions, sessions, the
// server, the command-line tool) sees only this.

import type { Tier } from '../gpu/adapter.js';
import type { CanvasStop, Stop } from './boundary.js';
import type { ChatTokens, Constraint, GenerateOptions, Info } from './cpu_engine.js';
import type { DispatchTime, KernelTime } from '../gpu/profile.js';
import type { Source } from '../load/source.js';

/** What a load is doing, until it is 'ready'; `loaded` of `total` counts bytes for weights and
 *  pieces for the rest. The bytes are those that it waits for: a per-layer embedding table that
 *  comes later is not among them. */
export interface Progress {
  phase: 'open' | 'weights' | 'kernels' | 'selftest' | 'ready';
  loaded: number;
  total: number;
  /** With 'open', once it is known: where the model will run. */
  backend?: 'gpu' | 'cpu';
  /** With it, where 'auto' found no GPU: why. */
  fallback?: string;
}

/** Bytes by what they are for. */
export interface Memory {
  weights: number;
  cache: number;
  scratch: number;
  /** Why the per-layer embedding table, which was to come to the device after the load, stays in
   *  the file: tokens are drawn one by one then. */
  tableInFile?: string;
}

/** One kernel's self-test: against the C loop, on this device. */
export interface SelfTest {
  kernel: string;
  ok: boolean;
  /** Why it was demoted, where it was. */
  reason?: string;
}

/** Where a model runs. */
export interface DeviceReport {
  backend: 'gpu' | 'cpu';
  /** For people: "nvidia hopper", "google swiftshader", "CPU (WebAssembly)". */
  name: string;
  tier: Tier | 'cpu';
  /** Of a GPU: the device profile whose numbers are used ("nvidia", "apple" ..., "spec" for what is
   *  not known), and whether few rows are read as int8 planes there (else as f32). */
  profile?: string;
  int8?: boolean;
  /** Why it is the CPU, where 'auto' found no GPU. */
  fallback?: string;
  limits: Record<string, number>;
  /** Of the kernels that were tested by then. */
  selfTest: SelfTest[];
}

export interface TokenLogprob {
  id: number;
  logprob: number;
}

/** One drawn token and the text that became certain with it (whole code points, perhaps none). */
export interface Piece {
  id: number;
  text: string;
  /** Where asked for: this token's, then the best `top_logprobs` ones. */
  logprob?: number;
  top?: TokenLogprob[];
}

export interface ConversationOptions extends GenerateOptions {
  signal?: AbortSignal;
  /** Report log-probabilities with this many alternatives (0: the token's own only). */
  logprobs?: number;
  /** Tokens on their way on the GPU at most; 1: each is read before the next is begun. */
  ahead?: number;
}

/** A canvas of a diffusion model after a step. */
export interface CanvasStep {
  /** Which canvas of the text, from 0; which step of it, from 1, and of how many at most. */
  canvas: number;
  step: number;
  steps: number;
  temperature: number;
  /** The most likely tokens: the text, should it stop here. */
  tokens: Int32Array;
  /** What the next step begins with: accepted tokens, and random ones. */
  noisy: Int32Array;
  /** Of each position: whether this step accepted it, and how unsure the model is, in nats. */
  accepted: boolean[];
  entropy: Float32Array;
  /** Over the positions that are not fixed. */
  meanEntropy: number;
  /** Why it was the canvas's last step, if it was. */
  stopped: CanvasStop;
  /** With the last step: the tokens that are text, as far as the end or a limit, and the text that
   *  became certain with them. */
  final?: { ids: Int32Array; text: string };
}

/** A step of the GPU, dispatch by dispatch. */
export interface StepProfile {
  dispatches: number;
  /** Where its time went, the slowest kernel first; none where nobody asked for it. */
  kernels: KernelTime[];
}

export interface ReadOptions {
  signal?: AbortSignal;
  onProgress?: (done: number, total: number) => void;
  /** Called before each batch: other conversations may have their turn. */
  between?: () => Promise<void> | undefined;
}

export interface Conversation {
  /** Tokens at most. */
  readonly context: number;
  /** What it holds, as a copy. */
  readonly tokens: Int32Array;
  readonly length: number;
  /** Hold exactly these tokens, keeping the longest common beginning; says how many were kept. A
   *  signal leaves a valid, shorter conversation behind. */
  set(ids: Int32Array, options?: ReadOptions): Promise<number>;
  /** Go on from where `set` ended. Leave the loop, or use the signal, to stop: tokens computed past
   *  the last piece taken are forgotten. A piece comes for every token, the one that ends the text
   *  included. */
  generate(options?: ConversationOptions): AsyncGenerator<Piece, { stop: Stop }, void>;
  /** Diffusion models only, whose `generate` is this without the steps: go on canvas by canvas, and
   *  see each step. A canvas that the loop is left in is forgotten. */
  denoise?(options?: ConversationOptions): AsyncGenerator<CanvasStep, { stop: Stop }, void>;
  /** Append tokens and see the logits after each of them; a row is good during the call only. After
   *  a signal, or when `each` throws, some of them are there. */
  logits(
    ids: Int32Array,
    each: (position: number, row: Float32Array) => void,
    signal?: AbortSignal,
    between?: ReadOptions['between'],
  ): Promise<void>;
  /** GPU only: append tokens and draw one, to see how many dispatches that is and, where `timed`,
   *  how long each takes alone. Truncate to 0 afterwards. */
  profile?(ids: Int32Array, timed: boolean): Promise<StepProfile>;
  /** Forget tokens past n; says how many remain: n, or 0 when all must be read again. */
  truncate(n: number): number;
  /** A snapshot that fits the same model file and adapters on any backend, and back. */
  save(): Promise<Uint8Array>;
  restore(snapshot: Uint8Array): Promise<void>;
  close(): void;
}

export interface AdapterOptions {
  /** PEFT's adapter_config.json, where the source is PEFT's weights. */
  config?: string;
  scale?: number;
}

// ---- training ----

/** JSON lines; `held` is measured, never learned. */
export interface TrainingTexts {
  data: string;
  held?: string;
}

/** What the core may be told; see src/wasm/wasm_train.c. All may be absent. */
export interface TrainingWishes {
  rank?: number;
  alpha?: number;
  dropout?: number;
  rslora?: boolean;
  targets?: readonly string[];
  seed?: number;
  lr?: number;
  schedule?: 'constant' | 'linear' | 'cosine';
  warmup?: number;
  steps?: number;
  epochs?: number;
  batch?: number;
  accumulate?: number;
  sequence?: number;
  no_packing?: boolean;
  decay?: number;
  clip?: number;
  keep_all?: boolean;
  eval_share?: number;
}

export interface TrainingAbout {
  /** Done, and planned. */
  step: number;
  steps: number;
  /** Sequences a step. */
  passes: number;
  examples: number;
  sequences: number;
  tokens: number;
  learned: number;
  /** Examples held back, and tokens of them that count. */
  held: number;
  held_learned: number;
  /** Beyond the model. */
  bytes: number;
}

export interface TrainingReport {
  step: number;
  epoch: number;
  loss: number;
  lr: number;
  grad_norm: number;
  tokens: number;
}

export interface TrainingFiles {
  gguf: Uint8Array;
  safetensors: Uint8Array;
  config: string;
}

/** A step of training on the GPU, dispatch by dispatch; the adapter has learned from it. */
export interface TrainingProfile {
  report: TrainingReport;
  /** Of the step before it. */
  submits: number;
  dispatches: DispatchTime[];
}

/** An adapter that hangs on the model and learns. One call at a time, and no conversation at
 *  work meanwhile. */
export interface Training {
  readonly about: TrainingAbout;
  /** One step of the optimiser. A signal leaves the adapter as it was before the step. */
  step(signal?: AbortSignal): Promise<TrainingReport>;
  /** GPU only: one step, each dispatch of it alone. */
  profile?(): Promise<TrainingProfile>;
  /** Mean loss of what is held back. */
  evaluate(signal?: AbortSignal): Promise<number>;
  /** How strongly the model feels the adapter: 1 while it learns, 0 for the model without it. */
  scale(scale: number): void;
  /** A checkpoint for the same model, data and wishes, and back. */
  save(): Promise<Uint8Array>;
  load(checkpoint: Uint8Array): Promise<void>;
  /** The adapter as it is now; `base` is what PEFT's configuration calls the model. */
  files(base: string): Promise<TrainingFiles>;
  close(): void;
}

export interface Preview {
  examples: number;
  tokens: number;
  learned: number;
  longest: number;
  shown: { line: number; ids: number[]; learned: boolean[] }[];
}

export interface Model {
  readonly info: Info;
  readonly device: DeviceReport;
  readonly memory: Memory;
  /** Of all kernels, once the last are tested; empty where none are. Throws where one without a
   *  replacement is wrong. */
  selfTest(): Promise<SelfTest[]>;
  /** Of a raw prompt: text that spells a special token is that token, unless `plain`. */
  tokenize(text: string, options?: { bos?: boolean; plain?: boolean }): Int32Array;
  /** Of a conversation, as JSON {"messages", "tools", "begun"}: no text in it is a special
   *  token. */
  chatTokens(conversation: string, options?: { thinking?: boolean; history?: boolean }): ChatTokens;
  detokenize(ids: Int32Array, specials?: boolean): string;
  /** The tokens that end a text. */
  ends(): Int32Array;
  /** Why no text can keep to this; undefined: texts can. */
  checkConstraint(constraint: Constraint): string | undefined;
  /** The source stays the caller's, and must outlive the adapter: a device that is lost is
   *  loaded again. */
  addAdapter(source: Source, options?: AdapterOptions): Promise<number>;
  scaleAdapter(id: number, scale: number): void;
  removeAdapter(id: number): void;
  conversation(context?: number): Promise<Conversation>;
  /** What would be learned of JSON lines; the first `max` examples in full. */
  preview(text: string, sequence: number, max: number): Preview;
  /** Bytes that training would take beyond the model, for sequences of so many tokens. */
  trainBytes(wishes: TrainingWishes, tokens: number): number;
  training(texts: TrainingTexts, wishes: TrainingWishes): Promise<Training>;
  /** GPU only: bytes a second that a kernel which does nothing else reads. */
  bandwidth?(): Promise<number>;
  close(): void;
}
