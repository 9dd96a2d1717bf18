// gpu_decoder - tokens drawn one after the other on the device, several steps ahead of whoever
// takes them.
//
// The kernel that draws a token also makes it the next step's input and moves the position on, so
// the device needs nothing from here between two tokens. A token that was handed out is in the
// session, and the step that reads it is queued; or it is the session's unread token, where that
// step has yet to be recorded. Steps queued past it are forgotten where the text ends, and where an
// adapter changed.
//
// Under a constraint only some tokens may be drawn, and which ones is known when the token before
// is. So the step that reads a token is queued right behind the draw of it, and the next draw once
// its mask is known: the device computes meanwhile. Where the mask has long been the same, as in a
// thought, it most likely stays so, and draws are queued ahead too. Tokens that must come are not
// drawn: the device only reads them.

import type { Read } from './gpu_queue.js';
import type { GpuSession, Recorded } from './gpu_session.js';
import { Pace } from './pace.js';
import {
  GPU_STEP, NEXT, type DrawPtr, type Exports, type GenerationPtr,
} from '../engine/boundary.js';

const STEADY = 16; // tokens drawn with one mask for each draw with it that is queued ahead
// tokens that must come and are read one by one; of more, a program for all of them is recorded
const SINGLE = 8;

/** A token on its way, with the logits where they are asked for. */
interface Flight {
  readonly token: Int32Array;
  readonly logits: Float32Array | undefined;
  readonly items: (number | Read)[]; // the decode program, the logits, the drawing, the token
  readonly drawing: (number | Read)[]; // all but the first
  known: boolean; // it must come: nothing is drawn
  done: Promise<void>;
}

export interface DecoderOptions {
  /** Tokens on their way at most; undefined: as many as the device's pace asks for. */
  ahead: number | undefined;
  /** Bring the logits of every token. */
  logits: boolean;
  constrained: boolean;
  /** Ends the waiting for kernels. */
  signal: AbortSignal | undefined;
}

/** A token, and what the text makes of it. */
export interface Drawn {
  id: number;
  text: string;
  over: boolean;
  logits: Float32Array | undefined;
}

export class GpuDecoder {
  // the first one's token comes next; each other one follows the one before
  private readonly flight: Flight[] = [];
  private queued = 0; // steps: they read the first so many of those tokens
  private adapted: number; // what they were queued with
  private readonly spare: Flight[] = [];
  private readonly pace = new Pace();
  // what comes after the flight: tokens that must, or one that is drawn; undefined: nobody looked
  private follows: Int32Array | 'drawn' | undefined = 'drawn';
  private fits = true; // the flight past the first, to what follows that
  private steady = 0; // tokens in a row whose mask was that of the one before
  private undrawn = 0; // the session's last tokens that the device does not know to be there
  private late: { why: unknown } | undefined; // a failure behind a token that was handed out

  private constructor(
    private readonly session: GpuSession,
    private readonly text: GenerationPtr,
    private readonly draw: DrawPtr,
    private readonly program: Recorded,
    private readonly options: DecoderOptions,
  ) {
    this.adapted = session.adapted;
  }

