// shortcuts - keys, what they do, and the listener that does it. The help dialog shows this same table.

import { startNew } from '../components/Sidebar';
import { busy, busyHere, path, regenerate, stop } from '../state/chat';
import { ready } from '../state/engine';
import { prefs, setPrefs } from '../state/prefs';
import { go, route } from '../state/route';
import { dialog, drawer, focusComposer, focusSearch, isNarrow } from '../state/ui';

interface Shortcut {
  keys: string[];
  does: string;
  /** Single keys are for when nobody is typing, and can be turned off. */
  single: boolean;
  matches(e: KeyboardEvent): boolean;
  run(): void;
}

const ctrl = (key: string, shift = false) => (e: KeyboardEvent) =>
  (e.ctrlKey || e.metaKey) && !e.altKey && e.shiftKey === shift && e.key.toLowerCase() === key;
const plain = (key: string) => (e: KeyboardEvent) => !e.ctrlKey && !e.metaKey && !e.altKey && e.key === key;

function openSearch() {
  if (isNarrow()) drawer.value = true;
  else setPrefs({ sidebar: true });
  focusSearch();
}

function again() {
  const last = path.value.findLast((m) => m.role === 'assistant');
  if (last && ready.value && !busy.value) void regenerate(last);
}

function writeHere() {
  if (route.value.view !== 'chat') go('/');
  focusComposer();
}

export const shortcuts: Shortcut[] = [
  { keys: ['Ctrl', 'K'], does: 'Search conversations', single: false, matches: ctrl('k'), run: openSearch },
  { keys: ['Ctrl', 'Shift', 'O'], does: 'New conversation', single: false, matches: ctrl('o', true), run: startNew },
  { keys: ['/'], does: 'Write', single: true, matches: plain('/'), run: writeHere },
  { keys: ['n'], does: 'New conversation', single: true, matches: plain('n'), run: startNew },
  { keys: ['r'], does: 'Answer again', single: true, matches: plain('r'), run: again },
  { keys: ['m'], does: 'Models', single: true, matches: plain('m'), run: () => go('/models') },
  { keys: ['t'], does: 'Fine-tune', single: true, matches: plain('t'), run: () => go('/train') },
  { keys: ['d'], does: 'Device', single: true, matches: plain('d'), run: () => go('/device') },
  { keys: [','], does: 'Settings', single: true, matches: plain(','), run: () => go('/settings') },
  { keys: ['?'], does: 'This help', single: true, matches: plain('?'), run: () => (dialog.value = 'help') },
];

/** Keys that the composer itself knows, for the help. */
export const composerKeys: { keys: string[]; does: string }[] = [
  { keys: ['Enter'], does: 'Send' },
  { keys: ['Shift', 'Enter'], does: 'New line' },
  { keys: ['Esc'], does: 'Stop the answer' },
];

const isTyping = (target: EventTarget | null) =>
  target instanceof HTMLElement && (target.isContentEditable || ['INPUT', 'TEXTAREA', 'SELECT'].includes(target.tagName));

export function listen(): void {
  addEventListener('keydown', (e) => {
    if (e.defaultPrevented || e.isComposing || dialog.value !== 'none') return;
    if (e.key === 'Escape' && drawer.value) return void (drawer.value = false);
    if (e.key === 'Escape' && busyHere.value && route.value.view === 'chat') return stop();
    const typing = isTyping(e.target);
    const found = shortcuts.find((s) => s.matches(e) && (!s.single || (!typing && prefs.value.singleKeys)));
    if (!found) return;
    e.preventDefault();
    found.run();
  });
}
