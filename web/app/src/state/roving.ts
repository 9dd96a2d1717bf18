// roving - the list of conversations is one stop of the Tab key, however long it is; the arrow keys
// go through it.

import { computed, signal } from '@preact/signals';
import { conversations, hits, query } from './library';
import { route } from './route';

/** The conversation whose row had the focus last. */
const last = signal<string | null>(null);

/** The conversation whose row Tab stops at. */
export const tabStop = computed<string | undefined>(() => {
  const ids = query.value.trim()
    ? (hits.value ?? []).map((h) => h.conversation)
    : (conversations.value ?? []).map((c) => c.id);
  return [last.value, route.value.conversation].find((id): id is string =>
    id !== null && ids.includes(id))
    ?? ids[0];
});

const linkOf = (target: EventTarget | null): HTMLAnchorElement | null =>
  (target instanceof Element ? (target.closest('li')?.querySelector('a') ?? null) : null);

export function onFocus(e: FocusEvent): void {
  const link = linkOf(e.target);
  if (link) last.value = decodeURIComponent(link.hash.slice('#/c/'.length));
}

/** Up, Down, Home and End on a row's link or on the button of its actions; what these open has
 *  its own keys. */
export function onKeyDown(e: KeyboardEvent & { currentTarget: HTMLElement }): void {
  if (!(e.target instanceof Element) || !e.target.matches('li > a, li > button')) return;
  const all = [...e.currentTarget.querySelectorAll<HTMLElement>('li > a')];
  const at = all.indexOf(linkOf(e.target) as HTMLElement);
  const to = { ArrowDown: at + 1, ArrowUp: at - 1, Home: 0, End: all.length - 1 }[e.key];
  if (to === undefined) return;
  e.preventDefault();
  all[Math.min(all.length - 1, Math.max(0, to))]?.focus();
}
