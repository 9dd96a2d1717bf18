#!/usr/bin/env python3
"""lint.py - the rules that no compiler checks.

Include directions: a module may include only the modules below it (the table here is the one place
that says so). Sizes: files and functions that grow past what a reader likes are named, and lines of
every language past 100 columns. Words: the GPU half says what the field says, and no tracked file
may hold a conflict marker or trailing white space. Pages: lines of Markdown fit 100 columns, and
their links lead somewhere. Tapes: a model file calls one op a statement. Claims: every test that
the threat model names exists, and so does every function of the ways that HACKING.md draws.
"""
import pathlib
import re
import subprocess
import sys

# module -> modules whose headers it may include (its own always; "." is include/bezel.h)
ALLOWED = {
    "base": {"."},
    "quant": {"base", "."},
    "io": {"base", "quant", "."},
    "text": {"base", "io", "."},
    "grammar": {"base", "text", "."},
    "ops": {"base", "quant", "io", "."},
    "tape": {"base", "quant", "io", "ops", "."},
    "model": {"base", "quant", "io", "ops", "tape", "."},
    "gpu": {"base", "quant", "io", "ops", "tape", "gen", "."},
    "train": {"base", "quant", "io", "text", "ops", "tape", "model", "."},
    # src/*.c: the public interface
    "": {"base", "quant", "io", "text", "grammar", "ops", "tape", "model", "train", "gpu", "."},
    "cli": {"base", "quant", "io", "text", "grammar", "ops", "tape", "model", "train", "", "."},
    # the browser's entry
    "wasm": {"base", "quant", "io", "text", "ops", "tape", "model", "train", "gpu", "gen", "cli",
             "", "."},
}
GENERATED = {"kernels.h", "boundary.h"}  # written by tools/kernels.py and tools/boundary.py
# Only bezel.c chooses a backend (and the tool, which shows what would run; the GPU's self-test
# compares two).
BACKEND_HEADERS = {
    "ops/ops_cpu.h": {"src/bezel.c", "src/ops", "src/cli", "src/gpu/selftest.c"},
    "gpu/ops_gpu.h": {"src/bezel.c", "src/step.h", "src/gpu", "src/wasm"},
}
SOURCES = ("*.c", "*.h", "*.def", "*.wgsl", "*.ts", "*.tsx", "*.mjs", "*.css", "*.html", "*.py",
           "*.sh", "Makefile")
MAX_FILE, MAX_FUNCTION, MAX_COLUMNS = 600, 60, 100


def tracked(*patterns):
    out = subprocess.run(["git", "ls-files", "--cached", "--others", "--exclude-standard",
                          *patterns],
                         capture_output=True, text=True, check=True).stdout
    return [pathlib.Path(p) for p in out.splitlines() if pathlib.Path(p).is_file()]


def check_includes(path, text, problems):
    parts = path.parts
    module = parts[1] if len(parts) > 2 else ""
    for n, line in enumerate(text.splitlines(), 1):
        m = re.match(r'\s*#\s*include\s+"([^"]+)"', line)
        if not m:
            continue
        target = m.group(1)
        other = target.split("/")[0] if "/" in target else ("." if target == "bezel.h" else "")
        if target in GENERATED:
            other = "gen"
        if other != module and other not in ALLOWED[module]:
            problems.append(f"{path}:{n}: {module or 'src'}/ must not include {target}")
        for header, users in BACKEND_HEADERS.items():
            if target == header and not any(str(path).startswith(u) for u in users):
                problems.append(f"{path}:{n}: only src/bezel.c names a backend")


def check_sizes(path, text, problems):
    lines = text.splitlines()
    if len(lines) > MAX_FILE:
        problems.append(f"{path}: {len(lines)} lines; split it (limit {MAX_FILE})")
    start = None
    for n, line in enumerate(lines, 1):
        if line == "{":
            start = n
        elif line == "}" and start:
            if n - start > MAX_FUNCTION:
                problems.append(f"{path}:{start}: a function of {n - start} lines (limit "
                                f"{MAX_FUNCTION})")
            start = None


def check_columns(path, text, problems):
    for n, line in enumerate(text.splitlines(), 1):
        if len(line) > MAX_COLUMNS:
            problems.append(f"{path}:{n}: {len(line)} columns (limit {MAX_COLUMNS})")


def check_tape(path, text, problems):
    """C leaves the order of arguments open, and compilers differ: so no op is called in
    another's arguments."""
    text = re.sub(r"/\*.*?\*/", lambda m: re.sub(r"[^\n]", " ", m[0]), text, flags=re.S)
    for m in re.finditer(r"\btape_\w+\(", text):
        depth, at = 1, m.end()
        while depth and at < len(text):
            depth += {"(": 1, ")": -1}.get(text[at], 0)
            at += 1
        if re.search(r"\btape_\w+\(", text[m.end():at]):
            problems.append(f"{path}:{text.count(chr(10), 0, m.start()) + 1}: an op in another's "
                            "arguments")


