#!/usr/bin/env python3
"""kernels.py - kernels/*.wgsl to C: parameter structs, override indices, and the table of sources.

    tools/kernels.py KERNELS_DIR OUT_DIR      writes OUT_DIR/kernels.h and OUT_DIR/kernels.c

A kernel's file is the only place that says what its parameters and bindings are. It is read here, not
compiled: what this page does not know stops the build with file:line. The rules, each checked:

- NAME.wgsl is the plain tier; NAME.TIER.wgsl (see TIERS) is a faster one with the same Params and the
  same storage bindings. `//!include lib/x.wgsl` pulls in a shared piece, once. `//!include lib/x.wgsl as third`
  pulls it in once more with _third after every name that it and what it includes declare: a second shape.
- `//!for SHAPE in f32 q4_k` makes one kernel per word, NAME_f32 and NAME_q4_k, with $SHAPE replaced by the
  word in the lines that follow. Their numbers follow each other; Params and overrides are shared.
- The file opens with a comment: `// NAME - formula`, one row `//   x  read  what` for each storage
  binding in order (read, write, or update for what is read and written), the words grid, bytes and
  needs, then `Reference:` and `Tolerance`.
- `struct Params` has u32 and f32 fields only; the C struct is padded to 16 bytes.
- Bindings of group 0 without gaps: 0 `var<uniform> p : Params`, 1 `step` where lib/step.wgsl is
  included, then at most MOST_BUFFERS storage buffers, as many as Chromium gives. All are used: a driver may drop one that is not.
- What `main` cannot reach is left out of the table.
- One entry point, `main`. A plain file enables no feature; a tier enables what it is named for, and .lone, which is
  for devices in software, nothing.
"""
import pathlib
import re
import sys

# tier -> features that its files must enable
MATRIX = "chromium_experimental_subgroup_matrix"
TIERS = {"": set(), "subgroup": {"subgroups"}, "f16": {"f16"}, "matrix": {"subgroups", "f16", MATRIX}, "lone": set()}
# `enable` name -> bit of kernel_info.needs and its C name
FEATURES = {"subgroups": (1, "KERNEL_NEEDS_SUBGROUPS"), "f16": (2, "KERNEL_NEEDS_F16"),
            MATRIX: (4, "KERNEL_NEEDS_MATRIX")}
C_TYPES = {"u32": "uint32_t", "f32": "float"}
STEP = "lib/step.wgsl"
MOST_BUFFERS = 10
BY_HOST = ("SMALLEST", "GREATEST")  # lanes of a subgroup at least and at most: web/engine/src/gpu.ts


class Bad(Exception):
    """A construct that the generator does not accept."""

    def __init__(self, where, what):
        super().__init__(f"{where[0]}:{where[1]}: {what}")


