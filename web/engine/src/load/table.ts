// table - the per-layer embedding table, where it is not loaded with the other weights: it comes
// later, or stays in the file.
//
// It is more than half of E2B's file, and a step reads a row of it for each of its tokens. So a
// load does not wait for it where a source reads rows quickly (Source.random). As long as it is in
// the file, the host reads the rows of every step (rows.ts), and a token must be known before its
// step is queued; once all of it is on the device, steps are recorded anew and tokens are queued
// ahead. It begins after a token, when nothing was asked for a while, or when somebody needs it.
// Where it cannot come, for want of memory or since its file cannot be read any more, it stays
// where it is, and so does everything else. Whoever closes the engine stops it first.

import type { Gpu } from '../gpu/gpu.js';
import type { Rows } from './rows.js';
import { aborting, Lull, nextTurn, unlessStopped } from '../engine/turns.js';
import type { SessionPtr } from '../engine/boundary.js';
import { BezelError } from '../engine/wasm.js';

/** What the engine does for a table that comes later. */
export interface TableMoves {
  /** Until all of it is on the device, and the kernels that read it are validated. */
  bring(signal: AbortSignal): Promise<void>;
  /** Steps that are recorded from now on read it there. */
  arrive(): void;
  /** Nothing of it is on the device any more. */
  leave(): void;
}

export class Table {
  /** Are its rows read from the file? */
  inFile = true;
  /** Why it stays there, where it was to come to the device. */
  refusal: string | undefined;
  private work: Promise<void> | undefined; // of bringing it, until nothing of that is under way
  private news: Promise<void> | undefined; // what came of it, or will not
  private readonly closing = new AbortController();
  private readonly lull: Lull;

  /** Without moves it stays in the file. */
  constructor(
    private readonly gpu: Gpu,
    private readonly rows: Rows,
    private readonly moves: TableMoves | undefined,
  ) {
    this.lull = new Lull(() => gpu.done(), () => this.begin());
  }

  /** Something new was asked of the model: begin when it is quiet. */
  soon(): void {
    if (this.moves && !this.work && !this.closing.signal.aborted) this.lull.await();
  }

  begin(): void {
    if (!this.moves || this.work) return;
    this.lull.forget();
    this.work = this.run(this.moves);
    const lost = this.gpu.lost.then(() => this.gpu.check()); // a read may go on for long
    this.news = Promise.race([this.work, aborting(this.closing.signal).aborted, lost]);
    this.news.catch(() => {}); // whoever waits hears it
  }

  /** Wait until it is where it will be; throws where the model is closed or its device lost. */
  async settled(signal?: AbortSignal): Promise<void> {
    this.begin();
    if (this.news) await unlessStopped(this.news, signal);
  }

  /** Bring the rows of these tokens, in order, for the session's next step. */
  async gather(session: SessionPtr, ids: Int32Array): Promise<void> {
    if (this.inFile) await this.rows.gather(session, ids);
  }

  /** At once: nothing of the engine is used any more. What is returned waits for reads that
   *  still write to the device's memory. */
  async stop(): Promise<void> {
    this.lull.forget();
    this.closing.abort(new BezelError('this model is closed', 'argument'));
    await this.work?.catch(() => {});
  }

  private async run(moves: TableMoves): Promise<void> {
    const { signal } = this.closing;
    await nextTurn(); // whoever asked has something to do
    try {
      signal.throwIfAborted();
      await moves.bring(signal);
      signal.throwIfAborted();
      moves.arrive();
      this.inFile = false;
    } catch (e) {
      signal.throwIfAborted();
      if (this.gpu.isLost) throw e;
      this.refusal = e instanceof Error ? e.message : String(e);
      moves.leave();
    }
  }
}
