/* place.c - memory for the values of a tape, by liveness.
 *
 * A value exists from the group that makes it to the last group that reads it. Two values may share
 * a slot if their lifetimes do not meet. What one group reads and writes exists at once, so it
 * never shares a slot; WebGPU's rule for bindings asks for just that. The largest value chooses
 * first.
 *
 * Sizes are those of the largest step that has the same nodes (max_rows, max_out), not of this one:
 * so every such step has the same slots.
 */
#include <stdlib.h>

#include "tape/tape.h"

/* Numbers that a value has at most. */
static uint64_t most_numbers(const struct tape *t, const struct value *v)
{
    uint64_t rows = v->fixed ? v->at.rows : v->leaves ? t->max_out : t->max_rows;
    if (v->most && rows > v->most) rows = v->most;
    return rows * v->at.cols;
}

static uint64_t aligned(uint64_t n)
{
    return (n + TENSOR_ALIGN - 1) / TENSOR_ALIGN * TENSOR_ALIGN;
}

/* ---- lives ---- */

static void lives_in(struct value *x, uint32_t turn)
{
    if (!x->placed || turn < x->first) x->first = turn;
    if (!x->placed || turn > x->last) x->last = turn;
    x->placed = true;
}

static void number_groups(struct tape *t)
{
    t->n_groups = 0;
    for (struct node *n = t->nodes; n; n = n->next)
        if (n->group->place == n) n->group->number = t->n_groups++;
}

static void find_lives(struct tape *t)
{
    for (struct value *v = t->values; v; v = v->next) {
        v->placed = false;
        v->root = v;
    }
    for (struct node *n = t->nodes; n; n = n->next)
        for (uint32_t i = 0; n->group->place == n && i < n->group->n_room; i++)
            lives_in(n->group->room[i], n->group->number);
    for (struct node *n = t->nodes; n; n = n->next)
        for (int i = 0; i < NODE_IN; i++) {
            struct value *x = n->in[i] ? tape_whole(n->in[i]) : NULL;
            if (x && x->placed) lives_in(x, n->group->number);
        }
    for (struct value *v = t->values; v; v = v->next) {
        if (!v->ready) continue;
        lives_in(v->ready, v->first);
        lives_in(v->ready, v->last);
    }
}

/* Is x only one of the inputs of the node that makes y? */
static bool reads_once(const struct value *y, const struct value *x)
{
    int n = 0;
    for (int i = 0; i < NODE_IN; i++) n += y->from->in[i] && tape_whole(y->from->in[i])->root == x;
    return n <= 1;
}

/* y is computed where x lies, if nobody reads x afterwards: no node, and nobody who wants x as a
 * result of the tape. */
static void hand_over(const struct tape *t, struct value *y, uint32_t turn)
{
    struct value *x = y->over && y->over->placed ? y->over->root : NULL;
    if (!x || x->last != turn || x->behind || most_numbers(t, x) != most_numbers(t, y)) return;
    if ((x->own && (y->own || !x->donated)) || !reads_once(y, x)) return;
    if (y->own) x->own = y->own;
    y->root = x;
    x->last = y->last;
}

/* Where v lies behind `before`, both live as long as either. */
static void live_together(struct value *v)
{
    struct value *b = v->behind;
    if (v->first < b->first) b->first = v->first;
    if (v->last > b->last) b->last = v->last;
}

static void share_memory(struct tape *t)
{
    for (struct node *n = t->nodes; n; n = n->next)
        for (uint32_t i = 0; n->group->place == n && i < n->group->n_room; i++)
            hand_over(t, n->group->room[i], n->group->number);
}

/* ---- slots ---- */

static bool is_free(const struct tape_slot *s, const struct value *v)
{
    for (const struct value *o = s->values; o; o = o->same_slot)
        if (v->first <= o->last && o->first <= v->last) return false;
    return true;
}

/* The smallest of n slots that is free all the value's life, else the next one. Larger values came
 * before, so slots are in the order of their sizes, and each is large enough. */
static uint32_t choose_slot(const struct tape_memory *m, uint32_t n, const struct value *v)
{
    for (uint32_t i = n; i-- > 0;)
        if (is_free(&m->slots[i], v)) return i;
    return n;
}

/* Slot i, new or not; NULL: memory is short. */
static struct tape_slot *slot_at(struct tape_memory *m, uint32_t i)
{
    if (i == m->cap) {
        uint32_t cap = m->cap ? 2 * m->cap : 32;
        struct tape_slot *slots = mem_grow(m->slots, cap, sizeof *slots);
        if (!slots) return NULL;
        m->slots = slots;
        m->cap = cap;
    }
    if (i == m->n) m->slots[m->n++] = (struct tape_slot) { 0 };
    return &m->slots[i];
}

