"""Relations: facts of one kind from tables.py, and the sentences that ask for them."""

from phrase import Phrases, keep_capitals, typed
from sample import Turn, a, the
from tables import (ANIMALS, COLOURS, COUNTRIES, DAYS, ELEMENTS, LANDMARKS, MONTH_DAYS, MONTHS,
                    OPPOSITES, ORDINALS, OTHER_CITIES, PLANETS, RHYMES, SEASONS, SHAPES, SYNONYMS)

keep_capitals([c["name"].split()[0] for c in COUNTRIES if c["name"][:3] != "the"] + DAYS + MONTHS +
              PLANETS + [c["capital"].split()[0]
                         for c in COUNTRIES] + [c.split()[0] for c, _ in OTHER_CITIES])


class Relation:
    """Facts of one kind: rows of (x, y), the answer, and how to ask: common sentences with {x},
    then noun phrases and clauses for the frames."""

    def __init__(self,
                 name,
                 rows,
                 common,
                 answer,
                 thought="",
                 follow=(),
                 weight=1.0,
                 nouns=(),
                 clauses=()):
        self.name, self.rows, self.phrases = name, rows, Phrases(common, nouns, clauses)
        self.answer, self.thought, self.follow, self.weight = answer, thought, follow, weight

    def turn(self, rng, held=False, row=None):
        x, y = row or rng.choice(self.rows)
        template = self.phrases.pick(rng, held)
        return self.about(x, y, typed(rng, the(template.format(x=x)), template, held))

    def about(self, x, y, question):
        one = _ONE.get(x, x)
        answer = the(self.answer.format(x=x, y=y, one=one))
        thought = self.thought.format(x=x, y=y,
                                      one=one) or f"The user asks a question that I know. {answer}"
        return Turn(question, answer, short=str(y), thought=thought, kind=self.name)

    def chain(self, rng):
        """A question and follow-ups such as 'And Japan?' about other rows."""
        rows = rng.sample(self.rows, min(len(self.rows), rng.randint(2, 4)))
        turns = [self.turn(rng, row=rows[0])]
        for x, y in rows[1:]:
            form = rng.choice(self.follow)
            turns.append(self.about(x, y, typed(rng, the(form.format(x=x)))))
        return turns


AND = [
    "And {x}?", "What about {x}?", "And for {x}?", "How about {x}?", "And what about {x}?",
    "Now {x}.", "And {x}", "what about {x}", "The same for {x}?", "{x}?"
]


def _country(field):
    return [(c["name"], c[field]) for c in COUNTRIES]


def _unique_capital():
    return [(c["capital"], c["name"]) for c in COUNTRIES if c["capital"] != c["name"]]


CAPITAL = Relation(
    "capital",
    _country("capital"), [
        "What is the capital of {x}?", "What's the capital of {x}?",
        "Which city is the capital of {x}?", "Name the capital of {x}.",
        "Tell me the capital of {x}.", "Capital of {x}?", "Do you know the capital of {x}?",
        "Can you tell me the capital of {x}?", "What is the capital city of {x}?",
        "What city is the capital of {x}?", "{x}: capital?", "Could you name the capital of {x}?",
        "I want to know the capital of {x}.", "Which city is {x}'s capital?",
        "What is {x}'s capital?", "The capital of {x} is which city?",
        "Can you tell me what the capital of {x} is?", "Give me the capital of {x}.",
        "What is the name of the capital of {x}?", "The capital of {x} is", "capital city of {x}",
        "I forgot the capital of {x}.", "Which is the capital of {x}?",
        "What is the main city of {x}?", "Please name {x}'s capital city.",
        "Which capital does {x} have?", "Do you happen to know what the capital of {x} is?",
        "I would like to learn the capital of {x}.", "What is the capital city in {x}?"
    ],
    "The capital of {x} is {y}.",
    "The user asks for the capital of {x}. The capital of {x} is {y}.",
    AND,
    3.0,
    nouns=[
        "the capital of {x}", "the capital city of {x}", "{x}'s capital",
        "the name of the capital of {x}", "{x}'s capital city"
    ],
    clauses=[
        "what the capital of {x} is", "which city is the capital of {x}",
        "what the capital city of {x} is called"
    ])

