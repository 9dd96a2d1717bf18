/* store.c - the hash table of nodes, and vectors of words. */
#include "grammar/store.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>

#include "base/seed.h"

void store_fail(struct store *s, enum bz_status st, const char *fmt, ...)
{
    if (s->status) return;
    va_list ap;
    va_start(ap, fmt);
    vsnprintf(s->err.text, sizeof s->err.text, fmt, ap);
    va_end(ap);
    s->status = st;
}

static void out_of_memory(struct store *s)
{
    if (!s->status) s->status = fail_memory(&s->err, s->n_words * 4);
}

bool store_open(struct store *s)
{
    static const uint32_t nothing[64];
    *s = (struct store) { .max_words = MAX_STORE_WORDS, .max_search = SEARCH_WRITTEN };
    seed_fresh(s->seed);
    s->cap = 256;
    s->n_slots = 1024;
    s->nodes = mem_alloc(s->cap, sizeof *s->nodes);
    s->slots = mem_alloc(s->n_slots, sizeof *s->slots);
    if (!s->nodes || !s->slots) {
        store_close(s);
        return false;
    }
    store_put(s, RE_EMPTY, NULL, 0);
    s->nodes[0].w = nothing; /* after a failure node 0 stands for everything: it reads as zeros */
    store_put(s, F_FALSE, NULL, 0); /* ids that a row of lift.h says nothing else with */
    store_put(s, F_TRUE, NULL, 0);
    return true;
}

void store_close(struct store *s)
{
    mem_free(s->nodes);
    mem_free(s->slots);
    mem_free(s->rules);
    s->rules = NULL;
    arena_free(&s->arena);
    arena_free(&s->trees);
    s->nodes = NULL;
    s->slots = NULL;
    s->n_nodes = 0;
}

void *store_alloc(struct store *s, size_t n_words)
{
    if (s->status) return NULL;
    if (n_words > s->max_words - s->n_words) {
        store_fail(s, BZ_ERR_LIMIT, "the grammar needs more than %zu MB of memory",
                   s->max_words >> 18);
        return NULL;
    }
    void *p = arena_alloc(&s->arena, n_words, sizeof(uint32_t));
    s->n_words += (n_words + 3) & ~(size_t)3;
    if (!p) out_of_memory(s);
    return p;
}

static uint64_t mix(uint64_t h, uint64_t w)
{
    h = (h ^ w) * 0x9e3779b97f4a7c15u;
    return h ^ h >> 32;
}

static uint32_t hash_of(const struct store *s, enum kind kind, const uint32_t *w, uint32_t n)
{
    uint64_t h = s->seed[0] ^ ((uint64_t)n << 32 | (uint64_t)kind);
    uint32_t i = 0;
    for (; i + 2 <= n; i += 2) h = mix(h, (uint64_t)w[i] << 32 | w[i + 1]);
    if (i < n) h = mix(h, w[i]);
    return (uint32_t)(mix(h, s->seed[1]) >> 16);
}

static void grow_slots(struct store *s)
{
    uint32_t n = s->n_slots * 2;
    uint32_t *slots = mem_alloc(n, sizeof *slots);
    if (!slots) {
        out_of_memory(s);
        return;
    }
    for (uint32_t x = 0; x < s->n_nodes; x++) {
        const struct node_info *i = &s->nodes[x];
        uint32_t at = hash_of(s, (enum kind)i->kind, i->w, i->n) & (n - 1);
        while (slots[at]) at = (at + 1) & (n - 1);
        slots[at] = x + 1;
    }
    mem_free(s->slots);
    s->slots = slots;
    s->n_slots = n;
}

static bool make_room(struct store *s)
{
    if (s->n_nodes == s->cap) {
        if (s->cap >= MAX_NODES) {
            store_fail(s, BZ_ERR_LIMIT, "the grammar needs more than %u states", s->cap);
            return false;
        }
        struct node_info *p = mem_grow(s->nodes, s->cap * 2ul, sizeof *p);
        if (!p) {
            out_of_memory(s);
            return false;
        }
        s->nodes = p;
        s->cap *= 2;
    }
    if (s->n_nodes >= s->n_slots / 2) grow_slots(s);
    return !s->status;
}

