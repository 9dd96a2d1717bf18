// locate - what a person means by MODEL: a path, or a name in the Ollama store. Node only.
//
// As src/io/locate.c: a path that exists is a file, anything else is looked up.

import * as fs from 'node:fs';

import type { StoreTexts } from '../cpu_engine.js';
import { shards } from '../engine_source.js';
import type { Source } from '../source.js';
import { DiskStore } from '../store/disk_store.js';
import { openSource, type SourceRef } from '../store/source_ref.js';
import type { Core } from '../wasm.js';

export interface Located {
  readonly sources: Source[];
  readonly store: StoreTexts | undefined;
  readonly adapters: string[]; // paths
}

const openAll = (refs: readonly SourceRef[]): Promise<Source[]> => Promise.all(refs.map((ref) => openSource(ref)));

export async function locate(core: Core, model: string, folder: string | undefined): Promise<Located> {
  const isPath = fs.existsSync(model) || model.startsWith('/') || model.startsWith('.') || model.endsWith('.gguf');
  if (isPath) return { sources: await openAll(shards(model).map((path) => ({ kind: 'path', path }))), store: undefined, adapters: [] };
  const found = await DiskStore.open(core, folder).resolve(model);
  const adapters = found.adapters.flatMap((ref) => (ref.kind === 'path' ? [ref.path] : []));
  return { sources: await openAll(found.model), store: found.store, adapters };
}
