/* machine_object.c - objects half read: which members may come next, so that the object can still
 * be finished.
 *
 * Members that are required or needed, bounds on their number and the schema's order are decided by
 * counting. Statements that some member exists take a search through the states that follow.
 */
#include "grammar/object_state.h"
#include "grammar/regex.h"

/* Flags of an OBJECT_STATE. */
enum { STATE_LIVE = 1, STATE_DEAD = 2, STATE_BUSY = 4 };

enum { MAX_NAMES = 1000 }; /* names in no member that are counted */

/* ---- shapes ---- */

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

static uint32_t member_number(const struct object *o, node name)
{
    uint32_t i = 0;
    while (i < o->n_members && o->members[i].name != name) i++;
    return i;
}

static void describe_members(struct grammar *g, const struct object *o, struct shape_info *i)
{
    for (uint32_t k = 0; k < o->n_members; k++)
        for (uint32_t s = 0; s < o->n_some; s++)
            if (re_matches(&g->s, o->some[s].a, store_text(&g->s, o->members[k].name)))
                i->named[k] |= 1u << s;
    for (uint32_t k = 0; k < o->n_needs; k++) {
        i->needs[2 * k] = member_number(o, o->needs[k].a);
        i->needs[2 * k + 1] = member_number(o, o->needs[k].b);
    }
}

static const struct shape_info *shape_info(struct grammar *g, node shape, const struct object *o)
{
    struct shape_info *i = g->s.nodes[shape].data;
    if (i) return i;
    i = store_alloc(&g->s, sizeof *i / 4 + o->n_members + 2 * o->n_needs + o->n_members / 4 + 1);
    if (!i) return NULL;
    i->named = (uint32_t *)(void *)(i + 1);
    i->needs = i->named + o->n_members;
    i->quoted = (bool *)(i->needs + 2 * o->n_needs);
    i->names = names_tree(g, o);
    describe_members(g, o, i);
    find_forms(g, o, i);
    const uint32_t *at = o->groups;
    for (uint32_t k = 0; k < o->n_groups; k++) i->n_patterns += object_group(&at).n_patterns;
    bool *none = mem_alloc(i->n_patterns, sizeof *none);
    if (!none) store_fail(&g->s, BZ_ERR_MEMORY, "out of memory for a grammar");
    else i->plain = unknown_formula(g, o, none);
    mem_free(none);
    i->unknown = re_live(&g->s, o->names) && (i->plain != f_false(g) || i->n_patterns);
    if (g->s.status) return NULL;
    g->s.nodes[shape].data = i;
    return i;
}

node object_state(struct grammar *g, node shape, unsigned left)
{
    struct object o = object_read(g, shape);
    struct vec w = { 0 };
    const uint32_t head[S_SEEN] = { shape, left };
    vec_put(&g->s, &w, head, S_SEEN);
    for (uint32_t i = 0; i < o.n_members; i += 32) vec_push(&g->s, &w, 0);
    node x = store_put(&g->s, OBJECT_STATE, w.w, w.n);
    vec_free(&w);
    return x;
}

bool object_look(struct grammar *g, node state, struct view *v)
{
    if (node_kind(&g->s, state) != OBJECT_STATE) return false;
    v->g = g;
    v->state = state;
    v->w = node_words(&g->s, state);
    v->o = object_read(g, v->w[S_SHAPE]);
    v->info = shape_info(g, v->w[S_SHAPE], &v->o);
    return v->info != NULL;
}

/* ---- what must still come ---- */

struct plan {
    struct vec must;    /* bits: members that must still come */
    uint32_t n_missing; /* how many those are */
    uint32_t first;     /* place of the first of them in the schema's order */
    uint32_t room;      /* members that still fit */
    bool impossible;    /* one of them cannot come, or cannot come any more */
};

static bool in_order(const struct view *v)
{
    return !v->g->options.any_form;
}

static bool seen(const struct view *v, uint32_t i)
{
    return bit(v->w + S_SEEN, i);
}

/* Members that need not have been passed by: from place `from` on. */
static bool can_come(const struct view *v, uint32_t i, uint32_t from)
{
    if (seen(v, i) || (in_order(v) && v->o.members[i].order < from)) return false;
    return f_fits(v->g, v->o.members[i].f, v->w[S_LEFT]);
}

/* Add what is needed by members that are there or in the set. */
static void add_needed(const struct view *v, uint32_t *set)
{
    for (bool changed = true; changed;) {
        changed = false;
        for (uint32_t k = 0; k < v->o.n_needs; k++) {
            uint32_t a = v->info->needs[2 * k], b = v->info->needs[2 * k + 1];
            if (!(bit(set, a) || seen(v, a)) || bit(set, b) || seen(v, b)) continue;
            set[b / 32] |= 1u << b % 32;
            changed = true;
        }
    }
}

