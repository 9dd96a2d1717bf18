/* fuse_impl.h - what the files of fusion share. */
#ifndef BEZEL_GPU_FUSE_IMPL_H
#define BEZEL_GPU_FUSE_IMPL_H

#include "gpu/fuse.h"

/* The group that makes x; NULL: x is an input. */
static inline struct group *maker(const struct value *x)
{
    return x->from ? x->from->group : NULL;
}

/* A node that no rule has taken? */
static inline bool is_plain(const struct node *n, enum tape_op op)
{
    return n && n->op == op && !n->group->run;
}

/* The node that makes x, where it has this op and no rule has taken it; else NULL. */
static inline struct node *plain_maker(const struct value *x, enum tape_op op)
{
    return is_plain(x->from, op) ? x->from : NULL;
}

/* The group that makes x, where this rule has made the group; else NULL. */
static inline struct group *rule_maker(const struct value *x, enum gpu_rule rule)
{
    struct group *g = maker(x);
    return g && g->rule == rule ? g : NULL;
}

/* Is x read by n alone, once? */
static inline bool only_reader(const struct value *x, const struct node *n)
{
    return !x->pinned && x->uses && !x->uses->next && x->uses->node == n;
}

/* One function a rule; n is the node that its group ends with. It makes the group, or does nothing.
 */
#define RULE(NAME, name, formula) void match_##name(struct tape *t, struct node *n);
#include "gpu/rules.def"
#undef RULE

#endif
