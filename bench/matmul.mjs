// matmul.mjs - matrix products of prefill at the shapes of real models, in several cuts, timed with
// timestamp queries.
//
//   node bench/matmul.mjs            every cut at every shape: microseconds and TFLOPS
//   node bench/matmul.mjs --dawn-features allow_unsafe_apis,vulkan_enable_f16_on_nvidia
//                                    the same, and the cuts that use subgroup matrices
//   node bench/matmul.mjs --compile  only compile, subgroup matrices too, without a device
//   node bench/matmul.mjs --quick    small shapes, for a software adapter
//     --only WORD   cuts whose name has it, `attention`: only that
//     --shape WORD  shapes whose name has it
//     --rows N      rows of x (512)
//
// Needs `make web`; under a minute and a half on a large GPU. On a machine without one set
// VK_ICD_FILENAMES as tests/web/software_adapter.mjs does. Every cut is compared with a few entries
// computed here in doubles: `off` is the largest error over the root of the sum of the squared
// terms. A cut that does not compile says so and is left out. At the end: the fastest cut of each
// shape, and the time of attention.
import { readFileSync } from 'node:fs';
import { createRequire } from 'node:module';
import { parseArgs } from 'node:util';
import { withNames } from '../tests/web/kernel_names.mjs';
import { matrices, outer, own, ownMatrix } from './matmul_cuts.mjs';
import { Core, Gpu, loadWasm, openDevice } from '../web/engine/dist/core.js';

const { values: o } = parseArgs({ options: {
  quick: { type: 'boolean', default: false }, only: { type: 'string', default: '' },
  shape: { type: 'string', default: '' },
  rows: { type: 'string' }, 'dawn-features': { type: 'string', default: '' },
  compile: { type: 'boolean', default: false },
} });
if (o.compile) { // on Dawn's null backend, which has every feature and computes nothing
  const { create } =
    createRequire(new URL('../web/engine/package.json', import.meta.url))('webgpu');
  Object.defineProperty(globalThis, 'navigator', {
    value: { gpu: create(['backend=null', 'enable-dawn-features=allow_unsafe_apis']) },
    configurable: true,
  });
}
const toggles = o['dawn-features'].split(',').filter(Boolean);
const info = await openDevice({ dawn: toggles });
const { device } = info;
device.addEventListener('uncapturederror', (e) =>
  console.log(`  ! ${e.error.message.split('\n').slice(0, 4).join(' | ')}`));
const gpu = new Gpu(info);
const core = await Core.load(await loadWasm(), gpu);
const numbers =
  JSON.parse(readFileSync(new URL('../build/gen/kernels.json', import.meta.url), 'utf8'));
const sourceOf = (name) => withNames(core.kernel(numbers[name]).source);
const matrix =
  device.features.has('chromium-experimental-subgroup-matrix') && device.features.has('shader-f16');
console.log(
  `${info.name}: workgroup memory ${info.limits.maxWorkgroupBytes}, subgroups `
    + `${info.limits.subgroupMin}..${info.limits.subgroupMax}, `
    + `subgroup matrices ${matrix ? 'yes' : 'no'}`,
);

