// Diffusion models through the public API, in Node on the CPU: a synthetic model, whose words mean
// nothing but whose canvases can be given; and the trained one, where it ships, which knows facts.
//
//   node tests/web/test_diffusion.mjs build/bezel [--only WORDS]
import { Core, CpuModel, fileSource, loadWasm } from '../../web/engine/dist/core.js';
import { Engine, languageModel } from '../../web/engine/dist/index.js';
import { done, equal, ok, rejects, same, test } from './check.mjs';
import { syntheticDiffusion, trainedDiffusion } from './diffusion_model.mjs';
import { linearsOf, loraFile } from './lora_file.mjs';
import './software_adapter.mjs';

const [native = 'build/bezel'] = process.argv.slice(2).filter((a) => !a.startsWith('--'));
const MODEL = syntheticDiffusion(native), CANVAS = 48;
const engine = await Engine.load(MODEL, { backend: 'cpu', sessions: 4, shared: 4 });
const { completions } = engine.chat;

const user = (content) => ({ role: 'user', content });
const hello = [user('hello')];
/** Two steps a canvas: what comes of them means nothing in either case. Two prompts that were read
 *  in other pieces differ in their last bits, and random weights make other words of that: texts
 *  are compared where the prompt was read once, in a session. */
const quick = { diffusion: { steps: 2 }, max_tokens: CANVAS, seed: 1 };
const contentOf = (answer) => answer.choices[0].message.content;
const textOf = (chunks) => chunks.map((c) => c.choices[0]?.delta.content ?? '').join('');
async function collect(stream) {
  const all = [];
  for await (const item of stream) all.push(item);
  return all;
}
const isAbort = (e) => e instanceof DOMException && e.name === 'AbortError';
const refusal = (kind, param) => (e) => e.kind === kind && e.param === param;

/** A canvas that says exactly this: special tokens are read as such, every position stays. */
async function saying(text) {
  const canvas = [...(await engine.tokenize(text, { bos: false }))];
  return { canvas, fixed: canvas.map(() => true), steps: 1 };
}

test('a diffusion model says so, with its canvas and how it is denoised', () => {
  const { n_canvas, diffusion } = engine.info;
  equal(n_canvas, CANVAS);
  const close = { t_min: 0.4, t_max: 0.8, entropy_bound: 0.1, confidence: 0.005 };
  for (const [name, value] of Object.entries(close))
    ok(Math.abs(diffusion[name] - value) < 1e-6, `${name}: ${diffusion[name]}`);
  same([diffusion.steps, diffusion.stability], [48, 1]);
});

test('an answer has the shape that every model gives, and says of what it was made', async () => {
  const answer = await completions.create({ ...quick, messages: hello, max_tokens: CANVAS + 9 });
  const { choices: [{ finish_reason: reason }], usage, timings } = answer;
  equal(reason, 'length');
  equal(usage.completion_tokens, CANVAS + 9);
  same(usage.diffusion, { canvases: 2, steps: 4, tokens_per_step: (CANVAS + 9) / 4 });
  equal(timings.predicted_n, CANVAS + 9);
  ok(timings.ttft_ms > timings.prompt_ms, 'the first token comes after the first canvas');
  const rate = (1000 * timings.predicted_n) / timings.predicted_ms;
  ok(Math.abs(rate / timings.predicted_per_second - 1) < 1e-6, 'all tokens, by all of the time');
});

test('a stream is the whole answer, a canvas a piece', async () => {
  const request = { ...quick, messages: hello, max_tokens: 2 * CANVAS };
  const chunks = await collect(await completions.create({
    ...request, stream: true, stream_options: { include_usage: true },
  }));
  equal(textOf(chunks), contentOf(await completions.create(request)));
  equal(chunks.filter((c) => c.choices[0]?.delta.content).length, 2);
  same(chunks.at(-1).usage.diffusion, { canvases: 2, steps: 4, tokens_per_step: 2 * CANVAS / 4 });
  ok(chunks.every((c) => !('diffusion_step' in c)), 'nobody asked for steps');
});

test('the end token ends the answer in the middle of a canvas', async () => {
  const answer = await completions.create({
    messages: hello, diffusion: { steps: 1, canvas: ['A short answer.', { end: true }, 'More.'] },
  });
  equal(contentOf(answer), 'A short answer.');
  equal(answer.choices[0].finish_reason, 'stop');
  equal(answer.usage.diffusion.canvases, 1);
});

