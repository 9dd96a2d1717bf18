/* small.h - the ops of a few lines: rows of a table, norms, one step for each element */
#ifndef BEZEL_TESTS_OPS_CASES_SMALL_H
#define BEZEL_TESTS_OPS_CASES_SMALL_H

#include "ops_cases/case.h"

static void case_embed(struct bench *b, const struct op_case *c)
{
    struct act *ids = bench_ids(b, c->rows, 1, c->out), *y = bench_blank(b, c->rows, c->cols);
    struct mat *table = bench_weight(b, c->format, c->cols, c->out, 1);
    op_embed(&b->run, &y->t, &table->w, &ids->t, 3.25f);
    bench_result(b, &y->t, false);
    double *want = bench_formula(b);
    for (size_t i = 0; want && i < b->n_got; i++) {
        size_t row = (size_t)act_id(ids, i / c->cols);
        want[i] = 3.25 * (double)table->v[row * c->cols + i % c->cols];
    }
}

/* clang-format off */
static const struct op_case embed_cases[] = {
    /* seed rows cols format    nmse   why this case */
    {   0,    5,  256, EVERY,      1e-13, .why = "rows of a table in every format", .out = 31 },
    {   1,   65,   96, QUANT_Q8_0, 1e-13, .why = "ids repeat; three blocks a row", .out = 7 },
    {   2,    1,    1, F32,        1e-13, .why = "the smallest table", .out = 1 },
};
/* clang-format on */

static void case_rms_norm(struct bench *b, const struct op_case *c)
{
    struct act *x = bench_random(b, c->rows, c->cols), *y = bench_blank(b, c->rows, c->cols);
    struct mat *w = c->plain ? bench_absent(b) : bench_weight(b, c->format, c->cols, 1, 1);
    op_rms_norm(&b->run, &y->t, &x->t, &w->w, 0.5f);
    bench_result(b, &y->t, false);
    double *want = bench_formula(b), *in = widen(x->v, b->n_got);
    for (size_t i = 0; want && i < b->n_got; i += c->cols)
        formula_norm(want + i, in + i, w->v, c->cols, 0.5);
    free(in);
}

/* clang-format off */
static const struct op_case rms_norm_cases[] = {
    /* seed rows cols format    nmse   why this case */
    {   3,    1,   64, F32,        1e-12, .why = "decode" },
    {   4,   65, 2052, F32,        1e-12, .why = "rows and cols just past a tile" },
    {   5,    3,   96, QUANT_BF16, 1e-12, .why = "a weight that is not F32" },
    {   6,    5,   33, F32,        1e-12, .why = "no weight, odd cols",
      .plain = true, .cpu_only = true },
};
/* clang-format on */

/* x + rms_norm(branch) */
static void case_residual(struct bench *b, const struct op_case *c)
{
    struct act *x = bench_random(b, c->rows, c->cols), *branch = bench_random(b, c->rows, c->cols);
    struct act *y = bench_blank(b, c->rows, c->cols);
    struct mat *w = bench_weight(b, c->format, c->cols, 1, 1);
    struct tape *t = bench_tape(b, c->rows);
    struct value *sum = bench_input(b, x), *added = bench_input(b, branch);
    added = tape_rms_norm(t, added, &w->w);
    sum = tape_add(t, sum, added);
    bench_keep(b, sum, y);
    bench_run(b, RULE_BIT(RESIDUAL), 0);
    bench_result(b, &y->t, false);
    double *want = bench_formula(b), *in = widen(branch->v, b->n_got);
    for (size_t i = 0; want && i < b->n_got; i += c->cols) {
        formula_norm(want + i, in + i, w->v, c->cols, (double)EPS);
        for (uint32_t j = 0; j < c->cols; j++) want[i + j] += (double)x->v[i + j];
    }
    free(in);
}

/* clang-format off */
static const struct op_case residual_cases[] = {
    /* seed rows cols format    nmse   why this case */
    { 111,   65, 2052, F32,        1e-12, .why = "rows and cols just past a tile" },
    { 112,    1,   64, QUANT_F16,  1e-12, .why = "decode" },
};
/* clang-format on */

static void case_norm_sum(struct bench *b, const struct op_case *c)
{
    struct act *x[2] = { bench_random(b, c->rows, c->cols), bench_random(b, c->rows, c->cols) };
    struct act *y = bench_blank(b, c->rows, c->cols);
    struct mat *w[2] = { bench_weight(b, c->format, c->cols, 1, 1),
                         bench_weight(b, c->format, c->cols, 1, 1) };
    struct tape *t = bench_tape(b, c->rows);
    struct value *v[2] = { NULL };
    for (int k = 0; k < 2; k++) {
        v[k] = bench_input(b, x[k]);
        v[k] = tape_rms_norm(t, v[k], &w[k]->w);
    }
    v[0] = tape_add(t, v[0], v[1]);
    bench_keep(b, v[0], y);
    bench_run(b, RULE_BIT(NORM_SUM), 0);
    bench_result(b, &y->t, false);
    double *want = bench_formula(b), *half = malloc(c->cols * sizeof *half);
    for (size_t i = 0; want && i < b->n_got; i++) want[i] = 0;
    for (size_t i = 0; want && i < 2 * b->n_got; i += c->cols) {
        size_t at = i % b->n_got, k = i / b->n_got;
        double *in = widen(x[k]->v + at, c->cols);
        formula_norm(half, in, w[k]->v, c->cols, (double)EPS);
        for (uint32_t j = 0; j < c->cols; j++) want[at + j] += half[j];
        free(in);
    }
    free(half);
}