const nTok = +(o.rows ?? (o.quick ? 70 : 512));
const shapes = (o.quick ? [
  { name: 'small up', rows: 200, cols: 512, format: 'q4_k' },
  { name: 'small down', rows: 136, cols: 768, format: 'q6_k' },
] : [
  { name: 'E2B q', rows: 2048, cols: 1536, format: 'q4_k' },
  { name: 'E2B k', rows: 256, cols: 1536, format: 'q4_k' },
  { name: 'E2B up', rows: 6144, cols: 1536, format: 'q4_k' },
  { name: 'E2B down', rows: 1536, cols: 6144, format: 'q6_k' },
  { name: 'E2B wide up', rows: 12288, cols: 1536, format: 'q4_k' },
  { name: 'E2B wide down', rows: 1536, cols: 12288, format: 'q4_k' },
  { name: 'E4B q', rows: 2048, cols: 2560, format: 'q4_k' },
  { name: 'E4B k', rows: 512, cols: 2560, format: 'q4_k' },
  { name: 'E4B gate', rows: 256, cols: 2560, format: 'q4_k' },
  { name: 'E4B o', rows: 2560, cols: 2048, format: 'q4_k' },
  { name: 'E4B up', rows: 10240, cols: 2560, format: 'q4_k' },
  { name: 'E4B down', rows: 2560, cols: 10240, format: 'q4_k' },
  { name: 'E4B down', rows: 2560, cols: 10240, format: 'q6_k' },
  { name: '12B up', rows: 15360, cols: 3840, format: 'q4_k' },
  { name: '31B up', rows: 21504, cols: 5376, format: 'q4_k' },
  { name: '31B down', rows: 5376, cols: 21504, format: 'q6_k' },
]).filter((s) => s.name.includes(o.shape));

// ---- weights: a few random blocks over and over, in the layout of src/gpu/repack.h ----

const half = (h) => {
  const e = (h >> 10) & 31, m = h & 1023, v = e ? (1 + m / 1024) * 2 ** (e - 15) : m * 2 ** -24;
  return h & 0x8000 ? -v : v;
};
let seed = 12345;
const random = () => ((seed = (Math.imul(seed, 1664525) + 1013904223) >>> 0) / 2 ** 32);
const PATTERN = 509; // blocks; a prime, so that rows differ

function q4k(rows, cols) {
  const blocks = (rows * cols) / 256, bytes = new Uint8Array(144 * blocks);
  const some = new Uint8Array(144 * PATTERN);
  for (let i = 0; i < some.length; i++) some[i] = random() * 256;
  const view = new DataView(some.buffer);
  for (let b = 0; b < PATTERN; b++) {
    view.setUint16(144 * b, 0x1000 + Math.floor(random() * 512), true); // d about 5e-4
    view.setUint16(144 * b + 2, 0x1c00 + Math.floor(random() * 512), true); // dmin about 4e-3
  }
  for (let i = 0; i < bytes.length; i += some.length)
    bytes.set(some.subarray(0, Math.min(some.length, bytes.length - i)), i);
  const at = (i) => {
    const b = Math.floor(i / 256) % PATTERN, j = i % 256, g = j >> 5, s = 144 * b + 4;
    const v = (k) => some[s + k];
    const [sc, mn] = g < 4
      ? [v(g) & 63, v(g + 4) & 63]
      : [(v(g + 4) & 15) | ((v(g - 4) >> 6) << 4), (v(g + 4) >> 4) | ((v(g) >> 6) << 4)];
    const byte = some[144 * b + 16 + 32 * (g >> 1) + (j & 31)], q = g & 1 ? byte >> 4 : byte & 15;
    return half(view.getUint16(144 * b, true)) * sc * q
      - half(view.getUint16(144 * b + 2, true)) * mn;
  };
  return { bytes, at, scales: 0, high: 0, d: 0 };
}

function q6k(rows, cols) {
  const blocks = (rows * cols) / 256, first = 192 * blocks, second = first + 16 * blocks;
  const total = Math.ceil((second + 2 * blocks) / 16) * 16;
  const bytes = new Uint8Array(total), q = new Uint8Array(192 * PATTERN);
  const sc = new Uint8Array(16 * PATTERN), d = new Uint16Array(PATTERN);
  for (let i = 0; i < q.length; i++) q[i] = random() * 256;
  for (let i = 0; i < sc.length; i++) sc[i] = random() * 256;
  for (let i = 0; i < d.length; i++) d[i] = 0x0400 + random() * 512; // about 7e-5
  const fill = (from, to, some) => {
    for (let i = from; i < to; i += some.length)
      bytes.set(some.subarray(0, Math.min(some.length, to - i)), i);
  };
  fill(0, first, q);
  fill(first, second, sc);
  fill(second, second + 2 * blocks, new Uint8Array(d.buffer));
  const at = (i) => {
    const b = Math.floor(i / 256) % PATTERN, j = i % 256, h = j >> 7, r = j & 127, part = r >> 5;
    const l = r & 31;
    const low = q[192 * b + 64 * h + 32 * (part & 1) + l], four = part & 2 ? low >> 4 : low & 15;
    const two = (q[192 * b + 128 + 32 * h + l] >> (2 * part)) & 3;
    const s = (sc[16 * b + (j >> 4)] << 24) >> 24;
    return half(d[b]) * s * ((four | (two << 4)) - 32);
  };
  return { bytes, at, scales: first / 4, high: 0, d: second / 4 };
}

