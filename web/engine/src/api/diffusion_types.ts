// diffusion_types - what is said to a diffusion model beside a request, and what its steps show.
//
// Such a model writes a canvas of tokens at once: it begins as random tokens, and each step makes
// it better, until it no longer changes. Field names are the wire's.

import type {
  ChatCompletion, ChatRequestBase, CompletionRequestBase, FinishReason, Timings, Usage,
} from './completions_types.js';

/** How a canvas is denoised; what is absent is as the model's file says. */
export interface DiffusionSettings {
  /** Steps of a canvas at most. */
  steps?: number | null;
  /** Temperature of the first step, and the one that steps go down to. */
  t_max?: number | null;
  t_min?: number | null;
  /** A step accepts the surest positions, as long as those before have no more entropy together, in
   *  nats. */
  entropy_bound?: number | null;
  /** A canvas is finished once so many steps in a row have left its likeliest tokens as they were
   *  and the mean entropy is below `confidence` nats. */
  stability?: number | null;
  confidence?: number | null;
  /** Canvases at most; absent: until the text ends. */
  canvases?: number | null;
  /** What the first canvas begins with: token ids (-1: a random one), or pieces of text and holes.
   *  What is missing at its end is random. */
  canvas?: readonly number[] | readonly CanvasPiece[] | null;
  /** Of token ids, those that stay as they are. Pieces of text stay by themselves, holes do not. */
  fixed?: readonly boolean[] | null;
}

/** A piece of a canvas: text that stays; so many tokens to be found, which may begin as a draft; or
 *  the end of the answer. */
export type CanvasPiece = string | { hole: number; draft?: string } | { end: true };

/** A canvas after a step. */
export interface DiffusionStep {
  /** Which canvas of the answer, from 0; which step of it, from 1, and of how many at most. */
  canvas: number;
  step: number;
  steps: number;
  temperature: number;
  /** The likeliest tokens: the answer, should it stop here. The text of each alone (special tokens
   *  and parts of characters have none), and where the answer ends among them. */
  tokens: number[];
  pieces: string[];
  end: number;
  /** The text of the tokens before the end. */
  text: string;
  /** What the next step begins with: accepted tokens, and random ones. */
  noisy: number[];
  /** Of each position: whether this step accepted its token, and how unsure the model is of it, in
   *  nats. */
  accepted: boolean[];
  entropy: number[];
  /** Over the positions that are not fixed. */
  mean_entropy: number;
  /** 'goes-on', or why this was the canvas's last step: it is stable, or there are no more. Then
   *  `final` has the tokens that are text, the one that ends it included. */
  stopped: 'goes-on' | 'stable' | 'steps';
  final?: number[];
}

/** Of what an answer was made. */
export interface DiffusionUsage {
  /** Those that were finished, and the steps of all. */
  canvases: number;
  steps: number;
  /** Of the answer, by the steps. */
  tokens_per_step: number;
}

/** An answer of a diffusion model. */
export interface DiffusionResult {
  /** Without thoughts and calls, which a chat's `message` has. */
  text: string;
  message?: ChatCompletion['choices'][number]['message'];
  finish_reason: FinishReason;
  tokens: number[];
  canvases: { steps: number; stopped: 'stable' | 'steps' }[];
  usage: Usage;
  timings: Timings;
}

/** A chat (`messages`) or a raw text that goes on (`prompt`), with these settings. */
export interface DiffusionRequest
  extends DiffusionSettings,
    Omit<ChatRequestBase, 'messages' | 'diffusion' | 'return_steps' | 'logprobs' | 'n'> {
  messages?: ChatRequestBase['messages'];
  prompt?: Exclude<CompletionRequestBase['prompt'], undefined>;
  onStep?: (step: DiffusionStep) => void;
}

/** Words of an answer, to be written again between what stands around them. */
export interface EditRequest
  extends Omit<DiffusionSettings, 'canvas' | 'fixed' | 'canvases'>,
    Pick<ChatRequestBase, 'messages' | 'tools' | 'thinking' | 'seed' | 'adapters' | 'session'
      | 'prompt_cache_key' | 'signal'> {
  /** The answer to `messages`, and from where to where in it (as `slice` counts) is selected. */
  text: string;
  selection: readonly [from: number, to: number];
  /** What is wanted there; absent: anything that fits. */
  instruction?: string | null;
  /** Tokens of the new words; absent: as many as the old ones have. */
  length?: number | null;
  onStep?: (step: EditStep) => void;
}

export interface EditStep extends DiffusionStep {
  /** The new words, should it stop here, and where their tokens are in the canvas. */
  replacement: string;
  hole: [first: number, count: number];
}

export interface EditResult {
  /** The answer with the new words, which are at `selection`. */
  text: string;
  replacement: string;
  selection: [from: number, to: number];
  tokens: number[];
  steps: number;
  stopped: 'stable' | 'steps';
  usage: Usage;
  timings: Timings;
}

/** Steps to be read, and the result. It begins when its steps are read, or its result is asked
 *  for; leaving the loop, or the signal, stops the model. */
export interface DiffusionRun<S, R> extends AsyncIterable<S> {
  readonly result: Promise<R>;
}
