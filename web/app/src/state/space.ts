// space - what the page keeps on this device: how much, whether the browser may throw it away, and how to.

import { signal } from '@preact/signals';
import { history as conversationsKept, savedStates, savedTraining } from '../storage/client';
import { unload } from './engine';
import { notify } from './notices';

export interface Space {
  used: number;
  quota: number;
  /** The browser promised not to throw it away by itself. */
  persisted: boolean;
  /** false: a private window, where nothing outlives the tab. */
  kept: boolean;
}

export const space = signal<Space | null>(null);

export async function measure(): Promise<void> {
  const [{ usage = 0, quota = 0 }, persisted, kept] = await Promise.all([navigator.storage.estimate(), navigator.storage.persisted(), conversationsKept.kept()]);
  space.value = { used: usage, quota, persisted, kept };
}

export async function persist(): Promise<void> {
  const granted = await navigator.storage.persist();
  notify(granted ? 'The browser will keep this page’s data.' : 'The browser did not agree; it may do so once the page is installed or used more.');
  await measure();
}

/** What the model had read of conversations; they are simply read again. */
export async function clearStates(): Promise<void> {
  await savedStates.clear();
  await measure();
  notify('Saved states were deleted.');
}

/** Everything: conversations, models, settings, the offline copy. Then the page starts as on the first day. */
export async function resetEverything(): Promise<void> {
  await unload();
  await conversationsKept.clear();
  await savedStates.clear();
  await savedTraining.clear();
  localStorage.clear();
  const registrations = (await navigator.serviceWorker?.getRegistrations()) ?? [];
  await Promise.all(registrations.map((r) => r.unregister()));
  await Promise.all((await caches.keys()).map((key) => caches.delete(key)));
  for (const { name } of await indexedDB.databases()) if (name) indexedDB.deleteDatabase(name);
  const root = await navigator.storage.getDirectory();
  for await (const name of root.keys()) {
    if (name === 'bezel-app') continue; // the history's file is open, and empty now
    await root.removeEntry(name, { recursive: true });
  }
  location.replace(location.pathname);
}
