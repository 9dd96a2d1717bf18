/* formats.c - in which form a value is kept for those that read it.
 *
 * Products of few rows with codes read rows in planes (kernels/lib/acts.wgsl): int8 planes where
 * the device multiplies int8, else f32 planes. The kernel that makes such a value writes the planes
 * beside the f32 numbers. The planes are room of its group, and exist as long as the value does.
 * Within a group the function that runs it sees to that itself.
 */
#include "gpu/fuse.h"
#include "gpu/ops_gpu_impl.h"

/* The value that a group can leave ready; NULL: none. */
static struct value *made_ready(const struct group *g)
{
    switch ((enum gpu_rule)g->rule) {
    case RULE_RESIDUAL: return g->to;
    case RULE_RESIDUAL_NORM: return g->norm;
    case RULE_GATE_UP:
    case RULE_NORM_GATE_UP: return g->y[0];
    case RULE_ATTEND_HEADS: return g->attn;
    case RULE_ROUTER:
    case RULE_LINEAR_ROUTER: return g->norm;
    default: return NULL;
    }
}

static bool has_codes(const struct weight *w)
{
    return weight_exists(w) && gpu_is_codes(matrix_of(w)->shape);
}

/* Is it a product that reads its rows as planes? */
static bool wants_ready(const struct node *n)
{
    const struct experts *e = &n->with.experts;
    if (n->op == TAPE_EXPERTS) return has_codes(weight_exists(e->gate_up) ? e->gate_up : e->gate);
    return n->op == TAPE_LINEAR && has_codes(n->w);
}

static bool is_wanted(const struct value *x, const struct group *maker)
{
    for (const struct use *u = x->uses; u; u = u->next)
        if (u->node->group != maker && u->node->in[0] == x && wants_ready(u->node)) return true;
    return false;
}

void gpu_formats(const struct gpu_ops *g, struct tape *t)
{
    for (struct node *n = t->nodes; n && !t->failed; n = n->next) {
        struct group *group = n->group;
        struct value *x = group->place == n ? made_ready(group) : NULL;
        if (!x || !gpu_makes_ready(g, 1, x->at.cols)) continue;
        if (!x->ready && is_wanted(x, group)) x->ready = tape_room(t, x, x->at.cols);
        if (!x->ready || t->failed) continue;
        x->ready->most = g->tuning->matmul_from - 1;
        group_add_room(group, x->ready);
    }
}
