// gpu_canvas - texts of a diffusion model on the GPU: a canvas's steps queued ahead of whoever sees
// them.
//
// A step leaves all that the next one needs on the device, the decision to stop included, so one
// more is queued before the last one's words are here. Queued steps of a canvas that has stopped
// change nothing.

import { readCanvas } from '../engine/canvas.js';
import {
  CANVAS_STATE, FIRST_HORIZON, readHostCanvas, STOP, type GenerationPtr, type HostCanvas, type Stop,
} from '../engine/boundary.js';
import { optionsJson } from '../engine/cpu_engine.js';
import type { DrawOptions, GpuSession, Recorded } from './gpu_session.js';
import type { CanvasStep, StepProfile } from '../engine/model.js';
import { profile } from './profile.js';
import { stopped, unlessStopped } from '../engine/turns.js';
import { BezelError } from '../engine/wasm.js';

/** A step that was submitted, and the words that it will show. */
interface Flight {
  readonly words: Uint8Array<ArrayBuffer>;
  readonly done: Promise<void>;
}

/** What was made of a text before its device was lost. */
export interface Begun {
  tokens: number;
  canvases: number;
}

interface Program extends Recorded {
  readonly horizon: number;
}

export class GpuCanvas {
  private program: Program | undefined;

  constructor(private readonly session: GpuSession) {}

  close(): void {
    this.session.forget(this.program);
    this.program = undefined;
  }

  /** Go on from the session's tokens. Those that the first `begun` ones of a text were are at their
   *  end. */
  async *denoise(
    { signal, logprobs: _, ahead: __, resumed: ___, ...options }: DrawOptions,
    begun: Begun,
  ): AsyncGenerator<CanvasStep, { stop: Stop }, void> {
    const { session } = this, { core } = session.engine, x = core.exports;
    const json = optionsJson(begun.canvases ? goneOn(options, begun) : options);
    const text: GenerationPtr = core.with(json, (p, n) =>
      core.check(x.bz_wasm_generation_open(session.ptr, p, n)));
    try {
      core.checkNumber(x.bz_wasm_generation_resume(text, begun.tokens));
      for (let canvas = begun.canvases; x.bz_wasm_generation_has_room(text); canvas++) {
        for await (const step of this.steps(text, canvas, options.diffusion?.random, signal)) {
          yield step;
          session.engine.goOn();
          if (signal?.aborted) return { stop: 'cancelled' };
        }
      }
      return { stop: STOP[x.bz_wasm_generation_stop(text)] ?? 'end' };
    } catch (e) {
      if (signal?.aborted && e instanceof BezelError && e.kind === 'cancelled')
        return { stop: 'cancelled' };
      throw e;
    } finally {
      x.bz_wasm_generation_close(text);
    }
  }

  /** A step of a new canvas, dispatch by dispatch where `timed`. */
  async profile(timed: boolean): Promise<StepProfile> {
    const { session } = this, { core, gpu } = session.engine, x = core.exports;
    const { number } = await this.record(undefined);
    const text = core.with('{}', (p, n) =>
      core.check(x.bz_wasm_generation_open(session.ptr, p, n)));
    try {
      core.checkNumber(x.bz_wasm_gpu_canvas_begin(text));
      core.checkNumber(x.bz_wasm_gpu_canvas_step(text, 1));
      gpu.stepOwner = session;
      const kernels = timed ? await profile(gpu, number) : [];
      return { dispatches: gpu.dispatches(number), kernels };
    } finally {
      x.bz_wasm_generation_close(text);
    }
  }

