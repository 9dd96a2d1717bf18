// Device - where the model runs, whether its kernels agree with the reference there, and how fast
// it is.

import type { BenchResult, Memory, SelfTest } from 'bezel';
import { useEffect, useState } from 'preact/hooks';
import { EngineBanner, LoadCard } from '../components/LoadCard';
import { Icon } from '../components/Icon';
import { TopBar } from '../components/TopBar';
import { copyText } from '../lib/files';
import { bytes, count, speed } from '../lib/format';
import { bench, benchJson, benchText, cancelBench, runBench } from '../state/bench';
import { engineState, load, type Ready } from '../state/engine';
import { notify, notifyError } from '../state/notices';

const tiers = { matrix: 'Subgroup matrices', subgroup: 'Subgroups', plain: 'Plain', cpu: 'CPU' };

function Facts({ state: { engine, model, memory: loaded } }: { state: Ready }) {
  const { device, info } = engine;
  // a part of some models comes after the load
  const [later, tell] = useState<{ of: Ready['engine']; memory: Memory }>();
  // what went wrong, the self-test below says
  useEffect(
    () =>
      void engine.selfTest()
        .then(() => engine.memory())
        .then((memory) => tell({ of: engine, memory }), () => undefined),
    [engine],
  );
  const memory = later?.of === engine ? later.memory : loaded;
  const facts: [string, string][] = [
    ['Device', device.name],
    ['Backend', device.backend === 'gpu' ? 'WebGPU' : 'WebAssembly on the CPU'],
    ...(device.fallback ? [['Why not the GPU', device.fallback] as [string, string]] : []),
    ['Kernels', tiers[device.tier]],
    ...(device.profile
      ? [['Profile', `${device.profile}, ${device.int8 ? 'int8' : 'f32'} rows`] as [string, string]]
      : []),
    ['Model', model.name],
    ['Parameters', count(info.n_params)],
    ['Context', `${count(engine.context)} tokens`],
    ['Weights in memory', bytes(memory.weights)],
    ['Cache and scratch', bytes(memory.cache + memory.scratch)],
    ...(memory.tableInFile === undefined
      ? []
      : [['Per-layer table', `in the file: ${memory.tableInFile}`] as [string, string]]),
  ];
  return (
    <section class="section">
      <h2>Where it runs</h2>
      <dl class="card facts">
        {facts.map(([name, value]) => <div key={name}><dt>{name}</dt><dd>{value}</dd></div>)}
      </dl>
    </section>
  );
}

function SelfTests({ state: { engine, model } }: { state: Ready }) {
  // some kernels are tested after the load
  const [whole, tell] = useState<{ of: Ready['engine']; tests: SelfTest[]; problem?: string }>();
  useEffect(
    () =>
      void engine.selfTest().then(
        (tests) => tell({ of: engine, tests }),
        (e: unknown) => tell({
          of: engine,
          tests: engine.device.selfTest,
          problem: e instanceof Error ? e.message : String(e),
        }),
      ),
    [engine],
  );
  const { tests, problem } =
    whole?.of === engine ? whole : { tests: engine.device.selfTest, problem: undefined };
  const failed = tests.filter((t) => !t.ok);
  if (engine.device.backend === 'cpu') return null;
  return (
    <section class="section">
      <h2>Self-test</h2>
      <div class="card stack">
        <div class="row spread">
          <p>{!tests.length
            ? 'Each kernel can be compared with the reference on this device. '
              + 'On a software device that takes a minute, so it is done when asked for.'
            : failed.length === 0
              ? `${problem ? 'The other' : 'All'} ${tests.length} kernels agree with the `
                + 'reference on this device.'
              : `${failed.length} of ${tests.length} kernels disagreed with the reference here and `
                + 'were replaced by slower ones.'}</p>
          {!tests.length && <button class="button" type="button"
            onClick={() => load(model, { selfTest: true })}>Run the self-test</button>}
        </div>
        {problem && <p class="problem" role="alert">
          <Icon name="warn" size={18} /> <span>{problem}</span>
        </p>}
        {tests.length > 0 && <ul class="tests">
          {tests.map((t) =>
            <li key={t.kernel} class={t.ok ? '' : 'failed'} title={t.reason}>
              <Icon name={t.ok ? 'check' : 'warn'} size={14} />
              {t.kernel}
            </li>)}
        </ul>}
      </div>
    </section>
  );
}

