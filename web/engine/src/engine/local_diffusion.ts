// local_diffusion - what can be asked of a diffusion model beside chats and texts, where the model
// lives: answers step by step, and words of an answer written again between what stands around
// them.

import { readChat } from '../api/completions_request.js';
import type {
  ChatCompletion, ChatCompletionChunk, ChatRequest, Completion, CompletionRequest,
} from '../api/completions_types.js';
import { readDiffusion } from '../api/diffusion_request.js';
import type {
  DiffusionResult, DiffusionSettings, DiffusionStep, EditRequest, EditResult, EditStep,
} from '../api/diffusion_types.js';
import { BezelError } from '../api/errors.js';
import { CanvasDraft, showStep } from './canvas.js';
import { wholeChat, wholeText } from './completions.js';
import { Answer, freshSeed, type Place } from './completions_answer.js';
import type { CanvasStep, ConversationOptions, Model } from './model.js';
import type { Spec } from './rpc.js';

/** What comes over the port: steps, and the result at the end. */
export type Told<S, R> = { step: S } | { result: R };

/** An edit as it travels. */
export type EditParams = Omit<EditRequest, keyof DiffusionSettings | 'onStep' | 'signal'>
  & { diffusion: DiffusionSettings };

export interface DiffusionStreams {
  diffuse: Spec<CompletionRequest, Told<DiffusionStep, DiffusionResult>>;
  diffuseChat: Spec<ChatRequest, Told<DiffusionStep, DiffusionResult>>;
  edit: Spec<EditParams, Told<EditStep, EditResult>>;
}

// ---- step by step ----

/** The chunks of an answer as steps and a result. */
export async function* told<C extends ChatCompletionChunk | Completion>(
  chunks: AsyncIterable<C>, whole: (rest: AsyncIterable<C>) => Promise<ChatCompletion | Completion>,
): AsyncGenerator<Told<DiffusionStep, DiffusionResult>, void, void> {
  const rest: C[] = [], last: DiffusionStep[] = [];
  for await (const chunk of chunks) {
    const { diffusion_step: step } = chunk;
    if (!step) rest.push(chunk);
    else {
      if (step.final) last.push(step);
      yield { step };
    }
  }
  async function* gathered(): AsyncGenerator<C> {
    yield* rest;
  }
  yield { result: resultOf(await whole(gathered()), last) };
}

export const toldChat = (
  chunks: AsyncIterable<ChatCompletionChunk>,
): AsyncGenerator<Told<DiffusionStep, DiffusionResult>, void, void> => told(chunks, wholeChat);
export const toldText = (
  chunks: AsyncIterable<Completion>,
): AsyncGenerator<Told<DiffusionStep, DiffusionResult>, void, void> => told(chunks, wholeText);

const whyOf = ({ stopped }: { stopped: CanvasStep['stopped'] }): 'stable' | 'steps' =>
  (stopped === 'stable' ? 'stable' : 'steps');

function resultOf(
  { choices: [choice], usage, timings }: ChatCompletion | Completion,
  last: readonly DiffusionStep[],
): DiffusionResult {
  if (!choice?.finish_reason || !usage || !timings)
    throw new BezelError('the answer ended without saying why', 'cancelled');
  return {
    ...('message' in choice
      ? { text: choice.message.content ?? '', message: choice.message }
      : { text: choice.text }),
    finish_reason: choice.finish_reason,
    tokens: last.flatMap(({ final }) => final ?? []),
    canvases: last.map((step) => ({ steps: step.step, stopped: whyOf(step) })),
    usage,
    timings,
  };
}

// ---- edits ----

/** An edit as tokens: what is read before the canvas, the canvas, and where the hole is in it; and
 *  from where to where in the text the hole is. */
export interface EditPlan {
  ids: Int32Array;
  options: ConversationOptions;
  hole: [first: number, count: number];
  span: [from: number, to: number];
}

/** Words begin with their space, as tokens do. */
function spanOf(text: string, [from, to]: EditParams['selection']): [number, number] {
  const end = to > from + 1 && text[to - 1] === ' ' ? to - 1 : to;
  return [from > 0 && text[from - 1] === ' ' && text[from] !== ' ' ? from - 1 : from, end];
}

