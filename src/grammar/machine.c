/* machine.c - the structure of JSON: what each byte makes of a thread. */
#include "grammar/machine.h"

#include <stdlib.h>

#include "grammar/array.h"
#include "grammar/number.h"
#include "grammar/object.h"

/* ---- threads and configurations ---- */

void threads_put(struct grammar *g, struct threads *v, struct thread t)
{
    if (g->s.status) return;
    if (v->n == v->cap) {
        uint32_t cap = v->cap ? 2 * v->cap : 8;
        struct thread *p = mem_grow(v->at, cap, sizeof *p);
        if (!p) {
            store_fail(&g->s, BZ_ERR_MEMORY, "out of memory for a grammar");
            return;
        }
        v->at = p;
        v->cap = cap;
    }
    v->at[v->n++] = t;
}

void threads_free(struct threads *v)
{
    mem_free(v->at);
    *v = (struct threads) { 0 };
}

const struct thread *config_threads(const struct grammar *g, node config, uint32_t *n)
{
    *n = node_kind(&g->s, config) == CONFIG ? node_n(&g->s, config) / THREAD_WORDS : 0;
    return (const struct thread *)(const void *)node_words(&g->s, config);
}

/* How many levels there are below and here; kept in the node. */
uint32_t config_levels(const struct grammar *g, node config)
{
    return g->s.nodes[config].aux;
}

/* Where a text is checked all values share one number, so that they share states too. */
unsigned machine_left(const struct grammar *g, node below)
{
    uint32_t n = config_levels(g, below), most = f_most(g);
    if (n > MAX_LEVELS) return 0;
    return g->options.any_form || MAX_LEVELS + 1 - n > most ? most : MAX_LEVELS + 1 - n;
}

bool config_has_unique(const struct grammar *g, node config)
{
    return g->s.nodes[config].flags & CONFIG_UNIQUE;
}

static node put_config(struct grammar *g, const struct thread *t, uint32_t n)
{
    uint32_t deepest = 0;
    bool unique = false;
    for (uint32_t i = 0; i < n; i++) {
        if (config_levels(g, t[i].below) > deepest) deepest = config_levels(g, t[i].below);
        unique |= (thread_head(t[i]) == H_AFTER && t[i].c) || config_has_unique(g, t[i].below);
    }
    node x = store_put(&g->s, CONFIG, (const uint32_t *)t, n * THREAD_WORDS);
    if (g->s.status) return x;
    g->s.nodes[x].aux = deepest + 1;
    if (unique) g->s.nodes[x].flags |= CONFIG_UNIQUE;
    return x;
}

node config_one(struct grammar *g, struct thread t)
{
    return put_config(g, &t, 1);
}

static int by_top(const void *a, const void *b)
{
    const struct thread *x = a, *y = b;
    if (x->head != y->head) return x->head < y->head ? -1 : 1;
    if (x->b != y->b) return x->b < y->b ? -1 : 1;
    if (x->c != y->c) return x->c < y->c ? -1 : 1;
    return x->below < y->below ? -1 : x->below > y->below;
}

static bool same_top(struct thread a, struct thread b)
{
    return a.head == b.head && a.b == b.b && a.c == b.c;
}

static node unite(struct grammar *g, node a, node b)
{
    struct threads v = { 0 };
    uint32_t n;
    if (a == b) return a;
    for (int k = 0; k < 2; k++) {
        const struct thread *t = config_threads(g, k ? b : a, &n);
        for (uint32_t i = 0; i < n; i++) threads_put(g, &v, t[i]);
    }
    node x = config_of(g, &v);
    threads_free(&v);
    return x;
}

void threads_merge(struct grammar *g, struct threads *v)
{
    uint32_t kept = 0;
    if (v->n > 1) qsort(v->at, v->n, sizeof *v->at, by_top);
    if (v->n > MAX_THREADS)
        store_fail(&g->s, BZ_ERR_LIMIT, "more than %d alternatives at one place of a text",
                   MAX_THREADS);
    for (uint32_t i = 0; i < v->n && !g->s.status; i++) {
        if (kept && same_top(v->at[kept - 1], v->at[i]))
            v->at[kept - 1].below = unite(g, v->at[kept - 1].below, v->at[i].below);
        else v->at[kept++] = v->at[i];
    }
    v->n = kept;
}

