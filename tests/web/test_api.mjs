// The public Engine in Node on the trained tiny model: chats, streams, tools, thinking, sampling, aborts, the queue,
// sessions, and the LanguageModel shape on top.
//
//   node tests/web/test_api.mjs cpu|gpu
//
// What is above the backends is tested on the CPU; the GPU, which a software adapter makes slow, shows what differs
// by backend.
import { spawnSync } from 'node:child_process';
import fs from 'node:fs';

import { ArgumentError, BezelError, Engine, LimitError, NotFoundError, UnsupportedError, languageModel } from '../../web/engine/dist/index.js';
import { done, equal, ok, rejects, same, test } from './check.mjs';
import './software_adapter.mjs';

const backend = process.argv[2] ?? 'cpu';
const MODEL = 'models/tiny.q8_0.gguf';
const phases = [];
const engine = await Engine.load(MODEL, { backend, onProgress: ({ phase }) => phases.at(-1) !== phase && phases.push(phase) });
const golden = JSON.parse(fs.readFileSync('models/tiny.golden.json', 'utf8')).q8_0;

const user = (content) => ({ role: 'user', content });
const assistant = (content) => ({ role: 'assistant', content });
const france = [user('What is the capital of France?')];
const story = [user('Tell me a story about a fox.')];
const greedy = { temperature: 0 };
const create = (request, options) => engine.chat.completions.create(request, options);
const contentOf = (answer) => answer.choices[0].message.content;
const ask = async (messages, more = {}) => contentOf(await create({ messages, ...greedy, ...more }));
async function collect(stream) {
  const all = [];
  for await (const item of stream) all.push(item);
  return all;
}
const textOf = (chunks) => chunks.map((c) => c.choices[0]?.delta.content ?? '').join('');
const declare = (name, description, properties, required = Object.keys(properties)) => ({ type: 'function', function: { name, description, parameters: { type: 'object', properties, required } } });
const tools = [
  declare('get_weather', 'Current weather of a city', { city: { type: 'string', description: 'Name of the city' } }),
  declare('calculator', 'Does arithmetic', { expression: { type: 'string' } }),
  declare('send_message', 'Sends a text message to a person', { to: { type: 'string' }, text: { type: 'string' } }),
];
/** A test of what no backend changes. */
const above = backend === 'cpu' ? test : () => {};
const isAbort = (e) => e instanceof DOMException && e.name === 'AbortError';

test('a load says how far it is and what it found', () => {
  equal(phases[0], 'open');
  equal(phases.at(-1), 'ready');
  equal(engine.name, 'tiny.q8_0');
  equal(engine.device.backend, backend);
  equal(engine.info.n_layer, 8);
  equal(engine.context, 2048);
});

test('an answer has the shape that OpenAI gives', async () => {
  const answer = await create({ messages: france, ...greedy, model: 'anything' });
  equal(contentOf(answer), 'The capital of France is Paris.');
  equal(answer.object, 'chat.completion');
  equal(answer.model, 'anything');
  equal(answer.choices[0].finish_reason, 'stop');
  equal(answer.choices[0].message.role, 'assistant');
  equal(answer.usage.prompt_tokens, 16);
  equal(answer.usage.completion_tokens, 8);
  equal(answer.usage.total_tokens, 24);
  ok(answer.timings.ttft_ms > 0 && answer.timings.predicted_per_second > 0);
});

test('greedy texts are the reference implementation\'s', async () => {
  for (const { prompt, ids, text } of golden.filter((g) => backend === 'cpu' || g.ids.length < 10)) {
    const made = await engine.completions.create({ prompt, ...greedy, max_tokens: 200 });
    equal(made.choices[0].text, await engine.detokenize(ids), prompt);
    equal(made.usage.completion_tokens, ids.length, text);
    equal(made.choices[0].finish_reason, 'stop');
  }
});

