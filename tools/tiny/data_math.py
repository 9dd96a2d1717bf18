"""Arithmetic: worked digit by digit in the thinking channel, answered directly when it is off."""

from sample import Turn, number_word, the, type_like_a_person
from tables import NAMES_F, NAMES_M

_ADD = ["What is {a} + {b}?", "{a} + {b}", "{a}+{b}", "What is {a} plus {b}?", "Calculate {a} + {b}.",
        "How much is {a} + {b}?", "Add {a} and {b}.", "{a} plus {b}?", "What's {a} + {b}?",
        "Compute {a} + {b}.", "What is the sum of {a} and {b}?", "{a} + {b} = ?", "{a}+{b}=",
        "Reply with only the number: {a} + {b}.", "How much is {a} plus {b}?", "what is {a}+{b}?"]
_ADD_HELD = ["What do I get when I add {a} and {b}?", "Please work out {a} + {b}.",
             "Tell me the result of {a} + {b}.", "Can you add {a} to {b}?"]
_SUB = ["What is {a} - {b}?", "{a} - {b}", "{a}-{b}", "What is {a} minus {b}?", "Calculate {a} - {b}.",
        "How much is {a} - {b}?", "Subtract {b} from {a}.", "{a} minus {b}?", "What's {a} - {b}?",
        "Compute {a} - {b}.", "{a} - {b} = ?", "Take {b} away from {a}.", "How much is {a} minus {b}?"]
_SUB_HELD = ["Please work out {a} - {b}.", "Tell me the result of {a} - {b}."]
_MUL = ["What is {a} * {b}?", "{a} * {b}", "{a}*{b}", "What is {a} times {b}?", "Calculate {a} * {b}.",
        "How much is {a} times {b}?", "Multiply {a} by {b}.", "{a} times {b}?", "What's {a} x {b}?",
        "{a} x {b}", "Compute {a} * {b}.", "{a} * {b} = ?", "What is the product of {a} and {b}?"]
_MUL_HELD = ["Please work out {a} * {b}.", "Tell me the result of {a} times {b}."]
_DIV = ["What is {a} / {b}?", "{a} / {b}", "What is {a} divided by {b}?", "Divide {a} by {b}.",
        "How much is {a} divided by {b}?", "{a} divided by {b}?", "Calculate {a} / {b}."]
_DIV_HELD = ["Please work out {a} / {b}.", "Tell me the result of {a} divided by {b}."]


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


def _turn(rng, forms, held_forms, held, x, y, op, result, steps, kind):
    question = rng.choice(held_forms if held else forms).format(a=x, b=y)
    if "Reply with only" in question:
        answer = str(result)
    else:
        answer = f"{x} {op} {y} = {result}."
    if not held:
        question = type_like_a_person(rng, question) if rng.random() < 0.3 else question
    return Turn(question, answer, str(result), f"{steps} The result is {result}.", kind, fixed=True)


def add_turn(rng, held=False, low=10, high=99):
    """Two-digit addition; the held-out tenth of the pairs is for evaluation."""
    x, y = _operands(rng, low, high, held)
    return _turn(rng, _ADD, _ADD_HELD, held, x, y, "+", x + y, add_steps(x, y), "add")


def add_small_turn(rng, held=False):
    x, y = _operands(rng, 0, 12, None)
    return _turn(rng, _ADD, _ADD_HELD, held, x, y, "+", x + y, f"{x} + {y} = {x + y}.", "add_small")


def add_large_turn(rng, held=False):
    x, y = rng.randint(100, 999), rng.choice([rng.randint(100, 999), rng.randint(1, 99)])
    return _turn(rng, _ADD, _ADD_HELD, held, x, y, "+", x + y, add_steps(x, y), "add_large")


def sub_turn(rng, held=False):
    x, y = _operands(rng, 0, 100, held, ordered=True)
    return _turn(rng, _SUB, _SUB_HELD, held, x, y, "-", x - y, sub_steps(x, y), "sub")


def sub_large_turn(rng, held=False):
    x, y = rng.randint(100, 999), rng.choice([rng.randint(1, 99), rng.randint(100, 999)])
    x, y = max(x, y), min(x, y)
    return _turn(rng, _SUB, _SUB_HELD, held, x, y, "-", x - y, sub_steps(x, y), "sub_large")


