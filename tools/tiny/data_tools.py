"""Tool use: declarations, calls, results and the answers made from them.

A tool is described once (`_Tool`); names of functions and parameters are drawn from synonyms, so
that the model has to read the declaration instead of knowing it by heart.
"""

import json

from phrase import Phrases, lower_first
from sample import Sample, the
from tables import CITIES, COUNTRIES, DAYS, FOODS, MONTHS, NAMES, NOUNS

S, N, I, B = "STRING", "NUMBER", "INTEGER", "BOOLEAN"


class _Param:

    def __init__(self, names, description, kind, make, required=True, enum=None):
        self.names, self.description, self.kind = names.split(), description, kind
        self.make, self.required, self.enum = make, required, enum


class _Tool:
    """names, descriptions: synonyms.  asks and the pieces for frames: user texts with {0}, {1}..
    for the parameters' values.  result(rng, values) -> (tool's text, answer)."""

    def __init__(self,
                 names,
                 descriptions,
                 params,
                 asks,
                 result,
                 nouns=(),
                 clauses=(),
                 commands=(),
                 tasks=()):
        self.names, self.descriptions = names.split(), descriptions
        self.params, self.result = params, result
        self.phrases = Phrases(asks, nouns, clauses, commands, tasks)


def _pick(values):
    return lambda rng: rng.choice(values)


def _time(rng):
    return f"{rng.randint(0, 23):02d}:{rng.choice((0, 15, 30, 45)):02d}"


def _date(rng):
    return f"{rng.randint(1, 28)} {rng.choice(MONTHS)}"


def _expression(rng):
    x, y = rng.randint(2, 999), rng.randint(2, 999)
    return f"{x} {rng.choice('+-*')} {y}"


def _calc_result(rng, v):
    x, op, y = v[0].split()
    r = {"+": int(x) + int(y), "-": int(x) - int(y), "*": int(x) * int(y)}[op]
    return str(r), f"{v[0]} = {r}."


_COUNTRY_NAMES = [c["name"] for c in COUNTRIES if not c["name"].startswith("the ")]
_SKY = ["sunny", "cloudy", "rainy", "windy", "snowy", "foggy"]
_SONGS = ["Yellow Moon", "Summer Rain", "Old River", "Blue Door", "Morning Star", "Paper Boat"]
_MONEY = ["EUR", "USD", "GBP", "JPY", "CHF"]
_ROOMS = ["kitchen", "bedroom", "bathroom", "office", "garage", "hall"]
_LANGS = ["French", "Spanish", "German", "Italian"]


def _weather(rng, v):
    t, sky = rng.randint(-15, 38), rng.choice(_SKY)
    return f"{t} degrees, {sky}", f"In {v[0]} it is {t} degrees and {sky}."


_CITY = _Param("city town place location", "Name of the city", S, _pick(CITIES))

