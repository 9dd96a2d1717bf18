// shelf - this browser's own store of models and adapters, and what is in it.

import { signal } from '@preact/signals';
import { openStore, type Store, type StoredModel } from 'bezel';

/** The store and the ways to others; its worker starts when it is first asked for. */
let opened: Store | undefined;
export const store = (): Store => (opened ??= openStore());

export const inStore = signal<StoredModel[]>([]);

export async function lookInStore(): Promise<void> {
  inStore.value = await store().list();
}
