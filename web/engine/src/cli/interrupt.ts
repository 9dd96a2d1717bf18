// interrupt - Ctrl-C: the first stops what is running, the second leaves.

import type { Interface } from 'node:readline';

import { INTERRUPTED } from './args.js';

/** Run something that Ctrl-C can stop through the signal; a second Ctrl-C before it is over ends the process. A
 *  terminal that is read line by line hands its Ctrl-C to the reader of lines. */
export async function interruptible<T>(work: (signal: AbortSignal) => Promise<T>, lines?: Interface): Promise<T> {
  const controller = new AbortController();
  const onInterrupt = (): void => {
    if (controller.signal.aborted) process.exit(INTERRUPTED);
    controller.abort();
  };
  process.on('SIGINT', onInterrupt);
  lines?.on('SIGINT', onInterrupt);
  try {
    return await work(controller.signal);
  } finally {
    process.off('SIGINT', onInterrupt);
    lines?.off('SIGINT', onInterrupt);
  }
}
