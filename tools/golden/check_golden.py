#!/usr/bin/env python3
"""Checks golden files against the float64 reference, and how well they catch mistakes.

    check_golden.py DIR [NAME...]     (NAME: e2b, kv, ...; default: every model_NAME.gguf in DIR)

For each model: the reference is run on the recorded prompt from the model file alone and every tap
is compared. Then each tensor and each size is disturbed in turn, the way a loader or a kernel could
get it wrong, and the change of the taps is measured: a disturbance that moves nothing would mean
that the golden values cannot see that mistake. Needs numpy only. Exit status 1 when a check fails.
"""

import copy
import hashlib
import sys
from pathlib import Path

sys.dont_write_bytecode = True
import numpy as np  # noqa: E402

sys.path.insert(0, str(Path(__file__).resolve().parent))
import canvas  # noqa: E402
import reference  # noqa: E402
from reference import gguf  # noqa: E402

# Largest error of a tap's elements, relative to the tap's root mean square. Rounding every weight
# to float32 once more (in float64 arithmetic) already moves the worst logit by up to 3e-5; float32
# arithmetic throughout stays below 5e-5. The mildest mistake tried below moves a tap by 5e-2.
TOLERANCE = 1e-4
VISIBLE = 1e-3  # by how much, in the same measure, a disturbance must move some tap


def relative_error(got, want):
    return float(np.abs(got - want).max() / np.sqrt((want * want).mean()))


def expected_taps(m):
    """Every tap name that a model must have."""
    names = ["embd", "result_norm", "logits"] + (["ple"] if m.n_ple else [])
    for il in range(m.n_layer):
        kinds = ["attn_norm", "q", "attn", "attn_out", "ffn", "ffn_out", "out"]
        kinds += ["k", "v"] if il < m.n_own else []
        kinds += ["ple_out"] if m.n_ple else []
        kinds += ["router", "moe_out"] if f"blk.{il}.ffn_gate_inp.weight" in m.w else []
        names += [f"blk.{il}.{k}" for k in kinds]
    return set(names)


def stored(name, x, rows):
    """The part of a tap that golden files keep."""
    return x if name == "logits" else x[rows]


def compare_taps(name, m, golden, taps):
    """Prints the worst tap; true when all agree."""
    rows = golden.get("golden.rows")
    names = set(golden.tensors)
    if names != expected_taps(m):
        print(f"{name}: taps differ from those expected: {sorted(names ^ expected_taps(m))}")
        return False
    worst = {}
    for tap, t in golden.tensors.items():
        want = stored(tap, taps[tap], rows)
        got = t.decode().astype(np.float64)
        if got.shape != want.shape:
            print(f"{name}: {tap} is {got.shape}, not {want.shape}")
            return False
        kind = tap.split(".")[-1]
        worst[kind] = max(worst.get(kind, 0.0), relative_error(got, want))
    errors = " ".join(f"{k} {e:.1e}" for k, e in sorted(worst.items(), key=lambda i: -i[1]))
    print(f"{name}: {len(names)} taps; largest relative error by kind: {errors}")
    return max(worst.values()) < TOLERANCE


def check_greedy(name, m, golden, taps):
    """The recorded continuation is the reference's own argmax, step by step."""
    ids, greedy = golden.get("golden.ids"), golden.get("golden.greedy")
    logits = reference.forward(m, ids + greedy[:-1])["logits"]
    steps = np.sort(logits[len(ids) - 1 :], axis=-1)
    margin = float((steps[:, -1] - steps[:, -2]).min())
    same = logits[len(ids) - 1 :].argmax(-1).tolist() == greedy
    agree = golden["logits"].decode().argmax(-1) == taps["logits"].argmax(-1)
    top = np.abs(taps["logits"]).max()
    print(f"{name}: {len(greedy)} greedy tokens {'agree' if same else 'DIFFER'}, smallest margin"
          f" {margin:.3f}; argmax agrees at {agree.sum()} of {len(agree)} positions; logits std"
          f" {taps['logits'].std():.2f}, largest {top:.2f}")
    return same and bool(agree.all())


