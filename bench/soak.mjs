// soak - many clients use one server for a long time, and nothing may pile up: memory, threads,
// file handles and throughput stay flat.
//
//   node bench/soak.mjs [--clients 16] [--minutes 30] [--url http://localhost:4114 --pid N]
//
// Without --url it starts a server of its own with the tiny model on the CPU. Clients chat in
// several turns, stream or wait for the whole, ask Ollama's way or OpenAI's, leave in the middle,
// ask for what is not there. A line a minute; exit code 1 where something grew.
import fs from 'node:fs';
import { parseArgs } from 'node:util';

import { startServe } from './streams.mjs';

const { values } = parseArgs({
  options: {
    clients: { type: 'string', default: '16' }, minutes: { type: 'string', default: '30' },
    url: { type: 'string' }, pid: { type: 'string' },
  },
});
const clients = Number(values.clients), minutes = Number(values.minutes);
const server = values.url === undefined ? await startServe(['--backend', 'cpu']) : undefined;
const url = values.url ?? server.url, pid = server?.child.pid ?? Number(values.pid);

const count = { answers: 0, tokens: 0, left: 0, refused: 0, wrong: [] };
const sleep = (ms) => new Promise((r) => setTimeout(r, ms));
const questions = [
  'What is the capital of France?', 'Why is the sky blue?', 'Count from 3 to 12.',
  'List three fruits.', 'Who are you?', 'What is 7 * 8?', 'Tell me a story about a fox.',
];

/** The same random numbers each time. */
function random(seed) {
  let x = seed * 2654435761 >>> 0 || 1;
  return (n) => ((x ^= x << 13, x ^= x >>> 17, x ^= x << 5, x >>>= 0), x % n);
}

const ask = (path, body, key, signal) => fetch(url + path, {
  method: 'POST',
  body: JSON.stringify(body),
  signal,
  headers: { 'content-type': 'application/json', authorization: `Bearer ${key}` },
});

async function turn(pick, messages, key) {
  const ollama = pick(2) === 1, stream = pick(3) > 0, leave = pick(12) === 0;
  const wrong = pick(25) === 0, gone = new AbortController();
  const body = {
    model: wrong ? 'none' : 'tiny',
    messages,
    stream,
    ...(ollama
      ? { options: { num_predict: 60, temperature: 0 } }
      : { max_tokens: 60, temperature: 0 }),
  };
  if (leave) setTimeout(() => gone.abort(), pick(300)).unref();
  try {
    const res = await ask(ollama ? '/api/chat' : '/v1/chat/completions', body, key, gone.signal);
    const text = await res.text();
    if (wrong && res.status === 404) return void count.refused++;
    if (res.status !== 200) return void count.wrong.push(`${res.status} ${text.slice(0, 200)}`);
    const parts = stream
      ? text.split('\n')
        .map((l) => l.replace(/^data: /, ''))
        .filter((l) => l.trim().startsWith('{'))
        .map((l) => JSON.parse(l))
      : [JSON.parse(text)];
    if (parts.some((p) => p.error))
      return void count.wrong.push(JSON.stringify(parts.find((p) => p.error)));
    const content = parts
      .map((p) =>
        p.message?.content ?? p.choices?.[0]?.delta?.content ?? p.choices?.[0]?.message?.content
          ?? '')
      .join('');
    if (!content) count.wrong.push(`nothing was said: ${text.slice(0, 200)}`);
    count.answers++;
    count.tokens += stream ? parts.length : 20;
    return content;
  } catch (e) {
    if (gone.signal.aborted) return void count.left++;
    count.wrong.push(String(e.cause ?? e));
  }
}

const end = performance.now() + minutes * 60_000;
const work = Array.from({ length: clients }, async (_, c) => {
  const pick = random(c + 1);
  while (performance.now() < end) {
    const messages = [];
    for (let turns = 1 + pick(4); turns > 0 && performance.now() < end; turns--) {
      messages.push({ role: 'user', content: questions[pick(questions.length)] });
      const content = await turn(pick, messages, `client-${c}`);
      if (content === undefined) break;
      messages.push({ role: 'assistant', content });
    }
    await sleep(pick(50));
  }
});

const look = () => ({
  mb: Math.round(
    Number(/VmRSS:\s+(\d+)/.exec(fs.readFileSync(`/proc/${pid}/status`, 'utf8'))[1]) / 1024,
  ),
  threads: fs.readdirSync(`/proc/${pid}/task`).length,
  files: fs.readdirSync(`/proc/${pid}/fd`).length,
});
const lines = [];
console.log('minute      MB  threads  files  answers  pieces/s  left  refused  wrong');
let before = { ...count };
for (let minute = 1; performance.now() < end; minute++) {
  await Promise.race([sleep(60_000), Promise.all(work)]);
  const now = {
    minute,
    ...look(),
    answers: count.answers - before.answers,
    rate: Math.round((count.tokens - before.tokens) / 60),
  };
  before = { ...count };
  lines.push(now);
  console.log(
    `${String(minute).padStart(6)} ${String(now.mb).padStart(7)} ${String(now.threads).padStart(8)}`
      + ` ${String(now.files).padStart(6)} ${String(now.answers).padStart(8)} `
      + `${String(now.rate).padStart(9)} ${String(count.left).padStart(5)} `
      + `${String(count.refused).padStart(8)} ${String(count.wrong.length).padStart(6)}`,
  );
}
await Promise.all(work);

/** The first fifth warms up; then the last third may not be above the one before it by more than
 *  noise. */
const calm = lines.slice(Math.ceil(lines.length / 5));
const third = Math.max(1, Math.floor(calm.length / 3));
const mean = (list, key) => list.reduce((n, l) => n + l[key], 0) / list.length;
const early = calm.slice(0, third), late = calm.slice(-third), grown = [];
if (mean(late, 'mb') > 1.15 * mean(early, 'mb') + 20)
  grown.push(`memory grew from ${mean(early, 'mb')} to ${mean(late, 'mb')} MB`);
if (mean(late, 'threads') > mean(early, 'threads') + 1)
  grown.push(`threads grew from ${mean(early, 'threads')} to ${mean(late, 'threads')}`);
if (mean(late, 'files') > mean(early, 'files') + 4)
  grown.push(`file handles grew from ${mean(early, 'files')} to ${mean(late, 'files')}`);
for (const line of [...grown, ...count.wrong.slice(0, 10)]) console.log(line);
console.log(
  `${count.answers} answers in ${minutes} minutes, ${count.left} left, ${count.refused} refused, `
    + `${count.wrong.length} wrong; ${grown.length ? 'NOT flat' : 'flat'}`,
);
await server?.stop();
process.exitCode = grown.length || count.wrong.length ? 1 : 0;
