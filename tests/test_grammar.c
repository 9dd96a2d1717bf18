/* test_grammar.c - masks of schemas, patterns and GBNF over a real vocabulary: a mask allows just
 * the tokens that the matcher takes, a walk through masks can always be finished and then keeps to
 * the grammar, and what cannot be kept is refused by name. */
#include "grammar/grammar.h"

#include <stdlib.h>

#include "base/json.h"
#include "base/rng.h"
#include "check.h"
#include "engine.h"

static bz_engine *engine; /* the vocabulary of tiny */
static struct vocab *vocab;

enum kind { SCHEMA, REGEX, GBNF };

static enum bz_status open_grammar(struct grammar **g, enum kind kind, const char *text,
                                   struct bz_err *err)
{
    if (kind == SCHEMA) return grammar_of_schema(g, str_of(text), NULL, err);
    return kind == REGEX ? grammar_of_regex(g, str_of(text), err)
                         : grammar_of_gbnf(g, str_of(text), err);
}

static bool allows(const uint32_t *mask, uint32_t token)
{
    return mask && (mask[token / 32] >> token % 32 & 1);
}

/* Of all tokens of the vocabulary, in this state. */
static uint32_t disagreements(struct matcher *m)
{
    uint32_t n = tokenizer_size(engine->tokenizer), bad = 0;
    uint32_t *mask = malloc(vocab_mask_words(vocab) * sizeof *mask);
    const uint32_t *now = matcher_mask(m);
    struct bz_err err;
    CHECK(mask && now);
    if (mask && now) memcpy(mask, now, vocab_mask_words(vocab) * sizeof *mask);
    for (uint32_t id = 0; mask && now && id < n; id++) {
        bool accepted = false, end = tokenizer_is_end(engine->tokenizer, (int32_t)id);
        if (end) accepted = matcher_may_end(m);
        else if (matcher_advance(m, (int32_t)id, &accepted, &err) == BZ_OK && accepted)
            matcher_rollback(m, 1);
        bad += accepted != allows(mask, id);
    }
    free(mask);
    return bad;
}

/* A random walk through masks of `most` tokens, or to the end of the text if that comes first. In
 * each state something may follow, or the text is over. Now and then a step is taken back and taken
 * again. */
static void walk(struct matcher *m, struct rng *rng, int most)
{
    struct bz_err err = { "" };
    uint32_t n = tokenizer_size(engine->tokenizer);
    for (int i = 0; i < most && !matcher_is_over(m); i++) {
        const uint32_t *mask = matcher_mask(m);
        uint32_t from = rng_below(rng, n), id = n;
        for (uint32_t k = 0; mask && k < n && id == n; k++)
            if (allows(mask, (from + k) % n) &&
                !tokenizer_is_end(engine->tokenizer, (int32_t)((from + k) % n)))
                id = (from + k) % n;
        if (!mask) matcher_status(m, &err);
        CHECK_MSG(id < n, "%s after \"%.*s\"", err.text, STR_ARG(matcher_text(m)));
        if (id == n) break;
        for (int turn = 0; turn < 2; turn++) {
            bool accepted = false;
            CHECK(matcher_advance(m, (int32_t)id, &accepted, &err) == BZ_OK && accepted);
            if (turn || rng_below(rng, 4)) break;
            matcher_rollback(m, 1);
        }
    }
}

/* The whole text, byte by byte, in a matcher without a vocabulary. */
static bool keeps_to(struct grammar *g, struct str text)
{
    struct matcher *m = NULL;
    struct bz_err err;
    size_t n = 0;
    bool ok = matcher_open(&m, g, NULL, &err) == BZ_OK &&
              matcher_read(m, text, &n, &err) == BZ_OK && n == text.n && matcher_may_end(m);
    matcher_close(m);
    return ok;
}

