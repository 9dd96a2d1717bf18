// canvas - how an answer of a diffusion model was denoised: each step as the page shows it, small
// enough to be kept.

import type { DiffusionStep } from 'bezel';

/** How sure the model is of a token: its step accepted it; it is likely; neither. */
export type Sure = '2' | '1' | '0';

/** A canvas after a step, up to where the answer ends in it. */
export interface Frame {
  /** From 0, from 1, and at most. */
  canvas: number;
  step: number;
  steps: number;
  /** The text of each token, and how sure it is: a character each. */
  pieces: string[];
  sure: string;
}

const LIKELY = 1.5; // nats: about four tokens that would do

export function frameOf(
  { canvas, step, steps, pieces, end, accepted, entropy }: DiffusionStep,
): Frame {
  const sure = (i: number): Sure => (accepted[i] ? '2' : (entropy[i] ?? 0) < LIKELY ? '1' : '0');
  return {
    canvas, step, steps,
    pieces: pieces.slice(0, end),
    sure: Array.from({ length: end }, (_, i) => sure(i)).join(''),
  };
}

export const accepted = ({ sure }: Frame): number => sure.split('2').length - 1;

/** What a person reads below the canvas, or instead of it. */
export function progressOf(frame: Frame): string {
  const { canvas, step, steps, pieces } = frame;
  return `${canvas ? `Part ${canvas + 1}, step` : 'Step'} ${step} of ${steps} at most · `
    + `${accepted(frame)} of ${pieces.length} tokens accepted`;
}

/** Runs of tokens that are equally sure. One that is not is a dot: words that change with every
 *  step are no text yet. */
export function runsOf({ pieces, sure }: Frame): { sure: Sure; text: string }[] {
  const runs: { sure: Sure; text: string }[] = [];
  for (const [i, piece] of pieces.entries()) {
    const kind = (sure[i] ?? '0') as Sure, last = runs.at(-1);
    const text = kind === '0' ? ' ·' : piece;
    if (last?.sure === kind) last.text += text;
    else runs.push({ sure: kind, text });
  }
  return runs;
}

/** The text of the canvases before the one of this frame, each as its last step left it. */
export function textBefore(frames: readonly Frame[], frame: Frame): string {
  const last = new Map<number, Frame>();
  for (const f of frames) if (f.canvas < frame.canvas) last.set(f.canvas, f);
  return [...last.values()].map((f) => f.pieces.join('')).join('');
}

const SMALL = 32_000; // characters of JSON
const MOST = 4096; // frames, and tokens of one, that are read from a file

/** Are they small enough for the history? */
export const isSmall = (frames: readonly Frame[]): boolean =>
  JSON.stringify(frames).length <= SMALL;

/** Frames that a file or a disk holds; null: they cannot be. */
export function toFrames(value: unknown): Frame[] | null {
  if (!Array.isArray(value) || !value.length || value.length > MOST) return null;
  const frames: Frame[] = [];
  for (const one of value as unknown[]) {
    if (typeof one !== 'object' || one === null) return null;
    const { canvas, step, steps, pieces, sure } = one as Partial<Frame>;
    const counts = [canvas, step, steps].every((n) => Number.isInteger(n) && (n as number) >= 0);
    if (!counts || !Array.isArray(pieces) || pieces.length > MOST
      || !pieces.every((p) => typeof p === 'string')
      || typeof sure !== 'string' || sure.length !== pieces.length || /[^012]/.test(sure))
      return null;
    frames.push({ canvas, step, steps, pieces, sure } as Frame);
  }
  return frames;
}
