// main - the tool `bezel` for Node: finds the command.

import { BezelError } from '../engine/wasm.js';
import { FAILED, help, Misuse, OK, parse, USAGE, type Command } from './args.js';
import { bench, check } from './bench.js';
import { chat, run } from './chat.js';
import { diffuse } from './diffuse.js';
import { stopCode } from './interrupt.js';
import { list } from './list.js';
import { merge } from './merge.js';
import { copy, remove, running, show } from './models.js';
import { packageVersion } from './package.js';
import { pull } from './pull.js';
import { generate, logits } from './run.js';
import { serve } from './serve.js';
import { train } from './train.js';
import { detokenize, inspectCommand, renderCommand, tokenize } from './text.js';

const commands: readonly (readonly [Command, string])[] = [
  [run, 'ask once'],
  [chat, 'talk to a model in the terminal'],
  [serve, 'the page, and a server for other programs'],
  [generate, 'continue a text'],
  [diffuse, 'continue a text with a diffusion model'],
  [train, 'learn an adapter from conversations'],
  [merge, 'write a model with an adapter added into its weights'],
  [pull, 'bring a model from a registry or the hub'],
  [list, 'the models in the Ollama store, and those that ship (also: ls)'],
  [show, 'what a model is, in a few lines'],
  [copy, 'give a model a second name'],
  [remove, 'delete a model'],
  [running, 'which model a running server has loaded'],
  [inspectCommand, 'what is in a file, and whether it runs'],
  [tokenize, 'text to token ids'],
  [detokenize, 'token ids to text'],
  [renderCommand, 'a conversation to the prompt'],
  [logits, 'the best next tokens at every position'],
  [bench, 'prompt and generation speed'],
  [check, 'whether the GPU agrees with the CPU'],
];

function overview(): string {
  const rows = commands.map(([c, about]) => `  ${c.name.padEnd(12)} ${about}\n`);
  return 'Bezel: Gemma 4 on this machine.\n\nusage: bezel COMMAND [ARGUMENTS]\n\n'
    + `${rows.join('')}\nbezel COMMAND --help says more. MODEL is a GGUF file, a name such as `
    + 'gemma4:e2b,\nor tiny, which ships with Bezel.\n'
    + 'Exit codes: 0 done, 1 failed (one sentence says why), 2 wrong usage, '
    + '130 stopped by Ctrl-C.\n';
}

/** What shells say of a program that SIGPIPE ended. */
const CLOSED_PIPE = 141;

/** Ctrl-C or a shutdown, as whatever was running says it. */
function isStop(e: unknown): boolean {
  return e instanceof Error
    && (e.name === 'AbortError' || (e instanceof BezelError && e.kind === 'cancelled'));
}

async function runCommand(command: Command, words: readonly string[]): Promise<number> {
  try {
    const given = parse(command, words);
    if (given) return await command.run(given);
    process.stdout.write(help(command));
    return OK;
  } catch (e) {
    if (isStop(e)) {
      process.stderr.write(`bezel ${command.name}: stopped\n`);
      return stopCode();
    }
    const misuse = e instanceof Misuse;
    const why = e instanceof Error ? e.message : String(e);
    process.stderr.write(
      `bezel ${command.name}: ${why}${misuse ? ` (see: bezel ${command.name} --help)` : ''}\n`,
    );
    return misuse ? USAGE : FAILED;
  }
}

/** The exit code. */
export async function main(words: readonly string[]): Promise<number> {
  process.stdout.on('error', (e: NodeJS.ErrnoException) => {
    if (e.code === 'EPIPE') process.exit(CLOSED_PIPE); // the reader has seen enough: `| head`
    process.stderr.write(`bezel: cannot write the output: ${e.message}\n`);
    process.exit(FAILED);
  });
  process.stderr.on('error', () => {}); // a log that nobody reads any more is no reason to end
  const [name, ...rest] =
    words[0] === 'help' && words[1] !== undefined ? [words[1], '--help'] : words;
  if (name === undefined) {
    process.stderr.write(overview());
    return USAGE;
  }
  if (['--help', '-h', 'help'].includes(name)) {
    process.stdout.write(overview());
    return OK;
  }
  if (name === '--version') {
    process.stdout.write(`bezel ${packageVersion()}\n`);
    return OK;
  }
  const found = commands.find(([c]) => c.name === (name === 'ls' ? 'list' : name));
  if (found) return runCommand(found[0], rest);
  process.stderr.write(`bezel: no command "${name}" (see: bezel --help)\n`);
  return USAGE;
}
