"""Work on text: change it, count it, list things, read a few sentences and answer about them."""

from phrase import Phrases, draw_pair, is_held, typed
from sample import Turn, a, join_and, number_word, the
from tables import (ADJECTIVES, ANIMALS, CITIES, COMMON, FOODS, HOBBIES, LISTS, NAMES, NOUNS, PAST,
                    PET_NAMES, PETS, PLURALS, VERBS)

_WORDS = sorted({
    w
    for w in NOUNS + ADJECTIVES + COMMON + [x["name"] for x in ANIMALS] +
    [p for pair in PLURALS for p in pair] + [w for items in LISTS.values() for w in items]
    if w.isalpha() and w.islower()
})


def sentence(rng):
    """A short plain sentence without its full stop."""
    name, verb = rng.choice(NAMES), rng.choice(VERBS)
    noun, adjective = rng.choice(NOUNS), rng.choice(ADJECTIVES)
    forms = [
        f"{name} {verb[1]} the {adjective} {noun}", f"the {adjective} {noun} is here",
        f"{name} {verb[2]} {a(noun)}", f"I {verb[0]} the {noun}",
        f"we {verb[2]} the {adjective} {noun}", f"the {noun} is {adjective}",
        f"{name} lives in {rng.choice(CITIES)}", f"I like {rng.choice(PLURALS)[1]}",
        f"we want {rng.choice(PLURALS)[1]} and {rng.choice(PLURALS)[1]}",
        " ".join(rng.choice(COMMON) for _ in range(rng.randint(2, 3))),
        f"my {noun} is {adjective} and {rng.choice(ADJECTIVES)}", f"{name} and {rng.choice(NAMES)} "
        f"{verb[0]} the {noun}"
    ]
    return rng.choice(forms)


def _words(rng, low=2, high=5):
    return [rng.choice(_WORDS) for _ in range(rng.randint(low, high))]


def _odd_word(rng):
    """Something that has to be copied letter by letter: a number, a made-up word, a code."""
    letters = "abcdefghijklmnopqrstuvwxyz"
    r = rng.random()
    if r < 0.4:
        return str(rng.randint(0, 99999))
    if r < 0.8:
        return "".join(rng.choice(letters) for _ in range(rng.randint(2, 7)))
    return rng.choice(letters).upper() + str(rng.randint(1, 999))


def _exact(rng, phrases, held, fields, answer, thought, kind, short=None):
    """A turn whose letters matter, in the question as in the answer."""
    return Turn(the(phrases.pick(rng, held).format(**fields)),
                answer,
                short or answer,
                thought,
                kind,
                fixed=True)


_UPPER = Phrases([
    "Write in upper case: {t}", "Upper case: {t}", "Make this uppercase: {t}", "{t} in capitals?",
    "Write \"{t}\" in capital letters."
],
                 tasks=[
                     "write in upper case", "make this upper case", "convert to upper case",
                     "make it uppercase", "put this in capital letters",
                     "turn this into capital letters", "write this in capitals",
                     "change this to upper case"
                 ])
_LOWER = Phrases(["Write in lower case: {t}", "Lower case: {t}", "Make this lowercase: {t}"],
                 tasks=[
                     "write in lower case", "make this lower case", "convert to lower case",
                     "make it lowercase", "put this in small letters",
                     "turn this into small letters", "change this to lower case"
                 ])
_REVERSE = Phrases([
    "Reverse the words: {t}", "Reverse the order of the words: {t}",
    "Say \"{t}\" backwards, word by word."
],
                   tasks=[
                       "reverse the words", "reverse the order of the words",
                       "write the words in reverse order", "turn the order of the words around",
                       "write the words backwards", "put the words in the opposite order"
                   ])
_REPEAT = Phrases(
    ["Repeat after me: {t}", "Repeat: {t}", "Say: {t}", "Say \"{t}\".", "Copy this: {t}"],
    tasks=[
        "repeat this", "say this", "write this again", "copy this text", "repeat these words",
        "say exactly this", "write exactly this"
    ])
_TENSE = Phrases(["Put this into the past tense: {t}", "Past tense: {t}"],
                 tasks=[
                     "put this into the past tense", "write this in the past tense",
                     "change this to past tense", "tell this as if it was yesterday",
                     "turn this into the past"
                 ])
