// The per-layer embedding table, which a load does not wait for: rows come from the file until it
// is there, nobody sees a difference, and where it cannot come everything goes on without it.
//
//   node tests/web/test_gpu_table.mjs build/bezel [part of a test's name]
import { execFileSync } from 'node:child_process';
import fs from 'node:fs';
import os from 'node:os';
import { join } from 'node:path';

import {
  Core, Gpu, GpuEngine, GpuModel, estimate, fileSource, loadWasm, memorySource, openDevice,
} from '../../web/engine/dist/core.js';
import { BlockSource } from '../../web/engine/dist/load/source.js';
import { done, equal, ok, rejects, same, test } from './check.mjs';
import { patch } from './patch.mjs';
import './software_adapter.mjs';

// its table is in a format of its own, 17 MB, and comes in several windows
const MODEL = 'build/tmp/table-e2b.gguf';
execFileSync(process.argv[2] ?? 'build/bezel', [
  'synth', '--force', 'tiny-e2b', MODEL, '--layout', 'ollama', '--vocab', '4096',
]);
const GOLDEN = 'tests/golden/model_e2b.gguf';
const device = await openDevice({}), wasm = await WebAssembly.compile(await loadWasm());
/** The same device as one that is not software: windows are placed, and read straight into its
 *  memory. */
const placing = { ...device, software: false };
const ways = [['through the core', device], ['placed by the device', placing]];
const ids = Int32Array.from({ length: 21 }, (_, i) => (i === 0 ? 2 : 5 + (i * 7919) % 290));
const options = { context: 64, batch: 8, selfTest: false };
const turn = () => new Promise((next) => setImmediate(next));

/** A core on the device, for one test; nothing of it may be left, nor buffers that the host
 *  writes to. */
async function fresh(fn, on = device) {
  const d = device.device, make = d.createBuffer, staged = new Set();
  d.createBuffer = (o) => {
    const b = make.call(d, o), destroy = b.destroy.bind(b);
    if (o.usage & 2) staged.add(b); // MAP_WRITE
    b.destroy = () => (staged.delete(b), destroy());
    return b;
  };
  let unheard = 0;
  const count = () => unheard++;
  process.on('unhandledRejection', count);
  try {
    const gpu = new Gpu(on), core = await Core.load(wasm, gpu), live = core.exports.bz_wasm_live();
    await fn(core, gpu, staged);
    for (let i = 0; i < 20; i++) await turn();
    equal(gpu.bytes, 0, 'bytes left on the device');
    equal(staged.size, 0, 'buffers of the host that are left');
    // the last result
    ok(
      core.exports.bz_wasm_live() - live <= 1,
      `${core.exports.bz_wasm_live() - live} allocations are left`,
    );
    equal(unheard, 0, 'rejections that nobody heard');
  } finally {
    d.createBuffer = make;
    process.off('unhandledRejection', count);
  }
}

/** A file whose reads are seen, and whose windows of the table wait until go() is called;
 *  `fails` may say why one does not come. */
async function gated(path = MODEL, fails = () => undefined) {
  const file = await fileSource(path);
  let go;
  const gone = new Promise((resolve) => (go = resolve));
  const source = {
    ...file, go, rows: 0, windows: 0, others: 0, open: 0,
    readAsync: async (offset, dst) => {
      const [begin, end, row] = tables.get(path);
      const inTable = offset < end && offset + dst.length > begin;
      if (!inTable) source.others++;
      else if (dst.length === row) source.rows++;
      else {
        source.windows++;
        source.open++;
        await gone;
        source.open--;
        const why = fails(source.windows);
        if (why) throw new Error(why);
      }
      if (dst.length) await file.readAsync(offset, dst); // not where its memory has gone
    },
  };
  return source;
}

/** Logits of every token, and a text. */
async function answer(engine, n_max = 6) {
  const session = engine.session(64, 8), logits = [];
  await session.feed(ids, ids.length, (_, row) => logits.push(row.slice()));
  const drawn = await text(session, n_max);
  session.close();
  return { logits, drawn };
}

async function text(session, n_max, each = () => {}) {
  const drawn = [];
  for await (const { id } of session.generate({ temperature: 0, n_max, ignore_end: true })) {
    drawn.push(id);
    await each(drawn.length);
  }
  return drawn;
}

