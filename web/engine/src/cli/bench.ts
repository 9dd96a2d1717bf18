// bench - the commands that measure: speed in llama-bench's table, and agreement with the CPU.

import { execFileSync } from 'node:child_process';
import { writeFileSync } from 'node:fs';
import * as path from 'node:path';

import {
  anyTokens, bench as measure, type BenchResult, type Speed, type Times,
} from '../engine/bench.js';
import { CpuModel } from '../engine/cpu_model.js';
import type { Conversation } from '../engine/model.js';
import type { KernelTime } from '../gpu/profile.js';
import { BezelError, Core, loadWasm } from '../engine/wasm.js';
import { FAILED, Misuse, OK, type Command, type Given } from './args.js';
import { interruptible } from './interrupt.js';
import { locate } from './locate.js';
import { addAdapter, modelOptions, openModel } from './model.js';
import { bytesText } from './progress.js';
import { findBest } from './run.js';

const dashes = (n: number): string => '-'.repeat(n);

function row(r: BenchResult, test: string, s: Speed, read: string): string {
  const depth = r.depth ? ` @ d${r.depth}` : '';
  const cells = [
    r.model.slice(0, 30).padEnd(30), `${(r.weight_bytes / 2 ** 30).toFixed(2).padStart(8)} GiB`,
    `${(r.parameters / 1e9).toFixed(2).padStart(8)} B`,
    `${test}${depth}`.padEnd(14), `${s.mean.toFixed(2)} ± ${s.deviation.toFixed(2)}`.padStart(17),
    read.padStart(12),
  ];
  return `| ${cells.join(' | ')} |\n`;
}

/** tg128; of a diffusion model tg256/20, a canvas of 256 tokens in 20 steps. */
const writing = (r: BenchResult): string =>
  `tg${r.predicted?.tokens}${r.steps ? `/${r.steps}` : ''}`;

function table(r: BenchResult): string {
  const head = [
    'model'.padEnd(30), 'size'.padStart(12), 'params'.padStart(10), 'test'.padEnd(14),
    'tok/s'.padStart(17), 'weights read',
  ];
  const speedOf = (s: Speed): string => `${((s.mean * r.bytes_a_token) / 1e9).toFixed(2)} GB/s`;
  return `| ${head.join(' | ')} |\n|${[32, 14, 12, 16, 19, 14].map(dashes).join('|')}|\n`
    + (r.prompt ? row(r, `pp${r.prompt.tokens}`, r.prompt, '') : '')
    + (r.predicted ? row(r, writing(r), r.predicted, r.steps ? '' : speedOf(r.predicted)) : '')
    + (r.awaited ? row(r, `tg${r.awaited.tokens} awaited`, r.awaited, speedOf(r.awaited)) : '');
}

const timesText = (t: Times): string => `p50 ${t.p50.toFixed(2)} ms, p95 ${t.p95.toFixed(2)} ms`;

function facts(r: BenchResult): string {
  const share = r.bandwidth && r.bytes_per_second
    ? `, ${((100 * r.bytes_per_second) / r.bandwidth).toFixed(1)}% of what memory gives `
      + `(${bytesText(r.bandwidth)}/s measured)`
    : '';
  const dispatches = r.dispatches === null ? '' : `${r.dispatches} dispatches, `;
  const medians = ([
    ['pp', r.prompt], ['tg', r.predicted], ['awaited tg', r.awaited],
  ] as const).flatMap(
    ([name, s]) => (s ? [`${name}${s.tokens} ${s.median.toFixed(2)}`] : []),
  );
  const lines: [string, string | false | null][] = [
    ['device', `${r.device}${r.backend === 'gpu' ? `, ${r.tier} tier` : ''}`],
    r.steps
      ? ['a step', dispatches.replace(/, $/, '')]
      : ['a token', `${dispatches}${bytesText(r.bytes_a_token)} of weights${share}`],
    ['median tok/s', medians.join(', ')],
    [
      r.steps ? 'first step' : 'first token',
      r.ttft_ms && r.prompt && `after ${r.prompt.tokens} prompt tokens: ${timesText(r.ttft_ms)}`,
    ],
    [
      r.steps ? 'between steps' : 'between tokens',
      r.token_ms
        && `${timesText(r.token_ms)}${r.awaited_ms ? `; awaited ${timesText(r.awaited_ms)}` : ''}`,
    ],
    [
      'memory',
      `weights ${bytesText(r.memory.weights)}, cache ${bytesText(r.memory.cache)}, `
        + `scratch ${bytesText(r.memory.scratch)}`,
    ],
  ];
  return lines
    .filter(([, text]) => text)
    .map(([what, text]) => `${what.padEnd(15)} ${text}\n`)
    .join('');
}

