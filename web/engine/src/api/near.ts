// near - the word that was probably meant, for errors that name an unknown option.

const MAX_LENGTH = 40; // a longer word is no slip of the pen

/** Letters that differ: the least number of insertions, deletions and replacements
 *  (Levenshtein). */
function distance(a: string, b: string): number {
  let row = Array.from({ length: b.length + 1 }, (_, j) => j);
  for (let i = 1; i <= a.length; i++) {
    const next = [i];
    for (let j = 1; j <= b.length; j++) {
      const replaced = (row[j - 1] as number) + (a[i - 1] === b[j - 1] ? 0 : 1);
      next.push(Math.min(replaced, (row[j] as number) + 1, (next[j - 1] as number) + 1));
    }
    row = next;
  }
  return row[b.length] as number;
}

const plain = (word: string): string => word.toLowerCase().replace(/[-_]/g, '');

/** The known word that differs in case, in its hyphens, or in a letter or two. */
export function nearest(word: string, known: Iterable<string>): string | undefined {
  if (word.length > MAX_LENGTH) return undefined;
  let best: string | undefined, least = Math.min(3, plain(word).length / 2);
  for (const candidate of known) {
    const d = distance(plain(word), plain(candidate));
    if (d < least) [best, least] = [candidate, d];
  }
  return best;
}

/** '; did you mean "context"?', or nothing. */
export function hint(word: string, known: Iterable<string>): string {
  const meant = nearest(word, known);
  return meant === undefined ? '' : `; did you mean "${meant}"?`;
}
