/* draw.h - choosing the next token on the device, in the order of src/text/sampler.c. */
#ifndef BEZEL_GPU_DRAW_H
#define BEZEL_GPU_DRAW_H

#include "gpu/ops_gpu.h"

/* A session's way of drawing, with the buffers that it needs. Zero is none. */
struct gpu_draw {
    struct bz_sampling sampling; /* without mask and biases, which are in buffers */
    uint32_t n_suppress, n_bias;
    gpu_buffer lists;   /* ids never drawn, then (id, bits of f32) of the biases */
    gpu_buffer history; /* tokens by position */
    gpu_buffer counts;  /* n_vocab, all zero between draws */
    gpu_buffer mask;    /* a bit a token: what a grammar allows; 0: there is no grammar */
    uint32_t n_mask;    /* words of it */
};

struct gpu_draw_options {
    const struct bz_sampling *sampling; /* it has been checked; its mask is not looked at */
    const int32_t *suppress;
    size_t n_suppress;
    uint32_t n_ctx, n_vocab; /* room for so many tokens */
    bool masked;             /* there will be masks */
};

/* On failure *out is untouched. */
enum bz_status gpu_draw_open(struct gpu_draw *out, const struct gpu_draw_options *how,
                             struct bz_err *err);
void gpu_draw_close(struct gpu_draw *d);

/* Bytes of its buffers, but for the lists. */
uint64_t gpu_draw_bytes(uint32_t n_ctx, uint32_t n_vocab);

/* Queue a mask, for the masked draws that are submitted from now on. */
void gpu_draw_mask(const struct gpu_draw *d, const uint32_t *words);

/* Queue the tokens of positions [first, first + n): the penalties look at them. */
void gpu_draw_history(const struct gpu_draw *d, const int32_t *tokens, uint32_t first, uint32_t n);

/* Record: draw from row 0 of the logits (which are edited in place), from the mask where `masked`;
 * the token becomes ids[0] and the step moves on. */
void gpu_draw_record(struct run *r, const struct gpu_draw *d, bool masked, struct tensor *ids,
                     struct tensor *logits);

#endif
