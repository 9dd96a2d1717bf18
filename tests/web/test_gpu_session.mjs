// Conversations on the GPU against the same conversations on the CPU: texts and where they end,
// snapshots, adapters, several at once, and what happens when the device is lost.
//
//   node tests/web/test_gpu_session.mjs build/bezel [WORDS]
import { execFileSync } from 'node:child_process';
import fs from 'node:fs';
import os from 'node:os';
import path from 'node:path';

import {
  Core, Gpu, GpuEngine, GpuModel, fileSource, loadWasm, memorySource, openDevice, openModel,
} from '../../web/engine/dist/core.js';
import { Pace } from '../../web/engine/dist/gpu/pace.js';
import { done, equal, ok, rejects, same, test } from './check.mjs';
import { linearsOf, loraFile } from './lora_file.mjs';
import './software_adapter.mjs';

const native = process.argv[2] ?? 'build/bezel';
// of this run: Node's and Deno's may meet
const temp = fs.mkdtempSync(path.join(os.tmpdir(), 'bezel-session-'));
process.on('exit', () => fs.rmSync(temp, { recursive: true, force: true }));

const prompt = (n, first = 0) =>
  Int32Array.from({ length: n }, (_, i) => (i === 0 ? 2 : 5 + ((i + first) * 7919) % 290));
const greedy = { temperature: 0, ignore_end: true };

/** A golden model's weights in another format. */
function requantised(name, type) {
  const out = `${temp}/${name}.${type}.gguf`;
  if (!fs.existsSync(out))
    execFileSync(native, ['quantize', `tests/golden/model_${name}.gguf`, out, type]);
  return out;
}

const open = async (backend, file, more = {}) => openModel({
  backend, sources: [typeof file === 'string' ? await fileSource(file) : file], ...more,
});

/** The same on the CPU and on the GPU; both are closed. */
async function onBoth(file, work, more = {}) {
  const results = [];
  for (const backend of ['cpu', 'gpu']) {
    const model = await open(backend, file, more);
    try {
      results.push(await work(model));
    } finally {
      model.close();
    }
  }
  return results;
}

/** All of a text: ids, text, how it stopped, and what the conversation then holds. */
async function text(conversation, options, each) {
  const all = { ids: [], text: '', stop: '' }, pieces = conversation.generate(options);
  for (;;) {
    const next = await pieces.next();
    if (next.done) return { ...all, ...next.value, held: [...conversation.tokens] };
    all.ids.push(next.value.id);
    all.text += next.value.text;
    each?.(next.value, all.ids.length);
  }
}

/** Logits of positions by id, as the model's conversation gives them for one token more. */
async function rowAfter(conversation, id) {
  let row;
  await conversation.logits(Int32Array.of(id), (_, r) => (row = r.slice()));
  return row;
}
const worst = (a, b) => a.reduce((w, z, i) => Math.max(w, Math.abs(z - b[i])), 0);

// ---- the same tokens ----

// One device for all of them, where engines stay open: kernels that they share are compiled once.
let shared;
for (const [name, type] of [
  ...['e2b', 'kv', 'moe'].flatMap((m) => [[m, 'f32'], [m, 'q8_0']]), ['tiny'],
]) {
  test(`${name}${type ? ` ${type}` : ''}: 200 greedy tokens are the CPU's`, async () => {
    const path = type ? requantised(name, type) : 'models/tiny.q8_0.gguf';
    const options = { ...greedy, n_max: 200 };
    shared ??= await Core.load(await loadWasm(), new Gpu(await openDevice()));
    const session = (await GpuEngine.open(shared, [await fileSource(path)])).session(400, 32);
    await session.read(prompt(30));
    const got = await text(session, options);
    const model = await open('cpu', path), c = await model.conversation(400);
    await c.set(prompt(30));
    same(got, await text(c, options));
    equal(got.ids.length, 200);
    model.close();
  });
}
test('that device is given back', () => shared?.gpu.close());

const e2b = 'tests/golden/model_e2b.gguf';
let gpu, cpu; // one model on each, for what follows
test('the models are opened', async () => {
  [gpu, cpu] = [await open('gpu', e2b), await open('cpu', e2b)];
});
const pair = async (context, work) => {
  const results = [];
  for (const model of [cpu, gpu]) {
    const c = await model.conversation(context);
    results.push(await work(c, model));
    c.close();
  }
  return results;
};