  /** Go on from the session's logits, and from the text, which advances by what comes; `json` has
   *  the sampling options. */
  static async open(
    session: GpuSession, text: GenerationPtr, json: string, options: DecoderOptions,
  ): Promise<GpuDecoder> {
    const { core } = session.engine, x = core.exports;
    const draw = core.with(json, (p, n) => core.check(x.bz_wasm_gpu_draw_open(session.ptr, p, n)));
    let program: Recorded | undefined;
    try {
      program = await session.record(() =>
        x.bz_wasm_gpu_record_draw(session.ptr, draw, +options.constrained));
      const made = new GpuDecoder(session, text, draw, program, options);
      made.look();
      made.begin();
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

  /** The next token, which is then the session's and the text's; `left` more are wanted at most.
   *  The logits it was drawn from are good until the next call. */
  async next(left: number): Promise<Drawn> {
    const { session } = this, { core } = session.engine;
    if (this.late) throw this.late.why;
    if (session.unread !== undefined) await this.advance();
    this.begin();
    const later = this.mayReadLater(left);
    if (!later) await this.queue(left);
    const first = this.flight[0] as Flight, { logits } = first;
    if (left > 0 && this.flight.length === 1 && !this.queued) this.prepareRead();
    await first.done;
    if (!first.known) this.pace.note(performance.now());
    const id = first.token[0] as number;
    if (id < 0) await this.advance(); // which says why
    const over = core.checkNumber(this.x.bz_wasm_generation_advance(this.text, id)) === 1;
    const text = core.resultText();
    if (!over && !this.flight[1]?.known) this.look();
    if (later) session.unread = id;
    else await this.advance();
    if (!over && left > 0) this.goOn();
    return { id, text, over, logits };
  }

  /** What needs no waiting is queued before the token is handed out. */
  private goOn(): void {
    try {
      this.begin();
      this.readBehind();
    } catch (why) {
      this.late = { why };
    }
  }

  private get x(): Exports {
    return this.session.engine.core.exports;
  }

  // ---- what is handed out ----

  /** May the next token be handed out before the step that reads it is recorded? The first one of
   *  all need not wait for that, and for the last one nobody may ever want it. Else it is recorded
   *  while the device is at work. */
  private mayReadLater(left: number): boolean {
    const { session, flight } = this, { position } = session;
    return flight.length === 1 && !flight[0]?.known && position + 1 < session.context
      && session.knownDecodeProgram(position) === undefined
      && (left <= 1 || session.engine.stepped !== session.adapted);
  }

  /** The first one's token becomes the session's, since the step that reads it is queued. */
  private async advance(): Promise<void> {
    const { session } = this, first = this.flight[0] as Flight, id = first.token[0] as number;
    if (id >= 0) await this.queueRead(first, id);
    session.engine.core.checkNumber(this.x.bz_wasm_gpu_advance_drawn(session.ptr, id));
    session.unread = undefined;
    this.undrawn = first.known ? this.undrawn + 1 : 0;
    this.queued--;
    this.flight.shift();
    this.spare.push(first);
  }

  // ---- what comes next ----

  /** What may follow the text, which has the first one's token. */
  private look(): void {
    if (!this.options.constrained) return;
    const { core } = this.session.engine;
    const kind = core.checkNumber(this.x.bz_wasm_generation_look(this.text));
    this.follows = kind === NEXT.forced ? core.resultIds() : 'drawn';
    if (kind === NEXT.others) this.x.bz_wasm_gpu_draw_mask(this.text, this.draw);
    this.fits = kind === NEXT.same;
    this.steady = this.fits ? this.steady + 1 : 0;
  }

  /** Where nothing is on its way: what follows the session's tokens. */
  private begin(): void {
    if (this.flight.length) return;
    if (!this.follows) this.look();
    if (!(this.follows instanceof Int32Array)) return this.launch(undefined);
    for (const id of this.follows) this.pushKnown(id);
    this.follows = undefined;
    this.fits = true;
  }

  /** More, so that the device has work once it has made the first one. */
  private async queue(left: number): Promise<void> {
    const { session, options: { ahead = this.pace.ahead, constrained, signal } } = this;
    if (this.flight.at(-1)?.known) return this.readKnown();
    const most = session.engine.needsRows ? 1
      : constrained ? Math.min(ahead, 1 + Math.floor(this.steady / STEADY)) : ahead;
    await this.drawAhead(Math.min(most, left + 1));
    if (!constrained || session.engine.needsRows || left === 0) return;
    while (!this.readBehind()) await session.decodeProgram(session.position, signal);
  }

  /** Queue draws past the first, as far as the context goes. */
  private async drawAhead(most: number): Promise<void> {
    while (this.flight.length < most) {
      const past = this.flight.length - 1, at = this.session.position + past;
      if (at >= this.session.context) return;
      if (this.queued > past) {
        this.launch(undefined);
        continue;
      }
      const program = this.session.decodeProgram(at, this.options.signal);
      if (typeof program !== 'number') await program; // then look again: much may have changed
      else if (past > 0 && this.adapted !== this.session.adapted) return;
      else this.read(program, false);
    }
  }

  /** Under a constraint, queue the step that reads a token right behind the draw of it. False: it
   *  has yet to be recorded. */
  private readBehind(): boolean {
    const { session, flight, options } = this, { position } = session;
    if (!options.constrained || flight.length !== 1 || flight[0]?.known || this.queued
      || session.engine.needsRows || position >= session.context)
      return true;
    const program = session.knownDecodeProgram(position);
    if (program === undefined) return false;
    this.readOnly(program, false);
    return true;
  }

  /** Queue the steps that read the tokens which must come. */
  private async readKnown(): Promise<void> {
    const { session, flight, options: { signal } } = this;
    if (!this.queued && flight.length > SINGLE && flight.length <= session.batch) {
      const ids = Int32Array.from(flight, ({ token }) => token[0] as number);
      await session.readBatch(ids, 1, { signal, advance: false });
      this.adapted = session.adapted;
      this.queued = ids.length;
    }
    while (this.queued < flight.length) {
      const one = flight[this.queued] as Flight;
      if (session.engine.needsRows) await session.engine.gatherRows(session.ptr, one.token);
      const program = session.decodeProgram(session.position + this.queued, signal);
      if (typeof program !== 'number') {
        await program;
        continue;
      }
      if (this.queued && this.adapted !== session.adapted) return;
      this.setDrawn(one.token[0] as number);
      this.readOnly(program, true);
    }
  }

  /** The step that reads the first one's token `id`: it may be queued, or be wrong by now, or
   *  what is queued behind it may be. Where nothing was queued past the first one, the device has
   *  its token and position still. */
  private async queueRead(first: Flight, id: number): Promise<void> {
    const { session, flight, queued } = this, { engine } = session;
    const fits = this.fits || flight.length === 1;
    if (queued && fits && this.adapted === session.adapted) return;
    if (engine.needsRows) await engine.gatherRows(session.ptr, Int32Array.of(id));
    for (;;) {
      const program = session.decodeProgram(session.position, this.options.signal);
      if (typeof program !== 'number') {
        await program;
        continue;
      }
      const again = queued > 0 || first.known;
      flight.length = 1;
      this.queued = 0;
      if (again) this.setDrawn(id);
      if (first.known || this.follows !== 'drawn') this.readOnly(program, again);
      else this.read(program, again);
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

  // ---- to the device ----

  private setDrawn(id: number): void {
    const { core } = this.session.engine;
    core.checkNumber(this.x.bz_wasm_gpu_set_drawn(this.session.ptr, id));
  }

  /** The next step reads the first token that none reads yet. */
  private placeRead(place: boolean): void {
    const { session } = this, { core, gpu } = session.engine;
    core.checkNumber(this.x.bz_wasm_gpu_read_drawn(
      session.ptr, this.queued, this.draw, +(place || gpu.stepOwner !== session),
    ));
    gpu.stepOwner = session;
    this.adapted = session.adapted;
    this.queued++;
  }

  private readOnly(program: number, place: boolean): void {
    this.placeRead(place);
    this.session.engine.gpu.submit(program);
  }

  /** And draw the token after it. */
  private read(program: number, place: boolean): void {
    this.placeRead(place);
    this.launch(program);
  }

  private launch(program: number | undefined): void {
    const { session } = this, { core, gpu } = session.engine;
    const one = this.spare.pop() ?? this.makeFlight();
    if (program === undefined) {
      core.checkNumber(this.x.bz_wasm_gpu_draw(
        session.ptr, this.flight.length, this.draw, this.undrawn,
      ));
      this.undrawn = 0;
      gpu.stepOwner = session;
    } else one.items[0] = program;
    this.push(one, false, gpu.run(program === undefined ? one.drawing : one.items));
  }

  private pushKnown(id: number): void {
    const one = this.spare.pop() ?? this.makeFlight(), [bring] = one.drawing;
    one.token[0] = id;
    this.push(
      one, true,
      one.logits && bring !== undefined ? this.session.engine.gpu.run([bring]) : Promise.resolve(),
    );
  }

  private push(one: Flight, known: boolean, done: Promise<void>): void {
    done.catch(() => undefined); // it is awaited, unless nobody wants the token any more
    one.known = known;
    one.done = done;
    this.flight.push(one);
  }

  private makeFlight(): Flight {
    const { ptr, engine } = this.session;
    const token = new Int32Array(1);
    const logits = this.options.logits ? new Float32Array(engine.info.n_vocab) : undefined;
    const drawing: (number | Read)[] = [
      this.program.number,
      {
        buffer: this.x.bz_wasm_gpu_step_buffer(ptr), offset: GPU_STEP.token,
        into: new Uint8Array(token.buffer),
      },
    ];
    if (logits)
      drawing.unshift({
        buffer: this.x.bz_wasm_gpu_logits_buffer(ptr),
        offset: 0,
        into: new Uint8Array(logits.buffer),
      });
    return {
      token, logits, drawing, items: [0, ...drawing], known: false, done: Promise.resolve(),
    };
  }
}