function Result({
  result: { predicted, prompt, steps, token_ms: gap, bytes_per_second: bandwidth },
}: { result: BenchResult }) {
  return (
    <dl class="facts">
      {predicted && <div>
        <dt>Writing, {predicted.tokens} tokens{steps ? ` in ${steps} steps` : ''}</dt>
        <dd class="big">{speed(predicted.mean)} tok/s</dd>
      </div>}
      {prompt && <div>
        <dt>Reading, {prompt.tokens} tokens</dt>
        <dd class="big">{speed(prompt.mean)} tok/s</dd>
      </div>}
      {gap && <div>
        <dt>Between {steps ? 'steps' : 'tokens'}, median and 95%</dt>
        <dd>{gap.p50.toFixed(1)} and {gap.p95.toFixed(1)} ms</dd>
      </div>}
      {bandwidth && <div><dt>Weights read</dt><dd>{bytes(bandwidth)}/s</dd></div>}
    </dl>
  );
}

function Benchmark({ state }: { state: Ready }) {
  const { running, result } = bench.value;
  const copy = (text: string) => copyText(text).then(() => notify('Copied.'), notifyError);
  return (
    <section class="section">
      <h2>Benchmark</h2>
      <div class="card stack">
        <div class="row spread">
          <p>Reads a prompt, then writes, a few times each, and takes the mean.</p>
          {running
            ? <button class="button" type="button" onClick={cancelBench}>Cancel</button>
            : <button class="button primary" type="button" onClick={() => runBench(state)}>
              {result ? 'Run again' : 'Run'}
            </button>}
        </div>
        {running && <div class="bar" role="progressbar" aria-label="Benchmark" aria-valuemin={0}
          aria-valuemax={100}
          aria-valuenow={Math.round(100 * running.share)}>
          <div style={{ width: `${100 * running.share}%` }} />
        </div>}
        {result && (
          <>
            <Result result={result} />
            <div class="row">
              <button class="button small" type="button" onClick={() => copy(benchText(result))}>
                <Icon name="copy" size={16} /> Copy as text
              </button>
              <button class="button small" type="button" onClick={() => copy(benchJson(result))}>
                <Icon name="copy" size={16} /> Copy as JSON
              </button>
            </div>
          </>
        )}
      </div>
    </section>
  );
}

function Limits({ state: { engine } }: { state: Ready }) {
  const limits = Object.entries(engine.device.limits);
  if (!limits.length) return null;
  const show = (name: string, n: number) =>
    (/Buffer$|Binding$|Bytes$|Memory$/.test(name) ? bytes(n) : count(n));
  return (
    <section class="section">
      <h2>Limits</h2>
      <div class="card table-wrap">
        <table class="plain-table">
          <thead>
            <tr><th scope="col">Limit</th><th scope="col" class="number">Value</th></tr>
          </thead>
          <tbody>
            {limits.map(([name, value]) =>
              <tr key={name}>
                <td><code>{name}</code></td>
                <td class="number">{show(name, value)}</td>
              </tr>)}
          </tbody>
        </table>
      </div>
    </section>
  );
}

export function Device() {
  const state = engineState.value;
  return (
    <>
      <TopBar />
      <div class="view">
        <div class="page">
          <div class="page-head">
            <h1>This device</h1>
            <p>What the model runs on, and what that can do.</p>
          </div>
          <LoadCard />
          <EngineBanner />
          {state.kind === 'ready'
            && <>
              <Facts state={state} />
              <SelfTests state={state} />
              <Benchmark state={state} />
              <Limits state={state} />
            </>}
        </div>
      </div>
    </>
  );
}
