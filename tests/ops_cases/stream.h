/* stream.h - the residual, its norm, and the products that read them */
#ifndef BEZEL_TESTS_OPS_CASES_STREAM_H
#define BEZEL_TESTS_OPS_CASES_STREAM_H

#include "ops_cases/linear.h"

/* The residual (x + rms_norm(branch) * w) * scale, and its norm, which the next block reads. plain:
 * nothing is added, and x itself is read; both: there are two branches. */
struct stream {
    struct act *x, *branch, *to, *norm;
    struct mat *w, *scale, *next, *branch_w, *other_w;
    struct tensor other;
};

static struct stream make_stream(struct bench *b, const struct op_case *c, bool scaled, bool normed)
{
    return (struct stream) {
        .x = bench_random(b, c->rows, c->cols),
        .branch = bench_random(b, c->both ? 2 * c->rows : c->rows, c->cols),
        .to = bench_blank(b, c->rows, c->cols),
        .norm = bench_blank(b, c->rows, c->cols),
        .w = bench_weight(b, F32, c->cols, 1, 1),
        .scale = scaled && !c->plain ? bench_weight(b, F32, 1, 1, 1) : bench_absent(b),
        .next = normed ? bench_weight(b, F32, c->cols, 1, 1) : bench_absent(b),
    };
}

/* The second branch, which lies in the memory of the first; and the weights of both norms. */
static void stream_both(struct bench *b, const struct op_case *c, struct stream *s)
{
    s->branch_w = bench_weight(b, F32, c->cols, 1, 1);
    s->other_w = bench_weight(b, F32, c->cols, 1, 1);
    s->branch->t.rows = c->rows;
    s->other = s->branch->t;
    s->other.size = (uint64_t)c->rows * c->cols;
    b->be->view(&s->other, &s->branch->t, c->rows * c->cols);
}

/* The residual, which is a result of the case. */
static struct value *residual(struct bench *b, const struct stream *s, struct value *x,
                              struct value *branch)
{
    branch = tape_rms_norm(&b->tape, branch, &s->w->w);
    x = tape_add(&b->tape, x, branch);
    x = tape_scale(&b->tape, x, &s->scale->w);
    bench_keep(b, x, s->to);
    return x;
}

static struct value *normed(struct bench *b, const struct stream *s, struct value *x)
{
    return tape_rms_norm(&b->tape, x, &s->next->w);
}

/* The residual of random inputs. It begins the tape. */
static struct value *residual_input(struct bench *b, const struct op_case *c, struct stream *s)
{
    struct value *x = bench_input(b, s->x);
    if (c->plain) return x;
    struct value *branch = bench_input(b, s->branch);
    if (c->both) {
        struct value *other = tape_input(&b->tape, &s->other, c->rows);
        other = tape_rms_norm(&b->tape, other, &s->other_w->w);
        branch = tape_rms_norm(&b->tape, branch, &s->branch_w->w);
        branch = tape_add(&b->tape, other, branch);
    }
    return residual(b, s, x, branch);
}

/* The residual as a result. Where nothing was added that is x itself. */
static void stream_result(struct bench *b, const struct op_case *c, const struct stream *s)
{
    bench_result(b, c->plain ? &s->x->t : &s->to->t, false);
}

/* in = norm(in) * branch_w + norm(the second branch) * other_w */
static void formula_both(const struct stream *s, const struct op_case *c, double *in)
{
    size_t n = (size_t)c->rows * c->cols;
    double *other = widen(s->branch->v + n, n);
    for (size_t i = 0; i < n; i += c->cols) {
        formula_norm(in + i, in + i, s->branch_w->v, c->cols, (double)EPS);
        formula_norm(other + i, other + i, s->other_w->v, c->cols, (double)EPS);
    }
    for (size_t i = 0; i < n; i++) in[i] += other[i];
    free(other);
}

