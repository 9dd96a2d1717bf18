// A diffusion model's canvases on the GPU against the CPU: the same tokens, accepted positions and
// best tokens after every step, for the same noise.
//
//   node tests/web/test_canvas.mjs build/bezel
//   deno run -A tests/web/test_canvas.mjs build/bezel
import { execFileSync } from 'node:child_process';
import { mkdirSync, readFileSync, rmSync } from 'node:fs';

import {
  Core, CpuEngine, Gpu, GpuEngine, loadWasm, memorySource, openDevice,
} from '../../web/engine/dist/core.js';
import {
  CANVAS_STATE, CANVAS_STOP, readHostCanvas,
} from '../../web/engine/dist/engine/boundary.js';
import { addAdapter } from '../../web/engine/dist/engine/cpu_engine.js';
import { done, equal, ok, same, test } from './check.mjs';
import { linearsOf, loraFile, peftFile } from './lora_file.mjs';
import './software_adapter.mjs';

const native = process.argv[2] ?? 'build/bezel';
const model = `build/tmp/canvas_${process.pid}.gguf`;
const N = 48, VOCAB = 1024; // of tiny-diffusion
const prompt = Int32Array.from({ length: 61 }, (_, i) => (i === 0 ? 2 : 5 + (i * 7919) % 290));

/** A router's last bits change what experts a row has, and so all that follows: here it has all. */
function withAllExperts(bytes) {
  const key = 'diffusion-gemma.expert_used_count', at = bytes.indexOf(key) + key.length + 4;
  equal(bytes.readUInt32LE(at), 4);
  bytes.writeUInt32LE(16, at);
  return new Uint8Array(bytes);
}

/** What a session shows: where it is, and a copy of the words as they are now. */
function canvasOf(core, session) {
  core.checkNumber(core.exports.bz_wasm_canvas(session.ptr));
  return readHostCanvas(core.result().slice().buffer);
}

const shownOf = (core, { words, nShown }) =>
  new Uint32Array(core.memory.buffer, words, nShown).slice();

/** A step in words that compare. */
function told(words, { n, ids, best, entropy, accepted }) {
  const view = new DataView(words.buffer);
  const at = (first, k = n) => [...words.subarray(first, first + k)];
  const state = (field) => view.getUint32(CANVAS_STATE[field], true);
  return {
    step: state('step'),
    stopped: CANVAS_STOP[state('stopped')],
    stable: state('stable'),
    nAccepted: state('nAccepted'),
    ids: at(ids),
    best: at(best),
    accepted: at(accepted, Math.ceil(n / 32)),
    entropy: [...new Float32Array(words.buffer, 4 * entropy, n)],
    mean: view.getFloat32(CANVAS_STATE.meanEntropy, true),
  };
}

/** Every step of a text on the CPU, with all that the next one begins with. */
function onCpu(core, session, options) {
  const x = core.exports, steps = [], about = canvasOf(core, session);
  session.set(prompt);
  const gen = core.with(JSON.stringify(options), (p, n) =>
    core.check(x.bz_wasm_generation_open(session.ptr, p, n)));
  let text = '';
  for (let over = 0; !over;) {
    over = core.checkNumber(x.bz_wasm_generation_next(gen));
    text += core.resultText();
    const { buffer } = core.memory;
    steps.push({
      told: told(shownOf(core, about), about),
      words: new Uint32Array(buffer, about.words, about.nWords).slice(),
      soft: new Float32Array(buffer, about.soft, about.nSoft).slice(),
    });
  }
  x.bz_wasm_generation_close(gen);
  return { steps, text, tokens: [...session.tokens] };
}

/** The same on the GPU, driven as bz_wasm_gpu_canvas_* say. ahead: steps that are queued before the
 *  last one's words are there. from: what the CPU had; each step begins with that. */
