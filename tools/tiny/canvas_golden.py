"""Golden values of the diffusion member on exactly the shipped weights.

Transcripts of the library's own generate(), each with the script of its random numbers; and logits
of the first two steps of some of them.  Everything runs in float32 on the CPU.
"""

import math
import os
import sys
import time

import numpy as np
import torch
from transformers.cache_utils import DynamicCache

import evalset
from canvas_model import build, load_state
from canvas_settings import CANVAS, FILLER, Settings
from evaluate import stops
from export import gguf

sys.path.append(os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "golden"))
import scripted  # noqa: E402  (tools/golden/scripted.py)

MAX_NEW = 120
LOGIT_PROMPTS = (0, 3, 17, 19)  # of evalset.GOLDEN; the last is longer than the sliding window
LOGIT_ROWS = (0, 12)
# Nats between a decision and its opposite; what float32 adds up in another order is far less.
CLEAR = 5e-4
TRIES, TRY_SECONDS = 8, 60


def reference(name, vocab_size, state):
    """The library's model with given weights, its own attention and experts, on the CPU."""
    model = build(name, vocab_size)
    load_state(model, state)
    for part in model.modules():
        if hasattr(part, "config"):
            part.config._attn_implementation = "eager"
            part.config._experts_implementation = "eager"
    return model.eval()


def gap(step, before, settings):
    """Distance in nats of a step's closest decision from its opposite."""
    entropy = step["entropy"].double().sort().values
    sums = entropy.cumsum(-1) - entropy
    n = sum(step["accepted"])
    out = float((sums - settings.entropy_bound).abs().min())
    if n < len(entropy):
        out = min(out, float(entropy[n] - entropy[n - 1]))
    if before and before["best"] == step["best"]:
        out = min(out, abs(float(entropy.mean()) - settings.confidence))
    return out


def canvases(steps, settings):
    """[{steps, stopped}] of a run; and the smallest gap."""
    out, smallest, before = [], math.inf, None
    for i, s in enumerate(steps):
        if s["step"] == settings.steps:
            out.append({"steps": 0, "stopped": "steps"})
            before = None
        smallest = min(smallest, gap(s, before, settings))
        out[-1]["steps"] += 1
        stable = before is not None and before["best"] == s["best"]  # stability is 1
        if stable and float(s["entropy"].mean()) < settings.confidence:
            out[-1]["stopped"] = "stable"
        before = s
    return out, smallest


def transcript(model, tokenizer, text, seed, n_canvases):
    """The answer to one prompt with the random numbers of a seed; its first two canvases."""
    settings, ids = Settings(), tokenizer.encode(text)
    run = scripted.ScriptedRun(generator=torch.Generator().manual_seed(seed))
    made = scripted.generate(model, ids, run, n_canvases, settings, stops(tokenizer), FILLER)
    ends, smallest = canvases(run.steps, settings)
    return {
        "prompt": text,
        "prompt_ids": ids,
        "ids": made,
        "text": tokenizer.decode(made),
        "canvases": ends,
        "min_gap": round(smallest, 6),
        "seed": seed,
        "script": {
            "random": run.random,
            "sampled": run.sampled
        }
    }, [s["canvas"] for s in run.steps[:2]]


def transcripts(model, tokenizer, smoke=False, log=print):
    """{i: transcript and first canvases of golden prompt i}.

    Each has a seed that leaves no decision to rounding.
    """
    out, began = {}, time.time()
    n_canvases = 1 if smoke else -(-MAX_NEW // CANVAS)
    for i, text in enumerate(evalset.golden_prompts()):
        if smoke and i not in LOGIT_PROMPTS:
            continue
        tries = []
        while len(tries) < TRIES:
            seed = 1000 * len(tries) + i
            tries.append(transcript(model, tokenizer, text, seed, n_canvases))
            if tries[-1][0]["min_gap"] > CLEAR or smoke or time.time() - began > TRY_SECONDS:
                break
        best, _ = out[i] = max(tries, key=lambda t: min(t[0]["min_gap"], CLEAR))
        log(f"golden {i}: {[c['steps'] for c in best['canvases']]} steps, smallest gap"
            f" {best['min_gap']}")
    return out


@torch.no_grad()
def logit_tensors(model, made, label):
    """GGUF tensors of some prompts: the canvases of the first two steps, rows of their logits."""
    out, settings = [], Settings()
    for i in LOGIT_PROMPTS:
        t, given = made[i]
        cache = DynamicCache(config=model.config.text_config)
        model.model.encoder(input_ids=torch.tensor([t["prompt_ids"]]), past_key_values=cache)
        rows, processed = [], None
        for n, ids in zip((settings.steps, settings.steps - 1), given):
            logits = model(decoder_input_ids=torch.tensor([ids]), past_key_values=cache,
                           self_conditioning_logits=processed).logits
            processed = logits / settings.temperature(n)
            rows.append(logits[0, list(LOGIT_ROWS)].numpy())
        out += [
            gguf.Tensor.encode(f"prompt.{i}.ids", np.array(t["prompt_ids"], np.int32), "I32"),
            gguf.Tensor.encode(f"prompt.{i}.canvas", np.array(given, np.int32), "I32"),
            gguf.Tensor.encode(f"prompt.{i}.logits.{label}", np.stack(rows))
        ]
    return out


def write(path, name, tensors):
    """One small file."""
    gguf.write(path, [("general.architecture", "str", "golden"), ("general.name", "str", name),
                      ("golden.rows", "i32[]", list(LOGIT_ROWS)),
                      ("golden.temperature", "f32", Settings().temperature(Settings().steps))],
               tensors)
