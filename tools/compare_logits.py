#!/usr/bin/env python3
"""compare_logits.py - two engines' logits on the same tokens.

    build/bezel logits MODEL --ids 2,30,31 --all-bin ours.f32
    tools/compare_logits.py ours.f32 theirs.f32 N_VOCAB [--max 1e-3] [--p95 5e-3] [--top1 0.97]

Both files hold f32, position by position. Prints the largest difference, the 95th percentile over
positions (of each position's largest) and how many best tokens agree; exits 1 when a bound that was
given is broken. Standard library only.
"""
import argparse
import array
import sys


def read(path):
    values = array.array("f")
    with open(path, "rb") as f:
        values.frombytes(f.read())
    return values


def main():
    p = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    p.add_argument("ours")
    p.add_argument("theirs")
    p.add_argument("n_vocab", type=int)
    for bound in ("max", "p95", "top1"):
        p.add_argument(f"--{bound}", type=float)
    o = p.parse_args()
    a, b, n = read(o.ours), read(o.theirs), o.n_vocab
    if len(a) != len(b) or not a or len(a) % n:
        sys.exit(f"{o.ours} has {len(a)} logits and {o.theirs} {len(b)}; they must be as many, in "
                 f"rows of {n}")
    worst, same = [], 0
    for at in range(0, len(a), n):
        x, y = a[at:at + n], b[at:at + n]
        worst.append(max(abs(u - v) for u, v in zip(x, y)))
        same += x.index(max(x)) == y.index(max(y))
    worst.sort()
    p95 = worst[int(0.95 * (len(worst) - 1))]
    top1 = same / len(worst)
    print(f"{len(worst)} positions: max {worst[-1]:.2e}, 95th percentile {p95:.2e}, "
          f"same best token {same} of {len(worst)}")
    broken = [(o.max, worst[-1] <= (o.max or 0)), (o.p95, p95 <= (o.p95 or 0)),
              (o.top1, top1 >= (o.top1 or 0))]
    return 1 if any(bound is not None and not ok for bound, ok in broken) else 0


if __name__ == "__main__":
    sys.exit(main())
