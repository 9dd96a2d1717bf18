#!/usr/bin/env python3
"""boundary.py - src/wasm/boundary.def to C and TypeScript: what crosses between module and host.

    tools/boundary.py OUT_DIR FILE.ts      writes OUT_DIR/boundary.h, OUT_DIR/boundary.c and FILE.ts

boundary.def says what its rows are. A struct, an enum, a constant or an import is read from the C
header that its row names; boundary.c asserts what this page makes of it. An export without a row
does not compile (-Wmissing-prototypes), nor does one whose row says something else; a row without
an export is found by tools/check_wasm.py.
"""
import pathlib
import re
import sys
from collections import namedtuple

SRC = pathlib.Path(__file__).resolve().parent.parent / "src"
DEF = SRC / "wasm" / "boundary.def"
STRUCTS = {"READ": 3, "WRITE": 3, "OFFSETS": 2}  # kind of row -> things in it
ROWS = {"POINTER": 2, "EXPORT": 3, "IMPORTS": 4, "ENUM": 4, "NAMES": 4, "CONSTANT": 2, **STRUCTS}
# C type -> bytes, which are its alignment too, and what reads it in a DataView
TYPES = {"uint32_t": (4, "Uint32"), "int32_t": (4, "Int32"), "float": (4, "Float32"),
         "double": (8, "Float64"), "char": (1, "text")}
HANDLES = {"gpu_buffer", "gpu_pipeline", "gpu_group", "gpu_program"}  # uint32_t, in gpu/gpu.h
MADE = "/* Made by tools/boundary.py from src/wasm/boundary.def; do not edit. */"

Row = namedtuple("Row", "kind args doc")
Function = namedtuple("Function", "name type args doc")  # args: [(C type, name)]
Field = namedtuple("Field", "name offset reads n doc")  # n: bytes of a text


# ---- the table ----

def comment_text(comment):
    """Its lines without what makes them a comment."""
    lines = comment.strip().removeprefix("/*").removesuffix("*/").strip().split("\n")
    return [re.sub(r"^\s*\*? ?", "", line) for line in lines]


def read_rows():
    """Every row, with the comment right above it."""
    text, at, doc, rows = DEF.read_text(), 0, [], []
    token = re.compile(r"\s+|(?P<comment>/\*.*?\*/)|(?P<kind>[A-Z]+)\((?P<args>[^()]*)\)", re.S)
    while at < len(text):
        m, where = token.match(text, at), f"{DEF}:{text.count(chr(10), 0, at) + 1}"
        if not m or (m["kind"] and m["kind"] not in ROWS):
            raise SystemExit(f"{where}: neither a row nor a comment")
        at = m.end()
        if m["comment"]:
            doc = [] if "----" in m["comment"] else comment_text(m["comment"])
        if not m["kind"]:
            continue
        args = [" ".join(a.split()).strip('"') for a in m["args"].split(",")]
        if len(args) < 3 or not doc if m["kind"] == "EXPORT" else len(args) != ROWS[m["kind"]]:
            raise SystemExit(f"{where}: {m['kind']} takes other things, or has no comment")
        rows.append(Row(m["kind"], args, doc))
        doc = []
    return rows


def parameters(args):
    """`const char *text` -> ("const char *", "text")"""
    return [re.fullmatch(r"(.*?[ *])(\w+)", a).groups() for a in args if a != "void"]


def exports(rows):
    return [Function(r.args[1], r.args[0], parameters(r.args[2:]), r.doc)
            for r in rows if r.kind == "EXPORT"]


# ---- what the headers say ----

def header(name):
    return next(p for p in (SRC / name, SRC.parent / "include" / name) if p.is_file()).read_text()


def imports(file, macro):
    """The functions that a header declares as `MACRO("name") type c_name(arguments);`."""
    declared = re.compile(rf'((?:/\*(?:(?!\*/).)*\*/\n)?)^{macro}\("(\w+)"\)'
                          r"\s*([^;(]*?)(\w+)\(([^)]*)\);", re.S | re.M)
    return [Function(name, of.strip(), parameters([" ".join(a.split()) for a in args.split(",")]),
                     comment_text(doc) if doc else [])
            for doc, name, of, _, args in declared.findall(header(file))]


