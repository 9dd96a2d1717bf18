// gpu - the imports of src/gpu/gpu.h over a WebGPU device.
//
// The core holds numbers; here are the objects behind them. Nothing in the imports waits: pipelines
// compile in the background, and what goes wrong (memory, validation, a lost device) is kept until
// the host asks with ready() or check(). A program is recorded once, and gpu_queue replays it. Bind
// groups are kept by the slice of parameters that each begins with, since most programs are
// recorded anew with the buffers of the one before.

import type { Device } from './adapter.js';
import { Compiler } from './gpu_compiler.js';
import { isMade, Program, type Buffer, type Group, type Pipeline } from './gpu_program.js';
import { GpuQueue, type Items } from './gpu_queue.js';
import { Table } from './gpu_table.js';
import {
  GPU_BINDING, GPU_CONSTANT_BYTES, readGpuConstant, RECORD_SLICE, USAGE, writeAdapterNames,
  writeLimits, type GpuImports,
} from '../engine/boundary.js';
import { nextTurn } from '../engine/turns.js';
import type { Core } from '../engine/wasm.js';

// GPUBufferUsage
const MAP_READ = 0x1, MAP_WRITE = 0x2, COPY_SRC = 0x4, COPY_DST = 0x8, UNIFORM = 0x40;
const STORAGE = 0x80;
const PARAMS = COPY_DST | UNIFORM | COPY_SRC;

/** How the fault of a device without room begins. */
export const NO_MEMORY = 'out of graphics memory';

const KEPT = 16; // buffers of parameters that wait until they are needed
// of one slice: programs of other kinds, or of several buffers, come to it in turn
const KEPT_GROUPS = 4;
// a struct gpu_binding in words, and where its fields are
const BINDING = GPU_BINDING.sizeof / 4, BUFFER = GPU_BINDING.buffer / 4;
const OFFSET = GPU_BINDING.offset / 4, SIZE = GPU_BINDING.size / 4;
// milliseconds within which a device that gives nothing back says that it is lost
const LOST_SOON = 1000;

export class Gpu {
  readonly device: GPUDevice;
  readonly info: Device;
  /** The reason, once the device is lost. */
  readonly lost: Promise<string>;
  /** Bytes of all buffers now, planned ones as well, and the most that were ever made. */
  bytes = 0;
  peakBytes = 0;

  private core: Core | undefined;
  private readonly buffers = new Table<Buffer>();
  private planning = false;
  private readonly pipelines = new Table<Pipeline>();
  private readonly groups = new Table<GPUBindGroup>();
  // by the parameters' buffer and slice, newest first
  private kept = new WeakMap<GPUBuffer, Group[][]>();
  // of errors in the program that is recorded, where it makes something
  private scope: 'none' | 'due' | 'open' = 'none';
  private early = false; // does a program that is recorded begin at once?
  private readonly programs = new Table<Program>();
  private readonly compiler: Compiler;
  private readonly params: GPUBuffer[] = []; // of parameter blocks, not in use now
  private readonly compiling = new Set<Promise<void>>();
  private readonly unhurried = new Set<Promise<void>>(); // those that later() asked for
  private readonly scopes = new Set<Promise<void>>(); // errors of what was made
  private recording = new Program();
  /** Pipelines asked for so far, and those that are ready or refused; onCompiled is called when
   *  there is one more. */
  pipelinesAsked = 0;
  pipelinesDone = 0;
  onCompiled: (() => void) | undefined;
  private turn: Promise<unknown> = Promise.resolve();
  private refused: Map<number, string> | undefined; // while later() asks
  private patient = false; // the same
  private fault: Error | undefined;
  private refusals: Promise<GPUError | null>[] | undefined; // while hasRoom() makes buffers
  /** Did the device go away? Then nothing here works any more. */
  isLost = false;
  /** Whose position the step block holds: sessions on one device take turns. */
  stepOwner: unknown;
  private readonly queue: GpuQueue;

  constructor(info: Device) {
    this.info = info;
    this.device = info.device;
    this.compiler = new Compiler(info.device, this);
    this.queue = new GpuQueue(info.device, {
      program: (number) => this.programs.get(number),
      buffer: (number) => this.buffer(number),
      check: () => this.check(),
      watch: (what) => this.watch(what),
      notMapped: (cause) => this.notMapped(cause),
    });
    this.lost = info.device.lost.then((why) => {
      this.isLost = true;
      this.fault ??= new Error(`the graphics device was lost: ${why.message || why.reason}`);
      return this.fault.message;
    });
  }

  /** The module whose memory the imports read; set once, before its first call. */
  attach(core: Core): void {
    this.core = core;
  }

