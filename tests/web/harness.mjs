// harness - run one kernel by its name, with parameters and buffers given as plain values.
//
//   const h = await openHarness();                       // bezel.wasm and a device
//   const { x } = await h.run('scale', {
//     params: { n: 5 }, constants: { WG: 64 }, groups: 1,
//     buffers: { w: Float32Array.of(2), x: Float32Array.of(1, 2, 3, 4, 5) },
//   });
//
// Buffers are named as in the kernel; those it may write come back, in the type they were given.
// The kernel goes through the same Gpu class and imports as the engine's own dispatches.
import './software_adapter.mjs';
import { readFileSync } from 'node:fs';
import { withNames } from './kernel_names.mjs';
import { paramsOf } from './params.mjs';
import { Core, Gpu, loadWasm, openDevice } from '../../web/engine/dist/core.js';
import { GPU_CONSTANT_BYTES, GPU_STEP, USAGE } from '../../web/engine/dist/engine/boundary.js';

/** Every variant of a kernel: name -> number. */
export const numbers =
  JSON.parse(readFileSync(new URL('../../build/gen/kernels.json', import.meta.url), 'utf8'));

/** Names of the storage bindings in order. */
function storageOf(kernel) {
  const found = [...withNames(kernel.source).matchAll(
    /@binding\((\d+)\)\s*var<storage,read(?:_write)?>\s*(\w+)\s*:/g,
  )];
  return found.map((m) => [+m[1], m[2]]).sort((a, b) => a[0] - b[0]).map((m) => m[1]);
}

export class Harness {
  constructor(core, gpu) {
    this.core = core;
    this.gpu = gpu;
    this.device = gpu.info;
  }

  kernel(name) {
    if (!(name in numbers)) throw new Error(`no kernel ${name}`);
    return numbers[name];
  }

  /** Call with bytes in the module's memory. */
  #with(bytes, call) {
    return this.core.with(bytes, (p) => call(p));
  }

  #upload(data, usage) {
    const bytes = new Uint8Array(data.buffer, data.byteOffset, data.byteLength);
    const b = this.gpu.imports.buffer_new(bytes.length, usage);
    const padded = new Uint8Array(Math.ceil(bytes.length / 4) * 4);
    padded.set(bytes);
    this.gpu.write(b, 0, padded);
    return b;
  }

  #params(kernel, values) {
    const fields = paramsOf(kernel);
    const view = new DataView(new ArrayBuffer(kernel.paramsBytes));
    for (const name of Object.keys(values))
      if (!fields.some((f) => f[0] === name))
        throw new Error(`kernel ${kernel.name} has no parameter ${name}`);
    fields.forEach(([name, type], i) => {
      if (!(name in values)) throw new Error(`kernel ${kernel.name}: parameter ${name} is missing`);
      if (type === 'f32') view.setFloat32(4 * i, values[name], true);
      else view.setUint32(4 * i, values[name], true);
    });
    return new Uint8Array(view.buffer);
  }

  #pipeline(number, kernel, constants) {
    const words = new ArrayBuffer(GPU_CONSTANT_BYTES * Object.keys(constants).length);
    const view = new DataView(words);
    Object.entries(constants).forEach(([name, value], i) => {
      const index = kernel.overrides.indexOf(name);
      if (index < 0) throw new Error(`kernel ${kernel.name} has no override ${name}`);
      view.setUint32(GPU_CONSTANT_BYTES * i, index, true);
      view.setFloat32(GPU_CONSTANT_BYTES * i + 4, value, true);
    });
    return this.#with(new Uint8Array(words), (p) =>
      this.gpu.imports.pipeline_new(number, p, words.byteLength / GPU_CONSTANT_BYTES));
  }

  /** groups: a number of workgroups (spread over x and y as the engine does), or [x, y, z]. */
  async run(name, { params, buffers, groups, constants = {}, step = {} }) {
    const { imports } = this.gpu;
    const number = this.kernel(name), kernel = this.core.kernel(number);
    const storage = storageOf(kernel);
    const max = this.device.limits.maxWorkgroups;
    const [x, y, z] = Array.isArray(groups)
      ? groups
      : groups <= max ? [groups, 1, 1] : [max, Math.ceil(groups / max), 1];
    const made = [this.#upload(this.#params(kernel, params), USAGE.uniform)];
    if (kernel.bindings.startsWith('uu')) {
      const words = new Uint32Array(GPU_STEP.sizeof / 4);
      for (const [field, value] of Object.entries({ rows: 1, ...step }))
        words[GPU_STEP[field] / 4] = value;
      made.push(this.#upload(words, USAGE.uniform));
    }
    for (const b of storage) {
      if (!buffers[b]) throw new Error(`kernel ${name}: buffer ${b} is missing`);
      made.push(this.#upload(buffers[b], USAGE.storage));
    }
    const pipeline = this.#pipeline(number, kernel, constants);
    const bindings = Uint32Array.from(made.flatMap((b) => [b, 0, 0])); // whole buffers
    const group = this.#with(new Uint8Array(bindings.buffer), (p) =>
      imports.group_new(pipeline, p, made.length));
    imports.program_begin();
    imports.dispatch(pipeline, group, x, y, z);
    const program = imports.program_end();
    try {
      await this.gpu.ready();
      this.gpu.submit(program);
      await this.gpu.ready();
      return await this.#outputs(kernel, storage, buffers, made);
    } finally {
      imports.program_free(program);
      imports.group_free(group);
      for (const b of made) imports.buffer_free(b);
    }
  }

  async #outputs(kernel, storage, buffers, made) {
    const out = {}, first = kernel.bindings.length - storage.length;
    for (let i = 0; i < storage.length; i++) {
      if (kernel.bindings[first + i] !== 'w') continue;
      const given = buffers[storage[i]];
      const bytes = new Uint8Array(Math.ceil(given.byteLength / 4) * 4);
      await this.gpu.read(made[first + i], 0, bytes);
      out[storage[i]] = new given.constructor(bytes.buffer, 0, given.length);
    }
    return out;
  }

  close() {
    this.gpu.close();
  }
}

/** options: those of openDevice (profile, dawn, power). No adapter is a failure. */
export async function openHarness(options = {}) {
  const gpu = new Gpu(await openDevice(options));
  const core = await Core.load(await loadWasm(), gpu);
  await core.bringTraining();
  await core.bringCanvas();
  return new Harness(core, gpu);
}
