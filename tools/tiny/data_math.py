"""Arithmetic: worked digit by digit in the thinking channel, answered directly when it is off."""

from phrase import Phrases, draw_pair, typed
from sample import Turn, number_word, the
from tables import NAMES_F, NAMES_M

_ADD = Phrases([
    "What is {a} + {b}?", "{a} + {b}", "{a}+{b}", "What is {a} plus {b}?", "Calculate {a} + {b}.",
    "How much is {a} + {b}?", "Add {a} and {b}.", "{a} plus {b}?", "What's {a} + {b}?",
    "Compute {a} + {b}.", "What is the sum of {a} and {b}?", "{a} + {b} = ?", "{a}+{b}=",
    "Reply with only the number: {a} + {b}.", "How much is {a} plus {b}?", "what is {a}+{b}?",
    "What do I get when I add {a} and {b}?", "What is {a} added to {b}?",
    "How much do {a} and {b} make?"
],
               nouns=[
                   "{a} + {b}", "{a} plus {b}", "the sum of {a} and {b}", "the result of {a} + {b}",
                   "the result of {a} plus {b}", "the sum {a} + {b}", "{a} and {b} together"
               ],
               clauses=[
                   "how much {a} + {b} is", "what {a} plus {b} is", "how much {a} and {b} make",
                   "what {a} + {b} is"
               ],
               commands=[
                   "add {a} and {b}", "calculate {a} + {b}", "compute {a} + {b}",
                   "work out {a} + {b}", "add {a} to {b}", "sum up {a} and {b}", "find {a} + {b}",
                   "solve {a} + {b}"
               ])
_SUB = Phrases([
    "What is {a} - {b}?", "{a} - {b}", "{a}-{b}", "What is {a} minus {b}?", "Calculate {a} - {b}.",
    "How much is {a} - {b}?", "Subtract {b} from {a}.", "{a} minus {b}?", "What's {a} - {b}?",
    "Compute {a} - {b}.", "{a} - {b} = ?", "Take {b} away from {a}.", "How much is {a} minus {b}?",
    "Reply with only the number: {a} - {b}."
],
               nouns=[
                   "{a} - {b}", "{a} minus {b}", "the difference of {a} and {b}",
                   "the result of {a} - {b}"
               ],
               clauses=["how much {a} - {b} is", "what {a} minus {b} is"],
               commands=[
                   "subtract {b} from {a}", "calculate {a} - {b}", "compute {a} - {b}",
                   "work out {a} - {b}", "take {b} away from {a}", "solve {a} - {b}"
               ])
_MUL = Phrases([
    "What is {a} * {b}?", "{a} * {b}", "{a}*{b}", "What is {a} times {b}?", "Calculate {a} * {b}.",
    "How much is {a} times {b}?", "Multiply {a} by {b}.", "{a} times {b}?", "What's {a} x {b}?",
    "{a} x {b}", "Compute {a} * {b}.", "{a} * {b} = ?", "What is the product of {a} and {b}?"
],
               nouns=[
                   "{a} * {b}", "{a} times {b}", "the product of {a} and {b}",
                   "the result of {a} * {b}", "{a} x {b}"
               ],
               clauses=["how much {a} times {b} is", "what {a} * {b} is"],
               commands=[
                   "multiply {a} by {b}", "calculate {a} * {b}", "compute {a} * {b}",
                   "work out {a} * {b}", "multiply {a} and {b}", "solve {a} * {b}"
               ])
_DIV = Phrases([
    "What is {a} / {b}?", "{a} / {b}", "What is {a} divided by {b}?", "Divide {a} by {b}.",
    "How much is {a} divided by {b}?", "{a} divided by {b}?", "Calculate {a} / {b}."
],
               nouns=["{a} / {b}", "{a} divided by {b}", "the result of {a} / {b}"],
               clauses=["how much {a} divided by {b} is", "what {a} / {b} is"],
               commands=[
                   "divide {a} by {b}", "calculate {a} / {b}", "compute {a} / {b}",
                   "work out {a} / {b}"
               ])


def held_pair(x, y):
    """One pair of numbers in ten is never trained on."""
    return (x * 131 + y * 17 + 5) % 10 == 0


