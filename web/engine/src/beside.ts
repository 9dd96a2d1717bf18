// beside - the files that lie beside this one in the package. This file stays on the top level: a
// bundler that leaves `new URL` alone looks for them beside its bundle.

/** The module. */
export const wasmUrl = (): URL => new URL('./bezel.wasm', import.meta.url);

/** The sources of training's kernels. */
export const trainingUrl = (): URL => new URL('./train.wgsl', import.meta.url);

/** The sources of a canvas's kernels. */
export const canvasUrl = (): URL => new URL('./canvas.wgsl', import.meta.url);

/** The thread that owns the model. */
export const startWorker = (): Worker =>
  new Worker(new URL('./worker.js', import.meta.url), { type: 'module' });
