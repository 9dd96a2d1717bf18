// shipped - the small models that come with the package, by name. Where there are files: Node and
// Deno.

import { isNode, nodeFiles } from '../load/node_files.js';

const NAMES = ['tiny', 'tiny-moe', 'tiny-diffusion'];

/** The package's own folder. The parts are joined here, since bundlers take a literal for an
 *  asset of the page. */
function packageFolder(): URL {
  return new URL(['..', '..', ''].join('/'), import.meta.url);
}

/** GGUF files by name: the repository's, or the one that the page of the published package
 *  brings along. */
export function shippedModels(): Record<string, string> {
  if (!isNode()) return {};
  const fs = nodeFiles(), root = packageFolder();
  const { fileURLToPath } = process.getBuiltinModule('node:url');
  const inRepository = fs.existsSync(new URL('src/', root)); // sources are not published
  const folder = new URL(inRepository ? '../../models/' : 'app/assets/', root);
  if (!fs.existsSync(folder)) return {};
  const found = fs.readdirSync(folder).flatMap((file) => {
    const [, name = ''] = /^([\w-]+)\.q8_0(?:-[\w-]+)?\.gguf$/.exec(file) ?? [];
    return NAMES.includes(name) ? [[name, fileURLToPath(new URL(file, folder))] as const] : [];
  });
  return Object.fromEntries(found);
}

/** The file of the model that a person calls "tiny", "tiny:latest" or "Tiny"; undefined for any
 *  other name. */
export function shippedModel(text: string): string | undefined {
  const [, name = ''] = /^(?:library\/)?([\w-]+)(?::latest)?$/i.exec(text) ?? [];
  return NAMES.includes(name.toLowerCase()) ? shippedModels()[name.toLowerCase()] : undefined;
}
