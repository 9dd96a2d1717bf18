// prefs - what a person set for the whole page. Small, and wanted before the first paint.

import { effect, signal } from '@preact/signals';
import { defaultSettings, type ChatSettings } from '../chat/types';
import { local } from '../lib/local';

/** 'auto': the GPU; without one the toy runs on the CPU, and other models ask. */
export type Backend = 'auto' | 'gpu' | 'cpu';

export interface Prefs {
  theme: 'system' | 'light' | 'dark';
  backend: Backend;
  /** Tokens of a conversation at most; 0: as the engine sees fit. */
  context: number;
  /** Load the model of last time when the page opens. */
  autoLoad: boolean;
  /** Keep what the model has read, so that conversations go on at once after a reload. */
  keepStates: boolean;
  sidebar: boolean;
  /** How new conversations begin. */
  chat: ChatSettings;
}

const initial: Prefs = {
  theme: 'system',
  backend: 'auto',
  context: 0,
  autoLoad: true,
  keepStates: true,
  sidebar: true,
  chat: defaultSettings,
};

const key = 'bezel.prefs';

function read(): Prefs {
  try {
    const found = JSON.parse(local.get(key) ?? '{}') as Partial<Prefs>;
    return { ...initial, ...found, chat: { ...defaultSettings, ...found.chat } };
  } catch {
    return initial; // unreadable settings are as good as none
  }
}

export const prefs = signal<Prefs>(read());

export function setPrefs(change: Partial<Prefs>): void {
  prefs.value = { ...prefs.value, ...change };
  local.set(key, JSON.stringify(prefs.value));
}

// Another tab changed them.
addEventListener('storage', (event) => {
  if (event.key === key) prefs.value = read();
});

effect(() => {
  const { theme } = prefs.value;
  if (theme === 'system') delete document.documentElement.dataset['theme'];
  else document.documentElement.dataset['theme'] = theme;
});
