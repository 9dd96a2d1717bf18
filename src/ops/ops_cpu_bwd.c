/* ops_cpu_bwd.c - the gradients on the CPU: the obvious loops, sums in double.
 *
 * Work is divided into runs of rows (positions), of kv heads, or of an adapter's rows. These pieces
 * write to different places, so the numbers do not depend on how many threads there are. Both CPU
 * backends use these loops.
 */
#include <assert.h>
#include <math.h>
#include <string.h>

#include "base/simd.h"
#include "ops/ops_cpu_bwd.h"

/* ---- the loops in which the time goes ---- */

enum {
    LANES = 8
}; /* sums that a dot product keeps apart, so that they do not wait for one another */

BZ_CLONES static double dot_lanes(const float *a, const float *b, uint32_t n)
{
    double lane[LANES] = { 0 }, sum = 0;
    uint32_t i = 0;
    for (; i + LANES <= n; i += LANES)
        for (uint32_t k = 0; k < LANES; k++) lane[k] += (double)a[i + k] * (double)b[i + k];
    for (; i < n; i++) sum += (double)a[i] * (double)b[i];
    for (uint32_t k = 0; k < LANES; k++) sum += lane[k];
    return sum;
}

/* sum += g x */
BZ_CLONES static void add_times(double *restrict sum, const float *restrict x, double g, uint32_t n)
{
    for (uint32_t i = 0; i < n; i++) sum[i] += g * (double)x[i];
}

/* ---- sharing the work ---- */

typedef void (*piece_fn)(void *ctx, uint32_t piece, uint32_t worker);

static void each_piece(struct run *r, piece_fn fn, void *ctx, uint32_t n)
{
    struct cpu *c = r->be->ctx;
    pool_run(c->pool, fn, ctx, n);
    cpu_collect(r);
}

/* Rows [first, last) of piece i, when n rows are dealt to all workers. */
static void deal(const struct cpu *c, uint32_t n, uint32_t i, uint32_t *first, uint32_t *last)
{
    *first = (uint32_t)((uint64_t)n * i / c->n_workers);
    *last = (uint32_t)((uint64_t)n * (i + 1) / c->n_workers);
}

/* Row `row` of a weight as floats, or NULL with the worker failed. */
const float *cpu_decoded_row(struct cpu_worker *worker, const struct weight *w, uint64_t row)
{
    float *out = scratch_need(worker, &worker->scratch[SCRATCH_DECODED], w->cols * sizeof *out);
    const void *bytes = out ? weight_bytes(worker, w, row, 1) : NULL;
    if (!bytes) return NULL;
    w->fmt->decode(bytes, out, w->cols);
    return out;
}

/* Memory shared by the pieces of one op; NULL with the run failed. */
void *cpu_shared_need(struct run *r, struct scratch *s, size_t n)
{
    struct cpu *c = r->be->ctx;
    void *p = scratch_need(c->workers, s, n);
    if (!p) cpu_collect(r);
    return p;
}

static void zero(struct run *r, struct tensor *t)
{
    (void)r;
    memset(t->mem, 0, (size_t)t->rows * t->cols * sizeof(float));
}

/* ---- norms ---- */

/* dx[i] += (g - n mean(g n)) / rms with g = dy w, n = x / rms. w may be NULL. */
void norm_bwd(float *dx, const float *dy, const float *x, const float *w, uint32_t n, float eps)
{
    double inverse = 1.0 / sqrt(dot_f64(x, x, n) / n + (double)eps), mean = 0;
    for (uint32_t i = 0; i < n; i++)
        mean += (double)dy[i] * (w ? (double)w[i] : 1.0) * (double)x[i] * inverse;
    mean /= n;
    for (uint32_t i = 0; i < n; i++) {
        double g = (double)dy[i] * (w ? (double)w[i] : 1.0);
        dx[i] += (float)((g - (double)x[i] * inverse * mean) * inverse);
    }
}

static void rms_norm_bwd(struct run *r, struct tensor *dx, bool fresh, const struct tensor *dy,
                         const struct tensor *x, const struct weight *w, float eps)
{
    if (fresh) zero(r, dx);
    for (uint32_t t = 0; t < x->rows; t++)
        norm_bwd(row_f32(dx, t), row_f32(dy, t), row_f32(x, t), vec(w), x->cols, eps);
}

