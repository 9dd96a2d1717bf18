// Structured output as programs ask for it: the official clients and their schema libraries against
// a real server with the tiny model. Every answer is one that zod takes.
import { createOpenAICompatible } from '@ai-sdk/openai-compatible';
import { ChatOllama } from '@langchain/ollama';
import { ChatOpenAI } from '@langchain/openai';
import { generateObject, generateText, Output, streamObject, tool } from 'ai';
import { Ollama } from 'ollama';
import OpenAI from 'openai';
import { zodFunction, zodResponseFormat } from 'openai/helpers/zod';
import { z } from 'zod';

import { Engine } from '../../web/engine/dist/index.js';
import { startServe } from '../../bench/streams.mjs';
import { done, equal, ok, rejects, same, test } from './check.mjs';

const server = await startServe(['--backend', 'cpu']);
const baseURL = `${server.url}/v1`, model = 'tiny';
const openai = new OpenAI({ baseURL, apiKey: 'none', maxRetries: 0 });
const ollama = new Ollama({ host: server.url });
const user = (content) => ({ role: 'user', content });
const greedy = { model, temperature: 0 };

const short = z.string().max(20);
const City = z.object({ name: short, country: short, big: z.boolean() });
const messages = [user('What is the capital of France?')];
const Plan = z.object({
  title: short,
  kind: z.enum(['trip', 'meal', 'talk']),
  steps: z.array(z.object({ what: short, minutes: z.number().int().min(1).max(90) })).min(1).max(2),
  at: z.union([z.literal('home'), z.object({ city: short })]),
  note: short.nullable(),
});
const plan = [user('Make a plan for Saturday.')];

// ---- openai ----

test('openai: zodResponseFormat is parsed, whole and streamed', async () => {
  for (const [schema, asked] of [[City, messages], [Plan, plan]]) {
    const request =
      { ...greedy, messages: asked, response_format: zodResponseFormat(schema, 'answer') };
    const { choices: [{ message, finish_reason }] } = await openai.chat.completions.parse(request);
    equal(finish_reason, 'stop');
    same(schema.parse(message.parsed), message.parsed);
    const stream = openai.chat.completions.stream(request);
    let pieces = 0;
    stream.on('content', () => pieces++);
    same((await stream.finalChatCompletion()).choices[0].message.parsed, message.parsed);
    ok(pieces > 3, `${pieces} pieces`);
  }
});

test('openai: a schema is kept after thoughts, with n, seeds, log-probabilities and stops',
    async () => {
  const request = {
    model, messages: [user('What is 47 + 38?')], reasoning_effort: 'high',
    response_format: zodResponseFormat(z.object({ sum: z.number().int() }), 'sum'),
  };
  const { choices: [{ message }] } = await openai.chat.completions.parse(request);
  ok(Number.isInteger(message.parsed.sum));
  ok(message.reasoning_content.length > 5, JSON.stringify(message));
  const several = await openai.chat.completions.parse({
    ...request, reasoning_effort: 'none', n: 3, seed: 1, temperature: 1.5, logprobs: true,
    top_logprobs: 2,
  });
  equal(several.choices.length, 3);
  for (const { message: { parsed, content }, logprobs } of several.choices) {
    ok(Number.isInteger(parsed.sum));
    equal(logprobs.content.map((t) => t.token).join(''), content);
    ok(logprobs.content.every((t) => t.logprob <= 0 && t.top_logprobs.length === 2));
  }
  const cut = await openai.chat.completions.create({ ...request, ...greedy, stop: ':' });
  same([cut.choices[0].message.content, cut.choices[0].finish_reason], ['{"sum"', 'stop']);
  const short = await openai.chat.completions.create({
    ...request, reasoning_effort: 'none', max_tokens: 2,
  });
  equal(short.choices[0].finish_reason, 'length');
});

test('openai: any object, a grammar, a pattern and a choice', async () => {
  const ask = async (more) =>
    (await openai.chat.completions.create({ ...greedy, messages, ...more })).choices[0].message
      .content;
  const any = JSON.parse(await ask({
    messages: [user('Give me the capital of France as JSON.')],
    response_format: { type: 'json_object' },
  }));
  ok(typeof any === 'object' && !Array.isArray(any));
  equal(await ask({ grammar: 'root ::= "yes" | "no"' }).then((x) => /^(yes|no)$/.test(x)), true);
  ok(/^[A-Z][a-z]{3,7}$/.test(await ask({ regex: '[A-Z][a-z]{3,7}' })));
  ok(['Paris?', 'Rome'].includes(await ask({ guided_choice: ['Paris?', 'Rome'] })));
  const raw = await openai.completions.create({
    ...greedy, prompt: 'The capital of France is', json_schema: z.toJSONSchema(City),
  });
  City.parse(JSON.parse(raw.choices[0].text));
});

