/* strmap.c - the flat hash table of strmap.h. It owns its slots and never the keys. */
#include "base/strmap.h"

#include <assert.h>

#include "base/mem.h"
#include "base/seed.h"

static inline uint64_t word_at(const char *p)
{
    uint64_t word;
    memcpy(&word, p, sizeof word);
    return word;
}

/* The last bytes as a word: eight at most, some of them twice. There is no loop whose length the
 * processor would have to guess. Of two texts of one length only equal ones have equal words
 * here. */
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

/* SipHash-1-3 with a key of the table's own. Keys come from files of strangers, who could otherwise
 * choose keys that all fall into one place of the table. */
struct sip {
    uint64_t a, b, c, d;
};

static inline uint64_t turn(uint64_t x, int n)
{
    return x << n | x >> (64 - n);
}

static inline void sip_round(struct sip *s)
{
    s->a += s->b, s->c += s->d;
    s->b = turn(s->b, 13) ^ s->a, s->d = turn(s->d, 16) ^ s->c;
    s->a = turn(s->a, 32);
    s->c += s->b, s->a += s->d;
    s->b = turn(s->b, 17) ^ s->c, s->d = turn(s->d, 21) ^ s->a;
    s->c = turn(s->c, 32);
}

static inline void sip_word(struct sip *s, uint64_t word)
{
    s->d ^= word;
    sip_round(s);
    s->a ^= word;
}

static inline uint64_t hash_of(const struct strmap *m, struct str s)
{
    struct sip h = { m->key[0] ^ 0x736f6d6570736575u, m->key[1] ^ 0x646f72616e646f6du,
                     m->key[0] ^ 0x6c7967656e657261u, m->key[1] ^ 0x7465646279746573u };
    for (size_t at = 0; at + 8 < s.n; at += 8) sip_word(&h, word_at(s.p + at));
    sip_word(&h, last_word(s.p, s.n));
    h.c ^= 0xff ^ (uint64_t)s.n << 8; /* the words tell texts of one length apart */
    for (int i = 0; i < 3; i++) sip_round(&h);
    return h.a ^ h.b ^ h.c ^ h.d;
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
    seed_fresh(m->key);
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
    return add_at(m, hash_of(m, key), key, value);
}

bool strmap_find(const struct strmap *m, struct str key, uint32_t *value)
{
    if (!m->slots) return false;
    if (!key.p) key = (struct str) { "", 0 };
    const struct strmap_slot *s = seek_from(m, hash_of(m, key), key);
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
            hashes[i] = hash_of(m, keys[first + i]);
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
