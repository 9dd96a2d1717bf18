// The module in Node: what it leaves behind, its memory, its faults.
//
//   node tests/web/test_node_core.mjs
import './software_adapter.mjs'; // before any device
import fs from 'node:fs';

import {
  Core, CpuEngine, CpuModel, fileSource, loadWasm, memorySource,
} from '../../web/engine/dist/core.js';
import { openModel } from '../../web/engine/dist/engine/open_model.js';
import { done, equal, ok, rejects, same, test, throws } from './check.mjs';
import { bezel, ids, models, tiny } from './node_fixture.mjs';

/** The module itself. */
const core = await Core.load(await loadWasm());
const open = async (model, options) => CpuEngine.open(core, [await fileSource(model)], options);

test('what is closed leaves nothing behind, and little memory was needed', async () => {
  const before = core.exports.bz_wasm_live();
  for (const model of models) {
    const engine = await open(model), session = engine.session(128, 32);
    session.feed(Int32Array.of(2, 30, 31));
    for (const _ of session.generate({ n_max: 9, seed: 1 }));
    session.close();
    engine.close();
  }
  ok(core.exports.bz_wasm_live() - before <= 1); // the last result is kept until the next
  ok(core.memory.buffer.byteLength <= 64 << 20);
});

test('a snapshot continues as the session does; stepping back draws the same again', async () => {
  const engine = await open(models[0]), a = engine.session(128), b = engine.session(128);
  const run = (s) => {
    const g = s.generate({ n_max: 12, seed: 5n });
    let step = g.next();
    while (!step.done) step = g.next();
    return [...step.value.ids];
  };
  a.feed(Int32Array.of(2, 30, 31, 40));
  b.restore(a.save());
  throws(() => b.sample(), /feed at least one token/);
  b.set(a.tokens);
  const text = run(a);
  same(run(b), text);
  equal(a.truncate(4), 4);
  a.set(Int32Array.of(2, 30, 31, 40));
  same(run(a), text);
  for (const s of [a, b]) s.close();
  engine.close();
});

test('a generation that nobody reads on leaves the session usable', async () => {
  const engine = await open(models[1]), session = engine.session(64);
  session.feed(Int32Array.of(2, 30));
  for (const _ of session.generate({ temperature: 0 })) break;
  equal(session.tokens.length, 3);
  ok(session.sample({ temperature: 0 }) >= 0);
  session.close();
  throws(() => session.feed(Int32Array.of(2)), /closed/);
  engine.close();
  throws(() => engine.tokenize('x'), /closed/);
});

test('logits can be watched and the feeding stopped, which leaves the session as it was',
    async () => {
  const engine = await open(models[3]), session = engine.session(64);
  session.feed(Int32Array.of(2, 30));
  const seen = [];
  throws(() => session.feed(Int32Array.of(31, 32, 33), 3, (position) => {
    seen.push(position);
    return position < 3;
  }), /stopped on request/);
  same(seen, [2, 3]);
  equal(session.tokens.length, 2);
  session.close();
  engine.close();
});

test('a source that fails while the model is read is one clear sentence', () => {
  const bytes = fs.readFileSync(models[0]);
  const broken = {
    ...memorySource('x', bytes),
    name: 'disk.gguf',
    size: bytes.length,
    read: () => { throw new Error('the disk is gone'); },
  };
  throws(
    () => CpuEngine.open(core, [broken]), /cannot read .* bytes at byte 0 \(the disk is gone\)/,
  );
  throws(
    () => CpuEngine.open(core, [memorySource('short.gguf', bytes.subarray(0, 5000))]),
    /short\.gguf/,
  );
  throws(() => CpuEngine.open(core, []), /1 to 256 sources/);
});

test('a model opened from memory is the model opened from its file', async () => {
  const file = await open(models[0]);
  const memory = CpuEngine.open(
    core, [memorySource('m', new Uint8Array(fs.readFileSync(models[0])))], { name: 'm' },
  );
  same(file.info, memory.info);
  file.close();
  memory.close();
});

