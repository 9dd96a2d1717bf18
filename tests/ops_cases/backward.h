/* backward.h - the gradients of ops_bwd.h in a table like that of ops_cases.h.
 *
 * The cases compare a GPU's gradients with the loops of the CPU. test_backward.c compares those
 * loops with the slope of the loss. An argument that an op adds to begins with random numbers, so
 * that an op that sets it is found out. Tolerances are normalised mean squared errors, of the worst
 * of a case's results.
 */
#ifndef BEZEL_TESTS_OPS_CASES_BACKWARD_H
#define BEZEL_TESTS_OPS_CASES_BACKWARD_H

#include "ops/ops_bwd.h"
#include "ops_cases/case.h"

/* Train an adapter: its gradients begin with random numbers. */
static inline void bench_train(struct bench *b, struct lora_grad *grad, struct lora *l)
{
    uint32_t rank = l->a.rows;
    *grad = (struct lora_grad) { bench_random(b, l->a.n_mat * rank, l->a.cols)->t,
                                 bench_random(b, l->b.n_mat * l->b.rows, rank)->t };
    l->grad = grad;
}

static void case_zero(struct bench *b, const struct op_case *c)
{
    struct act *x = bench_random(b, c->rows, c->cols);
    op_zero(&b->run, &x->t, c->rows);
    bench_result(b, &x->t, false);
}

/* clang-format off */
static const struct op_case zero_cases[] = {
    /* seed rows cols format    nmse   why this case */
    {   0,    5,   36, F32,        0,     .why = "every row" },
};
/* clang-format on */

static void case_rms_norm_bwd(struct bench *b, const struct op_case *c)
{
    struct act *x = bench_random(b, c->rows, c->cols), *dy = bench_random(b, c->rows, c->cols);
    struct act *dx = bench_random(b, c->rows, c->cols);
    struct mat *w = c->plain ? bench_absent(b) : bench_weight(b, c->format, c->cols, 1, 1);
    op_rms_norm_bwd(&b->run, &dx->t, c->at, &dy->t, &x->t, &w->w, 0.5f);
    bench_result(b, &dx->t, false);
}

/* clang-format off */
static const struct op_case rms_norm_bwd_cases[] = {
    /* seed rows cols format    nmse   why this case */
    {   1,    1,   64, F32,        1e-10, .why = "one row" },
    {   2,   65, 2052, F32,        1e-10, .why = "rows and cols just past a tile" },
    {   3,    3,   96, QUANT_BF16, 1e-10, .why = "no weight", .plain = true },
    {  43,    5,  100, F32,        1e-10, .why = "set, not added", .at = 1 },
};
/* clang-format on */

/* The first adapter is trained; the others only pass the gradient on. plain: dx is not asked for.
 * at: per cent of dropout, which the forward product then has too. window: dx is set. */
static void case_linear_bwd(struct bench *b, const struct op_case *c)
{
    static struct lora_grad grads[2]; /* one for each of the two benches that are open at a time */
    static struct dropout drop;       /* its key is the seed of the table's steps */
    static uint32_t n_calls;
    struct lora_grad *grad = &grads[n_calls++ % 2];
    struct act *x = bench_random(b, c->rows, c->cols), *dy = bench_random(b, c->rows, c->out);
    struct act *dx = bench_random(b, c->rows, c->cols);
    struct mat *w = bench_weight(b, c->format, c->cols, c->out, 1);
    for (uint32_t i = 0; i < c->n_lora; i++) bench_lora(b, w, c->rank + i);
    if (c->n_lora) bench_train(b, grad, &b->loras[0]);
    drop = (struct dropout) { (float)c->at / 100, 0, 0 };
    if (c->at) b->loras[0].drop = &drop;
    b->loras[0].salt = 7;
    struct act *y = bench_blank(b, c->rows, c->out);
    struct act *z = c->n_lora ? bench_blank(b, c->rows, lora_width(&w->w)) : NULL;
    if (z) op_linear_z(&b->run, &y->t, &z->t, &x->t, &w->w);
    if (c->at) bench_result(b, &y->t, false);
    op_linear_bwd(&b->run, c->plain ? NULL : &dx->t, c->window, &dy->t, z ? &x->t : NULL,
                  z ? &z->t : NULL, &w->w);
    bench_result(b, &dx->t, false);
    if (!c->n_lora) return;
    bench_result(b, &grad->a, false);
    bench_result(b, &grad->b, false);
}

