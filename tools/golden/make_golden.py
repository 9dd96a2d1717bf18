#!/usr/bin/env python3
"""Makes the golden files: small models, and what the transformers library computes with them.

    make_golden.py DIR

Writes DIR/model_NAME.gguf and DIR/taps_NAME.gguf for every model of models.py. The weights go from
the finished model file into transformers' Gemma 4, which runs in float32 on the CPU with eager
attention: once over the whole prompt without a cache, recording every tap, and once with the cache
to continue it greedily. Needs torch and transformers; check_golden.py checks the result without.
"""

import hashlib
import re
import sys
import time
from pathlib import Path

sys.dont_write_bytecode = True
import torch  # noqa: E402
import transformers  # noqa: E402
from transformers.models.gemma4 import modeling_gemma4  # noqa: E402
from transformers.models.gemma4.configuration_gemma4 import Gemma4TextConfig  # noqa: E402

sys.path.insert(0, str(Path(__file__).resolve().parent))
import models  # noqa: E402
from models import gguf  # noqa: E402

# transformers' parameter -> tensor in the file. Per layer: without "model.layers.N." and "blk.N.".
GLOBAL_NAMES = {
    "model.embed_tokens.weight": "token_embd.weight",
    "model.norm.weight": "output_norm.weight",
    "model.embed_tokens_per_layer.weight": "per_layer_token_embd.weight",
    "model.per_layer_model_projection.weight": "per_layer_model_proj.weight",
    "model.per_layer_projection_norm.weight": "per_layer_proj_norm.weight",
}
LAYER_NAMES = {
    "input_layernorm.weight": "attn_norm.weight",
    "self_attn.q_proj.weight": "attn_q.weight",
    "self_attn.k_proj.weight": "attn_k.weight",
    "self_attn.v_proj.weight": "attn_v.weight",
    "self_attn.o_proj.weight": "attn_output.weight",
    "self_attn.q_norm.weight": "attn_q_norm.weight",
    "self_attn.k_norm.weight": "attn_k_norm.weight",
    "post_attention_layernorm.weight": "post_attention_norm.weight",
    "pre_feedforward_layernorm.weight": "ffn_norm.weight",
    "mlp.gate_proj.weight": "ffn_gate.weight",
    "mlp.up_proj.weight": "ffn_up.weight",
    "mlp.down_proj.weight": "ffn_down.weight",
    "post_feedforward_layernorm.weight": "post_ffw_norm.weight",
    "layer_scalar": "layer_output_scale.weight",
    "per_layer_input_gate.weight": "inp_gate.weight",
    "per_layer_projection.weight": "proj.weight",
    "post_per_layer_input_norm.weight": "post_norm.weight",
    "router.proj.weight": "ffn_gate_inp.weight",
    "router.scale": "ffn_gate_inp.scale",
    "router.per_expert_scale": "ffn_down_exps.scale",
    "experts.gate_up_proj": "ffn_gate_up_exps.weight",
    "experts.down_proj": "ffn_down_exps.weight",
    "pre_feedforward_layernorm_2.weight": "pre_ffw_norm_2.weight",
    "post_feedforward_layernorm_1.weight": "post_ffw_norm_1.weight",
    "post_feedforward_layernorm_2.weight": "post_ffw_norm_2.weight",
}


def file_name(parameter):
    layer = re.fullmatch(r"model\.layers\.(\d+)\.(.+)", parameter)
    if layer:
        return f"blk.{layer[1]}.{LAYER_NAMES[layer[2]]}"
    return GLOBAL_NAMES[parameter]


def hf_config(c):
    optional = {}
    if c.n_kv_head_global:
        optional["num_global_key_value_heads"] = c.n_kv_head_global
    if c.n_expert:
        optional |= {"num_experts": c.n_expert, "top_k_experts": c.n_used,
                     "moe_intermediate_size": c.n_ff_exp}
    n_vocab = len(models.vocabulary(c))
    return Gemma4TextConfig(
        vocab_size=n_vocab,
        vocab_size_per_layer_input=n_vocab,
        hidden_size=c.n_embd,
        intermediate_size=c.n_ff,
        num_hidden_layers=c.n_layer,
        num_attention_heads=c.n_head,
        num_key_value_heads=c.n_kv_head,
        head_dim=c.head_dim,
        global_head_dim=2 * c.head_dim,
        attention_k_eq_v=c.k_eq_v,
        hidden_size_per_layer_input=c.n_ple,
        num_kv_shared_layers=c.n_shared,
        use_double_wide_mlp=c.double_wide,
        enable_moe_block=c.n_expert > 0,
        sliding_window=c.window,
        layer_types=[{"S": "sliding_attention", "F": "full_attention"}[p] for p in c.pattern],
        rope_parameters={
            "sliding_attention": {"rope_type": "default", "rope_theta": c.base_swa},
            "full_attention": {"rope_type": "proportional", "partial_rotary_factor": 0.25,
                               "rope_theta": c.base_global},
        },
        rms_norm_eps=c.eps,
        final_logit_softcapping=c.cap,
        max_position_embeddings=512,
        pad_token_id=models.token_id(c, "<pad>"),
        bos_token_id=models.token_id(c, "<bos>"),
        eos_token_id=None,  # generation is to run on
        tie_word_embeddings=True,
        **optional,
    )