_CAPITAL_OF = Relation(
    "capital_of",
    _unique_capital(), [
        "{x} is the capital of which country?", "Which country has {x} as its capital?",
        "What country is {x} the capital of?", "Of which country is {x} the capital?",
        "{x} is the capital of what country?", "Which country's capital is {x}?",
        "What country has the capital {x}?", "Name the country whose capital is {x}.",
        "In which country is {x}?", "Where is {x}?", "Which country is {x} in?",
        "In what country is {x}?", "In which country is the city of {x}?",
        "Where is the city of {x}?", "What country is {x} in?",
        "Tell me the country whose capital is {x}.", "For which country is {x} the capital city?",
        "In what country can I find {x}?"
    ],
    "{x} is the capital of {y}.",
    "The user asks about the city of {x}. {x} is the capital of {y}.",
    AND,
    1.5,
    nouns=[
        "the country whose capital is {x}", "the country with the capital {x}",
        "the country of the city {x}"
    ],
    clauses=[
        "which country has the capital {x}", "of which country {x} is the capital", "where {x} is",
        "in which country {x} is"
    ])

_CITY = Relation("city",
                 OTHER_CITIES, [
                     "Where is {x}?", "In which country is {x}?", "Which country is {x} in?",
                     "In what country is {x}?", "Where is the city of {x}?",
                     "What country is {x} in?", "What is {x}?", "Tell me about {x}.",
                     "In what country can I find {x}?", "Where do I find the city of {x}?"
                 ],
                 "{x} is a city in {y}.",
                 "The user asks about the city of {x}. It is a city in {y}.",
                 AND,
                 0.6,
                 nouns=["the country of {x}", "the country in which {x} is"],
                 clauses=["where {x} is", "in which country {x} is", "where I can find {x}"])

CONTINENT = Relation(
    "continent",
    _country("continent"), [
        "On which continent is {x}?", "Which continent is {x} in?", "What continent is {x} in?",
        "In which continent is {x}?", "Where is {x}?", "Where in the world is {x}?",
        "What continent does {x} belong to?", "Which continent does {x} belong to?",
        "Where is {x} located?", "Name the continent of {x}.", "On what continent is {x}?",
        "In which part of the world is {x}?", "{x}: which continent?",
        "Tell me the continent of {x}.", "On which continent can I find {x}?",
        "What continent is {x} on?", "To which continent does {x} belong?"
    ],
    "{x} is in {y}.",
    "The user asks where {x} is. {x} is in {y}.",
    AND,
    1.2,
    nouns=["the continent of {x}", "{x}'s continent", "the continent on which {x} is"],
    clauses=["on which continent {x} is", "where {x} is", "which continent {x} belongs to"])

CURRENCY = Relation(
    "currency",
    _country("currency"), [
        "What is the currency of {x}?", "What currency does {x} use?",
        "Which currency is used in {x}?", "What money do people use in {x}?",
        "What is the money of {x} called?", "Currency of {x}?", "What's the currency of {x}?",
        "How do people pay in {x}?", "What currency is used in {x}?",
        "Which currency does {x} have?", "What is the currency in {x}?",
        "Name the currency of {x}.", "Tell me the currency of {x}.", "What money is used in {x}?",
        "What kind of money do they use in {x}?", "Please name the currency that {x} uses.",
        "What is {x}'s currency?"
    ],
    "The currency of {x} is the {y}.",
    "The user asks for the currency of {x}. People there use the {y}.",
    AND,
    1.5,
    nouns=[
        "the currency of {x}", "{x}'s currency", "the money of {x}",
        "the name of the currency of {x}"
    ],
    clauses=["what currency {x} uses", "which money people use in {x}", "how people pay in {x}"])

