"""The diffusion member from data to files; make.py calls it."""

import json
import os
import statistics

import canvas_golden
import canvas_rows
import canvas_sample
import evalset
import evaluate
import export
import torch
from canvas_model import Passes, Span, build, load_state, masks, state_of
from canvas_settings import CANVAS, Settings
from canvas_train import Rows, train
from model import MEMBERS
from transformers.cache_utils import DynamicCache

SMOKE_ROWS = (8, 2)


def make(name, tok, args, log, began):
    """Train, export, evaluate and write one member."""
    config = MEMBERS[name]["config"]
    if args.smoke:  # half the layers
        config = dict(config, layer_types=config["layer_types"][:3], num_hidden_layers=3)
        MEMBERS[name]["config"] = config
    data = canvas_rows.make_rows(tok, args.tokens, seed=1000, processes=args.processes)
    log(f"data: {', '.join(f'{len(k[0])} rows of {k[0].shape[1]}' for k in data)}")
    rows = Rows(data, args.device, MEMBERS[name]["seed"], SMOKE_ROWS if args.smoke else None)
    path = os.path.join(args.out, name)
    model, curve = train(name, len(tok.tokens), rows, args.steps, args.lr, args.device,
                         compiled=not args.eager, log=log, budget_s=args.budget,
                         until=began + args.until if args.until else None,
                         checkpoint=path + ".checkpoint.npz")
    del rows
    state = export.rounded(state_of(model), config, "F16")  # the F16 file is the model from here on
    del model
    with open(path + ".loss.csv", "w") as f:
        f.write("step,canvases,next_token,first_pass,second_pass,seconds\n")
        f.writelines(f"{s},{n},{a:.5f},{b:.5f},{c:.5f},{t:.1f}\n" for s, n, a, b, c, t in curve)
    report = {"name": name, "parameters": sum(v.size for v in state.values()),
              "steps": curve[-1][0] + 1, "canvases": curve[-1][1], "lr": args.lr,
              "train_seconds": round(curve[-1][-1], 1)}
    for label, file_format in (("f16", "F16"), ("q8_0", "Q8_0")):
        export.write(f"{path}.{label}.gguf", name, state, config, tok, file_format)
    rounded = export.rounded(state, config, "Q8_0")
    report["q8_0"] = measure(name, tok, rounded, args, log)
    with open(path + ".report.json", "w") as f:
        json.dump(report, f, ensure_ascii=False, indent=1)
    write_golden(path, name, tok, rounded, args.smoke, log)
    log(f"{name}: done")


def write_golden(path, name, tok, state, smoke, log):
    """Transcripts and logits of the library; before that, that training's passes are its passes."""
    model = canvas_golden.reference(name, len(tok.tokens), state)
    log(f"passes and library: logits differ by {disagreement(name, tok, state, model):.1e}")
    made = canvas_golden.transcripts(model, tok, smoke, log)
    texts = [t for t, _ in made.values()]
    for t in texts:
        log(f"{name}: {t['prompt'][-80:]!r} -> {t['text'][:120]!r}")
    with open(path + ".golden.json", "w") as f:
        json.dump({"name": name, "q8_0": texts}, f, ensure_ascii=False)
    tensors = canvas_golden.logit_tensors(model, made, "q8_0")
    canvas_golden.write(path + ".golden.gguf", name, tensors)


@torch.no_grad()
def disagreement(name, tok, state, model):
    """Largest difference of logits between the passes that training uses and the library's."""
    own = build(name, len(tok.tokens))
    load_state(own, state)
    passes = Passes(own.eval())
    worst = 0.0
    for i in canvas_golden.LOGIT_PROMPTS:
        prompt = tok.encode(evalset.golden_prompts()[i])
        ids = torch.tensor([prompt])
        canvas = torch.arange(CANVAS) * 97 % len(tok.tokens)
        span, begins = Span(1, len(prompt), 1), torch.tensor([[len(prompt)]])
        seen = [masks(torch.zeros_like(ids), begins, passes.text.sliding_window)]
        _, kept = passes.encode(ids.flatten(), [span], seen)
        cache, soft, before = DynamicCache(config=model.config.text_config), None, None
        model.model.encoder(input_ids=ids, past_key_values=cache)
        for _ in range(2):
            soft = torch.zeros(CANVAS, passes.text.hidden_size) if soft is None else soft
            got = passes.logits(passes.decode(canvas, soft, [begins], kept, [span], seen))
            want = model(decoder_input_ids=canvas[None], past_key_values=cache,
                         self_conditioning_logits=before).logits
            worst = max(worst, float((got - want[0]).abs().max()))
            soft, before = passes.soft(got, 0.8), want / 0.8
    if not worst < 1e-3:
        raise AssertionError(f"training's passes are not the library's: logits differ by {worst}")
    return worst


def measure(name, tok, state, args, log):
    """How many held-out questions it answers, and in how many steps."""
    model = build(name, len(tok.tokens))
    load_state(model, state)
    passes = Passes(model.to(args.device).eval())
    canvases = []

    def write(prompts, max_new, stops):
        out, ends = canvas_sample.generate(passes, prompts, max_new, stops, log=log)
        canvases.extend(ends)
        return out

    cases = evalset.cases(scale=args.eval_scale)
    groups, wrong = evaluate.score(write, tok, cases)
    for group, (right, formed, total) in groups.items():
        extra = f", well formed {100 * formed / total:.1f}%" if formed is not None else ""
        log(f"{name} q8_0 {group}: {100 * right / total:.1f}% of {total}{extra}")
    right, total = (sum(g[i] for g in groups.values()) for i in (0, 2))
    steps = sorted(s for s, _ in canvases)
    out = {
        "groups": groups,
        "canvases": len(canvases),
        "median_steps": statistics.median(steps),
        "steps": {str(p): steps[min(len(steps) - 1, len(steps) * p // 100)]
                  for p in (5, 25, 50, 75, 90, 95)},
        "settled": sum(s for _, s in canvases) / len(canvases),
        "passes_a_canvas": sum(steps) / len(steps),
        "max_steps": Settings().steps,
        "wrong": evaluate.wrong_answers(wrong)
    }
    log(f"{name} q8_0 all: {100 * right / total:.1f}% of {total}; canvases {len(canvases)}, steps"
        f" {out['steps']}, settled {100 * out['settled']:.1f}%")
    return out
