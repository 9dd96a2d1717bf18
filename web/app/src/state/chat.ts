// chat - the open conversation and what can be done in it: send, stop, try again, edit, branch, go on.
//
// One answer is written at a time. It goes on while the person looks at another conversation or view.

import { computed, effect, signal, type Signal } from '@preact/signals';
import { answerOnce } from '../chat/answer';
import { live } from '../chat/live';
import { newestLeaf, pathTo } from '../chat/tree';
import type { ChatSettings, Conversation, Message, Role, Thread } from '../chat/types';
import { history } from '../storage/client';
import { runTool } from '../tools';
import { writeDraft } from './drafts';
import { keepState, ready, useConversation } from './engine';
import { newConversation, remove, saveConversation } from './library';
import { notifyError } from './notices';
import { go } from './route';

const MAX_ROUNDS = 8; // of tool calls before the person is asked again

/** null while one is being read; a new one has no messages and is not kept until the first is sent. */
export const thread = signal<Signal<Thread> | null>(null);
export const conversation = computed(() => thread.value?.value.conversation ?? null);
export const path = computed(() => {
  const open = thread.value?.value;
  return open ? pathTo(open.messages, open.conversation.leaf) : [];
});

let running: { thread: Signal<Thread>; stop: AbortController; ended: Promise<void> } | null = null;
export const busy = computed(() => live.value !== null);
/** Whether it is the open conversation that is being answered. */
export const busyHere = computed(() => live.value?.message.conversation === conversation.value?.id && live.value !== null);

let wanted: string | null | undefined;
let nextBegins: Partial<ChatSettings> = {};

/** A new conversation that begins with these settings. */
export function startWith(settings: Partial<ChatSettings>): void {
  nextBegins = settings;
  go('/');
}

/** Show a conversation; null: a new one. An id that is gone leads to a new one as well. */
export async function open(id: string | null): Promise<void> {
  wanted = id;
  if (id && thread.peek()?.peek().conversation.id === id) return;
  if (id && running?.thread.peek().conversation.id === id) {
    thread.value = running.thread;
    return;
  }
  if (id === null) {
    const fresh = newConversation();
    thread.value = signal({ conversation: { ...fresh, settings: { ...fresh.settings, ...nextBegins } }, messages: [] });
    nextBegins = {};
    return;
  }
  thread.value = null;
  try {
    const found = await history.thread(id);
    if (wanted !== id) return; // another was opened meanwhile
    if (found) thread.value = signal(found);
    else go('/', true);
  } catch (e) {
    notifyError(e);
    go('/', true);
  }
}

// What was saved of a conversation is brought back while the person still reads it.
effect(() => {
  const c = conversation.value;
  if (ready.value && c?.savedFor && !busy.value) useConversation(c).catch(notifyError);
});

const blank = (conversation: string, parent: string | null, role: Role, content: string): Message => ({
  id: crypto.randomUUID(), conversation, parent, role, content, reasoning: '', toolCalls: [], toolCallId: '', toolName: '',
  state: 'done', note: '', stats: null, created: Date.now(),
});

async function changeConversation(t: Signal<Thread>, change: Partial<Conversation>): Promise<void> {
  const next = { ...t.peek().conversation, ...change };
  t.value = { ...t.peek(), conversation: next };
  if (t.peek().messages.length) await saveConversation(next);
}

/** Into the tree, and where the person is: at its end. */
async function put(t: Signal<Thread>, message: Message): Promise<void> {
  const { conversation: c, messages } = t.peek();
  const title = c.title || message.content.trim().replace(/\s+/g, ' ').slice(0, 70);
  const next = { ...c, title, leaf: message.id, updated: Date.now() };
  t.value = { conversation: next, messages: [...messages.filter((m) => m.id !== message.id), message] };
  await saveConversation(next);
  await history.putMessage(message);
}

