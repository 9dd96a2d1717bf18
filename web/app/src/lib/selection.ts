// selection - which words of a text a person selected in what the page made of it.

/** Where the n-th place of these words begins, from 0; -1: there are not so many. */
function nth(text: string, words: string, n: number): number {
  let at = -1;
  for (let i = 0; i <= n; i++) {
    at = text.indexOf(words, at + 1);
    if (at < 0) return -1;
  }
  return at;
}

/** From where to where in the source the words are that are selected in its rendering: `before` is
 *  what is rendered before them. Markup has no place there, so the words are looked for, and
 *  counted where there are several. Undefined: they are not in the source as they are. */
export function sourceRange(
  source: string, before: string, words: string,
): [from: number, to: number] | undefined {
  const wanted = words.trim();
  if (!wanted) return undefined;
  const all = before + words, place = before.length + words.indexOf(wanted);
  let earlier = 0;
  for (let at = all.indexOf(wanted); at >= 0 && at < place; at = all.indexOf(wanted, at + 1))
    earlier++;
  const from = nth(source, wanted, earlier);
  return from < 0 ? undefined : [from, from + wanted.length];
}
