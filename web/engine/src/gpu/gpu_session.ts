// gpu_session - a conversation with an engine whose weights are on the GPU.
//
// The core records programs; this file submits them: prompts in batches, snapshots, and texts,
// whose tokens gpu_decoder.ts draws. What the device has computed past the last token of the core's
// session does not count.

import {
  FIRST_HORIZON, HOST_RANGE_BYTES, KV_DIGEST, LOGIT_ROWS, readHostRange, RESERVE, STOP,
  type Exports, type GenerationPtr, type ProgramPtr, type SessionPtr, type Stop,
} from '../engine/boundary.js';
import { optionsJson, type GenerateOptions } from '../engine/cpu_engine.js';
import { GpuCanvas, type Begun } from './gpu_canvas.js';
import { GpuDecoder } from './gpu_decoder.js';
import type { GpuEngine } from './gpu_engine.js';
import type { Read } from './gpu_queue.js';
import { Logprobs } from '../engine/logprobs.js';
import type { CanvasStep, Piece, ReadOptions, StepProfile } from '../engine/model.js';
import { profile } from './profile.js';
import { memorySource } from '../load/source.js';
import { stopped } from '../engine/turns.js';
import { BezelError } from '../engine/wasm.js';

const LOGITS_AHEAD = 4; // tokens on their way at most, where each brings its logits
// tokens whose rows, one by one, take as long as a table that is on its way (0.2 ms each in Node,
// 0.07 when nothing else is read): who reads more waits for it
const MANY = 2048;
const SAVE_WINDOW = 4 << 20; // bytes of a snapshot that come back in one read
const SAVE_READS = 8; // reads under way at a time

/** Which of the decode programs is for a step at `position`. */
const historyOf = (position: number): number =>
  Math.max(0, Math.ceil(Math.log2((position + 1) / FIRST_HORIZON)));

function joined(a: Int32Array, b: Int32Array): Int32Array {
  const all = new Int32Array(a.length + b.length);
  all.set(a);
  all.set(b, a.length);
  return all;
}

/** A recorded program, for as long as the engine's adapters stay as they were, and its table
 *  where it was. */
export interface Recorded {
  readonly ptr: ProgramPtr;
  readonly number: number;
  readonly adapted: number;
}

export interface DrawOptions extends GenerateOptions {
  signal?: AbortSignal;
  /** With this many alternatives. */
  logprobs?: number;
  /** Of the tokens that the session ends with, so many are this text's: it goes on after them. */
  resumed?: number;
  /** Tokens on their way at most; 1: each is read before the next is begun; absent: what suits
   *  the device. */
  ahead?: number;
}

export class GpuSession {
  readonly context: number;
  readonly batch: number;
  private p: SessionPtr;
  private readonly decodes: (Recorded | undefined)[] = []; // one token, by historyOf() its position
  private whole: Recorded | undefined; // a batch whose logits nobody wants
  private readonly canvas: GpuCanvas | undefined; // of a diffusion model
  /** The last token, where it was drawn and no step has read it: the core's session is without it.
   *  Whoever goes on reads it first. */
  unread: number | undefined;

  /** Made by GpuEngine.session. */
  constructor(readonly engine: GpuEngine, p: SessionPtr, batch: number) {
    this.p = p;
    this.context = this.x.bz_wasm_session_context(p);
    this.batch = Math.min(batch, this.context);
    this.canvas = engine.info.n_canvas ? new GpuCanvas(this) : undefined;
  }

  private get x(): Exports {
    return this.engine.core.exports;
  }

  /** Names the engine's adapters and their scales, and whether a table is in the file (then it is
   *  negative): programs recorded with others must not be submitted. */
  get adapted(): number {
    const adapted = this.x.bz_wasm_adapted(this.engine.ptr);
    return this.engine.needsRows ? -1 - adapted : adapted;
  }

  get ptr(): SessionPtr {
    if (!this.p) throw new BezelError('this session is closed', 'argument');
    return this.p;
  }

  close(): void {
    if (!this.p) return;
    for (const program of [...this.decodes, this.whole]) this.forget(program);
    this.canvas?.close();
    this.x.bz_wasm_session_close(this.p);
    this.engine.forget(this.p);
    this.p = 0 as SessionPtr;
  }