/* What was written is JSON, and the form that is checked takes it too: with white space. */
static void check_instance(const char *schema, struct str text)
{
    struct arena a = { 0 };
    struct json *json = NULL;
    struct bz_err err = { "" };
    struct buf loose = { 0 };
    struct grammar *g = NULL;
    struct grammar_options any = { .any_form = true };
    CHECK_MSG(json_parse(&json, text, &a, &err) == BZ_OK, "%.*s: %s", STR_ARG(text), err.text);
    CHECK(grammar_of_schema(&g, str_of(schema), &any, &err) == BZ_OK);
    buf_puts(&loose, "\t ");
    buf_put_str(&loose, text);
    buf_puts(&loose, "\r\n");
    CHECK_MSG(g && keeps_to(g, buf_str(&loose)), "%s: %.*s", schema, STR_ARG(text));
    grammar_close(g);
    buf_free(&loose);
    arena_free(&a);
}

static const struct {
    enum kind kind;
    const char *text;
} grammars[] = {
    { SCHEMA, "{\"type\":\"object\",\"properties\":{\"a\":{\"type\":\"integer\",\"minimum\":3,"
              "\"maximum\":120},\"b\":{\"enum\":[\"x\",\"yes\",null]}},\"required\":[\"a\",\"b\"],"
              "\"additionalProperties\":false}" },
    { SCHEMA, "{\"type\":\"array\",\"items\":{\"type\":\"string\",\"maxLength\":3},"
              "\"minItems\":1,\"maxItems\":3}" },
    { SCHEMA, "{\"$ref\":\"#/$defs/n\",\"$defs\":{\"n\":{\"type\":\"object\",\"properties\":{"
              "\"v\":{\"type\":\"boolean\"},\"n\":{\"$ref\":\"#/$defs/n\"}},"
              "\"required\":[\"v\"],\"additionalProperties\":false}}}" },
    { SCHEMA, "{\"type\":\"string\",\"format\":\"date\"}" },
    { SCHEMA, "{}" },
    /* names that need escapes, and one that begins another */
    { SCHEMA, "{\"properties\":{\"a\\\"\\\\\":{\"const\":1},\"\\u0001\\n\":{\"const\":2},"
              "\"a\":{\"const\":3}},\"minProperties\":1,\"additionalProperties\":false}" },
    /* few names are left, or none */
    { SCHEMA, "{\"type\":\"object\",\"propertyNames\":{\"enum\":[\"ab\",\"ac\",\"b\"]},"
              "\"minProperties\":3,\"additionalProperties\":{\"type\":\"null\"}}" },
    { SCHEMA, "{\"type\":\"object\",\"patternProperties\":{\"^x[0-9]$\":{\"type\":\"integer\"},"
              "\"5$\":{\"type\":\"string\"}},\"additionalProperties\":false,\"minProperties\":2}" },
    /* some member must be there: this one or that one */
    { SCHEMA, "{\"type\":\"object\",\"properties\":{\"a\":{\"type\":\"integer\"},"
              "\"b\":{\"type\":[\"integer\",\"string\"]},\"c\":{\"type\":\"integer\"}},"
              "\"additionalProperties\":false,"
              "\"not\":{\"additionalProperties\":{\"type\":\"integer\"}}}" },
    { SCHEMA,
      "{\"oneOf\":[{\"properties\":{\"a\":{},\"b\":{},\"d\":{},\"e\":{}},"
      "\"additionalProperties\":false},{\"properties\":{\"a\":{},\"c\":{},\"d\":{},\"e\":{}},"
      "\"additionalProperties\":false}],\"type\":\"object\"}" },
    { SCHEMA, "{\"type\":\"object\",\"properties\":{\"a\":{},\"b\":{},\"c\":{},\"d\":{}},"
              "\"dependentRequired\":{\"a\":[\"c\"],\"c\":[\"d\"],\"b\":[\"a\"]},"
              "\"additionalProperties\":false,\"minProperties\":2,\"maxProperties\":3}" },
    /* items run out */
    { SCHEMA, "{\"type\":\"array\",\"items\":{\"enum\":[\"a\",\"b\",1,1.5,null]},"
              "\"uniqueItems\":true,\"minItems\":2}" },
    { SCHEMA,
      "{\"type\":\"array\",\"items\":{\"type\":\"object\",\"properties\":{\"a\":{\"enum\":["
      "\"x\",\"xy\"]},\"b\":{\"type\":\"integer\",\"minimum\":8,\"maximum\":12}},\"required\":"
      "[\"a\"],\"additionalProperties\":false},\"uniqueItems\":true,\"minItems\":5}" },
    { SCHEMA, "{\"type\":\"array\",\"prefixItems\":[{\"type\":\"integer\"},{\"type\":\"string\"}],"
              "\"items\":false,\"contains\":{\"type\":\"string\"}}" },
    { SCHEMA, "{\"type\":\"array\",\"items\":{\"type\":[\"integer\",\"null\"]},\"maxItems\":4,"
              "\"contains\":{\"minimum\":5,\"type\":\"integer\"},\"minContains\":2,"
              "\"maxContains\":3}" },
    { SCHEMA, "{\"type\":\"integer\",\"minimum\":-200,\"maximum\":1500,\"multipleOf\":70}" },
    { REGEX, "[a-c]{2,5}-(caf\xc3\xa9|\\d{3})" },
    { REGEX, "(?!ab)[a-z]{3}|[\\ud800-\\udfff]x|[^\\x00-\\u07ff]" },
    { GBNF, "root ::= item (\", \" item)*\nitem ::= [a-z] [a-z]? | \"\xe2\x82\xac\" [0-9]" },
};

