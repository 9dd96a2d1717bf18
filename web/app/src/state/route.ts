// route - which view is open, as the address says it: #/, #/c/ID, #/models, #/train, #/device, #/settings.

import { computed, signal } from '@preact/signals';

export type View = 'chat' | 'models' | 'train' | 'device' | 'settings';

const hash = signal(location.hash);
addEventListener('hashchange', () => (hash.value = location.hash));

export const route = computed<{ view: View; conversation: string | null }>(() => {
  const [, view = '', id] = hash.value.split('/');
  if (view === 'models' || view === 'train' || view === 'device' || view === 'settings') return { view, conversation: null };
  return { view: 'chat', conversation: view === 'c' && id ? id : null };
});

export function go(to: string, replace = false): void {
  if (replace) history.replaceState(null, '', `#${to}`);
  else if (location.hash !== `#${to}`) history.pushState(null, '', `#${to}`);
  hash.value = location.hash;
}

addEventListener('popstate', () => (hash.value = location.hash));
