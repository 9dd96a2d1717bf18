// node_files - Node's and Deno's file system, asked for in a way that leaves bundlers for browsers
// alone.

import { BezelError } from '../api/errors.js';

type FileSystem = typeof import('node:fs');

export const isNode = (): boolean =>
  typeof process !== 'undefined' && typeof process.versions?.node === 'string';

export function nodeFiles(): FileSystem {
  const fs = isNode() ? (process.getBuiltinModule('node:fs') as FileSystem | undefined) : undefined;
  if (!fs) throw new BezelError('files by their paths need Node', 'unsupported');
  return fs;
}

/** Why a file cannot be read, in the native tool's words. */
export function readError(path: string, e: unknown): BezelError {
  const { code, message } = e as NodeJS.ErrnoException;
  if (code === 'ENOENT' || code === 'ENOTDIR')
    return new BezelError(`${path}: no such file`, 'not-found', e);
  if (code === 'EACCES' || code === 'EPERM')
    return new BezelError(`${path}: no permission to read this file`, 'io', e);
  if (code === 'EISDIR') return new BezelError(`${path}: is a directory, not a file`, 'io', e);
  return new BezelError(`${path}: cannot open: ${message}`, 'io', e);
}

/** A text file as a whole. */
export function readText(path: string): string {
  try {
    return nodeFiles().readFileSync(path, 'utf8');
  } catch (e) {
    throw readError(path, e);
  }
}
