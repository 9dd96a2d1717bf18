// upload - weights on their way to the device: read ahead, repacked by the core, written.
//
// Reads land in memory of the host, never in the module's: that may grow and move while a read is under
// way, and a read that nobody waits for any more must not write there. What is on its way is bounded on
// every side: windows being read, one window in the module, bytes waiting in the device's queue.

import type { Gpu } from './gpu.js';
import type { Source } from './source.js';
import type { Bytes, Core, EnginePtr } from './wasm.js';

const WINDOW = 4 << 20; // bytes read at a time; a longer row is one window
const READS = 4; // windows being read
const QUEUED = 32 << 20; // bytes written since the device was last known to have kept up

interface Window {
  readonly slot: number; // of its struct in the module's memory
  readonly bytes: Uint8Array;
  readonly read: Promise<void>;
}

/** Rejects when the signal does; `off` forgets about it. */
export function aborting(signal: AbortSignal | undefined): { aborted: Promise<never>; off: () => void } {
  let off = (): void => {};
  const aborted = new Promise<never>((_, reject) => {
    const stop = (): void => reject(signal?.reason);
    signal?.addEventListener('abort', stop, { once: true });
    off = () => signal?.removeEventListener('abort', stop);
  });
  aborted.catch(() => {}); // whoever races with it hears it
  return { aborted, off };
}

/** Every window of the engine's weights. `sources` has them by the numbers that the core knows. */
export async function upload(core: Core, gpu: Gpu, engine: EnginePtr, sources: ReadonlyMap<number, Source>, signal: AbortSignal | undefined, onBytes: (done: number, total: number) => void): Promise<void> {
  const pump = new Pump(core, gpu, engine, sources);
  const { aborted, off } = aborting(signal);
  try {
    await pump.run(aborted, onBytes);
    signal?.throwIfAborted();
  } finally {
    off();
    pump.close();
  }
}

class Pump {
  private readonly size: number; // of struct window_for_host
  private readonly windows: Bytes; // READS of them
  private bytes = 0 as Bytes; // room for one window's bytes
  private room = 0;
  private readonly idle: number[] = Array.from({ length: READS }, (_, slot) => slot);
  private readonly flight: Window[] = [];
  private queued = 0;
  private kept: Promise<unknown> = Promise.resolve(); // the device has kept up with all but the last QUEUED bytes

  constructor(private readonly core: Core, private readonly gpu: Gpu, private readonly engine: EnginePtr, private readonly sources: ReadonlyMap<number, Source>) {
    const x = core.exports;
    this.size = x.bz_wasm_gpu_window_size();
    this.windows = core.check(x.bz_wasm_alloc(READS * this.size));
  }

  close(): void {
    this.core.exports.bz_wasm_free(this.bytes);
    this.core.exports.bz_wasm_free(this.windows);
  }

  async run(aborted: Promise<never>, onBytes: (done: number, total: number) => void): Promise<void> {
    const total = this.core.exports.bz_wasm_gpu_upload_bytes(this.engine);
    let done = 0;
    onBytes(done, total);
    this.readAhead();
    for (let next = this.flight.shift(); next; next = this.flight.shift()) {
      await Promise.race([next.read, aborted]);
      this.give(next);
      this.idle.push(next.slot);
      this.readAhead();
      done += next.bytes.length;
      onBytes(done, total);
      await this.bound(next.bytes.length, aborted);
    }
    await Promise.race([this.gpu.device.queue.onSubmittedWorkDone(), aborted]);
    this.gpu.check();
  }

  private at(slot: number): Bytes {
    return (this.windows + slot * this.size) as Bytes;
  }

  /** Begin as many reads as may be under way. */
  private readAhead(): void {
    for (let slot = this.idle.pop(); slot !== undefined; slot = this.idle.pop()) {
      if (!this.core.exports.bz_wasm_gpu_upload_next(this.engine, WINDOW, this.at(slot))) {
        this.idle.push(slot);
        return;
      }
      const view = new DataView(this.core.memory.buffer, this.at(slot));
      const source = this.sources.get(view.getUint32(0, true));
      if (!source) throw new Error('the core asks for a source that is not there');
      const bytes = new Uint8Array(view.getUint32(4, true));
      const read = source.readAsync(view.getFloat64(8, true), bytes);
      read.catch(() => {}); // heard when its turn comes, or not at all after a failure
      this.flight.push({ slot, bytes, read });
    }
  }

  /** A window's bytes through the module to the device. */
  private give({ slot, bytes }: Window): void {
    const x = this.core.exports;
    if (bytes.length > this.room) {
      const room = Math.max(WINDOW, bytes.length);
      const larger = this.core.check(x.bz_wasm_alloc(room));
      x.bz_wasm_free(this.bytes);
      this.bytes = larger;
      this.room = room;
    }
    new Uint8Array(this.core.memory.buffer, this.bytes, bytes.length).set(bytes);
    this.core.checkNumber(x.bz_wasm_gpu_upload_give(this.engine, this.at(slot), this.bytes));
    this.gpu.check();
  }

  /** Wait when the device is more than two rounds behind. */
  private async bound(n: number, aborted: Promise<never>): Promise<void> {
    this.queued += n;
    if (this.queued < QUEUED) return;
    this.queued = 0;
    const before = this.kept;
    this.kept = this.gpu.device.queue.onSubmittedWorkDone();
    this.kept.catch(() => {}); // a lost device speaks through check()
    await Promise.race([before, aborted]);
    this.gpu.check();
  }
}
