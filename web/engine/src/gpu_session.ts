// gpu_session - conversations with an engine whose weights are on the GPU.
//
// The core records steps; this file submits the programs and reads tokens back. While text is generated
// several steps are queued ahead: the kernel that draws a token also moves the position on, so the device
// needs nothing from here between two tokens.

import type { DrawPtr, ProgramPtr, SessionPtr } from './wasm.js';
import { optionsJson, type GenerateOptions } from './cpu_engine.js';
import type { GpuEngine } from './gpu_engine.js';
import type { StepProfile } from './model.js';
import { profile } from './profile.js';

const NO_DRAW = 0 as DrawPtr;
const LOGIT_ROWS = 8; // rows of logits that one step can make

export class GpuSession {
  private decode = 0 as ProgramPtr;
  private horizon = 0; // positions that the decode program is shaped for

  constructor(readonly engine: GpuEngine, readonly ptr: SessionPtr, private readonly batch: number) {}

  private get x() {
    return this.engine.core.exports;
  }

  close(): void {
    this.forgetProgram();
    this.x.bz_wasm_session_close(this.ptr);
  }

  /** How many tokens the session holds. */
  get length(): number {
    return this.x.bz_wasm_session_length(this.ptr);
  }

  get tokens(): Int32Array {
    this.x.bz_wasm_session_tokens(this.ptr);
    return this.engine.core.resultIds();
  }

  /** The decode program for a step at `position`, recorded anew when the history has doubled. */
  private async decodeProgram(position: number, draw: DrawPtr): Promise<number> {
    if (position >= this.horizon) {
      this.forgetProgram();
      this.horizon = Math.max(256, 2 ** Math.ceil(Math.log2(position + 1)));
      this.decode = this.engine.core.check(this.x.bz_wasm_gpu_decode(this.ptr, this.horizon, draw));
      await this.engine.gpu.ready();
    }
    return this.x.bz_wasm_gpu_program_number(this.decode);
  }

  private forgetProgram(): void {
    if (this.decode) this.x.bz_wasm_gpu_program_free(this.decode);
    this.decode = 0 as ProgramPtr;
    this.horizon = 0;
  }

  /** Keep the first n tokens; says how many really remain (n, or 0 when they must be fed again). */
  truncate(n: number): number {
    return this.engine.core.checkNumber(this.x.bz_wasm_session_truncate(this.ptr, n));
  }

  /** Record reading `ids`, submit it, and free it again. */
  private async step(ids: Int32Array, nLogits: number, draw: DrawPtr, read?: [buffer: number, into: Uint8Array]): Promise<void> {
    const { core, gpu } = this.engine;
    const program = core.with(ids, (p, n) => core.check(this.x.bz_wasm_gpu_feed(this.ptr, p, n, nLogits, draw)));
    try {
      await gpu.ready();
      const number = this.x.bz_wasm_gpu_program_number(program);
      if (read) await gpu.submitRead(number, read[0], 0, read[1]);
      else gpu.submit(number);
    } finally {
      this.x.bz_wasm_gpu_program_free(program);
    }
  }

  /** Append tokens; onLogits sees the logits of the last `wanted` of them. */
  async feed(ids: Int32Array, wanted = 0, onLogits?: (position: number, logits: Float32Array) => void): Promise<void> {
    const start = this.length, quiet = Math.max(0, ids.length - wanted);
    const n = this.engine.info.n_vocab;
    for (let at = 0; at < quiet; at += this.batch) await this.step(ids.subarray(at, Math.min(quiet, at + this.batch)), 0, NO_DRAW);
    for (let at = quiet; at < ids.length; at += LOGIT_ROWS) {
      const part = ids.subarray(at, Math.min(ids.length, at + LOGIT_ROWS));
      const rows = new Float32Array(part.length * n);
      await this.step(part, part.length, NO_DRAW, [this.x.bz_wasm_gpu_logits_buffer(this.ptr), new Uint8Array(rows.buffer)]);
      for (let i = 0; i < part.length; i++) onLogits?.(start + at + i, rows.subarray(i * n, (i + 1) * n));
    }
  }

  /** Append tokens and draw one, dispatch by dispatch where `timed`. Truncate to 0 afterwards. */
  async profile(ids: Int32Array, timed: boolean): Promise<StepProfile> {
    const { core, gpu } = this.engine;
    const draw = core.with('{"temperature":0}', (p, n) => core.check(this.x.bz_wasm_gpu_draw_open(this.ptr, p, n)));
    let program = 0 as ProgramPtr;
    try {
      program = core.with(ids, (p, n) => core.check(this.x.bz_wasm_gpu_feed(this.ptr, p, n, 1, draw)));
      await gpu.ready();
      const number = this.x.bz_wasm_gpu_program_number(program);
      return { dispatches: gpu.dispatches(number), kernels: timed ? await profile(gpu, number) : [] };
    } finally {
      if (program) this.x.bz_wasm_gpu_program_free(program);
      this.x.bz_wasm_gpu_draw_close(draw);
    }
  }

  /** Append the prompt, then tokens drawn one after the other on the device, `ahead` of them in flight.
   *  Leave the loop to stop: what was computed past the last token taken is forgotten. */
  async *generate(prompt: Int32Array, options: GenerateOptions = {}, ahead = 4): AsyncGenerator<number, void, void> {
    const { core } = this.engine;
    const draw = core.with(optionsJson(options), (p, n) => core.check(this.x.bz_wasm_gpu_draw_open(this.ptr, p, n)));
    try {
      yield* this.drawn(prompt, draw, ahead);
    } finally {
      this.forgetProgram(); // it binds the buffers of this way of drawing
      this.x.bz_wasm_gpu_draw_close(draw);
    }
  }

  private async *drawn(prompt: Int32Array, draw: DrawPtr, ahead: number): AsyncGenerator<number, void, void> {
    const { core, gpu } = this.engine;
    const ids = this.x.bz_wasm_gpu_ids_buffer(this.ptr);
    const last = (prompt.length - 1) - (prompt.length - 1) % this.batch;
    for (let at = 0; at < last; at += this.batch) await this.step(prompt.subarray(at, at + this.batch), 0, NO_DRAW);
    const first = new Int32Array(1);
    await this.step(prompt.subarray(last), 1, draw, [ids, new Uint8Array(first.buffer)]);
    let token = first[0]!;
    yield token;
    core.checkNumber(this.x.bz_wasm_gpu_resume(this.ptr, token, draw));
    const flight: { into: Int32Array; done: Promise<void> }[] = [];
    try {
      for (;;) {
        while (flight.length < ahead && this.x.bz_wasm_gpu_ahead(this.ptr, flight.length + 1) === 0) {
          const into = new Int32Array(1);
          const number = await this.decodeProgram(this.length + flight.length, draw);
          flight.push({ into, done: gpu.submitRead(number, ids, 0, new Uint8Array(into.buffer)) });
        }
        const next = flight.shift();
        if (!next) return; // the context is full
        await next.done;
        core.checkNumber(this.x.bz_wasm_gpu_took(this.ptr, token));
        token = next.into[0]!;
        yield token;
      }
    } finally {
      await Promise.allSettled(flight.map((f) => f.done));
    }
  }
}
