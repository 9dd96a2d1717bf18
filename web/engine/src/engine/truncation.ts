// truncation - a conversation without its oldest messages, where it is longer than the context.
//
// What Ollama keeps is kept: every system message and the last message. Beyond that a conversation
// begins with a question where it can, and never with the result of a tool whose call is gone.

interface Message {
  readonly role?: unknown;
}

const isSystem = (m: Message): boolean => m.role === 'system' || m.role === 'developer';

/** The messages of which as few as possible were dropped so that they fit; undefined where even
 *  the last alone does not. */
export function dropOldest<M extends Message>(
  messages: readonly M[], fits: (messages: readonly M[]) => boolean,
): readonly M[] | undefined {
  const search = cutting(messages);
  let step = search.next();
  while (!step.done) step = search.next(fits(step.value));
  return step.value;
}

/** The same for who has other things to do between two tries: gives what is to be tried, and is
 *  told whether it fits. That is a few times only, since a conversation that lost more is never
 *  longer. */
export function* cutting<M extends Message>(
  messages: readonly M[],
): Generator<readonly M[], readonly M[] | undefined, boolean> {
  if (yield messages) return messages;
  const from = (at: number): M[] => messages.filter((m, i) => i >= at || isSystem(m));
  const starts = (role: (m: M, last: boolean) => boolean): number[] => messages.flatMap((m, i) =>
    (i > 0 && !isSystem(m) && role(m, i + 1 === messages.length) ? [i] : []));
  for (const cuts of [
    starts((m) => m.role === 'user'), starts((m, last) => m.role !== 'tool' || last),
  ]) {
    let low = 0, high = cuts.length; // the first cut that fits is one of these
    while (low < high) {
      const middle = (low + high) >> 1;
      if (yield from(cuts[middle] as number)) high = middle;
      else low = middle + 1;
    }
    if (low < cuts.length) return from(cuts[low] as number);
  }
  return undefined;
}
