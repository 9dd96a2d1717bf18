// load - how long a model takes from its file to the first token, beside reading that file once.
//
//   node bench/load.mjs MODEL.gguf [--runs 3] [--backend gpu|cpu]
//
// The file is read once before all, so that the system's cache holds it where it can. Then, in
// turns: every byte is read in large pieces and dropped; the model is loaded through the package,
// and answers with one token. A load's time includes the compiling of kernels and the self-test. A
// driver keeps what it has compiled: the first run counts for who starts anew, the later ones for
// who changes models. The second line says when each phase ended: device and module are there, the
// file is understood and has its buffers, the weights that a load waits for are on the device, its
// kernels are validated; and when the model was whole: the per-layer embedding table, which comes
// after the first token, is on the device too (or stays in the file), and every kernel is
// validated. Only from then on are tokens drawn at full speed.
import { open } from 'node:fs/promises';
import { parseArgs } from 'node:util';
import { Engine } from '../web/engine/dist/index.js';

const { values: o, positionals: [file] } = parseArgs({
  allowPositionals: true,
  options: { runs: { type: 'string', default: '3' }, backend: { type: 'string', default: 'gpu' } },
});
if (!file) {
  console.error('usage: node bench/load.mjs MODEL.gguf [--runs N] [--backend gpu|cpu]');
  process.exit(2);
}

/** Seconds to read every byte; how many there are. */
async function readOnce() {
  const handle = await open(file), piece = Buffer.allocUnsafe(16 << 20), start = performance.now();
  let bytes = 0;
  try {
    for (;;) {
      const { bytesRead } = await handle.read(piece, 0, piece.length, bytes);
      if (!bytesRead) return { bytes, seconds: (performance.now() - start) / 1000 };
      bytes += bytesRead;
    }
  } finally {
    await handle.close();
  }
}

await readOnce();
for (let run = 1; run <= +o.runs; run++) {
  const { bytes, seconds } = await readOnce(), start = performance.now();
  const ended = new Map(), note = ({ phase, loaded, total }) => {
    // told again when there is one
    if (phase === 'open' && !loaded) ended.set('device', performance.now() - start);
    else if (loaded === total) ended.set(phase, performance.now() - start);
  };
  const engine = await Engine.load(file, { backend: o.backend, onProgress: note });
  const loaded = (performance.now() - start) / 1000;
  await engine.chat.completions.create({
    messages: [{ role: 'user', content: 'Hello' }], max_tokens: 1, temperature: 0,
  });
  const first = (performance.now() - start) / 1000;
  await engine.selfTest();
  ended.set('whole', performance.now() - start);
  await engine.dispose();
  console.log(
    `run ${run}: ${(bytes / 1e9).toFixed(2)} GB read in ${seconds.toFixed(2)} s `
      + `(${(bytes / 1e9 / seconds).toFixed(1)} GB/s); loaded after ${loaded.toFixed(2)} s, first `
      + `token after ${first.toFixed(2)} s: ${(first / seconds).toFixed(2)} times the reading`,
  );
  console.log(
    `  ${[...ended].map(([phase, ms]) => `${phase} ${(ms / 1000).toFixed(2)} s`).join(', ')}`,
  );
}
process.exit(0);
