// worker - the page's storage: the history (SQLite) and the saved states of conversations (plain files), both on
// OPFS. Started lazily; the page paints before any of this is loaded.

import sqlite3InitModule from '@sqlite.org/sqlite-wasm';
import { answerCalls } from './calls';
import { History } from './history';
import { Office } from './office';
import { SavedStates } from './saved_states';

/** Handles of a tab that just went may live a moment longer than its lock. */
async function patiently<T>(attempt: () => Promise<T>): Promise<T> {
  for (let left = 20; ; left--) {
    try {
      return await attempt();
    } catch (e) {
      if (left === 0) throw e;
      await new Promise((resolve) => setTimeout(resolve, 100));
    }
  }
}

let inMemory = false;

const office = new Office(async () => {
  const sqlite3 = await sqlite3InitModule();
  const kept = typeof navigator.storage?.getDirectory === 'function' && 'createSyncAccessHandle' in FileSystemFileHandle.prototype;
  inMemory = !kept;
  const history = kept
    ? new History(new (await patiently(() => sqlite3.installOpfsSAHPoolVfs({ directory: '/bezel-app/history', initialCapacity: 6 }))).OpfsSAHPoolDb('/history.sqlite3'))
    : new History(new sqlite3.oo1.DB(':memory:'));
  const changes = new BroadcastChannel('bezel-changes');
  return (method, args) => {
    const call = history[method as keyof History] as (...args: unknown[]) => unknown;
    const value = call.apply(history, args);
    if (method !== 'list' && method !== 'thread' && method !== 'search' && method !== 'archive') changes.postMessage(method);
    return value;
  };
});
const saved = { state: new SavedStates('states'), training: new SavedStates('training') };

answerCalls(async (method, args) => {
  if (method === 'kept') return await office.ask('list', []), !inMemory;
  const [, kind, act] = /^(state|training)\.(save|load|remove|clear)$/.exec(method) ?? [];
  if (!kind) return office.ask(method, args);
  const files = saved[kind as keyof typeof saved], id = args[0] as string;
  if (act === 'save') return files.save(id, args[1] as Uint8Array);
  return act === 'load' ? files.load(id) : act === 'remove' ? files.remove(id) : files.clear();
});
