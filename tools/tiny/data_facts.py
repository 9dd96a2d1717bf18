"""Questions about the facts of tables.py, each in many phrasings.

Evaluation asks known facts in held-out sentences only (see phrase.py).
"""

from phrase import Phrases, draw_pair, lead, typed
from relations import BOTH_WAYS, CAPITAL, CONTINENT, CURRENCY, LANGUAGE, RELATIONS
from sample import Turn, a, join_and, the
from tables import (ANIMALS, COUNTRIES, FLYERS, MIXES, NO_FLYERS, NOUNS, OTHER_CITIES, PROPERTIES,
                    SIZES, TRANSLATIONS, UNITS, WORKS)
from trivia import TRIVIA

_DICTIONARY = []
for _language in ("French", "Spanish", "German", "Italian"):
    _DICTIONARY += [(r["English"] + "|" + _language, r[_language]) for r in TRANSLATIONS
                    if r["English"] != r[_language]]

_WEIGHTS = [r.weight for r in RELATIONS]


def relation_turn(rng, held=False):
    """One question from one relation."""
    return rng.choices(RELATIONS, _WEIGHTS)[0].turn(rng, held)


def relation_chain(rng):
    """A question and its elliptical follow-ups."""
    return rng.choices(RELATIONS, _WEIGHTS)[0].chain(rng)


_UNIT = Phrases(
    [
        "How many {of} are in {x}?", "How many {of} does {x} have?",
        "How many {of} are there in {x}?", "How many {of} make {x}?", "{x} has how many {of}?",
        "How many {of} in {x}?", "Number of {of} in {x}?", "How many {of} are {x}?"
    ],
    nouns=["the number of {of} in {x}"],
    clauses=["how many {of} are in {x}", "how many {of} make {x}", "how many {of} {x} has"])


def unit_turn(rng, held=False):
    """How many minutes are in an hour?"""
    u = rng.choice(UNITS)
    form = _UNIT.pick(rng, held)
    answer = f"There are {u['count']} {u['of']} in {u['unit']}."
    return Turn(typed(rng, the(form.format(x=u["unit"], of=u["of"])), form, held), answer,
                u["count"], f"The user asks about {u['unit']}. {answer}", "unit")


_UNIT_MANY = Phrases([
    "How many {of} are in {n} {x}?", "How many {of} are {n} {x}?", "{n} {x} are how many {of}?",
    "How many {of} do {n} {x} have?", "Convert {n} {x} to {of}."
],
                     nouns=["the number of {of} in {n} {x}"],
                     clauses=["how many {of} are in {n} {x}", "how many {of} {n} {x} are"],
                     commands=["convert {n} {x} to {of}"])


def unit_many_turn(rng, held=False):
    """How many minutes are in three hours?"""
    u = rng.choice([
        u for u in UNITS
        if int(u["count"]) <= 100 and u["unit"].split()[-1] in ("minute", "hour", "day", "week",
                                                                "year", "decade", "metre",
                                                                "centimetre", "yard")
    ])
    n = rng.randint(2, 9)
    unit, total = u["unit"].split()[-1] + "s", n * int(u["count"])
    form = _UNIT_MANY.pick(rng, held)
    return Turn(typed(rng, the(form.format(of=u["of"], n=n, x=unit)), form,
                      held), f"There are {total} {u['of']} in {n} {unit}.", str(total),
                f"There are {u['count']} {u['of']} in {u['unit']}. {n} * {u['count']} = {total}.",
                "unit_many")


_MIX = Phrases([
    "What colour do {x} and {y} make?", "What do you get if you mix {x} and {y}?",
    "Mix {x} and {y}. What colour is it?", "What color do {x} and {y} give?",
    "Which colour is a mix of {x} and {y}?", "{x} plus {y} gives which colour?"
],
               nouns=["the colour of {x} mixed with {y}", "the mix of {x} and {y}"],
               clauses=["what colour {x} and {y} make", "which colour I get from {x} and {y}"])


