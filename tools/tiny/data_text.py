"""Work on text: change it, count it, list things, read a few sentences and answer about them."""

from sample import Turn, a, join_and, number_word, the, type_like_a_person
from tables import (ADJECTIVES, ANIMALS, CITIES, COMMON, FOODS, HOBBIES, LISTS, NAMES, NOUNS, PAST, PET_NAMES,
                    PETS, PLURALS, VERBS)

_WORDS = sorted({w for w in NOUNS + ADJECTIVES + COMMON + [x["name"] for x in ANIMALS] +
                 [p for pair in PLURALS for p in pair] + [w for items in LISTS.values() for w in items]
                 if w.isalpha() and w.islower()})


def sentence(rng):
    """A short plain sentence without its full stop."""
    name, verb = rng.choice(NAMES), rng.choice(VERBS)
    noun, adjective = rng.choice(NOUNS), rng.choice(ADJECTIVES)
    forms = [f"{name} {verb[1]} the {adjective} {noun}", f"the {adjective} {noun} is here",
             f"{name} {verb[2]} {a(noun)}", f"I {verb[0]} the {noun}", f"we {verb[2]} the {adjective} {noun}",
             f"the {noun} is {adjective}", f"{name} lives in {rng.choice(CITIES)}",
             f"I like {rng.choice(PLURALS)[1]}", f"we want {rng.choice(PLURALS)[1]} and {rng.choice(PLURALS)[1]}",
             " ".join(rng.choice(COMMON) for _ in range(rng.randint(2, 3))),
             f"my {noun} is {adjective} and {rng.choice(ADJECTIVES)}", f"{name} and {rng.choice(NAMES)} "
             f"{verb[0]} the {noun}"]
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


def _task(rng, forms, text, held_forms, held):
    """Put the text into an instruction, quoted or after a colon."""
    form = rng.choice(held_forms if held else forms)
    return form.format(t=text)


def upper_turn(rng, held=False):
    text = sentence(rng) if rng.random() < 0.6 else " ".join(_words(rng, 1, 4))
    question = _task(rng, ["Write in upper case: {t}", "Upper case: {t}", "Make this upper case: {t}",
                           "Write \"{t}\" in capital letters.", "Write this in capitals: {t}",
                           "Convert to upper case: {t}", "Put \"{t}\" in upper case."], text,
                     ["Please turn this into capital letters: {t}"], held)
    return Turn(question, text.upper(), text.upper(), "I write every letter as a capital.", "upper",
                fixed=True)


def lower_turn(rng, held=False):
    text = (sentence(rng) if rng.random() < 0.6 else " ".join(_words(rng, 1, 4)))
    shown = text.upper() if rng.random() < 0.5 else text.title()
    question = _task(rng, ["Write in lower case: {t}", "Lower case: {t}", "Make this lower case: {t}",
                           "Convert to lower case: {t}", "Write \"{t}\" in small letters."], shown,
                     ["Please turn this into small letters: {t}"], held)
    return Turn(question, text.lower(), text.lower(), "I write every letter small.", "lower", fixed=True)


def reverse_turn(rng, held=False):
    words = _words(rng, 2, 5)
    text, answer = " ".join(words), " ".join(reversed(words))
    question = _task(rng, ["Reverse the order of the words: {t}", "Reverse the words: {t}",
                           "Write the words in reverse order: {t}", "Turn around the order of: {t}",
                           "Say \"{t}\" backwards, word by word."], text,
                     ["Please put these words into the opposite order: {t}"], held)
    return Turn(question, answer, answer, f"From the last word to the first: {answer}.", "reverse",
                fixed=True)


def repeat_turn(rng, held=False):
    r = rng.random()
    if r < 0.4:
        text = sentence(rng)
    elif r < 0.7:
        text = " ".join(_words(rng, 1, 4))
    else:
        text = " ".join(_odd_word(rng) for _ in range(rng.randint(1, 4)))
    question = _task(rng, ["Repeat after me: {t}", "Repeat: {t}", "Say: {t}", "Write this again: {t}",
                           "Repeat this sentence: {t}", "Say \"{t}\".", "Copy this: {t}"], text,
                     ["Please say exactly this: {t}"], held)
    return Turn(question, text, text, "I repeat the text.", "repeat", fixed=True)


