// answer - one answer from the engine, kept while it grows, so that a reload in mid-sentence loses
// next to nothing.

import {
  LimitError, type ChatStreamRequest, type DiffusionRun, type EditResult, type EditStep,
  type Engine,
} from 'bezel';
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

/** The answer as `fill` writes it. Never throws: what went wrong is in the message. */
async function written(
  c: Conversation, start: Message, request: ChatStreamRequest, signal: AbortSignal,
  fill: (writer: Writer, session: string) => Promise<void>,
): Promise<Message> {
  const writer = new Writer(start), { engine, model } = currentEngine();
  let outcome: Pick<Message, 'state' | 'note'> = { state: 'done', note: '' };
  try {
    await needAdapters(c.settings.adapters);
    await fill(writer, await useConversation(c));
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
  return { ...writer.message, ...outcome, stats: stats ?? start.stats, frames: writer.made };
}

/** What `start` holds already is gone on from. */
export function answerOnce(
  c: Conversation, before: readonly Message[], start: Message, signal: AbortSignal,
): Promise<Message> {
  const { engine } = currentEngine();
  const request = toRequest(before, c.settings, start, engine.info.n_canvas > 0);
  return written(c, start, request, signal, async (writer, session) => {
    let kept = performance.now();
    const chunks = await engine.chat.completions.create({ ...request, session, signal });
    for await (const chunk of chunks) {
      writer.add(chunk);
      if (performance.now() - kept < KEEP_EVERY) continue;
      kept = performance.now();
      history.putMessage(writer.message).catch(notifyError);
    }
  });
}

/** Words of an answer that are to be written again. */
export interface Edit {
  text: string;
  selection: [from: number, to: number];
  instruction: string;
  /** How many times as many tokens as they have. */
  length: number;
}

/** The answer with other words in one place. */
export function editOnce(
  c: Conversation, before: readonly Message[], start: Message,
  { text, selection, instruction, length }: Edit, signal: AbortSignal,
): Promise<Message> {
  const { engine } = currentEngine(), { settings } = c;
  const request = toRequest(before, settings), { messages, tools } = request;
  return written(c, start, request, signal, async (writer, session) => {
    const words = await engine.tokenize(text.slice(...selection), { bos: false, plain: true });
    const edit: DiffusionRun<EditStep, EditResult> = engine.diffusion.edit({
      messages, text, selection, session, signal, adapters: settings.adapters,
      seed: settings.seed, steps: settings.steps, ...(tools && { tools }),
      length: Math.min(engine.info.n_canvas, Math.max(1, Math.round(length * words.length))),
      ...(instruction.trim() && { instruction: instruction.trim() }),
    });
    for await (const step of edit) writer.addStep(step);
    const { text: content, usage, timings } = await edit.result;
    writer.replace(content, usage, timings);
  });
}
