// `bezel serve` with a diffusion model: the official openai and ollama clients as they are.
//
//   node tests/web/test_diffusion_server.mjs build/bezel [--only WORDS]
import fs from 'node:fs';

import { Ollama } from 'ollama';
import OpenAI from 'openai';

import { startServe } from '../../bench/streams.mjs';
import { done, equal, ok, rejects, same, test } from './check.mjs';
import { syntheticDiffusion } from './diffusion_model.mjs';
import { makeStore, temp } from './server_fixture.mjs';

const [native = 'build/bezel'] = process.argv.slice(2).filter((a) => !a.startsWith('--'));
const CANVAS = 48, root = `${temp}/diffusion`;
const config = {
  model_format: 'gguf', model_family: 'diffusion-gemma', model_families: ['diffusion-gemma'],
  model_type: '9.6M', file_type: 'Q4_K_M',
};
makeStore(root, { 'canvas:latest': [fs.readFileSync(syntheticDiffusion(native)), config] });
const server = await startServe(['--backend', 'cpu', '--store', root]);
const openai = new OpenAI({ baseURL: `${server.url}/v1`, apiKey: 'none', maxRetries: 0 });
const ollama = new Ollama({ host: server.url });
const messages = [{ role: 'user', content: 'hello' }];
/** What an official client sends by itself, and two steps a canvas. */
const quick = {
  model: 'canvas', messages, temperature: 0.7, top_p: 0.9, frequency_penalty: 0,
  max_tokens: CANVAS + 2, seed: 1, diffusion: { steps: 2 },
};

test('openai: the model is listed, and answers a chat, whole and streamed alike', async () => {
  const ids = [];
  for await (const m of openai.models.list()) ids.push(m.id);
  ok(ids.includes('canvas:latest'), ids.join());
  equal((await openai.models.retrieve('canvas')).id, 'canvas:latest');
  const whole = await openai.chat.completions.create(quick);
  equal(whole.choices[0].finish_reason, 'length');
  equal(whole.usage.completion_tokens, CANVAS + 2);
  same(whole.usage.diffusion, { canvases: 2, steps: 4, tokens_per_step: (CANVAS + 2) / 4 });
  let text = '', usage;
  for await (const chunk of await openai.chat.completions.create({
    ...quick, stream: true, stream_options: { include_usage: true },
  })) {
    text += chunk.choices[0]?.delta.content ?? '';
    usage = chunk.usage ?? usage;
  }
  equal(text, whole.choices[0].message.content);
  same(usage.diffusion, whole.usage.diffusion);
});

test('openai: a raw text goes on, and steps come where they are asked for', async () => {
  const { messages: _, ...rest } = quick;
  const raw = await openai.completions.create({ ...rest, prompt: 'once', max_tokens: 5 });
  same([raw.choices[0].finish_reason, raw.usage.completion_tokens], ['length', 5]);
  const steps = [];
  for await (const chunk of await openai.chat.completions.create({
    ...quick, max_tokens: CANVAS, stream: true, return_steps: true,
  }))
    if (chunk.diffusion_step) steps.push(chunk.diffusion_step);
  same(steps.map((s) => [s.step, s.stopped]), [[1, 'goes-on'], [2, 'steps']]);
  equal(steps[1].tokens.length, CANVAS);
});

test('openai: what a canvas cannot do is a 400 that names it, streamed or not', async () => {
  for (const stream of [false, true])
    await rejects(
      openai.chat.completions.create({ ...quick, logprobs: true, stream }),
      (e) => e.status === 400 && e.param === 'logprobs' && /diffusion model/.test(e.message),
    );
});

test('openai: an abort is heard within a canvas, and the next answer is whole', async () => {
  const stop = new AbortController();
  setTimeout(() => stop.abort(), 200);
  await rejects(
    openai.chat.completions.create(
      { ...quick, diffusion: { steps: 1000, stability: 1000 } }, { signal: stop.signal },
    ),
    /abort/i,
  );
  equal((await openai.chat.completions.create(quick)).usage.completion_tokens, CANVAS + 2);
});

test('ollama: the model is described, and answers in its protocol', async () => {
  ok((await ollama.list()).models.some((m) => m.name === 'canvas:latest'));
  const { details, model_info: info, capabilities } = await ollama.show({ model: 'canvas' });
  equal(details.family, 'diffusion-gemma');
  const length = 'diffusion.canvas_length';
  equal(info[length] ?? info.get?.(length), CANVAS);
  ok(capabilities.includes('completion'));
  const options = { temperature: 0, num_predict: 3, diffusion: { steps: 2 } };
  const whole = await ollama.chat({ model: 'canvas', messages, options });
  same([whole.eval_count, whole.done_reason], [3, 'length']);
  ok(whole.eval_duration > 0 && whole.prompt_eval_count > 3);
  let text = '', last;
  const pieces = await ollama.chat({ model: 'canvas', messages, options, stream: true });
  for await (const part of pieces) {
    text += part.message.content;
    last = part;
  }
  same([text, last.eval_count], [whole.message.content, 3]);
  const made = await ollama.generate({ model: 'canvas', prompt: 'hello', options });
  same([made.eval_count, made.done], [3, true]);
  await rejects(
    ollama.chat({ model: 'canvas', messages, options: { repeat_penalty: 1.3 } }),
    /diffusion model.*"repeat_penalty"/,
  );
});

test('tiny-diffusion, which ships, answers from the server by its name', async () => {
  const own = await startServe(['--backend', 'cpu']);
  const client = new OpenAI({ baseURL: `${own.url}/v1`, apiKey: 'none', maxRetries: 0 });
  const { choices: [{ message }], usage } = await client.chat.completions.create({
    model: 'tiny-diffusion',
    messages: [{ role: 'user', content: 'What is the capital of France?' }],
  });
  ok(message.content.includes('Paris'), message.content);
  equal(usage.diffusion.canvases, 1);
  await own.stop();
});

const only = process.argv.indexOf('--only');
await done(only > 0 ? process.argv[only + 1] : undefined);
await server.stop();
