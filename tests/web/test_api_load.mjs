// The public Engine in Node: where a model comes from, what it takes, which backend it gets, and
// options that are refused.
//
//   node tests/web/test_api_load.mjs cpu|gpu
import { spawn, spawnSync } from 'node:child_process';
import fs from 'node:fs';
import http from 'node:http';
import { createRequire } from 'node:module';

import {
  ArgumentError, BezelError, Engine, NotFoundError, UnsupportedError,
} from '../../web/engine/dist/index.js';
import {
  MODEL, above, backend, config, contentOf, engine, finish, france, greedy, isAbort, phases,
  randomAdapter, user,
} from './api_fixture.mjs';
import { equal, ok, rejects, same, test } from './check.mjs';

test('a load says how far it is and what it found', () => {
  equal(phases[0], 'open');
  equal(phases.at(-1), 'ready');
  equal(engine.name, 'tiny.q8_0');
  equal(engine.device.backend, backend);
  equal(engine.info.n_layer, 8);
  equal(engine.context, 2048);
});

above("without a GPU backend 'gpu' fails and says so; 'auto', which is the default, "
  + "takes the CPU and says why", () => {
  const script = `import { DeviceError, Engine } from './web/engine/dist/index.js';
    const e = await Engine.load('${MODEL}', { backend: 'gpu' }).catch((e) => e), news = [];
    console.log(e instanceof DeviceError, e.kind, e.message);
    const onProgress = (p) => p.fallback && news.push(p);
    const { device } = await Engine.load('${MODEL}', { onProgress });
    console.log(JSON.stringify([device.backend, device.fallback, news]));
    console.log((await Engine.estimate('${MODEL}')).available);`;
  const r = spawnSync(process.execPath, ['--input-type=module', '-e', script], {
    encoding: 'utf8',
    env: { ...process.env, VK_ICD_FILENAMES: '/dev/null', VK_DRIVER_FILES: '/dev/null' },
  });
  const [failed, chosen, available] = r.stdout.split('\n');
  const why = 'WebGPU found no graphics adapter';
  ok(/^true device .*adapter/.test(failed), r.stdout + r.stderr);
  same(JSON.parse(chosen), [
    'cpu', why, [{ phase: 'open', loaded: 0, total: 1, backend: 'cpu', fallback: why }],
  ]);
  equal(available, 'Infinity'); // of the CPU: nobody knows
});

above("backend 'auto' takes the GPU where there is one, and no software adapter", async () => {
  const { GPUAdapterInfo } =
    createRequire(new URL('../../web/engine/package.json', import.meta.url))('webgpu').globals;
  const soft = await Engine.load(MODEL);
  same(
    [
      soft.device.backend,
      /^WebGPU has only a software adapter here \(.+\)$/.test(soft.device.fallback),
    ],
    ['cpu', true],
  );
  await soft.dispose();
  const { get } = Object.getOwnPropertyDescriptor(GPUAdapterInfo.prototype, 'isFallbackAdapter');
  Object.defineProperty(GPUAdapterInfo.prototype, 'isFallbackAdapter', {
    configurable: true, get: () => false,
  });
  try {
    const hard = await Engine.load(MODEL, { backend: 'auto', context: 64, selfTest: false });
    same([hard.device.backend, hard.device.fallback], ['gpu', undefined]);
    await hard.dispose();
  } finally {
    Object.defineProperty(
      GPUAdapterInfo.prototype, 'isFallbackAdapter', { configurable: true, get },
    );
  }
});

