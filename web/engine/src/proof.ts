// proof - the kernels that a load does not wait for, compiled and put to the test while the model is in use.
//
// They come in groups: those of tokens one by one first, then the others. Steps that need one of a group wait for that group and those
// before it; others go on. Whoever closes the engine stops it first.

import { RESERVE, type Reserve } from './estimate.js';
import { NO_MEMORY, type Gpu } from './gpu.js';
import { nextTurn, stopped } from './turns.js';
import { aborting } from './upload.js';
import { BezelError } from './wasm.js';

const SOON = 300; // milliseconds without a new kind of step after which it begins

export class Proof {
  private work: Promise<void> | undefined; // of a group, or why it failed
  private readonly closing = new AbortController();
  private timer: ReturnType<typeof setTimeout> | undefined;

  /** `test` is to prove groups up to one; `proven`: up to which they are. */
  constructor(private readonly gpu: Gpu, private readonly test: (group: Reserve, signal: AbortSignal) => Promise<void>, private proven: Reserve) {}

  /** Are the kernels of the groups up to this one right? */
  has(group: Reserve): boolean {
    return this.proven >= group;
  }

  /** There is nothing left to prove. */
  get over(): boolean {
    return this.has(RESERVE.all);
  }

  /** Begin once nothing new was asked of the model for a while, and what was is done: that may be somebody's first token. No process
   *  is kept alive for it. */
  soon(): void {
    if (this.over || this.work || this.closing.signal.aborted) return;
    clearTimeout(this.timer);
    this.timer = setTimeout(() => void this.gpu.done().then(() => this.begin(), () => {}), SOON);
    if (typeof this.timer === 'object') this.timer.unref();
  }

  /** With the next group, unless one is under way; `least`: with those up to this one, together. */
  begin(least: Reserve = RESERVE.steps): void {
    if (this.over || this.work) return;
    clearTimeout(this.timer);
    this.work = this.run(Math.max(least, this.proven + 1) as Reserve);
    this.work.catch(() => {}); // whoever needs it hears it
  }

  /** Wait until the kernels of the groups up to this one are there and right; throws where one is not. It begins, if it has not yet.
   *  A group that was right once may have got others, since a kernel was demoted: they are among the last. */
  async upTo(group: Reserve, signal?: AbortSignal): Promise<void> {
    const last = group > this.proven ? group : RESERVE.all, { aborted, off } = aborting(signal);
    try {
      while (this.proven < last) {
        this.begin(last);
        await Promise.race([this.work, aborted]);
      }
    } catch (e) {
      throw signal?.aborted ? stopped(signal) : e;
    } finally {
      off();
    }
  }

  all(signal?: AbortSignal): Promise<void> {
    return this.upTo(RESERVE.all, signal);
  }

  /** At once: nothing of it is left, and nothing is used any more. */
  stop(): void {
    clearTimeout(this.timer);
    this.closing.abort(new BezelError('this model is closed', 'argument'));
  }

  private async run(group: Reserve): Promise<void> {
    const { signal } = this.closing;
    try {
      await nextTurn(); // whoever asked has something to do
      signal.throwIfAborted();
      await this.test(group, signal);
      this.proven = group;
      this.work = undefined;
      this.soon(); // who waited goes first
    } catch (e) {
      if (!signal.aborted && e instanceof Error && e.message.startsWith(NO_MEMORY)) { // nothing of it is left: another time
        this.gpu.takeFault();
        this.work = undefined;
      }
      throw e;
    }
  }
}
