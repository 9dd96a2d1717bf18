/* machine_key.c - keys of objects: what a name half read can still become, and where an object
 * stands behind a name.
 */
#include "grammar/object_state.h"

enum { MAX_DEEP = 300 };

/* ---- names that are in no member ---- */

node unknown_formula(struct grammar *g, const struct object *o, const bool *matches)
{
    const uint32_t *at = o->groups;
    node f = f_true(g);
    for (uint32_t i = 0; i < o->n_groups; i++) {
        struct group group = object_group(&at);
        bool any = false;
        for (uint32_t k = 0; k < group.n_patterns; k++, matches++) {
            if (!*matches) continue;
            any = true;
            f = f_and2(g, f, group.patterns[k].b);
        }
        if (!any) f = f_and2(g, f, group.other);
    }
    return f;
}

/* If the name ends here: what its value must be. False: it is known, or was there, or is not of
 * propertyNames. */
static bool unknown_ends(const struct view *v, node tuple, node *f)
{
    struct store *s = &v->g->s;
    const uint32_t *w = node_words(s, tuple);
    uint32_t n = v->info->n_patterns;
    if (w[K_NAMES] && re_nullable(s, w[K_NAMES])) return false;
    if (w[K_OTHERS] && re_nullable(s, w[K_OTHERS])) return false;
    if (!re_nullable(s, w[K_PATTERNS + n])) return false;
    bool *matches = mem_alloc(n, sizeof *matches);
    if (!matches) store_fail(s, BZ_ERR_MEMORY, "out of memory for a grammar");
    for (uint32_t i = 0; matches && i < n; i++) matches[i] = re_nullable(s, w[K_PATTERNS + i]);
    *f = matches ? unknown_formula(v->g, &v->o, matches) : 0;
    mem_free(matches);
    return !s->status && f_fits(v->g, *f, v->w[S_LEFT]);
}

/* The `some` that a name is of, if it ends here. */
static uint32_t named_by(const struct view *v, node tuple)
{
    const uint32_t *w = node_words(&v->g->s, tuple) + K_PATTERNS + v->info->n_patterns + 1;
    uint32_t named = 0;
    for (uint32_t k = 0; k < v->o.n_some; k++) named |= (uint32_t)re_nullable(&v->g->s, w[k]) << k;
    return named;
}

/* Can an object go on with a name that ends here? */
static bool is_end(const struct view *v, node tuple)
{
    struct vec ways = { 0 };
    node f;
    if (!unknown_ends(v, tuple, &f)) return false;
    if (!object_is_searched(v)) return true;
    put_ways(v, v->o.n_members, f, named_by(v, tuple), v->w[S_OTHERS], &ways);
    bool any = ways.n > 0;
    vec_free(&ways);
    return any;
}

/* Certainly no name can come of it: propertyNames is broken, or some group allows no value, neither
 * by a pattern that may still match nor by the rest. */
static bool is_dead(const struct view *v, node tuple)
{
    const uint32_t *pattern = node_words(&v->g->s, tuple) + K_PATTERNS, *at = v->o.groups;
    for (uint32_t i = 0; i < v->o.n_groups; i++) {
        struct group group = object_group(&at);
        bool any = f_fits(v->g, group.other, v->w[S_LEFT]);
        for (uint32_t k = 0; k < group.n_patterns; k++, pattern++)
            any = any ||
                  (f_fits(v->g, group.patterns[k].b, v->w[S_LEFT]) && re_live(&v->g->s, *pattern));
        if (!any) return true;
    }
    return !re_live(&v->g->s, *pattern); /* propertyNames */
}

/* Any name will do, or none. */
static bool is_free(const struct view *v, node tuple)
{
    return v->info->n_patterns == 0 && !object_is_searched(v) &&
           node_words(&v->g->s, tuple)[K_PATTERNS] == re_any_text(&v->g->s);
}

/* Depth first, as far as a name that may end. */
static bool search(const struct view *v, node tuple)
{
    struct store *s = &v->g->s;
    struct vec todo = { 0 };
    uint32_t stamp = ++s->stamp, n = 0;
    bool found = false;
    vec_push(s, &todo, tuple);
    while (todo.n && !found && !s->status) {
        node at = todo.w[--todo.n];
        if (s->nodes[at].aux == stamp || is_dead(v, at)) continue;
        s->nodes[at].aux = stamp;
        found = is_end(v, at) || n++ == s->max_search;
        const struct steps *l = found ? NULL : re_steps(s, at);
        for (uint32_t k = l ? l->n : 0; k > 0; k--) vec_push(s, &todo, l->at[k - 1].to);
    }
    vec_free(&todo);
    return found;
}

