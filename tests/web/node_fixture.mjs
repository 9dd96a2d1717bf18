// node_fixture - the Node tool and the native one, called alike.
import './software_adapter.mjs'; // before any device
import { spawnSync } from 'node:child_process';
import fs from 'node:fs';

import { equal, ok, same } from './check.mjs';

export const native = process.argv[2] ?? 'build/bezel';
export const models = ['e2b', 'e4b', 'kv', 'moe'].map((m) => `tests/golden/model_${m}.gguf`);
export const tiny = 'models/tiny.q8_0.gguf';
export const temp = `build/tmp/node-${process.pid}`; // tests run side by side
process.on('exit', () => fs.rmSync(temp, { recursive: true, force: true }));
fs.mkdirSync(temp, { recursive: true });

export function call(program, args, input) {
  const r = spawnSync(program, args, { input, maxBuffer: 1 << 28 });
  return { code: r.status, out: r.stdout, err: String(r.stderr) };
}
export const bezel = (args, input = '') =>
  call(process.execPath, ['web/engine/bin/bezel.mjs', ...args], input);
/** The native tool has no GPU: where weights are used, both say which backend they mean. */
export const both = (args, input = '') => {
  const all = ['logits', 'generate', 'diffuse', 'chat', 'run', 'train'].includes(args[0])
    && !args.includes('--backend')
    ? [...args, '--backend', 'cpu']
    : args;
  return [bezel(all, input), call(native, all, input)];
};

/** Byte for byte, with the exit code and the sentence. */
export function alike(args, input) {
  const [node, c] = both(args, input);
  same({ ...node, out: String(node.out) }, { ...c, out: String(c.out) }, args.join(' '));
  return c;
}

/** The same ids; numbers within tolerance, since the two math libraries round differently. */
export function alikeLogits(args, tolerance) {
  compareLogits(...both(args), tolerance);
}

export function compareLogits(node, c, tolerance) {
  equal(node.code, 0, node.err);
  const lines = (r) => String(r.out).trim().split('\n').map((l) => JSON.parse(l));
  const a = lines(node), b = lines(c);
  equal(a.length, b.length);
  a.forEach((line, i) => {
    equal(line.pos, b[i].pos);
    same(line.top.map((t) => t[0]), b[i].top.map((t) => t[0]), `position ${line.pos}`);
    line.top.forEach(([id, z], k) =>
      ok(Math.abs(z - b[i].top[k][1]) <= tolerance, `token ${id}: ${z}, not ${b[i].top[k][1]}`));
  });
}

export const ids = Array.from({ length: 40 }, (_, i) => 2 + ((i * 37) % 290)).join(',');
