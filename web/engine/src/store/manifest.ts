// manifest - Ollama's names and manifests, as the core reads them, and manifests that we write.

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

/** A model's manifest as Ollama writes it. */
export function composeManifest(layers: readonly Layer[]): string {
  const entry = ({ kind, digest, size }: Layer) => ({
    mediaType: kind === 'config'
      ? 'application/vnd.docker.container.image.v1+json'
      : `application/vnd.ollama.image.${kind}`,
    digest: `sha256:${digest}`,
    size,
  });
  const config = layers.find((l) => l.kind === 'config');
  return JSON.stringify({
    schemaVersion: 2,
    mediaType: 'application/vnd.docker.distribution.manifest.v2+json',
    ...(config && { config: entry(config) }),
    layers: layers.filter((l) => l !== config).map(entry),
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
