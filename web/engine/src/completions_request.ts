// completions_request - what a request asks for, checked: OpenAI's fields to the core's options.
//
// A parameter that would change the answer is never ignored: what is unknown here, or known and not possible yet,
// is an error that names it. `null` counts as absent. Fields that only matter to a service (user, metadata, store,
// service_tier, ...) are accepted and have no effect.

import type { ChatRequest, CompletionRequest, SamplingRequest } from './completions_types.js';
import { BezelError } from './errors.js';
import type { ConversationOptions } from './model.js';

/** The order of a request, ready for a conversation. */
export interface Order {
  options: ConversationOptions;
  includeUsage: boolean;
  returnProgress: boolean;
  stream: boolean;
}

export interface ChatOrder extends Order {
  thinking: boolean;
  /** {"messages", "tools"} as JSON for the renderer. */
  conversation: string;
  /** JSON of the tools, or undefined. */
  tools: string | undefined;
  oneCall: boolean;
  /** What the answer begins with. */
  begun: { reasoning: string; content: string };
}

/** Of a service; no effect here. */
const withoutEffect = ['user', 'metadata', 'store', 'service_tier', 'safety_identifier', 'prompt_cache_key', 'prompt_cache_retention'];
const shared = [
  'model', 'stream', 'stream_options', 'max_tokens', 'temperature', 'top_p', 'top_k', 'min_p', 'presence_penalty', 'frequency_penalty',
  'repeat_penalty', 'repeat_last_n', 'seed', 'stop', 'logit_bias', 'n', 'adapters', 'return_progress', 'ignore_eos', 'session', 'signal', 'logprobs', ...withoutEffect,
];
const chatFields = new Set([
  ...shared, 'messages', 'max_completion_tokens', 'tools', 'tool_choice', 'parallel_tool_calls', 'response_format', 'top_logprobs', 'thinking',
  'reasoning_effort', 'modalities', 'continue_final_message',
]);
const rawFields = new Set([...shared, 'prompt', 'echo', 'best_of', 'suffix']);

const wrong = (message: string): never => {
  throw new BezelError(message, 'argument');
};
const cannot = (message: string): never => {
  throw new BezelError(message, 'unsupported');
};
const show = (value: unknown): string => {
  const text = typeof value === 'bigint' ? String(value) : JSON.stringify(value) ?? String(value);
  return text.length > 60 ? `${text.slice(0, 57)}...` : text;
};

type Fields = Record<string, unknown>;

function fieldsOf(request: unknown, known: ReadonlySet<string>): Fields {
  if (typeof request !== 'object' || request === null || Array.isArray(request)) return wrong('a request is an object');
  const fields: Fields = {};
  for (const [name, value] of Object.entries(request)) {
    if (value === null || value === undefined) continue;
    if (!known.has(name)) cannot(`the parameter "${name}" is not supported`);
    fields[name] = value;
  }
  return fields;
}

function number(fields: Fields, name: string, least: number, most: number, whole = false): number | undefined {
  const value = fields[name];
  if (value === undefined) return undefined;
  const fits = typeof value === 'number' && value >= least && value <= most && (!whole || Number.isInteger(value));
  if (!fits) wrong(`"${name}" must be ${whole ? 'a whole number' : 'a number'} from ${least} to ${most}, not ${show(value)}`);
  return value as number;
}

function flag(fields: Fields, name: string): boolean | undefined {
  const value = fields[name];
  if (value !== undefined && typeof value !== 'boolean') wrong(`"${name}" must be true or false, not ${show(value)}`);
  return value as boolean | undefined;
}

function stops(fields: Fields): string[] | undefined {
  const { stop } = fields;
  if (stop === undefined) return undefined;
  const list: unknown[] = Array.isArray(stop) ? stop : [stop];
  for (const s of list) if (typeof s !== 'string' || s === '') wrong(`"stop" must be a string or a list of strings, not ${show(stop)}`);
  return list as string[];
}

function bias(fields: Fields): [number, number | null][] | undefined {
  const given = fields.logit_bias;
  if (given === undefined) return undefined;
  if (typeof given !== 'object' || given === null) return wrong('"logit_bias" must be an object of token ids');
  return Object.entries(given).map(([id, add]: [string, unknown]) => {
    if (!/^\d+$/.test(id) || typeof add !== 'number' || !(add >= -100 && add <= 100)) wrong(`"logit_bias" must map token ids to numbers from -100 to 100, not ${id} to ${show(add)}`);
    return [Number(id), add === -100 ? null : (add as number)];
  });
}