_COUNT_WORDS = Phrases([
    "How many words are in this: {t}", "How many words: {t}", "How many words are there in \"{t}\"?"
],
                       tasks=[
                           "count the words", "count how many words this has",
                           "tell me the number of words", "say how many words are in this"
                       ])
_SORT = Phrases(["Sort alphabetically: {t}", "Sort these words: {t}"],
                tasks=[
                    "sort alphabetically", "sort these words",
                    "put these words in alphabetical order", "order these words by the alphabet",
                    "bring these words into alphabetical order"
                ])
_JOIN = Phrases(["Join these sentences: {t}", "Summarise: {t}", "Make this shorter: {t}"],
                tasks=[
                    "join these sentences", "write this as one sentence",
                    "make one sentence of this", "summarise this", "make this shorter"
                ])
_QUESTION = Phrases(["Make a question: {t}"],
                    tasks=[
                        "make a question", "turn this into a question", "form a question from this",
                        "write this as a question"
                    ])
_NEGATE = Phrases(["Negate: {t}"],
                  tasks=[
                      "make this negative", "negate this", "say the negative of this",
                      "write the negative form"
                  ])


def upper_turn(rng, held=False):
    text = sentence(rng) if rng.random() < 0.6 else " ".join(_words(rng, 1, 4))
    return _exact(rng, _UPPER, held, dict(t=text), text.upper(),
                  "I write every letter as a capital.", "upper")


def lower_turn(rng, held=False):
    text = (sentence(rng) if rng.random() < 0.6 else " ".join(_words(rng, 1, 4)))
    shown = text.upper() if rng.random() < 0.5 else text.title()
    return _exact(rng, _LOWER, held, dict(t=shown), text.lower(), "I write every letter small.",
                  "lower")


def reverse_turn(rng, held=False):
    words = _words(rng, 2, 5) if rng.random() < 0.7 else sentence(rng).split()
    answer = " ".join(reversed(words))
    return _exact(rng, _REVERSE, held, dict(t=" ".join(words)), answer,
                  f"From the last word to the first: {answer}.", "reverse")


def repeat_turn(rng, held=False):
    r = rng.random()
    if r < 0.4:
        text = sentence(rng)
    elif r < 0.7:
        text = " ".join(_words(rng, 1, 4))
    else:
        text = " ".join(_odd_word(rng) for _ in range(rng.randint(1, 4)))
    return _exact(rng, _REPEAT, held, dict(t=text), text, "I repeat the text.", "repeat")


_TIMES = Phrases(["Say {w} {n} times.", "Write {w} {n} times.", "Repeat the word {w} {n} times."],
                 commands=[
                     "say {w} {n} times", "write {w} {n} times", "write the word {w} {n} times",
                     "repeat {w} {n} times", "say the word {w} {n} times"
                 ])


def times_turn(rng, held=False):
    word, n = rng.choice(_WORDS), rng.randint(2, 5)
    count = rng.choice([str(n), number_word(n)])
    return _exact(rng, _TIMES, held, dict(w=word, n=count), " ".join([word] * n),
                  f"I write {word} {n} times.", "times")


_PLURAL = Phrases(
    [
        "What is the plural of {x}?", "Plural of {x}?", "One {x}, two ...?", "Make {x} plural.",
        "Write the plural of \"{x}\".", "How do I write more than one {x}?"
    ],
    nouns=["the plural of {x}", "the plural form of {x}", "the plural of the word {x}"],
    clauses=["what the plural of {x} is", "how to write more than one {x}"])


def plural_turn(rng, held=False):
    one, many = rng.choice(PLURALS)
    form = _PLURAL.pick(rng, held)
    return Turn(typed(rng, the(form.format(x=one)), form, held), f"The plural of {one} is {many}.",
                many, f"The user wants the plural of {one}. It is {many}.", "plural")


_PAST = Phrases([
    "What is the past tense of {x}?", "Past tense of {x}?", "What is the past of {x}?",
    "Put {x} into the past tense.", "Today I {x}, yesterday I ...?"
],
                nouns=[
                    "the past tense of {x}", "the past of {x}", "the past form of {x}",
                    "the simple past of {x}"
                ],
                clauses=["what the past tense of {x} is"])
