// turns - giving other work of the thread its turn, and being told to stop.

import { BezelError } from './wasm.js';

const SOON = 300; // milliseconds in which nothing new was asked for
const HOLD = 8; // milliseconds that the thread is held at most, roughly

let last = 0; // when others last had their turn

/** What waits for files, devices or people goes first. setTimeout would wait for milliseconds
 *  each time. */
export function nextTurn(): Promise<void> {
  return new Promise((turn) => {
    if (typeof setImmediate === 'function') {
      setImmediate(turn);
      return;
    }
    const { port1, port2 } = new MessageChannel();
    port1.onmessage = () => {
      port1.close();
      turn();
    };
    port2.postMessage(0);
  });
}

/** Let timers, messages and input through, if they have waited long enough to matter. */
export function breathe(): Promise<void> | undefined {
  if (performance.now() - last < HOLD) return undefined;
  return nextTurn().then(() => {
    last = performance.now();
  });
}

/** What a call that was stopped throws. */
export function stopped(signal?: AbortSignal): BezelError {
  return new BezelError('stopped on request', 'cancelled', signal?.reason);
}

/** Rejects when the signal does; `off` forgets about it. */
export function aborting(
  signal: AbortSignal | undefined,
): { aborted: Promise<never>; off: () => void } {
  let off = (): void => {};
  const aborted = new Promise<never>((_, reject) => {
    const stop = (): void => reject(signal?.reason);
    if (signal?.aborted) stop();
    else signal?.addEventListener('abort', stop, { once: true });
    off = () => signal?.removeEventListener('abort', stop);
  });
  aborted.catch(() => {}); // whoever races with it hears it
  return { aborted, off };
}

/** Wait for work that goes on even when the signal ends the waiting. */
export async function unlessStopped<T>(
  work: Promise<T>, signal: AbortSignal | undefined,
): Promise<T> {
  const { aborted, off } = aborting(signal);
  try {
    return await Promise.race([work, aborted]);
  } catch (e) {
    throw signal?.aborted ? stopped(signal) : e;
  } finally {
    off();
  }
}

/** Calls `begin` once nothing new was asked of the model for a while, and what was is done: that
 *  may be somebody's first token. No process is kept alive for it. */
export class Lull {
  private timer: ReturnType<typeof setTimeout> | undefined;

  constructor(private readonly done: () => Promise<void>, private readonly begin: () => void) {}

  /** Something was asked for. */
  await(): void {
    this.forget();
    this.timer = setTimeout(() => void this.done().then(this.begin, () => {}), SOON);
    if (typeof this.timer === 'object') this.timer.unref();
  }

  forget(): void {
    clearTimeout(this.timer);
  }
}

/** One thing at a time: who comes while another is at it is refused. */
export class Turn {
  busy = false;

  constructor(private readonly refusal: string) {}

  /** Call what is returned when it is over. */
  begin(): () => void {
    if (this.busy) throw new BezelError(this.refusal, 'argument');
    this.busy = true;
    return () => {
      this.busy = false;
    };
  }

  async take<T>(work: () => Promise<T>, after: () => void): Promise<T> {
    const leave = this.begin();
    try {
      return await work();
    } finally {
      leave();
      after();
    }
  }
}
