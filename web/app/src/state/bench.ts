// bench - a measurement on this device, in a form that can be shown to others.

import { signal } from '@preact/signals';
import type { BenchResult } from 'bezel';
import { bytes, speed } from '../lib/format';
import type { Ready } from './engine';
import { notifyError } from './notices';

interface Bench {
  running: { share: number } | null;
  result: BenchResult | null;
}

export const bench = signal<Bench>({ running: null, result: null });

const REPETITIONS = 3;
let stop: AbortController | null = null;

export async function runBench({ engine }: Ready): Promise<void> {
  if (stop) return;
  stop = new AbortController();
  const { signal: cancelled } = stop;
  const before = bench.peek().result;
  bench.value = { running: { share: 0 }, result: before };
  try {
    const result = await engine.bench({
      repetitions: REPETITIONS,
      signal: cancelled,
      onProgress: ({ test, done, total }) => {
        const share =
          test === 'warmup' ? 0.05 : (test === 'prompt' ? 0.1 : 0.5) + (0.45 * done) / total;
        bench.value = { ...bench.peek(), running: { share } };
      },
    });
    bench.value = { running: null, result };
  } catch (e) {
    bench.value = { running: null, result: before };
    if (!cancelled.aborted) notifyError(e);
  } finally {
    stop = null;
  }
}

export const cancelBench = (): void => stop?.abort();

export const benchJson = (result: BenchResult): string =>
  JSON.stringify({ ...result, browser: navigator.userAgent }, null, 2);

/** pp512, tg128; of a diffusion model tg256/20, a canvas of 256 tokens in 20 steps. */
const testOf = (r: BenchResult, name: 'pp' | 'tg', tokens: number): string =>
  `${name}${tokens}${name === 'tg' && r.steps ? `/${r.steps}` : ''}`;

/** A table as llama-bench's, for people and forums. */
export function benchText(r: BenchResult): string {
  const lines = [
    `Bezel: ${r.model} on ${r.device} (${r.backend === 'gpu' ? `WebGPU, ${r.tier}` : 'CPU'})`,
    '| test | tok/s |', '|---|---|',
  ];
  for (const [name, s] of [['pp', r.prompt], ['tg', r.predicted]] as const)
    if (s)
      lines.push(`| ${testOf(r, name, s.tokens)} | ${speed(s.mean)} ± ${speed(s.deviation)} |`);
  if (r.token_ms)
    lines.push(
      `between ${r.steps ? 'steps' : 'tokens'} ${r.token_ms.p50.toFixed(2)} ms (median), `
        + `${r.token_ms.p95.toFixed(2)} ms (95%)`,
    );
  if (r.bytes_per_second) lines.push(`weights read at ${bytes(r.bytes_per_second)}/s`);
  return lines.join('\n');
}
