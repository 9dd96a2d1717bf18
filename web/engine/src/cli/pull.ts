// pull - the command that brings a model from a registry or the hub into the Ollama store.

import { DiskWriter } from '../store/disk_writer.js';
import { pull as pullModel, type PullNews, type PullStatus } from '../pull/pull.js';
import { useProxies } from '../pull/proxy.js';
import { HUB, REGISTRY } from '../pull/reference.js';
import { hubToken } from '../pull/token.js';
import { Core, loadWasm } from '../engine/wasm.js';
import { OK, type Command } from './args.js';
import { interruptible } from './interrupt.js';
import { storeOption } from './model.js';
import { packageVersion } from './package.js';
import { bytesText } from './progress.js';

const DRAW = 100, SAMPLE = 500, LEAST = 1000; // milliseconds
const WINDOW = 10; // samples of the speed

export const say = (line: string): void => void process.stderr.write(`${line}\n`);

/** "1 h 12 min", "3 min 5 s", "12 s" */
export function timeText(seconds: number): string {
  const s = Math.ceil(seconds);
  if (s >= 3600) return `${Math.floor(s / 3600)} h ${Math.floor((s % 3600) / 60)} min`;
  return s >= 60 ? `${Math.floor(s / 60)} min ${s % 60} s` : `${s} s`;
}

/** Bytes a second over the last few seconds. */
class Speed {
  private readonly samples: { at: number; loaded: number }[] = [];

  add(loaded: number, at: number): number {
    const last = this.samples.at(-1);
    if (last && loaded < last.loaded) this.samples.length = 0; // some of it is fetched again
    if (!last || at - last.at >= SAMPLE) this.samples.push({ at, loaded });
    if (this.samples.length > WINDOW) this.samples.shift();
    const [first] = this.samples;
    return first && at - first.at >= LEAST ? (1000 * (loaded - first.loaded)) / (at - first.at) : 0;
  }
}

/** One line in its place on a terminal; elsewhere a line for each thing that begins. */
class Progress {
  private readonly speed = new Speed();
  private drawn = 0;
  private last = '';

  constructor(private readonly name: string) {}

  news({ status, loaded, of }: PullNews): void {
    if (!process.stderr.isTTY) {
      if (status !== this.last) say(status);
      this.last = status;
      return;
    }
    const now = performance.now(), isBlob = of > 0 && loaded < of;
    const speed = isBlob ? this.speed.add(loaded, now) : 0;
    if (status === this.last && now - this.drawn < DRAW) return;
    this.last = status;
    this.drawn = now;
    const rest = speed > 0
      ? `, ${bytesText(speed)}/s, ${timeText((of - loaded) / speed)} left`
      : '';
    const share = Math.floor((100 * loaded) / of);
    const text = isBlob
      ? `${this.name}: ${bytesText(loaded)} of ${bytesText(of)} (${share}%)`
        + (status.startsWith('waiting') ? ', waiting for another pull' : rest)
      : status;
    process.stderr.write(`\r\x1b[K${text.slice(0, (process.stderr.columns || 80) - 1)}`);
  }

  notice(sentence: string): void {
    say(`${process.stderr.isTTY ? '\r\x1b[K' : ''}${sentence}`);
  }

  end(): void {
    if (process.stderr.isTTY) process.stderr.write('\r\x1b[K');
  }
}

/** Ollama's lines, ten a second at most of the same. */
class Lines {
  private key = '';
  private told = 0;

  news({ loaded: _, of: __, ...line }: PullNews): void {
    const now = performance.now(), key = line.status;
    const isEnd = line.completed !== undefined && line.completed === line.total;
    if (key === this.key && !isEnd && now - this.told < DRAW) return;
    this.key = key;
    this.told = now;
    process.stdout.write(`${JSON.stringify(line satisfies PullStatus)}\n`);
  }

  notice(sentence: string): void {
    say(sentence);
  }

  end(): void {}
}

export const siteOptions = [
  {
    name: '--registry', arg: 'URL', kind: 'text',
    help: `the registry of names without a host; default ${REGISTRY}`,
  },
  {
    name: '--hub', arg: 'URL', kind: 'text',
    help: `the hub of hf.co/...; default $HF_ENDPOINT or ${HUB}`,
  },
  { name: '--insecure', help: 'http to other machines too', kind: 'flag' },
] as const;

export const pull: Command = {
  name: 'pull',
  usage: 'NAME [options]',
  about:
    'Bring a model into the Ollama store. NAME is one of Ollama\'s (gemma4:e2b,\n'
      + 'host/namespace/model:tag), a repository of the hub (hf.co/ORG/REPO, with :Q8_0 another\n'
      + 'quantisation than Q4_K_M), or the address of a GGUF file there. Stopped or cut off, the\n'
      + 'same command goes on where it was. A token for gated models is read from HF_TOKEN or the\n'
      + 'file of `hf auth login`.',
  args: 1,
  options: [
    ...siteOptions, { ...storeOption, help: 'that Ollama store; it is made if need be' },
    { name: '--json', help: 'progress as JSON lines on standard output', kind: 'flag' },
  ],
  async run(given) {
    const [name = ''] = given.args, core = await Core.load(await loadWasm());
    const show = given.has('--json') ? new Lines() : new Progress(name);
    const proxy = useProxies();
    if (proxy) show.notice(proxy);
    const writer = await DiskWriter.open(core, given.text('--store'));
    try {
      const made = await interruptible((signal) => pullModel(core, writer, name, {
        registry: given.text('--registry'), hub: given.text('--hub') ?? process.env.HF_ENDPOINT,
        insecure: given.has('--insecure'), token: () => hubToken(), signal,
        agent: `bezel/${packageVersion()}`, onNews: (news) => show.news(news),
        onNotice: (sentence) => show.notice(sentence),
      }));
      show.end();
      if (!given.has('--json')) say(`${made.short} is in ${writer.root}`);
      return OK;
    } catch (e) {
      show.end();
      if (e instanceof Error && e.name === 'AbortError')
        say('what has come is kept: the same command goes on from there');
      throw e;
    }
  },
};
