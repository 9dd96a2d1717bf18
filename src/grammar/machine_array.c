/* machine_array.c - arrays half read: what the next item may be, and which items there were.
 *
 * words of an ARRAY_STATE: shape; levels that an item may have; items so far (up to what bounds
 * need); what unique items were (strings as a RE_MAP, numbers as an expression, literals as bits,
 * others as STRINGS of their canonical text and, where text is written, of their own); then how
 * many items each `contains` has found.
 */
#include <stdlib.h>

#include "grammar/array.h"
#include "grammar/machine.h"
#include "grammar/number.h"
#include "grammar/unique.h"

enum { S_SHAPE, S_LEFT, S_COUNT, S_TEXTS, S_NUMBERS, S_LITERALS, S_OTHERS, S_ITEMS, S_FOUND };

enum { MAX_DEEP = 200, MAX_DISTINCT = 1000 };

/* Flags of an ARRAY_STATE; of an ARRAY. */
enum { STATE_BUSY = 1, UNIQUE = 1, NOT_UNIQUE = 2 };

node array_state(struct grammar *g, node shape, unsigned left)
{
    struct array a = array_read(g, shape);
    struct vec w = { 0 };
    const uint32_t head[S_FOUND] = { shape, left };
    vec_put(&g->s, &w, head, S_FOUND);
    for (uint32_t i = 0; i < a.n_contains; i++) vec_push(&g->s, &w, 0);
    node x = store_put(&g->s, ARRAY_STATE, w.w, w.n);
    vec_free(&w);
    return x;
}

/* ---- items that must be different ---- */

/* How many different items of f there still are, counted up to `most`. */
static uint32_t count_distinct(struct grammar *g, node f, const uint32_t *w, uint32_t most)
{
    struct store *s = &g->s;
    struct value v = value_read(g, f_value(g, f));
    if (v.n_objects || v.n_arrays) return most;
    uint32_t n = (uint32_t)__builtin_popcount(v.literals & ~w[S_LITERALS]);
    if (n < most) n += re_count(s, re_and2(s, v.text, re_not(s, w[S_TEXTS])), most - n);
    if (n < most) {
        node number = re_and2(s, v.number, re_not(s, w[S_NUMBERS]));
        n += re_count(s, re_and2(s, number, number_canonical(s)), most - n);
    }
    return n < most ? n : most;
}

/* Where text is written: can each item be chosen, whatever those before it are? */
static bool can_differ(struct grammar *g, const struct array *a)
{
    const uint32_t none[S_FOUND] = { 0 };
    if (a->n_contains) return false;
    for (uint32_t i = 0; i <= a->n_prefix && i < a->most; i++) {
        node f = array_item(a, i);
        struct value v = value_read(g, f_value(g, f));
        g->one_spelling |= v.n_objects || v.n_arrays;
        if (i < a->n_prefix && count_distinct(g, f, none, i + 1) <= i) return false;
    }
    return true;
}

node array_items(struct grammar *g, node state)
{
    return node_words(&g->s, state)[S_ITEMS];
}

bool array_keeps_unique(struct grammar *g, node shape)
{
    struct array a = array_read(g, shape);
    uint8_t *flags = &g->s.nodes[shape].flags;
    if (!a.unique || g->options.any_form) return a.unique;
    if (!(*flags & (UNIQUE | NOT_UNIQUE))) {
        bool differ = can_differ(g, &a);
        flags = &g->s.nodes[shape].flags;
        if (!differ && !g->options.lenient)
            store_fail(&g->s, BZ_ERR_UNSUPPORTED,
                       a.n_contains ? "uniqueItems beside contains is not supported"
                                    : "uniqueItems is not supported for so few different items");
        *flags |= differ ? UNIQUE : NOT_UNIQUE;
    }
    return *flags & UNIQUE;
}