static void head_norm_bwd(struct run *r, struct tensor *d, const struct tensor *x,
                          const struct weight *w, uint32_t n_head, float eps)
{
    struct cpu *c = r->be->ctx;
    uint32_t head_dim = x->cols / n_head;
    float *dy = cpu_shared_need(r, &c->hidden, head_dim * sizeof *dy);
    for (uint32_t t = 0; dy && t < x->rows; t++)
        for (uint32_t h = 0; h < n_head; h++) {
            float *g = row_f32(d, t) + (size_t)h * head_dim;
            memcpy(dy, g, head_dim * sizeof *dy);
            memset(g, 0, head_dim * sizeof *g);
            norm_bwd(g, dy, row_f32(x, t) + (size_t)h * head_dim, vec(w), head_dim, eps);
        }
}

static void rope_bwd(struct run *r, struct tensor *d, const struct tensor *table, uint32_t n_head)
{
    (void)r;
    uint32_t head_dim = d->cols / n_head, half = head_dim / 2, n_pair = table->cols / 2;
    for (uint32_t t = 0; t < d->rows; t++)
        for (uint32_t h = 0; h < n_head; h++) {
            float *g = row_f32(d, t) + (size_t)h * head_dim;
            const float *cosine = row_f32(table, t), *sine = cosine + n_pair;
            for (uint32_t i = 0; i < n_pair; i++) {
                float a = g[i], b = g[i + half];
                g[i] = a * cosine[i] + b * sine[i];
                g[i + half] = b * cosine[i] - a * sine[i];
            }
        }
}

static void rows_bwd(struct run *r, struct tensor *dx, const struct tensor *dy, uint32_t first)
{
    (void)r;
    float *out = row_f32(dx, first);
    const float *in = dy->mem;
    for (size_t i = 0; i < (size_t)dy->rows * dy->cols; i++) out[i] += in[i];
}

/* ---- linear ---- */

void keep_z(struct tensor *to, const struct weight *w, const struct lora *l, uint32_t row,
            const float *z)
{
    if (!to) return;
    float *out = row_f32(to, row);
    for (const struct lora *before = w->lora; before != l; before = before->next)
        out += lora_rank(before);
    for (uint32_t k = 0; k < lora_rank(l); k++) out[k] = k < l->a.rows ? z[k] : 0;
}

const float *dropped_rows(struct cpu *c, const struct lora *l, const float *x, uint32_t n,
                          uint32_t cols, const uint32_t *slots, uint32_t first)
{
    if (!lora_drops(l)) return x;
    float *out = scratch_need(c->workers, &c->dropped, (size_t)n * cols * sizeof *out);
    for (uint32_t t = 0; out && t < n; t++) {
        uint32_t hash = dropout_row(l, slots ? slots[t] : first + t);
        for (uint32_t i = 0; i < cols; i++)
            out[(size_t)t * cols + i] = x[(size_t)t * cols + i] * dropout_factor(l, hash, i);
    }
    return out;
}

/* n rows of one linear layer (or of one expert), packed. */
struct linear_rows {
    struct cpu *cpu;
    const struct weight *w;
    const struct lora *lora; /* the adapter that is worked on */
    uint64_t mat;
    float *dx; /* n x w->cols, or NULL */
    const float *dy;
    const float *seen;         /* x as the adapter sees it */
    const struct tensor *kept; /* A x of all adapters, or NULL */
    uint32_t kept_at;          /* the columns of this one */
    const uint32_t *slots;     /* numbers of the rows, or NULL: from 0 on */
    double *sum;               /* n x w->cols */
    double *z, *u;             /* n x rank: A x, and scale * B' dy */
    uint32_t n;
};

/* dx += W' dy. */
static void transposed_piece(void *ctx, uint32_t piece, uint32_t worker)
{
    const struct linear_rows *l = ctx;
    uint32_t first, last, cols = l->w->cols, rows = l->w->rows;
    deal(l->cpu, l->n, piece, &first, &last);
    if (first == last) return;
    memset(l->sum + (size_t)first * cols, 0, (size_t)(last - first) * cols * sizeof *l->sum);
    for (uint32_t i = 0; i < rows; i++) {
        const float *row = cpu_decoded_row(&l->cpu->workers[worker], l->w, l->mat * rows + i);
        if (!row) return;
        for (uint32_t t = first; t < last; t++) {
            double g = (double)l->dy[(size_t)t * rows + i];
            add_times(l->sum + (size_t)t * cols, row, g, cols);
        }
    }
    for (size_t k = (size_t)first * cols; k < (size_t)last * cols; k++)
        l->dx[k] += (float)l->sum[k];
}