// ---- cuts ----

const cuts = [
  own(128, 128, 256), own(64, 64, 256), own(64, 32, 256), own(32, 32, 256), own(64, 64, 128),
  outer({ bm: 128, bn: 128, bk: 16, tm: 8, tn: 8, ahead: true }),
  outer({ bm: 128, bn: 128, bk: 16, tm: 16, tn: 8, ahead: true }),
  outer({ bm: 128, bn: 128, bk: 8, tm: 16, tn: 8, ahead: true }),
  outer({ bm: 128, bn: 128, bk: 16, tm: 8, tn: 16, ahead: true }),
  outer({ bm: 128, bn: 256, bk: 8, tm: 16, tn: 8, ahead: true }),
  outer({ bm: 128, bn: 64, bk: 16, tm: 8, tn: 8, ahead: true }),
  outer({ bm: 64, bn: 64, bk: 16, tm: 8, tn: 4, ahead: true }),
  outer({ bm: 64, bn: 64, bk: 32, tm: 8, tn: 8, slices: 4, ahead: true }),
  outer({ bm: 64, bn: 32, bk: 32, tm: 8, tn: 4, slices: 4, ahead: true }),
  ...(matrix || o.compile ? [
    ownMatrix(128, 256, 512, { buffers: 1 }), ownMatrix(128, 128, 256),
    ownMatrix(128, 128, 256, { buffers: 1 }), ownMatrix(128, 128, 128), ownMatrix(64, 128, 256),
    ownMatrix(64, 64, 128), ownMatrix(128, 64, 128), ownMatrix(128, 256, 256, { buffers: 1 }),
    ownMatrix(64, 128, 128),
    ownMatrix(128, 256, 512, { buffers: 1, splits: 3 }), ownMatrix(128, 128, 256, { splits: 3 }),
    ownMatrix(128, 128, 128, { splits: 3 }), ownMatrix(64, 128, 256, { splits: 4 }),
    ownMatrix(64, 64, 128, { splits: 4 }),
    ownMatrix(64, 128, 256, { splits: 8 }), ownMatrix(64, 64, 128, { splits: 8 }),
    ownMatrix(128, 128, 128, { splits: 8 }),
    matrices({ bm: 128, bn: 128, bk: 32, sr: 2, sc: 4, half: true, how: 'vec4<u32>', ahead: true }),
    matrices({ bm: 64, bn: 128, bk: 32, sr: 2, sc: 4, half: true, how: 'vec4<u32>', ahead: true }),
    matrices({ bm: 64, bn: 64, bk: 32, sr: 2, sc: 2, half: true, how: 'vec4<u32>', ahead: true }),
  ] : []),
].filter((c) => c.name.includes(o.only));

// ---- running ----

const STORAGE = 0x80, COPY_DST = 8, COPY_SRC = 4, UNIFORM = 0x40, RESOLVE = 0x200, MAP = 1;
const bufferOf = (data, usage) => {
  const b =
    device.createBuffer({ size: Math.ceil(data.byteLength / 16) * 16, usage: usage | COPY_DST });
  device.queue.writeBuffer(b, 0, data.buffer, data.byteOffset, data.byteLength);
  return b;
};
const layout = device.createBindGroupLayout({
  entries: ['uniform', ...Array(5).fill('read-only-storage'), 'storage'].map((type, binding) =>
    ({ binding, visibility: 4, buffer: { type } })),
});
const pipelineLayout = device.createPipelineLayout({ bindGroupLayouts: [layout] });