function seed(fields: Fields): number | bigint | undefined {
  const value = fields.seed;
  if (value === undefined || typeof value === 'bigint') return value;
  if (!Number.isSafeInteger(value)) wrong(`"seed" must be a whole number, not ${show(value)}`);
  return value as number;
}

function checkAdapters(fields: Fields): void {
  const { adapters } = fields;
  if (adapters === undefined) return;
  const one = (a: unknown): boolean => typeof a === 'object' && a !== null && typeof (a as Fields).name === 'string' && ['number', 'undefined'].includes(typeof (a as Fields).scale);
  if (!Array.isArray(adapters) || !adapters.every(one)) wrong('"adapters" must be a list such as [{"name": "pirate", "scale": 1}]');
}

const MAX = 0xffffffff;

/** What chats and raw completions share. */
function order(fields: Fields): Order {
  if (fields.n !== undefined && fields.n !== 1) cannot(`"n" must be 1, not ${show(fields.n)}: a request has one answer`);
  const usage = fields.stream_options as { include_usage?: unknown } | undefined;
  if (usage !== undefined && typeof usage !== 'object') wrong('"stream_options" must be an object');
  if (fields.session !== undefined && typeof fields.session !== 'string') wrong('"session" must be the name of a session');
  checkAdapters(fields);
  const given: ConversationOptions = {};
  const put = <K extends keyof ConversationOptions>(key: K, value: ConversationOptions[K] | undefined): void => {
    if (value !== undefined) given[key] = value;
  };
  put('n_max', number(fields, 'max_completion_tokens', 1, MAX, true) ?? number(fields, 'max_tokens', 1, MAX, true));
  put('temperature', number(fields, 'temperature', 0, 100));
  put('top_p', number(fields, 'top_p', 0, 1));
  put('top_k', number(fields, 'top_k', 0, MAX, true));
  put('min_p', number(fields, 'min_p', 0, 1));
  put('presence_penalty', number(fields, 'presence_penalty', -100, 100));
  put('frequency_penalty', number(fields, 'frequency_penalty', -100, 100));
  put('repeat_penalty', number(fields, 'repeat_penalty', 0, 100));
  put('penalty_window', number(fields, 'repeat_last_n', 0, MAX, true));
  put('seed', seed(fields));
  put('stop', stops(fields));
  put('bias', bias(fields));
  put('ignore_end', flag(fields, 'ignore_eos'));
  return {
    options: given,
    includeUsage: usage?.include_usage === true,
    returnProgress: flag(fields, 'return_progress') ?? false,
    stream: flag(fields, 'stream') ?? false,
  };
}

function checkParts(content: unknown, at: number): void {
  if (!Array.isArray(content)) return;
  for (const part of content) {
    const type: unknown = typeof part === 'object' && part !== null ? (part as Fields).type : undefined;
    if (type !== 'text') cannot(`messages[${at}] has a part of type ${show(type)}; this version reads text only`);
  }
}

function checkMessages(fields: Fields): unknown[] {
  const { messages } = fields;
  if (!Array.isArray(messages) || !messages.length) return wrong('"messages" must be a list with at least one message');
  messages.forEach((m: unknown, i) => {
    if (typeof m !== 'object' || m === null) return wrong(`messages[${i}] must be an object`);
    const { role, content } = m as Fields;
    if (!['system', 'developer', 'user', 'assistant', 'tool'].includes(role as string)) wrong(`messages[${i}] has the role ${show(role)}; it must be system, developer, user, assistant or tool`);
    checkParts(content, i);
  });
  return messages;
}

function checkFormat(fields: Fields): void {
  const format = fields.response_format as { type?: unknown } | undefined;
  if (format !== undefined && format?.type !== 'text') cannot(`"response_format" ${show(format?.type)} is not supported; only "text" is`);
  const modalities = fields.modalities as unknown;
  if (modalities !== undefined && !(Array.isArray(modalities) && modalities.every((m) => m === 'text'))) cannot('"modalities" must be ["text"]');
}

