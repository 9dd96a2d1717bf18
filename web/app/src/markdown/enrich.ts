// enrich - colours in code and typeset maths, put into a block that is already on the page. Both
// libraries are loaded when the first block wants them.

let highlighter: Promise<typeof import('./highlight')> | undefined;
let typesetter: Promise<typeof import('./maths')> | undefined;

export async function enrich(block: HTMLElement): Promise<void> {
  const code = [...block.querySelectorAll<HTMLElement>('code[data-lang]:not([data-lang=""])')];
  const maths = [...block.querySelectorAll<HTMLElement>('.math')];
  if (code.length) {
    const { highlight } = await (highlighter ??= import('./highlight'));
    for (const element of code) highlight(element);
  }
  if (maths.length) {
    const { typeset } = await (typesetter ??= import('./maths'));
    for (const element of maths) typeset(element);
  }
}
