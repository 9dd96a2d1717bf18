// The store of models: damage that is found in Chromium, and the store on disk in Node.
//
//   node tests/web/test_store_damage.mjs
import crypto from 'node:crypto';
import fs from 'node:fs';

import { BezelError, openSource, ServerStore } from '../../web/engine/dist/core.js';
import { DiskStore } from '../../web/engine/dist/store/disk_store.js';
import { parseManifest, parseName } from '../../web/engine/dist/store/manifest.js';
import { equal, ok, rejects, same, test } from './check.mjs';
import {
  MB, core, disk, finish, fresh, inTab, onDisk, origin, other, pull, readBack, serve, server, sha,
  tab, tiny,
} from './store_fixture.mjs';

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

await finish();
