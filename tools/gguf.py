#!/usr/bin/env python3
"""GGUF version 3 files, written and read with numpy.

Owns the container (metadata of every type, tensor directory, alignment) and the plain number
formats F32, F16, BF16, Q8_0 and the integers. Other block formats are known by size only: their
bytes can be listed and copied, not decoded. Knows nothing of models.

Metadata types are spelled as text: "u8 i8 u16 i16 u32 i32 u64 i64 f32 f64 bool str", and an array
of T is "T[]" (so "i32[]", and "i32[][]" for an array of arrays). Tensor shapes are numpy's, slowest
dimension first; the file's own order (`ne`, fastest first) is the reverse.

    gguf.write("a.gguf",
               [("general.architecture", "str", "toy"), ("toy.widths", "i32[]", [3, 5])],
               [gguf.Tensor.encode("w", np.ones((5, 64)), "Q8_0")])
    f = gguf.read("a.gguf")
    f.get("toy.widths")          -> [3, 5]
    f.meta["toy.widths"].type    -> "i32[]"
    f["w"].decode()              -> float32 array, 5 x 64

As a program: `gguf.py FILE...` lists what is in each file.
"""

import os
import struct
import sys
from typing import NamedTuple

import numpy as np

MAGIC = b"GGUF"
VERSION = 3
ALIGNMENT = 32
MAX_DIMS = 4

# Metadata scalars: file id -> (spelling, numpy type). Strings (8) and arrays (9) stand apart.
_SCALARS = {
    0: ("u8", "<u1"),
    1: ("i8", "<i1"),
    2: ("u16", "<u2"),
    3: ("i16", "<i2"),
    4: ("u32", "<u4"),
    5: ("i32", "<i4"),
    6: ("f32", "<f4"),
    7: ("bool", "?"),
    10: ("u64", "<u8"),
    11: ("i64", "<i8"),
    12: ("f64", "<f8"),
}
_STRING, _ARRAY = 8, 9
_SCALAR_ID = {name: i for i, (name, _) in _SCALARS.items()}
_SCALAR_DTYPE = {name: np.dtype(dt) for name, dt in _SCALARS.values()}


class Format(NamedTuple):
    """How one tensor format is stored: its id in the file, and bytes per block of elements."""

    id: int
    block: int
    n_bytes: int


FORMATS = {
    "F32": Format(0, 1, 4),
    "F16": Format(1, 1, 2),
    "Q4_0": Format(2, 32, 18),
    "Q4_1": Format(3, 32, 20),
    "Q5_0": Format(6, 32, 22),
    "Q5_1": Format(7, 32, 24),
    "Q8_0": Format(8, 32, 34),
    "Q2_K": Format(10, 256, 84),
    "Q3_K": Format(11, 256, 110),
    "Q4_K": Format(12, 256, 144),
    "Q5_K": Format(13, 256, 176),
    "Q6_K": Format(14, 256, 210),
    "IQ4_NL": Format(20, 32, 18),
    "IQ4_XS": Format(23, 256, 136),
    "I8": Format(24, 1, 1),
    "I16": Format(25, 1, 2),
    "I32": Format(26, 1, 4),
    "I64": Format(27, 1, 8),
    "F64": Format(28, 1, 8),
    "BF16": Format(30, 1, 2),
    "MXFP4": Format(39, 32, 17),
    "NVFP4": Format(40, 64, 36),
}
_FORMAT_NAME = {f.id: name for name, f in FORMATS.items()}
_PLAIN_DTYPE = {
    "F32": "<f4",
    "F16": "<f2",
    "F64": "<f8",
    "I8": "<i1",
    "I16": "<i2",
    "I32": "<i4",
    "I64": "<i8",
}


class GGUFError(Exception):
    """The file, or what was asked to be written, is not a valid GGUF."""


# -------------------------------------------------------------------------------------------------
# number formats


