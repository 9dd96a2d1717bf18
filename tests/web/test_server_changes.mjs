// Ollama's routes that change what is on this machine (pull, delete, copy, create, blobs), with the
// official client, on an empty store; and who may use them.
//
//   node tests/web/test_server_changes.mjs
import crypto from 'node:crypto';
import fs from 'node:fs';
import http from 'node:http';
import os from 'node:os';

import { Ollama } from 'ollama';

import { fileSource } from '../../web/engine/dist/core.js';
import { startServe } from '../../bench/streams.mjs';
import { done, equal, ok, rejects, same, test } from './check.mjs';
import { linearsOf, loraFile } from './lora_file.mjs';
import {
  asked, blobOf, core, digest, freshStore, MB, net, partial, sent, temp, tiny, until,
} from './pull_fixture.mjs';
import { image, sha } from './registry.mjs';
import { ask, post, startServer } from './server_fixture.mjs';

const config = '{"model_format":"gguf","model_family":"gemma4","model_type":"6.1M"}';
const made = net.add('library/gemma4:e2b', {
  model: tiny, license: 'MIT\n', params: '{"temperature":0,"stop":["<turn|>"]}', config,
});
net.repo('org/repo', { 'm-Q8_0.gguf': tiny });
net.repo('org/gated', { 'g-Q4_K_M.gguf': tiny }, { gated: true, token: 'hf_right' });
const root = `${temp}/served`;
const server = await startServe(
  ['--backend', 'cpu', '--registry', net.url, '--hub', net.hub],
  {
    env: { ...process.env, OLLAMA_MODELS: '', HOME: fs.realpathSync(temp), HF_TOKEN: 'hf_right' },
  },
);
const port = Number(new URL(server.url).port), ollama = new Ollama({ host: server.url });
const home = `${fs.realpathSync(temp)}/.ollama/models`; // made by the first pull
const all = async (stream) => {
  const parts = [];
  for await (const part of await stream) parts.push(part);
  return parts;
};
const names = async () => (await ollama.list()).models.map((m) => m.name).sort();
const user = (content) => ({ role: 'user', content });

test('pull: a model comes into a store that was not there, told as Ollama tells it', async () => {
  const shipped = await names();
  ok(shipped.includes('tiny:latest') && shipped.every((name) => name.startsWith('tiny')));
  ok(!fs.existsSync(home));
  const parts = await all(ollama.pull({ model: 'gemma4:e2b', stream: true }));
  same(parts[0], { status: 'pulling manifest' });
  same(parts.slice(-3).map((p) => p.status), [
    'verifying sha256 digest', 'writing manifest', 'success',
  ]);
  const of = parts.filter((p) => p.digest === `sha256:${digest}`).at(-1);
  same(of, {
    status: `pulling ${digest.slice(0, 12)}`, digest: `sha256:${digest}`, total: tiny.length,
    completed: tiny.length,
  });
  ok(parts.every((p) => !('loaded' in p) && !('of' in p)));
  same(await names(), ['gemma4:e2b', ...shipped]);
  const manifest = `${home}/manifests/registry.ollama.ai/library/gemma4/e2b`;
  equal(fs.readFileSync(manifest, 'utf8'), made.text);
  const answer = await ollama.chat({ model: 'gemma4:e2b', messages: [user('What is 7 * 8?')] });
  equal(answer.message.content, '7 * 8 = 56.');
  // whole, and by the older member
  same(await ollama.pull({ model: 'hf.co/org/repo:Q8_0' }), { status: 'success' });
  same((await post(port, '/api/pull', { model: 'gemma4:e2b', stream: false })).json, {
    status: 'success',
  });
  ok(server.err.includes('pulling "gemma4:e2b" for a client'), server.err);
});

test('pull: what goes wrong is a sentence, with a status or as the last line', async () => {
  await rejects(ollama.pull({ model: 'absent' }), (e) =>
    e.status_code === 404 && /there is no model absent:latest at 127/.test(e.message));
  await rejects(all(ollama.pull({ model: 'absent', stream: true })), /there is no model absent/);
  net.bad['library/locked:latest'] = { at: () => 403 };
  await rejects(ollama.pull({ model: 'locked' }), (e) =>
    e.status_code === 502 && /does not give locked:latest to everyone/.test(e.message));
  await rejects(ollama.pull({ model: '../../etc' }), (e) => e.status_code === 400);
  await rejects(ollama.pull({ model: 'x', insecure: true }), (e) =>
    e.status_code === 400 && /"insecure" is for who starts the server/.test(e.message));
  for (const body of [{}, { model: 5 }, { model: 'x', stream: 'yes' }])
    equal((await post(port, '/api/pull', body)).status, 400);
});

