// Whole models on the GPU against the native CPU engine: logits, prefill against single steps, and
// drawn tokens, which are the same for the same seed.
//
//   node tests/web/test_gpu_model.mjs build/bezel
//   deno run -A tests/web/test_gpu_model.mjs build/bezel
//
// Node's device is SwiftShader, which takes the paths of a processor; Deno's, llvmpipe, those of
// large GPUs.
import { execFileSync } from 'node:child_process';
import { mkdirSync, readFileSync, rmSync } from 'node:fs';

import {
  Core, CpuEngine, Gpu, GpuEngine, fileSource, loadWasm, openDevice,
} from '../../web/engine/dist/core.js';
import { done, equal, ok, same, test } from './check.mjs';
import './software_adapter.mjs';

const native = process.argv[2] ?? 'build/bezel';
const run = (...args) => execFileSync(native, args, { encoding: 'utf8', maxBuffer: 1 << 28 });
const N = 40; // more than the windows of these models
const ids = Int32Array.from({ length: N }, (_, i) => (i === 0 ? 2 : 5 + (i * 7919) % 290));

/** Logits of all positions, fed `piece` at a time. */
async function logitsOf(session, piece) {
  const rows = [];
  session.truncate(0);
  for (let at = 0; at < N; at += piece)
    await session.feed(ids.subarray(at, at + piece), piece, (_, row) => rows.push(row.slice()));
  return rows;
}

