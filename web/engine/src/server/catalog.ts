// catalog - the models on this machine: those of the Ollama store, those that ship with Bezel, and
// a file named at the start. The store sees to it that no name, manifest or link leads out of it
// (store/disk_store.ts).

import * as crypto from 'node:crypto';
import * as fs from 'node:fs';
import * as path from 'node:path';

import { inspect } from '../engine/cpu_engine.js';
import { shards } from '../api/engine_source.js';
import { fileSource, type Source } from '../load/source.js';
import type { DiskStore } from '../store/disk_store.js';
import type { ModelTexts } from '../store/ollama_store.js';
import { inspectFile } from '../store/inspect_file.js';
import {
  blobName, composeManifest, parseName, type Layer,
} from '../store/manifest.js';
import type { StoredModel } from '../store/source_ref.js';
import { BezelError, type Core } from '../engine/wasm.js';
import type { Content } from './content.js';

/** A model by its name. Its digest is that of the weights; '' while a large file is still being
 *  read. */
export interface Entry extends StoredModel {
  /** Empty where the model can be run here and not be handed on. */
  readonly manifest: string;
  /** The file, for what does not lie in the store. */
  readonly file?: string;
}

interface Shipped {
  readonly entry: Entry;
  readonly blobs: ReadonlyMap<string, string | Buffer>; // by digest: a path, or the bytes
}

const sha256 = (data: Buffer): string => crypto.createHash('sha256').update(data).digest('hex');

async function fileDigest(file: string): Promise<string> {
  const hash = crypto.createHash('sha256');
  for await (const part of fs.createReadStream(file, { highWaterMark: 1 << 20 }))
    hash.update(part as Buffer);
  return hash.digest('hex');
}

/** All of them, or none. */
async function openFiles(files: readonly string[]): Promise<Source[]> {
  const sources: Source[] = [];
  try {
    for (const file of files) sources.push(await fileSource(file));
    return sources;
  } catch (e) {
    for (const s of sources) s.close();
    throw e;
  }
}

async function openFile(file: string): Promise<{ size: number; bytes: fs.promises.FileHandle }> {
  const bytes =
    await fs.promises.open(file, fs.constants.O_RDONLY | (fs.constants.O_NOFOLLOW ?? 0));
  try {
    const { size } = await bytes.stat();
    return { size, bytes };
  } catch (e) {
    await bytes.close();
    throw e;
  }
}

export interface CatalogOptions {
  store?: DiskStore | undefined;
  /** Asked again and again while there is no store: a pull may make one. */
  findStore?: () => DiskStore | undefined;
  /** GGUF files by the name under which they are offered. */
  files?: Readonly<Record<string, string>>;
  /** Adapters' files by the name that errors call them. */
  adapters?: Readonly<Record<string, string>>;
  say?: ((line: string) => void) | undefined;
}

export class Catalog {
  store: DiskStore | undefined;
  private readonly shipped = new Map<string, Shipped>();
  private readonly contexts = new Map<string, number>(); // by manifest or file

  private constructor(private readonly core: Core, private readonly options: CatalogOptions) {
    this.store = options.store;
  }

  /** Reads each file once for its digest, large ones after it has returned. */
  static async open(core: Core, options: CatalogOptions = {}): Promise<Catalog> {
    const catalog = new Catalog(core, options);
    for (const [name, given] of Object.entries(options.files ?? {})) {
      // its parts are found by the name that was given, which may be a link's
      const split = shards(given).length > 1;
      const file = split ? path.resolve(given) : fs.realpathSync(given);
      const small = fs.statSync(file).size <= 64 << 20;
      await catalog.ship(name, file, small && !split ? await fileDigest(file) : '');
      if (small || split) continue; // the parts of a split model are run here and not handed on
      fileDigest(file)
        .then((digest) => catalog.ship(name, file, digest))
        .catch((e: Error) => options.say?.(`${file}: ${e.message}`));
    }
    return catalog;
  }

  /** What this engine might run; the store comes first where names are the same. */
  async list(): Promise<StoredModel[]> {
    this.store ??= this.options.findStore?.();
    const stored = ((await this.store?.list()) ?? []).filter((m) =>
      m.kind === 'model' && /^(gemma4|diffusion-gemma|$)/.test(m.family ?? ''));
    const names = new Set(stored.map((m) => m.name.toLowerCase()));
    const others = [...this.shipped.values()].map((s) => s.entry).filter((e) =>
      !names.has(e.name.toLowerCase()));
    return [...stored, ...others].sort((a, b) =>
      (b.modified ?? 0) - (a.modified ?? 0) || (a.name < b.name ? -1 : 1));
  }

  /** By any way of writing the name: "gemma4", "library/Gemma4:latest". */
  async find(text: string): Promise<Entry | undefined> {
    let short: string;
    try {
      short = parseName(this.core, text).short.toLowerCase();
    } catch (e) {
      // not a name that a store could have
      if (e instanceof BezelError && e.kind !== 'memory') return undefined;
      throw e;
    }
    this.store ??= this.options.findStore?.();
    const name = await this.store?.find(text);
    if (!this.store || !name) return this.shipped.get(short)?.entry;
    const about = (await this.store.list()).find((m) => m.name === name.short);
    return about && { ...about, manifest: await this.store.manifest(name) };
  }

