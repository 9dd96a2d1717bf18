// The op table of tests/ops_cases.h within the limits that every WebGPU device has. Dawn's null
// backend has just those; it validates kernels, pipelines, bindings and dispatches as always and
// computes nothing. What the same programs compute is for test_ops.mjs --as spec.
//
//   node tests/web/test_limits.mjs [build/wasm/ops_test.wasm]
import fs from 'node:fs';
import { createRequire } from 'node:module';

import { done, ok, rejects, test } from './check.mjs';

const { create } =
  createRequire(new URL('../../web/engine/package.json', import.meta.url))('webgpu');
Object.defineProperty(globalThis, 'navigator', {
  value: { gpu: create(['backend=null']) }, configurable: true,
});
const { Core, Gpu, openDevice, profiles } = await import('../../web/engine/dist/core.js');
const wasm = fs.readFileSync(process.argv[2] ?? 'build/wasm/ops_test.wasm');

/** Records and submits every case as a core does that is told `limits`, with the choices of a
 *  profile; how many there were. */
async function recordAll(profile, limits = {}) {
  const info = await openDevice({ profile: 'spec' });
  const gpu =
    new Gpu({ ...info, names: { ...info.names, profile }, limits: { ...info.limits, ...limits } });
  const core = await Core.load(wasm, gpu);
  await core.bringTraining();
  await core.bringCanvas();
  core.checkNumber(core.exports.ops_test_open());
  const backend = core.checkNumber(core.exports.ops_test_add(0));
  let n = 0;
  try {
    for (let i = 0; core.exports.ops_test_op(i); i++) {
      if (!core.resultText()) continue;
      core.exports.ops_test_begin(i);
      const state = core.exports.ops_test_record(i, backend);
      const { op, format, why, program } = JSON.parse(core.resultText());
      try {
        if (state < 0) core.fail();
        await gpu.ready();
        gpu.submit(program);
        await gpu.ready();
      } catch (e) {
        throw new Error(`${op} ${format} (${why}): ${e.message}`, { cause: e });
      } finally {
        core.exports.ops_test_recorded();
        core.exports.ops_test_end();
      }
      n++;
    }
  } finally {
    gpu.close();
  }
  return n;
}

test('what the core records for any op is within the limits that all devices have', async () => {
  for (const profile of ['spec', 'nvidia']) ok(await recordAll(profile) > 300, profile);
});

test('the device that says so refuses more buffers, memory or threads than that', async () => {
  const { device, limits } = await openDevice({ profile: 'spec' }), { most } = profiles.spec;
  for (const key of Object.keys(most)) ok(limits[key] === most[key], `${key}: ${limits[key]}`);
  await rejects(recordAll('nvidia', { maxStorageBuffers: 12 }), /storage buffers/);
  const make = (body, n) => device.createComputePipelineAsync({
    layout: 'auto',
    compute: {
      module: device.createShaderModule({ code: `override N : u32; ${body}` }), constants: { N: n },
    },
  });
  const room =
    'var<workgroup> a : array<u32, N>; @compute @workgroup_size(1) fn main() { a[0] = 1; }';
  const threads = '@compute @workgroup_size(N) fn main() {}';
  await make(room, 4096);
  await rejects(make(room, 4097), /storage/);
  await make(threads, 256);
  await rejects(make(threads, 257), /workgroup/i);
  device.destroy();
});

await done();
