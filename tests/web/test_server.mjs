// The server without a model to speak of: who is let in, what can be reached, whose turn it is, and
// what is sent. tests/web/test_server_clients.mjs has the official clients and a model.
import fs from 'node:fs';
import net from 'node:net';
import zlib from 'node:zlib';

import { BezelError } from '../../web/engine/dist/core.js';
import { parseRange, sendContent } from '../../web/engine/dist/server/content.js';
import { Guard, hostName } from '../../web/engine/dist/server/guard.js';
import { parseKeepAlive } from '../../web/engine/dist/server/ollama.js';
import { FairQueue } from '../../web/engine/dist/server/queue.js';
import { Slices } from '../../web/engine/dist/engine/queue.js';
import { Sessions } from '../../web/engine/dist/engine/sessions.js';
import { done, equal, ok, rejects, same, test, throws } from './check.mjs';
import {
  ask, echo, makeStore, post, sleep, startServer, temp, told, until,
} from './server_fixture.mjs';
import { splitGguf } from './split_gguf.mjs';

const root = `${temp}/store`, app = `${temp}/app`;
const gemma = {
  model_format: 'gguf', model_family: 'gemma4', model_families: ['gemma4'], model_type: '5.1B',
  file_type: 'Q4_K_M',
};
const weights = Buffer.from(Array.from({ length: 5000 }, (_, i) => (i * 7) & 255));
const digests = makeStore(root, {
  'gemma4:e2b': [weights, gemma, { temperature: 1, stop: ['<turn|>'] }],
  'llama:8b': [Buffer.from('other'), { ...gemma, model_family: 'llama' }],
});
fs.mkdirSync(`${app}/assets`, { recursive: true });
fs.writeFileSync(`${temp}/secret.txt`, 'SECRET');
fs.writeFileSync(`${app}/index.html`, '<!doctype html><title>page</title>');
fs.writeFileSync(`${app}/sw.js`, '1');
fs.writeFileSync(`${app}/assets/main-Ab12Cd34.js`, 'export {}');
fs.symlinkSync('../secret.txt', `${app}/link.txt`);
fs.symlinkSync('..', `${app}/up`);
fs.symlinkSync('../../secret.txt', `${root}/blobs/sha256-${'ab'.repeat(32)}`);

const s = await startServer({ root, app, limits: { bodyBytes: 1 << 20 } });
const say = (content, more = {}) => ({
  model: 'tiny', messages: [{ role: 'user', content }], ...more,
});

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
  same(models.map((m) => m.name).sort(), ['gemma4:e2b', 'tiny:latest']);
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
    'gemma4:e2b', 'tiny:latest',
  ]);
  equal((await ask(s.port, '/v1/models/tiny')).json.id, 'tiny:latest');
  const missing = await ask(s.port, '/v1/models/none');
  same([missing.status, missing.json.error.code], [404, 'model_not_found']);
});

/** What a client hears that looks at the answer once it has sent all of so many MiB, as most do. */
async function heardAtTheEnd(port, size) {
  const piece = 'y'.repeat(1 << 20), socket = net.connect(port, '127.0.0.1');
  const heard = await new Promise((resolve) => {
    const send = (left) => {
      if (left) socket.write(piece, () => setTimeout(send, 5, left - 1));
      else socket.on('data', (d) => resolve(String(d).split('\r\n')[0]));
    };
    const head = [
      'POST /api/chat HTTP/1.1', 'Host: localhost', `Content-Length: ${size << 20}`, '', '',
    ];
    socket.on('error', (e) => resolve(e.code)).write(head.join('\r\n'), () => send(size));
  });
  socket.destroy();
  return heard;
}

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

