// turns - giving other work of the thread its turn, and being told to stop.

import { BezelError } from './wasm.js';

const HOLD = 8; // milliseconds that the thread is held at most, roughly

let last = 0; // when others last had their turn

/** What waits for files, devices or people goes first. setTimeout would wait for milliseconds each time. */
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
