#!/usr/bin/env python3
"""check_wasm.py FILE.wasm LATER.wgsl... - what the module asks of its host, and the size of a
download.

Fails when the module exports or imports anything that src/wasm/boundary.def does not say (a system
call crept in), or lacks something that it says, or is larger than 310 KB gzipped. It has all that a
text chat downloads of the core; other kernels come in files of their own when they are needed:
training's when a training begins, a canvas's with a diffusion model.
"""
import gzip
import pathlib
import sys

import boundary

BY_LINKER = {"memory", "_initialize"}
MAX_GZIPPED = 310 * 1000
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


def differ(what, has, said):
    return ([f"{what}s {n}, which {boundary.DEF.name} does not say" for n in sorted(has - said)]
            + [f"lacks the {what} {n} of {boundary.DEF.name}" for n in sorted(said - has)])


def main(argv):
    if len(argv) < 3:
        print(__doc__, file=sys.stderr)
        return 2
    data = pathlib.Path(argv[1]).read_bytes()
    imports, exports = read_module(data)
    gzipped, *later = (len(gzip.compress(d, 9, mtime=0))
                       for d in (data, *(pathlib.Path(f).read_bytes() for f in argv[2:])))
    rows = boundary.read_rows()
    problems = differ("export", {n for n, _ in exports},
                      {f.name for f in boundary.exports(rows)} | BY_LINKER)
    problems += differ("import", {f"{m}.{n}" for m, n, _ in imports}, {
        f"{r.args[0]}.{f.name}" for r in rows if r.kind == "IMPORTS"
        for f in boundary.imports(*r.args[1:3])})
    if gzipped > MAX_GZIPPED:
        problems.append(f"{gzipped} bytes gzipped; the limit is {MAX_GZIPPED}")
    named = {m: " ".join(sorted(n for module, n, _ in imports if module == m))
             for m in sorted({m for m, _, _ in imports})}
    print(f"{argv[1]}: {len(data)} bytes, {gzipped} gzipped, {len(exports)} exports, imports "
          + "; ".join(f"{m}: {n}" for m, n in named.items()))
    more = ", ".join(f"{pathlib.Path(f).name} {n} more" for f, n in zip(argv[2:], later))
    print(f"a text chat downloads {gzipped} bytes of it gzipped; {more}")
    for p in problems:
        print(f"{argv[1]}: {p}", file=sys.stderr)
    return 1 if problems else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv))