def times_turn(rng, held=False):
    word, n = rng.choice(_WORDS), rng.randint(2, 5)
    forms = (["Please write the word {w} {n} times."] if held else
             ["Say {w} {n} times.", "Write {w} {n} times.", "Repeat the word {w} {n} times.",
              "Write \"{w}\" {n} times."])
    count = rng.choice([str(n), number_word(n)])
    answer = " ".join([word] * n)
    return Turn(rng.choice(forms).format(w=word, n=count), answer, answer,
                f"I write {word} {n} times.", "times", fixed=True)


def plural_turn(rng, held=False):
    one, many = rng.choice(PLURALS)
    forms = (["How do I write more than one {x}?", "I need the plural form of {x}."] if held else
             ["What is the plural of {x}?", "Plural of {x}?", "Give me the plural of {x}.",
              "What is the plural form of {x}?", "One {x}, two ...?", "Make {x} plural.",
              "Write the plural of \"{x}\"."])
    return Turn(type_like_a_person(rng, rng.choice(forms).format(x=one), held),
                f"The plural of {one} is {many}.", many,
                f"The user wants the plural of {one}. It is {many}.", "plural")


def past_turn(rng, held=False):
    now, past = rng.choice(PAST)
    if rng.random() < 0.25:
        forms = ["Which verb has the past tense {y}?"] if held else [
            "{y} is the past tense of which verb?", "What is the present of {y}?",
            "What is the base form of {y}?"]
        return Turn(type_like_a_person(rng, rng.choice(forms).format(y=past), held),
                    f"{the(past)} is the past tense of {now}.", now,
                    f"The base form of {past} is {now}.", "past")
    forms = (["I need the past form of {x}."] if held else
             ["What is the past tense of {x}?", "Past tense of {x}?", "Give me the past tense of {x}.",
              "What is the past of {x}?", "Put {x} into the past tense.", "Today I {x}, yesterday I ...?",
              "What is the simple past of {x}?"])
    return Turn(type_like_a_person(rng, rng.choice(forms).format(x=now), held),
                f"The past tense of {now} is {past}.", past,
                f"The user wants the past tense of {now}. It is {past}.", "past")


def tense_turn(rng, held=False):
    """A sentence into the past."""
    name, verb, noun = rng.choice(NAMES), rng.choice(VERBS), rng.choice(NOUNS)
    forms = (["Please tell this as if it was yesterday: {t}"] if held else
             ["Put this into the past tense: {t}", "Write in the past tense: {t}",
              "Change to past tense: {t}"])
    answer = f"{name} {verb[2]} the {noun}."
    return Turn(rng.choice(forms).format(t=f"{name} {verb[1]} the {noun}."), answer, answer,
                f"The past of {verb[1]} is {verb[2]}.", "tense", fixed=True)


def replace_turn(rng, held=False):
    """Swap one word of a sentence."""
    old, new = rng.sample(NOUNS, 2)
    adjective, name, verb = rng.choice(ADJECTIVES), rng.choice(NAMES), rng.choice(VERBS)
    text = f"{name} {verb[1]} the {adjective} {old}."
    forms = (["In this sentence, put {n} in place of {o}: {t}"] if held else
             ["Replace {o} with {n}: {t}", "Replace the word {o} by {n}: {t}", "Change {o} to {n}: {t}"])
    answer = f"{name} {verb[1]} the {adjective} {new}."
    return Turn(rng.choice(forms).format(o=old, n=new, t=text), answer, answer,
                f"I write {new} instead of {old}.", "replace", fixed=True)


def count_words_turn(rng, held=False):
    words = _words(rng, 1, 7)
    forms = (["Count how many words this has: {t}"] if held else
             ["How many words are in this: {t}", "Count the words: {t}", "How many words: {t}",
              "How many words are there in \"{t}\"?"])
    n = len(words)
    answer = "There is one word." if n == 1 else f"There are {number_word(n)} words."
    steps = ", ".join(f"{i + 1} {w}" for i, w in enumerate(words))
    return Turn(rng.choice(forms).format(t=" ".join(words)), answer, number_word(n),
                f"I count: {steps}.", "count_words", fixed=True)


def pick_turn(rng, held=False):
    """First, last or second word."""
    words = _words(rng, 2, 6)
    which, word = rng.choice([("first", words[0]), ("last", words[-1]), ("second", words[1])])
    forms = (["Tell me the {w} of these words: {t}"] if held else
             ["What is the {w} word of: {t}", "What is the {w} word in \"{t}\"?",
              "Give me the {w} word: {t}", "Which word comes {w}: {t}"])
    return Turn(rng.choice(forms).format(w=which, t=" ".join(words)), f"The {which} word is {word}.", word,
                f"The {which} word is {word}.", "pick", fixed=True)


