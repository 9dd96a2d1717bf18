/* upload.h - weights on their way to the GPU: what is to be read, repacked and written, in windows.
 *
 * Binding a model makes a list of jobs (one per tensor) and reads nothing. Then the host asks for the
 * next window, brings its bytes, and gives them back; the wasm heap never holds more than one.
 */
#ifndef BEZEL_GPU_UPLOAD_H
#define BEZEL_GPU_UPLOAD_H

#include <stdbool.h>
#include <stdint.h>

#include "base/err.h"
#include "gpu/gpu.h"
#include "gpu/repack.h"
#include "ops/ops.h"

/* Rows [row0, row0 + rows) of a weight in one buffer, small enough for a binding. */
struct gpu_part {
    gpu_buffer buffer;
    uint32_t row0, rows;
    struct repack_layout layout; /* offsets of scales and the like */
};

struct gpu_weight {
    enum gpu_shape shape;
    uint32_t n_parts;
    struct gpu_part *parts;
};

struct upload_job {
    const struct weight *w;
    struct gpu_weight *to;
};

struct upload {
    struct upload_job *jobs;
    uint32_t n_jobs, cap_jobs;
    uint32_t job, part, row;          /* where the next window begins */
    uint64_t bytes_done, bytes_total; /* of the file */
};

#endif
