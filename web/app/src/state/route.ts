// route - which view is open, as the address says it: #/, #/c/ID, #/models, #/train, #/device,
// #/settings.

import { computed, signal } from '@preact/signals';

export type View = 'chat' | 'models' | 'train' | 'device' | 'settings';

const hash = signal(location.hash);
addEventListener('hashchange', () => (hash.value = location.hash));

/** An id as an address has it; one that was imported long ago may hold anything. */
function idOf(part: string): string | null {
  try {
    return decodeURIComponent(part) || null;
  } catch {
    return part; // a lone % stands for itself
  }
}

export const route = computed<{ view: View; conversation: string | null }>(() => {
  const [, view = '', ...rest] = hash.value.split('/');
  if (view === 'models' || view === 'train' || view === 'device' || view === 'settings')
    return { view, conversation: null };
  return { view: 'chat', conversation: view === 'c' ? idOf(rest.join('/')) : null };
});

export function go(to: string, replace = false): void {
  if (replace) history.replaceState(null, '', `#${to}`);
  else if (location.hash !== `#${to}`) history.pushState(null, '', `#${to}`);
  hash.value = location.hash;
}

addEventListener('popstate', () => (hash.value = location.hash));
