// queue - one job at a time, in an order that is fair to clients: whoever was served longest ago comes next, so that
// a burst of one client does not stand before the single request of another. Within a client, first come first served.

import { Gone, HttpError } from './http.js';

interface Waiting {
  start(): void;
}

interface Client {
  readonly jobs: Waiting[];
  /** The turn in which it was last served, or joined. */
  turn: number;
}

export class FairQueue {
  private readonly clients = new Map<string, Client>();
  private busy = false;
  private turn = 0;
  private count = 0;

  constructor(private readonly limit: number) {}

  get waiting(): number {
    return this.count;
  }

  get running(): boolean {
    return this.busy;
  }

  /** Runs the job when its turn comes. A signal takes it out of the queue; a job that runs must heed it itself. */
  async run<T>(client: string, signal: AbortSignal, job: () => Promise<T>): Promise<T> {
    if (signal.aborted) throw new Gone();
    if (this.busy) await this.wait(client, signal);
    else this.take(client);
    try {
      return await job();
    } finally {
      this.busy = false;
      this.next();
    }
  }

  private wait(name: string, signal: AbortSignal): Promise<void> {
    if (this.count >= this.limit) throw new HttpError(503, `${this.count} requests are waiting already; try again later`, 'queue_full', { 'retry-after': '5' });
    return new Promise((done, failed) => {
      const entry: Waiting = {
        start: () => {
          signal.removeEventListener('abort', leave);
          done();
        },
      };
      const leave = (): void => {
        this.remove(name, entry);
        failed(new Gone());
      };
      signal.addEventListener('abort', leave, { once: true });
      this.join(name).jobs.push(entry);
      this.count++;
    });
  }

  /** One who joins comes before those who have been served in this turn, and after all who have waited longer. */
  private join(name: string): Client {
    const known = this.clients.get(name);
    if (known) return known;
    const client: Client = { jobs: [], turn: this.turn - 0.5 };
    this.clients.set(name, client);
    return client;
  }

  private remove(name: string, entry: Waiting): void {
    const client = this.clients.get(name);
    const at = client?.jobs.indexOf(entry) ?? -1;
    if (!client || at < 0) return;
    client.jobs.splice(at, 1);
    this.count--;
    if (!client.jobs.length && client.turn !== this.turn) this.clients.delete(name);
  }

  /** The client that runs stays known until another one does, so that its next request does not count as a newcomer's. */
  private take(name: string): void {
    for (const [other, { jobs }] of this.clients) if (other !== name && !jobs.length) this.clients.delete(other);
    this.join(name).turn = ++this.turn;
    this.busy = true;
  }

  private next(): void {
    let best: string | undefined, turn = Infinity;
    for (const [name, client] of this.clients) {
      if (!client.jobs.length || client.turn >= turn) continue;
      best = name;
      turn = client.turn;
    }
    const entry = best === undefined ? undefined : this.clients.get(best)?.jobs.shift();
    if (best === undefined || !entry) return;
    this.count--;
    this.take(best);
    entry.start();
  }
}
