/* fuse_heads.c - rules of attention: from the projections to the product after it.
 *
 * The ops behind these rules work in place on the projections q, k and v, so no other node may
 * read those.
 */
#include "gpu/fuse_impl.h"
#include "gpu/ops_gpu_impl.h"

/* ---- rope(head_norm(x)), in place: x, y[0], w[0], table ---- */

static void run_norm_rope(struct run *r, const struct group *g, uint32_t pos)
{
    uint32_t n_head = g->y[0]->at.cols / g->nodes[0]->n;
    (void)pos;
    gpu_head_norm_rope(r, tape_moved(r, g->y[0], g->x), g->w[0], &g->table->at, n_head, g->eps);
}

void match_norm_rope(struct tape *t, struct node *n)
{
    struct node *norm = is_plain(n, TAPE_ROPE) ? plain_maker(n->in[0], TAPE_HEAD_NORM) : NULL;
    if (!norm || norm->n != n->n || norm->in[0]->of) return;
    struct group g = { .rule = RULE_NORM_ROPE, .run = run_norm_rope };
    struct group *const parts[] = { norm->group, n->group };
    g.x = norm->in[0];
    g.table = n->in[1];
    g.w[0] = norm->w;
    g.y[0] = n->out[0];
    group_add_room(&g, g.y[0]);
    if (group_join(t, &g, parts, 2)) g.y[0]->over = g.x;
}

/* ---- keys and values to the cache: k, v, k_w, table, v_from_k, write ---- */

static struct heads heads_of(const struct group *g)
{
    return (struct heads) { .q = g->q ? &g->q->at : NULL,
                            .k = g->k ? &g->k->at : NULL,
                            .v = g->v ? &g->v->at : NULL,
                            .q_norm = g->q_w,
                            .k_norm = g->k_w,
                            .table = &g->table->at,
                            .n_head = g->attend ? g->attend->n_head : 0,
                            .v_from_k = g->v_from_k };
}

static void run_heads_write(struct run *r, const struct group *g, uint32_t pos)
{
    struct heads h = heads_of(g);
    gpu_heads_write(r, g->write->with.kv, &h, pos + g->k->row0, g->eps);
}

/* Is the raw projection of keys (or of keys and values) read by these norms and by nothing else? */
static bool is_theirs(const struct value *raw, const struct node *a, const struct node *b)
{
    for (const struct use *u = raw->uses; u; u = u->next)
        if (u->node != a && u->node != b) return false;
    return (raw->from || raw->donated) && !raw->pinned && !raw->of;
}

void match_heads_write(struct tape *t, struct node *n)
{
    struct group *k = is_plain(n, TAPE_KV_WRITE) ? rule_maker(n->in[0], RULE_NORM_ROPE) : NULL;
    struct node *v = k ? plain_maker(n->in[1], TAPE_HEAD_NORM) : NULL;
    if (!v || weight_exists(v->w)) return;
    struct group g = { .rule = RULE_HEADS_WRITE, .run = run_heads_write, .write = n };
    struct group *const parts[] = { k, v->group, n->group };
    g.k = k->x;
    g.k_w = k->w[0];
    g.table = k->table;
    g.v_from_k = v->in[0] == k->x;
    g.v = g.v_from_k ? v->out[0] : v->in[0];
    if (!is_theirs(g.k, k->nodes[0], v) || !is_theirs(v->in[0], k->nodes[0], v)) return;
    if (g.v_from_k) group_add_room(&g, g.v);
    group_join(t, &g, parts, 3);
}

/* ---- keys and values to the cache, and attention of one layer: q, q_w, attend, attn; k NULL: the
 * cache is there already ---- */

static void run_attend_heads(struct run *r, const struct group *g, uint32_t pos)
{
    struct heads h = heads_of(g);
    gpu_attend(r, &g->attn->at, g->attend->with.kv, &h, g->attend->n, pos + g->q->row0, g->eps);
}

/* The group that writes the same rows of this cache, all of whose heads are rotated by the same
 * angles; NULL: there is none. */
static struct group *writer_of(const struct node *attend, const struct group *q)
{
    const struct node *n = attend->before;
    while (n && !(n->op == TAPE_KV_WRITE && n->with.kv == attend->with.kv)) n = n->before;
    struct group *g = n ? n->group : NULL;
    bool ok = g && g->rule == RULE_HEADS_WRITE && g->table == q->table &&
              g->k->at.rows == q->x->at.rows && g->k->row0 == q->x->row0;
    return ok ? g : NULL;
}

void match_attend_heads(struct tape *t, struct node *n)
{
    struct group *q = is_plain(n, TAPE_ATTEND) ? rule_maker(n->in[0], RULE_NORM_ROPE) : NULL;
    if (!q || !is_theirs(q->x, q->nodes[0], NULL)) return;
    struct group *write = writer_of(n, q), g = { 0 };
    if (write) g = *write;
    g.rule = RULE_ATTEND_HEADS;
    g.run = run_attend_heads;
    g.attend = n;
    g.q = q->x;
    g.q_w = q->w[0];
    g.table = q->table;
    g.attn = n->out[0];
    group_add_room(&g, g.attn);
    struct group *const parts[] = { q, n->group, write };
    group_join(t, &g, parts, write ? 3 : 2);
}

/* ---- the product that reads attention: y[0], w[0] ---- */

static void run_attend_linear(struct run *r, const struct group *g, uint32_t pos)
{
    struct heads h = heads_of(g);
    gpu_attend_linear(r, &g->y[0]->at, &g->attn->at, g->attend->with.kv, &h, g->attend->n,
                      pos + g->q->row0, g->eps, g->w[0]);
}

void match_attend_linear(struct tape *t, struct node *n)
{
    struct group *attend =
        is_plain(n, TAPE_LINEAR) ? rule_maker(n->in[0], RULE_ATTEND_HEADS) : NULL;
    if (!attend || !only_reader(n->in[0], n)) return;
    struct group g = *attend;
    struct group *const parts[] = { attend, n->group };
    g.rule = RULE_ATTEND_LINEAR;
    g.run = run_attend_linear;
    g.w[0] = n->w;
    g.y[0] = n->out[0];
    group_add_room(&g, g.y[0]);
    group_join(t, &g, parts, 2);
}
