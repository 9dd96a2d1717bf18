// pull - a model from a registry or the hub into the machine's Ollama store, under the name and in
// the form that Ollama gives it. Node only.
//
// Each step is told as Ollama's protocol tells it. Blobs come one after the other, small ones
// first, each over several connections. The manifest is written when all are there; until then
// nothing of the model can be seen, and afterwards Ollama sees it too.

import { BezelError, type Core } from '../engine/wasm.js';
import type { DiskWriter } from '../store/disk_writer.js';
import {
  blobName, CONFIG_TYPE, fullName, goJson, imageType, layersOf, manifestText, MAX_MANIFEST,
  parseManifest, textKinds, type ModelName, type RawLayer,
} from '../store/manifest.js';
import { fetchSmall, type Fetcher, type Patience } from '../store/net.js';
import { detailsOf } from '../store/ollama_store.js';
import { configText, inspectFiles, ownParameters } from './gguf_model.js';
import {
  chooseModel, chooseProjector, explainHub, fileUrl, listFiles, type Choice, type HubFile,
} from './hub.js';
import { bytesThere, pullBlob } from './pull_blob.js';
import { readReference, type Reference, type Sites } from './reference.js';
import { plainText, Site, wordsOf, type SiteOptions } from './site.js';
import type { Token } from './token.js';

/** A line of Ollama's protocol. */
export interface PullStatus {
  status: string;
  digest?: string;
  total?: number;
  completed?: number;
}

export interface PullNews extends PullStatus {
  /** Of all blobs together. */
  loaded: number;
  of: number;
}

export interface PullOptions extends Sites {
  /** The hub's; asked when the hub is. */
  token?: () => Token | undefined;
  signal?: AbortSignal | undefined;
  onNews?: (news: PullNews) => void;
  /** Something that a person should know. */
  onNotice?: (sentence: string) => void;
  patience?: Partial<Patience> | undefined;
  agent?: string;
}

const ROUNDS = 3; // of looking again whether another program has deleted a blob
const RUNS = /^(gemma4|diffusion-gemma)$/;
const MANIFEST_TYPE = 'application/vnd.docker.distribution.manifest.v2+json';

/** The files came, and are no model. */
class Useless extends Error {
  constructor(override readonly cause: BezelError) {
    super();
  }
}

interface Plan {
  readonly fetcher: Fetcher;
  readonly layers: readonly RawLayer[];
  urlOf(layer: RawLayer): string;
  /** When the blobs are there. */
  manifest(): Promise<string>;
}

/** What a registry's refusals mean for a person. */
const explainRegistry = (name: ModelName) =>
  async (answer: Response): Promise<BezelError | undefined> => {
    const { status } = answer;
    const host = new URL(answer.url).host;
    if (status === 404)
      return new BezelError(`there is no model ${name.short} at ${host}`, 'not-found');
    if (status === 401 || status === 403)
      return new BezelError(
        `${host} does not give ${name.short} to everyone: it is private, or its name is not known `
          + 'there (`ollama pull` can sign in)',
        'io',
      );
    const passing = status === 408 || status === 425 || status === 429 || status >= 500;
    const said = passing ? '' : await wordsOf(answer);
    return said ? new BezelError(`${host} refuses ${name.short}: ${said}`, 'io') : undefined;
  };

class Pull {
  private readonly signal: AbortSignal;
  private readonly loaded = new Map<string, number>(); // by digest
  private of = 0;

  constructor(
    private readonly core: Core,
    private readonly writer: DiskWriter,
    private readonly options: PullOptions,
  ) {
    this.signal = options.signal ?? new AbortController().signal;
  }

  async run(text: string): Promise<ModelName> {
    this.say({ status: 'pulling manifest' });
    const found = readReference(this.core, text, this.options);
    const name = await this.writer.nameOf(fullName(found.name)), reference = { ...found, name };
    const plan = await (reference.kind === 'hub'
      ? this.fromHub(reference) : this.fromRegistry(reference));
    const release = await this.writer.keep(plan.layers.map((l) => l.digest));
    let isThere = false, useless = false;
    try {
      for (let round = 0; round < ROUNDS && !isThere; round++)
        isThere = await this.round(name, plan);
    } catch (e) {
      useless = e instanceof Useless;
      throw useless ? (e as Useless).cause : e;
    } finally {
      await release();
      if (useless) await this.writer.forget(plan.layers);
    }
    if (!isThere)
      throw new BezelError(
        `another program keeps deleting files of ${name.short} from ${this.writer.root}`, 'io',
      );
    this.say({ status: 'success' });
    return name;
  }

  /** False: a blob is gone again, which another program has deleted. */
  private async round(name: ModelName, plan: Plan): Promise<boolean> {
    await this.blobs(name, plan);
    this.say({ status: 'verifying sha256 digest' });
    const manifest = await plan.manifest().catch((e: unknown) => {
      throw e instanceof BezelError && e.kind === 'format' ? new Useless(e) : e;
    });
    this.say({ status: 'writing manifest' });
    return this.writer.writeManifest(name, manifest);
  }

  private say(status: PullStatus): void {
    const loaded = [...this.loaded.values()].reduce((n, m) => n + m, 0);
    this.options.onNews?.({ ...status, loaded, of: this.of });
  }

  private site(base: string, more: Pick<SiteOptions, 'explain' | 'token'>): Site {
    const { insecure, agent = 'bezel' } = this.options;
    return new Site({ base, insecure, agent, ...more });
  }

