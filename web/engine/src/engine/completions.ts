// completions - answers in OpenAI's shapes, as streams of chunks and as a whole.
//
// Runs where the model lives. Knows no sessions, queues or threads: it is given a conversation to
// use.

import { showStep } from './canvas.js';
import { addTimings, Answer, freshSeed, Tally, type Place } from './completions_answer.js';
import { ChatStops } from './chat_stops.js';
import { ChatParser, type ChatEvent } from './completions_parser.js';
import type { ChatOrder, RawOrder } from '../api/completions_request.js';
import type {
  ChatCompletion, ChatCompletionChunk, ChatDelta, Completion, CompletionLogprobs, FinishReason,
  Logprobs, TokenInfo, ToolCall, ToolCallDelta, TopLogprob,
} from '../api/completions_types.js';
import type { Stop } from './boundary.js';
import type { ChatTokens } from './cpu_engine.js';
import { BezelError } from '../api/errors.js';
import { Logprobs as RowLogprobs } from './logprobs.js';
import type { ConversationOptions, Model, Piece } from './model.js';
import type { Core } from './wasm.js';

/** What every chunk of an answer repeats. */
export interface Head {
  id: string;
  created: number;
  model: string;
}

const encoder = new TextEncoder();

function randomId(prefix: string): string {
  const bytes = crypto.getRandomValues(new Uint8Array(12));
  return prefix + Array.from(bytes, (b) => b.toString(16).padStart(2, '0')).join('');
}

export function newHead(kind: 'chatcmpl-' | 'cmpl-', model: string): Head {
  return { id: randomId(kind), created: Math.floor(Date.now() / 1000), model };
}

/** Without a seed of the request or of the model's store, every answer is another one; of
 *  several each has the next seed. At temperature 0 a diffusion model answers the same each time,
 *  too. */
function seeded(
  { info }: Model, options: ConversationOptions, index: number,
): ConversationOptions {
  const same = info.n_canvas > 0 && (options.temperature ?? info.sampling.temperature) === 0;
  const seed = options.seed ?? (info.sampling.seed || (same ? 0 : freshSeed()));
  return { ...options, seed: BigInt(seed) + BigInt(index) };
}

/** Each of n answers at its place, counted when it is over; waiting is the first one's. */
function* answers(
  place: Place, n: number, tally: Tally,
): Generator<[index: number, answer: Answer], void, void> {
  for (let i = 0; i < n; i++) {
    const now = performance.now();
    const answer = new Answer(i ? { ...place, asked: now, begun: now } : place);
    yield [i, answer];
    tally.add(answer, i === 0);
  }
}

/** Tokens with their log-probabilities. The one that ends the text is told apart only by what
 *  follows, so each is held until the next. */
class TokenInfos {
  private readonly ready: TokenInfo[] = [];
  private held: TokenInfo | undefined;

  constructor(private readonly model: Model) {}

  private show(id: number, logprob: number): TopLogprob {
    const token = this.model.detokenize(Int32Array.of(id), true);
    return { token, logprob, bytes: token.includes('\ufffd') ? null : [...encoder.encode(token)] };
  }

  add({ id, logprob, top }: Piece): void {
    if (logprob === undefined) return;
    if (this.held) this.ready.push(this.held);
    this.held = {
      ...this.show(id, logprob), top_logprobs: (top ?? []).map((t) => this.show(t.id, t.logprob)),
    };
  }

  end(stop: Stop): void {
    if (this.held && stop !== 'end') this.ready.push(this.held);
    this.held = undefined;
  }

  take(): TokenInfo[] {
    return this.ready.splice(0);
  }
}

// ---- chats ----

class ChatState {
  calls = 0;
  /** More of it is wanted: neither was a stop string met, nor has the only call come. */
  open = true;
  readonly stops: ChatStops;
  private readonly infos: TokenInfos;

  constructor(
    private readonly head: Head, private readonly order: ChatOrder, model: Model,
    private readonly index: number,
  ) {
    this.infos = new TokenInfos(model);
    this.stops = new ChatStops(order.stop);
  }

