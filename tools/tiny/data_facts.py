"""Questions about the facts of tables.py, each relation in many phrasings.

Evaluation asks known facts in held-out sentences only (see phrase.py).
"""

from phrase import Phrases, draw_pair, keep_capitals, lead, typed
from sample import Turn, a, join_and, the
from tables import (ANIMALS, COLOURS, COUNTRIES, DAYS, ELEMENTS, FLYERS, LANDMARKS, MIXES, MONTH_DAYS,
                    MONTHS, NO_FLYERS, NOUNS, OPPOSITES, ORDINALS, OTHER_CITIES, PLANETS, PROPERTIES, RHYMES,
                    SEASONS, SHAPES, SIZES, SYNONYMS, TRANSLATIONS, UNITS, WORKS)
from trivia import TRIVIA

keep_capitals([c["name"].split()[0] for c in COUNTRIES if c["name"][:3] != "the"] + DAYS + MONTHS +
              PLANETS + [c["capital"].split()[0] for c in COUNTRIES] +
              [c.split()[0] for c, _ in OTHER_CITIES])


class Relation:
    """Facts of one kind: rows of (x, y), the answer, and how to ask: common sentences with {x}, then
    noun phrases and clauses for the frames."""

    def __init__(self, name, rows, common, answer, thought="", follow=(), weight=1.0, nouns=(), clauses=()):
        self.name, self.rows, self.phrases = name, rows, Phrases(common, nouns, clauses)
        self.answer, self.thought, self.follow, self.weight = answer, thought, follow, weight

    def turn(self, rng, held=False, row=None):
        x, y = row or rng.choice(self.rows)
        template = self.phrases.pick(rng, held)
        return self.about(x, y, typed(rng, the(template.format(x=x)), template, held))

    def about(self, x, y, question):
        one = _ONE.get(x, x)
        answer = the(self.answer.format(x=x, y=y, one=one))
        thought = self.thought.format(x=x, y=y, one=one) or f"The user asks a question that I know. {answer}"
        return Turn(question, answer, short=str(y), thought=thought, kind=self.name)

    def chain(self, rng):
        """A question and follow-ups such as 'And Japan?' about other rows."""
        rows = rng.sample(self.rows, min(len(self.rows), rng.randint(2, 4)))
        turns = [self.turn(rng, row=rows[0])]
        for x, y in rows[1:]:
            form = rng.choice(self.follow)
            turns.append(self.about(x, y, typed(rng, the(form.format(x=x)))))
        return turns


AND = ["And {x}?", "What about {x}?", "And for {x}?", "How about {x}?", "And what about {x}?",
       "Now {x}.", "And {x}", "what about {x}", "The same for {x}?", "{x}?"]


def _country(field):
    return [(c["name"], c[field]) for c in COUNTRIES]


def _unique_capital():
    return [(c["capital"], c["name"]) for c in COUNTRIES if c["capital"] != c["name"]]


_CAPITAL = Relation(
    "capital", _country("capital"),
    ["What is the capital of {x}?", "What's the capital of {x}?", "Which city is the capital of {x}?",
     "Name the capital of {x}.", "Tell me the capital of {x}.", "Capital of {x}?",
     "Do you know the capital of {x}?", "Can you tell me the capital of {x}?",
     "What is the capital city of {x}?", "What city is the capital of {x}?", "{x}: capital?",
     "Could you name the capital of {x}?", "I want to know the capital of {x}.",
     "Which city is {x}'s capital?", "What is {x}'s capital?", "The capital of {x} is which city?",
     "Can you tell me what the capital of {x} is?", "Give me the capital of {x}.",
     "What is the name of the capital of {x}?", "The capital of {x} is", "capital city of {x}",
     "I forgot the capital of {x}.", "Which is the capital of {x}?", "What is the main city of {x}?",
     "Please name {x}'s capital city.", "Which capital does {x} have?",
     "Do you happen to know what the capital of {x} is?",
     "I would like to learn the capital of {x}.", "What is the capital city in {x}?"],
    "The capital of {x} is {y}.",
    "The user asks for the capital of {x}. The capital of {x} is {y}.", AND, 3.0,
    nouns=["the capital of {x}", "the capital city of {x}", "{x}'s capital", "the name of the capital of {x}", "{x}'s capital city"],
    clauses=["what the capital of {x} is", "which city is the capital of {x}", "what the capital city of {x} is called"])

_CAPITAL_OF = Relation(
    "capital_of", _unique_capital(),
    ["{x} is the capital of which country?", "Which country has {x} as its capital?",
     "What country is {x} the capital of?", "Of which country is {x} the capital?",
     "{x} is the capital of what country?", "Which country's capital is {x}?",
     "What country has the capital {x}?", "Name the country whose capital is {x}.",
     "In which country is {x}?", "Where is {x}?", "Which country is {x} in?", "In what country is {x}?",
     "In which country is the city of {x}?", "Where is the city of {x}?", "What country is {x} in?",
     "Tell me the country whose capital is {x}.", "For which country is {x} the capital city?",
     "In what country can I find {x}?"],
    "{x} is the capital of {y}.",
    "The user asks about the city of {x}. {x} is the capital of {y}.", AND, 1.5,
    nouns=["the country whose capital is {x}", "the country with the capital {x}", "the country of the city {x}"],
    clauses=["which country has the capital {x}", "of which country {x} is the capital", "where {x} is", "in which country {x} is"])