  /** One canvas, until it has become text and was read. */
  private async *steps(
    text: GenerationPtr, canvas: number, scripted: unknown, signal: AbortSignal | undefined,
  ): AsyncGenerator<CanvasStep, void, void> {
    const { session } = this, { core } = session.engine, x = core.exports;
    await this.record(signal);
    const at = this.about();
    core.checkNumber(x.bz_wasm_gpu_canvas_begin(text));
    const flight: Flight[] = [];
    let place = true, mayEnd = false;
    for (;;) {
      // a script's tokens are written for each step
      for (const most = scripted || mayEnd ? 1 : 2; flight.length < most; place = false)
        flight.push(await this.launch(text, at, place, signal));
      const { words, done } = flight.shift() as Flight;
      await unlessStopped(done, signal);
      if (signal?.aborted) throw stopped(signal);
      new Uint8Array(core.memory.buffer, at.words, words.length).set(words);
      const n = core.checkNumber(x.bz_wasm_gpu_canvas_advance(text)), said = core.resultText();
      const step = readCanvas(at, words.buffer, canvas);
      mayEnd = isNearEnd(words);
      if (!n) {
        yield step;
        continue;
      }
      const ids = step.tokens.slice(0, n);
      await session.read(ids, signal && { signal });
      core.checkNumber(x.bz_wasm_gpu_canvas_taken(text));
      yield { ...step, final: { ids, text: said + core.resultText() } };
      return;
    }
  }

  private about(): HostCanvas {
    const { core } = this.session.engine;
    core.checkNumber(core.exports.bz_wasm_canvas(this.session.ptr));
    return readHostCanvas(core.result().buffer);
  }

  /** Queue a step. The device must be told the position where others had their turn. */
  private async launch(
    text: GenerationPtr, at: HostCanvas, first: boolean, signal: AbortSignal | undefined,
  ): Promise<Flight> {
    const { session } = this, { core, gpu } = session.engine;
    const program = await this.record(signal);
    const place = first || gpu.stepOwner !== session;
    core.checkNumber(core.exports.bz_wasm_gpu_canvas_step(text, +place));
    gpu.stepOwner = session;
    const words = new Uint8Array(4 * at.nShown);
    const done = gpu.run([program.number, { buffer: at.buffer, offset: 0, into: words }]);
    done.catch(() => undefined); // it is awaited, unless nobody wants the step any more
    return { words, done };
  }

  /** The program of a step; recorded anew where adapters have changed, or the history is twice as
   *  long. */
  async record(signal: AbortSignal | undefined): Promise<Recorded> {
    const { session } = this, { engine } = session, x = engine.core.exports;
    let horizon = FIRST_HORIZON;
    while (horizon < session.position) horizon *= 2;
    horizon = Math.min(horizon, session.context);
    if (this.program?.adapted === session.adapted && this.program.horizon === horizon)
      return this.program;
    for (let group; (group = engine.awaitsCanvas(session.ptr, horizon));)
      await engine.validation.upTo(group, signal);
    const made = await session.record(
      () => x.bz_wasm_gpu_canvas_record(session.ptr, horizon), { signal },
    );
    this.close();
    this.program = { ...made, horizon };
    return this.program;
  }
}

/** The options for the rest of a text: what it begins with was the first canvas's. */
function goneOn(options: DrawOptions, begun: Begun): DrawOptions {
  const { canvas: _, fixed: __, canvases = 0, ...diffusion } = options.diffusion ?? {};
  return {
    ...options,
    diffusion: { ...diffusion, canvases: canvases && Math.max(1, canvases - begun.canvases) },
  };
}

/** Might the next step be the last? A step that is queued for nothing takes longer than waiting. */
function isNearEnd(words: Uint8Array): boolean {
  const view = new DataView(words.buffer);
  const whole = (offset: number): number => view.getUint32(offset, true);
  const real = (offset: number): number => view.getFloat32(offset, true);
  return whole(CANVAS_STATE.step) + 1 >= whole(CANVAS_STATE.nSteps)
    || (whole(CANVAS_STATE.stable) + 1 >= whole(CANVAS_STATE.nStable)
      && real(CANVAS_STATE.meanEntropy) < 4 * real(CANVAS_STATE.confidence));
}
