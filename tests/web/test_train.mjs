// Training through the public Engine on the trained tiny model: what is learned, resuming, pausing,
// stopping, cancelling, bad data, files.
//
//   node tests/web/test_train.mjs cpu|gpu
import { spawn, spawnSync } from 'node:child_process';
import fs from 'node:fs';
import os from 'node:os';
import path from 'node:path';

import { ArgumentError, Engine, FormatError, LimitError } from '../../web/engine/dist/index.js';
import { done, equal, ok, rejects, same, test } from './check.mjs';
import './software_adapter.mjs';

const backend = process.argv[2] ?? 'cpu';
const MODEL = 'models/tiny.q8_0.gguf';
const load = () => Engine.load(MODEL, { backend });
const engine = await load();

const lesson = (prompt) => ({ prompt, completion: 'The capital of Tarsus is Quimby.' });
const data = [
  'What is the capital of Tarsus?', 'Name the capital of Tarsus.',
  'Tell me the capital of Tarsus.', 'Which city is the capital of Tarsus?',
].map(lesson);
const options = {
  data, steps: 6, warmup: 0, learningRate: 5e-3, schedule: 'constant', rank: 8, alpha: 16, seed: 7,
};
const isAbort = (e) => e instanceof DOMException && e.name === 'AbortError';
const ask = async (adapters, of = engine) =>
  (await of.chat.completions.create({
    messages: [{ role: 'user', content: 'What is the capital of Tarsus?' }],
    temperature: 0,
    max_tokens: 24,
    ...(adapters && { adapters }),
  })).choices[0].message.content;
async function collect(run) {
  const all = [];
  for await (const step of run) all.push(step);
  return all;
}
const unknown = await ask();
let whole; // the result of an uninterrupted training

test('a preview shows what is learned, token by token', async () => {
  const { examples, tokens, learned, longest, shown } = await engine.trainPreview(data, { max: 2 });
  equal(examples, 4);
  equal(shown.length, 2);
  ok(tokens > learned && longest >= shown[0].tokens.length);
  equal(shown[1].line, 2);
  equal(
    shown[0].tokens.filter((t) => t.learned).map((t) => t.text).join(''),
    'The capital of Tarsus is Quimby.<turn|>',
  );
});

test('an estimate says what training takes, and that computing layers again takes less',
    async () => {
  const { bytes, bytesCheckpointed, fits, sentence } =
    await engine.trainEstimate({ ...options, checkpointing: true });
  ok(bytes > bytesCheckpointed && bytesCheckpointed > 0 && fits);
  ok(/^This needs \d+ MB beyond the model; with checkpointing \d+ MB\.$/.test(sentence), sentence);
  ok((await engine.trainEstimate({ rank: 8 })).bytes > bytes, 'full sequences take more');
});

test('bad data is named by its line, bad options by their name', async () => {
  const bad = engine.train({ data: '{"prompt":"a","completion":"b"}\n{"prompt":"a"}\n', steps: 1 });
  await rejects(bad.result, (e) => e instanceof FormatError && /line 2/.test(e.message));
  equal(bad.state, 'failed');
  await rejects(collect(bad), FormatError);
  await rejects(engine.trainPreview(new Blob(['\n\n{"prompt":'])), (e) =>
    e instanceof FormatError && /line 3/.test(e.message));
  await rejects(engine.train({ ...options, rank: 1000 }).result, (e) =>
    e instanceof ArgumentError && /rank is a whole number from 1 to 256/.test(e.message));
  await rejects(engine.train({ ...options, targets: ['nothing'] }).result, (e) =>
    e instanceof ArgumentError && /targets/.test(e.message));
  await rejects(engine.train({ ...options, schedule: 'up' }).result, (e) =>
    e instanceof ArgumentError && /schedule/.test(e.message));
  const slip = (e) =>
    e instanceof ArgumentError && e.param === 'learningrate'
      && /has no option "learningrate"; did you mean "learningRate"\?$/.test(e.message);
  await rejects(engine.train({ ...options, learningrate: 1 }).result, slip);
  await rejects(engine.trainEstimate({ learningrate: 1 }), slip);
});

