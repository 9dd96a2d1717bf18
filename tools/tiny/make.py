#!/usr/bin/env python3
"""Make members of the tiny family from nothing: data, tokenizer, training, evaluation, export.

    python3 tools/tiny/make.py tiny --out build/tiny        one model, on one GPU
    python3 tools/tiny/make.py tiny tiny-moe --out build/tiny
    python3 tools/tiny/make.py tiny-diffusion --out build/tiny --steps 8000 --until 420
    python3 tools/tiny/make.py tiny --smoke --out build/tiny   a short trial

Writes NAME.f16.gguf, NAME.q8_0.gguf, NAME.golden.json, NAME.golden.gguf, NAME.report.json and
NAME.loss.csv.  Needs torch with CUDA, transformers with gemma4 and diffusion_gemma, and numpy.
"""

import argparse
import json
import os
import time

_BEGAN = time.time()


def log(text):
    print(f"[{time.time() - _BEGAN:6.1f}] {text}", flush=True)


def make_tokenizer(vocabulary=4096):
    """The tokenizer, the same for all members."""
    import corpus
    import tokenizer
    tok = tokenizer.train(corpus.texts(seed=7, n=20000), vocabulary)
    log(f"tokenizer: {len(tok.tokens)} tokens")
    return tok


def make_stream(tok, args):
    """Training tokens of the text members, on the device."""
    import shards
    from train import Stream
    data = shards.make_shards(tok, args.tokens, seed=1000, processes=args.processes)
    log(f"data: {sum(len(s[0]) for s in data)} tokens in {len(data)} shards")
    return Stream(data, args.device)


def make(name, tok, stream, args):
    """Train, export, evaluate and write one member."""
    import torch

    import evaluate
    import export
    import golden
    from model import MEMBERS
    from train import train
    config = MEMBERS[name]["config"]
    model, curve = train(name,
                         len(tok.tokens),
                         stream,
                         args.steps,
                         args.batch,
                         args.lr,
                         args.device,
                         compiled=not args.eager,
                         log=log,
                         budget_s=args.budget)
    state = {k: v.detach().float().cpu().numpy() for k, v in model.state_dict().items()}
    del model
    state = export.rounded(state, config, "F16")  # from here on the F16 file is the model
    path = os.path.join(args.out, name)
    with open(path + ".loss.csv", "w") as f:
        f.write("step,tokens,loss,seconds\n")
        f.writelines(f"{s},{t},{loss:.5f},{sec:.1f}\n" for s, t, loss, sec in curve)
    report = {
        "name": name,
        "parameters": sum(v.size for k, v in state.items() if k != "lm_head.weight"),
        "steps": curve[-1][0] + 1,
        "tokens": curve[-1][1],
        "lr": args.lr,
        "train_seconds": round(curve[-1][3], 1)
    }
    transcripts, tensors = {}, []
    for label, file_format in (("f16", "F16"), ("q8_0", "Q8_0")):
        export.write(f"{path}.{label}.gguf", name, state, config, tok, file_format)
        rounded = export.rounded(state, config, file_format)
        reference = evaluate.reference(name, len(tok.tokens), rounded, args.device)
        report[label] = evaluate.report(reference, tok, args.eval_scale, args.skip_eval)
        for group, (right, formed, total) in report[label]["groups"].items():
            extra = f", well formed {100 * formed / total:.1f}%" if formed is not None else ""
            log(f"{name} {label} {group}: {100 * right / total:.1f}% of {total}{extra}")
        log(f"{name} {label} perplexity: {report[label]['perplexity']}")
        transcripts[label] = golden.transcripts(reference, tok)
        tensors += golden.logit_tensors(reference, tok, label)
        del reference
        if args.device == "cuda":
            torch.cuda.empty_cache()
    for t in transcripts["q8_0"]:
        log(f"{name}: {t['prompt'][-80:]!r} -> {t['text'][:120]!r}")
    with open(path + ".golden.json", "w") as f:
        json.dump({"name": name, **transcripts}, f, ensure_ascii=False)
    golden.write(path + ".golden.gguf", name, tensors)
    with open(path + ".report.json", "w") as f:
        json.dump(report, f, ensure_ascii=False, indent=1)
    log(f"{name}: done")


def main():
    p = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    p.add_argument("names", nargs="+")
    p.add_argument("--out", required=True)
    p.add_argument("--device", default="cuda")
    p.add_argument("--tokens", type=int, default=100_000_000, help="training tokens to generate")
    p.add_argument("--steps", type=int, default=3000)
    p.add_argument("--batch", type=int, default=65536, help="tokens a step")
    p.add_argument("--lr", type=float, default=8e-3)
    p.add_argument("--processes", type=int, default=os.cpu_count())
    p.add_argument("--eager", action="store_true", help="without torch.compile")
    p.add_argument("--budget", type=float, help="seconds after which a training must end")
    p.add_argument("--until", type=float, help="the same, from the program's start (diffusion)")
    p.add_argument("--skip-eval", action="store_true", help="perplexity and golden values only")
    p.add_argument("--eval-scale", type=float, default=1.0)
    p.add_argument("--smoke", action="store_true", help="few tokens, few steps")
    args = p.parse_args()
    if args.smoke:
        args.tokens, args.steps, args.eval_scale = 4_000_000, 100, 0.01
    os.makedirs(args.out, exist_ok=True)
    tok, stream = make_tokenizer(), None
    from model import MEMBERS
    for name in args.names:
        if MEMBERS[name]["kind"] == "canvas":
            import make_canvas
            make_canvas.make(name, tok, args, log, _BEGAN)
            continue
        stream = stream or make_stream(tok, args)
        make(name, tok, stream, args)


if __name__ == "__main__":
    main()
