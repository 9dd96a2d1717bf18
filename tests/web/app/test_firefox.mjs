// The page in Firefox: Debian's firefox-esr, driven through WebDriver BiDi. FIREFOX is another one.
// node tests/web/app/test_firefox.mjs [--only WORDS]
import fs from 'node:fs';
import os from 'node:os';
import path from 'node:path';
import puppeteer from '../node_modules/puppeteer-core/lib/esm/puppeteer/puppeteer-core.js';
import { done } from '../check.mjs';
import { visits, visitRefused } from './visits.mjs';

/** `preferences`: of its owner, beside its own. */
async function openFirefox(preferences = {}) {
  const profile = fs.mkdtempSync(path.join(os.tmpdir(), 'bezel-firefox-'));
  const browser = await puppeteer.launch({
    browser: 'firefox',
    executablePath: process.env.FIREFOX ?? '/usr/bin/firefox-esr',
    headless: true,
    extraPrefsFirefox: preferences,
    userDataDir: profile,
    defaultViewport: { width: 1280, height: 800 },
  });
  console.log(`  ${await browser.version()}`);
  const [page] = await browser.pages(), errors = [];
  page.on('console', (message) => message.type() === 'error' && errors.push(message.text()));
  page.on('pageerror', (error) => errors.push(String(error)));
  return {
    errors,
    goto: (url) => page.goto(url),
    reload: () => page.reload(),
    evaluate: (fn, ...args) => page.evaluate(fn, ...args),
    async click(fn, ...args) {
      const element = (await page.evaluateHandle(fn, ...args)).asElement();
      await element?.click();
      return element !== null;
    },
    type: (text) => page.keyboard.type(text),
    press: (key) => page.keyboard.press(key),
    async close() {
      await browser.close();
      fs.rmSync(profile, { recursive: true, force: true, maxRetries: 5 });
    },
  };
}

const close = await visits(openFirefox);
visitRefused(() => openFirefox({ 'network.cookie.cookieBehavior': 2 }));
await done(process.argv[process.argv.indexOf('--only') + 1 || process.argv.length]);
await close();
