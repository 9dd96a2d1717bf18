// estimate - what a model takes of the device's memory, before anything of it is there.
//
// Nothing is guessed: the core opens the model and a session as it always does and goes through the
// steps that it would record, while the device only counts the buffers. So the numbers are those of
// a real load.

import type { Tier } from '../gpu/adapter.js';
import type { StoreTexts } from '../engine/cpu_engine.js';
import type { Gpu } from '../gpu/gpu.js';
import type { Memory } from '../engine/model.js';
import type { Source } from './source.js';
import { STAGED } from './upload.js';
import {
  DEFAULT_CONTEXT, RESERVE, type EnginePtr, type Reserve, type SessionPtr,
} from '../engine/boundary.js';
import { BezelError, type Core, type ErrorKind } from '../engine/wasm.js';

export const BATCH = 512; // tokens of a prompt that are read in one step

/** How the model will be used. */
export interface PlanOptions {
  /** Tokens of a conversation; 0 or absent: the core's choice. */
  context?: number;
  /** Where nobody says a context: bytes that a conversation may take. Its context is then the
   *  longest of 4096, 8192, 16384 and so on that takes no more, and 4096 where none does; absent:
   *  4096. */
  contextBytes?: number;
  /** Tokens read in one step at most. */
  batch?: number;
  /** What keys and values are kept as. */
  cache?: 'f32' | 'f16';
  /** Bytes of graphics memory that may be used; absent: what the device's profile allows. */
  budget?: number;
  /** Where the per-layer embedding table is: on the device when it fits ('auto'), or always, or
   *  always in the file, whose rows are then read for every step. With 'auto' a load does not wait
   *  for it where the sources give rows quickly (Source.random): it comes while the model is in
   *  use, and rows are read until then. With 'gpu' it is there when the load is over. */
  table?: 'auto' | 'gpu' | 'source';
}

export interface EstimateOptions extends PlanOptions {
  name?: string;
  store?: StoreTexts;
  tier?: Tier;
}

/** Bytes: weights, cache and scratch are there as long as the session is; steps come and go
 *  while it computes. */
export interface Estimate extends Memory {
  steps: number;
  total: number;
  /** What may be used, less what the device holds already. */
  available: number;
  context: number;
  /** The longest context that fits; 0: none does. */
  largestContext: number;
  fits: boolean;
  /** Bytes short, or 0. */
  missing: number;
  /** Where the per-layer embedding table goes, in a model that has one; it is counted in the
   *  weights wherever it is by now. */
  table: 'gpu' | 'source' | undefined;
  /** Why it does not fit, for people. */
  reason?: string;
}

/** A session's part of it. */
interface Session {
  context: number;
  cache: number;
  scratch: number;
  steps: number;
}

/** The longest context of 4096 tokens times a power of two that is at most `most` and takes at
 *  most `bytes`; 0: the core's choice. */
export function automaticContext(
  bytes: number | undefined, most: number, takes: (context: number) => number,
): number {
  let chosen = 0;
  for (let n = 2 * DEFAULT_CONTEXT; bytes !== undefined && n <= most && takes(n) <= bytes; n *= 2)
    chosen = n;
  return chosen;
}

/** 1.41 GB */
export function gigabytes(n: number): string {
  const [unit, name] = n >= 1e9 ? [1e9, 'GB'] : n >= 1e6 ? [1e6, 'MB'] : [1e3, 'kB'];
  return `${(n / unit).toPrecision(3)} ${name}`;
}

/** The JSON that opens a model on the GPU, all but a part of its vocabulary: that is read while
 *  weights are on their way. */
export function openJson(
  sources: ReadonlyMap<number, Source>, { name, store, tier }: EstimateOptions,
): string {
  const described = Array.from(sources, ([id, { name, size }]) => ({ id, name, size }));
  return JSON.stringify({
    ...(name !== undefined && { name }), ...(store && { store }), backend: 'gpu', later: true,
    plain_kernels: tier === 'plain', no_matrix_kernels: tier === 'subgroup', sources: described,
  });
}

/** A planned engine: what sessions take, tried out. All of it runs where buffers are only
 *  counted. */
export class Plan {
  readonly available: number;

  /** `before`: what the device held before the engine was opened. */
  constructor(
    private readonly core: Core,
    private readonly gpu: Gpu,
    private readonly engine: EnginePtr,
    private readonly before: number,
    private readonly options: PlanOptions,
  ) {
    this.available = (options.budget ?? gpu.info.maxTotal) - before;
  }

  /** Find out whether the model fits, with its table in the file where that must be. `leave` is
   *  called then; and `postpone` where the table may come later, beside a session and what it is
   *  brought through. The engine is left with the scratch that the session needs, and pipelines are
   *  on their way as `what` says. */
  decide(leave: () => void, what: Reserve, postpone?: () => void): Estimate {
    const x = this.core.exports, { table = 'auto', context = 0 } = this.options;
    const has = x.bz_wasm_gpu_has_table(this.engine) !== 0;
    let leaves = has && table === 'source';
    if (leaves) leave();
    const first = this.session(context);
    if (has && table === 'auto' && !this.fits(first)) {
      leaves = true;
      leave();
    }
    const largestContext = this.largest();
    if (has && table === 'auto' && !leaves && first && this.available - this.total(first) >= STAGED)
      postpone?.();
    const made = this.session(context || this.automatic(largestContext), what);
    return this.estimate(made, largestContext, has ? (leaves ? 'source' : 'gpu') : undefined);
  }

