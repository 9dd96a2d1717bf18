// patch - kernels that compute something else, so that tests can fail.
import { ok } from './check.mjs';

/** A core some of whose kernels are changed: name -> text of the source -> another. */
export function patch(core, changes) {
  const real = core.kernel.bind(core);
  core.kernel = (i) => {
    const kernel = real(i), change = changes[kernel.name];
    if (!change) return kernel;
    const source = change(kernel.source);
    ok(source !== kernel.source, `nothing changed in ${kernel.name}`);
    return { ...kernel, source };
  };
}