node store_put(struct store *s, enum kind kind, const uint32_t *w, uint32_t n)
{
    if (s->status) return 0;
    uint32_t hash = hash_of(s, kind, w, n), at = hash & (s->n_slots - 1);
    for (; s->slots[at]; at = (at + 1) & (s->n_slots - 1)) {
        const struct node_info *i = &s->nodes[s->slots[at] - 1];
        if (i->kind == kind && i->n == n && (n == 0 || memcmp(i->w, w, n * sizeof *w) == 0))
            return s->slots[at] - 1;
    }
    if (!make_room(s)) return 0;
    uint32_t *copy = store_alloc(s, n);
    if (!copy) return 0;
    if (n) memcpy(copy, w, n * sizeof *w);
    for (at = hash & (s->n_slots - 1); s->slots[at];) at = (at + 1) & (s->n_slots - 1);
    s->nodes[s->n_nodes] = (struct node_info) { .w = copy, .n = n, .kind = (uint8_t)kind };
    s->slots[at] = ++s->n_nodes;
    return s->n_nodes - 1;
}

node store_string(struct store *s, struct str text)
{
    size_t n = 1 + (text.n + 3) / 4;
    uint32_t small[64], *w = small;
    if (n > UINT32_MAX / 8) {
        store_fail(s, BZ_ERR_LIMIT, "a text of %zu bytes is too long for a grammar", text.n);
        return 0;
    }
    if (n > 64) w = mem_alloc(n, sizeof *w);
    if (!w) {
        out_of_memory(s);
        return 0;
    }
    w[n - 1] = 0;
    w[0] = (uint32_t)text.n;
    if (text.n) memcpy(w + 1, text.p, text.n);
    node x = store_put(s, STRING, w, (uint32_t)n);
    if (w != small) mem_free(w);
    return x;
}

struct str store_text(const struct store *s, node string)
{
    const uint32_t *w = node_words(s, string);
    if (node_kind(s, string) != STRING) return (struct str) { "", 0 };
    return (struct str) { (const char *)(w + 1), w[0] };
}

void vec_push(struct store *s, struct vec *v, uint32_t w)
{
    vec_put(s, v, &w, 1);
}

void vec_put(struct store *s, struct vec *v, const uint32_t *w, uint32_t n)
{
    if (s->status || n == 0) return;
    if (v->cap - v->n < n) {
        size_t cap = v->cap ? v->cap : 16;
        while (cap - v->n < n) cap *= 2;
        uint32_t *p = cap < MAX_STORE_WORDS ? mem_grow(v->w, cap, sizeof *p) : NULL;
        if (!p) {
            out_of_memory(s);
            return;
        }
        v->w = p;
        v->cap = (uint32_t)cap;
    }
    memcpy(v->w + v->n, w, n * sizeof *w);
    v->n += n;
}

void vec_free(struct vec *v)
{
    mem_free(v->w);
    *v = (struct vec) { 0 };
}

static int compare(const void *a, const void *b)
{
    uint32_t x, y;
    memcpy(&x, a, sizeof x);
    memcpy(&y, b, sizeof y);
    return (x > y) - (x < y);
}

void vec_sort(struct vec *v)
{
    if (v->n < 2) return;
    bool sorted = true;
    for (uint32_t i = 1; i < v->n && sorted; i++) sorted = v->w[i - 1] < v->w[i];
    if (sorted) return;
    qsort(v->w, v->n, sizeof *v->w, compare);
    uint32_t n = 1;
    for (uint32_t i = 1; i < v->n; i++)
        if (v->w[i] != v->w[n - 1]) v->w[n++] = v->w[i];
    v->n = n;
}
