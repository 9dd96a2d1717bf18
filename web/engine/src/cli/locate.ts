// locate - what a person means by MODEL: a path, or a name in the Ollama store. Node only.
//
// As src/io/locate.c: a path that exists is a file, anything else is looked up. Nothing that a manifest
// says can reach a file outside the store, since names and digests are checked by the core.

import * as fs from 'node:fs';
import * as os from 'node:os';
import * as path from 'node:path';

import type { StoreTexts } from '../cpu_engine.js';
import { fileSource, type Source } from '../source.js';
import { BezelError, type Core } from '../wasm.js';

export interface Located {
  readonly sources: Source[];
  readonly store: StoreTexts | undefined;
  readonly adapters: string[]; // paths
}

interface Layer {
  readonly kind: string;
  readonly digest: string;
  readonly size: number;
}

async function openFile(file: string): Promise<Source> {
  try {
    return await fileSource(file);
  } catch (e) {
    const code = (e as NodeJS.ErrnoException).code;
    throw new BezelError(`${file}: ${code === 'ENOENT' ? 'no such file' : (e as Error).message}`, code === 'ENOENT' ? 'not-found' : 'io', e);
  }
}

/** A name such as model-00001-of-00003.gguf brings its siblings along. */
async function openPath(file: string): Promise<Source[]> {
  const [, stem, no, count] = /^(.*)-(\d{5})-of-(\d{5})\.gguf$/s.exec(file) ?? [];
  const n = Number(count);
  if (!stem || Number(no) < 1 || Number(no) > n) return [await openFile(file)];
  const names = Array.from({ length: n }, (_, i) => `${stem}-${String(i + 1).padStart(5, '0')}-of-${count}.gguf`);
  return Promise.all(names.map(openFile));
}

function findRoot(wish: string | undefined): string {
  const places = [wish, process.env.OLLAMA_MODELS, path.join(os.homedir(), '.ollama/models'), '/usr/share/ollama/.ollama/models'];
  const tried = wish !== undefined ? [wish] : places;
  const root = tried.find((p) => p && fs.existsSync(path.join(p, 'manifests')));
  if (!root) throw new BezelError(`there is no Ollama store${wish === undefined ? '' : ` in ${wish}`}`, 'not-found');
  return root;
}

/** The entry of a folder with this name, exact or but for the case of its letters. */
function entry(folder: string, name: string): string | undefined {
  if (!fs.existsSync(folder)) return undefined;
  const all = fs.readdirSync(folder);
  const found = all.includes(name) ? name : all.find((e) => e.toLowerCase() === name.toLowerCase());
  return found && path.join(folder, found);
}

/** The manifest's path below the root, and the name in the case that the store has it. */
function findManifest(core: Core, root: string, model: string): { file: string; name: string } {
  core.with(model, (p, n) => core.checkNumber(core.exports.bz_wasm_store_name(p, n)));
  const name = JSON.parse(core.resultText()) as Record<'host' | 'namespace' | 'model' | 'tag' | 'short', string>;
  let at: string | undefined = path.join(root, 'manifests');
  for (const part of [name.host, name.namespace, name.model, name.tag]) at = at && entry(at, part);
  if (!at) throw new BezelError(`${name.short} is not in the store ${root}`, 'not-found');
  const parts = at.split(path.sep).slice(-4);
  return { file: at, name: `${parts.slice(0, 3).join('/')}:${parts[3]}` };
}

async function openStore(core: Core, model: string, wish: string | undefined): Promise<Located> {
  const root = fs.realpathSync(findRoot(wish));
  const { file, name } = findManifest(core, root, model);
  const manifest = fs.readFileSync(file, 'utf8');
  core.with(manifest, (p, n) => core.checkNumber(core.exports.bz_wasm_store_manifest(p, n)));
  const layers = JSON.parse(core.resultText()) as Layer[];
  const blob = (l: Layer): string => path.join(root, 'blobs', `sha256-${l.digest}`);
  const models = layers.filter((l) => l.kind === 'model');
  if (!models.length) throw new BezelError("the model's manifest names no weights", 'format');
  const store: StoreTexts = { name, root, manifest };
  for (const kind of ['config', 'params', 'system', 'messages'] as const) {
    const layer = layers.find((l) => l.kind === kind);
    if (layer) store[kind] = fs.readFileSync(blob(layer), 'utf8');
  }
  return {
    sources: await Promise.all(models.map((l) => openFile(blob(l)))),
    store,
    adapters: layers.filter((l) => l.kind === 'adapter').map(blob),
  };
}

export async function locate(core: Core, model: string, store: string | undefined): Promise<Located> {
  const isPath = fs.existsSync(model) || model.startsWith('/') || model.startsWith('.') || model.endsWith('.gguf');
  return isPath ? { sources: await openPath(model), store: undefined, adapters: [] } : openStore(core, model, store);
}
