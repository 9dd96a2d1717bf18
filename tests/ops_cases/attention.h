/* attention.h - rotation of heads, the cache of keys and values, attention over it */
#ifndef BEZEL_TESTS_OPS_CASES_ATTENTION_H
#define BEZEL_TESTS_OPS_CASES_ATTENTION_H

#include "ops_cases/case.h"

/* cols is the head size; the drift of the f32 recurrence is bounded in test_ops_edges.c. */
static void case_rope_table(struct bench *b, const struct op_case *c)
{
    /* A backend may cache a table by its address, since a model's never changes. So each call takes
     * an address of its own. */
    static float tables[32][512];
    static uint32_t n_calls;
    float *div = tables[n_calls++ % 32];
    uint32_t n_pair = c->out;
    for (uint32_t i = 0; i < n_pair; i++)
        div[i] = c->plain ? 1 : 1 + 7 * rng_unit(rng_next(&b->rng));
    struct rope rope = { 10000, c->cols, n_pair, c->plain ? NULL : div };
    struct act *table = bench_blank(b, c->rows, 2 * n_pair);
    op_rope_table(&b->run, &table->t, &rope, c->pos);
    bench_result(b, &table->t, false);
    double *want = bench_formula(b);
    for (uint32_t t = 0; want && t < c->rows; t++)
        for (uint32_t i = 0; i < n_pair; i++) {
            double angle = (c->pos + t) * pow(10000, -2.0 * i / c->cols) / (double)div[i];
            want[(size_t)t * 2 * n_pair + i] = cos(angle);
            want[(size_t)t * 2 * n_pair + n_pair + i] = sin(angle);
        }
}

/* clang-format off */
static const struct op_case rope_table_cases[] = {
    /* seed rows cols format    nmse   why this case */
    {  52,    5,  256, F32,        1e-12, .why = "all pairs", .out = 128, .plain = true },
    {  53,   65,   16, F32,        1e-10, .why = "some pairs, divided", .out = 5, .pos = 40 },
    {  54,    1,  512, F32,        1e-7,  .why = "far away: angles have lost bits",
      .out = 64, .pos = 3000 },
};
/* clang-format on */

/* The first n_pair pairs of a head, rotated by a row of the table. */
static void formula_rope(double *u, const float *cosine, uint32_t n_pair, uint32_t half)
{
    for (uint32_t k = 0; k < n_pair; k++) {
        double p = u[k], q = u[k + half], sine = (double)cosine[n_pair + k];
        u[k] = p * (double)cosine[k] - q * sine;
        u[k + half] = p * sine + q * (double)cosine[k];
    }
}

/* cols is the head size, out the number of pairs that are rotated. */
static void case_rope(struct bench *b, const struct op_case *c)
{
    struct act *x = bench_random(b, c->rows, c->n_head * c->cols);
    struct act *table = bench_random(b, c->rows, 2 * c->out);
    op_rope(&b->run, &x->t, &table->t, c->n_head);
    bench_result(b, &x->t, false);
    double *want = bench_formula(b);
    for (size_t i = 0; want && i < b->n_got; i++) want[i] = (double)x->v[i];
    for (size_t i = 0; want && i < b->n_got; i += c->cols)
        formula_rope(want + i, table->v + i / (c->n_head * c->cols) * 2 * c->out, c->out,
                     c->cols / 2);
}

/* clang-format off */
static const struct op_case rope_cases[] = {
    /* seed rows cols format    nmse   why this case */
    { 313,    1,  256, F32,        1e-12, .why = "decode", .n_head = 8, .out = 128 },
    { 314,   65,   32, F32,        1e-12, .why = "pairs past the last stay",
      .n_head = 3, .out = 5 },
};
/* clang-format on */

/* cols is the head size. */
static void case_head_norm(struct bench *b, const struct op_case *c)
{
    struct act *x = bench_random(b, c->rows, c->n_head * c->cols);
    struct mat *w = c->plain ? bench_absent(b) : bench_weight(b, c->format, c->cols, 1, 1);
    op_head_norm(&b->run, &x->t, &w->w, c->n_head, EPS);
    bench_result(b, &x->t, false);
    double *want = bench_formula(b), *in = widen(x->v, b->n_got);
    for (size_t i = 0; want && i < b->n_got; i += c->cols)
        formula_norm(want + i, in + i, w->v, c->cols, (double)EPS);
    free(in);
}

