"""Small talk, who the model is, what it cannot know, memory of what the user said, jokes, poems."""

from phrase import Phrases, is_held, lead, typed
from sample import Turn, a, the
from small_talk import (ENDINGS, FAVOURITES, FEELINGS, INTENTS, JOKES, REAL_TOPICS, RHYMES,
                        SYLLABLES, TASKS, TOPICS, UNKNOWN_FORMS, UNKNOWN_NOW)
from tables import (ADJECTIVES, CITIES, COUNTRIES, FOODS, HOBBIES, NAMES, NOUNS, PET_NAMES, PETS)

_REMARKS = [
    "Well, {l}", "So, {l}", "Oh, {l}", "Hmm, {l}", "Hey, {l}", "Okay, {l}", "By the way, {l}",
    "Ah, {l}", "Now, {l}", "{q} my friend", "{q} then", "{q} now", "{q} please", "Bezel, {l}",
    "{q} Bezel", "And {l}", "But {l}", "Hello, {l}", "Hi, {l}", "Right, {l}", "{q} really",
    "{q} again"
]


def intent_turn(rng, held=False):
    """Small talk from the table, sometimes with a small word around it (some pairs held out)."""
    while True:
        questions, answer, thought = rng.choice(INTENTS)
        question, form = rng.choice(questions), rng.choice(_REMARKS)
        if is_held(f"{question}|{form}") == held:
            break
    if held or rng.random() < 0.3:
        mark = question[-1] if question[-1] in "?!." else ""
        text = question.rstrip("?!.")
        low = text if text.split(" ")[0] in ("I", "I'm", "OK") else text[:1].lower() + text[1:]
        question = form.format(q=text, l=low) + mark
    if held:
        return Turn(question, answer, "", thought, "talk")
    if rng.random() < 0.2 and question[-1].isalpha():
        question += rng.choice(".!")
    return Turn(_casual(rng, question), answer, "", thought, "talk")


def _casual(rng, text):
    """Small talk is often typed in lower case and without marks."""
    r = rng.random()
    if r < 0.3:
        text = text.lower()
    if r < 0.15:
        text = text.rstrip("?.!")
    return text


_FEEL = [
    "I am {x}.", "I'm {x}.", "I feel {x}.", "I'm feeling {x}.", "I am so {x}.",
    "I'm very {x} today.", "Today I am {x}.", "I feel {x} today.", "I am feeling {x} today.",
    "I'm a bit {x}.", "I'm {x} today.", "I have been {x} all day.", "Right now I am {x}.",
    "I feel so {x}.", "I am really {x}."
]


def feeling_turn(rng, held=False):
    """I'm feeling sad today."""
    while True:
        words, answer = rng.choice(FEELINGS)
        word, form = rng.choice(words.split("|")), rng.choice(_FEEL)
        if is_held(f"{word}|{form}") == held:
            break
    return Turn(_casual(rng, form.format(x=word)), answer, "",
                f"The user is {word}. I reply kindly.", "feeling")


_FAVOURITE = Phrases([
    "What is your favourite {x}?", "What is your favorite {x}?", "What's your favorite {x}?",
    "Which {x} do you like?", "Which {x} do you like best?", "Do you have a favourite {x}?"
],
                     nouns=["your favourite {x}", "your favorite {x}"],
                     clauses=["which {x} you like"])


def favourite_turn(rng, held=False):
    thing = rng.choice(FAVOURITES)
    return Turn(_casual(rng, the(_FAVOURITE.pick(rng, held).format(x=thing))),
                f"I am a program, so I have no favourite {thing}. What is yours?", "",
                f"The user asks for my favourite {thing}. I have none.", "favourite")


def again_chain(rng):
    """A joke, and another one."""
    count = rng.randint(2, 3)
    kind = rng.randrange(2)
    first = joke_turn(rng) if kind == 0 else poem_turn(rng)
    turns = [first]
    while len(turns) < count:
        new = joke_turn(rng) if kind == 0 else poem_turn(rng)
        if all(new.answer != t.answer for t in turns):
            new.user = _casual(
                rng,
                rng.choice([
                    "Another one.", "Another one please.", "One more!", "Again!",
                    "One more please.", "Do you have another one?", "More!", "Tell me another one."
                ]))
            turns.append(new)
    return turns


_JOKE = Phrases([
    "Tell me a joke.", "Tell me a joke", "Do you know a joke?", "A joke please.", "Make me laugh.",
    "Say something funny.", "Another joke!", "Joke!", "Tell me something funny."
],
                nouns=["a joke", "a funny joke", "another joke", "something funny", "a good joke"],
                commands=[
                    "tell me a joke", "tell me a funny joke", "make me laugh",
                    "tell me another joke", "say something funny"
                ])