class Kernel:
    """One file (for one word of its //!for line), read and checked."""

    def __init__(self, path, root, word=""):
        self.path, self.word = path, word
        self.stem, self.tier = split_name(path)
        self.name = self.stem + ("_" + word if word else "")
        self.included = []
        raw = expand(path, root, self.included, word)
        self.table = read_header(path, self.stem)
        # (file, line) and text without comments, line by line
        self.lines = strip_comments(raw)
        self.text = "\n".join(text for _, text in self.lines)
        self.features = self.read_features()
        self.params = self.read_params()
        self.overrides = self.read_overrides()
        self.bindings = self.read_bindings()  # letters: u uniform, r read, w read and write
        self.check_entry()

    @property
    def c_name(self):
        return self.name + ("_" + self.tier if self.tier else "")

    @property
    def c_stem(self):
        """The name of what all words of a file share."""
        return self.stem + ("_" + self.tier if self.tier else "")

    @property
    def needed(self):
        """The declarations that `main` can reach, one text each: hosts read every kernel at every start. Bindings and
        overrides stay, since pipelines name them."""
        out, names, now, depth = [], [], [], 0
        for _, text in self.lines:
            now.append(text)
            depth += text.count("{") - text.count("}")
            if depth == 0 and text[-1] in ";}":
                out.append("\n".join(now))
                named = re.search(r"\b(?:fn|struct|alias|const|var(?:<[^>]*>)?)\s+(\w+)", out[-1])
                names.append(named[1] if named else None)
                now = []
        kept = {i for i, text in enumerate(out) if names[i] in (None, "main") or text.startswith("@group")}
        more = kept
        while more:
            used = {word for i in more for word in re.findall(r"[A-Za-z_]\w*", out[i])}
            more = {i for i, name in enumerate(names) if name in used} - kept
            kept |= more
        return [text for i, text in enumerate(out) if i in kept]

    def where(self, at):
        """(file, line) of a character of self.text."""
        return self.lines[self.text.count("\n", 0, at)][0]

    def read_features(self):
        found = set()
        for m in re.finditer(r"^\s*(enable|requires)\s+([^;]*);", self.text, re.M):
            names = [n.strip() for n in m[2].split(",")]
            for n in names:
                if m[1] != "enable" or n not in FEATURES:
                    raise Bad(self.where(m.start(1)), f"{m[1]} {n}: no tier of ours has that")
            found.update(names)
        if found != TIERS[self.tier]:
            want = ", ".join(sorted(TIERS[self.tier])) or "nothing"
            raise Bad((self.path, 1), f"this tier enables {want}, not {', '.join(sorted(found)) or 'nothing'}")
        return found

    def read_params(self):
        m = re.search(r"\bstruct\s+Params\s*\{([^}]*)\}", self.text)
        if not m:
            raise Bad((self.path, 1), "no struct Params")
        fields, at = [], m.start(1)
        for piece in m[1].split(","):
            if piece.strip():
                start = at + len(piece) - len(piece.lstrip())
                f = re.fullmatch(r"(\w+)\s*:\s*(\S.*)", piece.strip())
                if not f:
                    raise Bad(self.where(start), f"not a field: {piece.strip()}")
                if f[2] not in C_TYPES:
                    raise Bad(self.where(start), f"field {f[1]} is {f[2]}; Params holds only u32 and f32")
                if f[1] in (n for n, _ in fields):
                    raise Bad(self.where(start), f"field {f[1]} is there twice")
                fields.append((f[1], f[2]))
            at += len(piece) + 1
        if not fields:
            raise Bad(self.where(m.start()), "struct Params is empty")
        return fields

    def read_overrides(self):
        found = []
        for m in re.finditer(r"(@id\([^)]*\)\s*)?\boverride\s+(\w+)\s*(:\s*(\w+))?\s*(=[^;]*)?;", self.text):
            where = self.where(m.start(2))
            if m[1]:
                raise Bad(where, f"override {m[2]} has an @id; they are known by name")
            if m[4] not in ("u32", "f32"):
                raise Bad(where, f"override {m[2]} must be declared u32 or f32")
            if not m[5]:
                raise Bad(where, f"override {m[2]} has no default")
            found.append(m[2])
        # What the host itself fills in has no number of its own.
        return sorted(found, key=lambda name: name in BY_HOST)

    def read_bindings(self):
        found = {}
        pattern = r"((?:@\w+\s*\([^)]*\)\s*)+)var\s*<([^>]*)>\s*(\w+)\s*:\s*([^;]+);"
        for m in re.finditer(pattern, self.text):
            where = self.where(m.start(2))
            at = dict(re.findall(r"@(\w+)\s*\(\s*(\w+)\s*\)", m[1]))
            if at.get("group") != "0" or not at.get("binding", "").isdigit():
                raise Bad(where, f"{m[3]}: bindings are @group(0) @binding(number)")
            number = int(at["binding"])
            if number in found:
                raise Bad(where, f"binding {number} is there twice")
            found[number] = (m[3], re.sub(r"\s", "", m[2]), m[4].strip(), where)
            if len(re.findall(rf"(?<![\w.]){m[3]}\b", self.text)) < 2:
                raise Bad(where, f"binding {m[3]} is never used")
        uses_step = STEP in self.included
        for number in range(len(found)):
            if number not in found:
                raise Bad((self.path, 1), f"bindings jump over {number}")
        fixed = [("p", "uniform", "Params")] + ([("step", "uniform", "Step")] if uses_step else [])
        for number, want in enumerate(fixed):
            if number not in found or found[number][:3] != want:
                where = found[number][3] if number in found else (self.path, 1)
                raise Bad(where, f"binding {number} must be var<{want[1]}> {want[0]} : {want[2]}")
        storage = [found[n] for n in range(len(fixed), len(found))]
        if len(storage) > MOST_BUFFERS:
            raise Bad((self.path, 1), f"{len(storage)} storage buffers; Chromium gives {MOST_BUFFERS}")
        self.check_table(storage)
        self.storage = [s[0] for s in storage]
        return "u" * len(fixed) + "".join("r" if s[1] == "storage,read" else "w" for s in storage)

    def check_table(self, storage):
        """The header's rows against the declarations."""
        for name, space, _, where in storage:
            if space not in ("storage,read", "storage,read_write"):
                raise Bad(where, f"{name} is var<{space}>; buffers are var<storage, read> or read_write")
            row = next((r for r in self.table if r[0] == name), None)
            if not row:
                raise Bad(where, f"the header says nothing about {name}")
            if (row[1] == "read") != (space == "storage,read"):
                raise Bad(row[2], f"the header says {name} is {row[1]}, the binding is {space}")
        names, rows = [s[0] for s in storage], [r[0] for r in self.table]
        if names != rows:
            extra = next((r for r in self.table if r[0] not in names), None)
            if extra:
                raise Bad(extra[2], f"the header names {extra[0]}, which is not bound")
            raise Bad(self.table[0][2], f"the header's order is {' '.join(rows)}, the bindings' {' '.join(names)}")

    def check_entry(self):
        entries = re.findall(r"@(?:compute|vertex|fragment)\b(?:\s*@\w+\s*(?:\([^)]*\))?)*\s*fn\s+(\w+)", self.text)
        if entries != ["main"]:
            raise Bad((self.path, 1), f"one entry point, main; found {', '.join(entries) or 'none'}")


