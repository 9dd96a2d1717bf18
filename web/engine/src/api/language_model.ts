// language_model - the shape of Chrome's built-in LanguageModel (the Prompt API) on top of an
// Engine.
//
//   const LanguageModel = languageModel(engine);
//   const initialPrompts = [{ role: 'system', content: 'Be brief.' }];
//   const session = await LanguageModel.create({ initialPrompts });
//   for await (const text of session.promptStreaming('Hello!')) ...
//
// A client of the public interface alone. Failures are DOMExceptions with the names that API uses:
// AbortError, InvalidStateError (destroyed), NotSupportedError, QuotaExceededError (the input does
// not fit), OperationError.

import type { ChatMessage, ConstraintFields, JsonSchema } from './completions_types.js';
import type { CallOptions, Engine, Session } from './engine.js';
import { BezelError } from './errors.js';

export interface LanguageModelPart {
  type: 'text';
  value: string;
}
export interface LanguageModelMessage {
  role: 'system' | 'user' | 'assistant';
  content: string | readonly LanguageModelPart[];
  /** Of a last message of the assistant's: the answer begins with it. */
  prefix?: boolean;
}
export type LanguageModelPrompt = string | readonly LanguageModelMessage[];

/** What a page will send, or wants back. */
export interface LanguageModelExpected {
  type: 'text' | 'image' | 'audio';
  languages?: readonly string[];
}

export interface LanguageModelCreateOptions {
  initialPrompts?: readonly LanguageModelMessage[];
  /** Above what params() has as the most, it is the most. */
  temperature?: number;
  topK?: number;
  /** Only text is read and written. */
  expectedInputs?: readonly LanguageModelExpected[];
  expectedOutputs?: readonly LanguageModelExpected[];
  signal?: AbortSignal;
  /** Called with a target of 'downloadprogress' events. The model is there already: it hears 0
   *  and 1. */
  monitor?: (monitor: EventTarget) => void;
}

export interface LanguageModelPromptOptions {
  signal?: AbortSignal;
  /** What the answer keeps to: JSON of a schema, or a text that matches as a whole. */
  responseConstraint?: object | RegExp;
  /** It is not told to the model; else a paragraph after the prompt tells it. */
  omitResponseConstraintInput?: boolean;
}

export interface LanguageModelParams {
  defaultTopK: number;
  maxTopK: number;
  defaultTemperature: number;
  maxTemperature: number;
}

export class DownloadProgressEvent extends Event {
  readonly lengthComputable = true;
  readonly total = 1;
  constructor(readonly loaded: number) {
    super('downloadprogress');
  }
}

const failure = (message: string, name: string): DOMException => new DOMException(message, name);

/** Numbers of tokens. */
interface Quota {
  requested: number;
  quota: number;
}

/** An input that does not fit, with both numbers where they are known: the class of its own that
 *  browsers have today, or its older shape. */
function tooLong(message: string, numbers?: Quota): DOMException {
  const Own = (globalThis as {
    QuotaExceededError?: new (message: string, numbers?: Quota) => DOMException;
  }).QuotaExceededError;
  return Own
    ? new Own(message, numbers)
    : Object.assign(
      failure(message, 'QuotaExceededError'), numbers ?? { requested: null, quota: null },
    );
}

/** A signal that fires with any of several, and what makes them forget it: they may outlive it
 *  by far. */
function linked(
  signals: readonly (AbortSignal | undefined)[], onAbort: () => void = () => {},
): { signal: AbortSignal; unlink(): void } {
  const all = signals.filter((s) => s !== undefined), own = new AbortController();
  const fire = (e: Event): void => own.abort((e.target as AbortSignal).reason);
  for (const s of all) s.addEventListener('abort', fire);
  const fired = all.find((s) => s.aborted);
  if (fired) own.abort(fired.reason);
  own.signal.addEventListener('abort', onAbort);
  return {
    signal: own.signal, unlink: () => all.forEach((s) => s.removeEventListener('abort', fire)),
  };
}

/** An error of the engine under the name that a page expects. */
function translate(e: unknown): unknown {
  if (!(e instanceof BezelError)) return e;
  if (e.kind === 'limit') return tooLong(e.message);
  const names: Partial<Record<BezelError['kind'], string>> = {
    unsupported: 'NotSupportedError', cancelled: 'AbortError',
  };
  return failure(e.message, names[e.kind] ?? 'OperationError');
}

function textOf(content: LanguageModelMessage['content']): string {
  if (typeof content === 'string') return content;
  return content.map((part) => {
    if (part.type !== 'text')
      throw failure(
        `a part of type "${String((part as { type: unknown }).type)}" cannot be read; `
          + 'this version reads text only',
        'NotSupportedError',
      );
    return part.value;
  }).join('');
}

