// chat - the open conversation and what can be done in it: send, stop, try again, edit, branch, go
// on.
//
// One answer is written at a time. It goes on while the person looks at another conversation or
// view.

import { computed, effect, signal, type Signal } from '@preact/signals';
import { answerOnce, editOnce, type Edit } from '../chat/answer';
import { live } from '../chat/live';
import { newestLeaf, pathTo } from '../chat/tree';
import type { ChatSettings, Conversation, Message, Role, Thread } from '../chat/types';
import { newId } from '../lib/id';
import { onTold } from '../storage/changes';
import { history, savedStates } from '../storage/client';
import { runTool } from '../tools';
import { writeDraft } from './drafts';
import { keepState, ready, useConversation } from './engine';
import {
  conversations, newConversation, remove, removedHere, saveConversation, saveMessage,
} from './library';
import { notify, notifyError } from './notices';
import { go } from './route';

const MAX_ROUNDS = 8; // of tool calls before the person is asked again

/** null while one is being read; a new one has no messages and is not kept until the first is
 *  sent. */
export const thread = signal<Signal<Thread> | null>(null);
export const conversation = computed(() => thread.value?.value.conversation ?? null);
export const path = computed(() => {
  const open = thread.value?.value;
  return open ? pathTo(open.messages, open.conversation.leaf) : [];
});

/** The answer that is being written, from the moment it is asked for. */
const running =
  signal<{ thread: Signal<Thread>; stop: AbortController; ended: Promise<void> } | null>(null);
