// weigh - what a model would need in memory, from its header alone.

import { inspect } from '../cpu_engine.js';
import { openWithFetches } from '../source.js';
import { BezelError, type Core } from '../wasm.js';
import { openSources } from './open_sources.js';
import type { SourceRef } from './source_ref.js';

/** Bytes, as far as they can be told without loading. */
export interface ModelNeeds {
  weights: number;
  /** Of keys and values (f32) for a context of so many tokens: the usual one and, where it is larger, the model's. */
  cache: { context: number; bytes: number }[];
  /** Why this build does not run it; absent: it does. */
  refused?: string;
}

interface Inspected {
  bytes?: number;
  kv_cache?: { context: number; bytes: number }[];
  runs?: boolean;
  why?: string;
}

export async function weigh(core: Core, refs: readonly SourceRef[], signal?: AbortSignal): Promise<ModelNeeds> {
  const sources = await openSources(core, refs, signal ? { signal } : {});
  try {
    const { bytes, kv_cache: cache, runs, why } = JSON.parse(await openWithFetches(() => inspect(core, sources, { json: true }), signal)) as Inspected;
    if (bytes === undefined) throw new BezelError('this file says nothing of its weights', 'format');
    return { weights: bytes, cache: cache ?? [], ...(!runs && { refused: why ?? 'this build does not run it' }) };
  } finally {
    for (const source of sources) source.close();
  }
}

/** The largest context, in steps that people know, for which weights and cache stay within so many bytes; 0: none. */
export function largestContext({ weights, cache }: ModelNeeds, budget: number): number {
  const [usual, most = usual] = cache;
  if (!usual || !most) return 0;
  const slope = most.context > usual.context ? (most.bytes - usual.bytes) / (most.context - usual.context) : usual.bytes / usual.context;
  const bytesAt = (context: number): number => weights + usual.bytes + (context - usual.context) * slope;
  for (let context = most.context; context >= 512; context = context > 1024 ? 2 ** (Math.ceil(Math.log2(context)) - 1) : context - 512) if (bytesAt(context) <= budget) return context;
  return 0;
}