  /** Module "gpu" of the wasm's imports. After a fault they do nothing: the core unwinds
   *  undisturbed. */
  readonly imports = {
    limits: (out) => writeLimits(this.memory(), out, this.info.limits),
    adapter: (out) => writeAdapterNames(this.memory(), out, this.info.names),
    buffer_new: (n, usage) => this.newBuffer(n >>> 0, usage),
    buffer_free: (b) => this.freeBuffer(b),
    buffer_write: (b, offset, p, n) => {
      if (this.fault) return;
      this.device.queue.writeBuffer(this.buffer(b), offset >>> 0, this.memory(), p >>> 0, n >>> 0);
    },
    buffer_copy: (from, fromOffset, to, toOffset, n) => {
      if (this.fault) return;
      const encoder = this.device.createCommandEncoder();
      encoder.copyBufferToBuffer(
        this.buffer(from), fromOffset >>> 0, this.buffer(to), toOffset >>> 0, n >>> 0,
      );
      this.device.queue.submit([encoder.finish()]);
    },
    pipeline_new: (kernel, constants, n) => this.newPipeline(kernel, constants, n),
    group_new: (pipeline, bindings, n) => this.newGroup(pipeline, bindings, n),
    group_free: (g) => void this.groups.remove(g),
    program_begin: () => {
      this.recording = new Program();
      this.scope = 'due';
    },
    dispatch: (pipeline, group, x, y, z) => {
      if (this.fault) return;
      this.recording.pipelines.push(this.pipelines.get(pipeline));
      this.recording.groups.push(this.groups.get(group));
      this.recording.grid.push(x >>> 0, y >>> 0, z >>> 0);
    },
    copy: (from, fromOffset, to, toOffset, n) => {
      if (this.fault) return;
      this.recording.from.push(this.buffer(from));
      this.recording.to.push(this.buffer(to));
      this.recording.ranges.push(fromOffset >>> 0, toOffset >>> 0, n >>> 0);
      if (!this.recording.groups.length) this.recording.first++;
    },
    program_part: () => {
      if (!this.early || this.fault || !isMade(this.recording)) return;
      this.openScope();
      this.queue.begin(this.recording);
    },
    program_end: () => {
      if (this.scope === 'open') this.watch('a program');
      this.scope = 'none';
      return this.programs.add(this.recording);
    },
    program_free: (p) => void this.programs.remove(p),
  } satisfies GpuImports;

  // ---- what the host calls ----

  /** Wait until everything that was made so far is known to be good; throws the first fault.
   *  `all`: and what is for later. */
  async ready(all = false): Promise<void> {
    await Promise.all([...this.compiling, ...(all ? this.unhurried : []), ...this.scopes]);
    this.check();
  }

  /** The same, and for the pipelines of a program that later() asked for; false: one of them was
   *  refused. */
  async readyFor(program: number): Promise<boolean> {
    const { pipelines } = this.programs.get(program);
    for (const p of pipelines) p.hurry?.();
    // what fails is a fault
    await Promise.all([
      this.ready(), ...pipelines.map((p) => !p.made && p.compiled.catch(() => {})),
    ]);
    this.check();
    return pipelines.every((p) => p.made);
  }

  /** Only ready(true) waits for the pipelines that `ask` asks for. They are given to the compiler
   *  one a turn, so that others have theirs meanwhile; `patient`: each when the one before is done,
   *  since drivers compile one after the other, and somebody may need another soon. Kernels that do
   *  not compile are no fault: their numbers are put into `refused`, and why. */
  later<T>(refused: Map<number, string>, ask: () => T, patient = false): T {
    this.refused = refused;
    this.patient = patient;
    try {
      return ask();
    } finally {
      this.refused = undefined;
      this.patient = false;
    }
  }

  /** Wait for one pipeline, while others go on compiling; throws where it does not compile. */
  async compiledPipeline(number: number): Promise<void> {
    const pipeline = this.pipelines.get(number);
    await pipeline.compiled.catch(() => {}); // it is a fault
    this.check();
    if (!pipeline.made) throw new Error(pipeline.refusal);
  }

  /** The same, but for pipelines: they may go on compiling. */
  async made(): Promise<void> {
    await Promise.all(this.scopes);
    this.check();
  }

  /** Wait until the compiler has been given all that was asked for. */
  async handedOut(): Promise<void> {
    for (let last; last !== this.turn;) await (last = this.turn);
  }

  /** Buffers that `decide` asks for are only counted, until it returns; then those of them that are
   *  left are made. One that is written to is made at once. */
  planned<T>(decide: () => T): T {
    const before = new Set(this.unmade());
    try {
      return this.counted(decide);
    } finally {
      for (const b of this.unmade()) if (!before.has(b)) this.make(b);
    }
  }

