// model - options and steps that every command with a model shares.

import * as fs from 'node:fs';
import * as path from 'node:path';

import { profiles, type ProfileName } from '../gpu/adapter.js';
import { CpuEngine, type GenerateOptions, type Info } from '../engine/cpu_engine.js';
import { CpuModel } from '../engine/cpu_model.js';
import type { Model } from '../engine/model.js';
import { readText } from '../load/node_files.js';
import { openModel as open } from '../engine/open_model.js';
import { fileSource } from '../load/source.js';
import { BezelError, Core, loadWasm } from '../engine/wasm.js';
import type { Given, Option } from './args.js';
import { locate } from './locate.js';
import { loadingLine } from './progress.js';

export const storeOption: Option = {
  name: '--store', arg: 'DIR', help: 'Ollama store; default where Ollama keeps it', kind: 'text',
};

/** Of the model itself. */
export const engineOptions: readonly Option[] = [
  {
    name: '--backend',
    arg: 'NAME',
    help:
      'auto (default: the GPU where there is one, else the CPU), gpu, cpu, or '
        + 'reference, the slow oracle',
    kind: 'text',
  },
  {
    name: '--tier',
    arg: 'NAME',
    help: 'kernels of the GPU at most: matrix (default, where it can), subgroup or plain',
    kind: 'text',
  },
  {
    name: '--device-profile',
    arg: 'NAME',
    help: `pretend to be another GPU, no larger: ${Object.keys(profiles).join(', ')}`,
    kind: 'text',
  },
  {
    name: '--dawn-features',
    arg: 'LIST',
    help:
      "Dawn's toggles, with commas; "
        + "allow_unsafe_apis,vulkan_enable_f16_on_nvidia: subgroup matrices",
    kind: 'text',
  },
  {
    name: '--adapter',
    arg: 'PATH[:S]',
    help: 'LoRA adapter with scale S; may be repeated',
    kind: 'texts',
  },
  {
    name: '--threads',
    arg: 'N',
    help: 'accepted for the sake of scripts; this build has one thread',
    kind: 'whole',
  },
  storeOption,
];

/** And of a conversation with it. */
export const modelOptions: readonly Option[] = [
  {
    name: '--ctx', also: ['--context'], arg: 'N', help: 'tokens of context; default 4096',
    kind: 'whole',
  },
  {
    name: '--batch',
    arg: 'N',
    help: 'tokens of a prompt read in one step; default 512, on the CPU 32',
    kind: 'whole',
  },
  {
    name: '--cache',
    arg: 'TYPE',
    help: 'keys and values: f32 (default), or f16 in half the memory',
    kind: 'text',
  },
  ...engineOptions,
];

export const samplingOptions: readonly Option[] = [
  { name: '--greedy', help: 'always the most likely token', kind: 'flag' },
  { name: '--temp', arg: 'T', help: 'temperature', kind: 'number' },
  { name: '--top-k', arg: 'K', help: 'keep the K most likely tokens', kind: 'whole' },
  { name: '--top-p', arg: 'P', help: 'keep the most likely tokens up to P', kind: 'number' },
  { name: '--min-p', arg: 'P', help: 'drop tokens below P times the best', kind: 'number' },
  {
    name: '--repeat-penalty', arg: 'R', help: 'divide the logits of recent tokens', kind: 'number',
  },
  {
    name: '--presence-penalty', arg: 'R', help: 'subtract once from recent tokens', kind: 'number',
  },
  { name: '--frequency-penalty', arg: 'R', help: 'subtract for every occurrence', kind: 'number' },
  {
    name: '--repeat-last-n',
    arg: 'N',
    help: 'tokens that the penalties look at; default 64',
    kind: 'whole',
  },
  {
    name: '--logit-bias',
    arg: 'ID:ADD',
    help: "add to a token's logit; may be repeated",
    kind: 'texts',
  },
  { name: '--seed', arg: 'N', help: 'same seed, same text', kind: 'whole' },
];

/** PEFT keeps adapters as a folder, or as the .safetensors file in it; undefined for anything
 *  else. */
export function peftParts(place: string): { weights: string; config: string } | undefined {
  const isFolder = fs.statSync(place, { throwIfNoEntry: false })?.isDirectory() ?? false;
  if (!isFolder && !place.endsWith('.safetensors')) return undefined;
  const weights = isFolder ? path.join(place, 'adapter_model.safetensors') : place;
  const config = path.join(path.dirname(weights), 'adapter_config.json');
  if (isFolder && !fs.existsSync(weights) && !fs.existsSync(config)) return undefined;
  return { weights, config: readText(config) };
}

/** What "PATH" or "PATH:SCALE" means; a colon not followed by a number belongs to the path. */
export function adapterParts(
  spec: string,
): { path: string; config: string | undefined; scale: number } {
  const [, before, after] = /^(.*):([^:]+)$/s.exec(spec) ?? [];
  const scaled = before !== undefined && !Number.isNaN(Number(after));
  const [place, scale] = scaled ? [before, Number(after)] : [spec, 1];
  const peft = peftParts(place);
  return { path: peft?.weights ?? place, config: peft?.config, scale };
}

export async function addAdapter(model: Model, spec: string): Promise<void> {
  const { path: place, config, scale } = adapterParts(spec), source = await fileSource(place);
  try {
    await model.addAdapter(source, { scale, ...(config !== undefined && { config }) });
  } catch (e) {
    const isItself = e instanceof BezelError
      && ['format', 'unsupported', 'not-found'].includes(e.kind) && !e.message.startsWith(place);
    throw isItself ? new BezelError(`${place}: ${e.message}`, e.kind, e) : e;
  } finally {
    source.close();
  }
}

