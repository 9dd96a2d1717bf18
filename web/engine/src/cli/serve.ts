// serve - the command that starts the server: finds the page, the models and the device, and says
// where it listens.

import { spawn } from 'node:child_process';
import * as fs from 'node:fs';
import * as path from 'node:path';

import type { AdapterSource } from '../api/engine_source.js';
import { chooseBackend } from '../engine/open_model.js';
import { useProxies } from '../pull/proxy.js';
import { hubToken } from '../pull/token.js';
import { Catalog } from '../server/catalog.js';
import type { ChangeOptions } from '../server/changes.js';
import { Files } from '../server/files.js';
import { Guard } from '../server/guard.js';
import { Host } from '../server/host.js';
import { defaultLimits } from '../server/http.js';
import { Server } from '../server/server.js';
import { loadInThread, weighInThread } from '../server/thread.js';
import { fileSource } from '../load/source.js';
import { DiskStore } from '../store/disk_store.js';
import { DiskWriter } from '../store/disk_writer.js';
import { shippedModels } from '../store/shipped.js';
import { BezelError, Core, loadWasm } from '../engine/wasm.js';
import { Misuse, type Command, type Given } from './args.js';
import { adapterParts, storeOption } from './model.js';
import { stopCode, stopped } from './interrupt.js';
import { packageVersion, pageFolder } from './package.js';
import { siteOptions } from './pull.js';

const PORT = 4114, KEEP_MS = 5 * 60_000;
// side by side: of all, of one address and key, of one program there
const ANSWERS = 20, HOUSEHOLD = 18, CLIENT = 16;
const LATEST = 4000; // milliseconds from a signal to the end
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
function offeredFiles(
  model: string | undefined,
): { files: Record<string, string>; model: string | undefined } {
  const files = shippedModels();
  const isFile =
    model !== undefined && (fs.statSync(model, { throwIfNoEntry: false })?.isFile() ?? false);
  if (model === undefined || !(isFile || /^[/.]|\.gguf$/.test(model))) return { files, model };
  if (!isFile) throw new BezelError(`${model}: no such file`, 'not-found');
  const name =
    path.basename(model, '.gguf').replace(/[^\w.-]/g, '-').replace(/^[^\w]+/, '') || 'model';
  const same =
    Object.entries(files).find(([, file]) => fs.realpathSync(file) === fs.realpathSync(model));
  return { files: same ? files : { ...files, [name]: model }, model: same ? same[0] : name };
}

type OfferedAdapter = AdapterSource & { source: string; name: string };

/** The adapters of --model, by the name of their file. */
async function offeredAdapters(given: Given): Promise<OfferedAdapter[]> {
  const specs = given.texts('--adapter'), found: OfferedAdapter[] = [];
  if (specs.length && !given.has('--model'))
    throw new Misuse('--adapter needs --model, whose adapter it is');
  for (const spec of specs) {
    const { path: place, config, scale } = adapterParts(spec);
    const isFolder = path.basename(place) === 'adapter_model.safetensors';
    (await fileSource(place)).close(); // what is not there is told now
    const stem = path.basename(
      isFolder ? path.dirname(path.resolve(place)) : place,
    ).replace(/\.(gguf|safetensors)$/i, '');
    let name = stem;
    for (let i = 2; found.some((a) => a.name === name); i++) name = `${stem}-${i}`;
    found.push({
      source: path.resolve(place), name, scale, ...(config !== undefined && { config }),
    });
  }
  return found;
}

/** Origins that could never be one are wrong usage. */
function allowedOrigins(given: Given): readonly string[] {
  const origins = given.texts('--allow-origin');
  try {
    new Guard({ origins });
    return origins;
  } catch (e) {
    throw e instanceof BezelError ? new Misuse(`--allow-origin: ${e.message}`) : e;
  }
}

interface Device {
  readonly backend: 'gpu' | 'cpu';
  /** For people. */
  readonly name: string;
  /** Why there is no GPU, where nobody asked for the CPU. */
  readonly reason: string | null;
}

