// gpu_engine - an engine whose weights are on the GPU.
//
// The core says which bytes it wants and where they go; upload.ts brings them. Conversations are
// gpu_session.ts.

import { RESERVE, type EnginePtr, type Reserve, type SessionPtr } from '../engine/boundary.js';
import { BezelError, type Core } from '../engine/wasm.js';
import { NO_MEMORY, type Gpu } from './gpu.js';
import type { Tier } from './adapter.js';
import { chatTokens, type ChatTokens, type Info } from '../engine/cpu_engine.js';
import {
  BATCH, gigabytes, openJson, Plan, type Estimate, type EstimateOptions,
} from '../load/estimate.js';
import { GpuSession } from './gpu_session.js';
import type { DeviceReport, Memory, Progress, SelfTest } from '../engine/model.js';
import { KernelValidation } from './validation.js';
import { Rows } from '../load/rows.js';
import type { Source } from '../load/source.js';
import { selfTest } from './selftest.js';
import { Table } from '../load/table.js';
import { nextTurn } from '../engine/turns.js';
import { places, upload } from '../load/upload.js';

export interface GpuOpenOptions extends EstimateOptions {
  /** Compile the kernels of a first prompt while the weights are loaded, the others soon after, and
   *  compare each with the C loop that defines it; absent: unless the device is a software adapter,
   *  whose compiler takes seconds for each. Else kernels compile when first used. */
  selfTest?: boolean;
  onProgress?: (p: Progress) => void;
  /** Its reason is what open() then throws. */
  signal?: AbortSignal;
}

const BUFFERS = 16; // that are made in one turn

function testsKernels(gpu: Gpu, { selfTest }: GpuOpenOptions): boolean {
  return selfTest ?? !gpu.info.software;
}

/** A plan that needs the kernels of a canvas, which are not there yet. */
class NeedsCanvas extends Error {}

export class GpuEngine {
  private readonly sessions = new Set<SessionPtr>();
  private readonly report = new Map<string, SelfTest>(); // of the self-test
  /** The kernels that the load did not wait for. */
  readonly validation: KernelValidation;
  /** The per-layer embedding table, where the load did not wait for it, or left it in the file. */
  private readonly table: Table | undefined;
  /** For DeviceReport. */
  private readonly profile: string;
  private readonly int8: boolean;
  /** With what a step of one token was recorded last (GpuSession.adapted). */
  stepped: number | undefined;

  private constructor(
    readonly core: Core,
    readonly gpu: Gpu,
    readonly ptr: EnginePtr,
    private readonly sources: ReadonlyMap<number, Source>,
    /** What it was found to take, with a session as the options have it. */
    public estimate: Readonly<Estimate>,
    rows: Rows | undefined,
    late: readonly number[] | undefined,
    private readonly repackers: readonly number[],
    private readonly refused: Map<number, string>,
    private readonly options: GpuOpenOptions,
    readonly info: Info,
  ) {
    this.int8 = core.exports.bz_wasm_gpu_profile(ptr) === 1;
    this.profile = core.resultText();
    this.validation = new KernelValidation(
      gpu,
      (group, signal) => this.validateMore(group, signal),
      testsKernels(gpu, options) ? RESERVE.first : RESERVE.rest,
    );
    const moves = late && {
      bring: (signal: AbortSignal) => this.bringTable(late, signal),
      arrive: () => core.exports.bz_wasm_gpu_table_there(ptr),
      leave: () => this.leaveTable(),
    };
    this.table = rows && new Table(gpu, rows, moves);
  }

