// fuzz_archive - any file as an export of conversations: imported, listed, searched, shown as a
// request and exported again, or refused with one sentence. Mutates the seeds as JSON and as bytes.
//
//   node tests/fuzz/fuzz_archive.mjs SECONDS [FOLDER]    a finding is left in FOLDER
//   node tests/fuzz/fuzz_archive.mjs FILE                that file alone
//
// The same inputs come in the same order each time; only how many depends on the seconds.
import fs from 'node:fs';
import inspector from 'node:inspector';
import path from 'node:path';
import { deepStrictEqual as same, ok } from 'node:assert';
import sqlite3InitModule from '../../web/app/node_modules/@sqlite.org/sqlite-wasm/dist/node.mjs';
import { unit } from '../web/app/unit.mjs';
import { mutate, pick } from './mutate_json.mjs';

const session = new inspector.Session();
session.connect();
session.post('Profiler.enable');
session.post('Profiler.startPreciseCoverage', { callCount: true, detailed: true });

const { History, newestLeaf, pathTo, placeOf, readArchive, toRequest, turns } =
  await unit('tests/fuzz/archive.ts');
const sqlite3 = await sqlite3InitModule();
const NOW = Date.parse('2026-03-01T09:00:00Z');
const encode = (text) => new TextEncoder().encode(text);

// ---- what must hold ----

const mine = {
  conversation: { id: 'mine', title: 'Mine', created: 1, updated: 2, leaf: 'm2', settings: {} },
  messages: [
    { id: 'm1', parent: null, role: 'user', content: 'keep me', created: 1 },
    { id: 'm2', parent: 'm1', role: 'assistant', content: 'kept', created: 2 },
  ],
};
const own = readArchive(
  encode(JSON.stringify({ format: 'bezel-conversations', version: 1, threads: [mine] })), NOW,
);

/** null where the file is refused, as it may be, with a sentence. */
function read(bytes) {
  try {
    return readArchive(bytes, NOW);
  } catch (e) {
    ok(e.constructor === Error && /^That (file|export) .*\.$/.test(e.message), e);
    return null;
  }
}

function show({ conversation, messages }) {
  const shown = pathTo(messages, conversation.leaf);
  ok(!messages.length || shown.length, 'a conversation with messages ends at one of them');
  ok(
    messages.every((m) => pathTo(messages, m.id)[0].parent === null),
    'every message leads to a beginning',
  );
  ok(
    turns(shown).every((t) => t.messages.length)
      && messages.every((m) => placeOf(messages, m).index >= 0),
  );
  newestLeaf(messages, null);
  const request = toRequest(shown, conversation.settings);
  for (const m of request.messages) {
    ok(typeof m.content === 'string' && m.content.isWellFormed(), 'contents are texts');
    for (const call of m.tool_calls ?? [])
      ok(call.function.name && typeof call.function.arguments === 'string');
  }
  const { temperature, top_k, seed } = request;
  for (const n of [temperature, top_k, seed]) ok(n === null || Number.isFinite(n));
}

const db = new sqlite3.oo1.DB(':memory:'), used = new History(db);
function fresh() {
  db.exec('DELETE FROM conversation; DELETE FROM deleted');
  used.restore(own);
  return used;
}

/** Was it imported? */
function check(bytes) {
  const archive = read(bytes);
  if (!archive) return false;
  const history = fresh();
  const before = history.thread('mine');
  history.restore(archive);
  for (const { id } of history.list()) {
    ok(/^[A-Za-z0-9_-]{1,64}$/.test(id), 'an id fits an address');
    show(history.thread(id));
  }
  const kept = history.archive();
  same(
    readArchive(encode(JSON.stringify(kept)), NOW),
    kept,
    'what is exported passes the checks unchanged',
  );
  history.restore(archive);
  same(history.archive(), kept, 'a second import changes nothing');
  history.search('string');
  history.search('首都');
  const names = new Set(archive.threads.map((t) => t.conversation.id));
  if (!names.has('mine'))
    same(history.thread('mine'), before, 'other conversations are as they were');
  for (const id of names) history.remove(id);
  ok(history.list().every((c) => c.id === 'mine'));
  return true;
}

// ---- running ----

/** The share of the page's code that ran, in per cent of its characters. */
function covered() {
  let scripts;
  session.post('Profiler.takePreciseCoverage', (e, r) => (scripts = r?.result ?? []));
  const unitScript = scripts.find((s) => s.url.includes('/unit-archive-'));
  if (!unitScript) return '?';
  const ranges = unitScript.functions.flatMap((f) => f.ranges);
  const size = Math.max(...ranges.map((r) => r.endOffset));
  const ran = new Uint8Array(size).fill(1); // an inner range comes after the one that holds it
  for (const r of ranges.toSorted((a, b) =>
    b.endOffset - b.startOffset - (a.endOffset - a.startOffset)))
    ran.fill(r.count > 0 ? 1 : 0, r.startOffset, r.endOffset);
  return ((100 * ran.reduce((a, b) => a + b, 0)) / size).toFixed(1);
}

const [what = '5', folder = 'build/fuzzing/fuzz'] = process.argv.slice(2);
if (!/^\d+$/.test(what)) {
  console.log(check(fs.readFileSync(what)) ? 'imported' : 'refused');
  process.exit(0);
}
const dir = 'tests/fuzz/seeds/archive';
const seeds =
  fs.readdirSync(dir).sort().map((name) => fs.readFileSync(path.join(dir, name), 'utf8'));
for (const seed of seeds) ok(check(encode(seed)), 'a seed is imported');
let runs = 0, imported = 0;
for (const end = Date.now() + Number(what) * 1000; Date.now() < end; runs++) {
  const bytes = mutate(pick(seeds)), begin = process.cpuUsage();
  try {
    imported += check(bytes);
    // microseconds
    ok(process.cpuUsage(begin).user < 2e6, 'an import of a few kilobytes takes no seconds');
  } catch (e) {
    fs.mkdirSync(folder, { recursive: true });
    const file = path.join(folder, `fuzz_archive-crash-${runs}.json`);
    fs.writeFileSync(file, bytes);
    console.log(`${e?.stack ?? e}\n\nrun ${runs}: see ${file}`);
    process.exit(1);
  }
}
console.log(`${imported} of ${runs} were imported; ${covered()}% of the code ran`);
console.log(`${runs} runs`);
