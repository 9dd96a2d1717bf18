// Diffusion models through the public API on the GPU, which a software adapter makes slow: few
// steps, and what differs by backend. tests/web/test_diffusion.mjs has the rest.
//
//   node tests/web/test_diffusion_gpu.mjs build/bezel [--only WORDS]
import { fileSource, GpuModel, loadWasm, openDevice } from '../../web/engine/dist/core.js';
import { Engine } from '../../web/engine/dist/index.js';
import { done, equal, ok, rejects, same, test } from './check.mjs';
import { syntheticDiffusion, trainedDiffusion } from './diffusion_model.mjs';
import './software_adapter.mjs';

const [native = 'build/bezel'] = process.argv.slice(2).filter((a) => !a.startsWith('--'));
const MODEL = syntheticDiffusion(native), CANVAS = 48;
const load = (backend) => Engine.load(MODEL, { backend, context: 512, sessions: 2, shared: 2 });
const gpu = await load('gpu'), cpu = await load('cpu');
const hello = [{ role: 'user', content: 'hello' }];
async function collect(stream) {
  const all = [];
  for await (const item of stream) all.push(item);
  return all;
}
const isAbort = (e) => e instanceof DOMException && e.name === 'AbortError';

test('the first step is the CPU\'s, and a canvas becomes text', async () => {
  const ask = { messages: hello, seed: 4, canvases: 1 };
  const [want] = await collect(cpu.diffusion.generate({ ...ask, steps: 1 }));
  const run = gpu.diffusion.generate({ ...ask, steps: 1 }), [step] = await collect(run);
  same(step.tokens, want.tokens);
  same(step.accepted, want.accepted);
  // f32 sums in another order, of numbers near 6
  step.entropy.forEach((e, i) => ok(Math.abs(e - want.entropy[i]) < 2e-3, `position ${i}: ${e}`));
  const { usage, canvases } = await run.result;
  same([usage.completion_tokens, canvases], [CANVAS, [{ steps: 1, stopped: 'steps' }]]);
});

test('steps come in order, two canvases long, and steps queued ahead are not seen', async () => {
  const run = gpu.diffusion.generate({
    messages: hello, seed: 5, steps: 3, confidence: 1e6, stability: 1, max_tokens: CANVAS + 2,
    entropy_bound: 1e6, t_min: 0.05, t_max: 0.05,
  });
  const steps = await collect(run), { canvases, usage } = await run.result;
  equal(canvases.length, 2);
  equal(usage.completion_tokens, CANVAS + 2);
  equal(usage.diffusion.steps, canvases.reduce((n, c) => n + c.steps, 0));
  same(steps.map((s) => [s.canvas, s.step]), canvases.flatMap((c, canvas) =>
    Array.from({ length: c.steps }, (_, i) => [canvas, i + 1])));
});

test('what is given stays, and the end token ends the answer', async () => {
  const answer = await gpu.chat.completions.create({
    messages: hello, diffusion: { steps: 1, canvas: ['A short answer.', { end: true }] },
  });
  same([answer.choices[0].message.content, answer.choices[0].finish_reason], [
    'A short answer.', 'stop',
  ]);
  const edited = await gpu.diffusion.edit({
    messages: hello, text: 'one two three', selection: [4, 7], steps: 1, seed: 1,
  }).result;
  ok(edited.text.startsWith('one') && edited.text.endsWith(' three'), edited.text);
});

test('an abort is heard within a canvas, and what comes next is whole', async () => {
  const stop = new AbortController();
  let seen = 0;
  await rejects(gpu.diffusion.generate({
    messages: hello, signal: stop.signal, onStep: () => ++seen === 1 && stop.abort(),
  }).result, isAbort);
  equal(seen, 1);
  const next = gpu.diffusion.generate({ messages: hello, steps: 1, canvases: 1, seed: 4 });
  equal((await next.result).tokens.length, CANVAS);
});

test('two answers at once are as each alone', async () => {
  const ask = (seed) => ({
    messages: [{ role: 'user', content: `number ${seed}` }], seed, steps: 2, canvases: 1,
    session: `number ${seed}`,
  });
  const textOf = (seed) => gpu.diffusion.generate(ask(seed)).result.then((r) => r.tokens);
  const alone = [await textOf(1), await textOf(2)];
  same(await Promise.all([1, 2].map(textOf)), alone);
});

test('a device that is lost within a canvas begins that canvas anew', async () => {
  const source = await fileSource(MODEL), devices = [];
  const open = async () => {
    devices.push(await openDevice({}));
    return devices.at(-1);
  };
  const model =
    await GpuModel.open(WebAssembly.compile(await loadWasm()), open, [source], { context: 256 });
  const conversation = await model.conversation(), prompt = model.tokenize('hello');
  const run = async (lose, script = {}) => {
    await conversation.set(prompt);
    const seen = [], diffusion = { steps: 2, canvases: 2, ...script };
    for await (const s of conversation.denoise({ seed: 3, diffusion })) {
      seen.push(s);
      if (lose && seen.length === 3) devices.at(-1).device.destroy();
    }
    return { seen, tokens: [...conversation.tokens] };
  };
  const whole = await run(false), lost = await run(true);
  same(whole.seen.map((s) => [s.canvas, s.step]), [[0, 1], [0, 2], [1, 1], [1, 2]]);
  equal(devices.length, 2);
  // what was queued before the loss may still have come
  const ends = lost.seen.filter((s) => s.final).map((s) => s.canvas);
  same(ends, [0, 1]);
  equal(lost.tokens.length, whole.tokens.length);
  same(lost.tokens.slice(0, prompt.length + CANVAS), whole.tokens.slice(0, prompt.length + CANVAS));
  // a script goes on where it was: two canvases that begin, with two steps each
  const numbers = (n, k) => Array.from({ length: n * CANVAS }, (_, i) => (i * k) % 1000);
  const random = numbers(6, 7), sampled = numbers(4, 11);
  const { seen } = await run(true, { random, sampled, entropy_bound: 0 });
  const first = seen.findLast((s) => s.canvas === 1 && s.step === 1), from = 4 * CANVAS;
  first.noisy.forEach((id, i) =>
    equal(id, first.accepted[i] ? sampled[2 * CANVAS + i] : random[from + i], `position ${i}`));
  conversation.close();
  model.close();
  source.close();
});

test('tiny-diffusion knows a fact on the GPU too', async () => {
  const tiny = await Engine.load(trainedDiffusion, { backend: 'gpu' });
  const { text, canvases } = await tiny.diffusion.generate({
    messages: [{ role: 'user', content: 'What is the capital of France?' }], seed: 1,
  }).result;
  ok(text.includes('Paris'), text);
  equal(canvases[0].stopped, 'stable');
  await tiny.dispose();
});

const only = process.argv.indexOf('--only');
await done(only > 0 ? process.argv[only + 1] : undefined);
await gpu.dispose();
await cpu.dispose();
