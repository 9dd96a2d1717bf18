// webkit - a driver of WebKitGTK's MiniBrowser: plain calls to its WebDriver, on a display that
// nobody sees. Debian's packages webkit2gtk-driver and xvfb. The browser forgets all when it ends.
import { spawn } from 'node:child_process';
import fs from 'node:fs';
import net from 'node:net';
import os from 'node:os';
import path from 'node:path';

const KEYS = { Enter: '\uE007', Backspace: '\uE003' }; // WebDriver's names
const SECONDS = 60; // for anything to start, and for a call

const miniBrowser = () => fs.readdirSync('/usr/lib')
  .map((folder) => `/usr/lib/${folder}/webkit2gtk-4.1/MiniBrowser`)
  .find((file) => fs.existsSync(file));

const ended = (child) => new Promise((over) => {
  if (child.exitCode !== null || child.signalCode !== null) return over();
  child.once('exit', over);
  child.kill();
});

async function freePort() {
  const server = net.createServer().listen(0, '127.0.0.1');
  await new Promise((listening) => server.once('listening', listening));
  const { port } = server.address();
  await new Promise((closed) => server.close(closed));
  return port;
}

/** A display with a number that X chooses. */
async function openDisplay() {
  const args = ['-displayfd', '1', '-screen', '0', '1280x900x24', '-nolisten', 'tcp'];
  const server = spawn('Xvfb', args, { stdio: ['ignore', 'pipe', 'ignore'] });
  const number = await new Promise((resolve, reject) => {
    server.once('error', reject).once('exit', (code) => reject(new Error(`Xvfb ended: ${code}`)));
    server.stdout.once('data', (line) => resolve(String(line).trim()));
  });
  return { name: `:${number}`, close: () => ended(server) };
}

async function call(method, url, body) {
  const signal = AbortSignal.timeout(1000 * SECONDS);
  const answer = await fetch(url, { method, signal, ...(body && { body: JSON.stringify(body) }) });
  const { value } = await answer.json();
  if (!answer.ok) throw new Error(`${value.error}: ${value.message}`);
  return value;
}

/** Until the driver listens. */
async function whenUp(base) {
  for (let left = 10 * SECONDS; ; left--) {
    try {
      return await call('GET', `${base}/status`);
    } catch (e) {
      if (left === 0) throw e;
      await new Promise((again) => setTimeout(again, 100));
    }
  }
}

// Runs a function in the page and says what became of it.
const script = (fn) => `const done = [...arguments].at(-1), args = [...arguments].slice(0, -1);
  new Promise((resolve) => resolve((${fn})(...args)))
    .then((value) => done({ value: value ?? null }), (e) => done({ error: String(e) }));`;

export async function openWebKit() {
  const folder = fs.mkdtempSync(path.join(os.tmpdir(), 'bezel-webkit-'));
  const display = await openDisplay(), port = await freePort(), base = `http://127.0.0.1:${port}`;
  const places = ['HOME', 'XDG_CACHE_HOME', 'XDG_DATA_HOME', 'XDG_CONFIG_HOME'];
  const own = Object.fromEntries(places.map((name) => [name, folder]));
  const env = { ...process.env, ...own, DISPLAY: display.name };
  const listen = [`--port=${port}`, '--host=127.0.0.1'];
  const driver = spawn('WebKitWebDriver', listen, { env, stdio: 'ignore' });
  driver.once('error', () => {}); // then nothing listens
  await whenUp(base);
  const browser = { binary: miniBrowser(), args: ['--automation'] };
  const wish = { capabilities: { alwaysMatch: { 'webkitgtk:browserOptions': browser } } };
  const { sessionId, capabilities } = await call('POST', `${base}/session`, wish);
  console.log(`  WebKitGTK ${capabilities.browserVersion}`);
  const at = `${base}/session/${sessionId}`;
  await call('POST', `${at}/timeouts`, { script: 1000 * SECONDS });

  const evaluate = async (fn, ...args) => {
    const order = { script: script(fn), args };
    const { value, error } = await call('POST', `${at}/execute/async`, order);
    if (error) throw new Error(error);
    return value;
  };
  const type = (text) => {
    const strokes = (value) => ['keyDown', 'keyUp'].map((type) => ({ type, value }));
    const actions = [...text].flatMap(strokes);
    return call('POST', `${at}/actions`, { actions: [{ type: 'key', id: 'keys', actions }] });
  };
  return {
    errors: [], // WebDriver tells of none
    goto: (url) => call('POST', `${at}/url`, { url }),
    reload: () => call('POST', `${at}/refresh`, {}),
    evaluate,
    type,
    press: (key) => type(KEYS[key]),
    async click(fn, ...args) {
      const element = await evaluate(fn, ...args);
      if (element) await call('POST', `${at}/element/${Object.values(element)[0]}/click`, {});
      return element !== null;
    },
    async close() {
      await call('DELETE', at);
      await ended(driver);
      await display.close();
      // Its last processes may still write there.
      await fs.promises.rm(folder, {
        recursive: true, force: true, maxRetries: 20, retryDelay: 100,
      });
    },
  };
}
