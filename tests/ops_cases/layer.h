/* layer.h - the ops of a layer in the order in which a model calls them */
#ifndef BEZEL_TESTS_OPS_CASES_LAYER_H
#define BEZEL_TESTS_OPS_CASES_LAYER_H

#include "ops_cases/attention.h"
#include "ops_cases/stream.h"

/* The first ops of a layer that reads another layer's cache: the residual and its norm, queries,
 * attention. out is the head size. */
static void case_layer_start(struct bench *b, const struct op_case *c)
{
    uint32_t width = c->n_kv * c->out, q_width = c->n_head * c->out, n_pos = c->pos + 1;
    struct stream s = make_stream(b, c, true, true);
    struct act *y = bench_blank(b, 1, q_width), *table = bench_random(b, 1, c->out);
    struct act *keys = bench_random(b, n_pos, width), *values = bench_random(b, n_pos, width);
    struct act *k_ring = bench_blank(b, n_pos, width), *v_ring = bench_blank(b, n_pos, width);
    struct mat *w = bench_weight(b, c->format, c->cols, q_width, 1);
    struct mat *q_w = bench_weight(b, F32, c->out, 1, 1);
    for (uint32_t i = 0; i < c->n_lora; i++) bench_lora(b, w, c->rank + i);
    struct kv kv = { .k = k_ring->t, .v = v_ring->t, .n_kv_head = c->n_kv, .head_dim = c->out };
    op_kv_write(&b->run, &kv, &keys->t, &values->t, 0);
    struct tape *t = bench_tape(b, 1);
    struct value *angles = bench_input(b, table), *x = residual_input(b, c, &s);
    x = normed(b, &s, x);
    x = tape_linear(t, x, &w->w);
    x = norm_rope(t, x, q_w, angles, c->out);
    x = attend_cache(t, &kv, x, c->n_head, 0);
    bench_keep(b, x, y);
    bench_run(b, RULE_BIT(ATTEND_HEADS) | RULE_BIT(NORM_LINEARS), c->pos);
    stream_result(b, c, &s);
    bench_result(b, &y->t, false);
    double *want = bench_formula(b);
    if (!want) return;
    struct op_case head = *c;
    head.cols = c->out;
    double *in = formula_stream(&s, c, want), *wide = malloc(q_width * sizeof *wide);
    float *asked = malloc(q_width * sizeof *asked);
    formula_linear(wide, in, w, 0);
    for (uint32_t i = 0; i < q_width; i++) asked[i] = (float)wide[i];
    formula_heads(asked, c->n_head, c->out, q_w->v, table->v, c->out / 2);
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
    const struct act *keys, *values, *table;
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
    formula_heads(asked, c->n_head, c->out, p->q_w->v, p->table->v, c->out / 2);
    for (int i = 0; !c->plain && i < 2; i++) {
        float *to = (i ? values : keys) + (size_t)c->pos * width;
        formula_linear(wide, in, w[i && !c->same ? 2 : 1], 0);
        for (uint32_t j = 0; j < width; j++) to[j] = (float)wide[j];
        formula_heads(to, c->n_kv, c->out, i ? NULL : p->k_w->v, i ? NULL : p->table->v,
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

/* The feed-forward block: gate, up and down of the norm of x, the residual of s; u adds the result
 * to x. */
static struct value *feed_forward(struct bench *b, const struct stream *s, const struct stream *u,
                                  struct mat *const w[3], struct value *x)
{
    struct value *h = normed(b, s, x);
    h = gate_up(&b->tape, h, w);
    h = tape_linear(&b->tape, h, &w[2]->w);
    return residual(b, u, x, h);
}

/* The branch of per-layer inputs, n wide, which are columns n to 2 n of `by`. */
static struct value *detour(struct bench *b, uint32_t n, struct mat *const w[2], struct value *x,
                            const struct act *by)
{
    const struct op_case at = { .at = n, .out = n };
    x = linear_gelu(b, &at, x, w[0], by);
    return tape_linear(&b->tape, x, &w[1]->w);
}

/* The ops of a layer after attention: gate, up and down; then the detour of per-layer inputs, out
 * wide, whose gelu is multiplied with columns out to 2 out of `by`. */
static void case_layer_end(struct bench *b, const struct op_case *c)
{
    struct stream s = make_stream(b, c, false, true), u = make_stream(b, c, false, false);
    struct act *y = bench_blank(b, 1, c->cols), *by = bench_random(b, 1, 3 * c->out);
    struct mat *w[5] = { bench_weight(b, c->format, c->cols, c->n_ff, 1),
                         bench_weight(b, c->format, c->cols, c->n_ff, 1),
                         bench_weight(b, c->format, c->n_ff, c->cols, 1),
                         bench_weight(b, c->format, c->cols, c->out, 1),
                         bench_weight(b, c->format, c->out, c->cols, 1) };
    for (uint32_t i = 0; i < c->n_lora; i++) bench_lora(b, w[(i + c->at) % 5], c->rank + i % 5);
    bench_tape(b, 1);
    struct value *x = residual_input(b, c, &s);
    x = feed_forward(b, &s, &u, w, x);
    x = detour(b, c->out, w + 3, x, by);
    bench_keep(b, x, y);
    bench_run(b, RULE_BIT(NORM_GATE_UP) | RULE_BIT(RESIDUAL_LINEAR_GELU), 0);
    stream_result(b, c, &s);
    bench_result(b, &u.to->t, false);
    bench_result(b, &y->t, false);
    double *want = bench_formula(b);
    if (!want) return;
    double *in = formula_stream(&s, c, want), *up = malloc(2 * c->n_ff * sizeof *up),
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

/* The attention block of h: w has queries, keys, values (same: the values are the raw keys) and the
 * output. plain: it reads another layer's keys. */
static struct value *layer_attention(struct bench *b, const struct op_case *c, struct kv *kv,
                                     struct mat *const w[4], const struct past *p, struct value *h,
                                     struct value *angles)
{
    struct tape *t = &b->tape;
    if (!c->plain) {
        struct op_case heads = { .split = c->same };
        struct value *k = tape_linear(t, h, &w[1]->w), *v = k;
        if (!c->same) v = tape_linear(t, h, &w[2]->w);
        write_heads(b, &heads, kv, k, v, p->k_w, angles);
    }
    h = tape_linear(t, h, &w[0]->w);
    h = norm_rope(t, h, p->q_w, angles, c->out);
    h = attend_cache(t, kv, h, c->n_head, 0);
    return tape_linear(t, h, &w[3]->w);
}

/* From one layer's MLP to the next layer's: gate, up and down; the detour of per-layer inputs,
 * n_used wide; queries, and unless plain keys and values; attention over pos earlier positions; its
 * output; gate, up and down. out is the head size. split: the values' matrix is Q6_K. */
static void case_layer_next(struct bench *b, const struct op_case *c)
{
    uint32_t width = c->n_kv * c->out, q_width = c->n_head * c->out;
    uint32_t n_old = c->plain ? c->pos + 1 : c->pos;
    struct op_case with_branch = *c;
    with_branch.plain = false;
    struct stream s = make_stream(b, &with_branch, false, true),
                  u = make_stream(b, &with_branch, false, false);
    struct stream n = make_stream(b, &with_branch, true, true),
                  m = make_stream(b, &with_branch, false, true);
    struct act *by = bench_random(b, 1, 3 * c->n_used);
    struct act *old_k = bench_random(b, n_old, width), *old_v = bench_random(b, n_old, width);
    struct act *k_ring = bench_blank(b, c->pos + 1, width),
               *v_ring = bench_blank(b, c->pos + 1, width);
    struct act *table = bench_random(b, 1, c->out), *y = bench_blank(b, 1, c->n_ff),
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
    op_kv_write(&b->run, &kv, &old_k->t, &old_v->t, 0);
    struct tape *t = bench_tape(b, 1);
    struct value *angles = bench_input(b, table), *x = residual_input(b, &with_branch, &s);
    x = feed_forward(b, &s, &u, w, x);
    struct value *branch = detour(b, c->n_used, w + 3, x, by);
    x = residual(b, &n, x, branch);
    branch = layer_attention(b, c, &kv, w + 5, &(struct past) { .q_w = q_w, .k_w = k_w },
                             normed(b, &n, x), angles);
    x = residual(b, &m, x, branch);
    x = normed(b, &m, x);
    x = gate_up(t, x, w + 9);
    bench_keep(b, x, y);
    x = tape_linear(t, x, &w[11]->w);
    bench_keep(b, x, end);
    bench_run(b,
              RULE_BIT(NORM_GATE_UP) | RULE_BIT(RESIDUAL_LINEAR_GELU) | RULE_BIT(NORM_LINEARS) |
                  RULE_BIT(ATTEND_LINEAR),
              c->pos);
    stream_result(b, &with_branch, &s);
    bench_result(b, &u.to->t, false);
    bench_result(b, &n.to->t, false);
    bench_result(b, &m.to->t, false);
    bench_result(b, &y->t, false);
    bench_result(b, &end->t, false);
    double *want = bench_formula(b);
    if (!want) return;
    double *in = formula_stream(&s, &with_branch, want), *up = malloc(2 * c->n_ff * sizeof *up),
           *act = up + c->n_ff;
    double *added = malloc((c->cols + c->n_used + (size_t)q_width) * sizeof *added);
    double *narrow = added + c->cols, *out = narrow + c->n_used;
    const struct past past = { old_k, old_v, table, q_w, k_w };
    formula_linear(act, in, w[0], 0);
    formula_linear(up, in, w[1], 0);
    for (uint32_t i = 0; i < c->n_ff; i++) act[i] = formula_gelu(act[i]) * up[i];
    formula_linear(added, act, w[2], 0);
    double *state = want + c->cols;
    formula_norm(state, added, u.w->v, c->cols, (double)EPS);
    for (uint32_t i = 0; i < c->cols; i++) state[i] += want[i];
    formula_linear(narrow, state, w[3], 0);
    for (uint32_t i = 0; i < c->n_used; i++)
        narrow[i] = formula_gelu(narrow[i]) * (double)by->v[c->n_used + i];
    formula_linear(added, narrow, w[4], 0);
    double *next = state + c->cols;
    formula_norm(next, added, n.w->v, c->cols, (double)EPS);
    for (uint32_t i = 0; i < c->cols; i++) next[i] = (next[i] + state[i]) * (double)n.scale->v[0];
    formula_norm(in, next, n.next->v, c->cols, (double)EPS);
    formula_layer_attention(out, in, w + 5, &past, c);
    double *after = next + c->cols, *last = after + c->cols;
    formula_linear(added, out, w[8], 0);
    formula_norm(after, added, m.w->v, c->cols, (double)EPS);
    for (uint32_t i = 0; i < c->cols; i++) after[i] += next[i];
    formula_norm(in, after, m.next->v, c->cols, (double)EPS);
    formula_linear(last, in, w[9], 0);
    formula_linear(up, in, w[10], 0);
    for (uint32_t i = 0; i < c->n_ff; i++) last[i] = formula_gelu(last[i]) * up[i];
    formula_linear(last + c->n_ff, last, w[11], 0);
    free(added);
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
