// training - an adapter in training, and the data it learns from, as the core has them.
//
// Texts are JSON lines; options are the core's own (snake_case), so that JSON goes through
// unchanged. CpuTraining computes in this thread, one sequence at a time, and lets others have
// their turn in between; gpu_training.ts is the other one. Knows no engines' adapters by name, no
// requests and no files.

import type {
  Preview, Training, TrainingAbout, TrainingFiles, TrainingReport, TrainingTexts, TrainingWishes,
} from '../engine/model.js';
import { breathe, stopped } from '../engine/turns.js';
import {
  ADAPTER_KIND, TRAIN_SEQUENCE, type AdapterKind, type DataPtr, type EnginePtr, type TrainingPtr,
} from '../engine/boundary.js';
import type { Core } from '../engine/wasm.js';
import { BezelError } from '../engine/wasm.js';

function openData(
  core: Core, engine: EnginePtr, text: string, sequence: number, held: boolean,
): DataPtr {
  return core.with(text, (p, n) =>
    core.check(core.exports.bz_wasm_data_open(engine, p, n, sequence, +held)));
}

/** What is learned of the first `max` examples, and how much there is in all. A bad line is a
 *  FormatError with its number. */
export function preview(
  core: Core, engine: EnginePtr, text: string, sequence: number, max: number,
): Preview {
  const x = core.exports, data = openData(core, engine, text, sequence, false);
  try {
    core.checkNumber(x.bz_wasm_data_about(data));
    const about = JSON.parse(core.resultText()) as Omit<Preview, 'shown'>;
    const shown: Preview['shown'] = [];
    for (let i = 0; i < Math.min(max, about.examples); i++) {
      core.checkNumber(x.bz_wasm_data_example(data, i));
      const [line = 0, ...pairs] = core.resultIds();
      shown.push({
        line,
        ids: pairs.filter((_, k) => k % 2 === 0),
        learned: pairs.filter((_, k) => k % 2 === 1).map(Boolean),
      });
    }
    return { ...about, shown };
  } finally {
    x.bz_wasm_data_close(data);
  }
}

/** Bytes beyond the model for sequences of so many tokens. */
export function trainBytes(
  core: Core, engine: EnginePtr, wishes: TrainingWishes, tokens: number,
): number {
  const bytes = core.with(JSON.stringify(wishes), (p, n) =>
    core.exports.bz_wasm_train_bytes(engine, p, n, tokens));
  return bytes < 0 ? core.fail() : bytes;
}

/** Data, adapter and optimiser, ready for the first step. The core takes the data over. */
export function openTraining(
  core: Core, engine: EnginePtr, { data, held }: TrainingTexts, wishes: TrainingWishes,
): TrainingPtr {
  const x = core.exports, sequence = wishes.sequence ?? TRAIN_SEQUENCE;
  const lessons = openData(core, engine, data, sequence, false);
  let other = 0 as DataPtr;
  try {
    if (held !== undefined) other = openData(core, engine, held, sequence, true);
  } catch (e) {
    x.bz_wasm_data_close(lessons);
    throw e;
  }
  return core.with(JSON.stringify(wishes), (p, n) =>
    core.check(x.bz_wasm_train_open(engine, lessons, other, p, n)));
}

/** What trainings on all backends share. */
export abstract class CoreTraining {
  private p: TrainingPtr;

  constructor(
    protected readonly core: Core,
    engine: EnginePtr,
    texts: TrainingTexts,
    wishes: TrainingWishes,
    private readonly onClose: () => void,
  ) {
    this.p = openTraining(core, engine, texts, wishes);
  }

  protected get ptr(): TrainingPtr {
    if (!this.p) throw new BezelError('this training is over', 'argument');
    return this.p;
  }

  get about(): TrainingAbout {
    this.core.checkNumber(this.core.exports.bz_wasm_train_about(this.ptr));
    return JSON.parse(this.core.resultText()) as TrainingAbout;
  }

  scale(scale: number): void {
    this.core.exports.bz_wasm_train_scale(this.ptr, scale);
  }

  /** The core's checkpoint and files: its numbers must be in the module's memory. */
  protected checkpoint(): Uint8Array {
    this.core.checkNumber(this.core.exports.bz_wasm_train_save(this.ptr));
    return this.core.result();
  }

  protected takeCheckpoint(checkpoint: Uint8Array): void {
    this.core.with(checkpoint, (p, n) =>
      this.core.checkNumber(this.core.exports.bz_wasm_train_load(this.ptr, p, n)));
  }

  protected adapterFiles(base: string): TrainingFiles {
    const file = (which: AdapterKind): Uint8Array => {
      this.core.with(base, (p, n) =>
        this.core.checkNumber(this.core.exports.bz_wasm_train_file(this.ptr, which, p, n)));
      return this.core.result();
    };
    return {
      gguf: file(ADAPTER_KIND.gguf), safetensors: file(ADAPTER_KIND.safetensors),
      config: new TextDecoder().decode(file(ADAPTER_KIND.config)),
    };
  }

  close(): void {
    if (!this.p) return;
    this.core.exports.bz_wasm_train_close(this.p);
    this.p = 0 as TrainingPtr;
    this.onClose();
  }
}

export class CpuTraining extends CoreTraining implements Training {
  async step(signal?: AbortSignal): Promise<TrainingReport> {
    const { core } = this, x = core.exports, { passes } = this.about;
    core.checkNumber(x.bz_wasm_train_begin(this.ptr));
    for (let i = 0; i < passes; i++) {
      await breathe();
      if (signal?.aborted) throw stopped(signal);
      core.checkNumber(x.bz_wasm_train_pass(this.ptr, i));
    }
    core.checkNumber(x.bz_wasm_train_finish(this.ptr));
    return JSON.parse(core.resultText()) as TrainingReport;
  }

  async evaluate(signal?: AbortSignal): Promise<number> {
    const { held, held_learned } = this.about;
    let sum = 0;
    for (let i = 0; i < held; i++) {
      await breathe();
      if (signal?.aborted) throw stopped(signal);
      const one = this.core.exports.bz_wasm_train_held(this.ptr, i);
      sum += one < 0 ? this.core.fail() : one;
    }
    return sum / held_learned;
  }

  async save(): Promise<Uint8Array> {
    return this.checkpoint();
  }

  async load(checkpoint: Uint8Array): Promise<void> {
    this.takeCheckpoint(checkpoint);
  }

  async files(base: string): Promise<TrainingFiles> {
    return this.adapterFiles(base);
  }
}