  private automatic(most: number): number {
    return automaticContext(this.options.contextBytes, most, (n) => {
      const session = this.session(n);
      return session ? session.cache + session.scratch + session.steps : Infinity;
    });
  }

  private get weights(): number {
    return this.core.exports.bz_wasm_gpu_weight_bytes(this.engine);
  }

  private total({ cache, scratch, steps }: Session): number {
    return this.weights + cache + scratch + steps;
  }

  private fits(session: Session | undefined): boolean {
    return session !== undefined && this.total(session) <= this.available;
  }

  /** What a session of this context takes; undefined: more than the device can have in one
   *  piece. */
  private session(context: number, what: Reserve = RESERVE.bytes): Session | undefined {
    const x = this.core.exports, { batch = BATCH, cache: kept } = this.options;
    x.bz_wasm_gpu_free_scratch(this.engine);
    const s = x.bz_wasm_session_open(this.engine, context, batch, +(kept === 'f16'));
    if (!s) return this.noRoom('memory');
    try {
      return this.measure(s, what);
    } finally {
      x.bz_wasm_session_close(s);
    }
  }

  private measure(s: SessionPtr, what: Reserve): Session | undefined {
    const x = this.core.exports;
    const steps = x.bz_wasm_gpu_reserve(s, what), cache = x.bz_wasm_session_cache_bytes(s);
    if (steps < 0) return this.noRoom('memory', 'limit');
    return {
      context: x.bz_wasm_session_context(s),
      cache,
      scratch: this.gpu.bytes - this.before - this.weights - cache,
      steps,
    };
  }

  /** Only a lack of room is an answer; anything else is an error. */
  private noRoom(...kinds: ErrorKind[]): undefined {
    this.gpu.check();
    try {
      this.core.fail();
    } catch (e) {
      if (!(e instanceof BezelError) || !kinds.includes(e.kind)) throw e;
    }
    return undefined;
  }

  /** The longest context that fits. */
  private largest(): number {
    this.core.checkNumber(this.core.exports.bz_wasm_engine_info(this.engine));
    const { n_context: most } = JSON.parse(this.core.resultText()) as { n_context: number };
    if (this.fits(this.session(most))) return most; // as on most devices
    let fits = 0, not = most;
    while (not - fits > 1) {
      const middle = Math.floor((fits + not) / 2);
      if (this.fits(this.session(middle))) fits = middle;
      else not = middle;
    }
    return fits;
  }

  private estimate(
    session: Session | undefined, largestContext: number, table: 'gpu' | 'source' | undefined,
  ): Estimate {
    const { available, weights } = this;
    const base = { weights, available, largestContext, table };
    const rest = largestContext
      ? `; a context of ${largestContext} tokens would fit`
      : '; no context is short enough to fit';
    if (!session) {
      const reason =
        `a context of ${this.options.context} tokens is more than this device can have `
          + `in one buffer${rest}`;
      return {
        ...base, cache: 0, scratch: 0, steps: 0, total: weights,
        context: this.options.context ?? 0, fits: false, missing: 0, reason,
      };
    }
    const total = this.total(session), missing = Math.max(0, total - available);
    const made = { ...base, ...session, total, fits: missing === 0, missing };
    if (!missing) return made;
    const parts =
      `weights ${gigabytes(weights)}, cache ${gigabytes(session.cache)}, `
        + `scratch ${gigabytes(session.scratch + session.steps)}`;
    return {
      ...made,
      reason:
        `this model needs ${gigabytes(total)} of graphics memory for a context of `
          + `${session.context} tokens (${parts}), ${gigabytes(missing)} more than the `
          + `${gigabytes(available)} there are${rest}`,
    };
  }
}

/** What a model would take, exactly; nothing of it is loaded. The core must have a GPU. */
export function estimate(
  core: Core, sources: readonly Source[], options: EstimateOptions = {},
): Estimate {
  const { gpu, exports: x } = core;
  if (!gpu) throw new BezelError('this core was loaded without a GPU', 'device');
  const known = new Map(sources.map((s) => [core.addSource(s), s])), before = gpu.bytes;
  let engine = 0 as EnginePtr;
  try {
    return gpu.planned(() => {
      try {
        engine =
          core.with(openJson(known, options), (p, n) => core.check(x.bz_wasm_engine_open(p, n)));
        return new Plan(core, gpu, engine, before, options).decide(
          () => x.bz_wasm_gpu_leave_table(engine), RESERVE.bytes,
        );
      } finally {
        if (engine) x.bz_wasm_engine_close(engine);
      }
    });
  } finally {
    for (const id of known.keys()) core.removeSource(id);
  }
}
