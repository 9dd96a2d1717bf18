// wasm - the core: one WebAssembly module, its memory, and calls that cannot be mixed up.
//
// Pointers are branded numbers that never leave the package. Views on memory are made where they
// are used, because memory that grows leaves old ones behind, empty.

import { BezelError, type ErrorKind } from '../api/errors.js';
import { canvasUrl, trainingUrl, wasmUrl } from '../beside.js';
import {
  readHostResult, STATUS, type Bytes, type Exports, type HostImports,
} from './boundary.js';
import type { Gpu } from '../gpu/gpu.js';
import { isNode, nodeFiles } from '../load/node_files.js';
import type { Source } from '../load/source.js';

export { BezelError, type ErrorKind };

/** A variant of a kernel: a family, and a value for each of its axes. */
export interface KernelInfo {
  readonly name: string; // `matmul[q4_k subgroup]`, without the axes' defaults
  readonly source: string;
  readonly bindings: string; // u uniform, r read, w read and write
  readonly overrides: readonly string[]; // of the family, by their numbers
  readonly paramsBytes: number;
}

const encoder = new TextEncoder();
// a piece of text may begin with that character
const decoder = new TextDecoder('utf-8', { ignoreBOM: true });

export type LogitsFn = (position: number, logits: Float32Array) => boolean | void;

export class Core {
  readonly exports: Exports;
  readonly gpu: Gpu | undefined;
  /** Sees each position's logits while tokens are read; the view is good during the call only. */
  onLogits: LogitsFn | undefined;
  private readonly sources = new Map<number, Source>();
  private nextSource = 1;
  private vocab = 0; // of the engine that reads now
  private cause: unknown; // why the host failed to read
  private readonly known = new Map<number, KernelInfo>();
  private readonly brought = new Set<unknown>(); // who loaded files of kernels

  private constructor(module: WebAssembly.Module, gpu: Gpu | undefined) {
    const absent = () => {
      throw new BezelError('this engine was opened without a GPU', 'device');
    };
    const none = Object.fromEntries(WebAssembly.Module
      .imports(module)
      .filter((i) => i.module === 'gpu')
      .map((i) => [i.name, absent]));
    const host: HostImports = {
      read: (id, offset, dst, n) => this.read(id, offset, dst >>> 0, n >>> 0),
      logits: (position, p) =>
        this.onLogits?.(position >>> 0, new Float32Array(this.memory.buffer, p, this.vocab))
          === false
          ? 0
          : 1,
    };
    const instance = new WebAssembly.Instance(module, { host, gpu: gpu?.imports ?? none });
    this.exports = instance.exports as unknown as Exports;
    this.gpu = gpu;
    gpu?.attach(this);
    this.exports._initialize();
    // keys of hash tables
    const [a = 0, b = 0, c = 0, d = 0] = crypto.getRandomValues(new Uint32Array(4));
    this.exports.bz_wasm_seed(a, b, c, d);
  }

  static async load(wasm: BufferSource | WebAssembly.Module, gpu?: Gpu): Promise<Core> {
    return new Core(
      wasm instanceof WebAssembly.Module ? wasm : await WebAssembly.compile(wasm), gpu,
    );
  }

  get memory(): WebAssembly.Memory {
    return this.exports.memory;
  }

  // ---- sources ----

  /** A number under which the core can read the source. */
  addSource(source: Source): number {
    this.sources.set(this.nextSource, source);
    return this.nextSource++;
  }

  removeSource(id: number): void {
    this.sources.delete(id);
  }

  /** Call with a source that the core reads during the call only. */
  withSource<T>(source: Source, call: (id: number) => T): T {
    const id = this.addSource(source);
    try {
      return call(id);
    } finally {
      this.removeSource(id);
    }
  }

  private read(id: number, offset: number, dst: number, n: number): number {
    try {
      const source = this.sources.get(id);
      if (!source) throw new Error(`there is no source number ${id}`);
      source.read(offset, new Uint8Array(this.memory.buffer, dst, n));
      return 0;
    } catch (e) {
      this.cause = e;
      return 1;
    }
  }

  // ---- calling ----

  /** Throw what the core says went wrong. */
  fail(): never {
    const kind = STATUS[this.exports.bz_wasm_status()] ?? 'argument';
    const cause = this.cause;
    this.cause = undefined;
    const why = cause instanceof Error ? ` (${cause.message})` : '';
    throw new BezelError(
      this.text(this.exports.bz_wasm_error()) + why, kind === 'ok' ? 'argument' : kind, cause,
    );
  }

  /** A pointer or number that a call gave back, or its failure as an exception. */
  check<T extends number>(value: T): T {
    if ((value as number) === 0 || value === -1) this.fail();
    return value;
  }