const pipelines = new Map();
async function pipelineOf(cut, format) {
  const key = `${cut.name} ${format}`;
  if (pipelines.has(key)) return pipelines.get(key);
  let made;
  device.pushErrorScope('validation');
  const module = device.createShaderModule({ label: cut.name, code: cut.source(sourceOf, format) });
  const scope = device.popErrorScope();
  const said = (await module.getCompilationInfo()).messages.filter((m) => m.type === 'error');
  await scope;
  try {
    if (!said[0] && cut.bytes > info.limits.maxWorkgroupBytes)
      throw new Error(`needs ${cut.bytes} bytes of workgroup memory`);
    made = await device.createComputePipelineAsync({
      layout: pipelineLayout,
      compute: { module, entryPoint: 'main', constants: cut.constants ?? {} },
    });
  } catch (e) {
    console.log(
      `  ${key}: does not compile: `
        + `${said[0] ? `${said[0].lineNum}: ${said[0].message}` : e.message.split('\n')[0]}`,
    );
  }
  pipelines.set(key, made);
  return made;
}

async function timed(pipeline, group, groups, n) {
  const most = device.limits.maxComputeWorkgroupsPerDimension, gx = Math.min(groups, most);
  const gy = Math.ceil(groups / most);
  const querySet = device.createQuerySet({ type: 'timestamp', count: 2 * n });
  const resolved = device.createBuffer({ size: 16 * n, usage: RESOLVE | COPY_SRC });
  const mapped = device.createBuffer({ size: 16 * n, usage: COPY_DST | MAP });
  const encoder = device.createCommandEncoder();
  for (let i = 0; i < n; i++) {
    const pass = encoder.beginComputePass({
      timestampWrites: {
        querySet, beginningOfPassWriteIndex: 2 * i, endOfPassWriteIndex: 2 * i + 1,
      },
    });
    pass.setPipeline(pipeline);
    pass.setBindGroup(0, group);
    pass.dispatchWorkgroups(gx, gy);
    pass.end();
  }
  encoder.resolveQuerySet(querySet, 0, 2 * n, resolved, 0);
  encoder.copyBufferToBuffer(resolved, 0, mapped, 0, 16 * n);
  device.queue.submit([encoder.finish()]);
  await mapped.mapAsync(1);
  const stamps = new BigUint64Array(mapped.getMappedRange().slice(0));
  const took = Array
    .from({ length: n }, (_, i) => Number(stamps[2 * i + 1] - stamps[2 * i]) / 1000)
    .sort((a, b) => a - b);
  for (const thing of [querySet, resolved, mapped]) thing.destroy();
  return took[n >> 1];
}

async function readEntries(y, at) {
  const mapped = device.createBuffer({ size: 4 * at.length, usage: COPY_DST | MAP });
  const encoder = device.createCommandEncoder();
  at.forEach((i, k) => encoder.copyBufferToBuffer(y, 4 * i, mapped, 4 * k, 4));
  device.queue.submit([encoder.finish()]);
  await mapped.mapAsync(1);
  const got = new Float32Array(mapped.getMappedRange().slice(0));
  mapped.destroy();
  return got;
}

const toHalf = (() => {
  const f = new Float32Array(1), u = new Uint32Array(f.buffer);
  return (v) => { // values here are far from the ends of the range
    f[0] = v;
    const e = (u[0] >>> 23) & 255;
    return e < 113
      ? (u[0] >>> 16) & 0x8000
      : ((u[0] >>> 16) & 0x8000) | (((u[0] & 0x7fffffff) - 0x38000000 + 0x1000) >>> 13);
  };
})();

