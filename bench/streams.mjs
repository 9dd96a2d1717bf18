// streams - many clients stream from one server at once, and nothing may be lost: every stream ends
// properly and brings the same text as the question asked alone.
//
//   node bench/streams.mjs [--clients 32] [--seconds 60] [--url http://localhost:4114]
//
// Without --url it starts a server of its own with the tiny model on the CPU.
import { spawn } from 'node:child_process';
import { fileURLToPath } from 'node:url';
import { parseArgs } from 'node:util';

const questions = [
  'What is the capital of France?', 'Why is the sky blue?', 'Count from 3 to 12.',
  'List three fruits.', 'Who are you?', 'What is 7 * 8?', 'Translate water into French.',
  'Tell me a story about a fox.',
];

/** Starts `bezel serve` on a free port; says its address when it listens. `program` runs it,
 *  Node where nothing is said. */
export async function startServe(
  args = [], { program: [program, ...first] = [process.execPath], ...options } = {},
) {
  const tool = fileURLToPath(new URL('../web/engine/bin/bezel.mjs', import.meta.url));
  const child = spawn(program, [...first, tool, 'serve', '--port', '0', ...args], {
    stdio: ['ignore', 'pipe', 'pipe'], ...options,
  });
  const server = {
    child,
    out: '',
    err: '',
    url: '',
    over: new Promise((done) => child.on('close', (code) => done(code))),
  };
  child.stderr.on('data', (d) => (server.err += d));
  await new Promise((done, failed) => {
    child.stdout.on('data', (d) => {
      server.out += d;
      const [, url] = /at (http:\S+)\//.exec(server.out) ?? [];
      if (url && server.out.includes('Ctrl-C')) done((server.url = url));
    });
    child.on('close', () => failed(new Error(`the server ended: ${server.err}`)));
  });
  server.stop = async () => (child.kill('SIGINT'), server.over);
  return server;
}

/** One answer over server-sent events, greedy. Throws when the stream does not end as it should. */
async function answer(url, question, client) {
  const body = JSON.stringify({
    model: 'tiny',
    stream: true,
    temperature: 0,
    user: client,
    messages: [{ role: 'user', content: question }],
  });
  const begin = performance.now();
  const res = await fetch(`${url}/v1/chat/completions`, {
    method: 'POST', body, headers: { 'content-type': 'application/json' },
  });
  if (!res.ok) throw new Error(`status ${res.status}: ${await res.text()}`);
  let rest = '', text = '', pieces = 0, first = 0, reason = null, over = false;
  const decoder = new TextDecoder();
  for await (const part of res.body) {
    rest += decoder.decode(part, { stream: true });
    for (let at = rest.indexOf('\n\n'); at >= 0; at = rest.indexOf('\n\n')) {
      const event = rest.slice(0, at).replace(/^data: /, '');
      rest = rest.slice(at + 2);
      if (event.startsWith(':')) continue; // a sign of life
      if (over) throw new Error('something came after [DONE]');
      if (event === '[DONE]') {
        over = true;
        continue;
      }
      const chunk = JSON.parse(event);
      if (chunk.error) throw new Error(chunk.error.message);
      first ||= performance.now() - begin;
      pieces++;
      text += chunk.choices[0]?.delta.content ?? '';
      reason = chunk.choices[0]?.finish_reason ?? reason;
    }
  }
  if (!over || rest || reason !== 'stop')
    throw new Error(`the stream ended early (${reason}) after ${JSON.stringify(text.slice(-40))}`);
  return { text, pieces, first };
}

/** What happened: streams begun, streams that ended with the right text, and why the others did
 *  not. */
export async function runStreams({ url, clients = 32, seconds = 60 }) {
  const expected = new Map();
  for (const q of questions) expected.set(q, (await answer(url, q, 'alone')).text);
  const result = {
    clients, seconds, streams: 0, whole: 0, pieces: 0, perClient: new Array(clients).fill(0),
    piecesOf: new Array(clients).fill(0), firsts: [], lost: [],
  };
  const end = performance.now() + 1000 * seconds;
  await Promise.all(result.perClient.map(async (_, c) => {
    for (let i = c; performance.now() < end; i++) {
      const q = questions[i % questions.length];
      result.streams++;
      try {
        const { text, pieces, first } = await answer(url, q, `client ${c}`);
        result.pieces += pieces;
        result.piecesOf[c] += pieces;
        result.firsts.push(first);
        if (text === expected.get(q)) result.whole++;
        else result.lost.push(`${q}: ${text}`);
        result.perClient[c]++;
      } catch (e) {
        result.lost.push(`${q}: ${e.message}`);
      }
    }
  }));
  return result;
}

async function main() {
  const { values } = parseArgs({
    options: {
      clients: { type: 'string', default: '32' }, seconds: { type: 'string', default: '60' },
      url: { type: 'string' },
    },
  });
  const server = values.url === undefined ? await startServe(['--backend', 'cpu']) : undefined;
  const r = await runStreams({
    url: values.url ?? server.url, clients: Number(values.clients), seconds: Number(values.seconds),
  });
  await server?.stop();
  r.firsts.sort((a, b) => a - b);
  const at = (p) =>
    Math.round(r.firsts[Math.min(r.firsts.length - 1, Math.floor(p * r.firsts.length))] ?? 0);
  console.log(
    `${r.clients} clients, ${r.seconds} s: ${r.streams} streams, ${r.whole} whole, `
      + `${r.lost.length} lost; ${r.pieces} pieces`,
  );
  console.log(
    `first piece after ${at(0.5)} ms (p50), ${at(0.95)} ms (p95); `
      + `streams a client ${Math.min(...r.perClient)} to ${Math.max(...r.perClient)}`,
  );
  for (const line of r.lost.slice(0, 10)) console.log(`  lost: ${line}`);
  process.exitCode = r.lost.length || r.whole !== r.streams ? 1 : 0;
}

if (process.argv[1] === fileURLToPath(import.meta.url)) await main();