_PRESENT = Phrases(
    ["{y} is the past tense of which verb?", "What is the present of {y}?"],
    nouns=["the present of {y}", "the base form of {y}", "the verb with the past tense {y}"],
    clauses=["which verb has the past tense {y}"])


def past_turn(rng, held=False):
    now, past = rng.choice(PAST)
    if rng.random() < 0.25:
        form = _PRESENT.pick(rng, held)
        return Turn(typed(rng, the(form.format(y=past)), form,
                          held), f"{the(past)} is the past tense of {now}.", now,
                    f"The base form of {past} is {now}.", "past")
    form = _PAST.pick(rng, held)
    return Turn(typed(rng, the(form.format(x=now)), form,
                      held), f"The past tense of {now} is {past}.", past,
                f"The user wants the past tense of {now}. It is {past}.", "past")


def tense_turn(rng, held=False):
    """A sentence into the past."""
    name, verb, noun = rng.choice(NAMES), rng.choice(VERBS), rng.choice(NOUNS)
    return _exact(rng, _TENSE, held, dict(t=f"{name} {verb[1]} the {noun}."),
                  f"{name} {verb[2]} the {noun}.", f"The past of {verb[1]} is {verb[2]}.", "tense")


_REPLACE = Phrases(["Replace {o} with {n}: {t}", "Change {o} to {n}: {t}"],
                   tasks=[
                       "replace {o} with {n}", "replace the word {o} by {n}", "change {o} to {n}",
                       "put {n} in place of {o}", "write {n} instead of {o}"
                   ])


def replace_turn(rng, held=False):
    """Swap one word of a sentence."""
    old, new = rng.sample(NOUNS, 2)
    adjective, name, verb = rng.choice(ADJECTIVES), rng.choice(NAMES), rng.choice(VERBS)
    text = f"{name} {verb[1]} the {adjective} {old}."
    return _exact(rng, _REPLACE, held, dict(o=old, n=new,
                                            t=text), f"{name} {verb[1]} the {adjective} {new}.",
                  f"I write {new} instead of {old}.", "replace")


def count_words_turn(rng, held=False):
    words = _words(rng, 1, 7)
    n = len(words)
    answer = "There is one word." if n == 1 else f"There are {number_word(n)} words."
    steps = ", ".join(f"{i + 1} {w}" for i, w in enumerate(words))
    return _exact(rng, _COUNT_WORDS, held, dict(t=" ".join(words)), answer, f"I count: {steps}.",
                  "count_words", number_word(n))


_PICK = Phrases([
    "What is the {w} word of: {t}", "What is the {w} word in \"{t}\"?", "Which word comes {w}: {t}"
],
                tasks=[
                    "give me the {w} word", "tell me the {w} word", "find the {w} word",
                    "write the {w} word", "say which word is the {w}"
                ])


def pick_turn(rng, held=False):
    """First, last or second word."""
    words = _words(rng, 2, 6)
    which, word = rng.choice([("first", words[0]), ("last", words[-1]), ("second", words[1])])
    return _exact(rng, _PICK, held, dict(w=which, t=" ".join(words)),
                  f"The {which} word is {word}.", f"The {which} word is {word}.", "pick", word)


def sort_turn(rng, held=False):
    words = rng.sample(_WORDS, rng.randint(2, 4))
    answer = ", ".join(sorted(words))
    return _exact(rng, _SORT, held, dict(t=", ".join(words)), answer,
                  f"In the order of the alphabet: {answer}.", "sort")


_SORT_NUMBERS = Phrases(["Sort {o}: {t}", "Sort these numbers {o}: {t}"],
                        tasks=[
                            "sort {o}", "sort these numbers {o}", "put these numbers in order {o}",
                            "order these numbers {o}"
                        ])


def sort_numbers_turn(rng, held=False):
    nums = rng.sample(range(1, 100), rng.randint(3, 5))
    down = rng.random() < 0.3
    order = "from largest to smallest" if down else "from smallest to largest"
    answer = ", ".join(map(str, sorted(nums, reverse=down)))
    return _exact(rng, _SORT_NUMBERS, held, dict(o=order, t=", ".join(map(str, nums))), answer,
                  f"I order them {order}.", "sort_numbers")


_SPELL = Phrases(["Spell {w}.", "How do you spell {w}?", "Spell the word {w}.", "Spell \"{w}\"."],
                 nouns=["the letters of {w}", "the letters of the word {w}", "the spelling of {w}"],
                 clauses=["how to spell {w}", "how {w} is spelled"],
                 commands=["spell {w}", "spell the word {w}"])


