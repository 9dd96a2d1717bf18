// serve - the command that starts the server: finds the page, the models and the device, and says where it listens.

import { spawn } from 'node:child_process';
import * as fs from 'node:fs';
import * as path from 'node:path';

import { openDevice } from '../adapter.js';
import { Catalog } from '../server/catalog.js';
import { Files } from '../server/files.js';
import { Host } from '../server/host.js';
import { defaultLimits } from '../server/http.js';
import { Server } from '../server/server.js';
import { loadInThread } from '../server/thread.js';
import { DiskStore } from '../store/disk_store.js';
import { BezelError, Core, loadWasm } from '../wasm.js';
import { Misuse, OK, type Command, type Given } from './args.js';
import { storeOption } from './model.js';
import { packageVersion, pageFolder, shippedModels } from './package.js';

const PORT = 4114, KEEP_MS = 5 * 60_000;
const loopback = ['127.0.0.1', '::1'];

const say = (line: string): void => void process.stderr.write(`${line}\n`);

function openStore(core: Core, wish: string | undefined): DiskStore | undefined {
  try {
    return DiskStore.open(core, wish);
  } catch (e) {
    if (wish === undefined && e instanceof BezelError && e.kind === 'not-found') return undefined;
    throw e;
  }
}

/** GGUF files by name: the small models that ship, and what --model named. */
function offeredFiles(model: string | undefined): { files: Record<string, string>; model: string | undefined } {
  const files = shippedModels();
  const isFile = model !== undefined && (fs.statSync(model, { throwIfNoEntry: false })?.isFile() ?? false);
  if (model === undefined || !(isFile || /^[/.]|\.gguf$/.test(model))) return { files, model };
  if (!isFile) throw new BezelError(`${model}: no such file`, 'not-found');
  const name = path.basename(model, '.gguf').replace(/[^\w.-]/g, '-').replace(/^[^\w]+/, '') || 'model';
  const same = Object.entries(files).find(([, file]) => fs.realpathSync(file) === fs.realpathSync(model));
  return { files: same ? files : { ...files, [name]: model }, model: same ? same[0] : name };
}

interface Device {
  readonly backend: 'gpu' | 'cpu';
  /** For people. */
  readonly name: string;
  /** Why there is no GPU, where nobody asked for the CPU. */
  readonly reason: string | null;
}

/** The GPU where there is one. Nobody is moved to the CPU without being told. */
async function chooseDevice(wish: string | undefined): Promise<Device> {
  const cpu = { backend: 'cpu', name: 'CPU (WebAssembly)' } as const;
  if (wish !== undefined && wish !== 'gpu' && wish !== 'cpu') throw new Misuse(`--backend is gpu or cpu, not "${wish}"`);
  if (wish === 'cpu') return { ...cpu, reason: null };
  try {
    const { device, name } = await openDevice();
    device.destroy();
    return { backend: 'gpu', name, reason: null };
  } catch (e) {
    const reason = e instanceof Error ? e.message : String(e);
    if (wish === 'gpu') throw new BezelError(`${reason}; --backend cpu computes without one`, 'device', e);
    return { ...cpu, reason };
  }
}

/** Where to listen. Beyond this machine only with the names by which it will be called. */
function addresses(given: Given): { listen: readonly string[]; hosts: readonly string[] } {
  const host = given.text('--host'), hosts = given.texts('--allow-host');
  if (host === undefined || host === 'localhost') return { listen: loopback, hosts };
  if (loopback.includes(host)) return { listen: [host], hosts };
  if (!hosts.length) throw new Misuse(`--host ${host} opens the server to other machines: say by which name they call it with --allow-host NAME`);
  say(`Warning: everyone who reaches ${host} can use this server and read its models; there is no password.`);
  return { listen: [host], hosts };
}

/** In the person's browser, where there is a desktop. */
function openPage(url: string): void {
  const desktop = process.platform !== 'linux' || process.env.DISPLAY || process.env.WAYLAND_DISPLAY;
  if (!desktop || process.env.CI) return;
  const [program, ...args] = process.platform === 'darwin' ? ['open', url] : process.platform === 'win32' ? ['cmd', '/c', 'start', '', url] : ['xdg-open', url];
  spawn(program as string, args, { stdio: 'ignore', detached: true }).on('error', () => say(`Please open ${url}`)).unref();
}

