// inspect_file - what a file is, from its first bytes and from the core: a model, an adapter, or
// neither.

import { inspect } from '../engine/cpu_engine.js';
import { openWithFetches, type Source } from '../load/source.js';
import { BezelError, type Core } from '../engine/wasm.js';
import { openSource, type SourceRef, type StoredModel } from './source_ref.js';

export const HEAD = 16; // bytes that tell the formats apart

/** 'gguf' or 'safetensors', or one sentence. */
export function formatOf(name: string, head: Uint8Array): 'gguf' | 'safetensors' {
  const text = String.fromCharCode(...head.subarray(0, 4));
  if (text === 'GGUF') return 'gguf';
  const view = new DataView(head.buffer, head.byteOffset, head.byteLength);
  // length of a JSON, then '{'
  if (head.length >= 9 && view.getUint32(4, true) === 0 && head[8] === 0x7b) return 'safetensors';
  throw new BezelError(`${name} is neither a GGUF nor a safetensors file`, 'format');
}

interface Inspected {
  kind: string;
  architecture?: string;
  file_type?: string;
  parameters?: number;
}

/** 5.1B */
function countText(n: number): string {
  const units = ['', 'K', 'M', 'B', 'T'];
  let i = 0;
  for (; n >= 999.5 && i < units.length - 1; i++) n /= 1000;
  return `${n >= 99.5 || i === 0 ? Math.round(n) : n.toFixed(1)}${units[i]}`;
}

export interface FileKind extends Pick<StoredModel, 'kind' | 'family' | 'parameters'
  | 'quantization'> {
  format: 'gguf' | 'safetensors';
  /** Of parameters. */
  count?: number;
}

async function inspected(
  core: Core, sources: readonly Source[], config: string | undefined,
): Promise<Inspected> {
  const text = await openWithFetches(() => inspect(core, sources, {
    json: true, name: sources[0]?.name ?? '', ...(config !== undefined && { config }),
  }));
  return JSON.parse(text) as Inspected;
}

/** Look at a whole file, or at a split one with its other parts. PEFT's weights are understood
 *  only with their adapter_config.json. */
export async function inspectFile(
  core: Core, source: Source, config?: string, parts: readonly Source[] = [],
): Promise<FileKind> {
  const head = new Uint8Array(Math.min(HEAD, source.size));
  await source.readAsync(0, head);
  const format = formatOf(source.name, head);
  if (format === 'safetensors' && config === undefined)
    throw new BezelError(
      `${source.name} needs the adapter_config.json that lies beside it`, 'argument',
    );
  const facts =
    await inspected(core, [source, ...parts], format === 'safetensors' ? config : undefined);
  return {
    format,
    kind: facts.kind === 'adapter' ? 'adapter' : 'model',
    ...(facts.architecture && { family: facts.architecture }),
    ...(facts.parameters && {
      parameters: countText(facts.parameters), count: facts.parameters,
    }),
    ...(facts.file_type && { quantization: facts.file_type }),
  };
}

/** Several model layers are shards or, in older manifests, a model and its projector. */
export async function sortModels(
  core: Core, refs: SourceRef[],
): Promise<{ model: SourceRef[]; projectors: SourceRef[] }> {
  const model: SourceRef[] = [], projectors: SourceRef[] = [];
  for (const ref of refs)
    (refs.length > 1 && (await isProjector(core, ref)) ? projectors : model).push(ref);
  return { model, projectors };
}

async function isProjector(core: Core, ref: SourceRef): Promise<boolean> {
  const source = await openSource(ref);
  try {
    return (await inspected(core, [source], undefined)).kind === 'mmproj';
  } catch (e) {
    // a shard alone makes no sense, and says so when loaded
    if (e instanceof BezelError && e.kind === 'format') return false;
    throw e;
  } finally {
    source.close();
  }
}
