/* test_calls.c - calls of tools, written by a guide and read by the chat parser: what comes back
 * is a tool's name and JSON that keeps to its schema. */
#include "guide_fixture.h"
#include "text/chat.h"

/* ---- answers, read back ---- */

struct answer {
    struct buf content, reasoning;
    struct buf names, calls; /* a name and its arguments, each behind a space */
    size_t n_calls;
};

static void on_event(void *ctx, enum chat_event e, struct str name, struct str text)
{
    struct answer *a = ctx;
    bool begins = e == CHAT_CALL_BEGIN || e == CHAT_TOOL_CALL;
    if (e == CHAT_CONTENT) buf_put_str(&a->content, text);
    if (e == CHAT_REASONING) buf_put_str(&a->reasoning, text);
    if (begins) buf_printf(&a->calls, " %.*s ", STR_ARG(name));
    if (e == CHAT_TOOL_CALL || e == CHAT_CALL_ARGUMENTS) buf_put_str(&a->calls, text);
    a->n_calls += begins;
}

static void answer_free(struct answer *a)
{
    buf_free(&a->content);
    buf_free(&a->reasoning);
    buf_free(&a->calls);
}

/* By its tokens, as a constrained answer is read; else by its text, as any other one. */
static struct answer read_answer(const struct ids *path, bool by_tokens)
{
    struct answer a = { 0 };
    struct chat_parser *p = NULL;
    struct chat_parser_options o = { .thinking = true, .constrained = by_tokens };
    struct buf text = text_of(path);
    buf_put(&a.content, "", 0);
    buf_put(&a.calls, "", 0);
    CHECK(chat_parser_open(&p, o, (struct chat_sink) { &a, on_event }, NULL) == BZ_OK);
    struct detok d = { 0 };
    for (size_t i = 0; by_tokens && i < path->n; i++) {
        struct buf piece = { 0 };
        detok_feed(&d, t, path->data[i], true, &piece);
        CHECK(chat_parser_feed(p, buf_str(&piece), NULL) == BZ_OK);
        buf_free(&piece);
    }
    if (!by_tokens) CHECK(chat_parser_feed(p, buf_str(&text), NULL) == BZ_OK);
    CHECK(chat_parser_end(p, NULL) == BZ_OK);
    chat_parser_close(p);
    buf_free(&text);
    return a;
}

/* ---- one tool, and texts ---- */

#define Q "<|\"|>"