/* What the names that may come depend on: for most objects their shape alone. */
node object_key_kind(struct grammar *g, node state)
{
    struct view v;
    if (!object_look(g, state, &v) || object_is_searched(&v)) return state;
    return store_put(&g->s, KEY_LIVES, (uint32_t[]) { v.w[S_SHAPE], v.w[S_LEFT] }, 2);
}

bool unknown_lives(const struct view *v, node tuple)
{
    struct store *s = &v->g->s;
    if (is_free(v, tuple)) return plain_fits(v);
    if (is_dead(v, tuple)) return false;
    uint32_t key[] = { object_key_kind(v->g, v->state), tuple, 0 };
    node memo = store_put(s, KEY_LIVES, key, 3);
    if (!s->nodes[memo].aux) {
        bool lives = search(v, tuple);
        if (s->status) return false;
        s->nodes[memo].aux = lives ? 1 : 2;
    }
    return s->nodes[memo].aux == 1;
}

static uint32_t count(const struct view *v, node tuple, uint32_t most, uint32_t depth)
{
    struct store *s = &v->g->s;
    node f;
    if (s->status || !unknown_lives(v, tuple)) return 0;
    if (depth == MAX_DEEP) return most;
    uint32_t n = unknown_ends(v, tuple, &f);
    const struct steps *l = re_steps(s, tuple);
    for (uint32_t k = 0; l && k < l->n && n < most; k++) {
        uint64_t each = count(v, l->at[k].to, most - n, depth + 1);
        uint64_t all = n + each * (l->at[k].last - l->at[k].first + 1);
        n = all < most ? (uint32_t)all : most;
    }
    return n < most ? n : most;
}

uint32_t unknown_count(const struct view *v, node tuple, uint32_t most)
{
    if (is_free(v, tuple)) return plain_fits(v) ? most : 0;
    return count(v, tuple, most, 0);
}

/* ---- keys half read ---- */

static bool tuple_lives(struct grammar *g, node state, const struct object_info *i, node tuple,
                        bool quoted)
{
    struct view v;
    if (i->any_name) return true;
    if (!object_look(g, state, &v)) return false;
    const uint32_t *w = node_words(&g->s, tuple);
    if (w[K_NAMES]) {
        const uint32_t *tree = node_words(&g->s, w[K_NAMES]);
        for (uint32_t k = tree[1] - 1; k < tree[2]; k++)
            if (bit(i->allowed, k) && v.info->quoted[k] == quoted) return true;
    }
    return i->unknown && unknown_lives(&v, tuple);
}

bool object_key_lives(struct grammar *g, node state, node lifted)
{
    const struct object_info *i = object_info(g, state);
    struct range can[MAX_PENDING];
    node tuple = lift_re(&g->s, lifted);
    bool quoted = lift_kind(&g->s, lifted) == LIFT_CALL;
    if (!i) return false;
    uint32_t n = i->any_name ? 0 : lift_pending(&g->s, lifted, can);
    if (n == 0) return tuple_lives(g, state, i, tuple, quoted);
    const struct steps *l = re_steps(&g->s, tuple);
    for (uint32_t k = 0; l && k < l->n; k++) {
        bool meet = false;
        for (uint32_t r = 0; r < n; r++)
            meet |= l->at[k].first <= can[r].last && l->at[k].last >= can[r].first;
        if (meet && tuple_lives(g, state, i, l->at[k].to, quoted)) return true;
    }
    return false;
}

node object_key_base(struct grammar *g, node lifted)
{
    struct store *s = &g->s;
    const uint32_t *w = node_words(s, lifted);
    struct vec x = { 0 };
    vec_put(s, &x, node_words(s, w[1]), node_n(s, w[1]));
    if (!s->status) x.w[K_NAMES] = x.w[K_OTHERS] = 0;
    const uint32_t base[] = { w[0], re_tuple(s, x.w, x.n), w[2] };
    vec_free(&x);
    return store_put(s, LIFTED, base, 3);
}

