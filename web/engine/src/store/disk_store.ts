// disk_store - the machine's own Ollama folder, read only (disk_writer.ts changes it). Node only.

import * as fs from 'node:fs';
import * as os from 'node:os';
import * as path from 'node:path';

import { BezelError, type Core } from '../engine/wasm.js';
import { OllamaStore, type Tree, type TreeFile } from './ollama_store.js';

/** Ollama strips space and quotes around the variable, and so do we. */
function fromEnvironment(): string | undefined {
  return process.env.OLLAMA_MODELS?.replace(/^[\s"']+|[\s"']+$/g, '') || undefined;
}

/** Places where a store may be: the one that was asked for, or those where Ollama keeps it. */
function places(wish: string | undefined): string[] {
  const set = wish ?? fromEnvironment();
  return set !== undefined
    ? [set]
    : [path.join(os.homedir(), '.ollama/models'), '/usr/share/ollama/.ollama/models'];
}

const isStore = (p: string): boolean => fs.existsSync(path.join(p, 'manifests'));

/** Where the store is: `wish`, or where Ollama keeps it. */
function findRoot(wish: string | undefined): string {
  const all = places(wish), root = all.find(isStore);
  if (!root)
    throw new BezelError(
      all.length > 1
        ? `no Ollama store at ${all.join(' or ')}; set OLLAMA_MODELS to where it is`
        : `${all[0]} is not an Ollama store: it has no directory "manifests"`,
      'not-found',
    );
  return fs.realpathSync(root);
}

/** The same for who writes: where there is no store, the place where Ollama would make one. */
export const storeRoot = (wish?: string): string => {
  const all = places(wish);
  return path.resolve(all.find(isStore) ?? (all[0] as string));
};

const isAbsent = (e: unknown): boolean =>
  ['ENOENT', 'ENOTDIR'].includes((e as NodeJS.ErrnoException).code ?? '');

/** Links are followed, and must end below the root. */
class DiskTree implements Tree {
  constructor(readonly place: string) {}

  private async inside(names: readonly string[]): Promise<string | undefined> {
    const wish = path.join(this.place, ...names);
    try {
      const real = await fs.promises.realpath(wish);
      if (!real.startsWith(this.place.replace(/[/\\]*$/, path.sep)))
        throw new BezelError(
          `${wish} is a link that leads out of the store ${this.place}`, 'format',
        );
      return real;
    } catch (e) {
      if (isAbsent(e)) return undefined;
      throw e;
    }
  }

  async names(folder: readonly string[], kind: 'folder' | 'file'): Promise<string[]> {
    const names: string[] = [];
    try {
      const at = await this.inside(folder);
      if (!at) return names;
      for (const name of await fs.promises.readdir(at)) {
        // a link to nowhere
        const info = await fs.promises.stat(path.join(at, name)).catch(() => undefined);
        if (kind === 'file' ? info?.isFile() : info?.isDirectory()) names.push(name);
      }
    } catch {
      // it cannot be entered, or leads outside: a store may hold rubbish beside its models
      return [];
    }
    return names;
  }

  async file(names: readonly string[]): Promise<TreeFile | undefined> {
    const real = await this.inside(names);
    const info = real && (await fs.promises.stat(real));
    // only plain files: a pipe would hold us up
    if (!real || !info || !info.isFile()) return undefined;
    const text = async (max: number): Promise<string> => {
      if (info.size > max)
        throw new BezelError(
          `${real} has ${info.size} bytes, more than any text of a store`, 'format',
        );
      return fs.promises.readFile(real, 'utf8');
    };
    return { size: info.size, modified: info.mtimeMs, ref: { kind: 'path', path: real }, text };
  }
}

export class DiskStore extends OllamaStore {
  /** `folder`: another one than where Ollama keeps its models. */
  static open(core: Core, folder?: string): DiskStore {
    return new DiskStore(core, new DiskTree(findRoot(folder)));
  }
}
