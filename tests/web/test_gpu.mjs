// The host of the GPU (web/engine/src/gpu/gpu.ts, adapter.ts): what it promises the core, and what
// it says when something goes wrong. node tests/web/test_gpu.mjs
import fs from 'node:fs';

import { bandwidth, Gpu, openDevice, profile, profiles } from '../../web/engine/dist/core.js';
import { done, equal, ok, rejects, same, test, throws } from './check.mjs';
import { openHarness } from './harness.mjs';

const scale = (x, extra = {}) => ({
  params: { n: x.length, c: 0 },
  groups: 1,
  buffers: { w: Float32Array.of(2), x: Float32Array.from(x) },
  ...extra,
});

/** A harness for one test. */
async function on(options, fn) {
  const h = await openHarness(options);
  try {
    return await fn(h, h.gpu.imports);
  } finally {
    h.close();
  }
}

/** x += 1 as a recorded program. */
async function counter(h, imports) {
  const ones = imports.buffer_new(16, 1), x = imports.buffer_new(16, 1);
  const params = imports.buffer_new(16, 2);
  h.gpu.write(ones, 0, Float32Array.of(1, 1, 1, 1));
  h.gpu.write(params, 0, Uint32Array.of(4, 0, 0, 0));
  const pipeline = imports.pipeline_new(h.kernel('add'), 0, 0);
  const bindings = Uint32Array.of(params, 0, 0, ones, 0, 0, x, 0, 0);
  const group =
    h.core.with(new Uint8Array(bindings.buffer), (p) => imports.group_new(pipeline, p, 3));
  imports.program_begin();
  imports.dispatch(pipeline, group, 1, 1, 1);
  return { x, pipeline, group, program: imports.program_end() };
}

test('every function of gpu.h is there, and the limits have its order',
    () => on({}, (h, imports) => {
  const header = fs.readFileSync('src/gpu/gpu.h', 'utf8');
  same(
    Object.keys(imports).sort(),
    [...header.matchAll(/GPU_IMPORT\("(\w+)"\)/g)].map((m) => m[1]).sort(),
  );
  const body = /struct gpu_limits \{([^}]*)\}/.exec(header)[1].replace(/\/\*[^]*?\*\//g, '');
  const fields =
    [...body.matchAll(/uint32_t ([^;]*);/g)].flatMap((m) => m[1].split(',').map((f) => f.trim()));
  const alike = { max_buffer: 'maxBuffer', max_binding: 'maxBinding' };
  same(
    Object.keys(h.device.limits),
    fields.map((f) => alike[f] ?? f.replace(/_(\w)/g, (_, c) => c.toUpperCase())),
  );
}));

test('a program can be replayed, and reads in flight come back in order',
    () => on({}, async (h, imports) => {
  const { x, program } = await counter(h, imports);
  await h.gpu.ready();
  equal(h.gpu.dispatches(program), 1);
  h.gpu.submit(program);
  const results = Array.from({ length: 6 }, () => new Uint8Array(4));
  await Promise.all(results.map((r) => h.gpu.submitRead(program, x, 4, r)));
  same(results.map((r) => new Float32Array(r.buffer)[0]), [2, 3, 4, 5, 6, 7]);
}));

test('an idle device begins with the first part of a program; one that has work is given the whole',
    () => on({}, async (h, imports) => {
  const { x, program, pipeline, group } = await counter(h, imports);
  imports.program_begin();
  for (let i = 0; i < 100; i++) imports.dispatch(pipeline, group, 1, 1, 1);
  const long = imports.program_end();
  await h.gpu.ready();
  const { queue } = h.gpu.device, submit = queue.submit.bind(queue);
  const results = [new Float32Array(1), new Float32Array(1)];
  let submits = 0;
  queue.submit = (list) => (submits++, submit(list));
  const read = (into) => ({ buffer: x, offset: 4, into: new Uint8Array(into.buffer) });
  const first = h.gpu.run([program, long, program, read(results[0])]);
  equal(submits, 3); // 16, 32 and 54 dispatches
  await Promise.all([first, h.gpu.run([long, read(results[1])])]);
  equal(submits, 4);
  same(results.map((r) => r[0]), [102, 202]);
}));

test('a program begins while it is recorded where its pipelines are there, and is run once',
    () => on({}, async (h, imports) => {
  const { x, group, pipeline } = await counter(h, imports), got = new Float32Array(1), seen = [];
  const record = () => h.gpu.beginning(() => {
    imports.program_begin();
    for (let i = 0; i < 5; i++) {
      imports.dispatch(pipeline, group, 1, 1, 1);
      if (i === 2) imports.program_part();
    }
    return imports.program_end();
  });
  const early = record(); // its pipeline compiles
  equal(h.gpu.begun(early), false);
  await h.gpu.ready();
  const late = record();
  equal(h.gpu.begun(late), true);
  for (const program of [late, early, late]) {
    await h.gpu.submitRead(program, x, 0, new Uint8Array(got.buffer));
    seen.push(got[0]);
  }
  same(seen, [5, 10, 15]);
}));

