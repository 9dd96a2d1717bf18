"""A trained model as GGUF with the names and metadata of Gemma 4 files, and the rounded weights."""

import os
import sys

import numpy as np

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), ".."))
import gguf  # noqa: E402  (tools/gguf.py)

from canvas_settings import Settings  # noqa: E402

_FILE_TYPES = {"F32": 0, "F16": 1, "Q8_0": 7, "BF16": 32}

_GLOBAL = {
    "model.embed_tokens.weight": "token_embd.weight",
    "model.embed_tokens_per_layer.weight": "per_layer_token_embd.weight",
    "model.per_layer_model_projection.weight": "per_layer_model_proj.weight",
    "model.per_layer_projection_norm.weight": "per_layer_proj_norm.weight",
    "model.norm.weight": "output_norm.weight",
    "model.self_conditioning.pre_norm.weight": "self_cond_pre_norm.weight",
    "model.self_conditioning.gate_proj.weight": "self_cond_gate.weight",
    "model.self_conditioning.up_proj.weight": "self_cond_up.weight",
    "model.self_conditioning.down_proj.weight": "self_cond_down.weight"
}
_LAYER = {
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
    "per_layer_input_gate.weight": "inp_gate.weight",
    "per_layer_projection.weight": "proj.weight",
    "post_per_layer_input_norm.weight": "post_norm.weight",
    "layer_scalar": "layer_output_scale.weight",
    "encoder_scalar": "enc_layer_output_scale.weight",
    "router.proj.weight": "ffn_gate_inp.weight",
    "router.scale": "ffn_gate_inp.scale",
    "router.per_expert_scale": "ffn_down_exps.scale",
    "experts.gate_up_proj": "ffn_gate_up_exps.weight",
    "experts.down_proj": "ffn_down_exps.weight",
    "pre_feedforward_layernorm_2.weight": "pre_ffw_norm_2.weight",
    "post_feedforward_layernorm_1.weight": "post_ffw_norm_1.weight",
    "post_feedforward_layernorm_2.weight": "post_ffw_norm_2.weight"
}

# A short template of our own for other programs: text turns and thinking, no tools.
_TEMPLATE = (
    "{{ bos_token }}{% if enable_thinking or messages[0]['role'] == 'system' %}<|turn>system\n"
    "{% if enable_thinking %}<|think|>\n{% endif %}"
    "{% if messages[0]['role'] == 'system' %}{{ messages[0]['content'] | trim }}{% endif "
    "%}<turn|>\n"
    "{% endif %}{% for m in messages if m['role'] != 'system' %}"
    "<|turn>{{ 'model' if m['role'] == 'assistant' else m['role'] }}\n{{ m['content'] | trim "
    "}}<turn|>\n"
    "{% endfor %}{% if add_generation_prompt %}<|turn>model\n{% endif %}")


def gguf_name(name):
    """The file's name of a parameter of the reference model."""
    if name in _GLOBAL:
        return _GLOBAL[name]
    prefix, rest = name.removeprefix("model.layers.").split(".", 1)
    return f"blk.{prefix}.{_LAYER[rest]}"


def tensor_format(name, shape, file_format):
    """Matrices in the file's format; norms, scales and the router stay F32.

    The projection that feeds the per-layer embeddings is never quantised, as in published files.
    """
    if len(shape) < 2 or "ffn_gate_inp" in name:
        return "F32"
    if name == "per_layer_model_proj.weight" and file_format == "Q8_0":
        return "F16"
    return file_format


