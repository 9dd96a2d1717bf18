// disk_writer - changes to the machine's Ollama folder: what `ollama pull`, `cp`, `rm` and `create`
// do to it, with the same names, texts and modes. Node only.
//
//     <root>/partial/    locks, and blobs on their way in; Ollama does not look there
//
// Blobs are written and deleted, and manifests changed, by who holds the lock `manifests`; who is
// about to name blobs in a manifest keeps them from being deleted by a lock that names them. Ollama
// takes no locks: it and we agree on nothing but that a blob and a manifest come whole, by a move.

import * as crypto from 'node:crypto';
import * as fs from 'node:fs';
import * as path from 'node:path';

import { BezelError, type Core } from '../engine/wasm.js';
import { DiskStore, storeRoot } from './disk_store.js';
import { aloneWith, holdFile, usedNow } from './file_locks.js';
import type { Release } from './locks.js';
import {
  blobName, fullName, layersOf, parseName, pathOf, type ModelName, type RawLayer,
} from './manifest.js';
import { bytesText } from './platform.js';

const MANIFESTS = 'manifests';

const isCode = (e: unknown, ...codes: string[]): boolean =>
  codes.includes((e as NodeJS.ErrnoException | undefined)?.code ?? '');

/** What the system says of a file that could not be written, as one sentence about the store. */
export function writeError(root: string, e: unknown): unknown {
  if (isCode(e, 'ENOSPC', 'EDQUOT'))
    return new BezelError(
      `the disk of ${root} is full; what was written is kept, and the next pull goes on from there`,
      'limit',
      e,
    );
  if (isCode(e, 'EACCES', 'EPERM', 'EROFS'))
    return new BezelError(
      `the store ${root} cannot be written by this user: its owner can (sudo -u ollama ...), a `
        + 'running Ollama can (ollama pull), or --store DIR names another',
      'io',
      e,
    );
  return e instanceof Error && 'syscall' in e
    ? new BezelError(`the store ${root} cannot be written: ${e.message}`, 'io', e)
    : e;
}

const same = (a: string, b: string): boolean => a.toLowerCase() === b.toLowerCase();

/** The name in the letters that names in the store already have, as far as they are the same:
 *  "HF.co/unsloth/x:q8" becomes "hf.co/Unsloth/x:q8" where hf.co/Unsloth/x:q4 is there. */
export function adoptCase(name: ModelName, names: readonly ModelName[]): ModelName {
  const parts = ['host', 'namespace', 'model', 'tag'] as const, out = { ...name };
  let left = names;
  for (const part of parts) {
    left = left.filter((n) => same(n[part], name[part]));
    const [first] = left;
    if (!first) break;
    out[part] = first[part];
  }
  return out;
}

export interface Freed {
  /** Bytes. */
  freed: number;
}

export class DiskWriter {
  readonly store: DiskStore;
  readonly partial: string;

  private constructor(private readonly core: Core, readonly root: string) {
    this.store = DiskStore.open(core, root);
    this.partial = path.join(root, 'partial');
  }

  /** Where the store is, or where Ollama would make it. */
  static async open(core: Core, wish?: string): Promise<DiskWriter> {
    const place = storeRoot(wish);
    try {
      await fs.promises.mkdir(path.join(place, MANIFESTS), { recursive: true, mode: 0o755 });
      const root = await fs.promises.realpath(place);
      const writer = new DiskWriter(core, root);
      await writer.folder('partial');
      await writer.folder('blobs');
      return writer;
    } catch (e) {
      throw writeError(place, e);
    }
  }

  /** A folder below the root, made if need be, that no link leads out of. */
  private async folder(...names: readonly string[]): Promise<string> {
    let at = this.root;
    for (const name of names) {
      const wish = path.join(at, name);
      await fs.promises.mkdir(wish, { recursive: true, mode: 0o755 });
      at = await fs.promises.realpath(wish);
      if (!at.startsWith(this.root.replace(/[/\\]*$/, path.sep)))
        throw new BezelError(
          `${wish} is a link that leads out of the store ${this.root}`, 'format',
        );
    }
    return at;
  }

  /** The name as the store would have it. */
  async nameOf(text: string): Promise<ModelName> {
    const name = adoptCase(parseName(this.core, text), await this.store.names());
    return parseName(this.core, fullName(name));
  }

  // ---- blobs ----

  blobPath(digest: string): string {
    return path.join(this.root, 'blobs', blobName(digest));
  }

  /** How long a blob is, undefined where it is not there. */
  async blobSize(digest: string): Promise<number | undefined> {
    const info = await fs.promises.stat(this.blobPath(digest)).catch((e: unknown) => {
      if (isCode(e, 'ENOENT')) return undefined;
      throw e;
    });
    return info?.isFile() ? info.size : undefined;
  }

  /** Bytes that can still be written; Infinity where the system does not say. */
  async room(): Promise<number> {
    const { bavail, bsize } = await fs.promises.statfs(this.root);
    return bsize > 0 ? bavail * bsize : Infinity;
  }

  async needRoom(label: string, bytes: number): Promise<void> {
    const left = await this.room();
    if (bytes > left)
      throw new BezelError(
        `there is no room for ${label}: it needs ${bytesText(bytes)} more, and the disk of `
          + `${this.root} has ${bytesText(left)} left`,
        'limit',
      );
  }

  /** Until the returned function is called, nobody deletes these blobs. */
  keep(digests: readonly string[]): Promise<Release> {
    const uses = digests.map(blobName);
    return this.alone(() => holdFile(this.partial, `keep-${crypto.randomUUID()}`, { uses }));
  }

