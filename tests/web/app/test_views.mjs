// The page in Chromium, view by view: devices that fail, tabs, keys, phones, what a model writes,
// accessibility. node tests/web/app/test_views.mjs [--only WORDS]
import fs from 'node:fs';
import path from 'node:path';
import { done, equal, ok, same, test } from '../check.mjs';
import {
  answered, ask, checkAxe, composer, holds, morePieces, onCpu, onGpu, openBrowser, pauseAnswers,
  ready,
} from './browser.mjs';
import { archive } from './sample.mjs';
import { noServer, openSite } from './site.mjs';

const TINY = 'models/tiny.q8_0.gguf';
const PARIS = 'What is the capital of France?', ANSWER = 'The capital of France is Paris.';
const site = await openSite();
site.routes.set('/api/tags', noServer);

// ---- devices ----

test('without WebGPU the toy runs on the CPU by itself with a quiet badge, '
  + 'and a model for work asks first', () => holds(openBrowser({ noGpu: true }), async (page) => {
  await page.goto(site.url);
  await ready(page);
  equal(await page.getByRole('alert').count(), 0, 'nothing went wrong');
  const badge = page.locator('.model-chip .badge');
  equal(await badge.innerText(), 'CPU', 'it is said for as long as it is so');
  ok(/WebGPU/.test(await badge.getAttribute('title')), await badge.getAttribute('title'));
  equal(await ask(page, PARIS), ANSWER);
  await page.goto(`${site.url}#/models`);
  const chooser = page.waitForEvent('filechooser');
  await page.getByRole('button', { name: 'Choose files' }).click();
  await (await chooser).setFiles({
    name: 'mine.gguf', mimeType: 'application/octet-stream', buffer: fs.readFileSync(TINY),
  });
  await page.locator('.notice.error', {
    hasText: /mine was not loaded: .*WebGPU.*tiny stays loaded\./,
  }).waitFor();
  await ready(page, 'tiny');
  await page.getByRole('button', { name: 'Use the CPU' }).click();
  await ready(page, 'mine');
}));

/** Begin an answer on the GPU, and say how to take the GPU away. */
async function beginAnswer(page, b) {
  await composer(page).fill(PARIS);
  await page.keyboard.press('Enter');
  await page.locator('.turn.assistant .markdown').filter({ hasText: 'The' }).waitFor();
  const cdp = await b.context.newCDPSession(page);
  return () => cdp.send('Browser.crashGpuProcess');
}

test('a device that is lost once is replaced, and the answer goes on',
    () => holds(onGpu(site), async (page, b) => {
  await pauseAnswers(page, 3);
  const crash = await beginAnswer(page, b);
  await crash();
  await morePieces(page, 60);
  equal(await answered(page), ANSWER);
}));

test('a device that keeps getting lost is reported, with the CPU as the way out',
    () => holds(onGpu(site), async (page, b) => {
  const banner = page.locator('.banner.bad');
  const whole = page.locator('.turn.assistant .stats', { hasText: 'first token' });
  let crash = await beginAnswer(page, b);
  for (let n = 0; n < 30 && !(await banner.isVisible()); n++) {
    if (await whole.isVisible()) { // it was complete before the device went
      await page.goto(site.url);
      await ready(page);
      crash = await beginAnswer(page, b);
    }
    await crash();
    await page.waitForTimeout(500);
  }
  await banner.waitFor();
  await page.locator('.interrupted.bad').waitFor();
  await page.getByRole('button', { name: 'Use the CPU instead' }).click();
  await ready(page);
  await page.getByRole('button', { name: 'Continue' }).click();
  equal(await answered(page), ANSWER);
}));

test('the self-test is run when asked for, and every kernel is named with what came of it',
    () => holds(onGpu(site), async (page) => {
  await page.goto(`${site.url}#/device`);
  await page.getByRole('button', { name: 'Run the self-test' }).click();
  const sum = page.getByText(/^All \d+ kernels agree with the reference on this device\.$/);
  await sum.waitFor({ timeout: 180_000 });
  equal(await page.locator('.tests li').count(), Number(/\d+/.exec(await sum.innerText())[0]));
  ok((await page.locator('.tests li').count()) > 10);
  equal(await page.locator('.tests li.failed').count(), 0);
}));

test('on the GPU the models page says what a load will take',
    () => holds(onGpu(site), async (page) => {
  await page.goto(`${site.url}#/models`);
  const badge =
    await page.locator('.rows .badge', { hasText: 'context up to' }).first().innerText();
  const [, said, context] = /^takes ([\d.]+) MB, context up to ([\d,]+)$/.exec(badge) ?? [];
  equal(context, '2,048');
  await page.goto(`${site.url}#/device`);
  const weights =
    await page.locator('.facts div', { hasText: 'Weights in memory' }).locator('dd').innerText();
  ok(
    Number(said) > Number(/[\d.]+/.exec(weights)[0])
      && Number(said) < 10 * Number(/[\d.]+/.exec(weights)[0]),
    `${badge}; weights ${weights}`,
  );
}));

