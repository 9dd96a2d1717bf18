/* optional.h - the ops of towers and of a canvas (ops/ops_optional.h), which no GPU has yet */
#ifndef BEZEL_TESTS_OPS_CASES_OPTIONAL_H
#define BEZEL_TESTS_OPS_CASES_OPTIONAL_H

#include "ops_cases/case.h"

/* ---- attention: cols is the head size ---- */

/* i32: how many rows after row t are of its span: of `rows` rows, spans of 1, 2, 3, ... rows. */
static struct act *bench_spans(struct bench *b, uint32_t rows)
{
    struct act *a = bench_blank(b, rows, 1);
    int32_t *later = (int32_t *)(void *)a->v;
    for (uint32_t t = 0, size = 1, end = 0; t < rows; t++) {
        if (t == end) end += size++;
        later[t] = (int32_t)((end < rows ? end : rows) - 1 - t);
    }
    op_write(&b->run, &a->t, 0, later, rows);
    return a;
}

/* May row t see entry s of: positions 0 ... pos + rows - 1 of the cache, then the step's rows? */
static bool formula_sees(const struct op_case *c, const struct act *later, uint32_t t, uint32_t s)
{
    uint32_t p = c->pos + t, n_cached = c->pos + c->rows;
    bool cached = s < n_cached, near = !c->window || s + c->window > p;
    switch (c->mask) {
    case MASK_CAUSAL: return cached && s <= p && near;
    case MASK_SPANS: return cached && s <= p + (uint32_t)act_id(later, t) && near;
    case MASK_PREFIX: return !cached || (s < c->pos && (!c->window || s + c->window > c->pos));
    case MASK_FULL: return !cached;
    }
    return false;
}

/* What all heads of all rows give. keys and values: the cache's positions, then the step's rows. */
static void formula_masked(double *want, const struct op_case *c, const float *q,
                           const struct act *later, const float *keys, const float *values)
{
    uint32_t width = c->n_kv * c->cols, n = c->pos + 2 * c->rows;
    double *p = malloc(n * sizeof *p);
    for (uint32_t i = 0; i < c->rows * c->n_head; i++) {
        size_t head = (size_t)(i % c->n_head * c->n_kv / c->n_head) * c->cols;
        double total = 0, top = -INFINITY;
        for (uint32_t s = 0; s < n; s++) {
            p[s] = 0;
            for (uint32_t j = 0; j < c->cols; j++)
                p[s] += 0.25 * (double)q[i * c->cols + j] * (double)keys[s * width + head + j];
            if (!formula_sees(c, later, i / c->n_head, s)) p[s] = -INFINITY;
            top = fmax(top, p[s]);
        }
        for (uint32_t s = 0; s < n; s++) total += p[s] = exp(p[s] - top);
        for (uint32_t j = 0; j < c->cols; j++) {
            double sum = 0;
            for (uint32_t s = 0; s < n; s++)
                if (p[s] > 0) sum += p[s] / total * (double)values[s * width + head + j];
            want[i * c->cols + j] = sum;
        }
    }
    free(p);
}

/* n rows into the cache from position 0 on; what it keeps of them goes to `kept`. */
static void fill_cache(struct bench *b, struct kv *kv, const struct op_case *c, float *keys,
                       float *values)
{
    uint32_t n = c->pos + c->rows, width = c->n_kv * c->cols;
    struct act *k = bench_random(b, n, width), *v = bench_random(b, n, width);
    struct act *one_k = bench_blank(b, 1, width), *one_v = bench_blank(b, 1, width);
    for (uint32_t at = 0; at < n; at++) {
        op_copy_rows(&b->run, &one_k->t, &k->t, at);
        op_copy_rows(&b->run, &one_v->t, &v->t, at);
        /* With a prefix the cache ends where the step begins. */
        if (c->mask != MASK_PREFIX || at < c->pos)
            op_kv_write(&b->run, kv, &one_k->t, &one_v->t, at);
    }
    for (size_t i = 0; i < (size_t)n * width; i++) {
        keys[i] = c->half ? f16_to_f32(f32_to_f16(k->v[i])) : k->v[i];
        values[i] = c->half ? f16_to_f32(f32_to_f16(v->v[i])) : v->v[i];
    }
}

