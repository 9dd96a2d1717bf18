/* machine_object.c - objects half read: which members may come, and the automaton of their keys.
 *
 * words of an OBJECT_STATE: shape, members so far (up to what bounds need), which of `some` are
 * found, names so far that are in no member (a RE_MAP), the place in the schema's order, then bits
 * of the members that were read.
 *
 * A key is read by a RE_TUPLE: the tree of known names, the tree of other names so far, the
 * patterns of all groups, propertyNames, the names of `some`; and where a name of no pattern will
 * do, all texts.
 */
#include <stdlib.h>

#include "grammar/machine.h"
#include "grammar/object.h"
#include "grammar/regex.h"

enum { S_SHAPE, S_COUNT, S_FOUND, S_OTHERS, S_PLACE, S_SEEN };
enum { K_NAMES, K_OTHERS, K_PATTERNS };

/* What does not change while an object is read: of a shape. */
struct shape_info {
    node names; /* the tree of known names */
    node bare;  /* expression: names as keys; in calls those without quotes */
    node odd;   /* in calls: names that need them */
    uint32_t n_patterns;
    bool plain; /* a name of no pattern may come */
    bool unknown;
    bool *possible; /* of each member: there is a value for it */
    bool *quoted;   /* of each member, in calls: its name cannot be bare */
};

struct view {
    struct grammar *g;
    struct object o;
    const struct shape_info *info;
    const uint32_t *w; /* of the state */
};

static bool bit(const uint32_t *bits, uint32_t i)
{
    return bits[i / 32] >> i % 32 & 1;
}

/* ---- shapes ---- */

/* The formula of a name that is in no member, given which patterns it has: of each one whether it
 * matches. */
static node unknown_formula(struct grammar *g, const struct object *o, const bool *matches)
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

/* Keys of calls that are read back as they are without quotes: as chat_call.c reads them. */
static node bare_names(struct store *s)
{
#define SIGNS "\\x00:,{}\\[\\]\""
#define SPACE "\\s\\x1c-\\x1f\\x85"
    return regex_whole(s, str_of("[^'" SIGNS SPACE "](?:[^" SIGNS "]*[^" SIGNS SPACE "])?"));
}

/* How names become keys. */
static void find_forms(struct grammar *g, const struct object *o, struct shape_info *i)
{
    struct store *s = &g->s;
    i->bare = o->names;
    if (!g->calls) return;
    node bare = bare_names(s);
    i->bare = re_and2(s, o->names, bare);
    i->odd = re_and2(s, o->names, re_not(s, bare));
    for (uint32_t k = 0; k < o->n_members; k++)
        i->quoted[k] = !re_matches(s, bare, store_text(s, o->members[k].name));
}

static node names_tree(struct grammar *g, const struct object *o)
{
    struct str *v = mem_alloc(o->n_members, sizeof *v);
    if (!v) store_fail(&g->s, BZ_ERR_MEMORY, "out of memory for a grammar");
    for (uint32_t i = 0; v && i < o->n_members; i++) v[i] = store_text(&g->s, o->members[i].name);
    node x = v ? re_words(&g->s, v, o->n_members, true) : 0;
    mem_free(v);
    return x;
}

static const struct shape_info *shape_info(struct grammar *g, node shape, const struct object *o)
{
    struct shape_info *i = g->s.nodes[shape].data;
    if (i) return i;
    i = store_alloc(&g->s, sizeof *i / 4 + 1 + o->n_members / 2 + 1);
    if (!i) return NULL;
    i->possible = (bool *)(i + 1);
    i->quoted = i->possible + o->n_members;
    i->names = names_tree(g, o);
    for (uint32_t k = 0; k < o->n_members; k++) i->possible[k] = !f_empty(g, o->members[k].f);
    const uint32_t *at = o->groups;
    for (uint32_t k = 0; k < o->n_groups; k++) i->n_patterns += object_group(&at).n_patterns;
    bool *none = mem_alloc(i->n_patterns, sizeof *none);
    if (!none) store_fail(&g->s, BZ_ERR_MEMORY, "out of memory for a grammar");
    i->plain = none && !f_empty(g, unknown_formula(g, o, none));
    mem_free(none);
    i->unknown = re_live(&g->s, o->names) && (i->plain || i->n_patterns);
    find_forms(g, o, i);
    if (g->s.status) return NULL;
    g->s.nodes[shape].data = i;
    return i;
}

