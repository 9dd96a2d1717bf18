#!/usr/bin/env python3
"""Finds prompt seeds for which nothing hangs on rounding; the result goes into models.py by hand.

A prompt is good when, in the float64 reference: no expert is chosen by a hair, no argmax over the
prompt is a near tie, and the greedy continuation has clear winners, varied tokens, and none that
ends generation or stands for an image. Needs numpy only.

    find_prompts.py [NAME...]
"""

import sys
import tempfile
from pathlib import Path

sys.dont_write_bytecode = True
import numpy as np  # noqa: E402

sys.path.insert(0, str(Path(__file__).resolve().parent))
import models  # noqa: E402
import reference  # noqa: E402

ROUTER_GAP = 1e-3  # log of the ratio between the last expert chosen and the first one not
PROMPT_MARGIN = 5e-3
GREEDY_MARGIN = 0.1
DISTINCT = 12


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


def continuation(c, m, ids):
    """The greedy tokens, or None as soon as something is too close or unwanted."""
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


def main():
    for c in models.CONFIGS:
        if sys.argv[1:] and c.name not in sys.argv[1:]:
            continue
        with tempfile.TemporaryDirectory() as folder:
            path = Path(folder) / "model.gguf"
            models.write_model(c, path)
            m = reference.Model(path)
        seed = 0
        while (greedy := continuation(c, m, models.prompt(c, seed))) is None:
            seed += 1
        print(f"{c.name}: prompt_seed={seed}, {len(set(greedy))} distinct tokens")


if __name__ == "__main__":
    main()
