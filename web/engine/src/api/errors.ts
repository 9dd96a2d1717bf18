// errors - what can go wrong, as classes with a code, and how they travel between threads.
//
// Every failure of Bezel's own is a BezelError with one sentence for the person and a `kind` for
// the program. The classes below it name the kinds: whoever made the error, `e instanceof
// DeviceError` is the same question as `e.kind === 'device'`. A cancelled call fails with its
// signal's reason, by default a DOMException 'AbortError'.

import type { Status } from '../engine/boundary.js';

/** The code of a failure. */
export type ErrorKind = Exclude<Status, 'ok'> | 'device';

const names: Record<ErrorKind, string> = {
  argument: 'ArgumentError',
  memory: 'MemoryError',
  io: 'IoError',
  format: 'FormatError',
  unsupported: 'UnsupportedError',
  'not-found': 'NotFoundError',
  limit: 'LimitError',
  cancelled: 'CancelledError',
  device: 'DeviceError',
};

/** A failure with one sentence for the person. */
export class BezelError extends Error {
  readonly kind: ErrorKind;
  /** The option or field that is wrong, where the error is about one. */
  readonly param: string | undefined;

  constructor(message: string, kind: ErrorKind, cause?: unknown, param?: string) {
    super(message, cause === undefined ? undefined : { cause });
    this.kind = kind;
    this.param = param;
    this.name = names[kind];
  }
}

/** Of a text that somebody else chose, as much as an error should repeat. */
export const brief = (text: string): string =>
  (text.length > 60 ? `${text.slice(0, 57)}...` : text);

/** A value as an error names it: JSON has neither every number nor every object. */
export function show(value: unknown): string {
  if (typeof value !== 'string' && typeof value !== 'object') return brief(String(value));
  try {
    return brief(JSON.stringify(value) ?? 'an object');
  } catch {
    return 'an object';
  }
}

const isKind = (e: unknown, kind: ErrorKind): boolean =>
  typeof e === 'object' && e !== null && BezelError.prototype.isPrototypeOf(e)
    && (e as BezelError).kind === kind;

/** A parameter that makes no sense. */
export class ArgumentError extends BezelError {
  constructor(message: string, cause?: unknown) {
    super(message, 'argument', cause);
  }
  static override [Symbol.hasInstance](e: unknown): boolean {
    return isKind(e, 'argument');
  }
}

/** Something that this version cannot do. */
export class UnsupportedError extends BezelError {
  constructor(message: string, cause?: unknown) {
    super(message, 'unsupported', cause);
  }
  static override [Symbol.hasInstance](e: unknown): boolean {
    return isKind(e, 'unsupported');
  }
}

/** A model, a file or an adapter that is not there. */
export class NotFoundError extends BezelError {
  constructor(message: string, cause?: unknown) {
    super(message, 'not-found', cause);
  }
  static override [Symbol.hasInstance](e: unknown): boolean {
    return isKind(e, 'not-found');
  }
}

/** No WebGPU, no adapter, or a device that was lost. */
export class DeviceError extends BezelError {
  constructor(message: string, cause?: unknown) {
    super(message, 'device', cause);
  }
  static override [Symbol.hasInstance](e: unknown): boolean {
    return isKind(e, 'device');
  }
}

/** More tokens than the context holds, or more than the device allows. */
export class LimitError extends BezelError {
  constructor(message: string, cause?: unknown) {
    super(message, 'limit', cause);
  }
  static override [Symbol.hasInstance](e: unknown): boolean {
    return isKind(e, 'limit');
  }
}

/** Memory is used up. */
export class MemoryError extends BezelError {
  constructor(message: string, cause?: unknown) {
    super(message, 'memory', cause);
  }
  static override [Symbol.hasInstance](e: unknown): boolean {
    return isKind(e, 'memory');
  }
}

/** Bytes that could not be read: a disk, a network. */
export class IoError extends BezelError {
  constructor(message: string, cause?: unknown) {
    super(message, 'io', cause);
  }
  static override [Symbol.hasInstance](e: unknown): boolean {
    return isKind(e, 'io');
  }
}

/** Bytes that are not what they should be: a broken model file, a conversation with an odd
 *  shape. */
export class FormatError extends BezelError {
  constructor(message: string, cause?: unknown) {
    super(message, 'format', cause);
  }
  static override [Symbol.hasInstance](e: unknown): boolean {
    return isKind(e, 'format');
  }
}

/** An error as plain data: structured clones lose classes and fields. */
export interface PlainError {
  as: 'bezel' | 'dom' | 'type' | 'range' | 'error' | 'value';
  name: string;
  message: string;
  kind?: ErrorKind;
  param?: string;
  stack?: string;
  value?: unknown;
}

export function packError(e: unknown): PlainError {
  if (e instanceof BezelError)
    return {
      as: 'bezel', name: e.name, message: e.message, kind: e.kind,
      ...(e.param !== undefined && { param: e.param }), ...(e.stack && { stack: e.stack }),
    };
  if (typeof DOMException !== 'undefined' && e instanceof DOMException)
    return { as: 'dom', name: e.name, message: e.message };
  if (!(e instanceof Error))
    return { as: 'value', name: 'value', message: String(e), value: isPlain(e) ? e : String(e) };
  const as = e instanceof TypeError ? 'type' : e instanceof RangeError ? 'range' : 'error';
  return { as, name: e.name, message: e.message, ...(e.stack && { stack: e.stack }) };
}

/** Thrown values that survive a structured clone: someone may abort with a string or a number. */
const isPlain = (e: unknown): boolean =>
  e === undefined || e === null || ['string', 'number', 'boolean'].includes(typeof e);

export function unpackError(p: PlainError): unknown {
  if (p.as === 'value') return p.value;
  if (p.as === 'dom') return new DOMException(p.message, p.name);
  const e = p.as === 'bezel'
    ? new BezelError(p.message, p.kind ?? 'argument', undefined, p.param)
    : p.as === 'type'
      ? new TypeError(p.message)
      : p.as === 'range' ? new RangeError(p.message) : new Error(p.message);
  if (p.as === 'error') e.name = p.name;
  if (p.stack) e.stack = p.stack;
  return e;
}
