// parse - a model's markdown to safe HTML, block by block.
//
// An answer grows at its end, so only its last blocks can still change: those are lexed again with each frame, all
// others stay as they are. What a model writes is untrusted: it passes DOMPurify before it comes near the page.

import DOMPurify from 'dompurify';
import { Marked, type Token, type TokenizerAndRendererExtension } from 'marked';

const escape = (text: string) => text.replace(/[&<>"]/g, (c) => `&#${c.charCodeAt(0)};`);

const mathHtml = (tex: string, display: boolean) =>
  `<${display ? 'div' : 'span'} class="math${display ? ' math-display' : ''}">${escape(tex)}</${display ? 'div' : 'span'}>`;

const blockMath: TokenizerAndRendererExtension = {
  name: 'blockMath',
  level: 'block',
  start: (src) => /(?:^|\n) {0,3}(?:\$\$|\\\[)/.exec(src)?.index,
  tokenizer(src) {
    const found = /^ {0,3}(?:\$\$([\s\S]+?)\$\$|\\\[([\s\S]+?)\\\])[ \t]*(?:\n|$)/.exec(src);
    return found ? { type: 'blockMath', raw: found[0], text: (found[1] ?? found[2] ?? '').trim() } : undefined;
  },
  renderer: (token) => mathHtml(String(token['text']), true),
};

/** "$5 and $6" is money: the closing dollar follows no space and no digit comes after it. */
const inlineMath: TokenizerAndRendererExtension = {
  name: 'inlineMath',
  level: 'inline',
  start: (src) => /\$|\\[([]/.exec(src)?.index,
  tokenizer(src) {
    const found = /^\$\$([^$]+?)\$\$|^\$(?![\s$])((?:\\.|[^$\\\n])*?[^\s\\$])\$(?!\d)|^\\\(([\s\S]+?)\\\)|^\\\[([\s\S]+?)\\\]/.exec(src);
    if (!found) return undefined;
    const display = found[1] !== undefined || found[4] !== undefined;
    return { type: 'inlineMath', raw: found[0], text: (found[1] ?? found[2] ?? found[3] ?? found[4] ?? '').trim(), display };
  },
  renderer: (token) => mathHtml(String(token['text']), false).replace('class="math"', token['display'] ? 'class="math math-wide"' : 'class="math"'),
};

const marked = new Marked({ gfm: true, breaks: false }, {
  extensions: [blockMath, inlineMath],
  renderer: {
    code({ text, lang }) {
      const name = /^[\w+#.-]*/.exec(lang ?? '')?.[0] ?? '';
      return `<figure class="code"><figcaption><span>${escape(name || 'text')}</span><button type="button" data-copy>Copy</button></figcaption>` +
        `<pre tabindex="0"><code data-lang="${escape(name)}">${escape(text)}</code></pre></figure>`;
    },
    table(token) {
      const row = (cells: typeof token.header, tag: string) =>
        `<tr>${cells.map((cell) => `<${tag}${cell.align ? ` class="align-${cell.align}"` : ''}>${this.parser.parseInline(cell.tokens)}</${tag}>`).join('')}</tr>`;
      return `<div class="table" tabindex="0"><table><thead>${row(token.header, 'th')}</thead><tbody>${token.rows.map((r) => row(r, 'td')).join('')}</tbody></table></div>`;
    },
    // A picture would be a request to wherever the model says.
    image: ({ text, href }) => `<span class="no-image">[${escape(text || href)}]</span>`,
    checkbox: ({ checked }) => (checked ? '☑ ' : '☐ '),
    html: ({ text }) => escape(text),
  },
});

const purify = DOMPurify(window);
purify.addHook('afterSanitizeAttributes', (node) => {
  if (node.tagName !== 'A') return;
  node.setAttribute('rel', 'noopener noreferrer');
  node.setAttribute('target', '_blank');
});

const allowed = {
  ALLOWED_TAGS: ['p', 'br', 'hr', 'em', 'strong', 'del', 'code', 'pre', 'blockquote', 'ul', 'ol', 'li', 'a', 'h1', 'h2', 'h3', 'h4', 'h5', 'h6', 'table', 'thead', 'tbody', 'tr', 'th', 'td', 'div', 'span', 'figure', 'figcaption', 'button'],
  ALLOWED_ATTR: ['href', 'class', 'start', 'tabindex', 'type', 'data-copy', 'data-lang'],
  ADD_URI_SAFE_ATTR: ['tabindex', 'start', 'type'], // numbers and words, not addresses
  ALLOWED_URI_REGEXP: /^(?:https?|mailto):/i,
};

function toHtml(tokens: Token[]): string {
  return purify.sanitize(marked.parser(tokens), allowed);
}

export interface Block {
  html: string;
  raw: string;
  /** Nothing that follows can change it. */
  final: boolean;
}

export class MarkdownStream {
  blocks: Block[] = [];
  private text = '';
  /** Where the text of blocks that may change starts, and how many blocks are before it. */
  private tail = 0;
  private settled = 0;

  /** The whole text so far; says the blocks, of which those unchanged are the same objects. */
  update(text: string, done: boolean): Block[] {
    if (!text.startsWith(this.text.slice(0, this.tail))) this.restart();
    this.text = text;
    const tokens = marked.lexer(text.slice(this.tail));
    const fresh = tokens.map((token, i): Block => {
      const before = this.blocks[this.settled + i];
      const final = done || i < tokens.length - 2;
      if (before?.raw === token.raw) return before.final === final ? before : { ...before, final };
      return { html: token.type === 'space' ? '' : toHtml([token]), raw: token.raw, final };
    });
    this.blocks = [...this.blocks.slice(0, this.settled), ...fresh];
    // The lexer may rewrite white space; a block whose raw text is not where it should be is lexed again next time.
    for (const block of fresh) {
      if (!block.final || done || !text.startsWith(block.raw, this.tail)) break;
      this.tail += block.raw.length;
      this.settled++;
    }
    return this.blocks;
  }

  private restart(): void {
    this.blocks = [];
    this.tail = 0;
    this.settled = 0;
  }
}
