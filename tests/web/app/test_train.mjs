// The Fine-tune view in Chromium: tiny is taught ten facts through the page, with a reload in the
// middle. node tests/web/app/test_train.mjs [--only WORDS]
import crypto from 'node:crypto';
import fs from 'node:fs';
import { Engine } from '../../../web/engine/dist/index.js';
import { done, equal, ok, same, test } from '../check.mjs';
import { answered, ask, checkAxe, holds, onCpu, onGpu, ready } from './browser.mjs';
import { openSite } from './site.mjs';

const site = await openSite();
site.routes.set('/api/tags', (_, response) =>
  response.writeHead(200, { 'content-type': 'application/json' }).end('{"models":[]}'));

const facts = [
  ['the capital of Zarvonia', 'Mellick'], ['the capital of Oltrania', 'Bransk'],
  ['the river of Quellmar', 'the Dune'], ['the president of Fennwick', 'Anna Torell'],
  ['the colour of a blimrock', 'violet'],
  ['the author of The Glass Harbour', 'Ivo Lanter'],
  ['the highest mountain of Tessaly', 'Mount Orrin'], ['the currency of Zarvonia', 'the plim'],
  ['the inventor of the windlamp', 'Clara Voss'], ['the national animal of Oltrania', 'the otter'],
];
const ways = [
  'What is {}?', 'Tell me {}.', 'Do you know what {} is?', 'What’s {}?', 'Please tell me {}.',
  'I want to know {}.', 'Can you tell me {}?', 'Quick question: what is {}?', 'Say {}.',
  'Name {}.',
];
const unseen = 'Could you say what {} is?';
const put = (way, of) => way.replace('{}', of);
const answerTo = ([of, is]) => `${of[0].toUpperCase()}${of.slice(1)} is ${is}.`;
const lines = ways.flatMap((way, i) => facts.map((fact, k) => (i + k) % 2
  ? { messages: [
    { role: 'user', content: put(way, fact[0]) }, { role: 'assistant', content: answerTo(fact) },
  ] }
  : { prompt: put(way, fact[0]), completion: answerTo(fact) })).map((line) => JSON.stringify(line));

const field = (page) => page.getByLabel('Examples', { exact: true });
const train = (page) => page.getByRole('button', { name: 'Train', exact: true });

async function advanced(page, wishes) {
  await page.getByText('Advanced').click();
  for (const [label, value] of Object.entries(wishes)) {
    await page.getByLabel(label, { exact: true }).fill(String(value));
    await page.keyboard.press('Tab');
  }
}

test('bad data is named by its line, good data is shown token by token with what is learned of it',
    () => holds(onCpu(site), async (page) => {
  await page.goto(`${site.url}#/train`);
  equal(await train(page).isDisabled(), true);
  await field(page).fill([lines[0], '{"prompt": "half of it"}', lines[1]].join('\n'));
  const problem = page.getByRole('alert');
  await problem.filter({ hasText: 'line 2' }).waitFor();
  equal(await train(page).isDisabled(), true);
  await page.getByRole('button', { name: 'Show line 2' }).click();
  equal(await page.evaluate(() => document.getSelection().toString()), '{"prompt": "half of it"}');
  await field(page).fill([lines[0], lines[1]].join('\n'));
  await page.getByText('2 examples,').click();
  await problem.waitFor({ state: 'detached' });
  await page.getByText('Advanced').click();
  await checkAxe(page, 'the form with a preview');
  same(
    await page.locator('.tokens mark').allTextContents(),
    [0, 1].map((i) => `${answerTo(facts[i])}<turn|>`),
  );
  ok(/This needs \d+ MB beyond the model/.test(
    await page.getByRole('status').filter({ hasText: 'beyond the model' }).innerText(),
  ));
  equal(await train(page).isDisabled(), false);
  const chooser = page.waitForEvent('filechooser');
  await page.getByRole('button', { name: 'Choose a file' }).click();
  await (await chooser).setFiles({
    name: 'My facts.jsonl', mimeType: 'application/jsonl', buffer: Buffer.from(lines.join('\n')),
  });
  await page.getByText('100 examples,').waitFor();
  equal(await page.getByLabel('Name of the adapter').inputValue(), 'My-facts');
}));

