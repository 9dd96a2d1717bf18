/* plan.h - the dispatches of a step on a GPU, listed without a GPU: `bezel plan`.
 *
 * The model is opened on a host that only remembers (gpu/null_host.h), a step is recorded as it
 * would be on a device, and its dispatches are listed. No weight is read.
 */
#ifndef BEZEL_PLAN_H
#define BEZEL_PLAN_H

#include "bezel.h"

#include "base/mem.h"
#include "gpu/null_host.h"
#include "gpu/plan.h"
#include "gpu/profile.h"

struct plan_options {
    const struct gpu_profile *profile;
    uint32_t tier; /* kernels at most, by plan_tier_find; 0: the best by the profile's limits */
    uint32_t rows; /* tokens read at once; 0: one */
    bool canvas;   /* a step of a diffusion model's canvas, not the encoder pass before it */
    uint32_t
        horizon; /* positions that attention is shaped for; 0: 128, or the context if shorter */
    const char *adapter; /* a file, or NULL */
    uint32_t rank;       /* of one more adapter, of zeros, on every linear; 0: none */
    uint32_t without;    /* rules of gpu/rules.def that are off: a bit each, by its number */
};

/* One dispatch in words. */
struct plan_line {
    const struct null_dispatch *dispatch;
    struct plan_label label;
    const char *kernel;    /* "matmul[q4_k subgroup]" */
    const char *access;    /* a letter for each binding: u uniform, r read, w read and write */
    const char *constants; /* "WG=256 R=2" */
    const char *weights;   /* file names of the matrices that it reads, with spaces between */
    uint64_t bytes;        /* of those; of experts, the share that a token uses for each row */
};

struct plan {
    const char *tier; /* of its kernels: "subgroup" */
    bz_engine *engine;
    bz_session *session;
    struct plan_line *lines;
    uint32_t n;
    const char *pass; /* of a diffusion model: "encoder", or "canvas"; NULL: of a text model */
    uint64_t bytes;   /* of the matrices that all lines read */
    uint64_t weight_bytes, cache_bytes, act_bytes, scratch_bytes; /* on the device */
    struct arena arena;
};

/* The number of a tier, "plain", "subgroup" or "matrix"; 0: there is none of this name. */
uint32_t plan_tier_find(const char *name);

/* The number of a rule of fusion; 0: there is none of this name. */
uint32_t plan_rule_find(const char *name);
/* Of rules from 1 on: its name, and its formula. NULL: there are no more. */
const char *plan_rule_name(uint32_t rule);
const char *plan_rule_formula(uint32_t rule);

/* The plan of a step that makes the last row's logits, and of drawing a token from them; of a
 * diffusion model, of the pass that fills its cache, or of a step of its canvas. `model` as for
 * bz_engine_open. Only one plan is open at a time. On failure *out is untouched. */
enum bz_status plan_open(struct plan *out, const char *model,
                         const struct bz_engine_options *engine,
                         const struct bz_session_options *session,
                         const struct plan_options *options, struct bz_err *err);
void plan_close(struct plan *p); /* accepts a zeroed one */

#endif
