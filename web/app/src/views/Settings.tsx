// Settings - how the page looks, what it keeps, and how to get rid of it.

import { useEffect } from 'preact/hooks';
import { EngineBanner, LoadCard } from '../components/LoadCard';
import { Switch } from '../components/Switch';
import { TopBar } from '../components/TopBar';
import { pickFiles } from '../lib/files';
import { bytes } from '../lib/format';
import { engineState, load } from '../state/engine';
import { exportConversations, importConversations } from '../state/library';
import { notifyError } from '../state/notices';
import { prefs, setPrefs, type Prefs } from '../state/prefs';
import { clearStates, measure, persist, space } from '../state/space';
import { dialog } from '../state/ui';
import { IN_MEMORY } from '../storage/changes';

function Choice<K extends 'theme' | 'backend'>({
  name, label, options, onChange,
}: { name: K; label: string; options: { value: Prefs[K]; label: string }[]; onChange?(): void }) {
  return (
    <div class="row spread" role="radiogroup" aria-label={label}>
      <strong class="label">{label}</strong>
      <span class="segments">
        {options.map((option) => (
          <label key={option.value}>
            <input type="radio" name={name} checked={prefs.value[name] === option.value}
              onChange={() => { setPrefs({ [name]: option.value }); onChange?.(); }} />
            <span>{option.label}</span>
          </label>
        ))}
      </span>
    </div>
  );
}

function Storage() {
  const now = space.value;
  useEffect(() => void measure().catch(notifyError), []);
  const share = now && now.quota ? now.used / now.quota : 0;
  return (
    <div class="card stack">
      {now && !now.kept && <p class="hint">{IN_MEMORY}</p>}
      <div class="stack">
        <div class="row spread">
          <strong class="label">On this device</strong>
          <span>{now ? `${bytes(now.used)} of ${bytes(now.quota)}` : 'Measuring…'}</span>
        </div>
        <div class="bar" role="progressbar" aria-label="Storage used" aria-valuemin={0}
          aria-valuemax={100}
          aria-valuenow={Math.round(100 * share)}>
          <div style={{ width: `${Math.max(0.5, 100 * share)}%` }} />
        </div>
        <div class="row spread">
          <p class="hint">
            {now?.persisted
              ? 'The browser keeps it until you delete it.'
              : 'The browser may delete it when space runs out.'}
          </p>
          {now && !now.persisted && <button class="button small" type="button"
            onClick={() => persist().catch(notifyError)}>Ask to keep it</button>}
        </div>
      </div>
      <Switch label="Resume at once"
        hint={'Keep what the model has read, so that a conversation goes on after a reload without '
          + 'reading it again.'}
        checked={prefs.value.keepStates}
        onChange={(keepStates) => {
          setPrefs({ keepStates });
          if (!keepStates) clearStates().catch(notifyError);
        }} />
    </div>
  );
}

/** The model that is there goes to the other device. */
function reload(): void {
  const state = engineState.peek();
  if (state.kind !== 'none') void load(state.model);
}

async function importPicked(): Promise<void> {
  const [file] = await pickFiles('.json,application/json');
  if (file) await importConversations(file);
}

export function Settings() {
  return (
    <>
      <TopBar />
      <div class="view">
        <div class="page">
          <div class="page-head">
            <h1>Settings</h1>
            <p>They apply to this browser and are kept in it.</p>
          </div>
          <LoadCard />
          <EngineBanner />
          <section class="section">
            <h2>Look and keys</h2>
            <div class="card stack">
              <Choice name="theme" label="Theme"
                options={[
                  { value: 'system', label: 'System' }, { value: 'light', label: 'Light' },
                  { value: 'dark', label: 'Dark' },
                ]} />
              <div class="row">
                <button class="button small" type="button" onClick={() => (dialog.value = 'help')}>
                  Show all keys
                </button>
              </div>
            </div>
          </section>
          <section class="section">
            <h2>Model</h2>
            <div class="card stack">
              <Choice name="backend" label="Run models on"
                options={[
                  { value: 'auto', label: 'Automatic' }, { value: 'gpu', label: 'GPU' },
                  { value: 'cpu', label: 'CPU' },
                ]}
                onChange={reload} />
              <Switch label="Load at start" hint="Load the model of last time when the page opens."
                checked={prefs.value.autoLoad} onChange={(autoLoad) => setPrefs({ autoLoad })} />
            </div>
          </section>
          <section class="section"><h2>Storage</h2><Storage /></section>
          <section class="section">
            <h2>Conversations</h2>
            <div class="card row">
              <button class="button" type="button"
                onClick={() => exportConversations().catch(notifyError)}>Export all</button>
              <button class="button" type="button"
                onClick={() => importPicked().catch(notifyError)}>Import</button>
            </div>
          </section>
          <section class="section">
            <h2>Reset</h2>
            <div class="card row spread">
              <p>Delete conversations, models, settings and the offline copy.</p>
              <button class="button danger" type="button" onClick={() => (dialog.value = 'reset')}>
                Reset everything
              </button>
            </div>
          </section>
        </div>
      </div>
    </>
  );
}
