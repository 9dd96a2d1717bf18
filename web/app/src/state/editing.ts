// editing - which words of an answer a person wants written again, by a diffusion model.

import { computed, effect, signal } from '@preact/signals';
import { sourceRange } from '../lib/selection';
import { conversation, path } from './chat';
import { engineState } from './engine';

export interface Editing {
  message: string;
  /** In the message's content. */
  from: number;
  to: number;
}

/** null: nobody does. */
export const editing = signal<Editing | null>(null);

export const stopEditing = (): void => void (editing.value = null);

// another conversation has other messages
effect(() => {
  void conversation.value?.id;
  editing.value = null;
});

/** Whether the model can write in the middle of a text. */
export const canEdit = computed(() =>
  engineState.value.kind === 'ready' && engineState.value.engine.info.n_canvas > 0);

/** Words selected in what is shown of an answer, and where on the screen they end. */
export interface Selected extends Editing {
  x: number;
  y: number;
}
export const selected = signal<Selected | null>(null);

/** What is selected now, where it is words of one answer. */
function lookAtSelection(): Selected | null {
  const selection = getSelection();
  if (!canEdit.peek() || !selection?.rangeCount || selection.isCollapsed) return null;
  const range = selection.getRangeAt(0);
  const inside = (node: Node) =>
    (node instanceof Element ? node : node.parentElement)?.closest<HTMLElement>('[data-content]');
  const element = inside(range.startContainer);
  if (!element || element !== inside(range.endContainer)) return null;
  const message = path.peek().find((m) => m.id === element.dataset['content']);
  if (!message || message.state === 'streaming') return null;
  const before = document.createRange();
  before.setStart(element, 0);
  before.setEnd(range.startContainer, range.startOffset);
  const found = sourceRange(message.content, before.toString(), range.toString());
  const box = [...range.getClientRects()].at(-1);
  if (!found || !box) return null;
  return { message: message.id, from: found[0], to: found[1], x: box.right, y: box.bottom };
}

document.addEventListener('selectionchange', () => {
  const now = canEdit.peek() ? lookAtSelection() : null;
  if (now || selected.peek()) selected.value = now;
});
