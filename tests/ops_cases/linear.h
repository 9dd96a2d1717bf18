/* linear.h - products with a matrix, alone or with an activation after them */
#ifndef BEZEL_TESTS_OPS_CASES_LINEAR_H
#define BEZEL_TESTS_OPS_CASES_LINEAR_H

#include "ops_cases/case.h"

static void case_linear(struct bench *b, const struct op_case *c)
{
    struct act *x = bench_random(b, c->rows, c->cols), *y = bench_blank(b, c->rows, c->out);
    struct mat *w = bench_weight(b, c->format, c->cols, c->out, 1);
    for (uint32_t i = 0; i < c->n_lora; i++) bench_lora(b, w, c->rank + i);
    struct act *z = c->keep ? bench_blank(b, c->rows, lora_width(&w->w)) : NULL;
    if (z) op_linear_z(&b->run, &y->t, &z->t, &x->t, &w->w);
    else op_linear(&b->run, &y->t, &x->t, &w->w);
    bench_result(b, &y->t, false);
    if (z) bench_result(b, &z->t, false);
    double *want = bench_formula(b), *in = widen(x->v, (size_t)c->rows * c->cols);
    for (uint32_t t = 0; want && t < c->rows; t++)
        formula_linear(want + (size_t)t * c->out, in + (size_t)t * c->cols, w, 0);
    for (uint32_t t = 0; want && z && t < c->rows; t++) {
        double *to = want + (size_t)c->rows * c->out + (size_t)t * z->t.cols;
        for (uint32_t k = 0; k < z->t.cols; k++) to[k] = 0;
        for (const struct lora *l = w->w.lora; l; to += lora_rank(l), l = l->next)
            formula_matvec(to, in + (size_t)t * c->cols, &l->a, 0);
    }
    free(in);
}

/* clang-format off */
static const struct op_case linear_cases[] = {
    /* seed rows cols format    nmse   why this case */
    {   7,    1,  256, EVERY,      1e-12, .why = "decode, every format", .out = 33 },
    {   8,    5,  512, EVERY,      1e-12, .why = "a whole tile and a tail of rows", .out = 31 },
    {   9,   65,  256, EVERY,      1e-12, .why = "prefill, tail tokens", .out = 100 },
    {  10,    1,   32, EVERY,      1e-12, .why = "one block a row", .out = 1 },
    {  11,    2,   32, EVERY,      1e-12, .why = "fewer tokens than a tile", .out = 33 },
    {  12,    3,   96, EVERY,      1e-12, .why = "exactly one tile of tokens", .out = 100 },
    {  13,    4,   96, EVERY,      1e-12, .why = "one token past a tile", .out = 31 },
    {  14,    1, 2080, F32,        1e-12, .why = "two pieces of the stream and a rest", .out = 33 },
    {  15,    1, 2080, QUANT_Q8_0, 1e-12, .why = "the same, in blocks", .out = 65 },
    {  16,    1, 1024, QUANT_Q4_K, 1e-12, .why = "exactly one piece", .out = 31 },
    {  17,    1, 2304, QUANT_Q6_K, 1e-12, .why = "pieces of 1024, 1024 and 256", .out = 33 },
    {  18,    4, 2080, QUANT_Q4_0, 1e-12, .why = "long rows in prefill", .out = 33 },
    {  19,    1,    1, F32,        1e-12, .why = "a single number", .out = 1, .cpu_only = true },
    {  20,    3,    7, F32,        1e-12, .why = "shorter than a vector",
      .out = 5, .cpu_only = true },
    {  21,    5,   39, F32,        1e-12, .why = "a tail after the vectors",
      .out = 9, .cpu_only = true },
    {  22,    1,   39, QUANT_F16,  1e-12, .why = "the same in decode", .out = 4 },

    {  23,  130,  288, QUANT_Q8_0, 1e-12, .why = "blocks of 128", .out = 132, .tiling = 1 },
    {  24,  130,  288, QUANT_Q8_0, 1e-12, .why = "blocks of 64", .out = 132, .tiling = 2 },
    {  25,  130,  288, QUANT_Q8_0, 1e-12, .why = "blocks of 64 and 32", .out = 132, .tiling = 3 },
    {  26,  130,  288, QUANT_Q8_0, 1e-12, .why = "blocks of 32", .out = 132, .tiling = 4 },
    {  27,   40,  264, QUANT_F16,  1e-12, .why = "an odd number of eights, adapters behind them",
      .out = 132, .tiling = 1, .rank = 17, .n_lora = 1 },

    {  28,    1,   64, QUANT_Q8_0, 1e-12, .why = "one adapter, rank 1",
      .out = 33, .rank = 1, .n_lora = 1 },
    {  29,    5,   96, QUANT_BF16, 1e-12, .why = "one adapter, rank 8",
      .out = 31, .rank = 8, .n_lora = 1 },
    {  30,    4,  256, QUANT_Q4_K, 1e-12, .why = "one adapter, rank 17",
      .out = 100, .rank = 17, .n_lora = 1 },
    {  31,    1,  256, QUANT_Q6_K, 1e-12, .why = "two adapters on a row",
      .out = 33, .rank = 8, .n_lora = 2 },
    {  32,   65,   32, F32,        1e-12, .why = "two adapters, many rows",
      .out = 65, .rank = 17, .n_lora = 2 },
    {  33,    1,  256, QUANT_Q8_0, 1e-12, .why = "the largest rank",
      .out = 33, .rank = 256, .n_lora = 1 },
    {  34,   70,   96, QUANT_Q8_0, 1e-12, .why = "the largest rank, many rows",
      .out = 68, .rank = 256, .n_lora = 1 },
    {  35,    1,   64, QUANT_Q4_0, 1e-12, .why = "four adapters, A x kept",
      .out = 40, .rank = 3, .n_lora = 4, .keep = true },
    {  36,   67,   64, QUANT_Q5_0, 1e-12, .why = "three adapters, A x kept, many rows",
      .out = 40, .rank = 15, .n_lora = 3, .keep = true },
    {  37,    3,   32, F32,        1e-12, .why = "adapters on a single output",
      .out = 1, .rank = 1, .n_lora = 2, .cpu_only = true },

    { 285,  130,  288, QUANT_Q8_0, 1e-12, .why = "blocks of 64 and 128 on subgroup matrices",
      .out = 132, .tiling = 6 },
    { 286,  258,  320, QUANT_Q8_0, 1e-12, .why = "blocks of 128 and 256 on subgroup matrices",
      .out = 132, .tiling = 7 },

    { 310,    1,  256, QUANT_Q4_K, 1e-12, .why = "rows that groups of three divide more evenly",
      .out = 5376 },
    { 311,    1, 2304, QUANT_Q6_K, 1e-12, .why = "row groups of three rows, a tail of one",
      .out = 34, .tiling = 4 },
};
/* clang-format on */