def add_steps(x, y):
    """Column addition, from the ones up."""
    names = ["Ones", "Tens", "Hundreds", "Thousands"]
    steps, carry, place = [f"{x} + {y}."], 0, 0
    while x or y or carry:
        p, q = x % 10, y % 10
        if not x and not y:
            steps.append(f"Then the carry {carry}.")
            break
        total = p + q + carry
        sum_text = f"{p} + {q}" + (f" + {carry}" if carry else "")
        note = f", write {total % 10}, carry 1" if total > 9 else ""
        steps.append(f"{names[place]}: {sum_text} = {total}{note}.")
        carry, x, y, place = total // 10, x // 10, y // 10, place + 1
    return " ".join(steps)


def sub_steps(x, y):
    """Column subtraction with borrowing; x >= y."""
    names = ["Ones", "Tens", "Hundreds", "Thousands"]
    steps, borrow, place = [f"{x} - {y}."], 0, 0
    while x or y:
        p, q = x % 10 - borrow, y % 10
        taken = f"{x % 10} - {borrow}" if borrow else f"{p}"
        if p < q:
            steps.append(f"{names[place]}: borrow 10, {taken} + 10 - {q} = {p + 10 - q}.")
            borrow = 1
        else:
            steps.append(f"{names[place]}: {taken} - {q} = {p - q}.")
            borrow = 0
        x, y, place = x // 10, y // 10, place + 1
    return " ".join(steps)


def mul_steps(x, y):
    """x of two digits times y of one: tens and ones apart."""
    tens, ones = x // 10 * 10, x % 10
    if not tens or not ones:
        return f"{x} * {y} = {x * y}."
    head = f"{x} * {y}. {tens} * {y} = {tens * y}. {ones} * {y} = {ones * y}."
    return f"{head} {tens * y} + {ones * y} = {x * y}."


def _operands(rng, low, high, held, ordered=False):
    """A pair of numbers that belongs to training (or to the held-out tenth)."""
    while True:
        x, y = rng.randint(low, high), rng.randint(low, high)
        if ordered and x < y:
            x, y = y, x
        if held is None or held_pair(x, y) == held:
            return x, y


def _turn(rng, phrases, held, x, y, op, result, steps, kind):
    form = phrases.pick(rng, held)
    answer = str(result) if "Reply with only" in form else f"{x} {op} {y} = {result}."
    return _say(rng, form, held, dict(a=x, b=y), answer, str(result),
                f"{steps} The result is {result}.", kind)


def _say(rng, form, held, fields, answer, short, thought, kind):
    """A turn whose answer is exact; the question is typed in the usual ways."""
    question = the(form.format(**fields))
    if held or rng.random() < 0.5:
        question = typed(rng, question, form, held)
    return Turn(question, answer, short, thought, kind, fixed=True)


def add_turn(rng, held=False, low=10, high=99):
    """Two-digit addition; the held-out tenth of the pairs is for evaluation."""
    x, y = _operands(rng, low, high, held)
    return _turn(rng, _ADD, held, x, y, "+", x + y, add_steps(x, y), "add")


def add_small_turn(rng, held=False):
    x, y = _operands(rng, 0, 12, False)
    return _turn(rng, _ADD, held, x, y, "+", x + y, f"{x} + {y} = {x + y}.", "add_small")


def add_large_turn(rng, held=False):
    x, y = rng.randint(100, 999), rng.choice([rng.randint(100, 999), rng.randint(1, 99)])
    return _turn(rng, _ADD, held, x, y, "+", x + y, add_steps(x, y), "add_large")


def sub_turn(rng, held=False):
    x, y = _operands(rng, 0, 100, held, ordered=True)
    return _turn(rng, _SUB, held, x, y, "-", x - y, sub_steps(x, y), "sub")


def sub_large_turn(rng, held=False):
    x, y = rng.randint(100, 999), rng.choice([rng.randint(1, 99), rng.randint(100, 999)])
    x, y = max(x, y), min(x, y)
    return _turn(rng, _SUB, held, x, y, "-", x - y, sub_steps(x, y), "sub_large")


def sub_negative_turn(rng, held=False):
    """The larger number is taken away: the result is below zero."""
    y = rng.randint(1, 20)
    x = rng.randint(0, y - 1)
    steps = f"{y} is larger than {x}, so the result is negative. {y} - {x} = {y - x}."
    return _turn(rng, _SUB, held, x, y, "-", x - y, steps, "sub_negative")


def mul_turn(rng, held=False):
    x, y = _operands(rng, 0, 12, None)
    return _turn(rng, _MUL, held, x, y, "*", x * y, f"{x} * {y} = {x * y}.", "mul")


def mul_large_turn(rng, held=False):
    x, y = rng.randint(11, 99), rng.randint(2, 9)
    if held_pair(x, y) != held:
        return mul_turn(rng, held)
    return _turn(rng, _MUL, held, x, y, "*", x * y, mul_steps(x, y), "mul_large")