/* clang-format off */
static const struct op_case head_norm_cases[] = {
    /* seed rows cols format    nmse   why this case */
    {  57,   65,   16, F32,        1e-12, .why = "values: no weight", .n_head = 1, .plain = true },
    { 338,    3,  256, QUANT_BF16, 1e-12, .why = "per-layer inputs", .n_head = 5 },
};
/* clang-format on */

/* rope(head_norm(x)) */
static struct value *norm_rope(struct tape *t, struct value *x, const struct mat *w,
                               struct value *angles, uint32_t size)
{
    x = tape_head_norm(t, x, &w->w, size);
    return tape_rope(t, x, angles, size);
}

/* cols is the head size, out the number of pairs that are rotated. */
static void case_norm_rope(struct bench *b, const struct op_case *c)
{
    uint32_t n = c->cols, width = c->n_head * n;
    struct act *x = bench_random(b, c->rows, width), *y = bench_blank(b, c->rows, width);
    struct act *table = bench_random(b, c->rows, 2 * c->out);
    struct mat *w = bench_weight(b, c->format, n, 1, 1);
    bench_tape(b, c->rows);
    struct value *v = bench_input(b, x), *angles = bench_input(b, table);
    v = norm_rope(&b->tape, v, w, angles, n);
    bench_keep(b, v, y);
    bench_run(b, RULE_BIT(NORM_ROPE), 0);
    bench_result(b, &y->t, false);
    double *want = bench_formula(b), *in = widen(x->v, b->n_got);
    for (size_t i = 0; want && i < b->n_got; i += n) {
        formula_norm(want + i, in + i, w->v, n, (double)EPS);
        formula_rope(want + i, table->v + i / width * 2 * c->out, c->out, n / 2);
    }
    free(in);
}

/* clang-format off */
static const struct op_case norm_rope_cases[] = {
    /* seed rows cols format    nmse   why this case */
    {  55,    1,  256, F32,        1e-12, .why = "decode", .n_head = 8, .out = 128 },
    {  56,    5,   32, F32,        1e-12, .why = "pairs past the last stay",
      .n_head = 3, .out = 5 },
    {  58,    3,  512, QUANT_BF16, 1e-12, .why = "a large head", .n_head = 2, .out = 256 },
};
/* clang-format on */

/* One head of one row, with the mask written out: every position is looked at. */
static void formula_attend(double *y, const float *q, const float *k, const float *v, size_t stride,
                           const struct op_case *c, uint32_t p)
{
    double total = 0, *score = malloc((p + 1) * sizeof *score), top = -INFINITY;
    for (uint32_t s = 0; s <= p; s++) {
        bool seen = c->window == 0 || p - s < c->window;
        score[s] = seen ? 0 : -INFINITY;
        for (uint32_t i = 0; i < c->cols; i++) score[s] += (double)q[i] * (double)k[s * stride + i];
        if (score[s] > top) top = score[s];
    }
    for (uint32_t i = 0; i < c->cols; i++) y[i] = 0;
    for (uint32_t s = 0; s <= p; s++) total += score[s] = exp(score[s] - top);
    for (uint32_t s = 0; s <= p; s++)
        for (uint32_t i = 0; i < c->cols; i++) y[i] += score[s] / total * (double)v[s * stride + i];
    free(score);
}