static void check_walks(void)
{
    struct rng rng = { .state = 7 };
    for (size_t i = 0; i < sizeof grammars / sizeof *grammars; i++) {
        struct grammar *g = NULL;
        struct bz_err err = { "" };
        CHECK_MSG(open_grammar(&g, grammars[i].kind, grammars[i].text, &err) == BZ_OK, "%s: %s",
                  grammars[i].text, err.text);
        for (int k = 0; g && k < 40; k++) {
            struct matcher *m = NULL;
            struct buf text = { 0 };
            CHECK(matcher_open(&m, g, vocab, &err) == BZ_OK);
            walk(m, &rng, k);
            buf_put_str(&text, matcher_text(m));
            CHECK_MSG(matcher_finish(m, &text, &err) == BZ_OK, "%s: %s after \"%.*s\"",
                      grammars[i].text, err.text, STR_ARG(buf_str(&text)));
            CHECK_MSG(keeps_to(g, buf_str(&text)), "%s: %.*s", grammars[i].text,
                      STR_ARG(buf_str(&text)));
            if (grammars[i].kind == SCHEMA) check_instance(grammars[i].text, buf_str(&text));
            buf_free(&text);
            matcher_close(m);
        }
        grammar_close(g);
    }
}

/* Texts that go one level deeper for as long as they may can always be finished. */
static void check_depth(void)
{
    static const struct {
        const char *schema, *deeper;
    } cases[] = {
        { "{}", "[" },
        { "{}", "{\"a\":" },
        { "{\"properties\":{\"c\":{\"type\":\"array\",\"items\":{\"$ref\":\"#\"}},"
          "\"d\":{\"type\":\"object\",\"required\":[\"e\"]}},\"required\":[\"c\",\"d\"]}",
          "{\"c\":[" },
        { "{\"type\":\"array\",\"prefixItems\":[{\"type\":\"null\"},{\"type\":\"array\","
          "\"minItems\":1,"
          "\"items\":{\"type\":\"array\"}},{\"$ref\":\"#\"}]}",
          "[null,[[]]," },
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct grammar *g = NULL;
        struct matcher *m = NULL;
        struct bz_err err = { "" };
        struct buf text = { 0 };
        struct str deeper = str_of(cases[i].deeper);
        size_t n = deeper.n, levels = 0;
        CHECK_MSG(open_grammar(&g, SCHEMA, cases[i].schema, &err) == BZ_OK, "%s", err.text);
        CHECK(g && matcher_open(&m, g, vocab, &err) == BZ_OK);
        for (; m && n == deeper.n; levels++) {
            CHECK_MSG(matcher_mask(m), "%s at level %zu", cases[i].schema, levels);
            CHECK(matcher_finish(m, &text, &err) == BZ_OK);
            CHECK(matcher_read(m, deeper, &n, &err) == BZ_OK);
        }
        CHECK_MSG(levels > 60 && levels < 140, "%s: %zu levels", cases[i].schema, levels);
        buf_free(&text);
        matcher_close(m);
        grammar_close(g);
    }
}

