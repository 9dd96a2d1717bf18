/* fuse_stream.c - rules of the residual stream: the end of one block, the norm that begins the next
 * one, and the products that read it.
 *
 * Their groups have x, branch, post_w, scale_w, to (the stream's next state), norm and norm_w; of a
 * sum of two branches other, branch_w, other_w and sum too.
 */
#include "gpu/fuse_impl.h"
#include "gpu/ops_gpu_impl.h"

static const struct weight none;

static struct residual residual_of(const struct group *g)
{
    return (struct residual) { .x = &g->x->at,
                               .branch = g->branch ? &g->branch->at : NULL,
                               .w = g->post_w,
                               .scale = g->scale_w ? g->scale_w : &none,
                               .next_w = g->norm ? g->norm_w : &none,
                               .to = &g->to->at,
                               .norm = g->norm ? &g->norm->at : NULL,
                               .eps = g->eps,
                               .other = g->other ? &g->other->at : NULL,
                               .branch_w = g->branch_w,
                               .other_w = g->other_w,
                               .sum = g->sum ? &g->sum->at : NULL };
}

/* ---- rms_norm(other) + rms_norm(branch): sum ---- */

static void run_norm_sum(struct run *r, const struct group *g, uint32_t pos)
{
    (void)pos;
    gpu_norm_sum(r, &g->sum->at, &g->other->at, g->other_w, &g->branch->at, g->branch_w, g->eps);
}

static struct node *weighted_norm(const struct value *x)
{
    struct node *norm = plain_maker(x, TAPE_RMS_NORM);
    return norm && weight_exists(norm->w) ? norm : NULL;
}

void match_norm_sum(struct tape *t, struct node *n)
{
    struct node *a = is_plain(n, TAPE_ADD) ? weighted_norm(n->in[0]) : NULL;
    struct node *b = a ? weighted_norm(n->in[1]) : NULL;
    if (!b) return;
    struct group g = { .rule = RULE_NORM_SUM, .run = run_norm_sum };
    struct group *const parts[] = { a->group, b->group, n->group };
    g.other = a->in[0];
    g.other_w = a->w;
    g.branch = b->in[0];
    g.branch_w = b->w;
    g.sum = n->out[0];
    group_add_room(&g, g.sum);
    group_join(t, &g, parts, 3);
}

/* ---- (x + rms_norm(branch) * post_w) * scale_w: to ---- */

static void run_residual(struct run *r, const struct group *g, uint32_t pos)
{
    const struct residual j = residual_of(g);
    (void)pos;
    gpu_residual_norm(r, &j);
}

/* Place both branches in one buffer: then a kernel reaches them by one binding. */
static void lie_together(const struct group *g)
{
    bool free = !g->other->over && !g->branch->over && !g->other->own && !g->branch->own &&
                !g->other->behind && !g->branch->behind;
    if (free) g->other->behind = g->branch;
}

void match_residual(struct tape *t, struct node *n)
{
    struct node *norm = is_plain(n, TAPE_ADD) ? weighted_norm(n->in[1]) : NULL;
    if (!norm) return;
    struct node *scale = n->out[0]->uses ? n->out[0]->uses->node : NULL;
    if (!is_plain(scale, TAPE_SCALE) || !only_reader(n->out[0], scale)) scale = NULL;
    struct group g = { .rule = RULE_RESIDUAL, .run = run_residual };
    struct group *sum = rule_maker(norm->in[0], RULE_NORM_SUM);
    struct group *parts[4] = { norm->group, n->group };
    uint32_t n_parts = 2;
    g.branch = norm->in[0];
    if (sum && only_reader(norm->in[0], norm)) {
        g.branch = sum->branch;
        g.branch_w = sum->branch_w;
        g.other = sum->other;
        g.other_w = sum->other_w;
        g.sum = sum->sum;
        group_add_room(&g, g.sum);
        parts[n_parts++] = sum;
    }
    if (scale) parts[n_parts++] = scale->group;
    g.x = n->in[0];
    g.post_w = norm->w;
    g.scale_w = scale ? scale->w : NULL;
    g.to = scale ? scale->out[0] : n->out[0];
    group_add_room(&g, g.to);
    if (group_join(t, &g, parts, n_parts) && g.other) lie_together(&g);
}

void match_residual_norm(struct tape *t, struct node *n)
{
    struct group *residual = is_plain(n, TAPE_RMS_NORM) && weight_exists(n->w)
                                 ? rule_maker(n->in[0], RULE_RESIDUAL)
                                 : NULL;
    if (!residual) return;
    struct group g = *residual;
    struct group *const parts[] = { residual, n->group };
    g.rule = RULE_RESIDUAL_NORM;
    g.norm = n->out[0];
    g.norm_w = n->w;
    group_add_room(&g, g.norm);
    group_join(t, &g, parts, 2);
}

/* ---- the products that read residual_norm ---- */

