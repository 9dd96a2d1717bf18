/* value.c - VALUE nodes: boolean operations, type by type.
 *
 * words: literals | exponents << 8, number, text, how many objects, objects, arrays.
 */
#include "grammar/value.h"

#include "grammar/array.h"
#include "grammar/number.h"
#include "grammar/object.h"

enum { MAX_COMPARED = 100 }; /* alternatives that are compared with each other */

struct value value_read(const struct grammar *g, node value)
{
    const uint32_t *w = node_words(&g->s, value);
    uint32_t n = node_n(&g->s, value);
    if (node_kind(&g->s, value) != VALUE) return (struct value) { 0 }; /* after a failure */
    return (struct value) { w[0] & 255, w[0] >> 8,    w[1], w[2],
                            w + 4,      w + 4 + w[3], w[3], n - 4 - w[3] };
}

node value_put(struct grammar *g, const struct value *v)
{
    struct vec w = { 0 };
    const uint32_t head[] = { v->literals | v->exponents << 8, v->number, v->text, v->n_objects };
    if (v->n_objects > MAX_ALTERNATIVES || v->n_arrays > MAX_ALTERNATIVES)
        store_fail(&g->s, BZ_ERR_UNSUPPORTED, "more than %d alternatives at one place",
                   MAX_ALTERNATIVES);
    vec_put(&g->s, &w, head, 4);
    vec_put(&g->s, &w, v->objects, v->n_objects);
    vec_put(&g->s, &w, v->arrays, v->n_arrays);
    node x = store_put(&g->s, VALUE, w.w, w.n);
    vec_free(&w);
    return x;
}

node value_all(struct grammar *g)
{
    node object = object_any(g), array = array_any(g);
    struct value v = {
        HAS_LITERALS, EXP_ALL, number_all(&g->s), re_any_text(&g->s), &object, &array, 1, 1
    };
    return value_put(g, &v);
}

node value_none(struct grammar *g)
{
    return value_put(g, &(struct value) { 0 });
}

/* Leave out objects that another alternative allows too. */
static void drop_covered(struct grammar *g, struct vec *v)
{
    uint32_t n = 0;
    if (v->n > MAX_COMPARED) return;
    for (uint32_t i = 0; i < v->n && !g->s.status; i++) {
        bool covered = false;
        for (uint32_t k = 0; k < v->n && !covered; k++)
            covered = k != i && v->w[k] && object_covers(g, v->w[k], v->w[i]);
        if (covered) v->w[i] = 0; /* it covers no other one any more */
    }
    for (uint32_t i = 0; i < v->n; i++)
        if (v->w[i]) v->w[n++] = v->w[i];
    if (!g->s.status) v->n = n;
}

/* Alternatives of a and b, each with each; those that cannot be are left out. */
static void multiply(struct grammar *g, const node *a, uint32_t n_a, const node *b, uint32_t n_b,
                     bool objects, struct vec *out)
{
    for (uint32_t i = 0; i < n_a; i++)
        for (uint32_t j = 0; j < n_b && !g->s.status; j++) {
            node x = objects ? object_and(g, a[i], b[j]) : array_and(g, a[i], b[j]);
            visit(g);
            if (x && (n_a * n_b == 1 || !(objects ? object_empty(g, x) : array_empty(g, x))))
                vec_push(&g->s, out, x);
        }
    vec_sort(out);
    if (objects) drop_covered(g, out);
}

node value_and(struct grammar *g, node a, node b)
{
    if (a == b || b == value_all(g)) return a;
    if (a == value_all(g)) return b;
    struct value x = value_read(g, a), y = value_read(g, b);
    struct vec objects = { 0 }, arrays = { 0 };
    multiply(g, x.objects, x.n_objects, y.objects, y.n_objects, true, &objects);
    multiply(g, x.arrays, x.n_arrays, y.arrays, y.n_arrays, false, &arrays);
    struct value v = { x.literals & y.literals,
                       x.exponents & y.exponents,
                       re_and2(&g->s, x.number, y.number),
                       re_and2(&g->s, x.text, y.text),
                       objects.w,
                       arrays.w,
                       objects.n,
                       arrays.n };
    node z = value_put(g, &v);
    vec_free(&objects);
    vec_free(&arrays);
    return z;
}

