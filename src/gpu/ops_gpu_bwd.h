/* ops_gpu_bwd.h - shared by the files with the gradients as dispatches. */
#ifndef BEZEL_GPU_OPS_GPU_BWD_H
#define BEZEL_GPU_OPS_GPU_BWD_H

#include "gpu/ops_gpu_impl.h"
#include "ops/ops_bwd.h"

extern const struct backward_ops gpu_backward;

/* What a run of rows keeps within one op, so that longer sequences and larger vocabularies need no
 * more. */
enum {
    GPU_SCORES_BYTES = 32 << 20, /* attention's probabilities; their gradients take as much */
    GPU_LOGITS_BYTES = 64 << 20,
    GPU_MORE_LOGITS_BYTES = 128 << 20, /* where all of a pass is kept, this is not much */
};

/* x = 0, all rows. */
void gpu_zero(struct run *r, struct tensor *x);

void gpu_rms_norm_bwd(struct run *r, struct tensor *dx, bool fresh, const struct tensor *dy,
                      const struct tensor *x, const struct weight *w, float eps);
/* In place on d: from the gradient after norm and rotation of each head to that before them. table
 * NULL: no rotation. */
void gpu_head_norm_rope_bwd(struct run *r, struct tensor *d, const struct tensor *x,
                            const struct weight *w, const struct tensor *table, uint32_t n_head,
                            float eps);
void gpu_rope_bwd(struct run *r, struct tensor *d, const struct tensor *table, uint32_t n_head);
void gpu_gelu_mul_bwd(struct run *r, struct tensor *d, struct tensor *db, const struct tensor *a,
                      const struct tensor *b, uint32_t col);

/* dx += W' dy, without adapters; dx begins at row `first`, and `fresh` says that it holds nothing
 * yet. */
void gpu_transposed(struct run *r, struct tensor *dx, uint32_t first, bool fresh,
                    const struct tensor *dy, const struct weight *w);
void gpu_linear_bwd(struct run *r, struct tensor *dx, bool fresh, const struct tensor *dy,
                    const struct tensor *x, const struct tensor *z, const struct weight *w);

/* The gradients of one trained adapter: z is A x, u is B' dy, of all adapters; `at` is its first
 * column. */
struct gpu_lora_rows {
    const struct tensor *z, *u, *x, *dy;
    const struct tensor *ids; /* NULL: one matrix */
    uint32_t n_used;          /* rows of z that share a row of x (0: each has its own) */
};
void gpu_lora_grads(struct run *r, const struct weight *w, const struct gpu_lora_rows *rows);

void gpu_attention_bwd(struct run *r, struct tensor *dq, struct kv *dkv, const struct tensor *dy,
                       const struct tensor *q, const struct kv *kv, uint32_t n_head,
                       uint32_t window);
/* Attention of a whole sequence from position 0 that heeds kv->starts. */
void gpu_attention_packed(struct run *r, struct tensor *y, const struct tensor *q,
                          const struct kv *kv, uint32_t n_head, uint32_t window);
void gpu_head_loss(struct run *r, struct tensor *loss, struct tensor *dx, const struct tensor *x,
                   const struct weight *head, const struct tensor *targets, float cap,
                   float weight);
void gpu_experts_bwd(struct run *r, struct tensor *dx, bool fresh, struct tensor *dweights,
                     const struct tensor *dy, const struct tensor *x, const struct routing *routing,
                     const struct experts *e);
void gpu_route_bwd(struct run *r, struct tensor *dscores, const struct tensor *dweights,
                   const struct routing *routing);

#endif
