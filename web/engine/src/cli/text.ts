// text - the commands that need no weights: tokenize, detokenize, render.

import * as fs from 'node:fs';

import { render } from '../engine.js';
import { Core, loadWasm } from '../wasm.js';
import { Misuse, OK, parseIds, type Command } from './args.js';
import { openVocabulary, storeOption } from './model.js';

const readInput = (): Buffer => fs.readFileSync(0);

export const tokenize: Command = {
  name: 'tokenize',
  usage: 'MODEL < TEXT',
  about: 'Text on standard input to one JSON array of token ids. MODEL is a GGUF file (a\nvocabulary is enough) or a name in the Ollama store.',
  args: 1,
  options: [
    { name: '--no-bos', help: 'do not begin with <bos>', kind: 'flag' },
    { name: '--plain', help: "special tokens' text is ordinary text", kind: 'flag' },
    storeOption,
  ],
  async run(given) {
    const engine = await openVocabulary(given.args[0] as string, given);
    const ids = engine.tokenize(readInput(), { bos: !given.has('--no-bos'), plain: given.has('--plain') });
    process.stdout.write(`[${ids.join(',')}]\n`);
    return OK;
  },
};

export const detokenize: Command = {
  name: 'detokenize',
  usage: 'MODEL < IDS',
  about: 'Token ids to text.',
  args: 1,
  options: [
    { name: '--ids', arg: 'LIST', help: 'ids, separated by commas; default standard input', kind: 'text' },
    { name: '--specials', help: 'show control tokens too', kind: 'flag' },
    storeOption,
  ],
  async run(given) {
    const engine = await openVocabulary(given.args[0] as string, given);
    const ids = parseIds(given.text('--ids') ?? readInput().toString());
    process.stdout.write(engine.detokenize(ids, given.has('--specials')));
    return OK;
  },
};

export const renderCommand: Command = {
  name: 'render',
  usage: '< CONVERSATION',
  about: 'A conversation {"messages": [...], "tools": [...]} on standard input to the prompt, byte for byte.',
  args: 0,
  options: [
    { name: '--variant', arg: 'NAME', help: 'small (E2B, E4B; default) or large (12B, 26B-A4B, 31B)', kind: 'text' },
    { name: '--thinking', help: 'ask the model to think first', kind: 'flag' },
    { name: '--history', help: 'no generation prompt at the end', kind: 'flag' },
  ],
  async run(given) {
    const variant = given.text('--variant') ?? 'small';
    if (variant !== 'small' && variant !== 'large') throw new Misuse(`--variant is small or large, not "${variant}"`);
    const core = await Core.load(await loadWasm());
    process.stdout.write(render(core, readInput(), { variant, thinking: given.has('--thinking'), history: given.has('--history') }));
    return OK;
  },
};
