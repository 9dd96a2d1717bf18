/* fuse_train.c - rules of a training tape. */
#include "gpu/fuse_impl.h"
#include "gpu/ops_gpu_bwd.h"

/* ---- trained products of one x ---- */

static void run_linears_z(struct run *r, const struct group *g, uint32_t pos)
{
    struct tensor *y[GROUP_LINEARS], *z[GROUP_LINEARS];
    const struct weight *w[GROUP_LINEARS];
    const struct tensor *x = &g->nodes[0]->in[0]->at;
    (void)pos;
    for (uint32_t i = 0; i < g->n_nodes; i++) {
        y[i] = &g->nodes[i]->out[0]->at;
        z[i] = &g->nodes[i]->out[1]->at;
        w[i] = g->nodes[i]->w;
    }
    gpu_linears_z(r, y, z, x, w, g->n_nodes);
}

/* The products of one segment only: a segment's second computation comes much later. */
void match_linears_z(struct tape *t, struct node *n)
{
    struct group g = { .rule = RULE_LINEARS_Z, .run = run_linears_z };
    struct group *parts[GROUP_LINEARS];
    uint32_t n_parts = 0;
    if (!is_plain(n, TAPE_LINEAR_Z)) return;
    for (const struct use *u = n->in[0]->uses; u && n_parts < GROUP_LINEARS; u = u->next) {
        struct node *o = u->node;
        if (!is_plain(o, TAPE_LINEAR_Z) || o->segment != n->segment) continue;
        parts[n_parts++] = o->group;
        group_add_room(&g, o->out[0]);
        group_add_room(&g, o->out[1]);
    }
    if (n_parts > 1) group_join(t, &g, parts, n_parts);
}

/* ---- the gradient of rope(head_norm(x)), in place: y[0], other, table, x, w[0] ---- */

static void run_norm_rope_bwd(struct run *r, const struct group *g, uint32_t pos)
{
    uint32_t n_head = g->y[0]->at.cols / g->nodes[0]->n;
    (void)pos;
    gpu_head_norm_rope_bwd(r, tape_moved(r, g->y[0], g->other), &g->x->at, g->w[0], &g->table->at,
                           n_head, g->eps);
}

void match_norm_rope_bwd(struct tape *t, struct node *n)
{
    struct node *rope =
        is_plain(n, TAPE_HEAD_NORM_BWD) ? plain_maker(n->in[0], TAPE_ROPE_BWD) : NULL;
    if (!rope || rope->n != n->n) return;
    struct group g = { .rule = RULE_NORM_ROPE_BWD, .run = run_norm_rope_bwd };
    struct group *const parts[] = { rope->group, n->group };
    g.other = rope->in[0];
    g.table = rope->in[1];
    g.x = n->in[1];
    g.w[0] = n->w;
    g.y[0] = n->out[0];
    group_add_room(&g, g.y[0]);
    if (group_join(t, &g, parts, 2)) g.y[0]->over = g.other;
}
