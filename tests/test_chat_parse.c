/* test_chat_parse.c - the model's text back to content, reasoning and tool calls.
 *
 * A transcript is what the sink saw, adjacent pieces of one kind joined:
 *   C(content) R(reasoning) T(name args)
 * As in test_chat.c, text is written with ' for "; ` stands for a real single quote. */
#include <stdlib.h>

#include "base/mem.h"
#include "base/rng.h"
#include "base/utf8.h"
#include "check.h"
#include "text/chat.h"

enum { THINK = 1, IN_THOUGHT = 2 };

struct transcript {
    struct buf text;
    int last;
    bool bad; /* a piece was empty or not UTF-8, or arguments were not a JSON object */
};

static void on_event(void *ctx, enum chat_event e, struct str name, struct str text)
{
    struct transcript *t = ctx;
    for (size_t i = 0, used; i < text.n; i += used) {
        uint32_t c = utf8_decode(text.p + i, text.n - i, &used);
        t->bad |= c == 0xfffd && used == 1;
    }
    if (e == CHAT_TOOL_CALL) {
        struct arena a = { 0 };
        struct json *j = NULL;
        t->bad |= json_parse(&j, text, &a, NULL) != BZ_OK || j->type != JSON_OBJECT;
        arena_free(&a);
        buf_printf(&t->text, "%sT(%.*s ", t->last >= 0 ? ")" : "", STR_ARG(name));
    } else {
        t->bad |= text.n == 0;
        if (t->last != (int)e)
            buf_printf(&t->text, "%s%c(", t->last >= 0 ? ")" : "", e == CHAT_CONTENT ? 'C' : 'R');
    }
    buf_put_str(&t->text, text);
    t->last = (int)e;
}

/* Parse text in pieces that end at the given cuts; the caller frees the transcript. */
static char *parse(struct str text, const struct json *tools, int how, const size_t *cuts, size_t n)
{
    struct transcript t = { .last = -1 };
    struct chat_parser *p = NULL;
    struct bz_err err = { "" };
    struct chat_parser_options opt = { .thinking = how & THINK,
                                       .starts_in_thought = (how & IN_THOUGHT) != 0,
                                       .tools = tools };
    CHECK(chat_parser_open(&p, opt, (struct chat_sink) { &t, on_event }, &err) == BZ_OK);
    size_t at = 0;
    for (size_t i = 0; i <= n; i++) {
        size_t end = i < n ? cuts[i] : text.n;
        CHECK(chat_parser_feed(p, (struct str) { text.p + at, end - at }, &err) == BZ_OK);
        at = end;
    }
    CHECK(chat_parser_end(p, &err) == BZ_OK);
    chat_parser_close(p);
    CHECK(!t.bad);
    if (t.last >= 0) buf_putc(&t.text, ')');
    else buf_puts(&t.text, "");
    return t.text.data;
}

/* ' to ", ` to ' */
static char *quotes(const char *z)
{
    char *s = mem_copy_str(z, strlen(z));
    for (char *c = s; *c; c++) *c = (char)(*c == '\'' ? '"' : *c == '`' ? '\'' : *c);
    return s;
}

#define TOOL(props)                                                                                \
    "[{'function':{'name':'other'}},{'function':{'name':'f','parameters':{'properties':{" props    \
    "}}}}]"
static const char string_tool[] =
    TOOL("'s':{'type':'string'},'m':{'type':['null','string']},'u':{'anyOf':[{'type':'string'}]},"
         "'n':{'type':'number'}");

#define CALL(x) "<|tool_call>" x "<tool_call|>"

