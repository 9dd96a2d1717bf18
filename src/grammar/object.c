/* object.c - OBJECT nodes: read, put together, combined and complemented.
 *
 * words: how many members, groups, `some` and `needs` there are; names, least, most; then members,
 * groups (other, how many patterns, pairs), `some`, `needs`.
 */
#include "grammar/object.h"

#include <stdlib.h>

#include "grammar/value.h"

enum { HEAD = 7, MEMBER = sizeof(struct member) / sizeof(uint32_t) };

struct object object_read(const struct grammar *g, node shape)
{
    const uint32_t *w = node_words(&g->s, shape);
    if (node_kind(&g->s, shape) != OBJECT) return (struct object) { 0 };
    struct object o = { .n_members = w[0],
                        .n_groups = w[1],
                        .n_some = w[2],
                        .n_needs = w[3],
                        .names = w[4],
                        .least = w[5],
                        .most = w[6] };
    const uint32_t *end = w + node_n(&g->s, shape);
    o.members = (const struct member *)(const void *)(w + HEAD);
    o.groups = w + HEAD + MEMBER * o.n_members;
    o.needs = (const struct pair *)(const void *)(end - 2 * o.n_needs);
    o.some = o.needs - o.n_some;
    return o;
}

struct group object_group(const uint32_t **at)
{
    const uint32_t *w = *at;
    *at += 2 + 2 * w[1];
    return (struct group) { w[0], (const struct pair *)(const void *)(w + 2), w[1] };
}

/* ---- names and their formulas ---- */

static int compare_text(struct str a, struct str b)
{
    size_t n = a.n < b.n ? a.n : b.n;
    int c = n ? memcmp(a.p, b.p, n) : 0;
    return c ? c : (a.n > b.n) - (a.n < b.n);
}

static const struct member *find(const struct grammar *g, const struct object *o, node name)
{
    struct str text = store_text(&g->s, name);
    uint32_t lo = 0, hi = o->n_members;
    while (lo < hi) {
        uint32_t mid = (lo + hi) / 2;
        int c = compare_text(store_text(&g->s, o->members[mid].name), text);
        if (c == 0) return &o->members[mid];
        if (c < 0) lo = mid + 1;
        else hi = mid;
    }
    return NULL;
}

/* What groups say of a name. */
static node group_formula(struct grammar *g, const uint32_t *groups, uint32_t n, struct str name)
{
    node f = f_true(g);
    for (uint32_t i = 0; i < n; i++) {
        struct group group = object_group(&groups);
        bool matched = false;
        for (uint32_t k = 0; k < group.n_patterns; k++) {
            if (!re_matches(&g->s, group.patterns[k].a, name)) continue;
            matched = true;
            f = f_and2(g, f, group.patterns[k].b);
        }
        if (!matched) f = f_and2(g, f, group.other);
    }
    return f;
}

node object_formula(struct grammar *g, const struct object *o, node name)
{
    const struct member *m = find(g, o, name);
    if (m) return m->f;
    struct str text = store_text(&g->s, name);
    if (!re_matches(&g->s, o->names, text)) return f_false(g);
    return group_formula(g, o->groups, o->n_groups, text);
}

/* ---- drafts ---- */

void draft_open(struct grammar *g, struct object_draft *d)
{
    *d = (struct object_draft) { .names = re_any_text(&g->s), .most = UINT32_MAX };
}

void draft_member(struct grammar *g, struct object_draft *d, struct member m)
{
    vec_put(&g->s, &d->members, (const uint32_t *)&m, MEMBER);
}

void draft_group(struct grammar *g, struct object_draft *d, node other, const struct pair *patterns,
                 uint32_t n)
{
    if (n == 0 && node_kind(&g->s, other) == F_TRUE) return;
    vec_put(&g->s, &d->groups, (const uint32_t[]) { other, n }, 2);
    vec_put(&g->s, &d->groups, (const uint32_t *)patterns, 2 * n);
    d->n_groups += !g->s.status;
}

