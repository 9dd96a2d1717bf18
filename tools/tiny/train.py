"""Training: a fixed number of steps over the packed stream of documents."""

import time

import numpy as np
import torch

from corpus import MAX_TOKENS
from model import MEMBERS, Trainee, build, initialise
from optim import make_optimizer

PROMPT_WEIGHT = 0.1  # of tokens that the model only reads
TOKENS_A_DOCUMENT = 64  # at least, on average over a batch


class Stream:
    """All shards in a row, on the device: ids, roles, positions, and where documents begin."""

    def __init__(self, shards, device):
        ids, roles, positions = (np.concatenate([s[i] for s in shards]) for i in range(3))
        self.starts = np.flatnonzero(positions == 0)
        self.n = len(ids)
        self.ids = torch.from_numpy(ids.astype(np.int16)).to(device)
        self.roles = torch.from_numpy(roles).to(device)
        self.positions = torch.from_numpy(positions.astype(np.int16)).to(device)
        self.device = device

    def batch(self, begin, size):
        """ids, positions, bounds, targets, weights of the tokens begin .. begin+size."""
        ids = self.ids[begin:begin + size + 1].long()
        roles = self.roles[begin + 1:begin + size + 1]
        positions = self.positions[begin:begin + size + 1].long()
        weights = (roles == 2).float() + (roles == 1).float() * PROMPT_WEIGHT
        weights = weights * (positions[1:] != 0)  # nothing predicts the next document
        lo, hi = np.searchsorted(self.starts, [begin + 1, begin + size])
        bounds = np.full(size // TOKENS_A_DOCUMENT + 1, size, np.int32)
        bounds[0] = 0
        bounds[1:hi - lo + 1] = self.starts[lo:hi] - begin
        bounds = torch.from_numpy(
            bounds).pin_memory() if self.device != "cpu" else torch.from_numpy(bounds)
        return ids[:-1], positions[:-1], bounds.to(self.device, non_blocking=True), ids[1:], weights


def learning_rate(done, peak, warmup=0.05):
    """By the share of training that is done: a short warm-up, then half a cosine down to 1%."""
    if done < warmup:
        return peak * (done + 1e-3) / warmup
    x = (done - warmup) / (1 - warmup)
    return peak * (0.01 + 0.99 * 0.5 * (1 + np.cos(np.pi * x)))


def train(name,
          vocab_size,
          stream,
          steps,
          batch,
          peak,
          device,
          compiled=True,
          log=print,
          budget_s=None):
    """Returns the trained model (float32) and the curve [(step, tokens, loss, seconds)].

    `budget_s` is a guard against slow machines: training then ends at that time, with the learning
    rate brought down in time.  A normal run takes all its steps.
    """
    model = build(name, vocab_size)
    initialise(model, MEMBERS[name]["seed"])
    with torch.no_grad():
        model.model.embed_tokens.weight[0].zero_()  # the padding row
    model.to(device)
    trainee = Trainee(model, MAX_TOKENS)
    run = torch.compile(trainee) if compiled else trainee
    optimizer = make_optimizer(model)
    order = np.random.RandomState(MEMBERS[name]["seed"])
    plan, curve, began, first = [], [], time.time(), None
    for step in range(steps):
        done = step / steps
        if budget_s and first:
            done = max(done, (time.time() - first) / budget_s)
            if done >= 1:
                log(f"{name}: out of time at step {step} of {steps}")
                break
        if not plan:  # each pass over the data takes the chunks in a new order
            plan = list(order.permutation((stream.n - 1) // batch))
        inputs = stream.batch(int(plan.pop()) * batch, batch)
        with torch.autocast(device, dtype=torch.bfloat16, enabled=device != "cpu"):
            loss, report = run(*inputs)
        loss.backward()
        torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimizer.step(learning_rate(done, peak))
        for p in model.parameters():
            p.grad = None
        if step % 50 == 0 or step == steps - 1:
            curve.append((step, (step + 1) * batch, report.item(), time.time() - began))
            if step % 250 == 0 or step == steps - 1:
                log(f"{name} step {step} loss {curve[-1][2]:.4f} {curve[-1][3]:.1f} s")
        first = first or time.time()
    return model, curve
