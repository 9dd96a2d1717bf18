// The kernels that a model needs: each is tested, a wrong one gives way, and the device's profile
// and tier choose them.
//
//   node tests/web/test_gpu_tiers.mjs build/bezel [part of a test's name]
import { GpuEngine, fileSource } from '../../web/engine/dist/core.js';
import { RESERVE } from '../../web/engine/dist/engine/boundary.js';
import { equal, ok, rejects, same, test } from './check.mjs';
import { MODEL, answer, device, finish, fresh, ids, synth, worst } from './gpu_load_fixture.mjs';
import { patch } from './patch.mjs';

/** A device with wide workgroups, as large GPUs are: one that multiplies int8, and one that does
 *  not. */
const as = (profile) => ({
  ...device, names: { ...device.names, profile }, limits: { ...device.limits, subgroupMax: 8 },
});
const large = as('nvidia'), floats = as('apple');

for (const [name, path, options, on] of [
  ['e2b', MODEL, {}],
  ['moe, plain', 'tests/golden/model_moe.gguf', { tier: 'plain' }],
  ['kv, a cache of halves', 'tests/golden/model_kv.gguf', { cache: 'f16' }],
  ['a wide model on a large device', synth('tiny-wide'), {}, large],
  ['the widest on a large device', synth('tiny-widest'), {}, large],
  ['experts on a large device', 'models/tiny-moe.q8_0.gguf', {}, large],
  ['a wide model on a device of floats', synth('tiny-wide'), {}, floats],
  ['the widest on a device of floats', synth('tiny-widest'), {}, floats],
  ['experts on a device of floats', 'models/tiny-moe.q8_0.gguf', {}, floats],
]) {
  test(`${name}: every kernel that the model uses `
    + 'is tested, and right', () => fresh(async (core, gpu) => {
    const engine = await GpuEngine.open(core, [await fileSource(path)], {
      ...options, context: 64, batch: 16, selfTest: true,
    });
    await engine.validation.all();
    const { selfTest, tier } = engine.device, session = engine.session(64, 16);
    same(selfTest.filter((t) => !t.ok || t.reason), []);
    equal(tier, options.tier ?? 'subgroup');
    equal(selfTest.some((t) => /\bsubgroup]$/.test(t.kernel)), tier === 'subgroup');
    const { scratch, cache, weights } = engine.estimate;
    equal(gpu.bytes, scratch + cache + weights, 'the test leaves nothing behind');
    const asked = gpu.pipelinesAsked;
    await session.read(ids);
    for await (const _ of session.generate({ n_max: 3, ignore_end: true }));
    equal(gpu.pipelinesAsked, asked, 'no step needs a pipeline that was not there');
    session.close();
    engine.close();
  }, on));
}

/** Such a device whose compiler has nothing to do, for what is recorded and never run. */
const idle = {
  ...large,
  device: new Proxy(device.device, {
    get: (of, key) =>
      (key === 'createComputePipelineAsync'
        ? async () => ({})
        : typeof of[key] === 'function' ? of[key].bind(of) : of[key]),
  }),
};

