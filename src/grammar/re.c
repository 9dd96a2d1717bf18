/* re.c - expressions: what they are made of, simplified where that is cheap. */
#include "grammar/re.h"

#include "base/utf8.h"

static bool has(const struct store *s, node x, unsigned flag)
{
    return s->nodes[x].flags & flag;
}

bool re_nullable(const struct store *s, node x)
{
    return has(s, x, RE_NULLABLE);
}

/* An expression is LIVE from the start where nothing inside could make it empty. */
static node put(struct store *s, enum kind kind, const uint32_t *w, uint32_t n, unsigned flags)
{
    node x = store_put(s, kind, w, n);
    if (s->status) return 0;
    if (!(flags & RE_HARD)) flags |= RE_LIVE;
    if (flags & RE_NULLABLE) flags |= RE_LIVE;
    if (!has(s, x, RE_READY)) s->nodes[x].flags = (uint8_t)(flags | RE_READY);
    return x;
}

static node eps(struct store *s)
{
    return put(s, RE_EPS, NULL, 0, RE_NULLABLE);
}

/* ---- sets of code points ---- */

void set_add(struct store *s, struct vec *v, uint32_t first, uint32_t last)
{
    vec_put(s, v, (uint32_t[]) { first, last }, 2);
}

/* Insertion sort where it is nearly sorted, as classes are written; then joined. */
void set_tidy(struct store *s, struct vec *v)
{
    (void)s;
    for (uint32_t i = 2; i + 1 < v->n; i += 2)
        for (uint32_t j = i; j > 0 && v->w[j - 2] > v->w[j]; j -= 2)
            for (uint32_t k = 0; k < 2; k++) {
                uint32_t t = v->w[j + k];
                v->w[j + k] = v->w[j - 2 + k];
                v->w[j - 2 + k] = t;
            }
    uint32_t n = 0;
    for (uint32_t i = 0; i + 1 < v->n; i += 2) {
        if (n && v->w[i] <= v->w[n - 1] + 1) {
            if (v->w[i + 1] > v->w[n - 1]) v->w[n - 1] = v->w[i + 1];
        } else {
            v->w[n] = v->w[i];
            v->w[n + 1] = v->w[i + 1];
            n += 2;
        }
    }
    v->n = n;
}

void set_negate(struct store *s, struct vec *v)
{
    struct vec out = { 0 };
    uint32_t from = 0;
    set_tidy(s, v);
    for (uint32_t i = 0; i + 1 < v->n; i += 2) {
        if (v->w[i] > from) set_add(s, &out, from, v->w[i] - 1);
        from = v->w[i + 1] + 1;
    }
    if (from <= LAST_CP) set_add(s, &out, from, LAST_CP);
    vec_free(v);
    *v = out;
}

node re_set(struct store *s, const uint32_t *ranges, uint32_t n_ranges)
{
    bool any = false; /* halves of pairs (0xd800..0xdfff) are no code points */
    for (uint32_t i = 0; i < 2 * n_ranges; i += 2)
        any |= ranges[i] < 0xd800 || ranges[i + 1] > 0xdfff;
    return any ? put(s, RE_SET, ranges, 2 * n_ranges, 0) : 0;
}

node re_range(struct store *s, uint32_t first, uint32_t last)
{
    return re_set(s, (uint32_t[]) { first, last }, 1);
}

node re_any(struct store *s)
{
    return re_range(s, 0, LAST_CP);
}

node re_any_text(struct store *s)
{
    return re_rep(s, re_any(s), 0, RE_INF);
}

/* ---- composition ---- */

static node cat2(struct store *s, node a, node b)
{
    if (a == 0 || b == 0) return 0;
    if (node_kind(s, a) == RE_EPS) return b;
    if (node_kind(s, b) == RE_EPS) return a;
    unsigned flags = (s->nodes[a].flags | s->nodes[b].flags) & RE_HARD;
    if (re_nullable(s, a) && re_nullable(s, b)) flags |= RE_NULLABLE;
    return put(s, RE_CAT, (uint32_t[]) { a, b }, 2, flags);
}

