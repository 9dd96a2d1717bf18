// diffuse - continue a text with a diffusion model, every step of its canvases in reach.

import type { CanvasOptions, Info } from '../engine/cpu_engine.js';
import type { CanvasStep, Model } from '../engine/model.js';
import { readText } from '../load/node_files.js';
import { BezelError } from '../engine/wasm.js';
import { Misuse, OK, parseIds, type Command, type Given, type Option } from './args.js';
import { interruptible, stopCode } from './interrupt.js';
import { modelOptions, openModel } from './model.js';
import { printable } from './terminal.js';
import { Watch } from './watch.js';

const diffuseOptions: readonly Option[] = [
  {
    name: '--prompt',
    arg: 'TEXT',
    help: 'text to continue (special tokens are parsed)',
    kind: 'text',
  },
  { name: '--ids', arg: 'LIST', help: 'token ids to continue instead', kind: 'text' },
  { name: '--chat', help: 'the prompt is a question to answer', kind: 'flag' },
  { name: '--thinking', help: 'with --chat: let the model think first', kind: 'flag' },
  { name: '--steps', arg: 'N', help: 'steps of a canvas at most', kind: 'whole' },
  {
    name: '--entropy-bound',
    arg: 'X',
    help: 'nats that the accepted positions may have together',
    kind: 'number',
  },
  {
    name: '--confidence',
    arg: 'X',
    help: 'mean nats below which a stable canvas is finished',
    kind: 'number',
  },
  {
    name: '--stability',
    arg: 'K',
    help: 'steps that must leave the best tokens as they are',
    kind: 'whole',
  },
  { name: '--t-max', arg: 'X', help: 'temperature of the first step', kind: 'number' },
  { name: '--t-min', arg: 'X', help: 'temperature that the steps go down to', kind: 'number' },
  {
    name: '--canvases',
    arg: 'N',
    help: 'canvases at most; default until the model ends',
    kind: 'whole',
  },
  { name: '--n', arg: 'N', help: 'tokens at most', kind: 'whole' },
  { name: '--seed', arg: 'N', help: 'same seed, same text', kind: 'whole' },
  {
    name: '--script',
    arg: 'FILE',
    help:
      'tokens to use instead of random ones: JSON {"random": [[...], ...],\n'
        + '"sampled": [[...], ...]}, canvases and draws in the order of use',
    kind: 'text',
  },
  { name: '--watch', help: 'show the canvas after every step', kind: 'flag' },
  { name: '--specials', help: 'show control tokens too', kind: 'flag' },
  { name: '--json', help: 'print {"ids", "text", "canvases"} at the end', kind: 'flag' },
  { name: '--stats', help: 'speed, on standard error', kind: 'flag' },
  ...modelOptions,
];

type Script = Pick<CanvasOptions, 'random' | 'sampled'>;

/** A script's canvases, one after the other. */
function readScript(place: string, { n_canvas: n, n_vocab }: Info): Script {
  const wrong = (what: string): never => {
    throw new BezelError(`${place}: ${what}`, 'format');
  };
  const text = readText(place);
  let script: unknown;
  try {
    script = JSON.parse(text);
  } catch {
    return wrong('not valid JSON'); // the reason quotes the file, whatever is in it
  }
  if (typeof script !== 'object' || script === null || !('random' in script || 'sampled' in script))
    return wrong('the script must be {"random": [...], "sampled": [...]}');
  const flat: Record<string, number[]> = {};
  for (const key of ['random', 'sampled']) {
    const list = (script as Record<string, unknown>)[key];
    if (list === undefined) continue;
    if (!Array.isArray(list)) return wrong(`the script's "${key}" must be a list of canvases`);
    for (const canvas of list as unknown[]) {
      if (!Array.isArray(canvas) || canvas.length !== n)
        return wrong(`the script's "${key}" must hold canvases of ${n} tokens`);
      if (!canvas.every((id) => Number.isInteger(id) && id >= 0 && id < n_vocab))
        return wrong(
          `the script's "${key}" holds something that is no token id below ${n_vocab}`,
        );
    }
    flat[key] = (list as number[][]).flat();
  }
  return flat;
}