node object_state(struct grammar *g, node shape)
{
    struct object o = object_read(g, shape);
    struct vec w = { 0 };
    const uint32_t head[S_SEEN] = { shape };
    vec_put(&g->s, &w, head, S_SEEN);
    for (uint32_t i = 0; i < o.n_members; i += 32) vec_push(&g->s, &w, 0);
    node x = store_put(&g->s, OBJECT_STATE, w.w, w.n);
    vec_free(&w);
    return x;
}

static bool look(struct grammar *g, node state, struct view *v)
{
    if (node_kind(&g->s, state) != OBJECT_STATE) return false;
    v->g = g;
    v->w = node_words(&g->s, state);
    v->o = object_read(g, v->w[S_SHAPE]);
    v->info = shape_info(g, v->w[S_SHAPE], &v->o);
    return v->info != NULL;
}

/* ---- what may come next ---- */

static bool is_needed(const struct view *v, uint32_t i)
{
    const struct member *m = &v->o.members[i];
    if (m->required) return true;
    for (uint32_t k = 0; k < v->o.n_needs; k++) {
        if (v->o.needs[k].b != m->name) continue;
        for (uint32_t j = 0; j < v->o.n_members; j++)
            if (v->o.members[j].name == v->o.needs[k].a && bit(v->w + S_SEEN, j)) return true;
    }
    return false;
}

/* Would this member need one that cannot be, or cannot be any more? */
static bool needs_impossible(const struct view *v, uint32_t i)
{
    for (uint32_t k = 0; k < v->o.n_needs; k++) {
        if (v->o.needs[k].a != v->o.members[i].name) continue;
        for (uint32_t j = 0; j < v->o.n_members; j++) {
            bool late = !v->g->options.any_form && v->o.members[j].order < v->o.members[i].order;
            if (v->o.members[j].name == v->o.needs[k].b && !bit(v->w + S_SEEN, j) &&
                (late || !v->info->possible[j]))
                return true;
        }
    }
    return false;
}

struct plan {
    uint32_t n_missing; /* needed members that are not there yet */
    uint32_t first;     /* place of the first of them in the schema's order */
    uint32_t room;      /* members that still fit */
};

static struct plan make_plan(const struct view *v)
{
    struct plan p = { 0, UINT32_MAX, UINT32_MAX };
    if (v->o.most != UINT32_MAX) p.room = v->o.most > v->w[S_COUNT] ? v->o.most - v->w[S_COUNT] : 0;
    for (uint32_t i = 0; i < v->o.n_members; i++) {
        if (bit(v->w + S_SEEN, i) || !is_needed(v, i)) continue;
        p.n_missing++;
        if (v->o.members[i].order < p.first) p.first = v->o.members[i].order;
    }
    return p;
}

/* Members that could still come if this one is next, itself included: for minProperties. */
static uint32_t left_from(const struct view *v, uint32_t i)
{
    uint32_t n = 0;
    for (uint32_t k = 0; k < v->o.n_members; k++) {
        bool later = v->g->options.any_form || v->o.members[k].order >= v->o.members[i].order;
        n += later && v->info->possible[k] && !bit(v->w + S_SEEN, k);
    }
    return n;
}

static bool is_allowed(const struct view *v, const struct plan *p, uint32_t i)
{
    const struct member *m = &v->o.members[i];
    if (bit(v->w + S_SEEN, i) || !v->info->possible[i] || p->room == 0) return false;
    if (p->room <= p->n_missing && !is_needed(v, i)) return false;
    if (!v->g->options.any_form && (m->order < v->w[S_PLACE] || m->order > p->first)) return false;
    if (v->o.n_needs && needs_impossible(v, i)) return false;
    return v->o.least <= v->w[S_COUNT] + 1 || v->info->unknown ||
           v->w[S_COUNT] + left_from(v, i) >= v->o.least;
}

/* Before the first character of a key. */
static node key_start(const struct view *v, enum lift kind, node names)
{
    struct store *s = &v->g->s;
    struct vec x = { 0 };
    const uint32_t *at = v->o.groups;
    vec_push(s, &x, v->info->names);
    vec_push(s, &x, v->w[S_OTHERS]);
    for (uint32_t i = 0; i < v->o.n_groups; i++) {
        struct group group = object_group(&at);
        for (uint32_t k = 0; k < group.n_patterns; k++) vec_push(s, &x, group.patterns[k].a);
    }
    vec_push(s, &x, names);
    for (uint32_t i = 0; i < v->o.n_some; i++) vec_push(s, &x, v->o.some[i].a);
    vec_push(s, &x, v->info->plain ? re_any_text(s) : 0);
    node key = lift_start(s, kind, re_tuple(s, x.w, x.n));
    vec_free(&x);
    return key;
}