/** Until Ctrl-C; a second one does not wait. */
function interrupted(): Promise<void> {
  return new Promise((done) => {
    const first = (): void => {
      process.once('SIGINT', () => process.exit(130));
      done();
    };
    process.once('SIGINT', first);
    process.once('SIGTERM', first);
  });
}

export const serve: Command = {
  name: 'serve',
  usage: '[options]',
  about: "The page, this machine's models for it, and OpenAI's and Ollama's protocols, on loopback.",
  args: 0,
  options: [
    { name: '--port', arg: 'N', help: `default ${PORT}; 0: any that is free`, kind: 'whole' },
    { name: '--host', arg: 'ADDRESS', help: 'listen elsewhere than on this machine alone', kind: 'text' },
    { name: '--allow-host', arg: 'NAME', help: 'a name by which the server may be called; may be repeated', kind: 'texts' },
    { name: '--allow-origin', arg: 'ORIGIN', help: 'a site whose pages may use the server; may be repeated', kind: 'texts' },
    { name: '--model', arg: 'NAME|FILE', help: 'load this one now, and keep it', kind: 'text' },
    { name: '--backend', arg: 'NAME', help: 'gpu or cpu; default the GPU where there is one', kind: 'text' },
    { name: '--context', also: ['--ctx'], arg: 'N', help: 'tokens of context; default 4096', kind: 'whole' },
    storeOption,
    { name: '--open', help: 'open the page', kind: 'flag' },
  ],
  async run(given) {
    const { listen, hosts } = addresses(given), wanted = given.number('--port') ?? PORT;
    if (wanted > 65535) throw new Misuse('--port is 0 to 65535');
    const core = await Core.load(await loadWasm());
    const store = openStore(core, given.text('--store'));
    const { files, model } = offeredFiles(given.text('--model'));
    const catalog = await Catalog.open(core, { store, files, say });
    if (model !== undefined && !(await catalog.find(model))) throw new BezelError(`there is no model "${model}" on this machine`, 'not-found');
    const device = await chooseDevice(given.text('--backend'));
    const host = new Host(catalog, {
      load: (wish) => loadInThread({ backend: device.backend, store }, wish),
      queue: defaultLimits.queue,
      answerMs: defaultLimits.answerMs,
      model: model ?? 'tiny',
      context: given.number('--context') ?? 0,
      keepMs: model === undefined ? KEEP_MS : Infinity,
      say,
    });
    const app = pageFolder();
    const server = new Server({ catalog, host, files: app === undefined ? undefined : new Files(app), version: packageVersion(), hosts, origins: given.texts('--allow-origin'), health: () => ({ device }), say });
    const port = await listenOn(server, wanted, listen);
    const url = `http://localhost:${port}/`;
    await announce(url, catalog, device, app !== undefined);
    if (given.has('--open') && app !== undefined) openPage(url);
    const over = new AbortController();
    if (model !== undefined) host.use({ client: '', signal: over.signal, model }, async () => {}).catch((e: Error) => say(`${model}: ${e.message}`));
    await interrupted();
    over.abort();
    await server.close();
    return OK;
  },
};

async function listenOn(server: Server, port: number, listen: readonly string[]): Promise<number> {
  try {
    return await server.listen(port, listen);
  } catch (e) {
    const code = (e as NodeJS.ErrnoException).code;
    await server.close();
    if (code === 'EADDRINUSE') throw new BezelError(`port ${port} is taken; --port N chooses another`, 'io', e);
    throw e;
  }
}

async function announce(url: string, catalog: Catalog, device: Device, page: boolean): Promise<void> {
  const names = (await catalog.list()).map((m) => m.name);
  const more = names.length > 6 ? ` and ${names.length - 6} more` : '';
  const lines = [
    page ? `Bezel is at ${url}` : `Bezel is at ${url} (without its page, which has not been built: make app)`,
    `  models    ${names.slice(0, 6).join(', ')}${more}${catalog.store ? '' : ' (there is no Ollama store on this machine)'}`,
    device.backend === 'gpu' ? `  computes  on the GPU: ${device.name}` : `  computes  on the CPU${device.reason === null ? '' : `, which is slow: ${device.reason}`}`,
    `  protocols OpenAI's at ${url}v1, Ollama's at ${url}api`,
    'Ctrl-C ends it.',
  ];
  process.stdout.write(`${lines.join('\n')}\n`);
}
