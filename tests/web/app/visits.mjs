// visits - what a person does with the page in any browser: a first visit, an answer, a reload,
// offline, fine-tuning, a reset.
//
// A driver is { errors, goto(url), reload(), evaluate(fn, ...args), click(fn, ...args), type(text),
// press(key), close() }. Functions run in the page and can use nothing of this file; click's says
// the element, and click whether there was one.
import { equal, ok, same, test } from '../check.mjs';
import { newGate, openSite } from './site.mjs';

const SECONDS = 240; // that anything may take on a machine that does ten other things
const PARIS = 'What is the capital of France?';
const sleep = (ms) => new Promise((over) => setTimeout(over, ms));

/** Until the attempt says something true, which is returned. */
async function patiently(driver, what, attempt) {
  let failure;
  for (const end = performance.now() + 1000 * SECONDS; performance.now() < end; await sleep(100)) {
    try {
      const value = await attempt();
      if (value) return value;
      failure = undefined;
    } catch (e) {
      failure = e; // the page may be on its way to another one
    }
  }
  const text = await driver.evaluate(() => document.body.innerText.replace(/\s+/g, ' '));
  throw new Error(`not within ${SECONDS} s: ${what}; the page says: ${text}`, { cause: failure });
}

const until = (driver, what, fn, ...args) =>
  patiently(driver, what, () => driver.evaluate(fn, ...args));

const says = (driver, words) =>
  until(driver, words, (words) => document.body.innerText.includes(words), words);

const ready = (driver) =>
  until(driver, 'a model', () => document.querySelector('.model-chip .dot.ready') !== null);

/** A button by its label or its text, once it can be pressed. */
const press = (driver, name) =>
  patiently(driver, `a button "${name}"`, () => driver.click((name) => {
    const named = (b) => (b.getAttribute('aria-label') ?? b.textContent.trim()) === name;
    return [...document.querySelectorAll('button:enabled')].find(named);
  }, name));

async function ask(driver, text) {
  const isRead = () => document.querySelector('.messages[aria-busy=true]') === null;
  await until(driver, 'the conversation is read', isRead);
  await driver.click(() => document.querySelector('textarea[aria-label=Message]'));
  await driver.type(text);
  await driver.press('Enter');
  return until(driver, `an answer to "${text}"`, (text) => {
    const [question, answer] = [...document.querySelectorAll('.turn')].slice(-2);
    if (!question?.innerText.includes(text)) return null;
    if (!answer?.querySelector('.stats')?.textContent.includes('first token')) return null;
    return [...answer.querySelectorAll('.markdown')].at(-1).innerText.trim();
  }, text);
}

async function openPage() {
  const site = await openSite();
  site.routes.set('/api/tags', (_, response) =>
    response.writeHead(200, { 'content-type': 'application/json' }).end('{"models":[]}'));
  return site;
}

/** A conversation of the likeliest words; how the model got there is the page's own choice. It is
 *  cut short by a reload while the offline copy is made. */
async function firstVisit(driver, site) {
  const gate = newGate();
  site.pace = gate.pace;
  await driver.goto(site.url);
  await until(driver, 'the offline copy is begun', async () =>
    Boolean((await navigator.serviceWorker.getRegistration())?.installing));
  await driver.evaluate(() =>
    localStorage.setItem('bezel.prefs', JSON.stringify({ chat: { temperature: 0 } })));
  await driver.reload();
  gate.open();
  await ready(driver);
  equal(await ask(driver, PARIS), 'The capital of France is Paris.');
}

/** Until a page without a network has all that it needs. */
const offlineCopy = (driver) => until(driver, 'the offline copy is whole', async () => {
  const [registration] = await navigator.serviceWorker.getRegistrations();
  const copies = await Promise.all((await caches.keys()).map((key) => caches.open(key)));
  const urls = (await Promise.all(copies.map((copy) => copy.keys()))).flat().map((r) => r.url);
  const has = (part) => urls.some((url) => url.includes(part));
  return registration?.active?.state === 'activated' && has('.gguf') && has('sqlite3');
});

async function growingComposer(driver) {
  const height = () => driver.evaluate(() => document.querySelector('#composer').clientHeight);
  await driver.click(() => document.querySelector('#composer'));
  await driver.type('one line');
  const before = await height();
  await driver.type(' and more than fits beside it, so that there are several of them'.repeat(4));
  ok((await height()) > before + 20, `${before} and then ${await height()} pixels`);
  await driver.evaluate(() => document.querySelector('#composer').select());
  await driver.press('Backspace');
  equal(await height(), before);
}

async function startTraining(driver, site) {
  await driver.goto(`${site.url}#/train`);
  await press(driver, 'Use a sample');
  await says(driver, '30 examples,');
  await press(driver, 'Train');
}

async function reset(driver, site) {
  await driver.goto(`${site.url}#/settings`);
  await press(driver, 'Reset everything');
  await press(driver, 'Delete everything');
  await until(driver, 'the page as on the first day',
    () => location.hash === '' && document.querySelector('.model-chip') !== null);
  equal(await driver.evaluate(() => document.querySelectorAll('.history a').length), 0);
}

const errorsShown = (driver) => driver.evaluate(() =>
  [...document.querySelectorAll('.notice.error')].map((notice) => notice.innerText.trim()));

