// opfs_store - the browser's own store of models, in the origin's private files:
//
//     bezel/manifests/…  bezel/blobs/…    as Ollama lays them out
//     bezel/partial/…                     on their way in (partial.ts)
//
// and, in IndexedDB, files of the person's that are read where they are. Any number of tabs may use
// it at once: who writes a blob, changes manifests or reads a model holds a lock of that name
// (locks.ts). It must run in a worker.

import { withMerge, type Merge, type MergeFrom } from '../train/merge.js';
import { blobSource } from '../load/source.js';
import { BezelError, Core, loadWasm } from '../engine/wasm.js';
import { copyBlob, copyIn, type Incoming } from './copy_in.js';
import { sha256 } from './digest.js';
import { DirectoryTree, folderAt } from './directory.js';
import {
  blobSize, download, placeBlob, Unchanged, type BlobFolders, type Downloaded,
} from './download.js';
import { needsAccess } from './folder_store.js';
import { openFolder } from './plain_folder.js';
import { handles, type FileRecord } from './handles.js';
import { formatOf, HEAD, inspectFile, type FileKind } from './inspect_file.js';
import {
  alone, holdShared, ifAlone, keepName, MANIFESTS, writeName, type Release,
} from './locks.js';
import {
  blobName, composeManifest, fullName, nameFromFile, originOf, parseManifest, parseName, pathOf,
  type Layer, type ModelName, type Origin,
} from './manifest.js';
import type { Patience } from './net.js';
import { onStoreChange, tellChanged, type StoreProgress } from './news.js';
import { OllamaStore, sizeOf, type Verified, type VerifyOptions } from './ollama_store.js';
import { unfinishedIn, usageOf } from './opfs_account.js';
import type {
  ImportOptions, MergeOptions, PullFrom, PullOptions, StoreOptions, StoreUsage, Unfinished,
} from './opfs_types.js';
import { journalName, PartialFile, removeFile } from './partial.js';
import { isError } from './platform.js';
import { requestPersistence } from './room.js';
import { ServerStore } from './server_store.js';
import { damagedBlobs, isIntact, knownState, remember, type ReadOptions } from './verified.js';
import { fileOf, type ModelStore, type ResolvedModel, type StoredModel } from './source_ref.js';

const ROOT = 'bezel';
const OLD = 7 * 24 * 3600 * 1000; // milliseconds after which what nobody needs is thrown away
const EXPORT = 'export-'; // how keys of files for others begin
const EXPORTED = 3600 * 1000; // milliseconds for which they are kept after their maker is gone
const PIECE = 4 << 20;

const merging = (label: string, merge: Merge, signal: AbortSignal | undefined): Incoming => ({
  label, total: merge.size, pieces: merge.pieces(signal), phase: 'merge',
});

export class OpfsStore implements ModelStore {
  private readonly files: OllamaStore;

  private constructor(
    private readonly core: Core,
    private readonly root: FileSystemDirectoryHandle,
    private readonly folders: BlobFolders,
    private readonly patience: Partial<Patience> | undefined,
  ) {
    this.files = new OllamaStore(
      core,
      new DirectoryTree('of this browser', root, (path) =>
        ({ kind: 'opfs', path: [ROOT, ...path].join('/') })),
    );
  }

  static async open(options: StoreOptions = {}): Promise<OpfsStore> {
    const storage = (globalThis.navigator as Navigator | undefined)?.storage;
    if (!storage?.getDirectory)
      throw new BezelError(
        'this browser has no storage for models (it needs the Origin Private File System)',
        'unsupported',
      );
    const core = options.core ?? (await Core.load(await loadWasm()));
    const top = await storage.getDirectory().catch((e: unknown) => {
      throw new BezelError(
        'this window gives the page no storage for models (private windows have none)',
        'unsupported',
        e,
      );
    });
    const root = await top.getDirectoryHandle(ROOT, { create: true });
    const [blobs, partial] = [
      await root.getDirectoryHandle('blobs', { create: true }),
      await root.getDirectoryHandle('partial', { create: true }),
    ];
    const store = new OpfsStore(core, root, { blobs, partial }, options.patience);
    await store.collect();
    return store;
  }

  // ---- reading ----

  async list(): Promise<StoredModel[]> {
    const inPlace = (await handles.all('files')).map((r) => r.model);
    const damaged = await damagedBlobs(this.folders.blobs);
    const own = (await this.files.list()).map((m) =>
      (damaged.has(blobName(m.digest)) ? { ...m, damaged: true } : m));
    return [...own, ...inPlace].sort((a, b) => (a.name < b.name ? -1 : 1));
  }

