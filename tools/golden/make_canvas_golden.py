#!/usr/bin/env python3
"""Makes the golden files of canvases: small diffusion models, and what transformers does with them.

    make_canvas_golden.py DIR [NAME...]

Writes DIR/model_NAME.gguf and DIR/taps_NAME.gguf for every canvas model of models.py. The library's
own generate() runs in float32 on the CPU with eager attention and a dynamic cache (its static cache
is wrong past the window), with random numbers and draws from a script. What the script holds
comes from the float64 reference, so that draws are likely tokens. Needs torch and transformers;
check_golden.py checks the result without.
"""

import hashlib
import sys
import time
from pathlib import Path

sys.dont_write_bytecode = True
import torch  # noqa: E402
import transformers  # noqa: E402
from transformers.cache_utils import DynamicCache  # noqa: E402
from transformers.models import diffusion_gemma  # noqa: E402
from transformers.models.gemma4.configuration_gemma4 import Gemma4VisionConfig  # noqa: E402

sys.path.insert(0, str(Path(__file__).resolve().parent))
import canvas  # noqa: E402
import make_golden  # noqa: E402
import models  # noqa: E402
import reference  # noqa: E402
import scripted  # noqa: E402
from models import gguf  # noqa: E402

configs = diffusion_gemma.configuration_diffusion_gemma
modeling = diffusion_gemma.modeling_diffusion_gemma

SELF_CONDITIONING = {"pre_norm": "pre_norm", "gate_proj": "gate", "up_proj": "up",
                     "down_proj": "down"}


def hf_config(c):
    text = configs.DiffusionGemmaTextConfig(
        vocab_size=len(models.vocabulary(c)),
        hidden_size=c.n_embd,
        intermediate_size=c.n_ff,
        num_hidden_layers=c.n_layer,
        num_attention_heads=c.n_head,
        num_key_value_heads=c.n_kv_head,
        num_global_key_value_heads=c.n_kv_head_global,
        head_dim=c.head_dim,
        global_head_dim=2 * c.head_dim,
        num_experts=c.n_expert,
        top_k_experts=c.n_used,
        moe_intermediate_size=c.n_ff_exp,
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
        eos_token_id=None,
    )
    # The library wants a tower; nothing here calls it.
    tower = Gemma4VisionConfig(hidden_size=16, intermediate_size=16, num_hidden_layers=1,
                               num_attention_heads=1, num_key_value_heads=1, head_dim=16,
                               position_embedding_size=16)
    return configs.DiffusionGemmaConfig(text_config=text, vision_config=tower,
                                        canvas_length=c.canvas.length)


def file_name(c, parameter):
    """The file's name of a parameter or scale; None for what the file does not hold."""
    encoder, decoder = "model.encoder.language_model.", "model.decoder."
    if parameter.startswith(decoder + "self_conditioning."):
        kind = SELF_CONDITIONING[parameter.split(".")[3]]
        if kind == "pre_norm" and c.canvas.other_dialect:
            kind = "norm"
        return f"self_cond_{kind}.weight"
    if parameter.startswith(decoder):
        return make_golden.file_name("model." + parameter.removeprefix(decoder))
    if parameter.startswith(encoder) and parameter.endswith(".layer_scalar"):
        scale = "layer_output_scale" if c.canvas.other_dialect else "enc_layer_output_scale"
        return f"blk.{parameter.split('.')[4]}.{scale}.weight"
    return None


def load(c, path):
    """The library's model with the weights of a file; every weight must find its place."""
    model = modeling.DiffusionGemmaForBlockDiffusion._from_config(
        hf_config(c), dtype=torch.float32, attn_implementation="eager",
        experts_implementation="eager")
    model.eval()
    model.tie_weights()
    decoder, encoder = model.model.decoder, model.model.encoder.language_model
    tied = dict(decoder.named_parameters())
    for name, parameter in encoder.named_parameters():
        assert parameter.data_ptr() == tied[name].data_ptr(), f"{name} is not shared"
    assert model.lm_head.weight.data_ptr() == decoder.embed_tokens.weight.data_ptr()
    f = gguf.read(path)
    unread = set(f.tensors) - {"rope_freqs.weight"}
    with torch.no_grad():
        for parameter, target in model.state_dict().items():
            name = file_name(c, parameter)
            if name is None:
                continue
            value = torch.from_numpy(f[name].decode())
            assert target.shape == value.shape, (parameter, target.shape, value.shape)
            assert target.dtype == torch.float32, (parameter, target.dtype)
            target.copy_(value)
            unread.discard(name)
    assert not unread, unread
    return model