def encode(state, config, file_format):
    """The GGUF tensors of a state dict (name -> float32 array)."""
    tensors = []
    for name, array in state.items():
        if name == "lm_head.weight":
            continue
        target = gguf_name(name)
        tensors.append(
            gguf.Tensor.encode(target, array, tensor_format(target, array.shape, file_format)))
    pairs = config["global_head_dim"] // 2
    freqs = np.full(pairs, 1e30, np.float32)
    freqs[:pairs // 4] = 1.0  # a quarter of the pairs turn
    tensors.append(gguf.Tensor.encode("rope_freqs.weight", freqs))
    return tensors


def rounded(state, config, file_format):
    """The state dict with the values that the file will hold, as float32."""
    decoded = {t.name: t.decode() for t in encode(state, config, file_format)}
    out = {n: decoded[gguf_name(n)] for n in state if n != "lm_head.weight"}
    if "lm_head.weight" in state:
        out["lm_head.weight"] = out["model.embed_tokens.weight"]
    return out


def metadata(name, config, tokenizer, file_format, n_params):
    """Keys of a Gemma 4 file."""
    types = config["layer_types"]
    layers = len(types)
    swa = [t == "sliding_attention" for t in types]
    ff = [config["intermediate_size"]] * layers
    own = layers - config.get("num_kv_shared_layers", 0)
    if config.get("use_double_wide_mlp"):
        ff = [f * 2 if i >= own else f for i, f in enumerate(ff)]
    kv = [
        config["num_key_value_heads"]
        if s else config.get("num_global_key_value_heads", config["num_key_value_heads"])
        for s in swa
    ]
    arch = "diffusion-gemma" if config.get("canvas_length") else "gemma4"
    a = arch + "."
    out = [("general.architecture", "str", arch), ("general.type", "str", "model"),
           ("general.name", "str", f"Bezel {name}"),
           ("general.description", "str", "A tiny model trained from scratch on generated text"),
           ("general.file_type", "u32", _FILE_TYPES[file_format]),
           ("general.quantization_version", "u32", 2), ("general.parameter_count", "u64", n_params),
           (a + "block_count", "u32", layers),
           (a + "context_length", "u32", config["max_position_embeddings"]),
           (a + "embedding_length", "u32", config["hidden_size"]),
           _per_layer(a + "feed_forward_length", ff),
           (a + "attention.head_count", "u32", config["num_attention_heads"]),
           _per_layer(a + "attention.head_count_kv", kv),
           (a + "attention.key_length", "u32", config["global_head_dim"]),
           (a + "attention.value_length", "u32", config["global_head_dim"]),
           (a + "attention.key_length_swa", "u32", config["head_dim"]),
           (a + "attention.value_length_swa", "u32", config["head_dim"]),
           (a + "attention.layer_norm_rms_epsilon", "f32", config["rms_norm_eps"]),
           (a + "attention.sliding_window", "u32", config["sliding_window"]),
           (a + "attention.sliding_window_pattern", "bool[]", swa),
           (a + "attention.shared_kv_layers", "u32", config.get("num_kv_shared_layers", 0)),
           (a + "embedding_length_per_layer_input", "u32", config["hidden_size_per_layer_input"]),
           (a + "rope.freq_base", "f32", 1e6), (a + "rope.freq_base_swa", "f32", 1e4),
           (a + "rope.dimension_count", "u32", config["global_head_dim"]),
           (a + "rope.dimension_count_swa", "u32", config["head_dim"]),
           (a + "final_logit_softcapping", "f32", config["final_logit_softcapping"])]
    if config.get("enable_moe_block"):
        out += [(a + "expert_count", "u32", config["num_experts"]),
                (a + "expert_used_count", "u32", config["top_k_experts"]),
                (a + "expert_feed_forward_length", "u32", config["moe_intermediate_size"])]
    if config.get("canvas_length"):
        out += _canvas_metadata(config["canvas_length"])
    return out + _tokenizer_metadata(tokenizer)


def _canvas_metadata(length):
    s, d = Settings(), "diffusion."
    return [("diffusion-gemma.attention.causal", "bool", False),
            (d + "canvas_length", "u32", length), (d + "eb_max_steps", "u32", s.steps),
            (d + "eb_t_min", "f32", s.t_min), (d + "eb_t_max", "f32", s.t_max),
            (d + "eb_entropy_bound", "f32", s.entropy_bound),
            (d + "eb_stability_threshold", "u32", s.stability),
            (d + "eb_confidence_threshold", "f32", s.confidence)]


def _per_layer(key, values):
    """A scalar where all layers agree, else one value a layer."""
    return (key, "u32", values[0]) if len(set(values)) == 1 else (key, "i32[]", values)


def _tokenizer_metadata(tokenizer):
    t = "tokenizer.ggml."
    ids = tokenizer.ids
    return [(t + "model", "str", "gemma4"), (t + "tokens", "str[]", tokenizer.tokens),
            (t + "scores", "f32[]", [-1000.0] * len(tokenizer.tokens)),
            (t + "token_type", "i32[]", tokenizer.types()),
            (t + "merges", "str[]", tokenizer.merge_lines()),
            (t + "bos_token_id", "u32", ids["<bos>"]), (t + "eos_token_id", "u32", ids["<eos>"]),
            (t + "unknown_token_id", "u32", ids["<unk>"]),
            (t + "padding_token_id", "u32", ids["<pad>"]),
            (t + "mask_token_id", "u32", ids["<mask>"]), (t + "add_bos_token", "bool", True),
            (t + "add_space_prefix", "bool", False), ("tokenizer.chat_template", "str", _TEMPLATE)]


def write(path, name, state, config, tokenizer, file_format):
    """Write the model file."""
    n_params = sum(a.size for n, a in state.items() if n != "lm_head.weight")
    gguf.write(path, metadata(name, config, tokenizer, file_format, n_params),
               encode(state, config, file_format))
