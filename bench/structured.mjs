// structured - are all answers of a model JSON of the schema that was asked for? 500 questions with
// 50 schemas, with and without thinking; each answer is looked at by ajv.
//
//   node bench/structured.mjs [MODEL] [--cases 500] [--backend cpu] [--temperature 0] [--show]
import { parseArgs } from 'node:util';

import { Engine } from '../web/engine/dist/index.js';
import { cases } from '../tests/web/structured_cases.mjs';
import { answer } from '../tests/web/structured_run.mjs';

const { values, positionals: [model = 'models/tiny.q8_0.gguf'] } = parseArgs({
  allowPositionals: true,
  options: {
    cases: { type: 'string', default: '500' }, backend: { type: 'string', default: 'cpu' },
    temperature: { type: 'string', default: '0' }, show: { type: 'boolean', default: false },
  },
});
const engine = await Engine.load(model, { backend: values.backend });
const temperature = Number(values.temperature), all = cases(Number(values.cases));
let failed = 0;
for (const thinking of [false, true]) {
  let valid = 0, tokens = 0, ms = 0, thoughts = 0;
  for (const [i, one] of all.entries()) {
    const made = await answer(engine, one, { thinking, temperature, seed: i });
    tokens += made.tokens;
    ms += made.ms;
    thoughts += made.thought !== '';
    if (made.wrong) console.log(`WRONG ${one.prompt}\n  ${made.wrong}`);
    else valid++;
    if (values.show) console.log(`${one.prompt}\n  ${made.text}`);
  }
  failed += all.length - valid;
  console.log(
    `thinking ${thinking ? 'on ' : 'off'}: ${valid} of ${all.length} valid, ${thoughts} with `
      + `thoughts, ${tokens} tokens, ${((1000 * tokens) / ms).toFixed(0)} tok/s`,
  );
}
await engine.dispose();
process.exitCode = Math.min(failed, 100);