_CITY = Relation(
    "city", OTHER_CITIES,
    ["Where is {x}?", "In which country is {x}?", "Which country is {x} in?", "In what country is {x}?",
     "Where is the city of {x}?", "What country is {x} in?", "What is {x}?", "Tell me about {x}.",
     "In what country can I find {x}?", "Where do I find the city of {x}?"],
    "{x} is a city in {y}.", "The user asks about the city of {x}. It is a city in {y}.", AND, 0.6,
    nouns=["the country of {x}", "the country in which {x} is"],
    clauses=["where {x} is", "in which country {x} is", "where I can find {x}"])

_CONTINENT = Relation(
    "continent", _country("continent"),
    ["On which continent is {x}?", "Which continent is {x} in?", "What continent is {x} in?",
     "In which continent is {x}?", "Where is {x}?", "Where in the world is {x}?",
     "What continent does {x} belong to?", "Which continent does {x} belong to?", "Where is {x} located?",
     "Name the continent of {x}.", "On what continent is {x}?", "In which part of the world is {x}?",
     "{x}: which continent?", "Tell me the continent of {x}.",
     "On which continent can I find {x}?", "What continent is {x} on?",
     "To which continent does {x} belong?"],
    "{x} is in {y}.", "The user asks where {x} is. {x} is in {y}.", AND, 1.2,
    nouns=["the continent of {x}", "{x}'s continent", "the continent on which {x} is"],
    clauses=["on which continent {x} is", "where {x} is", "which continent {x} belongs to"])

_CURRENCY = Relation(
    "currency", _country("currency"),
    ["What is the currency of {x}?", "What currency does {x} use?", "Which currency is used in {x}?",
     "What money do people use in {x}?", "What is the money of {x} called?", "Currency of {x}?",
     "What's the currency of {x}?", "How do people pay in {x}?", "What currency is used in {x}?",
     "Which currency does {x} have?", "What is the currency in {x}?", "Name the currency of {x}.",
     "Tell me the currency of {x}.", "What money is used in {x}?",
     "What kind of money do they use in {x}?", "Please name the currency that {x} uses.",
     "What is {x}'s currency?"],
    "The currency of {x} is the {y}.",
    "The user asks for the currency of {x}. People there use the {y}.", AND, 1.5,
    nouns=["the currency of {x}", "{x}'s currency", "the money of {x}", "the name of the currency of {x}"],
    clauses=["what currency {x} uses", "which money people use in {x}", "how people pay in {x}"])

_LANGUAGE = Relation(
    "language", _country("language"),
    ["What language is spoken in {x}?", "Which language do people speak in {x}?",
     "What do people speak in {x}?", "What is the language of {x}?", "Language of {x}?",
     "Which languages are spoken in {x}?", "What languages do they speak in {x}?",
     "What language do they speak in {x}?", "What is the official language of {x}?",
     "Name the language of {x}.", "Tell me the language of {x}.", "Which language is spoken in {x}?",
     "What language do people in {x} speak?", "What's the language of {x}?",
     "Which language would I hear in {x}?", "What is the main language in {x}?",
     "Please tell me what people speak in {x}."],
    "People in {x} speak {y}.",
    "The user asks for the language of {x}. People there speak {y}.", AND, 1.5,
    nouns=["the language of {x}", "the official language of {x}", "{x}'s language", "the main language of {x}"],
    clauses=["what people speak in {x}", "which language is spoken in {x}", "which language people speak in {x}"])

_SYMBOL = Relation(
    "symbol", [(n, s) for n, s, _ in ELEMENTS],
    ["What is the chemical symbol of {x}?", "What is the chemical symbol for {x}?",
     "What is the symbol of {x}?", "What is the symbol for {x}?", "Chemical symbol of {x}?",
     "Which symbol does {x} have?", "What's the symbol for {x}?", "How is {x} written in chemistry?",
     "Give me the chemical symbol of {x}.", "Tell me the symbol of {x}.",
     "What is the element symbol of {x}?", "What letters stand for {x} in the periodic table?",
     "Which chemical symbol stands for {x}?", "What symbol does {x} have in the periodic table?"],
    "The chemical symbol of {x} is {y}.",
    "The user asks for the symbol of {x}. The symbol of {x} is {y}.", AND, 1.5,
    nouns=["the chemical symbol of {x}", "the symbol of {x}", "the symbol for {x}", "{x}'s chemical symbol"],
    clauses=["which symbol {x} has", "how {x} is written in chemistry"])

_ELEMENT = Relation(
    "element", [(s, n) for n, s, _ in ELEMENTS],
    ["Which element has the symbol {x}?", "What element is {x}?", "What does the symbol {x} stand for?",
     "Which chemical element is {x}?", "What element has the symbol {x}?",
     "{x} is the symbol of which element?", "Name the element with the symbol {x}.",
     "The chemical symbol {x} means what?", "What is the element {x}?",
     "Tell me which element {x} is.", "For which element does {x} stand?"],
    "{x} is the chemical symbol of {y}.",
    "The user asks for the element {x}. {x} stands for {y}.", AND,
    nouns=["the element with the symbol {x}", "the name of the element {x}"],
    clauses=["which element {x} is", "what {x} stands for in chemistry", "which element has the symbol {x}"])

