// The Node tool where there is a GPU, and where there is none: logits, benchmarks, checks.
//
//   node tests/web/test_node_gpu.mjs build/bezel
import './software_adapter.mjs'; // before any device
import { spawnSync } from 'node:child_process';
import fs from 'node:fs';
import path from 'node:path';

import { done, equal, ok, same, test } from './check.mjs';
import { bezel, both, call, compareLogits, ids, models, native, temp } from './node_fixture.mjs';

test('the GPU has the CPU\'s logits and greedy text', () => {
  const args = ['logits', models[0], '--ids', '2,30,31', '--top', '3'];
  compareLogits(bezel([...args, '--backend', 'gpu']), call(native, args), 1e-3);
  const text = ['generate', models[0], '--ids', '2,30,31', '--n', '12', '--greedy', '--json'];
  const gpu =
    bezel([...text, '--backend', 'gpu', '--tier', 'plain', '--device-profile', 'spec', '--stats']);
  equal(String(gpu.out), String(call(native, text).out), gpu.err);
  ok(/prompt 3 tokens, [\d.]+ tok\/s; generated 12 tokens/.test(gpu.err), gpu.err);
});

test('where there is no GPU the CPU computes and that is said; '
  + '--backend gpu and check fail and say what to do', () => {
  const without = (icd, ...args) => spawnSync(
    process.execPath,
    ['web/engine/bin/bezel.mjs', ...args],
    { encoding: 'utf8', env: { ...process.env, VK_ICD_FILENAMES: icd } },
  );
  const logits = ['logits', models[0], '--ids', '2'], cpu = bezel([...logits, '--backend', 'cpu']);
  for (const [icd, why] of [
    ['/nowhere', 'WebGPU found no graphics adapter'],
    [process.env.VK_ICD_FILENAMES, 'WebGPU has only a software adapter here \\(.*\\)'],
  ]) {
    const r = without(icd, ...logits);
    same([r.status, r.stdout], [0, String(cpu.out)], r.stderr);
    ok(new RegExp(`(^|\n)computing on the CPU: ${why}\n$`).test(r.stderr), r.stderr);
  }
  equal(cpu.err, '');
  // Drivers for cards that are not there are not asked: they and Dawn write to the terminal.
  const { VK_ICD_FILENAMES, VK_DRIVER_FILES, ...plain } = process.env;
  const bare = spawnSync(process.execPath, ['web/engine/bin/bezel.mjs', ...logits], {
    encoding: 'utf8', env: plain,
  });
  equal(bare.status, 0, bare.stderr);
  if (!fs.readdirSync('/dev').some((name) => /^(dri|dxg|nvidia)/.test(name))) {
    equal(bare.stderr, 'computing on the CPU: this machine has no graphics card\n');
    const terminal = spawnSync(
      'python3',
      ['tests/terminal.py', '', process.execPath, 'web/engine/bin/bezel.mjs', ...logits],
      { encoding: 'utf8', env: plain },
    );
    // not behind "opening"
    ok(terminal.stdout.includes('\x1b[Kcomputing on the CPU: '), JSON.stringify(terminal.stdout));
  }
  for (const args of [[...logits, '--backend', 'gpu'], ['check', models[0]]]) {
    const r = without('/nowhere', ...args);
    same([r.status, r.stdout], [1, '']);
    ok(
      new RegExp(
        `\nbezel ${args[0]}: [^\n]*no graphics adapter; --backend cpu computes without one\n$`,
      ).test(`\n${r.stderr}`),
      r.stderr,
    );
  }
  const help = (command) => String(bezel([command, '--help']).out);
  for (const command of ['run', 'chat', 'generate', 'logits', 'bench', 'train', 'serve'])
    ok(/--backend NAME +auto \(default/.test(help(command)), command);
  ok(/--backend NAME +gpu \(default\)/.test(help('check')));
});

test('bench measures both backends and says it in JSON', () => {
  const result = (...args) => {
    const { code, out, err } =
      bezel(['bench', models[0], '-p', '8', '-n', '3', '--runs', '3', '--json', ...args]);
    equal(code, 0, err);
    return JSON.parse(String(out));
  };
  const isTimes = (t) => t.p50 > 0 && t.p95 >= t.p50;
  const cpu = result('--backend', 'cpu', '-d', '5');
  const gpu = result('--backend', 'gpu', '--runs', '2', '--profile');
  for (const [r, runs] of [[cpu, 3], [gpu, 2]]) {
    same(
      [r.model, r.prompt.tokens, r.prompt.runs.length, r.predicted.tokens, r.predicted.runs.length],
      ['model_e2b.gguf', 8, runs, 3, runs],
    );
    for (const s of [r.prompt, r.predicted])
      ok(
        s.mean > 0 && s.deviation >= 0
          && s.median === (runs === 2 ? s.mean : s.runs.toSorted((a, b) => a - b)[runs >> 1]),
      );
    ok(isTimes(r.ttft_ms) && isTimes(r.token_ms));
    ok(
      r.bytes_a_token > 0 && r.bytes_a_token < r.weight_bytes && r.memory.weights > 0
        && r.memory.cache > 0 && r.memory.scratch > 0,
    );
    ok(Math.abs(r.bytes_per_second / r.predicted.mean / r.bytes_a_token - 1) < 1e-9);
  }
  same([cpu.backend, cpu.depth, cpu.awaited, cpu.bandwidth, cpu.dispatches, cpu.profile], [
    'cpu', 5, null, null, null, undefined,
  ]);
  same([gpu.backend, gpu.depth, gpu.awaited.tokens], ['gpu', 0, 3]);
  ok(isTimes(gpu.awaited_ms) && gpu.bandwidth > 1e6 && gpu.dispatches > 10);
  for (const step of [gpu.profile.token, gpu.profile.prompt]) {
    equal(step.kernels.reduce((n, k) => n + k.count, 0), step.dispatches);
    ok(step.kernels.every((k) => k.kernel && k.ns >= 0) && step.kernels.some((k) => k.ns > 0));
  }
  equal(gpu.profile.token.dispatches, gpu.dispatches);
});

test('bench shows a table, and check finds no difference', () => {
  const { out, err } =
    bezel(['bench', models[0], '--pp', '8', '--tg', '0', '--repeats', '1', '--backend', 'cpu']);
  ok(
    /^\| model .*\n\|-+\|.*\n\| model_e2b\.gguf +\|.*\| pp8 +\|/.test(String(out))
      && !String(out).includes('tg'),
    String(out) + err,
  );
  const checked =
    bezel(['check', models[3], '--positions', '4', '--backend', 'reference', '--native', native]);
  ok(
    checked.code === 0 && /best token as on the CPU at 4 of 4 positions/.test(String(checked.out)),
    String(checked.out) + checked.err,
  );
  for (const args of [
    ['bench', models[0], '--runs', '0'], ['check', models[0], '--positions', '0'],
  ])
    equal(bezel(args).code, 2);
});

test('check gives the CPU the adapters too', () => {
  const lesson = path.join(temp, 'check.jsonl'), adapter = path.join(temp, 'check.gguf');
  fs.writeFileSync(lesson, '{"prompt":"Who?","completion":"I."}\n');
  equal(
    call(native, [
      'train', models[0], lesson, '--out', adapter, '--steps', '2', '--rank', '4', '--lr', '0.1',
    ]).code,
    0,
  );
  const best = (more) => String(
    bezel(['logits', models[0], '--ids=2,5,9,14', '--top', '1', '--backend', 'cpu', ...more]).out,
  );
  ok(best([]) !== best(['--adapter', `${adapter}:8`]), 'the adapter changes nothing');
  for (const oracle of [['--native', native], []]) {
    const checked = bezel([
      'check', models[0], '--positions', '4', '--backend', 'reference', '--adapter',
      `${adapter}:8`, ...oracle,
    ]);
    ok(
      checked.code === 0
        && /best token as on the CPU at 4 of 4 positions/.test(String(checked.out)),
      String(checked.out) + checked.err,
    );
  }
});

test('check tells a wrong token from one that depends on the order of sums', () => {
  // A native tool whose best token at position 2 is another one: always, or only where it reads the
  // prompt at once.
  const askWith = (whenByToken) => {
    const tool = path.join(temp, 'tool.mjs');
    fs.writeFileSync(tool, `#!/usr/bin/env node
import { execFileSync } from 'node:child_process';
const args = process.argv.slice(2), at = args.indexOf('--batch');
const byToken = at > 0 && args[at + 1] === '1';
const said = execFileSync(${JSON.stringify(path.resolve(native))}, args, { encoding: 'utf8' });
const lines = said.trim().split('\\n').map((l) => JSON.parse(l));
if (!byToken || ${whenByToken}) lines[2].top[0] = [lines[2].top[0][0] + 1, lines[2].top[0][1]];
for (const line of lines) console.log(JSON.stringify(line));
`, { mode: 0o755 });
    return bezel(['check', models[3], '--positions', '4', '--backend', 'cpu', '--native', tool]);
  };
  const by_order = askWith(false), wrong = askWith(true);
  const told = new RegExp('at 3 of 4 positions.*\n'
    + 'at 1 more it is the token that the CPU has when it reads token by token');
  ok(
    by_order.code === 0 && told.test(String(by_order.out)), String(by_order.out) + by_order.err,
  );
  ok(
    wrong.code === 1 && /at 3 of 4 positions/.test(String(wrong.out))
      && !/more/.test(String(wrong.out)),
    String(wrong.out) + wrong.err,
  );
});

await done(process.argv[3]);
