// engine_source - what a caller means by a model: files, addresses, paths and names to references
// that can be sent to a worker. Opens nothing and downloads nothing.

import type { AdapterRef, ModelRef } from '../engine/engine_calls.js';
import { BezelError } from './errors.js';
import { checkAdapter } from './load_request.js';
import { isNode, nodeFiles } from '../load/node_files.js';
import { shippedModel } from '../store/shipped.js';
import type { ResolvedModel, SourceRef } from '../store/source_ref.js';

/** A File or Blob, the handle of a file, an address, a name that a store knows, or bytes. In Node
 *  also a path, and "tiny", the small model that comes with the package. */
export type ModelSource =
  string | URL | Blob | FileSystemFileHandle | ArrayBuffer | Uint8Array | SourceRef;

/** Anything that knows models by name. */
export interface NameResolver {
  resolve(name: string): Promise<ResolvedModel>;
}

const fileName = (path: string): string =>
  path.replace(/[?#].*$/s, '').split(/[/\\]/).filter(Boolean).at(-1) ?? path;
const bareName = (path: string): string => fileName(path).replace(/\.gguf$/i, '');

/** A path or address such as model-00001-of-00003.gguf brings its siblings along. */
export function shards(path: string): string[] {
  const [, stem, no, count, tail = ''] =
    /^(.*)-(\d{5})-of-(\d{5})\.gguf([?#].*)?$/s.exec(path) ?? [];
  if (!stem || Number(no) < 1 || Number(no) > Number(count)) return [path];
  return Array.from(
    { length: Number(count) },
    (_, i) => `${stem}-${String(i + 1).padStart(5, '0')}-of-${count}.gguf${tail}`,
  );
}

function pathRefs(path: string): SourceRef[] {
  return shards(path).map((p) => ({ kind: 'path', path: p }));
}

function urlRefs(url: string): SourceRef[] {
  return shards(url).map((u) => ({ kind: 'url', url: u }));
}

const looksLikePath = (text: string): boolean =>
  /^\.{0,2}[/\\]/.test(text) || /\.(gguf|safetensors)([?#]|$)/i.test(text);

interface Found {
  name: string;
  refs: SourceRef[];
  resolved?: ResolvedModel;
}

async function fromText(text: string, store: NameResolver | undefined): Promise<Found> {
  if (/^(https?|blob|data):/i.test(text)) return { name: bareName(text), refs: urlRefs(text) };
  if (isNode()) {
    const path = /^file:/i.test(text) ? decodeURIComponent(new URL(text).pathname) : text;
    const is = nodeFiles().statSync(path, { throwIfNoEntry: false });
    if (is?.isFile()) return { name: bareName(path), refs: pathRefs(path) };
    const shipped = store ? undefined : shippedModel(text);
    if (shipped !== undefined) return { name: text, refs: pathRefs(shipped) };
    if (!store || looksLikePath(path))
      throw new BezelError(
        `${path}: no such file`
          + (store || looksLikePath(path) ? '' : ', and no store was given that could know a name'),
        'not-found',
      );
  } else if (looksLikePath(text)) {
    return { name: bareName(text), refs: urlRefs(new URL(text, globalThis.location?.href).href) };
  }
  if (!store)
    throw new BezelError(
      `"${text}" is a name, and no store was given that could know it`, 'not-found',
    );
  const resolved = await store.resolve(text);
  return { name: resolved.name, refs: resolved.model, resolved };
}

const isRef = (s: object): s is SourceRef =>
  typeof (s as { kind?: unknown }).kind === 'string'
    && ['file', 'handle', 'opfs', 'url', 'path', 'memory'].includes((s as { kind: string }).kind)
    && !('getFile' in s);

async function find(source: ModelSource, store: NameResolver | undefined): Promise<Found> {
  if (typeof source === 'string') return fromText(source, store);
  if (source instanceof URL) return fromText(source.href, store);
  if (source instanceof Blob) {
    const name = 'name' in source && typeof source.name === 'string' ? source.name : 'blob';
    return { name: bareName(name), refs: [{ kind: 'file', file: source, name }] };
  }
  if (source instanceof ArrayBuffer || source instanceof Uint8Array)
    return {
      name: 'memory',
      refs: [{
        kind: 'memory',
        name: 'memory',
        bytes: source instanceof Uint8Array ? source : new Uint8Array(source),
      }],
    };
  if (typeof source !== 'object' || source === null)
    throw new BezelError('a model is a file, an address, a path or a name', 'argument');
  if (isRef(source))
    return {
      name: 'path' in source
        ? bareName(source.path)
        : 'url' in source
          ? bareName(source.url)
          : 'name' in source && source.name ? bareName(source.name) : 'model',
      refs: [source],
    };
  if (typeof source.getFile === 'function')
    return { name: bareName(source.name), refs: [{ kind: 'handle', handle: source }] };
  throw new BezelError('a model is a file, an address, a path or a name', 'argument');
}

export async function findModel(
  source: ModelSource, store: NameResolver | undefined,
): Promise<ModelRef> {
  const { name, refs, resolved } = await find(source, store);
  if (resolved?.kind === 'adapter')
    throw new BezelError(
      `${name} is an adapter; load its model and add it with engine.adapters.add`, 'argument',
    );
  const own = resolved?.adapters ?? [];
  return {
    name,
    sources: refs,
    ...(resolved && { store: resolved.store }),
    adapters:
      own.map((ref, i) => ({ name: own.length > 1 ? `${name}#${i + 1}` : name, source: ref })),
  };
}

export interface AdapterSource {
  source: ModelSource;
  name?: string;
  scale?: number;
  /** PEFT's adapter_config.json, where the source is PEFT's weights: its text, or the object. */
  config?: string | Record<string, unknown>;
}

export async function findAdapter(
  adapter: AdapterSource, store: NameResolver | undefined,
): Promise<AdapterRef> {
  const { source, name, scale, config } = checkAdapter(adapter);
  const found = await find(source, store);
  const [ref] = found.resolved ? found.resolved.adapters : found.refs;
  if (!ref) throw new BezelError(`${found.name} has no adapter`, 'not-found');
  const text = config === undefined
    ? (found.resolved?.kind === 'adapter' ? found.resolved.store.config : undefined)
    : typeof config === 'string' ? config : JSON.stringify(config);
  return {
    name: name ?? found.name, source: ref, ...(scale !== undefined && { scale }),
    ...(text !== undefined && { config: text }),
  };
}
