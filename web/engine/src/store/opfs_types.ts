// opfs_types - what callers of the browser's own store ask with, and what it tells them.

import type { Core } from '../engine/wasm.js';
import type { Patience } from './net.js';
import type { StoreProgress } from './news.js';

export interface StoreOptions {
  /** A core to parse with; without it the store loads one for itself. */
  core?: Core;
  /** How long a network is waited for. */
  patience?: Partial<Patience>;
}

/** An address of a GGUF file, or a model of a Bezel server. */
export type PullFrom = string | { server: string; model: string };

export interface PullOptions {
  /** What to call it here; default: as it is called there. */
  name?: string;
  /** sha256 that an address's file must have, in hex. */
  digest?: string;
  /** PEFT's adapter_config.json, where the address is an adapter's safetensors. */
  config?: string;
  onProgress?: (p: StoreProgress) => void;
  signal?: AbortSignal;
}

export interface ImportOptions {
  name?: string;
  /** PEFT's adapter_config.json, which an adapter in safetensors needs. */
  config?: string;
  /** Of an adapter in GGUF, which does not say: the model that it was made for. */
  base?: string;
  /** Copy a file that could be read in place. */
  copy?: boolean;
  onProgress?: (p: StoreProgress) => void;
  signal?: AbortSignal;
}

/** Who watches a change of the store, and may stop it. */
export interface Watch {
  onProgress?: (p: StoreProgress) => void;
  signal?: AbortSignal;
}

export interface MergeOptions extends Watch {
  /** What to call the new model; a name that is taken is refused. */
  name: string;
}

/** A download that was not finished. */
export interface Unfinished {
  key: string;
  label: string;
  url?: string;
  loaded: number;
  total?: number;
}

export interface StoreUsage {
  /** Bytes of models, and of what is on its way. */
  models: number;
  partial: number;
  /** What the browser gives this site, and how much of it is used by anything at all. */
  quota?: number;
  used?: number;
  /** Does the browser keep it when the disk runs low? */
  persisted: boolean;
}