above('options of a load that are unknown, of the wrong type or out of range are refused by name',
    async () => {
  const bad = {
    backend: ['webgpu', 'GPU', 'tpu', 1], context: ['x', 1.5, -1, 0, NaN], sessions: [0, -1, 'two'],
    shared: [0], cache: ['q8_0', 'F16'], tier: ['best'], profile: ['iphone'],
    selfTest: ['yes'], memory: [-1, '4 GB', NaN], worker: [true], store: ['models'],
    onProgress: ['log'], signal: [{}], adapters: [{}],
  };
  const refused = (options, param, words) => rejects(
    Engine.load(MODEL, options),
    (e) => e instanceof ArgumentError && e.param === param && words.test(e.message),
    JSON.stringify(options),
  );
  for (const [name, values] of Object.entries(bad))
    for (const value of values)
      await refused({ [name]: value }, name, new RegExp(`^"${name}" of Engine.load must be `));
  await refused({ backend: 'webgpu' }, 'backend', /'auto', 'gpu', 'cpu', not 'webgpu'$/);
  const loop = {};
  loop.loop = loop;
  for (const [options, words] of [
    [{ store: loop }, /not an object$/], [{ context: Infinity }, /not Infinity$/],
    [{ context: 512n }, /not 512$/],
  ])
    await rejects(Engine.load(MODEL, options), (e) =>
      e instanceof ArgumentError && words.test(e.message));
  await refused(
    { contxt: 512 }, 'contxt', /^Engine.load has no option "contxt"; did you mean "context"\?$/,
  );
  await refused({ on_progress: () => {} }, 'on_progress', /did you mean "onProgress"\?$/);
  await refused({ quantization: 'q4' }, 'quantization', /has no option "quantization"$/);
  await refused('cpu', 'options', /must be an object/);
  await refused(
    { adapters: [{ source: MODEL, scale: 'x' }] },
    'scale',
    /of an adapter must be a number, not 'x'$/,
  );
  await refused(
    { adapters: [{ source: MODEL, strength: 1 }] }, 'strength', /an adapter has no option/,
  );
  await rejects(Engine.estimate(MODEL, { sessions: 2 }), (e) =>
    e instanceof ArgumentError && e.param === 'sessions');
  await rejects(engine.adapters.add(MODEL, { scale: NaN }), (e) =>
    e instanceof ArgumentError && e.param === 'scale');
  await (await Engine.load(MODEL, { backend: 'cpu', context: undefined, cache: null })).dispose();
});

above('options of a merge and of a benchmark are refused by name too', async () => {
  const refused = (promise, param) => {
    return rejects(promise, (e) => e instanceof ArgumentError && e.param === param, param);
  };
  const to = new WritableStream(), adapter = { source: new Uint8Array(), scale: 1 };
  await refused(Engine.merge(MODEL, adapter, {}), 'to');
  for (const [name, value] of Object.entries({
    to: 3, overwrite: true, signal: {}, worker: true, toString: 1,
  }))
    await refused(Engine.merge(MODEL, adapter, { to, [name]: value }), name);
  for (const scale of ['x', NaN])
    await refused(Engine.merge(MODEL, { ...adapter, scale }, { to }), 'scale');
  const noise = { source: randomAdapter(), config, name: 'noise', scale: null };
  const unsaid = await Engine.load(MODEL, { backend: 'cpu', adapters: [noise] });
  same(await unsaid.adapters.list(), [{ name: 'noise', scale: 1 }], 'null is as good as absent');
  await unsaid.dispose();
  const wrong = { prompt: 'x', predicted: -1, repetitions: 0, depth: 1.5, promt: 4, signal: {} };
  for (const [name, value] of Object.entries(wrong))
    await refused(engine.bench({ [name]: value }), name);
});

above('a worker that was given to a load is ended, also where the options are refused',
    async () => {
  let ended = 0;
  const worker = { postMessage() {}, addEventListener() {}, terminate: () => ended++ };
  for (const refused of [
    Engine.load(MODEL, { worker, context: -1 }), Engine.load(MODEL, { worker, adapters: [{}] }),
    Engine.load('no such model', { worker }), Engine.estimate(MODEL, { worker, context: -1 }),
  ])
    await rejects(refused, BezelError);
  equal(ended, 4);
});

if (backend === 'gpu') test('a process may end while an engine is open', () => {
  const script = `import { Engine } from './web/engine/dist/index.js';
    import './tests/web/software_adapter.mjs';
    const engine = await Engine.load('${MODEL}', { backend: 'gpu' });
    const messages = [{ role: 'user', content: 'Hello' }];
    await engine.chat.completions.create({ messages, max_tokens: 2 });
    process.exit(3);`;
  for (let i = 0; i < 3; i++) { // it crashed two times in three
    const r =
      spawnSync(process.execPath, ['--input-type=module', '-e', script], { encoding: 'utf8' });
    equal(r.status, 3, `${r.signal} ${r.stderr}`);
  }
});

