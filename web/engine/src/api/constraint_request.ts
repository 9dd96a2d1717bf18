// constraint_request - what an answer must keep to, as a request says it: JSON, a schema, a
// pattern, a grammar, calls of tools.
//
// OpenAI's fields, and those of llama.cpp's server and vLLM that mean the same. The core compiles
// what comes out (src/grammar/constraint.h) and says what of it cannot be kept.

import { BezelError, brief, show } from './errors.js';
import type { CallableTool, Constraint } from '../engine/cpu_engine.js';

type Fields = Readonly<Record<string, unknown>>;

/** What the content of an answer keeps to. */
export type Content = { schema: unknown } | { json: true } | { regex: string } | { gbnf: string };

const wrong = (message: string, param: string): never => {
  throw new BezelError(message, 'argument', undefined, param);
};
const cannot = (message: string, param: string): never => {
  throw new BezelError(message, 'unsupported', undefined, param);
};

const isObject = (value: unknown): value is Fields =>
  typeof value === 'object' && value !== null && !Array.isArray(value);

// ---- content ----

type Reader = (value: unknown, name: string) => Content | undefined;

/** A text; an empty one asks for nothing. */
const textOf = (value: unknown, name: string): string => {
  if (typeof value !== 'string') return wrong(`"${name}" must be a text, not ${show(value)}`, name);
  return value;
};
const regexOf: Reader = (value, name) => {
  const regex = textOf(value, name);
  return regex ? { regex } : undefined;
};
const grammarOf: Reader = (value, name) => {
  const gbnf = textOf(value, name);
  return gbnf ? { gbnf } : undefined;
};

const schemaOf: Reader = (value, name) => {
  if (isObject(value) || typeof value === 'boolean') return { schema: value };
  return wrong(`"${name}" must be a JSON Schema, which is an object, not ${show(value)}`, name);
};

/** A schema, or its text. */
const schemaOrTextOf: Reader = (value, name) => {
  if (typeof value !== 'string') return schemaOf(value, name);
  if (!value) return undefined;
  try {
    return schemaOf(JSON.parse(value), name);
  } catch (e) {
    if (e instanceof BezelError) throw e;
    return wrong(`"${name}" is not valid JSON: ${(e as Error).message}`, name);
  }
};

/** One of a few texts, as a pattern. */
const choiceOf: Reader = (value, name) => {
  if (!Array.isArray(value) || !value.every((v) => typeof v === 'string'))
    return wrong(`"${name}" must be a list of texts, not ${show(value)}`, name);
  const quoted = (value as string[]).map((v) => v.replace(/[\\^$.*+?()[\]{}|/]/g, '\\$&'));
  return quoted.length ? { regex: quoted.join('|') } : undefined;
};

const jsonOf: Reader = (value, name) => {
  if (typeof value !== 'boolean')
    return wrong(`"${name}" must be true or false, not ${show(value)}`, name);
  return value ? { json: true } : undefined;
};

const formatOf: Reader = (value, name) => {
  const { type, schema, json_schema: named, grammar } = isObject(value) ? value : {};
  if (type === 'text') return undefined;
  // llama.cpp's server takes a schema here too
  if (type === 'json_object')
    return schema === undefined || schema === null
      ? { json: true }
      : schemaOf(schema, `${name}.schema`);
  if (type === 'grammar') return grammarOf(grammar, `${name}.grammar`);
  if (type !== 'json_schema')
    return cannot(
      `"${name}" must be an object whose "type" is text, json_object, json_schema or grammar, `
        + `not ${show(isObject(value) ? type : value)}`,
      name,
    );
  if (!isObject(named) || named.schema === undefined || named.schema === null)
    return wrong(
      `"${name}" needs a schema: {"type": "json_schema", "json_schema": {"name", "schema"}}`,
      `${name}.json_schema`,
    );
  return schemaOf(named.schema, `${name}.json_schema.schema`);
};

/** The one of several members that says something. */
const oneOf = (readers: Readonly<Record<string, Reader>>): Reader => (value, name) => {
  if (!isObject(value)) return wrong(`"${name}" must be an object, not ${show(value)}`, name);
  for (const [key, member] of Object.entries(value))
    if (member !== null && !Object.hasOwn(readers, key))
      cannot(
        `there is no "${name}.${brief(key)}"; there are ${Object.keys(readers).join(', ')}`,
        `${name}.${brief(key)}`,
      );
  return readOne(value, readers, `${name}.`)?.content;
};

/** The names are those of other servers: llama.cpp's, vLLM's. */
const readers: Readonly<Record<string, Reader>> = {
  response_format: formatOf,
  json_schema: schemaOf,
  grammar: grammarOf,
  regex: regexOf,
  structured_outputs: oneOf({
    json: schemaOrTextOf, regex: regexOf, choice: choiceOf, grammar: grammarOf, json_object: jsonOf,
  }),
  guided_json: schemaOrTextOf,
  guided_regex: regexOf,
  guided_choice: choiceOf,
  guided_grammar: grammarOf,
};

export const contentFields = [...Object.keys(readers), 'json_indent', 'json_lenient'];

interface Asked {
  content: Content;
  /** The field that asks for it. */
  param: string;
}

function readOne(
  fields: Fields, all: Readonly<Record<string, Reader>>, at = '',
): Asked | undefined {
  let first: Asked | undefined;
  for (const [name, read] of Object.entries(all)) {
    const value = fields[name], param = `${at}${name}`;
    const content = value === undefined || value === null ? undefined : read(value, param);
    if (content && first)
      wrong(`"${first.param}" and "${param}" both say what an answer keeps to; give one`, param);
    if (content) first = { content, param };
  }
  return first;
}

