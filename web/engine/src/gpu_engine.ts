// gpu_engine - an engine whose weights are on the GPU.
//
// The core says which bytes it wants and where they go; upload.ts brings them. Conversations are
// gpu_session.ts.

import { BezelError, type Core, type EnginePtr } from './wasm.js';
import type { Gpu } from './gpu.js';
import type { Info, StoreTexts } from './cpu_engine.js';
import { GpuSession } from './gpu_session.js';
import type { Progress } from './model.js';
import type { Source } from './source.js';
import { upload } from './upload.js';

export interface GpuOpenOptions {
  /** What a person calls the model. */
  name?: string;
  store?: StoreTexts;
  /** 'plain': no subgroups, even where the device has them. Absent: the fastest that the device can. */
  tier?: 'subgroup' | 'plain';
  onProgress?: (p: Progress) => void;
  /** Its reason is what open() then throws. */
  signal?: AbortSignal;
}

export class GpuEngine {
  private constructor(readonly core: Core, readonly gpu: Gpu, readonly ptr: EnginePtr, readonly info: Info, private readonly sources: ReadonlyMap<number, Source>) {}

  /** Bind the model and stream its weights to the device. Several sources are the shards of one model; they
   *  stay the caller's, and must outlive the engine. */
  static async open(core: Core, sources: readonly Source[], options: GpuOpenOptions = {}): Promise<GpuEngine> {
    const { gpu, exports: x } = core, { tier = 'subgroup', signal, onProgress } = options;
    if (!gpu) throw new BezelError('this core was loaded without a GPU', 'device');
    if (options.tier === 'subgroup' && !gpu.info.limits.subgroupMax) throw new BezelError(`${gpu.info.name} has no subgroups: only the plain tier runs there`, 'device');
    signal?.throwIfAborted();
    onProgress?.({ phase: 'open', loaded: 0, total: 1 });
    const known = new Map(sources.map((s) => [core.addSource(s), s]));
    let ptr = 0 as EnginePtr;
    try {
      const json = { ...(options.name !== undefined && { name: options.name }), ...(options.store && { store: options.store }), backend: 'gpu', plain_kernels: tier === 'plain', sources: Array.from(known, ([id, { name, size }]) => ({ id, name, size })) };
      ptr = core.with(JSON.stringify(json), (p, n) => core.check(x.bz_wasm_engine_open(p, n)));
      await gpu.ready();
      onProgress?.({ phase: 'open', loaded: 1, total: 1 });
      await upload(core, gpu, ptr, known, signal, (loaded, total) => onProgress?.({ phase: 'weights', loaded, total }));
      await gpu.ready();
      core.checkNumber(x.bz_wasm_engine_info(ptr));
      const info = JSON.parse(core.resultText()) as Info;
      onProgress?.({ phase: 'ready', loaded: 1, total: 1 });
      return new GpuEngine(core, gpu, ptr, info, known);
    } catch (e) {
      if (ptr) x.bz_wasm_engine_close(ptr);
      for (const id of known.keys()) core.removeSource(id);
      throw e;
    }
  }

  /** `cache`: what keys and values are kept as. */
  session(context = 0, batch = 512, cache: 'f32' | 'f16' = 'f32'): GpuSession {
    return new GpuSession(this, this.core.check(this.core.exports.bz_wasm_session_open(this.ptr, context, batch, +(cache === 'f16'))), batch);
  }

  tokenize(text: string, bos = true, plain = false): Int32Array {
    this.core.with(text, (p, n) => this.core.checkNumber(this.core.exports.bz_wasm_tokenize(this.ptr, p, n, +bos, +plain)));
    return this.core.resultIds();
  }

  detokenize(ids: Int32Array, specials = false): string {
    this.core.with(ids, (p, n) => this.core.checkNumber(this.core.exports.bz_wasm_detokenize(this.ptr, p, n, +specials)));
    return this.core.resultText();
  }

  close(): void {
    this.core.exports.bz_wasm_engine_close(this.ptr);
    for (const id of this.sources.keys()) this.core.removeSource(id);
  }
}
