// patch - kernels that compute something else, so that tests can fail.
import { ok } from './check.mjs';
import { withNames } from './kernel_names.mjs';

/** A core some of whose kernels are changed: name -> text of the source -> another. */
export function patch(core, changes) {
  const real = core.kernel.bind(core);
  core.kernel = (i) => {
    const kernel = real(i), change = changes[kernel.name];
    if (!change) return kernel;
    const before = withNames(kernel.source), source = change(before);
    ok(source !== before, `nothing changed in ${kernel.name}`);
    return { ...kernel, source };
  };
}
