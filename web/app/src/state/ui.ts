// ui - which passing things are open: the drawer, a dialog.

import { signal } from '@preact/signals';

export const drawer = signal(false);
export const dialog = signal<'none' | 'conversation' | 'help' | 'reset'>('none');

/** At once where the field is on the page, so that the next key is not lost; else when it has been drawn. */
function focusOn(id: string): void {
  const focus = () => document.getElementById(id)?.focus();
  focus();
  requestAnimationFrame(focus);
}
export const focusComposer = () => focusOn('composer');
export const focusSearch = () => focusOn('search');

/** Phones show the sidebar as a drawer over the page. */
export const isNarrow = () => matchMedia('(max-width: 52rem)').matches;