TOOLS = [
    _Tool("calculator calculate calc evaluate", [
        "Evaluates an arithmetic expression", "Does arithmetic",
        "Calculates the value of an expression"
    ], [_Param("expression formula input", "The expression", S, _expression)], [
        "What is {0}?", "Calculate {0}.", "How much is {0}?", "{0}", "Compute {0} please.",
        "Use the calculator: {0}", "Please work out {0}."
    ],
          _calc_result,
          nouns=["{0}", "the result of {0}", "the value of {0}"],
          clauses=["how much {0} is", "what {0} is"],
          commands=["calculate {0}", "compute {0}", "work out {0}", "solve {0}"]),
    _Tool("get_weather weather current_weather",
          ["Current weather of a city", "Tells the weather", "Looks up the weather in a place"],
          [_CITY], [
              "What is the weather in {0}?", "How is the weather in {0}?", "Weather in {0}?",
              "Is it raining in {0}?", "Tell me the weather in {0}.", "Do I need a coat in {0}?",
              "What is it like outside in {0} today?"
          ],
          _weather,
          nouns=["the weather in {0}", "the current weather in {0}"],
          clauses=[
              "how the weather is in {0}", "what the weather is like in {0}", "if it rains in {0}"
          ],
          commands=["check the weather in {0}", "look up the weather in {0}"]),
    _Tool("get_temperature get_temp temperature",
          ["Current temperature of a town", "Measures the temperature in a city"], [
              _CITY,
              _Param("unit scale",
                     "Unit of the temperature",
                     S,
                     _pick(["celsius", "fahrenheit"]),
                     enum=["celsius", "fahrenheit"])
          ], [
              "How warm is it in {0} in {1}?", "Temperature in {0} in {1}?",
              "How cold is it in {0} ({1})?", "Give me the temperature of {0} in {1}.",
              "Tell me in {1} how warm {0} is."
          ],
          lambda rng, v: (lambda t:
                          (str(t), f"It is {t} degrees {v[1]} in {v[0]}."))(rng.randint(-20, 99)),
          nouns=["the temperature in {0} in {1}", "the temperature of {0} in {1}"],
          clauses=["how warm it is in {0} in {1}", "how cold it is in {0} in {1}"],
          commands=["measure the temperature in {0} in {1}"]),
    _Tool("get_time current_time clock", ["Current time in a city", "Tells what time it is"],
          [_CITY], [
              "What time is it in {0}?", "Tell me the time in {0}.", "Time in {0}?",
              "How late is it in {0}?", "What does the clock say in {0}?"
          ],
          lambda rng, v: (lambda t: (t, f"It is {t} in {v[0]}."))(_time(rng)),
          nouns=["the time in {0}", "the current time in {0}"],
          clauses=["what time it is in {0}", "how late it is in {0}"],
          commands=["check the time in {0}"]),
    _Tool("get_date today current_date", ["Tells today's date", "Returns the current date"], [], [
        "What day is it today?", "What is the date?", "Which date is today?",
        "Tell me today's date.", "Give me the date of today."
    ],
          lambda rng, v: (lambda d: (d, f"Today is {d}."))(f"{rng.choice(DAYS)}, {_date(rng)}"),
          nouns=["the date", "today's date", "the date of today"],
          clauses=["what day it is", "which date is today"],
          commands=["check the date"]),
    _Tool(
        "convert_currency exchange convert_money",
        ["Converts an amount of money", "Exchange rates for money"], [
            _Param("amount value", "How much", N, lambda r: r.randint(1, 500)),
            _Param("from source from_currency", "Currency to convert from", S, _pick(_MONEY)),
            _Param("to target to_currency", "Currency to convert to", S, _pick(_MONEY))
        ], [
            "Convert {0} {1} to {2}.", "How much is {0} {1} in {2}?", "What are {0} {1} in {2}?",
            "Change {0} {1} into {2}.", "I have {0} {1}. How many {2} is that?"
        ],
        lambda rng, v: (lambda x: (str(x), f"{v[0]} {v[1]} are {x} {v[2]}."))(rng.randint(1, 900)),
        clauses=["how much {0} {1} is in {2}", "how many {2} I get for {0} {1}"],
        commands=["convert {0} {1} to {2}", "change {0} {1} into {2}", "exchange {0} {1} for {2}"]),
    _Tool("send_message send_text message", ["Sends a text message to a person", "Sends a message"],
          [
              _Param("to recipient person", "Who gets the message", S, _pick(NAMES)),
              _Param(
                  "text message body", "What to say", S,
                  _pick([
                      "I am late", "See you soon", "Happy birthday", "Call me back",
                      "Dinner is ready", "I am at home", "The train is late", "Good luck"
                  ]))
          ], [
              "Send {0} the message: {1}", "Write to {0}: {1}", "Tell {0}: {1}",
              "Send a message to {0}: {1}", "Text {0} that says: {1}"
          ],
          lambda rng, v: ("sent", f"I sent your message to {v[0]}."),
          commands=[
              "send {0} the message: {1}", "write to {0}: {1}", "tell {0}: {1}",
              "send a message to {0}: {1}", "text {0}: {1}"
          ]),
    _Tool("set_alarm alarm create_alarm", ["Sets an alarm clock", "Wakes the user at a time"],
          [_Param("time at", "Time of the alarm", S, _time)], [
              "Set an alarm for {0}.", "Wake me at {0}.", "Alarm at {0} please.",
              "Set the alarm clock to {0}.", "I have to get up at {0}."
          ],
          lambda rng, v: ("ok", f"The alarm is set for {v[0]}."),
          nouns=["an alarm at {0}", "an alarm for {0}"],
          commands=["set an alarm for {0}", "wake me at {0}", "set the alarm clock to {0}"]),
    _Tool("set_timer timer start_timer", ["Starts a timer", "Counts down some minutes"],
          [_Param("minutes duration", "Length in minutes", I, lambda r: r.randint(1, 90))], [
              "Set a timer for {0} minutes.", "Timer for {0} minutes.",
              "Start a timer of {0} minutes.", "Remind me in {0} minutes."
          ],
          lambda rng, v: ("started", f"The timer runs for {v[0]} minutes."),
          nouns=["a timer for {0} minutes"],
          commands=[
              "set a timer for {0} minutes", "start a timer of {0} minutes",
              "remind me in {0} minutes"
          ]),
    _Tool("play_music play play_song", ["Plays a song", "Starts music"],
          [_Param("song title track", "Title of the song", S, _pick(_SONGS))], [
              "Play {0}.", "Play the song {0}.", "I want to hear {0}.", "Start the song {0}.",
              "Put on the track {0}."
          ],
          lambda rng, v: ("playing", f"Now playing {v[0]}."),
          commands=["play {0}", "play the song {0}", "start the song {0}", "put on the track {0}"]),
    _Tool("translate translate_text translator", ["Translates a text into another language"], [
        _Param(
            "text phrase", "Text to translate", S,
            _pick([
                "good morning", "the train is late", "my dog is big", "I love bread",
                "where is the river", "the sun is warm"
            ])),
        _Param("language target", "Language to translate into", S, _pick(_LANGS), enum=_LANGS)
    ], [
        "Translate \"{0}\" into {1}.", "How do you say \"{0}\" in {1}?", "What is \"{0}\" in {1}?",
        "I need \"{0}\" in {1}."
    ],
          lambda rng, v: (lambda t: (t, f"In {v[1]} it is: {t}"))
          (rng.choice(["la vie est belle", "todo va bien", "das ist gut", "tutto bene"])),
          clauses=["how to say \"{0}\" in {1}"],
          nouns=["\"{0}\" in {1}"],
          commands=["translate \"{0}\" into {1}", "say \"{0}\" in {1}"]),
    _Tool("turn_light light switch_light set_light",
          ["Turns a light on or off", "Controls the lights"], [
              _Param("room place", "The room", S, _pick(_ROOMS)),
              _Param("on state", "True for on", B, lambda r: r.random() < 0.5)
          ], [
              "Turn {1} the light in the {0}.", "Switch {1} the {0} light.",
              "Light {1} in the {0}, please.", "Please turn the {0} lamp {1}."
          ],
          lambda rng, v: ("done", f"The light in the {v[0]} is now {'on' if v[1] else 'off'}."),
          commands=[
              "turn {1} the light in the {0}", "switch {1} the {0} light", "turn the {0} lamp {1}",
              "switch the light in the {0} {1}"
          ]),
    _Tool("set_heating heating thermostat", ["Sets the temperature of a room"], [
        _Param("room place", "The room", S, _pick(_ROOMS)),
        _Param("degrees temperature value", "Degrees Celsius", N, lambda r: r.randint(15, 25))
    ], [
        "Heat the {0} to {1} degrees.", "Set the {0} to {1} degrees.",
        "Make it {1} degrees in the {0}.", "I want {1} degrees in the {0}."
    ],
          lambda rng, v: ("ok", f"The {v[0]} will be {v[1]} degrees warm."),
          commands=[
              "heat the {0} to {1} degrees", "set the {0} to {1} degrees",
              "make it {1} degrees in the {0}"
          ],
          nouns=["{1} degrees in the {0}"]),
    _Tool("add_item add_to_list shopping_list",
          ["Adds an item to the shopping list", "Puts something on a list"],
          [_Param("item thing product", "What to buy", S, _pick(FOODS))], [
              "Add {0} to my list.", "Put {0} on the shopping list.", "I need to buy {0}.",
              "We need {0}.", "Write {0} on the list."
          ],
          lambda rng, v: ("added", f"I added {v[0]} to your list."),
          commands=[
              "add {0} to my list", "put {0} on the shopping list", "write {0} on the list",
              "add {0} to the shopping list"
          ]),
    _Tool("create_event add_event calendar", ["Adds an event to the calendar"], [
        _Param("title name", "What it is", S,
               _pick(["Lunch", "Meeting", "Dentist", "Concert", "Party"])),
        _Param("date day", "When it is", S, _date)
    ], [
        "Add {0} on {1} to my calendar.", "I have a {0} on {1}. Note it.", "Plan {0} for {1}.",
        "Put {0} into the calendar on {1}."
    ],
          lambda rng, v: ("created", f"{v[0]} is in your calendar on {v[1]}."),
          commands=[
              "add {0} on {1} to my calendar", "plan {0} for {1}",
              "put {0} into the calendar on {1}", "note {0} on {1} in the calendar"
          ]),
    _Tool("search web_search find lookup", [
        "Searches the web", "Looks something up on the internet"
    ], [
        _Param(
            "query q text", "What to search for", S, lambda r:
            f"{r.choice(['cheap', 'best', 'old', 'new'])} {r.choice(NOUNS)} in {r.choice(CITIES)}")
    ], ["Search for {0}.", "Look up {0}.", "Find {0}.", "Search the web for {0}.", "Google {0}."],
          lambda rng, v: (lambda n: (f"{n} results", f"I found {n} results for {v[0]}."))
          (rng.randint(2, 99)),
          commands=[
              "search for {0}", "look up {0}", "find {0}", "search the web for {0}", "google {0}"
          ]),
    _Tool("roll_dice dice throw_dice", ["Rolls a die"],
          [_Param("sides faces", "Number of sides", I, _pick([4, 6, 8, 10, 12, 20]))], [
              "Roll a die with {0} sides.", "Throw a {0} sided die.", "Roll a d{0}.",
              "Roll dice: {0} sides."
          ],
          lambda rng, v: (lambda n: (str(n), f"You rolled {n}."))(rng.randint(1, v[0])),
          commands=["roll a die with {0} sides", "throw a die with {0} sides", "roll a d{0}"]),
    _Tool("random_number random pick_number", ["Picks a random number"], [
        _Param("min low", "Smallest number", I, lambda r: r.randint(0, 10)),
        _Param("max high", "Largest number", I, lambda r: r.randint(11, 200))
    ], [
        "Give me a random number between {0} and {1}.", "Random number from {0} to {1}.",
        "Pick a number between {0} and {1}.", "Choose any number from {0} up to {1}."
    ],
          lambda rng, v: (lambda n: (str(n), f"Your number is {n}."))(rng.randint(v[0], v[1])),
          nouns=["a random number between {0} and {1}", "a number from {0} to {1}"],
          commands=["pick a number between {0} and {1}", "choose a number from {0} to {1}"]),
    _Tool("book_table reserve_table restaurant", ["Books a table in a restaurant"], [
        _Param("people guests persons", "Number of people", I, lambda r: r.randint(1, 12)),
        _Param("time at", "When", S, _time)
    ], [
        "Book a table for {0} at {1}.", "Reserve a table for {0} people at {1}.",
        "Table for {0} at {1} please.", "We are {0} people and want to eat at {1}."
    ],
          lambda rng, v: ("booked", f"A table for {v[0]} is booked at {v[1]}."),
          nouns=["a table for {0} at {1}", "a table for {0} people at {1}"],
          commands=["book a table for {0} at {1}", "reserve a table for {0} people at {1}"]),
    _Tool("get_population population people_count", ["Number of people in a country"],
          [_Param("country nation", "Name of the country", S, _pick(_COUNTRY_NAMES))], [
              "How many people live in {0}?", "What is the population of {0}?",
              "Population of {0}?", "Tell me how many people {0} has."
          ],
          lambda rng, v: (lambda n: (f"{n} million", f"About {n} million people live in {v[0]}."))
          (rng.randint(1, 900)),
          nouns=["the population of {0}", "the number of people in {0}"],
          clauses=["how many people live in {0}"],
          commands=["look up the population of {0}"]),
    _Tool("get_distance distance how_far", ["Distance between two cities in kilometres"], [
        _Param("from start origin", "First city", S, _pick(CITIES)),
        _Param("to end destination", "Second city", S, _pick(CITIES))
    ], [
        "How far is it from {0} to {1}?", "Distance from {0} to {1}?",
        "How many kilometres from {0} to {1}?", "What is the way from {0} to {1} in kilometres?"
    ],
          lambda rng, v: (lambda n: (f"{n} km", f"From {v[0]} to {v[1]} it is {n} km."))
          (rng.randint(50, 9000)),
          nouns=["the distance from {0} to {1}", "the way from {0} to {1} in kilometres"],
          clauses=["how far it is from {0} to {1}"]),
    _Tool("get_price price price_of", ["Price of a product", "Looks up what something costs"],
          [_Param("product item", "The product", S, _pick(NOUNS))], [
              "How much is the {0}?", "What does the {0} cost?", "Price of the {0}?",
              "What is the price of the {0}?", "Tell me the cost of the {0}."
          ],
          lambda rng, v: (lambda n:
                          (f"{n} euros", f"The {v[0]} costs {n} euros."))(rng.randint(1, 500)),
          nouns=["the price of the {0}", "the cost of the {0}"],
          clauses=["how much the {0} costs", "what the {0} costs"],
          commands=["check the price of the {0}"]),
    _Tool("take_note note save_note", ["Saves a note", "Writes a note"], [
        _Param(
            "text note content", "Text of the note", S,
            lambda r: f"{r.choice(['buy', 'sell', 'find', 'wash', 'bring'])} the {r.choice(NOUNS)}")
    ], [
        "Take a note: {0}", "Note: {0}", "Remember this: {0}", "Write down: {0}",
        "Save this note: {0}"
    ],
          lambda rng, v: ("saved", "I saved your note."),
          commands=["take a note: {0}", "write down: {0}", "save this note: {0}",
                    "note this: {0}"]),
    _Tool("read_file open_file get_file", ["Reads a text file"], [
        _Param(
            "path file name", "Path of the file", S, lambda r:
            f"{r.choice(['notes', 'list', 'letter', 'plan', 'diary'])}{r.randint(1, 9)}.txt")
    ], [
        "Read {0}.", "What is in {0}?", "Open the file {0}.", "Show me {0}.",
        "Tell me what {0} says."
    ],
          lambda rng, v: (lambda t: (t, f"The file {v[0]} says: {t}"))
          (f"{rng.choice(NAMES)} has the {rng.choice(NOUNS)}"),
          nouns=["the text of {0}", "the content of {0}"],
          clauses=["what {0} says", "what is in {0}"],
          commands=["read {0}", "open the file {0}", "show me {0}", "read the file {0}"]),
]

