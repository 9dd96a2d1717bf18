/* kernel.h - a kernel by its number: a family of kernels/, and above it a value for each of its
 * axes. */
#ifndef BEZEL_GPU_KERNEL_H
#define BEZEL_GPU_KERNEL_H

#include "kernels.h"

static inline const struct kernel_family *kernel_family(uint32_t kernel)
{
    return &kernel_families[kernel & ((1u << KERNEL_FAMILY_BITS) - 1)];
}

/* The number of an axis's value. */
static inline uint32_t kernel_value(uint32_t kernel, struct kernel_axis axis)
{
    return kernel >> axis.shift & axis.mask;
}

/* The variant of the plain tier; the kernel itself where it is that. */
static inline uint32_t kernel_plain(uint32_t kernel)
{
    struct kernel_axis tier = kernel_family(kernel)->tier;
    return kernel & ~((uint32_t)tier.mask << tier.shift);
}

/* A kernel's text. Free *out with wgsl_free, after an error too. */
enum bz_status kernel_expand(struct wgsl *out, uint32_t kernel, struct bz_err *err);

/* Take sources that this build lacks from train.wgsl or canvas.wgsl of tools/kernels.py. They are
 * copied, once for all engines. BZ_ERR_FORMAT: the file belongs to other sources. */
enum bz_status kernel_bring(const char *text, size_t n, struct bz_err *err);

#endif
