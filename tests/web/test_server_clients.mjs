// `bezel serve` as people use it: the tool itself, the tiny model on the CPU, the official openai
// and ollama clients.
import { spawnSync } from 'node:child_process';
import fs from 'node:fs';
import os from 'node:os';
import path from 'node:path';

import { Ollama } from 'ollama';
import OpenAI from 'openai';

import { Core, fileSource, loadWasm } from '../../web/engine/dist/core.js';
import { Engine } from '../../web/engine/dist/api/engine.js';
import { ServerStore } from '../../web/engine/dist/store/server_store.js';
import { runStreams, startServe } from '../../bench/streams.mjs';
import { done, equal, ok, rejects, same, test } from './check.mjs';
import { linearsOf, loraFile } from './lora_file.mjs';
import { ask, makeStore, sleep, temp } from './server_fixture.mjs';

const root = `${temp}/clients`;
const config = {
  model_format: 'gguf', model_family: 'gemma4', model_families: ['gemma4'], model_type: '6.1M',
  file_type: 'Q8_0',
};
const shipped = ['tiny-diffusion:latest', 'tiny-moe:latest', 'tiny:latest'];
makeStore(root, { 'small:8bit': [
  fs.readFileSync('models/tiny.q8_0.gguf'), config, { temperature: 0, num_predict: 3 },
] });

const server = await startServe(['--backend', 'cpu', '--store', root]);
const port = Number(new URL(server.url).port);
const openai = new OpenAI({ baseURL: `${server.url}/v1`, apiKey: 'none', maxRetries: 0 });
const ollama = new Ollama({ host: server.url });
const user = (content) => ({ role: 'user', content });
const greedy = { model: 'tiny', temperature: 0 };
const parameter = (type, properties, required) => ({ type, properties, required });
const tools = [
  {
    type: 'function',
    function: {
      name: 'get_weather',
      description: 'Current weather of a city',
      parameters: parameter(
        'object', { city: { type: 'string', description: 'Name of the city' } }, ['city'],
      ),
    },
  },
  {
    type: 'function',
    function: {
      name: 'calculator',
      description: 'Does arithmetic',
      parameters: parameter('object', { expression: { type: 'string' } }, ['expression']),
    },
  },
];
const long = { ...greedy, messages: [user('Tell me a story about a fox.')] };

test('it says where it is, which models there are and what it computes on', () => {
  ok(
    server.out.includes(`http://localhost:${port}/`) && server.out.includes('small:8bit')
      && server.out.includes('tiny:latest') && server.out.includes('on the CPU'),
    server.out,
  );
});

test('openai: models are listed and found', async () => {
  const ids = [];
  for await (const m of openai.models.list()) ids.push(m.id);
  same(ids.sort(), ['small:8bit', ...shipped]);
  equal((await openai.models.retrieve('tiny')).id, 'tiny:latest');
  await rejects(openai.models.retrieve('none'), (e) =>
    e instanceof OpenAI.NotFoundError && e.code === 'model_not_found');
});

test('openai: a chat is answered, whole and streamed alike', async () => {
  const messages = [
    user('What is the capital of France?'),
    { role: 'assistant', content: 'The capital of France is Paris.' }, user('And Germany?'),
  ];
  const whole = await openai.chat.completions.create({ ...greedy, messages });
  equal(whole.choices[0].message.content, 'The capital of Germany is Berlin.');
  equal(whole.choices[0].finish_reason, 'stop');
  let text = '', pieces = 0, usage;
  for await (const chunk of await openai.chat.completions.create({
    ...greedy, messages, stream: true, stream_options: { include_usage: true },
  })) {
    text += chunk.choices[0]?.delta.content ?? '';
    usage = chunk.usage ?? usage;
    pieces++;
  }
  equal(text, whole.choices[0].message.content);
  ok(pieces > 5, 'it comes in pieces');
  same([usage.prompt_tokens, usage.completion_tokens], [
    whole.usage.prompt_tokens, whole.usage.completion_tokens,
  ]);
  const cut = await openai.chat.completions.create({
    ...long, max_tokens: 5, stop: ['zzz'], seed: 3, top_p: 0.9,
  });
  same([cut.choices[0].finish_reason, cut.usage.completion_tokens], ['length', 5]);
});

