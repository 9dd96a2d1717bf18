/* pass.h - the network as training sees it: one sequence forward, its losses, and back.
 *
 * A pass is one tape: text.c's network, the loss, and the gradients that tape_differentiate
 * appends. What a gradient reads is kept: all of it (keep_all), or of each layer its input, from
 * which the layer is computed again on the way back. That is gradient checkpointing: a third more
 * arithmetic for a fraction of the memory.
 */
#ifndef BEZEL_TRAIN_PASS_H
#define BEZEL_TRAIN_PASS_H

#include "model/text.h"
#include "ops/ops_bwd.h"

struct pass {
    const struct model *m;
    const struct backend *be;
    uint32_t n_max; /* positions at most */
    bool keep_all;
    struct tensor ids, targets; /* i32, the tokens, and those that should follow */
    struct tensor starts;       /* i32: where the example of each position begins */
    struct tensor loss;
    struct kv_cache kv; /* shapes alone: keys and values are the tape's */
    struct tape tape;   /* of the last pass */
    struct tape_memory memory;
};

/* The trained adapters hang on the model. On failure *out is untouched. */
enum bz_status pass_open(struct pass *out, const struct model *m, const struct backend *be,
                         uint32_t n_max, bool keep_all, struct bz_err *err);
void pass_close(struct pass *p); /* accepts a zeroed one */

/* Bytes that pass_open would take; UINT64_MAX: memory is too short to find out. */
uint64_t pass_bytes(const struct model *m, const struct backend *be, uint32_t n_max, bool keep_all);

/* From now on sequences hold several examples that do not see one another: position p belongs to
 * the example that begins at starts[p]. NULL: one example each, as at the start. Rotations depend
 * on distances alone, so an example that begins later gives the same numbers. */
void pass_pack(struct run *r, struct pass *p, const int32_t *starts, uint32_t n);

/* The inputs of a pass over n tokens. targets[t] is the token that should follow position t, or
 * negative where nothing is learned. A backend that records writes the inputs anew and repeats the
 * recorded pass. */
void pass_put(struct run *r, struct pass *p, const int32_t *ids, const int32_t *targets,
              uint32_t n);

/* Run them from position 0. Afterwards p->loss has each position's loss. pass_gradients: the
 * trained adapters' gradients (struct lora.grad) have grown by d (weight * sum of losses). */
void pass_losses(struct run *r, struct pass *p, uint32_t n);
void pass_gradients(struct run *r, struct pass *p, uint32_t n, float weight);

#endif
