// gpu_queue - programs and reads on their way to the device, and bytes on their way back.
//
// It owns command encoders, staging buffers and what was encoded ahead; replaying makes no object
// of ours. Numbers are looked up with whoever holds the objects, who also hears of faults.

import { copy, replay, type Program } from './gpu_program.js';

const MAP_READ = 0x1, COPY_DST = 0x8; // GPUBufferUsage
const READ_MODE = 0x1; // GPUMapMode

/** Bytes of a buffer on their way back, as they are at this point of the queue; multiples of 4. */
export interface Read {
  readonly buffer: number;
  readonly offset: number;
  readonly into: Uint8Array;
}

/** Programs by number, and reads, in the order in which the device does them. */
export type Items = readonly (number | Read)[];

/** Who holds the objects behind the numbers. */
export interface Holder {
  program(number: number): Program;
  buffer(number: number): GPUBuffer;
  /** Throw the first fault, if there was one. */
  check(): void;
  /** Close the innermost error scope; an error in it becomes the fault, with the thing's name. */
  watch(what: string): void;
  /** Throw why a buffer could not be mapped. */
  notMapped(cause: unknown): Promise<never>;
}

/** A staging buffer that is mapped for one read at a time. */
interface Staging {
  readonly buffer: GPUBuffer;
  readonly size: number;
}

/** A run that was encoded before it is asked for. */
interface Prepared {
  readonly items: Items;
  readonly programs: readonly Program[];
  readonly commands: readonly GPUCommandBuffer[];
  readonly waiting: readonly [Read, Staging][];
}

const SMALL = 1024; // bytes of the staging buffers that tokens come back through
const KEPT = 16, KEPT_LARGE = 4; // staging buffers that wait until they are needed
// dispatches that an idle device is given first; each part after it is twice as long
const FIRST_PART = 16;

export class GpuQueue {
  /** How many command buffers were submitted so far. */
  submits = 0;
  private reading = 0; // reads under way
  private readonly small: Staging[] = []; // not in use now, like those below
  private readonly large: Staging[] = [];
  private readonly one: GPUCommandBuffer[] = []; // the argument of queue.submit
  private prepared: Prepared | undefined;

  constructor(private readonly device: GPUDevice, private readonly holder: Holder) {}

  /** See Gpu.run(). */
  run(items: Items): Promise<void> {
    const prepared = this.takePrepared(items);
    if (prepared) {
      for (const commands of prepared.commands) this.submit(commands);
      return this.bringAll(prepared.waiting);
    }
    const fresh =
      items.some((item) => typeof item === 'number' && !this.holder.program(item).submitted);
    if (fresh) this.device.pushErrorScope('validation');
    const waiting =
      this.encode(items, this.reading ? Infinity : FIRST_PART, (commands) => this.submit(commands));
    if (fresh) this.holder.watch('a program');
    return this.bringAll(waiting);
  }

  /** See Gpu.prepare(). */
  prepare(items: Items): void {
    this.forgetPrepared();
    const programs = this.programsOf(items);
    if (programs.some((p) => !p.submitted || p.begun > 0)) return;
    const commands: GPUCommandBuffer[] = [];
    const waiting = this.encode(items, FIRST_PART, (some) => commands.push(some));
    this.prepared = { items: [...items], programs, commands, waiting };
  }

  /** Submit the dispatches that a program has by now: the others are still recorded. */
  begin(p: Program): void {
    const end = p.groups.length, encoder = this.device.createCommandEncoder();
    const pass = encoder.beginComputePass();
    replay(pass, p, p.begun, end);
    pass.end();
    this.submit(encoder.finish());
    p.begun = end;
  }

  forgetPrepared(): void {
    for (const [, staging] of this.prepared?.waiting ?? []) this.keepStaging(staging);
    this.prepared = undefined;
  }

  /** Free everything. */
  close(): void {
    this.forgetPrepared();
    for (const { buffer } of [...this.small.splice(0), ...this.large.splice(0)]) buffer.destroy();
  }

  private programsOf(items: Items): Program[] {
    return items.flatMap((item) => (typeof item === 'number' ? [this.holder.program(item)] : []));
  }

