// train - `bezel train`: learn a LoRA adapter from conversations. Options and output are the native
// tool's.

import * as fs from 'node:fs';
import * as os from 'node:os';
import * as path from 'node:path';

import { fileSink, writeFile } from '../train/merge_to.js';
import type {
  Model, Training, TrainingReport, TrainingTexts, TrainingWishes,
} from '../engine/model.js';
import { readText } from '../load/node_files.js';
import { sumBy } from '../gpu/profile.js';
import { openFitting, trainEstimate } from '../train/train_memory.js';
import { TRAIN_SEQUENCE } from '../engine/boundary.js';
import { BezelError } from '../engine/wasm.js';
import { Misuse, OK, type Command, type Given } from './args.js';
import { kernels } from './bench.js';
import { engineOptions, openModel } from './model.js';

function wishesOf(given: Given): TrainingWishes {
  const number = (name: string, key: keyof TrainingWishes): TrainingWishes =>
    (given.has(name) ? { [key]: given.number(name) } : {});
  const rank = given.number('--rank') ?? 16, share = given.number('--eval-share') ?? 0;
  const sequence = given.number('--max-tokens') ?? TRAIN_SEQUENCE;
  if (sequence < 1 || sequence > 1 << 20 || share < 0 || share > 0.5)
    throw new Misuse('--max-tokens is 1 to 1048576, --eval-share 0 to 0.5');
  const targets = given.texts('--target'), schedule = given.text('--schedule');
  return {
    rank, alpha: given.number('--alpha') ?? 2 * rank, sequence,
    rslora: given.has('--rslora'), no_packing: given.has('--no-packing'),
    ...(targets.length && { targets }),
    ...(schedule !== undefined && { schedule: schedule as 'cosine' }), // the core knows the names
    ...number('--lr', 'lr'), ...number('--warmup', 'warmup'), ...number('--epochs', 'epochs'),
    ...number('--steps', 'steps'),
    ...number('--batch-size', 'batch'), ...number('--dropout', 'dropout'),
    ...number('--decay', 'decay'), ...number('--clip', 'clip'), ...number('--seed', 'seed'),
    ...(given.has('--eval') ? {} : number('--eval-share', 'eval_share')),
  };
}

const say = (fact: object): void => void process.stdout.write(`${JSON.stringify(fact)}\n`);

interface Step {
  ms: number;
  tokens: number;
}

/** Once pipelines are compiled and the device is warm: the median of the later half of the
 *  steps. */
function steadySpeed(took: readonly Step[]): string {
  const later = took.slice(Math.ceil(took.length / 2)).sort((a, b) => a.ms - b.ms);
  const middle = later[later.length >> 1];
  return middle
    ? `steady: ${middle.ms.toFixed(1)} ms a step, `
      + `${((1000 * middle.tokens) / middle.ms).toFixed(1)} tok/s (median of the `
      + `last ${later.length})`
    : '';
}

/** One more step, and where its time goes. */
async function profileStep(training: Training): Promise<void> {
  if (!training.profile) throw new BezelError('only the GPU has kernels to time', 'device');
  const { report, submits, dispatches } = await training.profile();
  const sized = sumBy(dispatches, ({ kernel, groups }) => `${kernel} x${groups}`);
  process.stdout.write(
    kernels('a step', sumBy(dispatches, ({ kernel }) => kernel)) + kernels('by workgroups', sized),
  );
  process.stdout.write(
    `${report.tokens} tokens, ${dispatches.length} dispatches, ${submits} submits\n`,
  );
}

async function learn(training: Training, given: Given, isOver: () => boolean): Promise<void> {
  const { step: begun, steps, held } = training.about, every = given.number('--every') ?? 50;
  const checkpoint = given.text('--checkpoint');
  /** A full disk is no reason to stop learning: the next checkpoint may find room. */
  const save = async (): Promise<void> => {
    if (checkpoint === undefined) return;
    const bytes = await training.save();
    await writeFile(checkpoint, bytes).catch((e: unknown) =>
      process.stderr.write(`${sentence(e)}; the training goes on without this checkpoint\n`));
  };
  const measure = async (step: number): Promise<void> =>
    held ? say({ step, eval_loss: Number((await training.evaluate()).toFixed(6)) }) : undefined;
  // one is left for the profile
  const took: Step[] = [], last = given.has('--profile') ? steps - 1 : steps;
  const tell = (r: TrainingReport, ms: number): void => {
    say({
      step: r.step, steps, loss: Number(r.loss.toFixed(6)), lr: Number(r.lr.toPrecision(3)),
      grad_norm: Number(r.grad_norm.toPrecision(4)),
      tok_s: Number(((1000 * r.tokens) / ms).toFixed(1)),
    });
  };
  await measure(begun);
  for (let step = begun; step < last && !isOver(); step++) {
    const start = performance.now(), r = await training.step(), ms = performance.now() - start;
    took.push({ ms, tokens: r.tokens });
    tell(r, ms);
    const due = every > 0 && r.step % every === 0;
    if (due) await save();
    if (due || r.step === steps) await measure(r.step);
  }
  const steady = steadySpeed(took);
  if (steady) process.stderr.write(`${steady}\n`);
  if (last < steps && !isOver()) {
    await profileStep(training);
    await measure(steps);
  }
}

