/* experts.h - routers, and the experts that they choose */
#ifndef BEZEL_TESTS_OPS_CASES_EXPERTS_H
#define BEZEL_TESTS_OPS_CASES_EXPERTS_H

#include "ops_cases/stream.h"

struct ranked {
    double z;
    uint32_t id;
};

static int better_first(const void *pa, const void *pb)
{
    const struct ranked *a = pa, *b = pb;
    if (isnan(a->z) != isnan(b->z)) return isnan(a->z) ? 1 : -1;
    if (!isnan(a->z) && a->z != b->z) return a->z > b->z ? -1 : 1;
    return a->id < b->id ? -1 : 1;
}

/* One row: ids and weights by sorting all experts. One score that is NaN, or a best one that is
 * infinite, leaves no weight that is a number. */
static void formula_route(double *ids, double *weights, const double *z, uint32_t n_expert,
                          uint32_t n_used)
{
    struct ranked *all = malloc(n_expert * sizeof *all);
    double total = 0;
    for (uint32_t e = 0; e < n_expert; e++) all[e] = (struct ranked) { z[e], e };
    qsort(all, n_expert, sizeof *all, better_first);
    bool numbers = !isnan(all[n_expert - 1].z) && isfinite(all[0].z);
    for (uint32_t j = 0; j < n_used; j++) total += exp(all[j].z - all[0].z);
    for (uint32_t j = 0; j < n_used; j++) {
        ids[j] = all[j].id;
        weights[j] = numbers ? exp(all[j].z - all[0].z) / total : NAN;
    }
    free(all);
}

/* The same from the router's input. */
static void formula_router(double *ids, double *weights, const float *x, const struct mat *w,
                           const struct mat *scale, uint32_t n_used)
{
    uint32_t n = w->w.cols, n_expert = w->w.rows;
    double *u = widen(x, n), *z = malloc(n_expert * sizeof *z);
    formula_norm(u, u, scale->v, n, (double)EPS);
    for (uint32_t i = 0; i < n; i++) u[i] /= sqrt(n);
    formula_linear(z, u, w, 0);
    formula_route(ids, weights, z, n_expert, n_used);
    free(z);
    free(u);
}

/* A scale that makes clear winners. */
static struct mat *router_scale(struct bench *b, uint32_t cols)
{
    float *large = malloc(cols * sizeof *large);
    for (size_t i = 0; i < cols; i++) large[i] = bench_normal(b) * sqrtf((float)cols);
    struct mat *scale = bench_weight_of(b, QUANT_F32, cols, 1, 1, large);
    free(large);
    return scale;
}

/* The matrix of a router. */
static struct mat *router_matrix(struct bench *b, const struct op_case *c, uint32_t format)
{
    if (!c->tied && !c->broken) return bench_weight(b, format, c->cols, c->n_expert, 1);
    float *rows = malloc((size_t)c->n_expert * c->cols * sizeof *rows);
    for (size_t i = 0; i < (size_t)c->n_expert * c->cols; i++)
        rows[i] = !(i / c->cols % 3) ? bench_normal(b) : c->tied ? rows[i - c->cols] : NAN;
    struct mat *w = bench_weight_of(b, format, c->cols, c->n_expert, 1, rows);
    free(rows);
    return w;
}

/* Row t's scores. tied: few values, 0 with both signs. broken: by turns a row without a number,
 * with NaN of both signs among numbers, with infinities below the best, with infinite best ones,
 * with nothing but -infinity, and a whole one. */
static void put_scores(struct bench *b, const struct op_case *c, float *row, uint32_t t)
{
    for (uint32_t e = 0; e < c->n_expert; e++) {
        uint32_t dice = rng_below(&b->rng, 3);
        float z = row[e], nan = dice == 1 ? NAN : -NAN;
        if (c->tied) z = copysignf(roundf(fabsf(z)), z);
        if (c->broken && t % 6 == 0) z = nan;
        if (c->broken && t % 6 == 1 && dice) z = nan;
        if (c->broken && t % 6 == 2 && dice) z = -INFINITY;
        if (c->broken && t % 6 == 3 && !dice) z = INFINITY;
        if (c->broken && t % 6 == 4) z = -INFINITY;
        row[e] = z;
    }
}