_ATOMIC = Relation(
    "atomic_number", [(n, z) for n, _, z in ELEMENTS],
    ["What is the atomic number of {x}?", "Atomic number of {x}?", "Which atomic number does {x} have?",
     "What's the atomic number of {x}?", "What number is {x} in the periodic table?",
     "How many protons does {x} have?", "How many protons are in an atom of {x}?",
     "Tell me the atomic number of {x}.",
     "What is the number of {x} in the periodic table?", "Give the atomic number of {x}, please."],
    "The atomic number of {x} is {y}.",
    "The user asks for the atomic number of {x}. It is {y}.", AND,
    nouns=["the atomic number of {x}", "{x}'s atomic number", "the number of protons of {x}"],
    clauses=["which atomic number {x} has", "how many protons {x} has"])

_BOTH_WAYS = {y: x for x, y in reversed(OPPOSITES)} | dict(reversed(OPPOSITES))
_OPPOSITE = Relation(
    "opposite", sorted(_BOTH_WAYS.items()),
    ["What is the opposite of {x}?", "What's the opposite of {x}?", "Opposite of {x}?",
     "Tell me the opposite of {x}.", "Name the opposite of {x}.", "What is the opposite of \"{x}\"?",
     "Which word is the opposite of {x}?", "Give me the opposite of {x}.", "The opposite of {x} is",
     "What word means the opposite of {x}?", "opposite of \"{x}\"", "What is the antonym of {x}?",
     "Which word means the contrary of {x}?", "I need the opposite of the word {x}."],
    "The opposite of {x} is {y}.", "The user wants the opposite of {x}. It is {y}.", AND, 1.5,
    nouns=["the opposite of {x}", "the opposite of the word {x}", "the antonym of {x}", "the contrary of {x}"],
    clauses=["what the opposite of {x} is", "which word is the opposite of {x}"])

_SYNONYM = Relation(
    "synonym", SYNONYMS,
    ["What is another word for {x}?", "Give me a synonym of {x}.", "What is a synonym for {x}?",
     "Which word means the same as {x}?", "Another word for {x}?", "Tell me another word for {x}.",
     "What word is similar to {x}?",
     "I need a different word for {x}.", "Can you name a synonym of {x}?"],
    "Another word for {x} is {y}.", "The user wants a synonym of {x}. A good one is {y}.", AND,
    nouns=["another word for {x}", "a synonym of {x}", "a synonym for {x}", "a different word for {x}"],
    clauses=["what another word for {x} is", "which word means the same as {x}"])

_COLOUR = Relation(
    "colour", COLOURS,
    ["What colour is {x}?", "What color is {x}?", "Which colour does {x} have?", "What is the colour of {x}?",
     "Tell me the colour of {x}.", "Colour of {x}?", "What's the color of {x}?",
     "Which color is {x}?",
     "In what colour do we see {x}?", "Name the colour of {x}."],
    "{x} is {y}.", "The user asks for the colour of {x}. It is {y}.", AND,
    nouns=["the colour of {x}", "the color of {x}"],
    clauses=["what colour {x} is", "which colour {x} has"])

_SHAPE = Relation(
    "sides", SHAPES,
    ["How many sides does {x} have?", "How many sides has {x}?", "How many corners does {x} have?",
     "Number of sides of {x}?", "Tell me how many sides {x} has.", "How many edges does {x} have?",
     "What is the number of sides of {x}?", "Do you know how many sides {x} has?"],
    "{x} has {y} sides.", "The user asks about {x}. It has {y} sides.", AND,
    nouns=["the number of sides of {x}", "the number of corners of {x}"],
    clauses=["how many sides {x} has", "how many corners {x} has"])


def _animal_rows(field):
    return [(r["name"], r[field]) for r in ANIMALS if r[field] != "-"]


_KIND = Relation(
    "animal_kind", [(a(n), a(y)) for n, y in _animal_rows("kind")],
    ["What kind of animal is {x}?", "Is {x} a mammal, a bird, a reptile, a fish or an insect?",
     "What type of animal is {x}?", "Which class of animals does {x} belong to?", "What is {x}?",
     "To which group of animals does {x} belong?", "What sort of animal is {x}?",
     "Tell me what kind of animal {x} is.", "Which kind of animal is {x}?"],
    "{x} is {y}.", "The user asks about {x}. {x} is {y}.", AND,
    nouns=["the kind of animal of {x}", "the group of {x}"],
    clauses=["what kind of animal {x} is", "to which group of animals {x} belongs"])

_LEGS = Relation(
    "legs", [(a(n), y) for n, y in _animal_rows("legs")],
    ["How many legs does {x} have?", "How many legs has {x}?", "How many legs are there on {x}?",
     "Number of legs of {x}?", "Tell me how many legs {x} has.", "how many legs has {x} got?",
     "What is the number of legs of {x}?", "Do you know how many legs {x} has?"],
    "{x} has {y} legs.", "The user asks how many legs {x} has. {x} has {y} legs.", AND,
    nouns=["the number of legs of {x}"],
    clauses=["how many legs {x} has"])

_SOUND = Relation(
    "sound", [(a(n), y) for n, y in _animal_rows("sound") if "no sound" not in y],
    ["What sound does {x} make?", "What noise does {x} make?", "Which sound does {x} make?",
     "How does {x} sound?", "What does {x} say?", "Tell me the sound of {x}.",
     "What kind of noise does {x} make?", "Which noise comes from {x}?"],
    "{x} {y}.", "The user asks for the sound of {x}. {x} {y}.", AND,
    nouns=["the sound of {x}", "the noise of {x}"],
    clauses=["what sound {x} makes", "which noise {x} makes"])

