/* test_constraint.c - answers written by a guide: through its phases, token by token over a real
 * vocabulary. A mask allows just the tokens that the guide takes, what must come is allowed, and
 * every answer ends. */
#include "grammar/constraint.h"

#include <stdlib.h>

#include "base/rng.h"
#include "check.h"
#include "engine.h"
#include "grammar/vocab.h"

static bz_engine *engine; /* the vocabulary of tiny */
static const struct tokenizer *t;
static struct vocab *vocab;

static enum bz_status open_constraint(struct constraint **c, const char *how, struct bz_err *err)
{
    struct arena a = { 0 };
    struct json *j = NULL;
    enum bz_status st = json_parse(&j, str_of(how), &a, err);
    if (st == BZ_OK) st = constraint_open(c, j, vocab, err);
    arena_free(&a);
    return st;
}

static bool allows(const uint32_t *mask, int32_t id)
{
    return !mask || mask[id / 32] >> id % 32 & 1;
}

/* A guide that has gone on by these tokens. */
static struct guide *guide_at(struct constraint *c, const struct ids *path)
{
    struct guide *g = NULL;
    struct bz_err err = { "" };
    CHECK_MSG(guide_open(&g, c, &err) == BZ_OK, "%s", err.text);
    for (size_t i = 0; g && i < path->n; i++)
        CHECK_MSG(guide_advance(g, path->data[i], &err) == BZ_OK, "%s", err.text);
    return g;
}

/* A mask that no later call changes. */
static uint32_t *mask_at(struct guide *g)
{
    struct bz_err err = { "" };
    const uint32_t *now = NULL;
    uint32_t n = vocab_mask_words(vocab), *mask = malloc(n * sizeof *mask);
    CHECK_MSG(mask && guide_mask(g, &now, &err) == BZ_OK, "%s", err.text);
    if (now) memcpy(mask, now, n * sizeof *mask);
    else memset(mask, 0xff, n * sizeof *mask);
    return mask;
}

/* Of all tokens of the vocabulary: those on which mask and guide disagree behind this path. */
static uint32_t disagreements(struct constraint *c, const struct ids *path)
{
    struct guide *g = guide_at(c, path);
    uint32_t *mask = mask_at(g), bad = 0, n = tokenizer_size(t);
    for (int32_t id = -1; id <= (int32_t)n; id++) {
        struct bz_err err = { "" };
        bool accepted = guide_advance(g, id, &err) == BZ_OK;
        bool allowed = id >= 0 && id < (int32_t)n && allows(mask, id);
        bad += accepted != allowed;
        CHECK(accepted || err.text[0]);
        if (!accepted) continue;
        guide_close(g);
        g = guide_at(c, path);
    }
    free(mask);
    guide_close(g);
    return bad;
}

/* What must come is allowed, token by token. */
static enum bz_status check_forced(struct constraint *c, const struct ids *path)
{
    struct guide *g = guide_at(c, path);
    struct bz_err err = { "" };
    const int32_t *ids;
    size_t n = 0;
    enum bz_status st = guide_forced(g, &ids, &n, &err);
    CHECK_MSG(st == BZ_OK, "%s", err.text);
    for (size_t i = 0; i < n; i++) {
        uint32_t *mask = mask_at(g);
        CHECK_MSG(allows(mask, ids[i]), "token %d must and may not come", (int)ids[i]);
        CHECK_MSG(!tokenizer_is_end(t, ids[i]), "the end is forced");
        CHECK_MSG(guide_advance(g, ids[i], &err) == BZ_OK, "%s", err.text);
        free(mask);
    }
    guide_close(g);
    return st;
}

static struct buf text_of(const struct ids *ids)
{
    struct buf text = { 0 };
    struct detok d = { 0 };
    for (size_t i = 0; i < ids->n; i++) detok_feed(&d, t, ids->data[i], true, &text);
    detok_end(&d, &text);
    return text;
}

