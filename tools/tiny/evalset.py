"""Held-out questions and what counts as right: pure Python, no model.

Questions are sentences that training never shows (see phrase.py), sums use pairs of numbers that
training never shows.
"""

import json
import random
import re
from dataclasses import dataclass

import corpus
import data_facts
import data_json
import data_math
import data_talk
import data_text
import data_tools
from chat import prompt


@dataclass
class Case:
    """One prompt, and a function of the model's raw text that says if it is right."""

    group: str
    prompt: str
    right: object
    max_new: int
    well_formed: object = None  # a weaker test, where there is one
    expect: str = ""


def content(text):
    """What the user sees: without the thinking channel and the end of the turn."""
    text = re.sub(r"<\|channel>.*?<channel\|>", "", text, flags=re.S)
    return text.split("<turn|>")[0].strip()


def holds(text, short):
    """The short answer stands in the text as whole words."""
    return re.search(r"(?<!\w)" + re.escape(short.lower()) + r"(?!\w)", text.lower()) is not None


def parse_calls(text):
    """[(name, arguments)] of well-formed calls, or None if anything is malformed."""
    text = re.sub(r"<\|channel>.*?<channel\|>", "", text, flags=re.S)
    calls = []
    while text.startswith("<|tool_call>"):
        end = text.find("<tool_call|>")
        m = re.fullmatch(r"call:([A-Za-z_]\w*)(\{.*\})", text[len("<|tool_call>"):end], flags=re.S)
        if end < 0 or not m:
            return None
        body = re.sub(r'<\|"\|>(.*?)<\|"\|>',
                      lambda s: json.dumps(s.group(1)),
                      m.group(2),
                      flags=re.S)
        body = re.sub(r"([{,])([A-Za-z_]\w*):", r'\1"\2":', body)
        try:
            calls.append((m.group(1), json.loads(body)))
        except ValueError:
            return None
        text = text[end + len("<tool_call|>"):]
    return calls if text in ("", "<|tool_response>") or not calls else None


def _is_json(text):
    try:
        return json.loads(content(text)) is not None
    except ValueError:
        return False


def _last_prompt(sample):
    """The prompt that asks for the sample's last message."""
    return prompt(sample.messages[:-1], sample.tools, sample.thinking)


def _exact(group, sample, max_new):
    want = sample.messages[-1]["content"]
    return Case(group, _last_prompt(sample), lambda t: content(t) == want, max_new, expect=want)


def _short(group, sample, max_new):
    want = sample.check["short"]
    return Case(group,
                _last_prompt(sample),
                lambda t: holds(content(t), want),
                max_new,
                expect=want)


def _single(rng, turn, thinking=False, style=False, held=True):
    return corpus.conversation(rng, [turn], held=held, style=style, thinking=thinking)


_FACTS = [(data_facts.relation_turn, 12), (data_facts.unit_turn, 1), (data_facts.work_turn, 1.2),
          (data_facts.translation_turn, 1.6), (data_facts.trivia_turn, 3),
          (data_facts.mix_turn, 0.3)]


def _fact(rng, held=True):
    while True:
        turn = rng.choices([f for f, _ in _FACTS], [w for _, w in _FACTS])[0](rng, held)
        if turn.short:
            return turn


def facts(rng, n):
    return [_short("facts", _single(rng, _fact(rng)), 40) for _ in range(n)]


def facts_thinking(rng, n):
    return [
        _short("facts, thinking", _single(rng, _fact(rng), thinking=True), 90) for _ in range(n)
    ]


def follow_ups(rng, n):
    """The last question of an elliptical chain."""
    chains = [corpus.any_chain(rng) for _ in range(n)]
    return [
        _short("follow-ups", corpus.conversation(rng, c, held=True, style=False, thinking=False),
               40) for c in chains
    ]


def sums(rng, n):
    """Held-out pairs of two-digit numbers; the whole answer must be right."""
    out = []
    for make, label in ((data_math.add_turn, "addition"), (data_math.sub_turn, "subtraction")):
        for thinking in (True, False):
            group = f"{label}, {'thinking' if thinking else 'direct'}"
            out += [
                _exact(group, _single(rng, make(rng, True), thinking=thinking), 90)
                for _ in range(n)
            ]
    return out


