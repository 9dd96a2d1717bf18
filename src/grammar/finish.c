/* finish.c - brings a text to an end: value by value, each by a search for the fewest bytes. */
#include "grammar/matcher_impl.h"

enum { MAX_SOUGHT = 20000, MAX_ROUNDS = 2000 };

/* A text that was reached: by which byte, and from which one before it. */
struct reached {
    node config;
    uint32_t from, byte;
};

enum { REACHED = sizeof(struct reached) / sizeof(uint32_t) };

struct search {
    struct grammar *g;
    struct buf text; /* up to the place where the search began, and on to the text that is tried */
    size_t begin;
    struct threads next;
    struct vec all;   /* struct reached */
    uint32_t level;   /* of the object or array that is just being read at the beginning */
    uint32_t missing; /* from it there */
};

static struct reached *at(const struct search *s, uint32_t i)
{
    return (struct reached *)(void *)(s->all.w + (size_t)i * REACHED);
}

static void reach(struct search *s, node config, uint32_t from, unsigned byte)
{
    const struct reached r = { config, from, byte };
    struct node_info *i = &s->g->s.nodes[config];
    if (i->flags & CONFIG_REACHED) return;
    i->flags |= CONFIG_REACHED;
    vec_put(&s->g->s, &s->all, (const uint32_t *)&r, REACHED);
}

/* ---- how far it is ---- */

static uint32_t level_of(const struct grammar *g, struct thread t)
{
    return config_levels(g, t.below) + 1;
}

static uint32_t missing_in(struct grammar *g, struct thread t)
{
    node state = thread_a(t);
    return node_kind(&g->s, state) == OBJECT_STATE ? object_missing(g, state)
                                                   : array_missing(g, state);
}

/* What the object or array at this level still needs, at least; UINT32_MAX: it is over, or no value
 * in it is. */
static uint32_t missing_at(struct grammar *g, node config, uint32_t level)
{
    uint32_t n, least = UINT32_MAX;
    const struct thread *t = config_threads(g, config, &n);
    for (uint32_t i = 0; i < n; i++) {
        uint32_t missing = UINT32_MAX;
        if (level_of(g, t[i]) > level) missing = missing_at(g, t[i].below, level);
        else if (level_of(g, t[i]) == level && thread_head(t[i]) == H_AFTER)
            missing = missing_in(g, t[i]);
        if (missing < least) least = missing;
    }
    return least;
}

/* The text of number i. */
static void put_text(struct search *s, uint32_t i)
{
    s->text.n = s->begin;
    for (uint32_t k = i; k; k = at(s, k)->from) buf_putc(&s->text, '?');
    size_t end = s->text.n;
    for (uint32_t k = i; k && !s->text.failed; k = at(s, k)->from)
        s->text.data[--end] = (char)at(s, k)->byte;
}

/* Inside an item that must be none of those before it: can it be finished as another one? */
static bool is_free(struct search *s, uint32_t i)
{
    struct threads now = { 0 };
    struct unique_place p;
    if (!s->g->one_spelling) return true;
    uint32_t n;
    const struct thread *t = config_threads(s->g, at(s, i)->config, &n);
    for (uint32_t k = 0; k < n; k++) threads_put(s->g, &now, t[k]);
    put_text(s, i);
    bool ok = !unique_find(s->g, &now, buf_str(&s->text), &p) ||
              unique_live(s->g, &now, buf_str(&s->text), &p);
    threads_free(&now);
    return ok;
}

/* Is a value finished that brings the object or array nearer to its end, or is that finished
 * itself? */
static bool is_nearer(struct search *s, uint32_t number)
{
    node config = at(s, number)->config;
    uint32_t n;
    const struct thread *t = config_threads(s->g, config, &n);
    if (config_may_end(s->g, config)) return true;
    if (!is_free(s, number)) return false;
    for (uint32_t i = 0; i < n; i++) {
        if (thread_head(t[i]) != H_AFTER || t[i].b != NO_GAP) continue;
        if (level_of(s->g, t[i]) < s->level) return true;
        if (missing_at(s->g, config, s->level) < s->missing) return true;
    }
    return false;
}

static void set_goal(struct search *s, node config)
{
    uint32_t n;
    const struct thread *t = config_threads(s->g, config, &n);
    s->level = n ? level_of(s->g, t[0]) : 0;
    s->missing = UINT32_MAX;
    if (n && thread_head(t[0]) == H_AFTER) s->missing = missing_at(s->g, config, s->level);
}

/* ---- the search ---- */

static void try_byte(struct search *s, uint32_t i, unsigned byte)
{
    uint32_t n;
    const struct thread *t = config_threads(s->g, at(s, i)->config, &n);
    struct machine machine = { s->g, s->text.data, s->text.n - 1, NULL };
    s->text.data[s->text.n - 1] = (char)byte;
    s->next.n = 0;
    for (uint32_t x = 0; x < n; x++) machine_step(&machine, t[x], byte, &s->next);
    if (s->next.n) reach(s, config_of(s->g, &s->next), i, byte);
}

/* Escapes and what is not ASCII have many states on their way to a character that is as good as
 * others, and so has white space: they are only followed where others lead to nothing new. */
static void go_on(struct search *s, uint32_t i)
{
    uint32_t before = s->all.n;
    put_text(s, i);
    buf_putc(&s->text, '?');
    if (s->text.failed) return;
    for (unsigned k = 0; k < 512; k++) {
        unsigned byte = k & 255;
        bool simple = byte > ' ' && byte < 0x80 && byte != '\\';
        if (k == 256 && s->all.n > before) break;
        if (simple == (k < 256)) try_byte(s, i, byte);
    }
}

/* The fewest bytes behind which the text is nearer to its end; *config: where it then stands. */
static bool approach(struct search *s, node *config)
{
    bool found = false;
    s->all.n = 0;
    s->begin = s->text.n;
    set_goal(s, *config);
    reach(s, *config, 0, 0);
    for (uint32_t i = 0; i < s->all.n / REACHED && i < MAX_SOUGHT && !found; i++) {
        found = i > 0 && is_nearer(s, i);
        if (found) put_text(s, i);
        else go_on(s, i);
        if (found) *config = at(s, i)->config;
        if (s->g->s.status || s->text.failed) break;
    }
    for (uint32_t k = 0; k < s->all.n / REACHED; k++)
        s->g->s.nodes[at(s, k)->config].flags &= (uint8_t)~CONFIG_REACHED;
    return found;
}

enum bz_status matcher_finish(struct matcher *m, struct buf *out, struct bz_err *err)
{
    struct search s = { .g = m->g };
    node config = m->config;
    buf_put_str(&s.text, buf_str(&m->text));
    bool near = true;
    for (int i = 0; i < MAX_ROUNDS && near && !config_may_end(m->g, config); i++)
        near = approach(&s, &config);
    bool found = config_may_end(m->g, config), failed = s.text.failed;
    if (found && !failed) buf_put(out, s.text.data + m->text.n, s.text.n - m->text.n);
    buf_free(&s.text);
    threads_free(&s.next);
    vec_free(&s.all);
    if (m->g->s.status) return matcher_status(m, err);
    if (failed || out->failed) return fail_memory(err, m->text.n);
    return found ? BZ_OK : fail(err, BZ_ERR_LIMIT, "no end was found");
}
