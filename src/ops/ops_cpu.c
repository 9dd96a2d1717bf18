/* ops_cpu.c - the reference: one obvious loop per op.
 *
 * This file is the definition that every kernel is tested against, so nothing here is clever: one
 * thread, sums in double, weights decoded a row at a time. Faster versions of the same functions
 * are in ops_cpu_fast.c.
 */
#include "ops/ops_cpu.h"

#include <assert.h>
#include <math.h>
#include <string.h>

#include "base/mem.h"

/* ---- memory ---- */

void *scratch_need(struct cpu_worker *worker, struct scratch *s, size_t n)
{
    if (s->n >= n) return s->p;
    /* A quarter more at least, so that a growing history does not allocate at every token. */
    if (n < s->n + s->n / 4) n = s->n + s->n / 4;
    void *p = mem_grow(s->p, n, 1);
    if (!p) {
        worker->status = fail_memory(&worker->err, n);
        return NULL;
    }
    s->p = p;
    s->n = n;
    return p;
}

const void *weight_bytes(struct cpu_worker *worker, const struct weight *w, uint64_t first,
                         uint32_t n)
{
    uint64_t row_bytes = quant_row_bytes(w->fmt, w->cols);
    uint64_t offset = w->offset + first * row_bytes, n_bytes = n * row_bytes;
    const void *here = source_map(w->src, offset, n_bytes);
    if (here) return here;
    if (n_bytes > SIZE_MAX) {
        worker->status = fail_memory(&worker->err, n_bytes);
        return NULL;
    }
    void *copy = scratch_need(worker, &worker->scratch[SCRATCH_RAW], (size_t)n_bytes);
    if (!copy) return NULL;
    enum bz_status st = source_read(w->src, offset, copy, (size_t)n_bytes, &worker->err);
    if (st == BZ_OK) return copy;
    worker->status = st;
    return NULL;
}

void cpu_collect(struct run *r)
{
    struct cpu *c = r->be->ctx;
    for (unsigned i = 0; i < c->n_workers; i++) {
        struct cpu_worker *worker = &c->workers[i];
        if (worker->status) run_fail(r, worker->status, "%s", worker->err.text);
        worker->status = BZ_OK;
    }
}

/* Scratch of the reference's one worker, or NULL with the run failed. */
static void *need(struct run *r, struct scratch *s, size_t n)
{
    struct cpu *c = r->be->ctx;
    void *p = scratch_need(c->workers, s, n);
    if (!p) cpu_collect(r);
    return p;
}

/* Row `row` of a weight as floats, or NULL with the run failed. */
static const float *weight_row(struct run *r, const struct weight *w, uint64_t row)
{
    struct cpu *c = r->be->ctx;
    float *out = need(r, &c->workers->scratch[SCRATCH_DECODED], w->cols * sizeof *out);
    const void *bytes = out ? weight_bytes(c->workers, w, row, 1) : NULL;
    if (!bytes) {
        cpu_collect(r);
        return NULL;
    }
    w->fmt->decode(bytes, out, w->cols);
    return out;
}

static bool cpu_alloc(void *ctx, struct tensor *t)
{
    (void)ctx;
    t->mem = t->size <= SIZE_MAX ? mem_alloc((size_t)t->size, tensor_width(t)) : NULL;
    return t->mem != NULL;
}

static void cpu_free(void *ctx, struct tensor *t)
{
    (void)ctx;
    mem_free(t->mem);
}

static void view(struct tensor *x, const struct tensor *of, uint32_t first)
{
    x->mem = (float *)of->mem + first;
}

static uint8_t *row_bytes(const struct tensor *t, uint32_t row)
{
    return (uint8_t *)t->mem + (uint64_t)row * t->cols * tensor_width(t);
}

static void cpu_write(struct run *r, struct tensor *t, uint32_t row, const void *src, uint32_t n)
{
    (void)r;
    memcpy(row_bytes(t, row), src, (size_t)n * t->cols * tensor_width(t));
}

static void cpu_read(struct run *r, const struct tensor *t, uint32_t row, void *dst, uint32_t n)
{
    (void)r;
    memcpy(dst, row_bytes(t, row), (size_t)n * t->cols * tensor_width(t));
}

