"""Small random Gemma 4 models as complete GGUF files: four of text, two with a canvas.

Owns sizes, vocabulary and weights of the golden models. Together they cover every branch of the
text model: sliding and global layers, per-layer embeddings, layers that share keys and values,
double-wide MLPs, V taken from the K projection, routed experts; and the canvas of DiffusionGemma.
Every parameter is random and away from 0 and 1, and sizes that a mistake could confuse differ, so
that no wrong use of one stays unseen. Needs numpy only; the same seeds give the same files.
"""

import math
import sys
import zlib
from dataclasses import dataclass
from pathlib import Path

import numpy as np

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))
import gguf  # noqa: E402

N_PROMPT = 96
N_GREEDY = 24


@dataclass(frozen=True)
class Canvas:
    """What a diffusion model has besides: its canvas, and the recorded run."""

    length: int
    n_prompt: int
    n_canvases: int
    steps: int  # of a canvas at most
    stability: int
    entropy_bound: float
    confidence: float
    t_min: float
    t_max: float
    gain: float  # of the final norm: how sure the model is
    branch: float  # of the layers' branches: small ones let a canvas settle
    other_dialect: bool = False  # names and missing tensors of the other converter, no settings


@dataclass(frozen=True)
class Config:
    """One model. `pattern`: S sliding, F full attention. Global heads are twice as wide."""

    name: str
    seed: int
    prompt_seed: int  # found by find_prompts.py: no near ties on the way
    pattern: str
    n_embd: int
    n_head: int
    n_kv_head: int
    head_dim: int
    n_ff: int
    window: int
    n_unused: int  # <unusedN> tokens, which make vocabulary sizes differ
    vocab_order: str  # order of (b)yte tokens, (s)pecials and (p)ieces
    n_kv_head_global: int = 0  # 0: as the sliding layers
    k_eq_v: bool = False  # global layers have no V projection
    n_ple: int = 0
    n_shared: int = 0
    double_wide: bool = False
    keep_dead_kv: bool = False  # shared layers still carry (unread) K and V weights
    n_expert: int = 0
    n_used: int = 0
    n_ff_exp: int = 0
    eps: float = 1e-6
    cap: float = 30.0
    base_swa: float = 1e4
    base_global: float = 1e6
    canvas: Canvas = None

    @property
    def arch(self):
        return "diffusion-gemma" if self.canvas else "gemma4"

    @property
    def n_layer(self):
        return len(self.pattern)

    @property
    def n_own(self):
        """Layers that compute their own keys and values."""
        return self.n_layer - self.n_shared

    def is_swa(self, il):
        return self.pattern[il] == "S"

    def hd(self, il):
        return self.head_dim if self.is_swa(il) else 2 * self.head_dim

    def kv_heads(self, il):
        return self.n_kv_head if self.is_swa(il) else self.n_kv_head_global or self.n_kv_head

    def ff(self, il):
        return self.n_ff * 2 if self.double_wide and il >= self.n_own else self.n_ff

    def rows(self):
        """Positions whose layer taps are kept: start, both sides of the window's edge, end."""
        w = self.window
        return sorted({0, 1, w - 2, w - 1, w, w + 1, 2 * w + 1, 48, 72, N_PROMPT - 1})


CONFIGS = [
    Config("e2b", seed=101, prompt_seed=7, pattern="SSFSSF", n_embd=96, n_head=4, n_kv_head=1,
           head_dim=16, n_ff=64, window=16, n_unused=3, vocab_order="sbp", n_ple=32, n_shared=3,
           double_wide=True),
    Config("e4b", seed=102, prompt_seed=3, pattern="SFSFSF", n_embd=96, n_head=4, n_kv_head=2,
           head_dim=16, n_ff=64, window=12, n_unused=9, vocab_order="pbs", n_ple=32, n_shared=2,
           keep_dead_kv=True),
    Config("kv", seed=103, prompt_seed=14, pattern="SSFSF", n_embd=64, n_head=6, n_kv_head=3,
           n_kv_head_global=2, k_eq_v=True, head_dim=16, n_ff=160, window=20, n_unused=6,
           vocab_order="bsp", eps=1e-3, cap=25.0, base_swa=7e3, base_global=3e5),
    Config("moe", seed=104, prompt_seed=34, pattern="SFSSF", n_embd=64, n_head=4, n_kv_head=2,
           n_kv_head_global=1, k_eq_v=True, head_dim=16, n_ff=96, window=16, n_unused=0,
           vocab_order="psb", n_expert=8, n_used=3, n_ff_exp=32, eps=2e-4, cap=20.0),
]

