// constrained - what a constraint costs a token: answers that keep to one beside free ones, queued
// ahead and awaited.
//
//   node bench/constrained.mjs MODEL.gguf [--schema FILE] [--tokens 128] [--runs 5] [--cpu]
//                              [--device-profile NAME] [--json]
//   bench/browser.html?model=/e2b.gguf&constrained=1 does the same in a browser
//
// Each text is written greedily from the same prompt. Speeds are medians of the runs, tokens a
// second from the first token on, without the first run of each: it compiles the constraint, and
// computes the masks that all later texts with it find. "forced": tokens that had to come, which
// are read and not drawn. "look": what finding forced tokens and masks takes in the module, in
// microseconds. A constraint whose text ends sooner than it should is begun again.

const CASES = {
  // every token is drawn, from a mask
  strings: {
    schema: { type: 'array', minItems: 40, items: { type: 'string', minLength: 8, maxLength: 40 } },
  },
  // names of members must come, values are chosen
  record: {
    schema: {
      type: 'array', minItems: 40,
      items: {
        type: 'object',
        properties: {
          identifier: { type: 'integer', minimum: 0, maximum: 9999 },
          'is this one still available?': { type: 'boolean' },
          'category of the article': { enum: ['household goods', 'groceries', 'garden tools'] },
        },
        required: ['identifier', 'is this one still available?', 'category of the article'],
        additionalProperties: false,
      },
    },
  },
  // another mask for each token
  alternating: { regex: '([a-m]+[n-z]+[0-9 ]){900}' },
  // one mask for all tokens, as in a thought
  steady: { regex: '[a-z ]{2000}' },
};

const percent = (share) => `${(100 * share).toFixed(0)}%`;
const median = (list) => [...list].sort((a, b) => a - b)[(list.length - 1) >> 1] ?? 0;
const percentile = (list, p) =>
  [...list].sort((a, b) => a - b)[Math.floor(p * (list.length - 1))] ?? 0;

/** Counts what the device is given, and times looks, until `end`. */
function watch({ core, gpu }) {
  const seen = { submits: 0, reads: 0, looks: [] }, { exports } = core;
  const run = gpu?.run, before = gpu?.submits ?? 0;
  if (gpu)
    gpu.run = (items) => {
      seen.reads += items.filter(({ into }) => into?.byteLength === 4).length;
      return run.call(gpu, items);
    };
  core.exports = {
    ...exports,
    bz_wasm_generation_look(text) {
      const begin = performance.now(), kind = exports.bz_wasm_generation_look(text);
      seen.looks.push(1000 * (performance.now() - begin));
      return kind;
    },
  };
  seen.end = () => {
    core.exports = exports;
    if (!gpu) return;
    seen.submits = gpu.submits - before;
    delete gpu.run;
  };
  return seen;
}

/** n tokens of a text, from the first one on: tokens a second. */
async function write(conversation, prompt, options, n) {
  let first = 0, last = 0, tokens = 0, spent = 0;
  while (tokens < n) {
    const begun = tokens;
    await conversation.set(prompt);
    for await (const _ of conversation.generate({
      temperature: 0, stop: [], n_max: n - tokens, ...options,
    })) {
      last = performance.now();
      if (tokens++ === begun) first = last;
    }
    if (tokens - begun < 2) throw new Error('the text of this constraint has hardly any tokens');
    spent += last - first;
  }
  return (1000 * (tokens - 1)) / spent;
}