test('thoughts and calls are found in a canvas as in any answer', async () => {
  const tools = [{
    type: 'function',
    function: {
      name: 'look', parameters: { type: 'object', properties: { at: { type: 'string' } } },
    },
  }];
  const thought = await completions.create({
    messages: hello, thinking: true,
    diffusion: await saying('<|channel>thought\nIt is easy.<channel|>Yes.<turn|>'),
  });
  same([thought.choices[0].message.reasoning_content, contentOf(thought)], ['It is easy.', 'Yes.']);
  const called = await completions.create({
    messages: hello, tools,
    diffusion: await saying('<|tool_call>call:look{at:<|"|>sky<|"|>}<tool_call|><turn|>'),
  });
  equal(called.choices[0].finish_reason, 'tool_calls');
  const [{ function: f }] = called.choices[0].message.tool_calls;
  same([f.name, JSON.parse(f.arguments)], ['look', { at: 'sky' }]);
});

test('stop strings end the content; a limit of tokens is exact', async () => {
  const diffusion = { steps: 1, canvas: ['one two three four', { end: true }] };
  const stopped = await completions.create({ messages: hello, stop: ' three', diffusion });
  same([contentOf(stopped), stopped.choices[0].finish_reason], ['one two', 'stop']);
  const raw = await engine.completions.create({ prompt: 'x', stop: [' three'], diffusion });
  same([raw.choices[0].text, raw.choices[0].finish_reason], ['one two', 'stop']);
  for (const max_tokens of [1, 5, CANVAS, CANVAS + 1]) {
    const cut = await completions.create({ ...quick, messages: hello, max_tokens });
    same([cut.usage.completion_tokens, cut.choices[0].finish_reason], [max_tokens, 'length']);
  }
});

test('the same seed gives the same text, also at temperature 0 without one', async () => {
  const ask = async (more) =>
    contentOf(await completions.create({ ...quick, messages: hello, seed: undefined, ...more }));
  const first = await ask({ seed: 7 });
  equal(await ask({ seed: 7 }), first);
  ok(await ask({ seed: 8 }) !== first, 'another seed, another text');
  ok(await ask() !== await ask(), 'no seed, any text');
  equal(await ask({ temperature: 0 }), await ask({ temperature: 0 }));
});

test('n answers have seeds that follow one another, and usage counts them all', async () => {
  const ask = { ...quick, messages: hello, session: 'n' }, each = [];
  const both = await completions.create({ ...ask, n: 2, seed: 7 });
  for (const seed of [7, 8]) each.push(contentOf(await completions.create({ ...ask, seed })));
  same(both.choices.map((c) => c.message.content), each);
  same(both.usage.diffusion, { canvases: 2, steps: 4, tokens_per_step: 2 * CANVAS / 4 });
});

test('what asks for nothing here is accepted, what cannot be done is named', async () => {
  const plain = contentOf(await completions.create({ ...quick, messages: hello }));
  equal(
    contentOf(await completions.create({
      ...quick, messages: hello, temperature: 0.7, top_p: 0.9, top_k: 40, min_p: 0.1,
      presence_penalty: 0, frequency_penalty: 0, repeat_penalty: 1,
    })),
    plain,
    'what clients send by themselves changes nothing',
  );
  for (const [more, param] of [
    [{ logprobs: true }, 'logprobs'], [{ logit_bias: { 5: -100 } }, 'logit_bias'],
    [{ presence_penalty: 1 }, 'presence_penalty'], [{ repeat_penalty: 1.1 }, 'repeat_penalty'],
    [{ diffusion: { stepz: 3 } }, 'diffusion.stepz'], [{ json_schema: {} }, 'json_schema'],
    [{ response_format: { type: 'json_object' } }, 'response_format'],
    [{ tools: [{ type: 'function', function: { name: 'x' } }], tool_choice: 'required' },
      'tool_choice'],
  ]) {
    const request = { ...quick, messages: hello, ...more };
    await rejects(completions.create(request), refusal('unsupported', param), param);
    const streamed = async () => collect(await completions.create({ ...request, stream: true }));
    await rejects(streamed, refusal('unsupported', param), `${param}, streamed`);
  }
  await rejects(
    engine.completions.create({ ...quick, prompt: 'x', logprobs: 1 }),
    refusal('unsupported', 'logprobs'),
  );
  for (const [diffusion, param] of [
    [{ steps: 0 }, 'diffusion.steps'], [{ t_min: 0 }, 'diffusion.t_min'],
    [{ fixed: [true] }, 'diffusion.fixed'], [{ canvas: [] }, 'diffusion.canvas'],
    [{ canvas: ['a', { hole: 0 }] }, 'diffusion.canvas'],
    [{ canvas: ['a'], fixed: [true] }, 'diffusion.fixed'],
    [{ canvas: [{ hole: CANVAS + 1 }] }, 'diffusion.canvas'],
  ])
    await rejects(
      completions.create({ messages: hello, diffusion }), refusal('argument', param),
      JSON.stringify(diffusion),
    );
});

