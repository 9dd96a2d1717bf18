// load_request - what a load, an estimate, a merge or a benchmark asks for, checked: an option that
// would change it is never ignored. What is unknown, of the wrong type or out of range is an error
// that names it. `null` counts as absent, as it does in requests.

import { profiles } from '../gpu/adapter.js';
import { BezelError, show as shown } from './errors.js';
import { hint } from './near.js';

type Check = (value: unknown) => string | undefined; // what it must be, where it is not
type Checks = Readonly<Record<string, Check>>;

const oneOf = (...words: readonly string[]): Check => (v) =>
  (words.includes(v as string) ? undefined : `one of ${words.map((w) => `'${w}'`).join(', ')}`);
const whole = (least: number, most: number): Check => (v) =>
  (Number.isInteger(v) && (v as number) >= least && (v as number) <= most
    ? undefined
    : `a whole number from ${least} to ${most}`);
const is = (type: 'function' | 'boolean', text: string): Check =>
  (v) => (typeof v === type ? undefined : text);
const has = (method: string, text: string): Check =>
  (v) => (typeof (v as Record<string, unknown>)[method] === 'function' ? undefined : text);
const bytes: Check = (v) =>
  (typeof v === 'number' && v > 0 ? undefined : 'a number of bytes above 0');

const MAX = 0xffffffff;

export const loadChecks = {
  onProgress: is('function', 'a function'),
  signal: has('throwIfAborted', 'an AbortSignal'),
  backend: oneOf('auto', 'gpu', 'cpu'),
  context: whole(1, MAX),
  contextBytes: bytes,
  tier: oneOf('matrix', 'subgroup', 'plain'),
  cache: oneOf('f32', 'f16'),
  profile: oneOf(...Object.keys(profiles)),
  selfTest: is('boolean', 'true or false'),
  memory: bytes,
  sessions: whole(1, MAX),
  shared: whole(1, MAX),
  adapters: (v) => (Array.isArray(v) ? undefined : 'a list such as [{ source, scale: 1 }]'),
  store: has('resolve', 'a store: an object that resolves names'),
  worker: (v) =>
    (v === false || typeof (v as Partial<Worker>).postMessage === 'function'
      ? undefined
      : 'a Worker or false'),
} satisfies Checks;

const pick = (...names: readonly (keyof typeof loadChecks)[]): Checks =>
  Object.fromEntries(names.map((name) => [name, loadChecks[name]]));

export const estimateChecks = pick(
  'backend', 'context', 'contextBytes', 'cache', 'tier', 'profile', 'memory', 'signal', 'store',
  'worker',
);

const isTarget: Check = (v) => {
  const { getWriter, createWritable } = v as Partial<WritableStream & FileSystemFileHandle>;
  const fits = typeof v === 'string' || typeof (getWriter ?? createWritable) === 'function';
  return fits ? undefined : 'a stream, the handle of a file or a path';
};

export const mergeChecks: Checks = {
  ...pick('onProgress', 'signal', 'store', 'worker'), to: isTarget,
};

export const benchChecks: Checks = {
  ...pick('onProgress', 'signal'),
  prompt: whole(0, MAX),
  predicted: whole(0, MAX),
  repetitions: whole(1, MAX),
  depth: whole(0, MAX),
  steps: whole(1, 1023),
  profile: is('boolean', 'true or false'),
};

const wrong = (message: string, param: string): never => {
  throw new BezelError(message, 'argument', undefined, param);
};

function show(value: unknown): string {
  if (typeof value === 'string') return `'${value.slice(0, 40)}'`;
  return typeof value === 'function' ? 'a function' : shown(value);
}

/** The options that are there; `call` is what the error calls the function. */
export function checkOptions<T extends object>(
  call: string, options: T, checks: Checks, needs: readonly string[] = [],
): T {
  if (typeof options !== 'object' || options === null || Array.isArray(options))
    return wrong(`the options of ${call} must be an object, not ${show(options)}`, 'options');
  const given: Record<string, unknown> = {};
  for (const [name, value] of Object.entries(options)) {
    if (value === undefined || value === null) continue;
    const check = Object.hasOwn(checks, name) ? checks[name] : undefined;
    if (!check)
      return wrong(`${call} has no option "${name}"${hint(name, Object.keys(checks))}`, name);
    const must = check(value);
    if (must !== undefined) wrong(`"${name}" of ${call} must be ${must}, not ${show(value)}`, name);
    given[name] = value;
  }
  for (const name of needs) if (!Object.hasOwn(given, name)) wrong(`${call} needs "${name}"`, name);
  return given as T;
}

const adapterChecks: Checks = {
  source: () => undefined,
  name: (v) => (typeof v === 'string' && v !== '' ? undefined : 'a text'),
  scale: (v) => (typeof v === 'number' && Number.isFinite(v) ? undefined : 'a number'),
  config: (v) =>
    (typeof v === 'string' || (typeof v === 'object' && !Array.isArray(v))
      ? undefined
      : "PEFT's configuration: its text, or the object"),
  signal: loadChecks.signal,
};

/** An adapter's own options. */
export function checkAdapter<T extends object>(adapter: T): T {
  if (typeof adapter !== 'object' || adapter === null || !('source' in adapter))
    wrong('an adapter must be an object such as { source, scale: 1 }', 'adapters');
  return checkOptions('an adapter', adapter, adapterChecks);
}
