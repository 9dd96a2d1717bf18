// plain_folder - a picked folder of GGUF files, as other programs keep them: each file is a model
// or an adapter, and the shards of one model are one. Names are paths below the folder without
// their ending.

import { blobSource } from '../load/source.js';
import { BezelError, type Core } from '../engine/wasm.js';
import { FolderStore } from './folder_store.js';
import { inspectFile } from './inspect_file.js';
import {
  fileOf, type ModelStore, type ResolvedModel, type SourceRef, type StoredModel,
} from './source_ref.js';

const DEEPEST = 4; // folders below the picked one
const MOST = 1000; // files that are looked at

type Folder = FileSystemDirectoryHandle & { values(): AsyncIterable<FileSystemHandle> };

/** model-00002-of-00003.gguf: which part of what. */
const shardOf = (name: string): { stem: string; number: number } | undefined => {
  const [, stem = '', number] = /^(.*)-(\d{5})-of-\d{5}$/.exec(name) ?? [];
  return number === undefined ? undefined : { stem, number: Number(number) };
};

export class PlainFolder implements ModelStore {
  constructor(private readonly core: Core, private readonly folder: FileSystemDirectoryHandle) {}

  /** All GGUF files, by name; shards in their order under the name of the whole. */
  private async files(): Promise<Map<string, FileSystemFileHandle[]>> {
    const found: [string, FileSystemFileHandle][] = [];
    const look = async (
      at: FileSystemDirectoryHandle, before: string, depth: number,
    ): Promise<void> => {
      for await (const entry of (at as Folder).values()) {
        if (found.length >= MOST || entry.name.startsWith('.')) continue;
        if (entry.kind === 'directory') {
          if (depth < DEEPEST)
            await look(entry as FileSystemDirectoryHandle, `${before}${entry.name}/`, depth + 1);
        } else if (/\.gguf$/i.test(entry.name))
          found.push([
            `${before}${entry.name.replace(/\.gguf$/i, '')}`, entry as FileSystemFileHandle,
          ]);
      }
    };
    await look(this.folder, '', 0);
    const models = new Map<string, FileSystemFileHandle[]>();
    for (const [name, handle] of found.sort(([a], [b]) => (a < b ? -1 : 1))) {
      const key = shardOf(name)?.stem ?? name;
      models.set(key, [...(models.get(key) ?? []), handle]);
    }
    return models;
  }

  /** Whether there is anything to list. */
  async isEmpty(): Promise<boolean> {
    return (await this.files()).size === 0;
  }

  private async one(name: string, handles: readonly FileSystemFileHandle[]): Promise<StoredModel> {
    const files = await Promise.all(handles.map(fileOf)), [first] = files as [File];
    const about = {
      name, size: files.reduce((n, f) => n + f.size, 0), digest: '', modified: first.lastModified,
      inPlace: true,
    };
    try {
      const { format: _, count: __, ...kind } = await inspectFile(this.core, blobSource(first));
      return { ...about, ...kind };
    } catch (e) {
      if (!(e instanceof BezelError) || e.kind === 'memory') throw e;
      return { ...about, kind: 'model' }; // one that cannot be read says why when it is loaded
    }
  }

  async list(): Promise<StoredModel[]> {
    const all: StoredModel[] = [];
    for (const [name, handles] of await this.files())
      if (!/(^|\/)mmproj/i.test(name)) all.push(await this.one(name, handles));
    return all;
  }

  async resolve(name: string): Promise<ResolvedModel> {
    const handles = (await this.files()).get(name);
    if (!handles)
      throw new BezelError(`${name} is not in the folder ${this.folder.name}`, 'not-found');
    const { kind, size } = await this.one(name, handles);
    const refs = handles.map((handle): SourceRef => ({ kind: 'handle', handle }));
    return {
      name, kind, model: kind === 'model' ? refs : [], adapters: kind === 'adapter' ? refs : [],
      store: {}, digest: '', size,
    };
  }
}

/** A folder that a person picked: an Ollama store, or GGUF files. */
export async function openFolder(
  core: Core, folder: FileSystemDirectoryHandle,
): Promise<ModelStore> {
  try {
    return await FolderStore.open(core, folder);
  } catch (e) {
    if (!(e instanceof BezelError) || e.kind !== 'not-found') throw e;
    const plain = new PlainFolder(core, folder);
    if (await plain.isEmpty())
      throw new BezelError(
        `${folder.name} holds no models: neither an Ollama store (a folder `
          + '"manifests") nor GGUF files',
        'not-found',
        e,
      );
    return plain;
  }
}