test('a body that is too large, or no JSON, is refused in the words of each protocol', async () => {
  for (const path of ['/v1/chat/completions', '/api/chat']) {
    const words = (r) => (path.startsWith('/v1') ? r.json.error.message : r.json.error);
    const large = await post(s.port, path, say('x'.repeat(2 << 20)));
    same([large.status, words(large)], [413, 'the request is larger than 1 MiB']);
    equal(await heardAtTheEnd(s.port, 24), 'HTTP/1.1 413 Payload Too Large', 'however much it is');
    const chunked = await ask(s.port, path, {
      method: 'POST', headers: { 'transfer-encoding': 'chunked' }, body: 'y'.repeat((1 << 20) + 1),
    });
    equal(chunked.status, 413);
    for (const body of ['', '{', '[]', '3', '"x"', Buffer.from([0x7b, 0xff, 0x7d])])
      equal((await ask(s.port, path, { method: 'POST', body })).status, 400);
    const none = await post(s.port, path, say('x', { model: 'none' }));
    same([none.status, words(none)], [404, 'there is no model "none" on this machine']);
  }
  equal((await post(s.port, '/api/chat', say('x', { options: { mirostat: 2 } }))).status, 400);
  equal(
    (await post(s.port, '/api/chat', say('x', { options: { seed: { toString: 1 } } }))).status, 400,
  );
  equal((await post(s.port, '/api/chat', say('x', { keep_alive: 'soon' }))).status, 400);
  equal((await post(s.port, '/api/chat', { model: 'tiny', messages: 3 })).status, 400);
});

test('a body of many values, or beside too many others, is refused; what has no effect is not kept',
    async () => {
  const one = await startServer({ limits: { bodyValues: 1000, allBodiesBytes: 8000 } });
  try {
    const many =
      await post(one.port, '/v1/chat/completions', { ...say('x'), metadata: Array(1000).fill([]) });
    same([many.status, many.json.error.message], [413, 'the body has more than 1000 values']);
    equal(
      (await post(one.port, '/v1/chat/completions', say(',[{"\\'.repeat(400)))).status,
      200,
      'a text is one value',
    );
    const waits = net
      .connect(
        one.port,
        '127.0.0.1',
        () => waits.write(
          `POST /api/chat HTTP/1.1\r\nHost: localhost\r\n`
            + `Content-Length: 7800\r\n\r\n${'x'.repeat(7700)}`,
        ),
      )
      .on('error', () => {});
    await until(() => one.server.bodies.bytes === 7700);
    const full = await post(one.port, '/v1/chat/completions', say('y'.repeat(400)));
    same([full.status, full.json.error.code], [503, 'bodies_full']);
    equal(await heardAtTheEnd(one.port, 24), 'HTTP/1.1 503 Service Unavailable');
    equal(one.server.bodies.bytes, 7700);
    waits.destroy();
    await until(() => !one.server.bodies.bytes);
    equal((await post(one.port, '/v1/chat/completions', say('y'.repeat(400)))).status, 200);
  } finally {
    await one.close();
  }
  const seen = [];
  const two = await startServer({
    load: async (wish) => ({
      ...(await echo([])(wish)),
      answer: async (_kind, request) => (seen.push(Object.keys(request).sort()), { choices: [] }),
    }),
  });
  try {
    equal(
      (await post(
        two.port,
        '/v1/chat/completions',
        say('x', { metadata: { a: 'b' }, user: 'u', store: true }),
      )).status,
      200,
    );
    same(seen, [['messages', 'prompt_cache_key']]);
  } finally {
    await two.close();
  }
});

test('a message is measured as a whole, and errors repeat a little of what was asked', async () => {
  const chat = (message, more) => post(s.port, '/v1/chat/completions', {
    model: 'tiny', messages: [{ role: 'user', content: 'x' }, message], ...more,
  });
  await chat({ role: 'user', content: 'x' }); // whose context is known from now on
  const large = 'y'.repeat(400_000);
  for (const message of [
    {
      role: 'assistant',
      tool_calls: [{ id: '1', type: 'function', function: { name: 'f', arguments: large } }],
    },
    { role: 'assistant', content: '', reasoning_content: large },
    { role: 'user', content: '', name: large },
  ]) {
    const r = await chat(message);
    same(
      [r.status, r.json.error.code], [400, 'context_length_exceeded'], Object.keys(message).join(),
    );
  }
  const long = 'z'.repeat(100_000);
  for (const more of [
    { [long]: 1 }, { typical_p: long }, { chat_template_kwargs: { [long]: 1 } },
    { chat_template_kwargs: { thinking: long } }, { model: long }, { logit_bias: { [long]: 1 } },
    { logit_bias: Object.fromEntries(Array.from({ length: 2000 }, (_, i) => [i, 1])) },
  ]) {
    const r = await chat({ role: 'user', content: 'x' }, more);
    ok(
      r.status >= 400 && r.status < 500 && r.text.length < 500,
      `${Object.keys(more)[0].slice(0, 30)}: ${r.status} ${r.text.length}`,
    );
  }
  for (const more of [{ options: { [long]: 1 } }, { keep_alive: long }])
    ok((await post(s.port, '/api/chat', say('x', more))).text.length < 500);
});

