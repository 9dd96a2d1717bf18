// Diffusion models on the page, in Chromium on the CPU: a canvas that takes shape, its steps
// afterwards, words edited in place. node tests/web/app/test_canvas.mjs [--only WORDS]
import fs from 'node:fs';
import { done, equal, ok, same, test } from '../check.mjs';
import { syntheticDiffusion, trainedDiffusion } from '../diffusion_model.mjs';
import {
  answered, ask, checkAxe, composer, holds, morePieces, onCpu, pauseAnswers, ready,
} from './browser.mjs';
import { canvasArchive } from './sample.mjs';
import { openSite } from './site.mjs';
import { unit } from './unit.mjs';

const { sourceRange } = await unit('web/app/src/lib/selection.ts');
const { frameOf, isSmall, runsOf, textBefore, toFrames } = await unit('web/app/src/chat/canvas.ts');
const MODEL = fs.readFileSync(syntheticDiffusion());
const site = await openSite();
site.routes.set('/api/tags', (_, response) =>
  response.writeHead(200, { 'content-type': 'application/json' }).end('{"models":[]}'));
const phone = { viewport: { width: 390, height: 844 }, hasTouch: true, isMobile: true };

// ---- parts ----

test('what is selected in an answer is found in its source', () => {
  const source = 'A **cat** and a cat, and a [cat](x) too.';
  const at = (before, words) => sourceRange(source, before, words);
  same(at('A ', 'cat'), [4, 7]);
  same(at('A cat and a ', 'cat'), [16, 19]);
  same(at('A cat and a ', ' cat, and '), [16, 24], 'the spaces around it are left out');
  same(at('A cat and a cat, and a ', 'cat'), [28, 31]);
  equal(at('A ', 'cat and a'), undefined, 'markup lies in between');
  equal(at('A', ' '), undefined);
});

test('a step becomes a small frame, and a frame from a file is what it should be', () => {
  const frame = frameOf({
    canvas: 1, step: 2, steps: 9, pieces: ['a', ' b', ' c', 'after'], end: 3,
    accepted: [true, false, false, true], entropy: [0, 1, 3, 0],
  });
  same(frame, { canvas: 1, step: 2, steps: 9, pieces: ['a', ' b', ' c'], sure: '210' });
  same(runsOf(frame).map((r) => r.text), ['a', ' b', ' ·']);
  equal(textBefore([{ ...frame, canvas: 0, pieces: ['x'] }, frame], frame), 'x');
  same(toFrames(JSON.parse(JSON.stringify([frame]))), [frame]);
  for (const bad of [
    null, [], [{}], [{ ...frame, sure: '21' }], [{ ...frame, sure: '21x' }],
    [{ ...frame, pieces: [1, 2, 3] }], [{ ...frame, step: -1 }],
  ])
    equal(toFrames(bad), null, JSON.stringify(bad));
  ok(isSmall([frame]) && !isSmall(Array(1000).fill(frame)));
});

// ---- the page ----

/** A page with the synthetic model loaded, whose answers have one canvas. */
async function withCanvas(options = {}, steps = 12) {
  const b = await onCpu(site, options);
  await b.page.evaluate((steps) => localStorage.setItem('bezel.prefs', JSON.stringify({
    backend: 'cpu', chat: { temperature: 0, maxTokens: 48, steps },
  })), steps);
  await b.page.reload();
  await ready(b.page);
  await choose(b.page, 'canvas.gguf', MODEL);
  return b;
}

async function choose(page, name, buffer) {
  await page.goto(`${site.url}#/models`);
  const chooser = page.waitForEvent('filechooser');
  await page.getByRole('button', { name: 'Choose files' }).click();
  await (await chooser).setFiles({ name, mimeType: 'application/octet-stream', buffer });
  await ready(page, name.split('.')[0]);
  await page.goto(`${site.url}#/`);
}

async function importCanvas(page) {
  await page.goto(`${site.url}#/settings`);
  const chooser = page.waitForEvent('filechooser');
  await page.getByRole('button', { name: 'Import' }).click();
  await (await chooser).setFiles({
    name: 'canvas.json', mimeType: 'application/json',
    buffer: Buffer.from(JSON.stringify(canvasArchive())),
  });
  await page.getByText(/^Imported/).waitFor();
  await page.getByRole('button', { name: 'Dismiss' }).click();
  await page.goto(`${site.url}#/c/canvas`);
  await page.getByText('The capital of France is Paris.').first().waitFor();
}

const lastAnswer = (page) => page.getByRole('article', { name: 'Answer' }).last();
const textOf = async (page) =>
  (await lastAnswer(page).locator('.markdown').last().innerText()).trim();
/** Ask, once the conversation has been read; a phone has no Enter. */
async function send(page) {
  await page.locator('.messages:not([aria-busy=true])').waitFor();
  await composer(page).fill('hello');
  await page.getByRole('button', { name: 'Send' }).click();
}
const complete = (page) => page.getByRole('button', { name: 'Send' }).waitFor();
const button = (page, name) => lastAnswer(page).getByRole('button', { name });
const overflows = (page) =>
  page.evaluate(() => document.documentElement.scrollWidth > document.documentElement.clientWidth);