def other_maths(rng, n):
    makers = [f for f, _ in data_math.TURNS if f not in (data_math.add_turn, data_math.sub_turn)]
    return [
        _exact("other maths, thinking", _single(rng, rng.choice(makers)(rng, True), thinking=True),
               100) for _ in range(n)
    ]


def tools(rng, n):
    """First the call, then (with the right call and its result given) the answer."""
    out = []
    for i in range(n):
        s = data_tools.call_sample(rng, held=True, thinking=i % 3 == 0)
        at = len(s.messages) - 3
        want = [(c["name"], c["arguments"]) for c in s.check["calls"]]
        ask = prompt(s.messages[:at], s.tools, s.thinking)
        out.append(
            Case("tool calls",
                 ask,
                 lambda t, w=want: parse_calls(t) == w,
                 110,
                 well_formed=lambda t: bool(parse_calls(t)),
                 expect=str(want)))
        if not s.thinking:
            out.append(_exact("tool answers", s, 60))
    return out


def no_tools(rng, n):
    out = []
    for i in range(n):
        s = (data_tools.missing_tool_sample(rng, held=True) if i %
             2 else data_tools.no_call_sample(rng, data_facts.relation_turn(rng, True), held=True))
        out.append(
            Case("tools not called",
                 _last_prompt(s),
                 lambda t: not t.startswith("<|tool_call>") and "<|tool_call>" not in t,
                 80,
                 expect=s.check["answer"]))
    return out


def json_answers(rng, n):
    makers = [f for f, _ in data_json.TURNS if f is not data_json.read_json_turn]
    out = []
    for _ in range(n):
        s = _single(rng, rng.choice(makers)(rng, True))
        case = _exact("json", s, 140)
        case.well_formed = _is_json
        out.append(case)
    return out


def text_tasks(rng, n):
    makers = [f for f, _ in data_text.TURNS]
    return [
        _exact("text tasks", _single(rng, makers[i % len(makers)](rng, True)), 70) for i in range(n)
    ]


def styles(rng, n):
    out = []
    while len(out) < n:
        s = _single(rng, data_facts.relation_turn(rng), style=True)
        if s.check["styled"]:
            out.append(_exact("system prompts", s, 60))
    return out


def memory(rng, n):
    chains = [
        data_talk.memory_chain(rng, lambda g: [data_facts.relation_turn(g)], held=True)
        for _ in range(n)
    ]
    return [
        _short("memory", corpus.conversation(rng, c, held=True, style=False, thinking=False), 40)
        for c in chains
    ]


def talk(rng, n):
    return [
        _exact("small talk", _single(rng, data_talk.intent_turn(rng, True)), 60) for _ in range(n)
    ]


def unknowns(rng, n):
    out = []
    for i in range(n):
        s = _single(rng, (data_talk.unknown_turn if i % 2 else data_talk.unknown_now_turn)(rng,
                                                                                           True))
        out.append(
            Case("does not know",
                 _last_prompt(s),
                 lambda t: any(w in content(t) for w in ("do not know", "cannot")),
                 50,
                 expect=s.check["answer"]))
    return out


def long_chats(rng, n):
    """A known fact after many other turns."""
    out = []
    for i in range(n):
        label, count = ("long chats", 12) if i % 2 else ("very long chats", 34)
        turns = [corpus.any_turn(rng) for _ in range(count)] + [_fact(rng)]
        out.append(
            _short(label, corpus.conversation(rng, turns, held=True, style=False, thinking=False),
                   40))
    return out


def names(rng, n):
    out = []
    for _ in range(n):
        s = corpus.named_sample(rng, True)
        s.thinking = False
        s.messages[-1].pop("reasoning", None)
        out.append(_exact("given names", s, 20))
    return out


def cases(seed=99, scale=1.0):
    """All groups; `scale` shrinks them for a quick look."""
    rng = random.Random(seed)
    plan = [(facts, 1000), (facts_thinking, 200), (follow_ups, 200),
            (sums, 200), (other_maths, 240), (tools, 300), (no_tools, 100), (json_answers, 300),
            (text_tasks, 440), (styles, 200), (memory, 150), (talk, 150), (unknowns, 150),
            (long_chats, 60), (names, 50)]
    return [c for make, n in plan for c in make(rng, max(4, int(n * scale)))]


