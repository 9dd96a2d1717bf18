// ModelRows - models of one place: what they are, and buttons to use them.

import { bytes } from '../lib/format';
import { engineState, load } from '../state/engine';
import { lookInStore, removeModel, type ModelEntry } from '../state/models';
import { notifyError } from '../state/notices';
import { copyFile, fetchModel } from '../state/transfers';
import { Icon } from './Icon';

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
  return (
    <li>
      <div class="grow">
        <div class="title">{entry.name}{loaded && <span class="badge good"><Icon name="check" size={14} /> loaded</span>}</div>
        <div class="detail">{[bytes(entry.size), entry.detail].filter(Boolean).join(' · ')}</div>
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
