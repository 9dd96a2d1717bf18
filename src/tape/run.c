/* run.c - runs a tape's nodes, one op of the backend each. A group of several nodes has a function
 * of its own. */
#include "ops/ops_bwd.h"
#include "tape/tape.h"

struct tensor *tape_moved(struct run *r, struct value *y, const struct value *x)
{
    y->at.rows = x->at.rows;
    if (y->at.mem != x->at.mem || y->at.first != x->at.first) op_copy_rows(r, &y->at, &x->at, 0);
    return &y->at;
}

static uint32_t heads_of(const struct node *n)
{
    return n->out[0]->at.cols / n->n;
}

static void run_experts(struct run *r, const struct node *n)
{
    const struct routing routing = { n->in[1]->at, n->in[2]->at };
    op_experts(r, &n->out[0]->at, &n->in[0]->at, &routing, &n->with.experts);
}

static void run_route(struct run *r, const struct node *n)
{
    struct routing to = { n->out[0]->at, n->out[1]->at };
    op_route(r, &to, &n->in[0]->at);
}

/* A whole sequence's keys and values, or their gradients. */
static struct kv whole_kv(const struct node *n, const struct value *k, const struct value *v)
{
    struct kv kv = *n->with.kv;
    kv.k = k->at;
    kv.v = v->at;
    return kv;
}

static void run_self_attend(struct run *r, const struct node *n)
{
    const struct kv kv = whole_kv(n, n->in[1], n->in[2]);
    op_attention(r, &n->out[0]->at, &n->in[0]->at, &kv, n->n_head, n->n, 0);
}

static struct tensor *tensor_of(struct value *x)
{
    return x ? &x->at : NULL;
}

/* Where a gradient is added up: y, with the sum so far in it. Without one y holds nothing. */
static struct tensor *summed(struct run *r, struct value *y, const struct value *sum)
{
    if (sum) return tape_moved(r, y, sum);
    return &y->at;
}

/* For an op that adds in any case. */
static struct tensor *summed_from_zero(struct run *r, struct value *y, const struct value *sum)
{
    if (sum) return tape_moved(r, y, sum);
    op_zero(r, &y->at, y->at.rows);
    return &y->at;
}

static void run_self_attend_bwd(struct run *r, const struct node *n)
{
    const struct kv kv = whole_kv(n, n->in[2], n->in[3]);
    summed_from_zero(r, n->out[1], n->in[4]);
    summed_from_zero(r, n->out[2], n->in[5]);
    struct kv dkv = whole_kv(n, n->out[1], n->out[2]);
    op_attention_bwd(r, &n->out[0]->at, &dkv, &n->in[0]->at, &n->in[1]->at, &kv, n->n_head, n->n);
}

static void run_linear_bwd(struct run *r, const struct node *n)
{
    struct tensor *dx = n->out[0] ? summed(r, n->out[0], n->in[3]) : NULL;
    op_linear_bwd(r, dx, !n->in[3], &n->in[0]->at, tensor_of(n->in[1]), tensor_of(n->in[2]), n->w);
}

static void run_experts_bwd(struct run *r, const struct node *n)
{
    const struct routing routing = { n->in[2]->at, n->in[3]->at };
    op_experts_bwd(r, summed(r, n->out[0], n->in[4]), !n->in[4], &n->out[1]->at, &n->in[0]->at,
                   &n->in[1]->at, &routing, &n->with.experts);
}

static void run_route_bwd(struct run *r, const struct node *n)
{
    const struct routing routing = { n->in[1]->at, n->in[2]->at };
    op_route_bwd(r, &n->out[0]->at, &n->in[0]->at, &routing);
}

/* Of the part of a view's whole that begins at column b->col. */
static void run_gelu_mul_bwd(struct run *r, const struct node *n)
{
    struct value *b = n->in[2];
    op_gelu_mul_bwd(r, tape_moved(r, n->out[0], n->in[0]), tensor_of(n->out[1]), &n->in[1]->at,
                    &tape_whole(b)->at, b->col);
}

static void run_gradient(struct run *r, const struct node *n, float eps)
{
    struct value *y = n->out[0], *x = n->in[0], *b = n->in[1];
    switch (n->op) {
    case TAPE_HEAD_LOSS:
        op_head_loss(r, &y->at, &n->out[1]->at, &x->at, n->w, &b->at, n->c, n->with.weight);
        break;
    case TAPE_ROWS_BWD: op_rows_bwd(r, summed_from_zero(r, y, b), &x->at, n->n); break;
    case TAPE_LINEAR_BWD: run_linear_bwd(r, n); break;
    case TAPE_RMS_NORM_BWD:
        op_rms_norm_bwd(r, summed(r, y, n->in[2]), !n->in[2], &x->at, &b->at, n->w, eps);
        break;
    case TAPE_HEAD_NORM_BWD:
        op_head_norm_bwd(r, tape_moved(r, y, x), &b->at, n->w, heads_of(n), eps);
        break;
    case TAPE_ROPE_BWD: op_rope_bwd(r, tape_moved(r, y, x), &b->at, heads_of(n)); break;
    case TAPE_SELF_ATTEND_BWD: run_self_attend_bwd(r, n); break;
    case TAPE_GELU_MUL_BWD: run_gelu_mul_bwd(r, n); break;
    case TAPE_ROUTE_BWD: run_route_bwd(r, n); break;
    case TAPE_EXPERTS_BWD: run_experts_bwd(r, n); break;
    default: break;
    }
}

