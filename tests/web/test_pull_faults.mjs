// Pulling from sites that fail, lie or attack, and onto disks that are full: one sentence each, no
// half of a model, and nothing that came is lost.
//
//   node tests/web/test_pull_faults.mjs
import fs from 'node:fs';

import { done, equal, ok, rejects, same, test as sentence } from './check.mjs';
import {
  asked, bezel, blobOf, digest, freshStore, MB, net, partial, pull, sent, tiny,
} from './pull_fixture.mjs';
import { image, sha } from './registry.mjs';

/** Each begins with sites that behave. */
const test = (words, work) => sentence(words, async () => {
  for (const key of Object.keys(net.bad)) delete net.bad[key];
  net.log.length = 0;
  await work();
});
const config = '{"model_family":"gemma4"}';
const made = net.add('library/gemma4:e2b', { model: tiny, license: 'MIT\n', config });
net.repo('org/repo', { 'm-Q4_K_M.gguf': tiny });
const names = { registry: 'gemma4:e2b', hub: 'hf.co/org/repo' };

/** As the first answers, then as it should be. */
const firstly = (times, status, more = {}) => {
  let n = 0;
  return { at: () => (n++ < times ? status : 0), ...more };
};
const about = (key, wrong, work) => async () => {
  net.bad[key] = wrong;
  await work(await freshStore());
};
/** The model is whole, and no part of a download is left. */
function isWhole(writer) {
  for (const [hex, data] of Object.entries(made.blobs)) ok(data.equals(blobOf(writer, hex)), hex);
  same(partial(writer), []);
}
const isNone = (writer) =>
  ok(!fs.existsSync(`${writer.root}/manifests/registry.ollama.ai`), 'no manifest is written');

// ---- what passes, and what does not ----

for (const [status, where] of [
  [503, digest], [500, 'library/gemma4:e2b'], [429, `files/${digest}`],
])
  test(`${status} for a while is waited out (${where.slice(0, 18)})`, about(
    where, firstly(3, status), async (writer) => {
      await pull(writer, 'gemma4:e2b');
      isWhole(writer);
    },
  ));

test('429 is retried when it says, and not where it wants more than minutes', async () => {
  const key = 'library/gemma4:e2b', writer = await freshStore(), begin = performance.now();
  net.bad[key] = firstly(1, 429, { headers: { 'retry-after': '1' } });
  await pull(writer, 'gemma4:e2b');
  ok(performance.now() - begin > 990);
  net.bad[key] = firstly(99, 429, { headers: { 'retry-after': '3600' } });
  await rejects(
    pull(writer, 'gemma4:e2b'),
    /one try to read .* brought nothing: the server says 429 .* and wants 3600 s of pause$/,
  );
  net.bad[key] = firstly(99, 503);
  await rejects(
    pull(writer, 'gemma4:e2b'), /^IoError: 6 tries in a row to read .* the server says 503/,
  );
});

