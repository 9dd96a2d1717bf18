// core - the layers below the public interface: the module, its devices, and engines on each backend.
export { openDevice, profiles, type Device, type DeviceOptions, type Limits, type ProfileName, type Tier } from './adapter.js';
export { Gpu } from './gpu.js';
export { BezelError, Core, loadWasm, type ErrorKind, type KernelInfo, type LogitsFn } from './wasm.js';
export { blobSource, fileSource, memorySource, openWithFetches, type Source } from './source.js';
export { openSource, type ModelStore, type OpenSourceOptions, type ResolvedModel, type SourceRef, type StoredModel } from './store/source_ref.js';
export { openSources } from './store/open_sources.js';
export { FolderStore } from './store/folder_store.js';
export { ServerStore } from './store/server_store.js';
export { OpfsStore } from './store/opfs_store.js';
export { CpuEngine, CpuSession, inspect, render, type Generated, type GenerateOptions, type InspectOptions, type StoreTexts, type Info, type OpenOptions, type RenderOptions, type Sampling, type Stop } from './cpu_engine.js';
export { GpuEngine, type GpuOpenOptions } from './gpu_engine.js';
export { estimate, type Estimate, type EstimateOptions, type PlanOptions } from './estimate.js';
export { GpuSession } from './gpu_session.js';
export { bandwidth, dispatchTimes, profile, sumBy, type DispatchTime, type KernelTime } from './profile.js';
export { CpuModel, type CpuModelOptions } from './cpu_model.js';
export { GpuModel, type GpuModelOptions } from './gpu_model.js';
export { openModel, type OpenModelOptions } from './open_model.js';
export type { AdapterOptions, Conversation, ConversationOptions, DeviceReport, Memory, Model, Piece, Progress, SelfTest, StepProfile, TokenLogprob } from './model.js';
