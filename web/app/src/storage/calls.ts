// calls - questions to a worker as promises. Knows nothing of what is asked.

interface Ask {
  n: number;
  method: string;
  args: unknown[];
}
type Reply = { n: number; value: unknown } | { n: number; error: string };

/** The worker's side. */
export function answerCalls(answer: (method: string, args: unknown[]) => Promise<unknown>): void {
  const post = (reply: Reply, transfer: Transferable[] = []) =>
    self.postMessage(reply, { transfer });
  self.onmessage = async ({ data: { n, method, args } }: MessageEvent<Ask>) => {
    try {
      const value = await answer(method, args);
      post({ n, value }, value instanceof Uint8Array ? [value.buffer] : []);
    } catch (e) {
      post({ n, error: e instanceof Error ? e.message : String(e) });
    }
  };
}

/** The page's side; the worker starts with the first question. */
export class Caller {
  private worker: Worker | null = null;
  private readonly waiting =
    new Map<number, { resolve(value: unknown): void; reject(error: Error): void }>();
  private next = 0;
  private closed = '';

  constructor(private readonly start: () => Worker) {}

  ask<T>(method: string, args: unknown[]): Promise<T> {
    if (this.closed) return Promise.reject(new Error(this.closed));
    const worker = (this.worker ??= this.listen(this.start()));
    const n = this.next++;
    return new Promise<T>((resolve, reject) => {
      this.waiting.set(n, { resolve: resolve as (value: unknown) => void, reject });
      worker.postMessage({ n, method, args } satisfies Ask);
    });
  }

  private listen(worker: Worker): Worker {
    worker.onmessage = ({ data }: MessageEvent<Reply>) => {
      const waiting = this.waiting.get(data.n);
      this.waiting.delete(data.n);
      if ('error' in data) waiting?.reject(new Error(data.error));
      else waiting?.resolve(data.value);
    };
    // What a worker says no more, nobody waits for; the next question starts another one.
    worker.onerror = (event) =>
      this.end(`The history does not open${event.message ? `: ${event.message}` : '.'}`);
    return worker;
  }

  /** For good: files are let go, and no question opens them again. */
  close(why: string): void {
    this.closed = why;
    this.end(why);
  }

  private end(why: string): void {
    this.worker?.terminate();
    this.worker = null;
    for (const waiting of this.waiting.values()) waiting.reject(new Error(why));
    this.waiting.clear();
  }
}
