/* test_constrained.c - texts that keep to schemas, patterns and grammars: written by a model that
 * was trained, and by models that speak nonsense. */
#include "grammar/grammar.h"
#include "model_fixture.h"

#define TINY   "models/tiny.q8_0.gguf"
#define CANVAS "models/tiny-diffusion.q8_0.gguf"
enum { CONTEXT = 400, MOST = 300 };

static const char question[] = "<|turn>user\nWhat is the capital of France?<turn|>\n<|turn>model\n";

/* ---- one text ---- */

struct text {
    struct buf text;
    int32_t ids[MOST];
    size_t n, first;
    enum bz_stop stop;
    int n_pieces, stop_at; /* false after so many pieces; 0: never */
};

static bool on_text(void *ctx, const char *p, size_t n)
{
    struct text *t = ctx;
    buf_put(&t->text, p, n);
    return ++t->n_pieces != t->stop_at;
}

static bz_constraint *compiled(bz_engine *e, const char *json)
{
    struct bz_err err = { "" };
    bz_constraint *c = NULL;
    CHECK_MSG(bz_constraint_open(&c, e, json, strlen(json), &err) == BZ_OK, "%s: %s", json,
              err.text);
    return c;
}

static struct bz_generate_options greedy(uint32_t n_max)
{
    return (struct bz_generate_options) { .n_max = n_max, .on_text = on_text };
}

/* The answer to `prompt` under a constraint; buf_free(&text) frees it. */
static enum bz_status answer(struct text *t, bz_session *s, const char *prompt, const char *json,
                             struct bz_generate_options o, struct bz_err *err)
{
    struct bz_generated g = { 0 };
    CHECK(bz_session_truncate(s, 0, NULL, NULL) == BZ_OK);
    CHECK(bz_session_feed_text(s, prompt, NULL) == BZ_OK);
    o.ctx = t;
    enum bz_status st = bz_generate(s, &o, &g, err);
    size_t n;
    const int32_t *ids = bz_session_tokens(s, &n);
    CHECK_MSG(st || g.first + g.n == n, "%s: %zu tokens after %zu, and %zu", json, g.n, g.first, n);
    t->n = g.n;
    t->first = g.first;
    t->stop = g.stop;
    memcpy(t->ids, ids + g.first, g.n * sizeof *ids);
    buf_put(&t->text, "", 0);
    return st;
}

static struct text answer_well(bz_engine *e, bz_session *s, const char *json,
                               struct bz_generate_options o)
{
    struct text t = { .stop_at = o.ctx ? *(int *)o.ctx : 0 };
    struct bz_err err = { "" };
    o.constraint = compiled(e, json);
    CHECK_MSG(answer(&t, s, question, json, o, &err) == BZ_OK, "%s: %s", json, err.text);
    bz_constraint_close(o.constraint);
    return t;
}

static bool same_text(const struct text *a, const struct text *b)
{
    return a->n == b->n && a->stop == b->stop && str_eq(buf_str(&a->text), buf_str(&b->text)) &&
           memcmp(a->ids, b->ids, a->n * sizeof *a->ids) == 0;
}

/* ---- what keeps to what ---- */

/* Read by a grammar of its own, in which JSON may have any form. */
static bool keeps_to(const char *schema, struct str text)
{
    const struct grammar_options any = { .any_form = true };
    struct grammar *g = NULL;
    struct matcher *m = NULL;
    struct bz_err err = { "" };
    size_t n = 0;
    bool ok = grammar_of_schema(&g, str_of(schema), &any, &err) == BZ_OK &&
              matcher_open(&m, g, NULL, &err) == BZ_OK &&
              matcher_read(m, text, &n, &err) == BZ_OK && n == text.n && matcher_may_end(m);
    matcher_close(m);
    grammar_close(g);
    return ok;
}

