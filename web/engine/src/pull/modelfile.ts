// modelfile - Ollama's description of a model: the texts beside its weights as lines of a
// Modelfile, and such lines read.

import { BezelError } from '../api/errors.js';
import type { ModelTexts } from '../store/ollama_store.js';

export const isObject = (v: unknown): v is Record<string, unknown> =>
  typeof v === 'object' && v !== null && !Array.isArray(v);

/** The parameters of a model, each with its values as JSON. */
export function parameterRows(params: string | undefined): (readonly [string, string])[] {
  let all: unknown;
  try {
    all = JSON.parse(params ?? '{}');
  } catch (e) {
    throw new BezelError('the parameters of the model are not JSON', 'format', e);
  }
  return Object.entries(isObject(all) ? all : {}).flatMap(([key, value]) =>
    (Array.isArray(value) ? (value as unknown[]) : [value]).map((one) =>
      [key, JSON.stringify(one)] as const));
}

/** One a line, as `ollama show` aligns them. */
export const parameterLines = (params: string | undefined): string =>
  parameterRows(params).map(([key, value]) => `${key.padEnd(30)} ${value}`).join('\n');

// ---- reading ----

const MAX_MODELFILE = 4 << 20; // characters
const ROLES = ['system', 'user', 'assistant'];

/** What kind of value a parameter has, by its name. */
const kinds: Readonly<Record<string, 'int' | 'float' | 'bool' | 'texts'>> = {
  stop: 'texts',
  num_ctx: 'int', num_predict: 'int', num_keep: 'int', num_batch: 'int', num_gpu: 'int',
  main_gpu: 'int', num_thread: 'int', draft_num_predict: 'int', top_k: 'int', repeat_last_n: 'int',
  seed: 'int',
  temperature: 'float', top_p: 'float', min_p: 'float', typical_p: 'float', repeat_penalty: 'float',
  presence_penalty: 'float', frequency_penalty: 'float',
  use_mmap: 'bool',
};

/** A sentence, without what a terminal would obey. */
const wrong = (text: string): BezelError =>
  new BezelError(text.replace(/[\0-\x1f\x7f-\x9f]/g, ' '), 'argument');

function valueOf(name: string, text: string): unknown {
  const kind = kinds[name];
  if (kind === 'texts') return [text];
  if (kind === 'bool' && /^(true|false)$/i.test(text)) return text.toLowerCase() === 'true';
  const n = text.trim() === '' ? NaN : Number(text);
  if (kind === 'int' && Number.isInteger(n)) return n;
  if (kind === 'float' && Number.isFinite(n)) return n;
  throw kind === undefined
    ? wrong(`there is no parameter "${name.slice(0, 40)}"`)
    : wrong(`the parameter ${name} cannot be "${text.slice(0, 40)}"`);
}

/** Parameters as a request has them, each of its kind. */
export function checkParameters(given: unknown): Record<string, unknown> {
  if (!isObject(given)) throw wrong('"parameters" is not an object');
  return Object.fromEntries(Object.entries(given).map(([name, value]) => {
    const kind = kinds[name], said = JSON.stringify(value) ?? '';
    if (kind === 'texts') {
      const all = Array.isArray(value) ? (value as unknown[]) : [value];
      if (all.every((v) => typeof v === 'string')) return [name, all];
    } else if (kind === undefined || ['number', 'boolean'].includes(typeof value))
      return [name, valueOf(name, said)];
    throw wrong(`the parameter ${name} cannot be ${said.slice(0, 40)}`);
  }));
}

export interface Message {
  role: string;
  content: string;
}

export function checkMessages(given: unknown): Message[] {
  if (!Array.isArray(given)) throw wrong('"messages" is not a list');
  return (given as unknown[]).map((m) => {
    const { role, content } = isObject(m) ? m : {};
    if (typeof role !== 'string' || !ROLES.includes(role) || typeof content !== 'string')
      throw wrong('a message has a role (system, user or assistant) and a content');
    return { role, content };
  });
}

/** What a Modelfile says. */
export interface Modelfile {
  from: string;
  adapters: string[];
  license: string[];
  messages: Message[];
  parameters: Record<string, unknown>;
  system?: string;
  template?: string;
}