/** Speeds and costs of a model, line by line to `say`; `cases` are constraints by their names. */
export async function constrained(model, say, { tokens = 128, runs = 5, cases = CASES } = {}) {
  const conversation = await model.conversation(Math.min(1024, model.info.n_context));
  const prompt = Int32Array.from({ length: 32 }, (_, i) => (i ? 5 + ((i * 7919) % 290) : 2));
  const median_of = async (options) => {
    const speeds = [];
    for (let i = 0; i <= runs; i++) {
      const speed = await write(conversation, prompt, options, tokens);
      if (i) speeds.push(speed);
    }
    return median(speeds);
  };
  const free = { ignore_end: true };
  const result = {
    device: model.device.name, tokens, queued: await median_of(free),
    awaited: await median_of({ ...free, ahead: 1 }), cases: {},
  };
  say(
    `${result.device}, ${tokens} tokens: free ${result.queued.toFixed(1)} tok/s, awaited `
      + `${result.awaited.toFixed(1)}`,
  );
  for (const [name, constraint] of Object.entries(cases)) {
    const begin = performance.now(), why = model.checkConstraint(constraint);
    if (why) throw new Error(`${name}: ${why}`);
    const compile = performance.now() - begin;
    const cold = watch(model.engine);
    await write(conversation, prompt, { constraint }, tokens);
    cold.end();
    const speed = await median_of({ constraint });
    const warm = watch(model.engine);
    await write(conversation, prompt, { constraint }, tokens);
    warm.end();
    const one = {
      speed, of_awaited: speed / result.awaited, of_queued: speed / result.queued,
      forced: 1 - warm.reads / tokens, submits: warm.submits / tokens, compile_ms: compile,
      look_us: { p50: median(warm.looks), p99: percentile(warm.looks, 0.99) },
      first_look_us: {
        p50: median(cold.looks), mean: cold.looks.reduce((a, b) => a + b, 0) / cold.looks.length,
        p99: percentile(cold.looks, 0.99),
      },
    };
    result.cases[name] = one;
    const us = (all) => Object.entries(all).map(([what, n]) => `${what} ${n.toFixed(0)}`).join(' ');
    say(
      `${name.padEnd(12)} ${speed.toFixed(1).padStart(7)} tok/s, ${percent(one.of_awaited)} of `
        + `awaited, ${percent(one.of_queued)} of queued; forced ${percent(one.forced)}, `
        + `${one.submits.toFixed(2)} submits a token; compiled in ${compile.toFixed(1)} ms, look `
        + `${us(one.look_us)}, at first ${us(one.first_look_us)}`,
    );
  }
  conversation.close();
  return result;
}

async function main() {
  const { readFileSync } = await import('node:fs');
  const { parseArgs } = await import('node:util');
  const { fileSource, loadWasm, openDevice, CpuModel, Core, GpuModel } =
    await import('../web/engine/dist/core.js');
  const { values: o, positionals: [file] } = parseArgs({
    allowPositionals: true,
    options: {
      schema: { type: 'string' }, tokens: { type: 'string', default: '128' },
      runs: { type: 'string', default: '5' }, cpu: { type: 'boolean', default: false },
      'device-profile': { type: 'string' }, json: { type: 'boolean', default: false },
    },
  });
  if (!file || !(+o.tokens > 1) || !(+o.runs > 0)) {
    console.error(
      'usage: node bench/constrained.mjs MODEL.gguf [--schema FILE] [--tokens N] [--runs N] '
        + '[--cpu] [--device-profile NAME] [--json]',
    );
    process.exit(2);
  }
  const sources = [await fileSource(file)], wasm = await loadWasm();
  const profile = o['device-profile'];
  const model = o.cpu
    ? await CpuModel.open(await Core.load(wasm), sources, { hold: true })
    : await GpuModel.open(wasm, () => openDevice(profile ? { profile } : {}), sources, {
      table: 'gpu',
    });
  const cases = o.schema && { [o.schema]: { schema: JSON.parse(readFileSync(o.schema, 'utf8')) } };
  const result = await constrained(model, o.json ? () => {} : console.log, {
    tokens: +o.tokens, runs: +o.runs, ...(cases && { cases }),
  });
  if (o.json) console.log(JSON.stringify(result));
  process.exit(0);
}

if ('process' in globalThis && process.argv[1]?.endsWith('constrained.mjs')) await main();