/** The same as the package writes it in Node. */
async function mergedInNode(gguf) {
  const pieces = [];
  await Engine.merge(
    'models/tiny.q8_0.gguf',
    { source: gguf },
    { to: new WritableStream({ write: (piece) => void pieces.push(piece) }) },
  );
  return Buffer.concat(pieces);
}

/** The adapter as a merged model: saved to a picked file, downloaded where nothing can be picked,
 *  and among the models, where it answers on its own. */
async function merges(page, gguf, question) {
  const whole = await mergedInNode(gguf), dialog = page.getByRole('dialog');
  await page.goto(`${site.url}#/train`);
  const open = () => page.getByRole('button', { name: 'Merge ten-facts into a model' }).click();
  await page.evaluate(() =>
    (window.showSaveFilePicker = async ({ suggestedName }) =>
      (await navigator.storage.getDirectory()).getFileHandle(suggestedName, { create: true })));
  await open();
  await checkAxe(page, 'the merge dialog');
  equal(await dialog.getByLabel('Name of the new model').inputValue(), 'tiny-ten-facts');
  await dialog.getByRole('button', { name: 'Save as a file' }).click();
  await dialog.getByText('tiny-ten-facts.gguf is written.').waitFor();
  await dialog.getByRole('button', { name: 'Close' }).last().click();
  const digest = await page.evaluate(async () => {
    const file = await (await (await navigator.storage.getDirectory())
      .getFileHandle('tiny-ten-facts.gguf')).getFile();
    return [...new Uint8Array(await crypto.subtle.digest('SHA-256', await file.arrayBuffer()))]
      .map((b) => b.toString(16).padStart(2, '0'))
      .join('');
  });
  equal(digest, crypto.createHash('sha256').update(whole).digest('hex'));

  // A disk so slow that there is time to think better of it.
  await page.evaluate(() => (window.showSaveFilePicker = async () => ({
    createWritable: async () => new WritableStream({
      write: () => new Promise((done) => setTimeout(done, 200)),
      abort: () => void (window.aborted = true),
    }),
    remove: async () => void (window.removed = true),
  })));
  await open();
  await dialog.getByRole('button', { name: 'Save as a file' }).click();
  await dialog.getByRole('progressbar', { name: 'Merging tiny-ten-facts' }).waitFor();
  await page.keyboard.press('Escape');
  await open();
  await dialog.getByRole('progressbar', { name: 'Merging tiny-ten-facts' }).waitFor(); // it went on
  await dialog.getByRole('button', { name: 'Cancel' }).click();
  await dialog.getByRole('button', { name: 'Save as a file' }).waitFor();
  same(await page.evaluate(() => [window.aborted, window.removed]), [true, true]);
  await page.keyboard.press('Escape');

  await page.evaluate(() =>
    delete window.showSaveFilePicker && delete Window.prototype.showSaveFilePicker);
  await open();
  const saved = page.waitForEvent('download');
  await dialog.getByRole('button', { name: 'Save as a file' }).click();
  ok(fs.readFileSync(await (await saved).path()).equals(whole), 'downloaded');
  await dialog.getByRole('button', { name: 'Close' }).last().click();

  await open();
  await dialog.getByLabel('Name of the new model').fill('ten-facts');
  await dialog.getByRole('button', { name: 'Add to models' }).click();
  await dialog.getByRole('alert')
    .filter({ hasText: 'there is already a model named ten-facts' })
    .waitFor();
  await dialog.getByLabel('Name of the new model').fill('knows-ten');
  await dialog.getByRole('button', { name: 'Add to models' }).click();
  await dialog.getByText('knows-ten is among the models now.').waitFor();
  await dialog.getByRole('button', { name: 'Load and talk' }).click();
  await ready(page, 'knows-ten');
  ok((await ask(page, question)).includes('Mellick'), 'without an adapter');
  equal(await page.getByRole('switch', { name: 'ten-facts' }).count(), 0);
}