/** The tests, in one browser from the first visit to the reset. Says what closes it. */
export async function visits(open) {
  const site = await openPage(), driver = await open();

  test('on a first visit the small model answers, and nothing is to be told', async () => {
    await firstVisit(driver, site);
    await offlineCopy(driver);
    await sleep(500);
    const told = await driver.evaluate(() =>
      [...document.querySelectorAll('.notice p')].map((notice) => notice.innerText));
    same(told, []);
  });

  test('where one writes is as tall as what is written', () => growingComposer(driver));

  test('after a reload the conversation goes on without being read again', async () => {
    await until(driver, 'what the model has read is kept', async () => {
      const root = await navigator.storage.getDirectory();
      const app = await root.getDirectoryHandle('bezel-app');
      const states = await app.getDirectoryHandle('states');
      for await (const name of states.keys()) if (name.endsWith('.kv')) return true;
      return false;
    });
    await sleep(1000); // then the conversation is told, which nobody sees
    await driver.reload();
    await says(driver, 'The capital of France is Paris.');
    await ready(driver);
    equal(await ask(driver, 'And Japan?'), 'The capital of Japan is Tokyo.');
    const told = await driver.evaluate(() => [...document.querySelectorAll('.stats')].at(-1).title);
    const [, all, known] = /prompt of ([\d,]+) tokens, ([\d,]+) of them known/.exec(told);
    ok(Number(known) > 15 && Number(all) - Number(known) < 20, told);
  });

  test('the page, the model and the history are there without a network', async () => {
    await offlineCopy(driver);
    await sleep(1000); // the end of an answer is written when it has been shown
    site.offline = true;
    await driver.reload();
    await says(driver, 'The capital of France is Paris.');
    await ready(driver);
    equal(await ask(driver, 'And Italy?'), 'The capital of Italy is Rome.');
    site.offline = false;
  });

  test('an adapter is trained, with a reload on the way, and knows its facts', async () => {
    await startTraining(driver, site);
    await says(driver, 'Were the page closed now, it would go on from step');
    await driver.reload();
    await ready(driver);
    await says(driver, 'is half done: step');
    await press(driver, 'Continue');
    await until(driver, 'forty steps',
      () => /Learning, step (?:[4-9]\d|\d{3,}) of/.test(document.body.innerText));
    await press(driver, 'Stop and keep');
    await says(driver, 'is in the library, after');
    const answers = await driver.evaluate(() =>
      [...document.querySelectorAll('.samples td:nth-child(3)')].map((cell) => cell.textContent));
    ok(answers[0]?.includes('Mellick'), answers.join(' | '));
  });

  test('a reset leaves nothing', async () => {
    await reset(driver, site);
    const files = await driver.evaluate(async () => {
      const names = [], walk = async (folder) => {
        for await (const [name, handle] of folder.entries())
          handle.kind === 'directory' ? await walk(handle) : names.push(name);
      };
      await walk(await navigator.storage.getDirectory());
      return names;
    });
    same(files.filter((name) => /\.(kv|part|gguf|safetensors)$/.test(name)), []);
  });

  test('nothing of it was an error', () => same(driver.errors, []));

  return async () => {
    await driver.close();
    await site.close();
  };
}

/** One visit where the browser's owner lets no site keep anything. */
export function visitRefused(open) {
  test('where no site may keep anything the small model answers, and a reset works', async () => {
    const site = await openPage(), driver = await open();
    try {
      await driver.goto(site.url);
      await ready(driver);
      ok(/Paris/.test(await ask(driver, PARIS)));
      same(await errorsShown(driver), []);
      await driver.goto(`${site.url}#/settings`);
      await says(driver, 'no lasting storage: conversations end with the tab');
      await reset(driver, site);
      same(driver.errors, []);
    } finally {
      await driver.close();
      await site.close();
    }
  });
}

/** The same where the browser gives the page no files: nothing outlives the tab, all else works. */
export async function visitsWithoutFiles(open) {
  const site = await openPage(), driver = await open();

  test('without files the small model answers, and Settings say what does not last', async () => {
    await firstVisit(driver, site);
    same(await errorsShown(driver), []);
    await driver.goto(`${site.url}#/settings`);
    await says(driver, 'no lasting storage: conversations end with the tab');
    await driver.goto(`${site.url}#/models`);
    await says(driver, 'tiny');
    await sleep(1000); // all places have been looked at
    same(await errorsShown(driver), []);
  });

  test('where one writes is as tall as what is written', async () => {
    await driver.goto(`${site.url}#/`);
    await growingComposer(driver);
  });

  test('the page and the model are there without a network', async () => {
    await offlineCopy(driver);
    site.offline = true;
    await driver.reload();
    await ready(driver);
    equal(await ask(driver, PARIS), 'The capital of France is Paris.');
    site.offline = false;
  });

  test('what is learned without files can be used and saved', async () => {
    await startTraining(driver, site);
    await until(driver, 'two steps', () => /Learning, step (?:[2-9]|\d\d) of/.test(
      document.body.innerText,
    ));
    await press(driver, 'Stop and keep');
    await says(driver, 'It could not be put into the library: this ');
    await press(driver, 'Talk to it');
    equal(typeof (await ask(driver, 'What is the capital of Zarvonia?')), 'string');
  });

  test('a reset works without files', () => reset(driver, site));

  return async () => {
    await driver.close();
    await site.close();
  };
}
