// sessions - several conversations on one model within a bound: the least recently used one gives its memory back.
//
// A session is a list of tokens; a conversation holds what was computed of them. One that gave it back is computed
// again when it is used, so a session never breaks, it only gets slower. Knows no requests and no queue: the caller
// lets one act at a time.

import { BezelError } from './errors.js';
import type { Conversation, Model } from './model.js';

/** The session of requests that name none, or the first of those that such requests share. */
export const DEFAULT = '';

export interface SessionLimits {
  /** Conversations that hold computed tokens at a time. */
  count: number;
  /** Bytes of model and conversations together. */
  bytes: number;
  /** Sessions for requests that name none; absent: one, which keeps the last conversation. */
  shared?: number;
}

interface Session {
  conversation: Conversation | undefined;
  /** Where there is no conversation: what it held. */
  tokens: Int32Array;
  /** Which adapters computed it. */
  adapters: string;
  used: number;
}

function commonLength(a: Int32Array, b: Int32Array): number {
  const n = Math.min(a.length, b.length);
  let i = 0;
  while (i < n && a[i] === b[i]) i++;
  return i;
}

const isFull = (e: unknown): boolean => e instanceof BezelError && ['memory', 'limit', 'device'].includes(e.kind);

export class Sessions {
  private readonly all = new Map<string, Session>();
  private clock = 0;

  constructor(private readonly model: Model, private readonly limits: SessionLimits) {}

  private get(id: string): Session {
    const found = this.all.get(id) ?? { conversation: undefined, tokens: new Int32Array(0), adapters: '', used: 0 };
    this.all.set(id, found);
    found.used = ++this.clock;
    return found;
  }

  private get live(): Session[] {
    return [...this.all.values()].filter((s) => s.conversation).sort((a, b) => a.used - b.used);
  }

  private park(s: Session): void {
    s.tokens = s.conversation?.tokens ?? s.tokens;
    s.conversation?.close();
    s.conversation = undefined;
  }

  private get bytes(): number {
    const { weights, cache, scratch } = this.model.memory;
    return weights + cache + scratch;
  }

  /** A conversation of its own, for which others make room. */
  async open(context?: number): Promise<Conversation> {
    const others = this.live;
    for (let n = others.length; n >= this.limits.count; n--) this.park(others.shift() as Session);
    for (;;) {
      try {
        const made = await this.model.conversation(context);
        while (this.bytes > this.limits.bytes && others.length) this.park(others.shift() as Session);
        return made;
      } catch (e) {
        const oldest = others.shift();
        if (!oldest || !isFull(e)) throw e;
        this.park(oldest);
      }
    }
  }

  /** The conversation of a session, ready to be set. What other adapters computed is not kept. */
  async take(id: string, adapters: string): Promise<Conversation> {
    const s = this.get(id);
    if (s.conversation && s.adapters !== adapters) s.conversation.truncate(0);
    s.conversation ??= await this.open();
    s.adapters = adapters;
    return s.conversation;
  }

  /** The same, holding the session's own tokens. */
  async resume(id: string, adapters: string, signal: AbortSignal): Promise<Conversation> {
    const tokens = this.tokens(id), conversation = await this.take(id, adapters);
    if (conversation.length !== tokens.length) await conversation.set(tokens, { signal });
    return conversation;
  }

  /** The session for a prompt that names none: the one that goes on with it, or was asked the like before, where at least
   *  half of what it holds can be kept; else a fresh one, or the least recently used. */
  match(ids: Int32Array, adapters: string): string {
    const { shared = 1 } = this.limits;
    if (shared === 1) return DEFAULT;
    const names = Array.from({ length: shared }, (_, i) => (i ? `${DEFAULT}#${i}` : DEFAULT));
    let best = '', most = 0, oldest = DEFAULT, age = Infinity;
    for (const name of names) {
      const s = this.all.get(name), held = s?.conversation?.tokens ?? new Int32Array(0);
      const common = s?.adapters === adapters ? commonLength(held, ids) : 0;
      if (2 * common >= held.length && common > most) [best, most] = [name, common];
      const used = held.length ? (s?.used ?? 0) : 0; // one that holds nothing comes first
      if (used < age) [oldest, age] = [name, used];
    }
    return most ? best : oldest;
  }

  tokens(id: string): Int32Array {
    const s = this.all.get(id);
    return s?.conversation?.tokens ?? s?.tokens ?? new Int32Array(0);
  }

  /** Forget tokens past n. */
  truncate(id: string, n: number): number {
    const s = this.get(id);
    const keep = Math.min(n, this.tokens(id).length);
    if (!s.conversation) s.tokens = s.tokens.slice(0, keep);
    else {
      const tokens = s.conversation.tokens.slice(0, keep);
      // A window that has moved on cannot go back: then the tokens are computed again when they are needed.
      if (s.conversation.truncate(keep) !== keep) {
        this.park(s);
        s.tokens = tokens;
      }
    }
    return keep;
  }

  close(id: string): void {
    this.all.get(id)?.conversation?.close();
    this.all.delete(id);
  }

  closeAll(): void {
    for (const id of [...this.all.keys()]) this.close(id);
  }
}