above('a stream is the whole answer in pieces, with usage and timings at its end', async () => {
  const chunks = await collect(await create({ messages: story, ...greedy, stream: true, max_tokens: 30, stream_options: { include_usage: true } }));
  const whole = await create({ messages: story, ...greedy, max_tokens: 30 });
  equal(textOf(chunks), contentOf(whole));
  ok(chunks.length > 10);
  equal(chunks[0].choices[0].delta.role, 'assistant');
  ok(chunks.every((c) => c.object === 'chat.completion.chunk' && c.id === chunks[0].id));
  equal(chunks.at(-2).choices[0].finish_reason, 'length');
  ok(chunks.at(-2).timings.predicted_n === 30);
  same(chunks.at(-1).choices, []);
  same(chunks.at(-1).usage, { ...whole.usage, prompt_tokens_details: chunks.at(-1).usage.prompt_tokens_details });
  ok(chunks.slice(0, -1).every((c) => c.usage === null));
});

above('without stream_options no chunk speaks of usage', async () => {
  const chunks = await collect(await create({ messages: [user('Hi')], ...greedy, stream: true }));
  equal(textOf(chunks), 'Hello! How can I help you?');
  ok(chunks.every((c) => !('usage' in c) && c.choices.length === 1));
});

test('a tool is called, and its answer is used', async () => {
  const messages = [user('What is the weather in Oslo?')];
  const answer = await create({ messages, tools, tool_choice: 'auto', ...greedy });
  const { message, finish_reason } = answer.choices[0];
  equal(finish_reason, 'tool_calls');
  equal(message.content, null);
  equal(message.tool_calls.length, 1);
  const [call] = message.tool_calls;
  equal(call.function.name, 'get_weather');
  same(JSON.parse(call.function.arguments), { city: 'Oslo' });
  ok(/^call_/.test(call.id));
  const next = [...messages, message, { role: 'tool', tool_call_id: call.id, content: '12 degrees, cloudy' }];
  equal(await ask(next, { tools }), 'In Oslo it is 12 degrees and cloudy.');
});

above('a tool call comes through a stream as a delta with an id', async () => {
  const chunks = await collect(await create({ messages: [user('Calculate 12 + 30.')], tools, ...greedy, stream: true }));
  const calls = chunks.flatMap((c) => c.choices[0]?.delta.tool_calls ?? []);
  equal(calls.length, 1);
  equal(calls[0].index, 0);
  equal(calls[0].function.name, 'calculator');
  same(JSON.parse(calls[0].function.arguments), { expression: '12 + 30' });
  equal(chunks.at(-1).choices[0].finish_reason, 'tool_calls');
  ok(!textOf(chunks).includes('<'), 'tags are not content');
});

above('tool_choice none hides the tools', async () => {
  const answer = await create({ messages: [user('What is the weather today?')], tools, tool_choice: 'none', ...greedy });
  equal(contentOf(answer), 'I cannot know the weather, because I have no connection to the world outside.');
});

above('a call that the token limit cut short is not reported', async () => {
  const answer = await create({ messages: [user('What is the weather in Oslo?')], tools, ...greedy, max_tokens: 9 });
  equal(answer.choices[0].finish_reason, 'length');
  equal(answer.choices[0].message.tool_calls, undefined);
});

above('thoughts come as reasoning_content when they are wanted', async () => {
  for (const wish of [{ thinking: true }, { reasoning_effort: 'high' }]) {
    const { message } = (await create({ messages: [user('What is 47 + 38?')], ...greedy, ...wish })).choices[0];
    equal(message.content, '47 + 38 = 85.');
    ok(message.reasoning_content.endsWith('The result is 85.'), message.reasoning_content);
  }
  const { message } = (await create({ messages: [user('What is 7 * 8?')], ...greedy, reasoning_effort: 'none' })).choices[0];
  equal(message.reasoning_content, undefined);
});