/** A table of kernels and where their time goes. */
export function kernels(what: string, list: readonly KernelTime[]): string {
  const all = list.reduce((sum, k) => sum + k.ns, 0);
  const rows = list.map((k) =>
    `${k.kernel.padEnd(32)} ${String(k.count).padStart(6)} ${(k.ns / 1e6).toFixed(3).padStart(10)} `
      + `${(k.ns / k.count / 1e3).toFixed(1).padStart(10)} `
      + `${((100 * k.ns) / all).toFixed(1).padStart(6)}%\n`);
  return `\n${what.padEnd(32)}  count         ms    us each  `
    + `share\n${rows.join('')}${'each dispatch alone, together'.padEnd(32)} `
    + `${String(list.reduce((n, k) => n + k.count, 0)).padStart(6)} `
    + `${(all / 1e6).toFixed(3).padStart(10)}\n`;
}

const count = (given: Given, option: string, otherwise: number): number => {
  const n = given.number(option) ?? otherwise;
  if (n > 1 << 20) throw new Misuse(`${option} is too large`);
  return n;
};

export const bench: Command = {
  name: 'bench',
  usage: 'MODEL',
  about:
    'Speed of reading a prompt (ppN) and of generating (tgN), tokens a second, after a\n'
      + 'warm-up: mean and standard deviation; below them the medians of the runs. Where the\n'
      + 'GPU can, tokens are queued ahead; the awaited row reads each token before the next '
      + 'is\nbegun. Of a diffusion model tgN/S: a canvas of N tokens in S steps. Without a GPU '
      + 'it\nmeasures the CPU and says so.',
  args: 1,
  options: [
    {
      name: '--pp',
      also: ['-p'],
      arg: 'N',
      help: 'prompt tokens; 0 leaves the row out; default 512',
      kind: 'whole',
    },
    {
      name: '--tg',
      also: ['-n'],
      arg: 'N',
      help: 'generated tokens; 0 leaves the row out; default 128',
      kind: 'whole',
    },
    {
      name: '--steps',
      arg: 'N',
      help: "steps of a diffusion model's canvas; default 20",
      kind: 'whole',
    },
    {
      name: '--depth',
      also: ['-d'],
      arg: 'N',
      help: 'tokens already in the context; default 0',
      kind: 'whole',
    },
    {
      name: '--repeats', also: ['--runs', '-r'], arg: 'N',
      help: 'measurements of each row; default 5', kind: 'whole',
    },
    { name: '--profile', help: 'a table of kernels, from timestamps (GPU)', kind: 'flag' },
    { name: '--json', help: 'machine-readable', kind: 'flag' },
    ...modelOptions,
  ],
  async run(given) {
    const prompt = count(given, '--pp', 512), predicted = count(given, '--tg', 128);
    const depth = count(given, '--depth', 0), repetitions = count(given, '--repeats', 5);
    if (!repetitions) throw new Misuse('--repeats must be at least 1');
    const steps = count(given, '--steps', 20);
    if (steps < 1 || steps > 1023) throw new Misuse('--steps must be between 1 and 1023');
    return interruptible(async (signal) => {
      const name = given.args[0] as string, { model } = await openModel(name, given, signal);
      const written = Math.max(predicted, model.info.n_canvas);
      const conversation = await model.conversation(
        given.number('--ctx') || depth + Math.max(prompt + model.info.n_canvas, written) + 4,
      );
      const shown = process.stderr.isTTY;
      const result = await measure(model, path.basename(
        name,
      ), conversation, {
        prompt, predicted, depth, repetitions, steps, profile: given.has('--profile'),
      }, signal, (p) => {
        if (shown) process.stderr.write(`\r\x1b[K${p.test} ${p.done} of ${p.total}`);
      });
      if (shown) process.stderr.write('\r\x1b[K');
      const tables = result.profile
        ? kernels(result.steps ? 'a step' : 'a token', result.profile.token.kernels)
          + kernels('a prompt', result.profile.prompt.kernels)
        : '';
      process.stdout.write(
        given.has('--json')
          ? `${JSON.stringify(result)}\n`
          : `${table(result)}\n${facts(result)}${tables}`,
      );
      if (given.has('--profile') && !tables && !given.has('--json'))
        process.stderr.write('bezel bench: only the GPU has kernels to time\n');
      model.close();
      return OK;
    });
  },
};