/* Chains lean to the right, so that equal ones are equal nodes. No recursion: they can be long. */
node re_cat(struct store *s, node a, node b)
{
    if (node_kind(s, a) != RE_CAT) return cat2(s, a, b);
    struct vec v = { 0 };
    for (; node_kind(s, a) == RE_CAT; a = node_words(s, a)[1]) vec_push(s, &v, node_words(s, a)[0]);
    b = cat2(s, a, b);
    while (v.n) b = cat2(s, v.w[--v.n], b);
    vec_free(&v);
    return b;
}

/* The operands of an n-ary node, those of the same kind taken apart. */
static void flatten(struct store *s, struct vec *v, enum kind kind, const node *x, uint32_t n)
{
    for (uint32_t i = 0; i < n; i++) {
        if (node_kind(s, x[i]) == kind) vec_put(s, v, node_words(s, x[i]), node_n(s, x[i]));
        else vec_push(s, v, x[i]);
    }
    vec_sort(v);
}

/* Is it every text? */
static bool is_all(const struct store *s, node x)
{
    if (node_kind(s, x) != RE_REP) return false;
    const uint32_t *w = node_words(s, x);
    if (w[1] != 0 || w[2] != RE_INF || node_kind(s, w[0]) != RE_SET) return false;
    const uint32_t *r = node_words(s, w[0]);
    return r[0] == 0 && r[1] == LAST_CP;
}

/* x{0,5} next to x{0,9}: the shorter one adds nothing. Counted patterns make such pairs in every
 * step, and without this their states would be as many as the pairs. */
static void drop_shorter(const struct store *s, struct vec *v)
{
    uint32_t n = 0;
    for (uint32_t i = 0; i < v->n; i++) {
        bool covered = false;
        const uint32_t *a = node_words(s, v->w[i]);
        for (uint32_t j = 0; j < v->n && !covered; j++) {
            const uint32_t *b = node_words(s, v->w[j]);
            if (i == j || node_kind(s, v->w[i]) != RE_REP || node_kind(s, v->w[j]) != RE_REP)
                continue;
            covered = a[0] == b[0] && b[1] <= a[1] && a[2] <= b[2];
        }
        if (!covered) v->w[n++] = v->w[i];
    }
    v->n = n;
}

/* One-code-point operands become one set. */
static void unite_sets(struct store *s, struct vec *v)
{
    struct vec set = { 0 };
    uint32_t n = 0, n_sets = 0;
    for (uint32_t i = 0; i < v->n; i++) n_sets += node_kind(s, v->w[i]) == RE_SET;
    if (n_sets < 2) return;
    for (uint32_t i = 0; i < v->n; i++) {
        if (node_kind(s, v->w[i]) == RE_SET)
            vec_put(s, &set, node_words(s, v->w[i]), node_n(s, v->w[i]));
        else v->w[n++] = v->w[i];
    }
    v->n = n;
    set_tidy(s, &set);
    vec_push(s, v, re_set(s, set.w, set.n / 2));
    vec_sort(v);
    vec_free(&set);
}

node re_alt(struct store *s, const node *x, uint32_t n)
{
    struct vec v = { 0 };
    flatten(s, &v, RE_ALT, x, n);
    if (v.n > 1) unite_sets(s, &v);
    if (v.n > 1 && v.n < 64) drop_shorter(s, &v);
    unsigned flags = 0;
    node all = 0;
    bool can_be_empty = false;
    uint32_t kept = 0, at_eps = UINT32_MAX;
    for (uint32_t i = 0; i < v.n; i++) {
        if (v.w[i] == 0) continue;
        if (is_all(s, v.w[i])) all = v.w[i];
        if (node_kind(s, v.w[i]) == RE_EPS) at_eps = kept;
        else can_be_empty |= re_nullable(s, v.w[i]);
        flags |= s->nodes[v.w[i]].flags & (RE_HARD | RE_NULLABLE);
        v.w[kept++] = v.w[i];
    }
    if (can_be_empty && at_eps != UINT32_MAX) { /* another one has the empty text already */
        memmove(v.w + at_eps, v.w + at_eps + 1, (kept - at_eps - 1) * sizeof *v.w);
        kept--;
    }
    node y = all ? all : !kept ? 0 : kept == 1 ? v.w[0] : put(s, RE_ALT, v.w, kept, flags);
    vec_free(&v);
    return y;
}

