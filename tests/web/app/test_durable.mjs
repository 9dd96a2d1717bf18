// The history against accidents, in Chromium: a first visit cut short, damaged files, refused
// storage, other tabs, and a reset that must work whatever became of it. node
// tests/web/app/test_durable.mjs [--only WORDS]
import { done, equal, ok, same, test } from '../check.mjs';
import { ask, composer, holds, onCpu, openBrowser, ready, until } from './browser.mjs';
import { archive } from './sample.mjs';
import { openSite } from './site.mjs';

const sites = [];
/** Another origin each: one browser, and files of nobody. */
async function freshSite() {
  const site = await openSite();
  site.routes.set(
    '/blank',
    (_, response) => response.writeHead(200, { 'content-type': 'text/html' }).end(
      '<!doctype html><link rel=icon href=data:,><title>blank</title>',
    ),
  );
  sites.push(site);
  return site;
}

/** A browser in which no model loads by itself: only the history is looked at. `worker`: a
 *  script that runs before the storage worker's. */
async function quiet({ worker } = {}) {
  const b = await openBrowser({ serviceWorkers: 'block' });
  await b.context.addInitScript(() =>
    location.protocol === 'http:'
      && localStorage.setItem('bezel.prefs', JSON.stringify({ autoLoad: false, backend: 'cpu' })));
  if (worker) await replaceWorker(b.context, (script) => `${worker}\n${script}`);
  return b;
}

const workerFile = /assets\/worker-[^/]*\.js$/;
async function replaceWorker(context, change) {
  await context.route(workerFile, async (route) => {
    const response = await route.fetch(), script = await response.text();
    // the engine has a worker too
    await route.fulfill({
      response, body: script.includes('bezel-history') ? change(script) : script,
    });
  });
}

const titles = (page) => page.locator('.history li a').allInnerTexts();
const listed = (page, n = 5) =>
  page.waitForFunction((n) => document.querySelectorAll('.history li a').length === n, n);

async function importSample(page, site) {
  await page.goto(`${site.url}#/settings`);
  const chooser = page.waitForEvent('filechooser');
  await page.getByRole('button', { name: 'Import', exact: true }).click();
  await (await chooser).setFiles({
    name: 'x.json', mimeType: 'application/json', buffer: Buffer.from(JSON.stringify(archive())),
  });
  await page.getByText('Imported 5 conversations').waitFor();
}

/** On a page of the same origin that has nothing open. */
async function onBlank(page, site, work, arg) {
  await page.goto(`${site.url}blank`);
  return page.evaluate(work, arg);
}

/** Overwrite bytes of the pool's largest file, which is the history. */
async function damage({ from, to, zeros = false }) {
  const root = await navigator.storage.getDirectory();
  const pool = await (await (await root.getDirectoryHandle('bezel-app'))
    .getDirectoryHandle('history')).getDirectoryHandle('.opaque');
  let largest;
  for await (const handle of pool.values()) {
    const { size } = await handle.getFile();
    if (!largest || size > largest.size) largest = { handle, size };
  }
  const out = await largest.handle.createWritable({ keepExistingData: true });
  const end = Math.min(to, largest.size);
  const noise = new Uint8Array(end - from).map((_, i) => (zeros ? 0 : (i * 2654435761) >>> 13));
  await out.write({ type: 'write', position: from, data: noise });
  await out.close();
  return largest.size;
}

/** The history works: it takes conversations and has them after a reload. */
async function isUsable(page, site) {
  await importSample(page, site);
  await page.reload();
  await listed(page);
}

const browsers = { plain: await quiet() };
const inBrowser = (act) =>
  holds(Promise.resolve({ ...browsers.plain, close: async () => {} }), act);

test('a first visit cut short at any moment leaves a history that works',
    () => inBrowser(async (page) => {
  for (const moment of [50, 120, 200, 350]) {
    const site = await freshSite();
    await page.goto(site.url, { waitUntil: 'commit' });
    await page.waitForTimeout(moment);
    await page.reload({ waitUntil: 'commit' });
    await page.waitForTimeout(moment / 2);
    await isUsable(page, site);
  }
}));

test('a pool with too few files, and with empty ones, is filled up',
    () => inBrowser(async (page) => {
  const site = await freshSite();
  await onBlank(page, site, async () => {
    const root = await navigator.storage.getDirectory();
    let at = root;
    for (const name of ['bezel-app', 'history', '.opaque'])
      at = await at.getDirectoryHandle(name, { create: true });
    await at.getFileHandle('only', { create: true });
  });
  await isUsable(page, site);
}));

