/* fit.h - the least-squares pieces that every encoder is made of. Private to quant/.
 *
 * A format stores a weight x as d * q with a whole number q in lo..hi. Two things are easy:
 *
 *   given d, the best q is x / d rounded and clamped                       (fit_level)
 *   given q, the best d minimises sum (x - d q)^2, so d = sum x q / sum q^2 (fit.c)
 *
 * Together they are hard: the error as a function of d is a parabola between any two values of d
 * at which some q changes, hence full of small valleys. fit_scale looks into many of them: it
 * starts from a grid of scales around the obvious one, largest |x| = largest |q|, lets each start
 * slide to the bottom of its valley by one refit (a second gains less than 0.1%), and keeps the
 * best. With 16 starts for each sign this is within 0.1% of trying every half there is.
 *
 * Sums are made in eight lanes that are added in one fixed order, so that all machines encode the
 * same bits.
 */
#ifndef BEZEL_QUANT_FIT_H
#define BEZEL_QUANT_FIT_H

#include <math.h>
#include <stdbool.h>

#include "base/half.h"
#include "base/simd.h"

#define FIT_HALF_MAX 65504.0f
#define FIT_HALF_MIN 0x1p-24f /* the smallest positive half */

/* NaN becomes 0 and the rest saturates at what the format can hold. After this no square below
 * overflows an f32. */
BZ_INLINE void fit_clean(const float *restrict x, float *restrict y, int n, float lo, float hi)
{
    for (int i = 0; i < n; i++) {
        float v = x[i] == x[i] ? x[i] : 0.0f;
        v = v > lo ? v : lo;
        y[i] = v < hi ? v : hi;
    }
}

/* Nearest whole number in lo..hi, ties to even; -2^22 < lo, hi < 2^22. Adding 1.5 * 2^23 pushes
 * the fraction out of the mantissa. Clamping comes first and is written so that NaN gives lo. */
BZ_INLINE float fit_level(float v, float lo, float hi)
{
    v = v > lo ? v : lo;
    v = v < hi ? v : hi;
    return (v + 0x1.8p23f) - 0x1.8p23f;
}

/* n is a multiple of 8, and at least 16. */
BZ_INLINE float fit_sum(const float *t, int n)
{
    float a[8];
    BZ_VECTOR
    for (int l = 0; l < 8; l++) a[l] = t[l] + t[l + 8];
    for (int i = 16; i < n; i += 8) {
        BZ_VECTOR
        for (int l = 0; l < 8; l++) a[l] += t[i + l];
    }
    return ((a[0] + a[4]) + (a[2] + a[6])) + ((a[1] + a[5]) + (a[3] + a[7]));
}

/* The scale as it will be stored: a half, finite, and not 0 (a scale below the smallest half still
 * does better as that half than as nothing). */
BZ_INLINE float fit_half(float d)
{
    float a = fabsf(d);
    if (!(a > 0)) return 0;
    a = a < FIT_HALF_MAX ? a : FIT_HALF_MAX;
    a = a > FIT_HALF_MIN ? a : FIT_HALF_MIN;
    a = f16_to_f32(f32_to_f16(a));
    return d < 0 ? -a : a;
}

/* 1 / d, where a scale of 0 sends every weight to level 0. */
BZ_INLINE float fit_inverse(float d)
{
    return d != 0 ? 1 / d : 0;
}

/* n is 16 or 32 in the following. */

/* sum (x - d q)^2 over the best q. */
float fit_error(const float *x, int n, float d, float lo, float hi);

struct fit_grid {
    float lo, hi;      /* levels */
    float first, last; /* starts: largest |x| at this level, from first to last ... */
    int steps;         /* ... in so many steps */
    int signs;         /* 2 where lo..hi is lopsided: then -d is another choice than d */
    bool half;         /* the scale is stored as a half */
};

/* The scale for n weights; 0 when all are 0. */
float fit_scale(const float *x, int n, const struct fit_grid *g);

/* The unit d (a half) in which n values (any n) are nearest to whole multiples up to k_max, by
 * squares. Values that were such multiples of a half find it again. */
float fit_unit(const float *v, int n, int k_max);

#endif