const worst = (a, b) => a.reduce(
  (w, row, i) => Math.max(w, row.reduce((v, x, j) => Math.max(v, Math.abs(x - b[i][j])), 0)), 0,
);

/** What engines say whose load waited for the table, and where it is in the file. */
const wants = new Map(), tables = new Map();
for (const path of [MODEL, GOLDEN]) {
  await fresh(async (core) => {
    let engine = await GpuEngine.open(core, [await fileSource(path)], { ...options, table: 'gpu' });
    ok(!engine.needsRows, 'who asks for it waits for it');
    wants.set(path, await answer(engine, 24));
    await engine.close();
    engine = await GpuEngine.open(core, [await fileSource(path)], { ...options, table: 'source' });
    const { offset, rowBytes, count } = engine.table.rows;
    tables.set(path, [offset, offset + rowBytes * count, rowBytes]);
    await engine.close();
  });
}
const want = wants.get(MODEL);

for (const [way, on] of ways) {
  test(`${way}: a load is over before a byte of the table is read, `
    + 'and has counted it', () => fresh(async (core, gpu) => {
    const source = await gated(), seen = [], planned = estimate(core, [source], options);
    const engine =
      await GpuEngine.open(core, [source], { ...options, onProgress: (p) => seen.push(p) });
    const [begin, end] = tables.get(MODEL);
    ok(engine.needsRows && source.others > 0);
    same([source.rows, source.windows], [0, 0]);
    ok(engine.table.moves && gpu.unmade().length > 0, 'its buffers are yet to be made');
    const weights = seen.filter((p) => p.phase === 'weights').at(-1), told = seen.length;
    equal(weights.loaded, weights.total);
    ok(weights.total < source.size - (end - begin), `${weights.total} bytes are told`);
    const session = engine.session(64);
    same(engine.memory, {
      weights: planned.weights, cache: planned.cache, scratch: planned.scratch,
    });
    equal(gpu.bytes, planned.weights + planned.cache + planned.scratch);
    same([engine.estimate.table, engine.estimate.total], ['gpu', planned.total]);
    session.close();
    source.go();
    await engine.whole();
    ok(!engine.needsRows && source.windows > 2);
    same(gpu.unmade(), []);
    equal(seen.length, told, 'nothing is told after the load');
    await engine.close();
  }, on));

  test(`${way}: rows from the file give the very logits and tokens of the table, `
    + 'before it is there and after', async () => {
    for (const path of [MODEL, GOLDEN]) {
      await fresh(async (core) => {
        const source = await gated(path), engine = await GpuEngine.open(core, [source], options);
        const right = wants.get(path);
        for (const there of [false, true]) {
          const { logits, drawn } = await answer(engine);
          equal(engine.needsRows, !there);
          equal(worst(logits, right.logits), 0);
          same(drawn, right.drawn.slice(0, 6));
          source.go();
          await engine.whole();
        }
        ok(source.rows > ids.length / 2);
        await engine.close();
      }, on);
    }
  });

  test(`${way}: a text goes on while the table comes, and its tokens are queued `
    + 'ahead from then on', () => fresh(async (core) => {
    const source = await gated(), engine = await GpuEngine.open(core, [source], options);
    const session = engine.session(64, 8);
    let rows = 0;
    const queued = { before: 0, after: 0 };
    await session.feed(ids, ids.length);
    const drawn = await text(session, 24, async (n) => {
      if (n === 2) await turn();
      if (n === 3) ok(source.windows > 0, 'it begins when there is a token');
      if (n < 8) ok(engine.needsRows);
      const when = engine.needsRows ? 'before' : 'after';
      queued[when] = Math.max(queued[when], engine.gpu.queue.reading);
      if (n === 8) {
        ok(source.rows >= 7, `${source.rows} rows`);
        source.go();
        await engine.whole();
        ok(!engine.needsRows);
        rows = source.rows;
      }
    });
    same(drawn, want.drawn);
    ok(queued.before <= 1 && queued.after > 1, JSON.stringify(queued));
    equal(source.rows, rows, 'no row is read any more');
    session.close();
    await engine.close();
  }, on));

  test(`${way}: the programs of before are recorded anew: a token's, `
    + `and a whole batch's`, () => fresh(async (core) => {
    const source = await gated(), engine = await GpuEngine.open(core, [source], options);
    const session = engine.session(64, 8);
    for (const there of [false, true]) {
      session.truncate(0);
      await session.read(ids.subarray(0, 20)); // two whole batches
      const before = source.rows;
      same(await text(session, 4), wantOf20.drawn);
      equal(source.rows > before, !there);
      source.go();
      await engine.whole();
      const other = ids.slice().reverse(); // what is left of the rows before must not do
      session.truncate(0);
      await session.read(other);
      session.truncate(0);
    }
    session.close();
    await engine.close();
  }, on));

  test(`${way}: an engine is closed at any moment while the table comes, `
    + 'and nothing is left or used afterwards', async () => {
    let moments = 0;
    for (let over =
      false, turns = 0; !over && moments < 40; turns += 1 + (moments >> 3), moments++) {
      await fresh(async (core, gpu, staged) => {
        const late = [], real = core.exports, source = await fileSource(MODEL);
        let closed = false, writing = 0;
        Object.defineProperty(core, 'exports', {
          value: new Proxy(real, { get: (_, name) => (closed && late.push(name), real[name]) }),
        });
        const slow = { ...source, readAsync: async (offset, dst) => {
          writing++;
          await turn();
          await source.readAsync(offset, dst);
          ok(dst.length, 'memory is there as long as it is written to');
          writing--;
        } };
        const engine = await GpuEngine.open(core, [slow], options);
        engine.goOn();
        for (let i = 0; i < turns && engine.needsRows; i++) await turn();
        over = !engine.needsRows;
        const gone = engine.close();
        closed = true;
        equal(gpu.bytes, 0, 'at once');
        await gone;
        if (on === placing) equal(writing, 0);
        equal(staged.size, 0);
        for (let i = 0; i < 20; i++) await turn();
        await gpu.done();
        closed = false;
        same(late, []);
      }, on);
    }
    ok(moments > 5, `${moments} moments`);
  });

  test(`${way}: where the file cannot be read any more the table stays there, `
    + 'and only its rows say so', () => fresh(async (core, gpu) => {
    const source = await gated(MODEL, (n) => (n > 2 ? 'the disk is gone' : undefined));
    const engine = await GpuEngine.open(core, [source], options);
    const { weights, total } = engine.estimate, bytes = gpu.bytes;
    source.go();
    await engine.whole();
    ok(engine.needsRows);
    equal(engine.memory.tableInFile, 'the disk is gone');
    const left = estimate(core, [source], { ...options, table: 'source' });
    same([engine.estimate.table, engine.estimate.weights, engine.estimate.total - total], [
      'source', left.weights, left.weights - weights,
    ]);
    equal(bytes - gpu.bytes, weights - left.weights);
    const { logits, drawn } = await answer(engine);
    equal(worst(logits, want.logits), 0);
    same(drawn, want.drawn.slice(0, 6));
    await engine.close();
  }, on));

  test(`${way}: what waits for the table hears that the model is closed, `
    + 'or that the device is lost', () => fresh(async (core) => {
    const d = device.device, source = await gated();
    let engine = await GpuEngine.open(core, [source], options), waiting = engine.whole();
    waiting.catch(() => {});
    for (let i = 0; i < 20; i++) await turn();
    const gone = engine.close();
    await rejects(waiting, { message: 'this model is closed' });
    await rejects(engine.whole(), { message: 'this model is closed' });
    source.go();
    await gone;
    let lose;
    const lost = new Promise((resolve) => (lose = resolve));
    const losing = new Proxy(d, {
      get: (of, key) =>
        (key === 'lost' ? lost : typeof of[key] === 'function' ? of[key].bind(of) : of[key]),
    });
    const stuck = await gated(), other = await Core.load(wasm, new Gpu({ ...on, device: losing }));
    engine = await GpuEngine.open(other, [stuck], options);
    waiting = engine.whole();
    waiting.catch(() => {});
    for (let i = 0; i < 20; i++) await turn();
    lose({ message: 'it is gone' });
    await rejects(waiting, /the graphics device was lost: it is gone/);
    stuck.go();
    await engine.close();
  }, on));
}