def mix_turn(rng, held=False):
    """Red and yellow make orange."""
    x, y, z = rng.choice(MIXES)
    if rng.random() < 0.5:
        x, y = y, x
    form = _MIX.pick(rng, held)
    return Turn(typed(rng, the(form.format(x=x, y=y)), form, held), f"{the(x)} and {y} make {z}.",
                z, f"The user mixes {x} and {y}. That makes {z}.", "mix")


_WORK = Phrases([
    "Who {v} {x}?", "Who {v} {x}? ", "By whom was {x} made?", "{x}: who {v} it?",
    "Which person {v} {x}?", "Who was it that {v} {x}?"
],
                nouns=["the person who {v} {x}", "the name of the person who {v} {x}"],
                clauses=["who {v} {x}"])


def work_turn(rng, held=False):
    """Who wrote, painted, composed, invented or discovered it?"""
    w = rng.choice(WORKS)
    verb, work, who = w["verb"], w["work"], w["who"]
    form = _WORK.pick(rng, held)
    return Turn(typed(rng,
                      the(form.format(v=verb, x=work)).strip(), form,
                      held), f"{who} {verb} {work}.", who,
                f"The user asks who {verb} {work}. It was {who}.", "work")


_WORK_OF = Phrases([
    "Who was {x}?", "Who is {x}?", "What did {x} do?", "What is {x} known for?",
    "Tell me about {x}.", "Why is {x} famous?", "What is {x} famous for?"
],
                   clauses=["who {x} was", "what {x} did", "why {x} is famous"])


def work_of_turn(rng, held=False):
    """Who was Homer?"""
    w = rng.choice([w for w in WORKS if w["who"] not in ("William Shakespeare", "Albert Einstein")])
    verb, work, who = w["verb"], w["work"], w["who"]
    form = _WORK_OF.pick(rng, held)
    return Turn(typed(rng, form.format(x=who), form, held), f"{who} {verb} {work}.", work,
                f"The user asks about {who}, who {verb} {work}.", "work_of")


_TRANSLATE = Phrases(
    [
        "How do you say {x} in {l}?", "What is {x} in {l}?", "Translate {x} into {l}.",
        "What is the {l} word for {x}?", "Translate \"{x}\" to {l}.",
        "How do I say \"{x}\" in {l}?", "Say {x} in {l}.", "{x} in {l}?",
        "What does {x} mean in {l}?", "The {l} for {x}?", "Which {l} word means {x}?"
    ],
    nouns=["the {l} word for {x}", "the {l} translation of {x}", "{x} in {l}"],
    clauses=["how to say {x} in {l}", "what {x} is in {l}", "how people say {x} in {l}"],
    commands=["translate {x} into {l}", "translate {x} to {l}", "say {x} in {l}"])


def translation_turn(rng, held=False):
    """How do you say 'water' in French?"""
    pair, word = rng.choice(_DICTIONARY)
    english, language = pair.split("|")
    form = _TRANSLATE.pick(rng, held)
    return Turn(typed(rng, the(form.format(x=english, l=language)), form,
                      held), f"In {language}, {english} is \"{word}\".", word,
                f"The user wants the {language} word for {english}. It is {word}.", "translation")


def no_translation_turn(rng, held=False):
    """Words that the small dictionary does not have."""
    known = {t["English"] for t in TRANSLATIONS}
    word = rng.choice([w for w in NOUNS if w not in known])
    language = rng.choice(
        ["French", "Spanish", "German", "Italian", "Chinese", "Russian", "Dutch", "Latin"])
    form = _TRANSLATE.pick(rng, held)
    return Turn(typed(rng, the(form.format(x=word, l=language)), form,
                      held), f"I am sorry, I do not know the {language} word for {word}.", "",
                f"The word {word} is not in my small dictionary.", "no_translation")


