// MergeDialog - an adapter and a model become one model: which model, how strong, where to.

import { useSignal } from '@preact/signals';
import { useEffect } from 'preact/hooks';
import { bytes } from '../lib/format';
import { startWith } from '../state/chat';
import { engineState, load } from '../state/engine';
import {
  cancelMerge, forgetMerge, mergeDialog, mergeToFile, mergeToModels, merging, type MergeJob,
  type MergeWish,
} from '../state/merge';
import { groups, look, type ModelEntry } from '../state/models';
import { notifyError } from '../state/notices';
import { Dialog } from './Dialog';
import { Icon } from './Icon';

const close = () => {
  forgetMerge();
  mergeDialog.value = null;
};

const plain = (name: string) => name.replace(/:latest$/, '').replace(/[^A-Za-z0-9._-]+/g, '-');
const all = () => groups.value.flatMap((g) => g.entries);

function Running({ job: { wish, loaded, total } }: { job: MergeJob }) {
  const share = total ? Math.min(100, (100 * loaded) / total) : 0;
  return (
    <>
      <p>Adding <strong>{wish.adapter}</strong> to <strong>{wish.model.name}</strong>.</p>
      <div class="bar" role="progressbar" aria-label={`Merging ${wish.name}`} aria-valuemin={0}
        aria-valuemax={100}
        aria-valuenow={Math.round(share)}><div style={{ width: `${share}%` }} /></div>
      <p class="hint">{bytes(loaded)} of {bytes(total)}. It goes on when this is closed.</p>
      <div class="dialog-foot">
        <button class="button" type="button" onClick={cancelMerge}>Cancel</button>
      </div>
    </>
  );
}

function Done({ job: { wish, to } }: { job: MergeJob }) {
  const made = to === 'models'
    ? all().find((m) => m.origin === 'store' && plain(m.name) === wish.name)
    : undefined;
  const talk = (entry: ModelEntry) => {
    close();
    startWith({ adapters: [] });
    load(entry).catch(notifyError);
  };
  return (
    <>
      <p>
        <Icon name="check"
          size={18} /> {to === 'models'
            ? <><strong>{wish.name}</strong> is among the models now.</>
            : <><strong>{wish.name}.gguf</strong> is written.</>}
      </p>
      <div class="dialog-foot">
        <button class="button" type="button" onClick={close}>Close</button>
        {made && <button class="button primary" type="button" onClick={() => talk(made)}>
          Load and talk
        </button>}
      </div>
    </>
  );
}

function Form({ adapter, failed }: { adapter: string; failed: MergeJob | null }) {
  const loaded = engineState.value.kind === 'ready' ? engineState.value.model.key : undefined;
  const key = useSignal(failed?.wish.model.key ?? loaded ?? all()[0]?.key ?? '');
  const scale = useSignal(failed?.wish.scale ?? 1);
  const own = useSignal<string | null>(failed?.wish.name ?? null);
  const model = all().find((m) => m.key === key.value) ?? all()[0];
  const name = own.value ?? (model ? `${plain(model.name)}-${plain(adapter)}` : '');
  const begin = (e: SubmitEvent) => {
    e.preventDefault();
    if (!model) return;
    const wish: MergeWish = { adapter, model, scale: scale.value, name };
    const toFile = (e.submitter as HTMLButtonElement | null)?.value === 'file';
    (toFile ? mergeToFile : mergeToModels)(wish).catch(notifyError);
  };
  return (
    <form class="stack" onSubmit={begin}>
      <p>
        A merged model is one GGUF file that answers as the model does with the adapter: here, in
        Ollama and in llama.cpp. It is as large as the model, and keeps its formats.
      </p>
      <div class="field">
        <label for="merge-model">Model</label>
        <select class="input" id="merge-model" value={key.value}
          onChange={(e) => (key.value = e.currentTarget.value)}>
          {groups.value.map(({ label, entries }) =>
            <optgroup key={label} label={label}>
              {entries.map((m) =>
                <option key={m.key} value={m.key}>{m.name} ({bytes(m.size)})</option>)}
            </optgroup>)}
        </select>
        <span class="hint">The one that the adapter was made for.</span>
      </div>
      <div class="field">
        <label for="merge-scale">Strength: {Math.round(100 * scale.value)} %</label>
        <input class="slider" id="merge-scale" type="range" min={0} max={2} step={0.05}
          value={scale.value} onInput={(e) => (scale.value = e.currentTarget.valueAsNumber)} />
      </div>
      <div class="field">
        <label for="merge-name">Name of the new model</label>
        <input class="input" id="merge-name" required pattern="[A-Za-z0-9][A-Za-z0-9._\-]*"
          value={name} onInput={(e) => (own.value = e.currentTarget.value)} />
      </div>
      {failed && <p class="problem" role="alert">
        <Icon name="warn" size={18} /> <span>{failed.error}</span>
      </p>}
      <div class="dialog-foot">
        <button class="button" type="submit" value="file">
          <Icon name="download" size={16} /> Save as a file
        </button>
        <button class="button primary" type="submit" value="models">Add to models</button>
      </div>
    </form>
  );
}

export function MergeDialog({ adapter }: { adapter: string }) {
  useEffect(() => void look(), []);
  const job = merging.value;
  return (
    <Dialog title="Merged model" onClose={close}>
      {job?.state === 'running'
        ? <Running job={job} />
        : job?.state === 'done' ? <Done job={job} /> : <Form adapter={adapter} failed={job} />}
    </Dialog>
  );
}
