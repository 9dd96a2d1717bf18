"""Golden values of the reference on exactly the shipped weights: transcripts and logits."""

import numpy as np
import torch

import evalset
from evaluate import generate, stops
from export import gguf

LOGIT_PROMPTS = (0, 3, 17, 19)  # of evalset.GOLDEN; the last is longer than the sliding window
LOGIT_POSITIONS = 4  # the last ones of each prompt
MAX_NEW = 120


@torch.no_grad()
def margins(model, prompt, continuation):
    """Distance of the best from the second logit at each generated token."""
    device = model.lm_head.weight.device
    ids = torch.tensor([prompt + continuation], device=device)
    logits = model(input_ids=ids, use_cache=False).logits[0, len(prompt) - 1:-1].float()
    top = logits.topk(2, dim=-1).values
    return (top[:, 0] - top[:, 1]).tolist()


def transcripts(model, tokenizer):
    """[{prompt, prompt_ids, ids, text, min_margin}] of the 20 golden prompts."""
    texts = evalset.golden_prompts()
    prompts = [tokenizer.encode(t) for t in texts]
    answers = generate(model, prompts, [MAX_NEW] * len(prompts), stops(tokenizer))
    return [{
        "prompt": t,
        "prompt_ids": p,
        "ids": a,
        "text": tokenizer.decode(a),
        "min_margin": round(min(margins(model, p, a)), 6)
    } for t, p, a in zip(texts, prompts, answers)]


@torch.no_grad()
def logit_tensors(model, tokenizer, label):
    """GGUF tensors: prompt ids, and the logits at the last positions, in float32 on the CPU."""
    model = model.to("cpu")
    out = []
    for i in LOGIT_PROMPTS:
        ids = tokenizer.encode(evalset.golden_prompts()[i])
        logits = model(input_ids=torch.tensor([ids]),
                       use_cache=False).logits[0, -LOGIT_POSITIONS:].float()
        if label == "f16":
            out.append(gguf.Tensor.encode(f"prompt.{i}.ids", np.array(ids, np.int32), "I32"))
        out.append(gguf.Tensor.encode(f"prompt.{i}.logits.{label}", logits.numpy(), "F32"))
    return out


def write(path, name, tensors):
    """One small file for both weight formats."""
    gguf.write(path, [("general.architecture", "str", "golden"), ("general.name", "str", name),
                      ("golden.positions", "u32", LOGIT_POSITIONS)], tensors)
