// store_fixture - what the tests of the store share: a store on disk, a server that fails as it is
// told to, and tabs of Chromium whose workers have the store.
import { execFileSync } from 'node:child_process';
import crypto from 'node:crypto';
import fs from 'node:fs';
import path from 'node:path';

import { Core, loadWasm } from '../../web/engine/dist/core.js';
import { DiskStore } from '../../web/engine/dist/store/disk_store.js';
import { badServer } from './bad_server.mjs';
import { done, equal, same, test } from './check.mjs';
import { openChromium } from './playwright.mjs';

export const sha = (data) => crypto.createHash('sha256').update(data).digest('hex');
export const tiny = fs.readFileSync('models/tiny.q8_0.gguf');
export const other = fs.readFileSync('models/tiny-moe.q8_0.gguf');
export const MB = 1 << 20;

// ---- a store on disk, behind a server as `bezel serve` is ----

export const disk = `build/tmp/${path.basename(process.argv[1], '.mjs')}`; // tests run side by side
fs.rmSync(disk, { recursive: true, force: true });
fs.mkdirSync('build/tmp', { recursive: true });
execFileSync('python3', [
  'tools/tiny/store.py', disk, 'tiny=models/tiny.q8_0.gguf', 'copy=models/tiny.q8_0.gguf',
  'moe=models/tiny-moe.q8_0.gguf',
]);
export const core = await Core.load(await loadWasm());
export const onDisk = DiskStore.open(core, disk);
export const blobs = {}; // faults by digest
export const server = await badServer({
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
export const origin = server.url;

// ---- tabs ----

export const { context, close } = await openChromium();
export const complaints = [];

export async function openTab() {
  const page = await context.newPage();
  page.on('pageerror', (e) => complaints.push(e.message));
  await page.goto(`${origin}/tests/web/store.html`);
  equal(await page.evaluate(() => window.ready), '');
  return page;
}

/** Run fn(lib, args, tell) in the tab's worker; its failure is an Error with name, kind and the
 *  news. */
export async function begin(page, fn, args) {
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
export const inTab = async (page, fn, args) => (await begin(page, fn, args)).end();

export async function until(condition, seconds = 60) {
  for (const end = Date.now() + 1000 * seconds; !(await condition());) {
    if (Date.now() > end) throw new Error(`waited ${seconds} s in vain for: ${condition}`);
    await new Promise((wait) => setTimeout(wait, 20));
  }
}

/** Forget all that is stored, as a new visitor has it. */
export const empty = (page) => inTab(page, async ({ store, handles }) => {
  const root = await navigator.storage.getDirectory();
  for await (const name of root.keys())
    if (name !== 'bezel') await root.removeEntry(name, { recursive: true });
  for (const { name } of await store.list()) await store.delete(name);
  await store.collect(-1);
  for (const { key } of await handles.all('folders')) await handles.remove('folders', key);
});

export const pull = (page, from, options = {}) =>
  inTab(page, ({ store }, [f, o]) => store.pull(f, o), [from, options]);
export const beginPull =
  (page, from, options = {}) => begin(page, ({ store, kept }, [f, o], tell) => {
  kept.stop = new AbortController();
  return store.pull(f, { ...o, onProgress: tell, signal: kept.stop.signal });
}, [from, options]);

/** Names and sizes of what lies in a folder of the store. */
export const folder = (page, name) => inTab(page, async (_, n) => {
  const at = await (await (await navigator.storage.getDirectory()).getDirectoryHandle('bezel'))
    .getDirectoryHandle(n);
  const all = {};
  for await (const file of at.values()) all[file.name] = (await file.getFile()).size;
  return all;
}, name);

/** The digest of a model's weights as the engine would read them. */
export const readBack =
  (page, name) => inTab(page, async ({ store, openSource, Sha256, core: c }, n) => {
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

export const requests = (name) => server.log.filter((e) => e.path === name);
export const sent = (name) => requests(name).reduce((n, e) => n + e.sent, 0);
export let files = 0;
/** A file on the server with a name of its own. */
export function serve(file) {
  const name = `model-${++files}.gguf`;
  server.files[name] = { data: tiny, etag: `"${files}"`, ...file };
  return { name, url: `${origin}/f/${name}`, file: server.files[name] };
}

export let tab = await openTab();
/** The next tests have a tab of their own. */
export async function reopen() {
  tab = await openTab();
}
export const fresh = (sentence, fn) => test(sentence, async () => {
  await empty(tab);
  await fn();
});

/** Runs the tests; a word on the command line picks some. */
export async function finish() {
  test('the pages have nothing to complain about', () => same(complaints, []));
  try {
    await done(process.argv[2]);
  } finally {
    await close();
    server.close();
  }
}
