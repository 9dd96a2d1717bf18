/* ops_bwd.h - gradients: for each op that training passes through, its reverse.
 *
 * dX is the derivative of the loss by X. The base is frozen, so weights have no gradient; trained
 * are the adapters that have a place for theirs (struct lora.grad). Where a comment says "added",
 * the argument is accumulated into, since several consumers of a value each add their part; where
 * there is a `fresh`, it says that dx holds nothing yet, and is set.
 */
#ifndef BEZEL_OPS_OPS_BWD_H
#define BEZEL_OPS_OPS_BWD_H

#include "ops/ops.h"

/* The inputs and outputs of a step of the optimiser, as rows of one number each. A backend that
 * only records keeps all of them on the device, and the host reads them once, after the step. */
enum control {
    CONTROL_LR,
    CONTROL_FIX1, /* 1 / (1 - beta^step) of both moments: their bias at the start */
    CONTROL_FIX2,
    CONTROL_SHARE,   /* multiplies every gradient: one over the number of learned tokens */
    CONTROL_LOSS,    /* sum of losses */
    CONTROL_SQUARES, /* sum of the gradients' squares, before the share */
    CONTROL_LENGTH,  /* of the gradient, by op_clip */
    CONTROL_SCALE,   /* what op_adamw multiplies by; negative: loss or gradient are no numbers */
    N_CONTROL
};

struct adamw {
    float beta1, beta2, eps, decay;
};

/* What a backend that can train implements. */
struct backward_ops {
    bool drops_experts; /* experts too heed lora.drop, as linears do, both ways */
    bool records;       /* ops are only queued, to be run by the host */
    /* Sequences have a multiple of so many rows (long ones of 4 times as many), so that there are
     * few programs. */
    uint32_t row_step;
    void (*zero)(struct run *r, struct tensor *t);
    void (*rms_norm)(struct run *r, struct tensor *dx, bool fresh, const struct tensor *dy,
                     const struct tensor *x, const struct weight *w, float eps);
    void (*rows)(struct run *r, struct tensor *dx, const struct tensor *dy, uint32_t first);
    void (*linear)(struct run *r, struct tensor *dx, bool fresh, const struct tensor *dy,
                   const struct tensor *x, const struct tensor *z, const struct weight *w);
    void (*head_norm)(struct run *r, struct tensor *d, const struct tensor *x,
                      const struct weight *w, uint32_t n_head, float eps);
    void (*rope)(struct run *r, struct tensor *d, const struct tensor *table, uint32_t n_head);
    void (*attention)(struct run *r, struct tensor *dq, struct kv *dkv, const struct tensor *dy,
                      const struct tensor *q, const struct kv *kv, uint32_t n_head,
                      uint32_t window);
    void (*gelu_mul)(struct run *r, struct tensor *d, struct tensor *db, const struct tensor *a,
                     const struct tensor *b, uint32_t col);
    void (*experts)(struct run *r, struct tensor *dx, bool fresh, struct tensor *dweights,
                    const struct tensor *dy, const struct tensor *x, const struct routing *routing,
                    const struct experts *e);
    void (*route)(struct run *r, struct tensor *dscores, const struct tensor *dweights,
                  const struct routing *routing);
    void (*head_loss)(struct run *r, struct tensor *loss, struct tensor *dx, const struct tensor *x,
                      const struct weight *head, const struct tensor *targets, float cap,
                      float weight);
    void (*sum)(struct run *r, struct tensor *control, enum control at, const struct tensor *t,
                bool squares);
    void (*clip)(struct run *r, struct tensor *control, float most);
    void (*adamw)(struct run *r, struct tensor *x, const struct tensor *g, struct tensor *m,
                  struct tensor *v, const struct tensor *control, const struct adamw *o);
    /* NULL: the adapter's weights look into a and b. */
    void (*publish)(struct run *r, const struct weight *w, const struct lora *l,
                    const struct tensor *a, const struct tensor *b);
};

/* rows x cols zeros: where gradients are added up. */
void op_zero(struct run *r, struct tensor *t, uint32_t rows);

/* y = rms_norm(x) * w. With n = x / rms and g = dy * w: dx += (g - n * mean(g * n)) / rms. */
void op_rms_norm_bwd(struct run *r, struct tensor *dx, bool fresh, const struct tensor *dy,
                     const struct tensor *x, const struct weight *w, float eps);

