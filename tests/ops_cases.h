/* ops_cases.h - every op of ops.h, in one table: the cases that all backends share.
 *
 * A case makes its inputs, calls the op on the bench's backend, and (for the first backend) writes down
 * the formula in double. It never touches a tensor's memory, so that it serves a GPU as well: there the op
 * is only recorded, and the bench hands the result over later.
 *
 * Tolerances are normalised mean squared errors, sum (a - b)^2 / sum b^2. f32 sums of n numbers in 8
 * lanes are off by about 2^-24 sqrt(n / 8), so their nmse is near 1e-13 for the largest n here; one
 * wrong element in a thousand would give 1e-3.
 */
#ifndef BEZEL_TESTS_OPS_CASES_H
#define BEZEL_TESTS_OPS_CASES_H

#include "ops_fixture.h"

#define EVERY UINT32_MAX /* format: each one whose block divides cols, in turn */
#define EPS   1e-6f
#define F32   QUANT_F32

struct op_case {
    const char *op;
    uint32_t rows, cols;
    uint32_t format;
    double nmse;
    const char *why;
    uint32_t out;                    /* rows of the weight (or of the table) */
    uint32_t rank, n_lora;           /* adapters */
    uint32_t n_head, n_kv;           /* attention; cols is the head size */
    uint32_t window, ring, pos;      /* ring: rows of the cache */
    uint32_t n_expert, n_used, n_ff; /* experts */
    uint32_t at;                     /* first column or row, where an op has one */
    uint32_t cut;                    /* of a matrix product on the GPU, see struct gpu_ops */
    bool split, plain;               /* gate and up apart; no weight, scale or rotation */
    bool half;                       /* a cache of halves */
    bool keep;                       /* A x of the adapters is a result too */
    bool wide;                       /* on the GPU: as streams that are wide */
    bool tied;                       /* three experts each have the same score */
    bool broken;                     /* the scores of two experts of three are no numbers */
    bool both;                       /* a join of two branches */
    bool same;                       /* values are the keys as they come */
    bool
        cpu_only; /* what the GPU backend refuses: rows that are not whole vec4s (no Gemma has them) */
};

/* ---- one function an op: inputs, the op, the formula ---- */

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

static void case_linear(struct bench *b, const struct op_case *c)
{
    struct act *x = bench_random(b, c->rows, c->cols), *y = bench_blank(b, c->rows, c->out);
    struct mat *w = bench_weight(b, c->format, c->cols, c->out, 1);
    for (uint32_t i = 0; i < c->n_lora; i++) bench_lora(b, w, c->rank + i);
    struct act *z = c->keep ? bench_blank(b, c->rows, lora_width(&w->w)) : NULL;
    if (z) w->w.z = &z->t;
    op_linear(&b->run, &y->t, &x->t, &w->w);
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

/* cols is the head size; the drift of the f32 recurrence is bounded in test_ops_edges.c. */
static void case_rope_table(struct bench *b, const struct op_case *c)
{
    /* A backend may know a table by its address, as a model's does not change: each call has its own. */
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
            double turn = (c->pos + t) * pow(10000, -2.0 * i / c->cols) / (double)div[i];
            want[(size_t)t * 2 * n_pair + i] = cos(turn);
            want[(size_t)t * 2 * n_pair + n_pair + i] = sin(turn);
        }
}

/* The first n_pair pairs of a head, rotated by a row of the table. */
static void formula_rope(double *u, const float *cosine, uint32_t n_pair, uint32_t half)
{
    for (uint32_t k = 0; k < n_pair; k++) {
        double p = u[k], q = u[k + half], sine = (double)cosine[n_pair + k];
        u[k] = p * (double)cosine[k] - q * sine;
        u[k + half] = p * sine + q * (double)cosine[k];
    }
}

/* cols is the head size, out the number of pairs that turn. */
static void case_rope(struct bench *b, const struct op_case *c)
{
    struct act *x = bench_random(b, c->rows, c->n_head * c->cols);
    struct act *turn = bench_random(b, c->rows, 2 * c->out);
    op_rope(&b->run, &x->t, &turn->t, c->n_head);
    bench_result(b, &x->t, false);
    double *want = bench_formula(b);
    for (size_t i = 0; want && i < b->n_got; i++) want[i] = (double)x->v[i];
    for (size_t i = 0; want && i < b->n_got; i += c->cols)
        formula_rope(want + i, turn->v + i / (c->n_head * c->cols) * 2 * c->out, c->out,
                     c->cols / 2);
}

/* cols is the head size, out the number of pairs that turn. */
static void case_head_norm_rope(struct bench *b, const struct op_case *c)
{
    uint32_t n = c->cols, n_pair = c->plain ? 0 : c->out, half = n / 2;
    struct act *x = bench_random(b, c->rows, c->n_head * n);
    struct act *turn = bench_random(b, c->rows, 2 * c->out);
    struct mat *w = c->plain ? bench_absent(b) : bench_weight(b, c->format, n, 1, 1);
    op_head_norm_rope(&b->run, &x->t, &w->w, c->plain ? NULL : &turn->t, c->n_head, EPS);
    bench_result(b, &x->t, false);
    double *want = bench_formula(b), *in = widen(x->v, b->n_got);
    for (size_t i = 0; want && i < b->n_got; i += n) {
        formula_norm(want + i, in + i, w->v, n, (double)EPS);
        if (n_pair)
            formula_rope(want + i, turn->v + i / (c->n_head * n) * 2 * c->out, n_pair, half);
    }
    free(in);
}

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

static float as_kept(const struct op_case *c, float v)
{
    return c->half ? f16_to_f32(f32_to_f16(v)) : v;
}

/* Heads of a row, normalised and (n_pair > 0) turned, in place. */
static void formula_heads(float *x, uint32_t n_head, uint32_t n, const float *w, const float *turn,
                          uint32_t n_pair)
{
    double *wide = widen(x, (size_t)n_head * n);
    for (uint32_t h = 0; h < n_head; h++) {
        double *u = wide + (size_t)h * n;
        formula_norm(u, u, w, n, (double)EPS);
        for (uint32_t k = 0; k < n_pair; k++) {
            double p = u[k], q = u[k + n / 2], cosine = (double)turn[k],
                   sine = (double)turn[n_pair + k];
            u[k] = p * cosine - q * sine;
            u[k + n / 2] = p * sine + q * cosine;
        }
    }
    for (size_t i = 0; i < (size_t)n_head * n; i++) x[i] = (float)wide[i];
    free(wide);
}

/* cols is the head size, out the number of pairs that turn; plain: without queries, split: values from keys. A
 * history is written first, and attention tells what is in the cache. */
static void case_heads_write(struct bench *b, const struct op_case *c)
{
    uint32_t width = c->n_kv * c->cols, q_width = c->n_head * c->cols, n_pos = c->pos + c->rows;
    struct act *q = bench_random(b, c->rows, q_width), *y = bench_blank(b, c->rows, q_width);
    struct act *k = bench_random(b, c->rows, width), *v = bench_random(b, c->rows, width);
    struct act *old_k = bench_random(b, c->pos, width), *old_v = bench_random(b, c->pos, width);
    struct act *turn = bench_random(b, c->rows, 2 * c->out);
    struct mat *q_w = bench_weight(b, c->format, c->cols, 1, 1);
    struct mat *k_w = bench_weight(b, c->format, c->cols, 1, 1);
    struct act *(*blank)(struct bench *, uint32_t, uint32_t) = c->half ? bench_halves : bench_blank;
    struct act *k_ring = blank(b, n_pos, width), *v_ring = blank(b, n_pos, width);
    struct kv kv = { .k = k_ring->t, .v = v_ring->t, .n_kv_head = c->n_kv, .head_dim = c->cols };
    struct heads h = { .q = c->plain ? NULL : &q->t,
                       .k = &k->t,
                       .v = &v->t,
                       .q_norm = &q_w->w,
                       .k_norm = &k_w->w,
                       .table = &turn->t,
                       .n_head = c->n_head,
                       .v_from_k = c->split };
    op_kv_write(&b->run, &kv, &old_k->t, &old_v->t, 0);
    op_heads_write(&b->run, &kv, &h, c->pos, EPS);
    op_attention(&b->run, &y->t, &q->t, &kv, c->n_head, 0, c->pos);
    const struct act *all[] = { q, k, v, y };
    for (int i = 0; i < 4; i++) bench_result(b, &all[i]->t, false);
    double *want = bench_formula(b);
    if (!want) return;
    float *keys = malloc((size_t)n_pos * width * sizeof *keys);
    float *values = malloc((size_t)n_pos * width * sizeof *values);
    for (uint32_t t = 0; t < c->rows; t++) {
        float *qt = q->v + (size_t)t * q_width, *kt = k->v + (size_t)t * width;
        float *vt = v->v + (size_t)t * width, *angles = turn->v + (size_t)t * 2 * c->out;
        if (c->split) memcpy(vt, kt, width * sizeof *vt);
        if (!c->plain) formula_heads(qt, c->n_head, c->cols, q_w->v, angles, c->out);
        formula_heads(kt, c->n_kv, c->cols, k_w->v, angles, c->out);
        formula_heads(vt, c->n_kv, c->cols, NULL, NULL, 0);
    }
    size_t n_old = (size_t)c->pos * width, n_new = (size_t)c->rows * width, at = 0;
    for (size_t i = 0; i < n_old + n_new; i++) {
        keys[i] = as_kept(c, i < n_old ? old_k->v[i] : k->v[i - n_old]);
        values[i] = as_kept(c, i < n_old ? old_v->v[i] : v->v[i - n_old]);
    }
    for (int i = 0; i < 3; i++)
        for (size_t j = 0; j < (size_t)all[i]->t.rows * all[i]->t.cols; j++)
            want[at++] = (double)all[i]->v[j];
    for (uint32_t i = 0; i < c->rows * c->n_head; i++, at += c->cols) {
        size_t head = (size_t)(i % c->n_head * c->n_kv / c->n_head) * c->cols;
        formula_attend(want + at, q->v + (size_t)i * c->cols, keys + head, values + head, width, c,
                       c->pos + i / c->n_head);
    }
    free(keys);
    free(values);
}

/* As heads_write and attention in one; plain: without keys. Another row of queries then tells what is in the
 * cache. n_ff: a product with the result is one more; at: of a matrix in the case's format, and in one op with attention. */
