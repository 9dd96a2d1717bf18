// sessions - several conversations on one model within a bound: the least recently used one gives
// its memory back.
//
// A session is a list of tokens; a conversation holds what was computed of them. One that gave it
// back is computed again when it is used, so a session never breaks, it only gets slower. What a
// client of a server had computed is for that client alone. Knows no requests and no queue: the
// caller lets one act at a time, and claims those that are at work.

import { BezelError } from '../api/errors.js';
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
  /** For whom it was computed. */
  scope: string;
  used: number;
  /** An answer is being made in it. */
  busy: boolean;
}

/** Which session an answer wants. */
export interface Wish {
  /** Its name; absent: whichever suits. */
  session: string | undefined;
  /** Whose it is: what others had computed is not touched. */
  scope: string;
  /** The prompt; none where the session is named. */
  ids: Int32Array;
  adapters: string;
}

const KEPT = 4; // beyond so many, another is opened only for an answer that would have to wait
const ROOM = 2 ** 30; // bytes that they may take then; or as many as the weights do

function commonLength(a: Int32Array, b: Int32Array): number {
  const n = Math.min(a.length, b.length);
  let i = 0;
  while (i < n && a[i] === b[i]) i++;
  return i;
}

const isFull = (e: unknown): boolean =>
  e instanceof BezelError && ['memory', 'limit', 'device'].includes(e.kind);

export class Sessions {
  private readonly all = new Map<string, Session>();
  private clock = 0;
  private most: number; // answers at a time

  constructor(private readonly model: Model, private readonly limits: SessionLimits) {
    this.most = limits.count;
  }

  private get(id: string): Session {
    const found = this.all.get(id) ?? {
      conversation: undefined, tokens: new Int32Array(0), adapters: '', scope: '', used: 0,
      busy: false,
    };
    this.all.set(id, found);
    found.used = ++this.clock;
    return found;
  }

  private get live(): Session[] {
    return [...this.all.values()].filter((s) => s.conversation).sort((a, b) => a.used - b.used);
  }

  private get busy(): number {
    let n = 0;
    for (const s of this.all.values()) n += +s.busy;
    return n;
  }

  /** Another client's tokens are nobody's to go on from. */
  private park(s: Session): void {
    s.tokens = s.scope ? new Int32Array(0) : (s.conversation?.tokens ?? s.tokens);
    s.conversation?.close();
    s.conversation = undefined;
  }

  private get bytes(): number {
    const { weights, cache, scratch } = this.model.memory;
    return weights + cache + scratch;
  }

  /** A conversation of its own, for which others make room. */
  async open(context?: number): Promise<Conversation> {
    const live = this.live, others = live.filter((s) => !s.busy);
    for (let n = live.length; n >= this.limits.count && others.length; n--)
      this.park(others.shift() as Session);
    for (;;) {
      try {
        const made = await this.model.conversation(context);
        while (this.bytes > this.limits.bytes && others.length)
          this.park(others.shift() as Session);
        return made;
      } catch (e) {
        const oldest = others.shift();
        if (!oldest || !isFull(e)) throw e;
        this.park(oldest);
      }
    }
  }

  /** The conversation of a session, ready to be set. What other adapters computed is not kept,
   *  nor what another client's was. */
  async take(id: string, adapters: string, scope = ''): Promise<Conversation> {
    const s = this.get(id);
    if (s.scope !== scope) s.tokens = new Int32Array(0);
    if (s.conversation && (s.adapters !== adapters || s.scope !== scope))
      s.conversation.truncate(0);
    s.conversation ??= await this.open();
    s.adapters = adapters;
    s.scope = scope;
    return s.conversation;
  }

  /** The session that an answer will be made in, which is its own until it is released; undefined
   *  where it has to wait for one that is at work. Where none is, none has to. */
  claim(wish: Wish): string | undefined {
    if (this.busy >= this.most) return undefined;
    const id = wish.session ?? this.match(wish);
    if (id === undefined || this.all.get(id)?.busy) return undefined;
    this.get(id).busy = true;
    return id;
  }

  release(id: string): void {
    const s = this.all.get(id);
    if (s) s.busy = false;
    if (!this.busy) this.most = this.limits.count; // what was short of memory then need not be now
  }

  /** A session could not be opened since those at work take the room: until all of them are done,
   *  not more are at work at a time. */
  isCrowded(e: unknown): boolean {
    if (!(e instanceof BezelError && e.kind === 'memory') || !this.busy) return false;
    this.most = this.busy;
    return true;
  }

  /** Is there room for another conversation beside those that are at work? */
  private get roomy(): boolean {
    const { weights, cache, scratch } = this.model.memory, n = this.live.length;
    return n < KEPT || ((cache + scratch) / n) * (n + 1) <= Math.max(ROOM, weights);
  }

  /** The same, holding the session's own tokens. */
  async resume(id: string, adapters: string, signal: AbortSignal): Promise<Conversation> {
    const tokens = this.tokens(id), conversation = await this.take(id, adapters);
    if (conversation.length !== tokens.length) await conversation.set(tokens, { signal });
    return conversation;
  }

  /** The session for a prompt that names none: the one that goes on with it, or was asked the like
   *  before, where at least half of what it holds can be kept; else a fresh one, or the least
   *  recently used. Those at work are passed over. */
  private match({ ids, adapters, scope }: Wish): string | undefined {
    const { shared = 1 } = this.limits;
    if (shared === 1) return DEFAULT;
    let best: string | undefined, most = 0, oldest: string | undefined, age = Infinity;
    let fresh: string | undefined, live = 0;
    for (let i = 0; i < shared; i++) {
      const name = i ? `${DEFAULT}#${i}` : DEFAULT, s = this.all.get(name);
      live += +!!s?.conversation;
      if (s?.busy) continue;
      if (!s?.conversation) {
        fresh ??= name;
        continue;
      }
      const held = s.conversation.tokens;
      const common = s.adapters === adapters && s.scope === scope ? commonLength(held, ids) : 0;
      if (2 * common >= held.length && common > most) [best, most] = [name, common];
      const used = held.length ? s.used : 0; // one that holds nothing comes first
      if (used < age) [oldest, age] = [name, used];
    }
    if (best !== undefined) return best;
    if (oldest !== undefined && (live >= KEPT || !age)) return oldest;
    return fresh !== undefined && (this.roomy || !this.busy) ? fresh : oldest;
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
      // A window that has moved on cannot go back: then the tokens are computed again when they are
      // needed.
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