test('pull: no other site is asked, whatever a name says', async () => {
  let asks = 0;
  const other = http.createServer((_, r) => (asks++, r.end('{}')));
  await new Promise((up) => other.listen(0, '127.0.0.1', up));
  const host = `127.0.0.1:${other.address().port}`;
  for (const name of [`${host}/a/b`, `http://${host}/a/b:c`, `http://${host}/a/b/resolve/m/x.gguf`])
    await rejects(ollama.pull({ model: name }), (e) => e.status_code === 400, name);
  equal(asks, 0);
  other.close();
  // the hub's token is used for the hub alone
  net.log.length = 0;
  same(await ollama.pull({ model: 'hf.co/org/gated' }), { status: 'success' });
  await ollama.pull({ model: 'gemma4:e2b' });
  ok(net.log.some((e) => e.at === 'hub' && e.headers.authorization === 'Bearer hf_right'));
  ok(net.log.every((e) => e.at === 'hub' || !e.headers.authorization));
  ok(!server.err.includes('hf_right') && !server.out.includes('hf_right'));
});

test('pull: a client that goes away ends it, and the next one goes on', async () => {
  const weights = Buffer.concat([tiny, Buffer.alloc(MB, 1)]), hex = sha(weights);
  net.add('library/slow:1', { model: weights, license: 'MIT\n', config });
  net.bad[hex] = { pause: 20 };
  const stream = await new Ollama({ host: server.url }).pull({ model: 'slow:1', stream: true });
  const reading = rejects(all(stream), (e) => e.name === 'AbortError');
  await until(() => sent(hex) > 2 * MB);
  stream.abort();
  await reading;
  await until(() => !fs.existsSync(`${home}/partial/sha256-${hex}.lock`));
  const before = sent(hex), kept =
    JSON.parse(fs.readFileSync(`${home}/partial/sha256-${hex}.journal`, 'utf8'));
  ok(kept.done.length > 0, JSON.stringify(kept));
  await new Promise((wait) => setTimeout(wait, 200));
  equal(sent(hex), before, 'nothing more is asked for');
  delete net.bad[hex];
  const parts = await all(ollama.pull({ model: 'slow:1', stream: true }));
  ok(parts.find((p) => p.digest === `sha256:${hex}`).completed > 0);
  ok(weights.equals(fs.readFileSync(`${home}/blobs/sha256-${hex}`)));
  ok(asked(hex).length > 8);
  same(fs.readdirSync(`${home}/partial`), []);
});

test('copy and delete: as Ollama answers them, also for the model that is loaded', async () => {
  same(await ollama.copy({ source: 'gemma4:e2b', destination: 'me/mine' }), { status: 'success' });
  ok((await names()).includes('me/mine:latest'));
  await rejects(ollama.copy({ source: 'absent', destination: 'x' }), (e) => e.status_code === 404);
  await ollama.chat({ model: 'me/mine', messages: [user('What is 7 * 8?')] });
  same((await ollama.ps()).models.map((m) => m.name), ['me/mine:latest']);
  same(await ollama.delete({ model: 'ME/mine' }), { status: 'success' });
  same((await ollama.ps()).models, []);
  ok(!(await names()).includes('me/mine:latest'));
  ok(fs.existsSync(`${home}/blobs/sha256-${digest}`), 'another model has it');
  await rejects(ollama.delete({ model: 'me/mine' }), (e) =>
    e.status_code === 404 && /there is no model "me\/mine" on this machine/.test(e.message));
  await rejects(ollama.delete({ model: 'tiny' }), /tiny:latest ships with Bezel/);
  for (const [method, path] of [
    ['POST', '/api/delete'], ['DELETE', '/api/pull'], ['GET', '/api/copy'],
  ])
    equal((await ask(port, path, { method })).status, 405, `${method} ${path}`);
  equal((await ask(port, '/', { method: 'DELETE' })).status, 405);
});