static void case_attend(struct bench *b, const struct op_case *c)
{
    uint32_t width = c->n_kv * c->cols, q_width = c->n_head * c->cols, n_pos = c->pos + c->rows;
    uint32_t n_old = c->plain ? n_pos : c->pos;
    struct act *q = bench_random(b, c->rows, q_width), *y = bench_blank(b, c->rows, q_width);
    struct act *probe = bench_random(b, c->rows, q_width), *seen = bench_blank(b, c->rows, q_width);
    struct act *k = bench_random(b, c->rows, width), *v = bench_random(b, c->rows, width);
    struct act *old_k = bench_random(b, n_old, width), *old_v = bench_random(b, n_old, width);
    struct act *turn = bench_random(b, c->rows, 2 * c->out), *one_k = bench_blank(b, 1, width);
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
    struct heads h = { .q = &q->t,
                       .k = c->plain ? NULL : &k->t,
                       .v = c->plain ? NULL : &v->t,
                       .q_norm = &q_w->w,
                       .k_norm = &k_w->w,
                       .table = &turn->t,
                       .n_head = c->n_head,
                       .v_from_k = c->split };
    uint32_t format = c->at ? c->format : QUANT_Q8_0;
    struct mat *w = c->n_ff ? bench_weight(b, format, q_width, c->n_ff, 1) : NULL;
    struct act *z = c->n_ff ? bench_blank(b, c->rows, c->n_ff) : NULL;
    for (uint32_t i = 0; w && i < c->n_lora; i++) bench_lora(b, w, c->rank + i);
    if (c->at) {
        op_attend_linear(&b->run, &z->t, &y->t, &kv, &h, c->window, c->pos, EPS, &w->w);
    } else {
        op_attend(&b->run, &y->t, &kv, &h, c->window, c->pos, EPS);
        if (w) op_linear(&b->run, &z->t, &y->t, &w->w);
    }
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
        float *angles = turn->v + (size_t)t * 2 * c->out;
        formula_heads(q->v + (size_t)t * q_width, c->n_head, c->cols, q_w->v, angles, c->out);
        if (c->plain) continue;
        float *kt = keys + (size_t)(n_old + t) * width, *vt = values + (size_t)(n_old + t) * width;
        memcpy(kt, k->v + (size_t)t * width, width * sizeof *kt);
        memcpy(vt, (c->split ? k : v)->v + (size_t)t * width, width * sizeof *vt);
        formula_heads(kt, c->n_kv, c->cols, k_w->v, angles, c->out);
        formula_heads(vt, c->n_kv, c->cols, NULL, NULL, 0);
    }
    for (size_t i = 0; i < (size_t)n_pos * width; i++) {
        keys[i] = as_kept(c, keys[i]);
        values[i] = as_kept(c, values[i]);
    }
    const struct act *asked[] = { q, probe };
    size_t n_o = (size_t)c->rows * q_width, n_want = c->at ? n_o : 2 * n_o; /* of attention */
    double *o = malloc(2 * n_o * sizeof *o);
    for (uint32_t i = 0; i < 2 * c->rows * c->n_head; i++) {
        uint32_t n = c->rows * c->n_head, j = i % n;
        size_t head = (size_t)(j % c->n_head * c->n_kv / c->n_head) * c->cols;
        formula_attend(o + (size_t)i * c->cols, asked[i / n]->v + (size_t)j * c->cols, keys + head,
                       values + head, width, c, c->pos + j / c->n_head);
    }
    memcpy(want, o + 2 * n_o - n_want, n_want * sizeof *o);
    for (uint32_t t = 0; w && t < c->rows; t++)
        formula_linear(want + n_want + (size_t)t * c->n_ff, o + (size_t)t * q_width, w, 0);
    free(o);
    free(keys);
    free(values);
}

/* A join with its inputs; plain: nothing is added; both: behind the branch is another. */
struct joint {
    struct join j;
    struct act *x, *branch, *to, *norm, *sum;
    struct mat *w, *scale, *next, *branch_w, *other_w;
    struct tensor other;
};

static struct joint make_join(struct bench *b, const struct op_case *c, bool scaled, bool normed)
{
    struct joint t = { .x = bench_random(b, c->rows, c->cols),
                       .branch = bench_random(b, c->both ? 2 * c->rows : c->rows, c->cols),
                       .to = bench_blank(b, c->rows, c->cols),
                       .norm = bench_blank(b, c->rows, c->cols),
                       .w = bench_weight(b, F32, c->cols, 1, 1),
                       .scale = scaled ? bench_weight(b, F32, 1, 1, 1) : bench_absent(b),
                       .next = normed ? bench_weight(b, F32, c->cols, 1, 1) : bench_absent(b) };
    t.j = (struct join) { .x = &t.x->t,
                          .branch = c->plain ? NULL : &t.branch->t,
                          .w = &t.w->w,
                          .scale = &t.scale->w,
                          .next_w = &t.next->w,
                          .to = &t.to->t,
                          .norm = &t.norm->t,
                          .eps = EPS };
    return t;
}

/* The second branch, and what both are multiplied with. */
static void join_both(struct bench *b, const struct op_case *c, struct joint *t)
{
    t->sum = bench_blank(b, c->rows, c->cols);
    t->branch_w = bench_weight(b, F32, c->cols, 1, 1);
    t->other_w = bench_weight(b, F32, c->cols, 1, 1);
    t->branch->t.rows = c->rows;
    t->other = t->branch->t;
    t->other.size = (uint64_t)c->rows * c->cols;
    b->be->view(&t->other, &t->branch->t, c->rows * c->cols);
    t->j.other = &t->other;
    t->j.branch_w = &t->branch_w->w;
    t->j.other_w = &t->other_w->w;
    t->j.sum = &t->sum->t;
}

/* in = norm(in) * branch_w + norm(what is behind it) * other_w */
static void formula_both(const struct joint *t, const struct op_case *c, double *in)
{
    size_t n = (size_t)c->rows * c->cols;
    double *other = widen(t->branch->v + n, n);
    for (size_t i = 0; i < n; i += c->cols) {
        formula_norm(in + i, in + i, t->branch_w->v, c->cols, (double)EPS);
        formula_norm(other + i, other + i, t->other_w->v, c->cols, (double)EPS);
    }
    for (size_t i = 0; i < n; i++) in[i] += other[i];
    free(other);
}

/* Its next state into `to`, and what the block reads as the result, which the caller frees. */
static double *formula_join(const struct joint *t, const struct op_case *c, double *to)
{
    size_t n = (size_t)c->rows * c->cols;
    double *in = widen(t->branch->v, n), *result = malloc((n ? n : 1) * sizeof *result);
    if (c->both) formula_both(t, c, in);
    for (size_t i = 0; i < n; i += c->cols) {
        formula_norm(to + i, in + i, t->w->v, c->cols, (double)EPS);
        for (uint32_t k = 0; k < c->cols; k++)
            to[i + k] = ((t->j.branch ? to[i + k] : 0) + (double)t->x->v[i + k]) *
                        (t->scale->v ? (double)t->scale->v[0] : 1);
        if (t->next->v) formula_norm(result + i, to + i, t->next->v, c->cols, (double)EPS);
        else memcpy(result + i, to + i, c->cols * sizeof *to);
    }
    free(in);
    return result;
}

/* at: no norm afterwards. */
static void case_join(struct bench *b, const struct op_case *c)
{
    struct joint t = make_join(b, c, !c->split, !c->at);
    if (c->both) join_both(b, c, &t);
    op_join(&b->run, &t.j);
    bench_result(b, &t.to->t, false);
    if (!c->at) bench_result(b, &t.norm->t, false);
    double *want = bench_formula(b);
    if (!want) return;
    double *result = formula_join(&t, c, want);
    if (!c->at) memcpy(want + b->n_got / 2, result, b->n_got / 2 * sizeof *want);
    free(result);
}

/* As the model ends. */
static void case_join_then_linear(struct bench *b, const struct op_case *c)
{
    struct joint t = make_join(b, c, true, true);
    struct act *y = bench_blank(b, c->rows, c->out);
    struct mat *w = bench_weight(b, c->format, c->cols, c->out, 1);
    for (uint32_t i = 0; i < c->n_lora; i++) bench_lora(b, w, c->rank + i);
    op_join(&b->run, &t.j);
    op_linear(&b->run, &y->t, &t.norm->t, &w->w);
    bench_result(b, &t.to->t, false);
    bench_result(b, &y->t, false);
    double *want = bench_formula(b);
    if (!want) return;
    double *h = formula_join(&t, c, want), *to = want + (size_t)c->rows * c->cols;
    for (uint32_t k = 0; k < c->rows; k++, to += c->out)
        formula_linear(to, h + (size_t)k * c->cols, w, 0);
    free(h);
}

/* n_used weights of out, out / 2, ... rows; split: the last one has more bits. */
static void case_join_linears(struct bench *b, const struct op_case *c)
{
    struct joint t = make_join(b, c, true, true);
    if (c->both) join_both(b, c, &t);
    struct mat *m[JOIN_LINEARS];
    struct act *out[JOIN_LINEARS];
    struct tensor *y[JOIN_LINEARS];
    const struct weight *w[JOIN_LINEARS];
    for (uint32_t i = 0; i < c->n_used; i++) {
        uint32_t more = c->format == QUANT_Q6_K ? QUANT_F16 : QUANT_Q6_K;
        uint32_t format = c->split && i == c->n_used - 1 ? more : c->format;
        m[i] = bench_weight(b, format, c->cols, c->out >> i, 1);
        out[i] = bench_blank(b, c->rows, c->out >> i);
        y[i] = &out[i]->t;
    }
    for (uint32_t i = 0; i < c->n_lora; i++) bench_lora(b, m[i % c->n_used], c->rank + i);
    for (uint32_t i = 0; i < c->n_used; i++) w[i] = &m[i]->w;
    op_join_linears(&b->run, &t.j, y, w, c->n_used);
    bench_result(b, &t.to->t, false);
    for (uint32_t i = 0; i < c->n_used; i++) bench_result(b, y[i], false);
    double *want = bench_formula(b);
    if (!want) return;
    double *h = formula_join(&t, c, want), *to = want + (size_t)c->rows * c->cols;
    for (uint32_t i = 0; i < c->n_used; i++)
        for (uint32_t k = 0; k < c->rows; k++, to += c->out >> i)
            formula_linear(to, h + (size_t)k * c->cols, m[i], 0);
    free(h);
}

static void case_join_linear_gelu_mul(struct bench *b, const struct op_case *c)
{
    uint32_t width = c->out + 2 * c->at;
    struct joint t = make_join(b, c, false, false);
    struct act *by = bench_random(b, c->rows, width), *y = bench_blank(b, c->rows, c->out);
    struct mat *w = bench_weight(b, c->format, c->cols, c->out, 1);
    for (uint32_t i = 0; i < c->n_lora; i++) bench_lora(b, w, c->rank + i);
    op_join_linear_gelu_mul(&b->run, &t.j, &y->t, &w->w, &by->t, c->at);
    bench_result(b, &t.to->t, false);
    bench_result(b, &y->t, false);
    double *want = bench_formula(b);
    if (!want) return;
    double *h = formula_join(&t, c, want), *to = want + (size_t)c->rows * c->cols;
    for (uint32_t k = 0; k < c->rows; k++, to += c->out) {
        formula_linear(to, h + (size_t)k * c->cols, w, 0);
        for (uint32_t i = 0; i < c->out; i++)
            to[i] = formula_gelu(to[i]) * (double)by->v[(size_t)k * width + c->at + i];
    }
    free(h);
}

