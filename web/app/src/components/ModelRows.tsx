// ModelRows - models of one place: what they are, whether they fit, and buttons to use them.

import { useEffect } from 'preact/hooks';
import { bytes, count } from '../lib/format';
import { engineState, load } from '../state/engine';
import { fits, weigh } from '../state/fits';
import { lookInStore, removeModel, type ModelEntry } from '../state/models';
import { notifyError } from '../state/notices';
import { copyFile, fetchModel } from '../state/transfers';
import { Icon } from './Icon';

function Fit({ entry }: { entry: ModelEntry }) {
  useEffect(() => void weigh(entry), [entry.key]);
  const fit = fits.value[entry.key];
  if (!fit) return null;
  if (fit.kind === 'fits') return <span class="badge">fits, context up to {count(fit.context)}</span>;
  return <span class={`badge ${fit.kind === 'no' ? 'bad' : 'warn'}`}>{fit.kind === 'no' ? 'does not run here' : 'may not fit'}</span>;
}

/** A copy in this browser: from a file, or from the server. */
function Keep({ entry }: { entry: ModelEntry }) {
  if (entry.origin !== 'server' && !entry.file) return null;
  const keep = () => (entry.file ? copyFile(entry.file, lookInStore) : fetchModel(entry.key, lookInStore));
  return <button class="button small" type="button" aria-label={`Keep a copy of ${entry.name}`} onClick={() => keep().catch(notifyError)}>Keep a copy</button>;
}

function Row({ entry }: { entry: ModelEntry }) {
  const state = engineState.value;
  const mine = state.kind !== 'none' && state.model.key === entry.key;
  const loaded = mine && state.kind === 'ready';
  const fit = fits.value[entry.key];
  return (
    <li>
      <div class="grow">
        <div class="title">{entry.name}{loaded && <span class="badge good"><Icon name="check" size={14} /> loaded</span>}<Fit entry={entry} /></div>
        <div class="detail">{[bytes(entry.size), entry.detail].filter(Boolean).join(' · ')}</div>
        {fit && fit.kind !== 'fits' && <div class="detail">{fit.why}</div>}
      </div>
      <div class="tools">
        {!loaded && <button class="button small" type="button" disabled={mine && state.kind === 'loading'} aria-label={`Load ${entry.name}`} onClick={() => load(entry)}>Load</button>}
        <Keep entry={entry} />
        {entry.origin === 'store' && <button class="icon-button small" type="button" aria-label={`Delete ${entry.name}`} disabled={loaded} onClick={() => removeModel(entry).catch(notifyError)}><Icon name="trash" size={18} /></button>}
      </div>
    </li>
  );
}

export function ModelRows({ label, entries }: { label: string; entries: ModelEntry[] }) {
  return (
    <section class="section">
      <h2>{label}</h2>
      <ul class="card rows">{entries.map((entry) => <Row key={entry.key} entry={entry} />)}</ul>
    </section>
  );
}
