// selftest - the kernels that a model uses, each run once on small inputs and compared with the C
// loop that defines it.
//
// A kernel of a faster tier that does not compile here, or computes something else, is demoted: the
// plain one takes its place, and is tested in turn. For a plain one there is no replacement.

import type { Gpu } from './gpu.js';
import type { SelfTest } from '../engine/model.js';
import { aborting, nextTurn } from '../engine/turns.js';
import { readHostRange, type EnginePtr, type SelfTestPtr } from '../engine/boundary.js';
import { BezelError, type Core } from '../engine/wasm.js';

/** What the core says of a kernel. */
interface Verdict {
  kernel: number;
  ok: boolean;
  tested: boolean;
  plain: boolean;
  nmse: number | null; // null: not even numbers
}

export interface SelfTestOptions {
  /** Once it is aborted, nothing of the core is held or used any more; its reason is thrown. */
  signal: AbortSignal;
  /** Where every kernel's result goes. */
  report: Map<string, SelfTest>;
  /** What Gpu.later() was given when the pipelines were asked for. */
  refused: Map<number, string>;
  /** Ask for the pipelines anew: some kernels are others now. */
  compile: () => void;
  /** Has nobody else steps on the device? Then they need not be taken care of. */
  alone: boolean;
  /** What is left to do is the device's, for a while. */
  onPrepared?: () => void;
  onTested?: (done: number, total: number) => void;
}

/** Test the pipelines that were asked for and that no earlier test has run. Sessions may be at
 *  work meanwhile. */
export async function selfTest(
  core: Core, gpu: Gpu, engine: EnginePtr, options: SelfTestOptions,
): Promise<void> {
  const { signal, refused } = options, x = core.exports;
  for (let again = true; again;) {
    signal.throwIfAborted();
    // cases that are only tried out make no buffers
    const test =
      gpu.later(refused, () => gpu.planned(() => core.check(x.bz_wasm_gpu_selftest_open(engine))));
    let open = true;
    const close = (): void => {
      if (open) x.bz_wasm_gpu_selftest_close(test);
      open = false;
    };
    // not in a later turn: the engine may be closed by then
    signal.addEventListener('abort', close, { once: true });
    try {
      again = await testRound(core, gpu, engine, test, options);
    } finally {
      signal.removeEventListener('abort', close);
      close();
    }
  }
  options.onTested?.(1, 1);
}

/** Demote kernels that did not compile. Were there any? */
function demoteRefused(
  core: Core, engine: EnginePtr, { refused, report, compile }: SelfTestOptions,
): boolean {
  const all = [...refused];
  if (!all.length) return false;
  refused.clear();
  const left = all.filter(([kernel, reason]) => {
    if (!core.exports.bz_wasm_gpu_demote(engine, kernel)) return true;
    const { name } = core.kernel(kernel);
    report.set(name, { kernel: name, ok: false, reason });
    return false;
  });
  compile();
  for (const [, reason] of left) throw new BezelError(reason, 'device');
  return true;
}

/** Record the cases: their program, 0 for none, and its results. They are no part of a model's
 *  memory. */
function record(
  core: Core, gpu: Gpu, test: SelfTestPtr,
): { program: number; buffer: number; into: Uint8Array } {
  const program =
    gpu.planned(() => core.checkNumber(core.exports.bz_wasm_gpu_selftest_record(test)));
  const { buffer, nBytes } = readHostRange(core.result().buffer);
  return { program, buffer, into: new Uint8Array(nBytes) };
}

/** Test what was not tested yet. Was something demoted? */
async function testRound(
  core: Core, gpu: Gpu, engine: EnginePtr, test: SelfTestPtr, options: SelfTestOptions,
): Promise<boolean> {
  const x = core.exports, { signal, report, alone, compile, onPrepared, onTested } = options;
  const { aborted, off } = aborting(signal);
  const lost = gpu.lost.then(() => gpu.check()); // a compiler that is gone need not answer
  lost.catch(() => {});
  /** A turn of others; then it may all be over. */
  const after = (work: Promise<unknown>): Promise<unknown> => Promise.race([work, aborted, lost]);
  try {
    await after(gpu.handedOut()); // first, since the compiler has threads of its own
    for (let more = 1; more;) { // the C loops
      signal.throwIfAborted();
      more = core.checkNumber(x.bz_wasm_gpu_selftest_prepare(test));
      if (more) await after(nextTurn());
    }
    const early = alone ? record(core, gpu, test) : undefined;
    onPrepared?.();
    await after(gpu.ready(true));
    signal.throwIfAborted();
    if (demoteRefused(core, engine, options)) return true;
    onTested?.(0, 1);
    const { program, buffer, into } = early ?? record(core, gpu, test);
    // in the turn in which it was recorded, unless alone
    const results = program ? gpu.run([program, { buffer, offset: 0, into }]) : Promise.resolve();
    gpu.stepOwner = undefined; // the step block was used
    await after(results);
    signal.throwIfAborted();
    return judge(core, gpu, test, into, report, compile);
  } finally {
    off();
  }
}

/** Was something demoted? Then the pipelines that are used instead are asked for before anybody
 *  can record. */
function judge(
  core: Core, gpu: Gpu, test: SelfTestPtr, results: Uint8Array, report: Map<string, SelfTest>,
  compile: () => void,
): boolean {
  const demoted =
    core.with(results, (p) => core.checkNumber(core.exports.bz_wasm_gpu_selftest_judge(test, p)));
  const verdicts = JSON.parse(core.resultText()) as Verdict[];
  if (demoted > 0) compile();
  for (const verdict of verdicts) {
    const { name } = core.kernel(verdict.kernel);
    report.set(name, told(name, verdict, gpu.info.name));
  }
  return demoted > 0;
}

function told(kernel: string, { ok, tested, plain, nmse }: Verdict, device: string): SelfTest {
  if (ok) return { kernel, ok, ...(!tested && { reason: 'no test runs it' }) };
  const reason =
    `kernel ${kernel} computes wrong numbers on ${device} `
      + `(${nmse === null ? 'not even finite ones' : `nmse ${nmse}`})`;
  if (plain) throw new BezelError(`${reason}: this device cannot be used`, 'device');
  return { kernel, ok, reason };
}