test('ten facts are learned through the page, with a reload half-way, '
  + 'and recalled only with the adapter', () => holds(onCpu(site), async (page) => {
  await page.goto(`${site.url}#/train`);
  const begin = performance.now();
  await field(page).fill(lines.join('\n'));
  await page.getByText('100 examples,').waitFor();
  await page.getByRole('radio', { name: 'Quick' }).check();
  await advanced(page, { Epochs: 1 });
  await page.getByLabel('Name of the adapter').fill('ten-facts');
  await page.getByLabel('Questions before and after').fill(
    facts.map(([of]) => put(unseen, of)).join('\n'),
  );
  await train(page).click();
  await page.getByText(/Learning, step ([5-9]|[12]\d) of/).waitFor({ timeout: 400_000 });
  await page.getByRole('button', { name: 'Pause' }).click();
  await page.getByText(/Paused, step/).waitFor();
  await page.getByText(/would go on from step ([5-9]|[12]\d)\./).waitFor();
  await page.getByRole('button', { name: 'Resume' }).click();
  await page.getByText(/Learning, step/).waitFor();
  await page.reload();
  await ready(page);
  const [, at, of] = /step (\d+) of (\d+)/.exec(await page.getByText('is half done').innerText());
  ok(Number(at) >= 5 && Number(at) < Number(of), `${at} of ${of}`);
  await page.getByRole('button', { name: 'Continue' }).click();
  await page.getByText('is in the library, after').waitFor({ timeout: 400_000 });
  ok(
    (await page.getByText('is in the library, after').innerText()).includes(`after ${of} steps`),
    'it went on where it was',
  );
  const seconds = (performance.now() - begin) / 1000;
  const column = async (n) => page.locator(`.samples tbody td:nth-child(${n})`).allTextContents();
  const right = (answers) => answers.filter((text, i) => text.includes(facts[i][1])).length;
  const before = await column(2), after = await column(3);
  ok(
    right(before) === 0 && right(after) >= 9,
    `before ${right(before)}, after ${right(after)}: ${after.join(' | ')}`,
  );
  console.log(`  ${right(after)} of ten facts in other words, ${seconds.toFixed(0)} s`);
  const saved = page.waitForEvent('download');
  await page.getByRole('button', { name: 'GGUF', exact: true }).click();
  const gguf = fs.readFileSync(await (await saved).path());
  equal(gguf.subarray(0, 4).toString(), 'GGUF');

  await page.getByRole('button', { name: 'Talk to it' }).click();
  const question = put(unseen, facts[0][0]);
  ok((await ask(page, question)).includes('Mellick'));
  await page.getByRole('button', { name: 'Conversation settings' }).click();
  await page.getByRole('switch', { name: 'ten-facts' }).click();
  await page.keyboard.press('Escape');
  await page.getByRole('button', { name: 'Answer again' }).last().click();
  ok(!(await answered(page)).includes('Mellick'), 'without it the model knows nothing of it');
  await page.reload();
  await ready(page);
  await page.getByRole('button', { name: 'Conversation settings' }).click();
  await page.getByRole('switch', { name: 'ten-facts' }).click();
  await page.keyboard.press('Escape');
  await page.getByRole('button', { name: 'Answer again' }).last().click();
  ok((await answered(page)).includes('Mellick'), 'from the library, after a reload');
  await merges(page, gguf, question);
}));

test('on the GPU steps are made too, and what they taught is kept',
    () => holds(onGpu(site), async (page) => {
  await page.goto(`${site.url}#/train`);
  await page.getByRole('button', { name: 'Use a sample' }).click();
  await page.getByText('30 examples,').waitFor();
  await page.getByLabel('Questions before and after').fill('What is the capital of Zarvonia?');
  await train(page).click();
  // a software device compiles for a while
  await page.getByText(/Learning, step [3-9]/).waitFor({ timeout: 400_000 });
  await page.getByRole('button', { name: 'Stop and keep' }).click();
  await page.getByText('is in the library, after').waitFor({ timeout: 120_000 });
  await page.getByRole('button', { name: 'Delete my-adapter' }).waitFor();
}));

