"""wgsl_names.py - short names for the embedded copy of kernels/: 3.7 KB less that a chat downloads.

    short = wgsl_names.short(texts)        # path -> lines without comments, as kernels.py has them
    short.names["row"]                     # "f"
    short.line("let head = row / rows;")   # "let K = f / b;"

A name becomes one short name in all files, whatever it names where: so each scope stays as it is,
and each line stays in its place. What the files do not declare is WGSL's own and stays: types,
functions, attributes, members such as .xyz. `main` and overrides stay, which hosts know by name.
"""
import collections
import itertools
import re
import string
import typing

NAME = re.compile(r"(?<![\w$])[A-Za-z_]\w*")
DECLARED = re.compile(r"\b(?:let|var|const|fn|struct|alias)(?:<[^>]*>)? (\w+)|(\w+):")
CALLABLE = re.compile(r"\b(?:fn|struct|alias) (\w+)")
# Where WGSL's own words stand: attributes, what is called, what is in the brackets of some.
OWN = re.compile(r"@(\w+)|(\w+)\(|@builtin\((\w+)\)|\b(?:var|ptr)<(\w+)(?:,(\w+))?|enable ([^;]*);"
                 r"|\boverride (\w+)|//!bind \w+ (\w+)")
GENERIC = {"array", "atomic", "bitcast", "ptr", "vec2", "vec3", "vec4"}
KEYWORDS = {"as", "do", "fn", "if", "in", "is", "of", "or"}  # that could be short names


def is_wgsl(line):
    return not line.startswith("//!") or line.startswith("//!bind ")


def words(pattern, text):
    """Every name in the groups of every match."""
    return {w for m in pattern.finditer(text) for group in m.groups() if group
            for w in NAME.findall(group)}


def names_of(text):
    """How often each name of ours is there, and all words."""
    every = collections.Counter(NAME.findall(text))
    fields = words(DECLARED, "\n".join(re.findall(r"\bstruct \w+\{([^}]*)\}", text)))
    members = set(re.findall(r"\.([A-Za-z_]\w*)", text))
    members = {w for w in members if w not in fields or re.fullmatch(r"[xyzw]+|[rgba]+", w)}
    own = (words(OWN, text) - words(CALLABLE, text)) | members | GENERIC | {"main"}
    ours = words(DECLARED, text) | set(re.findall(r"//!bind (\w+)", text))
    return collections.Counter({w: every[w] for w in ours - own}), set(every)


def short_names(taken):
    letters = string.ascii_letters
    two = map("".join, itertools.product(letters, letters + string.digits))
    return (name for name in itertools.chain(letters, two) if name not in taken | KEYWORDS)


class Short(typing.NamedTuple):
    names: dict
    suffixes: set  # of included files, behind short names as behind long ones
    line: typing.Callable


def short(texts):
    """Short names, the most frequent shortest, and what puts them into a line."""
    lines = [line for path in sorted(texts) for line in texts[path]]
    count, every = names_of("\n".join(filter(is_wgsl, lines)))
    names = [w for w, _ in sorted(count.items(), key=lambda pair: (-pair[1], pair[0]))]
    found = dict(zip(names, short_names(every - set(names))))
    suffixes = {line.split()[-1] for line in lines if re.match(r"//!include \S+ as ", line)}

    def one(match):
        name, _, suffix = match[0].rpartition("_")
        if suffix in suffixes and name in found:
            return f"{found[name]}_{suffix}"
        return found.get(match[0], match[0])

    return Short(found, suffixes, lambda line: NAME.sub(one, line) if is_wgsl(line) else line)
