// browser - Chromium on its software adapter, with everything watched that must not happen: errors
// in the console, exceptions, requests to other origins.
import fs from 'node:fs';
import os from 'node:os';
import path from 'node:path';
import { same } from '../check.mjs';
import { WINDOW } from '../../../web/engine/dist/engine/rpc.js';
import { chromium } from '../../../web/app/node_modules/playwright-core/index.mjs';

const base = [
  '--no-sandbox', '--no-first-run', '--disable-background-networking',
  '--disable-component-update', '--disable-sync',
];
// By the second name another machine calls this one, over plain HTTP.
const own = new Set(['127.0.0.1', 'box.test']);
base.push('--host-resolver-rules=MAP box.test 127.0.0.1');
// Without the last flag the browser ends itself after a handful of crashes of its GPU process.
const gpu = [
  '--enable-unsafe-webgpu', '--use-webgpu-adapter=swiftshader', '--ignore-gpu-blocklist',
  '--disable-gpu-process-crash-limit',
];

/** A fresh profile each; `noGpu`: a browser without WebGPU; `refuse`: one whose owner lets no
 *  site keep anything. */
export async function openBrowser({
  noGpu = false, refuse = false, viewport = { width: 1280, height: 800 }, ...options
} = {}) {
  const profile = fs.mkdtempSync(path.join(os.tmpdir(), 'bezel-app-'));
  if (refuse) {
    fs.mkdirSync(`${profile}/Default`);
    fs.writeFileSync(
      `${profile}/Default/Preferences`,
      JSON.stringify({ profile: { default_content_setting_values: { cookies: 2 } } }),
    );
  }
  const context = await chromium.launchPersistentContext(profile, {
    executablePath: process.env.CHROMIUM ?? '/usr/bin/chromium',
    headless: true,
    args: [...base, ...(noGpu ? ['--disable-features=WebGPU', '--disable-gpu'] : gpu)],
    viewport,
    permissions: ['clipboard-read', 'clipboard-write'],
    ...options,
  });
  context.setDefaultTimeout(60_000);
  // no test can answer its dialog; the other way to pick is there
  await context.addInitScript(() => delete window.showOpenFilePicker);
  const watched = { errors: [], foreign: [] };
  const watch = (page) => {
    page.on('console', (message) =>
      message.type() === 'error' && watched.errors.push(message.text()));
    page.on('pageerror', (error) => watched.errors.push(String(error)));
  };
  context.pages().forEach(watch);
  context.on('page', watch);
  context.on('request', (request) => {
    const { protocol, hostname } = new URL(request.url());
    if (protocol.startsWith('http') && !own.has(hostname)) watched.foreign.push(request.url());
  });
  return {
    context,
    watched,
    page: context.pages()[0] ?? (await context.newPage()),
    async close() {
      await context.close();
      fs.rmSync(profile, { recursive: true, force: true, maxRetries: 5 });
    },
  };
}

/** Until the model can be asked. */
export const ready = (page, name = 'tiny') => page.locator('.model-chip', {
  has: page.locator('.dot.ready'),
})
  .filter({ hasText: name })
  .waitFor();

export const composer = (page) => page.getByLabel('Message', { exact: true });

/** Until an async function says something true in the page; page.waitForFunction takes any promise
 *  for that. */
export async function until(page, fn, arg) {
  for (const end = performance.now() + 60_000; performance.now() < end;) {
    if (await page.evaluate(fn, arg)) return;
    await page.waitForTimeout(100);
  }
  throw new Error(`not within a minute: ${fn}`);
}

/** Send a message and wait until its answer is complete; says the answer's text. */
export async function ask(page, text) {
  // a conversation that is still being read has none
  await page.locator('.messages:not([aria-busy=true])').waitFor();
  const before = await page.getByRole('article', { name: 'Answer' }).count();
  await composer(page).fill(text);
  await page.keyboard.press('Enter');
  await page.getByRole('article', { name: 'Answer' }).nth(before).waitFor();
  return answered(page);
}

/** The last answer, once it is complete. */
export async function answered(page) {
  const last = page.getByRole('article', { name: 'Answer' }).last();
  await last.locator('.stats', { hasText: 'first token' }).waitFor();
  await page.getByRole('button', { name: 'Send' }).waitFor();
  return (await last.locator('.markdown').last().innerText()).trim();
}

/** A page whose owner wants the likeliest words, with its model loaded. */
export const onCpu = (site, options) => openWith(site, 'cpu', options);
export const onGpu = (site, options) => openWith(site, 'gpu', options);

async function openWith(site, backend, options) {
  const b = await openBrowser(options);
  await b.context.addInitScript((backend) => {
    if (location.protocol === 'http:' && !localStorage.getItem('bezel.prefs'))
      localStorage.setItem('bezel.prefs', JSON.stringify({ backend, chat: { temperature: 0 } }));
  }, backend);
  await b.page.goto(site.url);
  await ready(b.page);
  return b;
}

/** From now on, until the page is loaded again, an answer waits after so many pieces (words, or
 *  steps of a canvas), however fast the model is: its reader asks for no more of them. 0: it waits
 *  while the prompt is read. */
export const pauseAnswers = (page, pieces) => page.evaluate(([pieces, window]) => {
  const { postMessage } = Worker.prototype, isNew = globalThis.pauseAfter === undefined;
  globalThis.pauseAfter = pieces;
  if (!isNew) return;
  Worker.prototype.postMessage = function (message, ...rest) {
    if (message?.rpc === 'more') return;
    postMessage.call(this, message, ...rest);
    if (message?.rpc !== 'ask' || !message.stream) return;
    const { id } = message, more = (n) => postMessage.call(this, { rpc: 'more', id, n });
    more(2 + globalThis.pauseAfter - window); // two say the role and how far the prompt is read
    let read = 0;
    this.addEventListener('message', ({ data }) => {
      if (data.id === id && data.value?.prompt_progress && read++) more(1);
    });
    globalThis.morePieces = more;
  };
}, [pieces, WINDOW]);

/** Of the answer that waits, so many pieces more. */
export const morePieces = (page, pieces) => page.evaluate((n) => globalThis.morePieces(n), pieces);

const axe = fs.readFileSync('web/app/node_modules/axe-core/axe.min.js', 'utf8');

/** What axe finds on the page as it is: nothing. Evaluate is not bound by the page's policy; a
 *  script tag would be. */
export async function checkAxe(page, where) {
  if (!(await page.evaluate(() => 'axe' in globalThis))) await page.evaluate(axe);
  const found = await page.evaluate(async () => {
    const { violations } = await globalThis.axe.run(document, { resultTypes: ['violations'] });
    return violations.map((v) =>
      `${v.id}: ${v.nodes.map((n) => n.html.slice(0, 120)).join(' | ')}`);
  });
  same(found, [], where);
}

/** Do it, and hold the page to what is always true. */
export async function holds(opening, act) {
  const b = await opening;
  try {
    await act(b.page, b);
    same(b.watched.errors, [], 'the console is free of errors');
    same(b.watched.foreign, [], 'no request leaves the origin');
  } finally {
    await b.close();
  }
}
