/* layer.h - the ops of a layer in the order in which a model calls them */
#ifndef BEZEL_TESTS_OPS_CASES_LAYER_H
#define BEZEL_TESTS_OPS_CASES_LAYER_H

#include "ops_cases/attention.h"
#include "ops_cases/stream.h"

/* The first ops of a layer that reads another layer's cache: join, queries, attention. out is the
 * head size. */
static void case_layer_start(struct bench *b, const struct op_case *c)
{
    uint32_t width = c->n_kv * c->out, q_width = c->n_head * c->out, n_pos = c->pos + 1;
    struct joint t = make_join(b, c, true, true);
    struct act *q = bench_blank(b, 1, q_width), *y = bench_blank(b, 1, q_width);
    struct act *keys = bench_random(b, n_pos, width), *values = bench_random(b, n_pos, width);
    struct act *k_ring = bench_blank(b, n_pos, width), *v_ring = bench_blank(b, n_pos, width);
    struct act *turn = bench_random(b, 1, c->out);
    struct mat *w = bench_weight(b, c->format, c->cols, q_width, 1);
    struct mat *q_w = bench_weight(b, F32, c->out, 1, 1);
    for (uint32_t i = 0; i < c->n_lora; i++) bench_lora(b, w, c->rank + i);
    struct kv kv = { .k = k_ring->t, .v = v_ring->t, .n_kv_head = c->n_kv, .head_dim = c->out };
    struct heads h = {
        .q = &q->t, .q_norm = &q_w->w, .k_norm = &q_w->w, .table = &turn->t, .n_head = c->n_head
    };
    op_kv_write(&b->run, &kv, &keys->t, &values->t, 0);
    op_join_linears(&b->run, &t.j, (struct tensor *[]) { &q->t },
                    (const struct weight *[]) { &w->w }, 1);
    op_attend(&b->run, &y->t, &kv, &h, 0, c->pos, EPS);
    bench_result(b, &t.to->t, false);
    bench_result(b, &y->t, false);
    double *want = bench_formula(b);
    if (!want) return;
    struct op_case head = *c;
    head.cols = c->out;
    double *in = formula_join(&t, c, want), *wide = malloc(q_width * sizeof *wide);
    float *asked = malloc(q_width * sizeof *asked);
    formula_linear(wide, in, w, 0);
    for (uint32_t i = 0; i < q_width; i++) asked[i] = (float)wide[i];
    formula_heads(asked, c->n_head, c->out, q_w->v, turn->v, c->out / 2);
    for (uint32_t i = 0; i < c->n_head; i++) {
        size_t of = (size_t)(i * c->n_kv / c->n_head) * c->out;
        formula_attend(want + c->cols + (size_t)i * c->out, asked + (size_t)i * c->out,
                       keys->v + of, values->v + of, width, &head, c->pos);
    }
    free(asked);
    free(wide);
    free(in);
}

/* clang-format off */
static const struct op_case layer_start_cases[] = {
    /* seed rows cols format    nmse   why this case */
    { 287,    1,  256, QUANT_Q8_0, 1e-11, .why = "an adapter, in five dispatches",
      .n_head = 4, .n_kv = 1, .out = 256, .pos = 70, .rank = 16, .n_lora = 1 },
    { 288,    1,  256, QUANT_Q4_K, 1e-11,
      .why = "the largest head, two adapters, in five dispatches", .n_head = 2, .n_kv = 1,
      .out = 512, .pos = 40, .rank = 15, .n_lora = 2 },
    { 289,    1,  256, QUANT_Q4_0, 1e-11, .why = "a larger rank, in five dispatches",
      .n_head = 2, .n_kv = 1, .out = 512, .pos = 40, .rank = 40, .n_lora = 1 },
    { 290,    1,  128, QUANT_Q8_0, 1e-11,
      .why = "a head of no power of two, several keys' heads, in five dispatches", .n_head = 4,
      .n_kv = 2, .out = 48, .pos = 33, .rank = 5, .n_lora = 1 },
    { 291,    1,  256, QUANT_F16,  1e-11, .why = "without adapters",
      .n_head = 4, .n_kv = 2, .out = 64, .pos = 20 },
};
/* clang-format on */

/* What a layer's attention reads besides the stream: the cache as it was before, the rotations, and
 * the norms of queries and keys. */
