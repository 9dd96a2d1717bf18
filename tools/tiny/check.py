#!/usr/bin/env python3
"""Compare Bezel with the reference on a shipped file: logits, and greedy or scripted transcripts.

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


def check_text(args, golden, transcripts):
    """(worst logit, transcripts that are the same) of a text model."""
    n, worst = golden.get("golden.positions"), 0.0
    for name, tensor in golden.tensors.items():
        if not name.endswith(".ids"):
            continue
        want = golden[name.replace(".ids", ".logits." + args.format)].decode()
        got = logits(args.bezel, args.model, tensor.decode().tolist(), args.backend)[-n:]
        worst = max(worst, float(np.abs(got - want).max()))
    same = 0
    for t in transcripts:
        got = generate(args.bezel, args.model, t["prompt_ids"], len(t["ids"]), args.backend)
        same += report(t, got, f"smallest margin {t['min_margin']}")
    return worst, same


def canvas_logits(args, folder, prefix, canvas, soft=None):
    """Logits of a canvas: positions x vocabulary."""
    out = os.path.join(folder, "logits")
    command = [
        args.bezel, "canvas", args.model, "--prefix-ids", ",".join(map(str, prefix)),
        "--canvas-ids", ",".join(map(str, canvas)), "--logits-bin", out, "--backend", args.backend
    ]
    if soft is not None:
        given = os.path.join(folder, "soft")
        soft.astype("<f4").tofile(given)
        command += ["--soft-bin", given]
    subprocess.run(command, check=True, stdout=subprocess.DEVNULL)
    return np.fromfile(out, "<f4").reshape(len(canvas), -1)


def diffuse(args, folder, transcript):
    """The answer with a script: ids, and [{steps, stopped}] of its canvases."""
    script = os.path.join(folder, "script.json")
    with open(script, "w") as f:
        json.dump(transcript["script"], f)
    out = subprocess.run([
        args.bezel, "diffuse", args.model, "--ids", ",".join(map(str, transcript["prompt_ids"])),
        "--script", script, "--canvases",
        str(len(transcript["canvases"])), "--json", "--backend", args.backend
    ],
                         check=True,
                         capture_output=True).stdout
    made = json.loads(out)
    return made["ids"], made["canvases"]


def check_canvas(args, golden, transcripts):
    """(worst logit, transcripts that are the same) of a diffusion model."""
    rows, temperature = golden.get("golden.rows"), golden.get("golden.temperature")
    worst, same = 0.0, 0
    with tempfile.TemporaryDirectory() as folder:
        for name, tensor in golden.tensors.items():
            if not name.endswith(".ids"):
                continue
            ids, soft = tensor.decode().tolist(), None
            given = golden[name.replace(".ids", ".canvas")].decode().astype(int)
            wanted = golden[name.replace(".ids", ".logits." + args.format)].decode()
            for canvas, want in zip(given, wanted):
                got = canvas_logits(args, folder, ids, canvas, soft)
                worst = max(worst, float(np.abs(got[rows] - want).max()))
                soft = got / np.float32(temperature)
        for t in transcripts:
            ids, canvases = diffuse(args, folder, t)
            got = ids if canvases == t["canvases"] else canvases
            same += report(t, got, f"smallest gap {t['min_gap']}")
    return worst, same


def report(transcript, got, margin):
    """Whether the answer is the reference's, the ending token aside; prints what differs."""
    want = transcript["ids"]
    if got in (want, want[:-1]):
        return True
    print(f"differs: {transcript['prompt']!r}\n  want {want}\n  got  {got}\n  {margin}")
    return False


def main():
    p = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    p.add_argument("model")
    p.add_argument("golden")
    p.add_argument("format", choices=["f16", "q8_0"])
    p.add_argument("--bezel", default="build/bezel")
    p.add_argument("--backend", default="cpu")
    args = p.parse_args()

    golden = gguf.read(args.golden + ".golden.gguf")
    with open(args.golden + ".golden.json") as f:
        transcripts = json.load(f)[args.format]
    arch = gguf.read(args.model).get("general.architecture")
    check = check_canvas if arch == "diffusion-gemma" else check_text
    worst, same = check(args, golden, transcripts)
    print(f"logits: max |difference| {worst:.2e}")
    print(f"transcripts: {same} of {len(transcripts)} the same")
    return 0 if worst <= 2e-4 and same == len(transcripts) else 1


if __name__ == "__main__":
    sys.exit(main())