static void case_route(struct bench *b, const struct op_case *c)
{
    struct act *scores = bench_random(b, c->rows, c->n_expert);
    struct act *ids = bench_blank(b, c->rows, c->n_used),
               *weights = bench_blank(b, c->rows, c->n_used);
    for (uint32_t t = 0; t < c->rows; t++) put_scores(b, c, scores->v + (size_t)t * c->n_expert, t);
    op_write(&b->run, &scores->t, 0, scores->v, c->rows);
    for (uint32_t i = 0; i < c->rows * c->n_used; i++) weights->v[i] = 7; /* NaN is a result here */
    op_write(&b->run, &weights->t, 0, weights->v, c->rows);
    struct routing out = { ids->t, weights->t };
    op_route(&b->run, &out, &scores->t);
    bench_result(b, &out.ids, true);
    bench_result(b, &out.weights, false);
    double *want = bench_formula(b), *z = widen(scores->v, (size_t)c->rows * c->n_expert);
    for (uint32_t t = 0; want && t < c->rows; t++)
        formula_route(want + (size_t)t * c->n_used, want + (size_t)(c->rows + t) * c->n_used,
                      z + (size_t)t * c->n_expert, c->n_expert, c->n_used);
    free(z);
}

/* clang-format off */
static const struct op_case route_cases[] = {
    /* seed rows cols format    nmse   why this case */
    { 223,    1,    1, F32,        1e-14, .why = "decode", .n_expert = 8, .n_used = 3 },
    { 224,   65,    1, F32,        1e-14, .why = "many rows, 128 experts",
      .n_expert = 128, .n_used = 8 },
    { 225,    5,    1, F32,        1e-14, .why = "all used", .n_expert = 70, .n_used = 70 },
    { 401,    2,    1, F32,        1e-14, .why = "one expert", .n_expert = 1, .n_used = 1 },
    { 402,  256,    1, F32,        1e-14, .why = "a canvas as published",
      .n_expert = 128, .n_used = 8 },
    { 403,  512,    1, F32,        1e-14, .why = "the most of all",
      .n_expert = 1024, .n_used = 32 },
    { 404,   17,    1, F32,        1e-14, .why = "one more than a workgroup",
      .n_expert = 257, .n_used = 1 },
    { 405,    3,    1, F32,        1e-14, .why = "one less than fours", .n_expert = 1023,
      .n_used = 31 },
    { 406,   33,    1, F32,        1e-14, .why = "of equals the lower index, 0 with both signs",
      .n_expert = 1024, .n_used = 32, .tied = true },
    { 407,   12,    1, F32,        1e-14, .why = "NaN and infinities",
      .n_expert = 130, .n_used = 8, .broken = true },
    { 408,   60,    1, F32,        1e-14, .why = "NaN and infinities among equals, to the last",
      .n_expert = 66, .n_used = 66, .tied = true, .broken = true },
    { 409,    6,    1, F32,        1e-14, .why = "NaN and infinities, the most of all",
      .n_expert = 1024, .n_used = 32, .tied = true, .broken = true },
};
/* clang-format on */

/* A router of x: its scores, the experts that it chooses, and what they read of x. */
struct routed {
    struct mat *w, *scale, *norm;
    struct chosen by;
    struct value *read;
};

static void route(struct bench *b, const struct op_case *c, struct routed *r, struct value *x)
{
    struct tape *t = &b->tape;
    struct value *u = tape_rms_norm(t, x, &r->scale->w);
    u = tape_linear(t, u, &r->w->w);
    u = tape_times(t, u, 1.0f / sqrtf((float)c->cols));
    r->by = tape_route(t, u, c->n_used);
    r->read = tape_rms_norm(t, x, &r->norm->w);
}

/* The smallest experts possible: a router is part of a tape where experts read it. Their result is
 * not compared. */
