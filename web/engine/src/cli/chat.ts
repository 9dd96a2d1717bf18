// chat - a conversation in the terminal, and one question with its answer.
//
// The whole conversation is rendered again for every turn and the model's keeps what is unchanged,
// so a long talk costs only its new tokens.

import * as fs from 'node:fs';
import * as readline from 'node:readline';

import { ChatParser, type ChatEvent } from '../engine/completions_parser.js';
import type { GenerateOptions } from '../engine/cpu_engine.js';
import type { Conversation } from '../engine/model.js';
import { BezelError } from '../engine/wasm.js';
import { Misuse, OK, type Command, type Given, type Option } from './args.js';
import { formOptions, keeping, readForm, type Form } from './form.js';
import { interruptible, stopCode } from './interrupt.js';
import { modelOptions, openModel, sampling, samplingOptions, type Opened } from './model.js';
import { printable } from './terminal.js';

interface Message {
  role: string;
  content: string;
}

const commands = `/clear          start a new conversation
/system TEXT    set the system prompt (empty: none)
/think on|off   let the model think first
"""             begin a text of several lines; """ ends it
/exit           leave (or Ctrl-D); Ctrl-C stops an answer
`;

class Chat {
  messages: Message[];
  private system: string | null;
  private thinking: boolean;
  private inThought = false;
  private answered = '';
  private readonly color = process.stdout.isTTY && !process.env.NO_COLOR;
  private readonly options: GenerateOptions;

  constructor(
    private readonly opened: Opened,
    private readonly conversation: Conversation,
    private readonly given: Given,
    private readonly form: Form | undefined,
    private readonly showsProgress: boolean,
  ) {
    const { info } = opened.model, n = given.number('--n');
    this.messages = [...info.messages];
    this.system = given.text('--system') ?? info.system;
    this.thinking = given.has('--thinking');
    // else the store says
    this.options = { ...sampling(given, info), ...(n ? { n_max: n } : {}), specials: true };
  }

  private setDim(dim: boolean): void {
    if (this.inThought === dim) return;
    this.inThought = dim;
    if (this.color) process.stdout.write(dim ? '\x1b[2m' : '\x1b[0m');
    if (!dim) process.stdout.write('\n\n');
  }

  private show(events: readonly ChatEvent[]): void {
    for (const e of events) {
      this.setDim('reasoning' in e);
      if ('name' in e)
        process.stdout.write(
          printable(`[calls ${e.name}(${e.arguments}), but this terminal has no tools]`),
        );
      else if ('reasoning' in e) process.stdout.write(printable(e.reasoning));
      else if ('content' in e) {
        this.answered += e.content;
        process.stdout.write(printable(e.content));
      }
    }
  }

  /** The conversation so far as tokens in the model's; says whether it ends inside a thought. */
  private async setPrompt(signal: AbortSignal): Promise<boolean> {
    const messages =
      this.system ? [{ role: 'system', content: this.system }, ...this.messages] : this.messages;
    const { ids, inThought } =
      this.opened.model.chatTokens(JSON.stringify({ messages }), { thinking: this.thinking });
    try {
      await this.conversation.set(ids, {
        signal,
        ...(this.showsProgress
          && {
            onProgress: (done: number, total: number) =>
              void (total > done && process.stderr.write(`\rreading ${done} of ${total} tokens`)),
          }),
      });
    } finally {
      if (this.showsProgress) process.stderr.write('\r\x1b[K');
    }
    return inThought;
  }

  /** Answer the last message; says whether Ctrl-C cut it short. */
  private async answer(signal: AbortSignal): Promise<boolean> {
    const start = performance.now();
    this.answered = '';
    const in_thought = await this.setPrompt(signal);
    const kept = keeping(this.opened.model, this.form, { thinking: this.thinking, in_thought });
    const read = performance.now();
    const parser = new ChatParser(this.opened.core, {
      thinking: this.thinking, starts_in_thought: false, tools: undefined, constrained: false,
    });
    const pieces = this.conversation.generate({ ...this.options, ...kept, signal });
    let n = 0, step = await pieces.next();
    const first = performance.now();
    try {
      for (; !step.done; step = await pieces.next()) {
        n++;
        this.show(parser.feed(step.value.text));
      }
      this.show(parser.end());
    } finally {
      parser.close();
    }
    this.setDim(false);
    process.stdout.write('\n');
    if (step.value.stop === 'context')
      process.stderr.write('(the context is full; /clear starts anew, --ctx N makes it larger)\n');
    const seconds = (ms: number): number => ms / 1000;
    if (this.given.has('--stats'))
      process.stderr.write(
        `(${n} tokens, ${(n / seconds(performance.now() - read)).toFixed(1)} tok/s, first after `
          + `${seconds(first - start).toFixed(2)} s, ${this.conversation.length} in context)\n`,
      );
    return step.value.stop === 'cancelled';
  }

  /** One turn, kept in the conversation when it succeeds. */
  async turn(question: string, lines?: readline.Interface): Promise<boolean> {
    this.messages.push({ role: 'user', content: question });
    try {
      const cut = await interruptible((signal) => this.answer(signal), lines);
      this.messages.push({ role: 'assistant', content: this.answered });
      return cut;
    } catch (e) {
      this.messages.pop();
      throw e;
    }
  }