test('a prompt read at once, token by token and in odd pieces has the same log-probabilities',
    async () => {
  const ids = prompt(70);
  const last = async (steps) => {
    const c = await gpu.conversation(100);
    for (const n of steps) await c.set(ids.subarray(0, n));
    const pieces = [];
    for await (const p of c.generate({ ...greedy, n_max: 4, logprobs: 3 })) pieces.push(p);
    c.close();
    return pieces;
  };
  const once = await last([70]);
  for (const steps of [Array.from({ length: 70 }, (_, i) => i + 1), [1, 6, 11, 40, 69, 70]]) {
    const other = await last(steps);
    same(other.map((p) => p.id), once.map((p) => p.id));
    // f32 sums in another order
    other.forEach((p, i) => ok(Math.abs(p.logprob - once[i].logprob) < 5e-4));
  }
});

test('a context of 5,000 tokens goes through many windows and ends like the CPU\'s', async () => {
  const bytes = fs.readFileSync(e2b), key = Buffer.from('gemma4.context_length');
  const at = bytes.indexOf(key) + key.length;
  equal(bytes.readUInt32LE(at), 4, 'the value is a u32');
  equal(bytes.readUInt32LE(at + 4), 512);
  bytes.writeUInt32LE(8192, at + 4);
  const [a, b] = await onBoth(memorySource('long.gguf', bytes), async (model) => {
    const c = await model.conversation(5100);
    let steps = 0;
    await c.set(prompt(5000), { onProgress: () => steps++ });
    ok(steps > 5);
    return text(c, { ...greedy, n_max: 12 });
  });
  equal(a.held.length, 5012);
  same(b, a);
});

// ---- where texts end ----

test('stop strings end the text at the same place, wherever they fall in the tokens', async () => {
  const base = { ...greedy, n_max: 40 };
  const [whole] = await pair(200, async (c) => (await c.set(prompt(30)), text(c, base)));
  const letters = [...whole.text];
  for (const from of [3, 8, 15]) {
    const stop = letters.slice(from, from + 4).join('');
    const [a, b] = await pair(200, async (c) =>
      (await c.set(prompt(30)), text(c, { ...base, stop: ['\u2603\u2603', stop] })));
    equal(a.stop, 'string');
    ok(a.ids.length < 40);
    same(b, a, JSON.stringify(stop));
  }
});

test('the number of tokens, a full context and an end token end it, '
  + 'and the conversation holds what the CPU\'s holds', async () => {
  for (const [n, context] of [[1, 64], [5, 64], [0, 40], [100, 40]]) {
    const [a, b] =
      await pair(context, async (c) => (await c.set(prompt(30)), text(c, { ...greedy, n_max: n })));
    equal(a.stop, n && n < 10 ? 'length' : 'context');
    same(b, a);
  }
  const [a, b] = await onBoth('models/tiny.q8_0.gguf', async (model) => {
    const c = await model.conversation(300);
    await c.set(
      model.tokenize('<bos><|turn>user\nWhat is the capital of France?<turn|>\n<|turn>model\n'),
    );
    return text(c, { temperature: 0 });
  });
  equal(a.stop, 'end');
  ok(b.text.includes('Paris'), b.text);
  same(b, a);
});

test('a context that is full, or empty, yields no token', async () => {
  const c = await gpu.conversation(30);
  await rejects(text(c, greedy), /feed at least one token/);
  await c.set(prompt(30));
  same((await text(c, greedy)).ids, []);
  await rejects(c.set(prompt(31)), /31 tokens do not fit/);
  await rejects(c.set(Int32Array.of(2, 5000)), /token id 5000; this vocabulary ends at/);
  await rejects(c.set(new Int32Array()), /at least one token/);
  equal(c.length, 30, 'what cannot be held changes nothing');
  c.close();
});

test('where every token is forbidden there is a sentence', async () => {
  const bias = Array.from({ length: gpu.info.n_vocab }, (_, id) => [id, null]);
  for (const temperature of [0, 1]) {
    const c = await gpu.conversation(30);
    await c.set(prompt(5));
    await rejects(text(c, { temperature, bias }), /every token is forbidden/);
    equal(c.length, 5);
    same((await text(c, { ...greedy, n_max: 2 })).ids.length, 2, 'and it goes on');
    c.close();
  }
});