/** The answer that was begun last; it has ended when its state is kept. */
let last = { id: '', ended: Promise.resolve() };
/** Ids that another tab deleted. */
const removedElsewhere = new Set<string>();
/** Which conversation is being answered, if any. */
export const answering = computed(() => running.value?.thread.value.conversation ?? null);
export const busy = computed(() => running.value !== null);
/** Whether it is the open conversation that is being answered. */
export const busyHere =
  computed(() => answering.value !== null && answering.value.id === conversation.value?.id);

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
  const now = running.peek();
  if (id && now?.thread.peek().conversation.id === id) {
    thread.value = now.thread;
    return;
  }
  if (id === null) {
    const fresh = newConversation();
    thread.value = signal({
      conversation: { ...fresh, settings: { ...fresh.settings, ...nextBegins } }, messages: [],
    });
    nextBegins = {};
    return;
  }
  thread.value = null;
  try {
    const found = await history.thread(id);
    if (wanted !== id) return; // another was opened meanwhile
    if (found) removedElsewhere.delete(id); // it may have been brought back
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

const blank = (
  conversation: string, parent: string | null, role: Role, content: string,
): Message => ({
  id: newId(), conversation, parent, role, content, reasoning: '', toolCalls: [], toolCallId: '',
  toolName: '', state: 'done', note: '', stats: null, frames: null, created: Date.now(),
});

async function changeConversation(t: Signal<Thread>, change: Partial<Conversation>): Promise<void> {
  const next = { ...t.peek().conversation, ...change };
  t.value = { ...t.peek(), conversation: next };
  if (t.peek().messages.length) saveConversation(next);
}

/** Into the tree, and where the person is: at its end. */
async function put(t: Signal<Thread>, message: Message): Promise<void> {
  const { conversation: c, messages } = t.peek();
  const title = c.title || message.content.trim().replace(/\s+/g, ' ').slice(0, 70);
  const next = { ...c, title, leaf: message.id, updated: Date.now() };
  t.value = {
    conversation: next, messages: [...messages.filter((m) => m.id !== message.id), message],
  };
  saveConversation(next);
  saveMessage(message);
}

interface Order {
  /** The message that is answered. */
  parent: string;
  /** The answer that goes on. */
  resume?: Message;
  /** The answer whose words are to be written again, and which. */
  edit?: { message: Message; what: Edit };
  /** Of another conversation, to be read before this one's; where it is not given it is looked
   *  up. */
  earlier?: readonly Message[];
}

/** Begin an answer, to what `ask` says. Nothing happens while another is written. */
async function answer(t: Signal<Thread>, ask: () => Promise<Order>): Promise<void> {
  if (running.peek() || !ready.peek()) return;
  const stop = new AbortController();
  const { promise: ended, resolve: end } = Promise.withResolvers<void>();
  running.value = { thread: t, stop, ended };
  last = { id: t.peek().conversation.id, ended };
  try {
    await write(t, await ask(), stop.signal);
  } catch (e) {
    notifyError(e);
  } finally {
    running.value = null;
    live.value = null;
    await keep(t).finally(end);
  }
}

/** What is summed up by the answer to this message; undefined: nothing, it is an ordinary
 *  question. */
async function earlierOf(
  { conversation: c, messages }: Thread, question: string,
): Promise<readonly Message[] | undefined> {
  const { summaryOf } = c.settings;
  if (!summaryOf || messages.find((m) => m.id === question)?.parent !== null) return undefined;
  const all = pathTo((await history.thread(summaryOf.conversation))?.messages ?? [], summaryOf.to);
  const first = all.findIndex((m) => m.id === summaryOf.from);
  if (first < 0)
    throw new Error('The conversation that this one sums up is no longer here; start a new chat.');
  return all.slice(first);
}

/** Answers, with tools in between, until the model has said its piece. */
async function write(
  t: Signal<Thread>, { parent, resume, edit, earlier }: Order, signal: AbortSignal,
): Promise<void> {
  if (edit) return writeEdit(t, edit, signal);
  earlier ??= await earlierOf(t.peek(), parent);
  let from = parent;
  for (let round = 0; round < MAX_ROUNDS; round++) {
    const begun: Message = {
      ...(resume ?? blank(t.peek().conversation.id, from, 'assistant', '')),
      state: 'streaming',
      note: '',
    };
    await put(t, begun);
    const { conversation: c, messages } = t.peek(), before = pathTo(messages, begun.parent);
    const message = earlier
      ? await answerOnce(
        { ...c, settings: { ...c.settings, thinking: false, tools: false, json: 'off' } },
        [...earlier, ...before],
        begun,
        signal,
      )
      : await answerOnce(c, before, begun, signal);
    resume = undefined;
    await put(t, message);
    if (message.state !== 'done' || !message.toolCalls.length) return;
    from = message.id;
    for (const call of message.toolCalls) {
      const result: Message = {
        ...blank(message.conversation, from, 'tool', runTool(call.name, call.arguments)),
        toolCallId: call.id,
        toolName: call.name,
      };
      await put(t, result);
      from = result.id;
    }
  }
}

/** A version of an answer with other words in one place. */
async function writeEdit(
  t: Signal<Thread>, { message, what }: NonNullable<Order['edit']>, signal: AbortSignal,
): Promise<void> {
  const begun: Message = {
    ...blank(message.conversation, message.parent, 'assistant', ''),
    reasoning: message.reasoning,
    state: 'streaming',
  };
  const { conversation: c, messages } = t.peek(), before = pathTo(messages, begun.parent);
  t.value = { conversation: { ...c, leaf: begun.id }, messages: [...messages, begun] };
  const made = await editOnce(c, before, begun, what, signal);
  if (made.state === 'done') return put(t, made);
  // it has no words of its own: the old version is shown again
  t.value = { conversation: { ...t.peek().conversation, leaf: c.leaf }, messages };
  if (made.note) notify(made.note, { tone: 'error' });
}

/** What the model has read so far, for after a reload. */
async function keep(t: Signal<Thread>): Promise<void> {
  const { id } = t.peek().conversation;
  if (removedElsewhere.has(id)) return;
  const savedFor = await keepState(t.peek().conversation);
  if (removedElsewhere.has(id)) return savedStates.remove(id); // meanwhile
  if (savedFor !== t.peek().conversation.savedFor) await changeConversation(t, { savedFor });
}

export async function send(text: string): Promise<void> {
  const t = thread.peek();
  if (!t || !text.trim()) return;
  const c = t.peek().conversation;
  await answer(t, async () => {
    const message = blank(c.id, c.leaf, 'user', text.trim());
    const isNew = !t.peek().messages.length;
    await put(t, message);
    writeDraft(isNew ? null : c.id, '');
    if (isNew && thread.peek() === t) go(`/c/${c.id}`, true);
    return { parent: message.id };
  });
}

const SUMMARISE =
  'Summarise our conversation so far in a few short paragraphs, '
    + 'with every fact and decision that is needed to go on from here.';

/** A new conversation with the settings of the open one, whose first answer sums up these
 *  messages. */
export async function summarise(earlier: readonly Message[]): Promise<void> {
  const old = thread.peek()?.peek().conversation;
  const from = earlier[0]?.id, to = earlier.at(-1)?.id;
  if (!old || !from || !to) return;
  const summaryOf = { conversation: old.id, from, to };
  const fresh = {
    ...newConversation(),
    title: `${old.title} (continued)`,
    settings: { ...old.settings, from: null, summaryOf },
  };
  const t = signal<Thread>({ conversation: fresh, messages: [] });
  await answer(t, async () => {
    const question = blank(fresh.id, null, 'user', SUMMARISE);
    await put(t, question);
    thread.value = t;
    go(`/c/${fresh.id}`);
    return { parent: question.id, earlier };
  });
}

/** End the answer of the open conversation. */
export function stop(): void {
  if (busyHere.peek()) running.peek()?.stop.abort();
}

/** Another answer to the same question, beside the old one. */
export async function regenerate(message: Message): Promise<void> {
  const t = thread.peek();
  if (!t) return;
  const before = pathTo(t.peek().messages, message.id);
  const question = before.findLast((m) => m.role === 'user');
  if (question) await answer(t, async () => ({ parent: question.id }));
}

/** The question put differently: a sibling of the old one, with its own future. */
export async function edit(message: Message, text: string): Promise<void> {
  const t = thread.peek();
  if (!t || !text.trim()) return;
  await answer(t, async () => {
    const next = blank(message.conversation, message.parent, 'user', text.trim());
    await put(t, next);
    return { parent: next.id };
  });
}

/** Some words of an answer written again, as another version of it. */
export async function editInPlace(message: Message, what: Edit): Promise<void> {
  const t = thread.peek(), { parent } = message;
  if (t && parent) await answer(t, async () => ({ parent, edit: { message, what } }));
}

/** Write on where an answer was broken off. */
export async function resume(message: Message): Promise<void> {
  const t = thread.peek();
  const { parent } = message;
  if (t && parent) await answer(t, async () => ({ parent, resume: message }));
}

/** Show another branch. */
export async function select(message: Message): Promise<void> {
  const t = thread.peek();
  if (t && !busyHere.peek())
    await changeConversation(t, { leaf: newestLeaf(t.peek().messages, message.id) });
}

/** The branch that a message is on, where another one is shown. */
export function showBranchOf(id: string): void {
  const t = thread.peek();
  if (!t || path.peek().some((m) => m.id === id) || !t.peek().messages.some((m) => m.id === id))
    return;
  t.value = {
    ...t.peek(),
    conversation: { ...t.peek().conversation, leaf: newestLeaf(t.peek().messages, id) },
  };
}

/** An answer that is being written for it ends first, or it would come back with the answer's
 *  next words, or its state. */
export async function deleteConversation(c: Conversation): Promise<void> {
  const now = running.peek();
  if (now?.thread.peek().conversation.id === c.id) now.stop.abort();
  if (last.id === c.id) await last.ended;
  await remove(c);
}

// Another tab deleted it: what is written for it here would be kept nowhere.
onTold((change) => {
  if (change.kind !== 'removed' || removedHere.has(change.id)) return;
  removedElsewhere.add(change.id);
  const now = running.peek();
  if (now?.thread.peek().conversation.id === change.id) now.stop.abort();
  const shown = conversation.peek();
  if (shown?.id !== change.id) return;
  go('/', true);
  notify(`“${shown.title}” was deleted in another tab.`);
});

/** What the history has of it, once nobody writes there. */
async function readAgain(t: Signal<Thread>): Promise<void> {
  const found = await history.thread(t.peek().conversation.id);
  const at = found?.messages.find((m) => m.id === found.conversation.leaf);
  if (!found || at?.state === 'streaming' || busyHere.peek()
    || found.conversation.updated <= t.peek().conversation.updated)
    return;
  t.value = found;
}

// Another tab went on with the open conversation, or an import brought more of it: what is written
// here next comes after that.
effect(() => {
  const t = thread.value, open = t?.value.conversation;
  const listed = conversations.value?.find((c) => c.id === open?.id);
  if (t && open && listed && listed.updated > open.updated && !busyHere.value)
    readAgain(t).catch(notifyError);
});

export async function changeSettings(change: Partial<ChatSettings>): Promise<void> {
  const t = thread.peek();
  if (t)
    await changeConversation(t, { settings: { ...t.peek().conversation.settings, ...change } });
}

export async function rename(c: Conversation, title: string): Promise<void> {
  const name = title.trim();
  if (!name || name === c.title) return;
  const t = thread.peek();
  if (t?.peek().conversation.id === c.id) await changeConversation(t, { title: name });
  else saveConversation({ ...c, title: name });
}