# Words that only this code had, and what the field says instead.
WORDS = {
    r"settle[ds]?": "make ready, int8 planes", r"crew": "workgroup", r"lone": "software",
    r"held_\w+|HELD\w*": "shared_row", r"join_(?:linear|gate|gelu|runs|touch|lora)\w*": "norm_...",
    r"(?:gpu_|op_)join\w*": "residual_norm", r"turn_q\w+": "repack", r"imagine_\w+": "plan",
    r"proven|unproven|vouched": "validated", r"narrow_stream": "small_hidden",
    r"attend_alone": "attn_decode_single", r"merge_shares|merge_few": "attn_reduce",
    r"struct teams|n_teams|team_size": "row groups", r"whole_and_bare|bare_codes": "no_lora",
    r"attend_share": "attend_split", r"turned|turns by": "rotated, transposed",
    r"Joining|joining\w*|hold_sum|lead_four|leads_on": "residual, share_row, next",
    r"GPU_CUT\w*|\w+_cuts?|recut|cutters?": "tiling, repack",
}
# Of code: in pages they have their plain meaning.
CODE_WORDS = {
    r"cuts?|cutting": "tile, row groups, split", r"join(?:s|ed)?": "residual, append",
}


def check_words(path, text, words, problems):
    for n, line in enumerate(text.splitlines(), 1):
        for word, instead in words.items():
            if m := re.search(rf"\b(?:{word})\b", line):
                problems.append(f'{path}:{n}: "{m[0]}"; the field says {instead}')


def check_page(path, text, problems):
    """A row of a table cannot be broken, so it may be longer."""
    for n, line in enumerate(text.splitlines(), 1):
        if len(line) > MAX_COLUMNS and not line.startswith("|"):
            problems.append(f"{path}:{n}: {len(line)} columns (limit {MAX_COLUMNS})")
        for link in re.findall(r"\]\(([^)#: ]+)\)", line):
            if not (path.parent / link).exists():
                problems.append(f"{path}:{n}: a link to {link}, which is not there")


def joined(text):
    """A long sentence is written in pieces: 'so and ' + 'so on'."""
    return re.sub(r"'\s*\+ '", "", text.replace("\\'", "\u2019")).replace("\u2019", "'")


def check_threats(problems):
    """Every test that the threat model relies on is there: `file under tests/`: "sentence", or
    `fuzz/NAME`."""
    path = pathlib.Path("docs/design/0012-threat-model.md")
    text, tests = path.read_text(), pathlib.Path("tests")
    for file, sentence in re.findall(r'`([\w/]+\.(?:c|sh|mjs|py))`: "([^"]+)"', text):
        test = tests / file
        if not test.is_file() or sentence not in joined(test.read_text()):
            problems.append(f"{path}: there is no test \"{sentence}\" in tests/{file}")
    for name in re.findall(r"`fuzz/([a-z]+)`", text):
        if not list(tests.glob(f"fuzz/fuzz_{name}.*")):
            problems.append(f"{path}: there is no fuzz target {name}")


# What defines a function, a method or a class, in TypeScript and in C.
DEFINES = {
    "ts": r"^ *(?:export )?(?:async )?function\*? {0}\b|^(?:export )?(?:class|const) {0}\b|"
          r"^  (?:(?:private|static|readonly|async) )*\*?{0}(?:\(|<| =)",
    "c": r"^[a-z][^;\n]*\b{0}\([^;]*$|^EXPORT\([^;]*?\b{0},[^;]*$",
}


def check_hops(problems):
    """Every hop of HACKING.md (`path: function`, `path: Class.method`) can be opened."""
    hops = re.findall(r"`([\w/]+)\.(ts|c): (?:(\w+)\.)?(\w+)`",
                      pathlib.Path("HACKING.md").read_text())
    for name, ext, owner, function in hops:
        path = pathlib.Path("web/engine/src" if ext == "ts" else "src", f"{name}.{ext}")
        text = path.read_text() if path.is_file() else ""
        for wanted in filter(None, [owner, function]):
            if not re.search(DEFINES[ext].format(wanted), text, re.M):
                problems.append(f"HACKING.md: {path} has no {wanted}")


def main():
    problems = []
    for path in tracked("src/*.c", "src/*.h", "src/*.def", "include/*.h"):
        text = path.read_text()
        if path.parts[0] == "src":
            check_includes(path, text, problems)
        check_sizes(path, text, problems)
        if path.parts[1] == "model":
            check_tape(path, text, problems)
    for path in tracked(*SOURCES):
        check_columns(path, path.read_text(), problems)
    for path in tracked("kernels/*", "src/gpu/*", "src/ops/*", "tests/ops_cases/*"):
        check_words(path, path.read_text(), WORDS | CODE_WORDS, problems)
    for path in tracked("docs/design/*"):
        check_words(path, path.read_text(), WORDS, problems)
    for path in tracked(*SOURCES, "*.md"):
        for n, line in enumerate(path.read_text().splitlines(), 1):
            if line != line.rstrip() and path.suffix != ".md":
                problems.append(f"{path}:{n}: white space at the end of the line")
            if line.startswith(("<<<<<<< ", ">>>>>>> ")):
                problems.append(f"{path}:{n}: a conflict marker")
    for path in tracked("*.md"):
        check_page(path, path.read_text(), problems)
    check_threats(problems)
    check_hops(problems)
    if len(pathlib.Path("include/bezel.h").read_text().splitlines()) > 305:
        problems.append("include/bezel.h: more than 305 lines")
    print("\n".join(problems) if problems else "lint: clean")
    return 1 if problems else 0


if __name__ == "__main__":
    sys.exit(main())
