// adapter - a WebGPU device, whatever the host: a browser's, npm `webgpu` (Dawn) in Node, or
// Deno's.
//
// It asks for the largest limits and the few features that kernels can use. A profile then pretends
// that the device is another one, and no larger, so that every tier, every split and what is chosen
// for each vendor's devices can be tested on any machine.

import type { AdapterNames, Limits } from '../engine/boundary.js';
import { nodeFiles } from '../load/node_files.js';

declare global {
  // The names that declarations of this package mention. TypeScript has WebGPU in its DOM library
  // since version 6; before that, without @webgpu/types, they would be unknown. Where they are
  // known, these add nothing to them.
  interface GPUDevice {}
  interface GPUBuffer {}
  interface GPUBindGroup {}
  interface GPUBindGroupLayout {}
  interface GPUComputePipeline {}
  interface GPUCommandEncoder {}
  interface GPUComputePassEncoder {}
}

/** Sets of kernels, each with what the next has and more. */
export type Tier = 'matrix' | 'subgroup' | 'plain';

export interface Device {
  readonly device: GPUDevice;
  readonly name: string; // for people: "nvidia hopper", "google swiftshader"
  readonly limits: Readonly<Limits>;
  readonly names: AdapterNames;
  readonly software: boolean; // it computes on the CPU, and takes seconds to compile a kernel
  readonly maxTotal: number; // bytes of all buffers together; Infinity where the device decides
}

/** Another device: whose choices src/gpu/profile.c makes, the most it has of each limit, and which
 *  features. */
interface Profile {
  readonly as: string;
  readonly most: Partial<Limits>;
  readonly maxTotal?: number;
}

const MiB = 1024 * 1024;

const card: Partial<Limits> = {
  maxBuffer: 4096 * MiB - 1, maxBinding: 2048 * MiB - 4, maxInvocations: 1024,
  maxWorkgroupBytes: 32768, maxStorageBuffers: 10, hasMatrix: 0,
};

export const profiles = {
  // What the WebGPU specification promises everywhere.
  spec: {
    as: 'spec',
    most: {
      maxBuffer: 256 * MiB, maxBinding: 128 * MiB, maxInvocations: 256, maxWorkgroupBytes: 16384,
      maxStorageBuffers: 8, subgroupMin: 0, subgroupMax: 0, hasF16: 0, hasTimestamps: 0,
      hasMatrix: 0,
    },
  },
  // Safari on a phone: the tab dies near 1.5 GB.
  'ios-like': {
    as: 'apple',
    most: {
      maxBuffer: 1024 * MiB, maxBinding: 1024 * MiB, maxInvocations: 1024, maxWorkgroupBytes: 32768,
      maxStorageBuffers: 8, subgroupMin: 0, subgroupMax: 0, hasTimestamps: 0, hasMatrix: 0,
    },
    maxTotal: 1.4e9,
  },
  // Chromium's software adapter.
  software: {
    as: 'software',
    most: {
      maxBuffer: 1024 * MiB, maxBinding: 1024 * MiB, maxInvocations: 256, maxWorkgroupBytes: 32768,
      maxStorageBuffers: 12, subgroupMax: 4, hasF16: 0, hasMatrix: 0,
    },
  },
  // Chromium on an NVIDIA card, as it comes.
  nvidia: {
    as: 'nvidia',
    most: {
      maxBuffer: 4096 * MiB - 1, maxBinding: 2048 * MiB - 4, maxInvocations: 1024,
      maxWorkgroupBytes: 49152, maxStorageBuffers: 16, hasF16: 0, hasMatrix: 0,
    },
  },
  // Chromium on other vendors' cards.
  apple: { as: 'apple', most: card },
  intel: { as: 'intel', most: card },
  amd: { as: 'amd', most: card },
  adreno: { as: 'adreno', most: card },
} as const satisfies Record<string, Profile>;

export type ProfileName = keyof typeof profiles;

export interface DeviceOptions {
  /** Pretend to be another device, and no larger than it. */
  profile?: ProfileName;
  /** Dawn toggles (Node only), one with a minus before it is turned off; default the
   *  comma-separated list in the variable BEZEL_DAWN. */
  dawn?: readonly string[];
  power?: 'low-power' | 'high-performance';
}

const MATRIX = 'chromium-experimental-subgroup-matrix';
const wantedFeatures = ['subgroups', 'shader-f16', 'timestamp-query', MATRIX] as const;

/** An entry of GPUAdapterInfo.subgroupMatrixConfigs: what a device multiplies, and how large the
 *  pieces are. */
