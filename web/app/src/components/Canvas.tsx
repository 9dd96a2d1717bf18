// Canvas - an answer that a diffusion model denoises: how it takes shape, and its steps afterwards.

import { useSignal } from '@preact/signals';
import { isSmall, progressOf, runsOf, textBefore, type Frame } from '../chat/canvas';
import { count } from '../lib/format';
import { isStill } from '../lib/motion';

const looks = { 2: 'sure', 1: 'likely', 0: 'open' } as const;

function Words({ frame, before = '' }: { frame: Frame; before?: string }) {
  return (
    <p class="canvas" dir="auto">
      {before}
      {runsOf(frame).map(({ sure, text }, i) => <span key={i} class={looks[sure]}>{text}</span>)}
    </p>
  );
}

/** A canvas that takes shape. Whoever wants nothing to move sees how far it is, then the text. */
export function Denoising({ frame }: { frame: Frame }) {
  const { step, steps } = frame;
  return (
    <div class="denoising">
      {!isStill.value && <div aria-hidden="true"><Words frame={frame} /></div>}
      {isStill.value && <div class="bar" aria-hidden="true">
        <div style={{ width: `${(100 * step) / steps}%` }} />
      </div>}
      <p class="steps-line">{progressOf(frame)}</p>
    </div>
  );
}

/** Every step of an answer, one at a time. */
export function Steps({ frames }: { frames: readonly Frame[] }) {
  const at = useSignal(frames.length - 1);
  const shown = Math.min(at.value, frames.length - 1), frame = frames[shown];
  if (!frame) return null;
  return (
    <section class="steps-box" aria-label="How the answer took shape">
      <Words frame={frame} before={textBefore(frames, frame)} />
      <div class="scrubber">
        <input type="range" min={1} max={frames.length} value={shown + 1} aria-label="Step"
          aria-valuetext={progressOf(frame)}
          onInput={(e) => (at.value = e.currentTarget.valueAsNumber - 1)} />
        <span class="steps-line">{progressOf(frame)}</span>
      </div>
      {!isSmall(frames) && <p class="hint">
        These {count(frames.length)} steps are too much for the history: they are here until you
        leave this conversation.
      </p>}
    </section>
  );
}