def sort_turn(rng, held=False):
    words = rng.sample(_WORDS, rng.randint(2, 4))
    forms = (["Please bring these words into alphabetical order: {t}"] if held else
             ["Sort alphabetically: {t}", "Sort these words: {t}", "Put in alphabetical order: {t}"])
    answer = ", ".join(sorted(words))
    return Turn(rng.choice(forms).format(t=", ".join(words)), answer, answer,
                f"In the order of the alphabet: {answer}.", "sort", fixed=True)


def sort_numbers_turn(rng, held=False):
    nums = rng.sample(range(1, 100), rng.randint(3, 5))
    down = rng.random() < 0.3
    order = "from largest to smallest" if down else "from smallest to largest"
    forms = (["Please order these numbers {o}: {t}"] if held else
             ["Sort {o}: {t}", "Sort these numbers {o}: {t}", "Put these numbers in order {o}: {t}"])
    answer = ", ".join(map(str, sorted(nums, reverse=down)))
    return Turn(rng.choice(forms).format(o=order, t=", ".join(map(str, nums))), answer, answer,
                f"I order them {order}.", "sort_numbers", fixed=True)


def spell_turn(rng, held=False):
    word = rng.choice(_WORDS)
    forms = (["Please tell me the letters of the word {w}."] if held else
             ["Spell {w}.", "How do you spell {w}?", "Spell the word {w}.", "Spell \"{w}\".",
              "What are the letters of {w}?"])
    answer = "-".join(word.upper())
    return Turn(type_like_a_person(rng, rng.choice(forms).format(w=word), held), answer, answer,
                f"The letters of {word}: {answer}.", "spell", fixed=True)


def letters_turn(rng, held=False):
    """How many letters; the first or last letter."""
    word = rng.choice(_WORDS)
    spelled = "-".join(word.upper())
    kind = rng.randrange(3)
    if kind == 0:
        forms = ["Count the letters of {w}."] if held else ["How many letters does {w} have?",
                                                            "How many letters are in {w}?",
                                                            "How many letters has the word {w}?"]
        answer, short = f"The word {word} has {number_word(len(word))} letters.", number_word(len(word))
    elif kind == 1:
        forms = ["With which letter does {w} begin?"] if held else ["What is the first letter of {w}?",
                                                                    "First letter of {w}?"]
        short = word[0].upper()
        answer = f"The first letter of {word} is {short}."
    else:
        forms = ["With which letter does {w} end?"] if held else ["What is the last letter of {w}?",
                                                                  "Last letter of {w}?"]
        short = word[-1].upper()
        answer = f"The last letter of {word} is {short}."
    return Turn(rng.choice(forms).format(w=word), answer, short, f"{word} is {spelled}. {answer}", "letters")


def count_turn(rng, held=False):
    """Count up or down."""
    low = rng.choice([1, 1, 1, rng.randint(0, 80)])
    high = low + rng.randint(2, 12)
    if rng.random() < 0.3:
        forms = (["Please count backwards, beginning at {b}, until {a}."] if held else
                 ["Count down from {b} to {a}.", "Count backwards from {b} to {a}.",
                  "Count from {b} down to {a}."])
        numbers = range(high, low - 1, -1)
    else:
        forms = (["Please count, beginning at {a}, until {b}."] if held else
                 ["Count from {a} to {b}.", f"Count to {number_word(high)}." if low == 1 else
                  f"Count from {number_word(low)} to {number_word(high)}.", "Count to {b}." if low == 1 else "Count from {a} to {b}.",
                  "Count up from {a} to {b}.", "Write the numbers from {a} to {b}.",
                  "Can you count from {a} to {b}?", "List the numbers from {a} to {b}."])
        numbers = range(low, high + 1)
    answer = ", ".join(map(str, numbers))
    return Turn(type_like_a_person(rng, rng.choice(forms).format(a=low, b=high), held), answer, answer,
                "I count step by step.", "count", fixed=True)


_OTHER_NAMES = {"colours": ["colours", "colors"], "vegetables": ["vegetables", "kinds of vegetables"],
                "musical instruments": ["musical instruments", "instruments"], "jobs": ["jobs", "professions"],
                "parts of the body": ["parts of the body", "body parts"], "fruits": ["fruits", "kinds of fruit"],
                "clothes": ["clothes", "pieces of clothing"], "countries": ["countries", "nations"]}


