"""Answers in JSON: facts, lists, and what a sentence says."""

import json

from phrase import Phrases, draw_pair
from sample import Turn, number_word, the
from tables import CITIES, COUNTRIES, DAYS, ELEMENTS, FOODS, HOBBIES, LISTS, NAMES, PET_NAMES, PETS

_AS_JSON = [
    "Answer in JSON.", "Reply in JSON.", "As JSON.", "Give the answer as JSON.", "Use JSON.",
    "Return JSON only.", "Write it as JSON.", "The answer should be JSON.",
    "I need it in JSON format.", "Please answer in JSON.", "Output JSON.", "JSON please.",
    "In JSON format.", "Only JSON, please.", "Format it as JSON.", "Respond with JSON."
]


def _json_turn(rng, held, question, key, data, thought, indent=False):
    """The model's JSON is the compact-with-spaces form of Python, or indented when asked for.

    Held out are pairs of a question's form (`key`) and a way to ask for JSON.
    """
    pair = draw_pair(rng, [key + " "], _AS_JSON, held)
    if not pair:
        return None
    ask, first = pair[1], rng.random() < 0.3
    if indent:
        ask = ask[:-1] + ", indented."
    text = json.dumps(data, ensure_ascii=False, indent=2 if indent else None)
    return Turn(f"{ask} {question}" if first else f"{question} {ask}",
                text,
                text,
                thought,
                "json",
                fixed=True)


def _again(make):
    """Call a generator until it finds a pair."""

    def turn(rng, held=False):
        found = None
        while found is None:
            found = make(rng, held)
        return found

    return turn


def _listed(words):
    return words[0] if len(words) == 1 else ", ".join(words[:-1]) + " and " + words[-1]


_FIELDS = Phrases([
    "Give me the {f} of {x}.", "What is the {f} of {x}?", "Show the {f} of {x}.",
    "Tell me the {f} of {x}."
],
                  nouns=["the {f} of {x}"])


@_again
def country_json_turn(rng, held=False):
    """The fields asked for, in the order asked for."""
    c = rng.choice(COUNTRIES)
    fields = rng.sample(["capital", "continent", "currency", "language"], rng.randint(1, 4))
    data = {"country": c["name"].removeprefix("the ")} | {f: c[f] for f in fields}
    form = _FIELDS.pick(rng)
    return _json_turn(rng,
                      held,
                      the(form.format(f=_listed(fields), x=c["name"])),
                      form,
                      data,
                      f"The user wants {_listed(fields)} of {c['name']} as JSON.",
                      indent=rng.random() < 0.15)


@_again
def countries_json_turn(rng, held=False):
    """An array of two or three objects."""
    rows = rng.sample(COUNTRIES, rng.randint(2, 3))
    field = rng.choice(["capital", "continent", "currency"])
    names = _listed([c["name"] for c in rows])
    data = [{"country": c["name"].removeprefix("the "), field: c[field]} for c in rows]
    form = _FIELDS.pick(rng)
    return _json_turn(rng, held, the(form.format(f=field, x=names)), form, data,
                      f"The user wants a JSON array with one object for each of {names}.")


_ELEMENT = Phrases(
    ["Give me symbol and number of {x}.", "What are symbol and atomic number of {x}?"],
    nouns=["symbol and number of {x}", "symbol and atomic number of {x}"])


@_again
def element_json_turn(rng, held=False):
    name, symbol, number = rng.choice(ELEMENTS)
    form = _ELEMENT.pick(rng)
    return _json_turn(rng, held, the(form.format(x=name)), form, {
        "element": name,
        "symbol": symbol,
        "number": number
    }, f"The user wants symbol and number of {name} as JSON.")


_LIST = Phrases(["List {n} {x}.", "Name {n} {x}.", "Give me {n} {x}.", "Show {n} {x}."],
                nouns=["{n} {x}"],
                commands=["list {n} {x}", "name {n} {x}"])


@_again
def list_json_turn(rng, held=False):
    name = rng.choice(sorted(LISTS))
    n = rng.randint(2, min(6, len(LISTS[name])))
    form = _LIST.pick(rng)
    return _json_turn(rng, held, the(form.format(n=rng.choice([n, number_word(n)]), x=name)), form,
                      LISTS[name][:n], f"The user wants {n} {name} as a JSON array.")


_EXTRACT = Phrases(
    ["Extract {k}: {t}", "Find {k} in: {t}", "Get {k} from: {t}"],
    tasks=["extract {k}", "extract {k} from this text", "find {k}", "get {k} from this text"])


@_again
def extract_turn(rng, held=False):
    """Name, age, city, hobby or pet out of a sentence."""
    name = rng.choice(NAMES)
    facts = rng.sample([("age", rng.randint(4, 95)), ("city", rng.choice(CITIES)),
                        ("hobby", rng.choice(HOBBIES)), ("food", rng.choice(FOODS))],
                       rng.randint(1, 3))
    says = {"age": "is {} years old", "city": "lives in {}", "hobby": "likes {}", "food": "eats {}"}
    text = name + " " + " and ".join(says[k].format(v) for k, v in facts) + "."
    keys = _listed(["name"] + [k for k, _ in facts])
    form = _EXTRACT.pick(rng)
    return _json_turn(rng, held, the(form.format(k=keys, t=text)), form,
                      {"name": name} | dict(facts), f"In the text I find {keys}.")


_OBJECT = Phrases(
    ["Make an object with {t}.", "Write an object with {t}.", "Create an object: {t}."],
    nouns=["an object with {t}"],
    commands=["make an object with {t}", "build an object from {t}", "create an object with {t}"])


@_again
def object_turn(rng, held=False):
    """An object from keys and values that the user gives."""
    pairs = {
        "name": rng.choice(NAMES),
        "age": rng.randint(4, 95),
        "city": rng.choice(CITIES),
        "pet": rng.choice(PETS),
        "pet_name": rng.choice(PET_NAMES),
        "count": rng.randint(0, 99),
        "ok": rng.random() < 0.5,
        "food": rng.choice(FOODS),
        "day": rng.choice(DAYS),
        "id": rng.randint(1, 9999)
    }
    data = {k: pairs[k] for k in rng.sample(sorted(pairs), rng.randint(1, 4))}
    shown = ", ".join(f"{k} {json.dumps(v) if isinstance(v, bool) else v}" for k, v in data.items())
    form = _OBJECT.pick(rng)
    return _json_turn(rng, held, the(form.format(t=shown)), form, data,
                      "I write the given keys and values.")


_READ = Phrases(
    ["What is the {k} in {t}?", "Read the {k}: {t}", "Which {k} is in this JSON: {t}"],
    tasks=["read the {k}", "find the {k}", "read the value under {k}", "tell me the {k}"])


def read_json_turn(rng, held=False):
    """Read a value out of an object."""
    data = {
        "name": rng.choice(NAMES),
        "age": rng.randint(4, 95),
        "city": rng.choice(CITIES),
        "pet": rng.choice(PETS),
        "hobby": rng.choice(HOBBIES)
    }
    keys = rng.sample(sorted(data), rng.randint(2, 4))
    key = rng.choice(keys)
    text = json.dumps({k: data[k] for k in keys})
    return Turn(the(_READ.pick(rng, held).format(k=key, t=text)),
                f"The {key} is {data[key]}.",
                str(data[key]),
                f"The object has the key {key} with the value {data[key]}.",
                "json_read",
                fixed=True)


TURNS = [(country_json_turn, 3), (countries_json_turn, 1), (element_json_turn, 1),
         (list_json_turn, 1.5), (extract_turn, 3), (object_turn, 2), (read_json_turn, 1)]