_MADE_PARAMS = [
    _Param("name title label", "A name", S, _pick(NAMES)),
    _Param("count number amount", "How many", I, lambda r: r.randint(1, 99)),
    _Param("color colour", "A colour", S, _pick(["red", "blue", "green", "black", "white"])),
    _Param("city town", "A city", S, _pick(CITIES)),
    _Param("day when", "Day of the week", S, _pick(DAYS)),
    _Param("size",
           "The size",
           S,
           _pick(["small", "medium", "large"]),
           enum=["small", "medium", "large"]),
    _Param("fast quick", "Whether to hurry", B, lambda r: r.random() < 0.5)
]
_MADE_VERBS = [
    "wash", "open", "close", "find", "move", "clean", "count", "paint", "sell", "buy", "check",
    "start", "stop", "lock", "show", "delete", "order", "repair", "draw", "copy"
]


def _made_up_tool(rng):
    """A tool that exists nowhere else: the request names the parameters, the model copies them."""
    verb, noun = rng.choice(_MADE_VERBS), rng.choice(NOUNS)
    params = []
    for p in rng.sample(_MADE_PARAMS, rng.randint(0, 3)):
        params.append(_Param(rng.choice(p.names), p.description, p.kind, p.make, enum=p.enum))
    told = " and ".join(f"{p.names[0]} {{{i}}}" for i, p in enumerate(params))
    told = f" with {told}" if told else ""
    style = rng.choice([f"{verb}_{noun}", f"{verb}{noun.capitalize()}", f"{noun}_{verb}"])
    return _Tool(style, [f"To {verb} the {noun}", f"{verb.capitalize()} a {noun}"],
                 params, [
                     f"{verb} the {noun}{told}.", f"Please {verb} the {noun}{told}.",
                     f"Can you {verb} the {noun}{told}?"
                 ],
                 lambda r, v: (lambda t: (t, f"I did it: {verb} the {noun}. The tool says {t}."))
                 (r.choice(["ok", "done", "ready", "success"])),
                 commands=[f"{verb} the {noun}{told}"])


