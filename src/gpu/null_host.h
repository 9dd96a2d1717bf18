/* null_host.h - gpu.h without a device: what a program would do is kept and nothing runs.
 *
 * For `bezel plan` and native tests; the wasm module has no such file. One host a process, used by
 * one thread.
 */
#ifndef BEZEL_GPU_NULL_HOST_H
#define BEZEL_GPU_NULL_HOST_H

#include <stdbool.h>

#include "gpu/profile.h"

enum { NULL_BINDINGS = 14, NULL_CONSTANTS = 8 };

/* A recorded dispatch. */
struct null_dispatch {
    uint32_t kernel;
    struct gpu_constant constants[NULL_CONSTANTS];
    uint32_t n_constants;
    struct gpu_binding bindings[NULL_BINDINGS]; /* uniforms first */
    uint32_t n_bindings;
    uint32_t groups[3]; /* workgroups */
};

/* A device like this stands in until null_host_close; the profile is copied. */
void null_host_open(const struct gpu_profile *profile);
void null_host_close(void);
bool null_host_is_open(void);

/* Bytes of all buffers that exist now; of one. */
uint64_t null_host_bytes(void);
uint32_t null_host_buffer_bytes(gpu_buffer b);

/* The dispatches of a program that exists, in order. */
const struct null_dispatch *null_host_program(gpu_program p, uint32_t *n);

/* The parameter block of a dispatch: `n` bytes. Good until its buffer is freed. */
const void *null_host_params(const struct null_dispatch *d, uint32_t *n);

/* Did memory run out? Then what was recorded is not whole. */
bool null_host_failed(void);

#endif
