// Bringing a model to the GPU: what it takes is known before, what does not fit is told, loads can be cancelled
// at any moment, and the module's memory stays small.
//
//   node tests/web/test_gpu_load.mjs build/bezel [part of a test's name]
import { execFileSync } from 'node:child_process';
import fs from 'node:fs';

import { Core, Gpu, GpuEngine, estimate, fileSource, loadWasm, memorySource, openDevice } from '../../web/engine/dist/core.js';
import { done, equal, ok, rejects, same, test } from './check.mjs';
import './software_adapter.mjs';
import { splitGguf } from './split_gguf.mjs';

const native = process.argv[2] ?? 'build/bezel';
const device = await openDevice({}), wasm = await WebAssembly.compile(await loadWasm());
const ids = Int32Array.from({ length: 21 }, (_, i) => (i === 0 ? 2 : 5 + (i * 7919) % 290));
const MODEL = 'tests/golden/model_e2b.gguf'; // has a per-layer embedding table

/** A core on the device, for one test; nothing of it may be left. */
async function fresh(fn, on = device) {
  const gpu = new Gpu(on), core = await Core.load(wasm, gpu);
  const live = core.exports.bz_wasm_live();
  const result = await fn(core, gpu);
  equal(gpu.bytes, 0, 'bytes left on the device');
  ok(core.exports.bz_wasm_live() - live <= 1, `${core.exports.bz_wasm_live() - live} allocations are left`); // the last result
  return result;
}

function synth(shape, ...args) {
  const path = `build/tmp/load-${[shape, ...args].join('')}.gguf`;
  if (!fs.existsSync(path)) execFileSync(native, ['synth', shape, path, ...args]);
  return path;
}

/** A source that counts what is read. */
async function watched(path) {
  const source = await fileSource(path);
  const counted = {
    name: source.name, size: source.size, close: source.close, bytes: 0,
    read: (offset, dst) => ((counted.bytes += dst.length), source.read(offset, dst)),
    readAsync: (offset, dst) => ((counted.bytes += dst.length), source.readAsync(offset, dst)),
  };
  return counted;
}

/** Logits of every token, and a text. */
async function answer(engine) {
  const session = engine.session(64, 8), logits = [], drawn = [];
  await session.feed(ids, ids.length, (_, row) => logits.push(row.slice()));
  for await (const { id } of session.generate({ temperature: 0, n_max: 6, ignore_end: true })) drawn.push(id);
  session.close();
  return { logits, drawn };
}

const worst = (a, b) => a.reduce((w, row, i) => Math.max(w, row.reduce((v, x, j) => Math.max(v, Math.abs(x - b[i][j])), 0)), 0);

// ---- the estimate ----

const configs = [
  ...['tiny-e2b', 'tiny-e4b', 'tiny-dense', 'tiny-moe', 'tiny-moe-split'].map((shape) => [shape, () => synth(shape)]),
  ['a mix of f16', () => synth('tiny-e2b', '--quant', 'f16')],
  ['tiny', () => 'models/tiny.q8_0.gguf'],
  ['tiny-moe', () => 'models/tiny-moe.q8_0.gguf'],
];
for (const [name, path] of configs) {
  test(`${name}: what is allocated is what was estimated`, () => fresh(async (core, gpu) => {
    const sources = [await fileSource(path())];
    for (const options of [{ context: 100, batch: 16 }, { context: 700, batch: 64, cache: 'f16', table: 'source' }]) {
      const before = estimate(core, sources, options);
      equal(gpu.bytes, 0, 'an estimate allocates nothing');
      const engine = await GpuEngine.open(core, sources, options);
      const session = engine.session(options.context);
      equal(gpu.bytes, before.weights + before.cache + before.scratch);
      same(engine.memory, { weights: before.weights, cache: before.cache, scratch: before.scratch });
      equal(engine.needsRows, before.table === 'source');
      session.close();
      engine.close();
    }
  }));
}

test('steps take no more than the estimate allows them', () => fresh(async (core, gpu) => {
  const sources = [await fileSource(MODEL)], options = { context: 64, batch: 8 };
  const { total } = estimate(core, sources, options);
  const engine = await GpuEngine.open(core, sources, options);
  gpu.peakBytes = 0;
  await answer(engine);
  ok(gpu.peakBytes > 0 && gpu.peakBytes <= total, `${gpu.peakBytes} of ${total}`);
  engine.close();
}));

test('the largest context is the largest: one token more does not fit', () => fresh(async (core) => {
  const sources = [await fileSource('models/tiny.q8_0.gguf')];
  const whole = estimate(core, sources, { context: 1000 });
  equal(whole.largestContext, 2048, 'where there is room it is what the model was trained for');
  const budget = whole.total - 1, less = estimate(core, sources, { context: 1000, budget, table: 'gpu' });
  equal(less.missing, 1);
  ok(!less.fits && less.largestContext > 0 && less.largestContext < 1000);
  ok(estimate(core, sources, { context: less.largestContext, budget, table: 'gpu' }).fits);
  ok(!estimate(core, sources, { context: less.largestContext + 1, budget, table: 'gpu' }).fits);
}));