def sub_negative_turn(rng, held=False):
    """The larger number is taken away: the result is below zero."""
    y = rng.randint(1, 20)
    x = rng.randint(0, y - 1)
    steps = f"{y} is larger than {x}, so the result is negative. {y} - {x} = {y - x}."
    return _turn(rng, _SUB, _SUB_HELD, held, x, y, "-", x - y, steps, "sub_negative")


def percent_turn(rng, held=False):
    """Simple shares of round numbers."""
    percent, part = rng.choice([(50, 2), (25, 4), (20, 5), (10, 10), (1, 100)])
    whole = part * rng.randint(1, 60 if part < 100 else 9)
    forms = (["Please work out {p}% of {n}."] if held else
             ["What is {p}% of {n}?", "How much is {p} percent of {n}?", "{p}% of {n}", "Calculate {p}% of {n}."])
    result = whole // part
    return Turn(rng.choice(forms).format(p=percent, n=whole), f"{percent}% of {whole} is {result}.", str(result),
                f"{percent}% is one part in {part}. {whole} / {part} = {result}.", "percent", fixed=True)


def mul_turn(rng, held=False):
    x, y = _operands(rng, 0, 12, None)
    return _turn(rng, _MUL, _MUL_HELD, held, x, y, "*", x * y, f"{x} * {y} = {x * y}.", "mul")


def mul_large_turn(rng, held=False):
    x, y = rng.randint(11, 99), rng.randint(2, 9)
    if held_pair(x, y) != held:
        return mul_turn(rng, held)
    return _turn(rng, _MUL, _MUL_HELD, held, x, y, "*", x * y, mul_steps(x, y), "mul_large")


def div_turn(rng, held=False):
    y, q = rng.randint(1, 12), rng.randint(0, 12)
    x = y * q
    steps = f"{x} / {y}. {y} * {q} = {x}."
    return _turn(rng, _DIV, _DIV_HELD, held, x, y, "/", q, steps, "div")


def three_turn(rng, held=False):
    """Three numbers: add (and subtract) from the left."""
    x, y, z = (rng.randint(1, 20) for _ in range(3))
    op2 = rng.choice("+-")
    first = x + y
    result = first + z if op2 == "+" else first - z
    forms = ["What is {}?", "{}", "Calculate {}.", "How much is {}?"]
    if held:
        forms = ["Please work out {}."]
    text = f"{x} + {y} {op2} {z}"
    steps = f"First {x} + {y} = {first}. Then {first} {op2} {z} = {result}. The result is {result}."
    return Turn(rng.choice(forms).format(text), f"{text} = {result}.", str(result), steps, "three",
                fixed=True)


def compare_turn(rng, held=False):
    x, y = rng.sample(range(0, 100 if rng.random() < 0.7 else 1000), 2)
    larger = rng.random() < 0.6
    word = rng.choice(["larger", "bigger", "greater"]) if larger else rng.choice(["smaller", "less"])
    forms = (["Of {a} and {b}, which number is {w}?"] if held else
             ["Which is {w}, {a} or {b}?", "Which number is {w}: {a} or {b}?", "What is {w}, {a} or {b}?",
              "Is {a} or {b} {w}?"])
    best = max(x, y) if larger else min(x, y)
    other = x + y - best
    word = "larger" if larger else "smaller"
    question = rng.choice(forms).format(a=x, b=y, w=word)
    return Turn(question, f"{best} is {word} than {other}.", str(best),
                f"I compare {x} and {y}. {best} is {word}.", "compare", fixed=True)


def parity_turn(rng, held=False):
    x = rng.randint(1, 999)
    word = "even" if x % 2 == 0 else "odd"
    forms = (["Tell me whether {a} is even or odd."] if held else
             ["Is {a} even or odd?", "Is the number {a} even?", "Is {a} an odd number?", "Is {a} even?"])
    return Turn(rng.choice(forms).format(a=x), f"{x} is {word}.", word,
                f"The last digit of {x} is {x % 10}, so it is {word}.", "parity", fixed=True)