_YOUNG = Relation(
    "young", [(a(n), a(y)) for n, y in _animal_rows("young")],
    ["What is a baby of {x} called?", "What do you call the young of {x}?", "What is a young of {x} called?",
     "What is the baby of {x} called?", "How do you call the baby of {x}?",
     "What is the name for the young of {x}?",
     "Tell me what the baby of {x} is called.", "Which name has the young of {x}?"],
    "The young of {x} is called {y}.", "The user asks for the young of {x}. It is called {y}.", AND,
    nouns=["the name for the young of {x}", "the name of the baby of {x}"],
    clauses=["what the baby of {x} is called", "what the young of {x} is called"])

_FOOD = Relation(
    "food", [(r["plural"], r["food"]) for r in ANIMALS],
    ["What do {x} eat?", "What is the food of {x}?", "What do {x} like to eat?", "What do {x} live on?",
     "Which food do {x} eat?", "Tell me what {x} eat.",
     "What kind of food do {x} eat?", "On what do {x} feed?"],
    "{x} eat {y}.", "The user asks what {x} eat. They eat {y}.", AND,
    nouns=["the food of {x}"],
    clauses=["what {x} eat", "on what {x} feed", "what {x} live on"])

_PLANET = Relation(
    "planet_order", [(ORDINALS[i], p) for i, p in enumerate(PLANETS)],
    ["Which planet is the {x} from the Sun?", "What is the {x} planet from the Sun?",
     "Name the {x} planet of the solar system.", "What is the {x} planet?", "Which planet is the {x} one?",
     "Tell me the {x} planet.",
     "Which is the {x} planet of the solar system?", "Counting from the Sun, which planet is the {x}?"],
    "The {x} planet from the Sun is {y}.",
    "The user asks for the {x} planet. Counting from the Sun, it is {y}.", ["And the {x}?", "The {x}?"],
    nouns=["the {x} planet", "the {x} planet from the Sun", "the {x} planet of the solar system"],
    clauses=["which planet is the {x}", "which planet is the {x} from the Sun"])

_PLANET_PLACE = Relation(
    "planet_place", [(p, ORDINALS[i]) for i, p in enumerate(PLANETS)],
    ["Which place has {x} in the solar system?", "What number is {x} from the Sun?",
     "Which position does {x} have from the Sun?", "Where is {x} in the solar system?",
     "Is {x} the first planet from the Sun?", "What is {x}?",
     "At which place from the Sun is {x}?", "Tell me the position of {x} among the planets."],
    "{x} is the {y} planet from the Sun.",
    "The user asks about the planet {x}. It is the {y} planet from the Sun.", AND,
    nouns=["the position of the planet {x}", "the place of {x} in the solar system"],
    clauses=["at which place from the Sun {x} is", "which position {x} has"])


def _around(items):
    """(item, next) and (item, previous) around a circle."""
    n = len(items)
    return [(x, items[(i + 1) % n]) for i, x in enumerate(items)]


_CALENDAR = _around(DAYS) + _around(MONTHS) + _around(SEASONS)
_AFTER = Relation(
    "after", _CALENDAR,
    ["What comes after {x}?", "Which one comes after {x}?", "What follows {x}?", "After {x} comes what?",
     "What is next after {x}?", "{x} is followed by what?", "What comes right after {x}?",
     "Tell me what comes directly after {x}.", "Which one follows {x}?"],
    "After {x} comes {y}.", "The user asks what follows {x}. It is {y}.", AND,
    nouns=["the one after {x}"],
    clauses=["what comes after {x}", "which one follows {x}"])
_BEFORE = Relation(
    "before", [(y, x) for x, y in _CALENDAR],
    ["What comes before {x}?", "Which one comes before {x}?", "What is just before {x}?",
     "Before {x} comes what?", "What comes right before {x}?",
     "Tell me what comes directly before {x}.", "Which one is just before {x}?"],
    "Before {x} comes {y}.", "The user asks what comes before {x}. It is {y}.", AND,
    nouns=["the one before {x}"],
    clauses=["what comes before {x}", "which one comes before {x}"])
_DAY_AFTER = Relation(
    "day_after", _around(DAYS),
    ["What day comes after {x}?", "Which day comes after {x}?", "Which day follows {x}?",
     "If today is {x}, what day is tomorrow?", "Today is {x}. What day is it tomorrow?",
     "What day is the day after {x}?", "It is {x} today. Which day is tomorrow?",
     "What is the next day after {x}?", "When today is {x}, which day will tomorrow be?"],
    "The day after {x} is {y}.", "The user asks for the day after {x}. It is {y}.", AND,
    nouns=["the day after {x}", "the next day after {x}"],
    clauses=["which day comes after {x}", "which day follows {x}"])
_DAY_BEFORE = Relation(
    "day_before", [(y, x) for x, y in _around(DAYS)],
    ["What day comes before {x}?", "Which day comes before {x}?", "What day was it before {x}?",
     "If today is {x}, what day was yesterday?", "Today is {x}. What day was it yesterday?",
     "What is the previous day of {x}?", "When today is {x}, which day was yesterday?"],
    "The day before {x} is {y}.", "The user asks for the day before {x}. It is {y}.", AND,
    nouns=["the day before {x}", "the previous day of {x}"],
    clauses=["which day comes before {x}", "which day is before {x}"])