/* n_ff: the product with a third matrix of so many rows is a result too. */
static void case_join_gate_up(struct bench *b, const struct op_case *c)
{
    struct joint t = make_join(b, c, false, true);
    struct act *y = bench_blank(b, c->rows, c->out), *room = bench_blank(b, c->rows, c->out);
    struct mat *w[2] = { bench_weight(b, c->format, c->cols, c->out, 1),
                         bench_weight(b, c->split ? QUANT_F16 : c->format, c->cols, c->out, 1) };
    for (uint32_t i = 0; i < c->n_lora; i++) bench_lora(b, w[i % 2], c->rank + i);
    struct mat *down = c->n_ff ? bench_weight(b, c->format, c->out, c->n_ff, 1) : NULL;
    struct act *z = c->n_ff ? bench_blank(b, c->rows, c->n_ff) : NULL;
    op_join_gate_up(&b->run, &t.j, &y->t, &room->t, &w[0]->w, &w[1]->w);
    if (down) op_linear(&b->run, &z->t, &y->t, &down->w);
    bench_result(b, &t.to->t, false);
    bench_result(b, &y->t, false);
    if (down) bench_result(b, &z->t, false);
    double *want = bench_formula(b);
    if (!want) return;
    double *h = formula_join(&t, c, want), *to = want + (size_t)c->rows * c->cols;
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

/* How a layer begins that reads another's cache: queries of the stream, with adapters or without. out is the head size. */
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

/* What a layer's attention reads besides the stream: the cache before it, and what heads are multiplied with. */
struct past {
    const struct act *keys, *values, *turn;
    const struct mat *q_w, *k_w;
};

/* Attention of one row `in`, after its products with w: queries, and (not plain) keys and values. out of the case is the head size. */
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

/* How a layer goes on after attention: gate, up and down of the stream, then (out rows, n_used of `by`) the detour of per-layer
 * inputs. */
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

/* From one layer's MLP to the next one's: gate, up and down; the detour of per-layer inputs (n_used wide); queries, and (not plain) keys
 * and values; attention over pos positions before; its output; gate, up and down. out is the head size. split: the values' matrix has six bits. */
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

static void case_linear_gelu_mul(struct bench *b, const struct op_case *c)
{
    uint32_t width = c->out + 2 * c->at;
    struct act *x = bench_random(b, c->rows, c->cols), *y = bench_blank(b, c->rows, c->out);
    struct act *by = bench_random(b, c->rows, width);
    struct mat *w = bench_weight(b, c->format, c->cols, c->out, 1);
    for (uint32_t i = 0; i < c->n_lora; i++) bench_lora(b, w, c->rank + i);
    op_linear_gelu_mul(&b->run, &y->t, &x->t, &w->w, &by->t, c->at);
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

static void case_gate_up(struct bench *b, const struct op_case *c)
{
    struct act *x = bench_random(b, c->rows, c->cols), *y = bench_blank(b, c->rows, c->out);
    struct act *room = bench_blank(b, c->rows, c->out);
    struct mat *w[2] = { bench_weight(b, c->format, c->cols, c->out, 1),
                         bench_weight(b, c->split ? QUANT_F16 : c->format, c->cols, c->out, 1) };
    for (uint32_t i = 0; i < c->n_lora; i++) bench_lora(b, w[i % 2], c->rank + i);
    op_gate_up(&b->run, &y->t, &room->t, &x->t, &w[0]->w, &w[1]->w);
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

static void case_add_norm(struct bench *b, const struct op_case *c)
{
    struct act *x = bench_random(b, c->rows, c->cols), *branch = bench_random(b, c->rows, c->cols);
    struct mat *w = bench_weight(b, c->format, c->cols, 1, 1);
    op_add_norm(&b->run, &x->t, &branch->t, &w->w, EPS);
    bench_result(b, &x->t, false);
    double *want = bench_formula(b), *in = widen(branch->v, b->n_got);
    for (size_t i = 0; want && i < b->n_got; i += c->cols) {
        formula_norm(want + i, in + i, w->v, c->cols, (double)EPS);
        for (uint32_t j = 0; j < c->cols; j++) want[i + j] += (double)x->v[i + j];
    }
    free(in);
}

static void case_norm_sum(struct bench *b, const struct op_case *c)
{
    struct act *x[2] = { bench_random(b, c->rows, c->cols), bench_random(b, c->rows, c->cols) };
    struct act *y = bench_blank(b, c->rows, c->cols);
    struct mat *w[2] = { bench_weight(b, c->format, c->cols, 1, 1),
                         bench_weight(b, c->format, c->cols, 1, 1) };
    op_norm_sum(&b->run, &y->t, &x[0]->t, &w[0]->w, &x[1]->t, &w[1]->w, EPS);
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

static void case_times(struct bench *b, const struct op_case *c)
{
    struct act *x = bench_random(b, c->rows, c->cols);
    op_times(&b->run, &x->t, 0.375f);
    bench_result(b, &x->t, false);
    double *want = bench_formula(b);
    for (size_t i = 0; want && i < b->n_got; i++) want[i] = 0.375 * (double)x->v[i];
}

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

struct ranked {
    double p;
    uint32_t id;
};

static int better_first(const void *pa, const void *pb)
{
    const struct ranked *a = pa, *b = pb;
    if (a->p != b->p) return a->p > b->p ? -1 : 1;
    return a->id < b->id ? -1 : 1;
}

/* One row: ids and weights by sorting all experts. */
static void formula_route(double *ids, double *weights, const double *z, uint32_t n_expert,
                          uint32_t n_used)
{
    struct ranked *all = malloc(n_expert * sizeof *all);
    double total = 0;
    for (uint32_t e = 0; e < n_expert; e++)
        all[e] = (struct ranked) { isnan(z[e]) ? -1 : exp(z[e]), e };
    qsort(all, n_expert, sizeof *all, better_first);
    for (uint32_t j = 0; j < n_used; j++) total += all[j].p;
    for (uint32_t j = 0; j < n_used; j++) {
        ids[j] = all[j].id;
        weights[j] = all[j].p / total;
    }
    free(all);
}

/* The same from the state that the router reads. */
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

/* What scores a row's experts. */
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

static void case_route(struct bench *b, const struct op_case *c)
{
    struct act *scores = bench_random(b, c->rows, c->n_expert);
    struct act *ids = bench_blank(b, c->rows, c->n_used),
               *weights = bench_blank(b, c->rows, c->n_used);
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

static void case_router(struct bench *b, const struct op_case *c)
{
    struct act *x = bench_random(b, c->rows, c->cols), *ids = bench_blank(b, c->rows, c->n_used);
    struct act *weights = bench_blank(b, c->rows, c->n_used);
    struct act *read = bench_blank(b, c->rows, c->cols);
    struct mat *w = router_matrix(b, c, c->format);
    struct mat *scale = router_scale(b, c->cols), *norm = bench_weight(b, QUANT_F32, c->cols, 1, 1);
    for (uint32_t i = 0; i < c->n_lora; i++) bench_lora(b, w, c->rank + i);
    struct routing out = { ids->t, weights->t };
    struct router by = { &w->w, &scale->w, &norm->w };
    op_router(&b->run, &out, &read->t, &x->t, &by, EPS);
    bench_result(b, &out.ids, true);
    if (!c->broken) bench_result(b, &out.weights, false); /* then they are no numbers either */
    double *want = bench_formula(b), *shares = malloc((size_t)c->rows * c->n_used * sizeof *shares);
    for (uint32_t t = 0; want && t < c->rows; t++)
        formula_router(want + (size_t)t * c->n_used, shares + (size_t)t * c->n_used,
                       x->v + (size_t)t * c->cols, w, scale, c->n_used);
    for (size_t i = (size_t)c->rows * c->n_used, at = 0; want && i < b->n_got; i++)
        want[i] = shares[at++];
    free(shares);
}

/* A row that a join has left is multiplied, while the router reads the stream. */
static void case_linear_router(struct bench *b, const struct op_case *c)
{
    struct joint t = make_join(b, c, true, true);
    struct act *y = bench_blank(b, c->rows, c->out), *ids = bench_blank(b, c->rows, c->n_used);
    struct act *weights = bench_blank(b, c->rows, c->n_used);
    struct act *read = bench_blank(b, c->rows, c->cols);
    struct mat *w = bench_weight(b, c->format, c->cols, c->out, 1), *m = router_matrix(b, c, F32);
    struct mat *scale = router_scale(b, c->cols), *norm = bench_weight(b, F32, c->cols, 1, 1);
    for (uint32_t i = 0; i < c->n_lora; i++) bench_lora(b, i % 2 ? m : w, c->rank + i);
    struct routing out = { ids->t, weights->t };
    struct router by = { &m->w, &scale->w, &norm->w };
    op_join(&b->run, &t.j);
    op_linear_router(&b->run, &y->t, &t.norm->t, &w->w, &out, &read->t, &t.to->t, &by, EPS);
    bench_result(b, &t.to->t, false);
    bench_result(b, &y->t, false);
    bench_result(b, &read->t, false);
    bench_result(b, &out.ids, true);
    bench_result(b, &out.weights, false);
    double *want = bench_formula(b);
    if (!want) return;
    double *in = formula_join(&t, c, want), *to = want + (size_t)c->rows * c->cols;
    double *state = to + (size_t)c->rows * c->out, *chosen = state + (size_t)c->rows * c->cols;
    float *v = malloc(c->cols * sizeof *v);
    for (uint32_t k = 0; k < c->rows; k++) {
        const double *x = want + (size_t)k * c->cols;
        for (uint32_t i = 0; i < c->cols; i++) v[i] = (float)x[i];
        formula_linear(to + (size_t)k * c->out, in + (size_t)k * c->cols, w, 0);
        formula_norm(state + (size_t)k * c->cols, x, norm->v, c->cols, (double)EPS);
        formula_router(chosen + (size_t)k * c->n_used, chosen + (size_t)(c->rows + k) * c->n_used,
                       v, m, scale, c->n_used);
    }
    free(v);
    free(in);
}

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

/* gate and up in one, gate, up, down; at 1: down in a format of its own, as published files have it. */
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

/* What a router leaves is what the experts read. */
static void case_router_then_experts(struct bench *b, const struct op_case *c)
{
    struct act *x = bench_random(b, c->rows, c->cols), *y = bench_blank(b, c->rows, c->out);
    struct act *ids = bench_blank(b, c->rows, c->n_used);
    struct act *weights = bench_blank(b, c->rows, c->n_used);
    struct act *read = bench_blank(b, c->rows, c->cols);
    struct mat *w[4], *router = router_matrix(b, c, F32);
    struct mat *scale = router_scale(b, c->cols), *norm = bench_weight(b, QUANT_F32, c->cols, 1, 1);
    expert_weights(b, c, w);
    struct mat *factor = c->plain ? bench_absent(b) : bench_weight(b, QUANT_F32, c->n_expert, 1, 1);
    struct routing routing = { ids->t, weights->t };
    struct router by = { &router->w, &scale->w, &norm->w };
    struct experts e = { &w[0]->w, &w[1]->w, &w[2]->w, &w[3]->w, &factor->w };
    op_router_experts(&b->run, &y->t, &routing, &read->t, &x->t, &by, EPS, &e, NULL);
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

static void case_add(struct bench *b, const struct op_case *c)
{
    struct act *x = bench_random(b, c->rows, c->cols), *by = bench_random(b, c->rows, c->cols);
    op_add(&b->run, &x->t, &by->t);
    bench_result(b, &x->t, false);
    double *want = bench_formula(b);
    for (size_t i = 0; want && i < b->n_got; i++) want[i] = (double)x->v[i] + (double)by->v[i];
}

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

static const struct {
    const char *name;
    void (*run)(struct bench *b, const struct op_case *c);
} ops[] = {
    { "embed", case_embed },
    { "rms_norm", case_rms_norm },
    { "linear", case_linear },
    { "linear_shares", case_linear },
    { "linear_gelu_mul", case_linear_gelu_mul },
    { "gate_up", case_gate_up },
    { "rope_table", case_rope_table },
    { "head_norm_rope", case_head_norm_rope },
    { "rope", case_rope },
    { "attention", case_attention },
    { "heads_write", case_heads_write },
    { "attend", case_attend },
    { "attend_then_linear", case_attend },
    { "attend_linear", case_attend },
    { "add_norm", case_add_norm },
    { "norm_sum", case_norm_sum },
    { "join", case_join },
    { "join_then_linear", case_join_then_linear },
    { "join_linears", case_join_linears },
    { "join_linear_gelu_mul", case_join_linear_gelu_mul },
    { "join_gate_up", case_join_gate_up },
    { "layer_next", case_layer_next },
    { "layer_start", case_layer_start },
    { "layer_end", case_layer_end },
    { "gelu_mul", case_gelu_mul },
    { "times", case_times },
    { "softcap", case_softcap },
    { "route", case_route },
    { "router", case_router },
    { "linear_router", case_linear_router },
    { "router_then_experts", case_router_then_experts },
    { "experts", case_experts },
    { "add", case_add },
    { "scale", case_scale },
    { "copy_rows", case_copy_rows },
};

/* ---- the table ---- */

/* clang-format off */
static const struct op_case cases[] = {
    /* op             rows  cols  format       nmse   why this case */
    { "embed",           5,   256, EVERY,      1e-13, .why = "rows of a table in every format", .out = 31 },
    { "embed",          65,    96, QUANT_Q8_0, 1e-13, .why = "ids repeat; three blocks a row", .out = 7 },
    { "embed",           1,     1, F32,        1e-13, .why = "the smallest table", .out = 1 },

    { "rms_norm",        1,    64, F32,        1e-12, .why = "decode" },
    { "rms_norm",       65,  2052, F32,        1e-12, .why = "rows and cols just past a tile" },
    { "rms_norm",        3,    96, QUANT_BF16, 1e-12, .why = "a weight that is not F32" },
    { "rms_norm",        5,    33, F32,        1e-12, .why = "no weight, odd cols", .plain = true, .cpu_only = true },

    { "linear",          1,   256, EVERY,      1e-12, .why = "decode, every format", .out = 33 },
    { "linear",          5,   512, EVERY,      1e-12, .why = "a whole tile and a tail of rows", .out = 31 },
    { "linear",         65,   256, EVERY,      1e-12, .why = "prefill, tail tokens", .out = 100 },
    { "linear",          1,    32, EVERY,      1e-12, .why = "one block a row", .out = 1 },
    { "linear",          2,    32, EVERY,      1e-12, .why = "fewer tokens than a tile", .out = 33 },
    { "linear",          3,    96, EVERY,      1e-12, .why = "exactly one tile of tokens", .out = 100 },
    { "linear",          4,    96, EVERY,      1e-12, .why = "one token past a tile", .out = 31 },
    { "linear",          1,  2080, F32,        1e-12, .why = "two pieces of the stream and a rest", .out = 33 },
    { "linear",          1,  2080, QUANT_Q8_0, 1e-12, .why = "the same, in blocks", .out = 65 },
    { "linear",          1,  1024, QUANT_Q4_K, 1e-12, .why = "exactly one piece", .out = 31 },
    { "linear",          1,  2304, QUANT_Q6_K, 1e-12, .why = "pieces of 1024, 1024 and 256", .out = 33 },
    { "linear",          4,  2080, QUANT_Q4_0, 1e-12, .why = "long rows in prefill", .out = 33 },
    { "linear",          1,     1, F32,        1e-12, .why = "a single number", .out = 1, .cpu_only = true },
    { "linear",          3,     7, F32,        1e-12, .why = "shorter than a vector", .out = 5, .cpu_only = true },
    { "linear",          5,    39, F32,        1e-12, .why = "a tail after the vectors", .out = 9, .cpu_only = true },
    { "linear",          1,    39, QUANT_F16,  1e-12, .why = "the same in decode", .out = 4 },

    { "linear",        130,   288, QUANT_Q8_0, 1e-12, .why = "blocks of 128", .out = 132, .cut = 1 },
    { "linear",        130,   288, QUANT_Q8_0, 1e-12, .why = "blocks of 64", .out = 132, .cut = 2 },
    { "linear",        130,   288, QUANT_Q8_0, 1e-12, .why = "blocks of 64 and 32", .out = 132, .cut = 3 },
    { "linear",        130,   288, QUANT_Q8_0, 1e-12, .why = "blocks of 32", .out = 132, .cut = 4 },
    { "linear",         40,   264, QUANT_F16,  1e-12, .why = "an odd number of eights, adapters behind them", .out = 132, .cut = 1, .rank = 17, .n_lora = 1 },

    { "linear",          1,    64, QUANT_Q8_0, 1e-12, .why = "one adapter, rank 1", .out = 33, .rank = 1, .n_lora = 1 },
    { "linear",          5,    96, QUANT_BF16, 1e-12, .why = "one adapter, rank 8", .out = 31, .rank = 8, .n_lora = 1 },
    { "linear",          4,   256, QUANT_Q4_K, 1e-12, .why = "one adapter, rank 17", .out = 100, .rank = 17, .n_lora = 1 },
    { "linear",          1,   256, QUANT_Q6_K, 1e-12, .why = "two adapters on a row", .out = 33, .rank = 8, .n_lora = 2 },
    { "linear",         65,    32, F32,        1e-12, .why = "two adapters, many rows", .out = 65, .rank = 17, .n_lora = 2 },
    { "linear",          1,   256, QUANT_Q8_0, 1e-12, .why = "the largest rank", .out = 33, .rank = 256, .n_lora = 1 },
    { "linear",         70,    96, QUANT_Q8_0, 1e-12, .why = "the largest rank, many rows", .out = 68, .rank = 256, .n_lora = 1 },
    { "linear",          1,    64, QUANT_Q4_0, 1e-12, .why = "four adapters, A x kept", .out = 40, .rank = 3, .n_lora = 4, .keep = true },
    { "linear",         67,    64, QUANT_Q5_0, 1e-12, .why = "three adapters, A x kept, many rows", .out = 40, .rank = 15, .n_lora = 3, .keep = true },
    { "linear",          3,    32, F32,        1e-12, .why = "adapters on a single output", .out = 1, .rank = 1, .n_lora = 2, .cpu_only = true },

    { "times",           1,    64, F32,        1e-14, .why = "decode" },
    { "times",          65,   100, F32,        1e-14, .why = "many rows" },
    { "softcap",         1,   333, F32,        1e-12, .why = "decode, no whole lanes" },
    { "softcap",         5,   100, F32,        1e-12, .why = "numbers far past the cap", .plain = true },

    { "linear_gelu_mul", 1,   256, QUANT_Q4_K, 1e-12, .why = "decode", .out = 33, .at = 4 },
    { "linear_gelu_mul", 5,    96, QUANT_Q8_0, 1e-12, .why = "a few rows, all of b", .out = 40 },
    { "linear_gelu_mul", 70,  256, QUANT_Q6_K, 1e-12, .why = "prefill, a slice in the middle", .out = 68, .at = 8 },
    { "linear_gelu_mul", 1,    64, QUANT_Q5_0, 1e-12, .why = "two adapters", .out = 36, .rank = 8, .n_lora = 2 },
    { "linear_gelu_mul", 66,   64, F32,        1e-12, .why = "an adapter, many rows", .out = 36, .rank = 3, .n_lora = 1 },

    { "gate_up",         1,   256, EVERY,      1e-12, .why = "decode, every format", .out = 33 },
    { "gate_up",         5,    96, QUANT_Q8_0, 1e-12, .why = "a few rows", .out = 40 },
    { "gate_up",        70,    96, QUANT_Q8_0, 1e-12, .why = "prefill", .out = 68 },
    { "gate_up",         1,    64, QUANT_Q8_0, 1e-12, .why = "two formats", .out = 36, .split = true },
    { "gate_up",         1,    64, QUANT_Q8_0, 1e-12, .why = "adapters on both", .out = 36, .rank = 4, .n_lora = 3 },

    { "rope_table",      5,   256, F32,        1e-12, .why = "all pairs", .out = 128, .plain = true },
    { "rope_table",     65,    16, F32,        1e-10, .why = "some pairs, divided", .out = 5, .pos = 40 },
    { "rope_table",      1,   512, F32,        1e-7,  .why = "far away: angles have lost bits", .out = 64, .pos = 3000 },

    { "head_norm_rope",  1,   256, F32,        1e-12, .why = "decode", .n_head = 8, .out = 128 },
    { "head_norm_rope",  5,    32, F32,        1e-12, .why = "pairs past the last stay", .n_head = 3, .out = 5 },
    { "head_norm_rope", 65,    16, F32,        1e-12, .why = "values: no weight, no turn", .n_head = 1, .out = 1, .plain = true },
    { "head_norm_rope",  3,   512, QUANT_BF16, 1e-12, .why = "a large head", .n_head = 2, .out = 256 },

    { "attention",       1,    16, F32,        1e-12, .why = "the first token of all", .n_head = 1, .n_kv = 1, .ring = 1 },
    { "attention",       5,    16, F32,        1e-12, .why = "prefill from nothing", .n_head = 4, .n_kv = 1, .ring = 5 },
    { "attention",       1,   256, F32,        1e-12, .why = "decode, groups of 4, together", .n_head = 8, .n_kv = 2, .ring = 64, .pos = 40, .cut = 3 },
    { "attention",       3,   512, F32,        1e-12, .why = "the largest head", .n_head = 2, .n_kv = 1, .ring = 32, .pos = 20 },
    { "attention",      65,    32, F32,        1e-12, .why = "long prefill, groups of 3", .n_head = 6, .n_kv = 2, .ring = 200, .pos = 100 },
    { "attention",       4,    32, F32,        1e-12, .why = "every head has its own", .n_head = 3, .n_kv = 3, .ring = 19, .pos = 15 },
    { "attention",       1,    16, F32,        1e-12, .why = "a window of one sees itself", .n_head = 4, .n_kv = 2, .window = 1, .ring = 1, .pos = 9 },
    { "attention",       1,    32, F32,        1e-12, .why = "exactly full ring, many turns", .n_head = 4, .n_kv = 2, .window = 12, .ring = 12, .pos = 100 },
    { "attention",       5,    32, F32,        1e-12, .why = "a batch that wraps around", .n_head = 4, .n_kv = 2, .window = 12, .ring = 16, .pos = 77 },
    { "attention",      65,    16, F32,        1e-12, .why = "a batch larger than the window", .n_head = 2, .n_kv = 1, .window = 20, .ring = 84, .pos = 301 },
    { "attention",       4,    16, F32,        1e-12, .why = "a window not yet filled", .n_head = 2, .n_kv = 2, .window = 50, .ring = 16, .pos = 3 },
    { "attention",       7,    16, F32,        1e-12, .why = "the window fills inside the batch", .n_head = 2, .n_kv = 1, .window = 8, .ring = 14, .pos = 4 },
    { "attention",       2,   256, F32,        1e-12, .why = "slack in the ring", .n_head = 4, .n_kv = 1, .window = 9, .ring = 31, .pos = 95 },

    { "attention",       1,   256, F32,        1e-12, .why = "halves: decode, groups of 8, together", .n_head = 8, .n_kv = 1, .ring = 80, .pos = 70, .half = true, .cut = 4 },
    { "attention",       3,    32, F32,        1e-12, .why = "halves: a ring that wraps, two heads", .n_head = 4, .n_kv = 2, .window = 12, .ring = 16, .pos = 77, .half = true },
    { "attention",      65,    32, F32,        1e-12, .why = "halves: prefill, groups of 3", .n_head = 6, .n_kv = 2, .ring = 200, .pos = 100, .half = true },
    { "attention",       9,   512, F32,        1e-11, .why = "halves: the largest head; scores near 60 lose digits", .n_head = 2, .n_kv = 1, .ring = 32, .pos = 20, .half = true },
    { "attention",      37,   256, F32,        1e-11, .why = "halves: tiles of keys, groups of 4", .n_head = 8, .n_kv = 2, .ring = 170, .pos = 130, .half = true },
    { "attention",      33,   512, F32,        1e-11, .why = "tiles of keys, a window", .n_head = 2, .n_kv = 1, .window = 90, .ring = 130, .pos = 200 },
    { "attention",       5,    24, F32,        1e-12, .why = "halves: an odd number of eights", .n_head = 3, .n_kv = 1, .window = 7, .ring = 11, .pos = 31, .half = true },

    { "heads_write",     1,   256, F32,        1e-12, .why = "decode", .n_head = 8, .n_kv = 1, .out = 128, .pos = 30 },
    { "heads_write",     5,    32, F32,        1e-12, .why = "pairs past the last stay", .n_head = 6, .n_kv = 2, .out = 5, .pos = 3 },
    { "heads_write",    65,    64, QUANT_BF16, 1e-12, .why = "values from keys, many rows", .n_head = 4, .n_kv = 2, .out = 32, .pos = 2, .split = true },
    { "heads_write",     3,   512, F32,        1e-12, .why = "without queries", .n_head = 2, .n_kv = 1, .out = 64, .pos = 9, .plain = true },
    { "heads_write",     1,    64, F32,        1e-12, .why = "halves, decode", .n_head = 4, .n_kv = 2, .out = 32, .pos = 40, .half = true },
    { "heads_write",     9,    24, F32,        1e-12, .why = "halves, values from keys, without queries", .n_head = 3, .n_kv = 3, .out = 12, .pos = 7, .half = true, .split = true, .plain = true },

    { "attend",          1,   256, F32,        1e-12, .why = "decode, groups of 8", .n_head = 8, .n_kv = 1, .out = 128, .ring = 80, .pos = 70 },
    { "attend",          1,   256, F32,        1e-12, .why = "the same, all heads in a workgroup", .n_head = 8, .n_kv = 1, .out = 128, .ring = 80, .pos = 70, .cut = 4 },
    { "attend",          1,   128, F32,        1e-12, .why = "groups of 6, four heads in a workgroup, a long history", .n_head = 12, .n_kv = 2, .out = 64, .ring = 700, .pos = 650, .cut = 3 },
    { "attend",          1,    32, F32,        1e-11, .why = "more history than the shares can be fine for; f32 exponentials of 8,889 keys", .n_head = 8, .n_kv = 1, .out = 16, .ring = 9000, .pos = 8888 },
    { "attend",          1,   512, F32,        1e-11, .why = "the largest head, few pairs turn; scores near 60 lose digits", .n_head = 8, .n_kv = 1, .out = 64, .ring = 200, .pos = 150 },
    { "attend",          1,    64, F32,        1e-12, .why = "the first token of all", .n_head = 4, .n_kv = 2, .out = 32, .ring = 4 },
    { "attend",          1,    32, QUANT_BF16, 1e-12, .why = "a full ring, many turns, groups of 3", .n_head = 6, .n_kv = 2, .out = 5, .window = 12, .ring = 12, .pos = 100 },
    { "attend",          1,    64, F32,        1e-12, .why = "sixteen heads of one: two workgroups write the same key", .n_head = 16, .n_kv = 1, .out = 32, .ring = 99, .pos = 90 },
    { "attend",          1,    16, F32,        1e-12, .why = "every head has its own, values from keys", .n_head = 3, .n_kv = 3, .out = 8, .ring = 70, .pos = 64, .split = true },
    { "attend",          1,   256, F32,        1e-12, .why = "another layer's cache, two heads in a workgroup", .n_head = 8, .n_kv = 2, .out = 128, .ring = 40, .pos = 35, .plain = true, .cut = 2 },
    { "attend",          1,    64, F32,        1e-12, .why = "halves", .n_head = 4, .n_kv = 2, .out = 32, .window = 30, .ring = 30, .pos = 77, .half = true },
    { "attend",          1,    24, F32,        1e-12, .why = "halves, another layer's cache, an odd number of eights", .n_head = 3, .n_kv = 1, .out = 12, .ring = 9, .pos = 7, .half = true, .plain = true },
    { "attend",          5,    32, F32,        1e-12, .why = "several rows, a ring that wraps", .n_head = 4, .n_kv = 2, .out = 16, .window = 12, .ring = 16, .pos = 77 },
    { "attend",          3,    64, F32,        1e-12, .why = "several rows, another layer's cache", .n_head = 4, .n_kv = 1, .out = 32, .ring = 50, .pos = 40, .plain = true },

    { "attend_then_linear", 1,  64, F32,       1e-12, .why = "decode", .n_head = 8, .n_kv = 2, .out = 32, .ring = 80, .pos = 70, .n_ff = 40 },
    { "attend_then_linear", 1, 512, F32,       1e-11, .why = "the largest head, another layer's cache", .n_head = 2, .n_kv = 1, .out = 64, .ring = 90, .pos = 80, .n_ff = 9, .plain = true },
    { "attend_linear",   1,    64, QUANT_Q8_0, 1e-12, .why = "an adapter", .n_head = 8, .n_kv = 2, .out = 32, .ring = 80, .pos = 70, .n_ff = 40, .rank = 16, .n_lora = 1, .at = 1 },
    { "attend_linear",   1,   256, QUANT_Q8_0, 1e-11, .why = "another layer's cache, three adapters", .n_head = 3, .n_kv = 1, .out = 64, .ring = 90, .pos = 80, .n_ff = 9, .plain = true, .rank = 15, .n_lora = 3, .at = 1 },
    { "attend_linear",   1,    32, QUANT_Q8_0, 1e-12, .why = "the largest rank", .n_head = 4, .n_kv = 4, .out = 16, .ring = 50, .pos = 40, .n_ff = 33, .rank = 256, .n_lora = 1, .at = 1 },
    { "attend_linear",   3,    32, QUANT_Q8_0, 1e-12, .why = "several rows, an adapter", .n_head = 4, .n_kv = 2, .out = 16, .ring = 40, .pos = 30, .n_ff = 33, .rank = 8, .n_lora = 1, .at = 1 },
    { "attend_then_linear", 3,  16, F32,       1e-12, .why = "several rows, one run a head", .n_head = 6, .n_kv = 2, .out = 8, .ring = 40, .pos = 30, .n_ff = 33 },

    { "attend_linear",   1,    64, EVERY,      1e-11, .why = "decode, every format; f32 exponentials", .n_head = 4, .n_kv = 2, .out = 32, .ring = 80, .pos = 70, .n_ff = 40, .at = 1 },
    { "attend_linear",   1,   512, QUANT_Q4_K, 1e-11, .why = "the largest head, eight of them, another layer's cache", .n_head = 8, .n_kv = 1, .out = 64, .ring = 90, .pos = 80, .n_ff = 17, .plain = true, .at = 1 },
    { "attend_linear",   1,   256, QUANT_Q6_K, 1e-11, .why = "the first token of all: shares without positions", .n_head = 8, .n_kv = 1, .out = 128, .ring = 256, .n_ff = 9, .at = 1 },
    { "attend_linear",   1,    32, F32,        1e-11, .why = "more shares than are merged at once", .n_head = 8, .n_kv = 1, .out = 16, .ring = 400, .pos = 390, .n_ff = 12, .at = 1 },
    { "attend_linear",   3,    64, QUANT_Q8_0, 1e-11, .why = "several rows", .n_head = 4, .n_kv = 1, .out = 32, .ring = 50, .pos = 40, .n_ff = 33, .at = 1 },

    { "add_norm",       65,  2052, F32,        1e-12, .why = "rows and cols just past a tile" },
    { "add_norm",        1,    64, QUANT_F16,  1e-12, .why = "decode" },

    { "norm_sum",       65,  2052, F32,        1e-12, .why = "rows and cols just past a tile" },
    { "norm_sum",        1,    64, QUANT_F16,  1e-12, .why = "decode" },
    { "norm_sum",        1,  2816, F32,        1e-12, .why = "decode, as wide as published, in one dispatch" },
    { "norm_sum",        3,  5376, F32,        1e-12, .why = "two runs of columns a thread, in one dispatch" },
    { "norm_sum",        2,  8208, F32,        1e-12, .why = "columns past what a workgroup keeps, in two dispatches" },

    { "join",            3,   256, F32,        1e-12, .why = "two branches", .both = true },
    { "join",           65,  2052, F32,        1e-12, .why = "rows and cols just past a tile" },
    { "join",            1,    64, F32,        1e-12, .why = "decode, no scale", .split = true },
    { "join",            1,  1536, F32,        1e-12, .why = "nothing is added", .plain = true },
    { "join",            5,   256, F32,        1e-12, .why = "no norm afterwards, no scale", .at = 1, .split = true },
    { "join",            3,  2064, F32,        1e-12, .why = "columns just past a workgroup of 128" },
    { "join",            1,  5376, F32,        1e-12, .why = "decode, two runs of columns a thread" },
    { "join",           65,  5376, F32,        1e-12, .why = "the same, many rows, nothing is added", .plain = true },
    { "join",            2,  8208, F32,        1e-12, .why = "columns past what a workgroup keeps" },

    { "join_linears",    1,   256, EVERY,      1e-12, .why = "decode, every format", .out = 40, .n_used = 3 },
    { "join_linears",    1,  1536, QUANT_Q4_K, 1e-12, .why = "one weight, a row longer than the lanes", .out = 65, .n_used = 1 },
    { "join_linears",    1,    96, QUANT_Q8_0, 1e-12, .why = "two weights, the first of all blocks", .out = 34, .n_used = 2, .plain = true },
    { "join_linears",    1,   512, QUANT_Q6_K, 1e-12, .why = "two formats", .out = 100, .n_used = 3, .split = true },
    { "join_linears",    1,   512, QUANT_Q4_K, 1e-12, .why = "the usual two formats", .out = 100, .n_used = 3, .split = true },
    { "join_linears",    2,   256, QUANT_Q5_K, 1e-12, .why = "the same of more bits", .out = 36, .n_used = 3, .split = true },
    { "join_linears",    1,   512, QUANT_Q4_K, 1e-12, .why = "teams of 32 lanes", .out = 100, .n_used = 2, .cut = 2 },
    { "join_linears",    5,   512, QUANT_Q4_K, 1e-12, .why = "a few rows, teams of 16 lanes", .out = 68, .n_used = 3, .cut = 3 },
    { "join_linears",   70,    96, QUANT_Q8_0, 1e-12, .why = "prefill", .out = 68, .n_used = 3 },
    { "join_linears",    1,    64, QUANT_Q5_0, 1e-12, .why = "adapters on all", .out = 36, .n_used = 3, .rank = 4, .n_lora = 3 },
    { "join_linears",    1,   256, EVERY,      1e-12, .why = "two branches, every format", .out = 40, .n_used = 2, .both = true },
    { "join_linears",    1,  2816, QUANT_Q4_K, 1e-12, .why = "two branches, as published files have them, in one dispatch", .out = 100, .n_used = 3, .split = true, .both = true },
    { "join_linears",    3,   512, QUANT_Q8_0, 1e-12, .why = "two branches, a few rows, in one dispatch", .out = 68, .n_used = 3, .cut = 3, .both = true },
    { "join_linears",    1,  5376, QUANT_Q4_0, 1e-12, .why = "two branches, the widest stream", .out = 9, .n_used = 2, .both = true },
    { "join_linears",    1,   256, QUANT_Q5_0, 1e-12, .why = "two branches, adapters on all", .out = 36, .n_used = 3, .rank = 4, .n_lora = 3, .both = true },
    { "join_linears",   70,    64, QUANT_Q8_0, 1e-12, .why = "two branches, prefill", .out = 68, .n_used = 3, .both = true },
    { "join_linears",    1,  5376, QUANT_Q4_0, 1e-12, .why = "the widest stream", .out = 9, .n_used = 2 },
    { "join_linears",    1,  1536, QUANT_Q4_K, 1e-12, .why = "adapters on all, in two dispatches", .out = 100, .n_used = 3, .rank = 16, .n_lora = 3 },
    { "join_linears",    1,   512, QUANT_Q4_K, 1e-12, .why = "the usual two formats, adapters on two, in two dispatches", .out = 100, .n_used = 3, .split = true, .rank = 1, .n_lora = 2 },
    { "join_linears",    3,   256, QUANT_Q5_K, 1e-12, .why = "the same of more bits, several adapters, in two dispatches", .out = 70, .n_used = 3, .split = true, .rank = 15, .n_lora = 4, .cut = 3 },
    { "join_linears",    5,   256, QUANT_Q8_0, 1e-12, .why = "the largest rank, a few rows, in two dispatches", .out = 68, .n_used = 3, .rank = 254, .n_lora = 3 },
    { "join_linears",    1,   256, QUANT_Q6_K, 1e-12, .why = "one weight, two adapters, nothing is added, in two dispatches", .out = 37, .n_used = 1, .plain = true, .rank = 16, .n_lora = 2 },
    { "join_linears",    3,  1536, QUANT_Q4_K, 1e-12, .why = "one weight, an adapter, a few rows, in two dispatches", .out = 530, .n_used = 1, .rank = 16, .n_lora = 1 },
    { "join_linears",    1,  1536, QUANT_Q4_K, 1e-12, .why = "one weight, an adapter, its share afterwards, in two dispatches", .out = 640, .n_used = 1, .rank = 16, .n_lora = 1 },
    { "join_linears",    1,   256, QUANT_Q5_0, 1e-12, .why = "one weight, too large a rank, in two dispatches", .out = 66, .n_used = 1, .rank = 257, .n_lora = 1 },
    { "join_linears",    1,   256, QUANT_Q6_K, 1e-12, .why = "adapters on codes and on floats", .out = 41, .n_used = 3, .split = true, .rank = 8, .n_lora = 3 },
    { "join_linears",    2,   128, QUANT_F16,  1e-12, .why = "adapters on floats", .out = 40, .n_used = 2, .rank = 8, .n_lora = 2 },
    { "join_linears",    1,  5376, QUANT_Q4_0, 1e-12, .why = "the widest stream, adapters", .out = 20, .n_used = 2, .rank = 16, .n_lora = 2 },

    { "join_linear_gelu_mul", 1, 256, EVERY,   1e-12, .why = "decode, every format", .out = 33, .at = 4 },
    { "join_linear_gelu_mul", 3, 1536, QUANT_Q4_K, 1e-12, .why = "a few rows", .out = 40 },
    { "join_linear_gelu_mul", 70, 256, QUANT_Q6_K, 1e-12, .why = "prefill, a slice in the middle", .out = 68, .at = 8 },
    { "join_linear_gelu_mul", 1,  64, QUANT_Q5_0, 1e-12, .why = "two adapters", .out = 36, .rank = 8, .n_lora = 2 },
    { "join_linear_gelu_mul", 1, 1536, QUANT_Q4_K, 1e-12, .why = "an adapter, its share and gelu afterwards", .out = 40, .at = 8, .rank = 16, .n_lora = 1 },
    { "join_linear_gelu_mul", 5, 256, QUANT_Q8_0, 1e-12, .why = "two adapters, a few rows, in two dispatches", .out = 100, .rank = 40, .n_lora = 2 },
    { "join_linear_gelu_mul", 3, 256, F32,     1e-12, .why = "floats, the largest rank, a few rows, in two dispatches", .out = 40, .rank = 256, .n_lora = 1 },

    { "join_gate_up",    1,   256, EVERY,      1e-12, .why = "decode, every format", .out = 33 },
    { "join_gate_up",    1,  1536, QUANT_Q4_K, 1e-12, .why = "a row longer than the lanes", .out = 130 },
    { "join_gate_up",    1,  1536, QUANT_Q4_K, 1e-12, .why = "settled, the same in another cut", .out = 144, .cut = 2 },
    { "join_gate_up",    5,    96, QUANT_Q8_0, 1e-12, .why = "a few rows", .out = 40 },
    { "join_gate_up",   70,    96, QUANT_Q8_0, 1e-12, .why = "prefill", .out = 68 },
    { "join_gate_up",    1,    64, QUANT_Q8_0, 1e-12, .why = "two formats", .out = 36, .split = true },
    { "join_gate_up",    1,    64, QUANT_Q8_0, 1e-12, .why = "adapters on both", .out = 36, .rank = 4, .n_lora = 3 },
    { "join_gate_up",    1,  1536, QUANT_Q4_K, 1e-12, .why = "adapters on both, in two dispatches", .out = 144, .rank = 16, .n_lora = 2 },
    { "join_gate_up",    5,   256, QUANT_Q6_K, 1e-12, .why = "the largest rank on one, a few rows, in two dispatches", .out = 70, .rank = 256, .n_lora = 1 },
    { "join_gate_up",    1,   256, QUANT_Q4_0, 1e-12, .why = "adapters on both, and down", .out = 256, .n_ff = 20, .rank = 1, .n_lora = 2 },
    { "join_gate_up",    1,    64, QUANT_Q8_0, 1e-12, .why = "two formats, adapters", .out = 36, .split = true, .rank = 8, .n_lora = 2 },

    { "join_linears",    1,   256, QUANT_Q4_0, 1e-12, .why = "wide", .out = 40, .n_used = 3, .wide = true },
    { "join_linears",    1,   256, QUANT_Q5_0, 1e-12, .why = "wide, single rows", .out = 41, .n_used = 3, .wide = true, .cut = 1 },
    { "join_linears",    1,   256, QUANT_Q8_0, 1e-12, .why = "wide, pairs of rows", .out = 43, .n_used = 3, .wide = true, .cut = 2 },
    { "join_linears",    1,   512, QUANT_Q4_K, 1e-12, .why = "wide, four rows together", .out = 70, .n_used = 3, .wide = true, .cut = 3 },
    { "join_linears",    5,   256, QUANT_Q5_K, 1e-12, .why = "wide, a few rows", .out = 40, .n_used = 2, .wide = true },
    { "join_linears",    1,   768, QUANT_Q6_K, 1e-12, .why = "wide, one weight, nothing is added", .out = 37, .n_used = 1, .wide = true, .plain = true },
    { "join_linears",    1,   256, QUANT_Q4_1, 1e-12, .why = "wide", .out = 40, .n_used = 3, .wide = true },
    { "join_linears",    1,   512, QUANT_Q4_K, 1e-12, .why = "wide, the usual two formats", .out = 100, .n_used = 3, .wide = true, .split = true },
    { "join_linears",    3,   256, QUANT_Q5_K, 1e-12, .why = "wide, the same of more bits, pairs of rows", .out = 36, .n_used = 3, .wide = true, .split = true, .cut = 2 },
    { "join_linears",    1,    64, QUANT_Q5_0, 1e-12, .why = "wide, adapters on all", .out = 36, .n_used = 3, .rank = 4, .n_lora = 3, .wide = true },
    { "join_linears",    1,    64, QUANT_F16,  1e-12, .why = "wide, floats", .out = 36, .n_used = 3, .wide = true },
    { "join_linears",    1,  4352, QUANT_Q4_K, 1e-12, .why = "wide by itself", .out = 20, .n_used = 3 },
    { "join_linears",    1,  2816, QUANT_Q4_K, 1e-12, .why = "not yet wide, more than half of the threads hold", .out = 20, .n_used = 3 },
    { "join_linears",    2,  3840, QUANT_Q6_K, 1e-12, .why = "not yet wide, almost all that the threads hold, two rows", .out = 20, .n_used = 1 },

    { "join_linear_gelu_mul", 1, 256, QUANT_Q4_0, 1e-12, .why = "wide", .out = 33, .at = 4, .wide = true },
    { "join_linear_gelu_mul", 3, 256, QUANT_Q6_K, 1e-12, .why = "wide, a few rows", .out = 40, .at = 8, .wide = true },
    { "join_linear_gelu_mul", 1,  64, QUANT_Q8_0, 1e-12, .why = "wide, two adapters", .out = 36, .rank = 8, .n_lora = 2, .wide = true },

    { "join_gate_up",    1,   256, QUANT_Q4_0, 1e-12, .why = "wide, and down", .out = 256, .n_ff = 20, .wide = true },
    { "join_gate_up",    2,   256, QUANT_Q5_0, 1e-12, .why = "wide, and down, two rows", .out = 288, .n_ff = 20, .wide = true, .cut = 2 },
    { "join_gate_up",    1,   256, QUANT_Q8_0, 1e-12, .why = "wide, and down", .out = 256, .n_ff = 20, .wide = true },
    { "join_gate_up",    1,   768, QUANT_Q4_K, 1e-12, .why = "wide, and down", .out = 256, .n_ff = 20, .wide = true, .cut = 2 },
    { "join_gate_up",    1,   256, QUANT_Q5_K, 1e-12, .why = "wide, and down", .out = 256, .n_ff = 20, .wide = true },
    { "join_gate_up",    1,   256, QUANT_Q6_K, 1e-12, .why = "wide, and down", .out = 512, .n_ff = 20, .wide = true, .cut = 3 },
    { "join_gate_up",    1,   256, QUANT_Q4_1, 1e-12, .why = "wide, and down", .out = 256, .n_ff = 20, .wide = true },
    { "join_gate_up",    5,    64, QUANT_Q8_0, 1e-12, .why = "wide, not in runs of sixteen", .out = 41, .wide = true },
    { "join_gate_up",    1,  4352, QUANT_Q4_K, 1e-12, .why = "wide by itself", .out = 36 },
    { "join_gate_up",    1,  2816, QUANT_Q4_K, 1e-12, .why = "not yet wide", .out = 36 },
    { "join_gate_up",    1,    64, QUANT_Q8_0, 1e-12, .why = "wide, two formats", .out = 36, .split = true, .wide = true },
    { "join_gate_up",    1,    64, QUANT_Q8_0, 1e-12, .why = "wide, adapters on both", .out = 36, .rank = 4, .n_lora = 3, .wide = true },

    { "join_then_linear", 1,  256, QUANT_Q6_K, 1e-11, .why = "as the model ends; the CPU's fast tanh is e^x in f32", .out = 300 },
    { "join_then_linear", 5, 1536, QUANT_Q8_0, 1e-12, .why = "a few rows", .out = 65 },
    { "join_then_linear", 70,  96, QUANT_Q8_0, 1e-11, .why = "prefill; that tanh", .out = 68 },
    { "layer_end",       1,   256, EVERY,      1e-11, .why = "decode, every format", .out = 256, .n_ff = 512 },
    { "layer_end",       1,   256, EVERY,      1e-11, .why = "an adapter on each, every format", .out = 256, .n_ff = 512, .rank = 3, .n_lora = 5 },
    { "layer_end",       1,  1536, QUANT_Q4_K, 1e-11, .why = "an adapter on each, in eight dispatches", .out = 256, .n_ff = 6144, .rank = 12, .n_lora = 5 },
    { "layer_end",       1,   256, QUANT_Q8_0, 1e-11, .why = "two on some, in eight dispatches", .out = 256, .n_ff = 512, .rank = 1, .n_lora = 8 },
    { "layer_end",       1,   256, QUANT_Q6_K, 1e-11, .why = "a larger rank, in eight dispatches", .out = 256, .n_ff = 512, .rank = 60, .n_lora = 5 },
    { "layer_end",       1,   256, QUANT_Q8_0, 1e-11, .why = "too large a rank", .out = 256, .n_ff = 512, .rank = 65, .n_lora = 5 },
    { "layer_end",       1,  2560, QUANT_Q4_0, 1e-11, .why = "a wide stream, an adapter on each", .out = 256, .n_ff = 512, .rank = 16, .n_lora = 5 },
    { "layer_end",       1,   256, QUANT_Q5_0, 1e-11, .why = "adapters on gate and up", .out = 64, .n_ff = 512, .rank = 16, .n_lora = 2 },
    { "layer_end",       1,   256, QUANT_Q8_0, 1e-11, .why = "an adapter on down", .out = 256, .n_ff = 512, .rank = 16, .n_lora = 1, .at = 2 },
    { "layer_end",       1,   256, QUANT_Q4_K, 1e-11, .why = "adapters on down and the detour's gate", .out = 256, .n_ff = 512, .rank = 16, .n_lora = 2, .at = 2 },
    { "layer_end",       1,   256, QUANT_F16,  1e-11, .why = "an adapter on the detour's end", .out = 256, .n_ff = 512, .rank = 16, .n_lora = 1, .at = 4 },

    { "join_then_linear", 1,   64, QUANT_Q5_0, 1e-12, .why = "adapters, in three dispatches", .out = 36, .rank = 4, .n_lora = 2 },
    { "join_then_linear", 3,  256, QUANT_Q4_K, 1e-12, .why = "an adapter, a few rows, in three dispatches", .out = 300, .rank = 16, .n_lora = 1 },
    { "join_then_linear", 1,  264, QUANT_F16,  1e-12, .why = "an adapter of large rank, an odd number of eights, in three dispatches", .out = 41, .rank = 100, .n_lora = 1, .cut = 3 },
    { "join_then_linear", 1, 1536, QUANT_Q6_K, 1e-12, .why = "an adapter on a long row", .out = 36, .rank = 1, .n_lora = 1 },

    { "gelu_mul",        1,    64, F32,        1e-12, .why = "decode" },
    { "gelu_mul",       65,   100, F32,        1e-12, .why = "many rows" },
    { "gelu_mul",        5,    32, F32,        1e-12, .why = "by a slice in the middle", .at = 96 },

    { "route",           1,     1, F32,        1e-14, .why = "decode", .n_expert = 8, .n_used = 3 },
    { "route",          65,     1, F32,        1e-14, .why = "many rows, 128 experts", .n_expert = 128, .n_used = 8 },
    { "route",           5,     1, F32,        1e-14, .why = "all used", .n_expert = 70, .n_used = 70 },

    { "router",          1,    64, F32,        1e-15, .why = "decode", .n_expert = 8, .n_used = 3 },
    { "router",         65,    96, F32,        1e-15, .why = "many rows, all used", .n_expert = 5, .n_used = 5 },
    { "router",          5,   256, QUANT_Q8_0, 1e-15, .why = "128 experts", .n_expert = 128, .n_used = 8 },
    { "router",          2,    64, F32,        1e-15, .why = "of equals the lower index", .n_expert = 1024, .n_used = 32, .tied = true },
    { "router",          3,    64, F32,        1e-15, .why = "distinct experts, what is no number last", .n_expert = 16, .n_used = 11, .broken = true },
    { "router",          4,    64, F32,        1e-15, .why = "adapted", .n_expert = 16, .n_used = 2, .rank = 8, .n_lora = 2 },

    { "linear_router",   1,   256, EVERY,      1e-12, .why = "decode, every format", .out = 37, .n_expert = 8, .n_used = 3 },
    { "linear_router",   1,  2816, QUANT_Q8_0, 1e-12, .why = "as long as published rows, in three dispatches", .out = 36, .n_expert = 128, .n_used = 8, .cut = 2 },
    { "linear_router",   3,   256, QUANT_Q4_K, 1e-12, .why = "a few rows, in three dispatches", .out = 300, .n_expert = 5, .n_used = 5, .cut = 3 },
    { "linear_router",   1,  4096, QUANT_Q4_0, 1e-12, .why = "more runs than experts' workgroups have threads", .out = 33, .n_expert = 1, .n_used = 1 },
    { "linear_router",   2,   256, QUANT_Q6_K, 1e-12, .why = "of equals the lower index, in three dispatches", .out = 40, .n_expert = 71, .n_used = 7, .tied = true },
    { "linear_router",   1,   256, QUANT_Q8_0, 1e-12, .why = "adapters on both", .out = 40, .n_expert = 8, .n_used = 2, .rank = 4, .n_lora = 2 },
    { "linear_router",  70,    96, QUANT_Q8_0, 1e-12, .why = "prefill", .out = 68, .n_expert = 8, .n_used = 2 },

    { "router_then_experts", 1, 256, QUANT_Q4_K, 1e-12, .why = "decode, as published files have it, in three dispatches", .out = 70, .n_expert = 8, .n_used = 3, .n_ff = 64, .at = 1 },
    { "router_then_experts", 1, 512, QUANT_Q4_0, 1e-12, .why = "single rows of down, in three dispatches", .out = 33, .n_expert = 8, .n_used = 2, .n_ff = 32, .cut = 1 },
    { "router_then_experts", 5, 128, QUANT_Q8_0, 1e-12, .why = "a few rows, no scale, pairs of rows of down, in four dispatches", .out = 36, .n_expert = 7, .n_used = 2, .n_ff = 96, .cut = 2, .plain = true },
    { "router_then_experts", 1, 256, QUANT_Q6_K, 1e-12, .why = "gate and up apart, four rows of down together, in three dispatches", .out = 37, .n_expert = 3, .n_used = 2, .n_ff = 256, .cut = 3, .split = true },
    { "router_then_experts", 2, 256, QUANT_Q5_K, 1e-12, .why = "gate and up apart, in three dispatches", .out = 40, .n_expert = 4, .n_used = 4, .n_ff = 256, .split = true },
    { "router_then_experts", 1, 256, QUANT_Q8_0, 1e-12, .why = "128 experts, in three dispatches", .out = 36, .n_expert = 128, .n_used = 8, .n_ff = 32 },
    { "router_then_experts", 2, 64, QUANT_Q4_0, 1e-12, .why = "as many experts as a workgroup chooses from, in three dispatches", .out = 36, .n_expert = 256, .n_used = 32, .n_ff = 32 },
    { "router_then_experts", 3, 64, QUANT_Q4_0, 1e-12, .why = "more rows than readers choose for, in four dispatches", .out = 36, .n_expert = 8, .n_used = 2, .n_ff = 32 },
    { "router_then_experts", 1, 64, QUANT_Q4_0, 1e-12, .why = "one more, in four dispatches", .out = 36, .n_expert = 257, .n_used = 5, .n_ff = 32 },
    { "router_then_experts", 2, 64, QUANT_Q8_0, 1e-12, .why = "of equals the lower index, in three dispatches", .out = 36, .n_expert = 71, .n_used = 5, .n_ff = 32, .tied = true },
    { "router_then_experts", 1, 64, QUANT_Q8_0, 1e-12, .why = "a small workgroup, all used, in three dispatches", .out = 36, .n_expert = 70, .n_used = 70, .n_ff = 32 },
    { "router_then_experts", 1, 128, QUANT_Q8_0, 1e-12, .why = "an adapter on down", .out = 40, .n_expert = 4, .n_used = 2, .n_ff = 96, .rank = 4, .n_lora = 1 },
    { "router_then_experts", 1, 128, QUANT_Q8_0, 1e-12, .why = "adapters on both", .out = 40, .n_expert = 4, .n_used = 2, .n_ff = 96, .rank = 4, .n_lora = 2 },
    { "router_then_experts", 3, 136, QUANT_F16, 1e-12, .why = "floats, columns that are no runs of sixteen", .out = 40, .n_expert = 4, .n_used = 2, .n_ff = 24 },
    { "router_then_experts", 70, 64, QUANT_Q4_0, 1e-12, .why = "prefill, grouped", .out = 40, .n_expert = 4, .n_used = 2, .n_ff = 32 },

    { "experts",         1,    64, QUANT_BF16, 1e-12, .why = "decode, fused", .out = 64, .n_expert = 8, .n_used = 3, .n_ff = 32 },
    { "experts",        65,    64, QUANT_Q8_0, 1e-12, .why = "rows grouped by expert", .out = 96, .n_expert = 8, .n_used = 3, .n_ff = 32 },
    { "experts",         5,   256, QUANT_Q4_K, 1e-12, .why = "gate and up apart", .out = 31, .n_expert = 4, .n_used = 2, .n_ff = 256, .split = true },
    { "experts",         4,    32, F32,        1e-12, .why = "no scale", .out = 33, .n_expert = 3, .n_used = 1, .n_ff = 7, .plain = true, .cpu_only = true },
    { "experts",         3,    32, F32,        1e-12, .why = "apart, no scale", .out = 5, .n_expert = 2, .n_used = 2, .n_ff = 33, .split = true, .plain = true, .cpu_only = true },
    { "experts",         5,    32, QUANT_Q4_0, 1e-12, .why = "an adapter on down", .out = 32, .n_expert = 4, .n_used = 2, .n_ff = 32, .rank = 8, .n_lora = 1 },
    { "experts",         4,    64, QUANT_Q5_0, 1e-12, .why = "adapters on both", .out = 32, .n_expert = 4, .n_used = 3, .n_ff = 64, .rank = 3, .n_lora = 2 },
    { "experts",         1,    64, QUANT_Q8_0, 1e-12, .why = "decode, four adapters on gate, up and down", .out = 36, .n_expert = 4, .n_used = 2, .n_ff = 32, .rank = 5, .n_lora = 4, .split = true },
    { "experts",        65,    64, QUANT_Q8_0, 1e-12, .why = "grouped, three adapters on both", .out = 68, .n_expert = 4, .n_used = 2, .n_ff = 64, .rank = 7, .n_lora = 3 },
    { "experts",        70,    32, QUANT_Q4_0, 1e-12, .why = "grouped, adapters on gate, up and down", .out = 36, .n_expert = 2, .n_used = 2, .n_ff = 32, .rank = 16, .n_lora = 3, .split = true },
    { "experts",        65,   256, QUANT_Q4_K, 1e-12, .why = "grouped, as published files have it", .out = 36, .n_expert = 5, .n_used = 2, .n_ff = 256 },
    { "experts",        20,   256, QUANT_Q6_K, 1e-12, .why = "grouped, a format of three parts", .out = 36, .n_expert = 5, .n_used = 2, .n_ff = 256 },
    { "experts",        40,    64, QUANT_Q8_0, 1e-12, .why = "grouped, more slots of one expert than a tile", .out = 68, .n_expert = 2, .n_used = 2, .n_ff = 96 },
    { "experts",        33,    96, QUANT_Q5_0, 1e-12, .why = "grouped, gate and up apart, no scale", .out = 100, .n_expert = 7, .n_used = 3, .n_ff = 32, .split = true, .plain = true },
    { "experts",         9,    64, F32,        1e-12, .why = "grouped, all slots one expert's", .out = 64, .n_expert = 1, .n_used = 1, .n_ff = 40 },
    { "experts",       130,    32, QUANT_Q4_0, 1e-12, .why = "grouped, more experts than a thread counts", .out = 32, .n_expert = 300, .n_used = 10, .n_ff = 32 },
    { "experts",         2,    32, F32,        1e-12, .why = "a row names an expert twice", .out = 8, .n_expert = 1, .n_used = 2, .n_ff = 16 },

    { "add",            65,   100, F32,        1e-14, .why = "many rows" },
    { "scale",           5,   100, F32,        1e-14, .why = "a number" },
    { "scale",           5,   100, QUANT_BF16, 1e-14, .why = "a number of another format" },
    { "scale",           5,   100, F32,        0,     .why = "absent: nothing changes", .plain = true },
    { "copy_rows",       1,    96, F32,        0,     .why = "the last row", .at = 4 },
    { "copy_rows",      65,    33, F32,        0,     .why = "rows from the middle", .at = 3 },

    { "linear_shares", 130,   288, QUANT_Q8_0, 1e-12, .why = "blocks of 128, the columns in three shares", .out = 132, .cut = 5 },
    { "linear_shares",  70,  1288, QUANT_F16,  1e-12, .why = "shares, an adapter behind the last", .out = 64, .cut = 5, .rank = 9, .n_lora = 1 },
    { "linear_shares", 130,  1536, QUANT_Q4_K, 1e-12, .why = "shares, of header and nibbles", .out = 196, .cut = 5 },
    { "linear_shares", 130,   768, QUANT_Q6_K, 1e-12, .why = "shares of six bits", .out = 132, .cut = 5 },
    { "linear_shares",  70,  2560, QUANT_Q4_K, 1e-12, .why = "as many shares as pay", .out = 64 },
    { "linear_shares",  70,  2568, QUANT_BF16, 1e-12, .why = "the same, a tail of columns", .out = 60 },
    { "linear_gelu_mul", 70, 1536, QUANT_Q4_K, 1e-12, .why = "shares, a slice in the middle", .out = 68, .at = 8, .cut = 5 },
    { "linear_gelu_mul", 70, 2560, QUANT_Q8_0, 1e-12, .why = "as many shares as pay, an adapter", .out = 36, .at = 4, .rank = 5, .n_lora = 1 },
    { "linear",        130,   288, QUANT_Q8_0, 1e-12, .why = "blocks of 64 and 128 on subgroup matrices", .out = 132, .cut = 6 },
    { "linear",        258,   320, QUANT_Q8_0, 1e-12, .why = "blocks of 128 and 256 on subgroup matrices", .out = 132, .cut = 7 },
    { "layer_start",     1,   256, QUANT_Q8_0, 1e-11, .why = "an adapter, in five dispatches", .n_head = 4, .n_kv = 1, .out = 256, .pos = 70, .rank = 16, .n_lora = 1 },
    { "layer_start",     1,   256, QUANT_Q4_K, 1e-11, .why = "the largest head, two adapters, in five dispatches", .n_head = 2, .n_kv = 1, .out = 512, .pos = 40, .rank = 15, .n_lora = 2 },
    { "layer_start",     1,   256, QUANT_Q4_0, 1e-11, .why = "a larger rank, in five dispatches", .n_head = 2, .n_kv = 1, .out = 512, .pos = 40, .rank = 40, .n_lora = 1 },
    { "layer_start",     1,   128, QUANT_Q8_0, 1e-11, .why = "a head of no power of two, several keys' heads, in five dispatches", .n_head = 4, .n_kv = 2, .out = 48, .pos = 33, .rank = 5, .n_lora = 1 },
    { "layer_start",     1,   256, QUANT_F16,  1e-11, .why = "without adapters", .n_head = 4, .n_kv = 2, .out = 64, .pos = 20 },
    { "attend_linear",   1,   160, QUANT_Q8_0, 1e-11, .why = "many shares, a head in three pieces, two adapters", .n_head = 4, .n_kv = 1, .out = 80, .ring = 700, .pos = 690, .n_ff = 12, .rank = 9, .n_lora = 2, .at = 1 },
    { "attend_linear",   1,   128, QUANT_Q4_0, 1e-11, .why = "as many shares as there can be, an adapter", .n_head = 8, .n_kv = 1, .out = 64, .ring = 4300, .pos = 4250, .n_ff = 12, .rank = 3, .n_lora = 1, .at = 1 },
    { "layer_end",       1,   256, QUANT_Q4_K, 1e-11, .why = "a detour of 512, in eight dispatches", .out = 512, .n_ff = 512, .rank = 20, .n_lora = 5 },
    { "layer_end",       1,   256, QUANT_Q8_0, 1e-11, .why = "the same, a larger rank", .out = 512, .n_ff = 512, .rank = 40, .n_lora = 5 },
    { "layer_next",      1,   256, QUANT_Q4_K, 1e-10, .why = "without adapters, in ten dispatches", .n_head = 4, .n_kv = 1, .out = 64, .pos = 70, .n_ff = 512, .n_used = 256 },
    { "layer_next",      1,   256, QUANT_Q8_0, 1e-10, .why = "another layer's cache, without adapters, in ten dispatches", .n_head = 2, .n_kv = 1, .out = 256, .pos = 40, .n_ff = 512, .n_used = 64, .plain = true },
    { "layer_next",      1,  1536, QUANT_Q4_K, 1e-10, .why = "values of six bits, another detour, many shares, in ten dispatches", .n_head = 4, .n_kv = 2, .out = 64, .pos = 300, .n_ff = 512, .n_used = 256, .split = true, .at = QUANT_Q8_0 },
    { "layer_next",      1,   256, QUANT_Q4_K, 1e-10, .why = "an adapter on each, in seventeen dispatches", .n_head = 4, .n_kv = 1, .out = 64, .pos = 70, .n_ff = 512, .n_used = 256, .rank = 14, .n_lora = 12 },
    { "layer_next",      1,   256, QUANT_Q8_0, 1e-10, .why = "another layer's cache, an adapter on each, in seventeen dispatches", .n_head = 2, .n_kv = 1, .out = 256, .pos = 40, .n_ff = 512, .n_used = 256, .plain = true, .rank = 16, .n_lora = 12 },
    { "layer_next",      1,   256, QUANT_Q4_K, 1e-10, .why = "values of six bits, adapters on queries, keys and values", .n_head = 4, .n_kv = 1, .out = 64, .pos = 20, .n_ff = 512, .n_used = 256, .split = true, .rank = 8, .n_lora = 3, .n_expert = 5 },
    { "layer_next",      1,   256, QUANT_Q8_0, 1e-10, .why = "adapters on down and the detour", .n_head = 2, .n_kv = 1, .out = 64, .pos = 20, .n_ff = 512, .n_used = 64, .rank = 8, .n_lora = 3, .n_expert = 2 },
    { "layer_next",      1,   256, QUANT_Q8_0, 1e-10, .why = "values that are the keys as they come, an adapter on each", .n_head = 2, .n_kv = 1, .out = 64, .pos = 33, .n_ff = 512, .n_used = 64, .same = true, .rank = 4, .n_lora = 12 },
    { "layer_next",      1,   256, QUANT_F16,  1e-10, .why = "floats", .n_head = 2, .n_kv = 1, .out = 64, .pos = 20, .n_ff = 512, .n_used = 64, .rank = 8, .n_lora = 12 },
    { "attend_linear",   1,   256, QUANT_Q4_K, 1e-11, .why = "more columns than a product merges: heads alone", .n_head = 20, .n_kv = 4, .out = 128, .ring = 120, .pos = 110, .n_ff = 40, .at = 1 },
    { "attend_linear",   1,   512, QUANT_Q6_K, 1e-11, .why = "heads alone, of the largest size, values made of keys, the first token", .n_head = 9, .n_kv = 3, .out = 64, .ring = 64, .n_ff = 33, .split = true, .at = 1 },
    { "attend_linear",   1,   256, QUANT_Q8_0, 1e-11, .why = "heads alone, halves, a window around the ring", .n_head = 18, .n_kv = 2, .out = 128, .ring = 40, .pos = 100, .window = 33, .n_ff = 17, .half = true, .at = 1 },
    { "attend_linear",   1,   256, QUANT_Q4_K, 1e-11, .why = "more columns than a product merges, few shares", .n_head = 20, .n_kv = 4, .out = 128, .ring = 300, .pos = 290, .n_ff = 40, .at = 1 },
    { "attend_linear",   1,   256, F32,        1e-11, .why = "so many columns, floats", .n_head = 20, .n_kv = 4, .out = 128, .ring = 120, .pos = 100, .n_ff = 40, .at = 1 },

    { "linear",          1,   256, QUANT_Q4_K, 1e-12, .why = "rows that teams of three share out more evenly", .out = 5376 },
    { "linear",          1,  2304, QUANT_Q6_K, 1e-12, .why = "teams of three rows, a tail of one", .out = 34, .cut = 4 },
    { "join_gate_up",    1,   768, QUANT_Q4_K, 1e-12, .why = "wide, and down, three rows a team", .out = 256, .n_ff = 20, .wide = true, .cut = 4 },

    { "rope",            1,   256, F32,        1e-12, .why = "decode", .n_head = 8, .out = 128 },
    { "rope",           65,    32, F32,        1e-12, .why = "pairs past the last stay", .n_head = 3, .out = 5 },
};
/* clang-format on */

/* ---- running them ---- */

static inline void run_case_on(struct bench *b, const struct op_case *c)
{
    for (size_t i = 0; i < sizeof ops / sizeof *ops; i++)
        if (strcmp(ops[i].name, c->op) == 0) ops[i].run(b, c);
}

/* The n-th case of a table with EVERY written out, and its number in the table. False past the last. */
static inline bool nth_of(const struct op_case *table, size_t n_table, size_t n,
                          struct op_case *out, size_t *line)
{
    for (size_t i = 0; i < n_table; i++) {
        const struct quant_format *f;
        *out = table[i];
        *line = i;
        if (out->format != EVERY && n-- == 0) return true;
        for (size_t k = 0; table[i].format == EVERY && (f = quant_at(k)); k++) {
            out->format = (uint32_t)f->id;
            if (out->cols % f->block == 0 && n-- == 0) return true;
        }
    }
    return false;
}

static inline bool nth_case(size_t n, struct op_case *out, size_t *line)
{
    return nth_of(cases, sizeof cases / sizeof *cases, n, out, line);
}

static inline double nmse_f64(const float *got, const double *want, size_t n)
{
    double error = 0, size = 0;
    for (size_t i = 0; i < n; i++) {
        double d = (double)got[i] - want[i];
        error += d * d;
        size += want[i] * want[i];
    }
    return size > 0 ? error / size : error;
}

static inline double nmse(const float *got, const float *want, size_t n)
{
    double *wide = widen(want, n), e = nmse_f64(got, wide, n);
    free(wide);
    return e;
}

#endif