/** The engine without weights: a vocabulary is enough. */
export async function openVocabulary(model: string, given: Given): Promise<CpuEngine> {
  const core = await Core.load(await loadWasm());
  const { sources } = await locate(core, model, given.text('--store'));
  return CpuEngine.open(core, sources, { name: model, vocab_only: true });
}

/** One of a few words, or the sentence that lists them. */
function choice<T extends string>(
  given: Given, option: string, what: string, words: readonly T[],
): T | undefined {
  const word = given.text(option);
  if (word === undefined || (words as readonly string[]).includes(word))
    return word as T | undefined;
  throw new BezelError(
    `no ${what} "${word}"; there are ${words.slice(0, -1).join(', ')} and ${words.at(-1)}`,
    'argument',
  );
}

export interface Opened {
  readonly model: Model;
  /** For texts: prompts, answers, names. */
  readonly core: Core;
  /** Tokens an answer at most, where the store says so: the core keeps to it by itself. */
  readonly hasLimit: boolean;
}

/** MODEL on the backend that was asked for: the GPU where there is one, else the CPU, unless
 *  told otherwise. */
export async function openModel(
  name: string, given: Given, signal?: AbortSignal, otherwise: 'auto' | 'gpu' = 'auto',
): Promise<Opened> {
  const backend =
    choice(given, '--backend', 'backend', ['auto', 'gpu', 'cpu', 'reference']) ?? otherwise;
  const tier = choice(given, '--tier', 'tier', ['matrix', 'subgroup', 'plain']);
  const cache = choice(given, '--cache', 'cache', ['f32', 'f16']);
  const profile =
    choice(given, '--device-profile', 'device profile', Object.keys(profiles) as ProfileName[]);
  const batch = given.number('--batch');
  if ((given.number('--ctx') ?? 0) > 0xffffffff)
    throw new BezelError('that number of tokens or threads is out of range', 'argument');
  if (batch !== undefined && batch > 65536)
    throw new BezelError('--batch is 65536 at most', 'argument');
  const dawn = given.text('--dawn-features')?.split(',').filter(Boolean);
  const core = await Core.load(await loadWasm());
  const { sources, store, adapters } = await locate(core, name, given.text('--store'));
  const line = loadingLine();
  try {
    const described = {
      name, ...(store && { store }), ...(cache && { cache }), ...(batch && { batch }),
    };
    const model = backend === 'reference'
      ? await CpuModel.open(await Core.load(await loadWasm()), sources, { ...described, backend })
      : await open({
          backend, sources, ...described,
          ...(tier && { tier }), ...(profile && { profile }), ...(dawn && { dawn }),
          ...(signal && { signal }),
          onProgress: (p) => {
            if (p.fallback !== undefined) line.say(`computing on the CPU: ${p.fallback}`);
            line.onProgress?.(p);
          },
        });
    for (const adapter of [...adapters, ...given.texts('--adapter')])
      await addAdapter(model, adapter);
    const params =
      store?.params === undefined ? {} : (JSON.parse(store.params) as { num_predict?: number });
    return { model, core, hasLimit: (params.num_predict ?? 0) > 0 };
  } catch (e) {
    if (!(e instanceof BezelError) || e.kind !== 'device') throw e;
    throw new BezelError(`${e.message}; --backend cpu computes without one`, 'device', e);
  } finally {
    line.end();
  }
}

/** 107:-inf */
function parseBias(text: string, nVocab: number): [number, number | null] {
  const [, id = '', add = ''] = /^(\d+):(.+)$/.exec(text) ?? [];
  const infinite = /^([+-]?)inf(inity)?$/i.exec(add);
  const value = infinite ? (infinite[1] === '-' ? -Infinity : Infinity) : Number(add);
  if (!id || Number(id) >= nVocab || Number.isNaN(value) || value === Infinity)
    throw new BezelError(
      `logit bias "${text}"; it is ID:ADD, such as 107:-inf, with an id below ${nVocab}`,
      'argument',
    );
  return [Number(id), value === -Infinity ? null : value];
}

/** A diffusion model draws no next token: what says how to was given by mistake. */
function checkKind(given: Given, { n_canvas: n }: Info): void {
  const odd = samplingOptions.find(({ name }) =>
    !['--greedy', '--seed'].includes(name) && given.has(name));
  if (n && odd)
    throw new BezelError(
      `${odd.name} is not for a diffusion model; for what is, see: bezel diffuse --help`,
      'argument',
    );
}

/** What was asked for, over the model's own defaults. */
export function sampling(given: Given, info: Info): GenerateOptions {
  checkKind(given, info);
  const number = (option: string, otherwise: number): number => given.number(option) ?? otherwise;
  const d = info.sampling;
  return {
    temperature: given.has('--greedy') ? 0 : number('--temp', d.temperature),
    top_k: number('--top-k', d.top_k),
    top_p: number('--top-p', d.top_p),
    min_p: number('--min-p', d.min_p),
    repeat_penalty: number('--repeat-penalty', d.repeat_penalty),
    presence_penalty: number('--presence-penalty', d.presence_penalty),
    frequency_penalty: number('--frequency-penalty', d.frequency_penalty),
    penalty_window: number('--repeat-last-n', d.penalty_window),
    // those of canvases draw all the same
    seed: given.big('--seed')
      ?? (d.seed || (given.has('--greedy') && info.n_canvas ? 0n : BigInt(Date.now()) * 1000003n)),
    ...(given.has('--logit-bias')
      && { bias: given.texts('--logit-bias').map((b) => parseBias(b, info.n_vocab)) }),
  };
}