def to_bf16_bits(x):
    """Float32 values as bfloat16 bits: round to nearest even, NaN stays a (quiet) NaN.

    >>> [hex(b) for b in to_bf16_bits([1.0, 1.00390625, 1.01171875, -0.0])]
    ['0x3f80', '0x3f80', '0x3f82', '0x8000']
    """
    x = np.ascontiguousarray(x, dtype="<f4")
    u = x.view("<u4").astype(np.uint64)
    rounded = ((u + 0x7FFF + ((u >> 16) & 1)) >> 16).astype("<u2")
    quiet = ((u >> 16) | 0x40).astype("<u2")
    return np.where(np.isnan(x), quiet, rounded).astype("<u2")


def from_bf16_bits(bits):
    """Bfloat16 bits as float32 values (exact)."""
    return (np.asarray(bits, dtype="<u2").astype("<u4") << 16).view("<f4")


def round_bf16(x):
    """The nearest values that BF16 holds exactly, as float32."""
    return from_bf16_bits(to_bf16_bits(x))


_Q8_0 = np.dtype([("d", "<f2"), ("q", "i1", (32,))])


def _encode_q8_0(x):
    """Blocks of 32: scale = max|x| / 127 kept as F16, q = round(x / scale), half away from zero."""
    x = x.astype(np.float32).reshape(-1, 32)
    d = np.abs(x).max(axis=1) / np.float32(127)
    with np.errstate(divide="ignore"):
        inv = np.where(d > 0, np.float32(1) / d, np.float32(0)).astype(np.float32)
    v = (x * inv[:, None]).astype(np.float64)
    blocks = np.empty(len(x), _Q8_0)
    blocks["d"] = d
    blocks["q"] = np.sign(v) * np.floor(np.abs(v) + 0.5)
    return blocks.tobytes()


def _decode_q8_0(raw):
    blocks = np.frombuffer(raw, _Q8_0)
    return blocks["d"].astype(np.float32)[:, None] * blocks["q"].astype(np.float32)


class Tensor:
    """A named tensor: its format, shape (slowest dimension first) and stored bytes."""

    def __init__(self, name, format, shape, raw):
        if format not in FORMATS:
            raise GGUFError(f"{name}: unknown format {format}")
        self.name = name
        self.format = format
        self.shape = tuple(int(n) for n in shape)
        self.raw = raw
        if not 1 <= len(self.shape) <= MAX_DIMS:
            raise GGUFError(f"{name}: {len(self.shape)} dimensions; a tensor has 1 to {MAX_DIMS}")
        if len(raw) != self.n_bytes(format, self.shape, name):
            raise GGUFError(f"{name}: {len(raw)} bytes do not fit {format} {self.shape}")

    @property
    def ne(self):
        """The shape as the file has it, fastest dimension first."""
        return self.shape[::-1]

    @staticmethod
    def n_bytes(format, shape, name="tensor"):
        """Stored size. A row must be whole blocks."""
        f = FORMATS[format]
        if shape[-1] % f.block:
            raise GGUFError(f"{name}: rows of {shape[-1]} are no multiple of {format}'s {f.block}")
        n = 1
        for s in shape:
            n *= s
        return n // f.block * f.n_bytes

    @classmethod
    def encode(cls, name, array, format="F32"):
        """Store an array in one of the formats this file can encode.

        >>> x = np.arange(64, dtype=np.float32).reshape(2, 32)
        >>> bool(np.abs(Tensor.encode("w", x, "Q8_0").decode() - x).max() < 0.3)
        True
        >>> Tensor.encode("w", x, "BF16").ne
        (32, 2)
        """
        array = np.asarray(array)
        if format == "BF16":
            raw = to_bf16_bits(array).tobytes()
        elif format == "Q8_0":
            cls.n_bytes(format, array.shape, name)
            raw = _encode_q8_0(array)
        elif format in _PLAIN_DTYPE:
            raw = np.ascontiguousarray(array, dtype=_PLAIN_DTYPE[format]).tobytes()
        else:
            raise GGUFError(f"{name}: cannot encode {format}")
        return cls(name, format, array.shape, raw)

    def decode(self):
        """The values: float32, or the stored type for F64 and the integers."""
        if self.format == "BF16":
            x = from_bf16_bits(np.frombuffer(self.raw, "<u2"))
        elif self.format == "Q8_0":
            x = _decode_q8_0(self.raw)
        elif self.format in _PLAIN_DTYPE:
            x = np.frombuffer(self.raw, _PLAIN_DTYPE[self.format])
            x = x.astype(np.float32) if self.format == "F16" else x.copy()
        else:
            raise GGUFError(f"{self.name}: cannot decode {self.format}")
        return x.reshape(self.shape)