  /** A line that begins with '/'. Returns false to leave. */
  command(line: string): boolean {
    if (['/exit', '/quit', '/bye'].includes(line)) return false;
    if (line === '/clear') this.messages = [...this.opened.model.info.messages];
    else if (line === '/system' || line.startsWith('/system '))
      this.system = line.slice('/system '.length);
    else if (line === '/think on' || line === '/think off') this.thinking = line === '/think on';
    else if (line === '/help' || line === '/?') process.stdout.write(commands);
    else process.stdout.write(`There is no command ${line}; /help lists them.\n`);
    return true;
  }
}

const QUOTES = '"""';

/** Lines of standard input until it ends, or until Ctrl-C is pressed twice at the prompt. */
async function talk(chat: Chat, interactive: boolean): Promise<void> {
  const bold = process.stdout.isTTY && !process.env.NO_COLOR;
  const lines = readline.createInterface({
    input: process.stdin,
    terminal: interactive,
    ...(interactive && { output: process.stdout, prompt: bold ? '\x1b[1m> \x1b[0m' : '> ' }),
  });
  const each = lines[Symbol.asyncIterator]();
  let isBusy = false, leaves = false;
  lines.on('SIGINT', () => {
    if (isBusy) return; // interruptible() has it
    if (leaves) return lines.close();
    leaves = true;
    process.stdout.write('\n(once more to leave)\n');
    lines.write(null, { ctrl: true, name: 'u' });
    lines.prompt();
  });
  /** A text that begins with """ goes on over further lines, until one that ends with """. */
  const question = async (): Promise<{ text: string; quoted: boolean } | undefined> => {
    if (interactive) lines.prompt();
    let { value: text, done } = await each.next();
    if (done) return undefined;
    if (!text.startsWith(QUOTES)) return { text, quoted: false };
    for (text = text.slice(QUOTES.length); !text.endsWith(QUOTES);) {
      if (interactive) process.stdout.write('... ');
      const more = await each.next();
      // the input's end closes it too
      if (more.done) return interactive ? undefined : { text, quoted: true };
      text += `\n${more.value}`;
    }
    return { text: text.slice(0, -QUOTES.length), quoted: true };
  };
  for (;;) {
    const asked = await question();
    if (!asked) break;
    leaves = false;
    const { text, quoted } = asked;
    if (!text) continue;
    if (text.startsWith('/') && !quoted) {
      if (!chat.command(text.trimEnd())) break;
      continue;
    }
    isBusy = true;
    try {
      await chat.turn(text, lines);
    } catch (e) {
      const isHarmless = e instanceof BezelError && (e.kind === 'limit' || e.kind === 'cancelled');
      if (!interactive || !isHarmless) throw e;
      // the turn is undone
      process.stderr.write(`${e.message}${e.kind === 'limit' ? '; /clear starts anew' : ''}\n`);
    } finally {
      isBusy = false;
    }
  }
  lines.close();
  if (interactive) process.stdout.write('\n');
}

const chatOptions: readonly Option[] = [
  { name: '--system', arg: 'TEXT', help: 'system prompt', kind: 'text' },
  { name: '--thinking', help: 'let the model think first', kind: 'flag' },
  { name: '--n', arg: 'N', help: 'tokens an answer at most; default no limit', kind: 'whole' },
  { name: '--stats', help: 'speed after each answer', kind: 'flag' },
  ...formOptions,
  ...samplingOptions,
  ...modelOptions,
];

/** Open the model and talk, or answer one question. */
async function converse(given: Given, question: string | undefined): Promise<number> {
  if ((given.number('--n') ?? 0) > 0xffffffff) throw new Misuse('--n is too large');
  const form = readForm(given);
  const interactive = question === undefined && !!process.stdin.isTTY && !!process.stdout.isTTY;
  const name = given.args[0] as string;
  const opened = await interruptible((signal) => openModel(name, given, signal));
  const { info, device } = opened.model;
  const chat = new Chat(
    opened,
    await opened.model.conversation(given.number('--ctx')),
    given,
    form,
    interactive && process.stderr.isTTY,
  );
  if (interactive)
    process.stdout.write(
      `${name}: ${(info.n_params / 1e6).toFixed(1)} M parameters, ${info.n_layer} layers, `
        + `${info.n_vocab} tokens of vocabulary, on ${device.name}. /help for commands.\n`,
    );
  let cut = false;
  if (question === undefined) await talk(chat, interactive);
  else cut = await chat.turn(question);
  opened.model.close();
  return cut ? stopCode() : OK;
}

export const chat: Command = {
  name: 'chat',
  usage: 'MODEL',
  about: 'Talk to a model: one line a turn, /help for commands. Lines may be piped in.',
  args: 1,
  options: chatOptions,
  run: (given) => converse(given, undefined),
};

/** What is piped in comes before PROMPT. Undefined: neither is there, and a person sits at the
 *  terminal. */
function question(prompt: string | undefined): string | undefined {
  const piped =
    !fs.fstatSync(0).isCharacterDevice() || (prompt === undefined && !process.stdin.isTTY);
  const input = piped ? fs.readFileSync(0, 'utf8').trimEnd() : '';
  if (prompt === undefined && !piped) return undefined;
  const text = [input, prompt ?? ''].filter(Boolean).join('\n\n');
  if (!text) throw new BezelError('the question is empty', 'argument');
  return text;
}

export const run: Command = {
  name: 'run',
  usage: 'MODEL [PROMPT]',
  about:
    'Ask once and print the answer. What is piped in comes before PROMPT. With neither, '
      + 'on a\nterminal, it is a chat.',
  args: 2,
  needs: 1,
  options: chatOptions,
  run: (given) => converse(given, question(given.args[1])),
};
