// bad_server - serves the repository's files and, below /f/, files whose delivery goes wrong as
// asked.
//
//   const server = await badServer();
//   // each answer breaks off after 1000 bytes
//   server.files.model = { data, etag: '"1"', cut: () => 1000 };
//   fetch(`${server.url}/f/model`);
//   server.log   // [{ path, from, sent }, ...]
import fs from 'node:fs';
import http from 'node:http';
import path from 'node:path';

const types = {
  '.html': 'text/html', '.js': 'text/javascript', '.mjs': 'text/javascript',
  '.wasm': 'application/wasm',
};
const PIECE = 64 << 10;

const once = (emitter, event) => new Promise((done) => emitter.once(event, done));

/** A file is { data, etag, range (default true), length (default true: it is said), cut: bytes →
 *  after how many of them the connection breaks or undefined, reset: and what is under way is lost
 *  too, pause: milliseconds between pieces, status: () → instead of an answer, or 0 }. */
export async function sendBad(file, request, response, entry) {
  const status = file.status?.();
  if (status) return response.writeHead(status).end();
  const { data, etag } = file;
  const [, a, b] =
    (file.range ?? true) ? /^bytes=(\d+)-(\d*)$/.exec(request.headers.range ?? '') ?? [] : [];
  const from = Number(a ?? 0), to = b ? Math.min(Number(b), data.length - 1) : data.length - 1;
  entry.from = from;
  if (from >= data.length)
    return response.writeHead(416, { 'content-range': `bytes */${data.length}` }).end();
  const body = data.subarray(from, to + 1), cut = file.cut?.(body.length);
  response.writeHead(a ? 206 : 200, {
    ...((file.length ?? true) && { 'content-length': body.length }),
    ...(etag && { etag }),
    ...(a && { 'content-range': `bytes ${from}-${to}/${data.length}` }),
  });
  const gone = once(response, 'close');
  for (let at = 0; at < body.length && !response.destroyed; at += PIECE) {
    const piece = body.subarray(at, Math.min(at + PIECE, cut ?? Infinity));
    entry.sent += piece.length;
    if (!response.write(piece)) await Promise.race([once(response, 'drain'), gone]);
    // what was written arrives, or not
    if (cut !== undefined && at + PIECE >= cut)
      return file.reset ? response.destroy() : response.socket.end();
    if (file.pause) await new Promise((done) => setTimeout(done, file.pause));
  }
  response.end();
}

function sendRepository(pathname, response) {
  const file = path.join('.', path.normalize(decodeURIComponent(pathname)));
  if (file.startsWith('..') || !fs.statSync(file, { throwIfNoEntry: false })?.isFile())
    return response.writeHead(404).end();
  response.writeHead(200, {
    'content-type': types[path.extname(file)] ?? 'application/octet-stream',
  });
  fs.createReadStream(file).pipe(response);
}

/** routes: path → function (request, response, rest of the path), looked at first. */
export async function badServer(routes = {}) {
  const files = {}, log = [];
  const server = http.createServer((request, response) => {
    const { pathname } = new URL(request.url, 'http://x');
    const [route] = Object.keys(routes).filter((r) => pathname.startsWith(r));
    if (route)
      return routes[route](request, response, decodeURIComponent(pathname.slice(route.length)));
    if (!pathname.startsWith('/f/')) return sendRepository(pathname, response);
    const file = files[pathname.slice(3)];
    if (!file) return response.writeHead(404).end();
    const entry = { path: pathname.slice(3), from: 0, sent: 0 };
    log.push(entry);
    return sendBad(file, request, response, entry);
  });
  await new Promise((done) => server.listen(0, '127.0.0.1', done));
  const close = () => (server.closeAllConnections(), server.close());
  return { url: `http://127.0.0.1:${server.address().port}`, files, log, close, sendBad };
}
