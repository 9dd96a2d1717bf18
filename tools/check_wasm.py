#!/usr/bin/env python3
"""check_wasm.py FILE.wasm TRAIN.wgsl - what the module asks of its host, and the size of a
download.

Fails when the module imports from anything but "gpu" and "host" (a system call crept in), exports
names that are not ours, or is larger than 280 KB gzipped. It has all that a text chat downloads of
the core; training's kernels come in the other file when a training begins.
"""
import gzip
import pathlib
import re
import sys

MODULES = {"gpu", "host"}
EXPORTS = re.compile(r"bz_wasm_\w+|memory|_initialize")
MAX_GZIPPED = 280 * 1000
KINDS = ("function", "table", "memory", "global", "tag")


class Reader:
    def __init__(self, data):
        self.data, self.at = data, 0

    def byte(self):
        self.at += 1
        return self.data[self.at - 1]

    def number(self):
        """An unsigned LEB128."""
        value = shift = 0
        while True:
            b = self.byte()
            value |= (b & 127) << shift
            shift += 7
            if b < 128:
                return value

    def bytes(self, n):
        self.at += n
        return self.data[self.at - n:self.at]

    def name(self):
        return self.bytes(self.number()).decode()

    def limits(self):
        if self.number() & 1:
            self.number()
        self.number()

    def skip_import_type(self, kind):
        if kind == 0:
            self.number()
        elif kind == 1:
            self.byte()
            self.limits()
        elif kind == 2:
            self.limits()
        elif kind == 3:
            self.bytes(2)
        else:
            self.byte()
            self.number()


def read_module(data):
    """[(module, name, kind)] imported, [(name, kind)] exported."""
    if data[:8] != b"\0asm\1\0\0\0":
        raise ValueError("not a WebAssembly module")
    imports, exports, r = [], [], Reader(data[8:])
    while r.at < len(r.data):
        section, n = r.byte(), r.number()
        body = Reader(r.bytes(n))
        if section == 2:
            for _ in range(body.number()):
                module, name, kind = body.name(), body.name(), body.byte()
                body.skip_import_type(kind)
                imports.append((module, name, KINDS[kind]))
        elif section == 7:
            for _ in range(body.number()):
                exports.append((body.name(), KINDS[body.byte()]))
                body.number()
    return imports, exports


def main(argv):
    if len(argv) != 3:
        print(__doc__, file=sys.stderr)
        return 2
    data = pathlib.Path(argv[1]).read_bytes()
    imports, exports = read_module(data)
    gzipped, training = (len(gzip.compress(d, 9, mtime=0))
                         for d in (data, pathlib.Path(argv[2]).read_bytes()))
    problems = [f"imports {m}.{n}" for m, n, _ in imports if m not in MODULES]
    problems += [f"exports {n}" for n, _ in exports if not EXPORTS.fullmatch(n)]
    if gzipped > MAX_GZIPPED:
        problems.append(f"{gzipped} bytes gzipped; the limit is {MAX_GZIPPED}")
    named = {m: " ".join(sorted(n for module, n, _ in imports if module == m))
             for m in sorted(MODULES)}
    print(f"{argv[1]}: {len(data)} bytes, {gzipped} gzipped, {len(exports)} exports, imports "
          + "; ".join(f"{m}: {n or '-'}" for m, n in named.items()))
    print(f"a text chat downloads {gzipped} bytes of it gzipped, a training {training} more")
    for p in problems:
        print(f"{argv[1]}: {p}", file=sys.stderr)
    return 1 if problems else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv))