/* The residual goes to `to`. Returns what the next block reads; the caller frees it. */
static double *formula_stream(const struct stream *s, const struct op_case *c, double *to)
{
    size_t n = (size_t)c->rows * c->cols;
    double *in = widen(s->branch->v, n), *result = malloc((n ? n : 1) * sizeof *result);
    if (c->both) formula_both(s, c, in);
    for (size_t i = 0; i < n; i += c->cols) {
        formula_norm(to + i, in + i, s->w->v, c->cols, (double)EPS);
        for (uint32_t k = 0; k < c->cols; k++)
            to[i + k] = ((c->plain ? 0 : to[i + k]) + (double)s->x->v[i + k]) *
                        (s->scale->v ? (double)s->scale->v[0] : 1);
        if (s->next->v) formula_norm(result + i, to + i, s->next->v, c->cols, (double)EPS);
        else memcpy(result + i, to + i, c->cols * sizeof *to);
    }
    free(in);
    return result;
}

/* at: no norm afterwards. */
static void case_residual_norm(struct bench *b, const struct op_case *c)
{
    struct stream s = make_stream(b, c, !c->split, !c->at);
    if (c->both) stream_both(b, c, &s);
    bench_tape(b, c->rows);
    struct value *x = residual_input(b, c, &s);
    if (!c->at) {
        x = normed(b, &s, x);
        bench_keep(b, x, s.norm);
    }
    bench_run(b, c->at ? RULE_BIT(RESIDUAL) : RULE_BIT(RESIDUAL_NORM), 0);
    stream_result(b, c, &s);
    if (!c->at) bench_result(b, &s.norm->t, false);
    double *want = bench_formula(b);
    if (!want) return;
    double *result = formula_stream(&s, c, want);
    if (!c->at) memcpy(want + b->n_got / 2, result, b->n_got / 2 * sizeof *want);
    free(result);
}

/* clang-format off */
static const struct op_case residual_norm_cases[] = {
    /* seed rows cols format    nmse   why this case */
    { 118,    3,  256, F32,        1e-12, .why = "two branches", .both = true },
    { 119,   65, 2052, F32,        1e-12, .why = "rows and cols just past a tile" },
    { 120,    1,   64, F32,        1e-12, .why = "decode, no scale", .split = true },
    { 122,    5,  256, F32,        1e-12, .why = "no norm afterwards, no scale",
      .at = 1, .split = true },
    { 123,    3, 2064, F32,        1e-12, .why = "columns just past a workgroup of 128" },
    { 124,    1, 5376, F32,        1e-12, .why = "decode, two runs of columns a thread" },
    { 126,    2, 8208, F32,        1e-12, .why = "columns past what a workgroup keeps" },
};
/* clang-format on */

/* As the model ends: the product is a dispatch of its own. */
static void case_residual_norm_then_linear(struct bench *b, const struct op_case *c)
{
    struct stream s = make_stream(b, c, true, true);
    struct act *y = bench_blank(b, c->rows, c->out);
    struct mat *w = bench_weight(b, c->format, c->cols, c->out, 1);
    for (uint32_t i = 0; i < c->n_lora; i++) bench_lora(b, w, c->rank + i);
    bench_tape(b, c->rows);
    struct value *x = residual_input(b, c, &s);
    x = normed(b, &s, x);
    x = tape_linear(&b->tape, x, &w->w);
    bench_keep(b, x, y);
    bench_run(b, RULE_BIT(RESIDUAL_NORM), 0);
    stream_result(b, c, &s);
    bench_result(b, &y->t, false);
    double *want = bench_formula(b);
    if (!want) return;
    double *h = formula_stream(&s, c, want), *to = want + (size_t)c->rows * c->cols;
    for (uint32_t k = 0; k < c->rows; k++, to += c->out)
        formula_linear(to, h + (size_t)k * c->cols, w, 0);
    free(h);
}