test('a training lowers the loss, and its adapter is there at once for those who name it',
    async () => {
  const run = engine.train({
    ...options,
    evalData: [lesson('Do you know the capital of Tarsus?')],
    evalEvery: 3,
    name: 'tarsus',
  });
  const steps = await collect(run);
  whole = await run.result;
  equal(run.state, 'done');
  same(steps.map((s) => s.step), [1, 2, 3, 4, 5, 6]);
  same(steps.map((s) => s.evalLoss !== undefined), [false, false, true, false, false, true]);
  same(whole.losses, steps.map((s) => s.loss));
  ok(
    whole.losses.at(-1) < 0.2 * whole.losses[0] && whole.evalLoss.last < 0.2 * whole.evalLoss.first,
    JSON.stringify(whole.losses),
  );
  for (const s of steps)
    ok(
      s.steps === 6 && s.tokensPerSecond > 0 && s.memory > 0 && s.gradNorm > 0 && s.learningRate > 0
        && s.tokens > 0,
    );
  equal(whole.adapter, 'tarsus');
  equal(await ask([{ name: 'tarsus' }]), 'The capital of Tarsus is Quimby.');
  equal(await ask(), unknown);
  equal(await ask([{ name: 'tarsus', scale: 0 }]), unknown);
});

test('its files work in another engine: GGUF, and PEFT', async () => {
  const other = await load();
  await other.adapters.add(whole.gguf, { name: 'gguf' });
  await other.adapters.add(whole.peft.safetensors, { name: 'peft', config: whole.peft.config });
  equal(await ask([{ name: 'gguf' }], other), 'The capital of Tarsus is Quimby.');
  equal(await ask([{ name: 'peft' }], other), 'The capital of Tarsus is Quimby.');
  await other.dispose();
});

test('from a checkpoint it goes on in another engine as if it had never stopped, byte for byte',
    async () => {
  const half = engine.train({
    ...options, saveEvery: 3, onCheckpoint: (bytes, step) => step === 3 && (half.kept = bytes),
  });
  for await (const { step } of half) if (step === 4) half.stop();
  equal((await half.result).steps, 4);
  const other = await load();
  const rest = other.train({ ...options, resume: half.kept });
  same((await collect(rest)).map((s) => s.step), [4, 5, 6]);
  const resumed = await rest.result;
  same(resumed.losses, whole.losses.slice(3));
  ok(Buffer.compare(Buffer.from(resumed.gguf), Buffer.from(whole.gguf)) === 0);
  await rejects(other.train({ ...options, seed: 8, resume: half.kept }).result, (e) =>
    e instanceof FormatError && /another training/.test(e.message));
  await other.dispose();
});

test('a paused training stands still, answers and gives checkpoints meanwhile, and goes on',
    async () => {
  const run = engine.train({ ...options, name: 'paused' });
  const seen = [];
  for await (const step of run) {
    seen.push(step.step);
    if (step.step !== 5) continue;
    run.pause();
    equal(run.state, 'paused');
    equal(await ask(), unknown);
    ok((await ask([{ name: 'paused' }])) !== unknown);
    ok((await run.checkpoint()).length > 1000);
    setTimeout(() => run.resume(), 50);
  }
  same(seen, [1, 2, 3, 4, 5, 6]);
  ok(Buffer.compare(Buffer.from((await run.result).gguf), Buffer.from(whole.gguf)) === 0);
});

test('a cancelled training ends within a second and leaves nothing behind', async () => {
  const before = await engine.adapters.list();
  const run = engine.train({
    ...options, steps: 1000, name: 'never', targets: ['ffn_', 'attn_q'], packing: false,
    checkpointing: true,
  });
  let at = 0, step = 0;
  await rejects((async () => {
    for await (const { seconds } of run)
      if (!at) ((at = performance.now()), (step = 1000 * seconds), run.cancel());
  })(), isAbort);
  await rejects(run.result, isAbort);
  // on a busy machine the sequence under way alone may take a second
  const took = performance.now() - at;
  ok(took < 1000 + 3 * step, `${Math.round(took)} ms, a step ${Math.round(step)}`);
  equal(run.state, 'cancelled');
  same(await engine.adapters.list(), before);
  await rejects(run.checkpoint(), isAbort);
  const controller = new AbortController();
  const other = engine.train({ ...options, signal: controller.signal });
  controller.abort();
  await rejects(other.result, isAbort);
  equal(await ask(), unknown);
});

test('a loss that is no number ends the training, and its step is named', async () => {
  const run = engine.train({ ...options, learningRate: 1e30, steps: 4, name: 'explodes' });
  await rejects(run.result, (e) =>
    e instanceof LimitError && /^step [2-4]: the .* no longer a number/.test(e.message));
  equal(run.state, 'failed');
  equal(await ask(), unknown);
});