static const struct {
    const char *what;
    int how;
    const char *text, *want;
} states[] = {
    { "plain content", 0, "Hello there.", "C(Hello there.)" },
    { "nothing", 0, "", "" },
    { "space at both ends of plain content stays", 0, " \n x \n", "C( \n x \n)" },
    { "thinking then content", THINK, "<|channel>thought\nhm\n<channel|>\n 42.", "R(hm)C(42.)" },
    { "thinking is dropped when not asked for", 0, "<|channel>thought\nhm\n<channel|>42.",
      "C(42.)" },
    { "space before a thought is dropped", THINK, "a \n<|channel>thought\nb<channel|> c",
      "C(a)R(b)C(c)" },
    { "leading space of a thought stays", THINK, "<|channel>thought\n\n a<channel|>", "R(\n a)" },
    { "an empty thought is swallowed", THINK, "<|channel>thought\n<channel|>x", "C(x)" },
    { "a blank thought is swallowed", THINK, "<|channel>thought\n \n\n<channel|>x", "C(x)" },
    { "a thought of only its name is swallowed", THINK, "<|channel>thought<channel|>x", "C(x)" },
    { "only the name, then the end", THINK, "<|channel>thought", "" },
    { "half a name, then the end", THINK, "<|channel>thou", "R(thou)" },
    { "another channel name is kept", THINK, "<|channel>thoughtful\n<channel|>x",
      "R(thoughtful)C(x)" },
    { "no channel name", THINK, "<|channel>a<channel|>b", "R(a)C(b)" },
    { "two thoughts", THINK, "<|channel>thought\na<channel|> <|channel>thought\nb<channel|>c",
      "R(ab)C(c)" },
    { "an open thought ends with the text", THINK, "<|channel>thought\nabc <chan", "R(abc <chan)" },
    { "a call inside a thought is text", THINK, "<|channel>" CALL("call:f{}"),
      "R(<|tool_call>call:f{}<tool_call|>)" },
    { "the prompt opened the thought", THINK | IN_THOUGHT, "hm <channel|> ok", "R(hm)C(ok)" },
    { "an opened thought has no name", THINK | IN_THOUGHT, "thought\n<channel|>x",
      "R(thought)C(x)" },
    { "the prompt opened a thought nobody wants", IN_THOUGHT, "hm<channel|>ok", "C(ok)" },
    { "a stray closing tag is content", 0, "a<channel|>b", "C(a<channel|>b)" },
    { "angle brackets are content", 0, "a < b <| c <|ch <|tool_ <",
      "C(a < b <| c <|ch <|tool_ <)" },
    { "a tag that begins again", THINK, "<<|channel<|channel>x<channel<channel|>y",
      "C(<<|channel)R(x<channel)C(y)" },
    { "content then a call", 0, "Let me see. \n" CALL("call:f{}"), "C(Let me see.)T(f {})" },
    { "thought then a call", THINK, "<|channel>thought\nx<channel|>\n" CALL("call:f{}"),
      "R(x)T(f {})" },
    { "two calls", 0, CALL("call:f{}") " \n" CALL("call:g{a:1}"), "T(f {})T(g {'a':1})" },
    { "noise after a call", 0,
      CALL("call:f{}") "<tool_call|> <|tool_response>\n<tool_call|> Done. ", "T(f {})C(Done. )" },
    { "only noise after a call", 0, CALL("call:f{}") "\n<|tool_response> ", "T(f {})" },
    { "the beginning of noise is content at the end", 0, CALL("call:f{}") " <tool_",
      "T(f {})C(<tool_)" },
    { "noise is content elsewhere", 0, CALL("call:f{}") "x<tool_call|>",
      "T(f {})C(x<tool_call|>)" },
    { "thought after a call", THINK, CALL("call:f{}") "<|channel>thought\nx<channel|>y",
      "T(f {})R(x)C(y)" },
    { "a call without its closing tag", 0, "<|tool_call>call:f{a:1}", "T(f {'a':1})" },
    { "exotic space counts as space", THINK,
      "a\xe2\x80\xa8<|channel>thought\nb\xe3\x80\x80<channel|>\xc2\xa0"
      "c",
      "C(a)R(b)C(c)" },
    { "bytes that are not UTF-8", 0, "a\xff\xe2\x82z\xf0\x9f\x99",
      "C(a\xef\xbf\xbd\xef\xbf\xbd\xef\xbf\xbdz\xef\xbf\xbd\xef\xbf\xbd\xef\xbf\xbd)" },
    { "code points of each length", 0, "\xc3\xa9\xe6\x97\xa5\xf0\x9f\x99\x82",
      "C(\xc3\xa9\xe6\x97\xa5\xf0\x9f\x99\x82)" },
};