static void case_attend_masked(struct bench *b, const struct op_case *c)
{
    uint32_t width = c->n_kv * c->cols, n_old = c->pos + c->rows;
    struct act *(*blank)(struct bench *, uint32_t, uint32_t) = c->half ? bench_halves : bench_blank;
    struct act *q = bench_random(b, c->rows, c->n_head * c->cols);
    struct act *y = bench_blank(b, c->rows, c->n_head * c->cols);
    struct act *k = bench_random(b, c->rows, width), *v = bench_random(b, c->rows, width);
    struct act *k_ring = blank(b, c->ring + 1, width), *v_ring = blank(b, c->ring + 1, width);
    struct act *later = bench_spans(b, c->rows);
    struct kv kv = { .k = k_ring->t, .v = v_ring->t, .n_kv_head = c->n_kv, .head_dim = c->cols };
    float *keys = calloc((size_t)(n_old + c->rows) * width, sizeof *keys);
    float *values = calloc((size_t)(n_old + c->rows) * width, sizeof *values);
    bool own = c->mask == MASK_PREFIX || c->mask == MASK_FULL;
    if (c->mask != MASK_FULL) fill_cache(b, &kv, c, keys, values);
    const struct attention a = { .kv = c->mask == MASK_FULL ? NULL : &kv,
                                 .k = own ? &k->t : NULL,
                                 .v = own ? &v->t : NULL,
                                 .later = c->mask == MASK_SPANS ? &later->t : NULL,
                                 .mask = { c->mask, c->window },
                                 .n_head = c->n_head,
                                 .scale = 0.25f };
    op_attend_masked(&b->run, &y->t, &q->t, &a, c->pos);
    bench_result(b, &y->t, false);
    double *want = bench_formula(b);
    memcpy(keys + (size_t)n_old * width, k->v, (size_t)c->rows * width * sizeof *keys);
    memcpy(values + (size_t)n_old * width, v->v, (size_t)c->rows * width * sizeof *values);
    if (want) formula_masked(want, c, q->v, later, keys, values);
    free(keys);
    free(values);
}

/* clang-format off */
static const struct op_case attend_masked_cases[] = {
    /* seed rows cols format    nmse   why this case */
    { 315,    5,   32, F32,        1e-12, .why = "causal with a scale, a ring that wraps",
      .n_head = 4, .n_kv = 2, .mask = MASK_CAUSAL, .window = 7, .ring = 12, .pos = 30,
      .cpu_only = true },
    { 316,   17,   16, F32,        1e-12, .why = "all rows, as a tower", .n_head = 3, .n_kv = 3,
      .mask = MASK_FULL, .cpu_only = true },
    { 317,    9,   64, F32,        1e-12, .why = "a canvas after a prefix, groups of 4",
      .n_head = 8, .n_kv = 2, .mask = MASK_PREFIX, .ring = 40, .pos = 21 },
    { 318,    9,   24, F32,        1e-12,
      .why = "a canvas after the end of a prefix; halves, in a ring that has wrapped",
      .n_head = 2, .n_kv = 1, .mask = MASK_PREFIX, .window = 8, .ring = 11, .pos = 50,
      .half = true },
    { 319,    6,   32, F32,        1e-12, .why = "a canvas with nothing before it",
      .n_head = 2, .n_kv = 2, .mask = MASK_PREFIX, .window = 8, .ring = 11 },
    { 360,   70,   40, F32,        1e-12, .why = "more rows and positions than a tile; halves",
      .n_head = 4, .n_kv = 2, .mask = MASK_PREFIX, .ring = 200, .pos = 150, .half = true },
    { 320,   14,   32, F32,        1e-12, .why = "spans in a text",
      .n_head = 4, .n_kv = 1, .mask = MASK_SPANS, .ring = 30, .pos = 9, .cpu_only = true },
    { 321,   20,   16, F32,        1e-12, .why = "spans as long as the window",
      .n_head = 2, .n_kv = 1, .mask = MASK_SPANS, .window = 5, .ring = 40, .pos = 33,
      .cpu_only = true },
};
/* clang-format on */

/* ---- one step for each element, and a norm ---- */

static void case_add_bias(struct bench *b, const struct op_case *c)
{
    struct act *x = bench_random(b, c->rows, c->cols);
    struct mat *w = bench_weight(b, c->format, c->cols, 1, 1);
    op_add_bias(&b->run, &x->t, &w->w);
    bench_result(b, &x->t, false);
    double *want = bench_formula(b);
    for (size_t i = 0; want && i < b->n_got; i++)
        want[i] = (double)x->v[i] + (double)w->v[i % c->cols];
}

/* clang-format off */
static const struct op_case add_bias_cases[] = {
    /* seed rows cols format    nmse   why this case */
    { 322,   65,  100, F32,        1e-14, .why = "many rows", .cpu_only = true },
    { 323,    1,   33, QUANT_BF16, 1e-14, .why = "of another format", .cpu_only = true },
};
/* clang-format on */

static void case_clamp(struct bench *b, const struct op_case *c)
{
    struct act *x = bench_random(b, c->rows, c->cols);
    op_clamp(&b->run, &x->t, -0.75f, 0.5f);
    bench_result(b, &x->t, false);
    double *want = bench_formula(b);
    for (size_t i = 0; want && i < b->n_got; i++) want[i] = fmin(fmax((double)x->v[i], -0.75), 0.5);
}

