/* ops_cpu_fast.c - the CPU ops where time goes, with threads and SIMD.
 *
 * Nearly all time is in matrix products, and nearly all of that in reading quantised weights:
 *
 *     one row   (decode)    Q4_K, Q6_K and Q8_0 straight from their bits (ops_cpu_dot.c); other
 *                           formats stream through a 4 KiB buffer, one dot product behind
 *     many rows (prefill)   4 weight rows are decoded whole, then tiles of 4 x 3 dot products
 *
 * Sums are f32 in 8 or 16 independent lanes. The vectors are the compiler's own (vector_size), so
 * one source serves AVX2, SSE2, NEON and wasm SIMD128. This file is compiled with
 * -ffp-contract=fast.
 */
#include "ops/ops_cpu_optional.h"

#include <assert.h>
#include <math.h>
#include <string.h>

#include "ops/ops_cpu_dot.h"
#include "ops/ops_cpu_vec.h"

enum {
    ROWS_PER_TASK = 32, /* output rows a worker takes at a time */
    TILE_ROWS = 4,      /* weight rows decoded together in prefill */
    TILE_TOKS = 3,      /* activation rows that share them in registers: 12 sums fill AVX2 */
    STREAM = 1024,      /* weights decoded at a time in decode; a multiple of every block size */
};

/* ---- dot products ---- */

BZ_CLONES static float dot(const float *a, const float *b, size_t n)
{
    vf s0 = { 0 }, s1 = { 0 }, s2 = { 0 }, s3 = { 0 };
    size_t i = 0;
    for (; i + 4 * LANES <= n; i += 4 * LANES) {
        s0 += *(const vf *)(a + i) * *(const vf *)(b + i);
        s1 += *(const vf *)(a + i + LANES) * *(const vf *)(b + i + LANES);
        s2 += *(const vf *)(a + i + 2 * LANES) * *(const vf *)(b + i + 2 * LANES);
        s3 += *(const vf *)(a + i + 3 * LANES) * *(const vf *)(b + i + 3 * LANES);
    }
    float tail = 0;
    for (; i < n; i++) tail += a[i] * b[i];
    s0 = (s0 + s1) + (s2 + s3);
    return sum_lanes(&s0) + tail;
}

/* out[r][t] = w_r . x_t for 4 weight rows and 3 activation rows, each `stride` floats apart. */
BZ_CLONES static void dot_tile(float out[TILE_ROWS][TILE_TOKS], const float *w, const float *x,
                               size_t stride, size_t n)
{
    vf sum[TILE_ROWS][TILE_TOKS] = { 0 };
    size_t i = 0;
    for (; i + LANES <= n; i += LANES) {
        vf x0 = *(const vf *)(x + i), x1 = *(const vf *)(x + stride + i),
           x2 = *(const vf *)(x + 2 * stride + i);
        for (int r = 0; r < TILE_ROWS; r++) {
            vf wr = *(const vf *)(w + (size_t)r * stride + i);
            sum[r][0] += wr * x0;
            sum[r][1] += wr * x1;
            sum[r][2] += wr * x2;
        }
    }
    for (int r = 0; r < TILE_ROWS; r++)
        for (int t = 0; t < TILE_TOKS; t++) {
            float tail = 0;
            for (size_t j = i; j < n; j++)
                tail += w[(size_t)r * stride + j] * x[(size_t)t * stride + j];
            out[r][t] = sum_lanes(&sum[r][t]) + tail;
        }
}

/* y += scale * x */
BZ_CLONES static void axpy(float *y, const float *x, float scale, size_t n)
{
    for (size_t i = 0; i < n; i++) y[i] += scale * x[i];
}

/* ---- matrix products ---- */