def div_turn(rng, held=False):
    y, q = rng.randint(1, 12), rng.randint(0, 12)
    x = y * q
    steps = f"{x} / {y}. {y} * {q} = {x}."
    return _turn(rng, _DIV, held, x, y, "/", q, steps, "div")


_SUMS = Phrases(["What is {t}?", "{t}", "Calculate {t}.", "How much is {t}?", "{t} = ?"],
                nouns=["{t}", "the result of {t}"],
                clauses=["how much {t} is", "what {t} is"],
                commands=["calculate {t}", "compute {t}", "work out {t}", "solve {t}"])


def three_turn(rng, held=False):
    """Three numbers: add (and subtract) from the left."""
    x, y, z = (rng.randint(1, 20) for _ in range(3))
    op = rng.choice("+-")
    first = x + y
    result = first + z if op == "+" else first - z
    text = f"{x} + {y} {op} {z}"
    steps = f"First {x} + {y} = {first}. Then {first} {op} {z} = {result}. The result is {result}."
    return _say(rng, _SUMS.pick(rng, held), held, dict(t=text), f"{text} = {result}.", str(result),
                steps, "three")


def percent_turn(rng, held=False):
    """Simple shares of round numbers."""
    percent, part = rng.choice([(50, 2), (25, 4), (20, 5), (10, 10), (1, 100)])
    whole = part * rng.randint(1, 60 if part < 100 else 9)
    result = whole // part
    text = f"{percent}% of {whole}" if rng.random() < 0.7 else f"{percent} percent of {whole}"
    return _say(rng, _SUMS.pick(rng,
                                held), held, dict(t=text), f"{percent}% of {whole} is {result}.",
                str(result), f"{percent}% is one part in {part}. {whole} / {part} = {result}.",
                "percent")


_COMPARE = Phrases(
    [
        "Which is {w}, {a} or {b}?", "Which number is {w}: {a} or {b}?", "What is {w}, {a} or {b}?",
        "Is {a} or {b} {w}?", "Of {a} and {b}, which number is {w}?"
    ],
    nouns=["the {w} number of {a} and {b}"],
    clauses=["which is {w}, {a} or {b}", "which number is {w}, {a} or {b}", "if {a} or {b} is {w}"])


def compare_turn(rng, held=False):
    x, y = rng.sample(range(0, 100 if rng.random() < 0.7 else 1000), 2)
    larger = rng.random() < 0.6
    asked = rng.choice(["larger", "bigger", "greater"]) if larger else rng.choice(
        ["smaller", "less"])
    best = max(x, y) if larger else min(x, y)
    word = "larger" if larger else "smaller"
    return _say(rng, _COMPARE.pick(rng, held), held, dict(a=x, b=y, w=asked),
                f"{best} is {word} than {x + y - best}.", str(best),
                f"I compare {x} and {y}. {best} is {word}.", "compare")


_PARITY = Phrases([
    "Is {a} even or odd?", "Is the number {a} even?", "Is {a} an odd number?", "Is {a} even?",
    "Is {a} odd?"
],
                  clauses=["if {a} is even or odd", "whether {a} is even or odd", "if {a} is even"])


def parity_turn(rng, held=False):
    x = rng.randint(1, 999)
    word = "even" if x % 2 == 0 else "odd"
    return _say(rng, _PARITY.pick(rng, held), held, dict(a=x), f"{x} is {word}.", word,
                f"The last digit of {x} is {x % 10}, so it is {word}.", "parity")


_SEQUENCE = Phrases(
    [
        "What comes next: {s}?", "Continue the sequence: {s}", "What is the next number: {s}, ...?",
        "Which number comes next? {s}", "Which number continues this: {s}?"
    ],
    nouns=["the next number in {s}", "the next number after {s}"],
    clauses=["which number comes after {s}", "how {s} goes on"],
    tasks=["continue the sequence", "find the next number", "say which number comes next"])


def sequence_turn(rng, held=False):
    start, step = rng.randint(0, 20), rng.choice([1, 2, 3, 4, 5, 10])
    terms = [start + i * step for i in range(4)]
    text, nxt = ", ".join(map(str, terms)), terms[-1] + step
    return _say(rng, _SEQUENCE.pick(rng, held), held, dict(s=text,
                                                           t=text), f"The next number is {nxt}.",
                str(nxt),
                f"Each number is {step} more than the one before. {terms[-1]} + {step} = {nxt}.",
                "sequence")


