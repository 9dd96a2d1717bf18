// TrainingCard - the training under way, one that waits to be gone on with, or what came of it.

import { useEffect, useRef } from 'preact/hooks';
import { download } from '../lib/files';
import { bytes, count, duration, speed } from '../lib/format';
import { startWith } from '../state/chat';
import { mergeDialog } from '../state/merge';
import { ready } from '../state/engine';
import {
  act, cancel, discard, dismissResult, finish, goOn, goOnWithCpu, pause, resume, saveAgain,
  training, type Training,
} from '../state/train';
import { question } from '../state/ui';
import type { TrainRecord } from '../train/record';
import { Icon } from './Icon';
import { LossChart } from './LossChart';

const phases = {
  before: 'Answering the questions before', learning: 'Learning',
  after: 'Answering the questions after',
};

function Samples({
  record: { questions, before }, after,
}: { record: TrainRecord; after: readonly string[] }) {
  if (!before.length) return null;
  return (
    <div class="table-wrap">
      <table class="plain-table samples">
        <thead>
          <tr>
            <th scope="col">Question</th>
            <th scope="col">Before</th>
            <th scope="col">After</th>
          </tr>
        </thead>
        <tbody>
          {questions.map((question, i) =>
            <tr key={question}>
              <th scope="row">{question}</th>
              <td data-label="Before">{before[i]}</td>
              <td data-label="After">{after[i] ?? '…'}</td>
            </tr>)}
        </tbody>
      </table>
    </div>
  );
}

function Running({
  state: { phase, paused, record, last, from, saved },
}: { state: Extract<Training, { kind: 'running' }> }) {
  const step = last?.step ?? record.points.at(-1)?.step ?? 0;
  const share = record.steps ? step / record.steps : 0;
  const left = last ? ((last.steps - step) * last.seconds) / Math.max(1, step - from) : 0;
  const held = last?.evalLoss ?? record.points.findLast((p) => p.evalLoss !== undefined)?.evalLoss;
  const facts: [string, string][] = last ? [
    ['Loss', last.loss.toFixed(3)],
    ...(record.options.evalShare
      ? [['Held back', held?.toFixed(3) ?? '…'] as [string, string]]
      : []),
    ['Speed', `${speed(last.tokensPerSecond)} tok/s`], ['Rate', last.learningRate.toExponential(1)],
    ['Memory', bytes(last.memory)], ['Left', duration(left)],
  ] : [];
  return (
    <>
      <div class="row spread">
        <p>
          <strong class="label">{record.name}</strong> · {paused ? 'Paused' : phases[phase]}
          {record.steps > 0 && `, step ${count(step)} of ${count(record.steps)}`}
        </p>
        <span class="row">
          {phase === 'learning' && (paused
            ? <button class="button small" type="button" onClick={resume}>Resume</button>
            : <button class="button small" type="button" disabled={!last}
              onClick={() => act(pause)}>Pause</button>)}
          {phase === 'learning' && <button class="button small" type="button" disabled={!last}
            onClick={finish}>Stop and keep</button>}
          {phase !== 'after' && <button class="button small" type="button" onClick={cancel}>
            Cancel
          </button>}
        </span>
      </div>
      <div class="bar" role="progressbar" aria-label={`Training ${record.name}`} aria-valuemin={0}
        aria-valuemax={100}
        aria-valuenow={Math.round(100 * share)}><div style={{ width: `${100 * share}%` }} /></div>
      <LossChart points={record.points} steps={record.steps} />
      {facts.length > 0 && <dl class="facts">
        {facts.map(([name, value]) => <div key={name}><dt>{name}</dt><dd>{value}</dd></div>)}
      </dl>}
      {phase === 'learning' && <p class="hint">
        {saved > 0
          ? `Were the page closed now, it would go on from step ${count(saved)}.`
          : 'The first checkpoint comes in a moment.'}
      </p>}
      <Samples record={record} after={[]} />
    </>
  );
}

