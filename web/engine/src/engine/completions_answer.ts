// completions_answer - one answer being made: the prompt read, tokens drawn, all of it timed and
// counted.
//
// Below it is a conversation of any backend; above it the shapes of completions.ts.

import type { Timings, Usage } from '../api/completions_types.js';
import type { Stop } from './boundary.js';
import type { CanvasStep, Conversation, ConversationOptions, Piece } from './model.js';

/** Where and when an answer is made. */
export interface Place {
  conversation: Conversation;
  signal: AbortSignal;
  /** performance.now() when it was asked for, and when its turn came. */
  asked: number;
  begun: number;
  /** Called before something is computed: it may be others' turn first. */
  go(): Promise<void> | undefined;
  /** Called when something was, until the next `go`. */
  rest(): void;
}

/** A token, or a canvas of them; how far a prompt is read; a step of a canvas. */
export type Step =
  { piece: Piece } | { read: number; of: number; kept: number } | { canvas: CanvasStep };

/** A random seed where nobody chose one. */
export function freshSeed(): bigint {
  return crypto.getRandomValues(new BigUint64Array(1))[0] as bigint;
}

export class Answer {
  stop: Stop = 'cancelled';
  private promptTokens = 0;
  private kept = 0;
  private drawn = 0;
  private readAt = 0; // when the prompt was read
  private first = 0; // when the first token came
  private last = 0;
  private canvases = 0;
  private denoised = 0; // steps

  constructor(private readonly place: Place) {}

  /** How far the prompt is read (where wanted), then every token. Ends with `stop` set. */
  async *steps(
    ids: Int32Array, options: ConversationOptions, progress: boolean,
  ): AsyncGenerator<Step, void, void> {
    const { conversation, signal } = this.place;
    this.promptTokens = ids.length;
    try {
      if (progress) yield* this.readTelling(ids);
      else this.kept = await this.readPrompt(ids);
      this.readAt = performance.now();
      const wish = { ...options, signal };
      const drawn: AsyncGenerator<Piece | CanvasStep, { stop: Stop }, void> =
        conversation.denoise?.(wish) ?? conversation.generate(wish);
      try {
        for (let next; (next = await this.next(drawn));) yield* this.taken(next);
      } finally {
        await drawn.return({ stop: 'cancelled' }); // it has ended, unless the reader left
      }
    } catch (e) {
      // whatever the backend calls it, the caller's reason is what happened
      signal.throwIfAborted();
      throw e;
    }
    this.last = performance.now();
    if (this.stop === 'cancelled') signal.throwIfAborted();
  }

  /** Only read the prompt: no token is drawn. */
  async *read(ids: Int32Array): AsyncGenerator<never, void, void> {
    this.promptTokens = ids.length;
    this.kept = await this.readPrompt(ids);
    this.last = performance.now();
    this.stop = 'length';
  }

  private async readPrompt(
    ids: Int32Array, onProgress?: (done: number, total: number) => void,
  ): Promise<number> {
    const { conversation, signal } = this.place;
    try {
      await this.place.go();
      return await conversation.set(ids, {
        signal, between: () => this.place.go(), ...(onProgress && { onProgress }),
      });
    } finally {
      this.place.rest();
    }
  }

  private async *readTelling(ids: Int32Array): AsyncGenerator<Step, void, void> {
    let news: [done: number, total: number] | undefined, over = false;
    let wake = (): void => {};
    const onProgress = (done: number, total: number): void => {
      news = [done, total];
      wake();
    };
    const reading = this.readPrompt(ids, onProgress).finally(() => {
      over = true;
      wake();
    });
    reading.catch(() => {}); // it is awaited below
    try {
      while (news || !over) {
        if (news) {
          const [done, total] = news as [number, number];
          news = undefined;
          yield { read: done + ids.length - total, of: ids.length, kept: ids.length - total };
        } else await new Promise<void>((resolve) => (wake = resolve));
      }
    } finally {
      this.kept = await reading;
    }
  }

