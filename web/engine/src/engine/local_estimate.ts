// local_estimate - what a model would take, weighed where it would live: from its header alone.

import { CpuModel } from './cpu_model.js';
import type { EstimateParams } from './engine_calls.js';
import { chooseBackend } from './open_model.js';
import type { Context } from './rpc.js';
import { Core, loadWasm } from './wasm.js';
import { BezelError } from '../api/errors.js';
import type { Device } from '../gpu/adapter.js';
import { Gpu } from '../gpu/gpu.js';
import { estimate, type Estimate } from '../load/estimate.js';
import { openWithFetches, type Source } from '../load/source.js';
import { openSources } from '../store/open_sources.js';

/** What a model would take on this device, before anything of it is there. */
export async function estimateModel(
  { backend = 'auto', ...params }: EstimateParams, { signal }: Context<never>,
): Promise<Estimate> {
  const choice = await chooseBackend(backend, params.profile ? { profile: params.profile } : {});
  try {
    return await (choice.backend === 'gpu'
      ? estimateOnGpu(params, choice.device, signal)
      : estimateOnCpu(params, signal));
  } finally {
    choice.close();
  }
}

async function estimateOnCpu(
  { model, memory, context, contextBytes, cache }: EstimateParams, signal: AbortSignal,
): Promise<Estimate> {
  const core = await Core.load(await loadWasm());
  const sources = await openSources(core, model.sources, { signal });
  try {
    const wish = {
      name: model.name, ...(model.store && { store: model.store }), ...(context && { context }),
      ...(contextBytes && { contextBytes }), ...(cache && { cache }),
    };
    return await openWithFetches(async () => {
      const opened = await CpuModel.open(core, sources, wish);
      try {
        return opened.estimate(memory);
      } finally {
        opened.close();
      }
    }, signal);
  } finally {
    for (const source of sources) source.close();
  }
}

async function estimateOnGpu(
  { model, memory, profile: _, ...options }: EstimateParams,
  open: () => Promise<Device>,
  signal: AbortSignal,
): Promise<Estimate> {
  const device = await open().catch((e: Error) => {
    throw new BezelError(e.message, 'device', e);
  });
  const gpu = new Gpu(device);
  let sources: Source[] = [];
  try {
    const core = await Core.load(await loadWasm(), gpu);
    sources = await openSources(core, model.sources, { signal });
    const wish = {
      ...options,
      name: model.name,
      ...(model.store && { store: model.store }),
      ...(memory !== undefined && { budget: memory }),
    };
    return await openWithFetches(() => estimate(core, sources, wish), signal);
  } finally {
    for (const source of sources) source.close();
    gpu.close();
  }
}
