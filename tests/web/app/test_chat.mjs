// The conversation in Chromium: keys and focus, stopping and going on, a full context, what an
// answer may hold. node tests/web/app/test_chat.mjs [--only WORDS]
import { createHash } from 'node:crypto';
import fs from 'node:fs';
import { done, equal, ok, test } from '../check.mjs';
import {
  answered, ask, composer, holds, onCpu, onGpu, openBrowser, pauseAnswers, ready,
} from './browser.mjs';
import { archive } from './sample.mjs';
import { newGate, openSite, sendFile } from './site.mjs';
import { unit } from './unit.mjs';

const PARIS = 'What is the capital of France?', ANSWER = 'The capital of France is Paris.';
const TINY = 'models/tiny.q8_0.gguf';
const site = await openSite();
const noServer = (_, response) =>
  response.writeHead(200, { 'content-type': 'application/json' }).end('{"models":[]}');
site.routes.set('/api/tags', noServer);
const phone = { viewport: { width: 390, height: 844 }, hasTouch: true, isMobile: true };
const focusedId = (page) => page.evaluate(() => document.activeElement?.id);
const THIRD = 30; // words, of about ninety in a story
const settled = (page) => page.getByRole('button', { name: 'Send' }).waitFor();

// ---- keys and focus ----

test('what is typed goes to the message: at once, after a suggestion, after sending, '
  + 'and from anywhere on the page', () => holds(onCpu(site), async (page) => {
  equal(await focusedId(page), 'composer', 'at load');
  await page.keyboard.type('Hello there');
  equal(await composer(page).inputValue(), 'Hello there');
  equal(new URL(page.url()).hash, '', 'and no letter is a shortcut');
  await composer(page).fill('');
  await page.getByRole('button', { name: PARIS }).click();
  equal(await focusedId(page), 'composer', 'after a suggestion');
  await page.getByText(ANSWER).first().waitFor();
  await settled(page);
  await page.keyboard.type('And Japan?');
  await page.getByRole('button', { name: 'Send' }).click();
  equal(await focusedId(page), 'composer', 'after Send');
  await page.getByText('The capital of Japan is Tokyo.').first().waitFor();
  await settled(page);
  await page.getByRole('button', { name: 'Copy the answer' }).last().focus();
  await page.keyboard.type('mtdnr,/?');
  equal(await composer(page).inputValue(), 'mtdnr,/?', 'from a button');
  await page.goto(`${site.url}#/models`);
  await page.getByRole('heading', { name: 'Models' }).waitFor();
  await page.keyboard.type('tdn');
  equal(new URL(page.url()).hash, '#/models', 'letters lead nowhere on other views');
}));

test('a key of an input method, or one that types a character, does nothing else',
    () => holds(onCpu(site), async (page) => {
  await composer(page).fill('Hello');
  const press = (init) => composer(page).evaluate(
    (field, init) => field.dispatchEvent(
      new KeyboardEvent('keydown', { bubbles: true, cancelable: true, ...init }),
    ),
    init,
  );
  await press({ key: 'Enter', keyCode: 229 });
  equal(await composer(page).inputValue(), 'Hello', 'as Safari ends a composition');
  await press({ key: 'Í', code: 'KeyS', altKey: true, shiftKey: true });
  equal(new URL(page.url()).hash, '', 'as a Mac types it');
  await press({ key: 'S', code: 'KeyS', altKey: true, shiftKey: true });
  equal(new URL(page.url()).hash, '#/settings');
}));