struct matmul {
    struct cpu *cpu;
    float *y;       /* n_tok rows, y_stride apart */
    const float *x; /* n_tok rows of w->cols */
    const struct weight *w;
    const struct dot_format *dot; /* for one row: straight from the bits, or NULL */
    const float *prepared;        /* x as dot wants it */
    uint64_t first_row;           /* of the expert within w */
    uint32_t n_tok, y_stride;
    float scale;
    bool add;
};

static void store(const struct matmul *m, uint32_t row, uint32_t tok, float value)
{
    float *y = m->y + (size_t)tok * m->y_stride + row;
    *y = (m->add ? *y : 0) + m->scale * value;
}

/* One activation row, where the format has its own dot product. */
static void dot_rows(const struct matmul *m, const uint8_t *bytes, uint32_t row, uint32_t end)
{
    float sums[ROWS_PER_TASK];
    m->dot->rows(sums, bytes, end - row, m->prepared, m->w->cols);
    for (uint32_t i = 0; row + i < end; i++) store(m, row + i, 0, sums[i]);
}

/* Where it has none: decode and multiply in pieces that stay in the first-level cache. */
static void matvec_rows(const struct matmul *m, const uint8_t *bytes, uint32_t row, uint32_t end)
{
    const struct quant_format *f = m->w->fmt;
    _Alignas(64) float piece[STREAM];
    for (; row < end; row++) {
        float sum = 0;
        for (uint32_t at = 0; at < m->w->cols; at += STREAM) {
            uint32_t n = m->w->cols - at < STREAM ? m->w->cols - at : STREAM;
            f->decode(bytes, piece, n);
            sum += dot(piece, m->x + at, n);
            bytes += quant_row_bytes(f, n);
        }
        store(m, row, 0, sum);
    }
}

/* Many activation rows: TILE_ROWS weight rows at a time. */
static void matmul_rows(const struct matmul *m, const uint8_t *bytes, uint32_t row, uint32_t end,
                        float *decoded)
{
    const struct quant_format *f = m->w->fmt;
    uint32_t cols = m->w->cols;
    size_t row_bytes = quant_row_bytes(f, cols);
    for (; row < end; row += TILE_ROWS) {
        uint32_t n_row = end - row < TILE_ROWS ? end - row : TILE_ROWS;
        f->decode(bytes, decoded, (size_t)n_row * cols);
        bytes += n_row * row_bytes;
        uint32_t t = 0;
        for (; n_row == TILE_ROWS && t + TILE_TOKS <= m->n_tok; t += TILE_TOKS) {
            float out[TILE_ROWS][TILE_TOKS];
            dot_tile(out, decoded, m->x + (size_t)t * cols, cols, cols);
            for (uint32_t i = 0; i < TILE_ROWS; i++)
                for (uint32_t j = 0; j < TILE_TOKS; j++) store(m, row + i, t + j, out[i][j]);
        }
        for (; t < m->n_tok; t++)
            for (uint32_t i = 0; i < n_row; i++)
                store(m, row + i, t,
                      dot(decoded + (size_t)i * cols, m->x + (size_t)t * cols, cols));
    }
}

static void matmul_task(void *ctx, uint32_t task, uint32_t worker_index)
{
    const struct matmul *m = ctx;
    struct cpu_worker *worker = &m->cpu->workers[worker_index];
    uint32_t row = task * ROWS_PER_TASK;
    uint32_t end = m->w->rows - row < ROWS_PER_TASK ? m->w->rows : row + ROWS_PER_TASK;
    const void *bytes = weight_bytes(worker, m->w, m->first_row + row, end - row);
    if (!bytes) return;
    if (m->n_tok == 1) {
        (m->dot ? dot_rows : matvec_rows)(m, bytes, row, end);
        return;
    }
    float *decoded = scratch_need(worker, &worker->scratch[SCRATCH_DECODED],
                                  (size_t)TILE_ROWS * m->w->cols * sizeof *decoded);
    if (decoded) matmul_rows(m, bytes, row, end, decoded);
}

