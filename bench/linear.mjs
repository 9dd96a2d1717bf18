// linear.mjs - one kernel of a decode step at the shapes of a model, in every division into
// workgroups, row groups of lanes and rows a row group (R): microseconds a dependent dispatch, and
// the rate at which its weights are read.
//
//   node bench/linear.mjs [--only NAME] [--wg 128,256] [--lanes 16,32] [--rows 2,4] [--tier plain]
//                         [--f32] [--top 4] [--dispatches 128] [--quick]
//
// --only takes a part of a case's name ("down", "e2b"), --top how many of the fastest ones are
// shown (0: all of them). --f32 has rows read as they are where they would be int8 planes.
// --quick is a smoke test for a software device. A full run takes less than a minute on a large
// GPU.
//
// A measurement is one pass of many dispatches that all write the same result, so that each waits
// for the one before, as in a decode step. Their weights lie at different places of a large buffer,
// so that no cache holds them. The time is the device's own (timestamp queries), the best of three
// passes. "empty" is a dispatch that does nothing: what a dispatch costs before it has read a byte.
import { readFileSync } from 'node:fs';
import { parseArgs } from 'node:util';
import { withNames } from '../tests/web/kernel_names.mjs';
import { paramsOf } from '../tests/web/params.mjs';
import { Core, Gpu, loadWasm, openDevice } from '../web/engine/dist/core.js';

const { values: o } = parseArgs({
  options: {
    only: { type: 'string', default: '' }, wg: { type: 'string' }, lanes: { type: 'string' },
    rows: { type: 'string' }, tier: { type: 'string', default: 'subgroup' },
    top: { type: 'string', default: '4' },
    dispatches: { type: 'string', default: '128' }, quick: { type: 'boolean', default: false },
    f32: { type: 'boolean', default: false },
  },
});
const numbers = (list, otherwise) => (list ? list.split(',').map(Number) : otherwise);
const wgs = numbers(o.wg, o.quick ? [64] : [64, 128, 256]);
const lanes = numbers(o.lanes, o.quick ? [4, 32] : [4, 8, 16, 32, 64, 128, 256]);
const together = numbers(o.rows, o.quick ? [2] : [1, 2, 3, 4]);
const dispatches = o.quick ? 4 : +o.dispatches, poolBytes = o.quick ? 2 ** 24 : 2 ** 29;

