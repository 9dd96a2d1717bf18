// Models and files in the page, in Chromium: dropped, remembered, verified, deleted. node tests/web/app/test_models.mjs [--only WORDS]
import fs from 'node:fs';
import { done, equal, ok, test } from '../check.mjs';
import { ask, holds, onCpu, ready } from './browser.mjs';
import { archive } from './sample.mjs';
import { openSite, sendFile } from './site.mjs';

const tiny = 'models/tiny.q8_0.gguf';
const site = await openSite();
site.routes.set('/files/pebble.gguf', (request, response) => sendFile(tiny, request, response));

/** Drop a file of this address on the page, or on an element of it; says what is offered meanwhile; `kept`: in a browser that remembers files. */
const drop = (page, name, { kept = false, text, on = '#main' } = {}) => page.evaluate(async ({ name, kept, text, on }) => {
  const bytes = text ?? (await (await fetch('/files/pebble.gguf')).arrayBuffer());
  const root = await navigator.storage.getDirectory(), handle = await root.getFileHandle(name, { create: true });
  const out = await handle.createWritable();
  await out.write(bytes);
  await out.close();
  DataTransferItem.prototype.getAsFileSystemHandle = kept ? async () => handle : undefined;
  const dataTransfer = new DataTransfer();
  dataTransfer.items.add(new File([bytes], name));
  const send = (kind) => document.querySelector(on).dispatchEvent(new DragEvent(kind, { dataTransfer, bubbles: true, cancelable: true }));
  send('dragenter');
  send('dragover');
  await new Promise((resolve) => setTimeout(resolve, 100));
  const shown = document.querySelector('.drop-window')?.textContent ?? '';
  send('drop');
  return shown;
}, { name, kept, text, on });

test('a model dropped on the chat is loaded, remembered, and there after a reload', () => holds(onCpu(site), async (page) => {
  ok(/Drop a model/.test(await drop(page, 'pebble.gguf', { kept: true })));
  await ready(page, 'pebble');
  ok(/Paris/.test(await ask(page, 'What is the capital of France?')));
  await page.reload();
  await ready(page, 'pebble');
  await page.goto(`${site.url}#/models`);
  await page.getByText('a file of this computer, read in place').waitFor();
  await drop(page, 'pebble.gguf', { kept: true });
  await page.waitForTimeout(500);
  equal(await page.locator('.rows .title', { hasText: 'pebble' }).count(), 1, 'dropped again it is the same');
  await page.getByRole('button', { name: 'Load tiny' }).click();
  await ready(page, 'tiny');
  await page.getByRole('button', { name: 'Forget pebble:latest' }).click();
  await page.getByText('its file stays where it is').waitFor();
}));

test('where the browser has no way back to a file, it says so and offers a copy', () => holds(onCpu(site), async (page) => {
  await drop(page, 'stone.gguf');
  await ready(page, 'stone');
  await page.goto(`${site.url}#/models`);
  await page.getByText('gone after a reload unless a copy is kept').waitFor();
  await page.getByRole('button', { name: 'Keep a copy of stone' }).click();
  await page.getByRole('button', { name: 'Verify stone:latest' }).waitFor();
}));

test('a copy that was stopped begins again', () => holds(onCpu(site), async (page) => {
  await drop(page, 'rock.gguf');
  await ready(page, 'rock');
  await page.goto(`${site.url}#/models`);
  await page.getByRole('button', { name: 'Keep a copy of rock' }).evaluate((button) => {
    new MutationObserver((_, self) => {
      const pause = document.querySelector('[aria-label="Pause rock.gguf"]');
      if (pause) self.disconnect();
      pause?.click();
    }).observe(document.body, { childList: true, subtree: true });
    button.click();
  });
  await page.getByRole('button', { name: 'Resume rock.gguf' }).click();
  await page.getByRole('button', { name: 'Verify rock:latest' }).waitFor();
}));

test('exported conversations dropped on the page are imported', () => holds(onCpu(site), async (page) => {
  await drop(page, 'bezel-conversations.json', { text: JSON.stringify(archive()) });
  await page.getByText('Imported 5 conversations.').waitFor();
  await page.locator('.history a', { hasText: 'Trieste' }).waitFor();
}));

test('a field that takes files takes its own, and leaves models to the window', () => holds(onCpu(site), async (page) => {
  await page.goto(`${site.url}#/train`);
  const examples = page.getByLabel('Examples', { exact: true }), text = '{"prompt":"a","completion":"b"}\n';
  equal(await drop(page, 'lesson.jsonl', { text, on: '#train-data' }), '', 'the window offers nothing over the field');
  await page.waitForFunction((text) => document.querySelector('#train-data').value === text, text);
  equal(await page.locator('.drop-window').count(), 0);
  await drop(page, 'slate.gguf', { on: '#train-data' });
  await ready(page, 'slate');
  equal(await examples.inputValue(), text);
  equal(await page.locator('.drop-window').count(), 0);
}));

/** Download the model as "pebble" on the models page. */
async function download(page) {
  await page.goto(`${site.url}#/models`);
  await page.getByText('pebble:latest is in this browser now.').waitFor({ state: 'hidden' }); // of an earlier one
  await page.getByLabel('Address of a GGUF file').fill(`${site.url}files/pebble.gguf`);
  await page.getByRole('button', { name: 'Download', exact: true }).click();
  await page.getByText('pebble:latest is in this browser now.').waitFor();
}

test('deleting a model asks first', () => holds(onCpu(site), async (page) => {
  await download(page);
  await page.getByRole('button', { name: 'Delete pebble:latest' }).click();
  await page.getByRole('heading', { name: 'Delete pebble:latest?' }).waitFor();
  await page.getByRole('button', { name: 'Keep it' }).click();
  await page.getByRole('button', { name: 'Delete pebble:latest' }).click();
  await page.getByRole('button', { name: 'Delete', exact: true }).click();
  await page.getByText('Deleted pebble:latest.').waitFor();
  equal(await page.locator('.rows .title', { hasText: 'pebble' }).count(), 0);
}));

test('a damaged model says so, is not loaded, and a download repairs it', () => holds(onCpu(site), async (page) => {
  await download(page);
  const flip = () => page.evaluate(async () => {
    const blobs = await (await (await navigator.storage.getDirectory()).getDirectoryHandle('bezel')).getDirectoryHandle('blobs');
    for await (const handle of blobs.values()) {
      if ((await handle.getFile()).size < 1e6) continue;
      const open = () => handle.createWritable({ keepExistingData: true }).catch(() => new Promise((again) => setTimeout(again, 100)).then(open)); // who reads it has it open
      const out = await open();
      await out.write({ type: 'write', position: 1e6, data: new Uint8Array(400_000).fill(90) });
      await out.close();
    }
  });
  await flip();
  await page.getByRole('button', { name: 'Load pebble:latest' }).click();
  await page.getByText("pebble:latest is damaged in this browser's storage").first().waitFor();
  await download(page);
  await page.getByRole('button', { name: 'Verify pebble:latest' }).click();
  await page.getByText('pebble:latest is intact.').waitFor();
  await flip();
  await page.getByRole('button', { name: 'Verify pebble:latest' }).click();
  await page.locator('.rows .badge', { hasText: 'damaged' }).waitFor();
  equal(await page.getByRole('button', { name: 'Load pebble:latest' }).count(), 0);
  await download(page);
  await page.getByRole('button', { name: 'Load pebble:latest' }).click();
  await ready(page, 'pebble');
}));

await done(process.argv[process.argv.indexOf('--only') + 1 || process.argv.length]);
await site.close();