test('Enter sends nothing, and loses nothing, while the conversation is still being read',
    () => holds(onCpu(site), async (page) => {
  await ask(page, PARIS);
  await page.getByRole('button', { name: 'New conversation' }).click();
  await page.evaluate(() => {
    const { postMessage } = Worker.prototype;
    Worker.prototype.postMessage = function (message, ...more) {
      const send = () => postMessage.call(this, message, ...more);
      if (message?.method === 'thread') globalThis.letRead = send;
      else send();
    };
  });
  await page.locator('.history li a').click();
  await page.waitForFunction(() => globalThis.letRead);
  await composer(page).fill('And Japan?');
  await page.keyboard.press('Enter');
  equal(await composer(page).inputValue(), 'And Japan?');
  await page.evaluate(() => globalThis.letRead());
  // its words alone stand in the screen reader's log all the while
  await page.getByRole('article', { name: 'Answer' }).waitFor();
  await page.keyboard.press('Enter');
  await page.getByText('The capital of Japan is Tokyo.').first().waitFor();
}));

test('Escape that closes a menu, a field or a search does not end the answer',
    () => holds(onGpu(site), async (page) => {
  await ask(page, PARIS);
  await pauseAnswers(page, THIRD);
  await composer(page).fill('Tell me a story about a fox.');
  // there while the answer is written
  await page.getByRole('button', { name: 'Edit the message' }).first().click();
  const editor = page.getByLabel('Edit the message').and(page.locator('textarea'));
  await editor.waitFor();
  await composer(page).press('Enter');
  await page.getByRole('button', { name: 'Stop' }).waitFor();
  const goesOn = async (what) => equal(await goOn(page).count(), 0, what);
  await editor.press('Enter');
  equal(await editor.count(), 1, 'what is written there is not lost meanwhile');
  await editor.press('Escape');
  await editor.waitFor({ state: 'detached' });
  await goesOn('an editor');
  await page.getByRole('button', { name: /^Actions for/ }).click();
  await page.keyboard.press('Escape');
  await page.locator('.menu').waitFor({ state: 'detached' });
  await goesOn('a menu');
  await page.getByLabel('Search conversations').fill('fox');
  await page.keyboard.press('Escape');
  await goesOn('a search');
  await composer(page).press('Escape');
  await goOn(page).waitFor();
}));

test('on a phone nothing takes the focus unasked: a keyboard would cover the page',
    () => holds(onCpu(site, phone), async (page) => {
  equal(await focusedId(page), '', 'at load');
  await page.getByRole('button', { name: PARIS }).tap();
  await page.getByText(ANSWER).first().waitFor();
  ok((await focusedId(page)) !== 'composer', 'after a suggestion');
}));

// ---- stopping and going on ----

const used = async (page) =>
  Number(await page.getByRole('meter', { name: 'Context used' }).getAttribute('aria-valuenow'));
const goOn = (page) => page.getByRole('button', { name: 'Continue' });

test('an answer that was stopped goes on: before its first word, and at once after some',
    () => holds(onGpu(site), async (page) => {
  await pauseAnswers(page, 0);
  await composer(page).fill(PARIS);
  await page.keyboard.press('Enter');
  await page.getByRole('button', { name: 'Stop' }).click();
  await page.getByText('Stopped.').waitFor();
  equal(await page.locator('.turn.assistant .markdown').count(), 0, 'it had not begun');
  await pauseAnswers(page, THIRD);
  await goOn(page).click();
  equal(await answered(page), ANSWER);
  await composer(page).fill('Tell me a story about a fox.');
  await page.keyboard.press('Enter');
  const story = page.locator('.turn.assistant .markdown').nth(1);
  await page.waitForFunction(() =>
    (document.querySelectorAll('.turn.assistant .markdown')[1]?.textContent ?? '').length > 20);
  await page.keyboard.press('Escape');
  await goOn(page).waitFor();
  ok((await used(page)) > 25, `${await used(page)} tokens after a stop`);
  const before = (await story.innerText()).trim();
  await goOn(page).click();
  await page.waitForFunction(
    (n) =>
      (document.querySelectorAll('.turn.assistant .markdown')[1]?.textContent ?? '').length
        > n + 10,
    before.length,
  );
  await page.keyboard.press('Escape');
  await goOn(page).waitFor();
  ok((await story.innerText()).startsWith(before), await story.innerText());
  equal(await page.getByRole('article', { name: 'Answer' }).count(), 2);
}));

