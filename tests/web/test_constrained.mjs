// Texts that keep to constraints, on the GPU against the same texts on the CPU: where they end,
// what they leave behind, and what a token costs.
//
//   node tests/web/test_constrained.mjs build/bezel [WORDS]
import {
  BezelError, Core, Gpu, GpuEngine, fileSource, loadWasm, memorySource, openDevice,
} from '../../web/engine/dist/core.js';
import { Engine } from '../../web/engine/dist/index.js';
import { equal, ok, rejects, same, test } from './check.mjs';
import {
  closePair, cpu, e2b, finish, gpu, onBoth, open, openPair, pair, prompt, text,
} from './gpu_session_fixture.mjs';
import { linearsOf, loraFile } from './lora_file.mjs';

const schema = {
  type: 'object',
  properties: {
    name: { type: 'string', maxLength: 6 },
    kind: { enum: ['a longer name of a thing', 'another name of that'] },
    n: { type: 'integer', minimum: 0, maximum: 999 },
  },
  required: ['name', 'kind', 'n'],
  additionalProperties: false,
};
const keeps = ({ text: json }) => {
  const { name, kind, n, ...others } = JSON.parse(json);
  return [...name].length <= 6 && schema.properties.kind.enum.includes(kind)
    && Number.isInteger(n) && n >= 0 && n <= 999 && !Object.keys(others).length;
};
const greedy = { temperature: 0 };
// another mask for each token, and no end in sight
const free = { regex: '([a-m]+[n-z][A-Z0-9])*' };
const fixed = // nothing but tokens that must come, more than are read together
  { regex: 'All of this must come as it is, which takes a few more tokens than are read at once' };

/** A whole text from a prompt of 30 tokens on, on both; the same on both. */
async function both(options, each) {
  const [a, b] = await pair(200, async (c) => (await c.set(prompt(30)), text(c, options, each)));
  same(b, a);
  return a;
}

openPair();

// ---- the same texts ----

for (const options of [greedy, { seed: 5 }, { seed: 6, top_k: 0, repeat_penalty: 1.3 }])
  test(`a text drawn with ${JSON.stringify(options)} keeps to its schema, and is the CPU's`,
      async () => {
    const a = await both({ ...options, n_max: 150, constraint: { schema } });
    equal(a.stop, 'end');
    ok(keeps(a), a.text);
    await both({ ...options, n_max: 25, constraint: free });
    equal((await both({ ...options, constraint: fixed })).text, fixed.regex);
  });