node config_of(struct grammar *g, struct threads *v)
{
    threads_merge(g, v);
    return put_config(g, v->at, v->n);
}

bool config_may_end(const struct grammar *g, node config)
{
    uint32_t n;
    const struct thread *t = config_threads(g, config, &n);
    for (uint32_t i = 0; i < n; i++) {
        if (thread_head(t[i]) == H_END) return true;
        if (thread_head(t[i]) != H_RAW || !lift_at_border(&g->s, thread_a(t[i]))) continue;
        if (re_nullable(&g->s, lift_re(&g->s, thread_a(t[i]))) && config_may_end(g, t[i].below))
            return true;
    }
    return false;
}

/* ---- values ---- */

enum lift machine_lift(const struct grammar *g, node text)
{
    const struct store *s = &g->s;
    if (g->calls) return LIFT_CALL;
    if (g->one_spelling) return LIFT_PLAIN;
    bool is_free = node_kind(s, text) == RE_REP && node_kind(s, node_words(s, text)[0]) == RE_SET &&
                   node_words(s, node_words(s, text)[0])[1] == LAST_CP;
    return g->options.any_form || is_free ? LIFT_JSON : LIFT_PLAIN;
}

unsigned machine_quote(const struct grammar *g)
{
    return g->calls ? BYTE_QUOTE : '"';
}

/* Numbers and literals as one expression. */
static node make_bare(struct grammar *g, const struct value *v)
{
    struct store *s = &g->s;
    static const char *const words[] = { "null", "true", "false" };
    node x = g->options.any_form ? v->number : number_written(s, v->number);
    if (g->one_spelling) x = re_and2(s, x, number_canonical(s));
    if (v->exponents && g->options.any_form) x = re_alt2(s, x, number_exponents(s, v->exponents));
    for (unsigned i = 0; i < 3; i++)
        if (v->literals >> i & 1) x = re_alt2(s, x, re_literal(s, str_of(words[i])));
    return x;
}

/* The same of a VALUE as a lifted state, made once. */
static node bare_text(struct grammar *g, node value, const struct value *v, bool changed)
{
    if (changed) return lift_start(&g->s, LIFT_RAW, make_bare(g, v));
    if (!g->s.nodes[value].flags) {
        node x = lift_start(&g->s, LIFT_RAW, make_bare(g, v));
        g->s.nodes[value].aux = x;
        g->s.nodes[value].flags = 1;
    }
    return g->s.nodes[value].aux;
}

static void begin_lifted(struct machine *m, enum head head, node lifted, node below,
                         struct threads *out)
{
    if (re_live(&m->g->s, lift_re(&m->g->s, lifted)))
        threads_put(m->g, out, thread_make(head, lifted, 0, 0, below));
}

static void begin_key(struct machine *m, node state, node key, node below, struct threads *out)
{
    const struct object_info *o = object_info(m->g, state);
    uint32_t from = o && o->unknown ? (uint32_t)m->pos + 1 : 0;
    if (key) threads_put(m->g, out, thread_make(H_KEY, state, key, from, below));
}

/* Behind '{' or ',': before a key's quote or, in a call, inside a bare key. */
static void begin_member(struct machine *m, enum head head, node state, node below,
                         struct threads *out)
{
    const struct object_info *o = object_info(m->g, state);
    if (!o) return;
    if (m->g->calls) begin_key(m, state, o->key, below, out);
    if (!m->g->calls || o->quoted_key || head == H_OBJECT)
        threads_put(m->g, out, thread_make(head, state, 0, 0, below));
}