test('create: from a model, with words and parameters of its own', async () => {
  const parts = await all(ollama.create({
    model: 'pirate', from: 'gemma4:e2b', system: 'Talk like a pirate.',
    license: ['Mine.', 'Yours.'],
    parameters: { temperature: 0, num_predict: 40, stop: ['<turn|>', 'never'] },
    messages: [user('What is 2 + 2?'), { role: 'assistant', content: '2 + 2 = 4.' }], stream: true,
  }));
  same([parts[0].status, parts.at(-2).status, parts.at(-1).status], [
    'reading model metadata', 'writing manifest', 'success',
  ]);
  ok(parts.some((p) => p.status === `using existing layer sha256:${digest}`));
  ok(parts.filter((p) => /^creating new layer sha256:[0-9a-f]{64}$/.test(p.status)).length >= 5);
  const answer =
    await ollama.chat({ model: 'pirate', messages: [user('What is the capital of Italy?')] });
  equal(answer.message.content, 'Arr, matey! The capital of Italy be Rome.');
  const shown = await ollama.show({ model: 'pirate' });
  same([shown.system, shown.license], ['Talk like a pirate.', 'MIT\n\nMine.\nYours.']);
  ok(/stop +"never"\n?/.test(shown.parameters) && /num_predict +40/.test(shown.parameters));
  ok(shown.modelfile.startsWith('FROM pirate:latest\nSYSTEM Talk like a pirate.\nPARAMETER '));
  // as Ollama writes it: a map sorted by its keys, with its letters escaped
  const { layers } = JSON.parse(
    fs.readFileSync(`${home}/manifests/registry.ollama.ai/library/pirate/latest`, 'utf8'),
  );
  const params = layers.find((l) => l.mediaType === image('params')).digest.slice(7);
  equal(
    fs.readFileSync(`${home}/blobs/sha256-${params}`, 'utf8'),
    '{"num_predict":40,"stop":["\\u003cturn|\\u003e","never"],"temperature":0}\n',
  );
  equal(layers.find((l) => l.mediaType === image('model')).from, 'gemma4:e2b');
  // again, in the place of itself; the old texts are nobody's
  await ollama.create({ model: 'pirate', from: 'pirate', system: '' });
  equal((await ollama.show({ model: 'pirate' })).system, undefined);
  ok(!fs.existsSync(`${home}/blobs/sha256-${sha('Talk like a pirate.')}`));
  // from a model that is not here yet, and from one that ships
  net.add('library/base:1', { model: tiny, license: 'Base.\n', config });
  same(await ollama.create({ model: 'derived', from: 'base:1' }), { status: 'success' });
  ok((await names()).includes('base:1'));
  same(await ollama.create({ model: 'mine', from: 'tiny' }), { status: 'success' });
  equal((await ollama.show({ model: 'mine' })).details.quantization_level, 'Q8_0');
});

test('create: from a Modelfile, and what cannot be had says why', async () => {
  const modelfile = `# a comment
FROM gemma4:e2b
system """Be
"brief"."""
PARAMETER temperature 0
PARAMETER stop "a b"
PARAMETER stop <turn|>
MESSAGE user Hi there.
MESSAGE assistant "Hello."
LICENSE """Mine."""
`;
  const create = (body) => post(port, '/api/create', { name: 'filed', stream: false, ...body });
  const answer = await create({ modelfile });
  same([answer.status, answer.json], [200, { status: 'success' }], answer.text);
  const shown = (await post(port, '/api/show', { name: 'filed' })).json;
  equal(shown.system, 'Be\n"brief".');
  ok(/^stop +"a b"\nstop +"<turn\|>"\ntemperature +0$/.test(shown.parameters), shown.parameters);
  ok(shown.modelfile.includes('MESSAGE user Hi there.\nMESSAGE assistant Hello.\n'));
  const bad = [
    [{ modelfile: `${modelfile}TEMPLATE {{ .Prompt }}` }, /a template cannot be given: Bezel/],
    [{ template: 'x', from: 'gemma4:e2b' }, /a template cannot be given/],
    [{ modelfile: 'FROM ./local.gguf' }, /FROM is a path of this machine, which a client cannot/],
    [{ modelfile: 'FROM /etc/passwd' }, /FROM is a path of this machine/],
    [{ from: '~/x.gguf' }, /FROM is a path of this machine/],
    [{ modelfile: 'FROM tiny\nADAPTER ./a.gguf' }, /ADAPTER is a path of this machine/],
    [{ modelfile: 'SYSTEM x' }, /the Modelfile has no FROM line/],
    [{ modelfile: 'FROM tiny\nDRAFT x' }, /line 2: this server knows FROM, SYSTEM/],
    [{ modelfile: 'FROM tiny\nPARAMETER temperature hot' }, /temperature cannot be "hot"/],
    [{ modelfile: 'FROM tiny\nPARAMETER hotness 1' }, /no parameter "hotness"/],
    [{ modelfile: 'FROM tiny\nMESSAGE robot hi' }, /a message has a role/],
    [{ modelfile: 'FROM tiny\nSYSTEM """x' }, /line 2: the quotation mark is not closed/],
    [{ modelfile: 'FROM' }, /line 1: "FROM" is no instruction with a value/],
    [{}, /neither "from" nor "files"/],
    [{ from: 'tiny', quantize: 'q4_K_M' }, /"quantize" is not for this server/],
    [{ from: 'tiny', draft: 'x' }, /create has no "draft"/],
    [{ from: 'tiny', parameters: { temperature: 'hot' } }, /temperature cannot be "hot"/],
    [{ from: 'tiny', files: { 'a.gguf': `sha256:${digest}` } }, /are two models; give one/],
    [{ files: { 'a.gguf': 'sha256:../../x' } }, /"files" has no sha256 digest/],
    [{ files: { 'a.gguf': `sha256:${'0'.repeat(64)}` } }, /(no such file|was not sent)/],
    [{ from: 'nowhere' }, /there is no model nowhere:latest at/, 404],
  ];
  for (const [body, sentence, status = 400] of bad) {
    const { status: got, text } = await create(body);
    ok(sentence.test(JSON.parse(text).error), `${JSON.stringify(body)}: ${text}`);
    equal(got, status, text);
  }
  same(fs.readdirSync(`${home}/partial`), []);
});