test('openai: tools are called, and their results answered from', async () => {
  const messages = [user('What is the weather in Oslo?')];
  const first = await openai.chat.completions.create({ ...greedy, messages, tools });
  const { message, finish_reason: reason } = first.choices[0], [call] = message.tool_calls;
  same([reason, call.function.name, JSON.parse(call.function.arguments)], [
    'tool_calls', 'get_weather', { city: 'Oslo' },
  ]);
  const second = await openai.chat.completions.create({
    ...greedy,
    tools,
    messages: [
      ...messages, message,
      { role: 'tool', tool_call_id: call.id, content: '{"temperature": 7, "condition": "rain"}' },
    ],
  });
  ok(second.choices[0].message.content.includes('7'), second.choices[0].message.content);
  const stream = openai.chat.completions.stream({ ...greedy, messages, tools });
  same(
    (await stream.finalChatCompletion()).choices[0].message.tool_calls[0].function.name,
    'get_weather',
  );
});

test('openai: two calls at once, or one where parallel calls are not wanted', async () => {
  const messages = [user('What is the weather in Oslo? And what is the weather in Rome?')];
  const cities = ({ choices: [{ message, finish_reason: reason }] }) => [
    reason, ...message.tool_calls.map((c) => JSON.parse(c.function.arguments).city),
  ];
  same(cities(await openai.chat.completions.create({ ...greedy, messages, tools })), [
    'tool_calls', 'Oslo', 'Rome',
  ]);
  same(
    cities(await openai.chat.completions.create({
      ...greedy, messages, tools, parallel_tool_calls: false,
    })),
    ['tool_calls', 'Oslo'],
  );
  const stream =
    openai.chat.completions.stream({ ...greedy, messages, tools, parallel_tool_calls: false });
  same(cities(await stream.finalChatCompletion()), ['tool_calls', 'Oslo']);
});

test('conversations that take turns keep what was read of each', async () => {
  const topics = ['the sea', 'a mountain', 'an old bridge', 'the moon'].map((about) => [user(
    `Tell me a long story about ${about}, with a beginning, a middle and an end, and let it rain.`,
  )]);
  const turn = async (messages) => {
    const { choices: [{ message }], usage } =
      await openai.chat.completions.create({ ...greedy, messages, max_tokens: 8 });
    messages.push(message, user('Go on.'));
    return usage.prompt_tokens_details.cached_tokens;
  };
  for (const messages of topics) await turn(messages);
  for (let round = 0; round < 2; round++)
    for (const messages of topics) ok((await turn(messages)) >= 20, 'only the new words are read');
  const fifth = [user('What is 7 * 8?')]; // takes the place of the one that was asked longest ago
  await turn(fifth);
  ok((await turn(fifth)) > 5);
  ok((await turn(topics[3])) >= 20, 'the latest is still there');
  ok((await turn(topics[0])) < 20, 'the oldest is read again');
});

test('openai: thoughts come apart from the answer', async () => {
  const { choices: [{ message }] } = await openai.chat.completions.create({
    ...greedy, messages: [user('What is 47 + 38?')], reasoning_effort: 'high',
  });
  equal(message.content, '47 + 38 = 85.');
  ok(message.reasoning_content.includes('carry 1'));
});

test('openai: a text is continued', async () => {
  const prompt = '<bos><|turn>user\nWhat is 7 * 8?<turn|>\n<|turn>model\n';
  const whole = await openai.completions.create({ ...greedy, prompt });
  equal(whole.choices[0].text, '7 * 8 = 56.');
  let text = '';
  for await (const chunk of await openai.completions.create({ ...greedy, prompt, stream: true }))
    text += chunk.choices[0]?.text ?? '';
  equal(text, whole.choices[0].text);
});

test('openai: mistakes are its own kinds of error', async () => {
  await rejects(openai.chat.completions.create({ model: 'none', messages: [user('x')] }), (e) =>
    e instanceof OpenAI.NotFoundError);
  await rejects(openai.chat.completions.create({ ...greedy, messages: [] }), (e) =>
    e instanceof OpenAI.BadRequestError);
  await rejects(
    openai.chat.completions.create({ ...greedy, messages: [user('word '.repeat(5000))] }),
    (e) => e instanceof OpenAI.BadRequestError,
  );
  await rejects(
    openai.chat.completions.create({
      ...greedy, messages: [user('word '.repeat(5000))], stream: true,
    }),
    (e) => e instanceof OpenAI.BadRequestError && e.code === 'context_length_exceeded',
  );
  await rejects(
    openai.chat.completions.create({ ...greedy, messages: [user('x')], temperature: -1 }),
    (e) => e instanceof OpenAI.BadRequestError,
  );
  await rejects(openai.embeddings.create({ model: 'tiny', input: 'x' }), (e) =>
    e instanceof OpenAI.NotFoundError);
});

