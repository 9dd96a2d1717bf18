// The server without a model to speak of: whose turn it is, and how answers are sent and end.
import fs from 'node:fs';
import net from 'node:net';

import { BezelError } from '../../web/engine/dist/core.js';
import { sendContent } from '../../web/engine/dist/server/content.js';
import { parseKeepAlive } from '../../web/engine/dist/server/ollama.js';
import { FairQueue } from '../../web/engine/dist/server/queue.js';
import { Slices } from '../../web/engine/dist/engine/queue.js';
import { Sessions } from '../../web/engine/dist/engine/sessions.js';
import { done, equal, ok, rejects, same, test, throws } from './check.mjs';
import { ask, echo, post, sleep, startServer, told, until } from './server_fixture.mjs';
import { app, root, s, say } from './server_with_store.mjs';

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
