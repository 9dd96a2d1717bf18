// Models and files in the page, in Chromium: dropped, remembered, verified, deleted. node
// tests/web/app/test_models.mjs [--only WORDS]
import fs from 'node:fs';
import { done, equal, ok, test } from '../check.mjs';
import { ask, composer, holds, onCpu, onGpu, pauseAnswers, ready } from './browser.mjs';
import { archive, trainedAdapter } from './sample.mjs';
import { openSite, sendFile } from './site.mjs';

const tiny = 'models/tiny.q8_0.gguf';
const site = await openSite();
site.routes.set('/files/pebble.gguf', (request, response) => sendFile(tiny, request, response));

/** Drop a file of this address on the page, or on an element of it; says what is offered
 *  meanwhile; `kept`: in a browser that remembers files. */
const drop = (page, name, { kept = false, text, on = '#main' } = {}) => page.evaluate(async ({
  name, kept, text, on,
}) => {
  const bytes = text ?? (await (await fetch('/files/pebble.gguf')).arrayBuffer());
  const root = await navigator.storage.getDirectory();
  const handle = await root.getFileHandle(name, { create: true });
  const out = await handle.createWritable();
  await out.write(bytes);
  await out.close();
  DataTransferItem.prototype.getAsFileSystemHandle = kept ? async () => handle : undefined;
  const dataTransfer = new DataTransfer();
  dataTransfer.items.add(new File([bytes], name));
  const send = (kind) => document.querySelector(on).dispatchEvent(
    new DragEvent(kind, { dataTransfer, bubbles: true, cancelable: true }),
  );
  send('dragenter');
  send('dragover');
  await new Promise((resolve) => setTimeout(resolve, 100));
  const shown = document.querySelector('.drop-window')?.textContent ?? '';
  send('drop');
  return shown;
}, { name, kept, text, on });

test('a model dropped on the chat is loaded, remembered, and there after a reload',
    () => holds(onCpu(site), async (page) => {
  ok(/Drop a model/.test(await drop(page, 'pebble.gguf', { kept: true })));
  await ready(page, 'pebble');
  ok(/Paris/.test(await ask(page, 'What is the capital of France?')));
  await page.reload();
  await ready(page, 'pebble');
  await page.goto(`${site.url}#/models`);
  await page.getByText('a file of this computer, read in place').waitFor();
  await drop(page, 'pebble.gguf', { kept: true });
  await page.waitForTimeout(500);
  equal(
    await page.locator('.rows .title', { hasText: 'pebble' }).count(),
    1,
    'dropped again it is the same',
  );
  await page.getByRole('button', { name: 'Load tiny' }).click();
  await ready(page, 'tiny');
  await page.getByRole('button', { name: 'Forget pebble:latest' }).click();
  await page.getByText('its file stays where it is').waitFor();
}));

