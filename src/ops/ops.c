/* ops.c - shape checks and the sticky error, once for all backends.
 *
 * Shapes are settled when a model is loaded, so a mismatch here is a bug in the model code: an
 * assert. What can fail at run time (a read of the source) is reported by the backend with
 * run_fail.
 */
#include "ops/ops.h"

#include <assert.h>
#include <stdarg.h>
#include <stdio.h>

void run_fail(struct run *r, enum bz_status st, const char *fmt, ...)
{
    if (r->status) return;
    r->status = st;
    va_list ap;
    va_start(ap, fmt);
    vsnprintf(r->err.text, sizeof r->err.text, fmt, ap);
    va_end(ap);
}

bool tensor_alloc(const struct backend *be, struct tensor *t, uint32_t cap, uint32_t cols)
{
    *t = (struct tensor) { .cols = cols, .size = (uint64_t)cap * cols };
    return be->alloc(be->ctx, t);
}

bool tensor_alloc_half(const struct backend *be, struct tensor *t, uint32_t cap, uint32_t cols)
{
    *t = (struct tensor) { .cols = cols, .size = (uint64_t)cap * cols, .half = true };
    return be->alloc(be->ctx, t);
}

void tensor_free(const struct backend *be, struct tensor *t)
{
    if (t->mem) be->free(be->ctx, t);
    *t = (struct tensor) { 0 };
}

/* y takes x's row count. */
static void follow(struct tensor *y, const struct tensor *x)
{
    assert(x->rows <= tensor_cap(y) && y->mem != x->mem);
    y->rows = x->rows;
}

/* Is there anything to do? */
static bool idle(const struct run *r, const struct tensor *t)
{
    return r->status != BZ_OK || t->rows == 0;
}

void op_write(struct run *r, struct tensor *t, uint32_t row, const void *src, uint32_t n_rows)
{
    assert(row + n_rows <= tensor_cap(t));
    if (r->status == BZ_OK && n_rows) r->be->write(r, t, row, src, n_rows);
}

void op_read(struct run *r, const struct tensor *t, uint32_t row, void *dst, uint32_t n_rows)
{
    assert(row + n_rows <= tensor_cap(t));
    if (r->status == BZ_OK && n_rows) r->be->read(r, t, row, dst, n_rows);
}

void op_embed(struct run *r, struct tensor *y, const struct weight *table, const struct tensor *ids,
              float scale)
{
    follow(y, ids);
    assert(table->cols == y->cols && ids->cols == 1);
    if (!idle(r, y)) r->be->embed(r, y, table, ids, scale);
}

void op_rms_norm(struct run *r, struct tensor *y, const struct tensor *x, const struct weight *w,
                 float eps)
{
    follow(y, x);
    assert(x->cols == y->cols && (!weight_exists(w) || w->cols == x->cols));
    if (!idle(r, y)) r->be->rms_norm(r, y, x, w, eps);
}

void op_check_linear(struct tensor *y, const struct tensor *x, const struct weight *w)
{
    (void)w; /* without asserts */
    follow(y, x);
    assert(weight_exists(w) && w->cols == x->cols && w->rows == y->cols && w->n_mat == 1);
}

void op_linear(struct run *r, struct tensor *y, const struct tensor *x, const struct weight *w)
{
    op_check_linear(y, x, w);
    if (!idle(r, y)) r->be->linear(r, y, x, w);
}

void op_linear_z(struct run *r, struct tensor *y, struct tensor *z, const struct tensor *x,
                 const struct weight *w)
{
    op_check_linear(y, x, w);
    follow(z, x);
    assert(z->cols == lora_width(w));
    if (!idle(r, y)) r->be->linear_z(r, y, z, x, w);
}

void op_linear_gelu_mul(struct run *r, struct tensor *y, const struct tensor *x,
                        const struct weight *w, const struct tensor *b, uint32_t col)
{
    op_check_linear(y, x, w);
    assert(b->rows == x->rows && col + y->cols <= b->cols && b->mem != y->mem);
    if (!idle(r, y)) r->be->linear_gelu_mul(r, y, x, w, b, col);
}

