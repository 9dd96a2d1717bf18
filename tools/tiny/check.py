#!/usr/bin/env python3
"""Compare Bezel with the reference on a shipped file: logits and greedy transcripts.

    python3 tools/tiny/check.py MODEL.gguf GOLDEN_PREFIX FORMAT [--bezel build/bezel]

GOLDEN_PREFIX.golden.gguf and .golden.json come from make.py; FORMAT is f16 or q8_0.  Needs numpy.
"""

import argparse
import json
import os
import subprocess
import sys
import tempfile

import numpy as np

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), ".."))
import gguf  # noqa: E402  (tools/gguf.py)


def logits(bezel, model, ids, backend):
    """All logits of a prompt: positions x vocabulary."""
    with tempfile.TemporaryDirectory() as d:
        path = os.path.join(d, "logits")
        subprocess.run([
            bezel, "logits", model, "--ids", ",".join(map(str, ids)), "--all-bin", path,
            "--backend", backend
        ],
                       check=True,
                       stdout=subprocess.DEVNULL)
        return np.fromfile(path, "<f4").reshape(len(ids), -1)


def generate(bezel, model, ids, n, backend):
    """Greedy continuation: ids without the ending token."""
    out = subprocess.run([
        bezel, "generate", model, "--ids", ",".join(map(str, ids)), "--greedy", "--n",
        str(n), "--json", "--backend", backend
    ],
                         check=True,
                         capture_output=True).stdout
    return json.loads(out)["ids"]


def main():
    p = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    p.add_argument("model")
    p.add_argument("golden")
    p.add_argument("format", choices=["f16", "q8_0"])
    p.add_argument("--bezel", default="build/bezel")
    p.add_argument("--backend", default="cpu")
    args = p.parse_args()

    golden = gguf.read(args.golden + ".golden.gguf")
    n, worst = golden.get("golden.positions"), 0.0
    for name, tensor in golden.tensors.items():
        if not name.endswith(".ids"):
            continue
        want = golden[name.replace(".ids", ".logits." + args.format)].decode()
        got = logits(args.bezel, args.model, tensor.decode().tolist(), args.backend)[-n:]
        worst = max(worst, float(np.abs(got - want).max()))
    print(f"logits: max |difference| {worst:.2e}")

    with open(args.golden + ".golden.json") as f:
        transcripts = json.load(f)[args.format]
    same = 0
    for t in transcripts:
        got = generate(args.bezel, args.model, t["prompt_ids"], len(t["ids"]), args.backend)
        ok = got in (t["ids"], t["ids"][:-1])
        same += ok
        if not ok:
            print(
                f"differs: {t['prompt']!r}\n  want {t['ids']}\n  got  {got}\n"
                f"  smallest margin {t['min_margin']}"
            )
    print(f"transcripts: {same} of {len(transcripts)} the same")
    return 0 if worst <= 2e-4 and same == len(transcripts) else 1


if __name__ == "__main__":
    sys.exit(main())
