/* formula.c - formulas: put together, opened, and asked whether they have any value. */
#include "grammar/array.h"
#include "grammar/machine.h"
#include "grammar/object.h"
#include "grammar/schema.h"
#include "grammar/value.h"

enum {
    MAX_LOOKS = 20000, /* formulas that one question whether there is a value leads to */
    MAX_LOOKING = 40,  /* of them inside one another */
    MAX_OPEN = 100,    /* formulas opened inside one another */
};

/* F_KNOWN: its height is known, else only that it is not below `height`. F_EMPTY and F_FULL: it has
 * no value; it has one, as far as one can tell while formulas are being opened. */
enum flag { F_KNOWN = 1, F_EMPTY = 2, F_FULL = 4, F_BUSY = 8, F_LOOKING = 32 };

enum { TOO_HIGH = 255 }; /* the height of what has no value */

node f_true(struct grammar *g)
{
    return store_put(&g->s, F_TRUE, NULL, 0);
}

node f_false(struct grammar *g)
{
    return store_put(&g->s, F_FALSE, NULL, 0);
}

/* An n-ary formula: `neutral` adds nothing, `ruling` decides. */
static node join(struct grammar *g, enum kind kind, enum kind neutral, enum kind ruling,
                 const node *x, uint32_t n)
{
    struct vec v = { 0 };
    bool ruled = false;
    for (uint32_t i = 0; i < n; i++) {
        enum kind k = node_kind(&g->s, x[i]);
        ruled |= k == ruling;
        if (k == kind) vec_put(&g->s, &v, node_words(&g->s, x[i]), node_n(&g->s, x[i]));
        else if (k != neutral) vec_push(&g->s, &v, x[i]);
    }
    vec_sort(&v);
    node y = ruled      ? store_put(&g->s, ruling, NULL, 0)
             : !v.n     ? store_put(&g->s, neutral, NULL, 0)
             : v.n == 1 ? v.w[0]
                        : store_put(&g->s, kind, v.w, v.n);
    vec_free(&v);
    return y;
}

node f_and(struct grammar *g, const node *x, uint32_t n)
{
    return join(g, F_AND, F_TRUE, F_FALSE, x, n);
}

node f_and2(struct grammar *g, node a, node b)
{
    return a == b ? a : f_and(g, (node[]) { a, b }, 2);
}

node f_or(struct grammar *g, const node *x, uint32_t n)
{
    return join(g, F_OR, F_FALSE, F_TRUE, x, n);
}

node f_one(struct grammar *g, const node *x, uint32_t n)
{
    return n == 1 ? x[0] : store_put(&g->s, F_ONE, x, n);
}

node f_not(struct grammar *g, node x)
{
    switch (node_kind(&g->s, x)) {
    case F_TRUE: return f_false(g);
    case F_FALSE: return f_true(g);
    case F_NOT: return node_words(&g->s, x)[0];
    default: return store_put(&g->s, F_NOT, &x, 1);
    }
}

/* ---- opening ---- */

/* A formula is opened inside what is known of the value already: v. Alternatives that v rules out
 * are gone before they are multiplied, and those that v tells apart need no complements. */
static node restrict_to(struct grammar *g, node v, node f);

/* Exactly one of several, inside v. Literals, numbers and strings are counted as sets; objects and
 * arrays are those of each alternative without those of all others. */
static node exactly_one(struct grammar *g, node v, const node *x, uint32_t n)
{
    struct vec each = { 0 };
    node all = value_none(g);
    for (uint32_t i = 0; i < n; i++) vec_push(&g->s, &each, restrict_to(g, v, x[i]));
    for (uint32_t i = 0; i < n && !g->s.status; i++) {
        node one = each.w[i];
        for (uint32_t k = 0; k < n; k++)
            if (k != i) one = value_minus(g, one, each.w[k]);
        all = value_or(g, all, one);
    }
    vec_free(&each);
    return all;
}

/* How much of a conjunction a formula multiplies: what has alternatives comes last. */
static unsigned rank(const struct grammar *g, node f)
{
    switch (node_kind(&g->s, f)) {
    case F_OR: return 1;
    case F_ONE: return 2;
    case F_NOT: return 3;
    default: return 0;
    }
}

static node restrict_to(struct grammar *g, node v, node f)
{
    const uint32_t *w = node_words(&g->s, f);
    uint32_t n = node_n(&g->s, f);
    node any;
    switch (node_kind(&g->s, f)) {
    case F_TRUE: return v;
    case F_NOT: return value_minus(g, v, f_value(g, w[0]));
    case F_ONE: return exactly_one(g, v, w, n);
    case F_AND:
        for (unsigned r = 0; r < 4; r++)
            for (uint32_t i = 0; i < n; i++)
                if (rank(g, w[i]) == r) v = restrict_to(g, v, w[i]);
        return v;
    case F_OR:
        any = value_none(g);
        for (uint32_t i = 0; i < n; i++) any = value_or(g, any, restrict_to(g, v, w[i]));
        return any;
    case F_SCHEMA: return value_and(g, v, f_value(g, f));
    case F_CONST: return value_and(g, v, schema_const(g, w));
    case F_VALUE: return value_and(g, v, w[0]);
    default: return value_none(g);
    }
}

node f_restrict(struct grammar *g, node v, node f)
{
    return restrict_to(g, v, f);
}