/* The value of a thread H_VALUE begins with this byte. `seen` says what it must not be. */
static void begin_value(struct machine *m, struct thread t, unsigned byte, struct threads *out)
{
    struct grammar *g = m->g;
    struct store *s = &g->s;
    node state = thread_a(t), below = t.below, no_text = 0, no_number = 0;
    unsigned no_literals = 0;
    node value = f_value(g, t.b);
    struct value v = value_read(g, value);
    bool unique = state && array_is_unique(g, state);
    if (unique) {
        array_seen(g, state, &no_text, &no_number, &no_literals);
        v.literals &= ~no_literals;
        if (no_number) v.number = re_and2(s, v.number, re_not(s, no_number));
        if (no_number) v.exponents = 0;
        if (no_text) v.text = re_and2(s, v.text, re_not(s, no_text));
    }
    if (state)
        below =
            config_one(g, thread_make(H_AFTER, state, 0, unique ? (uint32_t)m->pos + 1 : 0, below));
    unsigned left = machine_left(g, below);
    if (byte == machine_quote(g)) {
        begin_lifted(m, H_STRING, lift_start(s, machine_lift(g, v.text), v.text), below, out);
    } else if (byte == '{') {
        for (uint32_t i = 0; i < v.n_objects && left; i++) {
            node inside = object_state(g, v.objects[i], left - 1);
            if (object_fits(g, v.objects[i], left) && object_live(g, inside))
                begin_member(m, H_OBJECT, inside, below, out);
        }
    } else if (byte == '[') {
        for (uint32_t i = 0; i < v.n_arrays && left; i++) {
            node inside = array_state(g, v.arrays[i], left - 1);
            if (array_fits(g, v.arrays[i], left) && array_live(g, inside))
                threads_put(g, out, thread_make(H_ARRAY, inside, 0, 0, below));
        }
    } else {
        uint32_t to = lift_step(s, bare_text(g, value, &v, no_number || no_literals), byte);
        if (to > LEADS_OUT) threads_put(g, out, thread_make(H_RAW, to, 0, 0, below));
    }
}

bool machine_needs_text(struct machine *m, size_t from)
{
    if (!m->doubt) return true;
    if (!m->text) m->doubt->unsure = true;
    else if (from < m->doubt->begin) m->doubt->looked_back = true;
    return m->text != NULL;
}

/* The top is finished, and its last byte is before `end`: what is below goes on. */
static void leave(struct machine *m, node below, size_t end, struct threads *out)
{
    uint32_t n;
    const struct thread *t = config_threads(m->g, below, &n);
    for (uint32_t i = 0; i < n; i++) {
        struct thread x = t[i];
        if (thread_head(x) == H_AFTER && x.c) {
            node state = array_item_ends(m, thread_a(x), x.c - 1, end);
            if (!state) continue;
            x = thread_make(H_AFTER, state, 0, 0, x.below);
        }
        threads_put(m->g, out, x);
    }
}

/* ---- bytes ---- */

static void step_raw(struct machine *m, struct thread t, unsigned byte, struct threads *out)
{
    struct store *s = &m->g->s;
    node at = thread_a(t);
    uint32_t to = lift_step(s, at, byte);
    if (to > LEADS_OUT) threads_put(m->g, out, thread_make(H_RAW, to, 0, 0, t.below));
    if (!lift_at_border(s, at) || !re_nullable(s, lift_re(s, at))) return;
    struct threads next = { 0 };
    leave(m, t.below, m->pos, &next);
    for (uint32_t i = 0; i < next.n; i++) machine_step(m, next.at[i], byte, out);
    threads_free(&next);
}

static void step_string(struct machine *m, struct thread t, unsigned byte, struct threads *out)
{
    uint32_t to = lift_step(&m->g->s, thread_a(t), byte);
    if (to == LEADS_OUT) leave(m, t.below, m->pos + 1, out);
    else if (to > LEADS_OUT) threads_put(m->g, out, thread_make(H_STRING, to, 0, 0, t.below));
}

static void step_key(struct machine *m, struct thread t, unsigned byte, struct threads *out)
{
    uint32_t to = lift_step(&m->g->s, t.b, byte);
    if (to == LEADS_OUT) object_key_ends(m, t, out);
    else if (to > LEADS_OUT && object_key_lives(m->g, thread_a(t), to))
        threads_put(m->g, out, thread_make(H_KEY, thread_a(t), to, t.c, t.below));
}

static void begin_item(struct machine *m, struct thread t, unsigned byte, struct threads *out)
{
    const struct array_info *a = array_info(m->g, thread_a(t));
    for (uint32_t i = 0; a && i < a->n; i++)
        begin_value(m, thread_make(H_VALUE, a->at[i].state, a->at[i].f, 0, t.below), byte, out);
}

static void next_items(struct machine *m, struct thread t, struct threads *out)
{
    const struct array_info *a = array_info(m->g, thread_a(t));
    for (uint32_t i = 0; a && i < a->n; i++)
        threads_put(m->g, out, thread_make(H_VALUE, a->at[i].state, a->at[i].f, 0, t.below));
}

