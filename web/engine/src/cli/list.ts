// list - the models in the Ollama store, and those that ship.

import * as crypto from 'node:crypto';
import * as fs from 'node:fs';

import { DiskStore } from '../store/disk_store.js';
import { BezelError, Core, loadWasm } from '../engine/wasm.js';
import { shippedModels } from '../store/shipped.js';
import { OK, type Command } from './args.js';
import { storeOption } from './model.js';

interface Row {
  readonly name: string;
  readonly size: number;
  readonly digest: string;
}

/** The store's, or none where nobody asked for a store and there is none. */
async function stored(folder: string | undefined): Promise<readonly Row[]> {
  try {
    return await DiskStore.open(await Core.load(await loadWasm()), folder).list();
  } catch (e) {
    const isAbsent = e instanceof BezelError && e.kind === 'not-found';
    if (isAbsent && folder === undefined && !process.env.OLLAMA_MODELS) return [];
    throw e;
  }
}

function shipped(): Row[] {
  return Object.entries(shippedModels()).map(([name, file]) => {
    const bytes = fs.readFileSync(file);
    return {
      name: `${name}:latest`,
      size: bytes.length,
      digest: crypto.createHash('sha256').update(bytes).digest('hex'),
    };
  });
}

export const list: Command = {
  name: 'list',
  usage: '[options]',
  about: 'The models in the Ollama store, and those that ship with Bezel.',
  args: 0,
  options: [
    { ...storeOption, help: 'that Ollama store alone; default where Ollama keeps it' },
    { name: '--json', help: 'machine-readable', kind: 'flag' },
  ],
  async run(given) {
    const folder = given.text('--store'), found = await stored(folder);
    const names = new Set(found.map((m) => m.name.toLowerCase()));
    const others = folder === undefined ? shipped().filter((m) => !names.has(m.name)) : [];
    const models = [...found, ...others].sort((a, b) => (a.name < b.name ? -1 : 1));
    if (given.has('--json')) {
      const rows = models.map(({ name, size, digest }) =>
        `\n  {"name":${JSON.stringify(name)},"size":${size},"digest":"${digest}"}`);
      process.stdout.write(`[${rows.join(',')}\n]\n`);
      return OK;
    }
    for (const { name, size, digest } of models)
      process.stdout.write(
        `${name.padEnd(40)} ${(size / 1e9).toFixed(2).padStart(10)} GB  ${digest.slice(0, 12)}\n`,
      );
    return OK;
  },
};
