// library - the list of conversations: search, rename, delete, export, import.

import { computed, signal } from '@preact/signals';
import { defaultSettings, type Archive, type Conversation } from '../chat/types';
import { download } from '../lib/files';
import { dayLabel } from '../lib/format';
import { history, savedStates } from '../storage/client';
import type { SearchHit } from '../storage/history';
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

export async function refresh(): Promise<void> {
  try {
    conversations.value = await history.list();
  } catch (e) {
    conversations.value ??= [];
    notifyError(e);
  }
}

/** Other tabs' changes, gathered. */
let due: ReturnType<typeof setTimeout> | undefined;
new BroadcastChannel('bezel-changes').onmessage = () => {
  clearTimeout(due);
  due = setTimeout(() => void refresh(), 300);
};

let searches = 0;
export async function search(words: string): Promise<void> {
  query.value = words;
  const mine = ++searches;
  const found = words.trim() ? await history.search(words) : null;
  if (mine === searches) hits.value = found; // an older search may answer later
}

export function newConversation(): Conversation {
  const now = Date.now();
  return { id: crypto.randomUUID(), title: '', created: now, updated: now, leaf: null, settings: { ...prefs.value.chat }, savedFor: '' };
}

export async function saveConversation(conversation: Conversation): Promise<void> {
  const others = (conversations.value ?? []).filter((c) => c.id !== conversation.id);
  conversations.value = [conversation, ...others].sort((a, b) => b.updated - a.updated);
  await history.putConversation(conversation);
}

export async function remove(conversation: Conversation): Promise<void> {
  const kept = await history.archive(conversation.id);
  await history.remove(conversation.id);
  await savedStates.remove(conversation.id);
  writeDraft(conversation.id, '');
  if (route.value.conversation === conversation.id) go('/');
  await refresh();
  notify(`Deleted “${conversation.title}”.`, {
    action: { label: 'Undo', run: () => void history.restore(kept).then(refresh, notifyError) },
  });
}

export async function exportConversations(conversation?: Conversation): Promise<void> {
  const archive = await history.archive(conversation?.id);
  const name = conversation ? conversation.title.replace(/[^\p{L}\p{N}]+/gu, '-').slice(0, 40) : 'conversations';
  download(`bezel-${name}.json`, JSON.stringify(archive, null, 1));
}

const isObject = (value: unknown): value is Record<string, unknown> => typeof value === 'object' && value !== null;

/** Throws one sentence when the file is something else. */
export function readArchive(text: string): Archive {
  const wrong = new Error('That file is not an export of Bezel conversations.');
  let data: unknown;
  try {
    data = JSON.parse(text);
  } catch {
    throw wrong;
  }
  if (!isObject(data) || data['format'] !== 'bezel-conversations' || !Array.isArray(data['threads'])) throw wrong;
  if (data['version'] !== 1) throw new Error('That export was written by a newer version of Bezel.');
  const archive = data as unknown as Archive;
  const str = (value: unknown) => (typeof value === 'string' ? value : '');
  const num = (value: unknown) => (typeof value === 'number' && Number.isFinite(value) ? value : Date.now());
  return {
    ...archive,
    threads: archive.threads.map(({ conversation: c, messages }) => {
      if (!isObject(c) || !str(c.id) || !Array.isArray(messages)) throw wrong;
      return {
        conversation: { id: c.id, title: str(c.title) || 'Imported', created: num(c.created), updated: num(c.updated), leaf: c.leaf ?? null, settings: { ...defaultSettings, ...c.settings }, savedFor: '' },
        messages: messages.map((m) => {
          if (!isObject(m) || !str(m.id) || !['user', 'assistant', 'tool'].includes(m.role)) throw wrong;
          return {
            id: m.id, conversation: c.id, parent: m.parent ?? null, role: m.role, content: str(m.content), reasoning: str(m.reasoning),
            toolCalls: Array.isArray(m.toolCalls) ? m.toolCalls : [], toolCallId: str(m.toolCallId), toolName: str(m.toolName),
            state: m.state === 'streaming' || m.state === 'error' || m.state === 'stopped' ? m.state : 'done',
            note: str(m.note), stats: m.stats ?? null, created: num(m.created),
          };
        }),
      };
    }),
  };
}

export async function importConversations(file: File): Promise<void> {
  const archive = readArchive(await file.text());
  await history.restore(archive);
  await refresh();
  notify(`Imported ${archive.threads.length} ${archive.threads.length === 1 ? 'conversation' : 'conversations'}.`);
}
