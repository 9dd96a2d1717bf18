// store_worker - runs functions of tests/web/test_store.mjs where the store lives: in a worker.
import * as core from '/web/engine/dist/core.js';
import * as digest from '/web/engine/dist/store/digest.js';
import * as manifest from '/web/engine/dist/store/manifest.js';
import { handles } from '/web/engine/dist/store/handles.js';

const patience = { tries: 6, first: 10, longest: 100, idle: 10000 };
const wasm = await core.Core.load(await core.loadWasm());
const lib = {
  ...core, ...digest, ...manifest, handles, core: wasm, patience,
  store: await core.OpfsStore.open({ core: wasm, patience }), kept: {},
};

onmessage = async ({ data: { id, code, args } }) => {
  const tell = (news) => postMessage({ id, news });
  try {
    const value = await new Function(
      'lib', 'args', 'tell', `return (${code})(lib, args, tell)`,
    )(lib, args, tell);
    postMessage({ id, value });
  } catch (e) {
    postMessage({
      id,
      error: {
        name: e?.name ?? '', message: e?.message ?? String(e), kind: e?.kind, stack: e?.stack,
      },
    });
  }
};
postMessage({ ready: true });
