// pass.mjs - what tokens cost the device, and what each kind of kernel costs where it is: with its
// dispatches left out.
//
//   node bench/pass.mjs MODEL.gguf [--adapter FILE] [--depth 8] [--tokens 48]
//                       [--orders same,sorted,few] [--no-kinds] [--rules] [--device-profile NAME]
//
// A token is one pass; its time is the device's own (timestamp queries), medians of tokens. Results
// are wrong while dispatches are left out or exchanged, which no time depends on. A kernel alone,
// again and again, is faster than among others: here it meets memory and instructions that others
// have pushed out. --orders are further passes: "same" as recorded, "sorted" all dispatches of a
// pipeline together, "few" every layer with the memory of the first four of its kind, so that
// little is read that was not read a moment ago (the rest of the difference is translating
// addresses). --rules says what each rule of fusion (src/gpu/rules.def) saves: a token without it.
// Savings do not add up.
import { readFileSync } from 'node:fs';
import { parseArgs } from 'node:util';
import { GpuModel, fileSource, loadWasm, openDevice } from '../web/engine/dist/core.js';

const { values: o, positionals: [file] } = parseArgs({
  allowPositionals: true,
  options: {
    adapter: { type: 'string' }, depth: { type: 'string', default: '8' },
    tokens: { type: 'string', default: '48' }, orders: { type: 'string', default: '' },
    'no-kinds': { type: 'boolean', default: false }, rules: { type: 'boolean', default: false },
    'device-profile': { type: 'string' },
  },
});
if (!file) {
  console.error(
    'usage: node bench/pass.mjs MODEL.gguf [--adapter FILE] [--depth N] [--tokens N] [--orders '
      + 'same,sorted,few] [--no-kinds] [--rules] [--device-profile NAME]',
  );
  process.exit(2);
}
const QUERY = 0x200, COPY_SRC = 4, COPY_DST = 8, MAP_READ = 1; // Node has no names for them
// a pass of fewer dispatches is none of a token
const WARM = 8, FEW = 4, LEAST = 100, QUERIES = 4096;
const tokens = +o.tokens, depth = +o.depth;
const model = await GpuModel.open(
  await loadWasm(),
  () => openDevice(o['device-profile'] ? { profile: o['device-profile'] } : {}),
  [await fileSource(file)],
  { selfTest: false, table: 'gpu' },
);
if (o.adapter) await model.addAdapter(await fileSource(o.adapter));
const { engine } = model, { device } = engine.gpu;
const queries = device.createQuerySet({ type: 'timestamp', count: QUERIES });
const times = device.createBuffer({ size: 8 * QUERIES, usage: QUERY | COPY_SRC });
const back = device.createBuffer({ size: 8 * QUERIES, usage: MAP_READ | COPY_DST });

/** Another order of a pass's dispatches: [pipeline, group, grid] each. */
const orders = {
  same: (list) => list,
  sorted(list) {
    const first = new Map();
    for (const [pipeline] of list) if (!first.has(pipeline)) first.set(pipeline, first.size);
    return [...list].sort((a, b) => first.get(a[0]) - first.get(b[0]));
  },
  few(list) {
    const seen = new Map();
    return list.map(([pipeline, ...rest]) => {
      const some = seen.get(pipeline) ?? { n: 0, list: [] };
      seen.set(pipeline, some);
      if (some.n < FEW) some.list.push(rest);
      return [pipeline, ...some.list[some.n++ % FEW]];
    });
  },
};

