// The store of models, in Chromium with a server that fails in every way, and on disk in Node.
//
//   node tests/web/test_store.mjs
import { execFileSync } from 'node:child_process';
import crypto from 'node:crypto';
import fs from 'node:fs';

import { BezelError, Core, loadWasm, openSource, ServerStore } from '../../web/engine/dist/core.js';
import { Engine } from '../../web/engine/dist/index.js';
import { DiskStore } from '../../web/engine/dist/store/disk_store.js';
import { parseManifest, parseName } from '../../web/engine/dist/store/manifest.js';
import { badServer } from './bad_server.mjs';
import { done, equal, ok, rejects, same, test } from './check.mjs';
import { openChromium } from './playwright.mjs';

const sha = (data) => crypto.createHash('sha256').update(data).digest('hex');
const tiny = fs.readFileSync('models/tiny.q8_0.gguf');
const other = fs.readFileSync('models/tiny-moe.q8_0.gguf');
const MB = 1 << 20;

// ---- a store on disk, behind a server as `bezel serve` is ----

const disk = 'build/tmp/store';
fs.rmSync(disk, { recursive: true, force: true });
fs.mkdirSync('build/tmp', { recursive: true });
execFileSync('python3', [
  'tools/tiny/store.py', disk, 'tiny=models/tiny.q8_0.gguf', 'copy=models/tiny.q8_0.gguf',
  'moe=models/tiny-moe.q8_0.gguf',
]);
const core = await Core.load(await loadWasm());
const onDisk = DiskStore.open(core, disk);
const blobs = {}; // faults by digest
const server = await badServer({
  '/api/tags': async (_, response) => response.end(JSON.stringify({
    models: (await onDisk.list()).map((m) => ({
      name: m.name, model: m.name, size: m.size, digest: m.digest,
      modified_at: new Date(m.modified).toISOString(),
      details: {
        family: m.family, parameter_size: m.parameters, quantization_level: m.quantization,
      },
    })),
  })),
  '/bezel/manifest/': async (_, response, name) => {
    const found = await onDisk.find(name);
    if (!found) return response.writeHead(404).end();
    response.end(await onDisk.manifest(found));
  },
  '/bezel/blob/': (request, response, digest) => {
    const entry = { path: digest, from: 0, sent: 0 };
    server.log.push(entry);
    const data = blobs[digest]?.data ?? fs.readFileSync(`${disk}/blobs/sha256-${digest}`);
    return server.sendBad(
      { etag: `"${digest}"`, ...blobs[digest], data }, request, response, entry,
    );
  },
});
const origin = server.url;

// ---- tabs ----

const { context, close } = await openChromium();
const complaints = [];

async function openTab() {
  const page = await context.newPage();
  page.on('pageerror', (e) => complaints.push(e.message));
  await page.goto(`${origin}/tests/web/store.html`);
  equal(await page.evaluate(() => window.ready), '');
  return page;
}

/** Run fn(lib, args, tell) in the tab's worker; its failure is an Error with name, kind and the
 *  news. */
async function begin(page, fn, args) {
  const id = await page.evaluate(([code, a]) => window.begin(code, a), [fn.toString(), args]);
  return {
    news: () => page.evaluate((i) => window.news[i] ?? [], id),
    end: async () => {
      const { value, error } = await page.evaluate((i) => window.ends[i], id);
      if (error)
        throw Object.assign(new Error(error.message), {
          name: error.name, kind: error.kind, inner: error.stack,
        });
      return value;
    },
  };
}
const inTab = async (page, fn, args) => (await begin(page, fn, args)).end();

async function until(condition, seconds = 60) {
  for (const end = Date.now() + 1000 * seconds; !(await condition());) {
    if (Date.now() > end) throw new Error(`waited ${seconds} s in vain for: ${condition}`);
    await new Promise((wait) => setTimeout(wait, 20));
  }
}

/** Forget all that is stored, as a new visitor has it. */
const empty = (page) => inTab(page, async ({ store, handles }) => {
  const root = await navigator.storage.getDirectory();
  for await (const name of root.keys())
    if (name !== 'bezel') await root.removeEntry(name, { recursive: true });
  for (const { name } of await store.list()) await store.delete(name);
  await store.collect(-1);
  for (const { key } of await handles.all('folders')) await handles.remove('folders', key);
});

const pull = (page, from, options = {}) =>
  inTab(page, ({ store }, [f, o]) => store.pull(f, o), [from, options]);
const beginPull = (page, from, options = {}) => begin(page, ({ store, kept }, [f, o], tell) => {
  kept.stop = new AbortController();
  return store.pull(f, { ...o, onProgress: tell, signal: kept.stop.signal });
}, [from, options]);

/** Names and sizes of what lies in a folder of the store. */
const folder = (page, name) => inTab(page, async (_, n) => {
  const at = await (await (await navigator.storage.getDirectory()).getDirectoryHandle('bezel'))
    .getDirectoryHandle(n);
  const all = {};
  for await (const file of at.values()) all[file.name] = (await file.getFile()).size;
  return all;
}, name);

/** The digest of a model's weights as the engine would read them. */
const readBack = (page, name) => inTab(page, async ({ store, openSource, Sha256, core: c }, n) => {
  const found = await store.resolve(n), hash = new Sha256(c), piece = new Uint8Array(1 << 20);
  for (const ref of [...found.model, ...found.adapters]) {
    const source = await openSource(ref);
    for (let at = 0; at < source.size; at += piece.length) {
      const part = piece.subarray(0, Math.min(piece.length, source.size - at));
      source.read(at, part);
      hash.update(part);
    }
    source.close();
  }
  return hash.end();
}, name);

const sent = (name) => server.log.filter((e) => e.path === name).reduce((n, e) => n + e.sent, 0);
const requests = (name) => server.log.filter((e) => e.path === name);
let files = 0;
/** A file on the server with a name of its own. */
function serve(file) {
  const name = `model-${++files}.gguf`;
  server.files[name] = { data: tiny, etag: `"${files}"`, ...file };
  return { name, url: `${origin}/f/${name}`, file: server.files[name] };
}

let tab = await openTab();
const fresh = (sentence, fn) => test(sentence, async () => {
  await empty(tab);
  await fn();
});

// ---- downloads ----

