// `bezel serve` as hostile and unlucky clients meet it: the tool itself, the tiny model on the CPU,
// and what is left behind.
import { spawn } from 'node:child_process';
import fs from 'node:fs';
import http from 'node:http';
import net from 'node:net';
import { pathToFileURL } from 'node:url';

import OpenAI from 'openai';

import { startServe } from '../../bench/streams.mjs';
import { done, equal, ok, rejects, same, test } from './check.mjs';
import { ask, makeStore, post, sleep, temp, until } from './server_fixture.mjs';

const tiny = fs.readFileSync('models/tiny.q8_0.gguf');
const config = {
  model_format: 'gguf', model_family: 'gemma4', model_families: ['gemma4'], model_type: '6.1M',
  file_type: 'Q8_0',
};
const root = `${temp}/hold`;
const digests = makeStore(root, {
  'lost:1': [Buffer.concat([tiny, Buffer.from('x')]), config],
  'rubbish:1': [Buffer.from('GGUF and then nothing of the kind'), config],
  'cut:1': [tiny.subarray(0, tiny.length >> 1), config],
});
fs.rmSync(`${root}/blobs/sha256-${digests['lost:1']}`);

const hook = {
  env: { ...process.env, NODE_OPTIONS: `--import ${pathToFileURL('tests/web/hang_hook.mjs')}` },
};
const start = async (...args) => {
  const server = await startServe(['--backend', 'cpu', '--store', root, ...args], hook);
  return Object.assign(server, { port: Number(new URL(server.url).port) });
};
const server = await start();
const { port } = server;
const user = (content) => ({ role: 'user', content });
const chat = (content, more = {}) => ({
  model: 'tiny', temperature: 0, messages: [user(content)], ...more,
});
const path = '/v1/chat/completions';

const pid = server.child.pid;
const threads = (of = pid) => fs.readdirSync(`/proc/${of}/task`).length;
const files = (of = pid) => fs.readdirSync(`/proc/${of}/fd`).length;
const megabytes = (of = pid) =>
  Number(/VmRSS:\s+(\d+)/.exec(fs.readFileSync(`/proc/${of}/status`, 'utf8'))[1]) / 1024;

/** A stream as it arrives: when its headers came, and each piece with its time. */
function stream(body, { headers = {}, at = port } = {}) {
  const begin = performance.now();
  const out = { headers: 0, status: 0, text: '', firstToken: 0, tokens: 0, comments: 0, body: '' };
  const agent = new http.Agent();
  out.over = new Promise((resolve, reject) => {
    out.req = http.request({
      host: '127.0.0.1', port: at, path, method: 'POST', agent,
      headers: { 'content-type': 'application/json', ...headers },
    }, (res) => {
      out.headers = performance.now() - begin;
      out.status = res.statusCode;
      let rest = '';
      res.on('data', (d) => {
        rest += d;
        out.body += d;
        for (let i = rest.indexOf('\n\n'); i >= 0; i = rest.indexOf('\n\n')) {
          const event = rest.slice(0, i);
          rest = rest.slice(i + 2);
          if (event.startsWith(':')) out.comments++;
          if (!event.startsWith('data: {')) continue;
          const piece = JSON.parse(event.slice(6)).choices?.[0]?.delta.content;
          if (!piece) continue;
          out.firstToken ||= performance.now() - begin;
          out.text += piece;
          out.tokens++;
        }
      }).on('error', reject).on('end', () => {
        out.ended = true;
        resolve(out);
      });
    }).on('error', reject);
    out.req.end(JSON.stringify({ ...body, stream: true }));
  });
  out.over.catch(() => {});
  return out;
}

test('a model whose weights are missing leaves no thread behind', async () => {
  equal((await post(port, path, chat('What is 7 * 8?'))).status, 200);
  const before = threads();
  for (let i = 0; i < 5; i++)
    equal((await post(port, path, chat('x', { model: 'lost:1' }))).status, 404);
  await until(() => threads() <= before);
  ok(threads() <= before, `${threads()} threads, ${before} before`);
});

