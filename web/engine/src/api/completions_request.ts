// completions_request - what a request asks for, checked: OpenAI's fields to the core's options.
//
// A parameter that would change the answer is never ignored: what is unknown here, or known and not
// possible yet, is an error that names it. `null` counts as absent. Fields that ask for nothing are
// accepted (completions_extras.ts).

import type { ChatRequest, CompletionRequest, SamplingRequest } from './completions_types.js';
import {
  checkNeutral, isEmpty, neutral, templateThinking, withoutEffect,
} from './completions_extras.js';
import {
  contentFields, readConstraint, readTools, type ConstraintWish,
} from './constraint_request.js';
import { readDiffusion } from './diffusion_request.js';
import type { CanvasPiece } from './diffusion_types.js';
import { BezelError, brief, show } from './errors.js';
import type { ConversationOptions } from '../engine/model.js';
import { hint } from './near.js';

/** The order of a request, ready for a conversation. */
export interface Order {
  options: ConversationOptions;
  /** Answers to each prompt. */
  n: number;
  includeUsage: boolean;
  returnProgress: boolean;
  returnSteps: boolean;
  stream: boolean;
  /** What the first canvas of a diffusion model is made of. */
  canvas: readonly CanvasPiece[] | undefined;
  /** What the answer keeps to; undefined: nothing. */
  constraint: ConstraintWish | undefined;
}

export interface ChatOrder extends Order {
  thinking: boolean;
  messages: readonly Readonly<Record<string, unknown>>[];
  /** {"messages", "tools", "begun"} as JSON for the renderer. */
  conversation: string;
  /** The oldest messages may be dropped so that it fits. */
  truncates: boolean;
  /** JSON of the tools, or undefined. */
  tools: string | undefined;
  oneCall: boolean;
  /** They end the content; the core, which sees thoughts and calls too, is given none. */
  stop: readonly string[];
  /** What the answer begins with. */
  begun: { reasoning: string; content: string } | undefined;
}

const shared = [
  'model', 'stream', 'stream_options', 'max_tokens', 'temperature', 'top_p', 'top_k', 'min_p',
  'presence_penalty', 'frequency_penalty',
  'repeat_penalty', 'repeat_last_n', 'seed', 'stop', 'logit_bias', 'n', 'adapters',
  'return_progress', 'return_steps', 'diffusion', 'ignore_eos', 'session', 'signal', 'logprobs',
  'best_of',
  ...contentFields, ...withoutEffect, ...Object.keys(neutral),
];
const chatFields = new Set([
  ...shared, 'messages', 'max_completion_tokens', 'tools', 'tool_choice', 'parallel_tool_calls',
  'top_logprobs', 'thinking', 'reasoning_effort', 'modalities', 'continue_final_message',
  'chat_template_kwargs', 'truncation',
]);
const rawFields = new Set([...shared, 'prompt', 'echo', 'suffix']);

const wrong = (message: string, param?: string): never => {
  throw new BezelError(message, 'argument', undefined, param);
};
const cannot = (message: string, param: string): never => {
  throw new BezelError(message, 'unsupported', undefined, param);
};

type Fields = Record<string, unknown>;

function fieldsOf(request: unknown, known: ReadonlySet<string>): Fields {
  if (typeof request !== 'object' || request === null || Array.isArray(request))
    return wrong('a request is an object');
  const fields: Fields = {};
  for (const [name, value] of Object.entries(request)) {
    if (value === null || value === undefined || (!known.has(name) && isEmpty(value))) continue;
    if (!known.has(name))
      cannot(`the parameter ${show(name)} is not supported${hint(name, known)}`, brief(name));
    fields[name] = value;
  }
  return fields;
}

function number(
  fields: Fields, name: string, least: number, most: number, whole = false,
): number | undefined {
  const value = fields[name];
  if (value === undefined) return undefined;
  const fits = typeof value === 'number' && value >= least && value <= most
    && (!whole || Number.isInteger(value));
  if (!fits)
    wrong(
      `"${name}" must be ${whole ? 'a whole number' : 'a number'} from ${least} to ${most}, `
        + `not ${show(value)}`,
      name,
    );
  return value as number;
}

function flag(fields: Fields, name: string): boolean | undefined {
  const value = fields[name];
  if (value !== undefined && typeof value !== 'boolean')
    wrong(`"${name}" must be true or false, not ${show(value)}`, name);
  return value as boolean | undefined;
}

