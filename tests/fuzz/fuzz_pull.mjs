// fuzz_pull - any bytes as what a registry, the hub, a client or a disk says about models to pull
// or to make: read, or refused with one sentence. Nothing in them is a path, another site, or a
// size that is none; nothing takes seconds.
//
//   node tests/fuzz/fuzz_pull.mjs SECONDS [FOLDER]    a finding is left in FOLDER
//   node tests/fuzz/fuzz_pull.mjs FILE                that file alone, named as its seed is
import fs from 'node:fs';
import path from 'node:path';
import { ok } from 'node:assert';

import { Core, loadWasm } from '../../web/engine/dist/core.js';
import {
  chooseModel, chooseProjector, fileUrl, nextPage, parseTree,
} from '../../web/engine/dist/pull/hub.js';
import { modelfileText, parseModelfile } from '../../web/engine/dist/pull/modelfile.js';
import { parseJournal } from '../../web/engine/dist/pull/part_blob.js';
import { readReference } from '../../web/engine/dist/pull/reference.js';
import { Site, siteUrl } from '../../web/engine/dist/pull/site.js';
import { readWish } from '../../web/engine/dist/server/create.js';
import { parseHolder } from '../../web/engine/dist/store/file_locks.js';
import { layersOf, manifestText } from '../../web/engine/dist/store/manifest.js';
import { askedPause } from '../../web/engine/dist/store/net.js';
import { mutate, mutateText, pick } from './mutate_json.mjs';

const core = await Core.load(await loadWasm());
const hub = new Site({ base: 'https://hub.example/sub', agent: 'x' });
const repo = { id: 'org/repo', revision: 'main' };
const isSize = (n) => Number.isSafeInteger(n) && n >= 0;
const isPart = (part) => /^\w[\w.:-]*$/.test(part) && part.length <= 350;

const checks = {
  manifest(text) {
    const layers = layersOf(text);
    ok(layers.length <= 1000);
    for (const { digest, size } of layers) ok(/^[0-9a-f]{64}$/.test(digest) && isSize(size));
    ok(layersOf(manifestText(undefined, layers)).length === layers.length);
  },
  tree(text) {
    const files = parseTree(text);
    for (const { path: file, size, sha256 } of files) {
      ok(isSize(size) && (sha256 === undefined || /^[0-9a-f]{64}$/.test(sha256)));
      const start = '/sub/org/repo/resolve/main/', { origin, pathname } =
        new URL(fileUrl(hub, repo, file));
      ok(origin === 'https://hub.example' && pathname.startsWith(start), pathname);
      ok(pathname.slice(start.length).split('/').length === file.split('/').length, pathname);
    }
    for (const wish of [undefined, 'Q4_K_M', 'bf16', 'm-Q4_K_M.gguf'])
      refusable(() => {
        const model = chooseModel('org/repo', files, wish);
        ok(model.files.length >= 1 && model.files.every((f) => files.includes(f)));
        const projector = chooseProjector(files, model);
        ok(projector === undefined || files.includes(projector));
      });
  },
  journal(text) {
    for (const size of [6772384, 1, 0]) {
      const spans = parseJournal(text, size);
      if (!spans) continue;
      const gaps = spans.gaps(size, 1 << 20);
      ok(spans.bytes + gaps.reduce((n, [a, b]) => n + b - a, 0) === size);
      for (const [from, to] of gaps) spans.add(from, to);
      ok(spans.front === size && spans.toJSON().length <= 1);
    }
  },
  lock(text) {
    const { id, pid, uses } = parseHolder(text);
    ok(typeof id === 'string' && isSize(pid) && uses.every((u) => typeof u === 'string'));
  },
  wish(text) {
    let body;
    try {
      body = JSON.parse(text);
    } catch {
      return; // the server says so before
    }
    if (typeof body !== 'object' || body === null || Array.isArray(body)) return;
    const { from, files, adapters, messages } = readWish(body, 'x');
    ok(from === undefined || !/^[./~\\]/.test(from));
    for (const digest of Object.values({ ...files, ...adapters }))
      ok(/^[0-9a-f]{64}$/.test(digest));
    ok(messages.every((m) => typeof m.content === 'string'));
  },
  modelfile(text) {
    const { from, system, parameters, messages } = parseModelfile(text);
    ok(from !== '');
    const again = modelfileText('x', {
      params: JSON.stringify(parameters), messages: JSON.stringify(messages),
      ...(system !== undefined && { system }),
    });
    ok(again.startsWith('FROM x\n'));
  },
  name(text) {
    const found = readReference(core, text, { only: true });
    const { host, namespace, model, tag } = found.name;
    ok([host, namespace, model, tag].every(isPart), JSON.stringify(found.name));
    ok(['https://registry.ollama.ai', 'https://huggingface.co'].includes(found.base), found.base);
    if (found.kind === 'hub') ok(/^[^/]+\/[^/]+$/.test(found.repo.id), found.repo.id);
    siteUrl(readReference(core, text, { insecure: true }).base, true);
  },
  link(text) {
    const line = text.replace(/[^\x20-\x7e]/g, '');
    const next = nextPage(line);
    ok(next === undefined || !/[<>]/.test(next));
    const pause = askedPause(new Headers({ 'retry-after': line, ratelimit: line }), 0);
    ok(pause >= 0 && !Number.isNaN(pause));
  },
};

/** Was it read? A refusal is one sentence. */
function refusable(work) {
  try {
    work();
    return true;
  } catch (e) {
    const isSentence = /^(ArgumentError|FormatError|NotFoundError|UnsupportedError)$/.test(e.name)
      || e.constructor.name === 'HttpError';
    ok(isSentence && e.message && !/[\0-\x1f]/.test(e.message), e);
    return false;
  }
}

const check = (what, bytes) => {
  const text = new TextDecoder().decode(bytes), begin = process.cpuUsage();
  const read = refusable(() => checks[what](text));
  ok(process.cpuUsage(begin).user < 2e6, 'a few kilobytes take no seconds');
  return read;
};
const kindOf = (file) => /^[a-z]+/.exec(path.basename(file).replace('fuzz_pull-crash-', ''))[0];

const [what = '5', folder = 'build/fuzzing/fuzz'] = process.argv.slice(2);
if (!/^\d+$/.test(what)) {
  console.log(check(kindOf(what), fs.readFileSync(what)) ? 'read' : 'refused');
  process.exit(0);
}
const dir = 'tests/fuzz/seeds/pull';
const seeds = fs.readdirSync(dir).sort().map((name) => ({
  kind: kindOf(name), text: fs.readFileSync(path.join(dir, name), 'utf8').trimEnd(),
  isJson: name.endsWith('.json'),
}));
for (const { kind, text } of seeds)
  if (kind !== 'name' || !text.startsWith('http://'))
    ok(check(kind, new TextEncoder().encode(text)), `a seed is read: ${kind} ${text}`);
let runs = 0, read = 0;
for (const end = Date.now() + Number(what) * 1000; Date.now() < end; runs++) {
  const { kind, text, isJson } = pick(seeds), bytes = (isJson ? mutate : mutateText)(text);
  try {
    read += check(kind, bytes);
  } catch (e) {
    fs.mkdirSync(folder, { recursive: true });
    const file = path.join(folder, `fuzz_pull-crash-${kind}-${runs}`);
    fs.writeFileSync(file, bytes);
    console.log(`${e?.stack ?? e}\n\nrun ${runs}: see ${file}`);
    process.exit(1);
  }
}
console.log(`${read} of ${runs} were read`);
console.log(`${runs} runs`);
