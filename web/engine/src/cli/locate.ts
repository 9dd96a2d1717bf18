// locate - what a person means by MODEL: a path, a name in the Ollama store, or one that ships.
// Node only.
//
// As the native tool: a path that exists is a file, a name is looked up in the store, and "tiny" is
// always there.

import * as fs from 'node:fs';

import type { StoreTexts } from '../engine/cpu_engine.js';
import { shards } from '../api/engine_source.js';
import { shippedModel } from '../store/shipped.js';
import type { Source } from '../load/source.js';
import { DiskStore } from '../store/disk_store.js';
import { openSource, type SourceRef } from '../store/source_ref.js';
import { BezelError, type Core } from '../engine/wasm.js';

export interface Located {
  readonly sources: Source[];
  readonly store: StoreTexts | undefined;
  readonly adapters: string[]; // paths
}

const openAll = (refs: readonly SourceRef[]): Promise<Source[]> =>
  Promise.all(refs.map((ref) => openSource(ref)));

function openStore(core: Core, model: string, folder: string | undefined): DiskStore {
  try {
    return DiskStore.open(core, folder);
  } catch (e) {
    throw e instanceof BezelError
      ? new BezelError(
        `${model} is not a file, and there is no Ollama store to look in (${e.message})`,
        'not-found',
        e,
      )
      : e;
  }
}

/** Whether Ollama's own store knows the name; it comes before what ships. */
async function storeHas(core: Core, model: string): Promise<boolean> {
  try {
    return (await DiskStore.open(core).find(model)) !== undefined;
  } catch (e) {
    if (e instanceof BezelError && e.kind === 'not-found') return false; // there is no store
    throw e;
  }
}

export async function locate(
  core: Core, model: string, folder: string | undefined,
): Promise<Located> {
  // a file's name may be a tag: hf.co/org/repo:file.gguf
  const isPath = fs.statSync(model, { throwIfNoEntry: false })?.isFile() || model.startsWith('/')
    || model.startsWith('.') || /(^|[/\\])[^/\\:]*\.gguf$/.test(model);
  if (isPath)
    return {
      sources: await openAll(shards(model).map((path) => ({ kind: 'path', path }))),
      store: undefined,
      adapters: [],
    };
  const shipped = folder === undefined ? shippedModel(model) : undefined;
  if (shipped !== undefined && !(await storeHas(core, model)))
    return {
      sources: await openAll([{ kind: 'path', path: shipped }]), store: undefined, adapters: [],
    };
  const found = await openStore(core, model, folder).resolve(model);
  const adapters = found.adapters.flatMap((ref) => (ref.kind === 'path' ? [ref.path] : []));
  return { sources: await openAll(found.model), store: found.store, adapters };
}