// name, kernel, shape of the weights and how activations are read, rows (of each matrix, or a
// list), columns
const cases = [
  ['e2b q', 'linear', 'q4_k', 2048, 1536], ['e2b q, global', 'linear', 'q4_k', 4096, 1536],
  ['e2b k', 'linear', 'q4_k', 256, 1536], ['e2b v', 'linear', 'q6_k', 256, 1536],
  ['e2b attention out', 'linear', 'q4_k', 1536, 2048],
  ['e2b attention out, global', 'linear', 'q4_k', 1536, 4096],
  ['e2b residual, q k v', 'norm_linears', 'q4_k int8', [2048, 256, 256], 1536],
  ['e2b residual, q', 'norm_linears', 'q4_k int8', [2048, 0, 0], 1536],
  ['e2b residual, q, global', 'norm_linears', 'q4_k int8', [4096, 0, 0], 1536],
  ['e2b residual, gate and up', 'norm_gate_up', 'q4_k int8', 6144, 1536],
  ['e2b residual, gate and up, wide', 'norm_gate_up', 'q4_k int8', 12288, 1536],
  ['e2b residual, per-layer gate', 'residual_linear_gelu', 'q4_k int8', 256, 1536],
  ['e2b merge, attention out', 'attn_reduce_linear', 'q4_k int8', 1536, 2048],
  ['e2b merge, attention out, global', 'attn_reduce_linear', 'q4_k int8', 1536, 4096],
  ['e2b gate and up', 'gate_up', 'q4_k', 6144, 1536],
  ['e2b gate and up, wide', 'gate_up', 'q4_k', 12288, 1536],
  ['e2b down', 'linear', 'q4_k', 1536, 6144], ['e2b down, wide', 'linear', 'q4_k', 1536, 12288],
  ['e2b down, wide', 'linear', 'q6_k', 1536, 12288],
  ['e2b per-layer gate', 'linear', 'q4_k', 256, 1536],
  ['e2b per-layer out', 'linear', 'q4_k', 1536, 256],
  ['e2b head', 'linear', 'q6_k', 262144, 1536],
  ['12b residual, gate and up', 'norm_gate_up', 'q4_k int8', 15360, 3840],
  ['31b residual, gate and up', 'norm_gate_up', 'q4_k int8', 21504, 5376],
  ['12b gate and up', 'gate_up', 'q4_k', 15360, 3840], ['12b down', 'linear', 'q4_k', 3840, 15360],
  ['31b gate and up', 'gate_up', 'q4_k', 21504, 5376], ['31b down', 'linear', 'q6_k', 5376, 21504],
  ['e2b int8, attention out', 'linear', 'q4_k int8', 1536, 2048],
  ['e2b int8, down', 'linear', 'q4_k int8', 1536, 6144],
  ['e2b int8, down, wide', 'linear', 'q4_k int8', 1536, 12288],
  ['e2b int8, down', 'linear', 'q6_k int8', 1536, 6144],
  ['e2b int8, down, wide', 'linear', 'q6_k int8', 1536, 12288],
  ['e2b int8, gate and up', 'gate_up', 'q4_k int8', 6144, 1536],
  ['e2b int8, gate and up, wide', 'gate_up', 'q4_k int8', 12288, 1536],
  ['e2b int8, head', 'linear', 'q6_k int8', 262144, 1536],
  ['12b int8, gate and up', 'gate_up', 'q4_k int8', 15360, 3840],
  ['12b int8, down', 'linear', 'q4_k int8', 3840, 15360],
  ['31b int8, q k v', 'linears', 'q4_k int8', [8192, 4096, 4096], 5376],
  ['31b int8, attention out', 'linear', 'q4_k int8', 5376, 8192],
  ['31b int8, gate and up', 'gate_up', 'q4_k int8', 21504, 5376],
  ['31b int8, down', 'linear', 'q4_k int8', 5376, 21504],
  ['31b int8, down', 'linear', 'q6_k int8', 5376, 21504],
];

/** Bytes of a matrix, and where its parts begin in words: src/gpu/repack.h. */
function layout(shape, rows, cols) {
  const n = rows * cols;
  const parts = {
    q4_0: [16, 2, 0, 32], q8_0: [32, 2, 0, 32], q4_k: [144, 0, 0, 256], q5_k: [176, 0, 0, 256],
    q6_k: [192, 16, 2, 256],
  }[shape];
  const [a, b, c] = parts.slice(0, 3).map((bytes) => Math.ceil((n / parts[3]) * bytes / 16) * 16);
  return { bytes: a + b + c, scales: b ? a / 4 : 0, high: 0, d: c ? (a + b) / 4 : 0 };
}

const found = await openDevice(), { device, limits } = found;
const gpu = new Gpu(found);
const core = await Core.load(await loadWasm(), gpu);
const variants =
  JSON.parse(readFileSync(new URL('../build/gen/kernels.json', import.meta.url), 'utf8'));
const STORAGE = 0x80, UNIFORM = 0x40, COPY_DST = 8, COPY_SRC = 4, QUERY = 0x200, MAP = 1;
const buffer = (size, usage = STORAGE | COPY_DST | COPY_SRC) =>
  device.createBuffer({ size, usage });

const pool = buffer(poolBytes), noise = new Uint32Array(2 ** 20);
for (let i = 0, s = 1; i < noise.length; i++)
  noise[i] = s = (Math.imul(s, 1664525) + 1013904223) >>> 0;
for (let at = 0; at < poolBytes; at += noise.byteLength) device.queue.writeBuffer(pool, at, noise);
const small = new Map(); // activations and results, by their binding's name
const activations = (name) => small.get(name) ?? small.set(name, buffer(2 ** 21)).get(name);