test('rows are shared out among the processors of a large device: 5,376 by row groups of three',
    () => fresh(async (core, gpu) => {
  const engine = await GpuEngine.open(core, [await fileSource(synth('tiny-widest'))], {
    context: 64, batch: 16, selfTest: false,
  });
  const session = engine.session(64, 16), x = core.exports;
  const program = core.check(x.bz_wasm_gpu_record(session.ptr, 1, 1, 64));
  // Down's 512 columns are 16 lanes' units, so a workgroup of 128 threads has eight row groups: 24
  // rows of the matrix, or with four rows a row group 32.
  const grids = gpu.listing(x.bz_wasm_gpu_program_number(program))
    .filter(({ kernel }) => /^linear(_no_lora)?\[.*int8/.test(kernel))
    .map(({ grid }) => grid[0]);
  ok(grids.includes(5376 / 24) && !grids.includes(5376 / 32), grids.join());
  x.bz_wasm_gpu_program_free(program);
  session.close();
  engine.close();
}, idle));

test('where there is room for a long text, the pipelines of a short one are asked for too',
    () => fresh(async (core, gpu) => {
  const engine = await GpuEngine.open(core, [await fileSource(synth('tiny-e2b'))], {
    context: 4096, batch: 16, selfTest: false,
  });
  const session = engine.session(4096, 16), x = core.exports;
  const free = (program) => x.bz_wasm_gpu_program_free(core.check(program));
  ok(x.bz_wasm_gpu_reserve(session.ptr, RESERVE.all) >= 0);
  const asked = gpu.pipelinesAsked;
  ok(asked > 0);
  free(x.bz_wasm_gpu_record(session.ptr, 12, 1, 12)); // the first prompt
  for (const [rows, horizon] of [[12, 12], [2, 128], [1, 128], [1, 4096]])
    free(x.bz_wasm_gpu_record(session.ptr, rows, 1, horizon));
  equal(gpu.pipelinesAsked, asked, 'no step needs a pipeline that was not there');
  session.close();
  engine.close();
}, idle));

test('a load asks for what the first prompt needs, then for what its tokens do, '
  + 'and what is queued meanwhile is all that a long text needs', () => fresh(async (core, gpu) => {
  const engine = await GpuEngine.open(core, [await fileSource(synth('tiny-e2b'))], {
    context: 4096, batch: 64, selfTest: false,
  });
  const session = engine.session(4096, 64), x = core.exports;
  const free = (program) => x.bz_wasm_gpu_program_free(core.check(program));
  const bytes = x.bz_wasm_gpu_reserve(session.ptr, RESERVE.bytes), before = gpu.bytes;
  equal(x.bz_wasm_gpu_reserve(session.ptr, RESERVE.first), bytes);
  equal(gpu.bytes, before, 'what is asked for takes no more');
  const first = gpu.pipelinesAsked;
  for (const rows of [8, 20, 32]) free(x.bz_wasm_gpu_record(session.ptr, rows, 1, rows));
  const draw = core.with('{"temperature":1}', (p, n) =>
    core.check(x.bz_wasm_gpu_draw_open(session.ptr, p, n)));
  free(x.bz_wasm_gpu_record_draw(session.ptr, draw, 0));
  x.bz_wasm_gpu_draw_close(draw);
  equal(gpu.pipelinesAsked, first, 'a text begins with what was asked for');
  const awaits = (rows, logits, horizon) =>
    x.bz_wasm_gpu_awaits(session.ptr, rows, logits, horizon, RESERVE.first, RESERVE.all);
  same(
    [awaits(8, 1, 20), awaits(1, 1, 4096), awaits(8, 8, 8), awaits(3, 1, 3)],
    [RESERVE.first, RESERVE.all, RESERVE.first, RESERVE.all],
    'nothing was tested here',
  );
  equal(gpu.pipelinesAsked, first, 'to look asks for nothing');
  x.bz_wasm_gpu_ask_queued(engine.ptr, RESERVE.steps);
  const steps = gpu.pipelinesAsked;
  ok(steps > first, `${first} of ${steps}`);
  equal(awaits(1, 1, 128), RESERVE.steps);
  for (const [rows, horizon] of [[8, 40], [20, 128], [32, 100], [1, 33], [1, 128]])
    free(x.bz_wasm_gpu_record(session.ptr, rows, 1, horizon));
  equal(gpu.pipelinesAsked, steps, 'a text goes on with what was asked for then');
  x.bz_wasm_gpu_ask_queued(engine.ptr, RESERVE.all);
  const all = gpu.pipelinesAsked;
  ok(all > steps, `${steps} of ${all}`);
  for (const [rows, logits, horizon] of [
    [64, 0, 4096], [8, 8, 4096], [3, 1, 20], [6, 1, 4000], [1, 1, 4096],
  ])
    free(x.bz_wasm_gpu_record(session.ptr, rows, logits, horizon));
  x.bz_wasm_gpu_reserve(session.ptr, RESERVE.all);
  equal(gpu.pipelinesAsked, all, 'no step needs a pipeline that was not there');
  x.bz_wasm_gpu_ask_queued(engine.ptr, RESERVE.rest);
  const rest = gpu.pipelinesAsked;
  for (let rows = 1; rows <= 64; rows++)
    for (let horizon = 128; horizon <= 4096; horizon *= 2)
      free(x.bz_wasm_gpu_record(session.ptr, rows, 1, horizon));
  equal(
    gpu.pipelinesAsked,
    rest,
    'and with the rest that is so for prompts and histories of any length',
  );
  session.close();
  engine.close();
}, idle));

test('prompts of any length take no more memory than was counted',
    () => fresh(async (core, gpu) => {
  const batch = 1024;
  const engine = await GpuEngine.open(core, [await fileSource(synth('tiny-widest'))], {
    context: batch, batch, selfTest: false,
  });
  const session = engine.session(batch, batch), before = gpu.bytes, x = core.exports;
  for (let rows = 1; rows <= batch; rows += 11)
    x.bz_wasm_gpu_program_free(core.check(x.bz_wasm_gpu_record(session.ptr, rows, 1, rows)));
  equal(gpu.bytes, before);
  session.close();
  engine.close();
}, idle));

test('a fast kernel that is wrong, and one that does not compile, give way to plain ones, '
  + 'and the answers stay right', () => fresh(async (core) => {
  const sources = [await fileSource(MODEL)], options = { context: 64, batch: 8, selfTest: true };
  let engine = await GpuEngine.open(core, sources, options);
  const right = await answer(engine);
  engine.close();
  patch(core, {
    'linear[bf16 subgroup]': (s) => s.replace('sum[r]', '1.01 * sum[r]'),
    'residual_norm[subgroup]': (s) => s.replace('inverseSqrt', 'inverseRoot'),
  });
  engine = await GpuEngine.open(core, sources, options);
  const { selfTest } = engine.device, failed = selfTest.filter((t) => !t.ok);
  same(failed.map((t) => t.kernel).sort(), ['linear[bf16 subgroup]', 'residual_norm[subgroup]']);
  ok(/kernel residual_norm\[subgroup]: .*inverseRoot/s.test(
    failed.find((t) => t.kernel.startsWith('residual_norm')).reason,
  ));
  ok(
    /kernel linear\[bf16 subgroup] computes wrong numbers .*\(nmse 0.0001\d*\)/.test(
      failed.find((t) => t.kernel.startsWith('linear')).reason,
    ),
    failed.map((t) => t.reason).join(),
  );
  for (const kernel of ['linear[bf16]', 'residual_norm'])
    ok(selfTest.some((t) => t.kernel === kernel && t.ok && !t.reason), kernel);
  const got = await answer(engine);
  ok(worst(got.logits, right.logits) < 5e-4); // f32 sums in another order
  same(got.drawn, right.drawn);
  engine.close();
}));

test('a plain kernel that is wrong, or does not compile, ends the load with its name',
    () => fresh(async (core) => {
  const sources = [await fileSource(MODEL)], options = { context: 64, batch: 8, selfTest: true };
  patch(core, { scale: (s) => s.replace('select(', '1.01 * select(') });
  await rejects(GpuEngine.open(core, sources, options), {
    kind: 'device',
    message: /^kernel scale computes wrong numbers on .*: this device cannot be used$/,
  });
  delete core.kernel;
  patch(core, { scale: (s) => s.replace('select(', 'choose(') });
  await rejects(GpuEngine.open(core, sources, options), {
    kind: 'device', message: /^kernel scale: .*choose/s,
  });
  delete core.kernel;
  (await GpuEngine.open(core, sources, options)).close();
}));

test('a tier that the device does not have is refused', async () => {
  const small = { ...device, limits: { ...device.limits, subgroupMin: 0, subgroupMax: 0 } };
  await fresh(async (core) => {
    const sources = [await fileSource(MODEL)];
    await rejects(GpuEngine.open(core, sources, { tier: 'subgroup' }), {
      kind: 'device', message: /has no subgroups: only the plain tier runs there/,
    });
    const engine = await GpuEngine.open(core, sources);
    equal(engine.device.tier, 'plain');
    engine.close();
  }, small);
});

test('a report of the device names its profile, and says whether rows are int8 planes',
    async () => {
  const asked = { ...large, limits: { ...large.limits, hasPackedDot: 0 } };
  for (const [on, profile, int8] of [
    [device, 'software', false], [large, 'nvidia', true], [floats, 'apple', false],
    [asked, 'nvidia', false], // without the language's products of int8 there are no planes
  ])
    await fresh(async (core) => {
      const engine = await GpuEngine.open(core, [await fileSource(MODEL)], { selfTest: false });
      same([engine.device.profile, engine.device.int8], [profile, int8]);
      engine.close();
    }, on);
});

await finish();
