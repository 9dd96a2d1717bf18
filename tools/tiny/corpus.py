"""The mixture: which generators, how often, with which history, system prompt and thinking.

`make_sample(rng)` draws one training sample.  `shard(seed, n_tokens)` tokenizes many of them into
one long stream of documents; shards with different seeds are made in parallel.
"""

import random

import data_facts
import data_json
import data_math
import data_story
import data_style
import data_talk
import data_text
import data_tools
from chat import MODEL, render
from sample import Sample

MAX_TOKENS = 2048  # of one document: the models' context

_GROUPS = [(data_facts.TURNS, 10), (data_math.TURNS, 5), (data_talk.TURNS, 5), (data_text.TURNS, 5),
           (data_story.TURNS, 1.2), (data_json.TURNS, 1.8)]


class _Choice:
    """Weighted choice with the cumulated weights kept."""

    def __init__(self, pairs):
        self.items = [p[0] for p in pairs]
        total, self.cumulated = 0.0, []
        for p in pairs:
            total += p[1]
            self.cumulated.append(total)

    def __call__(self, rng):
        return rng.choices(self.items, cum_weights=self.cumulated)[0]


_group = _Choice([(_Choice(turns), weight) for turns, weight in _GROUPS])
_chain = _Choice(data_facts.CHAINS)
# Turns that no declared tool could serve better.
_no_tool_turn = _Choice([(data_facts.relation_turn, 5), (data_facts.trivia_turn, 2),
                         (data_facts.work_turn, 1), (data_talk.intent_turn, 4),
                         (data_text.list_turn, 1), (data_text.past_turn, 1),
                         (data_text.reading_turn, 1), (data_story.story_turn, 0.5)])


def any_turn(rng, held=False):
    """One turn of any group."""
    return _group(rng)(rng)(rng, held)


def any_chain(rng):
    """Questions of which the later ones lean on the first."""
    return _chain(rng)(rng)


def _turns(rng):
    """The turns of one conversation."""
    r = rng.random()
    if r < 0.66:
        return [any_turn(rng)]
    if r < 0.775:
        return any_chain(rng)
    if r < 0.79:
        return data_talk.again_chain(rng)
    if r < 0.87:
        between = None if rng.random(
        ) < 0.5 else lambda g: [any_turn(g) for _ in range(g.randint(1, 2))]
        return data_talk.memory_chain(rng, between)
    if r < 0.98:
        return [any_turn(rng) for _ in range(rng.randint(2, 4))]
    return [any_turn(rng) for _ in range(rng.randint(6, 40))]


def conversation(rng, turns, held=False, style=None, thinking=None):
    """Put turns together: system prompt or none, thinking or not, the answers in the style."""
    if thinking is None:  # in long chats rarely: only their last answer would be learnt
        thinking = rng.random() < (0.3 if len(turns) < 5 else 0.1)
    system, answers, extra = None, [t.answer for t in turns], ""
    want_style = style if style is not None else rng.random() < 0.25
    if want_style:
        prompt, style = data_style.draw(rng, held)
        changed = [style.apply(t) if data_style.fits(t) else None for t in turns]
        if all(changed):
            system, answers, extra = prompt, changed, " " + style.thought
    if system is None and rng.random() < 0.15 and not held:
        system = data_style.neutral(rng)
    asked = [t.user for t in turns]
    if extra and style.inline and len(turns) == 1 and not held and rng.random() < 0.3:
        asked[0], system = f"{asked[0]} {system}", None  # the user says it, not the system prompt
    messages = [{"role": "system", "content": system}] if system else []
    for user, answer in zip(asked, answers):
        messages.append({"role": "user", "content": user})
        messages.append({"role": "assistant", "content": answer})
    if thinking:
        messages[-1]["reasoning"] = (turns[-1].thought or "I can answer this directly.") + extra
    return Sample(turns[-1].kind,
                  messages,
                  thinking=thinking,
                  large=rng.random() < (0.15 if len(turns) < 5 else 0.05),
                  check={
                      "answer": answers[-1],
                      "short": turns[-1].short,
                      "styled": bool(extra)
                  })


def named_sample(rng, held=False):
    """The system prompt gives the model another name."""
    prompt, question, answer, name = data_style.named(rng, held)
    messages = [{
        "role": "system",
        "content": prompt
    }, {
        "role": "user",
        "content": question
    }, {
        "role": "assistant",
        "content": answer
    }]
    thinking = rng.random() < 0.3
    if thinking:
        messages[-1]["reasoning"] = f"The user asks for my name. I am {name}."
    return Sample("named", messages, thinking=thinking, check={"answer": answer, "short": name})


def tool_sample(rng):
    r = rng.random()
    if r < 0.62:
        return data_tools.call_sample(rng)
    if r < 0.74:
        return data_tools.parallel_sample(rng)
    if r < 0.88:
        return data_tools.no_call_sample(rng, _no_tool_turn(rng)(rng))
    return data_tools.missing_tool_sample(rng)


def make_sample(rng):
    """One training sample."""
    r = rng.random()
    if r < 0.03:
        return Sample("plain", text=data_story.plain(rng))
    if r < 0.15:
        return tool_sample(rng)
    if r < 0.16:
        return named_sample(rng)
    return conversation(rng, _turns(rng))


def segments(sample):
    """(text, role) pieces of a sample; a plain text is all the model's."""
    if sample.text is not None:
        return [("<bos>", 1), (sample.text + "<eos>", MODEL)]
    return render(sample.messages, sample.tools, sample.thinking, sample.large)


def texts(seed, n):
    """n rendered samples, for training the tokenizer."""
    rng = random.Random(seed)
    for _ in range(n):
        yield "".join(t for t, _ in segments(make_sample(rng)))


def shard(tokenizer, seed, n_tokens):
    """Documents in a row: lists of token ids, their roles, and positions inside the document."""
    rng = random.Random(seed)
    ids, roles, positions = [], [], []
    while len(ids) < n_tokens:
        doc, doc_roles = [], []
        for text, role in segments(make_sample(rng)):
            piece = tokenizer.encode(text)
            doc += piece
            doc_roles += [role] * len(piece)
        del doc[MAX_TOKENS:], doc_roles[MAX_TOKENS:]
        ids += doc
        roles += doc_roles
        positions += range(len(doc))
    return ids, roles, positions