def _declare(rng, tool):
    """An OpenAI-style declaration with drawn names; returns it and the parameters' names."""
    names = [rng.choice(p.names) for p in tool.params]
    function = {"name": rng.choice(tool.names), "description": rng.choice(tool.descriptions)}
    if tool.params:
        properties = {}
        for name, p in zip(names, tool.params):
            spec = {"type": p.kind.lower()}
            if rng.random() < 0.8:
                spec["description"] = p.description
            if p.enum:
                spec["enum"] = p.enum
            properties[name] = spec
        function["parameters"] = {"type": "object", "properties": properties, "required": names}
    return {"type": "function", "function": function}, names


def _values(rng, tool):
    """Values of all parameters; two values of the same list differ."""
    values = []
    for p in tool.params:
        v = p.make(rng)
        while v in values and not isinstance(v, (bool, int)):
            v = p.make(rng)
        values.append(v)
    return values


def _shown(value):
    return value if not isinstance(value, bool) else "on" if value else "off"


def _ask(rng, tool, values, held):
    """The user's text."""
    form = tool.phrases.pick(rng, held)
    text = the(str(form.format(*[_shown(v) for v in values])))
    # Text after a colon is to be copied exactly, so typing habits stay away from it.
    exact = ":" in form or "\"" in form or any(isinstance(v, str) and " " in v for v in values)
    return text if held or exact else _typed(rng, text)


