// adapter_files - an adapter of a store as files for others: GGUF for llama.cpp and Ollama, or
// PEFT's two. One that is kept in the wanted form is handed out as it is.

import { ADAPTER_KIND, type AdapterKind } from '../engine/boundary.js';
import { openWithFetches, type Source } from '../load/source.js';
import { BezelError, type Core } from '../engine/wasm.js';
import { openSource, type ResolvedModel } from './source_ref.js';

export type AdapterForm = 'gguf' | 'peft';

export interface AdapterFile {
  name: string;
  bytes: Uint8Array;
}

async function whole(source: Source): Promise<Uint8Array> {
  const bytes = new Uint8Array(source.size);
  await source.readAsync(0, bytes);
  return bytes;
}

function convert(
  core: Core, source: Source, config: string | undefined, which: AdapterKind,
): Uint8Array {
  return core.withSource(source, (id) => {
    const json = JSON.stringify({
      base: '',
      ...(config !== undefined && { config }),
      source: { id, name: source.name, size: source.size },
    });
    core.with(json, (p, n) => core.checkNumber(core.exports.bz_wasm_adapter_file(p, n, which)));
    return core.result();
  });
}

export async function adapterFiles(
  core: Core, found: ResolvedModel, form: AdapterForm,
): Promise<AdapterFile[]> {
  const [ref] = found.adapters, { config } = found.store;
  if (!ref || found.kind !== 'adapter')
    throw new BezelError(`${found.name} is not an adapter`, 'argument');
  const source = await openSource(ref);
  try {
    const isKept = form === (config === undefined ? 'gguf' : 'peft');
    const make = (which: AdapterKind): Promise<Uint8Array> =>
      openWithFetches(async () => convert(core, source, config, which));
    if (form === 'gguf')
      return [{
        name: `${found.name.replace(/:latest$/, '').replace(/[/:]/g, '-')}.gguf`,
        bytes: isKept ? await whole(source) : await make(ADAPTER_KIND.gguf),
      }];
    const text = isKept ? new TextEncoder().encode(config) : await make(ADAPTER_KIND.config);
    return [
      {
        name: 'adapter_model.safetensors',
        bytes: isKept ? await whole(source) : await make(ADAPTER_KIND.safetensors),
      },
      { name: 'adapter_config.json', bytes: text },
    ];
  } finally {
    source.close();
  }
}