static void run_norm_gate_up(struct run *r, const struct group *g, uint32_t pos)
{
    const struct residual j = residual_of(g);
    (void)pos;
    gpu_norm_gate_up(r, &j, &g->y[0]->at, &g->y[1]->at, g->w[0], g->w[1]);
}

void match_norm_gate_up(struct tape *t, struct node *n)
{
    struct group *pair = n->op == TAPE_GELU_MUL && n->group->rule == RULE_GATE_UP ? n->group : NULL;
    struct group *stream = pair ? rule_maker(pair->x, RULE_RESIDUAL_NORM) : NULL;
    if (!stream || stream->norm != pair->x) return;
    struct group g = *stream;
    struct group *const parts[] = { stream, pair };
    g.rule = RULE_NORM_GATE_UP;
    g.run = run_norm_gate_up;
    for (int i = 0; i < 2; i++) {
        g.y[i] = pair->y[i];
        g.w[i] = pair->w[i];
        group_add_room(&g, g.y[i]);
    }
    group_join(t, &g, parts, 2);
}

static void run_residual_linear_gelu(struct run *r, const struct group *g, uint32_t pos)
{
    const struct residual j = residual_of(g);
    const struct value *by = g->by->of ? g->by->of : g->by;
    (void)pos;
    gpu_residual_linear_gelu(r, &j, &g->y[0]->at, g->w[0], &by->at, g->by->col);
}

void match_residual_linear_gelu(struct tape *t, struct node *n)
{
    bool ours = n->op == TAPE_GELU_MUL && n->group->rule == RULE_LINEAR_GELU;
    struct group *linear = ours ? n->group : NULL;
    struct group *stream = ours ? rule_maker(linear->x, RULE_RESIDUAL) : NULL;
    if (!stream) return;
    struct group g = *stream;
    struct group *const parts[] = { stream, linear };
    g.rule = RULE_RESIDUAL_LINEAR_GELU;
    g.run = run_residual_linear_gelu;
    g.by = linear->by;
    g.w[0] = linear->w[0];
    g.y[0] = linear->y[0];
    group_add_room(&g, g.y[0]);
    group_join(t, &g, parts, 2);
}

static void run_norm_linears(struct run *r, const struct group *g, uint32_t pos)
{
    const struct residual j = residual_of(g);
    struct tensor *y[GROUP_LINEARS];
    (void)pos;
    for (uint32_t i = 0; i < g->n_linears; i++) y[i] = &g->y[i]->at;
    gpu_norm_linears(r, &j, y, g->w, g->n_linears);
}

/* Does product a come before b? The one with the most rows is first: kernels for a mixture of
 * formats expect the queries there. */
static bool comes_before(const struct node *a, const struct node *b)
{
    return a->w->rows != b->w->rows ? a->w->rows > b->w->rows : a->number < b->number;
}

/* A head has many more rows than any other matrix, so a norm of its own costs it nothing. */
enum { HEAD_ROWS = 65536 };

/* Put the products that read x into g and parts. False: other nodes read x, there are too many
 * products, or one is a head. */
static bool collect_linears(struct group *g, struct group **parts, const struct value *x)
{
    for (const struct use *u = x->uses; u; u = u->next) {
        if (!is_plain(u->node, TAPE_LINEAR) || g->n_linears == GROUP_LINEARS) return false;
        if (u->node->w->rows > HEAD_ROWS) return false;
        uint32_t at = g->n_linears++;
        for (; at && comes_before(u->node, parts[at - 1]->place); at--) parts[at] = parts[at - 1];
        parts[at] = u->node->group;
    }
    for (uint32_t i = 0; i < g->n_linears; i++) {
        g->y[i] = parts[i]->place->out[0];
        g->w[i] = parts[i]->place->w;
        group_add_room(g, g->y[i]);
    }
    return g->n_linears > 0 && !x->pinned;
}

/* The first norm of a network has no residual before it. */
void match_norm_linears(struct tape *t, struct node *n)
{
    struct group *stream = n->op == TAPE_RMS_NORM ? n->group : NULL, g = { 0 };
    struct group *parts[GROUP_LINEARS + 1];
    if (!stream || !weight_exists(n->w)) return;
    if (stream->rule == RULE_RESIDUAL_NORM && stream->norm == n->out[0]) g = *stream;
    else if (stream->run) return;
    if (!collect_linears(&g, parts, n->out[0])) return;
    if (!g.run) {
        g.x = n->in[0];
        g.norm = n->out[0];
        g.norm_w = n->w;
        g.to = tape_room(t, g.x, g.x->at.cols);
        group_add_room(&g, g.norm);
        group_add_room(&g, g.to);
    }
    g.rule = RULE_NORM_LINEARS;
    g.run = run_norm_linears;
    parts[g.n_linears] = stream;
    group_join(t, &g, parts, g.n_linears + 1);
}
