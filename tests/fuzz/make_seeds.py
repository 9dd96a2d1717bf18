#!/usr/bin/env python3
"""make_seeds.py - the smallest models that run, and adapters for them, as seeds of the fuzz
targets.

Run it from anywhere after a change of the formats; the same files come out every time. The sizes
are primes or powers of primes where the formats allow it, so that a mutator that changes one number
everywhere (tests/fuzz/gguf_mutate.h) leaves a file that still fits together.
"""
import pathlib
import random
import struct

HERE = pathlib.Path(__file__).parent
rng = random.Random(7)
SPECIAL = ["<pad>", "<eos>", "<bos>", "<unk>", "<|turn>", "<turn|>", "\u2581", "a", "b", "ab", "\n"]
TYPES = [3, 3, 3, 2, 3, 3, 1, 1, 1, 1, 1]
FORMATS = {"F32": (0, 1, 4), "F16": (1, 1, 2), "Q4_0": (2, 32, 18), "Q8_0": (8, 32, 34),
           "Q4_K": (12, 256, 144)}
KEY_TYPES = {"u8": (0, "B"), "u32": (4, "I"), "f32": (6, "f"), "bool": (7, "?")}


# ---- GGUF ----


def string(s):
    b = s.encode()
    return struct.pack("<Q", len(b)) + b


def values(type, list):
    return b"".join(string(v) if type == "str" else struct.pack("<" + KEY_TYPES[type][1], v)
                    for v in list)


def pair(key, type, value):
    array = type.endswith("[]")
    elem = type.removesuffix("[]")
    id = 8 if elem == "str" else KEY_TYPES[elem][0]
    if array:
        return string(key) + struct.pack("<IIQ", 9, id, len(value)) + values(elem, value)
    return string(key) + struct.pack("<I", id) + values(elem, [value])


def pack(metadata, tensors):
    """tensors: (name, shape with the slowest dimension first, format, bytes)."""
    head = b"GGUF" + struct.pack("<IQQ", 3, len(tensors), len(metadata))
    head += b"".join(pair(*m) for m in metadata)
    data = b""
    for name, shape, format, raw in tensors:
        head += string(name) + struct.pack(f"<I{len(shape)}Q", len(shape), *shape[::-1])
        head += struct.pack("<IQ", FORMATS[format][0], len(data))
        data += raw + bytes(-len(raw) % 32)
    return head + bytes(-len(head) % 32) + data


