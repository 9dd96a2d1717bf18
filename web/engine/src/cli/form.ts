// form - what the answers of a command keep to: JSON, a schema, a pattern, a grammar.

import type { Constraint } from '../engine/cpu_engine.js';
import type { Model } from '../engine/model.js';
import { BezelError } from '../engine/wasm.js';
import { readText } from '../load/node_files.js';
import { Misuse, type Given, type Option } from './args.js';

export const formOptions: readonly Option[] = [
  {
    name: '--schema', arg: 'FILE', help: 'JSON that keeps to the JSON Schema in FILE', kind: 'text',
  },
  { name: '--json-object', help: 'JSON: any object', kind: 'flag' },
  { name: '--regex', arg: 'R', help: 'text that the pattern R matches as a whole', kind: 'text' },
  { name: '--grammar', arg: 'FILE', help: 'text of the grammar in FILE, in GBNF', kind: 'text' },
];

/** What was asked for, and the file that says it. */
export interface Form {
  constraint: Constraint;
  path: string | undefined;
}

function schemaOf(path: string): unknown {
  try {
    return JSON.parse(readText(path)) as unknown;
  } catch (e) {
    if (e instanceof BezelError) throw e;
    throw new BezelError(`${path}: not valid JSON: ${(e as Error).message}`, 'format', e);
  }
}

/** Undefined: answers are free. */
export function readForm(given: Given): Form | undefined {
  if (formOptions.filter(({ name }) => given.has(name)).length > 1)
    throw new Misuse('give one of --schema, --json-object, --regex and --grammar');
  const schema = given.text('--schema'), grammar = given.text('--grammar');
  const regex = given.text('--regex'), path = schema ?? grammar;
  if (schema !== undefined) return { constraint: { schema: schemaOf(schema) }, path };
  if (grammar !== undefined) return { constraint: { gbnf: readText(grammar) }, path };
  if (regex !== undefined) return { constraint: { regex }, path };
  return given.has('--json-object') ? { constraint: { json: true }, path } : undefined;
}

/** For the options of a text; what cannot be kept is an error before anything is read. */
export function keeping(
  model: Model, form: Form | undefined, prompt: Pick<Constraint, 'thinking' | 'in_thought'> = {},
): { constraint?: Constraint } {
  if (!form) return {};
  const { path } = form, constraint = { ...form.constraint, ...prompt };
  const why = model.checkConstraint(constraint);
  if (why !== undefined) throw new BezelError(path ? `${path}: ${why}` : why, 'unsupported');
  return { constraint };
}