/** Every piece of an answer is compared with all of them. */
const MAX_STOPS = 64, MAX_STOP = 1024;

function stops(fields: Fields): string[] | undefined {
  const { stop } = fields;
  if (stop === undefined) return undefined;
  const list: unknown[] = Array.isArray(stop) ? stop : [stop];
  if (list.length > MAX_STOPS)
    wrong(`"stop" has ${list.length} strings; ${MAX_STOPS} is the most`, 'stop');
  for (const s of list)
    if (typeof s === 'string' && s.length > MAX_STOP)
      wrong(`"stop" has a string of ${s.length} characters; ${MAX_STOP} is the most`, 'stop');
  for (const s of list)
    if (typeof s !== 'string' || s === '')
      wrong(`"stop" must be a string or a list of strings, not ${show(stop)}`, 'stop');
  return list as string[];
}

const MAX_BIAS = 1024; // OpenAI takes 300

function bias(fields: Fields): [number, number | null][] | undefined {
  const given = fields.logit_bias;
  if (given === undefined) return undefined;
  if (typeof given !== 'object' || given === null)
    return wrong('"logit_bias" must be an object of token ids', 'logit_bias');
  const entries = Object.entries(given);
  if (entries.length > MAX_BIAS)
    wrong(`"logit_bias" has ${entries.length} tokens; ${MAX_BIAS} are the most`, 'logit_bias');
  return entries.map(([id, add]: [string, unknown]) => {
    if (!/^\d+$/.test(id) || Number(id) > 0x7fffffff || typeof add !== 'number'
      || !(add >= -100 && add <= 100))
      wrong(
        '"logit_bias" must map token ids to numbers from -100 to 100, '
          + `not ${brief(id)} to ${show(add)}`,
        'logit_bias',
      );
    return [Number(id), add === -100 ? null : (add as number)];
  });
}

function seed(fields: Fields): number | bigint | undefined {
  const value = fields.seed;
  if (value === undefined || typeof value === 'bigint') return value;
  if (value === -1) return undefined; // any: what local servers and their clients mean by it
  if (!Number.isSafeInteger(value))
    wrong(`"seed" must be a whole number, not ${show(value)}`, 'seed');
  return value as number;
}

function checkAdapters(fields: Fields): void {
  const { adapters } = fields;
  if (adapters === undefined) return;
  const one = (a: unknown): boolean =>
    typeof a === 'object' && a !== null && typeof (a as Fields).name === 'string'
      && ['number', 'undefined'].includes(typeof (a as Fields).scale);
  if (!Array.isArray(adapters) || !adapters.every(one))
    wrong('"adapters" must be a list such as [{"name": "pirate", "scale": 1}]', 'adapters');
}

const MAX = 0xffffffff, MAX_ANSWERS = 128, MAX_PROMPTS = 2048; // the latter two as OpenAI has them

/** The same, where -1 is how other servers are told that there is no limit. */
const limit = (fields: Fields, name: string, least: number): number | undefined =>
  (fields[name] === -1 ? undefined : number(fields, name, least, MAX, true));

/** What chats and raw completions share. */
function order(fields: Fields): Order {
  checkNeutral(fields);
  const usage = fields.stream_options as { include_usage?: unknown } | undefined;
  if (usage !== undefined && typeof usage !== 'object')
    wrong('"stream_options" must be an object', 'stream_options');
  if (fields.session !== undefined && typeof fields.session !== 'string')
    wrong('"session" must be the name of a session', 'session');
  checkAdapters(fields);
  const given: ConversationOptions = {};
  const put = <K extends keyof ConversationOptions>(
    key: K, value: ConversationOptions[K] | undefined,
  ): void => {
    if (value !== undefined) given[key] = value;
  };
  put(
    'n_max',
    limit(fields, 'max_completion_tokens', 1)
      ?? limit(fields, 'max_tokens', fields.echo === true ? 0 : 1),
  );
  put('temperature', number(fields, 'temperature', 0, 100));
  put('top_p', number(fields, 'top_p', 0, 1));
  put('top_k', fields.top_k === -1 ? 0 : number(fields, 'top_k', 0, MAX, true));
  put('min_p', number(fields, 'min_p', 0, 1));
  put('presence_penalty', number(fields, 'presence_penalty', -100, 100));
  put('frequency_penalty', number(fields, 'frequency_penalty', -100, 100));
  put('repeat_penalty', number(fields, 'repeat_penalty', 0, 100));
  const window = number(fields, 'repeat_last_n', -1, MAX, true);
  put('penalty_window', window === -1 ? MAX : window); // all of the context
  put('seed', seed(fields));
  put('stop', stops(fields));
  put('bias', bias(fields));
  put('ignore_end', flag(fields, 'ignore_eos'));
  const diffusion = readDiffusion(fields.diffusion);
  put('diffusion', diffusion?.options);
  return {
    options: given,
    n: number(fields, 'n', 1, MAX_ANSWERS, true) ?? 1,
    includeUsage: usage?.include_usage === true,
    returnProgress: flag(fields, 'return_progress') ?? false,
    returnSteps: flag(fields, 'return_steps') ?? false,
    canvas: diffusion?.pieces,
    constraint: undefined,
    stream: flag(fields, 'stream') ?? false,
  };
}