test('while another conversation is answered: it is marked, nothing here ends it, '
  + 'and a suggestion waits in the message', () => holds(onGpu(site), async (page) => {
  await pauseAnswers(page, THIRD);
  await composer(page).fill('Tell me a story about a fox.');
  await page.keyboard.press('Enter');
  await page.locator('.turn.assistant .markdown').waitFor();
  await page.getByRole('button', { name: 'New conversation' }).click();
  await page.locator('.history li.answering', { hasText: 'fox' }).waitFor();
  equal(
    await page.getByRole('button', { name: 'Stop' }).count(), 0, 'no button that ends the other',
  );
  await page.getByRole('button', { name: PARIS }).click();
  equal(await composer(page).inputValue(), PARIS);
  equal(await page.getByRole('button', { name: 'Send' }).isDisabled(), true);
  await page.keyboard.press('Escape');
  await page.waitForTimeout(300);
  await page.getByText('is being answered.').waitFor();
  await page.getByRole('link', { name: 'Show it' }).click();
  await page.getByRole('button', { name: 'Stop' }).click();
  await goOn(page).waitFor();
  equal(await page.locator('.history li.answering').count(), 0);
}));

// ---- a full context ----

/** A page whose model has room for so many tokens. */
async function withContext(context) {
  const b = await openBrowser();
  await b.context.addInitScript((context) => {
    if (location.protocol === 'http:' && !localStorage.getItem('bezel.prefs'))
      localStorage.setItem(
        'bezel.prefs', JSON.stringify({ backend: 'cpu', context, chat: { temperature: 0 } }),
      );
  }, context);
  await b.page.goto(site.url);
  await ready(b.page);
  return b;
}

test('a context that fills is told of at 85%, and when it is full there are three ways on',
    () => holds(withContext(512), async (page) => {
  await ask(page, `${'I like the sea. '.repeat(40)}${PARIS}`);
  const little = page.getByText(/This conversation fills \d\d% of the context/);
  const full = page.locator('.banner', { hasText: 'the model is loaded with room for 512.' });
  for (let n = 0; n < 20 && !(await little.isVisible()); n++) {
    equal(await full.isVisible(), false, 'a warning comes first');
    await ask(page, PARIS);
    await page.waitForTimeout(100);
  }
  const share = Number(/\d+/.exec(await little.innerText())[0]);
  ok(share >= 85 && share < 95, `${share}%`);
  await ask(page, 'Tell me a story about a fox.');
  await full.waitFor();
  ok(/This conversation has \d\d\d tokens;/.test(await full.innerText()), await full.innerText());
  equal(await goOn(page).count(), 0, 'nothing would come of it');
  await page.waitForTimeout(300);
  const hidden = await page.getByRole('button', { name: 'To the latest message' }).count();
  equal(hidden, 0, 'the end of the answer is above the notice, not below it');
  const context = page.url();
  await full.getByRole('button', { name: 'New chat with a summary' }).click();
  await page.getByRole('heading', { name: /\(continued\)$/ }).waitFor();
  await page.locator('.turn.assistant .markdown').waitFor();
  await settled(page);
  ok((await used(page)) < 256, 'a summary is shorter');
  const summed = async () =>
    (await answered(page),
      /prompt of (\d+) tokens/.exec(
        await page.locator('.turn.assistant .stats').last().getAttribute('title'),
      )[1]);
  const first = await summed();
  await page.reload();
  await ready(page);
  await page.getByRole('button', { name: 'Answer again' }).click();
  await page.getByLabel('Version 2 of 2').waitFor();
  equal(await summed(), first, 'another summary is one of the same');
  await page.goto(context);
  await full.getByRole('button', { name: 'Load with more context' }).click();
  await page.getByRole('meter', { name: 'Context used' })
    .and(page.locator('[aria-valuemax="1024"]'))
    .waitFor();
  await full.waitFor({ state: 'detached' });
}));