  /** The same, but they are made when they are used, or by makeCounted(). */
  counted<T>(decide: () => T): T {
    this.planning = true;
    try {
      return decide();
    } finally {
      this.planning = false;
    }
  }

  /** Up to `most` of all that were counted, but for late ones; says whether none is left. */
  makeCounted(most: number): boolean {
    const left = this.unmade().filter((b) => !b.late);
    for (const b of left.slice(0, most)) this.make(b);
    return left.length <= most;
  }

  /** These that were counted are made when makeLate() is called. */
  postpone(buffers: readonly number[]): void {
    for (const b of buffers) this.buffers.get(b).late = true;
  }

  makeLate(buffers: readonly number[]): void {
    for (const b of buffers) this.make(this.buffers.get(b));
  }

  /** Says whether the device has room for all buffers that `make` makes. It is no fault where it
   *  has not: who asks goes on without, and frees them. */
  async hasRoom(make: () => void): Promise<boolean> {
    const refusals: Promise<GPUError | null>[] = (this.refusals = []);
    let all = true;
    try {
      make();
    } catch {
      all = false;
    } finally {
      this.refusals = undefined;
    }
    const told = await Promise.allSettled(refusals);
    return all && told.every((t) => t.status === 'fulfilled' && !t.value);
  }

  private unmade(): Buffer[] {
    return [...this.buffers.all()].filter((b) => !b.made);
  }

  /** Throw the first fault, if there was one. */
  check(): void {
    if (this.fault) throw this.fault;
  }

  /** A program that `record` records begins while it does. */
  beginning<T>(record: () => T): T {
    this.early = true;
    try {
      return record();
    } finally {
      this.early = false;
    }
  }

  /** Has a program begun that needs no waiting? Then nothing may be queued before it is run; else
   *  it is run from its start, once ready() was awaited. */
  begun(program: number): boolean {
    const p = this.programs.get(program);
    if (!isMade(p)) p.begun = 0;
    return p.begun > 0;
  }

  /** How many command buffers were submitted so far. */
  get submits(): number {
    return this.queue.submits;
  }

  /** How many dispatches a program has. */
  dispatches(program: number): number {
    return this.programs.get(program).groups.length;
  }

  /** A program's dispatches one by one, for whoever wants to time them. */
  listing(
    program: number,
  ): {
    kernel: string; pipeline: GPUComputePipeline; group: GPUBindGroup;
    grid: [number, number, number];
  }[] {
    const { pipelines, groups, grid } = this.programs.get(program);
    return groups.map((group, i) => {
      const { kernel, made } = pipelines[i] as Pipeline;
      return {
        kernel: kernel.name,
        pipeline: made as GPUComputePipeline,
        group,
        grid: [grid[3 * i] as number, grid[3 * i + 1] as number, grid[3 * i + 2] as number],
      };
    });
  }

  write(buffer: number, offset: number, data: Uint8Array | Uint32Array | Float32Array): void {
    this.device.queue.writeBuffer(
      this.buffer(buffer), offset, data.buffer as ArrayBuffer, data.byteOffset, data.byteLength,
    );
  }

  /** A buffer of the host's own that the core can name until unlend(): staging, to be mapped, or
   *  scratch on the device. It is not counted: it is gone before a session is there, or there is
   *  room for it (STAGED in upload.ts). */
  lend(kind: 'staging' | 'scratch', size: number): [number, GPUBuffer] {
    const b: Buffer = {
      size, usage: kind === 'staging' ? MAP_WRITE | COPY_SRC : STORAGE | COPY_DST, made: undefined,
    };
    const made = this.make(b);
    return [this.buffers.add(b), made];
  }

  /** The buffer stays the host's, to be destroyed. */
  unlend(number: number): void {
    this.buffers.remove(number);
  }

  /** Throw why a buffer could not be mapped: a lost device says more than it does. */
  async notMapped(cause: unknown): Promise<never> {
    await Promise.race([this.lost, new Promise((passed) => setTimeout(passed, LOST_SOON))]);
    this.check();
    throw new Error('the graphics device did not give back a buffer', { cause });
  }

  /** Queue programs (a pass for those in a row, but for their copies) and reads, in this order. The
   *  queueing is done when this returns; the promise waits for the bytes. ready() must have been
   *  awaited since the programs were recorded, or readyFor() each of them. All goes in one submit
   *  where a read is under way: then the device has work. Else it is idle, and begins while the
   *  rest is still encoded. */
  run(items: Items): Promise<void> {
    this.check();
    return this.queue.run(items);
  }