static void small_experts(struct bench *b, const struct op_case *c, const struct routed *r)
{
    enum { N_FF = 8, OUT = 8 };
    struct mat *gate_up = bench_weight(b, QUANT_Q8_0, c->cols, 2 * N_FF, c->n_expert);
    struct mat *down = bench_weight(b, F32, N_FF, OUT, c->n_expert), *none = bench_absent(b);
    struct act *y = bench_blank(b, c->rows, OUT);
    const struct experts e = { &gate_up->w, &none->w, &none->w, &down->w, &none->w };
    struct value *out = tape_experts(&b->tape, r->read, r->by, &e);
    bench_keep(b, out, y);
}

static void case_router(struct bench *b, const struct op_case *c)
{
    struct act *x = bench_random(b, c->rows, c->cols), *ids = bench_blank(b, c->rows, c->n_used);
    struct act *weights = bench_blank(b, c->rows, c->n_used);
    struct routed r = { router_matrix(b, c, c->format), NULL, NULL, .read = NULL };
    r.scale = router_scale(b, c->cols);
    r.norm = bench_weight(b, QUANT_F32, c->cols, 1, 1);
    for (uint32_t i = 0; i < c->n_lora; i++) bench_lora(b, r.w, c->rank + i);
    bench_tape(b, c->rows);
    struct value *in = bench_input(b, x);
    route(b, c, &r, in);
    small_experts(b, c, &r);
    bench_keep(b, r.by.ids, ids);
    bench_keep(b, r.by.weights, weights);
    bench_run(b, RULE_BIT(ROUTER), 0);
    bench_result(b, &ids->t, true);
    bench_result(b, &weights->t, false);
    double *want = bench_formula(b);
    for (uint32_t t = 0; want && t < c->rows; t++)
        formula_router(want + (size_t)t * c->n_used, want + (size_t)(c->rows + t) * c->n_used,
                       x->v + (size_t)t * c->cols, r.w, r.scale, c->n_used);
}

/* clang-format off */
static const struct op_case router_cases[] = {
    /* seed rows cols format    nmse   why this case */
    { 226,    1,   64, F32,        1e-15, .why = "decode", .n_expert = 8, .n_used = 3 },
    { 227,   65,   96, F32,        1e-15, .why = "many rows, all used",
      .n_expert = 5, .n_used = 5 },
    { 228,    5,  256, QUANT_Q8_0, 1e-15, .why = "128 experts", .n_expert = 128, .n_used = 8 },
    { 229,    2,   64, F32,        1e-15, .why = "of equals the lower index",
      .n_expert = 1024, .n_used = 32, .tied = true },
    { 230,    3,   64, F32,        1e-15, .why = "distinct experts, what is no number last",
      .n_expert = 16, .n_used = 11, .broken = true },
    { 231,    4,   64, F32,        1e-15, .why = "adapted",
      .n_expert = 16, .n_used = 2, .rank = 8, .n_lora = 2 },
};
/* clang-format on */

