// pace - how many steps should be on their way: so many that the device has work while the thread
// is held up.
//
// Collecting garbage takes the thread 5 to 30 ms now and then, since hosts free the commands of
// many steps at once; a page may take as long to draw. Steps that are queued past the end of a text
// are wasted, so slow devices get few.

const LEAST = 4, MOST = 16; // steps
const LEAD = 48; // milliseconds of work that should be queued
const COUNTED = 8; // tokens whose mean is the pace: after a pause several come at once

export class Pace {
  // when the last tokens came, the oldest at n % COUNTED
  private readonly came = new Float64Array(COUNTED);
  private n = 0;
  /** Steps that should be on their way. */
  ahead = LEAST;

  /** A token came, at so many milliseconds. */
  note(now: number): void {
    const at = this.n++ % COUNTED, mean = (now - (this.came[at] as number)) / COUNTED;
    this.came[at] = now;
    if (this.n > COUNTED) this.ahead = Math.min(MOST, Math.max(LEAST, Math.ceil(LEAD / mean)));
  }
}
