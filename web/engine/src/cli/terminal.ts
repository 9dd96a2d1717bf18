// terminal - what of a model's text a terminal gets to see.

/** Text of a model, for standard output. A terminal gets no control characters but newlines and
 *  tabs: a model must not command it. */
export function printable(text: string): string {
  return process.stdout.isTTY ? text.replace(/[\0-\x08\x0b-\x1f\x7f-\x9f]/g, '\ufffd') : text;
}
