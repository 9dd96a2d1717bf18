#!/usr/bin/env python3
"""kernels.py - kernels/ to C: parameter structs, axes, override indices, and the sources.

    tools/kernels.py KERNELS_DIR OUT_DIR [long]      writes OUT_DIR/kernels.h, kernels.c,
    train.wgsl, canvas.wgsl and, for tests, kernels.json and names.json

A kernel's file is the only place that says what its parameters and bindings are. src/gpu/wgsl.h has
the directives, and src/gpu/wgsl.c expands every variant here as it does when a pipeline is made:
what it or this page does not know stops the build with file:line. The rules, each checked:

- A file whose opening comment has a `Reference:` is a family of kernels, called as the file is;
  every other is a piece, which a family includes. A family's variants are all combinations of its
  axes' values but those that //!without excludes. An axis with one value is no choice: it says
  which branches of the pieces a family is made of.
- A family opens with a comment: `// NAME - formula`, one row `//   x  read  what` for each buffer
  in order (read, write, or update for what is read and written), the words grid, bytes and needs,
  then `Reference:` and `Tolerance`.
- `struct Params` has u32 and f32 fields and arrays of structs of such, the same in every variant.
  As uniforms are laid out, an array begins at a multiple of 16 bytes, and so does each of its
  items. The C struct is padded to 16 bytes; a struct Name in it is `struct kernel_name`.
- Uniforms are `p : Params` at binding 0 and, where lib/step.wgsl is included, `step` at 1. Buffers
  are //!bind lines, in the order of the header's rows, at most MOST_BUFFERS in a variant, as many
  as Chromium gives. All are used: a driver may drop one that is not.
- Files of train/ are included by each other only; so are those of canvas/. Where KERNELS_OF_TEXT is
  defined, kernels.c lacks the texts that no other family needs. train.wgsl has all that training
  needs of them, canvas.wgsl what a canvas needs; each says of which build it is.
- One entry point, `main`. A variant enables what its value of the axis `tier` is named for, see
  TIERS.
- Overrides are u32 or f32 with a default; C knows them by an enum of the family. PROCESSORS is set
  by the recorder, so every variant of a family has it, or none.
- A value that a condition compares an axis with is a value of it somewhere.

The texts that are written have short names (wgsl_names.py); `long` keeps those of the files, for
someone who reads a compiler's message.
"""
import hashlib
import itertools
import json
import pathlib
import re
import sys
import typing

import wgsl
import wgsl_names
from wgsl import Bad
from wgsl_bytes import workgroup_bytes

# value of the axis `tier` -> features that such a variant must enable; software is for devices in
# software
MATRIX = "chromium_experimental_subgroup_matrix"
TIERS = {"plain": set(), "subgroup": {"subgroups"}, "matrix": {"subgroups", "f16", MATRIX},
         "software": set()}
C_TYPES = {"u32": "uint32_t", "f32": "float"}
MOST_BUFFERS = 10
FAMILY_BITS = 8
# folders whose families text does without -> the file that has their texts
LATER = {"train/": "train.wgsl", "canvas/": "canvas.wgsl"}
# lanes of a subgroup at least and at most: web/engine/src/gpu/gpu.ts
BY_HOST = ("SMALLEST", "GREATEST")
# processors of the device: src/gpu/record.c
BY_RECORDER = "PROCESSORS"


def bad(path, line, what):
    return Bad(f"{path}:{line}: {what}")


# ---- files ----

def read_files(root):
    """path -> [line without comments and needless spaces]; and path -> the opening comment's
    lines."""
    texts, headers = {}, {}
    for file in sorted(root.rglob("*.wgsl")):
        path, lines = file.relative_to(root).as_posix(), file.read_text().splitlines()
        opening = itertools.takewhile(lambda s: re.match(r"//(?!!)", s), lines)
        headers[path] = list(opening)
        texts[path] = strip(path, lines)
    if not texts:
        raise bad(root, 0, "no kernels")
    return texts, headers


