// history - conversations in SQLite: what can be asked of them and changed. Knows no page and no
// worker.

import type { Database, SqlValue } from '@sqlite.org/sqlite-wasm';
import { safeId, toConversation, toMessage } from '../chat/archive';
import { isSmall } from '../chat/canvas';
import type { Archive, Conversation, Message, Thread } from '../chat/types';
import { migrations } from './schema';

export interface SearchHit {
  conversation: string;
  title: string;
  /** The message that has them; '' where it is the title. */
  message: string;
  /** Text around the words, which stand between \u0001 and \u0002. */
  excerpt: string;
}

export type Row = Record<string, SqlValue>;
const text = (value: SqlValue | undefined) => (typeof value === 'string' ? value : '');
// milliseconds; rows may be later than a clock that was set back, but must be a date
const LATEST = 8e15;

/** A damaged text is as good as none: the checks fill in what is missing. */
function parse(value: SqlValue | undefined): unknown {
  try {
    return JSON.parse(text(value));
  } catch {
    return null;
  }
}

export const conversationOf = (row: Row): Conversation | null => {
  const found = toConversation({ ...row, settings: parse(row['settings']) }, LATEST);
  return found && { ...found, savedFor: text(row['saved_for']) };
};

export const messageOf = (row: Row): Message | null =>
  toMessage({
    ...row, toolCalls: parse(row['tool_calls']), toolCallId: row['tool_call_id'],
    toolName: row['tool_name'], stats: parse(row['stats']), frames: parse(row['frames']),
  }, text(row['conversation']), LATEST);

const present = <T>(list: (T | null)[]): T[] => list.filter((one) => one !== null);

/** Words as a person types them to a query that finds beginnings of words. */
export const ftsQuery = (words: string) =>
  (words.match(/[\p{L}\p{N}]+/gu) ?? []).map((word) => `"${word}"*`).join(' ');

/** Scripts that put no space between words: there a word is found anywhere, by reading every
 *  message. */
const unspaced = ['Han', 'Hiragana', 'Katakana', 'Hangul', 'Thai', 'Lao', 'Khmer', 'Myanmar'];
const UNSPACED = new RegExp(unspaced.map((name) => `\\p{Script=${name}}`).join('|'), 'u');
const isUnspaced = (words: string) => UNSPACED.test(words);

const likeAny = (words: string) => `%${words.replace(/[\\%_]/g, '\\$&')}%`;

const MOST_WORDS = 20; // of a search
const wordsOf = (words: string) => words.trim().split(/\s+/).slice(0, MOST_WORDS);

/** SQL for text that has each of the words, and its values. */
const hasAll = (column: string, words: string): [string, string[]] => {
  const each = wordsOf(words);
  return [each.map(() => `${column} LIKE ? ESCAPE '\\'`).join(' AND '), each.map(likeAny)];
};

const AROUND = 30; // characters

function excerptOf(content: string, words: string): string {
  const at = content.toLowerCase().indexOf(words.toLowerCase());
  if (at < 0) return '';
  const from = Math.max(0, at - AROUND), end = at + words.length;
  const to = Math.min(content.length, end + AROUND);
  return `${from ? '…' : ''}${content.slice(from, at)}\u0001${content.slice(at, end)}`
    + `\u0002${content.slice(end, to)}${to < content.length ? '…' : ''}`;
}

// milliseconds after which no tab still shows a deleted conversation
const FORGET = 30 * 86_400_000;

export class NewerHistory extends Error {}

/** What became of the conversations of an archive. */
export interface Restored {
  added: number;
  /** They were here, and got what they lacked. */
  completed: number;
  /** They were here with all of it. */
  known: number;
}