static node open(struct grammar *g, node f)
{
    if (node_kind(&g->s, f) == F_SCHEMA) return schema_value(g, node_words(&g->s, f));
    return restrict_to(g, value_all(g), f);
}

node f_value(struct grammar *g, node f)
{
    if (g->s.status || g->hit_open) return 0;
    if (g->s.nodes[f].aux) return g->s.nodes[f].aux;
    if (g->s.nodes[f].flags & F_BUSY || g->n_open > MAX_OPEN) {
        if (g->n_looking) g->hit_open = true;
        else store_fail(&g->s, BZ_ERR_UNSUPPORTED, "a reference that leads back to itself");
        return 0;
    }
    g->s.nodes[f].flags |= F_BUSY;
    g->n_open++;
    node v = open(g, f);
    g->n_open--;
    g->s.nodes[f].flags &= (uint8_t)~F_BUSY;
    if (g->s.status || g->hit_open) return 0;
    g->s.nodes[f].aux = v;
    return v;
}

/* ---- is there a value? ---- */

unsigned f_most(const struct grammar *g)
{
    return g->options.any_form ? MAX_LEVELS : MAX_HEIGHT;
}

/* Only shapes are looked at, and not the states of texts: for text that is checked, and while
 * formulas are being opened. */
static bool is_rough(const struct grammar *g)
{
    return g->options.any_form || g->n_open > 0;
}

static bool has_value(struct grammar *g, node f, unsigned left)
{
    struct value v = value_read(g, f_value(g, f));
    bool rough = is_rough(g);
    if (g->s.status || g->hit_open) return true;
    if (v.literals || (v.exponents && g->options.any_form)) return true;
    if (re_live(&g->s, v.number) || re_live(&g->s, v.text)) return true;
    if (left == 0) {
        g->limited |= v.n_arrays || v.n_objects;
        return false;
    }
    for (uint32_t i = 0; i < v.n_arrays; i++)
        if (array_fits(g, v.arrays[i], left) &&
            (rough || array_live(g, array_state(g, v.arrays[i], left - 1))))
            return true;
    for (uint32_t i = 0; i < v.n_objects; i++)
        if (object_fits(g, v.objects[i], left) &&
            (rough || object_live(g, object_state(g, v.objects[i], left - 1))))
            return true;
    return false;
}

/* A formula that is being looked at counts as empty: a value that must hold a value of its own kind
 * is never finished. Answers that rest on that are not kept, but for the outermost. A formula that
 * is just being opened is not known yet; it counts as not empty, and that is not kept either. */
static bool looks_full(struct grammar *g, node f)
{
    unsigned flags = g->s.nodes[f].flags;
    if (flags & F_FULL) return true;
    if (flags & F_LOOKING) {
        g->hit_looking = true;
        return false;
    }
    if (g->n_looking == 0) g->n_looks = 0;
    if (g->n_looks++ > MAX_LOOKS || g->n_looking > MAX_LOOKING) return true;
    bool open_before = g->hit_open, looking_before = g->hit_looking;
    g->hit_open = g->hit_looking = false;
    g->s.nodes[f].flags |= F_LOOKING;
    g->n_looking++;
    bool full = has_value(g, f, MAX_LEVELS);
    g->n_looking--;
    g->s.nodes[f].flags &= (uint8_t)~F_LOOKING;
    bool sure = !g->s.status && !g->hit_open;
    if (full && sure) g->s.nodes[f].flags |= F_FULL;
    if (!full && sure && (!g->hit_looking || !g->n_looking)) g->s.nodes[f].flags |= F_EMPTY;
    g->hit_looking = g->n_looking && (looking_before || (g->hit_looking && !full));
    g->hit_open = open_before;
    return full;
}

/* One more level at a time, so that a question only leads to questions with fewer levels: it never
 * leads back to itself. */
static bool fits_exactly(struct grammar *g, node f, unsigned left)
{
    struct node_info *i = &g->s.nodes[f];
    if (g->n_looking == 0) g->n_looks = 0;
    if (g->n_looking >= MAX_LOOKING) return true;
    bool limited_before = g->limited, found = false;
    g->n_looking++;
    while (!(i->flags & F_KNOWN) && i->height <= left && !g->s.status) {
        unsigned height = i->height;
        g->limited = false;
        found = g->n_looks++ > MAX_LOOKS || has_value(g, f, height);
        i = &g->s.nodes[f];
        if (!found) i->height = (uint8_t)(g->limited ? height + 1 : TOO_HIGH);
        if (found || i->height == TOO_HIGH) i->flags |= F_KNOWN;
    }
    g->n_looking--;
    found = g->s.status || (i->flags & F_KNOWN && i->height <= left);
    g->limited = limited_before || (!found && i->height < TOO_HIGH);
    return found;
}

bool f_fits(struct grammar *g, node f, unsigned left)
{
    enum kind kind = node_kind(&g->s, f);
    if (kind == F_TRUE || kind == F_FALSE || g->s.status) return kind != F_FALSE;
    if (g->s.nodes[f].flags & F_EMPTY) return false;
    return is_rough(g) ? looks_full(g, f) : fits_exactly(g, f, left);
}

void visit(struct grammar *g)
{
    if (g->n_visits++ == MAX_VISITS)
        store_fail(&g->s, BZ_ERR_UNSUPPORTED, "too many alternatives that overlap");
}
