// open_sources - the sources of one model, ready for the core to open.

import { CpuEngine, holds, inspect } from '../engine/cpu_engine.js';
import { BlockSource, isMemory, openWithFetches, type Source } from '../load/source.js';
import type { Core } from '../engine/wasm.js';
import { openSource, toMemory, type OpenSourceOptions, type SourceRef } from './source_ref.js';
import { needIntact } from './verified.js';

/** Bring what opening will read: the header first, then the few bytes of each tensor that are
 *  looked at, all together. Without this each of them would cost an attempt of openWithFetches. */
async function prefetch(
  core: Core, sources: readonly Source[], signal: AbortSignal | undefined,
): Promise<void> {
  await openWithFetches(() => CpuEngine.open(core, sources, { vocab_only: true }).close(), signal);
  const wanted = new Map<BlockSource, Set<number>>();
  let look = (): void => void inspect(core, sources, { json: true });
  for (const source of sources) {
    const inner = look;
    if (source instanceof BlockSource) look = () => void wanted.set(source, source.guess(inner));
  }
  try {
    look();
  } catch {
    return; // of zeros nothing can be said: the real attempt says what is wrong
  }
  for (const [source, blocks] of wanted) await source.prefetch(blocks, signal);
}

/** Read what is not in memory yet, in the place of each source. A file in Node is quick enough
 *  to be left where it is. */
async function bringAll(
  refs: readonly SourceRef[], sources: Source[], { onProgress, ...options }: OpenSourceOptions,
): Promise<void> {
  const wanted =
    refs.flatMap(({ kind }, i) => (kind === 'path' || isMemory(sources[i] as Source) ? [] : [i]));
  const total = wanted.reduce((n, i) => n + (sources[i] as Source).size, 0);
  let before = 0;
  for (const i of wanted) {
    const source = sources[i] as Source;
    sources[i] = await toMemory(source, {
      ...options, onProgress: (loaded) => onProgress?.(before + loaded, total),
    });
    before += source.size;
  }
}

/** Open one, and read all of it first where its file changed since it was last found intact. */
export async function openIntact(
  core: Core, ref: SourceRef, options: OpenSourceOptions,
): Promise<Source> {
  const source = await openSource(ref, options);
  try {
    if (options.intact !== undefined) await needIntact(core, ref, source, options.intact, options);
    return source;
  } catch (e) {
    source.close();
    throw e;
  }
}

/** Open all shards of a model. Use openWithFetches around what opens the model itself. `inMemory`
 *  is for a model on the CPU, which takes into its own memory what fits there. */
export async function openSources(
  core: Core, refs: readonly SourceRef[], { inMemory = false, ...options }: OpenSourceOptions = {},
): Promise<Source[]> {
  const sources: Source[] = [];
  try {
    for (const ref of refs) sources.push(await openIntact(core, ref, options));
    if (inMemory && holds(sources)) return sources;
    if (inMemory) await bringAll(refs, sources, options);
    if (sources.some((s) => s instanceof BlockSource))
      await prefetch(core, sources, options.signal);
    return sources;
  } catch (e) {
    for (const source of sources) source.close();
    throw e;
  }
}
