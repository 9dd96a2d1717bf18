// encode.mjs - what the host spends on encoding a token's step, with the very dispatches that a
// large GPU gets.
//
//   node --expose-gc bench/encode.mjs MODEL.gguf [--steps 400]
//
// No GPU is needed: on Chromium's software adapter, which has buffers enough, the core is told that
// it is a large one. Kernels are stand-ins that compile at once, with the same bindings; nothing is
// submitted. So the calls of WebGPU are timed and what Dawn does in them, but for submit(). It
// takes as much memory as the model. Steps are encoded 32 in a row, then what they left is
// collected: a device's thread frees a step's commands when it has run, which nobody does here, and
// collections come every 30 to 60 tokens while a text is written. With eight in a row most steps
// meet what a collection does in the background, and take a seventh longer.
import { parseArgs } from 'node:util';

import '../tests/web/software_adapter.mjs';
const { GpuModel, fileSource, loadWasm, openDevice } = await import('../web/engine/dist/core.js');

const { values: o, positionals: [file] } =
  parseArgs({ allowPositionals: true, options: { steps: { type: 'string', default: '400' } } });
if (!file || !globalThis.gc || !(+o.steps > 0)) {
  console.error('usage: node --expose-gc bench/encode.mjs MODEL.gguf [--steps N]');
  process.exit(2);
}
const ROW = 32, WARM = 100, steps = +o.steps;

/** The software adapter as a large GPU whose kernels do nothing. */
async function largeDevice() {
  const opened = await openDevice(), { device, limits } = opened;
  const newModule = device.createShaderModule.bind(device);
  const newPipeline = device.createComputePipelineAsync.bind(device);
  let n = 0;
  device.createShaderModule = () => ({});
  device.createComputePipelineAsync = ({ layout, label }) => newPipeline({
    layout,
    label,
    compute: {
      module: newModule({
        code: `const NUMBER = ${n++}; @compute @workgroup_size(1) fn main() { }`,
      }),
    },
  });
  return {
    ...opened,
    software: false,
    names: { ...opened.names, profile: 'nvidia' },
    limits: {
      ...limits, subgroupMin: 32, subgroupMax: 32, maxInvocations: 1024, maxWorkgroupBytes: 49152,
    },
  };
}

async function timed(gpu, items) {
  await gpu.ready(true);
  const { queue } = gpu, took = [], n = gpu.dispatches(items[0]) + gpu.dispatches(items[1]);
  for (let i = -WARM; i < steps; i++) {
    const start = performance.now(), waiting = queue.encode(items, Infinity, () => {});
    if (i >= 0) took.push(1000 * (performance.now() - start));
    for (const [, staging] of waiting) queue.keepStaging(staging);
    if (i % ROW === 0) {
      globalThis.gc();
      await new Promise((resolve) => setImmediate(resolve));
    }
  }
  took.sort((a, b) => a - b);
  const at = (p) => took[Math.floor(p * took.length)];
  const text = (us) => `${us.toFixed(0)} us (${(us / n).toFixed(2)} a dispatch)`;
  console.log(
    `${file}: a step of ${n} dispatches is encoded in ${text(at(0.5))}, `
      + `the fastest tenth in ${text(at(0.1))} or less`,
  );
}

const { engine } = await GpuModel.open(await loadWasm(), largeDevice, [await fileSource(file)], {
  selfTest: false, table: 'gpu',
});
const { gpu } = engine;
const session = engine.session(1024, 64);
gpu.run = async (items) => {
  if (items.length === 3) {
    await timed(gpu, items);
    process.exit(0);
  }
  items.at(-1).into?.set([5, 0, 0, 0]); // some token: nobody has drawn one
};
await session.read(Int32Array.of(2));
for await (const _ of session.generate({ temperature: 0, ignore_end: true, n_max: 4 }));
console.error('no step was recorded');
process.exit(1);
