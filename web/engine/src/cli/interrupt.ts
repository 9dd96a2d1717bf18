// interrupt - Ctrl-C: the first stops what is running, the second leaves. A shutdown stops a
// command the same way.

import type { Interface } from 'node:readline';

/** Exit codes, as shells say them. */
const codes = { SIGINT: 130, SIGTERM: 143, SIGHUP: 129 } as const;
type Stop = keyof typeof codes;

let last: Stop = 'SIGINT';

/** The exit code of a command that was stopped. */
export const stopCode = (): number => codes[last];

/** Run something that Ctrl-C can stop through the signal; a second Ctrl-C before it is over ends
 *  the process. A terminal that is read line by line hands its Ctrl-C to the reader of lines: there
 *  one answer is stopped and the conversation goes on, so that a shutdown is left to end the
 *  process. */
export async function interruptible<T>(
  work: (signal: AbortSignal) => Promise<T>, lines?: Interface,
): Promise<T> {
  const controller = new AbortController();
  const heard: readonly Stop[] = lines ? ['SIGINT'] : ['SIGINT', 'SIGTERM', 'SIGHUP'];
  const stop = (by: Stop): void => {
    last = by;
    if (controller.signal.aborted) process.exit(stopCode());
    controller.abort();
  };
  const onInterrupt = (): void => stop('SIGINT');
  for (const name of heard) process.on(name, stop);
  lines?.on('SIGINT', onInterrupt);
  try {
    return await work(controller.signal);
  } finally {
    for (const name of heard) process.off(name, stop);
    lines?.off('SIGINT', onInterrupt);
  }
}

/** Resolves when Ctrl-C is pressed or the process is told to end. A second signal does not wait
 *  for the rest. */
export function stopped(): Promise<void> {
  return new Promise((done) => {
    const stop = (by: Stop): void => {
      last = by;
      process.once(by, () => process.exit(stopCode()));
      done();
    };
    for (const name of Object.keys(codes) as Stop[]) process.once(name, stop);
  });
}
