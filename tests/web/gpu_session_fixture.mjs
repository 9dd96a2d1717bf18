// gpu_session_fixture - what the tests of conversations on the GPU share: golden models on both
// backends, and whole texts.
import './software_adapter.mjs'; // before any device
import { execFileSync } from 'node:child_process';
import fs from 'node:fs';
import os from 'node:os';
import path from 'node:path';

import { fileSource, openModel } from '../../web/engine/dist/core.js';
import { done, equal, ok, test } from './check.mjs';

export const native = process.argv[2] ?? 'build/bezel';
// of this run: Node's and Deno's may meet
export const temp = fs.mkdtempSync(path.join(os.tmpdir(), 'bezel-session-'));
process.on('exit', () => fs.rmSync(temp, { recursive: true, force: true }));

export const prompt = (n, first = 0) =>
  Int32Array.from({ length: n }, (_, i) => (i === 0 ? 2 : 5 + ((i + first) * 7919) % 290));
export const greedy = { temperature: 0, ignore_end: true };

/** A golden model's weights in another format. */
export function requantised(name, type) {
  const out = `${temp}/${name}.${type}.gguf`;
  if (!fs.existsSync(out))
    execFileSync(native, ['quantize', `tests/golden/model_${name}.gguf`, out, type]);
  return out;
}

export const open = async (backend, file, more = {}) => openModel({
  backend, sources: [typeof file === 'string' ? await fileSource(file) : file], ...more,
});

/** The same on the CPU and on the GPU; both are closed. */
export async function onBoth(file, work, more = {}) {
  const results = [];
  for (const backend of ['cpu', 'gpu']) {
    const model = await open(backend, file, more);
    try {
      results.push(await work(model));
    } finally {
      model.close();
    }
  }
  return results;
}

/** All of a text: ids, text, how it stopped, and what the conversation then holds. */
export async function text(conversation, options, each) {
  const all = { ids: [], text: '', stop: '' }, pieces = conversation.generate(options);
  for (;;) {
    const next = await pieces.next();
    if (next.done) return { ...all, ...next.value, held: [...conversation.tokens] };
    all.ids.push(next.value.id);
    all.text += next.value.text;
    each?.(next.value, all.ids.length);
  }
}

/** Logits of positions by id, as the model's conversation gives them for one token more. */
export async function rowAfter(conversation, id) {
  let row;
  await conversation.logits(Int32Array.of(id), (_, r) => (row = r.slice()));
  return row;
}
export const worst = (a, b) => a.reduce((w, z, i) => Math.max(w, Math.abs(z - b[i])), 0);

export const e2b = 'tests/golden/model_e2b.gguf';
export let gpu, cpu; // one model on each, for what follows
export const pair = async (context, work) => {
  const results = [];
  for (const model of [cpu, gpu]) {
    const c = await model.conversation(context);
    results.push(await work(c, model));
    c.close();
  }
  return results;
};

export function openPair() {
  test('the models are opened', async () => {
    [gpu, cpu] = [await open('gpu', e2b), await open('cpu', e2b)];
  });
}

export function closePair() {
  test('memory is told by what it is for, and is all given back', async () => {
    const { weights, cache, scratch } = gpu.memory;
    equal(cache, 0, 'every conversation above was closed');
    ok(weights > 0 && scratch >= 0);
    const c = await gpu.conversation(128);
    ok(gpu.memory.cache > 0);
    c.close();
    const { gpu: device } = gpu.engine;
    gpu.close();
    cpu.close();
    equal(device.bytes, 0);
  });
}

/** Runs the tests; a second word on the command line picks some. */
export const finish = () => done(process.argv[3]);