/* Row t of dx += u a, where the adapter saw something. */
static void add_row(const struct linear_rows *l, uint32_t t, const float *a, double u)
{
    uint32_t cols = l->w->cols;
    float *dx = l->dx + (size_t)t * cols;
    if (!lora_drops(l->lora)) {
        for (uint32_t j = 0; j < cols; j++) dx[j] += (float)(u * (double)a[j]);
        return;
    }
    uint32_t hash = dropout_row(l->lora, l->slots ? l->slots[t] : t);
    for (uint32_t j = 0; j < cols; j++)
        dx[j] += (float)(u * (double)a[j]) * dropout_factor(l->lora, hash, j);
}

/* z = A x (if somebody reads it), u = scale B' dy, dx += A' u. */
static void adapter_piece(void *ctx, uint32_t piece, uint32_t worker)
{
    const struct linear_rows *l = ctx;
    struct cpu_worker *wk = &l->cpu->workers[worker];
    uint32_t first, last, cols = l->w->cols, rows = l->w->rows, rank = l->lora->a.rows;
    deal(l->cpu, l->n, piece, &first, &last);
    if (first == last) return;
    memset(l->u + (size_t)first * rank, 0, (size_t)(last - first) * rank * sizeof *l->u);
    for (uint32_t o = 0; o < rows; o++) {
        const float *b = cpu_decoded_row(wk, &l->lora->b, l->mat * rows + o);
        if (!b) return;
        for (uint32_t t = first; t < last; t++) {
            double g = (double)l->lora->scale * (double)l->dy[(size_t)t * rows + o];
            for (uint32_t k = 0; k < rank; k++) l->u[(size_t)t * rank + k] += g * (double)b[k];
        }
    }
    for (uint32_t k = 0; k < rank; k++) {
        const float *a = cpu_decoded_row(wk, &l->lora->a, l->mat * rank + k);
        if (!a) return;
        for (uint32_t t = first; t < last; t++) {
            size_t at = (size_t)t * rank + k;
            if (l->kept) l->z[at] = (double)row_f32(l->kept, t)[l->kept_at + k];
            else if (l->seen) l->z[at] = dot_lanes(a, l->seen + (size_t)t * cols, cols);
            if (l->dx) add_row(l, t, a, l->u[at]);
        }
    }
}

/* dA_k += sum over rows of u_k x. */
static void grad_a_piece(void *ctx, uint32_t k, uint32_t worker)
{
    (void)worker;
    const struct linear_rows *l = ctx;
    uint32_t cols = l->w->cols, rank = l->lora->a.rows;
    float *da = (float *)l->lora->grad->a.mem + (l->mat * rank + k) * cols;
    for (uint32_t t = 0; t < l->n; t++) {
        double u = l->u[(size_t)t * rank + k];
        const float *x = l->seen + (size_t)t * cols;
        for (uint32_t j = 0; j < cols; j++) da[j] += (float)(u * (double)x[j]);
    }
}

/* dB_o += sum over rows of scale dy_o z, for a share of the outputs o. */
static void grad_b_piece(void *ctx, uint32_t piece, uint32_t worker)
{
    (void)worker;
    const struct linear_rows *l = ctx;
    uint32_t first, last, rows = l->w->rows, rank = l->lora->a.rows;
    deal(l->cpu, rows, piece, &first, &last);
    for (uint32_t o = first; o < last; o++) {
        float *db = (float *)l->lora->grad->b.mem + (l->mat * rows + o) * rank;
        for (uint32_t t = 0; t < l->n; t++) {
            double g = (double)l->lora->scale * (double)l->dy[(size_t)t * rows + o];
            for (uint32_t k = 0; k < rank; k++) db[k] += (float)(g * l->z[(size_t)t * rank + k]);
        }
    }
}

