"""What the data generators share: a turn, a sample, and the ways people type."""

from dataclasses import dataclass, field


@dataclass
class Turn:
    """One question and its answer, before a style or a history is put around it."""

    user: str
    answer: str
    short: str = ""  # the answer in a word or two, where there is one
    thought: str = ""  # what to write in the thinking channel
    kind: str = ""
    fixed: bool = False  # the answer's exact letters matter: styles leave it alone
    follow: list = field(default_factory=list)  # further turns that only make sense after this one


@dataclass
class Sample:
    """A conversation (or a plain text) ready to be rendered."""

    kind: str
    messages: list = field(default_factory=list)
    tools: list = None
    thinking: bool = False
    large: bool = False  # prompt form of the large models when thinking is off
    text: str = None
    check: dict = field(default_factory=dict)  # for evaluation: what the answer must hold


def the(name):
    """'the Eiffel Tower' -> 'The Eiffel Tower'."""
    return name[:1].upper() + name[1:]


def a(word):
    """A word with its indefinite article."""
    return ("an " if word[0].lower() in "aeiou" else "a ") + word


def join_and(items):
    """'a, b and c'."""
    items = list(items)
    return items[0] if len(items) == 1 else ", ".join(items[:-1]) + " and " + items[-1]


def number_word(n):
    """English words of 0..999."""
    from tables import NUMBERS, TENS
    if n <= 20:
        return NUMBERS[n]
    if n < 100:
        return TENS[n // 10] + ("-" + NUMBERS[n % 10] if n % 10 else "")
    rest = n % 100
    return NUMBERS[n // 100] + " hundred" + (" and " + number_word(rest) if rest else "")


_LEADS = ["Hi! {}", "Hello. {}", "Hey, {l}", "Quick question: {l}", "Question: {}", "Please tell me: {l}",
          "I have a question. {}", "Tell me, {l}", "{} Please answer.", "{} Thanks!", "{} I forgot.",
          "So, {l}", "Okay, {l}", "{} Thank you.", "I am curious: {l}", "Help me: {l}", "One more: {l}"]
_HELD_LEADS = ["{}", "{}", "Good day. {}", "My friend asks: {l}", "{} I would like to know."]


def type_like_a_person(rng, text, held=False):
    """The same question as different people type it: greetings, lower case, no question mark, slips.

    The held-out variant uses openings that training never shows.
    """
    r = rng.random()
    if held:
        lead = rng.choice(_HELD_LEADS)
        return lead.format(text, l=_lower_first(text))
    if r < 0.14:
        text = rng.choice(_LEADS).format(text, l=_lower_first(text))
    r = rng.random()
    if r < 0.16:
        text = text.lower()
    elif r < 0.22:
        text = _lower_first(text)
    elif r < 0.23:
        text = text.upper()
    if rng.random() < 0.15:
        text = text.rstrip("?.!")
    if rng.random() < 0.04:
        text = _slip(rng, text)
    return text


def _lower_first(text):
    """Lower the first letter, except of names (a second capital follows) and of 'I'."""
    first = text.split(" ", 1)[0]
    if first in ("I", "I'm") or not text[:1].isupper() or first in _KEEP_CAPITAL:
        return text
    return text[0].lower() + text[1:]


_KEEP_CAPITAL = set()


def keep_capitals(words):
    """Names that stay capitalised at the beginning of a question."""
    _KEEP_CAPITAL.update(words)


def _slip(rng, text):
    """One typing slip: two letters swapped, one lost or one doubled."""
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
