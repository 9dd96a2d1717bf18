// drafts - what was typed and not sent, per conversation. Written with every key: it is there even
// when the tab dies in the next moment.

import { signal } from '@preact/signals';
import { local } from '../lib/local';

/** What the composer shows. */
export const draft = signal('');

const keyOf = (conversation: string | null) => `bezel.draft.${conversation ?? 'new'}`;

export const readDraft = (conversation: string | null): string =>
  local.get(keyOf(conversation)) ?? '';

export function writeDraft(conversation: string | null, text: string): void {
  if (text) local.set(keyOf(conversation), text);
  else local.remove(keyOf(conversation));
}

/** Put text into the composer of a conversation that is open. */
export function setDraft(conversation: string | null, text: string): void {
  draft.value = text;
  writeDraft(conversation, text);
}