bool array_is_unique(struct grammar *g, node state)
{
    return node_kind(&g->s, state) == ARRAY_STATE &&
           array_keeps_unique(g, node_words(&g->s, state)[S_SHAPE]);
}

/* ---- choices ---- */

/* One choice being made: the item's formula, and which `contains` it counts for. */
struct draft {
    struct grammar *g;
    struct array a;
    const uint32_t *w;
    bool unique;
    struct vec found; /* the counts behind this item */
    struct vec *out;
};

/* The number of items beyond which nothing depends on it. */
static uint32_t horizon(const struct array *a)
{
    uint32_t n = a->n_prefix > a->least ? a->n_prefix : a->least;
    if (a->most != UINT32_MAX && a->most > n) n = a->most;
    for (uint32_t i = 0; i < a->n_contains; i++)
        if (a->contains[i].from > n) n = a->contains[i].from;
    return n;
}

static void put_choice(struct draft *d, node f)
{
    struct grammar *g = d->g;
    struct store *s = &g->s;
    struct vec w = { 0 };
    bool exact = !g->options.any_form;
    visit(g);
    if (!f_fits(g, f, d->w[S_LEFT])) return;
    if (exact && d->unique && !count_distinct(g, f, d->w, 1)) return;
    vec_put(s, &w, d->w, S_FOUND);
    vec_put(s, &w, d->found.w, d->found.n);
    if (!s->status && w.w[S_COUNT] < horizon(&d->a)) w.w[S_COUNT]++;
    node state = store_put(s, ARRAY_STATE, w.w, w.n);
    if (!exact || array_live(g, state)) vec_put(s, d->out, (const uint32_t[]) { f, state }, 2);
    vec_free(&w);
}

/* From `contains` number k on: the item may count for it, or not. */
static void choose(struct draft *d, uint32_t k, node f)
{
    struct grammar *g = d->g;
    if (g->s.status) return;
    if (k == d->a.n_contains) {
        put_choice(d, f);
        return;
    }
    struct contains c = d->a.contains[k];
    uint32_t count = d->w[S_FOUND + k], index = d->w[S_COUNT];
    bool counts = index >= c.from && (count < c.least || c.most != UINT32_MAX);
    if (!counts) {
        choose(d, k + 1, f);
        return;
    }
    uint32_t left = d->a.most == UINT32_MAX ? UINT32_MAX : d->a.most - index - 1;
    if (c.most == UINT32_MAX || count < c.most) {
        d->found.w[k] = count + 1;
        choose(d, k + 1, f_and2(g, f, c.f));
        d->found.w[k] = count;
    }
    if (count + left >= c.least || left == UINT32_MAX)
        choose(d, k + 1, c.most == UINT32_MAX ? f : f_and2(g, f, f_not(g, c.f)));
}

const struct array_info *array_info(struct grammar *g, node state)
{
    struct array_info *i = g->s.nodes[state].data;
    if (i || node_kind(&g->s, state) != ARRAY_STATE) return i;
    struct vec out = { 0 };
    struct draft d = { .g = g, .w = node_words(&g->s, state), .out = &out };
    d.a = array_read(g, d.w[S_SHAPE]);
    d.unique = array_is_unique(g, state);
    vec_put(&g->s, &d.found, d.w + S_FOUND, d.a.n_contains);
    if (d.w[S_COUNT] < d.a.most) choose(&d, 0, array_item(&d.a, d.w[S_COUNT]));
    i = store_alloc(&g->s, sizeof *i / 4 + out.n);
    if (i) {
        i->may_close = d.w[S_COUNT] >= d.a.least;
        for (uint32_t k = 0; k < d.a.n_contains; k++)
            i->may_close &= d.w[S_FOUND + k] >= d.a.contains[k].least;
        i->n = out.n / 2;
        if (out.n) memcpy(i->at, out.w, out.n * sizeof *out.w);
        g->s.nodes[state].data = i;
    }
    vec_free(&out);
    vec_free(&d.found);
    return i;
}

