// diffusion - engine.diffusion: answers of a diffusion model step by step, canvases that are given,
// words of an answer written again. The client's half; engine/local_diffusion.ts has the model.

import { plainRequest } from './completions_request.js';
import { readDiffusion } from './diffusion_request.js';
import type {
  DiffusionRequest, DiffusionResult, DiffusionRun, DiffusionSettings, DiffusionStep, EditRequest,
  EditResult, EditStep,
} from './diffusion_types.js';
import { BezelError, brief, show } from './errors.js';
import type { DiffusionStreams, Told } from '../engine/local_diffusion.js';
import type { Link } from '../engine/rpc.js';
import { hint } from './near.js';

const settings = [
  'steps', 't_min', 't_max', 'entropy_bound', 'stability', 'confidence', 'canvases', 'canvas',
  'fixed',
] as const satisfies readonly (keyof DiffusionSettings)[];

const editFields = [
  'messages', 'tools', 'thinking', 'seed', 'adapters', 'session', 'prompt_cache_key', 'text',
  'selection', 'instruction', 'length',
] as const satisfies readonly (keyof EditRequest)[];

const wrong = (message: string, param: string): never => {
  throw new BezelError(message, 'argument', undefined, param);
};
const cannot = (message: string, param: string): never => {
  throw new BezelError(message, 'unsupported', undefined, param);
};
const isGiven = (value: unknown): boolean => value !== undefined && value !== null;

/** The settings among the fields of a request, checked; and the other fields. */
function split<R extends DiffusionSettings>(
  request: R,
): [DiffusionSettings, Omit<R, (typeof settings)[number]>] {
  const rest: R = { ...request }, given: Record<string, unknown> = {};
  for (const name of settings) {
    const value = rest[name];
    delete rest[name];
    if (isGiven(value)) given[name] = value;
  }
  readDiffusion(given, '');
  return [given, rest];
}

/** What a request for steps says that steps of one answer cannot have. */
function checkOne(fields: Readonly<Record<string, unknown>>): void {
  const { n, prompt, diffusion } = fields;
  if (isGiven(n) && n !== 1) cannot('"n" must be 1: steps are of one answer', 'n');
  if (Array.isArray(prompt) && prompt.length > 1 && typeof prompt[0] !== 'number')
    cannot('"prompt" has several texts; steps are of one answer', 'prompt');
  if (isGiven(diffusion))
    cannot('"diffusion" is for other calls; here its settings are fields themselves', 'diffusion');
}

/** What is not an edit's. */
function checkEdit(
  diffusion: DiffusionSettings, rest: Readonly<Record<string, unknown>>,
): void {
  for (const name of ['canvas', 'fixed', 'canvases'] as const)
    if (isGiven(diffusion[name]))
      cannot(`an edit makes its own canvas: "${name}" is not for it`, name);
  for (const [name, value] of Object.entries(rest))
    if (isGiven(value) && !editFields.some((known) => known === name))
      cannot(`an edit has no "${brief(name)}"${hint(name, editFields)}`, brief(name));
  if (isGiven(rest.instruction) && typeof rest.instruction !== 'string')
    wrong(`"instruction" must be a text, not ${show(rest.instruction)}`, 'instruction');
}

class Run<S, R> implements DiffusionRun<S, R> {
  private finish!: (result: R) => void;
  private fail!: (error: unknown) => void;
  private readonly over = new Promise<R>((finish, fail) => {
    this.finish = finish;
    this.fail = fail;
  });
  private begun = false;

  constructor(
    private readonly open: () => AsyncGenerator<Told<S, R>, void, void>,
    private readonly onStep: ((step: S) => void) | undefined,
  ) {
    this.over.catch(() => {}); // whoever asks for the result hears of it
  }

  get result(): Promise<R> {
    if (!this.begun) void this.drain();
    return this.over;
  }

  private async drain(): Promise<void> {
    try {
      for await (const _ of this);
    } catch {
      // the result has it
    }
  }

  [Symbol.asyncIterator](): AsyncGenerator<S, void, void> {
    if (this.begun) throw new BezelError('these steps are being read already', 'argument');
    this.begun = true;
    return this.steps();
  }

  private async *steps(): AsyncGenerator<S, void, void> {
    try {
      for await (const told of this.open()) {
        if ('result' in told) return this.finish(told.result);
        this.onStep?.(told.step);
        yield told.step;
      }
    } catch (e) {
      this.fail(e);
      throw e;
    } finally {
      // no effect where there is a result
      this.fail(new DOMException('The steps were left.', 'AbortError'));
    }
  }
}

export class Diffusion {
  constructor(private readonly link: Link<Record<never, never>, DiffusionStreams>) {}

  /** An answer to `messages`, or to a raw `prompt`, step by step. */
  generate(request: DiffusionRequest): DiffusionRun<DiffusionStep, DiffusionResult> {
    const { onStep, signal, ...fields } = request, [diffusion, rest] = split(fields);
    if (rest.messages === undefined && rest.prompt === undefined && !rest.session)
      wrong('"messages" or "prompt" is missing', 'messages');
    checkOne({ ...rest });
    const params = { ...plainRequest(rest, undefined), diffusion, return_steps: true };
    return new Run(() => {
      const { messages, ...raw } = params;
      return messages
        ? this.link.stream('diffuseChat', { ...raw, messages }, { signal })
        : this.link.stream('diffuse', raw, { signal });
    }, onStep);
  }

  /** Other words in place of some of an answer's: what stands around them stays. */
  edit(request: EditRequest): DiffusionRun<EditStep, EditResult> {
    const { onStep, signal, ...fields } = request, [diffusion, rest] = split(fields);
    const { text, selection, length, messages } = rest;
    checkEdit(diffusion, { ...rest });
    if (!Array.isArray(messages) || !messages.length)
      wrong('"messages" must be a list with at least one message', 'messages');
    if (typeof text !== 'string') wrong('"text" must be the answer', 'text');
    const [from, to] = Array.isArray(selection) ? (selection as [number, number]) : [-1, -1];
    if (!(Number.isInteger(from) && Number.isInteger(to) && from >= 0 && from <= to
      && to <= text.length))
      wrong(`"selection" must be [from, to] within the text, not ${show(selection)}`, 'selection');
    const pair = /^[\ud800-\udbff][\udc00-\udfff]$/;
    if ([from, to].some((at) => pair.test(text.slice(at - 1, at + 1))))
      wrong('"selection" cuts a character in two', 'selection');
    if (isGiven(length) && !(Number.isInteger(length) && (length as number) > 0))
      wrong(`"length" must be a number of tokens, not ${show(length)}`, 'length');
    if (from === to && !length) wrong('an empty selection needs a "length"', 'length');
    const params = { ...plainRequest(rest, undefined), diffusion };
    return new Run(() => this.link.stream('edit', params, { signal }), onStep);
  }
}