static void matmul(struct run *r, struct matmul *m)
{
    struct cpu *c = m->cpu = r->be->ctx;
    m->dot = m->n_tok == 1 ? dot_find(m->w->fmt->id) : NULL;
    if (m->dot) {
        float *x = scratch_need(c->workers, &c->prepared, dot_room(m->w->cols) * sizeof *x);
        if (!x) {
            cpu_collect(r);
            return;
        }
        m->dot->prepare(x, m->x, m->w->cols);
        m->prepared = x;
    }
    pool_run(c->pool, matmul_task, m, (m->w->rows + ROWS_PER_TASK - 1) / ROWS_PER_TASK);
    cpu_collect(r);
}

/* Matrix `mat` of w on n_tok rows, plus its adapters, whose A x is kept in `to` (NULL: nowhere).
 * Dropout takes row t for row number slots[t], or t. */
static void adapted_matmul(struct run *r, float *y, uint32_t y_stride, struct tensor *to,
                           const float *x, const struct weight *w, uint64_t mat, uint32_t n_tok,
                           const uint32_t *slots)
{
    struct cpu *c = r->be->ctx;
    struct matmul m = { .y = y,
                        .x = x,
                        .w = w,
                        .first_row = mat * w->rows,
                        .n_tok = n_tok,
                        .y_stride = y_stride,
                        .scale = 1 };
    matmul(r, &m);
    for (const struct lora *l = w->lora; l && !r->status; l = l->next) {
        uint32_t rank = l->a.rows;
        float *z = scratch_need(c->workers, &c->lora, (size_t)n_tok * rank * sizeof *z);
        const float *seen = z ? dropped_rows(c, l, x, n_tok, w->cols, slots, 0) : NULL;
        if (!seen) break;
        struct matmul down = { .y = z,
                               .x = seen,
                               .w = &l->a,
                               .first_row = mat * rank,
                               .n_tok = n_tok,
                               .y_stride = rank,
                               .scale = 1 };
        matmul(r, &down);
        for (uint32_t t = 0; t < n_tok; t++) keep_z(to, w, l, t, z + (size_t)t * rank);
        struct matmul up = { .y = y,
                             .x = z,
                             .w = &l->b,
                             .first_row = mat * w->rows,
                             .n_tok = n_tok,
                             .y_stride = y_stride,
                             .scale = lora_scale(l, r->canvas),
                             .add = true };
        matmul(r, &up);
    }
    cpu_collect(r);
}

static void linear(struct run *r, struct tensor *y, const struct tensor *x, const struct weight *w)
{
    adapted_matmul(r, y->mem, y->cols, NULL, x->mem, w, 0, x->rows, NULL);
}

static void linear_z(struct run *r, struct tensor *y, struct tensor *z, const struct tensor *x,
                     const struct weight *w)
{
    adapted_matmul(r, y->mem, y->cols, z, x->mem, w, 0, x->rows, NULL);
}

/* ---- attention: a task is one query head of one row ---- */

enum { TOGETHER = 4 }; /* positions that share the loads of the query, and of the sum */

struct attending {
    struct cpu *cpu;
    struct tensor *y;
    const struct tensor *q;
    const struct attention *a;
    uint32_t pos, n_kv_head, head_dim;
};

/* score[j] = q . k_j. A score may be as large as 60, and its exponential shows every rounding. So
 * the sums are of short pieces and end in double. */
BZ_CLONES static void score_rows(double score[TOGETHER], const float *q,
                                 const float *const k[TOGETHER], size_t n)
{
    vf sum[TOGETHER] = { 0 };
    size_t i = 0;
    while (i + LANES <= n) {
        vf piece[TOGETHER] = { 0 };
        for (size_t end = i + 64; i < end && i + LANES <= n; i += LANES) {
            vf qi = *(const vf *)(q + i);
            for (int j = 0; j < TOGETHER; j++) piece[j] += qi * *(const vf *)(k[j] + i);
        }
        for (int j = 0; j < TOGETHER; j++) sum[j] += piece[j];
    }
    for (int j = 0; j < TOGETHER; j++) {
        score[j] = 0;
        for (int lane = 0; lane < LANES; lane++) score[j] += (double)sum[j][lane];
        for (size_t at = i; at < n; at++) score[j] += (double)(q[at] * k[j][at]);
    }
}

