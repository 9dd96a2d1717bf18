"""Training of the diffusion member: canvases denoised from two levels of noise, text read along.

A canvas goes through the decoder twice, as in two steps of the sampler.  First every token is
replaced by a random one with probability t (half of the canvases: all of them, as the sampler
begins), without self-conditioning.  Then fewer are, others than before at the same places, and what
the first pass thought is the self-conditioning.  Both times all tokens are to be told.  The encoder
learns through its keys and values, and by telling the next token of the text.
"""

import os
import time

import numpy as np
import torch
import torch.nn.functional as F

from canvas_model import Passes, Span, build, masks, state_of
from canvas_rows import KINDS
from canvas_settings import CANVAS, FILLER, Settings
from model import MEMBERS, initialise
from optim import make_optimizer
from train import PROMPT_WEIGHT, learning_rate

TEXT_WEIGHT = 0.5  # of the encoder's loss
SEEN_WEIGHT = 0.3  # of tokens that were not replaced
FILLER_WEIGHT = 0.3
BALANCE = 0.01
ALL_NOISE = 0.5  # share of canvases whose first pass has nothing but noise


class Rows:
    """All rows on the device; batches take them in a new order each time through."""

    def __init__(self, data, device, seed, rows=None):
        self.kinds = [[torch.from_numpy(a).to(device) for a in arrays] for arrays in data]
        self.rows = rows or [k.rows for k in KINDS]
        self.order = np.random.RandomState(seed)
        self.plans = [[] for _ in self.kinds]
        self.spans = [Span(n, k.length, k.slots) for n, k in zip(self.rows, KINDS)]
        for arrays, n in zip(self.kinds, self.rows):
            if len(arrays[0]) < n:
                raise ValueError(f"{len(arrays[0])} rows are too few for a batch of {n}:"
                                 " make more data")

    def batch(self):
        """[(ids, roles, docs, begins, ends)] of each kind."""
        out = []
        for i, (arrays, n) in enumerate(zip(self.kinds, self.rows)):
            if len(self.plans[i]) < n:
                self.plans[i] = self.order.permutation(len(arrays[0])).tolist()
            take = torch.tensor(self.plans[i][:n], device=arrays[0].device)
            del self.plans[i][:n]
            ids, roles, docs, begins, ends = (a[take].long() for a in arrays)
            out.append((ids, roles, docs, begins, ends))
        return out


def text_targets(batch):
    """ids, the next ids and their weights, all rows in one."""
    ids, targets, weights = [], [], []
    for row, roles, docs, _, _ in batch:
        after = F.pad(row[:, 1:], (0, 1))
        role = F.pad(roles[:, 1:], (0, 1))
        same = docs == F.pad(docs[:, 1:], (0, 1), value=-1)
        ids.append(row.flatten())
        targets.append(after.flatten())
        w = (role == 2).float() + (role == 1).float() * PROMPT_WEIGHT
        weights.append((w * same).flatten())  # nothing predicts the next document
    return torch.cat(ids), torch.cat(targets), torch.cat(weights)


def canvas_targets(batch):
    """canvases x CANVAS: the tokens to be told."""
    out = []
    for ids, _, _, begins, ends in batch:
        at = begins[:, :, None] + torch.arange(CANVAS, device=ids.device)
        rows = torch.arange(len(ids), device=ids.device)[:, None, None]
        tokens = ids[rows, at.clamp(max=ids.shape[1] - 1)]
        out.append(torch.where(at < ends[:, :, None], tokens, FILLER).flatten(0, 1))
    return torch.cat(out)


def noise(targets, n_vocab):
    """[(canvas, weights)] of the first pass and the second."""
    n, device = len(targets), targets.device
    first = torch.rand(n, 1, device=device)
    first = torch.where(torch.rand(n, 1, device=device) < ALL_NOISE, torch.ones_like(first), first)
    second = first * torch.rand(n, 1, device=device)
    draw = torch.rand(n, CANVAS, device=device)
    base = torch.where(targets == FILLER, FILLER_WEIGHT, 1.0)
    out = []
    for level in (first, second):
        replaced = draw < level
        fresh = torch.randint(0, n_vocab, targets.shape, device=device)
        weights = base * torch.where(replaced, 1.0, SEEN_WEIGHT)
        out.append((torch.where(replaced, fresh, targets), weights))
    return out