_MONTH_DAYS = Relation(
    "month_days", list(zip(MONTHS, MONTH_DAYS)),
    ["How many days does {x} have?", "How many days are in {x}?", "How many days are there in {x}?",
     "How long is {x}?", "Number of days in {x}?", "Tell me how many days {x} has.",
     "What is the number of days in {x}?", "How many days has the month of {x}?"],
    "{x} has {y} days.", "The user asks for the length of {x}. It has {y} days.", AND,
    nouns=["the number of days in {x}", "the number of days of {x}", "the length of {x}"],
    clauses=["how many days {x} has", "how many days are in {x}"])
_MONTH_NUMBER = Relation(
    "month_number", list(zip(ORDINALS, MONTHS)),
    ["What is the {x} month of the year?", "Which month is the {x}?", "Name the {x} month.",
     "Which is the {x} month of the year?", "What's the {x} month?",
     "Tell me the {x} month of the year.", "Which month comes {x} in the year?"],
    "The {x} month of the year is {y}.", "The user asks for the {x} month. It is {y}.",
    ["And the {x}?", "The {x}?"],
    nouns=["the {x} month", "the {x} month of the year"],
    clauses=["which month is the {x}", "which month comes {x} in the year"])
_LANDMARK = Relation(
    "landmark", [(r["name"], r["place"] + " in " + r["country"]) for r in LANDMARKS],
    ["Where is {x}?", "In which city is {x}?", "Where can I see {x}?", "Where can I find {x}?",
     "In which country is {x}?", "Where is {x} located?", "In which place is {x}?",
     "What city is {x} in?", "Which city is home to {x}?",
     "In what place does {x} stand?", "Where do I have to go to see {x}?"],
    "{x} is in {y}.", "The user asks where {x} is. It is in {y}.", AND,
    nouns=["the place of {x}", "the city where {x} is"],
    clauses=["where {x} is", "in which city {x} is", "where I can find {x}", "where I can see {x}"])
_DICTIONARY = []
for _language in ("French", "Spanish", "German", "Italian"):
    _DICTIONARY += [(r["English"] + "|" + _language, r[_language]) for r in TRANSLATIONS
                    if r["English"] != r[_language]]

_RHYME = Relation(
    "rhyme", RHYMES,
    ["What rhymes with {x}?", "Which word rhymes with {x}?", "Find a rhyme for {x}.", "A rhyme for {x}?",
     "Give me a word that rhymes with {x}.", "Tell me a rhyme for {x}.",
     "I need a rhyme for the word {x}.", "Can you rhyme {x} with something?"],
    "A rhyme for {x} is {y}.", "The user wants a rhyme for {x}. {y} fits.", AND, 0.6,
    nouns=["a rhyme for {x}", "a word that rhymes with {x}"],
    clauses=["what rhymes with {x}", "which word rhymes with {x}"])
_ONE = {r["plural"]: a(r["name"]) for r in ANIMALS}
_PLURAL_LEGS = Relation(
    "legs", [(r["plural"], r["legs"]) for r in ANIMALS if r["legs"] != "-"],
    ["How many legs do {x} have?", "How many legs have {x}?", "How many legs have {x} got?",
     "Number of legs of {x}?",
     "Do you know how many legs {x} have?"], "{one} has {y} legs.",
    "The user asks about the legs of {x}. There are {y}.", AND, 0.6,
    nouns=["the number of legs of {x}"],
    clauses=["how many legs {x} have"])
_PLURAL_KIND = Relation(
    "animal_kind", [(r["plural"], a(r["kind"])) for r in ANIMALS],
    ["What kind of animals are {x}?", "What are {x}?", "What type of animal are {x}?",
     "Which class of animals are {x}?",
     "To which group do {x} belong?"], "{one} is {y}.", "The user asks about {x}. {one} is {y}.", AND, 0.5,
    nouns=["the group of {x}"],
    clauses=["what kind of animals {x} are", "to which group {x} belong"])
_PLURAL_SOUND = Relation(
    "sound", [(r["plural"], r["sound"]) for r in ANIMALS if "no sound" not in r["sound"]],
    ["What sound do {x} make?", "What noise do {x} make?", "What do {x} say?", "How do {x} sound?",
     "Which noise do {x} make?"], "{one} {y}.", "The user asks for the sound of {x}. {one} {y}.", AND, 0.5,
    nouns=["the sound of {x}"],
    clauses=["what sound {x} make", "which noise {x} make"])

RELATIONS = [_RHYME, _PLURAL_LEGS, _PLURAL_KIND, _PLURAL_SOUND, _CAPITAL, _CAPITAL_OF, _CITY, _CONTINENT,
             _CURRENCY, _LANGUAGE, _SYMBOL, _ELEMENT, _ATOMIC, _OPPOSITE, _SYNONYM, _COLOUR, _SHAPE, _KIND, _LEGS, _SOUND, _YOUNG, _FOOD, _PLANET,
             _PLANET_PLACE, _AFTER, _BEFORE, _DAY_AFTER, _DAY_BEFORE, _MONTH_DAYS, _MONTH_NUMBER,
             _LANDMARK]

_WEIGHTS = [r.weight for r in RELATIONS]


def relation_turn(rng, held=False):
    """One question from one relation."""
    return rng.choices(RELATIONS, _WEIGHTS)[0].turn(rng, held)


