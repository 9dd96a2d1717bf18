// Pictures of every view, light and dark, wide and phone: node tests/web/app/screenshots.mjs [build/screenshots]
import fs from 'node:fs';
import { openBrowser, ready } from './browser.mjs';
import { archive } from './sample.mjs';
import { openSite } from './site.mjs';

const out = process.argv[2] ?? 'build/screenshots';
fs.rmSync(out, { recursive: true, force: true });
fs.mkdirSync(out, { recursive: true });
const site = await openSite();
const gb = 1e9;
site.routes.set('/api/tags', (_, response) => response.writeHead(200, { 'content-type': 'application/json' }).end(JSON.stringify({ models: [
  { name: 'gemma4:e2b', size: 3.2 * gb, digest: 'sha256:00', details: { family: 'gemma4', parameter_size: '5.1B', quantization_level: 'Q4_K_M' } },
  { name: 'gemma4:26b', size: 15.6 * gb, digest: 'sha256:01', details: { family: 'gemma4', parameter_size: '25.2B', quantization_level: 'Q4_K_M' } },
] })));

async function importSample(page) {
  await page.goto(`${site.url}#/settings`);
  const chooser = page.waitForEvent('filechooser');
  await page.getByRole('button', { name: 'Import' }).click();
  await (await chooser).setFiles({ name: 'sample.json', mimeType: 'application/json', buffer: Buffer.from(JSON.stringify(archive())) });
  await page.getByText('Imported 5 conversations.').waitFor();
  await page.getByRole('button', { name: 'Dismiss' }).click();
}

const views = [
  ['welcome', '#/', async (page) => page.getByRole('button', { name: 'What is the capital' }).waitFor()],
  ['chat', '#/c/strings', async (page) => {
    await page.locator('.katex').first().waitFor();
    await page.locator('.hljs').first().waitFor();
    await page.locator('.messages').evaluate((box) => (box.scrollTop = 0));
  }],
  ['chat-end', '#/c/strings', async (page) => page.locator('.messages').evaluate((box) => (box.scrollTop = box.scrollHeight))],
  ['conversation', '#/c/strings', async (page) => page.getByRole('button', { name: 'Conversation settings' }).click()],
  ['models', '#/models', async (page) => page.getByText('gemma4:26b').waitFor()],
  ['device', '#/device', async (page) => page.getByText('Where it runs').waitFor()],
  ['settings', '#/settings', async (page) => page.getByText('Ask to keep it').or(page.getByText('until you delete it')).waitFor()],
];

for (const [size, viewport] of [['wide', { width: 1280, height: 800 }], ['phone', { width: 390, height: 844 }]]) {
  const b = await openBrowser({ viewport, ...(size === 'phone' && { deviceScaleFactor: 2, hasTouch: true, isMobile: true }) });
  const { page } = b;
  await page.goto(site.url);
  await ready(page);
  await importSample(page);
  for (const theme of ['light', 'dark']) {
    await page.emulateMedia({ colorScheme: theme });
    for (const [name, hash, prepare] of views) {
      await page.goto(site.url + hash);
      await prepare(page);
      await page.waitForTimeout(300);
      await page.screenshot({ path: `${out}/${name}-${size}-${theme}.png` });
      await page.keyboard.press('Escape');
    }
    if (size === 'phone') {
      await page.getByRole('button', { name: 'Show the sidebar' }).click();
      await page.waitForTimeout(400);
      await page.screenshot({ path: `${out}/drawer-${size}-${theme}.png` });
      await page.keyboard.press('Escape');
    }
  }
  console.log(`${size}: ${b.watched.errors.length ? b.watched.errors.join('\n') : 'no errors'}`);
  await b.close();
}
await site.close();