/** Found out before anything is learned, not after. */
async function checkPlaces(given: Given): Promise<void> {
  for (const place of [given.text('--out') ?? 'adapter.gguf', given.text('--checkpoint')])
    if (place !== undefined) await (await fileSink(place)).abort();
}

/** What is wrong with a line names its file: the core was given texts. */
async function namingFiles<T>(
  data: string, held: string | undefined, work: () => Promise<T>,
): Promise<T> {
  try {
    return await work();
  } catch (e) {
    if (!(e instanceof BezelError)) throw e;
    throw new BezelError(
      e.message.replace(/^the data( to evaluate)?(?= )/, (_, evaluated) =>
        (evaluated ? held ?? data : data)),
      e.kind,
      e.cause,
    );
  }
}

/** With as much kept of a pass as was asked for, or as fits. */
async function open(
  model: Model, texts: TrainingTexts, wishes: TrainingWishes, given: Given,
): Promise<Training> {
  if (given.has('--keep-all') || given.has('--checkpointing'))
    return model.training(texts, { ...wishes, keep_all: given.has('--keep-all') });
  const estimate = trainEstimate(model, wishes, texts.data);
  process.stderr.write(
    `${estimate.sentence}${estimate.checkpointing ? ' It is checkpointed.' : ''}\n`,
  );
  return openFitting(model, texts, wishes, estimate);
}

const sentence = (e: unknown): string => (e instanceof Error ? e.message : String(e));

/** Where it should go. Where that fails, beside it or among the temporary files: hours of learning
 *  are not lost to a place. The error says where it is. */
async function writeLearned(out: string, bytes: Uint8Array): Promise<void> {
  try {
    return await writeFile(out, bytes);
  } catch (e) {
    for (const other of [
      `${out}.${process.pid}.gguf`, path.join(os.tmpdir(), `bezel-adapter-${process.pid}.gguf`),
    ]) {
      if (!(await writeFile(other, bytes).then(() => true, () => false))) continue;
      throw new BezelError(
        `${sentence(e)}; what was learned is in ${other}`,
        e instanceof BezelError ? e.kind : 'io',
        e,
      );
    }
    throw e;
  }
}

async function writePeft(folder: string, safetensors: Uint8Array, config: string): Promise<void> {
  fs.mkdirSync(folder, { recursive: true });
  await writeFile(path.join(folder, 'adapter_model.safetensors'), safetensors);
  await writeFile(path.join(folder, 'adapter_config.json'), new TextEncoder().encode(config));
}

async function writeAdapter(training: Training, model: string, given: Given): Promise<void> {
  const out = given.text('--out') ?? 'adapter.gguf', peft = given.text('--peft');
  const { gguf, safetensors, config } = await training.files(model);
  await writeLearned(out, gguf);
  if (peft !== undefined)
    await writePeft(peft, safetensors, config).catch((e: unknown) => {
      process.stderr.write(`${out} holds what was learned\n`);
      throw e;
    });
  process.stderr.write(
    `${out}: ${(gguf.length / 1e6).toFixed(1)} MB`
      + `${peft === undefined ? '' : `; PEFT in ${peft}`}\n`,
  );
}

/** A training that fails after some steps leaves what it learned before, as one that is
 *  interrupted does. */
async function keepLearned(training: Training, model: string, given: Given): Promise<void> {
  try {
    const { step } = training.about;
    if (!step) return;
    await writeAdapter(training, model, given);
    process.stderr.write(
      `${given.text('--out') ?? 'adapter.gguf'} holds what was learned up to step ${step}\n`,
    );
  } catch (e) {
    process.stderr.write(`${sentence(e)}\n`); // why the training failed is told last
  }
}

