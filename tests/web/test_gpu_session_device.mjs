// Conversations on the GPU: adapters, what happens when the device is lost, and what is on its way
// between two tokens.
//
//   node tests/web/test_gpu_session_device.mjs build/bezel [WORDS]
import { execFileSync } from 'node:child_process';

import {
  Core, Gpu, GpuEngine, GpuModel, fileSource, loadWasm, memorySource, openDevice,
} from '../../web/engine/dist/core.js';
import { Pace } from '../../web/engine/dist/gpu/pace.js';
import { equal, ok, rejects, same, test } from './check.mjs';
import {
  closePair, cpu, e2b, finish, gpu, greedy, native, onBoth, openPair, pair, prompt, requantised,
  rowAfter, temp, text, worst,
} from './gpu_session_fixture.mjs';
import { linearsOf, loraFile } from './lora_file.mjs';

openPair();

// ---- adapters ----

/** A PEFT adapter on some linears of the golden E2B: weights and config. */
function adapter(seed, rank) {
  let state = seed;
  const random = () => ((state = (state * 48271) % 0x7fffffff) / 0x7fffffff - 0.5) * 0.6;
  const shapes = {
    'layers.0.self_attn.q_proj': [96, 64], 'layers.1.self_attn.o_proj': [64, 96],
    'layers.2.self_attn.q_proj': [96, 128],
  };
  const header = {}, data = [];
  let at = 0;
  for (const [name, [n_in, n_out]] of Object.entries(shapes))
    for (const [half, shape] of [['A', [rank, n_in]], ['B', [n_out, rank]]]) {
      const values = Float32Array.from({ length: shape[0] * shape[1] }, random);
      header[`base_model.model.model.${name}.lora_${half}.weight`] = {
        dtype: 'F32', shape, data_offsets: [at, at + values.byteLength],
      };
      at += values.byteLength;
      data.push(Buffer.from(values.buffer));
    }
  const json = Buffer.from(JSON.stringify(header)), size = Buffer.alloc(8);
  size.writeUInt32LE(json.length);
  return [
    memorySource(`adapter ${seed}`, new Uint8Array(Buffer.concat([size, json, ...data]))),
    { config: JSON.stringify({ peft_type: 'LORA', r: rank, lora_alpha: 2 * rank }) },
  ];
}

test('logits with adapters on, two of them, scaled, swapped and off again are the CPU\'s, '
  + 'and no pipeline is compiled twice', async () => {
  const rows = { cpu: [], gpu: [] };
  let compiled = 0;
  const { device } = gpu.engine.gpu, compile = device.createComputePipelineAsync.bind(device);
  device.createComputePipelineAsync = (d) => (compiled++, compile(d));
  const counts = [];
  for (const [name, model] of [['cpu', cpu], ['gpu', gpu]]) {
    const c = await model.conversation(100);
    const look = async () => {
      c.truncate(0);
      await c.set(prompt(20));
      rows[name].push(await rowAfter(c, 9));
      if (name === 'gpu') counts.push(compiled);
    };
    await look();
    const first = await model.addAdapter(...adapter(1, 4));
    await look();
    const second = await model.addAdapter(...adapter(2, 12));
    await look();
    model.scaleAdapter(first, 0.25);
    await look();
    model.removeAdapter(first);
    await look();
    model.removeAdapter(second);
    await look();
    await rejects(async () => model.removeAdapter(second), /there is no adapter number/);
    c.close();
  }
  device.createComputePipelineAsync = compile;
  rows.gpu.forEach((row, i) =>
    ok(worst(row, rows.cpu[i]) < 5e-4, `look ${i}: off by ${worst(row, rows.cpu[i])}`));
  ok(worst(rows.gpu[1], rows.gpu[0]) > 0.05, 'the adapter does something');
  ok(worst(rows.gpu[5], rows.gpu[0]) < 1e-6);
  equal(counts.at(-1), counts[2], 'what adapters need was compiled when they first came');
});

test('adapters on every linear, of one rank and of two, give the CPU\'s logits and tokens',
    async () => {
  const file = requantised('e2b', 'q8_0');
  const [a, b] = await onBoth(file, async (model) => {
    const c = await model.conversation(60);
    const linears = linearsOf(gpu.engine.core, await fileSource(file)), seen = [];
    equal(linears.length, 6 * 7 + 3 * 2, 'keys and values of three layers only');
    for (const rank of [16, 3]) {
      await model.addAdapter(memorySource(`rank ${rank}`, loraFile(linears, rank, { seed: rank })));
      c.truncate(0);
      await c.set(prompt(12));
      seen.push({ row: await rowAfter(c, 9), ids: (await text(c, { ...greedy, n_max: 8 })).ids });
    }
    c.close();
    return seen;
  });
  a.forEach(({ row, ids }, i) => {
    ok(worst(row, b[i].row) < 5e-4, `look ${i}: off by ${worst(row, b[i].row)}`);
    same(ids, b[i].ids);
  });
  ok(worst(a[0].row, a[1].row) > 0.05, 'the second adapter does something');
});