def spell_turn(rng, held=False):
    word = rng.choice(_WORDS)
    answer = "-".join(word.upper())
    form = _SPELL.pick(rng, held)
    return Turn(typed(rng, the(form.format(w=word)), form, held),
                answer,
                answer,
                f"The letters of {word}: {answer}.",
                "spell",
                fixed=True)


_LETTERS = [
    Phrases([
        "How many letters does {w} have?", "How many letters are in {w}?",
        "How many letters has {w}?"
    ],
            nouns=["the number of letters in {w}", "the number of letters of {w}"],
            clauses=["how many letters {w} has", "how many letters are in {w}"],
            commands=["count the letters of {w}"]),
    Phrases([
        "What is the first letter of {w}?", "First letter of {w}?",
        "With which letter does {w} begin?"
    ],
            nouns=["the first letter of {w}", "the first letter of the word {w}"],
            clauses=["with which letter {w} begins"]),
    Phrases([
        "What is the last letter of {w}?", "Last letter of {w}?", "With which letter does {w} end?"
    ],
            nouns=["the last letter of {w}", "the last letter of the word {w}"],
            clauses=["with which letter {w} ends"])
]


def letters_turn(rng, held=False):
    """How many letters; the first or last letter."""
    word, kind = rng.choice(_WORDS), rng.randrange(3)
    short = [number_word(len(word)), word[0].upper(), word[-1].upper()][kind]
    answer = [
        f"The word {word} has {short} letters.", f"The first letter of {word} is {short}.",
        f"The last letter of {word} is {short}."
    ][kind]
    form = _LETTERS[kind].pick(rng, held)
    return Turn(the(form.format(w=word)), answer, short,
                f"{word} is {'-'.join(word.upper())}. {answer}", "letters")


_COUNT = Phrases([
    "Count from {a} to {b}.", "Write the numbers from {a} to {b}.", "Can you count from {a} to {b}?"
],
                 nouns=["the numbers from {a} to {b}"],
                 clauses=["how to count from {a} to {b}"],
                 commands=[
                     "count from {a} to {b}", "count up from {a} to {b}",
                     "list the numbers from {a} to {b}"
                 ])
_COUNT_TO = Phrases(["Count to {b}.", "Count from 1 to {b}.", "Can you count to {b}?"],
                    nouns=["the numbers up to {b}"],
                    clauses=["how to count to {b}"],
                    commands=["count to {b}", "count up to {b}"])
_COUNT_DOWN = Phrases(["Count down from {b} to {a}.", "Count backwards from {b} to {a}."],
                      nouns=["the numbers from {b} down to {a}"],
                      commands=["count down from {b} to {a}", "count backwards from {b} to {a}"])


def count_turn(rng, held=False):
    """Count up or down, with digits or words in the question."""
    low = rng.choice([1, 1, 1, rng.randint(0, 80)])
    high = low + rng.randint(2, 12)
    down = rng.random() < 0.3
    phrases = _COUNT_DOWN if down else _COUNT_TO if low == 1 and rng.random() < 0.5 else _COUNT
    numbers = range(high, low - 1, -1) if down else range(low, high + 1)
    names = (number_word(low), number_word(high)) if rng.random() < 0.25 else (low, high)
    form = phrases.pick(rng, held)
    return Turn(typed(rng, the(form.format(a=names[0], b=names[1])), form, held),
                ", ".join(map(str, numbers)),
                "",
                "I count step by step.",
                "count",
                fixed=True)


_OTHER_NAMES = {
    "colours": ["colours", "colors"],
    "vegetables": ["vegetables", "kinds of vegetables"],
    "musical instruments": ["musical instruments", "instruments"],
    "jobs": ["jobs", "professions"],
    "parts of the body": ["parts of the body", "body parts"],
    "fruits": ["fruits", "kinds of fruit"],
    "clothes": ["clothes", "pieces of clothing"],
    "countries": ["countries", "nations"]
}