const idle = async () => {
  for (let i = 0; i < 500; i++) {
    const { queue } = (await ask(port, '/health')).json;
    if (!queue.running && !queue.waiting) return;
    await sleep(10);
  }
  throw new Error('the queue is still busy');
};

test('openai: an aborted stream stops the model, and the queue goes on', async () => {
  const stream = await openai.chat.completions.create({ ...long, stream: true });
  let pieces = 0;
  for await (const _ of stream) if (++pieces === 3) stream.controller.abort();
  ok(pieces < 40, `${pieces} pieces came`);
  await idle();
  const gone = new AbortController();
  const longer = { ...long, ignore_eos: true, max_tokens: 1500 };
  const waiting = Array.from(
    { length: 8 }, () => openai.chat.completions.create(longer, { signal: gone.signal }),
  );
  await sleep(30);
  gone.abort();
  for (const one of waiting) await rejects(one, (e) => e instanceof OpenAI.APIUserAbortError);
  await idle();
  equal(
    (await openai.chat.completions.create({
      ...greedy, messages: [user('What is 7 * 8?')],
    })).choices[0].message.content,
    '7 * 8 = 56.',
  );
});

test('openai: several answers, several prompts, an echo, and errors with a parameter and an id',
    async () => {
  const two = await openai.chat.completions.create({
    model: 'tiny', messages: long.messages, max_tokens: 6, n: 2, seed: 1,
  });
  same(two.choices.map((c) => c.index), [0, 1]);
  const seen = new Set();
  for await (const { choices } of await openai.chat.completions.create({
    model: 'tiny', messages: long.messages, max_tokens: 6, n: 2, stream: true,
  }))
    for (const c of choices) seen.add(c.index);
  same([...seen], [0, 1]);
  const prompt = '<bos><|turn>user\nWhat is 7 * 8?<turn|>\n<|turn>model\n';
  const made = await openai.completions.create({
    ...greedy, prompt: [prompt, prompt], echo: true, best_of: 1,
  });
  same(made.choices.map((c) => c.text), Array(2).fill(`${prompt}7 * 8 = 56.`));
  await rejects(openai.chat.completions.create({ ...long, temperature: 'hot' }), (e) =>
    e instanceof OpenAI.BadRequestError && e.param === 'temperature' && /^req_/.test(e.requestID));
  await rejects(openai.chat.completions.create({ ...long, frobnicate: 1 }), (e) =>
    e.status === 400 && e.param === 'frobnicate');
  const tooMuch = 'word '.repeat(5000);
  const about = (param) => (e) => e.status === 400 && e.param === param;
  await rejects(
    openai.chat.completions.create({ ...greedy, messages: [user(tooMuch)] }), about('messages'),
  );
  await rejects(
    openai.chat.completions.create({ ...greedy, messages: [user(tooMuch.repeat(40))] }),
    about('messages'),
  );
  await rejects(openai.completions.create({ ...greedy, prompt: tooMuch }), about('prompt'));
  const unknown = { ...greedy, prompt: [[2], [4096]], stream: true };
  await rejects(openai.completions.create(unknown), about('prompt'));
  await rejects(
    openai.chat.completions.create({
      ...greedy, messages: [user('x'), { role: 'user', content: 5 }],
    }),
    about('messages[1]'),
  );
  await rejects(
    openai.chat.completions.create({ ...greedy, messages: [user('x')], tools: [5] }),
    about('tools[0]'),
  );
  equal(
    (await openai.chat.completions.create({
      ...greedy, model: null, messages: [user('What is 7 * 8?')],
    })).choices[0].message.content,
    '7 * 8 = 56.',
  );
});

test('ollama: a history that is too long loses its oldest turns', async () => {
  const past = Array
    .from({ length: 60 }, () => [user('word '.repeat(60)), { role: 'assistant', content: 'yes' }])
    .flat();
  const messages = [
    { role: 'system', content: 'Talk like a pirate.' }, ...past,
    user('What is the capital of Italy?'),
  ];
  const options = { temperature: 0, num_predict: 0 };
  const answer = await ollama.chat({ model: 'tiny', messages, options });
  ok(answer.prompt_eval_count > 1000 && answer.prompt_eval_count < 2048, JSON.stringify(answer));
  await rejects(ollama.chat({ model: 'tiny', messages, options, truncate: false }), /tokens/);
  await rejects(openai.chat.completions.create({ ...greedy, messages }), (e) =>
    e.code === 'context_length_exceeded');
  ok(
    (await openai.chat.completions.create({
      ...greedy, messages, truncation: 'auto',
    })).usage.prompt_tokens
      < 2048,
  );
});

