// gpu_engine - an engine whose weights are on the GPU.
//
// The core says which bytes it wants; this file brings them, window by window. Conversations are
// gpu_session.ts.

import { BezelError, type Core, type EnginePtr } from './wasm.js';
import type { Gpu } from './gpu.js';
import type { Info } from './cpu_engine.js';
import { GpuSession } from './gpu_session.js';
import type { Source } from './source.js';

const WINDOW = 4 << 20; // bytes of weights on their way through the wasm heap at a time

export interface LoadProgress {
  loaded: number;
  total: number;
}

export interface GpuOpenOptions {
  name?: string;
  /** No subgroups, even where the device has them. */
  plain_kernels?: boolean;
  onProgress?: (p: LoadProgress) => void;
  signal?: AbortSignal;
}

export class GpuEngine {
  private constructor(readonly core: Core, readonly gpu: Gpu, readonly ptr: EnginePtr, readonly info: Info, private readonly sourceId: number) {}

  /** Bind the model and stream its weights to the device, window by window. */
  static async open(core: Core, source: Source, options: GpuOpenOptions = {}): Promise<GpuEngine> {
    const gpu = core.gpu;
    if (!gpu) throw new BezelError('this core was loaded without a GPU', 'device');
    const id = core.addSource(source);
    let ptr = 0 as EnginePtr;
    try {
      const json = { name: options.name, backend: 'gpu', plain_kernels: options.plain_kernels ?? false, sources: [{ id, name: source.name, size: source.size }] };
      ptr = core.with(JSON.stringify(json), (p, n) => core.check(core.exports.bz_wasm_engine_open(p, n)));
      gpu.check();
      await GpuEngine.upload(core, gpu, ptr, source, options);
      core.checkNumber(core.exports.bz_wasm_engine_info(ptr));
      return new GpuEngine(core, gpu, ptr, JSON.parse(core.resultText()) as Info, id);
    } catch (e) {
      if (ptr) core.exports.bz_wasm_engine_close(ptr);
      core.removeSource(id);
      throw e;
    }
  }

  private static async upload(core: Core, gpu: Gpu, engine: EnginePtr, source: Source, options: GpuOpenOptions): Promise<void> {
    const x = core.exports;
    const total = x.bz_wasm_gpu_upload_bytes(engine);
    const window = core.check(x.bz_wasm_alloc(x.bz_wasm_gpu_window_size()));
    const bytes = core.check(x.bz_wasm_alloc(WINDOW));
    try {
      for (let loaded = 0; x.bz_wasm_gpu_upload_next(engine, WINDOW, window);) {
        options.signal?.throwIfAborted();
        const view = new DataView(core.memory.buffer, window);
        const n = view.getUint32(4, true), offset = view.getFloat64(8, true);
        source.read(offset, new Uint8Array(core.memory.buffer, bytes, n));
        core.checkNumber(x.bz_wasm_gpu_upload_give(engine, window, bytes));
        gpu.check();
        loaded += n;
        options.onProgress?.({ loaded, total });
        // Bound what the queue holds, and let cancels and other work in.
        if (Math.floor(loaded / (16 * WINDOW)) !== Math.floor((loaded - n) / (16 * WINDOW))) await gpu.device.queue.onSubmittedWorkDone();
      }
      await gpu.ready();
    } finally {
      x.bz_wasm_free(bytes);
      x.bz_wasm_free(window);
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
    this.core.removeSource(this.sourceId);
  }
}
