// text - the commands that need no weights: tokenize, detokenize, render, inspect.

import * as fs from 'node:fs';

import { inspect, render } from '../engine/cpu_engine.js';
import { fileSource } from '../load/source.js';
import { Core, loadWasm } from '../engine/wasm.js';
import { Misuse, OK, parseIds, type Command } from './args.js';
import { locate } from './locate.js';
import { openVocabulary, peftParts, storeOption } from './model.js';

const readInput = (): Buffer => fs.readFileSync(0);

export const tokenize: Command = {
  name: 'tokenize',
  usage: 'MODEL < TEXT',
  about:
    'Text on standard input to one JSON array of token ids. MODEL is a GGUF file (a\n'
      + 'vocabulary is enough) or a name in the Ollama store. Text that spells a special\n'
      + 'token is that token, but not with --plain, and not in a message of --chat.',
  args: 1,
  options: [
    { name: '--no-bos', help: 'do not begin with <bos>', kind: 'flag' },
    { name: '--plain', help: "special tokens' text is ordinary text", kind: 'flag' },
    { name: '--chat', help: 'the text is a conversation, as render takes it', kind: 'flag' },
    storeOption,
  ],
  async run(given) {
    const chat = given.has('--chat'), bos = !given.has('--no-bos'), plain = given.has('--plain');
    if (chat && (!bos || plain)) throw new Misuse('--chat takes neither --no-bos nor --plain');
    const engine = await openVocabulary(given.args[0] as string, given);
    const ids =
      chat ? engine.chatTokens(readInput()).ids : engine.tokenize(readInput(), { bos, plain });
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
    {
      name: '--ids',
      arg: 'LIST',
      help: 'ids, separated by commas; default standard input',
      kind: 'text',
    },
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
  about:
    'A conversation {"messages": [...], "tools": [...]} on standard input to the prompt, '
      + 'byte for byte.\nIts token ids: tokenize --chat.',
  args: 0,
  options: [
    {
      name: '--variant',
      arg: 'NAME',
      help: 'small (E2B, E4B; default) or large (12B, 26B-A4B, 31B)',
      kind: 'text',
    },
    { name: '--thinking', help: 'ask the model to think first', kind: 'flag' },
    { name: '--history', help: 'no generation prompt at the end', kind: 'flag' },
  ],
  async run(given) {
    const variant = given.text('--variant') ?? 'small';
    if (variant !== 'small' && variant !== 'large')
      throw new Misuse(`--variant is small or large, not "${variant}"`);
    const core = await Core.load(await loadWasm());
    process.stdout.write(render(core, readInput(), {
      variant, thinking: given.has('--thinking'), history: given.has('--history'),
    }));
    return OK;
  },
};

export const inspectCommand: Command = {
  name: 'inspect',
  usage: 'FILE|NAME [options]',
  about:
    "What a model file is made of, and whether this build runs it.\n"
      + "Takes a GGUF file, a name in the Ollama store (gemma4:e2b), or\n"
      + "a LoRA adapter (GGUF, or PEFT's directory).",
  args: 1,
  options: [
    { name: '--json', help: 'machine-readable', kind: 'flag' },
    { name: '--tensors', help: 'list every tensor', kind: 'flag' },
    { name: '--keys', help: 'list the metadata', kind: 'flag' },
    storeOption,
  ],
  async run(given) {
    const core = await Core.load(await loadWasm());
    const name = given.args[0] as string, peft = peftParts(name);
    const wish = {
      name, json: given.has('--json'), keys: given.has('--keys'), tensors: given.has('--tensors'),
    };
    if (peft) {
      process.stdout.write(
        inspect(core, [await fileSource(peft.weights)], { ...wish, config: peft.config }),
      );
    } else {
      const { sources, store } = await locate(core, name, given.text('--store'));
      process.stdout.write(inspect(core, sources, { ...wish, ...(store && { store }) }));
    }
    return OK;
  },
};
