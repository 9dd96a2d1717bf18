"""Tests of all that needs no torch: run `python3 -m unittest` in this directory."""

import json
import random
import unittest

import chat
import corpus
import data_math
import evalset
import phrase
import tokenizer
from trivia import TRIVIA

try:
    import canvas_rows
except ImportError:  # no numpy
    canvas_rows = None

_DECL = (
    '<|tool>declaration:get_temp{description:<|"|>Current temperature of a '
    'town<|"|>,parameters:{properties:{'
    'town:{description:<|"|>Town '
    'name<|"|>,type:<|"|>STRING<|"|>},unit:{enum:[<|"|>c<|"|>,<|"|>f<|"|>],'
    'type:<|"|>STRING<|"|>}},required:[<|"|>town<|"|>],type:<|"|>OBJECT<|"|>}}<tool|>')
_TOOL = {
    "type": "function",
    "function": {
        "name": "get_temp",
        "description": "Current temperature of a town",
        "parameters": {
            "type": "object",
            "required": ["town"],
            "properties": {
                "town": {
                    "type": "string",
                    "description": "Town name"
                },
                "unit": {
                    "type": "string",
                    "enum": ["c", "f"]
                }
            }
        }
    }
}


def _user(text):
    return {"role": "user", "content": text}


def _model(text, **more):
    return {"role": "assistant", "content": text, **more}


class ChatTest(unittest.TestCase):
    """Prompts of the published chat template."""

    def test_a_plain_question_small_and_large(self):
        self.assertEqual(chat.prompt([_user("Hi there")]),
                         "<bos><|turn>user\nHi there<turn|>\n<|turn>model\n")
        self.assertTrue(
            chat.prompt([_user("Hi")],
                        large=True).endswith("<|turn>model\n<|channel>thought\n<channel|>"))

    def test_system_text_is_trimmed_and_thinking_comes_first(self):
        messages = [{"role": "system", "content": "  Be terse. "}, _user("2+2?")]
        self.assertEqual(
            chat.prompt(messages, thinking=True),
            "<bos><|turn>system\n<|think|>\nBe "
            "terse.<turn|>\n<|turn>user\n2+2?<turn|>\n<|turn>model\n"
        )

    def test_earlier_reasoning_is_dropped(self):
        messages = [_user("2+2?"), _model("4", reasoning="add"), _user("times 3?")]
        self.assertNotIn("add", chat.prompt(messages, thinking=True))

    def test_a_tool_round_with_thinking(self):
        call = {"function": {"name": "get_temp", "arguments": {"town": "Oslo"}}}
        messages = [
            _user("Temp in Oslo?"),
            _model("", tool_calls=[call], reasoning="Need a lookup."), {
                "role": "tool",
                "content": "-3"
            }
        ]
        self.assertEqual(
            chat.prompt(messages, [_TOOL], thinking=True), "<bos><|turn>system\n<|think|>\n" +
            _DECL + "<turn|>\n<|turn>user\nTemp in Oslo?<turn|>\n<|turn>model\n"
            '<|channel>thought\nNeed a lookup.\n<channel|>'
            '<|tool_call>call:get_temp{town:<|"|>Oslo<|"|>}<tool_call|>'
            '<|tool_response>response:get_temp{value:<|"|>-3<|"|>}<tool_response|>'
            '<|channel>thought\n'
        )

    def test_a_pending_call_hands_over(self):
        call = {"function": {"name": "f", "arguments": {}}}
        text = "".join(t for t, _ in chat.render([_user("x"), _model("", tool_calls=[call])]))
        self.assertTrue(text.endswith("<|tool_call>call:f{}<tool_call|><|tool_response>"))

    def test_argument_values(self):
        args = {
            "b": True,
            "l": ["a", 1],
            "n": 3,
            "o": {
                "k": "v",
                "a": False
            },
            "Q": 'say "hi"\n',
            "x": 2.5,
            "z": None
        }
        self.assertEqual(
            chat.call("f", args),
            '<|tool_call>call:f{b:true,l:[<|"|>a<|"|>,1],n:3,o:{a:false,k:<|"|>v<|"|>},'
            'Q:<|"|>say "hi"\n<|"|>,x:2.5,z:null}<tool_call|>')

    def test_the_model_learns_what_follows_each_prompt_and_nothing_else(self):
        rng = random.Random(1)
        for _ in range(500):
            sample = corpus.make_sample(rng)
            if sample.text is not None or sample.thinking or sample.large:
                continue
            whole, written = "", []
            for text, role in corpus.segments(sample):
                if role == chat.MODEL:
                    written.append(whole)
                whole += text
            for i, m in enumerate(sample.messages):
                if m["role"] == "assistant" and sample.messages[i - 1]["role"] == "user":
                    self.assertIn(chat.prompt(sample.messages[:i], sample.tools), written)


