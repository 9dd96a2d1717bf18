// upload - weights on their way from their sources to the device.
//
// A window of a file goes one of two ways. Where its bytes are only moved, it is placed: the source
// reads straight into a mapped buffer, and the device copies it to its place or repacks it with
// a kernel; nothing else touches a byte. Where weights are converted or rows padded, the core does
// it: the window is read into memory of the host's, never into the module's (that may grow and move
// while a read is under way), repacked there, and written. What is on its way is bounded on every
// side: windows being read, one window in the module, bytes waiting in the device's queue.

import { NO_MEMORY, type Gpu } from '../gpu/gpu.js';
import type { Source } from './source.js';
import { aborting } from '../engine/turns.js';
import { readHostWindow, type Bytes, type EnginePtr, type LanePtr } from '../engine/boundary.js';
import { BezelError, type Core } from '../engine/wasm.js';

const LANES = 6; // windows under way: some are read while the device takes the others
// while others read too: Node reads four things at a time, and a step's rows must not wait for
// windows
const LANES_BESIDE = 3;
// bytes of a window that is placed, at most; and of a small model's
const PLACED = 8 << 20, LEAST = 256 << 10;
const PARTS = 32; // windows that even such a model comes in, so that several are under way
const WINDOW = 4 << 20; // bytes of one that goes through the module; a longer row is one window
const QUEUED = 32 << 20; // bytes written since the device was last known to have kept up
const WRITE_MODE = 0x2; // GPUMapMode

/** Bytes of the device's that windows are placed through beside others, at most. */
export const STAGED = (LANES_BESIDE + 1) * PLACED;

export interface UploadOptions {
  signal: AbortSignal;
  /** Are sessions at work meanwhile? */
  beside?: boolean;
  onBytes?: (done: number, total: number) => void;
}

/** Are windows placed on this device? One in software would do the kernel's work on the cores
 *  that read. */
export function places(gpu: Gpu): boolean {
  return !gpu.info.software;
}

/** Every window of the engine's weights that is on the core's list. `sources` has them by the
 *  numbers that the core knows; `repackers` are the pipelines that repack blocks. Once the
 *  signal is aborted, nothing of the core is held or used any more; memory that a source still
 *  writes to is there until this has settled. */
export async function upload(
  core: Core,
  gpu: Gpu,
  engine: EnginePtr,
  sources: ReadonlyMap<number, Source>,
  repackers: readonly number[],
  { signal, beside = false, onBytes = () => {} }: UploadOptions,
): Promise<void> {
  const pump =
    new Pump(core, gpu, engine, sources, repackers, beside ? LANES_BESIDE : LANES, onBytes);
  // not in a later turn: the engine may be closed by then
  const { aborted, off } = aborting(signal), stop = (): void => pump.stop();
  signal.addEventListener('abort', stop, { once: true });
  try {
    await Promise.race([beside ? pump.makeRoom().then(() => pump.run()) : pump.run(), aborted]);
    signal.throwIfAborted();
  } finally {
    off();
    signal.removeEventListener('abort', stop);
    await pump.close();
  }
}

/** One window after the other. */
interface Lane {
  readonly ptr: LanePtr; // what the core knows of its window
  host: Uint8Array | undefined; // where windows for the module are read to
  staging: GPUBuffer | undefined; // where those that are placed are
  number: number; // by which the core knows it
  mapped: Promise<unknown>; // it can be written to
  direct: Promise<unknown> | undefined; // the system is writing there
}

class Pump {
  private readonly lanes: Lane[];
  private readonly total: number;
  private readonly placed: number; // bytes of a window that is placed, at most; 0: none is
  private readonly repacking: Promise<unknown>; // the kernels are there
  private bytes = 0 as Bytes; // room for one window's bytes in the module
  private room = 0;
  private scratch: [number, GPUBuffer] | undefined; // which the kernel reads
  private queued = 0;
  // the device has kept up with all but the last QUEUED bytes
  private kept: Promise<unknown> = Promise.resolve();
  private closed = false;

  constructor(
    private readonly core: Core,
    private readonly gpu: Gpu,
    private readonly engine: EnginePtr,
    private readonly sources: ReadonlyMap<number, Source>,
    repackers: readonly number[],
    lanes: number,
    private readonly onBytes: (done: number, total: number) => void,
  ) {
    const x = core.exports;
    this.total = x.bz_wasm_gpu_upload_bytes(engine);
    this.placed = places(gpu)
      ? Math.min(PLACED, Math.max(LEAST, Math.ceil(this.total / PARTS / LEAST) * LEAST))
      : 0;
    const size = x.bz_wasm_gpu_lane_bytes(), first = core.check(x.bz_wasm_alloc(lanes * size));
    this.lanes = Array.from(
      { length: lanes },
      (_, i) => ({
        ptr: (first + i * size) as LanePtr, host: undefined, staging: undefined, number: 0,
        mapped: Promise.resolve(), direct: undefined,
      }),
    );
    this.repacking = Promise.all(repackers.map((pipeline) => gpu.compiledPipeline(pipeline)));
    this.repacking.catch(() => {}); // heard by who needs it
  }