void op_gate_up(struct run *r, struct tensor *y, struct tensor *up, const struct tensor *x,
                const struct weight *gate_w, const struct weight *up_w)
{
    op_check_linear(y, x, gate_w);
    op_check_linear(up, x, up_w);
    assert(y->cols == up->cols && y->mem != up->mem);
    if (!idle(r, y)) r->be->gate_up(r, y, up, x, gate_w, up_w);
}

void op_rope_table(struct run *r, struct tensor *table, const struct rope *rope, uint32_t pos)
{
    assert(table->cols == 2 * rope->n_pair && table->rows <= tensor_cap(table));
    if (!idle(r, table)) r->be->rope_table(r, table, rope, pos);
}

void op_head_norm_rope(struct run *r, struct tensor *x, const struct weight *w,
                       const struct tensor *table, uint32_t n_head, float eps)
{
    assert(n_head && x->cols % n_head == 0);
    assert(!weight_exists(w) || w->cols == x->cols / n_head);
    assert(!table || (table->rows >= x->rows && table->cols <= x->cols / n_head));
    if (!idle(r, x)) r->be->head_norm_rope(r, x, w, table, n_head, eps);
}

void op_rope(struct run *r, struct tensor *x, const struct tensor *table, uint32_t n_head)
{
    assert(n_head && x->cols % n_head == 0);
    assert(table->rows >= x->rows && table->cols <= x->cols / n_head);
    if (!idle(r, x)) r->be->rope(r, x, table, n_head);
}

void op_kv_write(struct run *r, struct kv *kv, const struct tensor *k, const struct tensor *v,
                 uint32_t pos)
{
    assert(k->cols == kv->k.cols && v->cols == kv->v.cols && k->rows == v->rows);
    assert(k->rows <= kv->k.rows && kv->k.half == kv->v.half);
    assert(!kv->k.half || k->cols % 8 == 0);
    if (!idle(r, k)) r->be->kv_write(r, kv, k, v, pos);
}

static void check_new_keys(const struct kv *kv, const struct heads *h)
{
    const struct tensor *k = h->k;
    if (h->v_from_k) h->v->rows = k->rows;
    assert(k->cols == kv->k.cols && h->v->cols == kv->v.cols && k->rows == h->v->rows);
    assert(k->rows <= kv->k.rows && kv->k.half == kv->v.half && (!kv->k.half || k->cols % 8 == 0));
    assert(!h->q || (h->q->rows == k->rows && h->q->cols == h->n_head * kv->head_dim));
    assert(!h->q || h->q_norm->cols == kv->head_dim);
    assert(h->k_norm->cols == kv->head_dim && h->table->rows >= k->rows);
    (void)kv;
}

void op_heads_write(struct run *r, struct kv *kv, const struct heads *h, uint32_t pos, float eps)
{
    check_new_keys(kv, h);
    if (!idle(r, h->k)) r->be->heads_write(r, kv, h, pos, eps);
}

/* Every position that a row of q sees still has its own slot. */
static void check_seen(const struct tensor *q, const struct kv *kv, uint32_t n_head,
                       uint32_t window, uint32_t pos)
{
    assert(n_head % kv->n_kv_head == 0 && q->cols == n_head * kv->head_dim);
    uint32_t span = window && window < pos ? window + q->rows - 1 : pos + q->rows;
    assert(kv->k.rows >= span || kv->k.rows >= pos + q->rows);
    (void)span, (void)kv, (void)n_head;
}

void op_attention(struct run *r, struct tensor *y, const struct tensor *q, const struct kv *kv,
                  uint32_t n_head, uint32_t window, uint32_t pos)
{
    follow(y, q);
    assert(y->cols == q->cols);
    check_seen(q, kv, n_head, window, pos);
    if (!idle(r, y)) r->be->attention(r, y, q, kv, n_head, window, pos);
}

static void check_attend(struct tensor *y, const struct kv *kv, const struct heads *h,
                         uint32_t window, uint32_t pos)
{
    follow(y, h->q);
    assert(y->cols == h->q->cols && !h->k == !h->v);
    check_seen(h->q, kv, h->n_head, window, pos);
    if (h->k) check_new_keys(kv, h);
}

void op_attend(struct run *r, struct tensor *y, struct kv *kv, const struct heads *h,
               uint32_t window, uint32_t pos, float eps)
{
    check_attend(y, kv, h, window, pos);
    if (!idle(r, y)) r->be->attend(r, y, kv, h, window, pos, eps);
}

