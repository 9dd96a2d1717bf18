// api_fixture - what the tests of the public Engine share: the trained tiny model, loaded on the
// backend of the command line, and short words for requests.
//
// What is above the backends is tested on the CPU; the GPU, which a software adapter makes slow,
// shows what differs by backend.
import './software_adapter.mjs'; // before any device
import fs from 'node:fs';

import { Engine } from '../../web/engine/dist/index.js';
import { done, test } from './check.mjs';

export const backend = process.argv[2] ?? 'cpu';
export const MODEL = 'models/tiny.q8_0.gguf';
export const phases = [];
export const engine = await Engine.load(MODEL, {
  backend, onProgress: ({ phase }) => phases.at(-1) !== phase && phases.push(phase),
});
export const golden = JSON.parse(fs.readFileSync('models/tiny.golden.json', 'utf8')).q8_0;

export const user = (content) => ({ role: 'user', content });
export const assistant = (content) => ({ role: 'assistant', content });
export const france = [user('What is the capital of France?')];
export const story = [user('Tell me a story about a fox.')];
export const greedy = { temperature: 0 };
export const create = (request, options) => engine.chat.completions.create(request, options);
export const contentOf = (answer) => answer.choices[0].message.content;
export const ask = async (messages, more = {}) =>
  contentOf(await create({ messages, ...greedy, ...more }));
export async function collect(stream) {
  const all = [];
  for await (const item of stream) all.push(item);
  return all;
}
export const textOf = (chunks) => chunks.map((c) => c.choices[0]?.delta.content ?? '').join('');
export const declare = (name, description, properties, required = Object.keys(properties)) => ({
  type: 'function',
  function: { name, description, parameters: { type: 'object', properties, required } },
});
export const tools = [
  declare('get_weather', 'Current weather of a city', {
    city: { type: 'string', description: 'Name of the city' },
  }),
  declare('calculator', 'Does arithmetic', { expression: { type: 'string' } }),
  declare('send_message', 'Sends a text message to a person', {
    to: { type: 'string' }, text: { type: 'string' },
  }),
];
/** A test of what no backend changes. */
export const above = backend === 'cpu' ? test : () => {};
export const isAbort = (e) => e instanceof DOMException && e.name === 'AbortError';

/** PEFT's weights of a random adapter of rank 2 on the outputs of the attention of all layers. */
export function randomAdapter() {
  let seed = 1;
  const random = (n) => Float32Array.from(
    { length: n }, () => ((seed = (seed * 48271) % 2147483647) / 2147483647 - 0.5) * 2,
  );
  const header = {}, parts = [];
  let at = 0;
  const put = (name, shape) => {
    const data = new Uint8Array(random(shape[0] * shape[1]).buffer);
    header[`base_model.model.model.layers.${name}.weight`] = {
      dtype: 'F32', shape, data_offsets: [at, (at += data.length)],
    };
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

/** Its adapter_config.json. */
export const config = { peft_type: 'LORA', r: 2, lora_alpha: 2, target_modules: ['o_proj'] };

/** Runs the tests; a second word on the command line picks some. */
export async function finish() {
  await done(process.argv[3]);
  await engine.dispose();
}
