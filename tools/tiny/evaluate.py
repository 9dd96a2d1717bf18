"""Run the held-out set through the reference model, greedily, in float32."""

import math

import torch

import evalset
from chat import MODEL
from model import CONTEXT, build


def reference(name, vocab_size, state, device):
    """The transformers model with given weights (name -> array), its own attention and experts."""
    model = build(name, vocab_size)
    model.config._experts_implementation = "eager"
    missing, unexpected = model.load_state_dict(
        {k: torch.from_numpy(v.copy())
         for k, v in state.items()}, strict=False)
    assert set(missing) <= {"lm_head.weight"} and not unexpected, (missing, unexpected)
    model.tie_weights()
    return model.to(device).eval()


@torch.no_grad()
def generate(model, prompts, max_new, stops, batch=256):
    """Greedy continuations (lists of ids) of lists of ids.

    There is no cache: every step runs the whole rows again; no token sees the padding on the right.
    """
    device = model.lm_head.weight.device
    stop_ids = torch.tensor(sorted(stops), device=device)
    out = [None] * len(prompts)
    order = sorted(range(len(prompts)), key=lambda i: (max_new[i], len(prompts[i])))
    for at in range(0, len(order), batch):
        rows = order[at:at + batch]
        limit = torch.tensor([max_new[i] for i in rows], device=device)
        lens = torch.tensor([len(prompts[i]) for i in rows], device=device)
        first = lens.clone()
        ids = torch.zeros(len(rows), int((lens + limit).max()), dtype=torch.long, device=device)
        for r, i in enumerate(rows):
            ids[r, :len(prompts[i])] = torch.tensor(prompts[i], device=device)
        live = torch.arange(len(rows), device=device)
        while len(live):
            ends = lens[live]
            hidden = model.model(input_ids=ids[live, :int(ends.max())],
                                 use_cache=False).last_hidden_state
            last = hidden[torch.arange(len(live), device=device), ends - 1]
            best = model.lm_head(last).argmax(-1)  # the soft-cap keeps the order
            ids[live, ends] = best
            lens[live] += 1
            live = live[~torch.isin(best, stop_ids) & (lens[live] - first[live] < limit[live])]
        for r, i in enumerate(rows):
            out[i] = ids[r, first[r]:lens[r]].tolist()
    return out


def stops(tokenizer):
    """Tokens that end a generation."""
    return [tokenizer.ids[t] for t in ("<eos>", "<turn|>", "<|tool_response>")]


def score(write, tokenizer, cases):
    """{group: (right, well formed or None, total)} and the wrong answers [(case, text)].

    `write(prompts, max_new, stops)` gives the model's continuations: lists of ids.
    """
    ids = [tokenizer.encode(c.prompt) for c in cases]
    made = write(ids, [c.max_new for c in cases], stops(tokenizer))
    texts = [tokenizer.decode(t) for t in made]
    groups, wrong = {}, []
    for case, text in zip(cases, texts):
        right, formed, total = groups.get(case.group, (0, 0, 0))
        ok = bool(case.right(text))
        formed += bool(case.well_formed(text)) if case.well_formed else 0
        groups[case.group] = (right + ok, formed, total + 1)
        if not ok:
            wrong.append((case, text))
    with_form = {c.group for c in cases if c.well_formed}
    return {g: (r, f if g in with_form else None, n) for g, (r, f, n) in groups.items()}, wrong


@torch.no_grad()
def perplexity(model, tokenizer, documents):
    """exp of the mean loss over the tokens that the model would write."""
    device = model.lm_head.weight.device
    docs = []
    for segments in documents:
        ids, learn = [], []
        for text, role in segments:
            piece = tokenizer.encode(text)
            ids += piece
            learn += [role == MODEL] * len(piece)
        docs.append((ids[:CONTEXT], learn[:CONTEXT]))
    docs.sort(key=lambda d: len(d[0]))
    total, count = 0.0, 0
    for at in range(0, len(docs), 64):
        part = docs[at:at + 64]
        width = max(len(d[0]) for d in part)
        ids = torch.zeros(len(part), width, dtype=torch.long)
        learn = torch.zeros(len(part), width, dtype=torch.bool)
        for r, (i, m) in enumerate(part):
            ids[r, :len(i)] = torch.tensor(i)
            learn[r, :len(i)] = torch.tensor(m)
        ids, learn = ids.to(device), learn.to(device)
        logits = model(input_ids=ids, use_cache=False).logits[:, :-1].float()
        losses = torch.nn.functional.cross_entropy(logits.transpose(1, 2),
                                                   ids[:, 1:],
                                                   reduction="none")
        total += float(losses[learn[:, 1:]].double().sum())
        count += int(learn[:, 1:].sum())
    return math.exp(total / count)


def report(model, tokenizer, scale=1.0, skip=False):
    """All figures of a model; with `skip` the perplexities only."""
    groups, wrong = {}, []
    if not skip:
        groups, wrong = score(lambda *rest: generate(model, *rest), tokenizer,
                              evalset.cases(scale=scale))
    ppl = {
        k: perplexity(model, tokenizer, d)
        for k, d in evalset.documents(n=max(8, int(600 * scale))).items()
    }
    return {"groups": groups, "perplexity": ppl, "wrong": wrong_answers(wrong)}


def wrong_answers(wrong):
    """For the report."""
    return [{"group": c.group, "prompt": c.prompt, "want": c.expect, "got": t} for c, t in wrong]
