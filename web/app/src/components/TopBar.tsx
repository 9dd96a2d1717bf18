// TopBar - where one is, and which model answers.

import { engineState } from '../state/engine';
import { setPrefs } from '../state/prefs';
import { drawer, isNarrow } from '../state/ui';
import { Icon } from './Icon';

function ModelChip() {
  const state = engineState.value;
  const look = { none: '', loading: 'busy', ready: 'ready', failed: 'bad' }[state.kind];
  const name = state.kind === 'none' ? 'No model' : state.model.name;
  const detail = state.kind === 'loading'
    ? 'loading'
    : state.kind === 'failed'
      ? 'not loaded'
      : state.kind === 'ready' ? (state.engine.device.backend === 'gpu' ? 'GPU' : 'CPU') : '';
  const fallback = state.kind === 'ready' ? state.engine.device.fallback : undefined;
  return (
    <a class="model-chip" href="#/models">
      <span class={`dot ${look}`} />
      <span class="visually-hidden">Model:</span>
      <span class="name">{name}</span>
      {detail === 'CPU'
        ? <span class="badge"
          title={fallback ? `It runs on the CPU: ${fallback}` : 'It runs on the CPU.'}>CPU</span>
        : <span class="visually-hidden">{detail}</span>}
    </a>
  );
}

/** `title`: the page's heading, where the view has none of its own. */
export function TopBar({ title }: { title?: string }) {
  const open = () => (isNarrow() ? (drawer.value = true) : setPrefs({ sidebar: true }));
  return (
    <header class="topbar">
      <button class="icon-button show-sidebar" type="button" aria-label="Show the sidebar"
        aria-controls="sidebar" aria-expanded={drawer.value}
        onClick={open}><Icon name="menu" /></button>
      {title ? <h1 dir="auto">{title}</h1> : <span class="space" />}
      <ModelChip />
    </header>
  );
}
