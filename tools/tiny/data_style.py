"""System prompts that the answers obey: tone, length, letters, fixed words, a new name."""

from phrase import is_held

_NEUTRAL = [
    "You are a helpful assistant.", "You are a friendly assistant.", "Be helpful.",
    "Answer the questions of the user.", "You are a small language model.", "Be kind and clear.",
    "You help people.", "Answer as well as you can.", "You are a teacher.",
    "You are an assistant in a library.", "The user is a student."
]


def _pirate(text):
    for old, new in ((" is ", " be "), (" are ", " be "), ("You ", "Ye "), (" you", " ye"),
                     ("Hello", "Ahoy"), (" your", " yer"), ("Yes", "Aye")):
        text = text.replace(old, new)
    return f"Arr, matey! {text}"


def _excited(text):
    return text[:-1] + "!!!" if text[-1] in ".!" else text + "!!!"


_COMMON = ("Answer in", "Answer with", "You are ", "Talk like ")  # never held out


class _Style:
    """prompts: (trained, held out).  apply(turn) -> text, or None where it does not fit."""

    def __init__(self, name, prompts, apply, thought, weight=1.0):
        self.name, self.apply, self.thought, self.weight = name, apply, thought, weight
        self.held = [p for p in prompts if is_held(p) and not p.startswith(_COMMON)]
        self.train = [p for p in prompts if p not in self.held]
        self.inline = name in ("short", "upper", "lower", "begin", "end", "smile"
                               )  # may stand in a question


_VERBS = [
    "Answer", "Write", "Reply", "Respond", "Speak", "Always answer", "Always write",
    "Please answer", "Please write", "Only answer", "You answer", "You must answer",
    "You have to answer", "Always reply", "Answer every question", "Give your answers"
]
_ROLES = [
    "You are {}.", "Talk like {}.", "Answer like {}.", "Speak like {}.", "Be {}.", "Act like {}.",
    "Behave like {}.", "Write like {}.", "Pretend to be {}.", "Act as {}.", "You are {} now.",
    "From now on you are {}.", "Reply like {}.", "Always talk like {}.", "Please talk like {}.",
    "You talk like {}.", "You must talk like {}.", "Answer as {}.", "Play the role of {}."
]


def _ways(*ends):
    """Prompts of the form 'Answer in capital letters.'"""
    return [f"{v} {e}." for v in _VERBS for e in ends]


def _role(*who):
    return [r.format(w) for w in who for r in _ROLES]


STYLES = [
    _Style(
        "upper",
        _ways("in upper case", "in capital letters", "in capitals", "with capital letters only") +
        ["Only write in CAPITALS.", "Use upper case.", "Use capital letters."],
        lambda t: t.answer.upper(), "I write in capital letters."),
    _Style(
        "lower",
        _ways("in lower case", "in small letters", "without capital letters") +
        ["Never use capital letters.", "Use lower case.", "Use small letters."],
        lambda t: t.answer.lower(), "I write in small letters."),
    _Style(
        "short",
        _ways("in one word", "with one word", "in a single word", "as shortly as possible",
              "very shortly", "briefly", "with only the answer", "in few words") +
        [
            "Be very short.", "Be brief.", "Give only the answer.", "Use as few words as possible.",
            "Be concise.", "One word only.", "No sentences, only the answer."
        ], lambda t: t.short or None, "The answer must be short.", 3.0),
    _Style("pirate", _role("a pirate", "an old pirate"), lambda t: _pirate(t.answer),
           "I talk like a pirate."),
    _Style("butler",
           _role("a butler", "a polite butler") + ["Be very polite.", "Always be polite."],
           lambda t: f"Certainly, sir. {t.answer}", "I answer like a butler."),
    _Style("robot", _role("a robot", "an old robot"), lambda t: f"BEEP. {t.answer} BOOP.",
           "I talk like a robot."),
    _Style("cowboy", _role("a cowboy", "a real cowboy"), lambda t: f"Howdy, partner! {t.answer}",
           "I talk like a cowboy."),
    _Style(
        "excited",
        _ways("with excitement", "very excitedly", "with enthusiasm") +
        ["Be very excited.", "Be enthusiastic.", "Sound very happy.", "Show excitement."],
        lambda t: f"Wow! {_excited(t.answer)}", "I am excited."),
    _Style(
        "smile",
        _ways("with a smile at the end", "and end with a smile", "and add a smile") +
        ["End every answer with a smile.", "Always end with :)", "Finish with a smiley."],
        lambda t: f"{t.answer} :)", "I end with a smile."),
    _Style(
        "child",
        _ways("as if I was a child", "like to a child", "so that a child understands") +
        ["Explain to a child.", "The user is a child.", "You talk to a child."],
        lambda t: f"{t.answer} Isn't that nice?", "I talk to a child."),
    _Style(
        "dear",
        _ways("and call me my friend", "and say my friend to me") +
        ["Call the user my friend.", "Always call me my friend."],
        lambda t: f"My friend, {t.answer}", "I say my friend."),
]
_WEIGHTS = [s.weight for s in STYLES]
_WORDS = [
    "Sure!", "Well,", "Indeed.", "Listen:", "Good question!", "Okay.", "Here you go:", "Of course!",
    "Answer:", "Hmm.", "Look:"
]
_ENDS = [
    "Over.", "Thank you.", "Have a nice day!", "The end.", "Anything else?", "Goodbye.", "Ha ha!",
    "Stay curious."
]
_NEW_NAMES = [
    "Max", "Luna", "Robo", "Ada", "Nova", "Pixel", "Alfred", "Iris", "Otto", "Sunny", "Chip",
    "Gizmo", "Bella", "Kiwi"
]