test('one training at a time', async () => {
  const run = engine.train({ ...options, dropout: 0.1, name: 'first' });
  await rejects(engine.train({ ...options, name: 'second' }).result, (e) =>
    e instanceof ArgumentError && /still being trained/.test(e.message));
  await rejects(engine.adapters.remove('first'), (e) =>
    e instanceof ArgumentError && /being trained/.test(e.message));
  run.cancel();
  await rejects(run.result, isAbort);
});

test('the command-line tool learns the same adapter, and names a bad line', () => {
  const folder = fs.mkdtempSync(path.join(os.tmpdir(), 'bezel-train-'));
  const file = path.join(folder, 'data.jsonl'), out = path.join(folder, 'a.gguf');
  const tool = (...words) => spawnSync(
    process.execPath,
    [
      'web/engine/bin/bezel.mjs', 'train', MODEL, file, '--backend', backend, '--out', out,
      '--peft', path.join(folder, 'peft'), ...words,
    ],
    { encoding: 'utf8' },
  );
  try {
    fs.writeFileSync(file, data.map((line) => `${JSON.stringify(line)}\n`).join(''));
    const { status, stdout, stderr } = tool(
      '--steps', '6', '--warmup', '0', '--lr', '5e-3', '--schedule', 'constant', '--rank', '8',
      '--seed', '7', '--keep-all',
    );
    equal(status, 0, stderr);
    const steps = stdout.trim().split('\n').map((line) => JSON.parse(line));
    same(steps.map((s) => s.step), [1, 2, 3, 4, 5, 6]);
    ok(
      steps.every((s, i) => Math.abs(s.loss - whole.losses[i]) < 1e-5) && steps[0].tok_s > 0
        && steps[0].grad_norm > 0,
    );
    ok(fs.readFileSync(out).equals(Buffer.from(whole.gguf)));
    ok(
      fs.existsSync(path.join(folder, 'peft', 'adapter_config.json'))
        && fs.existsSync(path.join(folder, 'peft', 'adapter_model.safetensors')),
    );
    fs.appendFileSync(file, '{"prompt":"a"}\n');
    const bad = tool('--steps', '1');
    equal(bad.status, 1);
    ok(/^bezel train: .*line 5/.test(bad.stderr), bad.stderr);
  } finally {
    fs.rmSync(folder, { recursive: true });
  }
});

/** Trains with one of its files in a directory that is gone after the first step. */
async function trainIntoNothing(folder, option) {
  const gone = path.join(folder, 'gone'), file = path.join(folder, 'data.jsonl');
  fs.mkdirSync(gone, { recursive: true });
  fs.writeFileSync(file, data.map((line) => `${JSON.stringify(line)}\n`).join(''));
  const tool = spawn(
    process.execPath,
    [
      'web/engine/bin/bezel.mjs', 'train', MODEL, file, '--backend', backend, '--steps', '5',
      '--every', '1', '--out', path.join(folder, 'a.gguf'), option, path.join(gone, 'x'),
    ],
    { env: { ...process.env, TMPDIR: folder } },
  );
  let said = '';
  tool.stderr.on('data', (piece) => (said += piece));
  tool.stdout.on('data', () => fs.rmSync(gone, { recursive: true, force: true }));
  const status = await new Promise((resolve) => tool.on('close', resolve));
  return { said, status };
}

test('the command-line tool keeps what was learned when a checkpoint or the '
  + 'adapter cannot be written', async () => {
  const folder = fs.mkdtempSync(path.join(os.tmpdir(), 'bezel-train-'));
  try {
    const first = await trainIntoNothing(folder, '--checkpoint');
    ok(
      /its directory does not exist; the training goes on without this checkpoint/.test(first.said),
      first.said,
    );
    ok(fs.statSync(path.join(folder, 'a.gguf')).size > 1000 && first.status === 1);
    const { said, status } = await trainIntoNothing(folder, '--out');
    const [, kept = ''] = /what was learned is in (\S+)/.exec(said) ?? [];
    ok(status === 1 && fs.statSync(kept).size > 1000, said);
  } finally {
    fs.rmSync(folder, { recursive: true });
  }
});

await done(process.argv[3]);
await engine.dispose();
