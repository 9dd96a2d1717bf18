// speed - how fast bytes come: over the last two seconds, so that a pause shows and a burst does
// not.

export class SpeedMeter {
  private points: { at: number; loaded: number }[] = [];

  /** Bytes a second; 0 while nothing can be said. */
  add(loaded: number): number {
    const at = performance.now();
    this.points = [...this.points.filter((p) => at - p.at < 2000), { at, loaded }];
    const first = this.points[0];
    return first && at - first.at > 200 ? (1000 * (loaded - first.loaded)) / (at - first.at) : 0;
  }
}