/* Vectors (norms, scales) are kept decoded; matrices stay in their source. */
static enum bz_status cpu_load(void *ctx, struct weight *w, struct bz_err *err)
{
    (void)ctx;
    if (w->rows != 1 || w->n_mat != 1) return BZ_OK;
    size_t n_bytes = quant_row_bytes(w->fmt, w->cols);
    void *bytes = mem_alloc(n_bytes, 1);
    float *out = mem_alloc(w->cols, sizeof *out);
    enum bz_status st = !bytes || !out ? fail_memory(err, n_bytes)
                                       : source_read(w->src, w->offset, bytes, n_bytes, err);
    if (st == BZ_OK) {
        w->fmt->decode(bytes, out, w->cols);
        w->mem = out;
    } else {
        mem_free(out);
    }
    mem_free(bytes);
    return st;
}

static void cpu_unload(void *ctx, struct weight *w)
{
    (void)ctx;
    mem_free(w->mem);
    w->mem = NULL;
}

/* ---- ops ---- */

static void embed(struct run *r, struct tensor *y, const struct weight *table,
                  const struct tensor *ids, float scale)
{
    const int32_t *id = ids->mem;
    for (uint32_t t = 0; t < y->rows; t++) {
        assert(id[t] >= 0 && (uint32_t)id[t] < table->rows);
        const float *row = weight_row(r, table, (uint64_t)id[t]);
        if (!row) return;
        float *out = row_f32(y, t);
        for (uint32_t i = 0; i < y->cols; i++) out[i] = row[i] * scale;
    }
}

/* Four sums, none of which waits for another; in one place, not wherever it is called. */
__attribute__((noinline)) double dot_f64(const float *a, const float *b, uint32_t n)
{
    enum { SUMS = 4 };
    double sum[SUMS] = { 0 };
    uint32_t i = 0;
    for (; i + SUMS <= n; i += SUMS)
        for (uint32_t k = 0; k < SUMS; k++) sum[k] += (double)a[i + k] * (double)b[i + k];
    for (; i < n; i++) sum[0] += (double)a[i] * (double)b[i];
    return (sum[0] + sum[1]) + (sum[2] + sum[3]);
}

/* 1 / sqrt(mean(x^2) + eps) */
static float rms_inverse(const float *x, uint32_t n, float eps)
{
    double sum = 0;
    for (uint32_t i = 0; i < n; i++) sum += (double)x[i] * (double)x[i];
    return (float)(1.0 / sqrt(sum / n + (double)eps));
}

/* y = norm(x) * w; y may be x. */
static void norm_vec(float *y, const float *x, const float *w, uint32_t n, float eps)
{
    float inverse = rms_inverse(x, n, eps);
    for (uint32_t i = 0; i < n; i++) y[i] = x[i] * inverse * (w ? w[i] : 1.0f);
}

static void rms_norm(struct run *r, struct tensor *y, const struct tensor *x,
                     const struct weight *w, float eps)
{
    (void)r;
    for (uint32_t t = 0; t < x->rows; t++)
        norm_vec(row_f32(y, t), row_f32(x, t), vec(w), x->cols, eps);
}

/* y[i] = scale * (W_mat x)[i], added to y where `add`. */
static void matvec(struct run *r, float *y, const float *x, const struct weight *w, uint64_t mat,
                   float scale, bool add)
{
    for (uint32_t i = 0; i < w->rows; i++) {
        const float *row = weight_row(r, w, mat * w->rows + i);
        if (!row) return;
        y[i] = (add ? y[i] : 0) + scale * (float)dot_f64(row, x, w->cols);
    }
}

/* For each adapter y += scale * B_mat (A_mat x); A x is row `z_row` of `to`, or not kept. */
static void add_adapters(struct run *r, float *y, struct tensor *to, const float *x,
                         const struct weight *w, uint64_t mat, uint32_t z_row)
{
    struct cpu *c = r->be->ctx;
    for (const struct lora *l = w->lora; l; l = l->next) {
        float *z = need(r, &c->lora, l->a.rows * sizeof *z);
        const float *seen = z ? dropped_rows(c, l, x, 1, w->cols, NULL, z_row) : NULL;
        if (!seen) return;
        matvec(r, z, seen, &l->a, mat, 1, false);
        keep_z(to, w, l, z_row, z);
        matvec(r, y, z, &l->b, mat, lora_scale(l, r->canvas), true);
    }
}

/* y = W_mat x, and its adapters. */
static void adapted_matvec(struct run *r, float *y, const float *x, const struct weight *w,
                           uint64_t mat, uint32_t z_row)
{
    matvec(r, y, x, w, mat, 1, false);
    add_adapters(r, y, NULL, x, w, mat, z_row);
}

