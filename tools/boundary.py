#!/usr/bin/env python3
"""boundary.py - src/wasm/boundary.def to C and TypeScript: what crosses between the module and its host.

    tools/boundary.py OUT_DIR FILE.ts      writes OUT_DIR/boundary.h, OUT_DIR/boundary.c and FILE.ts

boundary.def says what its rows are. A struct, an enum, a constant or an import is defined in the C header that its row
names, and read from there. What this page makes of a header is checked by the compiler: boundary.c asserts every
offset and every value. An export without a row does not compile (-Wmissing-prototypes), nor does one whose row says
something else. A row without an export is found by tools/check_wasm.py.
"""
import pathlib
import re
import sys
from collections import namedtuple

SRC = pathlib.Path(__file__).resolve().parent.parent / "src"
DEF = SRC / "wasm" / "boundary.def"
# C type -> bytes, which are its alignment too, and what reads it in a DataView; a pointer is a uint32_t
NUMBERS = {"uint32_t": (4, "Uint32"), "int32_t": (4, "Int32"), "float": (4, "Float32"), "double": (8, "Float64")}
HANDLES = {"gpu_buffer", "gpu_pipeline", "gpu_group", "gpu_program"}  # typedefs of uint32_t in gpu/gpu.h
ROWS = {"POINTER": 2, "EXPORT": 3, "IMPORTS": 4, "READ": 3, "WRITE": 3, "OFFSETS": 2, "ENUM": 4, "NAMES": 4, "CONSTANT": 2}

Row = namedtuple("Row", "kind args doc")
Function = namedtuple("Function", "name type args doc")  # args: [(C type, name)]
Field = namedtuple("Field", "name offset reads doc")
MODULE_DOC = "/* Made by tools/boundary.py from src/wasm/boundary.def; do not edit. */"


# ---- the table ----

def comment_text(comment):
    """Its lines without what makes them a comment."""
    return [re.sub(r"^\s*\*? ?", "", line) for line in comment.removeprefix("/*").removesuffix("*/").strip().split("\n")]


def read_rows():
    """Every row, with the comment right above it."""
    text, at, doc, rows = DEF.read_text(), 0, [], []
    token = re.compile(r"(?P<space>\s+)|(?P<comment>/\*.*?\*/)|(?P<kind>[A-Z]+)\((?P<args>[^()]*)\)", re.S)
    while at < len(text):
        m = token.match(text, at)
        where = f"{DEF}:{text.count(chr(10), 0, at) + 1}"
        if not m or (m["kind"] and m["kind"] not in ROWS):
            raise SystemExit(f"{where}: neither a row nor a comment")
        if m["comment"]:
            doc = [] if "----" in m["comment"] else comment_text(m["comment"])
        elif m["kind"]:
            args = [re.sub(r"\s+", " ", a).strip(' "') for a in m["args"].split(",")]
            if len(args) < 3 or not doc if m["kind"] == "EXPORT" else len(args) != ROWS[m["kind"]]:
                raise SystemExit(f"{where}: a {m['kind']} is {ROWS[m['kind']]} things, and an EXPORT has a comment")
            rows.append(Row(m["kind"], args, doc))
            doc = []
        at = m.end()
    return rows


def parameters(args):
    """`const char *text` -> ("const char *", "text")"""
    return [] if args == ["void"] else [re.fullmatch(r"(.*?[ *])(\w+)", a).groups() for a in args]


def exports(rows):
    return [Function(r.args[1], r.args[0], parameters(r.args[2:]), r.doc) for r in rows if r.kind == "EXPORT"]


# ---- what the headers say ----

def header(name):
    return next(p for p in (SRC / name, SRC.parent / "include" / name) if p.is_file()).read_text()


def plain(text):
    return re.sub(r"/\*.*?\*/", "", text, flags=re.S)


def imports(file, macro):
    """The host's functions that a header declares as `MACRO("name") type c_name(arguments);`."""
    found = re.finditer(rf'((?:/\*(?:(?!\*/).)*\*/\s*)?)^{macro}\("(\w+)"\)\s*([^;(]*?)(\w+)\(([^)]*)\);', header(file), re.S | re.M)
    return [Function(m[2], m[3].strip(), parameters([re.sub(r"\s+", " ", a).strip() for a in m[5].split(",")]),
                     comment_text(m[1].strip()) if m[1] else []) for m in found]