# All have experts, and V = K on global layers: the architecture knows nothing else.
CANVAS_CONFIGS = [
    Config("canvas16", seed=105, prompt_seed=181, pattern="SSF", n_embd=32, n_head=4, n_kv_head=2,
           n_kv_head_global=1, k_eq_v=True, head_dim=16, n_ff=64, window=16, n_unused=2,
           vocab_order="spb", n_expert=4, n_used=2, n_ff_exp=32, cap=20.0,
           canvas=Canvas(length=16, n_prompt=40, n_canvases=3, steps=10, stability=1,
                         entropy_bound=4.0, confidence=0.5, t_min=0.3, t_max=0.8, gain=1.0,
                         branch=0.4)),
    Config("canvas12", seed=106, prompt_seed=29, pattern="SF", n_embd=24, n_head=3, n_kv_head=3,
           n_kv_head_global=1, k_eq_v=True, head_dim=12, n_ff=40, window=10, n_unused=5,
           vocab_order="pbs", n_expert=5, n_used=2, n_ff_exp=20, eps=1e-3, cap=25.0, base_swa=7e3,
           base_global=3e5,
           canvas=Canvas(length=12, n_prompt=31, n_canvases=3, steps=8, stability=2,
                         entropy_bound=2.0, confidence=0.6, t_min=0.25, t_max=0.9, gain=1.0,
                         branch=0.4, other_dialect=True)),
]

# -------------------------------------------------------------------------------------------------
# vocabulary

NORMAL, CONTROL, USER_DEFINED, UNUSED, BYTE = 1, 3, 4, 5, 6

# In this order at the front of the specials; types as published files have them (<eos> is NORMAL).
SPECIALS = [
    ("<mask>", CONTROL), ("<unk>", CONTROL), ("<pad>", CONTROL), ("<turn|>", CONTROL),
    ("<bos>", CONTROL), ("<eos>", NORMAL), ("<|turn>", CONTROL), ("<|think|>", CONTROL),
    ("<|channel>", USER_DEFINED), ("<channel|>", USER_DEFINED), ("<|tool>", CONTROL),
    ("<tool|>", CONTROL), ("<|tool_call>", USER_DEFINED), ("<tool_call|>", USER_DEFINED),
    ("<|tool_response>", USER_DEFINED), ("<tool_response|>", USER_DEFINED),
    ('<|"|>', USER_DEFINED), ("<|image>", CONTROL), ("<|image|>", CONTROL), ("<image|>", CONTROL),
    ("<|audio>", CONTROL), ("<|audio|>", CONTROL), ("<audio|>", CONTROL), ("<|video|>", CONTROL),
]
SOFT = ("<|image|>", "<|audio|>", "<|video|>")  # stand for embeddings, never in a text prompt
STOPS = ("<eos>", "<turn|>", "<|tool_response>")
LETTERS = "▁etaonhisrdlmu"
NEWLINES = ["\n", "\n\n", "\n\n\n"]
MERGES = ["t h", "th e", "▁ the", "a n", "an d", "▁ and", "i n", "u s", "e r", "us er", "m o",
          "d e", "mo de", "mode l"]


def vocabulary(c):
    """List of (text, type); the position is the id."""
    groups = {
        "b": [(f"<0x{b:02X}>", BYTE) for b in range(256)],
        "s": SPECIALS,
        "p": [(t, NORMAL) for t in [*LETTERS, *NEWLINES]]
        + [(m.replace(" ", ""), NORMAL) for m in MERGES]
        + [(f"<unused{i}>", UNUSED) for i in range(c.n_unused)],
    }
    vocab = [token for g in c.vocab_order for token in groups[g]]
    assert len({text for text, _ in vocab}) == len(vocab)
    return vocab


def token_id(c, text):
    return [t for t, _ in vocabulary(c)].index(text)


def stops(c):
    return [token_id(c, t) for t in STOPS]


def prompt(c, seed=None):
    """<bos> and random tokens of every sort that can stand in a text prompt."""
    texts = [t for t, _ in vocabulary(c)]
    allowed = [i for i, t in enumerate(texts) if t not in SOFT + ("<pad>", "<bos>")]
    rng = np.random.default_rng([c.seed, c.prompt_seed if seed is None else seed])
    n = c.canvas.n_prompt if c.canvas else N_PROMPT
    return [token_id(c, "<bos>")] + rng.choice(allowed, n - 1).tolist()


# -------------------------------------------------------------------------------------------------
# weights

# Scores of q.k have a standard deviation of about this: attention neither flat nor one-hot.
SCORE_STD = 1.8


