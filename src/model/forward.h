/* forward.h - one step of the network. */
#ifndef BEZEL_MODEL_FORWARD_H
#define BEZEL_MODEL_FORWARD_H

#include "model/kv.h"
#include "model/weights.h"
#include "ops/ops.h"

/* Activations: each its own buffer, sized once for the largest batch and the widest layer. */
struct acts {
    struct tensor ids;                   /* i32, the tokens */
    struct tensor x, norm, branch;       /* n_embd: residual stream, normed copy, branch to add */
    struct tensor next;                  /* the stream's next state, then the two change places */
    struct tensor q, k, v, attn;         /* heads */
    struct tensor heads;                 /* the memory of the first three */
    struct tensor gate, up;              /* feed-forward */
    struct tensor ple, ple_part;         /* per-layer inputs of all layers; one layer's gate */
    struct tensor experts;               /* beside the branch, which is the dense half then */
    struct tensor sum;                   /* of a routed layer's halves */
    struct routing routing;              /* experts chosen */
    struct tensor rope_global, rope_swa; /* cos and sin of the batch's positions */
    struct tensor tail_x, tail_norm, tail_ple; /* the rows that go on when others leave */
    struct tensor result;                      /* final norm of the rows whose logits are wanted */
    struct tensor logit_in, logits;            /* LOGIT_ROWS at a time */
};

enum { LOGIT_ROWS = 8 }; /* rows of logits made together: 8 MiB at 262,144 tokens */

enum bz_status acts_open(struct acts *out, const struct model *m, const struct backend *be,
                         uint32_t n_batch, struct bz_err *err);
void acts_close(struct acts *a, const struct model *m, const struct backend *be);
uint64_t acts_bytes(const struct model *m, uint32_t n_batch);

/* What rows of the per-layer embedding table are multiplied by. */
float model_ple_scale(const struct model *m);

/* The part before the first layer, for the tokens in a->ids (rows set) at positions pos ...: a->x, a->ple
 * and the rotary tables. */
void model_input(struct run *r, const struct model *m, struct acts *a, uint32_t pos);

/* Run the tokens in a->ids (rows set) at positions kv->n_past .... Writes keys and values, and leaves
 * the final norm of the last n_logits rows in a->result. The cache is not advanced. */
void model_forward(struct run *r, const struct model *m, struct kv_cache *kv, struct acts *a,
                   uint32_t n_logits);

/* Soft-capped logits of n <= LOGIT_ROWS rows of a->result, into a->logits. */
void model_logits(struct run *r, const struct model *m, struct acts *a, uint32_t first, uint32_t n);

#endif
