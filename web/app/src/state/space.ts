// space - what the page keeps on this device: how much, whether the browser may throw it away, and
// how to.

import { signal } from '@preact/signals';
import { isRefused, local } from '../lib/local';
import { within } from '../lib/within';
import { onTold, tellTabs } from '../storage/changes';
import { closeStorage, history as conversationsKept, savedStates } from '../storage/client';
import { unload } from './engine';
import { notify } from './notices';
import { closeStore } from './shelf';

export interface Space {
  used: number;
  quota: number;
  /** The browser promised not to throw it away by itself. */
  persisted: boolean;
  /** false: a private window, where nothing outlives the tab. */
  kept: boolean;
}

export const space = signal<Space | null>(null);

/** Absent in some ports of WebKit; a browser that refuses storage has none. */
const storage = navigator.storage as StorageManager | undefined;
const estimate = async (): Promise<StorageEstimate> =>
  (await storage?.estimate?.().catch(() => ({}))) ?? {};

export async function measure(): Promise<void> {
  const [{ usage = 0, quota = 0 }, persisted, kept] =
    await Promise.all([estimate(), storage?.persisted() ?? false, conversationsKept.kept()]);
  space.value = { used: usage, quota, persisted, kept };
}

export async function persist(): Promise<void> {
  const granted = (await storage?.persist()) ?? false;
  notify(
    granted
      ? 'The browser will keep this page’s data.'
      : 'The browser did not agree; it may do so once the page is installed or used more.',
  );
  await measure();
}

/** What the model had read of conversations; they are simply read again. */
export async function clearStates(): Promise<void> {
  await savedStates.clear();
  await measure();
  notify('Saved states were deleted.');
}

const PATIENCE = 5000; // milliseconds that an engine has to end
// that other tabs, which wait for theirs, have to let go of their files
const LONGER = 3 * PATIENCE;

/** All files of this page, once nobody has them open. */
async function removeFiles(): Promise<void> {
  // a browser without them has none to delete
  const root = (await storage?.getDirectory().catch(() => null)) ?? null;
  if (!root) return;
  for (const end = performance.now() + LONGER; ; ) {
    let held: unknown;
    for await (const name of root.keys())
      await root.removeEntry(name, { recursive: true }).catch((e: unknown) => (held = e));
    if (!held) return;
    if (performance.now() > end)
      throw new Error(
        'Another tab or program still has files of this page open; close it and reset again.',
      );
    await new Promise((resolve) => setTimeout(resolve, 100));
  }
}

async function removeOffline(): Promise<void> {
  if (!('caches' in globalThis)) return; // over plain HTTP from another machine
  const registrations = (await navigator.serviceWorker?.getRegistrations()) ?? [];
  await Promise.all(registrations.map((r) => r.unregister()));
  await Promise.all((await caches.keys()).map((key) => caches.delete(key)));
}

const removeDatabase = (name: string): Promise<void> =>
  new Promise((resolve, reject) => {
    const request = indexedDB.deleteDatabase(name);
    request.onsuccess = () => resolve();
    request.onerror = () =>
      reject(request.error ?? new Error(`The database ${name} could not be deleted.`));
  });

async function removeDatabases(): Promise<void> {
  // one in use goes when it is let go
  for (const { name } of await indexedDB.databases())
    if (name) await within(removeDatabase(name), PATIENCE);
}

/** No worker of this tab has a file open any more. */
async function letGo(): Promise<void> {
  closeStore();
  closeStorage();
  await within(unload().catch(() => {}), PATIENCE); // what does not answer is ended with the page
}

/** Everything: conversations, models, settings, the offline copy. Then the page starts as on the
 *  first day. Files are deleted as files: what they hold may be damaged, and each kind goes
 *  whatever becomes of the others. */
export async function resetEverything(): Promise<void> {
  tellTabs({ kind: 'reset' });
  await letGo();
  local.clear();
  // nothing is there, and asking is an error
  const all = isRefused() ? [] : [removeFiles(), removeOffline(), removeDatabases()];
  const failed = (await Promise.allSettled(all)).find((r) => r.status === 'rejected');
  // also where something was left: without their files the tabs are of no use
  tellTabs({ kind: 'wasReset' });
  if (failed) throw failed.reason;
  location.replace(location.pathname);
}

// Another tab resets everything: this one would keep files open, and write its own back.
onTold((change) => {
  if (change.kind === 'reset') void letGo();
  if (change.kind === 'wasReset') location.replace(location.pathname);
});
