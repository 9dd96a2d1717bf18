// live - the answer that is being written: chunks come faster than frames, the page sees one change
// a frame, and a canvas a few times a second.

import { signal } from '@preact/signals';
import type { ChatCompletionChunk, DiffusionStep, Timings, Usage } from 'bezel';
import { say } from '../state/notices';
import { frameOf, type Frame } from './canvas';
import type { Message, Stats, ToolCall } from './types';

export interface Live {
  message: Message;
  /** Of the prompt, while it is read. */
  read: { done: number; total: number } | null;
  /** Tokens of the prompt; 0: not known yet. */
  prompt: number;
  tokens: number;
  tokensPerSecond: number;
  /** The canvas that is denoised; null: none is, or it has become text. */
  canvas: Frame | null;
}

/** null: nothing is being written. */
export const live = signal<Live | null>(null);

const CALM = 120; // milliseconds that a canvas is shown at least

/** Whole sentences, so that a screen reader does not stumble over halves. */
class Speaker {
  /** `said`: characters that need no saying, of an answer that goes on. */
  constructor(private said: number) {}

  update(text: string, done: boolean): void {
    const fresh = text.slice(this.said);
    const end = done ? fresh.length : (/^[\s\S]*[.!?:\n](?=\s)/.exec(fresh)?.[0].length ?? 0);
    if (!end) return;
    say(fresh.slice(0, end).replace(/[*_`#|]/g, ''));
    this.said += end;
  }
}

/** A call may come in pieces, and end in the middle. */
function isWhole(call: ToolCall): boolean {
  try {
    JSON.parse(call.arguments);
    return true;
  } catch {
    return false;
  }
}

export class Writer {
  private frame = 0;
  private timer: ReturnType<typeof setTimeout> | undefined;
  private shown = 0; // when the page last saw a change
  private read: Live['read'] = null;
  private prompt = 0;
  private tokens = 0;
  private first = 0;
  private content: string;
  private reasoning: string;
  private calls: ToolCall[] = [];
  private usage: Usage | null = null;
  private timings: Timings | null = null;
  private canvas: Frame | null = null;
  private readonly frames: Frame[] = [];
  private readonly speaker: Speaker;
  /** The model said that it was cut off by a limit. */
  cut = false;

  constructor(private readonly start: Message) {
    this.content = start.content;
    this.reasoning = start.reasoning;
    this.speaker = new Speaker(start.content.length);
    this.show();
  }

  add(chunk: ChatCompletionChunk): void {
    if (chunk.diffusion_step) return this.addStep(chunk.diffusion_step);
    if (chunk.usage) this.usage = chunk.usage;
    if (chunk.timings) this.timings = chunk.timings;
    if (chunk.prompt_progress) {
      this.prompt = chunk.prompt_progress.total;
      this.read = { done: chunk.prompt_progress.processed, total: this.prompt };
    }
    for (const { delta, finish_reason } of chunk.choices) {
      if (finish_reason === 'length') this.cut = true;
      if (delta.content || delta.reasoning_content || delta.tool_calls) {
        this.read = null;
        this.canvas = null; // this is what became of it
        this.first ||= performance.now();
        if (!this.frames.length) this.tokens++; // a canvas's are counted by its last step
      }
      this.content += delta.content ?? '';
      this.reasoning += delta.reasoning_content ?? '';
      for (const { index, id, function: f } of delta.tool_calls ?? []) {
        const so = this.calls[index] ?? { id: id ?? '', name: f.name ?? '', arguments: '' };
        this.calls[index] = { ...so, arguments: so.arguments + f.arguments };
      }
    }
    this.frame ||= requestAnimationFrame(() => {
      this.frame = 0;
      this.show();
    });
  }

  /** A step of a canvas. */
  addStep(step: DiffusionStep): void {
    this.read = null;
    this.first ||= performance.now();
    this.canvas = frameOf(step);
    this.frames.push(this.canvas);
    this.tokens += step.final?.length ?? 0;
    this.timer ??= setTimeout(() => {
      this.timer = undefined;
      if (!this.frame) this.show();
    }, Math.max(0, this.shown + CALM - performance.now()));
  }

  get message(): Message {
    return {
      ...this.start, content: this.content, reasoning: this.reasoning,
      toolCalls: this.calls.filter(isWhole),
    };
  }

  /** How it was denoised. An answer that goes on from words without a canvas has lost its
   *  beginning. */
  get made(): Frame[] | null {
    return this.frames.length && !this.start.content ? this.frames : null;
  }

  private show(): void {
    this.shown = performance.now();
    const seconds = this.first ? (this.shown - this.first) / 1000 : 0;
    const message = this.message;
    live.value = {
      message,
      read: this.read,
      prompt: this.prompt,
      tokens: this.tokens,
      tokensPerSecond: seconds > 0.25 ? this.tokens / seconds : 0,
      canvas: this.canvas,
    };
    this.speaker.update(message.content, false);
  }

  /** The answer is this text. */
  replace(content: string, usage: Usage, timings: Timings): void {
    this.content = content;
    this.usage = usage;
    this.timings = timings;
    this.canvas = null;
    this.show();
  }

  /** Nothing more comes: forget the frame that waits, say the rest. */
  end(model: string, backend: Stats['backend']): Stats | null {
    cancelAnimationFrame(this.frame);
    clearTimeout(this.timer);
    this.speaker.update(this.content, true);
    if (!this.timings) return null;
    return {
      promptTokens: this.usage?.prompt_tokens ?? this.timings.cache_n + this.timings.prompt_n,
      cachedTokens: this.timings.cache_n,
      tokens: this.timings.predicted_n,
      firstToken: this.timings.ttft_ms / 1000,
      tokensPerSecond: this.timings.predicted_per_second,
      steps: this.usage?.diffusion?.steps ?? 0,
      model,
      backend,
    };
  }
}