test('ollama: models are listed and described', async () => {
  same((await ollama.list()).models.map((m) => m.name).sort(), ['small:8bit', ...shipped]);
  const shown = await ollama.show({ model: 'small:8bit' });
  equal(shown.details.quantization_level, 'Q8_0');
  equal(
    shown.model_info['gemma4.context_length'] ?? shown.model_info.get?.('gemma4.context_length'),
    2048,
  );
  ok(shown.parameters.includes('num_predict') && shown.capabilities.includes('tools'));
  await rejects(ollama.show({ model: 'none' }), /no model "none"/);
  ok((await ollama.version()).version);
});

test('ollama: a chat is answered, whole and streamed alike, with its times', async () => {
  const messages = [
    { role: 'system', content: 'Talk like a pirate.' }, user('What is the capital of Italy?'),
  ];
  const options = { temperature: 0, num_ctx: 1024 };
  const whole = await ollama.chat({ model: 'tiny', messages, options });
  equal(whole.message.content, 'Arr, matey! The capital of Italy be Rome.');
  same([whole.done, whole.done_reason], [true, 'stop']);
  ok(
    whole.eval_count > 5 && whole.total_duration > whole.eval_duration && whole.eval_duration > 0
      && whole.prompt_eval_count > 10,
  );
  let text = '', last;
  for await (const part of await ollama.chat({ model: 'tiny', messages, options, stream: true })) {
    text += part.message.content;
    last = part;
  }
  same([text, last.done, last.eval_count], [whole.message.content, true, whole.eval_count]);
  same((await ollama.ps()).models.map((m) => m.name), ['tiny:latest']);
});

test('ollama: tools, thoughts and generate', async () => {
  const call = (await ollama.chat({
    model: 'tiny',
    messages: [user('What is the weather in Oslo?')],
    tools,
    options: { temperature: 0 },
  })).message.tool_calls[0].function;
  same(call, { name: 'get_weather', arguments: { city: 'Oslo' } });
  const after = await ollama.chat({
    model: 'tiny',
    tools,
    options: { temperature: 0 },
    messages: [
      user('What is the weather in Oslo?'),
      { role: 'assistant', content: '', tool_calls: [{ function: call }] },
      {
        role: 'tool', tool_name: 'get_weather', content: '{"temperature": 7, "condition": "rain"}',
      },
    ],
  });
  ok(after.message.content.includes('7'), after.message.content);
  const { message } = await ollama.chat({
    model: 'tiny', messages: [user('What is 47 + 38?')], think: true, options: { temperature: 0 },
  });
  ok(message.content === '47 + 38 = 85.' && message.thinking.includes('carry 1'));
  const made =
    await ollama.generate({ model: 'tiny', prompt: 'What is 7 * 8?', options: { temperature: 0 } });
  equal(made.response, '7 * 8 = 56.');
  const raw = await ollama.generate({
    model: 'tiny',
    raw: true,
    prompt: '<bos><|turn>user\nWhat is 7 * 8?<turn|>\n<|turn>model\n',
    options: { temperature: 0, num_predict: 3 },
  });
  same(
    [raw.done_reason, raw.eval_count, '7 * 8 = 56.'.startsWith(raw.response)], ['length', 3, true],
  );
  await rejects(ollama.chat({ model: 'none', messages: [] }), /no model "none"/);
});

test('ollama: a model of the store has its own parameters, and an abort is heard', async () => {
  const { eval_count: made, done_reason: reason } =
    await ollama.chat({ model: 'small:8bit', messages: long.messages });
  same([made, reason], [3, 'length']);
  const one = new Ollama({ host: server.url });
  const stream = await one.chat({ model: 'tiny', messages: long.messages, stream: true });
  await rejects((async () => {
    for await (const _ of stream) stream.abort();
  })(), (e) => e.name === 'AbortError');
  await idle();
});

test('another Bezel reads the models over the wire, in ranges, and computes them itself',
    async () => {
  const store = new ServerStore(await Core.load(await loadWasm()), server.url);
  same((await store.list()).map((m) => m.name).sort(), ['small:8bit', ...shipped]);
  const { size } = fs.statSync('models/tiny.q8_0.gguf');
  for (const name of ['tiny', 'small:8bit']) {
    const news = [];
    const engine = await Engine.load(name, {
      store, backend: 'cpu', onProgress: (p) => p.phase === 'weights' && news.push(p),
    });
    ok(
      news.length > 0 && news.every((p) => p.total === size && p.loaded <= size)
        && news.at(-1).loaded === size,
      'how far the bytes are is told',
    );
    const { choices: [{ message }] } = await engine.chat.completions.create({
      messages: [user('What is 7 * 8?')], temperature: 0, max_tokens: 20,
    });
    equal(message.content, '7 * 8 = 56.');
    await engine.dispose();
  }
});

