// history - conversations in SQLite: what can be asked of them and changed. Knows no page and no worker.

import type { Database, SqlValue } from '@sqlite.org/sqlite-wasm';
import { defaultSettings, type Archive, type Conversation, type Message, type Thread } from '../chat/types';
import { migrations } from './schema';

export interface SearchHit {
  conversation: string;
  title: string;
  /** Text around the words, which stand between \u0001 and \u0002. */
  excerpt: string;
}

type Row = Record<string, SqlValue>;
const text = (value: SqlValue | undefined) => (typeof value === 'string' ? value : '');
const number = (value: SqlValue | undefined) => Number(value ?? 0);

const toConversation = (row: Row): Conversation => ({
  id: text(row['id']),
  title: text(row['title']),
  created: number(row['created']),
  updated: number(row['updated']),
  leaf: row['leaf'] === null ? null : text(row['leaf']),
  settings: { ...defaultSettings, ...(JSON.parse(text(row['settings'])) as Partial<Conversation['settings']>) }, // older ones have fewer
  savedFor: text(row['saved_for']),
});

const toMessage = (row: Row): Message => ({
  id: text(row['id']),
  conversation: text(row['conversation']),
  parent: row['parent'] === null ? null : text(row['parent']),
  role: text(row['role']) as Message['role'],
  content: text(row['content']),
  reasoning: text(row['reasoning']),
  toolCalls: JSON.parse(text(row['tool_calls'])) as Message['toolCalls'],
  toolCallId: text(row['tool_call_id']),
  toolName: text(row['tool_name']),
  state: text(row['state']) as Message['state'],
  note: text(row['note']),
  stats: row['stats'] === null ? null : (JSON.parse(text(row['stats'])) as Message['stats']),
  created: number(row['created']),
});

/** Words as a person types them to a query that finds beginnings of words. */
export const ftsQuery = (words: string) =>
  (words.match(/[\p{L}\p{N}]+/gu) ?? []).map((word) => `"${word}"*`).join(' ');

export class History {
  constructor(private readonly db: Database) {
    db.exec('PRAGMA foreign_keys = ON; PRAGMA journal_mode = TRUNCATE; PRAGMA synchronous = NORMAL');
    const version = Number(db.selectValue('PRAGMA user_version') ?? 0);
    if (version > migrations.length) throw new Error('The history was written by a newer version of this page; reload to update.');
    for (let i = version; i < migrations.length; i++)
      db.transaction(() => db.exec(`${migrations[i]}; PRAGMA user_version = ${i + 1}`));
  }

  private rows(sql: string, bind: SqlValue[] = []): Row[] {
    return this.db.exec({ sql, bind, rowMode: 'object', returnValue: 'resultRows' }) as Row[];
  }

  list(): Conversation[] {
    return this.rows('SELECT * FROM conversation ORDER BY updated DESC').map(toConversation);
  }

  thread(id: string): Thread | null {
    const row = this.rows('SELECT * FROM conversation WHERE id = ?', [id])[0];
    if (!row) return null;
    const messages = this.rows('SELECT * FROM message WHERE conversation = ? ORDER BY created, key', [id]).map(toMessage);
    return { conversation: toConversation(row), messages };
  }

  search(words: string): SearchHit[] {
    const query = ftsQuery(words);
    if (!query) return [];
    const found = this.rows(
      `SELECT m.conversation AS id, c.title AS title, snippet(message_text, 0, char(1), char(2), '…', 12) AS excerpt
       FROM message_text JOIN message m ON m.key = message_text.rowid JOIN conversation c ON c.id = m.conversation
       WHERE message_text MATCH ? ORDER BY rank LIMIT 60`, [query]);
    const titled = this.rows(`SELECT id, title, '' AS excerpt FROM conversation WHERE title LIKE ? ESCAPE '\\' ORDER BY updated DESC LIMIT 20`,
      [`%${words.trim().replace(/[\\%_]/g, '\\$&')}%`]);
    const hits = new Map<string, SearchHit>();
    for (const row of [...found, ...titled]) {
      const id = text(row['id']);
      if (!hits.has(id)) hits.set(id, { conversation: id, title: text(row['title']), excerpt: text(row['excerpt']) });
    }
    return [...hits.values()];
  }

  putConversation(c: Conversation): void {
    this.db.exec({
      sql: `INSERT INTO conversation VALUES (?,?,?,?,?,?,?) ON CONFLICT(id) DO UPDATE SET title = excluded.title,
            updated = excluded.updated, leaf = excluded.leaf, settings = excluded.settings, saved_for = excluded.saved_for`,
      bind: [c.id, c.title, c.created, c.updated, c.leaf, JSON.stringify(c.settings), c.savedFor],
    });
  }

  /** A message of a conversation that is gone is not kept. */
  putMessage(m: Message): void {
    this.db.exec({
      sql: `INSERT INTO message(id, conversation, parent, role, content, reasoning, tool_calls, tool_call_id, tool_name, state, note, stats, created)
            SELECT ?,?,?,?,?,?,?,?,?,?,?,?,? WHERE EXISTS (SELECT 1 FROM conversation WHERE id = ?2)
            ON CONFLICT(id) DO UPDATE SET content = excluded.content, reasoning = excluded.reasoning,
            tool_calls = excluded.tool_calls, state = excluded.state, note = excluded.note, stats = excluded.stats`,
      bind: [m.id, m.conversation, m.parent, m.role, m.content, m.reasoning, JSON.stringify(m.toolCalls), m.toolCallId,
        m.toolName, m.state, m.note, m.stats && JSON.stringify(m.stats), m.created],
    });
  }

  remove(id: string): void {
    this.db.exec({ sql: 'DELETE FROM conversation WHERE id = ?', bind: [id] });
  }

  archive(id?: string): Archive {
    const ids = id ? [id] : this.list().map((c) => c.id);
    return { format: 'bezel-conversations', version: 1, threads: ids.flatMap((one) => this.thread(one) ?? []) };
  }

  /** All of the archive or nothing. */
  restore(archive: Archive): void {
    this.db.transaction(() => {
      for (const { conversation, messages } of archive.threads) {
        this.putConversation(conversation);
        for (const message of messages) this.putMessage({ ...message, conversation: conversation.id });
      }
    });
  }

  clear(): void {
    this.db.exec('DELETE FROM conversation; VACUUM');
  }
}
