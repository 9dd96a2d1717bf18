// adapters - LoRA adapters of the loaded model: they come by file and go with the model.

import { signal } from '@preact/signals';
import type { AdapterInfo } from 'bezel';
import { currentEngine, engineState } from './engine';
import { notify } from './notices';

export const adapters = signal<AdapterInfo[]>([]);

engineState.subscribe((state) => {
  if (state.kind !== 'ready') adapters.value = [];
});

/** Weights of PEFT come with their adapter_config.json. */
export async function addAdapter(weights: File, config: File | undefined): Promise<void> {
  const { engine } = currentEngine();
  const info = await engine.adapters.add(weights, { name: weights.name.replace(/\.[^.]+$/, ''), ...(config && { config: await config.text() }) });
  adapters.value = await engine.adapters.list();
  notify(`The adapter ${info.name} is on.`);
}

export async function removeAdapter(name: string): Promise<void> {
  const { engine } = currentEngine();
  await engine.adapters.remove(name);
  adapters.value = await engine.adapters.list();
}