LANGUAGE = Relation(
    "language",
    _country("language"), [
        "What language is spoken in {x}?", "Which language do people speak in {x}?",
        "What do people speak in {x}?", "What is the language of {x}?", "Language of {x}?",
        "Which languages are spoken in {x}?", "What languages do they speak in {x}?",
        "What language do they speak in {x}?", "What is the official language of {x}?",
        "Name the language of {x}.", "Tell me the language of {x}.",
        "Which language is spoken in {x}?", "What language do people in {x} speak?",
        "What's the language of {x}?", "Which language would I hear in {x}?",
        "What is the main language in {x}?", "Please tell me what people speak in {x}."
    ],
    "People in {x} speak {y}.",
    "The user asks for the language of {x}. People there speak {y}.",
    AND,
    1.5,
    nouns=[
        "the language of {x}", "the official language of {x}", "{x}'s language",
        "the main language of {x}"
    ],
    clauses=[
        "what people speak in {x}", "which language is spoken in {x}",
        "which language people speak in {x}"
    ])

_SYMBOL = Relation("symbol", [(n, s) for n, s, _ in ELEMENTS], [
    "What is the chemical symbol of {x}?", "What is the chemical symbol for {x}?",
    "What is the symbol of {x}?", "What is the symbol for {x}?", "Chemical symbol of {x}?",
    "Which symbol does {x} have?", "What's the symbol for {x}?", "How is {x} written in chemistry?",
    "Give me the chemical symbol of {x}.", "Tell me the symbol of {x}.",
    "What is the element symbol of {x}?", "What letters stand for {x} in the periodic table?",
    "Which chemical symbol stands for {x}?", "What symbol does {x} have in the periodic table?"
],
                   "The chemical symbol of {x} is {y}.",
                   "The user asks for the symbol of {x}. The symbol of {x} is {y}.",
                   AND,
                   1.5,
                   nouns=[
                       "the chemical symbol of {x}", "the symbol of {x}", "the symbol for {x}",
                       "{x}'s chemical symbol"
                   ],
                   clauses=["which symbol {x} has", "how {x} is written in chemistry"])

_ELEMENT = Relation("element", [(s, n) for n, s, _ in ELEMENTS], [
    "Which element has the symbol {x}?", "What element is {x}?",
    "What does the symbol {x} stand for?", "Which chemical element is {x}?",
    "What element has the symbol {x}?", "{x} is the symbol of which element?",
    "Name the element with the symbol {x}.", "The chemical symbol {x} means what?",
    "What is the element {x}?", "Tell me which element {x} is.", "For which element does {x} stand?"
],
                    "{x} is the chemical symbol of {y}.",
                    "The user asks for the element {x}. {x} stands for {y}.",
                    AND,
                    nouns=["the element with the symbol {x}", "the name of the element {x}"],
                    clauses=[
                        "which element {x} is", "what {x} stands for in chemistry",
                        "which element has the symbol {x}"
                    ])

_ATOMIC = Relation(
    "atomic_number", [(n, z) for n, _, z in ELEMENTS], [
        "What is the atomic number of {x}?", "Atomic number of {x}?",
        "Which atomic number does {x} have?", "What's the atomic number of {x}?",
        "What number is {x} in the periodic table?", "How many protons does {x} have?",
        "How many protons are in an atom of {x}?", "Tell me the atomic number of {x}.",
        "What is the number of {x} in the periodic table?", "Give the atomic number of {x}, please."
    ],
    "The atomic number of {x} is {y}.",
    "The user asks for the atomic number of {x}. It is {y}.",
    AND,
    nouns=["the atomic number of {x}", "{x}'s atomic number", "the number of protons of {x}"],
    clauses=["which atomic number {x} has", "how many protons {x} has"])

