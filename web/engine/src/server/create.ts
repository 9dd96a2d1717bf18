// create - a new model of the store out of what is there: another model, or files that were sent as
// blobs, with a system prompt, parameters, messages, adapters and licences of its own.

import * as crypto from 'node:crypto';
import * as fs from 'node:fs';

import { show } from '../api/errors.js';
import { configText, inspectFiles, ownParameters, type Config } from '../pull/gguf_model.js';
import {
  checkMessages, checkParameters, isObject, parseModelfile, type Message,
} from '../pull/modelfile.js';
import type { DiskWriter } from '../store/disk_writer.js';
import type { FileKind } from '../store/inspect_file.js';
import {
  CONFIG_TYPE, fullName, goJson, imageType, layersOf, manifestText, type ModelName, type RawLayer,
} from '../store/manifest.js';
import type { Core } from '../engine/wasm.js';
import type { Catalog, Entry } from './catalog.js';
import { HttpError } from './http.js';
import { text } from './ollama.js';

type Body = Record<string, unknown>;

export interface CreateWish {
  name: string;
  /** A model's name. */
  from?: string;
  /** Digests by file name. */
  files: Readonly<Record<string, string>>;
  adapters: Readonly<Record<string, string>>;
  system?: string;
  parameters: Record<string, unknown>;
  messages: readonly Message[];
  license: readonly string[];
}

/** What a model is made of on the way to its manifest. */
interface Draft {
  layers: RawLayer[];
  /** Texts that are not blobs yet, by media type, in their order. */
  texts: { mediaType: string; text: string }[];
  config: Config;
  params: Record<string, unknown>;
}

const PATH = 'a path of this machine, which a client cannot name: send the file as a blob '
  + '(POST /api/blobs/sha256:...) and name it in';
const isPath = (value: string): boolean =>
  /^[.~/\\]|^[A-Za-z]:[/\\]|^[^:]*\.(gguf|safetensors|bin)$/.test(value);

const refused: Readonly<Record<string, string>> = {
  template: 'a template cannot be given: Bezel renders Gemma 4\'s own format to the byte; '
    + '"system" and "messages" shape a chat',
  quantize: '"quantize" is not for this server: build/bezel quantize rewrites a model',
  quantization: '"quantization" is not for this server: build/bezel quantize rewrites a model',
};
const known = new Set([
  'model', 'name', 'stream', 'from', 'files', 'adapters', 'system', 'parameters', 'messages',
  'license', 'modelfile',
]);
const isEmpty = (v: unknown): boolean => v === undefined || v === null || v === '';

function digests(body: Body, key: string): Record<string, string> {
  const value = body[key] ?? {};
  if (!isObject(value)) throw new HttpError(400, `"${key}" is an object: digests by file name`);
  return Object.fromEntries(Object.entries(value).map(([file, digest]) => {
    const said = typeof digest === 'string' ? digest : '';
    const [, hex] = /^sha256[:-]([0-9a-f]{64})$/.exec(said) ?? [];
    if (hex === undefined) throw new HttpError(400, `"${key}" has no sha256 digest for a file`);
    return [file, hex];
  }));
}

function licenses(value: unknown): string[] {
  const all = isEmpty(value) ? [] : Array.isArray(value) ? (value as unknown[]) : [value];
  if (!all.every((l) => typeof l === 'string'))
    throw new HttpError(400, '"license" is a text or a list of texts');
  return all as string[];
}

/** The request in its JSON form, or with a Modelfile, as older clients send one. */
export function readWish(body: Body, name: string): CreateWish {
  for (const [key, value] of Object.entries(body)) {
    if (isEmpty(value)) continue;
    if (refused[key] !== undefined) throw new HttpError(400, refused[key]);
    if (!known.has(key)) throw new HttpError(400, `this server's create has no ${show(key)}`);
  }
  const modelfile = text(body, 'modelfile');
  const said = modelfile ? parseModelfile(modelfile) : undefined;
  if (said?.template !== undefined)
    throw new HttpError(400, refused.template as string);
  const from = text(body, 'from') || said?.from || undefined;
  if (from !== undefined && isPath(from)) throw new HttpError(400, `FROM is ${PATH} "files"`);
  if (said?.adapters.length) throw new HttpError(400, `ADAPTER is ${PATH} "adapters"`);
  const system = text(body, 'system') ?? said?.system;
  const files = digests(body, 'files');
  if (from === undefined && !Object.keys(files).length)
    throw new HttpError(400, 'neither "from" nor "files" says what the model is made from');
  if (from !== undefined && Object.keys(files).length)
    throw new HttpError(400, '"from" and "files" are two models; give one');
  return {
    name, files, adapters: digests(body, 'adapters'), ...(from !== undefined && { from }),
    ...(system !== undefined && { system }),
    parameters: { ...said?.parameters, ...checkParameters(body.parameters ?? {}) },
    messages: [...(said?.messages ?? []), ...checkMessages(body.messages ?? [])],
    license: [...(said?.license ?? []), ...licenses(body.license)],
  };
}

interface Place {
  core: Core;
  writer: DiskWriter;
  catalog: Catalog;
}

const isType = (kind: string) => (layer: RawLayer): boolean =>
  layer.mediaType === imageType(kind);

