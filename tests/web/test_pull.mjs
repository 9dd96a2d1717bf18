// Pulling a model into Ollama's store: from a registry and a hub of our own, whole, cut, stopped,
// killed and at once. What goes wrong is in test_pull_faults.mjs.
//
//   node tests/web/test_pull.mjs build/bezel
import { spawnSync } from 'node:child_process';
import fs from 'node:fs';
import * as http from 'node:http';

import { useProxies } from '../../web/engine/dist/pull/proxy.js';
import { DiskStore } from '../../web/engine/dist/store/disk_store.js';
import { done, equal, ok, rejects, same, test } from './check.mjs';
import {
  asked, bezel, blobOf, core, digest, filesIn, freshStore, MB, net, partial, pull, sent, start,
  temp, tiny, until,
} from './pull_fixture.mjs';
import { image, sha } from './registry.mjs';
import { splitGguf } from './split_gguf.mjs';

const native = process.argv[2] ?? 'build/bezel';
const config = '{"model_format":"gguf","model_family":"gemma4","model_type":"6.1M"}';
const made = net.add('library/gemma4:e2b', {
  model: tiny, license: 'MIT\n', params: '{"temperature":1,"top_k":64}', config,
});

test('a model of the registry is written as Ollama writes it: names, bytes and modes', async () => {
  const before = process.umask(0o022), writer = await freshStore(), news = [];
  const name = await pull(writer, 'gemma4:e2b', { onNews: (n) => news.push(n) });
  process.umask(before);
  equal(name.short, 'gemma4:e2b');
  const blobs = Object.keys(made.blobs).sort().map((hex) => [`blobs/sha256-${hex}`, '-644']);
  same(filesIn(writer.root), {
    blobs: 'd755', ...Object.fromEntries(blobs),
    manifests: 'd755', 'manifests/registry.ollama.ai': 'd755',
    'manifests/registry.ollama.ai/library': 'd755',
    'manifests/registry.ollama.ai/library/gemma4': 'd755',
    'manifests/registry.ollama.ai/library/gemma4/e2b': '-644', partial: 'd755',
  });
  const manifest = `${writer.root}/manifests/registry.ollama.ai/library/gemma4/e2b`;
  equal(fs.readFileSync(manifest, 'utf8'), made.text);
  for (const [hex, data] of Object.entries(made.blobs)) ok(data.equals(blobOf(writer, hex)), hex);
  // told as Ollama tells it
  const lines = news.map(({ status }) => status), { loaded, of } = news.at(-1);
  same(lines.filter((s) => !/^pulling [0-9a-f]{12}$/.test(s)), [
    'pulling manifest', 'verifying sha256 digest', 'writing manifest', 'success',
  ]);
  same([loaded, of], [of, Object.values(made.blobs).reduce((n, b) => n + b.length, 0)]);
  const told = news.filter((n) => n.digest === `sha256:${digest}`);
  same([told.at(-1).completed, told.at(-1).total], [tiny.length, tiny.length]);
  ok(told.length > 3 && told.every((n, i) => !i || n.completed >= told[i - 1].completed));
  // the weights came in several ranges at once, each of them once
  ok(asked().length >= 4 && asked().every((e) => e.headers.range), `${asked().length} requests`);
  equal(sent(), tiny.length);
  // and are read by the native tool, which walks Ollama's layout by itself
  const list = spawnSync(native, ['list', '--store', writer.root], { encoding: 'utf8' });
  equal(list.stdout, `${'gemma4:e2b'.padEnd(40)}       0.01 GB  ${digest.slice(0, 12)}\n`);
  const run = spawnSync(
    native, ['run', 'gemma4:e2b', '--store', writer.root, 'What is 7 * 8?'], { encoding: 'utf8' },
  );
  same([run.status, run.stdout.trim()], [0, '7 * 8 = 56.'], run.stderr);
  // a second pull fetches the manifest alone
  net.log.length = 0;
  await pull(writer, 'Library/Gemma4:E2B');
  same(net.log.map((e) => `${e.at} ${e.path}`), ['registry /v2/library/gemma4/manifests/e2b']);
});

