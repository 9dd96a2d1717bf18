"""Muon for the matrices inside the layers, AdamW for the rest.

Muon steps along the nearest orthogonal matrix of the momentum, found by a Newton-Schulz iteration;
matrices of the same shape are done as one batch.  The step is scaled to the size of an AdamW step,
so that one learning rate serves both.
"""

import torch


def make_optimizer(model, decay=0.1):
    """An optimizer over all parameters of a causal language model."""
    matrices, tables, rest = [], [], []
    for name, p in model.named_parameters():
        inside = ".layers." in name or "self_conditioning" in name
        if p.dim() >= 2 and inside and "router" not in name:
            matrices.append(p)
        elif p.dim() >= 2:
            tables.append(p)
        else:
            rest.append(p)
    fused = all(p.is_cuda for p in rest)
    adam = torch.optim.AdamW([{
        "params": tables,
        "weight_decay": 0.0
    }, {
        "params": rest,
        "weight_decay": 0.0
    }],
                             lr=1e-3,
                             betas=(0.9, 0.95),
                             eps=1e-10,
                             **({
                                 "fused": True
                             } if fused else {}))
    return _Pair(Muon(matrices, decay=decay), adam)


class _Pair:
    """Two optimizers behind one interface."""

    def __init__(self, muon, adam):
        self.muon, self.adam = muon, adam

    def step(self, lr):
        for group in self.adam.param_groups:
            group["lr"] = lr
        self.adam.step()
        self.muon.step(lr)


class Muon:
    """Momentum, orthogonalised; `decay` is decoupled weight decay."""

    def __init__(self, params, momentum=0.95, decay=0.1):
        self.momentum, self.decay = momentum, decay
        groups = {}
        for p in params:
            groups.setdefault(tuple(p.shape[-2:]), []).append(p)
        self.groups = []
        for (rows, cols), ps in groups.items():
            count = sum(p.numel() // (rows * cols) for p in ps)
            buffer = torch.zeros(count, rows, cols, device=ps[0].device)
            self.groups.append((ps, buffer, rows, cols))

    @torch.no_grad()
    def step(self, lr):
        for params, buffer, rows, cols in self.groups:
            g = torch.cat([p.grad.reshape(-1, rows, cols) for p in params])
            buffer.lerp_(g, 1 - self.momentum)
            update = orthogonalise(g.lerp(buffer, self.momentum))
            update = update.float() * (0.2 * max(rows, cols)**0.5)
            counts = [p.numel() // (rows * cols) for p in params]
            torch._foreach_mul_(params, 1 - lr * self.decay)
            torch._foreach_add_(params,
                                [u.reshape(p.shape) for u, p in zip(update.split(counts), params)],
                                alpha=-lr)


def orthogonalise(g, steps=5):
    """Batch of matrices with singular values near one and the singular vectors of g."""
    a, b, c = 3.4445, -4.7750, 2.0315  # quintic iteration with a steep start
    wide = g.shape[-2] <= g.shape[-1]
    x = (g if wide else g.transpose(-1, -2)).to(torch.bfloat16)
    x = x / (x.norm(dim=(-2, -1), keepdim=True) + 1e-7)
    for _ in range(steps):
        s = x @ x.transpose(-1, -2)
        x = a * x + (b * s + c * (s @ s)) @ x
    return x if wide else x.transpose(-1, -2)
