// software_adapter - tests run on a software adapter, wherever they run: Chromium's for Dawn
// (Node), Mesa's for wgpu (Deno). BEZEL_ADAPTER=real takes the machine's own. Imported for its
// effect, before any device.
import { createRequire } from 'node:module';
import { tmpdir } from 'node:os';

import { ZEROED_BY_DRIVER } from './dawn_toggles.mjs';

const chromium = '/usr/lib/chromium/vk_swiftshader_icd.json'; // of Debian's chromium
const mesa = '/usr/share/vulkan/icd.d/lvp_icd.x86_64.json'; // of Debian's mesa-vulkan-drivers
const isDeno = 'Deno' in globalThis;

/** While a promise of Dawn's is open, its binding for Node asks for news on every turn of the event
 *  loop: a core that the software device would need to compile and compute. Turns after the first
 *  millisecond take a millisecond here. */
function waitQuietly() {
  const { globals } =
    createRequire(new URL('../../web/engine/package.json', import.meta.url))('webgpu');
  const never = new Int32Array(new SharedArrayBuffer(4));
  let open = 0, since = 0, turning = false;
  const turn = () => {
    if (performance.now() - since > 1) Atomics.wait(never, 0, 0, 1);
    turning = open > 0;
    if (turning) setImmediate(turn);
  };
  const settled = () => {
    open--;
    since = performance.now();
  };
  for (const [name, method] of [
    ['GPUDevice', 'createComputePipelineAsync'], ['GPUBuffer', 'mapAsync'],
    ['GPUQueue', 'onSubmittedWorkDone'],
  ]) {
    const { prototype } = globals[name], call = prototype[method];
    prototype[method] = function (...args) {
      const promise = call.apply(this, args);
      if (!open++) since = performance.now();
      if (!turning) setImmediate(turn);
      turning = true;
      promise.then(settled, settled);
      return promise;
    };
  }
}

if (process.env.BEZEL_ADAPTER !== 'real') {
  process.env.VK_ICD_FILENAMES ??= isDeno ? mesa : chromium;
  // else the Wayland library, which drivers ask for a screen, prints that it is missing
  process.env.XDG_RUNTIME_DIR ??= tmpdir();
  process.env.BEZEL_DAWN ??= `-${ZEROED_BY_DRIVER}`;
  if (!isDeno) waitQuietly();
}