fresh('a download that is cut at twenty random places is completed and verified', async () => {
  let cuts = 0;
  const { name, url, file } = serve({
    cut: (n) =>
      ((file.reset = cuts % 2),
        cuts++ < 20 ? Math.floor(Math.random() * Math.min(n, 2 * tiny.length / 20)) : undefined),
  });
  // A connection that is reset may bring nothing at all, several times in a row.
  const model = await inTab(
    tab,
    async ({ OpfsStore, core: c, patience }, u) => (await OpfsStore.open({
      core: c, patience: { ...patience, tries: 25 },
    })).pull(u, { name: 'cut' }),
    url,
  );
  equal(cuts, 21);
  same(
    [
      model.name, model.kind, model.size > tiny.length, model.digest, model.family,
      model.quantization,
    ],
    ['cut:latest', 'model', true, sha(tiny), 'gemma4', 'Q8_0'],
  );
  equal(await readBack(tab, 'cut'), sha(tiny));
  const starts = requests(name).map((r) => r.from);
  same(starts, starts.toSorted((x, y) => x - y), 'no request goes back');
  ok(starts.at(-1) > 0);
  same(await folder(tab, 'partial'), {});
});

fresh('a server that is gone for good is one sentence, and the next pull goes on '
  + 'where the last ended', async () => {
  let up = true;
  const { name, url, file } =
    serve({ pause: 5, cut: () => (up = false, 3 * MB), status: () => (up ? 0 : 503) });
  await rejects(
    pull(tab, url, { name: 'gone' }),
    (e) =>
      e.kind === 'io'
        && /was lost and 6 tries did not bring it back: the server says 503/.test(e.message),
  );
  const [left] = await inTab(tab, ({ store }) => store.unfinished());
  same([left.label, left.url, left.total], ['gone:latest', url, tiny.length]);
  // a browser drops what it has not handed over when a connection breaks
  ok(left.loaded > MB && left.loaded <= 3 * MB, `${left.loaded}`);
  await rejects(
    inTab(tab, ({ store }) => store.resolve('gone')), /gone:latest is not in the store/,
  );
  Object.assign(file, { cut: undefined, status: undefined });
  await pull(tab, url, { name: 'gone' });
  equal(requests(name).at(-1).from, left.loaded);
  equal(await readBack(tab, 'gone'), sha(tiny));
});

fresh('a stopped download is kept, and can be thrown away', async () => {
  const { url } = serve({ pause: 20 });
  const running = await beginPull(tab, url, { name: 'stopped' });
  await until(async () =>
    (await running.news()).some((p) => p.phase === 'download' && p.loaded > MB));
  await inTab(tab, ({ kept }) => kept.stop.abort());
  await rejects(running.end(), (e) => e.name === 'AbortError');
  const [left] = await inTab(tab, ({ store }) => store.unfinished());
  ok(left.loaded >= MB);
  ok(await inTab(tab, ({ store }, key) => store.discard(key), left.key));
  same(await folder(tab, 'partial'), {});
});

fresh('after a reload in the middle a download goes on', async () => {
  const { name, url, file } = serve({ pause: 60 });
  const running = await beginPull(tab, url, { name: 'reloaded' });
  const flushed = async () => (await inTab(tab, ({ store }) => store.unfinished()))[0]?.loaded ?? 0;
  await until(async () => (await flushed()) > MB);
  await tab.reload();
  equal(await tab.evaluate(() => window.ready), '');
  ok((await running.news()).length === 0); // it is another page
  const loaded = await flushed();
  file.pause = 0;
  const again = await beginPull(tab, url, { name: 'reloaded' });
  await again.end();
  equal(requests(name).at(-1).from, loaded);
  ok((await again.news()).some((p) => p.phase === 'verify'), 'what was there is hashed again');
  equal(await readBack(tab, 'reloaded'), sha(tiny));
});

fresh('a file that changes between two attempts, or in the middle of one, is started again',
    async () => {
  let n = 0;
  const { name, url, file } = serve({
    cut: (length) => {
      if (n++ > 0) return undefined;
      // before the connection breaks
      setTimeout(() => Object.assign(file, { data: other, etag: '"new"' }));
      return Math.min(length, 2 * MB);
    },
  });
  await pull(tab, url, { name: 'changed' });
  equal(await readBack(tab, 'changed'), sha(other));
  same(requests(name).map((r) => r.from).at(-1), 0);
  same(Object.keys(await folder(tab, 'blobs')).filter((b) => b === `sha256-${sha(tiny)}`), []);
});

fresh('a server without ranges, and one that answers 500 now and then, '
  + 'are good enough to download from', async () => {
  let cuts = 0, asked = 0;
  const { url } = serve({
    range: false, cut: () => (cuts++ < 2 ? MB : undefined),
    status: () => (asked++ % 2 === 0 ? 500 : 0),
  });
  await pull(tab, url, { name: 'simple' });
  same([asked, cuts], [6, 3]); // three answers of 500; two bodies that end early; one that does not
  equal(await readBack(tab, 'simple'), sha(tiny));
});

fresh('what does not match its digest is refused and removed', async () => {
  const broken = Buffer.from(tiny);
  broken[5 * MB] ^= 1;
  const { url, file } = serve({ data: broken });
  await rejects(pull(tab, url, { name: 'bad', digest: sha(tiny) }), (e) =>
    e.kind === 'format' && /is not bad:latest: its sha256 is .* it was removed/.test(e.message));
  same([await folder(tab, 'partial'), await folder(tab, 'blobs')], [{}, {}]);
  file.data = tiny;
  await pull(tab, url, { name: 'bad', digest: `sha256:${sha(tiny).toUpperCase()}` });
  equal(await readBack(tab, 'bad'), sha(tiny));
});

fresh('a partial file that went bad on the disk is found out and fetched anew', async () => {
  const { name, url, file } =
    serve({ pause: 5, cut: () => 3 * MB, status: () => (requests(name).length > 1 ? 503 : 0) });
  await rejects(pull(tab, url, { name: 'rot', digest: sha(tiny) }), /was lost/);
  await inTab(tab, async (_, key) => {
    const partial = await (await (await navigator.storage.getDirectory())
      .getDirectoryHandle('bezel')).getDirectoryHandle('partial');
    const handle = await (await partial.getFileHandle(key)).createSyncAccessHandle();
    handle.write(Uint8Array.of(1, 2, 3), { at: 100000 });
    handle.close();
  }, `sha256-${sha(tiny)}`);
  Object.assign(file, { cut: undefined, status: undefined });
  await pull(tab, url, { name: 'rot', digest: sha(tiny) });
  equal(requests(name).at(-1).from, 0);
  equal(await readBack(tab, 'rot'), sha(tiny));
});