test('the automatic context follows the memory of the device, up to what the model was made for',
    () => holds(onCpu(site), async (page) => {
  const model = fs.readFileSync(TINY), key = 'gemma4.context_length';
  model.writeUInt32LE(16384, model.indexOf(key) + key.length + 4);
  await page.goto(`${site.url}#/models`);
  const chooser = page.waitForEvent('filechooser');
  await page.getByRole('button', { name: 'Choose files' }).click();
  await (await chooser).setFiles({
    name: 'long.gguf', mimeType: 'application/octet-stream', buffer: model,
  });
  await ready(page, 'long');
  await page.goto(`${site.url}#/device`);
  await page.getByText('16,384 tokens').waitFor();
}));

test('a large device gives a conversation more memory than a small one, never half', async () => {
  const { contextBytesFor } = await unit('web/app/src/lib/memory.ts');
  const GB = 2 ** 30;
  const of = (memory, maxBuffer, touch = false) => contextBytesFor({ memory, maxBuffer, touch });
  ok(of(8, 4 * GB) > of(4, 4 * GB), 'it follows the memory');
  ok(of(8, 4 * GB) > of(8, GB / 4), 'and the GPU');
  ok(of(undefined, GB, true) < of(undefined, GB, false), 'a phone that does not say has less');
  for (const memory of [2, 8, 32]) ok(of(memory, 4 * GB) < (memory * GB) / 2);
});

test('the oldest turns are dropped, and can be read again',
    () => holds(withContext(160), async (page) => {
  for (
    let n = 0;
    n < 12 && !(await page.locator('.banner', { hasText: 'room for 160.' }).isVisible());
    n++
  ) {
    await ask(page, PARIS);
    await page.waitForTimeout(100);
  }
  await page.getByRole('button', { name: 'Drop the oldest turns' }).click();
  await page.getByText('The model does not read what is above.').waitFor();
  ok((await used(page)) <= 80, `${await used(page)} tokens are left`);
  equal(await ask(page, 'What is the capital of Japan?'), 'The capital of Japan is Tokyo.');
  await page.reload();
  await page.getByText('The model does not read what is above.').waitFor();
  await ready(page);
  await page.getByRole('button', { name: 'Read it again' }).click();
  await page.locator('.banner', { hasText: 'room for 160.' }).waitFor();
}));

test('a conversation that is longer than the context says so in words to act on',
    () => holds(withContext(64), async (page) => {
  await composer(page).fill(`${'I like the sea. '.repeat(40)}${PARIS}`);
  await page.keyboard.press('Enter');
  await page.locator('.interrupted.bad', {
    hasText: new RegExp('^This conversation has \\d+ tokens; the model is loaded with room '
      + 'for 64\\. Load it with more context, or start a new chat\\.$'),
  }).waitFor();
}));

// ---- models that fail ----

/** A model of the server, whose bytes `send` gives or does not. */
function serveModel(name, send) {
  const weights = fs.readFileSync(TINY);
  const config = Buffer.from('{"model_family":"gemma4","model_type":"6.1M","file_type":"Q8_0"}');
  const sha256 = (bytes) => createHash('sha256').update(bytes).digest('hex');
  const layer = (mediaType, bytes) => ({
    mediaType, digest: `sha256:${sha256(bytes)}`, size: bytes.length,
  });
  const manifest = {
    schemaVersion: 2, mediaType: 'application/vnd.docker.distribution.manifest.v2+json',
    config: layer('application/vnd.docker.container.image.v1+json', config),
    layers: [layer('application/vnd.ollama.image.model', weights)],
  };
  const models = [{ name, size: weights.length, digest: `sha256:${'0'.repeat(64)}`, details: {} }];
  const json = (value) => (_, response) =>
    response.writeHead(200, { 'content-type': 'application/json' }).end(JSON.stringify(value));
  site.routes.set('/api/tags', json({ models }));
  site.routes.set(`/bezel/manifest/${encodeURIComponent(name)}`, json(manifest));
  site.routes.set(`/bezel/blob/${sha256(config)}`, (_, response) => response.end(config));
  site.routes.set(`/bezel/blob/${sha256(weights)}`, send);
}