/* clang-format off */
static const struct op_case clamp_cases[] = {
    /* seed rows cols format    nmse   why this case */
    { 324,    5,  333, F32,        0,     .why = "both ends", .cpu_only = true },
};
/* clang-format on */

/* plain: neither weight nor bias; split: no bias. */
static void case_layer_norm(struct bench *b, const struct op_case *c)
{
    struct act *x = bench_random(b, c->rows, c->cols), *y = bench_blank(b, c->rows, c->cols);
    struct mat *w = c->plain ? bench_absent(b) : bench_weight(b, c->format, c->cols, 1, 1);
    struct mat *bias =
        c->plain || c->split ? bench_absent(b) : bench_weight(b, c->format, c->cols, 1, 1);
    op_layer_norm(&b->run, &y->t, &x->t, &w->w, &bias->w, 0.5f);
    bench_result(b, &y->t, false);
    double *want = bench_formula(b), *in = widen(x->v, b->n_got);
    for (size_t at = 0; want && at < b->n_got; at += c->cols) {
        double mean = 0, of_squares = 0;
        for (uint32_t i = 0; i < c->cols; i++) {
            mean += in[at + i] / c->cols;
            of_squares += in[at + i] * in[at + i] / c->cols;
        }
        for (uint32_t i = 0; i < c->cols; i++)
            want[at + i] = (in[at + i] - mean) / sqrt(of_squares - mean * mean + 0.5) *
                               (w->v ? (double)w->v[i] : 1) +
                           (bias->v ? (double)bias->v[i] : 0);
    }
    free(in);
}

/* clang-format off */
static const struct op_case layer_norm_cases[] = {
    /* seed rows cols format    nmse   why this case */
    { 325,   65,  130, F32,        1e-12, .why = "weight and bias", .cpu_only = true },
    { 326,    1,   64, QUANT_F16,  1e-12, .why = "weight alone", .split = true, .cpu_only = true },
    { 327,    3,   33, F32,        1e-12, .why = "neither", .plain = true, .cpu_only = true },
};
/* clang-format on */

/* ---- rotation by two positions: cols is the head size, out the pairs of half a head ---- */

static void case_rope_2d(struct bench *b, const struct op_case *c)
{
    uint32_t half = c->cols / 2, width = c->n_head * c->cols;
    struct rope rope = { 100, half, c->out, NULL };
    struct act *xy = bench_ids(b, c->rows, 2, 60);
    struct act *angles = bench_blank(b, c->rows, 4 * c->out);
    struct act *x = bench_random(b, c->rows, width);
    op_angles_2d(&b->run, &angles->t, &rope, &xy->t);
    op_rope_2d(&b->run, &x->t, &angles->t, c->n_head);
    bench_result(b, &x->t, false);
    double *want = bench_formula(b);
    for (size_t i = 0; want && i < b->n_got; i++) {
        size_t t = i / width, in_half = i % half, pair = in_half % (half / 2);
        bool upper = in_half >= half / 2;
        double angle = act_id(xy, 2 * t + i % c->cols / half) * pow(100, -2 * (double)pair / half);
        double u = (double)x->v[i], other = (double)x->v[upper ? i - half / 2 : i + half / 2];
        want[i] = u * cos(angle) + (upper ? other : -other) * sin(angle);
        if (pair >= c->out) want[i] = u;
    }
}

/* clang-format off */
static const struct op_case rope_2d_cases[] = {
    /* seed rows cols format    nmse   why this case */
    { 328,   24,   64, F32,        1e-12, .why = "all pairs",
      .n_head = 3, .out = 16, .cpu_only = true },
    { 329,    5,   72, F32,        1e-12, .why = "some pairs; as wide as published",
      .n_head = 2, .out = 7, .cpu_only = true },
};
/* clang-format on */

/* ---- pictures: rows is the picture's height times conv.width, cols its channels ---- */

/* The picture's number, or 0 outside of it. */
static double formula_point(const struct op_case *c, const struct act *x, int32_t px, int32_t py,
                            uint32_t channel)
{
    int32_t width = (int32_t)c->conv.width, height = (int32_t)c->rows / width;
    if (px < 0 || py < 0 || px >= width || py >= height) return 0;
    return (double)x->v[(uint32_t)(py * width + px) * c->cols + channel];
}

