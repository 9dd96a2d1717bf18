// Conversations on the GPU against the same conversations on the CPU: texts and where they end,
// several at once, snapshots.
//
//   node tests/web/test_gpu_session.mjs build/bezel [WORDS]
import fs from 'node:fs';

import {
  Core, Gpu, GpuEngine, fileSource, loadWasm, memorySource, openDevice,
} from '../../web/engine/dist/core.js';
import { equal, ok, rejects, same, test } from './check.mjs';
import {
  closePair, cpu, e2b, finish, gpu, greedy, onBoth, open, openPair, pair, prompt, requantised,
  text, worst,
} from './gpu_session_fixture.mjs';

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

openPair();

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

closePair();

await finish();