#define CITY                                                                                       \
    "{\"type\":\"object\",\"properties\":{\"city\":{\"type\":\"string\",\"maxLength\":12},"        \
    "\"continent\":{\"enum\":[\"Europe, north of the sea\",\"Asia and all of its islands\"]},"     \
    "\"capital\":{\"type\":\"boolean\"},\"rank\":{\"type\":\"integer\",\"minimum\":0,"             \
    "\"maximum\":99}},\"required\":[\"city\",\"continent\",\"capital\",\"rank\"],"                 \
    "\"additionalProperties\":false}"
#define LIST                                                                                       \
    "{\"type\":\"array\",\"minItems\":2,\"maxItems\":4,\"items\":{\"type\":\"object\","            \
    "\"properties\":{\"id\":{\"type\":\"string\",\"pattern\":\"^[a-z]{2,5}-[0-9]{3}$\"}},"         \
    "\"required\":[\"id\"],\"additionalProperties\":false}}"
static const char *const schemas[] = { CITY, LIST };

#define SCHEMA(schema) "{\"schema\":" schema "}"
/* It leaves no choice at all, and has more tokens than are read together. */
#define FIXED                                                                                      \
    "{\"regex\":\"The quick brown fox jumps over the lazy dog, and the dog, which is lazy, does "  \
    "not jump over anything at all\\\\. It is 1234567 years old, and ends here\\\\.\"}"

static void check_answers(bz_engine *e, bz_session *s)
{
    for (size_t i = 0; i < sizeof schemas / sizeof *schemas; i++) {
        for (uint64_t seed = 0; seed < 4; seed++) {
            struct bz_generate_options o = greedy(MOST);
            char json[1024];
            snprintf(json, sizeof json, "{\"schema\":%s}", schemas[i]);
            if (seed) o.sampling = bz_sampling_defaults(e);
            if (seed > 3) o.sampling.temperature = 3;
            o.sampling.seed = seed;
            struct text t = answer_well(e, s, json, o);
            CHECK_MSG(t.stop == BZ_STOP_END && keeps_to(schemas[i], buf_str(&t.text)), "%s: %s",
                      schemas[i], t.text.data);
            buf_free(&t.text);
        }
    }
}

/* ---- tokens that must come ---- */

/* The same tokens, pieces and logits, whether they are read together or one by one. */
static void check_together(bz_engine *e, bz_session *s, const char *json, uint64_t seed)
{
    struct bz_generate_options o = greedy(MOST);
    uint32_t n_vocab = bz_engine_info(e).n_vocab;
    float *last = malloc(n_vocab * sizeof *last), worst = 0;
    if (seed) o.sampling = bz_sampling_defaults(e);
    o.sampling.seed = seed;
    o.n_max = 25; /* the end leaves no logits */
    struct text a = answer_well(e, s, json, o);
    memcpy(last, bz_session_logits(s), n_vocab * sizeof *last);
    o.one_by_one = true;
    struct text b = answer_well(e, s, json, o);
    CHECK_MSG(same_text(&a, &b), "%s: %s\n%s", json, a.text.data, b.text.data);
    CHECK_MSG(a.n_pieces <= b.n_pieces, "%d and %d pieces", a.n_pieces, b.n_pieces);
    for (uint32_t i = 0; i < n_vocab; i++)
        worst = fmaxf(worst, fabsf(last[i] - bz_session_logits(s)[i]));
    CHECK_MSG(worst < 1e-4f, "logits differ by %g", (double)worst); /* sums in another order */
    free(last);
    buf_free(&a.text);
    buf_free(&b.text);
}