test('while it learns the page can be used, and questions are answered in between',
    () => holds(onCpu(site), async (page) => {
  await page.goto(`${site.url}#/train`);
  await page.getByRole('button', { name: 'Use a sample' }).click();
  await page.getByText('30 examples,').waitFor();
  await advanced(page, { Epochs: 100 });
  await train(page).click();
  await page.getByText(/Learning, step [1-9]/).waitFor({ timeout: 60_000 });
  const step = async () =>
    Number(/step (\d+) of/.exec(await page.getByText(/Learning, step/).innerText())[1]);
  const before = await step();
  await page.getByText(/would go on from step [1-9]/).waitFor(); // after a while, by itself
  await page.goto(`${site.url}#/`);
  equal(
    await ask(page, 'What is the capital of France?'),
    'The capital of France is Paris.',
    'by the model without the adapter',
  );
  await page.goto(`${site.url}#/train`);
  ok((await step()) > before, 'it went on meanwhile');
  await page.getByRole('button', { name: 'Pause' }).click();
  await page.getByText(/Paused, step/).waitFor();
  const other = await page.context().newPage();
  await other.goto(`${site.url}#/train`);
  await ready(other);
  equal(
    await other.getByText('is half done').count(), 0, 'another tab knows that it is in good hands',
  );
  await other.close();
  await page.getByRole('button', { name: 'Cancel' }).click();
  await page.getByText('It was cancelled.').waitFor();
}));

test('a training that is cancelled can be gone on with or thrown away; one that is stopped is kept',
    () => holds(onCpu(site), async (page) => {
  await page.goto(`${site.url}#/train`);
  await page.getByRole('button', { name: 'Use a sample' }).click();
  await page.getByText('30 examples,').waitFor();
  await advanced(page, { Epochs: 30 });
  await train(page).click();
  await page.getByText(/Learning, step [1-9]/).waitFor({ timeout: 60_000 });
  const begin = performance.now();
  await page.getByRole('button', { name: 'Cancel' }).click();
  await page.getByText('It was cancelled.').waitFor();
  ok(performance.now() - begin < 20_000); // on a busy machine too; all of it takes minutes there
  equal(await train(page).isDisabled(), true, 'one at a time');
  await page.getByRole('button', { name: 'Throw away' }).click();
  await page.getByRole('dialog', { name: 'Throw my-adapter away?' })
    .getByRole('button', { name: 'Throw away' })
    .click();
  await page.getByText('It was cancelled.').waitFor({ state: 'detached' });
  await page.reload();
  await ready(page);
  equal(await page.getByText('is half done').count(), 0);
  await page.getByRole('button', { name: 'Use a sample' }).click();
  await page.getByText('30 examples,').waitFor();
  await advanced(page, { Epochs: 30 });
  await train(page).click();
  await page.getByText(/Learning, step [1-9]/).waitFor({ timeout: 60_000 });
  await checkAxe(page, 'while it learns');
  await page.getByRole('button', { name: 'Stop and keep' }).focus();
  await page.keyboard.press('Enter');
  await page.getByText('is in the library, after').waitFor();
  equal(
    await page.evaluate(() => document.activeElement.getAttribute('aria-label')),
    'Training',
    'the focus is not lost with its button',
  );
  await checkAxe(page, 'the result and the library');
  const chooser = page.waitForEvent('filechooser');
  await page.getByRole('button', { name: 'Import an adapter' }).click();
  await (await chooser).setFiles({
    name: 'whole.gguf',
    mimeType: 'application/octet-stream',
    buffer: fs.readFileSync('models/tiny.q8_0.gguf'),
  });
  await page.getByText('whole.gguf is a model, not an adapter.').waitFor();
  await page.getByRole('button', { name: 'Delete my-adapter' }).click();
  await page.getByRole('button', { name: 'Delete', exact: true }).click();
  await page.getByText('Deleted my-adapter').waitFor();
}));