interface MatrixKind {
  readonly componentType: string;
  readonly resultComponentType: string;
  readonly M: number;
  readonly N: number;
  readonly K: number;
}

/** Dawn in Node ends the process's devices when this object is collected, so it is kept. */
let dawn: GPU | undefined;

/** Its devices: a process that ends while one is open may crash on its way out. */
const open = new Set<GPUDevice>();

/** On Linux Dawn reaches GPUs through this library, and where it is missing writes a warning of its
 *  own to the terminal. So it is looked for first: a library that opens is no module of Node's, and
 *  the error says so. */
function hasVulkan(): boolean {
  if (process.platform !== 'linux') return true;
  try {
    process.dlopen({ exports: {} }, 'libvulkan.so.1');
    return true;
  } catch (e) {
    return e instanceof Error && e.message.includes('did not self-register');
  }
}

/** Could Node reach a graphics card here? On Linux each has a device file, and whoever names a
 *  driver means it. Where there is none, drivers and Dawn still write lines of their own to the
 *  terminal when they are asked. */
export function hasGraphicsCard(): boolean {
  if (typeof process === 'undefined' || process.platform !== 'linux'
    || typeof navigator !== 'undefined' && 'gpu' in navigator)
    return true;
  if (process.env.VK_ICD_FILENAMES !== undefined || process.env.VK_DRIVER_FILES !== undefined)
    return true;
  return nodeFiles().readdirSync('/dev').some((name) =>
    /^(dri|dxg|nvidia|nvhost|nvgpu|kgsl|mali)/.test(name));
}

async function openDawn(toggles: readonly string[]): Promise<GPU> {
  const name = 'webgpu'; // not a literal in import(), so that bundlers for browsers leave it alone
  let module: { create(flags: string[]): GPU };
  try {
    module = (await import(name)) as typeof module;
  } catch (cause) {
    throw new Error('this Node has no WebGPU: install it with  npm install webgpu', { cause });
  }
  if (!hasVulkan())
    throw new Error(
      "this machine has no Vulkan, through which Node reaches the GPU; "
        + "Debian's package is libvulkan1",
    );
  // Node's timestamps are for whoever profiles: whole nanoseconds, not ticks of 0.1 ms as a page
  // sees them.
  const off = [
    'timestamp_quantization', ...toggles.filter((t) => t.startsWith('-')).map((t) => t.slice(1)),
  ];
  const on = toggles.filter((t) => !t.startsWith('-'));
  const flags = [
    `disable-dawn-features=${off.join(',')}`,
    ...(on.length ? [`enable-dawn-features=${on.join(',')}`] : []),
  ];
  if (!dawn) process.once('exit', () => open.forEach((device) => device.destroy()));
  return (dawn ??= module.create(flags));
}

async function findGpu(toggles: readonly string[]): Promise<GPU> {
  const native = typeof navigator === 'undefined' ? undefined : navigator.gpu;
  if (native) return native;
  if (typeof process !== 'undefined' && process.versions?.node) return openDawn(toggles);
  throw new Error('this browser has no WebGPU');
}

/** The one kind of product that the kernels use. */
function hasMatrices(device: GPUDevice, info: GPUAdapterInfo): boolean {
  const { features, limits } = device;
  const kinds =
    (info as { subgroupMatrixConfigs?: Iterable<MatrixKind> }).subgroupMatrixConfigs ?? [];
  return features.has(MATRIX as GPUFeatureName) && features.has('shader-f16')
    && info.subgroupMinSize === 32 && info.subgroupMaxSize === 32
    && limits.maxComputeWorkgroupStorageSize >= 32768
    && [...kinds].some((k) =>
      k.componentType === 'f16' && k.resultComponentType === 'f32' && k.M === 16 && k.N === 16
        && k.K === 16);
}