class TokenizerTest(unittest.TestCase):

    @classmethod
    def setUpClass(cls):
        cls.texts = list(corpus.texts(3, 1500))
        cls.tokenizer = tokenizer.train(cls.texts, 1500)

    def test_words_and_whole_lines_give_the_same_ids(self):
        odd = [
            "  two  spaces   three     five Hello\n\n\nx\t\ty", "é漢字🦙 naïve", "a<|turn>b\n",
            "\n" * 40, "", " "
        ]
        for text in self.texts[:200] + odd:
            self.assertEqual(self.tokenizer.encode(text), self.tokenizer.encode_slowly(text))

    def test_decoding_gives_the_text_back(self):
        for text in self.texts[:200] + ["漢字🦙 \x00 \r\n tab\t"]:
            self.assertEqual(self.tokenizer.decode(self.tokenizer.encode(text)), text)

    def test_digits_and_newline_runs_are_single_tokens(self):
        t = self.tokenizer
        self.assertEqual([t.tokens[i] for i in t.encode("12345")], list("12345"))
        self.assertEqual([t.tokens[i] for i in t.encode("\n\n\n")], ["\n\n\n"])

    def test_no_merge_crosses_a_word(self):
        for x, y in self.tokenizer.merges:
            self.assertNotIn(tokenizer.SPACE, (x + y).lstrip(tokenizer.SPACE))

    def test_every_token_is_there_once(self):
        self.assertEqual(len(set(self.tokenizer.tokens)), 1500)
        self.assertEqual(self.tokenizer.tokens[:24], tokenizer.SPECIALS)


class DataTest(unittest.TestCase):

    def test_worked_sums_are_right(self):
        for x in range(0, 130, 7):
            for y in range(0, 130, 11):
                digits = [
                    step.split("= ")[1] for step in data_math.add_steps(x, y).split(". ")
                    if "= " in step
                ]
                value = sum(
                    int(d.split(",")[0].rstrip(".")) % (10 if "carry" in d else 1000) * 10**i
                    for i, d in enumerate(digits))
                carry = 10**len(digits) if "Then the carry" in data_math.add_steps(x, y) else 0
                self.assertEqual(value + carry, x + y, data_math.add_steps(x, y))

    def test_held_out_sums_are_not_trained(self):
        rng = random.Random(2)
        for _ in range(2000):
            sum_text = data_math.add_turn(rng).thought.split(".")[0]
            self.assertFalse(data_math.held_pair(*map(int, sum_text.split(" + "))), sum_text)

    def test_held_out_sentences_are_not_trained(self):
        rng = random.Random(4)
        trained = {t for _ in range(20000) for t in [corpus.any_turn(rng).user.lower()]}
        held = [corpus.any_turn(rng, True) for _ in range(2000)]
        seen = [t.user for t in held if t.user.lower() in trained and t.kind != "gibberish"]
        self.assertLess(len(seen), 20, seen)

    def test_a_question_has_one_answer(self):
        rng, answers = random.Random(5), {}
        for _ in range(30000):
            t = corpus.any_turn(rng)
            if t.kind not in ("story", "poem", "joke", "continue", "gibberish"):
                answers.setdefault(t.user.lower().rstrip("?.!"), set()).add(t.answer.lower())
        many = {q: a for q, a in answers.items() if len(a) > 1}
        self.assertLess(len(many), 5, many)

    def test_turns_are_clean(self):
        rng = random.Random(6)
        for _ in range(20000):
            t = corpus.any_turn(rng)
            self.assertTrue(t.user.strip() and t.answer == t.answer.strip(), t)
            self.assertNotRegex(t.user + t.thought, r"\{[a-z]+\}|  ", t)

    def test_short_answers_stand_in_the_long_ones(self):
        for _, answer, short in TRIVIA:
            self.assertTrue(not short or evalset.holds(answer, short), (answer, short))

    def test_json_answers_parse(self):
        rng = random.Random(7)
        for _ in range(300):
            for case in evalset.json_answers(rng, 1):
                json.loads(case.expect)
                self.assertTrue(case.right(case.expect + "<turn|>"))

    def test_samples_are_the_same_for_the_same_seed(self):
        self.assertEqual(list(corpus.texts(9, 50)), list(corpus.texts(9, 50)))


