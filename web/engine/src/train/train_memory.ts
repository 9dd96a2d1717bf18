// train_memory - how much of a pass training keeps: all of it where there is room, else each layer
// is computed again.
//
// Knows the numbers of bytes and what a device has, nothing of steps.

import { TRAIN_SEQUENCE } from '../engine/boundary.js';
import type { Model, Training, TrainingTexts, TrainingWishes } from '../engine/model.js';
import type { TrainEstimate } from './train_types.js';
import { BezelError } from '../engine/wasm.js';

const LIMIT = 4e9; // bytes that the module's memory can have
const FREELY = 5e9; // bytes that are kept where nobody knows what the device has

const size = (bytes: number): string =>
  (bytes >= 1e9 ? `${(bytes / 1e9).toFixed(1)} GB` : `${Math.max(1, Math.round(bytes / 1e6))} MB`);

/** What sequences of these texts would take, and whether all of it can be kept. `budget`: bytes
 *  that the model and all else may take together, where somebody said so. */
export function trainEstimate(
  model: Model, wishes: TrainingWishes, data?: string, budget = Infinity,
): TrainEstimate {
  const { sequence = TRAIN_SEQUENCE } = wishes;
  const seen = data === undefined ? undefined : model.preview(data, sequence, 0);
  const tokens =
    !seen ? sequence : wishes.no_packing ? seen.longest : Math.min(sequence, seen.tokens);
  const bytes = model.trainBytes({ ...wishes, keep_all: true }, tokens);
  const bytesCheckpointed = model.trainBytes({ ...wishes, keep_all: false }, tokens);
  const { weights, cache, scratch } = model.memory;
  const limit = Math.min(budget, model.device.backend === 'cpu' ? LIMIT : Infinity);
  const room = limit - weights - cache - scratch;
  const checkpointing = bytes > (room === Infinity ? FREELY : room / 2);
  const fits = bytesCheckpointed <= room;
  const sentence =
    `This needs ${size(bytes)} beyond the model; with checkpointing ${size(bytesCheckpointed)}.`
      + `${fits ? '' : ` There is room for ${size(Math.max(0, room))}.`}`;
  return { bytes, bytesCheckpointed, checkpointing, fits, sentence };
}

/** A training that keeps what the estimate says, and less where the device turns out to be
 *  smaller. */
export async function openFitting(
  model: Model, texts: TrainingTexts, wishes: TrainingWishes, { checkpointing }: TrainEstimate,
): Promise<Training> {
  try {
    return await model.training(texts, { ...wishes, keep_all: !checkpointing });
  } catch (e) {
    if (checkpointing || !(e instanceof BezelError) || e.kind !== 'memory') throw e;
    return model.training(texts, { ...wishes, keep_all: false });
  }
}