  /** Programs and reads as commands; `give` gets them in parts, the first of `part` dispatches,
   *  each other one twice as long as the one before. */
  private encode(
    items: Items, part: number, give: (commands: GPUCommandBuffer) => void,
  ): [Read, Staging][] {
    let encoder = this.device.createCommandEncoder(), pass: GPUComputePassEncoder | undefined;
    let room = part;
    const waiting: [Read, Staging][] = [];
    for (const item of items) {
      if (typeof item === 'number') {
        const p = this.holder.program(item);
        p.submitted = true; // what passed once passes again
        if (p.begun) room = part = Infinity; // that is work
        if (p.first) {
          pass?.end();
          pass = undefined;
          copy(encoder, p, 0, p.first);
        }
        for (let at = p.begun; at < p.groups.length;) {
          if (room === 0) {
            pass?.end();
            pass = undefined;
            give(encoder.finish());
            encoder = this.device.createCommandEncoder();
            room = part *= 2;
          }
          const end = Math.min(p.groups.length, at + room);
          replay((pass ??= encoder.beginComputePass()), p, at, end);
          room -= end - at;
          at = end;
        }
        p.begun = 0;
        if (p.from.length === p.first) continue;
        pass?.end();
        pass = undefined;
        copy(encoder, p, p.first, p.from.length);
      } else {
        pass?.end();
        pass = undefined;
        const staging = this.takeStaging(item.into.byteLength);
        encoder.copyBufferToBuffer(
          this.holder.buffer(item.buffer), item.offset, staging.buffer, 0, item.into.byteLength,
        );
        waiting.push([item, staging]);
      }
    }
    pass?.end();
    give(encoder.finish());
    return waiting;
  }

  /** What was prepared, if it is this: the same reads, and programs that were not recorded anew
   *  meanwhile. */
  private takePrepared(items: Items): Prepared | undefined {
    const { prepared } = this;
    if (!prepared) return undefined;
    const programs = this.programsOf(items);
    if (prepared.items.length === items.length
      && prepared.items.every((item, i) => item === items[i])
      && prepared.programs.every((p, i) => p === programs[i])) {
      this.prepared = undefined;
      return prepared;
    }
    this.forgetPrepared();
    return undefined;
  }

  private submit(commands: GPUCommandBuffer): void {
    this.submits++;
    this.one[0] = commands;
    this.device.queue.submit(this.one);
  }

  private bringAll(waiting: readonly [Read, Staging][]): Promise<void> {
    const [first] = waiting;
    if (!first) return Promise.resolve();
    return waiting.length === 1
      ? this.bring(first[0], first[1])
      : Promise.all(
        waiting.map(([read, staging]) => this.bring(read, staging)),
      ).then(() => undefined);
  }

  private async bring({ into }: Read, staging: Staging): Promise<void> {
    const n = into.byteLength;
    this.reading++;
    try {
      await staging.buffer.mapAsync(READ_MODE, 0, n).finally(() => this.reading--);
    } catch (cause) {
      await this.holder.notMapped(cause);
    }
    into.set(new Uint8Array(staging.buffer.getMappedRange(0, n)));
    staging.buffer.unmap();
    this.keepStaging(staging);
    this.holder.check();
  }

  private takeStaging(n: number): Staging {
    const pool = n <= SMALL ? this.small : this.large;
    const at = pool.findIndex((s) => s.size >= n);
    const [ready] = at < 0 ? [] : pool.splice(at, 1);
    if (ready) return ready;
    pool.pop()?.buffer.destroy(); // it was too small, and makes room for this one
    const size = Math.max(SMALL, 2 ** Math.ceil(Math.log2(n)));
    return {
      size,
      buffer: this.device.createBuffer({ label: 'read-back', size, usage: MAP_READ | COPY_DST }),
    };
  }

  private keepStaging(staging: Staging): void {
    const [pool, most] = staging.size === SMALL ? [this.small, KEPT] : [this.large, KEPT_LARGE];
    if (pool.length < most) pool.push(staging);
    else staging.buffer.destroy();
  }
}
