// hub - Hugging Face's hub: the files of a repository, and which of them are the model that was
// meant.
//
// A repository has one model in several quantisations, whole or in shards, and perhaps projectors
// (mmproj). Files are known by their names alone, until they are here.

import { BezelError } from '../api/errors.js';
import { fetchSmall, type Patience } from '../store/net.js';
import { bytesText } from '../store/platform.js';
import { plainText, wordsOf, type Site } from './site.js';

const MAX_PAGE = 16 << 20, MAX_PAGES = 50; // of the list of files
const MAX_SHOWN = 24; // quantisations in a sentence

export interface HubFile {
  path: string;
  size: number;
  /** Hex; absent where the hub keeps the file in git and knows no sha256. */
  sha256?: string;
}

export interface Repo {
  /** org/name */
  id: string;
  /** main, or another branch, tag or commit. */
  revision: string;
}

/** One model of a repository. */
export interface Choice {
  /** Q4_K_M; the file's name where it says none. */
  label: string;
  /** Shards in their order. */
  files: HubFile[];
}

/** What the list of files says; what makes no sense in it is passed over. */
export function parseTree(text: string): HubFile[] {
  let said: unknown;
  try {
    said = JSON.parse(text);
  } catch (e) {
    throw new BezelError("the hub's list of files is not JSON", 'format', e);
  }
  if (!Array.isArray(said)) throw new BezelError("the hub's list of files is no list", 'format');
  return (said as unknown[]).flatMap((entry) => {
    const { type, path, size, lfs } = (entry ?? {}) as Record<string, unknown>;
    const { oid, size: full } = (lfs ?? {}) as Record<string, unknown>;
    const bytes = full ?? size;
    const isPath = typeof path === 'string' && path.length <= 1000
      && path.split('/').every((part) => !/^\.{0,2}$|\p{Surrogate}/u.test(part));
    if (type !== 'file' || !isPath || !Number.isSafeInteger(bytes) || (bytes as number) < 0)
      return [];
    const isDigest = typeof oid === 'string' && /^[0-9a-f]{64}$/i.test(oid);
    return [{ path, size: bytes as number, ...(isDigest && { sha256: oid.toLowerCase() }) }];
  });
}

/** The address of the next page of a list: `Link: <https://...>; rel="next"`. */
export function nextPage(link: string | null): string | undefined {
  for (const one of (link ?? '').slice(0, 10_000).split(',')) {
    const [, url] = /^\s*<([^<>]+)>\s*;\s*rel="?next"?\s*$/.exec(one) ?? [];
    if (url !== undefined) return url;
  }
  return undefined;
}

export async function listFiles(
  site: Site, { id, revision }: Repo,
  options: { signal?: AbortSignal; patience?: Partial<Patience> | undefined } = {},
): Promise<HubFile[]> {
  const files: HubFile[] = [];
  let at: string | undefined =
    site.url(['api', 'models', ...id.split('/'), 'tree', revision], '?recursive=true');
  for (let i = 0; at !== undefined; i++) {
    let next: string | undefined;
    const page = await fetchSmall(at, MAX_PAGE, {
      ...options, fetcher: site.fetch,
      onAnswer: ({ headers }) => (next = nextPage(headers.get('link'))),
    });
    files.push(...parseTree(new TextDecoder().decode(page)));
    if (next !== undefined) next = new URL(next, at).href;
    const isOwn = next === undefined || new URL(next).origin === site.base.origin;
    if (!isOwn || i === MAX_PAGES)
      throw new BezelError(`the list of files of ${id} does not end at ${site.host}`, 'format');
    at = next;
  }
  return files;
}

export const fileUrl = (site: Site, { id, revision }: Repo, file: string): string =>
  site.url([...id.split('/'), 'resolve', revision, ...file.split('/')]);

// ---- which files ----

const nameOf = (path: string): string => path.slice(path.lastIndexOf('/') + 1);

/** The name without .gguf and without the number of a shard. */
export const stemOf = (path: string): string =>
  path.replace(/\.gguf$/i, '').replace(/-\d{5}-of-\d{5}$/, '');

const QUANT = /(?:^|[-._])((?:UD-)?(?:I?Q\d\w*|TQ\d\w*|BF16|FP?16|FP?32|MXFP4\w*))$/i;

/** Q4_K_M, UD-Q4_K_XL, BF16; undefined where the name says none. */
export function quantOf(path: string): string | undefined {
  return QUANT.exec(stemOf(nameOf(path)))?.[1]?.toUpperCase();
}

const shardOf = (path: string): { number: number; of: number } => {
  const [, number = '1', of = '1'] = /-(\d{5})-of-(\d{5})\.gguf$/i.exec(path) ?? [];
  return { number: Number(number), of: Number(of) };
};

const isGguf = (path: string): boolean => /\.gguf$/i.test(path);
const isProjector = (path: string): boolean => /mmproj/i.test(nameOf(path));
/** Files that lie beside models and are none: drafters, and the counts that quantising uses. */
const isOther = (path: string): boolean =>
  /imatrix|^(mtp|eagle\d*|dflash|dspark)-/i.test(nameOf(path));