test('a model that fails while it is loaded gives the place back to the one that worked',
    () => holds(onGpu(site), async (page, b) => {
  let opened = 0; // to weigh it, to check it, to load it: the third time it breaks off
  serveModel('dud:1', (request, response) => {
    const first = /^bytes=0-/.test(request.headers.range ?? '');
    if (first) opened++;
    if (opened > 2 && !first) response.writeHead(410).end();
    else void sendFile(TINY, request, response);
  });
  await page.goto(`${site.url}#/models`);
  await page.getByText('context up to').nth(1).waitFor();
  await page.getByRole('button', { name: 'Load dud:1' }).click();
  await page.locator('.notice.error', {
    hasText: /dud:1 was not loaded: .*tiny is loaded again\./,
  }).waitFor();
  await ready(page, 'tiny');
  equal(
    await page.evaluate(() => localStorage.getItem('bezel.model')),
    'embedded:tiny',
    'and it is the one of the next visit',
  );
  b.watched.errors.length = 0; // the browser reports each 410
}));

test('a load that is cancelled leaves the model that was there',
    () => holds(onCpu(site), async (page) => {
  const { pace } = newGate();
  serveModel('slow:1', (request, response) => void sendFile(TINY, request, response, pace));
  await page.goto(`${site.url}#/models`);
  await page.getByRole('button', { name: 'Load slow:1' }).click();
  await page.getByRole('button', { name: 'Cancel' }).click();
  await page.locator('.notice', { hasText: /Loading slow:1 was cancelled\. tiny/ }).waitFor();
  await ready(page, 'tiny');
}));

// ---- what an answer may hold ----

async function importArchive(page, data) {
  await page.goto(`${site.url}#/settings`);
  const chooser = page.waitForEvent('filechooser');
  await page.getByRole('button', { name: 'Import' }).click();
  await (await chooser).setFiles({
    name: 'sample.json', mimeType: 'application/json', buffer: Buffer.from(JSON.stringify(data)),
  });
  await page.getByText(/^Imported/).waitFor();
}