def documents(seed=98, n=600):
    """Documents for perplexity: new samples of trained templates, and held-out templates."""
    rng = random.Random(seed)
    fresh = [corpus.segments(corpus.make_sample(rng)) for _ in range(n)]
    turns = [
        data_facts.relation_turn, data_facts.trivia_turn, data_math.add_turn,
        data_text.reading_turn, data_json.extract_turn, data_talk.intent_turn, data_text.list_turn
    ]
    held = [
        corpus.segments(corpus.conversation(rng, [turns[i % len(turns)](rng, True)], held=True))
        for i in range(n)
    ]
    return {"new samples": fresh, "held-out templates": held}


GOLDEN = [
    ([{
        "role": "user",
        "content": "What is the capital of France?"
    }], None, False),
    ([{
        "role": "user",
        "content": "Hi"
    }], None, False),
    ([{
        "role": "user",
        "content": "Who are you?"
    }], None, False),
    ([{
        "role": "user",
        "content": "What is 47 + 38?"
    }], None, True),
    ([{
        "role": "user",
        "content": "What is 7 * 8?"
    }], None, False),
    ([{
        "role": "user",
        "content": "Why is the sky blue?"
    }], None, False),
    ([{
        "role": "user",
        "content": "Tell me a story about a fox."
    }], None, False),
    ([{
        "role": "user",
        "content": "List three fruits."
    }], None, False),
    ([{
        "role": "user",
        "content": "Count from 3 to 12."
    }], None, False),
    ([{
        "role": "user",
        "content": "Write in upper case: the old boat is here"
    }], None, False),
    ([{
        "role": "user",
        "content": "What is the chemical symbol of gold?"
    }], None, True),
    ([{
        "role": "user",
        "content": "Translate water into French."
    }], None, False),
    ([{
        "role": "user",
        "content": "Give me the capital and language of Japan. Answer in JSON."
    }], None, False),
    ([{
        "role": "user",
        "content": "What is the weather today?"
    }], None, False),
    ([{
        "role": "user",
        "content": "What is the history of the Zorbatel protocol?"
    }], None, False),
    ([{
        "role": "system",
        "content": "Talk like a pirate."
    }, {
        "role": "user",
        "content": "What is the capital of Italy?"
    }], None, False),
    ([{
        "role": "system",
        "content": "Answer in one word."
    }, {
        "role": "user",
        "content": "What is the opposite of hot?"
    }], None, False),
    ([{
        "role": "user",
        "content": "What is the capital of France?"
    }, {
        "role": "assistant",
        "content": "The capital of France is Paris."
    }, {
        "role": "user",
        "content": "And Germany?"
    }], None, False),
    ([{
        "role": "user",
        "content": "My name is Anna."
    }, {
        "role": "assistant",
        "content": "Nice to meet you, Anna!"
    }, {
        "role": "user",
        "content": "What is my name?"
    }], None, False),
    ([{
        "role": "user",
        "content": "What is the weather in Oslo?"
    }], [{
        "type": "function",
        "function": {
            "name": "get_weather",
            "description": "Current weather of a city",
            "parameters": {
                "type": "object",
                "properties": {
                    "city": {
                        "type": "string",
                        "description": "Name of the city"
                    }
                },
                "required": ["city"]
            }
        }
    }, {
        "type": "function",
        "function": {
            "name": "calculator",
            "description": "Does arithmetic",
            "parameters": {
                "type": "object",
                "properties": {
                    "expression": {
                        "type": "string"
                    }
                },
                "required": ["expression"]
            }
        }
    }, {
        "type": "function",
        "function": {
            "name": "send_message",
            "description": "Sends a text message to a person",
            "parameters": {
                "type": "object",
                "properties": {
                    "to": {
                        "type": "string"
                    },
                    "text": {
                        "type": "string"
                    }
                },
                "required": ["to", "text"]
            }
        }
    }], False),
]


def golden_prompts():
    """The 20 prompts of the golden transcripts."""
    return [prompt(m, t, thinking) for m, t, thinking in GOLDEN]