/** The GPU where there is one. Nobody is moved to the CPU without being told. */
async function chooseDevice(wish: string): Promise<Device> {
  if (wish !== 'auto' && wish !== 'gpu' && wish !== 'cpu')
    throw new Misuse(`--backend is auto, gpu or cpu, not "${wish}"`);
  const choice = await chooseBackend(wish, {});
  if (choice.backend === 'cpu')
    return { backend: 'cpu', name: 'CPU (WebAssembly)', reason: choice.fallback ?? null };
  try {
    const { device, name } = await choice.device();
    device.destroy();
    return { backend: 'gpu', name, reason: null };
  } catch (e) {
    throw new BezelError(
      `${e instanceof Error ? e.message : String(e)}; --backend cpu computes without one`,
      'device',
      e,
    );
  }
}

/** Where to listen. Beyond this machine only with the names by which it will be called. */
function addresses(given: Given): { listen: readonly string[]; hosts: readonly string[] } {
  const host = given.text('--host'), hosts = given.texts('--allow-host');
  if (host === undefined || host === 'localhost') return { listen: loopback, hosts };
  if (loopback.includes(host)) return { listen: [host], hosts };
  if (!hosts.length)
    throw new Misuse(
      `--host ${host} opens the server to other machines: say by which name they call it `
        + 'with --allow-host NAME',
    );
  say(
    `Warning: everyone who reaches ${host} can use this server and read its models; `
      + 'there is no password.',
  );
  return { listen: [host], hosts };
}

/** In the person's browser, where there is a desktop. */
function openPage(url: string): void {
  const desktop =
    process.platform !== 'linux' || process.env.DISPLAY || process.env.WAYLAND_DISPLAY;
  if (!desktop || process.env.CI) return;
  const [program, ...args] = process.platform === 'darwin'
    ? ['open', url]
    : process.platform === 'win32' ? ['cmd', '/c', 'start', '', url] : ['xdg-open', url];
  spawn(program as string, args, { stdio: 'ignore', detached: true })
    .on('error', () => say(`Please open ${url}`))
    .unref();
}

/** How clients pull and delete models. */
function changesOf(core: Core, given: Given): ChangeOptions {
  const proxy = useProxies();
  if (proxy) say(proxy);
  return {
    core, say, registry: given.text('--registry'),
    hub: given.text('--hub') ?? process.env.HF_ENDPOINT, insecure: given.has('--insecure'),
    token: () => hubToken(), agent: `bezel/${packageVersion()}`,
    writer: () => DiskWriter.open(core, given.text('--store')),
  };
}

