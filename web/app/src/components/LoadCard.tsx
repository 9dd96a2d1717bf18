// LoadCard - a model on its way: phase, bytes, speed, time left; and what went wrong.

import { bytes, count, duration } from '../lib/format';
import { cancelLoad, engineState, load, loadOnCpu, phases, type Loading } from '../state/engine';
import { Gem, Icon } from './Icon';

const labels: Record<(typeof phases)[number], string> = {
  fetch: 'Fetch', open: 'Open', weights: 'Weights', kernels: 'Kernels', selftest: 'Self-test',
  ready: 'Ready',
};

function Numbers({ state }: { state: Loading }) {
  const { phase, loaded, total } = state.progress;
  if (phase !== 'weights' && phase !== 'fetch')
    return <>{labels[phase]}{total > 1 && ` ${count(loaded)} of ${count(total)}`}</>;
  // the server does not say how much it is
  if (total === 0) return <>{bytes(loaded)}{state.speed > 0 && ` · ${bytes(state.speed)}/s`}</>;
  const left = state.speed > 0 ? (total - loaded) / state.speed : 0;
  return (
    <>
      {bytes(loaded)} of {bytes(total)}
      {state.speed > 0 && ` · ${bytes(state.speed)}/s · ${duration(left)} left`}
    </>
  );
}

export function LoadCard() {
  const state = engineState.value;
  if (state.kind !== 'loading') return null;
  const { phase, loaded, total } = state.progress;
  const share = total > 0 ? Math.min(1, loaded / total) : 0;
  const now = phases.indexOf(phase);
  return (
    <section class="card load" aria-label="Loading">
      <div class="load-head">
        <Gem size={30} class="busy" />
        <div>
          <strong>{state.model.name}</strong>
          <span class="numbers"><Numbers state={state} /></span>
        </div>
        <button class="button small" type="button" onClick={cancelLoad}>Cancel</button>
      </div>
      <div class="bar" role="progressbar"
        aria-label={`Loading ${state.model.name}: ${labels[phase]}`} aria-valuemin={0}
        aria-valuemax={100}
        aria-valuenow={Math.round(100 * share)}><div style={{ width: `${100 * share}%` }} /></div>
      <ol class="phases">
        {phases.filter((p) => p !== 'ready').map((p, i) => (
          <li key={p} class={i < now ? 'done' : i === now ? 'now' : ''}
            aria-current={i === now ? 'step' : undefined}>
            {i < now && <Icon name="check" size={14} />}
            {labels[p]}
          </li>
        ))}
      </ol>
    </section>
  );
}

/** What stands between the person and an answer, with the way out of it. */
export function EngineBanner() {
  const state = engineState.value;
  if (state.kind === 'ready' || state.kind === 'loading') return null;
  if (state.kind === 'none') {
    return (
      <div class="banner" role="status">
        <Icon name="cube" />
        <p>{state.note || 'No model is loaded.'}</p>
        <a class="button small" href="#/models">Choose a model</a>
      </div>
    );
  }
  return (
    <div class="banner bad" role="alert">
      <Icon name="warn" />
      <p>{state.message}</p>
      {state.device && <button class="button small" type="button"
        onClick={() => loadOnCpu(state.model)}>Use the CPU instead</button>}
      <button class="button small" type="button" onClick={() => load(state.model)}>
        Try again
      </button>
    </div>
  );
}
