// cpu_model - a model on the CPU, inside the module, as everything above sees a model.
//
// The core computes without a break; here it is called in small bites, and between them other work of the
// thread gets its turn, so that a signal can arrive.

import { CpuEngine, type CpuSession, type Info, type OpenOptions, type Stop } from './cpu_engine.js';
import { Logprobs } from './logprobs.js';
import type { AdapterOptions, Conversation, ConversationOptions, DeviceReport, Memory, Model, Piece } from './model.js';
import type { Source } from './source.js';
import { breathe, stopped } from './turns.js';
import { BezelError, type Core } from './wasm.js';

const BATCH = 32; // tokens of a prompt that are read without a break

const decoder = new TextDecoder('utf-8', { ignoreBOM: true });

export interface CpuModelOptions extends OpenOptions {
  /** Tokens of a conversation that does not say; 0: the core's choice. */
  context?: number;
}

export class CpuModel implements Model {
  readonly device: DeviceReport = { backend: 'cpu', name: 'CPU (WebAssembly)', tier: 'cpu', limits: {}, selfTest: [] };
  private readonly open = new Set<CpuConversation>();

  private constructor(private readonly engine: CpuEngine, private readonly context: number) {}

  /** Several sources are the shards of one model; they stay the caller's, and must outlive the model. */
  static async open(core: Core, sources: readonly Source[], { context = 0, ...options }: CpuModelOptions = {}): Promise<CpuModel> {
    return new CpuModel(CpuEngine.open(core, sources, options), context);
  }

  get info(): Info {
    return this.engine.info;
  }

  get memory(): Memory {
    const memory = { weights: this.info.weight_bytes, cache: 0, scratch: 0 };
    for (const { session } of this.open) {
      memory.cache += session.cacheBytes;
      memory.scratch += this.engine.sessionBytes(session.context, BATCH) - session.cacheBytes;
    }
    return memory;
  }

  tokenize(text: string, options: { bos?: boolean; plain?: boolean } = {}): Int32Array {
    return this.engine.tokenize(text, options);
  }

  detokenize(ids: Int32Array, specials = false): string {
    return decoder.decode(this.engine.detokenize(ids, specials));
  }

  async addAdapter(source: Source, options: AdapterOptions = {}): Promise<number> {
    return this.engine.addAdapter(source, options);
  }

  scaleAdapter(id: number, scale: number): void {
    this.engine.scaleAdapter(id, scale);
  }

  removeAdapter(id: number): void {
    this.engine.removeAdapter(id);
  }

  async conversation(context = this.context): Promise<Conversation> {
    const made: CpuConversation = new CpuConversation(this.engine.session(context, BATCH), this.info.n_vocab, () => this.open.delete(made));
    this.open.add(made);
    return made;
  }

  close(): void {
    for (const one of [...this.open]) one.close();
    this.engine.close();
  }
}

class CpuConversation implements Conversation {
  readonly context: number;
  private busy = false;

  constructor(readonly session: CpuSession, private readonly vocab: number, private readonly closed: () => void) {
    this.context = session.context;
  }

  get tokens(): Int32Array {
    return this.session.tokens;
  }

  get length(): number {
    return this.session.length;
  }

  /** One thing at a time. */
  private begin(): void {
    if (this.busy) throw new BezelError('this conversation is busy', 'argument');
    this.busy = true;
  }

  async set(ids: Int32Array, { signal, onProgress }: { signal?: AbortSignal; onProgress?: (done: number, total: number) => void } = {}): Promise<number> {
    this.begin();
    try {
      const kept = this.session.keep(ids);
      for (let at = kept; at < ids.length;) {
        if (signal?.aborted) throw stopped(signal);
        const end = Math.min(ids.length, at + BATCH);
        this.session.feed(ids.subarray(at, end), end === ids.length ? 1 : 0);
        at = end;
        onProgress?.(at - kept, ids.length - kept);
        await breathe();
      }
      return kept;
    } finally {
      this.busy = false;
    }
  }

  async logits(ids: Int32Array, each: (position: number, row: Float32Array) => void): Promise<void> {
    this.begin();
    try {
      this.session.feed(ids, ids.length, (position, row) => each(position, row));
    } finally {
      this.busy = false;
    }
  }

  async *generate({ signal, logprobs, ahead: _, ...options }: ConversationOptions = {}): AsyncGenerator<Piece, { stop: Stop }, void> {
    this.begin();
    const pieces = this.session.pieces(options);
    try {
      for (;;) {
        if (signal?.aborted) return { stop: 'cancelled' };
        const before = logprobs === undefined ? undefined : this.session.logits;
        const next = pieces.next();
        if (next.done) return { stop: next.value.stop };
        const piece: Piece = next.value;
        if (before && logprobs !== undefined) {
          const all = new Logprobs(before);
          piece.logprob = all.of(piece.id);
          piece.top = all.top(Math.min(logprobs, this.vocab));
        }
        yield piece;
        await breathe();
      }
    } finally {
      pieces.return({ first: 0, count: 0, stop: 'cancelled' });
      this.busy = false;
    }
  }

  truncate(n: number): number {
    return this.session.truncate(n);
  }

  async save(): Promise<Uint8Array> {
    return this.session.save();
  }

  async restore(snapshot: Uint8Array): Promise<void> {
    this.session.restore(snapshot);
  }

  close(): void {
    this.session.close();
    this.closed();
  }
}