function messagesOf(input: LanguageModelPrompt): ChatMessage[] {
  if (typeof input === 'string') return [{ role: 'user', content: input }];
  return input.map(({ role, content, prefix }, i): ChatMessage => {
    if (role !== 'user' && role !== 'assistant')
      throw role === 'system'
        ? failure('a system prompt is only the first of the initial prompts', 'NotSupportedError')
        : new TypeError(`"${String(role)}" is not a role`);
    if (prefix && (role !== 'assistant' || i + 1 < input.length))
      throw failure("only a last message of the assistant's can be a prefix", 'SyntaxError');
    return { role, content: textOf(content) };
  });
}

/** The beginning of the answer, where the input ends with it. */
const prefixOf = (input: LanguageModelPrompt): string | undefined => {
  const last = typeof input === 'string' ? undefined : input.at(-1);
  return last?.prefix ? textOf(last.content) : undefined;
};

/** What a prompt's answer keeps to. */
interface Constraint {
  request: Pick<ConstraintFields, 'json_schema' | 'regex'>;
  /** What the model is told of it. */
  told: string;
}

/** Flags that say how matches are looked for, and not what matches. */
const HARMLESS_FLAGS = /^[dguvy]*$/;

function constraintOf({
  responseConstraint: given, omitResponseConstraintInput: omits = false,
}: LanguageModelPromptOptions): Constraint | undefined {
  if (given === undefined) {
    if (omits) throw new TypeError('omitResponseConstraintInput needs a responseConstraint');
    return undefined;
  }
  const tell = (text: string): string => (omits ? '' : text);
  if (given instanceof RegExp) {
    if (!HARMLESS_FLAGS.test(given.flags))
      throw failure(
        `the flags "${given.flags}" of a responseConstraint are not supported; "d", "g", "u", "v" `
          + 'and "y" are',
        'NotSupportedError',
      );
    const told = tell(`Answer with a text that matches this regular expression: ${String(given)}`);
    return { request: { regex: given.source }, told };
  }
  const text: string | undefined =
    typeof given === 'object' && given !== null && !Array.isArray(given)
      ? JSON.stringify(given)
      : undefined;
  if (text === undefined)
    throw new TypeError('a responseConstraint is a JSON Schema, which is an object, or a RegExp');
  const told = tell(`Answer with JSON that conforms to this schema: ${text}`);
  return { request: { json_schema: JSON.parse(text) as JsonSchema }, told };
}

/** The messages with what the model is told of a constraint, as a paragraph of the last one. */
function telling(messages: ChatMessage[], { told = '' }: Partial<Constraint> = {}): ChatMessage[] {
  const last = messages.at(-1);
  if (!told || last?.role !== 'user') return messages;
  return [...messages.slice(0, -1), { ...last, content: `${String(last.content)}\n\n${told}` }];
}

const isText = (e: LanguageModelExpected): boolean => e.type === 'text';
/** What this model cannot do of what a page expects. */
const unexpected = ({
  expectedInputs = [], expectedOutputs = [],
}: Pick<LanguageModelCreateOptions, 'expectedInputs'
  | 'expectedOutputs'>): LanguageModelExpected | undefined =>
    [...expectedInputs, ...expectedOutputs].find((e) => !isText(e));

/** Tokens that an answer should at least have. */
const roomOf = (context: number): number => Math.min(64, context >> 2);

export class LanguageModelSession extends EventTarget {
  /** Called when the oldest messages were forgotten to make room. */
  oncontextoverflow: ((event: Event) => void) | null = null;
  /** The name that it had before. */
  onquotaoverflow: ((event: Event) => void) | null = null;
  private usage = 0;
  // what was asked before must be in the history first
  private last: Promise<unknown> = Promise.resolve();
  private readonly end = new AbortController();

  /** Made by languageModel(engine).create. */
  constructor(
    private readonly engine: Engine,
    private readonly session: Session,
    private readonly system: readonly ChatMessage[],
    private history: ChatMessage[],
    readonly temperature: number,
    readonly topK: number,
    usage: number,
  ) {
    super();
    this.usage = usage;
  }

  /** Tokens that the conversation takes, and those that it may take. */
  get contextUsage(): number {
    return this.usage;
  }

  get contextWindow(): number {
    return this.engine.context;
  }

  /** The names that they had before; an answer needs some of the window too. */
  get inputUsage(): number {
    return this.usage;
  }

  get inputQuota(): number {
    return this.contextWindow - roomOf(this.contextWindow);
  }

