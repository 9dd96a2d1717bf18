/* ops_optional.c - shape checks of the ops that a backend may lack, once for all backends. Whoever
 * calls one has seen that the backend has it. */
#include "ops/ops_optional.h"

#include <assert.h>
#include <string.h>

static void follow(struct tensor *y, const struct tensor *x)
{
    assert(x->rows <= tensor_cap(y) && y->mem != x->mem);
    y->rows = x->rows;
}

static bool idle(const struct run *r, const struct tensor *t)
{
    return r->status != BZ_OK || t->rows == 0;
}

/* A mask names what it needs, and no more. */
static void check_attention(const struct tensor *q, const struct attention *a)
{
    enum mask_kind kind = a->mask.kind;
    bool own = kind == MASK_PREFIX || kind == MASK_FULL;
    assert(own == (a->k != NULL) && own == (a->v != NULL));
    assert((a->kv != NULL) == (kind != MASK_FULL) && (a->later != NULL) == (kind == MASK_SPANS));
    assert(a->n_head && q->cols % a->n_head == 0);
    uint32_t head_dim = q->cols / a->n_head;
    assert(!a->kv || (a->kv->head_dim == head_dim && a->n_head % a->kv->n_kv_head == 0));
    assert(!own || (a->k->rows && a->k->rows == a->v->rows && a->k->cols == a->v->cols));
    assert(!own || (a->k->cols % head_dim == 0 && a->n_head % (a->k->cols / head_dim) == 0));
    assert(!own || !a->kv || a->k->cols == a->kv->n_kv_head * head_dim);
    assert(!a->later || (a->later->rows == q->rows && a->later->cols == 1));
    (void)head_dim, (void)own;
}

/* Every position that a row may see still has its own slot of the ring. */
static void check_ring(const struct tensor *q, const struct attention *a, uint32_t pos)
{
    uint32_t window = a->mask.window, n = a->mask.kind == MASK_PREFIX ? 0 : q->rows;
    uint32_t span = window && window < pos + 1 ? window - 1 + n : pos + n;
    assert(!a->kv || a->kv->k.rows >= span);
    (void)span;
}

void op_attend_masked(struct run *r, struct tensor *y, const struct tensor *q,
                      const struct attention *a, uint32_t pos)
{
    follow(y, q);
    assert(y->cols == q->cols);
    check_attention(q, a);
    check_ring(q, a, pos);
    if (!idle(r, y)) r->be->optional->attend_masked(r, y, q, a, pos);
}

void op_add_bias(struct run *r, struct tensor *x, const struct weight *b)
{
    assert(weight_exists(b) && b->rows == 1 && b->cols == x->cols);
    if (!idle(r, x)) r->be->optional->add_bias(r, x, b);
}

void op_clamp(struct run *r, struct tensor *x, float low, float high)
{
    assert(low <= high);
    if (!idle(r, x)) r->be->optional->clamp(r, x, low, high);
}

void op_layer_norm(struct run *r, struct tensor *y, const struct tensor *x, const struct weight *w,
                   const struct weight *b, float eps)
{
    follow(y, x);
    assert(y->cols == x->cols && (!weight_exists(w) || w->cols == x->cols));
    assert(!weight_exists(b) || b->cols == x->cols);
    if (!idle(r, y)) r->be->optional->layer_norm(r, y, x, w, b, eps);
}

void op_angles_2d(struct run *r, struct tensor *table, const struct rope *rope,
                  const struct tensor *xy)
{
    follow(table, xy);
    assert(xy->cols == 2 && table->cols == 4 * rope->n_pair && 2 * rope->n_pair <= rope->head_dim);
    if (!idle(r, table)) r->be->optional->angles_2d(r, table, rope, xy);
}

void op_rope_2d(struct run *r, struct tensor *x, const struct tensor *table, uint32_t n_head)
{
    assert(n_head && x->cols % (4 * n_head) == 0 && table->cols % 4 == 0);
    assert(table->rows == x->rows && table->cols <= x->cols / n_head);
    if (!idle(r, x)) r->be->optional->rope_2d(r, x, table, n_head);
}