test('a model that fails does not cost the one that works, and no path is told', async () => {
  equal((await post(port, path, chat('What is 7 * 8?'))).status, 200);
  const said = server.err.length;
  for (const model of ['lost:1', 'rubbish:1', 'cut:1']) {
    for (const r of [
      await post(port, path, chat('x', { model })),
      await post(port, '/api/chat', chat('x', { model, stream: false })),
      await post(port, '/api/show', { model }),
    ]) {
      ok(model === 'cut:1' || r.status >= 400, `${model}: ${r.status}`);
      ok(
        !r.text.includes(process.cwd()) && !r.text.includes('blobs/') && !r.text.includes(temp),
        r.text,
      );
    }
    same(
      (await ask(port, '/api/ps')).json.models.map((m) => m.name),
      ['tiny:latest'],
      `after ${model}`,
    );
  }
  const again = await post(port, path, { ...chat('What is 7 * 8?'), model: undefined });
  equal(again.json.choices[0].message.content, '7 * 8 = 56.');
  ok(!server.err.slice(said).includes('loading tiny'), 'it was there all the time');
});

const connection = (headers = {}) => {
  const agent = new http.Agent({ keepAlive: true, maxSockets: 1 });
  const go = (where, body, more = {}) => new Promise((resolve, reject) => {
    const req = http.request({
      host: '127.0.0.1', port, path: where, method: 'POST', agent,
      headers: { 'content-type': 'application/json', ...headers, ...more },
    }, async (res) => {
      let text = '';
      for await (const d of res) text += d;
      resolve({ status: res.statusCode, json: JSON.parse(text) });
    }).on('error', reject);
    req.end(JSON.stringify(body));
  });
  return Object.assign(go, { close: () => agent.destroy() });
};

test('no client goes on from what another said, or learns how much of a guess was right',
    async () => {
  const secret = chat(
    'My password is open sesame, and my cat is called Whiskers. Say hello to her.',
    { max_tokens: 4 },
  );
  const cached = ({ json }) => json.usage.prompt_tokens_details.cached_tokens;
  const a = connection(), b = connection(), keyed = connection({ authorization: 'Bearer one' });
  const other = connection({ authorization: 'Bearer two' });
  const same1 = connection({ authorization: 'Bearer one' });
  try {
    equal(cached(await a(path, { ...secret, session: 'mine' })), 0);
    ok(
      cached(await a(path, { ...secret, session: 'mine' })) > 10,
      'the same connection goes on from its own',
    );
    equal(cached(await b(path, secret)), 0);
    equal(cached(await b(path, { ...secret, session: 'mine' })), 0);
    for (const by of [
      { origin: `http://127.0.0.1:${port}` }, { 'x-forwarded-for': '192.0.2.1' },
      { 'x-forwarded-for': '192.0.2.2' }, { forwarded: 'for=192.0.2.3' },
    ])
      equal(
        cached(await a(path, secret, by)),
        0,
        `one connection may be several people's: ${JSON.stringify(by)}`,
      );
    equal(cached(await keyed(path, secret)), 0);
    equal(cached(await other(path, secret)), 0);
    ok(cached(await same1(path, secret)) > 10, 'a key is a client on any connection');
    for (const more of [{}, { session: 'mine' }, { prompt: null }]) {
      const r = await b('/v1/completions', { model: 'tiny', max_tokens: 20, ...more });
      same([r.status, /"prompt" is missing/.test(r.json.error.message)], [400, true]);
    }
  } finally {
    for (const c of [a, b, keyed, other, same1]) c.close();
  }
});

