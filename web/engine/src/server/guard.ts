// guard - who may ask. A server on loopback is within reach of every page that the person has open: a page may send
// requests to it (cross-site), or have its own name point here (DNS rebinding). So the Host must be one of ours, and
// what comes from another origin is refused unless that origin was allowed by name.

import type { IncomingHttpHeaders, IncomingMessage } from 'node:http';

import { HttpError } from './http.js';

export interface GuardOptions {
  /** Beside localhost, 127.0.0.1 and ::1. */
  hosts?: readonly string[];
  /** Origins such as https://example.org that may use the server; "*" is all of them. */
  origins?: readonly string[];
}

const loopbackNames = ['localhost', '127.0.0.1', '[::1]'];

/** The name in a Host header, in lower case and without its port; undefined when it is no such header. */
export function hostName(header: string | undefined): string | undefined {
  const [, name] = /^(\[[0-9a-f:.]+\]|[a-z0-9._-]+)(?::\d{1,5})?$/i.exec(header ?? '') ?? [];
  return name?.toLowerCase().replace(/\.$/, '');
}

export class Guard {
  private readonly hosts: ReadonlySet<string>;
  private readonly origins: ReadonlySet<string>;

  constructor(options: GuardOptions = {}) {
    const bracket = (h: string): string => (h.includes(':') && !h.startsWith('[') ? `[${h}]` : h);
    this.hosts = new Set([...loopbackNames, ...(options.hosts ?? []).map(bracket)].map((h) => h.toLowerCase()));
    this.origins = new Set(options.origins ?? []);
  }

  /** Headers for the answer; throws when the request is refused. `page` says that the path is a document or an asset. */
  check(req: IncomingMessage, page: boolean): Record<string, string> {
    const { headers } = req;
    const name = hostName(headers.host);
    if (name === undefined || !this.hosts.has(name)) throw new HttpError(403, `this server does not answer to the name ${JSON.stringify(headers.host ?? '')}; --allow-host adds one`, 'host_refused');
    const { origin } = headers;
    if (origin !== undefined) {
      if (this.isOwn(origin, headers)) return {};
      if (this.origins.has('*') || this.origins.has(origin)) return this.crossOrigin(origin, headers);
      throw new HttpError(403, `requests from the origin ${JSON.stringify(origin)} are refused; --allow-origin opens the server to it`, 'origin_refused');
    }
    // Browsers leave Origin out of some GETs and say where they come from in another header.
    const site = headers['sec-fetch-site'] ?? 'none';
    const follows = page && req.method === 'GET' && headers['sec-fetch-mode'] === 'navigate' && headers['sec-fetch-dest'] === 'document';
    if (site !== 'same-origin' && site !== 'none' && !follows) throw new HttpError(403, 'requests from other sites are refused', 'origin_refused');
    return {};
  }

  private isOwn(origin: string, headers: IncomingHttpHeaders): boolean {
    return origin === `http://${headers.host}` || origin === `https://${headers.host}`;
  }

  private crossOrigin(origin: string, headers: IncomingHttpHeaders): Record<string, string> {
    return {
      'access-control-allow-origin': origin,
      'access-control-allow-methods': 'GET, HEAD, POST, OPTIONS',
      'access-control-allow-headers': headers['access-control-request-headers'] ?? 'authorization, content-type, range',
      'access-control-allow-private-network': 'true',
      'access-control-expose-headers': 'etag, content-range, accept-ranges, content-length',
      'access-control-max-age': '600',
      'cross-origin-resource-policy': 'cross-origin',
      vary: 'origin',
    };
  }
}
