#!/usr/bin/env python3
"""Finds prompt seeds for which nothing hangs on rounding; the result goes into models.py by hand.

A prompt is good when, in the float64 reference: no expert is chosen by a hair, no argmax over the
prompt is a near tie, and the greedy continuation has clear winners, varied tokens, and none that
ends generation or stands for an image. A canvas's run is good when besides no position is accepted
and no canvas stopped by a hair, one canvas settles and another runs out of steps, and a stop token
stands in the last canvas only. Needs numpy only.

    find_prompts.py [NAME...]
"""

import sys
import tempfile
from pathlib import Path

sys.dont_write_bytecode = True
import numpy as np  # noqa: E402

sys.path.insert(0, str(Path(__file__).resolve().parent))
import canvas  # noqa: E402
import models  # noqa: E402
import reference  # noqa: E402

ROUTER_GAP = 1e-3  # log of the ratio between the last expert chosen and the first one not
PROMPT_MARGIN = 5e-3
CANVAS_MARGIN = 1e-3  # of the logits of every step
GREEDY_MARGIN = 0.1
DISTINCT = 12
ENTROPY_GAP = 1e-3  # nats, for sums and means alike


def margins(logits):
    top = np.sort(logits, axis=-1)
    return top[:, -1] - top[:, -2]


def router_gap(m, taps):
    gap = np.inf
    for il in range(m.n_layer if m.n_used else 0):
        prob = reference.router_probabilities(m, f"blk.{il}.", taps[f"blk.{il}.attn_out"])
        prob = -np.sort(-prob, axis=-1)
        gap = min(gap, np.log(prob[:, m.n_used - 1] / prob[:, m.n_used]).min())
    return gap


def continuation(c, m, seed):
    """The greedy tokens, or None as soon as something is too close or unwanted."""
    ids = models.prompt(c, seed)
    unwanted = {models.token_id(c, t) for t in models.STOPS + models.SOFT + ("<pad>", "<bos>")}
    taps = reference.forward(m, ids)
    if margins(taps["logits"]).min() < PROMPT_MARGIN:
        return None
    greedy = []
    while True:
        if router_gap(m, taps) < ROUTER_GAP:
            return None
        last = taps["logits"][-1:]
        best = int(last.argmax())
        if margins(last)[0] < GREEDY_MARGIN or best in unwanted:
            return None
        greedy.append(best)
        if len(greedy) == models.N_GREEDY:
            return greedy if len(set(greedy)) >= DISTINCT else None
        taps = reference.forward(m, ids + greedy)


def clear(settings, step):
    """No decision of a step hangs on rounding."""
    if margins(step.taps["logits"]).min() < CANVAS_MARGIN:
        return False
    if abs(step.entropy.mean() - settings.confidence) < ENTROPY_GAP:
        return False
    entropy = np.sort(step.entropy)
    before = np.cumsum(entropy) - entropy
    n = int(np.sum(step.accepted))
    if np.abs(before - settings.entropy_bound).min() < ENTROPY_GAP:
        return False
    return n == len(entropy) or entropy[n] - entropy[n - 1] > ENTROPY_GAP


def whole_run(c, m, seed):
    """The steps of a run, or None when it will not do."""
    ids = models.prompt(c, seed)
    settings, stops = canvas.settings_of(c), models.stops(c)
    if router_gap(m, reference.forward(m, ids)) < ROUTER_GAP:
        return None
    source = canvas.source_of(c, seed=seed)
    steps, _ = canvas.run(m, ids, settings, c.canvas.n_canvases, stops, source)
    last = [s for s in steps if s.stopped]
    if len(last) < c.canvas.n_canvases or {s.stopped for s in last} != {"stable", "steps"}:
        return None
    if not any(3 < i for i, t in enumerate(last[-1].best) if t in stops):
        return None
    good = all(clear(settings, s) and router_gap(m, s.taps) > ROUTER_GAP / 3 for s in steps)
    return steps if good else None


def main():
    for c in models.CONFIGS + models.CANVAS_CONFIGS:
        if sys.argv[1:] and c.name not in sys.argv[1:]:
            continue
        with tempfile.TemporaryDirectory() as folder:
            path = Path(folder) / "model.gguf"
            models.write_model(c, path)
            m = reference.Model(path)
        seed, look = 0, whole_run if c.canvas else continuation
        while (found := look(c, m, seed)) is None:
            seed += 1
        if c.canvas:
            print(f"{c.name}: prompt_seed={seed}, steps "
                  + " ".join(f"{s.canvas_index}:{s.stopped}" if s.stopped else "." for s in found))
        else:
            print(f"{c.name}: prompt_seed={seed}, {len(set(found))} distinct tokens")


if __name__ == "__main__":
    main()
