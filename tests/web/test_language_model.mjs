// The LanguageModel shape of the public package, in Node on the trained tiny model.
//
//   node tests/web/test_language_model.mjs
import { getEventListeners } from 'node:events';

import { BezelError, Engine, LimitError, languageModel } from '../../web/engine/dist/index.js';
import { MODEL, above, backend, engine, finish, isAbort, story } from './api_fixture.mjs';
import { equal, ok, rejects, same } from './check.mjs';

above('the LanguageModel shape prompts, streams, appends, clones and counts', async () => {
  const LanguageModel = languageModel(engine), heard = [];
  equal(await LanguageModel.availability(), 'available');
  const s = await LanguageModel.create({
    temperature: 0, topK: 1, initialPrompts: [{ role: 'system', content: 'Talk like a pirate.' }],
    monitor: (m) => m.addEventListener('downloadprogress', (e) => heard.push(e.loaded)),
  });
  same(heard, [0, 1]);
  equal(
    await s.prompt('What is the capital of Italy?'), 'Arr, matey! The capital of Italy be Rome.',
  );
  const usage = s.contextUsage;
  ok(usage > 20 && s.contextWindow === 2048);
  const twin = await s.clone();
  equal(twin.contextUsage, usage);
  const plain = await LanguageModel.create({ temperature: 0, topK: 1 });
  await plain.append([
    { role: 'user', content: [{ type: 'text', value: 'My name is Anna.' }] },
    { role: 'assistant', content: 'Nice to meet you, Anna!' },
  ]);
  ok(plain.contextUsage > 10);
  ok((await plain.measureContextUsage('What is my name?')) > 4);
  let text = '';
  for await (const piece of plain.promptStreaming('What is my name?')) text += piece;
  equal(text, 'Your name is Anna.');
  equal(s.contextUsage, usage, 'others do not touch it');
  equal(
    await plain.prompt([
      { role: 'user', content: 'What is the capital of Japan?' },
      { role: 'assistant', content: 'The capital of', prefix: true },
    ]),
    ' Japan is Tokyo.',
  );
  for (const one of [s, twin, plain]) one.destroy();
});

above('the LanguageModel shape fails as pages expect', async () => {
  const LanguageModel = languageModel(engine);
  const named = (name) => (e) => e instanceof DOMException && e.name === name;
  const s = await LanguageModel.create({ temperature: 0, topK: 1 });
  await rejects(s.prompt([{ role: 'system', content: 'x' }]), named('NotSupportedError'));
  await rejects(s.prompt([{ role: 'user', content: 'x', prefix: true }]), named('SyntaxError'));
  await rejects(s.prompt('word '.repeat(3000)), named('QuotaExceededError'));
  await rejects(s.prompt('Hi', { signal: AbortSignal.abort() }), named('AbortError'));
  const reader = s.promptStreaming('Tell me a story about a fox.').getReader();
  ok((await reader.read()).value.length > 0);
  await reader.cancel();
  equal(
    await s.prompt('Hi'), 'Hello! How can I help you?', 'a cancelled turn is as if it had not been',
  );
  const under = s.prompt('Tell me a story about a fox.');
  s.destroy();
  await rejects(under, named('AbortError'));
  await rejects(s.prompt('Hi'), named('InvalidStateError'));
});

above('a responseConstraint is kept: JSON of a schema, or a text of a pattern, whole and streamed',
    async () => {
  const s = await languageModel(engine).create({ temperature: 0, topK: 1 });
  const schema = {
    type: 'object', properties: { capital: { type: 'string', maxLength: 12 } },
    required: ['capital'], additionalProperties: false,
  };
  const options = { responseConstraint: schema, omitResponseConstraintInput: true };
  const text = await s.prompt('What is the capital of France?', options);
  same(Object.keys(JSON.parse(text)), ['capital']);
  let streamed = '';
  for await (const piece of s.promptStreaming('And of Italy?', { responseConstraint: schema }))
    streamed += piece;
  same(Object.keys(JSON.parse(streamed)), ['capital']);
  const word = await s.prompt('Say it in one word.', { responseConstraint: /^(?:Paris|Rome)$/gu });
  ok(['Paris', 'Rome'].includes(word), word);
  s.destroy();
});