  /** Find out whether the model fits, bind it and stream its weights to the device. Several sources
   *  are the shards of one model; they stay the caller's, and must outlive the engine. */
  static async open(
    core: Core, sources: readonly Source[], options: GpuOpenOptions = {},
  ): Promise<GpuEngine> {
    const { gpu } = core, { signal, onProgress } = options;
    if (!gpu) throw new BezelError('this core was loaded without a GPU', 'device');
    if (options.tier && options.tier !== 'plain' && !gpu.info.limits.subgroupMax)
      throw new BezelError(
        `${gpu.info.name} has no subgroups: only the plain tier runs there`, 'device',
      );
    if (options.tier === 'matrix' && !gpu.info.limits.hasMatrix)
      throw new BezelError(
        `${gpu.info.name} has no subgroup matrices here: the subgroup and the plain tier run there`,
        'device',
      );
    signal?.throwIfAborted();
    onProgress?.({ phase: 'open', loaded: 0, total: 1 });
    const known = new Map(sources.map((s) => [core.addSource(s), s]));
    let engine: GpuEngine | undefined;
    try {
      engine = await GpuEngine.planWithKernels(core, gpu, known, options);
      // the compiler has threads of its own, and takes longest: all else is done while they work
      await gpu.handedOut();
      signal?.throwIfAborted();
      onProgress?.({ phase: 'open', loaded: 1, total: 1 });
      signal?.throwIfAborted();
      await engine.fill();
      await gpu.ready();
      signal?.throwIfAborted();
      onProgress?.({ phase: 'ready', loaded: 1, total: 1 });
      engine.soon();
      return engine;
    } catch (e) {
      void engine?.close();
      for (const id of known.keys()) core.removeSource(id);
      // nothing of the load is left, so others on the device may go on
      const fault = gpu.takeFault();
      if (!engine || !fault || fault !== e || !fault.message.startsWith(NO_MEMORY)) throw e;
      const { table, total } = engine.estimate;
      if (table === 'gpu' && options.table !== 'gpu')
        return await GpuEngine.open(core, sources, { ...options, table: 'source' });
      throw new BezelError(
        `this model needs ${gigabytes(total)} of graphics memory, `
          + `and ${gpu.info.name} has less (${fault.message})`,
        'memory',
        fault,
      );
    } finally {
      gpu.onCompiled = undefined;
    }
  }

  /** Something new was asked of it: what the load did not wait for begins when it is quiet. */
  soon(): void {
    this.validation.soon();
    this.table?.soon();
  }

  /** There is a token, so whoever has it can wait: what the load did not wait for begins now. */
  goOn(): void {
    this.validation.begin();
    this.table?.begin();
  }

  /** Wait until all is there that the load did not wait for, and nothing is under way but what
   *  is asked for. */
  async whole(signal?: AbortSignal): Promise<void> {
    await Promise.all([this.validation.all(signal), this.table?.settled(signal)]);
  }

  /** Bring the weights; meanwhile buffers are made, the vocabulary is read and the kernels are put
   *  to the test. Whichever fails ends the others, and none goes on when this has thrown. Progress
   *  is the weights' as long as there are any. */
  private async fill(): Promise<void> {
    const { core, gpu } = this, { signal, onProgress } = this.options, stop = new AbortController();
    const say = (p: Progress): void => void (stop.signal.aborted || onProgress?.(p));
    const held = new Map<string, Progress>();
    const hold = (p: Progress): void => void held.set(p.phase, p);
    let tell = hold;
    const cancel = (): void => stop.abort(signal?.reason);
    signal?.addEventListener('abort', cancel, { once: true });
    const weights = upload(core, gpu, this.ptr, this.sources, this.repackers, {
      signal: stop.signal, onBytes: (loaded, total) => say({ phase: 'weights', loaded, total }),
    }).then(() => {
      tell = say;
      held.forEach(say);
    });
    let onPrepared = (): void => {};
    const prepared = new Promise<void>((resolve) => (onPrepared = resolve));
    const validation = testsKernels(gpu, this.options)
      ? this.validateFirst(stop.signal, onPrepared, (p) => tell(p))
      : Promise.resolve();
    validation.finally(onPrepared).catch(() => {}); // heard below
    // nothing waits for the vocabulary
    const parts = [
      weights, this.makeBuffers(stop.signal), validation,
      prepared.then(() => this.readOn(stop.signal)),
    ];
    for (const part of parts) part.catch((e: unknown) => stop.abort(e));
    await Promise.allSettled(parts);
    signal?.removeEventListener('abort', cancel);
    stop.signal.throwIfAborted();
  }

