"""The tiny family's tokenizer: Gemma 4's algorithm with an own vocabulary.

Spaces become U+2581, text is split at special tokens and at runs of newlines only, then byte-pair
merges are applied in rank order; characters outside the vocabulary become bytes <0xXX>.

Training splits words first (the space sticks to the front; letters, digits and marks stay apart),
so that no merge ever joins across a word: `encode` may then work word by word, which makes it fast,
and gives the same ids as merging whole lines (`encode_slowly`, the definition; a test compares
both).
"""

import heapq
import re
from collections import Counter, defaultdict

SPACE = "\u2581"

# In the order of the ids 0..23.  The published ids differ: nothing may depend on them.
SPECIALS = [
    "<pad>", "<eos>", "<bos>", "<unk>", "<mask>", "<|tool>", "<tool|>", "<|tool_call>",
    "<tool_call|>", "<|tool_response>", "<tool_response|>", '<|"|>', "<|think|>", "<|channel>",
    "<channel|>", "<|turn>", "<turn|>", "<|image>", "<|audio>", "<|image|>", "<|audio|>",
    "<image|>", "<audio|>", "<|video|>"
]
# Types as in published files: parsers must see these, the others are control tokens.
USER_DEFINED = {
    "<|tool_call>", "<tool_call|>", "<|tool_response>", "<tool_response|>", '<|"|>', "<|channel>",
    "<channel|>"
}
NEWLINE_RUNS = 16
_NORMAL, _UNKNOWN, _CONTROL, _USER, _BYTE = 1, 2, 3, 4, 6

# A word for training: one optional space with letters, or with marks; digits never merge.
_WORD = re.compile(f"{SPACE}?[^\\W\\d_]+|{SPACE}?[^\\w\\s{SPACE}]+")
_SPECIAL = re.compile("(" + "|".join(map(re.escape, sorted(SPECIALS, key=len, reverse=True))) + ")")
_RUNS = re.compile("\n+|[^\n]+")
# A piece for encoding: a run of spaces with what follows it; merges never cross these borders.
_PIECE = re.compile(f"{SPACE}+[^{SPACE}]*|[^{SPACE}]+")


class Tokenizer:
    """tokens: list of texts, index = id.  merges: list of (left, right), index = rank."""

    def __init__(self, tokens, merges):
        self.tokens, self.merges = list(tokens), [tuple(m) for m in merges]
        self.ids = {t: i for i, t in enumerate(self.tokens)}
        self.ranks = {m: i for i, m in enumerate(self.merges)}
        self.bytes = [self.ids[f"<0x{b:02X}>"] for b in range(256)]
        self._cache = {}

    def encode(self, text):
        """Ids of a text; special tokens are recognised."""
        out, cache = [], self._cache
        for part in _SPECIAL.split(text):
            if not part:
                continue
            if part in self.ids and part[0] == "<" and part in _SPECIAL_SET:
                out.append(self.ids[part])
                continue
            for run in _RUNS.findall(part.replace(" ", SPACE)):
                for piece in [run] if run[0] == "\n" else _PIECE.findall(run):
                    got = cache.get(piece)
                    if got is None:
                        got = cache[piece] = self._encode_run(piece)
                    out += got
        return out

    def encode_slowly(self, text):
        """The definition: merges over whole lines."""
        out = []
        for part in _SPECIAL.split(text):
            if part in _SPECIAL_SET:
                out.append(self.ids[part])
                continue
            for run in _RUNS.findall(part.replace(" ", SPACE)):
                out += self._encode_run(run)
        return out

    def _encode_run(self, run):
        """Merge the characters of a run, lowest rank first, leftmost first among equals."""
        if run[0] == "\n" and run in self.ids:
            return [self.ids[run]]
        parts = list(run)
        while len(parts) > 1:
            rank, i = min(
                (self.ranks.get(pair, 1 << 30), i) for i, pair in enumerate(zip(parts, parts[1:])))
            if rank == 1 << 30:
                break
            parts[i:i + 2] = [parts[i] + parts[i + 1]]
        ids = []
        for p in parts:
            ids += [self.ids[p]] if p in self.ids else [self.bytes[b] for b in p.encode()]
        return ids

    def decode(self, ids, specials=True):
        """Text of ids; special tokens are written out, or left out."""
        data = bytearray()
        for i in ids:
            t = self.tokens[i]
            if i < len(SPECIALS):
                data += t.encode() if specials else b""
            elif self.bytes[0] <= i <= self.bytes[255]:
                data.append(i - self.bytes[0])
            else:
                data += t.replace(SPACE, " ").encode()
        return data.decode("utf-8", errors="replace")

    def types(self):
        """GGUF token types."""
        out = [_NORMAL] * len(self.tokens)
        for t in SPECIALS:
            out[self.ids[t]] = _USER if t in USER_DEFINED else _CONTROL
        for b in self.bytes:
            out[b] = _BYTE
        return out

    def merge_lines(self):
        """Merges as GGUF stores them."""
        return [f"{x} {y}" for x, y in self.merges]