/* clang-format off */
static const struct op_case residual_norm_then_linear_cases[] = {
    /* seed rows cols format    nmse   why this case */
    { 202,    1,  256, QUANT_Q6_K, 1e-11,
      .why = "as the model ends; the CPU's fast tanh is e^x in f32", .out = 300 },
    { 203,    5, 1536, QUANT_Q8_0, 1e-12, .why = "a few rows", .out = 65 },
    { 204,   70,   96, QUANT_Q8_0, 1e-11, .why = "prefill; that tanh", .out = 68 },

    { 216,    1,   64, QUANT_Q5_0, 1e-12, .why = "adapters, in three dispatches",
      .out = 36, .rank = 4, .n_lora = 2 },
    { 217,    3,  256, QUANT_Q4_K, 1e-12, .why = "an adapter, a few rows, in three dispatches",
      .out = 300, .rank = 16, .n_lora = 1 },
    { 218,    1,  264, QUANT_F16,  1e-12,
      .why = "an adapter of large rank, an odd number of eights, in three dispatches", .out = 41,
      .rank = 100, .n_lora = 1, .tiling = 3 },
    { 219,    1, 1536, QUANT_Q6_K, 1e-12, .why = "an adapter on a long row",
      .out = 36, .rank = 1, .n_lora = 1 },
};
/* clang-format on */

/* n_used weights of out, out / 2, ... rows; split: the last one has more bits. */
static void case_norm_linears(struct bench *b, const struct op_case *c)
{
    struct stream s = make_stream(b, c, true, true);
    if (c->both) stream_both(b, c, &s);
    struct mat *m[GROUP_LINEARS];
    struct act *y[GROUP_LINEARS];
    for (uint32_t i = 0; i < c->n_used; i++) {
        uint32_t more = c->format == QUANT_Q6_K ? QUANT_F16 : QUANT_Q6_K;
        uint32_t format = c->split && i == c->n_used - 1 ? more : c->format;
        m[i] = bench_weight(b, format, c->cols, c->out >> i, 1);
        y[i] = bench_blank(b, c->rows, c->out >> i);
    }
    for (uint32_t i = 0; i < c->n_lora; i++) bench_lora(b, m[i % c->n_used], c->rank + i);
    bench_tape(b, c->rows);
    struct value *x = residual_input(b, c, &s);
    x = normed(b, &s, x);
    for (uint32_t i = 0; i < c->n_used; i++) {
        struct value *v = tape_linear(&b->tape, x, &m[i]->w);
        bench_keep(b, v, y[i]);
    }
    bench_run(b, RULE_BIT(NORM_LINEARS), 0);
    stream_result(b, c, &s);
    for (uint32_t i = 0; i < c->n_used; i++) bench_result(b, &y[i]->t, false);
    double *want = bench_formula(b);
    if (!want) return;
    double *h = formula_stream(&s, c, want), *to = want + (size_t)c->rows * c->cols;
    for (uint32_t i = 0; i < c->n_used; i++)
        for (uint32_t k = 0; k < c->rows; k++, to += c->out >> i)
            formula_linear(to, h + (size_t)k * c->cols, m[i], 0);
    free(h);
}

