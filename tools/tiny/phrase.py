"""Many ways to ask the same thing.

A question is given in small pieces (a noun phrase, an indirect clause, a command, a task), and
frames turn each piece into dozens of sentences.  A fixed tenth of the combinations is held out:
their pieces and frames are trained in other company, the sentences themselves never are.
"""

import hashlib

_NOUN = [
    "What is {}?", "What's {}?", "Tell me {}.", "Name {}.", "Do you know {}?",
    "Can you tell me {}?", "Could you tell me {}?", "Please tell me {}.", "I want to know {}.",
    "I would like to know {}.", "I need {}.", "Give me {}.", "Say {}.", "Please name {}.", "{}?",
    "{}", "Which is {}?", "Do you remember {}?", "I forgot {}.", "Help me find {}.",
    "I am looking for {}.", "Could you name {}?", "Can I ask for {}?", "What would be {}?",
    "Let me know {}.", "Can you name {}?", "Please give me {}.", "My question is: what is {}?",
    "I wonder what is {}.", "Would you tell me {}?", "What exactly is {}?", "Write {}.",
    "Just tell me {}.", "I have to learn {}.", "You surely know {}.", "Do you happen to know {}?"
]
_CLAUSE = [
    "Tell me {}.", "Do you know {}?", "Can you tell me {}?", "Could you tell me {}?",
    "Please tell me {}.", "I want to know {}.", "I would like to know {}.", "I wonder {}.",
    "Please say {}.", "Let me know {}.", "I forgot {}.", "Do you remember {}?",
    "Would you tell me {}?", "I have to learn {}.", "Say {}.", "Can you say {}?",
    "Just tell me {}.", "Do you happen to know {}?", "I am not sure {}.", "Help me find out {}.",
    "My question is {}.", "You surely know {}."
]
_COMMAND = [
    "{}.", "Please {}.", "Can you {}?", "Could you {}?", "I want you to {}.", "Would you {}?",
    "Please {} for me.", "Now {}.", "I need you to {}.", "I would like you to {}.",
    "Help me to {}.", "You should {}.", "Can you please {}?", "Try to {}.", "Just {}.",
    "{}, please.", "Go on and {}.", "{} now.", "Would you please {}?", "Your task is to {}."
]
_TASK = [
    "{C}: {t}", "Please {c}: {t}", "Can you {c}: {t}", "Could you {c}? {t}",
    "I want you to {c}: {t}", "Task: {c}. {t}", "{C}, please: {t}", "{C}:\n{t}", "Now {c}: {t}",
    "Would you {c}: {t}", "{C}: \"{t}\"", "Please {c}: \"{t}\"", "Here is a text: {t}\n{C}.",
    "I need you to {c}: {t}", "Your task is to {c}: {t}", "{C}. The text is: {t}", "Just {c}: {t}",
    "\"{t}\"\n{C}."
]


def is_held(text):
    """One combination in ten."""
    return hashlib.md5(text.encode()).digest()[0] % 10 == 0


def _cap(text):
    return text[:1].upper() + text[1:]


def draw_pair(rng, firsts, seconds, held):
    """One of each such that the pair is held out, or is not."""
    pairs = [(x, y) for x in firsts for y in seconds if is_held(f"{x}|{y}") == held]
    return rng.choice(pairs) if pairs else None


class Phrases:
    """All sentences of one question.  `always` are trained as they stand (common forms must be)."""

    def __init__(self, always=(), nouns=(), clauses=(), commands=(), tasks=()):
        framed = [f.format(n) for n in nouns for f in _NOUN]
        framed += [f.format(c) for c in clauses for f in _CLAUSE]
        framed += [f.format(c) for c in commands for f in _COMMAND]
        framed += [f.replace("{c}", c).replace("{C}", _cap(c)) for c in tasks for f in _TASK]
        framed = sorted(set(framed) - set(always))
        self.always = list(always)
        self.train = [f for f in framed if not is_held(f)]
        self.held = [f for f in framed if is_held(f)]
        if framed and not self.held:
            self.held = [self.train.pop()]

    def pick(self, rng, held=False):
        """A template; in training half of the time a common form."""
        if held:
            return rng.choice(self.held)
        if self.always and (not self.train or rng.random() < 0.45):
            return rng.choice(self.always)
        return rng.choice(self.train)