function deviceLimits(gpu: GPU, device: GPUDevice, info: GPUAdapterInfo): Limits {
  const l = device.limits;
  const subgroups = device.features.has('subgroups');
  return {
    maxBuffer: Math.min(l.maxBufferSize, 0xffffffff),
    maxBinding: Math.min(l.maxStorageBufferBindingSize, 0xfffffffc),
    maxWorkgroups: l.maxComputeWorkgroupsPerDimension,
    maxInvocations: Math.min(l.maxComputeInvocationsPerWorkgroup, l.maxComputeWorkgroupSizeX),
    maxWorkgroupBytes: l.maxComputeWorkgroupStorageSize,
    maxStorageBuffers: l.maxStorageBuffersPerShaderStage,
    uniformAlign: l.minUniformBufferOffsetAlignment,
    storageAlign: l.minStorageBufferOffsetAlignment,
    // An adapter that does not tell has what the specification allows.
    subgroupMin: subgroups ? (info.subgroupMinSize ?? 4) : 0,
    subgroupMax: subgroups ? (info.subgroupMaxSize ?? 128) : 0,
    hasF16: device.features.has('shader-f16') ? 1 : 0,
    hasTimestamps: device.features.has('timestamp-query') ? 1 : 0,
    hasMatrix: hasMatrices(device, info) ? 1 : 0,
    // a browser without the list has none
    hasPackedDot: gpu.wgslLanguageFeatures?.has('packed_4x8_integer_dot_product') ? 1 : 0,
  };
}

/** The smaller of each limit. Alignments are not in any profile: they are the device's. */
function clamp(limits: Limits, most: Partial<Limits>): Limits {
  const out = { ...limits };
  for (const key of Object.keys(most) as (keyof Limits)[])
    out[key] = Math.min(out[key], most[key] ?? Infinity);
  if (out.subgroupMax === 0) out.subgroupMin = 0;
  return out;
}

/** Everything the adapter has, except what a profile hides: then validation holds us to the
 *  profile. */
function largest(adapter: GPUAdapter, most: Partial<Limits>): Record<string, number> {
  const a = adapter.limits;
  const of = (have: number, cap: number | undefined) => Math.min(have, cap ?? Infinity);
  return {
    maxBufferSize: of(a.maxBufferSize, most.maxBuffer),
    maxStorageBufferBindingSize: of(a.maxStorageBufferBindingSize, most.maxBinding),
    maxComputeWorkgroupsPerDimension: of(a.maxComputeWorkgroupsPerDimension, most.maxWorkgroups),
    maxComputeInvocationsPerWorkgroup: of(a.maxComputeInvocationsPerWorkgroup, most.maxInvocations),
    maxComputeWorkgroupSizeX: of(a.maxComputeWorkgroupSizeX, most.maxInvocations),
    maxComputeWorkgroupStorageSize: of(a.maxComputeWorkgroupStorageSize, most.maxWorkgroupBytes),
    maxStorageBuffersPerShaderStage: of(a.maxStorageBuffersPerShaderStage, most.maxStorageBuffers),
  };
}

/** wgpu gives the vendor as its number on the PCI bus. */
const pci: Record<string, string> = {
  4098: 'amd', 4203: 'apple', 4318: 'nvidia', 5045: 'arm', 20803: 'qualcomm', 32902: 'intel',
};

/** wgpu gives the vendor as a number and a name for people in the description. */
function nameOf(info: GPUAdapterInfo): string {
  const spoken = [info.vendor, info.architecture].filter((w) => w && !/^\d+$/.test(w)).join(' ');
  return spoken || info.description || 'unknown adapter';
}

export async function openDevice(options: DeviceOptions = {}): Promise<Device> {
  const env = typeof process === 'undefined' ? undefined : process.env?.BEZEL_DAWN;
  const gpu = await findGpu(options.dawn ?? env?.split(',').filter(Boolean) ?? []);
  const adapter =
    await gpu.requestAdapter({ powerPreference: options.power ?? 'high-performance' });
  if (!adapter) throw new Error('WebGPU found no graphics adapter');
  const profile: Profile = options.profile ? profiles[options.profile] : { as: '', most: {} };
  const hidden: Record<string, boolean> = {
    subgroups: profile.most.subgroupMax === 0,
    'shader-f16': profile.most.hasF16 === 0,
    'timestamp-query': profile.most.hasTimestamps === 0,
    [MATRIX]: profile.most.hasMatrix === 0,
  };
  const device = await adapter.requestDevice({
    label: 'bezel',
    requiredFeatures:
      wantedFeatures.filter((f) => adapter.features.has(f) && !hidden[f]) as GPUFeatureName[],
    requiredLimits: largest(adapter, profile.most),
  });
  if (gpu === dawn) {
    open.add(device);
    void device.lost.then(() => open.delete(device));
  }
  return {
    device,
    name: nameOf(adapter.info),
    limits: clamp(deviceLimits(gpu, device, adapter.info), profile.most),
    names: {
      vendor: pci[adapter.info.vendor] ?? adapter.info.vendor,
      architecture: adapter.info.architecture,
      profile: profile.as,
    },
    software: adapter.info.isFallbackAdapter === true,
    maxTotal: profile.maxTotal ?? Infinity,
  };
}