/* `body` stands between the call's tags; NULL: it must come back as content, tags included. */
static const struct {
    const char *body, *args;
} calls[] = {
    { "call:f{}", "{}" },
    { " call: f {} ", "{}" },
    { "call:f{a:1,b:-2.50,c:1e+20,d:0,e:123456789012345678901234567890}",
      "{'a':1,'b':-2.50,'c':1e+20,'d':0,'e':123456789012345678901234567890}" },
    { "call:f{a:9.9e307,b:-2.5E-2222223,c:0.0e999999,d:0.000123e311}",
      "{'a':9.9e307,'b':-2.5E-2222223,'c':0.0e999999,'d':0.000123e311}" },
    { "call:f{a:true,b:false,c:null}", "{'a':true,'b':false,'c':null}" },
    { "call:f{a:<|'|>x<|'|>,b:<|'|><|'|>}", "{'a':'x','b':''}" },
    { "call:f{a:<|'|>say 'hi', \\n {b:1} [x]\n<|'|>}", "{'a':'say \\'hi\\', \\\\n {b:1} [x]\\n'}" },
    { "call:f{a:'x \\'y\\' \\u00e9',b:1}", "{'a':'x \\'y\\' \xc3\xa9','b':1}" },
    { "call:f{'a':1,<|'|>b<|'|>:2}", "{'a':1,'b':2}" },
    { "call:f{a b:1,x-y:2,\xd0\xb6:3,$r:4}", "{'a b':1,'x-y':2,'\xd0\xb6':3,'$r':4}" },
    { "call:f{ a : [ 1 , <|'|>b<|'|> , { c : [ ] } ] , d : { } }",
      "{'a':[1,'b',{'c':[]}],'d':{}}" },
    { "call:f{a:<|'|>1<|'|>,b:<|'|>true<|'|>}", "{'a':'1','b':'true'}" },
    /* of a key that comes twice the last value counts */
    { "call:f{b:1,a:<|'|>x<|'|>,b:2.50}", "{'b':2.50,'a':'x'}" },
    { "call:f{a:{c:1,c:{d:1,d:[2]}},A:1,<|'|>a<|'|>:{e:1,e:123456789012345678901}}",
      "{'a':{'e':123456789012345678901},'A':1}" },
    { "call:f{a:[{b:1,b:2}],c:{c:1}}", "{'a':[{'b':2}],'c':{'c':1}}" },
    /* repairs: single quotes */
    { "call:f{a:`x`,b:` y\\d `}", "{'a':'x','b':' y\\\\d '}" },
    { "call:f{a:`x`<|'|>,b:[`y`]}", "{'a':'x','b':['y']}" },
    { "call:f{a:`it`s, \\`quoted\\`, fine`}", "{'a':'it`s, `quoted`, fine'}" },
    { "call:f{`a`:`x`}", "{'a':'x'}" },
    /* repairs: no closing <|"|> */
    { "call:f{a:<|'|>ls}", "{'a':'ls'}" },
    { "call:f{a:<|'|>ls -l }", "{'a':'ls -l '}" },
    { "call:f{a:<|'|>ls", "{'a':'ls'}" },
    { "call:f{p:<|'|>/tmp<|'|>,a:<|'|>ls}", "{'p':'/tmp','a':'ls'}" },
    { "call:f{a:{b:[<|'|>x] } }", "{'a':{'b':['x']}}" },
    { "call:f{a:{b:[<|'|>x}", "{'a':{'b':['x']}}" },
    /* repairs: no closing brackets */
    { "call:f{a:1", "{'a':1}" },
    { "call:f{a:[1,{b:<|'|>x<|'|>", "{'a':[1,{'b':'x'}]}" },
    { "call:f{a:1,", "{'a':1}" },
    { "call:f{", "{}" },
    /* repairs: bare text where the schema wants a string */
    { "call:f{s:\n\n# Title, `x` 'y'", "{'s':'\\n\\n# Title, `x` \\'y\\''}" },
    { "call:f{s:hello, world,n:3}", "{'s':'hello, world','n':3}" },
    { "call:f{s:true story,m:3 apples,u:x}", "{'s':'true story','m':'3 apples','u':'x'}" },
    { "call:f{s:`open, n : 5}", "{'s':'`open','n':5}" },
    { "call:f{n:1,s:a {b} c}", "{'n':1,'s':'a {b} c'}" },
    { "call:f{s:12}", "{'s':12}" },
    { "call:f{s:2e2222223}", "{'s':'2e2222223'}" }, /* no number that a reader of JSON takes */
    /* beyond repair */
    { "call:f{n:hello}", NULL },
    { "call:g{s:hello}", NULL },
    { "call:f{a:01}", NULL },
    { "call:f{a:1.}", NULL },
    { "call:f{a:+1}", NULL },
    { "call:f{a:[-2.5e+2222223]}", NULL },
    { "call:f{a:1230.5e306}", NULL },
    { "call:f{a:1}}", NULL },
    { "call:f{a:1} x", NULL },
    { "call:f{a:[1}}", NULL },
    { "call:f{a}", NULL },
    { "call:f{:1}", NULL },
    { "call:f{a:'C:\\users'}", NULL },
    { "call:f{a:<|'|>one,b:<|'|>two<|'|>}", NULL },
    { "call:f", NULL },
    { "call:{}", NULL },
    { "f{a:1}", NULL },
    { "", NULL },
};

