/* re_steps.c - derivatives: where each code point leads, and whether anything is left to read. */
#include <stdlib.h>

#include "base/utf8.h"
#include "grammar/number.h"
#include "grammar/re.h"

enum { MAX_DEPTH = 400, MAX_COUNTED = 300 /* code points */ };

/* Steps that are being put together. */
struct draft {
    struct step *at;
    uint32_t n, cap;
};

static void draft_put(struct store *s, struct draft *d, uint32_t first, uint32_t last, node to)
{
    bool halves = first >= 0xd800 && last <= 0xdfff; /* of pairs: no text has one by itself */
    if (to == 0 || halves || s->status) return;
    if (d->n && d->at[d->n - 1].to == to && d->at[d->n - 1].last + 1 == first) {
        d->at[d->n - 1].last = last;
        return;
    }
    if (d->n == d->cap) {
        uint32_t cap = d->cap ? 2 * d->cap : 32;
        struct step *p = mem_grow(d->at, cap, sizeof *p);
        if (!p) {
            store_fail(s, BZ_ERR_MEMORY, "out of memory for a grammar");
            return;
        }
        d->at = p;
        d->cap = cap;
    }
    d->at[d->n++] = (struct step) { first, last, to };
}

/* A list of steps, each of which goes on with `then`, unless that is 0. */
struct source {
    const struct steps *steps;
    node then;
    uint32_t at;
};

static node target(struct store *s, const struct source *from, uint32_t i)
{
    node to = from->steps->at[i].to;
    return from->then ? re_cat(s, to, from->then) : to;
}

static node combine(struct store *s, enum kind kind, const node *x, uint32_t n)
{
    switch (kind) {
    case RE_AND: return re_and(s, x, n);
    case RE_NOT: return re_not(s, x[0]);
    case RE_TUPLE: return re_tuple(s, x, n);
    default: return re_alt(s, x, n);
    }
}

/* All places where some list begins or ends a range. */
static void find_borders(struct store *s, const struct source *from, uint32_t n, struct vec *v)
{
    vec_push(s, v, 0);
    for (uint32_t i = 0; i < n; i++)
        for (uint32_t j = 0; j < from[i].steps->n; j++) {
            vec_push(s, v, from[i].steps->at[j].first);
            vec_push(s, v, from[i].steps->at[j].last + 1);
        }
    vec_push(s, v, LAST_CP + 1);
    vec_sort(v);
}

/* Several lists into one. Where a list has no step its operand has come to nothing. */
static void sweep(struct store *s, enum kind kind, struct source *from, uint32_t n, struct draft *d)
{
    struct vec borders = { 0 }, to = { 0 };
    find_borders(s, from, n, &borders);
    for (uint32_t b = 0; b + 1 < borders.n && !s->status; b++) {
        uint32_t cp = borders.w[b];
        bool any = kind == RE_NOT;
        to.n = 0;
        for (uint32_t i = 0; i < n; i++) {
            const struct steps *l = from[i].steps;
            while (from[i].at < l->n && l->at[from[i].at].last < cp) from[i].at++;
            bool in = from[i].at < l->n && l->at[from[i].at].first <= cp;
            node t = in ? target(s, &from[i], from[i].at) : 0;
            any |= t != 0;
            if (t == 0 && kind == RE_AND) {
                any = false;
                break;
            }
            if (t != 0 || kind == RE_TUPLE || kind == RE_NOT) vec_push(s, &to, t);
        }
        if (any && !s->status)
            draft_put(s, d, cp, borders.w[b + 1] - 1, combine(s, kind, to.w, to.n));
    }
    vec_free(&borders);
    vec_free(&to);
}

static void steps_of_list(struct store *s, enum kind kind, const node *x, uint32_t n,
                          struct draft *d)
{
    struct source *from = mem_alloc(n, sizeof *from);
    if (!from) store_fail(s, BZ_ERR_MEMORY, "out of memory for a grammar");
    for (uint32_t i = 0; i < n && !s->status; i++) from[i].steps = re_steps(s, x[i]);
    if (!s->status) sweep(s, kind, from, n, d);
    mem_free(from);
}

static void steps_then(struct store *s, node x, node then, struct draft *d)
{
    const struct steps *l = re_steps(s, x);
    struct source from = { l, then, 0 };
    for (uint32_t i = 0; l && i < l->n; i++)
        draft_put(s, d, l->at[i].first, l->at[i].last, target(s, &from, i));
}

static void steps_of_cat(struct store *s, const uint32_t *w, struct draft *d)
{
    if (!re_nullable(s, w[0])) {
        steps_then(s, w[0], w[1], d);
        return;
    }
    struct source from[2] = { { re_steps(s, w[0]), w[1], 0 }, { re_steps(s, w[1]), 0, 0 } };
    if (!s->status) sweep(s, RE_ALT, from, 2, d);
}

static void steps_of_rep(struct store *s, const uint32_t *w, struct draft *d)
{
    uint32_t least = w[1] ? w[1] - 1 : 0, most = w[2] == RE_INF ? RE_INF : w[2] - 1;
    steps_then(s, w[0], re_rep(s, w[0], least, most), d);
}

