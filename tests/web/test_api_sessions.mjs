// The public Engine in Node on the trained tiny model: answers side by side, aborts, the queue,
// sessions and adapters.
//
//   node tests/web/test_api_sessions.mjs cpu|gpu
import { ArgumentError, BezelError, Engine, NotFoundError } from '../../web/engine/dist/index.js';
import {
  MODEL, above, ask, assistant, backend, collect, config, contentOf, create, engine, finish, france,
  golden, greedy, isAbort, randomAdapter, story, user,
} from './api_fixture.mjs';
import { equal, ok, rejects, same, test } from './check.mjs';

test('answers are made side by side, each as if it were alone, also with other adapters',
    async () => {
  const shared = await Engine.load(MODEL, {
    backend, shared: 4, adapters: [{ source: randomAdapter(), name: 'noise', scale: 4, config }],
  });
  try {
    const most = backend === 'gpu' ? 16 : 100;
    const asked = [france, story, [user('Count from 3 to 12.')]];
    const requests = asked.map((messages, i) => ({
      messages,
      ...greedy,
      max_tokens: most,
      ignore_eos: true,
      adapters: i === 1 ? [{ name: 'noise', scale: 4 }] : [],
    }));
    const say = async (request) => contentOf(await shared.chat.completions.create(request));
    const alone = [];
    for (const [i, request] of requests.entries())
      alone.push(await say({ ...request, prompt_cache_key: `alone ${i}` }));
    const order = [], stream = async (request, i) => {
      let text = '';
      for await (const { choices: [choice] } of await shared.chat.completions.create({
        ...request, stream: true,
      })) {
        text += choice.delta.content ?? '';
        order.push(i);
      }
      return text;
    };
    same(await Promise.all(requests.map(stream)), alone);
    ok(order.indexOf(2) < order.lastIndexOf(0), 'they took turns');
  } finally {
    await shared.dispose();
  }
});

above('a reader that stands still does not hold the model, and what changes the model waits '
  + 'until answers are whole', async () => {
  const shared = await Engine.load(MODEL, { backend, shared: 4 });
  try {
    const still = await shared.chat.completions.create({
      messages: story, ...greedy, ignore_eos: true, max_tokens: 500, stream: true,
    });
    for (let i = 0; i < 3; i++) await still.next();
    equal(
      contentOf(await shared.chat.completions.create({ messages: france, ...greedy })),
      'The capital of France is Paris.',
    );
    let added = false;
    const adding =
      shared.adapters.add(randomAdapter(), { name: 'noise', config }).then(() => (added = true));
    await still.next();
    ok(!added);
    await still.return();
    await adding;
    ok(added);
  } finally {
    await shared.dispose();
  }
});

above('one that fails, or leaves while it waits, takes nothing from those at work', async () => {
  const one = await Engine.load(MODEL, { backend });
  try {
    const say = (messages, more = {}) => one.chat.completions.create({
      messages, ...greedy, max_tokens: 60, ignore_eos: true, ...more,
    });
    const want = [contentOf(await say(france)), contentOf(await say(story))];
    const stop = new AbortController();
    const gone = [
      rejects(say(france, { adapters: [{ name: 'none' }] }), NotFoundError),
      rejects(say(story, { signal: stop.signal }), isAbort),
    ];
    const answers = [say(france), say(story)];
    stop.abort();
    same((await Promise.all(answers)).map(contentOf), want);
    await Promise.all(gone);
    const stream = await say(france, { adapters: [{ name: 'none' }], stream: true });
    // nothing was said before
    await rejects(stream.next(), (e) => e instanceof NotFoundError && e.param === 'adapters');
  } finally {
    await one.dispose();
  }
});

above('a stream that was aborted and is read no more gives its session back', async () => {
  const one = await Engine.load(MODEL, { backend });
  try {
    const stop = new AbortController();
    const still = await one.chat.completions.create({
      messages: story, ...greedy, ignore_eos: true, max_tokens: 500, stream: true,
      signal: stop.signal,
    });
    for (let i = 0; i < 3; i++) await still.next();
    stop.abort();
    equal(
      contentOf(await one.chat.completions.create({ messages: france, ...greedy })),
      'The capital of France is Paris.',
    );
    await rejects(still.next(), isAbort);
  } finally {
    await one.dispose();
  }
});