/* clang-format off */
static const struct op_case linear_bwd_cases[] = {
    /* seed rows cols format    nmse   why this case */
    {   4,    5,  256, EVERY,      1e-10, .why = "every format", .out = 36 },
    {   5,   70,  256, EVERY,      1e-10, .why = "just past a tile of rows", .out = 68 },
    {   6,    3,   96, QUANT_Q8_0, 1e-10, .why = "columns past a tile", .out = 4 },
    {   7,   17,   96, F32,        1e-10, .why = "a trained adapter",
      .out = 100, .rank = 3, .n_lora = 1 },
    {   8,   66,  256, QUANT_Q4_K, 1e-10, .why = "rank 16", .out = 132, .rank = 16, .n_lora = 1 },
    {   9,    9,  256, QUANT_Q6_K, 1e-10, .why = "one of three is trained",
      .out = 64, .rank = 18, .n_lora = 3 },
    {  10,   20,   64, QUANT_Q4_0, 1e-10, .why = "rank 40, without dx",
      .out = 48, .rank = 40, .n_lora = 1, .plain = true },
    {  11,    4,  128, QUANT_Q8_0, 1e-10, .why = "rows of W in shares",
      .out = 2080, .rank = 8, .n_lora = 1 },

    {  12,   18,  256, QUANT_Q4_K, 1e-10, .why = "dropout; forward too",
      .out = 68, .rank = 16, .n_lora = 1, .at = 30 },
    {  13,    9,  100, F32,        1e-10, .why = "dropout of one of two",
      .out = 132, .rank = 20, .n_lora = 2, .at = 55 },
    {  44,   66,  256, QUANT_Q4_K, 1e-10, .why = "set, not added",
      .out = 132, .rank = 16, .n_lora = 1, .window = 1 },
    {  45,    4,  128, QUANT_Q8_0, 1e-10, .why = "rows of W in shares, set",
      .out = 2080, .rank = 8, .n_lora = 1, .window = 1 },
    {  46,   18,  256, QUANT_Q4_K, 1e-10, .why = "dropout, set",
      .out = 68, .rank = 16, .n_lora = 1, .at = 30, .window = 1 },
};
/* clang-format on */

/* Trained products of one x, each with its A x. */
static void case_linears_z(struct bench *b, const struct op_case *c)
{
    enum { N = 3 };
    static struct lora_grad nothing;
    struct act *x = bench_random(b, c->rows, c->cols), *y[N];
    struct mat *w[N];
    for (uint32_t i = 0; i < N; i++) {
        w[i] = bench_weight(b, c->format, c->cols, c->out + 4 * i, 1);
        bench_lora(b, w[i], c->rank + i);
        b->loras[i].grad = &nothing; /* it is trained: that is all that the tape asks */
        y[i] = bench_blank(b, c->rows, c->out + 4 * i);
    }
    struct tape *t = bench_tape(b, c->rows);
    t->trains = true;
    struct value *in = bench_input(b, x);
    for (uint32_t i = 0; i < N; i++) {
        struct value *v = tape_linear(t, in, &w[i]->w);
        struct act *z = bench_blank(b, c->rows, lora_width(&w[i]->w));
        bench_keep(b, v, y[i]);
        bench_keep(b, v->from->out[1], z);
    }
    bench_run(b, RULE_BIT(LINEARS_Z), 0);
    for (uint32_t i = 0; i < b->n_acts; i++)
        if (&b->acts[i] != x) bench_result(b, &b->acts[i].t, false);
}

/* clang-format off */
static const struct op_case linears_z_cases[] = {
    /* seed rows cols format    nmse   why this case */
    {  49,   16,   96, QUANT_Q8_0, 1e-10, .why = "few rows", .out = 64, .rank = 3 },
    {  50,   66,  256, QUANT_Q4_K, 1e-10, .why = "past a tile of rows", .out = 68, .rank = 16 },
};
/* clang-format on */

static void case_rows_bwd(struct bench *b, const struct op_case *c)
{
    struct act *dx = bench_random(b, c->rows, c->cols), *dy = bench_random(b, c->out, c->cols);
    op_rows_bwd(&b->run, &dx->t, &dy->t, c->at);
    bench_result(b, &dx->t, false);
}

/* clang-format off */
static const struct op_case rows_bwd_cases[] = {
    /* seed rows cols format    nmse   why this case */
    {  40,   65,   36, F32,        1e-10, .why = "rows in the middle", .out = 7, .at = 57 },
};
/* clang-format on */

