/* plan.h - the dispatches of a step as data.
 *
 * Ops append dispatches to a plan; nothing is recorded, allocated or compiled by that. Who needs to
 * know what a step does walks its plan: record.c makes it a program or compiles its kernels, and
 * `bezel plan` prints it.
 */
#ifndef BEZEL_GPU_PLAN_H
#define BEZEL_GPU_PLAN_H

#include <stdbool.h>
#include <stdint.h>

#include "base/err.h"
#include "gpu/gpu.h"
#include "gpu/kernel.h"

enum {
    PLAN_CONSTANTS = 8, /* of a dispatch, at most */
    PLAN_SCRATCHES = 16,
};

/* A binding's buffer from this number on is scratch: the number of the scratch is added. */
#define PLAN_SCRATCH 0xffffff00u

static inline bool plan_is_scratch(gpu_buffer b)
{
    return b >= PLAN_SCRATCH;
}

/* Steps of MODEL.md, of one layer (-1: outside of layers): bit n is step n. */
struct plan_steps {
    int layer;
    uint32_t steps;
};

/* What a dispatch is part of: a group of nodes has steps of two layers at most. */
struct plan_label {
    struct plan_steps of[2];
};

struct dispatch {
    uint32_t kernel, n_groups; /* workgroups */
    uint32_t n_constants, n_bindings;
    uint32_t at; /* of its constants, bindings and parameters among the plan's words */
    struct plan_label label;
};

struct plan_copy {
    gpu_buffer from, to;
    uint32_t from_at, to_at, n; /* bytes */
    bool first;                 /* before the dispatches, else after them */
};

struct gpu_plan {
    struct dispatch *list;
    struct plan_copy *copies;
    uint32_t *words;
    uint32_t n, cap, n_copies, cap_copies, n_words, cap_words;
    uint64_t scratch[PLAN_SCRATCHES]; /* bytes that it needs of each */
    struct plan_label label;          /* of the dispatches that come next */
    enum bz_status status;            /* sticky: memory is short, or a limit of the device */
};

/* An empty plan, in the memory of the last one. */
void plan_begin(struct gpu_plan *p);
void plan_free(struct gpu_plan *p);

/* Append a dispatch. The bindings are those of storage buffers in the kernel's order; `params` is
 * the kernel's struct of parameters. No workgroups: nothing is appended. */
void plan_dispatch(struct gpu_plan *p, uint32_t kernel, const struct gpu_constant *constants,
                   uint32_t n_constants, const void *params, const struct gpu_binding *bindings,
                   uint32_t n_bindings, uint32_t n_groups);
/* Append a copy, which comes first if no dispatch was appended yet. */
void plan_copy(struct gpu_plan *p, gpu_buffer from, uint32_t from_at, gpu_buffer to, uint32_t to_at,
               uint32_t n);

static inline const struct gpu_constant *plan_constants(const struct gpu_plan *p,
                                                        const struct dispatch *d)
{
    return (const struct gpu_constant *)(p->words + d->at);
}

static inline const struct gpu_binding *plan_bindings(const struct gpu_plan *p,
                                                      const struct dispatch *d)
{
    return (const struct gpu_binding *)(plan_constants(p, d) + d->n_constants);
}

static inline const void *plan_params(const struct gpu_plan *p, const struct dispatch *d)
{
    return plan_bindings(p, d) + d->n_bindings;
}

#endif
