// thread_entry - the engine's own thread: one of Node's, dressed as the worker of a page, in which
// worker.ts answers.

import { parentPort } from 'node:worker_threads';

if (!parentPort) throw new Error('this file is started as a thread');
const { postMessage, addEventListener } =
  parentPort as unknown as Pick<Worker, 'postMessage' | 'addEventListener'>;
Object.assign(globalThis, {
  postMessage: postMessage.bind(parentPort), addEventListener: addEventListener.bind(parentPort),
});

await import('../worker.js');
parentPort.postMessage('started');
(parentPort as { start?: () => void }).start?.(); // Deno's begins by itself