def relation_chain(rng):
    """A question and its elliptical follow-ups."""
    return rng.choices(RELATIONS, _WEIGHTS)[0].chain(rng)


_UNIT = Phrases(
    ["How many {of} are in {x}?", "How many {of} does {x} have?", "How many {of} are there in {x}?",
     "How many {of} make {x}?", "{x} has how many {of}?", "How many {of} in {x}?", "Number of {of} in {x}?",
     "How many {of} are {x}?"],
    nouns=["the number of {of} in {x}"],
    clauses=["how many {of} are in {x}", "how many {of} make {x}", "how many {of} {x} has"])


def unit_turn(rng, held=False):
    """How many minutes are in an hour?"""
    u = rng.choice(UNITS)
    form = _UNIT.pick(rng, held)
    answer = f"There are {u['count']} {u['of']} in {u['unit']}."
    return Turn(typed(rng, the(form.format(x=u["unit"], of=u["of"])), form, held), answer, u["count"],
                f"The user asks about {u['unit']}. {answer}", "unit")


_UNIT_MANY = Phrases(
    ["How many {of} are in {n} {x}?", "How many {of} are {n} {x}?", "{n} {x} are how many {of}?",
     "How many {of} do {n} {x} have?", "Convert {n} {x} to {of}."],
    nouns=["the number of {of} in {n} {x}"], clauses=["how many {of} are in {n} {x}", "how many {of} {n} {x} are"],
    commands=["convert {n} {x} to {of}"])


def unit_many_turn(rng, held=False):
    """How many minutes are in three hours?"""
    u = rng.choice([u for u in UNITS if int(u["count"]) <= 100 and u["unit"].split()[-1] in
                    ("minute", "hour", "day", "week", "year", "decade", "metre", "centimetre", "yard")])
    n = rng.randint(2, 9)
    unit, total = u["unit"].split()[-1] + "s", n * int(u["count"])
    form = _UNIT_MANY.pick(rng, held)
    return Turn(typed(rng, the(form.format(of=u["of"], n=n, x=unit)), form, held),
                f"There are {total} {u['of']} in {n} {unit}.", str(total),
                f"There are {u['count']} {u['of']} in {u['unit']}. {n} * {u['count']} = {total}.", "unit_many")


_MIX = Phrases(
    ["What colour do {x} and {y} make?", "What do you get if you mix {x} and {y}?",
     "Mix {x} and {y}. What colour is it?", "What color do {x} and {y} give?",
     "Which colour is a mix of {x} and {y}?", "{x} plus {y} gives which colour?"],
    nouns=["the colour of {x} mixed with {y}", "the mix of {x} and {y}"],
    clauses=["what colour {x} and {y} make", "which colour I get from {x} and {y}"])


def mix_turn(rng, held=False):
    """Red and yellow make orange."""
    x, y, z = rng.choice(MIXES)
    if rng.random() < 0.5:
        x, y = y, x
    form = _MIX.pick(rng, held)
    return Turn(typed(rng, the(form.format(x=x, y=y)), form, held), f"{the(x)} and {y} make {z}.", z,
                f"The user mixes {x} and {y}. That makes {z}.", "mix")


_WORK = Phrases(
    ["Who {v} {x}?", "Who {v} {x}? ", "By whom was {x} made?", "{x}: who {v} it?", "Which person {v} {x}?",
     "Who was it that {v} {x}?"],
    nouns=["the person who {v} {x}", "the name of the person who {v} {x}"], clauses=["who {v} {x}"])


def work_turn(rng, held=False):
    """Who wrote, painted, composed, invented or discovered it?"""
    w = rng.choice(WORKS)
    verb, work, who = w["verb"], w["work"], w["who"]
    form = _WORK.pick(rng, held)
    return Turn(typed(rng, the(form.format(v=verb, x=work)).strip(), form, held), f"{who} {verb} {work}.", who,
                f"The user asks who {verb} {work}. It was {who}.", "work")


_WORK_OF = Phrases(
    ["Who was {x}?", "Who is {x}?", "What did {x} do?", "What is {x} known for?", "Tell me about {x}.",
     "Why is {x} famous?", "What is {x} famous for?"],
    clauses=["who {x} was", "what {x} did", "why {x} is famous"])


def work_of_turn(rng, held=False):
    """Who was Homer?"""
    w = rng.choice([w for w in WORKS if w["who"] not in ("William Shakespeare", "Albert Einstein")])
    verb, work, who = w["verb"], w["work"], w["who"]
    form = _WORK_OF.pick(rng, held)
    return Turn(typed(rng, form.format(x=who), form, held), f"{who} {verb} {work}.", work,
                f"The user asks about {who}, who {verb} {work}.", "work_of")


_TRANSLATE = Phrases(
    ["How do you say {x} in {l}?", "What is {x} in {l}?", "Translate {x} into {l}.",
     "What is the {l} word for {x}?", "Translate \"{x}\" to {l}.", "How do I say \"{x}\" in {l}?", "Say {x} in {l}.",
     "{x} in {l}?", "What does {x} mean in {l}?", "The {l} for {x}?", "Which {l} word means {x}?"],
    nouns=["the {l} word for {x}", "the {l} translation of {x}", "{x} in {l}"],
    clauses=["how to say {x} in {l}", "what {x} is in {l}", "how people say {x} in {l}"],
    commands=["translate {x} into {l}", "translate {x} to {l}", "say {x} in {l}"])