/* clang-format off */
static const struct op_case linear_splits_cases[] = {
    /* seed rows cols format    nmse   why this case */
    { 277,  130,  288, QUANT_Q8_0, 1e-12, .why = "blocks of 128, the columns in three splits",
      .out = 132, .tiling = 5 },
    { 278,   70, 1288, QUANT_F16,  1e-12, .why = "splits, an adapter behind the last",
      .out = 64, .tiling = 5, .rank = 9, .n_lora = 1 },
    { 279,  130, 1536, QUANT_Q4_K, 1e-12, .why = "splits, of header and nibbles",
      .out = 196, .tiling = 5 },
    { 280,  130,  768, QUANT_Q6_K, 1e-12, .why = "splits of six bits", .out = 132, .tiling = 5 },
    { 281,   70, 2560, QUANT_Q4_K, 1e-12, .why = "as many splits as pay", .out = 64 },
    { 282,   70, 2568, QUANT_BF16, 1e-12, .why = "the same, a tail of columns", .out = 60 },
};
/* clang-format on */

/* gelu(W x) * columns at ... of b */
static struct value *linear_gelu(struct bench *b, const struct op_case *c, struct value *x,
                                 const struct mat *w, const struct act *by)
{
    struct value *some = bench_input(b, by);
    some = tape_cols(&b->tape, some, c->at, c->out);
    x = tape_linear(&b->tape, x, &w->w);
    return tape_gelu_mul(&b->tape, x, some);
}