test('a model that draws one token after the other takes no diffusion', async () => {
  const tiny = await Engine.load('models/tiny.q8_0.gguf', { backend: 'cpu' });
  try {
    await rejects(
      tiny.chat.completions.create({ messages: hello, diffusion: { steps: 3 } }),
      refusal('unsupported', 'diffusion'),
    );
    await rejects(
      tiny.diffusion.generate({ messages: hello }).result, refusal('unsupported', 'diffusion'),
    );
    const edit = { messages: hello, text: 'a b', selection: [0, 1] };
    await rejects(tiny.diffusion.edit(edit).result, refusal('unsupported', 'diffusion'));
    equal(tiny.info.n_canvas, 0);
  } finally {
    await tiny.dispose();
  }
});

// ---- steps ----

test('every step is seen: tokens, what was accepted, entropy, temperature', async () => {
  const ask = { messages: hello, seed: 3, max_tokens: 2 * CANVAS, session: 'steps' };
  const run = engine.diffusion.generate({ ...ask, steps: 4 });
  const steps = await collect(run), result = await run.result;
  same(steps.map((s) => [s.canvas, s.step, s.steps, s.stopped]), [0, 1].flatMap((canvas) =>
    [1, 2, 3, 4].map((step) => [canvas, step, 4, step < 4 ? 'goes-on' : 'steps'])));
  for (const s of steps) {
    for (const list of [s.tokens, s.noisy, s.pieces, s.accepted, s.entropy])
      equal(list.length, CANVAS);
    const accepted = s.entropy.filter((_, i) => s.accepted[i]);
    const rest = s.entropy.filter((_, i) => !s.accepted[i]);
    ok(accepted.length >= 1, 'the surest position is always accepted');
    ok(Math.max(...accepted) <= Math.min(...rest), 'the surest are accepted');
    const mean = s.entropy.reduce((a, b) => a + b) / CANVAS;
    ok(Math.abs(s.mean_entropy - mean) < 1e-4 * mean, 'f32 sums in another order');
    equal(s.text, await engine.detokenize(s.tokens.slice(0, s.end)));
  }
  const close = (a, b) => ok(Math.abs(a - b) < 1e-6, `${a}, not ${b}`);
  [0.8, 0.7, 0.6, 0.5].forEach((t, i) => close(steps[i].temperature, t));
  const final = steps.filter((s) => s.final);
  same(final.map((s) => s.final), [steps[3].tokens, steps[7].tokens]);
  same(result.tokens, final.flatMap((s) => s.final));
  same(result.canvases, [{ steps: 4, stopped: 'steps' }, { steps: 4, stopped: 'steps' }]);
  same([result.finish_reason, result.message.content], ['length', result.text]);
  equal(
    contentOf(await completions.create({ ...ask, diffusion: { steps: 4 } })),
    result.text,
    'a chat is the same without the steps',
  );
});

test('chunks have the steps where a chat asks for them', async () => {
  const chunks = await collect(await completions.create({
    ...quick, messages: hello, stream: true, return_steps: true,
  }));
  same(chunks.flatMap((c) => c.diffusion_step?.step ?? []), [1, 2]);
  const plain = JSON.parse(JSON.stringify(chunks.find((c) => c.diffusion_step)));
  equal(plain.diffusion_step.tokens.length, CANVAS, 'it is as good as JSON');
});

test('the result comes without its steps being read, and onStep hears them', async () => {
  const heard = [];
  const { result } = engine.diffusion.generate({
    messages: hello, steps: 2, seed: 1, canvases: 1, onStep: (s) => heard.push(s.step),
  });
  const { text, usage } = await result;
  same([heard, usage.completion_tokens], [[1, 2], CANVAS]);
  equal(text, contentOf(await completions.create({ ...quick, messages: hello })));
  const raw = await engine.diffusion.generate({ prompt: 'once', steps: 2, canvases: 1 }).result;
  same([raw.message, raw.tokens.length], [undefined, CANVAS]);
  const read = engine.diffusion.generate({ messages: hello, steps: 1, canvases: 1 });
  await collect(read);
  await rejects(collect(read), /being read already|collect/);
  await read.result;
});