static void case_rope_bwd(struct bench *b, const struct op_case *c)
{
    struct act *d = bench_random(b, c->rows, c->n_head * c->cols);
    struct act *table = bench_random(b, c->rows, 2 * c->out);
    op_rope_bwd(&b->run, &d->t, &table->t, c->n_head);
    bench_result(b, &d->t, false);
}

/* clang-format off */
static const struct op_case rope_bwd_cases[] = {
    /* seed rows cols format    nmse   why this case */
    {  41,    3,   64, F32,        1e-10, .why = "all pairs", .n_head = 2, .out = 32 },
    {  42,    5,  256, F32,        1e-10, .why = "some pairs", .n_head = 3, .out = 32 },
};
/* clang-format on */

static void case_head_norm_bwd(struct bench *b, const struct op_case *c)
{
    struct act *x = bench_random(b, c->rows, c->n_head * c->cols);
    struct act *d = bench_random(b, c->rows, c->n_head * c->cols);
    struct mat *w = c->plain ? bench_absent(b) : bench_weight(b, c->format, c->cols, 1, 1);
    op_head_norm_bwd(&b->run, &d->t, &x->t, &w->w, c->n_head, EPS);
    bench_result(b, &d->t, false);
}

/* clang-format off */
static const struct op_case head_norm_bwd_cases[] = {
    /* seed rows cols format    nmse   why this case */
    {  16,    2,   32, F32,        1e-10, .why = "no weight", .n_head = 1, .plain = true },
    {  48,   65,  256, QUANT_BF16, 1e-10, .why = "a weight", .n_head = 3 },
};
/* clang-format on */

/* Both together: the gradient of rope(head_norm(x)). */
static void case_norm_rope_bwd(struct bench *b, const struct op_case *c)
{
    uint32_t width = c->n_head * c->cols;
    struct act *x = bench_random(b, c->rows, width), *d = bench_random(b, c->rows, width);
    struct act *table = bench_random(b, c->rows, 2 * c->out), *dx = bench_blank(b, c->rows, width);
    struct mat *w = bench_weight(b, c->format, c->cols, 1, 1);
    struct tape *t = bench_tape(b, c->rows);
    struct value *in[] = { bench_donated(b, d), bench_input(b, table) };
    struct node *rope = tape_append(t, TAPE_ROPE_BWD, in, 2);
    rope->n = c->cols;
    in[0] = tape_output(t, rope, in[0], width);
    in[1] = bench_input(b, x);
    struct node *norm = tape_append(t, TAPE_HEAD_NORM_BWD, in, 2);
    norm->w = &w->w;
    norm->n = c->cols;
    bench_keep(b, tape_output(t, norm, in[0], width), dx);
    bench_run(b, RULE_BIT(NORM_ROPE_BWD), 0);
    bench_result(b, &dx->t, false);
}

/* clang-format off */
static const struct op_case norm_rope_bwd_cases[] = {
    /* seed rows cols format    nmse   why this case */
    {  14,    3,   64, F32,        1e-10, .why = "all pairs", .n_head = 2, .out = 32 },
    {  15,    5,  256, QUANT_BF16, 1e-10, .why = "some pairs", .n_head = 3, .out = 32 },
};
/* clang-format on */

/* Scores of variance 1. */
static void case_attention_bwd(struct bench *b, const struct op_case *c)
{
    uint32_t wide = c->n_head * c->cols, kv_wide = c->n_kv * c->cols;
    struct act *q = bench_random(b, c->rows, wide), *dy = bench_random(b, c->rows, wide);
    struct act *dq = bench_blank(b, c->rows, wide);
    struct act *a[4];
    for (size_t i = 0; i < (size_t)c->rows * wide; i++) q->v[i] /= sqrtf((float)c->cols);
    op_write(&b->run, &q->t, 0, q->v, c->rows);
    for (int i = 0; i < 4; i++) a[i] = bench_random(b, c->rows, kv_wide);
    struct act *starts = bench_ids(b, c->rows, 1, 1);
    int32_t *first = (int32_t *)(void *)starts->v; /* examples of `at` positions each */
    for (uint32_t i = 0; c->at && i < c->rows; i++) first[i] = (int32_t)(i / c->at * c->at);
    op_write(&b->run, &starts->t, 0, first, c->rows);
    struct kv kv = { .k = a[0]->t, .v = a[1]->t, .n_kv_head = c->n_kv, .head_dim = c->cols };
    struct kv dkv = { .k = a[2]->t, .v = a[3]->t, .n_kv_head = c->n_kv, .head_dim = c->cols };
    if (c->at) kv.starts = &starts->t;
    op_attention_bwd(&b->run, &dq->t, &dkv, &dy->t, &q->t, &kv, c->n_head, c->window);
    bench_result(b, &dq->t, false);
    bench_result(b, &dkv.k, false);
    bench_result(b, &dkv.v, false);
    if (!c->at) return;
    struct act *y = bench_blank(b, c->rows, wide);
    op_attention(&b->run, &y->t, &q->t, &kv, c->n_head, c->window, 0);
    bench_result(b, &y->t, false);
}