_FOREIGN = Phrases([
    "What does the {l} word {w} mean?", "What is {w} in English? It is {l}.",
    "Translate the {l} word {w} into English.", "{w} is {l}. What does it mean?"
],
                   nouns=["the meaning of the {l} word {w}", "the English for the {l} word {w}"],
                   clauses=["what the {l} word {w} means"],
                   commands=["translate the {l} word {w}", "explain the {l} word {w}"])


def foreign_turn(rng, held=False):
    """What does 'Hund' mean?"""
    pair, word = rng.choice(_DICTIONARY)
    language = pair.split("|")[1]
    first = next(t["English"] for t in TRANSLATIONS if t[language] == word)
    form = _FOREIGN.pick(rng, held)
    return Turn(the(form.format(l=language, w=word)), f"The {language} word {word} means {first}.",
                first, f"The {language} word {word} means {first}.", "foreign")


_COUNTRY = Phrases([
    "Tell me about {x}.", "What do you know about {x}?", "Describe {x}.",
    "Tell me something about {x}.", "Give me some facts about {x}.", "What is {x}?",
    "Say something about {x}.", "Can you tell me about {x}?", "{x}"
],
                   nouns=["some facts about {x}", "something about {x}"],
                   clauses=["what you know about {x}"],
                   commands=["describe {x}", "tell me about {x}", "talk about {x}"])


def country_turn(rng, held=False):
    """A small portrait of a country."""
    c = rng.choice(COUNTRIES)
    name = c["name"]
    form = _COUNTRY.pick(rng, held)
    answer = (f"{the(name)} is a country in {c['continent']}. Its capital is {c['capital']}. "
              f"People there speak {c['language']}, and the currency is the {c['currency']}.")
    return Turn(
        typed(rng, the(form.format(x=name)), form, held), answer, "",
        f"The user wants to know about {name}. I list continent, capital, language and currency.",
        "country")


def country_chain(rng):
    """Several questions about one country, with 'it' and 'there' in the later ones."""
    c = rng.choice(COUNTRIES)
    name = c["name"]
    first = rng.choice([CAPITAL, CONTINENT, CURRENCY, LANGUAGE])
    turns = [first.turn(rng, row=(name, c[first.name]))]
    later = {
        "capital": (CAPITAL, [
            "And its capital?", "What is its capital?", "And the capital?",
            "What is the capital there?", "What is the capital?"
        ]),
        "continent": (CONTINENT, [
            "And on which continent is it?", "Which continent is it in?", "And the continent?",
            "Where is it?"
        ]),
        "currency": (CURRENCY, [
            "And its currency?", "What currency do they use there?", "And the currency?",
            "What money do they use?"
        ]),
        "language": (LANGUAGE, [
            "And the language?", "What language do they speak there?",
            "What do people speak there?", "And what do they speak?"
        ]),
    }
    del later[first.name]
    for field in rng.sample(sorted(later), rng.randint(1, 3)):
        relation, forms = later[field]
        turns.append(relation.about(name, c[field], typed(rng, rng.choice(forms))))
    return turns


_CONTEXT = [
    f"{s} {v} {{x}}."
    for s, v in (("I am going", "to"), ("I am", "in"), ("Next week I fly", "to"),
                 ("I want", "to visit"), ("My friend is", "from"), ("I read", "about"),
                 ("We talked", "about"), ("My sister moves", "to"), ("I have a map", "of"),
                 ("I like", "the people of"), ("I come", "from"), ("My brother works", "in"),
                 ("We learn", "about"), ("Tomorrow I travel", "to"), ("I saw a film", "about"))
]
_CONTEXT_ASK = {
    "capital": [
        "What is the capital?", "What is its capital?", "Which city is the capital?",
        "Do you know the capital?", "Tell me the capital."
    ],
    "currency": [
        "What money do they use there?", "What is the currency?", "How do they pay there?"
    ],
    "language": [
        "What do people speak there?", "Which language do they speak?", "What is the language?"
    ],
    "continent": ["On which continent is it?", "Which continent is that?", "Where is that?"]
}


