// registry - a registry of models and a hub, each on a port of its own, and the host of files that
// both redirect to. They behave like the real ones, or go wrong as asked.
//
//   const net = await registry();
//   net.add('library/gemma4:e2b', { model: bytes, params: '{}', config: '{}' });
//   net.repo('org/repo', { 'a-Q4_K_M.gguf': bytes }, { gated: true, token: 'hf_x' });
//   net.bad[digest] = { cut: () => 1000 }     what bad_server.mjs knows; `redirect`: where to;
//                                             `at`: request to status, with `says`, `headers`;
//                                             `never` answers; `uses`: of one signed address
//   net.log                                   [{ at: 'registry' | 'hub' | 'files', path, headers }]
import crypto from 'node:crypto';
import http from 'node:http';

import { sendBad } from './bad_server.mjs';

export const sha = (data) => crypto.createHash('sha256').update(data).digest('hex');
export const image = (kind) => `application/vnd.ollama.image.${kind}`;
const CONFIG = 'application/vnd.docker.container.image.v1+json';
const MANIFEST = 'application/vnd.docker.distribution.manifest.v2+json';

const json = (response, status, value, headers = {}) =>
  response.writeHead(status, { 'content-type': 'application/json', ...headers })
    .end(typeof value === 'string' ? value : JSON.stringify(value));

async function listen(handler) {
  const server = http.createServer(handler);
  await new Promise((done) => server.listen(0, '127.0.0.1', done));
  return { server, url: `http://127.0.0.1:${server.address().port}` };
}

/** A registry's manifest, and its blobs by digest. A layer is text or bytes. */
export function manifestOf({ config, ...layers }) {
  const blobs = {};
  const entry = (mediaType, data) => {
    const bytes = Buffer.from(data), digest = sha(bytes);
    blobs[digest] = bytes;
    return { mediaType, digest: `sha256:${digest}`, size: bytes.length };
  };
  const manifest = {
    schemaVersion: 2, mediaType: MANIFEST, config: entry(CONFIG, config),
    layers: Object.entries(layers).map(([kind, data]) => entry(image(kind), data)),
  };
  return { text: JSON.stringify(manifest, null, 3), blobs };
}

