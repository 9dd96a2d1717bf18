// worker - the page's storage: the history (SQLite) and the saved states of conversations (plain
// files), both on OPFS. Started lazily; the page paints before any of this is loaded.

import sqlite3InitModule from '@sqlite.org/sqlite-wasm';
import { answerCalls } from './calls';
import { tellTabs } from './changes';
import type { History } from './history';
import { Keeper } from './keeper';
import { Office } from './office';
import { SavedStates } from './saved_states';

const reading = new Set(['list', 'thread', 'search', 'archive']);

const office = new Office(async () => {
  // What goes wrong is told in the page's words; SQLite would write it to the console as well.
  const quiet = () => {};
  Object.assign(globalThis, { sqlite3ApiConfig: { warn: quiet, error: quiet } });
  const keeper =
    await Keeper.open(await sqlite3InitModule(), (note) => tellTabs({ kind: 'note', note }));
  return async (method, args) => {
    if (method === 'kept') return keeper.kept;
    const value = await keeper.call((history) =>
      (history[method as keyof History] as (...args: unknown[]) => unknown).apply(history, args));
    if (method === 'remove') tellTabs({ kind: 'removed', id: args[0] as string });
    else if (!reading.has(method)) tellTabs({ kind: 'changed' });
    return value;
  };
});
const saved = { state: new SavedStates('states'), training: new SavedStates('training') };

answerCalls(async (method, args) => {
  const [, kind, act] = /^(state|training)\.(save|load|remove|clear)$/.exec(method) ?? [];
  if (!kind) return office.ask(method, args);
  const files = saved[kind as keyof typeof saved], id = args[0] as string;
  if (act === 'save') return files.save(id, args[1] as Uint8Array);
  return act === 'load' ? files.load(id) : act === 'remove' ? files.remove(id) : files.clear();
});