/* clang-format off */
static const struct op_case attention_bwd_cases[] = {
    /* seed rows cols format    nmse   why this case */
    {  17,    1,   32, F32,        1e-10, .why = "one position", .n_head = 2, .n_kv = 1 },
    {  18,   33,   64, F32,        1e-10, .why = "groups of four heads", .n_head = 8, .n_kv = 2 },
    {  19,   70,   96, F32,        1e-10, .why = "past a tile everywhere", .n_head = 2, .n_kv = 2 },
    {  20,  150,   32, F32,        1e-10, .why = "a window", .n_head = 2, .n_kv = 1, .window = 20 },
    {  21,   66,  256, F32,        1e-10, .why = "a large head",
      .n_head = 2, .n_kv = 1, .window = 40 },

    {  22,   70,   32, F32,        1e-10, .why = "packed; forward too",
      .n_head = 4, .n_kv = 2, .at = 13 },
    {  23,  140,   32, F32,        1e-10, .why = "packed and a window",
      .n_head = 2, .n_kv = 1, .at = 50, .window = 17 },
};
/* clang-format on */

static void case_gelu_mul_bwd(struct bench *b, const struct op_case *c)
{
    struct act *a = bench_random(b, c->rows, c->cols), *by = bench_random(b, c->rows, c->out);
    struct act *d = bench_random(b, c->rows, c->cols), *db = bench_blank(b, c->rows, c->cols);
    for (uint32_t i = 0; i < 8; i++) a->v[i] = i % 2 ? 30.0f : -30.0f; /* where gelu is x or 0 */
    op_write(&b->run, &a->t, 0, a->v, c->rows);
    op_gelu_mul_bwd(&b->run, &d->t, c->plain ? NULL : &db->t, &a->t, &by->t, c->at);
    bench_result(b, &d->t, false);
    if (!c->plain) bench_result(b, &db->t, false);
}

/* clang-format off */
static const struct op_case gelu_mul_bwd_cases[] = {
    /* seed rows cols format    nmse   why this case */
    {  24,   65,  100, F32,        1e-10, .why = "both gradients", .out = 100 },
    {  25,    3,   32, F32,        1e-10, .why = "a slice of a wider factor",
      .out = 96, .at = 64, .plain = true },
};
/* clang-format on */

static void case_head_loss(struct bench *b, const struct op_case *c)
{
    struct act *x = bench_random(b, c->rows, c->cols), *dx = bench_blank(b, c->rows, c->cols);
    struct act *targets = bench_ids(b, c->rows, 1, c->out), *loss = bench_blank(b, c->rows, 1);
    int32_t *ids = (int32_t *)(void *)targets->v;
    for (uint32_t i = 0; i < c->rows; i += 3) ids[i] = -1;
    for (size_t i = 0; i < (size_t)c->rows * c->cols; i++) x->v[i] *= 3;
    op_write(&b->run, &targets->t, 0, ids, c->rows);
    op_write(&b->run, &x->t, 0, x->v, c->rows);
    struct mat *w = bench_weight(b, c->format, c->cols, c->out, 1);
    op_head_loss(&b->run, &loss->t, &dx->t, &x->t, &w->w, &targets->t, c->plain ? 0 : 5, 0.25f);
    bench_result(b, &loss->t, false);
    bench_result(b, &dx->t, false);
}

/* clang-format off */
static const struct op_case head_loss_cases[] = {
    /* seed rows cols format    nmse   why this case */
    {  26,    5,   64, QUANT_Q4_0, 1e-9,  .why = "few rows", .out = 260 },
    {  27,   70,  256, QUANT_Q6_K, 1e-9,  .why = "as published files have it", .out = 1028 },
    {  28,    7,   96, QUANT_Q8_0, 1e-9,  .why = "no cap; an odd vocabulary",
      .out = 311, .plain = true },
};
/* clang-format on */