/* A pattern that every name has is said of all names, and then no name is left to `other`. */
static void split_patterns(struct grammar *g, struct object_draft *d)
{
    struct vec out = { 0 }, rest = { 0 };
    const uint32_t *at = d->groups.w;
    node any = re_any_text(&g->s);
    uint32_t n = 0;
    for (uint32_t i = 0; i < d->n_groups && !g->s.status; i++) {
        struct group a = object_group(&at);
        node all = f_true(g);
        bool found = false;
        rest.n = 0;
        for (uint32_t k = 0; k < a.n_patterns; k++) {
            found |= a.patterns[k].a == any;
            if (a.patterns[k].a == any) all = f_and2(g, all, a.patterns[k].b);
            else vec_put(&g->s, &rest, (const uint32_t *)&a.patterns[k], 2);
        }
        if (found) vec_put(&g->s, &out, (const uint32_t[]) { all, 0 }, 2);
        vec_put(&g->s, &out, (const uint32_t[]) { found ? f_true(g) : a.other, rest.n / 2 }, 2);
        vec_put(&g->s, &out, rest.w, rest.n);
        n += 1 + found;
    }
    vec_free(&rest);
    vec_free(&d->groups);
    d->groups = out;
    d->n_groups = g->s.status ? 0 : n;
}

/* Groups without patterns become one, and equal groups too. */
static void tidy_groups(struct grammar *g, struct object_draft *d)
{
    struct vec out = { 0 };
    uint32_t n = 0;
    node others = f_true(g);
    const uint32_t *at = d->groups.w, *old;
    for (uint32_t i = 0; i < d->n_groups && !g->s.status; i++) {
        struct group a = object_group(&at);
        if (a.n_patterns == 0) {
            others = f_and2(g, others, a.other);
            continue;
        }
        bool known = false;
        old = out.w;
        for (uint32_t k = 0; k < n && !known; k++) {
            struct group b = object_group(&old);
            known = a.other == b.other && a.n_patterns == b.n_patterns &&
                    memcmp(a.patterns, b.patterns, a.n_patterns * sizeof *a.patterns) == 0;
        }
        if (known) continue;
        vec_put(&g->s, &out, (const uint32_t[]) { a.other, a.n_patterns }, 2);
        vec_put(&g->s, &out, (const uint32_t *)a.patterns, 2 * a.n_patterns);
        n++;
    }
    if (node_kind(&g->s, others) != F_TRUE) {
        vec_put(&g->s, &out, (const uint32_t[]) { others, 0 }, 2);
        n++;
    }
    vec_free(&d->groups);
    d->groups = out;
    d->n_groups = g->s.status ? 0 : n;
}

/* qsort has no context: texts are put in front of the members for it. */
struct named {
    struct str text;
    struct member m;
};

static int by_name(const void *a, const void *b)
{
    const struct named *x = a, *y = b;
    int c = compare_text(x->text, y->text);
    return c ? c : x->m.order < y->m.order ? -1 : x->m.order > y->m.order;
}

/* Sort by name; a name that comes several times has all that is said of it. */
static void tidy_members(struct grammar *g, struct object_draft *d)
{
    uint32_t n = d->members.n / MEMBER, kept = 0;
    struct named *v = mem_alloc(n, sizeof *v);
    if (!v) store_fail(&g->s, BZ_ERR_MEMORY, "out of memory for a grammar");
    if (g->s.status) {
        mem_free(v);
        return;
    }
    for (uint32_t i = 0; i < n; i++) {
        memcpy(&v[i].m, d->members.w + i * MEMBER, sizeof v[i].m);
        v[i].text = store_text(&g->s, v[i].m.name);
    }
    qsort(v, n, sizeof *v, by_name);
    for (uint32_t i = 0; i < n; i++) {
        if (kept && v[kept - 1].m.name == v[i].m.name) {
            v[kept - 1].m.f = f_and2(g, v[kept - 1].m.f, v[i].m.f);
            v[kept - 1].m.required |= v[i].m.required;
        } else {
            v[kept++] = v[i];
        }
    }
    for (uint32_t i = 0; i < kept; i++) {
        if (!re_matches(&g->s, d->names, v[i].text)) v[i].m.f = f_false(g);
        memcpy(d->members.w + i * MEMBER, &v[i].m, sizeof v[i].m);
    }
    d->members.n = kept * MEMBER;
    mem_free(v);
}

