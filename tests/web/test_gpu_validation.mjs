// The kernels that a load does not wait for: they are compiled and tested while the model is in
// use, and nobody waits for them but who needs them.
//
//   node tests/web/test_gpu_validation.mjs build/bezel [part of a test's name]
//
// On a software adapter that passes for a large GPU, where short and long histories have kernels of
// their own: a token takes a second there, so texts are short.
import { execFileSync } from 'node:child_process';
import fs from 'node:fs';
import os from 'node:os';
import path from 'node:path';

import {
  Core, Gpu, GpuEngine, fileSource, loadWasm, openDevice,
} from '../../web/engine/dist/core.js';
import { done, equal, ok, rejects, same, test } from './check.mjs';
import { patch } from './patch.mjs';
import './software_adapter.mjs';

const device = await openDevice({}), wasm = await WebAssembly.compile(await loadWasm());
const large = {
  ...device,
  names: { ...device.names, profile: 'nvidia' },
  limits: { ...device.limits, subgroupMax: 8 },
};
const ids = Int32Array.from({ length: 12 }, (_, i) => (i === 0 ? 2 : 5 + (i * 7919) % 290));
const few = ids.subarray(0, 3); // rows that a load does not expect
const options = { context: 256, batch: 32, selfTest: true };
const LATER = ['attention_split']; // of few rows
const STEPS = ['norm_linears[bf16 subgroup]']; // of tokens one by one

/** A core on the device, for one test; nothing of it may be left. */
async function fresh(fn) {
  const gpu = new Gpu(large), core = await Core.load(wasm, gpu), live = core.exports.bz_wasm_live();
  await fn(core, gpu);
  equal(gpu.bytes, 0, 'bytes left on the device');
  // the last result
  ok(
    core.exports.bz_wasm_live() - live <= 1,
    `${core.exports.bz_wasm_live() - live} allocations are left`,
  );
}

const open = async (core, more = {}, model = 'e2b') => GpuEngine.open(
  core, [await fileSource(`tests/golden/model_${model}.gguf`)], { ...options, ...more },
);
const turn = () => new Promise((next) => setImmediate(next));

/** Not for what may be held. */
function soon(work) {
  let timer;
  const late =
    new Promise((_, reject) => (timer = setTimeout(reject, 60_000, new Error('it waits'))));
  return Promise.race([work, late]).finally(() => clearTimeout(timer));
}

/** Each token is read before the next is begun. */
async function text(engine, n_max, each = () => {}) {
  const session = engine.session(256), drawn = [];
  try {
    await session.read(ids);
    for await (const { id } of session.generate({
      temperature: 0, n_max, ahead: 1, ignore_end: true,
    })) {
      drawn.push(id);
      await each(drawn.length);
    }
  } finally {
    session.close();
  }
  return drawn;
}

/** Of the last n tokens of a prompt. */
async function logits(engine, prompt = few, n = 3) {
  const session = engine.session(256), rows = [];
  await session.feed(prompt, n, (_, row) => rows.push(row.slice()));
  session.close();
  return rows;
}

const worst = (a, b) => a.reduce(
  (w, row, i) => Math.max(w, row.reduce((v, x, j) => Math.max(v, Math.abs(x - b[i][j])), 0)), 0,
);

/** What an engine without tests says, computed once. */
const want = {};
await fresh(async (core) => {
  const engine = await open(core, { selfTest: false });
  want.text = await text(engine, 8);
  want.logits = await logits(engine);
  engine.close();
});

let compilations = 0;

/** The compiler keeps these kernels until it may go on. */
async function held(core, fn, kernels = LATER) {
  const d = device.device, real = d.createComputePipelineAsync.bind(d);
  const mark = `\n// ${++compilations}\n`;
  let go;
  const gone = new Promise((resolve) => (go = resolve));
  // which no earlier test has compiled
  patch(core, Object.fromEntries(kernels.map((name) => [name, (s) => s + mark])));
  d.createComputePipelineAsync = async (of) =>
    (kernels.includes(of.label) && (await gone), real(of));
  try {
    await fn(go);
  } finally {
    go();
    d.createComputePipelineAsync = real;
  }
}

