"""Short stories from a grammar, dialogues, and plain texts without any chat format."""

from phrase import Phrases, typed
from sample import Turn, a, the
from tables import CITIES, COUNTRIES, FOODS, HOBBIES, NAMES_F, NAMES_M, SEASONS

_HEROES = [
    "fox", "cat", "dog", "bear", "mouse", "rabbit", "owl", "horse", "dragon", "robot", "frog",
    "wolf", "lion", "penguin", "king", "queen", "knight", "farmer", "sailor", "wizard", "giant",
    "princess", "baker", "duck", "turtle", "bee", "elephant", "ghost"
]
_QUALITIES = [
    "brave", "clever", "small", "lonely", "kind", "curious", "old", "young", "happy", "shy",
    "hungry", "lazy"
]
_PLACES = {
    "forest": "in a forest",
    "village": "in a village",
    "castle": "in a castle",
    "garden": "in a garden",
    "mountain": "on a mountain",
    "river": "by a river",
    "desert": "in a desert",
    "city": "in a city",
    "island": "on an island",
    "cave": "in a cave",
    "lake": "by a lake",
    "farm": "on a farm"
}
_FRIENDS = [
    "bird", "snail", "goat", "squirrel", "hedgehog", "boy", "girl", "gardener", "crow", "fish"
]
_THINGS = [
    "a golden key", "a silver bell", "an old map", "a red balloon", "a small lamp", "a magic ring",
    "a lost letter", "a warm coat", "a shiny stone", "a wooden box"
]

_OPENINGS = [
    "Once upon a time there was {ah} who lived {where}.", "Long ago, {ah} lived {where}.",
    "Not far from here there was {ah} who lived {where}.", "There once was {ah} who lived {where}."
]
_NAMED = [
    "The {hero} was called {name}.", "Everyone called the {hero} {name}.",
    "The name of the {hero} was {name}."
]
_PROBLEMS = [
    "One day {name} lost {thing}.", "One {season} morning {name} found {thing}.",
    "One day a storm came and {name} could not find the way home.",
    "One day there was no food left at home.", "One night {name} heard a strange noise.",
    "But {name} had no friends and felt alone."
]
_MEETINGS = [
    "Then {name} met a {friend}.", "On the way {name} met a {friend}.", "Soon a {friend} came by."
]
_SPEECH = [
    "\"Can you help me?\" asked {name}. \"Of course,\" said the {friend}.",
    "\"What is wrong?\" asked the {friend}. {name} told the whole story.",
    "\"Do not worry,\" said the {friend}. \"We will find a way.\"",
    "\"I have an idea,\" said the {friend}."
]
_DEEDS = [
    "Together they walked far and looked behind every tree.",
    "They worked all day and did not give up.",
    "They shared some {food} and talked until the stars came out.",
    "They climbed the highest hill and looked around.", "They followed a small light in the dark."
]
_ENDS = [
    "In the end all was well, and {name} was very happy.",
    "At last they found what they were looking for.",
    "From that day on, {name} and the {friend} were friends.",
    "And so {name} learned that it is good to have a friend.",
    "That night {name} slept well and dreamed of the {place}."
]


def story(rng, hero=None, name=None, place=None, quality=None):
    """About eight sentences with one hero, one friend and one little problem."""
    hero = hero or rng.choice(_HEROES)
    place = place or rng.choice(sorted(_PLACES))
    words = {
        "hero": hero,
        "ah": a(f"{quality or rng.choice(_QUALITIES)} {hero}"),
        "name": name or rng.choice(NAMES_F + NAMES_M),
        "place": place,
        "where": _PLACES[place],
        "friend": rng.choice(_FRIENDS),
        "thing": rng.choice(_THINGS),
        "food": rng.choice(FOODS),
        "season": rng.choice(SEASONS)
    }
    parts = [_OPENINGS, _NAMED, _PROBLEMS, _MEETINGS, _SPEECH, _DEEDS]
    text = [rng.choice(p).format(**words) for p in parts]
    if rng.random() < 0.4:
        text.insert(5, rng.choice(_SPEECH[2:]).format(**words))
    text.append(rng.choice(_ENDS[:2]).format(**words))
    text.append(rng.choice(_ENDS[2:]).format(**words))
    return " ".join(text)