test('a file that became shorter ends its connection', async () => {
  const file = await fs.promises.open(`${app}/index.html`);
  const res = {
    headersSent: 0, destroyed: false, writeHead: () => res, write: () => true, end() {},
    writableFinished: true, destroy: () => (res.destroyed = true),
  };
  await rejects(
    sendContent(
      { req: { headers: {} }, res, method: 'GET' },
      { size: 5000, etag: '"x"', type: 'text/html', bytes: file },
    ),
    /ended early/,
  );
  ok(res.destroyed);
});

test('answers stream as events and as lines', async () => {
  const events = await post(s.port, '/v1/chat/completions', say('one two three', { stream: true }));
  equal(events.headers['content-type'], 'text/event-stream');
  const data = events.text.split('\n\n').filter(Boolean).map((e) => e.replace(/^data: /, ''));
  equal(data.pop(), '[DONE]');
  equal(data.map((d) => JSON.parse(d).choices[0].delta.content ?? '').join(''), 'one two three');
  equal(JSON.parse(data[0]).model, 'tiny:latest');
  equal(
    (await post(s.port, '/v1/chat/completions', say('whole'))).json.choices[0].message.content,
    'whole',
  );
  const lines = (await post(s.port, '/api/chat', say('four five'))).text
    .trim()
    .split('\n')
    .map((l) => JSON.parse(l));
  equal(lines.map((l) => l.message.content).join(''), 'four five');
  same(lines.map((l) => l.done), [false, false, true]);
  const { done_reason: reason, prompt_eval_count: read, eval_count: made, eval_duration: ns } =
    lines.at(-1);
  same([reason, read, made, ns], ['stop', 3, 4, 2e6]);
  const one =
    (await post(s.port, '/api/generate', { model: 'tiny', prompt: 'six', stream: false })).json;
  same([one.response, one.done], ['six', true]);
  const raw = (await post(s.port, '/api/generate', {
    model: 'tiny', prompt: 'raw seven', raw: true, stream: false,
  })).json;
  equal(raw.response, 'raw seven');
});

test('a failure before the first piece has a status, one after it ends the stream with the reason',
    async () => {
  const broken = await startServer({ load: async () => ({ device: {
    backend: 'cpu', name: 'x',
  }, context: 1024, bytes: 0, close: async () => {}, async *stream(_k, r) {
    if (r.messages[0].content === 'late')
      yield { choices: [{ index: 0, delta: { content: 'a' } }] };
    throw new Error('a bug at /home/someone');
  } }) });
  try {
    const early = await post(broken.port, '/v1/chat/completions', say('early', { stream: true }));
    equal(early.status, 500);
    ok(
      !early.text.includes('/home') && broken.said[0].includes('a bug'),
      'details are for the terminal',
    );
    const late = await post(broken.port, '/api/chat', say('late'));
    equal(late.status, 200);
    ok(JSON.parse(late.text.trim().split('\n').at(-1)).error);
    ok((await post(broken.port, '/v1/chat/completions', say('late', { stream: true }))).text
      .includes('"error"'));
  } finally {
    await broken.close();
  }
});

test('one client with many requests does not stand before another with one', async () => {
  const queue = new FairQueue(100), order = [], never = new AbortController().signal;
  const job = (client, n) =>
    queue.run(client, never, async () => (await sleep(1), order.push(`${client}${n}`)));
  const all = [];
  for (let i = 0; i < 6; i++) all.push(job('a', i));
  for (let i = 0; i < 2; i++) all.push(job('b', i));
  all.push(job('c', 0));
  await Promise.all(all);
  same(order, ['a0', 'b0', 'c0', 'a1', 'b1', 'a2', 'a3', 'a4', 'a5']);
});