/** After a prompt of 20. */
const wantOf20 = {};
await fresh(async (core) => {
  const engine =
    await GpuEngine.open(core, [await fileSource(MODEL)], { ...options, table: 'gpu' });
  const session = engine.session(64, 8);
  await session.read(ids.subarray(0, 20));
  wantOf20.drawn = await text(session, 4);
  session.close();
  await engine.close();
});

test('a file that has become shorter is told by the steps whose rows are gone, and others go on',
    () => fresh(async (core) => {
  const folder = fs.mkdtempSync(join(os.tmpdir(), 'bezel-table-'));
  const path = join(folder, 'short.gguf');
  fs.copyFileSync(MODEL, path);
  const source = await fileSource(path), engine = await GpuEngine.open(core, [source], options);
  const session = engine.session(64, 8);
  const [begin, , row] = tables.get(MODEL);
  fs.truncateSync(path, begin + 300 * row);
  await session.read(ids);
  same(await text(session, 1), want.drawn.slice(0, 1));
  await engine.whole();
  ok(/is shorter than it was/.test(engine.memory.tableInFile), engine.memory.tableInFile);
  session.truncate(0);
  await rejects(session.read(Int32Array.of(2, 5, 4000)), /is shorter than it was/);
  await session.read(ids);
  equal((await text(session, 1)).length, 1);
  session.close();
  await engine.close();
  source.close();
  fs.rmSync(folder, { recursive: true });
}));