static struct json *parse_json(const char *text, struct arena *a)
{
    char *s = quotes(text);
    struct json *j = NULL;
    CHECK(json_parse(&j, str_of(s), a, NULL) == BZ_OK);
    mem_free(s);
    return j;
}

/* The transcript must not depend on the cuts: two pieces cut at every byte, single bytes, and some
 * random cuts. */
static void check_cuts(struct str text, const struct json *tools, int how, const char *want)
{
    size_t *cuts = mem_alloc(text.n + 1, sizeof *cuts);
    struct rng rng = { text.n };
    for (size_t i = 0; i <= text.n; i++) {
        char *got = parse(text, tools, how, &i, 1);
        CHECK_STR(got, want);
        mem_free(got);
    }
    for (int round = 0; round < 8; round++) {
        size_t n = 0;
        for (size_t i = 0; i < text.n; i++)
            if (round == 0 || rng_below(&rng, 4) == 0) cuts[n++] = i;
        char *got = parse(text, tools, how, cuts, n);
        CHECK_STR(got, want);
        mem_free(got);
    }
    mem_free(cuts);
}

static void check_states(void)
{
    for (size_t i = 0; i < sizeof states / sizeof states[0]; i++) {
        char *text = quotes(states[i].text), *want = quotes(states[i].want);
        char *got = parse(str_of(text), NULL, states[i].how, NULL, 0);
        if (!CHECK_STR(got, want)) fprintf(stderr, "    %s\n", states[i].what);
        check_cuts(str_of(text), NULL, states[i].how, want);
        mem_free(got);
        mem_free(want);
        mem_free(text);
    }
}

static void check_calls(void)
{
    struct arena a = { 0 };
    const struct json *tools = parse_json(string_tool, &a);
    for (size_t i = 0; i < sizeof calls / sizeof calls[0]; i++) {
        struct buf text = { 0 }, want = { 0 };
        buf_printf(&text, "a <|tool_call>%s<tool_call|> b", calls[i].body);
        if (calls[i].args) buf_printf(&want, "C(a)T(f %s)C(b)", calls[i].args);
        else buf_printf(&want, "C(a<|tool_call>%s<tool_call|>b)", calls[i].body);
        char *t = quotes(text.data), *w = quotes(want.data);
        char *got = parse(str_of(t), tools, 0, NULL, 0);
        CHECK_STR(got, w);
        check_cuts(str_of(t), tools, 0, w);
        mem_free(got);
        mem_free(t);
        mem_free(w);
        buf_free(&text);
        buf_free(&want);
    }
    arena_free(&a);
}

