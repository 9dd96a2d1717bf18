// train_types - what training takes and gives: the public shapes, without any of the work.
//
// Everything here is plain data but for TrainRun. Engine (engine.ts) is a Trainer.

import type { ChatMessage, Tool } from '../api/completions_types.js';

/** One thing to learn: a conversation whose last turn is the assistant's, or a question with its
 *  answer. */
export type TrainExample = {
  messages: readonly ChatMessage[]; tools?: readonly Tool[];
} | { prompt: string; completion: string };

/** JSON lines as text or as a file, or the examples themselves (then "line" n is the n-th of
 *  them). */
export type TrainData = string | Blob | readonly TrainExample[];

export type TrainSchedule = 'constant' | 'linear' | 'cosine';

export interface TrainOptions {
  data: TrainData;
  /** Measured, never learned. */
  evalData?: TrainData;
  /** Instead: hold back this share of `data` (0 to 0.5). */
  evalShare?: number;
  /** The adapter's name in the engine afterwards. Default "trained", with a number where that is
   *  taken. */
  name?: string;
  /** Parts of tensor names, in which a star stands for anything ("attn_q", "blk.3.", "blk.*.ffn_").
   *  Default: every dense linear. */
  targets?: readonly string[];
  /** 1 to 256; default 16. */
  rank?: number;
  /** The adapter's strength is alpha / rank; default 32. */
  alpha?: number;
  /** Share of the adapter's inputs that is left out at random in training; default 0. */
  dropout?: number;
  /** The strength is alpha / sqrt(rank). */
  rsLora?: boolean;
  /** Times through the data; default 3. */
  epochs?: number;
  /** Steps, instead of epochs. */
  steps?: number;
  /** Sequences computed at a time; default 1. */
  batch?: number;
  /** Such batches summed up for one step of the optimiser; default 1. */
  accumulate?: number;
  /** Tokens of a sequence at most; default 512. A longer example is an error that names its
   *  line. */
  sequence?: number;
  /** Short examples share a sequence, without seeing one another; default true. */
  packing?: boolean;
  /** Default 2e-4. */
  learningRate?: number;
  /** Default 'cosine'. */
  schedule?: TrainSchedule;
  /** Steps until the full rate; default a twentieth of all. */
  warmup?: number;
  /** Longest gradient; default 1, 0 for no limit. */
  clip?: number;
  /** Default 0. */
  weightDecay?: number;
  /** Same seed, same adapter; default 0. */
  seed?: number;
  /** Compute each layer again on the way back instead of keeping all of it. 'auto' (default):
   *  only where memory is short. */
  checkpointing?: 'auto' | boolean;
  /** Steps between measurements of the evaluation loss; default 50. It is measured at the end in
   *  any case. */
  evalEvery?: number;
  /** Steps between calls of `onCheckpoint`; default 50. */
  saveEvery?: number;
  /** Gets what `resume` takes, every `saveEvery` steps; training waits for it. */
  onCheckpoint?: (checkpoint: Uint8Array, step: number) => void | Promise<void>;
  /** A checkpoint of a training with the same model, data and options: goes on as if it had
   *  never stopped. */
  resume?: Uint8Array | Blob;
  /** Cancels. */
  signal?: AbortSignal;
}

/** One step of the optimiser. */
export interface TrainStep {
  /** Done so far, and of how many. */
  step: number;
  steps: number;
  /** Times through the data so far: 1.5 is half-way through the second. */
  epoch: number;
  /** Mean over the step's learned tokens, before the step. */
  loss: number;
  /** Mean over the examples held back, where it was measured after this step. */
  evalLoss?: number;
  learningRate: number;
  /** Before clipping. */
  gradNorm: number;
  /** Of this step: in the first ones the device still compiles. */
  tokensPerSecond: number;
  /** Bytes beyond the model. */
  memory: number;
  /** Trained on since this run began. */
  tokens: number;
  /** Since this run began, pauses left out. */
  seconds: number;
}

export interface TrainResult {
  /** The engine has it under this name, at once: `adapters: [{ name, scale }]`. Other requests
   *  do not use it. */
  adapter: string;
  /** The adapter as llama.cpp and Ollama read it. */
  gguf: Uint8Array;
  /** adapter_config.json and adapter_model.safetensors. */
  peft: { config: string; safetensors: Uint8Array };
  /** Of the steps of this run, in order. */
  losses: number[];
  /** Steps done; fewer than planned after stop(). */
  steps: number;
  /** Before and after, where something was held back. */
  evalLoss?: { first: number; last: number };
}

/** A training under way. It begins at once and goes on whether or not anybody reads its steps; a
 *  reader that is in the middle of one holds it back, so that a loop may stop to save or to try out
 *  the adapter. */
export interface TrainRun extends AsyncIterable<TrainStep> {
  readonly state: 'running' | 'paused' | 'done' | 'cancelled' | 'failed';
  /** Stands still after the step under way, until resume(). Other requests are answered
   *  meanwhile. */
  pause(): void;
  resume(): void;
  /** Ends after the step under way; `result` is what was learned so far. */
  stop(): void;
  /** Ends now; nothing is kept, `result` and the loop fail with an AbortError. */
  cancel(): void;
  /** Everything that `resume` needs, after the step under way. */
  checkpoint(): Promise<Uint8Array>;
  readonly result: Promise<TrainResult>;
}

export interface TrainEstimate {
  /** Bytes beyond the model with everything kept, and with layers computed again. */
  bytes: number;
  bytesCheckpointed: number;
  /** What 'auto' would do. */
  checkpointing: boolean;
  /** Whether it fits at all, where the device's memory is known. */
  fits: boolean;
  /** For people: "This needs 1.9 GB beyond the model; with checkpointing 0.7 GB." */
  sentence: string;
}

export interface PreviewToken {
  id: number;
  text: string;
  /** The loss counts it: the model learns to say it. */
  learned: boolean;
}

export interface TrainPreview {
  /** Of all the data. */
  examples: number;
  tokens: number;
  learned: number;
  longest: number;
  /** The first `max` examples as the model sees them. */
  shown: { line: number; tokens: PreviewToken[] }[];
}

export interface PreviewOptions {
  /** Examples shown; default 20. */
  max?: number;
  sequence?: number;
  signal?: AbortSignal;
}

/** Errors are the package's: FormatError names the line of bad data, ArgumentError an option,
 *  LimitError a loss that is no number any more (with its step), MemoryError what does not fit. */
export interface Trainer {
  train(options: TrainOptions): TrainRun;
  trainEstimate(options: Omit<TrainOptions, 'data'> & { data?: TrainData }): Promise<TrainEstimate>;
  trainPreview(data: TrainData, options?: PreviewOptions): Promise<TrainPreview>;
}