void op_attend_linear(struct run *r, struct tensor *y, struct tensor *o, struct kv *kv,
                      const struct heads *h, uint32_t window, uint32_t pos, float eps,
                      const struct weight *w)
{
    if (!r->be->attend_linear) {
        op_attend(r, o, kv, h, window, pos, eps);
        op_linear(r, y, o, w);
        return;
    }
    check_attend(o, kv, h, window, pos);
    op_check_linear(y, o, w);
    if (!idle(r, y)) r->be->attend_linear(r, y, o, kv, h, window, pos, eps, w);
}

void op_add_norm(struct run *r, struct tensor *x, const struct tensor *branch,
                 const struct weight *w, float eps)
{
    assert(x->rows == branch->rows && x->cols == branch->cols && w->cols == x->cols);
    if (!idle(r, x)) r->be->add_norm(r, x, branch, w, eps);
}

void op_norm_sum(struct run *r, struct tensor *y, const struct tensor *a, const struct weight *a_w,
                 const struct tensor *b, const struct weight *b_w, float eps)
{
    follow(y, a);
    assert(a->rows == b->rows && a->cols == b->cols && y->cols == a->cols);
    assert(a_w->cols == a->cols && b_w->cols == a->cols && y->mem != a->mem && y->mem != b->mem);
    if (!idle(r, y)) r->be->norm_sum(r, y, a, a_w, b, b_w, eps);
}

/* Returns what the block will read. */
static const struct tensor *check_join(const struct join *j)
{
    const struct tensor *x = j->x, *b = j->branch;
    bool normed = weight_exists(j->next_w);
    follow(j->to, x);
    if (normed) follow(j->norm, x);
    assert(j->to->cols == x->cols && j->to->mem != x->mem);
    assert(!b || (b->rows == x->rows && b->cols == x->cols && j->w->cols == x->cols));
    assert(!j->other || (b && j->other->rows == x->rows && j->other->cols == x->cols));
    assert(!normed || (j->norm->cols == x->cols && j->next_w->cols == x->cols));
    (void)b;
    return join_result(j);
}

struct join op_join_sum(struct run *r, const struct join *j)
{
    struct join one = *j;
    if (!j->other) return one;
    op_norm_sum(r, j->sum, j->other, j->other_w, j->branch, j->branch_w, j->eps);
    one.branch = j->sum;
    one.other = NULL;
    return one;
}

void op_join(struct run *r, const struct join *j)
{
    check_join(j);
    struct join one = op_join_sum(r, j);
    if (!idle(r, j->x)) r->be->join(r, &one);
}

void op_join_linears(struct run *r, const struct join *j, struct tensor *const *y,
                     const struct weight *const *w, uint32_t n)
{
    const struct tensor *x = check_join(j);
    assert(n >= 1 && n <= JOIN_LINEARS);
    for (uint32_t i = 0; i < n; i++) op_check_linear(y[i], x, w[i]);
    if (!idle(r, x)) r->be->join_linears(r, j, y, w, n);
}

void op_join_linear_gelu_mul(struct run *r, const struct join *j, struct tensor *y,
                             const struct weight *w, const struct tensor *b, uint32_t col)
{
    const struct tensor *x = check_join(j);
    op_check_linear(y, x, w);
    assert(b->rows == x->rows && col + y->cols <= b->cols && b->mem != y->mem);
    struct join one = op_join_sum(r, j);
    if (!idle(r, x)) r->be->join_linear_gelu_mul(r, &one, y, w, b, col);
}

void op_join_gate_up(struct run *r, const struct join *j, struct tensor *y, struct tensor *up,
                     const struct weight *gate_w, const struct weight *up_w)
{
    const struct tensor *x = check_join(j);
    op_check_linear(y, x, gate_w);
    op_check_linear(up, x, up_w);
    assert(y->cols == up->cols && y->mem != up->mem);
    struct join one = op_join_sum(r, j);
    if (!idle(r, x)) r->be->join_gate_up(r, &one, y, up, gate_w, up_w);
}

void op_gelu_mul(struct run *r, struct tensor *x, const struct tensor *b, uint32_t col)
{
    assert(x->rows == b->rows && col + x->cols <= b->cols);
    if (!idle(r, x)) r->be->gelu_mul(r, x, b, col);
}