  add(piece: Piece): void {
    this.infos.add(piece);
  }

  end(stop: Stop): void {
    this.infos.end(stop);
  }

  chunk(delta: ChatDelta, finish: FinishReason | null = null): ChatCompletionChunk {
    const content = this.infos.take();
    const logprobs: Logprobs | null = content.length ? { content, refusal: null } : null;
    return {
      ...this.head,
      object: 'chat.completion.chunk',
      choices: [{ index: this.index, delta, finish_reason: finish, logprobs }],
      ...(this.order.includeUsage && { usage: null }),
    };
  }

  delta(event: ChatEvent): ChatDelta {
    if ('content' in event) return { content: event.content };
    if ('reasoning' in event) return { reasoning_content: event.reasoning };
    if (!('name' in event))
      return { tool_calls: [{ index: this.calls - 1, function: event }] };
    const { name, arguments: whole } = event;
    // a constraint sees to it by itself
    if (this.order.oneCall && whole !== undefined) this.open = false;
    return {
      tool_calls: [{
        index: this.calls++,
        id: randomId('call_'),
        type: 'function',
        function: { name, arguments: whole ?? '' },
      }],
    };
  }

  private *content(text: string): Generator<ChatCompletionChunk> {
    if (text) yield this.chunk(this.delta({ content: text }));
  }

  *deltas(events: ChatEvent[]): Generator<ChatCompletionChunk> {
    for (const event of events) {
      if (!this.open) return;
      if ('content' in event) {
        yield* this.content(this.stops.feed(event.content));
        if (this.stops.met) this.open = false;
      } else {
        yield* this.content(this.stops.end());
        yield this.chunk(this.delta(event));
      }
    }
  }

  /** What is left of the answer. */
  *rest(events: ChatEvent[]): Generator<ChatCompletionChunk> {
    yield* this.deltas(events);
    if (this.open) yield* this.content(this.stops.end());
  }
}

/** The answers to a chat, one after the other. `prompt` is the tokens of its conversation; `enter`
 *  waits for a place, once who asked has heard that there will be an answer. */
export async function* chatChunks(
  core: Core, model: Model, enter: () => Promise<Place>, order: ChatOrder, prompt: ChatTokens,
  head: Head,
): AsyncGenerator<ChatCompletionChunk, void, void> {
  const tally = new Tally();
  yield new ChatState(head, order, model, 0).chunk({ role: 'assistant', content: '' });
  for (const [index, answer] of answers(await enter(), order.n, tally))
    yield* chatChoice(core, model, answer, order, prompt, head, index);
  if (order.includeUsage)
    yield { ...head, object: 'chat.completion.chunk', choices: [], usage: tally.usage };
}

async function* chatChoice(
  core: Core, model: Model, answer: Answer, order: ChatOrder, prompt: ChatTokens, head: Head,
  index: number,
): AsyncGenerator<ChatCompletionChunk, void, void> {
  const parser = new ChatParser(core, {
    thinking: order.thinking, starts_in_thought: prompt.inThought, tools: order.tools,
    constrained: order.options.constraint !== undefined,
  });
  const state = new ChatState(head, order, model, index);
  try {
    if (index) yield state.chunk({ role: 'assistant', content: '' });
    for await (const step of answer.steps(
      prompt.ids, seeded(model, order.options, index), order.returnProgress,
    )) {
      if ('read' in step) {
        yield {
          ...state.chunk({}),
          prompt_progress: { total: step.of, cache: step.kept, processed: step.read },
        };
        continue;
      }
      if ('canvas' in step) {
        if (order.returnSteps)
          yield { ...state.chunk({}), diffusion_step: showStep(model, step.canvas) };
        continue;
      }
      state.add(step.piece);
      yield* state.deltas(parser.feed(step.piece.text));
      if (!state.open) break;
    }
    const stop: Stop = state.open ? answer.stop : state.stops.met ? 'string' : 'end';
    const cut = stop === 'length' || stop === 'context';
    state.end(stop);
    // A call that the limit cut short may read as if it were whole; nobody should act on it.
    yield* state.rest(parser.end().filter((e) => !cut || !('name' in e)));
    yield {
      ...state.chunk({}, cut ? 'length' : state.calls ? 'tool_calls' : 'stop'),
      timings: answer.timings,
    };
  } finally {
    parser.close();
  }
}

