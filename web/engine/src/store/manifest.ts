// manifest - Ollama's names and manifests, as the core reads them, and manifests that we write.

import { BezelError } from '../api/errors.js';
import type { Core } from '../engine/wasm.js';

/** Four path components below manifests/, safe to join, and the name as people write it. */
export interface ModelName {
  host: string;
  namespace: string;
  model: string;
  tag: string;
  short: string;
}

export interface Layer {
  kind: 'model' | 'projector' | 'adapter' | 'draft' | 'template' | 'system' | 'params' | 'messages'
    | 'license' | 'config';
  digest: string; // 64 hex digits
  size: number;
}

export const MAX_MANIFEST = 16 << 20;

/** Kinds that are texts for the core, and how long they may be. */
export const textKinds =
  { config: 4 << 20, params: 4 << 20, system: 4 << 20, messages: 16 << 20 } as const;

export function parseName(core: Core, text: string): ModelName {
  core.with(text, (p, n) => core.checkNumber(core.exports.bz_wasm_store_name(p, n)));
  return JSON.parse(core.resultText()) as ModelName;
}

export function parseManifest(core: Core, text: string): Layer[] {
  core.with(text, (p, n) => core.checkNumber(core.exports.bz_wasm_store_manifest(p, n)));
  return JSON.parse(core.resultText()) as Layer[];
}

export const pathOf = (name: ModelName): string[] => [
  name.host, name.namespace, name.model, name.tag,
];

/** The name with all its parts, which is the same in every store. */
export const fullName = (name: ModelName): string =>
  `${name.host}/${name.namespace}/${name.model}:${name.tag}`;

export const blobName = (digest: string): string => `sha256-${digest.toLowerCase()}`;

export const CONFIG_TYPE = 'application/vnd.docker.container.image.v1+json';
export const imageType = (kind: string): string => `application/vnd.ollama.image.${kind}`;

/** A model's manifest as Ollama writes it. */
export function composeManifest(layers: readonly Layer[]): string {
  const config = layers.find((l) => l.kind === 'config');
  const raw = ({ kind, ...rest }: Layer): RawLayer => ({
    ...rest, mediaType: kind === 'config' ? CONFIG_TYPE : imageType(kind),
  });
  return manifestText(config && raw(config), layers.filter((l) => l !== config).map(raw));
}

/** A layer by its media type, of whatever kind. */
export interface RawLayer {
  mediaType: string;
  digest: string; // 64 hex digits
  size: number;
  /** The model that it was taken from. */
  from?: string;
}

const entry = ({ mediaType, digest, size, from }: RawLayer) => ({
  mediaType, digest: `sha256:${digest}`, size, ...(from !== undefined && { from }),
});

export const manifestText = (
  config: RawLayer | undefined, layers: readonly RawLayer[],
): string => JSON.stringify({
  schemaVersion: 2,
  mediaType: 'application/vnd.docker.distribution.manifest.v2+json',
  ...(config && { config: entry(config) }),
  layers: layers.map(entry),
});

/** JSON as Ollama's language writes it, so that the same text has the same digest. */
export const goJson = (value: unknown): string =>
  `${JSON.stringify(value).replace(/[<>&\u2028\u2029]/g, (c) =>
    `\\u${c.charCodeAt(0).toString(16).padStart(4, '0')}`)}\n`;

const MAX_LAYERS = 1000; // as the core has it

/** All layers of a manifest, the config last, also those that the core has no use for: whoever
 *  pulls or deletes a model needs every blob. */
export function layersOf(manifest: string): RawLayer[] {
  const wrong = (why: string): BezelError => new BezelError(`the manifest ${why}`, 'format');
  let said: { layers?: unknown; config?: unknown } | null;
  try {
    said = JSON.parse(manifest) as typeof said;
  } catch (e) {
    throw e instanceof SyntaxError ? wrong('is not JSON') : e;
  }
  if (typeof said !== 'object' || !Array.isArray(said?.layers))
    throw wrong('has no list of layers');
  const config = said.config as Partial<RawLayer> | null | undefined;
  const all = [...(said.layers as unknown[]), ...(config?.digest ? [config] : [])];
  if (all.length > MAX_LAYERS) throw wrong(`has more than ${MAX_LAYERS} layers`);
  const sizes = new Map<string, number>();
  let total = 0;
  return all.map((layer) => {
    const { mediaType, digest, size, from } = (layer ?? {}) as Partial<RawLayer>;
    const said = typeof digest === 'string' ? digest : '';
    const [, hex] = /^sha256[:-]([0-9a-f]{64})$/i.exec(said) ?? [];
    if (hex === undefined || typeof mediaType !== 'string')
      throw wrong('has a layer without a sha256 digest');
    const key = hex.toLowerCase();
    if (!Number.isSafeInteger(size) || (size as number) < 0
      || !Number.isSafeInteger((total += size as number)) || (sizes.get(key) ?? size) !== size)
      throw wrong(`has an impossible size for layer sha256:${key.slice(0, 12)}`);
    sizes.set(key, size as number);
    return {
      mediaType, digest: key, size: size as number, ...(typeof from === 'string' && { from }),
    };
  });
}

/** Where a manifest that we wrote has its weights from, so that the same address is not fetched
 *  twice. */
export interface Origin {
  url: string;
  version: string;
}

/** A file's name as a model's. */
export function nameFromFile(file: string): string {
  const stem = file.replace(/\.(gguf|safetensors)$/i, '')
    .replace(/[^A-Za-z0-9._-]+/g, '-')
    .replace(/^[^A-Za-z0-9_]+/, '');
  return stem.slice(0, 80) || 'model';
}

/** What a manifest says of its origin. */
export function originOf(manifest: string): Origin | undefined {
  const { bezel } = JSON.parse(manifest) as { bezel?: Partial<Origin> };
  return bezel && typeof bezel.url === 'string' && typeof bezel.version === 'string'
    ? { url: bezel.url, version: bezel.version }
    : undefined;
}