node re_alt2(struct store *s, node a, node b)
{
    return a == b ? a : re_alt(s, (node[]) { a, b }, 2);
}

/* A repeated set of code points under a limit of length: the limit goes into the repetition. */
static bool limit_repeat(struct store *s, node *a, node b)
{
    if (node_kind(s, *a) != RE_REP || node_kind(s, b) != RE_REP) return false;
    const uint32_t *x = node_words(s, *a), *y = node_words(s, b);
    if (node_kind(s, x[0]) != RE_SET || y[0] != re_any(s)) return false;
    uint32_t least = x[1] > y[1] ? x[1] : y[1], most = x[2] < y[2] ? x[2] : y[2];
    *a = least > most ? 0 : re_rep(s, x[0], least, most);
    return true;
}

/* Is b a limit of length that every text of a keeps? */
static bool keeps_length(struct store *s, node a, node b)
{
    if (node_kind(s, b) != RE_REP || node_words(s, b)[0] != re_any(s)) return false;
    uint32_t least, most;
    re_length(s, a, &least, &most);
    return node_words(s, b)[1] <= least && most <= node_words(s, b)[2];
}

static void limit_lengths(struct store *s, struct vec *v)
{
    for (uint32_t i = 0; i < v->n; i++)
        for (uint32_t j = 0; j < v->n; j++) {
            if (i == j || v->w[i] == 0) continue;
            if (!limit_repeat(s, &v->w[i], v->w[j]) && !keeps_length(s, v->w[i], v->w[j])) continue;
            v->w[j] = v->w[v->n - 1];
            v->n--;
            limit_lengths(s, v);
            return;
        }
}

node re_and(struct store *s, const node *x, uint32_t n)
{
    struct vec v = { 0 };
    flatten(s, &v, RE_AND, x, n);
    if (v.n > 1 && v.n < 16) limit_lengths(s, &v);
    vec_sort(&v);
    bool empty = n > 0 && v.n == 0, nullable = true, only_eps = false;
    uint32_t kept = 0;
    for (uint32_t i = 0; i < v.n; i++) {
        empty |= v.w[i] == 0;
        nullable &= re_nullable(s, v.w[i]);
        only_eps |= node_kind(s, v.w[i]) == RE_EPS;
        if (!is_all(s, v.w[i])) v.w[kept++] = v.w[i];
    }
    node y = empty       ? 0
             : only_eps  ? (nullable ? eps(s) : 0)
             : kept == 0 ? re_any_text(s)
             : kept == 1 ? v.w[0]
                         : put(s, RE_AND, v.w, kept, RE_HARD | (nullable ? RE_NULLABLE : 0u));
    vec_free(&v);
    return y;
}

node re_and2(struct store *s, node a, node b)
{
    return a == b ? a : re_and(s, (node[]) { a, b }, 2);
}

node re_not(struct store *s, node x)
{
    if (node_kind(s, x) == RE_NOT) return node_words(s, x)[0];
    if (x == 0) return re_any_text(s);
    if (is_all(s, x)) return 0;
    return put(s, RE_NOT, &x, 1, RE_HARD | (re_nullable(s, x) ? 0u : RE_NULLABLE));
}

