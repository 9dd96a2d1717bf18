// A model with an adapter added into its weights: the native tool's bytes, the same answers, and
// nothing left behind when it fails.
//
//   node tests/web/test_merge.mjs build/bezel
import { spawn, spawnSync } from 'node:child_process';
import fs from 'node:fs';
import os from 'node:os';
import path from 'node:path';

import { Core, fileSource, loadWasm, Merge } from '../../web/engine/dist/core.js';
import { Engine } from '../../web/engine/dist/index.js';
import { done, equal, ok, rejects, same, test } from './check.mjs';
import { known, lessons, score, share, unseen } from './facts.mjs';
import { splitGguf } from './split_gguf.mjs';

const native = process.argv[2] ?? 'build/bezel';
const tiny = 'models/tiny.q8_0.gguf', moe = 'models/tiny-moe.q8_0.gguf';
const temp = fs.mkdtempSync(path.join(os.tmpdir(), 'bezel-merge-'));
process.on('exit', () => fs.rmSync(temp, { recursive: true, force: true }));
const at = (name) => `${temp}/${name}`;
const read = (name) => fs.readFileSync(at(name));

function call(program, args) {
  const r = spawnSync(program, args, { maxBuffer: 1 << 28 });
  return { code: r.status, out: String(r.stdout), err: String(r.stderr) };
}
const bezel = (...args) => call(process.execPath, ['web/engine/bin/bezel.mjs', ...args]);
function tool(...args) {
  const r = call(native, args);
  equal(r.code, 0, r.err);
  return r;
}

fs.writeFileSync(at('facts.jsonl'), lessons.map((l) => JSON.stringify(l)).join('\n'));
const learn = (model, name, ...more) => tool(
  'train', model, at('facts.jsonl'), '--out', at(`${name}.gguf`), '--peft', at(name), '--lr',
  '2e-3', '--max-tokens', '128', ...more,
);
learn(tiny, 'facts', '--rank', '8', '--target', 'ffn_');
learn(tiny, 'all', '--steps', '2', '--batch-size', '4', '--rank', '5');
learn(
  moe, 'experts', '--steps', '2', '--rank', '4', '--target', 'exps', '--target', 'attn_q',
  '--target', 'ffn_gate_inp',
);

/** Both tools write the same file and say the same of it. */
function alike(model, adapter, ...more) {
  const c = tool('merge', model, adapter, at('native.gguf'), '--force', ...more);
  const node = bezel('merge', model, adapter, at('node.gguf'), '--force', ...more);
  same([node.code, node.err, node.out], [0, '', c.out.replace('native.gguf', 'node.gguf')]);
  ok(read('native.gguf').equals(read('node.gguf')), `${model} with ${adapter}`);
}

test('a merged file is the native tool\'s, to the byte, in every format', () => {
  for (const mix of ['q4_k_m', 'q5_k_m', 'q4_0', 'q8_0', 'f16', 'bf16', 'f32']) {
    tool('quantize', tiny, at('model.gguf'), mix, '--force');
    alike(at('model.gguf'), at('all.gguf'));
  }
});

test('so is one of experts, one in PEFT\'s form, one of another strength', () => {
  alike(moe, at('experts.gguf'));
  alike(tiny, at('all'));
  alike(tiny, `${at('all.gguf')}:0.3`, '--scale', '-1.7');
});

test('a model in three files becomes one', () => {
  splitGguf(fs.readFileSync(tiny), 3).forEach((bytes, i) =>
    fs.writeFileSync(at(`split-0000${i + 1}-of-00003.gguf`), bytes));
  alike(at('split-00001-of-00003.gguf'), at('all.gguf'));
  const inspected = (name) => JSON.parse(tool('inspect', at(name), '--json', '--keys').out);
  const { size: _, ...whole } = inspected('node.gguf');
  equal(whole.keys['split.count'], undefined);
});

test('a merged model answers as the model does with the adapter, and knows what it was taught',
    async () => {
  equal(bezel('merge', tiny, at('facts.gguf'), at('merged.gguf')).code, 0);
  const beside = await Engine.load(tiny, {
    backend: 'cpu', adapters: [{ source: at('facts.gguf'), name: 'facts' }],
  });
  const merged = await Engine.load(at('merged.gguf'), { backend: 'cpu' });
  const answer = async (engine, content) =>
    (await engine.chat.completions.create({
      messages: [{ role: 'user', content }], temperature: 0, max_tokens: 20,
    })).choices[0].message.content;
  for (const { question } of [...unseen, ...known])
    equal(await answer(merged, question), await answer(beside, question), question);
  ok(share(await score(merged, unseen)) >= 0.9);
  await beside.dispose();
  await merged.dispose();
});

