"""Gemma 4's text forward pass in float64 numpy, read straight from a GGUF file.

It is the second opinion on the golden files: it shares no code with the implementation that made
them, sees only what is in the model file, and names its intermediates as the taps do. Slow and
plain on purpose; nothing is cached, every position is computed at once.
"""

import math
import sys
from pathlib import Path

import numpy as np

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))
import gguf  # noqa: E402


class Model:
    """Sizes and float64 weights of one file. Tests may change any field before forward()."""

    def __init__(self, path):
        f = gguf.read(path)
        arch = f.get("general.architecture")
        get = lambda key, default=None: f.get(f"{arch}.{key}", default)
        per_layer = lambda v: v if isinstance(v, list) else [v] * self.n_layer
        self.n_layer = get("block_count")
        self.n_embd = get("embedding_length")
        self.n_head = get("attention.head_count")
        self.n_kv_head = per_layer(get("attention.head_count_kv"))
        self.n_ff = per_layer(get("feed_forward_length"))
        self.head_dim = {True: get("attention.key_length_swa"), False: get("attention.key_length")}
        self.base = {True: get("rope.freq_base_swa"), False: get("rope.freq_base")}
        self.is_swa = get("attention.sliding_window_pattern")
        self.window = get("attention.sliding_window")
        self.n_own = self.n_layer - get("attention.shared_kv_layers", 0)
        self.n_ple = get("embedding_length_per_layer_input", 0)
        self.n_canvas = f.get("diffusion.canvas_length", 0)
        self.n_seen = self.window - 1  # of the prefix, by a canvas on sliding layers
        self.soft_scale = math.sqrt(self.n_embd)
        self.eps = get("attention.layer_norm_rms_epsilon")
        self.cap = get("final_logit_softcapping", 0.0)
        self.n_used = get("expert_used_count", 0)
        self.w = {name: t.decode().astype(np.float64) for name, t in f.tensors.items()}

    def donor(self, il):
        """The layer whose keys and values layer il reads."""
        if il < self.n_own:
            return il
        return self.n_own - (2 if self.is_swa[il] else 1)


def rms(x, eps, w=1.0):
    return x / np.sqrt((x * x).mean(-1, keepdims=True) + eps) * w


def gelu(x):
    return 0.5 * x * (1 + np.tanh(np.sqrt(2 / np.pi) * (x + 0.044715 * x**3)))


def softmax(x):
    e = np.exp(x - x.max(-1, keepdims=True))
    return e / e.sum(-1, keepdims=True)


def rope(x, base, freq_factors, positions):
    """x: n_tok x heads x hd. Rotates pairs (i, i + hd/2) by position * base^(-2i/hd) / factor."""
    hd = x.shape[-1]
    half = hd // 2
    freq = base ** (-2.0 * np.arange(half) / hd) / freq_factors
    angle = positions[:, None, None] * freq
    c, s = np.cos(angle), np.sin(angle)
    a, b = x[..., :half], x[..., half:]
    return np.concatenate([a * c - b * s, a * s + b * c], -1)


def attention(q, k, v, allowed):
    """q: n_tok x H x hd; k, v: n x Hk x hd; allowed: n_tok x n. Gives n_tok x H*hd."""
    n_tok, n_head, hd = q.shape
    group = n_head // k.shape[1]
    k, v = np.repeat(k, group, axis=1), np.repeat(v, group, axis=1)
    score = np.where(allowed, np.einsum("thd,shd->hts", q, k), -np.inf)
    return np.einsum("hts,shd->thd", softmax(score), v).reshape(n_tok, n_head * hd)


def causal(n_tok, window):
    """Who sees whom in a text. window 0: all of the past."""
    t, s = np.arange(n_tok)[:, None], np.arange(n_tok)[None, :]
    return (s <= t) & ((t - s < window) if window else True)


def router_probabilities(m, p, x):
    """n_tok x n_expert: softmax over all experts."""
    u = rms(x, m.eps) / np.sqrt(m.n_embd) * m.w[p + "ffn_gate_inp.scale"]
    return softmax(u @ m.w[p + "ffn_gate_inp.weight"].T)


def route(m, p, x):
    """Routing weights n_tok x n_expert: the chosen probabilities, renormalised; others 0."""
    prob = router_probabilities(m, p, x)
    chosen = np.argsort(-prob, axis=-1, kind="stable")[:, : m.n_used]
    keep = np.zeros_like(prob)
    np.put_along_axis(keep, chosen, 1.0, -1)
    return prob * keep / (prob * keep).sum(-1, keepdims=True)


def experts(m, p, x, weight):
    """Sum over the chosen experts of weight * scale * MLP_e(x)."""
    gate_up, down = m.w[p + "ffn_gate_up_exps.weight"], m.w[p + "ffn_down_exps.weight"]
    scale = m.w[p + "ffn_down_exps.scale"]
    n_ff = gate_up.shape[1] // 2
    y = np.zeros_like(x)
    for e in range(len(gate_up)):
        h = x @ gate_up[e].T
        y += (weight[:, e] * scale[e])[:, None] * ((gelu(h[:, :n_ff]) * h[:, n_ff:]) @ down[e].T)
    return y