struct past {
    const struct act *keys, *values, *turn;
    const struct mat *q_w, *k_w;
};

/* The row `in` times w gives queries, and unless plain keys and values; then attention. The case's
 * out is the head size. */
static void formula_layer_attention(double *out, const double *in, struct mat *const *w,
                                    const struct past *p, const struct op_case *c)
{
    struct op_case head = *c;
    head.cols = c->out;
    uint32_t width = c->n_kv * c->out, q_width = c->n_head * c->out;
    size_t n_keys = (size_t)(c->pos + 1) * width,
           n_old = (size_t)(c->plain ? c->pos + 1 : c->pos) * width;
    double *wide = malloc((q_width + width) * sizeof *wide);
    float *asked = malloc((q_width + 2 * n_keys) * sizeof *asked);
    float *keys = asked + q_width, *values = keys + n_keys;
    memcpy(keys, p->keys->v, n_old * sizeof *keys);
    memcpy(values, p->values->v, n_old * sizeof *values);
    formula_linear(wide, in, w[0], 0);
    for (uint32_t i = 0; i < q_width; i++) asked[i] = (float)wide[i];
    formula_heads(asked, c->n_head, c->out, p->q_w->v, p->turn->v, c->out / 2);
    for (int i = 0; !c->plain && i < 2; i++) {
        float *to = (i ? values : keys) + (size_t)c->pos * width;
        formula_linear(wide, in, w[i && !c->same ? 2 : 1], 0);
        for (uint32_t j = 0; j < width; j++) to[j] = (float)wide[j];
        formula_heads(to, c->n_kv, c->out, i ? NULL : p->k_w->v, i ? NULL : p->turn->v,
                      i ? 0 : c->out / 2);
    }
    for (uint32_t i = 0; i < c->n_head; i++) {
        size_t of = (size_t)(i * c->n_kv / c->n_head) * c->out;
        formula_attend(out + (size_t)i * c->out, asked + (size_t)i * c->out, keys + of, values + of,
                       width, &head, c->pos);
    }
    free(asked);
    free(wide);
}

/* The ops of a layer after attention: gate, up and down; then the detour of per-layer inputs, out
 * wide, whose gelu is multiplied with columns out to 2 out of `by`. */
static void case_layer_end(struct bench *b, const struct op_case *c)
{
    struct joint t = make_join(b, c, false, true), u = make_join(b, c, false, false);
    struct act *h = bench_blank(b, 1, c->n_ff), *room = bench_blank(b, 1, c->n_ff);
    struct act *gate = bench_blank(b, 1, c->out), *y = bench_blank(b, 1, c->cols);
    struct act *by = bench_random(b, 1, 3 * c->out);
    struct mat *w[5] = { bench_weight(b, c->format, c->cols, c->n_ff, 1),
                         bench_weight(b, c->format, c->cols, c->n_ff, 1),
                         bench_weight(b, c->format, c->n_ff, c->cols, 1),
                         bench_weight(b, c->format, c->cols, c->out, 1),
                         bench_weight(b, c->format, c->out, c->cols, 1) };
    for (uint32_t i = 0; i < c->n_lora; i++) bench_lora(b, w[(i + c->at) % 5], c->rank + i % 5);
    u.j.x = &t.to->t;
    op_join_gate_up(&b->run, &t.j, &h->t, &room->t, &w[0]->w, &w[1]->w);
    op_linear(&b->run, &u.branch->t, &h->t, &w[2]->w);
    op_join_linear_gelu_mul(&b->run, &u.j, &gate->t, &w[3]->w, &by->t, c->out);
    op_linear(&b->run, &y->t, &gate->t, &w[4]->w);
    bench_result(b, &t.to->t, false);
    bench_result(b, &u.to->t, false);
    bench_result(b, &y->t, false);
    double *want = bench_formula(b);
    if (!want) return;
    double *in = formula_join(&t, c, want), *up = malloc(2 * c->n_ff * sizeof *up),
           *act = up + c->n_ff;
    double *state = want + c->cols, *down = malloc((c->cols + c->out) * sizeof *down);
    double *v = down + c->cols;
    formula_linear(act, in, w[0], 0);
    formula_linear(up, in, w[1], 0);
    for (uint32_t i = 0; i < c->n_ff; i++) act[i] = formula_gelu(act[i]) * up[i];
    formula_linear(down, act, w[2], 0);
    formula_norm(state, down, u.w->v, c->cols, (double)EPS);
    for (uint32_t i = 0; i < c->cols; i++) state[i] += want[i];
    formula_linear(v, state, w[3], 0);
    for (uint32_t i = 0; i < c->out; i++) v[i] = formula_gelu(v[i]) * (double)by->v[c->out + i];
    formula_linear(state + c->cols, v, w[4], 0);
    free(down);
    free(up);
    free(in);
}