function Kept({ state: { record, note, device } }: { state: Extract<Training, { kind: 'kept' }> }) {
  const step = record.points.at(-1)?.step ?? 0;
  const throwAway = () => {
    question.value = {
      title: `Throw ${record.name} away?`,
      text: `What it has learned in ${count(step)} steps is gone with it.`,
      verb: 'Throw away',
      run: discard,
    };
  };
  const how =
    step > 0 ? `is half done: step ${count(step)} of ${count(record.steps)}` : 'has not begun';
  return (
    <>
      <div class="row spread">
        <p>
          <strong class="label">{record.name}</strong> {how}. {note}
        </p>
        <span class="row">
          {device && <button class="button primary small" type="button" disabled={!ready.value}
            onClick={() => act(goOnWithCpu)}>Use the CPU instead</button>}
          {!device && <button class="button primary small" type="button" disabled={!ready.value}
            onClick={() => act(goOn)}>Continue</button>}
          <button class="button small" type="button"
            onClick={step > 0 ? throwAway : () => act(discard)}>Throw away</button>
        </span>
      </div>
      {record.points.length > 0 && <LossChart points={record.points} steps={record.steps} />}
    </>
  );
}

function Done(
  { state: { record, result, after, unsaved } }: { state: Extract<Training, { kind: 'done' }> },
) {
  const file = (name: string, content: Uint8Array | string) =>
    download(name, content as BlobPart, 'application/octet-stream');
  const putAway = () => {
    if (!unsaved) return dismissResult();
    question.value = {
      title: `Throw ${record.name} away?`,
      text: 'It is not in the library: what was learned is gone with it.',
      verb: 'Throw away',
      run: async () => dismissResult(),
    };
  };
  const peft = () => {
    file('adapter_model.safetensors', result.peft.safetensors);
    file('adapter_config.json', result.peft.config);
  };
  const where = unsaved ? 'is trained' : 'is in the library', { evalLoss } = result;
  const held = evalLoss && '; what was held back: '
    + `${evalLoss.first.toFixed(3)} before, ${evalLoss.last.toFixed(3)} now`;
  return (
    <>
      <div class="row spread one-line">
        <p>
          <strong class="label">{record.name}</strong> {where},
          after {count(result.steps)} steps{held}.
        </p>
        <button class="icon-button small" type="button" aria-label="Put this away"
          onClick={putAway}><Icon name="close" size={18} /></button>
      </div>
      {unsaved && (
        <p class="problem" role="alert">
          <Icon name="warn" size={18} />{' '}
          <span>
            It could not be put into the library: {unsaved}. The model has it until it is
            unloaded; save it as a file, or make room and save it again.
          </span>
          <button class="button small" type="button" onClick={() => act(saveAgain)}>
            Save again
          </button>
        </p>
      )}
      <LossChart points={record.points} steps={record.steps} />
      <Samples record={record} after={after} />
      <div class="row">
        <button class="button primary" type="button"
          onClick={() => startWith({ adapters: [{ name: result.adapter, scale: 1 }] })}>
          Talk to it
        </button>
        <button class="button" type="button"
          onClick={() => file(`${record.name}.gguf`, result.gguf)}>
          <Icon name="download" size={16} /> GGUF
        </button>
        <button class="button" type="button" onClick={peft}>
          <Icon name="download" size={16} /> PEFT
        </button>
        <button class="button" type="button" onClick={() => (mergeDialog.value = result.adapter)}>
          <Icon name="download" size={16} /> Merged model
        </button>
      </div>
    </>
  );
}

export function TrainingCard() {
  const state = training.value, element = useRef<HTMLElement>(null), wasRunning = useRef(false);
  // Its button is far below, and gone: the eye and the focus go where something happens. At the end
  // the focus stays here, also if it was on a button that is gone.
  useEffect(() => {
    const running = state.kind === 'running';
    if (running) element.current?.scrollIntoView({ block: 'start' });
    if (running || (wasRunning.current && document.activeElement === document.body))
      element.current?.focus({ preventScroll: true });
    wasRunning.current = running;
  }, [state.kind]);
  if (state.kind === 'none') return null;
  return (
    <section class="section" ref={element} tabIndex={-1} aria-label="Training">
      <h2>Training</h2>
      <div class="card stack load">
        {state.kind === 'running'
          ? <Running state={state} />
          : state.kind === 'kept' ? <Kept state={state} /> : <Done state={state} />}
      </div>
    </section>
  );
}