test('a history damaged anywhere is set aside, and what can be read of it is there',
    () => inBrowser(async (page) => {
  // The pool's own head, the same as a power cut leaves it, SQLite's, the first page, and pages
  // that are met only when a conversation is read.
  for (const { from, to, left, zeros } of [
    { from: 0, to: 600, left: 5 }, { from: 0, to: 4096, zeros: true, left: 5 },
    { from: 4096, to: 4112, left: 5 }, { from: 4096, to: 4096 + 8192, left: 5 },
    { from: 4096 + 5 * 8192, to: 4096 + 12 * 8192, left: 0 },
  ]) {
    const site = await freshSite();
    await importSample(page, site);
    await onBlank(page, site, damage, { from, to, zeros });
    await page.goto(site.url);
    // the index is read, wherever the damage is
    await page.getByLabel('Search conversations').fill('guitar');
    await page.getByText(/^The history in this browser was damaged: /).waitFor();
    await page.getByLabel('Search conversations').fill('');
    if (left) await listed(page, left);
    equal((await titles(page)).length >= left, true);
    const aside = await page.evaluate(async () => {
      const names = [];
      for await (const name of (await (await (await navigator.storage.getDirectory())
        .getDirectoryHandle('bezel-app')).getDirectoryHandle('damaged')).keys())
        names.push(name);
      return names.length;
    });
    equal(aside, 1, 'the damaged file is kept beside');
    await page.reload();
    await page.locator('.history').waitFor();
    await page.waitForTimeout(300);
    equal(await page.getByText(/was damaged/).count(), 0, 'it is said once');
    await page.goto(`${site.url}#/settings`);
  }
}));

/** One visit with a script before the storage worker's. */
async function withFault(context, worker, visit) {
  await replaceWorker(context, (script) => `${worker}\n${script}`);
  await visit();
  await context.unroute(workerFile);
}

test('a rescue that is cut short goes on at the next visit',
    () => inBrowser(async (page, { context }) => {
  const site = await freshSite();
  await importSample(page, site);
  await onBlank(page, site, damage, { from: 4096, to: 4112 });
  const fullAfterMove = `const { move } = FileSystemFileHandle.prototype;
    FileSystemFileHandle.prototype.move = async function (...to) {
      await move.apply(this, to);
      FileSystemSyncAccessHandle.prototype.write = () => {
        throw new DOMException('full', 'QuotaExceededError');
      };
    };`;
  await withFault(context, fullAfterMove, async () => {
    await page.goto(site.url);
    await page.getByText('no lasting storage').first().waitFor();
    await page.goto(`${site.url}blank`);
  });
  await page.goto(site.url);
  await page.getByText(
    'The history in this browser was damaged: 5 conversations could be read',
  ).waitFor();
  await listed(page);
  await page.reload();
  await listed(page);
}));

/** Change texts of the history's schema, which is one of a later version then. */
async function rewrite(changes) {
  const root = await navigator.storage.getDirectory();
  const pool = await (await (await root.getDirectoryHandle('bezel-app'))
    .getDirectoryHandle('history')).getDirectoryHandle('.opaque');
  let largest;
  for await (const handle of pool.values()) {
    const file = await handle.getFile();
    if (!largest || file.size > largest.file.size) largest = { handle, file };
  }
  const bytes = new Uint8Array(await largest.file.arrayBuffer());
  const text = new TextDecoder('latin1').decode(bytes);
  for (const [from, to] of changes) bytes.set(new TextEncoder().encode(to), text.indexOf(from));
  new DataView(bytes.buffer).setUint32(4096 + 60, 9); // PRAGMA user_version
  const out = await largest.handle.createWritable();
  await out.write(bytes);
  await out.close();
}

const wasSetAside = (page) => page.evaluate(async () => {
  const app = await (await navigator.storage.getDirectory()).getDirectoryHandle('bezel-app');
  for await (const _ of (await app.getDirectoryHandle('damaged', { create: true })).keys())
    return true;
  return false;
});