node draft_close(struct grammar *g, struct object_draft *d)
{
    if (d->some.n / 2 > MAX_SOME)
        store_fail(&g->s, BZ_ERR_UNSUPPORTED, "more than %d conditions on whether a member exists",
                   MAX_SOME);
    split_patterns(g, d);
    tidy_groups(g, d);
    for (uint32_t i = 0; i + 1 < d->needs.n; i += 2) /* both names must be known */
        for (uint32_t k = 0; k < 2; k++) {
            node name = d->needs.w[i + k];
            node f = group_formula(g, d->groups.w, d->n_groups, store_text(&g->s, name));
            bool known = false;
            for (uint32_t m = 0; m < d->members.n && !known; m += MEMBER)
                known = d->members.w[m] == name;
            if (!known) draft_member(g, d, (struct member) { name, f, d->members.n, 0 });
        }
    tidy_members(g, d);
    struct vec w = { 0 };
    const uint32_t head[HEAD] = { d->members.n / MEMBER,
                                  d->n_groups,
                                  d->some.n / 2,
                                  d->needs.n / 2,
                                  d->names,
                                  d->least,
                                  d->most };
    vec_put(&g->s, &w, head, HEAD);
    vec_put(&g->s, &w, d->members.w, d->members.n);
    vec_put(&g->s, &w, d->groups.w, d->groups.n);
    vec_put(&g->s, &w, d->some.w, d->some.n);
    vec_put(&g->s, &w, d->needs.w, d->needs.n);
    node x = store_put(&g->s, OBJECT, w.w, w.n);
    vec_free(&w);
    vec_free(&d->members);
    vec_free(&d->groups);
    vec_free(&d->some);
    vec_free(&d->needs);
    return x;
}

node object_any(struct grammar *g)
{
    const uint32_t head[HEAD] = { 0, 0, 0, 0, re_any_text(&g->s), 0, UINT32_MAX };
    return store_put(&g->s, OBJECT, head, HEAD);
}

/* ---- both ---- */

static void add_pairs(struct store *s, struct vec *v, const struct pair *p, uint32_t n)
{
    for (uint32_t i = 0; i < n; i++) {
        bool known = false;
        for (uint32_t k = 0; k + 1 < v->n && !known; k += 2)
            known = v->w[k] == p[i].a && v->w[k + 1] == p[i].b;
        if (!known) vec_put(s, v, (const uint32_t[]) { p[i].a, p[i].b }, 2);
    }
}

/* The members of one, with what the other one says of them. */
static void add_members(struct grammar *g, struct object_draft *d, const struct object *from,
                        const struct object *other, uint32_t order)
{
    for (uint32_t i = 0; i < from->n_members; i++) {
        struct member m = from->members[i];
        m.f = f_and2(g, m.f, object_formula(g, other, m.name));
        m.order += order;
        draft_member(g, d, m);
    }
}

static uint32_t after_last(const struct object *o)
{
    uint32_t n = 0;
    for (uint32_t i = 0; i < o->n_members; i++)
        if (o->members[i].order >= n) n = o->members[i].order + 1;
    return n;
}

node object_and(struct grammar *g, node a, node b)
{
    if (a == b || b == object_any(g)) return a;
    if (a == object_any(g)) return b;
    struct object x = object_read(g, a), y = object_read(g, b);
    struct object_draft d;
    draft_open(g, &d);
    d.names = re_and2(&g->s, x.names, y.names);
    d.least = x.least > y.least ? x.least : y.least;
    d.most = x.most < y.most ? x.most : y.most;
    add_members(g, &d, &x, &y, 0);
    add_members(g, &d, &y, &x, after_last(&x));
    vec_put(&g->s, &d.groups, x.groups, (uint32_t)((const uint32_t *)x.some - x.groups));
    vec_put(&g->s, &d.groups, y.groups, (uint32_t)((const uint32_t *)y.some - y.groups));
    d.n_groups = x.n_groups + y.n_groups;
    add_pairs(&g->s, &d.some, x.some, x.n_some);
    add_pairs(&g->s, &d.some, y.some, y.n_some);
    add_pairs(&g->s, &d.needs, x.needs, x.n_needs);
    add_pairs(&g->s, &d.needs, y.needs, y.n_needs);
    bool impossible = d.least > d.most;
    for (uint32_t i = 0; i < d.members.n && !impossible; i += MEMBER)
        impossible = d.members.w[i + 3] && node_kind(&g->s, d.members.w[i + 1]) == F_FALSE;
    node z = draft_close(g, &d);
    return impossible ? 0 : z;
}