def list_turn(rng, held=False):
    """Name three fruits - as a numbered list, bullets or a sentence."""
    name = rng.choice(sorted(LISTS))
    items = LISTS[name]
    n = rng.randint(2, min(6, len(items)))
    count = rng.choice([str(n), number_word(n)])
    style = rng.choice(["numbers", "numbers", "plain", "bullets"])
    if style == "numbers":
        forms = (["I need a list of {n} {x}."] if held else
                 ["List {n} {x}.", "Make a list of {n} {x}.", "Give me a list of {n} {x}.",
                  "Write a list with {n} {x}.", "Can you list {n} {x}?"])
        answer = "\n".join(f"{i + 1}. {w}" for i, w in enumerate(items[:n]))
    elif style == "plain":
        forms = (["I need the names of {n} {x}."] if held else
                 ["Name {n} {x}.", "Tell me {n} {x}.", "Say {n} {x}.", "What are {n} {x}?",
                  "Which {n} {x} do you know?"])
        answer = the(join_and(items[:n])) + "."
    else:
        forms = (["I need {n} {x} as bullet points."] if held else
                 ["List {n} {x} with bullets.", "Give me {n} {x} as bullet points.",
                  "Write {n} {x} as a bullet list."])
        answer = "\n".join(f"- {w}" for w in items[:n])
    asked = rng.choice(_OTHER_NAMES.get(name, [name]))
    return Turn(type_like_a_person(rng, rng.choice(forms).format(n=count, x=asked), held), answer, "",
                f"The user wants {n} {name}. I write {n} of them.", "list", fixed=style != "plain")


def member_turn(rng, held=False):
    """What is a carrot? Which of these is a fruit?"""
    name = rng.choice([k for k in sorted(LISTS) if k in _SINGULAR])
    item = rng.choice([w for w in LISTS[name] if w != "orange"])  # a fruit and a colour
    if rng.random() < 0.5:
        other = rng.choice([k for k in _SINGULAR if not set(LISTS[k]) & set(LISTS[name])])
        wrong = [w for w in LISTS[other] if w not in LISTS[name]]
        options = rng.sample(wrong, 2) + [item]
        rng.shuffle(options)
        forms = (["Among {t}, which one is {s}?"] if held else
                 ["Which of these is {s}: {t}?", "Which one is {s}: {t}?", "Find the one that is {s}: {t}."])
        question = rng.choice(forms).format(s=a(_SINGULAR[name]), t=join_and(options).replace(" and ", " or "))
        return Turn(question, f"{the(item)} is {a(_SINGULAR[name])}.", item,
                    f"I look for {a(_SINGULAR[name])}. It is {item}.", "member")
    forms = (["To what kind of thing does the word {w} belong?"] if held else
             ["What kind of thing is {w}?", "What sort of thing is {w}?", "What is the group of {w}?"])
    return Turn(type_like_a_person(rng, rng.choice(forms).format(w=item), held),
                f"{the(item)} is {a(_SINGULAR[name])}.", _SINGULAR[name],
                f"{item} is {a(_SINGULAR[name])}.", "member")


_SINGULAR = {"fruits": "fruit", "vegetables": "vegetable", "colours": "colour", "metals": "metal",
             "musical instruments": "musical instrument", "sports": "sport", "jobs": "job",
             "drinks": "drink", "tools": "tool", "trees": "tree", "flowers": "flower",
             "vehicles": "vehicle", "languages": "language", "countries": "country"}