test('errors are the native tool\'s, with its exit codes, and leave nothing', () => {
  const before = fs.readdirSync(temp).sort();
  const wrong = [
    [tiny, at('experts.gguf'), at('new.gguf')], [tiny, tiny, at('new.gguf')],
    [tiny, at('none.gguf'), at('new.gguf')], [at('none.gguf'), at('all.gguf'), at('new.gguf')],
    [tiny, at('all.gguf'), at('none/new.gguf')], [tiny, at('all.gguf'), at('facts.jsonl')],
    [tiny, at('all.gguf'), temp, '--force'], [at('all.gguf'), at('all.gguf'), at('new.gguf')],
  ];
  for (const args of wrong) {
    const c = call(native, ['merge', ...args]);
    same(bezel('merge', ...args), c);
    ok(c.code > 0 && c.err.split('\n').length === 2, c.err);
  }
  const limited = call('bash', [
    '-c',
    `ulimit -f 2000; exec ${process.execPath} web/engine/bin/bezel.mjs merge ${tiny} `
      + `${at('all.gguf')} ${at('new.gguf')}`,
  ]);
  same([limited.code, limited.err], [
    1, `bezel merge: ${at('new.gguf')}: a file of more than 2048000 bytes is not allowed here\n`,
  ]);
  same(fs.readdirSync(temp).sort(), before);
});

// ---- a file of real length ----

const big = at('big.gguf');
tool('synth', 'tiny-e2b', big, '--vocab', '131072', '--quant', 'q8_0');
tool(
  'train', big, at('facts.jsonl'), '--out', at('big_adapter.gguf'), '--steps', '1', '--rank', '4',
  '--max-tokens', '64', '--target', 'attn_q', '--target', 'ffn_down',
);

for (const [what, signal, code] of [['Ctrl-C', 'SIGINT', 130], ['a shutdown', 'SIGTERM', 143]])
  test(`${what} ends it at once and leaves nothing`, async () => {
    const out = at('never.gguf');
    const child = spawn(process.execPath, [
      'web/engine/bin/bezel.mjs', 'merge', big, at('big_adapter.gguf'), out,
    ]);
    let said = '';
    child.stderr.on('data', (d) => (said += d));
    const ended = new Promise((done) => child.on('close', done)); // once all that it said is here
    while (!fs.existsSync(`${out}.part`)) await new Promise((done) => setTimeout(done, 5));
    child.kill(signal);
    equal(await ended, code);
    equal(said, 'bezel merge: stopped\n');
    ok(!fs.existsSync(out) && !fs.existsSync(`${out}.part`));
  });

test('the module holds metadata, adapter and one window, never a file', async () => {
  const core = await Core.load(await loadWasm()), sources = [await fileSource(big)];
  const source = await fileSource(at('big_adapter.gguf'));
  const live = core.exports.bz_wasm_live(), merge = await Merge.open(core, sources, { source });
  let bytes = 0;
  for await (const piece of merge.pieces()) bytes += piece.length;
  equal(bytes, merge.size);
  ok(
    bytes > 300e6 && core.memory.buffer.byteLength < 64 << 20,
    `${core.memory.buffer.byteLength} bytes`,
  );
  merge.close();
  equal(core.exports.bz_wasm_live(), live);
  for (const s of [...sources, source]) s.close();
});

test('no file is made of a model that is rewritten meanwhile, by either tool', async () => {
  for (const [program, ...first] of [[native], [process.execPath, 'web/engine/bin/bezel.mjs']]) {
    fs.utimesSync(big, 1, 1); // clocks of file systems are coarse
    const out = at('torn.gguf');
    const child = spawn(program, [...first, 'merge', big, at('big_adapter.gguf'), out]);
    const over = new Promise((ended) => child.once('exit', ended));
    let said = '';
    child.stderr.on('data', (text) => (said += text));
    while (!fs.existsSync(`${out}.part`)) await new Promise((again) => setTimeout(again, 1));
    const file = fs.openSync(big, 'r+');
    fs.writeSync(file, 'G', 0); // its first byte, as it was
    fs.closeSync(file);
    equal(await over, 1, said);
    ok(said.includes(`${big}: was changed or became shorter`), said);
    ok(!fs.existsSync(out) && !fs.existsSync(`${out}.part`));
  }
});