/* ---- keys that end ---- */

/* The text of a key between its quotes, without escapes. */
static node add_name(struct machine *m, node others, size_t from)
{
    struct store *s = &m->g->s;
    struct arena a = { 0 };
    struct json *j = NULL;
    struct buf b = { 0 };
    if (m->g->calls) return re_words_add(s, others, (struct str) { m->text + from, m->pos - from });
    buf_putc(&b, '"');
    buf_put(&b, m->text + from, m->pos - from);
    buf_putc(&b, '"');
    if (b.failed || json_parse(&j, buf_str(&b), &a, NULL))
        store_fail(s, BZ_ERR_MEMORY, "out of memory for a grammar");
    else others = re_words_add(s, others, j->text);
    buf_free(&b);
    arena_free(&a);
    return others;
}

/* The state behind a member: i is its number, or n_members. */
static node state_after(const struct view *v, uint32_t i, node others, uint32_t found)
{
    struct store *s = &v->g->s;
    struct vec w = { 0 };
    uint32_t bound = v->o.most != UINT32_MAX ? v->o.most : v->o.least;
    vec_put(s, &w, v->w, S_SEEN + (v->o.n_members + 31) / 32);
    if (!s->status) {
        if (w.w[S_COUNT] < bound) w.w[S_COUNT]++;
        w.w[S_FOUND] = found;
        w.w[S_OTHERS] = others;
        if (i < v->o.n_members) w.w[S_SEEN + i / 32] |= 1u << i % 32;
        if (!v->g->options.any_form)
            w.w[S_PLACE] = i < v->o.n_members ? v->o.members[i].order + 1 : UINT32_MAX;
    }
    node x = store_put(s, OBJECT_STATE, w.w, w.n);
    vec_free(&w);
    return x;
}

void put_ways(const struct view *v, uint32_t i, node f, uint32_t named, node others,
              struct vec *out)
{
    struct grammar *g = v->g;
    uint32_t found = v->w[S_FOUND], optional = 0;
    for (uint32_t k = 0; k < v->o.n_some; k++) {
        if (found >> k & 1 || !(named >> k & 1)) continue;
        if (node_kind(&g->s, v->o.some[k].b) == F_TRUE) found |= 1u << k;
        else optional |= 1u << k;
    }
    for (uint32_t set = optional; !g->s.status; set = (set - 1) & optional) { /* every subset */
        node all = f;
        for (uint32_t k = 0; k < v->o.n_some; k++)
            if (set >> k & 1) all = f_and2(g, all, v->o.some[k].b);
        if (optional) visit(g);
        if (f_fits(g, all, v->w[S_LEFT])) {
            node state = state_after(v, i, others, found | set);
            if (object_live(g, state)) vec_put(&g->s, out, (const uint32_t[]) { all, state }, 2);
        }
        if (set == 0) break;
    }
}

void object_key_ends(struct machine *m, struct thread key, struct threads *out)
{
    struct grammar *g = m->g;
    struct view v;
    struct vec ways = { 0 };
    node state = thread_a(key), tuple = lift_re(&g->s, key.b), f;
    const struct object_info *info = object_info(g, state);
    if (!info || !object_look(g, state, &v)) return;
    node names = node_words(&g->s, tuple)[K_NAMES];
    enum lift kind = lift_kind(&g->s, key.b);
    if (names && re_nullable(&g->s, names)) {
        uint32_t i = node_words(&g->s, names)[0] - 1;
        if (bit(info->allowed, i) && v.info->quoted[i] == (kind == LIFT_CALL))
            put_ways(&v, i, v.o.members[i].f, v.info->named[i], v.w[S_OTHERS], &ways);
    } else if (info->unknown && unknown_ends(&v, tuple, &f) && machine_needs_text(m, key.c)) {
        node others = m->text ? add_name(m, v.w[S_OTHERS], key.c) : v.w[S_OTHERS];
        put_ways(&v, v.o.n_members, f, named_by(&v, tuple), others, &ways);
    }
    for (uint32_t i = 0; i < ways.n; i += 2)
        threads_put(g, out,
                    thread_make(kind == LIFT_BARE ? H_VALUE : H_COLON, ways.w[i + 1], ways.w[i], 0,
                                key.below));
    vec_free(&ways);
}
