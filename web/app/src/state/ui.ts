// ui - which passing things are open: the drawer, a dialog.

import { signal } from '@preact/signals';

export const drawer = signal(false);
export const dialog = signal<'none' | 'conversation' | 'help' | 'reset'>('none');

/** The composer, for whoever wants to put the cursor there. */
export const focusComposer = () => document.getElementById('composer')?.focus();
export const focusSearch = () => document.getElementById('search')?.focus();

/** Phones show the sidebar as a drawer over the page. */
export const isNarrow = () => matchMedia('(max-width: 52rem)').matches;