static const struct {
    const char *schema, *call, *json; /* json: NULL where the call may not be */
} texts[] = {
    { "{}", "{}", "{}" },
    { "{}", "{a:" Q "b" Q "}", "{\"a\":\"b\"}" },
    { "{}", "{a:" Q "say \"hi\"\\n\n\xf0\x9f\x98\x80" Q ",my key:[1,-2.5,true,null,{}]}",
      "{\"a\":\"say \\\"hi\\\"\\\\n\\n\xf0\x9f\x98\x80\",\"my key\":[1,-2.5,true,null,{}]}" },
    { "{}", "{" Q "a:b" Q ":1," Q Q ":2," Q "'c" Q ":3}", "{\"a:b\":1,\"\":2,\"'c\":3}" },
    { "{}", "{" Q "a" Q ":1}", NULL }, /* a key that is bare is not quoted */
    { "{}", "{a b :1}", NULL },
    { "{}", "{ a:1}", NULL },
    { "{}", "{a:1,a:2}", NULL },
    { "{}", "{\"a\":1}", NULL },
    { "{}", "{a:\"b\"}", NULL },
    { "{}", "{a: 1}", NULL },
    { "{}", "{a:1e5}", NULL },
    { "{}", "{a:1}}", NULL },
    { "{}", "[1]", NULL },
    { "{\"properties\":{\"a\":{\"enum\":[\"x\",\"a{b\",3]}},\"required\":[\"a\"]}",
      "{a:" Q "a{b" Q "}", "{\"a\":\"a{b\"}" },
    { "{\"properties\":{\"a\":{\"enum\":[\"x\",\"a{b\",3]}},\"required\":[\"a\"]}", "{a:3}",
      "{\"a\":3}" },
    { "{\"properties\":{\"a\":{\"enum\":[\"x\",\"a{b\",3]}},\"required\":[\"a\"]}", "{a:" Q "y",
      NULL },
    { "{\"properties\":{\"a\":{\"enum\":[\"x\",\"a{b\",3]}},\"required\":[\"a\"]}", "{}", NULL },
    { "{\"properties\":{\"a\":{\"pattern\":\"^[0-9]+\\n?$\",\"type\":\"string\"}}}",
      "{a:" Q "12\n" Q "}", "{\"a\":\"12\\n\"}" },
    { "{\"properties\":{\"a\":{\"pattern\":\"^[0-9]+$\",\"type\":\"string\"}}}", "{a:" Q "1x" Q,
      NULL },
    { "{\"properties\":{\"a\":{\"uniqueItems\":true,\"type\":\"array\"}}}",
      "{a:[{b:" Q "\"" Q "},{b:" Q "'" Q "}," Q "x" Q "]}",
      "{\"a\":[{\"b\":\"\\\"\"},{\"b\":\"'\"},\"x\"]}" },
    { "{\"properties\":{\"a\":{\"uniqueItems\":true,\"type\":\"array\"}}}",
      "{a:[{b:" Q "\"" Q "},{b:" Q "\"" Q "}]}", NULL },
    { "{\"properties\":{\"a\":{\"uniqueItems\":true,\"type\":\"array\"}}}",
      "{a:[" Q "x" Q "," Q "x" Q "]}", NULL },
    { "{\"properties\":{\"n\":{\"type\":\"integer\",\"maximum\":12}}}", "{n:12}", "{\"n\":12}" },
    { "{\"properties\":{\"n\":{\"type\":\"integer\",\"maximum\":12}}}", "{n:13}", NULL },
    { "{\"properties\":{\"n\":{\"type\":\"integer\",\"maximum\":12}}}", "{n:1.0}", NULL },
    { "{\"properties\":{\"v\":{},\"n\":{\"$ref\":\"#\"}},\"additionalProperties\":false}",
      "{v:1,n:{n:{v:" Q Q "}}}", "{\"v\":1,\"n\":{\"n\":{\"v\":\"\"}}}" },
    { "{\"properties\":{\"v\":{},\"n\":{\"$ref\":\"#\"}},\"additionalProperties\":false}",
      "{v:1,n:{x:1}}", NULL },
    { "{\"patternProperties\":{\"^[a-z]:$\":{\"type\":\"boolean\"}},"
      "\"additionalProperties\":false}",
      "{" Q "a:" Q ":true}", "{\"a:\":true}" },
    { "{\"patternProperties\":{\"^[a-z]:$\":{\"type\":\"boolean\"}},"
      "\"additionalProperties\":false}",
      "{a:true}", NULL },
};

static char *one_tool(const char *schema, const char *more)
{
    struct buf how = { 0 };
    buf_printf(&how,
               "{\"tools\":[{\"name\":\"f\",\"strict\":true,\"parameters\":%s}],"
               "\"call\":\"required\",\"one_call\":true%s}",
               schema, more);
    buf_put(&how, "", 0);
    return how.data;
}

/* How many of these tokens may come, one behind the other; *whole: then the answer may end. */
static size_t count_taken(struct constraint *c, const struct ids *path, bool *whole)
{
    struct guide *g = NULL;
    struct bz_err err = { "" };
    size_t n = 0;
    CHECK(guide_open(&g, c, &err) == BZ_OK);
    while (n < path->n && guide_advance(g, path->data[n], &err) == BZ_OK) n++;
    uint32_t *mask = mask_at(g);
    *whole = n == path->n && has_end(mask);
    free(mask);
    guide_close(g);
    return n;
}

static void check_texts(void)
{
    for (size_t i = 0; i < sizeof texts / sizeof *texts; i++) {
        struct constraint *c = NULL;
        struct bz_err err = { "" };
        struct ids path = { 0 };
        struct buf text = { 0 };
        bool whole;
        char *how = one_tool(texts[i].schema, "");
        CHECK_MSG(open_constraint(&c, how, &err) == BZ_OK, "%s: %s", how, err.text);
        buf_printf(&text, "<|tool_call>call:f%s<tool_call|>", texts[i].call);
        put_text(&path, text.data);
        size_t n = count_taken(c, &path, &whole);
        CHECK_MSG(whole == (texts[i].json != NULL), "%s %s: %zu of %zu tokens were taken",
                  texts[i].schema, texts[i].call, n, path.n);
        struct answer a = read_answer(&path, true), b = read_answer(&path, false);
        if (texts[i].json) {
            CHECK_STR(a.calls.data + 3, texts[i].json);
            CHECK_STR(b.calls.data + 3, texts[i].json);
            CHECK(a.n_calls == 1 && !a.content.n);
        }
        answer_free(&a);
        answer_free(&b);
        buf_free(&text);
        ids_free(&path);
        constraint_close(c);
        mem_free(how);
    }
}