// ---- tabs, keys, phones ----

test('a benchmark runs and its result can be copied', () => holds(onCpu(site), async (page) => {
  await page.goto(`${site.url}#/device`);
  await page.getByRole('button', { name: 'Run', exact: true }).click();
  await page.getByRole('button', { name: 'Copy as text' }).click();
  ok(/^Bezel: tiny on CPU.*\n.*\n.*\n\| pp512 \| [\d.,]+ ± [\d.,]+ \|\n\| tg128 \|/.test(
    await page.evaluate(() => navigator.clipboard.readText()),
  ));
  await page.getByRole('button', { name: 'Copy as JSON' }).click();
  equal(JSON.parse(await page.evaluate(() => navigator.clipboard.readText())).backend, 'cpu');
}));

test('a new version is offered, and taken when asked for',
    () => holds(onCpu(site), async (page) => {
  await page.evaluate(() => navigator.serviceWorker.ready);
  site.routes.set(
    '/sw.js',
    (_, response) => response.writeHead(200, { 'content-type': 'text/javascript' }).end(
      `${fs.readFileSync('web/app/dist/sw.js', 'utf8')}// another`,
    ),
  );
  await page.reload();
  await page.evaluate(async () => (await navigator.serviceWorker.ready).update());
  await page.getByText('A new version of Bezel is ready.').waitFor();
  await Promise.all([
    page.waitForEvent('load'), page.getByRole('button', { name: 'Reload' }).click(),
  ]);
  site.routes.delete('/sw.js');
  await ready(page);
}));

test('resetting everything leaves nothing behind', () => holds(onCpu(site), async (page) => {
  await ask(page, PARIS);
  await page.goto(`${site.url}#/settings`);
  await page.getByRole('button', { name: 'Reset everything' }).click();
  await Promise.all([
    page.waitForEvent('load'), page.getByRole('button', { name: 'Delete everything' }).click(),
  ]);
  await page.getByText('Conversations are kept here').waitFor();
  await ready(page);
  equal(await page.evaluate(() => localStorage.getItem('bezel.draft.new')), null);
}));

test('two tabs share one history', () => holds(onCpu(site), async (page, b) => {
  const other = await b.context.newPage();
  await other.goto(site.url);
  await ready(other);
  equal(await ask(other, PARIS), ANSWER);
  await page.locator('.history a', { hasText: PARIS }).click();
  await page.getByText(ANSWER).waitFor();
  await page.close();
  equal(await ask(other, 'And Japan?'), 'The capital of Japan is Tokyo.');
  // found once this tab has taken the history over and written it
  await other.getByLabel('Search conversations').fill('tokyo');
  await other.locator('.history mark').waitFor();
  await other.reload();
  await other.getByText('The capital of Japan is Tokyo.').waitFor();
}));

test('everything can be done with the keyboard alone', () => holds(onCpu(site), async (page) => {
  const press = (key) => page.keyboard.press(key);
  await page.keyboard.type(PARIS);
  await press('Shift+Enter');
  await press('Backspace');
  await press('Enter');
  await page.getByText(ANSWER).first().waitFor();
  await page.getByRole('button', { name: 'Send' }).waitFor();
  await press('Control+k');
  await page.keyboard.type('paris');
  await page.locator('.history mark').waitFor();
  await press('Tab');
  await press('Enter');
  await page.getByRole('heading', { name: PARIS }).waitFor();
  await page.evaluate(() => document.activeElement?.blur());
  await press('Control+/');
  await page.getByRole('dialog', { name: 'Keyboard' }).waitFor();
  await press('Escape');
  await page.locator('dialog').waitFor({ state: 'detached' });
  await press('Alt+Shift+M');
  await page.getByRole('heading', { name: 'Models' }).waitFor();
  await press('Alt+Shift+T');
  await page.getByRole('heading', { name: 'Fine-tune' }).waitFor();
  await press('Alt+Shift+S');
  await page.getByRole('heading', { name: 'Settings' }).waitFor();
  await press('Control+Shift+O');
  await page.getByRole('heading', { name: 'A model, set in your browser' }).waitFor();
  equal(await page.evaluate(() => document.activeElement?.id), 'composer');
}));

const phone = { viewport: { width: 390, height: 844 }, hasTouch: true, isMobile: true };

