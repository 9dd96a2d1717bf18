// lesson - what is to be learned and how: the data and what the model makes of it, the settings,
// the memory they take. The engine reads the data; this page has no opinion of its own on what a
// good line is.

import { computed, effect, signal } from '@preact/signals';
import type { TrainEstimate, TrainPreview } from 'bezel';
import { optionsOf, settingsOf, type Preset, type TrainSettings } from '../train/presets';
import { engineState } from './engine';
import { messageOf } from './notices';

export const data = signal('');
/** The file it came from, where it did. */
export const fileName = signal('');
export const adapterName = signal('my-adapter');

const preset = signal<Preset>('quick');
const changed = signal<Partial<TrainSettings>>({});
export const chosen = computed(() => preset.value);

export function choose(wish: Preset): void {
  preset.value = wish;
  changed.value = {};
}

export const settings = computed<TrainSettings>(() => {
  const state = engineState.value;
  return {
    ...settingsOf(preset.value, state.kind === 'ready' ? state.engine.info.n_params : 5e9),
    ...changed.value,
  };
});

export function change(part: Partial<TrainSettings>): void {
  changed.value = { ...changed.value, ...part };
}

export async function takeFile(file: File): Promise<void> {
  data.value = await file.text();
  fileName.value = file.name;
  adapterName.value = file.name
    .replace(/\.[^.]*$/, '')
    .replace(/[^A-Za-z0-9._-]+/g, '-')
    .replace(/^[^A-Za-z0-9]+/, '')
    || 'my-adapter';
}

// ---- what the model makes of it ----

export type Check =
  | { kind: 'none' }
  | { kind: 'bad'; message: string; /** 0: no line is to blame. */ line: number }
  | { kind: 'good'; preview: TrainPreview; estimate: TrainEstimate };

export const check = signal<Check>({ kind: 'none' });

export const options = computed(() =>
  (check.value.kind === 'good' ? optionsOf(settings.value, check.value.preview) : null));

const SHOWN = 12; // examples of the preview
const PAUSE = 250; // milliseconds without a key before the data is read

async function look(
  text: string,
  wish: TrainSettings,
  engine: Extract<ReturnType<typeof engineState.peek>, { kind: 'ready' }>['engine'],
  signal: AbortSignal,
): Promise<void> {
  let found: Check;
  try {
    const preview =
      await engine.trainPreview(text, { max: SHOWN, sequence: wish.sequence, signal });
    found = {
      kind: 'good',
      preview,
      estimate: await engine.trainEstimate({ ...optionsOf(wish, preview), data: text, signal }),
    };
  } catch (e) {
    if (signal.aborted) return;
    const why = messageOf(e), line = Number(/\bline (\d+)/.exec(why)?.[1] ?? 0);
    found = { kind: 'bad', message: why.replace(/^the data line (\d+): /, 'Line $1: '), line };
  }
  if (!signal.aborted) check.value = found;
}

effect(() => {
  const text = data.value, wish = settings.value, state = engineState.value;
  if (!text.trim() || state.kind !== 'ready') {
    check.value = { kind: 'none' };
    return;
  }
  const stop = new AbortController();
  const timer = setTimeout(() => void look(text, wish, state.engine, stop.signal), PAUSE);
  return () => {
    clearTimeout(timer);
    stop.abort();
  };
});
