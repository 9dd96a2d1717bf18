// core - the layers below the public interface: the module, its devices, and engines on each
// backend.
export {
  openDevice, profiles, type Device, type DeviceOptions, type ProfileName, type Tier,
} from './gpu/adapter.js';
export type { Limits } from './engine/boundary.js';
export { Gpu } from './gpu/gpu.js';
export {
  BezelError, Core, loadCanvasKernels, loadTrainingKernels, loadWasm, type ErrorKind,
  type KernelInfo, type LogitsFn,
} from './engine/wasm.js';
export {
  blobSource, fileSource, memorySource, openWithFetches, type Source,
} from './load/source.js';
export {
  openSource, type ModelStore, type OpenSourceOptions, type ResolvedModel, type SourceRef,
  type StoredModel,
} from './store/source_ref.js';
export { openSources } from './store/open_sources.js';
export { FolderStore } from './store/folder_store.js';
export { openFolder } from './store/plain_folder.js';
export { ServerStore } from './store/server_store.js';
export { OpfsStore } from './store/opfs_store.js';
export {
  CpuEngine, CpuSession, inspect, render, type Generated, type GenerateOptions,
  type InspectOptions, type StoreTexts, type Info, type OpenOptions, type RenderOptions,
  type Sampling,
} from './engine/cpu_engine.js';
export type { Stop } from './engine/boundary.js';
export { GpuEngine, type GpuOpenOptions } from './gpu/gpu_engine.js';
export { Merge, type MergeAdapter } from './train/merge.js';
export {
  estimate, type Estimate, type EstimateOptions, type PlanOptions,
} from './load/estimate.js';
export { GpuSession } from './gpu/gpu_session.js';
export {
  bandwidth, dispatchTimes, profile, sumBy, type DispatchTime, type KernelTime,
} from './gpu/profile.js';
export { CpuModel, type CpuModelOptions } from './engine/cpu_model.js';
export { GpuModel, type GpuModelOptions } from './gpu/gpu_model.js';
export { openModel, type OpenModelOptions } from './engine/open_model.js';
export type {
  AdapterOptions, Conversation, ConversationOptions, DeviceReport, Memory, Model, Piece, Progress,
  SelfTest, StepProfile, TokenLogprob,
} from './engine/model.js';