def load(c, path):
    """transformers' model with the weights of a file; every weight must find its place."""
    model = modeling_gemma4.Gemma4ForCausalLM._from_config(
        hf_config(c), dtype=torch.float32, attn_implementation="eager",
        experts_implementation="eager")
    model.eval()
    assert model.lm_head.weight.data_ptr() == model.model.embed_tokens.weight.data_ptr()
    f = gguf.read(path)
    unread = set(f.tensors) - {"rope_freqs.weight"}
    with torch.no_grad():
        for parameter, target in model.state_dict().items():
            if parameter == "lm_head.weight":
                continue
            name = file_name(parameter)
            value = torch.from_numpy(f[name].decode())
            assert target.shape == value.shape, (parameter, target.shape, value.shape)
            assert target.dtype == torch.float32, (parameter, target.dtype)
            target.copy_(value)
            unread.discard(name)
    dead = {f"blk.{il}.{w}.weight" for il in range(c.n_own, c.n_layer)
            for w in ("attn_k", "attn_v", "attn_k_norm")} if c.keep_dead_kv else set()
    assert unread == dead, unread ^ dead
    return model


def flat(x):
    """1 x n_tok x ... as n_tok x width, a copy."""
    return x.detach().clone().reshape(x.shape[1], -1)


class Recorder:
    """Hangs hooks on the text part of a model and collects taps while it runs once.

    `library` is the module whose eager attention the model calls.
    """

    def __init__(self, text, library):
        self.text, self.library = text, library
        self.taps = {}
        self.inside = {}  # values that are no taps themselves but complete or check one
        self.handles = []
        self.attention = library.eager_attention_forward
        self.project = None
        self.per_layer = bool(getattr(text.config, "hidden_size_per_layer_input", 0))

    def output(self, module, name, to=None):
        def hook(_module, _args, out):
            (self.taps if to is None else to)[name] = flat(out)
        self.handles.append(module.register_forward_hook(hook))

    def input(self, module, name):
        def hook(_module, args):
            self.taps[name] = flat(args[0])
        self.handles.append(module.register_forward_pre_hook(hook))

    def router(self, layer, name):
        """The router gives (probabilities, chosen weights times scale, chosen experts)."""
        def hook(_module, _args, out):
            probabilities, scaled, chosen = (x.detach().clone() for x in out)
            weight = probabilities.gather(-1, chosen)
            weight = weight / weight.sum(-1, keepdim=True)
            scale = layer.router.per_expert_scale[chosen]
            torch.testing.assert_close(weight * scale, scaled, rtol=1e-6, atol=0)
            self.taps[name] = torch.zeros_like(probabilities).scatter(-1, chosen, weight)
        self.handles.append(layer.router.register_forward_hook(hook))

    def record_attention(self, module, query, key, value, *args, **kwargs):
        """Stands in for the library's eager attention. Heads come before positions here."""
        out, prob = self.attention(module, query, key, value, *args, **kwargs)
        p = f"blk.{module.layer_idx}."
        n = query.shape[2]
        self.taps[p + "q"] = flat(query.transpose(1, 2))
        if not getattr(module, "is_kv_shared_layer", False):
            self.taps[p + "k"] = flat(key[:, :, -n:].transpose(1, 2))
            self.taps[p + "v"] = flat(value[:, :, -n:].transpose(1, 2))
        self.taps[p + "attn"] = flat(out)
        self.inside[p + "prob"] = prob.detach()[0]
        return out, prob

    def __enter__(self):
        text = self.text
        self.output(text.embed_tokens, "embd")
        self.output(text.norm, "result_norm")
        if self.per_layer:
            self.project = text.project_per_layer_inputs

            def project(*args, **kwargs):
                out = self.project(*args, **kwargs)
                self.taps["ple"] = flat(out)
                return out
            text.project_per_layer_inputs = project
        self.library.eager_attention_forward = self.record_attention
        for il, layer in enumerate(text.layers):
            p = f"blk.{il}."
            self.output(layer.input_layernorm, p + "attn_norm")
            self.input(layer.pre_feedforward_layernorm, p + "attn_out")
            self.input(layer.post_feedforward_layernorm, p + "ffn")
            self.output(layer.post_feedforward_layernorm, p + "ffn", self.inside)
            self.output(layer, p + "out")
            if self.per_layer:
                self.input(layer.per_layer_input_gate, p + "ffn_out")
                self.output(layer.post_per_layer_input_norm, p + "ple", self.inside)
            if hasattr(layer, "router"):
                self.router(layer, p + "router")
                self.output(layer.post_feedforward_layernorm_2, p + "moe_out")
        return self

    def __exit__(self, *_):
        for h in self.handles:
            h.remove()
        self.library.eager_attention_forward = self.attention
        if self.project is not None:
            del self.text.project_per_layer_inputs

    def complete(self):
        """Sums that no module boundary shows; the layer's own output proves them."""
        taps = self.taps
        for il, layer in enumerate(self.text.layers):
            p = f"blk.{il}."
            after_ffn = taps[p + "attn_out"] + self.inside[p + "ffn"]
            last = after_ffn
            if p + "ffn_out" in taps:
                assert torch.equal(taps[p + "ffn_out"], after_ffn)
                last = taps[p + "ple_out"] = after_ffn + self.inside[p + "ple"]
            taps[p + "ffn_out"] = after_ffn
            assert torch.equal(last * layer.layer_scalar, taps[p + "out"])