# -------------------------------------------------------------------------------------------------
# writing


def _pack_str(s):
    b = s if isinstance(s, bytes) else s.encode("utf-8", "surrogateescape")
    return struct.pack("<Q", len(b)) + b


def _type_id(type):
    if type.endswith("[]"):
        return _ARRAY
    if type == "str":
        return _STRING
    if type not in _SCALAR_ID:
        raise GGUFError(f"no metadata type {type!r}")
    return _SCALAR_ID[type]


def _pack_scalars(type, values):
    dtype = _SCALAR_DTYPE[type]
    for v in values:
        if dtype.kind in "ui" and not np.iinfo(dtype).min <= int(v) <= np.iinfo(dtype).max:
            raise GGUFError(f"{v} does not fit {type}")
    return np.array(list(values), dtype=dtype).tobytes()


def _pack_value(type, value):
    if type == "str":
        return _pack_str(value)
    if not type.endswith("[]"):
        return _pack_scalars(type, [value])
    elem = type[:-2]
    head = struct.pack("<IQ", _type_id(elem), len(value))
    if elem in _SCALAR_ID:
        return head + _pack_scalars(elem, value)
    return head + b"".join(_pack_value(elem, v) for v in value)


def write(path, metadata, tensors):
    """Write a file: metadata as (key, type, value) in order, then tensors in order.

    A "general.alignment" among the metadata is obeyed. The file appears whole or not at all.
    """
    metadata, tensors = list(metadata), list(tensors)
    for what, names in (("key", [m[0] for m in metadata]), ("tensor", [t.name for t in tensors])):
        twice = {n for n in names if names.count(n) > 1} if len(set(names)) < len(names) else ()
        if twice:
            raise GGUFError(f"{what} given twice: {', '.join(sorted(twice))}")
    align = next((int(v) for k, _, v in metadata if k == "general.alignment"), ALIGNMENT)
    if align <= 0:
        raise GGUFError(f"alignment {align}")

    head = [MAGIC, struct.pack("<IQQ", VERSION, len(tensors), len(metadata))]
    for key, type, value in metadata:
        try:
            head += [_pack_str(key), struct.pack("<I", _type_id(type)), _pack_value(type, value)]
        except (GGUFError, ValueError, TypeError) as e:
            raise GGUFError(f"{key}: {e}") from e
    offset = 0
    for t in tensors:
        head += [_pack_str(t.name), struct.pack("<I", len(t.shape))]
        head += [struct.pack(f"<{len(t.ne)}Q", *t.ne)]
        head += [struct.pack("<IQ", FORMATS[t.format].id, offset)]
        offset += -(-len(t.raw) // align) * align
    head = b"".join(head)

    part = f"{path}.part"
    with open(part, "wb") as f:
        f.write(head + bytes(-len(head) % align))
        for t in tensors:
            f.write(t.raw)
            f.write(bytes(-len(t.raw) % align))
    os.replace(part, path)


# -------------------------------------------------------------------------------------------------
# reading


class Value(NamedTuple):
    """A metadata value and its type as spelled in this module."""

    type: str
    value: object


class File:
    """A parsed file. `meta`: key -> Value, `tensors`: name -> Tensor, both in file order."""

    def __init__(self, path, meta, tensors, data_offset):
        self.path = path
        self.meta = meta
        self.tensors = tensors
        self.data_offset = data_offset

    def __getitem__(self, name):
        if name not in self.tensors:
            raise GGUFError(f"{self.path}: no tensor {name}")
        return self.tensors[name]

    def get(self, key, default=None):
        """The plain value of a key, or `default`."""
        return self.meta[key].value if key in self.meta else default

    def metadata(self):
        """The metadata as write() takes it."""
        return [(k, v.type, v.value) for k, v in self.meta.items()]


class _Cursor:
    """Reads a byte array front to back; running past the end is an error that names the file."""

    def __init__(self, path, data):
        self.path, self.data, self.at = path, data, 0

    def take(self, n):
        if n > len(self.data) - self.at:
            raise GGUFError(f"{self.path}: ends inside the header")
        self.at += n
        return self.data[self.at - n : self.at]

    def unpack(self, fmt):
        return struct.unpack("<" + fmt, self.take(struct.calcsize("<" + fmt)).tobytes())

    def string(self):
        raw = self.take(self.unpack("Q")[0]).tobytes()
        return raw.decode("utf-8", "surrogateescape")

    def value(self, type_id, depth=0):
        """Returns (type, value)."""
        if type_id == _STRING:
            return "str", self.string()
        if type_id in _SCALARS:
            name, dtype = _SCALARS[type_id]
            return name, np.frombuffer(self.take(np.dtype(dtype).itemsize), dtype)[0].item()
        if type_id != _ARRAY or depth > 8:
            raise GGUFError(f"{self.path}: metadata type {type_id}")
        elem, n = self.unpack("IQ")
        if elem in _SCALARS:
            name, dtype = _SCALARS[elem]
            raw = self.take(n * np.dtype(dtype).itemsize)
            return name + "[]", np.frombuffer(raw, dtype).tolist()
        if n > len(self.data):
            raise GGUFError(f"{self.path}: an array of {n} elements is longer than the file")
        got = [self.value(elem, depth + 1) for _ in range(n)]
        inner = got[0][0] if got else ("str" if elem == _STRING else "u8[]")
        return inner + "[]", [v for _, v in got]


def read(path):
    """Parse a file. Tensor bytes stay on disk (memory mapped) until they are decoded."""
    data = np.memmap(path, dtype=np.uint8, mode="r") if os.path.getsize(path) else b""
    c = _Cursor(path, data)
    if len(data) < 24 or c.take(4).tobytes() != MAGIC:
        raise GGUFError(f"{path}: not a GGUF file")
    version, n_tensors, n_kv = c.unpack("IQQ")
    if version != VERSION:
        raise GGUFError(f"{path}: GGUF version {version}; this reads version {VERSION}")
    meta = {}
    for _ in range(n_kv):
        key = c.string()
        if key in meta:
            raise GGUFError(f"{path}: key {key} twice")
        meta[key] = Value(*c.value(c.unpack("I")[0]))
    entries = []
    for _ in range(n_tensors):
        name = c.string()
        (n_dims,) = c.unpack("I")
        if not 1 <= n_dims <= MAX_DIMS:
            raise GGUFError(f"{path}: {name} has {n_dims} dimensions")
        ne = c.unpack(f"{n_dims}Q")
        entries.append((name, ne, *c.unpack("IQ")))
    align = meta["general.alignment"].value if "general.alignment" in meta else ALIGNMENT
    if not isinstance(align, int) or align <= 0:
        raise GGUFError(f"{path}: alignment {align}")
    start = -(-c.at // align) * align
    tensors = {}
    for name, ne, type_id, offset in entries:
        if type_id not in _FORMAT_NAME:
            raise GGUFError(f"{path}: {name} has unknown format {type_id}")
        format, shape = _FORMAT_NAME[type_id], ne[::-1]
        n = Tensor.n_bytes(format, shape, name)
        if name in tensors or offset % align or start + offset + n > len(data):
            raise GGUFError(f"{path}: {name} is doubled, misplaced or cut off")
        tensors[name] = Tensor(name, format, shape, data[start + offset : start + offset + n])
    return File(path, meta, tensors, start)


# -------------------------------------------------------------------------------------------------


def _list(path):
    f = read(path)
    print(f"{path}: {len(f.meta)} keys, {len(f.tensors)} tensors, data at {f.data_offset}")
    for key, (type, value) in f.meta.items():
        if isinstance(value, list) and len(value) > 12:
            print(f"  {key} {type} {len(value)}: {str(value[:8])[:-1]}, ...]")
        else:
            print(f"  {key} {type} {value!r}")
    for t in f.tensors.values():
        print(f"  {t.name} {t.format} {list(t.ne)}")


if __name__ == "__main__":
    if len(sys.argv) < 2:
        sys.exit("usage: gguf.py FILE...")
    for arg in sys.argv[1:]:
        _list(arg)