  /** Those that no weight was written to yet. */
  private async makeBuffers(signal: AbortSignal): Promise<void> {
    while (!signal.aborted && !this.gpu.makeCounted(BUFFERS)) await nextTurn();
    await this.gpu.made();
  }

  /** What is left of the vocabulary. */
  private async readOn(signal: AbortSignal): Promise<void> {
    while (!signal.aborted
      && this.core.checkNumber(this.core.exports.bz_wasm_engine_read_on(this.ptr)))
      await nextTurn();
  }

  /** The kernels of the first prompt and its token must be there, and right. */
  private async validateFirst(
    signal: AbortSignal, onPrepared: () => void, tell: (p: Progress) => void,
  ): Promise<void> {
    const { core, gpu, report, refused } = this;
    const compiled = (): void =>
      tell({ phase: 'kernels', loaded: gpu.pipelinesDone, total: gpu.pipelinesAsked });
    compiled();
    gpu.onCompiled = compiled;
    await selfTest(core, gpu, this.ptr, {
      signal, report, refused, onPrepared,
      alone: true,
      compile: () => this.compile(RESERVE.first),
      onTested: (loaded, total) => {
        gpu.onCompiled = undefined;
        tell({ phase: 'selftest', loaded, total });
      },
    });
  }

  /** So must those of the groups up to this one, while sessions are at work. */
  private async validateMore(group: Reserve, signal: AbortSignal): Promise<void> {
    const { core, gpu, ptr, report, refused } = this;
    gpu.check();
    gpu.later(
      refused, () => core.exports.bz_wasm_gpu_ask_queued(ptr, group), group === RESERVE.rest,
    );
    await selfTest(core, gpu, ptr, {
      signal, report, refused, alone: false, compile: () => this.compile(group),
    });
  }

  /** Bring the table that the load did not wait for, to these buffers. */
  private async bringTable(buffers: readonly number[], signal: AbortSignal): Promise<void> {
    const { core, gpu, ptr } = this;
    if (!(await gpu.hasRoom(() => gpu.makeLate(buffers))))
      throw new BezelError(`${NO_MEMORY} for the per-layer embedding table`, 'memory');
    signal.throwIfAborted();
    core.exports.bz_wasm_gpu_resume_table(ptr);
    await upload(core, gpu, ptr, this.sources, this.repackers, { signal, beside: true });
    // its kernel is among those, and a step may be recorded anew without a look
    if (!this.validation.has(RESERVE.steps)) await this.validation.upTo(RESERVE.steps, signal);
  }

  private leaveTable(): void {
    const x = this.core.exports;
    x.bz_wasm_gpu_leave_table(this.ptr);
    const weights = x.bz_wasm_gpu_weight_bytes(this.ptr), { estimate } = this;
    this.estimate = {
      ...estimate, table: 'source', weights, total: estimate.total - (estimate.weights - weights),
    };
  }

  /** Ask for the pipelines of a session as the options have it. */
  private compile(what: Reserve): void {
    const { context = 0, batch = BATCH, cache } = this.options, { core, gpu } = this;
    const x = core.exports;
    gpu.later(this.refused, () => gpu.planned(() => {
      const s = core.check(x.bz_wasm_session_open(this.ptr, context, batch, +(cache === 'f16')));
      x.bz_wasm_gpu_reserve(s, what);
      x.bz_wasm_session_close(s);
    }));
  }

