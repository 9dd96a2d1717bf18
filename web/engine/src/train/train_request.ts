// train_request - what a caller asks of training, checked and in the core's words. Opens nothing,
// computes nothing.

import { BezelError, show } from '../api/errors.js';
import type { TrainingTexts, TrainingWishes } from '../engine/model.js';
import { hint } from '../api/near.js';
import type { TrainData, TrainOptions } from './train_types.js';

/** Plain data for where the model lives. */
export interface TrainParams {
  /** How later calls name this training. */
  id: string;
  texts: TrainingTexts;
  wishes: TrainingWishes;
  name?: string;
  checkpointing: 'auto' | boolean;
  resume?: Uint8Array;
}

/** JSON lines. */
export async function readData(data: TrainData, what = 'data'): Promise<string> {
  if (typeof data === 'string') return data;
  if (data instanceof Blob) return data.text();
  if (!Array.isArray(data))
    throw new BezelError(
      `${what} is JSON lines as text or as a file, or a list of examples`, 'argument',
    );
  return data.map((example) => JSON.stringify(example)).join('\n');
}

function number(
  options: Record<string, unknown>, name: string, isGood: (n: number) => boolean, says: string,
): number | undefined {
  const value = options[name];
  if (value === undefined) return undefined;
  if (typeof value !== 'number' || !isGood(value))
    throw new BezelError(`${name} is ${says}, not ${show(value)}`, 'argument');
  return value;
}

const whole = (options: object, name: string, min: number, max: number): number | undefined =>
  number(
    options as Record<string, unknown>,
    name,
    (n) => Number.isInteger(n) && n >= min && n <= max,
    `a whole number from ${min} to ${max}`,
  );
const real = (options: object, name: string, min: number, max = Infinity): number | undefined =>
  number(
    options as Record<string, unknown>,
    name,
    (n) => n >= min && n <= max && Number.isFinite(n),
    max === Infinity ? `a number, at least ${min}` : `a number from ${min} to ${max}`,
  );

/** Undefined members are left out: the core has the defaults. */
function present<T extends object>(all: { [K in keyof T]: T[K] | undefined }): T {
  return Object.fromEntries(Object.entries(all).filter(([, value]) => value !== undefined)) as T;
}

const known: readonly string[] = [
  'data', 'evalData', 'evalShare', 'name', 'targets', 'rank', 'alpha', 'dropout', 'rsLora',
  'epochs', 'steps', 'batch', 'accumulate', 'sequence', 'packing',
  'learningRate', 'schedule', 'warmup', 'clip', 'weightDecay', 'seed', 'checkpointing', 'evalEvery',
  'saveEvery', 'onCheckpoint', 'resume', 'signal',
] satisfies (keyof TrainOptions)[];

export function readWishes(o: Omit<TrainOptions, 'data'>): TrainingWishes {
  for (const name of Object.keys(o))
    if (!known.includes(name))
      throw new BezelError(
        `training has no option "${name}"${hint(name, known)}`, 'argument', undefined, name,
      );
  const { targets, schedule } = o;
  if (targets !== undefined
    && (!Array.isArray(targets) || targets.some((t) => typeof t !== 'string' || !t)))
    throw new BezelError(
      'targets is a list of parts of tensor names, such as "attn_q"', 'argument',
    );
  if (schedule !== undefined && !['constant', 'linear', 'cosine'].includes(schedule))
    throw new BezelError(
      `no schedule "${String(schedule)}"; there are constant, linear and cosine`, 'argument',
    );
  if (o.evalData !== undefined && o.evalShare !== undefined)
    throw new BezelError('evalData and evalShare exclude each other', 'argument');
  if (o.steps !== undefined && o.epochs !== undefined)
    throw new BezelError('steps and epochs exclude each other', 'argument');
  return present<TrainingWishes>({
    rank: whole(o, 'rank', 1, 256),
    alpha: real(o, 'alpha', 0),
    dropout: real(o, 'dropout', 0, 0.99),
    rslora: o.rsLora || undefined,
    targets: targets && [...targets],
    seed: whole(o, 'seed', 0, Number.MAX_SAFE_INTEGER),
    lr: real(o, 'learningRate', 0),
    schedule,
    warmup: whole(o, 'warmup', 0, 1e9),
    steps: whole(o, 'steps', 1, 1e9),
    epochs: real(o, 'epochs', 0),
    batch: whole(o, 'batch', 1, 4096),
    accumulate: whole(o, 'accumulate', 1, 4096),
    sequence: whole(o, 'sequence', 1, 1 << 20),
    no_packing: o.packing === false || undefined,
    decay: real(o, 'weightDecay', 0),
    clip: real(o, 'clip', 0),
    eval_share: real(o, 'evalShare', 0, 0.5),
  });
}

export async function readTrain(o: TrainOptions, id: string): Promise<TrainParams> {
  const wishes = readWishes(o), { checkpointing = 'auto', name, evalData, resume } = o;
  whole(o, 'evalEvery', 1, 1e9);
  whole(o, 'saveEvery', 1, 1e9);
  if (name !== undefined && (typeof name !== 'string' || !name))
    throw new BezelError('name is a text', 'argument');
  return {
    id,
    texts: {
      data: await readData(o.data),
      ...(evalData !== undefined && { held: await readData(evalData, 'evalData') }),
    },
    wishes,
    checkpointing,
    ...(name !== undefined && { name }),
    ...(resume
      && { resume: resume instanceof Blob ? new Uint8Array(await resume.arrayBuffer()) : resume }),
  };
}