def reading_turn(rng, held=False):
    """Two to four facts about people, and a question about one of them."""
    kind = rng.randrange(5)
    people = rng.sample(NAMES, rng.randint(2, 4))
    if kind == 0:
        values = rng.sample(CITIES, len(people))
        says, asks, answer = "{n} lives in {v}.", ["Where does {n} live?", "In which city does {n} live?",
                                                   "What is the home of {n}?"], "{n} lives in {v}."
        back = "Who lives in {v}?"
    elif kind == 1:
        values = rng.sample(FOODS, len(people))
        says, asks, answer = "{n} likes {v}.", ["What does {n} like?", "Which food does {n} like?",
                                                "What is liked by {n}?"], "{n} likes {v}."
        back = "Who likes {v}?"
    elif kind == 2:
        values = [str(rng.randint(4, 90)) for _ in people]
        says, asks, answer = "{n} is {v} years old.", ["How old is {n}?", "What is the age of {n}?",
                                                       "Which age has {n}?"], "{n} is {v} years old."
        back = None
    elif kind == 3:
        values = [f"{p} called {q}" for p, q in zip(rng.sample(PETS, len(people)),
                                                   rng.sample(PET_NAMES, len(people)))]
        says, asks, answer = "{n} has a {v}.", ["Which animal does {n} have?", "What does {n} have?",
                                                "Which pet has {n}?"], "{n} has a {v}."
        back = "Who has a {v}?"
    else:
        values = rng.sample(HOBBIES, len(people))
        says, asks, answer = "{n} enjoys {v}.", ["What does {n} enjoy?", "What is the hobby of {n}?",
                                                 "Which hobby has {n}?"], "{n} enjoys {v}."
        back = "Who enjoys {v}?"
    text = " ".join(says.format(n=n, v=v) for n, v in zip(people, values))
    i = rng.randrange(len(people))
    final = answer.format(n=people[i], v=values[i])
    if back and len(set(values)) == len(values) and rng.random() < 0.35 and not held:
        question, short = back.format(v=values[i]), people[i]
    else:
        question, short = (asks[-1] if held else rng.choice(asks[:-1])).format(n=people[i]), values[i]
    layout = rng.choice(["{t} {q}", "{t}\n{q}", "{q} {t}", "Text: {t}\nQuestion: {q}", "Read this: {t}\n{q}"])
    return Turn(layout.format(t=text, q=question), final, short, f"In the text I find: {final}", "reading")


def where_turn(rng, held=False):
    """Follow an object that moves; the last place counts."""
    name, thing = rng.choice(NAMES), rng.choice(["ball", "key", "book", "hat", "cup", "bag", "lamp"])
    places = rng.sample(["kitchen", "garden", "bedroom", "garage", "office", "hall", "cellar"],
                        rng.randint(1, 3))
    first = f"{name} puts the {thing} in the {places[0]}."
    moves = [f"Then {name} takes it to the {p}." for p in places[1:]]
    question = f"In which room can I find the {thing}?" if held else rng.choice(
        [f"Where is the {thing}?", f"Where is the {thing} now?"])
    answer = f"The {thing} is in the {places[-1]}."
    return Turn(" ".join([first] + moves + [question]), answer, places[-1],
                f"The last place of the {thing} is the {places[-1]}.", "where")


def summary_turn(rng, held=False):
    """One sentence out of two."""
    name, city, hobby = rng.choice(NAMES), rng.choice(CITIES), rng.choice(HOBBIES)
    text = f"{name} lives in {city}. {name} likes {hobby}."
    forms = (["Please make one sentence of this: {t}"] if held else
             ["Join these sentences: {t}", "Write this as one sentence: {t}", "Summarise: {t}",
              "Make this shorter: {t}"])
    answer = f"{name} lives in {city} and likes {hobby}."
    return Turn(rng.choice(forms).format(t=text), answer, answer, "I join both facts.", "summary")


def question_form_turn(rng, held=False):
    """Statement to question, or to its negative."""
    noun, adjective = rng.choice(NOUNS), rng.choice(ADJECTIVES)
    text = f"The {noun} is {adjective}."
    if rng.random() < 0.5:
        forms = ["Please form a question from this: {t}"] if held else ["Make a question: {t}",
                                                                       "Turn into a question: {t}"]
        answer = f"Is the {noun} {adjective}?"
    else:
        forms = ["Please say the negative of this: {t}"] if held else ["Make this negative: {t}",
                                                                      "Negate: {t}"]
        answer = f"The {noun} is not {adjective}."
    return Turn(rng.choice(forms).format(t=text), answer, answer, "I change the form of the sentence.",
                "form", fixed=True)


TURNS = [(upper_turn, 1), (lower_turn, 0.6), (reverse_turn, 1), (repeat_turn, 1.2), (times_turn, 0.5),
         (plural_turn, 1), (past_turn, 1.2), (tense_turn, 0.6), (replace_turn, 0.8),
         (count_words_turn, 0.6), (pick_turn, 0.7), (sort_turn, 0.6), (sort_numbers_turn, 0.6),
         (spell_turn, 1), (letters_turn, 0.8), (count_turn, 1.2), (list_turn, 2), (member_turn, 0.8),
         (reading_turn, 2), (where_turn, 0.8), (summary_turn, 0.5), (question_form_turn, 0.5)]