test('openai: what cannot be kept is refused before anything is streamed, by keyword and place',
    async () => {
  const refused = (more, param, words) => Promise.all([false, true].map((stream) =>
    rejects(openai.chat.completions.create({ ...greedy, messages, stream, ...more }), (e) =>
      e instanceof OpenAI.BadRequestError && e.param === param && words.test(e.message),
    JSON.stringify(more))));
  const schema = { type: 'object', properties: { a: { $dynamicRef: '#x' } } };
  await refused({ json_schema: schema }, 'json_schema', /\$dynamicRef at #\/properties\/a/);
  await refused(
    { response_format: { type: 'json_schema', json_schema: { name: 'x', schema } } },
    'response_format', /\$dynamicRef at #\/properties\/a/,
  );
  await refused({ json_schema: { type: 'objekt' } }, 'json_schema', /type at #/);
  await refused({ regex: '(a' }, 'regex', /a group without an end/);
  await refused({ grammar: 'root ::= other' }, 'grammar', /no rule "other"/);
  await refused(
    { tools: [{ type: 'function', function: { name: 'x', strict: true, parameters: schema } }] },
    'tools', /\$dynamicRef/,
  );
});

// ---- tools ----

const Forecast = z.strictObject({ city: short, unit: z.enum(['C', 'F']) });
const weather = zodFunction({
  name: 'get_weather', description: 'Current weather of a city', parameters: Forecast,
  function: ({ city, unit }) => ({ city, degrees: 7, unit }),
});

test('openai: runTools with a required choice calls with arguments that zod takes', async () => {
  const called = [];
  const run = openai.chat.completions.runTools({
    ...greedy,
    messages: [user('Hello there!')],
    tools: [weather],
    tool_choice: 'required',
  }, { maxChatCompletions: 1 });
  run.on('functionToolCall', (call) => called.push(call));
  await run.done();
  ok(called.length >= 1);
  for (const { name, arguments: args } of called) {
    equal(name, 'get_weather');
    Forecast.parse(JSON.parse(args));
  }
});

test('openai: a named tool is called once, and allowed tools are the only ones', async () => {
  const named = (name) => ({ type: 'function', function: { name } });
  const other = zodFunction({
    name: 'set_alarm', parameters: z.object({ hour: z.number().int().min(0).max(23) }),
  });
  const asked = { ...greedy, messages: [user('What is the weather in Oslo? And in Rome?')],
    tools: [weather, other] };
  const calls = async (tool_choice, stream = false) => {
    const { choices: [{ message, finish_reason }] } = stream
      ? await openai.chat.completions.stream({ ...asked, tool_choice }).finalChatCompletion()
      : await openai.chat.completions.parse({ ...asked, tool_choice });
    equal(finish_reason, 'tool_calls');
    equal(message.content, null);
    return message.tool_calls.map(({ function: f }) => [f.name, f.parsed_arguments]);
  };
  const alarm = await calls(named('set_alarm'));
  equal(alarm.length, 1);
  equal(alarm[0][0], 'set_alarm');
  ok(alarm[0][1].hour >= 0 && alarm[0][1].hour <= 23);
  same(await calls(named('set_alarm'), true), alarm);
  const allowed = await calls({
    type: 'allowed_tools', allowed_tools: { mode: 'required', tools: [named('set_alarm')] },
  });
  ok(allowed.length >= 1 && allowed.every(([name]) => name === 'set_alarm'));
});

test('engine.chat.completions.create takes what the helpers of openai make, as it is', async () => {
  const engine = await Engine.load('models/tiny.q8_0.gguf', { backend: 'cpu' });
  const create = (more) => engine.chat.completions.create({ temperature: 0, ...more });
  const response_format = zodResponseFormat(Plan, 'plan');
  const { choices: [{ message }] } = await create({ messages: plan, response_format });
  Plan.parse(JSON.parse(message.content));
  let text = '';
  for await (const chunk of await create({ messages: plan, response_format, stream: true }))
    text += chunk.choices[0]?.delta.content ?? '';
  equal(text, message.content);
  const { choices: [called] } = await create({
    messages: [user('Hello there!')], tools: [weather], tool_choice: 'required',
  });
  ok(called.message.tool_calls.length >= 1);
  for (const { function: f } of called.message.tool_calls) Forecast.parse(JSON.parse(f.arguments));
  equal(await engine.checkGrammar({ schema: z.toJSONSchema(Plan) }), undefined);
  ok(/\$dynamicRef at #/.test(await engine.checkGrammar({ schema: { $dynamicRef: '#x' } })));
  await engine.dispose();
});

// ---- AI SDK ----

const bezel = createOpenAICompatible({
  name: 'bezel', baseURL, supportsStructuredOutputs: true,
});
const sdk = { model: bezel(model), temperature: 0, maxRetries: 0 };

test('AI SDK: generateObject, streamObject and Output.object', async () => {
  same(City.safeParse((await generateObject({
    ...sdk, schema: City, prompt: 'What is the capital of France?',
  })).object).success, true);
  const { partialObjectStream, object } =
    streamObject({ ...sdk, schema: Plan, prompt: 'Make a plan for Saturday.' });
  let parts = 0;
  for await (const _ of partialObjectStream) parts++;
  ok(parts > 3);
  Plan.parse(await object);
  const { output } = await generateText({
    ...sdk, output: Output.object({ schema: Plan }), prompt: 'Make a plan for Sunday.',
  });
  Plan.parse(output);
});

test('AI SDK: choices, and tools that must be called', async () => {
  const one = await generateObject({
    ...sdk, output: 'enum', enum: ['sunny', 'rainy'], prompt: 'How is the weather?',
  });
  ok(['sunny', 'rainy'].includes(one.object));
  const { toolCalls } = await generateText({
    ...sdk,
    prompt: 'Hello there!',
    toolChoice: 'required',
    tools: { alarm: tool({ inputSchema: z.object({ hour: z.number().int().min(0).max(23) }) }) },
  });
  ok(toolCalls.length >= 1 && toolCalls.every((c) => !c.invalid && c.input.hour <= 23));
});

// ---- LangChain ----

const Weather = z.object({ city: short }).describe('Current weather of a city');
const question = 'What is the weather in Oslo?';

test('LangChain over OpenAI\'s protocol: withStructuredOutput in every mode', async () => {
  const llm = new ChatOpenAI({
    model, temperature: 0, apiKey: 'none', maxRetries: 0, configuration: { baseURL },
  });
  for (const method of ['jsonSchema', 'functionCalling'])
    for (const strict of [true, undefined])
      Plan.parse(await llm.withStructuredOutput(Plan, { name: 'plan', method, strict })
        .invoke('Make a plan for Saturday.'));
  const any = await llm.withStructuredOutput(z.looseObject({}), { method: 'jsonMode' })
    .invoke('Give me the capital of France as JSON.');
  ok(typeof any === 'object');
});

test('LangChain over Ollama\'s protocol: withStructuredOutput in every mode', async () => {
  const llm = new ChatOllama({ model, temperature: 0, baseUrl: server.url, maxRetries: 0 });
  Plan.parse(await llm.withStructuredOutput(Plan, { name: 'plan', method: 'jsonSchema' })
    .invoke('Make a plan for Saturday.'));
  const any = await llm.withStructuredOutput(z.looseObject({}), { method: 'jsonMode' })
    .invoke('Give me the capital of France as JSON.');
  ok(typeof any === 'object');
  // this protocol cannot say that a tool must be called: the model wants to
  same(
    await llm.withStructuredOutput(Weather, { name: 'get_weather', method: 'functionCalling' })
      .invoke(question),
    { city: 'Oslo' },
  );
});

// ---- ollama ----

test('ollama: format is json or a schema of zod, with thoughts, streams, tools and generate',
    async () => {
  const asked = { model, messages, options: { temperature: 0 } };
  const format = z.toJSONSchema(Plan);
  const whole = await ollama.chat({ ...asked, messages: plan, format });
  same([whole.done_reason, whole.done], ['stop', true]);
  Plan.parse(JSON.parse(whole.message.content));
  let text = '', thought = '';
  for await (const { message } of await ollama.chat({
    ...asked, messages: [user('What is 47 + 38?')], format: z.toJSONSchema(City), think: true,
    stream: true,
  })) {
    text += message.content;
    thought += message.thinking ?? '';
  }
  City.parse(JSON.parse(text));
  ok(thought.length > 5, 'it thought before');
  ok(typeof JSON.parse((await ollama.chat({
    ...asked, messages: [user('Give me the capital of France as JSON.')], format: 'json',
  })).message.content) === 'object');
  const made = await ollama.generate({
    model, prompt: 'What is the capital of France?', format: z.toJSONSchema(City),
    options: { temperature: 0 },
  });
  City.parse(JSON.parse(made.response));
  const raw = await ollama.generate({
    model, prompt: 'The capital of France is', raw: true, format: z.toJSONSchema(City),
    options: { temperature: 0 },
  });
  City.parse(JSON.parse(raw.response));
  const { message } = await ollama.chat({
    ...asked, messages: [user(question)], format: z.toJSONSchema(City),
    tools: [{ type: 'function', function: {
      name: 'get_weather', description: 'Current weather of a city',
      parameters: z.toJSONSchema(Weather),
    } }],
  });
  if (message.tool_calls)
    for (const call of message.tool_calls) Weather.parse(call.function.arguments);
  else City.parse(JSON.parse(message.content));
  await rejects(
    ollama.chat({ ...asked, format: { $dynamicRef: '#x' } }), /\$dynamicRef at #/,
  );
});

await done(process.argv[2]);
await server.stop();
