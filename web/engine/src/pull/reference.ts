// reference - what a person asks for by a name or an address, and from which site it comes.
//
//     gemma4:e2b, ns/model:tag                           Ollama's registry, or the one in its place
//     host/ns/model:tag                                  that host's registry
//     hf.co/org/repo[:quant], huggingface.co/...         the hub
//     https://huggingface.co/org/repo/resolve/main/F     one file of it, and what belongs to it

import { BezelError, type Core } from '../engine/wasm.js';
import { parseName, type ModelName } from '../store/manifest.js';
import { stemOf, type Repo } from './hub.js';
import { isLoopback, plainText, siteUrl } from './site.js';

export const REGISTRY = 'https://registry.ollama.ai', HUB = 'https://huggingface.co';

export interface Sites {
  /** In the place of Ollama's registry. */
  registry?: string | undefined;
  /** In the place of the hub. */
  hub?: string | undefined;
  insecure?: boolean | undefined;
  /** No other registry is asked, whatever a name says. */
  only?: boolean;
}

export type Reference =
  | { kind: 'registry'; name: ModelName; base: string }
  | { kind: 'hub'; name: ModelName; base: string; repo: Repo; wish: string | undefined };

const isHub = (host: string): boolean =>
  ['hf.co', 'huggingface.co', 'www.huggingface.co'].includes(host.toLowerCase());

/** Whether an address is one of the hub's: of the real one, or of the one in its place. */
const isHubUrl = (url: URL, { hub }: Sites): boolean =>
  isHub(url.hostname) || (hub !== undefined && url.host === siteUrl(hub, true).host);

/** A file's name as a tag, which has 80 letters of few kinds. */
const tagOf = (file: string): string =>
  stemOf(file.slice(file.lastIndexOf('/') + 1)).replace(/[^\w.-]/g, '_').slice(-80).replace(
    /^\W+/, '',
  );

function fromAddress(core: Core, text: string, sites: Sites): Reference | undefined {
  if (!/^https?:\/\//i.test(text)) return undefined;
  let url: URL;
  try {
    url = new URL(text);
  } catch (e) {
    throw new BezelError(`"${plainText(text)}" is not an address`, 'argument', e);
  }
  if (!isHubUrl(url, sites)) {
    if (!/\.gguf$/i.test(url.pathname)) return undefined; // a registry's name with its scheme
    throw new BezelError(
      `${plainText(url.host)} is no registry that names its files by digest: download the file, `
        + 'which every command takes by its path',
      'unsupported',
    );
  }
  let parts: string[];
  try {
    parts = url.pathname.split('/').filter(Boolean).map(decodeURIComponent);
  } catch (e) {
    throw new BezelError(`"${plainText(text)}" is not an address`, 'argument', e);
  }
  const [org = '', repo = '', verb, revision = 'main', ...rest] = parts, file = rest.join('/');
  const isFile = (verb === 'resolve' || verb === 'blob') && /\.gguf$/i.test(file);
  if (!isFile && verb !== undefined && verb !== 'tree')
    throw new BezelError(
      `"${plainText(text)}" names no model: an address is of a repository, or of a .gguf file in `
        + 'it',
      'argument',
    );
  const name = parseName(core, `hf.co/${org}/${repo}:${isFile ? tagOf(file) : 'latest'}`);
  return {
    kind: 'hub', name, base: sites.hub ?? HUB, wish: isFile ? file : undefined,
    repo: { id: `${org}/${repo}`, revision },
  };
}

/** Loopback is asked over http, others over https unless their name says http://. */
function registryOf(text: string, { host }: ModelName, sites: Sites): string {
  if (`https://${host}` === REGISTRY) return sites.registry ?? REGISTRY;
  const url = siteUrl(`https://${host}`), scheme = /^https?(?=:\/\/)/i.exec(text)?.[0];
  return `${scheme ?? (isLoopback(url) ? 'http' : 'https')}://${host}`;
}

export function readReference(core: Core, text: string, sites: Sites = {}): Reference {
  const found = fromAddress(core, text.trim(), sites);
  if (found) return found;
  const name = parseName(core, text.trim());
  if (isHub(name.host))
    return {
      kind: 'hub', name, base: sites.hub ?? HUB,
      wish: name.tag === 'latest' ? undefined : name.tag,
      repo: { id: `${name.namespace}/${name.model}`, revision: 'main' },
    };
  const base = registryOf(text.trim(), name, sites);
  if (sites.only && base !== (sites.registry ?? REGISTRY))
    throw new BezelError(
      `models come from ${new URL(sites.registry ?? REGISTRY).host} and the hub alone here, not `
        + `from ${plainText(name.host)}`,
      'argument',
    );
  return { kind: 'registry', name, base };
}

