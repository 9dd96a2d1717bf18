// salvage - the conversations that can still be read from a damaged history. Knows SQLite and the
// tables, no files.

import type { Database, Sqlite3Static, SqlValue } from '@sqlite.org/sqlite-wasm';
import { wellFormed } from '../chat/archive';
import { defaultSettings, type Conversation, type Message, type Thread } from '../chat/types';
import { conversationOf, messageOf, type Row } from './history';
import { migrations } from './schema';

function openBytes(sqlite3: Sqlite3Static, bytes: Uint8Array): Database {
  const { capi, oo1, wasm } = sqlite3, db = new oo1.DB(':memory:');
  const at = wasm.allocFromTypedArray(bytes), n = bytes.length;
  db.checkRc(capi.sqlite3_deserialize(db, 'main', at, n, n, capi.SQLITE_DESERIALIZE_FREEONCLOSE));
  db.exec('PRAGMA writable_schema = ON'); // a schema with one bad entry is read all the same
  return db;
}

/** The rows that a query gives before it meets damage. */
function scan(db: Database, sql: string, bind: SqlValue[] = []): { rows: Row[]; whole: boolean } {
  const rows: Row[] = [];
  try {
    db.exec({ sql, bind, rowMode: 'object', callback: (row) => void rows.push(row as Row) });
    return { rows, whole: true };
  } catch {
    return { rows, whole: false };
  }
}

const MOST_PROBES = 1e6;
const MOST_MISSES = 5000; // in a row, where the end of the table is not known

/** All that is left of a table: from its beginning, from its end, and one by one in between. */
function rowsOf(db: Database, table: 'conversation' | 'message'): { rows: Row[]; whole: boolean } {
  const all = `SELECT rowid AS at, * FROM ${table} NOT INDEXED`;
  const up = scan(db, `${all} ORDER BY rowid`);
  if (up.whole) return up;
  const down = scan(db, `${all} ORDER BY rowid DESC`).rows.reverse();
  const low = Number(up.rows.at(-1)?.['at'] ?? 0);
  const high = down[0] ? Number(down[0]['at']) : Infinity;
  const between: Row[] = [];
  for (
    let at = low + 1, misses = 0;
    at < Math.min(high, low + MOST_PROBES) && (down[0] || misses < MOST_MISSES);
    at++
  ) {
    const { rows } = scan(db, `${all} WHERE rowid = ?`, [at]);
    between.push(...rows);
    misses = rows.length ? 0 : misses + 1;
  }
  const byPlace = new Map([...up.rows, ...between, ...down].map((row) => [row['at'], row]));
  return { rows: [...byPlace.values()], whole: false };
}

function titleOf(messages: readonly Message[]): string {
  const said = messages.find((m) => m.role === 'user' && m.content.trim()) ?? messages[0];
  return said?.content.trim().replace(/\s+/g, ' ').slice(0, 70) || 'Recovered';
}

/** Messages whose conversation is lost make one of their own. */
function orphaned(id: string, messages: readonly Message[]): Conversation {
  const times = messages.map((m) => m.created);
  const [created, updated] = [
    times.reduce((a, b) => Math.min(a, b)), times.reduce((a, b) => Math.max(a, b)),
  ];
  return {
    id, title: titleOf(messages), created, updated, leaf: null, settings: defaultSettings,
    savedFor: '',
  };
}

interface Found {
  threads: Thread[];
  messages: number;
  whole: boolean;
}

function readAll(db: Database): Found {
  const conversations = rowsOf(db, 'conversation'), messages = rowsOf(db, 'message');
  const byConversation = new Map<string, Message[]>();
  for (const row of messages.rows) {
    const message = messageOf(row);
    if (!message?.conversation) continue;
    const others = byConversation.get(message.conversation) ?? [];
    others.push(message);
    byConversation.set(message.conversation, others);
  }
  const known =
    new Map(conversations.rows.flatMap((row) => conversationOf(row) ?? []).map((c) => [c.id, c]));
  for (const [id, orphans] of byConversation)
    if (!known.has(id)) known.set(id, orphaned(id, orphans));
  const threads = [...known.values()].map((c) =>
    wellFormed({ conversation: c, messages: byConversation.get(c.id) ?? [] }));
  return { threads, messages: messages.rows.length, whole: conversations.whole && messages.whole };
}

function attempt(sqlite3: Sqlite3Static, bytes: Uint8Array): Found {
  let db: Database | undefined;
  try {
    db = openBytes(sqlite3, bytes);
    return readAll(db);
  } catch {
    return { threads: [], messages: 0, whole: false }; // not even the schema
  } finally {
    db?.close();
  }
}

/** Where the schema's first step, which is where every history begins, puts a table. */
function placesOf(sqlite3: Sqlite3Static): { name: string; root: number; columns: string }[] {
  const fresh = new sqlite3.oo1.DB(':memory:');
  try {
    fresh.exec(migrations[0] ?? '');
    return ['conversation', 'message'].map((name) => ({
      name,
      root: Number(fresh.selectValue('SELECT rootpage FROM sqlite_schema WHERE name = ?', name)),
      columns: fresh.selectValues(
        `SELECT name || iif(pk AND type = 'INTEGER', ' INTEGER PRIMARY KEY', `
          + `'') FROM pragma_table_info('${name}') ORDER BY cid`,
      ).join(','),
    }));
  } finally {
    fresh.close();
  }
}

/** The first page of a file that has the two tables, at these places, and nothing else. */
function newHead(sqlite3: Sqlite3Static): Uint8Array {
  const db = new sqlite3.oo1.DB(':memory:'), places = placesOf(sqlite3);
  try {
    for (const { name, columns } of places) db.exec(`CREATE TABLE ${name}(${columns})`);
    db.exec('PRAGMA writable_schema = ON');
    for (const { name, root } of places)
      db.exec({ sql: 'UPDATE sqlite_schema SET rootpage = ? WHERE name = ?', bind: [root, name] });
    return sqlite3.capi.sqlite3_js_db_export(db).slice(
      0, Number(db.selectValue('PRAGMA page_size')),
    );
  } finally {
    db.close();
  }
}

/** The same file with a first page that can be read. */
function withNewHead(sqlite3: Sqlite3Static, bytes: Uint8Array): Uint8Array {
  const head = newHead(sqlite3), pages = Math.max(1, Math.ceil(bytes.length / head.length));
  const out = new Uint8Array(pages * head.length), view = new DataView(out.buffer);
  out.set(bytes);
  out.set(head);
  view.setUint32(28, pages); // which counts if
  view.setUint32(92, view.getUint32(24)); // it is as old as the last change
  return out;
}

export interface Deleted {
  id: string;
  at: number;
}

/** Which conversations had been deleted, as far as that can be read. */
export function salvageDeleted(sqlite3: Sqlite3Static, bytes: Uint8Array): Deleted[] {
  let db: Database | undefined;
  try {
    db = openBytes(sqlite3, bytes);
    const { rows } = scan(db, 'SELECT id, at FROM deleted');
    return rows.flatMap(({ id, at }) =>
      (typeof id === 'string' && typeof at === 'number' ? { id, at } : []));
  } catch {
    return []; // not even the schema
  } finally {
    db?.close();
  }
}

/** `bytes`: an SQLite file, with damage anywhere. */
export function salvage(sqlite3: Sqlite3Static, bytes: Uint8Array): Thread[] {
  const asIs = attempt(sqlite3, bytes);
  if (asIs.whole) return asIs.threads;
  const mended = attempt(sqlite3, withNewHead(sqlite3, bytes));
  return (mended.messages > asIs.messages ? mended : asIs).threads;
}
