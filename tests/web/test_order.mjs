// Things that happen in an unlucky order, forced: news that come together with the end, wishes that
// come while the one before is being met. node tests/web/test_order.mjs
import { Answer } from '../../web/engine/dist/engine/completions_answer.js';
import { Client, serve } from '../../web/engine/dist/engine/rpc.js';
import { Run } from '../../web/engine/dist/train/train_run.js';
import { nextTurn } from '../../web/engine/dist/engine/turns.js';
import { done, equal, ok, same, test } from './check.mjs';

/** All that was under way had its turn. */
const settle = () => new Promise((turn) => setTimeout(turn, 5));

/** `work`, or a failure where it hangs. */
async function soon(work, what) {
  let timer;
  const late = new Promise((_, failed) =>
    (timer = setTimeout(() => failed(new Error(`${what} does not come`)), 5000)));
  return Promise.race([work, late]).finally(() => clearTimeout(timer));
}

test('the last news of a prompt\'s reading are told though the end came with them', async () => {
  const conversation = {
    async set(ids, { onProgress }) {
      await null;
      onProgress(2, 5);
      await settle();
      onProgress(5, 5); // while the reader still looks at the news before
      return 0;
    },
    async *generate() {
      return { stop: 'end' };
    },
  };
  const answer = new Answer({
    conversation, signal: new AbortController().signal, asked: 0, begun: 0, go: async () => {},
    rest: () => {},
  });
  const read = [];
  for await (const step of answer.steps(new Int32Array(5), {}, true)) {
    read.push(step.read);
    await settle();
    await settle();
    await settle();
  }
  same(read, [2, 5]);
});

/** A training of so many steps, each at once. */
function train(steps, calls = {}) {
  const report = { step: 0, loss: 1, lr: 1, grad_norm: 1, tokens: 1 };
  const answers = {
    trainOpen: () => ({ name: 'a', step: 0, steps, bytes: 0 }),
    trainStep: () => ({ ...report, step: ++report.step }),
    trainSave: () => Uint8Array.of(report.step),
    trainEnd: () => ({ gguf: new Uint8Array(1), config: '', safetensors: new Uint8Array(1) }),
    ...calls,
  };
  return new Run({ call: async (name, params) => answers[name](params) }, { data: '{}' });
}

test('a paused training gives one checkpoint after the other', async () => {
  const run = train(3);
  run.pause();
  // in the very turn in which the first came
  const first = run.checkpoint(), second = first.then(() => run.checkpoint());
  same([await soon(first, 'the first'), await soon(second, 'the second')], [
    Uint8Array.of(0), Uint8Array.of(0),
  ]);
  run.resume();
  equal((await soon(run.result, 'the end')).steps, 3);
});

test('a reader who comes late, or is slow, sees every step and then the end', async () => {
  const run = train(3), seen = [];
  await settle();
  for await (const { step } of run) {
    seen.push(step);
    await settle();
  }
  same(seen, [1, 2, 3]);
  for await (const { step } of run) seen.push(step);
  same(seen, [1, 2, 3, 1, 2, 3]);
});

test('items that came before a stream\'s failure are read before it', async () => {
  const { port1, port2 } = new MessageChannel();
  serve(port2, {}, {
    async *count() {
      yield 1;
      yield 2;
      throw new Error('enough');
    },
  });
  const client = new Client(port1), seen = [];
  try {
    for await (const n of client.stream('count', undefined)) {
      seen.push(n);
      await settle(); // by now the failure is here
    }
  } catch (e) {
    seen.push(e.message);
  }
  same(seen, [1, 2, 'enough']);
  port1.close();
});

test('a turn lets others go first, and a thousand of them wait for no timer', async () => {
  let others = 0, late = false;
  const timer = setTimeout(() => (late = true), 500); // a millisecond for each would be more
  setImmediate(() => others++);
  await nextTurn();
  equal(others, 1);
  for (let i = 0; i < 1000; i++) await nextTurn();
  clearTimeout(timer);
  ok(!late);
});

await done();