const question = '<bos><|turn>user\nWhat is the capital of France?<turn|>\n<|turn>model\n';
const thinking = `<bos><|turn>system\n<|think|><turn|>\n${question.slice(5)}`;
test('the trained model thinks, and then answers with JSON, or calls a tool', async () => {
  const tools = [{ name: 'remember', parameters: schema, strict: true }, { name: 'forget' }];
  const [a, b] = await onBoth('models/tiny.q8_0.gguf', async (model) => {
    const c = await model.conversation(300), all = [];
    for (const constraint of [{ schema, thinking: true }, { tools, call: 'required' }]) {
      await c.set(model.tokenize(constraint.thinking ? thinking : question));
      all.push(await text(c, { ...greedy, specials: true, n_max: 120, constraint }));
    }
    return all;
  });
  same(b, a);
  const [, thought, json] = /^<\|channel>thought\n(.*)<channel\|>(\{.*\})$/s.exec(a[0].text);
  ok(thought.includes('Paris') && keeps({ text: json }), a[0].text);
  ok(/^<\|tool_call>call:(remember\{name:<\|"\|>|forget\{)/.test(a[1].text), a[1].text);
});

test('log-probabilities are of all tokens, also where only some may come, '
  + 'and of those that must', async () => {
  const constraint = { regex: 'The (answer|reply) is [0-9]{2,4}\\.' };
  const [a, b] = await pair(200, async (c) => {
    const pieces = [];
    await c.set(prompt(30));
    for await (const p of c.generate({ ...greedy, logprobs: 2, constraint })) pieces.push(p);
    return pieces;
  });
  same(b.map(({ id, text: t }) => [id, t]), a.map(({ id, text: t }) => [id, t]));
  ok(a.some(({ id, top }) => id !== top[0].id), 'the model would have said something else');
  b.forEach(({ logprob, top }, i) => {
    ok(Math.abs(logprob - a[i].logprob) < 5e-4, `${logprob} for ${a[i].logprob}`);
    same(top.map(({ id }) => id), a[i].top.map(({ id }) => id));
  });
});

test('with the embedding table in the file the tokens are the same', async () => {
  const device = new Gpu(await openDevice());
  const core = await Core.load(await loadWasm(), device);
  const engine = await GpuEngine.open(core, [await fileSource(e2b)], { table: 'source' });
  ok(engine.needsRows);
  const session = engine.session(200, 32);
  const want = await both({ ...greedy, constraint: { schema } });
  await session.read(prompt(30));
  same(await text(session, { ...greedy, constraint: { schema } }), want);
  device.close();
});

// ---- where texts end ----

test('a text ends after any number of tokens, whether they were drawn or had to come, '
  + 'and where the context does', async () => {
  const whole = await both({ ...greedy, constraint: { schema } });
  for (const n of [1, 2, 5, 9, 10, 11, 22, 30]) {
    const a = await both({ ...greedy, n_max: n, constraint: { schema } });
    equal(a.stop, 'length');
    same(a.ids, whole.ids.slice(0, n));
  }
  for (const n of [1, 4, 12, 40]) {
    const [a, b] = await pair(30 + n, async (c) =>
      (await c.set(prompt(30)), text(c, { ...greedy, constraint: fixed })));
    equal(a.stop, 'context');
    equal(a.ids.length, n);
    same(b, a);
  }
});

test('stop strings end it inside tokens that must come', async () => {
  for (const stop of ['must', 'few more', 'once']) {
    const a = await both({ ...greedy, stop: ['\u2603', stop], constraint: fixed });
    equal(a.stop, 'string');
    equal(a.text, fixed.regex.slice(0, fixed.regex.indexOf(stop)));
  }
});

test('ends that are ignored do not come, and nothing does after the text', async () => {
  const [plain, b] = [
    await both({ ...greedy, constraint: { schema } }),
    await both({ ...greedy, ignore_end: true, constraint: { schema } }),
  ];
  equal(b.text, plain.text);
  same(b.ids, plain.ids.slice(0, -1));
});

test('leaving the loop after any token keeps what came out, '
  + 'and the conversation goes on from there', async () => {
  for (const constraint of [{ schema }, fixed])
    for (const n of [1, 7, 11, 24]) {
      const [a, b] = await pair(200, async (c) => {
        const ids = [];
        await c.set(prompt(30));
        for await (const { id } of c.generate({ ...greedy, constraint }))
          if (ids.push(id) === n) break;
        same([...c.tokens], [...prompt(30), ...ids]);
        return { ids, after: await text(c, { ...greedy, n_max: 4 }) };
      });
      same(b, a);
    }
});

test('a signal stops it at any moment; what is left is whole, and is kept for the next prompt',
    async () => {
  const c = await gpu.conversation(200);
  const alone = await both({ ...greedy, constraint: { schema } });
  for (const after of [1, 6, 15, 33]) {
    const stop = new AbortController();
    await c.set(prompt(30));
    const cut = await text(
      c, { ...greedy, constraint: { schema }, signal: stop.signal },
      (_, n) => n === after && stop.abort(),
    );
    equal(cut.stop, 'cancelled');
    same(cut.ids, alone.ids.slice(0, after));
    equal(await c.set(Int32Array.from([...prompt(30), ...alone.ids, 9])), 30 + after);
    const { ids } = await text(c, { ...greedy, n_max: 3 });
    equal(ids.length, 3);
  }
  c.close();
});

test('what was answered is the beginning of the next prompt', async () => {
  const [a, b] = await pair(300, async (c) => {
    await c.set(prompt(30));
    const first = await text(c, { ...greedy, constraint: { schema } });
    const kept = await c.set(Int32Array.from([...first.held, ...prompt(12, 50)]));
    return { first, kept, second: await text(c, { seed: 3, constraint: { schema } }) };
  });
  same(b, a);
  equal(a.kept, a.first.held.length);
  ok(keeps(a.second));
});

// ---- several; other adapters; a lost device ----

test('answers with constraints and without take turns, token by token', async () => {
  const options = [
    { ...greedy, constraint: { schema } }, { seed: 5, constraint: { schema }, n_max: 20 },
    { seed: 6, ignore_end: true, n_max: 10 }, { ...greedy, constraint: free, n_max: 20 },
  ];
  const alone = [];
  const begin = async (i) => {
    const c = await gpu.conversation(200 + i);
    await c.set(prompt(20 + i, i));
    return c;
  };
  for (const [i, o] of options.entries()) {
    const c = await begin(i);
    alone.push(await text(c, o));
    c.close();
  }
  const all = await Promise.all(options.map((_, i) => begin(i)));
  same(await Promise.all(options.map((o, i) => text(all[i], o))), alone);
  for (const c of all) c.close();
});

test('an adapter that comes between two tokens counts from the next one on, as on the CPU',
    async () => {
  const file = await fileSource(e2b), linears = linearsOf(gpu.engine.core, file);
  const [a, b] = await pair(200, async (c, model) => {
    let id;
    await c.set(prompt(30));
    return text(c, { ...greedy, n_max: 30, one_by_one: true, constraint: free }, async (_, n) => {
      if (n === 6)
        id = await model.addAdapter(memorySource('adapter', loraFile(linears, 3, { seed: 4 })));
      if (n === 17) model.removeAdapter(id);
    });
  });
  same(b, a);
});

test('a device lost in the middle: it goes on, with the same tokens', async () => {
  const want = await both({ ...greedy, constraint: { schema } });
  const c = await gpu.conversation(200), before = gpu.engine;
  await c.set(prompt(30));
  const got = await text(c, { ...greedy, constraint: { schema } }, (_, n) =>
    (n === 3 || n === 20 || n === 41) && gpu.engine.gpu.device.destroy());
  same(got, want);
  ok(gpu.engine !== before);
  c.close();
});

// ---- what a token costs ----

/** Submits and reads of a text; of each of its tokens. */
async function costs(options, n) {
  const { gpu: device } = gpu.engine, { run } = device, c = await gpu.conversation(200);
  await c.set(prompt(30));
  for await (const _ of c.generate({ ...greedy, n_max: 4 })); // its programs are recorded
  await c.set(prompt(30));
  const seen = { runs: 0, reads: 0, tokens: 0 };
  device.run = (items) => {
    seen.runs++;
    seen.reads += items.filter((item) => typeof item !== 'number').length;
    return run.call(device, items);
  };
  try {
    for await (const _ of c.generate({ ...options, n_max: n })) seen.tokens++;
  } finally {
    delete device.run;
    c.close();
  }
  return seen;
}

test('a token that is drawn is two submits and a read, one that must come is one submit, '
  + 'and many of those are one', async () => {
  const drawn = await costs({ ...greedy, constraint: free }, 12);
  equal(drawn.tokens, 12);
  equal(drawn.reads, 12);
  ok(drawn.runs <= 24, `${drawn.runs} submits`);
  const few = await costs({ ...greedy, constraint: { regex: 'this[a-z] and' } }, 20);
  ok(few.reads < few.tokens && few.runs <= few.tokens + few.reads, JSON.stringify(few));
  const many = await costs({ ...greedy, constraint: fixed }, 32);
  equal(many.tokens, 32);
  ok(many.reads <= 2 && many.runs <= 6, JSON.stringify(many));
});

test('where the mask stays the same, draws are queued ahead, '
  + 'and forgotten where it does not', async () => {
  const constraint = { gbnf: 'root ::= [a-z]{60} [A-Z]{3} "."' };
  const want = await both({ ...greedy, constraint });
  const { gpu: device } = gpu.engine, { run } = device, c = await gpu.conversation(200);
  let most = 0, tokens = 0, reads = 0;
  device.run = (items) => {
    reads += items.filter((item) => typeof item !== 'number').length;
    return run.call(device, items);
  };
  await c.set(prompt(30));
  const got =
    await text(c, { ...greedy, constraint }, () => (most = Math.max(most, reads - ++tokens)));
  delete device.run;
  same(got, want);
  ok(most >= 2, `${most} on their way`);
  ok(reads <= tokens + 6, `${reads} draws for ${tokens} tokens`);
  c.close();
});

test('a token allocates nothing in the module once its masks are known', async () => {
  const c = await gpu.conversation(200), { exports } = gpu.engine.core;
  for (const round of [0, 1]) {
    await c.set(prompt(30));
    let live;
    for await (const _ of c.generate({ ...greedy, n_max: 25, constraint: free })) {
      live ??= exports.bz_wasm_live();
      if (round) equal(exports.bz_wasm_live(), live);
    }
  }
  c.close();
});

// ---- what cannot be kept ----

test('a constraint that cannot be kept is a sentence, and the conversation goes on', async () => {
  for (const model of [cpu, gpu]) {
    const c = await model.conversation(60);
    await c.set(prompt(5));
    for (const [constraint, words] of [
      [{ schema: { type: 'text' } }, /type at #/], [{ regex: 'a(' }, /group/],
      [{ regex: 'a', gbnf: 'root ::= "a"' }, /one of/],
    ]) {
      await rejects(text(c, { ...greedy, constraint }), words);
      ok(words.test(model.checkConstraint(constraint)));
    }
    equal(model.checkConstraint({ schema }), undefined);
    equal(c.length, 5);
    equal((await text(c, { ...greedy, n_max: 2 })).ids.length, 2);
    c.close();
  }
  const diffusion = await open('cpu', 'models/tiny-diffusion.q8_0.gguf');
  const c = await diffusion.conversation(300);
  await c.set(diffusion.tokenize(question));
  await rejects(text(c, { constraint: { schema } }), (e) =>
    e instanceof BezelError && e.kind === 'unsupported' && /cannot be constrained yet/.test(e));
  diffusion.close();
});

test('an engine says whether a grammar can be kept', async () => {
  const engine = await Engine.load(e2b, { backend: 'cpu', worker: false });
  equal(await engine.checkGrammar({ schema }), undefined);
  ok(/type at #\/items/.test(await engine.checkGrammar({ schema: { items: { type: 'x' } } })));
  await engine.dispose();
});

closePair();

await finish();
