// open_model - a model on the backend that was asked for: module, device, weights.

import { openDevice, type ProfileName } from './adapter.js';
import { CpuModel } from './cpu_model.js';
import { GpuModel, type GpuModelOptions } from './gpu_model.js';
import type { Model } from './model.js';
import type { Source } from './source.js';
import { stopped } from './turns.js';
import { BezelError, Core, loadWasm } from './wasm.js';

/** Those of the kernels and the graphics memory mean nothing to the CPU. */
export interface OpenModelOptions extends GpuModelOptions {
  /** Never replaced by the other: no WebGPU is an error of kind 'device'. */
  backend: 'gpu' | 'cpu';
  /** Several are the shards of one model. They stay the caller's, and must outlive the model. */
  sources: readonly Source[];
  /** Pretend to be a smaller device. */
  profile?: ProfileName;
  /** Dawn's toggles, in Node, with a minus before those to turn off; absent: those that the variable BEZEL_DAWN lists. */
  dawn?: readonly string[];
}

export async function openModel({ backend, sources, signal, ...options }: OpenModelOptions): Promise<Model> {
  const { name, store, context, cache, batch, profile, dawn, onProgress } = options;
  if (!sources.length) throw new BezelError('a model needs at least one file', 'argument');
  if (signal?.aborted) throw stopped(signal);
  onProgress?.({ phase: 'open', loaded: 0, total: 1 });
  const wasm = WebAssembly.compile(await loadWasm());
  wasm.catch(() => {}); // heard when it is awaited: the device may fail first
  const described = { ...(name !== undefined && { name }), ...(store && { store }), ...(context && { context }), ...(cache && { cache }), ...(batch && { batch }) };
  if (backend === 'gpu') return GpuModel.open(wasm, () => openDevice({ ...(profile && { profile }), ...(dawn && { dawn }) }), sources, { ...described, ...options, ...(signal && { signal }) });
  const held = (loaded: number, total: number): void => onProgress?.({ phase: 'weights', loaded, total });
  const model = await CpuModel.open(await Core.load(await wasm), sources, { ...described, hold: true, onProgress: held, ...(signal && { signal }) });
  onProgress?.({ phase: 'ready', loaded: 1, total: 1 });
  return model;
}