/* A row of W is decoded once, for all rows of x. */
static void linear_z(struct run *r, struct tensor *y, struct tensor *z, const struct tensor *x,
                     const struct weight *w)
{
    for (uint32_t i = 0; i < w->rows; i++) {
        const float *row = weight_row(r, w, i);
        if (!row) return;
        for (uint32_t t = 0; t < x->rows; t++)
            row_f32(y, t)[i] = (float)dot_f64(row, row_f32(x, t), w->cols);
    }
    for (uint32_t t = 0; t < x->rows; t++)
        add_adapters(r, row_f32(y, t), z, row_f32(x, t), w, 0, t);
}

static void linear(struct run *r, struct tensor *y, const struct tensor *x, const struct weight *w)
{
    linear_z(r, y, NULL, x, w);
}

/* The angle of pair i is pos * base^(-2i/head_dim), stepped by multiplication in f32: the drift of
 * that recurrence is part of what the reference implementations compute. */
static void rope_table(struct run *r, struct tensor *table, const struct rope *rope, uint32_t pos)
{
    (void)r;
    float step = powf(rope->base, -2.0f / (float)rope->head_dim);
    for (uint32_t t = 0; t < table->rows; t++) {
        float *cosine = row_f32(table, t), *sine = cosine + rope->n_pair;
        float angle = (float)(pos + t);
        for (uint32_t i = 0; i < rope->n_pair; i++) {
            float rotated = rope->div ? angle / rope->div[i] : angle;
            cosine[i] = cosf(rotated);
            sine[i] = sinf(rotated);
            angle *= step;
        }
    }
}

/* The first n_pair pairs (i, i + half) of a head, rotated by a row of the table. */
static void rotate(float *u, const float *table, uint32_t n_pair, uint32_t half)
{
    const float *cosine = table, *sine = table + n_pair;
    for (uint32_t i = 0; i < n_pair; i++) {
        float a = u[i], b = u[i + half];
        u[i] = a * cosine[i] - b * sine[i];
        u[i + half] = a * sine[i] + b * cosine[i];
    }
}

static void rope(struct run *r, struct tensor *x, const struct tensor *table, uint32_t n_head)
{
    (void)r;
    uint32_t head_dim = x->cols / n_head;
    for (uint32_t t = 0; t < x->rows; t++)
        for (uint32_t h = 0; h < n_head; h++)
            rotate(row_f32(x, t) + (size_t)h * head_dim, row_f32(table, t), table->cols / 2,
                   head_dim / 2);
}

static void head_norm(struct run *r, struct tensor *x, const struct weight *w, uint32_t n_head,
                      float eps)
{
    (void)r;
    uint32_t head_dim = x->cols / n_head;
    for (uint32_t t = 0; t < x->rows; t++)
        for (uint32_t h = 0; h < n_head; h++) {
            float *u = row_f32(x, t) + (size_t)h * head_dim;
            norm_vec(u, u, vec(w), head_dim, eps);
        }
}

/* Row t of x becomes a row of the cache. */
static void remember(const struct tensor *cache, uint32_t slot, const struct tensor *x, uint32_t t)
{
    const struct quant_format *f = quant_find(cache->half ? QUANT_F16 : QUANT_F32);
    f->encode(row_f32(x, t), row_bytes(cache, slot), x->cols);
}

const float *kv_numbers(const struct tensor *t, uint32_t row, size_t at, uint32_t n, float *wide)
{
    if (!t->half) return row_f32(t, row) + at;
    quant_find(QUANT_F16)->decode(row_bytes(t, row) + at * 2, wide, n);
    return wide;
}

static void kv_write(struct run *r, struct kv *kv, const struct tensor *k, const struct tensor *v,
                     uint32_t pos)
{
    (void)r;
    for (uint32_t t = 0; t < k->rows; t++) {
        uint32_t slot = (pos + t) % kv->k.rows;
        remember(&kv->k, slot, k, t);
        remember(&kv->v, slot, v, t);
    }
}

/* One query head over the positions [first, last] of one kv head. */
static void attend_head(double *out, float *wide, const float *q, const struct kv *kv,
                        uint32_t kv_head, uint32_t first, uint32_t last)
{
    uint32_t hd = kv->head_dim, n_slot = kv->k.rows;
    size_t at = (size_t)kv_head * hd;
    double top = -INFINITY, total = 0;
    for (uint32_t s = first; s <= last; s++)
        top = fmax(top, dot_f64(q, kv_numbers(&kv->k, s % n_slot, at, hd, wide), hd));
    for (uint32_t i = 0; i < hd; i++) out[i] = 0;
    for (uint32_t s = first; s <= last; s++) {
        double p = exp(dot_f64(q, kv_numbers(&kv->k, s % n_slot, at, hd, wide), hd) - top);
        const float *v = kv_numbers(&kv->v, s % n_slot, at, hd, wide);
        for (uint32_t i = 0; i < hd; i++) out[i] += p * (double)v[i];
        total += p;
    }
    for (uint32_t i = 0; i < hd; i++) out[i] /= total;
}

