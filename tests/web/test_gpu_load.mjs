// Bringing a model to the GPU: what it takes is known before, what does not fit is told, loads can
// be cancelled at any moment, and the module's memory stays small.
//
//   node tests/web/test_gpu_load.mjs build/bezel [part of a test's name]
import fs from 'node:fs';
import os from 'node:os';
import { join } from 'node:path';

import {
  Core, Gpu, GpuEngine, GpuModel, estimate, fileSource, memorySource, openDevice,
} from '../../web/engine/dist/core.js';
import { equal, ok, rejects, same, test } from './check.mjs';
import {
  MODEL, answer, device, finish, fresh, ids, synth, wasm, watched, worst,
} from './gpu_load_fixture.mjs';
import { splitGguf } from './split_gguf.mjs';

// ---- the estimate ----

const configs = [
  ...['tiny-e2b', 'tiny-e4b', 'tiny-dense', 'tiny-moe', 'tiny-moe-split'].map((shape) =>
    [shape, () => synth(shape)]),
  ['a mix of f16', () => synth('tiny-e2b', '--quant', 'f16')],
  ['tiny', () => 'models/tiny.q8_0.gguf'],
  ['tiny-moe', () => 'models/tiny-moe.q8_0.gguf'],
];
for (const [name, path] of configs) {
  test(`${name}: what is allocated is what was estimated`, () => fresh(async (core, gpu) => {
    const sources = [await fileSource(path())];
    for (const options of [
      { context: 100, batch: 16 }, { context: 700, batch: 64, cache: 'f16', table: 'source' },
    ]) {
      const before = estimate(core, sources, options);
      equal(gpu.bytes, 0, 'an estimate allocates nothing');
      const engine = await GpuEngine.open(core, sources, options);
      const session = engine.session(options.context);
      equal(gpu.bytes, before.weights + before.cache + before.scratch);
      same(engine.memory, {
        weights: before.weights, cache: before.cache, scratch: before.scratch,
      });
      await engine.whole();
      equal(engine.needsRows, before.table === 'source');
      equal(
        gpu.bytes,
        before.weights + before.cache + before.scratch,
        'a table that comes later was counted',
      );
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

test('the largest context is the largest: one token more does not fit',
    () => fresh(async (core) => {
  const sources = [await fileSource('models/tiny.q8_0.gguf')];
  const whole = estimate(core, sources, { context: 1000 });
  equal(whole.largestContext, 2048, 'where there is room it is what the model was trained for');
  const budget = whole.total - 1;
  const less = estimate(core, sources, { context: 1000, budget, table: 'gpu' });
  equal(less.missing, 1);
  ok(!less.fits && less.largestContext > 0 && less.largestContext < 1000);
  ok(estimate(core, sources, { context: less.largestContext, budget, table: 'gpu' }).fits);
  ok(!estimate(core, sources, { context: less.largestContext + 1, budget, table: 'gpu' }).fits);
}));

test('a model that does not fit says by how much and what would, before its weights are read',
    () => fresh(async (core) => {
  const source = await watched('models/tiny-moe.q8_0.gguf');
  const { total, weights, largestContext } =
    estimate(core, [source], { context: 2048, budget: 12e6 });
  ok(largestContext > 0 && largestContext < 2048);
  const before = source.bytes;
  const fails = (options, sentence) =>
    rejects(GpuEngine.open(core, [source], options), { kind: 'memory', message: sentence });
  const more = ((total - 12e6) / 1e6).toPrecision(3);
  await fails(
    { context: 2048, budget: 12e6 },
    new RegExp(
      `^this model needs .* MB of graphics memory for a context of 2048 tokens \\(weights .*, `
        + `cache .*, scratch .*\\), ${more} MB more than the 12.0 MB there are; `
        + `a context of ${largestContext} tokens would fit$`,
    ),
  );
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

test('the per-layer embedding table stays in the file when only the rest fits, '
  + 'and the answers are the same', () => fresh(async (core) => {
  const sources = [await fileSource(MODEL)], options = { context: 64, batch: 8 };
  const there = estimate(core, sources, options);
  const left = estimate(core, sources, { ...options, table: 'source' });
  same([there.table, left.table], ['gpu', 'source']);
  ok(left.weights < there.weights);
  const answers = [];
  for (const budget of [there.total, there.total - 1]) {
    const engine = await GpuEngine.open(core, sources, { ...options, budget });
    await engine.whole();
    equal(engine.needsRows, budget < there.total);
    answers.push(await answer(engine));
    engine.close();
  }
  ok(
    worst(answers[0].logits, answers[1].logits) < 1e-5,
    `${worst(answers[0].logits, answers[1].logits)}`,
  );
  same(answers[0].drawn, answers[1].drawn);
}));

// ---- loading ----

/** The same device as one that is not software: it takes windows as they are, and repacks
 *  them itself. */
const placing = { ...device, software: false };
const ways = [['through the core', device], ['placed by the device', placing]];

test('shards, in any order, are one model', () => fresh(async (core) => {
  const whole = fs.readFileSync(MODEL);
  const shards =
    splitGguf(whole, 3).map((bytes, i) => memorySource(`part ${i}`, new Uint8Array(bytes)));
  const answers = [];
  for (const sources of [
    [memorySource('whole', new Uint8Array(whole))], [shards[1], shards[2], shards[0]],
  ]) {
    const engine = await GpuEngine.open(core, sources, { context: 64, batch: 8 });
    answers.push(await answer(engine));
    engine.close();
  }
  same(answers[1], answers[0]);
}));

test('a file\'s header is read while the device is opened, and forgotten when the weights come',
    async () => {
  const folder = fs.mkdtempSync(join(os.tmpdir(), 'bezel-load-')), path = join(folder, 'changing');
  const source = (fs.writeFileSync(path, 'before'), await fileSource(path));
  const bytes = new Uint8Array(4);
  const text = () => (source.read(2, bytes), Buffer.from(bytes).toString());
  await source.readHead();
  fs.writeFileSync(path, 'behind');
  equal(text(), 'fore', 'these are at hand');
  await source.readAsync(0, new Uint8Array(1));
  equal(text(), 'hind', 'and now the file is asked');
  fs.truncateSync(path, 3);
  await source.readHead(); // it is shorter than it was
  rejectsSync(text, /is shorter than it was/);
  source.close();
  fs.rmSync(folder, { recursive: true });
  const order = [], file = await fileSource(MODEL);
  const told = (name, work) => (...of) => (order.includes(name) || order.push(name), work(...of));
  const watching = {
    ...file, readHead: told('readHead', file.readHead), read: told('read', file.read),
    readAsync: told('readAsync', file.readAsync),
  };
  const model = await GpuModel.open(
    Promise.resolve(wasm), told('device', () => openDevice({})), [watching], { selfTest: false },
  );
  same(order, ['readHead', 'device', 'read', 'readAsync']);
  model.close();
  file.close();
});

test('a load tells its phases in order, and all bytes', () => fresh(async (core) => {
  const seen = [];
  const engine = await GpuEngine.open(core, [await fileSource(MODEL)], {
    selfTest: true, onProgress: (p) => seen.push(p),
  });
  const phases = [...new Set(seen.map((p) => p.phase))];
  same(phases, ['open', 'weights', 'kernels', 'selftest', 'ready']);
  for (const phase of phases) {
    const of = seen.filter((p) => p.phase === phase), last = of.at(-1);
    equal(last.loaded, last.total, phase);
    ok(of.every((p, i) => i === 0 || p.loaded >= of[i - 1].loaded), phase);
  }
  engine.close();
}));

test('the kernels of a router and its experts are tested, and right', () => fresh(async (core) => {
  const engine =
    await GpuEngine.open(core, [await fileSource('models/tiny-moe.q8_0.gguf')], { selfTest: true });
  await engine.validation.all();
  const of = engine.device.selfTest.filter(({ kernel }) => /^(router|experts)/.test(kernel));
  ok(of.some(({ kernel }) => kernel.startsWith('router_scores')));
  ok(of.length > 4 && of.every((t) => t.ok && !t.reason), JSON.stringify(of));
  engine.close();
}));

for (const [way, on] of ways) {
  test(`${way}: reads are ahead of uploads, a few windows at most`, () => fresh(async (core) => {
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
    const engine = await GpuEngine.open(core, [slow], { selfTest: false });
    ok(most > 1 && most <= 8, `${most} reads at a time`);
    engine.close();
  }, on));

  test(`${way}: a load is cancelled at any moment, promptly, and leaves nothing`, async () => {
    const reason = new Error('enough');
    // Once to the end, so that the kernels are compiled.
    await fresh(
      async (core) =>
        (await GpuEngine.open(core, [await fileSource(MODEL)], { selfTest: true })).close(),
      on,
    );
    for (const phase of ['open', 'weights', 'kernels', 'selftest']) {
      for (let at = 0, more = true; more; at++) {
        await fresh(async (core) => {
          const stop = new AbortController(), source = await fileSource(MODEL), told = [];
          const onProgress = (p) => {
            told.push(p.phase);
            if (told.filter((t) => t === phase).length === at + 1) stop.abort(reason);
          };
          const open =
            GpuEngine.open(core, [source], { selfTest: true, signal: stop.signal, onProgress });
          try {
            (await open).close();
            more = false; // there was no such moment
          } catch (e) {
            equal(e, reason);
            equal(told.at(-1), phase, 'nothing is told after the end');
          }
        }, on);
        ok(more || at > 0, `no moment of ${phase}`);
      }
    }
  });

  test(`${way}: a read that never ends does not hold up a cancel`, () => fresh(async (core) => {
    const stop = new AbortController(), source = await fileSource('models/tiny.q8_0.gguf');
    const reason = new Error('enough');
    const stuck = {
      name: source.name,
      size: source.size,
      read: source.read,
      close: source.close,
      readAsync: () => new Promise(() => setTimeout(() => stop.abort(reason), 10)),
    };
    await rejects(GpuEngine.open(core, [stuck], { signal: stop.signal, selfTest: false }), reason);
  }, on));

  test(`${way}: a read that fails, and a file that has become shorter, `
    + 'are told and leave nothing', () => fresh(async (core) => {
    const source = await fileSource('models/tiny.q8_0.gguf');
    let left = 3;
    const { name, size, read, close } = source;
    const readAsync = async (offset, dst) => {
      if (left-- === 0) throw new Error('the disk is gone');
      await source.readAsync(offset, dst);
    };
    const broken = { name, size, read, close, readAsync };
    await rejects(GpuEngine.open(core, [broken], { selfTest: false }), /the disk is gone/);
    const folder = fs.mkdtempSync(join(os.tmpdir(), 'bezel-load-'));
    const cut = join(folder, 'short.gguf');
    fs.copyFileSync('models/tiny.q8_0.gguf', cut);
    const short = await fileSource(cut);
    const late = {
      ...short,
      readAsync: (offset, dst) =>
        (fs.truncateSync(cut, Math.floor(short.size / 2)), short.readAsync(offset, dst)),
    };
    await rejects(GpuEngine.open(core, [late], { selfTest: false }), /is shorter than it was/);
    fs.rmSync(folder, { recursive: true });
  }, on));
}

test('a vocabulary that is found wrong while weights are on their way ends the load with its '
  + 'sentence, and nothing is left', () => fresh(async (core) => {
  /** The file with one byte changed, so far behind the place where the key's name begins. */
  const changed = (key, after, byte) => {
    const bytes = fs.readFileSync('models/tiny.q8_0.gguf');
    bytes[bytes.indexOf(key) + key.length + after] = byte;
    return memorySource('changed.gguf', bytes);
  };
  // its type, that of the elements, how many there are; the first merge has its space behind its
  // length and three bytes
  const array = 4 + 4 + 8;
  for (const [source, sentence] of [
    [
      changed('tokenizer.ggml.token_type', array, 9),
      /: changed.gguf: tokenizer.ggml.token_type has no type from 1 to 6 for token 0$/,
    ],
    [
      changed('tokenizer.ggml.merges', array + 8 + 3, 0x61),
      /: changed.gguf: merge 0 of tokenizer.ggml.merges is not two pieces/,
    ],
  ]) {
    const phases = [];
    ok(estimate(core, [source]).fits);
    await rejects(
      GpuEngine.open(core, [source], {
        selfTest: false, onProgress: ({ phase }) => phases.push(phase),
      }),
      sentence,
    );
    ok(phases.includes('weights') && !phases.includes('ready'), phases.join());
  }
}));

test('memory that the system still writes to is there until it has, '
  + 'even when the load was cancelled', () => fresh(async (core) => {
  const stop = new AbortController(), source = await fileSource('models/tiny.q8_0.gguf');
  const reason = new Error('enough');
  let written = 0, begun = 0;
  const slow = { ...source, readAsync: async (offset, dst) => {
    if (++begun === 3) stop.abort(reason);
    await new Promise((later) => setTimeout(later, 20));
    await source.readAsync(offset, dst);
    written += dst.length ? 1 : 0; // a buffer that has gone is empty
  } };
  await rejects(GpuEngine.open(core, [slow], { signal: stop.signal, selfTest: false }), reason);
  ok(begun >= 3 && written === begun, `${written} of ${begun} reads found their memory`);
}, placing));

test('the first windows are read before buffers are made, and all are there when the load is over',
    () => fresh(async (core, gpu) => {
  const source = await fileSource('models/tiny.q8_0.gguf'), make = device.device.createBuffer;
  let made = 0, atFirstRead;
  device.device.createBuffer = (o) => (made++, make.call(device.device, o));
  const watched = {
    ...source, readAsync: (offset, dst) => (atFirstRead ??= made, source.readAsync(offset, dst)),
  };
  try {
    const engine = await GpuEngine.open(core, [watched], { selfTest: false }), loaded = made;
    equal(gpu.makeCounted(0), true, 'none is left to be made');
    ok(atFirstRead < loaded / 4, `${atFirstRead} of ${loaded}`);
    engine.close();
  } finally {
    device.device.createBuffer = make;
  }
}));

test('a device that is lost while weights are placed ends the load with its words', async () => {
  const own = { ...(await openDevice({})), software: false };
  const source = await fileSource('models/tiny.q8_0.gguf');
  let reads = 0;
  const { name, size, read, close } = source;
  const readAsync = async (offset, dst) => {
    const bytes = new Uint8Array(dst.length);
    await source.readAsync(offset, bytes);
    if (++reads === 5) own.device.destroy();
    if (dst.length) dst.set(bytes);
  };
  const slow = { name, size, read, close, readAsync };
  const gpu = new Gpu(own), core = await Core.load(wasm, gpu);
  await rejects(GpuEngine.open(core, [slow], { selfTest: false }), /the graphics device was lost/);
});

/** The device says that it has no room for the n-th buffer from now on. */
async function full(n, fn) {
  const d = device.device, push = d.pushErrorScope.bind(d), pop = d.popErrorScope.bind(d);
  const filters = [];
  d.pushErrorScope = (filter) => void (filters.push(filter), push(filter));
  d.popErrorScope = () => {
    const refuses = filters.pop() === 'out-of-memory' && n-- === 0;
    return pop().then((error) => (refuses ? { message: 'no room' } : error));
  };
  try {
    await fn();
  } finally {
    Object.assign(d, { pushErrorScope: push, popErrorScope: pop });
  }
}

test('memory that the device does not have is one sentence, and the device can be used afterwards',
    () => fresh(async (core, gpu) => {
  const sources = [await fileSource(MODEL)], options = { context: 64, batch: 8 };
  await full(
    20,
    () => rejects(GpuEngine.open(core, sources, { ...options, table: 'gpu' }), {
      kind: 'memory',
      message: new RegExp('^this model needs .* MB of graphics memory, and .* has less '
        + '\\(out of graphics memory: \\d+ bytes: no room\\)$'),
    }),
  );
  equal(gpu.bytes, 0);
  await full(20, async () => {
    const engine = await GpuEngine.open(core, sources, options);
    ok(engine.needsRows, 'the table stayed in the file, and then there was room');
    equal((await answer(engine)).drawn.length, 6);
    engine.close();
  });
}));

test('the module\'s memory stays below 64 MiB, whatever the size of the model', async () => {
  // The weights' buffers are pretended: this is about the module. They are never read.
  const own = await openDevice({}), { device: d } = own, pretended = new Set();
  const make = d.createBuffer.bind(d), write = d.queue.writeBuffer.bind(d.queue);
  d.createBuffer = (o) => {
    if (o.size < 1 << 20) return make(o);
    const b = { size: o.size, destroy: () => pretended.delete(b) };
    pretended.add(b);
    return b;
  };
  let written = 0;
  d.queue.writeBuffer = (b, at, data, from, n) => {
    written += n;
    if (!pretended.has(b)) write(b, at, data, from, n);
  };
  await fresh(async (core) => {
    const path = synth('tiny-e2b', '--quant', 'q8_0', '--vocab', '65536');
    const engine = await GpuEngine.open(core, [await fileSource(path)], { context: 4096 });
    await engine.whole();
    ok(written > 150e6, `${written} bytes are written`);
    // a vocabulary four times as large takes 25 MiB more
    ok(core.memory.buffer.byteLength <= 40 << 20, `${core.memory.buffer.byteLength} bytes`);
    engine.close();
  }, own);
  own.device.destroy();
});

test('weights larger than a binding are cut, and nothing else changes', async () => {
  const answers = [], dispatches = [];
  for (const most of [1 << 30, 1 << 20]) {
    const small = { ...device, limits: { ...device.limits, maxBinding: most, maxBuffer: most } };
    await fresh(async (core) => {
      const engine = await GpuEngine.open(
        core, [await fileSource('models/tiny.q8_0.gguf')], { context: 64, batch: 8 },
      );
      const session = engine.session(64, 8);
      dispatches.push((await session.profile(ids.subarray(0, 1), false)).dispatches);
      session.close();
      answers.push(await answer(engine));
      engine.close();
    }, small);
  }
  ok(dispatches[1] > dispatches[0], dispatches.join());
  same(answers[1], answers[0]);
});

// ---- placed by the device ----

/** What is in the buffers of the weights, in the order in which they were made. */
async function weightsOn(on, source, options) {
  return fresh(async (core, gpu) => {
    const engine = await GpuEngine.open(core, [source], {
      context: 64, batch: 8, selfTest: false, table: 'gpu', ...options,
    });
    const all = [], placed = gpu.submits;
    let n = 0;
    // numbers are given in order; a few small ones are no weights
    for (let b = 1; n < engine.estimate.weights; b++) {
      const { size } = gpu.buffers.get(b), bytes = new Uint8Array(size);
      await gpu.read(b, 0, bytes);
      all.push(bytes);
      n += size;
    }
    engine.close();
    return { all, placed };
  }, on);
}

for (const [name, path] of [
  ['q8_0', () => 'models/tiny.q8_0.gguf'], // with rows of an odd number of blocks
  ['q4_0, q6_k', () => synth('tiny-e2b', '--quant', 'q4_0')],
  ['q4_k, q6_k', () => synth('tiny-e2b')],
  ['q5_k', () => synth('tiny-dense', '--quant', 'q5_k_m')],
  ['experts', () => synth('tiny-moe', '--quant', 'q6_k')],
  ['f16', () => synth('tiny-e2b', '--quant', 'f16')],
]) {
  test(`${name}: what the device repacks is what the core repacks, byte for byte, `
    + 'in one buffer or in parts', async () => {
    for (const most of [1 << 30, 1 << 20]) {
      const limits = { ...device.limits, maxBinding: most, maxBuffer: most };
      const source = await fileSource(path());
      const { all: want } = await weightsOn({ ...device, limits }, source);
      const { all: got, placed } = await weightsOn({ ...placing, limits }, source);
      equal(got.length, want.length);
      ok(
        placed > 0 && placed < want.length,
        `${placed} windows for ${want.length} buffers: what lies together comes together`,
      );
      got.forEach((bytes, i) =>
        ok(Buffer.compare(bytes, want[i]) === 0, `buffer ${i} of ${want.length} differs`));
    }
  });
}

await finish();
