// proof - the kernels that a load does not wait for, compiled and put to the test while the model is in use.
//
// Steps that need one of them wait for all; others go on. Whoever closes the engine stops it first.

import { NO_MEMORY, type Gpu } from './gpu.js';
import { nextTurn, stopped } from './turns.js';
import { aborting } from './upload.js';
import { BezelError } from './wasm.js';

const SOON = 300; // milliseconds without a new kind of step after which it begins

export class Proof {
  private work: Promise<void> | undefined;
  private readonly closing = new AbortController();
  private timer: ReturnType<typeof setTimeout> | undefined;

  /** `over`: there is nothing left to prove. */
  constructor(private readonly gpu: Gpu, private readonly test: (signal: AbortSignal) => Promise<void>, public over: boolean) {}

  /** Begin once nothing new was asked of the model for a while, and what was is done: that may be somebody's first token. No process
   *  is kept alive for it. */
  soon(): void {
    if (this.over || this.work || this.closing.signal.aborted) return;
    clearTimeout(this.timer);
    this.timer = setTimeout(() => void this.gpu.done().then(() => this.begin(), () => {}), SOON);
    if (typeof this.timer === 'object') this.timer.unref();
  }

  begin(): void {
    if (this.over || this.work) return;
    clearTimeout(this.timer);
    this.work = this.run();
    this.work.catch(() => {}); // whoever needs it hears it
  }

  /** Wait until every kernel is there and right; throws where one is not. It begins, if it has not yet. */
  async all(signal?: AbortSignal): Promise<void> {
    if (this.over) return;
    this.begin();
    const { aborted, off } = aborting(signal);
    try {
      await Promise.race([this.work, aborted]);
    } catch (e) {
      throw signal?.aborted ? stopped(signal) : e;
    } finally {
      off();
    }
  }

  /** At once: nothing of it is left, and nothing is used any more. */
  stop(): void {
    clearTimeout(this.timer);
    this.closing.abort(new BezelError('this model is closed', 'argument'));
  }

  private async run(): Promise<void> {
    const { signal } = this.closing;
    try {
      await nextTurn(); // whoever asked has something to do
      signal.throwIfAborted();
      await this.test(signal);
      this.over = true;
    } catch (e) {
      if (!signal.aborted && e instanceof Error && e.message.startsWith(NO_MEMORY)) { // nothing of it is left: another time
        this.gpu.takeFault();
        this.work = undefined;
      }
      throw e;
    }
  }
}