test('every setting of the sampler is obeyed', async () => {
  const stepsOf = (more) => collect(engine.diffusion.generate({
    messages: hello, seed: 5, canvases: 1, steps: 6, ...more,
  }));
  const accepted = (s) => s.accepted.filter(Boolean).length;
  const all = await stepsOf({ entropy_bound: 1e6 });
  ok(all.every((s) => accepted(s) === CANVAS), 'a bound that is never reached accepts all');
  same(all[0].noisy.length, CANVAS);
  equal(accepted((await stepsOf({ entropy_bound: 0 }))[0]), 1);
  const [first] = await stepsOf({ stability: 0, confidence: 1e6 });
  same([first.step, first.stopped], [1, 'stable'], 'sure enough, and nothing to wait for');
  ok((await stepsOf({ stability: 2, confidence: 1e6 })).length >= 3, 'k is k + 1 canvases');
  const flat = await stepsOf({ t_min: 2, t_max: 2, steps: 2 });
  same(flat.map((s) => s.temperature), [2, 2]);
  ok(flat[0].mean_entropy > (await stepsOf({ t_min: 0.2, t_max: 0.2, steps: 2 }))[0].mean_entropy);
  equal((await stepsOf({ steps: 2, canvases: 3 })).length, 6);
});

test('fixed positions of a given canvas stay at every step, holes are filled', async () => {
  const ids = [...(await engine.tokenize('some words that stay', { bos: false }))];
  const canvas = [-1, ...ids, -1, -1], fixed = canvas.map((id) => id >= 0);
  const run =
    engine.diffusion.generate({ messages: hello, canvas, fixed, steps: 3, canvases: 1, seed: 2 });
  for (const { tokens, noisy, accepted, entropy } of await collect(run)) {
    same([tokens.slice(1, 1 + ids.length), noisy.slice(1, 1 + ids.length)], [ids, ids]);
    fixed.forEach((stays, i) => stays && ok(accepted[i] && entropy[i] === 0, `position ${i}`));
    ok(entropy[0] > 0 && entropy[ids.length + 1] > 0);
  }
  const pieces = engine.diffusion.generate({
    messages: hello, canvas: ['some words ', { hole: 3, draft: 'now' }, ' stay', { end: true }],
    steps: 2, seed: 2,
  });
  const { text, finish_reason: reason } = await pieces.result;
  ok(text.startsWith('some words ') && text.endsWith(' stay'), text);
  equal(reason, 'stop');
});

// ---- edits ----

test('an edit writes the selection again and leaves the rest', async () => {
  const text = 'The house is very small, I think.', at = text.indexOf('very');
  const steps = [];
  const { result } = engine.diffusion.edit({
    messages: hello, text, selection: [at, at + 'very small'.length], steps: 3, seed: 4,
    onStep: (s) => steps.push(s),
  });
  const edited = await result;
  ok(edited.text.startsWith('The house is') && edited.text.endsWith(', I think.'), edited.text);
  const [from, to] = edited.selection;
  equal(edited.text.slice(from, to), edited.replacement);
  equal(steps.at(-1).replacement, edited.replacement);
  const [first, count] = steps[0].hole;
  same(edited.tokens, steps.at(-1).tokens.slice(first, first + count));
  for (const s of steps)
    s.accepted.forEach((yes, i) => i < first && ok(yes && s.entropy[i] === 0, `position ${i}`));
  same([edited.steps, edited.usage.diffusion.canvases], [3, 1]);
});

test('an edit may be shorter or longer, at the beginning, the end, or of all', async () => {
  const text = 'one two three four five';
  for (const [selection, length] of [
    [[0, 3], 1], [[0, 3], 6], [[19, 23], 2], [[0, 23], 5], [[8, 8], 4], [[7, 13], undefined],
  ]) {
    const edited = await engine.diffusion.edit({
      messages: hello, text, selection, ...(length && { length }), steps: 2, seed: 6,
    }).result;
    const [from, to] = selection;
    ok(edited.text.startsWith(text.slice(0, from).trimEnd()), `${selection}: ${edited.text}`);
    ok(edited.text.endsWith(text.slice(to)), `${selection}: ${edited.text}`);
    if (length) equal(edited.tokens.length, length);
  }
});

