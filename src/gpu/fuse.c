/* fuse.c - the table of rules, and those that are in no other file.
 *
 * Every rule is tried once at every node, in the order of rules.def. A rule looks at the tape:
 * which node makes a value, which nodes read it. group_join() refuses a group by which a value
 * would be lost.
 */
#include "gpu/fuse.h"

#include <math.h>

#include "gpu/fuse_impl.h"
#include "gpu/ops_gpu_impl.h"

static void (*const rules[N_GPU_RULES])(struct tape *t, struct node *n) = {
#define RULE(NAME, name, formula) [RULE_##NAME] = match_##name,
#include "gpu/rules.def"
#undef RULE
};

void gpu_fuse(void *gpu_ops, struct tape *t)
{
    const struct gpu_ops *g = gpu_ops;
    for (uint32_t i = 1; i < N_GPU_RULES; i++)
        for (struct node *n = t->nodes; n && !(g->without >> i & 1); n = n->next) rules[i](t, n);
    gpu_formats(g, t);
}

uint32_t gpu_fuse_up_to(void *gpu_ops, struct tape *t, enum gpu_rule last)
{
    struct gpu_ops *g = gpu_ops;
    uint32_t without = g->without, found = 0;
    g->without |= ~0u << (last + 1);
    gpu_fuse(g, t);
    g->without = without;
    for (const struct node *n = t->nodes; n; n = n->next) found |= 1u << n->group->rule;
    return found;
}

/* ---- gelu(G x) * (U x): x, y[0], w[0] = G, w[1] = U; y[1] is room for U x ---- */

static void run_gate_up(struct run *r, const struct group *g, uint32_t pos)
{
    (void)pos;
    gpu_gate_up(r, &g->y[0]->at, &g->y[1]->at, &g->x->at, g->w[0], g->w[1]);
}

void match_gate_up(struct tape *t, struct node *n)
{
    if (!is_plain(n, TAPE_GELU_MUL) || n->in[1]->of) return;
    struct node *gate = plain_maker(n->in[0], TAPE_LINEAR);
    struct node *up = plain_maker(n->in[1], TAPE_LINEAR);
    if (!gate || !up || gate->in[0] != up->in[0]) return;
    struct group g = { .rule = RULE_GATE_UP, .run = run_gate_up };
    struct group *const parts[] = { gate->group, up->group, n->group };
    g.x = gate->in[0];
    g.w[0] = gate->w;
    g.w[1] = up->w;
    g.y[0] = n->out[0];
    g.y[1] = up->out[0];
    group_add_room(&g, g.y[0]);
    group_add_room(&g, g.y[1]);
    group_join(t, &g, parts, 3);
}

/* ---- gelu(W x) * b: x, y[0], w[0], by = b ---- */

static void run_linear_gelu(struct run *r, const struct group *g, uint32_t pos)
{
    const struct value *by = g->by->of ? g->by->of : g->by;
    (void)pos;
    gpu_linear_gelu_mul(r, &g->y[0]->at, &g->x->at, g->w[0], &by->at, g->by->col);
}

void match_linear_gelu(struct tape *t, struct node *n)
{
    struct node *linear = is_plain(n, TAPE_GELU_MUL) ? plain_maker(n->in[0], TAPE_LINEAR) : NULL;
    if (!linear) return;
    struct group g = { .rule = RULE_LINEAR_GELU, .run = run_linear_gelu };
    struct group *const parts[] = { linear->group, n->group };
    g.x = linear->in[0];
    g.by = n->in[1];
    g.w[0] = linear->w;
    g.y[0] = n->out[0];
    group_add_room(&g, g.y[0]);
    group_join(t, &g, parts, 2);
}

/* ---- the router, and the norm that its experts read: x, w[0], scale_w, norm, norm_w, route ----
 */

static void run_router(struct run *r, const struct group *g, uint32_t pos)
{
    struct routing to = { g->route->out[0]->at, g->route->out[1]->at };
    const struct router by = { g->w[0], g->scale_w, g->norm_w };
    (void)pos;
    gpu_router(r, &to, &g->norm->at, &g->x->at, &by, g->eps);
}