def tensor(name, shape, format):
    n = 1
    for s in shape:
        n *= s
    _, block, n_bytes = FORMATS[format]
    if block == 1:
        raw = struct.pack(f"<{n}{'f' if format == 'F32' else 'e'}",
                          *(rng.gauss(0, 0.3) for _ in range(n)))
    else:  # a scale, and whatever follows
        scale = struct.pack("<e", 0.01) * (2 if format == "Q4_K" else 1)
        raw = b"".join(scale + rng.randbytes(n_bytes - len(scale)) for _ in range(n // block))
    return name, shape, format, raw


# ---- models ----


def vocabulary():
    tokens = SPECIAL + [f"<0x{i:02X}>" for i in range(256)]
    return [("tokenizer.ggml.model", "str", "gemma4"),
            ("tokenizer.ggml.tokens", "str[]", tokens),
            ("tokenizer.ggml.token_type", "u8[]", TYPES + [6] * 256),
            ("tokenizer.ggml.merges", "str[]", ["a b"]),
            ("tokenizer.ggml.bos_token_id", "u32", 2),
            ("tokenizer.ggml.eos_token_id", "u32", 1)]


def metadata(s):
    arch = "diffusion-gemma" if s["canvas"] else "gemma4"
    key = lambda name, type, value: (f"{arch}.{name}", type, value)
    out = [("general.architecture", "str", arch),
           key("block_count", "u32", s["layers"]), key("embedding_length", "u32", s["embd"]),
           key("context_length", "u32", 64), key("attention.head_count", "u32", s["heads"]),
           key("attention.head_count_kv", "u32[]", [s["kv"]] * s["layers"]),
           key("attention.key_length", "u32", s["dim"]),
           key("attention.value_length", "u32", s["dim"]),
           key("attention.key_length_swa", "u32", s["dim_swa"]),
           key("attention.value_length_swa", "u32", s["dim_swa"]),
           key("attention.sliding_window", "u32", 3),
           key("attention.sliding_window_pattern", "bool[]",
               [i % 2 == 0 for i in range(s["layers"])]),
           key("attention.layer_norm_rms_epsilon", "f32", 1e-6),
           key("feed_forward_length", "u32", s["ff"]),
           key("final_logit_softcapping", "f32", 30.0), key("rope.freq_base", "f32", 1e6)]
    if s["shared"]:
        out.append(key("attention.shared_kv_layers", "u32", s["shared"]))
    if s["ple"]:
        out.append(key("embedding_length_per_layer_input", "u32", s["ple"]))
    if s["experts"]:
        out += [key("expert_count", "u32", s["experts"]), key("expert_used_count", "u32", 2),
                key("expert_feed_forward_length", "u32", s["ff_expert"])]
    if s["canvas"]:
        out += [key("attention.causal", "bool", False),
                ("diffusion.canvas_length", "u32", s["canvas"]),
                ("diffusion.eb_max_steps", "u32", 3), ("diffusion.eb_t_min", "f32", 0.4),
                ("diffusion.eb_t_max", "f32", 0.8), ("diffusion.eb_entropy_bound", "f32", 0.1),
                ("diffusion.eb_stability_threshold", "u32", 1),
                ("diffusion.eb_confidence_threshold", "f32", 0.005),
                ("diffusion.shift_logits", "bool", False)]
    return out


def layer(s, il):
    embd, ff, own = s["embd"], s["ff"], il < s["layers"] - s["shared"]
    dim = s["dim_swa"] if il % 2 == 0 else s["dim"]
    q, kv = s["heads"] * dim, s["kv"] * dim
    add = lambda name, *shape, format="F32": tensor(f"blk.{il}.{name}", shape, format)
    out = [add(f"{n}.weight", embd)
           for n in ("attn_norm", "post_attention_norm", "ffn_norm", "post_ffw_norm")]
    out += [add("attn_q.weight", q, embd, format=s["format"]), add("attn_q_norm.weight", dim),
            add("attn_output.weight", embd, q, format="F16")]
    if own:
        out += [add("attn_k.weight", kv, embd, format=s["format"]), add("attn_k_norm.weight", dim)]
        if not (s["v_is_k"] and il % 2):
            out.append(add("attn_v.weight", kv, embd, format=s["format"]))
    out += [add("ffn_gate.weight", ff, embd, format=s["format"]),
            add("ffn_up.weight", ff, embd, format=s["format"]),
            add("ffn_down.weight", embd, ff, format=s["down"])]
    if s["ple"]:
        out += [add("inp_gate.weight", s["ple"], embd), add("proj.weight", embd, s["ple"]),
                add("post_norm.weight", embd)]
    if s["experts"] and il % 2:
        n, wide = s["experts"], s["ff_expert"]
        out += [add(f"{name}.weight", embd)
                for name in ("pre_ffw_norm_2", "post_ffw_norm_1", "post_ffw_norm_2")]
        out += [add("ffn_gate_inp.weight", n, embd), add("ffn_gate_inp.scale", embd),
                add("ffn_gate_up_exps.weight", n, 2 * wide, embd, format=s["format"]),
                add("ffn_down_exps.weight", n, embd, wide, format=s["expert_down"]),
                add("ffn_down_exps.scale", n)]
    if s["canvas"]:
        out += [add("layer_output_scale.weight", 1), add("enc_layer_output_scale.weight", 1)]
    return out


DEFAULTS = {"shared": 0, "ple": 0, "experts": 0, "canvas": 0, "v_is_k": False, "format": "F16",
            "table": "F16", "down": "F16"}


def model(bare=False, **shape):
    """bare: without a vocabulary and its tables, which merging does not look at."""
    s = DEFAULTS | shape
    n_vocab = len(SPECIAL) + 256
    tensors = [tensor("token_embd.weight", (n_vocab, s["embd"]), s["table"]),
               tensor("output_norm.weight", (s["embd"],), "F32")]
    if s["ple"]:
        width = s["ple"] * s["layers"]
        tensors += [tensor("per_layer_token_embd.weight", (n_vocab, width), "F16"),
                    tensor("per_layer_model_proj.weight", (width, s["embd"]), "F16"),
                    tensor("per_layer_proj_norm.weight", (s["ple"],), "F32")]
    if s["canvas"]:
        tensors += [tensor("self_cond_pre_norm.weight", (s["embd"],), "F32"),
                    tensor("self_cond_gate.weight", (s["ff_self"], s["embd"]), "F16"),
                    tensor("self_cond_up.weight", (s["ff_self"], s["embd"]), "F16"),
                    tensor("self_cond_down.weight", (s["embd"], s["ff_self"]), "F16")]
    if bare:
        tensors = []
    for il in range(s["layers"]):
        tensors += layer(s, il)
    return pack(metadata(s) + ([] if bare else vocabulary()), tensors)


def split(shape):
    """The bytes of a first part, and two parts of one model."""
    s = DEFAULTS | shape
    parts = []
    for i in range(s["layers"]):
        about = [("split.no", "u32", i), ("split.count", "u32", s["layers"])]
        parts.append(pack(metadata(s) + about, layer(s, i)))
    return b"2" + struct.pack("<I", len(parts[0])) + b"".join(parts)


# ---- adapters ----


def adapter(targets, rank=2):
    tensors = []
    for name, n_in, n_out, n_expert in targets:
        experts = (n_expert,) if n_expert > 1 else ()
        tensors += [tensor(f"{name}.lora_a", (*experts, rank, n_in), "F32"),
                    tensor(f"{name}.lora_b", (*experts, n_out, rank), "F16")]
    return pack([("general.architecture", "str", "gemma4"), ("general.type", "str", "adapter"),
                 ("adapter.type", "str", "lora"), ("adapter.lora.alpha", "f32", 4.0)], tensors)


def peft(names, n_in, n_out, rank=2):
    """A line of adapter_config.json, then a safetensors file."""
    header, at = [], 0
    for name in names:
        for side, shape in (("A", (rank, n_in)), ("B", (n_out, rank))):
            n = 4 * shape[0] * shape[1]
            header.append(f'"base_model.model.model.layers.{name}.lora_{side}.weight":'
                          f'{{"dtype":"F32","shape":[{shape[0]},{shape[1]}],'
                          f'"data_offsets":[{at},{at + n}]}}')
            at += n
    text = ("{" + ",".join(header) + "}").encode()
    data = struct.pack(f"<{at // 4}f", *(rng.gauss(0, 1) for _ in range(at // 4)))
    config = b'{"peft_type":"LORA","r":2,"lora_alpha":4,"target_modules":["q_proj","v_proj"]}\n'
    return b"p" + config + struct.pack("<Q", len(text)) + text + data


def checkpoint(step, n):
    """Of a training with n numbers that learn; the target makes the checksums right."""
    numbers = struct.pack(f"<{n}f", *(rng.gauss(0, 0.1) for _ in range(n)))
    return b"BZTRAIN1" + struct.pack("<I", step) + bytes(32) + numbers + bytes(32)


SHAPES = {
    "shared": dict(layers=3, shared=1, embd=6, heads=2, kv=1, dim=10, dim_swa=4, ff=7, ple=2),
    "experts": dict(layers=2, embd=4, heads=2, kv=2, dim=6, dim_swa=6, ff=5, experts=3,
                    ff_expert=32, expert_down="Q8_0"),
    "blocks": dict(layers=2, embd=4, heads=1, kv=1, dim=6, dim_swa=8, ff=256, v_is_k=True,
                   down="Q4_K"),
    "rows": dict(layers=2, embd=32, heads=1, kv=1, dim=6, dim_swa=8, ff=32, v_is_k=True,
                 format="Q4_0", table="Q4_0",
                 down="Q8_0"),
}
CANVAS = dict(layers=2, embd=4, heads=2, kv=1, dim=6, dim_swa=6, ff=5, ff_self=7, experts=3,
              ff_expert=32, expert_down="Q8_0", v_is_k=True, canvas=5)
TARGETS = {  # tensor, in, out, experts
    "shared": [("blk.0.attn_q.weight", 6, 8, 1), ("blk.2.attn_k.weight", 6, 4, 1),
               ("blk.1.ffn_down.weight", 7, 6, 1)],
    "experts": [("blk.1.ffn_down_exps.weight", 32, 4, 3), ("blk.0.ffn_up.weight", 4, 5, 1)],
    "blocks": [("blk.1.ffn_down.weight", 256, 4, 1)],
}


def put(target, name, data):
    folder = HERE / "seeds" / target
    folder.mkdir(parents=True, exist_ok=True)
    (folder / name).write_bytes(data)


def main():
    for name, shape in SHAPES.items():
        put("model", name, model(**shape))
    for name, targets in TARGETS.items():
        own, base = adapter(targets), model(bare=True, **SHAPES[name])
        put("merge", name, struct.pack("<I", len(base)) + base + own)
        put("attach", name, b"g" + own)
    put("attach", "peft", peft(["0.self_attn.q_proj", "2.self_attn.q_proj"], 6, 8))
    shared = model(bare=True, **SHAPES["shared"])
    put("inspect", "whole", shared)
    put("inspect", "vocabulary", pack(metadata(DEFAULTS | SHAPES["shared"]) + vocabulary(), []))
    put("inspect", "adapter", adapter(TARGETS["shared"]))
    put("inspect", "split", split(SHAPES["experts"]))
    put("quantize", "q8_0", bytes([4]) + shared)
    put("quantize", "q4_k_m", bytes([5]) + model(bare=True, **SHAPES["blocks"]))
    put("checkpoint", "step_1", checkpoint(1, 1032))
    put("checkpoint", "step", struct.pack("<I", 3))
    canvas = model(**CANVAS)
    put("model", "canvas", canvas)
    put("inspect", "canvas", canvas)


if __name__ == "__main__":
    main()