export class History {
  constructor(private readonly db: Database) {
    db.exec(
      'PRAGMA foreign_keys = ON; PRAGMA secure_delete = ON; PRAGMA journal_mode = TRUNCATE; '
        + 'PRAGMA synchronous = NORMAL',
    );
    const version = Number(db.selectValue('PRAGMA user_version') ?? 0);
    if (version > migrations.length)
      throw new NewerHistory(
        'The history was written by a newer version of this page; reload to update.',
      );
    for (let i = version; i < migrations.length; i++)
      db.transaction(() => db.exec(`${migrations[i]}; PRAGMA user_version = ${i + 1}`));
    db.exec({ sql: 'DELETE FROM deleted WHERE at < ?', bind: [Date.now() - FORGET] });
  }

  private rows(sql: string, bind: SqlValue[] = []): Row[] {
    return this.db.exec({ sql, bind, rowMode: 'object', returnValue: 'resultRows' }) as Row[];
  }

  list(): Conversation[] {
    return present(
      this.rows('SELECT * FROM conversation ORDER BY updated DESC').map(conversationOf),
    );
  }

  thread(id: string): Thread | null {
    const [row] = this.rows('SELECT * FROM conversation WHERE id = ?', [id]);
    const conversation = row ? conversationOf(row) : null;
    if (!conversation) return null;
    const messages = present(this.rows(
      'SELECT * FROM message WHERE conversation = ? ORDER BY created, key', [id],
    ).map(messageOf));
    return { conversation, messages };
  }

  search(words: string): SearchHit[] {
    const found = isUnspaced(words) ? this.searchInside(words) : this.searchWords(words);
    const [condition, values] = hasAll('title', words);
    const titled = this.rows(
      `SELECT id, title, '' AS message, '' AS excerpt FROM conversation
       WHERE ${condition} ORDER BY updated DESC LIMIT 20`, values);
    const hits = new Map<string, SearchHit>();
    for (const row of [...found, ...titled]) {
      const id = text(row['id']);
      if (!hits.has(id))
        hits.set(id, {
          conversation: id, title: text(row['title']), message: text(row['message']),
          excerpt: text(row['excerpt']),
        });
    }
    return [...hits.values()];
  }

  private searchWords(words: string): Row[] {
    const query = ftsQuery(words);
    return query ? this.rows(
      `SELECT m.conversation AS id, m.id AS message, c.title AS title,
         snippet(message_text, 0, char(1), char(2), '…', 12) AS excerpt
       FROM message_text JOIN message m ON m.key = message_text.rowid
       JOIN conversation c ON c.id = m.conversation
       WHERE message_text MATCH ? ORDER BY rank LIMIT 60`, [query]) : [];
  }

  private searchInside(words: string): Row[] {
    const [condition, values] = hasAll('m.content', words), [first = ''] = wordsOf(words);
    const rows = this.rows(
      `SELECT m.conversation AS id, m.id AS message, c.title AS title, m.content AS content
       FROM message m JOIN conversation c ON c.id = m.conversation
       WHERE ${condition} ORDER BY m.created DESC LIMIT 60`, values);
    return rows.map(({ content, ...row }) =>
      ({ ...row, excerpt: excerptOf(text(content), first) }));
  }

  /** One that was deleted stays so, whoever still shows it. */
  putConversation(c: Conversation): void {
    this.db.exec({
      sql: `INSERT INTO conversation SELECT ?,?,?,?,?,?,?
            WHERE NOT EXISTS (SELECT 1 FROM deleted WHERE id = ?1)
            ON CONFLICT(id) DO UPDATE SET title = excluded.title, updated = excluded.updated,
            leaf = excluded.leaf, settings = excluded.settings, saved_for = excluded.saved_for`,
      bind: [c.id, c.title, c.created, c.updated, c.leaf, JSON.stringify(c.settings), c.savedFor],
    });
  }