  /** Encode what run() will most likely be asked for next, while the device still has work: an
   *  answer that is looked at token by token then waits for the device alone. Something else may be
   *  asked for just as well. */
  prepare(items: Items): void {
    if (this.fault) this.queue.forgetPrepared();
    else this.queue.prepare(items);
  }

  submit(program: number): void {
    void this.run([program]);
  }

  /** Queue a program and bring bytes of a buffer as they are after it. */
  async submitRead(
    program: number, buffer: number, offset: number, into: Uint8Array,
  ): Promise<void> {
    await this.run([program, { buffer, offset, into }]);
  }

  /** Bring bytes of a buffer as they are after all that was queued. */
  async read(buffer: number, offset: number, into: Uint8Array): Promise<void> {
    await this.run([{ buffer, offset, into }]);
  }

  /** Wait until the device has done all that is queued now. */
  async done(): Promise<void> {
    this.check();
    await this.device.queue.onSubmittedWorkDone();
    this.check();
  }

  /** The fault, which is forgotten: for whoever gives up what caused it and goes on. A lost
   *  device stays lost. */
  takeFault(): Error | undefined {
    const fault = this.fault;
    if (!this.isLost) this.fault = undefined;
    return fault;
  }

  /** Free every object of a core that is gone, and forget its fault unless the device is lost. */
  reset(): void {
    this.queue.forgetPrepared();
    for (const b of this.buffers.all()) b.made?.destroy();
    for (const t of [this.buffers, this.pipelines, this.groups, this.programs]) t.clear();
    this.bytes = 0;
    if (!this.isLost) this.fault = undefined;
  }

  /** Free everything. The device itself goes too. */
  close(): void {
    this.reset();
    this.queue.close();
    for (const b of this.params) b.destroy();
    this.device.destroy();
  }

  // ---- making ----

  private memory(): ArrayBuffer {
    if (!this.core) throw new Error('the GPU is not attached to a module');
    return this.core.memory.buffer;
  }

  fail(why: string): void {
    this.fault ??= new Error(why);
    this.kept = new WeakMap(); // one of them may be what was wrong
  }

  /** Keep a promise until it is settled; its failure becomes the fault. */
  private wait(work: Promise<void>, among: Set<Promise<void>>): void {
    const kept: Promise<void> = work
      .catch((e: unknown) => this.fail(e instanceof Error ? e.message : String(e)))
      .finally(() => among.delete(kept));
    among.add(kept);
  }

  /** Close the innermost error scope; an error in it becomes the fault, with the thing's name. */
  private watch(what: string): void {
    const popped = this.device.popErrorScope();
    if (this.refusals) this.refusals.push(popped);
    else this.wait(popped.then((error) => {
      // bind groups bear their kernel's name
      if (error)
        this.fail(`${/"(kernel [^"]+)"/.exec(error.message)?.[1] ?? what}: ${error.message}`);
    }), this.scopes);
  }

  private newBuffer(n: number, usage: number): number {
    if (this.fault) return 0;
    const size = Math.max(4, Math.ceil(n / 4) * 4);
    if (!this.planning && this.bytes + size > this.info.maxTotal) {
      this.fail(`${NO_MEMORY}: ${size} bytes more than the ${this.bytes} in use`);
      return 0;
    }
    let flags = COPY_DST;
    if (usage & USAGE.readback) flags |= MAP_READ;
    if (usage & USAGE.storage) flags |= STORAGE | COPY_SRC;
    if (usage & USAGE.uniform) flags |= UNIFORM | COPY_SRC;
    const b: Buffer = {
      size,
      usage: flags,
      made: flags === PARAMS && size === this.params.at(-1)?.size ? this.params.pop() : undefined,
    };
    this.bytes += size;
    if (!this.planning && !b.made) this.make(b);
    return this.buffers.add(b);
  }

  private make(b: Buffer): GPUBuffer {
    const { size, usage } = b;
    this.device.pushErrorScope('out-of-memory');
    this.device.pushErrorScope('validation');
    try {
      return (b.made = this.device.createBuffer({ size, usage })); // which throws without memory
    } finally {
      this.watch(`a buffer of ${size} bytes`);
      this.watch(`${NO_MEMORY}: ${size} bytes`);
      if (!this.planning) this.peakBytes = Math.max(this.peakBytes, this.bytes);
    }
  }

  private buffer(b: number): GPUBuffer {
    const known = this.buffers.get(b);
    return known.made ?? this.make(known);
  }

