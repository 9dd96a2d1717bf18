// queue - one at a time, in the order of asking. Who waits can leave by its signal.

interface Waiting {
  enter(): void;
  fail(error: unknown): void;
}

export class Queue {
  private readonly waiting: Waiting[] = [];
  private busy = false;

  /** Resolves when it is this caller's turn, to what ends the turn. */
  enter(signal?: AbortSignal): Promise<() => void> {
    return new Promise((resolve, reject) => {
      if (signal?.aborted) return reject(signal.reason);
      const leave = (): void => {
        this.waiting.splice(this.waiting.indexOf(entry), 1);
        reject(signal?.reason);
      };
      const entry: Waiting = {
        enter: () => {
          signal?.removeEventListener('abort', leave);
          resolve(this.turn());
        },
        fail: (error) => {
          signal?.removeEventListener('abort', leave);
          reject(error);
        },
      };
      if (!this.busy) return entry.enter();
      this.waiting.push(entry);
      signal?.addEventListener('abort', leave, { once: true });
    });
  }

  private turn(): () => void {
    let over = false;
    this.busy = true;
    return () => {
      if (over) return;
      over = true;
      this.busy = false;
      this.waiting.shift()?.enter();
    };
  }

  /** Everybody who waits goes away with this. */
  clear(error: unknown): void {
    for (const entry of this.waiting.splice(0)) entry.fail(error);
  }

  get length(): number {
    return this.waiting.length;
  }
}
