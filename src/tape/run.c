/* run.c - runs a tape's nodes, one op of the backend each. A group of several nodes has a function
 * of its own. */
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
#define OP(NAME, name, n_in, n_out, in_place)
#define OPTIONAL(NAME, name, n_in, n_out, in_place)                                                \
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
    case TAPE_RMS_NORM: op_rms_norm(r, &y->at, &x->at, w, eps); break;
    case TAPE_HEAD_NORM: op_head_norm(r, tape_moved(r, y, x), w, heads_of(n), eps); break;
    case TAPE_ANGLES: op_rope_table(r, &y->at, n->with.rope, pos + y->row0); break;
    case TAPE_ROPE: op_rope(r, tape_moved(r, y, x), &b->at, heads_of(n)); break;
    case TAPE_KV_WRITE: op_kv_write(r, n->with.kv, &x->at, &b->at, pos + x->row0); break;
    case TAPE_ATTEND:
        op_attention(r, &y->at, &x->at, n->with.kv, n->n_head, n->n, pos + x->row0);
        break;
    case TAPE_ADD: op_add(r, tape_moved(r, y, x), &b->at); break;
    case TAPE_TIMES: op_times(r, tape_moved(r, y, x), n->c); break;
    case TAPE_SCALE: op_scale(r, tape_moved(r, y, x), w); break;
    case TAPE_SOFTCAP: op_softcap(r, tape_moved(r, y, x), n->c); break;
    case TAPE_GELU_MUL:
        op_gelu_mul(r, tape_moved(r, y, x), b->of ? &b->of->at : &b->at, b->col);
        break;
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
    case N_TAPE_OPS: break;
    }
}

static void show(struct run *r, const struct group *g)
{
    for (uint32_t i = 0; i < g->n_nodes; i++)
        for (int k = 0; k < 2 && g->nodes[i]->out[k]; k++) {
            const struct value *y = g->nodes[i]->out[k];
            if (y->tap) op_tap(r, y->tap, y->layer, &y->at);
        }
}

void tape_run(struct tape *t, struct run *r, uint32_t pos)
{
    for (struct node *n = t->nodes; n && r->status == BZ_OK; n = n->next) {
        const struct group *g = n->group;
        if (g->place != n) continue;
        if (r->be->label) r->be->label(r->be->ctx, g);
        if (g->run) g->run(r, g, pos);
        else run_node(r, n, t->eps, pos);
        if (t->taps) show(r, g);
    }
}