/** The models of a repository; of split ones those that have all their shards. */
export function modelsIn(files: readonly HubFile[]): Choice[] {
  const models = new Map<string, HubFile[]>();
  for (const file of new Map(files.map((f) => [f.path, f])).values()) {
    if (!isGguf(file.path) || isProjector(file.path) || isOther(file.path)) continue;
    const key = `${stemOf(file.path)} ${shardOf(file.path).of}`;
    models.set(key, [...(models.get(key) ?? []), file]);
  }
  return [...models.values()].flatMap((parts) => {
    const sorted = parts.toSorted((a, b) => shardOf(a.path).number - shardOf(b.path).number);
    const [first] = sorted as [HubFile];
    const isWhole = sorted.length === shardOf(first.path).of
      && sorted.every(({ path }, i) => shardOf(path).number === i + 1);
    return isWhole ? [{ label: quantOf(first.path) ?? nameOf(first.path), files: sorted }] : [];
  });
}

/** What is taken where nobody says: of those that are there, the first. */
const DEFAULTS = [
  'Q4_K_M', 'Q4_0', 'UD-Q4_K_XL', 'Q4_K_S', 'Q4_1', 'IQ4_NL', 'IQ4_XS', 'MXFP4', 'Q5_K_M', 'Q5_K_S',
  'Q6_K', 'Q8_0', 'Q3_K_M', 'BF16', 'F16', 'F32',
];

const sizeOf = ({ files }: Choice): number => files.reduce((n, f) => n + f.size, 0);

function listText(models: readonly Choice[]): string {
  const all = models
    .toSorted((a, b) => sizeOf(a) - sizeOf(b))
    .map((m) => `${plainText(m.label)} (${bytesText(sizeOf(m))})`);
  const more = all.length > MAX_SHOWN ? ` and ${all.length - MAX_SHOWN} more` : '';
  return all.slice(0, MAX_SHOWN).join(', ') + more;
}

/** The model that a wish means: a quantisation, or a file's name with or without its folder and its
 *  ending. Without one it is Q4_K_M, or what comes nearest to that. */
export function chooseModel(
  repo: string, files: readonly HubFile[], wish: string | undefined,
): Choice {
  const models = modelsIn(files), same = (a: string, b: string): boolean =>
    a.toLowerCase() === b.toLowerCase();
  if (!models.length)
    throw new BezelError(
      `${repo} has no GGUF files${files.length ? '' : ' and no others'}; repositories of them `
        + 'often end in -GGUF',
      'not-found',
    );
  const byLabel = (label: string): Choice[] => models.filter((m) => same(m.label, label));
  const found = wish === undefined
    ? (DEFAULTS.map(byLabel).find((m) => m.length) ?? models)
    : [
      models.filter((m) => m.files.some((f) => f.path === wish)), byLabel(wish),
      models.filter((m) => m.files.some((f) =>
        same(nameOf(f.path), wish) || same(stemOf(nameOf(f.path)), wish))),
    ].find((m) => m.length) ?? [];
  const [choice] = found;
  if (!choice)
    throw new BezelError(
      `${repo} has no ${plainText(wish ?? '')}; it has ${listText(models)}`, 'not-found',
    );
  if (found.length > 1)
    throw new BezelError(
      `${repo} has several models: say which file is meant after a colon, one of `
        + plainText(found.map((m) => nameOf((m.files[0] as HubFile).path)).join(', ')),
      'argument',
    );
  return choice;
}

const PROJECTORS = ['F16', 'BF16', 'Q8_0', 'F32'];

/** The projector for a model: of its own folder rather than another's, F16 rather than others. */
export function chooseProjector(
  files: readonly HubFile[], { files: [model] }: Choice,
): HubFile | undefined {
  const folderOf = (path: string): string => path.slice(0, path.lastIndexOf('/') + 1);
  const all = files.filter((f) => isGguf(f.path) && isProjector(f.path));
  const near = all.filter((f) => folderOf(f.path) === folderOf(model?.path ?? ''));
  const some = near.length ? near : all.filter((f) => folderOf(f.path) === '');
  const rank = ({ path }: HubFile): number => {
    const i = PROJECTORS.indexOf(quantOf(path) ?? '');
    return i < 0 ? PROJECTORS.length : i;
  };
  return some.toSorted((a, b) => rank(a) - rank(b))[0];
}

// ---- refusals ----

/** What the hub's refusals mean for a person. */
export function explainHub(
  repo: string, page: string, token: string | undefined, whose: string,
): (answer: Response) => Promise<BezelError | undefined> {
  const io = (text: string): BezelError => new BezelError(text, 'io');
  return async (answer) => {
    const { status, headers } = answer, code = headers.get('x-error-code');
    const said = headers.get('x-error-message') ?? '';
    if (code === 'GatedRepo')
      return io(token === undefined
        ? `${repo} is gated: accept its licence at ${page}, then give a token of that account in `
          + 'HF_TOKEN (or by `hf auth login`)'
        : `${repo} is gated, and the account of ${whose} has no access yet: accept its licence at `
          + page);
    if (/invalid (credentials|user)/i.test(said) || (status === 401 && token !== undefined))
      return io(`the hub does not accept the token of ${whose}; a new one is made in its settings`);
    if (code === 'RepoNotFound' || status === 401)
      return new BezelError(
        `there is no repository ${repo} on the hub, or it is private`
          + (token === undefined ? ' (HF_TOKEN may hold a token that sees it)' : ''),
        'not-found',
      );
    if (code === 'RevisionNotFound' || code === 'EntryNotFound')
      return new BezelError(`${repo} has not what was asked for: ${plainText(said)}`, 'not-found');
    if (status === 403)
      return io(`the hub refuses ${repo}: ${plainText(said) || (await wordsOf(answer)) || status}`);
    return undefined;
  };
}
