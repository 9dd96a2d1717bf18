"""Training rows of a canvas model: documents packed side by side, and the canvases in them.

A canvas begins where the model begins to write, and every CANVAS tokens after that.  What comes
before it in the document is its prefix.  Pure Python and numpy: many processes make rows at once.
"""

import multiprocessing
import random
from typing import NamedTuple

import numpy as np

import corpus
from canvas_settings import CANVAS, FILLER
from chat import MODEL

NO_DOCUMENT = 255


class Kind(NamedTuple):
    """One size of row: its tokens, the canvases that are trained in it, and rows in a batch."""

    length: int
    slots: int
    rows: int


# Nearly all documents fit the short kind, where attention costs little.
KINDS = (Kind(256, 6, 192), Kind(1024, 16, 16))
_OPEN_ROWS = 8


def document(tokenizer, sample):
    """(ids, roles, canvases): cut to the longest row; a canvas is (first token, end of answer)."""
    ids, roles = [], []
    for text, role in corpus.segments(sample):
        piece = tokenizer.encode(text)
        ids += piece
        roles += [role] * len(piece)
    limit = KINDS[-1].length
    found = [(s, min(e, limit)) for s, e in canvases(roles) if e <= limit or s + CANVAS <= limit]
    return ids[:limit], roles[:limit], found


def canvases(roles):
    """(begin, end of the answer) of each canvas in a document."""
    out, at = [], 0
    while at < len(roles):
        if roles[at] != MODEL:
            at += 1
            continue
        end = at
        while end < len(roles) and roles[end] == MODEL:
            end += 1
        out += [(begin, end) for begin in range(at, end, CANVAS)]
        at = end
    return out


def target(ids, begin, end):
    """The tokens of a canvas: those of the answer, then the filler."""
    tokens = list(ids[begin:min(begin + CANVAS, end)])
    return tokens + [FILLER] * (CANVAS - len(tokens))


class Packer:
    """Puts documents into rows of one kind; full rows come out as arrays."""

    def __init__(self, kind, rng):
        self.kind, self.rng = kind, rng
        self.open = []
        self.done = []

    def add(self, ids, roles, found):
        for row in self.open:
            if len(row["ids"]) + len(ids) <= self.kind.length:
                break
        else:
            if len(self.open) == _OPEN_ROWS:
                self.open.sort(key=lambda r: len(r["ids"]))
                self._close(self.open.pop())
            row = {"ids": [], "roles": [], "docs": [], "canvases": []}
            self.open.append(row)
        first = len(row["ids"])
        number = row["docs"][-1] + 1 if row["docs"] else 0
        row["ids"] += ids
        row["roles"] += roles
        row["docs"] += [number] * len(ids)
        row["canvases"] += [(first + begin, first + end) for begin, end in found]
        if number == NO_DOCUMENT - 1:
            self.open.remove(row)
            self._close(row)

    def _close(self, row):
        k, found = self.kind, row["canvases"]
        if not found:
            return
        if len(found) > k.slots:
            found = self.rng.sample(found, k.slots)
        else:  # the same canvas again gets other noise
            found = found + self.rng.choices(found, k=k.slots - len(found))
        pad = k.length - len(row["ids"])
        self.done.append((row["ids"] + [0] * pad, row["roles"] + [0] * pad,
                          row["docs"] + [NO_DOCUMENT] * pad, [c[0] for c in found],
                          [c[1] for c in found]))

    def rows(self):
        """(ids, roles, docs, begins, ends) of all full rows."""
        types = (np.int16, np.uint8, np.uint8, np.int16, np.int16)
        widths = [self.kind.length] * 3 + [self.kind.slots] * 2
        return [
            np.array([row[i] for row in self.done], t).reshape(-1, w)
            for i, (t, w) in enumerate(zip(types, widths))
        ]


def shard(tokenizer, seed, n_tokens):
    """Rows of every kind, of about so many tokens: [[ids, roles, docs, begins, ends] a kind]."""
    rng, n = random.Random(seed), 0
    packers = [Packer(k, rng) for k in KINDS]
    while n < n_tokens:
        ids, roles, found = document(tokenizer, corpus.make_sample(rng))
        n += len(ids)
        packer = next(p for p in packers if len(ids) <= p.kind.length)
        packer.add(ids, roles, found)
    return [p.rows() for p in packers]


def _make_shard(job):
    return shard(*job)


def make_rows(tokenizer, n_tokens, seed, processes):
    """Rows by kind, made by a pool of processes, in a fixed order."""
    count = max(1, round(n_tokens / 1e6))
    jobs = [(tokenizer, seed + i, n_tokens // count) for i in range(count)]
    if processes == 1:
        shards = [_make_shard(j) for j in jobs]
    else:
        with multiprocessing.get_context("fork").Pool(processes) as pool:
            shards = pool.map(_make_shard, jobs, chunksize=1)
    return [[np.concatenate([s[k][i] for s in shards]) for i in range(5)]
            for k in range(len(KINDS))]