test('what has no quick rows is loaded as a whole, and so is what has no room for both; '
  + 'a table that stays in the file stays there', () => fresh(async (core) => {
  const bytes = new Uint8Array(fs.readFileSync(MODEL)), memory = memorySource('memory', bytes);
  const net = new BlockSource('net', bytes.length, async (offset, dst) =>
    dst.set(bytes.subarray(offset, offset + dst.length)));
  net.give(0, bytes.subarray(0, 48 << 20)); // what opening reads
  const { total } = estimate(core, [memory], options), room = 32 << 20;
  for (const [source, more, rows, whole] of [
    [net, {}, false, false], [memory, {}, true, false],
    [memory, { budget: total + room }, true, false],
    [memory, { budget: total + room - 1 }, false, false], [memory, { table: 'gpu' }, false, false],
    [memory, { table: 'source' }, true, true],
  ]) {
    const engine = await GpuEngine.open(core, [source], { ...options, ...more });
    equal(engine.needsRows, rows);
    await engine.whole();
    equal(engine.needsRows, whole);
    equal(engine.memory.tableInFile, undefined);
    await engine.close();
  }
}));

/** The device says that it has no room for such a buffer. */
async function refusing(which, fn) {
  const d = device.device, make = d.createBuffer, pop = d.popErrorScope.bind(d);
  let refused = 0, due = 0;
  d.createBuffer = (o) => {
    if (which(o)) refused++, (due = 2); // of the two scopes, that of memory is the outer one
    return make.call(d, o);
  };
  d.popErrorScope = () => {
    const refuses = due > 0 && --due === 0;
    return pop().then((error) => (refuses ? { message: 'no room' } : error));
  };
  try {
    await fn(() => refused);
  } finally {
    d.createBuffer = make;
    d.popErrorScope = pop;
  }
}

test('a device that has no room for it when it comes, or for what it comes through, is no fault: '
  + 'it stays in the file', async () => {
  for (const which of [(o) => o.size > 16e6, (o) => o.usage & 2]) {
    await fresh(async (core, gpu) => {
      const engine = await GpuEngine.open(core, [await fileSource(MODEL)], options);
      const fail = gpu.fail.bind(gpu);
      let faults = 0; // which a step would have heard of
      gpu.fail = (why) => (faults++, fail(why));
      await refusing(which, async (refused) => {
        await engine.whole();
        ok(refused() > 0 && faults === 0, `${faults} faults`);
      });
      ok(engine.needsRows && engine.estimate.table === 'source');
      ok(/^out of graphics memory/.test(engine.memory.tableInFile), engine.memory.tableInFile);
      gpu.check();
      same((await answer(engine)).drawn, want.drawn.slice(0, 6));
      await engine.close();
    }, placing);
  }
});

test('a load that nobody makes use of brings the table after a while', () => fresh(async (core) => {
  const engine = await GpuEngine.open(core, [await fileSource(MODEL)], options);
  for (let i = 0; i < 500 && engine.needsRows; i++)
    await new Promise((later) => setTimeout(later, 20));
  ok(!engine.needsRows);
  await engine.close();
}));

