// Pictures of every view, light and dark, wide and phone: node tests/web/app/screenshots.mjs
// [build/screenshots]
import fs from 'node:fs';
import { ask, composer, onCpu, openBrowser, ready } from './browser.mjs';
import { trainedDiffusion } from '../diffusion_model.mjs';
import { archive, canvasArchive } from './sample.mjs';
import { makeStore, startServer, temp } from '../server_fixture.mjs';

const out = process.argv[2] ?? 'build/screenshots';
fs.rmSync(out, { recursive: true, force: true });
fs.mkdirSync(out, { recursive: true });
const models = `${temp}/pictures`;
makeStore(models, {
  'tiny-moe:latest': [
    fs.readFileSync('models/tiny-moe.q8_0.gguf'),
    { model_family: 'gemma4', model_type: '6.0M', file_type: 'Q8_0' },
  ],
  'tiny:latest': [
    fs.readFileSync('models/tiny.q8_0.gguf'),
    { model_family: 'gemma4', model_type: '6.1M', file_type: 'Q8_0' },
  ],
});
const server = await startServer({ root: models, app: 'web/app/dist', files: {} });
const site = { url: `${server.url}/`, close: () => server.close() };

async function importSample(page, sample = archive()) {
  await page.goto(`${site.url}#/settings`);
  const chooser = page.waitForEvent('filechooser');
  await page.getByRole('button', { name: 'Import' }).click();
  await (await chooser).setFiles({
    name: 'sample.json',
    mimeType: 'application/json',
    buffer: Buffer.from(JSON.stringify(sample)),
  });
  await page.getByText(/^Imported/).waitFor();
  await page.getByRole('button', { name: 'Dismiss' }).click();
}

const views = [
  [
    'welcome', '#/',
    async (page) => page.getByRole('button', { name: 'What is the capital' }).waitFor(),
  ],
  ['chat', '#/c/strings', async (page) => {
    await page.locator('.katex').first().waitFor();
    await page.locator('.hljs').first().waitFor();
    await page.locator('.messages').evaluate((box) => (box.scrollTop = 0));
  }],
  [
    'chat-end', '#/c/strings',
    async (page) => page.locator('.messages').evaluate((box) => (box.scrollTop = box.scrollHeight)),
  ],
  [
    'conversation', '#/c/strings',
    async (page) => page.getByRole('button', { name: 'Conversation settings' }).click(),
  ],
  ['models', '#/models', async (page) => page.getByText('context up to').nth(2).waitFor()],
  [
    'train', '#/train',
    async (page) => page.getByRole('button', { name: 'Use a sample' })
      .click()
      .then(() => page.getByText('30 examples').waitFor()),
  ],
  ['device', '#/device', async (page) => page.getByText('Where it runs').waitFor()],
  [
    'settings', '#/settings',
    async (page) =>
      page.getByText('Ask to keep it').or(page.getByText('until you delete it')).waitFor(),
  ],
];

