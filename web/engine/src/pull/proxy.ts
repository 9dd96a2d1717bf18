// proxy - HTTPS_PROXY, HTTP_PROXY and NO_PROXY, as far as this Node can use them.
//
// Node 24.14 and 25.4 can be told while they run; 22.21 and 24.5 only at their start, by
// NODE_USE_ENV_PROXY=1; older ones not at all. Bezel brings no proxy of its own.

import * as http from 'node:http';

type Environment = Readonly<Record<string, string | undefined>>;

/** A sentence where a proxy is set that will not be used. */
export function useProxies(env: Environment = process.env): string | undefined {
  const isSet = ['HTTPS_PROXY', 'https_proxy', 'HTTP_PROXY', 'http_proxy'].some((n) => env[n]);
  if (!isSet) return undefined;
  const { setGlobalProxyFromEnv: use } = http as { setGlobalProxyFromEnv?: (e: object) => void };
  if (use) {
    use(env);
    return undefined;
  }
  const [major = 0, minor = 0] = process.versions.node.split('.').map(Number);
  const can = (major === 22 && minor >= 21) || (major === 24 && minor >= 5) || major > 24;
  if (can && env.NODE_USE_ENV_PROXY === '1') return undefined;
  return 'the proxy of the environment is not used: '
    + (can ? 'set NODE_USE_ENV_PROXY=1 too' : 'that takes Node 22.21, 24.5 or later');
}