def _typed(rng, text):
    """Missing marks and a first small letter, but names keep their capitals."""
    if rng.random() < 0.15:
        text = text.rstrip("?.")
    if rng.random() < 0.15:
        text = text[0].lower() + text[1:]
    return text


def _menu(rng, tool, low=0, high=3):
    """The tool among some others, all with different function names."""
    declared, names = _declare(rng, tool)
    menu, used = [declared], {declared["function"]["name"]}
    for other in rng.sample(TOOLS, rng.randint(low, high)):
        if other is tool:
            continue
        if rng.random() < 0.3:
            other = _made_up_tool(rng)
        extra, _ = _declare(rng, other)
        if extra["function"]["name"] not in used:
            used.add(extra["function"]["name"])
            menu.append(extra)
    rng.shuffle(menu)
    return menu, declared, names


def _call(declared, names, values, id_):
    return {
        "id": id_,
        "function": {
            "name": declared["function"]["name"],
            "arguments": dict(zip(names, values))
        }
    }


def _reason_call(name, arguments):
    if not arguments:
        return f"I call {name}."
    listed = " and ".join(f"{k} {json.dumps(v) if isinstance(v, bool) else v}"
                          for k, v in arguments.items())
    return f"I call {name} with {listed}."


def _system(rng):
    return rng.choice([
        "You are a helpful assistant.", "You can use tools.", "Use the tools when needed.",
        "Be helpful.", "You are an assistant with tools."
    ])