test('of answers under way, every second turn is one that has begun', async () => {
  const slices = new Slices(), never = new AbortController().signal, order = [];
  const join = () => slices.join(never, () => {});
  const old = join(), holder = join();
  await old.go();
  old.end();
  await holder.go();
  const turn = (slice, name) => slice.go().then(() => (order.push(name), slice.end()));
  const all = [...Array.from({ length: 4 }, (_, i) => turn(join(), `new${i}`)), turn(old, 'old')];
  holder.end();
  await Promise.all(all);
  ok(order.indexOf('old') <= 1, order.join());
});

test('newcomers do not starve one who waits', async () => {
  const queue = new FairQueue(100), order = [], never = new AbortController().signal;
  const all = [];
  let next = 0;
  const job = (client) => queue.run(client, never, async () => {
    order.push(client);
    if (next < 20) all.push(job(`new${next++}`)); // with each job another client comes
    await sleep(1);
  });
  all.push(job('first'), job('old'), job('old'));
  for (let i = 0; i < all.length; i++) await all[i];
  ok(order.lastIndexOf('old') <= 6, order.join());
});

test('where no session is at work, a claim never waits; what was short of memory '
  + 'is tried again later', async () => {
  const memory = { weights: 0, cache: 2 ** 40, scratch: 0 }, ids = Int32Array.of(1);
  const model = {
    memory, conversation: async () => ({ tokens: ids, length: 1, close() {}, truncate: () => 0 }),
  };
  const sessions = new Sessions(model, { count: 8, bytes: Infinity, shared: 4 });
  const wish = (session) => ({ session, scope: '', ids, adapters: '' });
  for (const name of ['a', 'b', 'c', 'd', 'e']) await sessions.take(name, '');
  const first = sessions.claim(wish());
  ok(first !== undefined, 'five named sessions stand around');
  ok(
    !sessions.isCrowded(new BezelError('x', 'limit'))
      && !sessions.isCrowded(new BezelError('x', 'device')),
  );
  ok(sessions.isCrowded(new BezelError('x', 'memory')));
  equal(sessions.claim(wish('f')), undefined);
  sessions.release(first);
  same([sessions.claim(wish('f')), sessions.claim(wish('g'))], ['f', 'g']);
});

test('a queue that is full refuses the last of who has most waiting, by whatever names',
    async () => {
  const queue = new FairQueue(4, { all: 1, household: 1, client: 1 }), order = [];
  const never = new AbortController().signal;
  const job = (household, client) => queue
    .run(client, never, async () => (await sleep(1), order.push(client)), { household })
    .catch((e) => order.push(`${client} ${e.status}`));
  const all = [
    job('a', 'a0'), job('a', 'a1'), job('a', 'a2'), job('a', 'a3'), job('a', 'a4'), job('a', 'a5'),
    job('b', 'b0'), job('c', 'c0'), job('a', 'a6'),
  ];
  await Promise.all(all);
  same(order.filter((o) => o.includes('503')).sort(), ['a3 503', 'a4 503', 'a5 503', 'a6 503']);
  same(order.filter((o) => !o.includes('503')).sort(), ['a0', 'a1', 'a2', 'b0', 'c0']);
  const most = {}, now = {};
  const count = (name, n) =>
    (most[name] = Math.max(most[name] ?? 0, (now[name] = (now[name] ?? 0) + n)));
  const side = new FairQueue(100, { all: 5, household: 3, client: 2 });
  const go = (household, client) => side.run(client, never, async () => {
    for (const name of [household, client]) count(name, 1);
    await sleep(2);
    for (const name of [household, client]) count(name, -1);
  }, { household, beside: () => true });
  await Promise.all([
    ...Array.from({ length: 6 }, (_, i) => go('a', `a${i}`)),
    ...Array.from({ length: 6 }, () => go('b', 'b0')),
  ]);
  same(
    [most.a, most.b],
    [3, 2],
    'names do not make more places, and a client leaves one to others of its household',
  );
});