  async resolve(text: string): Promise<ResolvedModel> {
    const record = await this.record(parseName(this.core, text));
    return record && !(await this.files.find(text))
      ? this.inPlace(record)
      : this.files.resolve(text);
  }

  /** Read all of a model and compare it with its digests. One that is damaged is not used until
   *  it is pulled again. */
  async verify(text: string, options: VerifyOptions = {}): Promise<Verified> {
    if ((await this.record(parseName(this.core, text))) && !(await this.files.find(text)))
      throw new BezelError(
        `${text} is read in place: there is no digest to compare it with`, 'argument',
      );
    const onChecked = (layer: Layer, intact: boolean): Promise<void> =>
      remember(this.folders.blobs, blobName(layer.digest), intact);
    const found = await this.files.verify(text, { ...options, onChecked });
    tellChanged();
    return found;
  }

  private record(name: ModelName): Promise<FileRecord | undefined> {
    return handles.get('files', fullName(name).toLowerCase());
  }

  private async inPlace({ handle, model, config }: FileRecord): Promise<ResolvedModel> {
    if (await needsAccess(handle))
      throw new BezelError(
        `the browser must be asked again whether this page may read ${handle.name}`, 'io',
      );
    const file = await fileOf(handle);
    const ref = { kind: 'handle', handle } as const;
    const isModel = model.kind === 'model';
    return {
      name: model.name, kind: model.kind, model: isModel ? [ref] : [],
      adapters: isModel ? [] : [ref], store: config === undefined ? {} : { config }, digest: '',
      size: file.size,
    };
  }

  /** The handle of a model that is read in place, for requestAccess on the page. */
  async handleOf(text: string): Promise<FileSystemFileHandle | undefined> {
    return (await this.record(parseName(this.core, text)))?.handle;
  }

  // ---- folders that were picked ----

  /** Remember a picked folder: an Ollama store, or GGUF files. */
  async addFolder(handle: FileSystemDirectoryHandle): Promise<void> {
    await openFolder(this.core, handle); // or its sentence
    for (const { key, handle: old } of await handles.all('folders'))
      if (await old.isSameEntry(handle)) return handles.put('folders', { key, handle });
    await handles.put('folders', { key: crypto.randomUUID(), handle });
    tellChanged();
  }

  /** Folders remembered, in no order; requestAccess may be needed before they can be read. */
  async picked(): Promise<FileSystemDirectoryHandle[]> {
    return (await handles.all('folders')).map((r) => r.handle);
  }

  async forgetFolder(handle: FileSystemDirectoryHandle): Promise<void> {
    for (const { key, handle: old } of await handles.all('folders'))
      if (await old.isSameEntry(handle)) await handles.remove('folders', key);
    tellChanged();
  }

  // ---- getting models ----

  async pull(from: PullFrom, options: PullOptions = {}): Promise<StoredModel> {
    return typeof from === 'string'
      ? this.pullUrl(from, options)
      : this.pullModel(from.server, from.model, options);
  }

  private async pullUrl(
    url: string, { name, digest, config, onProgress, signal }: PullOptions,
  ): Promise<StoredModel> {
    const file = decodeURIComponent(new URL(url).pathname.split('/').pop() ?? '');
    const as = parseName(this.core, name ?? nameFromFile(file));
    const have = async (): Promise<string | undefined> => {
      const origin = await this.origin(as);
      return origin?.url === url && !(await this.isDamaged(as, { signal }))
        ? origin.version
        : undefined;
    };
    const onHead = (head: Uint8Array): void => {
      if (head.length >= HEAD && formatOf(file, head) === 'safetensors' && config === undefined)
        throw new BezelError(
          `${file} needs its adapter_config.json (the option config)`, 'argument',
        );
    };
    const wanted = {
      url,
      label: as.short,
      ...(digest !== undefined && { digest: digest.replace(/^sha256[:-]/, '') }),
    };
    const onPlaced = async (got: Downloaded): Promise<void> => {
      const kind = await this.inspect(got, config);
      await this.keepFile(
        as,
        got,
        kind,
        config,
        got.version === undefined ? undefined : { url, version: got.version },
      );
    };
    try {
      const got = await download(this.core, this.folders, wanted, {
        signal, onProgress, have, onHead, onPlaced, patience: this.patience,
      });
      await got.release();
    } catch (e) {
      if (!(e instanceof Unchanged)) throw e;
    }
    const model = await this.one(as);
    onProgress?.({ phase: 'done', loaded: model.size, total: model.size });
    return model;
  }