BOTH_WAYS = {y: x for x, y in reversed(OPPOSITES)} | dict(reversed(OPPOSITES))
_OPPOSITE = Relation(
    "opposite",
    sorted(BOTH_WAYS.items()), [
        "What is the opposite of {x}?", "What's the opposite of {x}?", "Opposite of {x}?",
        "Tell me the opposite of {x}.", "Name the opposite of {x}.",
        "What is the opposite of \"{x}\"?", "Which word is the opposite of {x}?",
        "Give me the opposite of {x}.", "The opposite of {x} is",
        "What word means the opposite of {x}?", "opposite of \"{x}\"",
        "What is the antonym of {x}?", "Which word means the contrary of {x}?",
        "I need the opposite of the word {x}."
    ],
    "The opposite of {x} is {y}.",
    "The user wants the opposite of {x}. It is {y}.",
    AND,
    1.5,
    nouns=[
        "the opposite of {x}", "the opposite of the word {x}", "the antonym of {x}",
        "the contrary of {x}"
    ],
    clauses=["what the opposite of {x} is", "which word is the opposite of {x}"])

_SYNONYM = Relation(
    "synonym",
    SYNONYMS, [
        "What is another word for {x}?", "Give me a synonym of {x}.", "What is a synonym for {x}?",
        "Which word means the same as {x}?", "Another word for {x}?",
        "Tell me another word for {x}.", "What word is similar to {x}?",
        "I need a different word for {x}.", "Can you name a synonym of {x}?"
    ],
    "Another word for {x} is {y}.",
    "The user wants a synonym of {x}. A good one is {y}.",
    AND,
    nouns=[
        "another word for {x}", "a synonym of {x}", "a synonym for {x}", "a different word for {x}"
    ],
    clauses=["what another word for {x} is", "which word means the same as {x}"])

_COLOUR = Relation("colour",
                   COLOURS, [
                       "What colour is {x}?", "What color is {x}?", "Which colour does {x} have?",
                       "What is the colour of {x}?", "Tell me the colour of {x}.", "Colour of {x}?",
                       "What's the color of {x}?", "Which color is {x}?",
                       "In what colour do we see {x}?", "Name the colour of {x}."
                   ],
                   "{x} is {y}.",
                   "The user asks for the colour of {x}. It is {y}.",
                   AND,
                   nouns=["the colour of {x}", "the color of {x}"],
                   clauses=["what colour {x} is", "which colour {x} has"])

_SHAPE = Relation("sides",
                  SHAPES, [
                      "How many sides does {x} have?", "How many sides has {x}?",
                      "How many corners does {x} have?", "Number of sides of {x}?",
                      "Tell me how many sides {x} has.", "How many edges does {x} have?",
                      "What is the number of sides of {x}?", "Do you know how many sides {x} has?"
                  ],
                  "{x} has {y} sides.",
                  "The user asks about {x}. It has {y} sides.",
                  AND,
                  nouns=["the number of sides of {x}", "the number of corners of {x}"],
                  clauses=["how many sides {x} has", "how many corners {x} has"])


def _animal_rows(field):
    return [(r["name"], r[field]) for r in ANIMALS if r[field] != "-"]


_KIND = Relation("animal_kind", [(a(n), a(y)) for n, y in _animal_rows("kind")], [
    "What kind of animal is {x}?", "Is {x} a mammal, a bird, a reptile, a fish or an insect?",
    "What type of animal is {x}?", "Which class of animals does {x} belong to?", "What is {x}?",
    "To which group of animals does {x} belong?", "What sort of animal is {x}?",
    "Tell me what kind of animal {x} is.", "Which kind of animal is {x}?"
],
                 "{x} is {y}.",
                 "The user asks about {x}. {x} is {y}.",
                 AND,
                 nouns=["the kind of animal of {x}", "the group of {x}"],
                 clauses=["what kind of animal {x} is", "to which group of animals {x} belongs"])

