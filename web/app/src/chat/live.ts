// live - the answer that is being written: chunks come faster than frames, the page sees one change
// a frame.

import { signal } from '@preact/signals';
import type { ChatCompletionChunk, Timings, Usage } from 'bezel';
import { say } from '../state/notices';
import type { Message, Stats, ToolCall } from './types';

export interface Live {
  message: Message;
  /** Of the prompt, while it is read. */
  read: { done: number; total: number } | null;
  /** Tokens of the prompt; 0: not known yet. */
  prompt: number;
  tokens: number;
  tokensPerSecond: number;
}

/** null: nothing is being written. */
export const live = signal<Live | null>(null);

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

export class Writer {
  private frame = 0;
  private read: Live['read'] = null;
  private prompt = 0;
  private tokens = 0;
  private first = 0;
  private content: string;
  private reasoning: string;
  private calls: ToolCall[] = [];
  private usage: Usage | null = null;
  private timings: Timings | null = null;
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
        this.first ||= performance.now();
        this.tokens++;
      }
      this.content += delta.content ?? '';
      this.reasoning += delta.reasoning_content ?? '';
      for (const call of delta.tool_calls ?? [])
        this.calls.push({
          id: call.id, name: call.function.name, arguments: call.function.arguments,
        });
    }
    this.frame ||= requestAnimationFrame(() => {
      this.frame = 0;
      this.show();
    });
  }

  get message(): Message {
    return {
      ...this.start, content: this.content, reasoning: this.reasoning, toolCalls: this.calls,
    };
  }

  private show(): void {
    const seconds = this.first ? (performance.now() - this.first) / 1000 : 0;
    const message = this.message;
    live.value = {
      message,
      read: this.read,
      prompt: this.prompt,
      tokens: this.tokens,
      tokensPerSecond: seconds > 0.25 ? this.tokens / seconds : 0,
    };
    this.speaker.update(message.content, false);
  }

  /** Nothing more comes: forget the frame that waits, say the rest. */
  end(model: string, backend: Stats['backend']): Stats | null {
    cancelAnimationFrame(this.frame);
    this.speaker.update(this.content, true);
    if (!this.timings) return null;
    return {
      promptTokens: this.usage?.prompt_tokens ?? this.timings.cache_n + this.timings.prompt_n,
      cachedTokens: this.timings.cache_n,
      tokens: this.timings.predicted_n,
      firstToken: this.timings.ttft_ms / 1000,
      tokensPerSecond: this.timings.predicted_per_second,
      model,
      backend,
    };
  }
}