  /** Whether a model is there and must be fetched again: a part is missing, or is not what it
   *  should be. With `read`, parts of which nothing is known are read. */
  private async isDamaged(name: ModelName, read?: ReadOptions): Promise<boolean> {
    const found = await this.files.find(fullName(name)), { blobs } = this.folders;
    for (const { digest, size } of found ? await this.layers(found) : []) {
      const blob = blobName(digest);
      if ((await blobSize(blobs, digest)) !== size || (await knownState(blobs, blob)) === 'damaged')
        return true;
      if (!read) continue;
      const source = blobSource(await (await blobs.getFileHandle(blob)).getFile());
      if (!(await isIntact(this.core, blobs, blob, source, read))) return true;
    }
    return false;
  }

  private async origin(name: ModelName): Promise<Origin | undefined> {
    const found = await this.files.find(fullName(name));
    return found && originOf(await this.files.manifest(found));
  }

  private async pullModel(
    server: string, model: string, { name, onProgress, signal }: PullOptions,
  ): Promise<StoredModel> {
    const { manifest, name: there } =
      await new ServerStore(this.core, server, { signal, patience: this.patience }).manifest(model);
    const as = name === undefined ? there : parseName(this.core, name);
    // The small ones first: a long download is not lost to a missing text.
    const layers = parseManifest(this.core, manifest).sort((a, b) => a.size - b.size);
    const total = sizeOf(layers);
    const source = new ServerStore(this.core, server);
    const held: Release[] = [];
    let before = 0;
    try {
      for (const layer of layers) {
        const tell = onProgress
          && ((p: StoreProgress): void => onProgress({
            ...p,
            phase: p.phase === 'done' ? 'download' : p.phase,
            loaded: before + p.loaded,
            total,
          }));
        const wanted = {
          url: source.blobUrl(layer), digest: layer.digest, size: layer.size, label: as.short,
        };
        const options = { signal, onProgress: tell, patience: this.patience };
        held.push((await download(this.core, this.folders, wanted, options)).release);
        before += layer.size;
      }
      await this.writeManifest(as, manifest);
      onProgress?.({ phase: 'done', loaded: total, total });
    } finally {
      for (const release of held) await release();
    }
    return this.one(as);
  }

  /** Read a file in place where the browser remembers handles, else copy it in. */
  async importFile(
    from: File | FileSystemFileHandle, options: ImportOptions = {},
  ): Promise<StoredModel> {
    const handle = 'getFile' in from ? from : undefined;
    const file = handle ? await fileOf(handle) : (from as File);
    const name = parseName(this.core, options.name ?? nameFromFile(file.name));
    const kind = await inspectFile(this.core, blobSource(file), options.config);
    await this.needFree(name);
    return handle && !options.copy
      ? this.remember(name, handle, file, kind, options.config)
      : this.copy(name, file, kind, options);
  }

  private async remember(
    name: ModelName, handle: FileSystemFileHandle, file: File,
    { format: _, count: __, ...kind }: FileKind,
    config: string | undefined,
  ): Promise<StoredModel> {
    const model: StoredModel = {
      name: name.short, ...kind, size: file.size, digest: '', modified: file.lastModified,
      inPlace: true,
    };
    await handles.put('files', {
      key: fullName(name).toLowerCase(), handle, model, ...(config !== undefined && { config }),
    });
    tellChanged();
    return model;
  }

  private async copy(
    name: ModelName, file: File, kind: FileKind, { config, base, ...options }: ImportOptions,
  ): Promise<StoredModel> {
    async function* pieces(): AsyncGenerator<Uint8Array, void, void> {
      for (let at = 0; at < file.size; at += PIECE)
        yield new Uint8Array(await file.slice(at, at + PIECE).arrayBuffer());
    }
    const incoming = {
      label: name.short, total: file.size, pieces: pieces(), phase: 'copy',
    } as const;
    const got = await copyBlob(this.core, this.folders, incoming, options);
    try {
      await this.keepFile(name, got, kind, config, undefined, base);
      return await this.one(name);
    } finally {
      await got.release();
    }
  }

  // ---- merging ----

  /** A new model: one with an adapter added into its weights. */
  async merge(from: MergeFrom, { name, ...options }: MergeOptions): Promise<StoredModel> {
    const as = parseName(this.core, name);
    await this.needFree(as);
    return withMerge(from, options.signal, async (merge) => {
      const incoming = merging(as.short, merge, options.signal);
      const got = await copyBlob(this.core, this.folders, incoming, options);
      try {
        await this.keepFile(as, got, await this.inspect(got, undefined), undefined, undefined);
        return await this.one(as);
      } finally {
        await got.release();
      }
    });
  }