test('a history of a newer version, and one on a disk that does not answer, are left as they are',
    () => inBrowser(async (page, { context }) => {
  const site = await freshSite();
  await importSample(page, site);
  await page.goto(`${site.url}blank`);
  const unreadable = `const { read } = FileSystemSyncAccessHandle.prototype;
    FileSystemSyncAccessHandle.prototype.read = function (to, options) {
      if (options?.at >= 4096) throw new DOMException('no answer', 'UnknownError');
      return read.call(this, to, options);
    };`;
  await withFault(context, unreadable, async () => {
    await page.goto(site.url);
    await page.getByText('no lasting storage').first().waitFor();
    equal(await wasSetAside(page), false);
    await page.goto(`${site.url}blank`);
  });
  await page.goto(site.url);
  await listed(page);
  await onBlank(page, site, rewrite, [['settings TEXT', 'wishlist TEXT']]);
  await page.goto(site.url);
  await page.getByText('was written by a newer version of this page').first().waitFor();
  equal(await wasSetAside(page), false);
}));

test('everything is reset although the history cannot be read, with another tab open',
    () => inBrowser(async (page, { context }) => {
  const site = await freshSite();
  await importSample(page, site);
  await onBlank(page, site, damage, { from: 4096, to: 1e9 });
  await page.goto(`${site.url}#/settings`);
  const other = await context.newPage();
  await other.goto(site.url);
  await page.getByRole('button', { name: 'Reset everything' }).click();
  await Promise.all([
    page.waitForEvent('load'), other.waitForEvent('load'),
    page.getByRole('button', { name: 'Delete everything' }).click(),
  ]);
  await page.getByText('Conversations are kept here').waitFor();
  await other.getByText('Conversations are kept here').waitFor();
  equal(await other.getByText(/was damaged/).count(), 0);
  await other.close();
  await isUsable(page, site);
}));

test('a search hit opens at its word, on whatever branch that is', () => inBrowser(async (page) => {
  const site = await freshSite();
  await page.setViewportSize({ width: 1280, height: 500 });
  await importSample(page, site);
  const inView = (word) => page.waitForFunction((w) => {
    const [range] = CSS.highlights.get('found') ?? [];
    const { top = -1, bottom = 1e9 } = range?.getBoundingClientRect() ?? {};
    return range?.toString() === w && top > 0 && bottom < innerHeight;
  }, word);
  for (const word of ['twelfth', 'guitar', '2,349']) {
    await page.getByLabel('Search conversations').fill(word);
    // not those of the search before
    await page.locator('.history mark', { hasText: word.split(',')[0] }).first().waitFor();
    await page.locator('.history li a').first().click();
    await inView(word.split(',')[0]);
  }
  await page.setViewportSize({ width: 1280, height: 800 });
}));

/** What a browser refuses, as scripts that run before the worker's. */
const refusals = {
  'storage refused':
    'navigator.storage.getDirectory = () => Promise.reject(new DOMException("refused", '
      + '"SecurityError"));',
  'no access handles': 'delete FileSystemFileHandle.prototype.createSyncAccessHandle;',
  'no locks':
    'Object.defineProperty(navigator, "locks", { value: undefined }); '
      + 'navigator.storage.getDirectory = () => Promise.reject(new DOMException("refused", '
      + '"SecurityError"));',
};
for (const [what, worker] of Object.entries(refusals))
  test(`${what}: the history is in memory, one quiet notice says `
    + 'so, and reset works', () => holds(quiet({ worker }), async (page) => {
    const site = await freshSite();
    await page.goto(site.url);
    const notice = page.locator('.notice, [role=status]').filter({ hasText: 'no lasting storage' });
    await notice.first().waitFor();
    await importSample(page, site);
    await listed(page);
    await page.goto(`${site.url}#/c/strings`);
    await page.getByText('twelfth fret').waitFor();
    await page.goto(`${site.url}#/settings`);
    await page.getByRole('button', { name: 'Reset everything' }).click();
    await Promise.all([
      page.waitForEvent('load'), page.getByRole('button', { name: 'Delete everything' }).click(),
    ]);
    await page.locator('.history', { hasText: 'conversations end with the tab' }).waitFor();
  }));

test('what another tab or an import adds to the open conversation is there, and stays',
    async () => {
  const site = await freshSite();
  await holds(onCpu(site), async (page, { context }) => {
    await ask(page, 'What is the capital of France?');
    const other = await context.newPage();
    await other.goto(page.url());
    await ready(other);
    await other.getByRole('article', { name: 'Answer' }).waitFor();
    await ask(page, 'And Japan?');
    await other.getByText('The capital of Japan is Tokyo.').first().waitFor();
    equal(await other.getByText('The page closed before').count(), 0);
    await ask(other, 'And Italy?');
    equal(await other.getByRole('article', { name: 'Answer' }).count(), 3);
    await page.getByText('The capital of Italy is Rome.').first().waitFor();
    equal(await page.getByRole('group', { name: 'Versions' }).count(), 0, 'one path, no branch');
  });
});