def generate(c, model, ids, script):
    """(steps, ids up to the first stop token and with it): the library's own loop."""
    run = scripted.ScriptedRun(script.random, script.sampled)
    made = scripted.generate(model, ids, run, c.canvas.n_canvases, canvas.settings_of(c),
                             models.stops(c), models.token_id(c, "<pad>"))
    assert run.used_up(), "the script has more than the run took"
    return run.steps, made


def head(model, rows):
    """Soft-capped logits of normed rows."""
    cap = model.final_logit_softcapping
    return torch.tanh(model.lm_head(rows) / cap) * cap


@torch.no_grad()
def record_prompt(model, ids):
    """All taps of the encoder's pass over a text, and its cache."""
    encoder = model.model.encoder
    cache = DynamicCache(config=model.config.text_config)
    assert not cache.is_compileable
    with make_golden.Recorder(encoder.language_model, modeling) as r:
        # The outer class scales the embeddings' rows before the text part sees them.
        out = encoder(input_ids=torch.tensor([ids]), past_key_values=cache)
        r.taps["logits"] = make_golden.flat(head(model, out.last_hidden_state))
    r.complete()
    return r.taps, cache


@torch.no_grad()
def record_step(model, cache, ids, processed, temperature):
    """All taps of a decoder pass, and what the next one would be conditioned with."""
    decoder = model.model.decoder
    with make_golden.Recorder(decoder, modeling) as r:
        r.output(decoder.self_conditioning.down_proj, "self_cond")
        r.output(decoder.self_conditioning, "canvas_in")
        before = None if processed is None else processed[None]
        logits = model(decoder_input_ids=torch.tensor([ids]), past_key_values=cache,
                       self_conditioning_logits=before).logits
        r.taps["logits"] = make_golden.flat(logits)
    r.complete()

    def keep_soft(_module, args):
        r.taps["soft"] = make_golden.flat(args[1])
    hook = decoder.self_conditioning.register_forward_pre_hook(keep_soft)
    model(decoder_input_ids=torch.tensor([ids]), past_key_values=cache,
          self_conditioning_logits=logits / temperature)
    hook.remove()
    return r.taps


def compare_runs(expected, steps):
    """The library's run is the float64 reference's, decision by decision."""
    assert len(steps) == len(expected), (len(steps), len(expected))
    worst = 0.0
    for want, got in zip(expected, steps):
        for key in ("canvas", "after", "best", "accepted"):
            assert list(getattr(want, key)) == got[key], (key, want.canvas_index)
        worst = max(worst, float(abs(got["entropy"].numpy() - want.entropy).max()))
    return worst


def tap_steps(expected):
    """Steps whose taps are kept: the first, the one after it, and the second of the last canvas."""
    return [0, 1, next(i for i, s in enumerate(expected) if s.canvas_index == 2) + 1]


def record_steps(model, ids, expected, steps):
    """{step: taps}, each with its prefix encoded anew in one piece."""
    taps = {}
    for k in tap_steps(expected):
        before = [s.best for s in expected[:k] if s.stopped]
        _, cache = record_prompt(model, ids + [t for best in before for t in best])
        first = k == 0 or expected[k].canvas_index != expected[k - 1].canvas_index
        processed = None if first else steps[k - 1]["processed"]
        temperature = expected[k].temperature
        taps[k] = record_step(model, cache, steps[k]["canvas"], processed, temperature)
        scaled = taps[k]["logits"] / temperature
        difference = (scaled - steps[k]["processed"]).abs().max().item()
        assert difference < 1e-3, f"step {k} differs from generate()'s by {difference}"
    return taps