def fields(name, file):
    """The fields of a struct with their offsets, as wasm32 lays them out, and its size."""
    body = re.search(rf"^struct {name} \{{\n(.*?)^\}};", header(file), re.S | re.M)
    if not body:
        raise SystemExit(f"{file}: no struct {name}")
    found, at, widest = [], 0, 1
    # A comment of several fields is no field's own.
    own = re.sub(r"^[ \t]*/\*.*?\*/", "", body[1], flags=re.S | re.M)
    for declared, doc in re.findall(r"([^;]+);[ \t]*(?:/\*(.*?)\*/)?", own, re.S):
        of, names = re.fullmatch(r"(?:const )?(\w+)\s+(.*)", declared.strip(), re.S).groups()
        size, reads = TYPES["uint32_t" if "*" in names or of in HANDLES else of]
        widest = max(widest, size)
        for one in names.split(","):
            field, n = re.fullmatch(r"[\s*]*(\w+)(?:\[(\d+)\])?", one).groups()
            at = -(-at // size) * size
            if not n or reads == "text":
                found.append(Field(field, at, reads, int(n or 0), " ".join(comment_text(doc))))
            at += size * int(n or 1)
    return found, -(-at // widest) * widest


def enumerators(file, wanted):
    """name -> value of the first enum whose name or body has the wanted word."""
    text = re.sub(r"/\*.*?\*/", "", header(file), flags=re.S)
    for m in re.finditer(r"^enum ?(\w*) \{(.*?)\};", text, re.S | re.M):
        if m[1] != wanted and not re.search(rf"\b{wanted}\b", m[2]):
            continue
        values, following = {}, 0
        for one in filter(None, map(str.strip, m[2].split(","))):
            name, _, value = map(str.strip, one.partition("="))
            values[name] = eval(value, {}, values) if value else following
            following = values[name] + 1
        return values
    raise SystemExit(f"{file}: no enum with {wanted}")


def members(r):
    """name -> value of a row's enum, without what they all begin with; N_ ones only count."""
    values = enumerators(r.args[1], r.args[0])
    if r.kind == "NAMES" and list(values.values()) != list(range(len(values))):
        raise SystemExit(f"{r.args[1]}: enum {r.args[0]} does not count from 0")
    first = re.compile(rf"^({'|'.join(r.args[2].split())})")
    return {first.sub("", n).lower(): v for n, v in values.items() if not n.startswith("N_")}


# ---- C ----

def includes(rows):
    return [f'#include "{file}"' for file in sorted({r.args[1] for r in rows})] + [""]


def write_header(rows):
    out = [MADE, "#ifndef BEZEL_GEN_BOUNDARY_H", "#define BEZEL_GEN_BOUNDARY_H", ""]
    out += includes(r for r in rows if r.kind in ("IMPORTS", "ENUM"))
    out += [f"{r.args[0]};" for r in rows if r.kind == "POINTER" and "struct" in r.args[0]] + [""]
    out += [f"{f.type} {f.name}({', '.join(t + n for t, n in f.args) or 'void'});"
            for f in exports(rows)]
    return "\n".join(out + ["", "#endif", ""])


def write_checks(rows):
    shapes = [r for r in rows if r.kind not in ("POINTER", "EXPORT", "IMPORTS")]
    out = [MADE, "#include <stddef.h>", "#include <stdint.h>", ""] + includes(shapes)
    for r in shapes:
        name, file, *_ = r.args
        if r.kind in STRUCTS:
            found, size = fields(name, file)
            checks = {f"offsetof(struct {name}, {f.name})": f.offset for f in found}
            checks[f"sizeof(struct {name})"] = size
        else:
            checks = enumerators(file, name)
        out += [f'_Static_assert({what} == {value}, "{what}");' for what, value in checks.items()]
    return "\n".join(out + [""])


# ---- TypeScript ----

def camel(name):
    return re.sub(r"_(\w)", lambda m: m[1].upper(), name)


def write_functions(name, functions, types, more=()):
    """No interface: WebAssembly.Instance takes none."""
    out = [f"export type {name} = {{", *more]
    for f in functions:
        args = ", ".join(f"{camel(n)}: {types(t)}" for t, n in f.args)
        # comments that the package's declarations do without: they are many
        out += [f"  // {line}" for line in f.doc] + [f"  {f.name}({args}): {types(f.type)};"]
    return out + ["};", ""]


def write_field(f):
    if not f.n:
        return f"  view.set{f.reads}({f.offset}, from.{camel(f.name)}, true);"
    return f"  writeText(view, {f.offset}, {f.n}, from.{camel(f.name)});"


def write_struct(r):
    (found, size), upper, ts = fields(*r.args[:2]), r.args[0].upper(), r.args[-1]
    about = f"/** struct {r.args[0]} of {r.args[1]}. */"
    if r.kind == "OFFSETS":
        inside = ", ".join(f"{camel(f.name)}: {f.offset}" for f in found)
        return [about, f"export const {upper} = {{ sizeof: {size}, {inside} }} as const;", ""]
    out = [about, f"export interface {ts} {{"]
    for f in found:
        out += [f"  /** {f.doc} */"] if f.doc else []
        out += [f"  {camel(f.name)}: {'string' if f.n else 'number'};"]
    view = f"  const view = new DataView(memory, at, {size});"
    if r.kind == "WRITE":
        takes = f"memory: ArrayBufferLike, at: number, from: Readonly<{ts}>"
        return [*out, "}", f"export function write{ts}({takes}): void {{", view,
                *map(write_field, found), "}", ""]
    inside = ", ".join(f"{camel(f.name)}: view.get{f.reads}({f.offset}, true)" for f in found)
    return [*out, "}", f"export const {upper}_BYTES = {size};",
            f"export function read{ts}(memory: ArrayBufferLike, at = 0): {ts} {{", view,
            f"  return {{ {inside} }};", "}", ""]


def write_shape(r):
    name, file, ts = r.args[0], r.args[1], r.args[-1]
    if r.kind == "CONSTANT":
        return [f"/** Of {file}. */", f"export const {name} = {enumerators(file, name)[name]};", ""]
    if r.kind in STRUCTS:
        return write_struct(r)
    upper = re.sub(r"(?<=[a-z])(?=[A-Z])", "_", ts).upper()
    if r.kind == "ENUM":
        inside = ", ".join(f"{camel(n)}: {v}" for n, v in members(r).items())
        made, of = f"{{ {inside} }}", f"keyof typeof {upper}"
    else:
        made, of = str([n.replace("_", "-") for n in members(r)]), "number"
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

    out = [MADE, "", "declare const brand: unique symbol;",
           "/** An address in the module's memory; T says of what. */",
           "export type Ptr<T extends string> = number & { readonly [brand]: T };",
           "export type Bytes = Ptr<'bytes'>;",
           "/** Cut where it is too long, and ended by a zero. */",
           "function writeText(view: DataView, at: number, n: number, text: string): void {",
           "  const room = new Uint8Array(view.buffer, view.byteOffset + at, n).fill(0);",
           "  new TextEncoder().encodeInto(text, room.subarray(0, n - 1));", "}"]
    out += [f"export type {name} = Ptr<'{c.split()[-1]}'>;" for c, name in pointers.items()]
    out += ["", "/** What the module exports; src/wasm/boundary.def says what all of them do. */"]
    out += write_functions("Exports", exports(rows), types,
                           ["  memory: WebAssembly.Memory;", "  _initialize(): void;"])
    for r in rows:
        if r.kind == "IMPORTS":
            out += [f'/** Module "{r.args[0]}" of what it imports. */']
            out += write_functions(r.args[3], imports(*r.args[1:3]), types)
        elif r.kind not in ("POINTER", "EXPORT"):
            out += write_shape(r)
    return "\n".join(out)


def main(argv):
    if len(argv) != 3:
        print(__doc__.split("\n\n")[1], file=sys.stderr)
        return 2
    out, rows = pathlib.Path(argv[1]), read_rows()
    out.mkdir(parents=True, exist_ok=True)
    for path, text in ((out / "boundary.h", write_header(rows)),
                       (out / "boundary.c", write_checks(rows)),
                       (pathlib.Path(argv[2]), write_typescript(rows))):
        if not path.is_file() or path.read_text() != text:  # an unchanged file keeps its date
            path.write_text(text)
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv))