/* A convolution, which is unfold and linear: `out` channels, as a direct sum. */
static void case_unfold(struct bench *b, const struct op_case *c)
{
    const struct conv *v = &c->conv;
    uint32_t nx = conv_count(&v->x, v->width), ny = conv_count(&v->y, c->rows / v->width);
    uint32_t size = v->x.k * v->y.k * c->cols, n = nx * ny;
    struct act *x = bench_random(b, c->rows, c->cols), *u = bench_blank(b, n, size);
    struct act *y = bench_blank(b, n, c->out);
    struct mat *w = bench_weight(b, c->format, size, c->out, 1);
    op_unfold(&b->run, &u->t, &x->t, v);
    op_linear(&b->run, &y->t, &u->t, &w->w);
    bench_result(b, &y->t, false);
    double *want = bench_formula(b);
    for (size_t i = 0; want && i < b->n_got; i++) {
        const float *row = w->v + i % c->out * size;
        int32_t x0 = (int32_t)(i / c->out % nx * v->x.stride) - (int32_t)v->x.pad;
        int32_t y0 = (int32_t)(i / c->out / nx * v->y.stride) - (int32_t)v->y.pad;
        want[i] = 0;
        for (uint32_t ky = 0; ky < v->y.k; ky++)
            for (uint32_t kx = 0; kx < v->x.k; kx++)
                for (uint32_t ch = 0; ch < c->cols; ch++)
                    want[i] += (double)row[(ch * v->y.k + ky) * v->x.k + kx] *
                               formula_point(c, x, x0 + (int32_t)kx, y0 + (int32_t)ky, ch);
    }
}

/* clang-format off */
static const struct op_case unfold_cases[] = {
    /* seed rows cols format    nmse   why this case */
    { 330,   96,    3, QUANT_F16,  1e-12, .why = "patches of 4 x 4, which do not overlap",
      .conv = { 12, { 4, 4, 0 }, { 4, 4, 0 } }, .out = 9, .cpu_only = true },
    { 331,   77,    2, F32,        1e-12, .why = "3 x 3 at every second point, padded",
      .conv = { 11, { 3, 2, 1 }, { 3, 2, 1 } }, .out = 5, .cpu_only = true },
    { 332,   23,    6, F32,        1e-12, .why = "a signal: one line, every third point",
      .conv = { 23, { 5, 3, 2 }, { 1, 1, 0 } }, .out = 4, .cpu_only = true },
    { 333,   12,    1, F32,        1e-12, .why = "one window, wider than high",
      .conv = { 4, { 4, 4, 0 }, { 3, 1, 0 } }, .out = 3, .cpu_only = true },
};
/* clang-format on */

/* out: taps. */
static void case_conv_depthwise(struct bench *b, const struct op_case *c)
{
    struct act *x = bench_random(b, c->rows, c->cols), *y = bench_blank(b, c->rows, c->cols);
    struct mat *w = bench_weight(b, c->format, c->out, c->cols, 1);
    op_conv_depthwise(&b->run, &y->t, &x->t, &w->w);
    bench_result(b, &y->t, false);
    double *want = bench_formula(b);
    for (uint32_t i = 0; want && i < c->rows * c->cols; i++) {
        want[i] = 0;
        for (uint32_t back = 0; back < c->out && back <= i / c->cols; back++)
            want[i] += (double)w->v[i % c->cols * c->out + c->out - 1 - back] *
                       (double)x->v[i - back * c->cols];
    }
}

/* clang-format off */
static const struct op_case conv_depthwise_cases[] = {
    /* seed rows cols format    nmse   why this case */
    { 334,   20,   33, F32,        1e-12, .why = "five taps, as published", .out = 5,
      .cpu_only = true },
    { 335,    3,   16, QUANT_BF16, 1e-12, .why = "more taps than rows", .out = 7,
      .cpu_only = true },
};
/* clang-format on */

/* out: the squares' side. */
static void case_pool(struct bench *b, const struct op_case *c)
{
    uint32_t nx = c->conv.width / c->out, n = c->rows / (c->out * c->out);
    struct act *x = bench_random(b, c->rows, c->cols), *y = bench_blank(b, n, c->cols);
    op_pool(&b->run, &y->t, &x->t, c->conv.width, c->out);
    bench_result(b, &y->t, false);
    double *want = bench_formula(b);
    for (size_t i = 0; want && i < b->n_got; i++) want[i] = 0;
    for (uint32_t i = 0; want && i < c->rows * c->cols; i++) {
        uint32_t px = i / c->cols % c->conv.width, py = i / c->cols / c->conv.width;
        want[(py / c->out * nx + px / c->out) * c->cols + i % c->cols] +=
            (double)x->v[i] / (c->out * c->out);
    }
}

/* clang-format off */
static const struct op_case pool_cases[] = {
    /* seed rows cols format    nmse   why this case */
    { 336,   72,    5, F32,        1e-12, .why = "3 x 3, wider than high", .conv.width = 12,
      .out = 3, .cpu_only = true },
    { 337,    7,    4, F32,        0,     .why = "1 x 1 changes nothing", .conv.width = 7,
      .out = 1, .cpu_only = true },
};
/* clang-format on */

#endif
