/* ops.c - shape checks and the sticky error, once for all backends.
 *
 * Shapes are known once a model is loaded, so a mismatch here is a bug in the model code: an
 * assert. What can fail at run time (a read of the source) is reported by the backend with
 * run_fail.
 */
#include "ops/ops.h"

#include <assert.h>
#include <stdarg.h>
#include <stdio.h>

bool run_goes_on(struct run *r)
{
    if (r->status == BZ_OK && r->go_on && !r->go_on(r->go_on_ctx))
        run_fail(r, BZ_ERR_CANCELLED, "stopped on request");
    return r->status == BZ_OK;
}

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

void op_rope_table(struct run *r, struct tensor *table, const struct rope *rope, uint32_t pos)
{
    assert(table->cols == 2 * rope->n_pair && table->rows <= tensor_cap(table));
    if (!idle(r, table)) r->be->rope_table(r, table, rope, pos);
}

void op_head_norm(struct run *r, struct tensor *x, const struct weight *w, uint32_t n_head,
                  float eps)
{
    assert(n_head && x->cols % n_head == 0);
    assert(!weight_exists(w) || w->cols == x->cols / n_head);
    if (!idle(r, x)) r->be->head_norm(r, x, w, n_head, eps);
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

void op_gelu_mul(struct run *r, struct tensor *x, const struct tensor *b, uint32_t col)
{
    assert(x->rows == b->rows && col + x->cols <= b->cols);
    if (!idle(r, x)) r->be->gelu_mul(r, x, b, col);
}

void op_experts(struct run *r, struct tensor *y, const struct tensor *x,
                const struct routing *routing, const struct experts *e)
{
    follow(y, x);
    assert(routing->ids.rows == x->rows && e->down->rows == y->cols);
    assert(weight_exists(e->gate_up) || (weight_exists(e->gate) && weight_exists(e->up)));
    if (!idle(r, y)) r->be->experts(r, y, x, routing, e);
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
