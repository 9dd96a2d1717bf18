// notices - short messages at the edge of the page, and the text that screen readers hear.

import { signal } from '@preact/signals';

export interface Notice {
  id: number;
  text: string;
  tone: 'plain' | 'error';
  action?: { label: string; run(): void };
}

export const notices = signal<Notice[]>([]);
let next = 0;

export function dismiss(id: number): void {
  notices.value = notices.value.filter((n) => n.id !== id);
}

/** Goes by itself unless it is an error or wants an answer that must not be lost (`stay`). */
export function notify(
  text: string, options: { tone?: Notice['tone']; action?: Notice['action']; stay?: boolean } = {},
): void {
  const { tone = 'plain', action, stay = tone === 'error' } = options;
  const id = next++;
  notices.value = [
    ...notices.value.filter((n) => n.text !== text).slice(-3),
    { id, text, tone, ...(action && { action }) },
  ];
  if (!stay) setTimeout(() => dismiss(id), action ? 8000 : 4000);
}

export const messageOf = (e: unknown): string => (e instanceof Error ? e.message : String(e));

export const notifyError = (e: unknown): void => notify(messageOf(e), { tone: 'error' });

/** Lines for the live region; old ones leave so that it stays short. */
export const spoken = signal<{ id: number; text: string }[]>([]);

export function say(text: string): void {
  if (text.trim()) spoken.value = [...spoken.value.slice(-8), { id: next++, text: text.trim() }];
}
