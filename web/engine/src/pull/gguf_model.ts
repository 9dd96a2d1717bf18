// gguf_model - GGUF files as a model that Ollama would have made of them: config and parameters.

import type { Core } from '../engine/wasm.js';
import { fileSource, type Source } from '../load/source.js';
import { inspectFile, type FileKind } from '../store/inspect_file.js';
import { goJson } from '../store/manifest.js';

/** Of a family whose format Ollama speaks by itself. */
const GEMMA4 = { renderer: 'gemma4', parser: 'gemma4' } as const;

/** A count as Ollama writes it: 5.1B, 6.14M, 270M. */
export function countText(n: number): string {
  const short = (unit: number, digits: number): string => {
    const of = n / unit;
    return Number.isInteger(of) ? String(of) : of.toFixed(digits);
  };
  if (n >= 1e9) return `${short(1e9, 1)}B`;
  if (n >= 1e6) return `${short(1e6, 2)}M`;
  return n >= 1e3 ? `${(n / 1e3).toFixed(0)}K` : String(n);
}

export type Config = Record<string, unknown>;

/** What files are, shards of one model. */
export async function inspectFiles(core: Core, paths: readonly string[]): Promise<FileKind> {
  const sources: Source[] = [];
  try {
    for (const path of paths) sources.push(await fileSource(path));
    const [first, ...rest] = sources as [Source, ...Source[]];
    return await inspectFile(core, first, undefined, rest);
  } finally {
    for (const source of sources) source.close();
  }
}

/** The config of such a model; what `before` (the config of a model that this one is made from)
 *  says of how to speak with it stays. */
export function configText(kind: FileKind, before: Config = {}): string {
  const { family = '', count = 0, quantization = '' } = kind;
  const own = family === 'gemma4' ? GEMMA4 : undefined;
  const { renderer = own?.renderer, parser = own?.parser, requires } = before;
  return goJson({
    model_format: 'gguf', model_family: family, model_families: [family],
    model_type: countText(count), file_type: quantization, renderer, parser, requires,
    architecture: 'amd64', os: 'linux',
  });
}

/** Parameters that Ollama adds by itself. */
export const ownParameters = ({ family }: FileKind): Record<string, unknown> =>
  (family === 'gemma4' ? { stop: ['<turn|>'] } : {});
