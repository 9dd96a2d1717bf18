/* test_sampler.c - the steps from logits to a token, each against its sentence in bezel.h. */
#include <math.h>
#include <stdlib.h>

#include "base/mem.h"
#include "base/rng.h"
#include "check.h"
#include "text/sampler.h"

enum { MAX_VOCAB = 512 };

static struct bz_sampling neutral(float temperature)
{
    return (struct bz_sampling) { .repeat_penalty = 1, .top_p = 1, .temperature = temperature };
}

/* One draw without history or suppressed tokens; -1 for an error. */
static int32_t draw(struct sampler *s, const struct bz_sampling *p, const float *z, uint64_t number)
{
    int32_t id = -1;
    struct bz_err err = { "" };
    if (sampler_draw(s, p, z, NULL, 0, NULL, 0, number, &id, &err)) {
        CHECK(err.text[0]);
        return -1;
    }
    return id;
}

/* Bit i is set when token i comes up in many draws. */
static uint32_t drawn_set(struct sampler *s, const struct bz_sampling *p, const float *z)
{
    uint32_t set = 0;
    for (uint64_t i = 0; i < 4000; i++) set |= 1u << draw(s, p, z, i);
    return set;
}

/* Logits whose softmax is p. */
static void from_probabilities(float *z, const double *p, int n)
{
    for (int i = 0; i < n; i++) z[i] = (float)log(p[i]);
}

static struct sampler open_sampler(uint32_t n_vocab)
{
    struct sampler s = { 0 };
    CHECK(sampler_open(&s, n_vocab, NULL) == BZ_OK);
    return s;
}

/* Pearson's statistic of n draws against softmax(z / temperature). */
static double chi_square(struct sampler *s, const float *z, int n_vocab, float temperature,
                         uint64_t seed, int n)
{
    struct bz_sampling p = neutral(temperature);
    double total = 0, chi = 0;
    int seen[MAX_VOCAB] = { 0 };
    p.seed = seed;
    for (int i = 0; i < n; i++) seen[draw(s, &p, z, (uint64_t)i)]++;
    for (int i = 0; i < n_vocab; i++) total += exp((double)z[i] / (double)temperature);
    for (int i = 0; i < n_vocab; i++) {
        double want = n * exp((double)z[i] / (double)temperature) / total;
        chi += (seen[i] - want) * (seen[i] - want) / want;
    }
    return chi;
}

/* ---- penalties ---- */

/* The documented rule, a token at a time, over the whole history. */
static float penalised(float z, const struct bz_sampling *p, const int32_t *history, size_t n,
                       int32_t id)
{
    size_t first = n > p->penalty_window ? n - p->penalty_window : 0, count = 0;
    for (size_t i = first; i < n; i++) count += history[i] == id;
    if (!count) return z;
    z = z > 0 ? z / p->repeat_penalty : z * p->repeat_penalty;
    return z - ((float)count * p->frequency_penalty + p->presence_penalty);
}

static void check_penalties(void)
{
    enum { VOCAB = 16, HISTORY = 40 };
    struct sampler s = open_sampler(VOCAB);
    struct rng rng = { 3 };
    for (int round = 0; round < 300; round++) {
        int32_t history[HISTORY], id = -1;
        float z[VOCAB];
        for (int i = 0; i < VOCAB; i++) z[i] = 4 * rng_unit(rng_next(&rng)) - 2;
        for (int i = 0; i < HISTORY; i++) history[i] = (int32_t)rng_below(&rng, VOCAB + 4) - 2;
        struct bz_sampling p = neutral(round % 2 ? 1.0f : 0);
        p.penalty_window = round % 7 ? rng_below(&rng, HISTORY + 9) : UINT32_MAX;
        p.repeat_penalty = round % 3 ? 0.5f + rng_unit(rng_next(&rng)) : 1;
        p.frequency_penalty = round % 5 ? rng_unit(rng_next(&rng)) - 0.5f : 0;
        p.presence_penalty = round % 4 ? rng_unit(rng_next(&rng)) - 0.5f : 0;
        size_t n = rng_below(&rng, HISTORY + 1);
        CHECK(sampler_draw(&s, &p, z, history, n, NULL, 0, 0, &id, NULL) == BZ_OK);
        int32_t best = 0;
        for (int32_t i = 0; i < VOCAB; i++) {
            float want = penalised(z[i], &p, history, n, i);
            CHECK(s.logits[i] == want);
            if (want > penalised(z[best], &p, history, n, best)) best = i;
        }
        if (p.temperature == 0) CHECK(id == best);
    }
    sampler_close(&s);
}

