// gpu_table - objects by number: the core knows no others.

/** Things known by number; 0 is none, and numbers of what was freed are used again. */
export class Table<T> {
  private readonly items: (T | undefined)[] = [undefined];
  private readonly gaps: number[] = [];

  add(item: T): number {
    const at = this.gaps.pop() ?? this.items.length;
    this.items[at] = item;
    return at;
  }

  get(at: number): T {
    const item = this.items[at];
    if (item === undefined) throw new Error(`no object number ${at}`);
    return item;
  }

  remove(at: number): T | undefined {
    const item = this.items[at];
    if (item === undefined) return undefined;
    this.items[at] = undefined;
    this.gaps.push(at);
    return item;
  }

  *all(): Generator<T> {
    for (const item of this.items) if (item !== undefined) yield item;
  }

  clear(): void {
    this.items.length = 1;
    this.gaps.length = 0;
  }
}