/* The gradients of n packed rows through matrix `mat` of w and its adapters. */
void linear_rows_bwd(struct run *r, float *dx, const float *dy, const float *x,
                     const struct tensor *z, uint32_t n, const struct weight *w, uint64_t mat,
                     const uint32_t *slots)
{
    struct cpu *c = r->be->ctx;
    struct linear_rows l = { .cpu = c, .w = w, .mat = mat, .dx = dx, .dy = dy, .n = n };
    l.slots = slots;
    l.kept = z;
    if (dx) {
        l.sum = cpu_shared_need(r, &c->sums, (size_t)n * w->cols * sizeof *l.sum);
        if (!l.sum) return;
        each_piece(r, transposed_piece, &l, c->n_workers);
    }
    for (l.lora = w->lora; l.lora && r->status == BZ_OK; l.lora = l.lora->next) {
        size_t n_small = (size_t)n * l.lora->a.rows;
        l.z = cpu_shared_need(r, &c->lora, 2 * n_small * sizeof *l.z);
        if (!l.z) return;
        l.seen = l.lora->grad ? dropped_rows(c, l.lora, x, n, w->cols, slots, 0) : NULL;
        if (l.lora->grad && !l.seen) return;
        l.u = l.z + n_small;
        each_piece(r, adapter_piece, &l, c->n_workers);
        l.kept_at += lora_rank(l.lora);
        if (!l.lora->grad || r->status) continue;
        each_piece(r, grad_a_piece, &l, l.lora->a.rows);
        each_piece(r, grad_b_piece, &l, c->n_workers);
    }
}

static void linear_bwd(struct run *r, struct tensor *dx, bool fresh, const struct tensor *dy,
                       const struct tensor *x, const struct tensor *z, const struct weight *w)
{
    if (dx && fresh) zero(r, dx);
    linear_rows_bwd(r, dx ? dx->mem : NULL, dy->mem, x ? x->mem : NULL, z, dy->rows, w, 0, NULL);
}

/* ---- attention: a piece is one kv head ---- */

struct attention_bwd {
    struct cpu *cpu;
    struct tensor *dq;
    struct kv *dkv;
    const struct tensor *dy, *q;
    const struct kv *kv;
    uint32_t n_head, window;
};

/* One query head at position t: p and dp have room for every position. */
static void attend_bwd(const struct attention_bwd *a, uint32_t h, uint32_t t, double *p, double *dp)
{
    uint32_t hd = a->kv->head_dim, first = kv_first(a->kv, t, a->window);
    size_t at = (size_t)(h / (a->n_head / a->kv->n_kv_head)) * hd;
    const float *q = row_f32(a->q, t) + (size_t)h * hd, *dy = row_f32(a->dy, t) + (size_t)h * hd;
    float *dq = row_f32(a->dq, t) + (size_t)h * hd;
    double top = -INFINITY, total = 0, both = 0;
    for (uint32_t s = first; s <= t; s++) {
        p[s] = dot_lanes(q, row_f32(&a->kv->k, s) + at, hd);
        top = fmax(top, p[s]);
    }
    for (uint32_t s = first; s <= t; s++) total += p[s] = exp(p[s] - top);
    for (uint32_t s = first; s <= t; s++) {
        p[s] /= total;
        dp[s] = dot_lanes(dy, row_f32(&a->kv->v, s) + at, hd);
        both += p[s] * dp[s];
    }
    for (uint32_t i = 0; i < hd; i++) dq[i] = 0;
    for (uint32_t s = first; s <= t; s++) {
        double ds = p[s] * (dp[s] - both);
        const float *k = row_f32(&a->kv->k, s) + at;
        float *dk = row_f32(&a->dkv->k, s) + at, *dv = row_f32(&a->dkv->v, s) + at;
        for (uint32_t i = 0; i < hd; i++) {
            dq[i] += (float)(ds * (double)k[i]);
            dk[i] += (float)(ds * (double)q[i]);
            dv[i] += (float)(p[s] * (double)dy[i]);
        }
    }
}

static void attention_piece(void *ctx, uint32_t kv_head, uint32_t worker)
{
    const struct attention_bwd *a = ctx;
    struct cpu_worker *wk = &a->cpu->workers[worker];
    uint32_t n = a->q->rows, group = a->n_head / a->kv->n_kv_head;
    double *p = scratch_need(wk, &wk->scratch[SCRATCH_SCORES], 2 * (size_t)n * sizeof *p);
    if (!p) return;
    for (uint32_t h = kv_head * group; h < (kv_head + 1) * group; h++)
        for (uint32_t t = 0; t < n; t++) attend_bwd(a, h, t, p, p + n);
}