def sequence_turn(rng, held=False):
    start, step = rng.randint(0, 20), rng.choice([1, 2, 3, 4, 5, 10])
    terms = [start + i * step for i in range(4)]
    forms = (["Which number continues this: {s}?"] if held else
             ["What comes next: {s}?", "Continue the sequence: {s}", "What is the next number: {s}, ...?",
              "Which number comes next? {s}"])
    text = ", ".join(map(str, terms))
    nxt = terms[-1] + step
    return Turn(rng.choice(forms).format(s=text), f"The next number is {nxt}.", str(nxt),
                f"Each number is {step} more than the one before. {terms[-1]} + {step} = {nxt}.",
                "sequence", fixed=True)


def word_turn(rng, held=False):
    """Digits to words and back."""
    x = rng.randint(0, 100)
    if rng.random() < 0.5:
        forms = (["Please spell the number {a} in words."] if held else
                 ["Write {a} in words.", "How do you write {a} in words?", "Spell out the number {a}.",
                  "{a} in words?"])
        return Turn(rng.choice(forms).format(a=x), f"{x} in words is {number_word(x)}.", number_word(x),
                    f"{x} is {number_word(x)}.", "number_word", fixed=True)
    forms = (["Please give {a} in digits."] if held else
             ["Write {a} as a number.", "Write {a} in digits.", "{a} in digits?",
              "Which number is {a}?"])
    return Turn(the(rng.choice(forms).format(a=number_word(x))), f"{the(number_word(x))} is {x}.", str(x),
                f"{number_word(x)} is {x}.", "number_word", fixed=True)


def story_turn(rng, held=False):
    """A word problem of one step."""
    girl = rng.random() < 0.5
    name = rng.choice(NAMES_F if girl else NAMES_M)
    she = "she" if girl else "he"
    x, y = rng.randint(2, 20), rng.randint(1, 15)
    thing = rng.choice(["apples", "books", "coins", "eggs", "balls", "cards", "flowers", "stones",
                        "pencils", "sweets"])
    if rng.random() < 0.5 or y >= x:
        verbs = ["gets"] if held else ["buys", "finds", "wins"]
        text = f"{name} has {x} {thing} and {rng.choice(verbs)} {y} more. "
        op, result = "+", x + y
    else:
        verbs = ["gives away"] if held else ["loses", "sells", "eats" if thing in ("apples", "eggs",
                                                                                  "sweets") else "drops"]
        text = f"{name} has {x} {thing} and {rng.choice(verbs)} {y} of them. "
        op, result = "-", x - y
    forms = ([f"How many {thing} are there now?"] if held else
             [f"How many {thing} does {she} have now?", f"How many {thing} does {name} have?",
              f"How many {thing} has {she} now?"])
    return Turn(text + rng.choice(forms), f"{name} has {result} {thing}.", str(result),
                f"{name} starts with {x} {thing}. {x} {op} {y} = {result}.", "word_problem", fixed=True)


def double_turn(rng, held=False):
    """Half, double, half of it, one more."""
    x = rng.randint(1, 50)
    name, value, text = rng.choice([
        ("double", 2 * x, f"{x} * 2 = {2 * x}"), ("twice", 2 * x, f"{x} * 2 = {2 * x}"),
        ("half of", x, f"{2 * x} / 2 = {x}"), ("one more than", x + 1, f"{x} + 1 = {x + 1}"),
        ("one less than", x - 1, f"{x} - 1 = {x - 1}")])
    asked = 2 * x if name == "half of" else x
    forms = ["Tell me {n} {a}."] if held else ["What is {n} {a}?", "How much is {n} {a}?", "{n} {a}?"]
    return Turn(the(rng.choice(forms).format(n=name, a=asked)), f"{the(name)} {asked} is {value}.",
                str(value), f"{text}.", "double", fixed=True)


TURNS = [(add_turn, 4), (add_small_turn, 2), (add_large_turn, 1), (sub_turn, 3), (sub_large_turn, 0.8),
         (sub_negative_turn, 0.5), (percent_turn, 0.7), (mul_turn, 2.5),
         (mul_large_turn, 1.2), (div_turn, 1.2), (three_turn, 0.8), (compare_turn, 0.8),
         (parity_turn, 0.5), (sequence_turn, 0.8), (word_turn, 0.8), (story_turn, 1.5),
         (double_turn, 0.8)]
