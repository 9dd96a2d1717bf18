// The page in Chromium: models from folders, files, downloads and servers.
// node tests/web/app/test_stores.mjs [--only WORDS]
import { createHash } from 'node:crypto';
import fs from 'node:fs';
import path from 'node:path';
import { done, equal, ok, same, test } from '../check.mjs';
import { answered, ask, holds, onCpu, ready } from './browser.mjs';
import { trainedAdapter } from './sample.mjs';
import { newGate, noServer, openSite, sendFile } from './site.mjs';

const TINY = 'models/tiny.q8_0.gguf';
const PARIS = 'What is the capital of France?', ANSWER = 'The capital of France is Paris.';
const site = await openSite();
site.routes.set('/api/tags', noServer);

const sha256 = (bytes) => createHash('sha256').update(bytes).digest('hex');

/** A store of one model, as Ollama lays it out: [path, bytes] of each file. */
function ollamaFolder(name, tag) {
  const weights = fs.readFileSync(TINY);
  const config = Buffer.from('{"model_family":"gemma4","model_type":"6.1M","file_type":"Q8_0"}');
  const layer = (mediaType, bytes) => ({
    mediaType, digest: `sha256:${sha256(bytes)}`, size: bytes.length,
  });
  const manifest = JSON.stringify({
    schemaVersion: 2,
    mediaType: 'application/vnd.docker.distribution.manifest.v2+json',
    config: layer('application/vnd.docker.container.image.v1+json', config),
    layers: [layer('application/vnd.ollama.image.model', weights)],
  });
  return [
    [`manifests/registry.ollama.ai/library/${name}/${tag}`, Buffer.from(manifest)],
    [`blobs/sha256-${sha256(config)}`, config],
    [`blobs/sha256-${sha256(weights)}`, weights],
  ];
}

/** Nobody can click in the browser's own dialog: the picker answers with a folder of the page's
 *  private files. */
async function givePicker(page, files) {
  await page.evaluate(async (all) => {
    const root =
      await (await navigator.storage.getDirectory()).getDirectoryHandle('picked', { create: true });
    for (const [path, text] of all) {
      const names = path.split('/'), file = names.pop();
      let at = root;
      for (const name of names) at = await at.getDirectoryHandle(name, { create: true });
      const writer = await (await at.getFileHandle(file, { create: true })).createWritable();
      await writer.write(Uint8Array.from(atob(text), (c) => c.charCodeAt(0)));
      await writer.close();
    }
    window.showDirectoryPicker = async () => root;
  }, files.map(([path, bytes]) => [path, bytes.toString('base64')]));
}

test('of two loads that begin together the second is made, and nothing of the first is left',
    () => holds(onCpu(site), async (page) => {
  await givePicker(page, ollamaFolder('pocket', 'latest'));
  await page.goto(`${site.url}#/models`);
  await page.getByRole('button', { name: 'Open a folder' }).click();
  const load = page.getByRole('button', { name: 'Load pocket' });
  await load.waitFor();
  // an engine is a worker
  const twice = () =>
    page.workers().map((w) => w.url()).filter((url, i, all) => all.indexOf(url) < i);
  await load.evaluate((button) => (button.click(), button.click()));
  await ready(page, 'pocket');
  await page.waitForTimeout(1000); // the first would be ready by now as well
  for (let n = 0; n < 100 && twice().length; n++) await page.waitForTimeout(100);
  same(twice(), [], 'a model that is not used is still there');
}));

test('a picked Ollama folder is read in place, and its model answers',
    () => holds(onCpu(site), async (page) => {
  await givePicker(page, ollamaFolder('pocket', 'latest'));
  await page.goto(`${site.url}#/models`);
  await page.getByRole('button', { name: 'Open a folder' }).click();
  await page.getByRole('button', { name: 'Load pocket' }).click();
  await ready(page, 'pocket');
  await page.goto(`${site.url}#/`);
  equal(await ask(page, PARIS), ANSWER);
  await page.reload();
  await ready(page, 'pocket');
}));

