/* ops_bwd.c - shape checks of the gradients, once for all backends. */
#include "ops/ops_bwd.h"

#include <assert.h>

/* Only asserts ask. */
__attribute__((unused)) static bool same_shape(const struct tensor *a, const struct tensor *b)
{
    return a->rows == b->rows && a->cols == b->cols;
}

static bool cannot(struct run *r, const struct tensor *t)
{
    if (r->status == BZ_OK && !r->be->bwd)
        run_fail(r, BZ_ERR_UNSUPPORTED, "the backend %s cannot train", r->be->name);
    return r->status != BZ_OK || t->rows == 0;
}

void op_zero(struct run *r, struct tensor *t, uint32_t rows)
{
    assert(rows <= tensor_cap(t));
    t->rows = rows;
    if (!cannot(r, t)) r->be->bwd->zero(r, t);
}

void op_rms_norm_bwd(struct run *r, struct tensor *dx, bool fresh, const struct tensor *dy,
                     const struct tensor *x, const struct weight *w, float eps)
{
    assert(same_shape(dx, dy) && same_shape(dx, x) && dx->mem != dy->mem);
    if (!cannot(r, dx)) r->be->bwd->rms_norm(r, dx, fresh, dy, x, w, eps);
}

void op_rows_bwd(struct run *r, struct tensor *dx, const struct tensor *dy, uint32_t first)
{
    assert(dx->cols == dy->cols && first + dy->rows <= dx->rows);
    if (!cannot(r, dy)) r->be->bwd->rows(r, dx, dy, first);
}

void op_linear_bwd(struct run *r, struct tensor *dx, bool fresh, const struct tensor *dy,
                   const struct tensor *x, const struct tensor *z, const struct weight *w)
{
    assert(dy->cols == w->rows && w->n_mat == 1 && (x || !weight_learns(w)));
    assert(!x || (x->cols == w->cols && x->rows == dy->rows && z->cols == lora_width(w)));
    assert(!dx || (dx->cols == w->cols && dx->rows == dy->rows && dx->mem != dy->mem));
    if (!cannot(r, dy)) r->be->bwd->linear(r, dx, fresh, dy, x, z, w);
}

void op_head_norm_bwd(struct run *r, struct tensor *d, const struct tensor *x,
                      const struct weight *w, uint32_t n_head, float eps)
{
    assert(same_shape(d, x) && x->cols % n_head == 0 && d->mem != x->mem);
    if (!cannot(r, d)) r->be->bwd->head_norm(r, d, x, w, n_head, eps);
}

void op_rope_bwd(struct run *r, struct tensor *d, const struct tensor *table, uint32_t n_head)
{
    assert(d->cols % n_head == 0 && table->rows == d->rows);
    if (!cannot(r, d)) r->be->bwd->rope(r, d, table, n_head);
}

void op_attention_bwd(struct run *r, struct tensor *dq, struct kv *dkv, const struct tensor *dy,
                      const struct tensor *q, const struct kv *kv, uint32_t n_head, uint32_t window)
{
    dq->rows = q->rows;
    assert(same_shape(dq, q) && same_shape(dy, q) && q->cols == n_head * kv->head_dim);
    assert(kv->k.rows >= q->rows && dkv->k.rows >= q->rows && !kv->k.half && !dkv->k.half);
    if (!cannot(r, dq)) r->be->bwd->attention(r, dq, dkv, dy, q, kv, n_head, window);
}

void op_gelu_mul_bwd(struct run *r, struct tensor *d, struct tensor *db, const struct tensor *a,
                     const struct tensor *b, uint32_t col)
{
    assert(same_shape(d, a) && b->rows == a->rows && col + a->cols <= b->cols);
    if (db) db->rows = d->rows;
    assert(!db || same_shape(db, d));
    if (!cannot(r, d)) r->be->bwd->gelu_mul(r, d, db, a, b, col);
}

void op_experts_bwd(struct run *r, struct tensor *dx, bool fresh, struct tensor *dweights,
                    const struct tensor *dy, const struct tensor *x, const struct routing *routing,
                    const struct experts *e)
{
    dweights->rows = x->rows;
    assert(same_shape(dx, x) && x->rows == dy->rows && same_shape(dweights, &routing->weights));
    if (!cannot(r, dx)) r->be->bwd->experts(r, dx, fresh, dweights, dy, x, routing, e);
}

void op_route_bwd(struct run *r, struct tensor *dscores, const struct tensor *dweights,
                  const struct routing *routing)
{
    dscores->rows = dweights->rows;
    assert(same_shape(dweights, &routing->weights) && routing->ids.cols <= dscores->cols);
    if (!cannot(r, dscores)) r->be->bwd->route(r, dscores, dweights, routing);
}

void op_head_loss(struct run *r, struct tensor *loss, struct tensor *dx, const struct tensor *x,
                  const struct weight *head, const struct tensor *targets, float cap, float weight)
{
    loss->rows = dx->rows = x->rows;
    assert(loss->cols == 1 && same_shape(dx, x) && targets->rows == x->rows);
    assert(head->cols == x->cols);
    if (!cannot(r, x)) r->be->bwd->head_loss(r, loss, dx, x, head, targets, cap, weight);
}

void op_sum(struct run *r, struct tensor *control, enum control at, const struct tensor *t)
{
    assert(control->rows == N_CONTROL && control->cols == 1);
    if (!cannot(r, t)) r->be->bwd->sum(r, control, at, t, false);
}

void op_sum_squares(struct run *r, struct tensor *control, enum control at, const struct tensor *t)
{
    assert(control->rows == N_CONTROL && control->cols == 1);
    if (!cannot(r, t)) r->be->bwd->sum(r, control, at, t, true);
}

void op_clip(struct run *r, struct tensor *control, float most)
{
    assert(control->rows == N_CONTROL && control->cols == 1);
    if (!cannot(r, control)) r->be->bwd->clip(r, control, most);
}

void op_adamw(struct run *r, struct tensor *x, const struct tensor *g, struct tensor *m,
              struct tensor *v, const struct tensor *control, const struct adamw *o)
{
    assert(same_shape(x, g) && same_shape(x, m) && same_shape(x, v));
    assert(control->rows == N_CONTROL && control->cols == 1);
    if (!cannot(r, x)) r->be->bwd->adamw(r, x, g, m, v, control, o);
}

void op_publish(struct run *r, const struct weight *w, const struct lora *l, const struct tensor *a,
                const struct tensor *b)
{
    assert(a->cols == w->cols && a->rows == w->n_mat * l->a.rows);
    assert(b->cols == l->a.rows && b->rows == w->n_mat * w->rows);
    if (!cannot(r, a) && r->be->bwd->publish) r->be->bwd->publish(r, w, l, a, b);
}