test('404, 401 and 403 are a sentence each, of the registry and of the hub', async () => {
  const writer = await freshStore();
  await rejects(pull(writer, 'nothing'), /^NotFoundError: there is no model nothing:latest at 127/);
  for (const status of [401, 403]) {
    net.bad['library/gemma4:e2b'] = { at: () => status };
    await rejects(pull(writer, 'gemma4:e2b'), /does not give gemma4:e2b to everyone: it is/);
  }
  const says = { error: 'needs a \x1b[31mnewer Ollama' };
  net.bad['library/gemma4:e2b'] = { at: () => 412, says };
  await rejects(pull(writer, 'gemma4:e2b'), /refuses gemma4:e2b: needs a +\[31mnewer Ollama$/);
  delete net.bad['library/gemma4:e2b'];
  await rejects(
    pull(writer, 'hf.co/org/absent'),
    /^NotFoundError: there is no repository org\/absent on the hub, or it is private \(HF_TOKEN/,
  );
  await rejects(
    pull(writer, `${net.hub}/org/repo/resolve/v9/m-Q4_K_M.gguf`), /org\/repo has not what was/,
  );
  net.bad['org/repo/resolve/main/m-Q4_K_M.gguf'] = { at: () => 403, says: { error: 'too young' } };
  await rejects(pull(writer, names.hub), /^IoError: the hub refuses org\/repo: too young$/);
  delete net.bad['org/repo/resolve/main/m-Q4_K_M.gguf'];
  isNone(writer);
});

test('a site that is not there is a sentence, at once', async () => {
  const writer = await freshStore(), begin = performance.now();
  await rejects(pull(writer, 'x', { registry: 'http://127.0.0.1:9' }), /cannot be reached: bad/);
  await rejects(pull(writer, 'x', { registry: 'http://127.0.0.1:4' }), /nothing answers at 127/);
  await rejects(
    pull(writer, 'x', { registry: 'https://nowhere.invalid' }), /nowhere\.invalid cannot/,
  );
  ok(performance.now() - begin < 10_000);
});

test('an address of the file host that has expired is asked for again', about(
  digest, { uses: 2, cut: (n) => (n > 9 * 64 * 1024 ? n - 1000 : undefined) }, async (writer) => {
    await pull(writer, 'gemma4:e2b');
    isWhole(writer);
    const again = net.log.filter((e) => e.at === 'registry' && e.path.endsWith(digest));
    ok(again.length >= 3, `the registry was asked ${again.length} times`);
  },
));

// ---- wrong bytes ----

test('wrong bytes are refused and removed; half of an earlier run is not to blame for long',
    async () => {
  const writer = await freshStore();
  net.bad[digest] = { data: Buffer.from(tiny).fill(7, 5 * MB, 5 * MB + 3) };
  await rejects(
    pull(writer, 'gemma4:e2b'),
    /^FormatError: what came from 127.* is not .* of gemma4:e2b: its sha256 is .*; it was removed$/,
  );
  delete net.bad[digest];
  same(partial(writer), []);
  isNone(writer);
  // bytes that a disk turned, under a journal that trusts them
  const blob = `${writer.partial}/sha256-${digest}`;
  fs.writeFileSync(blob, Buffer.alloc(3 * MB, 1));
  fs.writeFileSync(`${blob}.journal`, JSON.stringify({ size: tiny.length, done: [[0, 3 * MB]] }));
  await pull(writer, 'gemma4:e2b');
  isWhole(writer);
});

test('a journal or a lock that makes no sense is as good as none', async () => {
  const journals = [
    'x', '{}', '[]', 'null', `{"size":${tiny.length},"done":[[0,9e9]]}`,
    `{"size":${tiny.length},"done":[[5,1]]}`, `{"size":${tiny.length},"done":[[0,5],[3,9]]}`,
    `{"size":${tiny.length},"done":[[0,${tiny.length}]]}`, `{"size":1,"done":[[0,1]]}`,
  ];
  for (const text of journals) {
    const writer = await freshStore(), blob = `${writer.partial}/sha256-${digest}`;
    fs.writeFileSync(blob, 'not much');
    fs.writeFileSync(`${blob}.journal`, text);
    fs.writeFileSync(`${blob}.lock`, '{"pid":1e9,"id":3}');
    fs.utimesSync(`${blob}.lock`, 1, 1);
    await pull(writer, 'gemma4:e2b');
    isWhole(writer);
  }
});

test('another length than the manifest says is refused, and so is a blob of another size',
    async () => {
  const writer = await freshStore();
  net.bad[digest] = { data: tiny.subarray(0, 6 * MB) };
  await rejects(pull(writer, 'gemma4:e2b'), /has 6291456 bytes, and should have 6772384 for/);
  delete net.bad[digest];
  fs.writeFileSync(writer.blobPath(digest), 'damaged');
  await pull(writer, 'gemma4:e2b');
  isWhole(writer);
});

test('a server without ranges, or without a length, serves all the same', async () => {
  for (const wrong of [{ range: false }, { range: false, length: false }]) {
    const writer = await freshStore();
    let cuts = 2;
    const cut = wrong.length === false ? undefined : () => (cuts-- > 0 ? MB : undefined);
    net.bad[digest] = { ...wrong, cut };
    await pull(writer, 'gemma4:e2b');
    isWhole(writer);
  }
});

test('a connection that stands still is given up and gone on with', async () => {
  const writer = await freshStore();
  let still = 3;
  net.bad[`files/${digest}`] = { get never() { return still-- > 0; } };
  await pull(writer, 'gemma4:e2b', { patience: { first: 2, longest: 20, tries: 6, idle: 150 } });
  delete net.bad[`files/${digest}`];
  isWhole(writer);
});

test('an ETag that changes under way is no reason to mix: the digest decides', async () => {
  const writer = await freshStore();
  let n = 0;
  const cut = () => (n < 12 ? 300_000 : undefined);
  net.bad[digest] = { get etag() { return `"${n++}"`; }, cut };
  await pull(writer, 'gemma4:e2b');
  delete net.bad[digest];
  isWhole(writer);
});

// ---- attacks ----

const layer = (more = {}) => ({
  mediaType: image('model'), digest: `sha256:${digest}`, size: tiny.length, ...more,
});
const hostile = {
  'a digest that is a path': [{ layers: [layer({ digest: 'sha256:../../../etc/x' })] }, /sha256/],
  'a digest of another kind': [{ layers: [layer({ digest: `md5:${digest}` })] }, /sha256/],
  'a digest with a path behind it': [
    { layers: [layer({ digest: `sha256:${digest}/../x` })] }, /sha256/,
  ],
  'a size that is negative': [{ layers: [layer({ size: -1 })] }, /impossible size/],
  'a size that is no number': [{ layers: [layer({ size: '5' })] }, /impossible size/],
  'a size past all numbers': [{ layers: [layer({ size: 2 ** 60 })] }, /impossible size/],
  'a size past all disks': [{ layers: [layer({ size: 2 ** 52 })] }, /there is no room for/],
  'sizes that together are past all numbers': [
    { layers: [layer({ size: 2 ** 52 }), layer({ digest: `sha256:${sha('x')}`, size: 2 ** 52 })] },
    /impossible size/,
  ],
  'two sizes for one layer': [{ layers: [layer(), layer({ size: 3 })] }, /impossible size/],
  'thousands of layers': [
    { layers: Array.from({ length: 5000 }, (_, i) => layer({ digest: `sha256:${sha(`${i}`)}` })) },
    /more than 1000 layers/,
  ],
  'no layers': [{ config: layer() }, /no list of layers/],
  'layers that are none': [{ layers: [null, 3, 'x'] }, /sha256/],
  'an MLX model': [{ layers: [layer({ mediaType: image('tensor') })] }, /is an MLX model/],
  'no JSON': ['<html>', /is not JSON/],
  'nothing': ['', /is not JSON/],
};
for (const [what, [manifest, sentence]] of Object.entries(hostile))
  test(`a manifest with ${what} is refused before anything is fetched`, async () => {
    const writer = await freshStore();
    net.manifests['evil/model:latest'] =
      typeof manifest === 'string' ? manifest : JSON.stringify(manifest);
    net.log.length = 0;
    await rejects(pull(writer, 'evil/model'), sentence);
    same(net.log.map((e) => e.at), ['registry']);
    same([partial(writer), fs.readdirSync(`${writer.root}/blobs`)], [[], []]);
  });

test('names with .. and odd parts are no names, whatever the site', async () => {
  const writer = await freshStore();
  for (const name of [
    '../x', 'a/../b', '../../../etc/passwd:x', 'hf.co/../x', 'hf.co/org/..', 'x:..', 'a b', '',
    'hf.co/org/repo:../x', `${'x'.repeat(200)}`, 'http://[::1', 'ftp://x/y/z',
    'https://a:b@c.d/e/f', `${net.hub}/..%2f..%2fx`,
  ])
    await rejects(pull(writer, name), (e) => /^(argument|not-found|io)$/.test(e.kind), name);
  ok(!fs.existsSync(`${writer.root}/../etc`));
});

test('a list of files with odd entries is read as far as it makes sense', async () => {
  const writer = await freshStore(), file = {
    type: 'file', path: 'm-Q4_K_M.gguf', size: 5,
    lfs: { oid: digest, size: tiny.length, pointerSize: 1 },
  };
  const key = 'api/models/org/repo/tree/main';
  const list = (says, headers) => (net.bad[key] = { at: () => 200, says, headers });
  list([null, 3, { type: 'file' }, { ...file, path: '../../x.gguf' }, { ...file, size: 'x' },
    { ...file, path: 5 }, { ...file, path: '/m-Q8_0.gguf' }, file]);
  await pull(writer, names.hub);
  ok(tiny.equals(blobOf(writer)));
  list([{ ...file, lfs: undefined }]);
  await rejects(pull(writer, names.hub), /the hub knows no sha256 of m-Q4_K_M\.gguf/);
  list({ error: 'no' });
  await rejects(pull(writer, names.hub), /the hub's list of files is no list/);
  list('nothing');
  await rejects(pull(writer, names.hub), /the hub's list of files is not JSON/);
  for (const link of ['https://evil.example/x', `${net.hub}/${key}?a`]) {
    list([], { link: `<${link}>; rel="next"` });
    await rejects(pull(writer, names.hub), /the list of files of org\/repo does not end at 127/);
  }
});

test('redirects lead to no file, no other network and not in circles', async () => {
  const writer = await freshStore();
  for (const redirect of [
    'file:///etc/passwd', 'http://10.0.0.1/x', 'http://169.254.169.254/latest', 'ftp://x/y',
    'http://user:pw@127.0.0.1/', 'http://[', `${net.url}/v2/library/gemma4/blobs/sha256:${digest}`,
  ]) {
    net.bad[digest] = { redirect };
    await rejects(
      pull(writer, 'gemma4:e2b'), /redirects to .*, which is not followed|redirects in circles/,
    );
  }
  delete net.bad[digest];
  isNone(writer);
  await rejects(
    pull(writer, 'http://example.com/ns/model'), /asked over http, .* --insecure allows it/,
  );
  await rejects(pull(writer, 'x', { registry: 'http://example.com' }), /--insecure allows it/);
});

test('a link in the store that leads out of it is not written through', async () => {
  const writer = await freshStore(), outside = `${writer.root}-outside`;
  fs.mkdirSync(outside);
  fs.mkdirSync(`${writer.root}/manifests/registry.ollama.ai`);
  fs.symlinkSync(fs.realpathSync(outside), `${writer.root}/manifests/registry.ollama.ai/library`);
  await rejects(pull(writer, 'gemma4:e2b'), /is a link that leads out of the store/);
  same(fs.readdirSync(outside), []);
  fs.rmSync(`${writer.root}/blobs`, { recursive: true });
  fs.symlinkSync(fs.realpathSync(outside), `${writer.root}/blobs`);
  await rejects(freshStore(writer.root), /is a link that leads out of the store/);
});

// ---- disks ----

test('a disk with too little room is told before anything is fetched, with numbers', async () => {
  const writer = await freshStore();
  writer.room = async () => 1e6;
  net.log.length = 0;
  await rejects(
    pull(writer, 'gemma4:e2b'),
    /^LimitError: there is no room for gemma4:e2b: it needs 6\.8 MB more, and the disk .* 1\.0 MB/,
  );
  equal(sent(), 0);
  // what is there already needs no room
  const blob = `${writer.partial}/sha256-${digest}`;
  fs.writeFileSync(blob, tiny.subarray(0, 6 * MB));
  fs.writeFileSync(`${blob}.journal`, JSON.stringify({ size: tiny.length, done: [[0, 6 * MB]] }));
  await pull(writer, 'gemma4:e2b');
  isWhole(writer);
  ok(sent() < MB, `${sent()}`);
});

/** What a disk does from so many bytes on. */
async function failing(code, after, work) {
  const probe = await fs.promises.open('tests/web/registry.mjs');
  const files = Object.getPrototypeOf(probe), { write } = files;
  await probe.close();
  let left = after;
  files.write = async function (bytes, offset, length, at) {
    left -= length;
    if (left < 0) throw Object.assign(new Error(`${code}: no`), { code, syscall: 'write' });
    return write.call(this, bytes, offset, length, at);
  };
  try {
    await work();
  } finally {
    files.write = write;
  }
}

test('a disk that fills up under way keeps what was written', async () => {
  const writer = await freshStore();
  await failing('ENOSPC', 4 * MB, () => rejects(
    pull(writer, 'gemma4:e2b'),
    /^LimitError: the disk of .* is full; what was written is kept, and the next pull goes on/,
  ));
  isNone(writer);
  net.log.length = 0;
  await pull(writer, 'gemma4:e2b');
  isWhole(writer);
  ok(sent() < tiny.length - 3 * MB, `${sent()} bytes came again`);
});

test('a store that cannot be written is a sentence', async () => {
  const writer = await freshStore();
  await failing('EACCES', 0, () => rejects(
    pull(writer, 'gemma4:e2b'), /^IoError: the store .* cannot be written by this user: its owner/,
  ));
  await failing('EIO', MB, () => rejects(
    pull(writer, 'gemma4:e2b'), /^IoError: the store .* cannot be written: EIO: no$/,
  ));
  await pull(writer, 'gemma4:e2b');
  isWhole(writer);
  const { code, err } = await bezel(['pull', 'x', '--store', 'tests/web/registry.mjs']);
  equal(code, 1);
  ok(/^bezel pull: the store .*registry\.mjs cannot be written: /.test(err), err);
});

test('what another program deletes meanwhile is fetched again', async () => {
  const writer = await freshStore(), license = sha('MIT\n');
  let deleted = false;
  await pull(writer, 'gemma4:e2b', {
    onNews: ({ status }) => {
      if (deleted || status !== 'writing manifest') return;
      deleted = true;
      fs.rmSync(writer.blobPath(license));
    },
  });
  ok(deleted);
  isWhole(writer);
  ok(asked(license).length >= 2);
});

await done(process.argv[2]);
net.close();