static void step_after(struct machine *m, struct thread t, unsigned byte, struct threads *out)
{
    struct grammar *g = m->g;
    node state = thread_a(t);
    if (node_kind(&g->s, state) == OBJECT_STATE) {
        const struct object_info *o = object_info(g, state);
        if (o && byte == '}' && o->may_close) leave(m, t.below, m->pos + 1, out);
        if (o && byte == ',' && o->may_go_on && !t.b) begin_member(m, H_COMMA, state, t.below, out);
    } else {
        const struct array_info *a = array_info(g, state);
        if (a && byte == ']' && a->may_close) leave(m, t.below, m->pos + 1, out);
        if (a && byte == ',' && !t.b) next_items(m, t, out);
    }
}

/* ---- white space ---- */

/* Where a thread stands that white space does not change. */
static bool ignores_space(const struct grammar *g, struct thread t)
{
    enum head head = thread_head(t);
    if (head == H_END) return thread_a(t);
    return g->options.any_form && head != H_RAW && head != H_STRING && head != H_KEY;
}

/* May an object or array end here? */
static bool may_close(struct grammar *g, node state)
{
    const struct object_info *o = NULL;
    const struct array_info *a = NULL;
    if (node_kind(&g->s, state) == OBJECT_STATE) o = object_info(g, state);
    else a = array_info(g, state);
    return (o && o->may_close) || (a && a->may_close);
}

/* The space of a layout: one, or a line break and some more. Behind a value it only stands before a
 * bracket. */
static void step_gap(struct machine *m, struct thread t, unsigned byte, struct threads *out)
{
    bool after = thread_head(t) == H_AFTER;
    uint32_t gap = after ? t.b : t.c;
    if (after && !may_close(m->g, thread_a(t))) return;
    if (thread_head(t) == H_VALUE && !thread_a(t)) return; /* before all of the text */
    if (byte == '\n' && gap == NO_GAP) gap = GAP_LINE;
    else if (byte == ' ' && gap == NO_GAP) gap = GAP_SPACE;
    else if (byte == ' ' && gap >= GAP_LINE && gap < GAP_LINE + MAX_GAP) gap++;
    else return;
    *(after ? &t.b : &t.c) = gap;
    threads_put(m->g, out, t);
}

bool machine_has_gap(const struct grammar *g, enum head head)
{
    return g->options.indent && !g->options.any_form && !g->calls &&
           (head == H_VALUE || head == H_OBJECT || head == H_COMMA || head == H_ARRAY ||
            head == H_AFTER);
}

void machine_step(struct machine *m, struct thread t, unsigned byte, struct threads *out)
{
    struct grammar *g = m->g;
    if (is_space(byte) && machine_has_gap(g, thread_head(t))) {
        step_gap(m, t, byte, out);
        return;
    }
    if (is_space(byte) && ignores_space(g, t)) {
        threads_put(g, out, t);
        return;
    }
    switch (thread_head(t)) {
    case H_END: break;
    case H_RAW: step_raw(m, t, byte, out); break;
    case H_STRING: step_string(m, t, byte, out); break;
    case H_VALUE: begin_value(m, t, byte, out); break;
    case H_AFTER: step_after(m, t, byte, out); break;
    case H_OBJECT:
    case H_COMMA: {
        const struct object_info *o = object_info(g, thread_a(t));
        if (o && byte == machine_quote(g))
            begin_key(m, thread_a(t), g->calls ? o->quoted_key : o->key, t.below, out);
        if (o && byte == '}' && thread_head(t) == H_OBJECT && o->may_close)
            leave(m, t.below, m->pos + 1, out);
        break;
    }
    case H_KEY: step_key(m, t, byte, out); break;
    case H_COLON:
        if (byte == ':') threads_put(g, out, thread_make(H_VALUE, thread_a(t), t.b, 0, t.below));
        break;
    case H_ARRAY: {
        const struct array_info *a = array_info(g, thread_a(t));
        if (a && byte == ']' && a->may_close) leave(m, t.below, m->pos + 1, out);
        else begin_item(m, t, byte, out);
        break;
    }
    case H_CALL:
        if (byte == BYTE_CALL) leave(m, g->call, m->pos + 1, out);
        break;
    case H_CLOSE:
        if (byte == BYTE_CALL_END) leave(m, t.below, m->pos + 1, out);
        break;
    }
}
