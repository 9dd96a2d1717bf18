// gpu.mjs - the GPU engine's speed under Node: load, pp512, tg128 queued and awaited, dispatches, agreement.
//
//   node bench/gpu.mjs MODEL.gguf [--pp 512] [--tg 128] [--ahead 4] [--plain] [--check N] [--dawn TOGGLES]
//
// --check N compares the best token of N positions with build/bezel on the same file.
import { execFileSync } from 'node:child_process';
import { parseArgs } from 'node:util';
import { Core, Gpu, GpuEngine, fileSource, loadWasm, openDevice } from '../web/engine/dist/core.js';

const { values: o, positionals: [model] } = parseArgs({
  allowPositionals: true,
  options: { pp: { type: 'string', default: '512' }, tg: { type: 'string', default: '128' }, ahead: { type: 'string', default: '4' }, repeats: { type: 'string', default: '5' },
    plain: { type: 'boolean', default: false }, check: { type: 'string', default: '0' }, dawn: { type: 'string' } },
});
const device = await openDevice(o.dawn ? { dawn: o.dawn.split(',') } : {});
const gpu = new Gpu(device);
const core = await Core.load(await loadWasm(), gpu);
const start = performance.now();
const engine = await GpuEngine.open(core, [await fileSource(model)], o.plain ? { tier: 'plain' } : {});
console.log(`${model} on ${device.name}${o.plain ? ' (plain tier)' : ''}: loaded in ${((performance.now() - start) / 1000).toFixed(2)} s, ${(gpu.bytes / 2 ** 30).toFixed(2)} GiB on the device, wasm heap ${(core.memory.buffer.byteLength / 2 ** 20).toFixed(0)} MiB`);
const n = engine.info.n_vocab;
const ids = Int32Array.from({ length: 4096 }, (_, i) => (i === 0 ? 2 : 5 + (i * 7919) % (n - 5)));
const median = (list) => list.sort((a, b) => a - b)[list.length >> 1];

const pp = +o.pp, tg = +o.tg, times = [];
const session = engine.session(Math.min(engine.info.n_context, Math.max(1024, pp + 16, tg + 64)), 512);
for (let i = 0; i <= +o.repeats; i++) {
  session.truncate(0);
  const t = performance.now();
  await session.feed(ids.subarray(0, pp - 1), 0);
  await session.feed(ids.subarray(pp - 1, pp), 1);
  if (i) times.push(performance.now() - t);
}
console.log(`pp${pp}: ${(pp / median(times) * 1000).toFixed(1)} tok/s (median of ${times.length}, spread ${((times.at(-1) / times[0] - 1) * 100).toFixed(1)}%)`);

for (const ahead of [...new Set([+o.ahead, 1])]) {
  const rates = [];
  for (let i = 0; i <= +o.repeats; i++) {
    session.truncate(0);
    await session.read(ids.subarray(0, 16));
    let k = 0, t = 0;
    for await (const _ of session.generate({ temperature: 0, ignore_end: true, ahead })) {
      if (k === 8) t = performance.now();
      if (++k === tg + 9) break;
    }
    if (i) rates.push(tg / (performance.now() - t) * 1000);
  }
  const rate = median(rates);
  console.log(`tg${tg}, ${ahead} ahead: ${rate.toFixed(1)} tok/s (spread ${((rates.at(-1) / rates[0] - 1) * 100).toFixed(1)}%), ${(rate * engine.info.bytes_a_token / 1e12).toFixed(3)} TB/s of weights`);
}

if (+o.check) {
  const some = ids.subarray(0, +o.check);
  const lines = execFileSync('build/bezel', ['logits', model, '--ids', some.join(','), '--top', '1'], { encoding: 'utf8', maxBuffer: 1 << 26 }).trim().split('\n').map((l) => JSON.parse(l).top[0]);
  session.truncate(0);
  let same = 0, worst = 0;
  await session.feed(some, some.length, (position, logits) => {
    const [want, value] = lines[position];
    let best = 0;
    for (let i = 1; i < n; i++) if (logits[i] > logits[best]) best = i;
    same += best === want;
    worst = Math.max(worst, Math.abs(logits[want] - value));
  });
  console.log(`best token as on the CPU at ${same} of ${some.length} positions; its logit off by at most ${worst.toExponential(2)}`);
}
session.close();
engine.close();
gpu.close();
process.exit(0);