test('an answer takes shape where one can see it, then it is text; its steps can be gone through, '
  + 'also after a reload', () => holds(withCanvas({}, 40), async (page) => {
  await pauseAnswers(page, 10);
  await send(page);
  const canvas = page.locator('.denoising .canvas'), line = page.locator('.denoising .steps-line');
  await canvas.waitFor();
  equal(await canvas.evaluate((e) => e.closest('[aria-hidden]') !== null), true, 'it is not read');
  for (let n = 0; n < 3; n++) {
    const text = await line.textContent();
    ok(/^Step \d+ of 40 at most · \d+ of \d+ tokens accepted$/.test(text), text);
    await morePieces(page, 1);
    await line.and(page.locator(`:not(:text-is("${text}"))`)).waitFor();
  }
  await morePieces(page, 100);
  await complete(page);
  const stats = await lastAnswer(page).locator('.stats').textContent();
  ok(/tok\/s · first\s+token .* in 40 steps/.test(stats), stats);
  const answer = await textOf(page);
  const look = async () => {
    await button(page, 'How it took shape').click();
    equal(await button(page, 'How it took shape').getAttribute('aria-expanded'), 'true');
    const slider = lastAnswer(page).getByRole('slider', { name: 'Step' });
    const words = lastAnswer(page).locator('.steps-box .canvas');
    equal(await slider.getAttribute('aria-valuetext').then((t) => t.slice(0, 8)), 'Step 40 ');
    const last = await words.textContent();
    await slider.focus();
    await page.keyboard.press('Home');
    equal(await slider.getAttribute('aria-valuetext').then((t) => t.slice(0, 7)), 'Step 1 ');
    ok(await words.textContent() !== last, 'another step, another canvas');
    await page.keyboard.press('ArrowRight');
    equal(await slider.getAttribute('aria-valuetext').then((t) => t.slice(0, 7)), 'Step 2 ');
    return last;
  };
  const last = await look();
  ok(answer.length > 0);
  await checkAxe(page, 'an answer with its steps');
  await page.reload();
  await button(page, 'How it took shape').waitFor();
  equal(await look(), last, 'the history has them');
}));

test('who wants nothing to move sees how far it is, and then the text',
    () => holds(withCanvas({ reducedMotion: 'reduce' }), async (page) => {
  await pauseAnswers(page, 10);
  await send(page);
  await page.locator('.denoising .bar').waitFor();
  equal(await page.locator('.denoising .canvas').count(), 0);
  ok((await page.locator('.denoising .steps-line').textContent()).startsWith('Step '));
  await morePieces(page, 100);
  await complete(page);
  ok((await textOf(page)).length > 0);
}));

test('an answer is stopped within a canvas, and the next one is whole',
    () => holds(withCanvas(), async (page) => {
  await pauseAnswers(page, 10);
  await send(page);
  await page.locator('.denoising .canvas').waitFor();
  await page.keyboard.press('Escape');
  await complete(page);
  await page.getByText('Stopped.').waitFor();
  equal(await page.locator('.denoising').count(), 0);
  await page.getByRole('button', { name: 'Conversation settings' }).click();
  equal(await page.getByLabel('Temperature').count(), 0, 'a canvas has none to choose');
  await page.getByLabel('Steps').fill('3');
  await page.keyboard.press('Tab');
  await page.keyboard.press('Escape');
  await pauseAnswers(page, 64);
  await ask(page, 'again');
  ok((await lastAnswer(page).locator('.stats').textContent()).includes('in 3 steps'));
}));

test('words selected in a field are written again by the keyboard, as another version',
    () => holds(withCanvas({}, 3), async (page) => {
  await importCanvas(page);
  const before = await textOf(page);
  await button(page, 'Edit in place').focus();
  await page.keyboard.press('Enter');
  const field = page.getByRole('textbox', { name: 'Select the words to write again' });
  equal(await field.evaluate((e) => e === document.activeElement), true);
  equal(await page.getByRole('button', { name: 'Write again' }).isDisabled(), true);
  await page.keyboard.press('Escape');
  equal(await field.count(), 0, 'Escape leaves it as it was');
  await button(page, 'Edit in place').click();
  const at = before.indexOf('France');
  await field.evaluate((e, at) => e.setSelectionRange(at, at), at);
  await page.keyboard.type('nothing');
  equal(await field.inputValue(), before, 'the answer is not changed by typing');
  for (let i = 0; i < 'France'.length; i++) await page.keyboard.press('Shift+ArrowRight');
  await page.locator('.chosen mark').getByText('France', { exact: true }).waitFor();
  await checkAxe(page, 'the panel');
  await page.getByLabel('What should be there').fill('another country');
  await page.getByRole('radio', { name: 'Longer' }).check({ force: true });
  await page.keyboard.press('Enter');
  await button(page, 'Previous version').waitFor();
  const edited = await textOf(page);
  ok(edited.startsWith('The capital of'), edited);
  ok(edited.endsWith('is Paris. It lies on the river Seine.'), edited);
  ok(edited !== before);
  await button(page, 'How it took shape').click();
  ok((await page.locator('.steps-box .canvas').textContent()).includes('Seine'));
  await button(page, 'Previous version').click();
  equal(await textOf(page), before);
}));