/* What ends a text ends it at the same place in tokens that are read together. */
static void check_ends(bz_engine *e, bz_session *s)
{
    struct text whole = answer_well(e, s, FIXED, greedy(MOST));
    CHECK(whole.stop == BZ_STOP_END && whole.n > 40);
    CHECK_MSG(whole.n_pieces <= 4, "%zu tokens in %d pieces", whole.n, whole.n_pieces);
    for (uint32_t n = 1; n < whole.n; n++) {
        struct text t = answer_well(e, s, FIXED, greedy(n));
        CHECK(t.stop == BZ_STOP_LENGTH && t.n == n && bz_session_logits(s));
        CHECK(memcmp(t.ids, whole.ids, n * sizeof *t.ids) == 0);
        CHECK(str_starts(buf_str(&whole.text), t.text.data));
        buf_free(&t.text);
    }
    for (uint32_t at = 3; at + 6 < whole.text.n; at += 4) {
        char word[7] = "";
        const char *stop[] = { "\xe2\x98\x83", word };
        struct bz_generate_options o = greedy(MOST);
        memcpy(word, whole.text.data + at, 6);
        o.stop = stop;
        o.n_stop = 2;
        struct text t = answer_well(e, s, FIXED, o);
        o.one_by_one = true;
        struct text single = answer_well(e, s, FIXED, o);
        CHECK_MSG(t.stop == BZ_STOP_STRING && same_text(&t, &single), "%s", word);
        CHECK((size_t)(strstr(whole.text.data, word) - whole.text.data) == t.text.n);
        buf_free(&t.text);
        buf_free(&single.text);
    }
    for (uint32_t n = 1; n < 20; n += 3) {
        bz_session *small = open_session(e, (uint32_t)whole.first + n, 16);
        struct text t = answer_well(e, small, FIXED, greedy(0));
        CHECK(t.stop == BZ_STOP_CONTEXT && t.n == n);
        CHECK(memcmp(t.ids, whole.ids, n * sizeof *t.ids) == 0);
        buf_free(&t.text);
        bz_session_close(small);
    }
    buf_free(&whole.text);
}

/* A callback that stops after a piece leaves the session at its end, with logits to go on from. */
static void check_cancel(bz_engine *e, bz_session *s)
{
    for (int n = 1; n < 6; n++) {
        struct bz_generate_options o = greedy(MOST);
        o.ctx = &n;
        struct text t = answer_well(e, s, SCHEMA(CITY), o);
        CHECK(t.stop == BZ_STOP_CANCELLED && t.n_pieces == n && t.n >= (size_t)n);
        char *shown;
        size_t n_shown;
        CHECK(!bz_detokenize(e, t.ids, t.n, false, &shown, &n_shown, NULL));
        CHECK(str_eq((struct str) { shown, n_shown }, buf_str(&t.text)));
        CHECK(bz_session_logits(s) != NULL);
        bz_free(shown);
        buf_free(&t.text);
    }
}

/* ---- beside other wishes ---- */

/* Where the caller forbids a token that must come, others spell the text; where it forbids all that
 * may come, that is an error. */
static void check_wishes(bz_engine *e, bz_session *s)
{
    uint32_t n_vocab = bz_engine_info(e).n_vocab, n_words = (n_vocab + 31) / 32;
    uint32_t *mask = malloc(n_words * sizeof *mask);
    struct bz_generate_options o = greedy(MOST);
    struct text plain = answer_well(e, s, FIXED, o);
    struct bz_bias bias = { plain.ids[7], -INFINITY };
    o.sampling.bias = &bias;
    o.sampling.n_bias = 1;
    struct text biased = answer_well(e, s, FIXED, o);
    o = greedy(MOST);
    memset(mask, 0xff, n_words * sizeof *mask);
    mask[bias.id / 32] &= ~(1u << bias.id % 32);
    o.sampling.mask = mask;
    struct text masked = answer_well(e, s, FIXED, o);
    CHECK(str_eq(buf_str(&plain.text), buf_str(&biased.text)) && same_text(&biased, &masked));
    for (size_t i = 0; i < biased.n; i++) CHECK(biased.ids[i] != bias.id);
    memset(mask, 0, n_words * sizeof *mask);
    struct text none = { .text = { 0 } };
    struct bz_err err = { "" };
    o.constraint = compiled(e, FIXED);
    CHECK(answer(&none, s, question, "", o, &err) == BZ_ERR_ARGUMENT && none.n == 0);
    CHECK_STR(err.text, "every token is forbidden");
    CHECK(bz_session_logits(s) != NULL);
    bz_constraint_close(o.constraint);
    free(mask);
    buf_free(&plain.text);
    buf_free(&biased.text);
    buf_free(&masked.text);
    buf_free(&none.text);
}