for (const [size, viewport] of [
  ['wide', { width: 1280, height: 800 }], ['phone', { width: 390, height: 844 }],
]) {
  const b = await openBrowser({
    viewport, ...(size === 'phone' && { deviceScaleFactor: 2, hasTouch: true, isMobile: true }),
  });
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

// A training from its beginning to its end.
for (const [size, options] of [
  ['wide', { viewport: { width: 1280, height: 1500 }, colorScheme: 'light' }],
  [
    'phone',
    {
      viewport: { width: 390, height: 1700 }, deviceScaleFactor: 2, hasTouch: true, isMobile: true,
      colorScheme: 'dark',
    },
  ],
]) {
  const b = await onCpu(site, options), { page } = b;
  await page.goto(`${site.url}#/train`);
  await page.getByRole('button', { name: 'Use a sample' }).click();
  await page.getByText('30 examples').click();
  await page.getByText('Advanced').click();
  await page.waitForTimeout(300);
  await page.screenshot({ path: `${out}/train-form-${size}.png` });
  await page.getByRole('button', { name: 'Train', exact: true }).click();
  await page.getByText(/Learning, step [2-9]\d/).waitFor({ timeout: 180_000 });
  await page.screenshot({ path: `${out}/train-running-${size}.png` });
  await page.getByText('is in the library, after').waitFor({ timeout: 180_000 });
  await page.screenshot({ path: `${out}/train-done-${size}.png` });
  console.log(
    `training, ${size}: ${b.watched.errors.length ? b.watched.errors.join('\n') : 'no errors'}`,
  );
  await b.close();
}

// A diffusion model: an answer's steps, words of it edited, and a canvas that takes shape. The
// trained one where it ships; the words of the other mean nothing.
const canvas = fs.readFileSync(trainedDiffusion);
for (const [size, options] of [
  ['wide', { colorScheme: 'light' }],
  [
    'phone',
    {
      viewport: { width: 390, height: 844 }, deviceScaleFactor: 2, hasTouch: true, isMobile: true,
      colorScheme: 'dark',
    },
  ],
]) {
  const b = await onCpu(site, options), { page } = b;
  await page.goto(`${site.url}#/models`);
  const chooser = page.waitForEvent('filechooser');
  await page.getByRole('button', { name: 'Choose files' }).click();
  await (await chooser).setFiles({
    name: 'tiny-diffusion.gguf', mimeType: 'application/octet-stream', buffer: canvas,
  });
  await ready(page, 'tiny-diffusion');
  await importSample(page, canvasArchive());
  await page.goto(`${site.url}#/c/canvas`);
  await page.getByRole('button', { name: 'How it took shape' }).click();
  await page.getByRole('slider', { name: 'Step' }).focus();
  for (const key of ['Home', 'ArrowRight', 'ArrowRight']) await page.keyboard.press(key);
  await page.screenshot({ path: `${out}/canvas-steps-${size}.png` });
  await page.getByRole('button', { name: 'Edit in place' }).click();
  await page.getByRole('textbox', { name: 'Select the words to write again' }).evaluate((e) =>
    e.setSelectionRange(25, 30));
  await page.locator('.chosen mark').waitFor();
  await page.screenshot({ path: `${out}/canvas-edit-${size}.png` });
  await page.keyboard.press('Escape');
  await composer(page).fill('What is the capital of Spain?');
  await page.getByRole('button', { name: 'Send' }).click();
  await page.locator('.denoising .canvas').waitFor();
  await page.screenshot({ path: `${out}/canvas-shape-${size}.png` });
  console.log(
    `canvas, ${size}: ${b.watched.errors.length ? b.watched.errors.join('\n') : 'no errors'}`,
  );
  await b.close();
}

// Answers as JSON: the setting with a schema that can be kept, with one that cannot, and an answer.
for (const [size, options] of [
  ['wide', { colorScheme: 'light' }],
  [
    'phone',
    {
      viewport: { width: 390, height: 844 }, deviceScaleFactor: 2, hasTouch: true, isMobile: true,
      colorScheme: 'dark',
    },
  ],
]) {
  const b = await onCpu(site, options), { page } = b;
  await page.getByRole('button', { name: 'Conversation settings' }).click();
  await page.getByRole('radio', { name: 'A schema' }).check({ force: true });
  await page.getByLabel('Schema', { exact: true }).fill('{"properties": {"a": {"type": "text"}}}');
  await page.locator('.problem').waitFor();
  await page.screenshot({ path: `${out}/json-wrong-${size}.png` });
  await page.getByRole('button', { name: 'Review', exact: true }).click();
  await page.getByText('Every answer will be JSON of this schema.').waitFor();
  await page.screenshot({ path: `${out}/json-setting-${size}.png` });
  await page.keyboard.press('Escape');
  await composer(page).fill('How was the film?');
  await page.getByRole('button', { name: 'Send' }).click();
  await page.locator('figure.code .hljs').waitFor();
  await page.screenshot({ path: `${out}/json-answer-${size}.png` });
  console.log(
    `JSON, ${size}: ${b.watched.errors.length ? b.watched.errors.join('\n') : 'no errors'}`,
  );
  await b.close();
}

// The README's picture: a conversation as it really goes, on the CPU, which says so.
{
  const b = await onCpu(site, { colorScheme: 'light', viewport: { width: 1280, height: 760 } });
  await ask(b.page, 'What is the capital of France?');
  await b.page.getByRole('button', { name: 'Think' }).click();
  await ask(b.page, 'What is 27 + 48?');
  await b.page.locator('.thinking summary').click();
  await b.page.getByRole('button', { name: 'Think' }).click();
  await b.page.getByRole('button', { name: 'Tools' }).click();
  await ask(b.page, 'What time is it in Tokyo?');
  await b.page.locator('h1').click();
  await b.page.waitForTimeout(500);
  await b.page.screenshot({ path: `${out}/readme.png` });
  await b.close();
}
await site.close();