/* clang-format off */
static const struct op_case norm_sum_cases[] = {
    /* seed rows cols format    nmse   why this case */
    { 113,   65, 2052, F32,        1e-12, .why = "rows and cols just past a tile" },
    { 114,    1,   64, QUANT_F16,  1e-12, .why = "decode" },
    { 115,    1, 2816, F32,        1e-12, .why = "decode, as wide as published, in one dispatch" },
    { 116,    3, 5376, F32,        1e-12, .why = "two runs of columns a thread, in one dispatch" },
    { 117,    2, 8208, F32,        1e-12,
      .why = "columns past what a workgroup keeps, in two dispatches" },
};
/* clang-format on */

static void case_gelu_mul(struct bench *b, const struct op_case *c)
{
    uint32_t width = c->cols + 2 * c->at;
    struct act *x = bench_random(b, c->rows, c->cols), *by = bench_random(b, c->rows, width);
    op_gelu_mul(&b->run, &x->t, &by->t, c->at);
    bench_result(b, &x->t, false);
    double *want = bench_formula(b);
    for (size_t i = 0; want && i < b->n_got; i++)
        want[i] = formula_gelu((double)x->v[i]) *
                  (double)by->v[i / c->cols * width + c->at + i % c->cols];
}

/* clang-format off */
static const struct op_case gelu_mul_cases[] = {
    /* seed rows cols format    nmse   why this case */
    { 220,    1,   64, F32,        1e-12, .why = "decode" },
    { 221,   65,  100, F32,        1e-12, .why = "many rows" },
    { 222,    5,   32, F32,        1e-12, .why = "by a slice in the middle", .at = 96 },
};
/* clang-format on */

static void case_times(struct bench *b, const struct op_case *c)
{
    struct act *x = bench_random(b, c->rows, c->cols);
    op_times(&b->run, &x->t, 0.375f);
    bench_result(b, &x->t, false);
    double *want = bench_formula(b);
    for (size_t i = 0; want && i < b->n_got; i++) want[i] = 0.375 * (double)x->v[i];
}

/* clang-format off */
static const struct op_case times_cases[] = {
    /* seed rows cols format    nmse   why this case */
    {  38,    1,   64, F32,        1e-14, .why = "decode" },
    {  39,   65,  100, F32,        1e-14, .why = "many rows" },
};
/* clang-format on */

/* plain: numbers far past the cap. */
static void case_softcap(struct bench *b, const struct op_case *c)
{
    const double cap = c->plain ? 0.0078125 : 0.75;
    struct act *x = bench_random(b, c->rows, c->cols);
    op_softcap(&b->run, &x->t, (float)cap);
    bench_result(b, &x->t, false);
    double *want = bench_formula(b);
    for (size_t i = 0; want && i < b->n_got; i++) want[i] = cap * tanh((double)x->v[i] / cap);
}

/* clang-format off */
static const struct op_case softcap_cases[] = {
    /* seed rows cols format    nmse   why this case */
    {  40,    1,  333, F32,        1e-12, .why = "decode, no whole lanes" },
    {  41,    5,  100, F32,        1e-12, .why = "numbers far past the cap", .plain = true },
};
/* clang-format on */

static void case_add(struct bench *b, const struct op_case *c)
{
    struct act *x = bench_random(b, c->rows, c->cols), *by = bench_random(b, c->rows, c->cols);
    op_add(&b->run, &x->t, &by->t);
    bench_result(b, &x->t, false);
    double *want = bench_formula(b);
    for (size_t i = 0; want && i < b->n_got; i++) want[i] = (double)x->v[i] + (double)by->v[i];
}

/* clang-format off */
static const struct op_case add_cases[] = {
    /* seed rows cols format    nmse   why this case */
    { 271,   65,  100, F32,        1e-14, .why = "many rows" },
};
/* clang-format on */

static void case_scale(struct bench *b, const struct op_case *c)
{
    struct act *x = bench_random(b, c->rows, c->cols);
    struct mat *w = c->plain ? bench_absent(b) : bench_weight(b, c->format, 1, 1, 1);
    op_scale(&b->run, &x->t, &w->w);
    bench_result(b, &x->t, false);
    double *want = bench_formula(b);
    for (size_t i = 0; want && i < b->n_got; i++)
        want[i] = (double)x->v[i] * (c->plain ? 1 : (double)w->v[0]);
}

/* clang-format off */
static const struct op_case scale_cases[] = {
    /* seed rows cols format    nmse   why this case */
    { 272,    5,  100, F32,        1e-14, .why = "a number" },
    { 273,    5,  100, QUANT_BF16, 1e-14, .why = "a number of another format" },
    { 274,    5,  100, F32,        0,     .why = "absent: nothing changes", .plain = true },
};
/* clang-format on */

static void case_copy_rows(struct bench *b, const struct op_case *c)
{
    struct act *x = bench_random(b, c->rows + 2 * c->at, c->cols);
    struct act *y = bench_blank(b, c->rows, c->cols);
    op_copy_rows(&b->run, &y->t, &x->t, c->at);
    bench_result(b, &y->t, false);
    double *want = bench_formula(b);
    for (size_t i = 0; want && i < b->n_got; i++)
        want[i] = (double)x->v[(size_t)c->at * c->cols + i];
}

/* clang-format off */
static const struct op_case copy_rows_cases[] = {
    /* seed rows cols format    nmse   why this case */
    { 275,    1,   96, F32,        0,     .why = "the last row", .at = 4 },
    { 276,   65,   33, F32,        0,     .why = "rows from the middle", .at = 3 },
};
/* clang-format on */

#endif