struct claim {
    struct value *v;
    uint64_t size;
    uint32_t order;
};

static int larger_first(const void *a, const void *b)
{
    const struct claim *x = a, *y = b;
    if (x->size != y->size) return x->size < y->size ? 1 : -1;
    return x->order < y->order ? -1 : 1;
}

/* Everything that needs a slot. */
static uint32_t list_claims(const struct tape *t, struct claim *list)
{
    uint32_t n = 0;
    for (struct value *v = t->values; v; v = v->next)
        if (v->placed && v->root == v && v->behind && !v->behind->own) live_together(v);
    for (struct value *v = t->values; v; v = v->next) {
        if (!v->placed || v->root != v || v->own || v->behind) continue;
        list[n] = (struct claim) { v, most_numbers(t, v), n };
        n++;
    }
    for (struct value *v = t->values; v; v = v->next) {
        if (!v->placed || !v->behind) continue;
        struct claim *c = list;
        while (c->v != v->behind) c++;
        v->offset = aligned(c->size);
        c->size = v->offset + most_numbers(t, v);
    }
    return n;
}

static uint32_t count_values(const struct tape *t)
{
    uint32_t n = 0;
    for (const struct value *v = t->values; v; v = v->next) n++;
    return n;
}

bool tape_place(struct tape *t, struct tape_memory *m)
{
    number_groups(t);
    find_lives(t);
    share_memory(t);
    struct claim *list = arena_alloc(&t->arena, count_values(t), sizeof *list);
    uint32_t n = list ? list_claims(t, list) : 0, n_slots = 0;
    for (uint32_t i = 0; i < m->n; i++) m->slots[i].values = NULL;
    if (n) qsort(list, n, sizeof *list, larger_first);
    t->failed = !list;
    for (uint32_t i = 0; i < n && !t->failed; i++) {
        struct value *v = list[i].v;
        v->slot = choose_slot(m, n_slots, v);
        struct tape_slot *s = slot_at(m, v->slot);
        t->failed = !s;
        if (!s) break;
        if (v->slot == n_slots) n_slots++;
        if (s->size < list[i].size) s->size = list[i].size;
        v->same_slot = s->values;
        s->values = v;
    }
    return !t->failed;
}

/* Its memory: its own, or in a slot. */
static void bind(const struct tape *t, struct value *v, const struct tape_memory *m,
                 const struct backend *be)
{
    const struct value *root = v->root->behind ? v->root->behind : v->root;
    const struct tensor *of = v->root->own ? v->root->own : &m->slots[root->slot].at;
    v->at.size = most_numbers(t, v);
    if (v->root->own) v->at.size = of->size;
    v->at.mem = of->mem;
    v->at.first = of->first;
    if (v->root->offset) be->view(&v->at, of, (uint32_t)v->root->offset);
}

bool tape_bind(struct tape *t, const struct tape_memory *m, const struct backend *be)
{
    for (uint32_t i = 0; i < m->n; i++)
        if (m->slots[i].at.size < m->slots[i].size) return false;
    for (struct value *v = t->values; v; v = v->next)
        if (v->placed || (v->own && !v->from)) bind(t, v, m, be);
    for (struct value *v = t->values; v; v = v->next) {
        if (!v->ready || v->at.rows > v->ready->most) continue;
        v->at.ready = &v->ready->at;
        v->ready->at.rows = 0;
    }
    t->ready = true;
    return true;
}

bool tape_memory_open(struct tape_memory *m, const struct backend *be)
{
    for (uint32_t i = 0; i < m->n; i++) {
        struct tape_slot *s = &m->slots[i];
        if (s->at.mem && s->at.size >= s->size) continue;
        tensor_free(be, &s->at);
        if (!tensor_alloc(be, &s->at, 1, (uint32_t)s->size)) return false;
    }
    return true;
}

void tape_memory_close(struct tape_memory *m, const struct backend *be)
{
    for (uint32_t i = 0; i < m->n; i++) tensor_free(be, &m->slots[i].at);
    mem_free(m->slots);
    *m = (struct tape_memory) { 0 };
}

uint64_t tape_memory_bytes(const struct tape_memory *m)
{
    uint64_t n = 0;
    for (uint32_t i = 0; i < m->n; i++) n += m->slots[i].size * sizeof(float);
    return n;
}