/* The reverse of op_copy_rows: rows [first, first + dy.rows) of dx (added) += dy. */
void op_rows_bwd(struct run *r, struct tensor *dx, const struct tensor *dy, uint32_t first);

/* The reverse of y = W x + s B (A x), for each adapter. dx (added; may be NULL) += W' dy + s A' (B'
 * dy). For a trained adapter dB += s dy' z and dA += s (B' dy)' x, with op_linear_z's z = A x;
 * without one x and z may be NULL. With dropout, x is what A saw, and A' drops the same numbers of
 * the gradient. */
void op_linear_bwd(struct run *r, struct tensor *dx, bool fresh, const struct tensor *dy,
                   const struct tensor *x, const struct tensor *z, const struct weight *w);

/* In place on d: from the gradient after the norm of each head to that before it. x is what came
 * in. */
void op_head_norm_bwd(struct run *r, struct tensor *d, const struct tensor *x,
                      const struct weight *w, uint32_t n_head, float eps);

/* In place on d: op_rope by the same angles, backwards. */
void op_rope_bwd(struct run *r, struct tensor *d, const struct tensor *table, uint32_t n_head);

/* The reverse of op_attention over a whole sequence, kv->starts included: row t is position t, and
 * every position is in the cache. With P = softmax(Q K'), dP = dy V' and dS = P * (dP - rowsum(P *
 * dP)): dq = dS K, and into dkv (added, since several layers may read one cache) dK += dS' Q, dV +=
 * P' dy. P is computed anew. */
void op_attention_bwd(struct run *r, struct tensor *dq, struct kv *dkv, const struct tensor *dy,
                      const struct tensor *q, const struct kv *kv, uint32_t n_head,
                      uint32_t window);

/* y = gelu(a) * b[:, col ...]. In place on d: dy becomes da; db (may be NULL) is set. */
void op_gelu_mul_bwd(struct run *r, struct tensor *d, struct tensor *db, const struct tensor *a,
                     const struct tensor *b, uint32_t col);

/* Of op_experts: dx (added), and dweights (set) by the routing weights. */
void op_experts_bwd(struct run *r, struct tensor *dx, bool fresh, struct tensor *dweights,
                    const struct tensor *dy, const struct tensor *x, const struct routing *routing,
                    const struct experts *e);

/* Of op_route. With c the chosen and w_j = p_j / sum_c p, the other experts do not matter: w is the
 * softmax of the chosen scores alone. So dscores_j = w_j (dw_j - sum_c w dw) for the chosen, and 0
 * for the rest; it is set. */
void op_route_bwd(struct run *r, struct tensor *dscores, const struct tensor *dweights,
                  const struct routing *routing);

/* The head, the soft cap and the cross-entropy in one, so that the logits of a row are never kept:
 * z = cap tanh(head x / cap), loss = log(sum exp z) - z[target]. loss[t] is set (0 where the target
 * is negative: not trained on); dx = weight * d loss / dx is set. */
void op_head_loss(struct run *r, struct tensor *loss, struct tensor *dx, const struct tensor *x,
                  const struct weight *head, const struct tensor *targets, float cap, float weight);

/* control[at] += the sum of all numbers, or of their squares. */
void op_sum(struct run *r, struct tensor *control, enum control at, const struct tensor *t);
void op_sum_squares(struct run *r, struct tensor *control, enum control at, const struct tensor *t);

/* LENGTH and SCALE from LOSS, SQUARES and SHARE: a gradient longer than `most` is scaled to that
 * length (0: no limit). */
void op_clip(struct run *r, struct tensor *control, float most);

/* In place on x, m and v, with g scaled: m = b1 m + (1 - b1) g, v = b2 v + (1 - b2) g^2,
 * x -= lr (m fix1 / (sqrt(v fix2) + eps) + decay x). Nothing where SCALE is negative. */
void op_adamw(struct run *r, struct tensor *x, const struct tensor *g, struct tensor *m,
              struct tensor *v, const struct tensor *control, const struct adamw *o);

/* The numbers of an adapter that hangs on w have changed: a and b have A's and B's. */
void op_publish(struct run *r, const struct weight *w, const struct lora *l, const struct tensor *a,
                const struct tensor *b);

#endif