/* out += sum over j of p[j] v_j */
BZ_CLONES static void mix_rows(float *restrict out, const float p[TOGETHER],
                               const float *const v[TOGETHER], size_t n)
{
    const float *v0 = v[0], *v1 = v[1], *v2 = v[2], *v3 = v[3];
    float p0 = p[0], p1 = p[1], p2 = p[2], p3 = p[3];
    for (size_t i = 0; i < n; i++) out[i] += (p0 * v0[i] + p1 * v1[i]) + (p2 * v2[i] + p3 * v3[i]);
}

/* p = e^(score - top), 0 past n; returns their sum. p has room for a whole number of vectors. */
BZ_CLONES static float soften(float *p, const double *score, uint32_t n, double top)
{
    vf total = { 0 };
    for (uint32_t i = 0; i < n; i++) p[i] = (float)(score[i] - top);
    for (uint32_t i = 0; i < n; i += LANES) {
        vf e = *(const vf *)(p + i);
        exp_lanes(&e);
        *(vf *)(p + i) = e;
        for (uint32_t past = n; past < i + LANES; past++) p[past] = 0;
        total += *(const vf *)(p + i);
    }
    return sum_lanes(&total);
}

/* Rows one after the other in a tensor. */
struct piece {
    const struct tensor *of;
    uint32_t first, n;
};

/* What a row sees, in order: a cache that is a ring, so up to two pieces of it, then rows of the
 * step. After the last one it is repeated. */
struct positions {
    struct piece pieces[3];
    uint32_t piece, done; /* of the next row */
    uint32_t left, n;
    size_t at;
    float *wide; /* room for TOGETHER rows of n */
};

static struct positions positions_of(const struct attending *a, const struct tensor *cache,
                                     const struct tensor *own, struct seen seen, size_t at)
{
    struct positions p = { .at = at, .n = a->head_dim };
    uint32_t n = 0;
    while (seen.n) {
        struct piece piece = { cache, seen.first % cache->rows, seen.n };
        if (piece.n > cache->rows - piece.first) piece.n = cache->rows - piece.first;
        seen.first += piece.n;
        seen.n -= piece.n;
        p.left += piece.n;
        p.pieces[n++] = piece;
    }
    if (own) p.pieces[n] = (struct piece) { own, 0, own->rows };
    if (own) p.left += own->rows;
    return p;
}

static void next_rows(struct positions *p, const float *row[TOGETHER])
{
    for (size_t j = 0; j < TOGETHER; j++) {
        const struct piece *piece = &p->pieces[p->piece];
        uint32_t i = piece->first + p->done;
        row[j] = piece->of->half ? kv_numbers(piece->of, i, p->at, p->n, p->wide + j * p->n)
                                 : row_f32(piece->of, i) + p->at;
        if (p->left <= 1) continue;
        p->left--;
        if (++p->done < piece->n) continue;
        p->piece++;
        p->done = 0;
    }
}

