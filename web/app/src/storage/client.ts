// client - the page's side of the storage worker: every question is a promise.

import type { Archive, Conversation, Message, Thread } from '../chat/types';
import { Caller } from './calls';
import type { Restored, SearchHit } from './history';

const worker = new Caller(() =>
  new Worker(new URL('./worker.ts', import.meta.url), { type: 'module', name: 'storage' }));
const ask = <T>(method: string, ...args: unknown[]): Promise<T> => worker.ask<T>(method, args);

/** Let go of all files until the page is loaded again. */
export const closeStorage = (): void =>
  worker.close('Everything is being reset; load the page again.');

export const history = {
  /** Whether it outlives the tab. */
  kept: () => ask<boolean>('kept'),
  list: () => ask<Conversation[]>('list'),
  thread: (id: string) => ask<Thread | null>('thread', id),
  search: (words: string) => ask<SearchHit[]>('search', words),
  putConversation: (c: Conversation) => ask<void>('putConversation', c),
  putMessage: (m: Message) => ask<void>('putMessage', m),
  remove: (id: string) => ask<void>('remove', id),
  archive: (id?: string) => (id ? ask<Archive>('archive', id) : ask<Archive>('archive')),
  restore: (archive: Archive) => ask<Restored>('restore', archive),
};

const saved = (kind: 'state' | 'training') => ({
  /** false: this browser has no place for it. */
  save: (id: string, state: Uint8Array) => ask<boolean>(`${kind}.save`, id, state),
  load: (id: string) => ask<Uint8Array | null>(`${kind}.load`, id),
  remove: (id: string) => ask<void>(`${kind}.remove`, id),
  clear: () => ask<void>(`${kind}.clear`),
});

/** What a model had read of conversations, by their ids. */
export const savedStates = saved('state');
/** The training under way. */
export const savedTraining = saved('training');
