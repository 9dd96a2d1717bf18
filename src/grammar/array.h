/* array.h - what one kind of array may hold: a conjunction of statements about its items. */
#ifndef BEZEL_GRAMMAR_ARRAY_H
#define BEZEL_GRAMMAR_ARRAY_H

#include "grammar/internal.h"

/* Between `least` and `most` items, counted from index `from` on, are of f. */
struct contains {
    node f;
    uint32_t from, least, most;
};

struct array {
    const node *prefix; /* formulas of the first items */
    uint32_t n_prefix, n_contains;
    node rest; /* formula of the others */
    const struct contains *contains;
    uint32_t least, most;
    bool unique;
};
struct array array_read(const struct grammar *g, node shape);
node array_put(struct grammar *g, const struct array *a);

node array_any(struct grammar *g);
node array_and(struct grammar *g, node a, node b);
void array_not(struct grammar *g, node shape, struct vec *out);
/* Is there one of at most `left` levels, as far as its shape tells? */
bool array_fits(struct grammar *g, node shape, unsigned left);
bool array_empty(struct grammar *g, node shape);

/* Must the items be different? Fails where that cannot be kept: text that is written must go on
 * after each item, and whether an object was there is known only at its end. Where the grammar is
 * lenient the answer is no then. */
bool array_keeps_unique(struct grammar *g, node shape);

static inline node array_item(const struct array *a, uint32_t i)
{
    return i < a->n_prefix ? a->prefix[i] : a->rest;
}

#endif
