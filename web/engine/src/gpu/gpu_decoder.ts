// gpu_decoder - tokens drawn one after the other on the device, several steps ahead of whoever
// takes them.
//
// The kernel that draws a token also makes it the next step's input and moves the position on, so
// the device needs nothing from here between two tokens. A token that was handed out is in the
// session, and the step that reads it is queued; or it is the session's unread token, where that
// step has yet to be recorded. Steps queued past it are forgotten where the text ends, and where an
// adapter changed.

import type { Read } from './gpu_queue.js';
import type { GpuSession, Recorded } from './gpu_session.js';
import { Pace } from './pace.js';
import { GPU_STEP, type Bytes, type DrawPtr, type Exports } from '../engine/boundary.js';

/** A step that was submitted, with the token that it will have drawn and, where asked for, the
 *  logits. */
interface Flight {
  readonly token: Int32Array;
  readonly logits: Float32Array | undefined;
  readonly items: (number | Read)[]; // the decode program, the logits, the drawing, the token
  done: Promise<void>;
}

export interface DecoderOptions {
  /** Tokens on their way at most; undefined: as many as the device's pace asks for. */
  ahead: number | undefined;
  /** Bring the logits of every token. */
  logits: boolean;
  /** Ends the waiting for kernels. */
  signal: AbortSignal | undefined;
}

export class GpuDecoder {
  // the first one's token comes next; each other one reads the token before
  private readonly flight: Flight[] = [];
  private readonly spare: Flight[] = [];
  private readonly pace = new Pace();
  private adapted: number; // what the others of them were queued with

  private constructor(
    private readonly session: GpuSession,
    private readonly draw: DrawPtr,
    private readonly program: Recorded,
    private readonly options: DecoderOptions,
  ) {
    this.adapted = session.adapted;
  }

  /** Draw from the session's logits, and go on with what was drawn; `json` has the sampling
   *  options. */
  static async open(
    session: GpuSession, json: string, options: DecoderOptions,
  ): Promise<GpuDecoder> {
    const { core } = session.engine, x = core.exports;
    const draw = core.with(json, (p, n) =>
      core.check(x.bz_wasm_gpu_draw_open(session.ptr, p, n, 0 as Bytes, 0)));
    let program: Recorded | undefined;
    try {
      program = await session.record(() => x.bz_wasm_gpu_record_draw(session.ptr, draw));
      core.checkNumber(x.bz_wasm_gpu_draw(session.ptr, draw));
      const made = new GpuDecoder(session, draw, program, options);
      made.launch(undefined);
      return made;
    } catch (e) {
      session.forget(program);
      x.bz_wasm_gpu_draw_close(draw);
      throw e;
    }
  }

  close(): void {
    this.session.forget(this.program);
    this.x.bz_wasm_gpu_draw_close(this.draw);
  }

  /** The next token, which is then the session's; `left` more are wanted at most. The logits it was
   *  drawn from are good until the next call. */
  async next(left: number): Promise<{ id: number; logits: Float32Array | undefined }> {
    const { session } = this, { engine } = session;
    if (session.unread !== undefined) await this.advance();
    const later = this.mayReadLater(left);
    if (!later)
      await this.drawAhead(
        engine.needsRows ? 1 : Math.min(this.options.ahead ?? this.pace.ahead, left + 1),
      );
    const first = this.flight[0] as Flight, { logits } = first;
    if (left > 0 && this.flight.length === 1) this.prepareRead();
    await first.done;
    this.pace.note(performance.now());
    const id = first.token[0] as number;
    if (later && id >= 0) session.unread = id;
    else await this.advance();
    return { id, logits };
  }

  /** May the next token be handed out before the step that reads it is recorded? The first one of
   *  all need not wait for that, and for the last one nobody may ever want it. Else it is recorded
   *  while the device is at work. */
  private mayReadLater(left: number): boolean {
    const { session, flight } = this, { position } = session;
    return flight.length === 1 && position + 1 < session.context
      && session.knownDecodeProgram(position) === undefined
      && (left <= 1 || session.engine.stepped !== session.adapted);
  }