/* clang-format off */
static const struct op_case norm_linears_cases[] = {
    /* seed rows cols format    nmse   why this case */
    { 121,    1, 1536, F32,        1e-12, .why = "nothing is added, floats",
      .out = 8, .n_used = 1, .plain = true },
    { 125,   65, 5376, F32,        1e-12, .why = "two runs of columns a thread, nothing is added",
      .out = 8, .n_used = 1, .plain = true },
    { 127,    1,  256, EVERY,      1e-12, .why = "decode, every format", .out = 40, .n_used = 3 },
    { 128,    1, 1536, QUANT_Q4_K, 1e-12, .why = "one weight, a row longer than the lanes",
      .out = 65, .n_used = 1 },
    { 129,    1,   96, QUANT_Q8_0, 1e-12, .why = "two weights, the first of all blocks",
      .out = 34, .n_used = 2, .plain = true },
    { 130,    1,  512, QUANT_Q6_K, 1e-12, .why = "two formats",
      .out = 100, .n_used = 3, .split = true },
    { 131,    1,  512, QUANT_Q4_K, 1e-12, .why = "the usual two formats",
      .out = 100, .n_used = 3, .split = true },
    { 132,    2,  256, QUANT_Q5_K, 1e-12, .why = "the same of more bits",
      .out = 36, .n_used = 3, .split = true },
    { 133,    1,  512, QUANT_Q4_K, 1e-12, .why = "row groups of 32 lanes",
      .out = 100, .n_used = 2, .tiling = 2 },
    { 134,    5,  512, QUANT_Q4_K, 1e-12, .why = "a few rows, row groups of 16 lanes",
      .out = 68, .n_used = 3, .tiling = 3 },
    { 135,   70,   96, QUANT_Q8_0, 1e-12, .why = "prefill", .out = 68, .n_used = 3 },
    { 136,    1,   64, QUANT_Q5_0, 1e-12, .why = "adapters on all",
      .out = 36, .n_used = 3, .rank = 4, .n_lora = 3 },
    { 137,    1,  256, EVERY,      1e-12, .why = "two branches, every format",
      .out = 40, .n_used = 2, .both = true },
    { 138,    1, 2816, QUANT_Q4_K, 1e-12,
      .why = "two branches, as published files have them, in one dispatch", .out = 100,
      .n_used = 3, .split = true, .both = true },
    { 139,    3,  512, QUANT_Q8_0, 1e-12, .why = "two branches, a few rows, in one dispatch",
      .out = 68, .n_used = 3, .tiling = 3, .both = true },
    { 140,    1, 5376, QUANT_Q4_0, 1e-12, .why = "two branches, the widest stream",
      .out = 9, .n_used = 2, .both = true },
    { 141,    1,  256, QUANT_Q5_0, 1e-12, .why = "two branches, adapters on all",
      .out = 36, .n_used = 3, .rank = 4, .n_lora = 3, .both = true },
    { 142,   70,   64, QUANT_Q8_0, 1e-12, .why = "two branches, prefill",
      .out = 68, .n_used = 3, .both = true },
    { 143,    1, 5376, QUANT_Q4_0, 1e-12, .why = "the widest stream", .out = 9, .n_used = 2 },
    { 144,    1, 1536, QUANT_Q4_K, 1e-12, .why = "adapters on all, in two dispatches",
      .out = 100, .n_used = 3, .rank = 16, .n_lora = 3 },
    { 145,    1,  512, QUANT_Q4_K, 1e-12,
      .why = "the usual two formats, adapters on two, in two dispatches", .out = 100, .n_used = 3,
      .split = true, .rank = 1, .n_lora = 2 },
    { 146,    3,  256, QUANT_Q5_K, 1e-12,
      .why = "the same of more bits, several adapters, in two dispatches", .out = 70, .n_used = 3,
      .split = true, .rank = 15, .n_lora = 4, .tiling = 3 },
    { 147,    5,  256, QUANT_Q8_0, 1e-12, .why = "the largest rank, a few rows, in two dispatches",
      .out = 68, .n_used = 3, .rank = 254, .n_lora = 3 },
    { 148,    1,  256, QUANT_Q6_K, 1e-12,
      .why = "one weight, two adapters, nothing is added, in two dispatches", .out = 37,
      .n_used = 1, .plain = true, .rank = 16, .n_lora = 2 },
    { 149,    3, 1536, QUANT_Q4_K, 1e-12,
      .why = "one weight, an adapter, a few rows, in two dispatches", .out = 530, .n_used = 1,
      .rank = 16, .n_lora = 1 },
    { 150,    1, 1536, QUANT_Q4_K, 1e-12,
      .why = "one weight, an adapter, its share afterwards, in two dispatches", .out = 640,
      .n_used = 1, .rank = 16, .n_lora = 1 },
    { 151,    1,  256, QUANT_Q5_0, 1e-12, .why = "one weight, too large a rank, in two dispatches",
      .out = 66, .n_used = 1, .rank = 257, .n_lora = 1 },
    { 152,    1,  256, QUANT_Q6_K, 1e-12, .why = "adapters on codes and on floats",
      .out = 41, .n_used = 3, .split = true, .rank = 8, .n_lora = 3 },
    { 153,    2,  128, QUANT_F16,  1e-12, .why = "adapters on floats",
      .out = 40, .n_used = 2, .rank = 8, .n_lora = 2 },
    { 154,    1, 5376, QUANT_Q4_0, 1e-12, .why = "the widest stream, adapters",
      .out = 20, .n_used = 2, .rank = 16, .n_lora = 2 },

    { 173,    1,  256, QUANT_Q4_0, 1e-12, .why = "wide", .out = 40, .n_used = 3, .wide = true },
    { 174,    1,  256, QUANT_Q5_0, 1e-12, .why = "wide, single rows",
      .out = 41, .n_used = 3, .wide = true, .tiling = 1 },
    { 175,    1,  256, QUANT_Q8_0, 1e-12, .why = "wide, pairs of rows",
      .out = 43, .n_used = 3, .wide = true, .tiling = 2 },
    { 176,    1,  512, QUANT_Q4_K, 1e-12, .why = "wide, four rows together",
      .out = 70, .n_used = 3, .wide = true, .tiling = 3 },
    { 177,    5,  256, QUANT_Q5_K, 1e-12, .why = "wide, a few rows",
      .out = 40, .n_used = 2, .wide = true },
    { 178,    1,  768, QUANT_Q6_K, 1e-12, .why = "wide, one weight, nothing is added",
      .out = 37, .n_used = 1, .wide = true, .plain = true },
    { 179,    1,  256, QUANT_Q4_1, 1e-12, .why = "wide", .out = 40, .n_used = 3, .wide = true },
    { 180,    1,  512, QUANT_Q4_K, 1e-12, .why = "wide, the usual two formats",
      .out = 100, .n_used = 3, .wide = true, .split = true },
    { 181,    3,  256, QUANT_Q5_K, 1e-12, .why = "wide, the same of more bits, pairs of rows",
      .out = 36, .n_used = 3, .wide = true, .split = true, .tiling = 2 },
    { 182,    1,   64, QUANT_Q5_0, 1e-12, .why = "wide, adapters on all",
      .out = 36, .n_used = 3, .rank = 4, .n_lora = 3, .wide = true },
    { 183,    1,   64, QUANT_F16,  1e-12, .why = "wide, floats",
      .out = 36, .n_used = 3, .wide = true },
    { 184,    1, 4352, QUANT_Q4_K, 1e-12, .why = "wide by itself", .out = 20, .n_used = 3 },
    { 185,    1, 2816, QUANT_Q4_K, 1e-12, .why = "not yet wide, more than half of the threads",
      .out = 20, .n_used = 3 },
    { 186,    2, 3840, QUANT_Q6_K, 1e-12,
      .why = "not yet wide, almost all threads, two rows", .out = 20, .n_used = 1 },
};
/* clang-format on */

