// What is in the store, shown, copied and deleted, by the Node tool and the native one alike, also
// while a pull is under way; and what a server says is loaded.
//
//   node tests/web/test_models.mjs build/bezel
import fs from 'node:fs';
import http from 'node:http';

import { done, equal, ok, same, test } from './check.mjs';
import { alike, bezel as tool, call, native } from './node_fixture.mjs';
import {
  bezel, digest, filesIn, freshStore, MB, net, pull, sent, tiny, until,
} from './pull_fixture.mjs';
import { sha } from './registry.mjs';

const config = '{"model_format":"gguf","model_family":"gemma4","model_type":"6.1M"}';
net.add('library/full:1', {
  model: tiny, license: 'MIT\n\n  One line. \nAnother.\n', system: 'Be brief.', config,
  params: '{"temperature":1.0,"top_p":0.95,"stop":["<turn|>","\\n"],"seed":7}', template: '{{ . }}',
});
net.add('library/other:1', { model: 'other weights', license: 'Apache\n', config });
const both = (args) => [tool, (words) => call(native, words)].map((run) => run(args));

test('show says what a model is, in the same words in both tools', async () => {
  const { root } = await pullAll();
  const shown = String(alike(['show', 'full:1', '--store', root]).out);
  equal(shown, `  Model
    architecture        gemma4
    parameters          6.1M
    context length      2048
    embedding length    256
    quantization        Q8_0

  Parameters
    temperature    1
    top_p          0.95
    stop           "<turn|>"
    stop           "\\n"
    seed           7

  System
    Be brief.

  License
    MIT
    One line.
    ...

`);
  const texts = ['license', 'parameters', 'system', 'template'].map((name) =>
    String(alike(['show', 'Full:1', `--${name}`, '--store', root]).out));
  same(texts[0], 'MIT\n\n  One line. \nAnother.\n');
  same(texts[1].split('\n').slice(0, 2), [
    'temperature                    1', 'top_p                          0.95',
  ]);
  same(texts.slice(2), ['Be brief.\n', '{{ . }}\n']);
  alike(['show', 'models/tiny.q8_0.gguf']);
  for (const wrong of [['full:1', '--system', '--license'], [], ['full:1', 'x']])
    equal(alike(['show', ...wrong, '--store', root]).code, 2);
  const none = alike(['show', 'models/tiny.q8_0.gguf', '--system']);
  same([none.code, none.err], [1, 'bezel show: models/tiny.q8_0.gguf has no system\n']);
  for (const { code } of both(['show', 'absent', '--store', root])) equal(code, 1);
});

/** A store with both models. */
async function pullAll() {
  const writer = await freshStore();
  await pull(writer, 'full:1');
  await pull(writer, 'other:1');
  return writer;
}

for (const [who, run] of [['Node', tool], ['native', (args) => call(native, args)]])
  test(`cp and rm share blobs as Ollama does (${who})`, async () => {
    const { root } = await pullAll(), before = filesIn(root);
    const at = ['--store', root];
    same(String(run(['cp', 'full:1', 'me/mine:x', ...at]).out), "copied 'full:1' to 'me/mine:x'\n");
    const manifest = (place) => fs.readFileSync(`${root}/manifests/registry.ollama.ai/${place}`);
    ok(manifest('library/full/1').equals(manifest('me/mine/x')));
    same(String(run(['rm', 'full:1', ...at]).out), "deleted 'full:1'\n");
    ok(fs.existsSync(`${root}/blobs/sha256-${digest}`), 'the copy has it');
    equal(run(['run', 'me/mine:x', 'What is 7 * 8?', '--backend', 'cpu', ...at]).code, 0);
    equal(run(['cp', 'other:1', 'me/mine:x', ...at]).code, 0);
    ok(!fs.existsSync(`${root}/blobs/sha256-${digest}`), 'nobody has it');
    equal(run(['cp', 'me/mine:x', 'library/other:1', ...at]).code, 0);
    const removed = run(['rm', 'me/mine:x', 'other:1', ...at]);
    same([removed.code, String(removed.out)], [0, "deleted 'me/mine:x'\ndeleted 'other:1'\n"]);
    same(Object.keys(filesIn(root)), ['blobs', 'manifests', 'partial']);
    ok(Object.keys(before).length > 10);
    const gone = run(['rm', 'other:1', ...at]);
    equal(gone.code, 1);
    ok(/^bezel rm: .*other.*\n$/.test(gone.err), gone.err);
    equal(run(['rm', ...at]).code, 2);
  });