void op_unfold(struct run *r, struct tensor *y, const struct tensor *x, const struct conv *c)
{
    assert(c->width && x->rows % c->width == 0 && y->cols == c->x.k * c->y.k * x->cols);
    assert(y->rows == conv_count(&c->x, c->width) * conv_count(&c->y, x->rows / c->width));
    assert(y->rows <= tensor_cap(y) && y->mem != x->mem);
    if (!idle(r, y)) r->be->optional->unfold(r, y, x, c);
}

void op_conv_depthwise(struct run *r, struct tensor *y, const struct tensor *x,
                       const struct weight *w)
{
    follow(y, x);
    assert(weight_exists(w) && w->rows == x->cols && y->cols == x->cols && w->n_mat == 1);
    if (!idle(r, y)) r->be->optional->conv_depthwise(r, y, x, w);
}

void op_pool(struct run *r, struct tensor *y, const struct tensor *x, uint32_t width, uint32_t k)
{
    assert(k && width % k == 0 && x->rows % ((uint64_t)width * k) == 0);
    assert(y->rows == x->rows / (k * k) && y->rows <= tensor_cap(y));
    assert(y->cols == x->cols && y->mem != x->mem);
    if (!idle(r, y)) r->be->optional->pool(r, y, x, width, k);
}

/* ---- canvas ---- */

enum { CANVAS_PARTS = 8 };

static void list_parts(struct tensor *list[CANVAS_PARTS], struct canvas *c)
{
    struct tensor *const parts[] = { &c->state,    &c->ids,   &c->best,  &c->entropy,
                                     &c->accepted, &c->fixed, &c->draws, &c->fresh };
    memcpy(list, parts, sizeof parts);
}

void canvas_shape(struct canvas *c, uint32_t n)
{
    const uint32_t sizes[] = { CANVAS_STATE, n, n, n, (n + 31) / 32, n, n, n };
    struct tensor *parts[CANVAS_PARTS];
    uint32_t at = 0;
    *c = (struct canvas) { .n = n };
    list_parts(parts, c);
    for (int i = 0; i < CANVAS_PARTS; i++) {
        if (parts[i] == &c->fixed) c->n_shown = at;
        *parts[i] = (struct tensor) { .rows = sizes[i], .cols = 1, .size = sizes[i], .first = at };
        at += (sizes[i] + TENSOR_ALIGN - 1) / TENSOR_ALIGN * TENSOR_ALIGN;
    }
    c->all = (struct tensor) { .rows = at, .cols = 1, .size = at };
}

void canvas_views(const struct backend *be, struct canvas *c)
{
    struct tensor *parts[CANVAS_PARTS];
    list_parts(parts, c);
    for (int i = 0; i < CANVAS_PARTS; i++) be->view(parts[i], &c->all, parts[i]->first);
}

bool canvas_alloc(const struct backend *be, struct canvas *c)
{
    if (!be->alloc(be->ctx, &c->all)) return false;
    canvas_views(be, c);
    return true;
}

void canvas_free(const struct backend *be, struct canvas *c)
{
    tensor_free(be, &c->all);
    *c = (struct canvas) { 0 };
}

void op_canvas_head(struct run *r, struct tensor *soft, struct tensor *entropy,
                    struct tensor *picks, const struct tensor *x, const struct canvas_head *h)
{
    follow(soft, x);
    follow(entropy, x);
    follow(picks, x);
    assert(x->rows == h->canvas->n && entropy->cols == 1 && picks->cols == 2);
    assert(h->head->cols == x->cols && h->table->cols == soft->cols);
    assert(h->head->rows == h->table->rows);
    if (!idle(r, x)) r->be->optional->canvas_head(r, soft, entropy, picks, x, h);
}

void op_canvas_step(struct run *r, struct canvas *c, const struct tensor *entropy,
                    const struct tensor *picks, uint32_t n_vocab)
{
    assert(entropy->rows == c->n && entropy->cols == 1);
    assert(picks->rows == c->n && picks->cols == 2 && n_vocab);
    if (!idle(r, entropy)) r->be->optional->canvas_step(r, c, entropy, picks, n_vocab);
}