def call_sample(rng, held=False, thinking=None):
    """One call, its result, the answer; sometimes a second round with the same tool."""
    tool = _made_up_tool(rng) if rng.random() < 0.3 else rng.choice(TOOLS)
    menu, declared, names = _menu(rng, tool)
    thinking = rng.random() < 0.35 if thinking is None else thinking
    messages = [{"role": "system", "content": _system(rng)}] if rng.random() < 0.3 else []
    rounds = 1 if held or rng.random() < 0.75 else 2
    check = {}
    for r in range(rounds):
        values = _values(rng, tool)
        call = _call(declared, names, values, f"c{r}")
        result, answer = tool.result(rng, values)
        messages.append({"role": "user", "content": _ask(rng, tool, values, held)})
        assistant = {"role": "assistant", "content": "", "tool_calls": [call]}
        final = {"role": "assistant", "content": answer}
        if thinking:
            assistant["reasoning"] = _reason_call(call["function"]["name"],
                                                  call["function"]["arguments"])
            final["reasoning"] = f"The tool says: {result}. I tell the user."
        check = {"calls": [call["function"]], "answer": answer}
        messages += [assistant, {"role": "tool", "tool_call_id": f"c{r}", "content": result}, final]
    return Sample("tool", messages, menu, thinking, check=check)