test('where the owner lets no site keep anything, the page answers, trains and resets, '
  + 'and says that nothing lasts',
  () => holds(openBrowser({ refuse: true, noGpu: true }), async (page) => {
  const site = await freshSite();
  await page.goto(site.url);
  await page.locator('.notice', { hasText: 'no lasting storage' }).waitFor();
  await ready(page);
  ok(/Paris/.test(await ask(page, 'What is the capital of France?')));
  await page.getByRole('button', { name: 'New conversation' }).click();
  await composer(page).fill('half a thought');
  await page.locator('.history a', { hasText: 'France' }).click();
  await page.getByRole('article', { name: 'Answer' }).waitFor();
  await page.getByRole('button', { name: 'New conversation' }).click();
  await page.getByRole('heading', { name: 'New conversation' }).waitFor();
  equal(await composer(page).inputValue(), 'half a thought', 'a draft lasts as long as the tab');
  await page.goto(`${site.url}#/train`);
  await page.getByRole('button', { name: 'Use a sample' }).click();
  await page.getByText('30 examples,').waitFor();
  equal(await page.locator('.notice.error').count(), 0, 'so far nothing was an error');
  await page.getByRole('button', { name: 'Train', exact: true }).click();
  await page.getByText(/Learning, step [1-9]/).waitFor();
  await page.getByRole('button', { name: 'Cancel' }).click();
  await page.goto(`${site.url}#/settings`);
  await page.getByText('conversations end with the tab').last().waitFor();
  await page.getByRole('button', { name: 'Reset everything' }).click();
  await Promise.all([
    page.waitForEvent('load'), page.getByRole('button', { name: 'Delete everything' }).click(),
  ]);
  await page.locator('.history', { hasText: 'conversations end with the tab' }).waitFor();
}));

test('over plain HTTP, as from another machine, the page works, and says that nothing lasts', () =>
  holds(openBrowser(), async (page) => {
    const url = (await freshSite()).url.replace('127.0.0.1', 'box.test');
    await page.goto(url);
    equal(await page.evaluate(() => isSecureContext), false);
    await page.locator('.notice', { hasText: 'no lasting storage' }).waitFor();
    await ready(page);
    ok(/Paris/.test(await ask(page, 'What is the capital of France?')));
    await page.getByRole('button', { name: 'Answer again' }).click();
    await page.getByText('2/2').waitFor();
    equal(await page.locator('.notice.error').count(), 0);
    await page.getByRole('button', { name: 'Copy the answer' }).click();
    await page.locator('.notice.error', { hasText: 'only over HTTPS or on localhost' }).waitFor();
    await page.goto(`${url}#/train`);
    await page.getByRole('button', { name: 'Use a sample' }).click();
    await page.getByText('30 examples,').waitFor();
    await page.getByRole('button', { name: 'Train', exact: true }).click();
    await page.getByText(/Learning, step [1-9]/).waitFor();
    await page.goto(`${url}#/settings`);
    await page.getByRole('button', { name: 'Reset everything' }).click();
    const loaded = page.waitForEvent('load');
    await page.getByRole('button', { name: 'Delete everything' }).click();
    await loaded;
    await page.locator('.history', { hasText: 'conversations end with the tab' }).waitFor();
  }));

test('an answer does not wait for a history that never answers', async () => {
  const b = await openBrowser({ serviceWorkers: 'block' });
  await b.context.addInitScript(() =>
    location.protocol === 'http:'
      && localStorage.setItem(
        'bezel.prefs', JSON.stringify({ backend: 'cpu', chat: { temperature: 0 } }),
      ));
  await replaceWorker(b.context, () => 'self.onmessage = () => {};');
  await holds(Promise.resolve(b), async (page) => {
    await page.goto((await freshSite()).url);
    await ready(page);
    ok(/Paris/.test(await ask(page, 'What is the capital of France?')));
  });
});