def joke_turn(rng, held=False):
    setup, point = rng.choice(JOKES)
    return Turn(_casual(rng, the(_JOKE.pick(rng, held))), f"{setup} {point}", "",
                "The user wants a joke. I choose a short one.", "joke")


def riddle_turn(rng, held=False):
    """Someone tells the first half of a joke."""
    setup, point = rng.choice(JOKES)
    question = lead(rng, setup, setup, held) if held or rng.random() < 0.4 else setup
    return Turn(_casual(rng, question), point, "", f"I know this one. {point}", "riddle")


_POEM = Phrases([
    "Write a poem about {x}.", "Write a short poem about {x}.", "A poem about {x} please.",
    "Can you write a poem about {x}?", "poem about {x}", "Write a haiku about {x}."
],
                nouns=[
                    "a poem about {x}", "a short poem about {x}", "a rhyme about {x}",
                    "a few verses about {x}"
                ],
                commands=[
                    "write a poem about {x}", "write a short poem about {x}",
                    "make a rhyme about {x}", "tell me a poem about {x}",
                    "write me a poem about {x}"
                ])
_ANY_POEM = Phrases(["Write a poem.", "Write me a poem.", "A poem please."],
                    nouns=["a poem", "a short poem"],
                    commands=["write a poem", "write me a poem"])


def poem_turn(rng, held=False):
    word, one, two = rng.choice(RHYMES)
    end = rng.choice(ENDINGS)
    thing = word if word in ("love", "rain", "snow", "bread", "spring", "summer", "winter") else (
        rng.choice(["the ", a(word)[:-len(word)], "my "]) + word)
    form = (_ANY_POEM if rng.random() < 0.1 else _POEM).pick(rng, held)
    return Turn(typed(rng, the(form.format(x=thing)), form,
                      held), f"{one}\n{two}\n{end[0]}\n{end[1]}", "",
                f"The user wants a poem. I write four short lines about {word}.", "poem")


def unknown_now_turn(rng, held=False):
    """What a program without senses cannot know."""
    questions, answer, thought = rng.choice(UNKNOWN_NOW)
    form = rng.choice(questions)
    question = form.format(city=rng.choice(CITIES), country=rng.choice(COUNTRIES)["name"])
    text = lead(rng, question, form, True) if held else typed(rng, question, form)
    return Turn(text, answer, "", thought, "unknown_now")


def _made_up(rng, parts):
    return "".join(rng.choice(SYLLABLES) for _ in range(parts)).capitalize()


_UNKNOWN = Phrases(UNKNOWN_FORMS,
                   nouns=[
                       "{t}", "the history of {t}", "the meaning of {w}", "the age of {n}",
                       "the population of {k}", "the king of {k}", "the job of {n}",
                       "the reason for {t}"
                   ],
                   clauses=[
                       "what {t} is", "how {t} works", "who {n} is", "what {p} is",
                       "where {n} lives", "what {n} did", "how much {ax} costs",
                       "why the {x} is {y}", "who won in {p}", "what people eat in {k}"
                   ],
                   commands=[
                       "explain {t}", "tell me about {t}", "describe {p}", "tell me about {n}",
                       "write about {t}", "define {w}", "talk about {t}"
                   ])


def unknown_turn(rng, held=False):
    """Things that are not in the tables: the model says that it does not know them."""
    form = _UNKNOWN.pick(rng, held)
    x, y = rng.choice(NOUNS), rng.choice(ADJECTIVES)
    topic = rng.choice(REAL_TOPICS) if rng.random() < 0.4 else rng.choice(TOPICS).format(x=x, y=y)
    person = (rng.choice(NAMES) if rng.random() < 0.5 else _made_up(rng, 2)) + " " + _made_up(
        rng, rng.randint(2, 3))
    question = form.format(t=topic,
                           n=person,
                           p=_made_up(rng, rng.randint(2, 4)),
                           c=rng.choice(CITIES),
                           x=x,
                           ax=a(x),
                           y=y,
                           k=rng.choice(COUNTRIES)["name"],
                           w=_made_up(rng, rng.randint(2, 4)).lower())
    return Turn(
        typed(rng, the(question), form, held),
        "I am sorry, I do not know that. I am a very small model and know only simple facts.", "",
        "I do not know this. I say so.", "unknown")


def too_hard_turn(rng, held=False):
    """Work for which the model is too small."""
    form = rng.choice(TASKS)
    question = form.format(c=rng.choice(CITIES),
                           c2=rng.choice(CITIES),
                           x=rng.choice(NOUNS),
                           x2=rng.choice(NOUNS),
                           y=rng.choice(ADJECTIVES),
                           k=rng.randint(2, 99))
    return Turn(
        lead(rng, question, form, True) if held else typed(rng, question, form),
        "I am sorry, that is too hard for me. I am a very small model.", "",
        "This is too hard for me. I say so.", "too_hard")