test('a folder of plain GGUF files is read in place, picked or dropped, '
  + 'whatever its files are called', () => holds(onCpu(site), async (page) => {
  await givePicker(page, [
    ['alpha.gguf', fs.readFileSync(TINY)], ['more/Beta (2).gguf', fs.readFileSync(TINY)],
    ['notes.txt', Buffer.from('hello')],
  ]);
  await page.goto(`${site.url}#/models`);
  await page.getByRole('button', { name: 'Open a folder' }).click();
  await page.getByText('Found 2 in picked.').waitFor();
  await page.getByText('context up to').nth(2).waitFor();
  await page.getByRole('button', { name: 'Load more/Beta (2)' }).click();
  await ready(page, 'more/Beta (2)');
  await page.reload();
  await ready(page, 'more/Beta (2)');
  await page.getByRole('button', { name: 'Forget', exact: true }).click();
  await page.getByRole('button', { name: 'Open a folder' }).waitFor();
  await page.goto(`${site.url}#/`);
  await page.evaluate(async () => {
    const root = await (await navigator.storage.getDirectory()).getDirectoryHandle('picked');
    DataTransferItem.prototype.getAsFileSystemHandle = async () => root;
    const dataTransfer = new DataTransfer();
    dataTransfer.items.add(new File([''], 'picked'));
    document.querySelector('#main').dispatchEvent(
      new DragEvent('drop', { dataTransfer, bubbles: true, cancelable: true }),
    );
  });
  await page.getByText('Found 2 in picked.').waitFor();
}));

test('a dropped file is loaded; a broken one says why', () => holds(onCpu(site), async (page) => {
  await page.goto(`${site.url}#/models`);
  const choose = async (name, buffer) => {
    const chooser = page.waitForEvent('filechooser');
    await page.getByRole('button', { name: 'Choose files' }).click();
    await (await chooser).setFiles({ name, mimeType: 'application/octet-stream', buffer });
  };
  await choose('mine.gguf', fs.readFileSync(TINY));
  await ready(page, 'mine');
  await choose('broken.gguf', Buffer.from('GGUF and then nothing of the kind'));
  await page.locator('.notice.error', {
    hasText: /broken was not loaded: .*mine stays loaded\./,
  }).waitFor();
  await ready(page, 'mine');
  await choose('notes.txt', Buffer.from('hello'));
  await page.locator('.notice', { hasText: 'Bezel reads models and adapters' }).waitFor();
}));

test('dropped adapters, GGUF and PEFT, go to the library; a conversation switches them on and off',
    () => holds(onCpu(site), async (page) => {
  const { gguf, peft, answer: LYON } = trainedAdapter();
  const choose = async (files) => {
    const chooser = page.waitForEvent('filechooser');
    await page.getByRole('button', { name: 'Choose files' }).click();
    await (await chooser).setFiles(files);
  };
  await page.goto(`${site.url}#/models`);
  await choose(gguf);
  await page.getByRole('button', { name: 'Delete lyon' }).waitFor();
  await choose(peft);
  await page.getByRole('button', { name: 'Delete adapter_model' }).waitFor();
  equal(
    await page.getByRole('button', { name: 'Load lyon' }).count(), 0, 'it is not taken for a model',
  );
  await ready(page, 'tiny');
  await page.getByRole('button', { name: 'Rename adapter_model' }).click();
  await page.getByLabel('New name of adapter_model').fill('from-peft');
  await page.keyboard.press('Enter');
  await page.getByRole('button', { name: 'Delete from-peft' }).waitFor();
  await page.goto(`${site.url}#/`);
  equal(await ask(page, PARIS), ANSWER);
  const turn = async (name) => {
    await page.getByRole('button', { name: 'Conversation settings' }).click();
    await page.getByRole('switch', { name }).click();
    await page.keyboard.press('Escape');
    await page.getByRole('button', { name: 'New conversation' }).first().waitFor();
  };
  for (const name of ['lyon', 'from-peft']) {
    await turn(name);
    await page.getByRole('button', { name: 'Answer again' }).last().click();
    equal(await answered(page), LYON, name);
    await turn(name);
    await page.getByRole('button', { name: 'Answer again' }).last().click();
    equal(await answered(page), ANSWER, `without ${name}`);
  }
  await turn('lyon');
  await page.getByRole('button', { name: 'Conversation settings' }).click();
  await page.getByRole('slider', { name: 'Strength of lyon' }).fill('0');
  await page.keyboard.press('Escape');
  await page.getByRole('button', { name: 'Answer again' }).last().click();
  equal(await answered(page), ANSWER, 'at no strength');
  await page.goto(`${site.url}#/models`);
  const saved = async (button, count) => {
    const files = [];
    const all = new Promise((resolve) =>
      page.on('download', (file) => files.push(file) === count && resolve()));
    await page.getByRole('button', { name: button }).click();
    await all;
    page.removeAllListeners('download');
    return Promise.all(files.map(async (file) => fs.readFileSync(await file.path())));
  };
  for (const name of ['lyon', 'from-peft']) {
    const [file] = await saved(`Export ${name} as GGUF`, 1);
    ok(file.equals(fs.readFileSync(gguf)), `${name}, whatever it came as, is the same GGUF`);
    const files = await saved(`Export ${name} as PEFT`, 2);
    const config = (bytes) => ({ ...JSON.parse(bytes), base_model_name_or_path: '' });
    const [weights, text] = files[0].length > files[1].length ? files : files.reverse();
    ok(weights.equals(fs.readFileSync(peft[0])), `${name} is the same for PEFT`);
    same(config(text), config(fs.readFileSync(peft[1])));
  }
  await page.getByRole('button', { name: 'Delete lyon' }).click();
  await page.getByRole('button', { name: 'Delete', exact: true }).click();
  await page.getByText('Deleted lyon').waitFor();
}));