/* The cache is written as a session would, a few positions at a time, from the first on. */
static void case_attention(struct bench *b, const struct op_case *c)
{
    uint32_t n_pos = c->pos + c->rows, width = c->n_kv * c->cols, q_width = c->n_head * c->cols;
    struct act *q = bench_random(b, c->rows, q_width), *y = bench_blank(b, c->rows, q_width);
    struct act *k = bench_random(b, n_pos, width), *v = bench_random(b, n_pos, width);
    struct act *(*blank)(struct bench *, uint32_t, uint32_t) = c->half ? bench_halves : bench_blank;
    struct act *k_ring = blank(b, c->ring, width), *v_ring = blank(b, c->ring, width);
    struct act *k_part = bench_blank(b, 7, width), *v_part = bench_blank(b, 7, width);
    struct kv kv = { .k = k_ring->t, .v = v_ring->t, .n_kv_head = c->n_kv, .head_dim = c->cols };
    for (uint32_t at = 0, n; at < n_pos; at += n) {
        n = 1 + rng_below(&b->rng, c->ring < 7 ? c->ring : 7);
        if (n > n_pos - at) n = n_pos - at;
        k_part->t.rows = v_part->t.rows = n;
        op_copy_rows(&b->run, &k_part->t, &k->t, at);
        op_copy_rows(&b->run, &v_part->t, &v->t, at);
        op_kv_write(&b->run, &kv, &k_part->t, &v_part->t, at);
    }
    op_attention(&b->run, &y->t, &q->t, &kv, c->n_head, c->window, c->pos);
    bench_result(b, &y->t, false);
    double *want = bench_formula(b);
    for (size_t i = 0; want && c->half && i < (size_t)n_pos * width; i++) {
        k->v[i] = f16_to_f32(f32_to_f16(k->v[i]));
        v->v[i] = f16_to_f32(f32_to_f16(v->v[i]));
    }
    for (uint32_t i = 0; want && i < c->rows * c->n_head; i++) {
        uint32_t t = i / c->n_head, h = i % c->n_head, at = h * c->n_kv / c->n_head * c->cols;
        formula_attend(want + (size_t)i * c->cols, q->v + (size_t)i * c->cols, k->v + at, v->v + at,
                       width, c, c->pos + t);
    }
}

/* clang-format off */
static const struct op_case attention_cases[] = {
    /* seed rows cols format    nmse   why this case */
    {  59,    1,   16, F32,        1e-12, .why = "the first token of all",
      .n_head = 1, .n_kv = 1, .ring = 1 },
    {  60,    5,   16, F32,        1e-12, .why = "prefill from nothing",
      .n_head = 4, .n_kv = 1, .ring = 5 },
    {  61,    1,  256, F32,        1e-12, .why = "decode, groups of 4, together",
      .n_head = 8, .n_kv = 2, .ring = 64, .pos = 40, .tiling = 3 },
    {  62,    3,  512, F32,        1e-12, .why = "the largest head",
      .n_head = 2, .n_kv = 1, .ring = 32, .pos = 20 },
    {  63,   65,   32, F32,        1e-12, .why = "long prefill, groups of 3",
      .n_head = 6, .n_kv = 2, .ring = 200, .pos = 100 },
    {  64,    4,   32, F32,        1e-12, .why = "every head has its own",
      .n_head = 3, .n_kv = 3, .ring = 19, .pos = 15 },
    {  65,    1,   16, F32,        1e-12, .why = "a window of one sees itself",
      .n_head = 4, .n_kv = 2, .window = 1, .ring = 1, .pos = 9 },
    {  66,    1,   32, F32,        1e-12, .why = "exactly full ring, many turns",
      .n_head = 4, .n_kv = 2, .window = 12, .ring = 12, .pos = 100 },
    {  67,    5,   32, F32,        1e-12, .why = "a batch that wraps around",
      .n_head = 4, .n_kv = 2, .window = 12, .ring = 16, .pos = 77 },
    {  68,   65,   16, F32,        1e-12, .why = "a batch larger than the window",
      .n_head = 2, .n_kv = 1, .window = 20, .ring = 84, .pos = 301 },
    {  69,    4,   16, F32,        1e-12, .why = "a window not yet filled",
      .n_head = 2, .n_kv = 2, .window = 50, .ring = 16, .pos = 3 },
    {  70,    7,   16, F32,        1e-12, .why = "the window fills inside the batch",
      .n_head = 2, .n_kv = 1, .window = 8, .ring = 14, .pos = 4 },
    {  71,    2,  256, F32,        1e-12, .why = "slack in the ring",
      .n_head = 4, .n_kv = 1, .window = 9, .ring = 31, .pos = 95 },

    {  72,    1,  256, F32,        1e-12, .why = "halves: decode, groups of 8, together",
      .n_head = 8, .n_kv = 1, .ring = 80, .pos = 70, .half = true, .tiling = 4 },
    {  73,    3,   32, F32,        1e-12, .why = "halves: a ring that wraps, two heads",
      .n_head = 4, .n_kv = 2, .window = 12, .ring = 16, .pos = 77, .half = true },
    {  74,   65,   32, F32,        1e-12, .why = "halves: prefill, groups of 3",
      .n_head = 6, .n_kv = 2, .ring = 200, .pos = 100, .half = true },
    {  75,    9,  512, F32,        1e-11,
      .why = "halves: the largest head; scores near 60 lose digits", .n_head = 2, .n_kv = 1,
      .ring = 32, .pos = 20, .half = true },
    {  76,   37,  256, F32,        1e-11, .why = "halves: tiles of keys, groups of 4",
      .n_head = 8, .n_kv = 2, .ring = 170, .pos = 130, .half = true },
    {  77,   33,  512, F32,        1e-11, .why = "tiles of keys, a window",
      .n_head = 2, .n_kv = 1, .window = 90, .ring = 130, .pos = 200 },
    {  78,    5,   24, F32,        1e-12, .why = "halves: an odd number of eights",
      .n_head = 3, .n_kv = 1, .window = 7, .ring = 11, .pos = 31, .half = true },
};
/* clang-format on */