/* Random strings over an alphabet of tags, halves of tags, space and letters. */
static void check_random_cuts(void)
{
    static const char *const words[] = {
        "<|channel>",
        "<channel|>",
        "<|tool_call>",
        "<tool_call|>",
        "<|tool_response>",
        "thought",
        "\n",
        " ",
        "<",
        "<|",
        "<|tool_",
        "<chan",
        "call:f{",
        "a:",
        "<|\"|>",
        "}",
        "x",
        "1",
        ",",
        "\xc3",
        "\xa9",
        "\xe2\x80\x83",
        "\xf0\x9f",
        "'",
    };
    struct rng rng = { 7 };
    struct arena a = { 0 };
    const struct json *tools = parse_json(string_tool, &a);
    for (int round = 0; round < 300; round++) {
        struct buf text = { 0 };
        for (uint32_t n = rng_below(&rng, 14); n > 0; n--)
            buf_puts(&text, words[rng_below(&rng, sizeof words / sizeof words[0])]);
        buf_puts(&text, "");
        int how = (int)rng_below(&rng, 4);
        char *want = parse(buf_str(&text), tools, how, NULL, 0);
        check_cuts(buf_str(&text), tools, how, want);
        mem_free(want);
        buf_free(&text);
    }
    arena_free(&a);
}

/* Rendering a call and reading it back must give the same arguments: then rendering again gives the
 * same text. */
static void check_round_trip(const char *name, const char *args, const char *want_args)
{
    struct buf message = { 0 }, want = { 0 };
    struct marked prompt = { 0 };
    struct arena a = { 0 };
    buf_printf(&message,
               "[{'role':'assistant','tool_calls':[{'function':{'name':'%s','arguments':%s}"
               "},{'function':{'name':'%s','arguments':{}}}]}]",
               name, args, name);
    struct json *j = parse_json(message.data, &a);
    struct chat_options opt = { .no_generation_prompt = true };
    CHECK(chat_render(&prompt, j, NULL, opt, NULL, NULL) == BZ_OK);
    const char *turn = "<bos><|turn>model\n";
    CHECK(str_starts(buf_str(&prompt.text), turn));
    char *got = parse(str_of(prompt.text.data + strlen(turn)), NULL, 0, NULL, 0);
    char *sorted = quotes(want_args);
    buf_printf(&want, "T(%s %s)T(%s {})", name, sorted, name);
    CHECK_STR(got, want.data);
    mem_free(got);
    mem_free(sorted);
    arena_free(&a);
    buf_free(&message);
    marked_free(&prompt);
    buf_free(&want);
}

static void check_hold_back(void)
{
    static const struct {
        const char *piece, *so_far; /* the transcript after this piece, still open */
    } steps[] = {
        { "Hello", "C(Hello" },
        { ",", "C(Hello," },
        { " ", "C(Hello," }, /* held: a tag may follow */
        { "you", "C(Hello, you" },
        { " <", "C(Hello, you" },
        { "b", "C(Hello, you <b" },
        { "<|tool", "C(Hello, you <b" },
        { "s", "C(Hello, you <b<|tools" },
        { "\xc3", "C(Hello, you <b<|tools" },
        { "\xa9", "C(Hello, you <b<|tools\xc3\xa9" },
        { " <|channel>thought", "C(Hello, you <b<|tools\xc3\xa9" },
        { "\nw", "C(Hello, you <b<|tools\xc3\xa9)R(w" },
        { "\n", "C(Hello, you <b<|tools\xc3\xa9)R(w" },
        { "<channel|>", "C(Hello, you <b<|tools\xc3\xa9)R(w" },
        { "z", "C(Hello, you <b<|tools\xc3\xa9)R(w)C(z" },
    };
    struct transcript t = { .last = -1 };
    struct chat_parser *p = NULL;
    CHECK(!chat_parser_open(&p, (struct chat_parser_options) { .thinking = true },
                            (struct chat_sink) { &t, on_event }, NULL));
    for (size_t i = 0; i < sizeof steps / sizeof steps[0]; i++) {
        CHECK(chat_parser_feed(p, str_of(steps[i].piece), NULL) == BZ_OK);
        CHECK_STR(t.text.data, steps[i].so_far);
    }
    CHECK(chat_parser_end(p, NULL) == BZ_OK);
    CHECK(chat_parser_feed(p, str_of("x"), NULL) == BZ_ERR_ARGUMENT);
    chat_parser_close(p);
    buf_free(&t.text);
}

