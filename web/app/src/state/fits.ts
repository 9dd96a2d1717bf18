// fits - what a model would take of the memory here, and the longest context that it may have. The
// engine goes through a load without loading anything, so the numbers are those of a real one. How
// much memory a GPU has no browser tells; where the device has a limit that is known, the engine
// says whether the model stays below it.

import { signal } from '@preact/signals';
import { DeviceError, Engine, type Estimate } from 'bezel';
import { backendFor } from './engine';
import type { ModelEntry } from './models';
import { messageOf } from './notices';

export type Fit = { kind: 'known'; estimate: Estimate } | { kind: 'refused'; why: string };

/** By backend and model. */
export const fits = signal<Record<string, Fit>>({});

const keyOf = (entry: ModelEntry): string => `${backendFor(entry)}:${entry.key}`;

export const fitOf = (entry: ModelEntry): Fit | undefined => fits.value[keyOf(entry)];

const asked = new Set<string>();
// one at a time: each has a worker and a device of its own
let last: Promise<void> = Promise.resolve();

async function estimate(entry: ModelEntry): Promise<Fit | undefined> {
  try {
    const { source, store } = await entry.open(() => {}, new AbortController().signal);
    return {
      kind: 'known',
      estimate:
        await Engine.estimate(source, { backend: backendFor(entry), ...(store && { store }) }),
    };
  } catch (e) {
    if (e instanceof DeviceError) return undefined; // no GPU: the page says so elsewhere
    return { kind: 'refused', why: messageOf(e) };
  }
}

/** Look at a model's header, once. */
export function weigh(entry: ModelEntry): void {
  const key = keyOf(entry);
  if (asked.has(key)) return;
  asked.add(key);
  last = last.then(async () => {
    const fit = await estimate(entry);
    if (fit) fits.value = { ...fits.value, [key]: fit };
  });
}