/** Nobody may be left to hear of a failure. */
async function heard(fn) {
  let unheard = 0;
  const count = () => unheard++;
  process.on('unhandledRejection', count);
  await fn();
  for (let i = 0; i < 20; i++) await turn();
  process.off('unhandledRejection', count);
  equal(unheard, 0, 'rejections that nobody heard');
}

const failed = (engine) => engine.device.selfTest.filter((t) => !t.ok).map((t) => t.kernel);

test('a text begins without the kernels that come later, and its tokens stay right '
  + 'while those are tested', () => fresh(async (core, gpu) => held(core, async (go) => {
  const engine = await open(core), asked = gpu.pipelinesAsked;
  const tested = engine.device.selfTest.length, { weights, cache, scratch } = engine.estimate;
  let during = 0;
  engine.table.begin = () => {}; // it comes when those are validated
  const session = engine.session(256);
  await soon(session.read(ids));
  equal(gpu.pipelinesAsked, asked, 'a session and a prompt ask for nothing more');
  session.close();
  const drawn = await soon(text(engine, 8, async (n) => {
    if (n === 3) {
      ok(gpu.pipelinesAsked > asked && !engine.validation.over,
        'the others are asked for meanwhile');
      await soon(gpu.ready()); // as attaching an adapter or opening a session does
      delete engine.table.begin;
      await soon(engine.tableSettled());
      ok(
        !engine.needsRows && !engine.validation.over,
        'the table needs the kernels of tokens one by one, and no others',
      );
      go();
    }
    if (n === 5) await engine.validation.all(); // which has had the step block
    if (!engine.validation.over) during++;
  }));
  same(drawn, want.text);
  ok(during >= 3);
  const all = gpu.pipelinesAsked;
  ok(engine.device.selfTest.length > tested);
  same(engine.device.selfTest.filter((t) => !t.ok || t.reason), []);
  const one = engine.session(256);
  equal(gpu.bytes, weights + cache + scratch, 'the test leaves nothing behind');
  one.close();
  ok(worst(await logits(engine), want.logits) === 0);
  equal(gpu.pipelinesAsked, all, 'no step needs a pipeline that was not there');
  engine.close();
})));

test('a first token comes before the kernels of the steps after it, '
  + 'and a text of one asks for none and records no step',
  () => fresh(async (core, gpu) => held(core, async (go) => {
  const engine = await open(core), session = engine.session(256), asked = gpu.pipelinesAsked;
  const options = { temperature: 0, ahead: 1, ignore_end: true };
  await session.read(ids);
  const begin = engine.validation.begin;
  engine.validation.begin = () => {};
  for await (const { id } of session.generate({ ...options, n_max: 1 })) equal(id, want.text[0]);
  engine.validation.begin = begin;
  equal(gpu.pipelinesAsked, asked);
  equal(session.knownDecodeProgram(ids.length), undefined);
  same([...session.tokens], [...ids, want.text[0]]);
  session.truncate(0);
  await session.read(ids);
  const pieces = session.generate(options), drawn = [(await soon(pieces.next())).value.id];
  const second = pieces.next();
  for (let i = 0; i < 50; i++) await turn();
  ok(
    gpu.pipelinesAsked > asked && !engine.validation.has(2) && session.length === 13,
    'the second waits',
  );
  go();
  drawn.push((await soon(second)).value.id);
  ok(engine.validation.has(2) && !engine.validation.over, 'and for no more than its own');
  while (drawn.length < 8) drawn.push((await soon(pieces.next())).value.id);
  same(drawn, want.text);
  await pieces.return();
  session.close();
  engine.close();
}, STEPS)));

