// wllama.mjs - Bezel beside wllama in one headless Chromium on its software adapter: the same file,
// the same prompts.
//
//   node bench/wllama.mjs [--model FILE.gguf] [--prompt 512] [--new 128] [--rounds 3]
//                         [--only WORDS|WORDS]
//
// Needs `make web all`. The peer comes from npm into build/peer/wllama. Without --model the file is
// models/tiny.q8_0.gguf rewritten as Q4_K_M: 8 layers, 256 wide, 4,096 tokens of vocabulary,
// trained, so that its texts are texts (the peer stops at bytes that are not UTF-8). Contestants
// take turns, each through its public interface with one request a measurement: prefill is prompt
// tokens by the time to the first piece of text, decode the pieces after it. Pages are cross-origin
// isolated, so that the peer may use threads.
import { execFileSync } from 'node:child_process';
import fs from 'node:fs';
import { parseArgs } from 'node:util';

import { runPage } from '../tests/web/browser.mjs';

const version = '3.8.1', folder = 'build/peer/wllama';
const { values: o } = parseArgs({
  options: {
    model: { type: 'string' }, prompt: { type: 'string', default: '512' },
    new: { type: 'string', default: '128' }, rounds: { type: 'string', default: '3' },
    only: { type: 'string', default: '' },
  },
});
fs.mkdirSync(folder, { recursive: true });
const peer = `${folder}/node_modules/@wllama/wllama`;
if (!fs.existsSync(peer))
  execFileSync(
    'npm',
    ['install', '--silent', '--no-save', '--prefix', folder, `@wllama/wllama@${version}`],
    { stdio: 'inherit' },
  );
const model = o.model ?? `${folder}/tiny.q4_k_m.gguf`;
if (!o.model && !fs.existsSync(model))
  execFileSync(
    'build/bezel', ['quantize', 'models/tiny.q8_0.gguf', model, 'q4_k_m'], { stdio: 'inherit' },
  );

const runs = [];
const log = (line) => (line.startsWith('{') ? runs.push(JSON.parse(line)) : console.error(line));
const query = new URLSearchParams({
  model: `/${model}`, peer, prompt: o.prompt, new: o.new, rounds: o.rounds, only: o.only,
});
const headers = {
  'cross-origin-opener-policy': 'same-origin', 'cross-origin-embedder-policy': 'require-corp',
};
process.exitCode = await runPage(`/bench/wllama.html?${query}`, { seconds: 1800, headers, log });

const median = (list) => [...list].sort((a, b) => a - b)[list.length >> 1];
const spread = (list) => {
  const [least, most] = [Math.min(...list), Math.max(...list)].map((n) => n.toFixed(0));
  return `${median(list).toFixed(1).padStart(9)} (${least}-${most})`.padEnd(24);
};
const rows = [...new Set(runs.map((r) => r.name))].map((name) =>
  ({ name, of: runs.filter((r) => r.name === name) }));
console.log(
  `${model}, ${runs[0]?.read} prompt tokens, ${runs[0]?.made} new ones, wllama ${version}; tok/s: `
    + 'median (least-most)',
);
for (const { name, of } of rows) {
  if (of.some((r) => r.cached > 1)) console.log(`${name}: some prompts were not read anew`);
  console.log(
    `${name.padEnd(28)} prefill ${spread(of.map((r) => r.prefill))} decode `
      + `${spread(of.map((r) => r.decode))} ${of[0].ran}`,
  );
}
const most = (list) => Math.max(...list);
const best = (who, what, of) =>
  most(rows.filter((r) => r.name.startsWith(who)).map((r) => of(r.of.map((x) => x[what]))));
const times = (who, what) =>
  `${(best(who, what, median) / best('wllama', what, median)).toFixed(2)} (best runs `
    + `${(best(who, what, most) / best('wllama', what, most)).toFixed(2)})`;
const ours = rows.filter((r) => r.name.startsWith('Bezel')).map((r) => r.name);
if (ours.length < rows.length)
  for (const what of ['prefill', 'decode'])
    for (const name of ours)
      console.log(`${what}, times the best of wllama: ${name} ${times(name, what)}`);