/* A string may spell a tag with other tokens than the tag's. */
static void check_spelled_tags(void)
{
    static const char *const spelled[] = { Q, "<tool_call|>", "<|tool_call>", "<channel|>" };
    const struct tokenize_options plain = { .no_bos = true, .plain = true };
    char *how = one_tool("{}", "");
    struct constraint *c = NULL;
    CHECK(open_constraint(&c, how, NULL) == BZ_OK);
    for (size_t i = 0; i < sizeof spelled / sizeof *spelled; i++) {
        struct ids path = { 0 };
        struct buf want = { 0 };
        bool whole;
        put_text(&path, "<|tool_call>call:f{a:" Q);
        CHECK(tokenizer_encode(t, str_of(spelled[i]), plain, &path, NULL) == BZ_OK);
        put_text(&path, Q "}<tool_call|>");
        count_taken(c, &path, &whole);
        CHECK_MSG(whole, "%s in a string was not taken", spelled[i]);
        struct answer a = read_answer(&path, true);
        buf_puts(&want, " f {\"a\":");
        json_put_string(&want, str_of(spelled[i]));
        buf_putc(&want, '}');
        CHECK_STR(a.calls.data, want.data);
        CHECK(!a.content.n);
        answer_free(&a);
        buf_free(&want);
        ids_free(&path);
    }
    constraint_close(c);
    mem_free(how);
}

/* ---- walks ---- */

#define TOOL(name, schema) "{\"name\":\"" name "\",\"strict\":true,\"parameters\":" schema "}"

/* Schemas of which each becomes the arguments of a tool. */
static const char *const schemas[] = {
    "{\"type\":\"object\",\"properties\":{\"town\":{\"type\":\"string\"},\"unit\":{\"enum\":[\"c\","
    "\"f\"]}},\"required\":[\"town\"],\"additionalProperties\":false}",
    "{}",
    "{\"properties\":{\"n\":{\"type\":\"integer\",\"minimum\":-3,\"maximum\":120},\"x\":{\"type\":"
    "\"number\",\"multipleOf\":0.5}},\"required\":[\"n\",\"x\"],\"additionalProperties\":false}",
    "{\"properties\":{\"rows\":{\"type\":\"array\",\"minItems\":1,\"maxItems\":4,\"items\":{"
    "\"type\":\"object\",\"properties\":{\"id\":{\"type\":\"integer\"},\"tags\":{\"type\":"
    "\"array\",\"items\":{\"type\":\"string\",\"maxLength\":4}}},\"required\":[\"id\"],"
    "\"additionalProperties\":false}}},\"required\":[\"rows\"],\"additionalProperties\":false}",
    "{\"properties\":{\"day\":{\"type\":\"string\",\"format\":\"date\"},\"code\":{\"type\":"
    "\"string\",\"pattern\":\"^[A-Z]{2}-\\\\d+$\"}},\"additionalProperties\":false}",
    "{\"type\":\"object\",\"additionalProperties\":{\"type\":[\"boolean\",\"null\"]}}",
    "{\"$ref\":\"#/$defs/n\",\"$defs\":{\"n\":{\"type\":\"object\",\"properties\":{\"v\":{\"type\":"
    "\"boolean\"},\"n\":{\"$ref\":\"#/$defs/n\"}},\"required\":[\"v\"],\"additionalProperties\":"
    "false}}}",
    "{\"anyOf\":[{\"properties\":{\"kind\":{\"const\":\"a\"},\"a\":{\"type\":\"string\"}},"
    "\"required\":[\"kind\",\"a\"],\"additionalProperties\":false},{\"properties\":{\"kind\":{"
    "\"const\":\"b\"},\"b\":{\"type\":\"integer\"}},\"required\":[\"kind\",\"b\"],"
    "\"additionalProperties\":false}]}",
    "{\"properties\":{\"odd: key\":{\"type\":\"boolean\"},\"my key\":{\"const\":{\"a b\":[\"\\\"\","
    "1.5,null]}},\"\":{\"type\":\"null\"}},\"required\":[\"odd: key\",\"my key\"],"
    "\"additionalProperties\":false}",
    "{\"properties\":{\"set\":{\"type\":\"array\",\"uniqueItems\":true,\"items\":{\"anyOf\":[{"
    "\"enum\":[\"x\","
    "\"y\\n\",1]},{\"type\":\"array\",\"items\":{\"type\":\"integer\"}}]},\"minItems\":2}},"
    "\"required\":[\"set\"],"
    "\"additionalProperties\":false}",
    "{\"propertyNames\":{\"pattern\":\"^[a-c:]{1,3}$\"},\"maxProperties\":3,\"minProperties\":1,"
    "\"additionalProperties\":{\"type\":\"integer\",\"minimum\":0}}",
    "{\"properties\":{\"text\":{\"type\":\"string\",\"minLength\":2,\"maxLength\":12}},"
    "\"patternProperties\":{\"^x\":{\"enum\":[true]}},\"additionalProperties\":false,"
    "\"required\":[\"text\"]}",
};
enum { N_SCHEMAS = sizeof schemas / sizeof *schemas };

