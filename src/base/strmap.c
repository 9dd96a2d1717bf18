/* strmap.c - the flat hash table of strmap.h. It owns its slots and never the keys. */
#include "base/strmap.h"

#include <assert.h>

#include "base/mem.h"

/* Eight bytes a step: xor, multiply by an odd constant, fold the high half down (the low bits of a
 * product know only the low bits of its factors). Not keyed: the tables hold a file that the user
 * chose to open. */
#define HASH_MUL 0x9e3779b97f4a7c15u

static inline uint64_t fold(uint64_t h, uint64_t word)
{
    h = (h ^ word) * HASH_MUL;
    return h ^ h >> 32;
}

static inline uint64_t word_at(const char *p)
{
    uint64_t word;
    memcpy(&word, p, sizeof word);
    return word;
}

/* The last bytes, eight at most, some of them twice: no loop whose length would have to be guessed. Of two texts of
 * one length only equal ones have equal words here. */
static inline uint64_t last_word(const char *p, size_t n)
{
    if (n >= 8) return word_at(p + n - 8);
    if (n >= 4) {
        uint32_t first, last;
        memcpy(&first, p, sizeof first);
        memcpy(&last, p + n - 4, sizeof last);
        return (uint64_t)first << 32 | last;
    }
    const unsigned char *b = (const unsigned char *)p;
    return n ? (uint64_t)b[0] << 16 | (uint64_t)b[n / 2] << 8 | b[n - 1] : 0;
}

uint64_t str_hash(struct str s)
{
    uint64_t h = s.n * HASH_MUL;
    for (size_t at = 0; at + 8 < s.n; at += 8) h = fold(h, word_at(s.p + at));
    return fold(h, last_word(s.p, s.n));
}

/* memcmp would be called; keys are short. */
static inline bool holds(const struct strmap_slot *s, struct str key)
{
    if (s->n != key.n) return false;
    for (size_t at = 0; at + 8 < key.n; at += 8)
        if (word_at(s->p + at) != word_at(key.p + at)) return false;
    return last_word(s->p, key.n) == last_word(key.p, key.n);
}

bool strmap_init(struct strmap *m, size_t n)
{
    /* At most two slots in three are ever full, so a search ends soon. */
    uint64_t n_slots = 16;
    while (n_slots / 3 * 2 < n) {
        if (n_slots > SIZE_MAX / 4 / sizeof *m->slots) return false;
        n_slots *= 2;
    }
    struct strmap_slot *slots = mem_alloc((size_t)n_slots, sizeof *slots);
    if (!slots) return false;
    *m = (struct strmap) { .slots = slots, .mask = n_slots - 1 };
    return true;
}

/* The slot that holds the key, or the empty one where it belongs. */
static inline struct strmap_slot *seek_from(const struct strmap *m, uint64_t hash, struct str key)
{
    for (uint64_t i = hash & m->mask;; i = (i + 1) & m->mask) {
        struct strmap_slot *s = &m->slots[i];
        if (!s->p) return s;
        if (holds(s, key)) return s;
    }
}

static inline bool add_at(struct strmap *m, uint64_t hash, struct str key, uint32_t value)
{
    assert(key.n <= UINT32_MAX);
    if (!key.p) key = (struct str) { "", 0 }; /* NULL marks an empty slot */
    struct strmap_slot *s = seek_from(m, hash, key);
    if (s->p) return false;
    assert(m->used < m->mask); /* one slot stays empty, or a search would not end */
    *s = (struct strmap_slot) { .p = key.p, .n = (uint32_t)key.n, .value = value };
    m->used++;
    return true;
}

bool strmap_add(struct strmap *m, struct str key, uint32_t value)
{
    return add_at(m, str_hash(key), key, value);
}

bool strmap_find(const struct strmap *m, struct str key, uint32_t *value)
{
    if (!m->slots) return false;
    if (!key.p) key = (struct str) { "", 0 };
    const struct strmap_slot *s = seek_from(m, str_hash(key), key);
    if (!s->p) return false;
    *value = s->value;
    return true;
}

size_t strmap_add_many(struct strmap *m, const struct str *keys, const uint32_t *values, size_t n)
{
    enum { AT_ONCE = 32 };
    size_t added = 0;
    uint64_t hashes[AT_ONCE];
    for (size_t first = 0; first < n; first += AT_ONCE) {
        size_t some = n - first < AT_ONCE ? n - first : AT_ONCE;
        for (size_t i = 0; i < some; i++) {
            hashes[i] = str_hash(keys[first + i]);
            /* No load here waits for another: all slots are on their way together. */
            (void)*(const char *const volatile *)&m->slots[hashes[i] & m->mask].p;
        }
        for (size_t i = 0; i < some; i++)
            added += add_at(m, hashes[i], keys[first + i], values[first + i]);
    }
    return added;
}

void strmap_free(struct strmap *m)
{
    mem_free(m->slots);
    *m = (struct strmap) { 0 };
}
