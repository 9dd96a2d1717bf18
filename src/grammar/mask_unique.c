/* mask_unique.c - tokens along the texts of items that must not come again. */
#include "grammar/mask_impl.h"
#include "grammar/unique.h"

static void walk(struct mask_cache *k, uint32_t i, const struct threads *now,
                 const struct unique_place *p, size_t n);

/* The token goes on by a byte: of some of the items, or white space. */
static void walk_byte(struct mask_cache *k, uint32_t c, const struct threads *now,
                      const struct unique_place *p, size_t n)
{
    unsigned char byte = k->v->all.nodes[c].byte;
    struct machine m = { k->g, k->text, n, NULL };
    struct threads next = { 0 };
    struct unique_place then = *p;
    k->text[n] = (char)byte;
    for (uint32_t i = 0; i < now->n; i++) machine_step(&m, now->at[i], byte, &next);
    if (!unique_is_gap(k->g, &next, byte)) then = unique_step(k->g, p, byte);
    if (next.n && then.items && !unique_is_over(k->g, &next, p)) {
        if (!unique_live(k->g, &next, (struct str) { k->text, n + 1 }, &then)) mask_clear(k, c);
        else walk(k, c, &next, &then, n + 1);
    }
    threads_free(&next);
}

static void walk(struct mask_cache *k, uint32_t i, const struct threads *now,
                 const struct unique_place *p, size_t n)
{
    uint32_t tried[8] = { 0 };
    for (uint32_t x = 0; x < node_n(&k->g->s, p->items) + 2 && !k->g->s.status; x++) {
        unsigned char byte = x == 0 ? ' ' : '\n';
        if (x >= 2) {
            struct str item = store_text(&k->g->s, node_words(&k->g->s, p->items)[x - 2]);
            if (item.n == p->at) continue;
            byte = (unsigned char)item.p[p->at];
        } else if (!k->g->options.indent) {
            continue;
        }
        uint32_t c = mask_child(&k->v->all, i, byte);
        if (!c || tried[byte / 32] >> byte % 32 & 1) continue;
        tried[byte / 32] |= 1u << byte % 32;
        walk_byte(k, c, now, p, n);
    }
}

void mask_unique(struct mask_cache *k, node config)
{
    struct threads now = { 0 };
    struct unique_place p;
    uint32_t n;
    const struct thread *t = config_threads(k->g, config, &n);
    for (uint32_t i = 0; i < n; i++) threads_put(k->g, &now, t[i]);
    if (unique_find(k->g, &now, (struct str) { k->text, k->n_text }, &p)) {
        k->doubt.looked_back = true;
        walk(k, 0, &now, &p, k->n_text);
    }
    threads_free(&now);
}