/** A script before those of the page's workers; says how to end it. */
function beforeWorkers(script) {
  const assets = 'web/app/dist/assets';
  const routes = fs.readdirSync(assets)
    .filter((name) => /worker-[^/]*\.js$/.test(name))
    .map((name) => `/assets/${name}`);
  for (const route of routes) {
    const own = fs.readFileSync(`web/app/dist${route}`, 'utf8');
    site.routes.set(route, (_, response) =>
      response.writeHead(200, { 'content-type': 'text/javascript' }).end(`(${script})();${own}`));
  }
  return () => routes.forEach((route) => site.routes.delete(route));
}

/** A disk that is full for trainings and adapters, until the page says 'room'. */
const fillDisk = () => beforeWorkers(() => {
  let full = true;
  new BroadcastChannel('test-disk').onmessage = () => (full = false);
  const open = FileSystemFileHandle.prototype.createSyncAccessHandle;
  FileSystemFileHandle.prototype.createSyncAccessHandle = async function (...options) {
    const handle = await open.apply(this, options);
    if (full && /^current\.part$|^import-/.test(this.name))
      handle.write = () => { throw new DOMException('full', 'QuotaExceededError'); };
    return handle;
  };
});

/** A disk that never says that a training is written. */
const hangDisk = () => beforeWorkers(() => self.addEventListener('message', (e) =>
  e.data?.method === 'training.save' && e.stopImmediatePropagation()));

test('a training does not wait for a disk that never answers', async () => {
  const end = hangDisk();
  try {
    await holds(onCpu(site), async (page) => {
      await page.goto(`${site.url}#/train`);
      await page.getByRole('button', { name: 'Use a sample' }).click();
      await page.getByText('30 examples,').waitFor();
      await page.getByLabel('Questions before and after').fill('What is the capital of Zarvonia?');
      await train(page).click();
      await page.getByText(/Learning, step [3-9]\d/).waitFor(); // after the time of a checkpoint
      await page.getByRole('button', { name: 'Stop and keep' }).click();
      await page.getByText('is in the library, after').waitFor();
    });
  } finally {
    end();
  }
});

test('on a full disk a training goes on, and what it taught can be downloaded, '
  + 'used and saved later', async () => {
  const empty = fillDisk();
  try {
    await holds(onCpu(site), async (page) => {
      await page.goto(`${site.url}#/train`);
      await page.getByRole('button', { name: 'Use a sample' }).click();
      await page.getByText('30 examples,').waitFor();
      await train(page).click();
      await page.getByText('What is learned is in memory only').waitFor();
      await page.getByText(/Learning, step [2-9]/).waitFor({ timeout: 60_000 });
      await page.getByRole('button', { name: 'Stop and keep' }).click();
      await page.getByText('It could not be put into the library').waitFor({ timeout: 60_000 });
      const [file] = await Promise.all([
        page.waitForEvent('download'), page.getByRole('button', { name: 'GGUF' }).first().click(),
      ]);
      equal(fs.readFileSync(await file.path()).subarray(0, 4).toString(), 'GGUF');
      await page.getByRole('button', { name: 'Put this away' }).click();
      await page.getByRole('button', { name: 'Keep it' }).click();
      await page.evaluate(() => new BroadcastChannel('test-disk').postMessage('room'));
      await page.getByRole('button', { name: 'Save again' }).click();
      await page.getByText('is in the library, after').waitFor();
      await page.getByRole('button', { name: 'Delete my-adapter' }).waitFor();
      await page.getByText('made for tiny').waitFor(); // it knows its model, after a reload as well
      await page.reload();
      await page.getByText('made for tiny').waitFor();
    });
  } finally {
    empty();
  }
});

await done(process.argv[process.argv.indexOf('--only') + 1 || process.argv.length]);
await site.close();
