// completions - answers in OpenAI's shapes, as streams of chunks and as a whole.
//
// Runs where the model lives. Knows no sessions, queues or threads: it is given a conversation to use.

import { Answer, freshSeed, type Place } from './completions_answer.js';
import { ChatParser, type ChatEvent } from './completions_parser.js';
import type { ChatOrder, Order } from './completions_request.js';
import type {
  ChatCompletion, ChatCompletionChunk, ChatDelta, Completion, CompletionLogprobs, FinishReason, Logprobs, TokenInfo, ToolCall, TopLogprob,
} from './completions_types.js';
import { render, type Stop } from './cpu_engine.js';
import { BezelError } from './errors.js';
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

/** Without a seed of the request or of the model's store, every answer is another one. */
function seeded(model: Model, options: ConversationOptions): ConversationOptions {
  return options.seed === undefined && !model.info.sampling.seed ? { ...options, seed: freshSeed() } : options;
}

/** Tokens with their log-probabilities. The one that ends the text is told apart only by what follows, so each is
 *  held until the next. */
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
    this.held = { ...this.show(id, logprob), top_logprobs: (top ?? []).map((t) => this.show(t.id, t.logprob)) };
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

/** The prompt of a chat as text. */
export function chatPrompt(core: Core, model: Model, order: ChatOrder, history = false): string {
  return render(core, order.conversation, { variant: model.info.chat_variant, thinking: order.thinking, history });
}

const THOUGHT_OPEN = '<|channel>thought\n', THOUGHT_CLOSE = '\n<channel|>';

/** What the model has written already, as it would have. */
function begunText({ begun: { reasoning, content }, thinking }: ChatOrder, inThought: boolean): string {
  const thought = inThought ? reasoning : thinking && reasoning ? THOUGHT_OPEN + reasoning : '';
  return content ? thought + (inThought || thought ? THOUGHT_CLOSE : '') + content : thought;
}

class ChatState {
  calls = 0;
  /** Another call may come. */
  open = true;
  private readonly infos: TokenInfos;

  constructor(private readonly head: Head, private readonly order: ChatOrder, model: Model) {
    this.infos = new TokenInfos(model);
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
      choices: [{ index: 0, delta, finish_reason: finish, logprobs }],
      ...(this.order.includeUsage && { usage: null }),
    };
  }

  delta(event: ChatEvent): ChatDelta {
    if ('content' in event) return { content: event.content };
    if ('reasoning' in event) return { reasoning_content: event.reasoning };
    if (this.order.oneCall) this.open = false;
    return { tool_calls: [{ index: this.calls++, id: randomId('call_'), type: 'function', function: { name: event.name, arguments: event.arguments } }] };
  }

  *deltas(events: ChatEvent[]): Generator<ChatCompletionChunk> {
    for (const event of events) if (this.open) yield this.chunk(this.delta(event));
  }
}

/** The answer to a chat. `prompt` is what chatPrompt made. */
export async function* chatChunks(core: Core, model: Model, place: Place, order: ChatOrder, prompt: string, head: Head): AsyncGenerator<ChatCompletionChunk, void, void> {
  const inThought = prompt.endsWith(THOUGHT_OPEN), begun = begunText(order, inThought);
  const parser = new ChatParser(core, { thinking: order.thinking, starts_in_thought: inThought, tools: order.tools });
  const answer = new Answer(place), state = new ChatState(head, order, model);
  try {
    yield state.chunk({ role: 'assistant', content: '' });
    parser.feed(begun); // the caller has it
    for await (const step of answer.steps(model.tokenize(prompt + begun), seeded(model, order.options), order.returnProgress)) {
      if ('read' in step) {
        yield { ...state.chunk({}), prompt_progress: { total: step.of, cache: step.kept, processed: step.read } };
        continue;
      }
      state.add(step.piece);
      yield* state.deltas(parser.feed(step.piece.text));
      if (!state.open) break; // one call was wanted, and it is there
    }
    const stop: Stop = state.open ? answer.stop : 'end', cut = stop === 'length' || stop === 'context';
    state.end(stop);
    // A call that the limit cut short may read as if it were whole; nobody should act on it.
    yield* state.deltas(parser.end().filter((e) => !cut || !('name' in e)));
    yield { ...state.chunk({}, cut ? 'length' : state.calls ? 'tool_calls' : 'stop'), timings: answer.timings };
    if (order.includeUsage) yield { ...head, object: 'chat.completion.chunk', choices: [], usage: answer.usage };
  } finally {
    parser.close();
  }
}

