"""Gemma 4's chat format, as training text.

`render` turns a conversation into segments (text, role): joined, the texts are exactly what the
chat template gives for the same conversation, and the role says who wrote a piece.  It covers what
the data needs (plain string contents, flat tool schemas); the C renderer in src/text/chat.c is the
complete one.
"""

QUOTE = '<|"|>'

SKIP, PROMPT, MODEL = 0, 1, 2  # roles: not to be learnt, given to the model, written by the model


def quote(text):
    """A string value: no escaping, only the quote token on both sides."""
    return f"{QUOTE}{text}{QUOTE}"


def value(v):
    """One argument value: string, bool, null, number, list or map (bare, sorted keys)."""
    if isinstance(v, str):
        return quote(v)
    if v is None:
        return "null"
    if isinstance(v, bool):
        return "true" if v else "false"
    if isinstance(v, dict):
        return "{" + ",".join(f"{k}:{value(x)}" for k, x in _sorted(v)) + "}"
    if isinstance(v, list):
        return "[" + ",".join(value(x) for x in v) + "]"
    return str(v)


def declaration(tool):
    """The text of one tool declaration; `tool` is in OpenAI's form."""
    f = tool["function"]
    out = f"<|tool>declaration:{f['name']}{{description:{quote(f.get('description', ''))}"
    params = f.get("parameters")
    if params:
        parts = []
        if params.get("properties"):
            props = (f"{k}:{_property(p)}" for k, p in _sorted(params["properties"]))
            parts.append("properties:{" + ",".join(props) + "}")
        if params.get("required"):
            parts.append("required:[" + ",".join(quote(r) for r in params["required"]) + "]")
        parts.append(f"type:{quote(params['type'].upper())}")
        out += ",parameters:{" + ",".join(parts) + "}"
    return out + "}<tool|>"


def call(name, arguments):
    """The text of one tool call."""
    args = ",".join(f"{k}:{value(v)}" for k, v in _sorted(arguments))
    return f"<|tool_call>call:{name}{{{args}}}<tool_call|>"


def render(messages, tools=None, thinking=False, large=False):
    """Segments of a conversation that ends with a model message (or waits for one).

    With thinking on, model messages before the last user message are SKIP: the template drops their
    reasoning, so they would teach answering without it.  Likewise for the large models' form, where
    an empty thinking block opens the newest answer only.
    """
    out = _Segments()
    out.add("<bos>")
    messages = list(messages)
    system = messages.pop(0) if messages and messages[0]["role"] == "system" else None
    if system or tools or thinking:
        out.add("<|turn>system\n")
        out.add("<|think|>\n" if thinking else "")
        out.add(system["content"].strip() if system else "")
        for tool in tools or ():
            out.add(declaration(tool))
        out.add("<turn|>\n")

    last_user = max((i for i, m in enumerate(messages) if m["role"] == "user"), default=-1)
    open_turn = False  # inside a model turn that the next assistant message continues
    i = 0
    while i < len(messages):
        m = messages[i]
        if m["role"] == "user":
            out.add(f"<|turn>user\n{m['content'].strip()}<turn|>\n")
            open_turn = False
            i += 1
            continue
        now = i > last_user  # the turn that is being written; earlier ones are history
        role = MODEL if now or not (thinking or large) else SKIP
        if not open_turn:
            out.add("<|turn>model\n")
            if large and not thinking and now:
                out.add("<|channel>thought\n<channel|>",
                        SKIP)  # or small models would learn to write it
        i = _model_message(out, messages, i, role, show_reasoning=now)
        open_turn = i < len(messages) and messages[i]["role"] == "assistant"
    return out.items


def prompt(messages, tools=None, thinking=False, large=False):
    """The text that asks for the next model message."""
    text = "".join(t for t, _ in render(messages, tools, thinking, large))
    if messages[-1]["role"] == "tool":
        return text + ("<|channel>thought\n" if thinking else "")
    empty = "<|channel>thought\n<channel|>" if large and not thinking else ""
    return text + "<|turn>model\n" + empty


def _model_message(out, messages, i, role, show_reasoning):
    """Emit assistant message i with the tool messages that answer it; returns the next index."""
    m = messages[i]
    i += 1
    if m.get("reasoning") and show_reasoning:
        out.add(f"<|channel>thought\n{m['reasoning']}\n<channel|>", role)
    calls = m.get("tool_calls") or []
    for c in calls:
        out.add(call(c["function"]["name"], c["function"]["arguments"]), role)
    answered = False
    if calls:
        # The model itself writes the marker that hands control over; the rest is the tool's.
        names = {c.get("id"): c["function"]["name"] for c in calls}
        while i < len(messages) and messages[i]["role"] == "tool":
            t = messages[i]
            name = names.get(t.get("tool_call_id"), t.get("name", "unknown"))
            out.add("<|tool_response>", PROMPT if answered else role)
            out.add(f"response:{name}{{value:{value(t['content'])}}}<tool_response|>")
            answered = True
            i += 1
    content = (m.get("content") or "").strip()
    out.add(content, role)
    if calls and not answered:
        out.add("<|tool_response>", role)
    elif i < len(messages) and messages[i]["role"] == "assistant":
        pass  # the next message continues this turn
    elif not (answered and not content and i == len(messages)):
        out.add("<turn|>", role)
        out.add("\n")
    return i


def _property(p):
    """One property of a tool's schema: description, enum, then the type."""
    parts = []
    if "description" in p:
        parts.append(f"description:{quote(p['description'])}")
    if "enum" in p and p["type"].upper() == "STRING":
        parts.append("enum:[" + ",".join(quote(e) for e in p["enum"]) + "]")
    if "items" in p and p["type"].upper() == "ARRAY":
        parts.append("items:{type:" + quote(p["items"]["type"].upper()) + "}")
    parts.append(f"type:{quote(p['type'].upper())}")
    return "{" + ",".join(parts) + "}"


def _sorted(mapping):
    """Template order of a map: by key, ignoring case."""
    return sorted(mapping.items(), key=lambda kv: kv[0].lower())


class _Segments:
    """List of (text, role) that merges neighbours of the same role."""

    def __init__(self):
        self.items = []

    def add(self, text, role=PROMPT):
        if not text:
            return
        if self.items and self.items[-1][1] == role:
            self.items[-1] = (self.items[-1][0] + text, role)
        else:
            self.items.append((text, role))
