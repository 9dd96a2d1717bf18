// parse - a model's markdown to safe HTML, block by block.
//
// An answer grows at its end, so only its last blocks can still change: those are lexed again with
// each frame, all others stay as they are. What a model writes is untrusted: it passes DOMPurify
// before it comes near the page.

import DOMPurify from 'dompurify';
import {
  Marked, type MarkedExtension, type Token, type TokenizerAndRendererExtension, type Tokens,
} from 'marked';

const escape = (text: string) => text.replace(/[&<>"]/g, (c) => `&#${c.charCodeAt(0)};`);

const mathHtml = (tex: string, display: boolean) =>
  `<${display ? 'div' : 'span'} class="math${display ? ' math-display' : ''}">${escape(tex)}`
    + `</${display ? 'div' : 'span'}>`;

const blockMath: TokenizerAndRendererExtension = {
  name: 'blockMath',
  level: 'block',
  start: (src) => /(?:^|\n) {0,3}(?:\$\$|\\\[)/.exec(src)?.index,
  tokenizer(src) {
    const found = /^ {0,3}(?:\$\$([\s\S]+?)\$\$|\\\[([\s\S]+?)\\\])[ \t]*(?:\n|$)/.exec(src);
    return found
      ? { type: 'blockMath', raw: found[0], text: (found[1] ?? found[2] ?? '').trim() }
      : undefined;
  },
  renderer: (token) => mathHtml(String(token['text']), true),
};

const MATHS = new RegExp([
  /^\$\$([^$]+?)\$\$/, // $$ … $$
  /^\$(?![\s$])((?:\\.|[^$\\\n])*?[^\s\\$])\$(?!\d)/, // $ … $
  /^\\\(([\s\S]+?)\\\)/, // \( … \)
  /^\\\[([\s\S]+?)\\\]/, // \[ … \]
].map((one) => one.source).join('|'));

/** "$5 and $6" is money: the closing dollar follows no space and no digit comes after it. */
const inlineMath: TokenizerAndRendererExtension = {
  name: 'inlineMath',
  level: 'inline',
  start: (src) => /\$|\\[([]/.exec(src)?.index,
  tokenizer(src) {
    const found = MATHS.exec(src);
    if (!found) return undefined;
    const display = found[1] !== undefined || found[4] !== undefined;
    return {
      type: 'inlineMath',
      raw: found[0],
      text: (found[1] ?? found[2] ?? found[3] ?? found[4] ?? '').trim(),
      display,
    };
  },
  renderer: (token) => mathHtml(String(token['text']), false).replace(
    'class="math"', token['display'] ? 'class="math math-wide"' : 'class="math"',
  ),
};

// ---- HTML that models write, as far as it cannot act ----

/** Everything is text but these tags, and those only without attributes: so none can bring a
 *  handler, a style or an address. */
const safeTags = /&#60;(\/?(?:sub|sup|kbd)|br ?\/?)&#62;/gi;
const safeHtml = (text: string) => escape(text).replace(safeTags, '<$1>');

const DEEPEST = 8; // of details in details: nobody reads further down
let depth = 0;

/** Where the element that begins at 0 ends: [the end of its text, what comes after it]. One that
 *  is not closed yet takes the rest. */
function endOfDetails(src: string): [number, number] {
  let open = 0;
  for (const { 0: tag, index } of src.matchAll(/<details(?: open)?>|<\/details>/gi)) {
    open += tag[1] === '/' ? -1 : 1;
    if (open === 0) return [index, index + tag.length];
  }
  return [src.length, src.length];
}

interface DetailsToken extends Tokens.Generic {
  open: boolean;
  summary: Token[];
  tokens: Token[];
}

const details: TokenizerAndRendererExtension = {
  name: 'details',
  level: 'block',
  start: (src) => /\n {0,3}<details(?: open)?>/i.exec(src)?.index,
  tokenizer(src): DetailsToken | undefined {
    const begun = /^ {0,3}<details( open)?>\s*(?:<summary>([\s\S]*?)<\/summary>)?/i.exec(src);
    if (!begun || depth >= DEEPEST) return undefined;
    const [end, after] = endOfDetails(src);
    if (end < begun[0].length) return undefined; // its summary is another one's
    const rest = /^[ \t]*(?:\n|$)/.exec(src.slice(after))?.[0] ?? '';
    const summary: Token[] = [];
    this.lexer.inline((begun[2] ?? 'Details').trim(), summary);
    depth++;
    try {
      return {
        type: 'details',
        raw: src.slice(0, after) + rest,
        open: begun[1] !== undefined,
        summary,
        tokens: this.lexer.blockTokens(src.slice(begun[0].length, end), []),
      };
    } finally {
      depth--;
    }
  },
  renderer(token) {
    const { open, summary, tokens } = token as DetailsToken;
    return `<details${open ? ' open' : ''}><summary>${this.parser.parseInline(summary)}`
      + `</summary>${this.parser.parse(tokens)}</details>`;
  },
};

// ---- footnotes ----
// "[^1]" in the text, "[^1]: …" below it. Other names are too often regular expressions.

const noteName = '(\\d{1,3}|(?:note|fn|ref)[\\w-]{0,20})';
const noteMark = new RegExp(`^\\[\\^${noteName}\\](?!:)`);
const noteText = new RegExp(`^\\[\\^${noteName}\\]:[ \\t]*(.*(?:\\n(?: {2,}|\\t)\\S.*)*)(?:\\n|$)`);

const footnoteMark: TokenizerAndRendererExtension = {
  name: 'footnoteMark',
  level: 'inline',
  start: (src) => src.indexOf('[^'),
  tokenizer(src) {
    const found = noteMark.exec(src);
    return found ? { type: 'footnoteMark', raw: found[0], text: found[1] } : undefined;
  },
  renderer: ({ text }) =>
    `<sup><button type="button" class="note" data-note="${escape(text)}">${escape(text)}`
      + '</button></sup>',
};

const footnote: TokenizerAndRendererExtension = {
  name: 'footnote',
  level: 'block',
  start: (src) => /\n\[\^[\w-]+\]:/.exec(src)?.index,
  tokenizer(src) {
    const found = noteText.exec(src);
    if (!found) return undefined;
    const tokens: Token[] = [];
    this.lexer.inline((found[2] ?? '').replace(/\n\s+/g, ' '), tokens);
    return { type: 'footnote', raw: found[0], text: found[1], tokens };
  },
  renderer(token) {
    const name = escape(String(token['text']));
    return `<p class="footnote" tabindex="-1" data-noted="${name}"><sup>${name}</sup> `
      + `${this.parser.parseInline(token.tokens ?? [])}</p>`;
  },
};

const LONG = 24; // characters of a cell that may take several lines, but not one for each word

/** "2019–2026" is one word, which browsers break behind the dash. In scripts without spaces a line
 *  may end anywhere. */
const lengthOf = (text: string): string | false =>
  text.length > LONG ? 'long' : !/[\s\p{Lo}]/u.test(text) && 'word';

const extension: MarkedExtension = {
  extensions: [blockMath, inlineMath, details, footnote, footnoteMark],
  renderer: {
    code({ text, lang }) {
      const name = /^[\w+#.-]*/.exec(lang ?? '')?.[0] ?? '';
      return `<figure class="code" dir="ltr"><figcaption><span>${escape(name || 'text')}`
        + '</span><button type="button" data-copy>Copy</button></figcaption>'
        + `<pre tabindex="0"><code data-lang="${escape(name)}">${escape(text)}</code></pre>`
        + '</figure>';
    },
    table(token) {
      const look = ({ align, text }: Tokens.TableCell) =>
        [align && `align-${align}`, lengthOf(text)].filter(Boolean).join(' ');
      const show = (cell: Tokens.TableCell, tag: string) =>
        `<${tag} class="${look(cell)}">${this.parser.parseInline(cell.tokens)}</${tag}>`;
      const row = (cells: typeof token.header, tag: string) =>
        `<tr>${cells.map((cell) => show(cell, tag)).join('')}</tr>`;
      return `<div class="table" tabindex="0"><table><thead>${row(token.header, 'th')}`
        + `</thead><tbody>${token.rows.map((r) => row(r, 'td')).join('')}</tbody></table></div>`;
    },
    // A picture would be a request to wherever the model says.
    image: ({ text, href }) => `<span class="no-image">[${escape(text || href)}]</span>`,
    listitem: function (item) {
      return `<li${item.task ? ' class="task"' : ''}>${this.parser.parse(item.tokens)}</li>`;
    },
    checkbox: ({ checked }) => `<span class="check">${checked ? '☑' : '☐'}</span> `,
    html: ({ text, block }) =>
      (block ? `<p class="raw">${safeHtml(text.trim())}</p>` : safeHtml(text)),
  },
};

const forAnswers = new Marked({ gfm: true, breaks: false }, extension);
/** Whoever writes a question ends lines where they shall end. */
const forQuestions = new Marked({ gfm: true, breaks: true }, extension);

const purify = DOMPurify(window);
purify.addHook('afterSanitizeAttributes', (node) => {
  if (node.tagName !== 'A') return;
  node.setAttribute('rel', 'noopener noreferrer');
  node.setAttribute('target', '_blank');
});

const allowed = {
  ALLOWED_TAGS: [
    'p', 'br', 'hr', 'em', 'strong', 'del', 'code', 'pre', 'blockquote', 'ul', 'ol', 'li', 'a',
    'h1', 'h2', 'h3', 'h4', 'h5', 'h6', 'table', 'thead', 'tbody', 'tr', 'th', 'td', 'div', 'span',
    'figure', 'figcaption', 'button', 'sub', 'sup', 'kbd', 'details', 'summary',
  ],
  ALLOWED_ATTR: [
    'href', 'class', 'start', 'tabindex', 'type', 'dir', 'open', 'data-copy', 'data-lang',
    'data-note', 'data-noted',
  ],
  ADD_URI_SAFE_ATTR: ['tabindex', 'start', 'type'], // numbers and words, not addresses
  ALLOWED_URI_REGEXP: /^(?:https?|mailto):/i,
};

/** Text nested so deeply that it cannot be read as markdown is text. */
function unlessTooDeep<T>(act: () => T, plain: () => T): T {
  try {
    return act();
  } catch (e) {
    if (!(e instanceof RangeError)) throw e;
    depth = 0;
    return plain();
  }
}

const asText = (raw: string): Token[] => [{
  type: 'html', block: true, pre: false, raw, text: raw,
}];

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
  private readonly marked: Marked;

  constructor({ breaks = false } = {}) {
    this.marked = breaks ? forQuestions : forAnswers;
  }

  /** The whole text so far; says the blocks, of which those unchanged are the same objects. */
  update(text: string, done: boolean): Block[] {
    if (!text.startsWith(this.text.slice(0, this.tail))) this.restart();
    this.text = text;
    const rest = text.slice(this.tail);
    const tokens = unlessTooDeep<Token[]>(() => this.marked.lexer(rest), () => asText(rest));
    const fresh = tokens.map((token, i): Block => {
      const before = this.blocks[this.settled + i];
      const final = done || i < tokens.length - 2;
      if (before?.raw === token.raw) return before.final === final ? before : { ...before, final };
      return { html: token.type === 'space' ? '' : this.toHtml(token), raw: token.raw, final };
    });
    this.blocks = [...this.blocks.slice(0, this.settled), ...fresh];
    // The lexer may rewrite white space; a block whose raw text is not where it should be is lexed
    // again next time.
    for (const block of fresh) {
      if (!block.final || done || !text.startsWith(block.raw, this.tail)) break;
      this.tail += block.raw.length;
      this.settled++;
    }
    return this.blocks;
  }

  private toHtml(token: Token): string {
    const html =
      unlessTooDeep(() => this.marked.parser([token]), () => this.marked.parser(asText(token.raw)));
    return purify.sanitize(html, allowed);
  }

  private restart(): void {
    this.blocks = [];
    this.tail = 0;
    this.settled = 0;
  }
}
