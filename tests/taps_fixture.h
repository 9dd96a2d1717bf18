/* taps_fixture.h - what a network computes, tap by tap, beside what the transformers library
 * computed. tools/golden/README.md says how the files were made.
 */
#ifndef BEZEL_TESTS_TAPS_FIXTURE_H
#define BEZEL_TESTS_TAPS_FIXTURE_H

#include <math.h>
#include <stdio.h>

#include "base/mem.h"
#include "check.h"
#include "io/gguf.h"
#include "ops/ops.h"

/* Largest difference allowed, relative to the tap's rms. Half a unit in the last place on every
 * weight moves the worst logit by 3e-5 of its rms; the mildest real mistake tried moves a tap by
 * 5e-2. */
#define TAP_TOLERANCE   1e-4
#define LOGIT_TOLERANCE 2e-4 /* absolute */

struct golden {
    struct gguf taps;
    const struct gguf_kv *rows; /* positions stored */
    char prefix[16];            /* of the taps' names: "step.3." */
    int n_seen, n_bad;
    char first_bad[160];
    double worst_logit;
    uint32_t logit_row; /* next position of logits */
};

/* Stored values of a tap; NULL when the reference has no such tap. */
static inline const float *stored(const struct golden *g, const char *name, uint64_t *cols,
                                  uint64_t *rows)
{
    char full[80];
    snprintf(full, sizeof full, "%s%s", g->prefix, name);
    const struct gguf_tensor *t = gguf_tensor_find(&g->taps, full);
    if (!t) return NULL;
    *cols = t->ne[0];
    *rows = t->ne[1];
    return source_map(&g->taps.sources[t->shard], t->offset, t->n_bytes);
}

static inline void compare(struct golden *g, const char *name, const float *got,
                           uint64_t got_stride)
{
    uint64_t cols = 0, rows = 0;
    const float *want = stored(g, name, &cols, &rows);
    if (!want) return;
    double sum = 0, worst = 0;
    for (uint64_t i = 0; i < rows; i++) {
        int64_t row = (int64_t)i;
        gguf_at_i64(g->rows, i, &row);
        for (uint64_t j = 0; j < cols; j++) {
            double w = (double)want[i * cols + j];
            double d = fabs((double)got[(uint64_t)row * got_stride + j] - w);
            sum += w * w;
            if (!(d <= worst)) worst = d;
        }
    }
    double rms = sqrt(sum / (double)(rows * cols));
    g->n_seen++;
    if (worst <= TAP_TOLERANCE * rms) return;
    if (g->n_bad++ == 0)
        snprintf(g->first_bad, sizeof g->first_bad, "%s%s: off by %.3g, rms %.3g", g->prefix, name,
                 worst, rms);
}

/* The reference stores routing as a row of weights over all experts. */
static inline void compare_routing(struct golden *g, const char *prefix, const struct routing *r,
                                   uint32_t n_expert)
{
    char name[64];
    float *dense = mem_alloc((size_t)r->ids.rows * n_expert, sizeof *dense);
    const int32_t *ids = r->ids.mem;
    const float *weights = r->weights.mem;
    for (size_t i = 0; i < (size_t)r->ids.rows * r->ids.cols; i++)
        dense[i / r->ids.cols * n_expert + (size_t)ids[i]] = weights[i];
    snprintf(name, sizeof name, "%srouter", prefix);
    compare(g, name, dense, n_expert);
    mem_free(dense);
}

struct tap_ctx {
    struct golden *g;
    struct routing routing; /* what was shown of it so far */
    uint32_t n_expert;
};

static inline void on_tap(void *ctx, const char *name, int layer, const struct tensor *x)
{
    struct tap_ctx *c = ctx;
    char prefix[24] = "", full[64];
    if (layer >= 0) snprintf(prefix, sizeof prefix, "blk.%d.", layer);
    if (strcmp(name, "router_ids") == 0) {
        c->routing.ids = *x;
    } else if (strcmp(name, "router_weights") == 0) {
        c->routing.weights = *x;
        compare_routing(c->g, prefix, &c->routing, c->n_expert);
    } else if (strcmp(name, "logits") != 0) {
        snprintf(full, sizeof full, "%s%s", prefix, name);
        compare(c->g, full, x->mem, x->cols);
    }
}

#endif