static bool keeps_to(struct grammar *g, struct str text)
{
    struct matcher *m = NULL;
    size_t n = 0;
    bool ok = matcher_open(&m, g, NULL, NULL) == BZ_OK &&
              matcher_read(m, text, &n, NULL) == BZ_OK && n == text.n && matcher_may_end(m);
    matcher_close(m);
    return ok;
}

/* Text of a walk that ended: a call of f, whose arguments keep to the schema. */
static void check_answer(const struct ids *path, struct grammar *g, const char *schema)
{
    struct answer a = read_answer(path, true), b = read_answer(path, false);
    struct str json = { a.calls.data + 3, a.calls.n - 3 };
    CHECK_MSG(a.n_calls == 1 && str_starts(buf_str(&a.calls), " f ") && !a.content.n, "%s: %s",
              schema, a.calls.data);
    CHECK_MSG(keeps_to(g, json), "%s: %s", schema, a.calls.data);
    CHECK_STR(a.calls.data, b.calls.data);
    answer_free(&a);
    answer_free(&b);
}

static void check_walks(void)
{
    struct rng rng = { .state = 2 };
    struct grammar_options any = { .any_form = true };
    for (size_t i = 0; i < N_SCHEMAS; i++) {
        struct constraint *c = NULL;
        struct grammar *g = NULL;
        struct bz_err err = { "" };
        char *how = one_tool(schemas[i], "");
        int n_ended = 0;
        CHECK_MSG(open_constraint(&c, how, &err) == BZ_OK, "%s", err.text);
        CHECK(grammar_of_schema(&g, str_of(schemas[i]), &any, &err) == BZ_OK);
        for (int k = 0; c && k < 60; k++) {
            struct ids path = { 0 };
            bool ended = walk(c, &rng, &path, 300);
            n_ended += ended;
            if (ended) check_answer(&path, g, schemas[i]);
            ids_free(&path);
        }
        CHECK_MSG(n_ended >= 20, "%s: %d of 60 walks ended", schemas[i], n_ended);
        grammar_close(g);
        constraint_close(c);
        mem_free(how);
    }
}

static void check_masks(void)
{
    struct rng rng = { .state = 4 };
    for (size_t i = 0; i < N_SCHEMAS; i++) {
        char *how = one_tool(schemas[i], i % 2 ? ",\"thinking\":true" : "");
        check_walk(how, &rng, 24);
        mem_free(how);
    }
}

static void check_all_memory(void)
{
    struct rng rng = { .state = 6 };
    for (size_t i = 0; i < N_SCHEMAS; i++) {
        char *how = one_tool(schemas[i], "");
        struct constraint *c = NULL;
        struct ids path = { 0 };
        CHECK(open_constraint(&c, how, NULL) == BZ_OK);
        walk(c, &rng, &path, 12);
        constraint_close(c);
        check_memory(how, &path);
        ids_free(&path);
        mem_free(how);
    }
}

/* ---- several tools, and what else may come ---- */