test('a program recorded as the one before needs no new bind groups, '
  + 'unless a number stands for another buffer', () => on({}, async (h, imports) => {
  const { device } = h.gpu, create = device.createBindGroup.bind(device), seen = [];
  let made = 0;
  device.createBindGroup = (d) => (made++, create(d));
  const pipeline = imports.pipeline_new(h.kernel('add'), 0, 0), ones = imports.buffer_new(16, 1);
  let x = imports.buffer_new(16, 1);
  h.gpu.write(ones, 0, Float32Array.of(1, 1, 1, 1));
  for (const again of [false, false, true]) {
    if (again) {
      imports.buffer_free(x);
      equal(imports.buffer_new(16, 1), x);
    }
    const params = imports.buffer_new(1024, 2);
    h.gpu.write(params, 256, Uint32Array.of(4, 0, 0, 0));
    imports.program_begin();
    const bindings = Uint32Array.of(params, 256, 16, ones, 0, 0, x, 0, 0);
    const group =
      h.core.with(new Uint8Array(bindings.buffer), (p) => imports.group_new(pipeline, p, 3));
    imports.dispatch(pipeline, group, 1, 1, 1);
    const program = imports.program_end(), got = new Float32Array(4);
    await h.gpu.ready();
    await h.gpu.submitRead(program, x, 0, new Uint8Array(got.buffer));
    imports.program_free(program);
    imports.group_free(group);
    imports.buffer_free(params);
    seen.push([made, got[0]]);
  }
  same(seen, [[1, 1], [1, 2], [2, 1]]);
}));

test('copies of a program run after its dispatches', () => on({}, async (h, imports) => {
  const { x, program } = await counter(h, imports);
  const to = imports.buffer_new(16, 1);
  imports.program_begin();
  imports.copy(x, 0, to, 8, 4);
  const copy = imports.program_end();
  await h.gpu.ready();
  h.gpu.submit(program);
  h.gpu.submit(copy);
  const got = new Float32Array(4);
  await h.gpu.read(to, 0, new Uint8Array(got.buffer));
  same([...got], [0, 0, 1, 0]);
}));

test('an override changes the kernel; a wrong one is refused with its name',
    () => on({}, async (h) => {
  same([...(await h.run('scale', scale([1, 2, 3], { constants: { WG: 32 } }))).x], [2, 4, 6]);
  await rejects(h.run('scale', scale([1], { constants: { WG: 1 << 20 } })), /kernel scale: /);
}));

test('each workgroup of a product has rows of its own, for any number of processors',
    () => on({}, async (h) => {
  const rows = 300, cols = 8; // eight row groups of one row a workgroup: 38 of them
  const params = {
    cols, rows, row0: 0, n_tok: 1, x_stride: cols, y_stride: rows, scales: 0, high: 0, d: 0,
    rank: 0, b_rows: 0, b_scales: 0, z_parts: 0, by_stride: 0, by_col: 0, scale: 1, n_split: 0,
  };
  const w = Float32Array.from({ length: rows * cols }, (_, i) => Math.floor(i / cols));
  const want = Array.from({ length: rows }, (_, i) => cols * i);
  for (const PROCESSORS of [1, 7, 38, 40, 132]) {
    const { y } = await h.run('linear_no_lora', {
      params, groups: 38, constants: { WG: 32, LANES: 4, R: 1, PROCESSORS },
      buffers: { x: new Float32Array(cols).fill(1), w, y: new Float32Array(rows) },
    });
    same([...y], want);
  }
}));

