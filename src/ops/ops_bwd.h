/* ops_bwd.h - gradients: for each op that training passes through, its reverse.
 *
 * dX is the derivative of the loss by X. The base is frozen, so weights have no gradient; trained are
 * the adapters that have a place for theirs (struct lora.grad). Where a comment says "added", the
 * argument is accumulated into, since several consumers of a value each add their part.
 */
#ifndef BEZEL_OPS_OPS_BWD_H
#define BEZEL_OPS_OPS_BWD_H

#include "ops/ops.h"

struct adamw {
    float lr, beta1, beta2, eps, decay;
    float grad_scale; /* multiplies every gradient first: clipping */
    uint32_t step;    /* 1, 2, ...: for the correction of the moments' bias */
};

/* What a backend that can train implements. */
struct backward_ops {
    bool packs; /* attention, both ways, heeds kv.starts: several examples may share a sequence */
    bool drops; /* linears, both ways, heed lora.drop */
    void (*zero)(struct run *r, struct tensor *t);
    void (*rms_norm)(struct run *r, struct tensor *dx, const struct tensor *dy,
                     const struct tensor *x, const struct weight *w, float eps);
    void (*linear)(struct run *r, struct tensor *dx, const struct tensor *dy,
                   const struct tensor *x, const struct weight *w);
    void (*head_norm_rope)(struct run *r, struct tensor *d, const struct tensor *x,
                           const struct weight *w, const struct tensor *table, uint32_t n_head,
                           float eps);
    void (*attention)(struct run *r, struct tensor *dq, struct kv *dkv, const struct tensor *dy,
                      const struct tensor *q, const struct kv *kv, uint32_t n_head,
                      uint32_t window);
    void (*gelu_mul)(struct run *r, struct tensor *d, struct tensor *db, const struct tensor *a,
                     const struct tensor *b, uint32_t col);
    void (*experts)(struct run *r, struct tensor *dx, struct tensor *dweights,
                    const struct tensor *dy, const struct tensor *x, const struct routing *routing,
                    const struct experts *e);
    void (*router)(struct run *r, struct tensor *dx, const struct tensor *dweights,
                   const struct tensor *x, const struct routing *routing, const struct weight *w,
                   const struct weight *scale, float eps);
    void (*head_loss)(struct run *r, struct tensor *loss, struct tensor *dx, const struct tensor *x,
                      const struct weight *head, const struct tensor *targets, float cap,
                      float weight);
    double (*sum_squares)(struct run *r, const struct tensor *t);
    void (*adamw)(struct run *r, struct tensor *x, const struct tensor *g, struct tensor *m,
                  struct tensor *v, const struct adamw *o);
};

/* rows x cols zeros: where gradients are added up. */
void op_zero(struct run *r, struct tensor *t, uint32_t rows);

/* y = rms_norm(x) * w. With n = x / rms and g = dy * w: dx += (g - n * mean(g * n)) / rms. */
void op_rms_norm_bwd(struct run *r, struct tensor *dx, const struct tensor *dy,
                     const struct tensor *x, const struct weight *w, float eps);

/* y = W x + s B (A x) for each adapter. dx (added; NULL where nobody needs it) += W' dy + s A' (B' dy).
 * For a trained adapter dB += s dy' (A x) and dA += s (B' dy)' x. With dropout x is what A saw, and A' goes
 * back through the same numbers. */
void op_linear_bwd(struct run *r, struct tensor *dx, const struct tensor *dy,
                   const struct tensor *x, const struct weight *w);

/* In place on d: the gradient after op_head_norm_rope becomes the one before it. x is what the op was
 * given. */
void op_head_norm_rope_bwd(struct run *r, struct tensor *d, const struct tensor *x,
                           const struct weight *w, const struct tensor *table, uint32_t n_head,
                           float eps);

/* Of op_attention over a whole sequence: row t is position t, and every position is in the cache.
 * With P = softmax(Q K'), dP = dy V' and dS = P * (dP - rowsum(P * dP)): dq = dS K, and into dkv (added;
 * several layers may read one cache) dK += dS' Q, dV += P' dy. P is computed anew. */
void op_attention_bwd(struct run *r, struct tensor *dq, struct kv *dkv, const struct tensor *dy,
                      const struct tensor *q, const struct kv *kv, uint32_t n_head,
                      uint32_t window);

/* y = gelu(a) * b[:, col ...]. In place on d: dy becomes da; db (may be NULL) is set. */
void op_gelu_mul_bwd(struct run *r, struct tensor *d, struct tensor *db, const struct tensor *a,
                     const struct tensor *b, uint32_t col);

/* Of op_experts: dx (added), and dweights (set) by the routing weights. */
void op_experts_bwd(struct run *r, struct tensor *dx, struct tensor *dweights,
                    const struct tensor *dy, const struct tensor *x, const struct routing *routing,
                    const struct experts *e);

/* Of op_router, through the weights that it gave the experts it chose: dx (added). */
void op_router_bwd(struct run *r, struct tensor *dx, const struct tensor *dweights,
                   const struct tensor *x, const struct routing *routing, const struct weight *w,
                   const struct weight *scale, float eps);

/* The head, the soft cap and the cross-entropy in one, so that the logits of a row are never kept:
 * z = cap tanh(head x / cap), loss = log(sum exp z) - z[target]. loss[t] is set (0 where the target
 * is negative: not trained on); dx = weight * d loss / dx is set. */
void op_head_loss(struct run *r, struct tensor *loss, struct tensor *dx, const struct tensor *x,
                  const struct weight *head, const struct tensor *targets, float cap, float weight);

/* The sum of the squares of all numbers. */
double op_sum_squares(struct run *r, const struct tensor *t);

/* In place on x, m and v, with g scaled: m = b1 m + (1 - b1) g, v = b2 v + (1 - b2) g^2,
 * x -= lr (m / (1 - b1^step) / (sqrt(v / (1 - b2^step)) + eps) + decay x). */
void op_adamw(struct run *r, struct tensor *x, const struct tensor *g, struct tensor *m,
              struct tensor *v, const struct adamw *o);

#endif