static float as_kept(const struct op_case *c, float v)
{
    return c->half ? f16_to_f32(f32_to_f16(v)) : v;
}

/* Heads of a row, normalised and (n_pair > 0) rotated, in place. */
static void formula_heads(float *x, uint32_t n_head, uint32_t n, const float *w, const float *table,
                          uint32_t n_pair)
{
    double *wide = widen(x, (size_t)n_head * n);
    for (uint32_t h = 0; h < n_head; h++) {
        double *u = wide + (size_t)h * n;
        formula_norm(u, u, w, n, (double)EPS);
        for (uint32_t k = 0; k < n_pair; k++) {
            double p = u[k], q = u[k + n / 2], cosine = (double)table[k],
                   sine = (double)table[n_pair + k];
            u[k] = p * cosine - q * sine;
            u[k + n / 2] = p * sine + q * cosine;
        }
    }
    for (size_t i = 0; i < (size_t)n_head * n; i++) x[i] = (float)wide[i];
    free(wide);
}

/* New keys and values go to the cache, the values without weight and rotation. split: they are made
 * of the keys. */
static void write_heads(struct bench *b, const struct op_case *c, struct kv *kv, struct value *k,
                        struct value *v, const struct mat *k_w, struct value *angles)
{
    static const struct weight none;
    v = tape_head_norm(&b->tape, c->split ? k : v, &none, kv->head_dim);
    k = norm_rope(&b->tape, k, k_w, angles, kv->head_dim);
    tape_kv_write(&b->tape, kv, k, v);
}

static struct value *attend_cache(struct tape *t, struct kv *kv, struct value *q, uint32_t n_head,
                                  uint32_t window)
{
    const struct attend of = {
        .kv = kv, .mask = { MASK_CAUSAL, window }, .n_head = n_head, .scale = 1
    };
    return tape_attend(t, q, &of);
}

/* cols is the head size, out the number of pairs that are rotated. plain: queries as they come. A
 * history is written first; attention then shows what the cache holds. */
