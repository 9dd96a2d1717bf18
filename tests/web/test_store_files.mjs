// The store of models in Chromium: other stores, files and folders of the person's, sources behind
// addresses, and what a page sees of it.
//
//   node tests/web/test_store_files.mjs
import crypto from 'node:crypto';
import fs from 'node:fs';

import { openSource, ServerStore } from '../../web/engine/dist/core.js';
import { Engine } from '../../web/engine/dist/index.js';
import { equal, ok, rejects, same } from './check.mjs';
import {
  MB, begin, beginPull, blobs, core, disk, finish, folder, fresh, inTab, origin, other, pull,
  readBack, reopen, requests, serve, server, sha, tab, tiny,
} from './store_fixture.mjs';

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
  await reopen();
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

await finish();
