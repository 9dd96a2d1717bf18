// LessonForm - the data and the settings of a training, what the model makes of them, and the
// button that starts it.

import { useSignal } from '@preact/signals';
import { pickFiles } from '../lib/files';
import { count } from '../lib/format';
import { ready } from '../state/engine';
import {
  adapterName, change, check, choose, chosen, data, fileName, settings, takeFile,
} from '../state/lesson';
import { notifyError } from '../state/notices';
import { act, start, training } from '../state/train';
import { example } from '../train/example';
import { presets, type TrainSettings } from '../train/presets';
import { Icon } from './Icon';
import { TokenPreview } from './TokenPreview';

const LARGEST_SHOWN = 500_000; // characters that a text field takes without getting slow

function showLine(line: number): void {
  const field = document.getElementById('train-data');
  if (!(field instanceof HTMLTextAreaElement)) return;
  const before = field.value.split('\n').slice(0, line - 1).join('\n').length + (line > 1 ? 1 : 0);
  field.focus();
  field.setSelectionRange(
    before,
    field.value.indexOf('\n', before) < 0 ? field.value.length : field.value.indexOf('\n', before),
  );
}

function DataField() {
  const over = useSignal(false);
  const take = ([file]: File[]) => file && takeFile(file).catch(notifyError);
  /** Models and adapters are not read as examples: they go to the window, as anywhere else. */
  const drop = (e: DragEvent) => {
    over.value = false;
    const files = [...(e.dataTransfer?.files ?? [])];
    if (files.some(({ name }) => /\.(?:gguf|safetensors)$/i.test(name))) return;
    e.preventDefault();
    void take(files);
  };
  const tooLong = data.value.length > LARGEST_SHOWN;
  const found = check.value;
  return (
    <div class={`drop tall ${over.value ? 'over' : ''}`}
      onDragEnter={(e) => e.preventDefault()}
      onDragOver={(e) => { e.preventDefault(); over.value = true; }}
      onDragLeave={() => (over.value = false)}
      onDrop={drop}>
      <div class="row spread full">
        {tooLong
          ? <span class="label">Examples</span>
          : <label class="label" for="train-data">Examples</label>}
        <span class="row">
          <button class="button small" type="button"
            onClick={() => { data.value = example; fileName.value = ''; }}>Use a sample</button>
          <button class="button small" type="button"
            onClick={() => pickFiles('.jsonl,.json,.txt').then(take, notifyError)}>
            <Icon name="file" size={16} /> Choose a file
          </button>
        </span>
      </div>
      {tooLong
        ? <p class="full">
          {fileName.value
            || 'The '
              + 'data'} has {count(
                data.value.split('\n').length,
              )} lines. <button class="link-button" type="button"
                onClick={() => { data.value = ''; fileName.value = ''; }}>Take another</button>
        </p>
        : <textarea class="input code" id="train-data" rows={7} spellcheck={false}
          value={data.value} aria-describedby="train-data-hint" aria-invalid={found.kind === 'bad'}
            placeholder={'{"messages": [{"role": "user", "content": "…"}, {"role": "assistant", '
              + '"content": "…"}]}\n{"prompt": "…", "completion": "…"}'}
            onInput={(e) => (data.value = e.currentTarget.value)} />}
      <p class="hint full" id="train-data-hint">
        One JSON object a line: messages as OpenAI has them, or a prompt and its completion. Paste
        them, or drop a file here. They stay in this browser.
      </p>
      {found.kind === 'bad' && (
        <p class="problem full" role="alert">
          <Icon name="warn" size={18} /> <span>{found.message}</span>
          {found.line > 0 && !tooLong && <button class="button small" type="button"
            onClick={() => showLine(found.line)}>Show line {found.line}</button>}</p>
      )}
    </div>
  );
}

type NumberKey = 'rank' | 'alpha' | 'learningRate' | 'epochs' | 'sequence' | 'seed';
const numbers: {
  key: NumberKey; label: string; hint: string; min: number; max: number; step: number | 'any';
}[] = [
  { key: 'rank', label: 'Rank', hint: 'How much the adapter can hold', min: 1, max: 256, step: 1 },
  {
    key: 'alpha', label: 'Alpha', hint: 'Its strength is alpha / rank', min: 0, max: 1024,
    step: 'any',
  },
  {
    key: 'learningRate', label: 'Learning rate', hint: 'How large the steps are', min: 0, max: 1,
    step: 'any',
  },
  { key: 'epochs', label: 'Epochs', hint: 'Times through the data', min: 1, max: 1000, step: 1 },
  {
    key: 'sequence', label: 'Sequence', hint: 'Tokens of an example at most', min: 16, max: 131072,
    step: 1,
  },
  {
    key: 'seed', label: 'Seed', hint: 'The same seed, the same adapter', min: 0, max: 4294967295,
    step: 1,
  },
];