def split_name(path):
    parts = path.name[: -len(".wgsl")].split(".")
    stem, tier = parts[0], ".".join(parts[1:])
    if tier not in TIERS:
        raise Bad((path, 1), f"unknown tier .{tier}; there are {', '.join(t for t in TIERS if t)}")
    if not re.fullmatch(r"[a-z][a-z0-9_]*", stem):
        raise Bad((path, 1), "a kernel's name is lower case letters, digits and _")
    return stem, tier


FOR = re.compile(r"//!for ([A-Z]\w*) in ((?: ?[a-z]\w*)+)$")


def words_of(path):
    """The words of the file's //!for line; one empty word without it."""
    for n, line in enumerate(path.read_text().splitlines(), 1):
        if line.startswith("//!for"):
            m = FOR.match(line)
            if not m or len(set(m[2].split())) != len(m[2].split()):
                raise Bad((path, n), "it reads: //!for SHAPE in word word, each once")
            return m[2].split()
    return [""]


INCLUDE = re.compile(r"\s*//!\s*include\s+(\S+)(?:\s+as\s+([a-z]\w*))?\s*$")
DECLARED = re.compile(r"(?:fn|struct|alias|const|override|var(?:<[^>]*>)?)\s+(\w+)")


def expand(path, root, included, word="", suffix=""):
    """[((file, line), text)] with the includes and the word in place."""
    out, variable = [], None
    for n, line in enumerate(path.read_text().splitlines(), 1):
        code = line.split("//")[0] if not line.lstrip().startswith("//!") else line
        if variable:
            line, code = line.replace("$" + variable, word), code.replace("$" + variable, word)
        m = INCLUDE.match(line)
        loop = FOR.match(line) if path.parent == root else None
        if "$" in code:
            raise Bad((path, n), "a $ without a //!for line above it")
        if loop and not variable:
            variable = loop[1]
        elif not m:
            if line.lstrip().startswith("//!"):
                raise Bad((path, n), "the only //! lines are //!include lib/x.wgsl [as name] and, once, //!for X in ...")
            out.append(((path, n), line))
        else:
            out += include(m[1], m[2] or suffix, bool(m[2]), (path, n), root, included)
    return out


def include(name, suffix, outermost, where, root, included):
    """The lines of a piece that is not there yet; names of a suffixed one are changed where it was asked for."""
    piece, key = root / name, name + (" as " + suffix if suffix else "")
    if not name.startswith("lib/") or not piece.is_file():
        raise Bad(where, f"no such piece: {name}")
    if key in included:
        return []
    included.append(key)
    lines = expand(piece, root, included, suffix=suffix)
    return rename(lines, suffix, declared_as(suffix, root, included)) if outermost else lines


def declared_as(suffix, root, included):
    """Names at the outermost level of all pieces with this suffix."""
    names = set()
    for key in included:
        if key.endswith(" as " + suffix):
            text = (root / key.split(" as ")[0]).read_text()
            names.update(m[1] for m in map(DECLARED.match, text.splitlines()) if m)
    return names


