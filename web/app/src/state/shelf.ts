// shelf - this browser's own store of models and adapters, and what is in it.

import { signal } from '@preact/signals';
import { openStore, UnsupportedError, type Store, type StoredModel } from 'bezel';
import { notify, notifyError } from './notices';

let stopListening = (): void => {};

function open(): Store {
  const store = openStore();
  // also what another tab changed, or a load found damaged
  stopListening = store.onChange(() => void lookInStore().catch(notifyError));
  return store;
}

/** The store and the ways to others; its worker starts when it is first asked for. */
let opened: Store | undefined;
export const store = (): Store => (opened ??= open());

/** For good: its worker lets go of its files, and no question opens them again. */
export function closeStore(): void {
  const mine = store();
  stopListening();
  mine.close();
}

export const inStore = signal<StoredModel[]>([]);

/** Where the browser gives the page no files there is nothing; the history has said so. */
export const orNothing = <T>(list: Promise<T[]>): Promise<T[]> =>
  list.catch((e: unknown) => {
    if (e instanceof UnsupportedError) return [];
    throw e;
  });

export async function lookInStore(): Promise<void> {
  inStore.value = await orNothing(store().list());
}

/** What is being read, and how much of it was. */
export const verifying = signal<{ name: string; share: number } | null>(null);

/** Read all of a model or an adapter, and compare it with what was stored. */
export async function verify(name: string): Promise<void> {
  verifying.value = { name, share: 0 };
  try {
    const { intact } = await store().verify(name, {
      onProgress: ({ loaded, total }) => (verifying.value = { name, share: loaded / total }),
    });
    if (intact) notify(`${name} is intact.`);
    else notify(`${name} is damaged; download or copy it again.`, { tone: 'error' });
  } finally {
    verifying.value = null;
  }
}