static void attention(struct run *r, struct tensor *y, const struct tensor *q, const struct kv *kv,
                      uint32_t n_head, uint32_t window, uint32_t pos)
{
    struct cpu *c = r->be->ctx;
    uint32_t hd = kv->head_dim, group = n_head / kv->n_kv_head;
    size_t n_bytes = hd * (sizeof(double) + sizeof(float));
    double *out = need(r, &c->workers->scratch[SCRATCH_SCORES], n_bytes);
    if (!out) return;
    float *wide = (float *)(out + hd);
    for (uint32_t t = 0; t < q->rows; t++) {
        uint32_t last = pos + t;
        uint32_t first = kv_first(kv, last, window);
        for (uint32_t h = 0; h < n_head; h++) {
            attend_head(out, wide, row_f32(q, t) + (size_t)h * hd, kv, h / group, first, last);
            float *dst = row_f32(y, t) + (size_t)h * hd;
            for (uint32_t i = 0; i < hd; i++) dst[i] = (float)out[i];
        }
    }
}

static void scale(struct run *r, struct tensor *x, const struct weight *w)
{
    (void)r;
    float *out = x->mem;
    for (uint64_t i = 0; i < (uint64_t)x->rows * x->cols; i++) out[i] *= vec(w)[0];
}

static void times(struct run *r, struct tensor *x, float c)
{
    (void)r;
    float *out = x->mem;
    for (uint64_t i = 0; i < (uint64_t)x->rows * x->cols; i++) out[i] *= c;
}

static void softcap(struct run *r, struct tensor *x, float cap)
{
    (void)r;
    float *out = x->mem;
    for (uint64_t i = 0; i < (uint64_t)x->rows * x->cols; i++) out[i] = cap * tanhf(out[i] / cap);
}

float gelu_tanh(float x)
{
    return 0.5f * x * (1.0f + tanhf(0.79788456080286536f * (x + 0.044715f * x * x * x)));
}

static void gelu_mul(struct run *r, struct tensor *x, const struct tensor *b, uint32_t col)
{
    (void)r;
    for (uint32_t t = 0; t < x->rows; t++) {
        float *a = row_f32(x, t);
        const float *by = row_f32(b, t) + col;
        for (uint32_t i = 0; i < x->cols; i++) a[i] = gelu_tanh(a[i]) * by[i];
    }
}

/* The k best scores z, best first; ties to the lower index, NaN last. p, the softmax of z, is
 * overwritten: a negative p marks a score that is already taken. */
static void take_best(const float *z, double *p, uint32_t n, int32_t *ids, float *out, uint32_t k)
{
    double total = 0;
    for (uint32_t j = 0, best = n; j < k; j++, best = n) {
        for (uint32_t e = 0; e < n; e++)
            if (!(p[e] < 0) && (best == n || z[e] > z[best] || (isnan(z[best]) && !isnan(z[e]))))
                best = e;
        ids[j] = (int32_t)best;
        out[j] = (float)p[best], total += p[best];
        p[best] = -1;
    }
    /* The floor is the smallest normal half, as in the reference; it never matters in practice. */
    for (uint32_t j = 0; j < k; j++) out[j] /= (float)fmax(total, 6.103515625e-5);
}

/* Row t of a routing, by its n scores z; p is room for as many. */
static void choose(struct routing *out, uint32_t t, const float *z, double *p, uint32_t n)
{
    double top = -INFINITY, total = 0;
    for (uint32_t e = 0; e < n; e++) top = fmax(top, (double)z[e]);
    for (uint32_t e = 0; e < n; e++) total += p[e] = exp((double)z[e] - top);
    for (uint32_t e = 0; e < n; e++) p[e] /= total;
    int32_t *ids = (int32_t *)out->ids.mem + (size_t)t * out->ids.cols;
    take_best(z, p, n, ids, row_f32(&out->weights, t), out->ids.cols);
}

static void route(struct run *r, struct routing *out, const struct tensor *scores)
{
    struct cpu *c = r->be->ctx;
    double *p = need(r, &c->hidden, scores->cols * sizeof *p);
    for (uint32_t t = 0; p && t < scores->rows; t++)
        choose(out, t, row_f32(scores, t), p, scores->cols);
}

