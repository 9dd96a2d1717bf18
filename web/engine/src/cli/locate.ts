// locate - what a person means by MODEL: a path, or a name in the Ollama store. Node only.
//
// As src/io/locate.c: a path that exists is a file, anything else is looked up.

import * as fs from 'node:fs';

import type { StoreTexts } from '../cpu_engine.js';
import { shards } from '../engine_source.js';
import type { Source } from '../source.js';
import { DiskStore } from '../store/disk_store.js';
import { openSource, type SourceRef } from '../store/source_ref.js';
import { BezelError, type Core } from '../wasm.js';

export interface Located {
  readonly sources: Source[];
  readonly store: StoreTexts | undefined;
  readonly adapters: string[]; // paths
}

const openAll = (refs: readonly SourceRef[]): Promise<Source[]> => Promise.all(refs.map((ref) => openSource(ref)));

function openStore(core: Core, model: string, folder: string | undefined): DiskStore {
  try {
    return DiskStore.open(core, folder);
  } catch (e) {
    throw e instanceof BezelError ? new BezelError(`${model} is not a file, and there is no Ollama store to look in (${e.message})`, 'not-found', e) : e;
  }
}

export async function locate(core: Core, model: string, folder: string | undefined): Promise<Located> {
  const isPath = fs.statSync(model, { throwIfNoEntry: false })?.isFile() || model.startsWith('/') || model.startsWith('.') || model.endsWith('.gguf');
  if (isPath) return { sources: await openAll(shards(model).map((path) => ({ kind: 'path', path }))), store: undefined, adapters: [] };
  const found = await openStore(core, model, folder).resolve(model);
  const adapters = found.adapters.flatMap((ref) => (ref.kind === 'path' ? [ref.path] : []));
  return { sources: await openAll(found.model), store: found.store, adapters };
}