test('an edit of a text longer than a canvas sees what is around it', async () => {
  const text = Array.from({ length: 60 }, (_, i) => `word${i}`).join(' ');
  const n = (await engine.tokenize(text, { bos: false })).length;
  ok(n > 3 * CANVAS, 'several canvases long');
  const at = text.indexOf('word30'), steps = [];
  const edited = await engine.diffusion.edit({
    messages: hello, text, selection: [at, at + 6], steps: 2, seed: 1,
    onStep: (s) => steps.push(s),
  }).result;
  ok(edited.text.startsWith(text.slice(0, at - 1)) && edited.text.endsWith(text.slice(at + 6)));
  const [first, count] = steps[0].hole;
  ok(first > 0 && first + count < CANVAS, 'there is text on both sides of the hole');
});

test('an instruction is read with the old answer; an edit that cannot be says why', async () => {
  const edit = { messages: hello, text: 'It is blue.', selection: [6, 10], steps: 1, seed: 1 };
  const plain = await engine.diffusion.edit(edit).result;
  const told = await engine.diffusion.edit({ ...edit, instruction: 'another colour' }).result;
  const prompt = (r) => r.usage.prompt_tokens;
  equal(
    prompt(told),
    await engine.countTokens({ messages: [
      ...hello, { role: 'assistant', content: edit.text },
      user('Write your last answer again. Change only the words “blue” in it: another colour'),
    ] }),
  );
  ok(prompt(told) > prompt(plain));
  for (const [more, param] of [
    [{ selection: [3, 2] }, 'selection'], [{ selection: [0, 99] }, 'selection'],
    [{ selection: [2, 2] }, 'length'], [{ length: 0 }, 'length'], [{ text: 5 }, 'text'],
    [{ text: '\u{1f600}', selection: [1, 2] }, 'selection'], [{ messages: [] }, 'messages'],
    [{ steps: 0 }, 'steps'],
  ])
    await rejects(
      async () => engine.diffusion.edit({ ...edit, ...more }).result, refusal('argument', param),
      JSON.stringify(more),
    );
  await rejects(
    engine.diffusion.edit({ ...edit, length: CANVAS + 1 }).result,
    refusal('argument', 'selection'),
  );
});

// ---- cancelling, sharing, memory ----

test('a signal stops within a canvas, leaving the loop too; the next answer is whole', async () => {
  const whole = contentOf(await completions.create({ ...quick, messages: hello }));
  const stop = new AbortController();
  let seen = 0;
  const { result } = engine.diffusion.generate({
    messages: hello, signal: stop.signal, onStep: () => ++seen === 2 && stop.abort(),
  });
  await rejects(result, isAbort);
  equal(seen, 2);
  const run = engine.diffusion.generate({ messages: hello });
  for await (const step of run) if (step.step === 2) break;
  await rejects(run.result, isAbort);
  const late = new AbortController();
  setTimeout(() => late.abort(), 50);
  const lasting = { messages: hello, diffusion: { steps: 1000, stability: 1000 } };
  await rejects(completions.create({ ...lasting, signal: late.signal }), isAbort);
  equal(contentOf(await completions.create({ ...quick, messages: hello })), whole);
});

test('what was read is not read again, and the answer is part of it', async () => {
  const session = engine.session();
  const first = await session.chat.completions.create({ ...quick, messages: hello });
  const messages =
    [...hello, { role: 'assistant', content: contentOf(first) }, user('and then?')];
  const { usage } = await session.chat.completions.create({ ...quick, messages });
  ok(usage.prompt_tokens_details.cached_tokens >= first.usage.prompt_tokens, 'the question');
  const held = await session.tokens();
  equal(held.length, usage.prompt_tokens + usage.completion_tokens, 'the last canvas is read too');
  await session.close();
});

test('a session goes on from its tokens, its snapshot, or a fork of it', async () => {
  const session = engine.session();
  await session.append('once upon a time');
  const next = (s) => s.completions.create({ ...quick }).then((r) => r.choices[0].text);
  const snapshot = await session.save(), fork = await session.fork();
  const text = await next(session);
  equal(await next(fork), text);
  const other = engine.session();
  await other.restore(snapshot);
  equal(await next(other), text);
  ok(await next(session) !== text, 'it has gone on');
  for (const s of [session, fork, other]) await s.close();
});