  /** The small texts beside the weights, by kind. */
  async texts(entry: Entry): Promise<ModelTexts> {
    return entry.file === undefined ? ((await this.store?.texts(entry.manifest)) ?? {}) : {};
  }

  /** Metadata of the weights, long lists left out as Ollama does. */
  async metadata(entry: Entry): Promise<Record<string, unknown>> {
    const resolved = entry.file === undefined ? await this.store?.resolve(entry.name) : undefined;
    const files = entry.file === undefined
      ? (resolved?.model ?? []).flatMap((ref) => (ref.kind === 'path' ? [ref.path] : []))
      : shards(entry.file);
    const sources = await openFiles(files);
    try {
      const { keys = {}, parameters = 0 } = JSON.parse(
        inspect(this.core, sources, { json: true, keys: true }),
      ) as { keys?: Record<string, unknown>; parameters?: number };
      const short = Object.entries(keys).map(([k, v]) =>
        [k, typeof v === 'object' && !Array.isArray(v) ? null : v] as const);
      return { 'general.parameter_count': parameters, ...Object.fromEntries(short) };
    } finally {
      for (const s of sources) s.close();
    }
  }

  /** The most tokens that the model was made for. */
  async contextLength(entry: Entry): Promise<number> {
    const key = entry.file ?? entry.manifest, known = this.contexts.get(key);
    if (known !== undefined) return known;
    const data = await this.metadata(entry);
    const found = Number(data[`${String(data['general.architecture'])}.context_length`]);
    const n = found > 0 ? found : Infinity; // one that does not say is asked to try
    this.contexts.set(key, n);
    return n;
  }

  /** A blob by its digest, opened. */
  async blob(hex: string): Promise<Content | undefined> {
    if (!/^[0-9a-f]{64}$/i.test(hex)) return undefined;
    const digest = hex.toLowerCase();
    // Who wants to keep a model keeps it in a store of its own: a browser's cache would hold
    // gigabytes a second time.
    const common = {
      etag: `"sha256:${digest}"`, type: 'application/octet-stream',
      headers: { 'cache-control': 'no-store' },
    };
    for (const { blobs } of this.shipped.values()) {
      const found = blobs.get(digest);
      if (Buffer.isBuffer(found)) return { ...common, size: found.length, bytes: found };
      if (found !== undefined) return { ...common, ...(await openFile(found)) };
    }
    try {
      const ref = (await this.store?.tree.file(['blobs', blobName(digest)]))?.ref;
      return ref?.kind === 'path' ? { ...common, ...(await openFile(ref.path)) } : undefined;
    } catch (e) {
      // a link that leads out of the store
      if (e instanceof BezelError && e.kind === 'format') return undefined;
      throw e;
    }
  }

  /** Where things lie is this machine's business: who asks over the wire hears names instead, of
   *  the model or of an adapter. What is wrong with a field of a request is said in the request's
   *  own words, such as #/properties/a. */
  withoutPaths(e: unknown, name: string): unknown {
    if (!(e instanceof BezelError) || e.param !== undefined) return e;
    let shown = e.message;
    const files = [...this.shipped.values()].flatMap(({ entry }) =>
      (entry.file === undefined ? [] : shards(entry.file)));
    for (const file of files) shown = shown.replaceAll(file, name);
    const adapters = Object.entries(this.options.adapters ?? {});
    for (const [adapter, file] of adapters) shown = shown.replaceAll(file, adapter);
    // which may have spaces
    if (this.store)
      shown = shown.replaceAll(` ${this.store.tree.place}`, '').replaceAll(
        this.store.tree.place, '/its/store',
      );
    shown = shown.replace(/(?<![\w.:/\\])(?:[A-Za-z]:)?(?:[\\/][^\s:"'\\/,;()]+){2,}/g, name);
    return new BezelError(shown, e.kind, e);
  }

  /** A file as if it lay in a store: a manifest and a config are made for it. */
  private async ship(name: string, file: string, digest: string): Promise<void> {
    const sources = await openFiles(shards(file));
    const [first, ...parts] = sources as [Source, ...Source[]];
    const { short } = parseName(this.core, name);
    const size = sources.reduce((sum, s) => sum + s.size, 0);
    try {
      const { family = '', parameters = '', quantization = '' } =
        await inspectFile(this.core, first, undefined, parts);
      const config = Buffer.from(JSON.stringify({
        model_format: 'gguf', model_family: family, model_families: [family],
        model_type: parameters, file_type: quantization,
      }));
      const layers: Layer[] = [
        { kind: 'config', digest: sha256(config), size: config.length },
        { kind: 'model', digest, size },
      ];
      const about: StoredModel = {
        name: short, kind: 'model', size, digest, modified: fs.statSync(file).mtimeMs, family,
        parameters, quantization,
      };
      this.shipped.set(short.toLowerCase(), {
        entry: { ...about, file, manifest: digest && composeManifest(layers) },
        blobs: new Map<string, string | Buffer>(
          digest ? [[digest, file], [sha256(config), config]] : [],
        ),
      });
    } finally {
      for (const s of sources) s.close();
    }
  }
}