/** The storage bindings of a kernel, in order: [number, name]. */
const storage = (source) => [...withNames(source).matchAll(
  /@binding\((\d+)\)\s*var<storage,read(?:_write)?>\s*(\w+)\s*:/g,
)].map((m) => [+m[1], m[2]]);

function params(kernel, values) {
  const view = new DataView(new ArrayBuffer(kernel.paramsBytes));
  paramsOf(kernel).forEach(([name, type], i) =>
    (type === 'f32'
      ? view.setFloat32(4 * i, values[name] ?? 1, true)
      : view.setUint32(4 * i, values[name] ?? 0, true)));
  const b = buffer(kernel.paramsBytes, UNIFORM | COPY_DST);
  device.queue.writeBuffer(b, 0, view.buffer);
  return b;
}

/** Bind groups that read the weights at as many places as the pool has. */
function groups(kernel, pipeline, shape, rows, cols) {
  const names = storage(kernel.source);
  const matrices = names.filter(([, name]) => /^w\d?$/.test(name)).length;
  const sizes = Array.from({ length: matrices }, (_, i) => rows[i] ?? rows[0]);
  const parts = sizes.map((n) => layout(shape, n || 4, cols)), list = [];
  const of = Object.fromEntries(parts.flatMap((part, i) =>
    Object.entries({ ...part, rows: sizes[i] })
      .flatMap(([field, v]) => [...(i ? [] : [[field, v]]), [`w[${i}].${field}`, v]])));
  const uniform = params(kernel, {
    ...of, cols, n_tok: 1, x_stride: cols, y_stride: rows[0], by_stride: rows[0], has_branch: 1,
    has_scale: 1, eps: 1e-6, head_dim: 256, n_split: 4,
  });
  const steps = parts.map((part) => Math.ceil(part.bytes / 256) * 256);
  const step = steps.reduce((a, b) => a + b);
  const places = Math.max(1, Math.min(64, Math.floor(poolBytes / step)));
  for (let i = 0; i < places; i++) {
    let next = i * step, k = 0;
    const entries = names.map(([binding, name]) => {
      if (!/^w\d?$/.test(name)) return { binding, resource: { buffer: activations(name) } };
      const offset = next, size = parts[k].bytes;
      next += steps[k++];
      return { binding, resource: { buffer: pool, offset, size } };
    });
    list.push(device.createBindGroup({
      layout: pipeline.getBindGroupLayout(0),
      entries: [{ binding: 0, resource: { buffer: uniform } }, ...entries],
    }));
  }
  return { list, bytes: parts.reduce((sum, part, i) => sum + (sizes[i] ? part.bytes : 0), 0) };
}

const querySet =
  limits.hasTimestamps ? device.createQuerySet({ type: 'timestamp', count: 2 }) : undefined;
const resolved = buffer(16, QUERY | COPY_SRC), mapped = buffer(16, MAP | COPY_DST);

/** Microseconds a dispatch. */
async function time(pipeline, list, count) {
  const most = limits.maxWorkgroups, y = Math.ceil(count / most), x = Math.ceil(count / y);
  let best = Infinity;
  for (let round = 0; round < (o.quick ? 1 : 3); round++) {
    const encoder = device.createCommandEncoder();
    const pass = encoder.beginComputePass(
      querySet
        ? { timestampWrites: { querySet, beginningOfPassWriteIndex: 0, endOfPassWriteIndex: 1 } }
        : {},
    );
    pass.setPipeline(pipeline);
    for (let i = 0; i < dispatches; i++) {
      pass.setBindGroup(0, list[i % list.length]);
      pass.dispatchWorkgroups(x, y);
    }
    pass.end();
    if (querySet) {
      encoder.resolveQuerySet(querySet, 0, 2, resolved, 0);
      encoder.copyBufferToBuffer(resolved, 0, mapped, 0, 16);
    }
    const start = performance.now();
    device.queue.submit([encoder.finish()]);
    await device.queue.onSubmittedWorkDone();
    let us = 1000 * (performance.now() - start);
    if (querySet) {
      await mapped.mapAsync(1);
      const [from, to] = new BigUint64Array(mapped.getMappedRange());
      us = Number(to - from) / 1000;
      mapped.unmap();
    }
    best = Math.min(best, us / dispatches);
  }
  return best;
}