fresh('what is no model is refused at its first bytes', async () => {
  const { name, url } = serve({ data: Buffer.alloc(4 * MB, '<html>'), pause: 5 });
  await rejects(pull(tab, url), (e) =>
    e.kind === 'format' && /is neither a GGUF nor a safetensors file/.test(e.message));
  ok(sent(name) < 4 * MB);
  same([await folder(tab, 'partial'), await folder(tab, 'blobs')], [{}, {}]);
  await rejects(pull(tab, `${origin}/f/absent.gguf`), (e) =>
    e.kind === 'not-found' && /there is nothing at .*absent.gguf \(404/.test(e.message));
  const cutOff = serve({ data: tiny.subarray(0, MB) });
  await rejects(pull(tab, cutOff.url), (e) => e.kind === 'format');
  same(await folder(tab, 'blobs'), {});
});

fresh('the same address twice is fetched once, until it has something new', async () => {
  const { name, url, file } = serve({});
  await pull(tab, url, { name: 'twice' });
  await pull(tab, url, { name: 'twice' });
  ok(sent(name) < 1.5 * tiny.length);
  Object.assign(file, { data: other, etag: '"newer"' });
  await pull(tab, url, { name: 'twice' });
  equal(await readBack(tab, 'twice'), sha(other));
  same(Object.keys(await folder(tab, 'blobs')).filter((b) => b.includes(sha(tiny))), []);
});

// ---- room ----

let browserSession;
async function quota(bytes) {
  browserSession ??= await context.newCDPSession(tab); // the limit lasts as long as the session
  await browserSession.send('Storage.overrideQuotaForOrigin', {
    origin, ...(bytes !== undefined && { quotaSize: bytes }),
  });
}

fresh('a model that will not fit is refused with the missing amount, and nothing is lost',
    async () => {
  const first = serve({}), second = serve({ data: other });
  await pull(tab, first.url, { name: 'first' });
  // Chromium says that 10 GiB are left, whatever the truth is; other browsers say the truth.
  await inTab(tab, () =>
    void (navigator.storage.estimate = async () => ({ quota: 1e9, usage: 1e9 - 2e6 })));
  try {
    const sentence = 'there is no room for second:latest: 4.6 MB must be freed, '
      + 'since it needs 6.6 MB more and this site has 2.0 MB left';
    await rejects(
      pull(tab, second.url, { name: 'second' }),
      (e) => e.kind === 'limit' && e.message.includes(sentence),
    );
  } finally {
    await inTab(tab, () => void delete navigator.storage.estimate);
  }
  equal(await readBack(tab, 'first'), sha(tiny));
  same(await folder(tab, 'partial'), {});
});

fresh('a disk that fills up in the middle keeps what is there, and the download goes on '
  + 'when there is room', async () => {
  const { name, url, file } = serve({ pause: 30 });
  const running = await beginPull(tab, url, { name: 'full' });
  await until(async () => (await running.news()).some((p) => p.loaded > 1.5 * MB));
  await quota(1);
  try {
    await rejects(
      running.end(),
      (e) =>
        e.kind === 'limit'
          && /there is no room for full:latest: .*\d\.\d MB .*\(what is there is kept\)/.test(
            e.message,
          ),
    );
  } finally {
    await quota();
  }
  const [left] = await inTab(tab, ({ store }) => store.unfinished());
  ok(left.loaded >= MB, `${left.loaded} bytes were kept`);
  file.pause = 0;
  await pull(tab, url, { name: 'full' });
  equal(requests(name).at(-1).from, left.loaded);
  equal(await readBack(tab, 'full'), sha(tiny));
});

// ---- two tabs ----

fresh('two tabs that pull the same file fetch it once, and the second sees how far the first is',
    async () => {
  const { name, url } = serve({ pause: 10 });
  const second = await openTab();
  const [a, b] = [
    await beginPull(tab, url, { name: 'both' }), await beginPull(second, url, { name: 'both' }),
  ];
  const [x, y] = await Promise.all([a.end(), b.end()]);
  equal(x.digest, y.digest);
  ok(sent(name) < 1.5 * tiny.length, `${sent(name)} bytes`);
  ok([...(await a.news()), ...(await b.news())].some((p) =>
    p.elsewhere && p.phase === 'download' && p.loaded > 0 && p.total === tiny.length));
  equal(await readBack(second, 'both'), sha(tiny));
  await second.close();
});

fresh('a tab that is closed in the middle of a download leaves it to the one that waits',
    async () => {
  const { name, url } = serve({ pause: 40 });
  const first = await openTab();
  await beginPull(first, url, { name: 'heir', digest: sha(tiny) });
  await until(() => requests(name).length === 1);
  const heir = await beginPull(tab, url, { name: 'heir', digest: sha(tiny) });
  await until(async () => (await heir.news()).some((p) => p.elsewhere && p.loaded > 2 * MB));
  await first.close();
  server.files[name].pause = 0;
  await heir.end();
  ok(requests(name).length === 2 && requests(name)[1].from > 0, JSON.stringify(requests(name)));
  equal(await readBack(tab, 'heir'), sha(tiny));
});

// ---- deleting ----

fresh('a blob that two models share stays until neither needs it', async () => {
  await pull(tab, { server: origin, model: 'tiny' });
  await pull(tab, { server: origin, model: 'copy' });
  equal(sent(sha(tiny)) > 0 && requests(sha(tiny)).length, 1);
  same((await inTab(tab, ({ store }) => store.list())).map((m) => m.name), [
    'copy:latest', 'tiny:latest',
  ]);
  same(await inTab(tab, ({ store }) => store.delete('TINY')), { freed: 0 });
  equal(await readBack(tab, 'copy'), sha(tiny));
  ok((await inTab(tab, ({ store }) => store.delete('copy'))).freed > tiny.length);
  same([await folder(tab, 'blobs'), await inTab(tab, ({ store }) => store.list())], [{}, []]);
  await rejects(inTab(tab, ({ store }) => store.delete('copy')), (e) => e.kind === 'not-found');
});

fresh('a model that another tab has open can be deleted, and goes on being read there',
    async () => {
  await pull(tab, serve({}).url, { name: 'open' });
  const reader = await openTab();
  await inTab(reader, async ({ store, openSource, kept }) =>
    void (kept.source = await openSource((await store.resolve('open')).model[0])));
  await inTab(tab, ({ store }) => store.delete('open'));
  await inTab(tab, ({ store }) => store.collect(-1));
  equal((await folder(tab, 'blobs'))[`sha256-${sha(tiny)}`], tiny.length);
  const same16 = await inTab(reader, ({ kept }) => {
    const bytes = new Uint8Array(16);
    kept.source.read(6000000, bytes);
    kept.source.close();
    return [...bytes];
  });
  same(same16, [...tiny.subarray(6000000, 6000016)]);
  await reader.close();
  await inTab(tab, ({ store }) => store.collect(-1));
  same(await folder(tab, 'blobs'), {});
});

fresh('what nobody has needed for a week is thrown away, what is newer stays', async () => {
  const { url } =
    serve({ pause: 10, cut: () => 2 * MB, status: () => (sent(`model-${files}.gguf`) ? 503 : 0) });
  await rejects(pull(tab, url, { name: 'old' }), /was lost/);
  await inTab(tab, ({ store }) => store.collect());
  equal((await inTab(tab, ({ store }) => store.unfinished())).length, 1);
  const { partial, models, quota: all, persisted } = await inTab(tab, ({ store }) => store.usage());
  ok(partial > 0 && models === 0 && all > 0 && typeof persisted === 'boolean');
  await inTab(tab, ({ store }) => store.collect(-1));
  same(await folder(tab, 'partial'), {});
});

// ---- a Bezel server ----

fresh('a server lists its models, and they are read there or pulled from it', async () => {
  const found = await inTab(tab, async ({ ServerStore, core: c, patience }, url) => {
    const remote = new ServerStore(c, url, { patience });
    return { list: await remote.list(), tiny: await remote.resolve('library/Tiny:latest') };
  }, origin);
  same(found.list.map((m) => [m.name, m.digest, m.family, m.quantization]), [
    ['copy:latest', sha(tiny), 'gemma4', 'Q8_0'], ['moe:latest', sha(other), 'gemma4', 'Q8_0'],
    ['tiny:latest', sha(tiny), 'gemma4', 'Q8_0'],
  ]);
  same(
    found.tiny.model,
    [{ kind: 'url', url: `${origin}/bezel/blob/${sha(tiny)}`, size: tiny.length }],
  );
  same(JSON.parse(found.tiny.store.params), { temperature: 1, top_k: 64, top_p: 0.95 });
  const running = await beginPull(tab, { server: origin, model: 'tiny' }, { name: 'me/mine:1' });
  equal((await running.end()).name, 'me/mine:1');
  equal((await running.news()).at(-1).phase, 'done');
  const here = await inTab(tab, ({ store }) => store.resolve('me/mine:1'));
  same([here.model[0].kind, here.store.params, here.store.config, here.digest], [
    'opfs', found.tiny.store.params, found.tiny.store.config, sha(tiny),
  ]);
  await rejects(pull(tab, { server: origin, model: 'absent' }), (e) =>
    e.kind === 'not-found' && /absent:latest is not on the server/.test(e.message));
});

fresh('a blob that a server sends wrong is refused, and no model is left behind', async () => {
  blobs[sha(other)] = { data: Buffer.from(other).fill(7, MB, MB + 5) };
  await rejects(pull(tab, { server: origin, model: 'moe' }), (e) =>
    e.kind === 'format' && /it was removed/.test(e.message));
  same(await inTab(tab, ({ store }) => store.list()), []);
  delete blobs[sha(other)];
  await pull(tab, { server: origin, model: 'moe' });
  equal(await readBack(tab, 'moe'), sha(other));
});

// ---- files and folders of the person's ----

fresh('a file is copied in under its own name, a handle is read in place and remembered',
    async () => {
  const copied = await inTab(tab, async ({ store }, url) => {
    const bytes = await (await fetch(url)).arrayBuffer();
    return store.importFile(new File([bytes], 'My Model (1).gguf'));
  }, serve({}).url);
  same([copied.name, copied.digest, copied.inPlace], ['My-Model-1-:latest', sha(tiny), undefined]);
  await inTab(tab, async ({ store }, url) => {
    const handle =
      await (await navigator.storage.getDirectory()).getFileHandle('kept.gguf', { create: true });
    const file = await handle.createSyncAccessHandle();
    file.write(new Uint8Array(await (await fetch(url)).arrayBuffer()));
    file.close();
    await store.importFile(handle, { name: 'kept' });
  }, serve({ data: other }).url);
  await tab.reload();
  equal(await tab.evaluate(() => window.ready), '');
  const list = await inTab(tab, ({ store }) => store.list());
  same(list.map((m) => [m.name, m.inPlace ?? false]), [
    ['My-Model-1-:latest', false], ['kept:latest', true],
  ]);
  equal(await readBack(tab, 'KEPT'), sha(other));
  equal(Object.keys(await folder(tab, 'blobs')).includes(`sha256-${sha(other)}`), false);
  await rejects(
    inTab(tab, ({ store }) => store.importFile(new File(['GGUF and no more'], 'kept.gguf'))),
    (e) => e.kind === 'format',
  );
  await rejects(
    inTab(tab, async ({ store }) =>
      store.importFile(await store.handleOf('kept'), { name: 'Kept' })),
    /there is already a model named Kept:latest/,
  );
  same(await inTab(tab, ({ store }) => store.delete('kept')), { freed: 0 });
  ok(await inTab(tab, async () =>
    (await (await navigator.storage.getDirectory()).getFileHandle('kept.gguf')).name));
});

/** PEFT's weights for the first layer of tiny, and their adapter_config.json. */
function peftAdapter(numbers) {
  const name = (side) => `base_model.model.model.layers.0.self_attn.q_proj.lora_${side}.weight`;
  const header = Buffer.from(JSON.stringify({
    [name('A')]: { dtype: 'F32', shape: [2, 256], data_offsets: [0, 2048] },
    [name('B')]: { dtype: 'F32', shape: [256, 2], data_offsets: [2048, 4096] },
  }));
  const length = Buffer.alloc(8);
  length.writeUInt32LE(header.length);
  return {
    bytes: Buffer.concat([length, header, Buffer.from(numbers.buffer)]),
    config: JSON.stringify({ peft_type: 'LORA', r: 2, lora_alpha: 4, target_modules: ['q_proj'] }),
  };
}

fresh('an adapter in safetensors comes with its config', async () => {
  const { bytes, config } = peftAdapter(new Float32Array(1024)), { url } = serve({ data: bytes });
  const add = (c) => inTab(
    tab,
    async ({ store }, [u, text]) => store.importFile(
      new File([await (await fetch(u)).arrayBuffer()], 'adapter_model.safetensors'),
      { name: 'lora', ...(text && { config: text }) },
    ),
    [url, c],
  );
  await rejects(
    add(undefined), /adapter_model.safetensors needs the adapter_config.json that lies beside it/,
  );
  equal((await add(config)).kind, 'adapter');
  const found = await inTab(tab, ({ store }) => store.resolve('lora'));
  same([found.kind, found.model, found.adapters.length, found.store.config], [
    'adapter', [], 1, config,
  ]);
  equal(await readBack(tab, 'lora'), sha(bytes));
});

fresh('an adapter in GGUF is known for one, and can be called something else', async () => {
  const text = (s) =>
    Buffer.concat([Buffer.from(new BigUint64Array([BigInt(s.length)]).buffer), Buffer.from(s)]);
  const u32 = (n) => Buffer.from(new Uint32Array([n]).buffer);
  const u64 = (n) => Buffer.from(new BigUint64Array([BigInt(n)]).buffer);
  const key = (name, value) => Buffer.concat([text(name), u32(8), text(value)]);
  const tensor = (side, rows, columns, at) => Buffer.concat([
    text(`blk.0.attn_q.weight.lora_${side}`), u32(2), u64(columns), u64(rows), u32(0), u64(at),
  ]);
  const head = Buffer.concat([
    Buffer.from('GGUF'), u32(3), u64(2), u64(4), key('general.type', 'adapter'),
    key('general.architecture', 'gemma4'), key('adapter.type', 'lora'),
    text('adapter.lora.alpha'), u32(6), Buffer.from(new Float32Array([4]).buffer),
    tensor('a', 2, 256, 0), tensor('b', 256, 2, 2048),
  ]);
  const bytes =
    Buffer.concat([head, Buffer.alloc((32 - (head.length % 32)) % 32), Buffer.alloc(4096)]);
  const { url } = serve({ data: bytes });
  const kept = await inTab(
    tab,
    async ({ store }, u) =>
      store.importFile(new File([await (await fetch(u)).arrayBuffer()], 'mine.gguf')),
    url,
  );
  same([kept.name, kept.kind], ['mine:latest', 'adapter']);
  const found = await inTab(tab, ({ store }) => store.resolve('mine'));
  same(
    [found.kind, found.model, found.adapters.length, found.store.config],
    ['adapter', [], 1, undefined],
    'Ollama’s description is not taken for PEFT’s',
  );
  equal((await inTab(tab, ({ store }) => store.rename('mine', 'yours'))).name, 'yours:latest');
  same((await inTab(tab, ({ store }) => store.list())).map((m) => m.name), ['yours:latest']);
  equal(await readBack(tab, 'yours'), sha(bytes));
  await inTab(
    tab,
    async ({ store }, u) =>
      store.importFile(new File([await (await fetch(u)).arrayBuffer()], 'other.gguf')),
    url,
  );
  await rejects(
    inTab(tab, ({ store }) => store.rename('other', 'Yours')), /already a model named Yours:latest/,
  );
  await rejects(inTab(tab, ({ store }) => store.rename('nobody', 'somebody')), (e) =>
    e.kind === 'not-found');
});

fresh('a model and an adapter become a new model, or a file for others; '
  + 'one that is stopped leaves nothing', async () => {
  const { bytes, config } = peftAdapter(Float32Array.from({ length: 1024 }, (_, i) => Math.sin(i)));
  const { url } = serve({ data: bytes }), pieces = [];
  await Engine.merge(
    'models/tiny.q8_0.gguf',
    { source: bytes, config, scale: 0.5 },
    { to: new WritableStream({ write: (piece) => void pieces.push(piece) }) },
  );
  const wanted = sha(Buffer.concat(pieces));
  ok(wanted !== sha(tiny));
  await pull(tab, serve({}).url, { name: 'base' });
  await inTab(tab, async ({ store, kept }, [u, text]) => {
    await store.importFile(
      new File([await (await fetch(u)).arrayBuffer()], 'adapter_model.safetensors'),
      { name: 'lora', config: text },
    );
    const { model } = await store.resolve('base');
    const { adapters: [source], store: { config } } = await store.resolve('lora');
    kept.from = { model: { sources: model }, adapter: { source, config, scale: 0.5 } };
  }, [url, config]);
  await rejects(
    inTab(tab, ({ store, kept }) => store.merge(kept.from, { name: 'base' })),
    /already a model named base:latest/,
  );
  await rejects(inTab(tab, ({ store, kept }) => {
    const stop = new AbortController();
    return store.merge(kept.from, {
      name: 'never', signal: stop.signal, onProgress: () => stop.abort(),
    });
  }), { name: 'AbortError' });
  same(await folder(tab, 'partial'), {});
  const merged = await begin(tab, ({ store, kept }, _, tell) =>
    store.merge(kept.from, { name: 'merged', onProgress: tell }));
  const { name, kind, digest, size } = await merged.end();
  same([name, kind, digest, size > tiny.length], ['merged:latest', 'model', wanted, true]);
  ok((await merged.news()).every((p) =>
    p.phase === 'merge' && p.total === Buffer.concat(pieces).length));
  equal(await readBack(tab, 'merged'), wanted);
  const exported = await inTab(tab, async ({ store, kept, core: c, sha256 }) =>
    sha256(c, new Uint8Array(await (await store.mergeFile(kept.from)).arrayBuffer())));
  equal(exported, wanted);
  await inTab(tab, ({ store }) => store.collect(-1));
  ok(
    Object.keys(await folder(tab, 'partial')).some((key) => key.startsWith('export-')),
    'while its maker lives',
  );
  await tab.close();
  tab = await openTab();
  await inTab(tab, ({ store }) => store.collect(-1));
  same(await folder(tab, 'partial'), {});
  same((await inTab(tab, ({ store }) => store.list())).map((m) => m.name), [
    'base:latest', 'lora:latest', 'merged:latest',
  ]);
});

fresh('a picked Ollama folder is read in place, under every form of a name and never outside',
    async () => {
  const text = (file) => fs.readFileSync(file, 'utf8');
  const manifest = text(`${disk}/manifests/registry.ollama.ai/library/tiny/latest`);
  const { layers, config } = JSON.parse(manifest);
  const small = [config, ...layers.slice(1)].map((l) =>
    [l.digest.replace(':', '-'), text(`${disk}/blobs/${l.digest.replace(':', '-')}`)]);
  const bad = {
    ...JSON.parse(manifest), layers: [{ ...layers[0], digest: 'sha256:../../../../secret' }],
  };
  const gone = {
    ...JSON.parse(manifest), layers: [{ ...layers[0], digest: `sha256:${'0'.repeat(64)}` }],
  };
  const half = { ...JSON.parse(manifest), layers: [{ ...layers[0], size: layers[0].size + 1 }] };
  const result = await inTab(tab, async ({ FolderStore, store, core: c, openSource, kept }, a) => {
    const picked =
      await (await navigator.storage.getDirectory()).getDirectoryHandle('home', { create: true });
    const put = async (path, bytes) => {
      const names = path.split('/');
      let at = picked;
      for (const part of names.slice(0, -1))
        at = await at.getDirectoryHandle(part, { create: true });
      const file =
        await (await at.getFileHandle(names.at(-1), { create: true })).createSyncAccessHandle();
      file.write(typeof bytes === 'string' ? new TextEncoder().encode(bytes) : bytes);
      file.close();
    };
    const why = await FolderStore.open(c, picked).catch((e) => e.message);
    const bytes = new Uint8Array(await (await fetch(a.url)).arrayBuffer());
    await put(`models/blobs/sha256-${a.digest}`, bytes);
    for (const [name, content] of a.small) await put(`models/blobs/${name}`, content);
    const registry = 'models/manifests/registry.ollama.ai/library';
    for (const [place, content] of [
      [`${registry}/gemma4/e2b`, a.manifest], [`${registry}/Bad/latest`, a.bad],
      [`${registry}/gone/latest`, a.gone], [`${registry}/half/latest`, a.half],
      [`${registry}/rubbish/latest`, '{'], ['models/manifests/hf.co/Org/Repo/Q8_0', a.manifest],
      [`${registry}/.hidden/latest`, a.manifest], ['models/manifests/stray', 'x'],
    ])
      await put(place, content);
    await store.addFolder(picked);
    await store.addFolder(picked);
    kept.folder = await FolderStore.open(c, (await store.picked())[0]);
    const names = {};
    for (const name of [
      'gemma4:e2b', 'GEMMA4:E2B', 'library/gemma4:e2b',
      'https://registry.ollama.ai/library/gemma4:e2b', 'hf.co/org/repo:q8_0', 'gemma4', 'bad',
      'gone', 'half', 'rubbish', '../secret', 'a/../b', '',
    ])
      names[name] = await kept.folder.resolve(name).then(async (m) => {
        const source = await openSource(m.model[0]);
        const end = new Uint8Array(8);
        source.read(source.size - 8, end);
        return [m.name, m.model[0].kind, source.size, [...end].join()];
      }, (e) => e.message);
    return { why, list: await kept.folder.list(), folders: (await store.picked()).length, names };
  },
  {
    url: serve({}).url, digest: sha(tiny), manifest, bad: JSON.stringify(bad),
    gone: JSON.stringify(gone), half: JSON.stringify(half), small,
  });
  equal(result.why, 'home is not an Ollama store: it has no folder "manifests"');
  equal(result.folders, 1);
  same(result.list.map((m) => m.name), [
    'gemma4:e2b', 'gone:latest', 'half:latest', 'hf.co/Org/Repo:Q8_0',
  ]);
  const good = ['gemma4:e2b', 'handle', tiny.length, [...tiny.subarray(-8)].join()];
  for (const name of [
    'gemma4:e2b', 'GEMMA4:E2B', 'library/gemma4:e2b',
    'https://registry.ollama.ai/library/gemma4:e2b',
  ])
    same(result.names[name], good, name);
  same(result.names['hf.co/org/repo:q8_0'], ['hf.co/Org/Repo:Q8_0', ...good.slice(1)]);
  equal(result.names.gemma4, 'gemma4:latest is not in the store home/models');
  ok(/no valid sha256 digest/.test(result.names.bad), result.names.bad);
  ok(/is missing in the store/.test(result.names.gone), result.names.gone);
  ok(
    /has 6772384 bytes and should have 6772385; pull it again/.test(result.names.half),
    result.names.half,
  );
  ok(/manifest/.test(result.names.rubbish), result.names.rubbish);
  for (const name of ['../secret', 'a/../b', ''])
    ok(
      typeof result.names[name] === 'string' && !/is not in the store/.test(result.names[name]),
      `"${name}": ${result.names[name]}`,
    );
});

// ---- sources behind addresses ----

fresh('a model behind an address is opened by its ranges, through cut connections', async () => {
  let n = 0;
  const { name, url } =
    serve({ cut: (length) => (n++ % 3 === 0 ? Math.floor(length / 2) : undefined) });
  const got = await inTab(tab, async (
    { openSources, openWithFetches, CpuEngine, openSource, patience, core: c }, u,
  ) => {
    const [source] = await openSources(c, [{ kind: 'url', url: u }], { patience });
    let attempts = 0;
    const engine = await openWithFetches(() => (attempts++, CpuEngine.open(c, [source])));
    const info = engine.info;
    engine.close();
    const bytes = new Uint8Array(100000);
    await source.readAsync(3000001, bytes);
    source.close();
    const memory = await openSource({ kind: 'url', url: u }, { patience, inMemory: true });
    const all = new Uint8Array(memory.size);
    memory.read(0, all);
    return {
      info,
      attempts,
      bytes: [...bytes.subarray(0, 50), bytes.at(-1)],
      digest: [...new Uint8Array(await crypto.subtle.digest('SHA-256', all))],
    };
  }, url);
  same([got.info.n_layer, got.info.n_vocab, got.attempts], [8, 4096, 1]);
  same(got.bytes, [...tiny.subarray(3000001, 3000051), tiny[3000001 + 99999]]);
  equal(Buffer.from(got.digest).toString('hex'), sha(tiny));
  ok(requests(name).length > 3);
});

fresh('an address without ranges, one that changes and one that is closed are clear errors',
    async () => {
  const open = (url) => inTab(
    tab,
    ({ openSource, patience, kept }, u) =>
      openSource({ kind: 'url', url: u }, { patience }).then((s) => ((kept.url = s), s.size)),
    url,
  );
  await rejects(open(serve({ range: false }).url), (e) =>
    e.kind === 'unsupported' && /does not give parts of files \(Range\)/.test(e.message));
  const { url, file } = serve({});
  equal(await open(url), tiny.length);
  file.etag = '"other"';
  const read = () => inTab(tab, ({ kept }) => kept.url.readAsync(5000000, new Uint8Array(10)));
  await rejects(read(), (e) =>
    e.kind === 'io' && /changed on the server while it was read/.test(e.message));
  await inTab(tab, ({ kept }) => kept.url.close());
  await rejects(read(), /is closed/);
  await rejects(
    inTab(
      tab,
      ({ openSource, patience }, u) => openSource({ kind: 'url', url: u, size: 5 }, { patience }),
      serve({}).url,
    ),
    /changed on the server/,
  );
});

fresh('an address that gives no ranges and does not say how long it is can be loaded as '
  + 'a whole, and pulled', async () => {
  const { url } = serve({ range: false, length: false, etag: undefined });
  const got = await inTab(tab, async ({ openSource, patience, store }, u) => {
    const source = await openSource({ kind: 'url', url: u }, { patience, whole: true });
    const bytes = new Uint8Array(50), news = [];
    source.read(3000001, bytes);
    await store.pull(u, {
      name: 'plain', onProgress: (p) => p.phase === 'download' && news.push([p.loaded, p.total]),
    });
    return {
      size: source.size,
      bytes: [...bytes],
      news,
      digest: (await store.list()).find((m) => m.name.startsWith('plain')).digest,
    };
  }, url);
  same([got.size, got.bytes, got.digest], [
    tiny.length, [...tiny.subarray(3000001, 3000051)], sha(tiny),
  ]);
  ok(
    got.news.length > 1 && got.news.every(([loaded, total]) => loaded > 0 && total === 0),
    JSON.stringify(got.news.slice(0, 5)),
  );
});

// ---- from a page ----

fresh('a page has it all through openStore: pull with progress, stop, list, servers, '
  + 'folders, engines by name', async () => {
  const { url, file } = serve({ pause: 20 });
  const got = await tab.evaluate(async ([u, site]) => {
    const { openStore } = await import('/web/engine/dist/index.js');
    const store = openStore(), said = [], changes = [];
    const off = store.onChange(() => changes.push(1));
    const stop = new AbortController();
    const stopped = await store.pull(u, {
      name: 'page',
      signal: stop.signal,
      onProgress: (p) => (said.push(p.phase), p.loaded > 1e6 && stop.abort()),
    }).catch((e) => e.name);
    // the worker has heard of it
    while ((await store.unfinished()).length === 0)
      await new Promise((wait) => setTimeout(wait, 20));
    const [left] = await store.unfinished();
    const model = await store.pull(u, { name: 'page' });
    const list = (await store.list()).map((m) => m.name);
    const there = (await store.server(site).list()).map((m) => m.name);
    const missing = await store.resolve('missing').catch((e) => [e.name, e.kind, e.message]);
    const { models, persisted } = await store.usage();
    const home = await (await navigator.storage.getDirectory()).getDirectoryHandle('bezel');
    // it has Ollama's own layout
    const folder = (await store.folder(home).list()).map((m) => m.name);
    const { freed } = await store.delete('page');
    await new Promise((wait) => setTimeout(wait, 50));
    off();
    store.close();
    const closed = await store.list().catch((e) => e.message);
    return {
      stopped, left: left.loaded, digest: model.digest, list, there, missing, models, persisted,
      folder, freed, changes: changes.length, said, closed,
    };
  }, [url, origin]);
  equal(file.data, tiny);
  same([got.stopped, got.digest, got.list, got.there, got.folder], [
    'AbortError', sha(tiny), ['page:latest'], ['copy:latest', 'moe:latest', 'tiny:latest'],
    ['page:latest'],
  ]);
  same(got.missing, [
    'NotFoundError', 'not-found', 'missing:latest is not in the store of this browser',
  ]);
  ok(
    got.left >= 1e6 && got.models > tiny.length && got.freed > tiny.length && got.changes >= 2
      && got.said.includes('download'),
    JSON.stringify(got),
  );
  equal(got.closed, 'this store was closed');
});

fresh('a folder of plain GGUF files is a store: models, shards as one, adapters; '
  + 'a folder without any is one sentence', async () => {
  const result = await inTab(tab, async ({ openFolder, store, core: c }, url) => {
    const root = await navigator.storage.getDirectory();
    const bytes = new Uint8Array(await (await fetch(url)).arrayBuffer());
    const picked = await root.getDirectoryHandle('downloads', { create: true });
    const why = await openFolder(c, picked).catch((e) => e.message);
    const sub = await picked.getDirectoryHandle('more', { create: true });
    for (const [at, name, content] of [
      [picked, 'Tiny Model.gguf', bytes], [sub, 'other.GGUF', bytes],
      [sub, 'split-00001-of-00002.gguf', bytes], [sub, 'split-00002-of-00002.gguf', bytes],
      [picked, 'notes.txt', bytes], [picked, 'broken.gguf', bytes.subarray(0, 100)],
      [picked, 'mmproj-x.gguf', bytes],
    ]) {
      const file = await (await at.getFileHandle(name, { create: true })).createSyncAccessHandle();
      file.write(content);
      file.close();
    }
    await store.addFolder(picked);
    const folder = await openFolder(c, picked);
    const names = (await folder.list()).map((m) => [m.name, m.kind, m.quantization ?? '']);
    const { model, size } = await folder.resolve('more/split');
    return {
      why,
      names,
      parts: model.map((r) => r.handle.name),
      size,
      gone: await folder.resolve('../secret').catch((e) => e.message),
    };
  }, serve({}).url);
  equal(
    result.why,
    'downloads holds no models: neither an Ollama store (a folder "manifests") nor GGUF files',
  );
  same(result.names, [
    ['Tiny Model', 'model', 'Q8_0'], ['broken', 'model', ''], ['more/other', 'model', 'Q8_0'],
    ['more/split', 'model', 'Q8_0'],
  ]);
  same([result.parts, result.size], [
    ['split-00001-of-00002.gguf', 'split-00002-of-00002.gguf'], 2 * tiny.length,
  ]);
  equal(result.gone, '../secret is not in the folder downloads');
});

// ---- damage ----

/** Change bytes of a model's weights where they lie. */
const flip = (page, name) => inTab(page, async ({ store }, n) => {
  const { model: [ref] } = await store.resolve(n);
  let at = await navigator.storage.getDirectory();
  const parts = ref.path.split('/'), file = parts.pop();
  for (const part of parts) at = await at.getDirectoryHandle(part);
  const out = await (await at.getFileHandle(file)).createSyncAccessHandle();
  out.write(new Uint8Array(400_000).fill(0x5a), { at: 1_000_000 });
  out.close();
}, name);

/** As a load opens it. Says how many bytes were read to find out. */
const openAll = (page, name) => inTab(page, async ({ store, openSources, core: c }, n) => {
  let read = 0;
  const sources = await openSources(c, (await store.resolve(n)).model, {
    intact: n, onProgress: (loaded) => (read = loaded),
  });
  for (const source of sources) source.close();
  return read;
}, name);

const verify = (page, name) => inTab(page, ({ store }, n) => store.verify(n), name);

fresh('a blob is read as a whole once per change of its file, and a damaged one is not used',
    async () => {
  await pull(tab, serve({}).url, { name: 'rot' });
  equal(await openAll(tab, 'rot'), 0, 'what was just verified is not read again');
  await flip(tab, 'rot');
  const damaged = (e) =>
    e.kind === 'format'
      && e.message
        === "rot is damaged in this browser's storage: its bytes are not those that were "
          + "stored; pull it again";
  await rejects(openAll(tab, 'rot'), damaged);
  await rejects(openAll(tab, 'rot'), damaged);
  same(
    (await inTab(tab, ({ store }) => store.list())).map((m) => m.damaged),
    [true],
    'the list says so',
  );
});

fresh('pulling a damaged model repairs it, from an address and from a server, asked or not',
    async () => {
  const { url } = serve({}), from = { server: origin, model: 'tiny' };
  for (const [again, name] of [[url, 'mine'], [from, 'tiny']]) {
    await pull(tab, again, { name });
    await flip(tab, name);
    await pull(tab, again, { name }); // nobody has found out yet
    equal(await readBack(tab, name), sha(tiny));
    await flip(tab, name);
    same(await verify(tab, name), { intact: false, damaged: ['model'] });
    await pull(tab, again, { name });
    equal(await readBack(tab, name), sha(tiny));
    same(await verify(tab, name), { intact: true, damaged: [] });
    equal((await inTab(tab, ({ store }) => store.list())).some((m) => m.damaged), false);
    await inTab(tab, ({ store }, n) => store.delete(n), name);
  }
});

fresh('bytes that change behind the file system are found on request, '
  + 'and a copied file takes the place of a damaged one', async () => {
  const put = () => inTab(
    tab,
    async ({ store }, u) => store.importFile(
      new File([await (await fetch(u)).arrayBuffer()], 'x.gguf'), { name: 'copied' },
    ),
    serve({}).url,
  );
  await put();
  await rejects(put(), /already a model named copied/);
  await flip(tab, 'copied');
  equal((await verify(tab, 'copied')).intact, false);
  await put();
  same(await verify(tab, 'copied'), { intact: true, damaged: [] });
  await rejects(verify(tab, 'nobody'), /nobody:latest is not in the store/);
});

test('a store on disk is verified on request', async () => {
  same(await onDisk.verify('tiny'), { intact: true, damaged: [] });
  const { model: [{ path: blob }] } = await onDisk.resolve('tiny'), whole = fs.readFileSync(blob);
  const bad = Buffer.from(whole), put = (bytes) => {
    fs.rmSync(blob); // a hard link to the shipped model, which other tests read meanwhile
    fs.writeFileSync(blob, bytes);
  };
  bad[bad.length >> 1] ^= 1;
  put(bad);
  same(await onDisk.verify('tiny'), { intact: false, damaged: ['model'] });
  put(whole);
});

// ---- in Node ----

test('the machine\'s store on disk lists and resolves, and links do not lead out of it',
    async () => {
  same((await onDisk.list()).map((m) => m.name), ['copy:latest', 'moe:latest', 'tiny:latest']);
  const found = await onDisk.resolve('TINY');
  same([found.name, found.model[0].kind, found.digest, found.size > tiny.length], [
    'tiny:latest', 'path', sha(tiny), true,
  ]);
  fs.mkdirSync(`${disk}/manifests/registry.ollama.ai/library/link`, { recursive: true });
  fs.writeFileSync('build/tmp/outside', '{"layers":[]}');
  fs.symlinkSync(
    '../../../../../outside', `${disk}/manifests/registry.ollama.ai/library/link/latest`,
  );
  await rejects(onDisk.resolve('link'), /is a link that leads out of the store/);
  fs.symlinkSync('/', `${disk}/manifests/registry.ollama.ai/library/away`);
  equal((await onDisk.list()).length, 3);
  await rejects(
    async () => DiskStore.open(core, 'tests'),
    /tests is not an Ollama store: it has no directory "manifests"/,
  );
});

test('a part of a file that has come whole is no aborted request', async () => {
  const real = globalThis.fetch, ends = [];
  let reads = 0;
  // A body whose end is seen only by who asks for it.
  globalThis.fetch = async (url, options) => {
    const answer = await real(url, options), reader = answer.body.getReader();
    options.signal.addEventListener('abort', () => ends.push(url));
    const pull = async (to) => {
      const { done: isEnd, value } = await reader.read();
      if (isEnd) reads++, to.close();
      else to.enqueue(value);
    };
    return new Response(new ReadableStream({ pull }, { highWaterMark: 0 }), answer);
  };
  try {
    const source = await openSource({ kind: 'url', url: serve({}).url });
    const some = new Uint8Array(1000);
    await source.readAsync(5 * MB, some);
    source.close();
    ok(Buffer.from(some).equals(tiny.subarray(5 * MB, 5 * MB + 1000)));
    equal(reads, 2);
    same(ends, [], 'nothing is aborted that was read to its end');
  } finally {
    globalThis.fetch = real;
  }
});

test('a server is a store in Node too', async () => {
  const store = new ServerStore(core, `${origin}/`);
  equal((await store.resolve('moe')).digest, sha(other));
  await rejects(new ServerStore(core, `${origin}/f`, { patience: { tries: 1 } }).list(), (e) =>
    e.kind === 'not-found');
});

test('names and manifests of random bytes are read or refused, and never a path out of the store',
    async () => {
  const random = (n) => crypto.randomBytes(n);
  const seeds = [
    'gemma4:e2b', 'https://host.example:80/name-space/model:tag',
    fs.readFileSync(`${disk}/manifests/registry.ollama.ai/library/tiny/latest`, 'utf8'),
  ];
  const letters = '/\\.:-_@%aZ09\0 \u00e4{}[]",';
  let read = 0;
  for (let i = 0; i < 4000; i++) {
    const seed = [...seeds[i % 3]];
    for (let k = 0; k < 1 + (i % 5); k++)
      seed.splice(
        random(2).readUInt16LE() % (seed.length + 1),
        random(1)[0] % 3,
        letters[random(1)[0] % letters.length],
      );
    const text = i % 7 === 0 ? random(40).toString('latin1') : seed.join('');
    try {
      if (i % 3 === 2) {
        for (const layer of parseManifest(core, text))
          ok(/^[0-9a-fA-F]{64}$/.test(layer.digest) && layer.size >= 0, text);
      } else {
        const { host, namespace, model, tag } = parseName(core, text);
        for (const part of [host, namespace, model, tag])
          ok(/^[A-Za-z0-9_][A-Za-z0-9_.:-]*$/.test(part) && part !== '..', text);
      }
      read++;
    } catch (e) {
      ok(e instanceof BezelError, e.stack);
    }
  }
  ok(read > 100);
});

test('the pages have nothing to complain about', () => same(complaints, []));

try {
  await done(process.argv[2]);
} finally {
  await close();
  server.close();
}