/** As kernels/matmul/to_halves.wgsl lays them out, with a scale of 1: eight halves more a row. */
function halvesOf(x, cols) {
  const pitch = cols + 8, out = new Uint16Array((x.length / cols) * pitch);
  for (let i = 0; i < x.length; i++) out[Math.floor(i / cols) * pitch + (i % cols)] = toHalf(x[i]);
  for (let t = 0; t < x.length / cols; t++) out[t * pitch + cols + 1] = 0x3f80; // 1 as f32
  return out;
}

const table = [];
for (const shape of cuts.length ? shapes : []) {
  const w = shape.format === 'q4_k' ? q4k(shape.rows, shape.cols) : q6k(shape.rows, shape.cols);
  const x = new Float32Array(nTok * shape.cols);
  for (let i = 0; i < x.length; i++) x[i] = random() * 2 - 1;
  const params = new DataView(new ArrayBuffer(80));
  [shape.cols, shape.rows, 0, nTok, shape.cols, shape.rows, w.scales, w.high, w.d].forEach((v, i) =>
    params.setUint32(4 * i, v, true));
  params.setFloat32(60, 1, true); // scale
  const xb = bufferOf(x, STORAGE), wb = bufferOf(w.bytes, STORAGE);
  const none = device.createBuffer({ size: 16, usage: STORAGE });
  const xh = cuts.some((c) => c.half) ? bufferOf(halvesOf(x, shape.cols), STORAGE) : none;
  const y = device.createBuffer({
    size: 4 * nTok * shape.rows * Math.max(...cuts.map((c) => c.splits ?? 1)),
    usage: STORAGE | COPY_SRC | COPY_DST,
  });
  const paramsOf = new Map();
  for (const n of new Set(cuts.map((c) => c.splits ?? 1))) {
    params.setUint32(68, n, true);
    paramsOf.set(n, bufferOf(new Uint8Array(params.buffer), UNIFORM));
  }
  const groupOf = (xs, splits) => device.createBindGroup({
    layout,
    entries: [paramsOf.get(splits), xs, wb, none, none, none, y].map((buffer, binding) =>
      ({ binding, resource: { buffer } })),
  });
  const entries = [
    [0, 0], [nTok - 1, shape.rows - 1],
    ...Array.from(
      { length: 14 }, () => [Math.floor(random() * nTok), Math.floor(random() * shape.rows)],
    ),
  ];
  const want = entries.map(([t, r]) => {
    let sum = 0, size = 0;
    for (let c = 0; c < shape.cols; c++) {
      const term = w.at(r * shape.cols + c) * x[t * shape.cols + c];
      sum += term;
      size += term * term;
    }
    return [sum, Math.sqrt(size)];
  });
  console.log(`\n${shape.name}: ${shape.rows} x ${shape.cols} ${shape.format}, ${nTok} rows`);
  for (const cut of cuts) {
    const pipeline = await pipelineOf(cut, shape.format);
    if (!pipeline || o.compile) continue;
    const group = groupOf(cut.half ? xh : xb, cut.splits ?? 1);
    const encoder = device.createCommandEncoder();
    encoder.clearBuffer(y);
    device.queue.submit([encoder.finish()]);
    await timed(pipeline, group, cut.groups(shape, nTok), 1);
    const us = await timed(pipeline, group, cut.groups(shape, nTok), o.quick ? 1 : 5);
    const got = new Float64Array(entries.length);
    for (let k = 0; k < (cut.splits ?? 1); k++)
      (await readEntries(y, entries.map(([t, r]) => (k * nTok + t) * shape.rows + r)))
        .forEach((v, i) => { got[i] += v; });
    const off = Math.max(...want.map(([v, size], i) => Math.abs(got[i] - v) / size));
    const tflops = (2 * nTok * shape.rows * shape.cols) / us / 1e6;
    const wrong = !(off < (cut.matrix ? 1e-2 : 1e-4));
    console.log(
      `  ${cut.name.padEnd(44)} ${us.toFixed(0).padStart(8)} us ${tflops.toFixed(1).padStart(7)} `
        + `TFLOPS  off ${off.toExponential(1)}${wrong ? '  WRONG' : ''}`,
    );
    table.push({ shape: shape.name, cut: cut.name, us, wrong });
    if (wrong) process.exitCode = 1;
  }
  for (const b of new Set([xb, wb, xh, y, none, ...paramsOf.values()])) b.destroy();
}
const right = table.filter((r) => !r.wrong);
for (const kind of ['f32', 'matrix']) {
  const some = right.filter((r) => (kind === 'matrix') === r.cut.startsWith('matrix'));
  if (!some.length) continue;
  console.log(`\nfastest, ${kind}:`);
  for (const s of shapes) {
    const best = some.filter((r) => r.shape === s.name).sort((a, b) => a.us - b.us)[0];
    if (best) console.log(`  ${s.name.padEnd(10)} ${best.cut} (${best.us.toFixed(0)} us)`);
  }
}

