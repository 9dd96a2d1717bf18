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

/* A canvas of tokens that is denoised as a whole (arch diffusion-gemma), and how it is sampled
 * where the caller does not say. */
struct canvas_config {
    uint32_t n_canvas;   /* its length; 0: the model writes one token after the other */
    uint32_t n_ff;       /* width of the self-conditioning's feed-forward */
    uint32_t n_steps;    /* of a canvas at most */
    float t_min, t_max;  /* step n = n_steps, ..., 1 has t_min + (t_max - t_min) n / n_steps */
    float entropy_bound; /* nats: how much the accepted positions may lack in certainty */
    uint32_t n_stable;   /* so many steps in a row must leave the canvas as it was */
    float confidence;    /* nats: mean entropy below which a stable canvas is finished */
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
    struct canvas_config canvas;
    struct layer_config *layers; /* n_layer; owned */
};

enum { MAX_LAYERS = 1024, MAX_WIDTH = 1 << 20, MAX_EXPERTS = 1024, MAX_EXPERTS_USED = 32 };
enum { MAX_CANVAS = 4096, MAX_CANVAS_STEPS = 1024 };

/* What the sampling of a canvas may be, for files and callers alike. */
#define MIN_TEMPERATURE 0.01
#define MAX_TEMPERATURE 100.0
#define MAX_ENTROPY     1e6

/* On failure *out is untouched and err names the key. */
enum bz_status config_read(struct config *out, const struct gguf *g, struct bz_err *err);
void config_free(struct config *c);

/* general.architecture of such a model, and of adapters for it. */
static inline const char *config_arch(const struct config *c)
{
    return c->canvas.n_canvas ? "diffusion-gemma" : "gemma4";
}

#endif
