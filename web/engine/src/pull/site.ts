// site - requests to one site that gives models away: who may see the token, where a redirect may
// lead, and what a refusal means. Node only: in a browser, redirects cannot be seen.
//
// A token goes to the site itself and to nobody it redirects to. Where a redirect led is
// remembered, so that the many ranges of a file ask the site once; an address that expired is asked
// for again.

import { BezelError } from '../api/errors.js';
import type { Fetcher } from '../store/net.js';

const MAX_REDIRECTS = 10;
const MAX_SAID = 200; // characters of a server's own words

/** Without control characters: what a server says must not command a terminal. */
export const plainText = (text: string): string =>
  text.replace(/[\0-\x1f\x7f-\x9f\u2028\u2029]+/g, ' ').trim().slice(0, MAX_SAID);

export const isLoopback = ({ hostname }: URL): boolean =>
  hostname === 'localhost' || hostname.endsWith('.localhost') || hostname === '[::1]'
    || /^127(\.\d+){3}$/.test(hostname);

export interface SiteOptions {
  /** https://registry.ollama.ai */
  base: string;
  token?: string | undefined;
  /** http to other machines too. */
  insecure?: boolean | undefined;
  /** A sentence for an answer that is a refusal; undefined: the usual ones. */
  explain?: (answer: Response) => Promise<BezelError | undefined>;
  agent: string;
}

/** A setting as the address of a site: http and https alone, without a slash at its end. */
export function siteUrl(text: string, insecure = false): URL {
  let url: URL | undefined;
  try {
    url = new URL(/^[a-z][a-z0-9+.-]*:\/\//i.test(text) ? text : `https://${text}`);
  } catch {
    url = undefined;
  }
  if (!url || !/^https?:$/.test(url.protocol) || url.search || url.hash)
    throw new BezelError(`"${plainText(text)}" is not the address of a site`, 'argument');
  if (url.username || url.password)
    throw new BezelError('the address of a site has no name and no password', 'argument');
  if (url.protocol === 'http:' && !isLoopback(url) && !insecure)
    throw new BezelError(
      `${url.host} is asked over http, which anyone on the way can read and change; --insecure `
        + 'allows it',
      'argument',
    );
  url.pathname = url.pathname.replace(/\/+$/, '');
  return url;
}

export class Site {
  readonly base: URL;
  private readonly targets = new Map<string, string>(); // where a redirect led, by address

  constructor(private readonly options: SiteOptions) {
    this.base = siteUrl(options.base, options.insecure);
  }

  get host(): string {
    return this.base.host;
  }

  /** An address below the site's: none of the parts leads elsewhere. */
  url(parts: readonly string[], query = ''): string {
    if (parts.some((part) => /^\.{0,2}$/.test(part)))
      throw new BezelError(`"${plainText(parts.join('/'))}" is no path`, 'format');
    const start = this.base.href.replace(/\/$/, '');
    // a digest's colon stays, as other clients of registries write it
    const path = parts.map((part) => encodeURIComponent(part).replaceAll('%3A', ':'));
    return `${start}/${path.join('/')}${query}`;
  }

  readonly fetch: Fetcher = async (url, init) => {
    const known = this.targets.get(url);
    if (known !== undefined) {
      const answer = await this.one(known, init);
      if (answer.status < 300 || answer.status >= 408) return answer;
      this.targets.delete(url); // it has expired
      await answer.body?.cancel();
    }
    return this.follow(url, init);
  };

  private async follow(url: string, init: Parameters<Fetcher>[1]): Promise<Response> {
    let at = url;
    for (let i = 0; i <= MAX_REDIRECTS; i++) {
      const answer = await this.one(at, init), to = answer.headers.get('location');
      if (![301, 302, 303, 307, 308].includes(answer.status) || to === null) {
        if (answer.ok && at !== url) this.targets.set(url, at);
        if (!answer.ok && at === url) await this.refuse(answer);
        return answer;
      }
      await answer.body?.cancel();
      at = this.next(at, to);
    }
    throw new BezelError(`${this.host} redirects in circles`, 'io');
  }

  private next(from: string, to: string): string {
    let url: URL | undefined;
    try {
      url = new URL(to, from);
    } catch {
      url = undefined;
    }
    // nor may a site on the network have this machine's own services asked
    const isSafe = url && isLoopback(url)
      ? isLoopback(this.base) && /^https?:$/.test(url.protocol)
      : url?.protocol === 'https:' || (url?.protocol === 'http:' && this.options.insecure === true
        && new URL(from).protocol === 'http:');
    if (!url || !isSafe || url.username || url.password)
      throw new BezelError(
        `${this.host} redirects to ${url ? `${url.protocol}//${url.host}` : 'no address'}, `
          + 'which is not followed',
        'io',
      );
    return url.href;
  }

  private one(url: string, { headers, signal }: Parameters<Fetcher>[1]): Promise<Response> {
    const { token, agent } = this.options, own = new URL(url).origin === this.base.origin;
    return fetch(url, {
      headers: {
        ...headers, 'user-agent': agent, 'accept-encoding': 'identity',
        ...(own && token !== undefined && { authorization: `Bearer ${token}` }),
      },
      redirect: 'manual',
      signal,
    });
  }

  private async refuse(answer: Response): Promise<void> {
    const error = await this.options.explain?.(answer);
    if (error) throw error;
  }
}

/** What a refusal says of itself, as far as it is a short text or JSON with one. */
export async function wordsOf(answer: Response): Promise<string> {
  if (Number(answer.headers.get('content-length') ?? 0) > 1 << 16) return '';
  const text = (await answer.text()).slice(0, 1 << 16);
  try {
    const said = JSON.parse(text) as { error?: unknown; errors?: { message?: unknown }[] } | null;
    const word = said?.error ?? said?.errors?.[0]?.message;
    return typeof word === 'string' ? plainText(word) : '';
  } catch {
    return /^\s*</.test(text) ? '' : plainText(text);
  }
}