above('an answer goes on from its beginning, in its thoughts too', async () => {
  const goOn = { continue_final_message: true };
  equal(await ask([...france, assistant('The capital of')], goOn), ' France is Paris.');
  const sum = [user('What is 27 + 48?')], thinking = { thinking: true };
  const { message } = (await create({ messages: sum, ...greedy, ...thinking })).choices[0];
  const [first = ''] = /^.*?\. /.exec(message.reasoning_content) ?? [];
  const rest = (await create({ messages: [...sum, { role: 'assistant', reasoning_content: first.trimEnd(), content: '' }], ...greedy, ...thinking, ...goOn })).choices[0].message;
  equal(first.trimEnd() + rest.reasoning_content, message.reasoning_content);
  equal(rest.content, message.content);
  equal(await ask([...sum, { role: 'assistant', reasoning_content: message.reasoning_content, content: '27 +' }], { ...thinking, ...goOn }), message.content.slice(4));
  await rejects(create({ messages: sum, ...goOn }), ArgumentError);
});

test('a stop string ends the answer before it', async () => {
  const whole = await ask(story, { max_tokens: 40 });
  for (const stop of [' small', ['never seen', ' small']]) {
    const answer = await create({ messages: story, ...greedy, max_tokens: 40, stop });
    equal(contentOf(answer), whole.slice(0, whole.indexOf(' small')));
    equal(answer.choices[0].finish_reason, 'stop');
  }
});

test('the same seed draws the same text, another seed another', async () => {
  const draw = async (seed) => contentOf(await create({ messages: story, temperature: 1.5, top_k: 0, top_p: 1, max_tokens: 24, ...(seed !== undefined && { seed }) }));
  const one = await draw(7);
  equal(await draw(7), one);
  ok((await draw(8)) !== one);
  ok((await draw()) !== (await draw()), 'no seed: each answer is its own');
});

test('a bias forbids a token', async () => {
  const [the] = await engine.tokenize('The', { bos: false });
  const answer = await ask(france, { logit_bias: { [the]: -100 }, max_tokens: 8 });
  ok(!answer.startsWith('The'), answer);
});

test('log-probabilities come with every token but the last one, and they add up', async () => {
  const answer = await create({ messages: france, ...greedy, logprobs: true, top_logprobs: 3 });
  const { content } = answer.choices[0].logprobs;
  equal(content.map((t) => t.token).join(''), contentOf(answer));
  equal(content.length, answer.usage.completion_tokens - 1);
  for (const { logprob, top_logprobs, bytes, token } of content) {
    equal(top_logprobs.length, 3);
    equal(top_logprobs[0].logprob, logprob, 'greedy takes the best');
    ok(logprob <= 0 && top_logprobs[1].logprob <= logprob);
    equal(new TextDecoder().decode(Uint8Array.from(bytes)), token);
  }
  const chunks = await collect(await create({ messages: france, ...greedy, logprobs: true, stream: true }));
  equal(chunks.flatMap((c) => c.choices[0].logprobs?.content ?? []).length, content.length);
  const raw = await engine.completions.create({ prompt: golden[0].prompt, ...greedy, logprobs: 2 });
  equal(raw.choices[0].logprobs.tokens.join(''), raw.choices[0].text);
  equal(Object.keys(raw.choices[0].logprobs.top_logprobs[0]).length, 2);
});

above('what would change the answer and is not possible is refused by name', async () => {
  const refused = (more, kind, words) => rejects(create({ messages: france, ...more }), (e) => e instanceof kind && words.test(e.message) && e instanceof BezelError);
  await refused({ frobnicate: 1 }, UnsupportedError, /"frobnicate"/);
  await refused({ n: 2 }, UnsupportedError, /"n"/);
  await refused({ response_format: { type: 'json_object' } }, UnsupportedError, /json_object/);
  await refused({ tool_choice: 'required', tools }, UnsupportedError, /required/);
  await refused({ messages: [user([{ type: 'image_url', image_url: { url: 'data:,' } }])] }, UnsupportedError, /messages\[0\].*image_url/);
  await refused({ temperature: 'hot' }, ArgumentError, /"temperature"/);
  await refused({ top_logprobs: 3 }, ArgumentError, /"logprobs"/);
  await refused({ messages: [] }, ArgumentError, /"messages"/);
  await refused({ messages: [{ role: 'robot', content: 'x' }] }, ArgumentError, /robot/);
  await refused({ adapters: [{ name: 'pirate' }] }, NotFoundError, /"pirate"/);
  await refused({ messages: [{ role: 'tool', content: 'x', tool_call_id: '1' }, { role: 'assistant', tool_calls: [{ id: 1 }] }] }, BezelError, /messages\[1\]/);
});