test('a batch of any size gives the same logits at every position, on every backend', async () => {
  const source = await fileSource(models[0]);
  const ids = Int32Array.from({ length: 19 }, (_, i) => 2 + 5 * i);
  const rows = async (backend, batch) => {
    const model = await openModel({ backend, sources: [source], batch }), made = [];
    await (await model.conversation(32)).logits(ids, (position, row) =>
      (equal(position, made.length), made.push(row.slice())));
    model.close();
    return made;
  };
  const want = await rows('cpu', 32);
  for (const [backend, batches] of [['cpu', [1, 7]], ['gpu', [1, 7, 8, 9]]])
    for (const batch of batches) {
      const made = await rows(backend, batch);
      equal(made.length, ids.length);
      // sums in another order
      made.forEach((row, i) => row.forEach((z, id) => ok(
        Math.abs(z - want[i][id]) < 1e-3,
        `${backend}, batch ${batch}: logit ${id} of ${i} is ${z}, not ${want[i][id]}`,
      )));
    }
  source.close();
});

test('a model that holds its weights reads its sources once, makes the same tokens and '
  + 'gives the memory back', async () => {
  const before = core.exports.bz_wasm_live(), bytes = new Uint8Array(fs.readFileSync(tiny));
  const inner = memorySource('m', bytes);
  let reads = 0;
  const source = {
    name: 'm',
    size: bytes.length,
    read: (at, dst) => (reads++, inner.read(at, dst)),
    readAsync: (at, dst) => (reads++, inner.readAsync(at, dst)),
    close: () => {},
  };
  const made = {}, steps = [];
  for (const hold of [false, true]) {
    const model =
      await CpuModel.open(core, [source], { hold, onProgress: (...step) => steps.push(step) });
    const talk = await model.conversation(64), ids = [], opened = reads;
    await talk.set(Int32Array.of(2, 400, 401));
    for await (const { id } of talk.generate({ n_max: 8, temperature: 0 })) ids.push(id);
    made[hold] = ids;
    equal(reads > opened, !hold);
    talk.close();
    model.close();
    reads = 0;
  }
  same(made.true, made.false);
  same(steps, [[bytes.length, bytes.length]]);
  ok(core.exports.bz_wasm_live() - before <= 1);
  const huge = {
    ...source,
    size: 2 ** 31,
    read: () => { throw new Error('this is left where it is'); },
    readAsync: () => { throw new Error('this was to be held'); },
  };
  await rejects(CpuModel.open(core, [huge], { hold: true }), /this is left where it is/);
  const gone = { ...source, readAsync: async () => { throw new Error('the disk is gone'); } };
  await rejects(CpuModel.open(core, [gone], { hold: true }), /the disk is gone/);
  ok(core.exports.bz_wasm_live() - before <= 1);
});

test('a prompt is read in steps of --batch tokens, on the CPU and on the GPU', async () => {
  const source = await fileSource(tiny), prompt = Int32Array.from({ length: 40 }, (_, i) => 2 + i);
  // Where nobody says, the CPU reads 8 tokens first, and times them: a slow model is to answer a
  // cancel soon.
  for (const [backend, batch, wanted] of [
    ['cpu', 7, [7, 14, 21, 28, 35, 40]], ['cpu', undefined, [8, 40]], ['gpu', 16, [0, 16, 32, 40]],
  ]) {
    const model = await openModel({ backend, sources: [source], ...(batch && { batch }) });
    const steps = [];
    await (await model.conversation(64)).set(prompt, { onProgress: (done) => steps.push(done) });
    same(steps, wanted, `${backend} ${batch}`);
    model.close();
  }
  source.close();
  const r = bezel(['logits', models[0], '--ids', '2', '--backend', 'cpu', '--batch', '70000']);
  same([r.code, r.err], [1, 'bezel logits: --batch is 65536 at most\n']);
});

await done(process.argv[3]);