def parallel_sample(rng, held=False):
    """Two questions of the same kind in one message: two calls."""
    tool = rng.choice([t for t in TOOLS if len(t.params) == 1])
    menu, declared, names = _menu(rng, tool, 0, 2)
    one, two = _values(rng, tool), _values(rng, tool)
    while one == two:
        two = _values(rng, tool)
    form, second = tool.phrases.pick(rng, held), rng.choice(tool.phrases.always)
    text = f"{the(form.format(one[0]))} And {lower_first(second.format(two[0]))}"
    if ":" in text or form[-1] not in ".?":
        return call_sample(rng, held)
    calls = [_call(declared, names, v, f"c{i}") for i, v in enumerate((one, two))]
    results = [tool.result(rng, v) for v in (one, two)]
    thinking = rng.random() < 0.3
    first = {"role": "assistant", "content": "", "tool_calls": calls}
    final = {"role": "assistant", "content": " ".join(r[1] for r in results)}
    if thinking:
        first["reasoning"] = "There are two requests. " + " ".join(
            _reason_call(c["function"]["name"], c["function"]["arguments"]) for c in calls)
        final["reasoning"] = "I have both results. I tell the user."
    messages = [{"role": "user", "content": text}, first]
    messages += [{
        "role": "tool",
        "tool_call_id": f"c{i}",
        "content": r[0]
    } for i, r in enumerate(results)]
    return Sample("tool_parallel",
                  messages + [final],
                  menu,
                  thinking,
                  check={
                      "calls": [c["function"] for c in calls],
                      "answer": final["content"]
                  })


def no_call_sample(rng, turn, held=False):
    """Tools are there, but the user asks for something that needs none."""
    menu, _, _ = _menu(rng, rng.choice(TOOLS))
    thinking = rng.random() < 0.3
    final = {"role": "assistant", "content": turn.answer}
    if thinking:
        final["reasoning"] = f"I need no tool for this. {turn.thought}"
    return Sample("tool_none", [{
        "role": "user",
        "content": turn.user
    }, final],
                  menu,
                  thinking,
                  check={
                      "calls": [],
                      "answer": turn.answer
                  })


def missing_tool_sample(rng, held=False):
    """The tool that would be needed is not declared: say so."""
    wanted = {
        "get_weather": "look up the weather",
        "get_time": "look up the time",
        "send_message": "send messages",
        "set_alarm": "set an alarm",
        "play_music": "play music",
        "book_table": "book a table",
        "turn_light": "switch lights",
        "convert_currency": "convert money",
        "search": "search the web",
        "read_file": "read files"
    }
    tool = rng.choice([t for t in TOOLS if t.names[0] in wanted])
    menu, used = [], set()
    for other in rng.sample([t for t in TOOLS if t.names[0] not in wanted], rng.randint(1, 3)):
        extra, _ = _declare(rng, other)
        menu.append(extra)
        used.add(extra["function"]["name"])
    thinking = rng.random() < 0.3
    text = f"I have no tool to {wanted[tool.names[0]]}."
    final = {"role": "assistant", "content": text}
    if thinking:
        final["reasoning"] = f"No tool fits this request. {text}"
    messages = [{"role": "user", "content": _ask(rng, tool, _values(rng, tool), held)}, final]
    return Sample("tool_missing", messages, menu, thinking, check={"calls": [], "answer": text})