/** What was asked for; the rest is as the file says. */
function diffusionOf(given: Given, info: Info): CanvasOptions {
  const made: Record<string, number> = {};
  for (const [option, key] of [
    ['--steps', 'steps'], ['--entropy-bound', 'entropy_bound'], ['--confidence', 'confidence'],
    ['--stability', 'stability'], ['--t-max', 't_max'], ['--t-min', 't_min'],
    ['--canvases', 'canvases'],
  ] as const) {
    const value = given.number(option);
    if (value !== undefined)
      made[key] = Math.min(value, 0xffffffff);
  }
  const place = given.text('--script');
  return { ...made, ...(place !== undefined && readScript(place, info)) };
}

function promptOf(given: Given, model: Model): Int32Array {
  const list = given.text('--ids'), prompt = given.text('--prompt') ?? '';
  if (list !== undefined) return parseIds(list);
  if (!given.has('--chat')) return model.tokenize(prompt);
  const messages = [{ role: 'user', content: prompt }];
  return model.chatTokens(JSON.stringify({ messages }), { thinking: given.has('--thinking') }).ids;
}

/** What is printed of the steps as they come. */
class Output {
  readonly ids: number[] = [];
  text = '';
  private readonly canvases: string[] = [];
  private readonly watch: Watch | undefined;
  steps = 0;

  constructor(model: Model, private readonly json: boolean, watches: boolean) {
    this.watch = watches ? new Watch(model) : undefined;
  }

  take(step: CanvasStep): void {
    this.steps++;
    this.watch?.step(step);
    if (step.stopped !== 'goes-on')
      this.canvases.push(`{"steps":${step.step},"stopped":"${step.stopped}"}`);
    if (!step.final) return;
    this.ids.push(...step.final.ids);
    this.text += step.final.text;
    if (this.json) return;
    if (step.final.text) this.watch?.end();
    process.stdout.write(printable(step.final.text));
  }

  end(): void {
    this.watch?.end();
    process.stdout.write(
      this.json
        ? `{"ids":[${this.ids.join(',')}],"text":${JSON.stringify(this.text)},`
          + `"canvases":[${this.canvases.join(',')}]}\n`
        : '\n',
    );
  }

  stats(ms: number): string {
    const n = this.ids.length, each = ms / Math.max(1, this.steps);
    return `${n} tokens, ${this.canvases.length} canvases, ${this.steps} steps, `
      + `${each.toFixed(1)} ms a step, ${((1000 * n) / ms).toFixed(2)} tok/s\n`;
  }
}

async function continued(given: Given, signal: AbortSignal): Promise<number> {
  const { model } = await openModel(given.args[0] as string, given, signal);
  const { info } = model;
  if (!info.n_canvas)
    throw new BezelError(
      'this model writes one token after the other; see: bezel generate', 'argument',
    );
  const diffusion = diffusionOf(given, info), ids = promptOf(given, model);
  const conversation = await model.conversation(given.number('--ctx'));
  if (!conversation.denoise)
    throw new BezelError('this backend denoises no canvases', 'unsupported');
  const output = new Output(model, given.has('--json'), given.has('--watch'));
  if (ids.length) await conversation.set(ids, { signal });
  const start = performance.now(), n = given.number('--n');
  const steps = conversation.denoise({
    diffusion,
    seed: given.big('--seed') ?? (info.sampling.seed || BigInt(Date.now()) * 1000003n),
    specials: given.has('--specials'),
    ...(n && { n_max: Math.min(n, 0xffffffff) }),
    signal,
  });
  let next = await steps.next();
  for (; !next.done; next = await steps.next()) output.take(next.value);
  const ms = performance.now() - start;
  output.end();
  if (next.value.stop === 'context')
    process.stderr.write('(the context is full; --ctx N makes it larger)\n');
  if (given.has('--stats')) process.stderr.write(output.stats(ms));
  model.close();
  return next.value.stop === 'cancelled' ? stopCode() : OK;
}

export const diffuse: Command = {
  name: 'diffuse',
  usage: 'MODEL --prompt TEXT | --ids LIST',
  about: 'Continue a text with a diffusion model. What is not said, the file says.',
  args: 1,
  options: diffuseOptions,
  async run(given) {
    if ((given.text('--prompt') === undefined) === (given.text('--ids') === undefined))
      throw new Misuse('give either --prompt or --ids');
    if (given.has('--chat') && given.has('--ids')) throw new Misuse('--chat takes a --prompt');
    if (given.has('--json') && given.has('--watch'))
      throw new Misuse('--watch and --json exclude each other');
    return interruptible((signal) => continued(given, signal));
  },
};