test('a newer manifest takes the place of the old, and what only that had is deleted', async () => {
  const writer = await freshStore();
  net.add('me/mine:1', { model: 'old weights', license: 'MIT\n', config: '{}' });
  await pull(writer, 'me/mine:1');
  const next = net.add('me/mine:1', { model: 'new weights', license: 'MIT\n', config: '{}' });
  await pull(writer, 'me/mine:1');
  const left = fs.readdirSync(`${writer.root}/blobs`).sort();
  same(left, Object.keys(next.blobs).map((hex) => `sha256-${hex}`).sort());
  // a layer of a kind that we do not know belongs to the model all the same
  const odd = net.add('me/odd:1', { model: 'new weights', embed: 'what is this', config: '{}' });
  await pull(writer, 'me/odd:1');
  ok(Object.keys(odd.blobs).every((hex) => blobOf(writer, hex)));
});

test('twenty cuts at random offsets end in a verified blob, and no byte comes twice', async () => {
  const writer = await freshStore();
  let cuts = 20;
  net.log.length = 0;
  const somewhere = (n) => 1 + Math.floor(Math.random() * n);
  net.bad[digest] = { cut: (n) => (cuts > 0 ? (cuts--, somewhere(n)) : undefined) };
  await pull(writer, 'gemma4:e2b');
  delete net.bad[digest];
  equal(cuts, 0);
  ok(tiny.equals(blobOf(writer)));
  ok(asked().length > 20 && sent() < tiny.length + 20 * 128 * 1024, `${sent()} bytes were sent`);
  same(partial(writer), []);
});

test('twenty stops at random moments lose nothing that was written', async () => {
  const writer = await freshStore();
  net.log.length = 0;
  net.bad[digest] = { pause: 5 };
  for (let i = 0, before = 0; i < 20; i++) {
    const stop = new AbortController();
    let first, last = 0;
    const after = before + Math.floor(Math.random() * (tiny.length / 25));
    await rejects(pull(writer, 'gemma4:e2b', {
      signal: stop.signal,
      onNews: (n) => {
        if (n.digest !== `sha256:${digest}`) return;
        first ??= n.completed;
        last = n.completed;
        if (last >= after) stop.abort();
      },
    }), (e) => e.name === 'AbortError');
    ok(first >= before, `attempt ${i} began at ${first}, after ${before} were there`);
    before = Math.min(last, tiny.length - MB);
    same(partial(writer), [`sha256-${digest}`, `sha256-${digest}.journal`]);
    ok(!fs.existsSync(`${writer.root}/manifests/registry.ollama.ai`), 'no half model is seen');
  }
  delete net.bad[digest];
  await pull(writer, 'gemma4:e2b');
  ok(tiny.equals(blobOf(writer)));
  same(partial(writer), []);
});

test('Ctrl-C says so and keeps what came; a process that is killed holds nobody up', async () => {
  const { root } = await freshStore(), args = ['pull', '--registry', net.url, '--store', root];
  net.bad[digest] = { pause: 30 };
  net.log.length = 0;
  const stopped = start([...args, 'gemma4:e2b', '--json']);
  await until(() => sent() > MB);
  stopped.child.kill('SIGINT');
  const { code, err } = await stopped.ended;
  equal(code, 130);
  ok(/what has come is kept: the same command goes on/.test(err), err);
  const kept = JSON.parse(fs.readFileSync(`${root}/partial/sha256-${digest}.journal`, 'utf8'));
  ok(kept.done.reduce((n, [a, b]) => n + b - a, 0) > 0.5 * MB, JSON.stringify(kept));
  const killed = start([...args, 'gemma4:e2b']);
  await until(() => sent() > 3 * MB);
  killed.child.kill('SIGKILL');
  equal((await killed.ended).code, 'SIGKILL');
  ok(fs.existsSync(`${root}/partial/sha256-${digest}.lock`), 'it left its lock');
  delete net.bad[digest];
  const last = await bezel([...args, 'gemma4:e2b']);
  equal(last.code, 0, last.err);
  ok(last.err.endsWith(`gemma4:e2b is in ${fs.realpathSync(root)}\n`), last.err);
  ok(tiny.equals(fs.readFileSync(`${root}/blobs/sha256-${digest}`)));
});

test('two pulls of a model fetch its bytes once; one that is stopped hands over', async () => {
  const writer = await freshStore(), stop = new AbortController(), waits = [];
  net.bad[digest] = { pause: 10 };
  net.log.length = 0;
  const first = pull(writer, 'gemma4:e2b', { signal: stop.signal });
  await until(() => sent() > MB);
  const second = pull(await freshStore(writer.root), 'gemma4:e2b', {
    onNews: (n) => n.status.startsWith('waiting') && waits.push(n.completed),
  });
  await until(() => waits.length > 0);
  stop.abort();
  await rejects(first, (e) => e.name === 'AbortError');
  await second;
  delete net.bad[digest];
  ok(tiny.equals(blobOf(writer)));
  ok(sent() < tiny.length + 9 * MB && waits.every((n) => n >= 0 && n < tiny.length), `${sent()}`);
  // while one is at work, the other's small files do not wait
  net.add('library/other:1', { model: 'small', license: 'MIT\n', config: '{}' });
  same(partial(writer), []);
});