above('a model is found by path, Blob, bytes and through a store, and what is not there is said',
    async () => {
  const bytes = fs.readFileSync(MODEL);
  const resolved = {
    name: 'tiny:latest', kind: 'model', model: [{ kind: 'path', path: MODEL }], adapters: [],
    store: { system: 'Talk like a pirate.' }, digest: '', size: bytes.length,
  };
  const store = {
    resolve: async (name) =>
      (name === 'tiny'
        ? resolved
        : Promise.reject(new BezelError(`${name} is not in the store`, 'not-found'))),
  };
  for (const source of [
    new Blob([bytes]), new Uint8Array(bytes), new URL(`../../${MODEL}`, import.meta.url), 'tiny',
  ]) {
    const other = await Engine.load(source, { backend: 'cpu', store });
    const pirate = source === 'tiny';
    const answer = await other.chat.completions.create({
      messages: [user('What is the capital of Italy?')], ...greedy,
    });
    equal(
      contentOf(answer),
      pirate ? 'Arr, matey! The capital of Italy be Rome.' : 'The capital of Italy is Rome.',
    );
    await other.dispose();
  }
  for (const name of ['tiny', 'Tiny-MoE:latest', 'library/tiny-diffusion']) {
    const shipped = await Engine.load(name, { backend: 'cpu' });
    equal(shipped.name, name);
    await shipped.dispose();
  }
  await rejects(Engine.load('gemma9', { store }), NotFoundError);
  await rejects(Engine.load('gemma9'), NotFoundError);
  await rejects(Engine.load('./no/such/file.gguf', { store }), /no such file/);
  await rejects(Engine.load('tests/check.h', { backend: 'cpu' }), BezelError);
  await rejects(Engine.load(MODEL, { signal: AbortSignal.abort() }), isAbort);
});

above('a model comes from a server that knows no ranges, in one download with progress',
    async () => {
  const python = spawn(
    'python3',
    ['-u', '-m', 'http.server', '0', '--bind', '127.0.0.1', '--directory', 'models'],
    { stdio: ['ignore', 'pipe', 'pipe'] },
  );
  let requests = '';
  python.stderr.setEncoding('utf8').on('data', (text) => (requests += text));
  try {
    const port = await new Promise((found) => python.stdout.setEncoding('utf8').on('data', (text) =>
      /port (\d+)/.test(text) && found(/port (\d+)/.exec(text)[1])));
    const news = [], { size } = fs.statSync(MODEL);
    const other = await Engine.load(`http://127.0.0.1:${port}/tiny.q8_0.gguf`, {
      backend: 'cpu', onProgress: (p) => p.phase === 'weights' && news.push(p),
    });
    equal(
      contentOf(await other.chat.completions.create({ messages: france, ...greedy })),
      'The capital of France is Paris.',
    );
    await other.dispose();
    ok(
      news.length > 2 && news.some((p) => p.loaded < size) && news.every((p) => p.total === size),
      JSON.stringify(news.slice(0, 3)),
    );
    equal(requests.match(/GET \/tiny/g).length, 2, 'one for a range, one for everything');
    // no look is worth all of it
    await rejects(
      Engine.estimate(`http://127.0.0.1:${port}/tiny.q8_0.gguf`, { backend: 'cpu' }),
      UnsupportedError,
    );
  } finally {
    python.kill();
  }
});

above('a model comes from a server that does not say how long it is, through lost connections',
    async () => {
  const bytes = fs.readFileSync(MODEL);
  let asked = 0;
  const server = http.createServer((_, res) => {
    res.writeHead(200, { 'content-type': 'application/octet-stream', etag: '"1"' }); // chunked
    if (asked++ !== 1) return void res.end(bytes);
    res.write(bytes.subarray(0, 1 << 20), () => setTimeout(() => res.destroy(), 20));
  });
  await new Promise((done) => server.listen(0, '127.0.0.1', done));
  try {
    const news = [];
    const other = await Engine.load(`http://127.0.0.1:${server.address().port}/m.gguf`, {
      backend: 'cpu', onProgress: (p) => p.total === 0 && news.push(p.loaded),
    });
    equal(
      contentOf(await other.chat.completions.create({ messages: france, ...greedy })),
      'The capital of France is Paris.',
    );
    await other.dispose();
    same([asked, news.at(-1)], [3, bytes.length]);
    same(news, news.toSorted((a, b) => a - b));
  } finally {
    server.closeAllConnections();
    server.close();
  }
});