def rename(lines, suffix, names):
    pattern = re.compile(r"(?<![\w.])(" + "|".join(sorted(names)) + r")\b")
    return [(where, pattern.sub(rf"\1_{suffix}", text)) for where, text in lines]


def strip_comments(lines):
    """Without comments, needless white space and empty lines. (WGSL has no strings.)"""
    out, depth = [], 0
    for where, text in lines:
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
        kept = re.sub(r" ?([{}()\[\],;:]) ?", r"\1", kept)  # never around operators: they could merge
        if kept:
            out.append((where, kept))
    if depth:
        raise Bad(lines[-1][0], "a comment is not closed")
    return out


def read_header(path, name):
    """The rows [(binding, mode, (file, line))] of the opening comment; its other parts must be there."""
    lines = path.read_text().splitlines()
    header = []
    for line in lines:
        if not line.startswith("//") or line.startswith("//!"):
            break
        header.append(line)
    full = path.name[: -len(".wgsl")]
    if not header or not re.match(rf"// ({re.escape(name)}|{re.escape(full)}) - \S", header[0]):
        raise Bad((path, 1), f"the file opens with: // {full} - what it computes")
    text = "\n".join(header)
    for word, pattern in (("grid", r"\bgrid\b"), ("bytes", r"\bbytes\b"), ("needs", r"\bneeds\b"),
                          ("Reference:", r"\bReference:"), ("Tolerance", r"\b[Tt]olerance\b")):
        if not re.search(pattern, text):
            raise Bad((path, len(header)), f"the header does not say: {word}")
    rows = []
    for n, line in enumerate(header, 1):
        m = re.match(r"//\s+(\w+)\s+(read|write|update)\s", line + " ")
        if m:
            rows.append((m[1], m[2], (path, n)))
    return rows


def read_all(root):
    kernels = [Kernel(p, root, word) for p in sorted(root.glob("*.wgsl")) for word in words_of(p)]
    if not kernels:
        raise Bad((root, 0), "no kernels")
    plain = {k.name: k for k in kernels if not k.tier}
    for k in kernels:
        base = plain.get(k.name)
        if not base:
            raise Bad((k.path, 1), f"a tier without its plain file {k.name}.wgsl")
        if k.params != base.params:
            raise Bad((k.path, 1), f"Params differ from {base.path.name}'s")
        if (k.bindings, k.storage) != (base.bindings, base.storage):
            raise Bad((k.path, 1), f"bindings differ from {base.path.name}'s")
        first = next(f for f in kernels if f.path == k.path)
        if (k.params, k.overrides, k.bindings) != (first.params, first.overrides, first.bindings):
            raise Bad((k.path, 1), f"Params, overrides or bindings of {k.word} are not those of {first.word}")
    if len({k.c_name for k in kernels}) != len(kernels):
        names = [k.c_name for k in kernels]
        twin = next(k for i, k in enumerate(kernels) if k.c_name in names[:i])
        raise Bad((twin.path, 1), f"{twin.c_name} is made twice")
    return kernels


def firsts(kernels):
    """One kernel of each file."""
    return [k for i, k in enumerate(kernels) if i == 0 or kernels[i - 1].path != k.path]


def params_bytes(k):
    return (4 * len(k.params) + 15) // 16 * 16


def write_header(kernels):
    out = ["/* Made by tools/kernels.py from kernels/; do not edit. */",
           "#ifndef BEZEL_GEN_KERNELS_H", "#define BEZEL_GEN_KERNELS_H", "",
           "#include <stdbool.h>", "#include <stdint.h>", "",
           "enum kernel {"]
    out += [f"    KERNEL_{k.c_name.upper()}," for k in kernels]
    out += ["    N_KERNELS", "};", "",
            "enum { " + ", ".join(f"{c} = {bit}" for bit, c in FEATURES.values()) + " };", "",
            "struct kernel_info {",
            "    const char *name; /* of the file, without .wgsl */",
            "    const char *const *pieces; /* of the source, to be joined */",
            "    uint32_t n_pieces;",
            "    const char *bindings; /* a letter each: u uniform, r read, w read and write */",
            "    const char *const *overrides;",
            "    uint32_t n_overrides;",
            "    uint32_t n_bindings;",
            "    uint32_t params_bytes; /* a multiple of 16 */",
            "    bool uses_step;        /* binding 1 is the step */",
            "    uint32_t needs;        /* KERNEL_NEEDS_ bits */",
            "};", "",
            "extern const struct kernel_info kernel_table[N_KERNELS];", ""]
    for k in firsts(kernels):
        if not k.tier:
            out.append(f"struct {k.stem}_params {{")
            out += [f"    {C_TYPES[t]} {n};" for n, t in k.params]
            size, pad = params_bytes(k), params_bytes(k) // 4 - len(k.params)
            if pad:
                out.append(f"    uint32_t pad_[{pad}];")
            out += ["};", f'_Static_assert(sizeof(struct {k.stem}_params) == {size}, "{k.stem}: Params");']
        if k.overrides:
            out.append("enum { " + ", ".join(f"{k.c_stem}_{o}".upper() for o in k.overrides) + " };")
        out.append("")
    return "\n".join(out + ["#endif", ""])


