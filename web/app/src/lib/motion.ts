// motion - whether the person wants things to move.

import { signal } from '@preact/signals';

const query = matchMedia('(prefers-reduced-motion: reduce)');

export const isStill = signal(query.matches);
query.addEventListener('change', () => (isStill.value = query.matches));
