/* guide_fixture.h - guides over the vocabulary of tiny: random walks through their masks, and what
 * holds in every state of an answer. */
#ifndef BEZEL_TESTS_GUIDE_FIXTURE_H
#define BEZEL_TESTS_GUIDE_FIXTURE_H

#include <stdlib.h>

#include "base/rng.h"
#include "check.h"
#include "engine.h"
#include "grammar/constraint.h"
#include "grammar/vocab.h"

static bz_engine *engine; /* the vocabulary of tiny */
static const struct tokenizer *t;
static struct vocab *vocab;

static inline bool open_vocab(void)
{
    struct bz_err err = { "" };
    struct bz_engine_options o = { .vocab_only = true };
    enum bz_status st = bz_engine_open(&engine, "models/tiny.q8_0.gguf", &o, &err);
    if (st == BZ_OK) st = vocab_open(&vocab, engine->tokenizer, &err);
    if (st) fprintf(stderr, "%s\n", err.text);
    else t = engine->tokenizer;
    return st == BZ_OK;
}

static inline void close_vocab(void)
{
    vocab_close(vocab);
    bz_engine_close(engine);
}

static inline enum bz_status open_constraint(struct constraint **c, const char *how,
                                             struct bz_err *err)
{
    struct arena a = { 0 };
    struct json *j = NULL;
    enum bz_status st = json_parse(&j, str_of(how), &a, err);
    if (st == BZ_OK) st = constraint_open(c, j, vocab, err);
    arena_free(&a);
    return st;
}

/* ---- one state ---- */

static inline bool allows(const uint32_t *mask, int32_t id)
{
    return !mask || mask[id / 32] >> id % 32 & 1;
}

static inline bool has_end(const uint32_t *mask)
{
    for (uint32_t id = 0; id < tokenizer_size(t); id++)
        if (tokenizer_is_end(t, (int32_t)id) && allows(mask, (int32_t)id)) return true;
    return false;
}

/* A guide that has gone on by these tokens. */
static inline struct guide *guide_at(struct constraint *c, const struct ids *path)
{
    struct guide *g = NULL;
    struct bz_err err = { "" };
    CHECK_MSG(guide_open(&g, c, &err) == BZ_OK, "%s", err.text);
    for (size_t i = 0; g && i < path->n; i++)
        CHECK_MSG(guide_advance(g, path->data[i], &err) == BZ_OK, "%s", err.text);
    return g;
}

/* A mask that no later call changes. */
static inline uint32_t *mask_at(struct guide *g)
{
    struct bz_err err = { "" };
    const uint32_t *now = NULL;
    uint32_t n = vocab_mask_words(vocab), *mask = calloc(n, sizeof *mask);
    enum bz_status st = guide_mask(g, &now, &err);
    CHECK_MSG(st == BZ_OK, "%s", err.text);
    if (now) memcpy(mask, now, n * sizeof *mask);
    else if (st == BZ_OK) memset(mask, 0xff, n * sizeof *mask);
    return mask;
}

/* Of all tokens of the vocabulary: those on which mask and guide disagree behind this path. */
static inline uint32_t disagreements(struct constraint *c, const struct ids *path)
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
static inline void check_forced(struct constraint *c, const struct ids *path)
{
    struct guide *g = guide_at(c, path);
    struct bz_err err = { "" };
    const int32_t *ids;
    size_t n = 0;
    CHECK_MSG(guide_forced(g, &ids, &n, &err) == BZ_OK, "%s", err.text);
    for (size_t i = 0; i < n; i++) {
        uint32_t *mask = mask_at(g);
        CHECK_MSG(allows(mask, ids[i]), "token %d must and may not come", (int)ids[i]);
        CHECK_MSG(!tokenizer_is_end(t, ids[i]), "the end is forced");
        CHECK_MSG(guide_advance(g, ids[i], &err) == BZ_OK, "%s", err.text);
        free(mask);
    }
    guide_close(g);
}