/* A product of the residual's norm, and a router that reads the residual itself. */
static void case_linear_router(struct bench *b, const struct op_case *c)
{
    struct stream s = make_stream(b, c, true, true);
    struct act *y = bench_blank(b, c->rows, c->out), *ids = bench_blank(b, c->rows, c->n_used);
    struct act *weights = bench_blank(b, c->rows, c->n_used);
    struct act *read = bench_blank(b, c->rows, c->cols);
    struct mat *w = bench_weight(b, c->format, c->cols, c->out, 1), *m = router_matrix(b, c, F32);
    struct mat *scale = router_scale(b, c->cols), *norm = bench_weight(b, F32, c->cols, 1, 1);
    struct routed r = { m, scale, norm, .read = NULL };
    for (uint32_t i = 0; i < c->n_lora; i++) bench_lora(b, i % 2 ? m : w, c->rank + i);
    bench_tape(b, c->rows);
    struct value *x = residual_input(b, c, &s), *h = normed(b, &s, x);
    h = tape_linear(&b->tape, h, &w->w);
    bench_keep(b, h, y);
    route(b, c, &r, x);
    small_experts(b, c, &r);
    bench_keep(b, r.read, read);
    bench_keep(b, r.by.ids, ids);
    bench_keep(b, r.by.weights, weights);
    bench_run(b, RULE_BIT(LINEAR_ROUTER), 0);
    stream_result(b, c, &s);
    bench_result(b, &y->t, false);
    bench_result(b, &read->t, false);
    bench_result(b, &ids->t, true);
    bench_result(b, &weights->t, false);
    double *want = bench_formula(b);
    if (!want) return;
    double *in = formula_stream(&s, c, want), *to = want + (size_t)c->rows * c->cols;
    double *state = to + (size_t)c->rows * c->out, *chosen = state + (size_t)c->rows * c->cols;
    float *v = malloc(c->cols * sizeof *v);
    for (uint32_t k = 0; k < c->rows; k++) {
        const double *xk = want + (size_t)k * c->cols;
        for (uint32_t i = 0; i < c->cols; i++) v[i] = (float)xk[i];
        formula_linear(to + (size_t)k * c->out, in + (size_t)k * c->cols, w, 0);
        formula_norm(state + (size_t)k * c->cols, xk, norm->v, c->cols, (double)EPS);
        formula_router(chosen + (size_t)k * c->n_used, chosen + (size_t)(c->rows + k) * c->n_used,
                       v, m, scale, c->n_used);
    }
    free(v);
    free(in);
}

/* clang-format off */
static const struct op_case linear_router_cases[] = {
    /* seed rows cols format    nmse   why this case */
    { 232,    1,  256, EVERY,      1e-12, .why = "decode, every format",
      .out = 37, .n_expert = 8, .n_used = 3 },
    { 233,    1, 2816, QUANT_Q8_0, 1e-12, .why = "as long as published rows, in five dispatches",
      .out = 36, .n_expert = 128, .n_used = 8, .tiling = 2 },
    { 234,    3,  256, QUANT_Q4_K, 1e-12, .why = "a few rows, in five dispatches",
      .out = 300, .n_expert = 5, .n_used = 5, .tiling = 3 },
    { 235,    1, 4096, QUANT_Q4_0, 1e-12, .why = "more runs than experts' workgroups have threads",
      .out = 33, .n_expert = 1, .n_used = 1 },
    { 236,    2,  256, QUANT_Q6_K, 1e-12, .why = "of equals the lower index, in five dispatches",
      .out = 40, .n_expert = 71, .n_used = 7, .tied = true },
    { 237,    1,  256, QUANT_Q8_0, 1e-12, .why = "adapters on both",
      .out = 40, .n_expert = 8, .n_used = 2, .rank = 4, .n_lora = 2 },
    { 238,   70,   96, QUANT_Q8_0, 1e-12, .why = "prefill", .out = 68, .n_expert = 8, .n_used = 2 },
    { 410,    2,   96, QUANT_Q8_0, 1e-12, .why = "what is no number last",
      .out = 36, .n_expert = 16, .n_used = 7, .broken = true },
};
/* clang-format on */

/* y += weight * down(gelu(gate x) * up x) */
static void formula_expert(double *y, const double *x, struct mat *const w[4], uint32_t expert,
                           double weight)
{
    uint32_t n_ff = w[3]->w.cols, n = w[3]->w.rows;
    double *h = malloc(2 * n_ff * sizeof *h), *out = malloc(n * sizeof *out);
    if (w[0]->v) {
        formula_linear(h, x, w[0], expert);
    } else {
        formula_linear(h, x, w[1], expert);
        formula_linear(h + n_ff, x, w[2], expert);
    }
    for (uint32_t i = 0; i < n_ff; i++) h[i] = formula_gelu(h[i]) * h[n_ff + i];
    formula_linear(out, h, w[3], expert);
    for (uint32_t i = 0; i < n; i++) y[i] += weight * out[i];
    free(h);
    free(out);
}

/* w: gate and up in one, gate, up, down. at 1: down has a format of its own, as in published
 * files. */