def translation_turn(rng, held=False):
    """How do you say 'water' in French?"""
    pair, word = rng.choice(_DICTIONARY)
    english, language = pair.split("|")
    form = _TRANSLATE.pick(rng, held)
    return Turn(typed(rng, the(form.format(x=english, l=language)), form, held),
                f"In {language}, {english} is \"{word}\".", word,
                f"The user wants the {language} word for {english}. It is {word}.", "translation")


def no_translation_turn(rng, held=False):
    """Words that the small dictionary does not have."""
    known = {t["English"] for t in TRANSLATIONS}
    word = rng.choice([w for w in NOUNS if w not in known])
    language = rng.choice(["French", "Spanish", "German", "Italian", "Chinese", "Russian", "Dutch", "Latin"])
    form = _TRANSLATE.pick(rng, held)
    return Turn(typed(rng, the(form.format(x=word, l=language)), form, held),
                f"I am sorry, I do not know the {language} word for {word}.", "",
                f"The word {word} is not in my small dictionary.", "no_translation")


_FOREIGN = Phrases(
    ["What does the {l} word {w} mean?", "What is {w} in English? It is {l}.",
     "Translate the {l} word {w} into English.", "{w} is {l}. What does it mean?"],
    nouns=["the meaning of the {l} word {w}", "the English for the {l} word {w}"],
    clauses=["what the {l} word {w} means"], commands=["translate the {l} word {w}", "explain the {l} word {w}"])


def foreign_turn(rng, held=False):
    """What does 'Hund' mean?"""
    pair, word = rng.choice(_DICTIONARY)
    language = pair.split("|")[1]
    first = next(t["English"] for t in TRANSLATIONS if t[language] == word)
    form = _FOREIGN.pick(rng, held)
    return Turn(the(form.format(l=language, w=word)), f"The {language} word {word} means {first}.", first,
                f"The {language} word {word} means {first}.", "foreign")


_COUNTRY = Phrases(
    ["Tell me about {x}.", "What do you know about {x}?", "Describe {x}.", "Tell me something about {x}.",
     "Give me some facts about {x}.", "What is {x}?", "Say something about {x}.", "Can you tell me about {x}?", "{x}"],
    nouns=["some facts about {x}", "something about {x}"], clauses=["what you know about {x}"],
    commands=["describe {x}", "tell me about {x}", "talk about {x}"])


def country_turn(rng, held=False):
    """A small portrait of a country."""
    c = rng.choice(COUNTRIES)
    name = c["name"]
    form = _COUNTRY.pick(rng, held)
    answer = (f"{the(name)} is a country in {c['continent']}. Its capital is {c['capital']}. "
              f"People there speak {c['language']}, and the currency is the {c['currency']}.")
    return Turn(typed(rng, the(form.format(x=name)), form, held), answer, "",
                f"The user wants to know about {name}. I list continent, capital, language and currency.",
                "country")


def country_chain(rng):
    """Several questions about one country, with 'it' and 'there' in the later ones."""
    c = rng.choice(COUNTRIES)
    name = c["name"]
    first = rng.choice([_CAPITAL, _CONTINENT, _CURRENCY, _LANGUAGE])
    turns = [first.turn(rng, row=(name, c[first.name]))]
    later = {
        "capital": (_CAPITAL, ["And its capital?", "What is its capital?", "And the capital?",
                               "What is the capital there?", "What is the capital?"]),
        "continent": (_CONTINENT, ["And on which continent is it?", "Which continent is it in?",
                                   "And the continent?", "Where is it?"]),
        "currency": (_CURRENCY, ["And its currency?", "What currency do they use there?",
                                 "And the currency?", "What money do they use?"]),
        "language": (_LANGUAGE, ["And the language?", "What language do they speak there?",
                                 "What do people speak there?", "And what do they speak?"]),
    }
    del later[first.name]
    for field in rng.sample(sorted(later), rng.randint(1, 3)):
        relation, forms = later[field]
        turns.append(relation.about(name, c[field], typed(rng, rng.choice(forms))))
    return turns


_CONTEXT = [f"{s} {v} {{x}}." for s, v in (
    ("I am going", "to"), ("I am", "in"), ("Next week I fly", "to"), ("I want", "to visit"), ("My friend is", "from"),
    ("I read", "about"), ("We talked", "about"), ("My sister moves", "to"), ("I have a map", "of"),
    ("I like", "the people of"), ("I come", "from"), ("My brother works", "in"), ("We learn", "about"),
    ("Tomorrow I travel", "to"), ("I saw a film", "about"))]
_CONTEXT_ASK = {"capital": ["What is the capital?", "What is its capital?", "Which city is the capital?",
                            "Do you know the capital?", "Tell me the capital."],
                "currency": ["What money do they use there?", "What is the currency?", "How do they pay there?"],
                "language": ["What do people speak there?", "Which language do they speak?", "What is the language?"],
                "continent": ["On which continent is it?", "Which continent is that?", "Where is that?"]}


def context_turn(rng, held=False):
    """A country is mentioned first, the question comes after it."""
    c = rng.choice(COUNTRIES)
    field = rng.choice(sorted(_CONTEXT_ASK))
    relation = {"capital": _CAPITAL, "currency": _CURRENCY, "language": _LANGUAGE, "continent": _CONTINENT}[field]
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
    return Phrases(always + [statement + ", right?", "Is it true that " + statement + "?"],
                   clauses=["if " + statement, "whether " + statement, "if it is true that " + statement])