/* A row that sees what came before the step has no position of its own: see op_attend_masked. */
static void run_attend_masked(struct run *r, const struct node *n, uint32_t pos)
{
    bool own = n->mask == MASK_PREFIX || n->mask == MASK_FULL;
    const struct value *q = n->in[0];
    const struct attention a = { .kv = n->with.kv,
                                 .k = own ? &n->in[1]->at : NULL,
                                 .v = own ? &n->in[2]->at : NULL,
                                 .later = n->mask == MASK_SPANS ? &n->in[1]->at : NULL,
                                 .mask = { n->mask, n->n },
                                 .n_head = n->n_head,
                                 .scale = n->c };
    op_attend_masked(r, &n->out[0]->at, &q->at, &a, own ? pos : pos + q->row0);
}

/* An op that a backend may lack: where it does, the run ends here. */
static bool has_op(struct run *r, enum tape_op op)
{
    static const struct optional_ops none;
    const struct optional_ops *o = r->be->optional ? r->be->optional : &none;
    const char *lacks = NULL;
    switch (op) {
#define OP(NAME, name, n_out, in_place, gradient)
#define OPTIONAL(NAME, name, n_out, in_place, gradient)                                            \
    case TAPE_##NAME: lacks = o->name ? NULL : #name; break;
#include "tape/ops.def"
#undef OP
    default: break;
    }
    if (lacks)
        run_fail(r, BZ_ERR_UNSUPPORTED, "the %s has no kernel for %s yet", r->be->name, lacks);
    return !lacks;
}

static void run_node(struct run *r, const struct node *n, float eps, uint32_t pos)
{
    struct value *y = n->out[0], *x = n->in[0], *b = n->in[1];
    const struct weight none = { 0 };
    const struct weight *w = n->w ? n->w : &none;
    if (!has_op(r, n->op)) return;
    switch (n->op) {
    case TAPE_EMBED: op_embed(r, &y->at, w, &x->at, n->c); break;
    case TAPE_ROWS: op_copy_rows(r, &y->at, &x->at, n->n); break;
    case TAPE_LINEAR: op_linear(r, &y->at, &x->at, w); break;
    case TAPE_LINEAR_Z: op_linear_z(r, &y->at, &n->out[1]->at, &x->at, w); break;
    case TAPE_RMS_NORM: op_rms_norm(r, &y->at, &x->at, w, eps); break;
    case TAPE_HEAD_NORM: op_head_norm(r, tape_moved(r, y, x), w, heads_of(n), eps); break;
    case TAPE_ANGLES: op_rope_table(r, &y->at, n->with.rope, pos + y->row0); break;
    case TAPE_ROPE: op_rope(r, tape_moved(r, y, x), &b->at, heads_of(n)); break;
    case TAPE_KV_WRITE: op_kv_write(r, n->with.kv, &x->at, &b->at, pos + x->row0); break;
    case TAPE_ATTEND:
        op_attention(r, &y->at, &x->at, n->with.kv, n->n_head, n->n, pos + x->row0);
        break;
    case TAPE_SELF_ATTEND: run_self_attend(r, n); break;
    case TAPE_ADD: op_add(r, tape_moved(r, y, x), &b->at); break;
    case TAPE_TIMES: op_times(r, tape_moved(r, y, x), n->c); break;
    case TAPE_SCALE: op_scale(r, tape_moved(r, y, x), w); break;
    case TAPE_SOFTCAP: op_softcap(r, tape_moved(r, y, x), n->c); break;
    case TAPE_GELU_MUL: op_gelu_mul(r, tape_moved(r, y, x), &tape_whole(b)->at, b->col); break;
    case TAPE_ROUTE: run_route(r, n); break;
    case TAPE_EXPERTS: run_experts(r, n); break;
    case TAPE_ATTEND_MASKED: run_attend_masked(r, n, pos); break;
    case TAPE_ADD_BIAS: op_add_bias(r, tape_moved(r, y, x), w); break;
    case TAPE_CLAMP: op_clamp(r, tape_moved(r, y, x), n->with.clamp.low, n->with.clamp.high); break;
    case TAPE_LAYER_NORM:
        op_layer_norm(r, &y->at, &x->at, w, n->with.bias ? n->with.bias : &none, n->c);
        break;
    case TAPE_ANGLES_2D: op_angles_2d(r, &y->at, n->with.rope, &x->at); break;
    case TAPE_ROPE_2D: op_rope_2d(r, tape_moved(r, y, x), &b->at, heads_of(n)); break;
    case TAPE_UNFOLD: op_unfold(r, &y->at, &x->at, &n->with.conv); break;
    case TAPE_CONV_DEPTHWISE: op_conv_depthwise(r, &y->at, &x->at, w); break;
    case TAPE_POOL: op_pool(r, &y->at, &x->at, n->with.conv.width, n->n); break;
    case TAPE_CANVAS_HEAD:
        op_canvas_head(r, &y->at, &n->out[1]->at, &n->out[2]->at, &x->at, &n->with.head);
        break;
    case TAPE_CANVAS_STEP:
        op_canvas_step(r, n->with.head.canvas, &x->at, &b->at, n->with.head.head->rows);
        break;
    default: run_gradient(r, n, eps); break;
    }
}

static void show(struct run *r, const struct group *g)
{
    for (uint32_t i = 0; i < g->n_nodes; i++)
        for (int k = 0; k < NODE_OUT && g->nodes[i]->out[k]; k++) {
            const struct value *y = g->nodes[i]->out[k];
            if (y->tap) op_tap(r, y->tap, y->layer, &y->at);
        }
}

void tape_run(struct tape *t, struct run *r, uint32_t pos)
{
    for (struct node *n = t->nodes; n && r->status == BZ_OK; n = n->next) {
        const struct group *g = n->group;
        if (g->place != n) continue;
        if (!run_goes_on(r)) return;
        if (r->be->label) r->be->label(r->be->ctx, g);
        if (g->run) g->run(r, g, pos);
        else run_node(r, n, t->eps, pos);
        if (t->taps) show(r, g);
    }
}
