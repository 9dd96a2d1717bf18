// ollama - the protocol of /api: chat, generate, tags, show, ps (changes.ts: pull, delete, copy,
// create). Requests are turned into the engine's own shape (OpenAI's) and its pieces into JSON
// lines.

import { checkNeutral } from '../api/completions_extras.js';
import { show as shown } from '../api/errors.js';
import type { ChatDelta, Timings, ToolCallDelta, Usage } from '../api/completions_types.js';
import { isObject, modelfileText, parameterLines } from '../pull/modelfile.js';
import type { StoredModel } from '../store/source_ref.js';
import type { Catalog, Entry } from './catalog.js';
import type { Chunk, Given, Host, Kind, Request } from './host.js';
import { Gone, HttpError, readJson, sendJson, Stream, type Exchange } from './http.js';
import { check, scoped } from './openai.js';
import { bounded } from './bounds.js';

type Body = Record<string, unknown>;

/** The Ollama whose protocol this is, as far as it goes: clients ask for 0.6.4 and later. */
export const VERSION = '0.12.0';

const CENTURY = 100 * 365.25 * 86_400_000; // how a time that never comes is told

export const ollamaError = (e: unknown): { error: string } => ({
  error: e instanceof Error ? e.message : String(e),
});

export function text(body: Body, key: string): string | undefined {
  const value = body[key];
  if (value === undefined || value === null) return undefined;
  if (typeof value !== 'string') throw new HttpError(400, `"${key}" is not a text`);
  return value;
}

// characters; an expression that repeats over a far longer text ends in an overflow
const LONGEST_TIME = 100;

/** "5m", "1h30m", seconds as a number; negative is for ever. Milliseconds. */
export function parseKeepAlive(value: unknown): number | undefined {
  if (value === undefined || value === null || value === '') return undefined;
  const units: Readonly<Record<string, number>> = {
    ns: 1e-6, us: 1e-3, ms: 1, s: 1000, m: 60_000, h: 3_600_000,
  };
  const text = typeof value === 'string' && value.length <= LONGEST_TIME ? value : '';
  let ms = NaN;
  if (typeof value === 'number') ms = value * 1000;
  else if (/^-?\d+(\.\d+)?$/.test(text)) ms = Number(text) * 1000;
  else if (/^-?(\d+(\.\d+)?(ns|us|ms|s|m|h))+$/.test(text)) {
    ms = [...text.matchAll(/(\d+(?:\.\d+)?)(ns|us|ms|s|m|h)/g)].reduce(
      (sum, [, n, unit]) => sum + Number(n) * (units[unit as string] as number), 0,
    );
    if (text.startsWith('-')) ms = -ms;
  }
  if (Number.isNaN(ms))
    throw new HttpError(
      400,
      `"keep_alive" cannot be ${shown(value)}; it is a number of seconds or a time such as "5m"`,
    );
  return ms < 0 ? Infinity : ms;
}

/** The engine has these under the same names; the last ones it takes where they ask for nothing.
 *  `diffusion` is not Ollama's: how a diffusion model denoises. */
const optionNames = new Set([
  'diffusion', 'temperature', 'top_p', 'top_k', 'min_p', 'seed', 'stop', 'presence_penalty',
  'frequency_penalty',
  'repeat_penalty', 'repeat_last_n',
  'typical_p', 'tfs_z', 'mirostat', 'mirostat_tau', 'mirostat_eta',
]);
/** How Ollama spreads its work; nothing that could change an answer. */
const ignoredOptions = new Set([
  'num_keep', 'num_batch', 'num_gpu', 'main_gpu', 'num_thread', 'use_mmap', 'use_mlock',
  'low_vram', 'numa', 'vocab_only', 'f16_kv', 'logits_all', 'penalize_newline',
  'draft_num_predict',
]);

/** Options to the engine's parameters. */
function mapOptions(body: Body): { request: Body; context: number | undefined } {
  const options = body.options ?? {};
  if (!isObject(options)) throw new HttpError(400, '"options" is not an object');
  const request: Body = {};
  let context: number | undefined;
  for (const [name, value] of Object.entries(options)) {
    if (value === null || value === undefined || ignoredOptions.has(name)) continue;
    if (name === 'num_ctx') {
      context = wholeNumber(name, value);
      if (context < 0) throw new HttpError(400, `"num_ctx" is a number of tokens, not ${context}`);
    } else if (name === 'num_predict') {
      const n = wholeNumber(name, value);
      if (n > 0) request.max_tokens = n; // 0 and less: no limit
    } else if (name === 'seed' && typeof value === 'number' && value < 0) continue; // any
    else if (optionNames.has(name)) request[name] = value;
    else throw new HttpError(400, `this engine has no option ${shown(name)}`);
  }
  checkNeutral(request);
  return { request, context };
}

