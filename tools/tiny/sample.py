"""What the data generators share: a turn, a sample, and a few words of English grammar."""

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
