/* strmap.h - strings to numbers: a flat hash table, filled once and then only read.
 *
 * Keys are borrowed. Two arrays and linear probing: a vocabulary of 262,144 pieces is one
 * allocation of 8 MiB.
 */
#ifndef BEZEL_BASE_STRMAP_H
#define BEZEL_BASE_STRMAP_H

#include <stdbool.h>
#include <stdint.h>

#include "base/str.h"

struct strmap_slot {
    const char *p;
    uint32_t n;
    uint32_t value;
};

struct strmap {
    struct strmap_slot *slots; /* p == NULL: empty */
    uint64_t mask;
    uint64_t used;
    uint64_t key[2]; /* of its hash: no two tables put keys into the same places */
};

/* Room for n keys; false when memory is short. */
bool strmap_init(struct strmap *m, size_t n);

/* Add a key; the first value of a key stays. Returns false if the key was there already. */
bool strmap_add(struct strmap *m, struct str key, uint32_t value);

/* True and *value set when the key is there. */
bool strmap_find(const struct strmap *m, struct str key, uint32_t *value);

/* Add n keys and their values, as strmap_add does. Faster where the map is large: memory fetches
 * several slots at a time. Returns how many keys were not there yet. */
size_t strmap_add_many(struct strmap *m, const struct str *keys, const uint32_t *values, size_t n);

void strmap_free(struct strmap *m);

#endif
