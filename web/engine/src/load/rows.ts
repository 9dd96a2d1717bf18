// rows - rows of the per-layer embedding table, as long as it is in the file: read for each step,
// decoded by the core.

import type { Source } from './source.js';
import { readHostTable, type SessionPtr } from '../engine/boundary.js';
import type { Core } from '../engine/wasm.js';

const READS = 16; // rows being read at a time
const AT_ONCE = 64; // rows in the module's memory

export class Rows {
  private constructor(
    private readonly core: Core, private readonly source: Source, private readonly offset: number,
    private readonly rowBytes: number, private readonly count: number,
  ) {}

  /** Of the table whose place the core has just shown. */
  static of(core: Core, sources: ReadonlyMap<number, Source>): Rows {
    const table = readHostTable(core.result().buffer), source = sources.get(table.source);
    if (!source) throw new Error('the core asks for a source that is not there');
    return new Rows(core, source, table.offset, table.rowBytes, table.nRows);
  }

  /** The rows of these tokens, in order, for the session's next step. */
  async gather(session: SessionPtr, ids: Int32Array): Promise<void> {
    const rows = await this.read(new Set(ids));
    for (let at = 0; at < ids.length; at += AT_ONCE) {
      const some = ids.subarray(at, at + AT_ONCE);
      const bytes = new Uint8Array(some.length * this.rowBytes);
      some.forEach((id, i) => bytes.set(rows.get(id) as Uint8Array, i * this.rowBytes));
      this.core.with(
        bytes,
        (p) => this.core.checkNumber(
          this.core.exports.bz_wasm_gpu_table_rows(session, at, some.length, p),
        ),
      );
    }
    // now: after a fault nothing is written, and whoever is to blame may take it
    this.core.gpu?.check();
  }

  /** Each row once. */
  private async read(ids: ReadonlySet<number>): Promise<Map<number, Uint8Array>> {
    const rows = new Map<number, Uint8Array>(), left = ids.values();
    const reader = async (): Promise<void> => {
      for (const id of left) {
        const row = new Uint8Array(this.rowBytes);
        // What is no token has no row; the step will say so.
        if (id >= 0 && id < this.count)
          await this.source.readAsync(this.offset + id * this.rowBytes, row);
        rows.set(id, row);
      }
    };
    await Promise.all(Array.from({ length: Math.min(READS, ids.size) }, reader));
    return rows;
  }
}