async function onGpu(engine, session, options, { ahead = 0, horizon = 128, from } = {}) {
  const { core, gpu } = engine, x = core.exports, steps = [], about = canvasOf(core, session);
  const put = (buffer, numbers) => core.with(new Uint8Array(numbers.buffer), (p, n) =>
    gpu.imports.buffer_write(buffer, 0, p, n));
  session.truncate(0);
  await session.feed(prompt);
  const program = await session.record(() => x.bz_wasm_gpu_canvas_record(session.ptr, horizon));
  const gen = core.with(JSON.stringify(options), (p, n) =>
    core.check(x.bz_wasm_generation_open(session.ptr, p, n)));
  let text = '';
  while (x.bz_wasm_generation_has_room(gen)) {
    core.checkNumber(x.bz_wasm_gpu_canvas_begin(gen));
    const queued = [];
    let first = 1, n = 0;
    while (!n) {
      while (queued.length <= ahead) {
        core.checkNumber(x.bz_wasm_gpu_canvas_step(gen, first));
        first = 0;
        const into = new Uint8Array(4 * about.nShown);
        queued.push([into, gpu.run([program.number, { buffer: about.buffer, offset: 0, into }])]);
      }
      const [into, brought] = queued.shift();
      await brought;
      new Uint8Array(core.memory.buffer, about.words, into.length).set(into);
      n = core.checkNumber(x.bz_wasm_gpu_canvas_advance(gen));
      text += core.resultText();
      steps.push({ told: told(shownOf(core, about), about) });
      const same = from?.steps[steps.length - 1];
      if (same) put(about.buffer, same.words);
      if (same) put(about.soft, same.soft);
    }
    for (const [into, brought] of queued) {
      await brought;
      same(told(new Uint32Array(into.buffer), about), steps.at(-1).told, 'after the last step');
    }
    await session.feed(Int32Array.from(steps.at(-1).told.best.slice(0, n)));
    core.checkNumber(x.bz_wasm_gpu_canvas_taken(gen));
    text += core.resultText();
  }
  x.bz_wasm_generation_close(gen);
  session.forget(program);
  return { steps, text, tokens: [...session.tokens] };
}

/** f32 sums in another order: entropies, of 5 nats or more, are near. All else is equal. */
function alike(got, want) {
  const far = 2e-3;
  equal(got.steps.length, want.steps.length, 'steps');
  got.steps.forEach((step, i) => {
    const { entropy, mean, ...rest } = step.told, other = want.steps[i].told;
    const { entropy: h, mean: m, ...wanted } = other;
    same(rest, wanted, `step ${i}`);
    entropy.forEach((e, k) => ok(Math.abs(e - h[k]) < far, `step ${i}: ${e} for ${h[k]}`));
    ok(Math.abs(mean - m) < far, `mean ${mean} for ${m}`);
  });
  equal(got.text, want.text);
  same(got.tokens, want.tokens);
}

let seed = 9;
const random = (below) => (seed = (Math.imul(seed, 1103515245) + 12345) >>> 0) % below;
const canvases = (n) => Array.from({ length: n * N }, () => random(VOCAB));

const runs = {
  'two canvases of a seed': { seed: 3, diffusion: { steps: 2, canvases: 2 } },
  'hot, then cold': { seed: 4, diffusion: { steps: 3, canvases: 1, t_min: 0.05, t_max: 3 } },
  'all accepted at once': {
    seed: 5, diffusion: { steps: 4, canvases: 1, entropy_bound: 400, stability: 1, confidence: 99 },
  },
  'positions that stay': {
    seed: 6,
    diffusion: {
      steps: 3, canvases: 1, canvas: canvases(1),
      fixed: Array.from({ length: N }, (_, i) => +(i % 3 === 0)),
    },
  },
  'noise and draws of a script': {
    seed: 7, diffusion: { steps: 2, canvases: 2, random: canvases(6), sampled: canvases(4) },
  },
};

mkdirSync('build/tmp', { recursive: true });
execFileSync(native, ['synth', 'tiny-diffusion', model, '--force']);
const device = await openDevice({});
const cpuCore = await Core.load(await loadWasm());
const source = memorySource('canvas.gguf', withAllExperts(readFileSync(model)));
const cpu = CpuEngine.open(cpuCore, [source]), reference = cpu.session(400);
const expected = new Map(
  Object.entries(runs).map(([name, options]) => [name, onCpu(cpuCore, reference, options)]),
);

test('the core says what a canvas model is', () => {
  equal(cpu.info.n_canvas, N);
  same(Object.keys(cpu.info.diffusion).sort(), [
    'confidence', 'entropy_bound', 'stability', 'steps', 't_max', 't_min',
  ]);
});

test('options that make no sense are refused', () => {
  for (const [options, why] of [
    [{ diffusion: { canvas: [1, 2] } }, /a list of numbers, 48 for each canvas/],
    [{ diffusion: { sampled: [...canvases(1).slice(1), 'x'] } }, /a list of whole numbers/],
    [{ diffusion: { fixed: canvases(2) } }, /of one canvas/],
  ])
    ok(why.test(catching(() => onCpu(cpuCore, reference, options))), `${why}`);
});

function catching(fn) {
  try {
    fn();
  } catch (e) {
    return e.message;
  }
  return '';
}