test('leaving the loop keeps exactly the tokens that came out, '
  + 'and going on is as if nothing had happened', async () => {
  const [a, b] = await pair(200, async (c) => {
    const ids = [];
    await c.set(prompt(30));
    for (const n of [3, 1, 7]) {
      let k = 0;
      for await (const { id } of c.generate(greedy)) {
        ids.push(id);
        if (++k === n) break;
      }
      equal(c.length, 30 + ids.length);
    }
    return ids;
  });
  same(b, a);
});

test('a text of one token, whose step nobody has recorded, leaves what one of several would',
    async () => {
  const ids = prompt(20), again = prompt(9, 40);
  const [want] = await pair(100, async (c) => (await c.set(ids), text(c, { ...greedy, n_max: 6 })));
  const first = want.ids[0];
  const ways = {
    'goes on': async (c) => [first, ...(await text(c, { ...greedy, n_max: 5 })).ids],
    'in a snapshot': async (c) => {
      await c.restore(await c.save());
      return [first, ...(await text(c, { ...greedy, n_max: 5 })).ids];
    },
    'kept as it is': async (c) =>
      (equal(c.truncate(21), 21), [first, ...(await text(c, { ...greedy, n_max: 5 })).ids]),
    'taken back': async (c) =>
      (equal(c.truncate(20), 20), (await text(c, { ...greedy, n_max: 6 })).ids),
  };
  for (const [name, way] of Object.entries(ways)) {
    const c = await gpu.conversation(100);
    await c.set(ids);
    same((await text(c, { ...greedy, n_max: 1 })).held, [...ids, first], name);
    equal(c.length, 21);
    same(await way(c), want.ids, name);
    c.close();
  }
  const after = async (c) => {
    await c.set(ids);
    await text(c, { ...greedy, n_max: 1 });
    const rows = [];
    await c.logits(again, (position, row) => rows.push([position, row.slice()]));
    return rows;
  };
  const [a, b] = await pair(100, after);
  same(b.map(([position]) => position), a.map(([position]) => position));
  b.forEach(([, row], i) => ok(worst(row, a[i][1]) < 5e-4));
});

test('set keeps the longest common beginning, as on the CPU', async () => {
  const [a, b] = await pair(200, async (c) => {
    const kept = [await c.set(prompt(40))];
    kept.push(await c.set(prompt(60)), await c.set(prompt(60)));
    kept.push(
      await c.set(Int32Array.from([...prompt(50), 7, 7])), c.truncate(20), await c.set(prompt(60)),
    );
    await text(c, { ...greedy, n_max: 5 });
    kept.push(await c.set(Int32Array.from([...c.tokens, 9])), await c.set(prompt(30)), c.length);
    return { kept, next: await text(c, { ...greedy, n_max: 6 }) };
  });
  same(b, a);
  same(a.kept.slice(0, 3), [0, 40, 60]);
});

test('a signal stops a text, and a prompt, at any moment; what is left is whole', async () => {
  const c = await gpu.conversation(500);
  await c.set(prompt(30));
  const alone = await text(c, { ...greedy, n_max: 30 });
  for (const [after, wait] of [[1, 0], [4, 1], [2, 7]]) {
    c.truncate(0);
    await c.set(prompt(30));
    const stop = new AbortController();
    const cut = await text(
      c,
      { ...greedy, n_max: 30, signal: stop.signal },
      (_, n) => n === after && setTimeout(() => stop.abort(), wait),
    );
    ok(cut.stop === 'cancelled' || cut.ids.length === 30);
    same(cut.ids, alone.ids.slice(0, cut.ids.length));
    equal(c.length, 30 + cut.ids.length);
    same(
      (await text(c, { ...greedy, n_max: 30 - cut.ids.length || 1 })).ids
        .slice(0, 30 - cut.ids.length),
      alone.ids.slice(cut.ids.length),
    );
  }
  const small = await gpu.conversation(500);
  const stop = new AbortController();
  await rejects(small.set(prompt(490), { signal: AbortSignal.abort() }), { kind: 'cancelled' });
  await rejects(small.set(Int32Array.from({ length: 500 }, () => 9), {
    signal: stop.signal, onProgress: () => stop.abort(),
  }).then(() => {
    if (stop.signal.aborted)
      throw Object.assign(
        new Error('it was read before the signal was heard'), { kind: 'cancelled' },
      );
  }), { kind: 'cancelled' });
  await small.set(prompt(30));
  same((await text(small, { ...greedy, n_max: 30 })).ids, alone.ids);
  c.close();
  small.close();
});

