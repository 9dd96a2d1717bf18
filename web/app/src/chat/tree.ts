// tree - messages as a tree: every edit and every new attempt is a sibling, and nothing is
// overwritten.

import type { Message } from './types';

const byTime = (a: Message, b: Message) => a.created - b.created || (a.id < b.id ? -1 : 1);

type Families = Map<string | null, Message[]>;

/** Of lists that were asked about: every message on screen asks, and a list never changes,
 *  another takes its place. */
const sorted = new WeakMap<readonly Message[], Families>();

function familiesOf(messages: readonly Message[]): Families {
  const families: Families = new Map();
  for (const m of messages) {
    const family = families.get(m.parent);
    if (family) family.push(m);
    else families.set(m.parent, [m]);
  }
  for (const family of families.values()) family.sort(byTime);
  sorted.set(messages, families);
  return families;
}

/** From the first message to `leaf`. A circle, which a damaged file may hold, is walked once. */
export function pathTo(messages: readonly Message[], leaf: string | null): Message[] {
  const byId = new Map(messages.map((m) => [m.id, m]));
  const path = new Set<Message>();
  for (
    let at = leaf ? byId.get(leaf) : undefined;
    at && !path.has(at);
    at = at.parent ? byId.get(at.parent) : undefined
  ) path.add(at);
  return [...path].reverse();
}

/** Follow the newest child down to an end. */
export function newestLeaf(messages: readonly Message[], from: string | null): string | null {
  const newest = new Map<string | null, Message>();
  for (const m of messages) {
    const known = newest.get(m.parent);
    if (!known || byTime(known, m) < 0) newest.set(m.parent, m);
  }
  let at = from;
  for (const seen = new Set<string | null>(); !seen.has(at); ) {
    seen.add(at);
    at = newest.get(at)?.id ?? at;
  }
  return at;
}

/** The parent of each message, by its id; null where it is missing or where following it leads
 *  round in a circle. */
export function parentsWithoutCircles(messages: readonly Message[]): Map<string, string | null> {
  const parents = new Map(messages.map((m) => [m.id, m.parent]));
  for (const [id, parent] of parents)
    if (parent !== null && !parents.has(parent)) parents.set(id, null);
  const safe = new Set<string | null>([null]); // these lead to a beginning
  for (const { id } of messages) {
    const walked = new Set<string>();
    for (let at: string | null = id; at !== null && !safe.has(at); ) {
      walked.add(at);
      const parent: string | null = parents.get(at) ?? null;
      if (parent !== null && walked.has(parent)) parents.set(at, null);
      at = parents.get(at) ?? null;
    }
    for (const one of walked) safe.add(one);
  }
  return parents;
}

export interface Place {
  /** Which of its siblings a message is, from 0. */
  index: number;
  siblings: readonly Message[];
}

export function placeOf(messages: readonly Message[], message: Message): Place {
  const siblings = (sorted.get(messages) ?? familiesOf(messages)).get(message.parent) ?? [];
  return { index: siblings.findIndex((m) => m.id === message.id), siblings };
}

/** One turn on screen: a question, or an answer with the tool calls that led to it. */
export interface Turn {
  role: 'user' | 'assistant';
  messages: Message[];
}

export function turns(path: readonly Message[]): Turn[] {
  const out: Turn[] = [];
  for (const message of path) {
    const last = out.at(-1);
    if (message.role === 'user') out.push({ role: 'user', messages: [message] });
    else if (last?.role === 'assistant') last.messages.push(message);
    else out.push({ role: 'assistant', messages: [message] });
  }
  return out;
}
