// What models write beside plain markdown, and what hostile ones would like to: the HTML that the
// page makes of it.
import { MarkdownStream } from '../../../../web/app/src/markdown/parse';

const html = (text: string, options = {}): string => {
  const stream = new MarkdownStream(options);
  return stream.update(text, true).map((block) => block.html).join('');
};

const plain = {
  inline: html('H<sub>2</sub>O, x<sup>2</sup>, press <kbd>Ctrl</kbd>, one<br>two<BR/>three'),
  tasks: html('- [x] done\n- [ ] to do\n- neither'),
  notes: html('A claim.[^1] A class [^abc] stays.\n\n[^1]: Where it *stands*.\n    And more.'),
  details: html(
    'Before\n<details>\n<summary>More **here**</summary>\n\n- a\n- b\n\n'
      + '<details open><summary>Inner</summary>deep</details>\n</details>\n\nAfter',
  ),
  unclosed: html('<details><summary>S</summary>\n\ntext'),
  lines: html('one\ntwo', { breaks: true }),
  shown: html('<div>\n  <b>bold</b>\n</div>'),
};

const acts = 'globalThis.hacked=1';
const hostile = [
  `<sub onmouseover="${acts}">x</sub>`, `<br onload=${acts}>`,
  `<kbd style="position:fixed;inset:0">x</kbd>`,
  `<details ontoggle="${acts}" open><summary>x</summary></details>`,
  `<details open ontoggle=${acts}>x</details>`,
  `<details><summary onclick="${acts}">x</summary><img src=x onerror=${acts}></details>`,
  `<details>\n<summary><img src=x onerror=${acts}></summary>\n\n`
    + `<script>${acts}</script>\n</details>`,
  `<sub><sup><kbd></details></sub><details><script>${acts}</script>`,
  `<sup/onclick=${acts}>x</sup>`, `<sub\nonclick=${acts}>x</sub>`,
  `<svg><sub><style><img src=x onerror=${acts}></style></sub></svg>`,
  '<math><mtext><sub><mglyph><style><!--</style><img title="--&gt;&lt;img src=1 '
    + `onerror=${acts}&gt;">`,
  `<noscript><sub title="</noscript><img src=x onerror=${acts}>">`,
  '<form><sub></form><form><math><mtext></form><form><mglyph><style></math><img '
    + `src onerror=${acts}>`,
  `[^1" onclick="${acts}]: x`, `[^note" onclick="${acts}]`,
  `[^1]: <img src=x onerror=${acts}> [x](javascript:${acts})`,
  `[^1]: [x](#/settings) ![y](https://example.com/y.png)`,
  `- [x] <input onfocus=${acts} autofocus>`,
  `| <img src=x onerror=${acts}> | <sub onclick=${acts}> |\n|---|---|\n| a | b |`,
  '<a href="javascript:globalThis.hacked=1">x</a>',
  '<'.repeat(3000), '<sub>'.repeat(3000), '>'.repeat(6000) + ' deep', '<details>'.repeat(3000),
  '- '.repeat(4000) + 'x', '[^1]: '.repeat(3000), '*_'.repeat(3000), '\u0000<sub\u0000>x',
];
const started = performance.now();
const made = hostile.map((text) => html(text));
(globalThis as { markup?: unknown }).markup = {
  plain, made, seconds: (performance.now() - started) / 1000,
};