// ---- the package ----

const adapter = { source: at('all.gguf') };

test('Engine.merge writes to a path and to a stream, and tells how far it is', async () => {
  const seen = [];
  const result =
    await Engine.merge(tiny, adapter, { to: at('api.gguf'), onProgress: (p) => seen.push(p) });
  tool('merge', tiny, at('all.gguf'), at('native.gguf'), '--force');
  ok(read('api.gguf').equals(read('native.gguf')));
  equal(result.bytes, read('api.gguf').length);
  ok(
    result.changed > 0 && seen.length > 2 && seen[0].loaded === 0
      && seen.at(-1).loaded === result.bytes && seen.every((p) => p.total === result.bytes),
  );
  const pieces = [];
  await Engine.merge(fs.readFileSync(tiny), adapter, {
    to: new WritableStream({ write: (p) => void pieces.push(p) }),
  });
  ok(Buffer.concat(pieces).equals(read('native.gguf')));
});

test('a stream that is slow holds the merge back; one that fails ends it', async () => {
  const model = await fs.openAsBlob(big), slice = model.slice.bind(model);
  let reads = 0, writes = 0, readsByThen = 0;
  model.slice = (...range) => (reads++, slice(...range));
  const slow = new WritableStream({
    async write() {
      if (writes++ === 0) return void (reads = 0); // the header came with many small reads
      await new Promise((done) => setTimeout(done, 300));
      readsByThen = reads;
      throw new Error('no more of that');
    },
  });
  await rejects(
    Engine.merge(model, { source: at('big_adapter.gguf') }, { to: slow }), /no more of that/,
  );
  equal(writes, 2);
  ok(readsByThen > 0 && readsByThen < 12, `${readsByThen} windows were read by then`); // of eighty
});

test('a signal stops it, and what the path had stays', async () => {
  fs.writeFileSync(at('kept.gguf'), 'old');
  const stop = new AbortController();
  await rejects(
    Engine.merge(
      big,
      { source: at('big_adapter.gguf') },
      {
        to: at('kept.gguf'),
        signal: stop.signal,
        onProgress: ({ loaded }) => loaded > 50e6 && stop.abort(),
      },
    ),
    { name: 'AbortError' },
  );
  equal(String(read('kept.gguf')), 'old');
  ok(!fs.existsSync(at('kept.gguf.part')));
});

test('a PATH.part that is there already is left alone, and what it leads to', async () => {
  fs.writeFileSync(at('theirs'), 'theirs');
  fs.symlinkSync(at('theirs'), at('link.gguf.part'));
  await Engine.merge(tiny, { source: at('all.gguf') }, { to: at('link.gguf') });
  same(
    [
      String(read('theirs')), fs.lstatSync(at('link.gguf.part')).isSymbolicLink(),
      fs.existsSync(at('link.gguf.2.part')),
    ],
    ['theirs', true, false],
  );
  equal(fs.lstatSync(at('link.gguf')).isFile(), true);
  await rejects(
    Engine.merge(moe, { source: at('all.gguf') }, { to: at('link.gguf') }), { name: 'FormatError' },
  );
  same([String(read('theirs')), fs.existsSync(at('link.gguf.part'))], ['theirs', true]);
});

test('an adapter of another model is refused with a sentence', async () => {
  await rejects(Engine.merge(moe, { source: at('all.gguf') }, { to: at('no.gguf') }), {
    name: 'FormatError',
    message: /^the adapter is for another model: its blk\.0\.\w+\.weight is .*, this model's /,
  });
  await rejects(Engine.merge(tiny, { source: at('experts.gguf') }, { to: at('no.gguf') }), {
    name: 'NotFoundError', message: /^the model has no tensor /,
  });
  ok(!fs.existsSync(at('no.gguf')) && !fs.existsSync(at('no.gguf.part')));
});

await done();
fs.rmSync(temp, { recursive: true, force: true });