static void steps_of_rule(struct store *s, uint32_t rule, struct draft *d)
{
    if (s->rules[rule].busy) {
        store_fail(s, BZ_ERR_UNSUPPORTED, "a rule that begins with itself");
        return;
    }
    s->rules[rule].busy = true;
    steps_then(s, s->rules[rule].body, 0, d);
    s->rules[rule].busy = false;
}

static void find_steps(struct store *s, node x, struct draft *d)
{
    const uint32_t *w = node_words(s, x);
    uint32_t n = node_n(s, x);
    node nothing = re_rep(s, 0, 0, 1);
    switch (node_kind(s, x)) {
    case RE_SET:
        for (uint32_t i = 0; i < n; i += 2) draft_put(s, d, w[i], w[i + 1], nothing);
        break;
    case RE_CAT: steps_of_cat(s, w, d); break;
    case RE_ALT:
    case RE_AND:
    case RE_NOT:
    case RE_TUPLE: steps_of_list(s, node_kind(s, x), w, n, d); break;
    case RE_REP: steps_of_rep(s, w, d); break;
    case RE_MAP:
        for (uint32_t i = 3; i < n; i += 2) draft_put(s, d, w[i], w[i], w[i + 1]);
        break;
    case RE_MOD:
    case RE_CMP:
        for (uint32_t c = '-'; c <= '9'; c++) draft_put(s, d, c, c, number_step(s, x, c));
        break;
    case RE_RULE: steps_of_rule(s, w[0], d); break;
    default: break;
    }
}

const struct steps *re_steps(struct store *s, node x)
{
    static const struct steps none;
    if (s->status) return NULL;
    if (x == 0) return &none;
    if (s->nodes[x].data) return s->nodes[x].data;
    if (s->depth >= MAX_DEPTH) {
        store_fail(s, BZ_ERR_LIMIT, "the expression is nested too deeply");
        return NULL;
    }
    struct draft d = { 0 };
    s->depth++;
    find_steps(s, x, &d);
    s->depth--;
    struct steps *l = store_alloc(s, 1 + 3 * (size_t)d.n);
    if (l) {
        l->n = d.n;
        if (d.n) memcpy(l->at, d.at, d.n * sizeof *d.at);
        s->nodes[x].data = l;
    }
    mem_free(d.at);
    return l;
}

node re_step(struct store *s, node x, uint32_t cp)
{
    const struct steps *l = re_steps(s, x);
    if (!l) return 0;
    uint32_t lo = 0, hi = l->n;
    while (lo < hi) {
        uint32_t mid = (lo + hi) / 2;
        if (l->at[mid].last < cp) lo = mid + 1;
        else hi = mid;
    }
    return lo < l->n && l->at[lo].first <= cp ? l->at[lo].to : 0;
}

bool re_matches(struct store *s, node x, struct str text)
{
    for (size_t i = 0, used; i < text.n && x; i += used)
        x = re_step(s, x, utf8_decode(text.p + i, text.n - i, &used));
    return re_nullable(s, x);
}

/* ---- is anything left? ---- */

/* Depth first, so that a long way to the end is walked once. */
bool re_live(struct store *s, node x)
{
    enum re_flag found = RE_DEAD;
    if (s->nodes[x].flags & (RE_LIVE | RE_DEAD)) return s->nodes[x].flags & RE_LIVE;
    if (x == 0) return false;
    struct vec seen = { 0 }, todo = { 0 };
    uint32_t stamp = ++s->stamp;
    vec_push(s, &todo, x);
    while (todo.n && found == RE_DEAD) {
        node at = todo.w[--todo.n];
        if (s->nodes[at].aux == stamp || s->nodes[at].flags & RE_DEAD) continue;
        if (s->nodes[at].flags & RE_LIVE || seen.n >= s->max_search) found = RE_LIVE;
        s->nodes[at].aux = stamp;
        vec_push(s, &seen, at);
        const struct steps *l = re_steps(s, at);
        for (uint32_t k = l ? l->n : 0; k > 0; k--) vec_push(s, &todo, l->at[k - 1].to);
        if (!l) found = RE_LIVE; /* after a failure nothing is known */
    }
    if (found == RE_LIVE) seen.n = s->status ? 0 : 1; /* of the others nothing is known */
    for (uint32_t i = 0; i < seen.n; i++) s->nodes[seen.w[i]].flags |= (uint8_t)found;
    vec_free(&seen);
    vec_free(&todo);
    return found == RE_LIVE;
}

static uint32_t count(struct store *s, node x, uint32_t most, uint32_t depth)
{
    if (!re_live(s, x) || most == 0) return 0;
    if (depth == MAX_COUNTED) return most;
    const struct steps *l = re_steps(s, x);
    uint32_t n = re_nullable(s, x);
    for (uint32_t i = 0; l && i < l->n && n < most; i++) {
        uint64_t each = count(s, l->at[i].to, most - n, depth + 1);
        uint64_t all = n + each * (l->at[i].last - l->at[i].first + 1);
        n = all < most ? (uint32_t)all : most;
    }
    return n;
}

uint32_t re_count(struct store *s, node x, uint32_t most)
{
    return count(s, x, most, 0);
}