test('on a phone the sidebar is a drawer and nothing is wider than the screen',
    () => holds(onCpu(site, phone), async (page) => {
  await page.getByRole('button', { name: PARIS }).tap();
  await page.getByText(ANSWER).first().waitFor();
  for (const hash of ['#/models', '#/train', '#/device', '#/settings', '#/']) {
    await page.goto(site.url + hash);
    await page.waitForTimeout(200);
    const wide = await page.evaluate(() => document.scrollingElement.scrollWidth - innerWidth);
    ok(wide <= 0, `${hash} is ${wide} px too wide`);
  }
  await page.getByRole('button', { name: 'Show the sidebar' }).tap();
  await page.locator('.history a', { hasText: PARIS }).tap();
  await page.getByText(ANSWER).first().waitFor();
  equal(await page.locator('.shell.drawer').count(), 0, 'the drawer is closed again');
}));

test('on a phone no field has letters below 16 pixels: Safari would zoom into it', () =>
  holds(onCpu(site, phone), async (page) => {
    for (const hash of ['#/', '#/models', '#/train']) {
      await page.goto(site.url + hash);
      await page.waitForTimeout(200);
      if (hash === '#/') await page.getByRole('button', { name: 'Conversation settings' }).tap();
      if (hash === '#/train') await page.getByText('Advanced').tap();
      const written = 'input:not([type=checkbox], [type=radio], [type=range]), textarea, select';
      const sizes = await page.locator(written).evaluateAll((fields) => fields.map((field) =>
        [
          field.id || field.getAttribute('aria-label'),
          parseFloat(getComputedStyle(field).fontSize),
        ]));
      ok(sizes.length > 1);
      same(sizes.filter(([, size]) => size < 16), [], hash);
      if (hash === '#/') await page.getByRole('button', { name: 'Close', exact: true }).tap();
    }
  }));

// ---- what a model writes ----

/** Parts of the page by themselves, bundled as the page is. */
async function openUnits() {
  const { build } = await import('../../../web/app/node_modules/vite/dist/node/index.js');
  const outDir = path.resolve('build/tmp/units');
  const alias = Object.fromEntries(
    ['marked', 'dompurify'].map((name) => [name, path.resolve('web/app/node_modules', name)]),
  );
  await build({
    root: 'tests/web/app/units', configFile: false, logLevel: 'error', resolve: { alias },
    build: { outDir, emptyOutDir: true },
  });
  return openSite(outDir);
}

test('a growing answer looks as if it had come in one piece, a step costs the same at its end, '
  + 'and sums come out right', async () => {
  const units = await openUnits();
  try {
    await holds(openBrowser(), async (page) => {
      await page.goto(units.url);
      const valueOf = async (name) =>
        (await page.waitForFunction((name) => globalThis[name], name)).jsonValue();
      const { same: alike, early, late, characters } = await valueOf('markdown');
      ok(alike, 'the same HTML');
      ok(
        late < 5 + 4 * early,
        `${early} ms a step at first, ${late} ms after ${characters} characters`,
      );
      same(await valueOf('sums'), [
        7, 9, -4, 0.5, 512, 3, 3, 0.5, 411.075, 5.1, 6, 6.28318530717959, 15, 7, 7,
        0.3, 250, 42, 3, 1001,
        'the result is not a number', 'the expression ends too early', 'expected ")" at the end',
        'log takes one value', 'did not understand "constructor"',
        'did not understand "alert"', 'a factorial needs a whole number from 0 to 170',
        'the expression ends too early',
      ]);
    });
  } finally {
    await units.close();
  }
});

