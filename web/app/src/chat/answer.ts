// answer - one answer from the engine, kept while it grows, so that a reload in mid-sentence loses
// next to nothing.

import { LimitError, type ChatStreamRequest, type Engine } from 'bezel';
import { tooLong } from '../lib/format';
import { needAdapters } from '../state/adapters';
import { currentEngine, deviceLost, unloadedNote, useConversation } from '../state/engine';
import { messageOf, notifyError } from '../state/notices';
import { history } from '../storage/client';
import { Writer } from './live';
import { toRequest } from './prompt';
import type { Conversation, Message } from './types';

const KEEP_EVERY = 300; // milliseconds

/** More tokens than the context holds, told as a person counts them. */
async function limitNote(
  engine: Engine, { messages, tools, thinking }: ChatStreamRequest, e: LimitError,
): Promise<string> {
  try {
    const tokens = await engine.countTokens({
      messages, ...(tools && { tools }), ...(thinking && { thinking }),
    });
    if (tokens <= engine.context) return messageOf(e); // another limit
    return `${tooLong(tokens, engine.context)} Load it with more context, or start a new chat.`;
  } catch {
    return messageOf(e); // what went wrong first is what is told
  }
}

/** What `start` holds already is gone on from. Never throws: what went wrong is in the message. */
export async function answerOnce(
  c: Conversation, before: readonly Message[], start: Message, signal: AbortSignal,
): Promise<Message> {
  const writer = new Writer(start);
  let kept = performance.now();
  let outcome: Pick<Message, 'state' | 'note'> = { state: 'done', note: '' };
  const { engine, model } = currentEngine();
  const request = toRequest(before, c.settings, start);
  try {
    await needAdapters(c.settings.adapters);
    const session = await useConversation(c);
    const chunks = await engine.chat.completions.create({ ...request, session, signal });
    for await (const chunk of chunks) {
      writer.add(chunk);
      if (performance.now() - kept < KEEP_EVERY) continue;
      kept = performance.now();
      history.putMessage(writer.message).catch(notifyError);
    }
    if (writer.cut)
      outcome = {
        state: 'stopped',
        note: c.settings.maxTokens
          ? 'The answer reached its limit of tokens.'
          : 'The context is full.',
      };
  } catch (e) {
    if (signal.aborted) outcome = { state: 'stopped', note: '' };
    else {
      const unloaded = unloadedNote(e, model.name);
      if (unloaded) outcome = { state: 'stopped', note: unloaded };
      else
        outcome = {
          state: 'error',
          note: e instanceof LimitError ? await limitNote(engine, request, e) : messageOf(e),
        };
      deviceLost(e);
    }
  }
  const stats = writer.end(model.name, engine.device.backend);
  return { ...writer.message, ...outcome, stats: stats ?? start.stats };
}