static void case_linear_gelu(struct bench *b, const struct op_case *c)
{
    uint32_t width = c->out + 2 * c->at;
    struct act *x = bench_random(b, c->rows, c->cols), *y = bench_blank(b, c->rows, c->out);
    struct act *by = bench_random(b, c->rows, width);
    struct mat *w = bench_weight(b, c->format, c->cols, c->out, 1);
    for (uint32_t i = 0; i < c->n_lora; i++) bench_lora(b, w, c->rank + i);
    bench_tape(b, c->rows);
    struct value *v = bench_input(b, x);
    v = linear_gelu(b, c, v, w, by);
    bench_keep(b, v, y);
    bench_run(b, RULE_BIT(LINEAR_GELU), 0);
    bench_result(b, &y->t, false);
    double *want = bench_formula(b), *in = widen(x->v, (size_t)c->rows * c->cols);
    for (uint32_t t = 0; want && t < c->rows; t++) {
        double *to = want + (size_t)t * c->out;
        formula_linear(to, in + (size_t)t * c->cols, w, 0);
        for (uint32_t i = 0; i < c->out; i++)
            to[i] = formula_gelu(to[i]) * (double)by->v[(size_t)t * width + c->at + i];
    }
    free(in);
}

/* clang-format off */
static const struct op_case linear_gelu_cases[] = {
    /* seed rows cols format    nmse   why this case */
    {  42,    1,  256, QUANT_Q4_K, 1e-12, .why = "decode", .out = 33, .at = 4 },
    {  43,    5,   96, QUANT_Q8_0, 1e-12, .why = "a few rows, all of b", .out = 40 },
    {  44,   70,  256, QUANT_Q6_K, 1e-12, .why = "prefill, a slice in the middle",
      .out = 68, .at = 8 },
    {  45,    1,   64, QUANT_Q5_0, 1e-12, .why = "two adapters",
      .out = 36, .rank = 8, .n_lora = 2 },
    {  46,   66,   64, F32,        1e-12, .why = "an adapter, many rows",
      .out = 36, .rank = 3, .n_lora = 1 },

    { 283,   70, 1536, QUANT_Q4_K, 1e-12, .why = "splits, a slice in the middle",
      .out = 68, .at = 8, .tiling = 5 },
    { 284,   70, 2560, QUANT_Q8_0, 1e-12, .why = "as many splits as pay, an adapter",
      .out = 36, .at = 4, .rank = 5, .n_lora = 1 },
};
/* clang-format on */

/* gelu(G x) * (U x) */
static struct value *gate_up(struct tape *t, struct value *x, struct mat *const w[2])
{
    struct value *gate = tape_linear(t, x, &w[0]->w), *up = tape_linear(t, x, &w[1]->w);
    return tape_gelu_mul(t, gate, up);
}

static void case_gate_up(struct bench *b, const struct op_case *c)
{
    struct act *x = bench_random(b, c->rows, c->cols), *y = bench_blank(b, c->rows, c->out);
    struct mat *w[2] = { bench_weight(b, c->format, c->cols, c->out, 1),
                         bench_weight(b, c->split ? QUANT_F16 : c->format, c->cols, c->out, 1) };
    for (uint32_t i = 0; i < c->n_lora; i++) bench_lora(b, w[i % 2], c->rank + i);
    bench_tape(b, c->rows);
    struct value *v = bench_input(b, x);
    v = gate_up(&b->tape, v, w);
    bench_keep(b, v, y);
    bench_run(b, RULE_BIT(GATE_UP), 0);
    bench_result(b, &y->t, false);
    double *want = bench_formula(b), *in = widen(x->v, (size_t)c->rows * c->cols);
    double *up = malloc(c->out * sizeof *up);
    for (uint32_t t = 0; want && t < c->rows; t++) {
        double *to = want + (size_t)t * c->out;
        formula_linear(to, in + (size_t)t * c->cols, w[0], 0);
        formula_linear(up, in + (size_t)t * c->cols, w[1], 0);
        for (uint32_t i = 0; i < c->out; i++) to[i] = formula_gelu(to[i]) * up[i];
    }
    free(up);
    free(in);
}

/* clang-format off */
static const struct op_case gate_up_cases[] = {
    /* seed rows cols format    nmse   why this case */
    {  47,    1,  256, EVERY,      1e-12, .why = "decode, every format", .out = 33 },
    {  48,    5,   96, QUANT_Q8_0, 1e-12, .why = "a few rows", .out = 40 },
    {  49,   70,   96, QUANT_Q8_0, 1e-12, .why = "prefill", .out = 68 },
    {  50,    1,   64, QUANT_Q8_0, 1e-12, .why = "two formats", .out = 36, .split = true },
    {  51,    1,   64, QUANT_Q8_0, 1e-12, .why = "adapters on both",
      .out = 36, .rank = 4, .n_lora = 3 },
};
/* clang-format on */

#endif