def fields(name, file):
    """The fields of a struct with their offsets, as wasm32 lays them out, and its size."""
    body = re.search(rf"^struct {name} \{{\n(.*?)^\}};", header(file), re.S | re.M)
    if not body:
        raise SystemExit(f"{file}: no struct {name}")
    found, at, widest = [], 0, 4
    for declared, doc in re.findall(r"([^;]+);[ \t]*(?:/\*(.*?)\*/)?", body[1], re.S):
        m = re.fullmatch(r"(?:const )?(\w+)\s+(.*)", plain(declared).strip(), re.S)
        of = "uint32_t" if "*" in m[2] or m[1] in HANDLES else m[1]
        if of not in NUMBERS:
            raise SystemExit(f"{file}: struct {name} has a {m[1]}, which is not for a host")
        size, reads = NUMBERS[of]
        widest = max(widest, size)
        for one in m[2].split(","):
            field, count = re.fullmatch(r"[\s*]*(\w+)(?:\[(\d+)\])?", one).groups()
            at = (at + size - 1) // size * size
            if not count:
                found.append(Field(field, at, reads, " ".join(" ".join(comment_text(doc)).split())))
            at += size * int(count or 1)
    return found, (at + widest - 1) // widest * widest


def enumerators(file, pattern):
    """name -> value of the first enum whose head and body match."""
    for m in re.finditer(r"^enum ?(\w*) \{(.*?)\};", plain(header(file)), re.S | re.M):
        if not re.search(pattern, f"{m[1]} {m[2]}"):
            continue
        values, following = {}, 0
        for one in filter(None, (s.strip() for s in m[2].split(","))):
            name, _, value = one.partition("=")
            values[name.strip()] = following = eval(value, {}, values) if value else following
            following += 1
        return values
    raise SystemExit(f"{file}: no enum with {pattern}")


def enum(r):
    """name -> value of a row's enum, without what they all begin with. (N_ ones only count the others.)"""
    values = enumerators(r.args[1], rf"^{r.args[0]} ")
    if r.kind == "NAMES" and list(values.values()) != list(range(len(values))):
        raise SystemExit(f"{r.args[1]}: enum {r.args[0]} does not count from 0")
    return {re.sub(rf"^({'|'.join(r.args[2].split())})", "", n): v for n, v in values.items() if not n.startswith("N_")}


def constant(r):
    return enumerators(r.args[1], rf"\b{r.args[0]}\b")[r.args[0]]


# ---- C ----

def write_header(rows):
    out = [MODULE_DOC, "#ifndef BEZEL_GEN_BOUNDARY_H", "#define BEZEL_GEN_BOUNDARY_H", ""]
    out += [f'#include "{file}"' for file in sorted({r.args[1] for r in rows if r.kind in ("IMPORTS", "ENUM")})] + [""]
    out += [f"{r.args[0]};" for r in rows if r.kind == "POINTER" and r.args[0].startswith("struct")] + [""]
    out += [f"{f.type} {f.name}({', '.join(t + n for t, n in f.args) or 'void'});" for f in exports(rows)]
    return "\n".join(out + ["", "#endif", ""])


def write_checks(rows):
    shapes = [r for r in rows if r.kind not in ("POINTER", "EXPORT", "IMPORTS")]
    out = [MODULE_DOC, "#include <stddef.h>", "#include <stdint.h>", ""]
    out += [f'#include "{file}"' for file in sorted({r.args[1] for r in shapes})] + [""]
    for r in shapes:
        name, file = r.args[0], r.args[1]
        if r.kind in ("READ", "WRITE", "OFFSETS"):
            found, size = fields(name, file)
            checks = [(f"offsetof(struct {name}, {f.name})", f.offset) for f in found] + [(f"sizeof(struct {name})", size)]
        elif r.kind == "CONSTANT":
            checks = [(name, constant(r))]
        else:
            checks = enumerators(file, rf"^{name} ").items()
        out += [f'_Static_assert({what} == {value}, "{what}");' for what, value in checks]
    return "\n".join(out + [""])


# ---- TypeScript ----

def camel(name):
    return re.sub(r"_(\w)", lambda m: m[1].upper(), name)


def ts_doc(lines):
    return ["  /** " + "\n   *  ".join(lines) + " */"] if lines else []


