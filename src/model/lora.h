/* lora.h - an adapter hung onto a model's linears, and taken off again. */
#ifndef BEZEL_MODEL_LORA_H
#define BEZEL_MODEL_LORA_H

#include "io/adapter.h"
#include "model/weights.h"

enum { LORA_MAX_RANK = 256 };

struct lora_node; /* one target: its matrices and where it hangs */

struct attached {
    struct adapter adapter; /* owned */
    struct lora_node *nodes;
    size_t n_nodes;
    size_t n_inert; /* targets that have no effect on this model */
};

/* Check every target against the model and hang it on. Takes over the adapter in every case. On
 * failure the model is unchanged and *out untouched. */
enum bz_status lora_attach(struct attached *out, struct adapter *adapter, float user_scale,
                           struct model *m, const struct backend *be, struct bz_err *err);
void lora_set_scale(struct attached *a, float user_scale, const struct backend *be);

/* Free the adapter's own bytes: the backend has copied the matrices (its `adapt` is not NULL). */
void lora_forget_bytes(struct attached *a);
void lora_detach(struct attached *a, const struct backend *be);

#endif