  /** How many tokens have been read, or are about to be. */
  get position(): number {
    return this.x.bz_wasm_session_length(this.ptr);
  }

  /** How many tokens the session holds. */
  get length(): number {
    return this.position + +(this.unread !== undefined);
  }

  get tokens(): Int32Array {
    this.x.bz_wasm_session_tokens(this.ptr);
    const read = this.engine.core.resultIds();
    return this.unread === undefined ? read : joined(read, Int32Array.of(this.unread));
  }

  /** Bytes of keys and values. */
  get cacheBytes(): number {
    return this.x.bz_wasm_session_cache_bytes(this.ptr);
  }

  /** Keep the first n tokens; says how many remain (n, or 0 when they must be read again). */
  truncate(n: number): number {
    if (this.unread !== undefined && n === this.length) return n;
    const left = this.engine.core.checkNumber(this.x.bz_wasm_session_truncate(this.ptr, n));
    this.unread = undefined;
    return left;
  }

  /** Keep the longest beginning of `ids` that is there; the rest must be read, so that it ends
   *  in logits. */
  keep(ids: Int32Array): number {
    const { core } = this.engine;
    const kept =
      core.with(ids, (p, n) => core.checkNumber(this.x.bz_wasm_session_keep(this.ptr, p, n)));
    this.unread = undefined;
    return kept;
  }

  // ---- programs ----

  forget(program: Recorded | undefined): void {
    if (program) this.x.bz_wasm_gpu_program_free(program.ptr);
  }

  private recordNow(make: () => ProgramPtr): Recorded {
    this.engine.soon();
    const { adapted } = this, ptr = this.engine.core.check(make());
    return { ptr, number: this.x.bz_wasm_gpu_program_number(ptr), adapted };
  }

  /** Record a program and wait until it can be submitted, and for what else it needs; again, should
   *  adapters change meanwhile, the table come, or a kernel that nobody had to wait for give way to
   *  another. */
  async record(
    make: () => ProgramPtr,
    {
      made = this.recordNow(make), needs, signal,
    }: { made?: Recorded; needs?: Promise<void>; signal?: AbortSignal | undefined } = {},
  ): Promise<Recorded> {
    for (;;) {
      // both: what is needed still uses the session
      const [there, needed] =
        await Promise.allSettled([this.engine.gpu.readyFor(made.number), needs]);
      if (there.status === 'fulfilled' && needed.status === 'fulfilled' && there.value
        && made.adapted === this.adapted)
        return made;
      this.forget(made);
      for (const one of [there, needed]) if (one.status === 'rejected') throw one.reason;
      if (there.status === 'fulfilled' && !there.value) {
        // and nothing takes its place
        if (this.engine.validation.done)
          throw new BezelError('a kernel of this step does not compile', 'device');
        await this.engine.validation.upTo(RESERVE.rest, signal);
      }
      made = this.recordNow(make);
    }
  }

  /** The number of the decode program for a step at `position`, unless it has to be recorded. */
  knownDecodeProgram(position: number): number | undefined {
    const decode = this.decodes[historyOf(position)];
    return decode && decode.adapted === this.adapted ? decode.number : undefined;
  }

  /** The number of the decode program for a step at `position`; recorded (then it is a promise)
   *  where the history is longer than any before, or adapters have changed. */
  decodeProgram(position: number, signal?: AbortSignal): number | Promise<number> {
    return this.knownDecodeProgram(position) ?? this.recordDecode(historyOf(position), signal);
  }

  private async recordDecode(history: number, signal: AbortSignal | undefined): Promise<number> {
    const horizon = FIRST_HORIZON * 2 ** history;
    for (let group; (group = this.engine.awaits(this.ptr, 1, 1, horizon));)
      await this.engine.validation.upTo(group, signal);
    const made =
      await this.record(() => this.x.bz_wasm_gpu_record(this.ptr, 1, 1, horizon), { signal });
    this.decodes.forEach((one, i) => {
      if (i !== history && one?.adapted === made.adapted) return;
      this.forget(one);
      this.decodes[i] = undefined;
    });
    this.decodes[history] = made;
    this.engine.stepped = made.adapted;
    if (horizon < this.context) this.engine.expect(this.ptr, 2 * horizon);
    return made.number;
  }

