// canvas - what a step of a diffusion model shows, read from the words that a backend hands over
// (src/ops/canvas.h); texts made of such steps; and canvases made of texts.

import type { CanvasPiece, DiffusionStep } from '../api/diffusion_types.js';
import { BezelError } from '../api/errors.js';
import { CANVAS_STATE, CANVAS_STOP, type HostCanvas, type Stop } from './boundary.js';
import type { CanvasOptions, Info } from './cpu_engine.js';
import type { CanvasStep, Model, Piece } from './model.js';

/** The words of a step, which is one of the text's canvas number `canvas`. The step keeps them. */
export function readCanvas(at: HostCanvas, words: ArrayBuffer, canvas: number): CanvasStep {
  const { n, ids, best, entropy, accepted } = at, state = new DataView(words);
  const bits = new Uint32Array(words, 4 * accepted, Math.ceil(n / 32));
  const whole = (offset: number): number => state.getUint32(offset, true);
  const real = (offset: number): number => state.getFloat32(offset, true);
  const step = whole(CANVAS_STATE.step), steps = whole(CANVAS_STATE.nSteps);
  const tMin = real(CANVAS_STATE.tMin), tMax = real(CANVAS_STATE.tMax);
  return {
    canvas,
    step,
    steps,
    temperature: tMin + ((tMax - tMin) * (steps - step + 1)) / steps,
    tokens: new Int32Array(words, 4 * best, n),
    noisy: new Int32Array(words, 4 * ids, n),
    accepted: Array.from({ length: n }, (_, i) => (((bits[i >> 5] ?? 0) >>> (i & 31)) & 1) === 1),
    entropy: new Float32Array(words, 4 * entropy, n),
    meanEntropy: real(CANVAS_STATE.meanEntropy),
    stopped: CANVAS_STOP[whole(CANVAS_STATE.stopped)] ?? 'goes-on',
  };
}

/** The tokens alone. A canvas's text is certain with its last token. */
export async function* piecesOf(
  steps: AsyncGenerator<CanvasStep, { stop: Stop }, void>,
): AsyncGenerator<Piece, { stop: Stop }, void> {
  try {
    for (;;) {
      const next = await steps.next();
      if (next.done) return next.value;
      const { ids, text } = next.value.final ?? { ids: [], text: '' };
      for (const [i, id] of ids.entries()) yield { id, text: i + 1 === ids.length ? text : '' };
    }
  } finally {
    await steps.return({ stop: 'cancelled' });
  }
}

// ---- for people ----

const KNOWN = 1 << 14; // texts of tokens that are kept: canvases repeat theirs

interface Words {
  texts: Map<number, string>;
  ends: ReadonlySet<number>;
}

const known = new WeakMap<Model, Words>();

function wordsOf(model: Model): Words {
  let words = known.get(model);
  if (!words) known.set(model, (words = { texts: new Map(), ends: new Set(model.ends()) }));
  if (words.texts.size > KNOWN) words.texts.clear();
  return words;
}

/** A step as it goes over the wire. */
export function showStep(model: Model, step: CanvasStep): DiffusionStep {
  const { tokens, noisy, entropy, meanEntropy, final, ...rest } = step;
  const { texts, ends } = wordsOf(model);
  const textOf = (id: number): string => {
    const found = texts.get(id) ?? model.detokenize(Int32Array.of(id));
    texts.set(id, found);
    return found;
  };
  const last = tokens.findIndex((id) => ends.has(id)), end = last < 0 ? tokens.length : last;
  return {
    ...rest, tokens: [...tokens], pieces: Array.from(tokens, textOf), end,
    text: model.detokenize(tokens.subarray(0, end)), noisy: [...noisy], entropy: [...entropy],
    mean_entropy: meanEntropy, ...(final && { final: [...final.ids] }),
  };
}

// ---- a given canvas ----

/** The token that ends a turn. */
export function endOf(model: Model): number {
  const [id = -1] = model.tokenize('<turn|>', { bos: false });
  return id;
}

/** A canvas in the making: tokens, and which of them stay. */
export class CanvasDraft {
  readonly canvas: number[] = [];
  readonly fixed: number[] = [];

  constructor(private readonly model: Model) {}

  add(ids: Iterable<number>, fixed: 0 | 1): this {
    for (const id of ids) {
      this.canvas.push(id);
      this.fixed.push(fixed);
    }
    return this;
  }

  text(text: string): this {
    return this.add(this.model.tokenize(text, { bos: false, plain: true }), 1);
  }

  /** So many tokens to be found, which begin as the draft's as far as there are some. */
  hole(n: number, draft = ''): this {
    const ids = draft ? this.model.tokenize(draft, { bos: false, plain: true }) : [];
    return this.add(Array.from({ length: n }, (_, i) => ids[i] ?? -1), 0);
  }

  end(): this {
    return this.add([endOf(this.model)], 1);
  }

  /** Up to its end, where all is free. */
  get whole(): Required<Pick<CanvasOptions, 'canvas' | 'fixed'>> {
    return padded(this.canvas, this.fixed, this.model.info);
  }
}

/** A whole canvas, random past the tokens that are given. */
export const padded = (
  canvas: readonly number[], fixed: readonly number[], { n_canvas: n }: Info,
): Required<Pick<CanvasOptions, 'canvas' | 'fixed'>> => ({
  canvas: Array.from({ length: Math.max(n, canvas.length) }, (_, i) => canvas[i] ?? -1),
  fixed: Array.from({ length: Math.max(n, canvas.length) }, (_, i) => fixed[i] ?? 0),
});

/** Texts and holes as tokens. */
export function canvasOf(
  model: Model, pieces: readonly CanvasPiece[],
): Pick<CanvasOptions, 'canvas' | 'fixed'> {
  const draft = new CanvasDraft(model);
  for (const piece of pieces) {
    if (typeof piece === 'string') draft.text(piece);
    else if ('end' in piece) draft.end();
    else draft.hole(piece.hole, piece.draft);
  }
  return checked(draft.whole, model.info);
}

/** Not longer than the model's, of its tokens, and what stays is there. */
export function checked<C extends Pick<CanvasOptions, 'canvas' | 'fixed'>>(
  given: C, { n_canvas: most, n_vocab: end }: Info,
): C {
  const { canvas = [], fixed = [] } = given;
  const wrong = (message: string, param: string): never => {
    throw new BezelError(message, 'argument', undefined, `diffusion.${param}`);
  };
  if (canvas.length > most)
    wrong(`the given canvas has ${canvas.length} tokens; this model's has ${most}`, 'canvas');
  const unknown = canvas.find((id) => id >= end);
  if (unknown !== undefined)
    wrong(`token id ${unknown} in the canvas; this vocabulary ends at ${end - 1}`, 'canvas');
  const empty = canvas.findIndex((id, i) => id < 0 && fixed[i]);
  if (empty >= 0) wrong(`position ${empty} of the canvas is fixed and has no token`, 'fixed');
  return given;
}
