// profile - where a program's time goes: each dispatch in a pass of its own, between two timestamps.
//
// Passes of their own keep dispatches from overlapping, so the sum is more than the program takes. It says
// which kernel to look at, not how fast the program is.

import type { Gpu } from './gpu.js';

const COPY_SRC = 0x4, QUERY_RESOLVE = 0x200, COPY_DST = 0x8, MAP_READ = 0x1; // GPUBufferUsage
const MAX_QUERIES = 4096; // in a set, by the specification

export interface KernelTime {
  kernel: string;
  count: number; // dispatches
  ns: number; // all of them together
}

/** Time every dispatch of a program, which is run once; the slowest kernel first. */
export async function profile(gpu: Gpu, program: number): Promise<KernelTime[]> {
  if (!gpu.info.limits.hasTimestamps) throw new Error('this device has no timestamp queries');
  await gpu.ready();
  const steps = gpu.listing(program), times = new Map<string, KernelTime>();
  for (let first = 0; first < steps.length; first += MAX_QUERIES / 2) {
    const some = steps.slice(first, first + MAX_QUERIES / 2);
    const stamps = await time(gpu.device, some);
    some.forEach(({ kernel }, i) => {
      const entry = times.get(kernel) ?? { kernel, count: 0, ns: 0 };
      entry.count++;
      entry.ns += Number((stamps[2 * i + 1] as bigint) - (stamps[2 * i] as bigint));
      times.set(kernel, entry);
    });
  }
  return [...times.values()].sort((a, b) => b.ns - a.ns);
}

async function time(device: GPUDevice, steps: ReturnType<Gpu['listing']>): Promise<BigUint64Array> {
  const count = 2 * steps.length, size = 8 * count;
  const querySet = device.createQuerySet({ type: 'timestamp', count });
  const resolved = device.createBuffer({ size, usage: QUERY_RESOLVE | COPY_SRC });
  const mapped = device.createBuffer({ size, usage: COPY_DST | MAP_READ });
  const encoder = device.createCommandEncoder();
  steps.forEach(({ pipeline, group, grid }, i) => {
    const pass = encoder.beginComputePass({ timestampWrites: { querySet, beginningOfPassWriteIndex: 2 * i, endOfPassWriteIndex: 2 * i + 1 } });
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
