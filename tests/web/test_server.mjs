// The server without a model to speak of: who is let in, and what can be reached of the page and
// the store. tests/web/test_server_clients.mjs has the official clients and a model.
import fs from 'node:fs';
import net from 'node:net';
import zlib from 'node:zlib';

import { parseRange } from '../../web/engine/dist/server/content.js';
import { Guard, hostName } from '../../web/engine/dist/server/guard.js';
import { done, equal, ok, same, test, throws } from './check.mjs';
import { ask, post, sleep, startServer, temp, until } from './server_fixture.mjs';
import { app, digests, s, weights } from './server_with_store.mjs';
import { splitGguf } from './split_gguf.mjs';

test('only names of this machine are answered to', async () => {
  const status = async (host) => (await ask(s.port, '/health', { headers: { host } })).status;
  for (const host of [
    `localhost:${s.port}`, '127.0.0.1', `[::1]:${s.port}`, 'LOCALHOST', 'localhost.',
  ])
    equal(await status(host), 200, host);
  for (const host of [
    'evil.example', `evil.example:${s.port}`, 'localhost.evil.example', '127.0.0.1.nip.io',
    'localhost@evil', 'localhost:1:2', '127.0.0.2', '0.0.0.0', '[::]', 'local host', '2130706433',
    '0x7f.1',
  ])
    ok([400, 403].includes(await status(host)), host);
  equal(hostName('a_b.c:80'), 'a_b.c');
  equal(hostName(undefined), undefined);
  equal(hostName(''), undefined);
});

test('what another site asks for is refused, whatever the method', async () => {
  const from = (headers, path = '/api/tags', method = 'GET') =>
    ask(s.port, path, { method, headers, ...(method === 'POST' && { body: '{}' }) });
  const own = `http://127.0.0.1:${s.port}`;
  for (const origin of [
    'https://evil.example', 'null', 'http://localhost:3000', 'file://',
    `http://127.0.0.1:${s.port + 1}`, `${own}.evil.example`, 'chrome-extension://abc',
  ])
    for (const [path, method] of [
      ['/api/tags', 'GET'], ['/v1/chat/completions', 'POST'], ['/api/chat', 'POST'],
      [`/bezel/blob/${digests['gemma4:e2b']}`, 'GET'], ['/v1/models', 'OPTIONS'], ['/', 'GET'],
    ]) {
      const r = await from({ origin }, path, method);
      equal(r.status, 403, `${origin} ${method} ${path}`);
      equal(r.headers['access-control-allow-origin'], undefined);
    }
  equal((await from({ origin: own })).status, 200);
  equal((await from({ 'sec-fetch-site': 'same-origin' })).status, 200);
  for (const site of ['cross-site', 'same-site']) {
    equal((await from({ 'sec-fetch-site': site })).status, 403);
    // not a page
    equal(
      (await from({
        'sec-fetch-site': site, 'sec-fetch-mode': 'navigate', 'sec-fetch-dest': 'document',
      })).status,
      403,
    );
    // a link to us
    equal(
      (await from(
        { 'sec-fetch-site': site, 'sec-fetch-mode': 'navigate', 'sec-fetch-dest': 'document' }, '/',
      )).status,
      200,
    );
    equal(
      (await from(
        { 'sec-fetch-site': site, 'sec-fetch-mode': 'no-cors', 'sec-fetch-dest': 'script' },
        '/sw.js',
      )).status,
      403,
    );
    equal(
      (await from(
        { 'sec-fetch-site': site, 'sec-fetch-mode': 'navigate', 'sec-fetch-dest': 'iframe' }, '/',
      )).status,
      403,
    );
  }
  ok(!s.log.length, 'nothing was run');
});

test('an origin that was allowed by name may ask, and no other', async () => {
  const open = await startServer({ origins: ['https://good.example'], hosts: ['box.local'] });
  try {
    const r = await ask(open.port, '/v1/chat/completions', {
      method: 'OPTIONS',
      headers: {
        origin: 'https://good.example',
        'access-control-request-headers': 'content-type, x-stainless-os',
      },
    });
    equal(r.status, 204);
    equal(r.headers['access-control-allow-origin'], 'https://good.example');
    equal(r.headers['access-control-allow-headers'], 'content-type, x-stainless-os');
    equal(
      (await ask(open.port, '/api/tags', {
        headers: { origin: 'https://good.example', host: 'box.local' },
      })).status,
      200,
    );
    equal(
      (await ask(open.port, '/api/tags', { headers: { origin: 'https://bad.example' } })).status,
      403,
    );
  } finally {
    await open.close();
  }
});