static void case_heads_write(struct bench *b, const struct op_case *c)
{
    uint32_t width = c->n_kv * c->cols, q_width = c->n_head * c->cols, n_pos = c->pos + c->rows;
    struct act *q = bench_random(b, c->rows, q_width), *y = bench_blank(b, c->rows, q_width);
    struct act *k = bench_random(b, c->rows, width), *v = bench_random(b, c->rows, width);
    struct act *old_k = bench_random(b, c->pos, width), *old_v = bench_random(b, c->pos, width);
    struct act *table = bench_random(b, c->rows, 2 * c->out);
    struct mat *q_w = bench_weight(b, c->format, c->cols, 1, 1);
    struct mat *k_w = bench_weight(b, c->format, c->cols, 1, 1);
    struct act *(*blank)(struct bench *, uint32_t, uint32_t) = c->half ? bench_halves : bench_blank;
    struct act *k_ring = blank(b, n_pos, width), *v_ring = blank(b, n_pos, width);
    struct kv kv = { .k = k_ring->t, .v = v_ring->t, .n_kv_head = c->n_kv, .head_dim = c->cols };
    op_kv_write(&b->run, &kv, &old_k->t, &old_v->t, 0);
    bench_tape(b, c->rows);
    struct value *asked = bench_input(b, q), *angles = bench_input(b, table);
    struct value *new_k = bench_donated(b, k), *new_v = bench_donated(b, v);
    write_heads(b, c, &kv, new_k, new_v, k_w, angles);
    if (!c->plain) asked = norm_rope(&b->tape, asked, q_w, angles, c->cols);
    asked = attend_cache(&b->tape, &kv, asked, c->n_head, 0);
    bench_keep(b, asked, y);
    bench_run(b, RULE_BIT(HEADS_WRITE), c->pos);
    bench_result(b, &y->t, false);
    double *want = bench_formula(b);
    if (!want) return;
    float *keys = malloc((size_t)n_pos * width * sizeof *keys);
    float *values = malloc((size_t)n_pos * width * sizeof *values);
    for (uint32_t t = 0; t < c->rows; t++) {
        float *qt = q->v + (size_t)t * q_width, *kt = k->v + (size_t)t * width;
        float *vt = v->v + (size_t)t * width, *cosine = table->v + (size_t)t * 2 * c->out;
        if (c->split) memcpy(vt, kt, width * sizeof *vt);
        if (!c->plain) formula_heads(qt, c->n_head, c->cols, q_w->v, cosine, c->out);
        formula_heads(kt, c->n_kv, c->cols, k_w->v, cosine, c->out);
        formula_heads(vt, c->n_kv, c->cols, NULL, NULL, 0);
    }
    size_t n_old = (size_t)c->pos * width, n_new = (size_t)c->rows * width, at = 0;
    for (size_t i = 0; i < n_old + n_new; i++) {
        keys[i] = as_kept(c, i < n_old ? old_k->v[i] : k->v[i - n_old]);
        values[i] = as_kept(c, i < n_old ? old_v->v[i] : v->v[i - n_old]);
    }
    for (uint32_t i = 0; i < c->rows * c->n_head; i++, at += c->cols) {
        size_t head = (size_t)(i % c->n_head * c->n_kv / c->n_head) * c->cols;
        formula_attend(want + at, q->v + (size_t)i * c->cols, keys + head, values + head, width, c,
                       c->pos + i / c->n_head);
    }
    free(keys);
    free(values);
}

/* clang-format off */
static const struct op_case heads_write_cases[] = {
    /* seed rows cols format    nmse   why this case */
    {  79,    1,  256, F32,        1e-12, .why = "decode",
      .n_head = 8, .n_kv = 1, .out = 128, .pos = 30 },
    {  80,    5,   32, F32,        1e-12, .why = "pairs past the last stay",
      .n_head = 6, .n_kv = 2, .out = 5, .pos = 3 },
    {  81,   65,   64, QUANT_BF16, 1e-12, .why = "values from keys, many rows",
      .n_head = 4, .n_kv = 2, .out = 32, .pos = 2, .split = true },
    {  82,    3,  512, F32,        1e-12, .why = "without queries",
      .n_head = 2, .n_kv = 1, .out = 64, .pos = 9, .plain = true },
    {  83,    1,   64, F32,        1e-12, .why = "halves, decode",
      .n_head = 4, .n_kv = 2, .out = 32, .pos = 40, .half = true },
    {  84,    9,   24, F32,        1e-12, .why = "halves, values from keys, without queries",
      .n_head = 3, .n_kv = 3, .out = 12, .pos = 7, .half = true, .split = true, .plain = true },
};
/* clang-format on */

/* From projections to attention. cols, out and split as in case_heads_write; plain: no keys. A
 * second set of queries (probe) shows afterwards what the cache holds. n_ff: the attention is
 * multiplied with a matrix of so many rows. at: that matrix has the case's format, and is of the
 * same group. */
