/* fuse.h - which nodes of a tape one dispatch, or one op of few dispatches, computes. */
#ifndef BEZEL_GPU_FUSE_H
#define BEZEL_GPU_FUSE_H

#include "tape/tape.h"

enum gpu_rule {
    RULE_NONE,
#define RULE(NAME, name, formula) RULE_##NAME,
#include "gpu/rules.def"
#undef RULE
    N_GPU_RULES
};

/* backend.fuse: make groups of t by every rule that is not in struct gpu_ops.without, then choose
 * in which forms values are kept. */
void gpu_fuse(void *gpu_ops, struct tape *t);

/* The second half: formats.c. */
struct gpu_ops;
void gpu_formats(const struct gpu_ops *g, struct tape *t);

/* For tests of a rule: the same by the rules up to this one. Returns the rules that have groups, a
 * bit each, by its number. */
uint32_t gpu_fuse_up_to(void *gpu_ops, struct tape *t, enum gpu_rule last);

#endif
