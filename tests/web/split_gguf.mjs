// split_gguf - a model file as the shards of one model: each has some of the tensors, the first all
// the metadata.

// of the value types
const SIZES = { 0: 1, 1: 1, 2: 2, 3: 2, 4: 4, 5: 4, 6: 4, 7: 1, 10: 8, 11: 8, 12: 8 };
const U16 = 2, I32 = 5, STRING = 8, ARRAY = 9, ALIGN = 32;

/** Walks the little-endian bytes of a file. */
class Reader {
  constructor(bytes) {
    this.bytes = bytes;
    this.view = new DataView(bytes.buffer, bytes.byteOffset, bytes.byteLength);
    this.at = 0;
  }

  u32() {
    this.at += 4;
    return this.view.getUint32(this.at - 4, true);
  }

  u64() {
    this.at += 8;
    return Number(this.view.getBigUint64(this.at - 8, true));
  }

  string() {
    const n = this.u64();
    this.at += n;
  }

  value(type) {
    if (type === STRING) return this.string();
    if (type !== ARRAY) return void (this.at += SIZES[type]);
    const of = this.u32(), n = this.u64();
    if (SIZES[of]) this.at += n * SIZES[of];
    else for (let i = 0; i < n; i++) this.value(of);
  }
}

const pad = (n) => Math.ceil(n / ALIGN) * ALIGN;

function key(name, type, value) {
  const out = Buffer.alloc(8 + name.length + 4 + SIZES[type]);
  out.writeBigUInt64LE(BigInt(name.length), 0);
  out.write(name, 8);
  out.writeUInt32LE(type, 8 + name.length);
  if (type === U16) out.writeUInt16LE(value, 12 + name.length);
  else out.writeInt32LE(value, 12 + name.length);
  return out;
}

/** `bytes` of a GGUF file with the usual alignment, as `count` files. */
export function splitGguf(bytes, count) {
  const r = new Reader(bytes);
  r.at = 8;
  const nTensors = r.u64(), nKeys = r.u64(), keysAt = r.at;
  for (let i = 0; i < nKeys; i++) {
    r.string();
    r.value(r.u32());
  }
  const keys = bytes.subarray(keysAt, r.at), tensors = [];
  for (let i = 0; i < nTensors; i++) {
    const at = r.at;
    r.string();
    const dims = r.u32();
    r.at += 8 * dims + 4;
    const described = bytes.subarray(at, r.at);
    tensors.push({ described, offset: r.u64() });
  }
  const data = pad(r.at), order = [...tensors].sort((a, b) => a.offset - b.offset);
  order.forEach((t, i) =>
    (t.bytes = bytes.subarray(
      data + t.offset, i + 1 < order.length ? data + order[i + 1].offset : bytes.length,
    )));
  return Array.from({ length: count }, (_, no) => {
    const mine = tensors.filter((_, i) => i % count === no);
    const own = [
      key('split.no', U16, no), key('split.count', U16, count),
      key('split.tensors.count', I32, nTensors),
    ];
    const head = Buffer.alloc(24);
    head.write('GGUF');
    head.writeUInt32LE(3, 4);
    head.writeBigUInt64LE(BigInt(mine.length), 8);
    head.writeBigUInt64LE(BigInt(own.length + (no ? 0 : nKeys)), 16);
    const parts = [head, ...(no ? [] : [keys]), ...own];
    let offset = 0;
    for (const t of mine) {
      const place = Buffer.alloc(8);
      place.writeBigUInt64LE(BigInt(offset));
      parts.push(t.described, place);
      offset += pad(t.bytes.length);
    }
    const header = Buffer.concat(parts);
    return Buffer.concat([
      header, Buffer.alloc(pad(header.length) - header.length),
      ...mine.flatMap((t) => [t.bytes, Buffer.alloc(pad(t.bytes.length) - t.bytes.length)]),
    ]);
  });
}