static void check_memory(bool constrained)
{
    static const char text[] = "a <|channel>thought\nb<channel|>c<|tool_call>call:f{a:\"x\",b:'y'}"
                               "<tool_call|>d<|tool_call>call:";
    struct chat_parser_options opt = { .thinking = true, .constrained = constrained };
    int64_t live = mem_live();
    enum bz_status st = BZ_ERR_MEMORY;
    uint64_t k = 0;
    while (st == BZ_ERR_MEMORY && k < 1000) {
        struct transcript t = { .last = -1 };
        struct chat_parser *p = NULL;
        buf_printf(&t.text, "%1000s", ""); /* so that the sink itself need not allocate */
        mem_fail_at(++k);
        st = chat_parser_open(&p, opt, (struct chat_sink) { &t, on_event }, NULL);
        for (const char *at = text; *at && !st;) { /* each piece ends where a tag may end */
            size_t n = strcspn(at, ">") + 1;
            if (n > strlen(at)) n = strlen(at);
            st = chat_parser_feed(p, (struct str) { at, n }, NULL);
            at += n;
        }
        if (!st) st = chat_parser_end(p, NULL);
        mem_fail_at(0);
        chat_parser_close(p);
        buf_free(&t.text);
        CHECK(mem_live() == live);
    }
    CHECK(st == BZ_OK);
    CHECK(k > (constrained ? 2 : 4));
}

/* ---- constrained answers ---- */

/* B(name): a call begins. A(...): its arguments, piece by piece. */
static void on_piece(void *ctx, enum chat_event e, struct str name, struct str text)
{
    static const char marks[] = {
        [CHAT_CONTENT] = 'C',    [CHAT_REASONING] = 'R',      [CHAT_TOOL_CALL] = 'T',
        [CHAT_CALL_BEGIN] = 'B', [CHAT_CALL_ARGUMENTS] = 'A',
    };
    buf_printf(ctx, "%c(%.*s%.*s)", marks[e], STR_ARG(name), STR_ARG(text));
}

/* Tokens, ~ between them. */
static const struct {
    const char *tokens, *want;
} constrained[] = {
    { "{'a':~1}", "C({'a':)C(1})" },
    { " ~x ", "C( x)C( )" },
    { "<|channel>~thought\n~why~<channel|>~ ~x", "R(why)C( x)" },
    { "<|channel>~thought~<channel|>~x", "C(x)" },
    { "<|tool_call>~call:~f~{~}~<tool_call|>", "B(f)A({)A(})" },
    { "<|tool_call>~call:f{a:~<|'|>~x'y~\n~<|'|>~,b:~[1,{c d:~null}]~}~<tool_call|>",
      "B(f)A({'a':)A(')A(x\\'y)A(\\n)A(')A(,'b':)A([1,{'c d':)A(null}])A(})" },
    { "<|tool_call>~call:f{~<|'|>~a:b~<|'|>~:-1.5}~<tool_call|>",
      "B(f)A({)A(')A(a:b)A(')A(:-1.5})" },
    { "Hi. ~<|tool_call>~call:f{}~<tool_call|>~<|tool_call>~call:g{}~<tool_call|>",
      "C(Hi.)B(f)A({})B(g)A({})" },
    /* text that spells a tag */
    { "<|chan~nel>~<|tool_call> ~x", "C(<|chan)C(nel>)C(<|tool_call>)C( x)" },
    { "<|tool_call>~call:f{a:~<|'|>~<tool~_call|~>~<|'|>~}~<tool_call|>",
      "B(f)A({'a':)A(')A(<tool)A(_call|)A(>)A(')A(})" },
    /* a tag that means nothing here */
    { "x~<tool_call|>~y", "C(x)C(<tool_call|>)C(y)" },
    /* cut short */
    { "<|tool_call>~call:f", "C(<|tool_call>)C(call:f)" },
    { "<|tool_call>~call:f{a:~<|'|>~x", "B(f)A({'a':)A(')A(x)" },
};