above('what was computed under one prompt_cache_key is not gone on from under another',
    async () => {
  const shared = await Engine.load(MODEL, { backend, shared: 2 });
  const cached = async (prompt_cache_key) =>
    (await shared.chat.completions.create({
      messages: story, ...greedy, max_tokens: 2, prompt_cache_key,
    })).usage.prompt_tokens_details.cached_tokens;
  try {
    same([await cached('a'), await cached('b'), await cached('c')], [0, 0, 0]);
    ok((await cached('c')) > 5);
    await rejects(shared.completions.create({ max_tokens: 5 }), (e) =>
      e instanceof ArgumentError && /"prompt" is missing/.test(e.message));
  } finally {
    await shared.dispose();
  }
});

test('the next turn reads only what is new', async () => {
  const first = await create({ messages: france, ...greedy });
  const second = await create({
    messages: [...france, assistant(contentOf(first)), user('And Germany?')], ...greedy,
  });
  equal(contentOf(second), 'The capital of Germany is Berlin.');
  const { cached_tokens } = second.usage.prompt_tokens_details;
  ok(
    cached_tokens >= first.usage.prompt_tokens + first.usage.completion_tokens - 1,
    `${cached_tokens} were kept`,
  );
  equal(second.timings.prompt_n, second.usage.prompt_tokens - cached_tokens);
});

above('leaving a stream stops the model, and the next request is served', async () => {
  let seen = 0;
  for await (const _ of await create({ messages: story, ...greedy, stream: true }))
    if (++seen === 5) break;
  equal(await ask([user('Hi')]), 'Hello! How can I help you?');
});

test('an abort ends a stream with the reason, before it starts and in the middle', async () => {
  await rejects(create({ messages: story, signal: AbortSignal.abort() }), isAbort);
  const stop = new AbortController();
  let seen = 0;
  await rejects(async () => {
    for await (const _ of await create({
      messages: story, ...greedy, stream: true, signal: stop.signal,
    }))
      if (++seen === 4) stop.abort();
  }, isAbort);
  equal(seen, 4);
  const reason = new Error('enough');
  const late = new AbortController();
  setTimeout(() => late.abort(reason), 5);
  const lasting = { messages: story, ...greedy, ignore_eos: true };
  await rejects(create(lasting, { signal: late.signal }), (e) => e === reason);
});

above('requests are served one at a time, in order, and who waits can leave', async () => {
  const order = [], stop = new AbortController();
  const say = (name, more) =>
    create({ messages: [user('Hi')], ...greedy, ...more }).then((a) => (order.push(name), a));
  const leaving = say('leaves', { signal: stop.signal, messages: story });
  const all = [say('a'), say('b'), say('c')];
  const waiting = create({ messages: france, signal: stop.signal });
  const gone = Promise.all([rejects(leaving, isAbort), rejects(waiting, isAbort)]);
  stop.abort();
  await gone;
  const answers = await Promise.all(all);
  same(order, ['a', 'b', 'c']);
  ok(answers[2].timings.queue_ms > answers[0].timings.queue_ms);
  same(answers.map(contentOf), Array(3).fill('Hello! How can I help you?'));
});

above('a stream that is made and never read holds nobody up', async () => {
  await create({ messages: story, stream: true });
  equal(await ask([user('Hi')]), 'Hello! How can I help you?');
});

above('progress of a long prompt is in the stream where it is wanted', async () => {
  const messages = [user(`${'The old boat is here. '.repeat(60)}Hi`)];
  const chunks = await collect(
    await create({ messages, ...greedy, stream: true, return_progress: true, max_tokens: 2 }),
  );
  const progress = chunks.flatMap((c) => c.prompt_progress ?? []);
  ok(progress.length >= 1);
  ok(progress.every((p, i) =>
    p.processed <= p.total && (!i || p.processed > progress[i - 1].processed)));
  equal(progress.at(-1).processed, progress.at(-1).total);
});

above('sessions keep their own past beside each other', async () => {
  const a = engine.session(), b = engine.session();
  const anna = [user('My name is Anna.'), assistant('Nice to meet you, Anna!')];
  for (const s of [a, b])
    await s.chat.completions.create({ messages: s === a ? anna.slice(0, 1) : france, ...greedy });
  const answer =
    await a.chat.completions.create({ messages: [...anna, user('What is my name?')], ...greedy });
  equal(contentOf(answer), 'Your name is Anna.');
  ok(answer.usage.prompt_tokens_details.cached_tokens > 10);
  for (const s of [a, b]) await s.close();
});