  /** A text as a blob, as Ollama writes one. */
  async putText(mediaType: string, text: string): Promise<RawLayer> {
    const bytes = Buffer.from(text);
    const digest = crypto.createHash('sha256').update(bytes).digest('hex');
    if ((await this.blobSize(digest)) !== bytes.length)
      await this.replace(this.blobPath(digest), bytes);
    return { mediaType, digest, size: bytes.length };
  }

  /** Bytes as a blob, as they come; false, and nothing kept: they are not what the digest says. */
  async putBytes(digest: string, pieces: AsyncIterable<Uint8Array>): Promise<boolean> {
    const next = path.join(this.partial, `new-${crypto.randomUUID()}`);
    const hash = crypto.createHash('sha256');
    const handle = await fs.promises.open(next, 'wx', 0o644);
    try {
      for await (const piece of pieces) {
        hash.update(piece);
        await handle.writeFile(piece);
      }
      if (hash.digest('hex') !== digest) return false;
      await handle.datasync();
      await fs.promises.rename(next, this.blobPath(digest));
      return true;
    } catch (e) {
      throw writeError(this.root, e);
    } finally {
      await handle.close();
      await fs.promises.rm(next, { force: true });
    }
  }

  /** A file in one move: whole, or as it was. */
  private async replace(file: string, bytes: Buffer): Promise<void> {
    const next = path.join(this.partial, `new-${crypto.randomUUID()}`);
    const handle = await fs.promises.open(next, 'wx', 0o644);
    try {
      await handle.writeFile(bytes);
      await handle.datasync();
      await handle.close();
      await fs.promises.rename(next, file);
    } catch (e) {
      await handle.close().catch(() => {}); // closed already
      await fs.promises.rm(next, { force: true });
      throw writeError(this.root, e);
    }
  }

  // ---- manifests ----

  /** One change at a time; what the system refuses is said as a sentence. */
  private async alone<T>(work: () => Promise<T>): Promise<T> {
    try {
      return await aloneWith(this.partial, MANIFESTS, work);
    } catch (e) {
      throw writeError(this.root, e);
    }
  }

  /** A model gets its manifest, byte for byte. Blobs that only the one before it named are
   *  deleted. False, and nothing done: a blob that it names is not there. */
  writeManifest(name: ModelName, manifest: string): Promise<boolean> {
    return this.alone(async () => {
      for (const { digest, size } of layersOf(manifest))
        if ((await this.blobSize(digest)) !== size) return false;
      const before = await this.rawLayers(name);
      const [host, space, model, tag] = pathOf(name) as [string, string, string, string];
      const folder = await this.folder(MANIFESTS, host, space, model);
      await this.replace(path.join(folder, tag), Buffer.from(manifest));
      await this.drop(before, await usedNow(this.partial));
      return true;
    });
  }

  /** Layers of a model that is there; of one that makes no sense, none. */
  private async rawLayers(name: ModelName): Promise<RawLayer[]> {
    try {
      return layersOf(await this.store.manifest(name));
    } catch (e) {
      if (e instanceof BezelError && e.kind !== 'memory') return [];
      throw e;
    }
  }

  /** Deletes those of the blobs that no manifest names; says how many bytes that freed. */
  private async drop(layers: readonly RawLayer[], kept: ReadonlySet<string>): Promise<number> {
    const used = new Set(kept);
    for (const name of await this.store.names())
      for (const { digest } of await this.rawLayers(name)) used.add(blobName(digest));
    let freed = 0;
    for (const { digest } of layers) {
      if (used.has(blobName(digest))) continue;
      used.add(blobName(digest));
      freed += (await this.blobSize(digest)) ?? 0;
      await fs.promises.rm(this.blobPath(digest), { force: true });
    }
    return freed;
  }

  /** Blobs that turned out to be of no use are deleted, unless a model has them. */
  forget(layers: readonly RawLayer[]): Promise<Freed> {
    return this.alone(async () => ({
      freed: await this.drop(layers, await usedNow(this.partial)),
    }));
  }

  private async need(text: string): Promise<ModelName> {
    const name = await this.store.find(text);
    if (!name)
      throw new BezelError(
        `there is no model ${parseName(this.core, text).short} in the store ${this.root}`,
        'not-found',
      );
    return name;
  }

  /** Delete a model, and the blobs that no other has. */
  remove(text: string): Promise<Freed> {
    return this.alone(async () => {
      const name = await this.need(text), layers = await this.rawLayers(name);
      const busy = await usedNow(this.partial);
      if (layers.some(({ digest }) => busy.has(blobName(digest))))
        throw new BezelError(
          `${name.short} is in use: a pull needs some of its files; stop the pull or wait for it`,
          'argument',
        );
      const parts = [MANIFESTS, ...pathOf(name)];
      await fs.promises.rm(path.join(this.root, ...parts));
      for (let n = parts.length - 1; n > 1; n--) {
        const left = await fs.promises.rmdir(path.join(this.root, ...parts.slice(0, n))).then(
          () => false, (e: unknown) => isCode(e, 'ENOTEMPTY', 'EEXIST') || Promise.reject(e),
        );
        if (left) break;
      }
      return { freed: await this.drop(layers, busy) };
    });
  }

  /** The same model under another name, in place of what has that name. */
  async copy(from: string, to: string): Promise<ModelName> {
    const source = await this.need(from), name = await this.nameOf(to);
    if (fullName(source) === fullName(name)) return name;
    if (!(await this.writeManifest(name, await this.store.manifest(source))))
      throw new BezelError(
        `${source.short} has lost files, so that it cannot be copied; pull it again`, 'format',
      );
    return name;
  }
}
