// merge - `bezel merge`: a model with an adapter added into its weights, as a new file. Options,
// words and bytes are the native tool's.

import * as fs from 'node:fs';

import { Merge } from '../train/merge.js';
import { drain, fileSink } from '../train/merge_to.js';
import { openSource } from '../store/source_ref.js';
import { Core, loadWasm } from '../engine/wasm.js';
import { Misuse, OK, type Command, type Given } from './args.js';
import { interruptible } from './interrupt.js';
import { locate } from './locate.js';
import { adapterParts, storeOption } from './model.js';
import { fileLine } from './progress.js';

async function write(given: Given, signal: AbortSignal): Promise<number> {
  const [model = '', spec = '', out = ''] = given.args, core = await Core.load(await loadWasm());
  const { path, config, scale } = adapterParts(spec);
  const { sources } = await locate(core, model, given.text('--store'));
  const source = await openSource({ kind: 'path', path });
  // as the native tool has it
  const strength = Math.fround(Math.fround(given.number('--scale') ?? 1) * Math.fround(scale));
  const line = fileLine();
  let merge: Merge | undefined;
  try {
    merge = await Merge.open(
      core, sources, { source, scale: strength, ...(config !== undefined && { config }) }, signal,
    );
    await drain(await fileSink(out), merge.pieces(signal), merge.size, line.onProgress);
    return merge.changed;
  } finally {
    line.end();
    merge?.close();
    for (const s of [...sources, source]) s.close();
  }
}

export const merge: Command = {
  name: 'merge',
  usage: 'MODEL ADAPTER[:S] OUT',
  about:
    'Write a model with a LoRA adapter (GGUF or PEFT) added into its weights. They keep '
      + 'their\nformats, so quantised ones round what is added; '
      + 'an adapter beside its model does not.\nCtrl-C leaves nothing behind.',
  args: 3,
  options: [
    { name: '--scale', arg: 'S', help: "the adapter's strength; default 1", kind: 'number' },
    storeOption,
    { name: '--force', help: 'replace a file that exists', kind: 'flag' },
  ],
  async run(given) {
    const [, , out = ''] = given.args;
    if (!given.has('--force') && fs.existsSync(out))
      throw new Misuse(`${out} exists; --force replaces it`);
    const changed = await interruptible((signal) => write(given, signal));
    process.stdout.write(`${out}: ${changed} tensors changed\n`);
    return OK;
  },
};
