// ollama_store - models in Ollama's layout, wherever the files are:
//
//     manifests/<host>/<namespace>/<model>/<tag>    which blobs make up a model
//     blobs/sha256-<64 hex>                         their bytes
//
// Reads only. Names and digests come through the core, so that nothing a manifest says can be a
// path.

import type { StoreTexts } from '../engine/cpu_engine.js';
import { BezelError, type Core } from '../engine/wasm.js';
import {
  blobName, fullName, MAX_MANIFEST, parseManifest, parseName, pathOf, textKinds, type Layer,
  type ModelName,
} from './manifest.js';
import type { StoreProgress } from './news.js';
import {
  openSource, type ModelStore, type ResolvedModel, type SourceRef, type StoredModel,
} from './source_ref.js';
import { digestOf, type ReadOptions } from './verified.js';
import { sortModels } from './inspect_file.js';

export interface VerifyOptions {
  onProgress?: (p: StoreProgress) => void;
  signal?: AbortSignal;
}

export interface Verified {
  intact: boolean;
  /** Which parts of the model are missing or not what they should be. */
  damaged: Layer['kind'][];
}

export interface TreeFile {
  readonly size: number;
  readonly modified?: number;
  readonly ref: SourceRef;
  /** All of it, or an error where it is larger than max bytes. */
  text(max: number): Promise<string>;
}

const MAX_TEXT = 1 << 20; // a text of a store that is longer than this is not shown
const shownKinds = ['config', 'params', 'system', 'template', 'messages'] as const;
type TextKind = (typeof shownKinds)[number];
export type ModelTexts = Partial<Record<TextKind | 'license', string>>;
const isTextKind = (kind: Layer['kind']): kind is TextKind =>
  (shownKinds as readonly string[]).includes(kind);

/** Folders and files below a root that nothing leads out of. Paths are lists of names. */
export interface Tree {
  /** For people. */
  readonly place: string;
  /** Entries of a folder, none where there is no such folder. */
  names(folder: readonly string[], kind: 'folder' | 'file'): Promise<string[]>;
  file(path: readonly string[]): Promise<TreeFile | undefined>;
}

/** What a config blob says for people; a config that makes no sense says nothing. */
export function detailsOf(
  config: string | undefined,
): Pick<StoredModel, 'family' | 'parameters' | 'quantization' | 'base'> {
  if (config === undefined) return {};
  try {
    // PEFT's adapter_config.json names its model in words of its own.
    const {
      model_family: family, model_type: parameters, file_type: quantization,
      base_model_name_or_path: base,
    } = JSON.parse(config) as Record<string, unknown>;
    const texts = Object.entries({
      family, parameters, quantization, base,
    }).filter(([, v]) => typeof v === 'string' && v);
    return Object.fromEntries(texts);
  } catch (e) {
    if (e instanceof SyntaxError || e instanceof TypeError) return {};
    throw e;
  }
}

/** Weights decide what a model is: its own, or else an adapter's. */
function mainLayer(layers: readonly Layer[]): Layer | undefined {
  return layers.find((l) => l.kind === 'model') ?? layers.find((l) => l.kind === 'adapter');
}

export const sizeOf = (layers: readonly Layer[]): number => layers.reduce((n, l) => n + l.size, 0);

const same = (a: string, b: string): boolean => a.toLowerCase() === b.toLowerCase();

export class OllamaStore implements ModelStore {
  constructor(readonly core: Core, readonly tree: Tree) {}

  /** All names in the store; rubbish beside them is passed over. */
  async names(): Promise<ModelName[]> {
    let paths: string[][] = [[]];
    for (const kind of ['folder', 'folder', 'folder', 'file'] as const) {
      const next: string[][] = [];
      for (const path of paths)
        for (const name of await this.tree.names(['manifests', ...path], kind))
          next.push([...path, name]);
      paths = next;
    }
    const names = paths.flatMap(([host = '', space = '', model = '', tag = '']) => {
      try {
        return [parseName(this.core, `${host}/${space}/${model}:${tag}`)];
      } catch (e) {
        if (e instanceof BezelError && e.kind !== 'memory') return [];
        throw e;
      }
    });
    return names.sort((a, b) => (a.short < b.short ? -1 : 1));
  }

  /** The name as the store has it: exactly, or but for the case of its letters. */
  async find(text: string): Promise<ModelName | undefined> {
    const wish = parseName(this.core, text);
    if (await this.tree.file(['manifests', ...pathOf(wish)])) return wish;
    return (await this.names()).find((n) => same(fullName(n), fullName(wish)));
  }

  async manifest(name: ModelName): Promise<string> {
    const file = await this.tree.file(['manifests', ...pathOf(name)]);
    if (!file)
      throw new BezelError(`${name.short} is not in the store ${this.tree.place}`, 'not-found');
    return file.text(MAX_MANIFEST);
  }

  /** The small texts of a manifest, by kind: of each the last, as Ollama takes it, but of licences
   *  all. What is missing or too long is left out. */
  async texts(manifest: string): Promise<ModelTexts> {
    const texts: ModelTexts = {}, licenses: string[] = [];
    for (const { kind, digest, size } of parseManifest(this.core, manifest)) {
      if (kind !== 'license' && !isTextKind(kind)) continue;
      const file = size > MAX_TEXT ? undefined : await this.tree.file(['blobs', blobName(digest)]);
      if (!file) continue;
      const text = await file.text(MAX_TEXT);
      if (kind === 'license') licenses.push(text);
      else texts[kind] = text;
    }
    return licenses.length ? { ...texts, license: licenses.join('\n') } : texts;
  }