  private freeBuffer(b: number): void {
    const buffer = this.buffers.remove(b);
    if (!buffer) return;
    this.bytes -= buffer.size;
    // with the groups that begin there
    if (buffer.made && buffer.usage === PARAMS && this.params.length < KEPT)
      this.params.push(buffer.made);
    else buffer.made?.destroy();
  }

  private newPipeline(number: number, constants: number, n: number): number {
    if (this.fault) return 0;
    const kernel = (this.core as Core).kernel(number);
    const [layout, pipelineLayout] = this.compiler.layoutOf(kernel);
    const values: Record<string, number> = {};
    for (let i = 0; i < n; i++) {
      const { index, value } = readGpuConstant(this.memory(), constants + i * GPU_CONSTANT_BYTES);
      const name = kernel.overrides[index];
      if (name === undefined) throw new Error(`kernel ${kernel.name}: no such override`);
      values[name] = value;
    }
    if (kernel.source.includes('override SMALLEST')) {
      values['SMALLEST'] = this.info.limits.subgroupMin;
      values['GREATEST'] = this.info.limits.subgroupMax;
    }
    const pipeline: Pipeline = {
      kernel, number, layout, made: undefined, refusal: undefined, compiled: Promise.resolve(),
    };
    this.pipelinesAsked++;
    this.wait(
      (pipeline.compiled = this.compile(pipeline, pipelineLayout, values)),
      this.refused ? this.unhurried : this.compiling,
    );
    return this.pipelines.add(pipeline);
  }

  private async compile(
    pipeline: Pipeline, layout: GPUPipelineLayout, constants: Record<string, number>,
  ): Promise<void> {
    const { refused } = this;
    if (refused) await this.turnOf(pipeline);
    try {
      pipeline.made = await this.compiler.pipeline(pipeline.kernel, layout, constants);
    } catch (e) {
      if (!refused) throw e;
      refused.set(pipeline.number, (pipeline.refusal = (e as Error).message));
    } finally {
      this.pipelinesDone++;
      this.onCompiled?.();
    }
  }

  /** When a pipeline that later() asked for is given to the compiler. */
  private turnOf(pipeline: Pipeline): Promise<unknown> {
    const turn = this.turn.then(nextTurn);
    this.turn = this.patient ? turn.then(() => pipeline.compiled.catch(() => {})) : turn;
    return Promise.race([turn, new Promise<void>((now) => (pipeline.hurry = now))]);
  }

  private newGroup(pipeline: number, bindings: number, n: number): number {
    if (this.fault) return 0;
    const of = this.pipelines.get(pipeline);
    const view = new Uint32Array(this.memory(), bindings, BINDING * n);
    const params = this.buffer(view[BUFFER] as number);
    const slice = (view[OFFSET] as number) / RECORD_SLICE;
    let slices = this.kept.get(params);
    if (!slices) this.kept.set(params, (slices = []));
    const kept = (slices[slice] ??= []);
    let group = kept.find((g) => this.matches(g, of, view));
    if (!group) {
      kept.unshift((group = this.makeGroup(of, view)));
      kept.length = Math.min(kept.length, KEPT_GROUPS);
    }
    return this.groups.add(group.made);
  }

  private matches({ pipeline, buffers, ranges }: Group, of: Pipeline, view: Uint32Array): boolean {
    if (pipeline !== of) return false;
    for (let i = 0; i < buffers.length; i++)
      if (this.buffer(view[BINDING * i + BUFFER] as number) !== buffers[i]
        || view[BINDING * i + OFFSET] !== ranges[2 * i]
        || view[BINDING * i + SIZE] !== ranges[2 * i + 1])
        return false;
    return true;
  }

  /** One for all of a program that is recorded: one for each of its groups would take longer
   *  than they do. */
  private openScope(): void {
    if (this.scope !== 'due') return;
    this.device.pushErrorScope('validation');
    this.scope = 'open';
  }

  private makeGroup(pipeline: Pipeline, view: Uint32Array): Group {
    const buffers: GPUBuffer[] = [], ranges: number[] = [], entries: GPUBindGroupEntry[] = [];
    for (let i = 0; BINDING * i < view.length; i++) {
      const buffer = this.buffer(view[BINDING * i + BUFFER] as number);
      const offset = view[BINDING * i + OFFSET] as number;
      const size = view[BINDING * i + SIZE] as number;
      buffers.push(buffer);
      ranges.push(offset, size);
      entries.push({ binding: i, resource: { buffer, offset, ...(size && { size }) } });
    }
    this.openScope();
    return {
      pipeline,
      buffers,
      ranges,
      made: this.device.createBindGroup({
        label: `kernel ${pipeline.kernel.name}`, layout: pipeline.layout, entries,
      }),
    };
  }
}
