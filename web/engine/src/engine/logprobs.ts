// logprobs - log-probabilities of a row of logits, as the model gave them: before any sampling
// rule.

import type { TokenLogprob } from './model.js';

export class Logprobs {
  private readonly logSum: number;

  constructor(private readonly logits: Float32Array) {
    let max = -Infinity, sum = 0;
    for (const z of logits) if (z > max) max = z;
    for (const z of logits) sum += Math.exp(z - max);
    this.logSum = max + Math.log(sum);
  }

  of(id: number): number {
    return (this.logits[id] ?? NaN) - this.logSum;
  }

  /** The n best, best first; ties go to the lower id. */
  top(n: number): TokenLogprob[] {
    const best: number[] = [];
    const at = (id: number | undefined): number =>
      (id === undefined ? -Infinity : (this.logits[id] as number));
    for (let id = 0; id < this.logits.length && n > 0; id++) {
      if (best.length === n && at(id) <= at(best[n - 1])) continue;
      if (best.length === n) best.pop();
      let place = best.length;
      while (place > 0 && at(best[place - 1]) < at(id)) place--;
      best.splice(place, 0, id);
    }
    return best.map((id) => ({ id, logprob: this.of(id) }));
  }
}