/** A value: to the end of the line, or in quotation marks ("…", """…""") over several. */
function readValue(text: string, at: number, line: number): { value: string; end: number } {
  for (const mark of ['"""', '"']) {
    if (!text.startsWith(mark, at)) continue;
    for (let close = text.indexOf(mark, at + mark.length); close >= 0;
      close = text.indexOf(mark, close + 1)) {
      const end = close + mark.length, rest = /[ \t]*(\r?\n|$)/y;
      rest.lastIndex = end;
      if (rest.test(text)) return { value: text.slice(at + mark.length, close), end };
    }
    throw wrong(`line ${line}: the quotation mark is not closed`);
  }
  const next = text.indexOf('\n', at), end = next < 0 ? text.length : next;
  return { value: text.slice(at, end).trim(), end };
}

export function parseModelfile(text: string): Modelfile {
  if (text.length > MAX_MODELFILE) throw wrong('the Modelfile is longer than 4 MB');
  const file: Modelfile = { from: '', adapters: [], license: [], messages: [], parameters: {} };
  let line = 1, seen = 0;
  for (let at = 0; at < text.length;) {
    const word = /[ \t\r]*(?:#[^\n]*|([A-Za-z]+)[ \t]+|([^\n]*\S[^\n]*)?)/y;
    word.lastIndex = at;
    const [all = '', name, other] = word.exec(text) ?? [];
    for (; seen < at; seen++) if (text[seen] === '\n') line++;
    if (other !== undefined)
      throw wrong(`line ${line}: "${other.slice(0, 40)}" is no instruction with a value`);
    at += all.length;
    if (name !== undefined) at = instruction(file, name.toUpperCase(), text, at, line);
    if (text[at] === '\n') at++;
    else if (at < text.length && !all && name === undefined)
      throw wrong(`line ${line}: this is no instruction`);
  }
  if (!file.from) throw wrong('the Modelfile has no FROM line');
  return file;
}

/** One instruction, whose value begins at `at`; where it ends. */
function instruction(
  file: Modelfile, name: string, text: string, at: number, line: number,
): number {
  let key = '';
  if (name === 'PARAMETER' || name === 'MESSAGE') {
    const word = /([A-Za-z0-9_]+)[ \t]+/y;
    word.lastIndex = at;
    const [all, first] = word.exec(text) ?? [];
    if (all === undefined || first === undefined)
      throw wrong(`line ${line}: ${name} needs a name and a value`);
    key = first;
    at += all.length;
  }
  const { value, end } = readValue(text, at, line);
  switch (name) {
    case 'FROM': file.from = value; break;
    case 'ADAPTER': file.adapters.push(value); break;
    case 'LICENSE': file.license.push(value); break;
    case 'SYSTEM': file.system = value; break;
    case 'TEMPLATE': file.template = value; break;
    case 'MESSAGE':
      file.messages.push(...checkMessages([{ role: key, content: value }]));
      break;
    case 'PARAMETER': {
      const made = valueOf(key, value), before = file.parameters[key];
      file.parameters[key] =
        Array.isArray(before) && Array.isArray(made) ? [...(before as unknown[]), ...made] : made;
      break;
    }
    default:
      throw wrong(
        `line ${line}: this server knows FROM, SYSTEM, PARAMETER, ADAPTER, MESSAGE and LICENSE, `
          + `not ${name.slice(0, 20)}`,
      );
  }
  return end;
}

// ---- writing ----

const quoted = (text: string): string =>
  (/["\n]|^\s|\s$/.test(text) ? `"""${text}"""` : text);

/** A model as a Modelfile, with its own name after FROM. */
export function modelfileText(name: string, texts: ModelTexts): string {
  const lines = [`FROM ${name}`];
  if (texts.template !== undefined) lines.push(`TEMPLATE ${quoted(texts.template)}`);
  if (texts.system !== undefined) lines.push(`SYSTEM ${quoted(texts.system)}`);
  for (const [key, value] of parameterRows(texts.params)) {
    const said = JSON.parse(value) as unknown;
    lines.push(`PARAMETER ${key} ${typeof said === 'string' ? quoted(said) : value}`);
  }
  for (const { role, content } of messagesOf(texts.messages))
    lines.push(`MESSAGE ${role} ${quoted(content)}`);
  if (texts.license !== undefined) lines.push(`LICENSE ${quoted(texts.license)}`);
  return `${lines.join('\n')}\n`;
}

function messagesOf(text: string | undefined): Message[] {
  try {
    return text === undefined ? [] : checkMessages(JSON.parse(text));
  } catch (e) {
    // loading says what is wrong
    if (e instanceof SyntaxError || e instanceof BezelError) return [];
    throw e;
  }
}
