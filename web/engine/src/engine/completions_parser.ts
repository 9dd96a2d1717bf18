// completions_parser - the core's chat parser: the model's text, piece by piece, to content,
// thoughts and tool calls.

import type { ChatPtr } from './boundary.js';
import type { Core } from './wasm.js';

export interface ChatParserOptions {
  /** Report thoughts; else they are dropped. */
  thinking: boolean;
  /** The prompt already opened them. */
  starts_in_thought: boolean;
  /** JSON of the tools: some repairs need a property's type. */
  tools: string | undefined;
  /** The answer keeps to a constraint: calls come piece by piece, and each feed is the text of one
   *  token, since text may spell tags. */
  constrained: boolean;
}

/** Exactly one kind each. `arguments` is a JSON object as text. Of a constrained answer the name
 *  comes alone, and then the arguments by themselves, piece by piece. */
export type ChatEvent =
  { content: string } | { reasoning: string } | { name: string; arguments?: string }
  | { arguments: string };

export class ChatParser {
  private readonly p: ChatPtr;

  constructor(
    private readonly core: Core, { tools, ...flags }: ChatParserOptions,
  ) {
    const json = `${JSON.stringify(flags).slice(0, -1)}${tools ? `,"tools":${tools}` : ''}}`;
    this.p = core.with(json, (p, n) => core.check(core.exports.bz_wasm_chat_open(p, n)));
  }

  feed(text: string): ChatEvent[] {
    if (!text) return [];
    this.core.with(text, (p, n) =>
      this.core.checkNumber(this.core.exports.bz_wasm_chat_feed(this.p, p, n)));
    return this.events();
  }

  /** What was held back. A call still open is read as if it had been closed. */
  end(): ChatEvent[] {
    this.core.checkNumber(this.core.exports.bz_wasm_chat_end(this.p));
    return this.events();
  }

  private events(): ChatEvent[] {
    const json = this.core.resultText();
    return json ? (JSON.parse(json) as ChatEvent[]) : [];
  }

  close(): void {
    this.core.exports.bz_wasm_chat_close(this.p);
  }
}