_LIST = {
    "numbers": Phrases(
        ["List {n} {x}.", "Make a list of {n} {x}.", "Give me a list of {n} {x}."],
        nouns=["a list of {n} {x}", "a list with {n} {x}"],
        commands=["list {n} {x}", "make a list of {n} {x}", "write a list of {n} {x}"]),
    "plain": Phrases(
        ["Name {n} {x}.", "Tell me {n} {x}.", "What are {n} {x}?", "Which {n} {x} do you know?"],
        nouns=["{n} {x}", "the names of {n} {x}"],
        commands=["name {n} {x}"]),
    "bullets": Phrases(["List {n} {x} with bullets.", "{n} {x} as bullet points."],
                       nouns=["{n} {x} as bullet points", "a bullet list of {n} {x}"],
                       commands=["list {n} {x} with bullets", "write {n} {x} as bullet points"])
}


def list_turn(rng, held=False):
    """Name three fruits - as a numbered list, bullets or a sentence."""
    name = rng.choice(sorted(LISTS))
    items = LISTS[name]
    n = rng.randint(2, min(6, len(items)))
    style = rng.choice(["numbers", "numbers", "plain", "bullets"])
    answer = {
        "numbers": "\n".join(f"{i + 1}. {w}" for i, w in enumerate(items[:n])),
        "plain": the(join_and(items[:n])) + ".",
        "bullets": "\n".join(f"- {w}" for w in items[:n])
    }[style]
    form = _LIST[style].pick(rng, held)
    fields = dict(n=rng.choice([str(n), number_word(n)]),
                  x=rng.choice(_OTHER_NAMES.get(name, [name])))
    return Turn(typed(rng, the(form.format(**fields)), form, held),
                answer,
                "",
                f"The user wants {n} {name}. I write {n} of them.",
                "list",
                fixed=style != "plain")


_WHICH_OF = Phrases(
    ["Which of these is {s}: {t}?", "Which one is {s}: {t}?", "Among {t}, which one is {s}?"],
    clauses=["which of these is {s}: {t}"],
    tasks=["find the one that is {s}", "say which is {s}"])
_THING = Phrases(
    ["What kind of thing is {w}?", "What sort of thing is {w}?", "What is the group of {w}?"],
    clauses=["what kind of thing {w} is", "what sort of thing {w} is"])


def member_turn(rng, held=False):
    """What is a carrot? Which of these is a fruit?"""
    name = rng.choice(sorted(_SINGULAR))
    item, one = rng.choice([w for w in LISTS[name]
                            if w != "orange"]), a(_SINGULAR[name])  # fruit and colour
    if rng.random() < 0.5:
        other = rng.choice([k for k in sorted(_SINGULAR) if not set(LISTS[k]) & set(LISTS[name])])
        options = rng.sample(LISTS[other], 2) + [item]
        rng.shuffle(options)
        text = join_and(options).replace(" and ", " or ")
        form = _WHICH_OF.pick(rng, held)
        return Turn(the(form.format(s=one, t=text)), f"{the(item)} is {one}.", item,
                    f"I look for {one}. It is {item}.", "member")
    form = _THING.pick(rng, held)
    return Turn(typed(rng, the(form.format(w=item)), form, held), f"{the(item)} is {one}.",
                _SINGULAR[name], f"{item} is {one}.", "member")


_SINGULAR = {
    "fruits": "fruit",
    "vegetables": "vegetable",
    "colours": "colour",
    "metals": "metal",
    "musical instruments": "musical instrument",
    "sports": "sport",
    "jobs": "job",
    "drinks": "drink",
    "tools": "tool",
    "trees": "tree",
    "flowers": "flower",
    "vehicles": "vehicle",
    "languages": "language",
    "countries": "country"
}