function checkParts(content: unknown, at: number): void {
  if (!Array.isArray(content)) return;
  for (const part of content) {
    const type: unknown =
      typeof part === 'object' && part !== null ? (part as Fields).type : undefined;
    if (type !== 'text')
      cannot(
        `messages[${at}] has a part of type ${show(type)}; this version reads text only`,
        `messages[${at}].content`,
      );
  }
}

function checkMessages(fields: Fields): Fields[] {
  const { messages } = fields;
  if (!Array.isArray(messages) || !messages.length)
    return wrong('"messages" must be a list with at least one message', 'messages');
  messages.forEach((m: unknown, i) => {
    if (typeof m !== 'object' || m === null)
      return wrong(`messages[${i}] must be an object`, `messages[${i}]`);
    const { role, content } = m as Fields;
    if (!['system', 'developer', 'user', 'assistant', 'tool'].includes(role as string))
      wrong(
        `messages[${i}] has the role ${show(role)}; it must be system, developer, `
          + 'user, assistant or tool',
        `messages[${i}].role`,
      );
    checkParts(content, i);
  });
  return messages;
}

function checkModalities(fields: Fields): void {
  const modalities = fields.modalities as unknown;
  if (modalities !== undefined
    && !(Array.isArray(modalities) && modalities.every((m) => m === 'text')))
    cannot('"modalities" must be ["text"]', 'modalities');
}

const efforts = ['none', 'minimal', 'low', 'medium', 'high', 'xhigh', 'max'];

function wantsThinking(fields: Fields): boolean {
  const asked = flag(fields, 'thinking'), effort = fields.reasoning_effort;
  if (effort !== undefined && !efforts.includes(effort as string))
    wrong(
      `"reasoning_effort" must be one of ${efforts.join(', ')}, not ${show(effort)}`,
      'reasoning_effort',
    );
  const byEffort = effort === undefined ? undefined : efforts.indexOf(effort as string) > 1;
  return asked ?? templateThinking(fields.chat_template_kwargs) ?? byEffort ?? false;
}

/** The beginning of an answer, taken off the end of the messages. */
function takeBegun(fields: Fields, messages: Fields[]): ChatOrder['begun'] {
  if (!flag(fields, 'continue_final_message')) return undefined;
  const { role, content, reasoning_content: reasoning, tool_calls: calls } =
    messages.pop() as Fields;
  if (role !== 'assistant' || (Array.isArray(calls) && calls.length))
    wrong(
      '"continue_final_message" needs a last message of the assistant, without tool calls',
      'continue_final_message',
    );
  const text = Array.isArray(content)
    ? content.map((part) => String((part as Fields).text ?? '')).join('')
    : content;
  return {
    reasoning: typeof reasoning === 'string' ? reasoning : '',
    content: typeof text === 'string' ? text : '',
  };
}

function truncates({ truncation }: Fields): boolean {
  if (truncation !== undefined && truncation !== 'auto' && truncation !== 'disabled')
    wrong(`"truncation" must be "auto" or "disabled", not ${show(truncation)}`, 'truncation');
  return truncation === 'auto';
}

/** The order with other messages. */
export function withMessages(order: ChatOrder, messages: ChatOrder['messages']): ChatOrder {
  return { ...order, messages, conversation: conversationOf(messages, order.tools, order.begun) };
}

const conversationOf = (
  messages: ChatOrder['messages'], tools: string | undefined, begun: ChatOrder['begun'],
): string =>
  `{"messages":${JSON.stringify(messages)}${tools ? `,"tools":${tools}` : ''}`
    + `${begun ? `,"begun":${JSON.stringify(begun)}` : ''}}`;

