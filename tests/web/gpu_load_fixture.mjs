// gpu_load_fixture - what the tests of loads to the GPU share: one device, a core on it for each
// test, and models of any shape.
import './software_adapter.mjs'; // before any device
import { execFileSync } from 'node:child_process';
import { basename } from 'node:path';

import { Core, Gpu, fileSource, loadWasm, openDevice } from '../../web/engine/dist/core.js';
import { done, equal, ok } from './check.mjs';

const native = process.argv[2] ?? 'build/bezel';
export const device = await openDevice({}), wasm = await WebAssembly.compile(await loadWasm());
export const ids = Int32Array.from({ length: 21 }, (_, i) => (i === 0 ? 2 : 5 + (i * 7919) % 290));
export const MODEL = 'tests/golden/model_e2b.gguf'; // has a per-layer embedding table

/** A core on the device, for one test; nothing of it may be left. */
export async function fresh(fn, on = device) {
  const gpu = new Gpu(on), core = await Core.load(wasm, gpu);
  const live = core.exports.bz_wasm_live();
  const result = await fn(core, gpu);
  equal(gpu.bytes, 0, 'bytes left on the device');
  // the last result
  ok(
    core.exports.bz_wasm_live() - live <= 1,
    `${core.exports.bz_wasm_live() - live} allocations are left`,
  );
  return result;
}

const test = basename(process.argv[1], '.mjs'); // tests run side by side
const made = new Set(); // by this run: one of an earlier build may have another shape

export function synth(shape, ...args) {
  const path = `build/tmp/${test}-${[shape, ...args].join('')}.gguf`;
  if (!made.has(path)) execFileSync(native, ['synth', '--force', shape, path, ...args]);
  made.add(path);
  return path;
}

/** A source that counts what is read. */
export async function watched(path) {
  const source = await fileSource(path);
  const counted = {
    name: source.name, size: source.size, close: source.close, bytes: 0,
    read: (offset, dst) => ((counted.bytes += dst.length), source.read(offset, dst)),
    readAsync: (offset, dst) => ((counted.bytes += dst.length), source.readAsync(offset, dst)),
  };
  return counted;
}

/** Logits of every token, and a text. */
export async function answer(engine) {
  const session = engine.session(64, 8), logits = [], drawn = [];
  await session.feed(ids, ids.length, (_, row) => logits.push(row.slice()));
  for await (const { id } of session.generate({ temperature: 0, n_max: 6, ignore_end: true }))
    drawn.push(id);
  session.close();
  return { logits, drawn };
}

export const worst = (a, b) => a.reduce(
  (w, row, i) => Math.max(w, row.reduce((v, x, j) => Math.max(v, Math.abs(x - b[i][j])), 0)), 0,
);

/** Runs the tests; a second word on the command line picks some. */
export async function finish() {
  await done(process.argv[3]);
  device.device.destroy(); // else its threads do not end
}
