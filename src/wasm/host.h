/* host.h - what the wasm module asks of its host besides the GPU: the imports of module "host"; and
 * what it shows to the host.
 *
 * Imports return at once. The host numbers the sources of bytes as it likes. When a read fails the
 * host remembers why, and shows its reason together with our sentence.
 */
#ifndef BEZEL_WASM_HOST_H
#define BEZEL_WASM_HOST_H

#include <stdint.h>

#include "io/source.h"

#define HOST_IMPORT(name) __attribute__((import_module("host"), import_name(name)))

/* Fill dst with n bytes at offset (a whole number, below 2^53); 0 when all of them are there. */
HOST_IMPORT("read") int32_t host_read(uint32_t source, double offset, void *dst, uint32_t n);

/* The logits of a position, while tokens are read; 0 stops. */
HOST_IMPORT("logits") int32_t host_logits(uint32_t position, const float *logits);

/* Bytes that the last call handed over. */
struct host_result {
    const void *data;
    uint32_t n_bytes;
};

/* Bytes of a source that the host is to bring. */
struct host_window {
    uint32_t source, n_bytes;
    double offset;
    uint32_t placed; /* with bz_wasm_gpu_upload_place, else with bz_wasm_gpu_upload_give */
};

/* A table in a source: a row is at offset + id * row_bytes. */
struct host_table {
    uint32_t source, row_bytes;
    double offset;
    uint32_t n_rows;
};

/* Bytes of a buffer on the device. */
struct host_range {
    uint32_t buffer, offset, n_bytes;
};

/* A session's canvas: src/ops/canvas.h says what its parts are. */
struct host_canvas {
    uint32_t buffer;     /* of the canvas on the device; 0: there is none */
    uint32_t n, n_shown; /* its tokens; words that a step shows */
    uint32_t words;      /* address of the module's copy of all words */
    uint32_t n_words;    /* of these */
    uint32_t ids, best;  /* where parts begin, in words */
    uint32_t entropy, accepted;
    uint32_t soft, n_soft; /* what the last step thought, f32: its buffer, or address */
};

/* Groups of steps, in the order in which their pipelines are requested and tested. */
enum reserve {
    RESERVE_BYTES, /* none */
    RESERVE_FIRST, /* the first prompt, and drawing a token */
    RESERVE_STEPS, /* tokens one by one; short prompts after that */
    RESERVE_ALL,
    RESERVE_REST, /* prompts of other lengths, and long histories: no step waits for their tests */
};

/* What may come next of a text. */
enum next_kind {
    NEXT_SAME,   /* it is drawn from the same tokens as the one before; from all, to begin with */
    NEXT_OTHERS, /* it is drawn from others */
    NEXT_FORCED, /* tokens that are known: nothing is drawn */
};

/* An adapter as a file. */
enum adapter_file { ADAPTER_GGUF, ADAPTER_SAFETENSORS, ADAPTER_CONFIG };

/* A source of the host's. On failure *out is untouched. */
enum bz_status host_source_open(struct source *out, uint32_t id, const char *name, size_t n_name,
                                uint64_t size, struct bz_err *err);

#endif