class CanvasTrainee(torch.nn.Module):
    """The losses of a batch.  The two passes are compiled apart: the decoder's runs twice."""

    def __init__(self, model, spans, compiled):
        super().__init__()
        self.passes = Passes(model, keep_routes=True)
        self.spans = spans
        self.n_vocab = model.config.text_config.vocab_size
        self.window = model.config.text_config.sliding_window
        wrap = torch.compile if compiled else (lambda f: f)
        self.read_text, self.tell_canvas = wrap(self._read_text), wrap(self._tell_canvas)

    def _read_text(self, ids, targets, weights, text_masks):
        rows, kept = self.passes.encode(ids, self.spans, text_masks)
        losses = F.cross_entropy(self.passes.logits(rows), targets, reduction="none")
        loss = (losses * weights).sum() / weights.sum()
        learnt = weights == 1.0
        report = (losses * learnt).sum() / learnt.sum()
        return loss, self.passes.balance_loss(), report.detach(), kept

    def _tell_canvas(self, canvas, soft, targets, weights, temperature, begins, kept, text_masks):
        rows = self.passes.decode(canvas, soft, begins, kept, self.spans, text_masks)
        logits = self.passes.logits(rows)
        losses = F.cross_entropy(logits, targets, reduction="none")
        loss = (losses * weights).sum() / weights.sum()
        replaced = weights == 1.0
        report = (losses * replaced).sum() / replaced.sum()
        with torch.no_grad():
            soft = self.passes.soft(logits.detach(), temperature)
        return loss, self.passes.balance_loss(), report.detach(), soft

    def forward(self, batch):
        """The loss, and for the report: next tokens, replaced tokens in both passes."""
        begins = [b[3] for b in batch]
        seen = [masks(b[2], b[3], self.window) for b in batch]
        text_loss, balance, told, kept = self.read_text(*text_targets(batch), seen)
        targets = canvas_targets(batch)
        sampler = Settings()
        t = torch.rand(len(targets), 1, device=targets.device)
        t = sampler.t_min + (sampler.t_max - sampler.t_min) * t
        t = t.expand(-1, CANVAS).reshape(-1, 1)
        soft = torch.zeros(targets.numel(), self.passes.text.hidden_size, device=targets.device)
        loss, reports = TEXT_WEIGHT * text_loss, [told]
        for canvas, weights in noise(targets, self.n_vocab):
            part, uneven, report, soft = self.tell_canvas(canvas.flatten(), soft, targets.flatten(),
                                                          weights.flatten(), t, begins, kept, seen)
            loss, balance = loss + part, balance + uneven
            reports.append(report)
        return loss + BALANCE * balance / 3, torch.stack(reports)


def step_of(trainee, batch, model, device):
    """Gradients of one batch; returns the losses of the report."""
    with torch.autocast(device, dtype=torch.bfloat16, enabled=device != "cpu"):
        loss, reports = trainee(batch)
    loss.backward()
    torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
    return reports


def trainee_that_runs(model, rows, device, compiled, log):
    """A trainee that made a step: compiled, or plain where compiling fails here."""
    for attempt in ([True, False] if compiled else [False]):
        try:
            began = time.time()
            trainee = CanvasTrainee(model, rows.spans, attempt)
            step_of(trainee, rows.batch(), model, device)
            log(f"first step after {time.time() - began:.1f} s, compiled: {attempt}")
            return trainee
        except Exception as error:
            if not attempt:
                raise
            log(f"compiling failed, going on without: {type(error).__name__}: {error}"[:2000])
            torch._dynamo.reset()
            for part in model.modules():
                part._forward_hooks.clear()
        finally:
            for p in model.parameters():
                p.grad = None
    raise AssertionError("unreachable")


def train(name, vocab_size, rows, steps, peak, device, compiled=True, log=print, budget_s=None,
          until=None, checkpoint=None):
    """Returns the trained model (float32) and the curve [(step, canvases, losses.., seconds)].

    `budget_s` bounds the time from the first step on, `until` is a time of the clock; the learning
    rate comes down in time for both.
    """
    model = build(name, vocab_size)
    initialise(model, MEMBERS[name]["seed"])
    model.to(device)
    if device == "cuda":
        torch.backends.cuda.enable_cudnn_sdp(False)  # it plans anew for each shape
    torch.manual_seed(MEMBERS[name]["seed"])
    trainee = trainee_that_runs(model, rows, device, compiled, log)
    optimizer = make_optimizer(model)
    per_step = sum(s.rows * s.slots for s in rows.spans)
    curve, began, saved = [], time.time(), time.time()
    if until:
        budget_s = max(1.0, min(budget_s or until - began, until - began))
    for step in range(steps):
        done = max(step / steps, (time.time() - began) / budget_s if budget_s else 0)
        if done >= 1:
            log(f"{name}: out of time at step {step} of {steps}")
            break
        reports = step_of(trainee, rows.batch(), model, device)
        optimizer.step(learning_rate(done, peak))
        for p in model.parameters():
            p.grad = None
        if step % 50 == 0 or step == steps - 1:
            losses = reports.tolist()  # waits for the device: the clock is right
            curve.append((step, (step + 1) * per_step, *losses, time.time() - began))
            if not np.isfinite(losses).all():
                raise FloatingPointError(f"the loss is {losses} at step {step}")
            if step % 250 == 0 or step == steps - 1:
                log(f"{name} step {step} next token {losses[0]:.4f} canvas {losses[1]:.4f}"
                    f" {losses[2]:.4f} {curve[-1][-1]:.1f} s")
            if checkpoint and time.time() - saved > 60:
                state = state_of(model)
                np.savez(checkpoint, **{k: v.astype(np.float16) for k, v in state.items()})
                saved = time.time()
    if checkpoint and os.path.exists(checkpoint):
        os.remove(checkpoint)
    return model, curve
