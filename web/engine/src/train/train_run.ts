// train_run - a training as its caller holds it: steps to read, pause, stop, checkpoints, and the
// result at the end.
//
// The client's half; local_train.ts is where the model lives. Every step is asked for when nobody
// holds it back.

import { BezelError } from '../api/errors.js';
import type { TrainCalls, TrainPlan } from './local_train.js';
import type { Link } from '../engine/rpc.js';
import { readTrain } from './train_request.js';
import type { TrainOptions, TrainResult, TrainRun, TrainStep } from './train_types.js';

type TrainLink = Pick<Link<TrainCalls, Record<never, never>>, 'call'>;

let runs = 0;

const cancelled = (): DOMException => new DOMException('The training was cancelled.', 'AbortError');

export class Run implements TrainRun {
  state: TrainRun['state'] = 'running';
  readonly result: Promise<TrainResult>;
  private readonly id = `training-${++runs}`;
  private readonly abort = new AbortController();
  private readonly steps: TrainStep[] = [];
  // at: the step that it wants next
  private readonly readers = new Set<{ at: number; waiting: boolean }>();
  // checkpoints asked for
  private readonly wishes: {
    resolve(bytes: Uint8Array): void; reject(error: unknown): void;
  }[] = [];
  private over: { error?: unknown } | undefined;
  private stopping = false;
  private wake: (() => void)[] = [];

  constructor(private readonly link: TrainLink, options: TrainOptions) {
    const { signal } = options;
    const onAbort = (): void => {
      this.abort.abort(signal?.reason);
      this.stir(); // it may stand still
    };
    if (signal?.aborted) onAbort();
    signal?.addEventListener('abort', onAbort, { once: true });
    this.result = this.run(options).finally(() => signal?.removeEventListener('abort', onAbort));
    this.result.then(
      () => this.finish('done'),
      (error: unknown) =>
        this.finish(this.abort.signal.aborted ? 'cancelled' : 'failed', { error }),
    );
  }

  private finish(state: TrainRun['state'], over: { error?: unknown } = {}): void {
    this.state = state;
    this.over = over;
    for (const wish of this.wishes.splice(0))
      wish.reject(over.error ?? new BezelError('this training is over', 'argument'));
    this.stir();
  }

  // ---- the loop ----

  private async run(options: TrainOptions): Promise<TrainResult> {
    const { signal } = this.abort;
    signal.throwIfAborted();
    const params = await readTrain(options, this.id);
    try {
      const plan = await this.link.call('trainOpen', params, { signal });
      await this.learn(options, plan);
      const files = await this.link.call('trainEnd', { id: this.id, keep: true }, { signal });
      if (!files) throw new BezelError('the training gave no adapter', 'device');
      const measured = this.steps.flatMap(({ evalLoss }) => evalLoss ?? []);
      const last = measured.at(-1) ?? plan.evalLoss;
      return {
        adapter: plan.name,
        gguf: files.gguf,
        peft: { config: files.config, safetensors: files.safetensors },
        losses: this.steps.map(({ loss }) => loss),
        steps: this.steps.at(-1)?.step ?? plan.step,
        ...(plan.evalLoss !== undefined && last !== undefined
          && { evalLoss: { first: plan.evalLoss, last } }),
      };
    } catch (e) {
      // Also where the open itself was given up: the other side may have finished it meanwhile.
      // the first failure is the one to tell
      await this.link.call('trainEnd', { id: this.id, keep: false }).catch(() => {});
      throw e;
    }
  }

  private async learn(
    options: TrainOptions, { step: begun, steps, bytes }: TrainPlan,
  ): Promise<void> {
    const { evalEvery = 50, saveEvery = 50, onCheckpoint } = options, { signal } = this.abort;
    let tokens = 0, seconds = 0;
    for (let step = begun; step < steps && !this.stopping; step++) {
      await this.mayGoOn();
      if (this.stopping) break;
      const from = performance.now();
      const { lr, grad_norm, tokens: more, ...report } = await this.link.call(
        'trainStep', { id: this.id, evaluate: (step + 1) % evalEvery === 0 }, { signal },
      );
      const took = (performance.now() - from) / 1000;
      seconds += took;
      tokens += more;
      this.steps.push({
        ...report, steps, learningRate: lr, gradNorm: grad_norm, tokensPerSecond: more / took,
        memory: bytes, tokens, seconds,
      });
      this.stir();
      if (onCheckpoint && report.step % saveEvery === 0)
        await onCheckpoint(await this.link.call('trainSave', this.id, { signal }), report.step);
    }
    await this.giveCheckpoints();
  }

  /** Wait until nobody has paused and no reader is in the middle of a step. */
  private async mayGoOn(): Promise<void> {
    for (;;) {
      if (this.wishes.length) { // then look again: there may be one more
        await this.giveCheckpoints();
        continue;
      }
      this.abort.signal.throwIfAborted();
      if (this.stopping
        || (this.state !== 'paused'
          && [...this.readers].every((r) => r.waiting && r.at === this.steps.length)))
        return;
      await this.next();
    }
  }

  private async giveCheckpoints(): Promise<void> {
    for (let wish = this.wishes[0]; wish; wish = this.wishes[0]) {
      wish.resolve(await this.link.call('trainSave', this.id, { signal: this.abort.signal }));
      this.wishes.shift();
    }
  }

  private next(): Promise<void> {
    return new Promise((resolve) => this.wake.push(resolve));
  }

  private stir(): void {
    for (const wake of this.wake.splice(0)) wake();
  }

  // ---- what the caller may do ----

  pause(): void {
    if (this.state === 'running') this.state = 'paused';
  }

  resume(): void {
    if (this.state === 'paused') this.state = 'running';
    this.stir();
  }

  stop(): void {
    this.stopping = true;
    this.resume();
  }

  cancel(): void {
    this.abort.abort(cancelled());
    this.stir();
  }

  checkpoint(): Promise<Uint8Array> {
    if (this.over)
      return Promise.reject(this.over.error ?? new BezelError('this training is over', 'argument'));
    return new Promise((resolve, reject) => {
      this.wishes.push({ resolve, reject });
      this.stir();
    });
  }

  /** Every reader sees all steps from the first on. */
  async *[Symbol.asyncIterator](): AsyncGenerator<TrainStep, void, void> {
    const reader = { at: 0, waiting: false };
    this.readers.add(reader);
    try {
      for (;;) {
        const step = this.steps[reader.at];
        if (step) {
          reader.at++;
          reader.waiting = false;
          yield step;
          continue;
        }
        if (this.over) {
          if ('error' in this.over) throw this.over.error;
          return;
        }
        if (!reader.waiting) {
          reader.waiting = true;
          this.stir();
        }
        await this.next();
      }
    } finally {
      this.readers.delete(reader);
      this.stir();
    }
  }
}