  /** The same as a file for others. It is there for as long as this worker is, and a while
   *  longer. */
  async mergeFile(from: MergeFrom, options: Omit<MergeOptions, 'name'> = {}): Promise<File> {
    const key = `${EXPORT}${crypto.randomUUID()}`;
    // kept: the person's browser reads the file when it likes
    const release = await holdShared(writeName(key));
    try {
      return await withMerge(from, options.signal, async (merge) => {
        const { partial } = this.folders;
        const incoming = merging('the merged model', merge, options.signal);
        (await copyIn(partial, key, incoming, options)).close();
        return (await partial.getFileHandle(key)).getFile();
      });
    } catch (e) {
      await release();
      throw e;
    }
  }

  // ---- writing ----

  /** A name that nobody has, or a model that is of no use any more. */
  private async needFree(name: ModelName): Promise<void> {
    if (await this.isDamaged(name)) return;
    if ((await this.files.find(fullName(name))) ?? (await this.record(name)))
      throw new BezelError(
        `there is already a model named ${name.short}; give it another name`, 'argument',
      );
  }

  /** What a new blob is; one that is of no use is not kept. */
  private async inspect(
    { digest, size, release }: Downloaded, config: string | undefined,
  ): Promise<FileKind> {
    const file = await (await this.folders.blobs.getFileHandle(blobName(digest))).getFile();
    try {
      return await inspectFile(this.core, blobSource(file), config);
    } catch (e) {
      await release();
      await alone(MANIFESTS, () => this.dropUnused([{ kind: 'model', digest, size }]));
      throw e;
    }
  }

  /** A text as a blob. */
  private async putText(text: string): Promise<Downloaded> {
    const bytes = new TextEncoder().encode(text);
    const digest = sha256(this.core, bytes);
    return alone(writeName(blobName(digest)), async () => {
      const part = await PartialFile.open(this.folders.partial, blobName(digest));
      part.reset({});
      part.append(bytes);
      return placeBlob(this.folders, part, digest);
    });
  }

  /** One file, already a blob, as a model or adapter. */
  private async keepFile(
    name: ModelName, { digest, size }: Downloaded, kind: FileKind, peft: string | undefined,
    origin: Origin | undefined, base?: string,
  ): Promise<void> {
    const described = {
      model_format: kind.format, model_family: kind.family, model_type: kind.parameters,
      file_type: kind.quantization, base_model_name_or_path: base,
    };
    const config = await this.putText(peft ?? JSON.stringify(described));
    try {
      const layers: Layer[] = [
        { kind: kind.kind, digest, size },
        { kind: 'config', digest: config.digest, size: config.size },
      ];
      const manifest = composeManifest(layers);
      await this.writeManifest(
        name, origin ? `${manifest.slice(0, -1)},"bezel":${JSON.stringify(origin)}}` : manifest,
      );
    } finally {
      await config.release();
    }
  }

  private async one(name: ModelName): Promise<StoredModel> {
    const model =
      (await this.list()).find((m) => m.name.toLowerCase() === name.short.toLowerCase());
    if (!model) throw new BezelError(`${name.short} was deleted in another tab`, 'not-found');
    return model;
  }

  private async writeManifest(name: ModelName, manifest: string): Promise<void> {
    await alone(MANIFESTS, async () => {
      const old = await this.files.find(fullName(name));
      const before = old ? await this.layers(old) : [];
      const [host, namespace, model, tag] = pathOf(old ?? name) as [string, string, string, string];
      let folder = await this.root.getDirectoryHandle('manifests', { create: true });
      for (const part of [host, namespace, model])
        folder = await folder.getDirectoryHandle(part, { create: true });
      const part = await PartialFile.open(this.folders.partial, 'manifest');
      part.reset({});
      part.append(new TextEncoder().encode(manifest));
      await part.finish(folder, tag);
      await handles.remove('files', fullName(name).toLowerCase());
      await this.dropUnused(before);
    });
    tellChanged();
  }

  /** Layers of a manifest; of one that makes no sense, none. */
  private async layers(name: ModelName): Promise<Layer[]> {
    try {
      return parseManifest(this.core, await this.files.manifest(name));
    } catch (e) {
      if (e instanceof BezelError && e.kind !== 'memory') return [];
      throw e;
    }
  }