_SPECIAL_SET = set(SPECIALS)


def train(texts, size=4096, extra_characters=""):
    """Learn a vocabulary of `size` tokens from an iterable of rendered texts."""
    words, characters = Counter(), Counter()
    for text in texts:
        for part in _SPECIAL.split(text):
            if part not in _SPECIAL_SET:
                part = part.replace(" ", SPACE)
                words.update(_WORD.findall(part))
                characters.update(part)
    alphabet = {c
                for c in characters if c != "\n"} | {chr(c)
                                                     for c in range(33, 127)} | {SPACE, "\t"}
    alphabet |= set(extra_characters)
    tokens = (SPECIALS + ["\n" * n for n in range(1, NEWLINE_RUNS + 1)] +
              [f"<0x{b:02X}>" for b in range(256)] + sorted(alphabet))
    merges = [(SPACE, SPACE), (SPACE * 2, SPACE * 2), (SPACE * 2, SPACE), (SPACE * 4, SPACE * 4)]
    tokens += [x + y for x, y in merges]
    learnt = _learn_merges(words, size - len(tokens))
    return Tokenizer(tokens + [x + y for x, y in learnt], merges + learnt)


def _learn_merges(words, n):
    """Byte-pair encoding: join the most frequent pair, again and again (ties: the smaller text).

    The heap holds a candidate for every count a pair ever had; an entry that is out of date is
    dropped when it surfaces.
    """
    texts = [list(w) for w in words]
    counts = list(words.values())
    pairs, where = Counter(), defaultdict(set)
    for i, parts in enumerate(texts):
        for pair in zip(parts, parts[1:]):
            pairs[pair] += counts[i]
            where[pair].add(i)
    heap = [(-count, x + y, x, y) for (x, y), count in pairs.items()]
    heapq.heapify(heap)
    merges, known = [], set()
    while len(merges) < n:
        if not heap:
            raise ValueError(f"the text gives only {len(merges)} of {n} merges")
        count, joined, *best = heapq.heappop(heap)
        best = tuple(best)
        if pairs.get(best, 0) != -count:
            continue
        if joined in known:
            continue  # another pair already makes this text: one token, one merge
        known.add(joined)
        merges.append(best)
        changed = set()
        for i in sorted(where.pop(best)):
            changed |= _join(texts, i, counts[i], best, pairs, where)
        for pair in changed:
            if pairs[pair] > 0:
                heapq.heappush(heap, (-pairs[pair], pair[0] + pair[1], *pair))
            else:
                del pairs[pair]
    return merges


def _join(texts, i, count, best, pairs, where):
    """Join the pair `best` in word i; returns the pairs whose counts changed."""
    parts, out, j = texts[i], [], 0
    while j < len(parts):
        if j + 1 < len(parts) and (parts[j], parts[j + 1]) == best:
            out.append(best[0] + best[1])
            j += 2
        else:
            out.append(parts[j])
            j += 1
    texts[i] = out
    old, new = Counter(zip(parts, parts[1:])), Counter(zip(out, out[1:]))
    for pair in old - new:
        pairs[pair] -= (old[pair] - new[pair]) * count
    for pair in new - old:
        pairs[pair] += (new[pair] - old[pair]) * count
        where[pair].add(i)
    return set(old - new) | set(new - old)
