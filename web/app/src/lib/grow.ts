// grow - a text field as tall as its text, where CSS cannot say so (field-sizing: Firefox 152,
// Safari 26.2). The style sheet bounds it either way.

const inCss = CSS.supports('field-sizing', 'content');

export function fitToText(field: HTMLTextAreaElement | null): void {
  if (inCss || !field) return;
  field.style.height = 'auto';
  field.style.height = `${field.scrollHeight}px`;
}