/* Along a few walks each state's mask is compared with what the matcher takes of every token. */
static void check_masks(void)
{
    struct rng rng = { .state = 11 };
    for (size_t i = 0; i < sizeof grammars / sizeof *grammars; i++) {
        struct grammar *g = NULL;
        struct bz_err err = { "" };
        CHECK(open_grammar(&g, grammars[i].kind, grammars[i].text, &err) == BZ_OK);
        struct matcher *m = NULL;
        CHECK(g && matcher_open(&m, g, vocab, &err) == BZ_OK);
        for (int k = 0; m && k < 30 && !matcher_is_over(m); k++) {
            CHECK_MSG(disagreements(m) == 0, "%s after \"%.*s\"", grammars[i].text,
                      STR_ARG(matcher_text(m)));
            walk(m, &rng, 1);
        }
        matcher_close(m);
        grammar_close(g);
    }
}

/* Compile it, and write a little. */
static enum bz_status use_grammar(size_t i, struct bz_err *err)
{
    struct grammar *g = NULL;
    struct matcher *m = NULL;
    struct buf text = { 0 };
    uint32_t n = tokenizer_size(engine->tokenizer);
    enum bz_status st = open_grammar(&g, grammars[i].kind, grammars[i].text, err);
    if (st == BZ_OK) st = matcher_open(&m, g, vocab, err);
    for (int k = 0; st == BZ_OK && k < 4 && !matcher_is_over(m); k++) {
        const uint32_t *mask = matcher_mask(m);
        uint32_t id = 0;
        bool accepted = false;
        while (mask && id < n && !allows(mask, id)) id++;
        if (mask && id == n) break;
        st = mask ? matcher_advance(m, (int32_t)id, &accepted, err) : matcher_status(m, err);
    }
    if (st == BZ_OK) st = matcher_forced(m, &text, err);
    if (st == BZ_OK) st = matcher_finish(m, &text, err);
    buf_free(&text);
    matcher_close(m);
    grammar_close(g);
    return st;
}

/* Every allocation on the way fails once. Some may: tables that only save time. */
static void check_memory(void)
{
    for (size_t i = 0; i < sizeof grammars / sizeof *grammars; i++) {
        bool failed = true;
        int64_t live = mem_live();
        for (uint64_t k = 1; failed; k += 1 + k / 40) {
            struct bz_err err = { "" };
            uint64_t before = mem_count();
            mem_fail_at(k);
            enum bz_status st = use_grammar(i, &err);
            mem_fail_at(0);
            failed = mem_count() - before >= k;
            CHECK_MSG(st == BZ_OK || (failed && st == BZ_ERR_MEMORY && err.text[0]),
                      "%s: allocation %u: status %d: %s", grammars[i].text, (unsigned)k, (int)st,
                      err.text);
            CHECK_MSG(mem_live() == live, "%s: allocation %u: %d leaked", grammars[i].text,
                      (unsigned)k, (int)(mem_live() - live));
        }
    }
}