test('origins are allowed by pattern, and what is no origin is refused at the start', async () => {
  const guard = (...origins) => new Guard({ origins });
  const allows = (g, origin) => {
    try {
      return 'access-control-allow-origin'
        in g.check({ method: 'GET', headers: { host: '127.0.0.1:1', origin } }, false);
    } catch (e) {
      equal(e.code, 'origin_refused');
      return false;
    }
  };
  const cases = {
    'http://localhost:*': [
      ['http://localhost:3000', 'http://localhost', 'HTTP://LOCALHOST:8080'],
      [
        'https://localhost:3000', 'http://localhost.evil.example:3000', 'http://127.0.0.1:3000',
        'http://localhost:3000/x', 'http://localhost:',
      ],
    ],
    'vscode-webview://*': [
      ['vscode-webview://1b2c3d', 'vscode-webview://a.b-c'],
      ['vscode-file://x', 'http://vscode-webview', 'vscode-webview://', 'null'],
    ],
    'https://*.example.org': [
      ['https://a.example.org', 'https://a.b.example.org'],
      [
        'https://example.org', 'https://evilexample.org', 'https://a.example.org:444',
        'https://a.example.org.evil',
      ],
    ],
    'https://Example.org:443': [
      ['https://example.org'], ['https://example.org:444', 'http://example.org:443'],
    ],
    'file://*': [['file://'], ['null', 'app://x']],
    'http://[::1]:*': [['http://[::1]:5173'], ['http://[::2]:5173']],
    '*': [['https://anything.example', 'null', 'chrome-extension://abc'], []],
  };
  for (const [pattern, [yes, no]] of Object.entries(cases)) {
    for (const origin of yes)
      ok(allows(guard('https://other.example', pattern), origin), `${pattern} ${origin}`);
    for (const origin of no)
      ok(!allows(guard('https://other.example', pattern), origin), `${pattern} ${origin}`);
  }
  for (const bad of [
    '', 'localhost', 'localhost:3000', 'example.org', 'https://', 'https://example.org/',
    'https://example.org/page', 'http://loc*', 'http://*:x', 'http://a:99999', 'http://a:0',
    'http://a:080', 'null', '**', 'https://a b', 'https://*example.org', 'https://a.*.org',
    'https://user@example.org',
  ])
    throws(() => guard(bad), (e) => e.kind === 'argument' && /is no origin/.test(e.message), bad);
});

test("the version is one that Ollama's clients accept, with our own beside it", async () => {
  const { version, bezel } = (await ask(s.port, '/api/version')).json;
  const [major, minor, patch] = version.split('.').map(Number);
  ok(
    /^\d+\.\d+\.\d+$/.test(version) && (major > 0 || minor > 6 || (minor === 6 && patch >= 4)),
    version,
  );
  equal(bezel, '0');
});

test('the page comes with its type, its policy and its cache rules', async () => {
  const page = await ask(s.port, '/');
  equal(page.status, 200);
  equal(page.headers['content-type'], 'text/html; charset=utf-8');
  equal(page.headers['cache-control'], 'no-cache');
  const policy = page.headers['content-security-policy'];
  ok(
    policy.includes("script-src 'self' 'wasm-unsafe-eval'") && policy.includes("connect-src 'self'")
      && policy.includes("frame-ancestors 'none'"),
  );
  ok(!/script-src[^;]*unsafe-inline/.test(policy));
  equal(page.headers['x-content-type-options'], 'nosniff');
  equal(page.headers['referrer-policy'], 'no-referrer');
  const asset = await ask(s.port, '/assets/main-Ab12Cd34.js');
  ok(
    asset.headers['cache-control'].includes('immutable')
      && asset.headers['content-type'].startsWith('text/javascript'),
  );
  equal((await ask(s.port, '/sw.js')).headers['service-worker-allowed'], '/');
  equal((await ask(s.port, '/sw.js')).headers['cache-control'], 'no-cache');
  const again = await ask(s.port, '/', { headers: { 'if-none-match': page.headers.etag } });
  equal(again.status, 304);
  equal(again.bytes.length, 0);
  equal((await ask(s.port, '/some-view', { headers: { accept: 'text/html' } })).text, page.text);
  // its relative addresses would lead nowhere
  equal((await ask(s.port, '/deeper/view', { headers: { accept: 'text/html' } })).status, 404);
  equal((await ask(s.port, '/missing.js', { headers: { accept: 'text/html' } })).status, 404);
  fs.writeFileSync(`${app}/index.html`, '<!doctype html><title>newer page</title>');
  const newer = await ask(s.port, '/', { headers: { 'if-none-match': page.headers.etag } });
  ok(newer.status === 200 && newer.text.includes('newer'));
  equal((await ask(s.port, '/', { method: 'HEAD' })).bytes.length, 0);
});

