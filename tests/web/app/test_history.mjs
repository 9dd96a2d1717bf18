// Conversations as files and as rows: what an import makes of foreign bytes, what the history
// keeps, forgets and finds. In Node, with the page's own SQLite. node
// tests/web/app/test_history.mjs [--only WORDS]
import sqlite3InitModule from '../../../web/app/node_modules/@sqlite.org/sqlite-wasm/dist/node.mjs';
import { done, equal, ok, same, test, throws } from '../check.mjs';
import { archive } from './sample.mjs';
import { unit } from './unit.mjs';

const { readArchive } = await unit('web/app/src/chat/archive.ts');
const { placeOf } = await unit('web/app/src/chat/tree.ts');
const { History } = await unit('web/app/src/storage/history.ts');
const { salvage, salvageDeleted } = await unit('web/app/src/storage/salvage.ts');
globalThis.sqlite3ApiConfig = { warn: () => {}, error: () => {} }; // damage is what is tested
const sqlite3 = await sqlite3InitModule();

const bytes = (value) =>
  new TextEncoder().encode(typeof value === 'string' ? value : JSON.stringify(value));
const read = (threads) =>
  readArchive(bytes({ format: 'bezel-conversations', version: 1, threads })).threads;
const message = (id, parent, content = id, more = {}) => ({
  id, parent, role: 'user', content, created: 1000, ...more,
});
const thread = (id, messages, more = {}) => ({
  conversation: { id, title: id, created: 1000, updated: 2000, leaf: messages.at(-1)?.id, ...more },
  messages,
});
const opened = () => new History(new sqlite3.oo1.DB(':memory:'));

test('an export is imported as it was', () => {
  const history = opened(), sample = archive();
  same(history.restore(readArchive(bytes(sample))), { added: 5, completed: 0, known: 0 });
  const again = history.archive();
  same(readArchive(bytes(again)), again, 'what is exported passes the checks unchanged');
  equal(history.thread('strings').messages[3].toolCalls[0].name, 'calculator');
  equal(history.thread('strings').messages[1].stats.tokens, 296);
});

test('anything else is one sentence', () => {
  const not = { message: 'That file is not an export of Bezel conversations.' };
  for (const wrong of [
    '', '{', 'null', '[]', '"x"', '{"format":"other"}', '['.repeat(500_000),
    { format: 'bezel-conversations', version: 1 },
  ])
    throws(() => readArchive(bytes(wrong)), not);
  for (const threads of [
    [null], [{}], [[]], [{ conversation: null, messages: [] }],
    [{ conversation: { id: 7 }, messages: [] }], [thread('a', [null])],
    [thread('a', [{ id: 'm', role: 'king' }])],
  ])
    throws(() => read(threads), not);
  throws(
    () => readArchive(bytes({ format: 'bezel-conversations', version: 2, threads: [] })),
    /newer version/,
  );
  throws(() => readArchive(new Uint8Array(256e6 + 1)), /256 MB; an export/);
});

test('half-true parts of an archive become nothing or a default, never a crash', () => {
  const odd = {
    stats: {},
    toolCalls: [null, 3, { id: 'c' }, { id: 'c', name: 'clock' }],
    reasoning: 7,
    note: {},
    created: 1e300,
    frames: [{ canvas: 0, step: 1, steps: 2, pieces: ['a'], sure: '7' }],
  };
  const settings = {
    temperature: 'hot', topK: 1.5, topP: 7, maxTokens: -1, seed: null, steps: 0, tools: 'yes',
    json: 'perhaps', schema: {},
    adapters: [null, { name: 'a', scale: 'x' }, { scale: 1 }],
  };
  const [{ conversation, messages }] = read(
    [thread('a', [message('m', null, 'x\0\ud800', odd)], { settings, updated: 9e15, title: 5 })],
  );
  same(messages[0].toolCalls, [{ id: 'c', name: 'clock', arguments: '' }]);
  same([messages[0].stats, messages[0].reasoning, messages[0].note, messages[0].content], [
    null, '', '', 'x\ufffd\ufffd',
  ]);
  equal(messages[0].frames, null);
  ok(
    messages[0].created <= Date.now() && conversation.updated <= Date.now(),
    'nothing comes from the future',
  );
  equal(conversation.title, 'Imported');
  same(conversation.settings, {
    system: '', thinking: false, tools: false, temperature: null, topP: null, topK: null,
    minP: null, maxTokens: null, seed: null, steps: null, json: 'off', schema: '',
    adapters: [{ name: 'a', scale: 1 }], from: null, summaryOf: null,
  });
});