/* clang-format off */
static const struct op_case layer_end_cases[] = {
    /* seed rows cols format    nmse   why this case */
    { 205,    1,  256, EVERY,      1e-11, .why = "decode, every format", .out = 256, .n_ff = 512 },
    { 206,    1,  256, EVERY,      1e-11, .why = "an adapter on each, every format",
      .out = 256, .n_ff = 512, .rank = 3, .n_lora = 5 },
    { 207,    1, 1536, QUANT_Q4_K, 1e-11, .why = "an adapter on each, in eight dispatches",
      .out = 256, .n_ff = 6144, .rank = 12, .n_lora = 5 },
    { 208,    1,  256, QUANT_Q8_0, 1e-11, .why = "two on some, in eight dispatches",
      .out = 256, .n_ff = 512, .rank = 1, .n_lora = 8 },
    { 209,    1,  256, QUANT_Q6_K, 1e-11, .why = "a larger rank, in eight dispatches",
      .out = 256, .n_ff = 512, .rank = 60, .n_lora = 5 },
    { 210,    1,  256, QUANT_Q8_0, 1e-11, .why = "too large a rank",
      .out = 256, .n_ff = 512, .rank = 65, .n_lora = 5 },
    { 211,    1, 2560, QUANT_Q4_0, 1e-11, .why = "a wide stream, an adapter on each",
      .out = 256, .n_ff = 512, .rank = 16, .n_lora = 5 },
    { 212,    1,  256, QUANT_Q5_0, 1e-11, .why = "adapters on gate and up",
      .out = 64, .n_ff = 512, .rank = 16, .n_lora = 2 },
    { 213,    1,  256, QUANT_Q8_0, 1e-11, .why = "an adapter on down",
      .out = 256, .n_ff = 512, .rank = 16, .n_lora = 1, .at = 2 },
    { 214,    1,  256, QUANT_Q4_K, 1e-11, .why = "adapters on down and the detour's gate",
      .out = 256, .n_ff = 512, .rank = 16, .n_lora = 2, .at = 2 },
    { 215,    1,  256, QUANT_F16,  1e-11, .why = "an adapter on the detour's end",
      .out = 256, .n_ff = 512, .rank = 16, .n_lora = 1, .at = 4 },

    { 294,    1,  256, QUANT_Q4_K, 1e-11, .why = "a detour of 512, in eight dispatches",
      .out = 512, .n_ff = 512, .rank = 20, .n_lora = 5 },
    { 295,    1,  256, QUANT_Q8_0, 1e-11, .why = "the same, a larger rank",
      .out = 512, .n_ff = 512, .rank = 40, .n_lora = 5 },
};
/* clang-format on */

/* From one layer's MLP to the next layer's: gate, up and down; the detour of per-layer inputs,
 * n_used wide; queries, and unless plain keys and values; attention over pos earlier positions; its
 * output; gate, up and down. out is the head size. split: the values' matrix is Q6_K. */
