/* tree.h - what readers of patterns and grammars make of a text before it becomes an expression. */
#ifndef BEZEL_GRAMMAR_TREE_H
#define BEZEL_GRAMMAR_TREE_H

#include "grammar/re.h"

enum shape {
    T_SET,
    T_CAT,
    T_ALT,
    T_REP,
    T_RULE, /* set: the rule's number; once rules are nodes, its node */
    T_START,
    T_END,
    T_AHEAD,
    T_NOT_AHEAD
};

struct tree {
    enum shape shape;
    bool simple;          /* no assertion inside */
    node set;             /* T_SET, T_RULE */
    uint32_t least, most; /* T_REP */
    struct tree *child, *next;
};

/* Lives until the store's `trees` are reset. */
struct tree *tree_new(struct store *s, enum shape shape);

/* The expression of a tree without assertions. */
node tree_simple(struct store *s, const struct tree *t);

#endif