test('what a conversation sums up is read as a whole or not at all', () => {
  const source = { conversation: 'b', from: 'm1', to: 'm2' };
  const readBack = (summaryOf) =>
    read(
      [thread('a', [message('m', null)], { settings: { summaryOf } })],
    )[0].conversation.settings.summaryOf;
  same(readBack(source), source);
  for (const wrong of [null, 7, {}, { ...source, to: 5 }, { conversation: 'b' }])
    equal(readBack(wrong), null);
});

test('ids are made fit for addresses and file names, the same at each import', () => {
  const wild = [
    thread('a/b', [message('m/1', null), message('m/2', 'm/1')]),
    thread('../x', [message('m/1', null)]), thread('y'.repeat(1e6), []),
  ];
  const first = read(wild);
  for (const { conversation, messages } of first)
    for (const id of [conversation.id, ...messages.map((m) => m.id)])
      ok(/^[A-Za-z0-9_-]{1,64}$/.test(id), id);
  equal(first[0].messages[1].parent, first[0].messages[0].id);
  equal(first[0].conversation.leaf, first[0].messages[1].id);
  ok(
    first[1].messages[0].id !== first[0].messages[0].id,
    'two conversations of a file may use the same ids',
  );
  same(read(wild), first);
});

test('a tree with circles, missing parents and 50,000 messages is read, and each '
  + 'placed, in seconds', () => {
  const [{ conversation, messages }] = read([thread(
    'a',
    [
      message('1', '3'), message('2', '1'), message('3', '2'), message('4', 'gone'),
      message('5', '5'),
    ],
    { leaf: 'gone' },
  )]);
  const parents = new Map(messages.map((m) => [m.id, m.parent]));
  for (let { id } of messages)
    for (let steps = 0; id; id = parents.get(id))
      ok(++steps < 6, 'every message leads to a beginning');
  ok(parents.has(conversation.leaf), 'the end is one of the messages');
  const begin = performance.now();
  const many = Array.from({ length: 50_000 }, (_, i) => message(`m${i}`, `m${(i + 1) % 50_000}`));
  const all = read([thread('a', many)])[0].messages;
  equal(all.filter((m) => placeOf(all, m).siblings.length === 1).length, 50_000);
  ok(performance.now() - begin < 5000);
});

test('a file that has one conversation again and again is imported in seconds, as its first',
    () => {
  const history = opened();
  const first =
    thread('a', Array.from({ length: 1000 }, (_, i) => message(`m${i}`, i ? `m${i - 1}` : null)));
  const threads = read([
    first,
    ...Array.from({ length: 1000 }, () => thread('a', [], { title: 'another', updated: 3000 })),
  ]);
  const begin = performance.now();
  same(history.restore({ threads }), { added: 1, completed: 0, known: 0 });
  ok(performance.now() - begin < 5000, `${Math.round(performance.now() - begin)} ms`);
  same([history.thread('a').conversation.title, history.thread('a').messages.length], ['a', 1000]);
});

test('an import adds what is missing and overwrites nothing that is newer', () => {
  const history = opened(), now = Date.now();
  const old = read(
    [thread('a', [message('q', null, 'question')], { updated: now - 9000, title: 'old name' })],
  );
  history.restore({ threads: old });
  history.putConversation({ ...old[0].conversation, title: 'new name', updated: now - 1000 });
  history.putMessage({ ...old[0].messages[0], content: 'question, edited' });
  const both = read([thread(
    'a',
    [message('q', null, 'question'), message('r', 'q', 'from the file')],
    { updated: now - 9000, title: 'old name' },
  )]);
  same(history.restore({ threads: both }), { added: 0, completed: 1, known: 0 });
  const { conversation, messages } = history.thread('a');
  equal(conversation.title, 'new name');
  same(messages.map((m) => m.content), ['question, edited', 'from the file']);
  same(history.restore({ threads: both }), { added: 0, completed: 0, known: 1 });
  history.restore({ threads: read([thread('a', [], { updated: now, title: 'newest name' })]) });
  equal(history.thread('a').conversation.title, 'newest name', 'a newer one brings its name');
});

