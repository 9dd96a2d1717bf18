// The page in Chromium: what a person does with it, on the software GPU where that matters and on
// the CPU where it does not (a software GPU writes a token or two a second). node
// tests/web/app/test_app.mjs [--only WORDS]
import fs from 'node:fs';
import path from 'node:path';
import zlib from 'node:zlib';
import { done, equal, ok, test } from '../check.mjs';
import {
  answered, ask, composer, holds, morePieces, onCpu, onGpu, openBrowser, pauseAnswers, ready, until,
} from './browser.mjs';
import { newGate, openSite } from './site.mjs';

const PARIS = 'What is the capital of France?';
const site = await openSite();

test('the page before lazy parts is at most 250 KB of JavaScript, gzipped', () => {
  const assets = 'web/app/dist/assets';
  const html = fs.readFileSync('web/app/dist/index.html', 'utf8');
  const seen = new Set();
  const follow = (file) => {
    if (seen.has(file)) return;
    seen.add(file);
    const text = fs.readFileSync(path.join(assets, file), 'utf8');
    for (const [, name] of text.matchAll(/from\s*["']\.\/([^"']+\.js)["']/g)) follow(name);
  };
  for (const [, name] of html.matchAll(/assets\/([^"]+\.js)"/g)) follow(name);
  const size = [...seen].reduce(
    (n, file) => n + zlib.gzipSync(fs.readFileSync(path.join(assets, file))).length, 0,
  );
  ok(seen.size > 0 && size < 250_000, `${size} bytes in ${seen.size} files`);
  const all = [...seen].join(' ');
  ok(!/maths|highlight|sqlite/.test(all), 'maths, highlighting and SQLite are not among them');
});

test('a first visit paints at once and answers from the small model, '
  + 'on the CPU where the GPU is a software one', () => holds(openBrowser(), async (page) => {
  await page.goto(site.url);
  const painted = await page.evaluate(() => new Promise((resolve) => {
    new PerformanceObserver((list) => resolve(list.getEntries()[0].startTime)).observe({
      type: 'paint', buffered: true,
    });
  }));
  ok(painted < 1000, `first paint after ${painted} ms`);
  await ready(page);
  equal(await page.locator('.model-chip .badge').innerText(), 'CPU');
  equal(await ask(page, PARIS), 'The capital of France is Paris.');
  await page.goto(`${site.url}#/device`);
  await page.getByText(/only a software adapter/).waitFor();
}));

test('the small model answers on the GPU', () => holds(onGpu(site), async (page) => {
  equal(await page.locator('.model-chip .badge').count(), 0, 'no word of the CPU');
  equal(await ask(page, PARIS), 'The capital of France is Paris.');
  await page.goto(`${site.url}#/device`);
  await page.getByText('WebGPU', { exact: true }).waitFor();
}));

test('a load is cancelled and started again', () => holds(openBrowser(), async (page) => {
  site.pace = newGate().pace;
  await page.goto(site.url);
  await page.getByRole('button', { name: 'Cancel' }).click();
  await page.getByText('Loading was cancelled.').waitFor();
  site.pace = undefined;
  await page.getByRole('link', { name: 'Choose a model' }).click();
  await page.getByRole('button', { name: 'Load tiny' }).click();
  await ready(page);
}));

test('a load in which the tab died is not tried again unasked',
    () => holds(openBrowser(), async (page, b) => {
  site.pace = newGate().pace;
  await page.goto(site.url);
  await page.getByRole('button', { name: 'Cancel' }).waitFor();
  const died = page.waitForEvent('crash');
  // it cannot answer any more
  void (await b.context.newCDPSession(page)).send('Page.crash').catch(() => {});
  await died;
  const next = await b.context.newPage();
  await next.goto(site.url);
  await next.getByText('The page closed while a model was loading').waitFor();
  site.pace = undefined;
  // the process that died may have been installing the service worker
  const { errors } = b.watched, cut = 'Service worker went to a bad state unexpectedly.';
  errors.splice(0, errors.length, ...errors.filter((e) => e !== cut));
}));

test('a reload in mid-answer keeps what was written, and the answer goes on from there',
    () => holds(onGpu(site), async (page) => {
  await pauseAnswers(page, 20); // of about ninety words
  await composer(page).fill('Tell me a story about a fox.');
  await page.keyboard.press('Enter');
  await page.waitForFunction(() =>
    (document.querySelector('.turn.assistant .markdown')?.textContent ?? '').length > 20);
  await page.evaluate(() => {
    const { postMessage } = Worker.prototype;
    Worker.prototype.postMessage = function (message, ...rest) {
      if (message?.method === 'putMessage')
        this.addEventListener('message', ({ data }) => (globalThis.kept ||= data.n === message.n));
      postMessage.call(this, message, ...rest);
    };
  });
  for (let n = 0; n < 40 && !(await page.evaluate(() => globalThis.kept)); n++) {
    await morePieces(page, 1); // one that comes late enough is kept with all before it
    await page.waitForTimeout(100);
  }
  await page.reload();
  await page.getByText('The page closed before the answer was finished.').waitFor();
  const before = await page.locator('.turn.assistant .markdown').innerText();
  ok(before.length > 20, before);
  await ready(page);
  await page.getByRole('button', { name: 'Continue' }).click();
  const story = await answered(page);
  ok(story.startsWith(before.trim()) && story.length > before.length, `${before} | ${story}`);
  await page.getByRole('button', { name: 'Answer again' }).click();
  await page.getByText('2/2').waitFor();
  equal(await answered(page), story, 'the likeliest words, in one go');
}));

test('after a reload a conversation goes on without being read again',
    () => holds(onCpu(site), async (page) => {
  await ask(page, PARIS);
  await until(page, async () => {
    const root = await navigator.storage.getDirectory();
    const app = await root.getDirectoryHandle('bezel-app', { create: true });
    // the page may not have made it yet
    const states = await app.getDirectoryHandle('states', { create: true });
    for await (const name of states.keys()) if (name.endsWith('.kv')) return true;
    return false;
  });
  await page.waitForTimeout(2000); // then the conversation is told, which nobody sees
  await page.reload();
  await ready(page);
  equal(await ask(page, 'And Japan?'), 'The capital of Japan is Tokyo.');
  const told = await page.locator('.turn.assistant .stats').last().getAttribute('title');
  const [, all, known] = /prompt of ([\d,]+) tokens, ([\d,]+) of them known/.exec(told);
  ok(Number(known) > 15 && Number(all) - Number(known) < 20, told);
}));

test('the page, the model and the history are there without a network',
    () => holds(onCpu(site), async (page, b) => {
  await ask(page, PARIS);
  await page.evaluate(() => navigator.serviceWorker.ready);
  await until(page, async () => {
    const keys = await caches.keys();
    const requests =
      (await Promise.all(keys.map(async (key) => (await caches.open(key)).keys()))).flat();
    return requests.some((r) => r.url.includes('.gguf'))
      && requests.some((r) => r.url.includes('sqlite3'));
  });
  await b.context.setOffline(true);
  await page.reload();
  await page.getByText('The capital of France is Paris.').waitFor();
  await ready(page);
  equal(await ask(page, 'And Japan?'), 'The capital of Japan is Tokyo.');
}));

test('answers are made again, questions are put differently, and every version stays',
    () => holds(onCpu(site), async (page) => {
  await ask(page, PARIS);
  await page.getByRole('button', { name: 'Answer again' }).click();
  await page.getByText('2/2').waitFor();
  equal(await answered(page), 'The capital of France is Paris.');
  equal(await page.getByRole('article', { name: 'Answer' }).count(), 1);
  await page.getByRole('button', { name: 'Previous version' }).click();
  await page.getByText('1/2').waitFor();
  await page.getByRole('article', { name: 'Question' }).hover();
  await page.getByRole('button', { name: 'Edit the message' }).click();
  await page.getByRole(
    'textbox', { name: 'Edit the message' },
  ).fill('What is the capital of Italy?');
  await page.getByRole('button', { name: 'Send as a new version' }).click();
  equal(await answered(page), 'The capital of Italy is Rome.');
  await page.getByRole('group', { name: 'Versions' })
    .getByRole('button', { name: 'Previous version' })
    .click();
  await page.getByText(PARIS).last().waitFor();
  await page.getByText('1/2').waitFor();
  equal(await page.getByText('2/2').count(), 1, 'the first question, with its newest answer');
  await page.reload();
  await page.locator('.bubble', { hasText: PARIS }).waitFor();
}));

test('thoughts fold away, and a tool is called and its result used',
    () => holds(onCpu(site), async (page) => {
  await page.getByRole('button', { name: 'Think' }).click();
  ok(/75/.test(await ask(page, 'What is 27 + 48?')));
  const thoughts = page.locator('.thinking');
  equal(await thoughts.getAttribute('open'), null);
  await thoughts.locator('summary').click();
  ok(/carry/.test(await thoughts.innerText()));
  await page.getByRole('button', { name: 'New conversation' }).click();
  await page.getByRole('button', { name: 'Tools' }).click();
  equal(await ask(page, 'What is 123 * 45?'), '123 * 45 = 5535.');
  const tool = page.locator('.tool');
  await tool.locator('summary').click();
  ok(/calculator[\s\S]*5535/.test(await tool.innerText()), await tool.innerText());
  const hour = () =>
    `${new Date().toLocaleTimeString('en-GB', { timeZone: 'Asia/Tokyo', hour: '2-digit' })}:`;
  const before = hour(), said = await ask(page, 'What time is it in Tokyo?');
  const hours = [before, hour()]; // another one may have struck meanwhile
  ok(/Tokyo/.test(said) && hours.some((is) => said.includes(is)), `${said} at ${hours}`);
}));

test('settings and drafts outlive a reload', () => holds(onCpu(site), async (page) => {
  await composer(page).fill('half a thought');
  await page.goto(`${site.url}#/settings`);
  await page.getByRole('radio', { name: 'Dark' }).check({ force: true });
  await page.getByRole('switch', { name: 'Load at start' }).uncheck();
  await page.reload();
  equal(await page.evaluate(() => document.documentElement.dataset.theme), 'dark');
  equal(await page.getByRole('switch', { name: 'Load at start' }).isChecked(), false);
  await page.goto(`${site.url}#/`);
  await page.getByRole('heading', { name: 'New conversation' }).waitFor();
  equal(await composer(page).inputValue(), 'half a thought');
  await page.getByText('No model is loaded.').waitFor();
}));

test('the system prompt and the sampling belong to the conversation',
    () => holds(onCpu(site), async (page) => {
  await page.getByRole('button', { name: 'Conversation settings' }).click();
  await page.getByLabel('System prompt').fill('Your name is Ada.');
  await page.getByLabel('Temperature').fill('0');
  await page.getByLabel('Temperature').blur();
  await page.getByRole('button', { name: 'Close', exact: true }).click();
  ok(/Ada/.test(await ask(page, 'What is your name?')));
  await page.getByRole('button', { name: 'New conversation' }).click();
  await page.getByRole('button', { name: 'Conversation settings' }).click();
  equal(await page.getByLabel('System prompt').inputValue(), '');
}));

test('conversations are found, renamed, exported, deleted, brought back and imported',
    () => holds(onCpu(site), async (page) => {
  await ask(page, PARIS);
  await page.getByLabel('Search conversations').fill('paris');
  await page.locator('.history mark', { hasText: 'Paris' }).waitFor();
  await page.getByLabel('Search conversations').fill('');
  await page.getByRole('button', { name: /^Actions for/ }).click();
  await page.getByRole('button', { name: 'Rename' }).click();
  await page.getByLabel('New name').fill('Nonsense');
  await page.keyboard.press('Escape');
  await page.getByRole('button', { name: /^Actions for/ }).waitFor();
  await page.waitForTimeout(300);
  equal(await page.getByText('Nonsense').count(), 0, 'Escape leaves the name');
  await page.getByRole('button', { name: /^Actions for/ }).click();
  await page.getByRole('button', { name: 'Rename' }).click();
  await page.getByLabel('New name').fill('Geography');
  // another tab's change: the list is drawn again
  await page.evaluate(() => new BroadcastChannel('bezel-changes').postMessage(''));
  await page.waitForTimeout(600);
  await page.keyboard.press('Enter');
  await page.getByRole('heading', { name: 'Geography' }).waitFor();
  await page.getByRole('button', { name: /^Actions for/ }).click();
  const [file] = await Promise.all([
    page.waitForEvent('download'), page.getByRole('button', { name: 'Export' }).click(),
  ]);
  const exported = JSON.parse(fs.readFileSync(await file.path(), 'utf8'));
  equal(exported.threads[0].messages.length, 2);
  await page.getByRole('button', { name: /^Actions for/ }).click();
  await page.getByRole('button', { name: 'Delete' }).click();
  await page.getByText('Conversations are kept here').waitFor();
  await page.getByRole('button', { name: 'Undo' }).click();
  await page.locator('.history a', { hasText: 'Geography' }).waitFor();
  await page.goto(`${site.url}#/settings`);
  const chooser = page.waitForEvent('filechooser');
  await page.getByRole('button', { name: 'Import' }).click();
  await (await chooser).setFiles({
    name: 'x.json', mimeType: 'application/json', buffer: Buffer.from('{"format":"other"}'),
  });
  await page.getByText('That file is not an export of Bezel conversations.').waitFor();
}));

await done(process.argv[process.argv.indexOf('--only') + 1 || process.argv.length]);
await site.close();