/* Weights of a router are positive. */
static struct act *bench_positive(struct bench *b, uint32_t rows, uint32_t cols)
{
    struct act *a = bench_random(b, rows, cols);
    for (size_t i = 0; i < (size_t)rows * cols; i++) a->v[i] = 0.1f + fabsf(a->v[i]);
    op_write(&b->run, &a->t, 0, a->v, rows);
    return a;
}

/* The experts of a row are all different. */
static struct act *bench_choices(struct bench *b, uint32_t rows, uint32_t n_used, uint32_t n_expert)
{
    struct act *a = bench_ids(b, rows, n_used, n_expert);
    int32_t *ids = (int32_t *)(void *)a->v;
    for (uint32_t i = 0; i < rows * n_used; i++)
        ids[i] = (ids[i / n_used * n_used] + (int32_t)(i % n_used)) % (int32_t)n_expert;
    op_write(&b->run, &a->t, 0, ids, rows);
    return a;
}

/* An adapter on down and one on gate_up (or gate), both trained. */
static void case_experts_bwd(struct bench *b, const struct op_case *c)
{
    static struct lora_grad grads[2][2];
    static uint32_t n_calls;
    struct lora_grad *grad = grads[n_calls++ % 2];
    struct act *x = bench_random(b, c->rows, c->cols), *dx = bench_random(b, c->rows, c->cols);
    struct act *dy = bench_random(b, c->rows, c->out);
    struct act *dweights = bench_blank(b, c->rows, c->n_used);
    struct act *ids = bench_choices(b, c->rows, c->n_used, c->n_expert);
    struct act *weights = bench_positive(b, c->rows, c->n_used);
    uint32_t n = c->n_expert, n_gate = c->split ? c->n_ff : 2 * c->n_ff;
    struct mat *gate = bench_weight(b, c->format, c->cols, n_gate, n);
    struct mat *up = c->split ? bench_weight(b, c->format, c->cols, c->n_ff, n) : bench_absent(b);
    struct mat *down = bench_weight(b, c->format, c->n_ff, c->out, n), *none = bench_absent(b);
    struct mat *scale = c->plain ? bench_absent(b) : bench_weight(b, QUANT_F32, n, 1, 1);
    for (uint32_t i = 0; i < c->n_lora; i++) {
        bench_lora(b, i ? gate : down, c->rank + i);
        bench_train(b, &grad[i], &b->loras[i]);
    }
    struct routing routing = { ids->t, weights->t };
    struct experts e = { c->split ? &none->w : &gate->w, c->split ? &gate->w : &none->w, &up->w,
                         &down->w, &scale->w };
    op_experts_bwd(&b->run, &dx->t, c->window, &dweights->t, &dy->t, &x->t, &routing, &e);
    bench_result(b, &dx->t, false);
    bench_result(b, &dweights->t, false);
    for (uint32_t i = 0; i < c->n_lora; i++) {
        bench_result(b, &grad[i].a, false);
        bench_result(b, &grad[i].b, false);
    }
}

/* clang-format off */
static const struct op_case experts_bwd_cases[] = {
    /* seed rows cols format    nmse   why this case */
    {  29,    5,   64, F32,        1e-10, .why = "fused",
      .out = 64, .n_expert = 4, .n_used = 2, .n_ff = 32 },
    {  30,   40,   96, QUANT_Q8_0, 1e-10, .why = "more slots of one expert than a tile",
      .out = 96, .n_expert = 2, .n_used = 2, .n_ff = 64, .plain = true },
    {  31,    9,  256, QUANT_Q4_K, 1e-10, .why = "gate and up apart",
      .out = 256, .n_expert = 5, .n_used = 3, .n_ff = 256, .split = true },
    {  47,    9,   64, F32,        1e-10, .why = "set, not added",
      .out = 64, .n_expert = 4, .n_used = 2, .n_ff = 32, .window = 1 },
    {  32,   20,   64, QUANT_Q5_0, 1e-10, .why = "adapters on both",
      .out = 64, .n_expert = 3, .n_used = 2, .n_ff = 32, .rank = 5, .n_lora = 2 },
    {  33,   20,   64, QUANT_Q8_0, 1e-10, .why = "adapters on down and gate",
      .out = 64, .n_expert = 3, .n_used = 2, .n_ff = 32, .rank = 16, .n_lora = 2, .split = true },
};
/* clang-format on */