function toolsOf(fields: Fields): unknown[] | undefined {
  const { tools, tool_choice: choice } = fields;
  if (choice !== undefined && choice !== 'none' && choice !== 'auto') cannot(`"tool_choice" ${show(choice)} is not supported; "auto" and "none" are`);
  if (tools !== undefined && !Array.isArray(tools)) return wrong('"tools" must be a list');
  return tools?.length && choice !== 'none' ? tools : undefined;
}

const efforts = ['none', 'minimal', 'low', 'medium', 'high', 'xhigh'];

function wantsThinking(fields: Fields): boolean {
  const asked = flag(fields, 'thinking'), effort = fields.reasoning_effort;
  if (effort !== undefined && !efforts.includes(effort as string)) wrong(`"reasoning_effort" must be one of ${efforts.join(', ')}, not ${show(effort)}`);
  const byEffort = effort === undefined ? undefined : efforts.indexOf(effort as string) > 1;
  return asked ?? byEffort ?? false;
}

/** The beginning of an answer, taken off the end of the messages. */
function takeBegun(fields: Fields, messages: unknown[]): ChatOrder['begun'] {
  if (!flag(fields, 'continue_final_message')) return { reasoning: '', content: '' };
  const { role, content, reasoning_content: reasoning, tool_calls: calls } = messages.pop() as Fields;
  if (role !== 'assistant' || (Array.isArray(calls) && calls.length)) wrong('"continue_final_message" needs a last message of the assistant, without tool calls');
  const text = Array.isArray(content) ? content.map((part) => String((part as Fields).text ?? '')).join('') : content;
  return { reasoning: typeof reasoning === 'string' ? reasoning : '', content: typeof text === 'string' ? text : '' };
}

/** A chat, checked. What the model's store begins conversations with comes before the request's messages. */
export function readChat(request: ChatRequest, store: { system: string | null; messages: readonly unknown[] }): ChatOrder {
  const fields = fieldsOf(request, chatFields);
  checkFormat(fields);
  const messages = [...store.messages, ...checkMessages(fields)], tools = toolsOf(fields);
  const begun = takeBegun(fields, messages);
  const first = (messages[0] as Fields | undefined)?.role;
  if (store.system && first !== 'system' && first !== 'developer') messages.unshift({ role: 'system', content: store.system });
  const top = number(fields, 'top_logprobs', 0, 20, true), wanted = flag(fields, 'logprobs') ?? false;
  if (top !== undefined && !wanted) wrong('"top_logprobs" needs "logprobs": true');
  const asked = order(fields);
  return {
    ...asked,
    options: { ...asked.options, specials: true, ...(wanted && { logprobs: top ?? 0 }) },
    thinking: wantsThinking(fields),
    conversation: JSON.stringify({ messages, ...(tools && { tools }) }),
    tools: tools && JSON.stringify(tools),
    oneCall: flag(fields, 'parallel_tool_calls') === false,
    begun,
  };
}

/** A raw completion, checked; `prompt` undefined means the session's own tokens. */
export function readCompletion(request: CompletionRequest): Order & { prompt: string | Int32Array | undefined } {
  const fields = fieldsOf(request, rawFields);
  if (fields.echo) cannot('"echo" is not supported');
  if (fields.suffix !== undefined) cannot('"suffix" is not supported');
  if (fields.best_of !== undefined && fields.best_of !== 1) cannot('"best_of" must be 1');
  const logprobs = number(fields, 'logprobs', 0, 20, true), asked = order(fields);
  return { ...asked, options: { ...asked.options, ...(logprobs !== undefined && { logprobs }) }, prompt: promptOf(fields.prompt) };
}

function promptOf(prompt: unknown): string | Int32Array | undefined {
  if (prompt === undefined || typeof prompt === 'string' || prompt instanceof Int32Array) return prompt;
  if (!Array.isArray(prompt)) return wrong('"prompt" must be a text or a list of token ids');
  if (prompt.length === 1 && typeof prompt[0] === 'string') return prompt[0];
  if (prompt.some((x) => typeof x === 'string')) return cannot('"prompt" must be one text: a request has one answer');
  for (const id of prompt) if (!Number.isInteger(id) || id < 0 || id > 0x7fffffff) wrong(`"prompt" has ${show(id)}, which is not a token id`);
  return Int32Array.from(prompt as number[]);
}

/** The parts of a request that name things of the engine. */
export function placeOf(request: SamplingRequest): { session: string | undefined; adapters: SamplingRequest['adapters'] } {
  return { session: request.session ?? undefined, adapters: request.adapters };
}
