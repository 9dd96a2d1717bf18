// queue - who may use the model: one alone, or several that take turns slice by slice. Who waits
// can leave by its signal.

interface Waiting {
  /** May it come in beside others? Absent: it comes alone. */
  beside: (() => boolean) | undefined;
  enter(): void;
  fail(error: unknown): void;
}

/** In the order of asking. One that comes alone waits until all are out, and those behind it
 *  wait for it. */
export class Queue {
  private readonly waiting: Waiting[] = [];
  private inside = 0;
  private alone = false;

  /** Resolves when it is this caller's turn, to what ends the turn. `beside` is asked whether there
   *  is room beside those that came in the same way; where nobody is in, there must be. */
  enter(signal?: AbortSignal, beside?: () => boolean): Promise<() => void> {
    return new Promise((resolve, reject) => {
      if (signal?.aborted) return reject(signal.reason);
      const leave = (): void => {
        this.waiting.splice(this.waiting.indexOf(entry), 1);
        reject(signal?.reason);
        this.next(); // others may have waited for it alone
      };
      const entry: Waiting = {
        beside,
        enter: () => {
          signal?.removeEventListener('abort', leave);
          resolve(this.turn());
        },
        fail: (error) => {
          signal?.removeEventListener('abort', leave);
          reject(error);
        },
      };
      this.waiting.push(entry);
      signal?.addEventListener('abort', leave, { once: true });
      this.next();
    });
  }

  private turn(): () => void {
    let over = false;
    return () => {
      if (over) return;
      over = true;
      this.inside--;
      this.alone = false;
      this.next();
    };
  }

  private next(): void {
    for (let i = 0; i < this.waiting.length && !this.alone;) {
      const entry = this.waiting[i] as Waiting;
      if (!entry.beside && (this.inside || i)) return;
      if (entry.beside && !entry.beside()) {
        i++;
        continue;
      }
      this.waiting.splice(i, 1);
      this.inside++;
      this.alone = !entry.beside;
      entry.enter();
    }
  }

  /** Everybody who waits goes away with this. */
  clear(error: unknown): void {
    for (const entry of this.waiting.splice(0)) entry.fail(error);
  }

  get length(): number {
    return this.waiting.length;
  }
}

// milliseconds: a round of twenty takes a second, and a GPU fills its queue anew in a fraction of
// it
const SLICE = 50;

/** Time at the model for those that are in at once: each computes for a slice, then comes
 *  whoever has waited longest. */
export class Slices {
  private readonly waiting: Slice[] = [];
  private holder: Slice | undefined;
  private newcomer = false; // the last turn was somebody's first

  /** `onTurn` is called whenever others may have had the model in between. */
  join(signal: AbortSignal, onTurn: () => void): Slice {
    return new Slice(this, signal, onTurn);
  }

  get contended(): boolean {
    return this.waiting.length > 0;
  }

  has(slice: Slice): boolean {
    return this.holder === slice;
  }

  wait(slice: Slice): void {
    this.waiting.push(slice);
    if (this.holder?.resting) this.give(this.holder);
    this.next();
  }

  /** It does not want the model any more, or not now. */
  give(slice: Slice): void {
    const at = this.waiting.indexOf(slice);
    if (at >= 0) this.waiting.splice(at, 1);
    if (this.holder === slice) this.holder = undefined;
    this.next();
  }

  /** Who has had no turn yet goes before those who have, every second time: many short answers
   *  do not stop a long one. */
  private next(): void {
    if (this.holder || !this.waiting.length) return;
    const at = this.waiting.findIndex((s) => s.fresh !== this.newcomer);
    const [holder] = this.waiting.splice(Math.max(0, at), 1) as [Slice];
    this.newcomer = holder.fresh;
    this.holder = holder;
    holder.start();
  }
}

export class Slice {
  /** Its reader has to come first. Meanwhile whoever wants the model can have it. */
  resting = false;
  fresh = true;
  private since = 0;
  private timer: ReturnType<typeof setTimeout> | undefined;
  private started = (): void => {};

  constructor(
    private readonly slices: Slices,
    private readonly signal: AbortSignal,
    private readonly onTurn: () => void,
  ) {}

  /** Before something is computed: nothing to wait for, or the next turn. */
  go(): Promise<void> | undefined {
    clearTimeout(this.timer);
    this.resting = false;
    const { slices } = this;
    if (slices.has(this) && (!slices.contended || performance.now() - this.since < SLICE))
      return undefined;
    return this.again();
  }

  private async again(): Promise<void> {
    const { slices, signal } = this;
    slices.give(this);
    signal.throwIfAborted();
    let leave = (): void => {};
    try {
      await new Promise<void>((resolve, reject) => {
        leave = () => reject(signal.reason);
        signal.addEventListener('abort', leave, { once: true });
        this.started = resolve;
        slices.wait(this);
      });
    } catch (e) {
      slices.give(this);
      throw e;
    } finally {
      signal.removeEventListener('abort', leave);
    }
    this.onTurn();
  }

  /** Called by Slices alone. */
  start(): void {
    this.since = performance.now();
    this.fresh = false;
    this.started();
  }

  /** Something was computed, and its reader has it. One that does not come back soon loses the
   *  turn. */
  rest(): void {
    this.resting = true;
    if (this.slices.contended) this.timer = setTimeout(() => this.end(), SLICE);
  }

  /** Somebody else's turn. */
  end(): void {
    clearTimeout(this.timer);
    this.slices.give(this);
  }
}
