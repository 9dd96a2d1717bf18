"""Answers in JSON: facts, lists, and what a sentence says."""

import json

from sample import Turn
from tables import CITIES, COUNTRIES, ELEMENTS, FOODS, HOBBIES, LISTS, NAMES, PET_NAMES, PETS

_AS_JSON = ["Answer in JSON.", "Reply in JSON.", "As JSON.", "Give the answer as JSON.", "Use JSON.",
            "Return JSON only.", "Write it as JSON."]
_AS_JSON_HELD = ["The answer should be JSON.", "I need it in JSON format."]


def _json_turn(rng, held, question, data, thought, indent=False):
    """The model's JSON is the compact-with-spaces form of Python, or indented when asked for."""
    ask = rng.choice(_AS_JSON_HELD if held else _AS_JSON)
    if indent:
        ask = ask[:-1] + ", indented."
    text = json.dumps(data, ensure_ascii=False, indent=2 if indent else None)
    order = rng.random()
    full = f"{question} {ask}" if order < 0.7 else f"{ask} {question}"
    return Turn(full, text, text, thought, "json", fixed=True)


def country_json_turn(rng, held=False):
    """The fields asked for, in the order asked for."""
    c = rng.choice(COUNTRIES)
    fields = rng.sample(["capital", "continent", "currency", "language"], rng.randint(1, 4))
    names = fields[0] if len(fields) == 1 else ", ".join(fields[:-1]) + " and " + fields[-1]
    data = {"country": c["name"].removeprefix("the ")} | {f: c[f] for f in fields}
    forms = (["I would like the {f} of {x}."] if held else
             ["Give me the {f} of {x}.", "What is the {f} of {x}?", "Show the {f} of {x}.",
              "Tell me the {f} of {x}."])
    return _json_turn(rng, held, rng.choice(forms).format(f=names, x=c["name"]), data,
                      f"The user wants {names} of {c['name']} as JSON.", indent=rng.random() < 0.15)


def countries_json_turn(rng, held=False):
    """An array of two or three objects."""
    rows = rng.sample(COUNTRIES, rng.randint(2, 3))
    field = rng.choice(["capital", "continent", "currency"])
    names = ", ".join(c["name"] for c in rows[:-1]) + " and " + rows[-1]["name"]
    data = [{"country": c["name"].removeprefix("the "), field: c[field]} for c in rows]
    return _json_turn(rng, held, f"What is the {field} of {names}?", data,
                      f"The user wants a JSON array with one object for each of {names}.")


def element_json_turn(rng, held=False):
    name, symbol, number = rng.choice(ELEMENTS)
    data = {"element": name, "symbol": symbol, "number": number}
    forms = (["I would like symbol and atomic number of {x}."] if held else
             ["Give me symbol and number of {x}.", "What are symbol and atomic number of {x}?"])
    return _json_turn(rng, held, rng.choice(forms).format(x=name), data,
                      f"The user wants symbol and number of {name} as JSON.")


def list_json_turn(rng, held=False):
    name = rng.choice(sorted(LISTS))
    n = rng.randint(2, min(6, len(LISTS[name])))
    forms = (["I would like {n} {x}."] if held else
             ["List {n} {x}.", "Name {n} {x}.", "Give me {n} {x}.", "Show {n} {x}."])
    return _json_turn(rng, held, rng.choice(forms).format(n=n, x=name), LISTS[name][:n],
                      f"The user wants {n} {name} as a JSON array.")


def extract_turn(rng, held=False):
    """Name, age, city, hobby or pet out of a sentence."""
    name = rng.choice(NAMES)
    facts = [("age", rng.randint(4, 95)), ("city", rng.choice(CITIES)), ("hobby", rng.choice(HOBBIES)),
             ("food", rng.choice(FOODS))]
    facts = rng.sample(facts, rng.randint(1, 3))
    says = {"age": "is {} years old", "city": "lives in {}", "hobby": "likes {}", "food": "eats {}"}
    text = name + " " + " and ".join(says[k].format(v) for k, v in facts) + "."
    keys = ["name"] + [k for k, _ in facts]
    names = ", ".join(keys[:-1]) + " and " + keys[-1]
    forms = (["Please find {k} in this text: {t}"] if held else
             ["Extract {k}: {t}", "Extract {k} from this text: {t}", "Find {k} in: {t}",
              "Get {k} from: {t}"])
    return _json_turn(rng, held, rng.choice(forms).format(k=names, t=text), {"name": name} | dict(facts),
                      f"In the text I find {names}.")


def object_turn(rng, held=False):
    """An object from keys and values that the user gives."""
    pairs = {"name": rng.choice(NAMES), "age": rng.randint(4, 95), "city": rng.choice(CITIES),
             "pet": rng.choice(PETS), "pet_name": rng.choice(PET_NAMES), "count": rng.randint(0, 99),
             "ok": rng.random() < 0.5, "food": rng.choice(FOODS)}
    keys = rng.sample(sorted(pairs), rng.randint(1, 4))
    data = {k: pairs[k] for k in keys}
    shown = ", ".join(f"{k} {json.dumps(v) if isinstance(v, bool) else v}" for k, v in data.items())
    forms = (["Please build an object from: {t}."] if held else
             ["Make an object with {t}.", "Write an object with {t}.", "Create an object: {t}."])
    return _json_turn(rng, held, rng.choice(forms).format(t=shown), data, "I write the given keys and values.")


def read_json_turn(rng, held=False):
    """Read a value out of an object."""
    data = {"name": rng.choice(NAMES), "age": rng.randint(4, 95), "city": rng.choice(CITIES),
            "pet": rng.choice(PETS), "hobby": rng.choice(HOBBIES)}
    keys = rng.sample(sorted(data), rng.randint(2, 4))
    key = rng.choice(keys)
    text = json.dumps({k: data[k] for k in keys})
    forms = (["Please read the value under {k}: {t}"] if held else
             ["What is the {k} in {t}?", "Read the {k}: {t}", "Which {k} is in this JSON: {t}"])
    return Turn(rng.choice(forms).format(k=key, t=text), f"The {key} is {data[key]}.", str(data[key]),
                f"The object has the key {key} with the value {data[key]}.", "json_read", fixed=True)


TURNS = [(country_json_turn, 3), (countries_json_turn, 1), (element_json_turn, 1), (list_json_turn, 1.5),
         (extract_turn, 3), (object_turn, 2), (read_json_turn, 1)]
