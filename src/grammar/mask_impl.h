/* mask_impl.h - what masks keep. Private to mask*.c. */
#ifndef BEZEL_GRAMMAR_MASK_IMPL_H
#define BEZEL_GRAMMAR_MASK_IMPL_H

#include "grammar/mask.h"

enum { N_KEPT = 48, N_LOCALS = 24, N_LOOPS = 256 };

/* The classes of bytes that leave a state as it is. */
struct loop {
    node state;
    uint32_t classes;
};

/* The mask of a configuration. */
struct kept {
    node config;
    uint32_t *bits;
    uint64_t used;
};

/* What a string's state alone decides: tokens that stay inside, and the tree's nodes where its
 * closing quote was read (each with the state before the quote). */
struct local {
    node state, shape, object;
    uint32_t *bits;
    struct vec exits;
    uint64_t used;
};

struct mask_cache {
    struct grammar *g;
    const struct vocab *v;
    uint32_t *bits, *spare; /* where tokens are set just now */
    char *text;             /* the text so far, and the token's bytes that are being tried */
    size_t n_text;
    struct threads threads;
    /* A walk that begins behind a closing quote does not know what came before it in the token.
     * Where that matters (has this item been there?) each token is tried by itself, from the thread
     * at its beginning. */
    bool blind;
    struct doubt doubt;
    struct thread first;
    uint64_t clock;
    struct kept kept[N_KEPT];
    struct local locals[N_LOCALS];
    struct loop loops[N_LOOPS];
};

/* The tokens at and below a node of the whole tree are none of the mask. */
void mask_clear(struct mask_cache *k, uint32_t i);
/* The child that a byte leads to, or 0. */
uint32_t mask_child(const struct trie *t, uint32_t i, unsigned char byte);

/* Take out the tokens behind which an item could only be one of those before it. (mask_unique.c) */
void mask_unique(struct mask_cache *k, node config);

/* An expression with the same mask and fewer states: limits that no token can reach are no
 * limits. */
node mask_relax(struct mask_cache *k, node re);

#endif
