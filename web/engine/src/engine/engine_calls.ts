// engine_calls - what can be asked of an engine from another thread, and the plain data that goes
// there and back.

import type { BenchOptions, BenchProgress, BenchResult } from './bench.js';
import type { Constraint, Info, StoreTexts } from './cpu_engine.js';
import type { DiffusionStreams } from './local_diffusion.js';
import type { DeviceReport, Memory, Progress, SelfTest } from './model.js';
import type { Backend, OpenModelOptions } from './open_model.js';
import type { Spec } from './rpc.js';
import type {
  ChatCompletion, ChatCompletionChunk, ChatRequest, Completion, CompletionRequest,
} from '../api/completions_types.js';
import type { Estimate } from '../load/estimate.js';
import type { SourceRef } from '../store/source_ref.js';
import type { TrainCalls } from '../train/local_train.js';
import type { MergeCalls } from '../train/merge_to.js';

export interface AdapterRef {
  name: string;
  source: SourceRef;
  scale?: number;
  /** PEFT's adapter_config.json. */
  config?: string;
}

export interface AdapterInfo {
  name: string;
  scale: number;
}

/** Where a model is, as plain data. Several sources are the shards of one model. */
export interface ModelRef {
  name: string;
  sources: SourceRef[];
  store?: StoreTexts;
  adapters: AdapterRef[];
}

export type LoadParams = Pick<OpenModelOptions, 'context' | 'contextBytes' | 'tier' | 'cache'
  | 'profile' | 'selfTest'> & {
  model: ModelRef;
  backend: Backend;
  /** Bytes of model and conversations together. What does not fit is refused; the least recently
   *  used conversations make room first. */
  memory?: number;
  /** Conversations kept computed at a time. */
  sessions?: number;
  /** Of those, how many are for requests that name no session: each goes to the one whose
   *  beginning is its own. Default 1. */
  shared?: number;
};

/** What `memory` bounds in a load is here what may be used. */
export type EstimateParams = Pick<LoadParams, 'context' | 'contextBytes' | 'cache' | 'tier'
  | 'profile' | 'memory' | 'model'> & Partial<Pick<LoadParams, 'backend'>>;

/** What does not change while a model is loaded. */
export interface About {
  name: string;
  info: Info;
  device: DeviceReport;
  /** Tokens of a conversation at most. */
  context: number;
}

export interface EngineCalls extends TrainCalls, MergeCalls {
  /** Hold the lock of this name for as long as the thread lives; answers once it is held.
   *  Workers only. */
  live: Spec<string, void>;
  load: Spec<LoadParams, About, Progress>;
  estimate: Spec<EstimateParams, Estimate>;
  chat: Spec<ChatRequest, ChatCompletion>;
  complete: Spec<CompletionRequest, Completion>;
  tokenize: Spec<{ text: string; bos?: boolean; plain?: boolean }, Int32Array>;
  detokenize: Spec<{ ids: Int32Array; specials?: boolean }, string>;
  checkConstraint: Spec<Constraint, string | undefined>;
  countChat: Spec<{ request: ChatRequest; history: boolean }, number>;
  memory: Spec<undefined, Memory>;
  selfTest: Spec<undefined, SelfTest[]>;
  adapterAdd: Spec<AdapterRef, AdapterInfo, Progress>;
  adapterRemove: Spec<string, void>;
  adapterList: Spec<undefined, AdapterInfo[]>;
  sessionAppend: Spec<{ id: string; text: string | Int32Array }, number>;
  sessionPrefill: Spec<{ id: string; request: ChatRequest; history: boolean }, number>;
  sessionTokens: Spec<string, Int32Array>;
  sessionSave: Spec<string, Uint8Array>;
  sessionRestore: Spec<{ id: string; snapshot: Uint8Array }, number>;
  sessionFork: Spec<{ from: string; to: string }, number>;
  sessionTruncate: Spec<{ id: string; n: number }, number>;
  sessionClose: Spec<string, void>;
  bench: Spec<BenchOptions, BenchResult, BenchProgress>;
  dispose: Spec<undefined, void>;
}

export interface EngineStreams extends DiffusionStreams {
  chat: Spec<ChatRequest, ChatCompletionChunk>;
  complete: Spec<CompletionRequest, Completion>;
}