test('a model that does not fit says by how much and what would, before its weights are read', () => fresh(async (core) => {
  const source = await watched('models/tiny-moe.q8_0.gguf');
  const { total, weights, largestContext } = estimate(core, [source], { context: 2048, budget: 12e6 });
  ok(largestContext > 0 && largestContext < 2048);
  const before = source.bytes;
  const fails = (options, sentence) => rejects(GpuEngine.open(core, [source], options), { kind: 'memory', message: sentence });
  const more = ((total - 12e6) / 1e6).toPrecision(3);
  await fails({ context: 2048, budget: 12e6 }, new RegExp(`^this model needs .* MB of graphics memory for a context of 2048 tokens \\(weights .*, cache .*, scratch .*\\), ${more} MB more than the 12.0 MB there are; a context of ${largestContext} tokens would fit$`));
  await fails({ context: 2048, budget: 1e6 }, /; no context is short enough to fit$/);
  ok(source.bytes - before < weights / 2, 'only the header and the vectors are read');
  const engine = await GpuEngine.open(core, [source], { context: largestContext, budget: 12e6 });
  const session = engine.session(largestContext);
  rejectsSync(() => engine.session(largestContext), /takes .* more graphics memory than there is/);
  session.close();
  engine.close();
}));

function rejectsSync(fn, sentence) {
  let message = 'nothing was thrown';
  try {
    fn();
  } catch (e) {
    message = e.message;
  }
  ok(sentence.test(message), message);
}

// ---- the table in the file ----

test('the per-layer embedding table stays in the file when only the rest fits, and the answers are the same', () => fresh(async (core) => {
  const sources = [await fileSource(MODEL)], options = { context: 64, batch: 8 };
  const there = estimate(core, sources, options), left = estimate(core, sources, { ...options, table: 'source' });
  same([there.table, left.table], ['gpu', 'source']);
  ok(left.weights < there.weights);
  const answers = [];
  for (const budget of [there.total, there.total - 1]) {
    const engine = await GpuEngine.open(core, sources, { ...options, budget });
    equal(engine.needsRows, budget < there.total);
    answers.push(await answer(engine));
    engine.close();
  }
  ok(worst(answers[0].logits, answers[1].logits) < 1e-5, `${worst(answers[0].logits, answers[1].logits)}`);
  same(answers[0].drawn, answers[1].drawn);
}));

// ---- loading ----

test('shards, in any order, are one model', () => fresh(async (core) => {
  const whole = fs.readFileSync(MODEL), shards = splitGguf(whole, 3).map((bytes, i) => memorySource(`part ${i}`, new Uint8Array(bytes)));
  const answers = [];
  for (const sources of [[memorySource('whole', new Uint8Array(whole))], [shards[1], shards[2], shards[0]]]) {
    const engine = await GpuEngine.open(core, sources, { context: 64, batch: 8 });
    answers.push(await answer(engine));
    engine.close();
  }
  same(answers[1], answers[0]);
}));

test('a load tells its phases in order, and all bytes', () => fresh(async (core) => {
  const seen = [];
  const engine = await GpuEngine.open(core, [await fileSource('models/tiny.q8_0.gguf')], { onProgress: (p) => seen.push(p) });
  const phases = [...new Set(seen.map((p) => p.phase))];
  same(phases, ['open', 'weights', 'ready']);
  for (const phase of phases) {
    const of = seen.filter((p) => p.phase === phase), last = of.at(-1);
    equal(last.loaded, last.total, phase);
    ok(of.every((p, i) => i === 0 || p.loaded >= of[i - 1].loaded), phase);
  }
  ok(seen.filter((p) => p.phase === 'weights').length > 3, 'weights come in windows');
  engine.close();
}));

test('reads are ahead of uploads, a few windows at most', () => fresh(async (core) => {
  let now = 0, most = 0;
  const source = await fileSource('models/tiny.q8_0.gguf'), slow = {
    name: source.name, size: source.size, read: source.read, close: source.close,
    readAsync: async (offset, dst) => {
      most = Math.max(most, ++now);
      await new Promise((later) => setTimeout(later, 5));
      await source.readAsync(offset, dst);
      now--;
    },
  };
  const engine = await GpuEngine.open(core, [slow]);
  ok(most > 1 && most <= 4, `${most} reads at a time`);
  engine.close();
}));

test('a load is cancelled at any moment, promptly, and leaves nothing', async () => {
  const reason = new Error('enough'), phases = new Set();
  let moments = 1;
  for (let at = 0; at < moments; at++) {
    await fresh(async (core) => {
      const stop = new AbortController(), source = await fileSource(MODEL);
      let events = 0, last = '';
      const open = GpuEngine.open(core, [source], { signal: stop.signal, onProgress: ({ phase }) => {
        last = phase;
        if (events++ === at) stop.abort(reason);
      } });
      try {
        (await open).close();
        moments = at; // there was no such moment
      } catch (e) {
        equal(e, reason);
        phases.add(last);
        moments = at + 2;
      }
    });
  }
  ok(phases.has('open') && phases.has('weights'), [...phases].join());
});

test('a read that never ends does not hold up a cancel', () => fresh(async (core) => {
  const stop = new AbortController(), source = await fileSource('models/tiny.q8_0.gguf'), reason = new Error('enough');
  const stuck = { name: source.name, size: source.size, read: source.read, close: source.close, readAsync: () => new Promise(() => setTimeout(() => stop.abort(reason), 10)) };
  await rejects(GpuEngine.open(core, [stuck], { signal: stop.signal }), reason);
}));

test('a read that fails is told, and leaves nothing', () => fresh(async (core) => {
  const source = await fileSource('models/tiny.q8_0.gguf');
  let left = 3;
  const broken = { name: source.name, size: source.size, read: source.read, close: source.close, readAsync: async (offset, dst) => {
    if (left-- === 0) throw new Error('the disk is gone');
    await source.readAsync(offset, dst);
  } };
  await rejects(GpuEngine.open(core, [broken]), /the disk is gone/);
}));

await done(process.argv[3]);
process.exit(); // Dawn's threads do not end by themselves
