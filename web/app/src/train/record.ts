// record - a training as the page keeps it between visits: what was asked for, how far it is, and
// the engine's checkpoint, in one file, so that they always belong together.

import type { TrainOptions } from 'bezel';

export interface Point {
  step: number;
  loss: number;
  evalLoss?: number;
}

export interface TrainRecord {
  version: 1;
  /** The adapter's name. */
  name: string;
  /** The model it is for: its key on this page, and its name. */
  model: string;
  modelName: string;
  data: string;
  options: Omit<TrainOptions, 'data' | 'signal' | 'onCheckpoint' | 'resume' | 'evalData'>;
  /** Asked before and after. */
  questions: string[];
  before: string[];
  points: Point[];
  /** Planned; 0: not known yet. */
  steps: number;
}

const HEAD = 4; // bytes that say how long the record is

export function pack(record: TrainRecord, checkpoint: Uint8Array): Uint8Array {
  const text = new TextEncoder().encode(JSON.stringify(record));
  const all = new Uint8Array(HEAD + text.length + checkpoint.length);
  new DataView(all.buffer).setUint32(0, text.length, true);
  all.set(text, HEAD);
  all.set(checkpoint, HEAD + text.length);
  return all;
}

/** null: it was written by something else, and is of no use. */
export function unpack(all: Uint8Array): { record: TrainRecord; checkpoint: Uint8Array } | null {
  try {
    const n = new DataView(all.buffer, all.byteOffset).getUint32(0, true);
    const record =
      JSON.parse(new TextDecoder().decode(all.subarray(HEAD, HEAD + n))) as TrainRecord;
    return record.version === 1 ? { record, checkpoint: all.slice(HEAD + n) } : null;
  } catch {
    return null;
  }
}