/* Ends that are ignored do not come, and nothing does after the text. */
static void check_ignored_end(bz_engine *e, bz_session *s)
{
    static const char *const json[] = { SCHEMA(CITY), "{\"regex\":\"(ab|c){0,9}\"}",
                                        "{\"regex\":\"\"}" };
    for (size_t i = 0; i < sizeof json / sizeof *json; i++) {
        struct bz_generate_options o = greedy(MOST);
        struct text a = answer_well(e, s, json[i], o);
        o.ignore_end = true;
        struct text b = answer_well(e, s, json[i], o);
        CHECK(a.stop == BZ_STOP_END && b.stop == BZ_STOP_END);
        CHECK_MSG(i == 1 || (b.n + 1 == a.n && same_text(&b, &b)), "%s: %zu and %zu", json[i], a.n,
                  b.n);
        CHECK_MSG(i != 1 || b.text.n >= 9, "%s", b.text.data);
        CHECK(i == 1 || str_eq(buf_str(&a.text), buf_str(&b.text)));
        buf_free(&a.text);
        buf_free(&b.text);
    }
}

/* A thought comes first, of any text, and then the JSON. */
static void check_thought(bz_engine *e, bz_session *s)
{
    static const char json[] = "{\"thinking\":true,\"schema\":" CITY "}";
    static const char think[] = "<|turn>system\n<|think|><turn|>\n<|turn>user\nWhat is the capital "
                                "of France?<turn|>\n<|turn>model\n";
    struct text t = { .text = { 0 } };
    struct bz_err err = { "" };
    struct bz_generate_options o = greedy(MOST);
    o.specials = true;
    o.constraint = compiled(e, json);
    CHECK_MSG(answer(&t, s, think, json, o, &err) == BZ_OK, "%s", err.text);
    const char *begin = strstr(t.text.data, "<channel|>");
    CHECK_MSG(begin && str_starts(buf_str(&t.text), "<|channel>thought"), "%s", t.text.data);
    if (begin) CHECK_MSG(keeps_to(CITY, str_of(begin + 10)), "%s", begin);
    bz_constraint_close(o.constraint);
    buf_free(&t.text);
}

/* ---- what an engine keeps ---- */

static void check_kept(bz_engine *e)
{
    bz_constraint *c[6], *again;
    char json[64];
    for (int i = 0; i < 6; i++) {
        snprintf(json, sizeof json, "{\"regex\":\"a{%d}\"}", i + 1);
        c[i] = compiled(e, json);
    }
    CHECK((again = compiled(e, json)) == c[5]);
    bz_constraint_close(again);
    CHECK((again = compiled(e, "{\"regex\":\"a{3}\"}")) == c[2]); /* the oldest that is kept */
    bz_constraint_close(again);
    bz_constraint_close(compiled(e, "{\"regex\":\"b\"}"));
    CHECK((again = compiled(e, "{\"regex\":\"a{3}\"}")) == c[2]);
    bz_constraint_close(again);
    CHECK((again = compiled(e, "{\"regex\":\"a{4}\"}")) != c[3]);
    bz_constraint_close(again);
    for (int i = 0; i < 6; i++) bz_constraint_close(c[i]);
    bz_constraint_close(NULL);
}

static void check_errors(bz_engine *e)
{
    static const char *const wrong[][2] = {
        { "[]", "object" },
        { "{\"regex\":", "a constraint: " },
        { "{\"regxe\":\"a\"}", "regxe" },
        { "{\"schema\":{\"type\":\"strin\"}}", "type" },
        { "{\"regex\":\"a(\"}", "group" },
    };
    for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++) {
        struct bz_err err = { "" };
        bz_constraint *c = NULL;
        enum bz_status st = bz_constraint_open(&c, e, wrong[i][0], strlen(wrong[i][0]), &err);
        CHECK_MSG(st != BZ_OK && !c && strstr(err.text, wrong[i][1]), "%s: %s", wrong[i][0],
                  err.text);
    }
}

