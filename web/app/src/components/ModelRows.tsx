// ModelRows - models of one place: what they are, whether they fit, and buttons to use them.

import { useEffect } from 'preact/hooks';
import { bytes, count } from '../lib/format';
import { engineState, load } from '../state/engine';
import { fitOf, weigh, type Fit } from '../state/fits';
import { removeModel, type ModelEntry } from '../state/models';
import { notifyError } from '../state/notices';
import { prefs } from '../state/prefs';
import { lookInStore } from '../state/shelf';
import { copyFile, fetchModel } from '../state/transfers';
import { Icon } from './Icon';
import { Damaged, Verify } from './Verify';

function FitBadge({ fit }: { fit: Fit | undefined }) {
  if (!fit) return null;
  if (fit.kind === 'refused') return <span class="badge bad">does not run here</span>;
  const { fits, available, total, largestContext } = fit.estimate;
  if (!fits) return <span class="badge warn">does not fit</span>;
  return (
    <span class="badge">
      {Number.isFinite(available) ? 'fits' : `takes ${bytes(total)}`}, context up
      to {count(largestContext)}
    </span>
  );
}

const whyNot = (fit: Fit | undefined): string | undefined =>
  (fit?.kind === 'refused' ? fit.why : fit?.estimate.reason);

/** A copy in this browser: from a file, or from the server. */
function Keep({ entry }: { entry: ModelEntry }) {
  if (entry.origin !== 'server' && !entry.file) return null;
  const keep = () =>
    (entry.file ? copyFile(entry.file, lookInStore) : fetchModel(entry.key, lookInStore));
  return (
    <button class="button small" type="button" aria-label={`Keep a copy of ${entry.name}`}
      onClick={() => keep().catch(notifyError)}>Keep a copy</button>
  );
}

function Row({ entry }: { entry: ModelEntry }) {
  const state = engineState.value;
  const mine = state.kind !== 'none' && state.model.key === entry.key;
  const loaded = mine && state.kind === 'ready';
  const fit = fitOf(entry), why = whyNot(fit);
  useEffect(() => weigh(entry), [entry.key, prefs.value.backend]);
  return (
    <li>
      <div class="grow">
        <div class="title">
          {entry.name}
          {loaded && <span class="badge good"><Icon name="check" size={14} /> loaded</span>}
          {entry.damaged ? <span class="badge bad">damaged</span> : <FitBadge fit={fit} />}
        </div>
        <div class="detail">{[bytes(entry.size), entry.detail].filter(Boolean).join(' · ')}</div>
        {entry.damaged ? <Damaged /> : why && <div class="detail">{why}</div>}
      </div>
      <div class="tools">
        {!loaded && !entry.damaged && <button class="button small" type="button"
          disabled={mine && state.kind === 'loading'} aria-label={`Load ${entry.name}`}
          onClick={() => load(entry)}>Load</button>}
        <Keep entry={entry} />
        {entry.origin === 'store' && !entry.inPlace && <Verify name={entry.name} />}
        {entry.origin === 'store' && <button class="icon-button small" type="button"
          aria-label={`${entry.inPlace ? 'Forget' : 'Delete'} ${entry.name}`} disabled={loaded}
          onClick={() => removeModel(entry)}><Icon name="trash" size={18} /></button>}
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