/* ---- texts ---- */

static inline struct buf text_of(const struct ids *ids)
{
    struct buf text = { 0 };
    struct detok d = { 0 };
    for (size_t i = 0; i < ids->n; i++) detok_feed(&d, t, ids->data[i], true, &text);
    detok_end(&d, &text);
    buf_put(&text, "", 0);
    return text;
}

/* Special tokens by their texts. */
static inline void put_text(struct ids *path, const char *text)
{
    const struct tokenize_options special = { .no_bos = true };
    CHECK(tokenizer_encode(t, str_of(text), special, path, NULL) == BZ_OK);
}

/* ---- walks ---- */

/* A token that a walk likes, since it brings the end nearer: a closing sign, or a tag. */
static inline int32_t find_closer(const uint32_t *mask)
{
    static const char *const closers[] = { "<tool_call|>", "<channel|>", "<|\"|>", "}", "]",
                                           "\"",           ",",          ":" };
    for (size_t i = 0; i < sizeof closers / sizeof *closers; i++) {
        int32_t id = tokenizer_find(t, str_of(closers[i]));
        if (id >= 0 && allows(mask, id)) return id;
    }
    return -1;
}

/* Any token of a mask but the ends, now and then one that closes something; -1: there is none. */
static inline int32_t pick(const uint32_t *mask, struct rng *rng)
{
    uint32_t n = tokenizer_size(t), from = rng_below(rng, n);
    int32_t closer = rng_below(rng, 3) ? -1 : find_closer(mask);
    if (closer >= 0) return closer;
    for (uint32_t k = 0; k < n; k++) {
        int32_t id = (int32_t)((from + k) % n);
        if (allows(mask, id) && !tokenizer_is_end(t, id)) return id;
    }
    return -1;
}

/* A random walk of at most `most` tokens. It ends where nothing else is left, or by chance. True:
 * it ended. */
static inline bool walk(struct constraint *c, struct rng *rng, struct ids *path, int most)
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

/* ---- what holds of every constraint ---- */

/* Along a walk: masks against the whole vocabulary, and what must come. */
static inline void check_walk(const char *how, struct rng *rng, int n_steps)
{
    struct constraint *c = NULL;
    struct bz_err err = { "" };
    struct ids path = { 0 };
    CHECK_MSG(open_constraint(&c, how, &err) == BZ_OK, "%s", err.text);
    for (int k = 0; c && k < n_steps; k++) {
        uint32_t bad = disagreements(c, &path);
        struct buf text = text_of(&path);
        CHECK_MSG(bad == 0, "%s after \"%.*s\": %u", how, STR_ARG(buf_str(&text)), bad);
        buf_free(&text);
        check_forced(c, &path);
        if (walk(c, rng, &path, 1)) break;
    }
    ids_free(&path);
    constraint_close(c);
}

static inline enum bz_status follow(const char *how, const struct ids *path, struct bz_err *err)
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

/* Allocations on the way fail, each by itself: all of the first hundred, then ever fewer. Rows of
 * automata are a cache: without memory for one there is none, and nothing has failed. */
static inline void check_memory(const char *how, const struct ids *path)
{
    int64_t live = mem_live();
    uint64_t k = 1;
    for (bool failed = true; failed; k += 1 + k / 100) {
        struct bz_err err = { "" };
        uint64_t before = mem_count();
        mem_fail_at(k);
        enum bz_status st = follow(how, path, &err);
        mem_fail_at(0);
        failed = mem_count() - before >= k;
        CHECK_MSG(st == BZ_OK || (failed && st == BZ_ERR_MEMORY && err.text[0]),
                  "%s: allocation %u: status %d: %s", how, (unsigned)k, (int)st, err.text);
        CHECK_MSG(mem_live() == live, "%s: allocation %u: %d leaked", how, (unsigned)k,
                  (int)(mem_live() - live));
    }
    CHECK(k > 20);
}

#endif