/** Answers, with tools in between, until the model has said its piece. */
async function answer(t: Signal<Thread>, parent: string, resume?: Message): Promise<void> {
  if (running || !ready.peek()) return;
  const stop = new AbortController();
  const { promise: ended, resolve: end } = Promise.withResolvers<void>();
  running = { thread: t, stop, ended };
  try {
    let from = parent;
    for (let round = 0; round < MAX_ROUNDS; round++) {
      const start: Message = resume ?? { ...blank(t.peek().conversation.id, from, 'assistant', ''), state: 'streaming' };
      await put(t, { ...start, state: 'streaming', note: '' });
      const before = pathTo(t.peek().messages, start.parent);
      const message = await answerOnce(t.peek().conversation, before, { ...start, state: 'streaming', note: '' }, stop.signal, resume !== undefined);
      resume = undefined;
      await put(t, message);
      if (message.state !== 'done' || !message.toolCalls.length) break;
      from = message.id;
      for (const call of message.toolCalls) {
        const result: Message = { ...blank(message.conversation, from, 'tool', runTool(call.name, call.arguments)), toolCallId: call.id, toolName: call.name };
        await put(t, result);
        from = result.id;
      }
    }
  } catch (e) {
    notifyError(e);
  } finally {
    running = null;
    live.value = null;
    end();
    await keep(t);
  }
}

/** What the model has read so far, for after a reload. */
async function keep(t: Signal<Thread>): Promise<void> {
  const savedFor = await keepState(t.peek().conversation);
  if (savedFor !== t.peek().conversation.savedFor) await changeConversation(t, { savedFor });
}

export async function send(text: string): Promise<void> {
  const t = thread.peek();
  if (!t || running || !ready.peek() || !text.trim()) return;
  const c = t.peek().conversation;
  const message = blank(c.id, c.leaf, 'user', text.trim());
  const isNew = !t.peek().messages.length;
  await put(t, message);
  writeDraft(isNew ? null : c.id, '');
  if (isNew) go(`/c/${c.id}`, true);
  await answer(t, message.id);
}

export function stop(): void {
  running?.stop.abort();
}

/** Another answer to the same question, beside the old one. */
export async function regenerate(message: Message): Promise<void> {
  const t = thread.peek();
  if (!t) return;
  const before = pathTo(t.peek().messages, message.id);
  const question = before.findLast((m) => m.role === 'user');
  if (question) await answer(t, question.id);
}

/** The question put differently: a sibling of the old one, with its own future. */
export async function edit(message: Message, text: string): Promise<void> {
  const t = thread.peek();
  if (!t || running || !ready.peek() || !text.trim()) return;
  const next = blank(message.conversation, message.parent, 'user', text.trim());
  await put(t, next);
  await answer(t, next.id);
}

/** Write on where an answer was broken off. */
export async function resume(message: Message): Promise<void> {
  const t = thread.peek();
  if (t && message.parent) await answer(t, message.parent, message);
}

/** Show another branch. */
export async function select(message: Message): Promise<void> {
  const t = thread.peek();
  if (t && !running) await changeConversation(t, { leaf: newestLeaf(t.peek().messages, message.id) });
}

/** An answer that is being written for it ends first, or it would come back with the answer's next words. */
export async function deleteConversation(c: Conversation): Promise<void> {
  if (running?.thread.peek().conversation.id === c.id) {
    running.stop.abort();
    await running.ended;
  }
  await remove(c);
}

export async function changeSettings(change: Partial<ChatSettings>): Promise<void> {
  const t = thread.peek();
  if (t) await changeConversation(t, { settings: { ...t.peek().conversation.settings, ...change } });
}

export async function rename(c: Conversation, title: string): Promise<void> {
  const name = title.trim();
  if (!name || name === c.title) return;
  const t = thread.peek();
  if (t?.peek().conversation.id === c.id) await changeConversation(t, { title: name });
  else await saveConversation({ ...c, title: name });
}