static void expert_weights(struct bench *b, const struct op_case *c, struct mat *w[4])
{
    uint32_t n = c->n_expert;
    w[0] = c->split ? bench_absent(b) : bench_weight(b, c->format, c->cols, 2 * c->n_ff, n);
    w[1] = c->split ? bench_weight(b, c->format, c->cols, c->n_ff, n) : bench_absent(b);
    w[2] = c->split ? bench_weight(b, c->format, c->cols, c->n_ff, n) : bench_absent(b);
    w[3] = bench_weight(b, c->at ? QUANT_Q5_0 : c->format, c->n_ff, c->out, n);
    for (uint32_t i = 0; i < c->n_lora; i++)
        bench_lora(b, w[c->split ? 1 + i % 3 : i % 2 ? 0 : 3], c->rank + i);
}

/* The experts read the norm that the router's group writes. */
static void case_router_experts(struct bench *b, const struct op_case *c)
{
    struct act *x = bench_random(b, c->rows, c->cols), *y = bench_blank(b, c->rows, c->out);
    struct act *read = bench_blank(b, c->rows, c->cols);
    struct mat *w[4], *router = router_matrix(b, c, F32);
    struct mat *scale = router_scale(b, c->cols), *norm = bench_weight(b, QUANT_F32, c->cols, 1, 1);
    struct routed r = { router, scale, norm, .read = NULL };
    expert_weights(b, c, w);
    struct mat *factor = c->plain ? bench_absent(b) : bench_weight(b, QUANT_F32, c->n_expert, 1, 1);
    const struct experts e = { &w[0]->w, &w[1]->w, &w[2]->w, &w[3]->w, &factor->w };
    bench_tape(b, c->rows);
    struct value *v = bench_input(b, x);
    route(b, c, &r, v);
    bench_keep(b, r.read, read);
    v = tape_experts(&b->tape, r.read, r.by, &e);
    bench_keep(b, v, y);
    bench_run(b, RULE_BIT(ROUTER_EXPERTS), 0);
    bench_result(b, &read->t, false);
    bench_result(b, &y->t, false);
    double *want = bench_formula(b), *chosen = malloc(2 * c->n_used * sizeof *chosen);
    for (uint32_t t = 0; want && t < c->rows; t++) {
        const float *in = x->v + (size_t)t * c->cols;
        double *row = want + (size_t)t * c->cols;
        double *out = want + (size_t)c->rows * c->cols + (size_t)t * c->out;
        for (uint32_t i = 0; i < c->cols; i++) row[i] = (double)in[i];
        for (uint32_t i = 0; i < c->out; i++) out[i] = 0;
        formula_norm(row, row, norm->v, c->cols, (double)EPS);
        formula_router(chosen, chosen + c->n_used, in, router, scale, c->n_used);
        for (uint32_t i = 0; i < c->n_used; i++) {
            uint32_t expert = (uint32_t)chosen[i];
            double weight = chosen[c->n_used + i] * (c->plain ? 1 : (double)factor->v[expert]);
            formula_expert(out, row, w, expert, weight);
        }
    }
    free(chosen);
}

