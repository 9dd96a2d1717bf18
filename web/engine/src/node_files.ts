// node_files - Node's and Deno's file system, asked for in a way that leaves bundlers for browsers alone.

import { BezelError } from './errors.js';

type FileSystem = typeof import('node:fs');

export const isNode = (): boolean => typeof process !== 'undefined' && typeof process.versions?.node === 'string';

export function nodeFiles(): FileSystem {
  const fs = isNode() ? (process.getBuiltinModule('node:fs') as FileSystem | undefined) : undefined;
  if (!fs) throw new BezelError('files by their paths need Node', 'unsupported');
  return fs;
}