def strip(path, lines):
    """The lines without comments and needless spaces. (WGSL has no strings.)"""
    out, depth = [], 0
    for text in lines:
        directive = re.match(r"\s*//!\s*(.*)$", text) if not depth else None
        if directive:
            out.append("//!" + re.sub(r"\s+", " ", directive[1].split("//")[0]).strip())
            continue
        kept, i = "", 0
        while i < len(text):
            if text.startswith("/*", i):
                depth, i = depth + 1, i + 2
            elif depth and text.startswith("*/", i):
                depth, i = depth - 1, i + 2
            elif depth:
                i += 1
            elif text.startswith("//", i):
                break
            else:
                kept, i = kept + text[i], i + 1
        kept = re.sub(r"\s+", " ", kept).strip()
        # A space beside a name or a bracket goes, unless it is between two names; operators could
        # merge.
        out.append(re.sub(r"(?<=[\w()\[\]{},;:]) (?![\w@])|(?<![\w]) (?=[\w()\[\]{},;:])", "",
                          kept))
        if "var<storage" in out[-1]:
            raise bad(path, len(out), "buffers are //!bind lines")
    if depth:
        raise bad(path, len(lines), "a comment is not closed")
    return out


# ---- a family and its variants ----

class Field(typing.NamedTuple):
    """Of Params. count: of the struct `type` with such items; 0: it is no array."""
    name: str
    type: str
    count: int = 0
    items: tuple = ()

    @property
    def bytes(self):
        return 4 * len(self.items) * self.count or 4