/* ---- hostile numbers ---- */

/* Whatever the logits are, a draw gives a token that is allowed, or an error when none is. */
static void check_hostile(void)
{
    static const float odd[] = { NAN, INFINITY, -INFINITY, 3e38f, -3e38f, 0, -0.0f, 1e-45f, 1 };
    enum { VOCAB = 7, N_ODD = sizeof odd / sizeof *odd };
    struct sampler s = open_sampler(VOCAB);
    struct rng rng = { 8 };
    for (int round = 0; round < 20000; round++) {
        float z[VOCAB];
        bool any = false;
        for (int i = 0; i < VOCAB; i++) {
            z[i] = odd[rng_below(&rng, round % 3 ? N_ODD : 3)];
            any |= z[i] > -INFINITY;
        }
        struct bz_sampling p = neutral(round % 5 ? 0.7f : 0);
        p.top_k = rng_below(&rng, VOCAB + 2);
        p.top_p = round % 2 ? 1 : 0.9f;
        p.min_p = round % 4 ? 0 : 0.1f;
        int32_t id = draw(&s, &p, z, (uint64_t)round);
        CHECK(any ? id >= 0 && id < VOCAB && z[id] > -INFINITY : id == -1);
        bool infinite = false;
        for (int i = 0; i < VOCAB; i++) infinite |= z[i] == INFINITY;
        if (infinite) CHECK(id >= 0 && z[id] == INFINITY); /* infinitely likely */
    }
    sampler_close(&s);
}

/* ---- a large vocabulary against sorting ---- */

static const float *order_by;

static int by_logit(const void *pa, const void *pb)
{
    int32_t a = *(const int32_t *)pa, b = *(const int32_t *)pb;
    if (order_by[a] != order_by[b]) return order_by[a] > order_by[b] ? -1 : 1;
    return a < b ? -1 : 1;
}

static void check_top_k_sorted(void)
{
    struct sampler s = open_sampler(MAX_VOCAB);
    struct rng rng = { 21 };
    float z[MAX_VOCAB];
    int32_t order[MAX_VOCAB];
    for (uint32_t k = 1; k <= MAX_VOCAB; k = k * 2 + 1) {
        for (int i = 0; i < MAX_VOCAB; i++) { /* few values, so that the border is a tie */
            z[i] = (float)rng_below(&rng, 40) * 0.1f;
            order[i] = i;
        }
        order_by = z;
        qsort(order, MAX_VOCAB, sizeof *order, by_logit);
        struct bz_sampling p = neutral(1);
        p.top_k = k;
        CHECK(draw(&s, &p, z, k) >= 0);
        for (uint32_t i = 0; i < k; i++) CHECK(s.candidates[i].id == order[i]);
    }
    sampler_close(&s);
}

