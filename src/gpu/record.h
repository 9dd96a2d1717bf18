/* record.h - recording dispatches: pipelines, parameter slices, bind groups.
 *
 * One recorder per engine. Between record_begin and record_end each record_dispatch adds one kernel
 * to the program: its parameter block goes into the next 256-byte slice of a uniform buffer, its
 * bindings become a bind group. Nothing is freed until the program is.
 */
#ifndef BEZEL_GPU_RECORD_H
#define BEZEL_GPU_RECORD_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/err.h"
#include "gpu/gpu.h"
#include "gpu/kernel.h"

enum {
    RECORD_SLICE = 256,      /* the largest uniform alignment that devices ask for */
    RECORD_CHUNK = 64 << 10, /* bytes of one parameter buffer */
    RECORD_PART = 16, /* dispatches that a device can begin with; then twice as many, and so on */
    RECORD_MAX_CONSTANTS = 8,
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
    bool barred;     /* it was demoted: its plain variant takes its place */
    bool vouched;    /* a result of the self-test that it had a part in was right */
    uint8_t verdict; /* of the last self-test: enum selftest_verdict, and how far it was off */
    double nmse;
};

struct pipeline_slot {
    uint32_t kernel, n_constants; /* kernel: its place in the recorder's list */
    struct gpu_constant constants[RECORD_MAX_CONSTANTS];
    gpu_pipeline pipeline; /* 0: it is only noted */
    uint8_t noted;         /* the first group of steps that it is proven with; 0: none */
    bool tested;           /* selftest.c has picked a case for it */
    bool proven;           /* and found its numbers right */
    bool proven_alone;     /* in a case that runs nothing else */
};

/* The pipelines that dispatches would use: their places in the recorder's list. */
struct record_trace {
    uint32_t n, slot[24];
    bool noted;   /* one was not asked for yet */
    bool unknown; /* one is not on the list, or there are more than can be noted */
};

/* What becomes of a dispatch. */
enum record_mode {
    RECORD_PROGRAM,   /* it is part of a program */
    RECORD_PIPELINES, /* its pipeline is made, so that it compiles before it is needed */
    RECORD_NOTES,     /* its pipeline is noted, for record_noted() to make */
    RECORD_NOTHING,   /* it is counted */
};

struct recorder {
    struct gpu_limits limits;
    enum record_mode mode;
    uint8_t group; /* of steps, from 1 on: for which pipelines are noted now; 0: for none */
    struct record_trace *trace; /* of RECORD_NOTHING; may be NULL */
    gpu_buffer step;            /* struct Step of kernels/lib/step.wgsl */
    struct record_kernel *kernels;
    struct pipeline_slot *pipelines;
    uint32_t n_kernels, cap_kernels, n_barred, n_pipelines, cap_pipelines;
    struct recorded now; /* being recorded */
    uint8_t *slices;     /* shadow of the current chunk */
    uint32_t n_slices;   /* used in it */
    uint32_t n_written;  /* of those, in the buffer */
    uint32_t n_dispatches, next_part;
    uint32_t unproven; /* in RECORD_NOTHING: the last group that one was noted for and not proven */
    uint32_t awaited[2];   /* of the groups from the one to the other */
    enum bz_status status; /* sticky: memory */
};

enum bz_status recorder_open(struct recorder *r, struct bz_err *err);
void recorder_close(struct recorder *r);

void record_begin(struct recorder *r);
/* The pipeline of a kernel without constants, made if need be; 0 when memory is short. */
gpu_pipeline record_pipeline(struct recorder *r, uint32_t kernel);
/* Make those that were noted for groups up to this one, but for kernels that were demoted since. */
void record_noted(struct recorder *r, uint32_t group);
/* The bindings of storage buffers in the kernel's order; params and step are added here. */
void record_dispatch(struct recorder *r, uint32_t kernel, const struct gpu_constant *constants,
                     uint32_t n_constants, const void *params, const struct gpu_binding *bindings,
                     uint32_t n_bindings, uint32_t n_groups);
/* The finished program; zero with r->status set when something failed, or when none was recorded.
 */
struct recorded record_end(struct recorder *r);
void recorded_free(struct recorded *p);

/* Record the plain variant in the place of this kernel of a faster tier. False when it is plain, or
 * was demoted before. */
bool recorder_demote(struct recorder *r, uint32_t kernel);
/* Was it? */
bool recorder_bars(const struct recorder *r, uint32_t kernel);

/* Bytes of the parameter buffers of a program of so many dispatches. */
uint64_t recorded_bytes(uint32_t n_dispatches);

#endif
