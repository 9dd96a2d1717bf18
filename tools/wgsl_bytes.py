"""wgsl_bytes.py - the workgroup memory of a kernel's variants, as a C function of the overrides
that it depends on.

WGSL's own rules for sizes and alignments; each variable takes a multiple of 16 bytes of the
device's limit. Expressions of overrides and constants may have + - * / % and max.
"""
import itertools
import re

from wgsl import Bad

SCALARS = {"u32": 4, "i32": 4, "f32": 4, "f16": 2}


class _Text:
    """The declarations of one variant that a size can depend on."""

    def __init__(self, variant):
        self.variant, text = variant, variant.text
        self.consts = dict(re.findall(r"^const (\w+)(?::[^=]*)?\s*=([^;]*);", text, re.M))
        self.aliases = dict(re.findall(r"^alias (\w+)\s*=([^;]*);", text, re.M))
        self.structs = dict(re.findall(r"^struct (\w+)\s*\{([^}]*)\}", text, re.M))
        self.variables = re.findall(r"^var<workgroup>\s*(\w+):([^;]*);", text, re.M)

    def number(self, expression):
        """An int, or a C expression of overrides in lower case."""
        out = ""
        for token in re.findall(r"\w+|\S", expression):
            if re.fullmatch(r"\d+u?", token) or re.fullmatch(r"0x[0-9a-f]+u?", token):
                out += token.rstrip("u")
            elif token in self.variant.overrides:
                out += token.lower()
            elif token in self.consts:
                out += f"({self.number(self.consts[token])})"
            elif token in "+-*/%(),":
                out += token
            elif token == "max":
                out += "kernel_max"
            else:
                raise Bad(f"{self.variant.path}:1: what is {token} in the size {expression}?")
        return _value(out)

    def size(self, of):
        """(alignment, bytes) of a type."""
        of = of.strip()
        if of in SCALARS:
            return SCALARS[of], SCALARS[of]
        m = re.fullmatch(r"(\w+)<(.*)>", of)
        if of in self.aliases:
            return self.size(self.aliases[of])
        if of in self.structs:
            return self.struct(self.structs[of])
        if m and m[1] == "atomic":
            return self.size(m[2])
        if m and re.fullmatch(r"vec[234]", m[1]):
            one, n = self.size(m[2])[1], int(m[1][3])
            return one * (2 if n == 2 else 4), one * n
        if m and re.fullmatch(r"mat[234]x[234]", m[1]):
            align, size = self.size(f"vec{m[1][5]}<{m[2]}>")
            return align, int(m[1][3]) * _round(size, align)
        if m and m[1] == "array":
            element, count = _split(m[2])
            align, size = self.size(element)
            return align, _value(f"{_round(size, align)}*({self.number(count)})")
        raise Bad(f"{self.variant.path}:1: what is the size of {of}?")

    def struct(self, body):
        at, most = 0, 1
        for field in filter(str.strip, _fields(body)):
            align, size = self.size(field.split(":", 1)[1])
            at, most = _round(at, align) + size, max(most, align)
        return most, _round(at, most)

    def total(self):
        sizes = [_round(self.size(of)[1], 16) for _, of in self.variables]
        known = sum(s for s in sizes if isinstance(s, int))
        return " + ".join([str(s) for s in sizes if not isinstance(s, int)]
                          + ([f"{known}"] if known else [])) or "0"


def _value(expression):
    """An int where it depends on nothing."""
    if re.fullmatch(r"[\d+\-*/%()x]+", expression):
        return int(eval(expression.replace("/", "//")))  # digits and operators only
    return expression


def _round(size, to):
    if isinstance(size, int):
        return (size + to - 1) // to * to
    factor = re.match(r"(\d+)\*", size)
    return size if factor and int(factor[1]) % to == 0 else f"({size} + {to - 1}) / {to} * {to}"


def _fields(body):
    """The parts between commas that are in no brackets."""
    out, depth = [""], 0
    for c in body:
        depth += (c in "<(") - (c in ">)")
        if c == "," and not depth:
            out.append("")
        else:
            out[-1] += c
    return out


def _split(array):
    element, count = _fields(array)
    return element, count


def _deciding(family, totals):
    """The fewest axes that decide."""
    axes = [a for a in family.axes if a.bits]
    for n in range(len(axes) + 1):
        for some in itertools.combinations(axes, n):
            seen = {}
            key = lambda number: tuple(number >> a.shift & (1 << a.bits) - 1 for a in some)
            if all(seen.setdefault(key(number), total) == total
                   for number, total in totals.items()):
                return some
    return axes


def workgroup_bytes(family):
    """Lines of C: NAME_workgroup_bytes(kernel, overrides ...); none where no variant has such
    memory."""
    totals = {number: _Text(v).total() for number, v in family.variants.items()}
    if set(totals.values()) == {"0"}:
        return []
    some = _deciding(family, totals)
    given = [o.lower() for o in family.overrides
             if any(re.search(rf"\b{o.lower()}\b", t) for t in totals.values())]
    args = ", ".join((["uint32_t kernel"] if some else [])
                     + [f"uint32_t {o}" for o in given]) or "void"
    out = [f"static inline uint32_t {family.name}_workgroup_bytes({args})", "{"]
    mask = sum((1 << a.bits) - 1 << a.shift for a in some)
    cases = {}
    for number, total in totals.items():
        cases.setdefault(total, set()).add(number & mask)
    if some:
        out.append(f"    switch (kernel & {mask:#x}) {{")
        for total, numbers in list(cases.items())[1:]:
            out += [f"    case {n:#x}:" for n in sorted(numbers)] + [f"        return {total};"]
        out.append("    }")
    return out + [f"    return {next(iter(cases))};", "}"]
