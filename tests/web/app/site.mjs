// site - the built page behind a small server of its own, with the policy that the real one sends.
//
//   const site = await openSite();
//   site.url;  site.routes.set('/api/tags', (req, res) => …);
//   site.pace = gate.pace;  site.offline = true;
//   await site.close();
import fs from 'node:fs';
import http from 'node:http';
import path from 'node:path';
import { headersFor } from '../../../web/engine/dist/server/files.js';

const types = {
  '.html': 'text/html; charset=utf-8', '.js': 'text/javascript', '.css': 'text/css',
  '.svg': 'image/svg+xml', '.png': 'image/png',
  '.wasm': 'application/wasm', '.woff2': 'font/woff2', '.webmanifest': 'application/manifest+json',
  '.gguf': 'application/octet-stream',
};

/** A route of a page that has no server behind it: no models. */
export const noServer = (_, response) =>
  response.writeHead(200, { 'content-type': 'application/json' }).end('{"models":[]}');

/** A pace at which nothing comes before the gate is opened. */
export function newGate() {
  let open;
  const opened = new Promise((resolve) => (open = resolve));
  return { pace: () => opened, open };
}

/** A file, whole or the range that is asked for; `pace` is awaited before each piece of it. */
export async function sendFile(file, request, response, pace = () => {}, headers = {}) {
  const size = fs.statSync(file).size;
  const [, from, to] = /^bytes=(\d+)-(\d*)$/.exec(request.headers.range ?? '') ?? [];
  const start = Number(from ?? 0), end = to ? Math.min(Number(to), size - 1) : size - 1;
  response.writeHead(from ? 206 : 200, {
    'content-type': types[path.extname(file)] ?? 'application/octet-stream',
    'content-length': end - start + 1,
    'accept-ranges': 'bytes',
    'cache-control': 'no-cache',
    etag: `"${size}"`,
    ...headersFor(new URL(request.url, 'http://x').pathname),
    ...headers,
    ...(from && { 'content-range': `bytes ${start}-${end}/${size}` }),
  });
  for await (const piece of fs.createReadStream(file, { start, end, highWaterMark: 256 * 1024 })) {
    await pace();
    if (response.destroyed) return;
    response.write(piece);
  }
  response.end();
}

export async function openSite(root = 'web/app/dist') {
  const site = { routes: new Map(), pace: undefined, offline: false, requests: [] };
  const server = http.createServer((request, response) => {
    if (site.offline) return request.socket.destroy();
    const { pathname } = new URL(request.url, 'http://x');
    site.requests.push(pathname);
    const route = site.routes.get(pathname);
    if (route) return route(request, response);
    const file = path.join(
      root, path.normalize(decodeURIComponent(pathname === '/' ? '/index.html' : pathname)),
    );
    if (!fs.statSync(file, { throwIfNoEntry: false })?.isFile())
      return response.writeHead(404).end();
    void sendFile(file, request, response, file.endsWith('.gguf') ? site.pace : undefined);
  });
  await new Promise((resolve) => server.listen(0, '127.0.0.1', resolve));
  site.url = `http://127.0.0.1:${server.address().port}/`;
  site.close = () => {
    server.closeAllConnections();
    return new Promise((resolve) => server.close(resolve));
  };
  return site;
}
