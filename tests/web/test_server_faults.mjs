// Requests with random faults, from clients that die, cancel, read slowly, or ask for models that
// are broken: threads, memory and file handles are afterwards what they were before, and who asks
// properly is answered.
//
//   node tests/web/test_server_faults.mjs [COUNT [SEED]]      100 requests where nothing is said
import fs from 'node:fs';
import http from 'node:http';

import { startServe } from '../../bench/streams.mjs';
import { done, equal, ok, same, test } from './check.mjs';
import { ask, makeStore, post, sleep, temp, until } from './server_fixture.mjs';

// file handles that a connection of the moment or the system's resolver may hold; a leak has one a
// fault
const NOISE = 2;
const [count = 100, seed = 23] = process.argv.slice(2).map(Number);
const tiny = fs.readFileSync('models/tiny.q8_0.gguf'), root = `${temp}/faults`;
const config = {
  model_format: 'gguf', model_family: 'gemma4', model_families: ['gemma4'], model_type: '6.1M',
  file_type: 'Q8_0',
};
const digests = makeStore(root, {
  'lost:1': [Buffer.concat([tiny, Buffer.from('x')]), config],
  'rubbish:1': [Buffer.from('GGUF and then nothing of the kind'), config],
  'cut:1': [tiny.subarray(0, 1 << 20), config],
});
fs.rmSync(`${root}/blobs/sha256-${digests['lost:1']}`);

const server = await startServe(['--backend', 'cpu', '--store', root]);
const port = Number(new URL(server.url).port), { pid } = server.child;
const look = () => ({
  threads: fs.readdirSync(`/proc/${pid}/task`).length,
  files: fs.readdirSync(`/proc/${pid}/fd`).length,
  mb: Math.round(
    Number(/VmRSS:\s+(\d+)/.exec(fs.readFileSync(`/proc/${pid}/status`, 'utf8'))[1]) / 1024,
  ),
});

let state = seed;
const pick = (n) => ((state = (Math.imul(state, 1664525) + 1013904223) >>> 0) >>> 8) % n;
const chat = (content, more = {}) => ({
  model: 'tiny', temperature: 0, max_tokens: 40, messages: [{ role: 'user', content }], ...more,
});
const question = chat('What is 7 * 8?');
const path = '/v1/chat/completions';

/** A stream that `meddle` gets hold of; resolves when it is over, one way or another. */
function meddled(
  meddle,
  body = chat('Tell me a story about a fox.', { stream: true, max_tokens: 200, ignore_eos: true }),
) {
  return new Promise((over) => {
    const req = http.request({
      host: '127.0.0.1', port, path, method: 'POST', agent: false,
    }, (res) => {
      meddle(req, res);
      res.on('close', over).on('error', over);
    });
    req.on('error', over).on('close', over).end(JSON.stringify(body));
    meddle(req, undefined);
  });
}

const statuses = {};
const note = (name, status) =>
  (statuses[`${name} ${status}`] = (statuses[`${name} ${status}`] ?? 0) + 1);
const right = (r) => equal(r.json.choices[0].message.content, '7 * 8 = 56.');

/** By what share of the requests; what each must come to. */
const faults = [
  [6, 'proper', async () => right(await post(port, path, question))],
  [
    2, 'proper lines',
    async () => equal((await post(port, '/api/chat', question)).text.includes('"done":true'), true),
  ],
  [
    2, 'dies while it reads',
    async (n) =>
      meddled((req, res) => res?.once('data', () => setTimeout(() => req.destroy(), n)).resume()),
  ],
  [2, 'cancels at once', async (n) => meddled((req) => setTimeout(() => req.destroy(), n >> 2))],
  [
    1, 'reads slowly',
    async (n) => meddled((req, res) => res && (setTimeout(() => res.resume(), n), res.pause())),
  ],
  [
    1, 'never reads',
    async (n) =>
      meddled((req, res) => res && (setTimeout(() => req.destroy(), 3 * n), res.pause())),
  ],
  [
    1, 'cancels a load',
    async (n) =>
      meddled((req) => setTimeout(() => req.destroy(), n), { ...question, model: 'tiny-moe' }),
  ],
  [
    1, 'missing blob',
    async () => equal((await post(port, path, { ...question, model: 'lost:1' })).status, 404),
  ],
  [
    1, 'bad model',
    async (n) => ok(
      (await post(port, path, { ...question, model: n % 2 ? 'rubbish:1' : 'cut:1' })).status >= 400,
    ),
  ],
  [
    1, 'no such model',
    async () => equal((await post(port, '/api/chat', { ...question, model: 'none' })).status, 404),
  ],
  [
    1, 'no JSON',
    async () => equal((await ask(port, path, { method: 'POST', body: '{"model":' })).status, 400),
  ],
  [
    1, 'too long',
    async () => equal(
      (await post(port, path, chat('word '.repeat(200_000)))).json.error.code,
      'context_length_exceeded',
    ),
  ],
  [1, 'cut off', async (n) => new Promise((over) => {
    const req = http.request({
      host: '127.0.0.1', port, path, method: 'POST', agent: false,
      headers: { 'content-length': 1000 },
    });
    req.on('error', over).on('close', over).write('{"model":');
    setTimeout(() => req.destroy(), n >> 2);
  })],
];
const lots =
  faults.flatMap(([share, name, run]) => Array.from({ length: share }, () => [name, run]));

async function run(n) {
  let next = 0;
  const worker = async () => {
    while (next++ < n) {
      const [name, act] = lots[pick(lots.length)], ms = pick(400);
      try {
        await act(ms);
        note(name, 'as it should be');
      } catch (e) {
        note(name, e.message);
      }
    }
  };
  await Promise.all(Array.from({ length: 8 }, worker));
  for (let i = 0; i < 500; i++) {
    const { queue } = (await ask(port, '/health')).json;
    if (!queue.running && !queue.waiting) break;
    await sleep(20);
  }
}

test('faults leave nothing behind', async () => {
  right(await post(port, path, question));
  await run(Math.max(40, count >> 3)); // as many conversations as there will ever be
  const before = look();
  await run(count);
  await until(() => look().threads <= before.threads && look().files <= before.files + NOISE);
  const after = look();
  console.log(
    `${count} requests: ${JSON.stringify(before)} before, ${JSON.stringify(after)} after`,
  );
  same(
    Object.keys(statuses).filter((s) => !s.endsWith('as it should be')),
    [],
    JSON.stringify(statuses, undefined, 1),
  );
  ok(after.threads <= before.threads, 'threads');
  ok(
    after.files <= before.files + NOISE,
    `file handles: ${before.files} before, ${after.files} after`,
  );
  ok(after.mb <= before.mb + 80, 'memory');
  right(await post(port, path, question));
});

test('a load that is cancelled leaves nothing open, at whatever moment', async () => {
  right(await post(port, path, question));
  const before = look();
  for (let ms = 0; ms < 120; ms += 5)
    await meddled((req) => setTimeout(() => req.destroy(), ms), { ...question, model: 'tiny-moe' });
  await until(() => look().threads <= before.threads && look().files <= before.files + NOISE);
  const after = look();
  ok(
    after.threads <= before.threads && after.files <= before.files + NOISE,
    `${JSON.stringify(before)} before, ${JSON.stringify(after)} after`,
  );
  right(await post(port, path, question));
});

test('it ends when it is told to', async () => {
  const begin = performance.now();
  server.child.kill('SIGTERM');
  await server.over;
  ok(performance.now() - begin < 5000);
});

await done();