/** One answer, put together. */
interface ChatParts {
  content: string;
  reasoning: string;
  finish: FinishReason | null;
  readonly calls: ToolCall[];
  readonly tokens: TokenInfo[];
}

/** The limit may have cut the last one short, of which nobody has use. */
function isWhole({ function: { arguments: text } }: ToolCall): boolean {
  try {
    JSON.parse(text);
    return true;
  } catch {
    return false;
  }
}

function wholeChoice(
  { content, reasoning, finish, calls: begun, tokens }: ChatParts, index: number,
): ChatCompletion['choices'][number] {
  if (!finish) throw new BezelError('the answer ended without saying why', 'cancelled');
  const calls = finish === 'length' ? begun.filter(isWhole) : begun;
  const message = {
    role: 'assistant' as const,
    content: content || !calls.length ? content : null,
    ...(reasoning && { reasoning_content: reasoning }),
    ...(calls.length && { tool_calls: calls }),
    refusal: null,
  };
  return {
    index,
    message,
    finish_reason: finish,
    logprobs: tokens.length ? { content: tokens, refusal: null } : null,
  };
}

function addCall(calls: ToolCall[], { index, id = '', function: f }: ToolCallDelta): void {
  const { name = '', arguments: more } = f;
  const call = (calls[index] ??= { id, type: 'function', function: { name, arguments: '' } });
  call.function.arguments += more;
}

/** All chunks as one answer; they must have been asked to include usage. */
export async function wholeChat(
  chunks: AsyncIterable<ChatCompletionChunk>,
): Promise<ChatCompletion> {
  const all: ChatParts[] = [];
  let last: ChatCompletionChunk | undefined, timings: ChatCompletionChunk['timings'];
  for await (const chunk of chunks) {
    last = chunk;
    timings = addTimings(timings, chunk.timings);
    for (const { index, delta, finish_reason, logprobs } of chunk.choices) {
      const one =
        (all[index] ??= { content: '', reasoning: '', finish: null, calls: [], tokens: [] });
      one.content += delta.content ?? '';
      one.reasoning += delta.reasoning_content ?? '';
      for (const call of delta.tool_calls ?? []) addCall(one.calls, call);
      one.tokens.push(...(logprobs?.content ?? []));
      one.finish ??= finish_reason;
    }
  }
  if (!last?.usage || !timings)
    throw new BezelError('the answer ended without saying why', 'cancelled');
  const { id, created, model, usage } = last;
  return {
    id, object: 'chat.completion', created, model, choices: all.map(wholeChoice), usage, timings,
  };
}

// ---- raw texts ----

/** A prompt and the text that an echo repeats. */
export interface RawPrompt {
  ids: Int32Array;
  text: string;
}

const legacy = (infos: readonly TokenInfo[], offset: { at: number }): CompletionLogprobs | null => {
  if (!infos.length) return null;
  const out: CompletionLogprobs = {
    tokens: [], token_logprobs: [], top_logprobs: [], text_offset: [],
  };
  for (const { token, logprob, top_logprobs } of infos) {
    out.tokens.push(token);
    out.token_logprobs.push(Number.isNaN(logprob) ? null : logprob);
    out.top_logprobs.push(
      Number.isNaN(logprob)
        ? null
        : Object.fromEntries(top_logprobs.map((t) => [t.token, t.logprob])),
    );
    out.text_offset.push(offset.at);
    offset.at += token.length;
  }
  return out;
};

/** The log-probabilities of a prompt's own tokens, of which the first has none. A <bos> that the
 *  text does not spell is left out. */