  /** The first one's token becomes the session's, since the step that reads it is queued. */
  private async advance(): Promise<void> {
    const { session } = this, first = this.flight[0] as Flight, id = first.token[0] as number;
    if (id >= 0) await this.queueRead(id);
    session.engine.core.checkNumber(this.x.bz_wasm_gpu_advance_drawn(session.ptr, id));
    session.unread = undefined;
    this.flight.shift();
    this.spare.push(first);
  }

  private get x(): Exports {
    return this.session.engine.core.exports;
  }

  /** Queue steps past the first, as far as the context goes. */
  private async drawAhead(most: number): Promise<void> {
    while (this.flight.length < most) {
      const past = this.flight.length - 1, at = this.session.position + past;
      if (at >= this.session.context) return;
      const program = this.session.decodeProgram(at, this.options.signal);
      if (typeof program !== 'number') await program; // then look again: much may have changed
      else if (past > 0 && this.adapted !== this.session.adapted) return;
      else this.read(program, past, false);
    }
  }

  /** The step that reads `id`, the first one's token: it may be queued, or be wrong by now. Where
   *  nothing was queued past the first one, the device has its token and position still. */
  private async queueRead(id: number): Promise<void> {
    const { engine, ptr } = this.session, again = this.flight.length > 1;
    if (again && this.adapted === this.session.adapted) return;
    if (engine.needsRows) await engine.gatherRows(ptr, Int32Array.of(id));
    for (;;) {
      const program = this.session.decodeProgram(this.session.position, this.options.signal);
      if (typeof program !== 'number') {
        await program;
        continue;
      }
      this.flight.length = 1;
      if (again) engine.core.checkNumber(this.x.bz_wasm_gpu_set_drawn(ptr, id, this.draw));
      this.read(program, 0, again);
      return;
    }
  }

  /** What queueRead() will most likely run is encoded while the device draws the first one's
   *  token. */
  private prepareRead(): void {
    const { session } = this, program = session.knownDecodeProgram(session.position);
    if (program === undefined) return;
    const one = this.spare.pop() ?? this.makeFlight();
    one.items[0] = program;
    session.engine.gpu.prepare(one.items);
    this.spare.push(one); // launch() takes it from there
  }

  private read(program: number, past: number, place: boolean): void {
    const { session } = this, { core, gpu } = session.engine;
    core.checkNumber(this.x.bz_wasm_gpu_read_drawn(
      session.ptr, past, this.draw, +(place || gpu.stepOwner !== session),
    ));
    this.adapted = session.adapted;
    this.launch(program);
  }

  private launch(program: number | undefined): void {
    const { gpu } = this.session.engine;
    const one = this.spare.pop() ?? this.makeFlight();
    one.items[0] = program ?? this.program.number;
    gpu.stepOwner = this.session;
    one.done = gpu.run(program === undefined ? one.items.slice(1) : one.items);
    one.done.catch(() => undefined); // it is awaited, unless nobody wants the token any more
    this.flight.push(one);
  }

  private makeFlight(): Flight {
    const { ptr, engine } = this.session;
    const token = new Int32Array(1);
    const logits = this.options.logits ? new Float32Array(engine.info.n_vocab) : undefined;
    const items: (number | Read)[] = [
      0, this.program.number,
      {
        buffer: this.x.bz_wasm_gpu_step_buffer(ptr), offset: GPU_STEP.token,
        into: new Uint8Array(token.buffer),
      },
    ];
    if (logits)
      items.splice(1, 0, {
        buffer: this.x.bz_wasm_gpu_logits_buffer(ptr),
        offset: 0,
        into: new Uint8Array(logits.buffer),
      });
    return { token, logits, items, done: Promise.resolve() };
  }
}