static void attention_task(void *ctx, uint32_t task, uint32_t worker_index)
{
    const struct attending *to = ctx;
    const struct attention *a = to->a;
    struct cpu_worker *worker = &to->cpu->workers[worker_index];
    uint32_t t = task / a->n_head, h = task % a->n_head, hd = to->head_dim;
    size_t at = (size_t)(h / (a->n_head / to->n_kv_head)) * hd;
    struct seen seen = seen_by(a, to->pos, t);
    struct positions keys = positions_of(to, a->kv ? &a->kv->k : NULL, a->k, seen, at);
    struct positions values = positions_of(to, a->kv ? &a->kv->v : NULL, a->v, seen, at);
    uint32_t n = keys.left;
    size_t n_wide = a->kv && a->kv->k.half ? TOGETHER * (size_t)hd : 0;
    size_t room = (n + TOGETHER) * sizeof(double) + (n + LANES + n_wide) * sizeof(float);
    double *score = scratch_need(worker, &worker->scratch[SCRATCH_SCORES], room);
    if (!score) return;
    float *p = (float *)(score + n + TOGETHER);
    keys.wide = values.wide = p + n + LANES;

    const float *q = row_f32(to->q, t) + (size_t)h * hd, *row[TOGETHER];
    double top = -INFINITY;
    for (uint32_t s = 0; s < n; s += TOGETHER) {
        next_rows(&keys, row);
        score_rows(score + s, q, row, hd);
        for (uint32_t i = s; i < s + TOGETHER && i < n; i++) {
            score[i] *= (double)a->scale;
            if (score[i] > top) top = score[i];
        }
    }
    float total = soften(p, score, n, top);
    float *out = row_f32(to->y, t) + (size_t)h * hd;
    memset(out, 0, hd * sizeof *out);
    for (uint32_t s = 0; s < n; s += TOGETHER) {
        next_rows(&values, row);
        mix_rows(out, p + s, row, hd);
    }
    for (uint32_t i = 0; i < hd; i++) out[i] /= total;
}

void cpu_attend_masked_fast(struct run *r, struct tensor *y, const struct tensor *q,
                            const struct attention *a, uint32_t pos)
{
    struct attending to = { .cpu = r->be->ctx, .y = y, .q = q, .a = a, .pos = pos };
    to.head_dim = q->cols / a->n_head;
    to.n_kv_head = a->kv ? a->kv->n_kv_head : a->k->cols / to.head_dim;
    pool_run(to.cpu->pool, attention_task, &to, q->rows * a->n_head);
    cpu_collect(r);
}

static void attention(struct run *r, struct tensor *y, const struct tensor *q, const struct kv *kv,
                      uint32_t n_head, uint32_t window, uint32_t pos)
{
    const struct attention a = {
        .kv = kv, .mask = { MASK_CAUSAL, window }, .n_head = n_head, .scale = 1
    };
    cpu_attend_masked_fast(r, y, q, &a, pos);
}

/* ---- gated GELU: a task is one row ---- */

struct gelu {
    struct tensor *x;
    const struct tensor *b;
    uint32_t col;
};

/* out = gelu_tanh(a) * b; out may be a. With u = c (a + 0.044715 a^3), the same curve without
 * cancellation is
 *
 *     a (1 + tanh u) / 2 = a / (1 + e^(-2u))
 */
BZ_CLONES static void gelu_times(float *out, const float *a, const float *b, size_t n)
{
    size_t i = 0;
    for (; i + LANES <= n; i += LANES) {
        vf x = *(const vf *)(a + i), e = -1.59576912160573072f * (x + 0.044715f * x * x * x);
        exp_lanes(&e);
        *(vf *)(out + i) = x / (1.0f + e) * *(const vf *)(b + i);
    }
    for (; i < n; i++) out[i] = gelu_tanh(a[i]) * b[i];
}

static void gelu_task(void *ctx, uint32_t t, uint32_t worker)
{
    (void)worker;
    const struct gelu *g = ctx;
    float *a = row_f32(g->x, t);
    gelu_times(a, a, row_f32(g->b, t) + g->col, g->x->cols);
}

static void gelu_mul(struct run *r, struct tensor *x, const struct tensor *b, uint32_t col)
{
    struct cpu *c = r->be->ctx;
    struct gelu g = { x, b, col };
    pool_run(c->pool, gelu_task, &g, x->rows);
}

/* ---- softcap ---- */

