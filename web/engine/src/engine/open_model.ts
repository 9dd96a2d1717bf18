// open_model - a model on the backend that was asked for: module, device, weights.

import {
  hasGraphicsCard, openDevice, type Device, type DeviceOptions, type ProfileName,
} from '../gpu/adapter.js';
import { CpuModel } from './cpu_model.js';
import { GpuModel, type GpuModelOptions } from '../gpu/gpu_model.js';
import type { Model } from './model.js';
import type { Source } from '../load/source.js';
import { stopped } from './turns.js';
import { BezelError, Core, loadWasm } from './wasm.js';

/** 'auto': the GPU where there is one, else the CPU. */
export type Backend = 'auto' | 'gpu' | 'cpu';

/** The backend that is taken. */
export interface Choice {
  readonly backend: 'gpu' | 'cpu';
  /** Why it is the CPU, where 'auto' found no GPU. */
  readonly fallback: string | undefined;
  /** Opens the device; again after one was lost. */
  readonly device: () => Promise<Device>;
  /** Gives back a device that nobody took. */
  close(): void;
}

/** Nobody is moved to the CPU without being told: `fallback` says why, and only 'auto' has one. A
 *  software adapter is no GPU: it computes on the CPU too, and compiles for seconds before its
 *  first token. */
export async function chooseBackend(wish: Backend, options: DeviceOptions): Promise<Choice> {
  const device = (): Promise<Device> => openDevice(options), nothing = (): void => {};
  const cpu = (fallback?: string): Choice => ({ backend: 'cpu', fallback, device, close: nothing });
  if (wish === 'cpu') return cpu();
  if (wish === 'gpu') return { backend: 'gpu', fallback: undefined, device, close: nothing };
  let found: Device | undefined;
  try {
    if (!hasGraphicsCard()) throw new Error('this machine has no graphics card');
    found = await device();
  } catch (e) {
    return cpu(e instanceof Error ? e.message : String(e));
  }
  const give = (): void => {
    found?.device.destroy();
    found = undefined;
  };
  if (found.software) {
    const { name } = found;
    give();
    return cpu(`WebGPU has only a software adapter here (${name})`);
  }
  const take = async (): Promise<Device> => {
    const first = found;
    found = undefined;
    return first ?? device();
  };
  return { backend: 'gpu', fallback: undefined, device: take, close: give };
}

/** Those of the kernels and the graphics memory mean nothing to the CPU. */
export interface OpenModelOptions extends GpuModelOptions {
  /** 'gpu' is never replaced: no WebGPU is an error of kind 'device'. */
  backend: Backend | Choice;
  /** Several are the shards of one model. They stay the caller's, and must outlive the model. */
  sources: readonly Source[];
  /** Pretend to be a smaller device. */
  profile?: ProfileName;
  /** Dawn's toggles, in Node, with a minus before those to turn off; absent: those that the
   *  variable BEZEL_DAWN lists. */
  dawn?: readonly string[];
}

export async function openModel({ backend, ...options }: OpenModelOptions): Promise<Model> {
  const { profile, dawn, signal, onProgress } = options;
  if (!options.sources.length) throw new BezelError('a model needs at least one file', 'argument');
  if (signal?.aborted) throw stopped(signal);
  onProgress?.({ phase: 'open', loaded: 0, total: 1 });
  const choice = typeof backend === 'string'
    ? await chooseBackend(backend, { ...(profile && { profile }), ...(dawn && { dawn }) })
    : backend;
  try {
    const { fallback } = choice;
    onProgress?.({
      phase: 'open', loaded: 0, total: 1, backend: choice.backend,
      ...(fallback !== undefined && { fallback }),
    });
    return await openOn(choice, options);
  } finally {
    choice.close();
  }
}

async function openOn(
  { backend, fallback, device }: Choice,
  { sources, signal, ...options }: Omit<OpenModelOptions, 'backend'>,
): Promise<Model> {
  const { name, store, context, contextBytes, cache, batch, onProgress } = options;
  const wasm = WebAssembly.compile(await loadWasm());
  wasm.catch(() => {}); // heard when it is awaited: the device may fail first
  const described = {
    ...(name !== undefined && { name }), ...(store && { store }), ...(context && { context }),
    ...(contextBytes && { contextBytes }), ...(cache && { cache }), ...(batch && { batch }),
  };
  if (backend === 'gpu')
    return GpuModel.open(wasm, device, sources, {
      ...described, ...options, ...(signal && { signal }),
    });
  const held = (loaded: number, total: number): void =>
    onProgress?.({ phase: 'weights', loaded, total });
  const model = await CpuModel.open(await Core.load(await wasm), sources, {
    ...described, hold: true, onProgress: held, ...(signal && { signal }),
  });
  if (fallback !== undefined) model.device.fallback = fallback;
  onProgress?.({ phase: 'ready', loaded: 1, total: 1 });
  return model;
}
