// drafts - what was typed and not sent, per conversation. Written with every key, hence localStorage: it is there
// even when the tab dies in the next moment.

import { signal } from '@preact/signals';

/** What the composer shows. */
export const draft = signal('');

const keyOf = (conversation: string | null) => `bezel.draft.${conversation ?? 'new'}`;

export const readDraft = (conversation: string | null): string => localStorage.getItem(keyOf(conversation)) ?? '';

export function writeDraft(conversation: string | null, text: string): void {
  if (text) localStorage.setItem(keyOf(conversation), text);
  else localStorage.removeItem(keyOf(conversation));
}

/** Put text into the composer of a conversation that is open. */
export function setDraft(conversation: string | null, text: string): void {
  draft.value = text;
  writeDraft(conversation, text);
}