test('one thing at a time: a conversation that is at something refuses the rest, and can be closed',
    async () => {
  const c = await gpu.conversation(200);
  await c.set(prompt(10));
  const pieces = c.generate(greedy);
  await pieces.next();
  await rejects(c.set(prompt(20)), /busy/);
  await rejects(c.generate(greedy).next(), /busy/);
  await rejects(async () => c.truncate(0), /busy/);
  c.close();
  same((await pieces.next()).value, { stop: 'cancelled' });
});

// ---- several, numbers, snapshots ----

test('conversations take turns, token by token, without hearing of each other', async () => {
  const options = [
    { ...greedy }, { seed: 5, ignore_end: true },
    { seed: 6, top_k: 0, repeat_penalty: 1.3, ignore_end: true },
  ].map((o) => ({ ...o, n_max: 25 }));
  const alone = [];
  const begin = async (i) => {
    const c = await gpu.conversation(100 + i);
    await c.set(prompt(20 + i, i));
    return c;
  };
  for (const [i, o] of options.entries()) {
    const c = await begin(i);
    alone.push(await text(c, o));
    c.close();
  }
  const three = await Promise.all(options.map((_, i) => begin(i)));
  const together =
    await Promise.all(options.map((o, i) => text(three[i], o, () => i === 1 && gpu.tokenize('x'))));
  same(together, alone);
  for (const c of three) c.close();
});

test('seeded tokens with penalties are the CPU\'s', async () => {
  const [a, b] = await pair(
    200,
    async (c) =>
      (await c.set(prompt(30)),
        text(c, {
          seed: 11, repeat_penalty: 1.2, frequency_penalty: 0.1, ignore_end: true, n_max: 30,
        })),
  );
  same(b, a);
});

test('log-probabilities are the CPU\'s', async () => {
  const [a, b] = await pair(200, async (c) => {
    const pieces = [];
    await c.set(prompt(30));
    for await (const p of c.generate({ ...greedy, n_max: 10, logprobs: 4, repeat_penalty: 1.5 }))
      pieces.push(p);
    return pieces;
  });
  equal(b.length, 10);
  b.forEach((p, i) => {
    equal(p.id, a[i].id);
    ok(Math.abs(p.logprob - a[i].logprob) < 5e-4, `${p.logprob} for ${a[i].logprob}`);
    equal(p.top.length, 4);
    same(p.top.map((t) => t.id), a[i].top.map((t) => t.id));
    p.top.forEach((t, k) => ok(Math.abs(t.logprob - a[i].top[k].logprob) < 5e-4));
  });
});

for (const cache of ['f32', 'f16']) {
  test(`a snapshot of a cache of ${cache} goes to the other backend, and back`, async () => {
    const models = cache === 'f32'
      ? { cpu, gpu }
      : { cpu: await open('cpu', e2b, { cache }), gpu: await open('gpu', e2b, { cache }) };
    const saved = {}, after = {};
    for (const [name, model] of Object.entries(models)) {
      const c = await model.conversation(300);
      await c.set(prompt(60));
      await text(c, { ...greedy, n_max: 9 });
      saved[name] = await c.save();
      after[name] = await text(c, { ...greedy, n_max: 20 });
      c.close();
    }
    same(after.gpu, after.cpu);
    equal(saved.gpu.length, saved.cpu.length);
    for (const from of ['cpu', 'gpu'])
      for (const to of ['cpu', 'gpu']) {
        const c = await models[to].conversation(400);
        await c.restore(saved[from]);
        equal(c.length, 69);
        same(await text(c, { ...greedy, n_max: 20 }), after.cpu, `${from} to ${to}`);
        c.truncate(69);
        const again = await c.save();
        equal(again.length, saved[from].length);
        c.close();
      }
    const broken = saved.gpu.slice();
    broken[200] ^= 1;
    const c = await models.gpu.conversation(300);
    await rejects(c.restore(broken), /checksum/);
    equal(c.length, 0);
    c.close();
    if (cache === 'f16') for (const model of Object.values(models)) model.close();
  });
}

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

test('memory is told by what it is for, and is all given back', async () => {
  const { weights, cache, scratch } = gpu.memory;
  equal(cache, 0, 'every conversation above was closed');
  ok(weights > 0 && scratch >= 0);
  const c = await gpu.conversation(128);
  ok(gpu.memory.cache > 0);
  c.close();
  const { gpu: device } = gpu.engine;
  gpu.close();
  cpu.close();
  equal(device.bytes, 0);
});

await done(process.argv[3]);