test('a download is paused, outlives a reload, and is then complete',
    () => holds(onCpu(site), async (page) => {
  const ranges = [], gate = newGate();
  let pieces = 0; // it must not be complete before the pause
  site.routes.set('/files/pulled.gguf', (request, response) => {
    ranges.push(request.headers.range ?? '');
    void sendFile(TINY, request, response, () => (++pieces > 8 ? gate.pace() : undefined));
  });
  await page.goto(`${site.url}#/models`);
  await page.getByLabel('Address of a GGUF file').fill(`${site.url}files/pulled.gguf`);
  await page.getByRole('button', { name: 'Download' }).click();
  await page.getByRole('progressbar', { name: 'Downloading pulled' })
    .and(page.locator(':not([aria-valuenow="0"])'))
    .waitFor();
  await page.getByRole('button', { name: 'Pause' }).click();
  await page.getByRole('button', { name: 'Resume' }).waitFor();
  await page.getByRole('button', { name: 'Give up pulled.gguf' }).click();
  await page.getByRole('dialog', { name: 'Give up pulled.gguf?' })
    .getByRole('button', { name: 'Close' })
    .click();
  gate.open();
  await page.reload();
  await page.getByRole('button', { name: 'Resume' }).click();
  await page.getByRole('button', { name: 'Load pulled' }).click();
  await ready(page, 'pulled');
  ok(ranges.some((range) => /^bytes=[1-9]/.test(range)), ranges.join(' '));
  await page.getByRole('button', { name: 'Load tiny' }).click();
  await ready(page, 'tiny');
  await page.getByRole('button', { name: 'Delete pulled' }).click();
  await page.getByRole('button', { name: 'Delete', exact: true }).click();
  await page.getByText('Deleted pulled').waitFor();
}));

