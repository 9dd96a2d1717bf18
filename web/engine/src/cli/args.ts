// args - options of the command-line tool, with the native tool's rules, words and exit codes.

export const OK = 0, FAILED = 1, USAGE = 2; // interrupt.ts has those of a command that was stopped

type Kind = 'flag' | 'text' | 'texts' | 'whole' | 'number';

export interface Option {
  readonly name: string; // "--top"
  readonly also?: readonly string[]; // other names: "-p"
  readonly arg?: string; // what help calls its value; none for a flag
  readonly help: string;
  readonly kind: Kind;
}

export interface Command {
  readonly name: string;
  readonly usage: string; // what follows the name
  readonly about: string;
  readonly options: readonly Option[];
  readonly args: number; // positional
  readonly needs?: number; // of those, if not all
  run(given: Given): Promise<number>;
}

/** Wrong usage; the message goes to the person with a hint at --help. */
export class Misuse extends Error {}

/** What was given, by option name. */
export class Given {
  readonly args: string[] = [];
  private readonly values = new Map<string, string[]>();

  add(name: string, value: string): void {
    const list = this.values.get(name);
    if (list) list.push(value);
    else this.values.set(name, [value]);
  }

  has(name: string): boolean {
    return this.values.has(name);
  }

  text(name: string): string | undefined {
    return this.values.get(name)?.at(-1);
  }

  texts(name: string): readonly string[] {
    return this.values.get(name) ?? [];
  }

  big(name: string): bigint | undefined {
    const text = this.text(name);
    return text === undefined ? undefined : BigInt(text);
  }

  number(name: string): number | undefined {
    const text = this.text(name);
    return text === undefined ? undefined : Number(text);
  }
}

function isValid(kind: Kind, value: string): boolean {
  if (kind === 'whole') return /^\d+$/.test(value) && BigInt(value) < 1n << 64n;
  if (kind === 'number') return value.trim() !== '' && Number.isFinite(Number(value));
  return true;
}

/** Options may stand anywhere; "--" ends them; "--name=value" works too. Undefined: help is
 *  wanted. */
export function parse(command: Command, words: readonly string[]): Given | undefined {
  const given = new Given();
  let options = true;
  for (let i = 0; i < words.length; i++) {
    const word = words[i] as string;
    if (options && word === '--') options = false;
    else if (options && (word === '--help' || word === '-h')) return undefined;
    else if (options && (word.startsWith('--') || /^-[a-z]$/.test(word))) {
      const [, name = '', , inline] = /^([^=]*)(=(.*))?$/s.exec(word) ?? [];
      const option = command.options.find((o) => o.name === name || o.also?.includes(name));
      if (!option || (option.kind === 'flag' && inline !== undefined))
        throw new Misuse(`no option ${word}`);
      const value = option.kind === 'flag' ? '' : (inline ?? words[++i]);
      if (value === undefined) throw new Misuse(`${name} needs a value`);
      if (!isValid(option.kind, value)) throw new Misuse(`${name} cannot be "${value}"`);
      given.add(option.name, value);
    } else if (given.args.length === command.args)
      throw new Misuse(`one argument too many: ${word}`);
    else given.args.push(word);
  }
  if (given.args.length < (command.needs ?? command.args))
    throw new Misuse(`usage: bezel ${command.name} ${command.usage}`);
  return given;
}

export function help(command: Command): string {
  const rows = [...command.options, { name: '--help', help: 'this text' } as Option].map((o) => {
    const names = `${[...(o.also ?? []), o.name].join(', ')}${o.arg ? ` ${o.arg}` : ''}`;
    return `  ${names.padEnd(24)} ${o.help}`;
  });
  return `usage: bezel ${command.name} ${command.usage}\n\n${command.about}\n`
    + `${command.options.length ? '\noptions:\n' : ''}${rows.join('\n')}\n`;
}

/** "2,400,401" (commas, spaces or a JSON array). */
export function parseIds(text: string): Int32Array {
  return Int32Array.from(text.split(/[\s,[\]]+/).filter(Boolean), (word) => {
    const id = /^\+?\d+$/.test(word) ? Number(word) : -1;
    if (id < 0 || id > 0x7fffffff) throw new Error(`"${word.slice(0, 20)}" is not a token id`);
    return id;
  });
}
