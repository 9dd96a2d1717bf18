// library - the list of conversations: search, rename, delete, export, import.

import { computed, signal } from '@preact/signals';
import { readArchive } from '../chat/archive';
import type { Conversation, Message } from '../chat/types';
import { download } from '../lib/files';
import { dayLabel } from '../lib/format';
import { newId } from '../lib/id';
import { IN_MEMORY, onTold } from '../storage/changes';
import { history, savedStates } from '../storage/client';
import type { Restored, SearchHit } from '../storage/history';
import { writeDraft } from './drafts';
import { notify, notifyError } from './notices';
import { prefs } from './prefs';
import { go, route } from './route';

export const conversations = signal<Conversation[] | null>(null);
export const query = signal('');
export const hits = signal<SearchHit[] | null>(null);

export const groups = computed(() => {
  const out: { label: string; items: Conversation[] }[] = [];
  for (const item of conversations.value ?? []) {
    const label = dayLabel(item.updated);
    const last = out.at(-1);
    if (last?.label === label) last.items.push(item);
    else out.push({ label, items: [item] });
  }
  return out;
});

let saves = 0; // of conversations: a list that was asked for before the last one lacks it

export async function refresh(): Promise<void> {
  try {
    const before = saves, list = await history.list();
    if (before !== saves) return refresh();
    conversations.value = list;
  } catch (e) {
    conversations.value ??= [];
    notifyError(e);
  }
}

/** Whether it outlives the tab, as far as is known. */
export const lasts = signal(true);

/** The list, and one quiet word where it will not last. */
export async function openLibrary(): Promise<void> {
  await refresh();
  lasts.value = await history.kept().catch(() => true); // what went wrong, the list has said
  if (!lasts.value) notify(IN_MEMORY);
}

/** Changes of this tab and of others, gathered. */
let due: ReturnType<typeof setTimeout> | undefined;
onTold((change) => {
  if (change.kind === 'reset' || change.kind === 'wasReset') return;
  if (change.kind === 'note') notify(change.note, { stay: change.note !== IN_MEMORY });
  if (change.kind === 'note' && change.note === IN_MEMORY) lasts.value = false;
  clearTimeout(due);
  due = setTimeout(() => void refresh(), 300);
});

/** The hit that was opened last: the message list goes to its words. */
export const opened = signal<SearchHit | null>(null);

let searches = 0;
export async function search(words: string): Promise<void> {
  query.value = words;
  const mine = ++searches;
  const found = words.trim() ? await history.search(words) : null;
  if (mine === searches) hits.value = found; // an older search may answer later
}

export function newConversation(): Conversation {
  const now = Date.now();
  return {
    id: newId(), title: '', created: now, updated: now, leaf: null,
    settings: { ...prefs.value.chat }, savedFor: '',
  };
}

/** Nobody waits until it is written: an answer goes on whatever the history does, and changes
 *  are made in order. */
export function saveConversation(conversation: Conversation): void {
  const others = (conversations.value ?? []).filter((c) => c.id !== conversation.id);
  conversations.value = [conversation, ...others].sort((a, b) => b.updated - a.updated);
  saves++;
  history.putConversation(conversation).catch(notifyError);
}

export const saveMessage = (message: Message): void =>
  void history.putMessage(message).catch(notifyError);

/** Ids that this tab deleted; of others it is told. */
export const removedHere = new Set<string>();

export async function remove(conversation: Conversation): Promise<void> {
  removedHere.add(conversation.id);
  const kept = await history.archive(conversation.id);
  await history.remove(conversation.id);
  await savedStates.remove(conversation.id);
  writeDraft(conversation.id, '');
  if (route.value.conversation === conversation.id) go('/');
  await refresh();
  const undo = async () => {
    await history.restore(kept);
    removedHere.delete(conversation.id);
    await refresh();
  };
  notify(`Deleted “${conversation.title}”.`, {
    action: { label: 'Undo', run: () => void undo().catch(notifyError) },
  });
}

export async function exportConversations(conversation?: Conversation): Promise<void> {
  const archive = await history.archive(conversation?.id);
  const name = conversation
    ? conversation.title.replace(/[^\p{L}\p{N}]+/gu, '-').slice(0, 40)
    : 'conversations';
  download(`bezel-${name}.json`, JSON.stringify(archive, null, 1));
}

const conversationsText = (n: number) => `${n} ${n === 1 ? 'conversation' : 'conversations'}`;

function importText({ added, completed, known }: Restored): string {
  const rest = [
    completed
      && `${completed} that ${completed === 1 ? 'was' : 'were'} here got what `
        + `${completed === 1 ? 'it' : 'they'} lacked`,
    known && `${known} had nothing new`,
  ].filter(Boolean);
  return `${[`Imported ${conversationsText(added)}`, ...rest].join('; ')}.`;
}

export async function importConversations(file: File): Promise<void> {
  const archive = readArchive(new Uint8Array(await file.arrayBuffer()));
  const done = await history.restore(archive);
  await refresh();
  notify(importText(done));
}