test('a model of another family is pulled, and Bezel says that it does not run it', async () => {
  const notices = [];
  net.add('library/llama3:1', { model: 'weights', config: '{"model_family":"llama\\u001b"}' });
  await pull(await freshStore(), 'llama3:1', { onNotice: (n) => notices.push(n) });
  same(notices, ['Bezel runs Gemma 4 and not llama; Ollama runs what is pulled all the same']);
});

test('a proxy that this Node cannot use is told', () => {
  equal(useProxies({}), undefined);
  const said = useProxies({ HTTPS_PROXY: 'http://127.0.0.1:1' });
  if (http.setGlobalProxyFromEnv) equal(said, undefined);
  else ok(/^the proxy of the environment is not used: /.test(said), said);
});

// ---- the hub ----

const q4 = Buffer.concat([tiny]), mmproj = Buffer.from('GGUF projector');

test('the hub gives Q4_K_M where nobody says, and its projector, as Ollama has them', async () => {
  const writer = await freshStore();
  net.repo('Some-Org/tiny-GGUF', {
    'tiny-Q8_0.gguf': Buffer.from('another'), 'tiny-Q4_K_M.gguf': q4, 'mmproj-F16.gguf': mmproj,
    'mmproj-F32.gguf': Buffer.from('wide'), 'imatrix.gguf': Buffer.from('none'),
    'mtp-tiny-Q4_K_M.gguf': Buffer.from('drafter'),
  }, { page: 2 });
  const name = await pull(writer, 'hf.co/Some-Org/tiny-GGUF');
  equal(name.short, 'hf.co/Some-Org/tiny-GGUF:latest');
  const manifest = `${writer.root}/manifests/hf.co/Some-Org/tiny-GGUF/latest`;
  const text = fs.readFileSync(manifest, 'utf8'), { config: c, layers } = JSON.parse(text);
  same(layers.map((l) => [l.mediaType, l.digest, l.size]), [
    [image('model'), `sha256:${digest}`, tiny.length],
    [image('projector'), `sha256:${sha(mmproj)}`, mmproj.length],
    [image('params'), `sha256:${sha('{"stop":["\\u003cturn|\\u003e"]}\n')}`, 31],
  ]);
  // byte for byte what Ollama's own writer makes of such a file
  equal(String(blobOf(writer, c.digest.slice(7))),
    '{"model_format":"gguf","model_family":"gemma4","model_families":["gemma4"],'
      + '"model_type":"6.14M","file_type":"Q8_0","renderer":"gemma4","parser":"gemma4",'
      + '"architecture":"amd64","os":"linux"}\n');
  ok(text.startsWith('{"schemaVersion":2,"mediaType":"application/vnd.docker.distribution')
    && text.endsWith('}]}\n'));
  const found = await DiskStore.open(core, writer.root).resolve('hf.co/some-org/TINY-gguf');
  ok(found.projector && found.model.length === 1);
});

test('another quantisation is taken by its name, and a wish that is not there hears what is',
    async () => {
  const writer = await freshStore(), notices = [];
  net.repo('org/many', {
    'BF16/m-BF16.gguf': Buffer.from('large'), 'm-Q8_0.gguf': tiny, 'm-UD-Q4_K_XL.gguf': tiny,
  });
  equal((await pull(writer, 'hf.co/org/many:q8_0')).short, 'hf.co/org/many:q8_0');
  const onNotice = (n) => notices.push(n);
  await pull(writer, 'huggingface.co/org/many', { onNotice });
  same(notices, ['org/many has no Q4_K_M; this is UD-Q4_K_XL']);
  await rejects(
    pull(writer, 'hf.co/org/many:Q2_K'),
    /^NotFoundError: org\/many has no Q2_K; it has BF16 \(5 bytes\), Q8_0 \(6\.8 MB\), UD-Q4_K_XL/,
  );
  net.repo('org/two', { 'a-Q4_0.gguf': tiny, 'b-Q4_0.gguf': tiny });
  await rejects(
    pull(writer, 'hf.co/org/two'), /has several models: say which file .* a-Q4_0\.gguf, b/,
  );
  await pull(writer, 'hf.co/org/two:b-Q4_0.gguf');
  for (const program of [[native], [process.execPath, 'web/engine/bin/bezel.mjs']]) {
    const [command, ...before] = program;
    const shown = spawnSync(
      command, [...before, 'inspect', 'hf.co/org/two:b-Q4_0.gguf', '--store', writer.root],
      { encoding: 'utf8' },
    );
    equal(shown.status, 0, shown.stderr);
  }
  net.repo('org/none', { 'model.safetensors': tiny });
  await rejects(pull(writer, 'hf.co/org/none'), /org\/none has no GGUF files/);
  net.repo('org/adapter', { 'lora-F16.gguf': Buffer.from('no GGUF at all') });
  await rejects(pull(writer, 'hf.co/org/adapter'), { kind: 'format' });
  ok(!fs.existsSync(`${writer.root}/blobs/sha256-${sha('no GGUF at all')}`), 'it is not kept');
});

