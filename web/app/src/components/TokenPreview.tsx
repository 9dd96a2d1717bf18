// TokenPreview - examples as the model sees them, token by token: what it only reads, and what it
// learns to say.

import type { PreviewToken, TrainPreview } from 'bezel';
import { count } from '../lib/format';

/** Neighbours of one kind, so that a reader hears one mark and not fifty. */
function runs(tokens: readonly PreviewToken[]): PreviewToken[][] {
  const all: PreviewToken[][] = [];
  for (const token of tokens) {
    const last = all.at(-1);
    if (last && last[0]?.learned === token.learned) last.push(token);
    else all.push([token]);
  }
  return all;
}

const Token = ({ token: { text } }: { token: PreviewToken }) =>
  <span class={/^<.*>$/s.test(text) ? 'special' : ''}>{text.replace(/\n/g, '⏎\n')}</span>;

export function TokenPreview(
  { preview: { examples, tokens, learned, longest, shown } }: { preview: TrainPreview },
) {
  return (
    <details class="preview">
      <summary>
        {count(examples)} {examples === 1 ? 'example' : 'examples'}, {count(tokens)} tokens, of
        which {count(learned)} are learned; the longest has {count(longest)}
      </summary>
      <p class="hint">The model reads all of it, and learns to say <mark>what is marked</mark>.</p>
      <ol class="examples" tabIndex={0} aria-label="The first examples">
        {shown.map((example) => (
          <li key={example.line}>
            <span class="hint">line {example.line}</span>
            <p class="tokens">{runs(example.tokens).map((part, i) => (part[0]?.learned
              ? <mark key={i}>{part.map((token, k) => <Token key={k} token={token} />)}</mark>
              : <span key={i}>
                {part.map((token, k) => <Token key={k} token={token} />)}
              </span>))}</p>
          </li>
        ))}
      </ol>
    </details>
  );
}