_IS_CAPITAL = _claim_phrases("{y} is the capital of {x}",
                             ["Is {y} the capital of {x}?", "Is the capital of {x} {y}?",
                              "{y} is the capital of {x}. True or false?",
                              "Am I right that {y} is the capital of {x}?"])
_IS_KIND = _claim_phrases("{x} is {y}", ["Is {x} {y}?", "Is {x} really {y}?", "Can you say that {x} is {y}?",
                                         "Would you say that {x} is {y}?"])
_IS_IN = _claim_phrases("{x} is in {y}", ["Is {x} in {y}?", "Is {x} really in {y}?", "Does {x} lie in {y}?"])
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
    asked = r["kind"] if rng.random() < 0.5 else rng.choice(["mammal", "bird", "reptile", "fish", "insect"])
    return _claim(rng, held, _IS_KIND, a(r["name"]), a(asked), asked == r["kind"],
                  f"{a(r['name'])} is {a(r['kind'])}", "animal_yes_no")


def place_yes_no_turn(rng, held=False):
    """Is Berlin in Germany?  Is France in Asia?"""
    yes = rng.random() < 0.5
    if rng.random() < 0.5:
        city, country = rng.choice(_CITIES_IN)
        other = rng.choice([c["name"] for c in COUNTRIES if c["name"] != country])
        return _claim(rng, held, _IS_IN, city, country if yes else other, yes, f"{city} is in {country}",
                      "place_yes_no")
    c = rng.choice([c for c in COUNTRIES if " and " not in c["continent"]])
    other = rng.choice([k for k in ("Europe", "Asia", "Africa", "North America", "South America")
                        if k != c["continent"]])
    return _claim(rng, held, _IS_IN, c["name"], c["continent"] if yes else other, yes,
                  f"{c['name']} is in {c['continent']}", "place_yes_no")


_CITIES_IN = OTHER_CITIES + [(c["capital"], c["name"]) for c in COUNTRIES if c["capital"] != c["name"]]


def property_turn(rng, held=False):
    """Is fire cold?  Can a dog fly?"""
    yes = rng.random() < 0.5
    if rng.random() < 0.5:
        animal = rng.choice(FLYERS if yes else NO_FLYERS)
        plural = next(r["plural"] for r in ANIMALS if r["name"] == animal)
        fact = f"{a(animal)} can fly" if yes else f"{a(animal)} cannot fly"
        return _claim(rng, held, _CAN_FLY, rng.choice([a(animal), plural]), "", yes, fact, "property")
    thing, what = rng.choice(PROPERTIES)
    return _claim(rng, held, _IS_KIND, thing, what if yes else _BOTH_WAYS[what], yes, f"{thing} is {what}",
                  "property")


_SIZE = Phrases(
    ["Which is {w}, {x} or {y}?", "What is {w}, {x} or {y}?", "Is {x} or {y} {w}?",
     "Which animal is {w}: {x} or {y}?"],
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
    return Turn(typed(rng, the(form.format(x=x, y=y, w=asked)), form, held), f"{the(best)} is {word} than {other}.",
                best.split()[1], f"I compare {x} and {y}. {the(best)} is {word}.", "size")


def trivia_turn(rng, held=False):
    """A question of the hand-written list; held out are pairs of a question and a remark around it."""
    questions, answer, short = rng.choice(TRIVIA)
    question = rng.choice(questions)
    thought = f"The user asks: {question} {answer}" if short else f"I can explain this. {answer}"
    text = lead(rng, question, question, held=True) if held else typed(rng, question, question)
    return Turn(text, answer, short, thought, "trivia")


_CONTINENT_LIST = Phrases(
    ["Name {n} countries in {x}.", "Tell me {n} countries in {x}.", "Which {n} countries are in {x}?",
     "Give me {n} countries in {x}.", "List {n} countries in {x}."],
    nouns=["{n} countries in {x}", "the names of {n} countries in {x}"])


def same_continent_turn(rng, held=False):
    """Name a country in Africa: the list is short and always the same."""
    continent = rng.choice(["Europe", "Asia", "Africa", "North America", "South America", "Oceania"])
    names = [c["name"] for c in COUNTRIES if c["continent"] == continent]
    n = rng.randint(2, min(4, len(names)))
    count = ["", "", "two", "three", "four"][n]
    form = _CONTINENT_LIST.pick(rng, held)
    return Turn(typed(rng, the(form.format(n=count, x=continent)), form, held),
                f"{the(join_and(names[:n]))} are in {continent}.", "",
                f"The user wants {count} countries in {continent}.", "continent_list")


TURNS = [(relation_turn, 10), (unit_turn, 1), (mix_turn, 0.4), (work_turn, 1.2), (work_of_turn, 0.6),
         (translation_turn, 1.6), (country_turn, 1.5), (yes_no_turn, 1.2), (animal_yes_no_turn, 0.6),
         (trivia_turn, 4), (same_continent_turn, 0.5), (place_yes_no_turn, 1), (property_turn, 1),
         (size_turn, 0.6), (unit_many_turn, 0.6), (context_turn, 0.7), (foreign_turn, 0.6),
         (no_translation_turn, 0.3)]
CHAINS = [(relation_chain, 3), (country_chain, 2)]
