// Training on the GPU against the CPU: gradients of every matrix and ten steps of AdamW on three
// small models, what is left of a step that was stopped, checkpoints from one to the other, packed
// sequences, and what comes back.
//
//   node tests/web/test_gpu_train.mjs
import {
  Core, CpuEngine, Gpu, GpuEngine, fileSource, loadWasm, openDevice,
} from '../../web/engine/dist/core.js';
import { GpuTraining } from '../../web/engine/dist/train/gpu_training.js';
import { CpuTraining } from '../../web/engine/dist/train/training.js';
import { done, equal, ok, rejects, same, test } from './check.mjs';
import './software_adapter.mjs';

const line = (prompt, completion) => JSON.stringify({ prompt, completion });
const texts = {
  data: [
    line('one two', 'three'), line('a b c d', 'e f g'), line('what is it', 'it is'),
    line('x', 'yes'), line('hello there', 'ok then'),
  ].join('\n'),
  held: line('one two', 'four'),
};
const wishes = {
  rank: 4, alpha: 8, targets: ['blk.'], steps: 14, lr: 1e-3, schedule: 'constant', warmup: 0,
  clip: 0, seed: 3, sequence: 48,
};
const HEAD = 44, SUM = 32; // bytes around a checkpoint's numbers

const device = await openDevice({}), wasm = await loadWasm();

/** The matrices of a checkpoint, six each: A, its moments, B, its moments. */
function tensors(training, checkpoint) {
  const { core } = training;
  core.check(core.exports.bz_wasm_train_gpu_mirror(training.ptr));
  const list = new Uint32Array(core.result().buffer);
  core.exports.bz_wasm_train_gpu_forget(training.ptr);
  const out = [], bytes = checkpoint.slice(HEAD, -SUM);
  for (let i = 0, at = 0; i < list.length; at += list[i + 2], i += 3)
    out.push(new Float32Array(bytes.buffer, at, list[i + 2] / 4));
  return out;
}

const length = (v) => Math.sqrt(v.reduce((s, x) => s + x * x, 0));