/* Any token of a mask but the ends, from a random one on; -1: there is none. */
static int32_t pick(const uint32_t *mask, struct rng *rng)
{
    uint32_t n = tokenizer_size(t), from = rng_below(rng, n);
    for (uint32_t k = 0; k < n; k++) {
        int32_t id = (int32_t)((from + k) % n);
        if (allows(mask, id) && !tokenizer_is_end(t, id)) return id;
    }
    return -1;
}

static bool has_end(const uint32_t *mask)
{
    for (uint32_t id = 0; id < tokenizer_size(t); id++)
        if (tokenizer_is_end(t, (int32_t)id) && allows(mask, (int32_t)id)) return true;
    return false;
}

/* A random walk, at most `most` tokens long, that ends when it may and no other way is left, or by
 * chance. True: it ended. */
static bool walk(struct constraint *c, struct rng *rng, struct ids *path, int most)
{
    struct guide *g = guide_at(c, path);
    struct bz_err err = { "" };
    bool ended = false;
    for (int i = 0; i < most && !ended; i++) {
        uint32_t *mask = mask_at(g);
        int32_t id = pick(mask, rng);
        bool end = has_end(mask);
        free(mask);
        if (id < 0 && !end) {
            struct buf text = text_of(path);
            CHECK_MSG(false, "no token may come after \"%.*s\"", STR_ARG(buf_str(&text)));
            buf_free(&text);
        }
        ended = end && (id < 0 || rng_below(rng, 8) == 0);
        if (ended || id < 0) break;
        CHECK_MSG(guide_advance(g, id, &err) == BZ_OK, "%s", err.text);
        ids_push(path, id);
    }
    guide_close(g);
    return ended;
}

static void put_text(struct ids *path, const char *text)
{
    const struct tokenize_options special = { .no_bos = true };
    CHECK(tokenizer_encode(t, str_of(text), special, path, NULL) == BZ_OK);
}

/* ---- phases ---- */

#define DATE "\"schema\":{\"type\":\"string\",\"format\":\"date\"}"

static const char *const constraints[] = {
    "{" DATE "}",
    "{" DATE ",\"thinking\":true}",
    "{" DATE ",\"in_thought\":true}",
    "{\"json\":true,\"thinking\":true}",
    "{\"regex\":\"[a-c]{2,5}-(caf\xc3\xa9|\\\\d{3})\",\"thinking\":true}",
    "{\"gbnf\":\"root ::= (\\\"ab\\\" | \\\"\xe2\x82\xac\\\" [0-9])+\"}",
};
enum { N_CONSTRAINTS = sizeof constraints / sizeof *constraints };

static void check_all_masks(void)
{
    struct rng rng = { .state = 3 };
    for (size_t i = 0; i < N_CONSTRAINTS; i++) {
        struct constraint *c = NULL;
        struct bz_err err = { "" };
        struct ids path = { 0 };
        CHECK_MSG(open_constraint(&c, constraints[i], &err) == BZ_OK, "%s", err.text);
        for (int k = 0; c && k < 6; k++) {
            uint32_t bad = disagreements(c, &path);
            struct buf text = text_of(&path);
            CHECK_MSG(bad == 0, "%s after \"%.*s\": %u", constraints[i], STR_ARG(buf_str(&text)),
                      bad);
            buf_free(&text);
            if (walk(c, &rng, &path, 1)) break;
        }
        ids_free(&path);
        constraint_close(c);
    }
}

static void check_all_forced(void)
{
    struct rng rng = { .state = 5 };
    for (size_t i = 0; i < N_CONSTRAINTS; i++) {
        struct constraint *c = NULL;
        struct bz_err err = { "" };
        CHECK(open_constraint(&c, constraints[i], &err) == BZ_OK);
        for (int k = 0; c && k < 20; k++) {
            struct ids path = { 0 };
            for (size_t n = 0; n < 40 && path.n == n && check_forced(c, &path) == BZ_OK; n++)
                walk(c, &rng, &path, 1);
            ids_free(&path);
        }
        constraint_close(c);
    }
}