def kept_rows(c):
    """Positions of the prompt and of a canvas."""
    v, w = c.canvas, c.window
    return [0, w - 1, w, v.n_prompt - 1], [0, 1, v.length // 2, v.length - 1]


def tap_tensors(prefix, taps, rows, whole=()):
    out = []
    for name, x in taps.items():
        assert x.dtype == torch.float32 and torch.isfinite(x).all(), name
        assert name == "self_cond" or x.std() > 1e-3, name
        kept = x.numpy() if name in whole else x.numpy()[rows]
        out.append(gguf.Tensor.encode(prefix + name, kept))
    return out


def write_taps(c, folder, ids, made, expected, steps, script, prompt_taps, step_taps):
    v = c.canvas
    digest = hashlib.sha256((folder / f"model_{c.name}.gguf").read_bytes()).hexdigest()
    prompt_rows, rows = kept_rows(c)
    last = [(i, s) for i, s in enumerate(expected) if s.stopped]
    counts = [b - a for a, b in zip([-1] + [i for i, _ in last], [i for i, _ in last])]
    keys = [
        ("general.architecture", "str", "golden"),
        ("general.name", "str", f"golden canvases {c.name}"),
        ("golden.reference", "str", f"transformers {transformers.__version__}, torch"
         f" {torch.__version__.split('+')[0]}, float32 on the CPU, eager attention, DynamicCache"),
        ("golden.model_sha256", "str", digest),
        ("golden.ids", "i32[]", ids),
        ("golden.rows", "i32[]", rows),
        ("golden.prompt_rows", "i32[]", prompt_rows),
        ("golden.tap_steps", "i32[]", list(step_taps)),
        ("golden.made", "i32[]", made),
        ("golden.stops", "i32[]", models.stops(c)),
        ("golden.canvas_steps", "i32[]", counts),
        ("golden.canvas_stopped", "str[]", [s.stopped for _, s in last]),
        ("golden.max_steps", "u32", v.steps),
        ("golden.stability", "u32", v.stability),
        ("golden.entropy_bound", "f32", v.entropy_bound),
        ("golden.confidence", "f32", v.confidence),
        ("golden.t_min", "f32", v.t_min),
        ("golden.t_max", "f32", v.t_max),
    ]
    table = lambda values: torch.tensor(values, dtype=torch.int32).numpy()
    tensors = [
        gguf.Tensor.encode("run.random", table(script.random), "I32"),
        gguf.Tensor.encode("run.sampled", table(script.sampled), "I32"),
        gguf.Tensor.encode("run.entropy", torch.stack([s["entropy"] for s in steps]).numpy()),
    ]
    for name in ("canvas", "best", "accepted", "after"):
        values = [[int(x) for x in s[name]] for s in steps]
        tensors.append(gguf.Tensor.encode(f"run.{name}", table(values), "I32"))
    tensors += tap_tensors("prompt.", prompt_taps, prompt_rows)
    for k, taps in step_taps.items():
        tensors += tap_tensors(f"step.{k}.", taps, rows, whole=("logits",))
    gguf.write(folder / f"taps_{c.name}.gguf", keys, tensors)


def make(c, folder):
    start = time.time()
    path = folder / f"model_{c.name}.gguf"
    models.write_model(c, path)
    model, ids = load(c, path), models.prompt(c)
    source = canvas.source_of(c)
    expected, want = canvas.run(reference.Model(path), ids, canvas.settings_of(c),
                                c.canvas.n_canvases, models.stops(c), source)
    steps, made = generate(c, model, ids, source.kept)
    assert made == want, (made, want)
    worst = compare_runs(expected, steps)
    prompt_taps, _ = record_prompt(model, ids)
    step_taps = record_steps(model, ids, expected, steps)
    write_taps(c, folder, ids, made, expected, steps, source.kept, prompt_taps, step_taps)
    sizes = [(folder / f"{kind}_{c.name}.gguf").stat().st_size for kind in ("model", "taps")]
    ends = " ".join(f"{s.canvas_index}:{s.stopped}" for s in expected if s.stopped)
    print(f"{c.name}: {len(steps)} steps ({ends}), entropies within {worst:.1e} of float64's, "
          f"{len(made)} tokens; model {sizes[0]} bytes, taps {sizes[1]} bytes,"
          f" {time.time() - start:.1f} s")


def main():
    if len(sys.argv) < 2:
        sys.exit(__doc__)
    folder = Path(sys.argv[1])
    folder.mkdir(parents=True, exist_ok=True)
    torch.set_num_threads(1)
    for c in models.CANVAS_CONFIGS:
        if not sys.argv[2:] or c.name in sys.argv[2:]:
            make(c, folder)


if __name__ == "__main__":
    main()
