// file_locks - one process at a time, by files: what Web Locks are to tabs. Node only.
//
//     <folder>/<name>.lock    JSON: who holds it, and what for
//
// Who holds a lock touches its file every second or two. A file that nobody has touched for a while
// is what a process left that was killed; so is one of a process of this machine that is gone. It
// is no protection against a program that ignores it: what is written under such a lock is checked
// by its digest all the same.

import * as crypto from 'node:crypto';
import * as fs from 'node:fs';
import * as os from 'node:os';
import * as path from 'node:path';

import type { Release } from './locks.js';

const BEAT = 1500, STALE = 15_000, POLL = 200; // milliseconds
const LOCK = '.lock';
const MAX_TEXT = 1 << 20;

interface Holder {
  readonly id: string;
  readonly pid: number;
  readonly host: string;
  /** What the lock is for, where others ask. */
  readonly uses: readonly string[];
}

export interface LockOptions {
  signal?: AbortSignal | undefined;
  /** Told again and again while another has it. */
  onWait?: (() => void) | undefined;
  uses?: readonly string[];
}

const isCode = (e: unknown, ...codes: string[]): boolean =>
  codes.includes((e as NodeJS.ErrnoException | undefined)?.code ?? '');

/** A lock file as it is; undefined: there is none. One that makes no sense has nobody's name. */
async function look(file: string): Promise<{ holder: Holder; touched: number } | undefined> {
  try {
    const { mtimeMs, size } = await fs.promises.stat(file);
    const text = size > MAX_TEXT ? '' : await fs.promises.readFile(file, 'utf8');
    return { holder: parseHolder(text), touched: mtimeMs };
  } catch (e) {
    if (isCode(e, 'ENOENT')) return undefined;
    throw e;
  }
}

export function parseHolder(text: string): Holder {
  let said: Partial<Holder> | null = null;
  try {
    said = JSON.parse(text) as Partial<Holder> | null;
  } catch {
    // it was cut off while it was written, or is another's
  }
  const { id, pid, host, uses } = said ?? {};
  return {
    id: typeof id === 'string' ? id : '',
    pid: typeof pid === 'number' && Number.isInteger(pid) && pid > 0 && pid < 2 ** 31 ? pid : 0,
    host: typeof host === 'string' ? host : '',
    uses: Array.isArray(uses) ? uses.filter((u) => typeof u === 'string') : [],
  };
}

function isAlive(pid: number): boolean {
  try {
    process.kill(pid, 0);
    return true;
  } catch (e) {
    return !isCode(e, 'ESRCH'); // another person's process is one too
  }
}

function isLive({ holder, touched }: { holder: Holder; touched: number }): boolean {
  if (Date.now() - touched > STALE) return false;
  return !holder.pid || holder.host !== os.hostname() || isAlive(holder.pid);
}

const sleep = (ms: number): Promise<void> => new Promise((done) => setTimeout(done, ms));

/** Two that find the same lock left behind may both take it away; whoever sees its own name in the
 *  file a moment later has it. */
async function isMine(file: string, id: string): Promise<boolean> {
  await sleep(50);
  return (await look(file))?.holder.id === id;
}

async function take(file: string, holder: Holder): Promise<boolean> {
  const there = await look(file);
  if (there && isLive(there)) return false;
  if (there) {
    const again = await look(file); // another may have taken it since
    if (again && (again.holder.id !== there.holder.id || isLive(again))) return false;
    await fs.promises.rm(file, { force: true });
  }
  try {
    await fs.promises.writeFile(file, JSON.stringify(holder), { flag: 'wx', mode: 0o644 });
  } catch (e) {
    if (isCode(e, 'EEXIST')) return false;
    throw e;
  }
  return !there || isMine(file, holder.id);
}

/** Wait for a lock and keep it until the returned function is called. */
export async function holdFile(
  folder: string, name: string, { signal, onWait, uses = [] }: LockOptions = {},
): Promise<Release> {
  const file = path.join(folder, name + LOCK);
  const holder: Holder = {
    id: crypto.randomUUID(), pid: process.pid, host: os.hostname(), uses,
  };
  while (!(await take(file, holder))) {
    signal?.throwIfAborted();
    onWait?.();
    await sleep(POLL);
  }
  const beat = setInterval(() => {
    const now = new Date();
    fs.promises.utimes(file, now, now).catch(() => {}); // taken away: the next look says so
  }, BEAT).unref();
  return async () => {
    clearInterval(beat);
    if ((await look(file))?.holder.id === holder.id) await fs.promises.rm(file, { force: true });
  };
}

/** The work, while nobody else does any under this name. */
export async function aloneWith<T>(
  folder: string, name: string, work: () => Promise<T>, options: LockOptions = {},
): Promise<T> {
  const release = await holdFile(folder, name, options);
  try {
    return await work();
  } finally {
    await release();
  }
}

/** What the locks that are held now are for. */
export async function usedNow(folder: string): Promise<Set<string>> {
  const used = new Set<string>();
  const names = await fs.promises.readdir(folder).catch((e: unknown) => {
    if (isCode(e, 'ENOENT')) return [];
    throw e;
  });
  for (const name of names.filter((n) => n.endsWith(LOCK))) {
    const there = await look(path.join(folder, name));
    if (there && isLive(there)) for (const use of there.holder.uses) used.add(use);
  }
  return used;
}
