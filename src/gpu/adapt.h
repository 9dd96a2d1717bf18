/* adapt.h - the adapters of a linear on the device: all of them as one pair of matrices.
 *
 * However many adapters a linear has, z = A x is one product, and B z is added by the dispatch of W
 * x. So they cost one dispatch more, and not two each. The layout is that of kernels/lib/lora.wgsl.
 */
#ifndef BEZEL_GPU_ADAPT_H
#define BEZEL_GPU_ADAPT_H

#include "gpu/gpu.h"
#include "ops/ops.h"

enum { MAX_ADAPTED = 16 };

/* Zero is none. */
struct gpu_adapted {
    uint32_t rank; /* of all together: lora_width() */
    gpu_buffer a;  /* n_mat x rank x cols f32, rows of whole eights */
    gpu_buffer b;  /* n_mat x rank x rows f32: B transposed; then rank scales, twice */
    uint32_t n;    /* the adapters in it */
    const struct lora *which[MAX_ADAPTED]; /* only compared, never looked into */
    uint32_t at[MAX_ADAPTED];              /* first row of each in a and b */
};

/* Make *d what w->lora says. Matrices that it has already are copied on the device, so that the
 * host need not keep them; new ones are read from their sources. On failure *d is as it was. */
enum bz_status gpu_adapt(struct gpu_adapted *d, const struct weight *w,
                         const struct gpu_limits *limits, struct bz_err *err);
void gpu_adapted_free(struct gpu_adapted *d);

/* In u32 words from the start of b: the scales of texts, or of a canvas's steps behind them. */
static inline uint32_t gpu_adapted_scales(const struct gpu_adapted *d, const struct weight *w,
                                          bool canvas)
{
    return w->n_mat * d->rank * w->rows + (canvas ? d->rank : 0);
}

#endif