/* Either; an alternative that allows everything leaves no room for others. */
static void unite(struct grammar *g, node any, const node *a, uint32_t n_a, const node *b,
                  uint32_t n_b, struct vec *out)
{
    vec_put(&g->s, out, a, n_a);
    vec_put(&g->s, out, b, n_b);
    vec_sort(out);
    for (uint32_t i = 0; i < out->n; i++) {
        if (out->w[i] != any) continue;
        out->w[0] = any;
        out->n = 1;
    }
    if (any == object_any(g)) drop_covered(g, out);
}

node value_or(struct grammar *g, node a, node b)
{
    if (a == b) return a;
    struct value x = value_read(g, a), y = value_read(g, b);
    struct vec objects = { 0 }, arrays = { 0 };
    unite(g, object_any(g), x.objects, x.n_objects, y.objects, y.n_objects, &objects);
    unite(g, array_any(g), x.arrays, x.n_arrays, y.arrays, y.n_arrays, &arrays);
    struct value v = { x.literals | y.literals,
                       x.exponents | y.exponents,
                       re_alt2(&g->s, x.number, y.number),
                       re_alt2(&g->s, x.text, y.text),
                       objects.w,
                       arrays.w,
                       objects.n,
                       arrays.n };
    node z = value_put(g, &v);
    vec_free(&objects);
    vec_free(&arrays);
    return z;
}

/* Of `from` what is not of b, where both are alternatives of one type. Those that have nothing in
 * common with b stay as they are: most schemas tell their alternatives apart. */
static void subtract(struct grammar *g, struct vec *from, const node *b, uint32_t n, bool objects)
{
    node (*and)(struct grammar *, node, node) = objects ? object_and : array_and;
    bool (*empty)(struct grammar *, node) = objects ? object_empty : array_empty;
    for (uint32_t k = 0; k < n; k++) {
        struct vec out = { 0 }, not = { 0 };
        for (uint32_t i = 0; i < from->n && !g->s.status; i++) {
            node both = and(g, from->w[i], b[k]);
            visit(g);
            if (!both || empty(g, both)) {
                vec_push(&g->s, &out, from->w[i]);
                continue;
            }
            if (!not.n) (objects ? object_not : array_not)(g, b[k], &not);
            for (uint32_t j = 0; j < not.n && !g->s.status; j++) {
                node x = and(g, from->w[i], not.w[j]);
                visit(g);
                if (x && !empty(g, x)) vec_push(&g->s, &out, x);
            }
        }
        vec_sort(&out);
        if (objects) drop_covered(g, &out);
        vec_free(&not);
        vec_free(from);
        *from = out;
    }
}

node value_minus(struct grammar *g, node a, node b)
{
    struct value x = value_read(g, a), y = value_read(g, b);
    struct vec objects = { 0 }, arrays = { 0 };
    vec_put(&g->s, &objects, x.objects, x.n_objects);
    vec_put(&g->s, &arrays, x.arrays, x.n_arrays);
    subtract(g, &objects, y.objects, y.n_objects, true);
    subtract(g, &arrays, y.arrays, y.n_arrays, false);
    bool numbers = y.number || y.exponents; /* of texts with exponents nothing else is known */
    struct value v = { x.literals & ~y.literals,
                       numbers ? 0 : x.exponents,
                       x.number ? re_and2(&g->s, x.number, re_not(&g->s, y.number)) : 0,
                       x.text ? re_and2(&g->s, x.text, re_not(&g->s, y.text)) : 0,
                       objects.w,
                       arrays.w,
                       objects.n,
                       arrays.n };
    node z = value_put(g, &v);
    vec_free(&objects);
    vec_free(&arrays);
    return z;
}
