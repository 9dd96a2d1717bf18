// host.mjs - what a token costs the host: the C core and the calls of WebGPU, on a device that computes nothing.
//
//   node bench/host.mjs MODEL.gguf [--tokens 400] [--layers N]
//
// Dawn's null backend validates and encodes as always and executes nothing, so what is timed is the host alone. With
// --layers the decode program is replayed often enough to have the dispatches of a model of N layers.
import { createRequire } from 'node:module';
import { parseArgs } from 'node:util';

const { create } = createRequire(new URL('../web/engine/package.json', import.meta.url))('webgpu');
Object.defineProperty(globalThis, 'navigator', { value: { gpu: create(['backend=null']) }, configurable: true });
const { Core, Gpu, GpuEngine, fileSource, loadWasm, openDevice } = await import('../web/engine/dist/core.js');

const { values: o, positionals: [file] } = parseArgs({ allowPositionals: true, options: { tokens: { type: 'string', default: '400' }, layers: { type: 'string' } } });
if (!file) {
  console.error('usage: node bench/host.mjs MODEL.gguf [--tokens N] [--layers N]');
  process.exit(2);
}
const gpu = new Gpu(await openDevice());
const core = await Core.load(await loadWasm(), gpu);
const engine = await GpuEngine.open(core, [await fileSource(file)], { selfTest: false }); // nothing is computed here
const tokens = +o.tokens, session = engine.session(Math.min(engine.info.n_context, tokens + 64), 32);
await session.read(Int32Array.of(2, 5, 6, 7));

/** Medians of what lies between two marks, in microseconds. */
const took = { submit: [], token: [] };
const median = (list) => list.sort((a, b) => a - b)[list.length >> 1] * 1000;
const run = gpu.run.bind(gpu);
let dispatches = 0;
const times = o.layers ? Math.round(+o.layers / engine.info.n_layer) : 1;
gpu.run = (items) => {
  const [decode, ...rest] = items, start = performance.now();
  const done = run(typeof decode === 'number' && rest.length === 2 ? [...Array(times).fill(decode), ...rest] : items);
  took.submit.push(performance.now() - start);
  if (rest.length === 2) dispatches = times * gpu.dispatches(decode) + gpu.dispatches(rest[0]);
  return done.then(() => items.at(-1).into?.set([5, 0, 0, 0])); // some token: nobody has drawn one
};
let last = performance.now(), n = 0;
const cpu = process.cpuUsage();
for await (const _ of session.generate({ temperature: 0, ignore_end: true, n_max: tokens })) {
  const now = performance.now();
  if (++n > 50) took.token.push(now - last);
  last = now;
}
const used = process.cpuUsage(cpu);
took.submit.splice(0, 50);
console.log(`${file}${times > 1 ? `, its ${engine.info.n_layer} layers ${times} times` : ''}: ${dispatches} dispatches a token`);
console.log(`a token: ${median(took.token).toFixed(0)} us of wall time, of which encode and submit ${median(took.submit).toFixed(0)} us (${(median(took.submit) / dispatches).toFixed(2)} us a dispatch); ${((used.user + used.system) / n).toFixed(0)} us of all threads' CPU time`);
session.close();
engine.close();
gpu.close();
process.exit(0);