above('what has no effect here, and null, are accepted', async () => {
  equal(await ask(france, { user: 'u', metadata: {}, store: false, service_tier: 'auto', n: 1, stop: null, tools: null, response_format: { type: 'text' }, max_completion_tokens: 50, logprobs: false }), 'The capital of France is Paris.');
});

above('a conversation longer than the context is refused, and the engine goes on', async () => {
  await rejects(create({ messages: [user('word '.repeat(3000))] }), LimitError);
  equal(await ask(france), 'The capital of France is Paris.');
});

test('the next turn reads only what is new', async () => {
  const first = await create({ messages: france, ...greedy });
  const second = await create({ messages: [...france, assistant(contentOf(first)), user('And Germany?')], ...greedy });
  equal(contentOf(second), 'The capital of Germany is Berlin.');
  const { cached_tokens } = second.usage.prompt_tokens_details;
  ok(cached_tokens >= first.usage.prompt_tokens + first.usage.completion_tokens - 1, `${cached_tokens} were kept`);
  equal(second.timings.prompt_n, second.usage.prompt_tokens - cached_tokens);
});

above('leaving a stream stops the model, and the next request is served', async () => {
  let seen = 0;
  for await (const _ of await create({ messages: story, ...greedy, stream: true })) if (++seen === 5) break;
  equal(await ask([user('Hi')]), 'Hello! How can I help you?');
});

test('an abort ends a stream with the reason, before it starts and in the middle', async () => {
  await rejects(create({ messages: story, signal: AbortSignal.abort() }), isAbort);
  const stop = new AbortController();
  let seen = 0;
  await rejects(async () => {
    for await (const _ of await create({ messages: story, ...greedy, stream: true, signal: stop.signal })) if (++seen === 4) stop.abort();
  }, isAbort);
  equal(seen, 4);
  const reason = new Error('enough');
  const late = new AbortController();
  setTimeout(() => late.abort(reason), 5);
  await rejects(create({ messages: story, ...greedy }, { signal: late.signal }), (e) => e === reason);
});

above('requests are served one at a time, in order, and who waits can leave', async () => {
  const order = [], stop = new AbortController();
  const say = (name, more) => create({ messages: [user('Hi')], ...greedy, ...more }).then((a) => (order.push(name), a));
  const leaving = say('leaves', { signal: stop.signal, messages: story }), all = [say('a'), say('b'), say('c')];
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
  const chunks = await collect(await create({ messages, ...greedy, stream: true, return_progress: true, max_tokens: 2 }));
  const progress = chunks.flatMap((c) => c.prompt_progress ?? []);
  ok(progress.length >= 1);
  ok(progress.every((p, i) => p.processed <= p.total && (!i || p.processed > progress[i - 1].processed)));
  equal(progress.at(-1).processed, progress.at(-1).total);
});

above('sessions keep their own past beside each other', async () => {
  const a = engine.session(), b = engine.session();
  const anna = [user('My name is Anna.'), assistant('Nice to meet you, Anna!')];
  for (const s of [a, b]) await s.chat.completions.create({ messages: s === a ? anna.slice(0, 1) : france, ...greedy });
  const answer = await a.chat.completions.create({ messages: [...anna, user('What is my name?')], ...greedy });
  equal(contentOf(answer), 'Your name is Anna.');
  ok(answer.usage.prompt_tokens_details.cached_tokens > 10);
  for (const s of [a, b]) await s.close();
});

