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

/* Room for n_ctx tokens. `sampling` has been checked. On failure *out is untouched. */
enum bz_status gpu_draw_open(struct gpu_draw *out, const struct bz_sampling *sampling,
                             const int32_t *suppress, size_t n_suppress, uint32_t n_ctx,
                             uint32_t n_vocab, struct bz_err *err);
void gpu_draw_close(struct gpu_draw *d);

/* Bytes of its buffers, but for the lists. */
uint64_t gpu_draw_bytes(uint32_t n_ctx, uint32_t n_vocab);

/* Queue another mask, for the draws submitted from now on. Only where the sampling had one at the
 * start. */
void gpu_draw_mask(const struct gpu_draw *d, const uint32_t *words);

/* Queue the tokens of positions [first, first + n): the penalties look at them. */
void gpu_draw_history(const struct gpu_draw *d, const int32_t *tokens, uint32_t first, uint32_t n);

/* Record: draw from row 0 of the logits (which are edited in place); the token becomes ids[0] and
 * the step moves on. */
void gpu_draw_record(struct run *r, const struct gpu_draw *d, struct tensor *ids,
                     struct tensor *logits);

#endif