def c_string(text):
    """A literal, one line of the source a line."""
    quoted = [line.replace("\\", "\\\\").replace('"', '\\"') for line in text.split("\n")]
    return "\n".join(f'    "{line}\\n"' for line in quoted)


def cut_pieces(kernels):
    """The pieces of each kernel's text: what is never without its neighbour is one piece, so that kernels share them."""
    texts = [k.needed for k in kernels]
    after, before = {}, {}
    for list_ in texts:
        for one, next_ in zip([None, *list_], [*list_, None]):
            after.setdefault(one, set()).add(next_)
            before.setdefault(next_, set()).add(one)
    out = []
    for list_ in texts:
        pieces = [[]]
        for one, next_ in zip(list_, [*list_[1:], None]):
            pieces[-1].append(one)
            if next_ and (len(after[one]) > 1 or len(before[next_]) > 1):
                pieces.append([])
        out.append(["\n".join(piece) for piece in pieces])
    return out


def write_source(kernels):
    out = ["/* Made by tools/kernels.py from kernels/; do not edit. */", '#include "kernels.h"', "",
           "/* ISO C promises only 4095 characters a literal; every compiler here takes more. */",
           '#pragma GCC diagnostic ignored "-Woverlength-strings"', ""]
    number = {}  # of each distinct piece
    cut = cut_pieces(kernels)
    for pieces in cut:
        for text in pieces:
            if text not in number:
                number[text] = len(number)
                out += [f"static const char piece_{number[text]}[] =\n{c_string(text)};", ""]
    for k, pieces in zip(kernels, cut):
        list_ = ", ".join(f"piece_{number[text]}" for text in pieces)
        out.append(f"static const char *const {k.c_name}_pieces[] = {{ {list_} }};")
    out.append("")
    for k in firsts(kernels):
        if k.overrides:
            names = ", ".join(f'"{o}"' for o in k.overrides)
            out += [f"static const char *const {k.c_stem}_overrides[] = {{ {names} }};", ""]
    out.append("const struct kernel_info kernel_table[N_KERNELS] = {")
    for k, pieces in zip(kernels, cut):
        needs = " | ".join(FEATURES[f][1] for f in sorted(k.features)) or "0"
        out += [f"    [KERNEL_{k.c_name.upper()}] = {{",
                f'        .name = "{k.name}{"." + k.tier if k.tier else ""}",',
                f"        .pieces = {k.c_name}_pieces,", f"        .n_pieces = {len(pieces)},",
                f'        .bindings = "{k.bindings}",']
        if k.overrides:
            out += [f"        .overrides = {k.c_stem}_overrides,", f"        .n_overrides = {len(k.overrides)},"]
        out += [f"        .n_bindings = {len(k.bindings)},", f"        .params_bytes = {params_bytes(k)},",
                f"        .uses_step = {'true' if STEP in k.included else 'false'},",
                f"        .needs = {needs},", "    },"]
    return "\n".join(out + ["};", ""])


def write_if_changed(path, text):
    """An unchanged file keeps its date, so that nothing is built again."""
    if not path.is_file() or path.read_text() != text:
        path.write_text(text)


def main(argv):
    if len(argv) != 3:
        print(__doc__.split("\n\n")[1], file=sys.stderr)
        return 2
    root, out = pathlib.Path(argv[1]), pathlib.Path(argv[2])
    try:
        kernels = read_all(root)
    except Bad as e:
        print(e, file=sys.stderr)
        return 1
    out.mkdir(parents=True, exist_ok=True)
    write_if_changed(out / "kernels.h", write_header(kernels))
    write_if_changed(out / "kernels.c", write_source(kernels))
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv))
