// stalls.mjs - what somebody waits for who has just loaded a model: first prompts of several
// lengths, and gaps in a long text.
//
//   node bench/stalls.mjs MODEL.gguf [--tokens 2300] [--context 4096] [--quiet 4]
//
// A prompt is read by a new conversation, and timed up to its first token, twice each length: the
// first one has to wait for kernels that are not compiled yet, and says how many those were. Then a
// text is written twice. --quiet: seconds in which nothing is asked of the model after the load.
// Drivers keep what they have compiled for the next process: figures of a machine that never saw
// the kernels come from the first run there.
import { parseArgs } from 'node:util';
import { GpuModel, fileSource, loadWasm, openDevice } from '../web/engine/dist/core.js';

const { values: o, positionals: [file] } = parseArgs({
  allowPositionals: true,
  options: {
    tokens: { type: 'string', default: '2300' }, context: { type: 'string', default: '4096' },
    quiet: { type: 'string', default: '4' },
  },
});
if (!file || !(+o.tokens > 0) || !(+o.context > 512) || !(+o.quiet >= 0)) {
  console.error(
    'usage: node bench/stalls.mjs MODEL.gguf [--tokens N] [--context N] [--quiet SECONDS]',
  );
  process.exit(2);
}
const LENGTHS = [12, 24, 40, 100, 300, 512], BATCH = 512, GAPS = 5, PART = 100; // tokens
const { engine } = await GpuModel.open(await loadWasm(), openDevice, [await fileSource(file)], {});
const { gpu } = engine;
await new Promise((over) => setTimeout(over, 1000 * +o.quiet));

const ids = (n) => Int32Array.from({ length: n }, (_, i) => (i ? 5 + i : 2));
const greedy = { temperature: 0, ignore_end: true };

/** A new conversation reads a prompt and goes on. */
async function text(length, n_max, each = () => {}) {
  const session = engine.session(+o.context, BATCH);
  await session.read(ids(length));
  for await (const _ of session.generate({ ...greedy, n_max })) each();
  session.close();
}

for (const length of LENGTHS) {
  const took = [];
  for (let i = 0; i < 2; i++) {
    const start = performance.now(), asked = gpu.pipelinesAsked;
    await text(length, 1);
    took.push(
      `${(performance.now() - start).toFixed(0)} ms (${gpu.pipelinesAsked - asked} kernels)`,
    );
  }
  console.log(`prompt of ${length} tokens: ${took.join(', again ')}`);
}
for (const name of ['a text', 'again']) {
  const came = [performance.now()];
  await text(4, +o.tokens, () => came.push(performance.now()));
  const gaps =
    came.slice(1).map((t, i) => [t - came[i], i]).sort(([a], [b]) => b - a).slice(0, GAPS);
  const parts = came
    .filter((_, i) => i % PART === 0)
    .map((t, i, all) => (i ? 1000 * PART / (t - all[i - 1]) : 0))
    .slice(1);
  console.log(
    `${name} of ${came.length - 1} tokens: `
      + `${(1000 * (came.length - 1) / (came.at(-1) - came[0])).toFixed(0)} tok/s, by hundreds `
      + `${parts.map((n) => n.toFixed(0)).join(' ')}; `
      + `longest gaps ${gaps.map(([ms, at]) => `${ms.toFixed(0)} ms at ${at}`).join(', ')}`,
  );
}
process.exit(0);