test('messages that come to an empty conversation are shown, however old their file is', () => {
  const history = opened(), now = Date.now();
  history.restore({ threads: read([thread('a', [], { updated: now })]) });
  history.restore({
    threads: read([thread(
      'a', [message('q', null, 'question'), message('r', 'q', 'answer')], { updated: now - 9000 },
    )]),
  });
  const { conversation, messages } = history.thread('a');
  ok(messages.some((m) => m.id === conversation.leaf), 'the end is one of the messages');
});

test('a newer file without messages takes no message out of sight', () => {
  const history = opened(), now = Date.now();
  history.restore({
    threads: read([thread('a', [message('q', null, 'question')], { updated: now - 9000 })]),
  });
  history.restore({ threads: read([thread('a', [], { updated: now, title: 'newer name' })]) });
  const { conversation } = history.thread('a');
  same([conversation.title, conversation.leaf], ['newer name', 'q']);
});

test('an import cannot touch messages of another conversation', () => {
  const history = opened();
  history.restore({ threads: read([thread('a', [message('m', null, 'mine')])]) });
  history.restore({
    threads: read([thread('b', [message('m', null, 'theirs'), message('n', 'm', 'reply')])]),
  });
  same(history.thread('a').messages.map((m) => m.content), ['mine']);
  const [first, second] = history.thread('b').messages;
  same([first.content, second.content, second.parent], ['theirs', 'reply', first.id]);
});

test('a conversation deleted in one tab is not written back by another', () => {
  const history = opened();
  const [{ conversation, messages }] = read([thread('a', [message('m', null, 'gone')])]);
  history.restore({ threads: [{ conversation, messages }] });
  history.remove('a');
  history.putConversation({ ...conversation, updated: Date.now() });
  history.putMessage({ ...messages[0], content: 'late words' });
  same(history.list(), []);
  history.restore({ threads: [{ conversation, messages }] });
  equal(history.thread('a').messages.length, 1, 'Undo brings it back');
  history.putMessage({ ...messages[0], content: 'more' });
  equal(history.thread('a').messages[0].content, 'more');
});

test('deleted words are gone from the file, rows and index', () => {
  const db = new sqlite3.oo1.DB(':memory:'), history = new History(db);
  const noise =
    Array.from({ length: 200 }, (_, i) => message(`n${i}`, null, `filler ${i} `.repeat(30)));
  history.restore({
    threads:
      read([thread('a', [message('m', null, 'xylophonesecret '.repeat(400))]), thread('b', noise)]),
  });
  const holds = () =>
    Buffer.from(sqlite3.capi.sqlite3_js_db_export(db)).includes('xylophonesecret');
  ok(holds());
  history.remove('a');
  ok(!holds(), 'secure_delete, and the index forgets at once');
});

test('words are found at their beginnings, and anywhere in scripts that write no spaces', () => {
  const history = opened();
  history.restore({
    threads: read([
      thread('a', [message('en', null, 'The capital of France is Paris.')]),
      thread('zh', [message('zh1', null, '法国的首都是巴黎，位于塞纳河畔。')]),
      thread('ja', [message('ja1', null, 'フランスの首都はパリです')]),
    ]),
  });
  same(history.search('pari').map((h) => [h.conversation, h.message]), [['a', 'en']]);
  same(history.search('首都').map((h) => h.conversation).sort(), ['ja', 'zh']);
  same(
    history.search('塞纳河 首都').map((h) => [h.conversation, h.excerpt.includes('\u0001塞纳河\u0002')]),
    [['zh', true]],
    'each of several words',
  );
  ok(history.search('巴黎')[0].excerpt.includes('\u0001巴黎\u0002'));
  same(history.search('100%_'), []);
});

test('rows whose texts are damaged are shown with what is left of them', () => {
  const db = new sqlite3.oo1.DB(':memory:'), history = new History(db);
  history.restore({ threads: read([thread('a', [message('m', null, 'words')])]) });
  db.exec(
    `UPDATE conversation SET settings = '{"temp'; UPDATE message SET tool_calls = `
      + `'[nul', stats = '{}'`,
  );
  const { conversation, messages } = history.thread('a');
  same(
    [conversation.settings.system, messages[0].content, messages[0].toolCalls, messages[0].stats],
    ['', 'words', [], null],
  );
  equal(history.list().length, 1);
});

// ---- damage ----