test('words selected in the answer itself have a button beside them',
    () => holds(withCanvas({}, 2), async (page) => {
  await importCanvas(page);
  const before = await textOf(page);
  await page.evaluate(() => {
    const walker = document.createTreeWalker(
      document.querySelector('[data-content]'), NodeFilter.SHOW_TEXT,
    );
    const node = walker.nextNode(), at = node.nodeValue.indexOf('Seine');
    getSelection().setBaseAndExtent(node, at, node, at + 5);
  });
  const menu = page.locator('.selection-menu');
  await menu.waitFor();
  await checkAxe(page, 'with the button');
  await menu.click();
  await page.locator('.chosen mark').getByText('Seine', { exact: true }).waitFor();
  await page.getByRole('button', { name: 'Write again' }).click();
  await button(page, 'Previous version').waitFor();
  const edited = await textOf(page);
  ok(edited.startsWith('The capital of France is Paris. It lies on the river'), edited);
  ok(edited !== before);
  await page.reload();
  await button(page, 'Previous version').waitFor();
  equal(await textOf(page), edited, 'the history has the version');
}));

test('an edit that is stopped leaves the answer as it was',
    () => holds(withCanvas(), async (page) => {
  await importCanvas(page);
  await pauseAnswers(page, 10);
  const before = await textOf(page);
  await button(page, 'Edit in place').click();
  await page.getByRole('textbox', { name: 'Select the words to write again' }).evaluate((e) =>
    e.setSelectionRange(4, 11));
  await page.locator('.chosen mark').waitFor();
  await page.getByRole('button', { name: 'Write again' }).click();
  await page.locator('.denoising .canvas').waitFor();
  await page.keyboard.press('Escape');
  await complete(page);
  equal(await textOf(page), before);
  equal(await page.getByRole('button', { name: 'Previous version' }).count(), 0);
}));

test('a model that draws its words has none of this', () => holds(onCpu(site), async (page) => {
  await importCanvas(page);
  equal(await button(page, 'Edit in place').count(), 0);
  await button(page, 'How it took shape').click(); // of the answer, whoever is loaded
  await page.locator('.steps-box .canvas').waitFor();
}));

for (const [look, options] of [
  ['wide and dark', { colorScheme: 'dark' }], ['a phone and light', phone],
])
  test(`axe finds nothing while a canvas takes shape, in its steps and in the panel, ${look}`,
    () => holds(withCanvas({ ...options, reducedMotion: 'no-preference' }), async (page) => {
    await importCanvas(page);
    await pauseAnswers(page, 10);
    await button(page, 'How it took shape').click();
    const slider = lastAnswer(page).getByRole('slider', { name: 'Step' });
    await slider.evaluate((e) => {
      e.value = 2;
      e.dispatchEvent(new Event('input', { bubbles: true }));
    });
    await checkAxe(page, 'steps');
    await button(page, 'Edit in place').click();
    await checkAxe(page, 'panel');
    equal(await overflows(page), false, 'nothing is wider than the page');
    await page.keyboard.press('Escape');
    await send(page);
    await page.locator('.denoising .canvas').waitFor();
    await checkAxe(page, 'taking shape');
    equal(await overflows(page), false, 'nothing is wider than the page');
    await page.getByRole('button', { name: 'Stop' }).click();
    await complete(page);
  }));

test('one watches tiny-diffusion find a fact', () => holds(onCpu(site), async (page) => {
  await choose(page, 'tiny-diffusion.gguf', fs.readFileSync(trainedDiffusion));
  const answer = await ask(page, 'What is the capital of France?');
  ok(answer.includes('Paris'), answer);
  equal(await answered(page), answer);
  await button(page, 'How it took shape').click();
  const words = lastAnswer(page).locator('.steps-box .canvas');
  ok((await words.textContent()).includes('Paris'));
}));

test('one watches tiny-diffusion find a story', () => holds(onCpu(site), async (page) => {
  await choose(page, 'tiny-diffusion.gguf', fs.readFileSync(trainedDiffusion));
  await ask(page, 'Tell me a story about a fox.');
  await button(page, 'How it took shape').click();
  const words = lastAnswer(page).locator('.steps-box .canvas');
  const sure = () => words.locator('.sure').evaluateAll((all) =>
    all.map((e) => e.textContent).join('').length);
  const last = await sure();
  await lastAnswer(page).getByRole('slider', { name: 'Step' }).focus();
  await page.keyboard.press('Home');
  ok(await sure() < last, 'more of it is sure at the end');
}));

await done(process.argv[process.argv.indexOf('--only') + 1 || process.argv.length]);
await site.close();