  /** A message of a conversation that is gone is not kept, and none leaves its conversation. */
  putMessage(m: Message): void {
    this.db.exec({
      sql: `INSERT INTO message(id, conversation, parent, role, content, reasoning, tool_calls,
              tool_call_id, tool_name, state, note, stats, created, frames)
            SELECT ?,?,?,?,?,?,?,?,?,?,?,?,?,?
            WHERE EXISTS (SELECT 1 FROM conversation WHERE id = ?2)
            ON CONFLICT(id) DO UPDATE SET content = excluded.content,
            reasoning = excluded.reasoning, tool_calls = excluded.tool_calls,
            state = excluded.state, note = excluded.note, stats = excluded.stats,
            frames = excluded.frames
            WHERE message.conversation = excluded.conversation`,
      bind: [
        m.id, m.conversation, m.parent, m.role, m.content, m.reasoning, JSON.stringify(m.toolCalls),
        m.toolCallId,
        m.toolName, m.state, m.note, m.stats && JSON.stringify(m.stats), m.created,
        m.frames && isSmall(m.frames) ? JSON.stringify(m.frames) : null,
      ],
    });
  }

  remove(id: string): void {
    this.db.transaction(() => {
      this.db.exec({ sql: 'DELETE FROM conversation WHERE id = ?', bind: [id] });
      this.db.exec({ sql: 'INSERT OR REPLACE INTO deleted VALUES (?, ?)', bind: [id, Date.now()] });
    });
  }

  /** That these were deleted, but for those that are here. */
  rememberDeleted(deleted: readonly { id: string; at: number }[]): void {
    for (const { id, at } of deleted)
      this.db.exec({
        sql:
          'INSERT OR IGNORE INTO deleted SELECT ?, ? WHERE NOT EXISTS (SELECT 1 FROM '
            + 'conversation WHERE id = ?1)',
        bind: [id, at],
      });
  }

  archive(id?: string): Archive {
    const ids = id ? [id] : this.list().map((c) => c.id);
    return {
      format: 'bezel-conversations',
      version: 1,
      threads: ids.flatMap((one) => this.thread(one) ?? []),
    };
  }

  /** All of the archive or nothing. What is here is never overwritten: a conversation gets the
   *  messages that it lacks, and its title, settings and place only from one that is newer. One
   *  that was deleted comes back: that is asked for. */
  restore(archive: Archive): Restored {
    const done: Restored = { added: 0, completed: 0, known: 0 };
    this.db.transaction(() => {
      for (const thread of archive.threads) {
        this.db.exec({ sql: 'DELETE FROM deleted WHERE id = ?', bind: [thread.conversation.id] });
        done[this.restoreThread(thread)]++;
      }
    });
    return done;
  }

  private restoreThread({ conversation: c, messages }: Thread): keyof Restored {
    const here = this.thread(c.id);
    const mine = new Set(here?.messages.map((m) => m.id));
    // an id that a message of another conversation has is changed
    const names = new Map<string, string>();
    const renamed = (id: string | null) => (id === null ? null : (names.get(id) ?? id));
    for (const { id } of messages) {
      const [row] = this.rows(
        'SELECT conversation FROM message WHERE id = ? AND conversation <> ?', [id, c.id],
      );
      if (row) names.set(id, safeId(`${c.id}/${id}`));
    }
    const isNewer = !here || c.updated > here.conversation.updated;
    const leaf = here && !messages.length ? here.conversation.leaf : renamed(c.leaf);
    if (isNewer)
      this.putConversation({
        ...c,
        leaf,
        settings: { ...c.settings, from: renamed(c.settings.from) },
        savedFor: here?.conversation.savedFor ?? c.savedFor,
      });
    let added = 0;
    for (const m of messages) {
      const id = renamed(m.id) ?? m.id;
      if (mine.has(id)) continue;
      this.putMessage({ ...m, id, parent: renamed(m.parent), conversation: c.id });
      added++;
    }
    // Messages for a conversation that is here without any: they are shown from the end that they
    // came with.
    if (added && here && !isNewer && !mine.size)
      this.putConversation({ ...here.conversation, leaf });
    return !here ? 'added' : added || isNewer ? 'completed' : 'known';
  }
}
