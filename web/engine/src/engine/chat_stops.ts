// chat_stops - stop strings of a chat: they end the answer where its content has one. Thoughts and
// tool calls are no content, so a string that they hold ends nothing.

/** How many characters at the end of a text could be the beginning of a string, but not all of
 *  it. */
function overlap(text: string, stop: string): number {
  for (let k = Math.min(stop.length - 1, text.length); k > 0; k--)
    if (text.endsWith(stop.slice(0, k))) return k;
  return 0;
}

export class ChatStops {
  /** One was met: nothing of what follows counts. */
  met = false;
  private held = '';

  constructor(private readonly strings: readonly string[]) {}

  /** Where the string begins that is complete first; of several that end together, the longest.
   *  -1: there is none. */
  private find(text: string): number {
    let best = -1, bestEnd = Infinity;
    for (const s of this.strings) {
      const at = text.indexOf(s), end = at + s.length;
      if (at < 0 || end > bestEnd || (end === bestEnd && at > best)) continue;
      best = at;
      bestEnd = end;
    }
    return best;
  }

  /** The part of the next piece of content, and of what was held back, that is certain. */
  feed(piece: string): string {
    const text = this.held + piece, at = this.find(text);
    this.met = at >= 0;
    const keep = this.met ? 0 : Math.max(0, ...this.strings.map((s) => overlap(text, s)));
    this.held = text.slice(text.length - keep);
    return this.met ? text.slice(0, at) : text.slice(0, text.length - keep);
  }

  /** No content follows here: what was held back is no stop string. */
  end(): string {
    const text = this.met ? '' : this.held;
    this.held = '';
    return text;
  }
}