static void case_residual_linear_gelu(struct bench *b, const struct op_case *c)
{
    uint32_t width = c->out + 2 * c->at;
    struct stream s = make_stream(b, c, false, false);
    struct act *by = bench_random(b, c->rows, width), *y = bench_blank(b, c->rows, c->out);
    struct mat *w = bench_weight(b, c->format, c->cols, c->out, 1);
    for (uint32_t i = 0; i < c->n_lora; i++) bench_lora(b, w, c->rank + i);
    bench_tape(b, c->rows);
    struct value *x = residual_input(b, c, &s);
    x = linear_gelu(b, c, x, w, by);
    bench_keep(b, x, y);
    bench_run(b, RULE_BIT(RESIDUAL_LINEAR_GELU), 0);
    stream_result(b, c, &s);
    bench_result(b, &y->t, false);
    double *want = bench_formula(b);
    if (!want) return;
    double *h = formula_stream(&s, c, want), *to = want + (size_t)c->rows * c->cols;
    for (uint32_t k = 0; k < c->rows; k++, to += c->out) {
        formula_linear(to, h + (size_t)k * c->cols, w, 0);
        for (uint32_t i = 0; i < c->out; i++)
            to[i] = formula_gelu(to[i]) * (double)by->v[(size_t)k * width + c->at + i];
    }
    free(h);
}

