#!/usr/bin/env python3
"""Makes the golden files of training: gradients of LoRA matrices, and the losses of ten AdamW
steps.

    python3 tools/golden/make_train_golden.py --out DIR
    python3 tools/golden/make_train_golden.py --out DIR --second-opinion

Reads tests/golden/model_NAME.gguf and writes DIR/train_NAME.gguf. Every linear of
the layers gets an adapter, y = (W + s B A) x; A and B are not stored, since they follow from their
number (see matrix()). The first form needs torch and transformers: gradients go through
transformers' Gemma 4 in float32 on the CPU with eager attention, and are compared with a second
opinion, the network of reference.py written once more in torch and run in float64. The other form
writes that one alone and needs torch only.

A train_NAME.gguf holds the ids and targets (-1: not trained on), rank and alpha, AdamW's numbers,
the names of the adapted tensors in order (`train.targets`), the mean loss before each step
(`train.losses`), and the gradient of that mean before the first step: tensors NAME.a and NAME.b.
"""

import argparse
import hashlib
import sys
import time
from pathlib import Path

sys.dont_write_bytecode = True
import numpy as np  # noqa: E402
import torch  # noqa: E402

sys.path.insert(0, str(Path(__file__).resolve().parent))
import models  # noqa: E402
import reference  # noqa: E402
from models import gguf  # noqa: E402

N_TOK = 64  # past every window
N_STEPS = 10
# experts have many matrices: a small rank keeps the file small
RANK = {"e2b": 4, "kv": 4, "moe": 2}
SCALE = 2.0  # alpha / rank
LR, BETA1, BETA2, EPS, DECAY = 5e-4, 0.9, 0.999, 1e-8, 0.01
ADAPTED = ("attn_q", "attn_k", "attn_v", "attn_output", "ffn_gate", "ffn_up", "ffn_down",
           "inp_gate",
           "proj", "ffn_gate_inp", "ffn_gate_up_exps", "ffn_down_exps")

# -------------------------------------------------------------------------------------------------
# what is trained, and on what