/** A history of 40 conversations with 10 messages each, as a file. */
function fileOf40() {
  const db = new sqlite3.oo1.DB(':memory:'), history = new History(db);
  const messages = (c) => Array.from(
    { length: 10 },
    (_, i) => message(
      `c${c}m${i}`, i ? `c${c}m${i - 1}` : null, `words ${c} ${i} `.repeat(20 + 60 * (i % 5)),
    ),
  );
  history.restore({
    threads: read(Array.from({ length: 40 }, (_, c) => thread(`c${c}`, messages(c)))),
  });
  return {
    bytes: sqlite3.capi.sqlite3_js_db_export(db),
    root: (name) =>
      Number(db.selectValue('SELECT rootpage FROM sqlite_schema WHERE name = ?', name)),
    pagesOf: (name) => leavesOf(
      sqlite3.capi.sqlite3_js_db_export(db),
      Number(db.selectValue('SELECT rootpage FROM sqlite_schema WHERE name = ?', name)),
    ),
  };
}
/** The pages below a table's root, in order. */
function leavesOf(file, root) {
  const view = new DataView(file.buffer, file.byteOffset), at = (root - 1) * 8192;
  const cells = view.getUint16(at + 3);
  equal(view.getUint8(at), 5, 'the root lists pages');
  return [
    ...Array.from(
      { length: cells }, (_, i) => view.getUint32(at + view.getUint16(at + 12 + 2 * i)),
    ),
    view.getUint32(at + 8),
  ];
}
const messagesIn = (threads) => threads.reduce((n, t) => n + t.messages.length, 0);
const noise = (bytes, from, to) => {
  const out = bytes.slice();
  for (let i = from; i < Math.min(to, out.length); i++) out[i] = (i * 2654435761) >>> 13;
  return out;
};

test('everything is salvaged from a history without damage, and from one whose first page is lost',
    () => {
  const { bytes: file } = fileOf40(), whole = salvage(sqlite3, file);
  same([whole.length, messagesIn(whole)], [40, 400]);
  for (const [from, to] of [[0, 16], [0, 100], [100, 8192], [0, 8192]]) {
    const found = salvage(sqlite3, noise(file, from, to));
    same([found.length, messagesIn(found)], [40, 400], `bytes ${from} to ${to}`);
    same(found[7], whole[7]);
  }
});

test('what lies outside the damage is salvaged, wherever that is', () => {
  const { bytes: file, root } = fileOf40(), pages = file.length / 8192;
  for (let page = 1; page < pages; page += 4) {
    const found = salvage(sqlite3, noise(file, page * 8192, (page + 1) * 8192));
    const isRoot = page + 1 === root('message'); // where all pages of messages are listed
    ok(isRoot || messagesIn(found) >= 400 - 60, `page ${page + 1}: ${messagesIn(found)} messages`);
    for (const { conversation, messages } of found)
      ok(
        messages.every((m) => m.conversation === conversation.id)
          && (!messages.length || messages.some((m) => m.id === conversation.leaf)),
      );
  }
});

test('between two damaged places everything is salvaged, and what was deleted stays so', () => {
  const { bytes: file, pagesOf } = fileOf40(), leaves = pagesOf('message');
  const [low, high] = [leaves[Math.floor(leaves.length / 4)], leaves.at(-1)];
  const found = salvage(
    sqlite3,
    [low, high].reduce((bytes, page) => noise(bytes, (page - 1) * 8192, page * 8192), file),
  );
  ok(messagesIn(found) >= 400 - 60, `${messagesIn(found)} messages`);
  const db = new sqlite3.oo1.DB(':memory:'), history = new History(db);
  const threads = read([thread('a', [message('m', null)]), thread('b', [])]);
  history.restore({ threads });
  history.remove('a');
  history.remove('b');
  const deleted = salvageDeleted(sqlite3, sqlite3.capi.sqlite3_js_db_export(db)), next = opened();
  same(deleted.map((d) => d.id), ['a', 'b']);
  next.restore({ threads: [threads[1]] });
  next.rememberDeleted(deleted);
  next.putConversation(threads[0].conversation);
  same(next.list().map((c) => c.id), ['b']);
  same(salvageDeleted(sqlite3, new Uint8Array(5000).fill(255)), []);
});

test('a file cut short gives what came before, and rubbish gives nothing', () => {
  const { bytes: file } = fileOf40();
  ok(messagesIn(salvage(sqlite3, file.slice(0, 4096 * Math.floor(file.length / 8192)))) > 50);
  same(salvage(sqlite3, noise(file, 0, file.length)), []);
  same(salvage(sqlite3, new Uint8Array(0)), []);
  same(salvage(sqlite3, new Uint8Array(5000).fill(255)), []);
});

await done(process.argv[process.argv.indexOf('--only') + 1 || process.argv.length]);