test('a session is appended to, cut, forked, saved and restored, and goes on the same way', async () => {
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
  equal((await all[0].completions.create({ ...greedy })).choices[0].text, 'Hello! How can I help you?');
  for (const s of all) await s.close();
});

/** PEFT's weights of a random adapter of rank 2 on the outputs of the attention of all layers. */
function randomAdapter() {
  let seed = 1;
  const random = (n) => Float32Array.from({ length: n }, () => ((seed = (seed * 48271) % 2147483647) / 2147483647 - 0.5) * 2);
  const header = {}, parts = [];
  let at = 0;
  const put = (name, shape) => {
    const data = new Uint8Array(random(shape[0] * shape[1]).buffer);
    header[`base_model.model.model.layers.${name}.weight`] = { dtype: 'F32', shape, data_offsets: [at, (at += data.length)] };
    parts.push(data);
  };
  for (let layer = 0; layer < 8; layer++) {
    const width = layer % 4 === 3 ? 512 : 256; // of all heads: the global layers' are larger
    put(`${layer}.self_attn.o_proj.lora_A`, [2, width]);
    put(`${layer}.self_attn.o_proj.lora_B`, [256, 2]);
  }
  const json = new TextEncoder().encode(JSON.stringify(header)), length = new Uint8Array(8);
  new DataView(length.buffer).setBigUint64(0, BigInt(json.length), true);
  return new Uint8Array(Buffer.concat([length, json, ...parts]));
}

test('adapters come and go, per request too, and nothing computed with others is used', async () => {
  const config = { peft_type: 'LORA', r: 2, lora_alpha: 2, target_modules: ['o_proj'] };
  const say = async (e, more) => contentOf(await e.chat.completions.create({ messages: france, ...greedy, max_tokens: 12, ...more }));
  const base = await say(engine);
  const fresh = await Engine.load(MODEL, { backend, adapters: [{ source: randomAdapter(), name: 'noise', scale: 4, config }] });
  const strange = await say(fresh), whole = await fresh.chat.completions.create({ messages: france, ...greedy, max_tokens: 12, adapters: [{ name: 'noise', scale: 4 }] });
  ok(strange !== base, strange);
  ok(whole.usage.prompt_tokens_details.cached_tokens > 10, 'the same adapters: computed once');
  await fresh.dispose();
  same(await engine.adapters.add(randomAdapter(), { name: 'noise', scale: 4, config: JSON.stringify(config) }), { name: 'noise', scale: 4 });
  same(await engine.adapters.list(), [{ name: 'noise', scale: 4 }]);
  equal(await say(engine), strange, 'an added adapter is used');
  equal(await say(engine, { adapters: [] }), base, 'a request can do without');
  equal(await say(engine, { adapters: [{ name: 'noise' }] }), strange);
  equal(await say(engine, { adapters: [{ name: 'noise', scale: 0 }] }), base);
  await rejects(engine.adapters.add(randomAdapter(), { name: 'noise', config }), ArgumentError);
  await rejects(engine.adapters.add(randomAdapter(), { name: 'other', config: '{' }), BezelError);
  await engine.adapters.remove('noise');
  await rejects(engine.adapters.remove('noise'), NotFoundError);
  equal(await say(engine), base);
});

above('without a GPU a load fails and says so, instead of turning to the CPU', () => {
  const script = `import { DeviceError, Engine } from './web/engine/dist/index.js';
    const e = await Engine.load('${MODEL}').catch((e) => e);
    console.log(e instanceof DeviceError, e.kind, e.message);`;
  const r = spawnSync(process.execPath, ['--input-type=module', '-e', script], { encoding: 'utf8', env: { ...process.env, VK_ICD_FILENAMES: '/dev/null', VK_DRIVER_FILES: '/dev/null' } });
  ok(/^true device .*adapter/m.test(r.stdout), r.stdout + r.stderr);
});

