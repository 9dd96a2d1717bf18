// schema - the history's tables, as steps that bring any older file up to date. Never edit a step:
// add one.

export const migrations: readonly string[] = [
  `CREATE TABLE conversation(
     id TEXT PRIMARY KEY,
     title TEXT NOT NULL,
     created INTEGER NOT NULL,
     updated INTEGER NOT NULL,
     leaf TEXT,
     settings TEXT NOT NULL,
     saved_for TEXT NOT NULL DEFAULT ''
   );
   CREATE INDEX conversation_updated ON conversation(updated);
   CREATE TABLE message(
     key INTEGER PRIMARY KEY,
     id TEXT NOT NULL UNIQUE,
     conversation TEXT NOT NULL REFERENCES conversation(id) ON DELETE CASCADE,
     parent TEXT,
     role TEXT NOT NULL,
     content TEXT NOT NULL,
     reasoning TEXT NOT NULL,
     tool_calls TEXT NOT NULL,
     tool_call_id TEXT NOT NULL,
     tool_name TEXT NOT NULL,
     state TEXT NOT NULL,
     note TEXT NOT NULL,
     stats TEXT,
     created INTEGER NOT NULL
   );
   CREATE INDEX message_conversation ON message(conversation);
   CREATE VIRTUAL TABLE message_text USING fts5(
     content, content='message', content_rowid='key', tokenize='unicode61 remove_diacritics 2');
   CREATE TRIGGER message_added AFTER INSERT ON message BEGIN
     INSERT INTO message_text(rowid, content) VALUES (new.key, new.content);
   END;
   CREATE TRIGGER message_removed AFTER DELETE ON message BEGIN
     INSERT INTO message_text(message_text, rowid, content) VALUES ('delete', old.key, old.content);
   END;
   CREATE TRIGGER message_changed AFTER UPDATE OF content ON message BEGIN
     INSERT INTO message_text(message_text, rowid, content) VALUES ('delete', old.key, old.content);
     INSERT INTO message_text(rowid, content) VALUES (new.key, new.content);
   END;`,
  // Conversations that were deleted, so that a tab which still shows one does not write it back.
  // And the index forgets the words of deleted messages at once, as `secure_delete` does for the
  // rows.
  `CREATE TABLE deleted(id TEXT PRIMARY KEY, at INTEGER NOT NULL) WITHOUT ROWID;
   INSERT INTO message_text(message_text, rank) VALUES ('secure-delete', 1);`,
  // How the canvases of an answer were denoised, as JSON.
  'ALTER TABLE message ADD COLUMN frames TEXT;',
];