static void case_layer_next(struct bench *b, const struct op_case *c)
{
    uint32_t width = c->n_kv * c->out, q_width = c->n_head * c->out;
    uint32_t n_old = c->plain ? c->pos + 1 : c->pos, n_own = c->plain ? 1 : c->same ? 2 : 3;
    struct op_case joined = *c;
    joined.plain = false;
    struct joint t = make_join(b, &joined, false, true), u = make_join(b, &joined, false, false);
    struct joint n = make_join(b, &joined, true, true), m = make_join(b, &joined, false, true);
    struct act *h = bench_blank(b, 1, c->n_ff), *room = bench_blank(b, 1, c->n_ff);
    struct act *gate = bench_blank(b, 1, c->n_used), *by = bench_random(b, 1, 3 * c->n_used);
    struct act *q = bench_blank(b, 1, q_width), *o = bench_blank(b, 1, q_width);
    struct act *k = bench_blank(b, 1, width), *v = bench_blank(b, 1, width);
    struct act *old_k = bench_random(b, n_old, width), *old_v = bench_random(b, n_old, width);
    struct act *k_ring = bench_blank(b, c->pos + 1, width),
               *v_ring = bench_blank(b, c->pos + 1, width);
    struct act *turn = bench_random(b, 1, c->out), *y = bench_blank(b, 1, c->n_ff),
               *end = bench_blank(b, 1, c->cols);
    struct mat *w[12] = { bench_weight(b, c->format, c->cols, c->n_ff, 1),
                          bench_weight(b, c->format, c->cols, c->n_ff, 1),
                          bench_weight(b, c->format, c->n_ff, c->cols, 1),
                          bench_weight(b, c->at ? c->at : c->format, c->cols, c->n_used, 1),
                          bench_weight(b, c->format, c->n_used, c->cols, 1),
                          bench_weight(b, c->format, c->cols, q_width, 1),
                          bench_weight(b, c->format, c->cols, width, 1),
                          bench_weight(b, c->split ? QUANT_Q6_K : c->format, c->cols, width, 1),
                          bench_weight(b, c->format, q_width, c->cols, 1),
                          bench_weight(b, c->format, c->cols, c->n_ff, 1),
                          bench_weight(b, c->format, c->cols, c->n_ff, 1),
                          bench_weight(b, c->format, c->n_ff, c->cols, 1) };
    struct mat *q_w = bench_weight(b, F32, c->out, 1, 1), *k_w = bench_weight(b, F32, c->out, 1, 1);
    for (uint32_t i = 0; i < c->n_lora; i++)
        bench_lora(b, w[(i + c->n_expert) % 12], c->rank + i % 3);
    struct kv kv = { .k = k_ring->t, .v = v_ring->t, .n_kv_head = c->n_kv, .head_dim = c->out };
    struct heads heads = { .q = &q->t,
                           .k = c->plain ? NULL : &k->t,
                           .v = c->plain ? NULL : &v->t,
                           .q_norm = &q_w->w,
                           .k_norm = &k_w->w,
                           .table = &turn->t,
                           .n_head = c->n_head,
                           .v_from_k = c->same };
    u.j.x = &t.to->t;
    n.j.x = &u.to->t;
    m.j.x = &n.to->t;
    op_kv_write(&b->run, &kv, &old_k->t, &old_v->t, 0);
    op_join_gate_up(&b->run, &t.j, &h->t, &room->t, &w[0]->w, &w[1]->w);
    op_linear(&b->run, &u.branch->t, &h->t, &w[2]->w);
    op_join_linear_gelu_mul(&b->run, &u.j, &gate->t, &w[3]->w, &by->t, c->n_used);
    op_linear(&b->run, &n.branch->t, &gate->t, &w[4]->w);
    op_join_linears(&b->run, &n.j, (struct tensor *[]) { &q->t, &k->t, &v->t },
                    (const struct weight *[]) { &w[5]->w, &w[6]->w, &w[7]->w }, n_own);
    op_attend_linear(&b->run, &m.branch->t, &o->t, &kv, &heads, 0, c->pos, EPS, &w[8]->w);
    op_join_gate_up(&b->run, &m.j, &y->t, &room->t, &w[9]->w, &w[10]->w);
    op_linear(&b->run, &end->t, &y->t, &w[11]->w);
    bench_result(b, &t.to->t, false);
    bench_result(b, &u.to->t, false);
    bench_result(b, &n.to->t, false);
    bench_result(b, &m.to->t, false);
    bench_result(b, &y->t, false);
    bench_result(b, &end->t, false);
    double *want = bench_formula(b);
    if (!want) return;
    double *in = formula_join(&t, &joined, want), *up = malloc(2 * c->n_ff * sizeof *up),
           *act = up + c->n_ff;
    double *branch = malloc((c->cols + c->n_used + (size_t)q_width) * sizeof *branch);
    double *narrow = branch + c->cols, *out = narrow + c->n_used;
    const struct past past = { old_k, old_v, turn, q_w, k_w };
    formula_linear(act, in, w[0], 0);
    formula_linear(up, in, w[1], 0);
    for (uint32_t i = 0; i < c->n_ff; i++) act[i] = formula_gelu(act[i]) * up[i];
    formula_linear(branch, act, w[2], 0);
    double *state = want + c->cols;
    formula_norm(state, branch, u.w->v, c->cols, (double)EPS);
    for (uint32_t i = 0; i < c->cols; i++) state[i] += want[i];
    formula_linear(narrow, state, w[3], 0);
    for (uint32_t i = 0; i < c->n_used; i++)
        narrow[i] = formula_gelu(narrow[i]) * (double)by->v[c->n_used + i];
    formula_linear(branch, narrow, w[4], 0);
    double *next = state + c->cols;
    formula_norm(next, branch, n.w->v, c->cols, (double)EPS);
    for (uint32_t i = 0; i < c->cols; i++) next[i] = (next[i] + state[i]) * (double)n.scale->v[0];
    formula_norm(in, next, n.next->v, c->cols, (double)EPS);
    formula_layer_attention(out, in, w + 5, &past, c);
    double *after = next + c->cols, *last = after + c->cols;
    formula_linear(branch, out, w[8], 0);
    formula_norm(after, branch, m.w->v, c->cols, (double)EPS);
    for (uint32_t i = 0; i < c->cols; i++) after[i] += next[i];
    formula_norm(in, after, m.next->v, c->cols, (double)EPS);
    formula_linear(last, in, w[9], 0);
    formula_linear(up, in, w[10], 0);
    for (uint32_t i = 0; i < c->n_ff; i++) last[i] = formula_gelu(last[i]) * up[i];
    formula_linear(last + c->n_ff, last, w[11], 0);
    free(branch);
    free(up);
    free(in);
}