function wholeNumber(name: string, value: unknown): number {
  if (!Number.isInteger(value)) throw new HttpError(400, `"${name}" is not a whole number`);
  return value as number;
}

interface Call {
  readonly id: string;
  answered: boolean;
}

/** Calls and their results, however many there are of either: nothing is looked at twice. */
class Calls {
  // by name; undefined: all of them
  private readonly lists = new Map<unknown, { readonly calls: Call[]; next: number }>();
  private count = 0;

  add(name: string): string {
    const call = { id: `call_${this.count++}`, answered: false };
    for (const key of [name, undefined]) {
      const list = this.lists.get(key) ?? { calls: [], next: 0 };
      list.calls.push(call);
      this.lists.set(key, list);
    }
    return call.id;
  }

  /** The first call of that name that has no result yet, or the first of any. */
  answer(name: unknown): string | undefined {
    for (const list of [this.lists.get(name), this.lists.get(undefined)])
      while (list && list.next < list.calls.length) {
        const call = list.calls[list.next++] as Call;
        if (call.answered) continue;
        call.answered = true;
        return call.id;
      }
    return undefined;
  }
}

/** Ollama's tool calls have neither ids nor arguments as text; answers name the tool. */
function mapMessages(list: unknown): Body[] {
  if (!Array.isArray(list)) throw new HttpError(400, '"messages" is not a list');
  const open = new Calls();
  return list.map((m: unknown) => {
    if (!isObject(m)) throw new HttpError(400, 'a message is not an object');
    const { images, thinking, tool_calls: calls, tool_name: toolName, content, ...rest } = m;
    const out: Body = { ...rest, content: content ?? '' };
    if (typeof thinking === 'string' && thinking) out.reasoning_content = thinking;
    if (Array.isArray(images) && images.length)
      out.content = [
        ...images.map((i: unknown) =>
          ({ type: 'image_url', image_url: { url: `data:image/*;base64,${String(i)}` } })),
        { type: 'text', text: String(content ?? '') },
      ];
    if (Array.isArray(calls) && calls.length)
      out.tool_calls = calls.map((call: unknown) => {
        const f = isObject(call) && isObject(call.function) ? call.function : undefined;
        if (!f || typeof f.name !== 'string')
          throw new HttpError(400, 'a tool call has no function name');
        return {
          id: open.add(f.name),
          type: 'function',
          function: {
            name: f.name,
            arguments:
              typeof f.arguments === 'string' ? f.arguments : JSON.stringify(f.arguments ?? {}),
          },
        };
      });
    if (m.role === 'tool' && typeof m.tool_call_id !== 'string') {
      const id = open.answer(toolName);
      if (id !== undefined) out.tool_call_id = id;
    }
    return out;
  });
}

function mapFormat(format: unknown): Body {
  if (format === undefined || format === null || format === '') return {};
  if (format === 'json') return { response_format: { type: 'json_object' } };
  if (isObject(format))
    return {
      response_format: { type: 'json_schema', json_schema: { name: 'answer', schema: format } },
    };
  throw new HttpError(400, '"format" is "json" or a JSON schema');
}

/** true, false, or how hard: any effort is thinking. */
function mapThink(think: unknown): Body {
  if (think === undefined || think === null) return {};
  if (typeof think !== 'boolean' && !['low', 'medium', 'high'].includes(think as string))
    throw new HttpError(400, '"think" is true, false, "low", "medium" or "high"');
  return { thinking: think !== false };
}

export function flag(body: Body, key: string, otherwise: boolean): boolean {
  const value = body[key] ?? otherwise;
  if (typeof value !== 'boolean') throw new HttpError(400, `"${key}" is true or false`);
  return value;
}

/** What /api/chat and /api/generate differ in. */
interface Dialect {
  readonly kind: Kind;
  readonly request: Request;
  /** Nothing to answer: only load, or unload. */
  readonly empty: boolean;
  /** The members that carry a piece. */
  piece(content: string, thinking: string, calls: readonly object[]): Body;
}

