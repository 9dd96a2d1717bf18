// reveal - brings words of the page into view, and marks them where the browser can mark without
// changing the page.

const MARK = 'found';

/** The first place of these words below an element. */
function rangeOf(element: Element, words: string): Range | null {
  const wanted = words.toLowerCase();
  const texts = document.createTreeWalker(element, NodeFilter.SHOW_TEXT);
  for (let node = texts.nextNode(); node; node = texts.nextNode()) {
    const at = (node.nodeValue ?? '').toLowerCase().indexOf(wanted);
    if (at < 0 || node.parentElement?.closest('details:not([open])')) continue;
    const range = document.createRange();
    range.setStart(node, at);
    range.setEnd(node, at + words.length);
    return range;
  }
  return null;
}

/** Without the words, the element. */
export function reveal(element: Element, words: string): void {
  const range = words ? rangeOf(element, words) : null;
  (range?.startContainer.parentElement ?? element).scrollIntoView({ block: 'center' });
  if (!('highlights' in CSS)) return;
  CSS.highlights.delete(MARK);
  if (range) CSS.highlights.set(MARK, new Highlight(range));
}
