// hang_hook - loaded before a server (node --import): in the engine's thread a chat that says HANG
// is tokenised for ever. It stands for any call into the core that takes too long. And a folder
// called HANG is listed for ever, as on a network drive that went away.
import fs from 'node:fs';
import { isMainThread } from 'node:worker_threads';

const { readdir } = fs.promises;
fs.promises.readdir = (folder, ...rest) => {
  if (!String(folder).includes('HANG')) return readdir(folder, ...rest);
  console.error('listing for ever');
  return new Promise(() => {});
};

if (!isMainThread) {
  const Original = WebAssembly.Instance;
  WebAssembly.Instance = function (module, imports) {
    const { exports } = new Original(module, imports);
    const bz_wasm_chat_tokenize = (engine, p, n, ...rest) => {
      while (Buffer.from(exports.memory.buffer, p, n).includes('HANG'));
      return exports.bz_wasm_chat_tokenize(engine, p, n, ...rest);
    };
    return { exports: { ...exports, bz_wasm_chat_tokenize } };
  };
}