test('sixteen long answers begin together, and a short question does not wait for them',
    async () => {
  const many = Array.from(
    { length: 16 },
    (_, i) => stream(
      chat(`Tell me a story about a fox, number ${i}.`, { max_tokens: 1500, ignore_eos: true }),
    ),
  );
  await until(() => many.every((m) => m.firstToken));
  const firsts = many.map((m) => m.firstToken), spread = Math.max(...firsts) - Math.min(...firsts);
  const most = Math.max(...many.map((m) => m.tokens));
  // On a machine that is busy with other things all of it takes longer; nobody is far ahead when
  // the last one begins all the same: a sixth of its answer.
  ok(
    spread < 2000 || most < 250,
    `first tokens after ${firsts.map(Math.round)}, with `
      + `${many.map((m) => m.tokens)} tokens by then`,
  );
  ok(
    Math.max(...many.map((m) => m.headers)) < Math.max(1500, spread),
    `headers after ${many.map((m) => Math.round(m.headers))}`,
  );
  const begin = performance.now();
  const short = await post(port, '/api/chat', chat('What is 7 * 8?', { stream: false }), {
    'user-agent': 'another program',
  });
  equal(short.json.message.content, '7 * 8 = 56.');
  const took = performance.now() - begin, left = many.filter((m) => !m.ended).length;
  equal(left, 16, `were still at it when the short one was answered after ${Math.round(took)} ms`);
  const more = Array.from({ length: 8 }, () => stream(chat('Count from 3 to 12.')));
  await until(() => more.every((m) => m.headers));
  ok(more.every((m) => m.status === 200) && more.some((m) => !m.tokens), 'who waits has headers');
  for (const m of [...many, ...more]) m.req.destroy();
});

test('what waits gives a sign of life that the official client and JSON lines take', async () => {
  const slow = await start('--model', 'tiny');
  try {
    const full = Array.from(
      { length: 48 }, // three times as many as go on at once
      () =>
        stream(chat('Tell me a story.', { max_tokens: 1500, ignore_eos: true }), { at: slow.port }),
    );
    await until(() => full.filter((m) => m.firstToken).length >= 16);
    const waiting = full.findLast((m) => !m.firstToken);
    const lines = fetch(`${slow.url}/api/chat`, {
      method: 'POST', body: JSON.stringify(chat('What is 7 * 8?')),
    });
    await until(() => waiting.comments > 0);
    ok(waiting.comments > 0 && waiting.status === 200, 'a comment came');
    for (const m of full) m.req.destroy();
    const text = await (await lines).text();
    equal(
      text.split('\n').filter((l) => l.trim()).map((l) => JSON.parse(l).message.content).join(''),
      '7 * 8 = 56.',
    );
  } finally {
    await slow.stop();
  }
});

test('a body above the limit is told so, to the official client too', async () => {
  const openai = new OpenAI({ baseURL: `${server.url}/v1`, apiKey: 'none', maxRetries: 0 });
  await rejects(openai.chat.completions.create(chat('x'.repeat(33 << 20))), (e) =>
    e.status === 413 && /larger than 32 MiB/.test(e.message));
});

test('a prompt that no context could hold is refused before it is read, '
  + 'and leaves no memory behind', async () => {
  const before = megabytes();
  for (let i = 0; i < 4; i++) {
    const r = await post(port, path, chat('word '.repeat(6 << 20)));
    same([r.status, r.json.error.code], [400, 'context_length_exceeded']);
    const calls = Array.from(
      { length: 3000 },
      (_, n) => ({ id: `c${n}`, type: 'function', function: { name: 'f', arguments: '{}' } }),
    );
    const many = await post(port, path, {
      model: 'tiny',
      messages: [
        user('x'), { role: 'assistant', content: '', tool_calls: calls },
        ...calls.map(({ id }) => ({ role: 'tool', tool_call_id: id, content: 'y' })),
      ],
    });
    same([many.status, many.json.error.code], [400, 'context_length_exceeded']);
  }
  await sleep(500);
  ok(megabytes() < before + 400, `${megabytes()} MB, ${before} before`);
});

test('JSON of any depth is an answer in the 400s', async () => {
  for (const depth of [101, 5000, 200_000]) {
    const nested = `${'['.repeat(depth)}${']'.repeat(depth)}`;
    const body =
      '{"model":"tiny","messages":[{"role":"user","content":"x"}],"tools":[{"type":"function",'
        + `"function":{"name":"f","parameters":{"a":${nested}}}}]}`;
    for (const where of [path, '/api/chat', '/api/show']) {
      const r = await ask(port, where, { method: 'POST', body });
      equal(r.status, 400, `${where} ${depth}: ${r.text}`);
    }
  }
});

