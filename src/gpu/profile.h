/* profile.h - devices by name: what their adapters say, and the numbers that were tuned to them.
 *
 * A constant that a kernel relies on stays beside what records that kernel. Here is what another
 * device may want otherwise: it changes how fast a step is, and never what it computes.
 */
#ifndef BEZEL_GPU_PROFILE_H
#define BEZEL_GPU_PROFILE_H

#include <stdbool.h>
#include <stddef.h>

#include "gpu/gpu.h"

/* A value for matrices of up to so many rows. The last step of a list has UINT32_MAX rows. */
struct gpu_step_at {
    uint32_t rows, value;
};

/* A block of a product of many rows, as one workgroup computes it: rows of W, rows of x, threads;
 * how many workgroups are enough for the device. cost: the time of a result where the device is
 * full, in hundredths of that of the first tile. */
struct gpu_tile {
    uint32_t rows, toks, wg, enough, cost;
};

/* The same by subgroup matrices. cost: the time of a step of 32 columns where the device is full,
 * in hundredths of that of the second tile; busy: how many keep a processor busy, times four. */
struct gpu_matrix_tile {
    uint32_t rows, toks, wg, cost, busy;
};

/* The tests of products run each tile by its number. */
enum { GPU_TILES = 4, GPU_MATRIX_TILES = 7 };

/* Figures are of one H200 where nothing else is said; docs/experiments has them. */
struct gpu_tuning {
    /* ---- the device ---- */
    uint32_t processors;  /* work is divided so that none of them is idle at the end */
    uint32_t sum_wg;      /* threads, at most, of a workgroup that makes one sum */
    bool software;        /* a device in software: threads that work each for itself are best, */
    bool shared_rows_pay; /* and a workgroup's threads do not hold a row together */

    /* ---- products of few rows: experiments/matvec.md ---- */
    uint32_t matmul_from;       /* rows of x from which tiles take their place */
    uint32_t enough_lanes;      /* more lanes a row group while the device has fewer in all */
    uint32_t long_units;        /* rows of W with more units begin with 32 lanes, others with 16 */
    uint32_t four_rows_from;    /* rows of W from which a row group takes four of them; */
    uint32_t two_rows_past[2];  /* it takes two past so many rows and columns, else one */
    uint32_t gate_up_four_from; /* rows of gate from which its row groups take four, */
    uint32_t gate_up_lanes;     /* and then lanes of one at most, without adapters */
    struct gpu_step_at slot_lanes[3]; /* lanes of a row group at most, of products of f32 slots */

    /* ---- products with a shared row: experiments/fusion.md ---- */
    uint32_t shared_lanes; /* of all workgroups together, each of which computes the row again */
    struct gpu_step_at shared_rows[3]; /* rows of W of a row group */
    struct gpu_step_at shared_pair[3]; /* the same of gate and up */
    uint32_t small_hidden;    /* columns past which the residual is a dispatch of its own */
    uint32_t prefetch_groups; /* workgroups of that dispatch that prefetch matrices */
    uint32_t lora_groups;     /* workgroups, about, that share the rows of all A */

    /* ---- attention of few rows: experiments/attention.md ---- */
    uint32_t split_rows;     /* up to so many rows of x the history is split over workgroups */
    uint32_t split_keys;     /* positions of a split at least */
    uint32_t split_most;     /* splits at most; the kernel attn_reduce takes 144 */
    uint32_t split_groups;   /* workgroups that the device has at once */
    uint32_t merged_splits;  /* that every workgroup of the next product may add up for itself */
    uint32_t merge_lanes[2]; /* lanes of a row group of such a product, and with adapters */
    uint32_t merge_one_row;  /* up to so many columns a row group has one row of W, else two */
    uint32_t single_keys;    /* positions of which a head may be one split */
    uint32_t wide_attend_wg; /* threads of a workgroup whose split is long */

    /* ---- products of many rows: experiments/prompts.md ---- */
    struct gpu_tile tiles[GPU_TILES]; /* the largest first */
    uint32_t split_steps; /* columns that are worth a workgroup of their own; UINT32_MAX: never */
    uint32_t split_cols;  /* columns from which a forward product may be split */
    uint32_t split_sums;  /* partial sums added up in the time of a column of the first tile */
    uint32_t parts_bytes; /* of partial sums at most */
    struct gpu_matrix_tile matrix_tiles[GPU_MATRIX_TILES];
    uint32_t matrix_enough;      /* workgroups of subgroup matrices that are enough */
    uint32_t matrix_ends;        /* steps of 32 columns that beginning and end take, */
    uint32_t matrix_sum;         /* the dispatch that sums, */
    uint32_t matrix_sums;        /* so many numbers of it, */
    uint32_t matrix_split_steps; /* and steps that are worth a workgroup */

    /* ---- experts: experiments/experts.md ---- */
    uint32_t group_from;       /* slots an expert from which tiles of slots pay, */
    uint32_t group_from_fours; /* the same where each thread works for itself (software) */
    uint32_t expert_wg;        /* threads that multiply such a tile, each with two rows of W */
    uint32_t readers_choose;   /* rows of x up to which every workgroup chooses for itself */
    uint32_t score_lanes;      /* lanes that compute an expert's score */

    /* ---- a canvas ---- */
    uint32_t canvas_bytes; /* of logits at a time, about */

    /* ---- drawing and training ---- */
    uint32_t argmax_parts;   /* shares of the vocabulary */
    uint32_t bwd_tile;       /* columns and rows of a tile of gradients at most: 64 or 128 */
    uint32_t separate_heads; /* below so many tiles of keys' gradients each head has its own sums */
    uint32_t lora_grad_lanes;  /* of a workgroup of an adapter's gradient, and */
    uint32_t lora_grad_groups; /* its groups of rows */
};

struct gpu_profile {
    const char *name, *about;
    struct gpu_adapter adapter; /* of one such device, with its limits */
    struct gpu_limits limits;
    bool int8;   /* the hardware multiplies int8 (dot4I8Packed): few rows are read as int8 planes */
    bool matrix; /* it has subgroup matrices; `limits` are those of a host that hides them */
    const struct gpu_tuning *tuning;
};

/* The profile of a device: the one that it names, else by vendor and architecture; `spec` for what
 * is not known. */
const struct gpu_profile *gpu_profile_of(const struct gpu_adapter *a, const struct gpu_limits *l);

/* By name; NULL: there is none. By place; NULL past the last. */
const struct gpu_profile *gpu_profile_find(const char *name);
const struct gpu_profile *gpu_profile_at(size_t i);

#endif