test('a copy of a model that has lost files is refused, in the same words', async () => {
  const { root } = await pullAll();
  fs.rmSync(`${root}/blobs/sha256-${sha('other weights')}`);
  const [node, c] = both(['cp', 'other:1', 'x', '--store', root]);
  ok(/other:1 has lost files, so that it cannot be copied; pull it again/.test(node.err), node.err);
  same([node.code, node.err], [c.code, c.err]);
});

test('what a pull needs is deleted by neither tool, and the pull is not held up', async () => {
  const writer = await pullAll(), { root } = writer;
  net.add('library/third:1', { model: Buffer.concat([tiny, tiny]), license: 'Apache\n', config });
  const weights = sha(Buffer.concat([tiny, tiny]));
  net.bad[weights] = { pause: 15 };
  const pulling = pull(writer, 'third:1');
  await until(() => sent(weights) > MB);
  for (const { code, err } of both(['rm', 'other:1', '--store', root])) {
    equal(code, 1);
    equal(err, 'bezel rm: other:1 is in use: a pull needs some of its files; stop the pull or wait '
      + 'for it\n');
  }
  // a copy is none of its business
  for (const { code } of both(['cp', 'other:1', 'copied', '--store', root])) equal(code, 0);
  delete net.bad[weights];
  await pulling;
  for (const name of ['other:1', 'copied']) equal(tool(['rm', name, '--store', root]).code, 0);
  ok(fs.existsSync(`${root}/blobs/sha256-${sha('Apache\n')}`), 'third:1 has it');
  equal(tool(['show', 'full:1', '--store', root]).code, 0);
  same(fs.readdirSync(writer.partial), []);
});

test('ls is list, and pull of the native tool says who does it', () => {
  for (const args of [['ls'], ['ls', '--json']]) same(alike(args).code, 0);
  const { code, err } = call(native, ['pull', 'gemma4:e2b']);
  equal(code, 1);
  ok(/^bezel pull: this tool has no TLS: `npx bezel pull gemma4:e2b` brings/.test(err), err);
});

test('ps says what a server has loaded, or that none is there', async () => {
  const models = [{
    name: 'tiny:latest', size: 6772384, size_vram: 0, context_length: 4096,
    expires_at: new Date(Date.now() + 240_000).toISOString(),
  }, {
    name: 'evil\x1b[31m', size: 5e9, size_vram: 5e9, expires_at: '2999-01-01T00:00:00Z',
  }];
  const server = http.createServer((_, r) => r.end(JSON.stringify({ models })));
  await new Promise((up) => server.listen(0, '127.0.0.1', up));
  const url = `http://127.0.0.1:${server.address().port}/`;
  const { code, out } = await bezel(['ps', '--server', url]);
  equal(code, 0);
  same(out.split('\n').map((line) => line.split(/ {2,}/)).slice(0, 2), [
    ['NAME', 'SIZE', 'ON', 'CONTEXT', 'UNTIL'],
    ['tiny:latest', '6.77 MB', 'CPU', '4096', 'in 4 min'],
  ]);
  ok(/5\.00 GB +GPU +never/.test(out), out);
  same(JSON.parse((await bezel(['ps', '--json', '--server', url])).out), models);
  server.close();
  server.closeAllConnections();
  const none = await bezel(['ps', '--server', url]);
  same(none.code, 1);
  ok(/^bezel ps: no server answers at http:.*; bezel serve starts one\n$/.test(none.err), none.err);
});

await done(process.argv[3]);
net.close();