class Variant:
    """One expansion, read and checked."""

    def __init__(self, path, axes, expanded):
        self.path, self.axes, self.places = path, axes, expanded.places
        self.name, self.text, self.bindings = expanded.name, expanded.text, expanded.bindings
        self.check_entry()
        self.check_features()
        self.overrides = self.read_overrides()
        self.storage = self.read_bindings()  # [(name, read or read_write, where)]
        self.params = self.read_params()

    def where(self, at):
        """(path, line) of a character of the text."""
        return self.places[self.text.count("\n", 0, at)]

    def bad(self, at, what):
        """at: a character of the text; None: the file as a whole."""
        path, line = self.where(at) if at is not None else (self.path, 1)
        return bad(path, line, what)

    def check_features(self):
        found = set()
        for m in re.finditer(r"^(enable|requires)\s+([^;]*);", self.text, re.M):
            names = [n.strip() for n in m[2].split(",")]
            for n in names:
                if m[1] != "enable" or n not in set().union(*TIERS.values()):
                    raise self.bad(m.start(), f"{m[1]} {n}: no tier of ours has that")
            found.update(names)
        want = TIERS[self.axes.get("tier", "plain")]
        if found != want:
            raise self.bad(None, f"{self.name} enables {', '.join(sorted(want)) or 'nothing'}, not "
                                 f"{', '.join(sorted(found)) or 'nothing'}")

    def read_struct(self, name):
        """[(field, type, character)] of a struct; None: there is none."""
        m = re.search(rf"\bstruct {name}\s*\{{([^}}]*)\}}", self.text)
        fields = []
        for piece in re.finditer(r"(?:<[^>]*>|[^,<])+", m[1] if m else ""):
            start = m.start(1) + piece.end() - len(piece[0].lstrip())
            f = re.fullmatch(r"(\w+)\s*:\s*(\S.*)", piece[0].strip())
            if piece[0].strip() and not f:
                raise self.bad(start, f"not a field: {piece[0].strip()}")
            if f and f[1] in (n for n, *_ in fields):
                raise self.bad(start, f"field {f[1]} is there twice")
            if f:
                fields.append((f[1], f[2], start))
        return fields if m else None

    def read_params(self):
        """[Field]"""
        fields, size = [], 0
        found = self.read_struct("Params")
        if found is None:
            raise self.bad(None, "no struct Params")
        for name, of, at in found:
            m = re.fullmatch(r"array<(\w+),\s*(\d+)u?>", of)
            items = self.read_struct(m[1]) if m else None
            if of not in C_TYPES and not items:
                raise self.bad(at, f"field {name} is {of}; Params holds only u32 and f32, and "
                                   "arrays of structs of them")
            for n, t, start in items or ():
                if t not in C_TYPES:
                    raise self.bad(start, f"field {n} of {m[1]} is {t}; it holds only u32 and f32")
            if items and (size % 16 or len(items) % 4):
                raise self.bad(at, f"{name} and each of its items begin at a multiple of 16 bytes")
            field = Field(name, of)
            if items:
                field = Field(name, m[1], int(m[2]), tuple((n, t) for n, t, _ in items))
            fields.append(field)
            size += field.bytes
        if not fields:
            raise self.bad(None, "struct Params is empty")
        return fields

    def read_overrides(self):
        """name -> its default, as C has it."""
        found = {}
        for m in re.finditer(r"(@id\([^)]*\)\s*)?\boverride "
                             r"(\w+)\s*(:\s*(\w+))?\s*(?:=\s*([^;]*))?;", self.text):
            if m[1]:
                raise self.bad(m.start(2), f"override {m[2]} has an @id; they are known by name")
            if m[4] not in ("u32", "f32"):
                raise self.bad(m.start(2), f"override {m[2]} must be declared u32 or f32")
            if not m[5]:
                raise self.bad(m.start(2), f"override {m[2]} has no default")
            found[m[2]] = m[5]
        return found

    def read_bindings(self):
        uniforms, storage = {}, []
        for m in re.finditer(r"@group\((\w+)\)\s*@binding\((\w+)\)\s*var<([^>]*)>\s*(\w+):([^;]+);",
                             self.text):
            if m[3] == "uniform":
                uniforms[m[2]] = (m[1], m[4], m[5])
            else:
                storage.append((m[4], m[3], self.where(m.start())))
            if len(re.findall(rf"(?<![\w.]){m[4]}\b", self.text)) < 2:
                raise self.bad(m.start(), f"binding {m[4]} is never used")
        want = {"0": ("0", "p", "Params"), "1": ("0", "step", "Step")}
        if uniforms not in ({"0": want["0"]}, want) or self.bindings.count("u") != len(uniforms):
            raise self.bad(None, "the uniforms are p : Params at binding 0 and step : Step at 1")
        if len(storage) > MOST_BUFFERS:
            raise self.bad(None, f"{len(storage)} storage buffers; Chromium gives {MOST_BUFFERS}")
        return storage

    def check_entry(self):
        stage = r"@(?:compute|vertex|fragment)\b(?:\s*@\w+\s*(?:\([^)]*\))?)*"
        entries = re.findall(stage + r"\s*fn\s+(\w+)", self.text)
        if entries != ["main"]:
            raise self.bad(None, f"one entry point, main; found {', '.join(entries) or 'none'}")