/* ---- neither ---- */

static void put_shape(struct grammar *g, struct object_draft *d, struct vec *out)
{
    vec_push(&g->s, out, draft_close(g, d));
}

/* There is a member with a name of `names` whose value is not of f. */
static void not_all(struct grammar *g, node names, node f, struct vec *out)
{
    struct object_draft d;
    if (node_kind(&g->s, f) == F_TRUE || !re_live(&g->s, names)) return;
    draft_open(g, &d);
    vec_put(&g->s, &d.some, (const uint32_t[]) { names, f_not(g, f) }, 2);
    put_shape(g, &d, out);
}

/* A known name breaks its formula, or is required and not there. */
static void not_member(struct grammar *g, const struct member *m, struct vec *out)
{
    struct object_draft d;
    if (node_kind(&g->s, m->f) != F_TRUE) {
        draft_open(g, &d);
        draft_member(g, &d, (struct member) { m->name, f_not(g, m->f), 0, 1 });
        put_shape(g, &d, out);
    }
    if (m->required) {
        draft_open(g, &d);
        draft_member(g, &d, (struct member) { m->name, f_false(g), 0, 0 });
        put_shape(g, &d, out);
    }
}

static void not_groups(struct grammar *g, const struct object *o, struct vec *out)
{
    struct store *s = &g->s;
    struct vec names = { 0 };
    for (uint32_t i = 0; i < o->n_members; i++)
        vec_push(s, &names, re_literal(s, store_text(s, o->members[i].name)));
    node unknown = re_not(s, re_alt(s, names.w, names.n));
    vec_free(&names);
    const uint32_t *at = o->groups;
    for (uint32_t i = 0; i < o->n_groups; i++) {
        struct group group = object_group(&at);
        node rest = unknown;
        for (uint32_t k = 0; k < group.n_patterns; k++) {
            node p = group.patterns[k].a;
            not_all(g, re_and2(s, unknown, p), group.patterns[k].b, out);
            rest = re_and2(s, rest, re_not(s, p));
        }
        not_all(g, rest, group.other, out);
    }
}

void object_not(struct grammar *g, node shape, struct vec *out)
{
    struct object o = object_read(g, shape);
    struct object_draft d;
    for (uint32_t i = 0; i < o.n_members; i++) not_member(g, &o.members[i], out);
    not_groups(g, &o, out);
    not_all(g, re_not(&g->s, o.names), f_false(g), out);
    for (uint32_t i = 0; i < o.n_some; i++) {
        draft_open(g, &d);
        const struct pair p = { o.some[i].a, f_not(g, o.some[i].b) };
        draft_group(g, &d, f_true(g), &p, 1);
        put_shape(g, &d, out);
    }
    for (uint32_t i = 0; i < o.n_needs; i++) {
        draft_open(g, &d);
        draft_member(g, &d, (struct member) { o.needs[i].a, f_true(g), 0, 1 });
        draft_member(g, &d, (struct member) { o.needs[i].b, f_false(g), 1, 0 });
        put_shape(g, &d, out);
    }
    if (o.least > 0) {
        draft_open(g, &d);
        d.most = o.least - 1;
        put_shape(g, &d, out);
    }
    if (o.most != UINT32_MAX) {
        draft_open(g, &d);
        d.least = o.most + 1;
        put_shape(g, &d, out);
    }
    vec_sort(out);
}

/* ---- is there one? ---- */

