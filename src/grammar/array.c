/* array.c - ARRAY nodes: read, put together, combined and complemented.
 *
 * words: how long the prefix is, rest, least, most, unique; then the prefix, then `contains`.
 */
#include "grammar/array.h"

#include "grammar/value.h"

enum { HEAD = 5, CONTAINS = sizeof(struct contains) / sizeof(uint32_t) };

struct array array_read(const struct grammar *g, node shape)
{
    const uint32_t *w = node_words(&g->s, shape);
    if (node_kind(&g->s, shape) != ARRAY) return (struct array) { 0 };
    return (struct array) { w + HEAD,
                            w[0],
                            (node_n(&g->s, shape) - HEAD - w[0]) / CONTAINS,
                            w[1],
                            (const struct contains *)(const void *)(w + HEAD + w[0]),
                            w[2],
                            w[3],
                            w[4] };
}

node array_put(struct grammar *g, const struct array *a)
{
    struct vec w = { 0 };
    uint32_t n_prefix = a->n_prefix; /* what the rest says anyway is not said */
    while (n_prefix && a->prefix[n_prefix - 1] == a->rest) n_prefix--;
    const uint32_t head[HEAD] = { n_prefix, a->rest, a->least, a->most, a->unique };
    vec_put(&g->s, &w, head, HEAD);
    vec_put(&g->s, &w, a->prefix, n_prefix);
    vec_put(&g->s, &w, (const uint32_t *)a->contains, a->n_contains * CONTAINS);
    node x = store_put(&g->s, ARRAY, w.w, w.n);
    vec_free(&w);
    return x;
}

node array_any(struct grammar *g)
{
    return array_put(g, &(struct array) { .rest = f_true(g), .most = UINT32_MAX });
}

static void add_contains(struct grammar *g, struct vec *v, const struct contains *c, uint32_t n)
{
    for (uint32_t i = 0; i < n; i++) {
        struct contains *old = NULL;
        for (uint32_t k = 0; k < v->n && !old; k += CONTAINS)
            if (v->w[k] == c[i].f && v->w[k + 1] == c[i].from)
                old = (struct contains *)(void *)(v->w + k);
        if (!old) {
            vec_put(&g->s, v, (const uint32_t *)&c[i], CONTAINS);
            continue;
        }
        if (c[i].least > old->least) old->least = c[i].least;
        if (c[i].most < old->most) old->most = c[i].most;
    }
}

node array_and(struct grammar *g, node a, node b)
{
    if (a == b || b == array_any(g)) return a;
    if (a == array_any(g)) return b;
    struct array x = array_read(g, a), y = array_read(g, b);
    struct vec prefix = { 0 }, contains = { 0 };
    for (uint32_t i = 0; i < x.n_prefix || i < y.n_prefix; i++)
        vec_push(&g->s, &prefix, f_and2(g, array_item(&x, i), array_item(&y, i)));
    add_contains(g, &contains, x.contains, x.n_contains);
    add_contains(g, &contains, y.contains, y.n_contains);
    struct array z = { prefix.w,
                       prefix.n,
                       contains.n / CONTAINS,
                       f_and2(g, x.rest, y.rest),
                       (const struct contains *)(const void *)contains.w,
                       x.least > y.least ? x.least : y.least,
                       x.most < y.most ? x.most : y.most,
                       x.unique || y.unique };
    node shape = array_put(g, &z);
    vec_free(&prefix);
    vec_free(&contains);
    return z.least > z.most ? 0 : shape;
}

static void put_bounds(struct grammar *g, uint32_t least, uint32_t most, struct vec *out)
{
    struct array a = { .rest = f_true(g), .least = least, .most = most };
    vec_push(&g->s, out, array_put(g, &a));
}

static void put_contains(struct grammar *g, struct contains c, struct vec *out)
{
    struct array a = { .rest = f_true(g), .most = UINT32_MAX, .contains = &c, .n_contains = 1 };
    vec_push(&g->s, out, array_put(g, &a));
}

void array_not(struct grammar *g, node shape, struct vec *out)
{
    struct array a = array_read(g, shape);
    struct vec prefix = { 0 };
    if (a.unique)
        store_fail(&g->s, BZ_ERR_UNSUPPORTED, "the complement of uniqueItems is not supported");
    for (uint32_t i = 0; i < a.n_prefix; i++) {
        vec_push(&g->s, &prefix, f_not(g, a.prefix[i]));
        if (g->s.status) break;
        struct array b = { prefix.w, i + 1, 0, f_true(g), NULL, i + 1, UINT32_MAX, false };
        if (node_kind(&g->s, a.prefix[i]) != F_TRUE) vec_push(&g->s, out, array_put(g, &b));
        prefix.w[i] = f_true(g);
    }
    vec_free(&prefix);
    if (node_kind(&g->s, a.rest) != F_TRUE)
        put_contains(g, (struct contains) { f_not(g, a.rest), a.n_prefix, 1, UINT32_MAX }, out);
    for (uint32_t i = 0; i < a.n_contains; i++) {
        struct contains c = a.contains[i];
        if (c.least) put_contains(g, (struct contains) { c.f, c.from, 0, c.least - 1 }, out);
        if (c.most != UINT32_MAX)
            put_contains(g, (struct contains) { c.f, c.from, c.most + 1, UINT32_MAX }, out);
    }
    if (a.least) put_bounds(g, 0, a.least - 1, out);
    if (a.most != UINT32_MAX) put_bounds(g, a.most + 1, UINT32_MAX, out);
    vec_sort(out);
}

bool array_fits(struct grammar *g, node shape, unsigned left)
{
    struct array a = array_read(g, shape);
    if (a.least > a.most) return false;
    for (uint32_t i = 0; i < a.n_prefix && i < a.least; i++)
        if (!f_fits(g, a.prefix[i], left - 1)) return false;
    if (a.least > a.n_prefix && !f_fits(g, a.rest, left - 1)) return false;
    for (uint32_t i = 0; i < a.n_contains; i++) {
        struct contains c = a.contains[i];
        if (c.least > c.most || (c.least && !f_fits(g, c.f, left - 1))) return false;
    }
    return true;
}

bool array_empty(struct grammar *g, node shape)
{
    return !array_fits(g, shape, f_most(g));
}
