// json - answers that are JSON: what a conversation asks for, and how its answers are shown.

import type { ConstraintFields, Engine, JsonSchema } from 'bezel';
import { messageOf } from '../state/notices';
import type { ChatSettings } from './types';

type JsonSettings = Pick<ChatSettings, 'json' | 'schema'>;

export const jsonKinds = ['off', 'object', 'schema'] as const;

/** The text of a schema; undefined: it is not JSON. */
function parsed(text: string): unknown {
  try {
    return JSON.parse(text) as unknown;
  } catch {
    return undefined;
  }
}

/** What a request says of it. A schema that is not JSON goes as it is: the engine says why it
 *  cannot be kept. */
export function formatOf({ json, schema }: JsonSettings): ConstraintFields {
  if (json === 'off') return {};
  if (json === 'object') return { response_format: { type: 'json_object' } };
  return { json_schema: (parsed(schema) ?? schema) as JsonSchema };
}

/** With line breaks and indents between what stands there; strings and numbers stay as they were
 *  written, and the text may end anywhere. */
export function layOut(text: string): string {
  let out = '', depth = 0, inString = false;
  const line = (): string => `\n${'  '.repeat(depth)}`;
  for (let i = 0; i < text.length; i++) {
    const c = text[i] as string;
    if (inString) {
      out += c === '\\' ? c + (text[++i] ?? '') : c;
      inString = c !== '"';
    } else if (c === '{' || c === '[') {
      depth++;
      const closes = /^\s*[}\]]/.exec(text.slice(i + 1, i + 65));
      out += c;
      if (!closes) out += line();
      else {
        depth--;
        out += closes[0].trim();
        i += closes[0].length;
      }
    } else if (c === '}' || c === ']') {
      depth = Math.max(0, depth - 1);
      out += line() + c;
    } else if (c === ',') out += c + line();
    else if (c === ':') out += ': ';
    else if (!/\s/.test(c)) {
      out += c;
      inString = c === '"';
    }
  }
  return out;
}

/** Whether an answer is shown as JSON: all of it is an object or a list, or is becoming one where
 *  the conversation asks for that. */
export function isJson(text: string, writing: boolean, wanted: boolean): boolean {
  if (!/^\s*[[{]/.test(text)) return false;
  return writing ? wanted : typeof parsed(text) === 'object';
}

/** As a block of code in markdown, whatever stands in its strings. */
export function asCode(text: string): string {
  const longest = Math.max(2, ...Array.from(text.matchAll(/`+/g), ([run]) => run.length));
  const fence = '`'.repeat(longest + 1);
  return `${fence}json\n${layOut(text)}\n${fence}`;
}

export type SchemaCheck = { kind: 'none' | 'good' } | { kind: 'bad'; why: string };

/** Can answers keep to it? Without an engine only that it is JSON can be told. */
export async function checkSchema(text: string, engine: Engine | null): Promise<SchemaCheck> {
  if (!text.trim()) return { kind: 'none' };
  try {
    const schema = JSON.parse(text) as JsonSchema;
    if (!engine) return { kind: 'none' };
    const why = await engine.checkGrammar({ schema });
    return why === undefined ? { kind: 'good' } : { kind: 'bad', why };
  } catch (e) {
    return { kind: 'bad', why: messageOf(e) };
  }
}