  /** Call it something else. */
  async rename(text: string, as: string): Promise<StoredModel> {
    const [name, to] = [parseName(this.core, text), parseName(this.core, as)];
    await this.needFree(to);
    const found = await this.files.find(text), record = await this.record(name);
    if (!found && !record)
      throw new BezelError(`${name.short} is not in the store of this browser`, 'not-found');
    if (found) {
      await this.writeManifest(to, await this.files.manifest(found));
      await alone(MANIFESTS, () => this.removeManifest(pathOf(found)));
    } else if (record) {
      await handles.put('files', {
        ...record, key: fullName(to).toLowerCase(), model: { ...record.model, name: to.short },
      });
      await handles.remove('files', record.key);
    }
    tellChanged();
    return this.one(to);
  }

  // ---- deleting ----

  private async used(): Promise<Set<string>> {
    const used = new Set<string>();
    for (const name of await this.files.names())
      for (const layer of await this.layers(name)) used.add(blobName(layer.digest));
    return used;
  }

  /** Delete blobs that no manifest names and nobody reads or is about to name; says how many
   *  bytes that freed. */
  private async dropUnused(layers: readonly Layer[]): Promise<number> {
    const used = await this.used();
    let freed = 0;
    for (const layer of layers) {
      const blob = blobName(layer.digest);
      if (used.has(blob)) continue;
      await ifAlone(keepName(blob), async () => {
        freed += (await blobSize(this.folders.blobs, layer.digest)) ?? 0;
        await removeFile(this.folders.blobs, blob);
      });
    }
    return freed;
  }

  /** Delete a model; blobs that another model shares stay. A file that is read in place is only
   *  forgotten. */
  async delete(text: string): Promise<{ freed: number }> {
    const name = parseName(this.core, text);
    const freed = await alone(MANIFESTS, async () => {
      const found = await this.files.find(text);
      const record = await this.record(name);
      if (!found && !record)
        throw new BezelError(`${name.short} is not in the store of this browser`, 'not-found');
      if (!found) {
        await handles.remove('files', fullName(name).toLowerCase());
        return 0;
      }
      const layers = await this.layers(found);
      await this.removeManifest(pathOf(found));
      return this.dropUnused(layers);
    });
    tellChanged();
    return { freed };
  }

  /** The manifest, and folders that are empty without it. */
  private async removeManifest(path: readonly string[]): Promise<void> {
    for (let n = path.length; n > 0; n--) {
      const folder = await folderAt(this.root, ['manifests', ...path.slice(0, n - 1)]);
      try {
        await folder?.removeEntry(path[n - 1] ?? '');
      } catch (e) {
        if (isError(e, 'InvalidModificationError')) return; // others are in it
        throw e;
      }
    }
  }

  // ---- housekeeping ----

  /** Downloads that can be gone on with: pull the same again. */
  unfinished(): Promise<Unfinished[]> {
    return unfinishedIn(this.files.tree);
  }

  /** Throw away an unfinished download; false where a tab is at work on it. */
  async discard(key: string): Promise<boolean> {
    return ifAlone(writeName(key), async () => {
      await removeFile(this.folders.partial, key);
      await removeFile(this.folders.partial, journalName(key));
    });
  }

  /** Throw away what nobody has needed for a while: unfinished downloads, and blobs without a
   *  model. */
  async collect(olderThan = OLD): Promise<void> {
    const { tree } = this.files;
    const isOld = async (path: readonly string[], age = olderThan): Promise<boolean> =>
      ((await tree.file(path))?.modified ?? Infinity) <= Date.now() - age;
    await alone(MANIFESTS, async () => {
      const used = await this.used();
      for (const blob of await tree.names(['blobs'], 'file'))
        if (!used.has(blob) && (await isOld(['blobs', blob])))
          await ifAlone(keepName(blob), () => removeFile(this.folders.blobs, blob));
    });
    for (const file of await tree.names(['partial'], 'file')) {
      const age = file.startsWith(EXPORT) ? Math.min(olderThan, EXPORTED) : olderThan;
      if (await isOld(['partial', file], age)) await this.discard(file.replace(/\.journal$/, ''));
    }
  }

  usage(): Promise<StoreUsage> {
    return usageOf(this.files.tree);
  }

  /** Ask for storage that lasts. Only a page can: in a worker this says how it is (see
   *  requestPersistence). */
  persist(): Promise<boolean> {
    return requestPersistence();
  }

  /** Call back when any tab has changed the store; stop with the returned function. */
  onChange(changed: () => void): () => void {
    return onStoreChange(changed);
  }
}
