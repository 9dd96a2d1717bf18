// bezel - Gemma 4 in a browser tab, in Node and in Deno. Importing it touches nothing: no
// navigator, no Worker.
export {
  Adapters, ChatCompletions, Completions, Engine, Session, type CallOptions, type EstimateOptions,
  type LoadOptions, type PromptRequest,
} from './api/engine.js';
export type { AdapterSource, ModelSource, NameResolver } from './api/engine_source.js';
export type { About, AdapterInfo } from './engine/engine_calls.js';
export type { BenchOptions, BenchProgress, BenchResult, Speed } from './engine/bench.js';
export type { CallableTool, Constraint, Info, Sampling } from './engine/cpu_engine.js';
export type { Estimate } from './load/estimate.js';
export type { MergeProgress } from './train/merge.js';
export type { MergeOptions, MergeResult, MergeTarget } from './train/merge_to.js';
export type * from './train/train_types.js';
export type { DeviceReport, Memory, Progress, SelfTest } from './engine/model.js';
export type * from './api/completions_types.js';
export { Diffusion } from './api/diffusion.js';
export type * from './api/diffusion_types.js';
export {
  ArgumentError, BezelError, DeviceError, FormatError, IoError, LimitError, MemoryError,
  NotFoundError, UnsupportedError, type ErrorKind,
} from './api/errors.js';
export {
  DownloadProgressEvent, languageModel, LanguageModelSession, type LanguageModelCreateOptions,
  type LanguageModelExpected, type LanguageModelFactory, type LanguageModelMessage,
  type LanguageModelParams, type LanguageModelPart, type LanguageModelPrompt,
  type LanguageModelPromptOptions,
} from './api/language_model.js';

// Stores of models: the browser's own files, a picked Ollama folder, a Bezel server.
export { openStore, Store, type OpenStoreOptions } from './store/client.js';
export { FolderStore, needsAccess, requestAccess } from './store/folder_store.js';
export type { StoreProgress } from './store/news.js';
export type { Verified, VerifyOptions } from './store/ollama_store.js';
export type {
  ImportOptions, MergeOptions as StoreMergeOptions, PullFrom, PullOptions, Unfinished, StoreUsage,
} from './store/opfs_types.js';
export { ServerStore } from './store/server_store.js';
export type { AdapterFile, AdapterForm } from './store/adapter_files.js';
export type { FileKind } from './store/inspect_file.js';
export type { ModelStore, ResolvedModel, SourceRef, StoredModel } from './store/source_ref.js';
export { Core, loadWasm } from './engine/wasm.js';