/* clang-format off */
static const struct op_case router_experts_cases[] = {
    /* seed rows cols format    nmse   why this case */
    { 239,    1,  256, QUANT_Q4_K, 1e-12,
      .why = "decode, as published files have it, in three dispatches", .out = 70, .n_expert = 8,
      .n_used = 3, .n_ff = 64, .at = 1 },
    { 240,    1,  512, QUANT_Q4_0, 1e-12, .why = "single rows of down, in three dispatches",
      .out = 33, .n_expert = 8, .n_used = 2, .n_ff = 32, .tiling = 1 },
    { 241,    5,  128, QUANT_Q8_0, 1e-12,
      .why = "a few rows, no scale, pairs of rows of down, in four dispatches", .out = 36,
      .n_expert = 7, .n_used = 2, .n_ff = 96, .tiling = 2, .plain = true },
    { 242,    1,  256, QUANT_Q6_K, 1e-12,
      .why = "gate and up apart, four rows of down together, in three dispatches", .out = 37,
      .n_expert = 3, .n_used = 2, .n_ff = 256, .tiling = 3, .split = true },
    { 243,    2,  256, QUANT_Q5_K, 1e-12, .why = "gate and up apart, in three dispatches",
      .out = 40, .n_expert = 4, .n_used = 4, .n_ff = 256, .split = true },
    { 244,    1,  256, QUANT_Q8_0, 1e-12, .why = "128 experts, in three dispatches",
      .out = 36, .n_expert = 128, .n_used = 8, .n_ff = 32 },
    { 245,    2,   64, QUANT_Q4_0, 1e-12,
      .why = "as many experts as a workgroup chooses from, in three dispatches", .out = 36,
      .n_expert = 256, .n_used = 32, .n_ff = 32 },
    { 246,    3,   64, QUANT_Q4_0, 1e-12,
      .why = "more rows than readers choose for, in four dispatches", .out = 36, .n_expert = 8,
      .n_used = 2, .n_ff = 32 },
    { 247,    1,   64, QUANT_Q4_0, 1e-12, .why = "one more, in four dispatches",
      .out = 36, .n_expert = 257, .n_used = 5, .n_ff = 32 },
    { 248,    2,   64, QUANT_Q8_0, 1e-12, .why = "of equals the lower index, in three dispatches",
      .out = 36, .n_expert = 71, .n_used = 5, .n_ff = 32, .tied = true },
    { 249,    1,   64, QUANT_Q8_0, 1e-12, .why = "a small workgroup, all used, in three dispatches",
      .out = 36, .n_expert = 70, .n_used = 70, .n_ff = 32 },
    { 250,    1,  128, QUANT_Q8_0, 1e-12, .why = "an adapter on down",
      .out = 40, .n_expert = 4, .n_used = 2, .n_ff = 96, .rank = 4, .n_lora = 1 },
    { 251,    1,  128, QUANT_Q8_0, 1e-12, .why = "adapters on both",
      .out = 40, .n_expert = 4, .n_used = 2, .n_ff = 96, .rank = 4, .n_lora = 2 },
    { 252,    3,  136, QUANT_F16,  1e-12, .why = "floats, columns that are no runs of sixteen",
      .out = 40, .n_expert = 4, .n_used = 2, .n_ff = 24 },
    { 253,   70,   64, QUANT_Q4_0, 1e-12, .why = "prefill, grouped",
      .out = 40, .n_expert = 4, .n_used = 2, .n_ff = 32 },
    { 411,    2,   64, QUANT_Q4_0, 1e-12, .why = "no numbers, in three dispatches",
      .out = 36, .n_expert = 16, .n_used = 7, .n_ff = 32, .broken = true },
    { 412,   70,   64, QUANT_Q4_0, 1e-12, .why = "no numbers, grouped",
      .out = 40, .n_expert = 16, .n_used = 7, .n_ff = 32, .broken = true },
};
/* clang-format on */

static void case_experts(struct bench *b, const struct op_case *c)
{
    struct act *x = bench_random(b, c->rows, c->cols), *y = bench_blank(b, c->rows, c->out);
    struct act *ids = bench_ids(b, c->rows, c->n_used, c->n_expert);
    struct act *weights = bench_random(b, c->rows, c->n_used);
    struct mat *w[4];
    expert_weights(b, c, w);
    struct mat *scale = c->plain ? bench_absent(b) : bench_weight(b, QUANT_F32, c->n_expert, 1, 1);
    struct routing routing = { ids->t, weights->t };
    struct experts e = { &w[0]->w, &w[1]->w, &w[2]->w, &w[3]->w, &scale->w };
    op_experts(&b->run, &y->t, &x->t, &routing, &e);
    bench_result(b, &y->t, false);
    double *want = bench_formula(b), *in = widen(x->v, (size_t)c->rows * c->cols);
    for (size_t i = 0; want && i < b->n_got; i++) want[i] = 0;
    for (uint32_t i = 0; want && i < c->rows * c->n_used; i++) {
        uint32_t t = i / c->n_used, expert = (uint32_t)act_id(ids, i);
        double weight = (double)weights->v[i] * (c->plain ? 1 : (double)scale->v[expert]);
        formula_expert(want + (size_t)t * c->out, in + (size_t)t * c->cols, w, expert, weight);
    }
    free(in);
}