#define TWO                                                                                        \
    "\"tools\":[" TOOL("get", "{\"additionalProperties\":false}") "," TOOL(                        \
        "get_temp", "{\"properties\":{\"t\":{\"type\":\"integer\"}},"                              \
                    "\"required\":[\"t\"],\"additionalProperties\":false}") ",{\"name\":\"any\"}]"
#define GET  "<|tool_call>call:get{}<tool_call|>"
#define TEMP "<|tool_call>call:get_temp{t:1}<tool_call|>"

static void check_tools(void)
{
    static const struct {
        const char *how, *text;
        bool may_be, whole;
    } cases[] = {
        { "{" TWO "}", "", true, true },
        { "{" TWO "}", "Hello.", true, true },
        { "{" TWO "}", GET, true, true },
        { "{" TWO "}", "Hello." GET TEMP, true, true },
        { "{" TWO "}", GET "Hello.", false, false },
        { "{" TWO "}", "<|tool_call>call:get_temp{}", false, false },
        { "{" TWO "}", "<|tool_call>call:got", false, false },
        { "{" TWO "}", "<|tool_call>call:any{x:[" Q "y" Q "]}<tool_call|>", true, true },
        { "{" TWO "}", "<tool_call|>", false, false },
        { "{" TWO "}", Q, false, false },
        { "{" TWO "}", "<|channel>", false, false },
        { "{" TWO ",\"one_call\":true}", GET, true, true },
        { "{" TWO ",\"one_call\":true}", GET GET, false, false },
        { "{" TWO ",\"call\":\"required\"}", "", true, false },
        { "{" TWO ",\"call\":\"required\"}", "H", false, false },
        { "{" TWO ",\"call\":\"required\"}", GET GET, true, true },
        { "{" TWO ",\"call\":\"none\"}", "Hello.", true, true },
        { "{" TWO ",\"call\":\"none\"}", "<|tool_call>", false, false },
        { "{" TWO ",\"thinking\":true}", "<|channel>x<channel|>" GET, true, true },
        { "{" TWO ",\"thinking\":true}", "<|channel>x<channel|>Hello." GET, true, true },
        { "{" TWO ",\"thinking\":true}", "<|channel>x" GET, false, false },
        { "{" TWO ",\"thinking\":true}", "Hello.<|channel>", false, false },
        { "{" TWO ",\"thinking\":true}", "<|channel>x<channel|><|channel>", false, false },
        { "{" TWO ",\"thinking\":true,\"call\":\"required\"}", "<|channel>x<channel|>" GET, true,
          true },
        { "{" TWO ",\"thinking\":true,\"call\":\"required\"}", GET, true, true },
        { "{" TWO ",\"thinking\":true,\"call\":\"required\"}", "x", false, false },
        { "{" TWO ",\"in_thought\":true,\"call\":\"required\"}", "x<channel|>" GET, true, true },
        { "{" TWO ",\"schema\":{\"const\":12}}", "12", true, true },
        { "{" TWO ",\"schema\":{\"const\":12}}", GET, true, true },
        { "{" TWO ",\"schema\":{\"const\":12}}", "", true, false },
        { "{" TWO ",\"schema\":{\"const\":12}}", "12" GET, false, false },
        { "{" TWO ",\"schema\":{\"const\":12}}", "1" GET, false, false },
        { "{" TWO ",\"schema\":{\"const\":12}}", "Hello", false, false },
        { "{" TWO ",\"schema\":{\"const\":12},\"thinking\":true}", "<|channel>x<channel|>12", true,
          true },
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct constraint *c = NULL;
        struct bz_err err = { "" };
        struct ids path = { 0 };
        bool whole;
        CHECK_MSG(open_constraint(&c, cases[i].how, &err) == BZ_OK, "%s", err.text);
        put_text(&path, cases[i].text);
        size_t n = count_taken(c, &path, &whole);
        CHECK_MSG((n == path.n) == cases[i].may_be && whole == cases[i].whole,
                  "%s: %s: %zu of %zu tokens%s", cases[i].how, cases[i].text, n, path.n,
                  whole ? ", whole" : "");
        ids_free(&path);
        constraint_close(c);
    }
}

