// fuzz_requests - any body as a request to the server, with a model behind it: answered, or refused
// with an error in the protocol's words. It is never the server's fault (500), nothing is said on
// its terminal, and it answers afterwards.
//
//   node tests/fuzz/fuzz_requests.mjs SECONDS [FOLDER]    a finding is left in FOLDER
import fs from 'node:fs';
import path from 'node:path';
import { ok } from 'node:assert';
import { loadInThread } from '../../web/engine/dist/server/thread.js';
import { ask, startServer } from '../web/server_fixture.mjs';
import { mutate, pick } from './mutate_json.mjs';

const [seconds = '5', folder = 'build/fuzzing/fuzz'] = process.argv.slice(2);
const s = await startServer({
  load: (wish) =>
    loadInThread({ backend: 'cpu', store: undefined, answers: 2 }, { ...wish, context: 256 }),
});
const dir = 'tests/fuzz/seeds/requests';
/** The path of a route is the name of its seed. */
const seeds = fs.readdirSync(dir).sort().map((name) => ({
  route: `/${name.split('.')[0].replaceAll('-', '/')}`,
  text: fs.readFileSync(path.join(dir, name), 'utf8'),
}));

/** What takes long is asked for in few tokens, where the body is still an object. */
function shorten(bytes) {
  let value;
  try {
    value = JSON.parse(new TextDecoder().decode(bytes));
  } catch {
    return bytes;
  }
  if (typeof value !== 'object' || value === null || Array.isArray(value)) return bytes;
  for (const holder of [value, value.options ?? {}])
    for (const key of ['max_tokens', 'max_completion_tokens', 'num_predict', 'n'])
      if (typeof holder[key] === 'number' && holder[key] > 2) holder[key] = 2;
  return new TextEncoder().encode(JSON.stringify(value));
}

const allowed = [200, 400, 404, 413, 422, 501, 503];
async function check(route, body) {
  const r = await ask(s.port, route, {
    method: 'POST', headers: { 'content-type': 'application/json' }, body,
  });
  ok(allowed.includes(r.status), `${r.status} ${r.text.slice(0, 300)}`);
  ok(r.status === 200 || r.json.error, r.text.slice(0, 300));
  ok(!s.said.length, s.said.join('\n'));
  return r.status === 200;
}

let runs = 0, answered = 0, last;
async function finding(e) {
  fs.mkdirSync(folder, { recursive: true });
  const file = path.join(folder, `fuzz_requests-crash-${runs}`);
  fs.writeFileSync(file, last.body);
  console.log(`${e?.stack ?? e}\n\nPOST ${last.route} with ${file}`);
  process.exit(1);
}
process.on('uncaughtException', finding);
try {
  for (const { route, text } of seeds) {
    last = { route, body: new TextEncoder().encode(text) };
    ok(await check(route, last.body), `a seed is answered: ${route}`);
  }
  for (const end = Date.now() + Number(seconds) * 1000; Date.now() < end; runs++) {
    const { route, text } = pick(seeds);
    last = { route, body: shorten(mutate(text)) };
    answered += await check(route, last.body);
  }
  ok((await ask(s.port, '/health')).status === 200);
} catch (e) {
  await finding(e);
}
await s.close();
console.log(`${answered} of ${runs} were answered`);
console.log(`${runs} runs`);
