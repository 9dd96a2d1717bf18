// package - the package as it lies on the disk. Node only.

import { fileURLToPath } from 'node:url';

import { readText } from '../node_files.js';

export const packageRoot = fileURLToPath(new URL('../../', import.meta.url));

export const packageVersion = (): string => (JSON.parse(readText(`${packageRoot}package.json`)) as { version: string }).version;