test('create: from files that were sent as blobs, with an adapter', async () => {
  const source = await fileSource('models/tiny.q8_0.gguf');
  const lora = loraFile(linearsOf(core, source), 4);
  source.close();
  const send = (data, hex = sha(data)) =>
    ask(port, `/api/blobs/sha256:${hex}`, { method: 'POST', body: Buffer.from(data) });
  const other = fs.readFileSync('models/tiny-moe.q8_0.gguf'), hex = sha(other);
  equal((await ask(port, `/api/blobs/sha256:${hex}`, { method: 'HEAD' })).status, 404);
  equal((await send(other)).status, 201);
  equal((await send(other)).status, 200);
  equal((await ask(port, `/api/blobs/sha256:${hex}`, { method: 'HEAD' })).status, 200);
  equal((await send(lora)).status, 201);
  const wrong = await send('something else', sha('x'));
  same([wrong.status, /has not the digest/.test(wrong.text)], [400, true]);
  ok(!fs.existsSync(`${home}/blobs/sha256-${sha('x')}`));
  for (const name of ['../../x', 'sha256:x', `sha256:${hex}x`, 'md5'])
    equal(
      (await ask(port, `/api/blobs/${encodeURIComponent(name)}`, { method: 'POST' })).status, 400,
    );
  await ollama.create({ model: 'from-files', files: { 'moe.gguf': `sha256:${hex}` } });
  const { config: c, layers } = JSON.parse(
    fs.readFileSync(`${home}/manifests/registry.ollama.ai/library/from-files/latest`, 'utf8'),
  );
  same(layers.map((l) => l.mediaType), [image('model'), image('params')]);
  const described =
    JSON.parse(fs.readFileSync(`${home}/blobs/sha256-${c.digest.slice(7)}`, 'utf8'));
  same([described.model_family, described.file_type, described.renderer, described.os], [
    'gemma4', 'Q8_0', 'gemma4', 'linux',
  ]);
  await ollama.create({
    model: 'adapted', from: 'gemma4:e2b', adapters: { 'lora.gguf': `sha256:${sha(lora)}` },
  });
  const say = async (model) => (await ollama.chat({
    model, messages: [user('What is the capital of France?')], options: { num_predict: 12 },
  })).message.content;
  equal(await say('gemma4:e2b'), 'The capital of France is Paris.');
  ok((await say('adapted')).length > 0);
  await rejects(
    ollama.create({ model: 'x', from: 'tiny', adapters: { 'a.gguf': `sha256:${hex}` } }),
    /"a\.gguf" is no adapter in GGUF form/,
  );
  await rejects(
    ollama.create({ model: 'x', files: { 'a.gguf': `sha256:${sha(lora)}` } }), /no weights/,
  );
});

// ---- who may ----