test('a text that waits for the kernels of its second token is stopped, '
  + 'or hears that the engine is closed, and has its first',
  () => heard(() => fresh(async (core) => held(core, async () => {
  const engine = await open(core), session = engine.session(256);
  for (const end of ['stop', 'close']) {
    const stop = new AbortController();
    const pieces =
      session.generate({ temperature: 0, ahead: 1, ignore_end: true, signal: stop.signal });
    session.truncate(0);
    await session.read(ids);
    equal((await soon(pieces.next())).value.id, want.text[0]);
    const second = pieces.next();
    for (let i = 0; i < 20; i++) await turn();
    if (end === 'stop') {
      stop.abort();
      same((await soon(second)).value, { stop: 'cancelled' });
    } else {
      engine.validation.stop();
      await rejects(soon(second), { message: 'this model is closed' });
    }
    same([...session.tokens], [...ids, want.text[0]]);
  }
  session.close();
  engine.close();
}, STEPS))));

test('a kernel of the second token that is wrong, or does not compile, gives way to the plain one, '
  + 'and the text is right', async () => {
  for (const change of [
    (s) => s.replace('inverseSqrt', '1.01 * inverseSqrt'),
    (s) => s.replace('inverseSqrt', 'inverseRoot'),
  ]) {
    await fresh(async (core) => {
      patch(core, Object.fromEntries(STEPS.map((name) => [name, change])));
      const engine = await open(core);
      same(failed(engine), [], 'the load does not need it');
      same(await text(engine, 8), want.text);
      same(failed(engine), STEPS);
      ok(
        engine.device.selfTest.some((t) => t.kernel === 'norm_linears[bf16]' && t.ok && !t.reason),
      );
      engine.close();
    });
  }
});

test('a plain one that is wrong is told when the second token is due, each time, '
  + 'and first ones go on', () => heard(() => fresh(async (core) => {
  patch(core, { 'norm_linears[bf16]': (s) => s.replace('inverseSqrt', '1.01 * inverseSqrt') });
  const engine = await open(core, { tier: 'plain' });
  for (let i = 0; i < 2; i++) {
    const drawn = [];
    await rejects(text(engine, 8, (n) => drawn.push(n)), {
      kind: 'device',
      message:
        /^kernel norm_linears\[bf16] computes wrong numbers on .*: this device cannot be used$/,
    });
    same(drawn, [1]);
  }
  engine.close();
})));

test('a step that needs a later kernel waits for it, unless it is stopped',
    () => fresh(async (core) => held(core, async (go) => {
  const engine = await open(core), session = engine.session(256), stop = new AbortController();
  setTimeout(() => stop.abort(), 50);
  await rejects(soon(session.read(few, { signal: stop.signal })), { kind: 'cancelled' });
  equal(session.length, 0);
  const read = session.read(few);
  for (let i = 0; i < 50; i++) await turn();
  equal(session.length, 0, 'it waits');
  go();
  await soon(read);
  ok(engine.validation.over);
  equal(session.length, 3);
  session.close();
  engine.close();
})));

test('a long text as the very first thing waits for its kernels, and is right',
    () => fresh(async (core) => {
  const engine = await open(core);
  ok(!engine.validation.over);
  ok(worst(await logits(engine), want.logits) === 0);
  ok(engine.validation.over);
  engine.close();
}));

test('a load that nobody makes use of tests the rest after a while', () => fresh(async (core) => {
  const engine = await open(core);
  for (let i = 0; i < 500 && !engine.validation.over; i++)
    await new Promise((later) => setTimeout(later, 20));
  ok(engine.validation.over);
  engine.close();
}));