export async function chat(ex: Exchange, host: Host): Promise<void> {
  const body = await readJson(ex);
  const messages = mapMessages(body.messages ?? []);
  const tools = body.tools === undefined || body.tools === null ? {} : { tools: body.tools };
  await run(ex, host, body, {
    kind: 'chat',
    request: { messages, ...tools, truncation: flag(body, 'truncate', true) ? 'auto' : 'disabled' },
    empty: !messages.length,
    piece: (content, thinking, calls) => ({
      message: {
        role: 'assistant', content, ...(thinking && { thinking }),
        ...(calls.length && { tool_calls: calls }),
      },
    }),
  });
}

export async function generate(ex: Exchange, host: Host): Promise<void> {
  const body = await readJson(ex);
  for (const key of ['template', 'suffix', 'context'])
    if (body[key] !== undefined && body[key] !== ''
      && !(Array.isArray(body[key]) && !body[key].length))
      throw new HttpError(400, `"${key}" is not supported; /api/chat holds conversations`);
  const prompt = text(body, 'prompt') ?? '', system = text(body, 'system');
  const raw = flag(body, 'raw', false);
  const messages = mapMessages([
    ...(system ? [{ role: 'system', content: system }] : []),
    { role: 'user', content: prompt, images: body.images },
  ]);
  await run(ex, host, body, {
    kind: raw ? 'completions' : 'chat',
    request: raw ? { prompt } : { messages },
    empty: prompt === '' && !(Array.isArray(body.images) && body.images.length),
    piece: (content, thinking) => ({ response: content, ...(thinking && { thinking }) }),
  });
}

async function run(ex: Exchange, host: Host, body: Body, dialect: Dialect): Promise<void> {
  const begin = performance.now();
  const model = text(body, 'model');
  if (!model) throw new HttpError(400, '"model" is missing');
  const { request: options, context } = mapOptions(body);
  const keepMs = parseKeepAlive(body.keep_alive), stream = flag(body, 'stream', true);
  const thinking = dialect.kind === 'chat' ? mapThink(body.think) : {};
  const request = scoped(ex, {
    ...dialect.request, ...options, ...mapFormat(body.format), ...thinking,
    stream_options: { include_usage: true },
  });
  const head = (entry: Entry): Body => ({
    model: entry.name, created_at: new Date().toISOString(),
  });
  const entry = await host.find(model);
  if (!dialect.empty) check(dialect.kind, bounded(request, host.contextOf(entry, context)));
  if (dialect.empty && keepMs === 0) {
    await host.release(ex, model);
    sendJson(ex, 200, {
      ...head(await host.find(model)), ...dialect.piece('', '', []), done: true,
      done_reason: 'unload',
    });
    return;
  }
  const whole = !stream || dialect.empty;
  const out = whole ? undefined : new Stream(ex, 'application/x-ndjson');
  const put = (value: Body): Promise<void> | undefined => out?.write(`${JSON.stringify(value)}\n`);
  try {
    await host.use({
      client: ex.client, household: ex.household, signal: ex.signal, model, context, keepMs,
      onWait: out?.begin,
    }, async (given) => {
      if (dialect.empty)
        return sendJson(ex, 200, {
          ...head(given.entry), ...dialect.piece('', '', []), done: true, done_reason: 'load',
        });
      const answer = new Answer(dialect);
      for await (const chunk of given.engine.stream(dialect.kind, request, given.signal))
        for (const piece of answer.take(chunk))
          await put({ ...head(given.entry), ...piece, done: false });
      const last = answer.end(begin, given, whole);
      if (whole) sendJson(ex, 200, { ...head(given.entry), ...last });
      else await put({ ...head(given.entry), ...last });
    });
    out?.end();
  } catch (e) {
    out?.giveUp();
    if (!out?.begun || e instanceof Gone || ex.signal.aborted) throw e;
    out.end(`${JSON.stringify(ollamaError(ex.tell(e)))}\n`);
  }
}

/** The engine's pieces as they go by. */
class Answer {
  private content = '';
  private thinking = '';
  private reason = 'stop';
  private usage: Usage | undefined;
  private timings: Timings | undefined;
  private readonly calls: object[] = [];
  private open: { index: number; name: string; arguments: string } | undefined;