def per_layer_inputs(m, ids, x):
    """n_tok x (L*P): token part plus projected part, over sqrt 2."""
    shape = (len(ids), m.n_layer, m.n_ple)
    a = (m.w["per_layer_token_embd.weight"][ids] * np.sqrt(m.n_ple)).reshape(shape)
    b = (x @ m.w["per_layer_model_proj.weight"].T / np.sqrt(m.n_embd)).reshape(shape)
    b = rms(b, m.eps, m.w["per_layer_proj_norm.weight"])
    return ((a + b) / np.sqrt(2)).reshape(len(ids), -1)


def layers(m, x, positions, attend, tap, scale="layer_output_scale", ple=None):
    """All layers and the final norm. `attend(il, q, k, v)`: k and v are None where shared."""
    n_tok = len(x)
    for il in range(m.n_layer):
        p = f"blk.{il}."
        swa = m.is_swa[il]
        hd, n_kv = m.head_dim[swa], m.n_kv_head[il]
        factors = 1.0 if swa else m.w["rope_freqs.weight"]
        w = lambda name: m.w[p + name + ".weight"]

        h = rms(x, m.eps, w("attn_norm"))
        tap(p + "attn_norm", h)
        q = (h @ w("attn_q").T).reshape(n_tok, m.n_head, hd)
        q = rope(rms(q, m.eps, w("attn_q_norm")), m.base[swa], factors, positions)
        tap(p + "q", q.reshape(n_tok, -1))
        k = v = None
        if il < m.n_own:
            kr = (h @ w("attn_k").T).reshape(n_tok, n_kv, hd)
            vr = kr
            if p + "attn_v.weight" in m.w:
                vr = (h @ w("attn_v").T).reshape(n_tok, n_kv, hd)
            k = rope(rms(kr, m.eps, w("attn_k_norm")), m.base[swa], factors, positions)
            v = rms(vr, m.eps)
            tap(p + "k", k.reshape(n_tok, -1))
            tap(p + "v", v.reshape(n_tok, -1))
        o = attend(il, q, k, v)
        tap(p + "attn", o)
        x = x + rms(o @ w("attn_output").T, m.eps, w("post_attention_norm"))
        tap(p + "attn_out", x)
        x = x + rms(feed_forward(m, p, x, tap), m.eps, w("post_ffw_norm"))
        tap(p + "ffn_out", x)
        if m.n_ple:
            mine = ple[:, il * m.n_ple : (il + 1) * m.n_ple]
            g = gelu(x @ w("inp_gate").T) * mine
            x = x + rms(g @ w("proj").T, m.eps, w("post_norm"))
            tap(p + "ple_out", x)
        x = x * m.w.get(p + scale + ".weight", m.w[p + "layer_output_scale.weight"])
        tap(p + "out", x)
    x = rms(x, m.eps, m.w["output_norm.weight"])
    tap("result_norm", x)
    return x


def feed_forward(m, p, x, tap):
    """The dense MLP; with experts both normed branches' sum."""
    w = lambda name: m.w[p + name + ".weight"]
    h = rms(x, m.eps, w("ffn_norm"))
    f = (gelu(h @ w("ffn_gate").T) * (h @ w("ffn_up").T)) @ w("ffn_down").T
    if p + "ffn_gate_inp.weight" in m.w:
        weight = route(m, p, x)
        tap(p + "router", weight)
        c2 = experts(m, p, rms(x, m.eps, w("pre_ffw_norm_2")), weight)
        c2 = rms(c2, m.eps, w("post_ffw_norm_2"))
        tap(p + "moe_out", c2)
        f = rms(f, m.eps, w("post_ffw_norm_1")) + c2
    tap(p + "ffn", f)
    return f


def head(m, x):
    """Logits of normed rows."""
    logits = x @ m.w["token_embd.weight"].T
    return m.cap * np.tanh(logits / m.cap) if m.cap else logits


def forward(m, ids, cache=None):
    """All taps of one prompt: name -> n_tok x width, float64. `cache` gets layer -> (k, v)."""
    taps = {}
    cache = {} if cache is None else cache
    tap = taps.__setitem__
    ids = np.asarray(ids)
    n_tok = len(ids)
    x = m.w["token_embd.weight"][ids] * np.sqrt(m.n_embd)
    tap("embd", x)
    ple = None
    if m.n_ple:
        ple = per_layer_inputs(m, ids, x)
        tap("ple", ple)

    def attend(il, q, k, v):
        if k is not None:
            cache[il] = k, v
        return attention(q, *cache[m.donor(il)], causal(n_tok, m.window if m.is_swa[il] else 0))

    scale = "enc_layer_output_scale" if m.n_canvas else "layer_output_scale"
    x = layers(m, x, np.arange(n_tok), attend, tap, scale, ple)
    tap("logits", head(m, x))
    return taps
