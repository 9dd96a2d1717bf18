/* config.h - the shape of a model, from its metadata. Everything is derived, nothing is assumed. */
#ifndef BEZEL_MODEL_CONFIG_H
#define BEZEL_MODEL_CONFIG_H

#include <stdbool.h>
#include <stdint.h>

#include "base/err.h"
#include "io/gguf.h"

struct layer_config {
    bool swa;           /* sliding window, else global */
    uint32_t n_kv_head; /* of this layer's (or its donor's) cache */
    uint32_t head_dim;
    uint32_t n_ff; /* dense feed-forward width */
    int32_t donor; /* layer whose keys and values it reads; itself when it owns them */
};

struct config {
    uint32_t n_layer, n_embd, n_head, n_vocab;
    uint32_t n_ctx; /* trained context */
    uint32_t n_swa; /* sliding window, itself included */
    uint32_t n_own; /* layers [0, n_own) own keys and values; the rest read a donor's */
    uint32_t n_ple; /* width of a per-layer embedding; 0: none */
    uint32_t n_expert, n_expert_used, n_ff_expert; /* 0 without experts */
    float eps;                                     /* of every RMS norm */
    float softcap;                                 /* of the logits; 0: none */
    float rope_base, rope_base_swa;
    struct layer_config *layers; /* n_layer; owned */
};

enum { MAX_LAYERS = 1024, MAX_WIDTH = 1 << 20, MAX_EXPERTS = 1024, MAX_EXPERTS_USED = 32 };

/* On failure *out is untouched and err names the key. */
enum bz_status config_read(struct config *out, const struct gguf *g, struct bz_err *err);
void config_free(struct config *c);

#endif
