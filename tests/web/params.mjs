// params - what the parameters of a kernel are, out of its text.
import { withNames } from './kernel_names.mjs';

/** [name, type] of each field of a struct. */
function fieldsOf(source, struct) {
  const body = new RegExp(`struct ${struct}\\{([^}]*)\\}`).exec(source)[1];
  return [...body.matchAll(/(\w+):(array<[^>]*>|\w+)/g)].map(([, name, type]) => [name, type]);
}

/** Each number of Params in order, with its type: "n", or "w[1].rows" of an array of structs. */
export function paramsOf(kernel) {
  const source = withNames(kernel.source);
  return fieldsOf(source, 'Params').flatMap(([name, type]) => {
    const [, struct, count] = /^array<(\w+),(\d+)>$/.exec(type) ?? [];
    return struct === undefined
      ? [[name, type]]
      : Array.from({ length: +count }, (_, i) =>
        fieldsOf(source, struct).map(([item, of]) => [`${name}[${i}].${item}`, of])).flat();
  });
}