_LEGS = Relation("legs", [(a(n), y) for n, y in _animal_rows("legs")], [
    "How many legs does {x} have?", "How many legs has {x}?", "How many legs are there on {x}?",
    "Number of legs of {x}?", "Tell me how many legs {x} has.", "how many legs has {x} got?",
    "What is the number of legs of {x}?", "Do you know how many legs {x} has?"
],
                 "{x} has {y} legs.",
                 "The user asks how many legs {x} has. {x} has {y} legs.",
                 AND,
                 nouns=["the number of legs of {x}"],
                 clauses=["how many legs {x} has"])

_SOUND = Relation("sound", [(a(n), y) for n, y in _animal_rows("sound") if "no sound" not in y], [
    "What sound does {x} make?", "What noise does {x} make?", "Which sound does {x} make?",
    "How does {x} sound?", "What does {x} say?", "Tell me the sound of {x}.",
    "What kind of noise does {x} make?", "Which noise comes from {x}?"
],
                  "{x} {y}.",
                  "The user asks for the sound of {x}. {x} {y}.",
                  AND,
                  nouns=["the sound of {x}", "the noise of {x}"],
                  clauses=["what sound {x} makes", "which noise {x} makes"])

_YOUNG = Relation("young", [(a(n), a(y)) for n, y in _animal_rows("young")], [
    "What is a baby of {x} called?", "What do you call the young of {x}?",
    "What is a young of {x} called?", "What is the baby of {x} called?",
    "How do you call the baby of {x}?", "What is the name for the young of {x}?",
    "Tell me what the baby of {x} is called.", "Which name has the young of {x}?"
],
                  "The young of {x} is called {y}.",
                  "The user asks for the young of {x}. It is called {y}.",
                  AND,
                  nouns=["the name for the young of {x}", "the name of the baby of {x}"],
                  clauses=["what the baby of {x} is called", "what the young of {x} is called"])

_FOOD = Relation("food", [(r["plural"], r["food"]) for r in ANIMALS], [
    "What do {x} eat?", "What is the food of {x}?", "What do {x} like to eat?",
    "What do {x} live on?", "Which food do {x} eat?", "Tell me what {x} eat.",
    "What kind of food do {x} eat?", "On what do {x} feed?"
],
                 "{x} eat {y}.",
                 "The user asks what {x} eat. They eat {y}.",
                 AND,
                 nouns=["the food of {x}"],
                 clauses=["what {x} eat", "on what {x} feed", "what {x} live on"])

_PLANET = Relation(
    "planet_order", [(ORDINALS[i], p) for i, p in enumerate(PLANETS)], [
        "Which planet is the {x} from the Sun?", "What is the {x} planet from the Sun?",
        "Name the {x} planet of the solar system.", "What is the {x} planet?",
        "Which planet is the {x} one?", "Tell me the {x} planet.",
        "Which is the {x} planet of the solar system?",
        "Counting from the Sun, which planet is the {x}?"
    ],
    "The {x} planet from the Sun is {y}.",
    "The user asks for the {x} planet. Counting from the Sun, it is {y}.",
    ["And the {x}?", "The {x}?"],
    nouns=["the {x} planet", "the {x} planet from the Sun", "the {x} planet of the solar system"],
    clauses=["which planet is the {x}", "which planet is the {x} from the Sun"])

_PLANET_PLACE = Relation(
    "planet_place", [(p, ORDINALS[i]) for i, p in enumerate(PLANETS)], [
        "Which place has {x} in the solar system?", "What number is {x} from the Sun?",
        "Which position does {x} have from the Sun?", "Where is {x} in the solar system?",
        "Is {x} the first planet from the Sun?", "What is {x}?",
        "At which place from the Sun is {x}?", "Tell me the position of {x} among the planets."
    ],
    "{x} is the {y} planet from the Sun.",
    "The user asks about the planet {x}. It is the {y} planet from the Sun.",
    AND,
    nouns=["the position of the planet {x}", "the place of {x} in the solar system"],
    clauses=["at which place from the Sun {x} is", "which position {x} has"])