/* What op_router asks of its arguments. */
static void check_router(struct routing *out, struct tensor *norm, const struct tensor *x,
                         const struct router *by)
{
    (void)by; /* without asserts */
    follow(norm, x);
    follow(&out->ids, x);
    follow(&out->weights, x);
    assert(out->ids.cols == out->weights.cols && out->ids.cols <= by->w->rows);
    assert(by->w->cols == x->cols && by->scale->cols == x->cols);
    assert(norm->cols == x->cols && norm->mem != x->mem && by->norm->cols == x->cols);
}

void op_router(struct run *r, struct routing *out, struct tensor *norm, const struct tensor *x,
               const struct router *by, float eps)
{
    check_router(out, norm, x, by);
    if (!idle(r, x)) r->be->router(r, out, norm, x, by, eps);
}

void op_linear_router(struct run *r, struct tensor *y, const struct tensor *h,
                      const struct weight *w, struct routing *out, struct tensor *norm,
                      const struct tensor *x, const struct router *by, float eps)
{
    if (!r->be->linear_router) {
        op_linear(r, y, h, w);
        op_router(r, out, norm, x, by, eps);
        return;
    }
    op_check_linear(y, h, w);
    check_router(out, norm, x, by);
    assert(h->rows == x->rows && y->mem != x->mem && norm->mem != h->mem);
    if (!idle(r, x)) r->be->linear_router(r, y, h, w, out, norm, x, by, eps);
}

static void check_experts(struct tensor *y, const struct tensor *x, const struct routing *routing,
                          const struct experts *e)
{
    (void)routing, (void)e; /* without asserts */
    follow(y, x);
    assert(routing->ids.rows == x->rows && e->down->rows == y->cols);
    assert(weight_exists(e->gate_up) || (weight_exists(e->gate) && weight_exists(e->up)));
}

void op_experts(struct run *r, struct tensor *y, const struct tensor *x,
                const struct routing *routing, const struct experts *e)
{
    check_experts(y, x, routing, e);
    if (!idle(r, y)) r->be->experts(r, y, x, routing, e);
}

void op_router_experts(struct run *r, struct tensor *y, struct routing *out, struct tensor *norm,
                       const struct tensor *x, const struct router *by, float eps,
                       const struct experts *e, const struct product *beside)
{
    if (!r->be->router_experts) {
        if (beside) op_linear_router(r, beside->y, beside->h, beside->w, out, norm, x, by, eps);
        else op_router(r, out, norm, x, by, eps);
        op_experts(r, y, norm, out, e);
        return;
    }
    if (beside) op_check_linear(beside->y, beside->h, beside->w);
    check_router(out, norm, x, by);
    check_experts(y, norm, out, e);
    if (!idle(r, x)) r->be->router_experts(r, y, out, norm, x, by, eps, e, beside);
}

void op_add(struct run *r, struct tensor *x, const struct tensor *b)
{
    assert(x->rows == b->rows && x->cols == b->cols);
    if (!idle(r, x)) r->be->add(r, x, b);
}

void op_scale(struct run *r, struct tensor *x, const struct weight *w)
{
    if (weight_exists(w) && !idle(r, x)) r->be->scale(r, x, w);
}

void op_times(struct run *r, struct tensor *x, float c)
{
    if (!idle(r, x)) r->be->times(r, x, c);
}

void op_softcap(struct run *r, struct tensor *x, float cap)
{
    assert(cap > 0);
    if (!idle(r, x)) r->be->softcap(r, x, cap);
}

void op_route(struct run *r, struct routing *out, const struct tensor *scores)
{
    follow(&out->ids, scores);
    follow(&out->weights, scores);
    assert(out->ids.cols == out->weights.cols && out->ids.cols <= scores->cols);
    if (!idle(r, scores)) r->be->route(r, out, scores);
}

void op_copy_rows(struct run *r, struct tensor *y, const struct tensor *x, uint32_t first)
{
    assert(y->cols == x->cols && y->rows <= tensor_cap(y) && first + y->rows <= x->rows);
    if (!idle(r, y)) r->be->copy_rows(r, y, x, first);
}

void op_tap(struct run *r, const char *name, int layer, const struct tensor *x)
{
    if (r->tap && r->status == BZ_OK) r->tap(r->tap_ctx, name, layer, x);
}