  // ---- reading ----

  /** What is to be read next, with the unread token before it. */
  private withUnread(ids: Int32Array): Int32Array {
    return this.unread === undefined ? ids : joined(Int32Array.of(this.unread), ids);
  }

  private async readUnread(): Promise<void> {
    if (this.unread !== undefined) await this.read(new Int32Array(0));
  }

  /** What is queued next reads these tokens. */
  private input(ids: Int32Array): true {
    const { core, gpu } = this.engine;
    core.with(ids, (p, n) => core.checkNumber(this.x.bz_wasm_gpu_read(this.ptr, p, n)));
    gpu.stepOwner = this;
    return true;
  }

  /** Queue reading `ids` (a batch at most); reads see the logits of its last rows. Without
   *  `advance` the session does not have them yet. */
  async readBatch(
    ids: Int32Array,
    nLogits: number,
    {
      read, signal, advance = true,
    }: { read?: Read; signal?: AbortSignal | undefined; advance?: boolean } = {},
  ): Promise<void> {
    const { core, gpu } = this.engine;
    const quiet = nLogits === 0 && ids.length === this.batch;
    const horizon = quiet ? this.context : this.position + ids.length;
    if (this.engine.needsRows) await this.engine.gatherRows(this.ptr, ids);
    for (let group; (group = this.engine.awaits(this.ptr, ids.length, nLogits, horizon));)
      await this.engine.validation.upTo(group, signal);
    let program = quiet && this.whole?.adapted === this.adapted ? this.whole : undefined;
    let given: boolean = this.input(ids);
    if (!program) {
      const make = (): ProgramPtr =>
        this.x.bz_wasm_gpu_record(this.ptr, ids.length, nLogits, horizon);
      program = gpu.beginning(() => this.recordNow(make));
      if (!gpu.begun(program.number)) {
        // a part may have run, and changed them in place
        program = await this.record(make, {
          made: program, needs: this.engine.gatherRows(this.ptr, ids), signal,
        });
        given = false; // others may have had their turn
      }
    }
    if (quiet && program !== this.whole) {
      this.forget(this.whole);
      this.whole = program;
    }
    try {
      if (!given) this.input(ids);
      if (advance)
        core.with(ids, (p, n) =>
          core.checkNumber(this.x.bz_wasm_gpu_advance(this.ptr, p, n, +(nLogits === 1))));
      this.unread = undefined; // it was the first of them
      const brought = gpu.run(read ? [program.number, read] : [program.number]);
      if (read) await brought;
    } finally {
      if (!quiet) this.forget(program);
    }
  }

  /** Append tokens, so that the next one can be drawn, or a canvas denoised: the last batch is
   *  under way then, and what follows is queued behind it. A signal, or a failure, leaves the
   *  tokens that were read. */
  async read(ids: Int32Array, { signal, onProgress, between }: ReadOptions = {}): Promise<void> {
    let before: Promise<void> | undefined;
    ids = this.withUnread(ids);
    if (ids.length > MANY) await this.engine.tableSettled(signal);
    for (let at = 0; at < ids.length;) {
      await between?.();
      if (signal?.aborted) throw stopped(signal);
      const end = Math.min(ids.length, at + this.batch);
      const nLogits = end === ids.length && !this.canvas ? 1 : 0;
      await this.readBatch(ids.subarray(at, end), nLogits, { signal });
      const done = end < ids.length ? this.engine.gpu.done() : undefined;
      done?.catch(() => undefined); // it is awaited below, or the next step fails alike
      await before; // two batches are queued at most, so that a signal is heard
      before = done;
      onProgress?.(at, ids.length);
      at = end;
    }
    onProgress?.(ids.length, ids.length);
  }

