// tree - messages as a tree: every edit and every new attempt is a sibling, and nothing is overwritten.

import type { Message } from './types';

const byTime = (a: Message, b: Message) => a.created - b.created || (a.id < b.id ? -1 : 1);

export function childrenOf(messages: readonly Message[], parent: string | null): Message[] {
  return messages.filter((m) => m.parent === parent).sort(byTime);
}

/** From the first message to `leaf`. */
export function pathTo(messages: readonly Message[], leaf: string | null): Message[] {
  const byId = new Map(messages.map((m) => [m.id, m]));
  const path: Message[] = [];
  for (let at = leaf ? byId.get(leaf) : undefined; at; at = at.parent ? byId.get(at.parent) : undefined) {
    if (path.includes(at)) break; // an imported file may hold a circle
    path.push(at);
  }
  return path.reverse();
}

/** Follow the newest child down to an end. */
export function newestLeaf(messages: readonly Message[], from: string | null): string | null {
  let at = from;
  for (const seen = new Set<string | null>(); !seen.has(at); ) {
    seen.add(at);
    at = childrenOf(messages, at).at(-1)?.id ?? at;
  }
  return at;
}

export interface Place {
  /** Which of its siblings a message is, from 0. */
  index: number;
  siblings: Message[];
}

export function placeOf(messages: readonly Message[], message: Message): Place {
  const siblings = childrenOf(messages, message.parent);
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