test('no model is replaced under an answer', async () => {
  const log = [], gates = {};
  const { port, host, close } = await startServer({ root, slots: {
    all: 4, household: 4, client: 4,
  }, load: async ({ entry }) => {
    await sleep(5);
    const engine = { device: {
      backend: 'cpu', name: 'x',
    }, context: 1024, bytes: 0,
    close: async () => void (engine.at && log.push(`${entry.name} closed under ${engine.at}`)),
    at: 0, async answer(_kind, { messages: [{ content }] }) {
      engine.at++;
      await (content === 'held' ? new Promise((open) => (gates.open = open)) : sleep(20));
      engine.at--;
      return { choices: [] };
    } };
    return engine;
  } });
  try {
    const go = (model, content) =>
      post(port, '/v1/chat/completions', say(content, { model }), { 'user-agent': content });
    const first = go('tiny', 'held');
    await until(() => gates.open);
    const more = [];
    for (const [i, model] of ['gemma4:e2b', 'tiny', 'gemma4:e2b', 'tiny'].entries()) {
      more.push(go(model, `x${i}`));
      await until(() => host.queue.waiting === i + 1);
    }
    gates.open();
    same((await Promise.all([first, ...more])).map((r) => r.status), [200, 200, 200, 200, 200]);
    same(log, []);
  } finally {
    await close();
  }
});

test('a queue that is full says when to come again', async () => {
  const small = await startServer({ limits: { queue: 2 } });
  try {
    const slow = () => post(
      small.port, '/v1/chat/completions', say('a b c d', { stream: true, ...told({ pause: 150 }) }),
    );
    const running = [slow(), slow(), slow()];
    await until(() => small.host.queue.waiting === 2);
    const health = (await ask(small.port, '/health')).json;
    same(health.queue, { running: true, waiting: 2, limit: 2 });
    const r = await slow();
    same([r.status, r.headers['retry-after'], r.json.error.code], [503, '5', 'queue_full']);
    for (const one of await Promise.all(running)) equal(one.status, 200);
  } finally {
    await small.close();
  }
});

test('a client that goes away frees its place, whether it waits or runs', async () => {
  const { port, log, close, host } = await startServer();
  try {
    const leave = new AbortController();
    const options = (content) => ({
      method: 'POST',
      signal: leave.signal,
      body: JSON.stringify(say(content, { stream: true, ...told({ pause: 20, times: 1000 }) })),
    });
    const go = async (content) =>
      (await fetch(`http://127.0.0.1:${port}/v1/chat/completions`, options(content))).text();
    const gone = ['runs on', 'waits', 'waits too'].map((c) => rejects(go(c), /abort/i));
    while (host.queue.waiting < 2) await sleep(5);
    leave.abort();
    await Promise.all(gone);
    const after = await post(port, '/v1/chat/completions', say('after', { stream: true }));
    ok(after.text.includes('after'));
    same(log, ['load tiny:latest 0', 'begin runs on', 'end runs on', 'begin after', 'end after']);
    equal(host.queue.waiting, 0);
  } finally {
    await close();
  }
});

/** Reads nothing until told. */
function slowReader(port, body) {
  const text = JSON.stringify({ ...body, stream: true });
  const socket = net.connect(
    port,
    '127.0.0.1',
    () => socket.write(
      `POST /v1/chat/completions HTTP/1.1\r\nHost: localhost\r\n`
        + `Content-Length: ${text.length}\r\n\r\n${text}`,
    ),
  );
  socket.pause();
  return socket;
}

test('a slow reader holds the model back once enough is unread, and is let go when it stands still',
    async () => {
  const { port, log, host, close } =
    await startServer({ limits: { unreadBytes: 256 << 10, stallMs: 700 } });
  try {
    const many = { ...told({ times: 1000000 }) };
    let pieces = 0;
    const stuck = slowReader(port, say('x'.repeat(4000), many));
    const closed = new Promise((r) => stuck.on('close', r).on('error', () => {}));
    while (!log.some((l) => l.startsWith('begin'))) await sleep(5);
    await sleep(300);
    const heap = process.memoryUsage().arrayBuffers + process.memoryUsage().heapUsed;
    await sleep(200);
    ok(
      process.memoryUsage().arrayBuffers + process.memoryUsage().heapUsed < heap + (32 << 20),
      'it does not pile up',
    );
    const other = await post(port, '/api/chat', say('another', { stream: false }));
    equal(other.json.message.content, 'another');
    ok(log.some((l) => l.startsWith('end xxx')));
    stuck.resume();
    await closed;
    const patient = slowReader(port, say('y'.repeat(4000), { ...told({ times: 2000 }) }));
    patient.on('data', (d) => (pieces += d.length));
    await sleep(100);
    patient.resume();
    await until(() => !host.queue.running && pieces > 2000 * 4000);
    ok(pieces > 2000 * 4000, `${pieces} bytes arrived`);
    patient.destroy();
  } finally {
    await close();
  }
});