  /** Append tokens; onLogits sees the logits of the last `wanted` of them. */
  async feed(
    ids: Int32Array,
    wanted = 0,
    onLogits?: (position: number, logits: Float32Array) => void,
    between?: ReadOptions['between'],
  ): Promise<void> {
    const asked = Math.min(wanted, ids.length);
    ids = this.withUnread(ids);
    const start = this.position, quiet = ids.length - asked, n = this.engine.info.n_vocab;
    if (ids.length > MANY) await this.engine.tableSettled();
    for (let at = 0; at < quiet; at += this.batch)
      await this.readBatch(ids.subarray(at, Math.min(quiet, at + this.batch)), 0);
    const most = Math.min(LOGIT_ROWS, this.batch);
    for (let at = quiet; at < ids.length; at += most) {
      await between?.();
      const part = ids.subarray(at, Math.min(ids.length, at + most));
      const rows = new Float32Array(part.length * n);
      await this.readBatch(part, part.length, {
        read: {
          buffer: this.x.bz_wasm_gpu_logits_buffer(this.ptr),
          offset: 0,
          into: new Uint8Array(rows.buffer),
        },
      });
      for (let i = 0; i < part.length; i++)
        onLogits?.(start + at + i, rows.subarray(i * n, (i + 1) * n));
    }
  }

  /** Append tokens and draw one, dispatch by dispatch where `timed`. Truncate to 0 afterwards. Of a
   *  diffusion model: append several, or, for a single one, a step of the canvas instead. */
  async profile(ids: Int32Array, timed: boolean): Promise<StepProfile> {
    const { core, gpu } = this.engine;
    await this.engine.whole(); // which would come in between
    await this.readUnread();
    if (this.canvas && ids.length === 1) return this.canvas.profile(timed);
    if (this.canvas) return this.profileRead(ids, timed);
    const draw = core.with('{"temperature":0}', (p, n) =>
      core.check(this.x.bz_wasm_gpu_draw_open(this.ptr, p, n)));
    const programs: Recorded[] = [];
    try {
      if (this.engine.needsRows) await this.engine.gatherRows(this.ptr, ids);
      programs.push(await this.record(() =>
        this.x.bz_wasm_gpu_record(this.ptr, ids.length, 1, this.position + ids.length)));
      programs.push(await this.record(() => this.x.bz_wasm_gpu_record_draw(this.ptr, draw, 0)));
      this.input(ids);
      core.with(ids, (p, n) => core.checkNumber(this.x.bz_wasm_gpu_advance(this.ptr, p, n, 0)));
      const numbers = programs.map((p) => p.number);
      return {
        dispatches: numbers.reduce((sum, n) => sum + gpu.dispatches(n), 0),
        kernels: timed ? await profile(gpu, ...numbers) : [],
      };
    } finally {
      for (const program of programs) this.forget(program);
      this.x.bz_wasm_gpu_draw_close(draw);
    }
  }

  private async profileRead(ids: Int32Array, timed: boolean): Promise<StepProfile> {
    const { core, gpu } = this.engine;
    const program = await this.record(() =>
      this.x.bz_wasm_gpu_record(this.ptr, ids.length, 0, this.position + ids.length));
    try {
      this.input(ids);
      core.with(ids, (p, n) => core.checkNumber(this.x.bz_wasm_gpu_advance(this.ptr, p, n, 0)));
      return {
        dispatches: gpu.dispatches(program.number),
        kernels: timed ? await profile(gpu, program.number) : [],
      };
    } finally {
      this.forget(program);
    }
  }

  // ---- generating ----

  /** Go on from the last token, canvas by canvas: a diffusion model. */
  denoise(
    options: DrawOptions, begun: Begun,
  ): AsyncGenerator<CanvasStep, { stop: Stop }, void> {
    if (!this.canvas) throw new BezelError('this model has no canvas', 'argument');
    return this.canvas.denoise(options, begun);
  }