/* clang-format off */
static const struct op_case residual_linear_gelu_cases[] = {
    /* seed rows cols format    nmse   why this case */
    { 155,    1,  256, EVERY,      1e-12, .why = "decode, every format", .out = 33, .at = 4 },
    { 156,    3, 1536, QUANT_Q4_K, 1e-12, .why = "a few rows", .out = 40 },
    { 157,   70,  256, QUANT_Q6_K, 1e-12, .why = "prefill, a slice in the middle",
      .out = 68, .at = 8 },
    { 158,    1,   64, QUANT_Q5_0, 1e-12, .why = "two adapters",
      .out = 36, .rank = 8, .n_lora = 2 },
    { 159,    1, 1536, QUANT_Q4_K, 1e-12, .why = "an adapter, its share and gelu afterwards",
      .out = 40, .at = 8, .rank = 16, .n_lora = 1 },
    { 160,    5,  256, QUANT_Q8_0, 1e-12, .why = "two adapters, a few rows, in two dispatches",
      .out = 100, .rank = 40, .n_lora = 2 },
    { 161,    3,  256, F32,        1e-12,
      .why = "floats, the largest rank, a few rows, in two dispatches", .out = 40, .rank = 256,
      .n_lora = 1 },

    { 187,    1,  256, QUANT_Q4_0, 1e-12, .why = "wide", .out = 33, .at = 4, .wide = true },
    { 188,    3,  256, QUANT_Q6_K, 1e-12, .why = "wide, a few rows",
      .out = 40, .at = 8, .wide = true },
    { 189,    1,   64, QUANT_Q8_0, 1e-12, .why = "wide, two adapters",
      .out = 36, .rank = 8, .n_lora = 2, .wide = true },
};
/* clang-format on */

/* n_ff: the product with a third matrix of so many rows is a result too. */
static void case_norm_gate_up(struct bench *b, const struct op_case *c)
{
    struct stream s = make_stream(b, c, false, true);
    struct act *y = bench_blank(b, c->rows, c->out);
    struct mat *w[2] = { bench_weight(b, c->format, c->cols, c->out, 1),
                         bench_weight(b, c->split ? QUANT_F16 : c->format, c->cols, c->out, 1) };
    for (uint32_t i = 0; i < c->n_lora; i++) bench_lora(b, w[i % 2], c->rank + i);
    struct mat *down = c->n_ff ? bench_weight(b, c->format, c->out, c->n_ff, 1) : NULL;
    struct act *z = c->n_ff ? bench_blank(b, c->rows, c->n_ff) : NULL;
    bench_tape(b, c->rows);
    struct value *x = residual_input(b, c, &s);
    x = normed(b, &s, x);
    x = gate_up(&b->tape, x, w);
    bench_keep(b, x, y);
    if (down) {
        x = tape_linear(&b->tape, x, &down->w);
        bench_keep(b, x, z);
    }
    bench_run(b, RULE_BIT(NORM_GATE_UP), 0);
    stream_result(b, c, &s);
    bench_result(b, &y->t, false);
    if (down) bench_result(b, &z->t, false);
    double *want = bench_formula(b);
    if (!want) return;
    double *h = formula_stream(&s, c, want), *to = want + (size_t)c->rows * c->cols;
    double *up = malloc(c->out * sizeof *up), *last = to + (size_t)c->rows * c->out;
    for (uint32_t k = 0; k < c->rows; k++, to += c->out) {
        formula_linear(to, h + (size_t)k * c->cols, w[0], 0);
        formula_linear(up, h + (size_t)k * c->cols, w[1], 0);
        for (uint32_t i = 0; i < c->out; i++) to[i] = formula_gelu(to[i]) * up[i];
        if (down) formula_linear(last + (size_t)k * c->n_ff, to, down, 0);
    }
    free(up);
    free(h);
}

