// shelf - this browser's own store of models and adapters, and what is in it.

import { signal } from '@preact/signals';
import { openStore, UnsupportedError, type Store, type StoredModel } from 'bezel';

/** The store and the ways to others; its worker starts when it is first asked for. */
let opened: Store | undefined;
export const store = (): Store => (opened ??= openStore());

/** For good: its worker lets go of its files, and no question opens them again. */
export const closeStore = (): void => store().close();

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