@unittest.skipUnless(canvas_rows, "needs numpy")
class CanvasRowsTest(unittest.TestCase):
    """Rows that train a diffusion model."""

    @classmethod
    def setUpClass(cls):
        cls.tok = tokenizer.train(corpus.texts(3, 3000), 2000)
        cls.kinds = canvas_rows.shard(cls.tok, 11, 60000)

    def test_a_canvas_begins_with_the_answer_and_every_32_tokens_after_it(self):
        roles = [1] * 5 + [2] * 40 + [1] * 3 + [2] * 32 + [0] * 4 + [2]
        self.assertEqual(canvas_rows.canvases(roles), [(5, 45), (37, 45), (48, 80), (84, 85)])

    def test_what_is_behind_the_end_is_filler(self):
        ids = list(range(100, 150))
        self.assertEqual(canvas_rows.target(ids, 0, 40), ids[:32])
        self.assertEqual(canvas_rows.target(ids, 40, 43), [140, 141, 142] + [0] * 29)

    def test_every_answer_ends_with_a_token_that_stops(self):
        rng, ends = random.Random(8), {self.tok.ids[t] for t in ("<eos>", "<turn|>",
                                                                 "<|tool_response>")}
        for _ in range(500):
            ids, _, found = canvas_rows.document(self.tok, corpus.make_sample(rng))
            for begin, end in found:
                tokens = canvas_rows.target(ids, begin, end)
                inside = [i for i, t in enumerate(tokens) if t in ends]
                if len(ids) < canvas_rows.KINDS[-1].length and end - begin <= 32:
                    self.assertEqual(inside, [end - begin - 1])

    def test_rows_hold_whole_documents_side_by_side(self):
        bos = self.tok.ids["<bos>"]
        for kind, (ids, roles, docs, begins, ends) in zip(canvas_rows.KINDS, self.kinds):
            self.assertEqual(ids.shape[1], kind.length)
            self.assertEqual(begins.shape[1], kind.slots)
            for row, numbers in zip(ids.tolist(), docs.tolist()):
                firsts = [i for i, t in enumerate(row) if t == bos]
                new = [i for i, d in enumerate(numbers)
                       if d != canvas_rows.NO_DOCUMENT and (i == 0 or numbers[i - 1] != d)]
                self.assertEqual(firsts, new)

    def test_a_canvas_lies_in_one_document_after_its_prompt(self):
        for ids, roles, docs, begins, ends in self.kinds:
            for r in range(len(ids)):
                for begin, end in zip(begins[r], ends[r]):
                    self.assertTrue(0 < begin < end <= ids.shape[1])
                    self.assertEqual(len(set(docs[r, begin - 1:end])), 1)
                    self.assertEqual(set(roles[r, begin:end]), {chat.MODEL})

    def test_rows_are_the_same_for_the_same_seed(self):
        again = canvas_rows.shard(self.tok, 11, 60000)
        for a, b in zip(self.kinds, again):
            for x, y in zip(a, b):
                self.assertTrue((x == y).all())


class EvaluationTest(unittest.TestCase):

    def test_calls_are_parsed(self):
        self.assertEqual(
            evalset.parse_calls('<|tool_call>call:f{a:<|"|>x, y<|"|>,b:3,c:true}<tool_call|>'),
            [("f", {
                "a": "x, y",
                "b": 3,
                "c": True
            })])
        self.assertIsNone(evalset.parse_calls('<|tool_call>call:f{a:<|"|>x}<tool_call|>'))
        self.assertEqual(evalset.parse_calls("Hello<turn|>"), [])

    def test_the_wanted_answers_pass_their_own_test(self):
        for case in evalset.cases(scale=0.1):
            if case.group not in ("tool calls", "tools not called"):
                self.assertTrue(case.right(f"{case.expect}<turn|>"), (case.group, case.expect))

    def test_frames_hold_out_about_a_tenth(self):
        p = phrase.Phrases(
            nouns=[f"the {w} of {{x}}" for w in ("head", "tail", "foot", "ear", "nose")])
        self.assertTrue(0.03 < len(p.held) / (len(p.held) + len(p.train)) < 0.2)
        self.assertFalse(set(p.held) & set(p.train))


if __name__ == "__main__":
    unittest.main()
