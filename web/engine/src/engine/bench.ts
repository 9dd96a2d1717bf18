// bench - how fast a model reads and writes here, measured as llama-bench does: pp512 and tg128.
//
// Everything is timed from outside, through the calls that everybody makes: what a person waits for
// is in it.

import { BezelError } from '../api/errors.js';
import { BATCH } from '../load/estimate.js';
import type { Conversation, Memory, Model, StepProfile } from './model.js';

export interface BenchOptions {
  /** Tokens of the prompt (0: do not measure), tokens drawn (0: neither), and how often. */
  prompt?: number;
  predicted?: number;
  repetitions?: number;
  /** Of a diffusion model, which writes a canvas whatever `predicted` says (but 0): its steps. */
  steps?: number;
  /** Tokens that the conversation holds already. */
  depth?: number;
  /** Time each kernel, where the device can. */
  profile?: boolean;
}

export interface BenchProgress {
  test: 'warmup' | 'prompt' | 'predicted' | 'device';
  done: number;
  total: number;
}

/** Tokens a second of each run, with mean and standard deviation; the median, which one slow run
 *  does not change. */
export interface Speed {
  tokens: number;
  runs: number[];
  mean: number;
  median: number;
  deviation: number;
}

export interface Times {
  p50: number;
  p95: number;
}

export interface BenchResult {
  model: string;
  device: string;
  backend: 'gpu' | 'cpu';
  tier: string;
  parameters: number;
  weight_bytes: number;
  depth: number;
  /** Steps of the canvas that was written; null: the model draws tokens. */
  steps: number | null;
  /** Prompt tokens a second; the first token drawn, or step of a canvas, is in the time. */
  prompt: Speed | null;
  /** Tokens drawn a second, queued ahead where the backend does that. */
  predicted: Speed | null;
  /** The same with each token awaited before the next is begun; null where that is no
   *  difference. */
  awaited: Speed | null;
  /** Milliseconds from the question to the first token, between two tokens, and between two that
   *  are awaited. Of a diffusion model: to the first step, and between two steps. */
  ttft_ms: Times | null;
  token_ms: Times | null;
  awaited_ms: Times | null;
  /** Weights that a token reads, and bytes of them a second while tokens are drawn. */
  bytes_a_token: number;
  bytes_per_second: number | null;
  /** What a kernel that only reads gets from this device's memory, in bytes a second; GPU only. */
  bandwidth: number | null;
  /** Dispatches of a token; GPU only. */
  dispatches: number | null;
  memory: Memory;
  /** Where asked for: the time of a token's and of a prompt's dispatches, each alone. */
  profile?: { token: StepProfile; prompt: StepProfile };
}

/** The smallest value that p of all are not above. */
function percentile(values: readonly number[], p: number): number {
  const sorted = [...values].sort((a, b) => a - b);
  return sorted[Math.max(0, Math.ceil(p * sorted.length) - 1)] ?? 0;
}

const times = (values: readonly number[]): Times | null =>
  (values.length ? { p50: percentile(values, 0.5), p95: percentile(values, 0.95) } : null);

function speed(tokens: number, runs: number[]): Speed | null {
  if (!runs.length) return null;
  const mean = runs.reduce((a, b) => a + b, 0) / runs.length;
  const variance = runs.reduce((a, b) => a + (b - mean) ** 2, 0) / Math.max(1, runs.length - 1);
  const sorted = [...runs].sort((a, b) => a - b), at = (i: number): number => sorted[i] ?? 0;
  const n = runs.length;
  return {
    tokens, runs, mean, median: (at((n - 1) >> 1) + at(n >> 1)) / 2, deviation: Math.sqrt(variance),
  };
}

/** Tokens without meaning; what is measured does not depend on them. */
export function anyTokens(n: number, vocabulary: number, first = 0): Int32Array {
  return Int32Array.from({ length: n }, (_, i) => 1 + (((first + i) * 7919) % (vocabulary - 1)));
}

/** Milliseconds when each of n tokens, or of n steps of a canvas, came, counted from when all of
 *  `ids` past `depth` were there to be read. */
async function run(
  conversation: Conversation, ids: Int32Array, depth: number, n: number, signal: AbortSignal,
  ahead?: number,
): Promise<number[]> {
  conversation.truncate(0);
  const options = { temperature: 0, ignore_end: true, stop: [], signal, ...(ahead && { ahead }) };
  // whatever becomes of the canvas: nothing is surer than 0
  const go = (n: number): AsyncIterable<unknown> =>
    conversation.denoise?.({ ...options, diffusion: { steps: n, canvases: 1, confidence: 0 } })
      ?? conversation.generate({ ...options, n_max: n });
  if (depth) {
    await conversation.set(ids.subarray(0, depth), { signal });
    for await (const _ of go(1)); // so that the device is done with it
  }
  const start = performance.now(), came: number[] = [];
  await conversation.set(ids, { signal });
  for await (const _ of go(n)) came.push(performance.now() - start);
  signal.throwIfAborted();
  return came;
}