/* Can the items that must still come be had, one after the other? */
static bool can_reach_least(struct grammar *g, const struct array *a, const uint32_t *w)
{
    uint32_t at = w[S_COUNT], missing = at < a->least ? a->least - at : 0;
    for (; at < a->n_prefix && at < a->least; at++)
        if (!f_fits(g, a->prefix[at], w[S_LEFT])) return false;
    if (at >= a->least) return true;
    if (missing > MAX_DISTINCT) missing = MAX_DISTINCT;
    return f_fits(g, a->rest, w[S_LEFT]) && (!array_keeps_unique(g, w[S_SHAPE]) ||
                                             count_distinct(g, a->rest, w, missing) >= missing);
}

/* A step that leads back to where it began is of no use. */
bool array_live(struct grammar *g, node state)
{
    const uint32_t *w = node_words(&g->s, state);
    if (node_kind(&g->s, state) != ARRAY_STATE) return false;
    struct array a = array_read(g, w[S_SHAPE]);
    if (a.n_contains == 0) return can_reach_least(g, &a, w);
    if (!g->s.nodes[state].data) {
        if (g->s.nodes[state].flags & STATE_BUSY) return false;
        if (g->n_searching == MAX_DEEP) return true;
        g->s.nodes[state].flags |= STATE_BUSY;
        g->n_searching++;
        array_info(g, state);
        g->n_searching--;
        g->s.nodes[state].flags &= (uint8_t)~STATE_BUSY;
    }
    const struct array_info *i = g->s.nodes[state].data;
    return !i || i->may_close || i->n > 0;
}

uint32_t array_missing(struct grammar *g, node state)
{
    const uint32_t *w = node_words(&g->s, state);
    struct array a = array_read(g, w[S_SHAPE]);
    uint32_t n = w[S_COUNT] < a.least ? a.least - w[S_COUNT] : 0;
    for (uint32_t k = 0; k < a.n_contains; k++)
        if (w[S_FOUND + k] < a.contains[k].least) n += a.contains[k].least - w[S_FOUND + k];
    return n;
}

/* ---- unique items ---- */

void array_seen(const struct grammar *g, node state, node *text, node *number, unsigned *literals)
{
    const uint32_t *w = node_words(&g->s, state);
    *text = w[S_TEXTS];
    *number = w[S_NUMBERS];
    *literals = w[S_LITERALS];
}

static int by_key(const void *a, const void *b)
{
    const struct json *x = *(const struct json *const *)a, *y = *(const struct json *const *)b;
    size_t n = x->key.n < y->key.n ? x->key.n : y->key.n;
    int c = n ? memcmp(x->key.p, y->key.p, n) : 0;
    return c ? c : (x->key.n > y->key.n) - (x->key.n < y->key.n);
}

/* Equal values have equal texts: members by name, numbers without exponent and needless zeros. */
static void put_canonical(struct buf *b, const struct json *j)
{
    struct decimal d;
    if (j->type == JSON_INT || j->type == JSON_FLOAT) {
        if (!decimal_read(&d, j->text)) { /* longer than that it is equal to none but itself */
            buf_put_str(b, j->text);
            b->failed |= d.digits.failed;
            return;
        }
        if (d.negative) buf_putc(b, '-');
        buf_put(b, d.digits.data, d.n_whole);
        buf_putc(b, '.');
        buf_put(b, d.digits.data + d.n_whole, d.digits.n - d.n_whole);
        buf_free(&d.digits);
    } else if (j->type == JSON_ARRAY || j->type == JSON_OBJECT) {
        const struct json **v = mem_alloc(j->n, sizeof *v);
        size_t n = 0;
        b->failed |= !v;
        for (const struct json *c = v ? j->child : NULL; c; c = c->next) v[n++] = c;
        if (n && j->type == JSON_OBJECT) qsort(v, n, sizeof *v, by_key);
        buf_putc(b, j->type == JSON_OBJECT ? '{' : '[');
        for (size_t i = 0; i < n; i++) {
            if (j->type == JSON_OBJECT) json_put_string(b, v[i]->key);
            put_canonical(b, v[i]);
            buf_putc(b, ',');
        }
        buf_putc(b, '}');
        mem_free(v);
    } else {
        json_put(b, j);
    }
}

