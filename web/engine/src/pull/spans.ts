// spans - which bytes of a file are there: stretches [from, to), sorted, that neither meet nor
// overlap.

export type Span = readonly [from: number, to: number];

export class Spans {
  private constructor(private list: Span[]) {}

  static none(): Spans {
    return new Spans([]);
  }

  /** What a journal says; undefined where that makes no sense for a file of this size. */
  static from(value: unknown, size: number): Spans | undefined {
    if (!Array.isArray(value)) return undefined;
    let last = -1;
    for (const span of value as unknown[]) {
      const [from, to] = Array.isArray(span) && span.length === 2 ? (span as unknown[]) : [];
      if (!Number.isSafeInteger(from) || !Number.isSafeInteger(to)) return undefined;
      if ((from as number) <= last || (to as number) <= (from as number)) return undefined;
      last = to as number;
    }
    return last > size ? undefined : new Spans(value as Span[]);
  }

  add(from: number, to: number): void {
    if (to <= from) return;
    const before = this.list.filter((s) => s[1] < from), after = this.list.filter((s) => s[0] > to);
    const met = this.list.slice(before.length, this.list.length - after.length);
    const start = Math.min(from, ...met.map((s) => s[0]));
    const end = Math.max(to, ...met.map((s) => s[1]));
    this.list = [...before, [start, end], ...after];
  }

  get bytes(): number {
    return this.list.reduce((n, [from, to]) => n + to - from, 0);
  }

  /** Bytes from the beginning on without a gap. */
  get front(): number {
    const [first] = this.list;
    return first?.[0] === 0 ? first[1] : 0;
  }

  /** What is missing of a file of this size, in pieces of at most `most` bytes. */
  gaps(size: number, most = Infinity): Span[] {
    const gaps: Span[] = [];
    let at = 0;
    for (const [from, to] of [...this.list, [size, size] as const]) {
      for (; at < from; at = Math.min(from, at + most)) gaps.push([at, Math.min(from, at + most)]);
      at = Math.max(at, to);
    }
    return gaps;
  }

  /** As a journal keeps them. */
  toJSON(): Span[] {
    return this.list;
  }
}