for (const ahead of [4, 1])
  test('an adapter hung on between two tokens counts from the next token on, '
    + `as on the CPU (${ahead} on their way)`, async () => {
  const [a, b] = await pair(200, async (c, model) => {
    const ids = [];
    let id;
    await c.set(prompt(30));
    for await (const piece of c.generate({ ...greedy, n_max: 24, ahead })) {
      ids.push(piece.id);
      if (ids.length === 6) id = await model.addAdapter(...adapter(3, 8));
      if (ids.length === 12) model.scaleAdapter(id, 3);
      if (ids.length === 18) model.removeAdapter(id);
    }
    const kept = [await c.set(Int32Array.from([...c.tokens, 9]))];
    id = await model.addAdapter(...adapter(3, 8));
    kept.push(await c.set(prompt(20)));
    model.scaleAdapter(id, 0);
    model.scaleAdapter(id, 1);
    kept.push(await c.set(prompt(21)));
    model.removeAdapter(id);
    return { ids, kept };
  });
  same(a.kept, [0, 0, 20], 'what was computed with other weights is not kept');
  same(b, a);
});

// ---- losing the device ----

const lose = () => gpu.engine.gpu.device.destroy();

test('a device lost in the middle of a text: it goes on, with the same tokens', async () => {
  const [a] = await pair(200, async (c) =>
    (await c.set(prompt(30)), text(c, { ...greedy, n_max: 40, stop: ['\u2603'] })));
  const c = await gpu.conversation(200), other = await gpu.conversation(200);
  await c.set(prompt(30));
  await other.set(prompt(25));
  const before = gpu.engine;
  same(
    await text(
      c, { ...greedy, n_max: 40, stop: ['\u2603'] }, (_, n) => (n === 10 || n === 25) && lose(),
    ),
    a,
  );
  ok(gpu.engine !== before);
  equal(await other.set(prompt(26)), 25, 'others read their tokens again when they are used');
  equal(other.length, 26);
  c.close();
  other.close();
});

test('a device lost while a prompt is read, while adapters are on, and while nothing happens',
    async () => {
  const [want] = await pair(200, async (c, model) => {
    if (model !== cpu) return undefined;
    const id = await cpu.addAdapter(...adapter(1, 4));
    await c.set(prompt(100));
    const result = await text(c, { ...greedy, n_max: 10 });
    cpu.removeAdapter(id);
    return result;
  });
  const id = await gpu.addAdapter(...adapter(1, 4));
  const c = await gpu.conversation(200);
  setTimeout(lose, 3);
  await c.set(prompt(100));
  lose();
  await gpu.engine.gpu.lost;
  same(await text(c, { ...greedy, n_max: 10 }), want);
  lose();
  const snapshot = await c.save();
  lose();
  await c.restore(snapshot);
  equal(c.length, 110);
  gpu.removeAdapter(id);
  c.close();
});

test('a device that cannot be had again is one sentence', async () => {
  const wasm = await WebAssembly.compile(await loadWasm());
  let times = 0;
  const model = await GpuModel.open(
    wasm,
    () => (times++ ? Promise.reject(new Error('no adapter is left')) : openDevice()),
    [await fileSource(e2b)],
  );
  const c = await model.conversation(100);
  await c.set(prompt(10));
  await rejects(text(
    c, { ...greedy, n_max: 20 }, (_, n) => n === 3 && model.engine.gpu.device.destroy(),
  ), (e) => {
    equal(e.kind, 'device');
    ok(
      /graphics device was lost.*could not be loaded again: no adapter is left/.test(e.message),
      e.message,
    );
    return true;
  });
  model.close();
});

test('a device lost while the weights are on their way is one sentence', async () => {
  const wasm = await WebAssembly.compile(await loadWasm());
  let device;
  const opening = GpuModel.open(wasm, async () =>
    (device = await openDevice()), [await fileSource('models/tiny.q8_0.gguf')], {
    onProgress: ({ phase }) => phase === 'weights' && device.device.destroy(),
  });
  await rejects(opening, (e) => {
    equal(e.kind, 'device');
    ok(/lost/.test(e.message), e.message);
    return true;
  });
});

test('a conversation that does not fit is refused, and the model goes on', async () => {
  const c = await gpu.conversation(64), { gpu: device } = gpu.engine;
  const { maxTotal } = device.info;
  Object.assign(device.info, { maxTotal: device.bytes + 1000 });
  await rejects(gpu.conversation(512), /memory/);
  Object.assign(device.info, { maxTotal });
  await c.set(prompt(5));
  equal((await text(c, { ...greedy, n_max: 3 })).ids.length, 3);
  c.close();
});

// ---- what a token costs ----

