// progress - one line on standard error that says how far a long load is, where a person sees it.

import type { Progress } from '../engine/model.js';

/** "3.4 GB" */
export function bytesText(n: number): string {
  const units = ['bytes', 'kB', 'MB', 'GB', 'TB'];
  const i = Math.min(units.length - 1, n < 1000 ? 0 : Math.floor(Math.log10(n) / 3));
  return `${(n / 1000 ** i).toFixed(i ? 2 : 0)} ${units[i]}`;
}

const phases: Record<Progress['phase'], string> = {
  open: 'opening', weights: 'weights', kernels: 'kernels', selftest: 'self-test', ready: 'ready',
};

interface LoadingLine {
  onProgress?: (p: Progress) => void;
  /** A line of its own, in its place. */
  say(text: string): void;
  /** Wipes it away. */
  end(): void;
}

/** What to give as onProgress: nothing at all when nobody watches. */
export function loadingLine(what = 'weights'): LoadingLine {
  if (!process.stderr.isTTY)
    return { say: (text) => void process.stderr.write(`${text}\n`), end: () => {} };
  let start = 0, drawn = 0, phase: Progress['phase'] | undefined;
  return {
    onProgress: (p) => {
      const now = performance.now();
      if (p.phase !== phase) start = now;
      else if (now - drawn < 100) return;
      phase = p.phase;
      drawn = now;
      process.stderr.write(
        `\r\x1b[K${p.phase === 'weights' ? weightsText(what, p, now - start) : phases[p.phase]}`,
      );
    },
    say: (text) => void process.stderr.write(`\r\x1b[K${text}\n`),
    end: () => process.stderr.write('\r\x1b[K'),
  };
}

/** The same for a file that is being written. */
export function fileLine(): {
  onProgress?: (p: { loaded: number; total: number }) => void; end(): void;
} {
  const { onProgress, end } = loadingLine('written');
  return { ...(onProgress && { onProgress: (p) => onProgress({ phase: 'weights', ...p }) }), end };
}

function weightsText(what: string, { loaded, total }: Progress, ms: number): string {
  const speed = ms > 200 ? (1000 * loaded) / ms : 0;
  const rest =
    speed ? `, ${bytesText(speed)}/s, ${Math.ceil((total - loaded) / speed)} s left` : '';
  return `${what} ${bytesText(loaded)} of ${bytesText(total)}${rest}`;
}