test('a device that was lost is found again by the next request', async () => {
  let loads = 0;
  const { port, host, close } = await startServer({ load: async (wish) => {
    const engine = await echo([])(wish), lost = ++loads === 1;
    return {
      ...engine,
      answer: lost
        ? async () => { throw new BezelError('the GPU was lost', 'device'); }
        : engine.answer,
    };
  } });
  try {
    const first = await post(port, '/v1/chat/completions', say('x'));
    same([first.status, first.json.error.message, host.loaded], [
      503, 'the GPU was lost', undefined,
    ]);
    same([(await post(port, '/v1/chat/completions', say('x'))).status, loads], [200, 2]);
  } finally {
    await close();
  }
});

test('a model that fails where there is no room for two brings the other one back, '
  + 'for as long as it was to stay', async () => {
  const log = [], load = echo(log);
  const { port, host, close } = await startServer({ root, load: async (wish) => {
    if (wish.entry.name === 'tiny:latest') return load(wish);
    throw new BezelError('its self-test failed', 'device');
  } });
  try {
    const go = (model, more) =>
      post(port, '/api/chat', say('x', { model, stream: false, ...more }));
    await go('tiny', { keep_alive: 600, options: { num_ctx: 500 } });
    const stays = host.loaded.expires;
    for (const more of [{}, { keep_alive: 0 }, { keep_alive: '1ms' }]) {
      same([(await go('gemma4:e2b', more)).status, host.loaded?.entry.name], [503, 'tiny:latest']);
      ok(Math.abs(host.loaded.expires - stays) < 1000, `${host.loaded.expires}, not ${stays}`);
    }
    await sleep(50);
    equal((await go('tiny')).status, 200);
    same(log.splice(0).filter((l) => /load|close/.test(l)), [
      'load tiny:latest 500',
      ...Array(3).fill(['close tiny:latest', 'load tiny:latest 500']).flat(),
    ]);
  } finally {
    await close();
  }
});

test('an answer that takes too long is ended', async () => {
  const { port, close } = await startServer({ answerMs: 1000 });
  try {
    const r = await post(
      port, '/v1/chat/completions', say('a', { stream: true, ...told({ pause: 20, times: 1000 }) }),
    );
    ok(r.text.includes('took longer'), r.text.slice(-200));
    equal((await post(port, '/v1/chat/completions', say('b'))).status, 200);
  } finally {
    await close();
  }
});