static void check_many_walks(void)
{
    static const char *const hows[] = {
        "{" TWO "}",
        "{" TWO ",\"call\":\"required\",\"thinking\":true}",
        "{" TWO ",\"schema\":{\"type\":\"integer\"},\"thinking\":true,\"one_call\":true}",
    };
    struct rng rng = { .state = 8 };
    for (size_t i = 0; i < sizeof hows / sizeof *hows; i++) {
        struct constraint *c = NULL;
        int n_ended = 0;
        check_walk(hows[i], &rng, 16);
        CHECK(open_constraint(&c, hows[i], NULL) == BZ_OK);
        for (int k = 0; k < 40; k++) {
            struct ids path = { 0 };
            n_ended += walk(c, &rng, &path, 300);
            ids_free(&path);
        }
        CHECK_MSG(n_ended >= 10, "%s: %d of 40 walks ended", hows[i], n_ended);
        constraint_close(c);
    }
}

static void check_forced_call(void)
{
    struct constraint *c = NULL;
    struct guide *g = NULL;
    const int32_t *ids;
    struct ids forced = { 0 };
    size_t n = 0;
    char *how = one_tool("{\"properties\":{\"town\":{\"type\":\"string\"}},\"required\":[\"town\"],"
                         "\"additionalProperties\":false}",
                         "");
    CHECK(open_constraint(&c, how, NULL) == BZ_OK && guide_open(&g, c, NULL) == BZ_OK);
    CHECK(guide_forced(g, &ids, &n, NULL) == BZ_OK);
    for (size_t i = 0; i < n; i++) ids_push(&forced, ids[i]);
    struct buf text = text_of(&forced);
    CHECK_STR(text.data, "<|tool_call>call:f{town:" Q);
    buf_free(&text);
    ids_free(&forced);
    guide_close(g);
    constraint_close(c);
    mem_free(how);
}

static void check_refusals(void)
{
    static const struct {
        const char *how, *names;
    } cases[] = {
        { "{\"tools\":{}}", "list" },
        { "{\"tools\":[{}]}", "name" },
        { "{\"tools\":[{\"name\":\"\"}]}", "no name" },
        { "{\"tools\":[{\"name\":\"a{b\"}]}", "a{b" },
        { "{\"tools\":[{\"name\":\" a\"}]}", " a" },
        { "{\"tools\":[{\"name\":\"a\"},{\"name\":\"a\"}]}", "two tools" },
        { "{\"tools\":[{\"name\":\"a\",\"strict\":1}]}", "strict" },
        { "{\"tools\":[],\"call\":\"required\"}", "required" },
        { "{\"tools\":[{\"name\":\"a\"}],\"call\":\"must\"}", "call" },
        { "{\"tools\":[" TOOL("a", "{}") "," TOOL("b",
                                                  "{\"properties\":{\"x\":{\"type\":7}}}") "]}",
          "tool b: type at #/properties/x" },
        { "{\"tools\":[" TOOL("a", "{\"$id\":\"x\"}") "," TOOL("b", "{\"$ref\":\"x\"}") "]}",
          "tool b: $ref" },
        { "{\"tools\":[" TOOL("a", "{\"type\":\"string\"}") "]}", "tool a: no arguments" },
        { "{\"tools\":[" TOOL("a", "{\"unevaluatedProperties\":false}") "]}",
          "tool a: unevaluatedProperties" },
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct constraint *c = NULL;
        struct bz_err err = { "" };
        CHECK_MSG(open_constraint(&c, cases[i].how, &err) != BZ_OK && !c, "%s was taken",
                  cases[i].how);
        CHECK_MSG(strstr(err.text, cases[i].names), "%s: %s", cases[i].how, err.text);
    }
}

int main(void)
{
    int64_t live = mem_live();
    if (!open_vocab()) return 1;
    TEST("tools that cannot be called are refused by name") check_refusals();
    TEST("arguments keep to a schema, or do not, and are read back as JSON") check_texts();
    TEST("a string may spell a tag") check_spelled_tags();
    TEST("calls come where the format and the request have them") check_tools();
    TEST("what must come of a call is tokens, tags included") check_forced_call();
    TEST("a walk through masks that ends is a call whose arguments keep to the schema")
    check_walks();
    TEST("a walk through masks of text and calls comes to an end") check_many_walks();
    TEST("a mask allows what the guide takes, and what must come") check_masks();
    TEST("any failed allocation is told, and leaks nothing") check_all_memory();
    close_vocab();
    TEST("nothing is left allocated") CHECK(mem_live() == live);
    return check_done();
}
