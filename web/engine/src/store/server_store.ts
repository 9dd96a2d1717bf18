// server_store - the models of a Bezel server: a list as Ollama's, and manifests and blobs as they
// lie there.
//
//     GET /api/tags                     names, sizes, digests
//     GET /bezel/manifest/<name>        the manifest's text
//     GET /bezel/blob/<64 hex>          a blob, with Range; its ETag is the digest

import { BezelError, type Core } from '../engine/wasm.js';
import { sha256 } from './digest.js';
import { MAX_MANIFEST, parseName, type Layer, type ModelName } from './manifest.js';
import { fetchSmall, shortUrl, type Patience } from './net.js';
import { resolveLayers, type TreeFile } from './ollama_store.js';
import type { ModelStore, ResolvedModel, StoredModel } from './source_ref.js';

interface Tag {
  name: string;
  size?: number;
  digest?: string;
  modified_at?: string;
  details?: { family?: string; parameter_size?: string; quantization_level?: string };
}

function storedModel({ name, size = 0, digest = '', modified_at, details = {} }: Tag): StoredModel {
  const modified = Date.parse(modified_at ?? '');
  return {
    name,
    kind: 'model',
    size,
    digest: digest.replace(/^sha256[:-]/, ''),
    ...(!Number.isNaN(modified) && { modified }),
    ...(details.family && { family: details.family }),
    ...(details.parameter_size && { parameters: details.parameter_size }),
    ...(details.quantization_level && { quantization: details.quantization_level }),
  };
}

export interface ServerOptions {
  signal?: AbortSignal | undefined;
  patience?: Partial<Patience> | undefined;
}

export class ServerStore implements ModelStore {
  private readonly base: string;

  constructor(
    private readonly core: Core, url: string, private readonly options: ServerOptions = {},
  ) {
    this.base = url.replace(/\/+$/, '');
  }

  /** Bytes of a small answer. */
  private get(path: string, max: number): Promise<Uint8Array> {
    return fetchSmall(this.base + path, max, this.options);
  }

  async list(): Promise<StoredModel[]> {
    const text = new TextDecoder().decode(await this.get('/api/tags', MAX_MANIFEST));
    let models: unknown;
    try {
      models = (JSON.parse(text) as { models?: unknown } | null)?.models;
    } catch (e) {
      throw new BezelError(
        `${shortUrl(this.base)} does not answer as a server of models`, 'format', e,
      );
    }
    if (!Array.isArray(models))
      throw new BezelError(
        `${shortUrl(this.base)} does not answer as a server of models`, 'format',
      );
    return (models as Tag[]).filter((m) => typeof m?.name === 'string').map(storedModel);
  }

  blobUrl(layer: Layer): string {
    return `${this.base}/bezel/blob/${layer.digest}`;
  }

  /** The manifest, and the name that it goes by. */
  async manifest(text: string): Promise<{ name: ModelName; manifest: string }> {
    const name = parseName(this.core, text);
    try {
      return {
        name,
        manifest: new TextDecoder().decode(
          await this.get(`/bezel/manifest/${encodeURIComponent(name.short)}`, MAX_MANIFEST),
        ),
      };
    } catch (e) {
      if (e instanceof BezelError && e.kind === 'not-found')
        throw new BezelError(
          `${name.short} is not on the server ${shortUrl(this.base)}`, 'not-found', e,
        );
      throw e;
    }
  }

  private async blob(layer: Layer): Promise<Pick<TreeFile, 'ref' | 'text'>> {
    const text = async (max: number): Promise<string> => {
      const bytes = await this.get(`/bezel/blob/${layer.digest}`, max);
      if (sha256(this.core, bytes) !== layer.digest.toLowerCase())
        throw new BezelError(
          `the ${layer.kind} that ${shortUrl(this.base)} sent does not match its digest`, 'format',
        );
      return new TextDecoder().decode(bytes);
    };
    return { ref: { kind: 'url', url: this.blobUrl(layer), size: layer.size }, text };
  }

  async resolve(text: string): Promise<ResolvedModel> {
    const { name, manifest } = await this.manifest(text);
    return resolveLayers(this.core, name, manifest, this.base, (layer) => this.blob(layer));
  }
}