def tensor_shapes(c):
    """Name -> shape (slowest first) of every tensor in the file, in file order."""
    d, n_vocab = c.n_embd, len(vocabulary(c))
    shapes = {"token_embd.weight": (n_vocab, d), "output_norm.weight": (d,)}
    shapes["rope_freqs.weight"] = (c.head_dim,)
    if c.n_ple:
        shapes["per_layer_token_embd.weight"] = (n_vocab, c.n_ple * c.n_layer)
        shapes["per_layer_model_proj.weight"] = (c.n_ple * c.n_layer, d)
        shapes["per_layer_proj_norm.weight"] = (c.n_ple,)
    if c.canvas:
        other = c.canvas.other_dialect
        shapes["self_cond_norm.weight" if other else "self_cond_pre_norm.weight"] = (d,)
        shapes |= {"self_cond_gate.weight": (c.n_ff, d), "self_cond_up.weight": (c.n_ff, d)}
        shapes["self_cond_down.weight"] = (d, c.n_ff)
    for il in range(c.n_layer):
        q, kv, ff = c.n_head * c.hd(il), c.kv_heads(il) * c.hd(il), c.ff(il)
        layer = {"attn_norm": (d,), "attn_q": (q, d), "attn_q_norm": (c.hd(il),)}
        if il < c.n_own or c.keep_dead_kv:
            layer |= {"attn_k": (kv, d), "attn_k_norm": (c.hd(il),)}
            if c.is_swa(il) or not c.k_eq_v:
                layer["attn_v"] = (kv, d)
        layer |= {"attn_output": (d, q), "post_attention_norm": (d,), "ffn_norm": (d,)}
        layer |= {"ffn_gate": (ff, d), "ffn_up": (ff, d), "ffn_down": (d, ff)}
        layer |= {"post_ffw_norm": (d,), "layer_output_scale": (1,)}
        if c.canvas and not c.canvas.other_dialect:
            layer["enc_layer_output_scale"] = (1,)
        if c.n_ple:
            layer |= {"inp_gate": (c.n_ple, d), "proj": (d, c.n_ple), "post_norm": (d,)}
        if c.n_expert:
            layer |= {"ffn_gate_inp": (c.n_expert, d), "ffn_gate_inp.scale": (d,)}
            layer |= {"ffn_gate_up_exps": (c.n_expert, 2 * c.n_ff_exp, d)}
            layer |= {"ffn_down_exps": (c.n_expert, d, c.n_ff_exp)}
            layer |= {"ffn_down_exps.scale": (c.n_expert,), "pre_ffw_norm_2": (d,)}
            layer |= {"post_ffw_norm_1": (d,), "post_ffw_norm_2": (d,)}
        for name, shape in layer.items():
            shapes[f"blk.{il}.{name}" + ("" if name.endswith(".scale") else ".weight")] = shape
    return shapes


def vector_mean(kind, width):
    """Middle of the range a vector's elements are drawn from."""
    return {
        # logits of about this deviation: the soft-cap bends them, float32 still serves
        "output_norm": 3.0,
        "attn_norm": 1.1,
        "ffn_norm": 0.9,
        "attn_q_norm": 1.15 * math.sqrt(SCORE_STD / math.sqrt(width)),
        "attn_k_norm": 0.87 * math.sqrt(SCORE_STD / math.sqrt(width)),
        "post_attention_norm": 0.9,
        "post_ffw_norm": 1.2,
        "post_norm": 0.8,
        "per_layer_proj_norm": 0.8,
        "layer_output_scale": 0.72,
        "enc_layer_output_scale": 0.55,
        "self_cond_pre_norm": 1.2,
        "self_cond_norm": 1.2,
        "ffn_gate_inp.scale": 0.9,
        "ffn_down_exps.scale": 1.1,
        "pre_ffw_norm_2": 1.2,
        "post_ffw_norm_1": 0.9,
        "post_ffw_norm_2": 1.1,
    }[kind]


def vector_gain(c, kind):
    """Models with a canvas are surer of themselves, and less changed by their layers."""
    if not c.canvas:
        return 1.0
    return {"output_norm": c.canvas.gain, "post_attention_norm": c.canvas.branch,
            "post_ffw_norm": c.canvas.branch}.get(kind, 1.0)


def matrix_std(kind, n_in):
    """Deviation of a matrix's elements: outputs of order 1 from inputs of order 1."""
    gain = {
        "per_layer_model_proj": 0.7 * math.sqrt(n_in),
        "attn_v": 0.6,
        "ffn_gate": 1.4,
        "ffn_gate_up_exps": 1.2,
        "inp_gate": 0.7,
        "ffn_gate_inp": 1.5 * math.sqrt(n_in),  # its input is scaled by 1/sqrt(n_in)
        "self_cond_down": 0.3,  # stronger feedback blows rounding up from step to step
    }.get(kind, 1.0)
    return gain / math.sqrt(n_in)