export const train: Command = {
  name: 'train',
  usage: 'MODEL DATA.jsonl',
  about:
    'Learn a LoRA adapter from conversations, one JSON object a line:\n'
      + '  {"messages": [{"role": "user", "content": "…"}, {"role": "assistant", …}]}\n'
      + '  {"prompt": "…", "completion": "…"}\n'
      + 'Prints one JSON object a step. Ctrl-C stops after the step and keeps what was learned.',
  args: 2,
  options: [
    { name: '--out', arg: 'FILE', help: 'the adapter; default adapter.gguf', kind: 'text' },
    { name: '--peft', arg: 'DIR', help: "write it in PEFT's form too", kind: 'text' },
    { name: '--rank', arg: 'R', help: '1 to 256; default 16', kind: 'whole' },
    {
      name: '--alpha', arg: 'A', help: "the adapter's strength is A/R; default 2R", kind: 'number',
    },
    { name: '--rslora', help: 'its strength is A/sqrt(R)', kind: 'flag' },
    {
      name: '--target',
      arg: 'NAME',
      help:
        "part of a tensor's name (attn_q, blk.*.ffn_); may be repeated; default every dense linear",
      kind: 'texts',
    },
    {
      name: '--dropout',
      arg: 'X',
      help: "share of the adapter's inputs left out at random; default 0",
      kind: 'number',
    },
    { name: '--lr', arg: 'X', help: 'learning rate; default 2e-4', kind: 'number' },
    { name: '--schedule', arg: 'NAME', help: 'constant, linear or cosine (default)', kind: 'text' },
    {
      name: '--warmup',
      arg: 'N',
      help: 'steps until the full rate; default a twentieth',
      kind: 'whole',
    },
    { name: '--epochs', arg: 'X', help: 'times through the data; default 3', kind: 'number' },
    { name: '--steps', arg: 'N', help: 'steps, instead of epochs', kind: 'whole' },
    { name: '--batch-size', arg: 'N', help: 'sequences a step; default 1', kind: 'whole' },
    { name: '--no-packing', help: 'every example is a sequence of its own', kind: 'flag' },
    { name: '--decay', arg: 'X', help: 'weight decay; default 0', kind: 'number' },
    { name: '--clip', arg: 'X', help: 'longest gradient; default 1, 0 for none', kind: 'number' },
    { name: '--seed', arg: 'N', help: 'same seed, same adapter', kind: 'whole' },
    {
      name: '--max-tokens', arg: 'N', help: `tokens of a sequence; default ${TRAIN_SEQUENCE}`,
      kind: 'whole',
    },
    {
      name: '--eval',
      arg: 'FILE',
      help: 'examples that are not learned, only measured',
      kind: 'text',
    },
    { name: '--eval-share', arg: 'X', help: 'hold back this share of the data', kind: 'number' },
    {
      name: '--checkpoint',
      arg: 'FILE',
      help: 'saved here, and gone on from when it exists',
      kind: 'text',
    },
    {
      name: '--every',
      arg: 'N',
      help: 'steps between checkpoints and measurements; default 50',
      kind: 'whole',
    },
    {
      name: '--profile',
      help: 'the last step kernel by kernel, from timestamps (GPU)',
      kind: 'flag',
    },
    {
      name: '--keep-all',
      help: 'no gradient checkpointing: faster, more memory; default up to 5 GB',
      kind: 'flag',
    },
    { name: '--checkpointing', help: 'gradient checkpointing: slower, less memory', kind: 'flag' },
    ...engineOptions,
  ],
  async run(given) {
    const [name = '', place = ''] = given.args, wishes = wishesOf(given);
    const held = given.text('--eval'), checkpoint = given.text('--checkpoint');
    const texts = { data: readText(place), ...(held !== undefined && { held: readText(held) }) };
    let over = false;
    const onInterrupt = (): void => void (over = true);
    const { model } = await openModel(name, given);
    process.once('SIGINT', onInterrupt); // a second one ends the process
    try {
      await checkPlaces(given);
      const training = await namingFiles(place, held, () => open(model, texts, wishes, given));
      const { examples, tokens, learned, sequences, steps, passes, bytes } = training.about;
      process.stderr.write(
        `${examples} examples, ${tokens} tokens of which ${learned} are learned, `
          + `in ${sequences} sequences; ${steps} steps of ${passes}\n`,
      );
      process.stderr.write(`memory beyond the model: ${(bytes / 1e6).toFixed(1)} MB\n`);
      if (checkpoint !== undefined && fs.existsSync(checkpoint)) {
        await training.load(fs.readFileSync(checkpoint));
        process.stderr.write(`going on after step ${training.about.step}\n`);
      }
      try {
        await learn(training, given, () => over);
      } catch (e) {
        await keepLearned(training, name, given);
        throw e;
      }
      await writeAdapter(training, name, given);
      if (checkpoint !== undefined) await writeFile(checkpoint, await training.save());
      training.close();
    } finally {
      process.off('SIGINT', onInterrupt);
      model.close();
    }
    return OK;
  },
};