test('it listens on both of the addresses of loopback', async () => {
  const addresses = Object.values(os.networkInterfaces())
    .flat()
    .filter((a) => a.internal)
    .map((a) => (a.family === 'IPv6' ? `[${a.address}]` : a.address));
  ok(addresses.length >= 1);
  for (const a of addresses.filter((x) => ['127.0.0.1', '[::1]'].includes(x)))
    equal((await fetch(`http://${a}:${port}/health`)).status, 200, a);
});

test('32 streams at once lose nothing', async () => {
  const r = await runStreams({ url: server.url, clients: 32, seconds: 8 });
  same(r.lost, []);
  equal(r.whole, r.streams);
  ok(Math.min(...r.perClient) >= 1, 'everyone was served');
  // Time is shared, not whole answers: who asks for short ones has more of them. Six times as many
  // pieces as another has is what an answer that ended just before the time was up, and one just
  // after, can make of it.
  ok(Math.max(...r.piecesOf) <= 6 * Math.min(...r.piecesOf), `time is shared: ${r.piecesOf}`);
});

test('Ctrl-C ends it at once, an answer under way or not', async () => {
  const stream = await openai.chat.completions.create({ ...long, stream: true });
  const reading = rejects((async () => {
    for await (const _ of stream);
  })());
  const begin = performance.now();
  equal(await server.stop(), 130, server.err); // as --help says
  ok(performance.now() - begin < 15_000); // on a busy machine too
  await reading;
});

test('adapters of the model are worn by every answer, and may be chosen by name', async () => {
  const source = await fileSource('models/tiny.q8_0.gguf'), file = `${temp}/my adapters/noise.gguf`;
  fs.mkdirSync(path.dirname(file));
  fs.writeFileSync(file, loraFile(linearsOf(await Core.load(await loadWasm()), source), 4));
  source.close();
  const adapted = await startServe([
    '--backend', 'cpu', '--model', 'tiny', '--adapter', `${file}:4`, '--adapter', `${file}:0`,
  ]);
  try {
    const client = new OpenAI({ baseURL: `${adapted.url}/v1`, apiKey: 'none', maxRetries: 0 });
    const say = async (more) =>
      (await client.chat.completions.create({
        ...greedy, max_tokens: 12, messages: [user('What is the capital of France?')], ...more,
      })).choices[0].message.content;
    ok((await say({})) !== 'The capital of France is Paris.');
    equal(await say({ adapters: [] }), 'The capital of France is Paris.');
    equal(await say({ adapters: [{ name: 'noise', scale: 4 }] }), await say({}));
    equal(await say({ adapters: [{ name: 'noise-2', scale: 4 }] }), await say({}));
    fs.rmSync(file);
    await new Ollama({ host: adapted.url }).chat({ model: 'tiny', messages: [], keep_alive: 0 });
    await rejects(say({}), (e) => e.message === '404 noise: no such file');
  } finally {
    await adapted.stop();
  }
});

test('what cannot be started is one sentence and an exit code', async () => {
  const serve = (...args) => spawnSync(
    process.execPath,
    ['web/engine/bin/bezel.mjs', 'serve', '--backend', 'cpu', ...args],
    { encoding: 'utf8', timeout: 20000 },
  );
  const outside = serve('--host', '0.0.0.0');
  same([outside.status, /--allow-host/.test(outside.stderr)], [2, true]);
  same(
    [
      serve('--model', 'none').status, serve('--model', './none.gguf').status,
      serve('--store', '/none').status, serve('--backend', 'tpu').status,
    ],
    [1, 1, 1, 2],
  );
  const origin = serve('--allow-origin', 'localhost:3000');
  same(
    [
      origin.status,
      /--allow-origin: "localhost:3000" is no origin: write https:/.test(origin.stderr),
    ],
    [2, true],
    origin.stderr,
  );
  same(
    [
      serve('--adapter', 'x.gguf').status,
      serve('--model', 'tiny', '--adapter', './none.gguf').status,
    ],
    [2, 1],
  );
  const other = await startServe(['--backend', 'cpu']);
  const taken = serve('--port', new URL(other.url).port);
  same([taken.status, /is taken/.test(taken.stderr)], [1, true]);
  await other.stop();
});

await done(process.argv[2]);
await server.stop();
