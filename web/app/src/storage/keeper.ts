// keeper - one history, whatever happens to its file: a damaged one is set aside, what can be read
// of it goes into a new one; where no file can be had, the history is in memory. Each such event is
// one sentence for the person.

import type { Database, SAHPoolUtil, Sqlite3Static } from '@sqlite.org/sqlite-wasm';
import type { Thread } from '../chat/types';
import { IN_MEMORY } from './changes';
import { History, NewerHistory } from './history';
import { DIRECTORY, setAside, takeOut } from './pool_files';
import { salvage, salvageDeleted } from './salvage';
import { migrations } from './schema';

const NAME = '/history.sqlite3';
const FILES = 6; // of the pool: the history, its journal, and some to spare
const MOST_VERSIONS = 1000; // of ours there will not be so many: a larger number is damage
// milliseconds: handles of a tab that just went may outlive its lock
const ATTEMPTS = 100, PAUSE = 100;

/** One sentence for the person. */
export type Tell = (note: string) => void;

const codeOf = (e: unknown): number =>
  (e instanceof Error && 'resultCode' in e ? Number(e.resultCode) & 0xff : 0);

const isBusy = (e: unknown) =>
  e instanceof DOMException
    && (e.name === 'NoModificationAllowedError' || e.name === 'InvalidStateError');

async function patiently<T>(attempt: () => Promise<T>): Promise<T> {
  for (let left = ATTEMPTS; ; left--) {
    try {
      return await attempt();
    } catch (e) {
      if (left === 0 || !isBusy(e)) throw e;
      await new Promise((resolve) => setTimeout(resolve, PAUSE));
    }
  }
}

function recoveredText(threads: readonly Thread[]): string {
  const n = threads.length;
  const found = n
    ? `${n} ${n === 1 ? 'conversation' : 'conversations'} could be read and `
      + `${n === 1 ? 'is' : 'are'} here`
    : 'nothing in it could be read';
  return `The history in this browser was damaged: ${found}.`;
}

export class Keeper {
  private history: History;
  private db: Database;
  private pool: SAHPoolUtil | null = null;
  private turn: Promise<unknown> = Promise.resolve();

  private constructor(private readonly sqlite3: Sqlite3Static, private readonly tell: Tell) {
    [this.db, this.history] = this.memory();
  }

  static async open(sqlite3: Sqlite3Static, tell: Tell): Promise<Keeper> {
    const keeper = new Keeper(sqlite3, tell);
    try {
      await keeper.openPool();
    } catch (e) {
      keeper.toMemory(e instanceof NewerHistory ? e.message : IN_MEMORY);
    }
    return keeper;
  }

  /** Whether it outlives the tab. */
  get kept(): boolean {
    return this.pool !== null;
  }

  /** Calls one after the other; one that meets damage waits for the rescue and is made again. */
  call<T>(work: (history: History) => T): Promise<T> {
    const mine = this.turn.then(async () => {
      try {
        return work(this.history);
      } catch (e) {
        if (!this.pool || !this.isDamage(e)) throw e;
        await this.rescue(this.pool).catch(() => this.toMemory(IN_MEMORY));
        return work(this.history);
      }
    });
    this.turn = mine.catch(() => {}); // whoever called is told
    return mine;
  }

  private memory(): [Database, History] {
    const db = new this.sqlite3.oo1.DB(':memory:');
    return [db, new History(db)];
  }

  /** All else failed. */
  private toMemory(note: string): void {
    this.pool = null;
    [this.db, this.history] = this.memory();
    this.tell(note);
  }

  private isDamage(e: unknown): boolean {
    const { SQLITE_CORRUPT, SQLITE_NOTADB } = this.sqlite3.capi;
    return codeOf(e) === SQLITE_CORRUPT || codeOf(e) === SQLITE_NOTADB;
  }

  private async openPool(): Promise<void> {
    await patiently(() => takeOut(this.sqlite3));
    // Without these two the pool deletes its files when another tab still has them, and never tries
    // again.
    const options = {
      directory: `/${DIRECTORY}`, initialCapacity: FILES, preserveOnInitFailure: true,
      forceReinitIfPreviouslyFailed: true,
    };
    const pool = await patiently(() => this.sqlite3.installOpfsSAHPoolVfs(options));
    await pool.reserveMinimumCapacity(FILES); // a first visit that ended early leaves fewer
    this.pool = pool;
    if (!this.canRead(pool)) return this.rescue(pool);
    try {
      this.openFile(pool);
    } catch (e) {
      if (!this.isDamage(e)) throw e;
      return this.rescue(pool);
    }
    // none, but where the head of a file was damaged or a rescue was cut short
    const found = await this.restore();
    if (found.length) this.tell(recoveredText(found));
  }

  /** Whether there is a history in the file, or nothing at all. Looks only: an error of a write, on
   *  a full disk, is no damage; nor is a disk that does not answer, which throws. */
  private canRead(pool: SAHPoolUtil): boolean {
    let db: Database | undefined;
    try {
      db = new pool.OpfsSAHPoolDb(NAME);
      const version = Number(db.selectValue('PRAGMA user_version'));
      // what its tables are like is not for us to say
      if (version > migrations.length && version < MOST_VERSIONS) return true;
      const tables =
        db.selectValues("SELECT name FROM sqlite_schema WHERE name IN ('conversation', 'message')");
      if (version === 0 && tables.length === 0) return true;
      db.exec(
        'SELECT id, settings FROM conversation LIMIT 1; SELECT id, content FROM message LIMIT 1',
      );
      return version > 0 && version < MOST_VERSIONS;
    } catch (e) {
      // the last: tables that lack a column
      if (!this.isDamage(e) && codeOf(e) !== this.sqlite3.capi.SQLITE_ERROR) throw e;
      return false;
    } finally {
      db?.close();
    }
  }

  private openFile(pool: SAHPoolUtil): void {
    const db = new pool.OpfsSAHPoolDb(NAME);
    try {
      this.history = new History(db);
      this.db = db;
    } catch (e) {
      db.close();
      throw e;
    }
  }

  /** The file is set aside, and what can be read of it goes into a new one. */
  private async rescue(pool: SAHPoolUtil): Promise<void> {
    this.db.close();
    pool.unlink(`${NAME}-journal`); // a change that was not finished
    pool.pauseVfs();
    await takeOut(this.sqlite3, NAME);
    await patiently(() => pool.unpauseVfs());
    await pool.reserveMinimumCapacity(FILES);
    this.openFile(pool);
    this.tell(recoveredText(await this.restore()));
  }

  /** From all that was set aside. Only then is it marked as done: a rescue that is cut short
   *  goes on at the next visit. */
  private async restore(): Promise<Thread[]> {
    const { files, settle } = await setAside();
    const threads = files.flatMap((bytes) => salvage(this.sqlite3, bytes));
    if (files.length) this.history.restore({ format: 'bezel-conversations', version: 1, threads });
    this.history.rememberDeleted(files.flatMap((bytes) => salvageDeleted(this.sqlite3, bytes)));
    await settle();
    return threads;
  }
}