  // ---- what there is to fetch ----

  private async fromRegistry({ base, name }: Reference): Promise<Plan> {
    const site = this.site(base, { explain: explainRegistry(name) });
    const path = ['v2', name.namespace, name.model];
    const { patience } = this.options;
    const bytes = await fetchSmall(site.url([...path, 'manifests', name.tag]), MAX_MANIFEST, {
      signal: this.signal, patience, fetcher: site.fetch, headers: { accept: MANIFEST_TYPE },
    });
    const text = new TextDecoder('utf-8', { ignoreBOM: true }).decode(bytes);
    const layers = layersOf(text);
    if (layers.some((l) => l.mediaType === imageType('tensor')))
      throw new BezelError(
        `${name.short} is an MLX model (safetensors), which Bezel does not run; other tags of it `
          + 'are GGUF',
        'unsupported',
      );
    parseManifest(this.core, text); // what the core says of it is better heard now than later
    return {
      fetcher: site.fetch, layers, manifest: async () => text,
      urlOf: (l) => site.url([...path, 'blobs', `sha256:${l.digest}`]),
    };
  }

  private async fromHub(reference: Reference & { kind: 'hub' }): Promise<Plan> {
    const { base, repo, wish } = reference, { patience, onNotice } = this.options;
    const token = this.options.token?.();
    const page = `${base.replace(/\/+$/, '')}/${repo.id}`;
    const site = this.site(base, {
      explain: explainHub(repo.id, page, token?.value, token?.from ?? ''), token: token?.value,
    });
    const files = await listFiles(site, repo, { signal: this.signal, patience });
    const model = chooseModel(repo.id, files, wish), projector = chooseProjector(files, model);
    if (wish === undefined && model.label !== 'Q4_K_M')
      onNotice?.(`${repo.id} has no Q4_K_M; this is ${plainText(model.label)}`);
    const layer = (kind: string) => ({ path, size, sha256 }: HubFile): RawLayer & HubFile => {
      if (sha256 === undefined)
        throw new BezelError(
          `the hub knows no sha256 of ${plainText(path)}, so that it cannot be verified`, 'format',
        );
      return { mediaType: imageType(kind), digest: sha256, size, path };
    };
    const layers = [
      ...model.files.map(layer('model')), ...(projector ? [layer('projector')(projector)] : []),
    ];
    const paths = new Map(layers.map((l) => [l.digest, l.path]));
    return {
      fetcher: site.fetch, layers,
      urlOf: (l) => fileUrl(site, repo, paths.get(l.digest) ?? ''),
      manifest: () => this.compose(model, layers),
    };
  }

  /** The manifest that Ollama would make of such files. */
  private async compose(model: Choice, layers: readonly (RawLayer & HubFile)[]): Promise<string> {
    const paths = layers.slice(0, model.files.length).map((l) => this.writer.blobPath(l.digest));
    const kind = await inspectFiles(this.core, paths);
    if (kind.kind !== 'model')
      throw new BezelError(`${plainText(model.label)} is an adapter and no model`, 'format');
    this.warn(kind.family);
    const config = await this.writer.putText(CONFIG_TYPE, configText(kind));
    const own = ownParameters(kind), all = layers.map(({ path: _, ...l }) => l);
    if (Object.keys(own).length)
      all.push(await this.writer.putText(imageType('params'), goJson(own)));
    return `${manifestText(config, all)}\n`;
  }

  private warn(family: string | undefined): void {
    if (family !== undefined && !RUNS.test(family))
      this.options.onNotice?.(
        `Bezel runs Gemma 4 and not ${plainText(family)}; Ollama runs what is pulled all the same`,
      );
  }

  // ---- fetching it ----

  private async blobs(name: ModelName, plan: Plan): Promise<void> {
    const wanted = [...new Map(plan.layers.map((l) => [l.digest, l])).values()]
      .toSorted((a, b) => a.size - b.size);
    this.of = wanted.reduce((n, l) => n + l.size, 0);
    let missing = 0;
    for (const layer of wanted) {
      const there = await bytesThere(this.writer, layer);
      this.loaded.set(layer.digest, there);
      missing += layer.size - there;
    }
    if (missing) await this.writer.needRoom(name.short, missing);
    for (const layer of wanted) await this.blob(name, plan, layer);
  }

  private async blob(name: ModelName, plan: Plan, layer: RawLayer): Promise<void> {
    const { digest, size } = layer, short = digest.slice(0, 12);
    const tell = (status: string) => (completed: number): void => {
      this.loaded.set(digest, completed);
      this.say({ status, digest: `sha256:${digest}`, total: size, completed });
    };
    const onProgress = tell(`pulling ${short}`);
    await pullBlob(this.writer, {
      url: plan.urlOf(layer), digest, size, label: `${short} of ${name.short}`,
    }, {
      signal: this.signal, fetcher: plan.fetcher, patience: this.options.patience, onProgress,
      onWait: tell(`waiting for another pull of ${short}`),
    });
    onProgress(size);
    if (layer.mediaType !== CONFIG_TYPE) return;
    const file = await this.writer.store.tree.file(['blobs', blobName(digest)]);
    this.warn(detailsOf(await file?.text(textKinds.config)).family);
  }
}

/** The name under which the model is in the store afterwards. */
export function pull(
  core: Core, writer: DiskWriter, name: string, options: PullOptions = {},
): Promise<ModelName> {
  return new Pull(core, writer, options).run(name);
}