  /** Go on from the last token. Leave the loop, or use the signal, to stop; the session then holds
   *  exactly the tokens of the pieces that came out. */
  async *generate({
    signal,
    logprobs,
    resumed = 0,
    ahead = logprobs === undefined ? undefined : LOGITS_AHEAD,
    ...options
  }: DrawOptions = {}): AsyncGenerator<Piece, { stop: Stop }, void> {
    const { core } = this.engine;
    const json = optionsJson(logprobs === undefined ? options : { ...options, one_by_one: true });
    let text = 0 as GenerationPtr, decoder: GpuDecoder | undefined;
    try {
      await this.needLogits(signal);
      text = core.with(json, (p, n) => core.check(this.x.bz_wasm_generation_open(this.ptr, p, n)));
      core.checkNumber(this.x.bz_wasm_generation_resume(text, resumed));
      if (!this.x.bz_wasm_generation_has_room(text)) return { stop: this.stopOf(text) };
      decoder = await GpuDecoder.open(this, text, json, {
        ahead, signal,
        logits: logprobs !== undefined, constrained: options.constraint !== undefined,
      });
      for (let left = options.n_max ? options.n_max - resumed : Infinity; ; left--) {
        if (signal?.aborted) return { stop: 'cancelled' };
        const { id, text: more, over, logits } = await decoder.next(left);
        const piece: Piece = { id, text: more };
        if (logits && logprobs !== undefined) {
          const all = new Logprobs(logits);
          piece.logprob = all.of(id);
          piece.top = all.top(logprobs);
        }
        yield piece;
        this.engine.goOn();
        if (over) return { stop: this.stopOf(text) };
      }
    } catch (e) {
      if (signal?.aborted && e instanceof BezelError && e.kind === 'cancelled')
        return { stop: 'cancelled' };
      throw e;
    } finally {
      decoder?.close();
      if (text) this.x.bz_wasm_generation_close(text);
    }
  }

  private stopOf(text: GenerationPtr): Stop {
    return STOP[this.x.bz_wasm_generation_stop(text)] ?? 'end';
  }

  /** Logits are spoilt by a draw, and by steps that were queued ahead: then the last token is
   *  read again. */
  private async needLogits(signal: AbortSignal | undefined): Promise<void> {
    if (this.x.bz_wasm_session_logits(this.ptr)) return;
    const all = this.tokens;
    if (!all.length)
      throw new BezelError('feed at least one token before drawing the next', 'argument');
    await this.read(all.subarray(this.truncate(all.length - 1)), signal && { signal });
  }

  // ---- snapshots ----

  /** The core says which bytes of which buffers a snapshot is made of; they come back in
   *  windows. */
  async save(): Promise<Uint8Array> {
    const { core, gpu } = this.engine;
    await this.readUnread();
    core.checkNumber(this.x.bz_wasm_gpu_save(this.ptr));
    const plan = core.result(), [n = 0] = new Uint32Array(plan.buffer, 0, 1);
    const sections =
      Array.from({ length: n }, (_, i) => readHostRange(plan.buffer, 4 + i * HOST_RANGE_BYTES));
    const size = sections.reduce((sum, { nBytes }) => sum + nBytes, KV_DIGEST);
    const out = new Uint8Array(size), reads: Promise<void>[] = [];
    let at = 0, bytes = 4 + n * HOST_RANGE_BYTES;
    for (const { buffer, offset, nBytes } of sections) {
      if (!buffer) {
        out.set(plan.subarray(bytes, bytes + nBytes), at);
        bytes += nBytes;
      }
      for (let done = 0; buffer && done < nBytes; done += SAVE_WINDOW) {
        const into = out.subarray(at + done, at + Math.min(nBytes, done + SAVE_WINDOW));
        // queued now: later steps do not matter
        reads.push(gpu.run([{ buffer, offset: offset + done, into }]));
        if (reads.length >= SAVE_READS) await Promise.all(reads.splice(0));
      }
      at += nBytes;
    }
    await Promise.all(reads);
    core.withSource(memorySource('session snapshot', out), (id) =>
      core.checkNumber(this.x.bz_wasm_snapshot_digest(id, size - KV_DIGEST)));
    out.set(core.result(), size - KV_DIGEST);
    return out;
  }

  restore(data: Uint8Array): void {
    const { core } = this.engine;
    this.unread = undefined;
    core.withSource(memorySource('session snapshot', data), (id) =>
      core.checkNumber(this.x.bz_wasm_session_restore(this.ptr, id, data.length)));
  }
}