def _around(items):
    """(item, next) and (item, previous) around a circle."""
    n = len(items)
    return [(x, items[(i + 1) % n]) for i, x in enumerate(items)]


_CALENDAR = _around(DAYS) + _around(MONTHS) + _around(SEASONS)
_AFTER = Relation("after",
                  _CALENDAR, [
                      "What comes after {x}?", "Which one comes after {x}?", "What follows {x}?",
                      "After {x} comes what?", "What is next after {x}?",
                      "{x} is followed by what?", "What comes right after {x}?",
                      "Tell me what comes directly after {x}.", "Which one follows {x}?"
                  ],
                  "After {x} comes {y}.",
                  "The user asks what follows {x}. It is {y}.",
                  AND,
                  nouns=["the one after {x}"],
                  clauses=["what comes after {x}", "which one follows {x}"])
_BEFORE = Relation("before", [(y, x) for x, y in _CALENDAR], [
    "What comes before {x}?", "Which one comes before {x}?", "What is just before {x}?",
    "Before {x} comes what?", "What comes right before {x}?",
    "Tell me what comes directly before {x}.", "Which one is just before {x}?"
],
                   "Before {x} comes {y}.",
                   "The user asks what comes before {x}. It is {y}.",
                   AND,
                   nouns=["the one before {x}"],
                   clauses=["what comes before {x}", "which one comes before {x}"])
_DAY_AFTER = Relation(
    "day_after",
    _around(DAYS), [
        "What day comes after {x}?", "Which day comes after {x}?", "Which day follows {x}?",
        "If today is {x}, what day is tomorrow?", "Today is {x}. What day is it tomorrow?",
        "What day is the day after {x}?", "It is {x} today. Which day is tomorrow?",
        "What is the next day after {x}?", "When today is {x}, which day will tomorrow be?"
    ],
    "The day after {x} is {y}.",
    "The user asks for the day after {x}. It is {y}.",
    AND,
    nouns=["the day after {x}", "the next day after {x}"],
    clauses=["which day comes after {x}", "which day follows {x}"])
_DAY_BEFORE = Relation("day_before", [(y, x) for x, y in _around(DAYS)], [
    "What day comes before {x}?", "Which day comes before {x}?", "What day was it before {x}?",
    "If today is {x}, what day was yesterday?", "Today is {x}. What day was it yesterday?",
    "What is the previous day of {x}?", "When today is {x}, which day was yesterday?"
],
                       "The day before {x} is {y}.",
                       "The user asks for the day before {x}. It is {y}.",
                       AND,
                       nouns=["the day before {x}", "the previous day of {x}"],
                       clauses=["which day comes before {x}", "which day is before {x}"])
_MONTH_DAYS = Relation(
    "month_days",
    list(zip(MONTHS, MONTH_DAYS)), [
        "How many days does {x} have?", "How many days are in {x}?",
        "How many days are there in {x}?", "How long is {x}?", "Number of days in {x}?",
        "Tell me how many days {x} has.", "What is the number of days in {x}?",
        "How many days has the month of {x}?"
    ],
    "{x} has {y} days.",
    "The user asks for the length of {x}. It has {y} days.",
    AND,
    nouns=["the number of days in {x}", "the number of days of {x}", "the length of {x}"],
    clauses=["how many days {x} has", "how many days are in {x}"])
_MONTH_NUMBER = Relation(
    "month_number",
    list(zip(ORDINALS, MONTHS)), [
        "What is the {x} month of the year?", "Which month is the {x}?", "Name the {x} month.",
        "Which is the {x} month of the year?", "What's the {x} month?",
        "Tell me the {x} month of the year.", "Which month comes {x} in the year?"
    ],
    "The {x} month of the year is {y}.",
    "The user asks for the {x} month. It is {y}.", ["And the {x}?", "The {x}?"],
    nouns=["the {x} month", "the {x} month of the year"],
    clauses=["which month is the {x}", "which month comes {x} in the year"])
