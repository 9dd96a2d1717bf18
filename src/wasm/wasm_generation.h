/* wasm_generation.h - a text being generated, for the files that export its steps. */
#ifndef BEZEL_WASM_WASM_GENERATION_H
#define BEZEL_WASM_WASM_GENERATION_H

#include "wasm/wasm.h"

/* A generation with the options that it points to. */
struct wasm_generation {
    struct generation g;
    struct bz_generate_options options;
    bz_session *session;
    struct arena arena; /* stop strings, biases, a canvas */
    uint32_t *mask;     /* of a constraint: which tokens the last look found */
    uint32_t n_mask;    /* words of it; 0: it found none yet */
};

/* The canvas of a diffusion model, from "diffusion" of the options; absent members have the model's
 * defaults. What it points to is in the arena. */
enum bz_status wasm_read_diffusion(struct bz_generate_options *o, const bz_engine *e,
                                   const struct json *options, struct arena *a);

#endif