test('a call that does not return when its client has left is ended, and the next is answered',
    async () => {
  equal((await post(port, path, chat('What is 7 * 8?'))).status, 200);
  const stuck = stream(chat('HANG'));
  await until(() => stuck.headers);
  stuck.req.destroy();
  const begin = performance.now();
  await sleep(100);
  let r;
  for (let i = 0; i < 20; i++) {
    r = await post(port, path, chat('What is 7 * 8?'));
    if (r.status === 200) break;
    equal(r.status, 503, r.text);
    await sleep(100);
  }
  equal(r.json.choices[0].message.content, '7 * 8 = 56.');
  ok(performance.now() - begin < 30_000 && server.err.includes('is replaced'), server.err);
});

test('Deno serves too', async () => {
  const other = await startServe(['--backend', 'cpu'], {
    program: ['web/engine/node_modules/.bin/deno', 'run', '-A'],
  });
  const at = Number(new URL(other.url).port);
  try {
    const many = await Promise.all([1, 2, 3].map(() => post(at, path, chat('What is 7 * 8?'))));
    for (const r of many) equal(r.json.choices?.[0].message.content, '7 * 8 = 56.', r.text);
    equal(
      (await post(
        at, '/api/chat', chat('What is 7 * 8?', { model: 'tiny-moe', stream: false }),
      )).status,
      200,
      'another model takes its place',
    );
  } finally {
    await other.stop();
  }
});

/** Milliseconds from SIGTERM to the end. */
async function terminated(prepare, ...args) {
  const one = await start(...args);
  await prepare(one);
  const begin = performance.now();
  one.child.kill('SIGTERM');
  equal(await one.over, 143, 'it ends by itself, and says what by');
  return performance.now() - begin;
}

test('SIGTERM ends it within five seconds, whatever is under way', async () => {
  const hung = await terminated(async ({ port: at }) => {
    await post(at, path, chat('x'));
    const stuck = stream(chat('HANG'), { at });
    await until(() => stuck.headers);
  });
  const stuck = await terminated(async ({ port: at }) => {
    const body = JSON.stringify(
      chat('Tell me a story.', { stream: true, max_tokens: 1500, ignore_eos: true }),
    );
    const socket = net.connect(
      at,
      '127.0.0.1',
      () => socket.write(
        `POST ${path} HTTP/1.1\r\nHost: localhost\r\nContent-Length: ${body.length}\r\n\r\n${body}`,
      ),
    );
    socket.pause().on('error', () => {});
    const half = net.connect(at, '127.0.0.1', () =>
      half.write(`POST ${path} HTTP/1.1\r\nHost: localhost\r\nContent-Length: 100\r\n\r\n{`));
    half.on('error', () => {});
    await sleep(1000);
  });
  const loading = await terminated(async ({ port: at }) => {
    post(at, path, chat('x')).catch(() => {});
    await sleep(30);
  }, '--model', 'tiny');
  const lost = await terminated(async ({ port: at }) => {
    for (let i = 0; i < 3; i++) await post(at, path, chat('x', { model: 'lost:1' }));
  });
  for (const [name, ms] of Object.entries({ hung, stuck, loading, lost }))
    ok(ms < 5000, `${name}: ${Math.round(ms)} ms`);
});

test('SIGTERM ends it also where its store never says what is in it', async () => {
  const gone = `${temp}/HANG`;
  fs.mkdirSync(`${gone}/manifests/registry.ollama.ai`, { recursive: true });
  const child = spawn(
    process.execPath,
    ['web/engine/bin/bezel.mjs', 'serve', '--port', '0', '--backend', 'cpu', '--store', gone],
    { stdio: ['ignore', 'ignore', 'pipe'], ...hook },
  );
  const over = new Promise((done) => child.on('close', (code, signal) => done(code ?? signal)));
  let said = '';
  child.stderr.on('data', (d) => (said += d));
  await until(() => said.includes('for ever'));
  const begin = performance.now();
  child.kill('SIGTERM');
  const late = setTimeout(() => child.kill('SIGKILL'), 5000);
  equal(await over, 143);
  clearTimeout(late);
  ok(performance.now() - begin < 5000);
});

await done(process.argv[2]);
await server.stop();
