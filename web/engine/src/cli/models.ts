// models - the commands for what is in the store: show, cp, rm; and ps, which asks a server.

import { inspect } from '../engine/cpu_engine.js';
import { BezelError, Core, loadWasm } from '../engine/wasm.js';
import { parameterLines, parameterRows } from '../pull/modelfile.js';
import { DiskWriter } from '../store/disk_writer.js';
import type { ModelTexts } from '../store/ollama_store.js';
import { DiskStore } from '../store/disk_store.js';
import { Misuse, OK, type Command, type Given } from './args.js';
import { locate } from './locate.js';
import { storeOption } from './model.js';
import { bytesText } from './progress.js';
import { printable } from './terminal.js';

const writerOf = async (given: Given): Promise<DiskWriter> => {
  const core = await Core.load(await loadWasm()), folder = given.text('--store');
  return DiskWriter.open(core, DiskStore.open(core, folder).tree.place); // one that is there
};

export const remove: Command = {
  name: 'rm',
  usage: 'NAME... [options]',
  about: 'Delete models of the Ollama store, and what no other model of it needs.',
  args: 64,
  needs: 1,
  options: [storeOption],
  async run(given) {
    const writer = await writerOf(given);
    for (const name of given.args) {
      await writer.remove(name);
      process.stdout.write(`deleted '${name}'\n`);
    }
    return OK;
  },
};

export const copy: Command = {
  name: 'cp',
  usage: 'NAME NEW [options]',
  about: 'Give a model of the Ollama store a second name. Its weights are there once.',
  args: 2,
  options: [storeOption],
  async run(given) {
    const [from = '', to = ''] = given.args;
    await (await writerOf(given)).copy(from, to);
    process.stdout.write(`copied '${from}' to '${to}'\n`);
    return OK;
  },
};

// ---- show ----

const texts = ['license', 'parameters', 'system', 'template'] as const;

interface Facts {
  architecture?: string;
  parameters?: number;
  file_type?: string;
  context?: number;
  shape?: { n_embd?: number };
}

type Rows = readonly (readonly [string, string])[];

const GAP = 4, HEAD = 2; // columns; lines of a long text

function table(title: string, rows: Rows): string {
  const wide = Math.max(0, ...rows.map(([key]) => [...key].length)) + GAP;
  const lines = rows.map(([key, value]) => `    ${key.padEnd(wide)}${value}\n`);
  return rows.length ? `  ${title}\n${lines.join('')}\n` : '';
}

function beginning(title: string, text: string | undefined): string {
  const lines = (text ?? '').split('\n').map((line) => line.trim()).filter(Boolean);
  const shown = lines.slice(0, HEAD).map((line) => `    ${line}\n`).join('');
  return lines.length ? `  ${title}\n${shown}${lines.length > HEAD ? '    ...\n' : ''}\n` : '';
}

function overview(facts: Facts, { config, params, system, license }: ModelTexts): string {
  const { model_type: type } = JSON.parse(config ?? '{}') as { model_type?: unknown };
  const rows = Object.entries({
    'architecture': facts.architecture,
    'parameters': typeof type === 'string' && type ? type : facts.parameters,
    'context length': facts.context,
    'embedding length': facts.shape?.n_embd,
    'quantization': facts.file_type,
  }).flatMap(([key, value]) => (value ? [[key, String(value)] as const] : []));
  return table('Model', rows) + table('Parameters', parameterRows(params))
    + beginning('System', system) + beginning('License', license);
}

export const show: Command = {
  name: 'show',
  usage: 'NAME|FILE [options]',
  about: 'What a model is: its size, parameters, system prompt and licence. More: bezel inspect.',
  args: 1,
  options: [
    { name: '--license', help: 'the licence alone, all of it', kind: 'flag' },
    { name: '--parameters', help: 'the parameters alone', kind: 'flag' },
    { name: '--system', help: 'the system prompt alone', kind: 'flag' },
    { name: '--template', help: 'the template alone, which Ollama may use', kind: 'flag' },
    storeOption,
  ],
  async run(given) {
    const wanted = texts.filter((name) => given.has(`--${name}`));
    if (wanted.length > 1) throw new Misuse('one text at a time');
    const core = await Core.load(await loadWasm()), [name = ''] = given.args;
    const { sources, store } = await locate(core, name, given.text('--store'));
    const found: ModelTexts = store?.manifest === undefined
      ? {}
      : await DiskStore.open(core, given.text('--store')).texts(store.manifest);
    const [one] = wanted;
    if (one !== undefined) {
      const text = one === 'parameters'
        ? parameterLines(found.params)
        : found[one];
      if (!text) throw new BezelError(`${name} has no ${one}`, 'not-found');
      process.stdout.write(printable(text.endsWith('\n') ? text : `${text}\n`));
      return OK;
    }
    const facts = JSON.parse(inspect(core, sources, {
      json: true, name, ...(store && { store }),
    })) as Facts;
    process.stdout.write(printable(overview(facts, found)));
    return OK;
  },
};

// ---- ps ----

interface Running {
  name: string;
  size: number;
  size_vram: number;
  context_length?: number;
  expires_at: string;
}

/** "in 4 min", "never" */
function untilText(at: string): string {
  const minutes = (Date.parse(at) - Date.now()) / 60_000;
  if (minutes > 60 * 24 * 365) return 'never';
  return minutes >= 1 ? `in ${Math.round(minutes)} min` : 'within a minute';
}

export const running: Command = {
  name: 'ps',
  usage: '[options]',
  about: 'Which model a running server (bezel serve, or Ollama) has loaded.',
  args: 0,
  options: [
    {
      name: '--server', arg: 'URL', kind: 'text',
      help: 'its address; default http://localhost:4114',
    },
    { name: '--json', help: 'machine-readable', kind: 'flag' },
  ],
  async run(given) {
    const server = (given.text('--server') ?? 'http://localhost:4114').replace(/\/+$/, '');
    const asked = await fetch(`${server}/api/ps`, { signal: AbortSignal.timeout(10_000) }).catch(
      (e: unknown) => {
        throw new BezelError(`no server answers at ${server}; bezel serve starts one`, 'io', e);
      },
    );
    if (!asked.ok)
      throw new BezelError(`${server} says ${asked.status} ${asked.statusText}`, 'io');
    const { models = [] } = (await asked.json()) as { models?: Running[] };
    if (given.has('--json')) {
      process.stdout.write(`${JSON.stringify(models)}\n`);
      return OK;
    }
    const rows = models.map((m) => [
      m.name, bytesText(m.size), m.size_vram > 0 ? 'GPU' : 'CPU', String(m.context_length ?? ''),
      untilText(m.expires_at),
    ]);
    const all = [['NAME', 'SIZE', 'ON', 'CONTEXT', 'UNTIL'], ...rows];
    const wide = [0, 1, 2, 3].map((i) => Math.max(...all.map((row) => (row[i] ?? '').length)) + 3);
    for (const row of all)
      process.stdout.write(printable(
        `${row.map((cell, i) => cell.padEnd(wide[i] ?? 0)).join('').trimEnd()}\n`,
      ));
    return OK;
  },
};
