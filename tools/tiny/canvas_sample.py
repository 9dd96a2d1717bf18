"""The entropy-bound sampler of canvases, in float32, many answers at once."""

import torch

from canvas_model import Span, masks
from canvas_rows import NO_DOCUMENT
from canvas_settings import CANVAS, Settings


def entropies(z):
    """Nats of softmax(z)."""
    logp = torch.log_softmax(z, -1)
    return -(logp.exp() * logp).sum(-1)


def accept(entropy, bound):
    """rows x positions: in order of entropy, while those before sum to no more than the bound."""
    ordered, order = torch.sort(entropy, stable=True)
    before = ordered.cumsum(-1) - ordered
    return torch.zeros_like(order, dtype=torch.bool).scatter(-1, order, before <= bound)


@torch.no_grad()
def denoise(passes, prefixes, settings, generator):
    """([tokens], [steps], [stopped]) of one canvas after each prefix (lists of ids)."""
    device = passes.model.lm_head.weight.device
    n = len(prefixes)
    lengths = torch.tensor([len(p) for p in prefixes])
    length = -(-int(lengths.max()) // 32) * 32
    ids = torch.zeros(n, length, dtype=torch.long)
    docs = torch.full((n, length), NO_DOCUMENT)
    for i, p in enumerate(prefixes):
        ids[i, :len(p)] = torch.tensor(p)
        docs[i, :len(p)] = 0
    ids, docs, begins = ids.to(device), docs.to(device), lengths[:, None].to(device)
    span = Span(n, length, 1)
    seen = masks(docs, begins, passes.text.sliding_window)
    _, kept = passes.encode(ids.flatten(), [span], [seen])
    kept = [store[0] for store in kept]
    best = torch.zeros(n, CANVAS, dtype=torch.long, device=device)
    count = torch.zeros(n, dtype=torch.long, device=device)
    settled = torch.zeros(n, dtype=torch.bool, device=device)
    live = torch.arange(n, device=device)
    vocabulary = passes.text.vocab_size

    def fresh(rows):
        return torch.randint(0, vocabulary, (rows, CANVAS), generator=generator, device=device)

    canvas, same = fresh(n), torch.zeros(n, dtype=torch.long, device=device)
    soft = torch.zeros(n * CANVAS, passes.text.hidden_size, device=device)
    for left in range(settings.steps, 0, -1):
        t = settings.temperature(left)
        rows = passes.decode(canvas.flatten(), soft, [begins], [[kv] for kv in kept],
                             [Span(len(live), length, 1)], [seen])
        logits = passes.logits(rows)
        soft = passes.soft(logits, t)
        z = (logits / t).view(len(live), CANVAS, -1)
        drawn = torch.multinomial(z.softmax(-1).flatten(0, 1), 1, generator=generator)
        entropy, now = entropies(z), z.argmax(-1)
        same = torch.where((now == best[live]).all(-1), same + 1, 0)
        canvas = torch.where(accept(entropy, settings.entropy_bound), drawn.view_as(now),
                             fresh(len(live)))
        count[live] += 1
        if left == settings.steps:
            same = torch.zeros_like(same)  # nothing came before
        best[live] = now
        stop = (same >= settings.stability) & (entropy.mean(-1) < settings.confidence)
        settled[live] = stop
        if stop.all():
            break
        if stop.any():
            go = ~stop
            live, canvas, same, begins = live[go], canvas[go], same[go], begins[go]
            soft = soft.view(len(go), CANVAS, -1)[go].flatten(0, 1)
            kept = [(k[go], v[go]) for k, v in kept]
            seen = seen._replace(canvas={kind: m[go] for kind, m in seen.canvas.items()})
    return best.tolist(), count.tolist(), settled.tolist()


def generate(passes, prompts, max_new, stops, settings=None, seed=1, batch=256, log=None):
    """Continuations (lists of ids, up to the first stop token) and [(steps, settled)] of canvases.

    Answers have as many canvases as max_new tokens need, and end with the first stop token.
    """
    settings = settings or Settings()
    device = passes.model.lm_head.weight.device
    generator = torch.Generator(device).manual_seed(seed)
    out, canvases = [[] for _ in prompts], []
    live = sorted(range(len(prompts)), key=lambda i: len(prompts[i]))
    while live:
        go = []
        for at in range(0, len(live), batch):
            part = live[at:at + batch]
            made = denoise(passes, [prompts[i] + out[i] for i in part], settings, generator)
            for i, tokens, steps, settled in zip(part, *made):
                canvases.append((steps, settled))
                end = next((j + 1 for j, t in enumerate(tokens) if t in stops), None)
                out[i] += tokens[:end]
                if end is None and len(out[i]) < max_new[i]:
                    go.append(i)
        if log:
            log(f"canvases: {len(canvases)}, answers that go on: {len(go)}")
        live = go
    return out, canvases