test('tables scroll and break no number or word; markdown and direction are those of the text, '
  + 'in questions and thoughts too', () => holds(onCpu(site, phone), async (page) => {
  const data = archive(), [question, reply] = data.threads[0].messages;
  const columns = ['model', 'parameters', 'weights', 'context', 'decode', 'prefill', 'memory'];
  question.content = 'كم **المسافة**؟\nسطر ثان';
  reply.content =
    `| ${columns.join(' | ')} |\n|${'---:|'.repeat(columns.length)}\n`
      + '| Supercalifragilistic-4B | 540 | 1234567 | 131072 | 540.25 | 2019–2026 | 540 |\n\n'
      + 'مرحبا بالعالم\n\nAnd English.\n\n<details><summary>More</summary>\n\n'
      + '- [x] seen[^1]\n\n~~~js\n1;\n~~~\n\n</details>\n\n[^1]: By me.';
  reply.reasoning = 'First **weigh** it.';
  await importArchive(page, data);
  await page.goto(`${site.url}#/c/strings`);
  await page.locator('.table').waitFor();
  const broken = await page.locator('.table th, .table td').evaluateAll((cells) =>
    cells.filter((cell) => {
    const range = document.createRange();
    range.selectNodeContents(cell);
    return range.getClientRects().length > 1;
  }).map((cell) => cell.textContent));
  equal(broken.join(), '', 'cells with a word in two pieces');
  ok(
    await page.locator('.table').first().evaluate((box) => box.scrollWidth > box.clientWidth),
    'the table scrolls by itself',
  );
  equal(
    await page.evaluate(() => document.scrollingElement.scrollWidth > innerWidth),
    false,
    'and not the page',
  );
  const direction = (locator) => locator.evaluate((element) => getComputedStyle(element).direction);
  equal(await direction(page.locator('.markdown p', { hasText: 'مرحبا' })), 'rtl');
  equal(await direction(page.locator('.markdown p', { hasText: 'And English' })), 'ltr');
  equal(await direction(page.locator('.bubble p').first()), 'rtl');
  equal(await page.locator('.bubble strong').first().innerText(), 'المسافة');
  equal(await page.locator('.bubble br').count(), 1, 'a new line of a question is one');
  await page.locator('.thinking summary').first().click();
  equal(await page.locator('.thinking strong').innerText(), 'weigh');
  await page.locator('.markdown details > summary').click();
  const gap = await page.locator('.markdown details figure').evaluate((code) =>
    code.getBoundingClientRect().top - code.previousElementSibling.getBoundingClientRect().bottom);
  ok(gap > 5, `${gap} px between blocks of details`);
  await page.locator('.note').click();
  equal(
    await page.evaluate(() => document.activeElement?.dataset.noted),
    '1',
    'a mark leads to its note',
  );
  await composer(page).fill('مرحبا');
  equal(await direction(composer(page)), 'rtl');
  await page.getByRole('button', { name: 'Conversation settings' }).click();
  await page.getByLabel('System prompt').fill('مرحبا');
  equal(await direction(page.getByLabel('System prompt')), 'rtl');
  await page.keyboard.press('Escape');
  await page.getByRole('button', { name: 'Show the sidebar' }).click();
  await page.getByLabel('Search conversations').fill('مرحبا');
  equal(await direction(page.getByLabel('Search conversations')), 'rtl');
  equal(await direction(page.locator('.history .excerpt')), 'rtl');
}));

// ---- the page around it ----