test('several answers at once take turns, and each is as if it were alone', async () => {
  const steps = 40; // more than one slice of time
  const ask = (seed) => ({
    ...quick, messages: [user(`number ${seed}`)], seed, session: `number ${seed}`,
    diffusion: { ...quick.diffusion, steps },
  });
  const alone = [];
  for (const seed of [1, 2, 3]) alone.push(contentOf(await completions.create(ask(seed))));
  const order = [];
  const together = await Promise.all([1, 2, 3].map(async (seed) => {
    const { diffusion: _, ...rest } = ask(seed);
    const run = engine.diffusion.generate({
      ...rest, steps, onStep: (s) => order.push(`${seed}.${s.step}`),
    });
    return (await run.result).text;
  }));
  same(together, alone);
  const answers = order.map((o) => o[0]);
  ok(answers.lastIndexOf('1') > answers.indexOf('2'), `one waits for the other: ${order}`);
});

test('an adapter changes what is denoised, and is off where a request says so', async () => {
  const core = await Core.load(await loadWasm()), source = await fileSource(MODEL);
  const lora =
    loraFile(linearsOf(core, source), 4, { architecture: 'diffusion-gemma' });
  source.close();
  const ask = async (more) =>
    contentOf(await completions.create({ ...quick, messages: hello, ...more }));
  const before = await ask();
  await engine.adapters.add(lora, { name: 'random' });
  const worn = await ask();
  ok(worn !== before);
  equal(await ask({ adapters: [] }), before);
  await engine.adapters.remove('random');
  equal(await ask(), before);
});

test('a full context ends the answer within a canvas; a longer prompt is an error', async () => {
  const small = await Engine.load(MODEL, { backend: 'cpu', context: 100 });
  try {
    const full = await small.chat.completions.create({ ...quick, messages: hello, max_tokens: -1 });
    equal(full.choices[0].finish_reason, 'length');
    const { prompt_tokens: prompt, completion_tokens: made } = full.usage;
    equal(prompt + made, 100, 'of the last canvas what fits');
    await rejects(
      small.chat.completions.create({ ...quick, messages: [user('word '.repeat(200))] }),
      (e) => e.kind === 'limit',
    );
    const cut = await small.chat.completions.create({
      ...quick, truncation: 'auto',
      messages: [
        user('word '.repeat(30)), { role: 'assistant', content: 'word '.repeat(30) }, ...hello,
      ],
    });
    ok(cut.usage.completion_tokens > 20, 'there is room for an answer after what was kept');
    const session = await languageModel(small).create();
    equal(typeof await session.prompt('hello'), 'string', 'LanguageModel speaks with it');
    session.destroy();
  } finally {
    await small.dispose();
  }
});

test('a benchmark writes a canvas in so many steps', async () => {
  const r = await engine.bench({ prompt: 8, repetitions: 1, steps: 3 });
  same([r.steps, r.predicted.tokens, r.awaited], [3, CANVAS, null]);
  ok(r.predicted.mean > 0 && r.prompt.mean > 0 && r.token_ms.p50 > 0);
});

test('nothing is left of a canvas that was left, or of an answer', async () => {
  const core = await Core.load(await loadWasm());
  const model = await CpuModel.open(core, [await fileSource(MODEL)], { context: 128 });
  const conversation = await model.conversation(), live = () => core.exports.bz_wasm_live();
  const round = async (left) => {
    await conversation.set(model.tokenize('hello'));
    for await (const s of conversation.denoise({ diffusion: { steps: 3, canvases: 1 } }))
      if (left && s.step === 2) break;
  };
  await round(false);
  const before = live();
  await round(true);
  await round(false);
  equal(live(), before);
  conversation.close();
  model.close();
});

// ---- the trained one ----

test('tiny-diffusion knows a fact, and its canvas becomes stable', async () => {
  const tiny = await Engine.load(trainedDiffusion, { backend: 'cpu' });
  try {
    const run = tiny.diffusion.generate({
      messages: [user('What is the capital of France?')], seed: 1,
    });
    const steps = await collect(run), { text, canvases } = await run.result;
    ok(text.includes('Paris'), text);
    ok(canvases.length === 1 && canvases[0].stopped === 'stable', JSON.stringify(canvases));
    ok(steps.at(-1).mean_entropy < steps[0].mean_entropy);
    const answer = 'The capital of France is Paris.', at = answer.indexOf('France');
    const edited = await tiny.diffusion.edit({
      messages: [user('What is the capital of Spain?')], text: answer,
      selection: [at, answer.length - 1], seed: 1,
      length: (await tiny.tokenize(' Spain is Madrid', { bos: false })).length,
    }).result;
    ok(edited.text.includes('Madrid'), edited.text);
  } finally {
    await tiny.dispose();
  }
});

const only = process.argv.indexOf('--only');
await done(only > 0 ? process.argv[only + 1] : undefined);
await engine.dispose();
