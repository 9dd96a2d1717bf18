// ui - which passing things are open: the drawer, a dialog.

import { signal } from '@preact/signals';

export const drawer = signal(false);
export const dialog = signal<'none' | 'conversation' | 'help' | 'reset'>('none');

/** What cannot be undone is asked about first. */
export interface Question {
  title: string;
  text: string;
  /** What the button that does it says. */
  verb: string;
  run(): Promise<void>;
}
export const question = signal<Question | null>(null);

/** At once where the field is on the page, so that the next key is not lost; else when it has
 *  been drawn. */
function focusOn(id: string): void {
  const focus = () => document.getElementById(id)?.focus();
  focus();
  // a second time would take it from whatever has it by then
  if (document.activeElement?.id !== id) requestAnimationFrame(focus);
}
/** Whether a field that is given the focus would bring up a keyboard over half of the page. */
export const isTouch = () => matchMedia('(hover: none) and (pointer: coarse)').matches;
export const focusComposer = () => {
  if (!isTouch()) focusOn('composer');
};
export const focusSearch = () => focusOn('search');

/** Phones show the sidebar as a drawer over the page. */
export const isNarrow = () => matchMedia('(max-width: 52rem)').matches;
