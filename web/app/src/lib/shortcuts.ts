// shortcuts - keys, what they do, and the listener that does it. The help dialog shows this same
// table.

import { startNew } from '../components/Sidebar';
import { busy, busyHere, path, regenerate, stop } from '../state/chat';
import { ready } from '../state/engine';
import { setPrefs } from '../state/prefs';
import { go, route } from '../state/route';
import { dialog, drawer, focusSearch, isNarrow } from '../state/ui';
import { isComposing } from './keys';

interface Shortcut {
  keys: string[];
  does: string;
  matches(e: KeyboardEvent): boolean;
  run(): void;
}

const ctrl = (key: string, shift = false) => (e: KeyboardEvent) =>
  (e.ctrlKey || e.metaKey) && !e.altKey && e.shiftKey === shift && e.key.toLowerCase() === key;
const isField = (target: EventTarget | null) =>
  target instanceof HTMLElement
    && (target.isContentEditable || ['INPUT', 'TEXTAREA', 'SELECT'].includes(target.tagName));

/** By place on the keyboard: with Alt, a Mac's key gives another character. In a field it is
 *  that character that is meant. */
const altShift = (code: string) => (e: KeyboardEvent) =>
  e.altKey && e.shiftKey && !e.ctrlKey && !e.metaKey && e.code === code
    && !(isField(e.target) && /^[^A-Za-z]$/u.test(e.key));

function openSearch() {
  if (isNarrow()) drawer.value = true;
  else setPrefs({ sidebar: true });
  focusSearch();
}

function again() {
  const last = path.value.findLast((m) => m.role === 'assistant');
  if (last && ready.value && !busy.value) void regenerate(last);
}

export const shortcuts: Shortcut[] = [
  { keys: ['Ctrl', 'K'], does: 'Search conversations', matches: ctrl('k'), run: openSearch },
  {
    keys: ['Ctrl', 'Shift', 'O'], does: 'New conversation', matches: ctrl('o', true), run: startNew,
  },
  { keys: ['Alt', 'Shift', 'R'], does: 'Answer again', matches: altShift('KeyR'), run: again },
  {
    keys: ['Alt', 'Shift', 'M'], does: 'Models', matches: altShift('KeyM'),
    run: () => go('/models'),
  },
  {
    keys: ['Alt', 'Shift', 'T'], does: 'Fine-tune', matches: altShift('KeyT'),
    run: () => go('/train'),
  },
  {
    keys: ['Alt', 'Shift', 'D'], does: 'Device', matches: altShift('KeyD'),
    run: () => go('/device'),
  },
  {
    keys: ['Alt', 'Shift', 'S'], does: 'Settings', matches: altShift('KeyS'),
    run: () => go('/settings'),
  },
  {
    keys: ['Ctrl', '/'],
    does: 'This help',
    matches: (e) => (e.ctrlKey || e.metaKey) && !e.altKey && (e.key === '/' || e.key === '?'),
    run: () => (dialog.value = 'help'),
  },
];

/** Keys that the composer itself knows, for the help. */
export const composerKeys: { keys: string[]; does: string }[] = [
  { keys: ['Enter'], does: 'Send' },
  { keys: ['Shift', 'Enter'], does: 'New line' },
  { keys: ['Esc'], does: 'Stop the answer' },
];

/** In the search field, which Escape empties. */
const isSearching = ({ target }: KeyboardEvent) =>
  target instanceof HTMLInputElement && target.id === 'search' && target.value !== '';

/** A character, and not one that a button or a scrolling box waits for. Where AltGr makes
 *  characters it counts as Ctrl and Alt. */
const isText = (e: KeyboardEvent) =>
  e.key.length === 1 && e.key !== ' ' && !e.metaKey
    && ((!e.ctrlKey && !e.altKey) || e.getModifierState('AltGraph'));

export function listen(): void {
  addEventListener('keydown', (e) => {
    if (e.defaultPrevented || isComposing(e) || document.querySelector('dialog[open]')) return;
    if (e.key === 'Escape' && isSearching(e)) return;
    if (e.key === 'Escape' && drawer.value) return void (drawer.value = false);
    if (e.key === 'Escape' && busyHere.value && route.value.view === 'chat') return stop();
    const found = shortcuts.find((s) => s.matches(e));
    if (found) {
      e.preventDefault();
      found.run();
    } else if (isText(e) && !isField(e.target) && !drawer.value) {
      // before the character arrives: it is typed there
      document.getElementById('composer')?.focus();
    }
  });
}