// ---- tools ----

const functionOf = (tool: unknown): Fields =>
  (isObject(tool) && isObject(tool.function) ? tool.function : {});
const nameOf = (tool: unknown): unknown => functionOf(tool).name;

/** A tool that says nothing of its parameters has none. */
const noParameters = { type: 'object', properties: {}, additionalProperties: false };

/** Where nothing is said of being strict, arguments keep to their schema if they can. */
function callableTool(tool: unknown, i: number): CallableTool {
  const { name, parameters, strict } = functionOf(tool), at = `tools[${i}].function`;
  if (typeof name !== 'string') wrong(`tools[${i}] needs a function with a name`, `${at}.name`);
  if (strict !== undefined && strict !== null && typeof strict !== 'boolean')
    wrong(`"${at}.strict" must be true or false, not ${show(strict)}`, `${at}.strict`);
  return {
    name: name as string,
    parameters: parameters ?? noParameters,
    ...(typeof strict === 'boolean' && { strict }),
  };
}

const choices =
  '"none", "auto", "required", {"type": "function", "function": {"name"}} and '
    + '{"type": "allowed_tools", "allowed_tools": {"mode", "tools"}}';

interface Choice {
  call: 'auto' | 'required' | 'none';
  /** Tools that may be called; undefined: all. */
  names?: readonly unknown[];
  one?: boolean;
}

function readChoice(choice: unknown): Choice {
  if (choice === undefined) return { call: 'auto' };
  if (choice === 'none' || choice === 'auto' || choice === 'required') return { call: choice };
  const { type, function: named, allowed_tools: allowed } = isObject(choice) ? choice : {};
  if (type === 'function' && isObject(named))
    return { call: 'required', names: [named.name], one: true };
  if (type === 'allowed_tools' && isObject(allowed) && Array.isArray(allowed.tools)) {
    const { mode = 'auto', tools } = allowed;
    if (mode !== 'auto' && mode !== 'required')
      wrong(
        `"tool_choice.allowed_tools.mode" must be "auto" or "required", not ${show(mode)}`,
        'tool_choice.allowed_tools.mode',
      );
    return { call: mode as 'auto' | 'required', names: tools.map(nameOf) };
  }
  return cannot(`"tool_choice" ${show(choice)} is not supported; there are ${choices}`,
    'tool_choice');
}

interface Tools {
  /** Those that the model is shown. */
  shown: readonly unknown[] | undefined;
  choice: Choice;
}

export function readTools({ tools, tool_choice: given }: Fields): Tools {
  if (tools !== undefined && !Array.isArray(tools)) return wrong('"tools" must be a list', 'tools');
  const choice = readChoice(given), list: readonly unknown[] = tools ?? [];
  if (choice.call === 'required' && !list.length)
    wrong(`"tool_choice" ${show(given)} needs "tools"`, 'tool_choice');
  if (choice.names && !choice.names.length)
    wrong('"tool_choice.allowed_tools.tools" is empty', 'tool_choice.allowed_tools.tools');
  for (const name of choice.names ?? [])
    if (!list.some((tool) => nameOf(tool) === name))
      wrong(`"tool_choice" names ${show(name)}, which is not among "tools"`, 'tool_choice');
  return { shown: list.length && choice.call !== 'none' ? list : undefined, choice };
}

/** Calls are free, unless something is said of them: which, how many, or how strictly. */
function callsOf(
  { shown = [], choice: { call, names, one } }: Tools, oneCall: boolean,
): Pick<Constraint, 'tools' | 'call' | 'one_call'> {
  const tools = shown.map(callableTool).filter(({ name }) => names?.includes(name) ?? true);
  return { tools, call, one_call: one ?? oneCall };
}

// ---- both ----

export interface ConstraintWish {
  constraint: Constraint;
  /** The field that errors are about. */
  param: string;
}

const flag = (fields: Fields, name: string): boolean => {
  const value = fields[name];
  if (value !== undefined && typeof value !== 'boolean')
    wrong(`"${name}" must be true or false, not ${show(value)}`, name);
  return value === true;
};

/** Undefined: the answer is free. */
export function readConstraint(
  fields: Fields,
  { tools, oneCall = false, thinking = false, begun = '' }: {
    tools?: Tools; oneCall?: boolean; thinking?: boolean; begun?: string | undefined;
  } = {},
): ConstraintWish | undefined {
  const asked = readOne(fields, readers), indent = flag(fields, 'json_indent');
  const lenient = flag(fields, 'json_lenient'), { shown, choice } = tools ?? {};
  const isStrict = shown?.some((tool) => functionOf(tool).strict === true);
  const isSaid = choice?.call === 'required' || choice?.names !== undefined;
  const hasCalls = shown && (asked || isStrict || isSaid);
  const param = asked?.param ?? (isSaid ? 'tool_choice' : 'tools');
  if (!asked && !hasCalls) return undefined;
  if (begun)
    wrong(
      `"continue_final_message" goes on from content that was not written by "${param}"; `
        + 'ask without one of them',
      'continue_final_message',
    );
  return {
    constraint: {
      ...asked?.content,
      ...(hasCalls && callsOf(tools as Tools, oneCall)),
      ...(indent && { indent }), ...(lenient && { lenient }), ...(thinking && { thinking }),
    },
    param,
  };
}
