#include "text/sampler.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "base/rng.h"

enum bz_status sampler_open(struct sampler *out, uint32_t n_vocab, struct bz_err *err)
{
    struct sampler s = { .n_vocab = n_vocab };
    s.candidates = mem_alloc(n_vocab, sizeof *s.candidates);
    s.logits = mem_alloc(n_vocab, sizeof *s.logits);
    s.counts = mem_alloc(n_vocab, sizeof *s.counts);
    if (!s.candidates || !s.logits || !s.counts) {
        sampler_close(&s);
        return fail_memory(err, (uint64_t)n_vocab * 16);
    }
    *out = s;
    return BZ_OK;
}

void sampler_close(struct sampler *s)
{
    mem_free(s->candidates);
    mem_free(s->logits);
    mem_free(s->counts);
    *s = (struct sampler) { 0 };
}

/* ---- step 1: mask, bias and suppression; step 2: penalties ---- */

static void forbid(struct sampler *s, const uint32_t *mask)
{
    for (uint32_t i = 0; i < s->n_vocab; i++)
        if (!(mask[i / 32] >> i % 32 & 1)) s->logits[i] = -INFINITY;
}

static void add_bias(struct sampler *s, const struct bz_sampling *p, const int32_t *suppress,
                     size_t n_suppress)
{
    for (size_t i = 0; i < n_suppress; i++)
        if ((uint32_t)suppress[i] < s->n_vocab) s->logits[suppress[i]] = -INFINITY;
    for (size_t i = 0; i < p->n_bias; i++)
        if ((uint32_t)p->bias[i].id < s->n_vocab) s->logits[p->bias[i].id] += p->bias[i].add;
}

static void penalise(struct sampler *s, const struct bz_sampling *p, const int32_t *recent,
                     size_t n)
{
    for (size_t i = 0; i < n; i++)
        if ((uint32_t)recent[i] < s->n_vocab) s->counts[recent[i]]++;
    for (size_t i = 0; i < n; i++) {
        if ((uint32_t)recent[i] >= s->n_vocab || !s->counts[recent[i]]) continue;
        float *z = &s->logits[recent[i]];
        *z = *z > 0 ? *z / p->repeat_penalty : *z * p->repeat_penalty;
        *z -= (float)s->counts[recent[i]] * p->frequency_penalty + p->presence_penalty;
        s->counts[recent[i]] = 0; /* each token once; and the table is clean again */
    }
}

/* The largest logit's index, the lowest of equals; -1 when all are forbidden or not numbers. */
static int32_t best_of(const float *z, uint32_t n)
{
    int32_t best = -1;
    float top = -INFINITY;
    for (uint32_t i = 0; i < n; i++)
        if (z[i] > top) {
            top = z[i];
            best = (int32_t)i;
        }
    return best;
}

/* ---- step 3: the k best, sorted ---- */

/* Better first: by logit, then by lower id. */
static int compare(const void *pa, const void *pb)
{
    const struct sampler_candidate *a = pa, *b = pb;
    if (a->logit != b->logit) return a->logit > b->logit ? -1 : 1;
    return (a->id > b->id) - (a->id < b->id);
}

/* Is candidate a better than b? */
static bool better(struct sampler_candidate a, struct sampler_candidate b)
{
    return compare(&a, &b) < 0;
}

/* Sink the root of a heap whose top is the worst of the kept. */
static void sink(struct sampler_candidate *heap, uint32_t n)
{
    uint32_t at = 0;
    for (;;) {
        uint32_t child = 2 * at + 1;
        if (child >= n) return;
        if (child + 1 < n && better(heap[child], heap[child + 1])) child++;
        if (!better(heap[at], heap[child])) return;
        struct sampler_candidate t = heap[at];
        heap[at] = heap[child];
        heap[child] = t;
        at = child;
    }
}