let used = -1, order = orders.same, leaves = () => false, counts;
const newEncoder = device.createCommandEncoder.bind(device);
device.createCommandEncoder = () => {
  const encoder = newEncoder(), begin = encoder.beginComputePass.bind(encoder);
  encoder.beginComputePass = () => {
    const at = used, list = [];
    if (at >= 0 && at + 2 <= QUERIES) used += 2;
    const pass = begin(
      at >= 0 && used > at
        ? {
          timestampWrites: {
            querySet: queries, beginningOfPassWriteIndex: at, endOfPassWriteIndex: at + 1,
          },
        }
        : {},
    );
    const [setPipeline, setBindGroup, dispatch, end] = [
      'setPipeline', 'setBindGroup', 'dispatchWorkgroups', 'end',
    ].map((name) => pass[name].bind(pass));
    let pipeline, group;
    pass.setPipeline = (p) => void (pipeline = p);
    pass.setBindGroup = (_, g) => void (group = g);
    pass.dispatchWorkgroups = (...grid) => void list.push([pipeline, group, grid]);
    pass.end = () => {
      let last;
      for (const [p, g, grid] of list.length < LEAST ? list : order(list)) {
        counts?.set(p.label, (counts.get(p.label) ?? 0) + 1);
        if (leaves(p.label)) continue;
        if (p !== last) setPipeline((last = p));
        setBindGroup(0, g);
        dispatch(...grid);
      }
      end();
    };
    return pass;
  };
  return encoder;
};

const ids = Int32Array.from({ length: depth }, (_, k) => 5 + (k % 50));

async function begin() {
  const fresh = engine.session(Math.max(1024, depth + tokens + 64), 512);
  await fresh.read(ids);
  return fresh;
}

let session = await begin();
const median = (list) => list.sort((a, b) => a - b)[list.length >> 1] ?? 0;

/** Medians, in microseconds: the passes of tokens, and how long the device had nothing to do
 *  before each. */
async function draw() {
  session.truncate(depth);
  used = 0;
  for await (const _ of session.generate({ temperature: 0, ignore_end: true, n_max: tokens })) ;
  const n = used, encoder = newEncoder(), passes = [], idle = [];
  used = -1;
  encoder.resolveQuerySet(queries, 0, n, times, 0);
  encoder.copyBufferToBuffer(times, 0, back, 0, 8 * n);
  device.queue.submit([encoder.finish()]);
  await back.mapAsync(MAP_READ);
  const t = new BigInt64Array(back.getMappedRange().slice(0));
  back.unmap();
  for (let i = 2 * WARM; i < n; i += 2) {
    passes.push(Number(t[i + 1] - t[i]) / 1000);
    idle.push(Number(t[i] - t[i - 1]) / 1000);
  }
  return { pass: median(passes), idle: median(idle) };
}

await draw();
counts = new Map();
const runs = [await draw()];
const kinds =
  [...counts].map(([label, n]) => ({ label, n: Math.round(n / tokens) })).filter(({ n }) => n >= 5);
counts = undefined;
runs.push(await draw(), await draw());
const us = (n) => n.toFixed(0), usual = Math.min(...runs.map(({ pass }) => pass));
const told = runs.map(({ pass, idle }) => `${us(pass)} us a token (idle before it: ${us(idle)})`);
console.log(
  `${file}${o.adapter ? `, ${o.adapter}` : ''}, depth ${depth}: ${told.join(', ')}`,
);
for (const name of o.orders.split(',').filter(Boolean)) {
  if (!orders[name])
    throw new Error(`no order ${name}; there are ${Object.keys(orders).join(', ')}`);
  order = orders[name];
  console.log(`${name}: ${us((await draw()).pass)} us`);
}
order = orders.same;
for (const { label, n } of o['no-kinds'] ? [] : kinds) {
  leaves = (other) => other === label;
  const saved = usual - (await draw()).pass;
  console.log(
    `${label.padEnd(44)} ${String(n).padStart(3)} a token, ${us(saved).padStart(5)} us, `
      + `${(saved / n).toFixed(1)} each`,
  );
}
session.close();
if (o.rules) {
  const names = [...readFileSync(
    new URL('../src/gpu/rules.def', import.meta.url), 'utf8',
  ).matchAll(/^RULE\(\w+, (\w+),/gm)].map((m) => m[1]);
  leaves = () => false;
  for (const [name, mask] of [...names.map((rule, i) => [rule, 2 << i]), ['all', -1]]) {
    engine.core.exports.bz_wasm_gpu_without(engine.ptr, mask);
    session = await begin();
    await draw();
    console.log(
      `without ${name.padEnd(22)} ${us(Math.min((await draw()).pass, (await draw()).pass))} us`,
    );
    session.close();
  }
}
engine.close();
process.exit(0);