/* Can a member that may come next have a key of this form? */
static bool has_form(const struct view *v, const struct object_info *i, bool quoted)
{
    if (i->unknown && re_live(&v->g->s, quoted ? v->info->odd : v->info->bare)) return true;
    for (uint32_t k = 0; k < v->o.n_members; k++)
        if (bit(i->allowed, k) && v->info->quoted[k] == quoted) return true;
    return false;
}

static void start_keys(const struct view *v, struct object_info *i)
{
    const struct shape_info *s = v->info;
    enum lift kind = v->g->calls ? LIFT_BARE : v->g->options.any_form ? LIFT_JSON : LIFT_PLAIN;
    if (has_form(v, i, false)) i->key = key_start(v, kind, s->bare);
    if (has_form(v, i, true)) i->quoted_key = key_start(v, LIFT_CALL, s->odd);
    i->may_go_on = i->key || i->quoted_key;
}

const struct object_info *object_info(struct grammar *g, node state)
{
    struct view v;
    struct object_info *i = g->s.nodes[state].data;
    if (i || !look(g, state, &v)) return i;
    uint32_t n_words = (v.o.n_members + 31) / 32;
    i = store_alloc(&g->s, sizeof *i / 4 + 1 + n_words);
    if (!i) return NULL;
    struct plan p = make_plan(&v);
    bool all_found = v.w[S_FOUND] == (v.o.n_some < 32 ? (1u << v.o.n_some) - 1 : UINT32_MAX);
    for (uint32_t k = 0; k < v.o.n_members; k++)
        if (is_allowed(&v, &p, k)) i->allowed[k / 32] |= 1u << k % 32;
    i->unknown =
        v.info->unknown && p.room > p.n_missing && (g->options.any_form || p.n_missing == 0);
    i->any_name = i->unknown && v.info->n_patterns == 0 && v.info->bare == re_any_text(&g->s);
    i->may_close = p.n_missing == 0 && v.w[S_COUNT] >= v.o.least && all_found;
    start_keys(&v, i);
    if (g->s.status) return NULL;
    g->s.nodes[state].data = i;
    return i;
}

/* ---- keys ---- */

/* Can a name in no member still come of this tuple? Patterns that may yet match or not are tried
 * all one way, all the other, and each alone. */
static bool unknown_lives(struct view *v, node tuple)
{
    struct grammar *g = v->g;
    const uint32_t *w = node_words(&g->s, tuple), *names = w + K_PATTERNS + v->info->n_patterns;
    uint32_t n = v->info->n_patterns;
    if (!re_live(&g->s, *names)) return false;
    if (n == 0) return v->info->plain;
    node memo = store_put(&g->s, KEY_LIVES, (uint32_t[]) { v->w[S_SHAPE], tuple }, 2);
    if (g->s.nodes[memo].aux) return g->s.nodes[memo].aux == 1;
    node all = re_any_text(&g->s);
    bool *matches = mem_alloc(n, sizeof *matches), lives = false;
    if (!matches) {
        store_fail(&g->s, BZ_ERR_MEMORY, "out of memory for a grammar");
        return false;
    }
    for (uint32_t way = 0; way < n + 2 && !lives; way++) {
        for (uint32_t i = 0; i < n; i++) {
            node p = w[K_PATTERNS + i];
            bool can = re_live(&g->s, p), must = p == all;
            matches[i] = must || (can && (way == n + 1 || way == i + 1));
        }
        lives = !f_empty(g, unknown_formula(g, &v->o, matches));
    }
    mem_free(matches);
    g->s.nodes[memo].aux = lives ? 1 : 2;
    return lives;
}