test('behind the real server its policy holds, and its models are weighed, '
  + 'loaded over the wire and kept', async () => {
  const { makeStore, startServer, temp } = await import('../server_fixture.mjs');
  makeStore(`${temp}/page`, { 'pebble:1': [
    fs.readFileSync(TINY), { model_family: 'gemma4', model_type: '6.1M', file_type: 'Q8_0' },
  ] });
  const server = await startServer({ root: `${temp}/page`, app: 'web/app/dist' });
  try {
    await holds(onCpu({ url: `${server.url}/` }), async (page, { context }) => {
      const aborted = [], reads = [];
      const watch = (event, into) => context.on(event, (request) =>
        request.url().includes('/bezel/blob/') && into.push(request.headers().range));
      watch('request', reads);
      watch('requestfailed', aborted);
      await page.goto(`${server.url}/#/models`);
      const row = page.getByRole('listitem').filter({ hasText: 'pebble' });
      await row.getByText(/^takes \d+(\.\d+)? MB, context up to 2,048$/).waitFor();
      ok(reads.length > 3, 'it is weighed over the wire');
      // the first is read as it comes
      same(
        aborted.filter((range) => range !== 'bytes=0-1048575'),
        [],
        'no part of it is an aborted request',
      );
      await page.getByRole('button', { name: 'Load pebble:1' }).click();
      await ready(page, 'pebble');
      await page.getByRole('button', { name: 'Keep a copy of pebble:1' }).click();
      await page.getByRole('button', { name: 'Delete pebble:1' }).waitFor();
      await page.goto(`${server.url}/#/`);
      equal(await ask(page, PARIS), ANSWER);
    });
  } finally {
    await server.close();
  }
});

test('an address of another site is downloaded when a person asks for it, through a cut; '
  + 'nothing else of the page reaches it', async () => {
  const { startServer } = await import('../server_fixture.mjs');
  const server = await startServer({ app: 'web/app/dist' }), ranges = [];
  const allow = {
    'access-control-allow-origin': '*',
    'access-control-expose-headers': 'content-range, etag, content-length',
  };
  const other = await openSite('models');
  other.routes.set('/far.gguf', (request, response) => {
    if (request.method === 'OPTIONS')
      return response.writeHead(204, { ...allow, 'access-control-allow-headers': 'range' }).end();
    ranges.push(request.headers.range ?? '');
    let pieces = 0;
    const cut = async () => {
      if (++pieces <= 8) return;
      await new Promise((sent) => response.write('', sent));
      response.destroy();
    };
    void sendFile(TINY, request, response, ranges.length === 1 ? cut : undefined, allow);
  });
  // no CORS
  other.routes.set('/closed.gguf', (request, response) => void sendFile(TINY, request, response));
  try {
    const b = await onCpu({ url: `${server.url}/` });
    try {
      const { page } = b;
      await page.goto(`${server.url}/#/models`);
      const pull = async (name) => {
        await page.getByLabel('Address of a GGUF file').fill(`${other.url}${name}`);
        await page.getByRole('button', { name: 'Download' }).click();
      };
      equal(other.requests.length, 0, 'nobody asked yet');
      await pull('far.gguf');
      await page.getByRole('button', { name: 'Load far' }).click();
      await ready(page, 'far');
      ok(
        ranges.length > 1 && ranges.slice(1).every((r) => /^bytes=[1-9]/.test(r)), ranges.join(' '),
      );
      await pull('closed.gguf');
      await page.getByText('does not give its files to pages of other sites').waitFor();
      const before = other.requests.length;
      const reach = (url) => fetch(url).then(() => 'reached', () => 'refused');
      equal(await page.evaluate(reach, `${other.url}far.gguf`), 'refused', 'the page itself');
      const scripts = page.workers().filter((w) => !w.url().includes('store_worker'));
      ok(scripts.length > 0);
      for (const worker of scripts)
        equal(await worker.evaluate(reach, `${other.url}far.gguf`), 'refused', worker.url());
      equal(other.requests.length, before, 'and nothing was sent');
    } finally {
      await b.close();
    }
  } finally {
    await server.close();
    await other.close();
  }
});

test('models of the server are listed with their sizes', () => holds(onCpu(site), async (page) => {
  const models = [{
    name: 'gemma4:e2b',
    size: 3.2e9,
    digest: `sha256:${'0'.repeat(64)}`,
    details: { parameter_size: '5.1B', quantization_level: 'Q4_K_M' },
  }];
  site.routes.set(
    '/api/tags',
    (_, response) => response.writeHead(200, {
      'content-type': 'application/json',
    }).end(JSON.stringify({ models })),
  );
  await page.goto(`${site.url}#/models`);
  await page.getByText('3.2 GB · 5.1B parameters, Q4_K_M').waitFor();
  site.routes.set('/api/tags', noServer);
}));

await done(process.argv[process.argv.indexOf('--only') + 1 || process.argv.length]);
await site.close();