/* clang-format off */
static const struct op_case layer_next_cases[] = {
    /* seed rows cols format    nmse   why this case */
    { 296,    1,  256, QUANT_Q4_K, 1e-10, .why = "without adapters, in ten dispatches",
      .n_head = 4, .n_kv = 1, .out = 64, .pos = 70, .n_ff = 512, .n_used = 256 },
    { 297,    1,  256, QUANT_Q8_0, 1e-10,
      .why = "another layer's cache, without adapters, in ten dispatches", .n_head = 2, .n_kv = 1,
      .out = 256, .pos = 40, .n_ff = 512, .n_used = 64, .plain = true },
    { 298,    1, 1536, QUANT_Q4_K, 1e-10,
      .why = "values of six bits, another detour, many shares, in ten dispatches", .n_head = 4,
      .n_kv = 2, .out = 64, .pos = 300, .n_ff = 512, .n_used = 256, .split = true,
      .at = QUANT_Q8_0 },
    { 299,    1,  256, QUANT_Q4_K, 1e-10, .why = "an adapter on each, in seventeen dispatches",
      .n_head = 4, .n_kv = 1, .out = 64, .pos = 70, .n_ff = 512, .n_used = 256, .rank = 14,
      .n_lora = 12 },
    { 300,    1,  256, QUANT_Q8_0, 1e-10,
      .why = "another layer's cache, an adapter on each, in seventeen dispatches", .n_head = 2,
      .n_kv = 1, .out = 256, .pos = 40, .n_ff = 512, .n_used = 256, .plain = true, .rank = 16,
      .n_lora = 12 },
    { 301,    1,  256, QUANT_Q4_K, 1e-10,
      .why = "values of six bits, adapters on queries, keys and values", .n_head = 4, .n_kv = 1,
      .out = 64, .pos = 20, .n_ff = 512, .n_used = 256, .split = true, .rank = 8, .n_lora = 3,
      .n_expert = 5 },
    { 302,    1,  256, QUANT_Q8_0, 1e-10, .why = "adapters on down and the detour",
      .n_head = 2, .n_kv = 1, .out = 64, .pos = 20, .n_ff = 512, .n_used = 64, .rank = 8,
      .n_lora = 3, .n_expert = 2 },
    { 303,    1,  256, QUANT_Q8_0, 1e-10,
      .why = "values that are the keys as they come, an adapter on each", .n_head = 2, .n_kv = 1,
      .out = 64, .pos = 33, .n_ff = 512, .n_used = 64, .same = true, .rank = 4, .n_lora = 12 },
    { 304,    1,  256, QUANT_F16,  1e-10, .why = "floats",
      .n_head = 2, .n_kv = 1, .out = 64, .pos = 20, .n_ff = 512, .n_used = 64, .rank = 8,
      .n_lora = 12 },
};
/* clang-format on */

#endif