test('a later kernel that is wrong, or does not compile, gives way to the plain one, '
  + 'and a long text is right', async () => {
  // A model without per-layer inputs norms heads alone only where some rows of several go on.
  let right;
  await fresh(async (core) => {
    const engine = await open(core, { selfTest: false }, 'kv');
    right = { text: await text(engine, 2), logits: await logits(engine, ids, 8) };
    engine.close();
  });
  for (const change of [
    (s) => s.replace('inverseSqrt', '1.01 * inverseSqrt'),
    (s) => s.replace('inverseSqrt', 'inverseRoot'),
  ]) {
    await fresh(async (core) => {
      patch(core, { 'head_norm_rope[subgroup]': change });
      const engine = await open(core, {}, 'kv');
      same(failed(engine), [], 'the load does not need it');
      same(await text(engine, 2), right.text);
      const got = worst(await logits(engine, ids, 8), right.logits);
      same(failed(engine), ['head_norm_rope[subgroup]']);
      ok(engine.device.selfTest.some((t) => t.kernel === 'head_norm_rope' && t.ok && !t.reason));
      ok(got < 5e-4, `${got}`); // f32 sums in another order
      engine.close();
    });
  }
});

test('a plain one that is wrong, or does not compile, is told to the steps that need it, '
  + 'each time, and others go on', () => heard(async () => {
  for (const [change, sentence] of [
    [
      (s) => s.replace('return q[', 'return 0.1 * q['),
      /^kernel attention_split computes wrong numbers on .*: this device cannot be used$/,
    ],
    [(s) => s.replace('return q[', 'return explode() * q['), /^kernel attention_split: .*explode/s],
  ]) {
    await fresh(async (core) => {
      patch(core, { attention_split: change });
      const engine = await open(core), session = engine.session(256);
      same(await text(engine, 2), want.text.slice(0, 2));
      for (let i = 0; i < 2; i++)
        await rejects(session.read(few), { kind: 'device', message: sentence });
      same(await text(engine, 2), want.text.slice(0, 2));
      session.close();
      engine.close();
    });
  }
}));

test('an engine is closed at any moment of the validation, and nothing is left or used afterwards',
    () => heard(async () => {
  let moments = 0;
  for (let over = false, turns = 0; !over; turns += ++moments) {
    await fresh(async (core, gpu) => {
      const late = [], real = core.exports;
      let closed = false;
      Object.defineProperty(core, 'exports', {
        value: new Proxy(real, { get: (_, name) => (closed && late.push(name), real[name]) }),
      });
      const engine = await open(core);
      const { validation } = engine;
      validation.begin();
      for (let i = 0; i < turns && !validation.over; i++, validation.begin()) await turn();
      over = engine.validation.over;
      engine.close();
      closed = true;
      for (let i = 0; i < 40; i++) await turn();
      await gpu.done();
      closed = false;
      same(late, []);
    });
  }
  ok(moments > 5, `${moments} moments`);
}));

test('what waits for a validation that is given up hears why',
    () => heard(() => fresh(async (core) => held(core, async () => {
  const engine = await open(core), waiting = engine.validation.all();
  for (let i = 0; i < 20; i++) await turn();
  engine.close();
  await rejects(waiting, { message: 'this model is closed' });
  await rejects(engine.validation.all(), { message: 'this model is closed' });
}))));

// ---- the last group ----

// a position whose history has a kernel that no shorter one and none of the longest has
const REST = 4, CONTEXT = 16384, LONG = 3000;
const temp = fs.mkdtempSync(path.join(os.tmpdir(), 'bezel-validation-'));
const longModel = `${temp}/long.gguf`;
process.on('exit', () => fs.rmSync(temp, { recursive: true, force: true }));
execFileSync(process.argv[2] ?? 'build/bezel', [
  'synth', 'tiny-e2b', longModel, '--ctx', `${CONTEXT}`,
]);

/** An engine that has all its kernels but those of the last group, and a conversation that is
 *  far along. */
async function openLong(core) {
  const engine = await GpuEngine.open(core, [await fileSource(longModel)], {
    context: CONTEXT, batch: 32, selfTest: true, table: 'gpu',
  });
  await engine.validation.upTo(REST - 1);
  ok(engine.validation.over && !engine.validation.has(REST));
  return { engine, session: engine.session(CONTEXT) };
}

