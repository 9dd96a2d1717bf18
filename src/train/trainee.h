/* trainee.h - the adapter that is being trained: A and B of every target, the sums of their
 * gradients, and the optimiser's two moments.
 *
 * All of it lives on the backend. The model reads A and B through ordinary weights on the same
 * memory, so a changed number counts at once. A backend that keeps adapters in an order of its own
 * is told of changes (op_publish).
 */
#ifndef BEZEL_TRAIN_TRAINEE_H
#define BEZEL_TRAIN_TRAINEE_H

#include "io/adapter.h"
#include "model/weights.h"
#include "ops/ops_bwd.h"

/* A matrix that learns, as rows x cols floats: parts of a slab. */
struct learning {
    struct tensor value, m, v; /* the number, and its moments */
};

struct trainee_target {
    char name[96];        /* of the base tensor */
    struct weight *where; /* in the model */
    struct lora lora;     /* what hangs there */
    struct lora_grad grad;
    struct learning a, b;
    struct source a_bytes, b_bytes;
    bool hangs; /* the lora is on the model's list */
};

/* Memory of many matrices in a row, so that a few ops of the optimiser serve all of them. */
struct slab {
    struct tensor value, m, v, grad;
};

struct trainee {
    const struct backend *be;
    struct slab *slabs; /* of A's, then of B's */
    size_t n_slabs;
    struct trainee_target *targets;
    size_t n_targets;
    uint32_t rank;
    float alpha;
    bool rslora;          /* the scale is alpha / sqrt(rank) instead of alpha / rank */
    struct dropout *drop; /* of all; its share is 0 but while gradients are made */
};

struct trainee_options {
    uint32_t rank; /* 1 to 256 */
    float alpha;
    bool rslora;
    /* Parts of names, such as "attn_q" or "blk.3.", in which a star stands for anything
     * ("blk.*.ffn_"). n 0: every linear but routers and experts. */
    const char *const *targets;
    size_t n_targets;
    uint64_t seed; /* of A; B starts as zero, so that the model starts as it was */
};

/* Make the adapter and attach it to the model. On failure neither *out nor the model has
 * changed. */
enum bz_status trainee_open(struct trainee *out, struct model *m, const struct backend *be,
                            const struct trainee_options *options, struct bz_err *err);
void trainee_close(struct trainee *t); /* takes it off the model; accepts a zeroed one */

/* Bytes that trainee_open would take: numbers, gradients and moments. */
uint64_t trainee_bytes(struct model *m, const struct trainee_options *options);

/* What would hang there, without numbers and memory, so that a pass can be planned. trainee_close
 * takes it off again. False: memory is short. */
bool trainee_imagine(struct trainee *out, struct model *m, const struct trainee_options *options);

/* How strongly the model feels it: 1 while it learns (and at first), 0 for the model without it. */
void trainee_set_scale(struct trainee *t, float scale);

void trainee_zero_grads(struct run *r, struct trainee *t);

/* control[CONTROL_SQUARES] += the squares of all gradients. */
void trainee_sum_squares(struct run *r, const struct trainee *t, struct tensor *control);

/* A step of the optimiser, as `control` says. */
void trainee_update(struct run *r, struct trainee *t, const struct tensor *control,
                    const struct adamw *o);

/* A and B have changed. */
void trainee_publish(struct run *r, struct trainee *t);

#endif
