// watch - a canvas in the terminal, drawn anew after each step; elsewhere each step is a line.

import type { CanvasStep, Model } from '../engine/model.js';

const LETTERS = 6; // of a token, about: how much room a canvas is given

/** Columns that a character takes. */
function widthOf(c: string): number {
  if (/[\p{M}\p{Cf}]/u.test(c)) return 0;
  const wide = /[\p{sc=Han}\p{sc=Hira}\p{sc=Kana}\p{sc=Hang}\p{Emoji_Presentation}\u3000-\u303f]/u;
  return wide.test(c) || /[\uff01-\uff60\uffe0-\uffe6]/.test(c) ? 2 : 1;
}

export class Watch {
  private readonly terminal = !!process.stdout.isTTY;
  private readonly color = this.terminal && !process.env.NO_COLOR;
  private lines = 0; // of the drawing; 0: none is there
  private columns = 80;

  constructor(private readonly model: Model) {}

  step(step: CanvasStep): void {
    const n = step.tokens.length;
    let out = this.terminal && !this.lines ? this.reserve(n) : '';
    if (this.terminal) out += '\r\x1b[J';
    const accepted = step.accepted.filter(Boolean).length;
    out += `canvas ${step.canvas + 1}, step ${step.step} of ${step.steps}: ${accepted} of ${n} `
      + `accepted, entropy ${step.meanEntropy.toFixed(3)}${this.terminal ? '\n' : ': '}`
      + this.tokens(step) + (this.terminal ? '\x1b8' : '\n');
    process.stdout.write(out);
  }

  /** Takes the drawing away; text goes where it was. */
  end(): void {
    if (this.lines) process.stdout.write('\r\x1b[J');
    this.lines = 0;
  }

  /** Room for a canvas below the cursor's line, whose place is remembered. */
  private reserve(n: number): string {
    const { columns = 80, rows = 0 } = process.stdout, known = columns >= 20;
    this.columns = known ? columns : 80;
    const most = known && rows > 4 ? rows - 2 : 20;
    this.lines = Math.min(most, Math.floor((n * LETTERS) / this.columns) + 3);
    return `${'\n'.repeat(this.lines)}\x1b[${this.lines}A\x1b7`;
  }

  /** The likely tokens: solid where the step accepted them, faint elsewhere. */
  private tokens({ tokens, accepted }: CanvasStep): string {
    const room = this.terminal ? (this.lines - 1) * this.columns : Infinity;
    let out = '', used = 0, faint = false;
    for (const [i, id] of tokens.entries()) {
      const piece =
        this.model.detokenize(Int32Array.of(id), true).replace(/[\0-\x1f\x7f-\x9f]/g, ' ');
      for (const c of piece) used += widthOf(c);
      if (used >= room) break;
      if (this.color && faint === accepted[i]) {
        faint = !accepted[i];
        out += faint ? '\x1b[2m' : '\x1b[0m';
      }
      out += piece;
    }
    return out + (this.color ? '\x1b[0m' : '');
  }
}