def write_functions(name, functions, types, more=()):
    out = [f"export type {name} = {{", *more]  # no interface: WebAssembly.Instance takes those of known names only
    for f in functions:
        args = ", ".join(f"{camel(n)}: {types(t)}" for t, n in f.args)
        out += ts_doc(f.doc) + [f"  {f.name}({args}): {types(f.type)};"]
    return out + ["};", ""]


def write_struct(r):
    (found, size), name = fields(r.args[0], r.args[1]), (r.args + [None])[2]
    about = f"/** struct {r.args[0]} of {r.args[1]}. */"
    if r.kind == "OFFSETS":
        inside = ", ".join(f"{camel(f.name)}: {f.offset}" for f in found)
        return [about, f"export const {r.args[0].upper()} = {{ sizeof: {size}, {inside} }} as const;", ""]
    out = [about, f"export interface {name} {{"]
    for f in found:
        out += ts_doc([f.doc] if f.doc else []) + [f"  {camel(f.name)}: number;"]
    view = f"  const view = new DataView(memory, at, {size});"
    if r.kind == "WRITE":
        return out + ["}", f"export function write{name}(memory: ArrayBufferLike, at: number, from: Readonly<{name}>): void {{", view,
                      *(f"  view.set{f.reads}({f.offset}, from.{camel(f.name)}, true);" for f in found), "}", ""]
    inside = ", ".join(f"{camel(f.name)}: view.get{f.reads}({f.offset}, true)" for f in found)
    return out + ["}", f"export const {r.args[0].upper()}_BYTES = {size};",
                  f"export function read{name}(memory: ArrayBufferLike, at = 0): {name} {{", view, f"  return {{ {inside} }};", "}", ""]


def write_shape(r):
    name, file = r.args[0], r.args[1]
    if r.kind == "CONSTANT":
        return [f"/** Of {file}. */", f"export const {name} = {constant(r)};", ""]
    if r.kind not in ("ENUM", "NAMES"):
        return write_struct(r)
    ts, upper = r.args[3], re.sub(r"(?<=[a-z])(?=[A-Z])", "_", r.args[3]).upper()
    if r.kind == "ENUM":
        inside = ", ".join(f"{camel(n.lower())}: {v}" for n, v in enum(r).items())
        made, of = f"{{ {inside} }}", f"keyof typeof {upper}"
    else:
        made, of = "[" + ", ".join(f"'{n.lower().replace('_', '-')}'" for n in enum(r)) + "]", "number"
    return [f"/** enum {name} of {file}. */", f"export const {upper} = {made} as const;",
            f"export type {ts} = (typeof {upper})[{of}];", ""]


def write_typescript(rows):
    pointers = {r.args[0]: r.args[1] for r in rows if r.kind == "POINTER"}
    enums = {f"enum {r.args[0]}": r.args[3] for r in rows if r.kind == "ENUM"}

    def types(c):
        of = c.strip().removeprefix("const ").rstrip("* ")
        if "*" in c:
            return pointers.get(of, "Bytes")
        return "void" if of == "void" else enums.get(of, "number")

    out = [MODULE_DOC, "", "declare const brand: unique symbol;",
           "/** An address in the module's memory; T says of what. */",
           "export type Ptr<T extends string> = number & { readonly [brand]: T };",
           "export type Bytes = Ptr<'bytes'>;"]
    out += [f"export type {name} = Ptr<'{c.split()[-1]}'>;" for c, name in pointers.items()]
    out += ["", "/** What the module exports. Functions that fail return 0 (pointers) or -1 (numbers). */"]
    out += write_functions("Exports", exports(rows), types, ["  memory: WebAssembly.Memory;", "  _initialize(): void;"])
    for r in rows:
        if r.kind == "IMPORTS":
            out += [f'/** Module "{r.args[0]}" of what it imports. */']
            out += write_functions(r.args[3], imports(r.args[1], r.args[2]), types)
        elif r.kind not in ("POINTER", "EXPORT"):
            out += write_shape(r)
    return "\n".join(out)


def main(argv):
    if len(argv) != 3:
        print(__doc__.split("\n\n")[1], file=sys.stderr)
        return 2
    out = pathlib.Path(argv[1])
    out.mkdir(parents=True, exist_ok=True)
    rows = read_rows()
    for path, text in ((out / "boundary.h", write_header(rows)), (out / "boundary.c", write_checks(rows)),
                       (pathlib.Path(argv[2]), write_typescript(rows))):
        if not path.is_file() or path.read_text() != text:  # an unchanged file keeps its date
            path.write_text(text)
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv))