above('the model is told of a responseConstraint, unless that is not wanted', async () => {
  const s = await languageModel(engine).create({ temperature: 0, topK: 1 });
  const responseConstraint = { enum: ['yes', 'no'] };
  const plain = await s.measureContextUsage('Is it raining?');
  const told = await s.measureContextUsage('Is it raining?', { responseConstraint });
  ok(told > plain + 5, `${told}, ${plain}`);
  const omitted = { responseConstraint, omitResponseConstraintInput: true };
  equal(await s.measureContextUsage('Is it raining?', omitted), plain);
  await s.prompt('Is it raining?', { responseConstraint });
  ok(s.contextUsage > told, 'it stays in the conversation');
  s.destroy();
});

above('a responseConstraint that makes no sense or cannot be kept fails as pages expect',
    async () => {
  const s = await languageModel(engine).create({ temperature: 0, topK: 1 });
  const named = (name) => (e) => e instanceof DOMException && e.name === name;
  const fails = (responseConstraint, check) =>
    rejects(s.prompt('x', { responseConstraint }), check);
  for (const odd of ['json', 5, null, [], () => {}])
    await fails(odd, TypeError);
  await rejects(s.prompt('x', { omitResponseConstraintInput: true }), TypeError);
  await fails({ $dynamicRef: '#x' }, named('NotSupportedError'));
  await fails({ type: 'objekt' }, named('NotSupportedError'));
  await fails(/paris/i, named('NotSupportedError'));
  await rejects(
    s.prompt(
      [{ role: 'user', content: 'x' }, { role: 'assistant', content: '{', prefix: true }],
      { responseConstraint: {} },
    ),
    named('NotSupportedError'),
  );
  equal(await s.prompt('Hi'), 'Hello! How can I help you?', 'what was refused left nothing behind');
  s.destroy();
});

above('the LanguageModel shape leaves no listener behind on the signals that it is '
  + 'given, nor on its own', async () => {
  const s = await languageModel(engine).create({ temperature: 0, topK: 1 });
  const { signal } = new AbortController();
  const before = getEventListeners(s.end.signal, 'abort').length;
  for (let i = 0; i < 5; i++) {
    await s.prompt('Hi');
    await s.prompt('Hi', { signal });
    for await (const _ of s.promptStreaming('Hi', { signal }));
    await s.append('Hi', { signal });
    await rejects(s.prompt('Hi', { signal: AbortSignal.abort() }));
    await s.measureInputUsage('Hi', { signal });
  }
  const stopped = new AbortController();
  const under = s.prompt('Tell me a story about a fox.', { signal: stopped.signal });
  stopped.abort();
  await rejects(under, isAbort);
  const reader = s.promptStreaming('Tell me a story about a fox.', { signal }).getReader();
  await reader.read();
  await reader.cancel();
  equal(await s.prompt('Hi'), 'Hello! How can I help you?');
  same(
    [signal, stopped.signal, s.end.signal].map((one) => getEventListeners(one, 'abort').length),
    [0, 0, before],
  );
  s.destroy();
});

