// kernel_names - the text of a kernel with the names of kernels/: the module carries short ones.
import { readFileSync } from 'node:fs';

const { names, suffixes } =
  JSON.parse(readFileSync(new URL('../../build/gen/names.json', import.meta.url), 'utf8'));
const long = new Map(Object.entries(names).map(([name, short]) => [short, name]));
const word = new RegExp(`(?<!\\w)([A-Za-z_]\\w*?)(_(?:${suffixes.join('|')}))?(?!\\w)`, 'g');

/** What tools/wgsl_names.py made short is long again. */
export const withNames = (source) =>
  source.replace(word, (_, name, suffix = '') => `${long.get(name) ?? name}${suffix}`);
