// transfers - models on their way into this browser's store: downloads and copies. A pause keeps
// what has come.

import { signal } from '@preact/signals';
import type { StoredModel, StoreProgress } from 'bezel';
import { SpeedMeter } from '../lib/speed';
import { messageOf, notify } from './notices';
import { orNothing, store } from './shelf';

export interface Transfer {
  /** What to do again to go on: an address, or a model of the server. */
  key: string;
  name: string;
  loaded: number;
  total: number;
  speed: number;
  running: boolean;
  /** Why it stopped, where nobody asked it to. */
  error: string;
  phase: StoreProgress['phase'];
}

export const transfers = signal<Transfer[]>([]);

const stops = new Map<string, AbortController>();
/** Files that are copied, by key; nothing stays of a copy that breaks off. */
const copies = new Map<string, File>();

function change(key: string, part: Partial<Transfer>): void {
  transfers.value = transfers.value.map((t) => (t.key === key ? { ...t, ...part } : t));
}

type Work = (
  watch: { onProgress(p: StoreProgress): void; signal: AbortSignal },
) => Promise<StoredModel>;

async function run(
  key: string, name: string, work: Work, done: () => Promise<void>,
): Promise<void> {
  if (stops.has(key)) return;
  const stop = new AbortController();
  stops.set(key, stop);
  const before = transfers.value.find((t) => t.key === key);
  const start: Transfer = {
    key, name, loaded: before?.loaded ?? 0, total: before?.total ?? 0, speed: 0, running: true,
    error: '', phase: 'waiting',
  };
  transfers.value = [...transfers.value.filter((t) => t.key !== key), start];
  const meter = new SpeedMeter();
  try {
    const model = await work({
      signal: stop.signal,
      onProgress: ({ phase, loaded, total }) =>
        change(key, { phase, loaded, total, speed: meter.add(loaded) }),
    });
    transfers.value = transfers.value.filter((t) => t.key !== key);
    notify(`${model.name} is in this browser now.`);
    await done();
  } catch (e) {
    change(key, {
      running: false,
      speed: 0,
      error: stop.signal.aborted ? '' : messageOf(e),
      ...(copies.has(key) && { loaded: 0 }),
    });
  } finally {
    stops.delete(key);
  }
}

const SERVER = 'server:';

/** From an address, or from the server ("server:NAME"); called again, it goes on where it
 *  stopped, and a copy begins again. */
export async function fetchModel(key: string, done: () => Promise<void>): Promise<void> {
  const file = copies.get(key);
  if (file) return copyFile(file, done);
  if (key.startsWith(SERVER))
    return run(
      key,
      key.slice(SERVER.length),
      (watch) => store().pull({ server: location.origin, model: key.slice(SERVER.length) }, watch),
      done,
    );
  const url = new URL(key, location.href).href;
  return run(
    url, new URL(url).pathname.split('/').pop() || url, (watch) => store().pull(url, watch), done,
  );
}

export function copyFile(file: File, done: () => Promise<void>): Promise<void> {
  const key = `file:${file.name}`;
  copies.set(key, file);
  return run(key, file.name, (watch) => store().importFile(file, watch), done);
}

export const pause = (key: string): void => stops.get(key)?.abort();

/** Throw away what has come of it. */
export async function drop(transfer: Transfer): Promise<void> {
  const kept = (await store().unfinished()).find((u) => u.url === transfer.key);
  if (kept) await store().discard(kept.key);
  transfers.value = transfers.value.filter((t) => t.key !== transfer.key);
}

/** Downloads of earlier visits that were not finished. */
export async function findUnfinished(): Promise<void> {
  for (const { url, label, loaded, total = 0 } of await orNothing(store().unfinished())) {
    if (!url || transfers.value.some((t) => t.key === url)) continue;
    transfers.value = [
      ...transfers.value,
      {
        key: url, name: label, loaded, total, speed: 0, running: false, error: '',
        phase: 'download',
      },
    ];
  }
}
