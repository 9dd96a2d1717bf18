// pull_fixture - what the tests of pulling share: a registry and a hub of our own, stores, and
// pulls in this process or in one of their own.
import { spawn } from 'node:child_process';
import fs from 'node:fs';

import { Core, loadWasm } from '../../web/engine/dist/core.js';
import { pull as pullModel } from '../../web/engine/dist/pull/pull.js';
import { DiskWriter } from '../../web/engine/dist/store/disk_writer.js';
import { registry, sha } from './registry.mjs';

export const temp = `build/tmp/pull-${process.pid}`; // tests run side by side
process.on('exit', () => fs.rmSync(temp, { recursive: true, force: true }));
fs.mkdirSync(temp, { recursive: true });

export const core = await Core.load(await loadWasm());
export const net = await registry();
export const tiny = fs.readFileSync('models/tiny.q8_0.gguf'), digest = sha(tiny);
export const MB = 1 << 20;
export const quick = { first: 2, longest: 20, tries: 6 };

let stores = 0;
/** A store that nobody had before; `at` is a path. */
export async function freshStore(at = `${temp}/store-${++stores}`) {
  return DiskWriter.open(core, at);
}

/** What is where below a folder, with its mode in octal. */
export function filesIn(root) {
  return Object.fromEntries(
    fs.readdirSync(root, { recursive: true }).sort().map((name) => {
      const info = fs.statSync(`${root}/${name}`);
      return [name, `${info.isDirectory() ? 'd' : '-'}${(info.mode & 0o777).toString(8)}`];
    }),
  );
}

/** In this process, from our own sites and with little patience. */
export const pull = (writer, name, options = {}) => pullModel(core, writer, name, {
  registry: net.url, hub: net.hub, patience: quick, ...options,
});

export const blobOf = (writer, hex = digest) =>
  fs.readFileSync(`${writer.root}/blobs/sha256-${hex}`);
/** What is left of pulls: nothing, when they are over. */
export const partial = (writer) => fs.readdirSync(writer.partial).sort();

/** Bytes that the host of files has sent of a blob, and what was asked of it. */
export const asked = (hex = digest) => net.log.filter((e) => e.at === 'files'
  && e.path.startsWith(`/${hex}`));
export const sent = (hex = digest) => asked(hex).reduce((n, e) => n + e.sent, 0);

/** The tool in a process of its own: what it said, and how to stop it. */
export function start(args, env = {}) {
  const child = spawn(process.execPath, ['web/engine/bin/bezel.mjs', ...args], {
    env: { ...process.env, HF_TOKEN: '', HF_HOME: temp, HF_ENDPOINT: undefined, ...env },
  });
  let out = '', err = '';
  child.stdout.on('data', (text) => (out += text));
  child.stderr.on('data', (text) => (err += text));
  const ended = new Promise((done) => child.on('close', (code, signal) =>
    done({ code: code ?? signal, out, err })));
  return { child, ended };
}
export const bezel = (args, env) => start(args, env).ended;

export async function until(isSo, seconds = 20) {
  for (const end = Date.now() + 1000 * seconds; !(await isSo());) {
    if (Date.now() > end) throw new Error(`waited ${seconds} s in vain for: ${isSo}`);
    await new Promise((wait) => setTimeout(wait, 5));
  }
}