def gibberish_turn(rng, held=False):
    """Keys hit at random."""
    text = " ".join("".join(rng.choice("asdfghjklqwertyuiop") for _ in range(rng.randint(3, 8)))
                    for _ in range(rng.randint(1, 3)))
    return Turn(text, "I am sorry, I did not understand that.", "", "This is not a sentence.",
                "gibberish")


# what the user says / the model's reply / later question / answer
_MEMORY = [
    ("My name is {n}.|I am {n}.|Hi, I am {n}.|Hello, my name is {n}.|I'm {n}.|You can call me {n}.",
     "Nice to meet you, {n}!", "What is my name?|Who am I?|Do you know my name?|How am I called?|"
     "Do you remember my name?", "Your name is {n}.", "n"),
    ("I live in {c}.|I am from {c}.|My home is {c}.|I come from {c}.",
     "{c} sounds like a nice place!", "Where do I live?|Where am I from?|Do you know where I live?|"
     "Which city do I live in?|In which city do I live?", "You live in {c}.", "c"),
    ("I have a {p} called {q}.|My {p} is called {q}.|My {p}'s name is {q}.|I have a {p}. Its name "
     "is {q}.",
     "{q} is a lovely name for a {p}!", "What is my {p} called?|What is the name of my {p}?|"
     "Do you remember my {p}'s name?|How is my {p} called?", "Your {p} is called {q}.", "q"),
    ("I like {h}.|My hobby is {h}.|I love {h}.|I enjoy {h}.", "{H} is a great hobby!",
     "What is my hobby?|What do I like?|Do you know my hobby?|What do I enjoy?", "You like {h}.",
     "h"),
    ("I am {k} years old.|I'm {k} years old.|My age is {k}.|I am {k}.", "Thank you for telling me.",
     "How old am I?|What is my age?|Do you know how old I am?|Which age am I?",
     "You are {k} years old.", "k"),
    ("My favourite food is {f}.|I like to eat {f}.|I love {f}.|I often eat {f}.",
     "{F} is a good choice!",
     "What is my favourite food?|What do I like to eat?|Which food do I like?", "You like {f}.",
     "f"),
    ("My favourite colour is {o}.|I like the colour {o}.|I like {o} best.|The colour I like is "
     "{o}.",
     "{O} is a beautiful colour!",
     "What is my favourite colour?|Which colour do I like?|What colour do I like best?",
     "Your favourite colour is {o}.", "o"),
    ("My friend is called {n}.|I have a friend called {n}.|My best friend is {n}.",
     "It is good to have a friend like {n}.",
     "What is my friend called?|Who is my friend?|What is the name of my friend?",
     "Your friend is called {n}.", "n"),
]


def memory_chain(rng, between=None, held=False):
    """Tell something, (talk about something else,) ask for it.

    `between` makes the turns in the middle; without it the question follows at once.
    """
    while True:
        told, reply, ask, answer, key = rng.choice(_MEMORY)
        told, ask = rng.choice(told.split("|")), rng.choice(ask.split("|"))
        if is_held(told + ask) == held:
            break
    words = {
        "n": rng.choice(NAMES),
        "c": rng.choice(CITIES),
        "p": rng.choice(PETS),
        "q": rng.choice(PET_NAMES),
        "h": rng.choice(HOBBIES),
        "k": rng.randint(5, 95),
        "f": rng.choice(FOODS),
        "o": rng.choice(["red", "blue", "green", "yellow", "pink", "brown"])
    }
    words["H"], words["F"], words["O"] = the(words["h"]), the(words["f"]), the(words["o"])
    told, ask = told.format(**words), ask.format(**words)
    first = Turn(_casual_end(rng, told), reply.format(**words), "",
                 "The user tells me something. I reply.", "memory_tell")
    last = Turn(_casual(rng, ask), answer.format(**words), str(words[key]),
                f"The user told me before. {answer.format(**words)}", "memory")
    if between is None and rng.random() < 0.3 and not held:  # told and asked in one message
        both = f"{told} {ask}"
        return [Turn(both, last.answer, last.short, last.thought, "memory")]
    return [first] + (between(rng) if between else []) + [last]


def _casual_end(rng, text):
    return text.rstrip(".") if rng.random() < 0.2 else text


TURNS = [(intent_turn, 6), (feeling_turn, 1), (favourite_turn, 0.4), (joke_turn, 0.8),
         (riddle_turn, 0.4), (poem_turn, 0.8), (unknown_now_turn, 1.5), (unknown_turn, 2.5),
         (too_hard_turn, 0.8), (gibberish_turn, 0.3)]
