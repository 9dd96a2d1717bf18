// selftest - the kernels that a model uses, each run once on small inputs and compared with the C loop that defines it.
//
// A kernel of a faster tier that does not compile here, or computes something else, is demoted: the plain one takes its
// place, and is tested in turn. For a plain one there is no replacement.

import type { Gpu } from './gpu.js';
import type { SelfTest } from './model.js';
import { nextTurn } from './turns.js';
import { BezelError, type Core, type EnginePtr } from './wasm.js';

/** What the core says of a kernel. */
interface Verdict {
  kernel: string;
  ok: boolean;
  tested: boolean;
  plain: boolean;
  nmse: number | null; // null: not even numbers
}

export interface SelfTestOptions {
  /** Ask for the pipelines of all that the model's steps will record. */
  compile: () => void;
  /** Waits, unless the load was cancelled. */
  within: <T>(work: Promise<T>) => Promise<T>;
  /** What is left to do is the device's, for a while. */
  onPrepared: () => void;
  onTested: (done: number, total: number) => void;
}

/** Gpu.refused must have been there since the first pipelines were asked for. */
export async function selfTest(core: Core, gpu: Gpu, engine: EnginePtr, { compile, ...options }: SelfTestOptions): Promise<SelfTest[]> {
  const report = new Map<string, SelfTest>();
  while (await testRound(core, gpu, engine, options, report)) compile();
  options.onTested(1, 1);
  return [...report.values()];
}

/** Did kernels not compile, and were they demoted? */
function demoteRefused(core: Core, gpu: Gpu, engine: EnginePtr, report: Map<string, SelfTest>): boolean {
  const refused = [...(gpu.refused ?? [])];
  gpu.refused?.clear();
  for (const [kernel, reason] of refused) {
    if (!core.exports.bz_wasm_gpu_demote(engine, kernel)) throw new BezelError(reason, 'device');
    const { name } = core.kernel(kernel);
    report.set(name, { kernel: name, ok: false, reason });
  }
  return refused.length > 0;
}

/** Test what was not tested yet. Was something demoted? */
async function testRound(core: Core, gpu: Gpu, engine: EnginePtr, { within, onPrepared, onTested }: Omit<SelfTestOptions, 'compile'>, report: Map<string, SelfTest>): Promise<boolean> {
  const x = core.exports;
  const test = gpu.planned(() => core.check(x.bz_wasm_gpu_selftest_open(engine))); // cases that are only tried out make no buffers
  try {
    await within(gpu.handedOut()); // first, since the compiler has threads of its own
    while (core.checkNumber(x.bz_wasm_gpu_selftest_prepare(test))) await within(nextTurn()); // the C loops
    onPrepared();
    await within(gpu.ready());
    if (demoteRefused(core, gpu, engine, report)) return true;
    onTested(0, 1);
    const program = x.bz_wasm_gpu_selftest_program(test);
    const [buffer = 0, n = 0] = new Uint32Array(core.result().buffer);
    const results = new Uint8Array(n);
    if (program) await within(gpu.run([program, { buffer, offset: 0, into: results }]));
    gpu.stepOwner = undefined; // the step block was used
    const demoted = core.with(results, (p) => core.checkNumber(x.bz_wasm_gpu_selftest_judge(test, p)));
    for (const verdict of JSON.parse(core.resultText()) as Verdict[]) report.set(verdict.kernel, told(verdict, gpu.info.name));
    return demoted > 0;
  } finally {
    x.bz_wasm_gpu_selftest_close(test);
  }
}

function told({ kernel, ok, tested, plain, nmse }: Verdict, device: string): SelfTest {
  if (ok) return { kernel, ok, ...(!tested && { reason: 'no test runs it' }) };
  const reason = `kernel ${kernel} computes wrong numbers on ${device} (${nmse === null ? 'not even finite ones' : `nmse ${nmse}`})`;
  if (plain) throw new BezelError(`${reason}: this device cannot be used`, 'device');
  return { kernel, ok, reason };
}
