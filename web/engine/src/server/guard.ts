// guard - who may ask. A server on loopback is within reach of every page that the person has open:
// a page may send requests to it (cross-site), or have its own name point here (DNS rebinding). So
// the Host must be one of ours, and what comes from another origin is refused unless that origin
// was allowed.

import type { IncomingHttpHeaders, IncomingMessage } from 'node:http';

import { BezelError } from '../api/errors.js';
import { HttpError } from './http.js';

export interface GuardOptions {
  /** Beside localhost, 127.0.0.1 and ::1. */
  hosts?: readonly string[];
  /** Origins that may use the server: https://example.org, http://localhost:*,
   *  https://*.example.org, vscode-webview://*; "*" is all. */
  origins?: readonly string[];
}

const loopbackNames = ['localhost', '127.0.0.1', '[::1]'];

/** The name in a Host header, in lower case and without its port; undefined when it is no such
 *  header. */
export function hostName(header: string | undefined): string | undefined {
  const [, name] = /^(\[[0-9a-f:.]+\]|[a-z0-9._-]+)(?::\d{1,5})?$/i.exec(header ?? '') ?? [];
  return name?.toLowerCase().replace(/\.$/, '');
}

/** What an Origin header consists of; no port: the scheme's own. */
interface Origin {
  readonly scheme: string;
  readonly host: string;
  readonly port: string;
}

const DEFAULT_PORTS: Readonly<Record<string, string>> = { http: '80', https: '443' };

/** In lower case; only files have no host. A pattern may have "*" as its host, as its first
 *  labels ("*.example.org") and as its port. */
function parseOrigin(text: string, pattern: boolean): Origin | undefined {
  if (!pattern && text === 'file://') return { scheme: 'file', host: '', port: '' };
  const name = pattern
    ? String.raw`\*|(?:\*\.)?[a-z0-9_-]+(?:\.[a-z0-9_-]+)*`
    : String.raw`[a-z0-9_-]+(?:\.[a-z0-9_-]+)*`;
  const port = pattern ? String.raw`[1-9]\d{0,4}|\*` : String.raw`[1-9]\d{0,4}`;
  const [, scheme, host, given = ''] = new RegExp(
    String.raw`^([a-z][a-z0-9+.-]*)://(${name}|\[[0-9a-f:.]+\])(?::(${port}))?$`,
  ).exec(
    text.toLowerCase(),
  )
    ?? [];
  if (scheme === undefined || host === undefined || Number(given) > 65535) return undefined;
  return { scheme, host, port: given === DEFAULT_PORTS[scheme] ? '' : given };
}

/** What --allow-origin allows. What could never match, or is no origin, is an error. */
function readPattern(text: string): (origin: string) => boolean {
  if (text === '*') return () => true;
  const want = parseOrigin(text, true), wanted = want?.host ?? '';
  if (!want) {
    const hint = /^[a-z][a-z0-9+.-]*:\/\/[^/]+\//i.test(text)
      ? '; it has no path and no slash at its end'
      : '';
    throw new BezelError(
      `${JSON.stringify(text)} is no origin${hint}: write https://example.org, http://localhost:*, `
        + 'https://*.example.org, vscode-webview://* or *',
      'argument',
      undefined,
      'origins',
    );
  }
  const isHost = (host: string): boolean =>
    wanted === '*' || host === wanted
      || (wanted.startsWith('*.') && host.endsWith(wanted.slice(1)));
  return (origin) => {
    const is = parseOrigin(origin, false);
    return is !== undefined && is.scheme === want.scheme && isHost(is.host)
      && (want.port === '*' || is.port === want.port);
  };
}

export class Guard {
  private readonly hosts: ReadonlySet<string>;
  private readonly origins: readonly ((origin: string) => boolean)[];

  constructor(options: GuardOptions = {}) {
    const bracket = (h: string): string => (h.includes(':') && !h.startsWith('[') ? `[${h}]` : h);
    this.hosts = new Set(
      [...loopbackNames, ...(options.hosts ?? []).map(bracket)].map((h) => h.toLowerCase()),
    );
    this.origins = (options.origins ?? []).map(readPattern);
  }

  /** Headers for the answer; throws when the request is refused. `page` says that the path is a
   *  document or an asset. */
  check(req: IncomingMessage, page: boolean): Record<string, string> {
    const { headers } = req;
    const name = hostName(headers.host);
    if (name === undefined || !this.hosts.has(name))
      throw new HttpError(
        403,
        `this server does not answer to the name ${JSON.stringify(headers.host ?? '')}; `
          + '--allow-host adds one',
        'host_refused',
      );
    const { origin } = headers;
    if (origin !== undefined) {
      if (this.isOwn(origin, headers)) return {};
      if (this.origins.some((allows) => allows(origin))) return this.crossOrigin(origin, headers);
      throw new HttpError(
        403,
        `requests from the origin ${JSON.stringify(origin)} are refused; `
          + '--allow-origin opens the server to it',
        'origin_refused',
      );
    }
    // Browsers leave Origin out of some GETs and say where they come from in another header.
    const site = headers['sec-fetch-site'] ?? 'none';
    const follows = page && req.method === 'GET' && headers['sec-fetch-mode'] === 'navigate'
      && headers['sec-fetch-dest'] === 'document';
    if (site !== 'same-origin' && site !== 'none' && !follows)
      throw new HttpError(403, 'requests from other sites are refused', 'origin_refused');
    return {};
  }

  /** Who may change what is on this machine: its programs, and the server's own page. Not a page
   *  of another origin, also not one that may use the models; not another machine, since there are
   *  no passwords, nor one behind a proxy. */
  checkChange({ headers, socket }: IncomingMessage): void {
    const { origin } = headers;
    if (origin !== undefined && !this.isOwn(origin, headers))
      throw new HttpError(
        403,
        'pages of other origins may not change the models of this machine, also not those that '
          + '--allow-origin lets in',
        'change_refused',
      );
    const from = (socket.remoteAddress ?? '').replace(/^::ffff:/, '');
    const forwarded = headers['x-forwarded-for'] ?? headers.forwarded;
    if (!(from === '::1' || from.startsWith('127.')) || forwarded !== undefined)
      throw new HttpError(
        403,
        'only programs of the machine itself may change its models; there, bezel pull brings one',
        'change_refused',
      );
  }

  private isOwn(origin: string, headers: IncomingHttpHeaders): boolean {
    return origin === `http://${headers.host}` || origin === `https://${headers.host}`;
  }

  private crossOrigin(origin: string, headers: IncomingHttpHeaders): Record<string, string> {
    return {
      'access-control-allow-origin': origin,
      'access-control-allow-methods': 'GET, HEAD, POST, OPTIONS',
      'access-control-allow-headers':
        headers['access-control-request-headers'] ?? 'authorization, content-type, range',
      'access-control-allow-private-network': 'true',
      'access-control-expose-headers':
        'etag, content-range, accept-ranges, content-length, x-request-id',
      'access-control-max-age': '600',
      'cross-origin-resource-policy': 'cross-origin',
      vary: 'origin',
    };
  }
}
