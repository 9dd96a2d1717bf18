// bezel - Gemma 4 in a browser tab, in Node and in Deno.
export { openDevice, profiles, type Device, type DeviceOptions, type Limits, type ProfileName } from './adapter.js';
export { Gpu } from './gpu.js';
export { BezelError, Core, loadWasm, type ErrorKind, type KernelInfo, type LogitsFn } from './wasm.js';
export { blobSource, fileSource, memorySource, type Source } from './source.js';
export { Engine, Session, inspect, render, type Generated, type GenerateOptions, type InspectOptions, type StoreTexts, type Info, type OpenOptions, type RenderOptions, type Sampling, type Stop } from './engine.js';
export { GpuEngine, GpuSession, type GpuOpenOptions, type LoadProgress } from './gpu_session.js';
export { profile, type KernelTime } from './profile.js';
