"""wgsl.py - the preprocessor of kernels/ for tools: src/gpu/wgsl.c, compiled for this machine.

    files = wgsl.Files({"add.wgsl": "..."})      # path -> text without comments
    wgsl.expand(files, "add.wgsl", 0)            # -> Expanded; None where //!without excludes it
"""
import ctypes
import functools
import pathlib
import subprocess
import tempfile
from typing import NamedTuple

ROOT = pathlib.Path(__file__).resolve().parent.parent
SOURCES = [ROOT / "src" / name for name in ("gpu/wgsl.c", "base/err.c", "base/mem.c", "base/str.c")]
NOT_FOUND = 6  # BZ_ERR_NOT_FOUND of include/bezel.h


class Bad(Exception):
    """What is wrong with a file, as file:line: sentence."""


class Expanded(NamedTuple):
    name: str
    text: str
    bindings: str  # a letter each: u uniform, r read, w read and write
    places: list  # (path, line) of each line of the text


class _Buf(ctypes.Structure):
    _fields_ = [("data", ctypes.c_char_p), ("n", ctypes.c_size_t), ("cap", ctypes.c_size_t),
                ("failed", ctypes.c_bool)]


class _File(ctypes.Structure):
    _fields_ = [("path", ctypes.c_char_p), ("text", ctypes.c_char_p)]


class _Files(ctypes.Structure):
    _fields_ = [("files", ctypes.POINTER(_File)), ("n", ctypes.c_uint32)]


class _Place(ctypes.Structure):
    _fields_ = [("file", ctypes.c_uint16), ("line", ctypes.c_uint16)]


class _Wgsl(ctypes.Structure):
    _fields_ = [("name", _Buf), ("text", _Buf), ("bindings", ctypes.c_char * 15),
                ("places", ctypes.POINTER(_Place)), ("n_places", ctypes.c_uint32)]


@functools.cache
def _library():
    with tempfile.TemporaryDirectory() as folder:
        out = f"{folder}/wgsl.so"
        flags = ["-std=c11", "-O2", "-shared", "-fPIC", "-D_GNU_SOURCE", f"-I{ROOT}/include",
                 f"-I{ROOT}/src"]
        subprocess.run(["cc", *flags, *SOURCES, "-o", out], check=True)
        return ctypes.CDLL(out)


class Files:
    """Files by their paths, as struct wgsl_files."""

    def __init__(self, texts):
        self.paths = sorted(texts, key=str.encode)
        pairs = (_File(p.encode(), texts[p].encode()) for p in self.paths)
        self.array = (_File * len(self.paths))(*pairs)
        self.c = _Files(self.array, len(self.paths))


def expand(files, path, axes):
    """The variant of an entry file; None where it has no such variant."""
    out, err, library = _Wgsl(), ctypes.create_string_buffer(512), _library()
    entry = files.paths.index(path)
    status = library.wgsl_expand(ctypes.byref(out), ctypes.byref(files.c), ctypes.c_uint32(entry),
                                 ctypes.c_uint32(axes), err)
    try:
        if status == NOT_FOUND:
            return None
        if status:
            raise Bad(err.value.decode())
        places = [(files.paths[p.file], p.line) for p in out.places[:out.n_places]]
        return Expanded(out.name.data.decode(), out.text.data.decode(), out.bindings.decode(),
                        places)
    finally:
        library.wgsl_free(ctypes.byref(out))
