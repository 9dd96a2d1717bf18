// modelfile - Ollama's description of a model: the texts beside its weights as lines of a
// Modelfile, and such lines read.

import { BezelError } from '../api/errors.js';

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
