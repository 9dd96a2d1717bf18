// worker - the thread that owns the model, the GPU and the files: a page's Engine talks to it
// through rpc.ts.

import { engineCalls } from './engine/local_engine.js';
import { serve, type Port } from './engine/rpc.js';

const { calls, streams } = engineCalls();

// A browser may end a worker without a word (memory, a crash of the GPU process). A lock ends with
// it, and the page that waits for the lock notices.
calls.live = (name) => new Promise((held, failed) => {
  navigator.locks.request(name, () => {
    held();
    return new Promise<void>(() => {});
  }).catch(failed);
});

serve(globalThis as unknown as Port, calls, streams);