for (const name of ['e2b', 'kv', 'moe']) {
  const model = `tests/golden/model_${name}.gguf`, losses = { cpu: [], gpu: [] };
  let gpu, engine, cpuEngine, cpu, training, start;

  test(`${name}: both begin alike, and measure the same`, async () => {
    gpu = new Gpu(device);
    engine = await GpuEngine.open(
      await Core.load(wasm, gpu), [await fileSource(model)], { tier: 'plain' },
    );
    training = await GpuTraining.open(engine, texts, wishes, () => {});
    cpuEngine = await CpuEngine.open(await Core.load(wasm), [await fileSource(model)]);
    cpu = new CpuTraining(cpuEngine.core, cpuEngine.ptr, texts, wishes, () => {});
    const { bytes, ...about } = cpu.about, { bytes: more, ...others } = training.about;
    same(others, about);
    ok(more > bytes && about.sequences < about.examples, 'packed');
    const want = await cpu.evaluate(), got = await training.evaluate();
    ok(Math.abs(want - got) < 1e-4, `${got} for ${want}`);
  });

  test(`${name}: the gradient of every A and B is the CPU's within 1e-4`, async () => {
    for (let i = 0; i < 2; i++) losses.cpu.push((await cpu.step()).loss); // so that B is not zero
    start = await cpu.save();
    await training.load(start);
    const want = await cpu.step(), got = await training.step();
    ok(
      Math.abs(got.loss - want.loss) < 1e-4
        && Math.abs(got.grad_norm - want.grad_norm) < 1e-4 * want.grad_norm,
      JSON.stringify([got, want]),
    );
    const before = tensors(training, start), a = tensors(training, await cpu.save());
    const b = tensors(training, await training.save());
    let worst = 0, seen = 0;
    for (let i = 0; i < before.length; i += 3) {
      const grad = (of) => of[i + 1].map((m, k) => m - 0.9 * before[i + 1][k]); // a tenth of it
      const right = grad(a), off = length(grad(b).map((v, k) => v - right[k]));
      const size = length(right);
      if (size) seen++;
      worst = Math.max(worst, off / (size || 1));
    }
    console.log(
      `  ${before.length / 3} matrices, ${seen} with a gradient, worst ${worst.toPrecision(2)}`,
    );
    ok(worst <= 1e-4 && seen > 0.9 * (before.length / 3));
  });

  if (name === 'kv')
    test(`${name}: ten steps of AdamW lose what they lose on the CPU`, async () => {
    for (let i = 0; i < 10; i++) {
      losses.cpu.push((await cpu.step()).loss);
      losses.gpu.push((await training.step()).loss);
    }
    const off = Math.max(...losses.gpu.map((v, i) => Math.abs(v - losses.cpu[i + 2])));
    ok(off < 1e-4, `${off}: ${losses.gpu} for ${losses.cpu}`);
  });

  if (name === 'e2b')
    test('a step that was stopped leaves nothing behind; the same step again gives the same bits',
        async () => {
    await training.load(start);
    const whole = (await training.step(), await training.save());
    await training.load(start);
    await rejects(training.step(AbortSignal.abort()), /stopped/);
    await training.step();
    same(await training.save(), whole);
    await training.load(start);
    const { report, submits, dispatches } = await training.profile();
    same(await training.save(), whole, 'timed dispatch by dispatch');
    ok(
      report.step === 3 && submits >= 2
        && ['matmul_bwd[bf16', 'adamw'].every((name) =>
          dispatches.some((d) => d.kernel.startsWith(name) && d.ns >= 0 && d.groups > 0)),
    );
  });

  if (name === 'e2b') test('the adapter it gives is the one that the core has', async () => {
    const { gguf, safetensors, config } = await training.files('golden');
    ok(gguf.length > 1000 && safetensors.length > 1000 && JSON.parse(config).r === 4);
    await cpu.load(await training.save());
    same((await cpu.files('golden')).gguf, gguf);
  });

  if (name === 'kv')
    test('with dropout, and all of a pass kept, steps lose what they lose on the CPU', async () => {
    const others = { ...wishes, dropout: 0.3, keep_all: true };
    training.close();
    cpu.close();
    training = await GpuTraining.open(engine, texts, others, () => {});
    cpu = new CpuTraining(cpuEngine.core, cpuEngine.ptr, texts, others, () => {});
    for (let i = 0; i < 4; i++) {
      const want = await cpu.step(), got = await training.step();
      ok(
        Math.abs(got.loss - want.loss) < 1e-4
          && Math.abs(got.grad_norm - want.grad_norm) < 1e-4 * want.grad_norm,
        JSON.stringify([got, want]),
      );
      if (i)
        ok(Math.abs(want.loss - losses.cpu[i]) > 1e-4, `another loss than without: ${want.loss}`);
    }
    const want = await cpu.evaluate(), got = await training.evaluate();
    ok(Math.abs(want - got) < 1e-4, `measured without it: ${got} for ${want}`);
  });

  if (name === 'e2b')
    test('sequences of many lengths, measured in between, lose what the CPU loses', async () => {
      const long = (n) => line('one two '.repeat(n), 'three four '.repeat(n));
      const many = { data: [long(1), long(6), long(12), long(3)].join('\n'), held: long(8) };
      const others = { ...wishes, no_packing: true, sequence: 256 };
      training.close();
      cpu.close();
      training = await GpuTraining.open(engine, many, others, () => {});
      cpu = new CpuTraining(cpuEngine.core, cpuEngine.ptr, many, others, () => {});
      for (let i = 0; i < 6; i++) {
        const want = await cpu.step(), got = await training.step();
        ok(Math.abs(got.loss - want.loss) < 1e-4, JSON.stringify([got, want]));
        ok(Math.abs((await training.evaluate()) - (await cpu.evaluate())) < 1e-4);
      }
    });

  test(`${name}: nothing is left on the device`, async () => {
    cpu.close();
    cpuEngine.close();
    training.close();
    engine.close();
    equal(gpu.bytes, 0);
  });
}

await done();
device.device.destroy(); // else its threads do not end
