// The store of models, in Chromium with a server that fails in every way: downloads, room, tabs,
// deleting.
//
//   node tests/web/test_store.mjs
import { openSource } from '../../web/engine/dist/core.js';
import { equal, ok, rejects, same } from './check.mjs';
import {
  MB, beginPull, context, core, disk, finish, folder, fresh, inTab, openTab, origin, other, pull,
  readBack, requests, sent, serve, server, sha, tab, tiny, until,
} from './store_fixture.mjs';

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
        && /^6 tries in a row to read 127.* brought nothing: the server says 503/.test(e.message),
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
  await rejects(pull(tab, url, { name: 'rot', digest: sha(tiny) }), /brought nothing/);
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
  const { name, url } =
    serve({ pause: 10, cut: () => 2 * MB, status: () => (sent(name) ? 503 : 0) });
  await rejects(pull(tab, url, { name: 'old' }), /brought nothing/);
  await inTab(tab, ({ store }) => store.collect());
  equal((await inTab(tab, ({ store }) => store.unfinished())).length, 1);
  const { partial, models, quota: all, persisted } = await inTab(tab, ({ store }) => store.usage());
  ok(partial > 0 && models === 0 && all > 0 && typeof persisted === 'boolean');
  await inTab(tab, ({ store }) => store.collect(-1));
  same(await folder(tab, 'partial'), {});
});

await finish();
