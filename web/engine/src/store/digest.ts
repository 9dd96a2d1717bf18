// digest - sha256 of bytes as they pass, by the core (the browser's own wants them all at once).

import type { Bytes, DigestPtr } from '../engine/boundary.js';
import { BezelError, type Core } from '../engine/wasm.js';

const WINDOW = 256 << 10;

export class Sha256 {
  private p: DigestPtr;
  private readonly window: Bytes;

  constructor(private readonly core: Core) {
    this.window = core.check(core.exports.bz_wasm_alloc(WINDOW));
    this.p = core.check(core.exports.bz_wasm_sha256_open());
  }

  update(bytes: Uint8Array): void {
    if (!this.p) throw new BezelError('this digest has ended', 'argument');
    for (let at = 0; at < bytes.length; at += WINDOW) {
      const part = bytes.subarray(at, at + WINDOW);
      new Uint8Array(this.core.memory.buffer, this.window, part.length).set(part);
      this.core.exports.bz_wasm_sha256_feed(this.p, this.window, part.length);
    }
  }

  /** 64 hex digits. Ends it; so does dropping out, which must call this too. */
  end(): string {
    if (!this.p) throw new BezelError('this digest has ended', 'argument');
    this.core.exports.bz_wasm_sha256_end(this.p);
    this.core.exports.bz_wasm_free(this.window);
    this.p = 0 as DigestPtr;
    return this.core.resultText();
  }
}

export function sha256(core: Core, bytes: Uint8Array): string {
  const hash = new Sha256(core);
  hash.update(bytes);
  return hash.end();
}