static bool tuple_lives(struct grammar *g, node state, const struct object_info *i, node tuple,
                        bool quoted)
{
    struct view v;
    if (i->any_name) return true;
    if (!look(g, state, &v)) return false;
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
    uint32_t first, last;
    node tuple = lift_re(&g->s, lifted);
    bool quoted = lift_kind(&g->s, lifted) == LIFT_CALL;
    if (!i) return false;
    if (i->any_name || !lift_pending(&g->s, lifted, &first, &last))
        return tuple_lives(g, state, i, tuple, quoted);
    if (first == 0 && last == LAST_CP) return tuple_lives(g, state, i, tuple, quoted);
    const struct steps *l = re_steps(&g->s, tuple);
    for (uint32_t k = 0; l && k < l->n; k++)
        if (l->at[k].first <= last && l->at[k].last >= first &&
            tuple_lives(g, state, i, l->at[k].to, quoted))
            return true;
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

/* The text of a key between its quotes, without escapes. */
static node add_name(struct machine *m, node others, size_t from)
{
    struct store *s = &m->g->s;
    if (m->g->calls) return re_words_add(s, others, (struct str) { m->text + from, m->pos - from });
    struct arena a = { 0 };
    struct json *j = NULL;
    struct buf b = { 0 };
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
    uint32_t bound = v->o.least > 0 ? v->o.least : 0;
    if (v->o.most != UINT32_MAX) bound = v->o.most;
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

/* A member with formula f: it can also be the one that `some` ask for, or not. */
static void go_on(struct machine *m, const struct view *v, struct thread key, node f, uint32_t i,
                  node others, struct threads *out)
{
    struct grammar *g = m->g;
    const uint32_t *w =
        node_words(&g->s, lift_re(&g->s, key.b)) + K_PATTERNS + v->info->n_patterns + 1;
    uint32_t found = v->w[S_FOUND], optional = 0;
    for (uint32_t k = 0; k < v->o.n_some && k < 32; k++) {
        if (found >> k & 1 || !re_nullable(&g->s, w[k])) continue;
        if (node_kind(&g->s, v->o.some[k].b) == F_TRUE) found |= 1u << k;
        else optional |= 1u << k;
    }
    for (uint32_t set = optional;; set = (set - 1) & optional) { /* every subset */
        node all = f;
        for (uint32_t k = 0; k < v->o.n_some && k < 32; k++)
            if (set >> k & 1) all = f_and2(g, all, v->o.some[k].b);
        if (!f_empty(g, all)) {
            node state = state_after(v, i, others, found | set);
            const struct object_info *after = object_info(g, state);
            enum head head = lift_kind(&g->s, key.b) == LIFT_BARE ? H_VALUE : H_COLON;
            if (after && (after->may_close || after->may_go_on))
                threads_put(g, out, thread_make(head, state, all, 0, key.below));
        }
        if (set == 0) break;
    }
}

void object_key_ends(struct machine *m, struct thread key, struct threads *out)
{
    struct grammar *g = m->g;
    struct view v;
    node state = thread_a(key);
    const struct object_info *info = object_info(g, state);
    if (!info || !look(g, state, &v)) return;
    const uint32_t *w = node_words(&g->s, lift_re(&g->s, key.b));
    if (w[K_NAMES] && re_nullable(&g->s, w[K_NAMES])) {
        uint32_t i = node_words(&g->s, w[K_NAMES])[0] - 1;
        bool quoted = lift_kind(&g->s, key.b) == LIFT_CALL;
        if (bit(info->allowed, i) && v.info->quoted[i] == quoted)
            go_on(m, &v, key, v.o.members[i].f, i, v.w[S_OTHERS], out);
        return;
    }
    uint32_t n = v.info->n_patterns;
    if (!info->unknown || (w[K_OTHERS] && re_nullable(&g->s, w[K_OTHERS])) ||
        !re_nullable(&g->s, w[K_PATTERNS + n]))
        return;
    bool *matches = mem_alloc(n, sizeof *matches);
    if (!matches) store_fail(&g->s, BZ_ERR_MEMORY, "out of memory for a grammar");
    for (uint32_t i = 0; matches && i < n; i++) matches[i] = re_nullable(&g->s, w[K_PATTERNS + i]);
    node f = matches ? unknown_formula(g, &v.o, matches) : 0;
    mem_free(matches);
    if (g->s.status || f_empty(g, f)) return;
    if (!machine_needs_text(m, key.c)) return;
    node others = m->text ? add_name(m, v.w[S_OTHERS], key.c) : v.w[S_OTHERS];
    go_on(m, &v, key, f, v.o.n_members, others, out);
}
