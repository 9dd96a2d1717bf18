// local_train - training where the model lives: the adapter under way, its name in the engine, what
// it may take.
//
// Every step is a turn at the model of its own, so that other requests are answered between steps.
// They may name the adapter as it is then; those that do not are not touched by it.

import { BezelError } from '../api/errors.js';
import type {
  Model, Training, TrainingFiles, TrainingReport, TrainingWishes,
} from '../engine/model.js';
import { Moved, type Handlers, type Spec } from '../engine/rpc.js';
import { openFitting, trainEstimate } from './train_memory.js';
import type { TrainParams } from './train_request.js';
import type { TrainEstimate, TrainPreview } from './train_types.js';

export interface TrainPlan {
  /** Of the adapter, in the engine. */
  name: string;
  step: number;
  steps: number;
  /** Bytes beyond the model. */
  bytes: number;
  examples: number;
  sequences: number;
  tokens: number;
  learned: number;
  /** Before the first step, where something is held back. */
  evalLoss?: number;
}

export interface TrainCalls {
  trainOpen: Spec<TrainParams, TrainPlan>;
  trainStep: Spec<{ id: string; evaluate: boolean }, TrainingReport & { evalLoss?: number }>;
  trainSave: Spec<string, Uint8Array>;
  /** Keep: the adapter stays in the engine, and its files are the answer. */
  trainEnd: Spec<{ id: string; keep: boolean }, TrainingFiles | undefined>;
  trainEstimate: Spec<{ wishes: TrainingWishes; data?: string }, TrainEstimate>;
  trainPreview: Spec<{ data: string; sequence: number; max: number }, TrainPreview>;
}

/** What it needs of the engine. */
export interface TrainDesk {
  readonly name: string; // the model's
  readonly model: Model;
  /** Bytes that model and conversations may take together, where somebody said so. */
  readonly budget: number | undefined;
  alone<T>(signal: AbortSignal, act: (signal: AbortSignal) => Promise<T>): Promise<T>;
  /** A name that no adapter has: this one, or an error; undefined: a new one. */
  adapterName(wish: string | undefined): string;
  /** An adapter that requests can name from now on; says what to call when its numbers have
   *  changed. */
  hang(name: string, apply: (scale: number) => void): () => void;
  unhang(name: string): void;
  /** Let the model wear this adapter alone. */
  wear(name: string): void;
  /** Keep an adapter file under this name; requests that do not name it do not use it. */
  keep(name: string, gguf: Uint8Array, signal: AbortSignal): Promise<void>;
}

export class LocalTraining {
  private under: { id: string; name: string; training: Training; changed: () => void } | undefined;

  constructor(private readonly desk: TrainDesk) {}

  /** What sequences of these texts would take, and whether all of it can be kept. */
  private estimate(wishes: TrainingWishes, data: string | undefined): TrainEstimate {
    return trainEstimate(this.desk.model, wishes, data, this.desk.budget);
  }

  private async open(
    { id, texts, wishes, name: wish, checkpointing, resume }: TrainParams, signal: AbortSignal,
  ): Promise<TrainPlan> {
    const { model } = this.desk;
    if (this.under)
      throw new BezelError(
        `"${this.under.name}" is still being trained; one at a time`, 'argument',
      );
    const name = this.desk.adapterName(wish), estimate = this.estimate(wishes, texts.data);
    if (!estimate.fits) throw new BezelError(estimate.sentence, 'memory');
    const training = checkpointing === 'auto'
      ? await openFitting(model, texts, wishes, estimate)
      : await model.training(texts, { ...wishes, keep_all: !checkpointing });
    this.under = {
      id, name, training, changed: this.desk.hang(name, (scale) => training.scale(scale)),
    };
    try {
      if (resume) await training.load(resume);
      this.desk.wear(name);
      const { step, steps, bytes, examples, sequences, tokens, learned, held } = training.about;
      const evalLoss = held ? await training.evaluate(signal) : undefined;
      return {
        name, step, steps, bytes, examples, sequences, tokens, learned,
        ...(evalLoss !== undefined && { evalLoss }),
      };
    } catch (e) {
      this.close();
      throw e;
    }
  }

  private get(id: string): NonNullable<typeof this.under> {
    if (this.under?.id !== id) throw new BezelError('this training is over', 'argument');
    return this.under;
  }

  private async step(
    id: string, evaluate: boolean, signal: AbortSignal,
  ): Promise<TrainingReport & { evalLoss?: number }> {
    const { name, training, changed } = this.get(id);
    this.desk.wear(name);
    const report = await training.step(signal);
    changed();
    const { steps, held } = training.about;
    return held && (evaluate || report.step === steps)
      ? { ...report, evalLoss: await training.evaluate(signal) }
      : report;
  }

  private async end(
    id: string, keep: boolean, signal: AbortSignal,
  ): Promise<TrainingFiles | undefined> {
    if (!keep && this.under?.id !== id) return undefined; // it never began
    const { name, training } = this.get(id);
    const files = keep ? await training.files(this.desk.name) : undefined;
    this.close();
    if (files) await this.desk.keep(name, files.gguf, signal);
    return files;
  }

  close(): void {
    const { under } = this;
    this.under = undefined;
    if (!under) return;
    this.desk.unhang(under.name);
    under.training.close();
  }

  private preview(data: string, sequence: number, max: number): TrainPreview {
    const { model } = this.desk, { shown, ...about } = model.preview(data, sequence, max);
    const text = (id: number): string => model.detokenize(Int32Array.of(id), true);
    return {
      ...about,
      shown: shown.map(({ line, ids, learned }) => ({
        line, tokens: ids.map((id, i) => ({ id, text: text(id), learned: learned[i] ?? false })),
      })),
    };
  }

  readonly calls: Handlers<TrainCalls> = {
    trainOpen: (params, { signal }) => this.desk.alone(signal, (s) => this.open(params, s)),
    trainStep: ({ id, evaluate }, { signal }) =>
      this.desk.alone(signal, (s) => this.step(id, evaluate, s)),
    trainSave: (id, { signal }) => this.desk.alone(signal, async () => {
      const checkpoint = await this.get(id).training.save();
      return new Moved(checkpoint, [checkpoint.buffer]);
    }),
    trainEnd: ({ id, keep }, { signal }) => this.desk.alone(signal, (s) => this.end(id, keep, s)),
    trainEstimate: ({ wishes, data }, { signal }) =>
      this.desk.alone(signal, async () => this.estimate(wishes, data)),
    trainPreview: ({ data, sequence, max }, { signal }) =>
      this.desk.alone(signal, async () => this.preview(data, sequence, max)),
  };
}