_BEFORE = [
    "Hi!", "Hello.", "Hey,", "Good morning.", "Okay,", "So,", "Well,", "Quick question:",
    "Question:", "Please tell me:", "I have a question.", "Tell me,", "I am curious:", "Help me:",
    "One more:", "Next question:", "My friend asks:", "My teacher asks:", "My son asks:",
    "For school:", "For a quiz:", "I am not sure:", "Just wondering:", "By the way,", "Good day.",
    "Thanks. Now:", "Let me ask:", "Here is my question:", "Can you help me?", "Do you know this?",
    "I need help.", "Sorry,", "Excuse me,", "First:", "And now:", "Please,", "Listen:",
    "Dear model,", "Hi Bezel,", "Hello Bezel!", "I am learning.", "We play a quiz.", "Hmm,", "Oh,",
    "Right.", "Good.", "Thank you.", "Cool.", "Hello there.", "Hi there!", "Now,", "Also,", "And",
    "But"
]
_AFTER = [
    "Please answer.", "Thanks!", "I forgot.", "Thank you.", "I would like to know.",
    "I want to know.", "Please help me.", "I am curious.", "It is for school.", "I am not sure.",
    "Do you know?", "Can you tell me?", "Please.", "My friend wants to know.", "It is important.",
    "Just tell me.", "I have no idea.", "Any idea?", "Can you help?", "That is my question.",
    "My teacher asked me.", "I always forget it.", "Tell me.", "I need it for a quiz."
]
LEADS = [b + " {l}" for b in _BEFORE] + ["{q} " + s for s in _AFTER]


def lead(rng, text, key, held=False):
    """Put a greeting or a remark around a question.

    `key` names the question; a tenth of the pairs (key, remark) is held out.
    """
    for _ in range(200):
        form = rng.choice(LEADS)
        if is_held(f"{key}|{form}") == held:
            break
    before = form.split("{l}")[0].rstrip()
    low = text if before[-1:] in ".!?" else lower_first(text)
    return form.replace("{q}", text).replace("{l}", low)


_KEEP_CAPITAL = {"I", "I'm", "I'd"}


def keep_capitals(words):
    """Names that stay capitalised at the beginning of a question."""
    _KEEP_CAPITAL.update(words)


def lower_first(text):
    """The first letter small, except of names and of 'I'."""
    first = text.split(" ", 1)[0].rstrip("?.!,:'")
    if first in _KEEP_CAPITAL or first.removesuffix("'s") in _KEEP_CAPITAL:
        return text
    return text[:1].lower() + text[1:]


def typed(rng, text, key="", held=False):
    """The same question as different people type it: remarks, lower case, no question mark, slips.

    Held-out questions are typed cleanly, sometimes with a remark.
    """
    if held:
        return lead(rng, text, key) if rng.random() < 0.3 else text
    if rng.random() < 0.25:
        text = lead(rng, text, key)
    r = rng.random()
    if r < 0.16:
        text = text.lower()
    elif r < 0.22:
        text = lower_first(text)
    elif r < 0.23:
        text = text.upper()
    if rng.random() < 0.15:
        text = text.rstrip("?.! ")
    if rng.random() < 0.06:
        text = slip(rng, text)
    return text


def slip(rng, text):
    """One slip: two letters swapped, one lost or doubled, or a small word forgotten."""
    if rng.random() < 0.3:
        words = text.split(" ")
        small = [
            i for i, w in enumerate(words) if w in ("the", "a", "an", "of", "is", "do", "does")
        ]
        if small:
            del words[rng.choice(small)]
            return " ".join(words)
    if len(text) < 8:
        return text
    i = rng.randrange(1, len(text) - 2)
    if not (text[i].isalpha() and text[i + 1].isalpha()):
        return text
    how = rng.randrange(3)
    if how == 0:
        return text[:i] + text[i + 1] + text[i] + text[i + 2:]
    if how == 1:
        return text[:i] + text[i + 1:]
    return text[:i] + text[i] + text[i:]