_TO_WORDS = Phrases([
    "Write {a} in words.", "How do you write {a} in words?", "Spell out the number {a}.",
    "{a} in words?"
],
                    nouns=["{a} in words", "the word for the number {a}"],
                    clauses=["how to write {a} in words"],
                    commands=["write {a} in words", "spell out the number {a}"])
_TO_DIGITS = Phrases(
    ["Write {a} as a number.", "Write {a} in digits.", "{a} in digits?", "Which number is {a}?"],
    nouns=["{a} in digits", "{a} as a number"],
    clauses=["how to write {a} in digits"],
    commands=["write {a} in digits", "write {a} as a number"])


def word_turn(rng, held=False):
    """Digits to words and back."""
    x = rng.randint(0, 100)
    word = number_word(x)
    if rng.random() < 0.5:
        return _say(rng, _TO_WORDS.pick(rng, held), held, dict(a=x), f"{x} in words is {word}.",
                    word, f"{x} is {word}.", "number_word")
    return _say(rng, _TO_DIGITS.pick(rng, held), held, dict(a=word), f"{the(word)} is {x}.", str(x),
                f"{word} is {x}.", "number_word")


_GAIN = [
    "{n} has {x} {t} and {v} {y} more.", "{n} has {x} {t}. Then {n} {v} {y} more.",
    "There are {x} {t} on the table of {n}. {n} {v} {y} more.",
    "{n} {v} {y} {t} and already has {x}."
]
_LOSS = [
    "{n} has {x} {t} and {v} {y} of them.", "{n} has {x} {t}. Then {n} {v} {y}.",
    "There are {x} {t} on the table of {n}. {n} {v} {y} of them."
]
_HOW_MANY = [
    "How many {t} does {n} have now?", "How many {t} does {n} have?", "How many {t} are there now?",
    "How many {t} are left?", "How many {t} has {n} now?"
]


def story_turn(rng, held=False):
    """A word problem of one step; held out are pairs of a story and a question."""
    name = rng.choice(NAMES_F + NAMES_M)
    x, y = rng.randint(2, 20), rng.randint(1, 15)
    thing = rng.choice([
        "apples", "books", "coins", "eggs", "balls", "cards", "flowers", "stones", "pencils",
        "sweets"
    ])
    gain = rng.random() < 0.5 or y >= x
    verb = rng.choice(
        ["buys", "finds", "wins", "gets"] if gain else ["loses", "sells", "gives away", "drops"])
    result = x + y if gain else x - y
    form = " ".join(draw_pair(rng, _GAIN if gain else _LOSS, _HOW_MANY, held))
    return Turn(form.format(n=name, x=x, y=y, t=thing, v=verb),
                f"{name} has {result} {thing}.",
                str(result),
                f"{name} starts with {x} {thing}. {x} {'+' if gain else '-'} {y} = {result}.",
                "word_problem",
                fixed=True)


_DOUBLE = Phrases(["What is {n} {a}?", "How much is {n} {a}?", "{n} {a}?"],
                  nouns=["{n} {a}"],
                  clauses=["how much {n} {a} is", "what {n} {a} is"],
                  commands=["calculate {n} {a}"])


def double_turn(rng, held=False):
    """Half, double, one more."""
    x = rng.randint(1, 50)
    name, value, text = rng.choice([("double", 2 * x, f"{x} * 2 = {2 * x}"),
                                    ("twice", 2 * x, f"{x} * 2 = {2 * x}"),
                                    ("half of", x, f"{2 * x} / 2 = {x}"),
                                    ("one more than", x + 1, f"{x} + 1 = {x + 1}"),
                                    ("one less than", x - 1, f"{x} - 1 = {x - 1}")])
    asked = 2 * x if name == "half of" else x
    return _say(rng, _DOUBLE.pick(rng, held), held, dict(n=name, a=asked),
                f"{the(name)} {asked} is {value}.", str(value), f"{text}.", "double")


TURNS = [(add_turn, 4), (add_small_turn, 2), (add_large_turn, 1), (sub_turn, 3),
         (sub_large_turn, 0.8), (sub_negative_turn, 0.5), (percent_turn, 0.7), (mul_turn, 2.5),
         (mul_large_turn, 1.2), (div_turn, 1.2), (three_turn, 0.8), (compare_turn, 0.8),
         (parity_turn, 0.5), (sequence_turn, 0.8), (word_turn, 0.8), (story_turn, 1.5),
         (double_turn, 0.8)]
