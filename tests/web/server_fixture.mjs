// server_fixture - a server with a model that answers at once and as told, a store made for the
// test, and plain HTTP.
import crypto from 'node:crypto';
import fs from 'node:fs';
import http from 'node:http';

import { Core, loadWasm } from '../../web/engine/dist/core.js';
import { DiskStore } from '../../web/engine/dist/store/disk_store.js';
import { Catalog } from '../../web/engine/dist/server/catalog.js';
import { Files } from '../../web/engine/dist/server/files.js';
import { Host } from '../../web/engine/dist/server/host.js';
import { Server } from '../../web/engine/dist/server/server.js';

/** Of this process alone: tests run side by side. */
export const temp = `build/tmp/server-${process.pid}`;
process.on('exit', () => fs.rmSync(temp, { recursive: true, force: true }));
fs.mkdirSync(temp, { recursive: true });

/** A store with these models: {name: [weights, config]}. Says each model's digest. */
export function makeStore(root, models) {
  const digests = {};
  fs.mkdirSync(`${root}/blobs`, { recursive: true });
  const blob = (mediaType, data) => {
    const hex = crypto.createHash('sha256').update(data).digest('hex');
    fs.writeFileSync(`${root}/blobs/sha256-${hex}`, data);
    return { mediaType, digest: `sha256:${hex}`, size: data.length };
  };
  for (const [name, [weights, config, params]] of Object.entries(models)) {
    const [model, tag] = name.split(':');
    const place = `${root}/manifests/registry.ollama.ai/library/${model}`;
    fs.mkdirSync(place, { recursive: true });
    const layers = [blob('application/vnd.ollama.image.model', weights)];
    if (params)
      layers.push(blob('application/vnd.ollama.image.params', Buffer.from(JSON.stringify(params))));
    const manifest = {
      schemaVersion: 2,
      mediaType: 'application/vnd.docker.distribution.manifest.v2+json',
      config: blob(
        'application/vnd.docker.container.image.v1+json', Buffer.from(JSON.stringify(config)),
      ),
      layers,
    };
    fs.writeFileSync(`${place}/${tag}`, JSON.stringify(manifest));
    digests[name] = layers[0].digest.slice(7);
  }
  return digests;
}

const chunk = (delta, more = {}) => ({
  id: 'x',
  object: 'chat.completion.chunk',
  created: 1,
  choices: [{ index: 0, delta, finish_reason: null }],
  ...more,
});
const sleep = (ms) => new Promise((r) => setTimeout(r, ms));

/** Until it is so; whoever asks next finds out if it never was. */
export async function until(isSo) {
  for (const end = performance.now() + 20_000; !isSo() && performance.now() < end;) await sleep(5);
}

/** Makes the model below wait before each word, and say all of it so many times. */
export const told = (wishes) => ({
  adapters: Object.entries(wishes).map(([name, scale]) => ({ name, scale })),
});

/** A model that says the words of the last message again; `log` tells what happened to it. */
export function echo(log) {
  return async ({ entry, context, signal }) => {
    log.push(`load ${entry.name} ${context}`);
    signal.throwIfAborted();
    return {
      device: { backend: 'cpu', name: 'echo' }, context: context || 1024, bytes: 1000,
      async answer(_kind, request) {
        return {
          object: 'chat.completion',
          choices: [{
            index: 0,
            message: { role: 'assistant', content: request.messages.at(-1).content },
            finish_reason: 'stop',
          }],
        };
      },
      async *stream(_kind, request, stop) {
        const text = request.messages?.at(-1).content ?? request.prompt;
        const { pause = 0, times = 1 } =
          Object.fromEntries((request.adapters ?? []).map(({ name, scale }) => [name, scale]));
        log.push(`begin ${text.slice(0, 20)}`);
        try {
          for (let i = 0; i < times; i++)
            for (const word of text.split(/(?<= )/)) {
              stop.throwIfAborted();
              if (+pause) await sleep(+pause);
              yield chunk({ content: word });
            }
          yield {
            ...chunk({}),
            choices: [{ index: 0, delta: {}, finish_reason: 'stop' }],
            usage: { prompt_tokens: 3, completion_tokens: 4 },
            timings: { prompt_ms: 1, predicted_ms: 2 },
          };
        } finally {
          log.push(`end ${text.slice(0, 20)}`);
        }
      },
      close: async () => void log.push(`close ${entry.name}`),
    };
  };
}

const core = await Core.load(await loadWasm());

/** A server on a free port, and what happened in it. */
export async function startServer({
  root, app, limits = {}, keepMs = Infinity, load, files = { tiny: 'models/tiny.q8_0.gguf' },
  answerMs = 60_000, slots, listen = ['127.0.0.1'], ...rest
} = {}) {
  const log = [], said = [];
  const catalog = await Catalog.open(core, {
    store: root === undefined ? undefined : DiskStore.open(core, root), files,
  });
  const host = new Host(catalog, {
    load: load ?? echo(log), queue: limits.queue ?? 128, answerMs, model: 'tiny', context: 0,
    keepMs, slots,
  });
  const server = new Server({
    catalog, host, files: app && new Files(app), version: '0', limits,
    say: (line) => said.push(line), ...rest,
  });
  const port = await server.listen(0, listen);
  return {
    server, host, catalog, port, log, said, url: `http://127.0.0.1:${port}`,
    close: () => server.close(),
  };
}

/** A request as it is, path and headers untouched. */
export function ask(port, path, { method = 'GET', headers = {}, body } = {}) {
  return new Promise((done, failed) => {
    const req = http.request({
      host: '127.0.0.1', port, path, method, headers, agent: false,
    }, (res) => {
      const parts = [];
      res.on('data', (p) => parts.push(p)).on('error', failed).on('end', () => {
        const bytes = Buffer.concat(parts);
        done({
          status: res.statusCode,
          headers: res.headers,
          bytes,
          text: String(bytes),
          get json() { return JSON.parse(String(bytes)); },
        });
      });
    });
    req.on('error', failed);
    req.end(body);
  });
}

export const post = (port, path, value, headers = {}) => ask(port, path, {
  method: 'POST',
  headers: { 'content-type': 'application/json', ...headers },
  body: JSON.stringify(value),
});
export { sleep };