test('more steps are on their way where they are short, few where they are long, '
  + 'and a pause changes little', () => {
  /** What is on its way after tokens that came so many milliseconds after each other. */
  const after = (...between) => {
    const pace = new Pace();
    let now = 1000;
    for (const ms of between) pace.note((now += ms));
    return pace.ahead;
  };
  const each = (ms, n = 20) => Array(n).fill(ms);
  equal(after(), 4);
  equal(after(...each(1, 8)), 4, 'too few to tell');
  equal(after(...each(1)), 16);
  equal(after(...each(9.2)), 6);
  equal(after(...each(12)), 4);
  equal(after(...each(80)), 4);
  equal(
    after(...each(9.2), 30, 10, 2, 2, 2), 6, 'what comes at once after a pause was not made faster',
  );
});

test('so many steps are on their way, never past what is wanted', async () => {
  const c = await gpu.conversation(250), { gpu: device } = gpu.engine, { run } = device;
  await c.set(prompt(10));
  // the first text since adapters were here has its first token before a step is recorded
  await text(c, { ...greedy, n_max: 2 });
  await c.set(prompt(10));
  let steps = 0, most = 0, n = 0;
  // in how many parts it is submitted depends on how idle the device is
  device.run = (items) => (steps++, run.call(device, items));
  try {
    for await (const _ of c.generate({ ...greedy, n_max: 60 })) most = Math.max(most, steps - ++n);
  } finally {
    delete device.run;
  }
  equal(n, 60);
  ok(most >= 3 && most <= 16, `${most} on their way`);
  ok(steps <= 61, `${steps} steps for 60 tokens`);
  c.close();
});

for (const ahead of [4, 1])
  test('a token allocates nothing: not in the module, not on the device '
    + `(${ahead} on their way)`, async () => {
  const { core, gpu: { device } } = gpu.engine;
  const c = await gpu.conversation(250);
  await c.set(prompt(10));
  const made = {}, was = {};
  for (const name of [
    'createBuffer', 'createBindGroup', 'createComputePipelineAsync', 'createShaderModule',
  ]) {
    was[name] = device[name];
    device[name] = (d) => ((made[name] = (made[name] ?? 0) + 1), was[name].call(device, d));
  }
  let live, n = 0;
  for await (const _ of c.generate({ ...greedy, n_max: 60, ahead })) {
    if (++n === 10) {
      for (const name of Object.keys(made)) delete made[name];
      live = core.exports.bz_wasm_live();
    } else if (n > 10) equal(core.exports.bz_wasm_live(), live, `token ${n}`);
    if (n === 59) same(made, {});
  }
  equal(n, 60);
  Object.assign(device, was);
  c.close();
});

test('the kernels that a longer history has are asked for before it is that long', async () => {
  const file = `${temp}/long.gguf`, context = 16384;
  execFileSync(native, ['synth', 'tiny-e2b', file, '--ctx', `${context}`]);
  // so it passes for a large one
  const software = await openDevice(), { subgroupMax } = software.limits;
  const own = new Gpu({
    ...software,
    names: { ...software.names, profile: 'nvidia' },
    limits: { ...software.limits, subgroupMax: subgroupMax && 8 },
  });
  const engine = await GpuEngine.open(
    await Core.load(await loadWasm(), own),
    [await fileSource(file)],
    { context, batch: 8, selfTest: false },
  );
  const session = engine.session(context), recordNow = session.recordNow.bind(session);
  const first = own.pipelinesAsked, asked = [];
  session.recordNow = (make) => {
    const before = own.pipelinesAsked, made = recordNow(make);
    asked.push(own.pipelinesAsked - before);
    return made;
  };
  for (let position = 5; position < context; position *= 2) await session.decodeProgram(position);
  const [start, ...later] = asked;
  ok(own.pipelinesAsked > first + start, 'there are such kernels');
  ok(later.length > 5 && later.every((n) => n === 0), asked.join());
  session.close();
  engine.close();
  own.close();
});

test('where each token is looked at before the next is begun, that was encoded meanwhile, '
  + 'and the tokens are the same', async () => {
  const { device } = gpu.engine.gpu, { queue } = device, { createCommandEncoder } = device;
  const { submit } = queue;
  const c = await gpu.conversation(250), before = []; // encoders that were made between two submits
  let encoded = 0;
  device.createCommandEncoder = (d) => (encoded++, createCommandEncoder.call(device, d));
  queue.submit = (list) => {
    before.push(encoded);
    encoded = 0;
    submit.call(queue, list);
  };
  try {
    await c.set(prompt(10));
    const ids = [];
    for await (const { id } of c.generate({ ...greedy, n_max: 40, ahead: 1 })) {
      if (ids.push(id) === 1) before.length = 0;
    }
    // All parts of a step are encoded, then submitted one after the other; else it would be an
    // encoder for each submit.
    const parts = before[0];
    ok(parts > 1 && before.length === 39 * parts, before.join());
    same(before, before.map((_, i) => (i % parts ? 0 : parts)));
    await c.set(prompt(10));
    same(ids, (await text(c, { ...greedy, n_max: 40 })).ids);
  } finally {
    Object.assign(device, { createCommandEncoder });
    Object.assign(queue, { submit });
    c.close();
  }
});

closePair();

await finish();
