/* forward.h - one step of the network: its tapes, and their memory. */
#ifndef BEZEL_MODEL_FORWARD_H
#define BEZEL_MODEL_FORWARD_H

#include "model/canvas.h"

enum { LOGIT_ROWS = 8 }; /* rows of logits made together: 8 MiB at 262,144 tokens */

/* The activations of a session. The tensors outlive a step; all between them lies in `memory`. */
struct acts {
    struct tensor ids;    /* i32, the tokens */
    struct tensor ple;    /* per-layer inputs of all layers */
    struct tensor result; /* final norm of the rows whose logits are wanted; not on a GPU */
    struct tensor logits; /* LOGIT_ROWS at a time */
    struct canvas canvas; /* of a diffusion model; else n is 0 */
    struct tensor soft;   /* n x n_embd: what the last step thought of each position */
    struct tape_memory memory;
    struct tape step, head; /* of the last step; of the last logits */
    struct tape denoise;    /* of the last step of the canvas */
    bool denoise_rows;      /* and that it ended with its rows in the result */
    const struct kv_cache *kv;
    uint32_t n_batch;
    uint32_t head_first; /* row of the result that `head` begins with */
};

enum bz_status acts_open(struct acts *out, const struct model *m, const struct backend *be,
                         const struct kv_cache *kv, uint32_t n_batch, struct bz_err *err);
void acts_close(struct acts *a, const struct backend *be);
/* Bytes that acts_open would take; UINT64_MAX: memory is too short to find out. */
uint64_t acts_bytes(const struct model *m, const struct backend *be, uint32_t n_batch);

/* Run the tokens in a->ids (rows set) at the positions from kv->n_past on. Writes keys and values,
 * and leaves the final norm of the last n_logits rows in a->result. The cache is not advanced. */
void model_forward(struct run *r, const struct model *m, struct acts *a, uint32_t n_logits);

/* Soft-capped logits of n <= LOGIT_ROWS rows of a->result, into a->logits. */
void model_logits(struct run *r, const struct model *m, struct acts *a, uint32_t first, uint32_t n);

/* Before the first step of a canvas: no step has thought of it yet. */
void model_forget(struct run *r, struct acts *a);

/* A step of the canvas after the text in the cache: its ids, soft and state are changed. */
void model_denoise(struct run *r, const struct model *m, struct acts *a);

/* The same as far as the final norm of all rows, into a->result; the canvas stays as it is. */
void model_canvas_rows(struct run *r, const struct model *m, struct acts *a);

/* For a backend that fuses: both at once, with n_logits <= LOGIT_ROWS. It is planned, not run. */
void model_step(struct run *r, const struct model *m, struct acts *a, uint32_t n_logits);

#endif