class Family:
    """One entry file."""

    def __init__(self, path, header, axes, files):
        self.path, self.name = path, pathlib.PurePosixPath(path).stem
        if not re.fullmatch(r"[a-z][a-z0-9_]*", self.name):
            raise bad(path, 1, "a kernel's name is lower case letters, digits and _")
        self.table = read_header(path, self.name, header)
        self.axes = axes
        self.variants = {}  # number -> Variant
        for number, values in self.combinations():
            expanded = wgsl.expand(files, path, number >> FAMILY_BITS)
            if expanded:
                self.variants[number] = Variant(path, values, expanded)
        if not self.variants:
            raise bad(path, 1, "no variant is left")
        self.check_variants()
        first = next(iter(self.variants.values()))
        self.params, self.uses_step = first.params, first.bindings.startswith("uu")
        found = {o: None for v in self.variants.values() for o in v.overrides if o not in BY_HOST}
        self.overrides = list(found)
        for v in self.variants.values():
            if BY_RECORDER in found and BY_RECORDER not in v.overrides:
                raise bad(path, 1, f"{v.name} lacks {BY_RECORDER}, which others of it have")

    def combinations(self):
        """Each number (without the family's) with its values."""
        for values in itertools.product(*(axis.values for axis in self.axes)):
            number = sum(axis.values.index(v) << axis.shift for axis, v in zip(self.axes, values))
            yield number, {axis.name: v for axis, v in zip(self.axes, values)}

    def check_variants(self):
        variants = list(self.variants.values())
        first = variants[0]
        rows = {r[0]: r for r in self.table}
        for v in variants:
            if v.params != first.params:
                raise bad(self.path, 1, f"Params of {v.name} are not those of {first.name}")
            if v.bindings.count("u") != first.bindings.count("u"):
                raise bad(self.path, 1, f"{v.name} and {first.name} do not both read step")
            for name, space, (path, line) in v.storage:
                if name not in rows:
                    raise bad(path, line, f"the header says nothing about {name}")
                if (rows[name][1] == "read") != (space == "storage,read"):
                    raise bad(self.path, rows[name][2],
                              f"the header says {name} is {rows[name][1]}, the binding is {space}")
            names = [s[0] for s in v.storage]
            if names != [r[0] for r in self.table if r[0] in names]:
                raise bad(self.path, self.table[0][2],
                          f"the header's order is {' '.join(rows)}, the bindings of {v.name} "
                          f"{' '.join(names)}")
        for name, _, line in self.table:
            if not any(name == s[0] for v in variants for s in v.storage):
                raise bad(self.path, line, f"the header names {name}, which is not bound")
        names = [v.name for v in variants]
        if len(set(names)) != len(names):
            raise bad(self.path, 1,
                      f"two variants are called {next(n for n in names if names.count(n) > 1)}: "
                      "values are new words in each axis")

    @property
    def fields_bytes(self):
        return sum(f.bytes for f in self.params)

    @property
    def params_bytes(self):
        return (self.fields_bytes + 15) // 16 * 16


class Axis:
    def __init__(self, name, values, shift):
        self.name, self.values, self.shift = name, values, shift
        self.bits = (len(values) - 1).bit_length()


def read_axes(path, lines):
    axes, shift = [], FAMILY_BITS
    for n, line in enumerate(lines, 1):
        if not line.startswith("//!axis"):
            continue
        m = re.fullmatch(r"//!axis ([a-z]\w*)((?: [a-z0-9_]+)+)", line)
        if not m or len(set(m[2].split())) != len(m[2].split()):
            raise bad(path, n, "it reads: //!axis name value value, each once and in lower case")
        if m[1] == "tier" and (m[2].split()[0] != "plain" or set(m[2].split()) - set(TIERS)):
            raise bad(path, n, f"tiers are {' '.join(TIERS)}, and plain is the first")
        axes.append(Axis(m[1], m[2].split(), shift))
        shift += axes[-1].bits
    if shift > 31:
        raise bad(path, 1, f"a kernel's number has 31 bits; these axes need {shift}")
    return axes


def read_header(path, name, header):
    """The rows [(binding, mode, line)] of the opening comment; its other parts must be there."""
    if not re.match(rf"// {re.escape(name)} - \S", header[0]):
        raise bad(path, 1, f"the file opens with: // {name} - what it computes")
    text = "\n".join(header)
    for word, pattern in (("grid", r"\bgrid\b"), ("bytes", r"\bbytes\b"), ("needs", r"\bneeds\b"),
                          ("Tolerance", r"\b[Tt]olerance\b")):
        if not re.search(pattern, text):
            raise bad(path, len(header), f"the header does not say: {word}")
    rows = []
    for n, line in enumerate(header, 1):
        m = re.match(r"//\s+(\w+)\s+(read|write|update)\s", line + " ")
        if m:
            rows.append((m[1], m[2], n))
    return rows