static void case_route_bwd(struct bench *b, const struct op_case *c)
{
    struct act *dscores = bench_random(b, c->rows, c->n_expert);
    struct act *dweights = bench_random(b, c->rows, c->n_used);
    struct act *ids = bench_choices(b, c->rows, c->n_used, c->n_expert);
    struct act *weights = bench_positive(b, c->rows, c->n_used);
    struct routing routing = { ids->t, weights->t };
    op_route_bwd(&b->run, &dscores->t, &dweights->t, &routing);
    bench_result(b, &dscores->t, false);
}

/* clang-format off */
static const struct op_case route_bwd_cases[] = {
    /* seed rows cols format    nmse   why this case */
    {  34,    5,   64, F32,        1e-10, .why = "some of eight", .n_expert = 8, .n_used = 3 },
    {  35,   66,   96, F32,        1e-10, .why = "two of many", .n_expert = 16, .n_used = 2 },
};
/* clang-format on */

/* Sums, the clip and a step of the optimiser; plain: the loss is no number. */
static void case_adamw(struct bench *b, const struct op_case *c)
{
    struct act *control = bench_blank(b, N_CONTROL, 1), *losses = bench_random(b, 40, 1);
    struct act *x = bench_random(b, c->rows, c->cols), *g = bench_random(b, c->rows, c->cols);
    struct act *m = bench_random(b, c->rows, c->cols), *v = bench_positive(b, c->rows, c->cols);
    const float start[N_CONTROL] = { 0.01f, 1.5f, 2.5f, 0.125f, c->plain ? NAN : 1 };
    const struct adamw o = { 0.9f, 0.99f, 1e-6f, 0.1f };
    op_write(&b->run, &control->t, 0, start, N_CONTROL);
    op_sum(&b->run, &control->t, CONTROL_LOSS, &losses->t);
    op_sum_squares(&b->run, &control->t, CONTROL_SQUARES, &g->t);
    op_sum_squares(&b->run, &control->t, CONTROL_SQUARES, &m->t);
    op_clip(&b->run, &control->t, (float)c->at);
    op_adamw(&b->run, &x->t, &g->t, &m->t, &v->t, &control->t, &o);
    if (!c->plain) bench_result(b, &control->t, false);
    bench_result(b, &x->t, false);
    bench_result(b, &m->t, false);
    bench_result(b, &v->t, false);
}

/* clang-format off */
static const struct op_case adamw_cases[] = {
    /* seed rows cols format    nmse   why this case */
    {  36,    3,   36, F32,        1e-10, .why = "clipped", .at = 1 },
    {  37,  130,  256, F32,        1e-10, .why = "large; no limit" },
    {  38,    3,   36, F32,        0,     .why = "no number: nothing changes", .plain = true },
};
/* clang-format on */

/* Publish new matrices of an adapter to the backend: the next product must use them. */
static void case_publish(struct bench *b, const struct op_case *c)
{
    struct act *x = bench_random(b, c->rows, c->cols), *y = bench_blank(b, c->rows, c->out);
    struct mat *w = bench_weight(b, c->format, c->cols, c->out, 1);
    for (uint32_t i = 0; i < c->n_lora; i++) bench_lora(b, w, c->rank + i);
    struct act *new_a = bench_random(b, c->rank, c->cols),
               *new_b = bench_random(b, c->out, c->rank);
    struct lora *l = &b->loras[0];
    if (!b->be->bwd->publish) {
        memcpy(((struct mat *)l->a.src->ctx)->bytes, new_a->v, c->rank * c->cols * sizeof(float));
        memcpy(((struct mat *)l->b.src->ctx)->bytes, new_b->v, c->rank * c->out * sizeof(float));
    }
    op_publish(&b->run, &w->w, l, &new_a->t, &new_b->t);
    op_linear(&b->run, &y->t, &x->t, &w->w);
    bench_result(b, &y->t, false);
}

/* clang-format off */
static const struct op_case publish_cases[] = {
    /* seed rows cols format    nmse   why this case */
    {  39,    5,   96, QUANT_Q8_0, 1e-10, .why = "one of two", .out = 36, .rank = 3, .n_lora = 2 },
};
/* clang-format on */

static const struct tested_op bwd_ops[] = {
    TESTED(zero),          TESTED(rms_norm_bwd), TESTED(linear_bwd),    TESTED(linears_z),
    TESTED(rows_bwd),      TESTED(rope_bwd),     TESTED(head_norm_bwd), TESTED(norm_rope_bwd),
    TESTED(attention_bwd), TESTED(gelu_mul_bwd), TESTED(head_loss),     TESTED(experts_bwd),
    TESTED(route_bwd),     TESTED(adamw),        TESTED(publish),
};

#endif