/* Where a text of the chat format may go on by a special token. */
static void check_phases(void)
{
    static const struct {
        const char *how, *text;
        bool thought, thought_end, end;
    } cases[] = {
        { "{" DATE "}", "", false, false, false },
        { "{" DATE "}", "\"2024-02-29\"", false, false, true },
        { "{" DATE ",\"thinking\":true}", "", true, false, false },
        { "{" DATE ",\"thinking\":true}", "\"", false, false, false },
        { "{" DATE ",\"thinking\":true}", "<|channel>thought\nx", false, true, false },
        { "{" DATE ",\"thinking\":true}", "<|channel>thought\n<channel|>", false, false, false },
        { "{" DATE ",\"in_thought\":true}", "", false, true, false },
        { "{" DATE ",\"in_thought\":true}", "x<channel|>\"2024-02-29\"", false, false, true },
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct constraint *c = NULL;
        struct bz_err err = { "" };
        struct ids path = { 0 };
        CHECK_MSG(open_constraint(&c, cases[i].how, &err) == BZ_OK, "%s", err.text);
        put_text(&path, cases[i].text);
        struct guide *g = guide_at(c, &path);
        uint32_t *mask = mask_at(g);
        CHECK_MSG(allows(mask, tokenizer_special(t, SPECIAL_CHANNEL)) == cases[i].thought,
                  "<|channel> after %s", cases[i].text);
        CHECK_MSG(allows(mask, tokenizer_special(t, SPECIAL_CHANNEL_END)) == cases[i].thought_end,
                  "<channel|> after %s", cases[i].text);
        CHECK_MSG(has_end(mask) == cases[i].end, "the end after %s", cases[i].text);
        for (int s = 0; s < N_SPECIAL; s++) {
            int32_t id = tokenizer_special(t, (enum special)s);
            bool known = s == SPECIAL_CHANNEL || s == SPECIAL_CHANNEL_END;
            if (id < 0 || known || tokenizer_is_end(t, id)) continue;
            CHECK_MSG(!allows(mask, id), "%.*s after %s", STR_ARG(tokenizer_text(t, id)),
                      cases[i].text);
        }
        free(mask);
        guide_close(g);
        ids_free(&path);
        constraint_close(c);
    }
}

/* What must come, as text, behind a text. */
static void check_forced_text(void)
{
    static const struct {
        const char *how, *before, *forced;
    } cases[] = {
        { "{\"schema\":{\"const\":\"one and only\"}}", "", "\"one and only\"" },
        { "{\"schema\":{\"const\":\"one and only\"}}", "\"one", " and only\"" },
        { "{\"schema\":{\"const\":\"one and only\"},\"thinking\":true}", "", "" },
        { "{\"schema\":{\"const\":\"one and only\"},\"thinking\":true}", "<|channel>x", "" },
        { "{\"schema\":{\"const\":1},\"thinking\":true}", "<|channel>x<channel|>", "1" },
        { "{\"regex\":\"a\xe2\x96\x81z\"}", "", "a" },
        { "{\"regex\":\"x?\"}", "", "" },
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct constraint *c = NULL;
        struct bz_err err = { "" };
        struct ids path = { 0 }, forced;
        const int32_t *ids = NULL;
        CHECK_MSG(open_constraint(&c, cases[i].how, &err) == BZ_OK, "%s", err.text);
        put_text(&path, cases[i].before);
        struct guide *g = guide_at(c, &path);
        forced = (struct ids) { 0 };
        CHECK_MSG(guide_forced(g, &ids, &forced.n, &err) == BZ_OK, "%s", err.text);
        for (size_t k = 0, n = forced.n; k < n; k++) {
            if (k == 0) forced.n = 0;
            ids_push(&forced, ids[k]);
        }
        struct buf text = text_of(&forced);
        buf_put(&text, "", 0);
        CHECK_MSG(str_is(buf_str(&text), cases[i].forced), "%s after \"%s\": \"%.*s\"",
                  cases[i].how, cases[i].before, STR_ARG(buf_str(&text)));
        buf_free(&text);
        ids_free(&forced);
        ids_free(&path);
        guide_close(g);
        constraint_close(c);
    }
}