above('a session that is not made after all leaves nothing behind', async () => {
  const one = await Engine.load(MODEL, { backend, context: 1024 });
  const LanguageModel = languageModel(one), { cache } = await one.memory();
  const nothingLeft = async (what) => {
    await one.session().close(); // its turn comes after those that were given up
    equal((await one.memory()).cache, cache, what);
  };
  const system = (content) => [{ role: 'system', content }], stop = new AbortController();
  const made =
    LanguageModel.create({ initialPrompts: system('word '.repeat(700)), signal: stop.signal });
  setTimeout(() => stop.abort(), 1);
  await rejects(made, isAbort);
  await nothingLeft('of one that was still reading its prompts');
  const s = await LanguageModel.create({ initialPrompts: system('Be brief.') });
  const { session } = s, { link } = session, fork = session.fork.bind(session);
  const late = new AbortController();
  session.fork = async (options) => {
    const twin = await fork(options);
    late.abort();
    return twin;
  };
  await rejects(s.clone({ signal: late.signal }), isAbort);
  session.fork = fork;
  session.link = { call: async (name, ...more) => {
    const answer = await link.call(name, ...more);
    if (name === 'sessionFork') throw new BezelError('it was stopped', 'cancelled');
    return answer;
  } };
  await rejects(s.clone());
  s.destroy();
  await nothingLeft('of clones');
  await one.dispose();
});

above('the LanguageModel shape reads text alone, keeps to its limits and has the older names too',
    async () => {
  const LanguageModel = languageModel(engine);
  const { maxTemperature, maxTopK } = await LanguageModel.params();
  for (const more of [
    { expectedInputs: [{ type: 'text' }, { type: 'image' }] },
    { expectedInputs: [{ type: 'audio' }] }, { expectedOutputs: [{ type: 'image' }] },
  ]) {
    equal(await LanguageModel.availability(more), 'unavailable');
    await rejects(LanguageModel.create(more), (e) =>
      e instanceof DOMException && e.name === 'NotSupportedError');
  }
  equal(
    await LanguageModel.availability({
      expectedInputs: [{ type: 'text', languages: ['en'] }], expectedOutputs: [{ type: 'text' }],
    }),
    'available',
  );
  const hot = await LanguageModel.create({ temperature: 99, topK: 1e9 });
  same([hot.temperature, hot.topK], [maxTemperature, maxTopK]);
  for (const options of [{ temperature: -1 }, { temperature: NaN }, { topK: 0 }])
    await rejects(LanguageModel.create(options), RangeError);
  const s = await LanguageModel.create({ temperature: 0, topK: 1 });
  const cost = await s.measureInputUsage('Hi');
  equal(cost, await s.measureContextUsage('Hi'));
  await s.prompt('Hi');
  ok(
    s.inputUsage === s.contextUsage && s.inputUsage >= cost && s.inputQuota > 1900
      && s.inputQuota < s.contextWindow,
  );
  const long = 'word '.repeat(3000);
  const full = (e) =>
    e instanceof DOMException && e.name === 'QuotaExceededError' && e.quota === s.inputQuota
      && e.requested > 3000;
  await rejects(s.prompt(long), full);
  await rejects(
    LanguageModel.create({ initialPrompts: [{ role: 'system', content: long }] }), full,
  );
  const poor = {
    info: engine.info,
    context: 512,
    countTokens: async () => 3,
    session: () => ({
      prefill: async () => { throw new LimitError('there is no room'); }, close: async () => {},
    }),
  };
  await rejects(
    languageModel(poor).create({ initialPrompts: [{ role: 'system', content: 'x' }] }),
    (e) => e.name === 'QuotaExceededError' && e.requested === null && e.quota === null,
  );
  for (const one of [hot, s]) one.destroy();
});

above('a long LanguageModel conversation forgets its oldest messages and says so', async () => {
  const s = await languageModel(engine).create({ temperature: 0, topK: 1 });
  let overflows = 0, older = 0;
  s.addEventListener('contextoverflow', () => overflows++);
  s.onquotaoverflow = () => older++;
  for (let i = 0; i < 3; i++)
    await s.append([
      { role: 'user', content: 'The old boat is here. '.repeat(120) },
      { role: 'assistant', content: 'Yes.' },
    ]);
  ok(overflows >= 1 && older === overflows, 'nothing was forgotten');
  ok(s.contextUsage < s.contextWindow);
  s.destroy();
});

await finish();
