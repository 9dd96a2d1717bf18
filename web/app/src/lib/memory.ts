// memory - how much a conversation may take by default. No browser tells how much memory a GPU has;
// this is decided on what one does tell.

import type { Backend } from '../state/prefs';
import { isTouch } from '../state/ui';

const GB = 2 ** 30;
const LARGE = 2 * GB; // a buffer that only a desktop's GPU gives

interface Known {
  /** GB, as the browser says it; some say nothing, and all round and cap it. */
  memory: number | undefined;
  touch: boolean;
  /** Of the adapter, in bytes; 0: there is none. */
  maxBuffer: number;
}

/** An eighth of the memory that is known of where the GPU is a large one, else a sixteenth:
 *  beside the weights, and never half of it. */
export function contextBytesFor({ memory, touch, maxBuffer }: Known): number {
  return ((memory ?? (touch ? 4 : 8)) * GB) / (maxBuffer >= LARGE ? 8 : 16);
}

let known: Promise<number> | undefined;

/** Asked once: the device does not change. */
async function measure(): Promise<number> {
  // none is an answer
  const adapter =
    await navigator.gpu?.requestAdapter({ powerPreference: 'high-performance' }).catch(() => null);
  const { deviceMemory } = navigator as Navigator & { deviceMemory?: number };
  return contextBytesFor({
    memory: deviceMemory, touch: isTouch(), maxBuffer: adapter?.limits.maxBufferSize ?? 0,
  });
}

/** On the CPU the module has 4 GB for all, and long texts take their time anyway: an eighth of
 *  that. */
export const contextBytes = async (backend: Backend): Promise<number> =>
  (await (known ??= measure())) / (backend === 'cpu' ? 8 : 1);
