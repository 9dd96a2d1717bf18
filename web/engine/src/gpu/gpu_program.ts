// gpu_program - what the core has recorded, as the device wants it: pipelines, bind groups, copies.
//
// It is replayed into passes and encoders that others have opened; it makes no object and knows no
// numbers.

import type { KernelInfo } from '../engine/wasm.js';

/** A buffer that was asked for. */
export interface Buffer {
  readonly size: number;
  readonly usage: number; // GPUBufferUsage
  made: GPUBuffer | undefined; // undefined while it is only planned
  late?: boolean; // makeLate() makes it
}

/** A bind group, and what it was made of. */
export interface Group {
  readonly pipeline: Pipeline;
  readonly buffers: readonly GPUBuffer[];
  readonly ranges: readonly number[]; // offset and size of each
  readonly made: GPUBindGroup;
}

export interface Pipeline {
  readonly kernel: KernelInfo;
  readonly number: number; // of the kernel
  readonly layout: GPUBindGroupLayout;
  made: GPUComputePipeline | undefined; // undefined while it compiles
  refusal: string | undefined; // why it does not, where that is no fault
  compiled: Promise<void>;
  hurry?: () => void; // give it to the compiler now, before its turn
}

/** Copies, dispatches, copies; what is needed to replay them lies in arrays side by side. */
export class Program {
  readonly pipelines: Pipeline[] = [];
  readonly groups: GPUBindGroup[] = [];
  readonly grid: number[] = []; // x, y, z of each
  readonly from: GPUBuffer[] = [];
  readonly to: GPUBuffer[] = [];
  readonly ranges: number[] = []; // from, to, bytes of each copy
  first = 0; // copies that come before the dispatches
  submitted = false;
  begun = 0; // dispatches that were submitted while the others were recorded
}

/** Are the pipelines there of what has not begun? */
export function isMade({ pipelines, begun }: Program): boolean {
  for (let i = begun; i < pipelines.length; i++) if (!pipelines[i]?.made) return false;
  return true;
}

/** Dispatches of a program, as they were recorded: nothing but calls of the device. */
export function replay(
  pass: GPUComputePassEncoder, { pipelines, groups, grid }: Program, from: number, to: number,
): void {
  let last: Pipeline | undefined;
  for (let i = from; i < to; i++) {
    const pipeline = pipelines[i] as Pipeline;
    if (pipeline !== last) pass.setPipeline(pipeline.made as GPUComputePipeline);
    last = pipeline;
    pass.setBindGroup(0, groups[i] as GPUBindGroup);
    const y = grid[3 * i + 1] as number, z = grid[3 * i + 2] as number;
    // arguments cost as well
    if (y === 1 && z === 1) pass.dispatchWorkgroups(grid[3 * i] as number);
    else pass.dispatchWorkgroups(grid[3 * i] as number, y, z);
  }
}

export function copy(
  encoder: GPUCommandEncoder, { from, to, ranges }: Program, begin: number, end: number,
): void {
  for (let i = begin; i < end; i++)
    encoder.copyBufferToBuffer(
      from[i] as GPUBuffer, ranges[3 * i] as number, to[i] as GPUBuffer,
      ranges[3 * i + 1] as number, ranges[3 * i + 2] as number,
    );
}