/** Kernels that attend, of which such a position has some with two heads in a workgroup. */
const ATTENDS = ['attn_decode', 'attn_decode_shared'];
const changed = (names, change) => Object.fromEntries(names.map((name) => [name, change]));

test('kernels of histories of any length come after all others; '
  + 'a step that needs one waits for that alone, and others go on',
  () => fresh(async (core, gpu) => {
  const d = device.device, real = d.createComputePipelineAsync.bind(d);
  const mark = `\n// ${++compilations}\n`;
  patch(core, changed(ATTENDS, (s) => s + mark)); // which no earlier test has compiled
  const { engine, session } = await openLong(core), before = gpu.pipelinesAsked;
  let go, kept = 0, there = false;
  const gone = new Promise((resolve) => (go = resolve));
  d.createComputePipelineAsync = async (of) =>
    (of.compute.constants.HEADS === 2 && (kept++, await gone), real(of));
  try {
    engine.validation.begin();
    for (let i = 0; i < 500 && !kept; i++) await turn();
    for (let i = 0; i < 50; i++) await turn();
    ok(kept === 1 && gpu.pipelinesAsked > before + 1, 'one after the other');
    const waiting = session.decodeProgram(LONG).then(() => (there = true));
    await soon(session.decodeProgram(5));
    await soon(session.read(ids));
    for (let i = 0; i < 50; i++) await turn();
    ok(!there && kept > 1 && !engine.validation.has(REST), 'but for those that it needs');
    go();
    await soon(waiting);
    await soon(engine.validation.upTo(REST));
  } finally {
    go();
    d.createComputePipelineAsync = real;
  }
  same(engine.device.selfTest.filter((t) => !t.ok || t.reason), []);
  const asked = gpu.pipelinesAsked;
  for (let position = 5; position < CONTEXT; position *= 2) await session.decodeProgram(position);
  equal(gpu.pipelinesAsked, asked, 'no step needs another');
  session.close();
  engine.close();
}));

test('one of them that is wrong, or does not compile, is told to the steps that need it, each time',
    () => heard(async () => {
  for (const [change, sentence] of [
    [
      (s) => s.replace('=f.a;', '= select(1.0, 1.5, HEADS == 2u) * f.a;'),
      /^kernel attn_decode\w* computes wrong numbers on .*: this device cannot be used$/,
    ],
    [
      (s) => s.replace('=f.a;', '= f.a + 0.0 * f32(NONE);').replace(
        '@compute', 'override NONE : u32 = 4u / (HEADS - 2u);\n@compute',
      ),
      /^kernel attn_decode\w*: /,
    ],
  ]) await fresh(async (core) => {
    patch(core, changed(ATTENDS, change));
    const { engine, session } = await openLong(core);
    for (const wait of [engine.whole(), engine.validation.upTo(REST)])
      await rejects(wait, { kind: 'device', message: sentence });
    for (let i = 0; i < 2; i++)
      await rejects(Promise.resolve(session.decodeProgram(LONG)), {
        kind: 'device', message: sentence,
      });
    await session.decodeProgram(5);
    await session.read(ids);
    session.close();
    engine.close();
  });
}));

// ---- a device that is lost, at the end ----

test('what waits for it hears of a device that is lost, even where the compiler says nothing',
    () => heard(async () => {
  const d = device.device;
  let lose;
  Object.defineProperty(d, 'lost', {
    value: new Promise((resolve) => (lose = resolve)), configurable: true,
  });
  try {
    await fresh(async (core) => held(core, async () => {
      const engine = await open(core), session = engine.session(256), read = session.read(few);
      for (let i = 0; i < 20; i++) await turn();
      lose({ message: 'it is gone' });
      await rejects(soon(read), /^Error: the graphics device was lost: it is gone$/);
      session.close();
      engine.close();
    }));
  } finally {
    delete d.lost;
  }
}));

await done(process.argv[3]);
device.device.destroy(); // else its threads do not end