static void attention_bwd(struct run *r, struct tensor *dq, struct kv *dkv, const struct tensor *dy,
                          const struct tensor *q, const struct kv *kv, uint32_t n_head,
                          uint32_t window)
{
    struct attention_bwd a = { r->be->ctx, dq, dkv, dy, q, kv, n_head, window };
    each_piece(r, attention_piece, &a, kv->n_kv_head);
}

/* ---- feed-forward ---- */

/* The derivative of gelu_tanh. */
double gelu_slope(double x)
{
    const double c = 0.79788456080286536, k = 0.044715;
    double t = tanh(c * (x + k * x * x * x));
    return 0.5 * (1 + t) + 0.5 * x * (1 - t * t) * c * (1 + 3 * k * x * x);
}

static void gelu_mul_bwd(struct run *r, struct tensor *d, struct tensor *db, const struct tensor *a,
                         const struct tensor *b, uint32_t col)
{
    (void)r;
    for (uint32_t t = 0; t < d->rows; t++) {
        float *g = row_f32(d, t), *out = db ? row_f32(db, t) : NULL;
        const float *gate = row_f32(a, t), *by = row_f32(b, t) + col;
        for (uint32_t i = 0; i < d->cols; i++) {
            if (out) out[i] = g[i] * gelu_tanh(gate[i]);
            g[i] = (float)((double)g[i] * (double)by[i] * gelu_slope((double)gate[i]));
        }
    }
}

/* ---- head and loss ---- */

struct head_loss {
    struct cpu *cpu;
    struct tensor *loss, *dx;
    const struct tensor *x, *targets;
    const struct weight *head;
    float cap, weight;
};

enum { LOSS_ROWS = 8 }; /* rows that share one decoding of the head */

/* From soft-capped logits z of one row to its loss and d loss / d (head x), in place. */
static float loss_row(float *z, uint32_t n, int32_t target, float cap, float weight)
{
    double top = -INFINITY, total = 0;
    for (uint32_t i = 0; i < n; i++) top = fmax(top, (double)z[i]);
    for (uint32_t i = 0; i < n; i++) total += exp((double)z[i] - top);
    double loss = top + log(total) - (double)z[target];
    for (uint32_t i = 0; i < n; i++) {
        double p = exp((double)z[i] - top) / total - ((int32_t)i == target ? 1 : 0);
        double bent = cap > 0 ? (double)z[i] / (double)cap : 0;
        z[i] = (float)((double)weight * p * (1 - bent * bent));
    }
    return (float)loss;
}

/* Rows [first, last), at most LOSS_ROWS, with z for their logits. */
static bool loss_rows(const struct head_loss *h, struct cpu_worker *wk, float *z, double *sum,
                      uint32_t first, uint32_t last)
{
    uint32_t V = h->head->rows, n = h->head->cols;
    const int32_t *targets = h->targets->mem;
    for (uint32_t i = 0; i < V; i++) {
        const float *row = cpu_decoded_row(wk, h->head, i);
        if (!row) return false;
        for (uint32_t t = first; t < last; t++) {
            if (targets[t] < 0) continue;
            float logit = (float)dot_lanes(row, row_f32(h->x, t), n);
            z[(size_t)(t - first) * V + i] = h->cap > 0 ? h->cap * tanhf(logit / h->cap) : logit;
        }
    }
    for (uint32_t t = first; t < last; t++) {
        float *row = z + (size_t)(t - first) * V;
        if (targets[t] >= 0) *row_f32(h->loss, t) = loss_row(row, V, targets[t], h->cap, h->weight);
    }
    memset(sum, 0, (size_t)(last - first) * n * sizeof *sum);
    for (uint32_t i = 0; i < V; i++) {
        const float *row = cpu_decoded_row(wk, h->head, i);
        if (!row) return false;
        for (uint32_t t = first; t < last; t++) {
            if (targets[t] < 0) continue;
            double g = (double)z[(size_t)(t - first) * V + i];
            add_times(sum + (size_t)(t - first) * n, row, g, n);
        }
    }
    for (uint32_t t = first; t < last; t++)
        for (uint32_t j = 0; j < n; j++)
            row_f32(h->dx, t)[j] = (float)sum[(size_t)(t - first) * n + j];
    return true;
}

