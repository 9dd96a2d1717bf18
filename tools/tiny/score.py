#!/usr/bin/env python3
"""Score a model file with Bezel itself on the held-out set: how much does a quantisation cost?

    python3 tools/tiny/score.py MODEL.gguf [--scale 0.2] [--bezel build/bezel]

Needs numpy (to read the tokenizer from the file), no torch.
"""

import argparse
import json
import os
import statistics
import subprocess
import sys

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), ".."))
import evalset  # noqa: E402
import gguf  # noqa: E402  (tools/gguf.py)
from tokenizer import Tokenizer  # noqa: E402


def load_tokenizer(f):
    """The tokenizer of a model file."""
    merges = [tuple(m.split(" ", 1)) for m in f.get("tokenizer.ggml.merges")]
    return Tokenizer(f.get("tokenizer.ggml.tokens"), merges)


def answer(bezel, model, f, tokenizer, case, steps):
    """The raw text that the model writes, special tokens visible; a canvas's go into `steps`."""
    ids = ",".join(map(str, tokenizer.encode(case.prompt)))
    length = f.get("diffusion.canvas_length")
    if length:
        how = ["diffuse", "--seed", "1", "--canvases", str(-(-case.max_new // length))]
    else:
        how = ["generate", "--greedy", "--n", str(case.max_new)]
    command = [bezel, how[0], model, "--ids", ids, *how[1:], "--json", "--threads", "1"]
    made = json.loads(subprocess.run(command, check=True, capture_output=True).stdout)
    steps += [c["steps"] for c in made.get("canvases", ())]
    return tokenizer.decode(made["ids"])


def main():
    p = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    p.add_argument("model")
    p.add_argument("--scale", type=float, default=0.2)
    p.add_argument("--bezel", default="build/bezel")
    p.add_argument("--wrong", action="store_true", help="print the wrong answers")
    args = p.parse_args()
    f = gguf.read(args.model)
    tokenizer, groups, steps = load_tokenizer(f), {}, []
    for case in evalset.cases(scale=args.scale):
        text = answer(args.bezel, args.model, f, tokenizer, case, steps)
        right, formed, total = groups.get(case.group, (0, 0, 0))
        ok = bool(case.right(text))
        formed += bool(case.well_formed(text)) if case.well_formed else 0
        groups[case.group] = (right + ok, formed, total + 1)
        if args.wrong and not ok:
            print(f"{case.group}: {case.prompt!r}\n  want {case.expect!r}\n  got  {text!r}")
    for group, (right, formed, total) in groups.items():
        extra = f", well formed {100 * formed / total:.1f}%" if formed else ""
        print(f"{group:24s} {100 * right / total:6.1f}% of {total}{extra}")
    right, total = (sum(g[i] for g in groups.values()) for i in (0, 2))
    print(f"{'all':24s} {100 * right / total:6.1f}% of {total}")
    if steps:
        print(f"{len(steps)} canvases, {statistics.median(steps):g} steps in the median,"
              f" {sum(steps) / len(steps):.1f} in the mean")


if __name__ == "__main__":
    main()