test('who may: programs of this machine and the own page, and nobody else', async () => {
  const writer = await freshStore(), changes = {
    core, writer: async () => writer, registry: net.url, hub: net.hub,
  };
  const s = await startServer({
    root: writer.root, changes, origins: ['http://friend.example', 'http://localhost:*'],
    hosts: ['box.example'],
  });
  const routes = [
    ['POST', '/api/pull', { model: 'gemma4:e2b', stream: false }],
    ['POST', '/api/copy', { source: 'gemma4:e2b', destination: 'x' }],
    ['POST', '/api/create', { model: 'y', from: 'gemma4:e2b', stream: false }],
    ['POST', `/api/blobs/sha256:${sha('z')}`, 'z'],
    ['GET', `/api/blobs/sha256:${sha('z')}`, undefined],
    ['DELETE', '/api/delete', { model: 'x' }],
  ];
  const go = async ([method, path, value], headers) => {
    const body = typeof value === 'object' ? JSON.stringify(value) : (value ?? '');
    const length = { 'content-length': body.length };
    return (await ask(s.port, path, { method, headers: { ...length, ...headers }, body })).status;
  };
  const strangers = [
    { origin: 'http://evil.example' }, { origin: 'http://friend.example' },
    { origin: 'http://localhost:3000' }, { origin: 'null' }, { 'x-forwarded-for': '10.0.0.2' },
    { forwarded: 'for=10.0.0.2' }, { host: 'evil.example' }, { 'sec-fetch-site': 'cross-site' },
  ];
  for (const headers of strangers)
    for (const route of routes)
      equal(await go(route, headers), 403, `${route[1]} ${JSON.stringify(headers)}`);
  same([fs.readdirSync(`${writer.root}/blobs`), partial(writer)], [[], []]);
  equal(net.log.filter((e) => e.at === 'registry').length > 0, true);
  // the friend may still use the models
  const origin = { origin: 'http://friend.example' };
  equal((await ask(s.port, '/api/tags', { headers: origin })).status, 200);
  const preflight = await ask(s.port, '/api/delete', { method: 'OPTIONS', headers: origin });
  ok(!/DELETE/.test(preflight.headers['access-control-allow-methods']));
  const own = { origin: `http://127.0.0.1:${s.port}`, host: `127.0.0.1:${s.port}` };
  for (const [i, route] of routes.entries())
    equal(await go(route, i % 2 ? own : {}), i === 3 ? 201 : 200, route[1]);
  await s.close();
});

test('who may: another machine may not, also by a name that is allowed', async () => {
  const address = Object.values(os.networkInterfaces()).flat()
    .find((a) => !a.internal && a.family === 'IPv4')?.address;
  if (!address) return console.log('skipped: this machine has no address beside loopback');
  const writer = await freshStore();
  const s = await startServer({
    root: writer.root, hosts: [address], listen: ['0.0.0.0'],
    changes: { core, writer: async () => writer, registry: net.url, hub: net.hub },
  });
  const asking = (path, method, body) => new Promise((answered, failed) => {
    const req = http.request({ host: address, localAddress: address, port: s.port, path, method },
      (res) => (res.resume(), answered(res.statusCode)));
    req.on('error', failed).end(body);
  });
  equal(await asking('/api/tags', 'GET'), 200);
  equal(await asking('/api/pull', 'POST', '{"model":"gemma4:e2b"}'), 403);
  await s.close();
});

test('--no-pull: nothing is changed', async () => {
  const s = await startServer({ root: (await freshStore()).root });
  for (const [method, path] of [
    ['POST', '/api/pull'], ['DELETE', '/api/delete'], ['POST', '/api/create'],
    ['POST', '/api/copy'],
  ]) {
    const { status, json } = await ask(s.port, path, { method });
    same([status, json.error], [
      403, 'this server does not change its models (bezel serve --no-pull)',
    ]);
  }
  await s.close();
  const { root: at } = await freshStore();
  const closed = await startServe(['--backend', 'cpu', '--no-pull', '--store', at]);
  equal((await post(Number(new URL(closed.url).port), '/api/pull', { model: 'x' })).status, 403);
  equal(await closed.stop(), 130);
});

test('four pulls go on side by side, a fifth is told to come again', async () => {
  const writer = await freshStore(), s = await startServer({
    root: writer.root,
    changes: { core, writer: async () => writer, registry: net.url, hub: net.hub },
  });
  const models = Array.from({ length: 5 }, (_, i) => `many/m${i}:1`);
  for (const name of models) {
    const weights = crypto.randomBytes(400_000);
    net.add(name, { model: weights, config });
    net.bad[sha(weights)] = { pause: 400 };
  }
  const first =
    models.slice(0, 4).map((model) => post(s.port, '/api/pull', { model, stream: false }));
  await until(() => partial(writer).filter((f) => f.startsWith('keep')).length === 4);
  const last = await post(s.port, '/api/pull', { model: models[4], stream: false });
  same([last.status, last.headers['retry-after']], [503, '30']);
  same((await Promise.all(first)).map((r) => r.status), [200, 200, 200, 200]);
  equal((await post(s.port, '/api/pull', { model: models[4], stream: false })).status, 200);
  ok(blobOf(writer, sha(config)).length);
  await s.close();
});

await done(process.argv[2]);
await server.stop();
net.close();
fs.rmSync(root, { recursive: true, force: true });
