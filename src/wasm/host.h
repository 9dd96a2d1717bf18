/* host.h - what the wasm module asks of its host besides the GPU: the imports of module "host".
 *
 * All of them return at once. The host numbers the sources of bytes as it likes. When a read fails
 * the host remembers why, and shows its reason together with our sentence.
 */
#ifndef BEZEL_WASM_HOST_H
#define BEZEL_WASM_HOST_H

#include <stdint.h>

#include "io/source.h"

#define HOST_IMPORT(name) __attribute__((import_module("host"), import_name(name)))

/* Fill dst with n bytes at offset (a whole number, below 2^53); 0 when all of them are there. */
HOST_IMPORT("read") int32_t host_read(uint32_t source, double offset, void *dst, uint32_t n);

/* The logits of a position, while they are being fed; 0 stops. */
HOST_IMPORT("logits") int32_t host_logits(uint32_t position, const float *logits);

/* A source of the host's. On failure *out is untouched. */
enum bz_status host_source_open(struct source *out, uint32_t id, const char *name, size_t n_name,
                                uint64_t size, struct bz_err *err);

#endif