async function pipelineOf(source, constants) {
  return device.createComputePipelineAsync({
    layout: 'auto', compute: { module: device.createShaderModule({ code: source }), constants },
  });
}

const empty = await pipelineOf(
  '@group(0) @binding(0) var<storage, read_write> y : array<f32>; @compute @workgroup_size(64) fn '
    + 'main(@builtin(local_invocation_index) i : u32) { if (y[0] == 7.0) { y[i] = 1.0; } }',
  {},
);
const nothing = device.createBindGroup({
  layout: empty.getBindGroupLayout(0),
  entries: [{ binding: 0, resource: { buffer: activations('y') } }],
});
await time(empty, [nothing], 132);
console.log(
  `${found.name}, ${o.tier} tier, ${querySet ? 'device time' : 'wall time'}; empty: `
    + `${(await time(empty, [nothing], 132)).toFixed(2)} us`,
);

for (const [what, name, read, allRows, cols] of cases) {
  if (!what.includes(o.only)) continue;
  const [shape, acts] = read.split(' ');
  const words = [
    shape, ...(acts && !o.f32 ? [acts] : []), ...(o.tier === 'plain' ? [] : ['subgroup']),
  ];
  const rows = [allRows].flat().map((n) => (o.quick ? Math.min(n, 64) : n));
  const kernel = core.kernel(variants[`${name}[${words.join(' ')}]`]);
  const shared = kernel.overrides.includes('SHARED_ROW');
  const units = cols / (shape === 'q8_0' ? 16 : 32);
  const tilings = wgs.filter((wg) => !shared || cols <= 16 * wg).flatMap((wg) => lanes
    .filter((l) => l <= wg && l < 2 * units)
    .flatMap((l) => together.map((r) => ({ WG: wg, LANES: l, R: r }))));
  const fixed = {
    ...(shared && { SHARED_ROW: Math.ceil(cols / 1024) * 256 }),
    ...(kernel.overrides.includes('SMALLEST') && {
      SMALLEST: limits.subgroupMin, GREATEST: limits.subgroupMax,
    }),
    ...(kernel.overrides.includes('MATRICES') && { MATRICES: rows.filter(Boolean).length }),
  };
  const pipelines =
    await Promise.all(tilings.map((c) => pipelineOf(kernel.source, { ...c, ...fixed })));
  const results = [];
  let bytes = 0;
  for (let i = 0; i < tilings.length; i++) {
    const bound = groups(kernel, pipelines[i], shape, rows, cols);
    const rowGroups = rows.reduce((sum, n) => sum + Math.ceil(n / tilings[i].R), 0);
    const blocks = Math.ceil(rowGroups / (tilings[i].WG / tilings[i].LANES));
    bytes = bound.bytes;
    // Workgroups with a shared row take several blocks each: the fewer workgroups there are, the
    // less often the residual is computed.
    const counts = new Set((shared ? [1, 2, 3, 4] : [1]).map((turns) => Math.ceil(blocks / turns)));
    for (const count of counts)
      results.push({ ...tilings[i], count, us: await time(pipelines[i], bound.list, count) });
  }
  results.sort((a, b) => a.us - b.us);
  console.log(
    `${what}: ${kernel.name} ${cols} -> ${rows.filter(Boolean).join(' + ')}, `
      + `${(bytes / 1e6).toFixed(1)} MB`,
  );
  for (const r of results.slice(0, +o.top || results.length))
    console.log(
      `  WG ${String(r.WG).padStart(3)}  LANES ${String(r.LANES).padStart(3)}  R ${r.R}  `
        + `${String(r.count).padStart(6)} workgroups  ${r.us.toFixed(2).padStart(8)} us  `
        + `${(bytes / r.us / 1e3).toFixed(0).padStart(5)} GB/s`,
    );
}
gpu.close();
process.exit(0);