/** Names of the rules of fusion, in the order of their numbers, from 1 on. */
const rules =
  [...readFileSync('src/gpu/rules.def', 'utf8').matchAll(/^RULE\(\w+, (\w+),/gm)].map((m) => m[1]);

const worst = (a, b) => a.reduce(
  (w, row, i) => Math.max(w, row.reduce((v, x, j) => Math.max(v, Math.abs(x - b[i][j])), 0)), 0,
);

const device = await openDevice({});
for (const [name, plain] of [['e2b', false], ['kv', true], ['moe', true]]) {
  const model = `tests/golden/model_${name}.gguf`;
  const tier = plain || !device.limits.subgroupMax ? 'plain' : 'subgroup';
  let gpu, engine, session, batched;

  test(`${name}: the weights go to the device`, async () => {
    let last;
    gpu = new Gpu(device);
    const core = await Core.load(await loadWasm(), gpu);
    engine = await GpuEngine.open(core, [await fileSource(model)], {
      tier, onProgress: (p) => (last = p),
    });
    session = engine.session(200, 32);
    equal(last.loaded, last.total);
  });
  test(`${name}, ${tier} tier: every position's best token and its `
    + `logit are the CPU's`, async () => {
    const want = run('logits', model, '--ids', ids.join(','), '--top', '1')
      .trim()
      .split('\n')
      .map((l) => JSON.parse(l).top[0]);
    batched = await logitsOf(session, 8);
    equal(batched.length, N);
    want.forEach(([id, value], i) => {
      equal(batched[i].indexOf(Math.max(...batched[i])), id, `position ${i}`);
      // f32 sums in another order
      ok(Math.abs(batched[i][id] - value) < 5e-4, `position ${i}: ${batched[i][id]} for ${value}`);
    });
  });
  if (name !== 'kv')
    test(`${name}: without any one rule of fusion, and without all, `
      + 'the logits are the same', async () => {
    for (const [without, mask] of [...rules.map((rule, i) => [rule, 2 << i]), ['all', -1]]) {
      engine.core.exports.bz_wasm_gpu_without(engine.ptr, mask);
      const other = engine.session(200, 32);
      for (const piece of [8, 1]) {
        const far = worst(await logitsOf(other, piece), batched);
        ok(far < 5e-4, `without ${without}, ${piece} at a time: ${far}`);
      }
      other.close();
    }
    engine.core.exports.bz_wasm_gpu_without(engine.ptr, 0);
  });
  test(`${name}: a prompt in pieces of 3 gives the same logits`, async () => {
    ok(worst(await logitsOf(session, 3), batched) < 5e-4);
  });
  // Not where a router chooses: a last bit of a key can change an expert.
  if (name !== 'moe')
    test(`${name}: a cache of halves gives what it gives on the CPU`, async () => {
    const want = run('logits', model, '--ids', ids.join(','), '--top', '1', '--cache', 'f16')
      .trim()
      .split('\n')
      .map((l) => JSON.parse(l).top[0]);
    const halves = engine.session(200, 32, 'f16');
    const got = await logitsOf(halves, 8);
    // A key next to the middle of two halves may round the other way: 2^-11 of it, seen by a few
    // logits.
    want.forEach(([id, value], i) =>
      ok(Math.abs(got[i][id] - value) < 5e-3, `position ${i}: ${got[i][id]} for ${value}`));
    ok(worst(got, batched) > 1e-6, 'the same numbers as with f32');
    halves.close();
  });
  for (const [options, args] of [
    [{ temperature: 0 }, ['--greedy']],
    [{ seed: 7 }, ['--seed', '7']],
    [
      { seed: 9, top_k: 0, min_p: 0.05, repeat_penalty: 1.4, bias: [[100, null]] },
      [
        '--seed', '9', '--top-k', '0', '--min-p', '0.05', '--repeat-penalty', '1.4',
        '--logit-bias', '100:-inf',
      ],
    ],
  ]) {
    test(`${name}: tokens drawn with ${JSON.stringify(options)} are the CPU's`, async () => {
      const want = JSON.parse(
        run('generate', model, '--ids', ids.join(','), '--n', '10', '--json', ...args),
      ).ids;
      const got = [];
      session.truncate(0);
      await session.read(ids);
      for await (const { id } of session.generate(options)) if (got.push(id) === want.length) break;
      same(got, want);
      equal(session.length, N + want.length, 'what was queued ahead is forgotten');
    });
  }
  for (const options of [{ temperature: 0 }, { seed: 5 }, { seed: 6, top_k: 0 }]) {
    test(`${name}: under a constraint whose mask is another one for each token, those drawn with `
      + `${JSON.stringify(options)} are the CPU's`, async () => {
      const host = await Core.load(await loadWasm());
      const cpu = CpuEngine.open(host, [await fileSource(model)]), talk = cpu.session(200);
      const wish = { ...options, n_max: 12, constraint: { regex: '([a-m]+[n-z][A-Z0-9])*' } };
      talk.set(ids);
      const want = [...talk.pieces(wish)], got = [];
      ok(want.length > 3);
      ok(/^([a-m]+[n-z][A-Z0-9])*[a-m]*[n-z]?$/.test(want.map(({ text }) => text).join('')));
      session.truncate(0);
      await session.read(ids);
      for await (const piece of session.generate(wish)) got.push(piece);
      same(got, want);
      cpu.close();
    });
  }
  test(`${name}: closing leaves nothing on the device`, () => {
    session.close();
    engine.close();
    equal(gpu.bytes, 0);
  });
}
const synth = `build/tmp/gpu_model_${process.pid}.gguf`;
const known = ['nvidia', 'apple', 'spec']; // others have the plans of nvidia: tests/test_plan.c
for (const name of known) {
  test(`a device of the profile ${name} has the CPU's logits`, async () => {
    mkdirSync('build/tmp', { recursive: true });
    run('synth', 'tiny-e2b', synth, '--force');
    const want = run('logits', synth, '--ids', ids.join(','), '--top', '1')
      .trim()
      .split('\n')
      .map((l) => JSON.parse(l).top[0]);
    const own = await openDevice({ profile: name }), gpu = new Gpu(own);
    const engine = await GpuEngine.open(
      await Core.load(await loadWasm(), gpu), [await fileSource(synth)], { selfTest: false },
    );
    const session = engine.session(64, 8), got = [];
    for (const id of ids.subarray(0, 12))
      await session.feed(Int32Array.of(id), 1, (_, row) => got.push(row.slice()));
    equal(got.length, 12);
    got.forEach((row, i) => ok(
      Math.abs(row[want[i][0]] - want[i][1]) < 5e-4,
      `position ${i}: ${row[want[i][0]]} for ${want[i][1]}`,
    ));
    session.close();
    engine.close();
    own.device.destroy();
    rmSync(synth);
  });
}

const question = '<bos><|turn>user\nWhat is the capital of France?<turn|>\n<|turn>model\n';
test('the shipped model answers on the GPU', async () => {
  const gpu = new Gpu(device), core = await Core.load(await loadWasm(), gpu);
  const engine = await GpuEngine.open(core, [await fileSource('models/tiny.q8_0.gguf')]);
  const session = engine.session();
  let answer = '';
  await session.read(engine.tokenize(question));
  for await (const { text } of session.generate({ temperature: 0, n_max: 8 })) answer += text;
  ok(answer.includes('Paris'), answer);
  gpu.close();
});
test('and in wasm on the CPU', async () => {
  const core = await Core.load(await loadWasm());
  const engine = CpuEngine.open(core, [await fileSource('models/tiny.q8_0.gguf')]);
  const session = engine.session();
  session.set(engine.tokenize(question));
  const text = [...session.generate({ temperature: 0, n_max: 20 })].join('');
  ok(text.includes('Paris'), text);
});
await done(process.argv[3]);
device.device.destroy(); // else its threads do not end