if (backend === 'gpu') test('a process may end while an engine is open', () => {
  const script = `import { Engine } from './web/engine/dist/index.js';
    import './tests/web/software_adapter.mjs';
    const engine = await Engine.load('${MODEL}', { backend: 'gpu' });
    await engine.chat.completions.create({ messages: [{ role: 'user', content: 'Hello' }], max_tokens: 2 });
    process.exit(3);`;
  for (let i = 0; i < 3; i++) { // it crashed two times in three
    const r = spawnSync(process.execPath, ['--input-type=module', '-e', script], { encoding: 'utf8' });
    equal(r.status, 3, `${r.signal} ${r.stderr}`);
  }
});

above('raw texts stream too, and may begin with token ids', async () => {
  const { prompt_ids, prompt } = golden[4];
  const chunks = await collect(await engine.completions.create({ prompt: prompt_ids, ...greedy, stream: true, stream_options: { include_usage: true } }));
  equal(chunks.map((c) => c.choices[0]?.text ?? '').join(''), '7 * 8 = 56.');
  equal(chunks.at(-1).usage.prompt_tokens, prompt_ids.length);
  same([...(await engine.tokenize(prompt))], prompt_ids);
  await rejects(engine.completions.create({ prompt: ['a', 'b'] }), UnsupportedError);
  await rejects(engine.completions.create({ prompt: [99999] }), BezelError);
});

above('a model is found by path, Blob, bytes and through a store, and what is not there is said', async () => {
  const bytes = fs.readFileSync(MODEL);
  const resolved = { name: 'tiny:latest', kind: 'model', model: [{ kind: 'path', path: MODEL }], adapters: [], store: { system: 'Talk like a pirate.' }, digest: '', size: bytes.length };
  const store = { resolve: async (name) => (name === 'tiny' ? resolved : Promise.reject(new BezelError(`${name} is not in the store`, 'not-found'))) };
  for (const source of [new Blob([bytes]), new Uint8Array(bytes), new URL(`../../${MODEL}`, import.meta.url), 'tiny']) {
    const other = await Engine.load(source, { backend: 'cpu', store });
    const pirate = source === 'tiny';
    const answer = await other.chat.completions.create({ messages: [user('What is the capital of Italy?')], ...greedy });
    equal(contentOf(answer), pirate ? 'Arr, matey! The capital of Italy be Rome.' : 'The capital of Italy is Rome.');
    await other.dispose();
  }
  await rejects(Engine.load('gemma9', { store }), NotFoundError);
  await rejects(Engine.load('gemma9'), NotFoundError);
  await rejects(Engine.load('./no/such/file.gguf', { store }), /no such file/);
  await rejects(Engine.load('tests/check.h', { backend: 'cpu' }), BezelError);
  await rejects(Engine.load(MODEL, { signal: AbortSignal.abort() }), isAbort);
});

test('what a model would take is known before it is loaded', async () => {
  const e = await Engine.estimate(MODEL, { context: 512 }), tight = await Engine.estimate(MODEL, { context: 512, memory: 12e6 });
  ok(e.fits && e.context === 512 && e.largestContext === 2048, JSON.stringify(e));
  equal(e.total, e.weights + e.cache + e.scratch + e.steps);
  ok(!tight.fits && tight.missing === tight.total - 12e6 && tight.largestContext < 512 && /more than the/.test(tight.reason), JSON.stringify(tight));
  const c = await Engine.estimate(MODEL, { backend: 'cpu', context: 512 }), few = await Engine.estimate(MODEL, { backend: 'cpu', context: 512, memory: c.total - 1 });
  ok(c.fits && c.context === 512 && c.largestContext === 2048 && c.total > c.weights && c.available === Infinity, JSON.stringify(c));
  ok(!few.fits && few.missing === 1 && few.largestContext < 512 && few.largestContext > 256, JSON.stringify(few));
  await rejects(Engine.estimate('no/such.gguf'), NotFoundError);
  if (backend === 'gpu') await rejects(Engine.load(MODEL, { context: 512, memory: 12e6 }), (e) => e instanceof BezelError && e.message === tight.reason);
});