/** The layers of a model that is there; of one that ships, its file becomes a blob. */
async function fromModel({ core, writer, catalog }: Place, entry: Entry): Promise<Draft> {
  if (entry.file !== undefined) {
    const { digest, size, file } = entry;
    if (!digest)
      throw new HttpError(
        503, `${entry.name} is split or still being read, so that no model can be made from it yet`,
      );
    if ((await writer.blobSize(digest)) !== size)
      await writer.putBytes(digest, fs.createReadStream(file) as AsyncIterable<Buffer>);
    const kind = await inspectFiles(core, [file]);
    return {
      layers: [{ mediaType: imageType('model'), digest, size }], texts: [],
      config: JSON.parse(configText(kind)) as Config, params: ownParameters(kind),
    };
  }
  const { config, params } = await catalog.texts(entry);
  const layers = layersOf(entry.manifest).filter((l) =>
    l.mediaType !== CONFIG_TYPE && !isType('params')(l));
  return {
    layers: layers.map((l) => ({ ...l, from: entry.name })), texts: [],
    config: JSON.parse(config ?? '{}') as Config,
    params: JSON.parse(params ?? '{}') as Record<string, unknown>,
  };
}

/** A blob that a client has sent, and what is in it. */
async function fileLayer(
  { core, writer }: Place, digest: string, file: string,
): Promise<{ layer: RawLayer; kind: FileKind & { isProjector: boolean } }> {
  const size = await writer.blobSize(digest);
  if (size === undefined)
    throw new HttpError(400, `the blob of ${show(file)} was not sent`);
  const kind = await inspectFiles(core, [writer.blobPath(digest)]);
  const isProjector = /mmproj/i.test(file) || kind.family === 'clip';
  const type = kind.kind === 'adapter' ? 'adapter' : isProjector ? 'projector' : 'model';
  return {
    layer: { mediaType: imageType(type), digest, size }, kind: { ...kind, isProjector },
  };
}

async function fromFiles(place: Place, files: Readonly<Record<string, string>>): Promise<Draft> {
  const names = Object.keys(files).sort(), digest = (n: string): string => files[n] ?? '';
  const isPart = (n: string): boolean => !/mmproj/i.test(n);
  const parts = names.filter(isPart).map((n) => place.writer.blobPath(digest(n)));
  if (!parts.length) throw new HttpError(400, '"files" has no weights');
  const layers: RawLayer[] = [];
  for (const name of names) {
    if (parts.length > 1 && isPart(name)) { // a shard alone makes no sense
      const size = await place.writer.blobSize(digest(name));
      if (size === undefined)
        throw new HttpError(400, `the blob of ${JSON.stringify(name)} was not sent`);
      layers.push({ mediaType: imageType('model'), digest: digest(name), size });
    } else layers.push((await fileLayer(place, digest(name), name)).layer);
  }
  const kind = await inspectFiles(place.core, parts);
  if (kind.kind !== 'model') throw new HttpError(400, '"files" has an adapter and no weights');
  return {
    layers, texts: [], config: JSON.parse(configText(kind)) as Config,
    params: ownParameters(kind),
  };
}

function dress(draft: Draft, { system, parameters, messages, license }: CreateWish): void {
  const replace = (kind: string, content: string): void => {
    draft.layers = draft.layers.filter((l) => !isType(kind)(l));
    if (content) draft.texts.push({ mediaType: imageType(kind), text: content });
  };
  if (system !== undefined) replace('system', system);
  for (const one of license) draft.texts.push({ mediaType: imageType('license'), text: one });
  const params = { ...draft.params, ...parameters };
  const sorted = Object.fromEntries(Object.entries(params).sort(([a], [b]) => (a < b ? -1 : 1)));
  replace('params', Object.keys(sorted).length ? goJson(sorted) : '');
  if (messages.length) replace('messages', goJson(messages));
}

/** Afterwards it is in the store. */
export async function createModel(
  place: Place, wish: CreateWish, tell: (status: string) => void,
): Promise<ModelName> {
  const { writer, catalog } = place, name = await writer.nameOf(wish.name);
  const entry = wish.from === undefined ? undefined : await catalog.find(wish.from);
  tell(entry ? 'reading model metadata' : 'parsing GGUF');
  const draft = entry ? await fromModel(place, entry) : await fromFiles(place, wish.files);
  for (const [file, digest] of Object.entries(wish.adapters)) {
    const { layer } = await fileLayer(place, digest, file);
    if (!isType('adapter')(layer))
      throw new HttpError(400, `${JSON.stringify(file)} is no adapter in GGUF form`);
    draft.layers.push(layer);
  }
  dress(draft, wish);
  const texts = [...draft.texts, { mediaType: CONFIG_TYPE, text: goJson(draft.config) }];
  const release = await writer.keep([
    ...draft.layers.map((l) => l.digest),
    ...texts.map((t) => crypto.createHash('sha256').update(t.text).digest('hex')),
  ]);
  try {
    for (const l of draft.layers) tell(`using existing layer sha256:${l.digest}`);
    const made: RawLayer[] = [];
    for (const t of texts) {
      const layer = await writer.putText(t.mediaType, t.text);
      tell(`creating new layer sha256:${layer.digest}`);
      made.push(layer);
    }
    const config = made.pop();
    tell('writing manifest');
    const manifest = `${manifestText(config, [...draft.layers, ...made])}\n`;
    if (!(await writer.writeManifest(name, manifest)))
      throw new HttpError(409, `files of ${fullName(name)} were deleted meanwhile; try again`);
  } finally {
    await release();
  }
  tell('success');
  return name;
}
