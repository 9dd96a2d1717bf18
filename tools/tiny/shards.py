"""Training data as arrays, made by many processes at once (no torch here: workers start fast)."""

import multiprocessing

import numpy as np

import corpus


def _make_shard(job):
    tokenizer, seed, n_tokens = job
    ids, roles, positions = corpus.shard(tokenizer, seed, n_tokens)
    return np.array(ids, np.uint16), np.array(roles, np.uint8), np.array(positions, np.uint16)


def make_shards(tokenizer, n_tokens, seed, processes):
    """Shards of about a million tokens each, made by a pool of processes, in a fixed order."""
    count = max(1, round(n_tokens / 1e6))
    jobs = [(tokenizer, seed + i, n_tokens // count) for i in range(count)]
    if processes == 1:
        return [_make_shard(j) for j in jobs]
    with multiprocessing.get_context("fork").Pool(processes) as pool:
        return pool.map(_make_shard, jobs, chunksize=1)