_LANDMARK = Relation(
    "landmark", [(r["name"], r["place"] + " in " + r["country"]) for r in LANDMARKS], [
        "Where is {x}?", "In which city is {x}?", "Where can I see {x}?", "Where can I find {x}?",
        "In which country is {x}?", "Where is {x} located?", "In which place is {x}?",
        "What city is {x} in?", "Which city is home to {x}?", "In what place does {x} stand?",
        "Where do I have to go to see {x}?"
    ],
    "{x} is in {y}.",
    "The user asks where {x} is. It is in {y}.",
    AND,
    nouns=["the place of {x}", "the city where {x} is"],
    clauses=["where {x} is", "in which city {x} is", "where I can find {x}", "where I can see {x}"])
_RHYME = Relation(
    "rhyme",
    RHYMES, [
        "What rhymes with {x}?", "Which word rhymes with {x}?", "Find a rhyme for {x}.",
        "A rhyme for {x}?", "Give me a word that rhymes with {x}.", "Tell me a rhyme for {x}.",
        "I need a rhyme for the word {x}.", "Can you rhyme {x} with something?"
    ],
    "A rhyme for {x} is {y}.",
    "The user wants a rhyme for {x}. {y} fits.",
    AND,
    0.6,
    nouns=["a rhyme for {x}", "a word that rhymes with {x}"],
    clauses=["what rhymes with {x}", "which word rhymes with {x}"])
_ONE = {r["plural"]: a(r["name"]) for r in ANIMALS}
_PLURAL_LEGS = Relation("legs", [(r["plural"], r["legs"]) for r in ANIMALS if r["legs"] != "-"], [
    "How many legs do {x} have?", "How many legs have {x}?", "How many legs have {x} got?",
    "Number of legs of {x}?", "Do you know how many legs {x} have?"
],
                        "{one} has {y} legs.",
                        "The user asks about the legs of {x}. There are {y}.",
                        AND,
                        0.6,
                        nouns=["the number of legs of {x}"],
                        clauses=["how many legs {x} have"])
_PLURAL_KIND = Relation("animal_kind", [(r["plural"], a(r["kind"])) for r in ANIMALS], [
    "What kind of animals are {x}?", "What are {x}?", "What type of animal are {x}?",
    "Which class of animals are {x}?", "To which group do {x} belong?"
],
                        "{one} is {y}.",
                        "The user asks about {x}. {one} is {y}.",
                        AND,
                        0.5,
                        nouns=["the group of {x}"],
                        clauses=["what kind of animals {x} are", "to which group {x} belong"])
_PLURAL_SOUND = Relation("sound", [(r["plural"], r["sound"])
                                   for r in ANIMALS if "no sound" not in r["sound"]],
                         [
                             "What sound do {x} make?", "What noise do {x} make?",
                             "What do {x} say?", "How do {x} sound?", "Which noise do {x} make?"
                         ],
                         "{one} {y}.",
                         "The user asks for the sound of {x}. {one} {y}.",
                         AND,
                         0.5,
                         nouns=["the sound of {x}"],
                         clauses=["what sound {x} make", "which noise {x} make"])

RELATIONS = [
    _RHYME, _PLURAL_LEGS, _PLURAL_KIND, _PLURAL_SOUND, CAPITAL, _CAPITAL_OF, _CITY, CONTINENT,
    CURRENCY, LANGUAGE, _SYMBOL, _ELEMENT, _ATOMIC, _OPPOSITE, _SYNONYM, _COLOUR, _SHAPE, _KIND,
    _LEGS, _SOUND, _YOUNG, _FOOD, _PLANET, _PLANET_PLACE, _AFTER, _BEFORE, _DAY_AFTER, _DAY_BEFORE,
    _MONTH_DAYS, _MONTH_NUMBER, _LANDMARK
]
