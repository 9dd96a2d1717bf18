"""DiffusionGemma in float64 numpy: a step of a canvas, and whole runs of the sampler.

The second opinion on the golden files of canvases, as reference.py is on those of text: read from
the model file alone, slow and plain. A run takes its random numbers from a script, or from a
generator and then writes them down as one.
"""

from dataclasses import dataclass, field

import numpy as np

import models
import reference
from reference import gelu, rms, softmax


@dataclass
class Settings:
    """How a canvas is sampled."""

    length: int
    steps: int
    stability: int
    entropy_bound: float
    confidence: float
    t_min: float
    t_max: float

    def temperature(self, n):
        """Of the step that has n - 1 steps after it."""
        return self.t_min + (self.t_max - self.t_min) * (n / self.steps)


def settings_of(c):
    v = c.canvas
    return Settings(v.length, v.steps, v.stability, v.entropy_bound, v.confidence, v.t_min, v.t_max)


@dataclass
class Script:
    """The random numbers of a run: whole canvases in call order, and the draws of each step."""

    random: list = field(default_factory=list)
    sampled: list = field(default_factory=list)


@dataclass
class Step:
    """One step of one canvas."""

    canvas_index: int
    n_prefix: int
    temperature: float
    canvas: list  # that the step was given
    after: list = None  # the next step's
    best: list = None
    accepted: list = None
    entropy: np.ndarray = None
    taps: dict = None  # with the logits, before the temperature
    stopped: str = ""


def soft_embedding(m, processed):
    """What a step thought of each position, as rows of the table: n x n_embd."""
    return softmax(processed) @ m.w["token_embd.weight"] * m.soft_scale


def denoise(m, cache, n_prefix, canvas, processed=None):
    """All taps of a decoder pass. `processed`: the last step's logits over its temperature."""
    taps = {}
    tap = taps.__setitem__
    w = lambda name: m.w[f"self_cond_{name}.weight"]
    x = m.w["token_embd.weight"][np.asarray(canvas)] * np.sqrt(m.n_embd)
    tap("embd", x)
    soft = np.zeros_like(x) if processed is None else soft_embedding(m, processed)
    h = rms(soft, m.eps, w("pre_norm" if "self_cond_pre_norm.weight" in m.w else "norm"))
    sc = (gelu(h @ w("gate").T) * (h @ w("up").T)) @ w("down").T
    tap("self_cond", sc)
    x = rms(x + sc, m.eps)
    tap("canvas_in", x)

    def attend(il, q, k, v):
        old_k, old_v = cache[il]
        seen = min(n_prefix, m.n_seen) if m.is_swa[il] else n_prefix
        k, v = (np.concatenate([old[n_prefix - seen : n_prefix], new])
                for old, new in ((old_k, k), (old_v, v)))
        return reference.attention(q, k, v, np.ones((len(q), len(k)), bool))

    x = reference.layers(m, x, n_prefix + np.arange(len(x)), attend, tap)
    tap("logits", reference.head(m, x))
    return taps


def entropies(z):
    """Nats of softmax(z), a value a row."""
    p = softmax(z)
    return -(p * np.log(np.maximum(p, 1e-300))).sum(-1)


def accept(entropy, bound):
    """Mask: positions in order of entropy, while those before sum to no more than the bound."""
    order = np.argsort(entropy, kind="stable")
    before = np.cumsum(entropy[order]) - entropy[order]
    mask = np.zeros(len(entropy), bool)
    mask[order[before <= bound]] = True
    return mask


class Source:
    """Random numbers from a script, in order; or from a generator, kept as a script."""

    def __init__(self, n_vocab, length, script=None, rng=None):
        self.n_vocab, self.length, self.rng = n_vocab, length, rng
        self.given, self.kept = script, Script()

    def canvas(self):
        if self.given:
            out = list(self.given.random[len(self.kept.random)])
        else:
            out = self.rng.integers(0, self.n_vocab, self.length).tolist()
        self.kept.random.append(out)
        return out

    def draws(self, z):
        if self.given:
            out = list(self.given.sampled[len(self.kept.sampled)])
        else:
            out = [int(self.rng.choice(len(p), p=p)) for p in softmax(z)]
        self.kept.sampled.append(out)
        return out


def source_of(c, script=None, seed=None):
    """Random numbers of a golden model's run; `seed` is the prompt's."""
    seed = c.prompt_seed if seed is None else seed
    rng = None if script else np.random.default_rng([c.seed, seed, 1])
    return Source(len(models.vocabulary(c)), c.canvas.length, script, rng)


def one_canvas(m, settings, cache, n_prefix, index, source):
    """The steps of one canvas; the last one's `best` is the result."""
    steps, history, processed = [], [], None
    canvas = source.canvas()
    for n in range(settings.steps, 0, -1):
        s = Step(index, n_prefix, settings.temperature(n), canvas)
        s.taps = denoise(m, cache, n_prefix, canvas, processed)
        processed = s.taps["logits"] / s.temperature
        s.taps["soft"] = soft_embedding(m, processed)
        draws = source.draws(processed)
        s.best = processed.argmax(-1).tolist()
        s.entropy = entropies(processed)
        s.accepted = accept(s.entropy, settings.entropy_bound)
        fresh = source.canvas()
        s.after = [d if a else f for a, d, f in zip(s.accepted, draws, fresh)]
        history.append(s.best)
        same = history[-settings.stability - 1 :]  # stability k: k + 1 canvases in a row
        stable = len(same) == settings.stability + 1 and all(b == s.best for b in same)
        if stable and s.entropy.mean() < settings.confidence:
            s.stopped = "stable"
        elif n == 1:
            s.stopped = "steps"
        steps.append(s)
        if s.stopped:
            return steps
        canvas = s.after
    raise AssertionError("unreachable")


def run(m, prompt, settings, n_canvases, stops, source):
    """(steps of all canvases, ids): ids end with the first stop token, which ends the run too."""
    ids, steps = list(prompt), []
    for index in range(n_canvases):
        cache = {}
        reference.forward(m, ids, cache)
        steps += one_canvas(m, settings, cache, len(ids), index, source)
        ids += steps[-1].best
        if set(steps[-1].best) & set(stops):
            break
    out = ids[len(prompt) :]
    ends = [i for i, t in enumerate(out) if t in stops]
    return steps, out[: ends[0] + 1] if ends else out