test('many tokens wait for the table, unless they are stopped; few do not',
    () => fresh(async (core) => {
  const source = await gated(), engine = await GpuEngine.open(core, [source], options);
  const session = engine.session(64, 8), stop = new AbortController();
  await session.read(ids);
  equal(source.windows, 0, 'nobody has begun');
  session.truncate(0);
  const rows = source.rows;
  const read = session.read(new Int32Array(2049).fill(5), { signal: stop.signal });
  for (let i = 0; i < 20; i++) await turn();
  ok(source.windows > 0);
  stop.abort();
  await rejects(read, { kind: 'cancelled' });
  same([source.rows, session.length], [rows, 0]);
  source.go();
  await engine.whole();
  ok(!engine.needsRows, 'it comes all the same');
  session.close();
  await engine.close();
}));

test('its kernel is tested before a step reads it there, and no load waits for that',
    () => fresh(async (core, gpu) => {
  const d = device.device, real = d.createComputePipelineAsync.bind(d), asked = [];
  let go;
  const gone = new Promise((resolve) => (go = resolve));
  patch(core, { 'embed[bf16]': (s) => `${s}\n// of this test\n` });
  d.createComputePipelineAsync = async (of) =>
    (asked.push(of.label), of.label === 'embed[bf16]' && (await gone), real(of));
  try {
    const engine =
      await GpuEngine.open(core, [await fileSource(MODEL)], { ...options, selfTest: true });
    const session = engine.session(64, 8);
    ok(asked.length && !asked.includes('embed[bf16]'));
    const pipelines = gpu.pipelinesAsked;
    await session.read(ids.subarray(0, 8));
    equal(gpu.pipelinesAsked, pipelines, 'a first prompt needs no other pipeline');
    engine.goOn();
    for (let i = 0; i < 200; i++) await turn();
    ok(
      engine.needsRows && asked.includes('embed[bf16]'), 'all of it may be there, and is not read',
    );
    go();
    await engine.whole();
    ok(!engine.needsRows);
    ok(engine.device.selfTest.some((t) => t.kernel === 'embed[bf16]' && t.ok));
    const all = gpu.pipelinesAsked;
    session.truncate(0);
    await session.read(ids);
    same(await text(session, 6), want.drawn.slice(0, 6));
    equal(gpu.pipelinesAsked, all, 'no step needs a pipeline that was not there');
    session.close();
    await engine.close();
  } finally {
    go();
    d.createComputePipelineAsync = real;
  }
}));

test('a model waits for its table before it is measured or tested', async () => {
  const source = await gated();
  const model = await GpuModel.open(
    Promise.resolve(wasm), () => openDevice({}), [source], { context: 64, selfTest: false },
  );
  const conversation = await model.conversation();
  const all = [model.selfTest(), conversation.profile(ids.subarray(0, 1), false)], over = [];
  all.forEach((work, i) => work.then(() => over.push(i)));
  for (let i = 0; i < 50; i++) await turn();
  same(over, []);
  ok(source.windows > 0);
  source.go();
  await Promise.all(all);
  ok(!model.engine.needsRows);
  model.close();
});

test('a model that is closed while its table comes leaves the device only when nothing is '
  + 'written there any more', async () => {
  const own = { ...(await openDevice({})), software: false }, source = await gated();
  const d = own.device, destroy = d.destroy.bind(d);
  let open;
  d.destroy = () => ((open = source.open), destroy());
  const model = await GpuModel.open(
    Promise.resolve(wasm), async () => own, [source], { context: 64, selfTest: false },
  );
  model.engine.goOn();
  while (!source.open) await turn();
  model.close();
  for (let i = 0; i < 20; i++) await turn();
  equal(open, undefined, 'the device is there');
  source.go();
  while (open === undefined) await turn();
  equal(open, 0);
});

test('a device that is lost while the table comes is replaced, and the text goes on', async () => {
  const devices = [], source = await gated();
  const model = await GpuModel.open(
    Promise.resolve(wasm),
    async () => (devices.push(await openDevice({})), devices.at(-1)),
    [source],
    { context: 64, selfTest: false },
  );
  const conversation = await model.conversation(), drawn = [];
  await conversation.set(ids);
  for await (const { id } of conversation.generate({
    temperature: 0, n_max: 8, ignore_end: true,
  })) {
    drawn.push(id);
    if (drawn.length === 3) {
      while (!source.windows) await turn();
      devices[0].device.destroy();
      source.go();
    }
  }
  equal(devices.length, 2);
  same(drawn, want.drawn.slice(0, 8));
  await model.selfTest();
  ok(!model.engine.needsRows);
  model.close();
});

await done(process.argv[3]);
device.device.destroy(); // else its threads do not end
