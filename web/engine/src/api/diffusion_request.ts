// diffusion_request - what a request says to a diffusion model, checked.

import type { ConstraintWish } from './constraint_request.js';
import type { CanvasPiece, DiffusionSettings } from './diffusion_types.js';
import { BezelError, brief, show } from './errors.js';
import type { CanvasOptions, Info } from '../engine/cpu_engine.js';
import type { ConversationOptions } from '../engine/model.js';
import { hint } from './near.js';

type Fields = Readonly<Record<string, unknown>>;

const wrong = (message: string, param: string): never => {
  throw new BezelError(message, 'argument', undefined, param);
};
const cannot = (message: string, param: string): never => {
  throw new BezelError(message, 'unsupported', undefined, param);
};

type Range = readonly [least: number, most: number, whole?: boolean];

const MAX_CANVAS = 4096, MAX_STEPS = 1024; // as the core has them: model/config.h
const ranges = {
  steps: [1, MAX_STEPS, true],
  t_min: [0.01, 100],
  t_max: [0.01, 100],
  entropy_bound: [0, 1e6],
  stability: [0, MAX_STEPS, true],
  confidence: [0, 1e6],
  canvases: [1, 0xffffffff, true],
} satisfies Partial<Record<keyof DiffusionSettings, Range>>;
const names = [...Object.keys(ranges), 'canvas', 'fixed'];

function checkNumber(value: unknown, name: keyof typeof ranges, param: string): number {
  const [least, most, whole]: Range = ranges[name];
  if (typeof value === 'number' && value >= least && value <= most
    && (!whole || Number.isInteger(value)))
    return value;
  return wrong(
    `"${param}" must be ${whole ? 'a whole number' : 'a number'} from ${least} to ${most}, `
      + `not ${show(value)}`,
    param,
  );
}

const isHole = (piece: unknown): boolean => {
  const { hole, draft } = piece as { hole?: unknown; draft?: unknown };
  return Number.isInteger(hole) && (hole as number) > 0 && (hole as number) <= MAX_CANVAS
    && ['string', 'undefined'].includes(typeof draft);
};
const isPiece = (piece: unknown): boolean =>
  typeof piece === 'string'
    || (typeof piece === 'object' && piece !== null
      && ((piece as { end?: unknown }).end === true || isHole(piece)));

/** Ids with what of them stays, or pieces that only the model's vocabulary makes ids of. */
interface GivenCanvas {
  ids?: Pick<CanvasOptions, 'canvas' | 'fixed'>;
  pieces?: readonly CanvasPiece[];
}

function readCanvas(canvas: unknown, fixed: unknown, at: string): GivenCanvas {
  const flags: readonly unknown[] | undefined = Array.isArray(fixed) ? fixed : undefined;
  if (fixed !== undefined && !flags?.every((f) => typeof f === 'boolean'))
    wrong(`"${at}fixed" must be a list of true and false`, `${at}fixed`);
  if (canvas === undefined) {
    if (flags) wrong(`"${at}fixed" needs a "canvas" of token ids`, `${at}fixed`);
    return {};
  }
  const list: readonly unknown[] =
    Array.isArray(canvas) || canvas instanceof Int32Array ? [...canvas] : [];
  if (!list.length || list.length > MAX_CANVAS)
    return wrong(`"${at}canvas" must be a list of token ids, or of texts and holes`, `${at}canvas`);
  if (list.every((id) => Number.isInteger(id) && (id as number) >= -1)) {
    const stays = flags?.map(Number);
    return { ids: { canvas: list as number[], ...(stays && { fixed: stays }) } };
  }
  const odd = list.find((piece) => !isPiece(piece));
  if (odd !== undefined)
    wrong(
      `"${at}canvas" has ${show(odd)}; a piece is a text, {"hole": tokens} or {"end": true}`,
      `${at}canvas`,
    );
  if (flags)
    wrong(`"${at}fixed" is for token ids: texts stay by themselves, holes do not`, `${at}fixed`);
  return { pieces: list as CanvasPiece[] };
}

export interface DiffusionWish {
  options: CanvasOptions;
  pieces: readonly CanvasPiece[] | undefined;
}

/** `at` is what errors put before a name. Undefined: nothing is asked for. */
export function readDiffusion(given: unknown, at = 'diffusion.'): DiffusionWish | undefined {
  if (given === undefined) return undefined;
  if (typeof given !== 'object' || given === null || Array.isArray(given))
    return wrong('"diffusion" must be an object such as {"steps": 16}', 'diffusion');
  const options: CanvasOptions = {}, { canvas, fixed } = given as Fields;
  for (const [name, value] of Object.entries(given)) {
    if (value === null || value === undefined) continue;
    if (!names.includes(name))
      cannot(`there is no "${at}${brief(name)}"${hint(name, names)}`, `${at}${brief(name)}`);
    if (Object.hasOwn(ranges, name))
      options[name as keyof typeof ranges] =
        checkNumber(value, name as keyof typeof ranges, `${at}${name}`);
  }
  const { ids, pieces } = readCanvas(canvas ?? undefined, fixed ?? undefined, at);
  return { options: { ...options, ...ids }, pieces };
}

/** What only one of the two kinds of model can do. What a diffusion model has no use for, and what
 *  clients say without a wish of their own, has no effect: temperature, top_p, top_k, min_p. */
export function checkKind(
  info: Info, options: ConversationOptions, constraint?: ConstraintWish,
): void {
  if (!info.n_canvas) {
    if (options.diffusion)
      cannot('this model draws one token after the other; "diffusion" is not for it', 'diffusion');
    return;
  }
  const only = 'this is a diffusion model, which writes many tokens at once';
  if (constraint)
    cannot(
      `${only}: its answers cannot be constrained yet, as "${constraint.param}" asks`,
      constraint.param,
    );
  if (options.logprobs !== undefined)
    cannot(`${only}: none has a log-probability of its own`, 'logprobs');
  if (options.bias?.length) cannot(`${only}: "logit_bias" is not supported`, 'logit_bias');
  for (const [key, neutral] of [
    ['presence_penalty', 0], ['frequency_penalty', 0], ['repeat_penalty', 1],
  ] as const) {
    const value = options[key];
    if (value !== undefined && value !== neutral && value !== 0)
      cannot(`${only}: "${key}" is not supported`, key);
  }
}
