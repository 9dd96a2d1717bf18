// Calls of tools of a constrained answer, piece by piece: what the pieces are, and that joined they
// are JSON that keeps to the schema. tiny writes them, without having read of the tools.
//
//   node tests/web/test_calls.mjs
import { Core, CpuModel, fileSource, loadWasm } from '../../web/engine/dist/core.js';
import { chatChunks, newHead, wholeChat } from '../../web/engine/dist/engine/completions.js';
import { done, equal, ok, same, test } from './check.mjs';

const core = await Core.load(await loadWasm());
const model = await CpuModel.open(core, [await fileSource('models/tiny.q8_0.gguf')]);

const strictTool = (name, parameters) => ({ name, parameters, strict: true });
const closed = (properties) => ({
  type: 'object', properties, required: Object.keys(properties), additionalProperties: false,
});
const weather = strictTool('get_weather', closed({
  city: { type: 'string', maxLength: 12 }, days: { type: 'integer', minimum: 1, maximum: 9 },
}));

/** The answer of the model, or of a conversation that plays one. */
async function* chunks(constraint, { seed = 1, n_max = 200, play } = {}) {
  const conversation = play ?? (await model.conversation(512));
  const place = {
    conversation, signal: new AbortController().signal, asked: 0, begun: 0, go: async () => {},
    rest: () => {},
  };
  const order = {
    options: { constraint, seed, n_max, stop: [], specials: true, temperature: 1.5 },
    n: 1, thinking: false, tools: undefined, oneCall: false, stop: [], includeUsage: true,
    returnProgress: false, returnSteps: false,
  };
  const messages = [{ role: 'user', content: 'What is the weather in Oslo?' }];
  const prompt = model.chatTokens(JSON.stringify({ messages }));
  try {
    yield* chatChunks(
      core, model, async () => place, order, prompt, newHead('chatcmpl-', 'tiny'),
    );
  } finally {
    if (!play) conversation.close();
  }
}

/** A conversation that says these tokens, each with its text. */
const saying = (texts, stop = 'end') => ({
  async set() {
    return 0;
  },
  async *generate() {
    for (const text of texts) yield { id: 1, text };
    return { stop };
  },
});

const callsOf = (all) => all.flatMap((c) => c.choices[0]?.delta.tool_calls ?? []);
async function collect(stream) {
  const all = [];
  for await (const chunk of stream) all.push(chunk);
  return all;
}

test('a call begins with its name, and its arguments follow in pieces', async () => {
  for (let seed = 0; seed < 12; seed++) {
    const constraint = { tools: [weather], call: 'required', one_call: true };
    const all = await collect(chunks(constraint, { seed }));
    const [first, ...rest] = callsOf(all);
    same(Object.keys(first), ['index', 'id', 'type', 'function']);
    same([first.index, first.type, first.function], [
      0, 'function', { name: 'get_weather', arguments: '' },
    ]);
    ok(rest.length > 3);
    for (const piece of rest) same(Object.keys(piece), ['index', 'function']);
    ok(rest.every((piece) => piece.index === 0 && piece.function.arguments));
    const { city, days, ...more } =
      JSON.parse(rest.map((piece) => piece.function.arguments).join(''));
    equal(typeof city, 'string');
    ok(Number.isInteger(days) && days >= 1 && days <= 9);
    same(more, {});
    equal(all.at(-2).choices[0].finish_reason, 'tool_calls');
    equal(all.map((c) => c.choices[0]?.delta.content ?? '').join(''), '');
  }
});

test('the pieces put together are the answer as a whole', async () => {
  const constraint = { tools: [weather, strictTool('stop', closed({}))], call: 'required' };
  for (let seed = 0; seed < 8; seed++) {
    const calls = callsOf(await collect(chunks(constraint, { seed, n_max: 90 })));
    const { message, finish_reason: reason } =
      (await wholeChat(chunks(constraint, { seed, n_max: 90 }))).choices[0];
    const whole = message.tool_calls ?? [];
    ok(reason === 'tool_calls' || whole.length <= calls.at(-1).index + 1);
    for (const [i, call] of whole.entries()) {
      const own = calls.filter((c) => c.index === i);
      equal(call.function.name, own[0].function.name);
      equal(call.function.arguments, own.map((c) => c.function.arguments).join(''));
      JSON.parse(call.function.arguments);
    }
  }
});

test('text that spells a tag is text, also where it must come', async () => {
  const text = 'a<|"|><tool_call|>"\\\n<|tool_call>call:x{';
  const constraint = {
    tools: [strictTool('say', closed({ text: { const: text } }))], call: 'required', one_call: true,
  };
  const { message } = (await wholeChat(chunks(constraint))).choices[0];
  same(JSON.parse(message.tool_calls[0].function.arguments), { text });
  equal(message.content, null);
});

test('content keeps its spaces and may spell tags too', async () => {
  const text = ' \n<|channel>a<|tool_call>call:x{}<tool_call|> ';
  const regex = text.replace(/[|{}]/g, '\\$&');
  const { message, finish_reason: reason } = (await wholeChat(chunks({ regex }))).choices[0];
  equal(message.content, text);
  equal(reason, 'stop');
});

test('a call that is cut short streams as far as it came, and is none as a whole', async () => {
  const play = () =>
    saying(['<|tool_call>', 'call:', 'f', '{', 'a:', '<|"|>', 'b "', 'c'], 'length');
  const all = await collect(chunks({ json: true }, { play: play() }));
  equal(callsOf(all).map((c) => c.function.arguments).join(''), '{"a":"b \\"c');
  const { message, finish_reason: reason } =
    (await wholeChat(chunks({ json: true }, { play: play() }))).choices[0];
  same([message.tool_calls, reason], [undefined, 'length']);
});

test('calls follow text, and each other', async () => {
  const play = saying([
    'Let', ' me', ' see', '. ', '<|tool_call>', 'call:', 'f', '{}', '<tool_call|>', '<|tool_call>',
    'call:g{', 'n:', '1', '2', ',', '<|"|>', 'a:', '<|"|>', ':[', 'true', ']}', '<tool_call|>',
  ]);
  const { message } = (await wholeChat(chunks({ json: true }, { play }))).choices[0];
  equal(message.content, 'Let me see.');
  same(message.tool_calls.map((c) => [c.function.name, c.function.arguments]), [
    ['f', '{}'], ['g', '{"n":12,"a:":[true]}'],
  ]);
});

await done(process.argv[3]);
model.close();
