// The npm package as others get it: what is packed, whether it installs, type-checks and imports
// without a browser, whether its server has the page, and whether pages made with it answer: the
// README's example without a bundler, and a project that Vite builds.
//
//   node tests/web/test_package.mjs build/bezel
import { execFileSync, spawn, spawnSync } from 'node:child_process';
import fs from 'node:fs';
import os from 'node:os';
import path from 'node:path';
import { pathToFileURL } from 'node:url';
import zlib from 'node:zlib';

import { runPage } from './browser.mjs';
import { done, equal, ok, same, test } from './check.mjs';

const native = path.resolve(process.argv[2] ?? 'build/bezel');
const project = 'build/tmp/package'; // below the repository, so that browser.mjs can serve it
const installed = `${project}/node_modules/bezel`;
const question = 'What is the capital of France?';
const answer = 'The capital of France is Paris.';
let packed;

function run(program, args, cwd = project) {
  const r = spawnSync(program, args, {
    cwd,
    encoding: 'utf8',
    maxBuffer: 1 << 26,
    env: { ...process.env, npm_config_cache: path.resolve(`${project}-cache`) },
  });
  equal(r.status, 0, `${program} ${args.join(' ')}\n${r.stdout}\n${r.stderr}`);
  return r.stdout;
}

/** A page, and what it said and how it ended. */
async function open(page, script, seconds = 400) {
  const said = [];
  fs.writeFileSync(`${project}/${page}`, script);
  const code = await runPage(`/${project}/${page}`, { seconds, log: (line) => said.push(line) });
  return { code, said: said.join('\n') };
}

const guard = `const post = (path, body) => fetch(path, { method: 'POST', body: String(body) });
  const failed = async (e) => { await post('/log', e?.stack ?? e); await post('/done', 1); };
  addEventListener('error', (e) => failed(e.error ?? e.message));
  addEventListener('unhandledrejection', (e) => failed(e.reason));`;

fs.rmSync(project, { recursive: true, force: true });
fs.mkdirSync(project, { recursive: true });
fs.copyFileSync('models/tiny.q8_0.gguf', `${project}/tiny.q8_0.gguf`);
fs.writeFileSync(
  `${project}/package.json`, JSON.stringify({ name: 'sample', private: true, type: 'module' }),
);