  /** One after the other; an abort is heard at once. */
  private async inTurn<T>(
    signal: AbortSignal | undefined, act: (signal: AbortSignal) => Promise<T>,
  ): Promise<T> {
    if (this.end.signal.aborted) throw failure('this session was destroyed', 'InvalidStateError');
    signal?.throwIfAborted();
    let stop = (_: unknown): void => {};
    const { signal: both, unlink } = linked([signal, this.end.signal], () => stop(both.reason));
    const before = this.last;
    const run = async (): Promise<T> => {
      await before;
      both.throwIfAborted();
      return act(both);
    };
    const mine = run();
    this.last = mine.catch(() => {}); // its caller hears of it
    try {
      return await new Promise<T>((resolve, reject) => {
        stop = reject;
        mine.then(resolve, reject);
      });
    } catch (e) {
      throw translate(e);
    } finally {
      void mine.then(unlink, unlink); // what is under way hears of an abort until it has ended
    }
  }

  private count(messages: readonly ChatMessage[]): Promise<number> {
    return messages.length ? this.engine.countTokens({ messages }) : Promise.resolve(0);
  }

  /** The history with room for what comes: the oldest messages go, the system prompt stays. */
  private async fit(more: readonly ChatMessage[]): Promise<ChatMessage[]> {
    let kept = this.history, tokens: number;
    while ((tokens = await this.count([...this.system, ...kept, ...more])) > this.inputQuota) {
      if (!kept.length)
        throw tooLong(`the input has ${tokens} tokens; there is room for ${this.inputQuota}`, {
          requested: tokens, quota: this.inputQuota,
        });
      const next = kept.findIndex((m, i) => i > 0 && m.role === 'user');
      kept = next < 0 ? [] : kept.slice(next);
    }
    if (kept.length < this.history.length) {
      this.history = kept;
      for (const name of ['contextoverflow', 'quotaoverflow'] as const) {
        const event = new Event(name);
        this[`on${name}`]?.(event);
        this.dispatchEvent(event);
      }
    }
    return [...this.system, ...kept, ...more];
  }

  private async *answer(
    input: LanguageModelPrompt, signal: AbortSignal, constraint: Constraint | undefined,
  ): AsyncGenerator<string, void, void> {
    const more = telling(messagesOf(input), constraint), prefix = prefixOf(input);
    if (constraint && prefix)
      throw failure(
        'an answer that begins with a prefix cannot have a responseConstraint', 'NotSupportedError',
      );
    const messages = await this.fit(more);
    let text = prefix ?? '';
    const chunks = await this.session.chat.completions.create({
      messages, ...constraint?.request, stream: true, stream_options: { include_usage: true },
      temperature: this.temperature, top_k: this.topK, signal,
      continue_final_message: prefix !== undefined,
    });
    for await (const { choices: [choice], usage } of chunks) {
      const piece = choice?.delta.content;
      if (usage) this.usage = usage.total_tokens;
      if (!piece) continue;
      text += piece;
      yield piece;
    }
    this.history = [
      ...this.history, ...(prefix === undefined ? more : more.slice(0, -1)),
      { role: 'assistant', content: text },
    ];
  }

  prompt(input: LanguageModelPrompt, options: LanguageModelPromptOptions = {}): Promise<string> {
    return this.inTurn(options.signal, async (signal) => {
      let text = '';
      for await (const piece of this.answer(input, signal, constraintOf(options))) text += piece;
      return text;
    });
  }

  /** Pieces of the answer. Cancelling the stream stops the model, and the turn is as if it had
   *  not been. */
  promptStreaming(
    input: LanguageModelPrompt, options: LanguageModelPromptOptions = {},
  ): ReadableStream<string> {
    const stop = new AbortController();
    let wanted = (): void => {};
    const { signal, unlink } = linked([options.signal, stop.signal], () => wanted());
    return new ReadableStream<string>({
      start: (controller) => {
        const flow = async (both: AbortSignal): Promise<void> => {
          both.addEventListener('abort', () => wanted()); // a signal of this call alone
          for await (const piece of this.answer(input, both, constraintOf(options))) {
            controller.enqueue(piece);
            if ((controller.desiredSize ?? 1) <= 0 && !both.aborted)
              await new Promise<void>((resolve) => (wanted = resolve));
          }
        };
        this.inTurn(signal, flow)
          .then(() => controller.close(), (e: unknown) => controller.error(e))
          .finally(unlink);
      },
      pull: () => wanted(),
      cancel: (reason) => stop.abort(reason ?? failure('the stream was cancelled', 'AbortError')),
    });
  }