static struct plan make_plan(const struct view *v)
{
    struct plan p = { .first = UINT32_MAX, .room = UINT32_MAX };
    for (uint32_t i = 0; i < v->o.n_members; i += 32) vec_push(&v->g->s, &p.must, 0);
    if (v->g->s.status) return p;
    if (v->o.most != UINT32_MAX) p.room = v->o.most > v->w[S_COUNT] ? v->o.most - v->w[S_COUNT] : 0;
    for (uint32_t i = 0; i < v->o.n_members; i++)
        if (v->o.members[i].required && !seen(v, i)) p.must.w[i / 32] |= 1u << i % 32;
    add_needed(v, p.must.w);
    for (uint32_t i = 0; i < v->o.n_members; i++) {
        if (!bit(p.must.w, i)) continue;
        p.n_missing++;
        p.impossible |= !can_come(v, i, v->w[S_PLACE]);
        if (v->o.members[i].order < p.first) p.first = v->o.members[i].order;
    }
    return p;
}

/* If member i is next: can all that must come then still come? */
static bool needs_can_come(const struct view *v, const struct plan *p, uint32_t i)
{
    struct vec set = { 0 };
    uint32_t n = 0;
    bool ok = true;
    vec_put(&v->g->s, &set, p->must.w, p->must.n);
    if (v->g->s.status) return false;
    set.w[i / 32] |= 1u << i % 32;
    add_needed(v, set.w);
    for (uint32_t k = 0; k < v->o.n_members; k++) {
        if (!bit(set.w, k)) continue;
        n++;
        ok &= can_come(v, k, v->o.members[i].order);
    }
    vec_free(&set);
    return ok && n <= p->room;
}

/* ---- how many may still come ---- */

/* Members that can come if those before place `from` do not any more: for minProperties. What
 * needs one that cannot come is none of them. */
static uint32_t count_known(const struct view *v, uint32_t from)
{
    struct vec set = { 0 };
    uint32_t n = 0;
    for (uint32_t k = 0; k < v->o.n_members; k += 32) vec_push(&v->g->s, &set, 0);
    if (v->g->s.status) return 0;
    for (uint32_t k = 0; k < v->o.n_members; k++)
        if (can_come(v, k, from)) set.w[k / 32] |= 1u << k % 32;
    for (bool changed = true; changed;) {
        changed = false;
        for (uint32_t k = 0; k < v->o.n_needs; k++) {
            uint32_t a = v->info->needs[2 * k], b = v->info->needs[2 * k + 1];
            if (!bit(set.w, a) || bit(set.w, b) || seen(v, b)) continue;
            set.w[a / 32] &= ~(1u << a % 32);
            changed = true;
        }
    }
    for (uint32_t k = 0; k < v->o.n_members; k++) n += bit(set.w, k);
    vec_free(&set);
    return n;
}

/* Can minProperties be reached with `known` more members of known names? */
static bool reaches_least(const struct view *v, uint32_t known)
{
    uint32_t count = v->w[S_COUNT];
    if (v->o.least <= count || v->o.least - count <= known) return true;
    if (!v->info->unknown) return false;
    uint32_t missing = v->o.least - count - known;
    if (missing > MAX_NAMES) missing = MAX_NAMES;
    return unknown_count(v, object_key_start(v, v->o.names), missing) >= missing;
}

static bool is_allowed(const struct view *v, const struct plan *p, uint32_t i)
{
    const struct member *m = &v->o.members[i];
    bool must = bit(p->must.w, i);
    if (p->impossible || p->room == 0 || !can_come(v, i, v->w[S_PLACE])) return false;
    if (p->room <= p->n_missing && !must) return false;
    if (in_order(v) && m->order > p->first) return false;
    if (v->o.n_needs && !needs_can_come(v, p, i)) return false;
    if (v->o.least <= v->w[S_COUNT] + 1) return true;
    return reaches_least(v, count_known(v, in_order(v) ? m->order : 0));
}

static bool unknown_is_allowed(const struct view *v, const struct plan *p)
{
    if (!v->info->unknown || p->impossible || p->room <= p->n_missing) return false;
    if (in_order(v) && p->n_missing) return false;
    if (!reaches_least(v, in_order(v) ? 0 : count_known(v, 0))) return false;
    return unknown_lives(v, object_key_start(v, v->o.names));
}

static bool all_found(const struct view *v)
{
    return v->w[S_FOUND] == (1u << v->o.n_some) - 1;
}

static bool may_close(const struct view *v, const struct plan *p)
{
    return p->n_missing == 0 && v->w[S_COUNT] >= v->o.least && all_found(v);
}

uint32_t object_missing(struct grammar *g, node state)
{
    struct view v;
    if (!object_look(g, state, &v)) return 0;
    struct plan p = make_plan(&v);
    uint32_t few = v.w[S_COUNT] < v.o.least ? v.o.least - v.w[S_COUNT] : 0;
    uint32_t found = (uint32_t)__builtin_popcount(v.w[S_FOUND]);
    vec_free(&p.must);
    return p.n_missing + few + v.o.n_some - found;
}

