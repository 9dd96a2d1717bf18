// maths - TeX to typeset formulas. Loaded lazily. KaTeX builds nodes and sets their styles through
// the object model, which the page's policy allows where it forbids style attributes in text.

import katex from 'katex';
import 'katex/dist/katex.min.css';

export function typeset(element: HTMLElement): void {
  const displayMode =
    element.classList.contains('math-display') || element.classList.contains('math-wide');
  katex.render(element.textContent ?? '', element, {
    displayMode, throwOnError: false, trust: false, maxExpand: 200, maxSize: 50,
  });
  element.classList.remove('math'); // done
  element.classList.add('maths');
}