/* The norm that the experts of this routing read; NULL: there is no such node. */
static struct node *experts_norm(const struct node *route, const struct value *x)
{
    const struct use *u = route->out[0]->uses;
    if (!u || u->node->op != TAPE_EXPERTS) return NULL;
    struct node *norm = plain_maker(u->node->in[0], TAPE_RMS_NORM);
    return norm && norm->in[0] == x && weight_exists(norm->w) ? norm : NULL;
}

void match_router(struct tape *t, struct node *n)
{
    struct node *times = is_plain(n, TAPE_ROUTE) ? plain_maker(n->in[0], TAPE_TIMES) : NULL;
    struct node *linear = times ? plain_maker(times->in[0], TAPE_LINEAR) : NULL;
    struct node *scaled = linear ? plain_maker(linear->in[0], TAPE_RMS_NORM) : NULL;
    struct node *norm = scaled ? experts_norm(n, scaled->in[0]) : NULL;
    if (!norm || !weight_exists(scaled->w)) return;
    if (times->c != 1.0f / sqrtf((float)scaled->in[0]->at.cols)) return;
    struct group g = { .rule = RULE_ROUTER, .run = run_router, .route = n };
    struct group *const parts[] = { scaled->group, linear->group, times->group, n->group,
                                    norm->group };
    g.x = scaled->in[0];
    g.w[0] = linear->w;
    g.scale_w = scaled->w;
    g.norm_w = norm->w;
    g.norm = norm->out[0];
    group_add_room(&g, n->out[0]);
    group_add_room(&g, n->out[1]);
    group_add_room(&g, g.norm);
    group_join(t, &g, parts, 5);
}

/* ---- the router, and in the same dispatch a product that needs nothing of it: by = h, y[0] = D h,
 * w[1] = D ---- */

static void run_linear_router(struct run *r, const struct group *g, uint32_t pos)
{
    struct routing to = { g->route->out[0]->at, g->route->out[1]->at };
    const struct router by = { g->w[0], g->scale_w, g->norm_w };
    (void)pos;
    gpu_linear_router(r, &g->y[0]->at, &g->by->at, g->w[1], &to, &g->norm->at, &g->x->at, &by,
                      g->eps);
}

void match_linear_router(struct tape *t, struct node *n)
{
    struct group *router = n->op == TAPE_ROUTE ? n->group : NULL;
    if (!router || router->rule != RULE_ROUTER) return;
    struct node *linear = router->nodes[0]->before;
    if (!is_plain(linear, TAPE_LINEAR) || linear->in[0]->at.rows != router->x->at.rows) return;
    struct group g = *router;
    struct group *const parts[] = { linear->group, router };
    g.rule = RULE_LINEAR_ROUTER;
    g.run = run_linear_router;
    g.by = linear->in[0];
    g.w[1] = linear->w;
    g.y[0] = linear->out[0];
    group_add_room(&g, g.y[0]);
    group_join(t, &g, parts, 2);
}

/* ---- the router and the experts that it chooses: y[1], experts ---- */

static void run_router_experts(struct run *r, const struct group *g, uint32_t pos)
{
    struct routing to = { g->route->out[0]->at, g->route->out[1]->at };
    const struct router by = { g->w[0], g->scale_w, g->norm_w };
    struct product beside = { 0 };
    if (g->by) beside = (struct product) { &g->y[0]->at, &g->by->at, g->w[1] };
    (void)pos;
    gpu_router_experts(r, &g->y[1]->at, &to, &g->norm->at, &g->x->at, &by, g->eps,
                       &g->experts->with.experts, g->by ? &beside : NULL);
}

void match_router_experts(struct tape *t, struct node *n)
{
    struct group *router = is_plain(n, TAPE_EXPERTS) ? maker(n->in[1]) : NULL;
    if (!router || (router->rule != RULE_ROUTER && router->rule != RULE_LINEAR_ROUTER)) return;
    if (router->norm != n->in[0]) return;
    struct group g = *router;
    struct group *const parts[] = { router, n->group };
    g.rule = RULE_ROUTER_EXPERTS;
    g.run = run_router_experts;
    g.experts = n;
    g.y[1] = n->out[0];
    group_add_room(&g, g.y[1]);
    group_join(t, &g, parts, 2);
}
