// browser - run a page of ours in headless Chromium on its software adapter.
//
//   const page = '/tests/web/ops.html?wasm=build/wasm/ops_test.wasm';
//   const code = await runPage(page, { seconds: 300 });
//
// The repository is served on loopback. The page posts lines to /log and ends with a post to /done,
// whose body is the exit code; nothing else is needed from the browser, so no driver is.
import { spawn } from 'node:child_process';
import fs from 'node:fs';
import http from 'node:http';
import os from 'node:os';
import path from 'node:path';

const types = {
  '.html': 'text/html', '.js': 'text/javascript', '.mjs': 'text/javascript',
  '.wasm': 'application/wasm', '.json': 'application/json',
};

/** A file of the repository, whole or the range that is asked for. */
function sendFile(request, response) {
  const file =
    path.join('.', path.normalize(decodeURIComponent(new URL(request.url, 'http://x').pathname)));
  const info = fs.statSync(file, { throwIfNoEntry: false });
  if (file.startsWith('..') || !info?.isFile()) return response.writeHead(404).end();
  const [, from, to] = /^bytes=(\d+)-(\d*)$/.exec(request.headers.range ?? '') ?? [];
  const start = Number(from ?? 0), end = to ? Number(to) : info.size - 1;
  response.writeHead(from ? 206 : 200, {
    'content-type': types[path.extname(file)] ?? 'application/octet-stream',
    'content-length': end - start + 1,
    ...(from && { 'content-range': `bytes ${start}-${end}/${info.size}` }),
  });
  fs.createReadStream(file, { start, end }).pipe(response);
}

function serve(log, done, headers) {
  return http.createServer((request, response) => {
    for (const [name, value] of Object.entries(headers)) response.setHeader(name, value);
    if (request.method !== 'POST') return sendFile(request, response);
    let body = '';
    request.on('data', (piece) => (body += piece)).on('end', () => {
      response.end();
      if (request.url === '/done') done(Number(body));
      else log(body);
    });
  });
}

/** Also while the browser's last processes still write into it. */
async function removeFolder(folder) {
  for (let i = 0; ; i++) {
    try {
      return fs.rmSync(folder, { recursive: true, force: true });
    } catch (e) {
      if (i === 50) throw e;
      await new Promise((again) => setTimeout(again, 100));
    }
  }
}

/** The page's exit code; 1 when the seconds are over or the browser dies. */
export async function runPage(
  page,
  {
    seconds = 120,
    flags = [],
    headers = {},
    log = console.log,
    chromium = process.env.CHROMIUM ?? 'chromium',
  } = {},
) {
  const profile = fs.mkdtempSync(path.join(os.tmpdir(), 'bezel-'));
  let browser, timer, server;
  try {
    return await new Promise((resolve) => {
      server = serve(log, resolve, headers).listen(0, '127.0.0.1', () => {
        const base = [
          '--headless', '--no-sandbox', '--no-first-run', '--disable-background-networking',
          '--disable-component-update', '--disable-sync',
        ];
        const gpu = [
          '--enable-unsafe-webgpu', '--use-webgpu-adapter=swiftshader', '--ignore-gpu-blocklist',
        ];
        const url = `http://127.0.0.1:${server.address().port}${page}`;
        browser = spawn(chromium, [...base, ...gpu, `--user-data-dir=${profile}`, ...flags, url], {
          stdio: ['ignore', 'ignore', 'pipe'],
        });
        let said = '';
        browser.stderr.on('data', (piece) => (said = (said + piece).slice(-4000)));
        browser.on('error', (e) => resolve((log(`cannot start ${chromium}: ${e.message}`), 1)));
        browser.on('exit', () => resolve((log(`the browser ended: ${said}`), 1)));
        timer = setTimeout(
          () => resolve((log(`no answer within ${seconds} s: ${said}`), 1)), 1000 * seconds,
        );
      });
    });
  } finally {
    clearTimeout(timer);
    browser?.removeAllListeners('exit');
    browser?.kill();
    await new Promise((gone) =>
      (browser?.exitCode === null && browser.pid ? browser.once('exit', gone) : gone()));
    server.closeAllConnections();
    server.close();
    await removeFolder(profile);
  }
}