/** A token and its logit. */
type Best = [number, number];

/** Best token and its logit after each of the ids, as the CPU has them; `batch` of them at a
 *  time are read. */
async function oracle(
  name: string, ids: Int32Array, given: Given, batch?: number,
): Promise<Best[]> {
  const native = given.text('--native'), store = given.text('--store');
  const asked = given.texts('--adapter');
  if (native !== undefined) {
    const out = execFileSync(
      native,
      [
        'logits', name, '--ids', ids.join(','), '--top', '1',
        ...(batch ? ['--batch', String(batch)] : []),
        ...(store === undefined ? [] : ['--store', store]),
        ...asked.flatMap((spec) => ['--adapter', spec]),
      ],
      { encoding: 'utf8', maxBuffer: 1 << 26, stdio: ['ignore', 'pipe', 'inherit'] },
    );
    return out.trim().split('\n').map((line) => (JSON.parse(line) as { top: [Best] }).top[0]);
  }
  const core = await Core.load(await loadWasm());
  const { sources, adapters, store: texts } = await locate(core, name, store);
  const model = await CpuModel.open(core, sources, {
    name, ...(batch && { batch }), ...(texts && { store: texts }),
  });
  for (const adapter of [...adapters, ...asked]) await addAdapter(model, adapter);
  const made: Best[] = [];
  await (await model.conversation(ids.length)).logits(ids, (_, row) => {
    const [best = 0] = findBest(row, 1);
    made.push([best, row[best] as number]);
  });
  model.close();
  return made;
}

type Verdict = 'same' | 'tie' | 'other';

/** Two tokens are a tie when they are closer together than the backends are; more than this
 *  apart, those do not agree at all. */
const TIE = 0.01;

/** What the conversation makes of each position beside `want`, and how far off it is at the
 *  worst. */
async function compare(
  conversation: Conversation, ids: Int32Array, want: readonly Best[],
): Promise<{ verdicts: Verdict[]; worst: number }> {
  if (want.length !== ids.length)
    throw new BezelError('the CPU gave another number of positions', 'io');
  const verdicts: Verdict[] = [];
  let worst = 0;
  conversation.truncate(0);
  await conversation.logits(ids, (position, row) => {
    const [id, logit] = want[position] as Best, [best = 0] = findBest(row, 1);
    const off = Math.abs((row[id] as number) - logit);
    const apart = (row[best] as number) - (row[id] as number);
    worst = Math.max(worst, off);
    verdicts.push(best === id ? 'same' : apart <= Math.min(2 * off, TIE) ? 'tie' : 'other');
  });
  return { verdicts, worst };
}

/** What became of all positions; `by_token` are those that are as on the CPU only where it reads
 *  token by token. */
interface Agreement {
  positions: number;
  same: number;
  ties: number;
  by_token: number;
  worst: number;
}

