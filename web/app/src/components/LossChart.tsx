// LossChart - how wrong the model was, step by step: what it learned from, and what was held back.
// Lines are an SVG that stretches; words are HTML, so that they keep their size.

import type { Point } from '../train/record';

const MOST = 400; // points of a line

/** Neighbours are averaged where there are more than a screen can show. */
function thin(points: readonly [number, number][]): [number, number][] {
  const size = Math.ceil(points.length / MOST);
  if (size <= 1) return [...points];
  return Array.from({ length: Math.ceil(points.length / size) }, (_, i) => {
    const part = points.slice(i * size, (i + 1) * size), [x] = part.at(-1) as [number, number];
    return [x, part.reduce((sum, [, y]) => sum + y, 0) / part.length];
  });
}

/** A round number at or above it, for the top of the scale. */
function ceiling(n: number): number {
  const power = 10 ** Math.floor(Math.log10(Math.max(n, 1e-6)));
  return ([1, 2, 5, 10].find((k) => k * power >= n) ?? 10) * power;
}

const label = (n: number): string => String(Number(n.toPrecision(2)));

export function LossChart({ points, steps }: { points: readonly Point[]; steps: number }) {
  const loss = thin(points.map((p) => [p.step, p.loss]));
  const held = points.flatMap((p): [number, number][] =>
    (p.evalLoss === undefined ? [] : [[p.step, p.evalLoss]]));
  const top =
    loss.length ? ceiling(Math.max(...loss.map(([, y]) => y), ...held.map(([, y]) => y))) : 1;
  const wide = Math.max(steps, 2);
  const path = (line: readonly [number, number][]) => line
    .map(([x, y], i) =>
      `${i ? 'L' : 'M'}${((1000 * (x - 1)) / (wide - 1)).toFixed(1)} `
        + `${(300 * (1 - y / top)).toFixed(1)}`)
    .join('');
  const [, now] = loss.at(-1) ?? [0, 0], [, first] = loss[0] ?? [0, 0];
  return (
    <figure class="chart">
      <div class="chart-y" aria-hidden="true">
        <span>{label(top)}</span>
        <span>{label(top / 2)}</span>
        <span>0</span>
      </div>
      <svg viewBox="0 0 1000 300" preserveAspectRatio="none" role="img"
        aria-label={loss.length
          ? `The loss fell from ${first.toFixed(3)} to ${now.toFixed(3)} in ${points.length} steps.`
          : 'No step has been made yet.'}>
        <path class="grid" d="M0 0H1000M0 150H1000M0 300H1000" />
        <path class="line" d={path(loss)} />
        {held.length > 0 && <path class="line held" d={path(held)} />}
      </svg>
      <div class="chart-x" aria-hidden="true"><span>step 1</span><span>{steps || ''}</span></div>
      <figcaption>
        <span class="key">Loss</span>
        {held.length > 0 && <span class="key held">Loss of what was held back</span>}
      </figcaption>
    </figure>
  );
}
