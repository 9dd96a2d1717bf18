// package - the package as it lies on the disk: published, or in the repository that it is built
// in. Node only.

import * as fs from 'node:fs';
import * as path from 'node:path';
import { fileURLToPath } from 'node:url';

import { readText } from '../load/node_files.js';

const root = fileURLToPath(new URL('../../', import.meta.url));
/** Sources are not published: where they are, the page and the models are where they are made. */
const inRepository = fs.existsSync(path.join(root, 'src'));

export const packageVersion = (): string =>
  (JSON.parse(readText(path.join(root, 'package.json'))) as { version: string }).version;

/** The folder of the built page; in the repository it may be missing. */
export function pageFolder(): string | undefined {
  const folder = path.join(root, inRepository ? '../app/dist' : 'app');
  return fs.existsSync(folder) ? folder : undefined;
}