/** One prompt. Where the CPU's answer is another one, it is asked again, in another order of its
 *  sums. */
async function checkPrompt(
  conversation: Conversation, ids: Int32Array, want: readonly Best[], again: () => Promise<Best[]>,
): Promise<Agreement> {
  const { verdicts, worst } = await compare(conversation, ids, want);
  const count = (v: Verdict): number => verdicts.filter((is) => is === v).length;
  const made = {
    positions: ids.length, same: count('same'), ties: count('tie'), by_token: 0, worst,
  };
  if (!count('other')) return made;
  const { verdicts: second } = await compare(conversation, ids, await again());
  return {
    ...made, by_token: verdicts.filter((v, i) => v === 'other' && second[i] !== 'other').length,
  };
}

function agreementText(a: Agreement): string {
  const parts = [
    `best token as on the CPU at ${a.same} of ${a.positions} `
      + `positions${a.ties ? ` (${a.ties} ties)` : ''}; `
      + `its logit off by at most ${a.worst.toExponential(2)}`,
    a.by_token
      && `at ${a.by_token} more it is the token that the CPU has when it reads token by token: `
        + 'its own answer there depends on the order of its sums',
  ];
  return parts.filter(Boolean).join('\n');
}

export const check: Command = {
  name: 'check',
  usage: 'MODEL',
  about:
    'Does the GPU (or what --backend names) agree with the CPU on this file? Compares\n'
      + 'the best next token at every position; fails when one differs by more than a tie. Where '
      + 'it does, the CPU is\nasked again token by token, which is another order of its sums: with '
      + 'experts that are\nall but equal a choice in one place changes what every later one sees, '
      + 'on one and the\nsame CPU too. Several short prompts leave less room for '
      + 'that than a long one.',
  args: 1,
  options: [
    { name: '--positions', arg: 'N', help: 'tokens of a prompt; default 32', kind: 'whole' },
    { name: '--prompts', arg: 'N', help: 'how many prompts; default 1', kind: 'whole' },
    {
      name: '--save',
      arg: 'PATH',
      help: 'write what the CPU says there, for bench/browser.html',
      kind: 'text',
    },
    {
      name: '--native',
      arg: 'PATH',
      help: 'ask the native tool there, which is faster, instead of this one',
      kind: 'text',
    },
    { name: '--json', help: 'machine-readable', kind: 'flag' },
    ...modelOptions.map((o) =>
      (o.name === '--backend'
        ? { ...o, help: 'gpu (default), cpu, or reference, the slow oracle' }
        : o)),
  ],
  async run(given) {
    const n = count(given, '--positions', 32), prompts = count(given, '--prompts', 1);
    const name = given.args[0] as string;
    if (!n || !prompts) throw new Misuse('--positions and --prompts must be at least 1');
    const { model } = await openModel(name, given, undefined, 'gpu'); // the CPU agrees with itself
    const conversation = await model.conversation(n), save = given.text('--save');
    const said: { ids: number[]; top: Best[] }[] = [];
    const all: Agreement = { positions: 0, same: 0, ties: 0, by_token: 0, worst: 0 };
    for (let prompt = 0; prompt < prompts; prompt++) {
      const ids = anyTokens(n, model.info.n_vocab, prompt * n);
      const want = await oracle(name, ids, given);
      said.push({ ids: [...ids], top: want });
      const one = await checkPrompt(conversation, ids, want, () => oracle(name, ids, given, 1));
      for (const key of ['positions', 'same', 'ties', 'by_token'] as const) all[key] += one[key];
      all.worst = Math.max(all.worst, one.worst);
    }
    if (save !== undefined) writeFileSync(save, JSON.stringify(said));
    const agrees = all.same + all.ties + all.by_token === all.positions;
    const { name: device } = model.device;
    process.stdout.write(
      given.has('--json')
        ? `${JSON.stringify({ device, ...all, agrees })}\n`
        : `${device}: ${agreementText(all)}\n`,
    );
    model.close();
    return agrees ? OK : FAILED;
  },
};
