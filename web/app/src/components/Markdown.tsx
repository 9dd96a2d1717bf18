// Markdown - an answer's text. Blocks that are final are never touched again, however long the answer grows.

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
    if (this.props.block.final && this.element.current) enrich(this.element.current).catch(notifyError);
  }

  override render() {
    return <div ref={this.element} dangerouslySetInnerHTML={{ __html: this.props.block.html }} />;
  }
}

export function Markdown({ text, done }: { text: string; done: boolean }) {
  const stream = useMemo(() => new MarkdownStream(), []);
  const blocks = stream.update(text, done);
  return <div class="markdown">{blocks.map((block, i) => block.html && <BlockView key={i} block={block} />)}</div>;
}