async function promptInfos(
  model: Model, { conversation, signal, go, rest }: Place, { ids, text }: RawPrompt, top: number,
): Promise<TokenInfo[]> {
  const show = (id: number, logprob: number): TopLogprob => ({
    token: model.detokenize(Int32Array.of(id), true), logprob, bytes: null,
  });
  const infos: TokenInfo[] = [{ ...show(ids[0] as number, NaN), top_logprobs: [] }];
  await go();
  conversation.truncate(0);
  await conversation.logits(ids, (position, row) => {
    const next = ids[position + 1], all = next === undefined ? undefined : new RowLogprobs(row);
    if (next !== undefined && all)
      infos.push({
        ...show(next, all.of(next)), top_logprobs: all.top(top).map((t) => show(t.id, t.logprob)),
      });
  }, signal, () => go());
  rest();
  return text.startsWith(infos[0]?.token ?? '') ? infos : infos.slice(1);
}

/** The answers to each prompt, one after the other; the prompts are known with the place. */
export async function* rawChunks<P extends Place>(
  model: Model,
  enter: () => Promise<P>,
  order: RawOrder,
  promptsAt: (place: P) => readonly RawPrompt[],
  head: Head,
): AsyncGenerator<Completion, void, void> {
  const tally = new Tally(), place = await enter();
  for (const [i, prompt] of promptsAt(place).entries()) {
    const there = i ? { ...place, asked: performance.now(), begun: performance.now() } : place;
    for (const [index, answer] of answers(there, order.n, tally))
      yield* rawChoice(model, there, answer, order, prompt, head, i * order.n + index);
  }
  if (order.includeUsage)
    yield { ...head, object: 'text_completion', choices: [], usage: tally.usage };
}

async function* rawChoice(
  model: Model, place: Place, answer: Answer, order: RawOrder, prompt: RawPrompt, head: Head,
  index: number,
): AsyncGenerator<Completion, void, void> {
  const infos = new TokenInfos(model), offset = { at: 0 }, { logprobs, n_max } = order.options;
  const chunk = (
    text: string, finish: 'stop' | 'length' | null = null, logprobs = legacy(infos.take(), offset),
  ): Completion => ({
    ...head,
    object: 'text_completion',
    choices: [{ index, text, finish_reason: finish, logprobs }],
    ...(order.includeUsage && { usage: null }),
  });
  if (order.echo)
    yield chunk(
      prompt.text,
      null,
      logprobs === undefined
        ? null
        : legacy(await promptInfos(model, place, prompt, logprobs), offset),
    );
  const steps = n_max === 0
    ? answer.read(prompt.ids)
    : answer.steps(prompt.ids, seeded(model, order.options, index), order.returnProgress);
  for await (const step of steps) {
    if ('read' in step) {
      yield {
        ...chunk(''), prompt_progress: { total: step.of, cache: step.kept, processed: step.read },
      };
      continue;
    }
    if ('canvas' in step) {
      if (order.returnSteps) yield { ...chunk(''), diffusion_step: showStep(model, step.canvas) };
      continue;
    }
    infos.add(step.piece);
    if (step.piece.text) yield chunk(step.piece.text);
  }
  infos.end(answer.stop);
  yield {
    ...chunk('', answer.stop === 'length' || answer.stop === 'context' ? 'length' : 'stop'),
    timings: answer.timings,
  };
}

export async function wholeText(chunks: AsyncIterable<Completion>): Promise<Completion> {
  const all: Completion['choices'] = [];
  let last: Completion | undefined, timings: Completion['timings'];
  for await (const chunk of chunks) {
    last = chunk;
    timings = addTimings(timings, chunk.timings);
    for (const { index, text, finish_reason, logprobs: more } of chunk.choices) {
      const one = (all[index] ??= { index, text: '', finish_reason: null, logprobs: null });
      one.text += text;
      one.finish_reason ??= finish_reason;
      if (one.logprobs && more)
        for (const key of ['tokens', 'token_logprobs', 'top_logprobs', 'text_offset'] as const)
          (one.logprobs[key] as unknown[]).push(...more[key]);
      else one.logprobs ??= more;
    }
  }
  if (!last?.usage || !timings || all.some((c) => !c.finish_reason))
    throw new BezelError('the answer ended without saying why', 'cancelled');
  const { id, created, model, usage } = last;
  return { id, object: 'text_completion', created, model, choices: all, usage, timings };
}
