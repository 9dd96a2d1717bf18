// Transfers - models on their way into this browser, and the field for an address.

import { useSignal } from '@preact/signals';
import { bytes, duration } from '../lib/format';
import { notifyError } from '../state/notices';
import { lookInStore } from '../state/shelf';
import { drop, fetchModel, pause, transfers, type Transfer } from '../state/transfers';
import { question } from '../state/ui';
import { Icon } from './Icon';

function numbers({ phase, loaded, total, speed, running, error }: Transfer): string {
  if (error) return error;
  if (!total) return running ? 'Starting…' : '';
  const amount = `${bytes(loaded)} of ${bytes(total)}`;
  if (!running) return `${amount}, paused`;
  if (phase === 'verify') return `${amount}, checking what is there`;
  return speed > 0
    ? `${amount} · ${bytes(speed)}/s · ${duration((total - loaded) / speed)} left`
    : amount;
}

function Row({ transfer: t }: { transfer: Transfer }) {
  const share = t.total ? Math.min(100, (100 * t.loaded) / t.total) : 0;
  const again = () => fetchModel(t.key, lookInStore).catch(notifyError);
  const giveUp = () => {
    question.value = {
      title: `Give up ${t.name}?`,
      text: `The ${bytes(t.loaded)} that have come must be downloaded again.`,
      verb: 'Delete',
      run: () => drop(t),
    };
  };
  return (
    <div class="transfer">
      <div class="row spread">
        <strong class="label">{t.name}</strong>
        <span class="row">
          {t.running
            ? <button class="button small" type="button" aria-label={`Pause ${t.name}`}
              onClick={() => pause(t.key)}>Pause</button>
            : <button class="button small" type="button" aria-label={`Resume ${t.name}`}
              onClick={again}>Resume</button>}
          {!t.running && <button class="icon-button small" type="button"
            aria-label={`Give up ${t.name}`}
            onClick={t.loaded > 0 ? giveUp : () => drop(t).catch(notifyError)}>
            <Icon name="trash" size={18} />
          </button>}
        </span>
      </div>
      <div class="bar" role="progressbar" aria-label={`Downloading ${t.name}`} aria-valuemin={0}
        aria-valuemax={100}
        aria-valuenow={Math.round(share)}><div style={{ width: `${share}%` }} /></div>
      <p class="hint">{numbers(t)}</p>
    </div>
  );
}

export function Transfers() {
  const url = useSignal('');
  const submit = (e: Event) => {
    e.preventDefault();
    const wanted = url.value.trim();
    url.value = '';
    fetchModel(wanted, lookInStore).catch(notifyError);
  };
  return (
    <section class="section">
      <h2>Download</h2>
      <div class="card stack">
        <form class="inline-form" onSubmit={submit}>
          <div class="field">
            <label for="model-url">Address of a GGUF file</label>
            <input class="input" id="model-url" type="url" required placeholder="https://"
              value={url.value} onInput={(e) => (url.value = e.currentTarget.value)} />
          </div>
          <button class="button" type="submit"><Icon name="download" size={18} /> Download</button>
        </form>
        <p class="hint">
          The one request that leaves this computer: it goes to the site in the address, when you
          press the button.
        </p>
        {transfers.value.map((transfer) => <Row key={transfer.key} transfer={transfer} />)}
      </div>
    </section>
  );
}
