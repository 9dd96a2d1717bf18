// run - the commands that compute: logits and generate.

import { fillFile } from '../train/merge_to.js';
import { BezelError } from '../engine/wasm.js';
import { Misuse, OK, parseIds, type Command } from './args.js';
import { formOptions, keeping, readForm } from './form.js';
import { interruptible, stopCode } from './interrupt.js';
import { modelOptions, openModel, sampling, samplingOptions } from './model.js';
import { printable } from './terminal.js';

/** The shortest decimal that reads back as the same f32. */
function putF32(f: number): string {
  if (!Number.isFinite(f)) return 'null';
  if (Object.is(f, -0)) return '-0';
  let digits = 1;
  while (digits < 9 && Math.fround(Number(f.toPrecision(digits))) !== f) digits++;
  return String(Number(f.toPrecision(digits)));
}

/** The `top` best of a row, best first, ties to the lower id. */
export function findBest(logits: Float32Array, top: number): number[] {
  const best: number[] = [];
  const at = (i: number): number => logits[best[i] as number] as number;
  for (let id = 0; id < logits.length; id++) {
    const z = logits[id] as number;
    if (best.length === top && !(z > at(top - 1))) continue;
    let i = best.length < top ? best.length : top - 1;
    for (; i > 0 && z > at(i - 1); i--) best[i] = best[i - 1] as number;
    best[i] = id;
  }
  return best;
}

export const logits: Command = {
  name: 'logits',
  usage: 'MODEL --ids LIST',
  about: 'The best logits after each token, one JSON object a line.',
  args: 1,
  options: [
    { name: '--ids', arg: 'LIST', help: 'token ids, separated by commas', kind: 'text' },
    { name: '--top', arg: 'K', help: 'how many of each position; default 8', kind: 'whole' },
    {
      name: '--all-bin',
      arg: 'FILE',
      help: 'write every logit as f32 to FILE instead',
      kind: 'text',
    },
    ...modelOptions,
  ],
  async run(given) {
    const list = given.text('--ids'), top = given.number('--top') ?? 8;
    const file = given.text('--all-bin');
    if (list === undefined) throw new Misuse('--ids is needed');
    if (!top) throw new Misuse('--top must be at least 1');
    const ids = parseIds(list);
    if (!ids.length) throw new BezelError('no token ids were given', 'argument');
    return interruptible(async (signal) => {
      const { model } = await openModel(given.args[0] as string, given, signal);
      const conversation = await model.conversation(given.number('--ctx') || ids.length);
      const show = (position: number, z: Float32Array): void => {
        const best = findBest(z, Math.min(top, z.length));
        const pairs = best.map((id) => `[${id},${putF32(z[id] as number)}]`);
        process.stdout.write(`{"pos":${position},"top":[${pairs}]}\n`);
      };
      if (file === undefined) await conversation.logits(ids, show, signal);
      else
        await fillFile(
          file,
          (out) => conversation.logits(
            ids,
            (_, z) => out.writeNow(new Uint8Array(z.buffer, z.byteOffset, z.byteLength)),
            signal,
          ),
        );
      model.close();
      return OK;
    });
  },
};

export const generate: Command = {
  name: 'generate',
  usage: 'MODEL --prompt TEXT | --ids LIST',
  about: 'Continue a text. For conversations see: bezel chat',
  args: 1,
  options: [
    {
      name: '--prompt',
      arg: 'TEXT',
      help: 'text to continue (special tokens are parsed)',
      kind: 'text',
    },
    { name: '--ids', arg: 'LIST', help: 'token ids to continue instead', kind: 'text' },
    {
      name: '--n',
      arg: 'N',
      help: 'tokens at most; 0: until the model ends; default 128',
      kind: 'whole',
    },
    { name: '--stop', arg: 'TEXT', help: 'end before this string; may be repeated', kind: 'texts' },
    { name: '--json', help: 'print {"ids", "text", "stop"} at the end', kind: 'flag' },
    { name: '--stats', help: 'speed, on standard error', kind: 'flag' },
    ...formOptions,
    ...samplingOptions,
    ...modelOptions,
  ],
  async run(given) {
    const prompt = given.text('--prompt'), list = given.text('--ids'), json = given.has('--json');
    if ((prompt === undefined) === (list === undefined))
      throw new Misuse('give either --prompt or --ids');
    if ((given.number('--n') ?? 0) > 0xffffffff) throw new Misuse('--n is too large');
    const wanted = list === undefined ? undefined : parseIds(list), form = readForm(given);
    return interruptible(async (signal) => {
      const { model, hasLimit } = await openModel(given.args[0] as string, given, signal);
      const conversation = await model.conversation(given.number('--ctx'));
      const ids = wanted ?? model.tokenize(prompt ?? '');
      if (!ids.length) throw new BezelError('the prompt is empty', 'argument');
      const options = {
        ...sampling(given, model.info),
        // else the store says
        ...(given.has('--n') || !hasLimit ? { n_max: given.number('--n') ?? 128 } : {}),
        ...(given.has('--stop') && { stop: given.texts('--stop') }),
        ...keeping(model, form),
        signal,
      };
      const start = performance.now();
      await conversation.set(ids, { signal });
      const promptEnd = performance.now(), pieces = conversation.generate(options);
      const made: number[] = [];
      let text = '', step = await pieces.next();
      for (; !step.done; step = await pieces.next()) {
        made.push(step.value.id);
        text += step.value.text;
        if (!json) process.stdout.write(printable(step.value.text));
      }
      const end = performance.now(), { stop } = step.value;
      process.stdout.write(
        json
          ? `{"ids":[${made.join(',')}],"text":${JSON.stringify(text)},"stop":"${stop}"}\n`
          : '\n',
      );
      const speed = (n: number, ms: number): string =>
        `${n} tokens, ${((1000 * n) / ms).toFixed(2)} tok/s`;
      if (given.has('--stats'))
        process.stderr.write(
          `prompt ${speed(ids.length, promptEnd - start)}; `
            + `generated ${speed(made.length, end - promptEnd)}\n`,
        );
      model.close();
      return stop === 'cancelled' ? stopCode() : OK;
    });
  },
};