static void check_texts(void)
{
    static const struct {
        enum kind kind;
        const char *grammar, *text;
        bool keeps;
    } cases[] = {
        { SCHEMA, "{\"type\":\"integer\",\"multipleOf\":3}", "21", true },
        { SCHEMA, "{\"type\":\"integer\",\"multipleOf\":3}", "22", false },
        { SCHEMA, "{\"type\":\"number\",\"exclusiveMaximum\":1.5}", "1.5", false },
        { SCHEMA, "{\"type\":\"number\",\"exclusiveMaximum\":1.5}", "1.25", true },
        { SCHEMA, "{\"type\":\"string\",\"minLength\":2}", "\"\xf0\x9f\x98\x80\"", false },
        { SCHEMA, "{\"not\":{\"type\":\"string\"}}", "\"a\"", false },
        { SCHEMA, "{\"not\":{\"type\":\"string\"}}", "[1]", true },
        { SCHEMA, "{\"oneOf\":[{\"minimum\":2},{\"maximum\":5}],\"type\":\"integer\"}", "3",
          false },
        { SCHEMA, "{\"oneOf\":[{\"minimum\":2},{\"maximum\":5}],\"type\":\"integer\"}", "6", true },
        { REGEX, "^a+$", "aaa", true },
        { REGEX, "^a+$", "aab", false },
        { GBNF, "root ::= \"a\" root \"b\" | \"\"", "aabb", true },
        { GBNF, "root ::= \"a\" root \"b\" | \"\"", "aab", false },
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct grammar *g = NULL;
        struct bz_err err = { "" };
        CHECK_MSG(open_grammar(&g, cases[i].kind, cases[i].grammar, &err) == BZ_OK, "%s", err.text);
        CHECK_MSG(g && keeps_to(g, str_of(cases[i].text)) == cases[i].keeps, "%s: %s",
                  cases[i].grammar, cases[i].text);
        grammar_close(g);
    }
}

static void check_refusals(void)
{
    static const struct {
        enum kind kind;
        const char *text, *names;
    } cases[] = {
        { SCHEMA, "{\"type\":7}", "type" },
        { SCHEMA, "{\"properties\":{\"a\":{\"$ref\":\"#/nope\"}}}", "#/nope" },
        { SCHEMA, "{\"unevaluatedProperties\":false}", "unevaluatedProperties" },
        { SCHEMA, "{", "" },
        { REGEX, "(a", "" },
        { REGEX, "(a)\\1", "back reference" },
        { GBNF, "root ::= missing", "missing" },
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct grammar *g = NULL;
        struct bz_err err = { "" };
        enum bz_status st = open_grammar(&g, cases[i].kind, cases[i].text, &err);
        CHECK_MSG(st != BZ_OK && !g, "%s was taken", cases[i].text);
        CHECK_MSG(err.text[0] && strstr(err.text, cases[i].names), "%s: %s", cases[i].text,
                  err.text);
        if (st == BZ_OK) grammar_close(g);
    }
}

int main(void)
{
    struct bz_err err = { "" };
    int64_t live = mem_live();
    struct bz_engine_options o = { .vocab_only = true };
    if (bz_engine_open(&engine, "models/tiny.q8_0.gguf", &o, &err) ||
        vocab_open(&vocab, engine->tokenizer, &err)) {
        fprintf(stderr, "%s\n", err.text);
        return 1;
    }
    TEST("texts keep to a grammar, or do not") check_texts();
    TEST("what cannot be kept is refused by name") check_refusals();
    TEST("a walk through masks can always go on to an end, and keeps to the grammar") check_walks();
    TEST("what nests as deeply as it may can be closed") check_depth();
    TEST("a mask allows exactly the tokens that the matcher takes") check_masks();
    TEST("any allocation may fail") check_memory();
    vocab_close(vocab);
    bz_engine_close(engine);
    TEST("nothing is left allocated") CHECK(mem_live() == live);
    return check_done();
}