test('the list of conversations is one stop of the Tab key, and the arrow keys go through it',
    () => holds(onCpu(site), async (page) => {
  const data = archive(), thread = data.threads[1];
  data.threads = Array.from(
    { length: 56 }, (_, i) => JSON.parse(JSON.stringify(thread).replaceAll('bread', `bread${i}`)),
  );
  await importArchive(page, data);
  await page.goto(`${site.url}#/`);
  await page.locator('.history li').nth(55).waitFor();
  const focus = () => page.evaluate(() =>
    document.activeElement?.closest('.history')
      ? 'list'
      : document.activeElement?.id || document.activeElement?.textContent);
  await page.locator('.skip').focus();
  let tabs = 0;
  for (; tabs < 40 && (await focus()) !== 'composer'; tabs++) await page.keyboard.press('Tab');
  ok(tabs <= 20, `${tabs} times Tab to the message`);
  await page.locator('.skip').focus();
  await page.keyboard.press('Enter');
  equal(await focus(), 'composer', 'and once, by the link that is first');
  const title = () => page.evaluate(() =>
    document.activeElement?.getAttribute('href')
      ?? document.activeElement?.getAttribute('aria-label'));
  await page.getByLabel('Search conversations').focus();
  await page.keyboard.press('Tab');
  const first = await title();
  await page.keyboard.press('ArrowDown');
  ok((await title()) !== first && /^#\/c\//.test(await title()), await title());
  await page.keyboard.press('Tab');
  ok(/^Actions for/.test(await title()), 'a row has its actions beside it');
  await page.keyboard.press('Home');
  equal(await title(), first);
}));

test('the menu of a conversation can be clicked where buttons get no focus, as in Safari', () =>
  holds(onCpu(site), async (page) => {
    await ask(page, PARIS);
    await page.evaluate(() => addEventListener('mousedown', (e) => {
      const button = e.target.closest('button'), near = e.target.closest('[tabindex]');
      // a button with a tabindex of its own gets it there too
      if (!button || button === near) return;
      e.preventDefault();
      if (near) near.focus();
      else document.activeElement.blur();
    }, true));
    const actions = page.getByRole('button', { name: /^Actions for/ });
    await actions.click();
    await actions.click();
    await page.locator('.menu').waitFor({ state: 'detached' });
    await actions.click();
    await page.getByRole('button', { name: 'Rename' }).click({ timeout: 10_000 });
    await page.getByLabel('New name').waitFor({ timeout: 10_000 });
  }));

test('notices cover nothing that can be clicked, wide and on a phone', async () => {
  for (const options of [{}, phone]) {
    await holds(onCpu(site, options), async (page) => {
      for (const hash of ['#/models', '#/']) {
        await page.goto(site.url + hash);
        await page.waitForTimeout(200);
        if (hash === '#/models') {
          const chooser = page.waitForEvent('filechooser');
          await page.getByRole('button', { name: 'Choose files' }).click();
          await (await chooser).setFiles({
            name: 'notes.txt', mimeType: 'text/plain', buffer: Buffer.from('hello'),
          });
        }
        await page.locator('.notice').waitFor(); // an error stays
        const covered = await page.evaluate(() => {
          const box = document.querySelector('.view, .messages'), found = new Set();
          const edge = box.getBoundingClientRect();
          for (let top = 0; top < box.scrollHeight; top += 40) {
            box.scrollTop = top; // wherever somebody has scrolled to
            for (const element of document.querySelectorAll(
              'main button, main a, main input, main select, main textarea',
            )) {
              const { left, top: y, width, height } = element.getBoundingClientRect();
              const middle = y + height / 2;
              // out of sight
              if (element.closest('.notice')
                || (box.contains(element) && (middle > edge.bottom || middle < edge.top)))
                continue;
              if (document.elementFromPoint(left + width / 2, middle)?.closest('.notice'))
                found.add(element.textContent || element.id);
            }
          }
          return [...found];
        });
        equal(covered.join(), '', hash);
      }
    });
  }
});

test('a short window shows the welcome from its beginning, and the load card is in line',
    () => holds(openBrowser({ viewport: { width: 1000, height: 360 } }), async (page) => {
  const gate = newGate();
  site.pace = gate.pace;
  await page.goto(site.url);
  await page.locator('.phases').waitFor();
  const left = (selector) =>
    page.locator(selector).evaluate((element) => element.getBoundingClientRect().left);
  equal(
    await page.locator('.phases li').first().evaluate((element) =>
      element.getBoundingClientRect().left),
    await left('.load-head'),
  );
  gate.open();
  await ready(page);
  await page.waitForTimeout(300);
  const { top, room } = await page.locator('.messages').evaluate((box) =>
    ({ top: box.scrollTop, room: box.scrollHeight - box.clientHeight }));
  ok(room > 50 && top === 0, `at ${top} of ${room}`);
}));

test('a training that holds nothing back does not speak of it',
    () => holds(onCpu(site), async (page) => {
  await page.goto(`${site.url}#/train`);
  const lines = Array.from(
    { length: 10 },
    (_, i) => JSON.stringify({ prompt: `What is ${i}?`, completion: `It is ${i}.` }),
  );
  await page.getByLabel('Examples').first().fill(lines.join('\n'));
  await page.getByText('10 examples').waitFor();
  await page.getByRole('button', { name: 'Train', exact: true }).click();
  await page.locator('.facts', { hasText: 'Loss' }).waitFor();
  equal(await page.locator('.facts', { hasText: 'Held back' }).count(), 0);
}));

await done(process.argv[process.argv.indexOf('--only') + 1 || process.argv.length]);
await site.close();