// ---- attention over the rows' own prompt, as the repository has it ----
// (The op table says whether it is right.)

const heads = (o.quick ? [{ name: 'small', rows: 64, n: 4, kv: 2, dim: 64, window: 0 }] : [
  { name: 'E2B window', rows: 512, n: 8, kv: 1, dim: 256, window: 512 },
  { name: 'E2B full', rows: 512, n: 8, kv: 1, dim: 512, window: 0 },
  { name: 'E2B full', rows: 2048, n: 8, kv: 1, dim: 512, window: 0 },
  { name: 'E4B window', rows: 512, n: 8, kv: 2, dim: 256, window: 512 },
  { name: 'E4B full', rows: 512, n: 8, kv: 2, dim: 512, window: 0 },
  { name: '12B window', rows: 512, n: 16, kv: 8, dim: 256, window: 1024 },
  { name: '31B window', rows: 512, n: 32, kv: 16, dim: 256, window: 1024 },
]).filter(
  (h) => !o.compile && (!o.only || o.only.startsWith('attention')) && h.name.includes(o.shape),
).map((h) => ({ ...h, kernel: 'attention_tile' }));
for (const h of heads) {
  const source = sourceOf(h.kernel);
  const pipeline = await device.createComputePipelineAsync({
    layout: 'auto',
    compute: {
      module: device.createShaderModule({ code: source }),
      entryPoint: 'main',
      constants: { COLS: Math.ceil(h.dim / 256), KV_F16: 0 },
    },
  });
  const filled = (n) =>
    bufferOf(Float32Array.from({ length: n }, () => random() * 0.2 - 0.1), STORAGE | COPY_SRC);
  const buffers = [
    bufferOf(Uint32Array.of(h.rows, h.n, h.kv, h.dim, h.rows, h.window, 0, 0), UNIFORM),
    bufferOf(new Uint32Array(16), UNIFORM),
    filled(h.rows * h.n * h.dim), filled(h.rows * h.kv * h.dim), filled(h.rows * h.kv * h.dim),
    filled(h.rows * h.n * h.dim),
  ];
  const group = device.createBindGroup({
    layout: pipeline.getBindGroupLayout(0),
    entries: buffers.map((buffer, binding) => ({ binding, resource: { buffer } })),
  });
  const groups = Math.ceil((h.rows * (h.n / h.kv)) / 32) * h.kv;
  await timed(pipeline, group, groups, 1);
  const us = await timed(pipeline, group, groups, o.quick ? 1 : 5);
  let seen = 0;
  for (let t = 0; t < h.rows; t++) seen += h.window ? Math.min(t + 1, h.window) : t + 1;
  console.log(
    `${h.kernel.padEnd(22)} ${h.name.padEnd(12)} ${h.rows} rows, ${h.n} heads of ${h.dim}, ${h.kv} `
      + `kv: ${us.toFixed(0)} us, ${((4 * seen * h.n * h.dim) / us / 1e6).toFixed(2)} TFLOPS`,
  );
  for (const b of buffers) b.destroy();
}
gpu.close();
process.exit();
