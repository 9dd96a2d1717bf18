// Answers as JSON in the page: the setting with its schema, checked as it is typed, and how such
// answers look. node tests/web/app/test_json.mjs [--only WORDS]
import { done, equal, ok, same, test } from '../check.mjs';
import { wrongWith } from '../structured_run.mjs';
import { answered, ask, checkAxe, composer, holds, onCpu, ready } from './browser.mjs';
import { openSite } from './site.mjs';
import { unit } from './unit.mjs';

const { asCode, isJson, layOut } = await unit('web/app/src/chat/json.ts');
const { examples } = await unit('web/app/src/chat/schemas.ts');
const site = await openSite();

test('JSON is laid out without a change to what it says, wherever it ends', () => {
  for (const value of [
    {}, [], 'a{b', 0, { a: [] }, { a: {}, b: [1, [2, { c: null }]] },
    { 'k:,{}[]"\\': '\\"},{ "' }, [['"', '\\'], ['日本', '\n']],
  ]) {
    const text = JSON.stringify(value);
    same(JSON.parse(layOut(text)), value, text);
    equal(layOut(text), JSON.stringify(value, null, 2));
    equal(layOut(layOut(text)), layOut(text));
    for (let i = 0; i < text.length; i++)
      equal(layOut(text.slice(0, i)).replace(/\s/g, ''), text.slice(0, i).replace(/\s/g, ''));
  }
  equal(layOut('{"a":1.50,"b":12345678901234567890}'),
    '{\n  "a": 1.50,\n  "b": 12345678901234567890\n}');
});

test('an answer is JSON where all of it is; a fence is longer than those in its strings', () => {
  ok(isJson('{"a": 1}', false, false) && isJson('[1]', false, false));
  ok(!isJson('{"a": 1', false, true) && !isJson('5', false, true) && !isJson('{a}', false, false));
  ok(isJson('{"a": 1', true, true) && !isJson('{"a": 1', true, false));
  ok(asCode('{"a":"```` `"}').startsWith('`````json\n'));
});

const settings = (page) => page.getByRole('button', { name: 'Conversation settings' });
const pick = (page, name) => page.getByRole('radio', { name }).check({ force: true });
const field = (page) => page.getByLabel('Schema', { exact: true });
const good = (page) => page.getByText('Every answer will be JSON of this schema.');
const code = (page) => page.locator('.turn.assistant figure.code').last();

test('answers keep to a schema that is checked as it is typed, and are shown as code',
    () => holds(onCpu(site), async (page) => {
  await settings(page).click();
  await pick(page, 'A schema');
  await field(page).fill('{"type": "object", "properties": {"a": {"type": "strin"}}}');
  const problem = page.locator('.problem');
  await problem.waitFor();
  equal((await problem.innerText()).trim(), 'type at #/properties/a: not the name of a type');
  equal(await field(page).getAttribute('aria-invalid'), 'true');
  await field(page).fill('{"type": ');
  await problem.filter({ hasText: 'JSON' }).waitFor();
  await checkAxe(page, 'a schema that cannot be kept');
  for (const { name } of examples) {
    await page.getByRole('button', { name, exact: true }).click();
    await good(page).waitFor();
  }
  await checkAxe(page, 'a schema that can');
  await page.keyboard.press('Escape');
  await ask(page, 'How was the film?');
  const { schema } = examples.at(-1);
  equal(wrongWith(schema, await code(page).locator('code').innerText()), undefined);
  equal(await code(page).locator('figcaption span').innerText(), 'json');
  await page.reload();
  await ready(page);
  await code(page).waitFor();
  await settings(page).click();
  ok(await page.getByRole('radio', { name: 'A schema' }).isChecked(), 'it is kept');
  same(JSON.parse(await field(page).inputValue()), schema);
  await pick(page, 'Off');
  await page.keyboard.press('Escape');
  ok(/Paris.*\.$/.test(await ask(page, 'What is the capital of France?')));
  equal(await page.locator('.turn.assistant figure.code').count(), 1, 'the other stays as it was');
}));

test('any object, with thoughts, by the keyboard alone', () => holds(onCpu(site), async (page) => {
  await settings(page).focus();
  await page.keyboard.press('Enter');
  await page.getByRole('radio', { name: 'Off' }).focus();
  await page.keyboard.press('ArrowRight');
  ok(await page.getByRole('radio', { name: 'Any object' }).isChecked());
  await page.getByRole('switch', { name: 'Thinking' }).focus();
  await page.keyboard.press('Space');
  await page.keyboard.press('Escape');
  await ask(page, 'Give me the capital of France as JSON.');
  const value = JSON.parse(await code(page).locator('code').innerText());
  ok(typeof value === 'object' && !Array.isArray(value));
  equal(await page.getByText('Thoughts').count(), 1);
}));

test('a schema that cannot be kept fails with its sentence, and nothing else is lost',
    () => holds(onCpu(site), async (page) => {
  await settings(page).click();
  await pick(page, 'A schema');
  await field(page).fill('{"$dynamicRef": "#x"}');
  await page.locator('.problem').waitFor();
  await page.keyboard.press('Escape');
  await composer(page).fill('Hello');
  await page.keyboard.press('Enter');
  const note = page.locator('.interrupted.bad');
  await note.waitFor();
  ok(/\$dynamicRef at #/.test(await note.innerText()), await note.innerText());
  await settings(page).click();
  await pick(page, 'Off');
  await page.keyboard.press('Escape');
  await page.getByRole('button', { name: 'Answer again' }).click();
  equal(await answered(page), 'Hello! How can I help you?');
}));

const phone = { viewport: { width: 390, height: 844 }, hasTouch: true, isMobile: true };

test('on a phone the setting fits the screen', () => holds(onCpu(site, phone), async (page) => {
  await settings(page).tap();
  await pick(page, 'A schema');
  await page.getByRole('button', { name: 'List', exact: true }).tap();
  await good(page).waitFor();
  const wide = await page.evaluate(() =>
    [...document.querySelectorAll('dialog *')]
      .filter((e) => e.getBoundingClientRect().right > innerWidth + 0.5)
      .map((e) => e.outerHTML.slice(0, 80)));
  same(wide, []);
  await checkAxe(page, 'on a phone');
}));

await done(process.argv[process.argv.indexOf('--only') + 1 || process.argv.length]);
await site.close();