export const serve: Command = {
  name: 'serve',
  usage: '[options]',
  about:
    "The page, this machine's models for it, and OpenAI's and Ollama's protocols, on loopback.",
  args: 0,
  options: [
    { name: '--port', arg: 'N', help: `default ${PORT}; 0: any that is free`, kind: 'whole' },
    {
      name: '--host',
      arg: 'ADDRESS',
      help: 'listen elsewhere than on this machine alone',
      kind: 'text',
    },
    {
      name: '--allow-host',
      arg: 'NAME',
      help: 'a name by which the server may be called; may be repeated',
      kind: 'texts',
    },
    {
      name: '--allow-origin',
      arg: 'ORIGIN',
      help:
        'pages that may use the server: https://example.org, http://localhost:*, '
          + 'vscode-webview://*; may be repeated',
      kind: 'texts',
    },
    { name: '--model', arg: 'NAME|FILE', help: 'load this one now, and keep it', kind: 'text' },
    {
      name: '--adapter',
      arg: 'PATH[:S]',
      help: 'LoRA adapter of that model with scale S; may be repeated',
      kind: 'texts',
    },
    {
      name: '--backend',
      arg: 'NAME',
      help: 'auto (default: the GPU where there is one, else the CPU), gpu or cpu',
      kind: 'text',
    },
    {
      name: '--context', also: ['--ctx'], arg: 'N', help: 'tokens of context; default 4096',
      kind: 'whole',
    },
    storeOption,
    { name: '--no-pull', help: 'clients cannot pull, make or delete models', kind: 'flag' },
    ...siteOptions,
    { name: '--open', help: 'open the page', kind: 'flag' },
  ],
  async run(given) {
    const { listen, hosts } = addresses(given), origins = allowedOrigins(given);
    const wanted = given.number('--port') ?? PORT;
    if (wanted > 65535) throw new Misuse('--port is 0 to 65535');
    const core = await Core.load(await loadWasm());
    const findStore = (): DiskStore | undefined => openStore(core, given.text('--store'));
    const store = findStore();
    const { files, model } = offeredFiles(given.text('--model'));
    const adapters = await offeredAdapters(given);
    const places = Object.fromEntries(adapters.map(({ name, source }) => [name, source]));
    const catalog = await Catalog.open(core, { store, findStore, files, adapters: places, say });
    const kept = model === undefined ? undefined : await catalog.find(model);
    if (model !== undefined && !kept)
      throw new BezelError(`there is no model "${model}" on this machine`, 'not-found');
    const device = await chooseDevice(given.text('--backend') ?? 'auto');
    // the store may come later: a first pull makes it
    const threads = () =>
      ({ backend: device.backend, store: catalog.store, answers: ANSWERS, say });
    const host = new Host(catalog, {
      load: (wish) => loadInThread(
        { ...threads(), adapters: wish.entry.name === kept?.name ? adapters : [] }, wish,
      ),
      weigh: (wish, used) => weighInThread(threads(), wish, used),
      queue: defaultLimits.queue,
      slots: { all: ANSWERS, household: HOUSEHOLD, client: CLIENT },
      answerMs: defaultLimits.answerMs,
      model: model ?? 'tiny',
      context: given.number('--context') ?? 0,
      keepMs: model === undefined ? KEEP_MS : Infinity,
      say,
    });
    const app = pageFolder();
    const server = new Server({
      catalog, host, files: app === undefined ? undefined : new Files(app),
      version: packageVersion(), hosts, origins, health: () => ({ device }), say,
      ...(!given.has('--no-pull') && { changes: changesOf(core, given) }),
    });
    const stop = stopped(); // heard from here on, also while the rest starts
    const port = await listenOn(server, wanted, listen);
    const url = `http://localhost:${port}/`;
    // a store on a drive that is gone says nothing
    await Promise.race([announce(url, catalog, device, app !== undefined), stop]);
    if (given.has('--open') && app !== undefined) openPage(url);
    const over = new AbortController();
    if (model !== undefined)
      host
        .use({ client: '', signal: over.signal, model }, async () => {})
        .catch((e: Error) => over.signal.aborted || say(`${model}: ${e.message}`));
    await stop;
    over.abort();
    // Whatever does not end (a device that hangs in its driver, say) must not keep the process;
    // until then this timer does, since threads do not.
    const latest = setTimeout(() => process.kill(process.pid, 'SIGKILL'), LATEST);
    await server.close();
    clearTimeout(latest);
    const code = stopCode();
    setTimeout(() => process.exit(code), 100).unref(); // a file may still be read for its digest
    return code;
  },
};

async function listenOn(server: Server, port: number, listen: readonly string[]): Promise<number> {
  try {
    return await server.listen(port, listen);
  } catch (e) {
    const code = (e as NodeJS.ErrnoException).code;
    await server.close();
    if (code === 'EADDRINUSE')
      throw new BezelError(`port ${port} is taken; --port N chooses another`, 'io', e);
    throw e;
  }
}

async function announce(
  url: string, catalog: Catalog, device: Device, page: boolean,
): Promise<void> {
  const names = (await catalog.list()).map((m) => m.name);
  const more = names.length > 6 ? ` and ${names.length - 6} more` : '';
  const lines = [
    page
      ? `Bezel is at ${url}`
      : `Bezel is at ${url} (without its page, which has not been built: make app)`,
    `  models    ${names.slice(0, 6).join(', ')}${more}`
      + (catalog.store ? '' : ' (there is no Ollama store on this machine)'),
    device.backend === 'gpu'
      ? `  computes  on the GPU: ${device.name}`
      : '  computes  on the '
        + `CPU${device.reason === null ? '' : `, which is slow: ${device.reason}`}`,
    `  protocols OpenAI's at ${url}v1, Ollama's at ${url}api`,
    'Ctrl-C ends it.',
  ];
  process.stdout.write(`${lines.join('\n')}\n`);
}
