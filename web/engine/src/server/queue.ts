// queue - whose turn it is, fair to clients: whoever was served longest ago comes next, so that a
// burst of one client does not stand before the single request of another. Within a client, first
// come first served. Jobs that allow it run side by side, up to a number; the others run alone. The
// places of the queue and those side by side are shared among households: who calls itself by many
// names is one.

import { Gone, HttpError } from './http.js';

interface Waiting {
  start(): void;
  refuse(): void;
  /** Entries are counted as they come. */
  readonly number: number;
  readonly beside: (() => boolean) | undefined;
}

interface Client {
  readonly household: string;
  readonly jobs: Waiting[];
  running: number;
  /** The turn in which it was last served, or joined. */
  turn: number;
}

export interface Slots {
  /** Jobs side by side. */
  all: number;
  /** Of those, how many may be one household's, and one client's: the rest is for the next one's
   *  short question. */
  household: number;
  client: number;
}

export interface JobOptions {
  /** May it run beside those that do? Asked when its turn has come. Absent: it runs alone. */
  beside?: () => boolean;
  /** Called at the moment when it starts, before anybody else can. */
  onStart?: () => void;
  /** Whose places it takes; absent: the client's own. One client is always of the same one. */
  household?: string | undefined;
  /** Called at once where it has to wait. */
  onWait?: (() => void) | undefined;
}

export class FairQueue {
  private readonly clients = new Map<string, Client>();
  private busy = 0;
  private alone = false;
  private turn = 0;
  private count = 0;
  private number = 0;

  constructor(
    private readonly limit: number,
    private readonly slots: Slots = { all: 1, household: 1, client: 1 },
  ) {}

  get waiting(): number {
    return this.count;
  }

  get running(): boolean {
    return this.busy > 0;
  }

  /** Runs the job when its turn comes. A signal takes it out of the queue; a job that runs must
   *  heed it itself. */
  async run<T>(
    client: string, signal: AbortSignal, job: () => Promise<T>, options: JobOptions = {},
  ): Promise<T> {
    if (signal.aborted) throw new Gone();
    await this.wait(client, signal, options);
    try {
      return await job();
    } finally {
      this.busy--;
      this.alone = false;
      (this.clients.get(client) as Client).running--;
      this.next();
    }
  }

  private wait(
    name: string, signal: AbortSignal, { beside, onStart, onWait, household = name }: JobOptions,
  ): Promise<void> {
    return new Promise((done, failed) => {
      let started = false;
      const entry: Waiting = {
        beside,
        number: this.number++,
        start: () => {
          started = true;
          signal.removeEventListener('abort', leave);
          onStart?.();
          done();
        },
        refuse: () => {
          this.remove(name, entry);
          signal.removeEventListener('abort', leave);
          failed(new HttpError(
            503,
            `${this.count} requests are waiting already; try again later`,
            'queue_full',
            { 'retry-after': '5' },
          ));
        },
      };
      const leave = (): void => {
        this.remove(name, entry);
        failed(new Gone());
        this.next(); // it may have stood before others
      };
      this.join(name, household).jobs.push(entry);
      this.count++;
      this.next();
      if (started) return;
      if (this.count > this.limit) {
        const last = this.lastOfMost(household);
        last.refuse();
        if (last === entry) return;
      }
      signal.addEventListener('abort', leave, { once: true });
      onWait?.();
    });
  }

  /** One who joins comes before those who have been served in this turn, and after all who have
   *  waited longer. */
  private join(name: string, household: string): Client {
    const known = this.clients.get(name);
    if (known) return known;
    const client: Client = { household, jobs: [], running: 0, turn: this.turn - 0.5 };
    this.clients.set(name, client);
    return client;
  }

  /** What came last of the household that has most waiting; where several have as many, of the
   *  one that asks. */
  private lastOfMost(asking: string): Waiting {
    const counts = new Map<string, number>();
    for (const { household, jobs } of this.clients.values())
      counts.set(household, (counts.get(household) ?? 0) + jobs.length);
    let most = asking;
    for (const [household, n] of counts) if (n > (counts.get(most) ?? 0)) most = household;
    const entries =
      [...this.clients.values()].flatMap(({ household, jobs }) => (household === most ? jobs : []));
    return entries.reduce((last, one) => (one.number > last.number ? one : last));
  }

  private runningOf(household: string): number {
    let n = 0;
    for (const client of this.clients.values())
      if (client.household === household) n += client.running;
    return n;
  }

  private remove(name: string, entry: Waiting): void {
    const client = this.clients.get(name);
    const at = client?.jobs.indexOf(entry) ?? -1;
    if (!client || at < 0) return;
    client.jobs.splice(at, 1);
    this.count--;
    if (!client.jobs.length && !client.running && client.turn !== this.turn)
      this.clients.delete(name);
  }

  /** The client that was served last stays known until another one is, so that its next request
   *  does not count as a newcomer's. */
  private take(name: string, client: Client): void {
    for (const [other, { jobs, running }] of this.clients)
      if (other !== name && !jobs.length && !running) this.clients.delete(other);
    client.turn = ++this.turn;
    client.running++;
    this.busy++;
  }

  /** Starts what can be. Who cannot run beside the others holds up those behind it, or it would
   *  wait for ever. */
  next(): void {
    const { slots } = this;
    while (this.busy < slots.all && !this.alone) {
      let name = '', best: Client | undefined;
      for (const [other, client] of this.clients)
        if (client.jobs.length && client.turn < (best?.turn ?? Infinity)
          && client.running < slots.client
          && this.runningOf(client.household) < slots.household)
          [name, best] = [other, client];
      const entry = best?.jobs[0];
      if (!best || !entry || (this.busy > 0 && !entry.beside?.())) return;
      best.jobs.shift();
      this.count--;
      this.alone = !entry.beside;
      this.take(name, best);
      entry.start();
    }
  }
}