test('what is text comes packed, once for all, and ranges of it as it is', async () => {
  const text = 'export const words = "the same again and again";\n'.repeat(4000);
  const name = '/assets/words-Ab12Cd34.js';
  fs.writeFileSync(`${app}${name}`, text);
  fs.writeFileSync(`${app}/assets/noise-Ab12Cd34.png`, weights);
  await ask(s.port, '/'); // it looks again
  const get = (encoding, more = {}) =>
    ask(s.port, name, { headers: { ...(encoding && { 'accept-encoding': encoding }), ...more } });
  const plain = await get(), br = await get('gzip, deflate, br');
  const gzip = await get('gzip;q=0.5, br;q=0');
  same(
    [
      plain.headers['content-encoding'], br.headers['content-encoding'],
      gzip.headers['content-encoding'],
    ],
    [undefined, 'br', 'gzip'],
  );
  same(
    [plain.text, String(zlib.brotliDecompressSync(br.bytes)), String(zlib.gunzipSync(gzip.bytes))],
    [text, text, text],
  );
  ok(br.bytes.length < 2000 && Number(br.headers['content-length']) === br.bytes.length);
  equal(new Set([plain, br, gzip].map((r) => r.headers.etag)).size, 3);
  for (const r of [plain, br, gzip]) equal(r.headers.vary, 'accept-encoding');
  equal((await get('br', { 'if-none-match': br.headers.etag })).status, 304);
  equal((await get('gzip', { 'if-none-match': br.headers.etag })).status, 200);
  const part = await get('br', { range: 'bytes=10-19' });
  same([part.status, part.headers['content-encoding'], part.text, part.headers.etag], [
    206, undefined, text.slice(10, 20), plain.headers.etag,
  ]);
  const noise =
    await ask(s.port, '/assets/noise-Ab12Cd34.png', { headers: { 'accept-encoding': 'br' } });
  same([noise.headers['content-encoding'], noise.headers.vary, noise.bytes.equals(weights)], [
    undefined, undefined, true,
  ]);
});

test('clients that do not read files take no memory, and are let go', async () => {
  const page = `${temp}/large`;
  fs.mkdirSync(`${page}/assets`, { recursive: true });
  fs.writeFileSync(`${page}/index.html`, '<!doctype html>');
  fs.writeFileSync(`${page}/assets/large-Ab12Cd34.bin`, Buffer.alloc(24 << 20, 7));
  const one = await startServer({ app: page, limits: { stallMs: 1500 } });
  const before = process.memoryUsage.rss();
  try {
    // counted from the start: on a busy machine they may be let go while another reads
    let gone = 0;
    const stuck = Array.from({ length: 60 }, () => {
      const socket = net.connect(one.port, '127.0.0.1', () =>
        socket.write('GET /assets/large-Ab12Cd34.bin HTTP/1.1\r\nHost: localhost\r\n\r\n'));
      socket.pause().on('error', () => {}).on('close', () => gone++);
      return socket;
    });
    await sleep(1000);
    const grown = (process.memoryUsage.rss() - before) / 2 ** 20;
    ok(grown < 300, `${grown} MB for ${stuck.length} clients that do not read`);
    equal((await ask(one.port, '/assets/large-Ab12Cd34.bin')).bytes.length, 24 << 20);
    await sleep(2500); // longer than the limit: who reads before it is up is served on
    for (const socket of stuck) socket.resume();
    await until(() => gone === stuck.length);
    equal(gone, stuck.length, 'they were let go');
  } finally {
    await one.close();
  }
});

