// answer - one answer from the engine, kept while it grows, so that a reload in mid-sentence loses next to nothing.

import { needAdapters } from '../state/adapters';
import { currentEngine, deviceLost, useConversation } from '../state/engine';
import { messageOf, notifyError } from '../state/notices';
import { history } from '../storage/client';
import { Writer } from './live';
import { toRequest } from './prompt';
import type { Conversation, Message } from './types';

const KEEP_EVERY = 300; // milliseconds

/** `resume`: the message holds the beginning of the answer already. Never throws: what went wrong is in the message. */
export async function answerOnce(c: Conversation, before: Message[], start: Message, signal: AbortSignal, resume: boolean): Promise<Message> {
  const writer = new Writer(start);
  let kept = performance.now();
  let outcome: Pick<Message, 'state' | 'note'> = { state: 'done', note: '' };
  const { engine, model } = currentEngine();
  try {
    await needAdapters(c.settings.adapters);
    const session = await useConversation(c);
    const request = toRequest(resume ? [...before, start] : before, c.settings);
    const chunks = await engine.chat.completions.create({ ...request, ...(resume && { continue_final_message: true }), session, signal });
    for await (const chunk of chunks) {
      writer.add(chunk);
      if (performance.now() - kept < KEEP_EVERY) continue;
      kept = performance.now();
      history.putMessage(writer.message).catch(notifyError);
    }
    if (writer.cut) outcome = { state: 'stopped', note: 'The answer reached its limit of tokens.' };
  } catch (e) {
    if (signal.aborted) outcome = { state: 'stopped', note: '' };
    else {
      outcome = { state: 'error', note: messageOf(e) };
      deviceLost(e);
    }
  }
  const stats = writer.end(model.name, engine.device.backend);
  return { ...writer.message, ...outcome, stats: stats ?? start.stats };
}