test('one model is loaded at a time, a larger context loads it anew, '
  + 'and it leaves when it was told to', async () => {
  const { port, log, host, close } = await startServer({ root });
  try {
    const go = (model, more) =>
      post(port, '/api/chat', say('x', { model, stream: false, ...more }));
    const seen = () => log.splice(0).filter((l) => /load|close/.test(l));
    await go('tiny');
    await go('tiny', { options: { num_ctx: 100 } });
    same(seen(), ['load tiny:latest 0']);
    await go('tiny', { options: { num_ctx: 9000 } }); // more than it was made for
    same(seen(), ['close tiny:latest', 'load tiny:latest 2048']);
    await go('tiny', { options: { num_ctx: 9000 } });
    same(seen(), []);
    await go('gemma4:e2b');
    same(seen(), ['close tiny:latest', 'load gemma4:e2b 0']);
    same((await ask(port, '/api/ps')).json.models.map((m) => m.name), ['gemma4:e2b']);
    await go('gemma4:e2b', { keep_alive: 0 });
    await until(() => !host.loaded);
    same(seen(), ['close gemma4:e2b']);
    const loaded = await post(port, '/api/generate', { model: 'tiny', keep_alive: '100ms' });
    equal(loaded.json.done_reason, 'load');
    await until(() => !host.loaded);
    same(seen(), ['load tiny:latest 0', 'close tiny:latest']);
    await post(port, '/api/generate', { model: 'tiny' });
    equal(
      (await post(port, '/api/generate', { model: 'tiny', keep_alive: 0 })).json.done_reason,
      'unload',
    );
    same(seen(), ['load tiny:latest 0', 'close tiny:latest']);
    same((await ask(port, '/api/ps')).json.models, []);
  } finally {
    await close();
  }
  same(
    [
      parseKeepAlive('5m'), parseKeepAlive('1h30m'), parseKeepAlive(-1), parseKeepAlive('-1s'),
      parseKeepAlive(2), parseKeepAlive('10'), parseKeepAlive(undefined),
    ],
    [300000, 5400000, Infinity, Infinity, 2000, 10000, undefined],
  );
  for (const wrong of ['x', '5 m', true, '1s'.repeat(8e6)])
    throws(
      () => parseKeepAlive(wrong),
      (e) => e.status === 400 && /^"keep_alive" cannot be/.test(e.message),
    );
});

test("Ollama's messages reach the engine in its own shape", async () => {
  let request;
  const { port, close } = await startServer({ load: async () => ({ device: {
    backend: 'cpu', name: 'x',
  }, context: 1e6, bytes: 0, close: async () => {}, async *stream(_k, r) {
    request = r;
    yield { choices: [{ index: 0, delta: { reasoning_content: 'hm' } }] };
    yield {
      choices: [{
        index: 0,
        delta: {
          tool_calls: [{ index: 0, id: 'a', function: { name: 'f', arguments: '{"x":1}' } }],
        },
      }],
    };
    yield { choices: [{ index: 0, delta: {}, finish_reason: 'tool_calls' }] };
  } }) });
  try {
    const call = (name, args) => ({ function: { name, arguments: args } });
    const messages = [
      { role: 'user', content: 'q' },
      {
        role: 'assistant',
        content: '',
        thinking: 't',
        tool_calls: [call('one', { a: 1 }), call('two', {})],
      },
      { role: 'tool', tool_name: 'two', content: '2' },
      { role: 'tool', tool_name: 'one', content: '1' },
    ];
    const r = await post(port, '/api/chat', {
      model: 'tiny', messages, tools: [{ type: 'function', function: { name: 'f' } }],
      think: 'high',
      options: {
        num_predict: 5, num_ctx: 64, temperature: 0, seed: 7, stop: ['z'], repeat_last_n: 3,
        num_thread: 4,
      },
      stream: false,
    });
    same(r.json.message, {
      role: 'assistant',
      content: '',
      thinking: 'hm',
      tool_calls: [{ function: { name: 'f', arguments: { x: 1 } } }],
    });
    same(request.messages[1].tool_calls.map((c) => c.function), [
      { name: 'one', arguments: '{"a":1}' }, { name: 'two', arguments: '{}' },
    ]);
    same(request.messages.slice(2).map((m) => m.tool_call_id), ['call_1', 'call_0']);
    same(request.messages[1].reasoning_content, 't');
    const { max_tokens: most, temperature, seed, stop, repeat_last_n: back, thinking } = request;
    same([most, temperature, seed, stop, back, thinking], [5, 0, 7, ['z'], 3, true]);
  } finally {
    await close();
  }
});

test("Ollama's results find their calls by name, however many there are", async () => {
  let request;
  const { port, close } = await startServer({ load: async () => ({ device: {
    backend: 'cpu', name: 'x',
  }, context: 1e6, bytes: 0, close: async () => {}, async *stream(_k, r) {
    request = r;
  } }) });
  try {
    const results = async (calls, tools) => {
      await post(port, '/api/chat', {
        model: 'tiny',
        messages: [
          {
            role: 'assistant',
            tool_calls: calls.map((name) => ({ function: { name, arguments: {} } })),
          },
          ...tools.map((tool_name) => ({ role: 'tool', tool_name, content: '' })),
        ],
        stream: false,
      });
      return request.messages.slice(1).map((m) => m.tool_call_id?.slice(5));
    };
    same(
      await results(['a', 'b', 'a', 'c'], ['a', 'x', 'a', undefined, 'a']),
      ['0', '1', '2', '3', undefined],
      'by name, else the first, while there are any',
    );
    const n = 60_000, names = Array.from({ length: n }, (_, i) => `f${i}`);
    const begin = process.cpuUsage().user;
    same(await results(names, names.toReversed()), names.map((_, i) => String(n - 1 - i)));
    ok(process.cpuUsage().user - begin < 3e6, 'the time for calls grows with their number alone');
  } finally {
    await close();
  }
});