def mix(z):
    """splitmix64's finaliser on an array, as src/base/rng.h has it."""
    z = (z ^ (z >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    z = (z ^ (z >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return z ^ (z >> np.uint64(31))


def matrix(number, shape, reach):
    """The number-th random matrix: uniform within reach, element i from rng_at(number, i)."""
    golden = np.uint64(0x9E3779B97F4A7C15)
    with np.errstate(over="ignore"):
        start = mix(np.array([number], np.uint64) + golden)
        bits = mix(start + np.arange(1, int(np.prod(shape)) + 1, dtype=np.uint64) * golden)
    unit = (bits >> np.uint64(40)).astype(np.float32) * np.float32(2.0**-24)
    return (np.float32(reach) * (2 * unit - 1)).reshape(shape).astype(np.float32)


def adapted_names(f, c):
    """Names of the tensors that get an adapter, layer by layer in the order of ADAPTED."""
    names = [f"blk.{il}.{kind}.weight" for il in range(c.n_layer) for kind in ADAPTED]
    return [name for name in names if name in f.tensors]


def make_adapter(f, names, rank):
    """Name -> (A, B), float32 arrays: rank x in and out x rank, with experts one such pair each."""
    out = {}
    for i, name in enumerate(names):
        *experts, n_out, n_in = f[name].shape
        a = matrix(2 * i, (*experts, rank, n_in), 1.5 / np.sqrt(n_in))
        b = matrix(2 * i + 1, (*experts, n_out, rank), 0.3)
        out[name] = a, b
    return out


def lesson(c):
    """Ids, and what each position should say: two of three learn the next token."""
    ids = models.prompt(c)[:N_TOK]
    targets = [ids[i + 1] if i % 3 and i + 1 < N_TOK else -1 for i in range(N_TOK)]
    return ids, targets


def mean_loss(logits, targets):
    return torch.nn.functional.cross_entropy(logits, torch.tensor(targets), ignore_index=-1)


# -------------------------------------------------------------------------------------------------
# the second opinion: reference.py's network in torch, float64


def rms(x, eps, w=1.0):
    return x / torch.sqrt((x * x).mean(-1, keepdim=True) + eps) * w


def gelu(x):
    return 0.5 * x * (1 + torch.tanh(np.sqrt(2 / np.pi) * (x + 0.044715 * x**3)))


def rope(x, base, factors):
    n_tok, _, hd = x.shape
    half = hd // 2
    freq = torch.tensor(base ** (-2.0 * np.arange(half) / hd) / factors)
    angle = torch.arange(n_tok, dtype=torch.float64)[:, None, None] * freq
    cos, sin = torch.cos(angle), torch.sin(angle)
    a, b = x[..., :half], x[..., half:]
    return torch.cat([a * cos - b * sin, a * sin + b * cos], -1)


def attention(q, k, v, window):
    n_tok, n_head, _ = q.shape
    group = n_head // k.shape[1]
    k, v = k.repeat_interleave(group, 1), v.repeat_interleave(group, 1)
    t, s = torch.arange(n_tok)[:, None], torch.arange(n_tok)[None, :]
    allowed = s <= t
    if window:
        allowed = allowed & (t - s < window)
    score = torch.einsum("thd,shd->hts", q, k).masked_fill(~allowed, -np.inf)
    return torch.einsum("hts,shd->thd", score.softmax(-1), v).reshape(n_tok, -1)


def routed(m, w, p, x, h):
    """The routed half of the feed-forward part: h are the normed inputs of the experts."""
    u = rms(x, m.eps) / np.sqrt(m.n_embd) * w[p + "ffn_gate_inp.scale"]
    prob = (u @ w[p + "ffn_gate_inp.weight"].T).softmax(-1)
    chosen = prob.topk(m.n_used, -1).indices
    weight = prob * torch.zeros_like(prob).scatter(-1, chosen, 1.0)
    weight = weight / weight.sum(-1, keepdim=True) * w[p + "ffn_down_exps.scale"]
    y = 0
    for e in range(prob.shape[-1]):
        gate, up = (h @ w[p + "ffn_gate_up_exps.weight"][e].T).chunk(2, -1)
        y = y + weight[:, e, None] * ((gelu(gate) * up) @ w[p + "ffn_down_exps.weight"][e].T)
    return y


def per_layer_inputs(m, w, ids, x):
    shape = (len(ids), m.n_layer, m.n_ple)
    a = (w["per_layer_token_embd.weight"][ids] * np.sqrt(m.n_ple)).reshape(shape)
    b = (x @ w["per_layer_model_proj.weight"].T / np.sqrt(m.n_embd)).reshape(shape)
    b = rms(b, m.eps, w["per_layer_proj_norm.weight"])
    return (a + b) / np.sqrt(2)


def plain_logits(m, w, ids):
    """n_tok x n_vocab. m: sizes (reference.Model); w: name -> float64 tensor, adapters included."""
    n_tok, cache = len(ids), {}
    x = w["token_embd.weight"][ids] * np.sqrt(m.n_embd)
    ple = per_layer_inputs(m, w, ids, x) if m.n_ple else None
    for il in range(m.n_layer):
        p = f"blk.{il}."
        get = lambda name: w[p + name + ".weight"]  # noqa: B023
        swa = m.is_swa[il]
        factors = 1.0 if swa else m.w["rope_freqs.weight"]
        heads = lambda y: y.reshape(n_tok, -1, m.head_dim[swa])  # noqa: B023
        h = rms(x, m.eps, get("attn_norm"))
        q = rope(rms(heads(h @ get("attn_q").T), m.eps, get("attn_q_norm")), m.base[swa], factors)
        if il < m.n_own:
            kr = heads(h @ get("attn_k").T)
            vr = heads(h @ get("attn_v").T) if p + "attn_v.weight" in w else kr
            cache[il] = rope(rms(kr, m.eps, get("attn_k_norm")), m.base[swa],
                             factors), rms(vr, m.eps)
        o = attention(q, *cache[m.donor(il)], m.window if swa else 0)
        x = x + rms(o @ get("attn_output").T, m.eps, get("post_attention_norm"))
        h = rms(x, m.eps, get("ffn_norm"))
        f = (gelu(h @ get("ffn_gate").T) * (h @ get("ffn_up").T)) @ get("ffn_down").T
        if p + "ffn_gate_inp.weight" in w:
            e = routed(m, w, p, x, rms(x, m.eps, get("pre_ffw_norm_2")))
            f = rms(f, m.eps, get("post_ffw_norm_1")) + rms(e, m.eps, get("post_ffw_norm_2"))
        x = x + rms(f, m.eps, get("post_ffw_norm"))
        if m.n_ple:
            g = gelu(x @ get("inp_gate").T) * ple[:, il]
            x = x + rms(g @ get("proj").T, m.eps, get("post_norm"))
        x = x * get("layer_output_scale")
    logits = rms(x, m.eps, w["output_norm.weight"]) @ w["token_embd.weight"].T
    return m.cap * torch.tanh(logits / m.cap) if m.cap else logits


# -------------------------------------------------------------------------------------------------
# training


def train(adapter, base, logits_of, targets, dtype):
    """Gradients before the first step, and the losses before each. logits_of: adapted weights ->
    logits."""
    numbers = {name: [torch.tensor(x, dtype=dtype, requires_grad=True) for x in pair]
               for name, pair in adapter.items()}
    optimizer = torch.optim.AdamW([x for pair in numbers.values() for x in pair], lr=LR,
                                  betas=(BETA1, BETA2), eps=EPS, weight_decay=DECAY)
    grads, losses = {}, []
    for _ in range(N_STEPS):
        optimizer.zero_grad()
        adapted = {name: base[name] + SCALE * (b @ a) for name, (a, b) in numbers.items()}
        loss = mean_loss(logits_of(adapted), targets)
        loss.backward()
        if not grads:
            grads = {f"{name}.{part}": x.grad.detach().clone() for name, pair in numbers.items()
                     for part, x in zip("ab", pair)}
        losses.append(loss.item())
        optimizer.step()
    return grads, losses


def second_opinion(path, adapter, ids, targets):
    m = reference.Model(path)
    w = {name: torch.tensor(x) for name, x in m.w.items()}
    return train(adapter, w, lambda adapted: plain_logits(m, w | adapted, ids), targets,
                 torch.float64)


def with_transformers(c, path, adapter, ids, targets):
    import make_golden  # needs transformers

    model = make_golden.load(c, path)
    for parameter in model.parameters():
        parameter.requires_grad_(False)
    where = {make_golden.file_name(p): p for p in model.state_dict() if p != "lm_head.weight"}
    base = {name: model.state_dict()[where[name]].detach().clone() for name in adapter}
    batch = torch.tensor([ids])

    def logits_of(adapted):
        weights = {where[name]: x for name, x in adapted.items()}
        out = torch.func.functional_call(model, weights, (),
                                         {"input_ids": batch, "use_cache": False})
        return out.logits[0]

    with torch.no_grad():  # an override must be heard, or there would be nothing to learn
        plain = model(input_ids=batch, use_cache=False).logits[0]
        same = logits_of(base)
        moved = logits_of({name: 1.5 * x for name, x in base.items()})
    assert torch.allclose(plain, same, atol=1e-4) and not torch.allclose(plain, moved, atol=1e-2)
    return train(adapter, base, logits_of, targets, torch.float32)


def compare(grads, losses, other, other_losses):
    """The largest error of a gradient relative to its length, and of a loss."""
    worst = max((float((grads[k].double() - other[k]).norm() / other[k].norm()), k) for k in other)
    off = max(abs(x - y) for x, y in zip(losses, other_losses))
    print(f"  against float64: gradients within {worst[0]:.1e} ({worst[1]}), losses within "
          f"{off:.1e}")
    return worst[0], off


# -------------------------------------------------------------------------------------------------
# files


def write(c, model_path, out, made_with, ids, targets, names, grads, losses):
    keys = [
        ("general.architecture", "str", "golden"),
        ("general.name", "str", f"golden training {c.name}"),
        ("golden.reference", "str", made_with),
        ("golden.model_sha256", "str", hashlib.sha256(model_path.read_bytes()).hexdigest()),
        ("train.ids", "i32[]", ids),
        ("train.targets", "i32[]", targets),
        ("train.rank", "u32", RANK[c.name]),
        ("train.scale", "f32", SCALE),
        ("train.lr", "f32", LR),
        ("train.beta1", "f32", BETA1),
        ("train.beta2", "f32", BETA2),
        ("train.eps", "f32", EPS),
        ("train.decay", "f32", DECAY),
        ("train.adapted", "str[]", names),
        ("train.losses", "f32[]", losses),
    ]
    tensors = []
    for name, g in grads.items():
        assert torch.isfinite(g).all() and g.abs().max() > 0, name
        tensors.append(gguf.Tensor.encode(name, g.to(torch.float32).numpy()))
    path = out / f"train_{c.name}.gguf"
    gguf.write(path, keys, tensors)
    return path.stat().st_size


def make(c, args):
    start = time.time()
    path = args.models / f"model_{c.name}.gguf"
    f = gguf.read(path)
    names = adapted_names(f, c)
    adapter = make_adapter(f, names, RANK[c.name])
    ids, targets = lesson(c)
    grads, losses = double = second_opinion(path, adapter, ids, targets)
    made_with, error = f"torch {torch.__version__.split('+')[0]}, float64", (0.0, 0.0)
    if not args.second_opinion:
        import transformers
        grads, losses = with_transformers(c, path, adapter, ids, targets)
        made_with = (f"transformers {transformers.__version__}, torch"
                     f" {torch.__version__.split('+')[0]}, float32 on the CPU, eager attention")
        error = compare(grads, losses, *double)
    size = write(c, path, args.out, made_with, ids, targets, names, grads, losses)
    print(f"{c.name}: {len(names)} tensors adapted, {size} bytes, losses {losses[0]:.4f} to"
          f" {losses[-1]:.4f}, {time.time() - start:.1f} s", flush=True)
    return error


def main():
    parser = argparse.ArgumentParser(description=__doc__,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--models", type=Path,
                        default=Path(__file__).resolve().parents[2] / "tests/golden")
    parser.add_argument("--out", type=Path, required=True)
    parser.add_argument("--second-opinion", action="store_true")
    args = parser.parse_args()
    args.out.mkdir(parents=True, exist_ok=True)
    torch.set_num_threads(1)
    errors = [make(c, args) for c in models.CONFIGS if c.name in RANK]
    assert all(gradient < 1e-4 and loss < 1e-4 for gradient, loss in errors), errors


if __name__ == "__main__":
    main()