def weight(c, name, shape):
    """One tensor. Its random stream depends on its name alone."""
    if name == "rope_freqs.weight":
        return np.where(np.arange(shape[0]) < shape[0] // 4, 1.0, 1e30).astype(np.float32)
    kind = name.removesuffix(".weight").split(".", 2 if name.startswith("blk.") else 0)[-1]
    rng = np.random.default_rng([c.seed, zlib.crc32(name.encode())])
    if len(shape) == 1:
        spread = 0.3 if shape == (1,) else 0.4  # a lone scalar stays clear of 1
        around_1 = rng.uniform(1 - spread, 1 + spread, shape)
        return (vector_gain(c, kind) * vector_mean(kind, shape[0]) * around_1).astype(np.float32)
    n_in = c.n_ple if kind == "per_layer_token_embd" else shape[-1]
    return (matrix_std(kind, n_in) * rng.standard_normal(shape)).astype(np.float32)


def tensor_format(name, shape):
    """Matrices BF16, to keep the files small; the router and all vectors F32."""
    return "F32" if len(shape) == 1 or "ffn_gate_inp" in name else "BF16"


# -------------------------------------------------------------------------------------------------
# the file


def metadata(c):
    vocab = vocabulary(c)
    ff = [c.ff(il) for il in range(c.n_layer)]
    kv = [c.kv_heads(il) for il in range(c.n_layer)]
    scalar_or_array = lambda v: ("i32[]", v) if len(set(v)) > 1 else ("u32", v[0])
    a = c.arch + "."
    keys = [
        ("general.architecture", "str", c.arch),
        ("general.type", "str", "model"),
        ("general.name", "str", f"golden {c.name}"),
        ("general.file_type", "u32", 32),
        ("general.quantization_version", "u32", 2),
        (a + "block_count", "u32", c.n_layer),
        (a + "context_length", "u32", 512),
        (a + "embedding_length", "u32", c.n_embd),
        (a + "feed_forward_length", *scalar_or_array(ff)),
        (a + "attention.head_count", "u32", c.n_head),
        (a + "attention.head_count_kv", *scalar_or_array(kv)),
        (a + "attention.key_length", "u32", 2 * c.head_dim),
        (a + "attention.value_length", "u32", 2 * c.head_dim),
        (a + "attention.key_length_swa", "u32", c.head_dim),
        (a + "attention.value_length_swa", "u32", c.head_dim),
        (a + "attention.layer_norm_rms_epsilon", "f32", c.eps),
        (a + "attention.sliding_window", "u32", c.window),
        (a + "attention.sliding_window_pattern", "bool[]", [p == "S" for p in c.pattern]),
        (a + "attention.shared_kv_layers", "u32", c.n_shared),
        (a + "embedding_length_per_layer_input", "u32", c.n_ple),
        (a + "rope.freq_base", "f32", c.base_global),
        (a + "rope.freq_base_swa", "f32", c.base_swa),
        (a + "rope.dimension_count", "u32", 2 * c.head_dim),
        (a + "rope.dimension_count_swa", "u32", c.head_dim),
        (a + "final_logit_softcapping", "f32", c.cap),
    ]
    if c.n_expert:
        keys += [
            (a + "expert_count", "u32", c.n_expert),
            (a + "expert_used_count", "u32", c.n_used),
            (a + "expert_feed_forward_length", "u32", c.n_ff_exp),
        ]
    if c.canvas:
        keys += canvas_metadata(c)
    keys += [
        ("tokenizer.ggml.model", "str", "gemma4"),
        ("tokenizer.ggml.tokens", "str[]", [text for text, _ in vocab]),
        ("tokenizer.ggml.scores", "f32[]", [-1000.0] * len(vocab)),
        ("tokenizer.ggml.token_type", "i32[]", [kind for _, kind in vocab]),
        ("tokenizer.ggml.merges", "str[]", MERGES),
    ]
    for key, text in (("bos", "<bos>"), ("eos", "<eos>"), ("unknown", "<unk>"),
                      ("padding", "<pad>"), ("mask", "<mask>")):
        keys.append((f"tokenizer.ggml.{key}_token_id", "u32", token_id(c, text)))
    keys += [
        ("tokenizer.ggml.add_bos_token", "bool", True),
        ("tokenizer.ggml.add_space_prefix", "bool", False),
    ]
    return keys


def canvas_metadata(c):
    v = c.canvas
    keys = [("diffusion-gemma.attention.causal", "bool", False),
            ("diffusion.canvas_length", "u32", v.length)]
    if not v.other_dialect:
        keys += [
            ("diffusion.eb_max_steps", "u32", v.steps),
            ("diffusion.eb_t_min", "f32", v.t_min),
            ("diffusion.eb_t_max", "f32", v.t_max),
            ("diffusion.eb_entropy_bound", "f32", v.entropy_bound),
            ("diffusion.eb_stability_threshold", "u32", v.stability),
            ("diffusion.eb_confidence_threshold", "f32", v.confidence),
        ]
    return keys


def write_model(c, path):
    tensors = [gguf.Tensor.encode(name, weight(c, name, shape), tensor_format(name, shape))
               for name, shape in tensor_shapes(c).items()]
    gguf.write(path, metadata(c), tensors)