  private async one(name: ModelName): Promise<StoredModel | undefined> {
    const file = await this.tree.file(['manifests', ...pathOf(name)]);
    if (!file) return undefined;
    const layers = parseManifest(this.core, await file.text(MAX_MANIFEST));
    const main = mainLayer(layers);
    if (!main) return undefined;
    const config = layers.find((l) => l.kind === 'config');
    const text = config && (await this.tree.file(['blobs', blobName(config.digest)]));
    return {
      name: name.short,
      kind: main.kind === 'model' ? 'model' : 'adapter',
      size: sizeOf(layers),
      digest: main.digest,
      ...(file.modified !== undefined && { modified: file.modified }),
      ...detailsOf(text && (await text.text(textKinds.config))),
    };
  }

  async list(): Promise<StoredModel[]> {
    const all: StoredModel[] = [];
    for (const name of await this.names()) {
      try {
        const model = await this.one(name);
        if (model) all.push(model);
      } catch (e) {
        // one broken manifest must not hide the others
        if (!(e instanceof BezelError) || e.kind === 'memory') throw e;
      }
    }
    return all;
  }

  private async blob(name: ModelName, layer: Layer): Promise<TreeFile> {
    const file = await this.tree.file(['blobs', blobName(layer.digest)]);
    const blob = `${layer.kind} of ${name.short} (sha256-${layer.digest.slice(0, 12)}…)`;
    if (!file)
      throw new BezelError(`the ${blob} is missing in the store ${this.tree.place}`, 'not-found');
    if (file.size !== layer.size)
      throw new BezelError(
        `the ${blob} has ${file.size} bytes and should have ${layer.size}; pull it again`, 'format',
      );
    return file;
  }

  private async need(text: string): Promise<ModelName> {
    const name = await this.find(text);
    if (!name)
      throw new BezelError(
        `${parseName(this.core, text).short} is not in the store ${this.tree.place}`, 'not-found',
      );
    return name;
  }

  /** Read all of a model's blobs and compare them with their names. `onChecked` hears of each. */
  async verify(
    text: string,
    {
      onProgress, signal, onChecked,
    }: VerifyOptions & { onChecked?: (layer: Layer, intact: boolean) => Promise<void> } = {},
  ): Promise<Verified> {
    const layers = parseManifest(this.core, await this.manifest(await this.need(text)));
    const total = sizeOf(layers);
    const damaged: Layer['kind'][] = [];
    let before = 0;
    for (const layer of layers) {
      const tell = (loaded: number): void =>
        onProgress?.({ phase: 'verify', loaded: before + loaded, total });
      const intact = await this.holds(layer, { signal, onProgress: tell });
      if (!intact) damaged.push(layer.kind);
      await onChecked?.(layer, intact);
      before += layer.size;
    }
    onProgress?.({ phase: 'done', loaded: total, total });
    return { intact: damaged.length === 0, damaged };
  }

  private async holds({ digest, size }: Layer, options: ReadOptions): Promise<boolean> {
    const file = await this.tree.file(['blobs', blobName(digest)]);
    if (file?.size !== size) return false;
    const source = await openSource(file.ref);
    try {
      return (await digestOf(this.core, source, options)) === digest.toLowerCase();
    } finally {
      source.close();
    }
  }

  async resolve(text: string): Promise<ResolvedModel> {
    const name = await this.need(text);
    const manifest = await this.manifest(name);
    return resolveLayers(this.core, name, manifest, this.tree.place, (layer) =>
      this.blob(name, layer));
  }
}

/** Ollama's own description of an image, where PEFT's adapter_config.json might be. */
function isOllamaConfig(text: string): boolean {
  try {
    return typeof (JSON.parse(text) as { model_format?: unknown } | null)?.model_format
      === 'string';
  } catch {
    return false; // whoever reads it as PEFT's says what is wrong
  }
}

/** A manifest's layers as references, for any store that can find a blob. */
export async function resolveLayers(
  core: Core,
  name: ModelName,
  manifest: string,
  root: string,
  blob: (l: Layer) => Promise<Pick<TreeFile, 'ref' | 'text'>>,
): Promise<ResolvedModel> {
  const layers = parseManifest(core, manifest);
  const main = mainLayer(layers);
  if (!main) throw new BezelError("the model's manifest names no weights", 'format');
  const refs = async (kind: Layer['kind']): Promise<SourceRef[]> =>
    Promise.all(layers.filter((l) => l.kind === kind).map(async (l) => (await blob(l)).ref));
  const store: StoreTexts = { name: fullName(name), root, manifest };
  for (const kind of ['config', 'params', 'system', 'messages'] as const) {
    const layer = layers.find((l) => l.kind === kind);
    if (layer) store[kind] = await (await blob(layer)).text(textKinds[kind]);
  }
  // not PEFT's
  if (main.kind === 'adapter' && store.config !== undefined && isOllamaConfig(store.config))
    delete store.config;
  const { model, projectors } = await sortModels(core, await refs('model'));
  const [projector] = [...(await refs('projector')), ...projectors];
  return {
    name: name.short,
    kind: main.kind === 'model' ? 'model' : 'adapter',
    model,
    adapters: await refs('adapter'),
    ...(projector && { projector }),
    store,
    digest: main.digest,
    size: sizeOf(layers),
  };
}