/** All chunks as one answer; they must have been asked to include usage. */
export async function wholeChat(chunks: AsyncIterable<ChatCompletionChunk>): Promise<ChatCompletion> {
  let content = '', reasoning = '', finish: FinishReason | null = null;
  const calls: ToolCall[] = [], tokens: TokenInfo[] = [];
  let last: ChatCompletionChunk | undefined, timings: ChatCompletionChunk['timings'];
  for await (const chunk of chunks) {
    last = chunk;
    timings ??= chunk.timings;
    for (const { delta, finish_reason, logprobs } of chunk.choices) {
      content += delta.content ?? '';
      reasoning += delta.reasoning_content ?? '';
      for (const { index: _, ...call } of delta.tool_calls ?? []) calls.push(call);
      tokens.push(...(logprobs?.content ?? []));
      finish ??= finish_reason;
    }
  }
  if (!last?.usage || !timings || !finish) throw new BezelError('the answer ended without saying why', 'cancelled');
  const message = {
    role: 'assistant' as const,
    content: content || !calls.length ? content : null,
    ...(reasoning && { reasoning_content: reasoning }),
    ...(calls.length && { tool_calls: calls }),
    refusal: null,
  };
  const { id, created, model, usage } = last;
  return { id, object: 'chat.completion', created, model, choices: [{ index: 0, message, finish_reason: finish, logprobs: tokens.length ? { content: tokens, refusal: null } : null }], usage, timings };
}

// ---- raw texts ----

const legacy = (infos: readonly TokenInfo[], offset: { at: number }): CompletionLogprobs | null => {
  if (!infos.length) return null;
  const out: CompletionLogprobs = { tokens: [], token_logprobs: [], top_logprobs: [], text_offset: [] };
  for (const { token, logprob, top_logprobs } of infos) {
    out.tokens.push(token);
    out.token_logprobs.push(logprob);
    out.top_logprobs.push(Object.fromEntries(top_logprobs.map((t) => [t.token, t.logprob])));
    out.text_offset.push(offset.at);
    offset.at += token.length;
  }
  return out;
};

export async function* rawChunks(model: Model, place: Place, order: Order, ids: Int32Array, head: Head): AsyncGenerator<Completion, void, void> {
  const answer = new Answer(place), infos = new TokenInfos(model), offset = { at: 0 };
  const chunk = (text: string, finish: 'stop' | 'length' | null = null): Completion => ({
    ...head,
    object: 'text_completion',
    choices: [{ index: 0, text, finish_reason: finish, logprobs: legacy(infos.take(), offset) }],
    ...(order.includeUsage && { usage: null }),
  });
  for await (const step of answer.steps(ids, seeded(model, order.options), order.returnProgress)) {
    if ('read' in step) {
      yield { ...chunk(''), prompt_progress: { total: step.of, cache: step.kept, processed: step.read } };
      continue;
    }
    infos.add(step.piece);
    if (step.piece.text) yield chunk(step.piece.text);
  }
  infos.end(answer.stop);
  yield { ...chunk('', answer.stop === 'length' || answer.stop === 'context' ? 'length' : 'stop'), timings: answer.timings };
  if (order.includeUsage) yield { ...head, object: 'text_completion', choices: [], usage: answer.usage };
}

export async function wholeText(chunks: AsyncIterable<Completion>): Promise<Completion> {
  let text = '', finish: 'stop' | 'length' | null = null, last: Completion | undefined, timings: Completion['timings'];
  let all: CompletionLogprobs | null = null;
  for await (const chunk of chunks) {
    last = chunk;
    timings ??= chunk.timings;
    for (const choice of chunk.choices) {
      text += choice.text;
      finish ??= choice.finish_reason;
      const more = choice.logprobs;
      if (all && more) for (const key of ['tokens', 'token_logprobs', 'top_logprobs', 'text_offset'] as const) (all[key] as unknown[]).push(...more[key]);
      else all ??= more;
    }
  }
  if (!last?.usage || !timings || !finish) throw new BezelError('the answer ended without saying why', 'cancelled');
  const { id, created, model, usage } = last;
  return { id, object: 'text_completion', created, model, choices: [{ index: 0, text, finish_reason: finish, logprobs: all }], usage, timings };
}
