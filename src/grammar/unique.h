/* unique.h - objects and arrays that must differ from each other, while they are written.
 *
 * Whether an item was there is known at its end, and then it is too late to write another one. So
 * where such a text is written it has one spelling: an item is the same as one before exactly if
 * its text is. While an item is still the beginning of others, something must be able to follow
 * that leads away from all of them.
 */
#ifndef BEZEL_GRAMMAR_UNIQUE_H
#define BEZEL_GRAMMAR_UNIQUE_H

#include "grammar/machine.h"

/* The text of an item without white space, appended to b. */
void unique_put(struct buf *b, struct str item);

/* Where a text stands inside an item. */
struct unique_place {
    size_t from;    /* the item's text begins here */
    uint32_t level; /* of the array */
    node items;     /* STRINGS: the items before it that begin as this one does */
    size_t at;      /* how much of them there is already */
};

/* The innermost item that begins as others; false: there is none. `text` is all bytes so far. */
bool unique_find(struct grammar *g, const struct threads *now, struct str text,
                 struct unique_place *p);

/* The place behind one more byte that some of the items have. */
struct unique_place unique_step(struct grammar *g, const struct unique_place *p,
                                unsigned char byte);

/* Can the item be finished as none of those? */
bool unique_live(struct grammar *g, const struct threads *now, struct str text,
                 const struct unique_place *p);

/* Was the byte that led to these threads white space of the layout? */
bool unique_is_gap(const struct grammar *g, const struct threads *now, unsigned char byte);
/* Has one of these left the item? */
bool unique_is_over(const struct grammar *g, const struct threads *now,
                    const struct unique_place *p);

#endif
