/* quantize.h - a model file in other weight formats. */
#ifndef BEZEL_CLI_QUANTIZE_H
#define BEZEL_CLI_QUANTIZE_H

#include <stdint.h>

#include "base/err.h"
#include "base/pool.h"
#include "cli/quant_mix.h"
#include "io/gguf.h"

/* Called now and then with the weights done so far. */
typedef void (*quantize_progress)(void *ctx, uint64_t done, uint64_t total);

/* Write g to path with every tensor in the format that the mix asks for, and the same metadata but
 * for general.file_type. Memory stays at a few dozen MB whatever the model. pool and progress may
 * be NULL. On failure nothing is left behind. */
enum bz_status quantize_file(const struct gguf *g, const char *path, enum mix_id mix,
                             struct pool *pool, quantize_progress progress, void *ctx,
                             struct bz_err *err);

#endif