static void case_attend_heads(struct bench *b, const struct op_case *c)
{
    uint32_t width = c->n_kv * c->cols, q_width = c->n_head * c->cols, n_pos = c->pos + c->rows;
    uint32_t n_old = c->plain ? n_pos : c->pos;
    struct act *q = bench_random(b, c->rows, q_width), *y = bench_blank(b, c->rows, q_width);
    struct act *probe = bench_random(b, c->rows, q_width), *seen = bench_blank(b, c->rows, q_width);
    struct act *k = bench_random(b, c->rows, width), *v = bench_random(b, c->rows, width);
    struct act *old_k = bench_random(b, n_old, width), *old_v = bench_random(b, n_old, width);
    struct act *table = bench_random(b, c->rows, 2 * c->out), *one_k = bench_blank(b, 1, width);
    struct act *one_v = bench_blank(b, 1, width);
    uint32_t norms = c->at ? F32 : c->format;
    struct mat *q_w = bench_weight(b, norms, c->cols, 1, 1);
    struct mat *k_w = bench_weight(b, norms, c->cols, 1, 1);
    struct act *(*blank)(struct bench *, uint32_t, uint32_t) = c->half ? bench_halves : bench_blank;
    struct act *k_ring = blank(b, c->ring, width), *v_ring = blank(b, c->ring, width);
    struct kv kv = { .k = k_ring->t, .v = v_ring->t, .n_kv_head = c->n_kv, .head_dim = c->cols };
    for (uint32_t at = 0; at < n_old; at++) {
        op_copy_rows(&b->run, &one_k->t, &old_k->t, at);
        op_copy_rows(&b->run, &one_v->t, &old_v->t, at);
        op_kv_write(&b->run, &kv, &one_k->t, &one_v->t, at);
    }
    uint32_t format = c->at ? c->format : QUANT_Q8_0;
    struct mat *w = c->n_ff ? bench_weight(b, format, q_width, c->n_ff, 1) : NULL;
    struct act *z = c->n_ff ? bench_blank(b, c->rows, c->n_ff) : NULL;
    for (uint32_t i = 0; w && i < c->n_lora; i++) bench_lora(b, w, c->rank + i);
    bench_tape(b, c->rows);
    struct value *o = bench_donated(b, q), *angles = bench_input(b, table);
    struct value *new_k = bench_donated(b, k), *new_v = bench_donated(b, v);
    if (!c->plain) write_heads(b, c, &kv, new_k, new_v, k_w, angles);
    o = norm_rope(&b->tape, o, q_w, angles, c->cols);
    o = attend_cache(&b->tape, &kv, o, c->n_head, c->window);
    if (!c->at) bench_keep(b, o, y);
    if (w) {
        o = tape_linear(&b->tape, o, &w->w);
        bench_keep(b, o, z);
    }
    bench_run(b, c->at ? RULE_BIT(ATTEND_LINEAR) : RULE_BIT(ATTEND_HEADS), c->pos);
    op_attention(&b->run, &seen->t, &probe->t, &kv, c->n_head, c->window, c->pos);
    if (!c->at) bench_result(b, &y->t, false);
    bench_result(b, &seen->t, false);
    if (w) bench_result(b, &z->t, false);
    double *want = bench_formula(b);
    if (!want) return;
    float *keys = malloc((size_t)n_pos * width * sizeof *keys);
    float *values = malloc((size_t)n_pos * width * sizeof *values);
    memcpy(keys, old_k->v, (size_t)n_old * width * sizeof *keys);
    memcpy(values, old_v->v, (size_t)n_old * width * sizeof *values);
    for (uint32_t t = 0; t < c->rows; t++) {
        float *cosine = table->v + (size_t)t * 2 * c->out;
        formula_heads(q->v + (size_t)t * q_width, c->n_head, c->cols, q_w->v, cosine, c->out);
        if (c->plain) continue;
        float *kt = keys + (size_t)(n_old + t) * width, *vt = values + (size_t)(n_old + t) * width;
        memcpy(kt, k->v + (size_t)t * width, width * sizeof *kt);
        memcpy(vt, (c->split ? k : v)->v + (size_t)t * width, width * sizeof *vt);
        formula_heads(kt, c->n_kv, c->cols, k_w->v, cosine, c->out);
        formula_heads(vt, c->n_kv, c->cols, NULL, NULL, 0);
    }
    for (size_t i = 0; i < (size_t)n_pos * width; i++) {
        keys[i] = as_kept(c, keys[i]);
        values[i] = as_kept(c, values[i]);
    }
    const struct act *asked[] = { q, probe };
    size_t n_o = (size_t)c->rows * q_width, n_want = c->at ? n_o : 2 * n_o; /* of attention */
    double *out = malloc(2 * n_o * sizeof *out);
    for (uint32_t i = 0; i < 2 * c->rows * c->n_head; i++) {
        uint32_t n = c->rows * c->n_head, j = i % n;
        size_t head = (size_t)(j % c->n_head * c->n_kv / c->n_head) * c->cols;
        formula_attend(out + (size_t)i * c->cols, asked[i / n]->v + (size_t)j * c->cols,
                       keys + head, values + head, width, c, c->pos + j / c->n_head);
    }
    memcpy(want, out + 2 * n_o - n_want, n_want * sizeof *out);
    for (uint32_t t = 0; w && t < c->rows; t++)
        formula_linear(want + n_want + (size_t)t * c->n_ff, out + (size_t)t * q_width, w, 0);
    free(out);
    free(keys);
    free(values);
}

