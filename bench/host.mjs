// host.mjs - what tokens cost the host: the C core and the calls of WebGPU, on a device that
// computes nothing.
//
//   node bench/host.mjs MODEL.gguf [--tokens 400] [--layers N] [--rank R]
//
// Dawn's null backend validates and encodes as always and executes nothing, so what is timed is the
// host alone, but for what a real backend and its driver do in submit. BEZEL_DAWN lists toggles of
// Dawn's to turn on. With --layers the decode program is replayed often enough to have the
// dispatches of a model of N layers, and what a prompt takes is counted for as many. --rank: with
// an adapter of that rank on every linear.
import { createRequire } from 'node:module';
import { parseArgs } from 'node:util';

const { create } = createRequire(new URL('../web/engine/package.json', import.meta.url))('webgpu');
const toggles = process.env.BEZEL_DAWN ? [`enable-dawn-features=${process.env.BEZEL_DAWN}`] : [];
Object.defineProperty(globalThis, 'navigator', {
  value: { gpu: create(['backend=null', ...toggles]) }, configurable: true,
});
const { GpuModel, fileSource, loadWasm, memorySource, openDevice } =
  await import('../web/engine/dist/core.js');
const { linearsOf, loraFile } = await import('../tests/web/lora_file.mjs');

const { values: o, positionals: [file] } = parseArgs({
  allowPositionals: true,
  options: {
    tokens: { type: 'string', default: '400' }, layers: { type: 'string' },
    rank: { type: 'string' },
  },
});
if (!file) {
  console.error('usage: node bench/host.mjs MODEL.gguf [--tokens N] [--layers N] [--rank R]');
  process.exit(2);
}
const PROMPT = 512, PROMPTS = 30, NEW = 9, WARM = 50;
const opened = await openDevice();
const largeDevice = async () => ({ ...opened, names: { ...opened.names, profile: 'nvidia' } });
// nothing is computed here
const model = await GpuModel.open(await loadWasm(), largeDevice, [await fileSource(file)], {
  selfTest: false, table: 'gpu',
});
const { engine } = model, { core, gpu } = engine;
if (o.rank)
  await model.addAdapter(
    memorySource('adapter', loraFile(linearsOf(core, await fileSource(file)), +o.rank)),
  );
const times = o.layers ? Math.round(+o.layers / engine.info.n_layer) : 1;
const tokens = +o.tokens;
const session =
  engine.session(Math.min(engine.info.n_context, Math.max(PROMPT, tokens) + 64), PROMPT);
/** Medians of milliseconds in microseconds. */
const median = (list) => list.sort((a, b) => a - b)[list.length >> 1] * 1000;
const us = (n) => n.toFixed(0);
console.log(
  `${file}${o.rank ? `, an adapter of rank ${o.rank}` : ''}`
    + `${times > 1 ? `, its ${engine.info.n_layer} layers ${times} times` : ''}`,
);

// ---- prompts ----
// Recorded, encoded and submitted; of two lengths in turn, as they come in real life.
const { queue } = gpu.device, submit = queue.submit.bind(queue), run = gpu.run.bind(gpu);
let dispatches = 0, start = 0, began = 0;
gpu.run = (items) => {
  dispatches = gpu.dispatches(items[0]);
  return run(items);
};
queue.submit = (list) => {
  submit(list);
  began ||= performance.now() - start;
};
async function prompts(n, open) {
  const begun = [], queued = [];
  for (let i = 0; i < n; i++) {
    const s = open();
    s.truncate(0);
    const ids = Int32Array.from({ length: PROMPT - (i & 1) }, (_, k) => 5 + (k % 50));
    start = performance.now(), began = 0;
    await s.read(ids);
    queued.push(times * (performance.now() - start));
    begun.push(began);
  }
  return `${us(median(queued))} us until it is queued, ${us(median(begun))} us until `
    + 'the device can begin';
}
await prompts(PROMPTS, () => session); // the JIT compiles
const again = await prompts(PROMPTS, () => session), rest = [];
const first = await prompts(NEW, () => (rest.push(engine.session(PROMPT, PROMPT)), rest.at(-1)));
console.log(`a prompt of ${PROMPT} tokens, ${times * dispatches} dispatches: ${again}`);
console.log(`the first one of a conversation: ${first}`);
for (const s of rest) s.close();
queue.submit = submit;

// ---- tokens ----
async function draw(name, ahead) {
  const took = { submit: [], token: [] };
  gpu.run = (items) => {
    const [decode, ...rest] = items, start = performance.now();
    const done = run(
      typeof decode === 'number' && rest.length === 2
        ? [...Array(times).fill(decode), ...rest]
        : items,
    );
    took.submit.push(performance.now() - start);
    if (rest.length === 2) dispatches = times * gpu.dispatches(decode) + gpu.dispatches(rest[0]);
    // some token: nobody has drawn one
    return done.then(() => items.at(-1).into?.set([5, 0, 0, 0]));
  };
  session.truncate(0);
  await session.read(Int32Array.of(2, 5, 6, 7));
  let last = performance.now(), n = 0;
  const cpu = process.cpuUsage();
  for await (const _ of session.generate({
    temperature: 0, ignore_end: true, n_max: tokens, ...(ahead && { ahead }),
  })) {
    const now = performance.now();
    if (++n > WARM) took.token.push(now - last);
    last = now;
  }
  const used = process.cpuUsage(cpu);
  took.submit.splice(0, WARM);
  const submit = median(took.submit);
  console.log(
    `a token ${name}, ${dispatches} dispatches: ${us(median(took.token))} us of wall time, of `
      + `which encode and submit ${us(submit)} us (${(submit / dispatches).toFixed(2)} us a `
      + `dispatch); ${us((used.user + used.system) / n)} us of all threads' CPU time`,
  );
}
await draw('queued ahead');
await draw('awaited', 1);
session.close();
engine.close();
gpu.close();
process.exit(0);