static void check_refusals(void)
{
    static const struct {
        const char *how, *names;
    } cases[] = {
        { "[]", "object" },
        { "{}", "one of" },
        { "{\"json\":true,\"regex\":\"a\"}", "one of" },
        { "{\"json\":1}", "json" },
        { "{\"regex\":1}", "regex" },
        { "{\"gbnf\":\"root ::= missing\"}", "missing" },
        { "{\"schema\":{\"type\":7}}", "type" },
        { "{\"json\":true,\"thinkng\":true}", "thinkng" },
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct constraint *c = NULL;
        struct bz_err err = { "" };
        CHECK_MSG(open_constraint(&c, cases[i].how, &err) != BZ_OK && !c, "%s was taken",
                  cases[i].how);
        CHECK_MSG(strstr(err.text, cases[i].names), "%s: %s", cases[i].how, err.text);
    }
}

/* ---- memory ---- */

/* A few steps of an answer. */
static enum bz_status use(const char *how, const struct ids *path, struct bz_err *err)
{
    struct constraint *c = NULL;
    struct guide *g = NULL;
    const uint32_t *mask;
    const int32_t *ids;
    size_t n;
    enum bz_status st = open_constraint(&c, how, err);
    if (st == BZ_OK) st = guide_open(&g, c, err);
    for (size_t i = 0; i < path->n && st == BZ_OK; i++) {
        st = guide_mask(g, &mask, err);
        if (st == BZ_OK) st = guide_forced(g, &ids, &n, err);
        if (st == BZ_OK) st = guide_advance(g, path->data[i], err);
    }
    guide_close(g);
    constraint_close(c);
    return st;
}

static void check_memory(void)
{
    struct rng rng = { .state = 9 };
    for (size_t i = 0; i < N_CONSTRAINTS; i++) {
        struct constraint *c = NULL;
        struct ids path = { 0 };
        CHECK(open_constraint(&c, constraints[i], NULL) == BZ_OK);
        walk(c, &rng, &path, 4);
        constraint_close(c);
        int64_t live = mem_live();
        uint64_t k = 1;
        for (bool failed = true; failed; k++) {
            struct bz_err err = { "" };
            uint64_t before = mem_count();
            mem_fail_at(k);
            enum bz_status st = use(constraints[i], &path, &err);
            mem_fail_at(0);
            failed = mem_count() - before >= k;
            /* Rows of automata are a cache: without memory for one there is none. */
            CHECK_MSG(st == BZ_OK || (failed && st == BZ_ERR_MEMORY && err.text[0]),
                      "%s: allocation %u: status %d: %s", constraints[i], (unsigned)k, (int)st,
                      err.text);
            CHECK_MSG(mem_live() == live, "%s: allocation %u: %d leaked", constraints[i],
                      (unsigned)k, (int)(mem_live() - live));
        }
        CHECK(k > 20);
        ids_free(&path);
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
    t = engine->tokenizer;
    TEST("what an answer cannot keep to is refused by name") check_refusals();
    TEST("special tokens come where the format has them") check_phases();
    TEST("what must come is tokenized, but for what could go on otherwise") check_forced_text();
    TEST("what must come is allowed") check_all_forced();
    TEST("a mask allows exactly the tokens that the guide takes") check_all_masks();
    TEST("any failed allocation is told, and leaks nothing") check_memory();
    vocab_close(vocab);
    bz_engine_close(engine);
    TEST("nothing is left allocated") CHECK(mem_live() == live);
    return check_done();
}