static char *parse_tokens(const char *tokens)
{
    struct chat_parser_options opt = { .thinking = true, .constrained = true };
    struct chat_parser *p = NULL;
    struct buf out = { 0 };
    char *text = quotes(tokens);
    CHECK(chat_parser_open(&p, opt, (struct chat_sink) { &out, on_piece }, NULL) == BZ_OK);
    for (char *at = text; *at;) {
        size_t n = strcspn(at, "~");
        CHECK(chat_parser_feed(p, (struct str) { at, n }, NULL) == BZ_OK);
        at += n + (at[n] == '~');
    }
    CHECK(chat_parser_end(p, NULL) == BZ_OK);
    chat_parser_close(p);
    mem_free(text);
    return out.data;
}

static void check_constrained(void)
{
    for (size_t i = 0; i < sizeof constrained / sizeof *constrained; i++) {
        char *got = parse_tokens(constrained[i].tokens), *want = quotes(constrained[i].want);
        CHECK_STR(got, want);
        mem_free(got);
        mem_free(want);
    }
}

int main(void)
{
    TEST("each state reports what it should, however the text is cut") check_states();

    TEST("calls are read and repaired, and the unreadable come back as content") check_calls();

    TEST("calls of a constrained answer leave piece by piece, and text may spell tags")
    check_constrained();
    TEST("random text gives the same transcript however it is cut") check_random_cuts();

    TEST("only what is undecided is held back") check_hold_back();

    TEST("without the closing tag a number is not trusted, but a string is closed")
    {
        char *got = parse(str_of("<|tool_call>call:f{n:1"), NULL, 0, NULL, 0);
        CHECK_STR(got, "C(<|tool_call>call:f{n:1)");
        mem_free(got);
        got = parse(str_of("<|tool_call>call:f{s:<|\"|>ls"), NULL, 0, NULL, 0);
        CHECK_STR(got, "T(f {\"s\":\"ls\"})");
        mem_free(got);
    }

    TEST("nesting past the limit is content, not a crash")
    {
        for (int depth = 98; depth < 102; depth++) {
            struct buf b = { 0 };
            buf_puts(&b, "<|tool_call>call:f{a:");
            for (int i = 1; i < depth; i++) buf_putc(&b, '[');
            for (int i = 1; i < depth; i++) buf_putc(&b, ']');
            buf_puts(&b, "}<tool_call|>");
            char *got = parse(buf_str(&b), NULL, 0, NULL, 0);
            CHECK(got[0] == (depth <= 100 ? 'T' : 'C'));
            mem_free(got);
            buf_free(&b);
        }
    }

    TEST("a rendered call reads back as the same call")
    {
        check_round_trip("get_temp", "{'town':'Oslo'}", "{'town':'Oslo'}");
        check_round_trip("f", "{}", "{}");
        check_round_trip("f", "{'b':1,'A':[true,null,{'z':2.5,'y':'q'}],'c d':{}}",
                         "{'A':[true,null,{'y':'q','z':2.5}],'b':1,'c d':{}}");
        check_round_trip("f", "{'s':'a \\'quoted\\' {x:[1,2]}, <|tool> \\n\\t\\\\ \\u65e5'}",
                         "{'s':'a \\'quoted\\' {x:[1,2]}, <|tool> \\n\\t\\\\ \xe6\x97\xa5'}");
        check_round_trip("f",
                         "{'v':[0,-1,9223372036854775807,123456789012345678901,1.0,1e20,1e-7]}",
                         "{'v':[0,-1,9223372036854775807,123456789012345678901,1.0,1e+20,1e-07]}");
        check_round_trip("ns.tool-2", "{'k':'','l':[[],[[]]]}", "{'k':'','l':[[],[[]]]}");
    }

    TEST("a failed allocation anywhere is reported and nothing leaks")
    {
        check_memory(false);
        check_memory(true);
    }

    return check_done();
}