/* clang-format off */
static const struct op_case attend_heads_cases[] = {
    /* seed rows cols format    nmse   why this case */
    {  85,    1,  256, F32,        1e-12, .why = "decode, groups of 8",
      .n_head = 8, .n_kv = 1, .out = 128, .ring = 80, .pos = 70 },
    {  86,    1,  256, F32,        1e-12, .why = "the same, all heads in a workgroup",
      .n_head = 8, .n_kv = 1, .out = 128, .ring = 80, .pos = 70, .tiling = 4 },
    {  87,    1,  128, F32,        1e-12,
      .why = "groups of 6, four heads in a workgroup, a long history", .n_head = 12, .n_kv = 2,
      .out = 64, .ring = 700, .pos = 650, .tiling = 3 },
    {  88,    1,   32, F32,        1e-11,
      .why = "more history than the splits can be fine for; f32 exponentials of 8,889 keys",
      .n_head = 8, .n_kv = 1, .out = 16, .ring = 9000, .pos = 8888 },
    {  89,    1,  512, F32,        1e-11,
      .why = "the largest head, few pairs are rotated; scores near 60 lose digits", .n_head = 8,
      .n_kv = 1, .out = 64, .ring = 200, .pos = 150 },
    {  90,    1,   64, F32,        1e-12, .why = "the first token of all",
      .n_head = 4, .n_kv = 2, .out = 32, .ring = 4 },
    {  91,    1,   32, QUANT_BF16, 1e-12, .why = "a full ring, many turns, groups of 3",
      .n_head = 6, .n_kv = 2, .out = 5, .window = 12, .ring = 12, .pos = 100 },
    {  92,    1,   64, F32,        1e-12,
      .why = "sixteen heads of one: two workgroups write the same key", .n_head = 16, .n_kv = 1,
      .out = 32, .ring = 99, .pos = 90 },
    {  93,    1,   16, F32,        1e-12, .why = "every head has its own, values from keys",
      .n_head = 3, .n_kv = 3, .out = 8, .ring = 70, .pos = 64, .split = true },
    {  94,    1,  256, F32,        1e-12, .why = "another layer's cache, two heads in a workgroup",
      .n_head = 8, .n_kv = 2, .out = 128, .ring = 40, .pos = 35, .plain = true, .tiling = 2 },
    {  95,    1,   64, F32,        1e-12, .why = "halves",
      .n_head = 4, .n_kv = 2, .out = 32, .window = 30, .ring = 30, .pos = 77, .half = true },
    {  96,    1,   24, F32,        1e-12,
      .why = "halves, another layer's cache, an odd number of eights", .n_head = 3, .n_kv = 1,
      .out = 12, .ring = 9, .pos = 7, .half = true, .plain = true },
    {  97,    5,   32, F32,        1e-12, .why = "several rows, a ring that wraps",
      .n_head = 4, .n_kv = 2, .out = 16, .window = 12, .ring = 16, .pos = 77 },
    {  98,    3,   64, F32,        1e-12, .why = "several rows, another layer's cache",
      .n_head = 4, .n_kv = 1, .out = 32, .ring = 50, .pos = 40, .plain = true },
};
/* clang-format on */

/* clang-format off */
static const struct op_case attend_then_linear_cases[] = {
    /* seed rows cols format    nmse   why this case */
    {  99,    1,   64, F32,        1e-12, .why = "decode",
      .n_head = 8, .n_kv = 2, .out = 32, .ring = 80, .pos = 70, .n_ff = 40 },
    { 100,    1,  512, F32,        1e-11, .why = "the largest head, another layer's cache",
      .n_head = 2, .n_kv = 1, .out = 64, .ring = 90, .pos = 80, .n_ff = 9, .plain = true },
    { 105,    3,   16, F32,        1e-12, .why = "several rows, one run a head",
      .n_head = 6, .n_kv = 2, .out = 8, .ring = 40, .pos = 30, .n_ff = 33 },
};
/* clang-format on */

