/* test_grammar.c - masks of schemas, patterns and GBNF over a real vocabulary: a mask allows just
 * the tokens that the matcher takes, a walk through masks that ends is a text that keeps to the
 * grammar, and what cannot be kept is refused by name. */
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

/* A random walk through masks, at most `most` tokens long; its text is appended to *text. Is the
 * text whole at its end? Now and then a step is taken back and taken again. */
static bool walk(struct matcher *m, struct rng *rng, struct buf *text, int most)
{
    struct bz_err err;
    struct detok detok = { 0 };
    uint32_t n = tokenizer_size(engine->tokenizer);
    for (int i = 0; i < most && !matcher_is_over(m); i++) {
        const uint32_t *mask = matcher_mask(m);
        uint32_t from = rng_below(rng, n), id = n;
        for (uint32_t k = 0; mask && k < n && id == n; k++)
            if (allows(mask, (from + k) % n) &&
                !tokenizer_is_end(engine->tokenizer, (int32_t)((from + k) % n)))
                id = (from + k) % n;
        if (id == n) break; /* nothing but the end may come */
        for (int turn = 0; turn < 2; turn++) {
            bool accepted = false;
            CHECK(matcher_advance(m, (int32_t)id, &accepted, &err) == BZ_OK && accepted);
            if (turn || rng_below(rng, 4)) break;
            matcher_rollback(m, 1);
        }
        detok_feed(&detok, engine->tokenizer, (int32_t)id, true, text);
    }
    detok_end(&detok, text);
    return matcher_may_end(m);
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

/* ends: a walk through masks always comes to an end. It does not yet where members have names: a
 * mask may begin a spelling of a name (\\u00..) that no token finishes. */
static const struct {
    enum kind kind;
    bool ends;
    const char *text;
} grammars[] = {
    { SCHEMA, false,
      "{\"type\":\"object\",\"properties\":{\"a\":{\"type\":\"integer\",\"minimum\":3,"
      "\"maximum\":120},\"b\":{\"enum\":[\"x\",\"yes\",null]}},\"required\":[\"a\",\"b\"],"
      "\"additionalProperties\":false}" },
    { SCHEMA, true,
      "{\"type\":\"array\",\"items\":{\"type\":\"string\",\"maxLength\":3},"
      "\"minItems\":1,\"maxItems\":3}" },
    { SCHEMA, false,
      "{\"$ref\":\"#/$defs/n\",\"$defs\":{\"n\":{\"type\":\"object\",\"properties\":{"
      "\"v\":{\"type\":\"boolean\"},\"n\":{\"$ref\":\"#/$defs/n\"}},"
      "\"required\":[\"v\"],\"additionalProperties\":false}}}" },
    { SCHEMA, true, "{\"type\":\"string\",\"format\":\"date\"}" },
    { REGEX, true, "[a-c]{2,5}-(caf\xc3\xa9|\\d{3})" },
    { GBNF, false, "root ::= item (\", \" item)*\nitem ::= [a-z] [a-z]? | \"\xe2\x82\xac\" [0-9]" },
};

static void check_walks(void)
{
    struct rng rng = { .state = 7 };
    for (size_t i = 0; i < sizeof grammars / sizeof *grammars; i++) {
        struct grammar *g = NULL;
        struct bz_err err = { "" };
        CHECK_MSG(open_grammar(&g, grammars[i].kind, grammars[i].text, &err) == BZ_OK, "%s",
                  err.text);
        int n_whole = 0;
        for (int k = 0; g && k < 40; k++) {
            struct matcher *m = NULL;
            struct buf text = { 0 };
            CHECK(matcher_open(&m, g, vocab, &err) == BZ_OK);
            bool whole = walk(m, &rng, &text, 60);
            n_whole += whole;
            if (whole)
                CHECK_MSG(keeps_to(g, buf_str(&text)), "%s: %.*s", grammars[i].text,
                          STR_ARG(buf_str(&text)));
            if (whole && grammars[i].kind == SCHEMA) {
                struct arena a = { 0 };
                struct json *json;
                CHECK_MSG(json_parse(&json, buf_str(&text), &a, &err) == BZ_OK, "%.*s: %s",
                          STR_ARG(buf_str(&text)), err.text);
                arena_free(&a);
            }
            buf_free(&text);
            matcher_close(m);
        }
        CHECK_MSG(!grammars[i].ends || n_whole >= 10, "%s: %d of 40 walks ended", grammars[i].text,
                  n_whole);
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
        struct buf text = { 0 };
        CHECK(g && matcher_open(&m, g, vocab, &err) == BZ_OK);
        for (int k = 0; m && k < 6 && !matcher_is_over(m); k++) {
            CHECK_MSG(disagreements(m) == 0, "%s after \"%.*s\"", grammars[i].text,
                      STR_ARG(buf_str(&text)));
            walk(m, &rng, &text, 1);
        }
        buf_free(&text);
        matcher_close(m);
        grammar_close(g);
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
    TEST("a walk through masks that ends is a text that keeps to the grammar") check_walks();
    TEST("a mask allows exactly the tokens that the matcher takes") check_masks();
    vocab_close(vocab);
    bz_engine_close(engine);
    TEST("nothing is left allocated") CHECK(mem_live() == live);
    return check_done();
}