def includes_of(lines):
    """The paths that a file names, `*` in place of $NAME."""
    for line in lines:
        m = re.match(r"//!include (\S+)", line)
        if m:
            yield re.sub(r"\$\w+", "*", m[1])


def check_included(texts, entries):
    """Every file is a family or is included by another."""
    included = {p for path in texts for pattern in includes_of(texts[path]) for p in texts
                if p == pattern or pathlib.PurePosixPath(p).match(pattern)}
    for path in sorted(texts.keys() - included - set(entries)):
        raise bad(path, 1,
                  "no file includes this one, and it is no kernel: its header has no `Reference:`")


def folder_of(path):
    """Which of LATER it is in; None: it is in another."""
    return next((folder for folder in LATER if path.startswith(folder)), None)


def check_later(texts):
    """Folders of LATER are for their own files alone."""
    for path, lines in texts.items():
        for n, line in enumerate(lines, 1):
            m = re.match(r"//!include (\S+)", line)
            if m and folder_of(m[1]) not in (None, folder_of(path)):
                raise bad(path, n, f"a file of {folder_of(m[1])} is for that folder alone")


def needed_by(texts, paths):
    """These files and all that they include."""
    found, more = set(), list(paths)
    while more:
        path = more.pop()
        if path in found:
            continue
        found.add(path)
        for pattern in includes_of(texts[path]):
            more += [p for p in texts
                     if p == pattern or pathlib.PurePosixPath(p).match(pattern)]
    return found


def of_text(texts, families):
    """The files that a build for text has; each of the others is in a file of LATER, or in
    several."""
    return needed_by(texts, [f.path for f in families if not folder_of(f.path)])


def check_words(texts, axes):
    """What conditions compare an axis with is a value of it."""
    values = {}
    for some in axes.values():
        for axis in some:
            values.setdefault(axis.name, set()).update(axis.values)
    for path, lines in texts.items():
        for n, line in enumerate(lines, 1):
            if not re.match(r"//!(if|elif|without) ", line):
                continue
            for m in re.finditer(r"(\w+) (?:== |!= |in )((?: ?\w+)+)", line):
                for word in m[2].split():
                    if m[1] in values and word not in values[m[1]]:
                        raise bad(path, n, f"no axis {m[1]} has the value {word}")


def read_all(root):
    """(texts, families)"""
    texts, headers = read_files(root)
    files = wgsl.Files({path: "\n".join(lines) for path, lines in texts.items()})
    entries = [p for p, h in headers.items() if any(re.match(r"// Reference:", line) for line in h)]
    axes = {p: read_axes(p, texts[p]) for p in entries}
    check_words(texts, axes)
    families = sorted((Family(p, headers[p], axes[p], files) for p in entries),
                      key=lambda f: f.name)
    for one, two in zip(families, families[1:]):
        if one.name == two.name:
            raise bad(two.path, 1, f"there is a kernel {two.name} in {one.path}")
    if len(families) > 1 << FAMILY_BITS:
        raise bad(root, 0, f"{len(families)} families; a number has {FAMILY_BITS} bits for them")
    check_structs(families)
    check_included(texts, entries)
    check_later(texts)
    return texts, families


def check_structs(families):
    """A struct of Params is the same in all families."""
    known = {}
    for f in families:
        for field in f.params:
            if field.count and known.setdefault(field.type, field.items) != field.items:
                raise bad(f.path, 1, f"another family has another struct {field.type} in Params")


# ---- C ----

def write_structs(families):
    """Those of Params."""
    found = {field.type: field.items for f in families for field in f.params if field.count}
    out = []
    for name, items in sorted(found.items()):
        out += [f"struct kernel_{name.lower()} {{", *(f"    {C_TYPES[t]} {n};" for n, t in items),
                "};", ""]
    return out