/* ---- the search ---- */

bool object_is_searched(const struct view *v)
{
    return in_order(v) && (v->o.n_some || (v->o.n_needs && v->o.least && v->o.most != UINT32_MAX));
}

static bool has_way(const struct view *v, uint32_t i)
{
    struct vec ways = { 0 };
    put_ways(v, i, v->o.members[i].f, v->info->named[i], v->w[S_OTHERS], &ways);
    bool any = ways.n > 0;
    vec_free(&ways);
    return any;
}

/* Could this member bring the object nearer to its end? */
static bool is_useful(const struct view *v, const struct plan *p, uint32_t i)
{
    return bit(p->must.w, i) || v->o.n_needs || v->w[S_COUNT] < v->o.least ||
           v->info->named[i] & ~v->w[S_FOUND];
}

static bool search(const struct view *v)
{
    struct plan p = make_plan(v);
    bool found = v->g->s.status || may_close(v, &p);
    for (uint32_t i = 0; i < v->o.n_members && !found; i++)
        found = is_useful(v, &p, i) && is_allowed(v, &p, i) && has_way(v, i);
    found = found || unknown_is_allowed(v, &p);
    vec_free(&p.must);
    return found;
}

/* Decided by counting alone. */
static bool can_end(const struct view *v)
{
    struct plan p = make_plan(v);
    bool ok = !p.impossible && p.n_missing <= p.room;
    if (ok && v->w[S_COUNT] + p.n_missing < v->o.least)
        ok = reaches_least(v, count_known(v, v->w[S_PLACE]));
    vec_free(&p.must);
    return ok;
}

/* Every step of a search has more members or more found than the one before, or leads nowhere. */
bool object_live(struct grammar *g, node state)
{
    struct view v;
    if (!object_look(g, state, &v)) return false;
    if (v.o.n_some == 0 && !object_is_searched(&v)) return can_end(&v);
    if (g->options.any_form) {
        const struct object_info *i = object_info(g, state);
        return i && (i->may_close || i->may_go_on);
    }
    unsigned flags = g->s.nodes[state].flags;
    if (flags & (STATE_LIVE | STATE_DEAD | STATE_BUSY)) return flags & STATE_LIVE;
    visit(g);
    g->s.nodes[state].flags |= STATE_BUSY;
    bool live = search(&v);
    g->s.nodes[state].flags = live ? STATE_LIVE : STATE_DEAD;
    return live;
}

/* ---- what may come next ---- */

node object_key_start(const struct view *v, node names)
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
    vec_push(s, &x, plain_fits(v) ? re_any_text(s) : 0);
    node tuple = re_tuple(s, x.w, x.n);
    vec_free(&x);
    return tuple;
}

/* Can a key of this form come next? */
static bool has_form(const struct view *v, const struct object_info *i, bool quoted)
{
    for (uint32_t k = 0; k < v->o.n_members; k++)
        if (bit(i->allowed, k) && v->info->quoted[k] == quoted) return true;
    if (!v->g->calls) return i->unknown && !quoted;
    node names = quoted ? v->info->odd : v->info->bare;
    return i->unknown && unknown_lives(v, object_key_start(v, names));
}

static void start_keys(const struct view *v, struct object_info *i)
{
    struct store *s = &v->g->s;
    enum lift kind = v->g->calls ? LIFT_BARE : in_order(v) ? LIFT_PLAIN : LIFT_JSON;
    if (has_form(v, i, false)) i->key = lift_start(s, kind, object_key_start(v, v->info->bare));
    if (has_form(v, i, true))
        i->quoted_key = lift_start(s, LIFT_CALL, object_key_start(v, v->info->odd));
    i->may_go_on = i->key || i->quoted_key;
}

const struct object_info *object_info(struct grammar *g, node state)
{
    struct view v;
    struct object_info *i = g->s.nodes[state].data;
    if (i || !object_look(g, state, &v)) return i;
    i = store_alloc(&g->s, sizeof *i / 4 + 1 + (v.o.n_members + 31) / 32);
    struct plan p = make_plan(&v);
    bool searched = object_is_searched(&v);
    for (uint32_t k = 0; i && k < v.o.n_members && !g->s.status; k++) {
        if (!is_allowed(&v, &p, k) || (searched && !has_way(&v, k))) continue;
        i->allowed[k / 32] |= 1u << k % 32;
    }
    if (i) {
        i->unknown = unknown_is_allowed(&v, &p);
        i->any_name = i->unknown && v.info->n_patterns == 0 && !searched &&
                      v.info->bare == re_any_text(&g->s);
        i->may_close = may_close(&v, &p);
        start_keys(&v, i);
    }
    vec_free(&p.must);
    if (g->s.status) return NULL;
    g->s.nodes[state].data = i;
    return i;
}
