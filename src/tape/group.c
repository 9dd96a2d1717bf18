/* group.c - which nodes of a tape run as one, and in whose turn. */
#include <assert.h>
#include <string.h>

#include "tape/tape.h"

void group_add_room(struct group *g, struct value *x)
{
    assert(g->n_room < GROUP_ROOM);
    g->room[g->n_room++] = x;
}

static const struct kv *cache_of(const struct node *n)
{
    bool touches = n->op == TAPE_KV_WRITE || n->op == TAPE_ATTEND || n->op == TAPE_ATTEND_MASKED;
    return touches ? n->with.kv : NULL;
}

void tape_groups(struct tape *t)
{
    struct node **last = &t->caches;
    for (struct node *n = t->nodes; n; n = n->next) {
        if (cache_of(n)) {
            *last = n;
            last = &n->next_cache;
        }
        struct group *g = n->group = arena_alloc(&t->arena, 1, sizeof *g);
        if (!g) {
            t->failed = true;
            return;
        }
        g->nodes[g->n_nodes++] = g->place = n;
        g->eps = t->eps;
        for (int i = 0; i < NODE_OUT && n->out[i]; i++) group_add_room(g, n->out[i]);
    }
}

static bool is_member(const struct group *g, const struct node *n)
{
    for (uint32_t i = 0; i < g->n_nodes; i++)
        if (g->nodes[i] == n) return true;
    return false;
}

static bool has_room(const struct group *g, const struct value *x)
{
    for (uint32_t i = 0; i < g->n_room; i++)
        if (g->room[i] == x) return true;
    return false;
}

/* All nodes of the parts, in the order of the tape. False: they are too many. */
static bool collect(struct group *g, struct group *const *parts, uint32_t n_parts)
{
    g->n_nodes = 0;
    for (uint32_t i = 0; i < n_parts; i++) {
        if (g->n_nodes + parts[i]->n_nodes > GROUP_NODES) return false;
        for (uint32_t k = 0; k < parts[i]->n_nodes; k++) {
            uint32_t at = g->n_nodes++;
            for (; at && g->nodes[at - 1]->number > parts[i]->nodes[k]->number; at--)
                g->nodes[at] = g->nodes[at - 1];
            g->nodes[at] = parts[i]->nodes[k];
        }
    }
    return true;
}

/* Turns between which a group may run: after `low` and before `high`. */
struct turns {
    int64_t low, high;
};

static void after(struct turns *t, const struct node *n)
{
    int64_t turn = n->group->place->number;
    if (turn > t->low) t->low = turn;
}

static void before(struct turns *t, const struct node *n)
{
    int64_t turn = n->group->place->number;
    if (turn < t->high) t->high = turn;
}

/* A group runs after those that make what n reads, and before those that read what n makes. False:
 * what n reads has no memory. */
static bool bound_by_values(struct turns *t, const struct group *g, const struct node *n)
{
    for (int i = 0; i < NODE_IN; i++) {
        const struct node *from = n->in[i] ? tape_whole(n->in[i])->from : NULL;
        if (from && !is_member(g, from)) after(t, from);
    }
    for (int i = 0; i < NODE_OUT && n->out[i]; i++) {
        const struct value *y = n->out[i];
        bool missed = y->pinned;
        for (const struct use *u = y->uses; u; u = u->next) {
            if (is_member(g, u->node)) continue;
            before(t, u->node);
            missed = true;
        }
        if (missed && !has_room(g, y)) return false;
    }
    return true;
}

/* Nobody who touches the same cache changes sides. */
static void bound_by_cache(struct turns *turns, const struct tape *t, const struct group *g,
                           const struct node *n)
{
    if (!cache_of(n)) return;
    for (const struct node *o = t->caches; o; o = o->next_cache) {
        if (cache_of(o) != cache_of(n) || is_member(g, o)) continue;
        if (o->number < n->number) after(turns, o);
        else before(turns, o);
    }
}

/* The last node of g in whose turn it may run; NULL: there is none. */
static struct node *find_place(const struct tape *t, const struct group *g)
{
    struct turns turns = { -1, INT64_MAX };
    for (uint32_t i = 0; i < g->n_nodes; i++) {
        if (!bound_by_values(&turns, g, g->nodes[i])) return NULL;
        bound_by_cache(&turns, t, g, g->nodes[i]);
    }
    for (uint32_t i = g->n_nodes; i-- > 0;) {
        int64_t turn = g->nodes[i]->number;
        if (turn > turns.low && turn < turns.high) return g->nodes[i];
    }
    return NULL;
}

struct group *group_join(struct tape *t, const struct group *like, struct group *const *parts,
                         uint32_t n_parts)
{
    struct group g = *like;
    if (t->failed || !collect(&g, parts, n_parts)) return NULL;
    g.place = find_place(t, &g);
    g.eps = t->eps;
    if (!g.place) return NULL;
    struct group *made = arena_alloc(&t->arena, 1, sizeof *made);
    if (!made) {
        t->failed = true;
        return NULL;
    }
    *made = g;
    for (uint32_t i = 0; i < g.n_nodes; i++) g.nodes[i]->group = made;
    for (uint32_t i = 0; i < g.n_room; i++) g.room[i]->over = NULL;
    return made;
}
