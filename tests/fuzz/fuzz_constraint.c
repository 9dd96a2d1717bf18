/* Any JSON as a constraint: hostile tools, schemas, patterns and grammars. What is compiled is
 * walked through masks: what a mask allows the guide takes, what it does not is refused, and what
 * must come is allowed. Byte 0: the walk's seed. The rest is the constraint. */
#include <stdlib.h>

#include "base/mem.h"
#include "base/rng.h"
#include "engine.h"
#include "grammar/constraint.h"
#include "grammar/vocab.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

enum { STEPS = 24, TRIED = 16 };

static const struct tokenizer *t;
static struct vocab *vocab;

static void open_vocab(void)
{
    static bz_engine *engine;
    struct bz_engine_options o = { .vocab_only = true };
    if (bz_engine_open(&engine, "models/tiny.q8_0.gguf", &o, NULL)) abort();
    t = engine->tokenizer;
    if (vocab_open(&vocab, t, NULL)) abort();
}

static bool allows(const uint32_t *mask, uint32_t id)
{
    return !mask || mask[id / 32] >> id % 32 & 1;
}

static void must_fail(struct guide *g, int32_t id)
{
    struct bz_err err = { "" };
    if (guide_advance(g, id, &err) == BZ_OK || !err.text[0]) abort();
}

/* Some tokens that may not come, then one that may: says whether the text goes on. */
static bool step(struct guide *g, struct rng *rng)
{
    struct bz_err err = { "" };
    const uint32_t *mask = NULL;
    uint32_t n = tokenizer_size(t), words = vocab_mask_words(vocab);
    static uint32_t *copy;
    if (!copy && !(copy = calloc(words, sizeof *copy))) abort();
    if (guide_mask(g, &mask, &err)) {
        if (!err.text[0]) abort();
        return false;
    }
    if (mask) memcpy(copy, mask, words * sizeof *copy);
    else memset(copy, 0xff, words * sizeof *copy);
    for (int i = 0; i < TRIED; i++) {
        uint32_t id = rng_below(rng, n);
        if (!allows(copy, id)) must_fail(g, (int32_t)id);
    }
    must_fail(g, -1);
    must_fail(g, (int32_t)n);
    uint32_t from = rng_below(rng, n), id = n;
    for (uint32_t k = 0; k < n && id == n; k++)
        if (allows(copy, (from + k) % n)) id = (from + k) % n;
    if (id == n) abort();
    enum bz_status st = guide_advance(g, (int32_t)id, &err);
    if (st == BZ_ERR_ARGUMENT || (st && !err.text[0])) abort();
    return st == BZ_OK && !tokenizer_is_end(t, (int32_t)id);
}

/* Tokens that must come: each is allowed. */
static bool force(struct guide *g)
{
    struct bz_err err = { "" };
    const int32_t *ids;
    size_t n;
    enum bz_status st = guide_forced(g, &ids, &n, &err);
    for (size_t i = 0; i < n && st == BZ_OK; i++) {
        const uint32_t *mask = NULL;
        st = guide_mask(g, &mask, &err);
        if (st == BZ_OK && !allows(mask, (uint32_t)ids[i])) abort();
        if (st == BZ_OK) st = guide_advance(g, ids[i], &err);
    }
    if (st == BZ_ERR_ARGUMENT || (st && !err.text[0])) abort();
    return st == BZ_OK;
}

static void walk(struct constraint *c, uint64_t seed)
{
    struct guide *g = NULL;
    struct rng rng = { .state = seed };
    struct bz_err err = { "" };
    enum bz_status st = guide_open(&g, c, &err);
    if (st && !err.text[0]) abort();
    for (int i = 0; i < STEPS && st == BZ_OK; i++)
        if ((i % 4 == 3 && !force(g)) || !step(g, &rng)) break;
    guide_close(g);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    if (!vocab) open_vocab();
    if (size < 2 || size > 4096) return 0;
    int64_t live = mem_live();
    struct bz_err err = { "" };
    struct arena a = { 0 };
    struct json *how = NULL;
    struct constraint *c = NULL;
    struct str text = { (const char *)data + 1, size - 1 };
    if (json_parse(&how, text, &a, &err) == BZ_OK) {
        enum bz_status st = constraint_open(&c, how, vocab, &err);
        if (st ? !err.text[0] || c : !c) abort();
        if (c) walk(c, data[0]);
        constraint_close(c);
    }
    arena_free(&a);
    if (mem_live() != live) abort();
    return 0;
}