test('a kernel that does not compile is named, with the line', () => on({}, async (h) => {
  const real = h.core.kernel.bind(h.core);
  h.core.kernel = (i) => ({ ...real(i), source: real(i).source.replace(/\w+\[0\]/, 'nothing[0]') });
  await rejects(h.run('scale', scale([1])), /kernel scale: .*nothing.*\(in: .*nothing\[0\]/s);
}));

test('bindings that do not fit are named by their kernel', () => on({}, async (h, imports) => {
  const uniform = imports.buffer_new(16, 2);
  const pipeline = imports.pipeline_new(h.kernel('scale'), 0, 0);
  // a uniform as storage
  const bindings = Uint32Array.of(uniform, 0, 0, uniform, 0, 0, uniform, 0, 0);
  imports.program_begin();
  h.core.with(new Uint8Array(bindings.buffer), (p) => imports.group_new(pipeline, p, 3));
  imports.program_end();
  await rejects(h.gpu.ready(), /^Error: kernel scale: .*usage/s);
}));

test('however many share a device, it has one listener, and an error that no scope '
  + 'caught reaches them all', async () => {
  const info = await openDevice(), { device } = info, listen = device.addEventListener.bind(device);
  const heard = [];
  device.addEventListener = (name, fn) => void (heard.push(name), listen(name, fn));
  const all = Array.from({ length: 12 }, () => new Gpu(info));
  same(heard, ['uncapturederror']);
  device.dispatchEvent(
    Object.assign(new Event('uncapturederror'), { error: { message: 'a wrong usage' } }),
  );
  for (const gpu of all) throws(() => gpu.check(), /^Error: a wrong usage$/);
  device.destroy();
});

test('a dispatch past the limit is found at the first submit', () => on({}, async (h) => {
  await rejects(h.run('scale', scale([1], { groups: [1 << 20, 1, 1] })), /dispatch|workgroup/i);
}));

test('a buffer too large is an error that a reset forgets, and so is memory that is used up',
    () => on({ profile: 'ios-like' }, async (h, imports) => {
  ok(imports.buffer_new(1.2e9, 1) > 0); // more than a buffer can have, less than there is in all
  await rejects(h.gpu.ready(), /a buffer of 1200000000 bytes/);
  equal(imports.buffer_new(16, 1), 0); // nothing is made after a fault
  h.gpu.reset();
  equal(h.gpu.bytes, 0);
  ok(imports.buffer_new(1000 << 20, 1) > 0);
  equal(imports.buffer_new(1000 << 20, 1), 0);
  await rejects(h.gpu.ready(), /out of graphics memory/);
  h.gpu.reset();
  same([...(await h.run('scale', scale([1, 2])))['x']], [2, 4]);
}));

test('what is freed can be made again and the count of bytes is right',
    () => on({}, async (h, imports) => {
  const a = imports.buffer_new(100, 1), b = imports.buffer_new(7, 2);
  equal(h.gpu.bytes, 108);
  imports.buffer_free(a);
  imports.buffer_free(a);
  equal(h.gpu.bytes, 8);
  equal(imports.buffer_new(4, 1), a);
  imports.buffer_free(b);
  equal(h.gpu.peakBytes, 108);
  await h.gpu.ready();
}));

test('a lost device is one sentence, and a reset does not hide it',
    () => on({}, async (h, imports) => {
  const { x, program } = await counter(h, imports);
  await h.gpu.ready();
  h.gpu.device.destroy();
  ok(/lost/.test(await h.gpu.lost));
  throws(() => h.gpu.submit(program), /the graphics device was lost/);
  await rejects(h.gpu.read(x, 0, new Uint8Array(16)), /the graphics device was lost/);
  h.gpu.reset();
  throws(() => h.gpu.check(), /lost/);
}));

test('a profile hides what the smaller device does not have', async () => {
  for (const name of Object.keys(profiles)) {
    const { device, limits, maxTotal } = await openDevice({ profile: name });
    for (const [key, most] of Object.entries(profiles[name].most))
      ok(limits[key] <= most, `${name} ${key}`);
    equal(device.features.has('subgroups'), limits.subgroupMax > 0);
    ok(device.limits.maxStorageBufferBindingSize <= limits.maxBinding);
    equal(maxTotal, name === 'ios-like' ? 1.4e9 : Infinity);
    device.destroy();
  }
});

test('the bandwidth is that of the fastest reads: one that is held up makes it '
  + 'neither more nor less', () => on({}, async (h) => {
  const { device } = h.gpu, newEncoder = device.createCommandEncoder.bind(device);
  const { now } = performance;
  let clock = 0, reads = 0, waits = 0; // a read takes a millisecond, and so does waiting
  device.createCommandEncoder = () => {
    const encoder = newEncoder(), begin = encoder.beginComputePass.bind(encoder);
    encoder.beginComputePass = () => {
      const pass = begin();
      pass.dispatchWorkgroups = () => void reads++;
      return pass;
    };
    return encoder;
  };
  device.queue.onSubmittedWorkDone = async () => {
    waits++;
    // the first few reads, and the last many
    clock += 1 + reads + (waits === 2 || waits === 11 ? 1000 : 0);
    reads = 0;
  };
  performance.now = () => clock;
  try {
    equal(await bandwidth(h.core), 16 * 2 ** 20 * 1000);
  } finally {
    performance.now = now;
  }
}));

test('timestamps say which kernel took how long', () => on({}, async (h, imports) => {
  const { program } = await counter(h, imports);
  // A browser's clock ticks every 100 us: one short dispatch may fall between two ticks, many do
  // not.
  let ns = 0;
  for (let runs = 0; ns === 0 && runs < 5000; runs++) {
    const [one, ...more] = await profile(h.gpu, program);
    same([one.kernel, one.count, more.length], ['add', 1, 0]);
    ok(one.ns >= 0 && one.ns < 1e10);
    ns += one.ns;
  }
  ok(ns > 0);
}));

await done(process.argv[2]);
