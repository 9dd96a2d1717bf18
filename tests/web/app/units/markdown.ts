// A long answer, fed to the page's markdown as it would grow: is it the same as in one piece, and
// what does a step cost?
import { MarkdownStream } from '../../../../web/app/src/markdown/parse';

const passage = `Some *text* with \`code\` and $x^2$, \
as long as a paragraph of an answer that goes on.

1. one
2. two with **bold**

   and a second paragraph

| a | b |
|---|---|
| 1 | \`2\` |

> a quotation
over two lines

$$\\sum_{i} x_i$$

~~~python
${'print("hello", 1 + 2)\n'.repeat(12)}~~~

`;
const text = passage.repeat(120), step = 37;
const stream = new MarkdownStream();
const times: number[] = [];
for (let n = step; n < text.length; n += step) {
  const before = performance.now();
  stream.update(text.slice(0, n), false);
  times.push(performance.now() - before);
}
const html = (s: MarkdownStream) => s.blocks.map((b) => b.html).join('\n');
stream.update(text, true);
const whole = new MarkdownStream();
whole.update(text, true);
const median = (list: number[]) => list.toSorted((a, b) => a - b)[list.length >> 1] ?? 0;
const result = {
  characters: text.length, same: html(stream) === html(whole), early: median(times.slice(0, 300)),
  late: median(times.slice(-300)),
};
(globalThis as { markdown?: typeof result }).markdown = result;
