/* ops_gpu.h - the GPU backend: every op becomes a dispatch of a kernel in kernels/.
 *
 * Ops are called after gpu_ops_begin. They append dispatches to a plan (gpu/plan.h), which is the
 * recorder's from then on, and run nothing. Positions inside a plan are relative: `pos` of an op
 * minus the position that gpu_ops_begin was told becomes the kernel's pos_offset, and the kernel
 * adds the step block's pos. So one plan of a decode step serves every position.
 */
#ifndef BEZEL_GPU_OPS_GPU_H
#define BEZEL_GPU_OPS_GPU_H

#include "gpu/profile.h"
#include "gpu/record.h"
#include "gpu/upload.h"
#include "ops/ops.h"

/* Each tier has the kernels of those before it too. */
enum gpu_tier { TIER_PLAIN, TIER_SUBGROUP, TIER_MATRIX };

/* The buffers behind a scratch of plans. The last one is the largest; programs may still bind the
 * others. */
struct gpu_scratch {
    gpu_buffer buffers[12];
    uint32_t n, bytes;
};

/* Scratch: values that live within one op. The second half is for gradients, which need several ops
 * of others within one of theirs. */
enum {
    SCRATCH_FIRST,
    SCRATCH_SECOND,
    SCRATCH_THIRD,
    SCRATCH_PLAN,
    SCRATCH_HALVES,
    SCRATCH_READY,
    SCRATCH_READY_TOO,
    SCRATCH_PARTS,
    SCRATCH_GATE,
    SCRATCH_UP,
    SCRATCH_ACT,
    SCRATCH_DACT,
    SCRATCH_WIDE,
    N_GPU_SCRATCH
};

/* Tests ask for each way to divide work (struct gpu_ops.tiling), counted from 1: a tile of products
 * of many rows, the rows of a row group, the heads of a workgroup of attention. One tiling has
 * splits of the columns; one, for few rows of x, has row groups of three rows. */
enum { GPU_TILINGS = GPU_MATRIX_TILES, GPU_TILING_SPLITS = 5, GPU_TILING_THREE = 4 };

struct gpu_ops {
    struct recorder rec;
    struct upload upload;
    enum gpu_tier tier;
    const char *profile;             /* the name of the device's profile, */
    const struct gpu_tuning *tuning; /* and its numbers */
    bool int8;                       /* products with codes read int8 planes: formats.c */
    uint32_t horizon;                /* positions that the program is shaped for */
    uint32_t base_pos;               /* position of row 0 at recording time */
    uint32_t tiling;                 /* of tests; 0: chosen by the shape */
    bool wide;        /* tests: every residual counts as one of more than small_hidden columns */
    uint32_t without; /* rules of fuse.c that are off: a bit each, by its number */
    bool roomy;       /* memory is plentiful: gradients may take larger runs at a time */
    struct gpu_scratch scratch[N_GPU_SCRATCH];
    uint32_t parts_room; /* bytes that prompts may take for splits of products: what was reserved */
    gpu_buffer div;      /* rotary divisors */
    uint32_t n_div;
    gpu_buffer unused;    /* bound where a kernel's argument is optional and absent */
    gpu_buffer unread[3]; /* the same for buffers that the kernel would write */
};

/* What a step changes; the layout of struct Step in kernels/lib/step.wgsl. */
struct gpu_step {
    uint32_t pos, rows, token, draw, seed_lo, seed_hi, pad[10];
};

/* On failure *out is untouched. */
enum bz_status gpu_ops_open(struct backend *out, enum gpu_tier tier, struct bz_err *err);

/* Row 0 of the step is at `pos`; the program is meant for positions below `horizon`. */
void gpu_ops_begin(const struct backend *be, uint32_t pos, uint32_t horizon);

/* The program of the plan. Scratch that it lacks is made. */
struct recorded gpu_ops_record(const struct backend *be);
/* Make scratch of so many bytes each, where there is less. False: too often, while programs that
 * bind the older buffers may live. */
bool gpu_ops_reserve(const struct backend *be, const uint64_t *bytes);

/* Queue the step block: row 0 is at `pos`; tokens are drawn from the seed's stream. */
void gpu_write_step(const struct backend *be, uint32_t pos, uint32_t rows, uint64_t seed);

/* A tensor's buffer. */
static inline gpu_buffer gpu_of(const struct tensor *t)
{
    return (gpu_buffer)(uintptr_t)t->mem;
}

#endif