test('no path leads out of the page or the store', async () => {
  const ups = [
    '..', '%2e%2e', '.%2e', '%2e.', '%252e%252e', '..%00', '..;', '..%5c', '%c0%ae%c0%ae',
    '..%c0%af', '\\..', '....', '.', '%2E%2E',
  ];
  const slashes = ['/', '%2f', '%5c', '//', '/./', '%252f'];
  const starts = [
    '/', '/assets/', '/bezel/blob/', '/bezel/manifest/', '/v1/models/', '/up/',
    '/bezel/blob/sha256-', '/./',
  ];
  const targets = ['secret.txt', 'etc/passwd', 'secret.txt%00.html', 'app/index.html/..'];
  let seed = 1;
  const pick = (list) => list[(seed = (seed * 1103515245 + 12345) % 2147483648) % list.length];
  const paths = [
    '/link.txt', '/up/secret.txt', '/%00', '/index.html%00', '/%', '/%ff', '//etc/passwd',
    `/bezel/blob/${'ab'.repeat(32)}`, `/bezel/blob/${'AB'.repeat(32)}`, '/bezel/blob/',
    '/bezel/manifest/..%2f..%2f..%2fsecret.txt', '/bezel/manifest/%00',
    '/bezel/manifest/http://a/b/c:d',
  ];
  for (let i = 0; i < 600; i++)
    paths.push(
      pick(starts) + Array.from({ length: 1 + (i % 6) }, () => pick(ups) + pick(slashes)).join('')
        + pick(targets),
    );
  for (const path of paths) {
    const r = await ask(s.port, path);
    ok([400, 404].includes(r.status), `${path}: ${r.status}`);
    ok(!r.text.includes('SECRET') && !r.text.includes('root:'), path);
  }
  same(s.said, []);
});

test('a request line that is not one of ours is refused', async () => {
  const raw = (line, host = true) => new Promise((finish) => {
    const socket = net.connect(s.port, '127.0.0.1', () =>
      socket.write(`${line}\r\n${host ? 'Host: localhost\r\n' : ''}Connection: close\r\n\r\n`));
    let text = '';
    socket
      .on('data', (d) => (text += d))
      .on('close', () => finish(text))
      .on('error', () => finish(text));
  });
  for (const line of [
    'GET http://evil.example/ HTTP/1.1', 'GET * HTTP/1.1', 'GET ../secret.txt HTTP/1.1',
    'GET /\u0000 HTTP/1.1', 'DELETE /api/tags HTTP/1.1', 'PUT / HTTP/1.1', 'TRACE / HTTP/1.1',
    'POST / HTTP/1.1', 'GET /api/chat HTTP/1.1', 'POST /api/tags HTTP/1.1', 'BREW / HTTP/1.1',
  ])
    ok(/^HTTP\/1\.1 4\d\d /.test(await raw(line)), line);
  equal(await raw('CONNECT evil.example:443 HTTP/1.1'), '');
  ok(/^HTTP\/1\.1 403 /.test(await raw('GET /health HTTP/1.0\r\nX: y', false)), 'no Host at all');
  ok((await raw(`GET /health HTTP/1.1\r\nX: ${'x'.repeat(20000)}`)).startsWith('HTTP/1.1 431'));
});

test('a blob is sent whole, by ranges, and not at all when the client has it', async () => {
  const hex = digests['gemma4:e2b'], path = `/bezel/blob/${hex}`, etag = `"sha256:${hex}"`;
  const get = (headers, method = 'GET') => ask(s.port, path, { headers, method });
  const all = await get({});
  equal(all.status, 200);
  equal(all.headers.etag, etag);
  same([all.headers['accept-ranges'], all.headers['cache-control']], ['bytes', 'no-store']);
  ok(all.bytes.equals(weights));
  const head = await get({}, 'HEAD');
  equal(head.headers['content-length'], '5000');
  equal(head.bytes.length, 0);
  for (const [range, a, b] of [
    ['bytes=0-0', 0, 1], ['bytes=100-199', 100, 200], ['bytes=4990-', 4990, 5000],
    ['bytes=-10', 4990, 5000], ['bytes=-99999', 0, 5000], ['bytes=4000-99999', 4000, 5000],
  ]) {
    const r = await get({ range });
    equal(r.status, 206, range);
    equal(r.headers['content-range'], `bytes ${a}-${b - 1}/5000`);
    ok(r.bytes.equals(weights.subarray(a, b)), range);
  }
  for (const range of ['bytes=5000-', 'bytes=9999-10000', 'bytes=-0']) {
    const r = await get({ range });
    equal(r.status, 416, range);
    equal(r.headers['content-range'], 'bytes */5000');
  }
  for (const range of [
    'bytes=0-1,3-4', 'bytes=5-1', 'bytes=a-b', 'lines=0-1', 'bytes=-', 'bytes=0-1x',
  ])
    equal((await get({ range })).status, 200, range);
  equal((await get({ 'if-none-match': etag })).status, 304);
  equal((await get({ 'if-none-match': `"x", W/${etag}` })).status, 304);
  equal((await get({ 'if-none-match': '"x"' })).status, 200);
  equal((await get({ 'if-range': etag, range: 'bytes=0-9' })).status, 206);
  equal((await get({ 'if-range': '"x"', range: 'bytes=0-9' })).status, 200);
  equal(
    (await get({ 'if-range': 'Sat, 01 Jan 2028 00:00:00 GMT', range: 'bytes=0-9' })).status, 200,
  );
  for (const wrong of ['0'.repeat(64), hex.slice(1), `${hex}0`, `sha256:${hex}`])
    equal((await ask(s.port, `/bezel/blob/${wrong}`)).status, 404);
  same(parseRange('bytes=0-', 0), 'unsatisfiable');
});

