#!/usr/bin/env python3
"""hostile.py CASE [IN] OUT - GGUF files as a stranger would craft them, for test_hostile.sh.

Owns the container byte by byte, with Python's own library alone. Every case is a function below; IN
is a model that is changed, and stays as it is.
"""

import hashlib
import itertools
import json
import math
import os
import struct
import sys

FIXED = {0: 1, 1: 1, 2: 2, 3: 2, 4: 4, 5: 4, 6: 4, 7: 1, 10: 8, 11: 8, 12: 8}  # bytes of a number
BLOCK = {0: (1, 4), 1: (1, 2), 8: (32, 34), 30: (1, 2)}  # type: weights and bytes of a block


class Reader:
    def __init__(self, data):
        self.data, self.at = data, 0

    def take(self, n):
        self.at += n
        return self.data[self.at - n : self.at]

    def number(self, form):
        return struct.unpack("<" + form, self.take(struct.calcsize(form)))[0]

    def string(self):
        return self.take(self.number("Q"))

    def skip(self, kind):
        if kind == 8:
            self.string()
        elif kind == 9:
            element, n = self.number("I"), self.number("Q")
            if element in FIXED:
                self.take(FIXED[element] * n)
            else:
                for _ in range(n):
                    self.skip(element)
        else:
            self.take(FIXED[kind])


class Tensor:
    def __init__(self, name, ne, kind, data):
        self.name, self.ne, self.kind, self.data, self.offset = name, list(ne), kind, data, None


def text(s):
    return struct.pack("<Q", len(s)) + s


def n_bytes(ne, kind):
    weights, size = BLOCK[kind]
    return math.prod(ne) // weights * size


def read(path):
    """Metadata as (key, type, bytes of the value), and tensors with their bytes."""
    with open(path, "rb") as f:
        r = Reader(f.read())
    r.take(8)
    n_tensors, n_keys = r.number("Q"), r.number("Q")
    keys, tensors = [], []
    for _ in range(n_keys):
        key, kind = r.string(), r.number("I")
        start = r.at
        r.skip(kind)
        keys.append((key, kind, r.data[start : r.at]))
    for _ in range(n_tensors):
        name, dims = r.string(), r.number("I")
        ne = [r.number("Q") for _ in range(dims)]
        tensors.append((name, ne, r.number("I"), r.number("Q")))
    base = -(-r.at // 32) * 32
    data = r.data
    return keys, [Tensor(n, ne, k, data[base + o : base + o + n_bytes(ne, k)])
                  for n, ne, k, o in tensors]


def write(path, keys, tensors):
    """A tensor that says its own offset brings no bytes."""
    head = b"GGUF" + struct.pack("<IQQ", 3, len(tensors), len(keys))
    head += b"".join(text(k) + struct.pack("<I", kind) + value for k, kind, value in keys)
    at, body = 0, []
    for t in tensors:
        offset = at if t.offset is None else t.offset
        head += text(t.name) + struct.pack("<I", len(t.ne)) + struct.pack(f"<{len(t.ne)}Q", *t.ne)
        head += struct.pack("<IQ", t.kind, offset)
        if t.offset is None:
            body.append(t.data + bytes(-len(t.data) % 32))
            at += len(body[-1])
    with open(path, "wb") as f:
        f.write(head + bytes(-len(head) % 32) + b"".join(body))


def nan_router(source, out):
    """A mixture of experts whose router scores are no numbers."""
    keys, tensors = read(source)
    for t in tensors:
        if t.name.endswith(b"ffn_gate_inp.weight"):
            t.kind, t.data = 0, struct.pack("<f", math.nan) * math.prod(t.ne)
    write(out, keys, tensors)


def four_dims(source, out):
    """attn_q of the first layer twice, in a fourth dimension."""
    keys, tensors = read(source)
    for t in tensors:
        if t.name == b"blk.0.attn_q.weight":
            t.ne, t.data = [*t.ne, 1, 2], 2 * t.data
    write(out, keys, tensors)


def overlapping(source, out):
    """All of a model's norms and scalars, and 8,000 more, are the first bytes of its embedding."""
    keys, tensors = read(source)
    first = next(t for t in tensors if len(t.data) > 1 << 20)
    tensors = [first, *(t for t in tensors if t is not first)]
    for i in range(8000):
        t = Tensor(b"blk.%d.ffn_norm.weight.more" % i, [1 << 18], 0, b"")
        t.offset = 0
        tensors.append(t)
    write(out, keys, tensors)


def old_hash_preimages():
    """Keys of 16 bytes that met in one slot of the table, when its hash had no key."""
    mul, low = 0x9E3779B97F4A7C15, (1 << 64) - 1
    inverse = pow(mul, -1, 1 << 64)
    target = 12345
    for i in itertools.count():
        first = int.from_bytes(b"%08d" % i, "little")
        h = ((16 * mul & low) ^ first) * mul & low
        h ^= h >> 32
        key = struct.pack("<QQ", first, h ^ (target * inverse & low))
        if 0 not in key:
            yield key


def key_flood(out, n):
    """n keys for one slot."""
    write(out, [(k, 7, b"\1") for k in itertools.islice(old_hash_preimages(), int(n))], [])


def peft_flood(out):
    """A PEFT adapter of many tensors and many patterns that take long to match."""
    names = [f"model.layers.{i}.self_attn.q_proj.lora_{c}.weight" for i in range(1000)
             for c in "AB"]
    header = {n: {"dtype": "F32", "shape": [4, 4], "data_offsets": [64 * i, 64 * i + 64]}
              for i, n in enumerate(names)}
    head = json.dumps(header).encode()
    os.makedirs(out, exist_ok=True)
    with open(f"{out}/adapter_model.safetensors", "wb") as f:
        f.write(struct.pack("<Q", len(head)) + head + bytes(64 * len(names)))
    patterns = {f"(.*.*.*.*.*)*{i}x": 4 for i in range(3000)}
    with open(f"{out}/adapter_config.json", "w") as f:
        json.dump({"peft_type": "LORA", "r": 4, "lora_alpha": 4, "rank_pattern": patterns}, f)


def store(out, model, adapter):
    """An Ollama store with the model "worn", which wears the adapter."""
    layers = []
    manifests = f"{out}/manifests/registry.ollama.ai/library/worn"
    for folder in (f"{out}/blobs", manifests):
        os.makedirs(folder, exist_ok=True)
    for kind, path in (("model", model), ("adapter", adapter)):
        with open(path, "rb") as f:
            data = f.read()
        digest = hashlib.sha256(data).hexdigest()
        with open(f"{out}/blobs/sha256-{digest}", "wb") as f:
            f.write(data)
        media = f"application/vnd.ollama.image.{kind}"
        layers.append({"mediaType": media, "digest": f"sha256:{digest}", "size": len(data)})
    with open(f"{manifests}/latest", "w") as f:
        json.dump({"layers": layers}, f)


CASES = {
    "overlapping": overlapping,
    "key-flood": key_flood,
    "peft-flood": peft_flood,
    "nan-router": nan_router,
    "four-dims": four_dims,
    "store": store,
}

if __name__ == "__main__":
    CASES[sys.argv[1]](*sys.argv[2:])