# kind: (values, statement, questions about the value, question about the person or None)
_READING = [
    (CITIES, "{n} lives in {v}.", [
        "Where does {n} live?", "In which city does {n} live?", "What is the home of {n}?",
        "Tell me where {n} lives."
    ], "Who lives in {v}?"),
    (FOODS, "{n} likes {v}.",
     ["What does {n} like?", "Which food does {n} like?",
      "Tell me what {n} likes."], "Who likes {v}?"),
    ([str(k) for k in range(4, 90)], "{n} is {v} years old.",
     ["How old is {n}?", "What is the age of {n}?", "Tell me how old {n} is."], None),
    ([f"{p} called {q}" for p in PETS for q in PET_NAMES], "{n} has a {v}.",
     ["Which animal does {n} have?", "What does {n} have?",
      "Which pet does {n} have?"], "Who has a {v}?"),
    (HOBBIES, "{n} enjoys {v}.",
     ["What does {n} enjoy?", "What is the hobby of {n}?",
      "Tell me what {n} enjoys."], "Who enjoys {v}?"),
    (NOUNS, "{n} sees a {v}.",
     ["What does {n} see?", "Which thing does {n} see?",
      "Tell me what {n} sees."], "Who sees a {v}?"),
]
_LAYOUTS = [
    "{t} {q}", "{t}\n{q}", "{q} {t}", "Text: {t}\nQuestion: {q}", "Read this: {t}\n{q}",
    "{t}\n\n{q}", "Here is a text. {t} {q}", "Question: {q}\nText: {t}",
    "I tell you something. {t} {q}"
]


def reading_turn(rng, held=False):
    """Two to four facts about people, and a question about one of them."""
    while True:
        values, says, asks, back = rng.choice(_READING)
        ask, layout = rng.choice(asks + ([back] if back else [])), rng.choice(_LAYOUTS)
        if is_held(ask + layout) == held:
            break
    people = rng.sample(NAMES, rng.randint(2, 4))
    values = rng.sample(values, len(people))
    text = " ".join(says.format(n=n, v=v) for n, v in zip(people, values))
    i = rng.randrange(len(people))
    final = says.format(n=people[i], v=values[i])
    return Turn(layout.format(t=text, q=ask.format(n=people[i], v=values[i])), final,
                people[i] if ask == back else values[i], f"In the text I find: {final}", "reading")


_WHERE = [
    "Where is the {x}?", "Where is the {x} now?", "In which room is the {x}?",
    "Tell me where the {x} is.", "In which room can I find the {x}?", "Where do I find the {x}?"
]
_MOVES = [
    "Then {n} takes it to the {p}.", "Then {n} brings it to the {p}.",
    "Later {n} carries it to the {p}.", "After that {n} takes it to the {p}."
]


def where_turn(rng, held=False):
    """Follow an object that moves; the last place counts."""
    name, thing = rng.choice(NAMES), rng.choice(
        ["ball", "key", "book", "hat", "cup", "bag", "lamp"])
    places = rng.sample(["kitchen", "garden", "bedroom", "garage", "office", "hall", "cellar"],
                        rng.randint(1, 3))
    ask, move = draw_pair(rng, _WHERE, _MOVES, held)
    text = [f"{name} puts the {thing} in the {places[0]}."
            ] + [move.format(n=name, p=p) for p in places[1:]]
    return Turn(" ".join(text + [ask.format(x=thing)]), f"The {thing} is in the {places[-1]}.",
                places[-1], f"The last place of the {thing} is the {places[-1]}.", "where")


def summary_turn(rng, held=False):
    """One sentence out of two."""
    name, city, hobby = rng.choice(NAMES), rng.choice(CITIES), rng.choice(HOBBIES)
    return _exact(rng, _JOIN, held, dict(t=f"{name} lives in {city}. {name} likes {hobby}."),
                  f"{name} lives in {city} and likes {hobby}.", "I join both facts.", "summary")


def question_form_turn(rng, held=False):
    """Statement to question, or to its negative."""
    noun, adjective = rng.choice(NOUNS), rng.choice(ADJECTIVES)
    ask = rng.random() < 0.5
    return _exact(rng, _QUESTION if ask else _NEGATE, held, dict(t=f"The {noun} is {adjective}."),
                  f"Is the {noun} {adjective}?" if ask else f"The {noun} is not {adjective}.",
                  "I change the form of the sentence.", "form")


TURNS = [(upper_turn, 1), (lower_turn, 0.6), (reverse_turn, 1), (repeat_turn, 1.2),
         (times_turn, 0.5), (plural_turn, 1), (past_turn, 1.2), (tense_turn, 0.6),
         (replace_turn, 0.8), (count_words_turn, 0.6), (pick_turn, 0.7), (sort_turn, 0.6),
         (sort_numbers_turn, 0.6), (spell_turn, 1), (letters_turn, 0.8), (count_turn, 1.2),
         (list_turn, 2), (member_turn, 0.8), (reading_turn, 2), (where_turn, 0.8),
         (summary_turn, 0.5), (question_form_turn, 0.5)]
