// dispatches.mjs - how many dispatches a token takes on this host's device, with and without
// adapters; nothing is computed.
//
//   deno run -A bench/dispatches.mjs MODEL.gguf [RANK …]
//
// Deno's device without a GPU (llvmpipe) takes the paths of large GPUs, the one of the tests in
// Node (SwiftShader) those of a processor. RANK: with an adapter of that rank on every linear. The
// two dispatches that draw a token are counted.
import {
  GpuModel, fileSource, loadWasm, memorySource, openDevice,
} from '../web/engine/dist/core.js';
import { linearsOf, loraFile } from '../tests/web/lora_file.mjs';

const [file, ...ranks] = process.argv.slice(2);
if (!file) {
  console.error('usage: deno run -A bench/dispatches.mjs MODEL.gguf [RANK …]');
  process.exit(2);
}
const model = await GpuModel.open(await loadWasm(), openDevice, [await fileSource(file)], {
  selfTest: false, table: 'gpu',
});
const { gpu, core } = model.engine, linears = linearsOf(core, await fileSource(file));
gpu.ready = async () => {}; // nobody waits for kernels: nothing runs

/** Of the first program that would run: one token's. */
async function count() {
  const session = model.engine.session(64, 16);
  const n = await new Promise((resolve, reject) => {
    gpu.run = (items) => (resolve(gpu.dispatches(items[0])), new Promise(() => {}));
    session.read(Int32Array.of(2))
      .then(() => session.generate({ temperature: 0, ignore_end: true, n_max: 2 }).next())
      .catch(reject);
  });
  return n + 2;
}
console.log(`${file} on ${gpu.info.name}: ${await count()} dispatches a token`);
for (const rank of ranks) {
  const id = await model.addAdapter(memorySource('adapter', loraFile(linears, +rank)));
  console.log(`with an adapter of rank ${rank}: ${await count()}`);
  model.removeAdapter(id);
}
process.exit(0);
