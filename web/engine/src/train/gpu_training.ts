// gpu_training - an adapter that learns on the GPU.
//
// The core records the pieces of a step as programs (src/wasm/wasm_train_gpu.c); this file submits
// them and brings back the few numbers that a step comes to. All that learns stays on the device
// until somebody wants a checkpoint or files.

import { NO_MEMORY } from '../gpu/gpu.js';
import type { GpuEngine } from '../gpu/gpu_engine.js';
import type {
  Training, TrainingFiles, TrainingProfile, TrainingReport, TrainingTexts, TrainingWishes,
} from '../engine/model.js';
import { dispatchTimes, type DispatchTime } from '../gpu/profile.js';
import { CoreTraining } from './training.js';
import { stopped } from '../engine/turns.js';
import {
  CONTROL_LOSS, HOST_RANGE_BYTES, N_CONTROL, readHostRange, TRAIN_PART, type TrainPart,
} from '../engine/boundary.js';
import { BezelError } from '../engine/wasm.js';

const CONTROL = 4 * N_CONTROL; // bytes that a step comes to
const WINDOW = 4 << 20; // bytes that come back in one read

export class GpuTraining extends CoreTraining implements Training {
  private readonly control: number;
  private dirty = false; // gradients of a step that was left half-way
  private submits = 0; // of the last step

  private constructor(
    private readonly engine: GpuEngine, texts: TrainingTexts, wishes: TrainingWishes,
    onClose: () => void,
  ) {
    super(engine.core, engine.ptr, texts, wishes, onClose);
    this.control = this.core.exports.bz_wasm_train_gpu_control(this.ptr);
  }

  static async open(
    engine: GpuEngine, texts: TrainingTexts, wishes: TrainingWishes, onClose: () => void,
  ): Promise<GpuTraining> {
    await engine.core.bringTraining();
    await engine.whole(); // what is left of a load would come between the pieces of a step
    if (engine.needsRows)
      throw new BezelError(
        'to train this model on the GPU its per-layer table must be there too: '
          + `${engine.memory.tableInFile ?? 'it does not fit'}`,
        'memory',
      );
    const training = new GpuTraining(engine, texts, wishes, onClose);
    try {
      await engine.gpu.ready(); // is there memory?
      return training;
    } catch (e) {
      training.close();
      const fault = engine.gpu.takeFault(); // nothing of it is left
      if (!fault) throw e;
      throw new BezelError(
        `the training could not be set up: ${fault.message}`,
        fault.message.startsWith(NO_MEMORY) ? 'memory' : 'device',
        fault,
      );
    }
  }

  /** The program of a piece, ready to be submitted; what it is about is written. */
  private async part(which: TrainPart, i = 0): Promise<number> {
    const { core, engine } = this;
    const program = core.exports.bz_wasm_train_gpu_part(this.ptr, which, i);
    if (!program) core.fail();
    if (which === TRAIN_PART.gradients || which === TRAIN_PART.losses) engine.gpu.stepOwner = this;
    await engine.gpu.ready();
    return program;
  }

  async step(signal?: AbortSignal): Promise<TrainingReport> {
    const { core, dirty } = this, { gpu } = this.engine, x = core.exports, { passes } = this.about;
    const before = gpu.submits;
    core.checkNumber(x.bz_wasm_train_begin(this.ptr));
    this.dirty = true;
    if (dirty) gpu.submit(await this.part(TRAIN_PART.clear));
    for (let i = 0; i < passes; i++) {
      if (signal?.aborted) throw stopped(signal);
      const program = await this.part(TRAIN_PART.gradients, i);
      if (i) await gpu.done(); // one on its way, so that a stop is heard soon
      gpu.submit(program);
    }
    const into = new Uint8Array(CONTROL), update = await this.part(TRAIN_PART.update);
    const clear = await this.part(TRAIN_PART.clear);
    await gpu.run([update, { buffer: this.control, offset: 0, into }, clear]);
    this.dirty = false;
    this.submits = gpu.submits - before;
    return this.ended(into);
  }

  async profile(): Promise<TrainingProfile> {
    const { core, dirty } = this, { gpu } = this.engine, x = core.exports, { passes } = this.about;
    const dispatches: DispatchTime[] = [];
    core.checkNumber(x.bz_wasm_train_begin(this.ptr));
    this.dirty = true;
    if (dirty) gpu.submit(await this.part(TRAIN_PART.clear));
    for (let i = 0; i < passes; i++)
      dispatches.push(...await dispatchTimes(gpu, await this.part(TRAIN_PART.gradients, i)));
    dispatches.push(...await dispatchTimes(gpu, await this.part(TRAIN_PART.update)));
    const into = new Uint8Array(CONTROL);
    await gpu.read(this.control, 0, into);
    dispatches.push(...await dispatchTimes(gpu, await this.part(TRAIN_PART.clear)));
    this.dirty = false;
    return { report: this.ended(into), submits: this.submits, dispatches };
  }

  /** The report of a step that came to this. */
  private ended(control: Uint8Array): TrainingReport {
    this.core.with(control, (p) =>
      this.core.checkNumber(this.core.exports.bz_wasm_train_gpu_end(this.ptr, p)));
    return JSON.parse(this.core.resultText()) as TrainingReport;
  }

  async evaluate(signal?: AbortSignal): Promise<number> {
    const { held, held_learned } = this.about, into = new Float32Array(CONTROL / 4);
    let sum = 0;
    for (let i = 0; i < held; i++) {
      if (signal?.aborted) throw stopped(signal);
      await this.engine.gpu.submitRead(
        await this.part(TRAIN_PART.losses, i), this.control, 0, new Uint8Array(into.buffer),
      );
      sum += into[CONTROL_LOSS] as number;
    }
    return sum / held_learned;
  }

  /** Do something with all numbers in the module's memory. */
  private async mirrored<T>(act: () => T): Promise<T> {
    const { core } = this, { gpu } = this.engine, x = core.exports;
    let at = core.check(x.bz_wasm_train_gpu_mirror(this.ptr)) as number;
    try {
      const list = core.result();
      for (let i = 0; i < list.length; i += HOST_RANGE_BYTES) {
        const { buffer, offset, nBytes } = readHostRange(list.buffer, i);
        for (let done = 0; done < nBytes; done += WINDOW) {
          const some = new Uint8Array(Math.min(WINDOW, nBytes - done));
          await gpu.read(buffer, offset + done, some);
          new Uint8Array(core.memory.buffer, at + done, some.length).set(some);
        }
        at += nBytes;
      }
      return act();
    } finally {
      x.bz_wasm_train_gpu_forget(this.ptr);
    }
  }

  save(): Promise<Uint8Array> {
    return this.mirrored(() => this.checkpoint());
  }

  async load(checkpoint: Uint8Array): Promise<void> {
    this.takeCheckpoint(checkpoint);
    this.engine.gpu.submit(await this.part(TRAIN_PART.publish));
  }

  files(base: string): Promise<TrainingFiles> {
    return this.mirrored(() => this.adapterFiles(base));
  }
}