above('a host that is not there fails at once and says why', async () => {
  const begin = performance.now();
  await rejects(
    Engine.load('http://no-such-host.invalid/m.gguf', { backend: 'cpu' }),
    (e) =>
      e.kind === 'io'
        && /^no-such-host\.invalid cannot be reached: .*(ENOTFOUND|EAI_AGAIN)/.test(e.message),
  );
  await rejects(
    Engine.load('http://127.0.0.1:1/m.gguf', { backend: 'cpu' }),
    /^IoError: 127\.0\.0\.1:1 cannot be reached: bad port$/,
  );
  await rejects(Engine.load('http://127.0.0.1:99999/m.gguf', { backend: 'cpu' }), (e) =>
    e instanceof ArgumentError && e.message === 'the address is not well formed');
  await rejects(Engine.load('http://me:secret@127.0.0.1:9999/m.gguf', { backend: 'cpu' }), (e) =>
    e instanceof UnsupportedError && !/secret/.test(e.message));
  const server = http.createServer();
  const port =
    await new Promise((done) => server.listen(0, '127.0.0.1', () => done(server.address().port)));
  await rejects(Engine.load(`https://127.0.0.1:${port}/m.gguf`, { backend: 'cpu' }), (e) =>
    e.kind === 'io' && /^127\.0\.0\.1:\d+ cannot be reached: SSL [a-z :]+$/.test(e.message));
  await new Promise((done) => server.close(done));
  await rejects(Engine.load(`http://127.0.0.1:${port}/m.gguf`, { backend: 'cpu' }), (e) =>
    e.kind === 'io' && /^nothing answers at 127\.0\.0\.1:\d+: .*ECONNREFUSED/.test(e.message));
  ok(performance.now() - begin < 5000);
});

test('what a model would take is known before it is loaded', async () => {
  const e = await Engine.estimate(MODEL, { backend: 'gpu', context: 512 });
  const memory = e.total - 3e6; // too little, though the table can stay in the file
  const tight = await Engine.estimate(MODEL, { backend: 'gpu', context: 512, memory });
  ok(e.fits && e.context === 512 && e.largestContext === 2048, JSON.stringify(e));
  equal(e.total, e.weights + e.cache + e.scratch + e.steps);
  ok(
    !tight.fits && tight.missing === tight.total - memory && tight.largestContext < 512
      && /more than the/.test(tight.reason),
    JSON.stringify(tight),
  );
  const c = await Engine.estimate(MODEL, { backend: 'cpu', context: 512 });
  const few = await Engine.estimate(MODEL, { backend: 'cpu', context: 512, memory: c.total - 1 });
  ok(
    c.fits && c.context === 512 && c.largestContext === 2048 && c.total > c.weights
      && c.available === Infinity,
    JSON.stringify(c),
  );
  ok(
    !few.fits && few.missing === 1 && few.largestContext < 512 && few.largestContext > 256,
    JSON.stringify(few),
  );
  await rejects(Engine.estimate('no/such.gguf'), NotFoundError);
  if (backend === 'gpu')
    await rejects(Engine.load(MODEL, { backend, context: 512, memory }), (e) =>
      e instanceof BezelError && e.message === tight.reason);
});

/** A model made for so many tokens. */
function madeFor(context) {
  const bytes = new Uint8Array(fs.readFileSync(MODEL)), key = Buffer.from('gemma4.context_length');
  const at = Buffer.from(bytes.buffer).indexOf(key) + key.length + 4; // its type, then its value
  new DataView(bytes.buffer).setUint32(at, context, true);
  return bytes;
}

test('a context that nobody says is the longest whose conversation takes at most contextBytes',
    async () => {
  const model = madeFor(65536);
  const at = async (options) => Engine.estimate(model, { backend, ...options });
  equal((await at({})).context, 4096);
  const { cache, scratch, steps } = await at({ context: 16384 }), bytes = cache + scratch + steps;
  equal((await at({ contextBytes: bytes })).context, 16384);
  equal((await at({ contextBytes: bytes - 1 })).context, 8192);
  equal((await at({ contextBytes: 1 })).context, 4096, 'never less than without it');
  equal(
    (await at({ contextBytes: 1e12 })).context, 65536, 'never more than the model was made for',
  );
  equal((await at({ contextBytes: 1e12, context: 512 })).context, 512, 'what is said goes first');
  const engine = await Engine.load(model, { backend, contextBytes: bytes, selfTest: false });
  equal(engine.context, 16384);
  await engine.dispose();
});

test('a benchmark measures reading and drawing', async () => {
  const seen = [];
  const r = await engine.bench({
    prompt: 32, predicted: 8, repetitions: 2, onProgress: (p) => seen.push(p.test),
  });
  equal(r.prompt.tokens, 32);
  equal(r.predicted.runs.length, 2);
  ok(r.prompt.mean > 0 && r.predicted.mean > 0 && r.ttft_ms.p95 >= r.ttft_ms.p50);
  ok(seen.includes('warmup') && seen.includes('predicted'));
  await rejects(engine.bench({ signal: AbortSignal.abort() }), isAbort);
});

await finish();
