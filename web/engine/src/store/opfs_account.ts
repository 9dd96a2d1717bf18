// opfs_account - what the browser's own store holds, counted: bytes, and downloads to go on with.

import { MAX_MANIFEST } from './manifest.js';
import type { Tree } from './ollama_store.js';
import type { StoreUsage, Unfinished } from './opfs_types.js';
import { journalName, parseJournal } from './partial.js';

/** Downloads that can be gone on with. */
export async function unfinishedIn(tree: Tree): Promise<Unfinished[]> {
  const all: Unfinished[] = [];
  for (const key of await tree.names(['partial'], 'file')) {
    if (key.endsWith('.journal')) continue;
    const file = await tree.file(['partial', journalName(key)]);
    const journal = parseJournal((await file?.text(MAX_MANIFEST)) ?? '');
    if (journal?.url === undefined) continue;
    all.push({
      key,
      label: journal.label ?? key,
      url: journal.url,
      loaded: journal.bytes,
      ...(journal.size !== undefined && { total: journal.size }),
    });
  }
  return all;
}

export async function usageOf(tree: Tree): Promise<StoreUsage> {
  const sum = async (folder: string): Promise<number> => {
    let n = 0;
    for (const name of await tree.names([folder], 'file'))
      n += (await tree.file([folder, name]))?.size ?? 0;
    return n;
  };
  const { quota, usage } = await navigator.storage.estimate();
  return {
    models: await sum('blobs'),
    partial: await sum('partial'),
    ...(quota !== undefined && { quota }),
    ...(usage !== undefined && { used: usage }),
    persisted: await navigator.storage.persisted(),
  };
}
