/* record.h - makes a plan a program, compiles its pipelines, and tells which tests it waits for.
 *
 * One recorder per engine. It knows every pipeline that a plan has asked for. record_program makes
 * a plan a program: the parameter block of a dispatch goes into the next 256-byte slice of a
 * uniform buffer, its bindings become a bind group. Nothing is freed until the program is.
 */
#ifndef BEZEL_GPU_RECORD_H
#define BEZEL_GPU_RECORD_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/err.h"
#include "gpu/gpu.h"
#include "gpu/plan.h"

enum {
    RECORD_SLICE = 256,      /* the largest uniform alignment that devices ask for */
    RECORD_CHUNK = 64 << 10, /* bytes of one parameter buffer */
    RECORD_PART = 16, /* dispatches that a device can begin with; then twice as many, and so on */
};

/* A program with what belongs to it. Zero is none. */
struct recorded {
    gpu_program program;
    gpu_buffer *chunks;
    uint32_t n_chunks, cap_chunks;
    gpu_group *groups;
    uint32_t n_groups, cap_groups;
};

/* What is known of a kernel that a pipeline was wanted of. */
struct record_kernel {
    uint32_t number;
    bool barred;     /* demoted: its plain variant is recorded instead */
    bool trusted;    /* the self-test has found a result right that it had a part in */
    uint8_t verdict; /* of the last self-test: enum selftest_verdict, and how far it was off */
    double nmse;
};

struct pipeline_slot {
    uint32_t kernel, n_constants; /* kernel: its place in the recorder's list */
    struct gpu_constant constants[PLAN_CONSTANTS];
    gpu_pipeline pipeline; /* 0: it is only queued */
    uint8_t queued;        /* the first group of steps that it is validated with; 0: none */
    bool tested;           /* selftest.c has picked a case for it */
    bool validated;        /* and found its numbers right */
    bool validated_alone;  /* in a case that runs nothing else */
};

/* The pipelines that dispatches would use: their places in the recorder's list. */
struct record_trace {
    uint32_t n, slot[24];
    bool queued;  /* one was not asked for yet */
    bool unknown; /* one is not on the list, or there are more than can be queued */
};

struct recorder {
    struct gpu_limits limits;
    uint32_t processors; /* of the device, by its profile: of kernels with that override */
    gpu_buffer step;     /* struct Step of kernels/lib/step.wgsl */
    struct record_kernel *kernels;
    struct pipeline_slot *pipelines;
    uint32_t n_kernels, cap_kernels, n_barred, n_pipelines, cap_pipelines;
    struct gpu_plan plan; /* the last one that was made, or that is being made */
    struct recorded now;  /* being recorded */
    uint8_t *slices;      /* shadow of the current chunk */
    uint32_t n_slices;    /* used in it */
    uint32_t n_written;   /* of those, in the buffer */
};

enum bz_status recorder_open(struct recorder *r, struct bz_err *err);
void recorder_close(struct recorder *r);

/* Begin a plan. */
void record_begin(struct recorder *r);
/* Add a dispatch to it; the arguments are those of plan_dispatch. A kernel that was demoted gives
 * way to its plain variant; one with the override PROCESSORS is told how many there are. */
void record_dispatch(struct recorder *r, uint32_t kernel, const struct gpu_constant *constants,
                     uint32_t n_constants, const void *params, const struct gpu_binding *bindings,
                     uint32_t n_bindings, uint32_t n_groups);

/* ---- walks of the plan ---- */

/* Its program; scratch[k] is the buffer behind scratch k. Zero, with r->plan.status set, when
 * something failed. */
struct recorded record_program(struct recorder *r, const gpu_buffer *scratch);
/* Note the pipelines as needed by this group of steps (0: by none), and (now) ask for them. */
void record_compile(struct recorder *r, uint8_t group, bool now);
/* The last group, among those from `first` to `last`, that one of the pipelines was queued for and
 * whose numbers the self-test has not found right yet; 0: none. */
uint32_t record_awaits(const struct recorder *r, uint32_t first, uint32_t last);
/* The pipelines' places in the recorder's list. */
struct record_trace record_trace(const struct recorder *r);

/* The pipeline of a kernel without constants, made if need be; 0 when memory is short. */
gpu_pipeline record_pipeline(struct recorder *r, uint32_t kernel);
/* Ask for those that were queued for groups up to this one, but for kernels that were demoted. */
void record_queued(struct recorder *r, uint32_t group);
void recorded_free(struct recorded *p);

/* Record the plain variant in the place of this kernel of a faster tier. False when it is plain, or
 * was demoted before. */
bool recorder_demote(struct recorder *r, uint32_t kernel);
/* Was this kernel demoted? */
bool recorder_bars(const struct recorder *r, uint32_t kernel);

/* Bytes of the parameter buffers of a program of so many dispatches. */
uint64_t recorded_bytes(uint32_t n_dispatches);

#endif
