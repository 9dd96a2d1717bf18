// bounds - requests that no context could hold, told by their bytes: they are refused (or lose
// their oldest turns, where they may) before anything is copied into the engine's thread, whose
// memory only ever grows.

import { BezelError } from '../api/errors.js';
import { dropOldest } from '../engine/truncation.js';
import type { Request } from './host.js';

const TOKEN_BYTES = 256; // of UTF-8: no token of a Gemma vocabulary is longer

const tokensOf = (value: unknown): number => {
  const text = typeof value === 'string'
    ? value
    : value === undefined || value === null ? '' : JSON.stringify(value);
  return text ? Math.ceil(Buffer.byteLength(text) / TOKEN_BYTES) : 0;
};
const length = (value: unknown): number => (Array.isArray(value) ? value.length : 0);

/** Tokens that messages have at least. */
function atLeast(messages: readonly unknown[], enough: number): number {
  let n = 0;
  for (const m of messages) {
    const { role: _, content, ...rest } = (m ?? {}) as Record<string, unknown>;
    n += 1 + tokensOf(content)
      + Math.max(length(rest.tool_calls), Object.keys(rest).length && tokensOf(rest));
    if (n > enough) break;
  }
  return n;
}

const prompts = (prompt: unknown): readonly unknown[] =>
  (Array.isArray(prompt) && prompt.some((p) => typeof p !== 'number') ? prompt : [prompt]);

/** The request, with fewer turns where it is too long and allows that. */
export function bounded(request: Request, context: number): Request {
  const refuse = (n: number, param: string): never => {
    throw new BezelError(
      `the prompt has more than ${n} tokens, which do not fit into the context of ${context}`,
      'limit',
      undefined,
      param,
    );
  };
  for (const prompt of prompts(request.prompt)) {
    const n = Array.isArray(prompt) ? prompt.length : tokensOf(prompt);
    if (n > context) refuse(n, 'prompt');
  }
  const { messages } = request, room = context - tokensOf(request.tools) - length(request.tools);
  if (room < 0) refuse(context - room, 'tools');
  if (!Array.isArray(messages)) return request;
  const n = atLeast(messages, room);
  if (n <= room) return request;
  const kept = request.truncation === 'auto'
    ? dropOldest(messages as { role?: unknown }[], (some) => atLeast(some, room) <= room)
    : undefined;
  return kept ? { ...request, messages: kept } : refuse(n, 'messages');
}