test('a session is appended to, cut, forked, saved and restored, and goes on the same way',
    async () => {
  const a = engine.session(), { prompt, ids } = golden[0];
  equal(await a.append(prompt), 16);
  const go = async (s) => (await s.completions.create({ ...greedy })).choices[0].text;
  const b = await a.fork(), snapshot = await a.save();
  equal(await go(a), 'The capital of France is Paris.');
  equal(await go(b), 'The capital of France is Paris.');
  equal((await a.tokens()).length, 16 + ids.length);
  equal(await a.truncate(16), 16);
  equal(await go(a), 'The capital of France is Paris.');
  const c = engine.session();
  equal(await c.restore(snapshot), 16);
  equal(await go(c), 'The capital of France is Paris.');
  await rejects(c.restore(snapshot.slice(0, 100)), BezelError);
  for (const s of [a, b, c]) await s.close();
  await rejects(engine.session().completions.create({}), /nothing to go on from/);
});

above('more sessions than are kept computed still answer, and memory stays bounded', async () => {
  const before = await engine.memory();
  const all = Array.from({ length: 7 }, () => engine.session());
  for (const s of all) await s.append(golden[1].prompt);
  const { cache } = await engine.memory();
  ok(cache <= 4 * before.cache, `${cache} bytes for 7 sessions, ${before.cache} at first`);
  equal(
    (await all[0].completions.create({ ...greedy })).choices[0].text, 'Hello! How can I help you?',
  );
  for (const s of all) await s.close();
});

test('adapters come and go, per request too, and nothing computed with others is used',
    async () => {
  const say = async (e, more) => contentOf(
    await e.chat.completions.create({ messages: france, ...greedy, max_tokens: 12, ...more }),
  );
  const base = await say(engine), plain = engine.session('worn');
  await plain.append('Hello');
  const without = await plain.save();
  const fresh = await Engine.load(MODEL, {
    backend, adapters: [{ source: randomAdapter(), name: 'noise', scale: 4, config }],
  });
  const strange = await say(fresh);
  const whole = await fresh.chat.completions.create({
    messages: france, ...greedy, max_tokens: 12, adapters: [{ name: 'noise', scale: 4 }],
  });
  ok(strange !== base, strange);
  ok(whole.usage.prompt_tokens_details.cached_tokens > 10, 'the same adapters: computed once');
  await fresh.dispose();
  same(
    await engine.adapters.add(randomAdapter(), {
      name: 'noise', scale: 4, config: JSON.stringify(config),
    }),
    { name: 'noise', scale: 4 },
  );
  same(await engine.adapters.list(), [{ name: 'noise', scale: 4 }]);
  await rejects(plain.restore(without), /made with other adapters/);
  await plain.append('Hello');
  const worn = await plain.save();
  equal(await plain.restore(worn), (await plain.tokens()).length, 'the same adapters');
  equal(await say(engine), strange, 'an added adapter is used');
  equal(await say(engine, { adapters: [] }), base, 'a request can do without');
  equal(await say(engine, { adapters: [{ name: 'noise' }] }), strange);
  equal(await say(engine, { adapters: [{ name: 'noise', scale: 0 }] }), base);
  await rejects(engine.adapters.add(randomAdapter(), { name: 'noise', config }), ArgumentError);
  await rejects(engine.adapters.add(randomAdapter(), { name: 'other', config: '{' }), BezelError);
  await engine.adapters.remove('noise');
  await rejects(plain.restore(worn), /made with other adapters/);
  await plain.restore(without);
  await plain.close();
  await rejects(engine.adapters.remove('noise'), NotFoundError);
  equal(await say(engine), base);
});

test('disposing ends what is under way and what waits, once', async () => {
  const stream = await create({ messages: story, ...greedy, stream: true });
  await stream.next();
  const waiting = create({ messages: france });
  const refused = rejects(waiting, /disposed/);
  await Promise.all([engine.dispose(), engine.dispose()]);
  await refused;
  await rejects(collect(stream), /disposed/);
  await rejects(create({ messages: france }), /disposed/);
});

await finish();