def c_field(field):
    if field.count:
        return f"    struct kernel_{field.type.lower()} {field.name}[{field.count}];"
    return f"    {C_TYPES[field.type]} {field.name};"


def write_header(families):
    out = ["/* Made by tools/kernels.py from kernels/; do not edit. */",
           "#ifndef BEZEL_GEN_KERNELS_H", "#define BEZEL_GEN_KERNELS_H", "",
           "#include <stdbool.h>", "#include <stdint.h>", "",
           '#include "gpu/wgsl.h"', "",
           f"/* A kernel's number is its family, in {FAMILY_BITS} bits, and above it a value for "
           "each axis. */",
           "enum kernel {"]
    out += [f"    KERNEL_{f.name.upper()}," for f in families]
    out += ["    N_KERNELS", "};", "",
            f"enum {{ KERNEL_FAMILY_BITS = {FAMILY_BITS} }};", "",
            "struct kernel_axis {",
            "    uint8_t shift, mask; /* mask 0: the family has no such axis */",
            "};", "",
            "struct kernel_family {",
            "    const char *path;             /* of its file in kernels/ */",
            "    const char *const *overrides; /* names */",
            "    uint8_t n_overrides;",
            "    uint8_t processors;    /* 1 + number of the override PROCESSORS; 0: none */",
            "    bool uses_step;        /* binding 1 is the step */",
            "    uint16_t params_bytes; /* a multiple of 16 */",
            "    struct kernel_axis tier, format;",
            "};", "",
            "/* For NAME_workgroup_bytes: what a variant takes of the device's "
            "max_workgroup_bytes, by its overrides. */",
            "static inline uint32_t kernel_max(uint32_t a, uint32_t b)", "{",
            "    return a > b ? a : b;", "}", "",
            "extern const struct kernel_family kernel_families[N_KERNELS];",
            "extern struct wgsl_file kernel_file_list[]; /* a text is NULL where it has to be "
            "brought */",
            "extern const struct wgsl_files kernel_files; /* the same */",
            "extern const char kernel_build[];            /* of the sources */", ""]
    out += write_structs(families)
    for f in families:
        out.append(f"struct {f.name}_params {{")
        out += [c_field(field) for field in f.params]
        pad = (f.params_bytes - f.fields_bytes) // 4
        if pad:
            out.append(f"    uint32_t pad_[{pad}];")
        out += ["};",
                f'_Static_assert(sizeof(struct {f.name}_params) == {f.params_bytes}, "{f.name}: '
                'Params");']
        upper = f.name.upper()
        if f.overrides:
            out.append("enum { " + ", ".join(f"{upper}_{o}".upper() for o in f.overrides) + " };")
        for axis in f.axes:
            values = ", ".join(f"{upper}_{axis.name}_{v}".upper()
                               + f" = {i}{f' << {axis.shift}' if i else ''}"
                               for i, v in enumerate(axis.values))
            if axis.bits:
                shift = f"{upper}_{axis.name.upper()}_SHIFT = {axis.shift}"
                out.append(f"enum {{ {shift}, {values} }};")
        out += [*workgroup_bytes(f), ""]
    return "\n".join(out + ["#endif", ""])


def c_string(lines):
    """A literal, one line of the source a line."""
    quoted = [line.replace("\\", "\\\\").replace('"', '\\"') for line in lines]
    return "\n".join(f'    "{line}\\n"' for line in quoted)


def build_of(texts):
    """A number of these sources."""
    return hashlib.sha256(json.dumps(texts, sort_keys=True).encode()).hexdigest()[:16]