/* The list of others with one more; 0: it is there already. */
static node add_other(struct grammar *g, node others, const struct json *j)
{
    struct buf b = { 0 };
    struct vec w = { 0 };
    put_canonical(&b, j);
    if (b.failed) store_fail(&g->s, BZ_ERR_MEMORY, "out of memory for a grammar");
    node text = store_string(&g->s, buf_str(&b));
    buf_free(&b);
    if (others) vec_put(&g->s, &w, node_words(&g->s, others), node_n(&g->s, others));
    bool known = false;
    for (uint32_t i = 0; i < w.n; i++) known |= w.w[i] == text;
    vec_push(&g->s, &w, text);
    node x = known ? 0 : store_put(&g->s, STRINGS, w.w, w.n);
    vec_free(&w);
    return x;
}

/* The list of items with one more. */
static node add_item(struct grammar *g, node items, struct str text)
{
    struct buf b = { 0 };
    struct vec w = { 0 };
    unique_put(&b, text);
    if (b.failed) store_fail(&g->s, BZ_ERR_MEMORY, "out of memory for a grammar");
    if (items) vec_put(&g->s, &w, node_words(&g->s, items), node_n(&g->s, items));
    vec_push(&g->s, &w, store_string(&g->s, buf_str(&b)));
    node x = store_put(&g->s, STRINGS, w.w, w.n);
    buf_free(&b);
    vec_free(&w);
    return x;
}

node array_item_ends(struct machine *m, node state, size_t from, size_t end)
{
    struct grammar *g = m->g;
    struct store *s = &g->s;
    struct arena a = { 0 };
    struct json *j = NULL;
    struct vec w = { 0 };
    bool twice = false;
    if (!machine_needs_text(m, from)) return 0;
    if (!m->text) return state;
    struct buf b = { 0 };
    struct call_json call = { 0 };
    if (g->calls) call_json_put(&call, (struct str) { m->text + from, end - from }, &b);
    else buf_put(&b, m->text + from, end - from);
    if (b.failed || json_parse(&j, buf_str(&b), &a, NULL) == BZ_ERR_MEMORY)
        store_fail(s, BZ_ERR_MEMORY, "out of memory for a grammar");
    vec_put(s, &w, node_words(s, state), node_n(s, state));
    if (!s->status && j) {
        switch (j->type) {
        case JSON_NULL: w.w[S_LITERALS] |= HAS_NULL; break;
        case JSON_BOOL: w.w[S_LITERALS] |= j->boolean ? HAS_TRUE : HAS_FALSE; break;
        case JSON_INT:
        case JSON_FLOAT:
            w.w[S_NUMBERS] = re_alt2(s, w.w[S_NUMBERS], number_equal(s, j->text));
            break;
        case JSON_STRING: w.w[S_TEXTS] = re_words_add(s, w.w[S_TEXTS], j->text); break;
        default: w.w[S_OTHERS] = add_other(g, w.w[S_OTHERS], j); twice = w.w[S_OTHERS] == 0;
        }
        if ((j->type == JSON_OBJECT || j->type == JSON_ARRAY) && !g->options.any_form)
            w.w[S_ITEMS] = add_item(g, w.w[S_ITEMS], (struct str) { m->text + from, end - from });
    }
    node x = twice || !j ? 0 : store_put(s, ARRAY_STATE, w.w, w.n);
    vec_free(&w);
    buf_free(&b);
    arena_free(&a);
    return x;
}