test('a conversation stays in the list although the history opens late', async () => {
  const site = await freshSite(), b = await openBrowser({ serviceWorkers: 'block' });
  await b.context.addInitScript(() =>
    location.protocol === 'http:'
      && localStorage.setItem(
        'bezel.prefs', JSON.stringify({ backend: 'cpu', chat: { temperature: 0 } }),
      ));
  const late = `const { request } = LockManager.prototype;
    LockManager.prototype.request = async function (...all) {
      if (all[0] === 'bezel-history') await new Promise((over) => setTimeout(over, 6000));
      return request.apply(this, all);
    };`;
  await replaceWorker(b.context, (script) => `${late}\n${script}`);
  await holds(Promise.resolve(b), async (page) => {
    await page.goto(site.url);
    await ready(page);
    await ask(page, 'What is the capital of France?');
    await page.evaluate(() => new MutationObserver(() =>
      (globalThis.gone ||=
        document.querySelector('.history .empty')?.textContent.startsWith('Conversations')))
      .observe(document.querySelector('.history'), { childList: true, subtree: true }));
    await page.getByLabel('Search conversations').fill('paris'); // found once the history is there
    await page.locator('.history mark').waitFor();
    await page.getByLabel('Search conversations').fill('');
    await page.waitForTimeout(500); // the list has been read again
    ok(!(await page.evaluate(() => globalThis.gone)), 'never was it away');
    equal((await titles(page)).length, 1);
  });
});

test('a conversation deleted in one tab leaves the other, and stays deleted', async () => {
  const site = await freshSite();
  await holds(onCpu(site), async (page, { context }) => {
    await ask(page, 'What is the capital of France?');
    const other = await context.newPage();
    await other.goto(page.url());
    await other.getByRole('article', { name: 'Answer' }).waitFor();
    await page.getByRole('button', { name: /^Actions for/ }).click();
    await page.getByRole('button', { name: 'Delete' }).click();
    await other.getByText('was deleted in another tab').waitFor();
    await other.getByRole('heading', { name: 'New conversation' }).waitFor();
    await composer(other).waitFor();
    await page.reload();
    await page.getByText('Conversations are kept here').waitFor();
    same(await titles(page), []);
  });
});

test('where files move by folder and name alone, as in WebKit, what was read is kept, twice',
    async () => {
  const site = await freshSite(), b = await openBrowser({ serviceWorkers: 'block' });
  await b.context.addInitScript(() => {
    const prefs = { backend: 'cpu', chat: { temperature: 0 } };
    if (location.protocol === 'http:') localStorage.setItem('bezel.prefs', JSON.stringify(prefs));
  });
  const twoArguments = `const { move } = FileSystemFileHandle.prototype;
    FileSystemFileHandle.prototype.move = async function (...to) {
      if (to.length < 2) throw new TypeError('Not enough arguments');
      return move.apply(this, to);
    };`;
  await replaceWorker(b.context, (script) => `${twoArguments}\n${script}`);
  const isWritten = async (after) => {
    const root = await navigator.storage.getDirectory();
    const app = await root.getDirectoryHandle('bezel-app', { create: true });
    const states = await app.getDirectoryHandle('states', { create: true });
    for await (const [name, handle] of states.entries()) {
      if (name.endsWith('.kv')) return (await handle.getFile()).lastModified > after;
    }
    return false;
  };
  await holds(Promise.resolve(b), async (page) => {
    await page.goto(site.url);
    await ready(page);
    await ask(page, 'What is the capital of France?');
    await until(page, isWritten, 0);
    const begin = Date.now();
    await ask(page, 'And Japan?');
    await until(page, isWritten, begin);
    equal(await page.getByText('Not enough arguments').count(), 0);
  });
});

test('an answer does not wait for a saved state that never comes', async () => {
  const site = await freshSite(), b = await onCpu(site, { serviceWorkers: 'block' });
  await holds(Promise.resolve(b), async (page) => {
    await ask(page, 'What is the capital of France?');
    await page.waitForTimeout(2000); // its state is kept
    const silent =
      `self.addEventListener('message', (e) => e.data?.method === 'state.load' && `
        + 'e.stopImmediatePropagation());';
    await replaceWorker(b.context, (script) => `${silent}\n${script}`);
    await page.reload();
    await ready(page);
    equal(await ask(page, 'And Japan?'), 'The capital of Japan is Tokyo.');
  });
});

await done(process.argv[process.argv.indexOf('--only') + 1 || process.argv.length]);
await browsers.plain.close();
for (const site of sites) await site.close();