static void loss_piece(void *ctx, uint32_t piece, uint32_t worker)
{
    const struct head_loss *h = ctx;
    struct cpu_worker *wk = &h->cpu->workers[worker];
    uint32_t V = h->head->rows, n = h->head->cols, first = piece * LOSS_ROWS;
    uint32_t last = first + LOSS_ROWS < h->x->rows ? first + LOSS_ROWS : h->x->rows;
    size_t n_bytes = LOSS_ROWS * ((size_t)n * sizeof(double) + V * sizeof(float));
    double *sum = scratch_need(wk, &wk->scratch[SCRATCH_SCORES], n_bytes);
    if (!sum) return;
    bool trained = false;
    for (uint32_t t = first; t < last; t++) {
        trained |= ((const int32_t *)h->targets->mem)[t] >= 0;
        *row_f32(h->loss, t) = 0;
        memset(row_f32(h->dx, t), 0, n * sizeof(float));
    }
    if (trained) loss_rows(h, wk, (float *)(sum + (size_t)LOSS_ROWS * n), sum, first, last);
}

static void head_loss(struct run *r, struct tensor *loss, struct tensor *dx, const struct tensor *x,
                      const struct weight *head, const struct tensor *targets, float cap,
                      float weight)
{
    struct head_loss h = { r->be->ctx, loss, dx, x, targets, head, cap, weight };
    each_piece(r, loss_piece, &h, (x->rows + LOSS_ROWS - 1) / LOSS_ROWS);
}

/* ---- the optimiser ---- */

static void sum(struct run *r, struct tensor *control, enum control at, const struct tensor *t,
                bool squares)
{
    (void)r;
    double total = 0;
    for (uint32_t i = 0; i < t->rows; i++) {
        const float *row = row_f32(t, i);
        if (squares) total += dot_f64(row, row, t->cols);
        for (uint32_t j = 0; !squares && j < t->cols; j++) total += (double)row[j];
    }
    *row_f32(control, at) += (float)total;
}

static void clip(struct run *r, struct tensor *control, float most)
{
    (void)r;
    float *c = control->mem, length = sqrtf(c[CONTROL_SQUARES]) * c[CONTROL_SHARE];
    bool good = isfinite(c[CONTROL_LOSS]) && isfinite(c[CONTROL_SQUARES]);
    float shrink = most > 0 && length > most ? most / length : 1;
    c[CONTROL_LENGTH] = length;
    c[CONTROL_SCALE] = good ? c[CONTROL_SHARE] * shrink : -1;
}

static void adamw(struct run *r, struct tensor *x, const struct tensor *g, struct tensor *m,
                  struct tensor *v, const struct tensor *control, const struct adamw *o)
{
    (void)r;
    float *px = x->mem, *pm = m->mem, *pv = v->mem;
    const float *pg = g->mem, *c = control->mem;
    if (c[CONTROL_SCALE] < 0) return;
    for (uint64_t i = 0; i < (uint64_t)x->rows * x->cols; i++) {
        float grad = pg[i] * c[CONTROL_SCALE];
        pm[i] = o->beta1 * pm[i] + (1 - o->beta1) * grad;
        pv[i] = o->beta2 * pv[i] + (1 - o->beta2) * grad * grad;
        float way = pm[i] * c[CONTROL_FIX1] / (sqrtf(pv[i] * c[CONTROL_FIX2]) + o->eps);
        px[i] -= c[CONTROL_LR] * (way + o->decay * px[i]);
    }
}

const struct backward_ops cpu_backward = {
    .row_step = 1,
    .zero = zero,
    .rms_norm = rms_norm_bwd,
    .rows = rows_bwd,
    .linear = linear_bwd,
    .head_norm = head_norm_bwd,
    .rope = rope_bwd,
    .drops_experts = true,
    .attention = attention_bwd,
    .gelu_mul = gelu_mul_bwd,
    .experts = cpu_experts_bwd,
    .route = cpu_route_bwd,
    .head_loss = head_loss,
    .sum = sum,
    .clip = clip,
    .adamw = adamw,
};