/* h = gate_e x then up_e x, whichever way the file stores them. */
static void gate_and_up(struct run *r, float *h, const float *x, const struct experts *e,
                        uint64_t expert, uint32_t n_ff, uint32_t slot)
{
    if (weight_exists(e->gate_up)) {
        adapted_matvec(r, h, x, e->gate_up, expert, slot);
    } else {
        adapted_matvec(r, h, x, e->gate, expert, slot);
        adapted_matvec(r, h + n_ff, x, e->up, expert, slot);
    }
}

static void experts(struct run *r, struct tensor *y, const struct tensor *x,
                    const struct routing *routing, const struct experts *e)
{
    struct cpu *c = r->be->ctx;
    uint32_t n_ff = e->down->cols, n_used = routing->ids.cols;
    float *h = need(r, &c->hidden, (2 * n_ff + y->cols) * sizeof *h);
    if (!h) return;
    float *one = h + 2 * n_ff;
    for (uint32_t t = 0; t < x->rows; t++) {
        const int32_t *ids = (const int32_t *)routing->ids.mem + (size_t)t * n_used;
        float *out = row_f32(y, t);
        memset(out, 0, y->cols * sizeof *out);
        for (uint32_t j = 0; j < n_used; j++) {
            uint64_t expert = (uint64_t)ids[j];
            gate_and_up(r, h, row_f32(x, t), e, expert, n_ff, t * n_used + j);
            for (uint32_t i = 0; i < n_ff; i++) h[i] = gelu_tanh(h[i]) * h[n_ff + i];
            adapted_matvec(r, one, h, e->down, expert, t * n_used + j);
            float weight = row_f32(&routing->weights, t)[j];
            if (weight_exists(e->scale)) weight *= vec(e->scale)[expert];
            for (uint32_t i = 0; i < y->cols; i++) out[i] += weight * one[i];
        }
    }
}

static void add(struct run *r, struct tensor *x, const struct tensor *b)
{
    (void)r;
    float *out = x->mem;
    const float *in = b->mem;
    for (uint64_t i = 0; i < (uint64_t)x->rows * x->cols; i++) out[i] += in[i];
}

static void copy_rows(struct run *r, struct tensor *y, const struct tensor *x, uint32_t first)
{
    (void)r;
    memcpy(y->mem, row_f32(x, first), (size_t)y->rows * y->cols * sizeof(float));
}

/* ---- open and close ---- */

static const struct backend reference = {
    .name = "cpu-reference",
    .close = cpu_close,
    .alloc = cpu_alloc,
    .free = cpu_free,
    .view = view,
    .write = cpu_write,
    .read = cpu_read,
    .load = cpu_load,
    .unload = cpu_unload,
    .embed = embed,
    .rms_norm = rms_norm,
    .linear = linear,
    .linear_z = linear_z,
    .rope_table = rope_table,
    .head_norm = head_norm,
    .rope = rope,
    .kv_write = kv_write,
    .attention = attention,
    .gelu_mul = gelu_mul,
    .experts = experts,
    .add = add,
    .scale = scale,
    .times = times,
    .softcap = softcap,
    .route = route,
    .copy_rows = copy_rows,
    .bwd = &cpu_backward,
};

static void free_cpu(struct cpu *c)
{
    if (!c) return;
    pool_close(c->pool);
    for (unsigned i = 0; c->workers && i < c->n_workers; i++)
        for (int k = 0; k < N_SCRATCH; k++) mem_free(c->workers[i].scratch[k].p);
    mem_free(c->workers);
    struct scratch *shared[] = { &c->lora,       &c->dropped, &c->gathered, &c->hidden,
                                 &c->expert_out, &c->order,   &c->sums,     &c->prepared };
    for (size_t i = 0; i < sizeof shared / sizeof *shared; i++) mem_free(shared[i]->p);
    mem_free(c);
}

enum bz_status cpu_open(struct backend *out, bool fast, unsigned n_threads, struct bz_err *err)
{
    struct cpu *c = mem_alloc(1, sizeof *c);
    if (!c) return fail_memory(err, sizeof *c);
    c->n_workers = 1;
    if (fast && pool_open(&c->pool, n_threads)) c->n_workers = pool_size(c->pool);
    bool no_pool = fast && !c->pool;
    c->workers = no_pool ? NULL : mem_alloc(c->n_workers, sizeof *c->workers);
    if (!c->workers) {
        free_cpu(c);
        return fail_memory(err, sizeof *c->workers);
    }
    *out = reference;
    out->ctx = c;
    if (fast) cpu_use_fast(out);
    return BZ_OK;
}

void cpu_close(struct backend *be)
{
    free_cpu(be->ctx);
    *be = (struct backend) { 0 };
}