function Advanced() {
  const now = settings.value;
  const read = (key: NumberKey, input: HTMLInputElement) =>
    (input.value !== '' && input.checkValidity()
      ? change({ [key]: input.valueAsNumber })
      : void input.reportValidity());
  return (
    <details>
      <summary>Advanced</summary>
      <div class="grid-2">
        {numbers.map(({ key, label, hint, min, max, step }) => (
          <div class="field" key={key}>
            <label for={`train-${key}`}>{label}</label>
            <input class="input" id={`train-${key}`} type="number" required min={min} max={max}
              step={step} value={now[key]} aria-describedby={`train-${key}-hint`}
              onChange={(e) => read(key, e.currentTarget)} />
            <span class="hint" id={`train-${key}-hint`}>{hint}</span>
          </div>
        ))}
        <div class="field">
          <label for="train-targets">Targets</label>
          <select class="input" id="train-targets" value={now.targets}
            onChange={(e) =>
              change({ targets: e.currentTarget.value as TrainSettings['targets'] })}>
            <option value="all">All linears</option>
            <option value="attention">Attention</option>
            <option value="feed-forward">Feed-forward</option>
          </select>
        </div>
        <div class="field">
          <label for="train-schedule">Schedule</label>
          <select class="input" id="train-schedule" value={now.schedule}
            onChange={(e) =>
              change({ schedule: e.currentTarget.value as TrainSettings['schedule'] })}>
            <option value="cosine">Cosine</option>
            <option value="linear">Linear</option><option value="constant">Constant</option>
          </select>
        </div>
      </div>
    </details>
  );
}

/** Questions of the data, one a line, until the person writes others. */
function firstQuestions(): string {
  const found = data.value.slice(0, 100_000).split('\n').flatMap((line) => {
    try {
      const { prompt, messages } = JSON.parse(
        line,
      ) as { prompt?: unknown; messages?: { role?: unknown; content?: unknown }[] };
      const text = prompt ?? messages?.find((m) => m.role === 'user')?.content;
      return typeof text === 'string' && !text.includes('\n') ? [text] : [];
    } catch {
      return []; // the engine says what is wrong with it
    }
  });
  return [...new Set(found)].slice(0, 3).join('\n');
}

export function LessonForm() {
  const own = useSignal<string | null>(null);
  const found = check.value, questions = own.value ?? firstQuestions();
  const busy = training.value.kind === 'running' || training.value.kind === 'kept';
  const may = ready.value && found.kind === 'good' && found.estimate.fits && !busy;
  const begin = (e: Event) => {
    e.preventDefault();
    act(() => start(questions.split('\n').map((q) => q.trim()).filter(Boolean).slice(0, 10)));
  };
  return (
    <form class="stack" onSubmit={begin}>
      <section class="section">
        <h2>What to learn</h2>
        <DataField />
        {found.kind === 'good' && <div class="card"><TokenPreview preview={found.preview} /></div>}
      </section>
      <section class="section">
        <h2>How</h2>
        <div class="card stack">
          <div class="row spread" role="radiogroup" aria-label="Preset">
            <span class="segments">
              {presets.map(({ preset, label }) => (
                <label key={preset}>
                  <input type="radio" name="preset" checked={chosen.value === preset}
                    onChange={() => choose(preset)} />
                  <span>{label}</span>
                </label>
              ))}
            </span>
            <p class="hint">{presets.find((p) => p.preset === chosen.value)?.hint}</p>
          </div>
          <Advanced />
          <div class="grid-2">
            <div class="field">
              <label for="train-name">Name of the adapter</label>
              <input class="input" id="train-name" required pattern="[A-Za-z0-9][A-Za-z0-9._\-]*"
                value={adapterName.value}
                onInput={(e) => (adapterName.value = e.currentTarget.value)} />
            </div>
            <div class="field">
              <label for="train-questions">Questions before and after</label>
              <textarea class="input short" id="train-questions" dir="auto" rows={3}
                value={questions} aria-describedby="train-questions-hint"
                onInput={(e) => (own.value = e.currentTarget.value)} />
              <span class="hint" id="train-questions-hint">
                One a line, ten at most; asked before and after, side by side.
              </span>
            </div>
          </div>
          <div class="row spread">
            <p class={found.kind === 'good' && !found.estimate.fits ? 'problem' : 'hint'}
              role="status">
              {found.kind === 'good'
                ? found.estimate.sentence
                : 'The memory it takes is known once there are examples.'}
            </p>
            <button class="button primary" type="submit" disabled={!may}>
              <Icon name="spark" size={18} /> Train
            </button>
          </div>
        </div>
      </section>
    </form>
  );
}