test('models are those of the store and those that ship, and a manifest names blobs that are there',
    async () => {
  const { models } = (await ask(s.port, '/api/tags')).json;
  same(models.map((m) => m.name).sort(), ['canvas:26b', 'gemma4:e2b', 'tiny:latest']);
  const e2b = models.find((m) => m.name === 'gemma4:e2b');
  const tiny = models.find((m) => m.name === 'tiny:latest');
  same(e2b.details, {
    parent_model: '', format: 'gguf', family: 'gemma4', families: ['gemma4'],
    parameter_size: '5.1B', quantization_level: 'Q4_K_M',
  });
  same([tiny.details.parameter_size, tiny.details.quantization_level], ['6.1M', 'Q8_0']);
  ok(/^[0-9a-f]{64}$/.test(e2b.digest) && tiny.size === 6772384);
  for (const name of [
    'tiny', 'TINY:latest', 'gemma4:e2b', 'library/gemma4:E2B',
    'registry.ollama.ai%2Flibrary%2Fgemma4%3Ae2b',
  ]) {
    const manifest = (await ask(s.port, `/bezel/manifest/${name}`)).json;
    for (const { digest, size } of [manifest.config, ...manifest.layers]) {
      const r = await ask(s.port, `/bezel/blob/${digest.slice(7)}`, { method: 'HEAD' });
      same(
        [r.status, r.headers['content-length'], r.headers.etag],
        [200, String(size), `"${digest}"`],
        name,
      );
    }
  }
  equal((await ask(s.port, '/bezel/manifest/none')).status, 404);
  same((await ask(s.port, '/v1/models')).json.data.map((m) => m.id).sort(), [
    'canvas:26b', 'gemma4:e2b', 'tiny:latest',
  ]);
  equal((await ask(s.port, '/v1/models/tiny')).json.id, 'tiny:latest');
  const missing = await ask(s.port, '/v1/models/none');
  same([missing.status, missing.json.error.code], [404, 'model_not_found']);
});

test('the parts of a split file are one model, and no error says where they lie', async () => {
  const place = `${temp}/two parts`, part = (i) => `${place}/m-0000${i}-of-00002.gguf`;
  const tiny = fs.readFileSync('models/tiny.q8_0.gguf');
  fs.mkdirSync(`${place}/held`, { recursive: true });
  splitGguf(tiny, 2).forEach((bytes, i) => fs.writeFileSync(`${place}/held/${i}`, bytes));
  for (const i of [1, 2]) fs.symlinkSync(`held/${i - 1}`, part(i)); // as other programs keep them
  const { port, close } = await startServer({ files: { split: part(1) } });
  try {
    const [model] = (await ask(port, '/api/tags')).json.models;
    const show = () => post(port, '/api/show', { model: 'split' });
    same([model.name, model.details.parameter_size, model.size > tiny.length], [
      'split:latest', '6.1M', true,
    ]);
    const { model_info: info } = (await show()).json;
    equal(info['general.architecture'], 'gemma4');
    for (const spoil of [() => fs.writeFileSync(part(2), 'x'), () => fs.rmSync(part(2))]) {
      spoil();
      const r = await show();
      ok(r.status >= 400 && /^the model: /.test(r.json.error) && !r.text.includes('parts'), r.text);
    }
  } finally {
    await close();
  }
});

await done(process.argv[2]);
await s.close();
