// open_model - a model on the backend that was asked for: module, device, weights.

import { openDevice, type ProfileName, type Tier } from './adapter.js';
import type { StoreTexts } from './cpu_engine.js';
import { CpuModel } from './cpu_model.js';
import { GpuModel } from './gpu_model.js';
import type { Model, Progress } from './model.js';
import type { Source } from './source.js';
import { stopped } from './turns.js';
import { BezelError, Core, loadWasm } from './wasm.js';

export interface OpenModelOptions {
  /** Never replaced by the other: no WebGPU is an error of kind 'device'. */
  backend: 'gpu' | 'cpu';
  /** Several are the shards of one model. They stay the caller's, and must outlive the model. */
  sources: readonly Source[];
  /** What a person calls the model. */
  name?: string;
  store?: StoreTexts;
  /** Tokens of a conversation that does not say; 0 or absent: the core's choice. */
  context?: number;
  /** 'subgroup': no subgroup matrices, even where the device has them; 'plain': no subgroups either. */
  tier?: Tier;
  /** How keys and values are kept. */
  cache?: 'f32' | 'f16';
  /** Tokens of a prompt that are read in one step; absent: the backend's choice. */
  batch?: number;
  /** Test every kernel before the model is used; absent: unless the device is a software adapter. GPU only. */
  selfTest?: boolean;
  /** Bytes of graphics memory that may be used; absent: what the device's profile allows. */
  budget?: number;
  /** Pretend to be a smaller device. */
  profile?: ProfileName;
  /** Dawn's toggles, in Node; absent: those that the variable BEZEL_DAWN lists. */
  dawn?: readonly string[];
  onProgress?: (progress: Progress) => void;
  signal?: AbortSignal;
}

export async function openModel({ backend, sources, signal, ...options }: OpenModelOptions): Promise<Model> {
  const { name, store, context, cache, batch, profile, dawn, onProgress } = options;
  if (!sources.length) throw new BezelError('a model needs at least one file', 'argument');
  if (signal?.aborted) throw stopped(signal);
  onProgress?.({ phase: 'open', loaded: 0, total: 1 });
  const wasm = await WebAssembly.compile(await loadWasm());
  const described = { ...(name !== undefined && { name }), ...(store && { store }), ...(context && { context }), ...(cache && { cache }), ...(batch && { batch }) };
  if (backend === 'gpu') return GpuModel.open(wasm, () => openDevice({ ...(profile && { profile }), ...(dawn && { dawn }) }), sources, { ...described, ...options, ...(signal && { signal }) });
  const held = (loaded: number, total: number): void => onProgress?.({ phase: 'weights', loaded, total });
  const model = await CpuModel.open(await Core.load(wasm), sources, { ...described, hold: true, onProgress: held, ...(signal && { signal }) });
  onProgress?.({ phase: 'ready', loaded: 1, total: 1 });
  return model;
}