  /** Add messages without asking for an answer; they are computed now, so that the next prompt
   *  is quick. */
  append(
    input: LanguageModelPrompt, { signal: given }: CallOptions = {},
  ): Promise<void> {
    return this.inTurn(given, async (signal) => {
      const more = messagesOf(input), messages = await this.fit(more);
      await this.session.prefill({ messages }, { signal });
      this.history = [...this.history, ...more];
      this.usage = await this.count(messages);
    });
  }

  /** Tokens that the input would add. */
  async measureContextUsage(
    input: LanguageModelPrompt, options: LanguageModelPromptOptions = {},
  ): Promise<number> {
    if (this.end.signal.aborted) throw failure('this session was destroyed', 'InvalidStateError');
    options.signal?.throwIfAborted();
    const before = [...this.system, ...this.history];
    const more = telling(messagesOf(input), constraintOf(options));
    return (await this.count([...before, ...more])) - (await this.count(before));
  }

  /** The name that it had before. */
  measureInputUsage(
    input: LanguageModelPrompt, options: LanguageModelPromptOptions = {},
  ): Promise<number> {
    return this.measureContextUsage(input, options);
  }

  /** Another session with the same past. */
  clone({ signal: given }: CallOptions = {}): Promise<LanguageModelSession> {
    return this.inTurn(given, async (signal) => {
      const session = await this.session.fork({ signal });
      if (signal.aborted) void session.close().catch(() => {}); // nobody waits for it any more
      return new LanguageModelSession(
        this.engine, session, this.system, [...this.history], this.temperature, this.topK,
        this.usage,
      );
    });
  }

  /** Stops what is under way; nothing can be asked any more. */
  destroy(): void {
    if (this.end.signal.aborted) return;
    this.end.abort(failure('this session was destroyed', 'AbortError'));
    // an engine that is gone has closed it already
    void this.last.then(() => this.session.close()).catch(() => {});
  }
}

export interface LanguageModelFactory {
  /** 'unavailable' for what this model cannot do: expect anything but text. */
  availability(options?: LanguageModelCreateOptions): Promise<'available' | 'unavailable'>;
  params(): Promise<LanguageModelParams>;
  create(options?: LanguageModelCreateOptions): Promise<LanguageModelSession>;
}

/** What the global LanguageModel is in a browser that has one, on this engine's model. */
export function languageModel(engine: Engine): LanguageModelFactory {
  const { temperature: defaultTemperature, top_k: defaultTopK } = engine.info.sampling;
  const maxTopK = engine.info.n_vocab, maxTemperature = 2;
  return {
    availability: async (options = {}) => (unexpected(options) ? 'unavailable' : 'available'),
    params: async () => ({ defaultTopK, maxTopK, defaultTemperature, maxTemperature }),
    async create(options = {}) {
      const {
        initialPrompts = [], temperature = defaultTemperature, topK = defaultTopK, signal, monitor,
      } = options;
      signal?.throwIfAborted();
      if ((options as { tools?: unknown[] }).tools?.length)
        throw failure(
          'tools are not supported here; use engine.chat.completions', 'NotSupportedError',
        );
      const other = unexpected(options);
      if (other)
        throw failure(
          `"${String(other.type)}" cannot be read or written; this version knows text only`,
          'NotSupportedError',
        );
      if (!(temperature >= 0) || !(topK >= 1))
        throw new RangeError('temperature must be 0 or more and topK 1 or more');
      const [first] = initialPrompts, hasSystem = first?.role === 'system';
      const system: ChatMessage[] =
        hasSystem ? [{ role: 'system', content: textOf(first.content) }] : [];
      const history = messagesOf(initialPrompts.slice(hasSystem ? 1 : 0));
      if (monitor) {
        const target = new EventTarget();
        monitor(target);
        for (const loaded of [0, 1]) target.dispatchEvent(new DownloadProgressEvent(loaded));
      }
      const session = engine.session(), messages = [...system, ...history];
      let usage = 0;
      if (messages.length) {
        try {
          usage = await engine.countTokens({ messages });
          const quota = engine.context - roomOf(engine.context);
          if (usage > quota)
            throw tooLong(`the initial prompts have ${usage} tokens; there is room for ${quota}`, {
              requested: usage, quota,
            });
          await session.prefill({ messages }, { ...(signal && { signal }) });
        } catch (e) {
          void session.close().catch(() => {});
          throw translate(e);
        }
      }
      return new LanguageModelSession(
        engine,
        session,
        system,
        history,
        Math.min(temperature, maxTemperature),
        Math.min(Math.floor(topK), maxTopK),
        usage,
      );
    },
  };
}