def record(model, ids):
    """All taps of a prompt in one pass without a cache."""
    with torch.no_grad(), Recorder(model.model, modeling_gemma4) as r:
        r.taps["logits"] = flat(model(input_ids=ids, use_cache=False).logits)
    r.complete()
    prob = torch.cat([r.inside[k].amax(-1)[:, 40:].flatten() for k in r.inside if "prob" in k])
    print(f"  attention: largest probability of a row, mean {prob.mean():.2f},"
          f" from {prob.min():.2f} to {prob.max():.2f}")
    return r.taps


def greedy(model, ids):
    """Continue with the cache, then prove it: one pass without, and the library's own generate."""
    step, cache, out, seen = ids, None, [], []
    with torch.no_grad():
        for _ in range(models.N_GREEDY):
            r = model(input_ids=step, past_key_values=cache, use_cache=True)
            cache = r.past_key_values
            seen.append(r.logits[0, -1])
            out.append(int(seen[-1].argmax()))
            step = torch.tensor([out[-1:]])
        whole = torch.cat([ids, torch.tensor([out[:-1]])], 1)
        plain = model(input_ids=whole, use_cache=False).logits[0, ids.shape[1] - 1 :]
        made = model.generate(input_ids=ids, attention_mask=torch.ones_like(ids), do_sample=False,
                              max_new_tokens=models.N_GREEDY)[0, ids.shape[1] :].tolist()
    difference = (torch.stack(seen) - plain).abs().max().item()
    assert plain.argmax(-1).tolist() == out, "with and without cache differ"
    assert made == out, "generate() differs"
    assert difference < 1e-3, difference
    top = plain.topk(2).values
    print(f"  greedy: {len(set(out))} distinct of {len(out)}; cached steps differ from one pass by"
          f" {difference:.1e}; smallest margin {(top[:, 0] - top[:, 1]).min():.3f}")
    return out


def write_taps(c, folder, ids, taps, continuation):
    rows = c.rows()
    digest = hashlib.sha256((folder / f"model_{c.name}.gguf").read_bytes()).hexdigest()
    keys = [
        ("general.architecture", "str", "golden"),
        ("general.name", "str", f"golden taps {c.name}"),
        ("golden.reference", "str", f"transformers {transformers.__version__}, torch"
         f" {torch.__version__.split('+')[0]}, float32 on the CPU, eager attention"),
        ("golden.model_sha256", "str", digest),
        ("golden.ids", "i32[]", ids),
        ("golden.greedy", "i32[]", continuation),
        ("golden.rows", "i32[]", rows),
    ]
    tensors = []
    for name, x in taps.items():
        assert x.shape[0] == len(ids) and x.dtype == torch.float32, (name, x.shape, x.dtype)
        assert torch.isfinite(x).all() and x.std() > 1e-3, name
        tensors.append(gguf.Tensor.encode(name, x.numpy() if name == "logits" else x.numpy()[rows]))
    gguf.write(folder / f"taps_{c.name}.gguf", keys, tensors)


def make(c, folder):
    start = time.time()
    path = folder / f"model_{c.name}.gguf"
    models.write_model(c, path)
    model = load(c, path)
    ids = models.prompt(c)
    batch = torch.tensor([ids])
    taps = record(model, batch)
    continuation = greedy(model, batch)
    assert int(taps["logits"][-1].argmax()) == continuation[0]
    write_taps(c, folder, ids, taps, continuation)
    sizes = [(folder / f"{kind}_{c.name}.gguf").stat().st_size for kind in ("model", "taps")]
    print(f"{c.name}: {len(taps)} taps, model {sizes[0]} bytes, taps {sizes[1]} bytes,"
          f" {time.time() - start:.1f} s")


def main():
    if len(sys.argv) != 2:
        sys.exit(__doc__)
    folder = Path(sys.argv[1])
    folder.mkdir(parents=True, exist_ok=True)
    torch.set_num_threads(1)
    for c in models.CONFIGS:
        make(c, folder)


if __name__ == "__main__":
    main()
