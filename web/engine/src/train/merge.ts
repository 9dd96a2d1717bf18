// merge - a model with an adapter added into its weights, as the bytes of a new GGUF file.
//
// The core says which bytes of the model it wants next and what becomes of them; here they are read
// ahead and handed on. Neither file is ever in memory as a whole: the module holds the model's
// metadata, the adapter and one window.

import { openWithFetches, type Source } from '../load/source.js';
import { openIntact, openSources } from '../store/open_sources.js';
import type { SourceRef } from '../store/source_ref.js';
import { readHostWindow, type Bytes, type MergePtr } from '../engine/boundary.js';
import { Core, loadWasm } from '../engine/wasm.js';

const READS = 4; // windows being read
const PAUSE = 50; // milliseconds after which a worker listens to what it is told

/** GGUF, or PEFT's weights with the text of adapter_config.json. */
export interface MergeAdapter {
  source: Source;
  config?: string;
  /** Its strength; default 1. */
  scale?: number;
}

/** Where both are, as plain data. */
export interface MergeFrom {
  model: { sources: SourceRef[] };
  adapter: { source: SourceRef; config?: string; scale?: number };
}

/** Bytes of the new file that are written, and of how many. */
export interface MergeProgress {
  loaded: number;
  total: number;
}

export class Merge {
  /** Bytes of the new file. */
  readonly size: number;
  /** Tensors that the adapter changes. */
  readonly changed: number;
  private room = 0 as Bytes; // of one window, in the module
  private roomBytes = 0;

  private constructor(
    private readonly core: Core,
    private ptr: MergePtr,
    private readonly sources: ReadonlyMap<number, Source>,
  ) {
    this.size = core.exports.bz_wasm_merge_bytes(ptr);
    this.changed = core.exports.bz_wasm_merge_changed(ptr);
  }

  /** Several sources are the shards of one model. Sources stay the caller's, and must outlive
   *  it. */
  static open(
    core: Core,
    sources: readonly Source[],
    { source, config, scale }: MergeAdapter,
    signal?: AbortSignal,
  ): Promise<Merge> {
    return openWithFetches(() => {
      const known = new Map(sources.map((s) => [core.addSource(s), s]));
      const describe = (id: number, { name, size }: Source): object => ({ id, name, size });
      try {
        const ptr = core.withSource(source, (id) => {
          const adapter = { source: describe(id, source), ...(config !== undefined && { config }) };
          const json = JSON.stringify({
            sources: Array.from(known, ([k, s]) => describe(k, s)),
            adapter,
            ...(scale !== undefined && { scale }),
          });
          return core.with(json, (p, n) => core.check(core.exports.bz_wasm_merge_open(p, n)));
        });
        return new Merge(core, ptr, known);
      } catch (e) {
        for (const id of known.keys()) core.removeSource(id);
        throw e;
      }
    }, signal);
  }

  close(): void {
    if (!this.ptr) return;
    this.core.exports.bz_wasm_merge_close(this.ptr);
    this.core.exports.bz_wasm_free(this.room);
    for (const id of this.sources.keys()) this.core.removeSource(id);
    this.ptr = 0 as MergePtr;
  }

  /** Begin the next read; undefined when all is read. */
  private read(): { bytes: Uint8Array; done: Promise<void> } | undefined {
    if (!this.core.exports.bz_wasm_merge_next(this.ptr)) return undefined;
    const window = readHostWindow(this.core.result().buffer);
    const source = this.sources.get(window.source);
    if (!source) throw new Error('the core asks for a source that is not there');
    const bytes = new Uint8Array(window.nBytes), done = source.readAsync(window.offset, bytes);
    done.catch(() => {}); // heard when its turn comes, or not at all after a failure
    return { bytes, done };
  }

  /** A window's bytes into the module; how the new file goes on. */
  private give(bytes: Uint8Array): Uint8Array {
    const x = this.core.exports;
    if (bytes.length > this.roomBytes) {
      const larger = this.core.check(x.bz_wasm_alloc(bytes.length));
      x.bz_wasm_free(this.room);
      this.room = larger;
      this.roomBytes = bytes.length;
    }
    new Uint8Array(this.core.memory.buffer, this.room, bytes.length).set(bytes);
    this.core.checkNumber(x.bz_wasm_merge_give(this.ptr, this.room));
    return this.core.result();
  }

  /** The new file from its first byte to its last, once. */
  async *pieces(signal?: AbortSignal): AsyncGenerator<Uint8Array, void, void> {
    const ahead: { bytes: Uint8Array; done: Promise<void> }[] = [];
    const fill = (): void => {
      for (let next = ahead.length < READS
        ? this.read()
        : undefined; next; next = ahead.length < READS ? this.read() : undefined)
        ahead.push(next);
    };
    let heard = performance.now();
    fill();
    for (let next = ahead.shift(); next; next = ahead.shift()) {
      await next.done;
      signal?.throwIfAborted();
      const piece = this.give(next.bytes);
      fill();
      if (piece.length) yield piece;
      if (performance.now() - heard < PAUSE) continue;
      await new Promise((over) => setTimeout(over)); // let messages in
      heard = performance.now();
    }
    signal?.throwIfAborted();
    for (const source of this.sources.values()) source.check?.();
    this.core.checkNumber(this.core.exports.bz_wasm_merge_end(this.ptr));
    const rest = this.core.result();
    if (rest.length) yield rest;
  }
}

/** Do something with a merge in a module of its own, whose memory goes with it. */
export async function withMerge<T>(
  { model, adapter: { source: ref, ...wish } }: MergeFrom,
  signal: AbortSignal | undefined,
  act: (merge: Merge) => Promise<T>,
): Promise<T> {
  const core = await Core.load(await loadWasm());
  const options = { whole: true, ...(signal && { signal }) };
  const opened = await openSources(core, model.sources, { ...options, intact: 'the model' });
  let merge: Merge | undefined;
  try {
    const source = await openIntact(core, ref, { ...options, intact: 'the adapter' });
    opened.push(source);
    merge = await Merge.open(core, opened.slice(0, -1), { source, ...wish }, signal);
    return await act(merge);
  } finally {
    merge?.close();
    for (const source of opened) source.close();
  }
}
