// list - the models in the Ollama store.

import { DiskStore } from '../store/disk_store.js';
import { Core, loadWasm } from '../wasm.js';
import { OK, type Command } from './args.js';
import { storeOption } from './model.js';

export const list: Command = {
  name: 'list',
  usage: '[options]',
  about: 'The models in the Ollama store.',
  args: 0,
  options: [storeOption, { name: '--json', help: 'machine-readable', kind: 'flag' }],
  async run(given) {
    const found = await DiskStore.open(await Core.load(await loadWasm()), given.text('--store')).list();
    const models = found.sort((a, b) => (a.name < b.name ? -1 : 1));
    if (given.has('--json')) {
      const rows = models.map(({ name, size, digest }) => `\n  {"name":${JSON.stringify(name)},"size":${size},"digest":"${digest}"}`);
      process.stdout.write(`[${rows.join(',')}\n]\n`);
    } else for (const { name, size, digest } of models) process.stdout.write(`${name.padEnd(40)} ${(size / 1e9).toFixed(2).padStart(10)} GB  ${digest.slice(0, 12)}\n`);
    return OK;
  },
};