/* clang-format off */
static const struct op_case experts_cases[] = {
    /* seed rows cols format    nmse   why this case */
    { 254,    1,   64, QUANT_BF16, 1e-12, .why = "decode, fused",
      .out = 64, .n_expert = 8, .n_used = 3, .n_ff = 32 },
    { 255,   65,   64, QUANT_Q8_0, 1e-12, .why = "rows grouped by expert",
      .out = 96, .n_expert = 8, .n_used = 3, .n_ff = 32 },
    { 256,    5,  256, QUANT_Q4_K, 1e-12, .why = "gate and up apart",
      .out = 31, .n_expert = 4, .n_used = 2, .n_ff = 256, .split = true },
    { 257,    4,   32, F32,        1e-12, .why = "no scale",
      .out = 33, .n_expert = 3, .n_used = 1, .n_ff = 7, .plain = true, .cpu_only = true },
    { 258,    3,   32, F32,        1e-12, .why = "apart, no scale",
      .out = 5, .n_expert = 2, .n_used = 2, .n_ff = 33, .split = true, .plain = true,
      .cpu_only = true },
    { 259,    5,   32, QUANT_Q4_0, 1e-12, .why = "an adapter on down",
      .out = 32, .n_expert = 4, .n_used = 2, .n_ff = 32, .rank = 8, .n_lora = 1 },
    { 260,    4,   64, QUANT_Q5_0, 1e-12, .why = "adapters on both",
      .out = 32, .n_expert = 4, .n_used = 3, .n_ff = 64, .rank = 3, .n_lora = 2 },
    { 261,    1,   64, QUANT_Q8_0, 1e-12, .why = "decode, four adapters on gate, up and down",
      .out = 36, .n_expert = 4, .n_used = 2, .n_ff = 32, .rank = 5, .n_lora = 4, .split = true },
    { 262,   65,   64, QUANT_Q8_0, 1e-12, .why = "grouped, three adapters on both",
      .out = 68, .n_expert = 4, .n_used = 2, .n_ff = 64, .rank = 7, .n_lora = 3 },
    { 263,   70,   32, QUANT_Q4_0, 1e-12, .why = "grouped, adapters on gate, up and down",
      .out = 36, .n_expert = 2, .n_used = 2, .n_ff = 32, .rank = 16, .n_lora = 3, .split = true },
    { 264,   65,  256, QUANT_Q4_K, 1e-12, .why = "grouped, as published files have it",
      .out = 36, .n_expert = 5, .n_used = 2, .n_ff = 256 },
    { 265,   20,  256, QUANT_Q6_K, 1e-12, .why = "grouped, a format of three parts",
      .out = 36, .n_expert = 5, .n_used = 2, .n_ff = 256 },
    { 266,   40,   64, QUANT_Q8_0, 1e-12, .why = "grouped, more slots of one expert than a tile",
      .out = 68, .n_expert = 2, .n_used = 2, .n_ff = 96 },
    { 267,   33,   96, QUANT_Q5_0, 1e-12, .why = "grouped, gate and up apart, no scale",
      .out = 100, .n_expert = 7, .n_used = 3, .n_ff = 32, .split = true, .plain = true },
    { 268,    9,   64, F32,        1e-12, .why = "grouped, all slots one expert's",
      .out = 64, .n_expert = 1, .n_used = 1, .n_ff = 40 },
    { 269,  130,   32, QUANT_Q4_0, 1e-12, .why = "grouped, more experts than a thread counts",
      .out = 32, .n_expert = 300, .n_used = 10, .n_ff = 32 },
    { 270,    2,   32, F32,        1e-12, .why = "a row names an expert twice",
      .out = 8, .n_expert = 1, .n_used = 2, .n_ff = 16 },
};
/* clang-format on */

#endif