def disturbances(m):
    """(what, changed model) pairs, one mistake each."""

    def changed(what, **fields):
        other = copy.copy(m)
        for field, value in fields.items():
            setattr(other, field, value)
        return what, other

    for name, w in m.w.items():
        if name == "rope_freqs.weight":
            yield changed("rope_freqs all 1", w={**m.w, name: np.ones_like(w)})
            half = np.where(np.arange(len(w)) < np.sum(w < 2) // 2, 1.0, 1e30)
            yield changed("rope_freqs half as many", w={**m.w, name: half})
            continue
        if w.size == 1:
            yield changed(f"{name} = 1", w={**m.w, name: np.ones_like(w)})
        elif w.ndim == 1:
            yield changed(f"{name} all 1", w={**m.w, name: np.ones_like(w)})
            yield changed(f"{name} reversed", w={**m.w, name: w[::-1]})
        elif not name.startswith(("token_embd", "per_layer_token_embd")):
            yield changed(f"{name} rows shifted", w={**m.w, name: np.roll(w, 1, 0)})
            yield changed(f"{name} columns shifted", w={**m.w, name: np.roll(w, 1, -1)})
    yield changed("window - 1", window=m.window - 1)
    yield changed("window + 1", window=m.window + 1)
    yield changed("no window", window=0)
    yield changed("no soft-cap", cap=0.0)
    yield changed("rope bases swapped", base={True: m.base[False], False: m.base[True]})
    if m.eps > 1e-5:
        yield changed("eps 1e-6", eps=1e-6)
    if m.n_used:
        yield changed("one expert less", n_used=m.n_used - 1)
        yield changed("one expert more", n_used=m.n_used + 1)
    if m.n_own < m.n_layer:
        other = copy.copy(m)
        other.donor = lambda il: il if il < m.n_own else next(
            j for j in range(m.n_layer) if m.is_swa[j] == m.is_swa[il])
        if any(other.donor(il) != m.donor(il) for il in range(m.n_layer)):
            yield "first layer of the kind as donor", other


def check_sensitivity(name, m, golden, taps):
    """Every disturbance of something in use must show in what is stored."""
    ids, rows = golden.get("golden.ids"), golden.get("golden.rows")
    dead = {f"blk.{il}.{w}.weight" for il in range(m.n_own, m.n_layer)
            for w in ("attn_k", "attn_v", "attn_k_norm")}
    effects = []
    for what, other in disturbances(m):
        moved = max(relative_error(stored(tap, x, rows), stored(tap, taps[tap], rows))
                    for tap, x in reference.forward(other, ids).items())
        if what.split()[0] in dead:
            if moved:
                print(f"{name}: {what} moves a tap, but that tensor is never read")
                return False
        else:
            effects.append((moved, what))
    effects.sort()
    least = "; ".join(f"{what} {e:.1e}" for e, what in effects[:3])
    print(f"{name}: {len(effects)} disturbances; the least visible move a tap by: {least}")
    return effects[0][0] > VISIBLE


class CanvasRun:
    """The recorded run of a canvas model."""

    def __init__(self, golden):
        get = lambda key: golden.get("golden." + key)
        table = lambda name: golden["run." + name].decode().astype(int).tolist()
        self.golden, self.ids = golden, get("ids")
        self.script = canvas.Script(table("random"), table("sampled"))
        self.tables = {name: table(name) for name in ("canvas", "best", "accepted", "after")}
        self.length = len(self.tables["canvas"][0])
        self.settings = canvas.Settings(self.length, get("max_steps"), get("stability"),
                                        get("entropy_bound"), get("confidence"), get("t_min"),
                                        get("t_max"))
        self.counts, self.stops, self.made = get("canvas_steps"), get("stops"), get("made")
        self.stopped = get("canvas_stopped")

    def taps(self, m):
        """The stored taps: those of the prompt and of some steps, from the recorded canvases.

        A step is conditioned with the logits of the one before, which is run for that.
        """
        prompt = reference.forward(m, self.ids)
        out = {"prompt." + name: x for name, x in prompt.items()}
        for k in self.golden.get("golden.tap_steps"):
            ids, first = list(self.ids), 0
            for count in self.counts:
                if k < first + count:
                    break
                first += count
                ids += self.tables["best"][first - 1]
            cache, processed = {}, None
            reference.forward(m, ids, cache)
            for i in range(first, k + 1):
                taps = canvas.denoise(m, cache, len(ids), self.tables["canvas"][i], processed)
                processed = taps["logits"] / self.settings.temperature(
                    self.settings.steps - (i - first))
            taps["soft"] = canvas.soft_embedding(m, processed)
            out |= {f"step.{k}.{name}": x for name, x in taps.items()}
        return out

    def stored(self, taps):
        """The rows of the taps that the file keeps."""
        rows = {"prompt": self.golden.get("golden.prompt_rows"),
                "step": self.golden.get("golden.rows")}
        return {name: x if name.startswith("step.") and name.endswith(".logits")
                else x[rows[name.split(".")[0]]] for name, x in taps.items()}

    def decisions(self, m):
        """Whether every decision of the run is the reference's, and the worst entropy."""
        source = canvas.Source(0, self.length, self.script)
        steps, made = canvas.run(m, self.ids, self.settings, len(self.counts), self.stops, source)
        same = made == self.made and len(steps) == len(self.tables["best"])
        for name, rows in self.tables.items():
            same = same and [list(map(int, getattr(s, name))) for s in steps] == rows
        same = same and [s.stopped for s in steps if s.stopped] == self.stopped
        entropy = self.golden["run.entropy"].decode()
        worst = max(float(np.abs(s.entropy - e).max()) for s, e in zip(steps, entropy))
        return same, worst, len(steps)


def canvas_disturbances(m):
    """Mistakes that only a canvas can show."""
    for what, fields in (("a prefix row more", {"n_seen": m.n_seen + 1}),
                         ("a prefix row less", {"n_seen": m.n_seen - 1}),
                         ("all of the prefix", {"n_seen": 10**9}),
                         ("soft embedding unscaled", {"soft_scale": 1.0})):
        other = copy.copy(m)
        for field, value in fields.items():
            setattr(other, field, value)
        yield what, other
    if "blk.0.enc_layer_output_scale.weight" in m.w:
        swap = lambda name: name.replace(".layer_output", ".X").replace(
            ".enc_layer_output", ".layer_output").replace(".X", ".enc_layer_output")
        other = copy.copy(m)
        other.w = {swap(name): w for name, w in m.w.items()}
        yield "the scales of encoder and decoder swapped", other


def check_canvas(name, m, golden):
    run = CanvasRun(golden)
    want = run.stored(run.taps(m))
    if set(want) != set(golden.tensors) - {n for n in golden.tensors if n.startswith("run.")}:
        print(f"{name}: taps differ from those expected")
        return False
    error = lambda got, want: relative_error(got, want) if want.any() else float(np.abs(got).max())
    worst = {}
    for tap, x in want.items():
        kind = tap.split(".")[-1]
        got = golden[tap].decode().astype(np.float64)
        worst[kind] = max(worst.get(kind, 0.0), error(got, x))
    errors = " ".join(f"{k} {e:.1e}" for k, e in sorted(worst.items(), key=lambda i: -i[1]))
    print(f"{name}: {len(want)} taps; largest relative error by kind: {errors}")
    same, entropy, n = run.decisions(m)
    print(f"{name}: {n} steps {'agree' if same else 'DIFFER'}; entropies within {entropy:.1e}")
    effects = []
    for what, other in [*disturbances(m), *canvas_disturbances(m)]:
        moved = run.stored(run.taps(other))
        effects.append((max(error(moved[tap], x) for tap, x in want.items()), what))
    effects.sort()
    least = "; ".join(f"{what} {e:.1e}" for e, what in effects[:3])
    print(f"{name}: {len(effects)} disturbances; the least visible move a tap by: {least}")
    return max(worst.values()) < TOLERANCE and same and effects[0][0] > VISIBLE


def check(folder, name):
    path = folder / f"model_{name}.gguf"
    m = reference.Model(path)
    golden = gguf.read(folder / f"taps_{name}.gguf")
    if hashlib.sha256(path.read_bytes()).hexdigest() != golden.get("golden.model_sha256"):
        print(f"{name}: the taps were made from another model file")
        return False
    if m.n_canvas:
        return check_canvas(name, m, golden)
    taps = reference.forward(m, golden.get("golden.ids"))
    good = compare_taps(name, m, golden, taps)
    good &= check_greedy(name, m, golden, taps)
    good &= check_sensitivity(name, m, golden, taps)
    return good


def main():
    if len(sys.argv) < 2:
        sys.exit(__doc__)
    folder = Path(sys.argv[1])
    names = sys.argv[2:] or sorted(p.stem[len("model_"):] for p in folder.glob("model_*.gguf"))
    bad = [name for name in names if not check(folder, name)]
    print(f"golden files: {len(names) - len(bad)} of {len(names)} good"
          + (f"; bad: {', '.join(bad)}" if bad else ""))
    sys.exit(1 if bad or not names else 0)


if __name__ == "__main__":
    main()