  constructor(private readonly dialect: Dialect) {}

  *take(chunk: Chunk): Generator<Body> {
    if (chunk.usage) this.usage = chunk.usage;
    if (chunk.timings) this.timings = chunk.timings;
    for (const choice of chunk.choices) {
      const { finish_reason: reason } = choice;
      const delta: ChatDelta = 'delta' in choice ? choice.delta : { content: choice.text };
      if (reason) this.reason = reason === 'length' ? 'length' : 'stop';
      const calls = (delta.tool_calls ?? []).flatMap((call) => this.takeCall(call));
      // the limit may have cut the last one short
      if (reason && reason !== 'length') calls.push(...this.closeCall());
      const { content = '', reasoning_content: thinking = '' } = delta;
      this.content += content;
      this.thinking += thinking;
      this.calls.push(...calls);
      if (content || thinking || calls.length) yield this.dialect.piece(content, thinking, calls);
    }
  }

  /** A call may come in pieces; Ollama has it whole. The one before is, when another begins. */
  private takeCall({ index, function: f }: ToolCallDelta): object[] {
    const before = this.open && this.open.index !== index ? this.closeCall() : [];
    this.open ??= { index, name: '', arguments: '' };
    this.open.name += f?.name ?? '';
    this.open.arguments += f?.arguments ?? '';
    return before;
  }

  /** Its arguments are an object. */
  private closeCall(): object[] {
    if (!this.open) return [];
    const { name, arguments: text } = this.open;
    this.open = undefined;
    return [{ function: { name, arguments: JSON.parse(text) as unknown } }];
  }

  /** The last object: with all of the answer where nothing was sent before. */
  end(begin: number, given: Given, whole: boolean): Body {
    const ns = (ms: number): number => Math.round(ms * 1e6);
    const { prompt_tokens: prompt = 0, completion_tokens: made = 0 } = this.usage ?? {};
    return {
      ...(whole
        ? this.dialect.piece(this.content, this.thinking, this.calls)
        : this.dialect.piece('', '', [])),
      done: true,
      done_reason: this.reason,
      total_duration: ns(performance.now() - begin),
      load_duration: ns(given.loadMs),
      prompt_eval_count: prompt,
      prompt_eval_duration: ns(this.timings?.prompt_ms ?? 0),
      eval_count: made,
      eval_duration: ns(this.timings?.predicted_ms ?? 0),
    };
  }
}

function detailsOf({ family = '', parameters = '', quantization = '' }: StoredModel): Body {
  return {
    parent_model: '', format: 'gguf', family, families: [family], parameter_size: parameters,
    quantization_level: quantization,
  };
}
const listed = (m: StoredModel): Body => ({
  name: m.name, model: m.name, modified_at: new Date(m.modified ?? 0).toISOString(), size: m.size,
  digest: m.digest, details: detailsOf(m),
});

export async function tags(ex: Exchange, catalog: Catalog): Promise<void> {
  sendJson(ex, 200, { models: (await catalog.list()).map(listed) });
}

export function running(ex: Exchange, host: Host): void {
  const now = host.loaded;
  const models = now
    ? [{
      ...listed(now.entry),
      expires_at: (now.expires ?? new Date(Date.now() + CENTURY)).toISOString(),
      size_vram: now.engine.device.backend === 'gpu' ? now.engine.bytes : 0,
      context_length: now.engine.context,
    }]
    : [];
  sendJson(ex, 200, { models });
}

/** The model that a request is about: older clients say `name`. */
export function modelOf(body: Body): string {
  const name = text(body, 'model') || text(body, 'name');
  if (!name) throw new HttpError(400, '"model" is missing');
  return name;
}

export async function show(ex: Exchange, host: Host): Promise<void> {
  const body = await readJson(ex), name = modelOf(body);
  const entry = await host.find(name), texts = await host.catalog.texts(entry);
  sendJson(ex, 200, {
    modelfile: modelfileText(entry.name, texts),
    parameters: parameterLines(texts.params),
    template: texts.template ?? '',
    ...(texts.system !== undefined && { system: texts.system }),
    ...(texts.license !== undefined && { license: texts.license }),
    details: detailsOf(entry),
    model_info: await host.catalog.metadata(entry),
    capabilities: ['completion', 'tools', 'thinking'],
    modified_at: new Date(entry.modified ?? 0).toISOString(),
  });
}