int main(void)
{
    int64_t live = mem_live();
    static const double probabilities[] = { 0.1, 0.4, 0.2, 0.3 }; /* by rank: 1, 3, 2, 0 */
    float z4[4];
    from_probabilities(z4, probabilities, 4);
    struct sampler s = open_sampler(4);
    struct bz_sampling p;

    TEST("temperature 0 takes the best token, and of equals the lowest id")
    {
        p = neutral(0);
        CHECK(draw(&s, &p, z4, 0) == 1);
        CHECK(draw(&s, &p, (const float[]) { 1, 2, 2, 2 }, 5) == 1);
        CHECK(draw(&s, &p, (const float[]) { 0, 0, 0, 0 }, 5) == 0);
        CHECK(draw(&s, &p, (const float[]) { -5, -4, -9, -4 }, 5) == 1);
        p.top_k = 1, p.top_p = 0.1f, p.min_p = 1;
        CHECK(draw(&s, &p, z4, 9) == 1);
    }
    TEST("draws follow softmax(z / temperature)")
    {
        /* 3 degrees of freedom: a true distribution exceeds 31 once in a million times. */
        for (uint64_t seed = 0; seed < 4; seed++) {
            CHECK(chi_square(&s, z4, 4, 1, seed, 20000) < 31);
            CHECK(chi_square(&s, z4, 4, 0.5f, seed, 20000) < 31);
            CHECK(chi_square(&s, z4, 4, 2, seed, 20000) < 31);
        }
        struct sampler large = open_sampler(100);
        float z[100];
        for (int i = 0; i < 100; i++) z[i] = (float)(i * 7 % 31) * 0.1f;
        CHECK(chi_square(&large, z, 100, 1, 1, 50000) < 180); /* 99 degrees: one in a million */
        sampler_close(&large);
    }
    TEST("temperature near 0 and near infinity are the best token and the flat distribution")
    {
        p = neutral(1e-30f);
        CHECK(drawn_set(&s, &p, z4) == 1u << 1);
        CHECK(chi_square(&s, (const float[]) { 0, 0, 0, 0 }, 4, 1, 3, 20000) < 31);
        p = neutral(1e30f);
        CHECK(drawn_set(&s, &p, z4) == 15);
    }
    TEST("top-k keeps exactly the k best, ties to the lower id")
    {
        static const uint32_t want[] = { 15, 2, 10, 14, 15, 15 };
        for (uint32_t k = 0; k < 6; k++) {
            p = neutral(1);
            p.top_k = k;
            CHECK(drawn_set(&s, &p, z4) == want[k]);
        }
        p.top_k = 2;
        CHECK(drawn_set(&s, &p, (const float[]) { 1, 1, 1, 1 }) == 3);
        CHECK(drawn_set(&s, &p, (const float[]) { 0, 1, 1, 1 }) == 6);
    }
    TEST("top-k of a large vocabulary is the head of the sorted list") check_top_k_sorted();
    TEST("top-p keeps the best until their probability reaches p")
    {
        static const struct {
            float top_p;
            uint32_t want;
        } t[] = { { 0.001f, 2 }, { 0.39f, 2 },  { 0.41f, 10 }, { 0.69f, 10 },
                  { 0.71f, 14 }, { 0.89f, 14 }, { 0.91f, 15 }, { 1, 15 } };
        for (size_t i = 0; i < sizeof t / sizeof *t; i++) {
            p = neutral(1);
            p.top_p = t[i].top_p;
            CHECK_MSG(drawn_set(&s, &p, z4) == t[i].want, "top-p %g", (double)t[i].top_p);
        }
    }
    TEST("min-p drops what is less likely than min-p times the best")
    {
        static const struct {
            float min_p;
            uint32_t want;
        } t[] = { { 0, 15 },     { 0.24f, 15 }, { 0.26f, 14 }, { 0.49f, 14 },
                  { 0.51f, 10 }, { 0.74f, 10 }, { 0.76f, 2 },  { 1, 2 } };
        for (size_t i = 0; i < sizeof t / sizeof *t; i++) {
            p = neutral(1);
            p.min_p = t[i].min_p;
            CHECK_MSG(drawn_set(&s, &p, z4) == t[i].want, "min-p %g", (double)t[i].min_p);
        }
    }
    TEST("top-p counts among the k that top-k left, and neither minds the temperature")
    {
        p = neutral(1);
        p.top_p = 0.56f; /* of 0.4 + 0.3 */
        CHECK(drawn_set(&s, &p, z4) == 10);
        p.top_k = 2; /* 0.4 is now 0.57 of what is left */
        CHECK(drawn_set(&s, &p, z4) == 2);
        p = neutral(20);
        p.top_p = 0.71f;
        CHECK(drawn_set(&s, &p, z4) == 14);
        p.top_p = 1, p.min_p = 0.51f;
        CHECK(drawn_set(&s, &p, z4) == 10);
    }
    TEST("penalties are exactly as documented, over the window and nothing else") check_penalties();
    TEST("a penalty moves a draw, and a window of 0 switches it off")
    {
        const int32_t history[] = { 1, 3, 1 };
        int32_t id;
        p = neutral(0);
        p.penalty_window = 3, p.presence_penalty = 5;
        CHECK(!sampler_draw(&s, &p, z4, history, 3, NULL, 0, 0, &id, NULL) && id == 2);
        p.penalty_window = 1; /* only the last: token 1 */
        CHECK(!sampler_draw(&s, &p, z4, history, 3, NULL, 0, 0, &id, NULL) && id == 3);
        p.penalty_window = 0;
        CHECK(!sampler_draw(&s, &p, z4, history, 3, NULL, 0, 0, &id, NULL) && id == 1);
    }
    TEST("a bias is added before anything else; -infinity forbids")
    {
        const struct bz_bias bias[] = { { 1, -INFINITY }, { 0, 3 }, { -1, 9 }, { 4, 9 } };
        p = neutral(0);
        p.bias = bias, p.n_bias = 4; /* ids outside of the vocabulary are not there */
        CHECK(draw(&s, &p, z4, 0) == 0);
        p.temperature = 1;
        p.n_bias = 1;
        CHECK(drawn_set(&s, &p, z4) == 13);
    }
    TEST("suppressed tokens are never drawn, whatever the bias says")
    {
        const struct bz_bias bias[] = { { 1, 100 }, { 1, INFINITY } };
        const int32_t suppress[] = { 1, -7, 99 };
        for (size_t n_bias = 0; n_bias <= 2; n_bias++)
            for (uint64_t i = 0; i < 200; i++) {
                int32_t id = -1;
                p = neutral(i % 2 ? 1.0f : 0);
                p.bias = bias, p.n_bias = n_bias;
                CHECK(!sampler_draw(&s, &p, z4, NULL, 0, suppress, 3, i, &id, NULL));
                CHECK(id >= 0 && id != 1);
            }
    }
    TEST("tokens whose bit of the mask is 0 are never drawn, whatever the bias says")
    {
        const struct bz_bias bias[] = { { 1, 100 } };
        for (uint32_t mask = 1; mask < 16; mask++) {
            p = neutral(1);
            p.mask = &mask;
            CHECK(drawn_set(&s, &p, z4) == mask);
            p.bias = bias, p.n_bias = 1;
            if (!(mask & 2)) CHECK((drawn_set(&s, &p, z4) & ~mask) == 0);
            p.temperature = 0;
            CHECK(mask >> draw(&s, &p, z4, 0) & 1);
        }
        const uint32_t nothing = 0;
        p.mask = &nothing;
        CHECK(draw(&s, &p, z4, 0) == -1);
    }
    TEST("when everything is forbidden there is an error and a sentence")
    {
        const float none[4] = { -INFINITY, -INFINITY, -INFINITY, -INFINITY };
        const int32_t all[] = { 0, 1, 2, 3 };
        for (int hot = 0; hot < 2; hot++) {
            int32_t id = 42;
            struct bz_err err = { "" };
            p = neutral((float)hot);
            CHECK(draw(&s, &p, none, 0) == -1);
            CHECK(sampler_draw(&s, &p, z4, NULL, 0, all, 4, 0, &id, &err) == BZ_ERR_ARGUMENT);
            CHECK(strlen(err.text) > 10 && id == 42);
        }
    }
    TEST("the same seed and position give the same token; others give others")
    {
        int same_seed = 0, next_seed = 0, next_position = 0;
        p = neutral(1);
        for (uint64_t i = 0; i < 1000; i++) {
            p.seed = 7;
            int32_t a = draw(&s, &p, z4, i), b = draw(&s, &p, z4, i), c = draw(&s, &p, z4, i + 1);
            p.seed = 8;
            same_seed += a == b;
            next_position += a == c;
            next_seed += a == draw(&s, &p, z4, i);
        }
        /* Independent draws agree with probability 0.3 (the sum of squares). */
        CHECK(same_seed == 1000);
        CHECK(next_position > 200 && next_position < 400);
        CHECK(next_seed > 200 && next_seed < 400);
    }
    TEST("NaN is never drawn, infinity always, and nothing crashes") check_hostile();
    sampler_close(&s);
    TEST("a failed open frees what it had")
    {
        for (uint64_t k = 1; k <= 3; k++) {
            struct bz_err err = { "" };
            mem_fail_at(k);
            CHECK(sampler_open(&s, 100, &err) == BZ_ERR_MEMORY && err.text[0]);
        }
        mem_fail_at(0);
        CHECK(mem_live() == live);
    }
    return check_done();
}