test('the package holds what it needs and no more', () => {
  [packed] = JSON.parse(
    run('npm', ['pack', '--json', '--pack-destination', path.resolve(project)], 'web/engine'),
  );
  const names = packed.files.map((f) => f.path);
  for (const needed of [
    'package.json', 'README.md', 'LICENSE', 'licenses.txt', 'bin/bezel.mjs', 'dist/index.js',
    'dist/index.d.ts', 'dist/worker.js', 'dist/core.js', 'dist/bezel.wasm', 'dist/train.wgsl',
    'dist/canvas.wgsl', 'app/index.html', 'app/sw.js', 'app/licenses.txt',
  ])
    ok(names.includes(needed), `${needed} is missing`);
  const known = [
    /package\.json|README\.md|LICENSE|licenses\.txt|bin\/bezel\.mjs/,
    /dist\/.*\.(js|d\.ts|wasm|wgsl)/,
    /app\/.*\.(html|js|css|wasm|wgsl|woff2|png|svg|txt|webmanifest)/,
    /app\/assets\/tiny\.q8_0-[\w-]+\.gguf/,
  ];
  const all = new RegExp(`^(${known.map((one) => one.source).join('|')})$`);
  same(names.filter((n) => !all.test(n)), []);
  const sizeOf = (which) =>
    packed.files.filter((f) => which.test(f.path)).reduce((sum, f) => sum + f.size, 0);
  const zipped = names
    .filter((n) => n.startsWith('dist/'))
    .reduce((sum, n) => sum + zlib.gzipSync(fs.readFileSync(`web/engine/${n}`)).length, 0);
  const engine = sizeOf(/^dist\//), page = sizeOf(/^app\/(?!.*\.gguf$)/);
  const model = sizeOf(/^app\/.*\.gguf$/);
  ok(engine < 2_000_000 && zipped < 660_000, `the engine: ${engine} bytes, ${zipped} zipped`);
  ok(page < 3_500_000, `the page: ${page} bytes`);
  equal(model, fs.statSync('models/tiny.q8_0.gguf').size);
  ok(packed.size < 8_500_000, `${packed.size} bytes packed`);
  equal(
    Object.keys(
      JSON.parse(fs.readFileSync('web/engine/package.json', 'utf8')).dependencies ?? {},
    ).length,
    0,
  );
});

test('it installs from its tarball with no network, and brings nothing along', () => {
  run('npm', ['install', '--offline', '--no-audit', '--no-fund', `./${packed.filename}`]);
  same(fs.readdirSync(`${project}/node_modules`).filter((n) => !n.startsWith('.')), ['bezel']);
});

test('every export can be reached by its name, and its README speaks of it', () => {
  const readme = fs.readFileSync(`${installed}/README.md`, 'utf8');
  const names = Object.keys(
    JSON.parse(fs.readFileSync(`${installed}/package.json`, 'utf8')).exports,
  ).filter((n) => n !== '.');
  for (const name of names) {
    const file = run(process.execPath, [
      '--input-type=module', '-e', `console.log(import.meta.resolve('bezel/${name.slice(2)}'))`,
    ]).trim();
    ok(fs.existsSync(new URL(file)), `bezel/${name.slice(2)} is ${file}`);
    if (file.endsWith('.js'))
      ok(
        readme.includes(`\`bezel/${name.slice(2)}\``),
        `the README says nothing of bezel/${name.slice(2)}`,
      );
  }
});

test('its types check a sample without further packages, and have no any', () => {
  fs.copyFileSync('tests/web/package_sample.ts', `${project}/sample.ts`);
  for (const module of [['nodenext', 'nodenext'], ['esnext', 'bundler']])
    run(process.execPath, [
      path.resolve('web/engine/node_modules/typescript/bin/tsc'), '--noEmit', '--strict',
      '--exactOptionalPropertyTypes', '--target', 'es2022', '--lib',
      'es2023,dom,dom.iterable,dom.asynciterable', '--types', '', '--module', module[0],
      '--moduleResolution', module[1], 'sample.ts',
    ]);
  const declarations =
    fs.readdirSync(`${installed}/dist`, { recursive: true }).filter((f) => f.endsWith('.d.ts'));
  ok(declarations.length > 20);
  for (const file of declarations)
    ok(
      !/[:<,|&(]\s*any\b/.test(fs.readFileSync(
        `${installed}/dist/${file}`, 'utf8',
      ).replace(/\/\*[\s\S]*?\*\/|\/\/.*/g, '')),
      `${file} has any`,
    );
});

test('every declaration that another one names is there; scripts keep what bundlers read', () => {
  const dist = `${installed}/dist`, missing = [];
  const files = fs.readdirSync(dist, { recursive: true }).map((name) => `${dist}/${name}`);
  for (const file of files.filter((f) => f.endsWith('.d.ts')))
    for (const [, name] of fs.readFileSync(file, 'utf8').matchAll(/['"](\.[^'"]*)\.js['"]/g))
      if (!files.includes(path.join(path.dirname(file), `${name}.d.ts`)))
        missing.push(`${file}: ${name}`);
  same(missing, []);
  ok(fs.readFileSync(`${dist}/api/engine.d.ts`, 'utf8').includes('/** '), 'nothing for editors');
  const adapter = fs.readFileSync(`${dist}/gpu/adapter.js`, 'utf8');
  same(adapter.match(/\/[/*].*?(?:\*\/|$)/gm), ['/* @vite-ignore */']);
});

test('everything that ships is named with its licence', () => {
  const page = 'web/app/dist';
  const worker = fs.readdirSync(page).find((name) => /^workbox-.*\.js$/.test(name));
  const workbox = [...fs.readFileSync(
    `${page}/${worker}`, 'utf8',
  ).matchAll(/workbox:(\w+):/g)].map((m) => `workbox-${m[1]}`);
  ok(workbox.length >= 3, `the service worker is made of ${workbox}`);
  const built = {
    'vite:preloadError': 'vite',
    getOwnPropertyNames: 'rolldown',
    'register its module': '@trickfilm400/rollup-plugin-off-main-thread',
  };
  const scripts = fs.readdirSync(page, { recursive: true })
    .filter((f) => f.endsWith('.js'))
    .map((f) => fs.readFileSync(`${page}/${f}`, 'utf8'))
    .join('');
  for (const words of Object.keys(built))
    ok(
      scripts.includes(words), `${words} is in no script: does ${built[words]} still put it there?`,
    );
  const files = fs.readdirSync(page, { recursive: true }).map(String);
  const inside = (name) => fs.readFileSync(`${page}/${files.find((f) => name.test(f))}`, 'latin1');
  ok(inside(/sqlite3-.*\.wasm$/).includes('emscripten'), 'how SQLite is built');
  const fonts = files.filter((f) => f.endsWith('.woff2'))
    .map((f) => /KaTeX_[A-Za-z0-9]+/.exec(f)?.[0]);
  ok(fonts.length > 0);
  for (const name of fonts) ok(inside(/licenses\.txt$/).includes(name), `the font ${name}`);
  const module = ['wasi-libc', 'musl', 'cloudlibc', 'compiler-rt'];
  const named = (file, names) => {
    const headings =
      fs.readFileSync(file, 'utf8').split('\n').filter((line) => line.startsWith('## '));
    for (const name of names)
      ok(
        headings.some((h) => h.startsWith(`## ${name} `) || h.startsWith(`## ${name},`)),
        `${file} does not name ${name}`,
      );
  };
  named(`${page}/licenses.txt`, [
    ...workbox, ...Object.values(built), 'workbox-window', 'vite-plugin-pwa', 'preact',
    '@preact/signals', 'dompurify', 'marked', 'katex', 'highlight.js', '@sqlite.org/sqlite-wasm',
    'Emscripten', 'The fonts of KaTeX', ...module,
  ]);
  named('web/engine/licenses.txt', module);
});

test("TypeScript 5.9 checks its types without skipLibCheck, all entries of it, "
  + "and OpenAI's own requests are requests", () => {
  fs.copyFileSync('tests/web/package_sample.ts', `${project}/sample.ts`);
  fs.copyFileSync('tests/web/package_openai.ts', `${project}/openai.ts`);
  fs.writeFileSync(
    `${project}/entries.ts`,
    ['core', 'node', 'worker', 'store-worker']
      .map((name, i) => `export * as e${i} from 'bezel/${name}';\n`)
      .join(''),
  );
  const link = `${project}/node_modules/openai`;
  fs.symlinkSync(path.resolve('tests/web/node_modules/openai'), link);
  try {
    const options = {
      noEmit: true, strict: true, exactOptionalPropertyTypes: true, target: 'es2022',
      lib: ['es2023', 'dom', 'dom.iterable', 'dom.asynciterable'], types: [], module: 'nodenext',
      moduleResolution: 'nodenext',
    };
    fs.writeFileSync(
      `${project}/tsconfig.json`,
      JSON.stringify({ compilerOptions: options, files: ['sample.ts', 'openai.ts', 'entries.ts'] }),
    );
    run(process.execPath, [path.resolve('tests/web/node_modules/typescript/bin/tsc'), '-p', '.']);
  } finally {
    fs.rmSync(link);
    fs.rmSync(`${project}/tsconfig.json`);
  }
});

test('importing it touches no global of a browser, so that servers can render pages that use it',
    () => {
  const names = [
    'navigator', 'Worker', 'document', 'window', 'self', 'location', 'indexedDB', 'caches',
    'BroadcastChannel', 'fetch', 'crypto', 'localStorage',
  ];
  const trap =
    `for (const name of ${JSON.stringify(names)}) Object.defineProperty(globalThis, name, `
      + `{ configurable: true, get() { throw new Error(name + ' was touched'); } });`;
  run(process.execPath, [
    '--input-type=module', '-e',
    `${trap} const m = await import('bezel'); if (typeof m.Engine.load !== 'function') throw new `
      + `Error('no Engine');`,
  ]);
});

test('in Node the installed package answers, and its tool runs', () => {
  const script = `import { Engine } from 'bezel';
    const engine = await Engine.load('tiny.q8_0.gguf', { backend: 'cpu' });
    const messages = [{ role: 'user', content: ${JSON.stringify(question)} }];
    const answer = await engine.chat.completions.create({ messages, temperature: 0 });
    console.log(answer.choices[0].message.content);`;
  equal(run(process.execPath, ['--input-type=module', '-e', script]).trim(), answer);
  ok(run(process.execPath, ['node_modules/bezel/bin/bezel.mjs', '--help']).includes('serve'));
});

/** `npx bezel serve` of a package installed far from the repository, by someone without a store
 *  of models. */
async function serving(use) {
  const home = fs.mkdtempSync(path.join(os.tmpdir(), 'bezel-serve-'));
  const { OLLAMA_MODELS: _, ...others } = process.env;
  const env = { ...others, HOME: home, npm_config_cache: path.join(home, 'cache') };
  let said = '', child;
  try {
    fs.writeFileSync(
      path.join(home, 'package.json'), JSON.stringify({ name: 'far', private: true }),
    );
    execFileSync(
      'npm',
      ['install', '--offline', '--no-audit', '--no-fund', path.resolve(project, packed.filename)],
      { cwd: home, env, stdio: 'pipe' },
    );
    child = spawn('npx', ['--no-install', 'bezel', 'serve', '--port', '0', '--backend', 'cpu'], {
      cwd: home, env, detached: true,
    });
    for (const out of [child.stdout, child.stderr])
      out.setEncoding('utf8').on('data', (text) => (said += text));
    const over = new Promise((resolve) => child.once('close', resolve));
    const url = await new Promise((found, failed) => {
      child.stdout.on('data', () =>
        said.includes('Ctrl-C ends it') && found(/http:\/\/localhost:\d+\//.exec(said)[0]));
      void over.then((code) => failed(new Error(`it ended with ${code}\n${said}`)));
    });
    await use(url, said);
    process.kill(-child.pid, 'SIGINT');
    await over;
    child = undefined;
  } finally {
    if (child) process.kill(-child.pid, 'SIGKILL');
    fs.rmSync(home, { recursive: true, force: true });
  }
}

test('npx bezel serve, installed far from the repository, has the page with all of its parts and a '
  + 'model that answers', () => serving(async (url, said) => {
  ok(said.includes('tiny:latest') && !said.includes('without its page'), said);
  const fetched = async (name) => {
    const r = await fetch(new URL(name, url));
    equal(r.status, 200, name);
    return { type: r.headers.get('content-type'), bytes: Buffer.from(await r.arrayBuffer()) };
  };
  const page = await fetched('./'), html = String(page.bytes);
  ok(page.type.startsWith('text/html') && html.includes('<title>Bezel'), html);
  const scripts = [...html.matchAll(/<script[^>]* src="([^"]+)"/g)].map(([, name]) => name);
  ok(scripts.some((name) => name.includes('assets/index-')), html);
  for (const name of scripts) ok((await fetched(name)).type.startsWith('text/javascript'), name);
  // what it keeps for offline
  const parts =
    [...String((await fetched('sw.js')).bytes).matchAll(/url:"([^"]+)"/g)].map(([, name]) => name);
  ok(parts.length > 20 && parts.some((name) => name.endsWith('.gguf')), parts.join(' '));
  for (const name of parts) ok((await fetched(name)).bytes.length > 0, name);
  const r = await fetch(new URL('v1/chat/completions', url), {
    method: 'POST',
    headers: { 'content-type': 'application/json' },
    body: JSON.stringify({
      model: 'tiny', messages: [{ role: 'user', content: question }], temperature: 0,
    }),
  });
  equal((await r.json()).choices[0].message.content, answer);
}));

test('the example of the README answers in a page without a bundler', async () => {
  const [, example] = /```html\n([\s\S]*?)```/.exec(fs.readFileSync('README.md', 'utf8'));
  ok(example.includes('./node_modules/bezel/dist/index.js') && example.includes(question));
  const watch = `<script type="module">${guard}
    while (!/Paris/.test(document.body.textContent)) await new Promise((r) => setTimeout(r, 100));
    await post('/log', document.body.textContent);
    await post('/done', 0);</script>`;
  const { code, said } = await open('readme.html', example + watch);
  equal(code, 0, said);
  ok(said.includes('Paris'), said);
});

test('in Chromium, greedy texts on both backends are the CPU oracle\'s, '
  + 'and the worker is heard when it ends', async () => {
  const prompts =
    [question, 'List three fruits.'].map((q) => `<bos><|turn>user\n${q}<turn|>\n<|turn>model\n`);
  const want = prompts.map((p) =>
    JSON.parse(execFileSync(
      native,
      ['generate', 'models/tiny.q8_0.gguf', '--prompt', p, '--greedy', '--json', '--n', '40'],
      { encoding: 'utf8' },
    )).text);
  const page = `<!doctype html><script type="module">${guard}
    import { Engine } from './node_modules/bezel/dist/index.js';
    for (const backend of ['cpu', 'gpu']) {
      const engine = await Engine.load('tiny.q8_0.gguf', { backend });
      for (const prompt of ${JSON.stringify(prompts)}) {
        const made = await engine.completions.create({ prompt, temperature: 0, max_tokens: 40 });
        await post('/log', JSON.stringify([backend, made.choices[0].text]));
      }
      await engine.dispose();
    }
    const name = (e) => e instanceof DOMException ? e.name : e.kind;
    const messages = [{ role: 'user', content: 'Tell me a story about a fox.' }];
    const worker = new Worker('./node_modules/bezel/dist/worker.js', { type: 'module' });
    const file = await (await fetch('tiny.q8_0.gguf')).blob();
    const engine = await Engine.load(file, { backend: 'cpu', worker });
    const ask = (more) => engine.chat.completions.create({ messages, temperature: 0, ...more });
    const stop = new AbortController();
    let seen = 0;
    try {
      for await (const _ of await ask({ stream: true, signal: stop.signal }))
        if (++seen === 4) stop.abort();
    } catch (e) { await post('/log', JSON.stringify(['abort', name(e), seen])); }
    for await (const _ of await ask({ stream: true })) break;
    const long = [{ role: 'user', content: 'word '.repeat(3000) }];
    const bad = await engine.chat.completions.create({ messages: long })
      .catch((e) => [e.name, e.kind]);
    await post('/log', JSON.stringify(['error', ...bad]));
    const lost = ask().catch((e) => [name(e), e.message]);
    worker.terminate();
    await post('/log', JSON.stringify(['lost', ...(await lost)]));
    await engine.dispose();
    await Engine.load('missing.gguf', { backend: 'cpu' })
      .catch((e) => post('/log', JSON.stringify(['missing', name(e)])));
    await post('/done', 0);
    </script>`;
  const { code, said } = await open('greedy.html', page);
  equal(code, 0, said);
  const lines = said.split('\n').map((l) => JSON.parse(l));
  same(lines.slice(0, 4), ['cpu', 'gpu'].flatMap((b) => want.map((text) => [b, text])));
  same(lines[4], ['abort', 'AbortError', 4]);
  same(lines[5], ['error', 'LimitError', 'limit']);
  equal(lines[6][1], 'device');
  ok(lines[6][2].includes('worker ended'), lines[6][2]);
  same(lines[7], ['missing', 'not-found']);
});

test('through the worker: sessions, snapshots, the LanguageModel shape, a benchmark, '
  + 'and a load that is given up', async () => {
  const page = `<!doctype html><script type="module">${guard}
    import { Engine, languageModel } from './node_modules/bezel/dist/index.js';
    const log = (...values) => post('/log', JSON.stringify(values));
    const engine = await Engine.load('tiny.q8_0.gguf', { backend: 'cpu' });
    const prompt = '<bos><|turn>user\\n${question}<turn|>\\n<|turn>model\\n';
    const greedy = { temperature: 0 };
    const go = async (s) => (await s.completions.create(greedy)).choices[0].text;
    const a = engine.session(), c = engine.session();
    const n = await a.append(prompt), snapshot = await a.save(), b = await a.fork();
    await log('session', n, await c.restore(snapshot), await go(a), await go(b), await go(c),
      await a.truncate(n), await go(a));
    const initialPrompts = [{ role: 'system', content: 'Talk like a pirate.' }];
    const model = await languageModel(engine).create({ temperature: 0, topK: 1, initialPrompts });
    let text = '';
    const reader = model.promptStreaming('What is the capital of Italy?').getReader();
    for (let next = await reader.read(); !next.done; next = await reader.read()) text += next.value;
    await log('model', text, model.contextUsage > 20);
    model.destroy();
    const seen = new Set(), onProgress = (p) => seen.add(p.test);
    const bench = await engine.bench({ prompt: 16, predicted: 4, repetitions: 1, onProgress });
    await log('bench', bench.prompt.mean > 0 && bench.predicted.mean > 0, seen.size > 1);
    await engine.dispose();
    const late = await engine.tokenize('x').catch((e) => e.kind);
    const stop = new AbortController();
    const given = await Engine.load('tiny.q8_0.gguf', {
      backend: 'cpu', signal: stop.signal, onProgress: () => stop.abort(),
    }).catch((e) => e.name);
    await log('end', late, given);
    await post('/done', 0);
    </script>`;
  const { code, said } = await open('sessions.html', page);
  equal(code, 0, said);
  same(said.split('\n').map((l) => JSON.parse(l)), [
    ['session', 16, 16, answer, answer, answer, 16, answer],
    ['model', 'Arr, matey! The capital of Italy be Rome.', true],
    ['bench', true, true],
    ['end', 'cancelled', 'AbortError'],
  ]);
});

test('a project built by Vite with no settings answers', async () => {
  const vite =
    await import(pathToFileURL(path.resolve('web/app/node_modules/vite/dist/node/index.js')));
  const source = `${project}/vite`;
  fs.mkdirSync(`${source}/public`, { recursive: true });
  fs.copyFileSync('models/tiny.q8_0.gguf', `${source}/public/tiny.q8_0.gguf`);
  fs.writeFileSync(
    `${source}/index.html`,
    '<!doctype html><title>vite</title><script type="module" src="./main.js"></script>',
  );
  fs.writeFileSync(`${source}/main.js`, `import { Engine } from 'bezel';
    ${guard}
    const engine = await Engine.load(new URL('tiny.q8_0.gguf', location.href), { backend: 'cpu' });
    const messages = [{ role: 'user', content: ${JSON.stringify(question)} }];
    const stream =
      await engine.chat.completions.create({ messages, temperature: 0, stream: true });
    let text = '';
    for await (const chunk of stream) text += chunk.choices[0]?.delta.content ?? '';
    await post('/log', text);
    await post('/done', 0);`);
  await vite.build({
    root: path.resolve(source), base: './', logLevel: 'error', configFile: false,
  });
  const said = [];
  const code =
    await runPage(`/${source}/dist/index.html`, { seconds: 300, log: (line) => said.push(line) });
  equal(code, 0, said.join('\n'));
  equal(said.join('\n'), answer);
});

await done(process.argv[3]);