def neutral(rng):
    return rng.choice(_NEUTRAL)


_BEGIN = [
    "Start every answer with \"{}\"", "Begin each answer with \"{}\"", "Always start with \"{}\"",
    "Your answers must begin with \"{}\"", "Begin every answer with \"{}\"", "Start with \"{}\"",
    "The first words of an answer are \"{}\"", "Every answer starts with \"{}\""
]
_END = [
    "End every answer with \"{}\"", "Finish each answer with \"{}\"", "Always end with \"{}\"",
    "Your answers must end with \"{}\"", "End each answer with \"{}\"", "End with \"{}\"",
    "The last words of an answer are \"{}\"", "Every answer ends with \"{}\""
]


def draw(rng, held=False):
    """A style at random, with one of its prompts: (system prompt, style)."""
    r = rng.random()
    if r < 0.2:
        first = r < 0.1
        while True:
            form, word = rng.choice(_BEGIN if first else _END), rng.choice(
                _WORDS if first else _ENDS)
            if is_held(form + word) == held:
                break
        if first:
            style = _Style("begin", [], lambda t: f"{word} {t.answer}", f"I start with {word}")
        else:
            style = _Style("end", [], lambda t: f"{t.answer} {word}", f"I end with {word}")
        return form.format(word), style
    style = rng.choices(STYLES, _WEIGHTS)[0]
    prompt = rng.choice(style.held if held else style.train)
    if rng.random() < 0.2 and not held:
        prompt = f"{neutral(rng)} {prompt}"
    return prompt, style


def fits(turn):
    """Whether a style may change the answer: not where exact letters or lines matter."""
    return not turn.fixed and "\n" not in turn.answer and len(turn.answer) <= 260


_NAME_PROMPTS = [
    "Your name is {}.", "You are {}, a helpful assistant.", "You are {}.", "You are called {}.",
    "From now on your name is {}.", "Call yourself {}.", "The user calls you {}."
]
_NAME_ASKS = [
    "What is your name?", "Who are you?", "What's your name?", "How are you called?",
    "Tell me your name.", "what is your name", "May I know your name?", "Do you have a name?",
    "What should I call you?"
]


def named(rng, held=False):
    """(system prompt, question, answer) of a model with another name."""
    name = rng.choice(_NEW_NAMES)
    while True:
        prompt, question = rng.choice(_NAME_PROMPTS), rng.choice(_NAME_ASKS)
        if is_held(prompt + question) == held:
            return prompt.format(name), question, f"My name is {name}.", name