/** The conversation that the answer belongs to. With an instruction it goes on with the old answer
 *  and what is to become of it. */
function conversationOf({ messages, text, selection: [from, to], instruction }: EditParams) {
  if (!instruction) return messages;
  const words = text.slice(from, to);
  return [
    ...messages,
    { role: 'assistant' as const, content: text },
    {
      role: 'user' as const,
      content:
        `Write your last answer again. Change only the words “${words}” in it: ${instruction}`,
    },
  ];
}

/** What stands before the hole is in the canvas, as in any answer, but for what has no room there
 *  beside the hole and some of what follows: that is read before it. */
export function planEdit(model: Model, context: number, params: EditParams): EditPlan {
  const { text, length, diffusion, seed, tools, thinking, adapters } = params;
  const span = spanOf(text, params.selection), [from, to] = span;
  const { n_canvas: most, sampling } = model.info;
  const order = readChat({
    messages: conversationOf(params), ...(tools && { tools }), ...(thinking && { thinking }),
    ...(seed !== undefined && { seed }), ...(adapters && { adapters }),
  }, model.info);
  const prompt = model.chatTokens(order.conversation, { thinking: order.thinking });
  const ids = (words: string): Int32Array => model.tokenize(words, { bos: false, plain: true });
  const before = ids(text.slice(0, from)), after = ids(text.slice(to));
  const count = length ?? Math.max(1, ids(text.slice(from, to)).length);
  if (count > most)
    throw new BezelError(
      `the ${length ? 'new words have' : 'selection has'} ${count} tokens; this model's canvas has `
        + most,
      'argument',
      undefined,
      length ? 'length' : 'selection',
    );
  const seen = Math.min(after.length, most >> 2); // of what follows, at least
  const cut = Math.min(before.length, Math.max(0, before.length + count + seen - most));
  const first = before.length - cut, right = after.subarray(0, most - first - count);
  const draft = new CanvasDraft(model).add(before.subarray(cut), 1).hole(count).add(right, 1);
  const n = draft.canvas.length;
  if (right.length === after.length && n < most) draft.end();
  const read = new Int32Array(prompt.ids.length + cut);
  read.set(prompt.ids);
  read.set(before.subarray(0, cut), prompt.ids.length);
  if (read.length + n > context)
    throw new BezelError(
      `the conversation with the answer has ${read.length + n} tokens, which do not fit into the `
        + `context of ${context}`,
      'limit',
      undefined,
      'messages',
    );
  return {
    ids: read,
    hole: [first, count],
    span,
    options: {
      seed: order.options.seed ?? (sampling.seed || freshSeed()),
      n_max: n, ignore_end: true, stop: [],
      diffusion: {
        ...readDiffusion(diffusion)?.options, ...draft.whole, canvases: 1,
      },
    },
  };
}

/** The steps of an edit, and what it made of the answer. */
export async function* editSteps(
  model: Model, enter: () => Promise<Place>, params: EditParams,
  { ids, options, hole, span: [from, to] }: EditPlan,
): AsyncGenerator<Told<EditStep, EditResult>, void, void> {
  const { text, selection: [selected] } = params, answer = new Answer(await enter());
  let last: CanvasStep | undefined;
  const found = ({ tokens }: CanvasStep): Int32Array => tokens.slice(hole[0], hole[0] + hole[1]);
  /** The words, and the space before them that is not selected. */
  const wordsOf = (step: CanvasStep): [words: string, space: string] => {
    const all = model.detokenize(found(step)), space = from < selected && all[0] === ' ' ? ' ' : '';
    return [all.slice(space.length), space];
  };
  for await (const step of answer.steps(ids, options, false)) {
    if (!('canvas' in step)) continue;
    last = step.canvas;
    yield { step: { ...showStep(model, last), replacement: wordsOf(last)[0], hole } };
  }
  if (!last) throw new BezelError('the context has no room for a canvas', 'limit');
  const tokens = found(last), [replacement, space] = wordsOf(last), start = from + space.length;
  yield {
    result: {
      text: text.slice(0, start) + replacement + text.slice(to),
      replacement,
      selection: [start, start + replacement.length],
      tokens: [...tokens],
      steps: last.step,
      stopped: whyOf(last),
      usage: answer.usage,
      timings: answer.timings,
    },
  };
}
