// Every variant of every kernel, as the module expands it: valid WGSL for the compiler here. node
// tests/web/test_kernels.mjs; in Deno for wgpu's. What they compute is for test_ops.mjs. Those that
// need what the device lacks are left out: no software adapter has subgroup matrices, for which
// there is test_matrix.mjs, and Deno's has no subgroups.
import { done, equal, ok, test, throws } from './check.mjs';
import { numbers, openHarness } from './harness.mjs';
import {
  Core, loadCanvasKernels, loadTrainingKernels, loadWasm,
} from '../../web/engine/dist/core.js';

test('every variant of every kernel is valid', async () => {
  const h = await openHarness(), { device, limits } = h.device, wrong = [];
  const lacks = [
    ...(limits.hasMatrix ? [] : ['matrix']), ...(limits.subgroupMax ? [] : ['subgroup']),
  ].map((tier) => new RegExp(`[[ ]${tier}[ \\]]`)); // of `attention[subgroup prefix]`
  const all = Object.entries(numbers).filter(([name]) => !lacks.some((tier) => tier.test(name)));
  let ms = 0, most = 0;
  for (const [name, number] of all) {
    const start = performance.now(), kernel = h.core.kernel(number);
    const took = performance.now() - start;
    ms += took;
    most = Math.max(most, took);
    equal(kernel.name, name);
    device.pushErrorScope('validation');
    device.createShaderModule({ label: name, code: kernel.source });
    const error = await device.popErrorScope();
    if (error) wrong.push(`${name}: ${error.message}`);
  }
  console.log(
    `  ${all.length} variants of ${Object.keys(numbers).length}, `
      + `expanded in ${(ms / all.length).toFixed(3)} ms each, ${most.toFixed(2)} ms at most`,
  );
  h.close();
  equal(wrong.join('\n'), '');
});

for (const [whose, load, kernel, bringAll] of [
  ["training's", loadTrainingKernels, 'adamw', (core) => core.bringTraining()],
  ["a canvas's", loadCanvasKernels, 'canvas_step', (core) => core.bringCanvas()],
])
  test(`${whose} kernels are in a file of their own, which must be of the module's build`,
    async () => {
    const core = await Core.load(await loadWasm()), text = await load(), number = numbers[kernel];
    const bring = (bytes) =>
      core.with(bytes, (p, n) => core.checkNumber(core.exports.bz_wasm_kernels_bring(p, n)));
    ok(core.kernel(numbers.add).source.includes('fn main'));
    throws(() => core.kernel(number), /was not brought/);
    const other = text.slice();
    other['//!build '.length] ^= 1;
    for (const bytes of [other, text.subarray(0, 12), new Uint8Array(1)])
      throws(() => bring(bytes), /of another version than the engine/);
    throws(() => core.kernel(number), /was not brought/);
    await bringAll(core);
    ok(core.kernel(number).source.includes('fn main'));
  });

test('files of kernels can come in any order, and twice', async () => {
  const core = await Core.load(await loadWasm());
  await core.bringCanvas();
  await core.bringTraining();
  const live = core.exports.bz_wasm_live(), text = await loadCanvasKernels();
  core.with(text, (p, n) => core.checkNumber(core.exports.bz_wasm_kernels_bring(p, n)));
  equal(core.exports.bz_wasm_live(), live, 'nothing is kept of what is there already');
  for (const kernel of ['adamw', 'canvas_step'])
    ok(core.kernel(numbers[kernel]).source.includes('fn main'));
});

await done();
