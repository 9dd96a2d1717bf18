/* adapter.h - LoRA adapters, from GGUF or from PEFT, in one neutral form.
 *
 *     y = W x + scale * user_scale * B (A x)
 *
 * All weights are f32 in memory (an adapter is small). The two halves of every target are checked
 * against each other here; whether they fit the base model is checked by who knows its shapes.
 */
#ifndef BEZEL_IO_ADAPTER_H
#define BEZEL_IO_ADAPTER_H

#include <stddef.h>
#include <stdint.h>

#include "base/err.h"
#include "base/mem.h"
#include "base/str.h"
#include "io/gguf.h"
#include "io/source.h"

/* Where a target acts. A diffusion model uses one tensor in two passes, and PEFT may have learned
 * something else for each: one tensor then has two targets. */
enum adapter_pass { ADAPTER_BOTH, ADAPTER_ENCODER, ADAPTER_DECODER };

struct adapter_target {
    const char *name; /* the base tensor: "blk.0.attn_q.weight" */
    enum adapter_pass pass;
    uint32_t rank, n_in, n_out;
    uint32_t n_expert; /* 1 unless the base tensor is a stack of experts */
    float scale;       /* alpha / rank, or alpha / sqrt(rank) */
    float *a;          /* n_expert x rank x n_in */
    float *b;          /* n_expert x n_out x rank */
};

struct adapter {
    const char *arch; /* general.architecture; "" from PEFT, which does not say */
    float alpha;      /* of the whole adapter; a target may have had its own */
    struct adapter_target *targets;
    size_t n_targets;
    const char **warnings; /* sentences about what was left out */
    size_t n_warnings;
    struct arena arena; /* the texts above */
};

/* A directory or a .safetensors file is PEFT's (its adapter_config.json lies beside the weights),
 * everything else is taken for GGUF. On failure *out is untouched; so for all below. */
enum bz_status adapter_open_file(struct adapter *out, const char *path, struct bz_err *err);

/* g stays the caller's and is not needed afterwards. */
enum bz_status adapter_open_gguf(struct adapter *out, const struct gguf *g, struct bz_err *err);

/* `weights` is a safetensors file, taken over in every case; `config` the text of
 * adapter_config.json. */
enum bz_status adapter_open_peft(struct adapter *out, const struct source *weights,
                                 struct str config, struct bz_err *err);

/* Is this the shape of the tensor that it changes? */
enum bz_status adapter_check_shape(const struct adapter_target *t, uint64_t n_in, uint64_t n_out,
                                   uint64_t n_expert, struct bz_err *err);

/* Of all its numbers and names: other ones, another number. */
uint64_t adapter_digest(const struct adapter *a);

void adapter_close(struct adapter *a);

#endif