export async function registry() {
  const manifests = {}, blobs = {}, repos = {}, bad = {}, log = [], signed = new Map();
  const note = (at, { url, headers }) => {
    const entry = { at, path: url, headers, from: 0, sent: 0 };
    log.push(entry);
    return entry;
  };

  /** Instead of an answer, where something was asked for; false: nothing was. */
  function goWrong(key, request, response) {
    const wrong = bad[key], status = wrong?.at?.(request) ?? 0;
    if (wrong?.never) return true;
    if (wrong?.redirect !== undefined)
      return response.writeHead(307, { location: wrong.redirect }).end(), true;
    if (status) return json(response, status, wrong.says ?? {}, wrong.headers), true;
    return false;
  }

  // ---- where the bytes are: a port of its own, as a CDN is a host of its own ----

  const files = await listen((request, response) => {
    const entry = note('files', request);
    const { pathname, searchParams } = new URL(request.url, 'http://x');
    const digest = pathname.slice(1), data = blobs[digest];
    if (request.headers.authorization) return json(response, 400, 'two kinds of authorization');
    if (goWrong(`files/${digest}`, request, response)) return undefined;
    const signature = searchParams.get('signature'), used = (signed.get(signature) ?? 0) + 1;
    if (!data || !signed.has(signature) || used > (bad[digest]?.uses ?? Infinity))
      return response.writeHead(403).end();
    signed.set(signature, used);
    return sendBad({ data, etag: `"${digest}"`, ...bad[digest] }, request, response, entry);
  });
  const toFiles = (response, status, digest) => {
    const signature = `secret${signed.size}`;
    signed.set(signature, 0);
    const location = `${files.url}/${digest}?signature=${signature}`;
    response.writeHead(status, { location }).end();
  };

  // ---- the registry ----

  const models = await listen((request, response) => {
    note('registry', request);
    const path = decodeURIComponent(new URL(request.url, 'http://x').pathname);
    const [, name, kind, what] = /^\/v2\/(.+)\/(manifests|blobs)\/(.+)$/.exec(path) ?? [];
    const key = kind === 'manifests' ? `${name}:${what}` : what?.replace(/^sha256:/, '');
    if (key === undefined) return response.writeHead(404).end();
    if (goWrong(key, request, response)) return undefined;
    if (kind === 'blobs')
      return blobs[key] ? toFiles(response, 307, key) : response.writeHead(404).end();
    return manifests[key] === undefined
      ? json(response, 404, { errors: [{ code: 'MANIFEST_UNKNOWN', message: 'unknown' }] })
      : json(response, 200, manifests[key], { 'content-type': MANIFEST });
  });

  // ---- the hub ----

  const hub = await listen((request, response) => {
    note('hub', request);
    const { pathname, searchParams } = new URL(request.url, 'http://x');
    const path = decodeURIComponent(pathname);
    const [, tree, revision] = /^\/api\/models\/([^/]+\/[^/]+)\/tree\/([^/]+)$/.exec(path) ?? [];
    const [, id = tree, at = revision, file] =
      /^\/([^/]+\/[^/]+)\/resolve\/([^/]+)\/(.+)$/.exec(path) ?? [];
    const repo = repos[id], token = request.headers.authorization?.replace(/^Bearer /, '');
    const refuse = (status, code, message) =>
      json(response, status, { error: message }, {
        'x-error-code': code, 'x-error-message': message,
      });
    if (goWrong(path.slice(1), request, response)) return undefined;
    if (token !== undefined && !/^hf_/.test(token))
      return refuse(401, '', 'Invalid credentials in Authorization header');
    if (!repo) return refuse(401, 'RepoNotFound', 'Repository not found');
    if (repo.revision !== at) return refuse(404, 'RevisionNotFound', `Invalid rev id: ${at}`);
    if (tree) {
      const page = Number(searchParams.get('cursor') ?? 0);
      const list = repo.tree.slice(page * repo.page, (page + 1) * repo.page);
      const more = (page + 1) * repo.page < repo.tree.length;
      const next = `<${hub.url}${pathname}?recursive=true&cursor=${page + 1}>; rel="next"`;
      return json(response, 200, list, more ? { link: next } : {});
    }
    if (repo.gated && token === undefined)
      return refuse(401, 'GatedRepo', `Access to model ${id} is restricted`);
    if (repo.gated && token !== repo.token)
      return refuse(403, 'GatedRepo', `Access to model ${id} is restricted`);
    const digest = repo.files[file];
    return digest ? toFiles(response, 302, digest) : refuse(404, 'EntryNotFound', 'no such file');
  });

  return {
    url: models.url, hub: hub.url, files: files.url, manifests, blobs, bad, log,
    add(name, layers) {
      const made = manifestOf(layers);
      Object.assign(blobs, made.blobs);
      manifests[name] = made.text;
      return made;
    },
    repo(id, contents, { gated = false, token, page = 1000, revision = 'main' } = {}) {
      const names = {}, tree = [{ type: 'directory', oid: '0'.repeat(40), size: 0, path: 'more' }];
      for (const [path, data] of Object.entries(contents)) {
        const digest = sha(data);
        blobs[digest] = Buffer.from(data);
        names[path] = digest;
        tree.push({
          type: 'file', oid: digest.slice(0, 40), size: data.length, path,
          lfs: { oid: digest, size: data.length, pointerSize: 134 }, xetHash: 'x',
        });
      }
      tree.push({ type: 'file', oid: '1'.repeat(40), size: 7, path: 'README.md' });
      repos[id] = { files: names, tree, gated, token, page, revision };
    },
    close() {
      for (const { server } of [files, models, hub]) {
        server.closeAllConnections();
        server.close();
      }
    },
  };
}