test('where the browser has no way back to a file, it says so and offers a copy',
    () => holds(onCpu(site), async (page) => {
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

test('exported conversations dropped on the page are imported',
    () => holds(onCpu(site), async (page) => {
  await drop(page, 'bezel-conversations.json', { text: JSON.stringify(archive()) });
  await page.getByText('Imported 5 conversations.').waitFor();
  await page.locator('.history a', { hasText: 'Trieste' }).waitFor();
}));

test('a field that takes files takes its own, and leaves models to the window',
    () => holds(onCpu(site), async (page) => {
  await page.goto(`${site.url}#/train`);
  const examples = page.getByLabel('Examples', { exact: true });
  const text = '{"prompt":"a","completion":"b"}\n';
  equal(
    await drop(page, 'lesson.jsonl', { text, on: '#train-data' }),
    '',
    'the window offers nothing over the field',
  );
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
  // of an earlier one
  await page.getByText('pebble:latest is in this browser now.').waitFor({ state: 'hidden' });
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

/** Other bytes in the middle of every stored file that is as large. */
const flip = (page, least = 1e6) => page.evaluate(async (least) => {
  const blobs = await (await (await navigator.storage.getDirectory()).getDirectoryHandle('bezel'))
    .getDirectoryHandle('blobs');
  for await (const handle of blobs.values()) {
    const { size } = await handle.getFile();
    if (size < least) continue;
    // who reads it has it open
    const open = () => handle.createWritable({ keepExistingData: true }).catch(() =>
      new Promise((again) => setTimeout(again, 100)).then(open));
    const out = await open();
    await out.write({
      type: 'write', position: size >> 1, data: new Uint8Array(size >> 4).fill(90),
    });
    await out.close();
  }
}, least);

const damaged = (page) => page.locator('.rows .badge', { hasText: 'damaged' });

test('a damaged model says so, is not loaded, and a download repairs it',
    () => holds(onCpu(site), async (page) => {
  await download(page);
  await flip(page);
  await page.getByRole('button', { name: 'Load pebble:latest' }).click();
  await page.getByText("pebble:latest is damaged in this browser's storage").first().waitFor();
  await damaged(page).waitFor();
  await download(page);
  await page.getByRole('button', { name: 'Verify pebble:latest' }).click();
  await page.getByText('pebble:latest is intact.').waitFor();
  await flip(page);
  await page.getByRole('button', { name: 'Verify pebble:latest' }).click();
  await damaged(page).waitFor();
  equal(await page.getByRole('button', { name: 'Load pebble:latest' }).count(), 0);
  await download(page);
  await page.getByRole('button', { name: 'Load pebble:latest' }).click();
  await ready(page, 'pebble');
}));

const failed = (page, words) =>
  page.locator('.interrupted.bad', { hasText: words }).last().waitFor();

async function importAdapter(page, files) {
  await page.goto(`${site.url}#/train`);
  const chooser = page.waitForEvent('filechooser');
  await page.getByRole('button', { name: 'Import an adapter' }).click();
  await (await chooser).setFiles(files);
}

async function askTiny(page) {
  await composer(page).fill('What is the capital of France?');
  await page.keyboard.press('Enter');
}

test('a damaged adapter says so, is not used, and the same file repairs it',
    () => holds(onCpu(site), async (page) => {
  const { gguf, answer } = trainedAdapter();
  await importAdapter(page, gguf);
  await page.getByRole('button', { name: 'Talk with lyon' }).waitFor();
  await flip(page, 10_000);
  await page.getByRole('button', { name: 'Talk with lyon' }).click();
  await askTiny(page);
  await failed(page, "lyon is damaged in this browser's storage");
  await page.goto(`${site.url}#/models`);
  await damaged(page).waitFor();
  equal(await page.getByRole('button', { name: 'Talk with lyon' }).count(), 0);
  await importAdapter(page, gguf);
  await page.getByRole('button', { name: 'Talk with lyon' }).waitFor();
  await page.getByRole('button', { name: 'Verify lyon' }).click();
  await page.getByText('lyon is intact.').waitFor();
  await page.getByRole('button', { name: 'Talk with lyon' }).click();
  equal(await ask(page, 'What is the capital of France?'), answer);
}));

test('an adapter that does not fit the model says which one it was made for',
    () => holds(onCpu(site), async (page) => {
  const { peft: [weights, config] } = trainedAdapter();
  const made = {
    ...JSON.parse(fs.readFileSync(config, 'utf8')), base_model_name_or_path: 'someone/tiny',
  };
  await importAdapter(page, [
    {
      name: 'lyon.safetensors', mimeType: 'application/octet-stream',
      buffer: fs.readFileSync(weights),
    },
    {
      name: 'adapter_config.json', mimeType: 'application/json',
      buffer: Buffer.from(JSON.stringify(made)),
    },
  ]);
  await page.getByText('made for someone/tiny').waitFor();
  await page.goto(`${site.url}#/models`);
  const chooser = page.waitForEvent('filechooser');
  await page.getByRole('button', { name: 'Choose files' }).click();
  await (await chooser).setFiles('models/tiny-moe.q8_0.gguf');
  await ready(page, 'tiny-moe');
  await page.getByRole('button', { name: 'Talk with lyon' }).click();
  await askTiny(page);
  await failed(page, 'lyon was made for someone/tiny, and tiny-moe.q8_0 is loaded.');
}));

/** Choose a model while the one that is there is at work. */
async function loadAnother(page) {
  await page.goto(`${site.url}#/models`);
  const chooser = page.waitForEvent('filechooser');
  await page.getByRole('button', { name: 'Choose files' }).click();
  await (await chooser).setFiles('models/tiny-moe.q8_0.gguf');
  await ready(page, 'tiny-moe');
}

test('an answer whose model makes room for another says so, and can go on',
    () => holds(onGpu(site), async (page) => {
  await pauseAnswers(page, 30); // of about ninety words
  await composer(page).fill('Tell me a story about a fox.');
  await page.keyboard.press('Enter');
  await page.locator('.turn.assistant .markdown').waitFor();
  const chat = page.url();
  await loadAnother(page);
  await page.goto(chat);
  await page.locator('.interrupted', { hasText: 'tiny was unloaded meanwhile.' })
    .getByRole('button', { name: 'Continue' })
    .waitFor();
}));

test('a training whose model makes room for another says so, and is kept',
    () => holds(onCpu(site), async (page) => {
  await page.goto(`${site.url}#/train`);
  await page.getByRole('button', { name: 'Use a sample' }).click();
  await page.getByText('30 examples,').waitFor();
  await page.getByText('Advanced').click();
  await page.getByLabel('Epochs', { exact: true }).fill('30'); // many times a load
  await page.keyboard.press('Tab');
  await page.getByRole('button', { name: 'Train', exact: true }).click();
  await page.getByText(/Learning, step [1-9]/).waitFor();
  await loadAnother(page);
  await page.goto(`${site.url}#/train`);
  await page.getByText(/is half done: step \d+ of \d+\. tiny was unloaded meanwhile\./).waitFor();
}));

test('what one tab puts into the store, another shows',
    () => holds(onCpu(site), async (page, { context }) => {
  const other = await context.newPage();
  await other.goto(`${site.url}#/models`);
  await other.getByText('context up to').first().waitFor();
  await download(page);
  await other.getByRole('button', { name: 'Load pebble:latest' }).waitFor();
}));

await done(process.argv[process.argv.indexOf('--only') + 1 || process.argv.length]);
await site.close();