_STORY = Phrases([
    "Tell me a story about {x}.", "Write a short story about {x}.", "A story about {x}.",
    "Tell me a short story about {x}.", "Can you tell me a story about {x}?", "story about {x}"
],
                 nouns=["a story about {x}", "a short story about {x}", "a little tale about {x}"],
                 commands=[
                     "tell me a story about {x}", "write a story about {x}",
                     "write a short story about {x}", "make up a story about {x}",
                     "invent a story about {x}"
                 ])
_ANY_STORY = Phrases([
    "Tell me a story.", "Write a story.", "Tell me a short story.", "A story please.",
    "I want to hear a story."
],
                     nouns=["a story", "a short story"],
                     commands=["tell me a story", "write a story", "make up a story"])
_CONTINUE = Phrases(
    ["Continue this story: {t}", "Continue: {t}", "What happens next? {t}", "Go on: {t}"],
    tasks=[
        "continue this story", "continue the text", "go on with this story",
        "write what happens next"
    ])


def story_turn(rng, held=False):
    """Tell me a story about a fox (in a castle, named Tom)."""
    hero, name = rng.choice(_HEROES), rng.choice(NAMES_F + NAMES_M)
    place = rng.choice(sorted(_PLACES))
    r = rng.random()
    if r < 0.1:
        form, x, text = _ANY_STORY.pick(rng, held), "", story(rng, hero)
    elif r < 0.5:
        form, x, text = _STORY.pick(rng, held), a(hero), story(rng, hero)
    elif r < 0.6:
        form, x = _STORY.pick(rng, held), a(f"{rng.choice(_QUALITIES)} {hero}")
        text = story(rng, hero, quality=x.split()[1])
    elif r < 0.8:
        form, text = _STORY.pick(rng, held), story(rng, hero, name)
        x = f"{a(hero)} {rng.choice(['named', 'called'])} {name}"
    else:
        form, text = _STORY.pick(rng, held), story(rng, hero, place=place)
        x = f"{a(hero)} {_PLACES[place]}"
    return Turn(
        typed(rng, the(form.format(x=x)), form, held), text, hero,
        f"The user wants a story about {a(hero)}. I give it a name, a problem, a friend and a good "
        "end.",
        "story")


def continue_turn(rng, held=False):
    """Continue a story that the user begins."""
    text = story(rng)
    cut = text.index(". ", len(text) // 5) + 1
    return Turn(
        _CONTINUE.pick(rng, held).format(t=text[:cut]), text[cut + 1:], "",
        "I continue the story with the same hero.", "continue")


def dialogue(rng):
    """A plain conversation of two people, as text."""
    x, y = rng.sample(NAMES_F + NAMES_M, 2)
    city, food, hobby = rng.choice(CITIES), rng.choice(FOODS), rng.choice(HOBBIES)
    c = rng.choice(COUNTRIES)
    lines = [(x, f"Hello {y}! How are you?"), (y, f"I am fine, thank you, {x}. And you?"),
             (x,
              rng.choice([
                  f"I am well. I was in {city} last week.", f"I am a little tired. I like {hobby}."
              ])), (y, rng.choice(["That sounds nice.", "Tell me more!", "I see."])),
             (x, f"Do you know the capital of {c['name']}?"), (y, f"Yes, it is {c['capital']}."),
             (x, rng.choice([f"Shall we eat some {food}?", f"Would you like some {food}?"])),
             (y, rng.choice(["Yes, please!", "No, thank you.", "With pleasure."])),
             (x, "Good. See you later!"), (y, f"Goodbye, {x}!")]
    pairs = [lines[i:i + 2] for i in range(0, len(lines), 2)]
    keep = [p for i, p in enumerate(pairs) if i in (0, 4) or rng.random() < 0.7]
    return "\n".join(f"{n}: {t}" for pair in keep for n, t in pair)


def country_text(rng):
    """An encyclopedia-like paragraph."""
    c = rng.choice(COUNTRIES)
    name = c["name"]
    parts = [
        f"{the(name)} is a country in {c['continent']}.",
        rng.choice([
            f"Its capital is {c['capital']}.", f"The capital of {name} is {c['capital']}.",
            f"{c['capital']} is the capital of {name}."
        ]),
        rng.choice(
            [f"The people speak {c['language']}.", f"People in {name} speak {c['language']}."]),
        rng.choice([f"The currency is the {c['currency']}.", f"They pay with the {c['currency']}."])
    ]
    rest = parts[1:]
    rng.shuffle(rest)
    return " ".join(parts[:1] + rest)


def plain(rng):
    """A text for plain language modelling."""
    return rng.choice([story, story, dialogue, country_text])(rng)


TURNS = [(story_turn, 3), (continue_turn, 0.6)]