test("Ollama's words for no limit, for all of the context and for what asks for nothing",
    async () => {
  let request;
  const { port, close } = await startServer({ load: async () => ({ device: {
    backend: 'cpu', name: 'x',
  }, context: 64, bytes: 1, close: async () => {}, async *stream(_kind, r) {
    request = r;
    yield { choices: [{ index: 0, delta: {}, finish_reason: 'stop' }] };
  } }) });
  try {
    const asked = async (options, more = {}) => {
      const r = await post(port, '/api/chat', say('x', { stream: false, options, ...more }));
      return r.status === 200 ? request : [r.status, r.json.error];
    };
    for (const n of [0, -1, -2])
      equal('max_tokens' in (await asked({ num_predict: n })), false, `num_predict ${n}`);
    equal((await asked({ num_predict: 4 })).max_tokens, 4);
    equal((await asked({ repeat_last_n: -1 })).repeat_last_n, -1);
    ok(!Array.isArray(await asked({
      typical_p: 1, mirostat: 0, mirostat_tau: 5, mirostat_eta: 0.1, tfs_z: 1, num_thread: 2,
    })));
    same((await asked({ mirostat: 2 }))[0], 400);
    same(await asked({ num_ctx: -5 }), [400, '"num_ctx" is a number of tokens, not -5']);
    equal((await asked({})).truncation, 'auto');
    equal((await asked({}, { truncate: false })).truncation, 'disabled');
    same(await asked({}, { truncate: 'no' }), [400, '"truncate" is true or false']);
    same(await asked({}, { tools: {} }), [400, '"tools" must be a list']);
  } finally {
    await close();
  }
});

test('a stream that is neither wanted nor not is an error; errors name their parameter, '
  + 'and every answer has an id', async () => {
  const refused = await post(s.port, '/v1/chat/completions', say('x', { stream: 'yes' }));
  same([refused.status, refused.json.error.param, refused.json.error.type], [
    400, 'stream', 'invalid_request_error',
  ]);
  same((await post(s.port, '/api/chat', say('x', { stream: 'yes' }))).status, 400);
  same(
    (await post(s.port, '/v1/chat/completions', say('x', { model: 3 }))).json.error.param, 'model',
  );
  for (const session of [3, 'x'.repeat(1025)]) {
    const { status, json } = await post(s.port, '/v1/chat/completions', say('x', { session }));
    same([status, json.error.param], [400, 'session']);
  }
  same(
    (await post(s.port, '/v1/chat/completions', say('x', { session: 'x'.repeat(1024) }))).status,
    200,
  );
  const ids = [
    refused, await ask(s.port, '/v1/models'), await ask(s.port, '/api/tags'),
    await ask(s.port, '/nowhere'),
  ].map((r) => r.headers['x-request-id']);
  ok(ids.every((id) => /^req_[0-9a-f]{32}$/.test(id)) && new Set(ids).size === 4, String(ids));
  same((await ask(s.port, '/v1/models/')).json, (await ask(s.port, '/v1/models')).json);
});

test('closing ends what is under way', async () => {
  const { port, log, close } = await startServer();
  const broken = rejects(post(
    port, '/v1/chat/completions', say('a', { stream: true, ...told({ pause: 20, times: 1000 }) }),
  ));
  while (!log.includes('begin a')) await sleep(5);
  await close();
  await broken;
  same(log.slice(-2), ['end a', 'close tiny:latest']);
  await rejects(ask(port, '/health'));
});

await done(process.argv[2]);
await s.close();