def write_source(texts, families):
    out = ["/* Made by tools/kernels.py from kernels/; do not edit. */", '#include "kernels.h"', "",
           "/* ISO C promises only 4095 characters a literal; every compiler here takes more. */",
           '#pragma GCC diagnostic ignored "-Woverlength-strings"', "",
           "#ifdef KERNELS_OF_TEXT", "#define LATER(text) 0", "#else",
           "#define LATER(text) text", "#endif", "",
           f'const char kernel_build[] = "{build_of(texts)}";', "",
           "struct wgsl_file kernel_file_list[] = {"]
    paths, of = sorted(texts, key=str.encode), of_text(texts, families)
    for path in paths:
        text = c_string([line for line in texts[path] if line])
        text = text if path in of else f"LATER({text})"
        out.append(f'    {{ "{path}",\n{text} }},')
    out += ["};", "",
            f"const struct wgsl_files kernel_files = {{ kernel_file_list, {len(paths)} }};", ""]
    for f in families:
        if f.overrides:
            names = ", ".join(f'"{o}"' for o in f.overrides)
            out += [f"static const char *const {f.name}_overrides[] = {{ {names} }};"]
    out += ["", "const struct kernel_family kernel_families[N_KERNELS] = {"]
    for f in families:
        out += [f"    [KERNEL_{f.name.upper()}] = {{", f'        .path = "{f.path}",']
        if f.overrides:
            out += [f"        .overrides = {f.name}_overrides,",
                    f"        .n_overrides = {len(f.overrides)},"]
        if BY_RECORDER in f.overrides:
            out.append(f"        .processors = {1 + f.overrides.index(BY_RECORDER)},")
        out += [f"        .uses_step = {'true' if f.uses_step else 'false'},",
                f"        .params_bytes = {f.params_bytes},"]
        out += [f"        .{a.name} = {{ {a.shift}, {(1 << a.bits) - 1} }}," for a in f.axes
                if a.bits and a.name in ("tier", "format")]
        out.append("    },")
    return "\n".join(out + ["};", ""])


def write_later(texts, families, folder):
    """What kernels.c lacks of a folder's families where KERNELS_OF_TEXT is defined:
    src/gpu/kernel.c reads it."""
    out = [f"//!build {build_of(texts)}"]
    needed = needed_by(texts, [f.path for f in families if folder_of(f.path) == folder])
    for path in sorted(needed - of_text(texts, families), key=str.encode):
        out += [f"//!file {path}", *(line for line in texts[path] if line)]
    return "\n".join(out) + "\n"


def write_names(families):
    """Every variant's name and number."""
    names = {v.name: i | number for i, f in enumerate(families) for number, v in f.variants.items()}
    return json.dumps(names, indent=0) + "\n"


def with_short_names(texts, short):
    return {path: [short.line(line) for line in lines] for path, lines in texts.items()}


def write_short(short):
    said = {"names": short.names, "suffixes": sorted(short.suffixes)}
    return json.dumps(said, indent=0, sort_keys=True) + "\n"


def write_if_changed(path, text):
    """An unchanged file keeps its date, so that nothing is built again."""
    if not path.is_file() or path.read_text() != text:
        path.write_text(text)


def main(argv):
    if len(argv) < 3 or argv[3:] not in ([], ["long"]):
        print(__doc__.split("\n\n")[1], file=sys.stderr)
        return 2
    root, out = pathlib.Path(argv[1]), pathlib.Path(argv[2])
    try:
        texts, families = read_all(root)
        short = wgsl_names.short({} if argv[3:] else texts)
        texts = with_short_names(texts, short)
        written = {"kernels.h": write_header(families), "kernels.c": write_source(texts, families),
                   "kernels.json": write_names(families), "names.json": write_short(short),
                   **{file: write_later(texts, families, folder) for folder, file in LATER.items()}}
    except Bad as e:
        print(f"{root}/{e}", file=sys.stderr)
        return 1
    out.mkdir(parents=True, exist_ok=True)
    for name, text in written.items():
        write_if_changed(out / name, text)
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv))
