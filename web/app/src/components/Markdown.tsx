// Markdown - the text of an answer, a thought or a question. Blocks that are final are never
// touched again, however long the answer grows.

import { Component, createRef } from 'preact';
import { useMemo } from 'preact/hooks';
import { enrich } from '../markdown/enrich';
import { MarkdownStream, type Block } from '../markdown/parse';
import { notifyError } from '../state/notices';

class BlockView extends Component<{ block: Block }> {
  private readonly element = createRef<HTMLDivElement>();

  override shouldComponentUpdate(next: { block: Block }) {
    return next.block !== this.props.block;
  }

  override componentDidMount() {
    this.enrich();
  }

  override componentDidUpdate() {
    this.enrich();
  }

  private enrich() {
    if (this.props.block.final && this.element.current)
      enrich(this.element.current).catch(notifyError);
  }

  override render() {
    return (
      <div ref={this.element} dir="auto"
        dangerouslySetInnerHTML={{ __html: this.props.block.html }} />
    );
  }
}

/** `breaks`: a new line is a new line. */
export function Markdown({
  text, done, breaks = false,
}: { text: string; done: boolean; breaks?: boolean }) {
  const stream = useMemo(() => new MarkdownStream({ breaks }), [breaks]);
  const blocks = stream.update(text, done);
  return (
    <div class="markdown">
      {blocks.map((block, i) => block.html && <BlockView key={i} block={block} />)}
    </div>
  );
}