def context_turn(rng, held=False):
    """A country is mentioned first, the question comes after it."""
    c = rng.choice(COUNTRIES)
    field = rng.choice(sorted(_CONTEXT_ASK))
    relation = {
        "capital": CAPITAL,
        "currency": CURRENCY,
        "language": LANGUAGE,
        "continent": CONTINENT
    }[field]
    text = " ".join(draw_pair(rng, _CONTEXT, _CONTEXT_ASK[field], held))
    return relation.about(c["name"], c[field], text.format(x=c["name"]))


def _claim(rng, held, phrases, x, y, yes, fact, kind):
    """A yes-or-no question; the answer repeats the true fact."""
    form = phrases.pick(rng, held)
    answer = f"{'Yes' if yes else 'No'}, {fact}."
    return Turn(typed(rng, the(form.format(x=x, y=y)), form, held), answer, "Yes" if yes else "No",
                f"The user asks if something is true. {the(fact)}.", kind)


def _claim_phrases(statement, always):
    """Phrases that ask whether a statement is true."""
    return Phrases(
        always + [statement + ", right?", "Is it true that " + statement + "?"],
        clauses=["if " + statement, "whether " + statement, "if it is true that " + statement])


_IS_CAPITAL = _claim_phrases("{y} is the capital of {x}", [
    "Is {y} the capital of {x}?", "Is the capital of {x} {y}?",
    "{y} is the capital of {x}. True or false?", "Am I right that {y} is the capital of {x}?"
])
_IS_KIND = _claim_phrases("{x} is {y}", [
    "Is {x} {y}?", "Is {x} really {y}?", "Can you say that {x} is {y}?",
    "Would you say that {x} is {y}?"
])
_IS_IN = _claim_phrases("{x} is in {y}",
                        ["Is {x} in {y}?", "Is {x} really in {y}?", "Does {x} lie in {y}?"])
_CAN_FLY = _claim_phrases("{x} can fly", ["Can {x} fly?", "Can {x} really fly?"])


def yes_no_turn(rng, held=False):
    """Is Paris the capital of France? - half of them wrong, with the right fact in the answer."""
    c = rng.choice(COUNTRIES)
    yes = rng.random() < 0.5
    other = rng.choice([k for k in COUNTRIES if k["capital"] != c["capital"]])
    return _claim(rng, held, _IS_CAPITAL, c["name"], c["capital"] if yes else other["capital"], yes,
                  f"the capital of {c['name']} is {c['capital']}", "yes_no")


def animal_yes_no_turn(rng, held=False):
    """Is a whale a fish?"""
    r = rng.choice(ANIMALS)
    asked = r["kind"] if rng.random() < 0.5 else rng.choice(
        ["mammal", "bird", "reptile", "fish", "insect"])
    return _claim(rng, held, _IS_KIND, a(r["name"]), a(asked), asked == r["kind"],
                  f"{a(r['name'])} is {a(r['kind'])}", "animal_yes_no")


def place_yes_no_turn(rng, held=False):
    """Is Berlin in Germany?  Is France in Asia?"""
    yes = rng.random() < 0.5
    if rng.random() < 0.5:
        city, country = rng.choice(_CITIES_IN)
        other = rng.choice([c["name"] for c in COUNTRIES if c["name"] != country])
        return _claim(rng, held, _IS_IN, city, country if yes else other, yes,
                      f"{city} is in {country}", "place_yes_no")
    c = rng.choice([c for c in COUNTRIES if " and " not in c["continent"]])
    other = rng.choice([
        k for k in ("Europe", "Asia", "Africa", "North America", "South America")
        if k != c["continent"]
    ])
    return _claim(rng, held, _IS_IN, c["name"], c["continent"] if yes else other, yes,
                  f"{c['name']} is in {c['continent']}", "place_yes_no")


_CITIES_IN = OTHER_CITIES + [(c["capital"], c["name"])
                             for c in COUNTRIES if c["capital"] != c["name"]]


