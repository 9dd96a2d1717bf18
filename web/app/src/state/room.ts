// room - how much of the context the open conversation takes, and the ways on when it is full:
// without its oldest turns, in a new conversation that begins with a summary, or with more context.

import { computed, effect, signal } from '@preact/signals';
import type { Engine } from 'bezel';
import { live } from '../chat/live';
import { readOf, toRequest } from '../chat/prompt';
import type { ChatSettings, Message } from '../chat/types';
import { busyHere, changeSettings, conversation, path, summarise } from './chat';
import { currentEngine, engineState, load } from './engine';
import { notify } from './notices';
import { prefs, setPrefs } from './prefs';

const WARN = 0.85; // of the context: there is time yet to do something
const LEAST = 32; // tokens, below which no question and answer are worth beginning

/** Tokens of a path as the model would read it, the place of the answer included. */
async function tokensOf(
  engine: Engine, messages: readonly Message[], settings: ChatSettings,
): Promise<number> {
  const request = toRequest(messages, settings);
  if (!request.messages.some((m) => m.role !== 'system')) return 0;
  const { tools, thinking } = request;
  return engine.countTokens({
    messages: request.messages, ...(tools && { tools }), ...(thinking && { thinking }),
  });
}

/** null: not counted yet. */
const counted = signal<{ of: string; tokens: number } | null>(null);

effect(() => {
  const state = engineState.value, c = conversation.value, messages = path.value;
  if (state.kind !== 'ready' || !c || busyHere.value) return;
  tokensOf(state.engine, messages, c.settings).then(
    (tokens) => path.peek() === messages && (counted.value = { of: c.id, tokens }),
    () => (counted.value = null), // an engine that goes away; whoever uses it is told
  );
});

export interface Room {
  used: number;
  total: number;
  kind: 'plenty' | 'little' | 'none';
}

/** null: no model is loaded. */
export const room = computed<Room | null>(() => {
  const state = engineState.value;
  if (state.kind !== 'ready') return null;
  const total = state.engine.context, now = busyHere.value ? live.value : null;
  const before = counted.value?.of === conversation.value?.id ? (counted.value?.tokens ?? 0) : 0;
  const used = now ? (now.prompt || before) + now.tokens : before;
  return {
    used, total, kind: used + LEAST > total ? 'none' : used > WARN * total ? 'little' : 'plenty',
  };
});

/** The first question from which on at most so many tokens are left; null: not even the last
 *  alone. */
async function startFor(most: number): Promise<Message | null> {
  const { engine } = currentEngine(), c = conversation.peek();
  if (!c) return null;
  const all = readOf(path.peek(), c.settings), settings = { ...c.settings, from: null };
  for (const question of all.filter((m) => m.role === 'user')) {
    if ((await tokensOf(engine, all.slice(all.indexOf(question)), settings)) <= most)
      return question;
  }
  return null;
}

const TOO_LONG =
  'The last message alone is longer than the context. Load the model with more context, '
    + 'or write a shorter one.';

/** The model reads on without the oldest turns; half of the context is free then. They stay
 *  where they are. */
export async function dropOldest(): Promise<void> {
  const { engine } = currentEngine();
  const first = (await startFor(engine.context / 2)) ?? (await startFor(engine.context - LEAST));
  if (first) await changeSettings({ from: first.id });
  else notify(TOO_LONG, { tone: 'error' });
}

/** A new conversation, whose first answer is a summary of this one. */
export async function goOnElsewhere(): Promise<void> {
  const { engine } = currentEngine(), c = conversation.peek();
  if (!c) return;
  const first = await startFor(engine.context - Math.min(512, engine.context / 4));
  if (!first) return void notify(TOO_LONG, { tone: 'error' });
  const all = readOf(path.peek(), c.settings);
  await summarise(all.slice(all.indexOf(first)));
}

/** The context that the conversation wants: room for as much again, in the steps of the models
 *  page; 0: this is all that the model has. */
export const moreContext = computed<number>(() => {
  const state = engineState.value, now = room.value;
  if (state.kind !== 'ready' || !now) return 0;
  const most = state.engine.info.n_context;
  if (now.total >= most) return 0;
  let wanted = 2 ** Math.floor(Math.log2(now.total) + 1);
  while (wanted < 1.5 * now.used) wanted *= 2;
  return Math.min(wanted, most);
});

/** Load the model again, with more context; where that fails it stays as it is. */
export async function loadWithMore(): Promise<void> {
  const wanted = moreContext.peek(), before = prefs.peek().context, { model } = currentEngine();
  if (!wanted) return;
  setPrefs({ context: wanted });
  await load(model);
  const now = engineState.peek();
  if (now.kind !== 'ready' || now.engine.context < wanted) setPrefs({ context: before });
}
