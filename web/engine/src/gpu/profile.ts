// profile - where a program's time goes, and how fast the device's memory is.
//
// Each dispatch runs in a pass of its own, between two timestamps. Passes of their own keep
// dispatches from overlapping, so the sum is more than the program takes. It says which kernel to
// look at, not how fast the program is.

import type { Gpu } from './gpu.js';
import { BezelError, type Core } from '../engine/wasm.js';

// GPUBufferUsage
const COPY_SRC = 0x4, QUERY_RESOLVE = 0x200, COPY_DST = 0x8, MAP_READ = 0x1, UNIFORM = 0x40;
const STORAGE = 0x80;
const MAX_QUERIES = 4096; // in a set, by the specification

export interface KernelTime {
  kernel: string;
  count: number; // dispatches
  ns: number; // all of them together
}

/** Time every dispatch of programs, which are run once, in order; the slowest kernel first. */
export async function profile(gpu: Gpu, ...programs: number[]): Promise<KernelTime[]> {
  return sumBy(await dispatchTimes(gpu, ...programs), ({ kernel }) => kernel);
}

export interface DispatchTime {
  kernel: string;
  groups: number; // workgroups
  ns: number;
}

/** Together what has the same name; the slowest first. */
export function sumBy(
  list: readonly DispatchTime[], name: (d: DispatchTime) => string,
): KernelTime[] {
  const times = new Map<string, KernelTime>();
  for (const one of list) {
    const kernel = name(one), entry = times.get(kernel) ?? { kernel, count: 0, ns: 0 };
    entry.count++;
    entry.ns += one.ns;
    times.set(kernel, entry);
  }
  return [...times.values()].sort((a, b) => b.ns - a.ns);
}

/** Time every dispatch of programs, which are run once, in order. */
export async function dispatchTimes(gpu: Gpu, ...programs: number[]): Promise<DispatchTime[]> {
  if (!gpu.info.limits.hasTimestamps)
    throw new BezelError('this device has no timestamp queries', 'device');
  await gpu.ready();
  const steps = programs.flatMap((p) => gpu.listing(p)), times: DispatchTime[] = [];
  for (let first = 0; first < steps.length; first += MAX_QUERIES / 2) {
    const some = steps.slice(first, first + MAX_QUERIES / 2);
    const stamps = await time(gpu.device, some);
    some.forEach(({ kernel, grid: [x, y, z] }, i) =>
      void times.push({
        kernel,
        groups: x * y * z,
        ns: Number((stamps[2 * i + 1] as bigint) - (stamps[2 * i] as bigint)),
      }));
  }
  return times;
}

async function time(device: GPUDevice, steps: ReturnType<Gpu['listing']>): Promise<BigUint64Array> {
  const count = 2 * steps.length, size = 8 * count;
  const querySet = device.createQuerySet({ type: 'timestamp', count });
  const resolved = device.createBuffer({ size, usage: QUERY_RESOLVE | COPY_SRC });
  const mapped = device.createBuffer({ size, usage: COPY_DST | MAP_READ });
  const encoder = device.createCommandEncoder();
  steps.forEach(({ pipeline, group, grid }, i) => {
    const pass = encoder.beginComputePass({
      timestampWrites: {
        querySet, beginningOfPassWriteIndex: 2 * i, endOfPassWriteIndex: 2 * i + 1,
      },
    });
    pass.setPipeline(pipeline);
    pass.setBindGroup(0, group);
    pass.dispatchWorkgroups(...grid);
    pass.end();
  });
  encoder.resolveQuerySet(querySet, 0, count, resolved, 0);
  encoder.copyBufferToBuffer(resolved, 0, mapped, 0, size);
  device.queue.submit([encoder.finish()]);
  try {
    await mapped.mapAsync(1);
    return new BigUint64Array(mapped.getMappedRange().slice(0));
  } finally {
    for (const thing of [mapped, resolved, querySet]) thing.destroy();
  }
}

const MiB = 1024 * 1024;
// of kernels/load/bandwidth.wgsl: lanes of a workgroup, vectors that each reads
const LANES = 256, VECTORS = 16;

/** Bytes a second that a kernel which does nothing else reads: what decoding can reach at most. */
export async function bandwidth(core: Core): Promise<number> {
  const gpu = core.gpu;
  if (!gpu) throw new BezelError('this core was loaded without a GPU', 'device');
  const { device, info } = gpu, kernel = core.kernel(core.exports.bz_wasm_kernel_bandwidth());
  const module = device.createShaderModule({ label: kernel.name, code: kernel.source });
  const pipeline = await device.createComputePipelineAsync({
    label: kernel.name, layout: 'auto', compute: { module, entryPoint: 'main' },
  });
  const rate = async (bytes: number, reads: number): Promise<number> => {
    const x = device.createBuffer({ size: bytes, usage: STORAGE });
    const y = device.createBuffer({ size: 4, usage: STORAGE });
    const params = device.createBuffer({ size: 16, usage: UNIFORM | COPY_DST });
    device.queue.writeBuffer(params, 0, new Uint32Array([bytes / 16]));
    const group = device.createBindGroup({
      layout: pipeline.getBindGroupLayout(0),
      entries: [params, x, y].map((buffer, binding) => ({ binding, resource: { buffer } })),
    });
    const groups = bytes / 16 / (LANES * VECTORS);
    const wide = Math.min(groups, info.limits.maxWorkgroups);
    const read = async (n: number): Promise<number> => {
      const encoder = device.createCommandEncoder(), pass = encoder.beginComputePass();
      pass.setPipeline(pipeline);
      pass.setBindGroup(0, group);
      for (let i = 0; i < n; i++) pass.dispatchWorkgroups(wide, Math.ceil(groups / wide));
      pass.end();
      const start = performance.now();
      device.queue.submit([encoder.finish()]);
      await device.queue.onSubmittedWorkDone();
      return performance.now() - start;
    };
    await read(1);
    // Many reads less few of them: what submitting and waiting cost is in both. The fastest of
    // each, since what holds one up only adds to it.
    let few = Infinity, many = Infinity;
    for (let i = 0; i < 5; i++) {
      few = Math.min(few, await read(reads / 4));
      many = Math.min(many, await read(reads));
    }
    for (const thing of [x, y, params]) thing.destroy();
    return many > few ? (0.75 * reads * bytes * 1000) / (many - few) : Infinity;
  };
  const first = await rate(16 * MiB, 4);
  // Past what caches hold, unless the device is so slow that it does not matter.
  return first < 20e9
    ? first
    : rate(
      Math.min(
        256 * MiB,
        2 ** Math.floor(Math.log2(Math.min(info.limits.maxBinding, info.limits.maxBuffer))),
      ),
      64,
    );
}