  /** For calls whose only failure is -1. */
  checkNumber(value: number): number {
    return value === -1 ? this.fail() : value;
  }

  /** Call with bytes (a string as UTF-8) copied into memory for the time of the call. */
  with<T>(data: string | Uint8Array | Int32Array, call: (p: Bytes, n: number) => T): T {
    const bytes = typeof data === 'string'
      ? encoder.encode(data)
      : new Uint8Array(data.buffer, data.byteOffset, data.byteLength);
    const p = this.check(this.exports.bz_wasm_alloc(bytes.length));
    this.cause = undefined; // of an earlier call, that the core made its own sense of
    try {
      new Uint8Array(this.memory.buffer, p, bytes.length).set(bytes);
      return call(p, typeof data === 'string' ? bytes.length : data.length);
    } finally {
      this.exports.bz_wasm_free(p);
    }
  }

  /** What the last call handed over, until the next call. */
  resultView(): Uint8Array {
    const { buffer } = this.memory, { data, nBytes } =
      readHostResult(buffer, this.exports.bz_wasm_result());
    return new Uint8Array(buffer, data, nBytes);
  }

  /** The same, copied. */
  result(): Uint8Array {
    return this.resultView().slice();
  }

  resultText(): string {
    const bytes = this.resultView();
    return bytes.length ? decoder.decode(bytes) : '';
  }

  resultIds(): Int32Array {
    return new Int32Array(this.result().buffer);
  }

  /** Read tokens with a logits callback for a vocabulary of n. */
  watchLogits<T>(n: number, fn: LogitsFn | undefined, call: () => T): T {
    // never past the module's own frames, which would not be left in order
    let thrown: { readonly why: unknown } | undefined;
    this.vocab = n;
    this.onLogits = fn && ((position, row) => {
      try {
        return fn(position, row);
      } catch (why) {
        thrown = { why };
        return false;
      }
    });
    try {
      return call();
    } catch (e) {
      throw thrown ? thrown.why : e;
    } finally {
      this.onLogits = undefined;
    }
  }

  /** NUL-ended text at p. */
  private text(p: number): string {
    const bytes = new Uint8Array(this.memory.buffer, p);
    return decoder.decode(bytes.subarray(0, bytes.indexOf(0)));
  }

  // ---- kernels ----

  /** The kernel of a number: its text is expanded when it is first asked for. */
  kernel(number: number): KernelInfo {
    const known = this.known.get(number);
    if (known) return known;
    const paramsBytes = this.checkNumber(this.exports.bz_wasm_kernel(number));
    const [name = '', bindings = '', overrides = '', ...source] = this.resultText().split('\n');
    const made = {
      name, source: source.join('\n'), bindings, overrides: overrides.split(' '), paramsBytes,
    };
    this.known.set(number, made);
    return made;
  }

  /** Training's kernels, which are downloaded when a training begins. */
  bringTraining(): Promise<void> {
    return this.bring(loadTrainingKernels);
  }

  /** A canvas's, which are downloaded before a session of a diffusion model is opened. */
  bringCanvas(): Promise<void> {
    return this.bring(loadCanvasKernels);
  }

  get hasCanvas(): boolean {
    return this.brought.has(loadCanvasKernels);
  }

  private async bring(file: () => Promise<Uint8Array<ArrayBuffer>>): Promise<void> {
    if (this.brought.has(file)) return;
    const text = await file();
    this.with(text, (p, n) => this.checkNumber(this.exports.bz_wasm_kernels_bring(p, n)));
    this.brought.add(file);
  }
}

/** A file of the package. */
async function load(url: URL, what: string): Promise<Uint8Array<ArrayBuffer>> {
  // a thread that ends while it opens a file leaves it open
  if (url.protocol === 'file:' && isNode()) return new Uint8Array(nodeFiles().readFileSync(url));
  const answer = await fetch(url).catch((why: unknown) => {
    throw new BezelError(
      `cannot load ${what}: ${why instanceof Error ? why.message : String(why)}`, 'io', why,
    );
  });
  if (!answer.ok)
    throw new BezelError(
      `cannot load ${what}: ${answer.status} ${answer.statusText} for ${url.pathname}`, 'io',
    );
  return new Uint8Array(await answer.arrayBuffer());
}

/** The module. */
export const loadWasm = (): Promise<Uint8Array<ArrayBuffer>> => load(wasmUrl(), 'the engine');

/** The sources of training's kernels, which nothing else downloads. */
export const loadTrainingKernels = (): Promise<Uint8Array<ArrayBuffer>> =>
  load(trainingUrl(), 'the kernels for training');

/** The sources of a canvas's kernels, which a diffusion model downloads. */
export const loadCanvasKernels = (): Promise<Uint8Array<ArrayBuffer>> =>
  load(canvasUrl(), 'the kernels of a canvas');