static void check_diffusion(void)
{
    bz_engine *e = open_engine(CANVAS, BZ_BACKEND_CPU);
    bz_session *s = open_session(e, CONTEXT, 16);
    struct bz_generate_options o = greedy(1);
    struct text t = { .text = { 0 } };
    struct bz_err err = { "" };
    o.constraint = compiled(e, "{\"regex\":\"a\"}");
    CHECK(answer(&t, s, question, "", o, &err) == BZ_ERR_UNSUPPORTED && t.n == 0);
    CHECK(strstr(err.text, "cannot be constrained yet"));
    bz_constraint_close(o.constraint);
    buf_free(&t.text);
    bz_session_close(s);
    bz_engine_close(e);
}

/* ---- faults ---- */

static enum bz_status use(bz_engine *e, bz_session *s, struct bz_err *err)
{
    static const char json[] = "{\"regex\":\"a{3,9}( [b-y]+ with some of zzz,){2}\"}";
    struct bz_generate_options o = greedy(40);
    o.on_text = NULL;
    enum bz_status st = bz_constraint_open(&o.constraint, e, json, strlen(json), err);
    if (st == BZ_OK) st = bz_session_truncate(s, 0, NULL, err);
    if (st == BZ_OK) st = bz_session_feed_text(s, "ab", err);
    if (st == BZ_OK) st = bz_generate(s, &o, NULL, err);
    bz_constraint_close(o.constraint);
    return st;
}

/* Each allocation fails once: an error, or a text all the same where it was only to make later
 * steps faster. The next text is right again. */
static void check_memory(void)
{
    bool failed = true;
    int64_t live = mem_live();
    uint32_t n_errors = 0;
    for (uint64_t k = 1; failed; k += 1 + k / 40) {
        bz_engine *e = open_engine(E2B, BZ_BACKEND_CPU);
        bz_session *s = open_session(e, 64, 16);
        struct bz_err err = { "" };
        uint64_t before = mem_count();
        mem_fail_at(k);
        enum bz_status st = use(e, s, &err);
        mem_fail_at(0);
        failed = mem_count() - before >= k;
        n_errors += st == BZ_ERR_MEMORY;
        CHECK_MSG(st == BZ_OK || (failed && st == BZ_ERR_MEMORY), "allocation %u: status %d: %s",
                  (unsigned)k, (int)st, err.text);
        CHECK_MSG(use(e, s, &err) == BZ_OK, "after allocation %u: %s", (unsigned)k, err.text);
        bz_session_close(s);
        bz_engine_close(e);
        CHECK_MSG(mem_live() == live, "allocation %u: %d leaked", (unsigned)k,
                  (int)(mem_live() - live));
    }
    CHECK_MSG(n_errors > 60, "%u allocations whose failure is an error", n_errors);
}

int main(void)
{
    bz_engine *e = open_engine(TINY, BZ_BACKEND_CPU);
    bz_session *s = open_session(e, CONTEXT, 16);
    TEST("answers keep to their schemas, the best ones and sampled ones") check_answers(e, s);
    TEST("tokens that must come are the same, read together or one by one")
    {
        static const char *const json[] = { FIXED, SCHEMA(CITY), SCHEMA(LIST) };
        for (size_t i = 0; i < sizeof json / sizeof *json; i++)
            for (uint64_t seed = 0; seed < 3; seed++) check_together(e, s, json[i], seed);
    }
    TEST("a text ends inside tokens that must come where it would if they were drawn")
    check_ends(e, s);
    TEST("a text can be stopped after any piece") check_cancel(e, s);
    TEST("what the caller forbids stays forbidden") check_wishes(e, s);
    TEST("where ends are ignored a text ends when nothing else may come") check_ignored_end(e, s);
    TEST("a thought is free, and what comes after it is not") check_thought(e, s);
    TEST("an engine keeps the last four constraints") check_kept(e);
    TEST("what cannot be kept is a sentence") check_errors(e);
    bz_session_close(s);
    bz_engine_close(e);
    TEST("a diffusion model says that it cannot be constrained yet") check_diffusion();
    TEST("any failed allocation is an error, and spoils no later text") check_memory();
    TEST("nothing is left allocated") CHECK(mem_live() == 0);
    return check_done();
}