test('shards are one model, whichever is named; an address has a revision', async () => {
  const writer = await freshStore(), parts = splitGguf(tiny, 2);
  const names = parts.map((_, i) => `Q4_K_M/t-Q4_K_M-0000${i + 1}-of-00002.gguf`);
  net.repo('org/split', {
    [names[1]]: parts[1], [names[0]]: parts[0], 't-Q8_0-00002-of-00003.gguf': Buffer.from('alone'),
  }, { revision: 'v1' });
  const name =
    await pull(writer, `https://huggingface.co/org/split/resolve/v1/${names[1]}?download=true`);
  equal(name.short, 'hf.co/org/split:t-Q4_K_M');
  const found = await DiskStore.open(core, writer.root).resolve(name.short);
  same(found.model.map((ref) => ref.path.slice(-64)), parts.map(sha));
  const run = spawnSync(
    native, ['run', name.short, '--store', writer.root, 'What is 7 * 8?'], { encoding: 'utf8' },
  );
  same([run.status, run.stdout.trim()], [0, '7 * 8 = 56.'], run.stderr);
  await rejects(
    pull(writer, 'https://huggingface.co/org/split/resolve/v1/a%2F..%2Fb.gguf'),
    /org\/split has no a\/\.\.\/b\.gguf; it has Q4_K_M/,
  );
  await rejects(
    pull(writer, 'https://huggingface.co/org/split/settings'), { kind: 'argument' },
  );
  await rejects(
    pull(writer, 'https://example.com/a.gguf'), /^UnsupportedError: example\.com is no registry/,
  );
});

test('a token for gated models goes to the hub and nowhere else, and is never shown', async () => {
  net.repo('org/gated', { 'g-Q4_K_M.gguf': tiny }, { gated: true, token: 'hf_right' });
  net.log.length = 0;
  const { root } = await freshStore();
  const args = ['pull', '--hub', net.hub, '--registry', net.url, '--store', root];
  const none = await bezel([...args, 'hf.co/org/gated', '--json']);
  equal(none.code, 1);
  ok(/org\/gated is gated: accept its licence at http.*\/org\/gated, then give a token/
    .test(none.err), none.err);
  const other = await bezel([...args, 'hf.co/org/gated'], { HF_TOKEN: 'hf_other' });
  ok(/the account of HF_TOKEN has no access yet: accept its licence at/.test(other.err), other.err);
  const bad = await bezel([...args, 'hf.co/org/gated'], { HF_TOKEN: 'what' });
  ok(/the hub does not accept the token of HF_TOKEN/.test(bad.err), bad.err);
  fs.writeFileSync(`${temp}/token`, 'hf_right\n', { mode: 0o600 });
  const right = await bezel([...args, 'hf.co/org/gated', '--json']);
  equal(right.code, 0, right.err);
  await bezel([...args, 'gemma4:e2b']);
  fs.rmSync(`${temp}/token`);
  const spaces = await bezel([...args, 'hf.co/org/gated'], { HF_TOKEN: 'hf_a\nhf_b' });
  ok(/HF_TOKEN holds no token: it has spaces/.test(spaces.err), spaces.err);
  for (const { out, err } of [none, other, bad, right, spaces])
    ok(!/hf_right|hf_other|what\b|hf_a|secret/.test(out + err.replace('what has', '')), out + err);
  ok(net.log.some((e) => e.at === 'hub' && e.headers.authorization === 'Bearer hf_right'));
  ok(net.log.some((e) => e.at === 'files') && net.log.some((e) => e.at === 'registry'));
  ok(net.log.every((e) => e.at === 'hub' || !e.headers.authorization));
});

await done(process.argv[3]);
net.close();