/* clang-format off */
static const struct op_case norm_gate_up_cases[] = {
    /* seed rows cols format    nmse   why this case */
    { 162,    1,  256, EVERY,      1e-12, .why = "decode, every format", .out = 33 },
    { 163,    1, 1536, QUANT_Q4_K, 1e-12, .why = "a row longer than the lanes", .out = 130 },
    { 164,    1, 1536, QUANT_Q4_K, 1e-12, .why = "ready, in other row groups",
      .out = 144, .tiling = 2 },
    { 165,    5,   96, QUANT_Q8_0, 1e-12, .why = "a few rows", .out = 40 },
    { 166,   70,   96, QUANT_Q8_0, 1e-12, .why = "prefill", .out = 68 },
    { 167,    1,   64, QUANT_Q8_0, 1e-12, .why = "two formats", .out = 36, .split = true },
    { 168,    1,   64, QUANT_Q8_0, 1e-12, .why = "adapters on both",
      .out = 36, .rank = 4, .n_lora = 3 },
    { 169,    1, 1536, QUANT_Q4_K, 1e-12, .why = "adapters on both, in two dispatches",
      .out = 144, .rank = 16, .n_lora = 2 },
    { 170,    5,  256, QUANT_Q6_K, 1e-12,
      .why = "the largest rank on one, a few rows, in two dispatches", .out = 70, .rank = 256,
      .n_lora = 1 },
    { 171,    1,  256, QUANT_Q4_0, 1e-12, .why = "adapters on both, and down",
      .out = 256, .n_ff = 20, .rank = 1, .n_lora = 2 },
    { 172,    1,   64, QUANT_Q8_0, 1e-12, .why = "two formats, adapters",
      .out = 36, .split = true, .rank = 8, .n_lora = 2 },

    { 190,    1,  256, QUANT_Q4_0, 1e-12, .why = "wide, and down",
      .out = 256, .n_ff = 20, .wide = true },
    { 191,    2,  256, QUANT_Q5_0, 1e-12, .why = "wide, and down, two rows",
      .out = 288, .n_ff = 20, .wide = true, .tiling = 2 },
    { 192,    1,  256, QUANT_Q8_0, 1e-12, .why = "wide, and down",
      .out = 256, .n_ff = 20, .wide = true },
    { 193,    1,  768, QUANT_Q4_K, 1e-12, .why = "wide, and down",
      .out = 256, .n_ff = 20, .wide = true, .tiling = 2 },
    { 194,    1,  256, QUANT_Q5_K, 1e-12, .why = "wide, and down",
      .out = 256, .n_ff = 20, .wide = true },
    { 195,    1,  256, QUANT_Q6_K, 1e-12, .why = "wide, and down",
      .out = 512, .n_ff = 20, .wide = true, .tiling = 3 },
    { 196,    1,  256, QUANT_Q4_1, 1e-12, .why = "wide, and down",
      .out = 256, .n_ff = 20, .wide = true },
    { 197,    5,   64, QUANT_Q8_0, 1e-12, .why = "wide, not in runs of sixteen",
      .out = 41, .wide = true },
    { 198,    1, 4352, QUANT_Q4_K, 1e-12, .why = "wide by itself", .out = 36 },
    { 199,    1, 2816, QUANT_Q4_K, 1e-12, .why = "not yet wide", .out = 36 },
    { 200,    1,   64, QUANT_Q8_0, 1e-12, .why = "wide, two formats",
      .out = 36, .split = true, .wide = true },
    { 201,    1,   64, QUANT_Q8_0, 1e-12, .why = "wide, adapters on both",
      .out = 36, .rank = 4, .n_lora = 3, .wide = true },

    { 312,    1,  768, QUANT_Q4_K, 1e-12, .why = "wide, and down, three rows a row group",
      .out = 256, .n_ff = 20, .wide = true, .tiling = 4 },
};
/* clang-format on */

#endif
