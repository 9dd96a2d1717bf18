// interrupt - Ctrl-C: the first stops what is running, the second leaves.

import { INTERRUPTED } from './args.js';

/** Run something that Ctrl-C can stop through the signal; a second Ctrl-C before it is over ends the process. */
export async function interruptible<T>(work: (signal: AbortSignal) => Promise<T>): Promise<T> {
  const controller = new AbortController();
  const onInterrupt = (): void => {
    if (controller.signal.aborted) process.exit(INTERRUPTED);
    controller.abort();
  };
  process.on('SIGINT', onInterrupt);
  try {
    return await work(controller.signal);
  } finally {
    process.off('SIGINT', onInterrupt);
  }
}
