"""System prompts that the answers obey: tone, length, letters, fixed words, a new name."""

_NEUTRAL = ["You are a helpful assistant.", "You are a friendly assistant.", "Be helpful.",
            "Answer the questions of the user.", "You are a small language model.", "Be kind and clear.",
            "Answer in English.", "You help people.", "Answer as well as you can.", "You are a teacher.",
            "You are an assistant in a library.", "The user is a student."]


def _pirate(text):
    for old, new in ((" is ", " be "), (" are ", " be "), ("You ", "Ye "), (" you", " ye"), ("Hello", "Ahoy"),
                     (" your", " yer"), ("Yes", "Aye")):
        text = text.replace(old, new)
    return f"Arr, matey! {text}"


def _excited(text):
    return text[:-1] + "!!!" if text[-1] in ".!" else text + "!!!"


class _Style:
    """prompts: the last one is held out.  apply(turn) -> text, or None where it does not fit."""

    def __init__(self, name, prompts, apply, thought):
        self.name, self.prompts, self.apply, self.thought = name, prompts.split("|"), apply, thought
        self.inline = name in ("short", "upper", "lower", "begin", "end", "smile")  # may stand in a question


STYLES = [
    _Style("upper", "Answer in upper case.|Write everything in capital letters.|Always use upper case.|"
           "Only write in CAPITALS.|Speak in upper case letters.|Please use capital letters only.",
           lambda t: t.answer.upper(), "I write in capital letters."),
    _Style("lower", "Answer in lower case.|Write everything in small letters.|Always use lower case.|"
           "Never use capital letters.|Please use small letters only.",
           lambda t: t.answer.lower(), "I write in small letters."),
    _Style("short", "Answer in one word.|Answer with one word only.|Be very short.|Give only the answer.|"
           "Answer as shortly as possible.|Use as few words as possible.|Reply with a single word.",
           lambda t: t.short or None, "The answer must be short."),
    _Style("pirate", "You are a pirate.|Talk like a pirate.|Answer like a pirate.|Speak like a pirate.|"
           "Be a pirate in all answers.", lambda t: _pirate(t.answer), "I talk like a pirate."),
    _Style("butler", "You are a butler.|Answer like a butler.|Be very polite.|Speak like a polite butler.|"
           "Behave like a butler.", lambda t: f"Certainly, sir. {t.answer}", "I answer like a butler."),
    _Style("robot", "You are a robot.|Talk like a robot.|Answer like a robot.|Speak like a robot.|"
           "Behave like a robot.", lambda t: f"BEEP. {t.answer} BOOP.", "I talk like a robot."),
    _Style("excited", "Be very excited.|Answer with excitement.|Be enthusiastic.|Sound very happy.|"
           "Show a lot of excitement.", lambda t: f"Wow! {_excited(t.answer)}", "I am excited."),
    _Style("smile", "End every answer with a smile.|Add a smile at the end.|Always end with :)|"
           "Finish with a smiley.|Put a smile behind every answer.", lambda t: f"{t.answer} :)",
           "I end with a smile."),
    _Style("cowboy", "You are a cowboy.|Talk like a cowboy.|Answer like a cowboy.|Speak like a cowboy.|"
           "Behave like a cowboy.", lambda t: f"Howdy, partner! {t.answer}", "I talk like a cowboy."),
    _Style("child", "Explain to a child.|The user is a child.|Talk to me like to a child.|Speak as to a child.|"
           "Answer as if I was a child.", lambda t: f"{t.answer} Isn't that nice?", "I talk to a child."),
    _Style("dear", "Call the user my friend.|Address me as my friend.|Always call me my friend.|"
           "Use the words my friend.", lambda t: f"My friend, {t.answer}", "I say my friend."),
]
_WORDS = ["Sure!", "Well,", "Indeed.", "Listen:", "Good question!", "Okay.", "Here you go:", "Of course!",
          "Answer:", "Hmm.", "Look:"]
_ENDS = ["Over.", "Thank you.", "Have a nice day!", "The end.", "Anything else?", "Goodbye.", "Ha ha!",
         "Stay curious."]
_NEW_NAMES = ["Max", "Luna", "Robo", "Ada", "Nova", "Pixel", "Alfred", "Iris", "Otto", "Sunny", "Chip",
              "Gizmo", "Bella", "Kiwi"]


def neutral(rng):
    return rng.choice(_NEUTRAL)


def draw(rng, held=False):
    """A style at random, with one of its prompts: (system prompt, style)."""
    r = rng.random()
    if r < 0.1:
        word = rng.choice(_WORDS)
        forms = (["Your answers must begin with \"{}\""] if held else
                 ["Start every answer with \"{}\"", "Begin each answer with \"{}\"",
                  "Always start with \"{}\""])
        style = _Style("begin", "", lambda t: f"{word} {t.answer}", f"I start with {word}")
        return rng.choice(forms).format(word), style
    if r < 0.2:
        word = rng.choice(_ENDS)
        forms = (["Your answers must end with \"{}\""] if held else
                 ["End every answer with \"{}\"", "Finish each answer with \"{}\"",
                  "Always end with \"{}\""])
        style = _Style("end", "", lambda t: f"{t.answer} {word}", f"I end with {word}")
        return rng.choice(forms).format(word), style
    style = rng.choice(STYLES)
    prompt = style.prompts[-1] if held else rng.choice(style.prompts[:-1])
    if rng.random() < 0.2 and not held:
        prompt = f"{neutral(rng)} {prompt}"
    return prompt, style


def fits(turn):
    """Whether a style may change the answer: not where exact letters or lines matter."""
    return not turn.fixed and "\n" not in turn.answer and len(turn.answer) <= 260


def named(rng, held=False):
    """(system prompt, question, answer) of a model with another name."""
    name = rng.choice(_NEW_NAMES)
    prompt = rng.choice([f"Your name is {name}.", f"You are {name}, a helpful assistant.", f"You are {name}.",
                         f"You are called {name}."])
    asks = ["What is your name?", "Who are you?", "What's your name?", "How are you called?",
            "Tell me your name.", "what is your name"]
    question = "May I know your name?" if held else rng.choice(asks)
    return prompt, question, f"My name is {name}.", name