const tier = device.limits.subgroupMax ? 'subgroup' : 'plain';
let gpu, engine, session;

test(`${tier} tier: the weights go to the device`, async () => {
  gpu = new Gpu(device);
  const core = await Core.load(await loadWasm(), gpu);
  await core.bringCanvas();
  engine = await GpuEngine.open(core, [source], { tier });
  session = engine.session(400, 64);
  ok(4 * canvasOf(core, session).nShown <= 4096, 'a step brings 4 KiB at most');
});

// The model is not trained: what differs in the last bits grows a hundredfold a step. So each step
// begins with the CPU's numbers.
for (const [name, options] of Object.entries(runs))
  test(`${tier} tier, ${name}: every step is the CPU's`, async () => {
    const from = expected.get(name);
    alike(await onGpu(engine, session, options, { from }), from);
  });

test(`${tier} tier: steps queued ahead are those that are awaited, and change nothing once `
  + 'the canvas has stopped; so are steps shaped for a long history', async () => {
  const options = runs['all accepted at once'];
  const want = await onGpu(engine, session, options);
  same(await onGpu(engine, session, options, { ahead: 2, horizon: 400 }), want);
});

test(`${tier} tier: a cache of halves gives what it gives on the CPU`, async () => {
  const options = { seed: 6, diffusion: { steps: 1, canvases: 1 } };
  const other = engine.session(400, 64, 'f16');
  const want = onCpu(cpuCore, cpu.session(400, 64, 'f16'), options);
  // A key next to the middle of two halves may round the other way, by 2^-11 of it. So entropies
  // are off by more than f32 sums are, and of two tokens that are all but equal the other may win.
  const [{ told }] = (await onGpu(engine, other, options)).steps, [{ told: wanted }] = want.steps;
  told.entropy.forEach((e, k) =>
    ok(Math.abs(e - wanted.entropy[k]) < 5e-2, `${e} for ${wanted.entropy[k]}`));
  const others = told.best.filter((id, k) => id !== wanted.best[k]).length;
  ok(others <= N / 12, `${others} of ${N} positions have another token`);
  const [{ told: { mean } }] = onCpu(cpuCore, reference, options).steps;
  ok(Math.abs(want.steps[0].told.mean - mean) > 1e-6, 'as with f32');
  other.close();
});

test(`${tier} tier: adapters of every linear, self-conditioning too, are in each step`,
  async () => {
  const name = 'two canvases of a seed', { core } = engine;
  const bytes = loraFile(linearsOf(cpuCore, source), 4, { architecture: 'diffusion-gemma' });
  const file = memorySource('adapter.gguf', bytes);
  const id = cpu.addAdapter(file), other = addAdapter(core, engine.ptr, file, {});
  const from = onCpu(cpuCore, cpu.session(400), runs[name]);
  alike(await onGpu(engine, session, runs[name], { from }), from);
  ok(Math.abs(from.steps[0].told.mean - expected.get(name).steps[0].told.mean) > 1e-3);
  cpu.removeAdapter(id);
  core.checkNumber(core.exports.bz_wasm_adapter_remove(engine.ptr, other));
});

test(`${tier} tier: what PEFT learned of a pass acts in that pass alone`, async () => {
  const { core } = engine, linears = linearsOf(cpuCore, source), means = [];
  for (const seeds of [{ encoder: 7, decoder: 9 }, { encoder: 7 }, { decoder: 9 }]) {
    const { bytes, config } = peftFile(linears, 4, seeds);
    const file = memorySource('adapter_model.safetensors', bytes);
    const id = cpu.addAdapter(file, { config });
    const other = addAdapter(core, engine.ptr, file, { config });
    const from = onCpu(cpuCore, cpu.session(400), runs['two canvases of a seed']);
    alike(await onGpu(engine, session, runs['two canvases of a seed'], { from }), from);
    means.push(from.steps[0].told.mean);
    cpu.removeAdapter(id);
    core.checkNumber(core.exports.bz_wasm_adapter_remove(engine.ptr, other));
  }
  for (const [i, mean] of means.entries())
    ok(means.every((m, k) => k === i || Math.abs(m - mean) > 1e-3), means.join(' '));
});

test(`${tier} tier: a text of it has no logits`, () => {
  const { core } = engine;
  equal(core.exports.bz_wasm_gpu_record(session.ptr, 1, 1, 128), 0);
});

test(`${tier} tier: closing leaves nothing on the device`, () => {
  session.close();
  engine.close();
  equal(gpu.bytes, 0);
});

await done();
rmSync(model, { force: true });