/** The dispatches of a token and of a prompt. They run twice: the first time, drivers still
 *  compile. */
async function steps(
  conversation: Conversation, ids: Int32Array, depth: number, timed: boolean,
): Promise<BenchResult['profile']> {
  if (!conversation.profile) return undefined;
  const step = async (read: Int32Array): Promise<StepProfile | undefined> => {
    let made: StepProfile | undefined;
    for (let i = 0; i < (timed ? 2 : 1); i++) {
      conversation.truncate(0);
      await conversation.set(ids.subarray(0, Math.max(1, depth)));
      made = await conversation.profile?.(read, timed);
    }
    conversation.truncate(0);
    return made;
  };
  const token = await step(ids.subarray(-1));
  const prompt = await step(ids.subarray(-Math.min(BATCH, Math.max(1, ids.length - depth))));
  return token && prompt && { token, prompt };
}

export async function bench(
  model: Model,
  name: string,
  conversation: Conversation,
  options: BenchOptions,
  signal: AbortSignal,
  progress: (p: BenchProgress) => void,
): Promise<BenchResult> {
  const { repetitions = 5 } = options, { info, device } = model, most = conversation.context;
  const depth = Math.max(0, Math.min(options.depth ?? 0, most - 4));
  // what one measurement writes, and how often the device has to compute for that
  const wanted = options.predicted ?? 128;
  const written = wanted && info.n_canvas ? info.n_canvas : wanted;
  const drawn = Math.min(written, most - depth - 3);
  const passes = info.n_canvas ? (options.steps ?? 20) : drawn;
  const read = Math.min(options.prompt ?? 512, most - depth - 1 - info.n_canvas);
  if (drawn < info.n_canvas && wanted)
    throw new BezelError(
      `a canvas of ${info.n_canvas} tokens does not fit into the context of ${most}`, 'limit',
    );
  const ids = anyTokens(depth + Math.max(1, read), info.n_vocab);
  const short = ids.subarray(0, depth + 1);
  const reading: number[] = [], first: number[] = [];
  progress({ test: 'warmup', done: 0, total: 1 });
  // of the kernels that a text does not begin with: they are compiled meanwhile
  await model.selfTest();
  if (read) await run(conversation, ids, depth, 1, signal);
  if (drawn) await run(conversation, short, depth, Math.min(8, passes), signal);
  for (let i = 0; read && i < repetitions; i++) {
    progress({ test: 'prompt', done: i, total: repetitions });
    const [ms = 0] = await run(conversation, ids, depth, 1, signal);
    reading.push((1000 * read) / ms);
    first.push(ms);
  }
  const isGpu = device.backend === 'gpu', rounds = isGpu ? 2 * repetitions : repetitions;
  const drawing = async (
    offset: number, ahead?: number,
  ): Promise<{ rates: number[]; between: number[] }> => {
    const rates: number[] = [], between: number[] = [];
    for (let i = 0; drawn && i < repetitions; i++) {
      progress({ test: 'predicted', done: offset + i, total: rounds });
      // The first comes with the prompt, and what is queued by then is not counted as drawn in no
      // time.
      const came = await run(conversation, short, depth, passes + 1, signal, ahead);
      const start = came[0] ?? 0;
      rates.push((1000 * drawn) / ((came.at(-1) ?? 0) - start));
      came.forEach((t, k) => k && between.push(t - (came[k - 1] ?? 0)));
    }
    return { rates, between };
  };
  const queued = await drawing(0);
  const awaited =
    isGpu && !info.n_canvas ? await drawing(repetitions, 1) : { rates: [], between: [] };
  progress({ test: 'device', done: 0, total: 1 });
  const memory = model.memory, predicted = speed(drawn, queued.rates);
  const profile = await steps(conversation, ids, depth, options.profile ?? false);
  const bandwidth = (await model.bandwidth?.()) ?? null;
  progress({ test: 'device', done: 1, total: 1 });
  return {
    model: name,
    device: device.name,
    backend: device.backend,
    tier: device.tier,
    parameters: info.n_params,
    weight_bytes: info.weight_bytes,
    depth,
    steps: info.n_canvas ? passes : null,
    prompt: speed(read, reading),
    predicted,
    awaited: speed(drawn, awaited.rates),
    ttft_ms: times(first),
    token_ms: times(queued.between),
    awaited_ms: times(awaited.between),
    bytes_a_token: info.bytes_a_token,
    bytes_per_second: info.n_canvas ? null : predicted && predicted.mean * info.bytes_a_token,
    bandwidth,
    dispatches: profile?.token.dispatches ?? null,
    memory,
    ...(options.profile && profile && { profile }),
  };
}
