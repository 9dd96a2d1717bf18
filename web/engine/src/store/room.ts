// room - how much of the disk the browser gives this site, and the sentence for when it is not
// enough.

import { BezelError } from '../engine/wasm.js';
import { bytesText } from './platform.js';

const GIB = 2 ** 30;

/** Bytes that can still be written; Infinity where the browser does not say. Chromium says, for the
 *  sake of privacy, that up to 10 whole GiB are left whatever the truth is; then only writing
 *  tells. */
export async function roomLeft(): Promise<number> {
  const { quota, usage = 0 } = await navigator.storage.estimate();
  const left = quota === undefined ? Infinity : Math.max(0, quota - usage);
  return left > 0 && left % GIB === 0 ? Infinity : left;
}

/** `needed` more bytes did not, or will not, fit. */
export async function noRoom(label: string, needed: number, cause?: unknown): Promise<BezelError> {
  const left = await roomLeft();
  const why = left < needed
    ? `${bytesText(needed - left)} must be freed, since it needs ${bytesText(needed)} more and `
      + `this site has ${bytesText(left)} left`
    : `it needs ${bytesText(needed)} more than the browser gives this site`;
  return new BezelError(
    `there is no room for ${label}: ${why} (what is there is kept)`, 'limit', cause,
  );
}

export async function needRoom(label: string, needed: number): Promise<void> {
  if (needed > (await roomLeft())) throw await noRoom(label, needed);
}

/** Ask that models are not thrown away when the disk runs low. Only a page can ask; a worker
 *  says how it is. */
export async function requestPersistence(): Promise<boolean> {
  const { storage } = navigator;
  if (await storage.persisted()) return true;
  return 'persist' in storage ? storage.persist() : false;
}
