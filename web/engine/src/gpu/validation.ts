// validation - the kernels that a load does not wait for, compiled and put to the test while the
// model is in use.
//
// They come in groups: those of tokens one by one first, then the others. Steps that need one of a
// group wait for that group and those before it; others go on. For the last group, of prompts of
// any length and of long histories, nobody waits: a step that needs one of it before its turn has
// it compiled at once. It is given up where it cannot be tested. Whoever closes the engine stops it
// first.

import { RESERVE, type Reserve } from '../engine/boundary.js';
import { NO_MEMORY, type Gpu } from './gpu.js';
import { Lull, nextTurn, unlessStopped } from '../engine/turns.js';
import { BezelError } from '../engine/wasm.js';

export class KernelValidation {
  private work: Promise<void> | undefined; // of a group, or why it failed
  private readonly closing = new AbortController();
  private readonly lull: Lull;
  private last: Reserve = RESERVE.rest; // group to be validated
  private failed = false; // the last group

  /** `test` is to validate groups up to one; `validated`: up to which they are. */
  constructor(
    private readonly gpu: Gpu,
    private readonly test: (group: Reserve, signal: AbortSignal) => Promise<void>,
    private validated: Reserve,
  ) {
    this.lull = new Lull(() => gpu.done(), () => this.begin());
  }

  /** Are the kernels of the groups up to this one right? */
  has(group: Reserve): boolean {
    return this.validated >= group;
  }

  /** There is nothing left to validate that a step waits for. */
  get over(): boolean {
    return this.has(RESERVE.all);
  }

  /** The first and the last of the groups whose kernels must be right before a step may run;
   *  undefined: none are left. Also while the last group is tested: what takes the place of a
   *  kernel that it demotes is new. */
  get awaited(): readonly [Reserve, Reserve] | undefined {
    if (this.failed) return [RESERVE.rest, RESERVE.rest]; // those that need it hear why
    return this.done ? undefined : [RESERVE.first, RESERVE.all];
  }

  /** There is nothing left to do. */
  get done(): boolean {
    return this.has(this.last);
  }

  /** Something new was asked of the model: begin when it is quiet. */
  soon(): void {
    if (!this.done && !this.work && !this.closing.signal.aborted) this.lull.await();
  }

  /** With the next group, unless one is under way; `least`: with those up to this one, together. */
  begin(least: Reserve = RESERVE.steps): void {
    if (this.done || this.work) return;
    this.lull.forget();
    this.work = this.run(Math.max(least, this.validated + 1) as Reserve);
    this.work.catch(() => {}); // whoever needs it hears it
  }

  /** Wait until the kernels of the groups up to this one are there and right; throws where one is
   *  not. It begins, if it has not yet. A group that was right once may have got others, since a
   *  kernel was demoted: they are among the last. */
  async upTo(group: Reserve, signal?: AbortSignal): Promise<void> {
    const last = group > this.validated ? group : this.over ? RESERVE.rest : RESERVE.all;
    if (last > this.last) this.last = last; // somebody needs it after all
    while (this.validated < last) {
      this.begin(last);
      await unlessStopped(this.work as Promise<void>, signal);
    }
  }

  /** Wait until nothing is under way any more, and nothing will be. */
  async all(signal?: AbortSignal): Promise<void> {
    if (!this.over) await this.upTo(RESERVE.all, signal);
    while (!this.done) {
      this.begin();
      try {
        await unlessStopped(this.work as Promise<void>, signal);
      } catch (e) {
        if (!this.done) throw e; // else the last group was given up, which only saves time
      }
    }
  }

  /** At once: nothing of it is left, and nothing is used any more. */
  stop(): void {
    this.lull.forget();
    this.closing.abort(new BezelError('this model is closed', 'argument'));
  }

  private async run(group: Reserve): Promise<void> {
    const { signal } = this.closing;
    try {
      await nextTurn(); // whoever asked has something to do
      signal.throwIfAborted();
      await this.test(group, signal);
      this.validated = group;
      this.work = undefined;
      this.soon(); // who waited goes first
    } catch (e) {
      if (!signal.aborted) this.giveUp(group, e);
      throw e;
    }
  }

  /** A group is not validated. Where there was no room for the test, nothing of it is left: another
   *  time. The last one only saves time: unless one of its kernels is wrong, it is left to whoever
   *  needs it. */
  private giveUp(group: Reserve, e: unknown): void {
    const noRoom = e instanceof Error && e.message.startsWith(NO_MEMORY);
    const wrong = e instanceof BezelError && e.kind === 'device';
    if (noRoom) this.gpu.takeFault();
    this.failed = group === RESERVE.rest && wrong;
    if (group === RESERVE.rest && !wrong) this.last = RESERVE.all;
    if (noRoom || this.last < group) this.work = undefined;
  }
}