/** A chat, checked. What the model's store begins conversations with comes before the request's
 *  messages. */
export function readChat(
  request: ChatRequest,
  store: { system: string | null; messages: readonly Readonly<Fields>[]; stop: readonly string[] },
): ChatOrder {
  const fields = fieldsOf(request, chatFields);
  checkModalities(fields);
  const messages: Fields[] = [...store.messages, ...checkMessages(fields)];
  const choice = readTools(fields), tools = choice.shown && JSON.stringify(choice.shown);
  const begun = takeBegun(fields, messages);
  const first = messages[0]?.role;
  if (store.system && first !== 'system' && first !== 'developer')
    messages.unshift({ role: 'system', content: store.system });
  const top = number(fields, 'top_logprobs', 0, 20, true);
  const wanted = flag(fields, 'logprobs') ?? false;
  if (top && !wanted) wrong('"top_logprobs" needs "logprobs": true', 'top_logprobs');
  const asked = order(fields), thinking = wantsThinking(fields);
  const oneCall = flag(fields, 'parallel_tool_calls') === false;
  return {
    ...asked,
    options: { ...asked.options, stop: [], specials: true, ...(wanted && { logprobs: top ?? 0 }) },
    constraint: readConstraint(fields, { tools: choice, oneCall, thinking, begun: begun?.content }),
    thinking,
    messages,
    conversation: conversationOf(messages, tools, begun),
    truncates: truncates(fields),
    tools,
    begun,
    stop: asked.options.stop ?? store.stop,
    oneCall,
  };
}

export interface RawOrder extends Order {
  /** Each is answered; undefined: the session's own tokens. */
  prompts: readonly (string | Int32Array)[] | undefined;
  /** The answer begins with the prompt. */
  echo: boolean;
}

/** A raw completion, checked. */
export function readCompletion(request: CompletionRequest): RawOrder {
  const fields = fieldsOf(request, rawFields);
  if (fields.suffix !== undefined && fields.suffix !== '')
    cannot('"suffix" is not supported', 'suffix');
  const logprobs = number(fields, 'logprobs', 0, 20, true), echo = flag(fields, 'echo') ?? false;
  const asked = order(fields);
  return {
    ...asked,
    options: { ...asked.options, ...(logprobs !== undefined && { logprobs }) },
    constraint: readConstraint(fields),
    prompts: promptsOf(fields.prompt),
    echo,
  };
}

/** A text, token ids, or a list of either. */
function promptsOf(prompt: unknown): RawOrder['prompts'] {
  if (prompt === undefined) return undefined;
  const isList =
    Array.isArray(prompt) && (typeof prompt[0] === 'string' || Array.isArray(prompt[0]));
  if (!isList) return [promptOf(prompt)];
  if (prompt.length > MAX_PROMPTS)
    wrong(`"prompt" has ${prompt.length} texts; ${MAX_PROMPTS} are the most`, 'prompt');
  return prompt.map(promptOf);
}

function promptOf(prompt: unknown): string | Int32Array {
  if (typeof prompt === 'string' || prompt instanceof Int32Array) return prompt;
  if (!Array.isArray(prompt))
    return wrong('"prompt" must be a text, a list of token ids, or a list of either', 'prompt');
  for (const id of prompt)
    if (!Number.isInteger(id) || id < 0 || id > 0x7fffffff)
      wrong(`"prompt" has ${show(id)}, which is not a token id`, 'prompt');
  return Int32Array.from(prompt as number[]);
}

/** What JSON would make of it, so that reactive objects can be sent too. */
export const plainOf = <T extends object>(value: T): T => JSON.parse(JSON.stringify(value)) as T;

/** Plain data without the signal. */
export function plainRequest<R extends SamplingRequest>(
  request: R, session: string | undefined,
): R {
  const { signal: _, ...plain } = request as Fields;
  for (const name of ['messages', 'tools', 'tool_choice', ...contentFields]) {
    const value = plain[name];
    if (typeof value === 'object' && value !== null)
      plain[name] = plainOf(value);
  }
  return { ...plain, ...(session !== undefined && { session }) } as R;
}

/** The parts of a request that name things of the engine. */
export function placeOf(
  request: SamplingRequest,
): { session: string | undefined; adapters: SamplingRequest['adapters'] } {
  return { session: request.session ?? undefined, adapters: request.adapters };
}