/* clang-format off */
static const struct op_case attend_linear_cases[] = {
    /* seed rows cols format    nmse   why this case */
    { 101,    1,   64, QUANT_Q8_0, 1e-12, .why = "an adapter",
      .n_head = 8, .n_kv = 2, .out = 32, .ring = 80, .pos = 70, .n_ff = 40, .rank = 16,
      .n_lora = 1, .at = 1 },
    { 102,    1,  256, QUANT_Q8_0, 1e-11, .why = "another layer's cache, three adapters",
      .n_head = 3, .n_kv = 1, .out = 64, .ring = 90, .pos = 80, .n_ff = 9, .plain = true,
      .rank = 15, .n_lora = 3, .at = 1 },
    { 103,    1,   32, QUANT_Q8_0, 1e-12, .why = "the largest rank",
      .n_head = 4, .n_kv = 4, .out = 16, .ring = 50, .pos = 40, .n_ff = 33, .rank = 256,
      .n_lora = 1, .at = 1 },
    { 104,    3,   32, QUANT_Q8_0, 1e-12, .why = "several rows, an adapter",
      .n_head = 4, .n_kv = 2, .out = 16, .ring = 40, .pos = 30, .n_ff = 33, .rank = 8,
      .n_lora = 1, .at = 1 },

    { 106,    1,   64, EVERY,      1e-11, .why = "decode, every format; f32 exponentials",
      .n_head = 4, .n_kv = 2, .out = 32, .ring = 80, .pos = 70, .n_ff = 40, .at = 1 },
    { 107,    1,  512, QUANT_Q4_K, 1e-11,
      .why = "the largest head, eight of them, another layer's cache", .n_head = 8, .n_kv = 1,
      .out = 64, .ring = 90, .pos = 80, .n_ff = 17, .plain = true, .at = 1 },
    { 108,    1,  256, QUANT_Q6_K, 1e-11, .why = "the first token of all: splits without positions",
      .n_head = 8, .n_kv = 1, .out = 128, .ring = 256, .n_ff = 9, .at = 1 },
    { 109,    1,   32, F32,        1e-11, .why = "more splits than are merged at once",
      .n_head = 8, .n_kv = 1, .out = 16, .ring = 400, .pos = 390, .n_ff = 12, .at = 1 },
    { 110,    3,   64, QUANT_Q8_0, 1e-11, .why = "several rows",
      .n_head = 4, .n_kv = 1, .out = 32, .ring = 50, .pos = 40, .n_ff = 33, .at = 1 },

    { 292,    1,  160, QUANT_Q8_0, 1e-11,
      .why = "many splits, a head in three pieces, two adapters", .n_head = 4, .n_kv = 1,
      .out = 80, .ring = 700, .pos = 690, .n_ff = 12, .rank = 9, .n_lora = 2, .at = 1 },
    { 293,    1,  128, QUANT_Q4_0, 1e-11, .why = "as many splits as there can be, an adapter",
      .n_head = 8, .n_kv = 1, .out = 64, .ring = 4300, .pos = 4250, .n_ff = 12, .rank = 3,
      .n_lora = 1, .at = 1 },
    { 305,    1,  256, QUANT_Q4_K, 1e-11, .why = "more columns than a product merges: heads alone",
      .n_head = 20, .n_kv = 4, .out = 128, .ring = 120, .pos = 110, .n_ff = 40, .at = 1 },
    { 306,    1,  512, QUANT_Q6_K, 1e-11,
      .why = "heads alone, of the largest size, values made of keys, the first token",
      .n_head = 9, .n_kv = 3, .out = 64, .ring = 64, .n_ff = 33, .split = true, .at = 1 },
    { 307,    1,  256, QUANT_Q8_0, 1e-11, .why = "heads alone, halves, a window around the ring",
      .n_head = 18, .n_kv = 2, .out = 128, .ring = 40, .pos = 100, .window = 33, .n_ff = 17,
      .half = true, .at = 1 },
    { 308,    1,  256, QUANT_Q4_K, 1e-11, .why = "more columns than a product merges, few splits",
      .n_head = 20, .n_kv = 4, .out = 128, .ring = 300, .pos = 290, .n_ff = 40, .at = 1 },
    { 309,    1,  256, F32,        1e-11, .why = "so many columns, floats",
      .n_head = 20, .n_kv = 4, .out = 128, .ring = 120, .pos = 100, .n_ff = 40, .at = 1 },
};
/* clang-format on */

#endif