static void rise(struct sampler_candidate *heap, uint32_t at)
{
    while (at > 0 && better(heap[(at - 1) / 2], heap[at])) {
        struct sampler_candidate t = heap[at];
        heap[at] = heap[(at - 1) / 2];
        heap[(at - 1) / 2] = t;
        at = (at - 1) / 2;
    }
}

/* The k best of the logits, best first; returns how many (forbidden ones do not count). */
static uint32_t take_best(struct sampler *s, uint32_t k)
{
    struct sampler_candidate *heap = s->candidates;
    uint32_t n = 0;
    for (uint32_t i = 0; i < s->n_vocab; i++) {
        struct sampler_candidate c = { (int32_t)i, s->logits[i] };
        if (!(c.logit > -INFINITY)) continue; /* forbidden, or not a number */
        if (n < k) {
            heap[n] = c;
            rise(heap, n++);
        } else if (better(c, heap[0])) {
            heap[0] = c;
            sink(heap, n);
        }
    }
    qsort(heap, n, sizeof *heap, compare);
    return n;
}

/* How likely c is, as a fraction of the best. Equal logits are 1 (infinity - infinity is NaN). */
static double likelihood(struct sampler_candidate c, struct sampler_candidate best,
                         float temperature)
{
    return c.logit == best.logit ? 1 : exp((double)((c.logit - best.logit) / temperature));
}

/* ---- steps 4 and 5: top-p and min-p, both on the distribution at temperature 1 ---- */

static uint32_t cut_unlikely(const struct sampler_candidate *c, uint32_t n, float top_p,
                             float min_p)
{
    if (top_p < 1) {
        double total = 0, sum = 0;
        for (uint32_t i = 0; i < n; i++) total += likelihood(c[i], c[0], 1);
        uint32_t kept = 0;
        while (kept < n && (kept == 0 || sum < (double)top_p * total))
            sum += likelihood(c[kept++], c[0], 1);
        n = kept;
    }
    if (min_p > 0) {
        uint32_t kept = 1;
        while (kept < n && likelihood(c[kept], c[0], 1) >= (double)min_p) kept++;
        n = kept;
    }
    return n;
}

/* ---- step 6: temperature and the draw ---- */

static int32_t draw_one(const struct sampler_candidate *c, uint32_t n, float temperature, float u)
{
    double total = 0, sum = 0;
    for (uint32_t i = 0; i < n; i++) total += likelihood(c[i], c[0], temperature);
    for (uint32_t i = 0; i < n; i++) {
        sum += likelihood(c[i], c[0], temperature);
        if ((double)u * total < sum) return c[i].id;
    }
    return c[n - 1].id; /* rounding only */
}

enum bz_status sampler_draw(struct sampler *s, const struct bz_sampling *p, const float *logits,
                            const int32_t *history, size_t n_history, const int32_t *suppress,
                            size_t n_suppress, uint64_t draw, int32_t *id, struct bz_err *err)
{
    memcpy(s->logits, logits, s->n_vocab * sizeof *logits);
    if (p->mask) forbid(s, p->mask);
    add_bias(s, p, suppress, n_suppress);
    size_t n_recent = n_history < p->penalty_window ? n_history : p->penalty_window;
    bool neutral = p->repeat_penalty == 1 && p->frequency_penalty == 0 && p->presence_penalty == 0;
    if (n_recent && !neutral) penalise(s, p, history + n_history - n_recent, n_recent);

    if (p->temperature <= 0) {
        int32_t best = best_of(s->logits, s->n_vocab);
        if (best < 0) return fail(err, BZ_ERR_ARGUMENT, "every token is forbidden");
        *id = best;
        return BZ_OK;
    }
    uint32_t k = p->top_k && p->top_k < s->n_vocab ? p->top_k : s->n_vocab;
    uint32_t n = take_best(s, k);
    if (n == 0) return fail(err, BZ_ERR_ARGUMENT, "every token is forbidden");
    n = cut_unlikely(s->candidates, n, p->top_p, p->min_p);
    *id = draw_one(s->candidates, n, p->temperature, rng_unit(rng_at(p->seed, draw)));
    return BZ_OK;
}