  /** Tokens of a longer history will come: its kernels compile while others do. One that is
   *  refused is demoted by the test that is to come, if there is one. */
  expect(session: SessionPtr, horizon: number): void {
    const ask = (): void => this.core.exports.bz_wasm_gpu_expect(session, horizon);
    if (this.validation.done) ask();
    else this.gpu.later(this.refused, ask);
  }

  /** Would such a step of a session run a kernel that is still to be validated? Then up to which
   *  group that must be; else 0. */
  awaits(session: SessionPtr, rows: number, nLogits: number, horizon: number): Reserve {
    const { awaited } = this.validation;
    return awaited
      ? this.core.exports.bz_wasm_gpu_awaits(session, rows, nLogits, horizon, ...awaited)
      : RESERVE.bytes;
  }

  /** The same of a step of the session's canvas. */
  awaitsCanvas(session: SessionPtr, horizon: number): Reserve {
    const { awaited } = this.validation;
    return awaited
      ? this.core.exports.bz_wasm_gpu_canvas_awaits(session, horizon, ...awaited)
      : RESERVE.bytes;
  }

  /** The header says whether it is a diffusion model: others download no kernels of a canvas. */
  private static async planWithKernels(
    core: Core, gpu: Gpu, sources: ReadonlyMap<number, Source>, options: GpuOpenOptions,
  ): Promise<GpuEngine> {
    try {
      return GpuEngine.plan(core, gpu, sources, options);
    } catch (e) {
      if (!(e instanceof NeedsCanvas)) throw e;
      await core.bringCanvas();
      return GpuEngine.plan(core, gpu, sources, options);
    }
  }

  /** An engine with all its buffers counted; or why it does not fit. */
  private static plan(
    core: Core, gpu: Gpu, sources: ReadonlyMap<number, Source>, options: GpuOpenOptions,
  ): GpuEngine {
    const x = core.exports, before = gpu.bytes, refused = new Map<number, string>();
    const tests = testsKernels(gpu, options);
    const decide = (): GpuEngine => gpu.counted(() => {
      const ptr =
        core.with(openJson(sources, options), (p, n) => core.check(x.bz_wasm_engine_open(p, n)));
      try {
        core.checkNumber(x.bz_wasm_engine_info(ptr));
        const info = JSON.parse(core.resultText()) as Info;
        if (info.n_canvas && !core.hasCanvas) throw new NeedsCanvas();
        let rows: Rows | undefined, late: number[] | undefined;
        const repackers: number[] = [];
        if (places(gpu)) { // first, since the first windows wait for them
          x.bz_wasm_gpu_upload_kernels(ptr);
          repackers.push(...new Uint32Array(core.result().buffer).filter((pipeline) => pipeline));
        }
        const leave = (): void => {
          x.bz_wasm_gpu_leave_table(ptr);
          rows = Rows.of(core, sources);
        };
        const postpone = (): void => {
          x.bz_wasm_gpu_postpone_table(ptr);
          rows = Rows.of(core, sources);
          late = [];
          for (let b; (b = x.bz_wasm_gpu_table_buffer(ptr, late.length));) late.push(b);
          gpu.postpone(late);
        };
        const quick = [...sources.values()].every((s) => s.random);
        const estimate = new Plan(core, gpu, ptr, before, options).decide(
          leave, tests ? RESERVE.first : RESERVE.bytes, quick ? postpone : undefined,
        );
        if (!estimate.fits)
          throw new BezelError(estimate.reason ?? 'this model does not fit', 'memory');
        return new GpuEngine(
          core,
          gpu,
          ptr,
          sources,
          estimate,
          rows,
          late,
          repackers,
          refused,
          { ...options, context: estimate.context },
          info,
        );
      } catch (e) {
        x.bz_wasm_engine_close(ptr);
        throw e;
      }
    });
    gpu.check();
    return tests ? gpu.later(refused, decide) : decide();
  }

  /** Tokens of a conversation that does not say. */
  get context(): number {
    return this.options.context ?? 0;
  }