  /** The next token, or step of a canvas, in its slice of time; undefined: the text has ended. */
  private async next<T>(
    drawn: AsyncGenerator<T, { stop: Stop }, void>,
  ): Promise<T | undefined> {
    const turn = this.place.go();
    if (turn) await turn;
    const next = await drawn.next();
    this.place.rest();
    if (!next.done) return next.value;
    this.stop = next.value?.stop ?? 'cancelled'; // nothing: it was ended from outside
    return undefined;
  }

  private *taken(next: Piece | CanvasStep): Generator<Step> {
    if ('id' in next) {
      this.count(1);
      yield { piece: next };
      return;
    }
    this.denoised++;
    const { final } = next;
    if (final) {
      this.canvases++;
      this.count(final.ids.length);
    }
    yield { canvas: next };
    if (final) yield { piece: { id: final.ids.at(-1) as number, text: final.text } };
  }

  private count(tokens: number): void {
    this.last = performance.now();
    if (!this.drawn) this.first = this.last;
    this.drawn += tokens;
  }

  get usage(): Usage {
    return {
      prompt_tokens: this.promptTokens,
      completion_tokens: this.drawn,
      total_tokens: this.promptTokens + this.drawn,
      prompt_tokens_details: { cached_tokens: this.kept },
      ...diffusionUsage(this.drawn, this.canvases, this.denoised),
    };
  }

  get timings(): Timings {
    const { asked, begun } = this.place;
    const read = this.promptTokens - this.kept, came = this.first || this.last;
    // the tokens of a canvas come together, after all of its steps
    const first = this.denoised ? this.readAt : came;
    const timed = this.denoised ? this.drawn : this.drawn - 1;
    const perSecond = (n: number, ms: number): number => (n > 0 && ms > 0 ? (1000 * n) / ms : 0);
    return {
      cache_n: this.kept,
      prompt_n: read,
      prompt_ms: first - begun,
      prompt_per_second: perSecond(read, first - begun),
      predicted_n: this.drawn,
      predicted_ms: this.last - first,
      predicted_per_second: perSecond(timed, this.last - first),
      queue_ms: begun - asked,
      ttft_ms: came - asked,
    };
  }
}

const diffusionUsage = (
  tokens: number, canvases: number, steps: number,
): Pick<Usage, 'diffusion'> =>
  (steps ? { diffusion: { canvases, steps, tokens_per_step: tokens / steps } } : {});

/** Usage of all answers to a request: a prompt counts once, its cached tokens as the first
 *  answer found them. */
export class Tally {
  private prompt = 0;
  private cached = 0;
  private drawn = 0;
  private canvases = 0;
  private steps = 0;

  add({ usage }: Answer, first: boolean): void {
    if (first) {
      this.prompt += usage.prompt_tokens;
      this.cached += usage.prompt_tokens_details.cached_tokens;
    }
    this.drawn += usage.completion_tokens;
    this.canvases += usage.diffusion?.canvases ?? 0;
    this.steps += usage.diffusion?.steps ?? 0;
  }

  get usage(): Usage {
    const { prompt, cached, drawn } = this;
    return {
      prompt_tokens: prompt,
      completion_tokens: drawn,
      total_tokens: prompt + drawn,
      prompt_tokens_details: { cached_tokens: cached },
      ...diffusionUsage(drawn, this.canvases, this.steps),
    };
  }
}

/** Times of several answers as those of one: the first one's waiting, everybody's reading and
 *  drawing. */
export function addTimings(
  all: Timings | undefined, more: Timings | undefined,
): Timings | undefined {
  if (!all || !more) return all ?? more;
  const prompt_n = all.prompt_n + more.prompt_n, prompt_ms = all.prompt_ms + more.prompt_ms;
  const predicted_n = all.predicted_n + more.predicted_n;
  const predicted_ms = all.predicted_ms + more.predicted_ms;
  return {
    ...all, prompt_n, prompt_ms, predicted_n, predicted_ms,
    cache_n: all.cache_n + more.cache_n,
    prompt_per_second: prompt_ms > 0 ? (1000 * prompt_n) / prompt_ms : 0,
    predicted_per_second: predicted_ms > 0 ? (1000 * predicted_n) / predicted_ms : 0,
  };
}
