/* gpu.h - the little of WebGPU that Bezel needs, as functions of the host.
 *
 * In the wasm build these are the imports of module "gpu". web/engine/src/gpu/gpu.ts implements
 * them over navigator.gpu, npm `webgpu` or Deno. All of them return at once: nothing here waits for
 * the device. Handles are small numbers, 0 is none. Errors (out of memory, validation, a lost
 * device) are found by the host, which stops calling the core and says why.
 */
#ifndef BEZEL_GPU_GPU_H
#define BEZEL_GPU_GPU_H

#include <stdint.h>

#ifdef __wasm__
#define GPU_IMPORT(name) __attribute__((import_module("gpu"), import_name(name)))
#else
#define GPU_IMPORT(name)
#endif

typedef uint32_t gpu_buffer, gpu_pipeline, gpu_group, gpu_program;

enum gpu_usage {
    GPU_STORAGE = 1,  /* read and written by kernels; copied from and to */
    GPU_UNIFORM = 2,  /* a parameter block */
    GPU_READBACK = 4, /* a kernel's result that the host maps */
};

/* What the device can do; the host fills it once. */
struct gpu_limits {
    uint32_t max_buffer;      /* bytes; 0xffffffff where the device has more */
    uint32_t max_binding;     /* bytes */
    uint32_t max_workgroups;  /* in one dimension */
    uint32_t max_invocations; /* in one workgroup */
    uint32_t max_workgroup_bytes;
    uint32_t max_storage_buffers; /* in one kernel */
    uint32_t uniform_align, storage_align;
    uint32_t subgroup_min, subgroup_max; /* 0 without the feature */
    uint32_t has_f16, has_timestamps;    /* 0 or 1, as below */
    uint32_t has_matrix;     /* 16 x 16 matrices of halves with f32 sums, in subgroups of 32 */
    uint32_t has_packed_dot; /* dot4I8Packed, in the language: hardware may lack it */
};

/* What the device is, in WebGPU's words; "" where the host does not know. */
struct gpu_adapter {
    char vendor[16], architecture[32];
    char profile[16]; /* of gpu/profile.h, where a test or a user wants another's choices; or "" */
};

struct gpu_binding {
    gpu_buffer buffer;
    uint32_t offset, size; /* bytes; size 0: to the end */
};

struct gpu_constant {
    uint32_t index; /* of the override, in the order of the kernel's file */
    float value;
};

GPU_IMPORT("limits") void gpu_get_limits(struct gpu_limits *out);
GPU_IMPORT("adapter") void gpu_get_adapter(struct gpu_adapter *out);

GPU_IMPORT("buffer_new") gpu_buffer gpu_buffer_new(uint32_t n_bytes, uint32_t usage);
GPU_IMPORT("buffer_free") void gpu_buffer_free(gpu_buffer b);
/* Queued before the next submit. n is a multiple of 4. */
GPU_IMPORT("buffer_write")
void gpu_buffer_write(gpu_buffer b, uint32_t offset, const void *p, uint32_t n);

/* Bytes of one buffer into another, queued alike; all multiples of 4. */
GPU_IMPORT("buffer_copy")
void gpu_buffer_copy(gpu_buffer from, uint32_t from_offset, gpu_buffer to, uint32_t to_offset,
                     uint32_t n);

/* Kernel by its number in the generated table; compiled in the background. */
GPU_IMPORT("pipeline_new")
gpu_pipeline gpu_pipeline_new(uint32_t kernel, const struct gpu_constant *c, uint32_t n);
GPU_IMPORT("group_new")
gpu_group gpu_group_new(gpu_pipeline p, const struct gpu_binding *b, uint32_t n);
GPU_IMPORT("group_free") void gpu_group_free(gpu_group g);

/* A program is a list of dispatches in one compute pass, then copies; it is recorded once and
 * submitted by the host as often as it likes. */
GPU_IMPORT("program_begin") void gpu_program_begin(void);
GPU_IMPORT("dispatch")
void gpu_dispatch(gpu_pipeline p, gpu_group g, uint32_t x, uint32_t y, uint32_t z);
/* Before the first dispatch it comes before them all, else after them. */
GPU_IMPORT("copy")
void gpu_copy(gpu_buffer from, uint32_t from_offset, gpu_buffer to, uint32_t to_offset, uint32_t n);
/* What was recorded so far can begin: its parameters are written. The host may submit it now. */
GPU_IMPORT("program_part") void gpu_program_part(void);
GPU_IMPORT("program_end") gpu_program gpu_program_end(void);
GPU_IMPORT("program_free") void gpu_program_free(gpu_program p);

#endif