  /** `cache`: what keys and values are kept as. */
  session(
    context = 0,
    batch = this.options.batch ?? BATCH,
    cache: 'f32' | 'f16' = this.options.cache ?? 'f32',
  ): GpuSession {
    const x = this.core.exports;
    const ptr = this.gpu.planned(() => {
      const s =
        this.core.check(x.bz_wasm_session_open(this.ptr, context, batch, +(cache === 'f16')));
      const steps = x.bz_wasm_gpu_reserve(
        s,
        this.validation.done && testsKernels(this.gpu, this.options) ? RESERVE.all : RESERVE.bytes,
      );
      const short = this.gpu.bytes + steps - (this.options.budget ?? this.gpu.info.maxTotal);
      if (steps >= 0 && short <= 0) return s;
      const n = x.bz_wasm_session_context(s);
      x.bz_wasm_session_close(s);
      if (steps < 0) this.core.fail();
      throw new BezelError(
        `a context of ${n} tokens takes ${gigabytes(short)} more graphics memory than there is; `
          + 'ask for a shorter one',
        'memory',
      );
    });
    this.sessions.add(ptr);
    this.soon();
    return new GpuSession(this, ptr, batch);
  }

  /** A session is gone. */
  forget(session: SessionPtr): void {
    this.sessions.delete(session);
  }

  get device(): DeviceReport {
    const { name, limits } = this.gpu.info;
    const best: Tier = limits.hasMatrix ? 'matrix' : limits.subgroupMax ? 'subgroup' : 'plain';
    return {
      backend: 'gpu', name, tier: this.options.tier ?? best, profile: this.profile, int8: this.int8,
      limits: { ...limits }, selfTest: [...this.report.values()],
    };
  }

  /** Bytes on the device now, or soon: a table on its way is counted. */
  get memory(): Memory {
    const { weights } = this.estimate;
    let cache = 0;
    for (const s of this.sessions) cache += this.core.exports.bz_wasm_session_cache_bytes(s);
    const { refusal } = this.table ?? {};
    return {
      weights,
      cache,
      scratch: this.gpu.bytes - weights - cache,
      ...(refusal !== undefined && { tableInFile: refusal }),
    };
  }

  /** Must gatherRows() be awaited before every step, since a table is in the file? Then the next
   *  token must be known before its step is queued. Once it is false it stays so. */
  get needsRows(): boolean {
    return this.table?.inFile ?? false;
  }

  /** Wait until the table is where it will be. */
  async tableSettled(signal?: AbortSignal): Promise<void> {
    await this.table?.settled(signal);
  }

  /** Bring the rows of the tokens that the session's next step reads. */
  async gatherRows(session: SessionPtr, ids: Int32Array): Promise<void> {
    await this.table?.gather(session, ids);
  }

  tokenize(text: string, bos = true, plain = false): Int32Array {
    this.core.with(text, (p, n) =>
      this.core.checkNumber(this.core.exports.bz_wasm_tokenize(this.ptr, p, n, +bos, +plain)));
    return this.core.resultIds();
  }

  chatTokens(
    conversation: string, options?: { thinking?: boolean; history?: boolean },
  ): ChatTokens {
    return chatTokens(this.core, this.ptr, conversation, options);
  }

  detokenize(ids: Int32Array, specials = false): string {
    this.core.with(ids, (p, n) =>
      this.core.checkNumber(this.core.exports.bz_wasm_detokenize(this.ptr, p, n, +specials)));
    return this.core.resultText();
  }

  /** Nothing of it is left when this returns. The device must stay until what is returned has
   *  settled: a source may still write to its memory. */
  close(): Promise<void> {
    this.validation.stop();
    const stopped = this.table?.stop();
    this.core.exports.bz_wasm_engine_close(this.ptr);
    for (const id of this.sources.keys()) this.core.removeSource(id);
    return stopped ?? Promise.resolve();
  }
}