test('tags that cannot act are kept, footnotes and tasks are read, '
  + 'and no hostile markup gets past the sanitiser', async () => {
  const units = await openUnits();
  try {
    await holds(openBrowser(), async (page) => {
      await page.goto(units.url);
      const { plain, made, seconds } =
        await (await page.waitForFunction(() => globalThis.markup)).jsonValue();
      equal(
        plain.inline,
        '<p>H<sub>2</sub>O, x<sup>2</sup>, press <kbd>Ctrl</kbd>, one<br>two<br>three</p>\n',
      );
      equal(
        plain.tasks,
        '<ul>\n<li class="task"><span class="check">☑</span> done</li><li class="task"><span '
          + 'class="check">☐</span> to do</li><li>neither</li></ul>\n',
      );
      equal(
        plain.notes,
        '<p>A claim.<sup><button type="button" class="note" data-note="1">1</button></sup> A class '
          + '[^abc] stays.</p>\n<p class="footnote" tabindex="-1" data-noted="1"><sup>1</sup> '
          + 'Where it <em>stands</em>. And more.</p>',
      );
      equal(
        plain.details,
        '<p>Before</p>\n<details><summary>More '
          + '<strong>here</strong></summary><ul>\n<li>a</li><li>b</li></ul>\n'
          + '<details '
          + 'open=""><summary>Inner</summary><p>deep</p>\n</details></details><p>After</p>\n',
      );
      equal(plain.unclosed, '<details><summary>S</summary><p>text</p>\n</details>');
      equal(plain.lines, '<p>one<br>two</p>\n');
      equal(plain.shown, '<p class="raw">&lt;div&gt;\n  &lt;b&gt;bold&lt;/b&gt;\n&lt;/div&gt;</p>');
      ok(seconds < 5, `${seconds} s for hostile text`);
      const found = await page.evaluate((made) => {
        const tags = ('p br hr em strong del code pre blockquote ul ol li a h1 h2 h3 h4 h5 h6 '
          + 'table thead tbody tr th td div span figure figcaption button sub sup kbd '
          + 'details summary').split(' ');
        const names = ('href class start tabindex type dir open data-copy data-lang data-note '
          + 'data-noted rel target').split(' ');
        const bad = [];
        for (const html of made) {
          const box = document.createElement('div');
          document.body.append(box);
          box.innerHTML = html; // as the page does
          for (const element of box.querySelectorAll('*')) {
            if (!tags.includes(element.localName)
              || element.namespaceURI !== 'http://www.w3.org/1999/xhtml')
              bad.push(`<${element.localName}> of ${html.slice(0, 80)}`);
            for (const { name, value } of element.attributes)
              if (!names.includes(name) || (name === 'href' && !/^(?:https?|mailto):/.test(value)))
                bad.push(`${name}="${value}" of ${html.slice(0, 80)}`);
          }
          for (const summary of box.querySelectorAll('details')) summary.open = true;
        }
        return bad;
      }, made);
      same(found, []);
      await page.waitForTimeout(200);
      equal(await page.evaluate(() => globalThis.hacked), undefined);
    });
  } finally {
    await units.close();
  }
});

test('what a model writes cannot act: no script, no request, no foreign markup',
    () => holds(onCpu(site), async (page) => {
  const evil =
    '<img src=x onerror="window.hacked=1"> '
      + '<script>window.hacked=1</script>\n\n'
      + '[link](javascript:window.hacked=1) ![pic](http://example.com/x.png)\n\n'
      + '<iframe src="http://example.com"></iframe>';
  const data = archive();
  data.threads[0].messages[1].content =
    `${evil}\n\n\`\`\`html\n<b `
      + `onclick="window.hacked=1">\n\`\`\`\n\n$\\href{javascript:window.hacked=1}{x}$`;
  await importArchive(page, data);
  await page.goto(`${site.url}#/c/strings`);
  await page.locator('.katex').waitFor();
  equal(await page.evaluate(() => window.hacked), undefined);
  equal(
    await page.locator(
      '.markdown img, .markdown iframe, .markdown script, .markdown [onclick], '
        + '.markdown a[href^="javascript"]',
    ).count(),
    0,
  );
}));

async function importArchive(page, data) {
  await page.goto(`${site.url}#/settings`);
  const chooser = page.waitForEvent('filechooser');
  await page.getByRole('button', { name: 'Import' }).click();
  await (await chooser).setFiles({
    name: 'sample.json', mimeType: 'application/json', buffer: Buffer.from(JSON.stringify(data)),
  });
  await page.getByText(/^Imported/).waitFor();
}

// ---- accessibility ----

for (const [look, options] of [
  ['wide and light', { colorScheme: 'light' }],
  ['a phone and dark', { ...phone, colorScheme: 'dark' }],
]) {
  test('axe finds nothing on any view, '
    + `${look}`, () => holds(onCpu(site, { ...options, reducedMotion: 'reduce' }), async (page) => {
    await importArchive(page, archive());
    await page.getByRole('button', { name: 'Dismiss' }).click();
    for (const hash of ['#/', '#/c/strings', '#/models', '#/train', '#/device', '#/settings']) {
      await page.goto(site.url + hash);
      await page.waitForTimeout(400);
      if (hash === '#/c/strings') await page.locator('.katex').first().waitFor();
      await checkAxe(page, hash);
    }
    await page.goto(`${site.url}#/c/strings`);
    for (const summary of await page.locator('.turn.assistant summary').all())
      await summary.click();
    await checkAxe(page, 'with thoughts and tools open');
    await page.getByRole('button', { name: 'Conversation settings' }).click();
    await checkAxe(page, 'the dialog of a conversation');
    await page.keyboard.press('Escape');
    if (options.isMobile) await page.getByRole('button', { name: 'Show the sidebar' }).tap();
    else await page.getByRole('button', { name: /^Actions for Why/ }).click();
    if (options.isMobile) await page.locator('.shell.drawer').waitFor();
    // Visibility is inherited, and an element's transition begins when that of the one around it
    // has ended: none may be left.
    await page.waitForFunction(() =>
      document.getAnimations().every((a) => a.effect?.getTiming().iterations === Infinity));
    await checkAxe(page, 'the sidebar with what it opens');
  }));
}

await done(process.argv[process.argv.indexOf('--only') + 1 || process.argv.length]);
await site.close();