def property_turn(rng, held=False):
    """Is fire cold?  Can a dog fly?"""
    yes = rng.random() < 0.5
    if rng.random() < 0.5:
        animal = rng.choice(FLYERS if yes else NO_FLYERS)
        plural = next(r["plural"] for r in ANIMALS if r["name"] == animal)
        fact = f"{a(animal)} can fly" if yes else f"{a(animal)} cannot fly"
        return _claim(rng, held, _CAN_FLY, rng.choice([a(animal), plural]), "", yes, fact,
                      "property")
    thing, what = rng.choice(PROPERTIES)
    return _claim(rng, held, _IS_KIND, thing, what if yes else BOTH_WAYS[what], yes,
                  f"{thing} is {what}", "property")


_SIZE = Phrases(
    [
        "Which is {w}, {x} or {y}?", "What is {w}, {x} or {y}?", "Is {x} or {y} {w}?",
        "Which animal is {w}: {x} or {y}?"
    ],
    clauses=["which is {w}, {x} or {y}", "which animal is {w}, {x} or {y}", "if {x} or {y} is {w}"])


def size_turn(rng, held=False):
    """Which is bigger, a cat or a horse?"""
    i, j = sorted(rng.sample(range(len(SIZES)), 2))
    small, big = a(SIZES[i]), a(SIZES[j])
    x, y = (small, big) if rng.random() < 0.5 else (big, small)
    larger = rng.random() < 0.6
    word = "bigger" if larger else "smaller"
    asked = rng.choice(["bigger", "larger"]) if larger else "smaller"
    form = _SIZE.pick(rng, held)
    best, other = (big, small) if larger else (small, big)
    return Turn(typed(rng, the(form.format(x=x, y=y, w=asked)), form, held),
                f"{the(best)} is {word} than {other}.",
                best.split()[1], f"I compare {x} and {y}. {the(best)} is {word}.", "size")


def trivia_turn(rng, held=False):
    """A question of the hand-written list; held out: pairs of a question and a remark."""
    questions, answer, short = rng.choice(TRIVIA)
    question = rng.choice(questions)
    thought = f"The user asks: {question} {answer}" if short else f"I can explain this. {answer}"
    text = lead(rng, question, question, held=True) if held else typed(rng, question, question)
    return Turn(text, answer, short, thought, "trivia")


_CONTINENT_LIST = Phrases([
    "Name {n} countries in {x}.", "Tell me {n} countries in {x}.",
    "Which {n} countries are in {x}?", "Give me {n} countries in {x}.", "List {n} countries in {x}."
],
                          nouns=["{n} countries in {x}", "the names of {n} countries in {x}"])


def same_continent_turn(rng, held=False):
    """Name a country in Africa: the list is short and always the same."""
    continent = rng.choice(
        ["Europe", "Asia", "Africa", "North America", "South America", "Oceania"])
    names = [c["name"] for c in COUNTRIES if c["continent"] == continent]
    n = rng.randint(2, min(4, len(names)))
    count = ["", "", "two", "three", "four"][n]
    form = _CONTINENT_LIST.pick(rng, held)
    return Turn(typed(rng, the(form.format(n=count, x=continent)), form,
                      held), f"{the(join_and(names[:n]))} are in {continent}.", "",
                f"The user wants {count} countries in {continent}.", "continent_list")


TURNS = [(relation_turn, 10), (unit_turn, 1), (mix_turn, 0.4), (work_turn, 1.2),
         (work_of_turn, 0.6), (translation_turn, 1.6), (country_turn, 1.5), (yes_no_turn, 1.2),
         (animal_yes_no_turn, 0.6), (trivia_turn, 4), (same_continent_turn, 0.5),
         (place_yes_no_turn, 1), (property_turn, 1), (size_turn, 0.6), (unit_many_turn, 0.6),
         (context_turn, 0.7), (foreign_turn, 0.6), (no_translation_turn, 0.3)]
CHAINS = [(relation_chain, 3), (country_chain, 2)]