/* Names beyond the known ones that some object of this kind may have. */
static bool has_unknown(struct grammar *g, const struct object *o, unsigned left)
{
    const uint32_t *at = o->groups;
    for (uint32_t i = 0; i < o->n_groups; i++) {
        struct group group = object_group(&at);
        bool any = f_fits(g, group.other, left);
        for (uint32_t k = 0; k < group.n_patterns && !any; k++)
            any = f_fits(g, group.patterns[k].b, left);
        if (!any) return false;
    }
    return re_live(&g->s, o->names);
}

bool object_fits(struct grammar *g, node shape, unsigned left)
{
    struct object o = object_read(g, shape);
    uint32_t required = 0, possible = 0;
    if (o.least > o.most) return false;
    for (uint32_t i = 0; i < o.n_members; i++) {
        if (o.members[i].required && !f_fits(g, o.members[i].f, left - 1)) return false;
        required += o.members[i].required;
    }
    if (required > o.most || (o.n_some && o.most == 0)) return false;
    for (uint32_t i = 0; i < o.n_some; i++)
        if (!f_fits(g, o.some[i].b, left - 1)) return false;
    if (o.least <= required || has_unknown(g, &o, left - 1)) return true;
    for (uint32_t i = 0; i < o.n_members; i++) possible += f_fits(g, o.members[i].f, left - 1);
    return possible >= o.least;
}

bool object_empty(struct grammar *g, node shape)
{
    return !object_fits(g, shape, f_most(g));
}

/* ---- does one cover the other? ---- */

/* Is every value of b one of a? By their form: a says nothing, the same, or less. */
static bool implies(struct grammar *g, node b, node a)
{
    if (a == b || node_kind(&g->s, a) == F_TRUE || node_kind(&g->s, b) == F_FALSE) return true;
    bool both = node_kind(&g->s, a) == F_AND, list = node_kind(&g->s, b) == F_AND;
    const uint32_t *x = both ? node_words(&g->s, a) : &a, *y = list ? node_words(&g->s, b) : &b;
    uint32_t n_x = both ? node_n(&g->s, a) : 1, n_y = list ? node_n(&g->s, b) : 1;
    for (uint32_t i = 0; i < n_x; i++) {
        bool found = false;
        for (uint32_t k = 0; k < n_y && !found; k++) found = x[i] == y[k];
        if (!found) return false;
    }
    return true;
}

static bool has_pair(const struct pair *p, uint32_t n, struct pair x)
{
    for (uint32_t i = 0; i < n; i++)
        if (p[i].a == x.a && p[i].b == x.b) return true;
    return false;
}

static bool has_group(const struct object *o, const struct group *wanted)
{
    const uint32_t *at = o->groups;
    for (uint32_t i = 0; i < o->n_groups; i++) {
        struct group x = object_group(&at);
        if (x.other == wanted->other && x.n_patterns == wanted->n_patterns &&
            memcmp(x.patterns, wanted->patterns, x.n_patterns * sizeof *x.patterns) == 0)
            return true;
    }
    return false;
}

bool object_covers(struct grammar *g, node a, node b)
{
    struct object x = object_read(g, a), y = object_read(g, b);
    const uint32_t *at = x.groups;
    if (x.least > y.least || x.most < y.most) return false;
    if (x.names != y.names && x.names != re_any_text(&g->s)) return false;
    for (uint32_t i = 0; i < x.n_groups; i++) {
        struct group group = object_group(&at);
        if (!has_group(&y, &group)) return false;
    }
    for (uint32_t i = 0; i < x.n_some; i++)
        if (!has_pair(y.some, y.n_some, x.some[i])) return false;
    for (uint32_t i = 0; i < x.n_needs; i++)
        if (!has_pair(y.needs, y.n_needs, x.needs[i])) return false;
    for (uint32_t i = 0; i < x.n_members; i++) {
        const struct member *m = find(g, &y, x.members[i].name);
        if (x.members[i].required && !(m && m->required)) return false;
        if (!implies(g, m ? m->f : object_formula(g, &y, x.members[i].name), x.members[i].f))
            return false;
    }
    /* Names that only b knows are held to a's groups, and b's groups are at least those. */
    for (uint32_t i = 0; i < y.n_members; i++)
        if (!find(g, &x, y.members[i].name) &&
            !implies(g, y.members[i].f, object_formula(g, &x, y.members[i].name)))
            return false;
    return true;
}