/* cap tanh(x / cap) = cap (1 - 2 / (e^(2x / cap) + 1)) */
BZ_CLONES static void cap_numbers(float *x, size_t n, float cap)
{
    size_t i = 0;
    for (; i + LANES <= n; i += LANES) {
        vf e = *(const vf *)(x + i) * (2 / cap);
        exp_lanes(&e);
        *(vf *)(x + i) = cap - 2 * cap / (e + 1.0f);
    }
    for (; i < n; i++) x[i] = cap * tanhf(x[i] / cap);
}

static void softcap(struct run *r, struct tensor *x, float cap)
{
    (void)r;
    cap_numbers(x->mem, (size_t)x->rows * x->cols, cap);
}

/* ---- experts: rows grouped by expert, so that each expert's weights are read once ---- */

/* Rows of one expert: gather, gate and up, GELU, down, scatter with weight. */
static void expert_group(struct run *r, struct tensor *y, const struct tensor *x,
                         const struct routing *routing, const struct experts *e, uint64_t expert,
                         const uint32_t *slots, uint32_t n)
{
    struct cpu *c = r->be->ctx;
    uint32_t n_used = routing->ids.cols, n_ff = e->down->cols;
    float *in = scratch_need(c->workers, &c->gathered, (size_t)n * x->cols * sizeof *in);
    float *h = scratch_need(c->workers, &c->hidden, (size_t)n * 3 * n_ff * sizeof *h);
    float *out = scratch_need(c->workers, &c->expert_out, (size_t)n * y->cols * sizeof *out);
    if (!in || !h || !out) return;
    for (uint32_t i = 0; i < n; i++)
        memcpy(in + (size_t)i * x->cols, row_f32(x, slots[i] / n_used), x->cols * sizeof *in);

    if (weight_exists(e->gate_up)) {
        adapted_matmul(r, h, 2 * n_ff, NULL, in, e->gate_up, expert, n, slots);
    } else {
        adapted_matmul(r, h, 2 * n_ff, NULL, in, e->gate, expert, n, slots);
        adapted_matmul(r, h + n_ff, 2 * n_ff, NULL, in, e->up, expert, n, slots);
    }
    float *act = h + (size_t)n * 2 * n_ff; /* packed rows for the down projection */
    for (uint32_t i = 0; i < n; i++) {
        const float *row = h + (size_t)i * 2 * n_ff;
        gelu_times(act + (size_t)i * n_ff, row, row + n_ff, n_ff);
    }
    adapted_matmul(r, out, y->cols, NULL, act, e->down, expert, n, slots);
    float scale = weight_exists(e->scale) ? vec(e->scale)[expert] : 1;
    for (uint32_t i = 0; i < n; i++) {
        float weight = ((const float *)routing->weights.mem)[slots[i]];
        axpy(row_f32(y, slots[i] / n_used), out + (size_t)i * y->cols, weight * scale, y->cols);
    }
}

static void experts(struct run *r, struct tensor *y, const struct tensor *x,
                    const struct routing *routing, const struct experts *e)
{
    struct cpu *c = r->be->ctx;
    uint32_t n_slot = x->rows * routing->ids.cols;
    const int32_t *ids = routing->ids.mem;
    memset(y->mem, 0, (size_t)y->rows * y->cols * sizeof(float));
    uint32_t *slots = scratch_need(c->workers, &c->order, n_slot * sizeof *slots);
    for (uint32_t expert = 0; slots && expert < e->down->n_mat && !r->status; expert++) {
        uint32_t n = 0;
        for (uint32_t s = 0; s < n_slot; s++)
            if ((uint32_t)ids[s] == expert) slots[n++] = s;
        if (n) expert_group(r, y, x, routing, e, expert, slots, n);
    }
    cpu_collect(r);
}

void cpu_use_fast(struct backend *be)
{
    be->name = "cpu";
    be->linear = linear;
    be->linear_z = linear_z;
    be->attention = attention;
    be->gelu_mul = gelu_mul;
    be->softcap = softcap;
    be->experts = experts;
}
