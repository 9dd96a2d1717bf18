// node - what the package has for Node alone: the machine's own Ollama store.

import { DiskStore } from './store/disk_store.js';
import { Core, loadWasm } from './engine/wasm.js';

export type { DiskStore };

/** Models that Ollama keeps on this machine, read only; `folder` where it is not the usual one. */
export async function openDiskStore(folder?: string): Promise<DiskStore> {
  return DiskStore.open(await Core.load(await loadWasm()), folder);
}