node re_rep(struct store *s, node x, uint32_t least, uint32_t most)
{
    if (most == 0 || node_kind(s, x) == RE_EPS) return eps(s);
    if (x == 0) return least ? 0 : eps(s);
    if (least == 1 && most == 1) return x;
    if (node_kind(s, x) == RE_REP && node_words(s, x)[1] <= 1 && node_words(s, x)[2] == RE_INF) {
        if (node_words(s, x)[1] == 0) return x; /* (y*){m,n} */
        if (most == RE_INF && least <= 1)
            return re_rep(s, node_words(s, x)[0], least, most); /* (y+)* */
    }
    unsigned flags = s->nodes[x].flags & RE_HARD;
    if (re_nullable(s, x)) least = 0;
    if (least == 0) flags |= RE_NULLABLE;
    return put(s, RE_REP, (uint32_t[]) { x, least, most }, 3, flags);
}

node re_literal(struct store *s, struct str text)
{
    node x = eps(s);
    size_t end = text.n;
    while (end > 0) {
        size_t at = end - 1, used;
        while (at > 0 && ((unsigned char)text.p[at] & 0xc0) == 0x80 && end - at < 4) at--;
        uint32_t cp = utf8_decode(text.p + at, end - at, &used);
        if (used != end - at) { /* not UTF-8; bytes by themselves */
            at = end - 1;
            cp = (unsigned char)text.p[at];
        }
        x = re_cat(s, re_range(s, cp, cp), x);
        end = at;
    }
    return x;
}

node re_tuple(struct store *s, const node *x, uint32_t n)
{
    return put(s, RE_TUPLE, x, n, 0);
}

node re_rule(struct store *s, bool nullable, bool hard)
{
    if (s->n_rules == s->rules_cap) {
        uint32_t cap = s->rules_cap ? 2 * s->rules_cap : 16;
        struct rule *p = mem_grow(s->rules, cap, sizeof *p);
        if (!p) {
            store_fail(s, BZ_ERR_MEMORY, "out of memory for a grammar");
            return 0;
        }
        s->rules = p;
        s->rules_cap = cap;
    }
    uint32_t rule = s->n_rules++;
    s->rules[rule] = (struct rule) { .nullable = nullable, .hard = hard };
    return put(s, RE_RULE, &rule, 1, (nullable ? RE_NULLABLE : 0u) | (hard ? RE_HARD : 0u));
}

void re_rule_is(struct store *s, node rule, node body)
{
    if (s->status) return;
    s->rules[node_words(s, rule)[0]].body = body;
}

/* ---- lengths ---- */

static uint32_t add(uint32_t a, uint32_t b)
{
    return a > RE_INF - b ? RE_INF : a + b;
}

static uint32_t times(uint32_t a, uint32_t b)
{
    return a == 0 || b == 0 ? 0 : a > RE_INF / b ? RE_INF : a * b;
}

static void measure(struct store *s, node x, uint32_t *least, uint32_t *most, uint32_t *budget)
{
    const uint32_t *w = node_words(s, x);
    uint32_t n = node_n(s, x), a, b;
    *least = 0;
    *most = RE_INF;
    if (*budget == 0) return;
    --*budget;
    switch (node_kind(s, x)) {
    case RE_EPS: *most = 0; break;
    case RE_SET: *least = *most = 1; break;
    case RE_CAT:
        measure(s, w[0], least, most, budget);
        measure(s, w[1], &a, &b, budget);
        *least = add(*least, a);
        *most = add(*most, b);
        break;
    case RE_ALT:
        *least = RE_INF;
        *most = 0;
        for (uint32_t i = 0; i < n; i++) {
            measure(s, w[i], &a, &b, budget);
            if (a < *least) *least = a;
            if (b > *most) *most = b;
        }
        break;
    case RE_AND:
        for (uint32_t i = 0; i < n; i++) {
            measure(s, w[i], &a, &b, budget);
            if (a > *least) *least = a;
            if (b < *most) *most = b;
        }
        break;
    case RE_REP:
        measure(s, w[0], &a, &b, budget);
        *least = times(a, w[1]);
        *most = times(b, w[2]);
        break;
    default: break;
    }
}

void re_length(struct store *s, node x, uint32_t *least, uint32_t *most)
{
    uint32_t budget = 300;
    measure(s, x, least, most, &budget);
}
