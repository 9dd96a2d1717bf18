/* unique.c - see unique.h. */
#include "grammar/unique.h"

#include "grammar/mask.h"

/* A search gives up with "yes" behind so many bytes. */
enum { MAX_DEEP = 1000 };

void unique_put(struct buf *b, struct str item)
{
    bool inside = false;
    for (size_t i = 0; i < item.n; i++) {
        unsigned char c = (unsigned char)item.p[i];
        if (!inside && is_space(c)) continue;
        buf_putc(b, (char)c);
        if (c == '"') inside = !inside;
        else if (inside && c == '\\' && i + 1 < item.n) buf_putc(b, item.p[++i]);
    }
}

/* ---- where the text stands ---- */

/* The array of a thread whose items are objects or arrays that must differ; 0: none. */
static node items_of(struct grammar *g, node state)
{
    return node_kind(&g->s, state) == ARRAY_STATE ? array_items(g, state) : 0;
}

static bool find_below(struct grammar *g, node config, struct unique_place *p)
{
    uint32_t n;
    const struct thread *t = config_threads(g, config, &n);
    for (uint32_t i = 0; i < n; i++) {
        bool here = thread_head(t[i]) == H_AFTER && t[i].c && items_of(g, thread_a(t[i]));
        if (here)
            *p = (struct unique_place) { t[i].c - 1, config_levels(g, t[i].below) + 1,
                                         items_of(g, thread_a(t[i])), 0 };
        if (here || (config_has_unique(g, t[i].below) && find_below(g, t[i].below, p))) return true;
    }
    return false;
}

/* Those of the items that begin with these bytes behind the place. */
static node matching(struct grammar *g, const struct unique_place *p, struct str bytes)
{
    struct vec w = { 0 };
    for (uint32_t i = 0; i < node_n(&g->s, p->items); i++) {
        node item = node_words(&g->s, p->items)[i];
        struct str t = store_text(&g->s, item);
        if (t.n < p->at + bytes.n) continue;
        if (bytes.n == 0 || memcmp(t.p + p->at, bytes.p, bytes.n) == 0) vec_push(&g->s, &w, item);
    }
    node x = w.n ? store_put(&g->s, STRINGS, w.w, w.n) : 0;
    vec_free(&w);
    return x;
}

bool unique_find(struct grammar *g, const struct threads *now, struct str text,
                 struct unique_place *p)
{
    struct buf b = { 0 };
    bool found = false;
    for (uint32_t i = 0; i < now->n && !found; i++) {
        struct thread t = now->at[i];
        node items = thread_head(t) == H_VALUE ? items_of(g, thread_a(t)) : 0;
        if (items) *p = (struct unique_place) { text.n, config_levels(g, t.below) + 1, items, 0 };
        found = items || (config_has_unique(g, t.below) && find_below(g, t.below, p));
    }
    if (!found || p->from > text.n) return false;
    unique_put(&b, (struct str) { text.p + p->from, text.n - p->from });
    if (b.failed) store_fail(&g->s, BZ_ERR_MEMORY, "out of memory for a text");
    p->items = b.failed ? 0 : matching(g, p, buf_str(&b));
    p->at = b.n;
    buf_free(&b);
    return p->items != 0;
}

struct unique_place unique_step(struct grammar *g, const struct unique_place *p, unsigned char byte)
{
    struct unique_place next = *p;
    next.items = matching(g, p, (struct str) { (const char *)&byte, 1 });
    next.at++;
    return next;
}

bool unique_is_gap(const struct grammar *g, const struct threads *now, unsigned char byte)
{
    bool gap = is_space(byte) && now->n > 0;
    for (uint32_t i = 0; i < now->n && gap; i++) gap = machine_has_gap(g, thread_head(now->at[i]));
    return gap;
}

bool unique_is_over(const struct grammar *g, const struct threads *now,
                    const struct unique_place *p)
{
    for (uint32_t i = 0; i < now->n; i++)
        if (config_levels(g, now->at[i].below) < p->level) return true;
    return false;
}

/* ---- the search ---- */

struct search {
    struct grammar *g;
    struct buf text;
    unsigned depth;
};

static bool leads_away(struct search *s, const struct threads *now, const struct unique_place *p);

static bool byte_leads_away(struct search *s, const struct threads *now,
                            const struct unique_place *p, unsigned byte)
{
    struct threads next = { 0 };
    struct machine m = { s->g, s->text.data, s->text.n - 1, NULL };
    s->text.data[s->text.n - 1] = (char)byte;
    for (uint32_t i = 0; i < now->n; i++) machine_step(&m, now->at[i], byte, &next);
    bool found = next.n > 0;
    if (unique_is_gap(s->g, &next, (unsigned char)byte)) {
        found = false;
    } else if (found && !unique_is_over(s->g, &next, p)) {
        struct unique_place then = unique_step(s->g, p, (unsigned char)byte);
        found = !then.items || leads_away(s, &next, &then);
    }
    threads_free(&next);
    return found;
}

/* Bytes that can come first, as bits; all, where that is not known. */
static void first_bytes(struct grammar *g, const struct threads *now, uint32_t bits[8])
{
    unsigned char bytes[32];
    memset(bits, 0, 8 * sizeof *bits);
    for (uint32_t i = 0; i < now->n; i++) {
        uint32_t n = mask_first_bytes(g, now->at[i], bytes);
        if (!n) memset(bits, 255, 8 * sizeof *bits);
        for (uint32_t k = 0; k < n; k++) bits[bytes[k] / 32] |= 1u << bytes[k] % 32;
    }
}

static bool leads_away(struct search *s, const struct threads *now, const struct unique_place *p)
{
    uint32_t bits[8];
    bool found = s->depth == MAX_DEEP || s->g->s.status;
    first_bytes(s->g, now, bits);
    buf_putc(&s->text, '?');
    if (s->text.failed) store_fail(&s->g->s, BZ_ERR_MEMORY, "out of memory for a text");
    s->depth++;
    for (unsigned byte = 0; byte < 256 && !found && !s->g->s.status; byte++)
        if (bits[byte / 32] >> byte % 32 & 1) found = byte_leads_away(s, now, p, byte);
    s->depth--;
    if (!s->text.failed) s->text.n--;
    return found;
}

bool unique_live(struct grammar *g, const struct threads *now, struct str text,
                 const struct unique_place *p)
{
    struct search s = { .g = g };
    buf_put_str(&s.text, text);
    bool live = leads_away(&s, now, p);
    buf_free(&s.text);
    return live;
}
