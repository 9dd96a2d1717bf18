// fits - whether a model has room here, and with how much context. Browsers do not tell how much memory a GPU has; what
// they tell of the machine (`deviceMemory`, rounded, at most a few GB) is what this goes by, and it says so.

import { signal } from '@preact/signals';
import { largestContext, type ModelNeeds } from 'bezel';
import { bytes } from '../lib/format';
import type { ModelEntry } from './models';
import { messageOf } from './notices';
import { store } from './transfers';

export type Fit =
  | { kind: 'fits'; context: number; needs: number }
  | { kind: 'tight'; why: string }
  | { kind: 'no'; why: string };

export const fits = signal<Record<string, Fit>>({});

const SHARE = 0.75; // of the machine's memory that a page may count on
const GUESS = 4; // GiB, where the browser says nothing
const memory = (): number => ((navigator as { deviceMemory?: number }).deviceMemory ?? GUESS) * 2 ** 30;

function judge(needs: ModelNeeds): Fit {
  if (needs.refused) return { kind: 'no', why: needs.refused };
  const context = largestContext(needs, SHARE * memory());
  if (context > 0) return { kind: 'fits', context, needs: needs.weights };
  const least = needs.weights + (needs.cache[0]?.bytes ?? 0);
  return { kind: 'tight', why: `It needs about ${bytes(least)}, and the browser speaks of ${bytes(memory())} on this machine.` };
}

const asked = new Set<string>();

/** Look at a model's header, once. */
export async function weigh(entry: ModelEntry): Promise<void> {
  if (asked.has(entry.key)) return;
  asked.add(entry.key);
  let fit: Fit;
  try {
    fit = judge(await store().weigh(await entry.sources()));
  } catch (e) {
    fit = { kind: 'no', why: messageOf(e) };
  }
  fits.value = { ...fits.value, [entry.key]: fit };
}