test('a benchmark measures reading and drawing', async () => {
  const seen = [];
  const r = await engine.bench({ prompt: 32, predicted: 8, repetitions: 2, onProgress: (p) => seen.push(p.test) });
  equal(r.prompt.tokens, 32);
  equal(r.predicted.runs.length, 2);
  ok(r.prompt.mean > 0 && r.predicted.mean > 0 && r.ttft_ms.p95 >= r.ttft_ms.p50);
  ok(seen.includes('warmup') && seen.includes('predicted'));
  await rejects(engine.bench({ signal: AbortSignal.abort() }), isAbort);
});

above('the LanguageModel shape prompts, streams, appends, clones and counts', async () => {
  const LanguageModel = languageModel(engine), heard = [];
  equal(await LanguageModel.availability(), 'available');
  const s = await LanguageModel.create({
    temperature: 0, topK: 1, initialPrompts: [{ role: 'system', content: 'Talk like a pirate.' }],
    monitor: (m) => m.addEventListener('downloadprogress', (e) => heard.push(e.loaded)),
  });
  same(heard, [0, 1]);
  equal(await s.prompt('What is the capital of Italy?'), 'Arr, matey! The capital of Italy be Rome.');
  const usage = s.contextUsage;
  ok(usage > 20 && s.contextWindow === 2048);
  const twin = await s.clone();
  equal(twin.contextUsage, usage);
  const plain = await LanguageModel.create({ temperature: 0, topK: 1 });
  await plain.append([{ role: 'user', content: [{ type: 'text', value: 'My name is Anna.' }] }, { role: 'assistant', content: 'Nice to meet you, Anna!' }]);
  ok(plain.contextUsage > 10);
  ok((await plain.measureContextUsage('What is my name?')) > 4);
  let text = '';
  for await (const piece of plain.promptStreaming('What is my name?')) text += piece;
  equal(text, 'Your name is Anna.');
  equal(s.contextUsage, usage, 'others do not touch it');
  equal(await plain.prompt([{ role: 'user', content: 'What is the capital of Japan?' }, { role: 'assistant', content: 'The capital of', prefix: true }]), ' Japan is Tokyo.');
  for (const one of [s, twin, plain]) one.destroy();
});

above('the LanguageModel shape fails as pages expect', async () => {
  const LanguageModel = languageModel(engine), named = (name) => (e) => e instanceof DOMException && e.name === name;
  const s = await LanguageModel.create({ temperature: 0, topK: 1 });
  await rejects(s.prompt('x', { responseConstraint: { type: 'object' } }), named('NotSupportedError'));
  await rejects(s.prompt([{ role: 'system', content: 'x' }]), named('NotSupportedError'));
  await rejects(s.prompt([{ role: 'user', content: 'x', prefix: true }]), named('SyntaxError'));
  await rejects(s.prompt('word '.repeat(3000)), named('QuotaExceededError'));
  await rejects(s.prompt('Hi', { signal: AbortSignal.abort() }), named('AbortError'));
  const reader = s.promptStreaming('Tell me a story about a fox.').getReader();
  ok((await reader.read()).value.length > 0);
  await reader.cancel();
  equal(await s.prompt('Hi'), 'Hello! How can I help you?', 'a cancelled turn is as if it had not been');
  const under = s.prompt('Tell me a story about a fox.');
  s.destroy();
  await rejects(under, named('AbortError'));
  await rejects(s.prompt('Hi'), named('InvalidStateError'));
});

above('a long LanguageModel conversation forgets its oldest messages and says so', async () => {
  const s = await languageModel(engine).create({ temperature: 0, topK: 1 });
  let overflows = 0;
  s.addEventListener('contextoverflow', () => overflows++);
  for (let i = 0; i < 3; i++) await s.append([{ role: 'user', content: 'The old boat is here. '.repeat(120) }, { role: 'assistant', content: 'Yes.' }]);
  ok(overflows >= 1, 'nothing was forgotten');
  ok(s.contextUsage < s.contextWindow);
  s.destroy();
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

await done(process.argv[3]);