  /** Make what windows are placed through, before the first of them: a device that has no room
   *  for it says so here, and it is nobody's fault. */
  async makeRoom(): Promise<void> {
    if (!this.placed) return;
    const has = await this.gpu.hasRoom(() => {
      for (const lane of this.lanes) this.stage(lane);
      this.scratch = this.gpu.lend('scratch', this.placed);
    });
    if (!has) throw new BezelError(`${NO_MEMORY} for what weights come through`, 'memory');
    for (const lane of this.lanes) if (!this.closed) this.map(lane, lane.staging as GPUBuffer);
  }

  async run(): Promise<void> {
    this.onBytes(0, this.total);
    await Promise.all(this.lanes.map((lane) => this.drive(lane)));
    await this.gpu.device.queue.onSubmittedWorkDone();
    this.gpu.check();
  }

  /** The core is not needed any more. Whoever still waits in a lane finds it closed. */
  stop(): void {
    if (this.closed) return;
    this.closed = true;
    const x = this.core.exports;
    for (const { number } of this.lanes) if (number) this.gpu.unlend(number);
    if (this.scratch) this.gpu.unlend(this.scratch[0]);
    x.bz_wasm_free(this.bytes);
    x.bz_wasm_free((this.lanes[0] as Lane).ptr as number as Bytes);
  }

  /** Nothing is under way any more that could write where it must not. */
  async close(): Promise<void> {
    this.stop();
    await Promise.allSettled(this.lanes.map((lane) => lane.direct));
    for (const { staging } of this.lanes) staging?.destroy();
    this.scratch?.[1].destroy();
  }

  private async drive(lane: Lane): Promise<void> {
    while (!this.closed
      && this.core.exports.bz_wasm_gpu_upload_next(this.engine, WINDOW, this.placed, lane.ptr)) {
      const { source: number, offset, nBytes: n, placed } =
        readHostWindow(this.core.memory.buffer, lane.ptr);
      const source = this.sources.get(number);
      if (!source) throw new Error('the core asks for a source that is not there');
      if (placed) await this.place(lane, source, offset, n);
      else await this.give(lane, source, offset, n);
      if (this.closed) return;
      this.gpu.check();
      this.onBytes(
        this.total - this.core.exports.bz_wasm_gpu_upload_bytes(this.engine), this.total,
      );
    }
  }

  // ---- placed by the device ----

  private async place(lane: Lane, source: Source, offset: number, n: number): Promise<void> {
    const x = this.core.exports;
    if (!lane.staging) this.map(lane, this.stage(lane));
    const staging = lane.staging as GPUBuffer;
    await lane.mapped;
    if (this.closed) return;
    const read = source.readAsync(
      offset, new Uint8Array(staging.getMappedRange(0, Math.ceil(n / 8) * 8), 0, n),
    );
    if (source.direct) lane.direct = read;
    await Promise.all([read, this.repacking]);
    lane.direct = undefined;
    if (this.closed) return;
    staging.unmap();
    this.scratch ??= this.gpu.lend('scratch', this.placed);
    const program = this.core.checkNumber(
      x.bz_wasm_gpu_upload_place(this.engine, lane.ptr, lane.number, this.scratch[0]),
    );
    try {
      this.gpu.submit(program);
    } finally {
      x.bz_wasm_gpu_upload_placed(lane.ptr);
    }
    this.map(lane, staging);
  }

  private stage(lane: Lane): GPUBuffer {
    const [number, staging] = this.gpu.lend('staging', this.placed);
    lane.number = number;
    return (lane.staging = staging);
  }

  /** Not when it is made: so it is the device that fills it with zeros. */
  private map(lane: Lane, staging: GPUBuffer): void {
    lane.mapped = staging.mapAsync(WRITE_MODE).catch((e: unknown) =>
      (this.closed ? undefined : this.gpu.notMapped(e)));
    lane.mapped.catch(() => {}); // heard by the next window, or by check()
  }

  // ---- through the module ----

  private async give(lane: Lane, source: Source, offset: number, n: number): Promise<void> {
    if (!lane.host || lane.host.length < n) lane.host = new Uint8Array(Math.max(WINDOW, n));
    const bytes = lane.host.subarray(0, n), x = this.core.exports;
    await source.readAsync(offset, bytes);
    if (this.closed) return;
    if (n > this.room) {
      const room = Math.max(WINDOW, n), larger = this.core.check(x.bz_wasm_alloc(room));
      x.bz_wasm_free(this.bytes);
      this.bytes = larger;
      this.room = room;
    }
    new Uint8Array(this.core.memory.buffer, this.bytes, n).set(bytes);
    this.core.checkNumber(x.bz_wasm_gpu_upload_give(this.engine, lane.ptr, this.bytes));
    this.gpu.check(); // now: after a fault nothing is written, and whoever is to blame may take it
    await this.bound(n);
  }

  /** Wait when the device is more than two rounds behind. */
  private async bound(n: number): Promise<void> {
    this.queued += n;
    if (this.queued < QUEUED) return;
    this.queued = 0;
    const before = this.kept;
    this.kept = this.gpu.device.queue.onSubmittedWorkDone();
    this.kept.catch(() => {}); // a lost device speaks through check()
    await before;
  }
}
