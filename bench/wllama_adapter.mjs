// wllama_adapter.mjs - does an adapter trained here answer the same in llama.cpp? wllama is
// llama.cpp in a browser.
//
//   node bench/wllama_adapter.mjs [ADAPTER.gguf]
//
// Needs `make web all`. The peer comes from npm into build/peer/wllama. Without an adapter the
// facts of tests/web/facts.mjs are taught to models/tiny.q8_0.gguf first. Both are asked the same
// questions, greedily, on the CPU.
import { execFileSync } from 'node:child_process';
import fs from 'node:fs';

import { runPage } from '../tests/web/browser.mjs';
import { lessons } from '../tests/web/facts.mjs';

const version = '3.8.1', folder = 'build/peer/wllama';
const peer = `${folder}/node_modules/@wllama/wllama`;
fs.mkdirSync(folder, { recursive: true });
if (!fs.existsSync(peer))
  execFileSync(
    'npm',
    ['install', '--silent', '--no-save', '--prefix', folder, `@wllama/wllama@${version}`],
    { stdio: 'inherit' },
  );
const adapter = process.argv[2] ?? `${folder}/facts.gguf`;
if (!process.argv[2]) {
  fs.writeFileSync(
    `${folder}/facts.jsonl`, lessons.map((line) => `${JSON.stringify(line)}\n`).join(''),
  );
  const options = [
    '--target', 'ffn_', '--rank', '8', '--max-tokens', '128', '--epochs', '3', '--lr', '2e-3',
    '--out', adapter,
  ];
  execFileSync(
    'build/bezel',
    ['train', 'models/tiny.q8_0.gguf', `${folder}/facts.jsonl`, ...options],
    { stdio: ['ignore', 'ignore', 'inherit'] },
  );
}
const headers = {
  'cross-origin-opener-policy': 'same-origin', 'cross-origin-embedder-policy': 'require-corp',
};
process.exitCode = await runPage(
  `/bench/wllama_adapter.html?${new URLSearchParams({ adapter, peer })}`, { seconds: 900, headers },
);
